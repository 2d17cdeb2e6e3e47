//! Asking for a library before cudarc calls it: cudarc panics where the library, or the function, is missing.

use std::fmt;

use cudarc::get_lib_name_candidates;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use super::{LIBRARIES, Wanted};
use crate::device::is_emulated_in_use;

/// Why a library is not called, in one sentence that says how to change that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether one of NVIDIA's libraries can be called here: it is found under a name that cudarc asks for, and has the
/// functions that the caller means to call. Some were renamed between CUDA 12 and CUDA 13. On the emulated GPU no library is
/// opened: they bring machine code for real GPUs, and no PTX.
///
/// ```no_run
/// # fn sample() -> Result<(), lab::libraries::Missing> {
/// lab::libraries::ask("cuFFT", &["cufftPlan1d", "cufftExecR2C"])?;
/// // From here on, cudarc's calls of these functions do not panic.
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Missing`] says what is missing and which Python package brings it.
pub fn ask(name: &str, functions: &[&str]) -> Result<(), Missing> {
    if is_emulated_in_use() {
        return Err(Missing(format!("{name} was not called: NVIDIA's libraries need a real GPU")));
    }
    let Some(wanted) = LIBRARIES.iter().find(|wanted| wanted.name == name) else {
        return Err(Missing(format!("{name} was not called: it is none of the libraries that lab knows")));
    };
    wanted.open_and_look(&get_lib_name_candidates(wanted.stem), functions)
}

impl Wanted {
    fn open_and_look(&self, names: &[String], functions: &[&str]) -> Result<(), Missing> {
        // SAFETY: the initialisers are those of NVIDIA's library, which cudarc would run in the same way.
        let opened =
            names.iter().find_map(|name| unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }.ok());
        let Some(library) = opened else {
            return Err(Missing(format!("{} was not called: {}", self.name, self.how_to_get())));
        };
        // SAFETY: the symbols are not called here, only looked for.
        let lacks =
            |function: &&&str| unsafe { library.get::<unsafe extern "C" fn()>(function.as_bytes()) }.is_err();
        let lacking = functions.iter().find(lacks).copied();
        // cudarc is about to open it too, and such libraries do not like to be closed.
        std::mem::forget(library);
        match lacking {
            None => Ok(()),
            Some(function) => Err(Missing(format!(
                "{} was not called: the one on this machine has no function `{function}`; {}",
                self.name,
                self.how_to_get()
            ))),
        }
    }

    /// Where the library comes from, as a clause.
    fn how_to_get(&self) -> String {
        let [cuda_12, cuda_13] = self.packages;
        format!(
            "lib{}.so is looked for; `python3 -m pip install {cuda_13}` brings it for a driver of CUDA 13, {cuda_12} for \
             one of CUDA 12",
            self.stem
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Wanted = Wanted {
        name: "cuNothing",
        stem: "cunothing",
        cuda_12: "12",
        cuda_13: "13",
        packages: ["nvidia-cunothing-cu12", "nvidia-cunothing"],
    };

    #[test]
    fn a_missing_library_says_where_it_comes_from() {
        assert_eq!(
            NOWHERE.open_and_look(&get_lib_name_candidates("cunothing"), &[]).unwrap_err().to_string(),
            "cuNothing was not called: libcunothing.so is looked for; `python3 -m pip install nvidia-cunothing` brings it \
             for a driver of CUDA 13, nvidia-cunothing-cu12 for one of CUDA 12"
        );
    }

    #[test]
    fn a_function_that_is_missing_is_named() {
        let names = ["libc.so.6".to_owned()];
        assert_eq!(NOWHERE.open_and_look(&names, &["printf"]), Ok(()));
        let said = NOWHERE.open_and_look(&names, &["printf", "cuNothing_v2"]).unwrap_err().to_string();
        assert!(said.contains("the one on this machine has no function `cuNothing_v2`"), "{said}");
    }

    #[test]
    fn an_unknown_library_is_told() {
        let said = ask("cuNothing", &[]).unwrap_err().to_string();
        assert!(said.contains("cuNothing was not called"), "{said}");
    }
}
