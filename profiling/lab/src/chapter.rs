//! What a chapter hands to [`main`](crate::main()): its name, its manifest and its cells.

use crate::Cell;

/// A chapter as its program names it; made by [`chapter!`](crate::chapter!).
#[derive(Clone, Copy)]
pub struct Chapter {
    /// The crate's name, such as `ch01-raw-kernel`.
    pub name: &'static str,
    /// The text of its `Cargo.toml`, whose `[package.metadata.lab]` says the rest.
    pub manifest: &'static str,
    /// The kernels that have been loaded so far in this process: name and PTX.
    pub loaded_kernels: fn() -> Vec<(&'static str, &'static str)>,
}

/// The chapter whose program this is. Stands in the chapter's own `main.rs`.
#[macro_export]
macro_rules! chapter {
    () => {
        $crate::Chapter {
            name: env!("CARGO_PKG_NAME"),
            manifest: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")),
            loaded_kernels: ::kernels::loaded,
        }
    };
}

/// A cell as a chapter lists it. Cells do not depend on each other: each can be run alone, in any order.
#[derive(Clone, Copy)]
pub struct CellSpec {
    /// The name that a page and the command line refer to.
    pub id: &'static str,
    /// What the cell finds out, in a few words.
    pub title: &'static str,
    pub(crate) order_dependent: bool,
    pub(crate) run: fn(&mut Cell) -> anyhow::Result<()>,
}

/// A cell of a chapter.
pub const fn cell(
    id: &'static str,
    title: &'static str,
    run: fn(&mut Cell) -> anyhow::Result<()>,
) -> CellSpec {
    CellSpec { id, title, order_dependent: false, run }
}

impl CellSpec {
    /// Says that blocks of its kernels communicate (atomics that return values, look-back, locks), so that counts may
    /// differ from run to run and are never compared.
    pub const fn order_dependent(mut self) -> Self {
        self.order_dependent = true;
        self
    }
}
