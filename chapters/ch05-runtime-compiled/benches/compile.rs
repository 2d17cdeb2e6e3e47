//! `cargo bench -p ch05-runtime-compiled`: what it costs to compile a kernel, and to take it from the cache. Times of the
//! CPU, which need NVRTC and no GPU.

use ch05_runtime_compiled::cache::Cache;
use ch05_runtime_compiled::nvrtc::{self, Source, Target};
use ch05_runtime_compiled::polynomial::{Knows, TEMPLATE};
use criterion::Criterion;

fn main() -> anyhow::Result<()> {
    if let Some(missing) = nvrtc::missing() {
        println!("{missing}");
        return Ok(());
    }
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let mut group = criterion.benchmark_group("compile");
    for knows in Knows::ALL {
        let source = knows.source(&ch05_runtime_compiled::cpu::exponential(24));
        for target in [Target::Ptx(75), Target::Cubin(75)] {
            nvrtc::compile(&source, target)?;
            group.bench_function(format!("{}, {target:?}", knows.name()), |bencher| {
                bencher.iter(|| nvrtc::compile(&source, target));
            });
        }
    }
    let folder = tempfile::tempdir()?;
    let cache = Cache::new(folder.path());
    let source = Source {
        file: "polynomial.cu",
        text: TEMPLATE,
        instances: vec!["polynomial<float, 24>"],
        ..Source::default()
    };
    cache.get(&source, Target::Ptx(75))?;
    group.bench_function("from the cache", |bencher| {
        bencher.iter(|| cache.get(&source, Target::Ptx(75)))
    });
    group.finish();
    Ok(())
}
