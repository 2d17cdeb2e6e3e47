//! Our own kernels against the CPU's f64 answer, at sizes that are no multiple of anything; the
//! layouts against what BLAS's manual says; and the task. Runs on the GPU if there is one, else on
//! the emulated GPU. No library is needed.

use ch10_libraries::by_hand::{ByHand, DeviceSparse, Images};
use ch10_libraries::data::{CLASSES, Digits, PIXELS, Sparse, sunspots};
use ch10_libraries::device::Device;
use ch10_libraries::digits::{self, Task};
use ch10_libraries::layout::{Sizes, as_the_manual_says};
use ch10_libraries::{cpu, solver};
use proptest::prelude::*;

fn device() -> Device {
    Device::open().unwrap()
}

#[track_caller]
fn check_product(device: &Device, rows: usize, inner: usize, columns: usize) {
    let [a, b] = [cpu::numbers(rows * inner, 1), cpu::numbers(inner * columns, 2)];
    let (on_a, on_b) = (device.copy(&a).unwrap(), device.copy(&b).unwrap());
    let mut c = device.zeros(rows * columns).unwrap();
    let sizes = Sizes { rows, inner, columns };
    ByHand::load(device).unwrap().matmul(sizes, &on_a, &on_b, &mut c).unwrap();
    let error = cpu::error(
        &device.fetch(&c, rows * columns).unwrap(),
        &cpu::product(&a, &b, rows, inner, columns),
    );
    assert!(error < 1e-5, "{sizes:?} is off by {error}");
}

#[test]
fn products_around_every_boundary() {
    let device = device();
    for (rows, inner, columns) in [
        (0, 3, 5),
        (5, 3, 0),
        (1, 1, 1),
        (31, 32, 33),
        (33, 31, 32),
        (1, 1000, 1),
        (65, 1, 64),
        (3, 0, 4),
    ] {
        check_product(&device, rows, inner, columns);
    }
}

#[test]
fn gelu_of_awkward_matrices_and_of_large_numbers() {
    let device = device();
    let hand = ByHand::load(&device).unwrap();
    for (rows, columns) in [(0, 4), (1, 1), (31, 33), (1000, 1), (3, 257)] {
        let (x, bias) = (cpu::numbers(rows * columns, 3), cpu::numbers(columns, 4));
        let mut y = device.zeros(rows * columns).unwrap();
        let (on_x, on_bias) = (device.copy(&x).unwrap(), device.copy(&bias).unwrap());
        hand.gelu(&on_x, &on_bias, &mut y, rows, columns).unwrap();
        let expected: Vec<f64> = x
            .iter()
            .enumerate()
            .map(|(i, &x)| cpu::gelu(f64::from(x) + f64::from(bias[i % columns])))
            .collect();
        let error = cpu::error(&device.fetch(&y, rows * columns).unwrap(), &expected);
        assert!(error < 1e-5, "{rows} × {columns} is off by {error}");
    }
    let x = [-100.0f32, -10.0, -0.0, 0.0, 10.0, 100.0];
    let mut y = device.zeros(6).unwrap();
    let bias = device.zeros(6).unwrap();
    hand.gelu(&device.copy(&x).unwrap(), &bias, &mut y, 1, 6).unwrap();
    assert_eq!(device.fetch(&y, 6).unwrap(), [0.0, 0.0, 0.0, 0.0, 10.0, 100.0]);
}

