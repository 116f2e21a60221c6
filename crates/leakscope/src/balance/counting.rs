//! What a balanced model gives away with its weights counted: they are functions of the data, and the published fixed point makes
//! equal what is measured with them held.

use super::Ground;
use crate::Result;
use crate::failure::explain;
use crate::model::penalty;
use crate::request::Request;
use leakscope_core::Error as CoreError;
use leakscope_core::balance::{CountedBalance, counted, most_even};
use leakscope_core::glm::Minimiser;
use leakscope_report::balance::{Counted, CountedEta};

/// Multiplications that counting may take, a second of them: n q³ for every iteration, of every iteration that is looked at.
const MOST_WORK: f64 = 2e9;

/// Counted η of the iteration that is kept and of the most even one; `None` where it is not known, or costs too much.
pub(super) fn counting(
    request: &Request,
    ground: &Ground<'_>,
    (kept, fit): (usize, &Minimiser),
) -> Result<Option<Counted>> {
    let (rows, options) = (ground.rows(), &ground.options);
    let (n, q) = (rows.len() as f64, fit.w().len() as f64);
    let iterations = (kept + 1) as f64;
    if n * q.powi(3) * iterations * iterations > MOST_WORK {
        return Ok(None);
    }
    let model = (request.family, penalty(request));
    let explained = |e| explain(e, &ground.loaded.encoding, request.l2);
    let own = match counted(rows, model, options, &[], kept) {
        // Rows that an engine holds are not read here, and counting reads them.
        Err(CoreError::Source(_)) => return Ok(None),
        other => other.map_err(explained)?,
    };
    let Some(own) = own else { return Ok(None) };
    let even = most_even(rows, model, options, &[], kept).map_err(explained)?;
    let (iteration, even) = even.unwrap_or((kept, own.clone()));
    Ok(Some(Counted { kept: of(&own), most_even: iteration, at_most_even: of(&even) }))
}

fn of(counted: &CountedBalance) -> CountedEta {
    let mean = counted.eta.iter().sum::<f64>() / counted.eta.len().max(1) as f64;
    let max = counted.eta.iter().copied().fold(0.0, f64::max);
    CountedEta { mean, max, spread: counted.spread() }
}
