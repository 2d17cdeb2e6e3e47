//! Kernels from a real compiler, from loading to results.

mod machine;

use emulator::{module::Level, settings::Checks};
use machine::{Gpu, Shape};

const KERNELS: &str = include_str!("ptx/bench/kernels.ptx");

#[test]
fn vector_add() {
    for n in [1usize, 31, 33, 1000] {
        let gpu = checked(KERNELS);
        let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
        let (a, b, c) = (gpu.upload(&a), gpu.upload(&b), gpu.upload(&vec![0f32; n]));
        let blocks = n.div_ceil(256) as u32;
        let params = [&a.to_le_bytes()[..], &b.to_le_bytes(), &c.to_le_bytes(), &(n as i32).to_le_bytes()];
        let counters = gpu.launch("vector_add", Shape::new([blocks, 1, 1], [256, 1, 1]), &params).unwrap();
        assert_eq!(gpu.download::<f32>(c, n), (0..n).map(|i| 1.5 * i as f32).collect::<Vec<_>>());
        assert_eq!(counters.global_store.sectors, n.div_ceil(8) as u64);
    }
}

/// With all checks on: these kernels do nothing wrong.
fn checked(ptx: &str) -> Gpu {
    Gpu::load_with(ptx, Level::host(), Checks::ALL).unwrap_or_else(|error| panic!("{error}"))
}

const BASIC: &str = include_str!("ptx/nvrtc/basic.ptx");

fn bytes<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: `T` is a number, so all its bytes are initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A fixed sequence of numbers in 0..1.
fn noise(count: usize) -> Vec<f32> {
    let mut state = 1u32;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        })
        .collect()
}

#[test]
fn matrices() {
    let n = 97usize;
    let gpu = checked(BASIC);
    let (a, b) = (noise(n * n), noise(2 * n * n)[n * n..].to_vec());
    let (pa, pb, pc) = (gpu.upload(&a), gpu.upload(&b), gpu.upload(&vec![0f32; n * n]));
    let blocks = n.div_ceil(16) as u32;
    let shape = Shape::new([blocks, blocks, 1], [16, 16, 1]);
    gpu.launch("sgemm_tiled", shape, &[bytes(&pa), bytes(&pb), bytes(&pc), bytes(&(n as i32))]).unwrap();
    let c = gpu.download::<f32>(pc, n * n);
    for row in 0..n {
        for column in 0..n {
            let mut sum = 0f32;
            for k in 0..n {
                sum = a[row * n + k].mul_add(b[k * n + column], sum);
            }
            // Tiles behind the edge add products of zeros, which change nothing.
            assert_eq!(c[row * n + column], sum);
        }
    }
    let (w, h) = (50usize, 71usize);
    let input = noise(w * h);
    let (pa, pb) = (gpu.upload(&input), gpu.upload(&vec![0f32; w * h]));
    let shape = Shape::new([w.div_ceil(32) as u32, h.div_ceil(32) as u32, 1], [32, 8, 1]);
    let counters = gpu
        .launch("transpose", shape, &[bytes(&pa), bytes(&pb), bytes(&(w as i32)), bytes(&(h as i32))])
        .unwrap();
    let output = gpu.download::<f32>(pb, w * h);
    assert!((0..w * h).all(|i| output[i % w * h + i / w] == input[i]));
    assert_eq!(counters.shared_load.bank_conflicts, 0, "the tile is padded");
}

#[test]
fn reductions() {
    let n = 10_000usize;
    let gpu = checked(BASIC);
    let input: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
    let (a, out) = (gpu.upload(&input), gpu.upload(&[0f32]));
    gpu.launch("reduce", Shape::new([5, 1, 1], [256, 1, 1]), &[bytes(&a), bytes(&out), bytes(&(n as i32))])
        .unwrap();
    assert_eq!(gpu.download::<f32>(out, 1)[0], input.iter().sum::<f32>());

    let input: Vec<u8> = (0..n).map(|i| (i * i / 7) as u8).collect();
    let (a, bins) = (gpu.upload(&input), gpu.upload(&[0u32; 256]));
    gpu.launch(
        "histogram",
        Shape::new([3, 1, 1], [128, 1, 1]),
        &[bytes(&a), bytes(&bins), bytes(&(n as i32))],
    )
    .unwrap();
    let mut expected = vec![0u32; 256];
    input.iter().for_each(|&byte| expected[byte as usize] += 1);
    assert_eq!(gpu.download::<u32>(bins, 256), expected);
}

