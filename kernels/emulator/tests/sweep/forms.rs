//! The forms of arithmetic instructions: their words, the types of their operands, and how exact they are.

/// What an approximate form promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// Units in the last place.
    Ulp(f64),
    /// Of the value.
    Relative(f64),
    /// Whatever the value.
    Absolute(f64),
    /// Of the value, or of one if that is more.
    Scaled(f64),
}

/// A form of an instruction.
pub(crate) struct Form {
    /// Its words, and what else tells it from others.
    pub(crate) text: String,
    /// The type of its result.
    pub(crate) dest: String,
    /// Types of its operands.
    pub(crate) sources: Vec<String>,
    /// What computes `%d` from `%a`, `%b` and `%c`.
    pub(crate) body: String,
    /// `None` for results that are exact.
    pub(crate) bound: Option<Bound>,
}

impl Form {
    /// Keeps operands within the range for which the result is defined.
    pub(crate) fn restrict(&self, row: &mut [u64; 3]) {
        for (operand, ty) in row.iter_mut().zip(&self.sources) {
            let bits = super::kernels::register(ty);
            if bits < 64 {
                *operand &= (1 << bits) - 1;
            }
        }
        let opcode = self.text.split('.').next().unwrap_or_default();
        match opcode {
            "div" | "rem" if !self.dest.contains('f') => row[1] = row[1].max(1),
            // The base must be a bit of the mask.
            "fns" => row[1] &= 31,
            // Beyond 2 pi nothing is promised.
            "sin" | "cos" => {
                let value = f32::from_bits(row[0] as u32);
                if value.is_finite() && value.abs() > TURN {
                    row[0] = u64::from((value % TURN).to_bits());
                }
            }
            _ => {}
        }
    }
}

/// Nearly 2 pi.
const TURN: f32 = 6.25;

const INTEGERS: [&str; 6] = ["u16", "s16", "u32", "s32", "u64", "s64"];
const ALL_INTEGERS: [&str; 8] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
const COMPARISONS: &str = "<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>";

#[derive(Default)]
struct Table(Vec<Form>);

impl Table {
    /// Forms whose operands are those of the instruction. `<a|b>` stands for either word.
    fn exact(&mut self, text: &str, types: &str) {
        self.add(text, types, None);
    }

    fn approximate(&mut self, bound: Bound, text: &str, types: &str) {
        self.add(text, types, Some(bound));
    }

    fn add(&mut self, text: &str, types: &str, bound: Option<Bound>) {
        for text in expand(text) {
            let operands = ["", " %d, %a;", " %d, %a, %b;", " %d, %a, %b, %c;"];
            let count = types.split(" = ").nth(1).map_or(0, |sources| sources.split(' ').count());
            let body = format!("{text}{}", operands[count]);
            self.form(text, types, body, bound);
        }
    }

    /// Forms with a body of their own, in which `$` is the text.
    fn body(&mut self, text: &str, types: &str, body: &str) {
        for text in expand(text) {
            // What follows ` of ` tells this form from others, and is no part of the instruction.
            let body = body.replace('$', text.split(" of ").next().unwrap_or_default());
            self.form(text, types, body, None);
        }
    }

    fn form(&mut self, text: String, types: &str, body: String, bound: Option<Bound>) {
        let (dest, sources) = types.split_once(" = ").expect("types are `dest = sources`");
        let sources = sources.split(' ').map(str::to_owned).collect();
        self.0.push(Form { text, dest: dest.to_owned(), sources, body, bound });
    }
}

/// `a<b|c>d` is `abd` and `acd`.
fn expand(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('<') else { return vec![text.to_owned()] };
    let (choices, after) = rest.split_once('>').expect("`<` has its `>`");
    let tails = expand(after);
    choices
        .split('|')
        .flat_map(|choice| tails.iter().map(move |tail| format!("{before}{choice}{tail}")))
        .collect()
}

/// All forms.
pub(crate) fn all() -> Vec<Form> {
    let mut table = Table::default();
    integers(&mut table);
    bits(&mut table);
    floats(&mut table);
    halves(&mut table);
    approximations(&mut table);
    comparisons(&mut table);
    conversions(&mut table);
    packed_conversions(&mut table);
    videos(&mut table);
    let names: std::collections::HashSet<&str> = table.0.iter().map(|form| form.text.as_str()).collect();
    assert_eq!(names.len(), table.0.len(), "each form has a text of its own");
    table.0
}

