//! Numbers of a stream: moments, quantiles and histograms in bounded memory, mergeable.

use crate::pass::{Merge, overflowing};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Up to this many values a [`Distribution`] keeps them all and its quantiles are exact.
pub const EXACT_UP_TO: usize = 1 << 18;
/// Beyond, values fall into buckets of relative width 2⁻¹², so quantiles are right to 1.3e-4.
const MANTISSA_BITS: u32 = 12;
/// Sign and exponent of a float: buckets are kept by octave, and only octaves that occur take memory.
const OCTAVES: usize = 1 << 12;
const PER_OCTAVE: usize = 1 << MANTISSA_BITS;

/// The distribution of the finite values of a stream: count, moments, extremes, quantiles, histogram.
///
/// Memory is bounded whatever the length of the stream. Moments and extremes are always exact; quantiles are
/// exact for up to [`EXACT_UP_TO`] values and right to a relative 1.3e-4 beyond.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    moments: Moments,
    min: f64,
    max: f64,
    exact: Vec<f64>,
    /// Counts by octave and bucket; empty while all values are kept.
    buckets: Vec<Option<Box<[u64]>>>,
}

/// Count, mean and squares about the mean of a stream: one value at a time (Welford), or many (Chan).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// Their mean.
    #[serde(serialize_with = "overflowing::number")]
    pub mean: f64,
    /// `Σ (x − mean)²`.
    #[serde(serialize_with = "overflowing::number")]
    pub m2: f64,
}

impl Moments {
    /// Of values that are all there, in two passes over them.
    pub(crate) fn of(xs: &[f64]) -> Self {
        let mean = xs.iter().sum::<f64>() / xs.len().max(1) as f64;
        let m2 = xs.iter().map(|x| (x - mean).powi(2)).sum();
        Self { count: xs.len() as u64, mean, m2 }
    }

    /// Adds one value.
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        let d = x - self.mean;
        self.mean += d / self.count as f64;
        self.m2 += d * (x - self.mean);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let d = other.mean - self.mean;
        self.mean += d * m / (n + m);
        self.m2 += other.m2 + d * d * n * m / (n + m);
        self.count += other.count;
    }
}

