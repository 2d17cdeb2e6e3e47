//! cuBLASLt: y = gelu(x W + b) in one call, by the algorithm that is fastest here.

use std::ffi::c_void;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::cublaslt::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, ValidAsZeroBits};
use half::bf16;
use lab::libraries::{Missing, ask};
use lab::timing::{self, Timing};
use lab::{Cell, Table, row};

use crate::blas::{Blas, Factors};
use crate::by_hand::ByHand;
use crate::cpu;
use crate::device::Device;
use crate::layout::Sizes;
use crate::outcome::{Call, Outcome};

const FUNCTIONS: [&str; 6] = [
    "cublasLtCreate",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatmulPreferenceCreate",
];

/// Memory that an algorithm may use between its parts.
const WORKSPACE: usize = 64 << 20;
/// No more algorithms are asked for.
const MOST_ALGORITHMS: usize = 16;

/// What cuBLASLt multiplies here.
pub trait Number: DeviceRepr + ValidAsZeroBits + Copy + Default {
    /// Its name in CUDA.
    const TYPE: sys::cudaDataType;
    /// The nearest one to a float.
    fn nearest(x: f32) -> Self;
    /// As a float.
    fn float(self) -> f32;
}

impl Number for f32 {
    const TYPE: sys::cudaDataType = sys::cudaDataType_t::CUDA_R_32F;
    fn nearest(x: f32) -> Self {
        x
    }
    fn float(self) -> f32 {
        self
    }
}

impl Number for bf16 {
    const TYPE: sys::cudaDataType = sys::cudaDataType_t::CUDA_R_16BF;
    fn nearest(x: f32) -> Self {
        bf16::from_f32(x)
    }
    fn float(self) -> f32 {
        self.to_f32()
    }
}

/// What follows the product within the same kernel: the *epilogue*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// Nothing.
    None,
    /// A bias for each column, and then GELU.
    BiasGelu,
}

/// A layer: one product of given sizes, with everything that cuBLASLt wants to know before.
pub struct Layer {
    handle: sys::cublasLtHandle_t,
    operation: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithms: Vec<sys::cublasLtMatmulHeuristicResult_t>,
    workspace: CudaSlice<u8>,
    stream: Arc<CudaStream>,
    sizes: Sizes,
    element: sys::cudaDataType,
    epilogue: Epilogue,
}

