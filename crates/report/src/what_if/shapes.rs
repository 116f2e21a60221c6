//! Noise of another shape for the same targets, where a document holds what each costs.
//!
//! What a document knows of a shape that was not audited: that it meets the targets exactly, and what it costs. So η of what a
//! target protects is its target, nothing was told apart under it, and a verdict on it is never green.

use super::moving::release_command;
use crate::document::audit::Audit;
use crate::document::noise::{Goal, Noise, Secret, ShapeCost, Source};
use crate::format::{self, quoted};
use crate::noise_words;
use crate::verdict::{
    Colour, Facts, RULES, Reservations, Rule, exposures, facts_of_audit, headline, label_estimate,
};
use crate::words;
use leakscope_core::fisher::noise::Shape;
use leakscope_core::special::normal_cdf;
use serde::Serialize;

/// The facts of an audit with noise of another shape that meets the same targets; nothing where the document has no such shape.
pub fn facts_at(audit: &Audit, shape: Shape) -> Option<Facts> {
    let noise = audit.noise.as_ref()?;
    noise.shapes.iter().find(|s| s.shape == shape)?;
    let stated = facts_of_audit(audit);
    if shape == noise.shape {
        return Some(stated);
    }
    // Two values are as many times closer as η is smaller.
    let covered = exposures(audit).into_iter().filter_map(|e| {
        let goal = goal_of(noise, &e.attribute.name, Secret::Attribute)?;
        (e.attribute.eta_max > 0.0).then(|| e.distance * goal / e.attribute.eta_max)
    });
    let label = audit.label.as_ref().and_then(|l| {
        let goal = goal_of(noise, &l.name, Secret::Label)?;
        (l.eta_max > 0.0).then_some(label_estimate(audit, l)? * goal / l.eta_max)
    });
    let of_record = noise.goals.iter().filter(|g| g.secret == Secret::Record).map(|g| g.eta);
    let of_record = of_record.min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    Some(Facts {
        noise: stated.noise,
        over_limit: audit.limits.iter().any(|l| of_record > l.limit),
        open: Reservations { not_tried: true, not_settled: false, ..stated.open },
        protect_at: stated.protect_at,
        estimated: covered.max_by(f64::total_cmp).map(|d| normal_cdf(0.5 * d)),
        label_estimated: label.map(|d| normal_cdf(0.5 * d)),
        ..Facts::default()
    })
}

/// The strictest target that covers an attribute or the label: its own, or that of whole records.
fn goal_of(noise: &Noise, name: &str, secret: Secret) -> Option<f64> {
    let covers = |g: &&Goal| match g.secret {
        Secret::Record => true,
        Secret::Attribute | Secret::Label => g.secret == secret && g.name.as_deref() == Some(name),
    };
    noise.goals.iter().filter(covers).map(|g| g.eta).min_by(f64::total_cmp)
}

/// The shapes that a page offers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shapes {
    rules: &'static [Rule],
    colours: [&'static str; 3],
    headlines: [&'static str; 3],
    offered: Vec<Offered>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Offered {
    name: &'static str,
    audited: bool,
    /// What it costs and what is left of the model, in words.
    says: String,
    facts: Shown,
    command: String,
}

/// What the rules look at.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Shown {
    noise: &'static str,
    over_limit: bool,
    unfinished: bool,
    protect_at: f64,
    estimated: Option<f64>,
    label_estimated: Option<f64>,
}

impl Shapes {
    /// What a page of this audit offers; nothing where there is one shape alone.
    pub fn of(audit: &Audit) -> Option<Self> {
        let noise = audit.noise.as_ref().filter(|n| n.shapes.len() > 1)?;
        let offered = noise.shapes.iter().filter_map(|s| offered(audit, noise, s)).collect();
        let all = [Colour::Green, Colour::Amber, Colour::Red];
        Some(Self { rules: &RULES, colours: all.map(Colour::name), headlines: all.map(headline), offered })
    }

    /// As JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data with text keys always serialises")
    }
}

fn offered(audit: &Audit, noise: &Noise, s: &ShapeCost) -> Option<Offered> {
    let facts = facts_at(audit, s.shape)?;
    let left = audit.utility.as_ref().and_then(|u| {
        let point = s.points.iter().find(|p| (p.multiple - 1.0).abs() < 1e-9 && p.value.is_finite())?;
        Some(format!(" {} is then about {}.", words::metric_name(u.metric), words::metric(u, point.value)))
    });
    let says = format!(
        "Noise of {} shape that meets the same targets adds {} to {}{}.{}",
        noise_words::shape(s.shape),
        format::number(s.cost),
        noise_words::cost_unit(audit.model.family),
        if s.shape == Shape::Isotropic {
            String::new()
        } else {
            format!(", where isotropic noise adds {}", format::times(s.gain))
        },
        left.unwrap_or_default()
    );
    Some(Offered {
        name: noise_words::shape(s.shape),
        audited: s.shape == noise.shape,
        says,
        facts: Shown {
            noise: "chosen",
            over_limit: facts.over_limit,
            unfinished: true,
            protect_at: facts.protect_at,
            estimated: facts.estimated,
            label_estimated: facts.label_estimated,
        },
        command: command(audit, noise, s.shape),
    })
}

/// The line that releases with a shape for the targets of the audit; empty for a table in memory, which has no name.
fn command(audit: &Audit, noise: &Noise, shape: Shape) -> String {
    if audit.data.files.is_empty() {
        return String::new();
    }
    let mut words = vec![release_command(audit), format!("--noise-shape {}", noise_words::shape(shape))];
    let mut protected = vec![];
    for goal in &noise.goals {
        match (goal.name.as_deref(), goal.sd) {
            (Some(name), Some(sd)) => words.push(format!("--target-sd {}", quoted(&format!("{name}={sd}")))),
            (Some(name), None) => protected.push(name),
            (None, _) => {}
        }
    }
    if let Some(goal) = noise.goals.iter().find(|g| g.sd.is_none()) {
        words.push(format!("--target-eta {}", goal.eta));
    }
    if !protected.is_empty() {
        words.push(format!("--protect {}", quoted(&protected.join(","))));
    }
    if let Source::Table { files } = &noise.source {
        words.extend(files.iter().map(|f| format!("--shape-from {}", quoted(f))));
    }
    words.push("--out release".into());
    words.join(" ")
}
