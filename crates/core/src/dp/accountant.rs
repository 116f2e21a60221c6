//! Privacy loss distributions: ε, δ and the trade-off curve of a composition, each between two certified ends.

use super::compose::{Composed, LONGEST, Query, Side, compose};
use super::pair::{Pair, pairs};
use super::{
    Adjacency, Interval, Mechanism, check_delta, check_epsilon, counting, gaussian, grid, in_range, rdp,
};
use crate::error::Setting;
use crate::{Error, Result};
use realfft::RealFftPlanner;
use serde::{Deserialize, Serialize};

/// Width of a certified interval, relative, unless another is asked for.
pub const PRECISION: f64 = 9e-4;

/// Refinement stops after this many cells and grid points in all, a second or so: the interval is then as wide as
/// it says.
const MOST_WORK: usize = 1 << 20;

/// Grids tried, each four times coarser than one that was too fine for memory.
const COARSER: usize = 8;

/// A composition of releases about one adjacency.
#[derive(Debug, Clone, PartialEq)]
pub struct Accountant {
    adjacency: Adjacency,
    steps: Vec<(Mechanism, u64)>,
    precision: f64,
    /// Whether lower ends are left at zero, which saves half of the work.
    upper_only: bool,
}

/// One point of a trade-off curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TradeOffPoint {
    /// False-positive rate α of the test.
    pub false_positive: f64,
    /// The least false-negative rate β = f(α) of any test, in either direction of the adjacency.
    pub false_negative: Interval,
}

/// Which of the two neighbours is the hypothesis to be rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directions {
    /// Q is the data set without the record, or any reference under replace.
    Presence,
    Both,
}

impl Accountant {
    /// No releases yet.
    pub fn new(adjacency: Adjacency) -> Self {
        Self { adjacency, steps: vec![], precision: PRECISION, upper_only: false }
    }

    /// DP-SGD: `steps` releases with noise multiplier `sigma` at sampling rate `rate`.
    pub fn dp_sgd(sigma: f64, rate: f64, steps: u64, adjacency: Adjacency) -> Result<Self> {
        Self::new(adjacency).with(Mechanism::gaussian(sigma, rate), steps)
    }

    /// Adds `count` releases of a mechanism.
    pub fn with(mut self, mechanism: Mechanism, count: u64) -> Result<Self> {
        mechanism.check(self.adjacency)?;
        Setting::Steps.in_range(count as f64, (1..=1 << 40).contains(&count), "at least 1, at most 2^40")?;
        match self.steps.iter_mut().find(|(m, _)| *m == mechanism) {
            Some((_, n)) => *n += count,
            None => self.steps.push((mechanism, count)),
        }
        Ok(self)
    }

    /// Asks for certified intervals of another relative width than [`PRECISION`].
    pub fn precision(mut self, relative: f64) -> Result<Self> {
        in_range("precision", relative, (1e-7..1.0).contains(&relative), "between 1e-7 and 1")?;
        self.precision = relative;
        Ok(self)
    }

    /// Leaves out lower ends. Upper ends stay certified; how near they are to the truth then rests on the choice of the
    /// grid, which is made for the precision asked for, and is not certified.
    pub(super) fn upper_only(mut self) -> Self {
        self.upper_only = true;
        self
    }

    /// The releases, one entry per kind.
    pub fn steps(&self) -> &[(Mechanism, u64)] {
        &self.steps
    }

    /// The adjacency that everything is about.
    pub fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    /// ε at δ.
    ///
    /// # Guarantee
    /// The composition is (upper, δ)-DP under the adjacency, also if each release is chosen from the results of
    /// the earlier ones; and for the worst case the adjacency allows it is not (ε, δ)-DP for any ε below `lower`.
    pub fn epsilon(&self, delta: f64) -> Result<Interval> {
        check_delta(delta)?;
        let steps = self.merged()?;
        let guess = rdp::epsilon(&self.steps, self.adjacency, delta)?;
        let s = (guess.alpha - 1.0).max(1e-2);
        if guess.epsilon == 0.0 {
            return Ok(Interval { lower: 0.0, upper: 0.0 });
        }
        if let Some(mu) = self.far_gaussian() {
            return Ok(Interval::around(gaussian::epsilon(mu, delta)?));
        }
        if let Some(interval) = self.without_grid(&steps, delta) {
            return Ok(interval.at_most(guess.epsilon));
        }
        // Rounding to a grid of width h moves the ends of ε apart by s T h²/4 or so.
        let total: f64 = steps.iter().map(|x| x.1 as f64).sum();
        let h = (3.6 * self.precision * guess.epsilon.max(1e-6) / (s * total)).sqrt();
        let tail = 1e-6 * delta / total;
        let interval =
            self.certify(&steps, h, tail, Query::Delta(delta), Directions::Both, |composed, side| {
                composed.epsilon(delta, side)
            })?;
        // Rényi accounting and the sum of pure ε hold too, and need no grid.
        let pure: Option<f64> =
            steps.iter().map(|(m, n)| Some(m.pure_epsilon(self.adjacency)? * *n as f64)).sum();
        let most = pure.map_or(guess.epsilon, |pure| guess.epsilon.min(pure * (1.0 + 1e-12)));
        let interval = match (interval, steps.as_slice()) {
            (None, [(mechanism, count)]) => {
                counting::epsilon(&both(*mechanism, self.adjacency), *count, delta)
            }
            (interval, _) => interval,
        };
        Ok(interval.map_or(Interval { lower: 0.0, upper: most }, |interval| interval.at_most(most)))
    }

