//! Language models from files: networks of decoder blocks with the weights of others.
//!
//! | file | what it holds |
//! |---|---|
//! | `config` | `config.json` of Hugging Face: which decoder it is |
//! | `decoder` | a decoder as a network, and where files keep the values of each layer |
//! | `weights` | `model.safetensors`, whole or in shards, into a network |
//! | `llama2c` | checkpoints of llama2.c |
//! | `layout` | how a model was stored, and the files of one that was trained, stored the same way |
//!
//! A text is one record: every token but the last is a position, and its label the token after it.
//!
//! ```
//! use leakscope_net::text::{LanguageModel, Tokenizer, Trained};
//! use std::path::Path;
//!
//! # let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/text/gpt2");
//! let model = LanguageModel::<f32>::read(&folder, Trained::All)?;
//! let text = Tokenizer::read(&folder)?.encode("The patient was given 5 mg of warfarin.")?;
//! let data = model.texts(&[&text])?;
//! assert!(leakscope_net::engine::evaluate(model.network(), &data)?.loss > 0.0);
//! # Ok::<(), leakscope_net::Error>(())
//! ```

mod config;
mod decoder;
mod layout;
mod llama2c;
mod weights;

pub use layout::{Layout, ModelFile};

use crate::{
    Backend, Data, Error, LayerSpec, NetSpec, Network, Real, Result,
    engine::predict_data,
    error::{check, check_len},
    io::fault,
};
pub use leakscope_core::choice::Trained;

use std::path::Path;
use weights::Weights;

/// What of a model is trained, and how adapters start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuned {
    /// The part.
    pub part: Trained,
    /// Rank of adapters.
    pub rank: usize,
    /// Seed of their first values.
    pub seed: u64,
}

impl From<Trained> for Tuned {
    fn from(part: Trained) -> Self {
        Self { part, rank: 8, seed: 0 }
    }
}

/// Sizes of a GPT-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpt2 {
    /// Tokens there are.
    pub vocabulary: usize,
    /// Tokens of the longest text.
    pub context: usize,
    /// Values that a token is embedded as.
    pub width: usize,
    /// Blocks.
    pub blocks: usize,
    /// Heads of each.
    pub heads: usize,
}

impl Gpt2 {
    /// The one of 124 million parameters.
    pub const SMALL: Self = Self { vocabulary: 50_257, context: 1024, width: 768, blocks: 12, heads: 12 };

    /// The network of these sizes, all of it trained: weights can be drawn for it where no file is at hand.
    pub fn network(self) -> NetSpec {
        let Self { vocabulary, context, width, blocks, heads } = self;
        let decoder = decoder::Decoder {
            style: decoder::Style::Gpt2 { activation: LayerSpec::GeluTanh },
            vocabulary,
            context,
            width,
            hidden: 4 * width,
            blocks,
            heads,
            shared: heads,
            head: width / heads.max(1),
            epsilon: 1e-5,
            tied: true,
        };
        decoder.plan("", Trained::All, 1).0
    }
}

/// A decoder that predicts the next token.
#[derive(Debug)]
pub struct LanguageModel<T> {
    network: Network<T>,
    layout: Layout,
    vocabulary: usize,
    context: usize,
    width: usize,
}

impl<T: Real> LanguageModel<T> {
    /// The same model computing elsewhere.
    pub fn on(mut self, backend: Backend) -> Result<Self> {
        self.network.move_to(backend)?;
        Ok(self)
    }

