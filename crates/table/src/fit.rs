//! Fitting an encoding: the profile of the table, then, where asked for, the largest norm and the components.

use crate::batch::Reading;
use crate::encoder::Encoder;
use crate::encoding::{
    Attribute, Class, ColumnProfile, EncodeOptions, Encoding, Group, Missing, Pca, Roles, Scale, Target,
    TargetCoding, TargetKind,
};
use crate::hooks::{Hooks, Stage};
use crate::layout::{Layout, Role};
use crate::plan::{Plan, Subset};
use crate::profile::{Column, Profile, Profiling};
use crate::table::{Kind, Table};
use crate::{Error, Result};
use leakscope_core::linalg;
use leakscope_core::pass::{Covariance, CovarianceSums, Largest, LargestNorm, Merge, Pass};
use std::borrow::Cow;

/// Classes or values that a message names.
const NAMED: usize = 5;

impl Encoding {
    /// Fits an encoding on the training rows of a table, in one to three passes.
    ///
    /// The first pass checks every used cell: what it finds wrong is an error that names column and row.
    /// Levels, means, norms and components are those of the training rows alone.
    pub fn fit(table: &Table, roles: &Roles, options: &EncodeOptions, hooks: &Hooks) -> Result<Self> {
        let profiling = Profiling::new(table, roles, options)?;
        let mut encoding = Self::of_profile(&profiling, profiling.run(table, hooks)?, table, hooks)?;
        if options.scale == Scale::UnitBall {
            let largest = over_training_rows(table, &encoding, (hooks, Stage::Norm), &LargestNorm)?;
            encoding = encoding.with_largest_norm(largest)?;
        }
        if let Some(k) = options.pca {
            let pass = encoding.covariance(k)?;
            let sums = over_training_rows(table, &encoding, (hooks, Stage::Components), &pass)?;
            encoding = encoding.with_components(k, sums)?;
        }
        Ok(encoding)
    }

    /// What the profile of a whole table determines: all but a largest norm and components.
    pub fn of_profile(
        profiling: &Profiling,
        mut profile: Profile,
        table: &Table,
        hooks: &Hooks,
    ) -> Result<Self> {
        let Profiling { layout, options } = profiling;
        profiling.check(&mut profile, table, hooks)?;
        check_missing(layout, &profile, options)?;
        check_sizes(&profile, options)?;
        let encoding = assemble(layout, &profile, options)?;
        if encoding.raw_width() == 0 { Err(Error::NoColumns) } else { Ok(encoding) }
    }

    /// This encoding as far as scales, without intercept and components: what the passes for both read.
    pub fn before_components(&self) -> Self {
        Self { intercept: false, pca: None, ..self.clone() }
    }

    /// Unit-ball scaling by the largest norm of a training row; 1 where all are zero, so that it can divide.
    pub fn with_largest_norm(mut self, largest: Largest) -> Result<Self> {
        if !largest.norm.is_finite() {
            let span = |a: &&Attribute| a.mean.abs() + a.population_sd;
            let widest = self.attributes.iter().max_by(|a, b| span(a).total_cmp(&span(b)));
            return Err(Error::TooLarge {
                column: widest.map(|a| a.name.clone()).unwrap_or_default(),
                value: widest.map_or(0.0, |a| span(&a)),
            });
        }
        let radius = if largest.norm > 0.0 { largest.norm } else { 1.0 };
        self.unit_ball = Some(radius);
        self.attributes.iter_mut().for_each(|a| a.scale = radius);
        Ok(self)
    }

