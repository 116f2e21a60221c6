//! `config.json` of a Hugging Face folder.

use super::decoder::{Decoder, Style};
use crate::{LayerSpec, Result, io::fault, spec::RotaryPairs};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// More blocks than any model has: a file that says so is broken.
const MOST_BLOCKS: usize = 4096;

#[derive(Deserialize)]
struct Gpt2 {
    vocab_size: usize,
    #[serde(alias = "n_ctx")]
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    n_inner: Option<usize>,
    activation_function: Option<String>,
    layer_norm_epsilon: Option<f64>,
    scale_attn_weights: Option<bool>,
    scale_attn_by_inverse_layer_idx: Option<bool>,
    add_cross_attention: Option<bool>,
    tie_word_embeddings: Option<bool>,
}

#[derive(Deserialize)]
struct Llama {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    max_position_embeddings: Option<usize>,
    rms_norm_eps: Option<f64>,
    hidden_act: Option<String>,
    rope_theta: Option<f64>,
    rope_scaling: Option<Rope>,
    rope_parameters: Option<Rope>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    tie_word_embeddings: Option<bool>,
}

#[derive(Deserialize)]
struct Rope {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
}

/// Reads the file; its text comes along.
pub(super) fn read(path: &Path) -> Result<(Decoder, String)> {
    let bad = |reason: String| fault(path, reason);
    let text = std::fs::read_to_string(path).map_err(|e| bad(format!("cannot read it: {e}")))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| bad(format!("no JSON: {e}")))?;
    let decoder = match value["model_type"].as_str() {
        Some("gpt2") => gpt2(from(value).map_err(bad)?),
        Some("llama") => llama(from(value).map_err(bad)?),
        Some(other) => Err(format!(
            "model_type is `{other}`, an architecture that is not known: gpt2 and llama are; measure other models in \
             PyTorch by leakscope.torch.audit"
        )),
        None => Err("it names no model_type: expected gpt2 or llama".to_owned()),
    };
    Ok((decoder.and_then(checked).map_err(bad)?, text))
}

fn from<C: for<'de> Deserialize<'de>>(value: Value) -> std::result::Result<C, String> {
    serde_json::from_value(value).map_err(|e| format!("not the configuration of its model_type: {e}"))
}

/// Sizes that make sense, before anything is made of them.
pub(super) fn checked(decoder: Decoder) -> std::result::Result<Decoder, String> {
    let Decoder { vocabulary, context, width, hidden, blocks, heads, shared, head, .. } = decoder;
    let sizes = [
        ("vocabulary", vocabulary),
        ("context", context),
        ("width", width),
        ("width of the MLP", hidden),
        ("number of blocks", blocks),
        ("number of heads", heads),
        ("number of heads of keys and values", shared),
        ("width of a head", head),
    ];
    // each as Llama and GPT-2 store it, in 32 bits with a sign
    if let Some((name, size)) = sizes.iter().find(|(_, size)| !(1..1 << 31).contains(size)) {
        return Err(format!("the {name} is {size}: expected 1 to 2^31 - 1"));
    }
    if blocks > MOST_BLOCKS {
        return Err(format!("the number of blocks is {blocks}: expected at most {MOST_BLOCKS}"));
    }
    if !heads.is_multiple_of(shared) {
        return Err(format!("{shared} heads of keys and values do not divide {heads} heads"));
    }
    match decoder.style {
        Style::Gpt2 { .. } if heads * head != width => {
            Err(format!("{heads} heads do not divide a width of {width}"))
        }
        Style::Llama { .. } if !head.is_multiple_of(2) => {
            Err(format!("a head has {head} values: rotary positions need an even number"))
        }
        Style::Gpt2 { .. } | Style::Llama { .. } => Ok(decoder),
    }
}

fn gpt2(c: Gpt2) -> std::result::Result<Decoder, String> {
    let activation = match c.activation_function.as_deref() {
        None | Some("gelu_new" | "gelu_pytorch_tanh") => LayerSpec::GeluTanh,
        Some("gelu") => LayerSpec::Gelu,
        Some("relu") => LayerSpec::Relu,
        Some("silu" | "swish") => LayerSpec::Silu,
        Some(other) => {
            return Err(format!("activation_function is `{other}`: expected gelu_new, gelu, relu or silu"));
        }
    };
    for (name, value, usual) in [
        ("scale_attn_weights", c.scale_attn_weights, true),
        ("scale_attn_by_inverse_layer_idx", c.scale_attn_by_inverse_layer_idx, false),
        ("add_cross_attention", c.add_cross_attention, false),
    ] {
        if value.is_some_and(|v| v != usual) {
            return Err(format!("{name} is {}: models with {usual} are read", !usual));
        }
    }
    Ok(Decoder {
        style: Style::Gpt2 { activation },
        vocabulary: c.vocab_size,
        context: c.n_positions,
        width: c.n_embd,
        hidden: c.n_inner.unwrap_or_else(|| c.n_embd.saturating_mul(4)),
        blocks: c.n_layer,
        heads: c.n_head,
        shared: c.n_head,
        head: c.n_embd / c.n_head.max(1),
        epsilon: c.layer_norm_epsilon.unwrap_or(1e-5),
        tied: c.tie_word_embeddings.unwrap_or(true),
    })
}

fn llama(c: Llama) -> std::result::Result<Decoder, String> {
    if let Some(other) = c.hidden_act.as_deref().filter(|a| !matches!(*a, "silu" | "swish")) {
        return Err(format!("hidden_act is `{other}`: expected silu"));
    }
    let ropes = [&c.rope_parameters, &c.rope_scaling];
    for rope in ropes.into_iter().flatten() {
        if let Some(other) = rope.rope_type.as_deref().filter(|t| *t != "default") {
            return Err(format!(
                "rotary positions are scaled (`{other}`), which is not read: measure the model in PyTorch by \
                 leakscope.torch.audit"
            ));
        }
    }
    let base = ropes.into_iter().flatten().find_map(|r| r.rope_theta).or(c.rope_theta).unwrap_or(10_000.0);
    Ok(Decoder {
        style: Style::Llama {
            base,
            pairs: RotaryPairs::Halves,
            attention_bias: c.attention_bias.unwrap_or(false),
            mlp_bias: c.mlp_bias.unwrap_or(false),
        },
        vocabulary: c.vocab_size,
        context: c.max_position_embeddings.unwrap_or(2048),
        width: c.hidden_size,
        hidden: c.intermediate_size,
        blocks: c.num_hidden_layers,
        heads: c.num_attention_heads,
        shared: c.num_key_value_heads.unwrap_or(c.num_attention_heads),
        head: c.head_dim.unwrap_or(c.hidden_size / c.num_attention_heads.max(1)),
        epsilon: c.rms_norm_eps.unwrap_or(1e-6),
        tied: c.tie_word_embeddings.unwrap_or(false),
    })
}
