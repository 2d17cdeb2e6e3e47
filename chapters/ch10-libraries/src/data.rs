//! The chapter's data: 1797 handwritten digits, and the sunspots of 309 years. `data/README.md` says
//! where they come from and under which terms.

/// Pixels along each side of an image.
pub const SIDE: usize = 8;
/// Pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;
/// Digits, from 0 to 9.
pub const CLASSES: usize = 10;
/// The images that the weights are fitted to; the others test them.
pub const TRAINING: usize = 1280;

const DIGITS: &[u8] = include_bytes!("../data/digits.bin");
const SUNSPOTS: &str = include_str!("../data/sunspots.csv");

/// Images and what they show.
pub struct Digits {
    /// `images` × [`PIXELS`] numbers from 0 to 1, row by row.
    pub pixels: Vec<f32>,
    /// One digit for each image.
    pub labels: Vec<u8>,
}

impl Digits {
    /// All of them, in the order of the data set.
    pub fn read() -> Self {
        let records = DIGITS.chunks_exact(PIXELS + 1);
        let pixels = records.clone().flat_map(|record| &record[..PIXELS]);
        Self {
            pixels: pixels.map(|&pixel| f32::from(pixel) / 16.0).collect(),
            labels: records.map(|record| record[PIXELS]).collect(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// The number of sunspots of each year from 1700 on.
pub fn sunspots() -> Vec<f32> {
    let lines = SUNSPOTS.lines().skip(1).filter_map(|line| line.split(',').nth(1));
    lines.filter_map(|spots| spots.trim().parse().ok()).collect()
}

/// A sparse matrix with its rows compressed (CSR).
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    /// Where each row begins in the other two, and where the last ends: rows + 1 of them.
    pub offsets: Vec<u32>,
    /// The column of every stored element.
    pub indices: Vec<u32>,
    /// The stored elements.
    pub values: Vec<f32>,
    /// Columns of the matrix.
    pub columns: usize,
}

impl Sparse {
    /// What is not zero of a matrix that lies row by row.
    pub fn compress(matrix: &[f32], columns: usize) -> Self {
        let mut sparse =
            Self { offsets: vec![0], indices: Vec::new(), values: Vec::new(), columns };
        for row in matrix.chunks_exact(columns.max(1)) {
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                sparse.indices.push(column as u32);
                sparse.values.push(value);
            }
            sparse.offsets.push(sparse.values.len() as u32);
        }
        sparse
    }

    /// Its rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }
}
