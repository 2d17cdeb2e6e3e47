//! The shape of a launch.

/// The shape of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
}

impl Shape {
    pub(crate) fn new(grid: [u32; 3], block: [u32; 3]) -> Shape {
        Shape { grid, block, shared: 0, cooperative: false }
    }
}
