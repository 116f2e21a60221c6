//! Exposure of marked secrets (Carlini et al. 2019): how likely the model holds a secret to be among all that it might be.

use super::audit::TextAuditRequest;
use super::model::language_model;
use super::texts::Line;
use crate::{Failure, Result};
use leakscope_net::text::canary::{Canary, FineTuning, LastLayer, pattern};
use leakscope_net::text::{LanguageModel, Tokenizer, Trained};
use leakscope_report::text_audit::Exposure;

/// The exposure of every marked secret, in the first text that has it.
pub(super) fn exposures(
    request: &TextAuditRequest,
    tokenizer: &Tokenizer,
    lines: &[Line],
) -> Result<Vec<Exposure>> {
    let Some(text) = &request.secret_pattern else { return Ok(vec![]) };
    let texts = pattern::expand(text).map_err(|e| Failure::option("secret_pattern", e))?;
    let model: LanguageModel<f32> = language_model(&request.model, Trained::Last, request.device.backend()?)?;
    let one =
        |(i, secret): (usize, &String)| exposure(&model, tokenizer, lines, &texts, (i as u64 + 1, secret));
    request.secrets.iter().enumerate().map(one).collect()
}

fn exposure(
    model: &LanguageModel<f32>,
    tokenizer: &Tokenizer,
    lines: &[Line],
    texts: &[String],
    (number, secret): (u64, &str),
) -> Result<Exposure> {
    let bad = |message: String| Failure::option("secret", message);
    let Some((line, at)) = lines.iter().find_map(|l| l.text.find(secret).map(|at| (l, at))) else {
        return Err(bad(format!("`{secret}` is in none of the texts: write it as it stands there")));
    };
    let Some(own) = texts.iter().position(|t| t == secret) else {
        return Err(bad(format!(
            "`{secret}` is none of the {} texts that the pattern stands for",
            texts.len()
        )));
    };
    // a word is a token with the space before it, so that space goes with the secret
    let before = line.text[..at].trim_end();
    let space = &line.text[before.len()..at];
    if before.is_empty() {
        return Err(bad(format!(
            "`{secret}` opens its text ({}): nothing before it to predict it from",
            line.place
        )));
    }
    let encode = |text: &str| tokenizer.encode_on(&format!("{space}{text}"));
    let mut candidates: Vec<Vec<u32>> =
        texts.iter().map(|t| encode(t)).collect::<std::result::Result<_, _>>()?;
    let secret_tokens = candidates[own].clone();
    candidates.sort();
    candidates.dedup();
    let own = candidates.iter().position(|c| *c == secret_tokens).unwrap_or(0);
    let mut prompt = tokenizer.encode(before)?;
    let most = candidates.iter().map(Vec::len).max().unwrap_or(0);
    // the context's end alone fits
    let kept = model.context().saturating_sub(most).max(1);
    if prompt.len() > kept {
        prompt.drain(..prompt.len() - kept);
    }
    let canary = Canary::new(prompt, candidates)?;
    let game = LastLayer::new(model, &canary, FineTuning { clip: 1.0, learning_rate: 1.0 })?;
    let ln = game.log_likelihoods();
    let rank = 1 + ln.iter().filter(|l| **l > ln[own]).count();
    let candidates = ln.len();
    Ok(Exposure {
        secret: number,
        record: line.number.to_string(),
        candidates: candidates as u64,
        rank: rank as u64,
        exposure: (candidates as f64).log2() - (rank as f64).log2(),
    })
}