    /// The pass for `k` principal components. The profile already knows the means up to rounding: around them one pass
    /// gives the covariance exactly.
    pub fn covariance(&self, k: usize) -> Result<Covariance<'static>> {
        let columns = self.raw_width();
        if k == 0 || k > columns {
            return Err(Error::Components { components: k, columns });
        }
        let mut m = vec![0.0; columns];
        let rows = self.rows_training as f64;
        for (a, c) in self.attributes.iter().zip(&self.profile) {
            match a.kind {
                Kind::Number => m[a.columns.start] = (a.mean - a.centre) / a.scale,
                Kind::Category => {
                    for (j, (_, count)) in a.columns.clone().zip(&c.levels[self.one_hot.kept(c.levels.len())])
                    {
                        m[j] = *count as f64 / rows / a.scale;
                    }
                }
            }
        }
        Ok(Covariance { centre: Cow::Owned(m) })
    }

    /// The first `k` principal components of the encoded training rows, from the sums of [`Encoding::covariance`].
    pub fn with_components(mut self, k: usize, sums: CovarianceSums) -> Result<Self> {
        let (p, centre) = (self.raw_width(), self.covariance(k)?.centre);
        let (mean, covariance) = sums.finish(&centre);
        let (values, vectors) = linalg::symmetric_eigen(&covariance, p)?;
        let mut components = Vec::with_capacity(k * p);
        for i in 0..k {
            let column: Vec<f64> = (0..p).map(|j| vectors[j * p + i]).collect();
            let largest = column.iter().copied().fold(0.0_f64, |a, v| if v.abs() > a.abs() { v } else { a });
            // The sign of an eigenvector is arbitrary: fix it.
            components.extend(column.iter().map(|v| if largest < 0.0 { -v } else { *v }));
        }
        let variance: f64 = values.iter().map(|v| v.max(0.0)).sum();
        let share = |v: &f64| if variance > 0.0 { v.max(0.0) / variance } else { 0.0 };
        self.pca = Some(Pca { mean, components, explained: values.iter().take(k).map(share).collect() });
        Ok(self)
    }
}

fn check_missing(layout: &Layout, profile: &Profile, options: &EncodeOptions) -> Result<()> {
    let with_missing = || profile.columns.iter().enumerate().filter(|(_, c)| c.missing > 0);
    match options.missing {
        Missing::Drop => {}
        Missing::Fail => {
            // A group that is a feature too is read twice, and named once.
            let mut columns: Vec<(String, u64)> = Vec::new();
            for (i, c) in with_missing() {
                if !columns.iter().any(|(name, _)| *name == layout.names[i]) {
                    columns.push((layout.names[i].clone(), c.missing));
                }
            }
            if !columns.is_empty() {
                return Err(Error::Missing { columns });
            }
        }
        Missing::Mean => {
            if let Some((i, c)) = with_missing().find(|(i, _)| layout.roles[*i] != Role::Feature) {
                let (column, role) = (layout.names[i].clone(), layout.roles[i].name());
                return Err(Error::MissingRole { column, role, count: c.missing });
            }
        }
    }
    Ok(())
}

fn check_sizes(profile: &Profile, options: &EncodeOptions) -> Result<()> {
    let rows = profile.training + profile.held_out;
    if rows == 0 {
        return Err(Error::AllDropped { rows: profile.rows });
    }
    if let Some(h) = options.holdout {
        let fraction = h.fraction;
        if profile.training == 0 {
            return Err(Error::HoldoutEmpty { fraction, side: "to train on", rows });
        }
        if profile.held_out == 0 {
            return Err(Error::HoldoutEmpty { fraction, side: "to test on", rows });
        }
    }
    Ok(())
}

fn kind(layout: &Layout, i: usize) -> Kind {
    match layout.wants[i].reading {
        Reading::Number => Kind::Number,
        Reading::Level | Reading::Text => Kind::Category,
    }
}

