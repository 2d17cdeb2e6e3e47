//! cuBLAS: the product of two matrices, and of many.

use anyhow::{Context, Result, ensure};
use cudarc::cublas::{CudaBlas, Gemm, StridedBatchedConfig, sys};
use cudarc::driver::CudaSlice;
use half::bf16;
use lab::libraries::{Missing, ask};
use lab::timing::{self, Timing};
use lab::{Axis, Cell, Figure, Series, Table, row};

use crate::by_hand::ByHand;
use crate::cpu;
use crate::device::Device;
use crate::layout::Sizes;
use crate::outcome::{Call, Outcome};

/// The functions of cuBLAS that this chapter calls.
const FUNCTIONS: [&str; 6] = [
    "cublasCreate_v2",
    "cublasSetStream_v2",
    "cublasSetMathMode",
    "cublasSgemm_v2",
    "cublasSgemmStridedBatched",
    "cublasGemmEx",
];

/// How exactly cuBLAS multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Floats of 32 bits throughout.
    Fp32,
    /// The factors are rounded to 10 bits of fraction on their way into the tensor cores.
    Tf32,
    /// The matrices themselves hold 16-bit floats with 7 bits of fraction; sums are in 32 bits.
    Bf16,
}

impl Precision {
    /// From the most exact to the fastest.
    pub const ALL: [Precision; 3] = [Precision::Fp32, Precision::Tf32, Precision::Bf16];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Fp32 => "fp32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
        }
    }

    /// How far a product may be off. The factors of tf32 and bf16 are off by up to 2⁻¹¹ and 2⁻⁸, in
    /// no order, so that the error of a sum is of that size, and less. The sum of an fp32 product
    /// is off by some of its 24 bits.
    pub fn tolerance(self) -> f64 {
        match self {
            Precision::Fp32 => 1e-5,
            Precision::Tf32 => 2e-3,
            Precision::Bf16 => 1e-2,
        }
    }
}

/// cuBLAS on a device's stream.
pub struct Blas {
    blas: CudaBlas,
}

impl Blas {
    // ANCHOR: open
    /// Asks first, because cudarc panics where the library or a function is missing. The handle
    /// holds the stream, the library's workspace and its settings.
    pub fn open(device: &Device) -> Result<Result<Self, Missing>> {
        if let Err(missing) = ask("cuBLAS", &FUNCTIONS) {
            return Ok(Err(missing));
        }
        let blas = CudaBlas::new(device.stream.clone()).context("opening cuBLAS")?;
        Ok(Ok(Self { blas }))
    }
    // ANCHOR_END: open

    /// Lets products of fp32 matrices go through the tensor cores as tf32, or not.
    pub fn allow_tf32(&self, allow: bool) -> Result<()> {
        let mode = match allow {
            true => sys::cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH,
            false => sys::cublasMath_t::CUBLAS_DEFAULT_MATH,
        };
        // SAFETY: the handle is alive as long as `self`; `ask` has found the function.
        unsafe { sys::cublasSetMathMode(*self.blas.handle(), mode) }
            .result()
            .context("setting the math mode")
    }

    // ANCHOR: product
    /// `c = a b`, all row by row.
    pub fn product(
        &self,
        sizes: Sizes,
        a: &CudaSlice<f32>,
        b: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
    ) -> Result<()> {
        check(sizes, a.len(), b.len(), c.len(), 1)?;
        // SAFETY: the three lengths, checked above, are what the configuration reaches.
        unsafe { self.blas.gemm(sizes.row_major(1.0, 0.0), b, a, c) }.context("calling cublasSgemm")
    }
    // ANCHOR_END: product

    /// `c = aᵀ b + beta c`, where `a` lies as `inner` rows of `rows` elements.
    pub fn product_transposed(
        &self,
        sizes: Sizes,
        a: &CudaSlice<f32>,
        b: &CudaSlice<f32>,
        beta: f32,
        c: &mut CudaSlice<f32>,
    ) -> Result<()> {
        check(sizes, a.len(), b.len(), c.len(), 1)?;
        // SAFETY: as in `product`; the transposed `a` has as many elements.
        unsafe { self.blas.gemm(sizes.row_major_transposed(1.0, beta), b, a, c) }
            .context("calling cublasSgemm")
    }

