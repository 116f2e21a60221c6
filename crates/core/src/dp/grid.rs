//! Discretisation of a privacy loss onto a grid `o + k·h`, from above and from below, both to second order in h.
//! The offset o is free for every step; it is put where the loss is most concentrated (a record that is rarely
//! sampled has a loss of almost exactly `ln(1−q)`), so that a narrow peak costs nothing even on a coarse grid.
//!
//! *Above* (connect the dots, Doroshenko et al. 2022): the mass of a cell `(ε_i, ε_{i+1}]` goes to its two ends so
//! that its probabilities under P *and* Q are kept. The likelihood ratio is spread about its mean, so every
//! hockey-stick divergence can only grow, and it is exact at the grid points.
//!
//! *Below*: cells are merged to their mean likelihood ratio, which is post-processing and can only lower every
//! divergence. Their ends are chosen one after the other so that each mean falls *on* the grid: seen as curves,
//! `γ ↦ H_γ` is replaced by tangents whose kinks lie at grid points. What is left over is moved down or dropped.
//!
//! Both keep the mean of the loss to first order, so T-fold composition adds or removes a variance of at most
//! `T h²/4` and no drift: the grid may be as coarse as a tenth of the standard deviation of one step.
//!
//! Rounding: every difference of tails is moved to the safe side by the error its terms may carry.

use super::pair::{Pair, Tail, U};

/// Masses of the loss at `offset + first·h, offset + (first+1)·h, …`.
#[derive(Debug, Clone)]
pub(super) struct Pmf {
    pub offset: f64,
    pub first: i64,
    pub mass: Vec<f64>,
    /// Mass at +∞ (above) that no grid point holds; what is dropped below is at −∞ and not kept.
    pub infinite: f64,
}

/// Cells at most, in one step: beyond, the grid is too fine for the memory it takes.
const MOST_CELLS: f64 = (1 << 19) as f64;

/// Range of the loss outside which its continuous part has mass at most `tail` on either side.
fn range(pair: &Pair, h: f64, tail: f64) -> Option<(f64, f64)> {
    let (min, max) = pair.support();
    let hi = reach(|x| pair.above(x).p <= tail, h).min(max);
    let lo = (-reach(|x| pair.below(-x).p <= tail, h)).max(min);
    ((hi - lo) / h <= MOST_CELLS && lo.abs().max(hi.abs()) / h < 1e15).then_some((lo, hi))
}

/// A number of cells, where it is not too large: atoms may lie far outside the range of the continuous part.
fn cells(n: i64) -> Option<usize> {
    usize::try_from(n).ok().filter(|n| *n as f64 <= 2.0 * MOST_CELLS)
}

/// A point (to within `resolution`) from which on `done` holds; it may be negative.
fn reach(done: impl Fn(f64) -> bool, resolution: f64) -> f64 {
    let (mut lo, mut step) = (0.0, resolution);
    while done(lo) && step < 1e18 {
        lo -= step;
        step *= 2.0;
    }
    step = resolution;
    while !done(lo + step) && step < 1e18 {
        lo += step;
        step *= 2.0;
    }
    let mut hi = lo + step;
    while hi - lo > resolution {
        let mid = 0.5 * (lo + hi);
        if mid <= lo || mid >= hi {
            break;
        }
        if done(mid) { hi = mid } else { lo = mid }
    }
    hi
}

/// Tails at one threshold, taken on the side where they are small, so that differences keep their digits.
#[derive(Clone, Copy)]
struct Edge {
    loss: f64,
    above: Tail,
    below: Option<Tail>,
}

impl Edge {
    fn new(pair: &Pair, loss: f64) -> Self {
        let above = pair.above(loss);
        let below = (above.p > 0.4).then(|| pair.below(loss));
        Self { loss, above, below }
    }
}

/// A cell `(a, b]`: its probability under P, `P − e^g Q`, and the error either may carry.
struct Cell {
    p: f64,
    excess: f64,
    error: f64,
}

impl Cell {
    fn new(pair: &Pair, a: &Edge, b: &Edge, g: f64) -> Self {
        let (scale_a, scale_b) = ((g - a.loss).exp(), (g - b.loss).exp());
        // A difference of tails, far minus near, from whichever side its terms are smaller: P and Q each for itself.
        let above_error = a.above.error + b.above.error;
        let mut p = (a.above.p - b.above.p, (a.above.p + b.above.p) * above_error);
        let (ra, rb) = (a.above.r * scale_a, b.above.r * scale_b);
        let mut r = (ra - rb, (ra + rb) * above_error);
        if let Some(below) = a.below {
            let other = b.below.unwrap_or_else(|| pair.below(b.loss));
            let error = below.error + other.error;
            if (other.p + below.p) * error < p.1 {
                p = (other.p - below.p, (other.p + below.p) * error);
            }
            let (ra, rb) = (below.r * scale_a, other.r * scale_b);
            if (ra + rb) * error < r.1 {
                r = (rb - ra, (ra + rb) * error);
            }
        }
        Self { p: p.0, excess: p.0 - r.0, error: p.1 + r.1 }
    }
}

