//! The same step in several languages, side by side: `tabs PLACE PLACE…`, each with `LABEL=` before it where the file's name
//! does not say the language. A `-` in a label is shown as a space.

use crate::code::{Listing, listing};
use crate::root::Root;

/// One tab.
#[derive(Clone, Debug, PartialEq)]
pub struct Tab {
    /// What the reader chooses by.
    pub label: String,
    /// What it shows.
    pub listing: Listing,
}

/// Reads the arguments of `tabs`.
pub fn tabs(root: &Root, arguments: &str) -> Result<Vec<Tab>, String> {
    let mut tabs: Vec<Tab> = Vec::new();
    for argument in arguments.split_whitespace() {
        let (label, place) = match argument.split_once('=') {
            Some((label, place)) => (Some(label.replace('-', " ")), place),
            None => (None, argument),
        };
        let listing = listing(root, place)?;
        let label = match label.filter(|label| !label.is_empty()).or_else(|| label_of(&listing)) {
            Some(label) => label,
            None => {
                return Err(format!("the language of {place} is not in its name: write LABEL={place}"));
            }
        };
        if tabs.iter().any(|tab| tab.label == label) {
            return Err(format!("two tabs are called {label}: write LABEL={place}"));
        }
        tabs.push(Tab { label, listing });
    }
    if tabs.len() < 2 {
        return Err("`tabs` takes two places or more; for one there is `code`".to_owned());
    }
    Ok(tabs)
}

fn label_of(listing: &Listing) -> Option<String> {
    let (stem, extension) = listing.path.rsplit_once('.')?;
    let label = match (extension, stem.rsplit(['_', '/']).next()?) {
        ("rs", _) => "Rust",
        ("cu" | "cuh", _) => "CUDA C++",
        ("cpp", _) => "C++",
        ("py", "pycuda") => "PyCUDA",
        ("py", "numba") => "Numba",
        ("py", "cupy") => "CuPy",
        ("py", "torch") => "PyTorch",
        ("py", "triton") => "Triton",
        ("py", "jax") => "JAX",
        _ => return None,
    };
    Some(label.to_owned())
}
