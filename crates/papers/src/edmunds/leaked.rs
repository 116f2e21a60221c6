//! What the thesis prints as dFIL: the square root of it.
//!
//! Read as `tr I/d`, the printed columns differ from ours by factors from 0.2 to 70. Read as its square root, all of them
//! follow: what the published code logs is `√(tr I/d)` of every record, and the largest, mean and median of those are printed. The mean
//! of roots is not the root of the mean, so that no single factor leads from one to the other.

use super::super::images::summary;
use super::tables::Printed;
use leakscope_core::special::student_t_quantile;
use leakscope_report::format;
use leakscope_report::reproduction::{Claim, Row};

/// The columns of the tables.
pub(super) const COLUMNS: [&str; 3] = ["largest", "mean", "median"];

/// Largest, mean and median over records.
type Columns = [f64; 3];

/// dFIL over the records of a run, or the mean over runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leaked {
    /// `tr I/d`.
    pub(super) dfil: Columns,
    /// `√(tr I/d)`, which the thesis prints.
    pub(super) root: Columns,
    /// Of a mean over runs: how many, and the standard deviations of `root` over them.
    over: Option<(usize, Columns)>,
}

/// Runs whose means the thesis prints.
const PRINTED_RUNS: f64 = 3.0;
/// From so many runs on, their spread is known well enough to say where means of others lie.
const MANY: usize = 10;

/// Mean and standard deviation over runs; one run has none.
pub(super) fn mean_and_deviation(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (values.len() > 1).then(|| (square / (n - 1.0)).sqrt()))
}

/// How far the mean of as many other runs as the thesis made may lie from the mean of ours, in 95 of 100 cases, if it did what
/// is done here; absent of few runs.
fn reach(runs: usize, deviation: f64) -> Option<f64> {
    let n = runs as f64;
    (runs >= MANY)
        .then(|| student_t_quantile(0.975, n - 1.0) * deviation * (1.0 / PRINTED_RUNS + 1.0 / n).sqrt())
}

/// What runs came to, in words.
pub(super) fn spread_of_runs(runs: usize, (mean, deviation): (f64, f64)) -> String {
    let several = format!("Standard deviation over {runs} runs: {}.", format::number(deviation));
    match reach(runs, deviation) {
        Some(reach) => format!(
            "{several} Means of three such runs lie between {} and {} (95%).",
            format::number(mean - reach),
            format::number(mean + reach)
        ),
        None => several,
    }
}

/// A row of a printed mean and ours, which agree within the printed standard deviation or, where there are many runs, within
/// the means of three of them.
pub(super) fn compared(name: impl Into<String>, (mean, sd): Printed, ours: &[f64]) -> Row {
    let (value, deviation) = mean_and_deviation(ours);
    let reach = deviation.and_then(|d| reach(ours.len(), d)).unwrap_or(0.0);
    let why = deviation.map(|d| spread_of_runs(ours.len(), (value, d))).unwrap_or_default();
    Row::within(name, (mean, 4), sd.max(reach), value).because(why)
}

fn columns(values: &[f64]) -> Columns {
    let s = summary(values);
    [s.max, s.mean, s.p50]
}

fn over_runs(all: &[Columns]) -> [(f64, Option<f64>); 3] {
    std::array::from_fn(|k| mean_and_deviation(&all.iter().map(|c| c[k]).collect::<Vec<f64>>()))
}

impl Leaked {
    /// Of the dFIL of records; none of none.
    pub(super) fn of(dfil: &[f64]) -> Option<Self> {
        let roots: Vec<f64> = dfil.iter().map(|v| v.max(0.0).sqrt()).collect();
        (!dfil.is_empty()).then(|| Self { dfil: columns(dfil), root: columns(&roots), over: None })
    }

    /// The mean over runs; none of none.
    pub(super) fn mean(runs: &[Self]) -> Option<Self> {
        let dfil = over_runs(&runs.iter().map(|r| r.dfil).collect::<Vec<Columns>>());
        let root = over_runs(&runs.iter().map(|r| r.root).collect::<Vec<Columns>>());
        (!runs.is_empty()).then(|| Self {
            dfil: dfil.map(|m| m.0),
            root: root.map(|m| m.0),
            over: (runs.len() > 1).then(|| (runs.len(), root.map(|m| m.1.unwrap_or(0.0)))),
        })
    }

    /// The mean of dFIL over records.
    pub(super) fn mean_dfil(&self) -> f64 {
        self.dfil[1]
    }

    /// The printed columns beside ours: √dFIL, with what the ratio is under either reading.
    pub(super) fn beside(&self, name: &str, paper: [Printed; 3], size: &str) -> Vec<Row> {
        let one = |k: usize| {
            let (printed, sd) = paper[k];
            let runs = self.over.map(|(n, deviations)| (n, deviations[k]));
            let spread = runs.map(|(n, d)| spread_of_runs(n, (self.root[k], d))).unwrap_or_default();
            let why = format!(
                "printed as dFIL, and its square root: printed over ours is {} so, and {} for dFIL itself ({}).",
                format::number(printed / self.root[k]),
                format::number(printed / self.dfil[k]),
                format::number(self.dfil[k])
            );
            let sentences: Vec<&str> = [&why, &spread, size].into_iter().filter(|s| !s.is_empty()).collect();
            let reach = runs.and_then(|(n, d)| reach(n, d)).unwrap_or(0.0);
            Row::within(format!("{name}: {} √dFIL", COLUMNS[k]), (printed, 4), sd.max(reach), self.root[k])
                .because(sentences.join(" "))
        };
        (0..COLUMNS.len()).map(one).collect()
    }