/// Mean, spread and quantiles of a distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (of the population: divided by n).
    pub std: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Distribution {
    /// Of a stream of so many values, or of a part of one. Where they are more than are kept, they fall into buckets from the first:
    /// whole and in parts this comes to the same distribution, and a part of it takes little room.
    pub fn of_stream(values: u64) -> Self {
        let mut out = Self::default();
        if values > EXACT_UP_TO as u64 {
            out.spill();
        }
        out
    }

    /// Adds one value; it must be finite.
    pub fn add(&mut self, x: f64) {
        self.extend(&[x]);
    }

    /// Adds values; they must be finite.
    pub fn extend(&mut self, xs: &[f64]) {
        if xs.is_empty() {
            return;
        }
        debug_assert!(xs.iter().all(|x| x.is_finite()), "a distribution takes finite values");
        let (min, max) = xs.iter().fold((xs[0], xs[0]), |(lo, hi), &x| (lo.min(x), hi.max(x)));
        self.add_moments(Moments::of(xs), min, max);
        if self.buckets.is_empty() {
            self.exact.extend_from_slice(xs);
            if self.exact.len() > EXACT_UP_TO {
                self.spill();
            }
        } else {
            xs.iter().for_each(|&x| self.count_in(bucket(x), 1));
        }
    }

    fn add_moments(&mut self, moments: Moments, min: f64, max: f64) {
        if self.moments.count == 0 {
            (self.moments, self.min, self.max) = (moments, min, max);
            return;
        }
        self.moments.merge(&moments);
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: Self) {
        if other.moments.count == 0 {
            return;
        }
        if self.moments.count == 0 {
            *self = other;
            return;
        }
        self.add_moments(other.moments, other.min, other.max);
        if self.buckets.is_empty() && other.buckets.is_empty() {
            self.exact.extend(other.exact);
            if self.exact.len() > EXACT_UP_TO {
                self.spill();
            }
        } else {
            self.spill();
            other.exact.iter().for_each(|&x| self.count_in(bucket(x), 1));
            other.for_each_bucket(|key, count| self.count_in(key, count));
        }
    }

    fn spill(&mut self) {
        if self.buckets.is_empty() {
            self.buckets.resize(OCTAVES, None);
        }
        for x in std::mem::take(&mut self.exact) {
            self.count_in(bucket(x), 1);
        }
    }

    fn count_in(&mut self, key: usize, count: u64) {
        let octave = self.buckets[key / PER_OCTAVE].get_or_insert_with(|| vec![0; PER_OCTAVE].into());
        octave[key % PER_OCTAVE] += count;
    }

    /// Every bucket that has values, in order.
    fn for_each_bucket(&self, mut put: impl FnMut(usize, u64)) {
        for (octave, counts) in self.buckets.iter().enumerate() {
            for (i, &count) in counts.iter().flat_map(|c| c.iter()).enumerate() {
                if count > 0 {
                    put(octave * PER_OCTAVE + i, count);
                }
            }
        }
    }

    /// How many values were added.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// Mean; 0 where there are no values.
    pub fn mean(&self) -> f64 {
        self.moments.mean
    }

    /// Standard deviation, divided by n.
    pub fn std(&self) -> f64 {
        if self.moments.count == 0 {
            0.0
        } else {
            (self.moments.m2 / self.moments.count as f64).max(0.0).sqrt()
        }
    }

    /// Smallest value; 0 where there are none.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// Largest value; 0 where there are none.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Quantile with linear interpolation, as numpy's default. 0 where there are no values.
    pub fn quantile(&self, q: f64) -> f64 {
        self.quantiles(&[q])[0]
    }

    /// Several quantiles at the cost of one sort.
    pub fn quantiles(&self, qs: &[f64]) -> Vec<f64> {
        if self.moments.count == 0 {
            return vec![0.0; qs.len()];
        }
        let mut sorted = self.exact.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        qs.iter()
            .map(|q| {
                let rank = q.clamp(0.0, 1.0) * (self.moments.count - 1) as f64;
                let (lo, frac) = (rank.floor(), rank - rank.floor());
                let a = self.order_statistic(&sorted, lo as u64);
                if frac == 0.0 {
                    return a;
                }
                let b = self.order_statistic(&sorted, lo as u64 + 1);
                a + frac * (b - a)
            })
            .collect()
    }

    /// The value of rank `k`, counted from 0.
    fn order_statistic(&self, sorted: &[f64], k: u64) -> f64 {
        if self.buckets.is_empty() {
            return sorted[(k as usize).min(sorted.len() - 1)];
        }
        let (mut seen, mut value) = (0, self.max);
        self.for_each_bucket(|key, count| {
            if seen <= k && seen + count > k {
                value = middle(key).clamp(self.min, self.max);
            }
            seen += count;
        });
        value
    }

    /// Share of values that are at most `x`.
    pub fn rank(&self, x: f64) -> f64 {
        if self.moments.count == 0 {
            return 0.0;
        }
        let below = if self.buckets.is_empty() {
            self.exact.iter().filter(|&&v| v <= x).count() as u64
        } else {
            let mut below = 0;
            self.for_each_bucket(|key, count| below += if key <= bucket(x) { count } else { 0 });
            below
        };
        below as f64 / self.moments.count as f64
    }

    /// Counts in `bins` equal intervals of `[lo, hi]`; what lies outside falls into the first or last.
    pub fn histogram(&self, lo: f64, hi: f64, bins: usize) -> Vec<u64> {
        let mut counts = vec![0; bins.max(1)];
        let width = (hi - lo) / counts.len() as f64;
        let last = counts.len() - 1;
        let mut put = |x: f64, n: u64| {
            let i = if width > 0.0 { ((x - lo) / width).floor() } else { 0.0 };
            counts[(i.max(0.0) as usize).min(last)] += n;
        };
        self.exact.iter().for_each(|&x| put(x, 1));
        self.for_each_bucket(|key, n| put(middle(key), n));
        counts
    }

    /// Mean, spread and quantiles.
    pub fn summary(&self) -> Summary {
        let q = self.quantiles(&[0.5, 0.9, 0.95, 0.99]);
        Summary {
            mean: self.mean(),
            std: self.std(),
            min: self.min,
            max: self.max,
            p50: q[0],
            p90: q[1],
            p95: q[2],
            p99: q[3],
        }
    }
}

