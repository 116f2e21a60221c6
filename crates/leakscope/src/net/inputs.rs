//! What a training run reads: its records, those it is tested on, and what each may spend.

use super::data::{Names, Part, Reading, Source, test_beside};
use super::table::{self, Which};
use super::train::TrainRequest;
use crate::{Failure, Result};
use leakscope_net::Real;
use leakscope_table::{Hooks, ReadOptions, SplitKey, Subset};
use std::sync::Arc;

/// Records to train on, and to test on where there are any.
pub(super) struct Inputs<T> {
    pub(super) source: Source<T>,
    pub(super) test: Option<Source<T>>,
    /// What each record may spend, where a column says it.
    pub(super) budgets: Vec<f64>,
}

/// Reads the records of a request.
///
/// Whether a row is held out follows from the seed, or, in private training, from a key: by numbers and a seed that is no secret, a
/// row more or less would move all that follow to the other side.
pub(super) fn inputs<T: Real>(
    args: &TrainRequest,
    split: (u64, Option<SplitKey>),
    hooks: &Hooks,
) -> Result<Inputs<T>> {
    table::check(args.table.as_ref(), &args.data)?;
    let Some(request) = &args.table else {
        let normalize = args.normalize.unwrap_or([0.0, 1.0]);
        let reading = Reading { flag: "data", part: Part::Train, normalize, limit: args.limit };
        let source = Source::read(&args.data, reading)?;
        let files = if args.test.is_empty() { test_beside(&args.data) } else { Some(args.test.clone()) };
        let reading = Reading { flag: "test", part: Part::Test, normalize, limit: None };
        let test = files.map(|files| Source::read(&files, reading)).transpose()?;
        return Ok(Inputs { source, test, budgets: vec![] });
    };
    for (flag, is_set) in [("normalize", args.normalize.is_some()), ("limit", args.limit.is_some())] {
        if is_set {
            let message =
                "it is for arrays: columns of a table are scaled by ⟨scale⟩, and all its rows are used";
            return Err(Failure::option(flag, message));
        }
    }
    if request.holdout.is_some() && (!args.test.is_empty() || request.test.is_some()) {
        return Err(Failure::option("holdout", "⟨test⟩ names rows to test on already: use one of the two"));
    }
    let column = args.filter_budgets.as_deref().filter(|p| !p.is_file()).map(|p| p.to_string_lossy());
    let (table, coding) = request.open(&args.data, (column.as_deref(), args.target_loss()?), split, hooks)?;
    let coding = Arc::new(coding);
    let files = ReadOptions { paths: args.data.clone(), ..request.read.clone() }.names();
    let which = |flag, subset| Which { flag, target_optional: false, subset };
    let mut rows = coding.rows(&table, which("data", Subset::Training), hooks)?;
    let budgets = std::mem::take(&mut rows.budgets);
    let test = if !args.test.is_empty() {
        let other = coding.table(&args.test, "test")?;
        Some(coding.rows(&other, which("test", Subset::All), hooks)?)
    } else if let Some(read) = &request.test {
        Some(coding.rows(&coding.open(read)?, which("test", Subset::All), hooks)?)
    } else if request.holdout.is_some() {
        Some(coding.rows(&table, which("holdout", Subset::HeldOut), hooks)?)
    } else {
        None
    };
    let test = test.map(|rows| Source::of_rows(rows, &coding, vec![]));
    Ok(Inputs { source: Source::of_rows(rows, &coding, files), test, budgets })
}

/// The key of the split of a new run, where one is held out in private.
pub(super) fn split_key(args: &TrainRequest, private: bool) -> Result<Option<SplitKey>> {
    let held_out = args.table.as_ref().is_some_and(|t| t.holdout.is_some());
    if !(held_out && private) || args.run.not_private_noise_from_seed {
        return Ok(None);
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|e| {
        Failure::Message(format!("the system gives no random numbers ({e}): nothing would be private"))
    })?;
    Ok(Some(SplitKey(key)))
}

/// Refuses an ε for the whole run, or for a record of it, where the encoding was read off the records: one of them more or
/// less moves the values of all others, which no clip bounds, so that such an ε would be wrong.
pub(super) fn covered(args: &TrainRequest, names: &Names) -> Result<()> {
    let read = names.read_off();
    let filtered =
        args.run.filter_epsilon.is_some() || args.filter_budgets.is_some() || !args.budgets.is_empty();
    let flag = match (args.run.epsilon, filtered) {
        _ if read.is_empty() || args.run.not_private_noise_from_seed => return Ok(()),
        (Some(_), _) => "epsilon",
        (None, true) if args.run.filter_epsilon.is_some() => "filter_epsilon",
        (None, true) => "filter_budgets",
        (None, false) => return Ok(()),
    };
    let message = format!(
        "{} {} read off all records, and no noise of a step covers that, so no ε would hold: {}or the noise as ⟨sigma⟩, and no \
         ε is stated",
        read.join(", "),
        if read.len() == 1 { "is" } else { "are" },
        if read.iter().all(|r| r.ends_with(')')) {
            "give that, "
        } else {
            "give ⟨bounds⟩ with ⟨scale=bounds⟩, ⟨levels⟩ or a ⟨schema⟩, which are public, "
        }
    );
    Err(Failure::option(flag, message))
}
