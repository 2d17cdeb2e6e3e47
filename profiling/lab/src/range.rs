//! NVTX ranges, so that a profiler shows the chapter's own words above the kernels.
//!
//! The contract, on which `cargo profile` relies: the domain is the chapter's, such as `ch01`; ranges are pushed and popped
//! on the thread that launches, because Nsight Compute's filter `ch01@measure/` knows no others; names are made of
//! `[a-z0-9._-]`, because its filters have other uses for the rest; and a range surrounds a loop, never a launch inside a
//! loop that is timed.
//!
//! Without the feature `nvtx` nothing happens. With it and without a profiler, a range costs some tens of nanoseconds.

/// A range that ends when it is dropped. It belongs to the thread that opened it.
#[must_use = "the range ends when it is dropped"]
pub struct Range {
    #[cfg(feature = "nvtx")]
    _open: Option<nvtx::domain::LocalRange<'static>>,
    /// Ranges are popped by the thread that pushed them.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// Opens a range on this thread: `setup`, `h2d`, `warmup`, `measure`, `kernel.<name>`, `d2h` or `check`.
///
/// A name outside the contract opens none: a profiler would not find it. Tests see to that.
pub fn range(name: &str) -> Range {
    debug_assert!(is_name(name), "`{name}` is no name for a range: use a-z, 0-9, `.`, `_` and `-`");
    Range {
        #[cfg(feature = "nvtx")]
        _open: is_name(name).then(|| domain::open(name)),
        _not_send: std::marker::PhantomData,
    }
}

/// Whether ranges were compiled in.
pub(crate) const COMPILED_IN: bool = cfg!(feature = "nvtx");

/// Names the domain of this program's ranges. The first name stays.
pub(crate) fn set_domain(name: &str) {
    #[cfg(feature = "nvtx")]
    domain::set(name);
    #[cfg(not(feature = "nvtx"))]
    let _ = name;
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
}

#[cfg(feature = "nvtx")]
mod domain {
    use std::ffi::CString;
    use std::sync::OnceLock;

    use nvtx::domain::{Domain, LocalRange};

    static DOMAIN: OnceLock<Domain> = OnceLock::new();

    pub(super) fn set(name: &str) {
        DOMAIN.get_or_init(|| Domain::new(text(name)));
    }

    /// The name is registered, and the profiler gets the registration's number each time: a fresh string would cost ten
    /// times as much.
    pub(super) fn open(name: &str) -> LocalRange<'static> {
        // A test or a bench has no chapter.
        let domain = DOMAIN.get_or_init(|| Domain::new(c"lab"));
        domain.local_range(domain.register_string(text(name)))
    }

    /// ASCII, as every tool reads it: from a Rust string the crate would make wide characters.
    fn text(name: &str) -> CString {
        // A zero byte is in no name that is let through, and a domain may as well be nameless.
        CString::new(name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_are_those_that_filters_can_say() {
        for name in ["h2d", "kernel.vector_add_01_scalar", "warm-up"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "H2D", "a b", "kernel:add", "a/b", "a@b", "é"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
