//! Synthetic patients in the manner of the warfarin data: numbers, categories, a sensitive genotype, a group, an id.
//!
//! Nobody in this table exists. Frequencies of the genotypes and the dose depend on ancestry, age, body and drugs
//! roughly as published dosing algorithms have it, so that the example behaves as real data do.

use std::fmt::Write;

/// Seed and size of the table that ships as `examples/patients.csv`.
pub const SHIPPED: (u64, usize) = (2026, 3000);

/// The table as CSV.
pub fn table(seed: u64, rows: usize) -> String {
    let mut random = Random(seed);
    let mut csv =
        String::from("patient,age,height,weight,race,amiodarone,enzyme_inducer,cyp2c9,vkorc1,dose\n");
    let mut number = 10_000;
    for _ in 0..rows {
        number += 1 + random.below(9);
        let race = random.choose(&[("asian", 0.30), ("black", 0.12), ("white", 0.58)]);
        let male = random.uniform() < 0.55;
        let age = (64.0 + 14.5 * random.normal()).clamp(18.0, 95.0).round();
        let stature = if race == "asian" { 158.0 } else { 164.0 };
        let height =
            (stature + if male { 10.0 } else { 0.0 } + 6.8 * random.normal()).clamp(130.0, 210.0).round();
        let typical_weight = (height - 100.0) * if race == "asian" { 1.02 } else { 1.18 };
        let weight = (typical_weight * (0.19 * random.normal()).exp()).clamp(35.0, 220.0);
        let amiodarone = if random.uniform() < 0.06 { "yes" } else { "no" };
        let inducer = if random.uniform() < 0.02 { "yes" } else { "no" };
        let vkorc1 = match race {
            "asian" => random.choose(&[("AA", 0.79), ("AG", 0.19), ("GG", 0.02)]),
            "black" => random.choose(&[("AA", 0.02), ("AG", 0.20), ("GG", 0.78)]),
            _ => random.choose(&[("AA", 0.15), ("AG", 0.47), ("GG", 0.38)]),
        };
        let cyp2c9 = match race {
            "asian" => random.choose(&[("*1/*1", 0.93), ("*1/*3", 0.07)]),
            "black" => random.choose(&[("*1/*1", 0.93), ("*1/*2", 0.05), ("*1/*3", 0.02)]),
            _ => random.choose(&[
                ("*1/*1", 0.665),
                ("*1/*2", 0.19),
                ("*1/*3", 0.11),
                ("*2/*2", 0.013),
                ("*2/*3", 0.015),
                ("*3/*3", 0.007),
            ]),
        };
        // Square root of the weekly dose in mg, linear in the rest.
        let genotype = match vkorc1 {
            "AA" => -1.70,
            "AG" => -0.87,
            _ => 0.0,
        } + match cyp2c9 {
            "*1/*2" => -0.52,
            "*1/*3" => -0.94,
            "*2/*2" => -1.06,
            "*2/*3" => -1.92,
            "*3/*3" => -2.33,
            _ => 0.0,
        };
        let root = 5.61 - 0.026 * (age - 20.0)
            + 0.0087 * (height - 100.0)
            + 0.0128 * (weight - 30.0)
            + genotype
            + if race == "asian" {
                -0.11
            } else if race == "black" {
                -0.28
            } else {
                0.0
            }
            + if amiodarone == "yes" { -0.55 } else { 0.0 }
            + if inducer == "yes" { 1.18 } else { 0.0 }
            + 0.95 * random.normal();
        let dose = root.max(1.0).powi(2);
        // Writing to a string cannot fail.
        let _ = writeln!(
            csv,
            "P-{number},{age:.0},{height:.0},{weight:.1},{race},{amiodarone},{inducer},{cyp2c9},{vkorc1},{dose:.1}"
        );
    }
    csv
}

/// splitmix64: a fixed stream for a seed, on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform on (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.uniform() * n as f64) as u64
    }

    /// Standard normal (Box–Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn choose(&mut self, weighted: &[(&'static str, f64)]) -> &'static str {
        let mut left = self.uniform() * weighted.iter().map(|(_, w)| w).sum::<f64>();
        for (value, weight) in weighted {
            left -= weight;
            if left < 0.0 {
                return value;
            }
        }
        weighted.last().map_or("", |(value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_what_the_generator_makes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/patients.csv");
        let shipped = std::fs::read_to_string(path).unwrap();
        assert!(
            shipped == table(SHIPPED.0, SHIPPED.1),
            "make it again: leakscope demo ⟨table⟩ > examples/patients.csv"
        );
    }

    #[test]
    fn ids_are_unique_and_sizes_as_asked() {
        let csv = table(7, 500);
        let ids: std::collections::HashSet<&str> =
            csv.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
        assert_eq!(ids.len(), 500);
        assert_ne!(table(8, 500), csv);
    }
}
