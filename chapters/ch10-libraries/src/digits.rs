//! The chapter's task: a network that reads digits, by hand and by libraries.
//!
//! Its first layer is random and stays so: 256 features of every image, gelu(x W + b). Only the
//! second layer is fitted, and that is no training: the weights that miss the right answers by the
//! least squares solve a system of linear equations, (HᵀH + λI) V = HᵀT. (G.-B. Huang and others:
//! *Extreme learning machine*, Neurocomputing 70, 2006.)

use anyhow::{Context, Result, ensure};
use cudarc::driver::CudaSlice;
use lab::timing::{self, Clock};
use lab::{Axis, Cell, Figure, Series, Table, row};

use crate::blas::Blas;
use crate::by_hand::ByHand;
use crate::convolution::Dnn;
use crate::cpu;
use crate::data::{CLASSES, Digits, PIXELS, TRAINING};
use crate::device::Device;
use crate::layer::{Epilogue, Layer};
use crate::layout::Sizes;
use crate::solver::Solver;

/// Features of an image.
pub const HIDDEN: usize = 256;
/// What is added to the diagonal, so that the equations can be solved in f32.
const RIDGE: f32 = 1.0;
/// The steps of the task.
pub const STEPS: [&str; 5] = ["layer", "equations", "solve", "scores", "softmax"];

/// The task's inputs.
pub struct Task {
    digits: Digits,
    weights: Vec<f32>,
    bias: Vec<f32>,
    /// 1 where an image shows the digit, else 0: for the images that are fitted.
    targets: Vec<f32>,
}

impl Task {
    /// Random weights between -1/2 and 1/2.
    pub fn new() -> Self {
        let digits = Digits::read();
        let half = |len, seed| cpu::numbers(len, seed).into_iter().map(|x| 0.5 * x).collect();
        let mut targets = vec![0.0; TRAINING * CLASSES];
        for (row, &label) in targets.chunks_exact_mut(CLASSES).zip(&digits.labels) {
            row[usize::from(label)] = 1.0;
        }
        Self { weights: half(PIXELS * HIDDEN, 11), bias: half(HIDDEN, 12), targets, digits }
    }

    /// How many images test the result.
    pub fn tests(&self) -> usize {
        self.digits.len() - TRAINING
    }

    /// The scores of the test images in f64.
    pub fn reference(&self) -> Result<Vec<f64>> {
        let images = self.digits.len();
        let mut hidden = cpu::product(&self.digits.pixels, &self.weights, images, PIXELS, HIDDEN);
        for (i, z) in hidden.iter_mut().enumerate() {
            *z = cpu::gelu(*z + f64::from(self.bias[i % HIDDEN]));
        }
        let (fitted, tests) = hidden.split_at(TRAINING * HIDDEN);
        let mut squares = vec![0.0; HIDDEN * HIDDEN];
        let mut sides = vec![0.0; HIDDEN * CLASSES];
        for (features, targets) in
            fitted.chunks_exact(HIDDEN).zip(self.targets.chunks_exact(CLASSES))
        {
            for (i, &feature) in features.iter().enumerate() {
                let row = &mut squares[i * HIDDEN..][..HIDDEN];
                row.iter_mut().zip(features).for_each(|(sum, other)| *sum += feature * other);
                let row = &mut sides[i * CLASSES..][..CLASSES];
                row.iter_mut()
                    .zip(targets)
                    .for_each(|(sum, &target)| *sum += feature * f64::from(target));
            }
        }
        (0..HIDDEN).for_each(|i| squares[i * (HIDDEN + 1)] += f64::from(RIDGE));
        let v = cpu::solve(&squares, &sides, HIDDEN, CLASSES)
            .context("the equations have no solution")?;
        let score = |features: &[f64], class: usize| -> f64 {
            features.iter().enumerate().map(|(k, feature)| feature * v[k * CLASSES + class]).sum()
        };
        Ok(tests
            .chunks_exact(HIDDEN)
            .flat_map(|features| (0..CLASSES).map(move |class| score(features, class)))
            .collect())
    }

    /// How many of the test images are read rightly, in percent.
    pub fn accuracy(&self, probabilities: &[f32]) -> f64 {
        let rows = probabilities.chunks_exact(CLASSES);
        let right = rows.zip(&self.digits.labels[TRAINING..]).filter(|(row, label)| {
            let best = (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b]));
            best == Some(usize::from(**label))
        });
        100.0 * right.count() as f64 / self.tests() as f64
    }
}

impl Default for Task {
    fn default() -> Self {
        Self::new()
    }
}

/// What both ways leave: scores and probabilities of the test images.
pub struct Answer {
    /// Before softmax, a row for each image.
    pub scores: Vec<f32>,
    /// After it.
    pub probabilities: Vec<f32>,
}