fn integers(t: &mut Table) {
    for ty in INTEGERS {
        t.exact(&format!("<add|sub|mul.lo|mul.hi|min|max|div|rem>.{ty}"), &format!("{ty} = {ty} {ty}"));
        t.exact(&format!("<mad.lo|mad.hi|sad>.{ty}"), &format!("{ty} = {ty} {ty} {ty}"));
    }
    t.exact("<add|sub>.sat.s32", "s32 = s32 s32");
    t.exact("mad.hi.sat.s32", "s32 = s32 s32 s32");
    t.exact("<add|min|max>.<u16x2|s16x2>", "u32 = b32 b32");
    t.exact("<min|max>.relu.<s16x2|s32>", "u32 = b32 b32");
    for (ty, wide) in [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")] {
        t.exact(&format!("mul.wide.{ty}"), &format!("{wide} = {ty} {ty}"));
        t.exact(&format!("mad.wide.{ty}"), &format!("{wide} = {ty} {ty} {wide}"));
    }
    t.exact("mul24.<lo|hi>.<u32|s32>", "u32 = u32 u32");
    t.exact("mad24.<lo|hi>.<u32|s32>", "u32 = u32 u32 u32");
    t.exact("mad24.hi.sat.s32", "s32 = s32 s32 s32");
    for ty in ["s16", "s32", "s64"] {
        t.exact(&format!("<abs|neg>.{ty}"), &format!("{ty} = {ty}"));
    }
    t.exact("dp4a.<u32|s32>.<u32|s32>", "u32 = b32 b32 b32");
    t.exact("dp2a.<lo|hi>.<u32|s32>.<u32|s32>", "u32 = b32 b32 b32");
    let mix = "mad.lo.u32 %d, %r0, 0x9E3779B1, %r1; mad.lo.u32 %d, %d, 0x85EBCA6B, %r2;";
    for ty in ["u32", "s32"] {
        t.body(
            &format!("add.cc.{ty} addc.cc.{ty} addc.{ty}"),
            "u32 = b32 b32 b32",
            &format!("add.cc.{ty} %r0, %a, %b; addc.cc.{ty} %r1, %b, %c; addc.{ty} %r2, %c, %a; {mix}"),
        );
        t.body(
            &format!("sub.cc.{ty} subc.cc.{ty} subc.{ty}"),
            "u32 = b32 b32 b32",
            &format!("sub.cc.{ty} %r0, %a, %b; subc.cc.{ty} %r1, %b, %c; subc.{ty} %r2, %c, %a; {mix}"),
        );
        t.body(&format!("mad.lo.cc.{ty} madc.hi.cc.{ty} madc.lo.{ty} madc.hi.{ty}"), "u32 = b32 b32 b32", &format!(
            "mad.lo.cc.{ty} %r0, %a, %b, %c; madc.hi.cc.{ty} %r1, %a, %b, %c; madc.lo.cc.{ty} %r3, %b, %c, %a; \
             madc.hi.{ty} %r2, %b, %c, %a; xor.b32 %r2, %r2, %r3; {mix}"));
    }
    let mix = "mad.lo.u64 %d, %rd0, 0x9E3779B97F4A7C15, %rd1; xor.b64 %d, %d, %rd2;";
    for ty in ["u64", "s64"] {
        t.body(
            &format!("add.cc.{ty} addc.cc.{ty} addc.{ty}"),
            "u64 = b64 b64 b64",
            &format!("add.cc.{ty} %rd0, %a, %b; addc.cc.{ty} %rd1, %b, %c; addc.{ty} %rd2, %c, %a; {mix}"),
        );
        t.body(
            &format!("sub.cc.{ty} subc.cc.{ty} subc.{ty}"),
            "u64 = b64 b64 b64",
            &format!("sub.cc.{ty} %rd0, %a, %b; subc.cc.{ty} %rd1, %b, %c; subc.{ty} %rd2, %c, %a; {mix}"),
        );
        t.body(&format!("mad.lo.cc.{ty} madc.hi.cc.{ty} madc.hi.{ty}"), "u64 = b64 b64 b64", &format!(
            "mad.lo.cc.{ty} %rd0, %a, %b, %c; madc.hi.cc.{ty} %rd1, %a, %b, %c; madc.hi.{ty} %rd2, %b, %c, %a; {mix}"));
    }
}

