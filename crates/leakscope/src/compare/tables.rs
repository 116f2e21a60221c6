//! The numbers of results about models of tables: audits, balancings, releases.

use super::numbers::Numbers;
use leakscope_report::comparison::Form;
use leakscope_report::{Audit, Balance, Release, words};

/// Those of an audit.
pub(super) fn audit(a: &Audit) -> Vec<Numbers> {
    vec![settings(a), records(a), telling_apart(a), attributes(a), groups(a), classes(a), utility(a)]
}

fn settings(a: &Audit) -> Numbers {
    let mut n = Numbers::new("Settings", "What was chosen, or read: neither better nor worse by itself.");
    n.setting("σ, noise on every coefficient", Form::Setting, a.sigma);
    n.setting("releases", Form::Count, f64::from(a.releases));
    n.setting("penalty λ", Form::Setting, a.model.l2);
    n.setting("records", Form::Count, a.n as f64);
    n.setting("encoded columns", Form::Count, a.d as f64);
    n
}

fn records(a: &Audit) -> Numbers {
    let mut n =
        Numbers::new("Records", "Information loss η: how sharply the released model points at one record.");
    n.over_records("η of a record", &a.records.eta);
    n.leak("η of the whole data set", Form::Number, a.dataset.eta);
    n.leak("records above three times the median η", Form::Count, a.records.stand_out as f64);
    n
}

fn telling_apart(a: &Audit) -> Numbers {
    let mut n = Numbers::new(
        "Two values told apart",
        "How often somebody who knows all else names the right one of two values of the most exposed record, at most; a coin \
         toss: 50%.",
    );
    for pair in a.tell.iter().flat_map(|t| &t.attributes) {
        let name =
            if pair.label { format!("{} (the label)", pair.attribute) } else { pair.attribute.clone() };
        n.leak(&*name, Form::ShareAtMost, pair.worst);
        n.leak(format!("{name}, all levels at once"), Form::ShareAtMost, pair.among_all.map(|all| all.worst));
    }
    n
}

fn attributes(a: &Audit) -> Numbers {
    let mut n = Numbers::new(
        "Least error of an estimate",
        "Smallest standard deviation of an unbiased estimate for the most exposed record, in the attribute's own units (a \
         category: of an indicator, 0 to 1).",
    );
    for attribute in &a.attributes {
        n.shield(&*attribute.name, Form::AtLeast, attribute.min_sd.value);
    }
    if let Some(label) = &a.label {
        n.shield(format!("{} (the label)", label.name), Form::AtLeast, label.min_sd.value);
    }
    n
}

fn groups(a: &Audit) -> Numbers {
    let title = a.data.group.as_ref().map_or_else(|| "Groups".to_owned(), |g| format!("Groups of {g}"));
    let mut n = Numbers::named_by_values(title, "η of the members of each group.");
    for group in &a.groups {
        n.leak(format!("{}, mean η", group.name), Form::Number, group.eta_mean);
        n.leak(format!("{}, largest η", group.name), Form::Number, group.eta_max);
    }
    n
}

fn classes(a: &Audit) -> Numbers {
    let mut n =
        Numbers::named_by_values(format!("Classes of {}", a.data.target), "η of the records of each class.");
    for class in &a.classes {
        n.leak(format!("{}, mean η", class.name), Form::Number, class.eta_mean);
        n.leak(format!("{}, largest η", class.name), Form::Number, class.eta_max);
    }
    n
}

fn utility(a: &Audit) -> Numbers {
    let mut n = Numbers::new("Utility", "What the model is good for on rows that it was not fitted to.");
    if let Some(u) = &a.utility {
        let name = words::metric_name(u.metric);
        n.score(format!("{name} with the noise"), u.higher_is_better, u.at_sigma);
        n.score(format!("{name} without noise"), u.higher_is_better, u.without_noise);
    }
    n
}

/// Those of a balancing.
pub(super) fn balance(b: &Balance) -> Vec<Numbers> {
    let mut settings =
        Numbers::new("Settings", "What was chosen, or read: neither better nor worse by itself.");
    settings.setting("σ, noise on every coefficient", Form::Setting, b.sigma);
    settings.setting("penalty λ", Form::Setting, b.subject.l2);
    settings.setting("records", Form::Count, b.subject.n as f64);
    settings.setting("iteration that was kept", Form::Count, b.best as f64);
    let mut records = Numbers::new("Records after balancing", "Information loss η of the balanced model.");
    let mut utility = Numbers::new("Utility", "What the balanced model is good for.");
    if let Some(step) = b.iterations.get(b.best) {
        records.leak("η of a record, mean", Form::Number, step.eta_mean);
        records.leak("η of a record, largest", Form::Number, step.eta_max);
        records.leak("η without the weights, largest", Form::Number, step.eta_unweighted_max);
        records.leak("spread of η, as a share of its mean", Form::Share, step.spread());
        let name = words::metric_name(b.metric);
        utility.score(format!("{name} on held-out rows"), b.higher_is_better, step.test_score);
        utility.score(format!("{name} on training rows"), b.higher_is_better, step.train_score);
    }
    vec![settings, records, utility]
}

/// Those of a release.
pub(super) fn release(r: &Release) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("σ, noise on every coefficient", Form::Setting, r.mechanism.sigma);
    settings.setting("penalty λ", Form::Setting, r.subject.l2);
    settings.setting("releases of these data so far", Form::Count, r.composed.releases as f64);
    let mut stated =
        Numbers::new("What is stated", "Every number is an upper bound, as the statement has it.");
    stated.leak("η of this release, largest", Form::AtMost, r.eta.max);
    stated.leak("η of all releases so far, largest", Form::AtMost, r.composed.eta_max);
    if let Some(tell) = &r.tell {
        stated.leak(
            "two values of an attribute told apart",
            Form::ShareAtMost,
            tell.attributes.map(|c| c.at_most),
        );
        stated.leak("two values of the label told apart", Form::ShareAtMost, tell.label.map(|c| c.at_most));
    }
    vec![settings, stated]
}
