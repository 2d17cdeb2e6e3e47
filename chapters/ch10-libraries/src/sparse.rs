//! cuSPARSE: the images as a sparse matrix, times a dense one.

use std::ffi::c_void;

use anyhow::{Result, anyhow, ensure};
use cudarc::cusparse::{result, sys};
use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};
use lab::libraries::{Missing, ask};
use lab::{Cell, Table, row, timing};

use crate::by_hand::{ByHand, DeviceSparse};
use crate::cpu;
use crate::data::{Digits, PIXELS, Sparse};
use crate::device::Device;
use crate::outcome::{Call, Outcome};

const FUNCTIONS: [&str; 6] = [
    "cusparseCreate",
    "cusparseSetStream",
    "cusparseCreateCsr",
    "cusparseCreateDnMat",
    "cusparseSpMM_bufferSize",
    "cusparseSpMM",
];

/// A product of a sparse and a dense matrix that cuSPARSE has been told everything about.
pub struct Product {
    handle: sys::cusparseHandle_t,
    sparse: sys::cusparseSpMatDescr_t,
    dense: [sys::cusparseDnMatDescr_t; 2],
    workspace: CudaSlice<u8>,
}

impl Product {
    /// Describes `c = a b`, with `columns` columns of `b` and `c`, row by row.
    pub fn prepare(
        device: &Device,
        a: &DeviceSparse,
        b: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
        columns: usize,
    ) -> Result<Result<Self, Missing>> {
        if let Err(missing) = ask("cuSPARSE", &FUNCTIONS) {
            return Ok(Err(missing));
        }
        ensure!(
            b.len() >= a.columns * columns && c.len() >= a.rows * columns,
            "the dense matrices do not fit the sparse one"
        );
        let stream = &device.stream;
        let pointer = |address: u64| address as *mut c_void;
        let mut product = Self {
            handle: result::create().map_err(|error| anyhow!("opening cuSPARSE: {error:?}"))?,
            sparse: std::ptr::null_mut(),
            dense: [std::ptr::null_mut(); 2],
            workspace: device.zeros(1)?,
        };
        let (offsets, _o) = a.offsets.device_ptr(stream);
        let (indices, _i) = a.indices.device_ptr(stream);
        let (values, _v) = a.values.device_ptr(stream);
        let (on_b, _b) = b.device_ptr(stream);
        let (on_c, _c) = c.device_ptr_mut(stream);
        let mut bytes = 0;
        // ANCHOR: describe
        // SAFETY: the arrays hold what the numbers say, as `Sparse::compress` made them and as was
        // checked above; the library writes the descriptors and the number of bytes.
        unsafe {
            told(sys::cusparseSetStream(product.handle, stream.cu_stream().cast()))?;
            told(sys::cusparseCreateCsr(
                &mut product.sparse,
                a.rows as i64,
                a.columns as i64,
                a.stored as i64,
                pointer(offsets),
                pointer(indices),
                pointer(values),
                sys::cusparseIndexType_t::CUSPARSE_INDEX_32I,
                sys::cusparseIndexType_t::CUSPARSE_INDEX_32I,
                sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
                sys::cudaDataType_t::CUDA_R_32F,
            ))?;
            let matrices = [(a.columns, on_b), (a.rows, on_c)];
            for (dense, (rows, memory)) in product.dense.iter_mut().zip(matrices) {
                told(sys::cusparseCreateDnMat(
                    dense,
                    rows as i64,
                    columns as i64,
                    columns as i64,
                    pointer(memory),
                    sys::cudaDataType_t::CUDA_R_32F,
                    sys::cusparseOrder_t::CUSPARSE_ORDER_ROW,
                ))?;
            }
            let (one, zero) = (1.0f32, 0.0f32);
            told(sys::cusparseSpMM_bufferSize(
                product.handle,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                std::ptr::from_ref(&one).cast(),
                product.sparse.cast_const(),
                product.dense[0].cast_const(),
                std::ptr::from_ref(&zero).cast(),
                product.dense[1],
                sys::cudaDataType_t::CUDA_R_32F,
                sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_ALG_DEFAULT,
                &mut bytes,
            ))?;
        }
        // ANCHOR_END: describe
        product.workspace = device.zeros(bytes)?;
        Ok(Ok(product))
    }

