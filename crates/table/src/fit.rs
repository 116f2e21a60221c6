//! Fitting an encoding: the profile of the table, then, where asked for, the largest norm and the components.

mod remarks;
mod target;

use crate::away::AwayRows;
use crate::batch::Reading;
use crate::column::{Kind, Origin, Role, Roles};
use crate::encoder::Encoder;
use crate::encoding::{
    Attribute, Class, ColumnProfile, EncodeOptions, Encoding, Group, Guess, Missing, Pca, Scale,
};
use crate::hooks::{Hooks, Stage};
use crate::layout::Layout;
use crate::plan::{Plan, Subset};
use crate::profile::{Column, Profile, Profiling};
use crate::rare::{self, HangingLevels};
use crate::remark::Remark;
use crate::schema::SchemaError;
use crate::table::Table;
use crate::{Error, Result};
use leakscope_core::linalg;
use leakscope_core::pass::{self, Covariance, CovarianceSums, Largest, LargestNorm, Pass, Tree};
use leakscope_core::rows::{Away, Finish, Rows, Start};
use remarks::{numbers_in_texts, remarks, written_as_numbers};
use std::borrow::Cow;
use target::target;

/// Classes or values that a message names.
const NAMED: usize = 5;

/// What the profile of a whole table leads to.
#[derive(Debug)]
pub enum Profiled {
    /// The encoding, but for a largest norm and components.
    Encoding(Box<Encoding>),
    /// Some columns name the rows, and are left out. What is left out must not drop rows or make them differ, so this
    /// pass without them comes next; elsewhere it is [`Profiling::without`] the columns of [`Profiling::left_out`].
    Identifiers(Box<Profiling>),
}