#[test]
fn sparse_products_with_empty_and_full_rows() {
    let device = device();
    let hand = ByHand::load(&device).unwrap();
    for (rows, inner, columns) in [(1, 1, 1), (33, 31, 7), (100, 3, 257), (7, 1000, 1)] {
        let mut a: Vec<f32> =
            cpu::numbers(rows * inner, 5).into_iter().map(|x| x.max(0.0)).collect();
        // The first row is empty.
        a[..inner].fill(0.0);
        let b = cpu::numbers(inner * columns, 6);
        let sparse = Sparse::compress(&a, inner);
        assert_eq!((sparse.rows(), sparse.offsets[1]), (rows, 0));
        let on_a = DeviceSparse::copy(&device, &sparse).unwrap();
        let mut c = device.zeros(rows * columns).unwrap();
        hand.sparse(&on_a, &device.copy(&b).unwrap(), &mut c, columns).unwrap();
        let found = device.fetch(&c, rows * columns).unwrap();
        let error = cpu::error(&found, &cpu::product(&a, &b, rows, inner, columns));
        assert!(error < 1e-5, "{rows} × {inner} × {columns} is off by {error}");
    }
}

#[test]
fn convolutions_of_awkward_images() {
    let device = device();
    let hand = ByHand::load(&device).unwrap();
    for (images, height, width, filters) in
        [(1, 3, 3, 1), (5, 4, 9, 3), (2, 33, 31, 7), (3, 3, 1000, 2)]
    {
        let shape = Images { images, height, width, filters };
        let (x, weights) = (cpu::numbers(images * height * width, 7), cpu::numbers(9 * filters, 8));
        let mut y = device.zeros(shape.pixels()).unwrap();
        hand.convolution(&device.copy(&x).unwrap(), &device.copy(&weights).unwrap(), &mut y, shape)
            .unwrap();
        let expected = cpu::convolution(&x, &weights, height, width);
        let error = cpu::error(&device.fetch(&y, shape.pixels()).unwrap(), &expected);
        assert!(error < 1e-5, "{shape:?} is off by {error}");
    }
}

#[test]
fn random_numbers_are_those_of_the_cpu_bit_for_bit() {
    let device = device();
    let hand = ByHand::load(&device).unwrap();
    for n in [1, 31, 33, 1000, 4097] {
        let mut c = device.zeros(n).unwrap();
        hand.random(&mut c, n, 42).unwrap();
        let expected: Vec<f32> = (0..n as u64).map(|i| cpu::mixed(42, i)).collect();
        assert_eq!(device.fetch(&c, n).unwrap(), expected);
    }
}

/// What BLAS does with our configurations, by its manual, is the product row by row.
#[test]
fn row_by_row_is_the_transpose_column_by_column() {
    for (rows, inner, columns) in [(1, 1, 1), (2, 3, 4), (5, 1, 3), (7, 33, 2)] {
        let sizes = Sizes { rows, inner, columns };
        let [a, b] = [cpu::numbers(rows * inner, 1), cpu::numbers(inner * columns, 2)];
        let expected = cpu::product(&a, &b, rows, inner, columns);
        let turned = |matrix: &[f32], rows: usize, columns: usize| -> Vec<f32> {
            (0..rows * columns).map(|i| matrix[(i % rows) * columns + i / rows]).collect()
        };
        let (a_turned, b_turned) = (turned(&a, rows, inner), turned(&b, inner, columns));
        for (name, config, first, second) in [
            ("plain", sizes.row_major(1.0, 0.0), &b, &a),
            ("transposed", sizes.row_major_transposed(1.0, 0.0), &b, &a_turned),
            ("by transposed", sizes.row_major_by_transposed(1.0, 0.0), &b_turned, &a),
        ] {
            let mut c = vec![9.0; rows * columns];
            as_the_manual_says(config, first, second, &mut c);
            let error = cpu::error(&c, &expected);
            assert!(error < 1e-5, "{name}, {sizes:?}: off by {error}");
        }
        let mut sum: Vec<f32> = vec![1.0; rows * columns];
        as_the_manual_says(sizes.row_major(2.0, 3.0), &b, &a, &mut sum);
        let expected: Vec<f64> = expected.iter().map(|x| 2.0 * x + 3.0).collect();
        assert!(cpu::error(&sum, &expected) < 1e-5);
    }
}

