//! What each value of a record gives away, on average over records: summed as they are measured, so that no record's
//! own row is kept.

use super::audit::Leak;
use leakscope_report::net::Element;

/// Sums over records.
#[derive(Debug, Default)]
pub(super) struct Elements {
    records: f64,
    information: Vec<f64>,
    plis: Vec<f64>,
}

impl Elements {
    /// Adds a record and takes its rows away.
    pub(super) fn add(&mut self, leak: &mut Leak) {
        let information = std::mem::take(&mut leak.released.information);
        let plis = leak.plain.as_mut().map(|p| std::mem::take(&mut p.plis_parts)).unwrap_or_default();
        self.records += 1.0;
        for (sum, row) in [(&mut self.information, information), (&mut self.plis, plis)] {
            sum.resize(sum.len().max(row.len()), 0.0);
            sum.iter_mut().zip(row).for_each(|(s, v)| *s += v.abs());
        }
    }

    /// Means of the first `values` values of a record; those of a secret label come after and are left out.
    pub(super) fn means(&self, values: usize) -> Vec<Element> {
        let mean = |sum: f64| sum / self.records.max(1.0);
        self.information
            .iter()
            .take(values)
            .enumerate()
            .map(|(i, &sum)| Element {
                element: i as u64,
                information: mean(sum),
                plis: self.plis.get(i).map(|&s| mean(s)),
            })
            .collect()
    }
}
