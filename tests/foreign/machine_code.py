"""Programs that bring machine code for one kind of GPU, a cubin, and no PTX: python3 machine_code.py CUBIN

It writes the cubin, and says what cuda.core and PyCUDA make of the driver's refusal.
"""

import sys
from pathlib import Path

import pycuda.autoinit
import pycuda.driver
from cuda.core import Device, Program, ProgramOptions

Device().set_current()
program = Program('extern "C" __global__ void f() {}', "c++", ProgramOptions(arch="sm_90"))
module = program.compile("cubin")
Path(sys.argv[1]).write_bytes(module.code)
try:
    module.get_kernel("f")
except Exception as error:
    print("cuda.core:", error)
try:
    pycuda.driver.module_from_file(sys.argv[1])
except pycuda.driver.Error as error:
    print("pycuda:", error)
