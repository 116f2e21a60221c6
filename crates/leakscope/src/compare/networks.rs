//! The numbers of results about networks and language models: training runs, audits, attacks.

use super::numbers::Numbers;
use leakscope_report::comparison::Form;
use leakscope_report::document::net::NetAudit;
use leakscope_report::document::training::Training;
use leakscope_report::informed::{Adversary, Informed};
use leakscope_report::inversion::Inversion;
use leakscope_report::membership::{Membership, MembershipAttacker};
use leakscope_report::{TextAudit, format};

/// Those of a training run.
pub(super) fn training(t: &Training) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    let privacy = t.privacy.as_ref();
    settings.setting("noise multiplier σ", Form::Setting, privacy.map(|p| p.sigma));
    settings.setting("clip", Form::Setting, privacy.map(|p| p.clip));
    settings.setting("steps made", Form::Count, t.steps as f64);
    settings.setting("records in a batch", Form::Setting, t.batch);
    settings.setting("learning rate", Form::Setting, t.learning_rate);
    settings.setting("records", Form::Count, t.data.records as f64);
    let mut promise = Numbers::new("What is promised", "To every record, by the noise of the run.");
    let promised = privacy.and_then(|p| p.promise.as_ref());
    promise.leak("ε", Form::AtMost, promised.map(|p| p.epsilon));
    promise.setting("δ", Form::Setting, promised.map(|p| p.delta));
    promise.leak("membership advantage", Form::AtMost, promised.and_then(|p| p.advantage));
    let mut records = Numbers::new("Records", "What single records have given away over the run.");
    if let Some(accounts) = &t.accounts {
        records.over_records("dFIL", &accounts.dfil);
        if let Some(epsilon) = &accounts.epsilon {
            records.over_records("own ε", epsilon);
        }
    }
    let mut added = Numbers::new(
        "What is added to gradients",
        "Before the clip, learned on public records: as it was in the last step.",
    );
    if let Some(p) = t.public.as_ref().and_then(|p| p.perturbation.as_ref()) {
        added.setting("norm", Form::Number, p.norm);
        added.setting("cosine with the average public gradient", Form::Number, p.cosine);
        added.setting("difference between records, share of the norm", Form::Share, p.spread);
        added.setting("relative Jacobian of public records without it", Form::Number, p.without);
        added.leak("relative Jacobian of public records with it", Form::Number, p.with);
    }
    let mut utility = Numbers::new("Utility", "What the network is good for at the end of the run.");
    if let Some(point) = t.history.last() {
        utility.shield("accuracy", Form::Share, point.accuracy);
        utility.leak("loss of the records that accuracy is measured on", Form::Number, point.watched_loss);
        utility.leak("training loss", Form::Number, point.loss);
    }
    vec![settings, promise, records, utility, added]
}

/// Those of an audit of a network.
pub(super) fn audit(a: &NetAudit) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("noise multiplier σ", Form::Setting, a.release.sigma);
    settings.setting("clip", Form::Setting, a.release.clip);
    settings.setting("records measured", Form::Count, a.measured as f64);
    let mut records = Numbers::new("Records", "What one noisy step tells of single records.");
    for (name, measure) in [("dFIL", &a.dfil), ("η", &a.eta), ("PLIS", &a.plis)] {
        if let Some(summary) = measure {
            records.over_records(name, summary);
        }
    }
    records.shield(
        "mean squared error of an estimate, most exposed record",
        Form::AtLeast,
        a.min_mse.map(|b| b.value),
    );
    let mut attributes = Numbers::new(
        "Least error of an estimate",
        "Smallest standard deviation of an unbiased estimate from one step, for the most exposed record, in own units.",
    );
    for attribute in &a.attributes {
        attributes.shield(&*attribute.name, Form::AtLeast, attribute.min_sd.value);
    }
    let mut utility = Numbers::new("Utility", "What the network is good for on the measured records.");
    utility.shield("accuracy", Form::Share, a.accuracy);
    utility.leak("loss", Form::Number, a.loss);
    vec![settings, records, attributes, utility]
}