/// Everything that the profile determines.
fn assemble(layout: &Layout, profile: &Profile, options: &EncodeOptions) -> Result<Encoding> {
    let mut attributes = Vec::with_capacity(layout.features);
    let mut next = 0;
    for i in 0..layout.features {
        let attribute = attribute(layout, i, &profile.columns[i], options, next)?;
        next = attribute.columns.end;
        attributes.push(attribute);
    }
    let group = layout.group.map(|i| Group {
        name: layout.names[i].clone(),
        levels: profile.columns[i].levels.keys().map(|n| n.to_string()).collect(),
        counts: profile.columns[i].levels.values().copied().collect(),
    });
    let target = match layout.target {
        Some(i) => target(&layout.names[i], kind(layout, i), &profile.columns[i], options)?,
        None => unreachable!("roles always have a target"),
    };
    let columns = layout.names.iter().zip(&layout.roles).zip(&profile.columns).enumerate();
    let column_profiles =
        columns.map(|(i, ((name, role), c))| column_profile(name, *role, kind(layout, i), c));
    Ok(Encoding {
        attributes,
        target,
        id: layout.id.map(|i| layout.names[i].clone()),
        weights: layout.weights.map(|i| layout.names[i].clone()),
        group,
        one_hot: options.one_hot,
        scale: options.scale,
        missing: options.missing,
        intercept: options.intercept,
        unit_ball: None,
        pca: None,
        holdout: options.holdout,
        profile: column_profiles.collect(),
        rows_read: profile.rows,
        rows_dropped: profile.dropped,
        rows_training: profile.training,
        rows_held_out: profile.held_out,
    })
}

fn attribute(
    layout: &Layout,
    i: usize,
    c: &Column,
    options: &EncodeOptions,
    start: usize,
) -> Result<Attribute> {
    let name = layout.names[i].clone();
    let kind = kind(layout, i);
    let mut a = Attribute {
        name,
        kind,
        levels: vec![],
        columns: start..start + 1,
        centre: 0.0,
        scale: 1.0,
        population_sd: 0.0,
        mean: 0.0,
        most_frequent: 0,
    };
    match kind {
        Kind::Number => {
            if c.numbers.count == 0 {
                return Err(Error::NoValues { column: a.name });
            }
            (a.mean, a.population_sd) = (c.numbers.mean(), c.numbers.sd());
            if !(a.mean.is_finite() && a.population_sd.is_finite()) {
                return Err(Error::TooLarge { column: a.name, value: largest(c) });
            }
            if options.scale == Scale::Standard {
                a.centre = a.mean;
                // A constant is centred and keeps its unit. So does a spread that is lost in rounding to 0.
                a.scale = if a.population_sd > 0.0 { a.population_sd } else { 1.0 };
            }
        }
        Kind::Category => {
            if c.levels.is_empty() {
                return Err(Error::NoValues { column: a.name });
            }
            let most = c.levels.values().copied().max().unwrap_or(0);
            a.most_frequent = c.levels.values().position(|n| *n == most).unwrap_or(0);
            a.levels = c.levels.keys().map(|l| l.to_string()).collect();
            a.columns.end = start + options.one_hot.kept(a.levels.len()).len();
        }
    }
    Ok(a)
}

/// The value of largest magnitude.
fn largest(c: &Column) -> f64 {
    if c.numbers.max > -c.numbers.min { c.numbers.max } else { c.numbers.min }
}

fn column_profile(name: &str, role: Role, kind: Kind, c: &Column) -> ColumnProfile {
    let some = |x: f64| if c.numbers.count > 0 && x.is_finite() { Some(x) } else { None };
    ColumnProfile {
        name: name.into(),
        kind,
        role: role.name().into(),
        count: c.numbers.count + c.levels.values().sum::<u64>(),
        missing: c.missing,
        mean: some(c.numbers.mean()),
        sd: some(c.numbers.sd()),
        min: some(c.numbers.min),
        max: some(c.numbers.max),
        levels: c.levels.iter().map(|(l, n)| (l.to_string(), *n)).collect(),
    }
}

/// The classes of the target in sorted order (numbers by value), with their counts; `true` if there are more.
fn classes(kind: Kind, c: &Column) -> (Vec<Class>, bool) {
    let class = |name: String, value, count| Class { name, value, code: 0.0, count };
    match kind {
        Kind::Number => {
            let mut values = c.distinct.values.clone();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            (values.into_iter().map(|(v, n)| class(v.to_string(), Some(v), n)).collect(), c.distinct.more)
        }
        Kind::Category => (c.levels.iter().map(|(l, n)| class(l.to_string(), None, *n)).collect(), false),
    }
}

