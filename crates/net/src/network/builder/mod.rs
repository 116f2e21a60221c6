//! From the file of a network to its graph: which layers read which, each checked against the shapes it receives.

mod layer;

use super::{Node, Op, Statistics};
use crate::{
    LayerSpec, Real, Shape,
    error::{Error, Result},
    layer::{Add, Attention, Embedding, Join, Layer, Multiply},
    spec::{INPUT, NodeSpec},
};
use std::collections::BTreeMap;

/// The nodes so far, and how much they need.
#[derive(Debug)]
pub(crate) struct Builder<T> {
    pub(crate) nodes: Vec<Node<T>>,
    /// Number of parameters.
    pub(crate) parameters: usize,
    /// Number of constants: two for each channel of a batch norm.
    pub(crate) constants: usize,
    pub(crate) statistics: Vec<Statistics>,
    /// What makes values of tokens.
    pub(crate) embedding: Option<Embedding>,
    /// The node whose weights are the embedding's table.
    pub(crate) tied: Option<usize>,
    /// Whether sequences must be as long as the file says.
    pub(crate) whole: bool,
    /// Layers so far, counted through residual blocks.
    position: usize,
    /// What has a name.
    names: BTreeMap<String, Flow>,
    /// What the last layer returns.
    last: Flow,
    /// The value that the layer being added reads.
    reads: usize,
}

/// A value on its way, with the shape it has for the layers that read it.
#[derive(Debug, Clone, Copy)]
struct Flow {
    value: usize,
    shape: Shape,
}

impl<T: Real> Builder<T> {
    /// A network without layers.
    pub(crate) fn new(input: Shape) -> Self {
        let last = Flow { value: 0, shape: input };
        Self {
            nodes: Vec::new(),
            parameters: 0,
            constants: 0,
            statistics: Vec::new(),
            embedding: None,
            tied: None,
            whole: false,
            position: 0,
            names: BTreeMap::from([(INPUT.to_owned(), last)]),
            last,
            reads: 0,
        }
    }

    /// Adds the layers of a file, and returns the shape of what the last one returns.
    pub(crate) fn nodes(&mut self, specs: &[NodeSpec]) -> Result<Shape> {
        for NodeSpec { name, inputs, layer } in specs {
            let at = self.position;
            let mut flows = Vec::with_capacity(inputs.len());
            for input in inputs {
                flows.push(*self.names.get(input).ok_or_else(|| self.unknown(at, layer, input))?);
            }
            if flows.is_empty() {
                flows.push(self.last);
            }
            self.last = self.node(layer, &flows)?;
            if let Some(name) = name
                && self.names.insert(name.clone(), self.last).is_some()
            {
                let reason = format!("layer {at} ({}) has the name {name:?}, which is taken", layer.kind());
                return Err(Error::Format { subject: "the network", reason });
            }
        }
        Ok(self.last.shape)
    }

    /// The shape of the record's values, where an embedding makes them.
    fn set_input(&mut self, shape: Shape) {
        self.names.insert(INPUT.to_owned(), Flow { value: 0, shape });
    }

    fn unknown(&self, at: usize, layer: &LayerSpec, input: &str) -> Error {
        let known: Vec<&str> = self.names.keys().map(String::as_str).collect();
        let (kind, known) = (layer.kind(), known.join(", "));
        let reason = format!(
            "layer {at} ({kind}) reads {input:?}, but no layer before it has that name; names so far: {known}"
        );
        Error::Format { subject: "the network", reason }
    }

    /// How often every value is read; one that is read by nobody is a mistake.
    pub(crate) fn readers(&self) -> Result<Vec<usize>> {
        let mut readers = vec![0; self.nodes.len() + 1];
        readers[self.last.value] += 1;
        self.nodes.iter().flat_map(|n| &n.inputs).for_each(|&v| readers[v] += 1);
        match self.nodes.iter().zip(&readers[1..]).find(|(_, n)| **n == 0) {
            None => Ok(readers),
            Some((node, _)) => {
                let position = node.position;
                let reason = format!(
                    "no layer reads what layer {position} returns, and it is not the last: name it among the inputs of \
                     a later one, or remove it"
                );
                Err(Error::Format { subject: "the network", reason })
            }
        }
    }

    /// Adds layers one after another.
    fn chain(&mut self, specs: &[LayerSpec], mut flow: Flow) -> Result<Flow> {
        for spec in specs {
            flow = self.node(spec, &[flow])?;
        }
        Ok(flow)
    }

