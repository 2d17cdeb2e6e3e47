//! What can be done without a library: the kernels of this chapter and of those before, on host
//! slices for tests and on device memory for the cells.

use anyhow::{Result, ensure};
use cudarc::driver::CudaSlice;

use crate::data::Sparse;
use crate::device::Device;
use crate::layout::Sizes;

/// The kernels, loaded.
pub struct ByHand<'a> {
    device: &'a Device,
    matmul: kernels::matmul_01_tiled::Kernel,
    gelu: kernels::gelu_01_bias::Kernel,
    sparse: kernels::sparse_01_row::Kernel,
    convolution: kernels::convolution_01_direct::Kernel,
    random: kernels::random_01_mix::Kernel,
    softmax: kernels::softmax_04_warp::Kernel,
    transpose: kernels::transpose_03_padded::Kernel,
}

/// A sparse matrix in device memory.
pub struct DeviceSparse {
    /// As [`Sparse::offsets`].
    pub offsets: CudaSlice<u32>,
    /// As [`Sparse::indices`].
    pub indices: CudaSlice<u32>,
    /// As [`Sparse::values`].
    pub values: CudaSlice<f32>,
    /// Stored elements.
    pub stored: usize,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
}

impl DeviceSparse {
    /// Copies a matrix to the device.
    pub fn copy(device: &Device, sparse: &Sparse) -> Result<Self> {
        Ok(Self {
            offsets: device.copy(&sparse.offsets)?,
            indices: device.copy(&sparse.indices)?,
            values: device.copy(&sparse.values)?,
            stored: sparse.values.len(),
            rows: sparse.rows(),
            columns: sparse.columns,
        })
    }
}

impl<'a> ByHand<'a> {
    /// Loads all of them.
    pub fn load(device: &'a Device) -> Result<Self> {
        let context = &device.context;
        Ok(Self {
            device,
            matmul: kernels::matmul_01_tiled::Kernel::load(context)?,
            gelu: kernels::gelu_01_bias::Kernel::load(context)?,
            sparse: kernels::sparse_01_row::Kernel::load(context)?,
            convolution: kernels::convolution_01_direct::Kernel::load(context)?,
            random: kernels::random_01_mix::Kernel::load(context)?,
            softmax: kernels::softmax_04_warp::Kernel::load(context)?,
            transpose: kernels::transpose_03_padded::Kernel::load(context)?,
        })
    }

    /// `c = a b`, all row by row.
    pub fn matmul(
        &self,
        sizes: Sizes,
        a: &CudaSlice<f32>,
        b: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let Sizes { rows, inner, columns } = sizes;
        if rows * columns == 0 {
            return Ok(());
        }
        let arguments = kernels::matmul_01_tiled::Arguments {
            a: &a.slice(..rows * inner),
            b: &b.slice(..inner * columns),
            c: &mut c.slice_mut(..rows * columns),
            rows: rows as u32,
            inner: inner as u32,
            columns: columns as u32,
        };
        Ok(self.matmul.launch(&self.device.stream, arguments)?)
    }

    /// `y = gelu(x + bias)` for a matrix with a bias for each column.
    pub fn gelu(
        &self,
        x: &CudaSlice<f32>,
        bias: &CudaSlice<f32>,
        y: &mut CudaSlice<f32>,
        rows: usize,
        columns: usize,
    ) -> Result<()> {
        let arguments = kernels::gelu_01_bias::Arguments {
            x: &x.slice(..rows * columns),
            bias: &bias.slice(..columns),
            y: &mut y.slice_mut(..rows * columns),
            rows: rows as u32,
            columns: columns as u32,
        };
        Ok(self.gelu.launch(&self.device.stream, arguments)?)
    }

    /// `c = a b` with a sparse `a`, and `columns` columns of `b`.
    pub fn sparse(
        &self,
        a: &DeviceSparse,
        b: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
        columns: usize,
    ) -> Result<()> {
        let arguments = kernels::sparse_01_row::Arguments {
            offsets: &a.offsets,
            indices: &a.indices.slice(..a.stored),
            values: &a.values.slice(..a.stored),
            b: &b.slice(..a.columns * columns),
            c: &mut c.slice_mut(..a.rows * columns),
            stored: a.stored as u32,
            rows: a.rows as u32,
            inner: a.columns as u32,
            columns: columns as u32,
        };
        Ok(self.sparse.launch(&self.device.stream, arguments)?)
    }

    /// Every image with every filter of 3 × 3.
    pub fn convolution(
        &self,
        x: &CudaSlice<f32>,
        filters: &CudaSlice<f32>,
        y: &mut CudaSlice<f32>,
        shape: Images,
    ) -> Result<()> {
        let arguments = kernels::convolution_01_direct::Arguments {
            x: &x.slice(..shape.images * shape.height * shape.width),
            filters: &filters.slice(..9 * shape.filters),
            y: &mut y.slice_mut(..shape.pixels()),
            images: shape.images as u32,
            height: shape.height as u32,
            width: shape.width as u32,
            count: shape.filters as u32,
        };
        Ok(self.convolution.launch(&self.device.stream, arguments)?)
    }

    /// `n` floats in [0, 1).
    pub fn random(&self, c: &mut CudaSlice<f32>, n: usize, seed: u64) -> Result<()> {
        let arguments =
            kernels::random_01_mix::Arguments { c: &mut c.slice_mut(..n), n: n as u64, seed };
        Ok(self.random.launch(&self.device.stream, arguments)?)
    }

    /// Softmax of rows of up to 1024 floats, by the kernel of chapter 4.
    pub fn softmax(
        &self,
        x: &CudaSlice<f32>,
        y: &mut CudaSlice<f32>,
        rows: usize,
        columns: usize,
    ) -> Result<()> {
        ensure!(
            columns <= 1024,
            "softmax by a warp takes rows of up to 1024 floats, not {columns}"
        );
        let arguments = kernels::softmax_04_warp::Arguments {
            x: &x.slice(..rows * columns),
            y: &mut y.slice_mut(..rows * columns),
            rows: rows as u32,
            columns: columns as u32,
        };
        Ok(self.softmax.launch(&self.device.stream, arguments)?)
    }

    /// Rows and columns exchanged, by the kernel of chapter 3.
    pub fn transpose(
        &self,
        a: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
        rows: usize,
        columns: usize,
    ) -> Result<()> {
        let arguments = kernels::transpose_03_padded::Arguments {
            a: &a.slice(..rows * columns),
            c: &mut c.slice_mut(..rows * columns),
            rows: rows as u32,
            columns: columns as u32,
        };
        Ok(self.transpose.launch(&self.device.stream, arguments)?)
    }
}

/// Sizes of a convolution with filters of 3 × 3 and without a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// How many images.
    pub images: usize,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// How many filters.
    pub filters: usize,
}

impl Images {
    /// Pixels of all results.
    pub fn pixels(self) -> usize {
        self.images * self.filters * self.height.saturating_sub(2) * self.width.saturating_sub(2)
    }
}
