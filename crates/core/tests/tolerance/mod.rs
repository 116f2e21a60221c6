//! How exact is exact: every tolerance of these tests, in one place, with its reason.

/// Rounding of one operation, relative: 2⁻⁵².
const EPS: f64 = f64::EPSILON;

/// Relative error of η that the project promises against the definition in high precision: a few hundred roundings
/// of the last digit, and what inverting a Hessian of this condition number costs at least (`cond·ε`) times a hundred.
pub(crate) fn promised(condition: f64) -> f64 {
    1e-12 + 100.0 * condition * 2.2e-16
}

/// What an attribute's η may be wrong by, as a share of its record's η, besides [`promised`]: its Jacobian is a few
/// columns of the record's, which are known to the rounding of the whole.
pub(crate) fn of_the_record(condition: f64) -> f64 {
    100.0 * condition * EPS
}

/// The condition number is used for warnings and is promised to about 1%.
pub(crate) const CONDITION: f64 = 0.01;

/// Leakage against a dense Jacobian in the same precision, relative to the size of the Jacobian's parts,
/// `ω‖H⁻¹‖(a‖x‖‖w‖ + |r| + |c|‖x‖)`: where these cancel, what is left is known to their rounding and no better. Both
/// sides invert H, each with an error of a few `cond·ε`; the rest are sums of at most a few hundred terms.
pub(crate) fn dense(condition: f64) -> f64 {
    1e-13 + 30.0 * condition * EPS
}

/// Two ways to the same number that differ in the order of their sums only, and laws that hold exactly but for
/// rounding (η ∝ 1/σ, √K, a part never exceeds the whole).
pub(crate) const ORDER_OF_SUMS: f64 = 1e-11;

/// Relative step of a central difference of refits.
///
/// The error is `h²w'''/6 + ε·cond/h`: with h = 1e-4 and condition numbers around 10 that is 1e-8 times a third
/// derivative of the order of the first, and 1e-11.
pub(crate) const REFIT_STEP: f64 = 1e-4;
/// What a central difference of refits is trusted to: a hundred times the error above, since third derivatives of
/// Poisson models are large.
pub(crate) const REFIT: f64 = 1e-6;

/// Coefficients against scikit-learn's. Its solvers stop at a gradient of 1e-12 or when a step no longer lowers the
/// objective; the objective is flat to √ε = 1.5e-8 around its minimum, so a solver that watches it cannot promise more.
pub(crate) const SCIKIT_LEARN: f64 = 1e-8;

/// Standard errors that a simulated attack may lie below its bound before we call the bound beaten: 0.13% of true
/// bounds would be accused, and seeds are fixed.
pub(crate) const STANDARD_ERRORS: f64 = 3.0;
/// How far above its bound an efficient attack may end: 3% for the curvature of the model over the attacker's
/// uncertainty, 5% for 3 standard errors of a standard deviation over 2,000 draws (each 1/√4000 = 1.6%).
pub(crate) const EFFICIENT: f64 = 0.08;