    /// `c = a bᵀ`, where `b` lies as `columns` rows of `inner` elements.
    pub fn product_by_transposed(
        &self,
        sizes: Sizes,
        a: &CudaSlice<f32>,
        b: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
    ) -> Result<()> {
        check(sizes, a.len(), b.len(), c.len(), 1)?;
        // SAFETY: as in `product`; the transposed `b` has as many elements.
        unsafe { self.blas.gemm(sizes.row_major_by_transposed(1.0, 0.0), b, a, c) }
            .context("calling cublasSgemm")
    }

    /// As [`product`](Self::product), of bf16 matrices.
    pub fn product_bf16(
        &self,
        sizes: Sizes,
        a: &CudaSlice<bf16>,
        b: &CudaSlice<bf16>,
        c: &mut CudaSlice<bf16>,
    ) -> Result<()> {
        check(sizes, a.len(), b.len(), c.len(), 1)?;
        let config = sizes.row_major(bf16::ONE, bf16::ZERO);
        // SAFETY: as in `product`.
        unsafe { self.blas.gemm(config, b, a, c) }.context("calling cublasGemmEx")
    }

    // ANCHOR: batched
    /// `count` products of the same sizes, which lie one after the other.
    pub fn products(
        &self,
        sizes: Sizes,
        count: usize,
        a: &CudaSlice<f32>,
        b: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
    ) -> Result<()> {
        check(sizes, a.len(), b.len(), c.len(), count)?;
        let config = StridedBatchedConfig {
            gemm: sizes.row_major(1.0, 0.0),
            batch_size: count as i32,
            stride_a: (sizes.inner * sizes.columns) as i64,
            stride_b: (sizes.rows * sizes.inner) as i64,
            stride_c: (sizes.rows * sizes.columns) as i64,
        };
        // SAFETY: the three lengths, checked above, are what the configuration reaches.
        unsafe { self.blas.gemm_strided_batched(config, b, a, c) }
            .context("calling cublasSgemmStridedBatched")
    }
    // ANCHOR_END: batched
}

/// An error unless the matrices hold what a product reaches.
fn check(sizes: Sizes, a: usize, b: usize, c: usize, count: usize) -> Result<()> {
    let Sizes { rows, inner, columns } = sizes;
    for (name, len, wanted) in
        [("a", a, rows * inner), ("b", b, inner * columns), ("c", c, rows * columns)]
    {
        ensure!(
            len >= count * wanted,
            "multiplying {rows} × {inner} by {inner} × {columns}, {count} times: `{name}` holds {len} elements and \
             should hold {}",
            count * wanted
        );
    }
    Ok(())
}

/// Two factors on the host and on the device, whose elements repeat.
pub struct Factors {
    sizes: Sizes,
    host: [Vec<f32>; 2],
    /// The first, row by row.
    pub a: CudaSlice<f32>,
    /// The second, row by row.
    pub b: CudaSlice<f32>,
}

impl Factors {
    /// Numbers between -1 and 1.
    pub fn new(device: &Device, sizes: Sizes) -> Result<Self> {
        let Sizes { rows, inner, columns } = sizes;
        let fill = |len: usize, seed| {
            let block = cpu::numbers(len.min(1 << 20), seed);
            block.iter().copied().cycle().take(len).collect::<Vec<f32>>()
        };
        let host = [fill(rows * inner, 1), fill(inner * columns, 2)];
        Ok(Self { sizes, a: device.copy(&host[0])?, b: device.copy(&host[1])?, host })
    }

    /// The same, rounded to bf16.
    pub fn rounded(&self, device: &Device) -> Result<[CudaSlice<bf16>; 2]> {
        let round =
            |host: &[f32]| -> Vec<bf16> { host.iter().copied().map(bf16::from_f32).collect() };
        Ok([device.copy(&round(&self.host[0]))?, device.copy(&round(&self.host[1]))?])
    }

