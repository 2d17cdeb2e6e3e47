//! cuDNN: convolution, and softmax.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::cudnn::{ConvForward, Cudnn, SoftmaxForward, sys};
use cudarc::driver::CudaSlice;
use lab::libraries::{Missing, ask};
use lab::{Cell, timing};

use crate::by_hand::{ByHand, Images};
use crate::cpu;
use crate::data::{Digits, SIDE};
use crate::device::Device;
use crate::outcome::{Call, Outcome};

const FUNCTIONS: [&str; 8] = [
    "cudnnCreate",
    "cudnnSetStream",
    "cudnnCreateTensorDescriptor",
    "cudnnCreateFilterDescriptor",
    "cudnnCreateConvolutionDescriptor",
    "cudnnGetConvolutionForwardAlgorithm_v7",
    "cudnnConvolutionForward",
    "cudnnSoftmaxForward",
];

/// Tensors lie image by image, channel by channel, row by row.
const ORDER: sys::cudnnTensorFormat_t = sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW;

/// cuDNN on a device's stream.
pub struct Dnn(Arc<Cudnn>);

impl Dnn {
    /// Asks for the library first.
    pub fn open(device: &Device) -> Result<Result<Self, Missing>> {
        if let Err(missing) = ask("cuDNN", &FUNCTIONS) {
            return Ok(Err(missing));
        }
        Ok(Ok(Self(Cudnn::new(device.stream.clone()).context("opening cuDNN")?)))
    }

    // ANCHOR: softmax
    /// Softmax of every row.
    pub fn softmax(
        &self,
        x: &CudaSlice<f32>,
        y: &mut CudaSlice<f32>,
        rows: usize,
        columns: usize,
    ) -> Result<()> {
        ensure!(
            x.len() >= rows * columns && y.len() >= rows * columns,
            "softmax: too little memory"
        );
        let shape = self.0.create_4d_tensor::<f32>(ORDER, [rows as i32, columns as i32, 1, 1])?;
        let mode = sys::cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_INSTANCE;
        let softmax = self.0.create_softmax::<f32>(mode)?;
        let operation = SoftmaxForward { softmax: &softmax, x: &shape, y: &shape };
        let algorithm = sys::cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_ACCURATE;
        // SAFETY: both hold rows × columns floats, as was checked.
        unsafe { operation.launch((1.0, 0.0), algorithm, x, y) }
            .context("calling cudnnSoftmaxForward")
    }
    // ANCHOR_END: softmax

    // ANCHOR: convolution
    /// Every image with every filter of 3 × 3, without a border; calls `with` with a function that
    /// enqueues it.
    pub fn convolution<R>(
        &self,
        device: &Device,
        shape: Images,
        with: impl FnOnce(
            &dyn Fn(&CudaSlice<f32>, &CudaSlice<f32>, &mut CudaSlice<f32>) -> Result<()>,
        ) -> Result<R>,
    ) -> Result<R> {
        let [images, height, width, count] =
            [shape.images, shape.height, shape.width, shape.filters].map(|size| size as i32);
        let x_shape = self.0.create_4d_tensor::<f32>(ORDER, [images, 1, height, width])?;
        let y_shape =
            self.0.create_4d_tensor::<f32>(ORDER, [images, count, height - 2, width - 2])?;
        let filter_shape = self.0.create_4d_filter::<f32>(ORDER, [count, 1, 3, 3])?;
        let mode = sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
        let mut conv = self.0.create_conv2d::<f32>([0, 0], [1, 1], [1, 1], mode)?;
        // Without this, tensor cores may round the factors to tf32.
        conv.set_math_type(sys::cudnnMathType_t::CUDNN_FMA_MATH)?;
        let operation = ConvForward { conv: &conv, x: &x_shape, w: &filter_shape, y: &y_shape };
        let algorithm = operation.pick_algorithm().context("asking cuDNN for an algorithm")?;
        let bytes = operation.get_workspace_size(algorithm)?;
        let workspace = std::cell::RefCell::new(device.zeros::<u8>(bytes)?);
        with(&|x, filters, y| {
            ensure!(
                x.len() >= shape.images * shape.height * shape.width
                    && filters.len() >= 9 * shape.filters
                    && y.len() >= shape.pixels(),
                "convolution: too little memory for {shape:?}"
            );
            let mut workspace = workspace.borrow_mut();
            // SAFETY: the memory holds what the shapes say, as was checked, and the workspace what
            // the algorithm asked for.
            unsafe { operation.launch(algorithm, Some(&mut *workspace), (1.0, 0.0), x, filters, y) }
                .context("calling cudnnConvolutionForward")
        })
    }
    // ANCHOR_END: convolution
}

