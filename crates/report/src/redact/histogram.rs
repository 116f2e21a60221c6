//! Bars of few records, merged: with their neighbours, beyond an end, and at last all into one.

use super::audit::{FEW, up};
use crate::document::audit::{Histogram, Series};
use crate::document::choice::SeriesBy;
use crate::document::net;

/// No bar of a series holds fewer than ten records, but for none.
pub(super) fn coarsened(h: &mut Histogram) {
    let bins = h.series.iter().map(|s| s.counts.len()).max().unwrap_or(0);
    h.series.iter_mut().for_each(|s| s.counts.resize(bins, 0));
    let (low, high) = (h.low, up(h.high));
    h.high = high;
    if bins == 0 || fits(&h.series, 1, bins) {
        return;
    }
    let several = h.series.len() > 1;
    let together = [merged(&h.series)];
    let choice = shape(&h.series, bins, if several { 8 } else { 1 })
        .map(|(by, kept)| (h.series.as_slice(), by, kept))
        .or_else(|| shape(&together, bins, 1).map(|(by, kept)| (together.as_slice(), by, kept)));
    let (series, by, kept) = choice.unwrap_or((&together, bins, 1));
    let beyond: u64 = series.iter().flat_map(|s| s.counts.iter().skip(by * kept)).sum();
    let coarse: Vec<Series> =
        series.iter().map(|s| Series { counts: folded(&s.counts, by, kept), ..s.clone() }).collect();
    let width = (high - low) / bins as f64;
    h.high = low + width * (by * kept).min(bins.next_multiple_of(by)) as f64;
    h.beyond = if beyond > 0 { beyond } else { h.beyond };
    if coarse.len() < h.series.len() {
        h.by = SeriesBy::All;
    }
    h.series = coarse;
}

fn merged(series: &[Series]) -> Series {
    let bins = series.first().map_or(0, |s| s.counts.len());
    let counts: Vec<u64> = (0..bins).map(|i| series.iter().map(|s| s.counts[i]).sum()).collect();
    let n: f64 = counts.iter().sum::<u64>() as f64;
    let sum: f64 = series.iter().map(|s| s.mean * s.counts.iter().sum::<u64>() as f64).sum();
    Series { name: "all".into(), mean: if n > 0.0 { up(sum / n) } else { 0.0 }, counts }
}

/// The finest bars, `by` bins each, of which so many are kept and the rest counted in the last; at least `least` of them.
fn shape(series: &[Series], bins: usize, least: usize) -> Option<(usize, usize)> {
    let widths = std::iter::successors(Some(1), |by| Some(2 * by)).take_while(|by| *by < 2 * bins);
    let all = widths.flat_map(|by| (1..=bins.div_ceil(by)).rev().map(move |kept| (by, kept)));
    let mut all: Vec<(usize, usize)> = all.filter(|(_, kept)| *kept >= least).collect();
    // More bars come first, and of as many the narrower.
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    all.into_iter().find(|(by, kept)| fits(series, *by, *kept))
}

fn folded(counts: &[u64], by: usize, kept: usize) -> Vec<u64> {
    let mut out = vec![0; kept];
    counts.iter().enumerate().for_each(|(i, c)| out[(i / by).min(kept - 1)] += c);
    out
}

fn fits(series: &[Series], by: usize, kept: usize) -> bool {
    series.iter().flat_map(|s| folded(&s.counts, by, kept)).all(|c| c == 0 || c >= FEW)
}

/// The same of a network's, whose bars may be of any width.
pub(super) fn of_network(h: &mut net::Histogram) {
    if h.edges.len() != h.counts.len() + 1 {
        return;
    }
    let (mut edges, mut counts) = (vec![h.edges[0]], vec![]);
    let mut sum = 0;
    for (count, end) in h.counts.iter().zip(&h.edges[1..]) {
        sum += count;
        if sum == 0 || sum >= FEW {
            counts.push(std::mem::take(&mut sum));
            edges.push(*end);
        }
    }
    if sum > 0 {
        // What is left over joins the last that has any.
        while counts.last().is_some_and(|c| *c == 0) {
            counts.pop();
            edges.pop();
        }
        if let Some(last) = counts.last_mut() {
            *last += sum;
            edges.pop();
        } else {
            counts.push(sum);
        }
        edges.push(h.edges[h.edges.len() - 1]);
    }
    (h.edges, h.counts) = (edges, counts);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(all: &[&[u64]]) -> Histogram {
        let series = all.iter().map(|c| Series { name: "x".into(), mean: 1.0, counts: c.to_vec() });
        Histogram { low: 0.0, high: 8.0, beyond: 0, by: SeriesBy::Group, series: series.collect() }
    }

    #[test]
    fn no_bar_is_of_few_and_none_is_lost() {
        let cases: [&[&[u64]]; 6] = [
            &[&[50, 40, 12, 3, 0, 0, 0, 1]],
            &[&[3, 0, 0, 0, 0, 0, 0, 1]],
            &[&[50, 40, 12, 3, 0, 0, 0, 1], &[20, 10, 0, 0, 0, 0, 0, 0]],
            &[&[5, 40, 12, 3, 0, 0, 0, 1], &[2, 10, 0, 0, 9, 0, 0, 0]],
            &[&[10, 20]],
            &[&[]],
        ];
        for case in cases {
            let mut h = histogram(case);
            coarsened(&mut h);
            let all: u64 = case.iter().flat_map(|c| c.iter()).sum();
            assert_eq!(h.series.iter().flat_map(|s| &s.counts).sum::<u64>(), all, "{h:?}");
            assert!(
                all < FEW || h.series.iter().flat_map(|s| &s.counts).all(|c| *c == 0 || *c >= FEW),
                "{h:?}"
            );
        }
        let mut h = histogram(&[&[50, 40, 12, 3, 0, 0, 0, 1]]);
        coarsened(&mut h);
        assert_eq!((h.series[0].counts.clone(), h.high, h.beyond), (vec![50, 40, 16], 3.0, 4));
        for counts in [vec![3, 0, 20, 1, 0], vec![0, 0, 4], vec![12, 1, 1, 1, 9, 0, 2]] {
            let edges = (0..=counts.len()).map(|i| i as f64).collect();
            let all: u64 = counts.iter().sum();
            let mut h = net::Histogram { edges, counts, logarithmic: false };
            of_network(&mut h);
            assert_eq!(h.counts.iter().sum::<u64>(), all);
            assert_eq!(h.edges.len(), h.counts.len() + 1, "{h:?}");
            assert!(all < FEW || h.counts.iter().all(|c| *c == 0 || *c >= FEW), "{h:?}");
        }
    }
}
