//! The ladder: seven kernels that turn rows into columns.

use std::sync::Arc;

use anyhow::{Result, ensure};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use kernels::{
    Error, transpose_01_naive, transpose_02_tiled, transpose_03_padded, transpose_04_swizzled,
    transpose_05_wide, transpose_06_order, transpose_07_registers,
};

use crate::addresses::WARP;

/// The steps that the transpose goes through, each one idea away from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads rows, writes columns.
    Naive,
    /// Turns a tile around in shared memory.
    Tiled,
    /// The same, with a column more than the tile needs.
    Padded,
    /// The same, with the columns of the tile exchanged instead.
    Swizzled,
    /// 16 bytes at a time, 16 elements a thread.
    Wide,
    /// The same, the blocks along the rows of the result.
    Order,
    /// A failure: without shared memory.
    Registers,
}

impl Step {
    /// In the order of the story.
    pub const ALL: [Step; 7] = [
        Step::Naive,
        Step::Tiled,
        Step::Padded,
        Step::Swizzled,
        Step::Wide,
        Step::Order,
        Step::Registers,
    ];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Naive => "naive",
            Step::Tiled => "tiled",
            Step::Padded => "padded",
            Step::Swizzled => "swizzled",
            Step::Wide => "wide",
            Step::Order => "order",
            Step::Registers => "registers",
        }
    }

    // ANCHOR: word
    /// The word of shared memory at which a tile of 32 × 32 holds an element; `None` for the steps
    /// that have no such tile.
    pub fn word(self, row: usize, column: usize) -> Option<usize> {
        match self {
            Step::Tiled => Some(32 * row + column),
            Step::Padded => Some(33 * row + column),
            Step::Swizzled => Some(32 * row + (column ^ row)),
            Step::Naive | Step::Wide | Step::Order | Step::Registers => None,
        }
    }

    /// The words that the lanes of a warp want when they store row `access` of the tile.
    pub fn stored(self, access: usize) -> impl Iterator<Item = usize> {
        (0..WARP).filter_map(move |lane| self.word(access, lane))
    }

    /// The words that they want when they load column `access` of the tile.
    pub fn loaded(self, access: usize) -> impl Iterator<Item = usize> {
        (0..WARP).filter_map(move |lane| self.word(lane, access))
    }
    // ANCHOR_END: word
}

/// One of the transpose kernels, loaded.
pub enum Transposer {
    /// Step 1.
    Naive(transpose_01_naive::Kernel),
    /// Step 2.
    Tiled(transpose_02_tiled::Kernel),
    /// Step 3.
    Padded(transpose_03_padded::Kernel),
    /// Step 4.
    Swizzled(transpose_04_swizzled::Kernel),
    /// Step 5.
    Wide(transpose_05_wide::Kernel),
    /// Step 6.
    Order(transpose_06_order::Kernel),
    /// The failure.
    Registers(transpose_07_registers::Kernel),
}

impl Transposer {
    /// Loads the kernel of a step.
    pub fn load(step: Step, context: &Arc<CudaContext>) -> Result<Self, Error> {
        Ok(match step {
            Step::Naive => Self::Naive(transpose_01_naive::Kernel::load(context)?),
            Step::Tiled => Self::Tiled(transpose_02_tiled::Kernel::load(context)?),
            Step::Padded => Self::Padded(transpose_03_padded::Kernel::load(context)?),
            Step::Swizzled => Self::Swizzled(transpose_04_swizzled::Kernel::load(context)?),
            Step::Wide => Self::Wide(transpose_05_wide::Kernel::load(context)?),
            Step::Order => Self::Order(transpose_06_order::Kernel::load(context)?),
            Step::Registers => Self::Registers(transpose_07_registers::Kernel::load(context)?),
        })
    }

    /// Enqueues `c = aᵀ`, for a matrix of `rows` × `columns` floats.
    pub fn launch(
        &self,
        stream: &CudaStream,
        a: &dyn DevicePtr<f32>,
        c: &mut dyn DevicePtrMut<f32>,
        rows: u32,
        columns: u32,
    ) -> Result<(), Error> {
        // Each kernel has a type of its own for its arguments, with the same names in it.
        macro_rules! launch {
            ($kernel:expr, $module:ident) => {
                $kernel.launch(stream, $module::Arguments { a, c, rows, columns })
            };
        }
        match self {
            Self::Naive(kernel) => launch!(kernel, transpose_01_naive),
            Self::Tiled(kernel) => launch!(kernel, transpose_02_tiled),
            Self::Padded(kernel) => launch!(kernel, transpose_03_padded),
            Self::Swizzled(kernel) => launch!(kernel, transpose_04_swizzled),
            Self::Wide(kernel) => launch!(kernel, transpose_05_wide),
            Self::Order(kernel) => launch!(kernel, transpose_06_order),
            Self::Registers(kernel) => launch!(kernel, transpose_07_registers),
        }
    }

    /// `aᵀ`, there and back.
    pub fn transpose(
        &self,
        stream: &Arc<CudaStream>,
        a: &[f32],
        rows: usize,
        columns: usize,
    ) -> Result<Vec<f32>> {
        ensure!(
            a.len() == rows * columns,
            "transposing {} floats as {rows} × {columns}: a matrix of that size has {}",
            a.len(),
            rows * columns
        );
        if a.is_empty() {
            return Ok(Vec::new()); // Memory of no bytes cannot be allocated.
        }
        let device_a = stream.clone_htod(a)?;
        let mut device_c: CudaSlice<f32> = stream.clone_htod(&vec![f32::NAN; a.len()])?;
        let (rows, columns) = (u32::try_from(rows)?, u32::try_from(columns)?);
        self.launch(stream, &device_a, &mut device_c, rows, columns)?;
        Ok(stream.clone_dtoh(&device_c)?)
    }
}

/// `aᵀ` by any of the kernels, for any size: what the tests call.
pub fn transpose(step: Step, a: &[f32], rows: usize, columns: usize) -> Result<Vec<f32>> {
    let context = lab::open_device()?;
    Transposer::load(step, &context)?.transpose(&context.default_stream(), a, rows, columns)
}