impl Merge for Distribution {
    fn merge(&mut self, later: Self) {
        Self::merge(self, later);
    }
}

/// A distribution as it is written: of buckets those that have values, by octave.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    moments: Moments,
    min: f64,
    max: f64,
    exact: Cow<'a, [f64]>,
    octaves: Vec<(usize, Vec<(usize, u64)>)>,
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let filled = |counts: &[u64]| -> Vec<(usize, u64)> {
            counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
        };
        let octaves = self.buckets.iter().enumerate();
        Written {
            moments: self.moments,
            min: self.min,
            max: self.max,
            exact: Cow::Borrowed(&self.exact),
            octaves: octaves.filter_map(|(k, counts)| Some((k, filled(counts.as_ref()?)))).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |problem| D::Error::custom(format_args!("a distribution {problem}"));
        let Written { moments, min, max, exact, octaves } = Written::deserialize(deserializer)?;
        let mut d = Self { moments, min, max, exact: exact.into_owned(), buckets: vec![] };
        if ![min, max].iter().chain(&d.exact).all(|x| x.is_finite()) {
            return Err(wrong("has values that are not finite"));
        }
        if !octaves.is_empty() {
            d.buckets.resize(OCTAVES, None);
        }
        let mut count = d.exact.len() as u64;
        for (octave, counts) in octaves {
            for (i, n) in counts {
                if octave >= OCTAVES || i >= PER_OCTAVE {
                    return Err(wrong("has a bucket that there is none of"));
                }
                count = count.checked_add(n).ok_or_else(|| wrong("has more values than can be counted"))?;
                d.count_in(octave * PER_OCTAVE + i, n);
            }
        }
        let spilled = !d.buckets.is_empty();
        if count != moments.count || spilled && !d.exact.is_empty() || d.exact.len() > EXACT_UP_TO {
            return Err(wrong("does not have as many values as it says"));
        }
        Ok(d)
    }
}

/// Order-preserving bucket of a float: its ordered bit pattern without the low mantissa bits.
fn bucket(x: f64) -> usize {
    let bits = x.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | (1 << 63) };
    (ordered >> (52 - MANTISSA_BITS)) as usize
}