    /// What needs no grid: ε is 0 where δ is above the total variation, and one step has a closed form.
    fn without_grid(&self, steps: &[(Mechanism, u64)], delta: f64) -> Option<Interval> {
        let one_way: Vec<(Pair, u64)> = steps
            .iter()
            .filter_map(|&(mechanism, count)| Some((*pairs(mechanism, self.adjacency).first()?, count)))
            .collect();
        if counting::total_variation(&one_way) <= delta {
            return Some(Interval { lower: 0.0, upper: 0.0 });
        }
        match steps {
            [(mechanism, 1)] => counting::epsilon_of_one(&both(*mechanism, self.adjacency), delta),
            _ => None,
        }
    }

    /// δ at ε; ε may be negative.
    ///
    /// # Guarantee
    /// As for [`Accountant::epsilon`]: the composition is (ε, upper)-DP, and not (ε, δ)-DP for δ below `lower`.
    pub fn delta(&self, epsilon: f64) -> Result<Interval> {
        check_epsilon(epsilon)?;
        let steps = self.merged()?;
        let (ln_delta, alpha) = rdp::ln_delta(&self.steps, self.adjacency, epsilon)?;
        if ln_delta < -680.0 {
            // Below what the tails of one step can represent: Rényi accounting alone.
            return Ok(Interval { lower: 0.0, upper: ln_delta.exp().max(f64::MIN_POSITIVE) });
        }
        if let Some(mu) = self.far_gaussian() {
            return Ok(Interval::around(gaussian::delta(mu, epsilon)?).at_most(1.0));
        }
        let total: f64 = steps.iter().map(|x| x.1 as f64).sum();
        let s = if ln_delta > -3.0 { 0.0 } else { alpha - 1.0 };
        let h = self.coarse(total)?.min((3.6 * self.precision / (s * s * total)).sqrt());
        let tail = 1e-7 * ln_delta.exp() / total;
        // Total variation is the same in both directions, of one step and of all.
        let which = if epsilon == 0.0 { Directions::Presence } else { Directions::Both };
        let interval = self.certify(&steps, h, tail, Query::Epsilon(epsilon), which, |composed, side| {
            composed.delta(epsilon, side)
        })?;
        let most = ln_delta.exp();
        Ok(interval.map_or(Interval { lower: 0.0, upper: most }, |interval| interval.at_most(most)))
    }

    /// Membership advantage, the largest difference of true- and false-positive rate of any test: δ at ε = 0.
    pub fn advantage(&self) -> Result<Interval> {
        self.delta(0.0)
    }

    /// The largest true-positive rate of any test at false-positive rate `alpha`, whichever neighbour is the
    /// hypothesis: `1 − f(α)`.
    pub fn power(&self, alpha: f64) -> Result<Interval> {
        self.power_in(alpha, Directions::Both)
    }

    /// The largest probability, with the record there, of an event that has probability `alpha` without it.
    /// This is what bounds reconstruction: under add/remove the reference is the data set without the record,
    /// under replace any one candidate.
    pub fn power_of_presence(&self, alpha: f64) -> Result<Interval> {
        self.power_in(alpha, Directions::Presence)
    }

    fn power_in(&self, alpha: f64, directions: Directions) -> Result<Interval> {
        in_range(
            "false-positive rate",
            alpha,
            (1e-290..1.0).contains(&alpha),
            "a probability above 1e-290, below 1",
        )?;
        let steps = self.merged()?;
        let total: f64 = steps.iter().map(|x| x.1 as f64).sum();
        let query = if alpha > 1e-7 { Query::Curve } else { Query::Rate(alpha) };
        let h = self.coarse(total)?;
        if let Some(mu) = self.far_gaussian() {
            return Ok(Interval::around(1.0 - gaussian::trade_off(mu, alpha)).at_most(1.0));
        }
        let tail = 1e-6 * alpha / total;
        let interval =
            self.certify(&steps, h, tail, query, directions, |composed, side| composed.power(alpha, side))?;
        Ok(interval.unwrap_or(Interval { lower: alpha, upper: 1.0 }))
    }

