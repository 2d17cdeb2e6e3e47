//! Integer arithmetic, extended-precision arithmetic, logic, shifts and bit fields.

use super::{has, last_type};
use crate::{
    module::{Decoded, Decoder, program::Ins},
    ptx::ast::Instruction,
};

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let ty = last_type(instruction);
    let (d, i) = (decoder, instruction);
    let carries = has(i, "cc") || matches!(i.opcode.as_str(), "addc" | "subc" | "madc");
    if carries {
        return extended(d, i, ty);
    }
    let saturates = has(i, "sat");
    match (i.opcode.as_str(), ty) {
        ("add", "s32") if saturates => d.rare().binary(i, |a: i32, b: i32| a.saturating_add(b)),
        ("sub", "s32") if saturates => d.rare().binary(i, |a: i32, b: i32| a.saturating_sub(b)),
        ("add", "u16" | "s16") => d.rare().binary(i, |a: u16, b: u16| a.wrapping_add(b)),
        ("add", "u32" | "s32") => d.binary(i, |a: u32, b: u32| a.wrapping_add(b)),
        ("add", "u64" | "s64") => d.binary(i, |a: u64, b: u64| a.wrapping_add(b)),
        ("add", "u16x2" | "s16x2") => {
            d.rare().binary(i, |a: u32, b: u32| halves(a, b, |a, b| a.wrapping_add(b)))
        }
        ("sub", "u16" | "s16") => d.rare().binary(i, |a: u16, b: u16| a.wrapping_sub(b)),
        ("sub", "u32" | "s32") => d.binary(i, |a: u32, b: u32| a.wrapping_sub(b)),
        ("sub", "u64" | "s64") => d.binary(i, |a: u64, b: u64| a.wrapping_sub(b)),
        ("mul", _) => multiply(d, i, ty),
        ("mad", _) => multiply_add(d, i, ty),
        ("mul24" | "mad24", _) => multiply_24(d, i, ty),
        ("sad", "u16") => d.rare().ternary(i, |a: u16, b: u16, c: u16| c.wrapping_add(a.abs_diff(b))),
        ("sad", "s16") => d.rare().ternary(i, |a: i16, b: i16, c: u16| c.wrapping_add(a.abs_diff(b))),
        ("sad", "u32") => d.rare().ternary(i, |a: u32, b: u32, c: u32| c.wrapping_add(a.abs_diff(b))),
        ("sad", "s32") => d.rare().ternary(i, |a: i32, b: i32, c: u32| c.wrapping_add(a.abs_diff(b))),
        ("sad", "u64") => d.rare().ternary(i, |a: u64, b: u64, c: u64| c.wrapping_add(a.abs_diff(b))),
        ("sad", "s64") => d.rare().ternary(i, |a: i64, b: i64, c: u64| c.wrapping_add(a.abs_diff(b))),
        // Division by zero has no defined result; GPUs give all bits, and the dividend as the remainder.
        ("div", "u16") => d.rare().binary(i, |a: u16, b: u16| a.checked_div(b).unwrap_or(!0)),
        ("div", "s16") => d.rare().binary(i, |a: i16, b: i16| if b == 0 { -1 } else { a.wrapping_div(b) }),
        ("div", "u32") => d.rare().binary(i, |a: u32, b: u32| a.checked_div(b).unwrap_or(!0)),
        ("div", "s32") => d.rare().binary(i, |a: i32, b: i32| if b == 0 { -1 } else { a.wrapping_div(b) }),
        ("div", "u64") => d.rare().binary(i, |a: u64, b: u64| a.checked_div(b).unwrap_or(!0)),
        ("div", "s64") => d.rare().binary(i, |a: i64, b: i64| if b == 0 { -1 } else { a.wrapping_div(b) }),
        ("rem", "u16") => d.rare().binary(i, |a: u16, b: u16| a.checked_rem(b).unwrap_or(a)),
        ("rem", "s16") => d.rare().binary(i, |a: i16, b: i16| if b == 0 { a } else { a.wrapping_rem(b) }),
        ("rem", "u32") => d.rare().binary(i, |a: u32, b: u32| a.checked_rem(b).unwrap_or(a)),
        ("rem", "s32") => d.rare().binary(i, |a: i32, b: i32| if b == 0 { a } else { a.wrapping_rem(b) }),
        ("rem", "u64") => d.rare().binary(i, |a: u64, b: u64| a.checked_rem(b).unwrap_or(a)),
        ("rem", "s64") => d.rare().binary(i, |a: i64, b: i64| if b == 0 { a } else { a.wrapping_rem(b) }),
        ("abs", "s16") => d.rare().unary(i, |a: i16| a.wrapping_abs()),
        ("abs", "s32") => d.unary(i, |a: i32| a.wrapping_abs()),
        ("abs", "s64") => d.rare().unary(i, |a: i64| a.wrapping_abs()),
        ("neg", "s16") => d.rare().unary(i, |a: i16| a.wrapping_neg()),
        ("neg", "s32") => d.unary(i, |a: i32| a.wrapping_neg()),
        ("neg", "s64") => d.rare().unary(i, |a: i64| a.wrapping_neg()),
        ("min", "u16") => d.rare().binary(i, |a: u16, b: u16| a.min(b)),
        ("min", "s16") => d.rare().binary(i, |a: i16, b: i16| a.min(b)),
        ("min", "u32") => d.binary(i, |a: u32, b: u32| a.min(b)),
        ("min", "s32") if has(i, "relu") => d.rare().binary(i, |a: i32, b: i32| a.min(b).max(0)),
        ("min", "s32") => d.binary(i, |a: i32, b: i32| a.min(b)),
        ("min", "u64") => d.rare().binary(i, |a: u64, b: u64| a.min(b)),
        ("min", "s64") => d.rare().binary(i, |a: i64, b: i64| a.min(b)),
        ("min", "u16x2") => d.rare().binary(i, |a: u32, b: u32| halves(a, b, |a, b| a.min(b))),
        ("min", "s16x2") if has(i, "relu") => {
            d.rare().binary(i, |a: u32, b: u32| halves(a, b, |a, b| (a as i16).min(b as i16).max(0) as u16))
        }
        ("min", "s16x2") => {
            d.binary(i, |a: u32, b: u32| halves(a, b, |a, b| (a as i16).min(b as i16) as u16))
        }
        ("max", "u16") => d.rare().binary(i, |a: u16, b: u16| a.max(b)),
        ("max", "s16") => d.rare().binary(i, |a: i16, b: i16| a.max(b)),
        ("max", "u32") => d.binary(i, |a: u32, b: u32| a.max(b)),
        ("max", "s32") if has(i, "relu") => d.rare().binary(i, |a: i32, b: i32| a.max(b).max(0)),
        ("max", "s32") => d.binary(i, |a: i32, b: i32| a.max(b)),
        ("max", "u64") => d.rare().binary(i, |a: u64, b: u64| a.max(b)),
        ("max", "s64") => d.rare().binary(i, |a: i64, b: i64| a.max(b)),
        ("max", "u16x2") => d.rare().binary(i, |a: u32, b: u32| halves(a, b, |a, b| a.max(b))),
        ("max", "s16x2") if has(i, "relu") => {
            d.rare().binary(i, |a: u32, b: u32| halves(a, b, |a, b| (a as i16).max(b as i16).max(0) as u16))
        }
        ("max", "s16x2") => {
            d.binary(i, |a: u32, b: u32| halves(a, b, |a, b| (a as i16).max(b as i16) as u16))
        }
        ("popc", "b32") => d.unary(i, |a: u32| a.count_ones()),
        ("popc", "b64") => d.rare().unary(i, |a: u64| a.count_ones()),
        ("clz", "b32") => d.rare().unary(i, |a: u32| a.leading_zeros()),
        ("clz", "b64") => d.rare().unary(i, |a: u64| a.leading_zeros()),
        ("brev", "b32") => d.rare().unary(i, |a: u32| a.reverse_bits()),
        ("brev", "b64") => d.rare().unary(i, |a: u64| a.reverse_bits()),
        ("bfind", _) => find_leading(d, i, ty),
        ("fns", "b32") => {
            d.rare().ternary(i, |mask: u32, base: u32, offset: i32| find_nth_set(mask, base, offset))
        }
        ("bfe", "u32") => {
            d.ternary(i, |a: u32, at: u32, len: u32| extract(a.into(), 32, false, at, len) as u32)
        }
        ("bfe", "s32") => {
            d.ternary(i, |a: u32, at: u32, len: u32| extract(a.into(), 32, true, at, len) as u32)
        }
        ("bfe", "u64") => d.rare().ternary(i, |a: u64, at: u32, len: u32| extract(a, 64, false, at, len)),
        ("bfe", "s64") => d.rare().ternary(i, |a: u64, at: u32, len: u32| extract(a, 64, true, at, len)),
        ("bfi", _) => insert_field(d, i, ty),
        ("bmsk", "b32") if has(i, "wrap") => {
            d.rare().binary(i, |at: u32, len: u32| ones(len & 31) << (at & 31))
        }
        ("bmsk", "b32") => d.rare().binary(i, |at: u32, len: u32| shift_left(ones(len.min(32)), at)),
        ("szext", "u32") if has(i, "wrap") => d.rare().binary(i, |a: u32, len: u32| a & ones(len & 31)),
        ("szext", "s32") if has(i, "wrap") => d.rare().binary(i, |a: u32, len: u32| sign_extend(a, len & 31)),
        ("szext", "u32") => d.rare().binary(i, |a: u32, len: u32| a & ones(len.min(32))),
        ("szext", "s32") => d.rare().binary(i, |a: u32, len: u32| sign_extend(a, len.min(32))),
        ("dp4a" | "dp2a", _) => dot_product(d, i),
        ("and", "pred") => d.predicates(i, |a, b| a & b),
        ("or", "pred") => d.predicates(i, |a, b| a | b),
        ("xor", "pred") => d.predicates(i, |a, b| a ^ b),
        ("not", "pred") => d.predicates(i, |a, _| !a),
        ("and", "b16" | "b32") => d.binary(i, |a: u32, b: u32| a & b),
        ("and", "b64") => d.binary(i, |a: u64, b: u64| a & b),
        ("or", "b16" | "b32") => d.binary(i, |a: u32, b: u32| a | b),
        ("or", "b64") => d.binary(i, |a: u64, b: u64| a | b),
        ("xor", "b16" | "b32") => d.binary(i, |a: u32, b: u32| a ^ b),
        ("xor", "b64") => d.binary(i, |a: u64, b: u64| a ^ b),
        ("not", "b16") => d.rare().unary(i, |a: u16| !a),
        ("not", "b32") => d.unary(i, |a: u32| !a),
        ("not", "b64") => d.rare().unary(i, |a: u64| !a),
        ("cnot", "b16") => d.rare().unary(i, |a: u16| u16::from(a == 0)),
        ("cnot", "b32") => d.rare().unary(i, |a: u32| u32::from(a == 0)),
        ("cnot", "b64") => d.rare().unary(i, |a: u64| u64::from(a == 0)),
        ("lop3", "b32") => super::logic::decode(d, i),
        // Shifts by the width or more leave nothing, or the sign.
        ("shl", "b16") => d.rare().binary(i, |a: u16, b: u32| a.checked_shl(b).unwrap_or(0)),
        ("shl", "b32") => d.binary(i, shift_left),
        ("shl", "b64") => d.binary(i, |a: u64, b: u32| if b > 63 { 0 } else { a << (b & 63) }),
        ("shr", "b16" | "u16") => d.rare().binary(i, |a: u16, b: u32| a.checked_shr(b).unwrap_or(0)),
        ("shr", "b32" | "u32") => d.binary(i, |a: u32, b: u32| if b > 31 { 0 } else { a >> (b & 31) }),
        ("shr", "b64" | "u64") => d.binary(i, |a: u64, b: u32| if b > 63 { 0 } else { a >> (b & 63) }),
        ("shr", "s16") => d.rare().binary(i, |a: i16, b: u32| a >> b.min(15)),
        ("shr", "s32") => d.binary(i, |a: i32, b: u32| a >> b.min(31)),
        ("shr", "s64") => d.binary(i, |a: i64, b: u32| a >> b.min(63)),
        ("shf", "b32") => funnel_shift(d, i),
        ("prmt", "b32") => permute(d, i),
        _ => Err(d.not_implemented()),
    }
}

