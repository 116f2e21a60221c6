//! Mueller et al. (2022), table 1: how well gradient inversion reconstructs records of low and of high PLIS.

use super::data;
use super::mueller::{Schedule, failure_of, train};
use super::mueller_images::Normal;
use super::{Context, Findings};
use leakscope::Result;
use leakscope_net::attack::inversion::{Inversion, invert};
use leakscope_net::attack::sight::{Mechanism, gradients};
use leakscope_net::leak::{Measure, Plis, Trace, measure};
use leakscope_net::preset::Preset;
use leakscope_net::quality::{Range, haar_psi, ssim};
use leakscope_net::{Clip, Data, Network};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Ours, Panel, PointSeries, Row};

/// One record: its PLIS, and how like its reconstruction is.
struct Attacked {
    plis: f64,
    ssim: f64,
    haar: f64,
}

/// Attacks on records of an open or a private model, lowest PLIS first.
fn attacked(
    context: &Context<'_>,
    net: &Network<f32>,
    set: &Data<f32>,
    (clip, sigma): (Clip, f64),
    (wanted, iterations, range): (usize, usize, Range),
) -> Result<Vec<Attacked>> {
    let measured: Vec<usize> = (0..set.len().min(if context.synthetic { 100 } else { 1000 })).collect();
    let measures = Measure {
        trace: Trace::Skip,
        plis: Plis::Record,
        ..Measure::new(clip, if sigma > 0.0 { sigma } else { 1.0 }, 1)
    };
    let mut leaks = measure(net, set, &measured, &measures).map_err(failure_of)?;
    leaks.sort_by(|a, b| a.plis.unwrap_or(0.0).total_cmp(&b.plis.unwrap_or(0.0)));
    // evenly over the ranks, from the lowest to the highest
    let last = leaks.len().saturating_sub(1);
    let chosen: Vec<usize> = (0..wanted).map(|i| i * last / (wanted - 1).max(1)).collect();
    let ids: Vec<[usize; 1]> = chosen.iter().map(|&i| [leaks[i].record]).collect();
    let batches: Vec<&[usize]> = ids.iter().map(<[usize; 1]>::as_slice).collect();
    let sights =
        gradients(net, set, &batches, Mechanism { clip, sigma }, context.seed).map_err(failure_of)?;
    let how = Inversion { iterations, clip, ..Inversion::published(range, context.seed) };
    let reconstructions = invert(net, &sights, &how, &|_| context.check().is_ok()).map_err(failure_of)?;
    context.check()?;
    let each = chosen.iter().zip(&reconstructions).map(|(&i, r)| {
        let record: Vec<f64> = set.record(leaks[i].record).iter().map(|&v| f64::from(v)).collect();
        Ok(Attacked {
            plis: leaks[i].plis.unwrap_or(0.0),
            ssim: ssim(set.input(), &record, &r.records, range).map_err(failure_of)?,
            haar: haar_psi(set.input(), &record, &r.records, range).map_err(failure_of)?,
        })
    });
    each.collect()
}

/// Spearman's correlation, with its 95% interval by Fisher's transformation (Bonett and Wright 2000).
fn rank_correlation(x: &[f64], y: &[f64]) -> Option<(f64, [f64; 2])> {
    let n = x.len();
    if n < 5 {
        return None;
    }
    let ranks = |v: &[f64]| -> Vec<f64> {
        v.iter()
            .map(|a| {
                let (below, same) = v.iter().fold((0.0, 0.0), |(b, s), o| match o.total_cmp(a) {
                    std::cmp::Ordering::Less => (b + 1.0, s),
                    std::cmp::Ordering::Equal => (b, s + 1.0),
                    std::cmp::Ordering::Greater => (b, s),
                });
                below + 0.5 * (same - 1.0)
            })
            .collect()
    };
    let (a, b) = (ranks(x), ranks(y));
    let middle = 0.5 * (n as f64 - 1.0);
    let product =
        |u: &[f64], v: &[f64]| -> f64 { u.iter().zip(v).map(|(u, v)| (u - middle) * (v - middle)).sum() };
    let rho = product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt();
    let z = rho.clamp(-0.999_999, 0.999_999).atanh();
    let half = 1.96 * ((1.0 + 0.5 * rho * rho) / (n as f64 - 3.0)).sqrt();
    rho.is_finite().then(|| (rho, [(z - half).tanh(), (z + half).tanh()]))
}

