//! Losses of one record: value, derivative δ with respect to the output, and the tangents of δ.
//!
//! A loss is one file here with an implementation of `Rule`, a variant of [`Loss`] and a line of `Loss::rule`;
//! `conformance` and `tests/confident.rs` check the rest.
//!
//! | loss | ℓ | δ = ∂ℓ/∂z | δ̇ |
//! |---|---|---|---|
//! | softmax cross-entropy | `−Σ y log p` | `Y p − y` | `Y(p ⊙ ż − p (p·ż)) + Ẏ p − ẏ` |
//! | binary cross-entropy | `Σ log(1+eᶻ) − yz` | `s(z) − y` | `s(1−s) ż − ẏ` |
//! | squared error | `½‖z − y‖²` | `z − y` | `ż − ẏ` |
//!
//! Everything is computed in `f64`, whatever the network computes in, and from the complement: a record of loss 1e-30
//! has `p_y = 1` in every floating-point type, so `p_y − 1` would be zero where `−Σ_{j≠y} p_j` has all its digits.

mod binary;
mod softmax;
mod squared;

use serde::{Deserialize, Serialize};

/// In the place of a class: this position of a sequence has no label, and takes no part in the loss.
pub const NO_LABEL: u32 = u32::MAX;

/// The loss of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `−Σ y log softmax(z)`.
    #[cfg_attr(feature = "clap", value(help = "One class of several"))]
    SoftmaxCrossEntropy,
    /// `Σ log(1 + eᶻ) − yz`, y between 0 and 1.
    #[cfg_attr(feature = "clap", value(help = "Labels that hold or do not, each on its own"))]
    BinaryCrossEntropy,
    /// `½‖z − y‖²`, the half as in linear regression.
    #[cfg_attr(feature = "clap", value(help = "Values to predict"))]
    SquaredError,
}

impl Loss {
    pub(crate) fn rule(self) -> &'static dyn Rule {
        match self {
            Self::SoftmaxCrossEntropy => &softmax::Softmax,
            Self::BinaryCrossEntropy => &binary::Binary,
            Self::SquaredError => &squared::Squared,
        }
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::SoftmaxCrossEntropy => "softmax-cross-entropy",
            Self::BinaryCrossEntropy => "binary-cross-entropy",
            Self::SquaredError => "squared-error",
        }
    }

    /// The loss of one record with outputs z and label y.
    pub fn value(self, z: &[f64], y: &[f64]) -> f64 {
        let mut scratch = vec![0.0; 2 * z.len()];
        let (delta, kept) = scratch.split_at_mut(z.len());
        self.rule().primal(z, y, delta, kept).loss
    }

    /// What outputs say: probabilities of the classes or of the labels, or the predicted values themselves.
    pub fn scores(self, z: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; z.len()];
        self.rule().scores(z, &mut scores);
        scores
    }

    /// How many of a record's labels the outputs get right: one of one where classes exclude one another, one for each
    /// output where they do not; absent for values to predict.
    pub fn agreement(self, z: &[f64], y: &[f64]) -> Option<Agreement> {
        self.rule().agreement(z, y)
    }
}

/// Labels of one record that were predicted rightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Labels that are right.
    pub right: usize,
    /// Labels there are.
    pub labels: usize,
}

/// What the primal pass of a loss says beside δ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value {
    pub(crate) loss: f64,
    /// The size of `∂δ/∂z`, to about a factor of two: with δ, it tells how small numbers will get.
    pub(crate) curvature: f64,
}

/// The rules of one loss, on the outputs z and the label y of one record. `kept` is as long as z and holds what the
/// tangents need again.
pub(crate) trait Rule: Sync {
    /// Writes δ and `kept`.
    fn primal(&self, z: &[f64], y: &[f64], delta: &mut [f64], kept: &mut [f64]) -> Value;

    /// `out += (∂δ/∂z) ż`.
    fn output_tangent(&self, kept: &[f64], y: &[f64], z_dot: &[f64], out: &mut [f64]);

    /// `out += (∂δ/∂y) ẏ`.
    fn label_tangent(&self, kept: &[f64], y_dot: &[f64], out: &mut [f64]);

    /// `out = (∂δ/∂y)ᵀ ż`, the tangent of `∂ℓ/∂y`.
    fn label_adjoint(&self, kept: &[f64], z_dot: &[f64], out: &mut [f64]);

    /// See [`Loss::scores`].
    fn scores(&self, z: &[f64], out: &mut [f64]);

    /// See [`Loss::agreement`].
    fn agreement(&self, z: &[f64], y: &[f64]) -> Option<Agreement>;

    /// What is wrong with a label, and what to do.
    fn label_fault(&self, y: &[f64]) -> Option<&'static str>;
}