/// Where the grid is anchored from above: a sharp end of the support, or zero, where atoms are.
fn anchor(pair: &Pair) -> f64 {
    let (min, max) = pair.support();
    match (pair.atoms().is_empty(), min.is_finite(), max.is_finite()) {
        (true, true, _) => min,
        (true, false, true) => max,
        _ => 0.0,
    }
}

/// The loss rounded so that no hockey-stick divergence shrinks.
pub(super) fn above(pair: &Pair, h: f64, tail: f64) -> Option<Pmf> {
    let atoms = pair.atoms();
    let offset = anchor(pair);
    let (lo, hi) = if pair.is_continuous() { range(pair, h, tail)? } else { (0.0, 0.0) };
    let (mut lo, mut hi) = (((lo - offset) / h).floor() as i64, ((hi - offset) / h).ceil() as i64);
    for atom in &atoms {
        lo = lo.min((atom.loss / h).floor() as i64 - 1);
        hi = hi.max((atom.loss / h).ceil() as i64 + 1);
    }
    let mut mass = vec![0.0; cells(hi - lo)? + 2];
    let split = -(-h).exp_m1();
    let mut infinite = 0.0;
    if pair.is_continuous() {
        let mut a = Edge::new(pair, offset + lo as f64 * h);
        mass[0] += pair.below(a.loss).p;
        for (i, k) in (lo..hi).enumerate() {
            let b = Edge::new(pair, offset + (k + 1) as f64 * h);
            // P = down + up, e^{ε_i}Q = down + up e^{−h}
            let cell = Cell::new(pair, &a, &b, a.loss);
            let p = cell.p.max(0.0);
            let up = ((cell.excess + cell.error) / split).clamp(0.0, p);
            mass[i] += p - up;
            mass[i + 1] += up;
            a = b;
        }
        infinite = a.above.p * (1.0 + a.above.error);
    }
    for atom in &atoms {
        let (k, exact) = on_grid(atom.loss, h);
        let i = usize::try_from(k - lo).ok()?;
        let up =
            if exact { 0.0 } else { atom.p * (-(k as f64 * h - atom.loss).exp_m1() / split).clamp(0.0, 1.0) };
        mass[i] += atom.p - up;
        mass[i + 1] += up;
    }
    Some(Pmf { offset, first: lo, mass, infinite })
}

/// The grid index at or below a loss, and whether the loss is that grid point up to rounding.
fn on_grid(loss: f64, h: f64) -> (i64, bool) {
    let k = (loss / h).round();
    if (loss - k * h).abs() <= 8.0 * U * loss.abs() {
        (k as i64, true)
    } else {
        ((loss / h).floor() as i64, false)
    }
}

/// The loss rounded so that no hockey-stick divergence grows.
pub(super) fn below(pair: &Pair, h: f64, tail: f64) -> Option<Pmf> {
    let atoms = pair.atoms();
    let (mut lo, mut hi) = if pair.is_continuous() { range(pair, h, tail)? } else { (0.0, 0.0) };
    let middle = if pair.is_continuous() && atoms.is_empty() { Some(first_cell(pair, h)?) } else { None };
    let offset = middle.as_ref().map_or(0.0, |m| m.mean);
    for atom in &atoms {
        (lo, hi) = (lo.min(atom.loss), hi.max(atom.loss));
    }
    let first = ((lo - offset) / h).floor() as i64 - 3;
    let last = ((hi - offset) / h).ceil() as i64 + 3;
    let mut mass = vec![0.0; cells(last - first)? + 1];
    let put = |mass: &mut Vec<f64>, k: i64, p: f64| {
        if let Some(m) = usize::try_from(k - first).ok().and_then(|i| mass.get_mut(i)) {
            *m += p;
        }
    };
    match middle {
        Some(m) => {
            put(&mut mass, 0, m.p);
            walk(pair, m.upper, offset, hi, h, |k, p| put(&mut mass, k, p));
            walk(pair, m.lower, offset, lo, h, |k, p| put(&mut mass, k, p));
        }
        None if pair.is_continuous() => {
            walk(pair, Edge::new(pair, lo), 0.0, hi, h, |k, p| put(&mut mass, k, p));
        }
        None => {}
    }
    for atom in &atoms {
        put(&mut mass, on_grid(atom.loss, h).0, atom.p);
    }
    Some(Pmf { offset, first, mass, infinite: 0.0 })
}

