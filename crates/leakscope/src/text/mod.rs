//! Language models: what fine-tuning on a text gives away.
//!
//! | module | what |
//! |---|---|
//! | [`canary`] | a [`canary::CanaryRequest`] in, bounds and attacks on a secret at the end of one text out |
//! | `candidates` | what the secret may be: the vocabulary, a list, a pattern |
//! | `model` | models and tokenisers from folders and files |

pub mod canary;
mod candidates;
mod model;
