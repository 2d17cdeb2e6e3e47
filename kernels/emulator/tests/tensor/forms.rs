//! The forms of instructions, and fragments for them.

use std::fmt::Write as _;

use crate::common::random::Random;

/// Fragments that share a hash.
pub(crate) const BATCH: usize = 32;

/// Fragments of a form that computes.
const FRAGMENTS: usize = 256;

/// A kernel of one instruction, which is executed for each fragment.
pub(crate) struct Form {
    /// The instruction.
    pub(crate) name: String,
    pub(crate) fragments: usize,
    pub(crate) output_bytes: usize,
    /// What a fragment reads: types, and how many elements of each.
    inputs: Vec<(&'static str, usize)>,
    /// The type of the results, for reports.
    output: &'static str,
    /// Reads from `%in`, writes to `%out`; `%lane4`, `%lane8` and `%lane` depend on the lane.
    body: String,
}

impl Form {
    /// The kernel.
    pub(crate) fn ptx(&self) -> String {
        let input_bytes = self.input_bytes();
        let output_bytes = self.output_bytes;
        format!(
            ".version 8.7\n.target sm_90\n.address_size 64\n\
             .visible .entry form(.param .u64 from, .param .u64 to) {{\n\
             .reg .b32 %a<16>, %b<16>, %c<16>, %d<16>, %lane, %block;\n\
             .reg .b64 %in, %out, %at, %wa<16>, %wb<16>, %wc<16>, %wd<16>;\n\
             ld.param.u64 %in, [from]; ld.param.u64 %out, [to];\n\
             mov.u32 %block, %ctaid.x; mov.u32 %lane, %laneid;\n\
             mad.wide.u32 %in, %block, {input_bytes}, %in; mad.wide.u32 %out, %block, {output_bytes}, %out;\n\
             {}ret;\n}}\n",
            self.body
        )
    }

    fn input_bytes(&self) -> usize {
        self.inputs.iter().map(|&(ty, count)| count * bits(ty) / 8).sum()
    }

    /// The fragments.
    pub(crate) fn input(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for fragment in 0..self.fragments {
            let seed =
                self.name.bytes().fold(fragment as u64, |seed, byte| seed.wrapping_mul(31) ^ u64::from(byte));
            let mut random = Random(seed);
            for (number, &(ty, count)) in self.inputs.iter().enumerate() {
                let accumulator = number == 2;
                let mut packed = 0u64;
                let mut filled = 0;
                for _ in 0..count {
                    let element = element(ty, fragment % 16, accumulator, &mut random);
                    let width = bits(ty);
                    packed |= element << filled;
                    filled += width;
                    if filled >= 8 {
                        bytes.extend_from_slice(&packed.to_le_bytes()[..filled / 8]);
                        (packed, filled) = (0, 0);
                    }
                }
            }
        }
        bytes
    }

