//! What the words mean, for readers who do not compute.

use crate::render::html::markup::{Html, fill};

const WORDS: [(&str, &str); 10] = [
    (
        "η, information loss",
        "How much the released model tells about a secret (a record, an attribute, a group). 0: nothing. An unbiased \
         estimate of the secret has a standard deviation of at least 1/η, in the units of the encoded columns. Twice \
         the η, half the error.",
    ),
    (
        "told apart",
        "Somebody knows everything about a record but one value, and that it is one of two. How often they name the right \
         one: 50% is a coin toss, 100% is certainty.",
    ),
    (
        "dFIL",
        "The same idea as an average over the columns of a record: no unbiased estimate of the whole record has a mean \
         squared error per column below 1/dFIL.",
    ),
    (
        "σ, noise",
        "The standard deviation of the random noise that is added to every coefficient before the model is released. \
         More noise, less leakage: η falls as one over σ.",
    ),
    (
        "unbiased, right on average",
        "Of an estimate: right on average over the noise, adding nothing that the attacker believed beforehand. Someone \
         who does use what they know of the population is covered by how often two values are told apart, which holds for everybody.",
    ),
    (
        "measured",
        "Computed from the model and the data: exact up to rounding. It describes this model and these records.",
    ),
    (
        "bound",
        "Proved for every attacker of the stated kind, also those nobody has thought of, as long as the assumptions \
         hold. Rounded to the safe side.",
    ),
    (
        "observed",
        "What one attack achieved in trials. Evidence of danger, never of safety; this audit ran no attack.",
    ),
    (
        "prior",
        "What an attacker knows before seeing the model. Here, unless stated otherwise: how the attribute is spread in \
         the population.",
    ),
    (
        "loss",
        "How badly the model fits a record. Often taken for its exposure; the charts above show why it is not.",
    ),
];

pub(super) fn glossary() -> Html {
    let each: Html =
        WORDS.iter().map(|(word, means)| fill("<div><dt>{}</dt><dd>{}</dd></div>", &[word, means])).collect();
    fill("<dl class=\"glossary\">{}</dl>", &[&each])
}
