//! Layers: forward, backward, and the tangents of both with respect to the input and to the parameters, each
//! written once for a batch.
//!
//! For a layer `z = f(a, θ)` with what comes back, `δ = ∂ℓ/∂z`:
//!
//! | rule | computes |
//! |---|---|
//! | forward | `z` |
//! | backward | `∂ℓ/∂a = f_aᵀ δ`, and keeps the pair (δ, a): the per-sample gradient |
//! | tangent forward | `ż = f_a ȧ + f_θ θ̇` |
//! | tangent backward | `d/dε f_a(a + εȧ, θ + εθ̇)ᵀ(δ + εδ̇)` |
//!
//! To add a layer: a file here with the four rules (and, where it has parameters, the operations on its pair), a
//! variant of [`crate::LayerSpec`], a branch of `builder`, a line in `conformance`, which checks the rest. A layer
//! reads one value; what reads several is a [`Join`].
//!
//! A direction θ̇ of the parameters ([`Direction`]) is no array made for a record: it is `α ġ + β g`, a
//! combination of the record's own gradient and of the tangent of that gradient, both pairs, or the array that an attacker
//! saw, or the sum of the two.

mod activation;
mod affine;
mod attention;
mod direct;
mod direction;
mod dropout;
mod embedding;
mod grouped;
mod join;
mod linear;
mod norm;
mod pool;
mod positions;
mod tied;

pub(crate) use activation::Nonlinear;
pub(crate) use affine::Affine;
pub(crate) use attention::Attention;
pub(crate) use dropout::{Draws, Dropout};
pub(crate) use embedding::Embedding;
pub(crate) use grouped::Grouped;
pub(crate) use join::{Add, Join, Multiply};
pub(crate) use linear::Linear;
pub(crate) use norm::{Frozen, Norm, OwnStatistics, Span};
pub(crate) use pool::Pool;
pub(crate) use positions::PositionTable;

use crate::{
    Activation, Real,
    device::{Buf, Device, Index, Products, Scalars, View},
};
use std::cell::OnceCell;

/// What a layer keeps of the primal pass.
#[derive(Debug, Default)]
pub(crate) struct Tape<T> {
    /// Linear: what went in, patches as rows `(records·T, K)`, or images where the device needs no patches. Norms: x̂.
    /// Activations on a GPU: what went in.
    pub(crate) input: Option<Buf<T>>,
    /// What came back, `(records·T, O)`.
    pub(crate) delta: Option<Buf<T>>,
    /// Activations: φ'. Layer norm: 1/s. Dropout: its factors. Embedding: X of a tied output layer.
    pub(crate) first: Option<Buf<T>>,
    /// Activations: φ''·δ (φ'' before the backward pass). Layer norm: ∂ℓ/∂a.
    pub(crate) second: Option<Buf<T>>,
    /// Max pool: the chosen elements. Embedding: the tokens.
    pub(crate) index: Option<Index>,
    /// Embedding: where the token of every position stands first in its record.
    pub(crate) first_of_equals: Option<Index>,
    /// The per-sample gradient in the form the layer chose: see [`Linear`].
    pub(crate) gradient: Gradient<T>,
    /// The arrays of per-sample gradients that are kept in another form, weights and biases, once they were asked for.
    pub(crate) arrays: OnceCell<(Buf<T>, Option<Buf<T>>)>,
    /// What the groups of a convolution keep.
    pub(crate) parts: Vec<Tape<T>>,
    /// What a join keeps of its inputs.
    pub(crate) kept: Vec<Buf<T>>,
}

/// What a layer keeps of a tangent pass.
#[derive(Debug, Default)]
pub(crate) struct Tangent<T> {
    /// Linear: ȧ. Activations: ż. Norms: the tangent of x̂.
    pub(crate) input: Option<Buf<T>>,
    /// δ̇.
    pub(crate) delta: Option<Buf<T>>,
    /// Layer norm: ṡ. Embedding: Ẋ of a tied output layer.
    pub(crate) scale: Option<Buf<T>>,
    /// Products of the gradient with its tangent that [`Direction`] needs again.
    pub(crate) gradient: Gradient<T>,
    /// A direction of the parameters, where it is an array.
    pub(crate) direction: Gradient<T>,
    /// What the groups of a convolution keep.
    pub(crate) parts: Vec<Tangent<T>>,
    /// What a join keeps of the tangents of its inputs; absent where they are zero.
    pub(crate) kept: Vec<Option<Buf<T>>>,
}

