//! Video instructions: arithmetic on bytes and halves that are chosen from registers, alone or several at once.
//!
//! `vadd vsub vabsdiff vmin vmax vshl vshr vmad vset` compute one number, those that end in 2 and 4 as many. One function
//! executes them all, by a description that the decoder keeps.

use super::{has, is_type};
use crate::{
    module::{Decoded, Decoder, invalid, program::kept},
    ptx::ast::{Instruction, Operand},
};

/// What is computed of two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Add,
    Subtract,
    Difference,
    Least,
    Greatest,
    Average,
    ShiftLeft,
    ShiftRight,
    Multiply,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

use Operation::{
    Add, Average, Difference, Equal, Greater, GreaterOrEqual, Greatest, Least, Less, LessOrEqual, Multiply,
    NotEqual, ShiftLeft, ShiftRight, Subtract,
};

/// What an instruction is.
struct Video {
    operation: Operation,
    /// Results, and both operands, are signed.
    signed: [bool; 3],
    saturates: bool,
    /// Shifts by five bits of the distance.
    wraps: bool,
    /// With `c`: 0 nothing, 1 the sum, 2 the lesser, 3 the greater one.
    second: u64,
    /// Numbers at once: 1, 2 or 4.
    lanes: u32,
    /// For each lane of each operand, the byte or half. Of one number: 0 the whole, 1-4 a byte, 5 and 6 a half.
    selectors: [[u64; 4]; 2],
    /// Lanes that are written. Of one number the part, as a selector.
    dest: u64,
    /// `vmad`: the product and the summand are negated, one is added, and the sum is shifted.
    negated: [bool; 2],
    plus_one: bool,
    shift: u64,
}

/// Decodes an instruction of this chapter.
pub(crate) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (name, lanes) = match i.opcode.as_bytes() {
        [name @ .., b'2'] => (name, 2),
        [name @ .., b'4'] => (name, 4),
        name => (name, 1),
    };
    let word = |words: &[(&str, Operation)]| {
        words.iter().find(|(word, _)| has(i, word)).map(|(_, operation)| *operation)
    };
    let operation = match name {
        b"vadd" => Some(Add),
        b"vsub" => Some(Subtract),
        b"vabsdiff" => Some(Difference),
        b"vmin" => Some(Least),
        b"vmax" => Some(Greatest),
        b"vavrg" => Some(Average),
        b"vshl" => Some(ShiftLeft),
        b"vshr" => Some(ShiftRight),
        b"vmad" => Some(Multiply),
        _ => word(&[
            ("eq", Equal),
            ("ne", NotEqual),
            ("lt", Less),
            ("le", LessOrEqual),
            ("gt", Greater),
            ("ge", GreaterOrEqual),
        ]),
    };
    let Some(operation) = operation else { return Err(d.not_implemented()) };
    let types: Vec<bool> =
        i.modifiers.iter().filter(|word| is_type(word)).map(|word| word == "s32").collect();
    let signed = match types[..] {
        [dest, a, b] => [dest, a, b],
        [a, b] => [false, a, b],
        _ => return Err(d.not_implemented()),
    };
    let (dest, a, b, c) = match &i.operands[..] {
        [dest, a, b] if lanes == 1 => (dest, a, b, &Operand::Integer(0)),
        [dest, a, b, c] => (dest, a, b, c),
        _ => return Err(d.wrong_count()),
    };
    let second = match (has(i, "add"), has(i, "min"), has(i, "max")) {
        (true, ..) => 1,
        (_, true, _) => 2,
        (.., true) => 3,
        _ => 0,
    };
    let (a, a_part, a_negated) = parts(a);
    let (b, b_part, b_negated) = parts(b);
    let (c, _, c_negated) = parts(c);
    let (dest, dest_part, _) = parts(dest);
    let unknown = || invalid(&format!("`{}` has an unknown part of a register", i.opcode));
    let selectors = if lanes == 1 {
        let one = |part: Option<&str>| part.map_or(Some(0), part_of_one).map(|part| [part, 0, 0, 0]);
        [one(a_part.as_deref()).ok_or_else(unknown)?, one(b_part.as_deref()).ok_or_else(unknown)?]
    } else {
        let default = if lanes == 2 { ["h10", "h32"] } else { ["b3210", "b7654"] };
        let all = |part: Option<&str>, default: &str| digits(part.unwrap_or(default), lanes);
        [
            all(a_part.as_deref(), default[0]).ok_or_else(unknown)?,
            all(b_part.as_deref(), default[1]).ok_or_else(unknown)?,
        ]
    };
    let written = match (dest_part.as_deref(), lanes) {
        (None, 1) => 0,
        (Some(part), 1) => part_of_one(part).ok_or_else(unknown)?,
        (None, lanes) => (1 << lanes) - 1,
        (Some(part), _) => part.bytes().skip(1).fold(0, |mask, digit| mask | 1 << (digit & 3)),
    };
    let video = Video {
        operation,
        signed,
        saturates: has(i, "sat"),
        wraps: has(i, "wrap"),
        second,
        lanes,
        selectors,
        dest: written,
        negated: [a_negated != b_negated, c_negated],
        plus_one: has(i, "po"),
        shift: if has(i, "shr7") {
            7
        } else if has(i, "shr15") {
            15
        } else {
            0
        },
    };
    let plain = Instruction { operands: vec![dest, a, b, c], ..i.clone() };
    let x = d.keep(video);
    // SAFETY: the decoder keeps the description as long as the code.
    d.with_constant(&plain, x, |a: u32, b: u32, c: u32, x| execute(a, b, c, unsafe { kept(x) }))
}

