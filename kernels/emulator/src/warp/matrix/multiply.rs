//! Multiplying tiles: 16 x 8 x k, or 8 x 8 x k.

use super::{
    accumulate::{
        Accumulation, COLUMNS, Split, add_products, half_bits, split, to_nearest_half, towards_zero,
    },
    is_incomplete,
};
use crate::{
    module::program::{Flow, Ins, kept},
    warp::{Body, Context, float::canonical, soft::from_half},
};

/// An operation on matrices.
pub(super) struct Multiplication {
    pub(super) rows: usize,
    pub(super) k: usize,
    pub(super) numbers: Numbers,
    /// The tiles that it comes down to.
    pub(super) tiles: Vec<Tile>,
}

/// The registers of a tile, as rows of the file.
pub(super) struct Tile {
    pub(super) a: Vec<u32>,
    pub(super) b: Vec<u32>,
    pub(super) c: Vec<u32>,
    pub(super) d: Vec<u32>,
}

/// What is multiplied, and how it is added.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers {
    Float(Float),
    Double,
    Integer {
        a: Integer,
        b: Integer,
        saturate: bool,
    },
    /// Bits, combined by `xor` or `and`, and counted.
    Bits {
        xor: bool,
    },
}

/// An operation on floating-point numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Float {
    pub(super) a: Format,
    pub(super) b: Format,
    pub(super) accumulation: Accumulation,
    pub(super) accumulator: Sum,
    /// The accumulator and the result have another format than the sums. They are converted.
    pub(super) c_is_half: bool,
    pub(super) d_is_half: bool,
    /// The parts of `k` are summed apart from the accumulator, which is added in the end.
    pub(super) apart: bool,
}

/// The format of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    Single,
    Half,
}

/// A floating-point format of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Half,
    Bfloat,
    /// `f32` whose low 13 bits do not count.
    Tf32,
    E4m3,
    E5m2,
}

/// An integer format of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integer {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

impl Format {
    pub(super) fn bits(self) -> usize {
        match self {
            Format::Half | Format::Bfloat => 16,
            Format::Tf32 => 32,
            Format::E4m3 | Format::E5m2 => 8,
        }
    }
}

/// Executes a [`Multiplication`].
pub(super) struct Multiply;

impl Body for Multiply {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        if is_incomplete(context) {
            return Flow::Wait;
        }
        // SAFETY: the decoder keeps the operation as long as the code.
        let operation = unsafe { kept::<Multiplication>(ins.x) };
        // All tiles are computed before a register changes, for a destination may be a source of the next tile.
        let mut results = [[0u32; 32]; 8];
        let mut count = 0;
        for tile in &operation.tiles {
            // SAFETY: the decoder chose rows of the widths of these numbers.
            unsafe {
                match operation.numbers {
                    Numbers::Float(float) => {
                        floats(context, operation, tile, float, &mut results[count..]);
                    }
                    Numbers::Integer { a, b, saturate } => {
                        integers(context, operation, tile, a, b, saturate, &mut results[count..]);
                    }
                    Numbers::Bits { xor } => bits(context, operation, tile, xor, &mut results[count..]),
                    Numbers::Double => {
                        doubles(context, operation, tile);
                        continue;
                    }
                }
            }
            count += tile.d.len();
        }
        if !matches!(operation.numbers, Numbers::Double) {
            let rows = operation.tiles.iter().flat_map(|tile| &tile.d);
            for (&row, values) in rows.zip(results) {
                // SAFETY: as above.
                unsafe { context.set_row(row, values) };
            }
        }
        Flow::Next
    }
}

/// Elements of a tile: the rows of A, and for each `k` the columns of B side by side.
#[derive(Clone, Copy)]
struct Operands<const K: usize> {
    a: [[u32; K]; 16],
    b: [[u32; COLUMNS]; K],
}

/// Elements of `BITS` bits, from registers of 32.
#[inline(always)]
unsafe fn gather<const BITS: usize, const K: usize>(
    context: &Context,
    rows: usize,
    tile: &Tile,
) -> Operands<K> {
    let each = 32 / BITS;
    let mut operands = Operands { a: [[0; K]; 16], b: [[0; COLUMNS]; K] };
    for (number, &register) in tile.a.iter().enumerate() {
        // SAFETY: the caller's promise.
        let words: [u32; 32] = unsafe { context.row(register) };
        let (outer, inner) = if rows == 16 { (8 * (number & 1), number >> 1) } else { (0, number) };
        for (lane, &word) in words.iter().enumerate() {
            let row = &mut operands.a[outer + lane / 4];
            for element in 0..each {
                row[((4 * inner + lane % 4) * each + element) % K] =
                    word >> (element * BITS % 32) & mask(BITS);
            }
        }
    }
    for (number, &register) in tile.b.iter().enumerate() {
        // SAFETY: the caller's promise.
        let words: [u32; 32] = unsafe { context.row(register) };
        for (lane, &word) in words.iter().enumerate() {
            for element in 0..each {
                let k = (4 * number + lane % 4) * each + element;
                operands.b[k % K][lane / 4] = word >> (element * BITS % 32) & mask(BITS);
            }
        }
    }
    operands
}

