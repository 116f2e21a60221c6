//! A decoder as the layers of a network, and where the files keep the values of each.

use super::Trained;
use crate::{
    LayerSpec, Loss, NetSpec, NodeSpec, Shape,
    spec::{Rotary, RotaryPairs},
};
use std::ops::Range;

/// Sizes and kind of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decoder {
    pub(super) style: Style,
    pub(super) vocabulary: usize,
    /// Positions of the longest text.
    pub(super) context: usize,
    pub(super) width: usize,
    /// Width inside the MLP.
    pub(super) hidden: usize,
    pub(super) blocks: usize,
    pub(super) heads: usize,
    /// Heads of keys and values.
    pub(super) shared: usize,
    /// Values of one head.
    pub(super) head: usize,
    /// Of the norms.
    pub(super) epsilon: f64,
    /// Whether the output layer has the embedding's table.
    pub(super) tied: bool,
}

/// The two kinds of decoder.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Style {
    /// Learned positions, layer norm, one activation.
    Gpt2 { activation: LayerSpec },
    /// Rotary positions, norm by the root mean square, a gated MLP.
    Llama { base: f64, pairs: RotaryPairs, attention_bias: bool, mlp_bias: bool },
}

/// Where the values of one array of a layer come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// Name of the network's array: `layers.3.weight`.
    pub(super) array: String,
    /// Name in the file.
    pub(super) name: String,
    /// Its shape there.
    pub(super) shape: Vec<usize>,
    pub(super) take: Take,
}

/// What of an array of the file is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Take {
    /// All, in its order.
    All,
    /// Some of the values: a bias of a fused layer.
    Values(Range<usize>),
    /// Some columns, as rows: GPT-2 stores weights as (inputs, outputs), those of a fused layer side by side.
    Columns(Range<usize>),
    /// Nothing of it: normal with variance 1/inputs, the start of an adapter.
    Normal,
    /// Nothing of it: zeros, so that an adapter changes nothing at first.
    Zeros,
}

/// The layers so far.
struct Plan<'a> {
    prefix: &'a str,
    nodes: Vec<NodeSpec>,
    origins: Vec<Origin>,
}

impl Plan<'_> {
    fn add(&mut self, name: Option<String>, inputs: &[&str], layer: LayerSpec) -> usize {
        self.nodes.push(NodeSpec { name, ..NodeSpec::from(layer).reading(inputs) });
        self.nodes.len() - 1
    }

    fn origin(&mut self, layer: usize, array: &str, name: String, shape: &[usize], take: Take) {
        let array = format!("layers.{layer}.{array}");
        self.origins.push(Origin { array, name, shape: shape.to_vec(), take });
    }

    /// A dense layer whose weights are stored as (outputs, inputs).
    fn dense(
        &mut self,
        name: Option<String>,
        read: &[&str],
        file: &str,
        [inputs, outputs]: [usize; 2],
        bias: bool,
    ) {
        let at = self.add(name, read, LayerSpec::Dense { outputs, bias, frozen: false });
        self.origin(at, "weight", format!("{}{file}.weight", self.prefix), &[outputs, inputs], Take::All);
        if bias {
            self.origin(at, "bias", format!("{}{file}.bias", self.prefix), &[outputs], Take::All);
        }
    }

    /// One of `of` dense layers that are stored as one, as (inputs, outputs).
    fn conv1d(
        &mut self,
        name: Option<String>,
        read: &[&str],
        file: &str,
        [inputs, outputs]: [usize; 2],
        (part, of): (usize, usize),
    ) {
        let at = self.add(name, read, LayerSpec::Dense { outputs, bias: true, frozen: false });
        let (own, wide) = (part * outputs..(part + 1) * outputs, of * outputs);
        self.origin(
            at,
            "weight",
            format!("{}{file}.weight", self.prefix),
            &[inputs, wide],
            Take::Columns(own.clone()),
        );
        self.origin(at, "bias", format!("{}{file}.bias", self.prefix), &[wide], Take::Values(own));
    }

    fn layer_norm(&mut self, name: Option<String>, file: &str, width: usize, epsilon: f64) {
        let at = self.add(name, &[], LayerSpec::LayerNorm { epsilon, frozen: false });
        self.origin(at, "gamma", format!("{}{file}.weight", self.prefix), &[width], Take::All);
        self.origin(at, "beta", format!("{}{file}.bias", self.prefix), &[width], Take::All);
    }

    fn rms_norm(&mut self, name: Option<String>, file: &str, width: usize, epsilon: f64) {
        let at = self.add(name, &[], LayerSpec::RmsNorm { epsilon, frozen: false });
        self.origin(at, "gamma", format!("{}{file}.weight", self.prefix), &[width], Take::All);
    }
}

