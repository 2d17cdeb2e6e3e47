//! Every step of every ladder against the CPU's f64 answer, at sizes that are no multiple of
//! anything. Runs on the GPU if there is one, else on the emulated GPU.

use ch04_reductions::device::Device;
use ch04_reductions::{cpu, histogram, rows, scan, sum};
use cudarc::driver::LaunchConfig;
use proptest::prelude::*;
use rows::Operation;

fn device() -> Device {
    Device::open().unwrap()
}

#[track_caller]
fn check_sum(device: &Device, step: sum::Step, a: &[f32]) {
    let (found, expected) = (f64::from(sum::sum(device, step, a).unwrap()), cpu::sum(a));
    let error = (found - expected).abs();
    let allowed = step.tolerance(a.len()) * expected;
    assert!(error <= allowed, "{step:?}, n = {}: {found} instead of {expected}", a.len());
}

#[track_caller]
fn check_scan(device: &Device, step: scan::Step, a: &[f32]) {
    let c = scan::scan(device, step, a).unwrap();
    assert_eq!(c.len(), a.len());
    assert_eq!(scan::first_wrong(a, &c), None, "{step:?}, n = {}", a.len());
}

#[track_caller]
fn check_rows(
    device: &Device,
    operation: Operation,
    step: rows::Step,
    rows: usize,
    columns: usize,
) {
    let x = rows::random_rows(rows, columns);
    let y = rows::apply(device, operation, step, &x, rows, columns).unwrap();
    assert_eq!(y.len(), x.len());
    let wrong = rows::first_wrong(operation, &x, &y, columns);
    assert_eq!(wrong, None, "{operation:?}, {step:?}, {rows} rows of {columns} columns");
}

#[test]
fn sums_around_every_boundary() {
    let device = device();
    for step in sum::Step::ALL {
        for n in [0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 511, 513, 1000, 4095, 4097, 65_535, 65_537]
        {
            check_sum(&device, step, &cpu::numbers(n, 3));
        }
    }
}

#[test]
fn a_sum_of_more_than_one_round_of_all_blocks() {
    let device = device();
    let blocks = 4 * device.multiprocessors as usize;
    let n = blocks * 512 * 16 + 4 * 512 + 5;
    check_sum(&device, sum::Step::OnePass, &cpu::numbers(n.min(1 << 23), 4));
}

#[test]
fn one_pass_can_be_launched_again_and_again() {
    let device = device();
    let a = cpu::numbers(10_007, 5);
    let summer = sum::Summer::load(&device, sum::Step::OnePass).unwrap();
    let memory = device.copy(&a).unwrap();
    let mut scratch = summer.scratch(&device, a.len()).unwrap();
    let mut sums = [0.0; 3];
    for sum in &mut sums {
        summer.enqueue(&device, &memory, a.len(), &mut scratch).unwrap();
        *sum = summer.result(&device, &scratch).unwrap();
    }
    assert_eq!(sums, [sums[0]; 3]);
}

#[test]
fn infinities_and_nan_pass_through_a_sum() {
    let device = device();
    for step in sum::Step::ALL {
        let mut a = cpu::numbers(1000, 6);
        a[777] = f32::INFINITY;
        assert_eq!(sum::sum(&device, step, &a).unwrap(), f32::INFINITY, "{step:?}");
        a[3] = f32::NAN;
        assert!(sum::sum(&device, step, &a).unwrap().is_nan(), "{step:?}");
    }
}

#[test]
fn histograms_around_every_boundary() {
    let device = device();
    for step in histogram::Step::ALL {
        for n in [0, 1, 15, 16, 17, 31, 33, 511, 513, 1000, 16_383, 16_385, 65_537, 300_001] {
            for a in [cpu::bytes(n, 7), vec![255; n], (0..n).map(|i| (i / 20) as u8).collect()] {
                let bins = histogram::histogram(&device, step, &a).unwrap();
                assert_eq!(bins, cpu::histogram(&a), "{step:?}, n = {n}");
            }
        }
    }
}

#[test]
fn scans_around_every_boundary() {
    let device = device();
    for step in scan::Step::ALL {
        for n in [0, 1, 2, 3, 31, 33, 127, 129, 1000, 1023, 1025, 4095, 4097, 8191, 8193, 65_537] {
            check_scan(&device, step, &cpu::numbers(n, 8));
        }
    }
}

#[test]
fn a_look_back_over_more_than_one_window_of_tiles() {
    let device = device();
    for step in [scan::Step::LookBack, scan::Step::PublishFirst] {
        check_scan(&device, step, &cpu::numbers(8192 * 70 + 3, 9));
    }
}

