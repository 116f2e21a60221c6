//! Table 3.5: what the informed adversary reconstructs of digits 0 and 1.

use super::super::data::digits;
use super::super::mueller::failure_of;
use super::super::{Context, Findings};
use super::informed::{CLIP, RATE, SIGMA, pool, setup, start, train, trained, usual};
use super::perception::Perception;
use super::run::records;
use leakscope::Result;
use leakscope_net::attack::informed::{
    Examples, Learning, Linear, Rest, Training, by_label, by_network, by_ridge, train_many,
};
use leakscope_net::perturb::{PerturbationKind, Perturbing};
use leakscope_net::quality::mse;
use leakscope_net::{Clip, Data, Loss};
use leakscope_report::format;
use leakscope_report::reproduction::{Claim, Ours, Row};

fn rest(data: &Data<f32>) -> Rest {
    let y = (0..data.len()).map(|i| f64::from(data.label(i)[0])).collect();
    Rest { x: data.records().iter().map(|&v| f64::from(v)).collect(), y }
}

/// Five steps of Adam from one start, clipped where there is noise; half of the parameters stay where that is asked for.
fn training(start: &[f64], sigma: f64, half: bool) -> Training {
    Training {
        trained: trained(start, half),
        learning_rate: RATE,
        clip: if sigma > 0.0 { CLIP } else { Clip::None },
        sigma,
        ..Training::new(start.to_vec())
    }
}

/// Table 3.5: what the informed adversary reconstructs.
pub(crate) fn table_3_5(context: &Context<'_>) -> Result<Findings> {
    let mut pool = pool(context)?;
    if context.synthetic {
        // as many targets as there are, on smaller pictures: the map needs one for each value
        return small(context);
    }
    let [public, known, learn, targets] = pool.parts;
    if pool.images.labels.len() < pool.parts.iter().sum() {
        pool.parts[2] = pool.images.labels.len().saturating_sub(public + known + targets);
    }
    let mut findings = Findings { method: setup(context, &pool), ..Findings::default() };
    let d = pool.images.size();
    let theta = start(d, context.seed);
    let known_records = rest(&records(&pool.images, public, known, 1)?);
    let all = rest(&records(&pool.images, public + known, learn + targets, 1)?);
    let how = Perturbing { variant: PerturbationKind::Thesis, ..usual(context) };
    // what is added must not depend on the attacked models: learned along a run over the known records
    let added = train(context, &pool, (SIGMA, true, Some(how)), (5, context.seed))?.added;
    let attack = if context.full { 100 } else { 12 };
    let perception = Perception::read(context, pool.images.shape)?;
    findings.method.push(perception.description().into());
    let mut errors = vec![];
    for (name, sigma, half, shifts, (factor, rate, decay), (paper, lpips)) in [
        ("SGD", 0.0, false, vec![], (1.0, 1e-3, 0.01), (0.0109, 0.0179)),
        ("DPSGD", SIGMA, false, vec![], (1.0, 1e-3, 0.01), (0.0376, 0.1020)),
        ("Prune", SIGMA, true, vec![], (1.0, 1e-3, 0.1), (0.0396, 0.1261)),
        ("FIM", SIGMA, true, added, (0.3, 0.01, 0.1), (0.0449, 0.1630)),
    ] {
        context.check()?;
        let model = Linear {
            inputs: d,
            outputs: 1,
            loss: Loss::BinaryCrossEntropy,
            training: training(&theta, sigma, half),
            shifts,
        };
        let parameters = train_many(&model, &known_records, &all, context.seed, &|_| context.check().is_ok())
            .map_err(failure_of)?;
        context.check()?;
        let (train, test) = (
            examples(&model, &parameters, &all, 0, learn),
            examples(&model, &parameters, &all, learn, targets),
        );
        let epochs = ((attack as f64) * factor).ceil() as u64;
        // the loss there is the sum of squares, here it is half of it, and Adam sees gradient and decay in proportion alone
        let weight_decay = 0.5 * decay;
        let how = Learning { epochs, learning_rate: rate, weight_decay, seed: context.seed };
        // beside the held-out targets as many that it learned from: what it does better there, it has learned by heart
        let seen = targets.min(learn);
        let both = examples(&model, &parameters, &all, learn - seen, seen + targets);
        let guesses = by_network(&train, &both, &how, &|_, _| context.check().is_ok()).map_err(failure_of)?;
        context.check()?;
        let (known_guesses, network) = guesses.split_at(seen * d);
        let error = mse(&test.records, network).map_err(failure_of)?;
        let familiar = mse(&both.records[..seen * d], known_guesses).map_err(failure_of)?;
        let row =
            Row::within(format!("{name}: MSE of the adversary"), (paper, 4), 0.005, Ours::achieved(error))
                .because(format!("{} on {seen} models that it learned from.", format::number(familiar)));
        findings.rows.push(row);
        findings.rows.extend(perception.rows(context, name, (&test.records, network), lpips)?);
        let ridge = mse(&test.records, &by_ridge(&train, &test).map_err(failure_of)?).map_err(failure_of)?;
        findings
            .rows
            .push(Row::ours(format!("{name}: MSE of ridge regression by class"), Ours::achieved(ridge)));
        if errors.is_empty() {
            let (rows, error) = labels_only(context, &perception, (&train, &test))?;
            findings.rows.extend(rows);
            errors.push(("labels only", error));
        }
        errors.push((name, error.min(ridge)));
    }
    let of = |name: &str| errors.iter().find(|e| e.0 == name).map_or(f64::NAN, |e| e.1);
    for (less, more) in [("SGD", "DPSGD"), ("DPSGD", "FIM"), ("Prune", "FIM")] {
        findings.claims.push(Claim::new(
            format!("{less} is reconstructed better than {more}."),
            of(less) < of(more),
            format!("Best MSE {} against {}.", format::number(of(less)), format::number(of(more))),
        ));
    }
    findings.method.push(
        "What FIM adds is learned along one run and the same for all attacked models, so that they train as one computation."
            .into(),
    );
    Ok(findings)
}

