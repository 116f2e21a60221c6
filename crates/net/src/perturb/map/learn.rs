//! Learning f on public records.
//!
//! The objective of a record, with m probes u and q = 1/n², r the relative bend of the clip, is
//! `‖f‖² + (λ/m) Σ_u q‖k‖² + r(h·k)²`. Its derivatives in f and ḟ,
//!
//! `A = 2f + (λ/m) Σ_u (q'‖k‖² + r'(h·k)²) h/n + 2r(h·k) k` and `B_u = (λ/m)(2q k + 2r(h·k) h)`,
//!
//! go back through f: `∇_φ = ∇_φ Aᵀf(x) + Σ_u ∂_ε ∇_φ B_uᵀf(x + εu)`, A and B held fixed: the tangent of a backward pass.

use super::{Map, TOGETHER, Tangents, added, own, rows};
use crate::{
    Clip, Real,
    device::Device,
    error::Result,
    leak::Label,
    perturb::{Adam, Added, Carried, Learned, Lesson, Perturbed, cosine, dot},
    random::{Generator, Purpose},
};

/// What a piece of public records says: the sum of the objectives, of the relative sizes, and the gradient in φ.
#[derive(Debug, Default)]
pub(in crate::perturb) struct ObjectiveSum {
    pub(in crate::perturb) objective: f64,
    pub(in crate::perturb) relative: f64,
    pub(in crate::perturb) gradient: Vec<f64>,
}

/// The objective over records, and its gradient in φ where `learns`.
pub(in crate::perturb) fn objective<T: Real>(
    lesson: &Lesson<'_, T>,
    map: &Map<T>,
    records: &[usize],
    (epoch, learns): (u64, bool),
) -> Result<ObjectiveSum> {
    let parts =
        lesson.workers.map(records, TOGETHER, |dev, ids| piece(lesson, map, dev, ids, (epoch, learns)))?;
    let n = records.len().max(1) as f64;
    let mut out = ObjectiveSum { gradient: vec![0.0; map.net.parameter_count()], ..ObjectiveSum::default() };
    for part in parts {
        out.objective += part.objective / n;
        out.relative += part.relative / n;
        out.gradient.iter_mut().zip(part.gradient).for_each(|(o, g)| *o += g / n);
    }
    Ok(out)
}

fn piece<T: Real>(
    lesson: &Lesson<'_, T>,
    map: &Map<T>,
    dev: &mut Device<T>,
    ids: &[usize],
    (epoch, learns): (u64, bool),
) -> Result<ObjectiveSum> {
    let (public, m, p) = (lesson.public, lesson.how.probes, map.places.len());
    let (d, x) = (public.input().len(), rows(public, ids));
    let seed = lesson.seed ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let probes: Vec<Vec<Vec<T>>> = ids
        .iter()
        .map(|&i| {
            let mut rng = Generator::new(seed, Purpose::Probes, i as u64);
            (0..m).map(|_| (0..d).map(|_| T::from_f64(rng.normal())).collect()).collect()
        })
        .collect();
    // by probe, all records below one another
    let us: Vec<Vec<T>> = (0..m).map(|u| probes.iter().flat_map(|own| &own[u]).copied().collect()).collect();
    let f = map.values(dev, public, ids)?;
    let moved = map.along(dev, &x, ids.len(), &us)?;
    let mut total = ObjectiveSum::default();
    let mut by_f = Vec::with_capacity(ids.len() * p);
    let mut by_tangent = vec![Vec::with_capacity(ids.len() * p); m];
    for (i, &id) in ids.iter().enumerate() {
        let tangents: Vec<Tangents<T>> =
            probes[i].iter().map(|u| Tangents { x: u.clone(), y: None }).collect();
        let (primal, own) = own((lesson.net, map), dev, (public, id), &tangents, (Label::Public, None))?;
        primal.recycle(dev);
        let at = |rows: &[f64]| rows[i * p..(i + 1) * p].to_vec();
        let tangents: Vec<Vec<f64>> =
            own.tangents.iter().zip(&moved).map(|(g, f)| added(g, &at(f))).collect();
        let slopes = slopes(&own.g, &at(&f), &tangents, lesson.clip, lesson.lambda());
        total.objective += slopes.objective;
        total.relative += slopes.relative;
        by_f.extend(slopes.by_f.iter().map(|&v| T::from_f64(v)));
        for (all, own) in by_tangent.iter_mut().zip(slopes.by_tangent) {
            all.extend(own.iter().map(|&v| T::from_f64(v)));
        }
    }
    if !learns {
        return Ok(total);
    }
    let ones = dev.upload_scalars(&vec![1.0; ids.len()]);
    let mut sum = dev.zeros(map.net.parameter_count());
    let primal_from = |dev: &mut Device<T>, delta: &[T]| {
        let (x, delta) = (dev.upload(&x), dev.upload(delta));
        let (primal, back) = map.net.primal_from(dev, x, ids.len(), delta);
        dev.put(back);
        primal
    };
    let primal = primal_from(dev, &by_f);
    map.net.add_weighted(dev, &primal, &ones, &mut sum);
    primal.recycle(dev);
    for (u, delta) in us.iter().zip(&by_tangent) {
        let primal = primal_from(dev, delta);
        let u = dev.upload(u);
        let pass = map.net.tangent_from(dev, &primal, u);
        map.net.add_weighted_tangent(dev, &primal, &pass, &ones, &mut sum);
        pass.recycle(dev);
        primal.recycle(dev);
    }
    total.gradient = dev.unload(sum)?.iter().map(|v| v.to_f64()).collect();
    Ok(total)
}

