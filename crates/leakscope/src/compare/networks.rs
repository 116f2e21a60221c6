//! The numbers of results about networks: training runs and audits.

use super::numbers::Numbers;
use leakscope_report::comparison::Form;
use leakscope_report::document::net::NetAudit;
use leakscope_report::document::training::Training;

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
