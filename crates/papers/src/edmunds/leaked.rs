//! What the thesis prints as dFIL: the square root of it.
//!
//! Read as `tr I/d`, the printed columns differ from ours by factors from 0.2 to 70. Read as its square root, all of them
//! follow: what the published code logs is `√(tr I/d)` of every record, and the largest, mean and median of those are printed. The mean
//! of roots is not the root of the mean, so that no single factor leads from one to the other.

use super::super::images::summary;
use super::tables::Printed;
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
}

fn columns(values: &[f64]) -> Columns {
    let s = summary(values);
    [s.max, s.mean, s.p50]
}

fn mean(all: impl Iterator<Item = Columns> + Clone) -> Columns {
    let n = all.clone().count().max(1) as f64;
    std::array::from_fn(|k| all.clone().map(|c| c[k]).sum::<f64>() / n)
}

impl Leaked {
    /// Of the dFIL of records; none of none.
    pub(super) fn of(dfil: &[f64]) -> Option<Self> {
        let roots: Vec<f64> = dfil.iter().map(|v| v.max(0.0).sqrt()).collect();
        (!dfil.is_empty()).then(|| Self { dfil: columns(dfil), root: columns(&roots) })
    }

    /// The mean over runs; none of none.
    pub(super) fn mean(runs: &[Self]) -> Option<Self> {
        (!runs.is_empty()).then(|| Self {
            dfil: mean(runs.iter().map(|r| r.dfil)),
            root: mean(runs.iter().map(|r| r.root)),
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
            let why = format!(
                "printed as dFIL, and its square root: printed over ours is {} so, and {} for dFIL itself ({}). {size}",
                format::number(printed / self.root[k]),
                format::number(printed / self.dfil[k]),
                format::number(self.dfil[k])
            );
            Row::within(format!("{name}: {} √dFIL", COLUMNS[k]), (printed, 4), sd, self.root[k])
                .because(why.trim_end())
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
        assert_eq!(Leaked::mean(&[ours, ours]), Some(ours));
    }
}