/// Whether a search goes far depends on who runs when. So the last tile runs alone here, and finds
/// what 70 tiles before it have published: their own sums, and only the first one more.
macro_rules! check_far_look_back {
    ($device:ident, $name:ident) => {{
        const TILES: usize = 71;
        const SUM_OF_TILE: u64 = 1 << 32;
        const SUM_UP_TO_HERE: u64 = 2 << 32;
        let n = TILES * 8192;
        let mut state = vec![TILES as u64 - 1]; // the next ticket
        state.push(SUM_UP_TO_HERE | u64::from(1f32.to_bits()));
        state.extend((2..TILES).map(|_| SUM_OF_TILE | u64::from(1f32.to_bits())));
        state.push(0);
        let (a, mut state) = ($device.copy(&vec![1f32; n]).unwrap(), $device.copy(&state).unwrap());
        let mut c = $device.zeros::<f32>(n).unwrap();
        let kernel = kernels::$name::Kernel::load(&$device.context).unwrap();
        let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 0 };
        let arguments =
            kernels::$name::Arguments { a: &a, c: &mut c, state: &mut state, n: n as u64 };
        // SAFETY: blocks of 128 threads, as the kernel wants them; the only one takes the last tile.
        unsafe { kernel.launch_with(&$device.stream, config, arguments).unwrap() };
        let c = $device.fetch(&c, n).unwrap();
        let before = (TILES - 1) as f32;
        let expected: Vec<f32> = (1..=8192).map(|i| before + i as f32).collect();
        assert!(c[n - 8192..] == expected, "begins with {:?}", &c[n - 8192..][..4]);
        let state = $device.fetch(&state, TILES + 1).unwrap();
        assert_eq!(state[TILES], SUM_UP_TO_HERE | u64::from((before + 8192.0).to_bits()));
    }};
}

#[test]
fn a_search_that_goes_far_back() {
    let device = device();
    check_far_look_back!(device, scan_04_look_back);
    check_far_look_back!(device, scan_05_publish_first);
}

#[test]
fn rows_of_awkward_lengths() {
    let device = device();
    for operation in [Operation::Softmax, Operation::LayerNorm] {
        for step in rows::Step::ALL {
            for (rows, columns) in [
                (0, 5),
                (1, 1),
                (2, 2),
                (3, 3),
                (17, 31),
                (8, 32),
                (9, 33),
                (1, 127),
                (2, 128),
                (5, 1000),
                (3, 1001),
                (1, 1024),
            ] {
                check_rows(&device, operation, step, rows, columns);
            }
            if step != rows::Step::Warp {
                for columns in [1025, 4093, 4096] {
                    check_rows(&device, operation, step, 2, columns);
                }
            }
        }
    }
    check_rows(&device, Operation::Softmax, rows::Step::Online, 1, 10_007);
    check_rows(&device, Operation::LayerNorm, rows::Step::ThreePasses, 1, 10_007);
}

#[test]
fn rows_that_are_too_long_are_refused() {
    let device = device();
    for (step, columns) in [(rows::Step::Registers, 4097), (rows::Step::Warp, 1025)] {
        let x = rows::random_rows(1, columns);
        let error = rows::apply(&device, Operation::Softmax, step, &x, 1, columns).unwrap_err();
        let wanted = format!("`columns` is {columns}, and this kernel is right up to");
        assert!(error.to_string().contains(&wanted), "{error}");
    }
}

#[test]
fn softmax_treats_special_numbers_as_the_reference_does() {
    let device = device();
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let mut long = vec![-inf; 300];
    long[299] = 2.0;
    let cases = [vec![-inf; 5], long, vec![1.0, inf, 0.0], vec![nan; 1], vec![3e38, -3e38, 3e38]];
    for step in rows::Step::ALL {
        for x in &cases {
            let y = rows::apply(&device, Operation::Softmax, step, x, 1, x.len()).unwrap();
            let wrong = rows::first_wrong(Operation::Softmax, x, &y, x.len());
            assert_eq!(wrong, None, "{step:?} makes {y:?} of {x:?}");
        }
    }
}

#[test]
fn layer_norm_keeps_the_variance_of_a_row_far_from_zero() {
    let device = device();
    let x: Vec<f32> = (0..1000).map(|i| 10_000.0 + (i % 7) as f32).collect();
    for step in rows::Step::ALL {
        let y = rows::apply(&device, Operation::LayerNorm, step, &x, 1, 1000).unwrap();
        assert_eq!(rows::first_wrong(Operation::LayerNorm, &x, &y, 1000), None, "{step:?}");
    }
}

#[test]
fn a_wrong_element_is_found() {
    let a = cpu::numbers(100, 1);
    let mut c: Vec<f32> = cpu::scan(&a).into_iter().map(|x| x as f32).collect();
    assert_eq!(scan::first_wrong(&a, &c), None);
    c[57] *= 1.0001;
    assert_eq!(scan::first_wrong(&a, &c), Some(57));
    c[3] = f32::NAN;
    assert_eq!(scan::first_wrong(&a, &c), Some(3));

    let mut y: Vec<f32> = cpu::softmax(&a[..10]).into_iter().map(|x| x as f32).collect();
    assert_eq!(rows::first_wrong(Operation::Softmax, &a[..10], &y, 10), None);
    y[4] = f32::NAN;
    assert_eq!(rows::first_wrong(Operation::Softmax, &a[..10], &y, 10), Some(4));
}

#[test]
fn orders_of_additions_agree_where_nothing_is_rounded() {
    let a: Vec<f32> = (1..=1000).map(|i| i as f32).collect();
    for sum in [cpu::serial, cpu::blocked, cpu::tree, cpu::compensated] {
        assert_eq!(sum(&a), 500_500.0);
        assert_eq!(sum(&[]), 0.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_size(n in 0usize..20_000) {
        let device = device();
        let a = cpu::numbers(n, 10);
        sum::Step::ALL.into_iter().for_each(|step| check_sum(&device, step, &a));
        scan::Step::ALL.into_iter().for_each(|step| check_scan(&device, step, &a));
    }

    #[test]
    fn any_rows(rows in 0usize..20, columns in 1usize..1024, step in 0usize..4) {
        let device = device();
        for operation in [Operation::Softmax, Operation::LayerNorm] {
            check_rows(&device, operation, rows::Step::ALL[step], rows, columns);
        }
    }
}
