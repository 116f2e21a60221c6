//! Layers that read one value.

use super::{Builder, Statistics};
use crate::{
    Activation, LayerSpec, Real, Shape,
    error::{Error, Result, check},
    layer::{
        Affine, Dropout, Embedding, Frozen, Grouped, Linear, Nonlinear, Norm, OwnStatistics, Pool,
        PositionTable, Span,
    },
    shape::{Adaptive, Lie, Width, Window, product},
    spec::Padding,
};

impl<T: Real> Builder<T> {
    /// Adds the nodes of the layer at a position of the file, and returns the shape of what it returns.
    pub(super) fn layer(&mut self, at: usize, spec: &LayerSpec, shape: Shape) -> Result<Shape> {
        let bad = |kind, need| does_not_chain(at, shape, kind, need);
        if let (Shape::Tokens { .. }, false) = (shape, matches!(spec, LayerSpec::Embedding { .. })) {
            return Err(bad(spec.kind(), "tokens are numbers without an order: put an embedding first"));
        }
        match *spec {
            LayerSpec::Dense { outputs, bias, frozen } => self.dense(at, (outputs, bias, frozen), shape),
            LayerSpec::Conv { outputs, kernel, stride, padding, dilation, groups, bias, frozen } => {
                let lie = Lie { kernel, stride, padding, dilation };
                self.convolution(at, lie, Filters { outputs, groups, bias, frozen }, shape)
            }
            LayerSpec::AveragePool { kernel, stride, padding } => {
                self.pool(at, Pool::Average, (spec.kind(), pooling(kernel, stride, padding)), shape)
            }
            LayerSpec::MaxPool { kernel, stride, padding } => {
                self.pool(at, Pool::Max, (spec.kind(), pooling(kernel, stride, padding)), shape)
            }
            LayerSpec::AdaptiveAveragePool { outputs } => self.adaptive_pool(at, outputs, shape),
            LayerSpec::Tanh => self.activation(at, Activation::Tanh, shape),
            LayerSpec::Relu => self.activation(at, Activation::Relu, shape),
            LayerSpec::Gelu => self.activation(at, Activation::Gelu, shape),
            LayerSpec::GeluTanh => self.activation(at, Activation::GeluTanh, shape),
            LayerSpec::Sigmoid => self.activation(at, Activation::Sigmoid, shape),
            LayerSpec::Silu => self.activation(at, Activation::Silu, shape),
            LayerSpec::Softplus => self.activation(at, Activation::Softplus, shape),
            LayerSpec::LeakyRelu { slope } => self.activation(at, Activation::LeakyRelu(slope), shape),
            LayerSpec::Elu { alpha } => self.activation(at, Activation::Elu(alpha), shape),
            LayerSpec::Dropout { rate } => {
                check((0.0..1.0).contains(&rate), "the rate of a dropout", rate, "at least 0 and below 1")?;
                self.push(at, Dropout { rate, width: shape.width(), position: at }, false);
                Ok(shape)
            }
            LayerSpec::BatchNorm { epsilon, frozen } => self.batch_norm(at, epsilon, frozen, shape),
            LayerSpec::LayerNorm { epsilon, frozen } => {
                self.norm(at, OwnStatistics { epsilon, centred: true, span: Span::Position }, frozen, shape)
            }
            LayerSpec::GroupNorm { groups, .. }
                if groups == 0 || !shape.channels().is_multiple_of(groups) =>
            {
                Err(bad("group-norm", "the groups must divide the channels"))
            }
            LayerSpec::GroupNorm { groups, epsilon, frozen } => self.norm(
                at,
                OwnStatistics { epsilon, centred: true, span: Span::Groups(groups) },
                frozen,
                shape,
            ),
            LayerSpec::RmsNorm { epsilon, frozen } => {
                self.norm(at, OwnStatistics { epsilon, centred: false, span: Span::Position }, frozen, shape)
            }
            LayerSpec::Flatten => {
                // a vector has a length of its own
                self.whole |= matches!(shape, Shape::Sequence(_));
                Ok(Shape::Vector([shape.len()]))
            }
            LayerSpec::Embedding { vocabulary, outputs, frozen } => {
                self.embed(at, [vocabulary, outputs], frozen, shape)
            }
            LayerSpec::Positions { frozen } => {
                let Shape::Sequence([most, width]) = shape else {
                    return Err(bad("positions", "a sequence [positions, features] is needed"));
                };
                let table = self.reserve(most * width);
                self.push(at, PositionTable { most, width, table }, !frozen);
                Ok(shape)
            }
            LayerSpec::Unembed => self.unembed(at, shape),
            LayerSpec::Residual { .. }
            | LayerSpec::Add
            | LayerSpec::Multiply
            | LayerSpec::Attention { .. } => Err(bad(spec.kind(), "it reads several values")),
        }
    }