/// Per-sample gradients of one layer, or what stands for them.
#[derive(Debug, Default)]
pub(crate) enum Gradient<T> {
    /// Not computed.
    #[default]
    None,
    /// Rank one per record: `‖a‖² + 1` and `‖δ‖²`; of a tangent, `a·ȧ` and `δ·δ̇`.
    Dots(Scalars, Scalars),
    /// T × T per record: the Gram matrices of a and of δ; of a tangent, `a_t·ȧ_s` and `δ_t·δ̇_s`.
    Gram(Buf<T>, Buf<T>),
    /// The arrays themselves: weights (or γ) and biases (or β).
    Whole(Buf<T>, Option<Buf<T>>),
}

impl<T: Real> Gradient<T> {
    fn recycle(self, dev: &mut Device<T>) {
        match self {
            Self::None | Self::Dots(..) => {}
            Self::Gram(a, b) => {
                dev.put(a);
                dev.put(b);
            }
            Self::Whole(a, b) => {
                dev.put(a);
                dev.put_some(b);
            }
        }
    }
}

impl<T: Real> Tape<T> {
    /// Gives all buffers back.
    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        for b in [self.input, self.delta, self.first, self.second] {
            dev.put_some(b);
        }
        self.kept.into_iter().for_each(|b| dev.put(b));
        self.gradient.recycle(dev);
        if let Some((g, gb)) = self.arrays.into_inner() {
            Gradient::Whole(g, gb).recycle(dev);
        }
        self.parts.into_iter().for_each(|p| p.recycle(dev));
    }
}

impl<T: Real> Tangent<T> {
    /// Gives all buffers back.
    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        for b in [self.input, self.delta, self.scale].into_iter().chain(self.kept) {
            dev.put_some(b);
        }
        self.gradient.recycle(dev);
        self.direction.recycle(dev);
        self.parts.into_iter().for_each(|p| p.recycle(dev));
    }
}

/// A direction θ̇ of the parameters, for every record of the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction<'a, T> {
    /// The record's own: what its information needs.
    Own(Own<'a, T>),
    /// An array for all, or one for each: what attacks need, who know the gradient that was released.
    Shared(Shared<'a, T>),
    /// The sum of the two.
    Sum(Own<'a, T>, Shared<'a, T>),
}

/// A record's own direction as pairs, `θ̇ = α ġ + β g`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own<'a, T> {
    /// The tangent pass that ġ comes from, one probe per record; absent where α = 0.
    pub(crate) tangent: Option<&'a Tangent<T>>,
    /// α, per record.
    pub(crate) alpha: &'a Scalars,
    /// β, per record.
    pub(crate) beta: &'a Scalars,
}

/// A direction from arrays, `θ̇ = w v`: one v for all records, or one for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared<'a, T> {
    /// v, as long as the parameters; or as many of them as there are records, piece by piece ([`Layer::pieces`]) and
    /// within a piece record by record.
    pub(crate) array: &'a Buf<T>,
    /// How many arrays there are: 1, or one for each record.
    pub(crate) copies: usize,
    /// w, per record.
    pub(crate) weights: &'a Scalars,
}

impl<'a, T: Real> Shared<'a, T> {
    /// The parameters of a piece, `(copies, len)`.
    fn part(&self, offset: usize, len: usize) -> View<'a, T> {
        self.array.part(self.copies * offset, self.copies * len)
    }
}

impl<'a, T> Direction<'a, T> {
    pub(crate) fn of(own: Option<Own<'a, T>>, shared: Option<Shared<'a, T>>) -> Option<Self> {
        match (own, shared) {
            (Some(own), Some(shared)) => Some(Self::Sum(own, shared)),
            (Some(own), None) => Some(Self::Own(own)),
            (None, Some(shared)) => Some(Self::Shared(shared)),
            (None, None) => None,
        }
    }

    fn own(&self) -> Option<&Own<'a, T>> {
        match self {
            Self::Own(own) | Self::Sum(own, _) => Some(own),
            Self::Shared(_) => None,
        }
    }

    fn shared(&self) -> Option<&Shared<'a, T>> {
        match self {
            Self::Shared(shared) | Self::Sum(_, shared) => Some(shared),
            Self::Own(_) => None,
        }
    }
}

/// A value on its way, or a tangent that is absent where it is zero.
pub(crate) type Flow<T> = Option<Buf<T>>;

/// What the rules of tangents need beside it: what the layer kept of the primal pass, what it keeps of this one, and a
/// direction of its parameters.
#[derive(Debug)]
pub(crate) struct Moving<'a, T> {
    pub(crate) tape: &'a Tape<T>,
    pub(crate) tangent: &'a mut Tangent<T>,
    pub(crate) direction: Option<&'a Direction<'a, T>>,
}

/// What every rule needs: the device, the parameters, the number of records.
#[derive(Debug)]
pub(crate) struct Context<'a, T> {
    pub(crate) dev: &'a mut Device<T>,
    pub(crate) theta: &'a Buf<T>,
    /// Frozen statistics of batch norms.
    pub(crate) constants: &'a Buf<T>,
    /// 0 for every parameter that is frozen on its own, 1 for the others; as long as `theta`.
    pub(crate) mask: Option<&'a Buf<T>>,
    pub(crate) records: usize,
    /// Positions of every record, where records are sequences; 1 where not.
    pub(crate) length: usize,
    /// The draws of a training step and the numbers of its records; absent in audits, where nothing is left out.
    pub(crate) dropout: Option<(Draws, &'a [usize])>,
}

