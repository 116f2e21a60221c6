//! What the reader of a run's page should know beside its numbers.

use super::Precision;
use super::account::Facts;
use super::run::Ended;
use leakscope_net::{
    Real,
    train::{Randomness, Sampling, Tracking},
};
use leakscope_report::format;
use leakscope_report::net::Stopped;
use leakscope_report::text::Holdout;

/// The notes of a run, in the order in which they are shown.
pub(super) fn notes<T: Real>(ended: &Ended<'_, T>, f: &Facts) -> Vec<String> {
    let config = ended.run.config();
    let mut out: Vec<String> = f.replaced.iter().cloned().collect();
    if config.privacy.is_some() {
        out.extend(of_noise(config.randomness, f));
    }
    if let (Tracking::Drawn { .. }, Sampling::Poisson { rate: q }) = (config.tracking, config.sampling) {
        let draws = q * ended.run.steps() as f64;
        out.push(format!(
            "Accounts are kept of records where they are drawn: unbiased, but a record was drawn {draws:.1} times on average, \
             and of one that was drawn less than twice nothing is known. ⟨track=panel⟩ or ⟨track=every⟩ has no such error."
        ));
    }
    let read = f.names.read_off();
    if config.privacy.is_some() && !read.is_empty() {
        out.push(format!(
            "No ε is stated: {} were read off all records, so that one of them more or less changes what the others are in.{}",
            read.join(", "),
            if f.names.coding.is_some() {
                " Give ⟨bounds⟩ with ⟨scale=bounds⟩, ⟨levels⟩, or a ⟨schema⟩, and nothing is. private/encoding.json holds all of \
                 it."
            } else {
                ""
            }
        ));
    }
    if ended.start.pretrained.is_some() {
        out.push("The run started from given weights, which are taken to be public.".to_owned());
    }
    let has_statistics = ended.run.network().statistics().next().is_some();
    if let Some(pretraining) = ended.start.public.as_ref().map(|p| &p.facts) {
        out.push(format!(
            "The run started from weights that were trained on {} public records ({}): they are not counted, and the statement \
             does not cover them.",
            pretraining.records,
            pretraining.files.join(", ")
        ));
    }
    if ended.run.perturbing().is_some() {
        out.push(
            "Gradients were perturbed by what public records tell, which costs no record anything. Accounts are of what was \
             released; an audit of the model measures a step without the perturbation."
                .to_owned(),
        );
    }
    if !f.public.is_empty() && has_statistics {
        out.push(format!(
            "The statistics of batch norms come from {}, taken to be public: the statement does not cover them.",
            f.public.join(", ")
        ));
    } else if config.privacy.is_none() && has_statistics {
        out.push(
            "The statistics of batch norms are constants: those of the first weights, or given ones."
                .to_owned(),
        );
    }
    if let Some(h) = f.text.as_ref().and_then(|t| t.holdout.as_ref()) {
        out.extend(of_holdout(config.privacy.is_some(), h));
    }
    if f.precision == Precision::Tf32 {
        out.push(
            "Products inside passes were rounded to tf32 (eleven bits): losses and what records give away agree with single \
             precision to about a thousandth."
                .to_owned(),
        );
    }
    out.extend(stopping(ended));
    out
}

/// Where the noise comes from, and what its statement covers.
fn of_noise(randomness: Randomness, f: &Facts) -> Vec<String> {
    let mut out = vec![];
    match randomness {
        Randomness::System => out.push(
            format!(
            "Sampling and noise come from the system's cryptographic generator. Only private/checkpoint.safetensors \
             holds its key: whoever has that file can take the noise off. Where the verdict is calm enough for you, \
             {} may leave the house, nothing else.", f.leaves),
        ),
        Randomness::SeededNotPrivate => out.push(
            "Not private: the noise follows from the seed, and whoever knows it can take the noise off. No ε is \
             stated."
                .to_owned(),
        ),
    }
    if f.clip_assumed {
        out.push("No ⟨clip⟩ was given: gradients were clipped at C = 1.".to_owned());
    }
    out.push(
        "Losses and dFIL (and accuracies on training records) are computed without noise: the statement covers the \
         model, not these numbers."
            .to_owned(),
    );
    out
}

/// What losses of held-out texts say, and to whom nothing is promised.
fn of_holdout(private: bool, h: &Holdout) -> Vec<String> {
    let mut out = vec![];
    if private {
        out.push(
            "Losses of held-out texts are those of the noisy model: for the texts that were trained on they give away no \
             more than it does, but nothing is promised to the held-out texts. Take public ones, or keep these numbers \
             with the texts."
                .to_owned(),
        );
    }
    if h.seen > 0 {
        out.push(format!(
            "{} of {} held-out texts were trained on too: how well those are predicted says little about others.",
            h.seen, h.texts
        ));
    }
    out
}

/// How a run ended, and what only its owner may know of its steps.
fn stopping<T: Real>(ended: &Ended<'_, T>) -> Vec<String> {
    let (config, exact, mut out) = (ended.run.config(), ended.exact, vec![]);
    if let Some(why) = &ended.failure {
        let (seen, kept) = (ended.run.released_steps(), ended.run.steps());
        let counted = match config.privacy {
            Some(_) if seen > kept => format!(
                " That it stopped was decided on numbers with noise; what is stated counts all {}, those that were taken back \
                 too.",
                format::counted(seen, "step")
            ),
            Some(_) => " That it stopped was decided on numbers with noise.".to_owned(),
            None => String::new(),
        };
        out.push(format!("{why}; the parameters are those of the last good checkpoint.{counted}"));
    }
    if config.privacy.is_none() {
        return out;
    }
    if ended.stopped == Stopped::Interrupted {
        out.push(
            "The run was stopped by hand, and what is stated counts the steps that it made. If what was seen of losses decided when \
             to stop, that is not covered: go on with ⟨resume⟩ to the number of steps that was planned."
                .to_owned(),
        );
    }
    if let Some(step) = exact.out_of_proportion {
        out.push(format!(
            "At step {step} the loss was over a million times that at the start: the model is hardly what was asked for; lower \
             ⟨lr⟩. The run went on, since a loss has no noise, and to stop for it would tell of the records."
        ));
    }
    if exact.not_finite > 0 {
        out.push(format!(
            "{} the gradient of a drawn record was not finite: it took part with zero, which is within the clip. This number is \
             without noise: keep it.",
            match exact.not_finite {
                1 => "Once".to_owned(),
                n => format!("{} times", format::count(n)),
            }
        ));
    }
    out
}
