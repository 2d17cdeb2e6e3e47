//! What would load on this device: one image after the other is handed to the driver, and its
//! answer written down.
//!
//! "Unsupported PTX version" is the most reported failure of this field. The rules are few: a
//! driver loads PTX of its own version and older, for its device's compute capability and older;
//! machine code for its device's major version alone.

use std::ffi::CString;

use anyhow::{Result, bail};
use cudarc::driver::sys::CUresult;
use lab::{Cell, Table, row};

use crate::load;

/// What to load, and what is special about it: PTX version and target of an empty kernel.
const IMAGES: [(&str, &str, &str); 5] = [
    ("this book's PTX", "8.0", "sm_75"),
    ("PTX of CUDA 12.9", "8.8", "sm_75"),
    ("PTX of CUDA 13.0", "9.0", "sm_75"),
    ("PTX of a CUDA to come", "99.0", "sm_75"),
    ("PTX for a GPU of compute capability 12.0", "8.8", "sm_120"),
];

// ANCHOR: images
pub(crate) fn load_each(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let mut table = Table::new("images")
        .measured("image", "")
        .measured(".version", "")
        .measured(".target", "")
        .measured("the driver's answer", "")
        .measured("what to do", "");
    for (what, version, target) in IMAGES {
        let image = CString::new(format!(
            ".version {version}\n.target {target}\n.address_size 64\n.visible .entry nothing() {{ ret; }}\n"
        ))?;
        let answer = load(&context, &image).err().unwrap_or(CUresult::CUDA_SUCCESS);
        table.push(row![what, version, target, answer_in_words(answer), remedy(answer)]);
    }
    let own = load(&context, kernels::VECTOR_ADD_01_SCALAR.ptx());
    if let Err(code) = own {
        bail!(
            "this book's kernels do not load here: the driver answers {code:?}; {}",
            remedy(code)
        );
    }
    let text = load(&context, c"this is no PTX").err().unwrap_or(CUresult::CUDA_SUCCESS);
    table.push(row!["a text that is no PTX", "", "", answer_in_words(text), remedy(text)]);
    cell.table(table);
    Ok(())
}
// ANCHOR_END: images

fn answer_in_words(code: CUresult) -> String {
    match code {
        CUresult::CUDA_SUCCESS => "loads".to_owned(),
        code => format!("{code:?} ({})", code as u32),
    }
}

fn remedy(code: CUresult) -> &'static str {
    match code {
        CUresult::CUDA_SUCCESS => "",
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "a newer driver, or compile with an older CUDA Toolkit"
        }
        CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU | CUresult::CUDA_ERROR_INVALID_PTX => {
            "compile for this device's compute capability or an older one"
        }
        CUresult::CUDA_ERROR_INVALID_IMAGE => {
            "look at the file: it is neither PTX nor machine code"
        }
        _ => "look the answer up in the CUDA Driver API manual",
    }
}