    /// Says where two results differ.
    pub(crate) fn compare(&self, input: &[u8], expected: &[u8], found: &[u8], report: &mut String) {
        let width = bits(self.output).max(8) / 8;
        let mut wrong = [0usize; 16];
        let mut shown = 0;
        for (index, (expected, found)) in expected.chunks(width).zip(found.chunks(width)).enumerate() {
            if expected == found {
                continue;
            }
            let fragment = index * width / self.output_bytes;
            wrong[fragment % 16] += 1;
            if shown < 3 && wrong[fragment % 16] == 1 {
                shown += 1;
                let hex = |bytes: &[u8]| {
                    bytes.iter().rev().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
                };
                writeln!(
                    report,
                    "  {} fragment {fragment}, element {}: the device has {}, we have {}",
                    self.name,
                    index % (self.output_bytes / width),
                    hex(expected),
                    hex(found)
                )
                .unwrap();
            }
        }
        let all: usize = wrong.iter().sum();
        if all > 0 {
            let of = expected.len() / width;
            writeln!(report, "{}: {all} of {of} elements differ; by family {wrong:?}", self.name).unwrap();
        }
        debug_assert!(input.len() == self.fragments * self.input_bytes());
    }
}

fn bits(ty: &str) -> usize {
    match ty {
        "b1" => 1,
        "s4" | "u4" => 4,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        "f16" | "bf16" => 16,
        "f64" => 64,
        _ => 32,
    }
}

/// An element for a family of fragments.
fn element(ty: &str, family: usize, accumulator: bool, random: &mut Random) -> u64 {
    let width = bits(ty);
    let raw = random.next() & (u64::MAX >> (64 - width));
    let (fraction, exponent) = match ty {
        "e4m3" => (3, 4),
        "e5m2" => (2, 5),
        "f16" => (10, 5),
        "bf16" => (7, 8),
        // The low bits of tf32 are there, and do not count.
        "f32" | "tf32" => (23, 8),
        "f64" => (52, 11),
        _ => {
            let least = if ty.starts_with('s') { 1 << (width - 1) } else { 0 };
            let greatest = (u64::MAX >> (64 - width)) ^ least;
            return match (family, accumulator) {
                (12.., true) => {
                    let near = random.below(20000);
                    if random.below(2) == 0 { greatest - near } else { least + near }
                }
                (13, false) => {
                    if random.below(2) == 0 {
                        least
                    } else {
                        greatest
                    }
                }
                (14, false) => greatest,
                (15, false) if ty.starts_with('s') => least,
                _ => raw,
            };
        }
    };
    let last = (1i64 << exponent) - 1;
    let bias = last / 2;
    let all = (1i64 << fraction) - 1;
    let sign = (random.next() & 1) << (fraction + exponent);
    let some = raw as i64 & all;
    let (field, fraction_bits) = match family {
        // Near 1.
        0..4 => (
            bias + random.below(if accumulator { 13 } else { 7 }) as i64 - if accumulator { 5 } else { 3 },
            some,
        ),
        // Wide ranges of exponents.
        4 | 5 => (bias + random.below(41) as i64 - 20, some),
        6 => (1 + random.below(last as u64 - 1) as i64, some),
        // Sums that cancel.
        7 => (bias + i64::from(accumulator) * random.below(5) as i64, *random.pick(&[0, 0, 1, all])),
        8 => {
            let far = if accumulator {
                [2, 0, -22, -23, -24, -25, -26, -27, -28]
            } else {
                [0, 0, -1, -6, -12, -13, -13, -14, 0]
            };
            (bias + *random.pick(&far), *random.pick(&[0, 0, 0, 1, all, some]))
        }
        // One large number among small ones.
        9 => {
            let small = if random.below(6) == 0 { 0 } else { 10 + random.below(5) as i64 };
            (bias - if accumulator { 2 * small } else { small }, some)
        }
        // Zeros, subnormal numbers and the least normal ones.
        10 | 11 => match random.below(5) {
            0 | 1 => (0, 0),
            2 | 3 => (0, some),
            _ => (1 + random.below(last as u64 / 8 + 1) as i64, some),
        },
        12 => {
            if random.below(12) == 0 {
                (bias - random.below(6) as i64, some)
            } else {
                (0, 0)
            }
        }
        // Near the greatest.
        13 => (last - 1 - random.below(if accumulator { 12 } else { 4 }) as i64, some),
        // Infinities and NaN.
        14 if random.below(40) == 0 => (last, *random.pick(&[0, 0, all, some])),
        14 => (bias + random.below(5) as i64 - 2, some),
        _ => return raw,
    };
    // Small formats do not reach all of these exponents.
    sign | (field.clamp(0, last) as u64) << fraction | fraction_bits as u64
}

/// Loads or stores registers `%{name}0` and so on, `offset` bytes from `base`, one register of all lanes after the other.
fn registers(body: &mut String, load: bool, name: &str, count: usize, base: &str, offset: usize, long: bool) {
    let (bytes, ty) = if long { (8, "b64") } else { (4, "b32") };
    let name = if long { format!("w{name}") } else { name.to_owned() };
    writeln!(body, "mad.wide.u32 %at, %lane, {bytes}, {base};").unwrap();
    for register in 0..count {
        let at = offset + register * 32 * bytes;
        if load {
            writeln!(body, "ld.global.{ty} %{name}{register}, [%at+{at}];").unwrap();
        } else {
            writeln!(body, "st.global.{ty} [%at+{at}], %{name}{register};").unwrap();
        }
    }
}

fn list(name: &str, count: usize, long: bool) -> String {
    let names: Vec<_> =
        (0..count).map(|number| format!("%{}{name}{number}", if long { "w" } else { "" })).collect();
    format!("{{{}}}", names.join(", "))
}

/// A multiplication of fragments: `types` are those of D, A, B and C, `counts` their registers.
fn multiply(name: &str, types: [&'static str; 4], counts: [usize; 4]) -> Form {
    let [d, a, b, c] = types;
    let long = d == "f64";
    let register = if long { 64 } else { 32 };
    let mut body = String::new();
    let mut offset = 0;
    for (name, count) in [("a", counts[1]), ("b", counts[2]), ("c", counts[3])] {
        registers(&mut body, true, name, count, "%in", offset, long);
        offset += count * register * 4;
    }
    let operands = [("d", counts[0]), ("a", counts[1]), ("b", counts[2]), ("c", counts[3])];
    let operands = operands.map(|(name, count)| list(name, count, long));
    writeln!(body, "{name} {};", operands.join(", ")).unwrap();
    registers(&mut body, false, "d", counts[0], "%out", 0, long);
    let elements = |ty: &'static str, count: usize| (ty, count * register * 32 / bits(ty));
    Form {
        name: name.into(),
        fragments: FRAGMENTS,
        output_bytes: counts[0] * register * 4,
        inputs: vec![elements(a, counts[1]), elements(b, counts[2]), elements(c, counts[3])],
        output: d,
        body,
    }
}

/// `mma` of a shape: its registers follow from it.
fn mma(shape: (usize, usize, usize), types: [&'static str; 4], more: &str, after: &str) -> Form {
    let (m, n, k) = shape;
    let [d, a, b, c] = types;
    let count = |elements: usize, ty: &str| elements * bits(ty) / bits(d).max(32) / 32;
    let name = format!("mma.sync.aligned.m{m}n{n}k{k}.row.col{more}.{d}.{a}.{b}.{c}{after}");
    multiply(&name, types, [count(m * n, d), count(m * k, a), count(n * k, b), count(m * n, c)])
}

/// `wmma.load` of a matrix in memory, whose rows are `stride` elements long.
fn load(
    matrix: &str,
    layout: &str,
    shape: &str,
    ty: &'static str,
    count: usize,
    stride: usize,
    used: usize,
) -> Form {
    let long = ty == "f64";
    let name = format!("wmma.load.{matrix}.sync.aligned.{layout}.{shape}.global.{ty}");
    let mut body = format!("{name} {}, [%in], {stride};\n", list("d", count, long));
    registers(&mut body, false, "d", used, "%out", 0, long);
    Form {
        name,
        fragments: 1,
        output_bytes: used * if long { 256 } else { 128 },
        inputs: vec![(if long { "u32" } else { "u8" }, 32 * stride * if long { 2 } else { 4 })],
        output: "u8",
        body,
    }
}

/// `wmma.store` of an accumulator.
fn store(layout: &str, shape: &str, ty: &'static str, count: usize, stride: usize) -> Form {
    let long = ty == "f64";
    let name = format!("wmma.store.d.sync.aligned.{layout}.{shape}.global.{ty}");
    let mut body = String::new();
    registers(&mut body, true, "d", count, "%in", 0, long);
    writeln!(body, "{name} [%out], {}, {stride};", list("d", count, long)).unwrap();
    Form {
        name,
        fragments: 1,
        output_bytes: 32 * stride * bits(ty) / 8,
        inputs: vec![("u8", count * if long { 256 } else { 128 })],
        output: "u8",
        body,
    }
}

/// Every form.
pub(crate) fn all() -> Vec<Form> {
    let mut forms = Vec::new();
    let single = |ty| ["f32", ty, ty, "f32"];
    for k in [8, 16] {
        forms.push(mma((16, 8, k), single("f16"), "", ""));
        forms.push(mma((16, 8, k), ["f16"; 4], "", ""));
        forms.push(mma((16, 8, k), single("bf16"), "", ""));
        forms.push(mma((16, 8, k / 2), single("tf32"), "", ""));
    }
    for k in [4, 8, 16] {
        forms.push(mma((16, 8, k), ["f64"; 4], "", ""));
    }
    forms.push(mma((8, 8, 4), ["f64"; 4], "", ""));
    for (a, b) in [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e5m2")] {
        forms.push(mma((16, 8, 32), ["f32", a, b, "f32"], "", ""));
    }
    forms.push(mma((16, 8, 32), ["f16", "e4m3", "e5m2", "f16"], "", ""));
    forms.push(mma((16, 8, 16), ["f32", "e5m2", "e4m3", "f32"], "", ""));
    forms.push(mma((16, 8, 16), ["f16", "e4m3", "e4m3", "f16"], "", ""));
    for (a, b) in [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")] {
        for shape in [(8, 8, 16), (16, 8, 16), (16, 8, 32)] {
            forms.push(mma(shape, ["s32", a, b, "s32"], ".satfinite", ""));
        }
        forms.push(mma((16, 8, 32), ["s32", a, b, "s32"], "", ""));
    }
    for (a, b) in [("s4", "s4"), ("s4", "u4"), ("u4", "s4"), ("u4", "u4")] {
        for shape in [(8, 8, 32), (16, 8, 32), (16, 8, 64)] {
            forms.push(mma(shape, ["s32", a, b, "s32"], ".satfinite", ""));
        }
        forms.push(mma((16, 8, 64), ["s32", a, b, "s32"], "", ""));
    }
    for shape in [(8, 8, 128), (16, 8, 128), (16, 8, 256)] {
        for operator in [".xor.popc", ".and.popc"] {
            forms.push(mma(shape, ["s32", "b1", "b1", "s32"], "", operator));
        }
    }
    wmma(&mut forms);
    forms
}

fn wmma(forms: &mut Vec<Form>) {
    for shape in ["m16n16k16", "m32n8k16", "m8n32k16"] {
        let registers = |ty: &str| if ty == "f16" { 4 } else { 8 };
        for (d, c) in [("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("f16", "f32")] {
            let name = format!("wmma.mma.sync.aligned.row.col.{shape}.{d}.{c}");
            forms.push(multiply(&name, [d, "f16", "f16", c], [registers(d), 8, 8, registers(c)]));
        }
        let (a, b) = match shape {
            "m16n16k16" => (4, 4),
            "m32n8k16" => (8, 2),
            _ => (2, 8),
        };
        let name = format!("wmma.mma.sync.aligned.col.row.{shape}.f32.bf16.bf16.f32");
        forms.push(multiply(&name, ["f32", "bf16", "bf16", "f32"], [8, a, b, 8]));
        let name = format!("wmma.mma.sync.aligned.row.col.{shape}.s32.s8.s8.s32.satfinite");
        forms.push(multiply(&name, ["s32", "s8", "s8", "s32"], [8, a / 2, b / 2, 8]));
        let name = format!("wmma.mma.sync.aligned.row.col.{shape}.s32.u8.u8.s32");
        forms.push(multiply(&name, ["s32", "u8", "u8", "s32"], [8, a / 2, b / 2, 8]));
        for layout in ["row", "col"] {
            for (matrix, count) in [("a", a), ("b", b)] {
                let used = if shape == "m16n16k16" { 8 } else { count };
                forms.push(load(matrix, layout, shape, "f16", 8, 40, used));
                forms.push(load(matrix, layout, shape, "bf16", count, 40, count));
                forms.push(load(matrix, layout, shape, "u8", count / 2, 48, count / 2));
            }
            for (ty, count) in [("f32", 8), ("f16", 4), ("s32", 8)] {
                forms.push(load("c", layout, shape, ty, count, 40, count));
                forms.push(store(layout, shape, ty, count, 40));
            }
        }
    }
    let name = "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32";
    forms.push(multiply(name, ["f32", "tf32", "tf32", "f32"], [8, 4, 4, 8]));
    forms.push(multiply("wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64", ["f64"; 4], [2, 1, 1, 2]));
    for ty in ["s4", "u4"] {
        let name = format!("wmma.mma.sync.aligned.row.col.m8n8k32.s32.{ty}.{ty}.s32.satfinite");
        forms.push(multiply(&name, ["s32", ty, ty, "s32"], [2, 1, 1, 2]));
    }
    for operator in ["xor", "and"] {
        let name = format!("wmma.mma.{operator}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32");
        forms.push(multiply(&name, ["s32", "b1", "b1", "s32"], [2, 1, 1, 2]));
    }
    for layout in ["row", "col"] {
        for matrix in ["a", "b"] {
            forms.push(load(matrix, layout, "m16n16k8", "tf32", 4, 40, 4));
            forms.push(load(matrix, layout, "m8n8k4", "f64", 1, 40, 1));
        }
        forms.push(load("c", layout, "m16n16k8", "f32", 8, 40, 8));
        forms.push(store(layout, "m16n16k8", "f32", 8, 40));
        forms.push(load("c", layout, "m8n8k4", "f64", 2, 40, 2));
        forms.push(store(layout, "m8n8k4", "f64", 2, 40));
        for shape in ["m8n8k32", "m8n8k128"] {
            forms.push(load("c", layout, shape, "s32", 2, 40, 2));
            forms.push(store(layout, shape, "s32", 2, 40));
        }
    }
    for (matrix, layout) in [("a", "row"), ("b", "col")] {
        forms.push(load(matrix, layout, "m8n8k32", "s4", 1, 64, 1));
        forms.push(load(matrix, layout, "m8n8k128", "b1", 1, 256, 1));
    }
}