#[inline(always)]
fn mask(bits: usize) -> u32 {
    u32::MAX >> (32 - bits)
}

/// The accumulator's rows of 8 columns, from registers that hold one number or two halves.
#[inline(always)]
unsafe fn gather_c(context: &Context, registers: &[u32], halves: bool) -> [[u32; COLUMNS]; 16] {
    let mut c = [[0; COLUMNS]; 16];
    for (number, &register) in registers.iter().enumerate() {
        // SAFETY: the caller's promise.
        let words: [u32; 32] = unsafe { context.row(register) };
        for lane in 0..32 {
            let column = lane % 4 * 2;
            if halves {
                let row = &mut c[(lane / 4 + 8 * number) % 16];
                row[column] = words[lane] & 0xFFFF;
                row[column + 1] = words[lane] >> 16;
            } else {
                c[(lane / 4 + 8 * (number / 2)) % 16][column + number % 2] = words[lane];
            }
        }
    }
    c
}

/// The way back.
#[inline(always)]
fn scatter(d: &[[u32; COLUMNS]; 16], registers: usize, halves: bool, results: &mut [[u32; 32]]) {
    for (number, words) in results.iter_mut().take(registers).enumerate() {
        for lane in 0..32 {
            let column = lane % 4 * 2;
            words[lane] = if halves {
                let row = &d[(lane / 4 + 8 * number) % 16];
                row[column] & 0xFFFF | row[column + 1] << 16
            } else {
                d[(lane / 4 + 8 * (number / 2)) % 16][column + number % 2]
            };
        }
    }
}

#[inline(always)]
unsafe fn floats(
    context: &Context,
    operation: &Multiplication,
    tile: &Tile,
    float: Float,
    results: &mut [[u32; 32]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (float.a.bits(), operation.k) {
            (32, 4) => floats_of::<4>(context, tile, float, gather::<32, 4>(context, 16, tile), results),
            (32, _) => floats_of::<8>(context, tile, float, gather::<32, 8>(context, 16, tile), results),
            (16, 8) => floats_of::<8>(context, tile, float, gather::<16, 8>(context, 16, tile), results),
            (16, _) => floats_of::<16>(context, tile, float, gather::<16, 16>(context, 16, tile), results),
            (_, 16) => floats_of::<16>(context, tile, float, gather::<8, 16>(context, 16, tile), results),
            _ => floats_of::<32>(context, tile, float, gather::<8, 32>(context, 16, tile), results),
        }
    }
}

#[inline(always)]
unsafe fn floats_of<const K: usize>(
    context: &Context,
    tile: &Tile,
    float: Float,
    mut operands: Operands<K>,
    results: &mut [[u32; 32]],
) {
    // SAFETY: the caller's promise.
    let c = unsafe { gather_c(context, &tile.c, float.c_is_half) };
    let c = c.map(|row| {
        row.map(|bits| if float.c_is_half { from_half(bits as u16) } else { f32::from_bits(bits) })
    });
    if float.apart {
        operands = apart(&operands);
    }
    let mut a = [Split { significand: [0; K], exponent: [0; K] }; 16];
    let mut b = [Split { significand: [0; COLUMNS], exponent: [0; COLUMNS] }; K];
    let mut special = c.iter().flatten().fold(false, |special, c| special | !c.is_finite());
    for (bits, to) in operands.a.iter_mut().zip(&mut a) {
        special |= split_as(float.a, bits, to);
    }
    for (bits, to) in operands.b.iter_mut().zip(&mut b) {
        special |= split_as(float.b, bits, to);
    }
    let rule = float.accumulation;
    let mut d = [[0u32; COLUMNS]; 16];
    for row in 0..16 {
        let mut sum = if float.apart { [0.0; COLUMNS] } else { c[row] };
        let mut group = 0;
        while group < K {
            let end = (group + rule.group).min(K);
            let (significand, exponent) = (&a[row].significand[group..end], &a[row].exponent[group..end]);
            let sums = add_products(rule, significand, exponent, &b[group..end], sum);
            let before = sum;
            sum = match float.accumulator {
                Sum::Single => towards_zero(sums, rule.result),
                // What vanishes is a positive zero.
                Sum::Half => sums.map(|sum| to_nearest_half(sum) + 0.0),
            };
            // Sums of a group before this one may have overflown.
            special |= before.iter().fold(false, |special, before| special | !before.is_finite());
            if special {
                for (column, sum) in sum.iter_mut().enumerate() {
                    let products = operands.a[row][group..end].iter().zip(&operands.b[group..end]);
                    let products = products.map(|(&a, b)| (value(float.a, a), value(float.b, b[column])));
                    *sum = special_sum(products, before[column]).unwrap_or(*sum);
                }
            }
            group = end;
        }
        if float.apart {
            for (sum, c) in sum.iter_mut().zip(c[row]) {
                *sum = match float.accumulator {
                    Sum::Single => *sum + c,
                    Sum::Half => to_nearest_half(f64::from(*sum) + f64::from(c)),
                };
            }
        }
        d[row] = if float.d_is_half {
            sum.map(|sum| half_bits(to_nearest_half(sum.into())).into())
        } else {
            sum.map(|sum| canonical(sum).to_bits())
        };
    }
    scatter(&d, tile.d.len(), float.d_is_half, results);
}

