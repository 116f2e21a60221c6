//! Which thousand of the file the records of table 3.4 are: the largest dFIL of a run is that of one record, and another thousand
//! has another.

use super::super::Context;
use super::informed::{Pool, SIGMA, train};
use super::leaked::mean_and_deviation;
use leakscope::Result;
use leakscope_report::format;
use leakscope_report::reproduction::Row;

/// Starts of each piece, at most.
const STARTS: u64 = 6;

/// The largest √dFIL of a method that is not perturbed: its means over some starts, from the lowest of all consecutive pieces of the
/// file, each as long as the known records are, to the highest.
pub(super) struct Thousands {
    size: usize,
    starts: u64,
    /// By piece.
    largest: Vec<f64>,
}

impl Thousands {
    /// With all parameters trained or the larger half, from at most so many starts; the pool is as it was afterwards.
    pub(super) fn of(context: &Context<'_>, pool: &mut Pool, (half, starts): (bool, u64)) -> Result<Self> {
        let parts = pool.parts;
        let (size, starts) = (parts[1], starts.min(STARTS));
        let pieces = pool.images.labels.len() / size.max(1);
        let largest = (0..pieces)
            .map(|k| {
                pool.parts[0] = k * size;
                let of = |seed| train(context, pool, (SIGMA, half, None), (5, seed));
                let all: Vec<f64> = (context.seed..context.seed + starts)
                    .filter_map(|seed| of(seed).map(|ran| ran.dfil.map(|d| d.root[0])).transpose())
                    .collect::<Result<_>>()?;
                Ok(mean_and_deviation(&all).0)
            })
            .collect::<Result<Vec<f64>>>();
        pool.parts = parts;
        Ok(Self { size, starts, largest: largest? })
    }

    /// What it means for the printed number, and the two ends.
    pub(super) fn beside(&self, name: &str, (printed, row): (f64, Row)) -> [Row; 3] {
        let [low, high] = self.ends();
        let inside = if (low..=high).contains(&printed) { "among them" } else { "not among them" };
        let why = format!(
            "{} It is the number of one record, and another piece of the file has another: over its {} consecutive pieces of {} 0s \
             and 1s it is between {} and {} (the mean of {} each). The printed one is {inside}, and which piece it is of is not printed.",
            row.why,
            self.largest.len(),
            format::count(self.size as u64),
            format::number(low),
            format::number(high),
            format::counted(self.starts, "start")
        );
        let end = |which: &str, value: f64| {
            Row::ours(format!("{name}: largest √dFIL, {which} of all pieces of the file"), value)
        };
        [row.because(why.trim_start()), end("lowest", low), end("highest", high)]
    }

    fn ends(&self) -> [f64; 2] {
        let low = self.largest.iter().copied().fold(f64::INFINITY, f64::min);
        [low, self.largest.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_largest_is_among_the_pieces_or_not() {
        let all = Thousands { size: 1000, starts: 6, largest: vec![4.2, 4.06, 4.57] };
        assert_eq!(all.ends(), [4.06, 4.57]);
        let why = |printed| {
            let row = Row::printed("largest", printed, 4, 4.3).because("A spread.");
            all.beside("DPSGD", (printed, row)).map(|r| r.why)
        };
        assert!(why(4.1469)[0].starts_with("A spread. It is") && why(4.1469)[0].contains("is among them"));
        assert!(why(4.05)[0].contains("is not among them"));
    }
}