#[test]
fn the_equations_are_solved_or_refused() {
    let n = 33;
    let g: Vec<f64> = cpu::numbers(n * n, 9).into_iter().map(f64::from).collect();
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            a[i * n + j] = (0..n).map(|k| g[i * n + k] * g[j * n + k]).sum::<f64>();
        }
        a[i * n + i] += 1.0;
    }
    let x: Vec<f64> = cpu::numbers(2 * n, 10).into_iter().map(f64::from).collect();
    let b: Vec<f64> =
        (0..2 * n).map(|i| (0..n).map(|k| a[i / 2 * n + k] * x[2 * k + i % 2]).sum()).collect();
    let found = cpu::solve(&a, &b, n, 2).unwrap();
    assert!(found.iter().zip(&x).all(|(found, x)| (found - x).abs() < 1e-8));
    a[0] = -1.0;
    assert_eq!(cpu::solve(&a, &b, n, 2), None);
}

#[test]
fn a_spectrum_finds_a_wave_and_the_sun() {
    let wave: Vec<f32> =
        (0..100).map(|i| (i as f32 * 0.07 * std::f32::consts::TAU).cos()).collect();
    let spectrum = cpu::spectrum(&wave);
    assert!((spectrum[7] - 50.0).abs() < 1e-3 && spectrum[8] < 1e-3, "{spectrum:?}");
    let spots = sunspots();
    assert_eq!((spots.len(), spots[0], spots[308]), (309, 5.0, 2.9));
}

#[test]
fn the_digits_are_those_of_the_data_set() {
    let digits = Digits::read();
    assert_eq!((digits.len(), digits.pixels.len()), (1797, 1797 * PIXELS));
    assert_eq!(digits.labels[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
    assert_eq!(digits.pixels[2..6], [5.0 / 16.0, 13.0 / 16.0, 9.0 / 16.0, 1.0 / 16.0]);
    assert!(digits.labels.iter().all(|&label| usize::from(label) < CLASSES));
}

#[test]
fn the_task_reads_most_digits_by_hand() {
    let device = device();
    let task = Task::new();
    let (answer, _) = digits::by_hand(&device, &task).unwrap();
    let error = cpu::error(&answer.scores, &task.reference().unwrap());
    assert!(error < digits::TOLERANCE, "off by {error}");
    let accuracy = task.accuracy(&answer.probabilities);
    assert!((92.0..97.0).contains(&accuracy), "{accuracy} %");
    assert!(
        answer
            .probabilities
            .chunks_exact(CLASSES)
            .all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5)
    );
}

/// The emulated GPU never opens a library, and says so; a GPU calls it.
#[test]
fn a_library_is_called_or_the_reason_is_told() {
    let device = device();
    match solver::Solver::open(&device).unwrap() {
        Err(missing) => {
            assert!(missing.to_string().starts_with("cuSOLVER was not called: "), "{missing}")
        }
        Ok(mut solver) => {
            let mut a = device.copy(&[4.0f32, 2.0, 2.0, 5.0]).unwrap();
            let mut b = device.copy(&[8.0f32, 12.0]).unwrap();
            solver.solve(&device, &mut a, &mut b, 2, 1).unwrap();
            assert_eq!(solver.info(&device).unwrap(), [0, 0]);
            let x = device.fetch(&b, 2).unwrap();
            assert!((x[0] - 1.0).abs() < 1e-5 && (x[1] - 2.0).abs() < 1e-5, "{x:?}");
        }
    }
}

#[test]
fn an_error_is_nan_where_a_result_is() {
    assert_eq!(cpu::error(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
    assert!(cpu::error(&[1.0, f32::NAN], &[1.0, 2.0]).is_nan());
    assert!(cpu::error(&[1.0], &[1.0, 2.0]).is_nan());
    assert!((cpu::error(&[1.0, 2.0], &[1.0, 0.0]) - 2.0).abs() < 1e-12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_product(rows in 1usize..80, inner in 1usize..80, columns in 1usize..80) {
        check_product(&device(), rows, inner, columns);
    }
}