impl<T: Real> Context<'_, T> {
    /// Takes frozen parameters out of gradients: rows of the `len` parameters from `at` on.
    pub(crate) fn mask(&mut self, gradient: &mut Buf<T>, at: usize, len: usize) {
        if let Some(mask) = self.mask {
            self.dev.mul(gradient, mask.part(at, len));
        }
    }
}

/// How a tensor of parameters starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Start {
    /// Normal with variance 1/fan-in.
    Normal(usize),
    Constant(f64),
}

/// One tensor of a layer's parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) offset: usize,
    pub(crate) start: Start,
}

/// One layer. See the table of the module.
pub(crate) trait Layer<T: Real>: std::fmt::Debug + Send + Sync {
    /// The tensors of its parameters; none by default.
    fn tensors(&self) -> Vec<Tensor> {
        Vec::new()
    }

    /// Where the parameters that it reads at once start, and how many they are: its tensors by default.
    fn pieces(&self) -> Vec<(usize, usize)> {
        self.tensors().iter().map(|t| (t.offset, t.shape.iter().product())).collect()
    }

    /// What it is, where it is an activation.
    fn activation(&self) -> Option<Activation> {
        None
    }

    /// Asks it to compute the activation right before it too, where that is faster; returns whether it will, on a GPU.
    fn take_activation(&mut self, _activation: Activation) -> bool {
        false
    }

    /// Says that the layer behind it computes it too, on a GPU.
    fn defer(&mut self) {}

    /// Says that some of its parameters are frozen on their own: its gradient is then an array, in which they are 0.
    fn set_masked(&mut self) {}

    /// Whether a training step draws anything in it.
    fn draws(&self) -> bool {
        false
    }

    /// Whether `add_weighted` needs the pair (δ, a) alone, and not what `add_square` keeps.
    fn sums_from_pair(&self) -> bool {
        false
    }

    /// Values per record that a pass keeps, of sequences of this length: sizes the batch.
    fn footprint(&self, length: usize) -> usize;

    /// The same on a GPU.
    fn far_footprint(&self, length: usize) -> usize {
        self.footprint(length)
    }

    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, tape: &mut Tape<T>) -> Buf<T>;

    /// Returns what comes back at the input where `input` asks for it.
    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        input: bool,
    ) -> Option<Buf<T>>;

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T>;

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        delta: Buf<T>,
        input: bool,
    ) -> Flow<T>;

    /// Adds `‖g‖²` of every record, and keeps the form of g that the other operations use.
    fn add_square(&self, _cx: &mut Context<'_, T>, _tape: &mut Tape<T>, _square: &mut Scalars) {}

    /// Adds `g·ġ` and `‖ġ‖²` for every probe and record; `keep`s the products for a [`Direction`].
    fn add_products(&self, _cx: &mut Context<'_, T>, _at: Moving<'_, T>, _sums: &mut Products) {}

    /// Adds `Σᵢ wᵢ gᵢ` to the gradient of the batch. After [`Layer::add_square`].
    fn add_weighted(&self, _cx: &mut Context<'_, T>, _tape: &Tape<T>, _weights: &Scalars, _out: &mut Buf<T>) {
    }

    /// Adds `Σᵢ wᵢ ġᵢ` of a tangent pass of one probe made with `keep`. After [`Layer::add_products`].
    fn add_weighted_tangent(
        &self,
        _cx: &mut Context<'_, T>,
        _tape: &Tape<T>,
        _tangent: &Tangent<T>,
        _weights: &Scalars,
        _out: &mut Buf<T>,
    ) {
    }

    /// Writes one record's gradient, or one probe's tangent of it, into an array of all parameters: for tests.
    #[cfg(test)]
    fn materialise(
        &self,
        _dev: &Device<T>,
        _tape: &Tape<T>,
        _tangent: Option<&Tangent<T>>,
        _at: Single,
        _out: &mut [f64],
    ) {
    }
}

/// A number per record that is fixed, or so much for each of its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Fixed(usize),
    /// So much at each position of a sequence.
    Each(usize),
}

impl Width {
    /// Of sequences of this length.
    pub(crate) fn at(self, length: usize) -> usize {
        match self {
            Self::Fixed(n) => n,
            Self::Each(n) => n * length,
        }
    }
}

/// Which record's gradient to write out, and which row of a tangent pass: for tests.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Single {
    pub(crate) length: usize,
    pub(crate) record: usize,
    pub(crate) row: usize,
}
