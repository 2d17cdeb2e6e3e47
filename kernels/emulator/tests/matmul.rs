//! Programs with tensor cores, asynchronous copies and `cuda::barrier`, as NVRTC 13.0 compiles them for compute_80 from
//! `ptx/nvrtc/tensor.cu`; and what a program sees that does not wait for its copies.

mod machine;

use emulator::{grid::Stop, module::Level};
use machine::{Gpu, Shape};

const PROGRAMS: &str = include_str!("ptx/nvrtc/tensor.ptx");

/// A matrix of halves that `value` makes of a running number, and its values.
fn halves(count: usize, value: impl Fn(u64) -> f64) -> (Vec<u16>, Vec<f64>) {
    let mut random = 1u64;
    let values = (0..count).map(|_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        value(random >> 40)
    });
    values.map(|value| (half(value), value)).unzip()
}

/// A number that is a normal half.
fn half(value: f64) -> u16 {
    if value == 0.0 {
        return 0;
    }
    let bits = (value as f32).to_bits();
    let found =
        (bits >> 16 & 0x8000) as u16 | ((bits >> 13 & 0x3_FFFF) as u16).wrapping_sub(112 << 10) & 0x7FFF;
    assert_eq!(bits & 0x1FFF, 0, "{value} is no half");
    found
}

/// Runs a product of matrices of 128 rows, 64 columns and `k` = 96, and compares it with one in doubles.
fn check(kernel: &str, shape: Shape, transposed: bool, value: impl Fn(u64) -> f64 + Copy, tolerance: f64) {
    let (m, n, k) = (128, 64, 96);
    let (a, a_values) = halves(m * k, value);
    let (b, b_values) = halves(k * n, value);
    for level in Level::all() {
        let gpu = Gpu::load(PROGRAMS, level).unwrap_or_else(|error| panic!("{error}"));
        let (a, b, c) = (gpu.upload(&a), gpu.upload(&b), gpu.upload(&vec![0f32; m * n]));
        let sizes = [m, n, k].map(|size| (size as u32).to_le_bytes());
        let pointers = [a, b, c].map(u64::to_le_bytes);
        let params: Vec<&[u8]> =
            pointers.iter().map(|bytes| &bytes[..]).chain(sizes.iter().map(|bytes| &bytes[..])).collect();
        gpu.launch(kernel, shape, &params).unwrap_or_else(|stop| panic!("{kernel}: {stop:?}"));
        let found = gpu.download::<f32>(c, m * n);
        for row in 0..m {
            for column in 0..n {
                let terms = (0..k).map(|i| {
                    let b = if transposed { b_values[column * k + i] } else { b_values[i * n + column] };
                    a_values[row * k + i] * b
                });
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                let error = (f64::from(found[row * n + column]) - sum).abs();
                assert!(error <= tolerance * size, "{kernel} at {row}, {column}: {error} off {sum}");
            }
        }
    }
}

/// Small integers, whose sums are exact.
fn integer(random: u64) -> f64 {
    (random % 17) as f64 - 8.0
}

/// Any of 2048 numbers around zero.
fn fraction(random: u64) -> f64 {
    (random % 2048) as f64 / 1024.0 - 1.0
}

// Each of the 96 / 16 sums cuts off less than 18 units of the last of 25 bits.
const TOLERANCE: f64 = 6.0 * 18.0 / (1 << 25) as f64;

#[test]
fn a_product_with_wmma() {
    let shape = Shape::new([2, 8, 1], [64, 1, 1]);
    check("gemm_wmma", shape, true, integer, 0.0);
    check("gemm_wmma", shape, true, fraction, TOLERANCE);
}

#[test]
fn a_product_with_mma_and_asynchronous_copies() {
    let shape = Shape::new([1, 2, 1], [128, 1, 1]);
    check("gemm_mma", shape, false, integer, 0.0);
    check("gemm_mma", shape, false, fraction, TOLERANCE);
}

#[test]
fn a_barrier_counts_copies() {
    let gpu = Gpu::new(PROGRAMS);
    let input: Vec<i32> = (0..3 * 512).collect();
    let (a, b) = (gpu.upload(&input), gpu.upload(&vec![0i32; input.len()]));
    gpu.launch("add_barrier", Shape::new([3, 1, 1], [64, 1, 1]), &[&a.to_le_bytes(), &b.to_le_bytes()])
        .unwrap();
    let expected: Vec<i32> =
        input.chunks(256).flat_map(|part| part.iter().rev().map(|value| value + 1)).collect();
    assert_eq!(gpu.download::<i32>(b, input.len()), expected);
}