/// The objective of one record and its derivatives, A and B of the module.
struct Slopes {
    objective: f64,
    relative: f64,
    by_f: Vec<f64>,
    by_tangent: Vec<Vec<f64>>,
}

fn slopes(g: &[f64], f: &[f64], tangents: &[Vec<f64>], clip: Clip, lambda: f64) -> Slopes {
    let h = added(g, f);
    let n = dot(&h, &h).sqrt();
    let (ff, m) = (dot(f, f), tangents.len() as f64);
    let mut out = Slopes {
        objective: ff,
        relative: 0.0,
        by_f: f.iter().map(|f| 2.0 * f).collect(),
        by_tangent: Vec::new(),
    };
    if n == 0.0 {
        out.by_tangent = tangents.iter().map(|k| vec![0.0; k.len()]).collect();
        return out;
    }
    let q = 1.0 / (n * n);
    let (r, r1) = clip.relative_bend(n);
    for k in tangents {
        let (hk, kk) = (dot(&h, k), dot(k, k));
        out.relative += (q * kk + r * hk * hk) / m;
        let psi = (-2.0 * q / n * kk + r1 * hk * hk) / n;
        let weight = lambda / m;
        for (a, (h, k)) in out.by_f.iter_mut().zip(h.iter().zip(k)) {
            *a += weight * (psi * h + 2.0 * r * hk * k);
        }
        out.by_tangent.push(h.iter().zip(k).map(|(h, k)| 2.0 * weight * (q * k + r * hk * h)).collect());
    }
    out.objective += lambda * out.relative;
    out
}

/// Learns f by Adam.
pub(in crate::perturb) fn learn<T: Real>(lesson: &Lesson<'_, T>) -> Result<Learned<T>> {
    let mut map = Map::new(lesson.net, lesson.public)?;
    let mut phi = match lesson.start(map.net.parameter_count()) {
        Some(phi) => phi,
        None => map.net.parameters()?.iter().map(|v| v.to_f64()).collect(),
    };
    let start: Vec<f64> = map.net.parameters()?.iter().map(|v| v.to_f64()).collect();
    let all = lesson.all();
    map.set(&start)?;
    // the last layer of the start is 0, and so is what it adds
    let without = objective(lesson, &map, &all, (u64::MAX, false))?.relative;
    map.set(&phi)?;
    // what standardises has parameters too, which are not learned: decay must not move them either
    let trained = map.net.trained();
    let mut adam = Adam::new(phi.len());
    for epoch in 0..lesson.how.epochs_at(lesson.step) {
        for batch in lesson.batches(epoch) {
            let total = objective(lesson, &map, &batch, (epoch, true))?;
            adam.update(&lesson.how, &total.gradient, &mut phi);
            for ((p, s), _) in phi.iter_mut().zip(&start).zip(&trained).filter(|(_, trained)| !**trained) {
                *p = *s;
            }
            map.set(&phi)?;
        }
    }
    let with = objective(lesson, &map, &all, (u64::MAX, false))?.relative;
    let report = Perturbed { without, with, ..report(lesson, &map)? };
    Ok(Learned { added: Added::Map(Box::new(map)), report, state: Carried::Values(phi) })
}

/// Size, direction and spread of f over the public records.
fn report<T: Real>(lesson: &Lesson<'_, T>, map: &Map<T>) -> Result<Perturbed> {
    let whole = lesson.mean()?;
    let gradient: Vec<f64> = map.places.iter().map(|&i| whole[i]).collect();
    let mm = dot(&gradient, &gradient);
    let all = lesson.all();
    let parts = lesson.workers.map(&all, TOGETHER, |dev, ids| {
        let f = map.values(dev, lesson.public, ids)?;
        let (mut sum, mut square, mut cosines) = (vec![0.0; map.places.len()], 0.0, 0.0);
        for f in f.chunks_exact(map.places.len()) {
            sum.iter_mut().zip(f).for_each(|(s, f)| *s += f);
            square += dot(f, f);
            cosines += cosine(dot(f, &gradient), dot(f, f), mm);
        }
        Ok((sum, square, cosines))
    })?;
    let n = all.len().max(1) as f64;
    let (mut mean, mut square, mut cosines) = (vec![0.0; map.places.len()], 0.0, 0.0);
    for (s, q, c) in parts {
        mean.iter_mut().zip(s).for_each(|(m, s)| *m += s / n);
        square += q / n;
        cosines += c / n;
    }
    // mean ‖f − f̄‖² = mean ‖f‖² − ‖f̄‖²
    let apart = (square - dot(&mean, &mean)).max(0.0);
    let spread = if square > 0.0 { (apart / square).sqrt() } else { 0.0 };
    Ok(Perturbed { norm: square.sqrt(), cosine: cosines, spread, ..Perturbed::of(&mean, &gradient) })
}