/// The cell that decides the offset: its own mean is a grid point, so it is kept exactly.
struct First {
    lower: Edge,
    upper: Edge,
    mean: f64,
    p: f64,
}

/// Starts at a sharp end of the support, where a left-over cell would cost most, if much of the mass is there;
/// else around zero, where an unsampled record's loss lies; else around the median.
fn first_cell(pair: &Pair, h: f64) -> Option<First> {
    let (min, max) = pair.support();
    let around = |c: f64| ((c - 0.5 * h).max(min), (c + 0.5 * h).min(max));
    let sharp = if min.is_finite() {
        (min, min + h)
    } else if max.is_finite() {
        (max - h, max)
    } else {
        around(0.0)
    };
    let median = reach(|x| pair.above(x).p <= 0.5, h);
    for ((a, b), least) in [(sharp, 1e-3), (around(median), 0.0)] {
        let (lower, upper) = (Edge::new(pair, a), Edge::new(pair, b));
        let cell = Cell::new(pair, &lower, &upper, a);
        // No loss of the cell is below a, whatever rounding says.
        let share = ((cell.excess - cell.error) / cell.p).max(0.0);
        if cell.p > least && share < 1.0 {
            // P/Q = e^a/(1 − share)
            return Some(First {
                mean: a - (-share).ln_1p(),
                p: (cell.p - cell.error).max(0.0),
                lower,
                upper,
            });
        }
    }
    None
}

/// Cells from `edge` to the loss `to`, each put on a grid point.
fn walk(pair: &Pair, mut edge: Edge, offset: f64, to: f64, h: f64, mut put: impl FnMut(i64, f64)) {
    let upward = to > edge.loss;
    let direction = if upward { 1.0 } else { -1.0 };
    let mut budget = 4.0 * (to - edge.loss).abs() / h + 64.0;
    while budget > 0.0 && direction * (to - edge.loss) > 0.0 {
        budget -= 1.0;
        let t = (edge.loss - offset) / h;
        // Not the very next grid point if that is close: narrow and wide cells would alternate.
        let k = if upward { (t + 0.25).ceil() } else { (t - 0.25).floor() };
        let g = offset + k * h;
        match balanced(pair, &edge, g, to, h) {
            // A cell much wider than its share of the grid would merge a peak with a far tail: see below.
            Some((next, p)) if (next.loss - g).abs() < 3.5 * h => {
                put(k as i64, p);
                edge = next;
            }
            _ => {
                // First order, for what little is left at an end or for a peak between two grid points: to `g` or
                // to the end, all of it moved down to the grid point below its mean.
                let next = Edge::new(pair, if direction * (to - g) > 0.0 { g } else { to });
                let (a, b) = if upward { (&edge, &next) } else { (&next, &edge) };
                let cell = Cell::new(pair, a, b, a.loss);
                let share = ((cell.excess - cell.error) / cell.p).clamp(0.0, 1.0 - 1e-12);
                let mean = if cell.p > 0.0 { a.loss - (-share).ln_1p() } else { a.loss };
                put((((mean - offset) / h).floor()) as i64, (cell.p - cell.error).max(0.0));
                edge = next;
            }
        }
    }
}

