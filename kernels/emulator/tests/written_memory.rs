//! `EMULATED_GPU_CHECK=init`: what the driver's calls write is written, and a kernel that reads anything else is at fault.

mod common;

use std::{env, sync::Once};

use common::{Context, alloc, code, cu, download, function, launch, load, ok, param, upload};

/// `sum` adds up `n` numbers at `x`, a warp's lane each.
const SUM: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry sum(.param .u64 x, .param .u64 out)
{
	.reg .b32 %t, %v;
	.reg .b64 %x, %out, %offset;
	ld.param.u64 %x, [x];
	ld.param.u64 %out, [out];
	mov.u32 %t, %tid.x;
	mul.wide.u32 %offset, %t, 4;
	add.s64 %x, %x, %offset;
	ld.u32 %v, [%x];
	red.add.u32 [%out], %v;
	ret;
}
";

struct Bench {
    context: Context,
    sum: usize,
    out: u64,
}

impl Bench {
    fn new() -> Bench {
        static CHECK: Once = Once::new();
        // SAFETY: The driver is loaded after this, and no test reads the environment.
        CHECK.call_once(|| unsafe { env::set_var("EMULATED_GPU_CHECK", "init") });
        let context = Context::new();
        let sum = function(load(SUM), c"sum");
        let out = alloc(4);
        upload(out, &[0u32]);
        Bench { context, sum, out }
    }

    /// Reads `n` numbers in a kernel, and answers what synchronising does.
    fn read(&self, mut x: u64, n: u32) -> u32 {
        let mut out = self.out;
        launch(self.sum, 1, n, 0, 0, &mut [param(&mut x), param(&mut out)]);
        cu!(cuCtxSynchronize())
    }

    #[track_caller]
    fn is_written(&self, x: u64, n: u32) {
        assert_eq!(self.read(x, n), code::SUCCESS);
    }

    /// Ends the context, as reading ends it.
    #[track_caller]
    fn fails(self, x: u64, n: u32) {
        assert_eq!(self.read(x, n), code::LAUNCH_FAILED);
        drop(self.context);
    }
}

#[test]
fn fresh_memory_is_not_written() {
    let bench = Bench::new();
    let x = alloc(64);
    bench.fails(x, 1);
}

#[test]
fn memory_of_pools_is_not_either() {
    let bench = Bench::new();
    let mut x = 0u64;
    ok!(cuMemAllocAsync(&mut x as *mut u64, 64usize, 0usize));
    ok!(cuMemsetD8Async(x, 0u8, 64usize, 0usize));
    bench.is_written(x, 16);
    ok!(cuMemFreeAsync(x, 0usize));
    ok!(cuMemAllocAsync(&mut x as *mut u64, 64usize, 0usize));
    bench.fails(x, 1);
}

#[test]
fn copies_and_fills_write() {
    let bench = Bench::new();
    let x = alloc(64);
    upload(x, &[1u32; 8]);
    ok!(cuMemsetD16_v2(x + 32, 0u16, 14usize));
    bench.is_written(x, 15);
    assert_eq!(download::<u32>(bench.out, 1), [8]);
    bench.fails(x, 16);
}

#[test]
fn a_kernel_writes() {
    let bench = Bench::new();
    let x = alloc(64);
    let fill = function(load(common::KERNELS), c"fill");
    let (mut address, mut n, mut value) = (x, 10u32, 3u32);
    launch(fill, 1, 32, 0, 0, &mut [param(&mut address), param(&mut n), param(&mut value)]);
    bench.is_written(x, 10);
    bench.fails(x, 11);
}

#[test]
fn a_copy_between_devices_carries_what_is_known() {
    let bench = Bench::new();
    let (x, y) = (alloc(64), alloc(64));
    upload(x, &[1u32; 8]);
    ok!(cuMemsetD32_v2(y, 0u32, 16usize));
    ok!(cuMemcpyDtoD_v2(y, x, 64usize));
    bench.is_written(y, 8);
    bench.fails(y, 9);
}

#[test]
fn rows_are_written_without_what_is_between() {
    let bench = Bench::new();
    let x = alloc(64);
    ok!(cuMemsetD2D32_v2(x, 16usize, 1u32, 2usize, 4usize));
    bench.is_written(x + 16, 2);
    bench.fails(x, 3);
}

#[test]
fn host_memory_counts_as_written() {
    let bench = Bench::new();
    let (mut managed, mut pinned) = (0u64, 0u64);
    ok!(cuMemAllocManaged(&mut managed as *mut u64, 64usize, 1u32));
    ok!(cuMemAllocHost_v2(&mut pinned as *mut u64, 64usize));
    bench.is_written(managed, 16);
    bench.is_written(pinned, 16);
    // And a copy of it as well.
    let x = alloc(64);
    ok!(cuMemcpy(x, pinned, 64usize));
    bench.is_written(x, 16);
    drop(bench.context);
}

#[test]
fn module_variables_count_as_written() {
    let bench = Bench::new();
    let module = load(common::KERNELS);
    let mut counter = 0u64;
    let bytes = std::ptr::null_mut::<usize>();
    ok!(cuModuleGetGlobal_v2(&mut counter as *mut u64, bytes, module, c"counter".as_ptr()));
    bench.is_written(counter, 1);
    drop(bench.context);
}