/// Eight filters: edges in both directions, corners, and a blur.
pub const FILTERS: [[f32; 9]; 8] = [
    [1.0, 0.0, -1.0, 2.0, 0.0, -2.0, 1.0, 0.0, -1.0],
    [1.0, 2.0, 1.0, 0.0, 0.0, 0.0, -1.0, -2.0, -1.0],
    [2.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, -2.0],
    [0.0, 1.0, 2.0, -1.0, 0.0, 1.0, -2.0, -1.0, 0.0],
    [0.0, -1.0, 0.0, -1.0, 4.0, -1.0, 0.0, -1.0, 0.0],
    [-1.0, -1.0, -1.0, -1.0, 8.0, -1.0, -1.0, -1.0, -1.0],
    [0.0625, 0.125, 0.0625, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.0625],
    [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
];

/// The edges of all digits by hand and by cuDNN.
pub fn outcome(device: &Device, hand: &ByHand<'_>) -> Result<Outcome> {
    let digits = Digits::read();
    let shape = Images { images: digits.len(), height: SIDE, width: SIDE, filters: FILTERS.len() };
    let filters = FILTERS.concat();
    let expected = cpu::convolution(&digits.pixels, &filters, SIDE, SIDE);
    let (x, filters) = (device.copy(&digits.pixels)?, device.copy(&filters)?);
    let mut y = device.zeros::<f32>(shape.pixels())?;
    let time =
        timing::device(device.raw_stream(), |_| hand.convolution(&x, &filters, &mut y, shape))?;
    let hand_error = cpu::error(&device.fetch(&y, shape.pixels())?, &expected);
    ensure!(hand_error < 1e-5, "the convolution by hand is off by {hand_error}");
    let call = match Dnn::open(device)? {
        Err(missing) => Err(missing),
        Ok(dnn) => {
            device.stream.memset_zeros(&mut y)?;
            let time = dnn.convolution(device, shape, |enqueue| {
                timing::device(device.raw_stream(), |_| enqueue(&x, &filters, &mut y))
            })?;
            let error = cpu::error(&device.fetch(&y, shape.pixels())?, &expected);
            ensure!(error < 1e-5, "the convolution by cuDNN is off by {error}");
            Ok(Call { time, error })
        }
    };
    Ok(Outcome {
        what: "convolution",
        library: "cuDNN",
        by_hand: "a thread for each pixel",
        hand: time,
        hand_error,
        call,
    })
}

/// Rows of softmax by chapter 4's kernel and by cuDNN.
pub fn softmax_outcome(cell: &Cell, device: &Device, hand: &ByHand<'_>) -> Result<Outcome> {
    let columns = 1000;
    let rows = cell.largest(1 << 24) / columns;
    let host = cpu::numbers(rows * columns, 8);
    let x = device.copy(&host)?;
    let mut y = device.zeros::<f32>(rows * columns)?;
    let checked = rows.min(64);
    let expected: Vec<f64> =
        host.chunks_exact(columns).take(checked).flat_map(cpu::softmax).collect();
    let time = timing::device(device.raw_stream(), |_| hand.softmax(&x, &mut y, rows, columns))?;
    let hand_error = cpu::error(&device.fetch(&y, checked * columns)?, &expected);
    ensure!(hand_error < 1e-5, "softmax by hand is off by {hand_error}");
    let call = match Dnn::open(device)? {
        Err(missing) => Err(missing),
        Ok(dnn) => {
            device.stream.memset_zeros(&mut y)?;
            let time =
                timing::device(device.raw_stream(), |_| dnn.softmax(&x, &mut y, rows, columns))?;
            let error = cpu::error(&device.fetch(&y, checked * columns)?, &expected);
            ensure!(error < 1e-5, "softmax by cuDNN is off by {error}");
            Ok(Call { time, error })
        }
    };
    Ok(Outcome {
        what: "softmax",
        library: "cuDNN",
        by_hand: "chapter 4's kernel",
        hand: time,
        hand_error,
        call,
    })
}

/// The convolution of all digits in both ways.
pub fn convolution(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    outcome(&device, &ByHand::load(&device)?)?.tell(cell);
    Ok(())
}

/// Softmax in both ways.
pub fn softmax(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    softmax_outcome(cell, &device, &ByHand::load(&device)?)?.tell(cell);
    Ok(())
}
