//! The balancing: a table in, weights, a model and a [`Balance`] out.

mod bought;
mod counting;
mod ground;

use crate::failure::explain;
use crate::labelled::{self, Labelling, NameOfRow, RowLabels};
use crate::model::{self, Loaded, class_names, coefficient_names};
use crate::output::{Folder, Pending};
use crate::request::Request;
use crate::{Failure, Result};
pub(crate) use ground::{Ground, balanced};
use leakscope_core::Error as CoreError;
use leakscope_core::balance::{Balanced, Iteration, Level, Options, Sharing, Stopped, Update, Variant};
use leakscope_core::fisher::{Directions, Release};
use leakscope_core::glm::{Metric, Minimiser};
use leakscope_report::Balance;
use leakscope_report::balance::{Comparison, SCHEMA, Step};
use leakscope_report::choice::Stopped as Ending;
use leakscope_report::format;
use leakscope_report::verdict::of_balance;
use leakscope_table::{Hooks, Kind, RecordsSchema};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What to balance, as a user says it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Balancing {
    /// The attribute; whole records without one.
    pub attribute: Option<String>,
    /// Whether indicators of a category sum to one.
    pub sum_to_one: bool,
    /// Which records share a weight.
    pub sharing: Sharing,
    /// Which loss is equalised.
    pub variant: Variant,
    /// How weights are updated.
    pub update: Update,
    /// Smallest and largest weight.
    pub clamp: Option<(f64, f64)>,
    /// Reweightings at most.
    pub iterations: usize,
    /// The spread at which it stops.
    pub tolerance: f64,
    /// σ.
    pub sigma: f64,
}

impl Default for Balancing {
    fn default() -> Self {
        Self {
            attribute: None,
            sum_to_one: false,
            sharing: Sharing::default(),
            variant: Variant::default(),
            update: Update::default(),
            clamp: None,
            iterations: 10,
            tolerance: 1e-6,
            sigma: 1.0,
        }
    }
}

impl Balancing {
    /// Checks what needs no table.
    pub fn check(&self) -> Result<()> {
        if let Some((low, high)) = self.clamp
            && !(low >= 0.0 && high > low)
        {
            let expected = match low >= 0.0 {
                true => format!("expected less than the largest weight, {high}"),
                false => "expected zero or a positive number".into(),
            };
            return Err(Failure::number("min_weight", low, expected));
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let expected = "expected zero or a positive number";
            return Err(Failure::number("tolerance", self.tolerance, expected));
        }
        if self.sum_to_one && self.attribute.is_none() {
            return Err(Failure::option("sum_to_one", "it is about a category: name it with ⟨attribute⟩"));
        }
        Ok(())
    }
}

/// A balancing and the table of weights, not yet published.
pub struct Outcome {
    /// What was found.
    pub balance: Balance,
    /// Files to publish.
    pub pending: Pending,
}

/// Runs the balancing; `say` gets a line after every iteration.
pub fn run(
    request: &Request,
    balancing: &Balancing,
    folder: Option<&Folder>,
    hooks: &Hooks,
    say: impl Fn(&str),
) -> Result<Outcome> {
    balancing.check()?;
    let clock = Instant::now();
    let loaded = model::load(request, hooks)?;
    let options = options(request, balancing, &loaded)?;
    let ground = match request.noise.options() {
        // A shape of the noise is one of the table's columns.
        Some(_) => Ground::of_table(&loaded, &options),
        None => Ground::new(request, &loaded, &options)?,
    };
    let metric = loaded.metric(request);
    let mut steps = vec![];
    let outcome = ground.balanced(request, |iteration, fit| {
        let step = step(&ground, iteration, fit, Some(metric))?;
        say(&line(&step, metric));
        steps.push(step);
        Ok(())
    })?;
    let comparisons = comparisons(request, &ground)?;
    let bought = match request.noise.options() {
        Some(noise) => Some(bought::bought(noise, request, &loaded, &options, &outcome)?),
        None => None,
    };
    let counted = counting::counting(request, &ground, (outcome.best, &outcome.fit))?;
    let mut pending = Pending::default();
    if let Some(folder) = folder {
        write_weights(&loaded, &outcome, folder, &mut pending)?;
    }
    let names = coefficient_names(&loaded.encoding);
    let balance = Balance {
        schema: SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created: crate::clock::now(),
        tables: if folder.is_some_and(Folder::is_on_disk) { pending.table_names() } else { vec![] },
        subject: loaded.subject(request),
        sigma: balancing.sigma,
        attribute: balancing.attribute.clone(),
        sharing: options.sharing,
        variant: options.variant,
        update: options.update,
        clamp: options.clamp,
        tolerance: options.tolerance,
        seed: request.holdout.map(|_| loaded.seed),
        metric: metric.into(),
        higher_is_better: metric.higher_is_better(),
        converging: outcome.best + 1 == outcome.history.len() && outcome.history.len() > 1,
        iterations: steps,
        comparisons,
        bought,
        counted,
        best: outcome.best,
        stopped: match outcome.stopped {
            Stopped::Converged => Ending::Converged,
            Stopped::Iterations => Ending::Iterations,
            Stopped::Vanished { .. } => Ending::Vanished,
            Stopped::NoFit(_) => Ending::NoFit,
        },
        coefficients: names.into_iter().zip(ground.coefficients(&outcome.fit)).collect(),
        warnings: warnings(request, &ground, &outcome)?,
        notes: crate::remarks::notes(&loaded.encoding)
            .into_iter()
            .chain(counted.is_none().then(not_counted))
            .collect(),
        seconds: clock.elapsed().as_secs_f64(),
        redact: request.redact,
    };
    Ok(Outcome { balance: crate::output::complete(balance)?, pending })
}

