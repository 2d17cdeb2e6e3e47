//! The C interface: pointers from the caller, handles, and the macro that declares entry points.
//!
//! A C caller promises that a pointer that is not null is valid for what the driver's manual says is read or written
//! there. That promise is used here and in `host`, and nowhere else: only C makes values of [`Out`], [`In`] and [`Text`].
//! A caller that breaks it with an address where no memory is gets an invalid value.

use std::{
    any::Any,
    cell::Cell,
    ffi::{c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{
    error::{CUresult, Result},
    host, log, state, stream,
};

/// A pointer through which the caller wants an answer.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

/// A pointer to what the caller gives.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

/// A string of the caller, which ends with a zero byte.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}
// SAFETY: The caller's promise holds whichever thread uses the pointer; the buffers of a link are used by later calls.
unsafe impl<T> Send for Out<T> {}

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

impl<T> Out<T> {
    /// Answers; a null pointer is an invalid value.
    pub(crate) fn set(self, value: T) -> Result {
        self.check()?;
        // SAFETY: The caller promises that a pointer that is not null can be written, and there is memory.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Answers where the caller wants the answer.
    pub(crate) fn set_if_wanted(self, value: T) {
        let _unwanted = self.set(value);
    }

    /// Fails for a null pointer and where no memory is, so that a function checks its arguments before it does anything.
    pub(crate) fn check(self) -> Result {
        if host::is_readable(self.0 as usize, size_of::<T>().max(1)) {
            Ok(())
        } else {
            Err(CUresult::INVALID_VALUE)
        }
    }

    /// Whether the pointer is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Answers with several values.
    pub(crate) fn set_all(self, values: impl IntoIterator<Item = T>) -> Result {
        self.check()?;
        for (index, value) in values.into_iter().enumerate() {
            let place = Out(self.0.wrapping_add(index));
            place.check()?;
            // SAFETY: The caller promises room for as many values as it asked for, callers of this ask for them, and there
            // is memory.
            unsafe { place.0.write_unaligned(value) };
        }
        Ok(())
    }
}

impl<T> Out<T> {
    /// A pointer that the caller gave as a value among others.
    pub(crate) fn of(value: *mut T) -> Out<T> {
        Out(value)
    }
}

impl<T> Out<T> {
    /// A pointer to an answer whose type another argument tells.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// A part of the answer.
    pub(crate) fn at<U>(self, offset: usize) -> Out<U> {
        Out(self.0.wrapping_byte_add(offset).cast())
    }

    /// The pointer as one to what the caller gives.
    pub(crate) fn input(self) -> In<T> {
        In(self.0.cast_const())
    }
}

impl<T: Copy> Out<T> {
    /// What is there: for arguments that are read and written.
    pub(crate) fn read(self) -> Result<T> {
        In(self.0.cast_const()).get()
    }
}

impl Out<c_char> {
    /// Answers with a string, cut so that it ends with a zero byte inside `room`.
    pub(crate) fn set_text(self, text: &str, room: usize) -> Result {
        let kept = text.len().min(room.checked_sub(1).ok_or(CUresult::INVALID_VALUE)?);
        self.set_all(text.as_bytes()[..kept].iter().chain(&[0]).map(|&byte| byte as c_char))
    }
}

impl<T: Copy> In<T> {
    /// The value; a null pointer is an invalid value.
    pub(crate) fn get(self) -> Result<T> {
        if !host::is_readable(self.0 as usize, size_of::<T>().max(1)) {
            return Err(CUresult::INVALID_VALUE);
        }
        // SAFETY: The caller promises that a pointer that is not null can be read, and there is memory.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The value, or nothing for a null pointer.
    pub(crate) fn given(self) -> Option<T> {
        self.get().ok()
    }

    /// `count` values; a null pointer is an invalid value unless there are none.
    pub(crate) fn list(self, count: usize) -> Result<Vec<T>> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(CUresult::INVALID_VALUE)?;
        if !host::is_readable(self.0 as usize, bytes) {
            return Err(CUresult::INVALID_VALUE);
        }
        // SAFETY: The caller promises that as many values as it says can be read, and there is memory.
        Ok((0..count).map(|index| unsafe { self.0.add(index).read_unaligned() }).collect())
    }
}

impl In<*mut c_void> {
    /// The place of a value that is also an answer.
    pub(crate) fn slot<U>(self, index: usize) -> Out<U> {
        Out(self.0.wrapping_add(index).cast_mut().cast())
    }
}

impl<T> In<T> {
    /// No pointer.
    pub(crate) const NULL: In<T> = In(std::ptr::null());

    /// A pointer that the caller gave as a value among others.
    pub(crate) fn of(value: *const T) -> In<T> {
        In(value)
    }

    /// The place behind this one, in a list that something in it ends.
    pub(crate) fn after(self) -> In<T> {
        In(self.0.wrapping_add(1))
    }

    /// Whether the pointer is null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer.
    pub(crate) fn pointer(self) -> *const T {
        self.0
    }
}

impl Text {
    /// The string; a null pointer or bytes that are not UTF-8 are an invalid value.
    pub(crate) fn get(&self) -> Result<String> {
        let text = host::text(self.0 as usize).ok_or(CUresult::INVALID_VALUE)?;
        Ok(str::from_utf8(text).map_err(|_| CUresult::INVALID_VALUE)?.to_owned())
    }
}

/// A symbol of the driver, for `cuGetProcAddress`.
pub(crate) struct Symbol {
    /// The exported name: `cuMemcpyHtoD_v2_ptds`.
    pub(crate) name: &'static str,
    /// The CUDA version that brought it.
    pub(crate) since: u32,
    /// Where it is.
    pub(crate) address: fn() -> usize,
}

/// Declares entry points, each with the CUDA version that brought it, and lists them in `SYMBOLS`.
///
/// Names joined by commas share a body. A `_ptds` or `_ptsz` form takes stream 0 to be the thread's own default stream.
///
/// `early` marks what may be called before `cuInit`.
macro_rules! driver {
    ($(
        $(#[$documentation:meta])*
        $kind:ident $($name:ident $since:literal),+ ($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {
        $( driver!(@names $kind [$($name)+] ($($argument: $type),*) $body); )*

        /// What is declared here.
        pub(crate) const SYMBOLS: &[$crate::driver::abi::Symbol] = &[$( $( $crate::driver::abi::Symbol {
            name: stringify!($name),
            since: $since,
            address: || $name as *const () as usize,
        } ),+ ),*];
    };
    (@names $kind:ident [] $arguments:tt $body:block) => {};
    (@names $kind:ident [$name:ident $($others:ident)*] ($($argument:ident: $type:ty),*) $body:block) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> $crate::driver::error::CUresult {
            $crate::driver::abi::enter(stringify!($name), driver!(@$kind), || -> $crate::driver::error::Result { $body })
        }
        driver!(@names $kind [$($others)*] ($($argument: $type),*) $body);
    };
    (@early) => { true };
    (@call) => { false };
}
pub(crate) use driver;

thread_local! {
    /// This thread does a job of a stream; host functions are some, and they must not call the driver.
    pub(crate) static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Runs the body of an entry point: refuses it where the driver may not be called, never unwinds into C, writes the log.
pub(crate) fn enter(name: &'static str, early: bool, body: impl FnOnce() -> Result) -> CUresult {
    stream::NULL_IS_PER_THREAD.set(name.ends_with("_ptsz") || name.ends_with("_ptds"));
    host::forget();
    let refused = if early {
        None
    } else if !state::is_initialized() {
        Some(CUresult::NOT_INITIALIZED)
    } else if IN_HOST_FUNCTION.get() {
        Some(CUresult::NOT_PERMITTED)
    } else {
        None
    };
    let result = match refused {
        Some(error) => Err(error),
        None => catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
            log::always(&format!(
                "{name} failed inside the emulated GPU: {}. Please report it.",
                message(&*panic)
            ));
            Err(CUresult::UNKNOWN)
        }),
    };
    let code = result.err().unwrap_or(CUresult::SUCCESS);
    log::call(name, code);
    code
}

/// What a panic says.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}