    /// Ours where the thesis prints nothing.
    pub(super) fn alone(&self, name: &str) -> Vec<Row> {
        let one = |k: usize| Row::ours(format!("{name}: {} √dFIL", COLUMNS[k]), self.root[k]);
        (0..COLUMNS.len()).map(one).collect()
    }
}

/// Which of the two readings explains the printed columns of several methods: how far printed over ours lies from 1, as the mean of
/// |ln|, and between which ends.
pub(super) fn reading(all: &[(&str, Leaked, [Printed; 3])]) -> Option<Claim> {
    let ratios = |of: fn(&Leaked) -> Columns| -> Vec<f64> {
        let each = all.iter().flat_map(move |(_, l, paper)| (0..3).map(move |k| paper[k].0 / of(l)[k]));
        each.filter(|r| r.is_finite() && *r > 0.0).collect()
    };
    let off = |ratios: &[f64]| {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let mean = ratios.iter().map(|r| r.ln().abs()).sum::<f64>() / ratios.len() as f64;
        (mean.exp(), least, most)
    };
    let (roots, plain) = (ratios(|l| l.root), ratios(|l| l.dfil));
    if roots.is_empty() || plain.is_empty() {
        return None;
    }
    let ((root, a, b), (dfil, c, d)) = (off(&roots), off(&plain));
    Some(Claim::new(
        "The printed columns are dFIL = tr I/d, and not its square root.",
        dfil < root,
        format!(
            "Read as square roots, printed over ours is between {} and {} over all {} numbers, off by a factor of {} on average; read \
             as dFIL, between {} and {}, off by {}. No constant factor (mean or sum of the loss, clip, σ, dimension) explains that.",
            format::number(a),
            format::number(b),
            roots.len(),
            format::number(root),
            format::number(c),
            format::number(d),
            format::number(dfil)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_told_from_what_they_are_roots_of() {
        let dfil: Vec<f64> = (1..=100).map(|i| 1e-4 * f64::from(i * i)).collect();
        let ours = Leaked::of(&dfil).unwrap();
        assert!((ours.root[0] - 1.0).abs() < 1e-12 && (ours.root[1] - 0.505).abs() < 1e-12);
        assert!(ours.dfil[1] < ours.root[1].powi(2) * 1.4 && ours.dfil[0] == 1.0);
        // printed as roots: the claim of the thesis does not hold, and every row agrees
        let paper = ours.root.map(|v| (v, 1e-4));
        let claim = reading(&[("DPSGD", ours, paper)]).unwrap();
        assert!(!claim.holds && claim.finding.contains("1.00"), "{}", claim.finding);
        assert!(ours.beside("DPSGD", paper, "").iter().all(|r| r.agrees == Some(true)));
        // printed as they are: it holds
        assert!(reading(&[("DPSGD", ours, ours.dfil.map(|v| (v, 1e-4)))]).unwrap().holds);
        assert!(Leaked::of(&[]).is_none() && Leaked::mean(&[]).is_none() && reading(&[]).is_none());
        let twice = Leaked::mean(&[ours, ours]).unwrap();
        assert!(twice.dfil == ours.dfil && twice.root == ours.root && twice.over == Some((2, [0.0; 3])));
    }

    /// With many runs a printed mean agrees where means of three such runs lie; with few, within its own deviation alone.
    #[test]
    fn a_mean_of_three_is_judged_by_the_spread_of_runs() {
        let runs: Vec<f64> = (0..20).map(|i| 1.0 + 0.1 * f64::from(i % 5 - 2)).collect();
        let (mean, deviation) = mean_and_deviation(&runs);
        assert!((mean - 1.0).abs() < 1e-12 && (deviation.unwrap() - (0.4_f64 / 19.0).sqrt()).abs() < 1e-12);
        // t(0.975, 19) = 2.0930
        let reach = 2.0930 * deviation.unwrap() * (1.0_f64 / 3.0 + 0.05).sqrt();
        let agrees = |printed: f64, runs: &[f64]| compared("a", (printed, 0.01), runs).agrees;
        assert_eq!(agrees(1.0 + 0.99 * reach, &runs), Some(true));
        assert_eq!(agrees(1.0 + 1.01 * reach, &runs), Some(false));
        assert_eq!(agrees(1.0 + 0.99 * reach, &runs[..5]), Some(false));
        assert!(compared("a", (1.0, 0.01), &runs).why.contains("20 runs"));
        assert_eq!(mean_and_deviation(&[2.0]), (2.0, None));
    }
}