    /// How far a product is off, from all of its elements where they are few, else from 256 in no
    /// order.
    pub fn error(&self, c: &[f32]) -> f64 {
        let Sizes { rows, inner, columns } = self.sizes;
        let places: Vec<(usize, usize)> = if rows * columns <= 4096 {
            (0..rows * columns).map(|i| (i / columns, i % columns)).collect()
        } else {
            let any =
                |seed, i, below: usize| (f64::from(cpu::mixed(seed, i)) * below as f64) as usize;
            (0..256).map(|i| (any(3, i, rows), any(4, i, columns))).collect()
        };
        let expected: Vec<f64> = places
            .iter()
            .map(|&(row, column)| {
                cpu::product_at(&self.host[0], &self.host[1], inner, columns, row, column)
            })
            .collect();
        let found: Vec<f32> =
            places.iter().map(|&(row, column)| c[row * columns + column]).collect();
        cpu::error(&found, &expected)
    }
}

/// One product by cuBLAS: what it takes, and how far it is off.
pub fn timed(
    device: &Device,
    blas: &Blas,
    factors: &Factors,
    precision: Precision,
) -> Result<Call> {
    let sizes = factors.sizes;
    let elements = sizes.rows * sizes.columns;
    let (time, c) = match precision {
        Precision::Bf16 => {
            let [a, b] = factors.rounded(device)?;
            let mut c = device.zeros::<bf16>(elements)?;
            let time =
                timing::device(device.raw_stream(), |_| blas.product_bf16(sizes, &a, &b, &mut c))?;
            let c = device.fetch(&c, elements)?;
            (time, c.into_iter().map(bf16::to_f32).collect())
        }
        _ => {
            blas.allow_tf32(precision == Precision::Tf32)?;
            let mut c = device.zeros::<f32>(elements)?;
            let time = timing::device(device.raw_stream(), |_| {
                blas.product(sizes, &factors.a, &factors.b, &mut c)
            })?;
            blas.allow_tf32(false)?;
            (time, device.fetch(&c, elements)?)
        }
    };
    let error = factors.error(&c);
    let name = precision.name();
    ensure!(
        error < precision.tolerance(),
        "a product by cuBLAS in {name}, {sizes:?}, is off by {error}"
    );
    Ok(Call { time, error })
}

/// One product by the tiled kernel.
pub fn timed_by_hand(
    device: &Device,
    hand: &ByHand<'_>,
    factors: &Factors,
) -> Result<(Option<Timing>, f64)> {
    let sizes = factors.sizes;
    let mut c = device.zeros::<f32>(sizes.rows * sizes.columns)?;
    let time = timing::device(device.raw_stream(), |_| {
        hand.matmul(sizes, &factors.a, &factors.b, &mut c)
    })?;
    let error = factors.error(&device.fetch(&c, sizes.rows * sizes.columns)?);
    ensure!(error < 1e-5, "a product by the tiled kernel, {sizes:?}, is off by {error}");
    Ok((time, error))
}

/// Sides of the square matrices: 1/8, 1/4, 1/2 and all of `largest`.
pub fn sides(cell: &Cell) -> Result<[usize; 4]> {
    let largest: usize = cell.parameter("largest")?;
    Ok([8, 4, 2, 1].map(|part| {
        // The work grows with the elements, so that is what a small device has fewer of.
        let elements = cell.largest((largest / part).pow(2));
        (elements as f64).sqrt() as usize
    }))
}