/// The inputs in device memory, and room for the rest.
struct Memory {
    pixels: CudaSlice<f32>,
    weights: CudaSlice<f32>,
    bias: CudaSlice<f32>,
    targets: CudaSlice<f32>,
    sums: CudaSlice<f32>,
    hidden: CudaSlice<f32>,
    fitted: CudaSlice<f32>,
    turned: CudaSlice<f32>,
    tests: CudaSlice<f32>,
    ridge: CudaSlice<f32>,
    squares: CudaSlice<f32>,
    sides: CudaSlice<f32>,
    scores: CudaSlice<f32>,
    probabilities: CudaSlice<f32>,
}

impl Memory {
    fn new(device: &Device, task: &Task) -> Result<Self> {
        let images = task.digits.len();
        let mut ridge = vec![0.0; HIDDEN * HIDDEN];
        (0..HIDDEN).for_each(|i| ridge[i * (HIDDEN + 1)] = RIDGE);
        Ok(Self {
            pixels: device.copy(&task.digits.pixels)?,
            weights: device.copy(&task.weights)?,
            bias: device.copy(&task.bias)?,
            targets: device.copy(&task.targets)?,
            sums: device.zeros(images * HIDDEN)?,
            hidden: device.zeros(images * HIDDEN)?,
            fitted: device.zeros(TRAINING * HIDDEN)?,
            turned: device.zeros(TRAINING * HIDDEN)?,
            tests: device.zeros(task.tests() * HIDDEN)?,
            ridge: device.copy(&ridge)?,
            squares: device.zeros(HIDDEN * HIDDEN)?,
            sides: device.zeros(HIDDEN * CLASSES)?,
            scores: device.zeros(task.tests() * CLASSES)?,
            probabilities: device.zeros(task.tests() * CLASSES)?,
        })
    }

    /// The images that are fitted, and those that test, each in memory of their own.
    fn split(&mut self, device: &Device) -> Result<()> {
        let cut = TRAINING * HIDDEN;
        device.stream.memcpy_dtod(&self.hidden.slice(..cut), &mut self.fitted)?;
        device.stream.memcpy_dtod(&self.hidden.slice(cut..), &mut self.tests)?;
        Ok(())
    }

    fn answer(&self, device: &Device) -> Result<Answer> {
        let len = self.scores.len();
        Ok(Answer {
            scores: device.fetch(&self.scores, len)?,
            probabilities: device.fetch(&self.probabilities, len)?,
        })
    }
}

/// Sizes of the four products.
fn sizes(task: &Task) -> [Sizes; 4] {
    [
        Sizes { rows: task.digits.len(), inner: PIXELS, columns: HIDDEN },
        Sizes { rows: HIDDEN, inner: TRAINING, columns: HIDDEN },
        Sizes { rows: HIDDEN, inner: TRAINING, columns: CLASSES },
        Sizes { rows: task.tests(), inner: HIDDEN, columns: CLASSES },
    ]
}

type Times = Option<Vec<timing::Timing>>;

/// The task by our own kernels, and the equations on the CPU.
pub fn by_hand(device: &Device, task: &Task) -> Result<(Answer, Times)> {
    let hand = ByHand::load(device)?;
    let mut memory = Memory::new(device, task)?;
    let [layer, squares, sides, scores] = sizes(task);
    let times = timing::laps(STEPS.len(), |clock| {
        let m = &mut memory;
        // ANCHOR: by_hand
        hand.matmul(layer, &m.pixels, &m.weights, &mut m.sums)?;
        hand.gelu(&m.sums, &m.bias, &mut m.hidden, layer.rows, HIDDEN)?;
        m.split(device)?;
        lap(device, clock)?;

        hand.transpose(&m.fitted, &mut m.turned, TRAINING, HIDDEN)?;
        hand.matmul(squares, &m.turned, &m.fitted, &mut m.squares)?;
        hand.matmul(sides, &m.turned, &m.targets, &mut m.sides)?;
        lap(device, clock)?;

        let wide = |floats: Vec<f32>| floats.into_iter().map(f64::from).collect::<Vec<f64>>();
        let mut a = wide(device.fetch(&m.squares, HIDDEN * HIDDEN)?);
        (0..HIDDEN).for_each(|i| a[i * (HIDDEN + 1)] += f64::from(RIDGE));
        let b = wide(device.fetch(&m.sides, HIDDEN * CLASSES)?);
        let v = cpu::solve(&a, &b, HIDDEN, CLASSES).context("the equations have no solution")?;
        let v = device.copy(&v.into_iter().map(|x| x as f32).collect::<Vec<f32>>())?;
        lap(device, clock)?;

        hand.matmul(scores, &m.tests, &v, &mut m.scores)?;
        lap(device, clock)?;

        hand.softmax(&m.scores, &mut m.probabilities, scores.rows, CLASSES)?;
        lap(device, clock)
        // ANCHOR_END: by_hand
    })?;
    Ok((memory.answer(device)?, times))
}

/// The libraries that the task calls.
pub struct Libraries {
    blas: Blas,
    layer: Layer,
    solver: Solver,
    dnn: Dnn,
}

