//! The emulated GPU beside ptoxide, the fastest other emulator of PTX that we could measure:
//! `cargo bench --manifest-path tests/peers/emulators/Cargo.toml`.
//!
//! Both execute the same PTX on one thread, ours with its counters on, and both results are compared with the processor's.
//! Elements are thread instructions, as ours counts them. `numba_simulator.py` times Numba's simulator.

#[path = "../../../../kernels/emulator/tests/machine/mod.rs"]
#[allow(missing_docs, reason = "it is a test's")]
mod machine;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use machine::{Gpu, Shape};
use ptoxide::{Argument, Context, LaunchParams};

const KERNELS: &str = include_str!("../../../../kernels/emulator/tests/ptx/bench/kernels.ptx");

/// The PTX of one kernel alone, without its places in the source, and with `add` for `add.rn`, which is the same: ptoxide
/// reads no more.
fn only(name: &str) -> String {
    let start = KERNELS.find(&format!(".visible .entry {name}(")).expect("the kernel is there");
    let stop = start + KERNELS[start..].find("\n}").expect("it ends") + 3;
    let lines = KERNELS[start..stop].lines().filter(|line| !line.trim_start().starts_with(".loc"));
    format!(".version 8.0\n.target sm_75\n.address_size 64\n{}\n", lines.collect::<Vec<_>>().join("\n"))
        .replace("add.rn.f32", "add.f32")
}

fn values(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 20) as f32 / 4096.0)
        .collect()
}

fn compare(
    criterion: &mut Criterion,
    name: &str,
    shape: Shape,
    n: u32,
    floats: usize,
    check: impl Fn(&[f32], &[f32], &[f32]),
) {
    let (a, b) = (values(floats, 1), values(floats, 7));
    let ptx = only(name);

    let gpu = Gpu::new(&ptx);
    let buffers = [gpu.upload(&a), gpu.upload(&b), gpu.upload(&vec![0f32; floats])];
    let ours = || {
        let [a, b, c] = buffers.map(u64::to_le_bytes);
        gpu.launch(name, shape, &[&a, &b, &c, &n.to_le_bytes()]).unwrap_or_else(|stop| panic!("{stop:?}"))
    };
    let instructions = ours().thread_instructions;
    check(&a, &b, &gpu.download(buffers[2], floats));

    let mut context = Context::new_with_module(&ptx).unwrap_or_else(|error| panic!("ptoxide: {error:?}"));
    let theirs = [context.alloc::<f32>(floats), context.alloc(floats), context.alloc(floats)];
    context.write(theirs[0], &a);
    context.write(theirs[1], &b);
    let mut run = || {
        let launch = LaunchParams::func_id(0)
            .grid2d(shape.grid[0], shape.grid[1])
            .block2d(shape.block[0], shape.block[1]);
        let arguments =
            [Argument::ptr(theirs[0]), Argument::ptr(theirs[1]), Argument::ptr(theirs[2]), Argument::U32(n)];
        context.run(launch, &arguments).unwrap_or_else(|error| panic!("ptoxide: {error:?}"));
    };
    run();

    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(instructions));
    group.bench_function("ours", |bencher| bencher.iter(ours));
    group.bench_function("ptoxide", |bencher| bencher.iter(&mut run));
    group.finish();
    let mut result = vec![0f32; floats];
    context.read(theirs[2], &mut result);
    check(&a, &b, &result);
}

fn emulators(criterion: &mut Criterion) {
    let n: u32 = 1 << 20;
    compare(criterion, "vector_add", Shape::new([n / 256, 1, 1], [256, 1, 1]), n, n as usize, |a, b, c| {
        assert!(a.iter().zip(b).zip(c).all(|((a, b), c)| a + b == *c));
    });
    let n = 256usize;
    compare(criterion, "sgemm_tiled", Shape::new([16, 16, 1], [16, 16, 1]), n as u32, n * n, |a, b, c| {
        for row in (0..n).step_by(37) {
            for column in 0..n {
                let sum: f64 = (0..n).map(|k| f64::from(a[row * n + k]) * f64::from(b[k * n + column])).sum();
                // ptoxide rounds twice where the PTX asks for one rounding.
                assert!(
                    (f64::from(c[row * n + column]) - sum).abs() <= 1e-5 * sum.abs(),
                    "row {row}, column {column}"
                );
            }
        }
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    targets = emulators
}
criterion_main!(benches);
