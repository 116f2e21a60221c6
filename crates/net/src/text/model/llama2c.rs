//! Checkpoints of llama2.c: seven numbers of four bytes, then the arrays in single precision, each kind of all blocks
//! together.

use super::config::checked;
use super::decoder::{Decoder, Style};
use crate::{
    Real, Result,
    io::{Tensors, fault},
    spec::RotaryPairs,
};
use std::path::Path;

/// First bytes of the later layouts, "ak42".
const LATER: u32 = 0x616b_3432;
const HEADER: usize = 28;

/// What of a checkpoint no array of the network holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checkpoint {
    file: String,
    header: Vec<u8>,
    /// Cosines and sines of the rotary positions.
    rotary: Vec<u8>,
}

/// Reads a checkpoint: sizes, arrays under the names of Hugging Face's Llama, and the rest.
pub(super) fn read(path: &Path) -> Result<(Decoder, Tensors, Checkpoint)> {
    let bytes = std::fs::read(path).map_err(|e| fault(path, format!("cannot read it: {e}")))?;
    let (decoder, tensors, (header, rotary)) = parse(&bytes).map_err(|reason| fault(path, reason))?;
    let file = path.file_name().map_or_else(|| "model.bin".to_owned(), |n| n.to_string_lossy().into_owned());
    Ok((decoder, tensors, Checkpoint { file, header, rotary }))
}

impl Checkpoint {
    /// The name of its file.
    pub(super) fn name(&self) -> &str {
        &self.file
    }

    /// Its file with other arrays, in single precision; `untied` where the output layer has a table of its own by now.
    pub(super) fn file(
        &self,
        decoder: &Decoder,
        arrays: &Tensors,
        untied: bool,
    ) -> Result<(String, Vec<u8>)> {
        let mut bytes = self.header.clone();
        if untied {
            // below 0 where the output layer has weights of its own
            let vocabulary = -(decoder.vocabulary as i32);
            bytes[20..24].copy_from_slice(&vocabulary.to_le_bytes());
        }
        let mut rotary = Some(&self.rotary);
        let decoder = Decoder { tied: decoder.tied && !untied, ..decoder.clone() };
        for (name, _) in layout(&decoder) {
            match name {
                Some(name) => arrays.get::<f32>(&name)?.1.iter().for_each(|v| v.write(&mut bytes)),
                // both tables were kept as one
                None => bytes.extend_from_slice(rotary.take().map_or(&[], Vec::as_slice)),
            }
        }
        Ok((self.file.clone(), bytes))
    }
}

/// The header, and the tables of rotary positions.
type Rest = (Vec<u8>, Vec<u8>);

fn parse(bytes: &[u8]) -> std::result::Result<(Decoder, Tensors, Rest), String> {
    let (header, values) =
        bytes.split_at_checked(HEADER).ok_or("shorter than the header of a llama2.c checkpoint")?;
    let (words, _) = header.as_chunks::<4>();
    if u32::from_le_bytes(words[0]) == LATER {
        let version = i32::from_le_bytes(words[1]);
        return Err(format!("a llama2.c checkpoint of version {version}: export it as version 0"));
    }
    let decoder = sizes(words).map_err(|e| format!("no llama2.c checkpoint: {e}"))?;
    let arrays = layout(&decoder);
    let count = |shape: &[usize]| shape.iter().try_fold(1_usize, |n, &s| n.checked_mul(s));
    let total = arrays.iter().try_fold(0_usize, |n, a| n.checked_add(count(&a.1)?.checked_mul(4)?));
    if total != Some(values.len()) {
        let expected = total.map_or_else(|| "more than fits".to_owned(), |n| n.to_string());
        return Err(format!(
            "its header asks for {expected} bytes of weights, and there are {}: not whole, or no llama2.c checkpoint",
            values.len()
        ));
    }
    let (mut tensors, mut rotary) = (Tensors::default(), Vec::new());
    let mut rest = values;
    for (name, shape) in arrays {
        let (own, after) = rest.split_at(4 * shape.iter().product::<usize>());
        rest = after;
        match name {
            Some(name) => {
                let own: Vec<f32> = own.as_chunks::<4>().0.iter().map(|b| f32::read(b)).collect();
                tensors.insert(&name, &shape, &own);
            }
            None => rotary.extend_from_slice(own),
        }
    }
    Ok((decoder, tensors, (header.to_vec(), rotary)))
}

fn sizes(words: &[[u8; 4]]) -> std::result::Result<Decoder, String> {
    let number = |i: usize| i32::from_le_bytes(words[i]);
    // what is negative is far too large after the conversion, and refused as such
    let size = |i: usize| number(i) as u32 as usize;
    let (width, heads) = (size(0), size(3));
    let decoder = checked(Decoder {
        style: Style::Llama {
            base: 10_000.0,
            pairs: RotaryPairs::Neighbours,
            attention_bias: false,
            mlp_bias: false,
        },
        width,
        hidden: size(1),
        blocks: size(2),
        heads,
        shared: size(4),
        // below 0 where the output layer has weights of its own
        vocabulary: number(5).unsigned_abs() as usize,
        tied: number(5) > 0,
        context: size(6),
        head: width / heads.max(1),
        epsilon: 1e-5,
    })?;
    match decoder.heads * decoder.head == width {
        true => Ok(decoder),
        false => Err(format!("{heads} heads do not divide a width of {width}")),
    }
}

/// Names and shapes, in the order of the file; without a name: not needed.
fn layout(d: &Decoder) -> Vec<(Option<String>, Vec<usize>)> {
    let narrow = d.shared * d.head;
    let mut out = vec![(Some("model.embed_tokens.weight".to_owned()), vec![d.vocabulary, d.width])];
    let square = vec![d.width, d.width];
    for (name, shape) in [
        ("input_layernorm", vec![d.width]),
        ("self_attn.q_proj", square.clone()),
        ("self_attn.k_proj", vec![narrow, d.width]),
        ("self_attn.v_proj", vec![narrow, d.width]),
        ("self_attn.o_proj", square),
        ("post_attention_layernorm", vec![d.width]),
        ("mlp.gate_proj", vec![d.hidden, d.width]),
        ("mlp.down_proj", vec![d.width, d.hidden]),
        ("mlp.up_proj", vec![d.hidden, d.width]),
    ] {
        out.extend((0..d.blocks).map(|i| (Some(format!("model.layers.{i}.{name}.weight")), shape.clone())));
    }
    out.push((Some("model.norm.weight".to_owned()), vec![d.width]));
    // cosines and sines of the rotary positions
    out.extend([(None, vec![d.context, d.head / 2]), (None, vec![d.context, d.head / 2])]);
    if !d.tied {
        out.push((Some("lm_head.weight".to_owned()), vec![d.vocabulary, d.width]));
    }
    out
}