/// One kernel that copies 4 bytes a lane, and what stands between that and the load.
fn copy(between: &str) -> Vec<u32> {
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 s[128];\n\
         ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n\
         mov.u32 %r1, %laneid; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2;\n\
         mad.wide.u32 %rd1, %r1, 4, %rd1; mad.wide.u32 %rd2, %r1, 4, %rd2;\n\
         mov.u32 %r4, 7; st.shared.u32 [%r3], %r4;\n\
         cp.async.ca.shared.global [%r3], [%rd1], 4;\n\
         {between}\n\
         ld.shared.u32 %r5, [%r3]; st.global.u32 [%rd2], %r5; ret;\n}}\n"
    );
    let gpu = Gpu::new(&ptx);
    let (input, output) = (gpu.upload(&(100..132u32).collect::<Vec<_>>()), gpu.upload(&[0u32; 32]));
    gpu.launch("k", Shape::new([1; 3], [32, 1, 1]), &[&input.to_le_bytes(), &output.to_le_bytes()]).unwrap();
    gpu.download(output, 32)
}

#[test]
fn who_does_not_wait_sees_old_bytes() {
    let new: Vec<u32> = (100..132).collect();
    assert_eq!(copy(""), [7; 32]);
    assert_eq!(copy("cp.async.commit_group;"), [7; 32]);
    assert_eq!(copy("bar.sync 0;"), [7; 32]);
    assert_eq!(copy("cp.async.commit_group; cp.async.wait_group 1;"), [7; 32]);
    assert_eq!(copy("cp.async.wait_group 0;"), [7; 32], "it waits for groups, and none was committed");
    assert_eq!(copy("cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;"), new);
    assert_eq!(copy("cp.async.commit_group; cp.async.wait_group 0;"), new);
    assert_eq!(copy("cp.async.wait_all;"), new);
}

#[test]
fn what_is_missing_is_named() {
    let load = |line: &str| {
        let ptx = format!(
            ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n\
             .reg .b32 %r<30>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;\n{line}\nret;\n}}\n"
        );
        match Gpu::load(&ptx, Level::host()) {
            Err(emulator::module::LoadError::Unsupported(message)) => message,
            Err(other) => panic!("{line}: {other:?}"),
            Ok(_) => panic!("{line} was loaded"),
        }
    };
    for (line, word) in [
        ("wgmma.fence.sync.aligned;", "wgmma.fence"),
        ("cp.async.bulk.commit_group;", "cp.async.bulk.commit_group"),
        (
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
            "cp.async.bulk.tensor",
        ),
        ("tcgen05.wait::ld.sync.aligned;", "tcgen05"),
        (
            "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, {%f1,%f2,%f3,%f4}, %r5, 0x0;",
            "mma.sp",
        ),
        (
            "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, {%r1,%r2}, {%r3,%r4}, {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};",
            "m8n8k4",
        ),
    ] {
        let message = load(line);
        assert!(message.contains(word) && message.contains("line 6"), "{message}");
    }
}

#[test]
fn misused_mbarriers_are_faults() {
    let run = |body: &str| {
        let ptx = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n\
             .reg .b64 %rd<9>; .shared .align 8 .b64 bar;\n{body}\nret;\n}}\n"
        );
        match Gpu::new(&ptx).launch("k", Shape::new([1; 3], [1; 3]), &[]) {
            Err(Stop::Fault(fault)) => (fault.cuda_error(), fault.to_string()),
            other => panic!("{other:?}"),
        }
    };
    for (body, text) in [
        ("mbarrier.arrive.shared.b64 %rd1, [bar];", "used where none was initialised"),
        ("mbarrier.init.shared.b64 [bar], 0;", "initialised with a count"),
        (
            "mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 %rd1, [bar], 3;",
            "more threads arrive",
        ),
        ("mbarrier.init.shared.b64 [bar+4], 2;", "misaligned"),
    ] {
        let (code, report) = run(body);
        assert!(report.contains(text) && report.contains("PTX      line 6"), "{report}");
        assert_eq!(code, if text == "misaligned" { 716 } else { 719 });
    }
}
