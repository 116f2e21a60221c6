//! What each value of a record gives away, on average over records: summed as they are measured, so that no record's
//! own row is kept unless it is asked for.

use super::measuring::Leak;
use leakscope_report::net::Element;

/// Sums over records.
#[derive(Debug, Default)]
pub(super) struct Elements {
    records: f64,
    information: Vec<f64>,
    plis: Vec<f64>,
    /// PLIS of every value of every record, where it is kept.
    maps: Option<Vec<f64>>,
}

impl Elements {
    /// Sums that keep PLIS of every record beside, or not.
    pub(super) fn keeping(maps: bool) -> Self {
        Self { maps: maps.then(Vec::new), ..Self::default() }
    }

    /// PLIS of every value, record by record, where it is kept.
    pub(super) fn into_maps(self) -> Vec<f64> {
        self.maps.unwrap_or_default()
    }

    /// Adds a record and takes its rows away.
    pub(super) fn add(&mut self, leak: &mut Leak) {
        let information = std::mem::take(&mut leak.released.information);
        let plis = std::mem::take(&mut leak.released.plis_parts);
        if let Some(plain) = &mut leak.plain {
            (plain.information, plain.plis_parts) = (Vec::new(), Vec::new());
        }
        self.records += 1.0;
        if let Some(maps) = &mut self.maps {
            maps.extend(&plis);
        }
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
