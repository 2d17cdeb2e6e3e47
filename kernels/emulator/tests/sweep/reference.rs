//! What results are, computed without the emulated GPU's code.
//!
//! A float operation is computed in double precision together with its error, from which every rounding to a narrower
//! format follows. Integers are computed in 128 bits.

use super::forms::{Bound, Form};

/// The result of an exact form, if it is computed here.
pub(crate) fn expected(form: &Form, row: &[u64; 3]) -> Option<u64> {
    if form.text.contains(' ') || form.bound.is_some() {
        return None;
    }
    let words: Vec<&str> = form.text.split('.').collect();
    let has = |word: &str| words.contains(&word);
    let ty = *words.last()?;
    let opcode = words[0];
    if opcode == "cvt" {
        return convert(&words, row[0], super::kernels::register(&form.dest));
    }
    if let Some(one) = ty.strip_suffix("x2").filter(|one| one.contains('f')) {
        let half = |shift: u32| arithmetic(opcode, one, &has, &row.map(|pair| pair >> shift & 0xFFFF));
        return Some(half(0)? | half(16)? << 16);
    }
    if Format::of(ty).is_some() {
        return arithmetic(opcode, ty, &has, row);
    }
    integers(opcode, ty, &has, row)
}

/// A found result is the expected one. Which NaN it is does not matter here.
pub(crate) fn agrees(form: &Form, expected: u64, found: u64) -> bool {
    one_nan(&form.dest, expected) == one_nan(&form.dest, found)
}

/// The same bits, with one form for every NaN.
pub(crate) fn one_nan(ty: &str, bits: u64) -> u64 {
    if let Some(one) = ty.strip_suffix("x2").filter(|one| one.contains('f')) {
        return one_nan(one, bits & 0xFFFF) | one_nan(one, bits >> 16 & 0xFFFF) << 16;
    }
    match Format::of(ty) {
        Some(format) if format.read(bits).is_nan() => format.nan(),
        _ => bits,
    }
}

/// A result of an approximate form is within its bound of the exact value, and of another unit's result.
pub(crate) fn is_near(
    form: &Form,
    bound: Bound,
    row: &[u64; 3],
    found: u64,
    other: Option<u64>,
) -> Option<bool> {
    if let Some(one) = form.dest.strip_suffix("x2") {
        let half = |shift: u32| {
            let row = row.map(|pair| pair >> shift & 0xFFFF);
            let other = other.map(|pair| pair >> shift & 0xFFFF);
            near(form, one, bound, &row, found >> shift & 0xFFFF, other)
        };
        return Some(half(0)? && half(16)?);
    }
    near(form, &form.dest, bound, row, found, other)
}

fn near(form: &Form, ty: &str, bound: Bound, row: &[u64; 3], found: u64, other: Option<u64>) -> Option<bool> {
    let format = Format::of(ty)?;
    let value = match other {
        Some(other) => format.read(other),
        None => approximated(form, ty, row)?,
    };
    let found = format.read(found);
    if value.is_nan() || found.is_nan() {
        return Some(value.is_nan() && found.is_nan());
    }
    let largest = format.read(format.infinity() - 1);
    if value.abs() > largest || found.is_infinite() {
        return Some(found == value || found.abs() >= largest && found.signum() == value.signum());
    }
    // The result is rounded to its format besides.
    let unit = format.unit(value.abs().max(found.abs()));
    let allowed = match bound {
        Bound::Ulp(units) => (units + 0.5) * unit,
        Bound::Relative(part) => part * value.abs() + unit,
        Bound::Absolute(distance) => distance + unit,
        Bound::Scaled(part) => part * value.abs().max(1.0) + unit,
    };
    let flushed = form.text.contains(".ftz") || ty == "f32" && value.abs() < format.least();
    Some(
        (found - value).abs() <= allowed
            || flushed && found.abs() <= format.least() && value.abs() <= format.least(),
    )
}