fn multiply(d: &mut Decoder<'_>, i: &Instruction, ty: &str) -> Decoded {
    match (has(i, "wide"), has(i, "hi"), ty) {
        (true, _, "u16") => d.rare().binary(i, |a: u16, b: u16| u32::from(a) * u32::from(b)),
        (true, _, "s16") => d.rare().binary(i, |a: i16, b: i16| i32::from(a) * i32::from(b)),
        (true, _, "u32") => d.binary(i, |a: u32, b: u32| u64::from(a) * u64::from(b)),
        (true, _, "s32") => d.binary(i, |a: i32, b: i32| i64::from(a) * i64::from(b)),
        (_, true, "u16") => d.rare().binary(i, |a: u16, b: u16| ((u32::from(a) * u32::from(b)) >> 16) as u16),
        (_, true, "s16") => d.rare().binary(i, |a: i16, b: i16| ((i32::from(a) * i32::from(b)) >> 16) as i16),
        (_, true, "u32") => d.rare().binary(i, |a: u32, b: u32| high_u32(a, b)),
        (_, true, "s32") => d.rare().binary(i, |a: i32, b: i32| high_s32(a, b)),
        (_, true, "u64") => d.rare().binary(i, |a: u64, b: u64| high_u64(a, b)),
        (_, true, "s64") => d.rare().binary(i, |a: i64, b: i64| high_s64(a, b)),
        (_, _, "u16" | "s16") => d.rare().binary(i, |a: u16, b: u16| a.wrapping_mul(b)),
        (_, _, "u32" | "s32") => d.binary(i, |a: u32, b: u32| a.wrapping_mul(b)),
        (_, _, "u64" | "s64") => d.binary(i, |a: u64, b: u64| a.wrapping_mul(b)),
        _ => Err(d.not_implemented()),
    }
}