    /// The distance μ where every release is plainly Gaussian and they tell the neighbours apart so well that a grid
    /// fine enough for the loss is too long: there the closed form serves.
    fn far_gaussian(&self) -> Option<f64> {
        gaussian::distance(&self.steps, self.adjacency).filter(|mu| *mu > 1e3)
    }

    /// The trade-off curve at several false-positive rates.
    ///
    /// # Guarantee
    /// No test of one neighbour against the other, in either direction, has a smaller false-negative rate.
    pub fn trade_off(&self, alphas: &[f64]) -> Result<Vec<TradeOffPoint>> {
        let mut points = Vec::with_capacity(alphas.len());
        let steps = self.merged()?;
        let total: f64 = steps.iter().map(|x| x.1 as f64).sum();
        let mut planner = RealFftPlanner::new();
        let mut h = self.coarse(total)?;
        let (mut curves, mut whole) = (vec![], false);
        for _ in 0..if self.far_gaussian().is_some() { 0 } else { COARSER } {
            h = self.snap(&steps, h);
            let tail = 1e-22 / total;
            let recipe = Recipe { steps: &steps, adjacency: self.adjacency, h, tail, query: Query::Curve };
            let sides = [Side::Upper, Side::Lower].into_iter();
            let both = directions(&steps, self.adjacency, Directions::Both);
            let each = sides.flat_map(|side| both.iter().map(move |&direction| (side, direction)));
            curves.clear();
            curves.extend(each.map_while(|(side, d)| Some((side, recipe.build(&mut planner, d, side)?))));
            whole = curves.len() == 2 * both.len();
            if whole {
                break;
            }
            h *= 4.0;
        }
        for &alpha in alphas {
            let in_between = alpha > 0.0 && alpha < 1.0;
            in_range("false-positive rate", alpha, in_between, "a probability above 0, below 1")?;
            let power = if whole && alpha > 1e-7 {
                let side = |side: Side| {
                    let values = curves.iter().filter(|c| c.0 == side);
                    values.map(|c| c.1.0.power(alpha, side)).fold(alpha, f64::max)
                };
                Interval { lower: side(Side::Lower), upper: side(Side::Upper) }
            } else {
                self.power(alpha)?
            };
            let false_negative = Interval { lower: 1.0 - power.upper, upper: 1.0 - power.lower };
            points.push(TradeOffPoint { false_positive: alpha, false_negative });
        }
        Ok(points)
    }

    /// A grid that keeps the variance of the composed loss to the precision: the loss has variance about twice
    /// its mean, the Kullback–Leibler divergence.
    fn coarse(&self, total: f64) -> Result<f64> {
        let kl = rdp::total(&self.steps, self.adjacency, 1.001)?;
        Ok((7.0 * self.precision * kl / total).sqrt())
    }

    /// Plain Gaussian releases compose to one, exactly: distances add in squares.
    fn merged(&self) -> Result<Vec<(Mechanism, u64)>> {
        if self.steps.is_empty() {
            return Err(Error::Empty);
        }
        let (mut steps, mut squares) = (vec![], 0.0);
        for &(mechanism, count) in &self.steps {
            match mechanism {
                Mechanism::Gaussian { sigma, rate: 1.0 } => squares += count as f64 / (sigma * sigma),
                other => steps.push((other, count)),
            }
        }
        if squares > 0.0 {
            steps.push((Mechanism::gaussian(squares.sqrt().recip(), 1.0), 1));
        }
        Ok(steps)
    }

