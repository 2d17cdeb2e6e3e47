//! Holds every declaration against the CUDA C++ that it is written from and the PTX that it launches.

use std::collections::BTreeSet;
use std::path::Path;

use crate::image::text;
use crate::{ALL, Image};

#[test]
fn every_kernel_is_declared() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuda");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".cu").map(String::from))
        .collect();
    let declared: BTreeSet<String> = ALL.iter().map(|image| text(image.name()).to_string()).collect();
    assert_eq!(declared, files, "left: declared in kernels/handles; right: files of kernels/cuda");
}

#[test]
fn declarations_are_the_signatures_of_the_cuda_sources() {
    for (image, parameters) in declared() {
        let name = text(image.name());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../cuda/{name}.cu"));
        let source = std::fs::read_to_string(path).unwrap();
        assert_eq!(parameters, cuda_parameters(&source, name), "{name}: left: declared; right: CUDA C++");
    }
}

#[test]
fn declarations_have_the_parameter_sizes_of_the_ptx() {
    for (image, _) in declared() {
        let sizes: Vec<usize> = image.parameters().unwrap().iter().map(|parameter| parameter.bytes).collect();
        assert_eq!(
            sizes,
            ptx_parameter_bytes(image.ptx_text()),
            "{}: left: declared; right: PTX",
            text(image.name())
        );
    }
}

/// The kernels with a handle, and each parameter as `name: type`.
fn declared() -> impl Iterator<Item = (&'static Image, Vec<String>)> {
    ALL.iter().filter_map(|image| {
        let parameters = image.parameters()?;
        Some((*image, parameters.iter().map(|p| format!("{}: {}", p.name, p.rust_type)).collect()))
    })
}

/// A `__global__` function's parameters, written as a declaration writes them.
fn cuda_parameters(source: &str, name: &str) -> Vec<String> {
    let head = "extern \"C\" __global__ void";
    let (_, rest) = source.split_once(head).unwrap_or_else(|| panic!("{name}.cu has no `{head}`"));
    let (between, rest) = rest.split_once(&format!("{name}(")).unwrap();
    let between = between.trim();
    assert!(
        between.is_empty() || between.starts_with("__launch_bounds__(") && between.ends_with(')'),
        "{name}.cu has `{between}` between `void` and the name"
    );
    let (list, _) = rest.split_once(')').unwrap();
    list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()).map(cuda_parameter).collect()
}

fn cuda_parameter(parameter: &str) -> String {
    let parameter = parameter.replace("__restrict__", " ");
    let words: Vec<&str> = parameter.split_whitespace().collect();
    let (name, types) = words.split_last().unwrap();
    let c_type = types.join(" ");
    let rust = |c_type: &str| match c_type {
        "float" => "f32",
        "double" => "f64",
        "int" => "i32",
        "unsigned int" => "u32",
        "size_t" | "unsigned long long" => "u64",
        "unsigned char" => "u8",
        other => panic!("no Rust type is known for `{other}`: add it here"),
    };
    let rust_type = match (c_type.strip_prefix("const "), c_type.strip_suffix('*')) {
        (Some(element), Some(_)) => format!("&[{}]", rust(element.trim_end_matches('*'))),
        (None, Some(element)) => format!("&mut [{}]", rust(element)),
        _ => rust(&c_type).to_string(),
    };
    format!("{name}: {rust_type}")
}

/// The bytes of each `.param` of the entry.
fn ptx_parameter_bytes(ptx: &str) -> Vec<usize> {
    let (_, rest) = ptx.split_once(".entry").unwrap();
    let (list, _) = rest.split_once("\n{").unwrap();
    list.split(".param ")
        .skip(1)
        .map(|parameter| match parameter.split_whitespace().next().unwrap() {
            ".u64" | ".b64" | ".f64" | ".s64" => 8,
            ".u32" | ".b32" | ".f32" | ".s32" => 4,
            ".u16" | ".b16" => 2,
            ".u8" | ".b8" => 1,
            other => panic!("no size is known for `.param {other}`: add it here"),
        })
        .collect()
}