/// 8-bit numbers become `f16`, as on sm_90, where two tiles of half the `k` are summed: first the even pairs of neighbours,
/// then the odd ones.
#[inline(always)]
fn apart<const K: usize>(operands: &Operands<K>) -> Operands<K> {
    let mut sorted = *operands;
    for k in 0..K {
        let (half, rest) = (k / (K / 2), k % (K / 2));
        let from = rest / 2 * 4 + half * 2 + rest % 2;
        for (sorted, row) in sorted.a.iter_mut().zip(&operands.a) {
            sorted[k] = row[from];
        }
        sorted.b[k] = operands.b[from];
    }
    sorted
}

#[inline(always)]
fn split_as<const N: usize>(format: Format, bits: &mut [u32; N], to: &mut Split<N>) -> bool {
    match format {
        Format::Half => split::<N, 10, 5>(bits, to),
        Format::Bfloat => split::<N, 7, 8>(bits, to),
        Format::Tf32 => {
            for bits in bits.iter_mut() {
                *bits >>= 13;
            }
            split::<N, 10, 8>(bits, to)
        }
        Format::E4m3 | Format::E5m2 => {
            for bits in bits.iter_mut() {
                *bits =
                    u32::from(if format == Format::E4m3 { e4m3_to_half(*bits) } else { (*bits as u16) << 8 });
            }
            split::<N, 10, 5>(bits, to)
        }
    }
}

/// The `f16` of an 8-bit number with 4 bits of exponent, which has no infinity.
fn e4m3_to_half(bits: u32) -> u16 {
    let sign = (bits as u16 & 0x80) << 8;
    let magnitude = bits as u16 & 0x7F;
    sign | match magnitude {
        0x7F => 0x7FFF,
        0..8 => half_bits(f32::from(magnitude) / 512.0),
        _ => (magnitude << 7) + (8 << 10),
    }
}

/// The sum of products and an accumulator, if something in it is infinite or NaN.
#[inline(never)]
fn special_sum(products: impl Iterator<Item = (f32, f32)>, c: f32) -> Option<f32> {
    let start = if c.is_finite() { 0.0 } else { c };
    let special = products.filter(|(a, b)| !(a.is_finite() && b.is_finite()));
    let sum = special.fold(start, |sum, (a, b)| sum + a * b);
    (!sum.is_finite()).then_some(sum)
}

/// The value of an element after [`split_as`] has seen it.
fn value(format: Format, bits: u32) -> f32 {
    match format {
        Format::Half | Format::E4m3 | Format::E5m2 => from_half(bits as u16),
        Format::Bfloat => f32::from_bits(bits << 16),
        Format::Tf32 => f32::from_bits(bits << 13),
    }
}

#[inline(always)]
unsafe fn integers(
    context: &Context,
    operation: &Multiplication,
    tile: &Tile,
    a: Integer,
    b: Integer,
    saturate: bool,
    results: &mut [[u32; 32]],
) {
    let rows = operation.rows;
    // SAFETY: the caller's promise.
    unsafe {
        let c = gather_c(context, &tile.c, false);
        let d = match (a.bits, operation.k) {
            (8, 16) => add_integers(gather::<8, 16>(context, rows, tile), c, a, b, saturate),
            (8, _) => add_integers(gather::<8, 32>(context, rows, tile), c, a, b, saturate),
            (_, 32) => add_integers(gather::<4, 32>(context, rows, tile), c, a, b, saturate),
            _ => add_integers(gather::<4, 64>(context, rows, tile), c, a, b, saturate),
        };
        scatter(&d, tile.d.len(), false, results);
    }
}