fn multiply_add(d: &mut Decoder<'_>, i: &Instruction, ty: &str) -> Decoded {
    match (has(i, "wide"), has(i, "hi"), ty) {
        (true, _, "u16") => {
            d.rare().ternary(i, |a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c))
        }
        (true, _, "s16") => {
            d.rare().ternary(i, |a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c))
        }
        (true, _, "u32") => {
            d.ternary(i, |a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
        }
        (true, _, "s32") => {
            d.ternary(i, |a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c))
        }
        (_, true, "s32") if has(i, "sat") => {
            d.rare().ternary(i, |a: i32, b: i32, c: i32| high_s32(a, b).saturating_add(c))
        }
        (_, true, "u16") => d.rare().ternary(i, |a: u16, b: u16, c: u16| {
            (((u32::from(a) * u32::from(b)) >> 16) as u16).wrapping_add(c)
        }),
        (_, true, "s16") => d.rare().ternary(i, |a: i16, b: i16, c: i16| {
            (((i32::from(a) * i32::from(b)) >> 16) as i16).wrapping_add(c)
        }),
        (_, true, "u32") => d.rare().ternary(i, |a: u32, b: u32, c: u32| high_u32(a, b).wrapping_add(c)),
        (_, true, "s32") => d.rare().ternary(i, |a: i32, b: i32, c: i32| high_s32(a, b).wrapping_add(c)),
        (_, true, "u64") => d.rare().ternary(i, |a: u64, b: u64, c: u64| high_u64(a, b).wrapping_add(c)),
        (_, true, "s64") => d.rare().ternary(i, |a: i64, b: i64, c: i64| high_s64(a, b).wrapping_add(c)),
        (_, _, "u16" | "s16") => {
            d.rare().ternary(i, |a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c))
        }
        (_, _, "u32" | "s32") => d.ternary(i, |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c)),
        (_, _, "u64" | "s64") => d.ternary(i, |a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c)),
        _ => Err(d.not_implemented()),
    }
}

