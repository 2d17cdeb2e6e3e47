//! Every kernel of the chapter against the CPU's f64 answer, bit for bit, at sizes that are no
//! multiple of anything. Runs on the GPU if there is one, else on the emulated GPU.

use ch01_raw_kernel::{Step, add, cpu};
use proptest::prelude::*;

#[track_caller]
fn check(step: Step, n: usize) {
    let (a, b) = (cpu::numbers(n, 3), cpu::numbers(n, 4));
    let sum = add(step, &a, &b).unwrap();
    let expected = cpu::reference(&a, &b);
    let wrong: Vec<usize> = (0..n).filter(|&i| sum[i].to_bits() != expected[i].to_bits()).collect();
    assert_eq!(sum.len(), n);
    assert!(
        wrong.is_empty(),
        "{step:?}, n = {n}: {} sums are wrong, the first at {}",
        wrong.len(),
        wrong[0]
    );
}

#[test]
fn around_every_boundary() {
    lab::open_device().unwrap();
    for step in Step::ALL {
        for n in
            [0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 65_535, 65_537]
        {
            check(step, n);
        }
    }
}

#[test]
fn more_elements_than_the_grid_stride_has_threads() {
    lab::open_device().unwrap();
    check(Step::GridStride, 132 * 2048 + 1);
}

#[test]
fn special_numbers_add_as_on_the_cpu() {
    lab::open_device().unwrap();
    let numbers = [
        0.0,
        -0.0,
        1.0,
        f32::MIN_POSITIVE,
        f32::from_bits(1), // the smallest there is: a GPU must not flush it to zero
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    let pairs = numbers.iter().flat_map(|&x| numbers.iter().map(move |&y| (x, y)));
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.filter(|(x, y)| !(x + y).is_nan()).unzip();
    for step in Step::ALL {
        let bits = |floats: Vec<f32>| floats.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(add(step, &a, &b).unwrap()), bits(cpu::reference(&a, &b)), "{step:?}");
    }
}

#[test]
fn lengths_that_differ_are_an_error() {
    lab::open_device().unwrap();
    let error = add(Step::Scalar, &[1.0, 2.0], &[1.0]).unwrap_err().to_string();
    assert_eq!(error, "adding 2 floats to 1: both must have the same length");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_size(n in 0usize..20_000, step in 0usize..3) {
        lab::open_device().unwrap();
        check(Step::ALL[step], n);
    }
}