/// The other end of a cell that starts at `edge` and whose mean likelihood ratio is `e^g`, or a hair above, and
/// the cell's mass; none where no cell up to `to` has it.
fn balanced(pair: &Pair, edge: &Edge, g: f64, to: f64, h: f64) -> Option<(Edge, f64)> {
    let upward = to > edge.loss;
    let direction = if upward { 1.0 } else { -1.0 };
    let (a, most) = ((g - edge.loss).abs(), direction * (to - g));
    if most <= 0.0 {
        return None;
    }
    let evaluate = |y: f64| {
        let other = Edge::new(pair, if y >= most { to } else { g + direction * y });
        let cell = if upward { Cell::new(pair, edge, &other, g) } else { Cell::new(pair, &other, edge, g) };
        (other, cell)
    };
    // The excess P − e^g Q is close to linear in u = y², from below zero to above going up, the other way down.
    // It must end at least `error` above zero, and should end little more: a mean off by 1e-4 h² costs nothing.
    let mut u = (a * a).min(most * most);
    let mut least: Option<(Edge, f64, f64)> = None;
    // The two values of u between which the excess is known to cross its error.
    let (mut safe, mut unsafe_) = if upward { (most * most, 0.0) } else { (0.0, most * most) };
    let mut previous: Option<(f64, f64)> = None;
    for i in 0..20 {
        let y = u.sqrt();
        let (other, cell) = evaluate(y);
        let slack = 1e-4 * h.min(1.0) * h * cell.p;
        let wanted = cell.error + 0.5 * slack;
        if cell.excess >= cell.error {
            if least.as_ref().is_none_or(|f| cell.excess < f.2) {
                least = Some((other, (cell.p - cell.error).max(0.0), cell.excess));
            }
            safe = u;
            if cell.excess <= cell.error + slack || (!upward && y >= most) {
                break;
            }
        } else {
            unsafe_ = u;
            if upward && y >= most {
                return None;
            }
        }
        let f = cell.excess - wanted;
        let slope = match previous {
            Some((u0, f0)) if u0 != u && i < 12 => (f - f0) / (u - u0),
            _ => direction * cell.p / (2.0 * (y + a)),
        };
        previous = Some((u, f));
        let (lo, hi) = if safe < unsafe_ { (safe, unsafe_) } else { (unsafe_, safe) };
        let newton = u - f / slope;
        u = if newton > lo && newton < hi {
            newton
        } else if upward && least.is_none() {
            // Nothing safe seen yet: walk out to the end of the support if need be.
            (4.0 * u + a * a).min(hi)
        } else {
            0.5 * (lo + hi)
        };
        // Where rounding is as large as the slack there is nothing more to gain.
        if least.is_some() && (i > 6 || hi - lo <= 1e-15 * hi) {
            break;
        }
    }
    least.map(|(edge, p, _)| (edge, p))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [Pair; 6] = [
        Pair::Mixture { sigma: 1.0, q: 0.01, p_mean: 1.0, q_mean: 0.0 },
        Pair::Mixture { sigma: 1.0, q: 0.01, p_mean: 0.0, q_mean: 1.0 },
        Pair::Mixture { sigma: 0.8, q: 0.2, p_mean: 1.0, q_mean: -1.0 },
        Pair::Mixture { sigma: 2.0, q: 1.0, p_mean: 1.0, q_mean: 0.0 },
        Pair::Laplace { e: 0.5 },
        Pair::Response { loss: 1.0, a: 0.475_366_886_418_671_7, b: 0.174_877_704_527_109_5, rest: 2.0 },
    ];

    fn exact(pair: &Pair, epsilon: f64) -> f64 {
        let t = pair.above(epsilon);
        t.p - t.r + pair.atoms().iter().map(|a| a.p * (1.0 - (epsilon - a.loss).exp()).max(0.0)).sum::<f64>()
    }

    fn discrete(pmf: &Pmf, h: f64, epsilon: f64) -> f64 {
        let at = |i: usize| pmf.offset + (pmf.first + i as i64) as f64 * h;
        pmf.infinite
            + pmf.mass.iter().enumerate().map(|(i, p)| p * -(epsilon - at(i)).min(0.0).exp_m1()).sum::<f64>()
    }

    #[test]
    fn above_dominates_and_below_is_dominated_at_every_threshold() {
        for pair in &PAIRS {
            for h in [0.03, 0.004] {
                let (up, down) = (above(pair, h, 1e-18).unwrap(), below(pair, h, 1e-18).unwrap());
                let total: f64 = up.mass.iter().sum::<f64>() + up.infinite;
                assert!((total - 1.0).abs() < 1e-12, "{pair:?} {total}");
                let mut e = -1.5;
                while e < 1.5 {
                    let (truth, a, b) = (exact(pair, e), discrete(&up, h, e), discrete(&down, h, e));
                    assert!(a >= truth - 4e-16, "{pair:?} h {h} ε {e}: {a:e} below {truth:e}");
                    assert!(b <= truth + 4e-16, "{pair:?} h {h} ε {e}: {b:e} above {truth:e}");
                    e += 0.000_717;
                }
            }
        }
    }

    #[test]
    fn both_sides_are_second_order() {
        // The mean of the loss may drift by O(h²), not by O(h).
        for pair in &PAIRS[..5] {
            let mean = |pmf: &Pmf, h: f64| -> f64 {
                pmf.mass
                    .iter()
                    .enumerate()
                    .map(|(i, p)| p * (pmf.offset + (pmf.first + i as i64) as f64 * h))
                    .sum()
            };
            let h = 0.5 / 64.0;
            let (up, down) = (above(pair, h, 1e-18).unwrap(), below(pair, h, 1e-18).unwrap());
            let drift = mean(&up, h) - mean(&down, h);
            assert!(drift > 0.0 && drift < 4.0 * h * h, "{pair:?}: {drift:e} against h² = {:e}", h * h);
        }
    }
}