    /// Enqueues the product of the matrices that were described.
    ///
    /// # Safety
    /// The memory that [`prepare`](Self::prepare) was given must still be there.
    pub unsafe fn enqueue(&self, device: &Device) -> Result<()> {
        let (workspace, _workspace) = self.workspace.device_ptr(&device.stream);
        let (one, zero) = (1.0f32, 0.0f32);
        // SAFETY: the descriptors are alive, the caller keeps their memory, and the workspace is as
        // large as the library asked for.
        told(unsafe {
            sys::cusparseSpMM(
                self.handle,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
                std::ptr::from_ref(&one).cast(),
                self.sparse.cast_const(),
                self.dense[0].cast_const(),
                std::ptr::from_ref(&zero).cast(),
                self.dense[1],
                sys::cudaDataType_t::CUDA_R_32F,
                sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_ALG_DEFAULT,
                workspace as *mut c_void,
            )
        })
    }
}

/// What cuSPARSE answered, as an error of ours: cudarc's own is none for Rust.
fn told(status: sys::cusparseStatus_t) -> Result<()> {
    status.result().map_err(|error| anyhow!("calling cuSPARSE for a product: {error:?}"))
}

impl Drop for Product {
    fn drop(&mut self) {
        // SAFETY: they came from `prepare`, or are null, and are destroyed only here.
        unsafe {
            if !self.sparse.is_null() {
                let _ = sys::cusparseDestroySpMat(self.sparse.cast_const());
            }
            for dense in self.dense.into_iter().filter(|dense| !dense.is_null()) {
                let _ = sys::cusparseDestroyDnMat(dense.cast_const());
            }
            let _ = result::destroy(self.handle);
        }
    }
}

/// Columns of the dense matrix.
const COLUMNS: usize = 256;

/// The product by hand and by cuSPARSE.
pub fn outcome(device: &Device, hand: &ByHand<'_>) -> Result<Outcome> {
    let digits = Digits::read();
    let sparse = Sparse::compress(&digits.pixels, PIXELS);
    let a = DeviceSparse::copy(device, &sparse)?;
    let dense = cpu::numbers(PIXELS * COLUMNS, 7);
    let b = device.copy(&dense)?;
    let elements = a.rows * COLUMNS;
    let mut c = device.zeros::<f32>(elements)?;
    let expected = cpu::product(&digits.pixels, &dense, digits.len(), PIXELS, COLUMNS);

    let time = timing::device(device.raw_stream(), |_| hand.sparse(&a, &b, &mut c, COLUMNS))?;
    let hand_error = cpu::error(&device.fetch(&c, elements)?, &expected);
    ensure!(hand_error < 1e-5, "the sparse product by hand is off by {hand_error}");
    device.stream.memset_zeros(&mut c)?;
    let call = match Product::prepare(device, &a, &b, &mut c, COLUMNS)? {
        Err(missing) => Err(missing),
        Ok(product) => {
            // SAFETY: a, b and c live until the end of this function, and the work is awaited.
            let time = timing::device(device.raw_stream(), |_| unsafe { product.enqueue(device) })?;
            let error = cpu::error(&device.fetch(&c, elements)?, &expected);
            ensure!(error < 1e-5, "the product by cuSPARSE is off by {error}");
            Ok(Call { time, error })
        }
    };
    Ok(Outcome {
        what: "sparse product",
        library: "cuSPARSE",
        by_hand: "a thread for each element",
        hand: time,
        hand_error,
        call,
    })
}

/// What the images look like as a sparse matrix, and both ways.
pub fn sparse(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let digits = Digits::read();
    let sparse = Sparse::compress(&digits.pixels, PIXELS);
    cell.value("rows", sparse.rows() as f64, "");
    cell.value("stored", sparse.values.len() as f64, "");
    let share = 100.0 * sparse.values.len() as f64 / digits.pixels.len() as f64;
    cell.value("share", share, "%");
    outcome(&device, &ByHand::load(&device)?)?.tell(cell);

    // The same images as a dense matrix, by the tiled kernel: what do the zeros cost?
    let hand = ByHand::load(&device)?;
    let (a, b) = (device.copy(&digits.pixels)?, device.copy(&cpu::numbers(PIXELS * COLUMNS, 7))?);
    let mut c = device.zeros::<f32>(digits.len() * COLUMNS)?;
    let sizes = crate::layout::Sizes { rows: digits.len(), inner: PIXELS, columns: COLUMNS };
    let tiled = timing::device(device.raw_stream(), |_| hand.matmul(sizes, &a, &b, &mut c))?;
    let dense = match crate::blas::Blas::open(&device)? {
        Ok(blas) => timing::device(device.raw_stream(), |_| blas.product(sizes, &a, &b, &mut c))?,
        Err(_) => None,
    };
    let mut table = Table::new("with_zeros").measured("with the zeros", "").measured("time", "s");
    table.push(row!["tiled kernel", tiled.map(timing::Timing::seconds)]);
    table.push(row!["cuBLAS", dense.map(timing::Timing::seconds)]);
    cell.table(table);
    cell.measured("dense", dense.map(timing::Timing::seconds), "s");
    Ok(())
}