/// What the label alone tells of a record, which no noise hides.
fn labels_only(
    context: &Context<'_>,
    perception: &Perception,
    (train, test): (&Examples, &Examples),
) -> Result<(Vec<Row>, f64)> {
    let means = by_label(train, test).map_err(failure_of)?;
    let error = mse(&test.records, &means).map_err(failure_of)?;
    let mut rows = perception.rows(context, "labels only", (&test.records, &means), 0.1600)?;
    let name = "labels only (“perfect privacy”): MSE";
    rows.push(Row::within(name, (0.0439, 4), 0.003, Ours::achieved(error)));
    Ok((rows, error))
}

fn examples(model: &Linear, parameters: &[f64], all: &Rest, from: usize, count: usize) -> Examples {
    let (p, d) = (model.parameters(), model.inputs);
    let released = |row: &[f64]| -> Vec<f64> {
        row.iter().zip(&model.training.trained).filter(|(_, t)| **t).map(|(v, _)| *v).collect()
    };
    Examples {
        features: parameters[from * p..][..count * p].chunks_exact(p).flat_map(released).collect(),
        labels: all.y[from..][..count].to_vec(),
        records: all.x[from * d..][..count * d].to_vec(),
        count,
    }
}

/// On made-up digits there are fewer targets than a digit has values: their means over 7 × 7 squares are attacked instead.
fn small(context: &Context<'_>) -> Result<Findings> {
    let (train, _) = digits(context)?;
    let images = train.of(&[0, 1]);
    let [height, width, _] = images.shape;
    let side = 7;
    let of = |i: usize| {
        let image = images.image(i);
        (0..(height / side) * (width / side)).map(move |k| {
            let (r, c) = (k / (width / side) * side, k % (width / side) * side);
            let inside = (0..side * side).map(|p| f64::from(image[(r + p / side) * width + c + p % side]));
            inside.sum::<f64>() / (255.0 * (side * side) as f64)
        })
    };
    let n = images.labels.len();
    let (known, learn) = (n / 5, n / 2);
    let x: Vec<f64> = (0..n).flat_map(of).collect();
    let d = x.len() / n.max(1);
    let part = |from: usize, to: usize| Rest {
        x: x[from * d..to * d].to_vec(),
        y: images.labels[from..to].iter().map(|&l| f64::from(l)).collect(),
    };
    let theta = start(d, context.seed);
    let mut findings = Findings {
        method: vec!["Made-up digits, averaged over squares: only that the attack runs.".into()],
        ..Findings::default()
    };
    let mut errors = vec![];
    for (name, sigma) in [("SGD", 0.0), ("DPSGD", SIGMA)] {
        let model = Linear {
            inputs: d,
            outputs: 1,
            loss: Loss::BinaryCrossEntropy,
            training: training(&theta, sigma, false),
            shifts: vec![],
        };
        let all = part(known, n);
        let parameters =
            train_many(&model, &part(0, known), &all, context.seed, &|_| true).map_err(failure_of)?;
        let (train, test) = (
            examples(&model, &parameters, &all, 0, learn),
            examples(&model, &parameters, &all, learn, n - known - learn),
        );
        let ridge = mse(&test.records, &by_ridge(&train, &test).map_err(failure_of)?).map_err(failure_of)?;
        let label = mse(&test.records, &by_label(&train, &test).map_err(failure_of)?).map_err(failure_of)?;
        findings
            .rows
            .push(Row::ours(format!("{name}: MSE of ridge regression by class"), Ours::achieved(ridge)));
        findings.rows.push(Row::ours(format!("{name}: MSE by the label alone"), Ours::achieved(label)));
        errors.push(ridge);
    }
    let [open, private] = errors[..] else { return Ok(findings) };
    findings.claims.push(Claim::new(
        "SGD is reconstructed better than DPSGD.",
        open < private,
        format!("MSE {} against {}.", format::number(open), format::number(private)),
    ));
    Ok(findings)
}
