//! What numbers mean, in sentences that page and terminal share.

use crate::document::attack::Secret;
use crate::document::audit::{Attribute, Audit, Label, ScalingEffect, SigmaSource, Utility};
use crate::document::bound::Row;
use crate::document::canary::{self, PriorKind, Source};
use crate::document::choice::{ClipKind, Kind, Measure, Metric, ScalingMode, SeriesBy, Statistic};
use crate::document::informed::Adversary;
use crate::document::inversion::{Leakage, QualityKind};
use crate::document::membership::MembershipAttacker;
use crate::document::subject::Subject;
use crate::document::tell::ValuePair;
use crate::document::text::Trained;
use crate::document::training::Withheld;
use crate::format;
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::claim::Theorem;
use leakscope_core::dp::{Adjacency, Mechanism};

/// What of a record goes with how well it is found.
pub(crate) fn leakage(leakage: Leakage) -> &'static str {
    match leakage {
        Leakage::Plis => "norm of PLIS",
        Leakage::Dfil => "dFIL",
        Leakage::GradientNorm => "norm of the gradient",
    }
}

/// Who reconstructs the last record.
pub(crate) fn adversary(adversary: Adversary) -> &'static str {
    match adversary {
        Adversary::Labels => "label alone",
        Adversary::Ridge => "ridge regression",
        Adversary::Network => "network",
    }
}

/// Who tells members from others.
pub(crate) fn membership_attacker(attacker: MembershipAttacker) -> &'static str {
    match attacker {
        MembershipAttacker::Loss => "attack by loss",
        MembershipAttacker::GradientNorm => "attack by gradient norm",
        MembershipAttacker::Lira => "likelihood ratio attack",
    }
}

/// How well a record is found.
pub(crate) fn quality(quality: QualityKind) -> &'static str {
    match quality {
        QualityKind::Mse => "mean squared error",
        QualityKind::Ssim => "SSIM",
        QualityKind::HaarPsi => "HaarPSI",
        QualityKind::Lpips => "LPIPS",
    }
}

/// The spread of an indicator is at most that of a fair coin: what somebody is off by who knows nothing.
pub(crate) const INDICATOR_SPREAD: f64 = 0.5;

/// What an attacker is off by without the model: the population's spread, for a category that of a fair coin.
pub(crate) fn spread(attribute: &Attribute) -> Option<f64> {
    match attribute.kind {
        Kind::Category => Some(INDICATOR_SPREAD),
        Kind::Number => attribute.population_sd.filter(|s| s.is_finite() && *s > 0.0),
    }
}

/// How often values of an attribute are told apart: at most, or at least where the refits that were allowed left it open.
pub fn told_apart(pair: &ValuePair, protect_at: f64) -> String {
    match pair.told_at_least() {
        Some(least) if pair.worst > protect_at => format!("{} or more", format::share_at_least(least)),
        Some(_) | None => format::share_at_most(pair.worst),
    }
}

/// Whether the attribute is a category.
pub(crate) fn is_category(attribute: &Attribute) -> bool {
    attribute.kind == Kind::Category
}

/// The smallest error of an unbiased estimate, with its unit.
pub(crate) fn smallest_error(attribute: &Attribute) -> String {
    format::plus_minus(&format::bound(&attribute.min_sd), attribute.unit.as_deref())
}

/// η of a secret label, mean and largest, in the measure of attributes: by the target's standard deviation, or by the switch
/// from one class to the other.
pub(crate) fn label_eta(label: &Label) -> (f64, f64) {
    if !label.min_sd.value.is_finite() {
        return (0.0, 0.0);
    }
    let largest = label.population_sd.unwrap_or(1.0) / label.min_sd.value;
    (if label.eta_max > 0.0 { largest * label.eta_mean / label.eta_max } else { 0.0 }, largest)
}

/// What it adds to η that columns are scaled by their own data.
pub(crate) fn scaling(effect: &ScalingEffect) -> [String; 3] {
    let counted = match effect.mode {
        ScalingMode::Counted => "Counted in η that records move the scaling of their columns",
        ScalingMode::Given => {
            "Not counted in η that records move the scaling of their columns (⟨scaling=given⟩)"
        }
    };
    let at_most = if effect.exact { "" } else { "at most " };
    [
        format!("{counted}: the largest η is {at_most}"),
        " with it and ".to_owned(),
        " with means and spreads taken as public.".to_owned(),
    ]
}

/// A value of the utility's metric.
pub(crate) fn metric(utility: &Utility, value: f64) -> String {
    match utility.metric {
        Metric::Accuracy => format::share(value),
        Metric::Mse | Metric::Deviance => format::number(value),
    }
}