fn bits(t: &mut Table) {
    t.exact("<popc|clz>.b32", "u32 = b32");
    t.exact("<popc|clz>.b64", "u32 = b64");
    t.exact("bfind<|.shiftamt>.<u32|s32>", "u32 = b32");
    t.exact("bfind<|.shiftamt>.<u64|s64>", "u32 = b64");
    t.exact("brev.b32", "b32 = b32");
    t.exact("brev.b64", "b64 = b64");
    t.exact("fns.b32", "u32 = b32 b32 s32");
    t.exact("bfe.<u32|s32>", "u32 = b32 u32 u32");
    t.exact("bfe.<u64|s64>", "u64 = b64 u32 u32");
    for length in [0, 1, 7, 31, 32, 64, 255] {
        t.body(
            &format!("bfi.b32 by {length}"),
            "b32 = b32 b32 u32",
            &format!("bfi.b32 %d, %a, %b, %c, {length};"),
        );
        t.body(
            &format!("bfi.b64 by {length}"),
            "b64 = b64 b64 u32",
            &format!("bfi.b64 %d, %a, %b, %c, {length};"),
        );
    }
    t.body("bfi.b32", "b32 = b32 u32 u32", "bfi.b32 %d, %a, 0x5A5AA5A5, %b, %c;");
    t.body("bfi.b64", "b64 = b64 u32 u32", "bfi.b64 %d, %a, 0x5A5AA5A5C3C33C3C, %b, %c;");
    t.exact("bmsk.<clamp|wrap>.b32", "b32 = u32 u32");
    t.exact("szext.<clamp|wrap>.<u32|s32>", "b32 = b32 u32");
    for ty in ["b16", "b32", "b64"] {
        t.exact(&format!("<and|or|xor>.{ty}"), &format!("{ty} = {ty} {ty}"));
        t.exact(&format!("<not|cnot>.{ty}"), &format!("{ty} = {ty}"));
        t.exact(&format!("shl.{ty}"), &format!("{ty} = {ty} u32"));
        for kind in ["b", "u", "s"] {
            t.exact(&format!("shr.{kind}{}", &ty[1..]), &format!("{ty} = {ty} u32"));
        }
    }
    for table in ["0x00", "0x1A", "0x80", "0xCA", "0x96", "0xE8", "0xFE", "0x7F"] {
        t.body(
            &format!("lop3.b32 {table}"),
            "b32 = b32 b32 b32",
            &format!("lop3.b32 %d, %a, %b, %c, {table};"),
        );
    }
    for operator in ["or", "and"] {
        t.body(&format!("lop3.{operator}.b32"), "b32 = b32 b32 b32", &format!(
            "setp.gt.s32 %q, %a, %b; lop3.{operator}.b32 %r0|%p, %a, %b, %c, 0xE8, %q; selp.b32 %r1, 0x10001, 0, %p; xor.b32 %d, %r0, %r1;"));
    }
    t.exact("shf.<l|r>.<wrap|clamp>.b32", "b32 = b32 b32 u32");
    t.exact("prmt.b32<|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16>", "b32 = b32 b32 b32");
}

fn floats(t: &mut Table) {
    t.exact("<add|sub|mul><|.rn|.rz|.rm|.rp><|.ftz><|.sat>.f32", "f32 = f32 f32");
    t.exact("fma<.rn|.rz|.rm|.rp><|.ftz><|.sat>.f32", "f32 = f32 f32 f32");
    t.exact("mad<.rn|.rz|.rm|.rp>.f32", "f32 = f32 f32 f32");
    t.exact("div<.rn|.rz|.rm|.rp><|.ftz>.f32", "f32 = f32 f32");
    t.exact("<rcp|sqrt><.rn|.rz|.rm|.rp><|.ftz>.f32", "f32 = f32");
    t.exact("<abs|neg><|.ftz>.f32", "f32 = f32");
    t.exact("<min|max><|.ftz><|.NaN><|.xorsign.abs>.f32", "f32 = f32 f32");
    t.exact("<add|sub|mul><|.rn|.rz|.rm|.rp>.f64", "f64 = f64 f64");
    t.exact("<fma|mad><.rn|.rz|.rm|.rp>.f64", "f64 = f64 f64 f64");
    t.exact("div<.rn|.rz|.rm|.rp>.f64", "f64 = f64 f64");
    t.exact("<rcp|sqrt><.rn|.rz|.rm|.rp>.f64", "f64 = f64");
    t.exact("<abs|neg>.f64", "f64 = f64");
    t.exact("<min|max|copysign>.f64", "f64 = f64 f64");
    t.exact("copysign.f32", "f32 = f32 f32");
    for ty in ["f32", "f64"] {
        t.body(
            &format!("testp.<finite|infinite|number|notanumber|normal|subnormal>.{ty}"),
            &format!("u32 = {ty}"),
            "$ %p, %a; selp.b32 %d, 1, 0, %p;",
        );
    }
}