/// What core is asked to do.
pub(crate) fn options(request: &Request, balancing: &Balancing, loaded: &Loaded) -> Result<Options> {
    let level = match &balancing.attribute {
        None => Level::Record,
        Some(name) => {
            if balancing.sum_to_one && loaded.attribute("attribute", name)?.1.kind == Kind::Number {
                let message = format!("`{name}` is a number, which has no indicators: leave it out");
                return Err(Failure::option("sum_to_one", message));
            }
            Level::Attribute(directions(loaded, "attribute", name, balancing.sum_to_one)?)
        }
    };
    if balancing.sharing != Sharing::Sample && class_names(&loaded.encoding).is_none() {
        return Err(Failure::option(
            "weights_per",
            format!("the target `{}` is no class: use sample", loaded.encoding.target.name),
        ));
    }
    let plain = balancing.variant == Variant::Unweighted || balancing.sharing != Sharing::Sample;
    if balancing.update == Update::Accelerated && plain {
        return Err(Failure::option(
            "update",
            "accelerated needs ⟨weights_per⟩ sample and ⟨variant⟩ weighted: only they have a fixed point to find",
        ));
    }
    Ok(Options {
        level,
        sharing: balancing.sharing,
        variant: balancing.variant,
        update: balancing.update,
        clamp: balancing.clamp,
        iterations: balancing.iterations,
        tolerance: balancing.tolerance,
        release: Release { sigma: balancing.sigma, releases: 1, label_secret: request.label_secret },
        shape: None,
    })
}

/// Directions of the attribute that a flag names.
pub(crate) fn directions(loaded: &Loaded, flag: &str, name: &str, sum_to_one: bool) -> Result<Directions> {
    let (index, _) = loaded.attribute(flag, name)?;
    let basis = loaded.encoding.directions(index, sum_to_one);
    let count = basis.len() / loaded.encoding.width().max(1);
    if count == 0 {
        return Err(Failure::option(
            flag,
            format!("`{name}` has one value only, so it has no column to protect"),
        ));
    }
    Ok(Directions { basis, count })
}

/// What documents say of an iteration, with scores where there is a metric.
fn step(ground: &Ground<'_>, i: &Iteration, fit: &Minimiser, metric: Option<Metric>) -> Result<Step> {
    let (mut train_score, mut test_score) = (None, None);
    if let Some(metric) = metric {
        train_score = Some(ground.score(&ground.loaded.rows, fit, metric)?);
        if let Some(test) = &ground.loaded.test {
            test_score = Some(ground.score(test, fit, metric)?);
        }
    }
    Ok(Step {
        iteration: i.number,
        eta_mean: i.eta.mean,
        eta_std: i.eta.std,
        eta_max: i.eta.max,
        eta_unweighted_mean: i.eta_unweighted.mean,
        eta_unweighted_std: i.eta_unweighted.std,
        eta_unweighted_max: i.eta_unweighted.max,
        train_score,
        test_score,
        weight_min: i.weight_min,
        weight_max: i.weight_max,
    })
}

/// The other variant, and the published update beside an accelerated one.
fn comparisons(request: &Request, ground: &Ground<'_>) -> Result<Vec<Comparison>> {
    let (mut all, chosen) = (vec![], &ground.options);
    let other = match chosen.variant {
        Variant::Weighted => Variant::Unweighted,
        Variant::Unweighted => Variant::Weighted,
    };
    let mut wanted = vec![(other, Update::Published)];
    if chosen.update == Update::Accelerated {
        wanted.push((chosen.variant, Update::Published));
    }
    for (variant, update) in wanted {
        let options = Options { variant, update, ..chosen.clone() };
        let mut iterations = vec![];
        ground.balanced_as(request, &options, |i, fit| {
            iterations.push(step(ground, i, fit, None)?);
            Ok(())
        })?;
        all.push(Comparison { variant, update, iterations });
    }
    Ok(all)
}

