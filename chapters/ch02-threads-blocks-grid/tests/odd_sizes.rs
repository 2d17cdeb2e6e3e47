//! Index arithmetic and divergent kernels against the CPU, at sizes that are no multiple of
//! anything. Runs on the GPU if there is one, else on the emulated GPU.

use ch02_threads_blocks_grid::who::{ask, expected};
use ch02_threads_blocks_grid::{Decides, Diverging, data, run_uneven};
use kernels::divergence_03_uneven;
use proptest::prelude::*;

#[track_caller]
fn check(size: [u32; 3], block: [u32; 3]) {
    let context = lab::open_device().unwrap();
    assert_eq!(ask(&context, size, block).unwrap(), expected(size, block), "{size:?} in {block:?}");
}

#[test]
fn around_every_boundary() {
    for n in [0, 1, 31, 32, 33, 255, 256, 257, 1000, 65_535, 65_537] {
        check([n, 1, 1], [256, 1, 1]);
    }
    for (width, height) in [(0, 5), (1, 1), (31, 9), (33, 8), (1000, 3), (3, 1000)] {
        check([width, height, 1], [32, 8, 1]);
        check([width, height, 1], [8, 32, 1]);
    }
    for (width, height, depth) in [(1, 1, 1), (9, 9, 5), (33, 1, 2), (1, 33, 7)] {
        check([width, height, depth], [8, 8, 4]);
    }
}

#[test]
fn blocks_of_any_shape_up_to_the_largest() {
    for block in [[1, 1, 1], [33, 1, 1], [1024, 1, 1], [1, 1024, 1], [32, 32, 1], [4, 4, 64]] {
        check([70, 37, 3], block);
    }
}

#[test]
fn every_element_goes_its_way() {
    let context = lab::open_device().unwrap();
    for decides in Decides::ALL {
        for n in [1, 31, 33, 1000, 1025, 4097] {
            let mut work = Diverging::new(&context, decides, n).unwrap();
            for ways in [1, 2, 3, 32, 33] {
                work.launch(ways, 5).unwrap();
                work.check(ways, 5).unwrap();
            }
            // The check must be able to fail: with one way, only the first warp or lane does the same.
            if n > 32 {
                work.check(1, 5).unwrap_err();
            }
        }
    }
}

#[test]
fn unequal_work_is_done_to_its_end() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    let kernel = divergence_03_uneven::Kernel::load(&context).unwrap();
    for n in [0, 1, 31, 33, 1000] {
        let rounds: Vec<u32> = data::random(7).take(n).map(|number| (number % 40) as u32).collect();
        assert_eq!(run_uneven(&kernel, &stream, &rounds).unwrap().len(), n);
    }
}

#[test]
fn a_sum_that_is_wrong_is_found() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    for n in [1, 1000, (1 << 20) + 5] {
        let mut vectors = data::Vectors::new(&stream, n).unwrap();
        let error = vectors.check(n).unwrap_err().to_string();
        assert!(error.starts_with("the sum is wrong between elements 0 and"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_size_in_blocks_of_any_shape(
        size in [0_u32..70, 1_u32..40, 1_u32..6],
        block in [1_u32..40, 1_u32..7, 1_u32..4],
    ) {
        check(size, block);
    }
}