/// The middle of a bucket.
fn middle(key: usize) -> f64 {
    let shift = 52 - MANTISSA_BITS;
    let ordered = ((key as u64) << shift) | (1 << (shift - 1));
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        let mut d = Distribution::default();
        [3.0, 1.0, 2.0, 4.0].into_iter().for_each(|x| d.add(x));
        assert_eq!(d.quantile(0.5), 2.5);
        assert_eq!(d.quantile(0.0), 1.0);
        assert_eq!(d.quantile(1.0), 4.0);
        assert!((d.quantile(0.9) - 3.7).abs() < 1e-15);
        assert_eq!(d.mean(), 2.5);
        assert!((d.std() - 1.25_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn a_long_stream_keeps_its_quantiles_to_the_stated_precision_and_bounded_memory() {
        let value = |i: u64| (-5.0 + 10.0 * ((i * 7919) % 1_000_003) as f64 / 1_000_003.0).exp();
        let (mut whole, mut left, mut right) = <(Distribution, Distribution, Distribution)>::default();
        for i in 0..600_000 {
            whole.add(value(i));
            if i < 200_000 { left.add(value(i)) } else { right.add(value(i)) }
        }
        left.merge(right);
        let mut all: Vec<f64> = (0..600_000).map(value).collect();
        all.sort_by(f64::total_cmp);
        for q in [0.01, 0.5, 0.99] {
            let exact = all[(q * 599_999.0_f64).floor() as usize];
            for d in [&whole, &left] {
                assert!((d.quantile(q) / exact - 1.0).abs() < 2.0 * 1.3e-4, "{q}");
            }
        }
        assert!(left.exact.is_empty() && left.buckets.iter().flatten().count() < 20);
        assert_eq!(left.count(), 600_000);
        assert!((left.mean() / whole.mean() - 1.0).abs() < 1e-12);
        assert_eq!(left.histogram(0.0, 150.0, 10).iter().sum::<u64>(), 600_000);
    }

    #[test]
    fn a_part_of_a_long_stream_is_short_and_comes_to_the_same() {
        let values: Vec<f64> =
            (0..300_000_u64).map(|i| ((i * 7919) % 1_000_003) as f64 / 1000.0 - 3.0).collect();
        let (mut kept, mut counted) = (Distribution::default(), Distribution::of_stream(300_000));
        for part in values.chunks(100_000) {
            let mut of_part = (Distribution::default(), Distribution::of_stream(300_000));
            of_part.0.extend(part);
            of_part.1.extend(part);
            let bytes = crate::pass::bytes::write("d", 0, &of_part.1).unwrap();
            assert!(bytes.len() < 8 * part.len() / 5, "{} bytes", bytes.len());
            kept.merge(of_part.0);
            counted.merge(crate::pass::bytes::read("d", 0, &bytes).unwrap());
        }
        assert_eq!(kept, counted);
        assert_eq!(Distribution::of_stream(EXACT_UP_TO as u64), Distribution::default());
        // a part without values
        let nothing = crate::pass::bytes::write("d", 0, &Distribution::of_stream(300_000)).unwrap();
        counted.merge(crate::pass::bytes::read("d", 0, &nothing).unwrap());
        assert_eq!(kept, counted);
    }

    #[test]
    fn a_distribution_is_written_and_read_bit_for_bit() {
        let value = |i: u64| (((i * 7919) % 1_000_003) as f64 - 3e5).powi(3);
        for n in [0, 1, 1000, EXACT_UP_TO as u64 + 1000] {
            let mut d = Distribution::default();
            let values: Vec<f64> = (0..n).map(value).collect();
            values.chunks(777).for_each(|c| d.extend(c));
            let bytes = crate::pass::bytes::write("d", 0, &d).unwrap();
            assert_eq!(crate::pass::bytes::read::<Distribution>("d", 0, &bytes).unwrap(), d);
            let json = serde_json::to_string(&d).unwrap();
            assert_eq!(serde_json::from_str::<Distribution>(&json).unwrap(), d);
            let one_more = json.replacen(&format!("\"count\":{n}"), &format!("\"count\":{}", n + 1), 1);
            assert!(serde_json::from_str::<Distribution>(&one_more).is_err());
        }
        let far = r#"{"moments":{"count":1,"mean":0,"m2":0},"min":0,"max":0,"exact":[],"octaves":[[4096,[[0,1]]]]}"#;
        assert!(serde_json::from_str::<Distribution>(far).unwrap_err().to_string().contains("bucket"));
        let twice = format!(
            r#"{{"moments":{{"count":0,"mean":0,"m2":0}},"min":0,"max":0,"exact":[],"octaves":[[1,[[0,{}],[0,1]]]]}}"#,
            u64::MAX
        );
        assert!(serde_json::from_str::<Distribution>(&twice).is_err());
    }

    #[test]
    fn buckets_keep_the_order_of_floats() {
        let xs = [-1e300, -2.5, -1e-300, 0.0, 1e-300, 1.0, 1.001, 1e300];
        for pair in xs.windows(2) {
            assert!(bucket(pair[0]) <= bucket(pair[1]));
        }
        for x in [-2.5, 1.0, 3e-200] {
            assert!((middle(bucket(x)) / x - 1.0).abs() < 1.3e-4);
        }
    }
}