    /// A node that reads what [`Builder::node`] was given.
    fn push(&mut self, position: usize, layer: impl Layer<T> + 'static, trained: bool) {
        let (op, inputs) = (Op::Layer(Box::new(layer)), vec![self.reads]);
        self.nodes.push(Node { op, inputs, trained, position });
    }

    fn push_join(
        &mut self,
        position: usize,
        join: impl Join<T> + 'static,
        inputs: &[Flow],
        shape: Shape,
    ) -> Flow {
        let inputs = inputs.iter().map(|f| f.value).collect();
        self.nodes.push(Node { op: Op::Join(Box::new(join)), inputs, trained: false, position });
        Flow { value: self.nodes.len(), shape }
    }

    /// Adds one layer of the file that reads the given values.
    fn node(&mut self, spec: &LayerSpec, inputs: &[Flow]) -> Result<Flow> {
        let at = self.position;
        self.position += 1;
        let bad = |actual: Shape, need| Error::DoesNotChain {
            layer: at,
            kind: spec.kind(),
            actual: actual.dims(),
            need,
        };
        let first = inputs.first().copied().unwrap_or(self.last);
        let alike = || match inputs.iter().find(|i| i.shape != first.shape) {
            Some(other) => Err(bad(other.shape, "all inputs must have the shape of the first")),
            None => Ok(()),
        };
        match spec {
            LayerSpec::Add => {
                alike()?;
                match inputs.len() {
                    0 | 1 => Err(bad(first.shape, "write \"inputs\" with the names of two layers or more")),
                    n => Ok(self.push_join(at, Add { inputs: n }, inputs, first.shape)),
                }
            }
            LayerSpec::Multiply => {
                alike()?;
                if inputs.len() != 2 {
                    return Err(bad(first.shape, "write \"inputs\" with the names of two layers"));
                }
                Ok(self.push_join(at, Multiply { width: first.shape.width() }, inputs, first.shape))
            }
            LayerSpec::Attention { heads, key_value_heads, causal, rotary } => {
                let groups = key_value_heads.unwrap_or(*heads);
                let (join, shape) =
                    attention(*heads, groups, inputs).map_err(|need| bad(first.shape, need))?;
                if rotary.is_some_and(|r| !(r.base > 0.0 && r.base.is_finite())) {
                    return Err(bad(first.shape, "the base of rotary positions must be positive"));
                }
                if rotary.is_some() && !join.width.is_multiple_of(2) {
                    return Err(bad(first.shape, "rotary positions need heads of an even number of values"));
                }
                Ok(self.push_join(at, Attention { causal: *causal, rotary: *rotary, ..join }, inputs, shape))
            }
            _ if inputs.len() > 1 => {
                Err(bad(first.shape, "it reads one layer: \"inputs\" must have one name"))
            }
            LayerSpec::Residual { layers } => {
                let out = self.chain(layers, first)?;
                if out.shape != first.shape {
                    return Err(bad(first.shape, "the layers inside must return the shape they receive"));
                }
                Ok(self.push_join(at, Add { inputs: 2 }, &[out, first], first.shape))
            }
            layer => {
                let before = self.nodes.len();
                self.reads = first.value;
                let shape = self.layer(at, layer, first.shape)?;
                // a layer that only changes the shape is no node
                let value = if self.nodes.len() > before { self.nodes.len() } else { first.value };
                Ok(Flow { value, shape })
            }
        }
    }

    /// Reserves parameters and returns where they start.
    fn reserve(&mut self, len: usize) -> usize {
        self.parameters += len;
        self.parameters - len
    }
}

/// Attention over the shapes of queries, keys and values, and the shape of what it returns; or what it needs.
fn attention(
    heads: usize,
    groups: usize,
    inputs: &[Flow],
) -> std::result::Result<(Attention, Shape), &'static str> {
    let [q, k, v] = inputs else {
        return Err("write \"inputs\" with the names of three layers: queries, keys, values");
    };
    let (Shape::Sequence([t, wide]), Shape::Sequence([s, narrow])) = (q.shape, k.shape) else {
        return Err("sequences [positions, features] are needed");
    };
    if heads == 0 || groups == 0 || !heads.is_multiple_of(groups) || !wide.is_multiple_of(heads) {
        return Err(
            "the heads must divide the features of the queries, and the heads of keys and values the heads",
        );
    }
    if s != t || narrow != wide / heads * groups || v.shape != k.shape {
        return Err(
            "keys and values need as many positions as queries, and features of the same width for each head",
        );
    }
    let width = wide / heads;
    Ok((Attention { heads, shared: groups, width, causal: true, rotary: None }, q.shape))
}