/// A metric as people call it.
pub fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Accuracy => "accuracy",
        Metric::Mse => "mean squared error",
        Metric::Deviance => "deviance",
    }
}

/// The expected metric at a noise, between the points of the curve; linear in log σ.
pub(crate) fn metric_at(utility: &Utility, sigma: f64) -> Option<f64> {
    let mut points: Vec<_> = utility
        .points
        .iter()
        .filter(|p| p.sigma > 0.0 && p.sigma.is_finite() && p.value.is_finite())
        .collect();
    points.sort_by(|a, b| a.sigma.total_cmp(&b.sigma));
    let right = points.iter().position(|p| p.sigma >= sigma)?;
    let b = points[right];
    let Some(a) = right.checked_sub(1).map(|i| points[i]) else {
        return (b.sigma <= sigma * (1.0 + 1e-12)).then_some(b.value);
    };
    let t = (sigma / a.sigma).ln() / (b.sigma / a.sigma).ln();
    Some(a.value + t * (b.value - a.value))
}

/// How much worse the metric is than without noise, in short; negative differences are luck and count as none.
pub(crate) fn cost(utility: &Utility, value: f64) -> String {
    let u = utility;
    let worse = if u.higher_is_better { u.without_noise - value } else { value - u.without_noise };
    if !worse.is_finite() {
        return "without bound".into();
    }
    if u.metric == Metric::Accuracy {
        let points = 100.0 * worse;
        if points < 0.05 { "nothing measurable".into() } else { format!("{points:.1} points of accuracy") }
    } else if u.without_noise.abs() > 0.0 {
        let relative = worse / u.without_noise.abs();
        match relative {
            r if r < 0.0005 => "nothing measurable".into(),
            r if r >= 10.0 => format!("×{} in {}", format::number(1.0 + r), metric_name(u.metric)),
            r => format!("{} in {}", format::share(r), metric_name(u.metric)),
        }
    } else {
        format!("{} in {}", format::number(worse), metric_name(u.metric))
    }
}

/// Whether the noise leaves nothing of the model: it does no better than one without any columns.
pub(crate) fn is_useless(utility: &Utility) -> bool {
    leaves_nothing(utility, utility.at_sigma)
}

/// The same where the metric is `value`.
pub(crate) fn leaves_nothing(utility: &Utility, value: f64) -> bool {
    match utility.higher_is_better {
        true => value <= utility.constant_model,
        false => !value.is_finite() || value >= utility.constant_model,
    }
}

/// What another noise costs, as a clause of advice; nothing where that is not known. Beyond the end of the curve a model is no
/// better than at its end.
pub(crate) fn cost_at(utility: &Utility, sigma: f64) -> Option<String> {
    let there = metric_at(utility, sigma);
    let last = utility.points.iter().filter(|p| p.sigma < sigma).max_by(|a, b| a.sigma.total_cmp(&b.sigma));
    let value = there.or_else(|| last.map(|p| p.value).filter(|value| leaves_nothing(utility, *value)))?;
    if !leaves_nothing(utility, value) {
        return Some(format!(" and costs {}", cost(utility, value)));
    }
    let name = metric_name(utility.metric);
    Some(format!(
        " and leaves nothing of the model ({name} {} or worse, {} from one without any columns): no noise of this kind gives both, \
         so leave out what need not be in it, or penalise more (⟨l2⟩)",
        metric(utility, value),
        metric(utility, utility.constant_model)
    ))
}

/// What the audit is of: files and target.
pub(crate) fn title_of(audit: &Audit) -> String {
    let files = match audit.data.files.as_slice() {
        [] => "A table".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", format::counted(rest.len() as u64, "file")),
    };
    format!("{files}, predicting {}", audit.data.target)
}

/// Records, columns, model and noise in one line.
pub(crate) fn facts(audit: &Audit) -> Vec<String> {
    let mut facts = facts_but_noise(audit);
    facts.push(released(audit));
    facts
}

/// How often it is released, and with which noise.
pub(crate) fn released(audit: &Audit) -> String {
    let released = match audit.releases {
        0 | 1 => "released once".to_owned(),
        2 => "released twice".to_owned(),
        k => format!("released {k} times"),
    };
    format!("{released} with noise σ = {}", format::setting(audit.sigma))
}

/// What stays whatever the noise.
pub(crate) fn facts_but_noise(audit: &Audit) -> Vec<String> {
    let regression = audit.model.family.title();
    vec![
        format::counted(audit.n, "record"),
        format!(
            "{} from {}",
            format::counted(audit.d as u64, "column"),
            format::counted(audit.attributes.len() as u64, "attribute")
        ),
        format!("{regression}, l2 = {}", format::setting(audit.model.l2)),
    ]
}