    /// The grid, adjusted so that atoms of the loss fall onto it.
    fn snap(&self, steps: &[(Mechanism, u64)], h: f64) -> f64 {
        let h = h.clamp(1e-12, 32.0);
        let pure = steps.iter().filter_map(|(m, n)| Some((m.pure_epsilon(self.adjacency)?, *n)));
        // The most frequent, of equals the largest: whatever their order.
        match pure.max_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0))) {
            // An even number of cells on either side of zero.
            Some((e, _)) if e > 0.0 => e / (2.0 * (0.5 * e / h).ceil()),
            _ => h,
        }
    }

    /// Refines the grid until the interval is narrow enough. Every interval on the way is valid, so their
    /// intersection is returned; none where every grid was too fine for memory.
    fn certify(
        &self,
        steps: &[(Mechanism, u64)],
        mut h: f64,
        tail: f64,
        query: Query,
        which: Directions,
        read: impl Fn(&Composed, Side) -> f64,
    ) -> Result<Option<Interval>> {
        let mut tail = tail.clamp(1e-306, 1e-8);
        let total: f64 = steps.iter().map(|x| x.1 as f64).sum();
        let mut work = 0;
        let mut planner = RealFftPlanner::new();
        let mut best: Option<Interval> = None;
        let all = directions(steps, self.adjacency, which);
        let mut uppers = vec![f64::INFINITY; all.len()];
        // The window is some 24 standard deviations of the composed loss wide, whose variance is twice its mean.
        let kl = rdp::total(steps, self.adjacency, 1.001)?;
        h = h.max(24.0 * (2.0 * kl).sqrt() / LONGEST);
        for _ in 0..COARSER {
            h = self.snap(steps, h);
            let recipe = Recipe { steps, adjacency: self.adjacency, h, tail, query };
            let mut side = |direction: usize, side: Side| {
                let (composed, cells) = recipe.build(&mut planner, direction, side)?;
                work += cells + composed.len();
                Some(read(&composed, side))
            };
            // Where add and remove differ, the lower end of the worse one is the lower end of both; a direction whose
            // upper end on an earlier grid is below that is not looked at again.
            let lower = best.map_or(f64::NEG_INFINITY, |b| b.lower);
            let mut complete = true;
            for (&d, upper) in all.iter().zip(&mut uppers).filter(|(_, upper)| **upper > lower) {
                match side(d, Side::Upper) {
                    Some(value) => *upper = upper.min(value),
                    None => complete = false,
                }
            }
            let worst = all.iter().zip(&uppers).max_by(|a, b| a.1.total_cmp(b.1)).filter(|_| complete);
            let mut lower = |d: usize| if self.upper_only { Some(0.0) } else { side(d, Side::Lower) };
            let bracket = worst.and_then(|(&d, &upper)| Some(Interval { lower: lower(d)?, upper }));
            let Some(bracket) = bracket else {
                // Too fine for the memory: coarser if nothing is known yet, else keep what is.
                if best.is_some() {
                    break;
                }
                h *= 4.0;
                continue;
            };
            let known = best.get_or_insert(bracket);
            known.lower = known.lower.max(bracket.lower);
            known.upper = known.upper.min(bracket.upper);
            let width = known.relative_width();
            let nothing = if matches!(query, Query::Delta(_)) { 1e-9 } else { 1e-290 };
            if width <= self.precision || known.upper <= nothing {
                break;
            }
            // What was cut off the tails may be all that is left of a δ that turned out smaller than expected.
            let finer = (1e-7 * known.upper / total).max(1e-306);
            if !matches!(query, Query::Delta(_)) && finer < 0.1 * tail {
                tail = 0.1 * finer;
                continue;
            }
            if work > MOST_WORK || (self.upper_only && known.upper.is_finite()) {
                break;
            }
            h *= if known.upper.is_finite() {
                (0.8 * (self.precision / width).sqrt()).clamp(0.1, 0.7)
            } else {
                0.1
            };
        }
        Ok(best.filter(|interval| interval.upper.is_finite()))
    }
}

/// The pairs of a release, each direction once.
fn both(mechanism: Mechanism, adjacency: Adjacency) -> Vec<Pair> {
    let all = pairs(mechanism, adjacency);
    let count = directions(&[(mechanism, 1)], adjacency, Directions::Both).len();
    all.into_iter().take(count).collect()
}

/// Which directions must be looked at: one where the pair is its own mirror image.
fn directions(steps: &[(Mechanism, u64)], adjacency: Adjacency, which: Directions) -> Vec<usize> {
    let sampled = |m: &Mechanism| matches!(m, Mechanism::Gaussian { rate, .. } if *rate < 1.0);
    let differ = adjacency == Adjacency::AddRemove && steps.iter().any(|(m, _)| sampled(m));
    if differ && which == Directions::Both { vec![0, 1] } else { vec![0] }
}

/// Everything one composition depends on, but for its direction and side.
struct Recipe<'a> {
    steps: &'a [(Mechanism, u64)],
    adjacency: Adjacency,
    h: f64,
    tail: f64,
    query: Query,
}

impl Recipe<'_> {
    /// The composed loss, and how many cells it was made of; none where the grid is too fine for memory.
    fn build(
        &self,
        planner: &mut RealFftPlanner<f64>,
        direction: usize,
        side: Side,
    ) -> Option<(Composed, usize)> {
        let discretise = match side {
            Side::Upper => grid::above,
            Side::Lower => grid::below,
        };
        let pmf = |&(mechanism, count): &(Mechanism, u64)| {
            let pair = *pairs(mechanism, self.adjacency).get(direction)?;
            Some((discretise(&pair, self.h, self.tail)?, count))
        };
        let pmfs: Vec<_> = self.steps.iter().map(pmf).collect::<Option<_>>()?;
        let cells = pmfs.iter().map(|p| p.0.mass.len()).sum();
        Some((compose(planner, &pmfs, self.h, self.query)?, cells))
    }
}

#[cfg(test)]
mod tests;