/// An operand without what is chosen of it, that, and whether it is negated.
fn parts(operand: &Operand) -> (Operand, Option<String>, bool) {
    match operand {
        Operand::Selector(name, part) => (Operand::Name(name.clone()), Some(part.clone()), false),
        Operand::Negated(name) => match name.split_once('.') {
            Some((name, part)) => (Operand::Name(name.to_owned()), Some(part.to_owned()), true),
            None => (Operand::Name(name.clone()), None, true),
        },
        operand => (operand.clone(), None, false),
    }
}

fn part_of_one(part: &str) -> Option<u64> {
    ["b0", "b1", "b2", "b3", "h0", "h1"].iter().position(|known| *known == part).map(|at| at as u64 + 1)
}

/// The digits of `b3210`, the last one first.
fn digits(part: &str, lanes: u32) -> Option<[u64; 4]> {
    let mut found = [0; 4];
    let digits = part.get(1..)?.bytes().rev();
    if part.len() as u32 != lanes + 1 {
        return None;
    }
    for (lane, digit) in digits.enumerate() {
        found[lane] = u64::from(digit.checked_sub(b'0').filter(|digit| u32::from(*digit) < 2 * lanes)?);
    }
    Some(found)
}

/// Bits of a number, extended by its sign.
fn number(bits: u64, width: u32, signed: bool) -> i64 {
    let top = bits << (64 - width);
    if signed { top as i64 >> (64 - width) } else { (top >> (64 - width)) as i64 }
}

fn limits(width: u32, signed: bool) -> (i64, i64) {
    if signed { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

fn execute(a: u32, b: u32, c: u32, video: &Video) -> u32 {
    if video.lanes == 1 { one(a, b, c, video) } else { several(a, b, c, video) }
}

/// Shift and width of a part.
fn place(part: u64) -> (u32, u32) {
    match part {
        1..=4 => (8 * (part as u32 - 1), 8),
        5 | 6 => (16 * (part as u32 - 5), 16),
        _ => (0, 32),
    }
}

fn one(a: u32, b: u32, c: u32, video: &Video) -> u32 {
    let take = |word: u32, part: u64, signed: bool| {
        let (shift, width) = place(part);
        number(u64::from(word >> shift), width, signed)
    };
    let x = take(a, video.selectors[0][0], video.signed[1]);
    let y = take(b, video.selectors[1][0], video.signed[2]);
    let (shift, width) = place(video.dest);
    let (least, greatest) = limits(width, video.signed[0]);
    if video.operation == Multiply {
        return multiply(x, y, c, video);
    }
    let value = combine(x, y, video);
    let value = if video.saturates { value.clamp(least, greatest) } else { value };
    let value = number(value as u64, 32, video.signed[0]);
    let third = number(c.into(), 32, video.signed[0]);
    match video.second {
        1 => value.wrapping_add(third) as u32,
        2 => value.min(third) as u32,
        3 => value.max(third) as u32,
        _ if width == 32 => value as u32,
        _ => {
            let mask = ((1u32 << width) - 1) << shift;
            (value as u32) << shift & mask | c & !mask
        }
    }
}

fn combine(x: i64, y: i64, video: &Video) -> i64 {
    match video.operation {
        Add => x + y,
        Subtract => x - y,
        Difference => (x - y).abs(),
        Least => x.min(y),
        Greatest => x.max(y),
        Average if x + y >= 0 => (x + y + 1) >> 1,
        Average => (x + y) >> 1,
        ShiftLeft => x << distance(y, video),
        ShiftRight => x >> distance(y, video),
        Multiply => x.wrapping_mul(y),
        Equal => (x == y).into(),
        NotEqual => (x != y).into(),
        Less => (x < y).into(),
        LessOrEqual => (x <= y).into(),
        Greater => (x > y).into(),
        GreaterOrEqual => (x >= y).into(),
    }
}

fn distance(y: i64, video: &Video) -> u32 {
    let y = y as u32;
    // Not more than what the result has, and never more than the host can shift by.
    if video.wraps { y & 31 } else { y.min(32) }
}

fn multiply(x: i64, y: i64, c: u32, video: &Video) -> u32 {
    let signed = video.signed[1] || video.signed[2] || video.negated[0] || video.negated[1];
    let product = i128::from(x) * i128::from(y);
    let third = i128::from(number(c.into(), 32, signed));
    let product = if video.negated[0] { -product } else { product };
    let third = if video.negated[1] { -third } else { third };
    let sum = (product + third + i128::from(video.plus_one)) >> video.shift;
    let (least, greatest) = limits(32, signed);
    if video.saturates { sum.clamp(least.into(), greatest.into()) as u32 } else { sum as u32 }
}

fn several(a: u32, b: u32, c: u32, video: &Video) -> u32 {
    let width = 32 / video.lanes;
    let all = u64::from(b) << 32 | u64::from(a);
    let (least, greatest) = limits(width, video.signed[0]);
    let mask = (1u32 << width) - 1;
    let mut result = c;
    for lane in 0..video.lanes {
        if video.dest >> lane & 1 == 0 {
            continue;
        }
        let take = |operand: usize| {
            let selected = video.selectors[operand][lane as usize] as u32 * width;
            number(all >> selected, width, video.signed[1 + operand])
        };
        let value = combine(take(0), take(1), video);
        let value = if video.saturates { value.clamp(least, greatest) } else { value };
        if video.second == 1 {
            result = result.wrapping_add(value as u32);
        } else {
            let at = lane * width;
            result = result & !(mask << at) | (value as u32 & mask) << at;
        }
    }
    result
}
