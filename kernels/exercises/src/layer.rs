//! Exercises on what follows a product: runs a reader's kernel on a matrix with a bias for each column, and says in the
//! words of the lesson what it did wrong.
//!
//! Every one has the signature `(const float* x, const float* bias, float* y, unsigned int rows, unsigned int columns)` and
//! a thread for each element. `y` lies row by row.

use std::sync::Arc;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use serde::Deserialize;

use crate::judge::number;
use crate::run::{Stop, UNTOUCHED};

/// What an exercise on a layer expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// What `y` holds afterwards.
    pub result: Outputs,
}

/// What `y` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// `x` plus the bias of the column.
    Biased,
    /// The same, of an `x` that lies column by column.
    BiasedColumns,
    /// GELU with tanh of `x` plus the bias of the column.
    Gelu,
}

/// Rows and columns of the check, the most telling first.
pub const LAYERS: [(u32, u32); 6] = [(33, 65), (64, 96), (100, 31), (1, 40), (5, 1), (1, 1)];

const BLOCK: u32 = 256;
/// A bias is a multiple of this, and an element of `x` less: so a sum says what it was made of. Floats hold every whole
/// number of this size.
const STEP: usize = 8192;

fn x_at(wanted: Outputs, i: usize) -> f32 {
    match wanted {
        Outputs::Gelu => ((i * 37) % 101) as f32 / 16.0 - 3.0,
        _ => 1.0 + i as f32,
    }
}

fn bias_at(wanted: Outputs, column: usize) -> f32 {
    match wanted {
        Outputs::Gelu => (column % 7) as f32 / 8.0 - 0.25,
        _ => ((column + 1) * STEP) as f32,
    }
}

/// Runs a kernel once, in memory of the exact size. What it did not write is [`UNTOUCHED`].
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn compute(
    context: &Arc<CudaContext>,
    (kernel, ptx): (&str, &str),
    wanted: Outputs,
    (rows, columns): (u32, u32),
) -> Result<Vec<f32>, Stop> {
    if !has_signature(ptx, kernel) {
        return Err(Stop::Signature);
    }
    let module = context.load_module(Ptx::from_src(ptx)).map_err(Stop::Setup)?;
    let function = module.load_function(kernel).map_err(Stop::Setup)?;
    let stream = context.default_stream();
    let n = rows as usize * columns as usize;
    let x: Vec<f32> = (0..n).map(|i| x_at(wanted, i)).collect();
    let bias: Vec<f32> = (0..columns as usize).map(|column| bias_at(wanted, column)).collect();
    let (x, bias) =
        (stream.clone_htod(&x).map_err(Stop::Setup)?, stream.clone_htod(&bias).map_err(Stop::Setup)?);
    let mut y = stream.clone_htod(&vec![f32::from_bits(UNTOUCHED); n]).map_err(Stop::Setup)?;
    let config = LaunchConfig {
        grid_dim: ((rows * columns).div_ceil(BLOCK), 1, 1),
        block_dim: (BLOCK, 1, 1),
        shared_mem_bytes: 0,
    };
    {
        let mut builder = stream.launch_builder(&function);
        builder.arg(&x).arg(&bias).arg(&mut y).arg(&rows).arg(&columns);
        // SAFETY: the parameters are those of the signature, which was read from the PTX above. What the kernel does with
        // the memory is the reader's work: this program is there to find out, and ends afterwards.
        unsafe { builder.launch(config) }.map_err(|error| Stop::Kernel(error, n))?;
    }
    stream.synchronize().map_err(|error| Stop::Kernel(error, n))?;
    stream.clone_dtoh(&y).map_err(|error| Stop::Kernel(error, n))
}

/// Whether PTX holds a kernel of this name with three pointers and two 32-bit numbers.
fn has_signature(ptx: &str, kernel: &str) -> bool {
    let list = ptx.split_once(&format!(".entry {kernel}(")).and_then(|(_, rest)| rest.split_once(')'));
    list.is_some_and(|(list, _)| {
        list.matches(".param .u64 ").count() == 3 && list.matches(".param .u32 ").count() == 2
    })
}

/// What is wrong with the elements of `y`, in one or two sentences; `None` if nothing is.
pub fn complaint(wanted: Outputs, (rows, columns): (u32, u32), y: &[f32]) -> Option<String> {
    let columns = columns as usize;
    let place = |i: usize| format!("y[{}][{}]", number(i / columns), number(i % columns));
    let head = format!("With {rows} × {columns} elements, ");
    if let Some(i) = y.iter().position(|y| y.to_bits() == UNTOUCHED) {
        return Some(format!("{head}{} was never written.", place(i)));
    }
    let reason = match wanted {
        Outputs::Gelu => wrong_gelu(columns, y, place)?,
        _ => wrong_sum(wanted, rows as usize, columns, y, place)?,
    };
    Some(head + &reason)
}

fn wrong_sum(
    wanted: Outputs,
    rows: usize,
    columns: usize,
    y: &[f32],
    place: impl Fn(usize) -> String,
) -> Option<String> {
    let source = |i: usize| match wanted {
        Outputs::BiasedColumns => i / columns + i % columns * rows,
        _ => i,
    };
    let expected = |i: usize| x_at(wanted, source(i)) + bias_at(wanted, i % columns);
    let i = (0..y.len()).find(|&i| y[i] != expected(i))?;
    let found = y[i] as usize;
    let (row, column) = (i / columns, i % columns);
    let (bias, x) = ((found / STEP).checked_sub(1), (found % STEP).checked_sub(1));
    Some(match (bias, x) {
        (None, Some(x)) if x == source(i) => {
            format!("{} has no bias: it is x alone.", place(i))
        }
        (Some(bias), Some(x)) if x == source(i) && bias == row => format!(
            "{} got bias[{bias}], the one of its row. There is a bias for each column, the same for all rows: bias[{column}].",
            place(i)
        ),
        (Some(bias), Some(x)) if x == source(i) => {
            format!("{} got bias[{bias}] and should get bias[{column}], the one of its column.", place(i))
        }
        (Some(bias), Some(x)) if bias == column && x == i => format!(
            "{} was made of x[{x}]. That is the place of row {row}, column {column} in a matrix that lies row by row. This one \
             lies column by column: a column holds {rows} elements, so it is x[{}].",
            place(i),
            source(i)
        ),
        (_, Some(x)) if x < y.len() => {
            format!("{} was made of x[{x}] and should be made of x[{}].", place(i), source(i))
        }
        _ => format!("{} is {} and should be {}.", place(i), y[i], expected(i)),
    })
}