/// Where σ comes from, as a sentence.
pub(crate) fn sigma_source(audit: &Audit) -> String {
    let sigma = format::setting(audit.sigma);
    match &audit.sigma_source {
        SigmaSource::Default => format!(
            "No noise was chosen: numbers are per unit of noise (σ = {sigma}). η is inversely proportional to σ."
        ),
        SigmaSource::Given => format!("σ = {sigma} was given."),
        SigmaSource::TargetEta { eta, statistic } => format!(
            "σ = {sigma} was solved for, so that {} is {}.",
            statistic_name(*statistic),
            format::setting(*eta)
        ),
        SigmaSource::TargetSd { attribute, sd } => format!(
            "σ = {sigma} was solved for, so that no estimate of {attribute} that is right on average is off by less than ±{}.",
            format::setting(*sd)
        ),
        SigmaSource::Targets => crate::noise_words::source(audit)
            .unwrap_or_else(|| format!("The noise was made for its targets; σ = {sigma}.")),
    }
}

/// `the largest η`, `the mean η`, `the 99th percentile of η`.
pub(crate) fn statistic_name(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Eta | Statistic::Max => "the largest η",
        Statistic::Mean => "the mean η",
        Statistic::P99 => "the 99th percentile of η",
    }
}

/// What the series of the histogram are.
pub(crate) fn series_by(audit: &Audit) -> Option<&str> {
    match audit.records.histogram.by {
        SeriesBy::Group => Some(audit.data.group.as_deref().unwrap_or("group")),
        SeriesBy::Class => Some(audit.data.target.as_str()),
        SeriesBy::All => None,
    }
}

/// What loss alone would have missed.
pub(crate) fn missed(audit: &Audit) -> String {
    let r = &audit.records;
    if r.eta.max <= 0.0 {
        return "No record leaks anything: there is nothing that loss could have missed.".into();
    }
    let low = r.most.iter().filter(|m| m.loss_rank < 0.95).count() as u64;
    let these = match (low, r.most.len() as u64) {
        (_, 0) => String::new(),
        (0, 1) => "Loss alone would have found the most exposed record. ".to_owned(),
        (_, 1) => {
            "Loss alone would have missed the most exposed record: its loss is below the 95th percentile. "
                .to_owned()
        }
        (0, m) => format!("Loss alone would have found all {m} most exposed records. "),
        (k, m) => {
            let belongs = if k == 1 { "its loss is" } else { "their loss is" };
            format!(
                "Loss alone would have missed {k} of the {m} most exposed records: {belongs} below the 95th percentile. "
            )
        }
    };
    format!(
        "{these}Above the 99th percentile of η, loss misses {} of the records and the gradient norm {}.",
        format::share(r.missed_by_loss),
        format::share(r.missed_by_gradient)
    )
}

/// The model and data of a command: a title, and the facts in one line.
pub(crate) fn subject(s: &Subject) -> (String, String) {
    let title = format!("{} of {}", s.target, s.files.join(", "));
    let facts = format!(
        "{} · {} · {} · λ = {}",
        s.family.title(),
        format::counted(s.n, "record"),
        format::counted(s.d as u64, "column"),
        format::setting(s.l2)
    );
    (title, facts)
}

/// The values of a secret with how frequent they are.
pub(crate) fn candidates(secret: &Secret) -> String {
    const MOST: usize = 12;
    let mut each: Vec<String> = secret
        .candidates
        .iter()
        .take(MOST)
        .map(|c| format!("{} {}", c.name, format::share(c.prior)))
        .collect();
    if secret.candidates.len() > MOST {
        each.push(format!("and {} more", secret.candidates.len() - MOST));
    }
    each.join(", ")
}

/// An attacker by its name for people.
pub fn attacker(attack: Attacker) -> &'static str {
    match attack {
        Attacker::WhiteBox => "white box",
        Attacker::WhiteBoxPrior => "white box with prior",
        Attacker::BlackBox => "black box",
        Attacker::Informed => "informed adversary",
    }
}

/// A clip in words.
pub(crate) fn clip(kind: ClipKind) -> &'static str {
    match kind {
        ClipKind::Hard => "hard",
        ClipKind::Gelu => "smooth (GELU)",
        ClipKind::None => "no",
    }
}

/// Why a run with noise states no ε.
pub(crate) fn withheld(reason: Option<&Withheld>) -> &'static str {
    match reason {
        Some(Withheld::ReadOffRecords(_)) => {
            "something of the encoding or of the network was read off the records"
        }
        Some(Withheld::NoiseFromSeed) | None => "the noise follows from a seed",
    }
}