/// Table 1.
pub(super) fn table1(context: &Context<'_>) -> Result<Findings> {
    let (train_images, _) = data::chests(context)?;
    let normal = Normal { mean: 0.5, sd: 0.25 };
    let set = normal.data(&train_images, 2)?;
    let range = Range { low: (0.0 - normal.mean) / normal.sd, high: (1.0 - normal.mean) / normal.sd };
    let spec = Preset::CnnMnist.spec(set.input(), 2);
    let n = set.len() as f64;
    let (records, iterations, open, private) = match (context.full, context.synthetic) {
        (true, _) => (100, 4000, 1000, 300),
        (false, false) => (24, 400, 200, 60),
        (false, true) => (6, 20, 10, 5),
    };
    let schedule = |steps, batch: f64, learning_rate| Schedule {
        steps,
        rate: (batch / n).min(1.0),
        learning_rate,
        momentum: 0.9,
    };
    let (plain, _) = train(context, &spec, &set, schedule(open, 64.0, 0.05), None)?;
    let attacks = attacked(context, &plain, &set, (Clip::None, 0.0), (records, iterations, range))?;
    let clip = Clip::Gelu { bound: 1.0 };
    let (dp, sigma) = train(context, &spec, &set, schedule(private, 512.0, 0.3), Some((1.0, 1e-5, clip)))?;
    let hidden = attacked(context, &dp, &set, (clip, sigma), (records.min(8), iterations, range))?;
    let (first, last) = match (attacks.first(), attacks.last()) {
        (Some(a), Some(b)) => (a, b),
        _ => return Err(leakscope::Failure::Message("no record was attacked".into())),
    };
    let seen = |v: f64| Ours::achieved(v);
    let why = "which X-rays the paper shows is not said; its network neither";
    let mut rows = vec![
        Row::within("lowest PLIS: SSIM", (0.8536, 4), 0.1, seen(first.ssim)).because(why),
        Row::within("highest PLIS: SSIM", (0.9912, 4), 0.1, seen(last.ssim)).because(why),
        Row::within("lowest PLIS: HaarPSI", (0.7323, 4), 0.1, seen(first.haar)).because(why),
        Row::within("highest PLIS: HaarPSI", (0.7779, 4), 0.1, seen(last.haar)).because(why),
        Row::ours("lowest PLIS", first.plis),
        Row::ours("highest PLIS", last.plis),
    ];
    let plis: Vec<f64> = attacks.iter().map(|a| a.plis).collect();
    let similar: Vec<f64> = attacks.iter().map(|a| a.ssim).collect();
    let correlation = rank_correlation(&plis, &similar);
    if let Some((rho, _)) = correlation {
        rows.push(Row::ours("rank correlation of PLIS and SSIM", seen(rho)));
    }
    let best = hidden.iter().map(|a| a.ssim).fold(f64::NEG_INFINITY, f64::max);
    rows.push(Row::ours("with DP at (1, 10⁻⁵): best SSIM", seen(best)));
    let mut claims = vec![
        Claim::new(
            "The record of high PLIS is reconstructed better than the one of low PLIS.",
            last.ssim > first.ssim,
            format!("SSIM {} against {}.", format::number(last.ssim), format::number(first.ssim)),
        ),
        Claim::new(
            "With DP “no reconstruction was possible”.",
            best < 0.5 * last.ssim,
            format!("Best SSIM of {} records under DP: {}.", hidden.len(), format::number(best)),
        ),
    ];
    claims.extend(correlation.map(|of| the_higher_the_better(of, attacks.len())));
    Ok(Findings {
        data: vec![format!("PneumoniaMNIST: {} training X-rays", format::count(set.len() as u64))],
        rows,
        claims,
        method: vec![format!(
            "The CNN of Edmunds table B.7 with two outputs, {open} steps in the open, {private} under DP (σ = {}). {records} \
             records, evenly over the ranks of PLIS, a gradient each, label known; cosine and total variation 10⁻⁴, {iterations} \
             iterations of signed Adam, one start. `--full`: 100 records, 4,000 iterations.",
            format::setting(sigma)
        )],
        figures: vec![table1_figure(&attacks)],
    })
}

fn the_higher_the_better((rho, [low, high]): (f64, [f64; 2]), records: usize) -> Claim {
    Claim::new(
        "The higher the PLIS, the better the reconstruction: over many records, not two.",
        low > 0.0,
        format!(
            "Rank correlation {} over {records} records (95%: {} to {}).",
            format::number(rho),
            format::number(low),
            format::number(high)
        ),
    )
}

fn table1_figure(attacks: &[Attacked]) -> Figure {
    let points = attacks.iter().map(|a| [a.plis, a.ssim]).collect();
    Figure {
        file: "mueller-table1".into(),
        title: "Table 1 over many records: SSIM of the reconstruction against PLIS".into(),
        caption: "The paper shows two records.".into(),
        panels: vec![Panel {
            title: "SSIM against PLIS".into(),
            content: Content::Dots {
                x: AxisTitle { title: "PLIS".into(), log: attacks.iter().all(|a| a.plis > 0.0) },
                y: AxisTitle::linear("SSIM"),
                series: vec![PointSeries::new("without DP", points)],
                line: None,
                notes: vec![],
            },
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_as_they_should() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let up: Vec<f64> = x.iter().map(|v| v.powi(3)).collect();
        let (rho, [low, _]) = rank_correlation(&x, &up).unwrap();
        assert!((rho - 1.0).abs() < 1e-12 && low > 0.9);
        // ρ = 1 − 6 Σ d²/(n(n² − 1)) without ties
        let y = [2.0, 1.0, 4.0, 3.0, 5.0];
        let (rho, _) = rank_correlation(&[1.0, 2.0, 3.0, 4.0, 5.0], &y).unwrap();
        assert!((rho - 0.8).abs() < 1e-12);
        assert!(rank_correlation(&x, &[1.0; 20]).is_none() && rank_correlation(&x[..4], &up[..4]).is_none());
    }
}