fn halves(t: &mut Table) {
    for ty in ["f16", "f16x2"] {
        let (one, two, three) =
            (format!("{ty} = {ty}"), format!("{ty} = {ty} {ty}"), format!("{ty} = {ty} {ty} {ty}"));
        t.exact(&format!("<add|sub|mul><|.rn><|.ftz><|.sat>.{ty}"), &two);
        t.exact(&format!("fma.rn<|.ftz><|.sat|.relu>.{ty}"), &three);
        t.exact(&format!("fma.rn.oob<|.relu>.{ty}"), &three);
        t.exact(&format!("<min|max><|.ftz><|.NaN><|.xorsign.abs>.{ty}"), &two);
        t.exact(&format!("<abs|neg><|.ftz>.{ty}"), &one);
    }
    // Some NaN stands for what is outside of a tensor; which one, all values tell.
    for (ty, one) in [("f16", "0x3c00"), ("bf16", "0x3f80")] {
        let body = format!("mov.b16 %h0, {one}; mov.b16 %h1, 0; $ %d, %a, %h0, %h1;");
        t.body(&format!("fma.rn.oob.{ty} of all"), &format!("{ty} = {ty}"), &body);
    }
    for ty in ["bf16", "bf16x2"] {
        let (one, two, three) =
            (format!("{ty} = {ty}"), format!("{ty} = {ty} {ty}"), format!("{ty} = {ty} {ty} {ty}"));
        t.exact(&format!("<add|sub|mul><|.rn>.{ty}"), &two);
        t.exact(&format!("fma.rn<|.relu>.{ty}"), &three);
        t.exact(&format!("fma.rn.oob<|.relu>.{ty}"), &three);
        t.exact(&format!("<min|max><|.NaN><|.xorsign.abs>.{ty}"), &two);
        t.exact(&format!("<abs|neg>.{ty}"), &one);
    }
}

/// The bounds are the PTX manual's.
fn approximations(t: &mut Table) {
    let power = |exponent: i32| 2f64.powi(exponent);
    t.approximate(Bound::Ulp(1.0), "rcp.approx<|.ftz>.f32", "f32 = f32");
    t.approximate(Bound::Relative(power(-23)), "sqrt.approx<|.ftz>.f32", "f32 = f32");
    t.approximate(Bound::Relative(2f64.powf(-22.9)), "rsqrt.approx<|.ftz>.f32", "f32 = f32");
    t.approximate(Bound::Absolute(2f64.powf(-20.5)), "<sin|cos>.approx<|.ftz>.f32", "f32 = f32");
    t.approximate(Bound::Scaled(power(-22)), "lg2.approx<|.ftz>.f32", "f32 = f32");
    t.approximate(Bound::Ulp(2.0), "ex2.approx<|.ftz>.f32", "f32 = f32");
    t.approximate(Bound::Relative(power(-11)), "tanh.approx.f32", "f32 = f32");
    t.approximate(Bound::Ulp(2.0), "div.<approx|full><|.ftz>.f32", "f32 = f32 f32");
    t.approximate(Bound::Relative(power(-19)), "rcp.approx.ftz.f64", "f64 = f64");
    t.approximate(Bound::Relative(power(-19)), "rsqrt.approx.ftz.f64", "f64 = f64");
    t.approximate(Bound::Relative(power(-52)), "rsqrt.approx.f64", "f64 = f64");
    for (ty, ftz, ex2, tanh) in [("f16", "", -9.9, -10.987), ("bf16", ".ftz", -7.0, -8.0)] {
        for ty in [ty.to_owned(), format!("{ty}x2")] {
            let types = format!("{ty} = {ty}");
            t.approximate(Bound::Relative(2f64.powf(ex2)), &format!("ex2.approx{ftz}.{ty}"), &types);
            t.approximate(Bound::Absolute(2f64.powf(tanh)), &format!("tanh.approx.{ty}"), &types);
        }
    }
}

