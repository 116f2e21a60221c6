//! What came of one noise: how well records were found, what goes with it, and what information allows.

use super::super::prior;
use super::inversion::InversionRequest;
use super::statistics::{mean, rank_correlation};
use super::subject::Records;
use crate::{Failure, Result};
use leakscope_core::claim::{Measured, Observed};
use leakscope_net::{
    Clip, Data, Network, Real, Shape,
    attack::{
        inversion::Reconstruction,
        sight::{Mechanism, Sight},
    },
    engine::clipped_gradient,
    leak::{Measure, Plis, Probe, RecordLeak, Signal, Trace, measure},
    quality::{Lpips, Quality, Range, mse, quality},
    random::{Generator, Purpose},
};
use leakscope_report::inversion::{Correlation, Leakage, Level, Outcome, QualityKind};

/// Values of a record up to which its trace is exact.
const FEW: usize = 64;
const PROBES: usize = 20;
/// Records that are enough to see what records differ by.
const MANY: usize = 1000;

/// The attacked records, what they leak, and how well they were found so far.
pub(super) struct Attacks {
    pub(super) ids: Vec<usize>,
    pub(super) originals: Vec<Vec<f64>>,
    /// At σ = 1.
    pub(super) leaks: Vec<RecordLeak>,
    /// By level and record.
    pub(super) outcomes: Vec<Vec<Outcome>>,
    /// By level and record.
    pub(super) guesses: Vec<Vec<Vec<f64>>>,
    pub(super) spread: f64,
    variances: Vec<f64>,
    shape: Shape,
    range: Range,
    seed: u64,
    /// The labels of the records.
    labels: Vec<Vec<f64>>,
    /// With which other record a reconstruction is compared; absent where there is one record.
    others: Option<Vec<usize>>,
    /// With the weights that were given.
    pub(super) lpips: Option<Lpips>,
}

/// A reconstruction of one record.
pub(super) struct Guess {
    pub(super) values: Vec<f64>,
    pub(super) label: Vec<f64>,
    pub(super) cosine: f64,
}

impl Attacks {
    pub(super) fn new<T: Real>(
        net: &Network<T>,
        records: &Records<T>,
        ids: &[usize],
        clip: Clip,
        range: Range,
        seed: u64,
    ) -> Result<Self> {
        let originals: Vec<Vec<f64>> = ids.iter().map(|&i| records.values(i)).collect();
        let trace = match net.input().len() {
            d if d <= FEW => Trace::Exact,
            _ => Trace::Estimate { probes: PROBES, probe: Probe::Rademacher },
        };
        let measures =
            Measure { trace, plis: Plis::Elements, signal: Signal::Raw, ..Measure::new(clip, 1.0, seed) };
        let leaks = measure(net, &records.data, ids, &measures)?;
        // One record does not differ from itself: what records differ by is then that of all there are.
        let variances = match originals.len() {
            1 => variances(&(0..records.data.len().min(MANY)).map(|i| records.values(i)).collect::<Vec<_>>()),
            _ => variances(&originals),
        };
        let label = |i: &usize| records.data.label(*i).iter().map(|v| v.to_f64()).collect();
        let mut rng = Generator::new(seed, Purpose::Attack, 0);
        let n = ids.len() as u64;
        let other = |i: usize| (i + 1 + rng.below(n - 1) as usize) % ids.len();
        Ok(Self {
            labels: ids.iter().map(label).collect(),
            spread: variances.iter().sum::<f64>() / variances.len().max(1) as f64,
            others: (n > 1).then(|| (0..ids.len()).map(other).collect()),
            shape: net.input(),
            ids: ids.to_vec(),
            originals,
            leaks,
            outcomes: vec![],
            guesses: vec![],
            variances,
            range,
            seed,
            lpips: None,
        })
    }

    pub(super) fn dfil(&self, i: usize) -> f64 {
        self.leaks[i].dfil.map_or(0.0, |d| d.value.max(0.0))
    }

    pub(super) fn plis(&self, i: usize) -> f64 {
        self.leaks[i].plis.unwrap_or(0.0)
    }

    /// Mean squared error of any estimate under a normal prior, at a noise (van Trees).
    fn van_trees(&self, sigma: f64) -> Option<Measured> {
        let traces: Vec<Measured> = self.leaks.iter().filter_map(|l| l.trace).collect();
        if sigma <= 0.0 || traces.is_empty() {
            return None;
        }
        let (n, scale) = (traces.len() as f64, 1.0 / (sigma * sigma));
        let total = traces.iter().map(|t| t.value).sum::<f64>() / n * scale;
        let value = prior::by_trace(total, &self.variances);
        let errors: Option<Vec<f64>> = traces.iter().map(|t| t.standard_error).collect();
        let error = errors.map(|e| scale * e.iter().map(|e| e * e).sum::<f64>().sqrt() / n);
        let standard_error = error.map(|e| value - prior::by_trace(total + e, &self.variances));
        Some(Measured { value, standard_error })
    }