fn wrong_gelu(columns: usize, y: &[f32], place: impl Fn(usize) -> String) -> Option<String> {
    let inputs = |i: usize| {
        let x = f64::from(x_at(Outputs::Gelu, i));
        (x, x + f64::from(bias_at(Outputs::Gelu, i % columns)))
    };
    let half = |z: f64, inner: f64| 0.5 * z * (1.0 + inner.tanh());
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let cubed = |z: f64| z + 0.044_715 * z * z * z;
    let near =
        |found: f32, expected: f64| (f64::from(found) - expected).abs() < 1e-5 * expected.abs().max(1.0);
    let all = |formula: &dyn Fn(f64, f64) -> f64| {
        y.iter().enumerate().all(|(i, &y)| near(y, formula(inputs(i).0, inputs(i).1)))
    };
    let gelu = |z: f64| half(z, root * cubed(z));
    let i = (0..y.len()).find(|&i| !near(y[i], gelu(inputs(i).1)))?;
    /// A formula of x and of z, its sum with the bias.
    type Formula<'a> = &'a dyn Fn(f64, f64) -> f64;
    let known: [(Formula<'_>, &str); 6] = [
        (&|x, _| gelu(x), "The bias is missing: that is GELU of x alone."),
        (&|_, z| z, "That is x plus bias, without GELU."),
        (
            &|_, z| half(z, cubed(z)),
            "The root of 2 / π is missing, 0.7978845608, by which what is under tanh is multiplied.",
        ),
        (&|_, z| half(z, root * z), "The cube is missing: under tanh stands z + 0.044715 z³."),
        (
            &|_, z| half(z, 2.0 / std::f64::consts::PI * cubed(z)),
            "Under tanh stands 2 / π, and should stand its root, 0.7978845608.",
        ),
        (&|_, z| z.max(0.0), "That is the rectifier, max(z, 0), and not GELU."),
    ];
    let reason = known.iter().find(|(formula, _)| all(formula)).map_or("", |(_, reason)| reason);
    let said = format!("{} is {} and should be {:.6}. {reason}", place(i), y[i], gelu(inputs(i).1));
    Some(said.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u32, u32) = (3, 5);

    fn says(wanted: Outputs, y: impl Fn(usize) -> f32, words: &str) {
        let y: Vec<f32> = (0..15).map(y).collect();
        let said = complaint(wanted, SIZE, &y).unwrap_or_default();
        assert!(said.contains(words), "{said}");
    }

    fn biased(x: usize, bias: usize) -> f32 {
        x_at(Outputs::Biased, x) + bias_at(Outputs::Biased, bias)
    }

    #[test]
    fn nothing_is_wrong_with_right_outputs() {
        let y: Vec<f32> = (0..15).map(|i| biased(i, i % 5)).collect();
        assert_eq!(complaint(Outputs::Biased, SIZE, &y), None);
        let y: Vec<f32> = (0..15).map(|i| biased(i / 5 + i % 5 * 3, i % 5)).collect();
        assert_eq!(complaint(Outputs::BiasedColumns, SIZE, &y), None);
    }

    #[test]
    fn a_wrong_bias_says_whose_it_is() {
        says(Outputs::Biased, |i| x_at(Outputs::Biased, i), "y[0][0] has no bias");
        says(Outputs::Biased, |i| biased(i, i / 5), "y[0][1] got bias[0], the one of its row");
        says(Outputs::Biased, |_| f32::from_bits(UNTOUCHED), "y[0][0] was never written");
    }

    #[test]
    fn a_wrong_layout_is_told_from_a_wrong_place() {
        says(
            Outputs::BiasedColumns,
            |i| biased(i, i % 5),
            "lies column by column: a column holds 3 elements, so it is x[3]",
        );
        says(
            Outputs::BiasedColumns,
            |i| biased(14 - i, i % 5),
            "was made of x[14] and should be made of x[0]",
        );
    }

    #[test]
    fn a_wrong_formula_is_recognised() {
        let z = |i: usize| x_at(Outputs::Gelu, i) + bias_at(Outputs::Gelu, i % 5);
        says(Outputs::Gelu, |i| z(i).max(0.0), "the rectifier");
        says(Outputs::Gelu, z, "without GELU");
        let bare = |z: f32| 0.5 * z * (1.0 + (z + 0.044_715 * z * z * z).tanh());
        says(Outputs::Gelu, |i| bare(z(i)), "The root of 2 / π is missing");
    }

    #[test]
    fn the_signature_is_read_from_the_ptx() {
        let ptx = |types: &[&str]| {
            let list: Vec<String> = types.iter().map(|t| format!("\t.param .{t} k_param")).collect();
            format!(".visible .entry k({})\n{{\n", list.join(",\n"))
        };
        assert!(has_signature(&ptx(&["u64", "u64", "u64", "u32", "u32"]), "k"));
        assert!(!has_signature(&ptx(&["u64", "u64", "u32", "u32"]), "k"));
    }
}
