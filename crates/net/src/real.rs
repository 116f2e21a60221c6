//! The two kinds of number a network computes with, `f32` and `f64`, and their vectorised functions.
//!
//! `exp`, `tanh` and `erf` are branch-free so that loops over them vectorise. Largest errors over the whole
//! range, measured against 40 digits and stated by the tests below:
//!
//! | function | f32 | f64 |
//! |---|---|---|
//! | `exp` | 1 ulp | 1 ulp |
//! | `tanh` | 1 ulp | 1.5 ulp |
//! | `erf` | 0.6 ulp (computed in f64) | 2 ulp |

use crate::compiled::Compiled;
use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A floating-point number: `f32` or `f64`.
pub trait Real:
    Compiled
    + Copy
    + Send
    + Sync
    + Debug
    + Display
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Name of the type in a safetensors file.
    const DTYPE: &'static str;
    /// Bytes of one number.
    const BYTES: usize;
    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// `e^x`; 0 below the normal range, infinite above 88 (f32) or 709 (f64).
    fn exp(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// The standard normal distribution function, with relative accuracy in the lower tail down to −8.
    fn normal_cdf(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Appends the little-endian bytes.
    fn write(self, out: &mut Vec<u8>);
    /// Reads little-endian bytes; the slice holds exactly [`Real::BYTES`] of them.
    fn read(bytes: &[u8]) -> Self;
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const DTYPE: &'static str = "F32";
    const BYTES: usize = 4;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn exp(self) -> Self {
        let (n2, q) = exp_parts_f32(self.clamp(-87.0, 88.0));
        let y = n2 * q + n2;
        let y = if self < -87.0 { 0.0 } else { y };
        if self > 88.0 { f32::INFINITY } else { y }
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        // tanh|x| = 1 − 2/(e^{2|x|} + 1), 1 in f32 beyond 10; below 0.6, where that cancels, x + x³ Q(x²)
        let a = Real::abs(self).clamp(0.0, 10.0);
        let (n2, q) = exp_parts_f32(2.0 * a);
        let large = 1.0 - 2.0 / (n2 * q + n2 + 1.0);
        let z = a * a;
        let mut small = 0.0;
        for c in TANH_F32.iter().rev() {
            small = small * z + c;
        }
        (if a < 0.6 { a + a * z * small } else { large }).copysign(self)
    }

    #[inline(always)]
    fn erf(self) -> Self {
        erf(f64::from(self)) as f32
    }

    #[inline(always)]
    fn normal_cdf(self) -> Self {
        normal_cdf(f64::from(self)) as f32
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        f32::abs(self)
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let mut b = [0; 4];
        b.copy_from_slice(bytes);
        f32::from_le_bytes(b)
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const DTYPE: &'static str = "F64";
    const BYTES: usize = 8;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn exp(self) -> Self {
        let (n2, q) = exp_parts_f64(self.clamp(-708.0, 709.0));
        let y = n2 * q + n2;
        let y = if self < -708.0 { 0.0 } else { y };
        if self > 709.0 { f64::INFINITY } else { y }
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        let a = Real::abs(self).clamp(0.0, 20.0);
        let (n2, q) = exp_parts_f64(2.0 * a);
        let large = 1.0 - 2.0 / (n2 * q + n2 + 1.0);
        let z = a * a;
        let mut small = 0.0;
        for c in TANH_F64.iter().rev() {
            small = small * z + c;
        }
        (if a < 0.6 { a + a * z * small } else { large }).copysign(self)
    }

    #[inline(always)]
    fn erf(self) -> Self {
        erf(self)
    }

    #[inline(always)]
    fn normal_cdf(self) -> Self {
        normal_cdf(self)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        f64::abs(self)
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let mut b = [0; 8];
        b.copy_from_slice(bytes);
        f64::from_le_bytes(b)
    }
}

/// `(2ⁿ, eʳ − 1)` with `x = n ln 2 + r`, `|r| ≤ ln 2 / 2`: the Taylor polynomial of degree 7, error 5e-9.
#[inline(always)]
fn exp_parts_f32(x: f32) -> (f32, f32) {
    // Adding 1.5·2²³ rounds to an integer, which then sits in the low bits.
    const MAGIC: f32 = 12_582_912.0;
    let t = x * std::f32::consts::LOG2_E + MAGIC;
    let n = t - MAGIC;
    // ln 2 in two parts: the first has 10 significant bits, so that n times it is exact.
    let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
    let n2 = f32::from_bits(t.to_bits().wrapping_add(127) << 23);
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    (n2, p * (r * r) + r)
}

/// As [`exp_parts_f32`], with the Taylor polynomial of degree 13: error 4e-18.
#[inline(always)]
fn exp_parts_f64(x: f64) -> (f64, f64) {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let t = x * std::f64::consts::LOG2_E + MAGIC;
    let n = t - MAGIC;
    // The first part has 21 significant bits.
    let r = (x - n * 0.693_147_182_464_599_6) - n * -1.904_654_299_957_768_e-9;
    let n2 = f64::from_bits(t.to_bits().wrapping_add(1023) << 52);
    let p = 1.0 / 6_227_020_800.0;
    let p = p * r + 1.0 / 479_001_600.0;
    let p = p * r + 1.0 / 39_916_800.0;
    let p = p * r + 1.0 / 3_628_800.0;
    let p = p * r + 1.0 / 362_880.0;
    let p = p * r + 1.0 / 40_320.0;
    let p = p * r + 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    (n2, p * (r * r) + r)
}

/// `(tanh(x)/x − 1)/x²` on `|x| ≤ 0.6` as a polynomial in x²: Chebyshev fit, error 1e-9.
const TANH_F32: [f32; 7] =
    [-0.33333334, 0.13333333, -0.053967837, 0.021862393, -0.008805157, 0.0033429053, -0.0008975836];

/// The same with error 2e-18.
const TANH_F64: [f64; 13] = [
    -0.3333333333333333,
    0.13333333333333328,
    -0.05396825396824624,
    0.021869488535679417,
    -0.008863235514654328,
    0.003592127745183867,
    -0.001455830802871975,
    0.0005899977794830185,
    -0.0002389600499135455,
    9.624698403157665e-05,
    -3.746125200719397e-05,
    1.2612660499997461e-05,
    -2.6252650472908745e-06,
];

/// `erf(x)/x` on `|x| ≤ 1` as a polynomial in x²: Chebyshev fit of degree 13, error 2e-19.
const ERF_SMALL: [f64; 14] = [
    std::f64::consts::FRAC_2_SQRT_PI,
    -0.37612638903183754,
    0.1128379167095512,
    -0.026866170645129854,
    0.005223977625423455,
    -0.0008548327021945428,
    0.00012055332903350668,
    -1.4925647581008593e-05,
    1.6462045711013026e-06,
    -1.6364645854816389e-07,
    1.479243542696247e-08,
    -1.2164764337224506e-09,
    8.709755232851789e-11,
    -4.2320376764874594e-12,
];

/// `e^{x²} erfc(x)` on `1 ≤ x ≤ 6` as a polynomial in `(x − 2.5)/(x + 2.5)`: Chebyshev fit, error 2e-17.
const ERFC_TAIL: [f64; 16] = [
    0.21080636406114356,
    -0.3717367339489733,
    0.25171319321745605,
    -0.1250330523788524,
    0.039922539074779065,
    -0.003993701164337543,
    -0.0026423659275693987,
    0.0008759154070369469,
    0.00022837955541032517,
    -0.00012887656691891382,
    -3.417219575577752e-05,
    1.861023713114737e-05,
    7.484646612512354e-06,
    -2.2862031318542576e-06,
    -1.5622488105185649e-06,
    8.435482528195873e-08,
];

/// `erf(a)` for 0 ≤ a ≤ 1, and `erfc(a)` for 1 ≤ a ≤ 6. Both are computed and one is chosen, so that a loop over it
/// vectorises.
#[inline(always)]
fn erf_parts(a: f64) -> (f64, f64) {
    let z = a * a;
    let mut small = 0.0;
    for c in ERF_SMALL.iter().rev() {
        small = small * z + c;
    }
    let t = (a - 2.5) / (a + 2.5);
    let mut tail = 0.0;
    for c in ERFC_TAIL.iter().rev() {
        tail = tail * t + c;
    }
    (a * small, tail * Real::exp(-z))
}

#[inline(always)]
fn erf(x: f64) -> f64 {
    let a = x.abs().clamp(0.0, 6.0);
    let (small, tail) = erf_parts(a);
    (if a < 1.0 { small } else { 1.0 - tail }).copysign(x)
}

#[inline(always)]
fn normal_cdf(x: f64) -> f64 {
    let a = (x.abs() * std::f64::consts::FRAC_1_SQRT_2).clamp(0.0, 6.0);
    let (small, tail) = erf_parts(a);
    let upper = 0.5 * if a < 1.0 { 1.0 - small } else { tail };
    // beyond the fit the tail is below 1e-17
    let upper = if x.abs() > 8.485 { 0.0 } else { upper };
    let cdf = if x < 0.0 { upper } else { 1.0 - upper };
    if x.is_nan() { x } else { cdf }
}

/// Runs a loop compiled for AVX2 where the processor has it, and for the baseline otherwise. Both give the same
/// bits: the loops use no fused multiply-add. The closure must be `#[inline(always)]`, or it stays a function of its
/// own, compiled for the baseline.
#[inline(always)]
pub(crate) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        #[inline]
        fn with_avx2<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor was just asked for the feature.
            return unsafe { with_avx2(f) };
        }
    }
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point, and the exact values as the nearest f64 and the rest.
    #[derive(serde::Deserialize)]
    struct Row {
        x: f64,
        exp: [f64; 2],
        tanh: [f64; 2],
        erf: [f64; 2],
    }

    /// Error in units of the last place of the exact value.
    fn ulps(actual: f64, exact: [f64; 2], eps: f64) -> f64 {
        let ulp = eps * 2f64.powi(exact[0].abs().log2().floor() as i32);
        ((actual - exact[0]) - exact[1]).abs() / ulp
    }

    #[test]
    fn exp_tanh_erf_keep_their_stated_errors() {
        let rows: Vec<Row> =
            serde_json::from_str(include_str!("../../../testdata/net/special.json")).unwrap();
        let worst = |f: &dyn Fn(&Row) -> f64| rows.iter().map(f).fold(0.0, f64::max);
        let (single, double) = (f64::from(f32::EPSILON), f64::EPSILON);
        let actual = [
            worst(&|r| ulps(f64::from(Real::exp(r.x as f32)), r.exp, single)),
            worst(&|r| ulps(Real::exp(r.x), r.exp, double)),
            worst(&|r| ulps(f64::from(Real::tanh(r.x as f32)), r.tanh, single)),
            worst(&|r| ulps(Real::tanh(r.x), r.tanh, double)),
            worst(&|r| ulps(f64::from(Real::erf(r.x as f32)), r.erf, single)),
            worst(&|r| ulps(Real::erf(r.x), r.erf, double)),
        ];
        println!(
            "exp {:.2} {:.2}, tanh {:.2} {:.2}, erf {:.2} {:.2}",
            actual[0], actual[1], actual[2], actual[3], actual[4], actual[5]
        );
        for (actual, stated) in actual.iter().zip([1.0, 1.0, 1.0, 1.5, 0.6, 2.0]) {
            assert!(*actual <= stated, "{actual} against {stated}");
        }
        assert!(rows.len() > 1000);
    }

    #[test]
    fn the_ends_of_the_range_are_right() {
        assert_eq!(Real::exp(-1e4f32), 0.0);
        assert_eq!(Real::exp(-1e4f64), 0.0);
        assert_eq!(Real::exp(1e4f64), f64::INFINITY);
        assert_eq!(Real::tanh(1e4f64), 1.0);
        assert_eq!(Real::tanh(-1e4f32), -1.0);
        assert_eq!(Real::erf(50.0f64), 1.0);
        assert!(Real::tanh(f64::NAN).is_nan() && Real::exp(f32::NAN).is_nan());
    }
}