/// Position of the largest value, the first of equals.
pub(crate) fn largest(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Row {
        loss: Loss,
        z: Vec<f64>,
        y: Vec<f64>,
        z_dot: Vec<f64>,
        y_dot: Vec<f64>,
        value: f64,
        delta: Vec<f64>,
        by_output: Vec<f64>,
        by_label: Vec<f64>,
    }

    #[derive(serde::Deserialize)]
    struct Golden {
        losses: Vec<Row>,
    }

    fn close(actual: f64, exact: f64, subject: &str) {
        assert!((actual - exact).abs() <= 4e-14 * exact.abs(), "{subject}: {actual:e} against {exact:e}");
    }

    /// Every value against 200 digits (testdata/net/confident.py), element by element and relative to its own size: of
    /// a loss of 1e-30 each digit counts.
    #[test]
    fn losses_and_tangents_keep_their_digits_down_to_1e_30() {
        let golden: Golden =
            serde_json::from_str(include_str!("../../../../testdata/net/confident.json")).unwrap();
        let mut least = 1.0_f64;
        for r in &golden.losses {
            let (rule, k) = (r.loss.rule(), r.z.len());
            let (mut delta, mut kept) = (vec![0.0; k], vec![0.0; k]);
            let value = rule.primal(&r.z, &r.y, &mut delta, &mut kept).loss;
            least = least.min(value);
            close(value, r.value, "loss");
            let mut by_output = vec![0.0; k];
            rule.output_tangent(&kept, &r.y, &r.z_dot, &mut by_output);
            let mut by_label = vec![0.0; k];
            rule.label_tangent(&kept, &r.y_dot, &mut by_label);
            let mut adjoint = vec![0.0; k];
            rule.label_adjoint(&kept, &r.z_dot, &mut adjoint);
            for j in 0..k {
                close(delta[j], r.delta[j], "delta");
                close(by_output[j], r.by_output[j], "delta by the output");
                close(by_label[j], r.by_label[j], "delta by the label");
            }
            // ⟨(∂δ/∂y)ᵀ ż, ẏ⟩ = ⟨ż, (∂δ/∂y) ẏ⟩
            let pair = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let (left, right) = (pair(&adjoint, &r.y_dot), pair(&r.z_dot, &by_label));
            assert!((left - right).abs() < 1e-14, "{left} against {right}");
        }
        assert!(least < 1e-29 && golden.losses.len() == 27);
    }

    #[test]
    fn the_ends_of_the_range_have_losses() {
        for loss in [Loss::SoftmaxCrossEntropy, Loss::BinaryCrossEntropy] {
            assert_eq!(loss.value(&[800.0, -800.0], &[1.0, 0.0]), 0.0);
            assert!(loss.value(&[-800.0, 800.0], &[1.0, 0.0]) >= 1600.0);
            assert!(loss.value(&[f64::NAN, 0.0], &[1.0, 0.0]).is_nan());
        }
        assert_eq!(Loss::SoftmaxCrossEntropy.scores(&[800.0, 800.0, -800.0]), [0.5, 0.5, 0.0]);
        assert_eq!(Loss::BinaryCrossEntropy.scores(&[800.0, 0.0, -800.0]), [1.0, 0.5, 0.0]);
    }

    #[test]
    fn several_labels_are_counted_one_by_one() {
        let (z, y) = ([2.0, -1.0, 3.0], [1.0, 1.0, 1.0]);
        let agreement = Loss::BinaryCrossEntropy.agreement(&z, &y);
        assert_eq!(agreement, Some(Agreement { right: 2, labels: 3 }));
        let agreement = Loss::SoftmaxCrossEntropy.agreement(&z, &[0.0, 0.0, 1.0]);
        assert_eq!(agreement, Some(Agreement { right: 1, labels: 1 }));
        assert_eq!(Loss::SquaredError.agreement(&z, &y), None);
    }

    #[test]
    fn labels_that_do_not_suit_a_loss_are_named() {
        let fault = |loss: Loss, y: &[f64]| loss.rule().label_fault(y);
        assert!(fault(Loss::SoftmaxCrossEntropy, &[1.0, 1.0]).unwrap().contains("binary-cross-entropy"));
        assert!(fault(Loss::SoftmaxCrossEntropy, &[0.0, 0.0]).is_some());
        assert!(fault(Loss::SoftmaxCrossEntropy, &[1.5, -0.5]).is_some());
        assert_eq!(fault(Loss::SoftmaxCrossEntropy, &[0.25, 0.75]), None);
        assert_eq!(fault(Loss::BinaryCrossEntropy, &[1.0, 1.0]), None);
        assert!(fault(Loss::BinaryCrossEntropy, &[2.0, 1.0]).is_some());
        assert_eq!(fault(Loss::SquaredError, &[2.0, -1.0]), None);
    }
}
