//! What can be wrong with a load or a launch.

use std::fmt;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// A kernel that was not loaded or not launched. The message says what was done, with what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The driver refused the PTX.
    Load {
        /// The kernel.
        kernel: &'static str,
        /// What the driver answered.
        source: DriverError,
        /// What its compiler said; may be empty.
        log: String,
    },
    /// A slice has another length than the kernel's signature says.
    Length {
        /// The kernel.
        kernel: &'static str,
        /// The argument.
        argument: &'static str,
        /// Its length.
        length: usize,
        /// The length that it must have, as the signature writes it, such as `4 * blocks`.
        rule: &'static str,
        /// The same as a number.
        expected: u128,
    },
    /// A slice begins where the kernel's wide loads cannot.
    Alignment {
        /// The kernel.
        kernel: &'static str,
        /// The argument.
        argument: &'static str,
        /// The bytes that its address must be a multiple of.
        alignment: u64,
        /// The same in elements.
        elements: u64,
    },
    /// The stream or an argument belongs to another device than the kernel.
    OtherDevice {
        /// The kernel.
        kernel: &'static str,
        /// `stream`, or the argument.
        argument: &'static str,
    },
    /// More blocks than a grid can have.
    Grid {
        /// The kernel.
        kernel: &'static str,
        /// The blocks that were wanted.
        blocks: u128,
        /// Threads in each.
        threads: u32,
    },
    /// More rows or layers of blocks than a grid in two or three dimensions can have.
    Rows {
        /// The kernel.
        kernel: &'static str,
        /// The rows or layers that were wanted.
        rows: u128,
    },
    /// An argument is larger than the kernel can handle.
    Limit {
        /// The kernel.
        kernel: &'static str,
        /// The argument.
        argument: &'static str,
        /// Its value.
        value: u128,
        /// The largest value that the kernel is right for.
        most: u128,
    },
    /// The driver refused the launch, or reports the failure of earlier work.
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// What the driver answered.
        source: DriverError,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Load { kernel, source, log } => {
                write!(formatter, "loading {kernel}: {source}{}", advice(*source))?;
                match log.trim() {
                    "" => Ok(()),
                    log => write!(formatter, "\n{log}"),
                }
            }
            Error::Length { kernel, argument, length, rule, expected } => {
                write!(
                    formatter,
                    "launching {kernel}: `{argument}` has {length} elements and must have {rule}"
                )?;
                if rule.parse::<u128>().is_ok() { Ok(()) } else { write!(formatter, " = {expected}") }
            }
            Error::Alignment { kernel, argument, alignment, elements } => write!(
                formatter,
                "launching {kernel}: `{argument}` does not begin at a multiple of {alignment} bytes; pass a slice that \
                 begins at a multiple of {elements} elements"
            ),
            Error::OtherDevice { kernel, argument } => write!(
                formatter,
                "launching {kernel}: `{argument}` belongs to another device than the kernel; load the kernel there too"
            ),
            Error::Grid { kernel, blocks, threads } => write!(
                formatter,
                "launching {kernel}: {blocks} blocks of {threads} threads exceed the {} blocks of a grid; launch it on \
                 parts of the data",
                crate::handle::MOST_BLOCKS
            ),
            Error::Rows { kernel, rows } => write!(
                formatter,
                "launching {kernel}: {rows} rows (or layers) of blocks exceed the {} of a grid; launch it on parts of the data",
                crate::handle::MOST_ROWS_OF_BLOCKS
            ),
            Error::Limit { kernel, argument, value, most } => write!(
                formatter,
                "launching {kernel}: `{argument}` is {value}, and this kernel is right up to {most}; take another step of \
                 the same operation"
            ),
            Error::Launch { kernel, source } => write!(formatter, "launching {kernel}: {source}"),
        }
    }
}

impl std::error::Error for Error {}

/// What to do about a refused PTX.
fn advice(error: DriverError) -> &'static str {
    match error.0 {
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "; the driver is older than the PTX: install a driver of CUDA 12 or later"
        }
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU | CUresult::CUDA_ERROR_INVALID_PTX => {
            "; the first lines of the PTX say what it was compiled for, and `cargo kernels` makes it anew"
        }
        CUresult::CUDA_ERROR_NOT_SUPPORTED => "; the device cannot run what this kernel uses",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_with_what_and_what_to_do() {
        let kernel = "vector_add_03_float4";
        let length = Error::Length { kernel, argument: "b", length: 999, rule: "n", expected: 1000 };
        assert_eq!(
            length.to_string(),
            "launching vector_add_03_float4: `b` has 999 elements and must have n = 1000"
        );
        let alignment = Error::Alignment { kernel, argument: "a", alignment: 16, elements: 4 };
        assert_eq!(
            alignment.to_string(),
            "launching vector_add_03_float4: `a` does not begin at a multiple of 16 bytes; pass a slice that begins at a \
             multiple of 4 elements"
        );
        let grid = Error::Grid { kernel, blocks: 1 << 40, threads: 256 };
        assert!(grid.to_string().contains("exceed the 2147483647 blocks of a grid"), "{grid}");
        let rows = Error::Rows { kernel: "transpose_01_naive", rows: 70_000 };
        assert!(
            rows.to_string().contains("70000 rows (or layers) of blocks exceed the 65535 of a grid"),
            "{rows}"
        );
        let limit = Error::Limit { kernel, argument: "columns", value: 4097, most: 4096 };
        assert_eq!(
            limit.to_string(),
            "launching vector_add_03_float4: `columns` is 4097, and this kernel is right up to 4096; take another step of \
             the same operation"
        );
    }
}