fn comparisons(t: &mut Table) {
    let result = "selp.b32 %d, 1, 0, %p;";
    for ty in ["f32", "f16"] {
        t.body(
            &format!("setp.{COMPARISONS}<|.ftz>.{ty}"),
            &format!("u32 = {ty} {ty}"),
            &format!("$ %p, %a, %b; {result}"),
        );
    }
    for ty in ["f64", "bf16"] {
        t.body(
            &format!("setp.{COMPARISONS}.{ty}"),
            &format!("u32 = {ty} {ty}"),
            &format!("$ %p, %a, %b; {result}"),
        );
    }
    for ty in INTEGERS {
        let words =
            if ty.starts_with('u') { "<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>" } else { "<eq|ne|lt|le|gt|ge>" };
        t.body(
            &format!("setp.{words}.{ty}"),
            &format!("u32 = {ty} {ty}"),
            &format!("$ %p, %a, %b; {result}"),
        );
    }
    for ty in ["b16", "b32", "b64"] {
        t.body(
            &format!("setp.<eq|ne>.{ty}"),
            &format!("u32 = {ty} {ty}"),
            &format!("$ %p, %a, %b; {result}"),
        );
    }
    let both = "selp.b32 %d, 1, 0, %p; selp.b32 %r0, 2, 0, %q; or.b32 %d, %d, %r0;";
    for ty in ["f16x2", "bf16x2"] {
        t.body(
            &format!("setp.{COMPARISONS}.{ty}"),
            &format!("u32 = {ty} {ty}"),
            &format!("$ %p|%q, %a, %b; {both}"),
        );
        for word in ["and", "or", "xor"] {
            t.body(
                &format!("setp.<lt|geu>.{word}.{ty}"),
                &format!("u32 = {ty} {ty} u32"),
                &format!("setp.gt.u32 %end, %c, 99; $ %p|%q, %a, %b, !%end; {both}"),
            );
        }
    }
    t.body(
        "setp.<lt|gtu>.<and|or|xor>.f32",
        "u32 = f32 f32 u32",
        &format!("setp.gt.u32 %end, %c, 99; $ %p|%q, %a, %b, !%end; {both}"),
    );
    t.exact(&format!("set.{COMPARISONS}<|.ftz>.<u32|s32|f32>.f32"), "b32 = f32 f32");
    t.exact("set.<eq|lt|gtu|nan>.<u32|f32>.f64", "b32 = f64 f64");
    t.exact("set.<eq|lt|ge>.<u32|f32>.<u32|s32>", "b32 = b32 b32");
    t.exact("set.<eq|lt|ge>.<u32|f32>.<u64|s64>", "b32 = b64 b64");
    t.exact("set.<eq|lt|ge>.<u32|f32>.<u16|s16>", "b32 = b16 b16");
    t.exact("set.<eq|lt|gtu|nan>.<f16|bf16>.<f32>", "b16 = f32 f32");
    t.exact("set.<eq|lt|gtu|nan>.f16.f16", "b16 = f16 f16");
    t.exact("set.<eq|lt|ge>.<f16|bf16>.<u32|s32>", "b16 = b32 b32");
    t.exact("set.<eq|lt|gtu|nan>.<u16|s16>.f16", "b16 = f16 f16");
    t.exact("set.<eq|lt|gtu|nan>.<u32|s32>.f16", "b32 = f16 f16");
    t.exact("set.<eq|lt|gtu|nan>.<u16|s16>.bf16", "b16 = bf16 bf16");
    t.exact("set.<eq|lt|gtu|nan>.<u32|s32>.bf16", "b32 = bf16 bf16");
    t.exact(&format!("set.{COMPARISONS}<|.ftz>.<f16x2|u32>.f16x2"), "b32 = f16x2 f16x2");
    t.exact(&format!("set.{COMPARISONS}.<bf16x2|u32>.bf16x2"), "b32 = bf16x2 bf16x2");
    t.body("set.lt.and.u32.f32", "b32 = f32 f32 u32", "setp.gt.u32 %end, %c, 99; $ %d, %a, %b, !%end;");
    for (ty, third) in
        [("b32", "s32"), ("u64", "s32"), ("b16", "s32"), ("f32", "f32"), ("f64", "f32"), ("u16", "f32")]
    {
        let ftz = if third == "f32" { "<|.ftz>" } else { "" };
        t.exact(&format!("slct{ftz}.{ty}.{third}"), &format!("{ty} = {ty} {ty} {third}"));
    }
}

