//! A kernel's name and PTX, and the list of those that this process has taken.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

/// A kernel as it is committed: name, PTX and signature.
#[derive(Debug)]
pub struct Image {
    name: &'static CStr,
    ptx: &'static CStr,
    parameters: Option<&'static [Parameter]>,
}

/// A parameter of a kernel, as its handle declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name, the same in CUDA C++.
    pub name: &'static str,
    /// The type, such as `&mut [f32]` or `u64`.
    pub rust_type: &'static str,
    /// How many bytes of the argument list it takes.
    pub bytes: usize,
}

/// The kernels whose PTX this process has taken for loading, each once, in the order in which they were first taken: name
/// and PTX. A record lists them among its inputs.
pub fn loaded() -> Vec<(&'static str, &'static str)> {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    taken.iter().map(|image| (text(image.name), text(image.ptx))).collect()
}

static TAKEN: Mutex<Vec<&'static Image>> = Mutex::new(Vec::new());

impl Image {
    /// For the macros alone: both texts end in NUL.
    pub(crate) const fn new(
        name: &'static str,
        ptx: &'static str,
        parameters: Option<&'static [Parameter]>,
    ) -> Self {
        match (CStr::from_bytes_with_nul(name.as_bytes()), CStr::from_bytes_with_nul(ptx.as_bytes())) {
            (Ok(name), Ok(ptx)) => Self { name, ptx, parameters },
            _ => panic!("a kernel's name and PTX hold no NUL but the last character"),
        }
    }

    /// The kernel's name, for `cuModuleGetFunction`.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// The PTX, for `cuModuleLoadData`. The kernel counts as loaded from here on: see [`loaded`].
    pub fn ptx(&'static self) -> &'static CStr {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !taken.iter().any(|image| std::ptr::eq(*image, self)) {
            taken.push(self);
        }
        self.ptx
    }

    /// The PTX to read, not to load.
    pub fn ptx_text(&self) -> &'static str {
        text(self.ptx)
    }

    /// The parameters that the typed handle declares; `None` for a kernel that has no handle.
    pub fn parameters(&self) -> Option<&'static [Parameter]> {
        self.parameters
    }
}

/// A text that was a `&str` before it got its NUL.
pub(crate) fn text(text: &'static CStr) -> &'static str {
    text.to_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_listed_once_and_only_when_its_ptx_was_taken_for_loading() {
        let listed = |image: &Image| loaded().iter().filter(|(name, _)| *name == text(image.name())).count();
        let _ = crate::COPY_01_FLOAT4.ptx_text();
        let _ = crate::COPY_01_FLOAT4.name();
        assert_eq!(listed(&crate::COPY_01_FLOAT4), 0);

        crate::COPY_01_FLOAT4.ptx();
        crate::LAUNCH_01_EMPTY.ptx();
        crate::COPY_01_FLOAT4.ptx();
        assert_eq!(listed(&crate::COPY_01_FLOAT4), 1);
        assert_eq!(listed(&crate::LAUNCH_01_EMPTY), 1);
        assert!(loaded()[0].1.contains(".entry copy_01_float4("));
    }
}
