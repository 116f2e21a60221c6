//! What was found, as an [`Audit`]: plain data in words that a reader knows.

use super::facts::Facts;
use super::measure::Measured;
use super::score::Scored;
use super::utility::Cost;
use super::{AttributeSlot, Limit, Request, Statistic, target_unit};
use crate::labelled::Names;
use crate::model::class_names;
use crate::remarks::{duplicates, notes};
use crate::scaling::is_uncounted;
use crate::telling::target_spread;
use leakscope_core::bound::estimation;
use leakscope_core::claim::Measured as Estimate;
use leakscope_core::measure::{EXTREMES, Extreme};
use leakscope_core::num::Distribution;
use leakscope_report::Audit;
use leakscope_report::audit::{self as report, ReadOff, SigmaSource, Timings};
use leakscope_report::choice::{self, ColumnKind, ColumnRole, Roles, SeriesBy};
use leakscope_report::tell::Tell;
use leakscope_report::verdict::of_audit;
use leakscope_table::{Attribute, Encoding, Kind, Missing, Role, Scale, TargetCoding};

const BINS: usize = 60;
/// Records listed at either end.
const LISTED: usize = 25;
/// Records stand out above this many medians.
const STAND_OUT: f64 = 3.0;

/// Everything that an audit is made from.
pub(super) struct AuditParts<'a> {
    pub(super) request: &'a Request,
    pub(super) encoding: &'a Encoding,
    pub(super) facts: Facts,
    pub(super) slots: &'a [AttributeSlot],
    pub(super) measured: Measured,
    pub(super) scaling: Option<report::ScalingEffect>,
    pub(super) tell: Tell,
    pub(super) sigma: f64,
    pub(super) sigma_source: SigmaSource,
    pub(super) noise: Option<leakscope_report::noise::Noise>,
    pub(super) inference: Option<leakscope_report::noise::Inference>,
    pub(super) seed: Option<u64>,
    pub(super) utility: Option<Cost>,
    pub(super) score: Option<Scored>,
    pub(super) secret: Option<leakscope_report::bound::SecretBounds>,
    pub(super) timings: Timings,
}