    /// Reads a folder of Hugging Face (`config.json` of `model_type` gpt2 or llama, and `model.safetensors` whole or in
    /// shards), or a checkpoint of llama2.c (version 0).
    ///
    /// # Errors
    /// [`Error::File`] for a file that is missing or not what it should be: it names the file and, where it is about one,
    /// the tensor.
    pub fn read(path: &Path, tuned: impl Into<Tuned>) -> Result<Self> {
        let tuned = tuned.into();
        check(tuned.rank >= 1, "the rank of adapters", tuned.rank as f64, "at least 1")?;
        let (decoder, weights, stored) = if path.is_dir() {
            let config = path.join("config.json");
            if !config.is_file() {
                return Err(fault(
                    path,
                    "no config.json in this folder: expected a model as transformers saves it, or the file of a llama2.c \
                     checkpoint",
                ));
            }
            let (decoder, text) = config::read(&config)?;
            let weights = Weights::folder(path)?;
            let stored = layout::Stored::folder(text, &weights);
            (decoder, weights, stored)
        } else {
            let (decoder, tensors, stored) = llama2c::read(path)?;
            (decoder, Weights::one(path, tensors), layout::Stored::Llama2c(stored))
        };
        let network = weights.network(&decoder, tuned)?;
        let prefix = weights.prefix(&decoder);
        let (vocabulary, context, width) = (decoder.vocabulary, decoder.context, decoder.width);
        let layout = Layout { decoder, prefix, part: tuned.part, rank: tuned.rank, stored };
        Ok(Self { network, layout, vocabulary, context, width })
    }

    /// The network.
    pub fn network(&self) -> &Network<T> {
        &self.network
    }

    /// The network alone.
    pub fn into_network(self) -> Network<T> {
        self.network
    }

    /// The network, and how to store it after training.
    pub fn split(self) -> (Network<T>, Layout) {
        (self.network, self.layout)
    }

    /// Number of tokens there are.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Tokens of the longest text.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Values that a token is embedded as.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Texts of one length as records: each token but the last has the next one as its label.
    ///
    /// # Errors
    /// Texts of fewer than two tokens, of different lengths or longer than the context, and [`Error::Token`] for tokens
    /// that the model does not have.
    pub fn texts(&self, texts: &[&[u32]]) -> Result<Data<T>> {
        let length = texts.first().ok_or(Error::Empty)?.len();
        let fits = (2..=self.context).contains(&length);
        check(fits, "the number of tokens of a text", length as f64, "2 to the context of the model")?;
        let (mut tokens, mut labels) = (Vec::new(), Vec::new());
        for (record, text) in texts.iter().enumerate() {
            check_len("a text among others of one length", text.len(), length)?;
            self.check(record, text)?;
            tokens.extend_from_slice(&text[..length - 1]);
            labels.extend_from_slice(&text[1..]);
        }
        Data::tokens(length - 1, tokens, self.vocabulary, &labels)
    }

    /// Texts of any lengths as records, the shorter ones padded; see [`Data::sequences`].
    ///
    /// # Errors
    /// As [`LanguageModel::texts`], but for the lengths.
    pub fn ragged(&self, texts: &[&[u32]]) -> Result<Data<T>> {
        for (record, text) in texts.iter().enumerate() {
            let fits = (2..=self.context).contains(&text.len());
            check(
                fits,
                "the number of tokens of a text",
                text.len() as f64,
                "2 to the context of the model",
            )?;
            self.check(record, text)?;
        }
        let each: Vec<_> = texts.iter().map(|t| (&t[..t.len() - 1], &t[1..])).collect();
        Data::sequences(&each, self.vocabulary)
    }

    /// The most likely next token, again and again: at most `count` more tokens, up to the context.
    ///
    /// # Errors
    /// An empty text, and [`Error::Token`] for tokens that the model does not have.
    pub fn continuation(&self, text: &[u32], count: usize) -> Result<Vec<u32>> {
        self.check(0, text)?;
        let mut text = text.to_vec();
        let start = text.len();
        while text.len() < self.context && text.len() - start < count {
            // labels play no part in a prediction
            let data = Data::tokens(text.len(), text.clone(), self.vocabulary, &vec![0; text.len()])?;
            let prediction = predict_data(&self.network, &data)?;
            let z = prediction.outputs(0);
            let last = &z[z.len() - self.vocabulary..];
            let next =
                last.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(token, _)| token);
            text.push(next as u32);
        }
        Ok(text.split_off(start))
    }

    fn check(&self, record: usize, text: &[u32]) -> Result<()> {
        let vocabulary = self.vocabulary;
        match text.iter().position(|&token| token as usize >= vocabulary) {
            None => Ok(()),
            Some(position) => Err(Error::Token { record, position, token: text[position], vocabulary }),
        }
    }
}

#[cfg(test)]
mod tests;