/// The exact value that a form approximates.
fn approximated(form: &Form, ty: &str, row: &[u64; 3]) -> Option<f64> {
    let format = Format::of(ty)?;
    let flush = |bits: u64| {
        // The gross approximations of double precision see the upper half of their operand.
        let gross = ty == "f64" && form.text.contains(".ftz");
        let value = format.read(if gross { bits & !0xFFFF_FFFF } else { bits });
        if form.text.contains(".ftz") && value.abs() < format.least() { 0f64.copysign(value) } else { value }
    };
    let (a, b) = (flush(row[0]), flush(row[1]));
    Some(match form.text.split('.').next()? {
        "rcp" => 1.0 / a,
        "sqrt" => a.sqrt(),
        "rsqrt" => 1.0 / a.sqrt(),
        "sin" => a.sin(),
        "cos" => a.cos(),
        "lg2" => a.log2(),
        "ex2" => a.exp2(),
        "tanh" => a.tanh(),
        // Beyond this divisor the form promises zero.
        "div" if form.text.contains("approx") && b.is_finite() && b.abs() > 2f64.powi(126) => {
            a * 0f64.copysign(b)
        }
        "div" => a / b,
        _ => return None,
    })
}

/// A format of numbers.
struct Format {
    fraction: u32,
    exponent: u32,
}

impl Format {
    fn of(ty: &str) -> Option<Format> {
        let (fraction, exponent) = match ty {
            "f16" => (10, 5),
            "bf16" => (7, 8),
            "f32" => (23, 8),
            "f64" => (52, 11),
            _ => return None,
        };
        Some(Format { fraction, exponent })
    }

