//! Multiply-adds a second of processor time on one host thread: `cargo bench -p emulator --bench tensor`.

#[path = "../tests/machine/mod.rs"]
mod machine;

use emulator::module::Level;
use machine::{Gpu, Shape};

/// Instructions of one loop, of which there are `LOOPS`.
const UNROLLED: u64 = 8;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--test");
    let loops: u64 = if quick { 1 } else { 2000 };
    println!("10^9 multiply-adds a second, best of 5");
    for (instruction, [a, b, c], adds) in [
        ("m16n8k16.row.col.f32.f16.f16.f32", [4, 2, 4], 2048),
        ("m16n8k16.row.col.f16.f16.f16.f16", [4, 2, 2], 2048),
        ("m16n8k16.row.col.f32.bf16.bf16.f32", [4, 2, 4], 2048),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", [4, 2, 4], 1024),
        ("m16n8k32.row.col.f32.e4m3.e4m3.f32", [4, 2, 4], 4096),
        ("m16n8k32.row.col.s32.s8.s8.s32", [4, 2, 4], 4096),
        ("m16n8k256.row.col.s32.b1.b1.s32.and.popc", [4, 2, 4], 32768),
    ] {
        let list = |name: &str, count: usize| {
            let names: Vec<_> = (0..count).map(|number| format!("%{name}{number}")).collect();
            format!("{{{}}}", names.join(","))
        };
        let line = format!(
            "mma.sync.aligned.{instruction} {c}, {}, {}, {c};\n",
            list("a", a),
            list("b", b),
            c = list("c", c)
        );
        let ptx = format!(
            ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n\
             .reg .b32 %a<8>, %b<8>, %c<8>, %i; .reg .pred %p;\nmov.u32 %i, 0;\nL:\n{}\
             add.u32 %i, %i, 1; setp.lt.u32 %p, %i, {loops}; @%p bra L; ret;\n}}\n",
            line.repeat(UNROLLED as usize)
        );
        for level in Level::all().into_iter().rev() {
            let gpu = Gpu::load(&ptx, level).unwrap_or_else(|error| panic!("{error}"));
            let rates = (0..if quick { 1 } else { 5 }).map(|_| {
                let start = processor_seconds();
                gpu.launch("k", Shape::new([1; 3], [32, 1, 1]), &[]).unwrap();
                (loops * UNROLLED * adds) as f64 / (processor_seconds() - start) / 1e9
            });
            println!("{instruction:<42} {:<9} {:>6.2}", format!("{level:?}"), rates.fold(0.0, f64::max));
        }
    }
}

/// What this process has used of all processors so far.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is its to write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
