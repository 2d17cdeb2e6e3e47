//! Every way there and back against the CPU, bit for bit, at sizes that are no multiple of anything.
//! Runs on the GPU if there is one, else on the emulated GPU.

use ch06_managed_memory::managed::{self, Advice, Mapped, Place};
use ch06_managed_memory::ways::{Way, add};
use ch06_managed_memory::{CELLS, cpu};
use kernels::managed_01_sparse;
use proptest::prelude::*;

#[track_caller]
fn check(way: Way, n: usize) {
    let context = lab::open_device().unwrap();
    let (a, b) = (cpu::numbers(n, 1), cpu::numbers(n, 2));
    let c = add(way, &context, &a, &b).unwrap();
    let expected = cpu::sum(&a, &b);
    let wrong = c.iter().zip(&expected).position(|(c, expected)| c.to_bits() != expected.to_bits());
    assert_eq!((c.len(), wrong), (n, None), "{way:?}, n = {n}");
}

#[test]
fn around_every_boundary() {
    for way in Way::ALL {
        for n in [0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 4097] {
            check(way, n);
        }
    }
}

#[test]
fn vectors_of_unequal_length_are_refused() {
    let context = lab::open_device().unwrap();
    let error = add(Way::Cold, &context, &[1.0; 3], &[1.0; 2]).unwrap_err().to_string();
    assert_eq!(error, "adding 3 floats to 2: the lengths must be equal");
}

#[test]
fn a_sparse_touch_changes_the_floats_that_it_should() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    let kernel = managed_01_sparse::Kernel::load(&context).unwrap();
    for (touched, stride) in [(1, 1), (31, 1), (33, 7), (1000, 3), (5, 1024), (1, 4096)] {
        let n = touched * stride;
        let numbers = cpu::numbers(n, 5);
        let mut memory = managed::allocate(&context, n).unwrap();
        memory.as_mut_slice().unwrap().copy_from_slice(&numbers);
        let (a, touched, apart) = (&mut memory, touched as u64, stride as u64);
        kernel.launch(&stream, managed_01_sparse::Arguments { a, touched, stride: apart }).unwrap();
        stream.synchronize().unwrap();
        for (i, (after, before)) in memory.as_slice().unwrap().iter().zip(&numbers).enumerate() {
            let expected = if i % stride == 0 { before + 1.0 } else { *before };
            assert_eq!(*after, expected, "element {i} of {touched} × {stride}");
        }
    }
}

#[test]
fn advice_and_prefetches_change_no_value() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    for n in [1, 1000, 1025] {
        let numbers = cpu::numbers(n, 7);
        let mut memory = managed::allocate(&context, n).unwrap();
        memory.as_mut_slice().unwrap().copy_from_slice(&numbers);
        for advice in [
            Advice::ReadMostly,
            Advice::Preferred(Place::Device),
            Advice::Preferred(Place::Host),
            Advice::AccessedBy(Place::Device),
        ] {
            managed::advise(&memory, advice, &stream).unwrap();
            managed::prefetch(&memory, Place::Device, &stream).unwrap();
            managed::prefetch(&memory, Place::Host, &stream).unwrap();
            assert_eq!(memory.as_slice().unwrap(), numbers, "{advice:?}, n = {n}");
        }
    }
}

#[test]
fn mapped_memory_outlives_the_work_that_uses_it() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    for n in [1usize, 33, 1000] {
        let mut memory = Mapped::allocate(&stream, n).unwrap();
        memory.as_mut_slice().unwrap().copy_from_slice(&cpu::numbers(n, 3));
        assert_eq!(stream.clone_dtoh(&*memory).unwrap(), memory.as_slice().unwrap());
    }
}

#[test]
fn the_faulty_cell_stands_last() {
    assert_eq!(CELLS.last().map(|cell| cell.id), Some("two-streams"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_size(n in 0usize..6000, way in 0usize..7) {
        check(Way::ALL[way], n);
    }
}