/// Products are summed exactly; only the accumulator may overflow.
#[inline(always)]
fn add_integers<const K: usize>(
    operands: Operands<K>,
    c: [[u32; COLUMNS]; 16],
    a: Integer,
    b: Integer,
    saturate: bool,
) -> [[u32; COLUMNS]; 16] {
    let extend = |bits: u32, format: Integer| {
        let shift = 32 - format.bits;
        if format.signed { (bits << shift) as i32 >> shift } else { bits as i32 }
    };
    let b = operands.b.map(|row| row.map(|bits| extend(bits, b)));
    let mut d = [[0u32; COLUMNS]; 16];
    for row in 0..16 {
        let mut sum = [0i32; COLUMNS];
        for (&bits, b) in operands.a[row].iter().zip(&b) {
            let a = extend(bits, a);
            for column in 0..COLUMNS {
                sum[column] = sum[column].wrapping_add(a.wrapping_mul(b[column]));
            }
        }
        for column in 0..COLUMNS {
            let c = c[row][column] as i32;
            let all = if saturate { c.saturating_add(sum[column]) } else { c.wrapping_add(sum[column]) };
            d[row][column] = all as u32;
        }
    }
    d
}

#[inline(always)]
unsafe fn bits(
    context: &Context,
    operation: &Multiplication,
    tile: &Tile,
    xor: bool,
    results: &mut [[u32; 32]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let c = gather_c(context, &tile.c, false);
        let d = if operation.k == 128 {
            add_bits(gather::<32, 4>(context, operation.rows, tile), c, xor)
        } else {
            add_bits(gather::<32, 8>(context, operation.rows, tile), c, xor)
        };
        scatter(&d, tile.d.len(), false, results);
    }
}

#[inline(always)]
fn add_bits<const K: usize>(
    operands: Operands<K>,
    c: [[u32; COLUMNS]; 16],
    xor: bool,
) -> [[u32; COLUMNS]; 16] {
    let mut d = c;
    for (row, d) in operands.a.iter().zip(&mut d) {
        for (&a, b) in row.iter().zip(&operands.b) {
            for (d, &b) in d.iter_mut().zip(b) {
                let both = if xor { a ^ b } else { a & b };
                *d = d.wrapping_add(both.count_ones());
            }
        }
    }
    d
}

/// A fused multiply-add. Of several NaN that of `b` wins, then that of `c`, as on an H200.
#[inline(always)]
fn fused(a: f64, b: f64, c: f64) -> f64 {
    let sum = a.mul_add(b, c);
    if sum.is_nan() { first_nan([b, c, a]) } else { sum }
}

#[cold]
fn first_nan(operands: [f64; 3]) -> f64 {
    let quiet = |operand: f64| operand.to_bits() | 1 << 51;
    let found = operands.into_iter().find(|operand| operand.is_nan());
    f64::from_bits(found.map_or(0xFFF8_0000_0000_0000, quiet))
}

/// Each element is a chain of fused multiply-adds in the order of `k`.
#[inline(always)]
unsafe fn doubles(context: &mut Context, operation: &Multiplication, tile: &Tile) {
    let (rows, k) = (operation.rows, operation.k);
    let mut a = [0f64; 256];
    let mut b = [0f64; 128];
    let mut d = [[0f64; COLUMNS]; 16];
    // SAFETY: the caller's promise.
    unsafe {
        for (number, &register) in tile.a.iter().enumerate() {
            let words: [u64; 32] = context.row(register);
            let (outer, inner) = if rows == 16 { (8 * (number & 1), number >> 1) } else { (0, number) };
            for lane in 0..32 {
                a[((outer + lane / 4) * k + 4 * inner + lane % 4) % 256] = f64::from_bits(words[lane]);
            }
        }
        for (number, &register) in tile.b.iter().enumerate() {
            let words: [u64; 32] = context.row(register);
            for lane in 0..32 {
                b[((4 * number + lane % 4) * COLUMNS + lane / 4) % 128] = f64::from_bits(words[lane]);
            }
        }
        for (number, &register) in tile.c.iter().enumerate() {
            let words: [u64; 32] = context.row(register);
            for lane in 0..32 {
                d[(lane / 4 + 8 * (number / 2)) % 16][lane % 4 * 2 + number % 2] =
                    f64::from_bits(words[lane]);
            }
        }
    }
    for row in 0..rows {
        for (&a, b) in a[row * k..][..k].iter().zip(b.as_chunks::<COLUMNS>().0) {
            for column in 0..COLUMNS {
                d[row][column] = fused(a, b[column], d[row][column]);
            }
        }
    }
    for (number, &register) in tile.d.iter().enumerate() {
        let mut words = [0u64; 32];
        for lane in 0..32 {
            let sum = d[(lane / 4 + 8 * (number / 2)) % 16][lane % 4 * 2 + number % 2];
            words[lane] = sum.to_bits();
        }
        // SAFETY: the caller's promise.
        unsafe { context.set_row(register, words) };
    }
}
