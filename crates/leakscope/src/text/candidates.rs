//! What the secret may be: every token, drawn sequences, a list, a pattern.

use super::canary::CanaryRequest;
use crate::{Failure, Result};
use leakscope_net::random::{Generator, Purpose};
use leakscope_net::text::Tokenizer;
use leakscope_net::text::canary::pattern;
use leakscope_report::canary::Source;
use std::collections::HashSet;

/// Sequences that are drawn where the secret has several tokens and nobody says which.
const DRAWN: usize = 1_000;

/// Candidates in tokens, where they come from, and what the user should know of them.
pub(super) struct Candidates {
    pub(super) tokens: Vec<Vec<u32>>,
    pub(super) source: Source,
    pub(super) warnings: Vec<String>,
}

/// The candidates of a request, for a model of some vocabulary.
pub(super) fn candidates(
    request: &CanaryRequest,
    tokenizer: &Tokenizer,
    vocabulary: usize,
    seed: u64,
) -> Result<Candidates> {
    let several = [request.candidates.is_some(), !request.list.is_empty(), request.secret_pattern.is_some()];
    if several.iter().filter(|g| **g).count() > 1 {
        return Err(Failure::option(
            "secret_pattern",
            "candidates come from one place: a file, a list or a pattern",
        ));
    }
    if let Some(text) = &request.secret_pattern {
        let texts = pattern::expand(text).map_err(|e| Failure::option("secret_pattern", e))?;
        return listed("secret_pattern", &texts, Source::Pattern, request, tokenizer);
    }
    if let Some(path) = &request.candidates {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::option("candidates", format!("{}: cannot read it: {e}", path.display())))?;
        let texts: Vec<String> =
            text.lines().map(str::trim_end).filter(|l| !l.is_empty()).map(str::to_owned).collect();
        return listed("candidates", &texts, Source::List, request, tokenizer);
    }
    if !request.list.is_empty() {
        return listed("candidates", &request.list, Source::List, request, tokenizer);
    }
    match request.secret_tokens {
        0 => Err(Failure::number("secret_tokens", 0, "expected at least 1")),
        1 => Ok(Candidates {
            tokens: (0..vocabulary as u32).map(|y| vec![y]).collect(),
            source: Source::Vocabulary,
            warnings: vec![],
        }),
        n => Ok(Candidates {
            tokens: sequences(n, vocabulary, seed),
            source: Source::Drawn,
            warnings: vec![format!(
                "The secret is one of {DRAWN} sequences of {n} tokens that were drawn and that the attacker knows; there are \
                 many more. Name candidates, or a pattern of them, for a secret of your own."
            )],
        }),
    }
}

/// Different sequences of tokens.
fn sequences(length: usize, vocabulary: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut random = Generator::new(seed, Purpose::Other, u64::MAX);
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    // a vocabulary of two has few sequences
    for _ in 0..20 * DRAWN {
        let one: Vec<u32> = (0..length).map(|_| (random.uniform() * vocabulary as f64) as u32).collect();
        if out.len() < DRAWN && seen.insert(one.clone()) {
            out.push(one);
        }
    }
    out
}

fn listed(
    option: &str,
    texts: &[String],
    source: Source,
    request: &CanaryRequest,
    tokenizer: &Tokenizer,
) -> Result<Candidates> {
    let space = if request.prompt.ends_with(char::is_whitespace) { "" } else { " " };
    let mut seen = HashSet::new();
    let (mut tokens, mut twice) = (Vec::new(), 0_u64);
    for text in texts {
        let ids =
            tokenizer.encode_on(&format!("{space}{text}")).map_err(|e| Failure::text(option, text, e))?;
        if ids.is_empty() {
            return Err(Failure::option(option, format!("`{text}` has no token: leave it out")));
        }
        if seen.insert(ids.clone()) {
            tokens.push(ids);
        } else {
            twice += 1;
        }
    }
    if tokens.len() < 2 {
        let message = format!(
            "{} different candidate{}: expected at least 2",
            tokens.len(),
            if tokens.len() == 1 { "" } else { "s" }
        );
        return Err(Failure::option(option, message));
    }
    let warnings = match twice {
        0 => vec![],
        1 => vec!["One candidate has the tokens of another, and counts once.".into()],
        n => vec![format!("{n} candidates have the tokens of others, and count once.")],
    };
    Ok(Candidates { tokens, source, warnings })
}