fn multiply_24(d: &mut Decoder<'_>, i: &Instruction, ty: &str) -> Decoded {
    let shift = if has(i, "hi") { 16 } else { 0 };
    match ty {
        "u32" => d.with_constant(i, shift, |a: u32, b: u32, c: u32, shift| {
            (((u64::from(a & 0xFF_FFFF) * u64::from(b & 0xFF_FFFF)) >> shift) as u32).wrapping_add(c)
        }),
        "s32" if has(i, "sat") => d.with_constant(i, shift, |a: i32, b: i32, c: i32, shift| {
            (((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) >> shift) as i32).saturating_add(c)
        }),
        "s32" => d.with_constant(i, shift, |a: i32, b: i32, c: i32, shift| {
            (((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) >> shift) as i32).wrapping_add(c)
        }),
        _ => Err(d.not_implemented()),
    }
}

/// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`. The flag of a subtraction is a borrow.
fn extended(d: &mut Decoder<'_>, i: &Instruction, ty: &str) -> Decoded {
    let reads = i.opcode.ends_with('c');
    let writes = has(i, "cc");
    let high = has(i, "hi");
    match (i.opcode.as_str(), ty) {
        ("add" | "addc", "u32" | "s32" | "b32") => {
            d.carrying(i, reads, writes, |a: u32, b: u32, _, carry| add_u32(a, b, carry))
        }
        ("add" | "addc", "u64" | "s64" | "b64") => {
            d.carrying(i, reads, writes, |a: u64, b: u64, _, carry| add_u64(a, b, carry))
        }
        ("sub" | "subc", "u32" | "s32" | "b32") => {
            d.carrying(i, reads, writes, |a: u32, b: u32, _, borrow| {
                let (first, one) = a.overflowing_sub(b);
                let (second, two) = first.overflowing_sub(borrow.into());
                (second, one | two)
            })
        }
        ("sub" | "subc", "u64" | "s64" | "b64") => {
            d.carrying(i, reads, writes, |a: u64, b: u64, _, borrow| {
                let (first, one) = a.overflowing_sub(b);
                let (second, two) = first.overflowing_sub(borrow.into());
                (second, one | two)
            })
        }
        ("mad" | "madc", "u32") if high => {
            d.carrying(i, reads, writes, |a: u32, b: u32, c: u32, carry| add_u32(high_u32(a, b), c, carry))
        }
        ("mad" | "madc", "s32") if high => d.carrying(i, reads, writes, |a: u32, b: u32, c: u32, carry| {
            add_u32(high_s32(a as i32, b as i32) as u32, c, carry)
        }),
        ("mad" | "madc", "u64") if high => {
            d.carrying(i, reads, writes, |a: u64, b: u64, c: u64, carry| add_u64(high_u64(a, b), c, carry))
        }
        ("mad" | "madc", "s64") if high => d.carrying(i, reads, writes, |a: u64, b: u64, c: u64, carry| {
            add_u64(high_s64(a as i64, b as i64) as u64, c, carry)
        }),
        ("mad" | "madc", "u32" | "s32") => {
            d.carrying(i, reads, writes, |a: u32, b: u32, c: u32, carry| add_u32(a.wrapping_mul(b), c, carry))
        }
        ("mad" | "madc", "u64" | "s64") => {
            d.carrying(i, reads, writes, |a: u64, b: u64, c: u64, carry| add_u64(a.wrapping_mul(b), c, carry))
        }
        _ => Err(d.not_implemented()),
    }
}