impl<'a> Plan<'a> {
    /// The same frozen, with an adapter beside every dense layer but the output: two thin dense layers whose result is added.
    fn adapted(self, rank: usize) -> Self {
        let Plan { prefix, nodes, origins } = self;
        let mut plan = Plan { prefix, nodes: Vec::new(), origins: Vec::new() };
        let (last, mut places) = (nodes.len() - 1, Vec::new());
        for (i, mut node) in nodes.into_iter().enumerate() {
            node.layer.set_frozen(true);
            let &LayerSpec::Dense { outputs, .. } = &node.layer else {
                places.push(plan.nodes.len());
                plan.nodes.push(node);
                continue;
            };
            places.push(plan.nodes.len());
            if i == last {
                plan.nodes.push(node);
                continue;
            }
            let inputs = origins.iter().find(|o| o.array == format!("layers.{i}.weight"));
            let inputs = inputs.map_or(1, |o| match o.take {
                Take::Columns(_) => o.shape[0],
                Take::All | Take::Values(_) | Take::Normal | Take::Zeros => o.shape[1],
            });
            let read = plan.read_by(&node);
            let read: Vec<&str> = read.iter().map(String::as_str).collect();
            let (name, base) = (node.name.take(), format!("base{i}"));
            plan.nodes.push(NodeSpec { name: Some(base.clone()), ..node.reading(&read) });
            let thin = |outputs| LayerSpec::Dense { outputs, bias: false, frozen: false };
            let down = plan.add(None, &read, thin(rank));
            plan.origin(down, "weight", format!("adapter {i}"), &[rank, inputs], Take::Normal);
            let up = plan.add(Some(format!("up{i}")), &[], thin(outputs));
            plan.origin(up, "weight", format!("adapter {i}"), &[outputs, rank], Take::Zeros);
            plan.add(name, &[&base, &format!("up{i}")], LayerSpec::Add);
        }
        for origin in origins {
            let mut parts = origin.array.splitn(3, '.').skip(1);
            let old: usize = parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
            let array = parts.next().unwrap_or_default();
            plan.origins.push(Origin { array: format!("layers.{}.{array}", places[old]), ..origin });
        }
        plan
    }

    /// What a node reads by name: where it names nothing, the node before it, which gets a name if it has none.
    fn read_by(&mut self, node: &NodeSpec) -> Vec<String> {
        if !node.inputs.is_empty() {
            return node.inputs.clone();
        }
        let unnamed = format!("before{}", self.nodes.len());
        self.nodes.last_mut().map(|before| before.name.get_or_insert(unnamed).clone()).into_iter().collect()
    }
}

