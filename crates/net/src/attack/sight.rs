//! What an attacker sees of a step: the sum of a few records' gradients as it was released, `Σ clip(gᵢ) + N(0, (σC)² I)`, or
//! the weights before and after.

use crate::{
    Clip, Data, Network, Real,
    engine::clipped_gradient,
    error::{Error, Result, check, check_finite, check_len},
    random::{Generator, Purpose},
};

/// One gradient, and what else the attacker knows of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight<T> {
    /// What was released, in the order of [`Network::tensors`].
    pub gradient: Vec<T>,
    /// How many records it is the sum of.
    pub records: usize,
    /// Their labels `(records, outputs)`, where they are known.
    pub labels: Option<Vec<T>>,
}

impl<T: Real> Sight<T> {
    /// Whether nothing is seen: records that are fitted so well that no parameter moves.
    pub fn is_zero(&self, net: &Network<T>) -> bool {
        self.gradient.iter().zip(&net.trained()).all(|(v, t)| !t || *v == T::ZERO)
    }

    /// Checks that it can be one of a network.
    pub fn check(&self, net: &Network<T>) -> Result<()> {
        let p = net.parameter_count();
        if self.gradient.len() != p {
            let reason = format!(
                "it has {} values and the network {p} parameters: it is the gradient of another network",
                self.gradient.len()
            );
            return Err(Error::Format { subject: "the gradient", reason });
        }
        check_finite("the gradient", &self.gradient)?;
        if self.is_zero(net) {
            let reason =
                "it is zero everywhere: it tells nothing, and no record can be found from it".to_owned();
            return Err(Error::Format { subject: "the gradient", reason });
        }
        check(self.records > 0, "the number of records of a gradient", 0.0, "at least 1")?;
        if let Some(labels) = &self.labels {
            check_len("the labels of a gradient", labels.len(), self.records * net.outputs())?;
            check_finite("the labels of a gradient", labels)?;
        }
        Ok(())
    }
}

/// How gradients were released.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mechanism {
    /// How every record's gradient was clipped.
    pub clip: Clip,
    /// σ: the noise on the sum has standard deviation σC; 0 where there is none.
    pub sigma: f64,
}

impl Mechanism {
    /// `s = σC`.
    pub fn noise(self) -> f64 {
        self.sigma * self.clip.unit()
    }
}

/// What an attacker sees of batches of records, one gradient each. Every batch has noise of its own, by the seed and its
/// first record, so that it is the same whatever others are attacked.
pub fn gradients<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    batches: &[&[usize]],
    mechanism: Mechanism,
    seed: u64,
) -> Result<Vec<Sight<T>>> {
    check(
        mechanism.sigma >= 0.0 && mechanism.sigma.is_finite(),
        "sigma",
        mechanism.sigma,
        "0 or more, and finite",
    )?;
    let trained = net.trained();
    let one = |batch: &&[usize]| {
        let first = *batch.first().ok_or(Error::Empty)?;
        let mut gradient = clipped_gradient(net, data, batch, mechanism.clip)?.sum;
        if mechanism.sigma > 0.0 {
            let mut rng = Generator::new(seed, Purpose::Attack, 2 * first as u64 + 1);
            for (v, _) in gradient.iter_mut().zip(&trained).filter(|(_, t)| **t) {
                *v += T::from_f64(mechanism.noise() * rng.normal());
            }
        }
        let labels = batch.iter().flat_map(|&i| data.label(i).into_owned()).collect();
        Ok(Sight { gradient, records: batch.len(), labels: Some(labels) })
    };
    batches.iter().map(one).collect()
}

/// What somebody sees of steps of gradient descent on the same records: the network half way, and the difference of the
/// weights as a gradient (see [`half_way`]).
pub fn local_steps<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    batch: &[usize],
    steps: u64,
    learning_rate: f64,
) -> Result<(Network<T>, Sight<T>)> {
    let open = Mechanism { clip: Clip::None, sigma: 0.0 };
    let (mut local, mut sight) = (half_way(net, &net.parameters()?)?.0, None);
    for _ in 0..steps {
        let seen = gradients(&local, data, &[batch], open, 0)?.remove(0);
        let moved = local
            .parameters()?
            .iter()
            .zip(&seen.gradient)
            .map(|(&t, &g)| t - T::from_f64(learning_rate) * g)
            .collect::<Vec<T>>();
        local.set_parameters(&moved)?;
        sight = Some(seen);
    }
    let sight = sight.ok_or(Error::Empty)?;
    let (half, gradient) = half_way(net, &local.parameters()?)?;
    Ok((half, Sight { gradient, ..sight }))
}

/// What somebody sees who has the weights before and after steps of gradient descent on the same records: the difference, which
/// is a multiple of the mean gradient on the way; and the network half way, whose gradient is that mean to second order.
pub fn half_way<T: Real>(before: &Network<T>, after: &[T]) -> Result<(Network<T>, Vec<T>)> {
    check_len("the weights after the steps", after.len(), before.parameter_count())?;
    check_finite("the weights after the steps", after)?;
    let theta = before.parameters()?;
    let half = T::from_f64(0.5);
    let middle: Vec<T> = theta.iter().zip(after).map(|(&a, &b)| half * (a + b)).collect();
    let mut net = Network::with_parameters(before.spec().clone(), &middle)?;
    let statistics: Vec<(usize, Vec<f64>, Vec<f64>)> =
        before.statistics().map(|(p, m, v)| (p, m.to_vec(), v.to_vec())).collect();
    for (position, mean, variance) in statistics {
        net.set_statistics(position, &mean, &variance)?;
    }
    if let Some(frozen) = before.frozen() {
        net.freeze(&frozen)?;
    }
    let moved = theta.iter().zip(after).map(|(&a, &b)| a - b).collect();
    Ok((net, moved))
}