    fn activation(&mut self, at: usize, kind: Activation, shape: Shape) -> Result<Shape> {
        match kind {
            Activation::LeakyRelu(slope) => {
                check(slope.is_finite(), "the slope of a leaky ReLU", slope, "a finite number")?;
            }
            Activation::Elu(alpha) => {
                check(alpha.is_finite(), "alpha of an ELU", alpha, "a finite number")?;
            }
            Activation::Tanh
            | Activation::Relu
            | Activation::Gelu
            | Activation::GeluTanh
            | Activation::Sigmoid
            | Activation::Silu
            | Activation::Softplus => {}
        }
        self.push(at, Nonlinear { kind, width: shape.width(), deferred: false }, false);
        Ok(shape)
    }

    /// A pool over windows that lie so.
    fn pool(
        &mut self,
        at: usize,
        pool: fn(Window) -> Pool,
        (kind, lie): (&'static str, Lie),
        shape: Shape,
    ) -> Result<Shape> {
        let window = Window::new(shape, lie, at, kind)?;
        self.push(at, pool(window), false);
        Ok(Shape::Image([window.out[0], window.out[1], window.channels]))
    }

    /// A dense layer of `outputs`, with a bias or not, trained or frozen.
    fn dense(
        &mut self,
        at: usize,
        (outputs, bias, frozen): (usize, bool, bool),
        shape: Shape,
    ) -> Result<Shape> {
        let bad = |need| does_not_chain(at, shape, "dense", need);
        let (Shape::Vector([inputs]) | Shape::Sequence([_, inputs])) = shape else {
            return Err(bad("a vector or a sequence is needed: put a flatten layer before it"));
        };
        if outputs == 0 || product(&[inputs, outputs]).is_none() {
            return Err(bad("outputs must be at least 1, and fit into memory"));
        }
        let weight = self.reserve(inputs * outputs);
        let bias = bias.then(|| self.reserve(outputs));
        let positions = shape.positions();
        let linear =
            Linear { window: None, inputs, outputs, weight, bias, positions, tied: false, masked: false };
        self.push(at, linear, !frozen);
        Ok(with_channels(shape, outputs))
    }

    /// Means over as many windows as there are outputs, whatever the size of the image.
    fn adaptive_pool(&mut self, at: usize, out: [usize; 2], shape: Shape) -> Result<Shape> {
        let bad = |need| does_not_chain(at, shape, "adaptive-average-pool", need);
        let Shape::Image([height, width, channels]) = shape else {
            return Err(bad("an image [height, width, channels] is needed"));
        };
        if out.contains(&0) || product(&[out[0], out[1], channels]).is_none() {
            return Err(bad("outputs must be at least 1, and fit into memory"));
        }
        self.push(at, Pool::Adaptive(Adaptive { size: [height, width], channels, out }), false);
        Ok(Shape::Image([out[0], out[1], channels]))
    }

    /// A batch norm, whose statistics are constants that are not known yet.
    fn batch_norm(&mut self, at: usize, epsilon: f64, frozen: bool, shape: Shape) -> Result<Shape> {
        let affine = self.affine(shape, true);
        check(epsilon >= 0.0 && epsilon.is_finite(), "epsilon of a batch norm", epsilon, "at least 0")?;
        let (mean, variance) = (vec![0.0; affine.channels], vec![1.0; affine.channels]);
        self.statistics.push(Statistics {
            position: at,
            node: self.nodes.len(),
            known: false,
            offset: self.constants,
            epsilon,
            mean,
            variance,
        });
        let standardise = Frozen { constants: self.constants };
        self.push(at, Norm { affine, standardise }, !frozen);
        self.constants += 2 * affine.channels;
        Ok(shape)
    }

    /// Tokens to values: the table that an unembedding may share.
    fn embed(
        &mut self,
        at: usize,
        [vocabulary, outputs]: [usize; 2],
        frozen: bool,
        shape: Shape,
    ) -> Result<Shape> {
        let bad = |need| does_not_chain(at, shape, "embedding", need);
        let (Shape::Tokens { tokens }, None) = (shape, &self.embedding) else {
            return Err(bad("it comes first, where the input is {\"tokens\": positions}"));
        };
        if vocabulary == 0 || outputs == 0 || product(&[vocabulary, outputs]).is_none() {
            return Err(bad("vocabulary and outputs must be at least 1, and fit into memory"));
        }
        let table = self.reserve(vocabulary * outputs);
        let (width, trained) = (outputs, !frozen);
        self.embedding = Some(Embedding { vocabulary, width, table, trained, position: at });
        self.set_input(Shape::Sequence([tokens, outputs]));
        Ok(Shape::Sequence([tokens, outputs]))
    }

    /// Values to scores of tokens, by the embedding's table.
    fn unembed(&mut self, at: usize, shape: Shape) -> Result<Shape> {
        let bad = |need| does_not_chain(at, shape, "unembed", need);
        let Some(Embedding { vocabulary: outputs, width: inputs, table: weight, trained, .. }) =
            self.embedding
        else {
            return Err(bad("a network with an embedding is needed"));
        };
        if !matches!(shape, Shape::Sequence([_, c]) if c == inputs) || self.tied.is_some() {
            return Err(bad("a sequence of as many features as the embedding's is needed, and once"));
        }
        let (positions, bias) = (shape.positions(), None);
        let linear =
            Linear { window: None, inputs, outputs, weight, bias, positions, tied: true, masked: false };
        self.tied = Some(self.nodes.len());
        self.push(at, linear, trained);
        Ok(with_channels(shape, outputs))
    }

    /// A convolution, in groups where there are several.
    fn convolution(&mut self, at: usize, lie: Lie, filters: Filters, shape: Shape) -> Result<Shape> {
        let Filters { outputs, groups, bias, frozen } = filters;
        let bad = |need| Error::DoesNotChain { layer: at, kind: "conv", actual: shape.dims(), need };
        let whole = Window::new(shape, lie, at, "conv")?;
        if groups == 0 || !whole.channels.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            return Err(bad("the groups must divide the channels and the outputs"));
        }
        let window = Window { channels: whole.channels / groups, ..whole };
        let (inputs, each) = (window.patch(), outputs / groups);
        if outputs == 0 || product(&[inputs.max(window.positions()), outputs]).is_none() {
            return Err(bad("outputs must be at least 1, and fit into memory"));
        }
        let weight = self.reserve(inputs * outputs);
        let bias = bias.then(|| self.reserve(outputs));
        let mut linear = (0..groups).map(|g| Linear {
            window: Some(window),
            inputs,
            outputs: each,
            weight: weight + g * each * inputs,
            bias: bias.map(|b| b + g * each),
            positions: Width::Fixed(window.positions()),
            tied: false,
            masked: false,
        });
        match (groups, linear.next()) {
            (1, Some(one)) => self.push(at, one, !frozen),
            (_, first) => {
                let groups = first.into_iter().chain(linear).collect();
                self.push(at, Grouped { groups, channels: whole.channels }, !frozen);
            }
        }
        Ok(Shape::Image([whole.out[0], whole.out[1], outputs]))
    }