/// The range of a type of integers holds all of another's.
fn covers(outer: &str, inner: &str) -> bool {
    let bits = |ty: &str| ty[1..].parse::<u32>().unwrap_or(0);
    match (&outer[..1], &inner[..1]) {
        ("u", "u") | ("s", "s") => bits(outer) >= bits(inner),
        ("s", _) => bits(outer) > bits(inner),
        _ => false,
    }
}

/// Registers of 32 bits for narrow results, to see what is above them.
fn shown(ty: &str) -> &str {
    if matches!(ty, "u8" | "s8" | "u16" | "s16") { "b32" } else { ty }
}

fn conversions(t: &mut Table) {
    for to in ALL_INTEGERS {
        let dest = shown(to);
        for from in ALL_INTEGERS {
            t.exact(&format!("cvt.{to}.{from}"), &format!("{dest} = {from}"));
            if !covers(to, from) {
                t.exact(&format!("cvt.sat.{to}.{from}"), &format!("{dest} = {from}"));
            }
        }
        for from in ["f16", "bf16", "f32", "f64"] {
            if from == "bf16" && to.ends_with('8') {
                continue;
            }
            let ftz = if from == "f32" { "<|.ftz>" } else { "" };
            // Only these want registers of their own width.
            let dest = if from == "bf16" { to } else { dest };
            t.exact(&format!("cvt.<rni|rzi|rmi|rpi>{ftz}.{to}.{from}"), &format!("{dest} = {from}"));
            t.exact(&format!("cvt.<rn|rz|rm|rp>.{from}.{to}"), &format!("{from} = {to}"));
            if from != "bf16" {
                t.exact(&format!("cvt.rn.sat.{from}.{to}"), &format!("{from} = {to}"));
            }
        }
    }
    t.exact("cvt<.rn|.rz|.rm|.rp><|.ftz><|.sat>.f32.f64", "f32 = f64");
    t.exact("cvt<.rm|.rp|.rn.ftz|.rn.sat|.rz.sat|.rm.sat|.rp.ftz.sat>.f16.f32", "f16 = f32");
    t.exact("cvt<.rn|.rz|.rm|.rp><|.sat>.f16.f64", "f16 = f64");
    t.exact("cvt<.rn|.rz><|.relu><|.satfinite>.f16.f32", "f16 = f32");
    t.exact("cvt<.rn|.rz><|.relu><|.satfinite>.bf16.f32", "bf16 = f32");
    t.exact("cvt<.rn|.rz|.rm|.rp>.bf16.f64", "bf16 = f64");
    t.exact("cvt<.rn|.rz|.rm|.rp>.bf16.f16", "bf16 = f16");
    t.exact("cvt<.rn|.rz|.rm|.rp>.f16.bf16", "f16 = bf16");
    t.exact("cvt<.rm|.rp>.bf16.f32", "bf16 = f32");
    t.exact("cvt<|.ftz><|.sat>.f32.f16", "f32 = f16");
    t.exact("cvt<|.sat>.f64.f16", "f64 = f16");
    t.exact("cvt<|.ftz><|.sat>.f64.f32", "f64 = f32");
    t.exact("cvt.f32.bf16", "f32 = bf16");
    t.exact("cvt.f64.bf16", "f64 = bf16");
    t.exact("cvt<.rni|.rzi|.rmi|.rpi><|.ftz><|.sat>.f32.f32", "f32 = f32");
    t.exact("cvt<.rni|.rzi|.rmi|.rpi><|.sat>.f64.f64", "f64 = f64");
    t.exact("cvt<.rni|.rzi|.rmi|.rpi><|.sat>.f16.f16", "f16 = f16");
    t.exact("cvt<.rni|.rzi|.rmi|.rpi>.bf16.bf16", "bf16 = bf16");
    t.exact("cvt<|.ftz|.sat|.ftz.sat>.f32.f32", "f32 = f32");
    t.exact("cvt<|.sat>.f64.f64", "f64 = f64");
    t.exact("cvt<|.sat>.f16.f16", "f16 = f16");
}

