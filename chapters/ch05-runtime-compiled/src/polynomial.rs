//! A polynomial of degree 24, by three sources that differ in how much they know.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};

use crate::nvrtc::{self, Source, Target};
use crate::{BLOCK, cpu, load};

// ANCHOR: general
/// Any polynomial: coefficients and degree are arguments.
pub const GENERAL: &str = r#"
extern "C" __global__ void polynomial(const float* x, float* y, size_t n,
                                      const float* coefficients, int degree) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = coefficients[degree];
        for (int k = degree - 1; k >= 0; --k) {
            sum = fmaf(sum, x[i], coefficients[k]);
        }
        y[i] = sum;
    }
}
"#;
// ANCHOR_END: general

// ANCHOR: defined
/// One polynomial: its numbers are written into the source by `-DCOEFFICIENTS=…`.
pub const DEFINED: &str = r#"
extern "C" __global__ void one_polynomial(const float* x, float* y, size_t n) {
    constexpr float coefficients[] = {COEFFICIENTS};
    constexpr int degree = sizeof(coefficients) / sizeof(float) - 1;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = coefficients[degree];
#pragma unroll
        for (int k = degree - 1; k >= 0; --k) {
            sum = fmaf(sum, x[i], coefficients[k]);
        }
        y[i] = sum;
    }
}
"#;
// ANCHOR_END: defined

// ANCHOR: template
/// Any coefficients of any type, of a degree that the compiler knows.
pub const TEMPLATE: &str = r#"
template <typename T, int DEGREE>
__global__ void polynomial(const T* x, T* y, size_t n, const T* coefficients) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        T sum = coefficients[DEGREE];
#pragma unroll
        for (int k = DEGREE - 1; k >= 0; --k) {
            sum = fma(sum, x[i], coefficients[k]);
        }
        y[i] = sum;
    }
}
"#;
// ANCHOR_END: template

/// The degree of the polynomial.
pub const DEGREE: usize = 24;

/// How much the compiler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// Nothing.
    Nothing,
    /// The degree.
    Degree,
    /// The degree and every coefficient.
    Everything,
}

impl Knows {
    /// In the order of the story.
    pub const ALL: [Knows; 3] = [Knows::Nothing, Knows::Degree, Knows::Everything];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Knows::Nothing => "nothing",
            Knows::Degree => "the degree",
            Knows::Everything => "the degree and the coefficients",
        }
    }

    // ANCHOR: sources
    /// The source to compile.
    pub fn source(self, coefficients: &[f32]) -> Source<'static> {
        let file = "polynomial.cu";
        match self {
            Knows::Nothing => Source { file, text: GENERAL, ..Source::default() },
            Knows::Degree => Source {
                file,
                text: TEMPLATE,
                instances: vec!["polynomial<float, 24>"],
                ..Source::default()
            },
            Knows::Everything => {
                let numbers: Vec<String> =
                    coefficients.iter().map(|number| format!("{number:e}f")).collect();
                let options = vec![format!("-DCOEFFICIENTS={}", numbers.join(","))];
                Source { file, text: DEFINED, options, ..Source::default() }
            }
        }
    }
    // ANCHOR_END: sources
}

/// The polynomial on the device, with numbers to put in.
pub struct Polynomial {
    knows: Knows,
    function: CudaFunction,
    stream: Arc<CudaStream>,
    coefficients: (Vec<f32>, CudaSlice<f32>),
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
    host_x: Vec<f32>,
    n: usize,
}

impl Polynomial {
    /// Compiles it for a device, with `n` numbers between 0 and 1 as its argument.
    ///
    /// # Errors
    /// When it does not compile or load, or the device has no room.
    pub fn new(context: &Arc<CudaContext>, knows: Knows, target: Target, n: usize) -> Result<Self> {
        Self::of(context, knows, target, n, cpu::exponential(DEGREE))
    }

    /// The polynomial x, which copies: the least that a kernel of this shape can do.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn identity(context: &Arc<CudaContext>, target: Target, n: usize) -> Result<Self> {
        Self::of(context, Knows::Everything, target, n, vec![0.0, 1.0])
    }

    fn of(
        context: &Arc<CudaContext>,
        knows: Knows,
        target: Target,
        n: usize,
        numbers: Vec<f32>,
    ) -> Result<Self> {
        let stream = context.default_stream();
        let image = nvrtc::compile(&knows.source(&numbers), target)?;
        let plain = if knows == Knows::Everything { "one_polynomial" } else { "polynomial" };
        let name = image.lowered.first().map_or(plain, String::as_str);
        let function =
            load(context, &image, target)?.load_function(name).context("looking the kernel up")?;
        // A part of them is enough to hold against the CPU; the device gets it over and over.
        let host_x = cpu::numbers(n.min(1 << 20), 1);
        let mut x = stream.alloc_zeros(n)?;
        for start in (0..n).step_by(host_x.len().max(1)) {
            let len = host_x.len().min(n - start);
            stream.memcpy_htod(&host_x[..len], &mut x.slice_mut(start..start + len))?;
        }
        let on_device = stream.clone_htod(&numbers)?;
        let y = stream.alloc_zeros(n)?;
        Ok(Self { knows, function, stream, coefficients: (numbers, on_device), x, y, host_x, n })
    }

    /// Registers a thread, as the driver says.
    ///
    /// # Errors
    /// When it does not.
    pub fn registers(&self) -> Result<u32> {
        Ok(u32::try_from(
            self.function.num_regs().context("asking for the registers of the polynomial")?,
        )?)
    }

    /// Enqueues the kernel.
    ///
    /// # Errors
    /// When the driver refuses it.
    pub fn launch(&mut self) -> Result<()> {
        if self.n == 0 {
            return Ok(()); // A grid of no blocks is an error to the driver.
        }
        let blocks = u32::try_from(self.n.div_ceil(BLOCK as usize))?;
        let shape = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (BLOCK, 1, 1),
            shared_mem_bytes: 0,
        };
        let degree = i32::try_from(DEGREE)?;
        let mut launch = self.stream.launch_builder(&self.function);
        launch.arg(&self.x).arg(&mut self.y).arg(&self.n);
        match self.knows {
            Knows::Nothing => launch.arg(&self.coefficients.1).arg(&degree),
            Knows::Degree => launch.arg(&self.coefficients.1),
            Knows::Everything => &mut launch,
        };
        // SAFETY: the arguments are those of the source, x and y have n elements, and the guard `i < n` keeps it inside.
        unsafe { launch.launch(shape) }.context("launching the polynomial")?;
        Ok(())
    }

    /// Holds the result against the CPU, bit for bit.
    ///
    /// # Errors
    /// Names the first element that is wrong.
    pub fn check(&self) -> Result<()> {
        let _check = lab::range("check");
        let last = self.n - self.n.min(self.host_x.len());
        for start in [0, last / self.host_x.len().max(1) * self.host_x.len()] {
            let len = self.host_x.len().min(self.n - start);
            let y = self.stream.clone_dtoh(&self.y.slice(start..start + len))?;
            for (i, (&x, &y)) in self.host_x.iter().zip(&y).enumerate() {
                let expected = cpu::polynomial(&self.coefficients.0, x);
                ensure!(y == expected, "element {} is {y}, and {expected} on the CPU", start + i);
            }
        }
        Ok(())
    }
}
