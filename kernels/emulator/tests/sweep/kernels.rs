//! Kernels that execute one form each.

use std::{fs, path::Path};

use super::{
    common::{alloc, code, cu, download, launch, ok, param, upload},
    forms::Form,
    operands,
};

/// Forms in one module: a GPU's driver compiles each module when it is loaded.
const MODULE: usize = 24;

/// Runs each form: the results, or the error of the driver that loads it.
pub(crate) fn run(forms: &[Form]) -> Vec<Result<Vec<u64>, u32>> {
    let bytes = operands::MOST * 24;
    let (input, output) = (alloc(bytes), alloc(operands::MOST * 8));
    let mut results = Vec::new();
    for group in forms.chunks(MODULE) {
        match load(group) {
            Ok(module) => {
                results.extend((0..group.len()).map(|n| Ok(run_one(&group[n], module, n, input, output))));
                ok!(cuModuleUnload(module));
            }
            // One of them is refused: each by itself.
            Err(_) => results.extend(group.iter().map(|form| {
                let module = load(std::slice::from_ref(form))?;
                let result = run_one(form, module, 0, input, output);
                ok!(cuModuleUnload(module));
                Ok(result)
            })),
        }
    }
    ok!(cuMemFree_v2(input));
    ok!(cuMemFree_v2(output));
    results
}

fn load(forms: &[Form]) -> Result<usize, u32> {
    let text = std::ffi::CString::new(module(forms)).expect("PTX has no zero byte");
    let mut module = 0usize;
    match cu!(cuModuleLoadData(&mut module as *mut usize, text.as_ptr())) {
        code::SUCCESS => Ok(module),
        code => Err(code),
    }
}

fn run_one(form: &Form, module: usize, number: usize, input: u64, output: u64) -> Vec<u64> {
    let name = std::ffi::CString::new(format!("k{number}")).expect("a name has no zero byte");
    let mut kernel = 0usize;
    ok!(cuModuleGetFunction(&mut kernel as *mut usize, module, name.as_ptr()));
    let rows = operands::rows(form);
    upload(input, &rows);
    ok!(cuMemsetD8_v2(output, 0u8, rows.len() * 8));
    let (mut input, mut out, mut count) = (input, output, rows.len() as u32);
    let mut params = [param(&mut input), param(&mut out), param(&mut count)];
    let launched = launch(kernel, count.div_ceil(128), 128, 0, 0, &mut params);
    assert_eq!(launched, code::SUCCESS, "launching {}", form.text);
    assert_eq!(cu!(cuCtxSynchronize()), code::SUCCESS, "running {}", form.text);
    download(output, rows.len())
}

/// Writes the modules as files.
pub(crate) fn write(forms: &[Form], folder: &Path) {
    fs::create_dir_all(folder).expect("SWEEP_PTX names a folder");
    for (number, form) in forms.iter().enumerate() {
        let path = folder.join(format!("{number:04}.ptx"));
        fs::write(path, module(std::slice::from_ref(form))).expect("the folder can be written");
    }
}

fn module(forms: &[Form]) -> String {
    let kernels: String = forms.iter().enumerate().map(|(number, form)| kernel(form, number)).collect();
    format!(".version 8.3\n.target sm_90\n.address_size 64\n{kernels}")
}

fn kernel(form: &Form, number: usize) -> String {
    let mut loads = String::new();
    let mut registers = String::new();
    for (index, ty) in form.sources.iter().enumerate() {
        let (name, bits) = (["a", "b", "c"][index], register(ty));
        registers.push_str(&format!(".reg .b{bits} %{name}; "));
        loads.push_str(&format!("ld.global.b{bits} %{name}, [%in+{}];\n  ", 8 * index));
    }
    let bits = register(&form.dest);
    format!(
        "// {text}
.visible .entry k{number}(.param .u64 in, .param .u64 out, .param .u32 rows) {{
  .reg .pred %p, %q, %end; .reg .b32 %n, %t, %rows, %r<4>; .reg .b64 %in, %out, %rd<4>; .reg .b16 %h<4>;
  {registers}.reg .b{bits} %d;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %rows, [rows];
  mov.u32 %n, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %n, %n, 128, %t;
  setp.ge.u32 %end, %n, %rows; @%end bra END;
  mad.wide.u32 %in, %n, 24, %in; mad.wide.u32 %out, %n, 8, %out;
  {loads}{body}
  st.global.b{bits} [%out], %d;
END:
  ret;
}}
",
        text = form.text,
        body = form.body,
    )
}

/// Bits of the register for a type. What has 8 bits is kept in wider registers.
pub(crate) fn register(ty: &str) -> u32 {
    match ty {
        "u8" | "s8" | "u16" | "s16" | "b16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 16,
        "u64" | "s64" | "b64" | "f64" => 64,
        _ => 32,
    }
}
