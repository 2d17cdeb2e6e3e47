//! Each step is compiled several times, for the vector units that a host may have; the host's best is chosen at load time.

use std::sync::OnceLock;

use super::Context;
use crate::module::program::{Flow, Ins, Step};

/// What the host's vector unit can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every host of this architecture has.
    Baseline,
    /// x86-64 with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The host's.
    pub fn host() -> Level {
        static HOST: OnceLock<Level> = OnceLock::new();
        *HOST.get_or_init(|| {
            #[cfg(target_arch = "x86_64")]
            {
                let avx2 = is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt");
                let avx512 = avx2
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl");
                if avx512 && !has_halved_units() {
                    return Level::Avx512;
                }
                if avx2 {
                    return Level::Avx2;
                }
            }
            Level::Baseline
        })
    }

    /// Those that this host can run, the best last.
    pub fn all() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        let levels = [Level::Baseline, Level::Avx2, Level::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let levels = [Level::Baseline];
        #[cfg(target_arch = "x86_64")]
        let best = if is_x86_feature_detected!("avx512bw") { Level::Avx512 } else { Level::host() };
        #[cfg(not(target_arch = "x86_64"))]
        let best = Level::host();
        levels.into_iter().filter(|level| *level <= best).collect()
    }

    /// The level for steps that 512-bit vectors make slower.
    pub(crate) fn narrow(self) -> Level {
        #[cfg(target_arch = "x86_64")]
        if self == Level::Avx512 {
            return Level::Avx2;
        }
        self
    }

    /// `f32::mul_add` is one instruction. Elsewhere it is a library call, and slow.
    pub(crate) fn has_fma(self) -> bool {
        cfg!(target_arch = "aarch64") || self > Level::Baseline
    }
}

/// Zen 4 executes 512-bit operations in two halves: a Mandelbrot set took 1.7 times as long as with AVX2.
#[cfg(target_arch = "x86_64")]
fn has_halved_units() -> bool {
    let vendor = std::arch::x86_64::__cpuid(0);
    let signature = std::arch::x86_64::__cpuid(1).eax;
    let family = (signature >> 8 & 15) + (signature >> 20 & 255);
    // "AuthenticAMD"
    vendor.ebx == u32::from_le_bytes(*b"Auth") && family == 0x19
}

/// The body of a step, the same at every level.
pub(crate) trait Body {
    /// Executes the instruction.
    ///
    /// # Safety
    ///
    /// - Rows and predicates that `ins` names lie in the file of `context`.
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow;
}

/// The step of a body at a level.
pub(crate) fn step<B: Body>(level: Level) -> Step {
    match level {
        Level::Baseline => baseline::<B>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::<B>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::<B>,
    }
}

/// The step of a body that is executed too seldom, or is too scalar, to be compiled for each level.
pub(crate) fn rare_step<B: Body>() -> Step {
    baseline::<B>
}

unsafe fn baseline<B: Body>(context: &mut Context, ins: &Ins) -> Flow {
    // SAFETY: the caller keeps `Body::run`'s contract.
    unsafe { B::run(context, ins) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<B: Body>(context: &mut Context, ins: &Ins) -> Flow {
    // SAFETY: the caller keeps `Body::run`'s contract.
    unsafe { B::run(context, ins) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx512<B: Body>(context: &mut Context, ins: &Ins) -> Flow {
    // SAFETY: the caller keeps `Body::run`'s contract.
    unsafe { B::run(context, ins) }
}