    /// Least error of unbiased estimates (Cramér and Rao), a mean over the records that leak at all.
    fn cramer_rao(&self, sigma: f64) -> Option<f64> {
        let each: Vec<f64> = (0..self.ids.len())
            .map(|i| self.dfil(i))
            .filter(|d| *d > 0.0)
            .map(|d| sigma * sigma / d)
            .collect();
        (sigma > 0.0 && !each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    }
}

/// The variance of every value over records.
fn variances(records: &[Vec<f64>]) -> Vec<f64> {
    let (n, d) = (records.len().max(1) as f64, records.first().map_or(0, Vec::len));
    let mean: Vec<f64> = (0..d).map(|j| records.iter().map(|r| r[j]).sum::<f64>() / n).collect();
    (0..d).map(|j| records.iter().map(|r| (r[j] - mean[j]).powi(2)).sum::<f64>() / n).collect()
}

/// Reconstructions by record. Which of a batch is which, a gradient does not say: pairs that are closest go together.
pub(super) fn matched(attacks: &Attacks, reconstructions: &[Reconstruction], batch: usize) -> Vec<Guess> {
    let d = attacks.originals.first().map_or(1, Vec::len);
    let mut out = Vec::with_capacity(attacks.ids.len());
    for (group, f) in reconstructions.iter().enumerate() {
        let k = f.labels.len() / batch;
        let own = &attacks.originals[group * batch..][..batch];
        let guess = |j: usize| &f.records[j * d..][..d];
        let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
        for (i, original) in own.iter().enumerate() {
            pairs.extend((0..batch).map(|j| (mse(original, guess(j)).unwrap_or(f64::MAX), i, j)));
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut of: Vec<Option<usize>> = vec![None; batch];
        for (_, i, j) in pairs {
            if of[i].is_none() && !of.contains(&Some(j)) {
                of[i] = Some(j);
            }
        }
        for j in of.into_iter().flatten() {
            let label = f.labels[j * k..][..k].to_vec();
            out.push(Guess { values: guess(j).to_vec(), label, cosine: f.cosine });
        }
    }
    out
}

/// What came of one noise.
pub(super) fn level(
    attacks: &mut Attacks,
    mechanism: Mechanism,
    guesses: &[Guess],
    first: &[Option<Vec<f64>>],
    labels_unknown: bool,
) -> Result<Level> {
    let (range, shape, seed) = (attacks.range, attacks.shape, attacks.seed);
    let mut outcomes = Vec::new();
    for (original, guess) in attacks.originals.iter().zip(guesses) {
        let Quality { mse, psnr, ssim, haar_psi } = quality(shape, original, &guess.values, range)?;
        let lpips = attacks.lpips.as_ref().map(|l| l.distance(shape, original, &guess.values, range));
        let lpips = lpips.transpose().map_err(|e| Failure::option("lpips", e))?;
        outcomes.push(Outcome { mse, psnr, ssim, haar_psi, lpips, cosine: guess.cosine });
    }
    let all = |of: fn(&Outcome) -> Option<f64>| outcomes.iter().filter_map(of).collect::<Vec<f64>>();
    let mean_of = |of: fn(&Outcome) -> Option<f64>| mean(&all(of), seed);
    let psnr = all(|o| o.psnr);
    let nearer = |(i, g): (usize, &Guess)| match &attacks.others {
        Some(others) => {
            let distance = |record: &[f64]| mse(record, &g.values).unwrap_or(f64::MAX);
            distance(&attacks.originals[i]) < distance(&attacks.originals[others[i]])
        }
        None => outcomes[i].mse < 0.01 * range.width().powi(2),
    };
    let n = guesses.len() as u64;
    let hits = guesses.iter().enumerate().filter(|g| nearer(*g)).count() as u64;
    let right = guesses.iter().zip(&attacks.labels).filter(|(g, l)| g.label == **l).count() as u64;
    let errors: Option<Vec<f64>> =
        first.iter().zip(&attacks.originals).map(|(f, o)| f.as_ref().and_then(|f| mse(o, f).ok())).collect();
    let level = Level {
        sigma: mechanism.sigma,
        noise: mechanism.noise(),
        mse: mean_of(|o| Some(o.mse)).map(not_negative).unwrap_or(Observed {
            value: 0.0,
            ci_low: 0.0,
            ci_high: 0.0,
            trials: 0,
            seed,
        }),
        ssim: mean_of(|o| o.ssim).map(at_most_one),
        haar_psi: mean_of(|o| o.haar_psi).map(at_most_one).map(not_negative),
        lpips: mean_of(|o| o.lpips),
        psnr: (!psnr.is_empty()).then(|| psnr.iter().sum::<f64>() / psnr.len() as f64),
        cosine: outcomes.iter().map(|o| o.cosine).sum::<f64>() / outcomes.len().max(1) as f64,
        identified: Observed::of_hits(hits, n, seed),
        labels_right: labels_unknown.then(|| Observed::of_hits(right, n, seed)),
        first_layer: errors
            .filter(|e| e.len() == attacks.ids.len())
            .and_then(|e| mean(&e, seed))
            .map(not_negative),
        correlations: correlations(attacks, &outcomes),
        cramer_rao: attacks.cramer_rao(mechanism.sigma),
        van_trees: attacks.van_trees(mechanism.sigma),
    };
    attacks.outcomes.push(outcomes);
    attacks.guesses.push(guesses.iter().map(|g| g.values.clone()).collect());
    Ok(level)
}

/// No similarity is above that of a picture with itself, and no end of its interval.
fn at_most_one(observed: Observed) -> Observed {
    Observed { ci_high: observed.ci_high.min(1.0).max(observed.value), ..observed }
}

/// An interval of what cannot be negative: a squared error.
fn not_negative(o: Observed) -> Observed {
    Observed { ci_low: o.ci_low.max(0.0), ..o }
}

fn correlations(attacks: &Attacks, outcomes: &[Outcome]) -> Vec<Correlation> {
    let n = outcomes.len();
    let leakages: [(Leakage, Vec<f64>); 3] = [
        (Leakage::Plis, (0..n).map(|i| attacks.plis(i)).collect()),
        (Leakage::Dfil, (0..n).map(|i| attacks.dfil(i)).collect()),
        (Leakage::GradientNorm, attacks.leaks.iter().map(|l| l.gradient_norm).collect()),
    ];
    let qualities: [(QualityKind, Option<Vec<f64>>); 4] = [
        (QualityKind::Mse, Some(outcomes.iter().map(|o| o.mse).collect())),
        (QualityKind::Ssim, outcomes.iter().map(|o| o.ssim).collect()),
        (QualityKind::HaarPsi, outcomes.iter().map(|o| o.haar_psi).collect()),
        (QualityKind::Lpips, outcomes.iter().map(|o| o.lpips).collect()),
    ];
    let mut out = Vec::new();
    for (leakage, x) in &leakages {
        for (quality, y) in &qualities {
            if let Some((rho, interval)) = y.as_ref().and_then(|y| rank_correlation(x, y)) {
                out.push(Correlation {
                    leakage: *leakage,
                    quality: *quality,
                    rho,
                    interval,
                    records: n as u64,
                });
            }
        }
    }
    out
}

/// Cosine of the gradient of a guess and the one that was seen.
pub(super) fn cosine<T: Real>(
    net: &Network<T>,
    sight: &Sight<T>,
    guess: &[f64],
    labels: &[T],
) -> Result<f64> {
    let x: Vec<T> = guess.iter().map(|&v| T::from_f64(v)).collect();
    let data = Data::new(net.input(), x, net.outputs(), labels.to_vec())?;
    let g = clipped_gradient(net, &data, &[0], Clip::None)?.sum;
    let dot = |a: &[T], b: &[T]| a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>();
    let size = (dot(&g, &g) * dot(&sight.gradient, &sight.gradient)).sqrt();
    Ok(if size > 0.0 { dot(&g, &sight.gradient) / size } else { 0.0 })
}

/// Remarks about what was asked for.
pub(super) fn remarks(request: &InversionRequest, attacks: &Attacks) -> Vec<String> {
    let mut out = Vec::new();
    if attacks.ids.len() < 50 {
        out.push(format!(
            "Only {} attacked: a few records prove little, rank correlations want 50 and more.",
            leakscope_report::format::counted(attacks.ids.len() as u64, "record")
        ));
    }
    let all = || attacks.outcomes.iter().flatten();
    if all().next().is_some() && all().all(|o| o.ssim.is_none()) {
        out.push(
            "SSIM is of images of at least 11 by 11 values, and these records are none: they are judged by their mean squared \
             error and PSNR."
                .into(),
        );
    }
    if request.batch > 1 {
        out.push(
            "Gradients are sums over a batch: the errors that information allows are those of somebody who knows the other \
             records of the batch, so the attack has less to go on than they assume."
                .into(),
        );
    }
    out
}
