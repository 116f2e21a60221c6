//! Language models: what fine-tuning on a text gives away.
//!
//! | module | what |
//! |---|---|
//! | [`train`] | a [`train::TextTrainRequest`] in, a fine-tuned model with its accounts in a folder out |
//! | `stored` | the folder of the fine-tuned model: weights in the layout they came from, and the tokeniser |
//! | [`audit`] | an [`audit::TextAuditRequest`] in, what one noisy step tells about every text out |
//! | `source` | the model and the texts that both are about |
//! | `texts` | texts from files and memory, as tokens |
//! | `exposure` | how far marked secrets stand out |
//! | [`canary`] | a [`canary::CanaryRequest`] in, bounds and attacks on a secret at the end of one text out |
//! | `candidates` | what the secret may be: the vocabulary, a list, a pattern |
//! | `model` | models and tokenisers from folders and files |

pub mod audit;
pub mod canary;
mod candidates;
mod exposure;
mod model;
mod source;
mod stored;
mod texts;
pub mod train;

pub use source::TextSource;
pub use texts::Long;