#[test]
fn mandelbrot() {
    let (w, h, limit) = (70usize, 50usize, 100);
    let gpu = checked(BASIC);
    let out = gpu.upload(&vec![0i32; w * h]);
    let shape = Shape::new([w.div_ceil(16) as u32, h.div_ceil(8) as u32, 1], [16, 8, 1]);
    let counters = gpu
        .launch("mandelbrot", shape, &[bytes(&out), bytes(&(w as i32)), bytes(&(h as i32)), bytes(&limit)])
        .unwrap();
    let found = gpu.download::<i32>(out, w * h);
    for (index, &found) in found.iter().enumerate() {
        let cx = -2.0f32 + 3.0 * (index % w) as f32 / w as f32;
        let cy = -1.5f32 + 3.0 * (index / w) as f32 / h as f32;
        let (mut x, mut y, mut i) = (0f32, 0f32, 0);
        while i < limit && x * x + y * y <= 4.0 {
            (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
            i += 1;
        }
        assert_eq!(found, i, "pixel {index}");
    }
    assert!(counters.branches_divergent > 0);
}

#[test]
fn mathematics() {
    let n = 200usize;
    let gpu = checked(BASIC);
    let x: Vec<f32> = noise(n).iter().enumerate().map(|(i, x)| x * [1.0, 20.0, 1e4, 1e9][i % 4]).collect();
    let y: Vec<f32> = noise(2 * n)[n..].iter().map(|y| y * 3.0 + 0.1).collect();
    let (px, py) = (gpu.upload(&x), gpu.upload(&y));
    let (single, double) = (gpu.upload(&vec![0f32; n * 20]), gpu.upload(&vec![0f64; n * 8]));
    let shape = Shape::new([n.div_ceil(64) as u32, 1, 1], [64, 1, 1]);
    gpu.launch("math", shape, &[bytes(&px), bytes(&py), bytes(&single), bytes(&double), bytes(&(n as i32))])
        .unwrap();
    let (single, double) = (gpu.download::<f32>(single, n * 20), gpu.download::<f64>(double, n * 8));
    for i in 0..n {
        let (a, b) = (f64::from(x[i]), f64::from(y[i]));
        // CUDA's documented errors, in units of the last place.
        let expected: [(&str, f64, f64); 15] = [
            ("exp", a.exp(), 2.0),
            ("sin", a.sin(), 2.0),
            ("log", a.ln(), 2.0),
            ("pow", a.powf(b), 8.0),
            ("sqrt", a.sqrt(), 0.5),
            ("div", a / b, 0.5),
            ("cos", a.cos(), 2.0),
            ("tanh", a.tanh(), 2.0),
            ("rsqrt", 1.0 / a.sqrt(), 2.0),
            ("fma", f64::from(x[i].mul_add(y[i], 1.0)), 0.0),
            ("floor", a.floor(), 0.0),
            ("fmod", a % b, 0.0),
            ("erf", libm_erf(a), 4.0),
            ("__expf", a.exp(), 2.0 + (1.173 * a).abs().floor()),
            ("__fdividef", a / b, 2.0),
        ];
        for (index, (name, expected, ulps)) in expected.into_iter().enumerate() {
            let found = single[i * 20 + index];
            let expected_single = expected as f32;
            let ulp =
                f64::from((expected_single.abs().next_up() - expected_single.abs()).max(f32::from_bits(1)));
            let error = (f64::from(found) - expected).abs() / ulp;
            let overflow = expected_single.is_infinite() && found.is_infinite();
            assert!(
                overflow || error <= ulps + 0.5,
                "{name}({a}, {b}) = {found}, not {expected}: {error} ulp"
            );
        }
        let expected = [
            a.exp(),
            a.sin(),
            a.ln(),
            a.powf(b),
            a.sqrt(),
            a / b,
            (1e10 * f64::from(x[i])).cos(),
            a.mul_add(b, 1.0),
        ];
        for (index, expected) in expected.into_iter().enumerate() {
            let found = double[i * 8 + index];
            let error = (found - expected).abs() / (expected.abs().next_up() - expected.abs());
            assert!(
                found == expected || error <= 3.0,
                "f64 {index}({a}, {b}) = {found}, not {expected}: {error} ulp"
            );
        }
    }
}

/// The error function, by its series and its continued fraction.
fn libm_erf(x: f64) -> f64 {
    if x > 3.0 {
        return 1.0
            - (-x * x).exp() / (x * std::f64::consts::PI.sqrt()) * (1.0 - 0.5 / (x * x) + 0.75 / x.powi(4));
    }
    let (mut sum, mut term) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn miscellany() {
    let n = 96usize;
    let gpu = checked(BASIC);
    let input: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9E37_79B9) ^ i).chain([0]).collect();
    let (o, p) = (gpu.upload(&input), gpu.upload(&vec![0i64; n * 16]));
    let counters =
        gpu.launch("misc", Shape::new([1, 1, 1], [96, 1, 1]), &[bytes(&o), bytes(&p), bytes(&(n as i32))]);
    counters.unwrap();
    let found = gpu.download::<i64>(p, n * 16);
    for i in 0..n {
        let u = input[i];
        let n = i as u32;
        let row = &found[i * 16..][..16];
        assert_eq!(row[0], i64::from(u.count_ones()));
        assert_eq!(row[1], i64::from(u.leading_zeros()));
        assert_eq!(row[2], i64::from(u.reverse_bits()));
        assert_eq!(row[3], i64::from(if u == 0 { 0 } else { u.trailing_zeros() + 1 }));
        assert_eq!(row[5], (i64::from(u as i32) * i as i64) >> 32);
        assert_eq!(row[6], ((u128::from(u) * (u128::from(u) << 32)) >> 64) as i64);
        assert_eq!(row[7], i64::from(u / (n + 1)));
        assert_eq!(row[8], i64::from(u) % (i as i64 + 7));
        assert_eq!(row[9], i64::from((((u64::from(n) << 32 | u64::from(u)) << (n & 31)) >> 32) as u32));
        assert_eq!(row[11], i64::from((u as i32).min(n as i32)));
        let warp = i / 32 * 32;
        let ballot =
            (0..32).filter(|lane| input[warp + lane] & 1 != 0).fold(0u32, |mask, lane| mask | 1 << lane);
        assert_eq!(row[12], i64::from(ballot));
        let same =
            (0..32).filter(|lane| (warp + lane) % 5 == i % 5).fold(0u32, |mask, lane| mask | 1 << lane);
        assert_eq!(row[13], i64::from(same));
        assert_eq!(row[14], [3, 7, 10, 14][i % 4]);
        assert_eq!(row[15], 0xFFFF_FFFF);
    }
    assert_eq!(gpu.download::<u32>(o, n + 1)[n], n as u32, "every thread has had the lock");
    assert_eq!(gpu.printed(), "hello 0 1.500000 world 1099511627776\n");
}

#[test]
fn calls_and_switches() {
    let gpu = checked(BASIC);
    let out = gpu.upload(&[0i32; 64]);
    gpu.launch("recurse", Shape::new([1, 1, 1], [64, 1, 1]), &[bytes(&out)]).unwrap();
    let fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34];
    assert_eq!(gpu.download::<i32>(out, 64), (0..64).map(|i| fib[i % 10]).collect::<Vec<_>>());

    let input: Vec<i32> = (0..64).map(|i| i % 9).collect();
    let out = gpu.upload(&input);
    gpu.launch("sw", Shape::new([1, 1, 1], [64, 1, 1]), &[bytes(&out)]).unwrap();
    let expected = [5, 7, 13, 11, -1, 20, 3, 12, 8];
    assert_eq!(gpu.download::<i32>(out, 64), (0..64).map(|i| expected[i % 9]).collect::<Vec<_>>());

    let out = gpu.upload(&noise(64));
    let shape = Shape { shared: 256, ..Shape::new([1, 1, 1], [64, 1, 1]) };
    gpu.launch("dyn", shape, &[bytes(&out), bytes(&64i32)]).unwrap();
    assert_eq!(gpu.download::<f32>(out, 64), noise(64).into_iter().rev().collect::<Vec<_>>());
}