    fn bias(&self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn infinity(&self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    fn nan(&self) -> u64 {
        self.infinity() | 1 << (self.fraction - 1)
    }

    /// The least normal number.
    fn least(&self) -> f64 {
        2f64.powi(1 - self.bias())
    }

    fn read(&self, bits: u64) -> f64 {
        if self.fraction == 52 {
            return f64::from_bits(bits);
        }
        let sign = if bits >> (self.fraction + self.exponent) & 1 != 0 { -1.0 } else { 1.0 };
        let fraction = (bits & ((1 << self.fraction) - 1)) as f64 / 2f64.powi(self.fraction as i32);
        let field = (bits >> self.fraction & ((1 << self.exponent) - 1)) as i32;
        if field == (1 << self.exponent) - 1 {
            return if fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
        }
        let magnitude = if field == 0 {
            fraction * self.least()
        } else {
            (1.0 + fraction) * 2f64.powi(field - self.bias())
        };
        sign * magnitude
    }

    /// A value that the format holds.
    fn write(&self, value: f64) -> u64 {
        if self.fraction == 52 {
            return value.to_bits();
        }
        let sign = u64::from(value.is_sign_negative()) << (self.fraction + self.exponent);
        if value.is_nan() {
            return self.nan();
        }
        if value.is_infinite() {
            return sign | self.infinity();
        }
        // The first bit of a normal number adds one to the field of its exponent.
        let normal = value.abs() >= self.least();
        let field = if normal { ((self.power(value) + self.bias() - 1) as u64) << self.fraction } else { 0 };
        sign | (field + (value.abs() / self.unit(value)) as u64)
    }

    /// The exponent of a value, at least that of the least normal number.
    fn power(&self, value: f64) -> i32 {
        let field = (value.to_bits() >> 52 & 0x7FF) as i32 - 1023;
        field.max(1 - self.bias())
    }

    /// The distance of numbers where a value lies.
    fn unit(&self, value: f64) -> f64 {
        2f64.powi((self.power(value) - self.fraction as i32).max(-1074))
    }

    /// Rounds `value + error`, where the error is less than the value's last bit.
    fn round(&self, value: f64, error: f64, mode: &str) -> f64 {
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        let unit = self.unit(value);
        let (down, up) = ((value / unit).floor() * unit, (value / unit).ceil() * unit);
        // Where the value is one of the format's, the error says on which side of it the sum is.
        let (down, up) = match (down == up, error.total_cmp(&0.0)) {
            (true, std::cmp::Ordering::Less) if error != 0.0 => (self.below(value), up),
            (true, std::cmp::Ordering::Greater) if error != 0.0 => (down, -self.below(-value)),
            _ => (down, up),
        };
        let rounded = match mode {
            "rm" => down,
            "rp" => up,
            "rz" if value > 0.0 => down,
            "rz" => up,
            _ if down == up => down,
            _ => {
                let (to_down, to_up) = (value - down, up - value);
                let sooner = if to_down == to_up { error } else { to_down - to_up };
                if sooner < 0.0 || sooner == 0.0 && (down / self.unit(down)) % 2.0 == 0.0 { down } else { up }
            }
        };
        let largest = self.read(self.infinity() - 1);
        let rounded = if rounded == 0.0 { 0f64.copysign(value) } else { rounded };
        if rounded.abs() <= largest {
            return rounded;
        }
        let to_largest = match mode {
            "rz" => true,
            "rm" => value > 0.0,
            "rp" => value < 0.0,
            _ => false,
        };
        if to_largest { largest.copysign(value) } else { f64::INFINITY.copysign(value) }
    }

    /// The next number of the format below one of them.
    fn below(&self, value: f64) -> f64 {
        let shorter = value > 0.0
            && value / self.unit(value) == 2f64.powi(self.fraction as i32)
            && value > self.least();
        value - if shorter { self.unit(value) / 2.0 } else { self.unit(value) }
    }
}

/// The sum, and what is lost of it.
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    (sum, if error.is_finite() { error } else { 0.0 })
}

fn arithmetic(opcode: &str, ty: &str, has: &dyn Fn(&str) -> bool, row: &[u64; 3]) -> Option<u64> {
    let format = Format::of(ty)?;
    let flush = |value: f64| {
        if has("ftz") && value.abs() < format.least() { 0f64.copysign(value) } else { value }
    };
    if has("oob") || has("xorsign") {
        return None;
    }
    let [a, b, c] = row.map(|bits| flush(format.read(bits)));
    let mode = ["rz", "rm", "rp"].into_iter().find(|mode| has(mode)).unwrap_or("rn");
    if format.fraction == 52 && mode != "rn" {
        return None;
    }
    let wide = format.fraction == 52;
    let (value, error) = match opcode {
        "add" => sum(a, b),
        "sub" => sum(a, -b),
        "mul" => (a * b, 0.0),
        "fma" | "mad" if wide => (a.mul_add(b, c), 0.0),
        "fma" | "mad" => sum(a * b, c),
        "div" | "rcp" => {
            let (a, b) = if opcode == "rcp" { (1.0, a) } else { (a, b) };
            let quotient = a / b;
            let rest = (-quotient).mul_add(b, a) * b.signum();
            (quotient, if rest.is_finite() { rest } else { 0.0 })
        }
        "sqrt" => {
            let root = a.sqrt();
            let rest = (-root).mul_add(root, a);
            (root, if rest.is_finite() { rest } else { 0.0 })
        }
        "min" | "max" => return Some(format.write(flush(extreme(a, b, opcode == "max", has("NaN"))))),
        "abs" | "neg" if a.is_nan() => return Some(format.nan()),
        "abs" => (a.abs(), 0.0),
        "neg" => (-a, 0.0),
        "copysign" if b.is_nan() => return None,
        "copysign" => {
            (b.copysign(if row[0] >> (format.fraction + format.exponent) & 1 != 0 { -1.0 } else { 1.0 }), 0.0)
        }
        _ => return None,
    };
    let exact_zero = value == 0.0 && error == 0.0 && matches!(opcode, "add" | "sub" | "fma" | "mad");
    let value = if exact_zero && mode == "rm" {
        let second = match opcode {
            "add" => b,
            "sub" => -b,
            _ => c,
        };
        let first = if matches!(opcode, "add" | "sub") { a } else { a * b };
        if first.is_sign_positive() && second.is_sign_positive() { 0.0 } else { -0.0 }
    } else {
        value
    };
    let error = if wide { 0.0 } else { error };
    let mut rounded = if wide { value } else { format.round(value, error, mode) };
    // A number is subnormal if it is one when exponents have no end, also where it would be rounded up to a normal one.
    let scale = 1.0 / format.least();
    let subnormal = || format.round(value * scale, error * scale, mode).abs() < 1.0;
    if has("ftz") && subnormal() {
        rounded = 0f64.copysign(rounded);
    }
    if has("sat") {
        rounded = if rounded > 0.0 { rounded.min(1.0) } else { 0.0 };
    }
    if has("relu") && rounded <= 0.0 {
        // The sign of a zero is for the GPU to say.
        if rounded == 0.0 {
            return None;
        }
        rounded = 0.0;
    }
    Some(format.write(rounded))
}

fn extreme(a: f64, b: f64, greatest: bool, nan: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::NAN,
        (true, false) => {
            if nan {
                a
            } else {
                b
            }
        }
        (false, true) => {
            if nan {
                b
            } else {
                a
            }
        }
        _ => {
            let first_is_less = a < b || a == b && a.is_sign_negative();
            if first_is_less != greatest { a } else { b }
        }
    }
}