impl Layer {
    /// Prepares `y = epilogue(x w)`. The weights `w` lie row by row, or, when `outputs_first`, with a
    /// row for each output, as PyTorch's `Linear` keeps them.
    pub fn prepare<T: Number>(
        device: &Device,
        sizes: Sizes,
        outputs_first: bool,
        epilogue: Epilogue,
    ) -> Result<Result<Self, Missing>> {
        if let Err(missing) = ask("cuBLASLt", &FUNCTIONS) {
            return Ok(Err(missing));
        }
        let Sizes { rows, inner, columns } = sizes;
        let layout = |rows: usize, columns: usize| {
            result::create_matrix_layout(T::TYPE, rows as u64, columns as u64, rows as i64)
                .context("describing a matrix to cuBLASLt")
        };
        let mut layer = Self {
            handle: result::create_handle().context("opening cuBLASLt")?,
            operation: result::create_matmul_desc(
                sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                sys::cudaDataType_t::CUDA_R_32F,
            )
            .context("describing a product to cuBLASLt")?,
            // Row by row read column by column: see `layout.rs`. The weights come first.
            layouts: [
                if outputs_first { layout(inner, columns)? } else { layout(columns, inner)? },
                layout(inner, rows)?,
                layout(columns, rows)?,
            ],
            algorithms: Vec::new(),
            workspace: device.zeros(WORKSPACE)?,
            stream: device.stream.clone(),
            sizes,
            element: T::TYPE,
            epilogue,
        };
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        let transposed = i32::from(outputs_first);
        layer.describe(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &transposed)?;
        // ANCHOR: epilogue
        if epilogue == Epilogue::BiasGelu {
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_BIAS;
            layer.describe(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
        }
        // ANCHOR_END: epilogue
        layer.algorithms = layer.ask_for_algorithms()?;
        Ok(Ok(layer))
    }

    /// Sets an attribute of the product.
    fn describe<A>(&self, attribute: sys::cublasLtMatmulDescAttributes_t, value: &A) -> Result<()> {
        let pointer = std::ptr::from_ref(value).cast::<c_void>();
        // SAFETY: the description is alive, and the library copies as many bytes as the value has.
        unsafe {
            result::set_matmul_desc_attribute(self.operation, attribute, pointer, size_of::<A>())
        }
        .with_context(|| format!("setting {attribute:?}"))
    }

    // ANCHOR: heuristic
    /// The algorithms that cuBLASLt recommends for these sizes, the best by its own estimate first.
    fn ask_for_algorithms(&self) -> Result<Vec<sys::cublasLtMatmulHeuristicResult_t>> {
        let preference = result::create_matmul_pref().context("asking cuBLASLt")?;
        let [a, b, c] = self.layouts;
        let mut found = Vec::with_capacity(MOST_ALGORITHMS);
        let mut count = 0;
        // SAFETY: all of them are alive; the library writes at most as many results as there is room
        // for, and says how many.
        let answer = unsafe {
            let bytes =
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
            let answer = result::set_matmul_pref_attribute(
                preference,
                bytes,
                std::ptr::from_ref(&WORKSPACE).cast(),
                size_of::<usize>(),
            )
            .and_then(|()| {
                sys::cublasLtMatmulAlgoGetHeuristic(
                    self.handle,
                    self.operation,
                    a,
                    b,
                    c,
                    c,
                    preference,
                    MOST_ALGORITHMS as i32,
                    found.as_mut_ptr(),
                    &mut count,
                )
                .result()
            });
            let destroyed = result::destroy_matmul_pref(preference);
            found.set_len(count as usize);
            answer.and(destroyed)
        };
        answer.context("asking cuBLASLt for algorithms")?;
        found.retain(|one| one.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        ensure!(!found.is_empty(), "cuBLASLt has no algorithm for {:?}", self.sizes);
        Ok(found)
    }
    // ANCHOR_END: heuristic

    /// How many algorithms there are to choose from.
    pub fn algorithms(&self) -> usize {
        self.algorithms.len()
    }

    /// The workspace that an algorithm wants, in bytes.
    pub fn workspace(&self, algorithm: usize) -> usize {
        self.algorithms[algorithm].workspaceSize
    }

    // ANCHOR: call
    /// Enqueues the layer by one of its algorithms.
    pub fn enqueue<T: Number>(
        &self,
        algorithm: usize,
        x: &CudaSlice<T>,
        w: &CudaSlice<T>,
        bias: &CudaSlice<T>,
        y: &mut CudaSlice<T>,
    ) -> Result<()> {
        let Sizes { rows, inner, columns } = self.sizes;
        ensure!(
            T::TYPE == self.element
                && x.len() >= rows * inner
                && w.len() >= inner * columns
                && y.len() >= rows * columns
                && bias.len() >= columns,
            "a layer of {:?} does not fit the memory that it was given",
            self.sizes
        );
        let (x, _x) = x.device_ptr(&self.stream);
        let (w, _w) = w.device_ptr(&self.stream);
        let (bias, _bias) = bias.device_ptr(&self.stream);
        let (y, _y) = y.device_ptr_mut(&self.stream);
        let (workspace, _workspace) = self.workspace.device_ptr(&self.stream);
        if self.epilogue == Epilogue::BiasGelu {
            let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            self.describe(attribute, &bias)?;
        }
        let [a, b, c] = self.layouts;
        let (one, zero) = (1.0f32, 0.0f32);
        // SAFETY: the memory has the type and at least the sizes that the layouts describe, as was
        // checked above, and the guards keep it until the work is enqueued; the algorithm was
        // recommended for these layouts and this workspace.
        unsafe {
            result::matmul(
                self.handle,
                self.operation,
                std::ptr::from_ref(&one).cast(),
                std::ptr::from_ref(&zero).cast(),
                w as *const c_void,
                a,
                x as *const c_void,
                b,
                y as *const c_void,
                c,
                y as *mut c_void,
                c,
                &self.algorithms[algorithm].algo,
                workspace as *mut c_void,
                WORKSPACE,
                self.stream.cu_stream().cast(),
            )
        }
        .context("calling cublasLtMatmul")
    }
    // ANCHOR_END: call
}

impl Drop for Layer {
    fn drop(&mut self) {
        // SAFETY: they came from `prepare` and are destroyed only here. There is nobody to tell an
        // error to.
        unsafe {
            let _ = result::destroy_matmul_desc(self.operation);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
            let _ = result::destroy_handle(self.handle);
        }
    }
}

/// A layer's numbers on the host and on the device.
pub struct Problem<T> {
    sizes: Sizes,
    x: Vec<f32>,
    w: Vec<f32>,
    b: Vec<f32>,
    /// The inputs, row by row.
    pub on_x: CudaSlice<T>,
    /// The weights, with a row for each output.
    pub on_w: CudaSlice<T>,
    /// The biases.
    pub on_b: CudaSlice<T>,
    /// The outputs, row by row.
    pub y: CudaSlice<T>,
}

impl<T: Number> Problem<T> {
    /// Inputs and biases between -1 and 1, weights so that the outputs are too, nearly.
    pub fn new(device: &Device, sizes: Sizes) -> Result<Self> {
        let scale = 1.0 / (sizes.inner as f32).sqrt();
        let fill = |len: usize, seed, scale: f32| -> Vec<T> {
            let block = cpu::numbers(len.min(1 << 20), seed);
            block.iter().cycle().take(len).map(|&x| T::nearest(scale * x)).collect()
        };
        let x = fill(sizes.rows * sizes.inner, 1, 1.0);
        let w = fill(sizes.inner * sizes.columns, 2, scale);
        let b = fill(sizes.columns, 3, 1.0);
        let float = |numbers: &[T]| numbers.iter().map(|&x| x.float()).collect();
        Ok(Self {
            sizes,
            on_x: device.copy(&x)?,
            on_w: device.copy(&w)?,
            on_b: device.copy(&b)?,
            y: device.zeros(sizes.rows * sizes.columns)?,
            x: float(&x),
            w: float(&w),
            b: float(&b),
        })
    }

    /// How far 256 outputs in no order are off.
    pub fn error(&self, device: &Device) -> Result<f64> {
        let Sizes { rows, inner, columns } = self.sizes;
        let y = device.fetch(&self.y, rows * columns)?;
        let (found, expected): (Vec<f32>, Vec<f64>) = (0..256)
            .map(|i| {
                let row = (f64::from(cpu::mixed(5, i)) * rows as f64) as usize;
                let column = (f64::from(cpu::mixed(6, i)) * columns as f64) as usize;
                let (x, w) = (&self.x[row * inner..][..inner], &self.w[column * inner..][..inner]);
                let sum: f64 = x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
                (y[row * columns + column].float(), cpu::gelu(sum + f64::from(self.b[column])))
            })
            .unzip();
        Ok(cpu::error(&found, &expected))
    }

    /// The layer's fastest algorithm, and what each takes.
    pub fn fastest(
        &mut self,
        device: &Device,
        layer: &Layer,
    ) -> Result<(usize, Vec<Option<Timing>>)> {
        let times = (0..layer.algorithms())
            .map(|algorithm| {
                timing::device(device.raw_stream(), |_| {
                    layer.enqueue(algorithm, &self.on_x, &self.on_w, &self.on_b, &mut self.y)
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let seconds = |at: &usize| times[*at].map_or(f64::INFINITY, |time| time.median);
        let best = (0..times.len()).min_by(|a, b| seconds(a).total_cmp(&seconds(b))).unwrap_or(0);
        Ok((best, times))
    }
}

/// The layer in one call, against a product and a kernel after it.
pub fn fused(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let full: usize = cell.parameter("layer")?;
    let side = (cell.largest(full * full) as f64).sqrt() as usize;
    let sizes = Sizes::square(side);
    let operations = sizes.operations();
    cell.progress(3);
    let mut table = Table::new("ways")
        .measured("way", "")
        .measured("time", "s")
        .measured("rate", "Tflop/s")
        .measured("error", "");
    let rate = |time: Option<Timing>| time.map(|time| time.per_second(1e-12 * operations));

    cell.tick("by hand, fp32");
    let (time, error) = two_kernels(&device, sizes, None)?;
    table.push(row![
        "tiled kernel and GELU kernel fp32",
        time.map(Timing::seconds),
        rate(time),
        error
    ]);

    cell.tick("cuBLAS, then a kernel");
    match Blas::open(&device)? {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(blas) => {
            let (time, error) = two_kernels(&device, sizes, Some(&blas))?;
            let seconds = time.map(Timing::seconds);
            table.push(row!["cuBLAS and GELU kernel fp32", seconds, rate(time), error]);
        }
    }

    cell.tick("cuBLASLt");
    let mut choices = Table::new("algorithms")
        .measured("recommended as number", "")
        .measured("workspace", "B")
        .measured("time", "s")
        .measured("rate", "Tflop/s");
    let mut gain = None;
    match Layer::prepare::<bf16>(&device, sizes, true, Epilogue::BiasGelu)? {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(layer) => {
            let mut problem = Problem::<bf16>::new(&device, sizes)?;
            let (best, times) = problem.fastest(&device, &layer)?;
            layer.enqueue(best, &problem.on_x, &problem.on_w, &problem.on_b, &mut problem.y)?;
            let error = problem.error(&device)?;
            ensure!(error < 1e-2, "the layer by cuBLASLt is off by {error}");
            for (i, time) in times.iter().enumerate() {
                let workspace = layer.workspace(i) as f64;
                choices.push(row![
                    (i + 1) as f64,
                    workspace,
                    time.map(Timing::seconds),
                    rate(*time)
                ]);
            }
            let seconds = times[best].map(Timing::seconds);
            table.push(row!["cuBLASLt with its epilogue bf16", seconds, rate(times[best]), error]);
            gain = times[0].zip(times[best]).map(|(first, best)| first.median / best.median);
            cell.measured("best", (best + 1) as f64, "");
            cell.measured("fused", rate(times[best]), "Tflop/s");

            // What the epilogue costs: the same product without it.
            if let Ok(bare) = Layer::prepare::<bf16>(&device, sizes, true, Epilogue::None)? {
                let (at, times) = problem.fastest(&device, &bare)?;
                let seconds = times[at].map(Timing::seconds);
                table.push(row!["cuBLASLt without an epilogue bf16", seconds, rate(times[at]), ""]);
                cell.measured("bare", rate(times[at]), "Tflop/s");
            }
        }
    }
    cell.measured("gain_by_measuring", gain, "");
    cell.table(table);
    if !choices.rows.is_empty() {
        cell.table(choices);
    }
    Ok(())
}

/// A product, by cuBLAS or by hand, and GELU by a kernel after it.
fn two_kernels(
    device: &Device,
    sizes: Sizes,
    blas: Option<&Blas>,
) -> Result<(Option<Timing>, f64)> {
    let hand = ByHand::load(device)?;
    let factors = Factors::new(device, sizes)?;
    let elements = sizes.rows * sizes.columns;
    let bias = device.copy(&cpu::numbers(sizes.columns, 3))?;
    let (mut z, mut y) = (device.zeros::<f32>(elements)?, device.zeros::<f32>(elements)?);
    let time = timing::device(device.raw_stream(), |_| {
        match blas {
            Some(blas) => blas.product(sizes, &factors.a, &factors.b, &mut z)?,
            None => hand.matmul(sizes, &factors.a, &factors.b, &mut z)?,
        }
        hand.gelu(&z, &bias, &mut y, sizes.rows, sizes.columns)
    })?;
    let (z, y, bias) = (
        device.fetch(&z, elements)?,
        device.fetch(&y, elements)?,
        device.fetch(&bias, sizes.columns)?,
    );
    let error = factors.error(&z);
    ensure!(error < 1e-5, "the product is off by {error}");
    // From the product on, every element is checked.
    let expected: Vec<f64> = z
        .iter()
        .enumerate()
        .map(|(i, &z)| cpu::gelu(f64::from(z) + f64::from(bias[i % sizes.columns])))
        .collect();
    let error = cpu::error(&y, &expected);
    ensure!(error < 1e-5, "GELU is off by {error}");
    Ok((time, error))
}

/// The outcome for the picture of the whole chapter.
pub fn outcome(cell: &Cell, device: &Device) -> Result<Outcome> {
    let full: usize = cell.parameter("layer")?;
    let sizes = Sizes::square((cell.largest(full * full) as f64).sqrt() as usize);
    let (hand, hand_error) = two_kernels(device, sizes, None)?;
    let call = match Layer::prepare::<bf16>(device, sizes, true, Epilogue::BiasGelu)? {
        Err(missing) => Err(missing),
        Ok(layer) => {
            let mut problem = Problem::<bf16>::new(device, sizes)?;
            let time = timing::device(device.raw_stream(), |_| {
                layer.enqueue(0, &problem.on_x, &problem.on_w, &problem.on_b, &mut problem.y)
            })?;
            Ok(Call { time, error: problem.error(device)? })
        }
    };
    Ok(Outcome {
        what: "layer with GELU bf16",
        library: "cuBLASLt",
        by_hand: "two kernels fp32",
        hand,
        hand_error,
        call,
    })
}