impl Decoder {
    /// The prefix that files of a whole language model put before the names of the decoder's arrays.
    pub(super) fn prefix(&self) -> &'static str {
        match self.style {
            Style::Gpt2 { .. } => "transformer.",
            Style::Llama { .. } => "model.",
        }
    }

    /// The embedding's table in the file, without the prefix.
    pub(super) fn table(&self) -> &'static str {
        match self.style {
            Style::Gpt2 { .. } => "wte.weight",
            Style::Llama { .. } => "embed_tokens.weight",
        }
    }

    /// The network, and where each of its arrays comes from.
    pub(super) fn plan(&self, prefix: &str, trained: Trained, rank: usize) -> (NetSpec, Vec<Origin>) {
        let mut plan = Plan { prefix, nodes: Vec::new(), origins: Vec::new() };
        let (v, d) = (self.vocabulary, self.width);
        let table = format!("{prefix}{}", self.table());
        let embedding = LayerSpec::Embedding { vocabulary: v, outputs: d, frozen: false };
        let first = match &self.style {
            Style::Gpt2 { .. } => plan.add(None, &[], embedding),
            Style::Llama { .. } => plan.add(Some("x0".to_owned()), &[], embedding),
        };
        plan.origin(first, "weight", table.clone(), &[v, d], Take::All);
        match &self.style {
            Style::Gpt2 { activation } => self.gpt2(&mut plan, activation),
            Style::Llama { base, pairs, attention_bias, mlp_bias } => {
                let rotary = Rotary { base: *base, pairs: *pairs };
                self.llama(&mut plan, rotary, *attention_bias, *mlp_bias);
            }
        }
        // where the output layer alone is trained, it has a table of its own
        if self.tied && trained != Trained::Last {
            plan.add(None, &[], LayerSpec::Unembed);
        } else {
            let at = plan.add(None, &[], LayerSpec::Dense { outputs: v, bias: false, frozen: false });
            let name = if self.tied { table } else { "lm_head.weight".to_owned() };
            plan.origin(at, "weight", name, &[v, d], Take::All);
        }
        match trained {
            Trained::All => {}
            Trained::Last => {
                let inner = plan.nodes.len() - 1;
                plan.nodes[..inner].iter_mut().for_each(|node| node.layer.set_frozen(true));
            }
            Trained::Adapters => plan = plan.adapted(rank),
        }
        let input = Shape::Tokens { tokens: self.context };
        (NetSpec::graph(input, plan.nodes, Loss::SoftmaxCrossEntropy), plan.origins)
    }

    fn gpt2(&self, plan: &mut Plan<'_>, activation: &LayerSpec) {
        let (d, h) = (self.width, self.hidden);
        let at = plan.add(Some("x0".to_owned()), &[], LayerSpec::Positions { frozen: false });
        plan.origin(at, "weight", format!("{}wpe.weight", plan.prefix), &[self.context, d], Take::All);
        for i in 0..self.blocks {
            let [x, a, q, k, v, o, m, down] =
                ["x", "a", "q", "k", "v", "o", "m", "d"].map(|n| format!("{n}{i}"));
            plan.layer_norm(Some(a.clone()), &format!("h.{i}.ln_1"), d, self.epsilon);
            for (part, name) in [&q, &k, &v].into_iter().enumerate() {
                plan.conv1d(Some(name.clone()), &[&a], &format!("h.{i}.attn.c_attn"), [d, d], (part, 3));
            }
            plan.add(None, &[&q, &k, &v], self.attention(None));
            plan.conv1d(Some(o.clone()), &[], &format!("h.{i}.attn.c_proj"), [d, d], (0, 1));
            plan.add(Some(m.clone()), &[&x, &o], LayerSpec::Add);
            plan.layer_norm(None, &format!("h.{i}.ln_2"), d, self.epsilon);
            plan.conv1d(None, &[], &format!("h.{i}.mlp.c_fc"), [d, h], (0, 1));
            plan.add(None, &[], activation.clone());
            plan.conv1d(Some(down.clone()), &[], &format!("h.{i}.mlp.c_proj"), [h, d], (0, 1));
            plan.add(Some(format!("x{}", i + 1)), &[&m, &down], LayerSpec::Add);
        }
        plan.layer_norm(None, "ln_f", d, self.epsilon);
    }

    fn llama(&self, plan: &mut Plan<'_>, rotary: Rotary, attention_bias: bool, mlp_bias: bool) {
        let (d, h) = (self.width, self.hidden);
        let (wide, narrow) = (self.heads * self.head, self.shared * self.head);
        for i in 0..self.blocks {
            let [x, a, q, k, v, o] = ["x", "a", "q", "k", "v", "o"].map(|n| format!("{n}{i}"));
            let [m, n, gate, up, down] = ["m", "n", "g", "u", "d"].map(|n| format!("{n}{i}"));
            let file = |name: &str| format!("layers.{i}.{name}");
            plan.rms_norm(Some(a.clone()), &file("input_layernorm"), d, self.epsilon);
            for (name, projection, outputs) in [(&q, "q", wide), (&k, "k", narrow), (&v, "v", narrow)] {
                let from = file(&format!("self_attn.{projection}_proj"));
                plan.dense(Some(name.clone()), &[&a], &from, [d, outputs], attention_bias);
            }
            plan.add(None, &[&q, &k, &v], self.attention(Some(rotary)));
            plan.dense(Some(o.clone()), &[], &file("self_attn.o_proj"), [wide, d], attention_bias);
            plan.add(Some(m.clone()), &[&x, &o], LayerSpec::Add);
            plan.rms_norm(Some(n.clone()), &file("post_attention_layernorm"), d, self.epsilon);
            plan.dense(None, &[], &file("mlp.gate_proj"), [d, h], mlp_bias);
            plan.add(Some(gate.clone()), &[], LayerSpec::Silu);
            plan.dense(Some(up.clone()), &[&n], &file("mlp.up_proj"), [d, h], mlp_bias);
            plan.add(None, &[&gate, &up], LayerSpec::Multiply);
            plan.dense(Some(down.clone()), &[], &file("mlp.down_proj"), [h, d], mlp_bias);
            plan.add(Some(format!("x{}", i + 1)), &[&m, &down], LayerSpec::Add);
        }
        plan.rms_norm(None, "norm", d, self.epsilon);
    }

    fn attention(&self, rotary: Option<Rotary>) -> LayerSpec {
        let key_value_heads = (self.shared != self.heads).then_some(self.shared);
        LayerSpec::Attention { heads: self.heads, key_value_heads, causal: true, rotary }
    }
}