fn add_u32(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let (first, one) = a.overflowing_add(b);
    let (second, two) = first.overflowing_add(carry.into());
    (second, one | two)
}

fn add_u64(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (first, one) = a.overflowing_add(b);
    let (second, two) = first.overflowing_add(carry.into());
    (second, one | two)
}

fn high_u32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

fn high_s32(a: i32, b: i32) -> i32 {
    ((i64::from(a) * i64::from(b)) >> 32) as i32
}

fn high_u64(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

fn high_s64(a: i64, b: i64) -> i64 {
    ((i128::from(a) * i128::from(b)) >> 64) as i64
}

fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

fn shift_left(a: u32, b: u32) -> u32 {
    if b > 31 { 0 } else { a << (b & 31) }
}

/// The lowest `len` bits, up to 32.
fn ones(len: u32) -> u32 {
    ((1u64 << len) - 1) as u32
}

fn sign_extend(a: u32, len: u32) -> u32 {
    if len == 0 { 0 } else { ((a << (32 - len)) as i32 >> (32 - len)) as u32 }
}

/// Place and length of a field. Of 32 bits a GPU looks at their lower bytes alone, of 64 at all they have.
fn field(width: u32, at: u32, len: u32) -> (u32, u32) {
    if width == 32 { (at & 255, len & 255) } else { (at, len) }
}

/// `bfe`: bits beyond the value are zero, or the field's sign.
fn extract(a: u64, width: u32, signed: bool, at: u32, len: u32) -> u64 {
    let (at, len) = field(width, at, len);
    if len == 0 {
        return 0;
    }
    let msb = width - 1;
    let sign = signed && a >> at.saturating_add(len - 1).min(msb) & 1 != 0;
    let field = if at > msb { 0 } else { a >> at };
    let there = if at > msb { 0 } else { (width - at).min(len) };
    let mask = if there >= 64 { !0 } else { (1u64 << there) - 1 };
    let filled = if sign { !mask } else { 0 };
    (field & mask) | filled
}

fn insert_field(d: &mut Decoder<'_>, i: &Instruction, ty: &str) -> Decoded {
    let [dest, a, b, at, len] = d.operands(i)?;
    let (at, len) = (d.source::<u32>(at)?, d.source::<u32>(len)?);
    match ty {
        "b32" => {
            let ins =
                d.four::<u32, u32, u32, _>(|a, b, at, len| insert(a.into(), b.into(), 32, at, len) as u32);
            let (dest, a, b) = (d.dest::<u32>(dest)?, d.source::<u32>(a)?, d.source::<u32>(b)?);
            Ok(Ins { d: dest, a, b, c: at, e: len, ..ins })
        }
        "b64" => {
            let ins = d.four::<u64, u32, u64, _>(|a, b, at, len| insert(a, b, 64, at, len));
            let (dest, a, b) = (d.dest::<u64>(dest)?, d.source::<u64>(a)?, d.source::<u64>(b)?);
            Ok(Ins { d: dest, a, b, c: at, e: len, ..ins })
        }
        _ => Err(d.not_implemented()),
    }
}

fn insert(a: u64, b: u64, width: u32, at: u32, len: u32) -> u64 {
    let (at, len) = field(width, at, len);
    if at >= width {
        return b;
    }
    let len = len.min(width - at);
    let mask = if len >= 64 { !0 } else { (1u64 << len) - 1 };
    (b & !(mask << at)) | (a & mask) << at
}

fn find_leading(d: &mut Decoder<'_>, i: &Instruction, ty: &str) -> Decoded {
    // The result is the bit's number, or how far to shift it to the top; all bits if there is none.
    let shift = u64::from(has(i, "shiftamt"));
    match ty {
        "u32" => d.with_constant(i, shift, |a: u32, _: u32, _: u32, x| leading(a.into(), 32, x != 0)),
        "s32" => d.with_constant(i, shift, |a: i32, _: u32, _: u32, x| {
            leading(u64::from((a ^ a >> 31) as u32), 32, x != 0)
        }),
        "u64" => d.with_constant(i, shift, |a: u64, _: u32, _: u32, x| leading(a, 64, x != 0)),
        "s64" => {
            d.with_constant(i, shift, |a: i64, _: u32, _: u32, x| leading((a ^ a >> 63) as u64, 64, x != 0))
        }
        _ => Err(d.not_implemented()),
    }
}

fn leading(a: u64, width: u32, shift: bool) -> u32 {
    match a.checked_ilog2() {
        None => !0,
        Some(bit) if shift => width - 1 - bit,
        Some(bit) => bit,
    }
}

/// `fns`: the n-th set bit from `base`, upwards for a positive offset, downwards for a negative one.
fn find_nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    if offset == 0 {
        return if mask >> base & 1 != 0 { base } else { !0 };
    }
    if offset == i32::MIN {
        // A GPU's answer.
        return 0;
    }
    let mut left = offset.unsigned_abs();
    let mut bit = base as i32;
    while (0..32).contains(&bit) {
        if mask >> bit & 1 != 0 {
            left -= 1;
            if left == 0 {
                return bit as u32;
            }
        }
        bit += offset.signum();
    }
    !0
}

