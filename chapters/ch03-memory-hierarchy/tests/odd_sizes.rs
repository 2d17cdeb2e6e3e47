//! Every transpose against the CPU's, bit for bit, at sizes that are no multiple of anything. Runs on
//! the GPU if there is one, else on the emulated GPU. The other kernels are held against the CPU by
//! the cells that measure them, which `exact.rs` runs; here they meet awkward lengths.

use ch03_memory_hierarchy::{Step, cpu, transpose};
use kernels::{
    advance_01_structs, advance_02_arrays, copy_02_scalar, copy_03_float2, copy_04_strided,
    copy_05_offset, spread_01_registers, spread_02_local, spread_03_spilled,
};
use proptest::prelude::*;

#[track_caller]
fn check(step: Step, rows: usize, columns: usize) {
    let a = cpu::numbers(rows * columns, 3);
    let c = transpose(step, &a, rows, columns).unwrap();
    let expected = cpu::transpose(&a, rows, columns);
    let wrong: Vec<usize> =
        (0..a.len()).filter(|&i| c[i].to_bits() != expected[i].to_bits()).collect();
    assert_eq!(c.len(), a.len());
    assert!(
        wrong.is_empty(),
        "{step:?}, {rows} × {columns}: {} elements are wrong, the first at {}",
        wrong.len(),
        wrong[0]
    );
}

#[test]
fn around_every_boundary() {
    lab::open_device().unwrap();
    let sides = [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100];
    for step in Step::ALL {
        for rows in sides {
            for columns in [1, 4, 8, 33, 64, 68] {
                check(step, rows, columns);
            }
        }
    }
}

#[test]
fn large_and_not_square() {
    lab::open_device().unwrap();
    for step in Step::ALL {
        for (rows, columns) in [(1000, 1000), (257, 1023), (1023, 257), (1, 5000), (5000, 1)] {
            check(step, rows, columns);
        }
    }
}

#[test]
fn a_length_that_is_no_matrix_of_that_size_is_an_error() {
    lab::open_device().unwrap();
    let error = transpose(Step::Naive, &[1.0; 5], 2, 3).unwrap_err().to_string();
    assert_eq!(error, "transposing 5 floats as 2 × 3: a matrix of that size has 6");
}

/// Lengths around nothing, one warp and one block.
const LENGTHS: [usize; 7] = [1, 2, 31, 33, 257, 1000, 1023];

#[test]
fn copies_of_every_kind_copy_any_length_and_no_more() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    let scalar = copy_02_scalar::Kernel::load(&context).unwrap();
    let float2 = copy_03_float2::Kernel::load(&context).unwrap();
    let strided = copy_04_strided::Kernel::load(&context).unwrap();
    let offset = copy_05_offset::Kernel::load(&context).unwrap();
    for n in LENGTHS {
        let host = cpu::numbers(7 * n, 1);
        let a = stream.clone_htod(&host).unwrap();
        for kind in 0..4 {
            // One float more, which nobody may touch.
            let mut c = stream.clone_htod(&vec![-1.0f32; n + 1]).unwrap();
            let (len, expected): (u64, Vec<f32>) = (
                n as u64,
                match kind {
                    0 | 1 => host[..n].to_vec(),
                    2 => host.iter().step_by(7).copied().collect(),
                    _ => host[5 * n..6 * n].to_vec(),
                },
            );
            {
                let (a_n, c) = (&a.slice(..n), &mut c.slice_mut(..n));
                match kind {
                    0 => scalar.launch(&stream, copy_02_scalar::Arguments { a: a_n, c, n: len }),
                    1 => float2.launch(&stream, copy_03_float2::Arguments { a: a_n, c, n: len }),
                    2 => strided.launch(
                        &stream,
                        copy_04_strided::Arguments { a: &a, c, n: len, stride: 7 },
                    ),
                    _ => offset.launch(
                        &stream,
                        copy_05_offset::Arguments {
                            a: &a.slice(..6 * n),
                            c,
                            n: len,
                            offset: 5 * len,
                        },
                    ),
                }
                .unwrap();
            }
            let copied = stream.clone_dtoh(&c).unwrap();
            assert_eq!((&copied[..n], copied[n]), (&expected[..], -1.0), "kind {kind}, n = {n}");
        }
    }
}

#[test]
fn particles_move_alike_from_structs_and_from_arrays() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    let of_structs = advance_01_structs::Kernel::load(&context).unwrap();
    let of_arrays = advance_02_arrays::Kernel::load(&context).unwrap();
    for n in LENGTHS {
        let host = cpu::numbers(8 * n, 1);
        let field = |at: usize| host[at..].iter().step_by(8).copied().collect::<Vec<f32>>();
        let (host_x, host_vx) = (field(0), field(3));
        let particles = stream.clone_htod(&host).unwrap();
        let (x, vx) = (stream.clone_htod(&host_x).unwrap(), stream.clone_htod(&host_vx).unwrap());
        let (mut one, mut other) =
            (stream.alloc_zeros::<f32>(n).unwrap(), stream.alloc_zeros::<f32>(n).unwrap());
        let (dt, len) = (0.3, n as u64);
        let moved = &mut one;
        let arguments = advance_01_structs::Arguments { particles: &particles, moved, dt, n: len };
        of_structs.launch(&stream, arguments).unwrap();
        let moved = &mut other;
        let arguments = advance_02_arrays::Arguments { x: &x, vx: &vx, moved, dt, n: len };
        of_arrays.launch(&stream, arguments).unwrap();
        let expected: Vec<f32> =
            host_x.iter().zip(&host_vx).map(|(&x, &vx)| vx.mul_add(dt, x)).collect();
        assert_eq!(stream.clone_dtoh(&one).unwrap(), expected, "structs, n = {n}");
        assert_eq!(stream.clone_dtoh(&other).unwrap(), expected, "arrays, n = {n}");
    }
}

#[test]
fn spreads_are_the_same_wherever_the_values_are_kept() {
    let context = lab::open_device().unwrap();
    let stream = context.default_stream();
    let in_registers = spread_01_registers::Kernel::load(&context).unwrap();
    let in_local = spread_02_local::Kernel::load(&context).unwrap();
    let spilled = spread_03_spilled::Kernel::load(&context).unwrap();
    for n in LENGTHS {
        let host = cpu::numbers(64 * n, 1);
        let expected = cpu::spread(&host, n);
        let a = stream.clone_htod(&host).unwrap();
        let mut results = Vec::new();
        for kind in 0..3 {
            let mut c = stream.alloc_zeros::<f32>(n).unwrap();
            let (a, c_n, n) = (&a, &mut c, n as u64);
            match kind {
                0 => in_registers.launch(&stream, spread_01_registers::Arguments { a, c: c_n, n }),
                1 => in_local.launch(&stream, spread_02_local::Arguments { a, c: c_n, n }),
                _ => spilled.launch(&stream, spread_03_spilled::Arguments { a, c: c_n, n }),
            }
            .unwrap();
            results.push(stream.clone_dtoh(&c).unwrap());
        }
        // The same operations in the same order: the same bits.
        assert_eq!(results[0], results[1], "n = {n}");
        assert_eq!(results[0], results[2], "n = {n}");
        for (sum, expected) in results[0].iter().zip(&expected) {
            // 64 additions, each off by at most 2^-24 of the sum.
            assert!((f64::from(*sum) - expected).abs() <= 1e-5 * expected, "{sum}, not {expected}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_size(rows in 0usize..200, columns in 0usize..200, step in 0usize..7) {
        lab::open_device().unwrap();
        check(Step::ALL[step], rows, columns);
    }
}