fn write_weights(
    loaded: &Loaded,
    balanced: &Balanced<Minimiser>,
    folder: &Folder,
    pending: &mut Pending,
) -> Result<()> {
    let numbers = ["weight", "eta_before", "eta", "eta_unweighted"].map(String::from).into();
    let id = loaded.encoding.id.clone().unwrap_or_else(|| "row".into());
    let mut writer = folder.table("weights", RecordsSchema { id, texts: vec![], numbers })?;
    let parts = writer.parts();
    let numbers_of = |row: usize| {
        [balanced.weights[row], balanced.eta_before[row], balanced.eta[row], balanced.eta_unweighted[row]]
    };
    if loaded.rows.away().is_some() {
        // Weights are here and names are there: the names come.
        let RowLabels { ids, positions } = labelled::run(&Labelling, &loaded.rows, None)?;
        let mut part = parts.part();
        for (row, (id, position)) in ids.iter().zip(positions).enumerate() {
            part.push_at(position, id, &[], &numbers_of(row))?;
        }
        writer.append(part)?;
    } else {
        loaded.rows.fold_labelled(
            || parts.part(),
            |part, block, labels| {
                for (i, id) in labels.ids.iter().enumerate() {
                    let numbers = numbers_of(block.first_row as usize + i);
                    part.push_at(labels.positions[i], id, &[], &numbers).map_err(CoreError::from)?;
                }
                Ok(())
            },
            |part| writer.append(part).map_err(CoreError::from),
        )?;
    }
    pending.tables([writer]);
    Ok(())
}

fn warnings(request: &Request, ground: &Ground<'_>, balanced: &Balanced<Minimiser>) -> Result<Vec<String>> {
    let (loaded, mut all) = (ground.loaded, ground.remarks(request, &balanced.fit)?);
    let last = balanced.history.len().saturating_sub(1);
    match &balanced.stopped {
        Stopped::Vanished { row, weight } => all.push(format!(
            "The weight of record {} fell to {weight:.1e} of the mean, so it hardly takes part in the model: stopped at \
             iteration {last} and kept iteration {}. ⟨min_weight⟩ holds weights up.",
            name_of_row(loaded, *row as u64)?,
            balanced.best
        )),
        Stopped::NoFit(error) => all.push(format!(
            "The reweighted model after iteration {last} has no fit ({}): stopped there and kept iteration {}. \
             ⟨min_weight⟩ or a larger ⟨l2⟩ may help.",
            explain(error.clone(), &loaded.encoding, request.l2),
            balanced.best
        )),
        Stopped::Iterations if balanced.best < last => all.push(format!(
            "It does not converge: iteration {} has the smallest spread and is kept, the {} after it were worse.",
            balanced.best,
            last - balanced.best
        )),
        Stopped::Converged | Stopped::Iterations => {}
    }
    Ok(all)
}

/// That the weights' own part of the leakage is not among the numbers.
fn not_counted() -> String {
    "Weights are functions of the records, and what that adds to the leakage was not counted: it is known for weights per sample \
     of the published kind, and computed where the table is small enough for it. A release with ⟨balance⟩ counts it, or is refused."
        .into()
}

/// The name of a training row: its id, or its number in the table.
fn name_of_row(loaded: &Loaded, row: u64) -> Result<String> {
    let name = labelled::run(&NameOfRow { row }, &loaded.rows, None)?.name;
    Ok(name.unwrap_or_else(|| (row + 1).to_string()))
}

fn line(s: &Step, metric: Metric) -> String {
    let score = |name: &str, v: Option<f64>| {
        v.map_or_else(String::new, |v| format!("  {name} {}", format::number(v)))
    };
    format!(
        "{:>4}  mean η {}  std {}  max {}  spread {}{}{}",
        s.iteration,
        format::number(s.eta_mean),
        format::number(s.eta_std),
        format::number(s.eta_max),
        format::spread(s.spread()),
        score(&format!("training {}", metric.name()), s.train_score),
        score("held-out", s.test_score)
    )
}

/// A screenful of text.
pub fn summary(b: &Balance) -> String {
    let metric = Metric::from(b.metric);
    let mut out = of_balance(b).lines();
    out.push_str(&format!(
        "\n{}\n",
        b.attribute.as_ref().map_or_else(
            || "Information loss η of whole records, iteration by iteration".to_owned(),
            |a| format!("Information loss η of {a}, iteration by iteration"),
        )
    ));
    for s in &b.iterations {
        out.push_str(&line(s, metric));
        out.push('\n');
    }
    let reason = match b.stopped {
        Ending::Converged => "Converged",
        Ending::Iterations if b.converging => "All iterations used, still improving",
        Ending::Iterations => "Did not converge",
        Ending::Vanished | Ending::NoFit => "Stopped early",
    };
    out.push_str(&format!("{reason}; kept iteration {}.\n", b.best));
    for gain in b.bought.iter().flat_map(|bought| &bought.gains) {
        out.push_str(&format!(
            "{:<28} adds an error of {} to predictions ({} by weights, {} by noise)\n",
            gain.name(),
            format::number(gain.error()),
            format::number(gain.weights),
            format::number(gain.noise)
        ));
    }
    for note in &b.notes {
        out.push_str(&format!("note: {note}\n"));
    }
    for warning in &b.warnings {
        out.push_str(&format!("warning: {warning}\n"));
    }
    out
}