fn funnel_shift(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    match (has(i, "l"), has(i, "clamp")) {
        (true, false) => d.rare().ternary(i, |a: u32, b: u32, c: u32| {
            (((u64::from(b) << 32 | u64::from(a)) << (c & 31)) >> 32) as u32
        }),
        (true, true) => d.rare().ternary(i, |a: u32, b: u32, c: u32| {
            (((u64::from(b) << 32 | u64::from(a)) << c.min(32)) >> 32) as u32
        }),
        (false, false) => d
            .rare()
            .ternary(i, |a: u32, b: u32, c: u32| ((u64::from(b) << 32 | u64::from(a)) >> (c & 31)) as u32),
        (false, true) => d
            .rare()
            .ternary(i, |a: u32, b: u32, c: u32| ((u64::from(b) << 32 | u64::from(a)) >> c.min(32)) as u32),
    }
}

fn permute(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let mode = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"].iter().position(|mode| has(i, mode));
    match mode {
        None => d.rare().ternary(i, |a: u32, b: u32, c: u32| bytes(a, b, c)),
        Some(mode) => d.with_constant(i, mode as u64, |a: u32, b: u32, c: u32, mode| {
            let n = c & 3;
            let selector = match mode {
                0 => [n, n + 1, n + 2, n + 3],
                1 => [n, (n + 7) & 7, (n + 6) & 7, (n + 5) & 7],
                2 => [n; 4],
                3 => [n, n.max(1), n.max(2), 3],
                4 => [0, n.min(1), n.min(2), n],
                _ => {
                    let low = 2 * (n & 1);
                    [low, low + 1, low, low + 1]
                }
            };
            bytes(a, b, selector[0] | selector[1] << 4 | selector[2] << 8 | selector[3] << 12)
        }),
    }
}