impl Encoding {
    /// Fits an encoding on the training rows of a table, in one to four passes.
    ///
    /// The first pass checks every used cell: what it finds wrong is an error that names column and row.
    /// Levels, means, norms and components are those of the training rows alone.
    pub fn fit(table: &Table, roles: &Roles, options: &EncodeOptions, hooks: &Hooks) -> Result<Self> {
        let mut profiling = Profiling::new(table, roles, options)?;
        let mut encoding = loop {
            match Self::of_profile(&profiling, profiling.run(table, hooks)?, table, hooks)? {
                Profiled::Encoding(encoding) => break *encoding,
                Profiled::Identifiers(without) => profiling = *without,
            }
        };
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

    /// What the profile of a whole table determines: all but a largest norm and components; or that another profile is
    /// needed. That happens once at most.
    pub fn of_profile(
        profiling: &Profiling,
        profile: Profile,
        table: &Table,
        hooks: &Hooks,
    ) -> Result<Profiled> {
        let Profiling { layout, options, .. } = profiling;
        let mut profile = profiling.settled(profile)?;
        profiling.check(&mut profile, table, hooks)?;
        if profiling.left_out().is_empty() {
            let (names, remarks): (Vec<String>, Vec<Vec<Remark>>) =
                identifiers(layout, &profile).into_iter().unzip();
            if !names.is_empty() {
                let mut without = profiling.without(&names)?;
                without.layout.remarks.extend(remarks.into_iter().flatten());
                without.layout.hang_on_one.extend(hanging_identifiers(layout, &profile));
                return Ok(Profiled::Identifiers(Box::new(without)));
            }
        }
        check_missing(layout, &profile, options)?;
        check_sizes(&profile, options)?;
        check_facts(layout, &profile)?;
        let mut hang_on_one = layout.hang_on_one.clone();
        if profiling.left_out().is_empty() {
            hang_on_one.extend(hanging_identifiers(layout, &profile));
        }
        list_given_levels(layout, &mut profile);
        let hanging = hanging_on_one(layout, &profile, options);
        let settled_at = if hanging.is_empty() { None } else { settled_at(layout, &profile, options) };
        let merged = merge_rare(layout, &mut profile, options);
        let mut encoding = assemble(layout, &profile, options)?;
        (encoding.hang_on_one, encoding.levels_settled_at) = (hang_on_one, settled_at);
        if options.public.schema.as_ref().is_some_and(|s| s.draft) {
            // What everything else rests on comes first.
            encoding.remarks.insert(0, Remark::DraftSchema);
        }
        for (name, levels) in hanging {
            let hanging = encoding.attributes.iter_mut().find(|a| a.name == name);
            hanging.into_iter().for_each(|a| a.levels_hang_on_one = Some(levels.clone()));
        }
        for (i, remark) in merged {
            let a = &mut encoding.attributes[i];
            a.other = a.levels.iter().position(|l| l == rare::OTHER);
            encoding.remarks.push(remark);
        }
        if encoding.raw_width() == 0 {
            return Err(Error::NoColumns);
        }
        Ok(Profiled::Encoding(Box::new(encoding)))
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
        self.attributes.iter_mut().for_each(|a| (a.scale, a.scale_origin) = (radius, Origin::ReadOffData));
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
                    for (j, (_, count)) in
                        a.columns.clone().zip(&c.levels[self.one_hot.places(c.levels.len())])
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
                let named = |which: &dyn Fn(usize) -> bool| -> Vec<String> {
                    with_missing().filter(|(i, _)| which(*i)).map(|(i, _)| layout.names[i].clone()).collect()
                };
                let is_feature = |i: usize| layout.names[..layout.features].contains(&layout.names[i]);
                let needed = named(&|i| !is_feature(i));
                let empty = named(&|i| profile.columns[i].missing >= profile.rows);
                let header_is_data = layout.remarks.contains(&Remark::HeaderIsData);
                return Err(Error::Missing { columns, needed, empty, header_is_data });
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

/// Features of which nobody said whether their texts name the rows.
fn may_be_identifiers(layout: &Layout) -> impl Iterator<Item = usize> {
    let is_guess = |i: &usize| layout.wants[*i].reading == Reading::Level && !layout.facts(*i).declared;
    (0..layout.features).filter(is_guess)
}

/// Features of which one row decides whether they are left out because their texts name the rows.
fn hanging_identifiers(layout: &Layout, profile: &Profile) -> Vec<(String, Guess)> {
    let hanging = may_be_identifiers(layout).filter(|i| profile.columns[*i].hangs_on_one());
    hanging.map(|i| (layout.names[i].clone(), Guess::Identifier)).collect()
}

/// Features whose texts name the rows, with what is said about each.
fn identifiers(layout: &Layout, profile: &Profile) -> Vec<(String, Vec<Remark>)> {
    let named = may_be_identifiers(layout).filter(|i| profile.columns[*i].is_identifier());
    let said = |i: usize| {
        let (c, column) = (&profile.columns[i], layout.names[i].clone());
        let values = (!c.identifies).then_some(c.levels.len() as u64);
        let mut remarks = vec![Remark::Identifier { column: column.clone(), values, rows: profile.training }];
        remarks.extend(match written_as_numbers(c) {
            Some(cell) => Some(Remark::TextsLikeNumbers { column, cell }),
            None => numbers_in_texts(c).map(|cell| Remark::NumbersInTexts { column, cell }),
        });
        remarks
    };
    named.map(|i| (layout.names[i].clone(), said(i))).collect()
}

/// What was given must hold.
fn check_facts(layout: &Layout, profile: &Profile) -> Result<()> {
    for (i, c) in profile.columns.iter().enumerate() {
        let (facts, column) = (layout.facts(i), layout.names[i].clone());
        if let Some(bounds) = facts.bounds
            && c.outside > 0
            && !facts.clip
        {
            let (low, high) = (bounds.low(), bounds.high());
            return Err(SchemaError::OutOfBounds { column, low, high, count: c.outside }.into());
        }
        // A level of a column may have no record: the list is public. A class of the target has no model then.
        if let Some(levels) = &facts.levels
            && layout.wants[i].reading == Reading::Level
            && Some(i) == layout.target
        {
            let unused = levels.iter().filter(|l| !c.levels.contains_key(l.as_str())).cloned();
            let unused: Vec<String> = unused.collect();
            if !unused.is_empty() {
                return Err(SchemaError::UnusedClasses { column, classes: unused }.into());
            }
        }
    }
    Ok(())
}

/// Gives every feature the levels that are listed for it, also those that no record has: the list says which columns there are,
/// whatever the records are.
fn list_given_levels(layout: &Layout, profile: &mut Profile) {
    for i in (0..layout.features).filter(|i| layout.wants[*i].reading == Reading::Level) {
        for level in layout.facts(i).levels.iter().flatten() {
            profile.columns[i].levels.entry(level.as_str().into()).or_insert(0);
        }
    }
}

/// Features whose list of levels was read off the data.
fn with_levels_read_off(layout: &Layout) -> impl Iterator<Item = usize> + Clone {
    let is_read_off = |i: &usize| {
        let facts = layout.facts(*i);
        let public = facts.levels.is_some() && facts.levels_origin == Origin::Given;
        !public && layout.wants[*i].reading == Reading::Level
    };
    (0..layout.features).filter(is_read_off)
}

/// Records that a level must have: where no level is merged, one that a single row has is listed because of that row.
fn least_count(options: &EncodeOptions) -> u64 {
    options.min_level_count.unwrap_or(1)
}

/// Columns whose list of levels was read off the data and would be another if one row had another of them.
fn hanging_on_one(
    layout: &Layout,
    profile: &Profile,
    options: &EncodeOptions,
) -> Vec<(String, HangingLevels)> {
    let hangs = |i: usize| {
        let levels = &profile.columns[i].levels;
        Some((layout.names[i].clone(), rare::hanging(levels, least_count(options))?))
    };
    with_levels_read_off(layout).filter_map(hangs).collect()
}

fn settled_at(layout: &Layout, profile: &Profile, options: &EncodeOptions) -> Option<u64> {
    let levels = with_levels_read_off(layout).map(|i| &profile.columns[i].levels);
    rare::settled_at(levels, least_count(options))
}

/// Merges the rare levels of features where nobody gave the levels; the places, with what is said about each.
fn merge_rare(layout: &Layout, profile: &mut Profile, options: &EncodeOptions) -> Vec<(usize, Remark)> {
    let Some(min_count) = options.min_level_count else { return vec![] };
    let mut remarks = vec![];
    for i in 0..layout.features {
        let facts = layout.facts(i);
        let public = facts.levels.is_some() && facts.levels_origin == Origin::Given;
        if public || layout.wants[i].reading != Reading::Level {
            continue;
        }
        if let Some(merged) = rare::merged(&profile.columns[i].levels, min_count) {
            profile.columns[i].levels = merged.levels;
            let (column, merged, rows) = (layout.names[i].clone(), merged.count, merged.rows);
            remarks.push((i, Remark::RareLevels { column, merged, rows, min_count }));
        }
    }
    remarks
}

/// The mean of the training weights: exactly 1 where it is so up to rounding.
fn weight_mean(layout: &Layout, profile: &Profile) -> Result<f64> {
    let Some(w) = layout.weights else { return Ok(1.0) };
    let mean = profile.weight_sum / profile.columns[w].numbers.count as f64;
    if !mean.is_finite() {
        let value = profile.columns[w].numbers.max;
        return Err(Error::TooLarge { column: layout.names[w].clone(), value });
    }
    Ok(if (mean - 1.0).abs() < 1e-12 { 1.0 } else { mean })
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
        Some(i) => target(layout, i, &profile.columns[i], options)?,
        None => unreachable!("roles always have a target"),
    };
    let columns = layout.names.iter().zip(&layout.roles).zip(&profile.columns).enumerate();
    let column_profiles =
        columns.map(|(i, ((name, role), c))| column_profile(name, *role, kind(layout, i), c));
    let weight_mean = weight_mean(layout, profile)?;
    Ok(Encoding {
        attributes,
        remarks: remarks(layout, profile, &target, weight_mean),
        hang_on_one: vec![],
        levels_settled_at: None,
        copies: profile.copies.map(|e| e.copies),
        equal_rows: profile.copies.filter(|e| e.copies > 0),
        rows_of_one: profile.rows_of_one.max(1),
        weight_mean,
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
    let facts = layout.facts(i);
    let fill_origin = match options.missing {
        Missing::Mean => Origin::ReadOffData,
        Missing::Fail | Missing::Drop => Origin::Given,
    };
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
        other: None,
        bounds: facts.bounds.filter(|_| kind == Kind::Number),
        clipped: facts.clip && facts.bounds.is_some() && kind == Kind::Number,
        unit: facts.unit.clone().filter(|_| kind == Kind::Number),
        levels_origin: Origin::Given, // a number has none
        levels_hang_on_one: None,
        scale_origin: Origin::Given,
        fill_origin,
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
            if let Some(spread) = c.numbers.lost_spread() {
                return Err(Error::TooSmall { column: a.name, spread });
            }
            match (options.scale, facts.bounds) {
                // It has a scale of its own, below.
                _ if facts.scale.is_some() => {}
                (Scale::Standard, _) => {
                    a.centre = a.mean;
                    // A constant is centred and keeps its unit.
                    a.scale = if a.population_sd > 0.0 { a.population_sd } else { 1.0 };
                    a.scale_origin = Origin::ReadOffData;
                }
                (Scale::Bounds, Some(bounds)) => {
                    (a.centre, a.scale) = (bounds.centre(), bounds.half_range());
                    a.scale_origin = facts.bounds_origin;
                }
                (Scale::Bounds, None) => return Err(SchemaError::NoBounds { column: a.name }.into()),
                (Scale::UnitBall | Scale::None, _) => {}
            }
            if let Some(public_scale) = facts.scale {
                [a.centre, a.scale] = public_scale;
            }
        }
        Kind::Category => {
            if c.levels.is_empty() {
                return Err(Error::NoValues { column: a.name });
            }
            let most = c.levels.values().copied().max().unwrap_or(0);
            a.most_frequent = c.levels.values().position(|n| *n == most).unwrap_or(0);
            a.levels_origin = if facts.levels.is_some() { facts.levels_origin } else { Origin::ReadOffData };
            a.levels = c.levels.keys().map(|l| l.to_string()).collect();
            a.columns.end = start + options.one_hot.places(a.levels.len()).len();
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
        role,
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

/// Runs a pass over the encoded training rows before components, without their intercept.
fn over_training_rows<P: Pass>(
    table: &Table,
    encoding: &Encoding,
    (hooks, stage): (&Hooks, Stage),
    pass: &P,
) -> Result<P::State> {
    let bare = encoding.before_components();
    if let Some(away) = AwayRows::new(table, (&bare, Subset::Training), false) {
        return pass::run(pass, &Bare { away, width: bare.width(), rows: bare.rows_training })
            .map_err(Error::Core);
    }
    let plan = Plan::new(table, &bare, Subset::Training, false, false)?;
    let mut tree = Tree::new(vec![]);
    table.fold_runs(
        (&plan.layout.wants, plan.batch_rows),
        (hooks, stage),
        (|_| Encoder::new(table, &plan), || pass.start()),
        |encoder, state, batch| {
            encoder.encode(batch)?;
            pass.step(state, &encoder.block).map_err(Error::Core)
        },
        |_, states| {
            let mut split = Tree::new(vec![states.len()]);
            states.into_iter().for_each(|state| split.add(state));
            tree.add_split(split.finish().unwrap_or_else(|| pass.start()));
            Ok(())
        },
    )?;
    Ok(tree.finish().unwrap_or_else(|| pass.start()))
}

/// Training rows before their components, read by other machines.
struct Bare {
    away: AwayRows,
    width: usize,
    rows: u64,
}

impl Rows for Bare {
    fn width(&self) -> usize {
        self.width
    }

    fn len(&self) -> u64 {
        self.rows
    }

    fn elsewhere(&self) -> Option<Away<'_>> {
        Some(Away::new(&self.away))
    }

    fn parts<'s>(&self, _: &Start<'_, 's>, _: &mut Finish<'_, 's>) -> leakscope_core::Result<()> {
        // Passes over them are sent.
        Err(leakscope_core::Error::Empty)
    }
}
