//! cuRAND: random numbers.

use anyhow::{Context, Result, ensure};
use cudarc::curand::{CudaRng, result, sys};
use cudarc::driver::{CudaSlice, DevicePtrMut};
use lab::libraries::{Missing, ask};
use lab::timing::Timing;
use lab::{Cell, Table, row, timing};

use crate::by_hand::ByHand;
use crate::cpu;
use crate::device::Device;
use crate::outcome::{Call, Outcome};

const FUNCTIONS: [&str; 6] = [
    "curandCreateGenerator",
    "curandDestroyGenerator",
    "curandSetStream",
    "curandSetPseudoRandomGeneratorSeed",
    "curandGenerateUniform",
    "curandGenerateNormal",
];

/// Opens cuRAND with a seed.
pub fn open(device: &Device, seed: u64) -> Result<Result<CudaRng, Missing>> {
    if let Err(missing) = ask("cuRAND", &FUNCTIONS) {
        return Ok(Err(missing));
    }
    Ok(Ok(CudaRng::new(seed, device.stream.clone()).context("opening cuRAND")?))
}

/// Mean and variance.
pub fn moments(numbers: &[f32]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().copied().map(f64::from).sum::<f64>() / n;
    let variance = numbers.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

/// How far mean and variance of numbers are from those of the interval from 0 to 1, 1/2 and 1/12,
/// in units of what chance makes of so many numbers.
fn strangeness(numbers: &[f32]) -> f64 {
    let (mean, variance) = moments(numbers);
    let n = numbers.len() as f64;
    // The standard deviations of both over samples of n numbers: √(1/12n), √(1/180n).
    let of_mean = (mean - 0.5).abs() * (12.0 * n).sqrt();
    let of_variance = (variance - 1.0 / 12.0).abs() * (180.0 * n).sqrt();
    of_mean.max(of_variance)
}

/// Uniform numbers by hand and by cuRAND. The error is that of the mean.
pub fn outcome(cell: &Cell, device: &Device, hand: &ByHand<'_>) -> Result<Outcome> {
    let n = cell.largest(cell.parameter("random")?);
    let checked = n.min(1 << 22);
    let mut c = device.zeros::<f32>(n)?;
    let time = timing::device(device.raw_stream(), |_| hand.random(&mut c, n, 1))?;
    let numbers = device.fetch(&c, checked)?;
    let wrong = numbers.iter().zip(0..).find(|&(&found, i)| found != cpu::mixed(1, i));
    ensure!(wrong.is_none(), "a random number by hand is not the CPU's: {wrong:?}");
    let hand_error = (moments(&numbers).0 - 0.5).abs();
    ensure!(strangeness(&numbers) < 6.0, "the numbers by hand are not uniform");
    let call = match open(device, 1)? {
        Err(missing) => Err(missing),
        Ok(random) => {
            let fill = |c: &mut CudaSlice<f32>| {
                random.fill_with_uniform(c).context("calling curandGenerateUniform")
            };
            let time = timing::device(device.raw_stream(), |_| fill(&mut c))?;
            let numbers = device.fetch(&c, checked)?;
            ensure!(strangeness(&numbers) < 6.0, "the numbers of cuRAND are not uniform");
            Ok(Call { time, error: (moments(&numbers).0 - 0.5).abs() })
        }
    };
    Ok(Outcome {
        what: "random numbers",
        library: "cuRAND",
        by_hand: "a mixing function",
        hand: time,
        hand_error,
        call,
    })
}

/// A generator of another kind, which cudarc's safe layer does not make.
struct Generator(sys::curandGenerator_t);

impl Generator {
    fn new(device: &Device, kind: sys::curandRngType_t, seed: u64) -> Result<Self> {
        let generator = Self(result::create_generator_kind(kind).context("opening cuRAND")?);
        // SAFETY: the generator was made above, and the stream is alive as long as the device.
        unsafe {
            result::set_stream(generator.0, device.stream.cu_stream().cast())?;
            result::set_seed(generator.0, seed)?;
        }
        Ok(generator)
    }

    fn fill(&self, device: &Device, c: &mut CudaSlice<f32>) -> Result<()> {
        let n = c.len();
        let (c, _c) = c.device_ptr_mut(&device.stream);
        // SAFETY: there is room for `n` floats, which the guard keeps until the work is enqueued.
        unsafe { result::UniformFill::fill(self.0, c as *mut f32, n) }
            .context("calling curandGenerateUniform")
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // SAFETY: it came from `new` and is destroyed only here.
        let _ = unsafe { result::destroy_generator(self.0) };
    }
}

/// Random numbers in both ways.
pub fn random(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let first: Vec<String> = (0..4).map(|i| format!("{:.7}", cpu::mixed(1, i))).collect();
    let mut on_device = device.zeros::<f32>(4)?;
    ByHand::load(&device)?.random(&mut on_device, 4, 1)?;
    let found: Vec<String> =
        device.fetch(&on_device, 4)?.iter().map(|number| format!("{number:.7}")).collect();
    ensure!(found == first, "the kernel makes {found:?} and the CPU {first:?}");
    cell.text(format!("the first four of seed 1, by hand: {}", first.join("  ")));
    let outcome = outcome(cell, &device, &ByHand::load(&device)?)?;
    outcome.tell(cell);
    if outcome.call.is_err() {
        return Ok(());
    }

    let mut c = device.zeros::<f32>(cell.largest(cell.parameter("random")?))?;
    let mut table = Table::new("kinds").measured("kind", "").measured("time", "s");
    use sys::curandRngType_t as Kind;
    for (name, kind) in [
        ("XORWOW", Kind::CURAND_RNG_PSEUDO_XORWOW),
        ("Philox4x32-10", Kind::CURAND_RNG_PSEUDO_PHILOX4_32_10),
        ("MRG32k3a", Kind::CURAND_RNG_PSEUDO_MRG32K3A),
    ] {
        let generator = Generator::new(&device, kind, 1)?;
        let time = timing::device(device.raw_stream(), |_| generator.fill(&device, &mut c))?;
        ensure!(strangeness(&device.fetch(&c, 1 << 20)?) < 6.0, "{name} is not uniform");
        table.push(row![name, time.map(Timing::seconds)]);
    }
    cell.table(table);
    Ok(())
}
