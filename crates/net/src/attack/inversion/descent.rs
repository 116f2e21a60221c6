//! Many records at once. Gradients of one record ride together through the network, an array for each; a gradient of
//! several records has passes of its own.

use super::{Inversion, Reconstruction, UnknownLabels, objective::Slope, recovered_labels, smooth};
use crate::{
    Loss, Network, Real,
    attack::sight::Sight,
    data::{Batch, Input},
    device::{Buf, Device, Target},
    engine::Workers,
    error::{Error, Result},
    leak::Label,
    pass::{OwnDirection, Primal, SharedDirection},
    random::{Generator, Purpose},
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Steps between two looks at whether to go on.
const LOOK: usize = 16;

/// One gradient with labels, from one start.
struct Task<'a, T> {
    sight: &'a Sight<T>,
    /// Its number.
    number: usize,
    labels: Vec<T>,
    start: usize,
}

/// Where the guesses of some tasks stand.
struct Guess {
    x: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

/// What one evaluation says of every gradient.
struct Evaluation {
    cost: Vec<f64>,
    cosine: Vec<f64>,
    /// By every value of every record.
    slope: Vec<f64>,
}

/// How far all are, and whether to go on.
struct Progress<'a> {
    steps: AtomicU64,
    stopped: AtomicBool,
    watch: &'a (dyn Fn(u64) -> bool + Sync),
}

impl Progress<'_> {
    fn goes_on(&self, steps: u64) -> bool {
        let steps = self.steps.fetch_add(steps, Ordering::Relaxed) + steps;
        if !(self.watch)(steps) {
            self.stopped.store(true, Ordering::Relaxed);
        }
        !self.stopped.load(Ordering::Relaxed)
    }
}