/// Those of reconstructions from gradients.
pub(super) fn inversion(i: &Inversion) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("records attacked", Form::Count, i.attacked as f64);
    settings.setting("records in one gradient", Form::Count, i.attack.batch as f64);
    settings.setting("steps of the attack", Form::Count, i.attack.iterations as f64);
    settings.setting("clip", Form::Setting, i.attack.clip);
    let mut numbers = Numbers::new(
        "What was reconstructed",
        "By noise, as observed: a change counts where the intervals do not meet. A smaller error is worse.",
    );
    for level in &i.levels {
        let at = format!("at σ = {}", format::setting(level.sigma));
        numbers.observed(format!("nearer to its own record than to another, {at}"), &level.identified);
        numbers.error(format!("mean squared error, {at}"), &level.mse);
        if let Some(alike) = &level.ssim {
            numbers.observed(format!("structural similarity, {at}"), alike);
        }
    }
    vec![settings, numbers]
}

/// Those of attacks on membership.
pub(super) fn membership(m: &Membership) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("training records attacked", Form::Count, m.members as f64);
    settings.setting("other records", Form::Count, m.others as f64);
    settings.setting("shadow models", Form::Count, m.shadows as f64);
    let mut promise = Numbers::new("What is promised", "To every record, by the noise of the run.");
    promise.leak("ε", Form::AtMost, m.promise.map(|p| p.epsilon));
    let mut rates = Numbers::new(
        "Who took part",
        "Training records that are named at a rate of others, as observed: a change counts where the intervals do not meet.",
    );
    for attack in &m.attacks {
        let who = match attack.attacker {
            MembershipAttacker::Loss => "loss",
            MembershipAttacker::GradientNorm => "norm of the gradient",
            MembershipAttacker::Lira => "likelihood ratio",
        };
        for point in &attack.points {
            rates
                .observed(format!("{who}, at {} of others", format::share(point.rate)), &point.true_positive);
        }
    }
    let mut canaries = Numbers::new("One run with canaries", "A lower bound on ε, with its confidence.");
    canaries.leak("ε", Form::AtLeast, m.canaries.as_ref().map(|c| c.epsilon.value));
    vec![settings, promise, rates, canaries]
}

/// Those of the informed adversary.
pub(super) fn informed(i: &Informed) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("noise multiplier σ", Form::Setting, i.training.sigma);
    settings.setting("records that are known", Form::Count, i.known as f64);
    settings.setting("models learned from", Form::Count, i.learned as f64);
    let mut promise = Numbers::new("What is promised", "To every record, by the noise of the training.");
    promise.leak("ε", Form::AtMost, i.epsilon);
    let mut numbers = Numbers::new(
        "What was reconstructed",
        "By adversary, as observed: a change counts where the intervals do not meet. A smaller error is worse.",
    );
    for attack in &i.attacks {
        let who = match attack.adversary {
            Adversary::Labels => "the label alone",
            Adversary::Ridge => "ridge regression",
            Adversary::Network => "a network",
        };
        numbers.observed(format!("{who}: nearer to its own record than to another"), &attack.identified);
        numbers.error(format!("{who}: mean squared error"), &attack.mse);
    }
    vec![settings, promise, numbers]
}

/// Those of texts.
pub(super) fn texts(a: &TextAudit) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("noise multiplier σ", Form::Setting, a.release.sigma);
    settings.setting("clip", Form::Setting, a.release.clip);
    settings.setting("texts", Form::Count, a.records.len() as f64);
    settings.setting("parameters that are trained", Form::Count, a.trained_parameters as f64);
    let mut records = Numbers::new("Texts", "What one noisy step of fine-tuning tells of single texts.");
    for (name, measure) in [("dFIL", &a.dfil), ("η", &a.eta)] {
        if let Some(summary) = measure {
            records.over_records(name, summary);
        }
    }
    let largest = a.records.iter().map(|r| r.plis).max_by(f64::total_cmp);
    records.leak("norm of PLIS, largest", Form::Number, largest);
    let mut exposures =
        Numbers::new("Marked secrets", "How far each stands out among what it might be, in bits.");
    for exposure in &a.exposures {
        exposures.leak(format!("secret {}", exposure.secret), Form::Number, exposure.exposure);
    }
    vec![settings, records, exposures]
}