/// A measure of a record under a network.
pub(crate) fn measure(measure: Measure) -> &'static str {
    match measure {
        Measure::GradientNorm => "gradient norm",
        Measure::Dfil => "dFIL",
        Measure::Eta => "η",
        Measure::Plis => "norm of PLIS",
    }
}

/// A theorem by a short name.
pub fn theorem(theorem: Theorem) -> &'static str {
    match theorem {
        Theorem::FanoExact => "Fano, exact information",
        Theorem::FanoMonteCarlo => "Fano, simulated information",
        Theorem::FanoPairwise => "Fano, pairwise distances",
        Theorem::FanoTheorem2 => "Fano, theorem 2",
        Theorem::FanoRdp => "Fano, Rényi DP",
        Theorem::FanoReference => "Fano, one reference",
        Theorem::Salamatian => "Salamatian",
        Theorem::Balle => "Balle",
        Theorem::OneCentre => "one centre",
        Theorem::BestCentre => "best centre",
        Theorem::TradeOff => "trade-off function",
        Theorem::TotalVariation => "total variation",
        Theorem::TwoValues => "two values told apart",
        Theorem::OneRun => "canaries in one run",
        Theorem::EpsilonDelta => "(ε, δ)",
        Theorem::CramerRao | Theorem::CramerRaoRecord | Theorem::CramerRaoGradient => "Cramér–Rao",
        Theorem::VanTrees => "van Trees",
    }
}

/// What a bound does, where its name does not say it.
pub(crate) fn gloss(theorem: Theorem) -> Option<&'static str> {
    match theorem {
        Theorem::OneCentre => Some("each value is tested against one model in the middle of all"),
        Theorem::BestCentre => Some("each value is tested against the model that makes guessing hardest"),
        Theorem::FanoExact
        | Theorem::FanoMonteCarlo
        | Theorem::FanoPairwise
        | Theorem::FanoTheorem2
        | Theorem::FanoRdp
        | Theorem::FanoReference
        | Theorem::Salamatian
        | Theorem::Balle
        | Theorem::TradeOff
        | Theorem::TotalVariation
        | Theorem::TwoValues
        | Theorem::OneRun
        | Theorem::EpsilonDelta
        | Theorem::CramerRao
        | Theorem::CramerRaoRecord
        | Theorem::CramerRaoGradient
        | Theorem::VanTrees => None,
    }
}

/// A bound by its name for people.
pub fn bound(row: &Row) -> String {
    let name = theorem(row.name);
    if row.largest_distance { format!("{name}, largest distance over all records") } else { name.into() }
}

/// The adjacency in words.
pub fn adjacency(adjacency: Adjacency) -> &'static str {
    match adjacency {
        Adjacency::AddRemove => "add/remove: one record is there or is not",
        Adjacency::Replace => "replace: one record takes another value",
    }
}

/// A release in words.
pub fn release(mechanism: Mechanism, count: u64) -> String {
    use crate::format::{count as whole, setting};
    let mechanism_name = match mechanism {
        Mechanism::Gaussian { sigma, rate: 1.0 } => format!("Gaussian noise, σ = {}", setting(sigma)),
        Mechanism::Gaussian { sigma, rate } => {
            format!("Gaussian noise, σ = {}, each record with probability {}", setting(sigma), setting(rate))
        }
        Mechanism::Laplace { scale } => format!("Laplace noise of scale {}", setting(scale)),
        Mechanism::RandomisedResponse { categories, noise } => {
            format!("randomised response over {} values, noise {}", whole(categories), setting(noise))
        }
    };
    format!(
        "{mechanism_name}, {}",
        if count == 1 { "once".into() } else { format!("{} times", whole(count)) }
    )
}

/// What is trained of a model.
pub fn part(part: Trained) -> &'static str {
    match part {
        Trained::All => "all layers",
        Trained::Last => "last layer",
        Trained::Adapters => "adapters",
    }
}

/// The candidates of a canary.
pub(crate) fn canary_source(secret: &canary::Secret) -> String {
    let tokens = match (secret.tokens_min, secret.tokens_max) {
        (a, b) if a == b => format::counted(a, "token"),
        (a, b) => format!("{a} to {b} tokens"),
    };
    match secret.source {
        Source::Vocabulary => "candidates: every token of the vocabulary".into(),
        Source::Drawn => format!("candidates: sequences of {tokens}, drawn"),
        Source::List => format!("candidates from a list, {tokens}"),
        Source::Pattern => format!("candidates from a pattern, {tokens}"),
    }
}

/// What is guessed without the fine-tuned model.
pub(crate) fn canary_prior(prior: PriorKind) -> &'static str {
    match prior {
        PriorKind::Uniform => "right by guessing: all candidates are alike",
        PriorKind::Model => "right by guessing what the model held likeliest before",
    }
}