pub(crate) fn invert_generic<T: Real>(
    net: &Network<T>,
    sights: &[Sight<T>],
    how: &Inversion,
    watch: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Vec<Reconstruction>> {
    let trained = net.trained();
    // what is frozen was not released
    let trained_part = |s: &Sight<T>| {
        let gradient = s.gradient.iter().zip(&trained).map(|(&v, t)| if *t { v } else { T::ZERO }).collect();
        Sight { gradient, ..s.clone() }
    };
    let sights: Vec<Sight<T>> = sights.iter().map(trained_part).collect();
    let mut tasks = Vec::new();
    for (number, sight) in sights.iter().enumerate() {
        for labels in candidates(net, sight, how.labels)? {
            let start = |start| Task { sight, number, labels: labels.clone(), start };
            tasks.extend((0..how.restarts).map(start));
        }
    }
    let (workers, progress) =
        (Workers::of(net), Progress { steps: AtomicU64::new(0), stopped: AtomicBool::new(false), watch });
    let mut best: Vec<Option<Reconstruction>> = vec![None; sights.len()];
    let mut keep = |number: usize, reconstruction: Reconstruction| {
        let place = &mut best[number];
        if place.as_ref().is_none_or(|b| reconstruction.cost < b.cost) {
            *place = Some(reconstruction);
        }
    };
    let (singles, groups): (Vec<usize>, Vec<usize>) =
        (0..tasks.len()).partition(|&i| tasks[i].sight.records == 1);
    for (numbers, size) in [(singles, net.records_at_a_time(1)), (groups, 1)] {
        let parts = workers.map(&numbers, size, |dev, piece| {
            let piece: Vec<&Task<'_, T>> = piece.iter().map(|&i| &tasks[i]).collect();
            descend(net, dev, &piece, how, &progress)
        })?;
        for (i, reconstruction) in numbers.into_iter().zip(parts.into_iter().flatten()) {
            keep(tasks[i].number, reconstruction);
        }
    }
    best.into_iter().map(|b| b.ok_or(Error::Empty)).collect()
}

/// The labels that a gradient is attacked with.
fn candidates<T: Real>(net: &Network<T>, sight: &Sight<T>, unknown: UnknownLabels) -> Result<Vec<Vec<T>>> {
    if let Some(labels) = &sight.labels {
        return Ok(vec![labels.clone()]);
    }
    let k = net.outputs();
    let one_hot = |c: usize| (0..k).map(|i| if i == c { T::ONE } else { T::ZERO }).collect::<Vec<T>>();
    match (unknown, net.loss()) {
        (UnknownLabels::Recover, _) => Ok(vec![recovered_labels(net, sight)?]),
        (UnknownLabels::Try, Loss::SoftmaxCrossEntropy) if sight.records == 1 => {
            Ok((0..k).map(one_hot).collect())
        }
        (UnknownLabels::Try, Loss::BinaryCrossEntropy) if sight.records == 1 && k == 1 => {
            Ok(vec![vec![T::ZERO], vec![T::ONE]])
        }
        (UnknownLabels::Try, _) => {
            let reason =
                "labels are tried for one record of one class alone: give them, or recover them".to_owned();
            Err(Error::Format { subject: "labels", reason })
        }
    }
}

fn descend<T: Real>(
    net: &Network<T>,
    dev: &mut Device<T>,
    tasks: &[&Task<'_, T>],
    how: &Inversion,
    progress: &Progress<'_>,
) -> Result<Vec<Reconstruction>> {
    let d = net.input().len();
    let mut x = Vec::new();
    for task in tasks {
        let mut rng =
            Generator::new(how.seed, Purpose::Attack, 2 * (task.start + 1_000_003 * task.number) as u64);
        let each = (0..task.sight.records * d)
            .map(|_| how.range.clamp(how.range.low + how.range.width() * rng.normal()));
        x.extend(each);
    }
    let moments = || vec![0.0; x.len()];
    let mut guess = Guess { first: moments(), second: moments(), x: x.clone() };
    let sights = Sights::new(net, dev, tasks);
    for step in 0..how.iterations {
        let at = evaluate(net, dev, tasks, &sights, &guess.x, how)?;
        guess.step(step, &at.slope, how);
        if step % LOOK == LOOK - 1 && !progress.goes_on((LOOK * tasks.len()) as u64) {
            break;
        }
    }
    let end = evaluate(net, dev, tasks, &sights, &guess.x, how)?;
    dev.put(sights.arrays);
    let mut out = Vec::with_capacity(tasks.len());
    let mut from = 0;
    for (i, task) in tasks.iter().enumerate() {
        let len = task.sight.records * d;
        out.push(Reconstruction {
            records: guess.x[from..from + len].to_vec(),
            labels: task.labels.iter().map(|v| v.to_f64()).collect(),
            cost: end.cost[i],
            cosine: end.cosine[i],
            restart: task.start,
        });
        from += len;
    }
    Ok(out)
}

impl Guess {
    /// One step of Adam, on the sign of the slope or on itself, back into the box.
    fn step(&mut self, step: usize, slope: &[f64], how: &Inversion) {
        const B1: f64 = 0.9;
        const B2: f64 = 0.999;
        let t = (step + 1).min(i32::MAX as usize) as i32;
        let passed = [3, 5, 7].into_iter().filter(|eighth| 8 * step >= eighth * how.iterations).count();
        let rate = how.learning_rate * how.range.width() * 0.1f64.powi(passed as i32) / (1.0 - B1.powi(t));
        let root = 1.0 / (1.0 - B2.powi(t)).sqrt();
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((x, (m, v)), &g) in self.x.iter_mut().zip(moments).zip(slope) {
            let g = match how.signed {
                true if g == 0.0 => 0.0,
                true => g.signum(),
                false => g,
            };
            *m = B1 * *m + (1.0 - B1) * g;
            *v = B2 * *v + (1.0 - B2) * g * g;
            *x = how.range.clamp(*x - rate * *m / (v.sqrt() * root + 1e-8));
        }
    }
}

/// What was seen, on the device: the arrays of all tasks, and their norms.
struct Sights<T> {
    arrays: Buf<T>,
    norms: Vec<f64>,
}

impl<T: Real> Sights<T> {
    fn new(net: &Network<T>, dev: &mut Device<T>, tasks: &[&Task<'_, T>]) -> Self {
        let all: Vec<&[T]> = tasks.iter().map(|t| t.sight.gradient.as_slice()).collect();
        let norm = |v: &&[T]| v.iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>().sqrt();
        Self { norms: all.iter().map(norm).collect(), arrays: dev.upload(&net.interleaved(&all)) }
    }
}

/// The objective, total variation included, and its slope.
fn evaluate<T: Real>(
    net: &Network<T>,
    dev: &mut Device<T>,
    tasks: &[&Task<'_, T>],
    sights: &Sights<T>,
    x: &[f64],
    how: &Inversion,
) -> Result<Evaluation> {
    let (d, shape) = (net.input().len(), net.input());
    let numbers: Vec<usize> =
        tasks.iter().flat_map(|t| std::iter::repeat_n(t.number, t.sight.records)).collect();
    let values: Vec<T> = x.iter().map(|&v| T::from_f64(v)).collect();
    let labels: Vec<T> = tasks.iter().flat_map(|t| &t.labels).copied().collect();
    let batch = Batch {
        records: &numbers,
        length: 1,
        x: Input::Values(dev.upload(&values)),
        y: Target::Vectors(dev.upload(&labels)),
        weights: None,
    };
    let primal = net.primal(dev, batch, Label::Public, None);
    let (norms, _) = primal.norms(dev, &numbers)?;
    let mut out = match tasks {
        [task] if task.sight.records > 1 => of_sum(net, dev, &primal, &norms, sights, how)?,
        _ => of_each(net, dev, &primal, &norms, sights, how)?,
    };
    primal.recycle(dev);
    if how.total_variation > 0.0 {
        let records = x.chunks_exact(d).zip(out.slope.chunks_exact_mut(d));
        for (i, (x, slope)) in records.enumerate() {
            let task = if out.cost.len() == 1 { 0 } else { i };
            out.cost[task] += how.total_variation * smooth::total_variation(shape, x);
            smooth::add_slope(shape, x, how.total_variation, slope);
        }
    }
    match out.slope.iter().position(|v| !v.is_finite()) {
        None => Ok(out),
        Some(at) => Err(Error::NotFinite { subject: "the slope of an attack", position: numbers[at / d] }),
    }
}

/// Gradients of one record each, with `t = s g`.
fn of_each<T: Real>(
    net: &Network<T>,
    dev: &mut Device<T>,
    primal: &Primal<T>,
    norms: &[f64],
    sights: &Sights<T>,
    how: &Inversion,
) -> Result<Evaluation> {
    let n = norms.len();
    let products = net.along(dev, primal, &sights.arrays, n);
    let products = dev.download_scalars(&products)?;
    let (mut own, mut shared) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let (mut cost, mut cosine) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for ((&norm, &p), &m) in norms.iter().zip(&products).zip(&sights.norms) {
        let (s, s1) = how.clip.factor(norm);
        let Slope { value, alpha, beta } = how.objective.slope(s * norm, s * p, m);
        // D u = s u + (s'/n)(g·u) g of u = α v + β s g
        let bend = if norm > 0.0 { s1 / norm * (alpha * p + beta * s * norm * norm) } else { 0.0 };
        shared.push(s * alpha);
        own.push(s * s * beta + bend);
        cost.push(value);
        cosine.push(if norm * m > 0.0 { p / (norm * m) } else { 0.0 });
    }
    let (own, shared, zero) = (dev.upload_scalars(&own), dev.upload_scalars(&shared), dev.scalars(n));
    let pairs = OwnDirection { tangent: None, alpha: &zero, beta: &own };
    let arrays = SharedDirection { array: &sights.arrays, copies: n, weights: &shared };
    let (slope, _) = net.adjoint(dev, primal, Some(&pairs), Some(&arrays))?;
    Ok(Evaluation { cost, cosine, slope })
}

/// The gradient of several records, `t = Σ sᵢ gᵢ`.
fn of_sum<T: Real>(
    net: &Network<T>,
    dev: &mut Device<T>,
    primal: &Primal<T>,
    norms: &[f64],
    sights: &Sights<T>,
    how: &Inversion,
) -> Result<Evaluation> {
    let clips: Vec<(f64, f64)> = norms.iter().map(|&n| how.clip.factor(n)).collect();
    let factors: Vec<f64> = clips.iter().map(|c| c.0).collect();
    let factors = dev.upload_scalars(&factors);
    let mut total = dev.zeros(net.parameter_count());
    net.add_weighted(dev, primal, &factors, &mut total);
    let (t, v) = (dev.download(&total)?, dev.download(&sights.arrays)?);
    let dot = |a: &[T], b: &[T]| a.iter().zip(b).map(|(x, y)| x.to_f64() * y.to_f64()).sum::<f64>();
    let (norm, p, m) = (dot(&t, &t).sqrt(), dot(&t, &v), sights.norms[0]);
    let Slope { value, alpha, beta } = how.objective.slope(norm, p, m);
    // in units of its own, so that it does not leave the range of the type
    let unit = (alpha.abs() * m + beta.abs() * norm).max(f64::MIN_POSITIVE);
    let u: Vec<T> =
        v.iter().zip(&t).map(|(v, t)| T::from_f64((alpha * v.to_f64() + beta * t.to_f64()) / unit)).collect();
    dev.write(&mut total, &u);
    let along = net.along(dev, primal, &total, 1);
    let along = dev.download_scalars(&along)?;
    let bends = norms.iter().zip(&clips).zip(&along);
    let own: Vec<f64> = bends.map(|((&n, c), a)| if n > 0.0 { unit * c.1 / n * a } else { 0.0 }).collect();
    let shared: Vec<f64> = clips.iter().map(|c| unit * c.0).collect();
    let (own, shared, zero) =
        (dev.upload_scalars(&own), dev.upload_scalars(&shared), dev.scalars(norms.len()));
    let pairs = OwnDirection { tangent: None, alpha: &zero, beta: &own };
    let arrays = SharedDirection { array: &total, copies: 1, weights: &shared };
    let (slope, _) = net.adjoint(dev, primal, Some(&pairs), Some(&arrays))?;
    dev.put(total);
    let cosine = if norm * m > 0.0 { p / (norm * m) } else { 0.0 };
    Ok(Evaluation { cost: vec![value], cosine: vec![cosine], slope })
}

#[cfg(test)]
mod tests;