/// How fast is a product?
pub fn rates(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let hand = ByHand::load(&device)?;
    let blas = Blas::open(&device)?;
    let sides = sides(cell)?;
    cell.progress(4 * sides.len() as u64);
    let mut table = Table::new("products")
        .measured("way", "")
        .measured("side", "")
        .measured("time", "s")
        .measured("rate", "Tflop/s")
        .measured("error", "");
    let mut tiled = Series::measured("tiled", "Tflop/s").label("tiled kernel, fp32");
    let mut calls = Precision::ALL.map(|precision| {
        Series::measured(precision.name(), "Tflop/s").label(format!("cuBLAS, {}", precision.name()))
    });
    for side in sides {
        let sizes = Sizes::square(side);
        let factors = Factors::new(&device, sizes)?;
        let rate =
            |time: Option<Timing>| time.map(|time| time.per_second(1e-12 * sizes.operations()));
        cell.tick(&format!("tiled, {side}"));
        let (time, error) = timed_by_hand(&device, &hand, &factors)?;
        tiled.push(side as f64, rate(time));
        table.push(row![
            format!("tiled {side}"),
            side as f64,
            time.map(Timing::seconds),
            rate(time),
            error
        ]);
        for (precision, series) in Precision::ALL.into_iter().zip(&mut calls) {
            cell.tick(&format!("{}, {side}", precision.name()));
            let Ok(blas) = &blas else {
                series.push(side as f64, None::<f64>);
                continue;
            };
            let call = timed(&device, blas, &factors, precision)?;
            series.push(side as f64, rate(call.time));
            let time = call.time.map(Timing::seconds);
            table.push(row![
                format!("{} {side}", precision.name()),
                side as f64,
                time,
                rate(call.time),
                call.error
            ]);
        }
    }
    if let Err(missing) = &blas {
        cell.measured_text(format!("{missing}."));
    }
    cell.table(table);
    cell.series(tiled);
    calls.into_iter().for_each(|series| cell.series(series));
    cell.figure(
        Figure::new(
            "How fast is the product of two square matrices?",
            "Rate of a tiled kernel and of cuBLAS in fp32, tf32 and bf16 over the side of the matrices: cuBLAS is several \
             times as fast as the kernel in the same precision, and the tensor cores are many times as fast again.",
        )
        .x(Axis::log2("side of the matrices", ""))
        .y(Axis::log10("rate", "Tflop/s"))
        .series(["tiled", "fp32", "tf32", "bf16"]),
    );
    Ok(())
}

/// Many small products: a launch for each, a call for each, or one call for all.
pub fn batched(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let hand = ByHand::load(&device)?;
    let blas = Blas::open(&device)?;
    let sizes = Sizes::square(64);
    let count = cell.largest(1 << 20) >> 10;
    let each = 64 * 64;
    let [a, b] = [1, 2].map(|seed| cpu::numbers(count * each, seed));
    let (on_a, on_b) = (device.copy(&a)?, device.copy(&b)?);
    let pairs = a.chunks_exact(each).zip(b.chunks_exact(each)).take(4);
    let expected: Vec<f64> = pairs.flat_map(|(a, b)| cpu::product(a, b, 64, 64, 64)).collect();
    let mut c = device.zeros::<f32>(count * each)?;
    let mut table =
        Table::new("batched").measured("way", "").measured("time", "s").measured("error", "");
    let mut tell = |name: &str, products: usize, time: Option<Timing>, c: &CudaSlice<f32>| {
        let elements = products.min(4) * each;
        let error = cpu::error(&device.fetch(c, elements)?, &expected[..elements]);
        ensure!(error < 1e-5, "{name}: the products are off by {error}");
        table.push(row![name, time.map(Timing::seconds), error]);
        anyhow::Ok(())
    };

    // Whoever goes one by one is given the same two matrices each time: that costs as much.
    let time = timing::device(device.raw_stream(), |_| {
        (0..count).try_for_each(|_| hand.matmul(sizes, &on_a, &on_b, &mut c))
    })?;
    tell("a launch for each", 1, time, &c)?;
    let mut gain = None;
    match &blas {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(blas) => {
            let one_by_one = timing::device(device.raw_stream(), |_| {
                (0..count).try_for_each(|_| blas.product(sizes, &on_a, &on_b, &mut c))
            })?;
            tell("a call for each", 1, one_by_one, &c)?;
            let at_once = timing::device(device.raw_stream(), |_| {
                blas.products(sizes, count, &on_a, &on_b, &mut c)
            })?;
            tell("one call for all", count, at_once, &c)?;
            gain = one_by_one.zip(at_once).map(|(one, all)| one.median / all.median);
        }
    }
    cell.table(table);
    cell.measured("products", count as f64, "");
    cell.measured("gain", gain, "");
    Ok(())
}

/// The outcome for the picture of the whole chapter.
pub fn outcome(cell: &Cell, device: &Device, hand: &ByHand<'_>) -> Result<Outcome> {
    let side = sides(cell)?[2];
    let factors = Factors::new(device, Sizes::square(side))?;
    let (time, hand_error) = timed_by_hand(device, hand, &factors)?;
    let call = match Blas::open(device)? {
        Ok(blas) => Ok(timed(device, &blas, &factors, Precision::Fp32)?),
        Err(missing) => Err(missing),
    };
    Ok(Outcome {
        what: "product fp32",
        library: "cuBLAS",
        by_hand: "tiled kernel",
        hand: time,
        hand_error,
        call,
    })
}