/// Each nibble of the selector names a byte of `{b, a}`, or its sign if the nibble's top bit is set.
fn bytes(a: u32, b: u32, selector: u32) -> u32 {
    let all = u64::from(b) << 32 | u64::from(a);
    let mut result = 0;
    for byte in 0..4 {
        let nibble = selector >> (4 * byte) & 15;
        let value = (all >> (8 * (nibble & 7))) as u8;
        let value = if nibble & 8 != 0 { ((value as i8) >> 7) as u8 } else { value };
        result |= u32::from(value) << (8 * byte);
    }
    result
}

/// `dp4a.atype.btype`, `dp2a.mode.atype.btype`
fn dot_product(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let types: Vec<_> = i.modifiers.iter().filter(|word| matches!(word.as_str(), "u32" | "s32")).collect();
    let [a, b] = types[..] else { return Err(d.not_implemented()) };
    let x = u64::from(a == "s32") | u64::from(b == "s32") << 1 | u64::from(has(i, "hi")) << 2;
    if i.opcode == "dp4a" {
        return d.with_constant(i, x, |a: u32, b: u32, c: i32, x| {
            (0..4).fold(c, |sum, n| {
                sum.wrapping_add(part(a, 8 * n, 8, x & 1 != 0).wrapping_mul(part(b, 8 * n, 8, x & 2 != 0)))
            })
        });
    }
    d.with_constant(i, x, |a: u32, b: u32, c: i32, x| {
        (0..2).fold(c, |sum, n| {
            let second = 8 * n + if x & 4 != 0 { 16 } else { 0 };
            sum.wrapping_add(part(a, 16 * n, 16, x & 1 != 0).wrapping_mul(part(b, second, 8, x & 2 != 0)))
        })
    })
}

fn part(word: u32, at: u32, bits: u32, signed: bool) -> i32 {
    let top = word << (32 - at - bits);
    if signed { top as i32 >> (32 - bits) } else { (top >> (32 - bits)) as i32 }
}
