//! Handles: what a program holds instead of our objects.
//!
//! A handle is a number that is never used twice, so that one of a destroyed object, or of another kind, is told from a
//! live one. A real driver may crash there.

use std::{
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::error::{CUresult, Result};

/// A handle of a `T`, as C sees it: an opaque pointer.
#[repr(transparent)]
pub(crate) struct Handle<T> {
    number: usize,
    object: PhantomData<fn() -> T>,
}

/// Something that a program has handles of.
pub(crate) trait Object: Send + Sync + Sized + 'static {
    /// What a function answers to a handle that is none of these.
    const INVALID: CUresult = CUresult::INVALID_HANDLE;

    /// The live objects of this type.
    fn table() -> &'static Table<Self>;
}

/// The live objects of a type, by number.
pub(crate) struct Table<T> {
    objects: RwLock<Option<HashMap<usize, Arc<T>>>>,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Table<T> {
        Table { objects: RwLock::new(None) }
    }
}

/// Makes types objects of handles.
macro_rules! objects {
    ($($type:ty $(: $invalid:ident)?),* $(,)?) => { $(
        impl $crate::driver::handle::Object for $type {
            $(const INVALID: $crate::driver::error::CUresult = $crate::driver::error::CUresult::$invalid;)?
            fn table() -> &'static $crate::driver::handle::Table<Self> {
                static TABLE: $crate::driver::handle::Table<$type> = $crate::driver::handle::Table::new();
                &TABLE
            }
        }
    )* };
}
pub(crate) use objects;

/// Numbers look like addresses of a page that no process has, and differ by 16 as pointers to objects would.
const FIRST: usize = 0x10_000;
static NEXT: AtomicUsize = AtomicUsize::new(FIRST);

impl<T> Handle<T> {
    /// The null handle.
    pub(crate) const NULL: Handle<T> = Handle::special(0);

    /// A handle with a meaning of its own, such as the null stream.
    pub(crate) const fn special(number: usize) -> Handle<T> {
        Handle { number, object: PhantomData }
    }

    /// The number.
    pub(crate) fn number(self) -> usize {
        self.number
    }

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.number == 0
    }
}

impl<T: Object> Handle<T> {
    /// A handle that nobody has had.
    pub(crate) fn fresh() -> Handle<T> {
        Handle::special(NEXT.fetch_add(16, Ordering::Relaxed))
    }

    /// A handle for a new object.
    pub(crate) fn new(object: impl Into<Arc<T>>) -> Handle<T> {
        let handle = Handle::fresh();
        handle.bind(object.into());
        handle
    }

    /// Makes this the handle of `object`.
    pub(crate) fn bind(self, object: Arc<T>) {
        let mut objects = T::table().objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.get_or_insert_default().insert(self.number, object);
    }

    /// The object.
    pub(crate) fn get(self) -> Result<Arc<T>> {
        let objects = T::table().objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.as_ref().and_then(|objects| objects.get(&self.number)).cloned().ok_or(T::INVALID)
    }

    /// Takes the object away from the handle.
    pub(crate) fn take(self) -> Result<Arc<T>> {
        let mut objects = T::table().objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.as_mut().and_then(|objects| objects.remove(&self.number)).ok_or(T::INVALID)
    }

    /// Does something with every object.
    pub(crate) fn for_each(act: impl Fn(&T)) {
        let objects = T::table().objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.iter().flat_map(HashMap::values).for_each(|object| act(object));
    }

    /// Takes away every object that `gone` says is gone.
    pub(crate) fn sweep(gone: impl Fn(&T) -> bool) {
        let mut objects = T::table().objects.write().unwrap_or_else(PoisonError::into_inner);
        let taken: Vec<Arc<T>> = match objects.as_mut() {
            None => Vec::new(),
            Some(objects) => {
                let dead: Vec<usize> =
                    objects.iter().filter(|(_, object)| gone(object)).map(|(&number, _)| number).collect();
                dead.iter().filter_map(|number| objects.remove(number)).collect()
            }
        };
        // What an object does when it is dropped may look at the table.
        drop(objects);
        drop(taken);
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.number)
    }
}
