//! The same from Python: PyTorch in turn with ours, CuPy beside.

use anyhow::{Result, ensure};
use half::bf16;
use lab::peers::{Conversation, Turns};
use lab::{Cell, Series, Table, row, timing};

use crate::blas::{Blas, Factors, Precision, sides};
use crate::cost;
use crate::device::Device;
use crate::layer::{Epilogue, Layer, Problem};
use crate::layout::Sizes;

/// Pairs of samples.
const PAIRS: usize = 30;
/// About so many seconds a sample takes.
const SAMPLE: f64 = 4e-3;

/// Whatever is installed here.
pub(crate) fn peers(cell: &mut Cell) -> Result<()> {
    let mut unmeasured = Vec::new();
    let mut costs = Table::new("calls")
        .measured("called from", "")
        .measured("version", "")
        .measured("CPU time of a product of 32 × 32", "us");
    let device = Device::open()?;
    match Blas::open(&device)? {
        Err(missing) => unmeasured.push(format!("{missing}, and so there is nothing to compare.")),
        Ok(blas) => {
            let (sizes, mut c) = (Sizes::square(cost::SIDE), device.zeros::<f32>(1024)?);
            let factors = Factors::new(&device, sizes)?;
            let ours =
                cost::enqueue(&device, || blas.product(sizes, &factors.a, &factors.b, &mut c))?;
            let ours = ours.and_then(|time| time.each(200).value).map(|seconds| 1e6 * seconds);
            costs.push(row!["Rust, this chapter", "", ours]);
            cell.measured("call_rust", ours, "us");
            match lab::peers::converse("ch10_torch.py") {
                Err(missing) => unmeasured.push(format!("PyTorch was not measured: {missing}.")),
                Ok((mut torch, greeting)) => {
                    let cost = torch.ask("call 32 200")?.number("us");
                    costs.push(row!["PyTorch, torch.mm(out=)", greeting.word("version"), cost]);
                    cell.measured("call_torch", cost, "us");
                    against_torch(cell, &device, &blas, &mut torch)?;
                }
            }
            match lab::peers::python("ch10_cupy.py") {
                Err(missing) => unmeasured.push(format!("CuPy was not measured: {missing}.")),
                Ok(report) => {
                    let cost = report.number("call_us");
                    costs.push(row!["CuPy, cupy.matmul(out=)", report.word("version"), cost]);
                    cell.measured("call_cupy", cost, "us");
                }
            }
        }
    }
    if !costs.rows.is_empty() {
        cell.table(costs);
    }
    if !unmeasured.is_empty() {
        cell.measured_text(unmeasured.join("\n"));
    }
    Ok(())
}

/// Products and the fused layer, ours and PyTorch's in turn.
fn against_torch(
    cell: &mut Cell,
    device: &Device,
    blas: &Blas,
    torch: &mut Conversation,
) -> Result<()> {
    cell.progress(13);
    let mut table = Table::new("rates")
        .measured("product", "")
        .measured("side", "")
        .measured("Rust", "Tflop/s")
        .measured("PyTorch", "Tflop/s")
        .measured("Rust over PyTorch", "");
    for precision in Precision::ALL {
        let name = precision.name();
        let mut ratios = Series::measured(format!("{name}_over_torch"), "")
            .label(format!("{name}, Rust over PyTorch"));
        for side in sides(cell)? {
            cell.tick(&format!("{name}, {side}"));
            let sizes = Sizes::square(side);
            let factors = Factors::new(device, sizes)?;
            let question = |repeats: usize| format!("product {name} {side} {repeats}");
            let turns = if precision == Precision::Bf16 {
                let [a, b] = factors.rounded(device)?;
                let mut c = device.zeros::<bf16>(side * side)?;
                turns(device, torch, question, || blas.product_bf16(sizes, &a, &b, &mut c))?
            } else {
                blas.allow_tf32(precision == Precision::Tf32)?;
                let mut c = device.zeros::<f32>(side * side)?;
                turns(device, torch, question, || {
                    blas.product(sizes, &factors.a, &factors.b, &mut c)
                })?
            };
            blas.allow_tf32(false)?;
            let rate = |seconds: f64| 1e-12 * sizes.operations() / seconds;
            let ratio = turns.speed();
            ratios.push(side as f64, ratio);
            table.push(row![
                format!("{name} {side}"),
                side as f64,
                rate(turns.ours()),
                rate(turns.theirs()),
                ratio
            ]);
        }
        cell.series(ratios);
    }
    let side = cell.parameter("layer")?;
    cell.tick(&format!("layer, {side}"));
    let sizes = Sizes::square(side);
    if let Ok(layer) = Layer::prepare::<bf16>(device, sizes, true, Epilogue::BiasGelu)? {
        let mut p = Problem::<bf16>::new(device, sizes)?;
        let (best, _) = p.fastest(device, &layer)?;
        let question = |repeats: usize| format!("layer bf16 {side} {repeats}");
        let turns = turns(device, torch, question, || {
            layer.enqueue(best, &p.on_x, &p.on_w, &p.on_b, &mut p.y)
        })?;
        let rate = |seconds: f64| 1e-12 * sizes.operations() / seconds;
        let ratio = turns.speed();
        cell.measured("layer_over_torch", ratio, "");
        let (ours, theirs) = (rate(turns.ours()), rate(turns.theirs()));
        table.push(row!["layer with GELU bf16", side as f64, ours, theirs, ratio]);
    }
    cell.table(table);
    Ok(())
}

/// Samples of ours and of PyTorch's in turn, each of some milliseconds.
fn turns(
    device: &Device,
    torch: &mut Conversation,
    question: impl Fn(usize) -> String,
    mut ours: impl FnMut() -> Result<()>,
) -> Result<Turns> {
    let stream = device.raw_stream();
    let mut sample = |repeats: usize| {
        // The first call after the other's turn wakes the device up again.
        ours()?;
        let time = timing::between_events(stream, || (0..repeats).try_for_each(|_| ours()))?;
        anyhow::Ok(time.as_secs_f64() / repeats as f64)
    };
    let first = sample(3)?;
    let repeats = ((SAMPLE / first) as usize).clamp(3, 200);
    let asked = question(repeats);
    Turns::take(
        PAIRS,
        || sample(repeats),
        || {
            let answer = torch.ask(&asked)?.number("seconds");
            ensure!(
                answer.is_some_and(|seconds| seconds > 0.0),
                "PyTorch told no time for `{asked}`"
            );
            Ok(answer.unwrap_or(f64::NAN))
        },
    )
}