impl AuditParts<'_> {
    /// The unit of an attribute: as it was asked for, or as its values are written.
    fn unit_of(&self, a: &Attribute) -> Option<String> {
        let chosen = self.request.units.iter().find(|(n, _)| *n == a.name).map(|(_, u)| u.clone());
        // An error of a date is in days, since whenever they are counted.
        chosen.or_else(|| a.unit.as_deref().map(|u| u.split(" since ").next().unwrap_or(u).to_owned()))
    }

    /// The audit.
    pub(super) fn audit(mut self) -> Audit {
        let mut warnings = self.warnings();
        if let Some(cost) = &mut self.utility {
            warnings.append(&mut cost.warnings);
        }
        let attributes = self.attributes();
        let groups = self.groups();
        let means = || groups.iter().map(|g| g.eta_mean).filter(|m| *m > 0.0);
        let ratio = means().fold(0.0, f64::max) / means().fold(f64::INFINITY, f64::min);
        let histogram = self.histogram();
        let score = self.score.take().map(|s| self.score(s, &histogram));
        let dataset = report::Dataset { eta: self.facts.whole };
        let release = self.facts.release;
        let mut audit = Audit {
            schema: report::SCHEMA.into(),
            leakscope: env!("CARGO_PKG_VERSION").into(),
            created: crate::clock::now(),
            tables: vec![],
            verdict: None,
            data: self.data(),
            n: self.facts.n,
            d: self.encoding.data_width(),
            sigma: self.sigma,
            sigma_source: self.sigma_source.clone(),
            noise: self.noise.take(),
            inference: self.inference.take(),
            releases: release.releases,
            label_secret: release.label_secret,
            redact: self.request.redact,
            seed: self.seed,
            model: self.facts.model.clone(),
            records: self.records(histogram),
            dataset,
            attributes,
            label: self.label(),
            tell: Some(self.tell.clone()),
            scaling: self.scaling.clone(),
            group_ratio: (groups.len() > 1 && ratio.is_finite() && ratio > 0.0).then_some(ratio),
            groups,
            classes: std::mem::take(&mut self.facts.classes),
            utility: self.utility.as_ref().map(|c| c.utility.clone()),
            secret: self.secret.take(),
            score,
            limits: self.limits(),
            warnings,
            notes: notes(self.encoding),
            assumptions: self.assumptions(),
            timings: self.timings,
        };
        audit.verdict = Some(of_audit(&audit).judged());
        audit
    }

    fn data(&self) -> report::Data {
        let e = self.encoding;
        report::Data {
            files: self.request.read.names(),
            rows_read: e.rows_read,
            rows_dropped: e.rows_dropped,
            rows_held_out: e.rows_held_out,
            target: e.target.name.clone(),
            classes: class_names(e),
            id: e.id.clone(),
            rows_of_one: Some(e.rows_of_one).filter(|k| *k > 1),
            duplicates: duplicates(e),
            group: e.group.as_ref().map(|g| g.name.clone()),
            weights: e.weights.clone(),
            columns: columns(e, &self.request.roles.drop),
            scale: e.scale,
            one_hot: e.one_hot,
            pca: self.request.pca,
            read_off: self.read_off(),
        }
    }

    /// What one record can move for all others, or decide, and a release would refuse or count as told.
    fn read_off(&self) -> Vec<ReadOff> {
        let e = self.encoding;
        let filled = e.missing == Missing::Mean && columns(e, &[]).iter().any(|c| c.missing > 0);
        let levels = e.attributes.iter().any(|a| a.levels_hang_on_one.is_some());
        [
            (e.scale == Scale::UnitBall, ReadOff::LargestNorm),
            (self.request.pca.is_some(), ReadOff::Components),
            (filled, ReadOff::FilledIn),
            (levels, ReadOff::Levels),
            (!e.hang_on_one.is_empty(), ReadOff::Guesses),
            (is_uncounted(self.request.scaling, e), ReadOff::Scales),
            (self.request.read_off_elsewhere, ReadOff::Elsewhere),
        ]
        .into_iter()
        .filter_map(|(holds, part)| holds.then_some(part))
        .collect()
    }

    fn records(&self, histogram: report::Histogram) -> report::Records {
        let m = &self.measured;
        let eta = m.eta.summary();
        let top = m.most.records();
        let exposed = &top[..top.len().min((m.eta.count().div_ceil(100) as usize).clamp(1, EXTREMES))];
        let (loss_95, gradient_95) = (m.loss.quantile(0.95), m.gradient_norm.quantile(0.95));
        let share = |missed: usize| missed as f64 / exposed.len().max(1) as f64;
        let dfil = m.dfil.summary();
        report::Records {
            missed_by_loss: share(exposed.iter().filter(|k| k.loss < loss_95).count()),
            missed_by_gradient: share(exposed.iter().filter(|k| k.gradient_norm < gradient_95).count()),
            stand_out: ((1.0 - m.eta.rank(STAND_OUT * eta.p50)) * m.eta.count() as f64).round() as u64,
            most: top.iter().take(LISTED).map(|k| self.record(k, &m.names)).collect(),
            least: m.least.records().iter().take(LISTED).map(|k| self.record(k, &m.names)).collect(),
            sample: m.sample.clone().into_points().into_iter().map(sample_point).collect(),
            min_mse: estimation::record_error(dfil.max),
            min_mse_with_prior: self.van_trees_of_records(),
            loss: m.loss.summary(),
            gradient_norm: m.gradient_norm.summary(),
            dfil,
            eta,
            histogram,
        }
    }

    /// Van Trees in every column that varies, under a normal prior with the population's spread, or the one given; with the
    /// average information of the table in place of the expected one, so an estimate.
    fn van_trees_of_records(&self) -> Estimate {
        let d = self.encoding.data_width();
        let mut variances = self.measured.spread.variances(d);
        if let Some(of_label) = &self.facts.label_variances {
            variances.truncate(d);
            variances.extend(of_label);
        }
        // A principal component has no prior of its own that those of single columns would give it.
        for (name, sd) in self.request.prior_sd.iter().filter(|_| self.request.pca.is_none()) {
            if let Some(a) = self.encoding.attributes.iter().find(|a| a.name == *name) {
                variances[a.columns.start] = (sd / a.scale).powi(2);
            }
        }
        estimation::typical_error(&self.facts.information, &variances)
    }

    fn record(&self, kept: &Extreme, names: &Names) -> report::Record {
        let series = &self.measured.series;
        report::Record {
            id: names.of(kept.row),
            group: (series.by != SeriesBy::All).then(|| series.names[kept.series as usize].clone()),
            eta: kept.eta,
            dfil: kept.dfil,
            loss: kept.loss,
            gradient_norm: kept.gradient_norm,
            loss_rank: self.measured.loss.rank(kept.loss),
            most_exposed_attribute: self.most_exposed(kept),
        }
    }

    /// The attribute that leaks most of a record, or the label, compared in standard deviations of a number that was scaled by it
    /// and of the target, and by the switch of an indicator or between two classes. Its η is said in the units of that of the
    /// whole record, of which it is a part.
    fn most_exposed(&self, kept: &Extreme) -> Option<(String, f64)> {
        let attribute = kept
            .attribute
            .map(|(slot, eta)| (self.encoding.attributes[self.slots[slot].attribute].name.clone(), eta, eta));
        let spread = match self.encoding.target.coding {
            // By the switch between classes already.
            TargetCoding::Classes(_) => 1.0,
            TargetCoding::TwoClass { .. }
            | TargetCoding::Number
            | TargetCoding::Count
            | TargetCoding::Positive => {
                target_spread(self.encoding).unwrap_or(1.0) / target_unit(self.encoding)
            }
        };
        let label = kept.label.map(|eta| (self.encoding.target.name.clone(), eta, eta * spread));
        let most = attribute.into_iter().chain(label).max_by(|a, b| a.2.total_cmp(&b.2));
        most.map(|(name, eta, _)| (name, eta))
    }

    fn histogram(&self) -> report::Histogram {
        let m = &self.measured;
        // A few far-out records must not flatten everybody else into one bin.
        let high = m.eta.max().min(4.0 * m.eta.quantile(0.99));
        let beyond = ((1.0 - m.eta.rank(high)) * m.eta.count() as f64).round() as u64;
        let series = m.series.names.iter().zip(&m.by_series).map(|(name, eta)| report::Series {
            name: name.clone(),
            mean: eta.mean(),
            counts: eta.histogram(0.0, high, BINS),
        });
        report::Histogram { low: 0.0, high, beyond, by: m.series.by, series: series.collect() }
    }

    fn attributes(&self) -> Vec<report::Attribute> {
        let over_all = self.facts.over_all.as_ref();
        let n = self.measured.eta.count().max(1) as f64;
        let names = self.encoding.raw_columns();
        let totals = &self.measured.attributes;
        let mut attributes: Vec<report::Attribute> = self
            .slots
            .iter()
            .map(|slot| {
                let a = &self.encoding.attributes[slot.attribute];
                let t = &totals[slot.free];
                let number = a.kind == Kind::Number;
                let prior_sd = self.request.prior_sd.iter().find(|(n, _)| *n == a.name).map(|(_, sd)| *sd);
                let spread = prior_sd.unwrap_or(a.population_sd);
                // In own units: I = E[η²]/scale², J = 1/spread².
                let information = t.squares / n / (a.scale * a.scale);
                report::Attribute {
                    name: a.name.clone(),
                    kind: a.kind,
                    unit: self.unit_of(a),
                    columns: names[a.columns.clone()].to_vec(),
                    eta_mean: t.sum / n,
                    eta_max: t.max,
                    eta_max_record: t.max_row.map(|row| self.measured.names.of(row)).unwrap_or_default(),
                    eta_over_all_records: over_all.map(|all| all[slot.free]),
                    sum_to_one: slot.constrained.map(|k| report::SumToOne {
                        eta_mean: totals[k].sum / n,
                        eta_max: totals[k].max,
                        eta_over_all_records: over_all.map(|all| all[k]),
                    }),
                    min_sd: estimation::deviation(slot.exposure(|k| totals[k].max), a.scale),
                    min_sd_typical: a.scale * n / slot.exposure(|k| totals[k].sum),
                    population_sd: number.then_some(a.population_sd),
                    min_rmse_with_prior: number.then(|| estimation::typical_deviation(information, spread)),
                    prior_sd,
                }
            })
            .collect();
        attributes.sort_by(|a, b| b.eta_max.total_cmp(&a.eta_max));
        attributes
    }

    /// The label, where it is part of the secret.
    fn label(&self) -> Option<report::Label> {
        let totals = &self.measured.label;
        self.facts.release.label_secret.then(|| report::Label {
            name: self.encoding.target.name.clone(),
            eta_mean: totals.sum / self.measured.eta.count().max(1) as f64,
            eta_max: totals.max,
            eta_max_record: totals.max_row.map(|row| self.measured.names.of(row)).unwrap_or_default(),
            population_sd: target_spread(self.encoding),
            min_sd: estimation::deviation(totals.max, target_unit(self.encoding)),
        })
    }

    fn groups(&self) -> Vec<report::Group> {
        let Some(group) = &self.encoding.group else { return vec![] };
        let of_group = self.facts.groups.iter().zip(&self.measured.by_series);
        let groups = group.levels.iter().zip(of_group).map(|(name, ((n, whole), eta))| report::Group {
            name: name.clone(),
            n: *n,
            eta: *whole,
            eta_mean: eta.mean(),
            eta_median: eta.quantile(0.5),
            eta_max: eta.max(),
        });
        groups.collect()
    }

    fn score(&self, scored: Scored, histogram: &report::Histogram) -> report::Score {
        let p99 = self.measured.eta.quantile(0.99);
        report::Score {
            files: scored.files,
            n: scored.eta.count(),
            labelled: scored.labelled,
            eta: scored.eta.summary(),
            above_training_p99: 1.0 - scored.eta.rank(p99),
            most: scored
                .most
                .records()
                .iter()
                .map(|k| report::Record { group: None, ..self.record(k, &scored.names) })
                .collect(),
            counts: scored.eta.histogram(histogram.low, histogram.high, BINS),
        }
    }

    fn limits(&self) -> Vec<report::Limit> {
        let eta: &Distribution = &self.measured.eta;
        let limit = |l: &Limit| {
            let value = l.statistic.of(eta);
            let statistic = match l.statistic {
                Statistic::Max => choice::Statistic::Eta,
                Statistic::Mean => choice::Statistic::Mean,
                Statistic::P99 => choice::Statistic::P99,
            };
            report::Limit { statistic, limit: l.limit, value, ok: value <= l.limit }
        };
        self.request.limits.iter().map(limit).collect()
    }
}

