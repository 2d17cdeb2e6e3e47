//! Instructions of one lane against Rust's own arithmetic, at odd values.

mod machine;

use emulator::module::Level;
use machine::{Gpu, Shape};
use proptest::prelude::*;

/// Runs `body`, which computes `%d` from `%a`, `%b` and `%c`, on each row of values.
fn run<T: Copy + Default, D: Copy + Default>(ty: &str, to: &str, body: &str, rows: &[[T; 3]]) -> Vec<D> {
    let (bytes, to_bytes) = (size_of::<T>(), size_of::<D>());
    let ptx = format!(
        ".version 8.0 .target sm_75 .address_size 64
        .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {{
          .reg .{ty} %a; .reg .{ty} %b; .reg .{ty} %c; .reg .{to} %d;
          .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>;
          ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r4, [n];
          mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1;
          setp.ge.u32 %p1, %r3, %r4; @%p1 bra END;
          mul.wide.u32 %rd3, %r3, {row}; add.s64 %rd3, %rd1, %rd3; mul.wide.u32 %rd4, %r3, {to_bytes}; add.s64 %rd4, %rd2, %rd4;
          ld.global.{ty} %a, [%rd3]; ld.global.{ty} %b, [%rd3+{bytes}]; ld.global.{ty} %c, [%rd3+{two}];
          {body}
          st.global.{to} [%rd4], %d;
        END: ret;
        }}",
        row = 3 * bytes,
        two = 2 * bytes,
    );
    let mut found: Vec<Vec<D>> = Vec::new();
    for level in Level::all() {
        let gpu = Gpu::load(&ptx, level).unwrap_or_else(|error| panic!("{body}: {error}"));
        let flat: Vec<T> = rows.concat();
        let (a, d) = (gpu.upload(&flat), gpu.upload(&vec![D::default(); rows.len()]));
        let shape = Shape::new([rows.len().div_ceil(64) as u32, 1, 1], [64, 1, 1]);
        gpu.launch("k", shape, &[&a.to_le_bytes(), &d.to_le_bytes(), &(rows.len() as u32).to_le_bytes()])
            .unwrap();
        found.push(gpu.download(d, rows.len()));
    }
    for other in &found[1..] {
        for index in 0..rows.len() {
            assert_eq!(bits(&other[index]), bits(&found[0][index]), "{body}: vector units differ at {index}");
        }
    }
    found.swap_remove(0)
}

fn bits<T: Copy>(value: &T) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: `T` is a number of at most 8 bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast(), bytes.as_mut_ptr(), size_of::<T>())
    };
    u64::from_le_bytes(bytes)
}

#[track_caller]
fn check<T: Copy + Default + std::fmt::Debug, D: Copy + Default + std::fmt::Debug>(
    ty: &str,
    to: &str,
    body: &str,
    rows: &[[T; 3]],
    expected: impl Fn(T, T, T) -> D,
) {
    for (&[a, b, c], found) in rows.iter().zip(run::<T, D>(ty, to, body, rows)) {
        let expected = expected(a, b, c);
        assert_eq!(
            bits(&found),
            bits(&expected),
            "{body} of {a:?}, {b:?}, {c:?} is {found:?}, not {expected:?}"
        );
    }
}

fn integers() -> impl Strategy<Value = Vec<[u32; 3]>> {
    let odd = || {
        prop_oneof![any::<u32>(), prop::sample::select(vec![0, 1, 31, 32, 33, 0x7FFF_FFFF, 0x8000_0000, !0])]
    };
    prop::collection::vec([odd(), odd(), odd()], 200)
}

fn floats() -> impl Strategy<Value = Vec<[f32; 3]>> {
    let odd = || {
        prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            prop::sample::select(vec![
                0.0,
                -0.0,
                1.0,
                f32::MIN_POSITIVE,
                f32::MAX,
                f32::INFINITY,
                f32::NAN,
                1e-45
            ]),
            (any::<u32>(), -30i32..30).prop_map(|(m, e)| m as f32 * 2f32.powi(e)),
        ]
    };
    prop::collection::vec([odd(), odd(), odd()], 200)
}

/// On bits, since the optimiser drops a choice between two NaN.
fn canonical(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7FFF_FFFF > 0x7F80_0000 { 0x7FFF_FFFF } else { bits })
}

fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0f32.copysign(value) } else { value }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn integer_instructions(rows in integers()) {
        check("u32", "u32", "mad.lo.u32 %d, %a, %b, %c;", &rows, |a, b, c| a.wrapping_mul(b).wrapping_add(c));
        check("u32", "u32", "mad.hi.s32 %d, %a, %b, %c;", &rows, |a, b, c| {
            (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32).wrapping_add(c)
        });
        check("u32", "u64", "mul.wide.s32 %d, %a, %b;", &rows, |a, b, _| (i64::from(a as i32) * i64::from(b as i32)) as u64);
        check("u32", "u32", "div.s32 %d, %a, %b;", &rows, |a, b, _| {
            if b == 0 { !0 } else { (a as i32).wrapping_div(b as i32) as u32 }
        });
        check("u32", "u32", "rem.u32 %d, %a, %b;", &rows, |a, b, _| if b == 0 { a } else { a % b });
        check("u32", "u32", "shl.b32 %d, %a, %b;", &rows, |a, b, _| if b > 31 { 0 } else { a << b });
        check("u32", "u32", "shr.s32 %d, %a, %b;", &rows, |a, b, _| ((a as i32) >> b.min(31)) as u32);
        check("u32", "u32", "shf.r.wrap.b32 %d, %a, %b, %c;", &rows, |a, b, c| {
            ((u64::from(b) << 32 | u64::from(a)) >> (c & 31)) as u32
        });
        check("u32", "u32", "lop3.b32 %d, %a, %b, %c, 0xE8;", &rows, |a, b, c| (a & b) | (a & c) | (b & c));
        check("u32", "u32", "bfe.s32 %d, %a, %b, 7;", &rows, |a, b, _| {
            let at = b & 255;
            (0..32).fold(0, |field, bit| {
                let source = if bit < 7 { at + bit } else { at + 6 };
                field | (a >> source.min(31) & 1) << bit
            })
        });
        check("u32", "u32", "sad.s32 %d, %a, %b, %c;", &rows, |a, b, c| c.wrapping_add((a as i32).abs_diff(b as i32)));
        check("u32", "f32", "cvt.rz.f32.u32 %d, %a;", &rows, |a, _, _| {
            let near = a as f32;
            if f64::from(near) > f64::from(a) { near.next_down() } else { near }
        });
    }

    #[test]
    fn single_precision(rows in floats()) {
        check("f32", "f32", "add.f32 %d, %a, %b;", &rows, |a, b, _| canonical(a + b));
        check("f32", "f32", "mul.ftz.f32 %d, %a, %b;", &rows, |a, b, _| canonical(flush(flush(a) * flush(b))));
        check("f32", "f32", "fma.rn.f32 %d, %a, %b, %c;", &rows, |a, b, c| canonical(a.mul_add(b, c)));
        check("f32", "f32", "div.rn.f32 %d, %a, %b;", &rows, |a, b, _| canonical(a / b));
        check("f32", "f32", "sqrt.rn.f32 %d, %a;", &rows, |a, _, _| canonical(a.sqrt()));
        check("f32", "f32", "max.f32 %d, %a, %b;", &rows, |a, b, _| {
            if a == 0.0 && b == 0.0 { if a.is_sign_negative() { b } else { a } } else { canonical(a.max(b)) }
        });
        check("f32", "u32", "setp.gtu.f32 %p1, %a, %b; selp.u32 %d, 1, 0, %p1;", &rows, |a, b, _| {
            u32::from(a > b || a.is_nan() || b.is_nan())
        });
        check("f32", "s32", "cvt.rzi.s32.f32 %d, %a;", &rows, |a, _, _| a as i32);
        check("f32", "u64", "cvt.rpi.u64.f32 %d, %a;", &rows, |a, _, _| if a.is_nan() { 1 << 63 } else { a.ceil() as u64 });
        check("f32", "f32", "cvt.sat.f32.f32 %d, %a;", &rows, |a, _, _| if a > 0.0 { a.min(1.0) } else { 0.0 });
        // Rounded down is the greatest number that is not above the sum, which double precision holds up to its own rounding.
        let down = run::<f32, f32>("f32", "f32", "add.rm.f32 %d, %a, %b;", &rows);
        let up = run::<f32, f32>("f32", "f32", "add.rp.f32 %d, %a, %b;", &rows);
        for (&[a, b, _], (down, up)) in rows.iter().zip(down.into_iter().zip(up)) {
            let near = a + b;
            prop_assert!(near.is_nan() && down.is_nan() && up.is_nan() || down <= near && near <= up);
            prop_assert!(near.is_nan() || down == up || down.next_up() == up, "{a} + {b}: {down} to {up}");
        }
    }

    #[test]
    fn double_precision(rows in prop::collection::vec([any::<u64>(), any::<u64>(), any::<u64>()], 200)) {
        let rows: Vec<[f64; 3]> = rows.into_iter().map(|row| row.map(f64::from_bits)).collect();
        let same = |body: &str, expected: fn(f64, f64, f64) -> f64| {
            for (&[a, b, c], found) in rows.iter().zip(run::<f64, f64>("f64", "f64", body, &rows)) {
                let expected = expected(a, b, c);
                assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{body} of {a}, {b}, {c}");
            }
        };
        same("add.f64 %d, %a, %b;", |a, b, _| a + b);
        same("fma.rn.f64 %d, %a, %b, %c;", |a, b, c| a.mul_add(b, c));
        same("div.rn.f64 %d, %a, %b;", |a, b, _| a / b);
        same("sqrt.rn.f64 %d, %a;", |a, _, _| a.sqrt());
    }
}