fn packed_conversions(t: &mut Table) {
    t.exact("cvt<.rn|.rz><|.relu><|.satfinite>.f16x2.f32", "f16x2 = f32 f32");
    t.exact("cvt<.rn|.rz><|.relu><|.satfinite>.bf16x2.f32", "bf16x2 = f32 f32");
    t.exact("cvt.rna<|.satfinite>.tf32.f32", "b32 = f32");
    t.exact("cvt<.rn|.rz><|.relu>.tf32.f32", "b32 = f32");
    t.exact("cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f32", "b16 = f32 f32");
    t.exact("cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f16x2", "b16 = f16x2");
    t.exact("cvt.rn<|.relu>.f16x2.<e4m3x2|e5m2x2>", "f16x2 = b16");
    t.exact("cvt.pack.sat.<u16|s16>.s32", "b32 = s32 s32");
    t.exact("cvt.pack.sat.<u2|s2|u4|s4|u8|s8>.s32.b32", "b32 = s32 s32 b32");
}

/// Those whose results on an H200 are the manual's. `.sat` of mixed signs and of parts, of `vshl`, and with `.shr7` or
/// `.shr15` of unsigned `vmad` is something else there, and so are some results in the upper half.
fn videos(t: &mut Table) {
    let types = "b32 = b32 b32 b32";
    t.exact("<vadd|vsub|vabsdiff|vmin|vmax>.<u32|s32>.<u32|s32>.<u32|s32>", "b32 = b32 b32");
    t.exact("<vadd|vsub|vabsdiff|vmin|vmax>.s32.<u32.s32|s32.u32>.sat<|.add|.min|.max>", types);
    t.exact("<vmin|vmax>.u32.<u32.s32|s32.u32>.sat<|.add|.min|.max>", types);
    for (dest, a, b) in [("", ".b3", ".h1"), (".b2", ".b0", ".b1"), (".h0", "", ".b2")] {
        for sat in if dest.is_empty() { &["", ".sat"][..] } else { &[""][..] } {
            t.body(
                &format!("<vadd|vsub|vabsdiff|vmin|vmax>.<u32|s32>.<u32.u32|s32.s32>{sat} of {dest}{a}{b}"),
                types,
                &format!("$ %d{dest}, %a{a}, %b{b}{};", if dest.is_empty() { "" } else { ", %c" }),
            );
        }
    }
    t.exact("<vshl|vshr>.<u32|s32>.<u32|s32>.u32.<clamp|wrap>", "b32 = b32 b32");
    t.exact("vshr.<u32|s32>.<u32|s32>.u32.sat.<clamp|wrap>", "b32 = b32 b32");
    t.exact("<vshl|vshr>.<u32|s32>.s32.u32.clamp.add", types);
    t.exact("vmad.<u32|s32>.<u32|s32>.<u32|s32>", types);
    t.exact("vmad.<u32|s32>.s32.s32<.sat|.shr7|.shr15|.sat.shr7|.sat.shr15>", types);
    t.exact("vmad.s32.s32.s32.po<|.sat><|.shr7|.shr15>", types);
    t.body("vmad.s32.s32.s32.sat of halves", types, "vmad.s32.s32.s32.sat %d, -%a.h1, %b.h0, %c;");
    t.body("vmad.s32.s32.u32.shr7 minus c", types, "vmad.s32.s32.u32.shr7 %d, %a.b1, %b.h0, -%c;");
    t.exact("vset.<u32|s32>.<u32|s32>.<eq|ne|lt|le|gt|ge>", "b32 = b32 b32");
    t.exact("vset.s32.u32.<lt|ge>.add", types);
    t.exact(
        "<vadd|vsub|vavrg|vabsdiff|vmin|vmax><2|4>.<u32.u32.u32|s32.s32.s32|u32.u32.s32|s32.s32.u32><|.sat|.add>",
        types,
    );
    t.exact("vset<2|4>.<u32.u32|s32.s32|u32.s32>.<eq|ne|lt|le|gt|ge>", types);
    t.exact("vset<2|4>.<u32.u32|s32.s32>.<eq|lt>.add", types);
    t.body("<vadd2|vmax2>.s32.s32.s32.sat of parts", types, "$ %d.h1, %a.h31, %b.h20, %c;");
    t.body("<vsub4|vmin4>.u32.u32.u32 of parts", types, "$ %d.b31, %a.b7042, %b.b1163, %c;");
}