fn sample_point(p: leakscope_core::measure::Point) -> report::SamplePoint {
    report::SamplePoint { eta: p.eta, loss: p.loss, gradient_norm: p.gradient_norm, series: p.series }
}

/// Every column once, with all of its roles; those that were dropped come last.
fn columns(encoding: &Encoding, dropped: &[String]) -> Vec<report::Column> {
    let mut columns: Vec<report::Column> = vec![];
    for profile in &encoding.profile {
        match columns.iter_mut().find(|c| c.name == profile.name) {
            Some(known) => known.roles.0.push(role(profile.role)),
            None => columns.push(column(profile)),
        }
    }
    for name in dropped.iter().map(|n| n.trim()) {
        // A group may be no feature: it is dropped and a group.
        match columns.iter_mut().find(|c| c.name == name) {
            Some(known) => known.roles.0.insert(0, ColumnRole::Dropped),
            None => columns.push(report::Column {
                name: name.into(),
                kind: ColumnKind::Unread,
                roles: Roles(vec![ColumnRole::Dropped]),
                missing: 0,
                levels: None,
                range: None,
            }),
        }
    }
    columns
}

fn column(c: &leakscope_table::ColumnProfile) -> report::Column {
    report::Column {
        name: c.name.clone(),
        kind: match c.kind {
            Kind::Number => ColumnKind::Number,
            Kind::Category => ColumnKind::Category,
        },
        roles: Roles(vec![role(c.role)]),
        missing: c.missing,
        levels: (c.kind == Kind::Category && !c.levels.is_empty()).then_some(c.levels.len()),
        range: c.min.zip(c.max).map(|(a, b)| [a, b]),
    }
}

fn role(role: Role) -> ColumnRole {
    match role {
        Role::Feature => ColumnRole::Feature,
        Role::Target => ColumnRole::Target,
        Role::Id => ColumnRole::Id,
        Role::Weights => ColumnRole::Weights,
        Role::Group => ColumnRole::Group,
    }
}
