//! `cargo bench -p ch10-libraries`: the product over size, by hand and by cuBLAS, timed by CUDA
//! events.
//!
//! Without a GPU there is nothing to time, and the bench says so.

use std::time::Duration;

use ch10_libraries::blas::{Blas, Factors};
use ch10_libraries::by_hand::ByHand;
use ch10_libraries::device::Device;
use ch10_libraries::layout::Sizes;
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    if lab::timing::device(device.raw_stream(), |_| Ok(()))?.is_none() {
        println!("No times were taken: criterion's figures need a GPU, and there is none.");
        return Ok(());
    }
    let hand = ByHand::load(&device)?;
    let blas = match Blas::open(&device)? {
        Ok(blas) => Some(blas),
        Err(missing) => {
            println!("{missing}.");
            None
        }
    };
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("libraries");
    group
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .sample_size(20);
    for side in [256, 1024, 4096] {
        let sizes = Sizes::square(side);
        let factors = Factors::new(&device, sizes)?;
        let mut c = device.zeros::<f32>(side * side)?;
        group.throughput(Throughput::Elements(sizes.operations() as u64));
        let mut ways: Vec<&str> = vec!["tiled kernel"];
        ways.extend(blas.as_ref().map(|_| "cuBLAS"));
        for way in ways {
            group.bench_function(BenchmarkId::new(way, side), |bencher| {
                bencher.iter_custom(|products| {
                    let elapsed = lab::timing::between_events(device.raw_stream(), || {
                        (0..products).try_for_each(|_| match &blas {
                            Some(blas) if way == "cuBLAS" => {
                                blas.product(sizes, &factors.a, &factors.b, &mut c)
                            }
                            _ => hand.matmul(sizes, &factors.a, &factors.b, &mut c),
                        })
                    });
                    elapsed.expect("the product was enqueued the same way before, in the warm-up")
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