impl Libraries {
    /// Opens all four, or says in a sentence which is missing.
    pub fn open(device: &Device, task: &Task) -> Result<Result<Self, lab::libraries::Missing>> {
        let (blas, solver, dnn) = (Blas::open(device)?, Solver::open(device)?, Dnn::open(device)?);
        let layer = Layer::prepare::<f32>(device, sizes(task)[0], false, Epilogue::BiasGelu)?;
        Ok((|| Ok(Self { blas: blas?, layer: layer?, solver: solver?, dnn: dnn? }))())
    }
}

/// The task by libraries.
pub fn by_libraries(
    device: &Device,
    task: &Task,
    libraries: &mut Libraries,
) -> Result<(Answer, Times)> {
    let Libraries { blas, layer, solver, dnn } = libraries;
    let mut memory = Memory::new(device, task)?;
    let [_, squares, sides, scores] = sizes(task);
    // The right-hand sides one after the other, as cuSOLVER wants them: TᵀH and not HᵀT.
    let sides = Sizes { rows: CLASSES, columns: HIDDEN, ..sides };
    let times = timing::laps(STEPS.len(), |clock| {
        let m = &mut memory;
        // ANCHOR: by_libraries
        layer.enqueue(0, &m.pixels, &m.weights, &m.bias, &mut m.hidden)?;
        m.split(device)?;
        lap(device, clock)?;

        device.stream.memcpy_dtod(&m.ridge, &mut m.squares)?;
        blas.product_transposed(squares, &m.fitted, &m.fitted, 1.0, &mut m.squares)?;
        blas.product_transposed(sides, &m.targets, &m.fitted, 0.0, &mut m.sides)?;
        lap(device, clock)?;

        solver.solve(device, &mut m.squares, &mut m.sides, HIDDEN, CLASSES)?;
        lap(device, clock)?;

        blas.product_by_transposed(scores, &m.tests, &m.sides, &mut m.scores)?;
        lap(device, clock)?;

        dnn.softmax(&m.scores, &mut m.probabilities, scores.rows, CLASSES)?;
        lap(device, clock)
        // ANCHOR_END: by_libraries
    })?;
    let info = solver.info(device)?;
    ensure!(info == [0, 0], "cuSOLVER found no solution: {info:?}");
    Ok((memory.answer(device)?, times))
}

/// Ends a lap when the device has done what it was given.
fn lap(device: &Device, clock: &mut Clock) -> Result<()> {
    device.stream.synchronize()?;
    clock.lap();
    Ok(())
}

/// How far scores may be off: the equations make an error some 10⁴ times as large as that of f32.
pub const TOLERANCE: f64 = 2e-2;

/// The task in both ways.
pub fn digits(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let task = Task::new();
    let expected = task.reference()?;
    cell.value("images", task.digits.len() as f64, "");
    cell.value("tests", task.tests() as f64, "");
    let narrow: Vec<f32> = expected.iter().map(|&score| score as f32).collect();
    cell.value("accuracy", task.accuracy(&narrow), "%");

    let mut table = Table::new("steps")
        .exact("step", "")
        .measured("by hand", "s")
        .measured("by libraries", "s");
    let (answer, hand) = by_hand(&device, &task)?;
    let hand_error = cpu::error(&answer.scores, &expected);
    ensure!(hand_error < TOLERANCE, "the scores by hand are off by {hand_error}");
    cell.measured("accuracy_by_hand", task.accuracy(&answer.probabilities), "%");
    cell.measured("error_by_hand", hand_error, "");

    let mut calls = None;
    match Libraries::open(&device, &task)? {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(mut libraries) => {
            let (answer, times) = by_libraries(&device, &task, &mut libraries)?;
            let error = cpu::error(&answer.scores, &expected);
            ensure!(error < TOLERANCE, "the scores by libraries are off by {error}");
            cell.measured("accuracy_by_libraries", task.accuracy(&answer.probabilities), "%");
            cell.measured("error_by_libraries", error, "");
            calls = times;
        }
    }
    let mut series = [
        Series::measured("hand", "s").label("by hand"),
        Series::measured("libraries", "s").label("by libraries"),
    ];
    for (i, step) in STEPS.into_iter().enumerate() {
        let at = |times: &Times| times.as_ref().map(|times| times[i]);
        table.push(row![
            step,
            at(&hand).map(timing::Timing::seconds),
            at(&calls).map(timing::Timing::seconds)
        ]);
        for (series, times) in series.iter_mut().zip([&hand, &calls]) {
            series.push(step, at(times).map(timing::Timing::seconds));
        }
    }
    let total = |times: &Times| {
        times.as_ref().map(|times| times.iter().map(|time| time.median).sum::<f64>())
    };
    cell.measured("total_by_hand", total(&hand), "s");
    cell.measured("total_by_libraries", total(&calls), "s");
    cell.table(table);
    series.into_iter().for_each(|series| cell.series(series));
    cell.figure(
        Figure::new(
            "Where does the time go?",
            "Time of the five steps of the task by hand and by libraries: the libraries win most where the work is largest, \
             and at the smallest steps both cost what a launch and a wait cost.",
        )
        .x(Axis::labels("step"))
        .y(Axis::log10("time, with the wait for it", "s"))
        .series(["hand", "libraries"]),
    );
    Ok(())
}