fn read_integer(ty: &str, bits: u64) -> i128 {
    let width: u32 = ty[1..].parse().unwrap_or(32);
    let shifted = bits << (64 - width);
    if ty.starts_with('s') {
        i128::from(shifted as i64 >> (64 - width))
    } else {
        i128::from(shifted >> (64 - width))
    }
}

fn limits(ty: &str) -> (i128, i128) {
    let width: u32 = ty[1..].parse().unwrap_or(32);
    if ty.starts_with('s') { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

/// In a register of the destination's width, or of 32 bits if that is less.
fn write_integer(ty: &str, value: i128, register: u32) -> u64 {
    let width: u32 = ty[1..].parse().unwrap_or(32);
    let wrapped = read_integer(ty, (value as u64) & (!0 >> (64 - width))) as u64;
    if register == 64 { wrapped } else { wrapped & ((1 << register) - 1) }
}

fn integers(opcode: &str, ty: &str, has: &dyn Fn(&str) -> bool, row: &[u64; 3]) -> Option<u64> {
    if !matches!(ty, "u16" | "s16" | "u32" | "s32" | "u64" | "s64") {
        return None;
    }
    let width: u32 = ty[1..].parse().ok()?;
    let [a, b, c] = row.map(|bits| read_integer(ty, bits));
    let (wide, high) = (has("wide"), has("hi"));
    let product = || {
        let product = a.wrapping_mul(b);
        if high {
            if width == 64 && ty.starts_with('u') {
                ((a as u128 * b as u128) >> 64) as i128
            } else {
                product >> width
            }
        } else {
            product
        }
    };
    let value = match opcode {
        "add" if !has("cc") => a + b,
        "sub" if !has("cc") => a - b,
        "mul" if wide => return Some((a * b) as u64 & (!0 >> (64 - 2 * width))),
        "mad" if wide => return None,
        "mul" => product(),
        "mad" if !has("cc") => product() + c,
        "min" if !has("relu") => a.min(b),
        "max" if !has("relu") => a.max(b),
        "div" => a / b,
        "rem" => a % b,
        "sad" => (a - b).abs() + c,
        "abs" => a.abs(),
        "neg" => -a,
        "shl" => {
            if row[1] >= u64::from(width) {
                0
            } else {
                a << row[1]
            }
        }
        "shr" => a >> row[1].min(100),
        _ => return None,
    };
    let (least, greatest) = limits(ty);
    let value = if has("sat") { value.clamp(least, greatest) } else { value };
    Some(write_integer(ty, value, width))
}

fn convert(words: &[&str], bits: u64, register: u32) -> Option<u64> {
    let has = |word: &str| words.contains(&word);
    let [.., to, from] = *words else { return None };
    if has("pack") || has("relu") || has("satfinite") {
        return None;
    }
    let integer = |ty: &str| matches!(ty, "u8" | "s8" | "u16" | "s16" | "u32" | "s32" | "u64" | "s64");
    let (least, greatest) = if integer(to) { limits(to) } else { (0, 0) };
    if integer(to) && integer(from) {
        let value = read_integer(from, bits);
        return Some(write_integer(
            to,
            if has("sat") { value.clamp(least, greatest) } else { value },
            register,
        ));
    }
    if integer(to) {
        let value = Format::of(from)?.read(bits);
        let value = if has("ftz") && value.abs() < Format::of(from)?.least() { 0.0 } else { value };
        // What NaN becomes is for the GPU to say.
        if value.is_nan() {
            return None;
        }
        let whole = match words[1] {
            "rni" => value.round_ties_even(),
            "rzi" => value.trunc(),
            "rmi" => value.floor(),
            _ => value.ceil(),
        };
        return Some(write_integer(to, (whole as i128).clamp(least, greatest), register));
    }
    None
}
