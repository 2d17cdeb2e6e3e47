//! Matrices that lie row by row, for libraries that read column by column.
//!
//! BLAS comes from Fortran, where a matrix lies column by column. The floats of a matrix that lies
//! row by row are, read so, those of its transpose. And (a b)ᵀ is bᵀ aᵀ: whoever gives the two
//! matrices in the other order gets the product as its transpose, column by column, which is the
//! product row by row. Nothing is copied, and nothing is transposed.

use cudarc::cublas::GemmConfig;
use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};

/// The sizes of a product: `rows` × `inner` times `inner` × `columns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of the first matrix and of the product.
    pub rows: usize,
    /// Columns of the first matrix and rows of the second.
    pub inner: usize,
    /// Columns of the second matrix and of the product.
    pub columns: usize,
}

impl Sizes {
    /// Square matrices.
    pub fn square(n: usize) -> Self {
        Self { rows: n, inner: n, columns: n }
    }

    /// Multiplications and additions.
    pub fn operations(self) -> f64 {
        2.0 * self.rows as f64 * self.inner as f64 * self.columns as f64
    }

    // ANCHOR: row_major
    /// How BLAS computes `c = a b` of matrices that lie row by row: **pass it `b` first, then `a`**.
    /// What it takes for `m` are the columns of c, and the distance from column to column (the
    /// *leading dimension*) is the length of our rows.
    pub fn row_major<T>(self, alpha: T, beta: T) -> GemmConfig<T> {
        let [rows, inner, columns] = [self.rows, self.inner, self.columns].map(|size| size as i32);
        GemmConfig {
            transa: CUBLAS_OP_N,
            transb: CUBLAS_OP_N,
            m: columns,
            n: rows,
            k: inner,
            alpha,
            lda: columns,
            ldb: inner,
            beta,
            ldc: columns,
        }
    }
    // ANCHOR_END: row_major

    /// As [`row_major`](Self::row_major), for `c = aᵀ b`, where `a` lies as `inner` rows of `rows`
    /// elements.
    pub fn row_major_transposed<T>(self, alpha: T, beta: T) -> GemmConfig<T> {
        let plain = self.row_major(alpha, beta);
        GemmConfig { transb: CUBLAS_OP_T, ldb: self.rows as i32, ..plain }
    }

    /// As [`row_major`](Self::row_major), for `c = a bᵀ`, where `b` lies as `columns` rows of `inner`
    /// elements.
    pub fn row_major_by_transposed<T>(self, alpha: T, beta: T) -> GemmConfig<T> {
        let plain = self.row_major(alpha, beta);
        GemmConfig { transa: CUBLAS_OP_T, lda: self.inner as i32, ..plain }
    }
}

/// What BLAS does with a configuration, as its manual says it: `c = alpha op(a) op(b) + beta c`, all
/// column by column. For tests of the above, which need no library then.
pub fn as_the_manual_says(config: GemmConfig<f32>, a: &[f32], b: &[f32], c: &mut [f32]) {
    let at = |matrix: &[f32], transposed: bool, distance: i32, row: i32, column: i32| {
        let (row, column) = if transposed { (column, row) } else { (row, column) };
        matrix[(row + column * distance) as usize]
    };
    for column in 0..config.n {
        for row in 0..config.m {
            let sum: f32 = (0..config.k)
                .map(|k| {
                    at(a, config.transa == CUBLAS_OP_T, config.lda, row, k)
                        * at(b, config.transb == CUBLAS_OP_T, config.ldb, k, column)
                })
                .sum();
            let place = &mut c[(row + column * config.ldc) as usize];
            *place = config.alpha * sum + config.beta * *place;
        }
    }
}
