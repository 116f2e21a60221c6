//! How exact is exact: every tolerance of these tests, in one place, with its reason.

/// Rounding of one operation, relative: 2⁻⁵².
const EPS: f64 = f64::EPSILON;

/// Relative error of η that the project promises against the definition in high precision: a few hundred
/// roundings of the last digit, and what inverting a Hessian of this condition number costs at least
/// (`cond·ε`) times a hundred.
pub(crate) fn promised(condition: f64) -> f64 {
    1e-12 + 100.0 * condition * 2.2e-16
}

/// What an attribute's η may be wrong by, as a share of its record's η, besides [`promised`]: its Jacobian is
/// a few columns of the record's, which are known to the rounding of the whole.
pub(crate) fn of_the_record(condition: f64) -> f64 {
    100.0 * condition * EPS
}

/// The condition number is used for warnings and is promised to about 1%.
pub(crate) const CONDITION: f64 = 0.01;

/// Leakage against a dense Jacobian in the same precision, relative to the size of the Jacobian's parts,
/// `ω‖H⁻¹‖(a‖x‖‖w‖ + |r| + |c|‖x‖)`: where these cancel, what is left is known to their rounding and no
/// better. Both sides invert H, each with an error of a few `cond·ε`; the rest are sums of at most a few
/// hundred terms.
pub(crate) fn dense(condition: f64) -> f64 {
    1e-13 + 30.0 * condition * EPS
}

/// Leakage against a closed form, relative, for models of at most four columns that are well conditioned.
pub(crate) const CLOSED_FORM: f64 = 1e-13;

/// Condition number below which no Hessian may be called singular. Cholesky refuses a column of which less
/// than `64pε` is left without the others, p at most 10: condition numbers from 1/(640ε) = 7e12 on.
pub(crate) const NOT_SINGULAR: f64 = 1e10;

/// Two ways to the same number that differ in the order of their sums only, and laws that hold exactly but
/// for rounding (η ∝ 1/σ, √K, a part never exceeds the whole).
pub(crate) const ORDER_OF_SUMS: f64 = 1e-11;

/// Relative step of a central difference of refits.
///
/// The error is `h²w'''/6 + ε·cond/h`: with h = 1e-4 and condition numbers around 10 that is 1e-8 times a
/// third derivative of the order of the first, and 1e-11.
pub(crate) const REFIT_STEP: f64 = 1e-4;
/// What a central difference of refits is trusted to, relative to the norm of the record's Jacobian: a
/// hundred times the error above, since third derivatives may be larger than first ones (most in logistic
/// models: 1.5e-7 is seen).
pub(crate) const REFIT: f64 = 1e-6;

/// Coefficients against scikit-learn's, in units of the predictions they make. Its Newton solver converges
/// quadratically and is asked for a gradient of 1e-14: 1.4e-14 is seen, and this leaves room for another
/// version's order of sums on columns in their own units.
pub(crate) const SCIKIT_LEARN: f64 = 1e-10;

/// Standard errors that a simulated attack may lie below its bound before we call the bound beaten: 0.13% of
/// true bounds would be accused, and seeds are fixed.
pub(crate) const STANDARD_ERRORS: f64 = 3.0;
/// How far above its bound an efficient attack may end: 4% for the curvature of the model over the attacker's
/// uncertainty, 4% for the 3 standard errors of a standard deviation over 4,000 draws (each 1/√8000 = 1.1%).
pub(crate) const EFFICIENT: f64 = 0.08;
/// Bias of a maximum-likelihood estimate, in its standard deviations: half the curvature of the model (about
/// one) times its spread, 0.02 where it is tested.
pub(crate) const BIAS: f64 = 0.03;