    /// Layer, group or RMS norm, the last neither centred nor with a β.
    fn norm(&mut self, at: usize, standardise: OwnStatistics, frozen: bool, shape: Shape) -> Result<Shape> {
        let epsilon = standardise.epsilon;
        let name = match (standardise.span, standardise.centred) {
            (Span::Groups(_), _) => "epsilon of a group norm",
            (Span::Position, true) => "epsilon of a layer norm",
            (Span::Position, false) => "epsilon of an RMS norm",
        };
        check(epsilon > 0.0 && epsilon.is_finite(), name, epsilon, "positive")?;
        let affine = self.affine(shape, standardise.centred);
        self.push(at, Norm { affine, standardise }, !frozen);
        Ok(shape)
    }

    fn affine(&mut self, shape: Shape, beta: bool) -> Affine {
        let channels = shape.channels();
        let gamma = self.reserve(channels);
        let beta = beta.then(|| self.reserve(channels));
        Affine { channels, positions: shape.positions(), gamma, beta }
    }
}

/// The filters of a convolution.
struct Filters {
    outputs: usize,
    groups: usize,
    bias: bool,
    frozen: bool,
}

/// The shape with other channels, at the same positions.
fn with_channels(shape: Shape, channels: usize) -> Shape {
    match shape {
        Shape::Sequence([t, _]) => Shape::Sequence([t, channels]),
        Shape::Image([h, w, _]) => Shape::Image([h, w, channels]),
        Shape::Vector(_) | Shape::Tokens { .. } => Shape::Vector([channels]),
    }
}

/// How the window of a pool lies.
fn pooling(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Lie {
    Lie { kernel, stride, padding: Padding::Zeros(padding), dilation: [1, 1] }
}

fn does_not_chain(layer: usize, shape: Shape, kind: &'static str, need: &'static str) -> Error {
    Error::DoesNotChain { layer, kind, actual: shape.dims(), need }
}