fn target(name: &str, kind: Kind, c: &Column, options: &EncodeOptions) -> Result<Target> {
    let column = || name.to_string();
    let (mut found, more) = classes(kind, c);
    let names = || found.iter().take(NAMED).map(|c| crate::words::truncated(&c.name)).collect::<Vec<_>>();
    let text = |expected| Err(Error::TextTarget { column: column(), found: names(), expected });
    let two = found.len() == 2 && !more;
    let codes = match options.target {
        TargetKind::TwoClass01 if two => Some((0.0, 1.0)),
        TargetKind::TwoClass01 => {
            return Err(match found.as_slice() {
                [only] => Error::OneClass { column: column(), class: only.name.clone() },
                _ => {
                    Error::ManyClasses { column: column(), found: names(), more: more || found.len() > NAMED }
                }
            });
        }
        TargetKind::Number { two_class_as_plus_minus_one: true } if two => Some((-1.0, 1.0)),
        TargetKind::Number { two_class_as_plus_minus_one } if kind == Kind::Category => {
            return match found.as_slice() {
                [only] => Err(Error::OneClass { column: column(), class: only.name.clone() }),
                _ if two_class_as_plus_minus_one => text("numbers or exactly two classes"),
                _ => text("numbers"),
            };
        }
        TargetKind::Count if kind == Kind::Category => return text("counts: numbers that are zero or more"),
        TargetKind::Number { .. } | TargetKind::Count => None,
    };
    if codes.is_none() && !(c.numbers.mean().is_finite() && c.numbers.sd().is_finite()) {
        return Err(Error::TooLarge { column: column(), value: largest(c) });
    }
    let coding = match (codes, options.target) {
        (Some((low_code, high_code)), _) => {
            if let Some(positive) = &options.positive {
                let same = |c: &Class| {
                    let by_value = c.value.is_some_and(|v| positive.trim().parse() == Ok(v));
                    c.name == positive.trim() || by_value
                };
                match found.iter().position(same) {
                    Some(0) => found.swap(0, 1),
                    Some(_) => {}
                    None => {
                        let (low, high) = (found[0].name.clone(), found[1].name.clone());
                        return Err(Error::Positive { value: positive.clone(), column: column(), low, high });
                    }
                }
            }
            let mut classes = found.into_iter();
            match (classes.next(), classes.next()) {
                (Some(low), Some(high)) => TargetCoding::TwoClass {
                    low: Class { code: low_code, ..low },
                    high: Class { code: high_code, ..high },
                },
                _ => unreachable!("there are two classes"),
            }
        }
        (None, TargetKind::Count) => TargetCoding::Count,
        (None, _) => TargetCoding::Number,
    };
    if let (Some(value), TargetCoding::Number | TargetCoding::Count) = (&options.positive, &coding) {
        return Err(Error::PositiveUnused { value: value.clone(), column: column() });
    }
    Ok(Target { name: column(), kind, coding })
}

/// Runs a pass over the encoded training rows before components, without their intercept.
fn over_training_rows<P: Pass>(
    table: &Table,
    encoding: &Encoding,
    (hooks, stage): (&Hooks, Stage),
    pass: &P,
) -> Result<P::State> {
    let plan = Plan::new(table, &encoding.before_components(), Subset::Training, false, false)?;
    let mut total = pass.start();
    table.fold(
        (&plan.layout.wants, plan.batch_rows),
        (hooks, stage),
        |_| (Encoder::new(table, &plan), pass.start()),
        |(encoder, state), batch| {
            encoder.encode(batch)?;
            pass.step(state, &encoder.block).map_err(Error::Core)
        },
        |(_, state)| {
            total.merge(state);
            Ok(())
        },
    )?;
    Ok(total)
}
