//! What tensor cores compute, bit by bit: random and crafted fragments for every form of `mma` and `wmma`.
//!
//! `tensor/h200.txt` holds hashes of what an H200 computed, for each form and each batch of fragments. The emulated GPU must
//! compute the same. To look closer, or to record again:
//!
//! - `CUDA_DRIVER=libcuda.so.1 tensor` also runs the fragments on a GPU and compares every bit with the emulated one.
//! - `TENSOR_RECORD=FILE` writes all that the device computed there; `TENSOR_REPLAY=FILE` reads it instead of using a device.
//! - `TENSOR_HASHES=FILE` writes the hashes of what the device computed.

mod common;
#[path = "tensor/forms.rs"]
mod forms;
mod machine;

use std::{collections::HashMap, env, fmt::Write as _, fs};

use emulator::module::Level;
use forms::{BATCH, Form};
use machine::{Gpu, Shape};

#[test]
fn fragments() {
    let recorded = read_hashes(include_str!("tensor/h200.txt"));
    let mut device = Device::find();
    let mut report = String::new();
    let mut record = Vec::new();
    let mut hashes = String::new();
    for form in forms::all() {
        let input = form.input();
        let found = emulate(&form, &input);
        if let Some(expected) = recorded.get(&form.name) {
            let here: Vec<u64> = batches(&form, &found).map(hash).collect();
            let wrong: Vec<_> =
                (0..here.len()).filter(|&batch| expected.get(batch) != Some(&here[batch])).collect();
            if !wrong.is_empty() {
                writeln!(report, "{}: batches {wrong:?} of {} differ from the H200's", form.name, here.len())
                    .unwrap();
            }
        } else if device.is_none() {
            writeln!(report, "{}: not recorded", form.name).unwrap();
        }
        let Some(device) = &mut device else { continue };
        let Some(expected) = device.run(&form, &input) else {
            writeln!(report, "{}: the device has no such form", form.name).unwrap();
            continue;
        };
        write!(hashes, "{}", form.name).unwrap();
        batches(&form, &expected).for_each(|batch| write!(hashes, " {:016x}", hash(batch)).unwrap());
        hashes.push('\n');
        record.extend_from_slice(format!("{} {}\n", form.name, expected.len()).as_bytes());
        record.extend_from_slice(&expected);
        form.compare(&input, &expected, &found, &mut report);
    }
    for (variable, bytes) in [("TENSOR_RECORD", &record[..]), ("TENSOR_HASHES", hashes.as_bytes())] {
        if let Some(path) = env::var_os(variable) {
            fs::write(&path, bytes).unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// What an emulated GPU computes.
fn emulate(form: &Form, input: &[u8]) -> Vec<u8> {
    let gpu = Gpu::load(&form.ptx(), Level::host()).unwrap_or_else(|error| panic!("{}: {error}", form.name));
    let from = gpu.upload(input);
    let bytes = form.fragments * form.output_bytes;
    let to = gpu.upload(&vec![0u8; bytes]);
    let shape = Shape::new([form.fragments as u32, 1, 1], [32, 1, 1]);
    gpu.launch("form", shape, &[&from.to_le_bytes(), &to.to_le_bytes()])
        .unwrap_or_else(|stop| panic!("{}: {stop:?}", form.name));
    gpu.download(to, bytes)
}

/// What the emulated GPU is compared with.
enum Device {
    Driver { _context: common::Context },
    Record(HashMap<String, Vec<u8>>),
}

impl Device {
    fn find() -> Option<Device> {
        if let Some(path) = env::var_os("TENSOR_REPLAY") {
            let bytes = fs::read(path).unwrap();
            let mut forms = HashMap::new();
            let mut rest = &bytes[..];
            while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                let line = std::str::from_utf8(&rest[..end]).unwrap();
                let (name, count) = line.rsplit_once(' ').unwrap();
                let data = &rest[end + 1..][..count.parse().unwrap()];
                forms.insert(name.to_owned(), data.to_vec());
                rest = &rest[end + 1 + data.len()..];
            }
            return Some(Device::Record(forms));
        }
        env::var_os("CUDA_DRIVER").map(|_| Device::Driver { _context: common::Context::new() })
    }

    fn run(&mut self, form: &Form, input: &[u8]) -> Option<Vec<u8>> {
        match self {
            Device::Record(forms) => forms.remove(&form.name),
            Device::Driver { .. } => {
                let text = std::ffi::CString::new(form.ptx()).unwrap();
                let mut module = 0usize;
                let loaded = common::cu!(cuModuleLoadData(&mut module as *mut usize, text.as_ptr()));
                if loaded != common::code::SUCCESS {
                    println!("{}: loading says {loaded}", form.name);
                    return None;
                }
                let function = common::function(module, c"form");
                let bytes = form.fragments * form.output_bytes;
                let (mut from, mut to) = (common::alloc(input.len()), common::alloc(bytes));
                common::upload(from, input);
                common::upload(to, &vec![0u8; bytes]);
                let mut params = [common::param(&mut from), common::param(&mut to)];
                assert_eq!(common::launch(function, form.fragments as u32, 32, 0, 0, &mut params), 0);
                let found = common::download(to, bytes);
                common::ok!(cuMemFree_v2(from));
                common::ok!(cuMemFree_v2(to));
                common::ok!(cuModuleUnload(module));
                Some(found)
            }
        }
    }
}

fn batches<'b>(form: &Form, output: &'b [u8]) -> std::slice::Chunks<'b, u8> {
    output.chunks(BATCH * form.output_bytes)
}

fn read_hashes(text: &str) -> HashMap<String, Vec<u64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let name = words.next().unwrap().to_owned();
            (name, words.map(|word| u64::from_str_radix(word, 16).unwrap()).collect())
        })
        .collect()
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
