//! A network: layers in order, their parameters in one array, the loss.

use crate::{
    Activation, Data, LayerSpec, Loss, NetSpec, Real, Shape,
    device::{Buf, Device},
    error::{Error, Result, check, check_finite, check_len},
    layer::{
        Affine, Dropout, Frozen, Grouped, Layer, Linear, Nonlinear, Norm, OwnStatistics, Pool, Span, Start,
        Tensor,
    },
    random::{Generator, Purpose},
    shape::{Adaptive, Lie, Window, product},
    spec::{Padding, SPEC_VERSION},
};

/// A step of the network. A residual block is its layers between a save and an add.
#[derive(Debug)]
pub(crate) enum Op<T> {
    Layer(Box<dyn Layer<T>>),
    Save,
    Add,
}

#[derive(Debug)]
pub(crate) struct Node<T> {
    pub(crate) op: Op<T>,
    /// Whether it has parameters that are trained, and so released.
    pub(crate) trained: bool,
    /// Position of its layer in the file, counted through residual blocks.
    position: usize,
}

/// Frozen statistics of one batch norm.
#[derive(Debug, Clone)]
struct Statistics {
    position: usize,
    /// Its node.
    node: usize,
    /// Whether somebody has set them; until then they are 0 and 1.
    known: bool,
    offset: usize,
    epsilon: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

/// Mean and variance of a stream (Welford).
#[derive(Debug, Clone, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, v: f64) {
        self.count += 1.0;
        let from = v - self.mean;
        self.mean += from / self.count;
        self.squares += from * (v - self.mean);
    }

    /// Mean and variance, the latter over the count, as batch norm has it.
    fn get(&self) -> (f64, f64) {
        (self.mean, self.squares / self.count.max(1.0))
    }
}

/// One named tensor of the parameters or statistics.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTensor {
    /// `layers.3.weight`: position of the layer in the file (counted through residual blocks) and name.
    pub name: String,
    /// Its shape: dense weights are `[outputs, inputs]`, filters `[outputs, height, width, channels]`.
    pub shape: Vec<usize>,
    /// Where it starts among the parameters.
    pub offset: usize,
}

/// A network with its parameters.
#[derive(Debug)]
pub struct Network<T> {
    spec: NetSpec,
    pub(crate) nodes: Vec<Node<T>>,
    pub(crate) theta: Buf<T>,
    pub(crate) constants: Buf<T>,
    statistics: Vec<Statistics>,
    outputs: usize,
    /// 0 for every parameter that is frozen on its own, 1 for the others; absent where none is.
    pub(crate) mask: Option<Buf<T>>,
    /// First node that is trained: the backward pass ends there.
    pub(crate) first: usize,
}

impl<T: Real> Network<T> {
    /// Builds the network and draws its weights: normal with variance 1/fan-in, biases 0, γ = 1.
    pub fn new(spec: NetSpec, seed: u64) -> Result<Self> {
        let mut net = Self::build(spec)?;
        let mut rng = Generator::new(seed, Purpose::Weights, 0);
        let mut theta = vec![T::ZERO; net.theta.len()];
        for tensor in net.nodes.iter().flat_map(tensors) {
            let len: usize = tensor.shape.iter().product();
            for v in &mut theta[tensor.offset..tensor.offset + len] {
                *v = T::from_f64(match tensor.start {
                    Start::Normal(fan_in) => rng.normal() / (fan_in as f64).sqrt(),
                    Start::Constant(c) => c,
                });
            }
        }
        net.set_parameters(&theta)?;
        Ok(net)
    }

    /// Builds the network with given parameters, in the order of [`Network::tensors`].
    pub fn with_parameters(spec: NetSpec, theta: &[T]) -> Result<Self> {
        let mut net = Self::build(spec)?;
        net.set_parameters(theta)?;
        Ok(net)
    }

    fn build(spec: NetSpec) -> Result<Self> {
        if spec.version != SPEC_VERSION {
            return Err(Error::Version { what: "the network", found: spec.version, expected: SPEC_VERSION });
        }
        let size = product(&spec.input.dims());
        check(
            size.is_some_and(|n| n > 0),
            "the size of a record",
            size.unwrap_or(usize::MAX) as f64,
            "1 to 2^32",
        )?;
        let mut b =
            Builder { nodes: Vec::new(), parameters: 0, constants: 0, position: 0, statistics: Vec::new() };
        let shape = b.layers(&spec.layers, spec.input)?;
        if spec.loss == Loss::SoftmaxCrossEntropy && shape.len() < 2 {
            let reason = "a softmax over one output is 1 whatever the record, so nothing would be learned and nothing \
                          measured: give it an output for each class, or take binary-cross-entropy";
            return Err(Error::Format { what: "the network", reason: reason.to_owned() });
        }
        let Some(first) = b.nodes.iter().position(|n| n.trained) else {
            let reason = "no layer has parameters that are trained".to_owned();
            return Err(Error::Format { what: "the network", reason });
        };
        let mut dev = Device::new();
        let mut net = Self {
            outputs: shape.len(),
            nodes: b.nodes,
            theta: dev.zeros(b.parameters),
            constants: dev.zeros(b.constants),
            statistics: b.statistics,
            mask: None,
            spec,
            first,
        };
        net.write_constants();
        Ok(net)
    }

    fn write_constants(&mut self) {
        let mut values = vec![T::ZERO; self.constants.len()];
        for s in &self.statistics {
            let c = s.mean.len();
            for i in 0..c {
                let inverse = 1.0 / (s.variance[i] + s.epsilon).sqrt();
                values[s.offset + i] = T::from_f64(inverse);
                values[s.offset + c + i] = T::from_f64(-s.mean[i] * inverse);
            }
        }
        Device::new().write(&mut self.constants, &values);
    }

    /// Sets mean and variance of the batch norm at a position of the file.
    pub fn set_statistics(&mut self, position: usize, mean: &[f64], variance: &[f64]) -> Result<()> {
        check_finite("the mean of a batch norm", mean)?;
        check_finite("the variance of a batch norm", variance)?;
        let Some(s) = self.statistics.iter_mut().find(|s| s.position == position) else {
            let reason = format!("layer {position} is no batch norm");
            return Err(Error::Format { what: "the statistics", reason });
        };
        check_len("the mean of a batch norm", mean.len(), s.mean.len())?;
        check_len("the variance of a batch norm", variance.len(), s.mean.len())?;
        if let Some(&v) = variance.iter().find(|v| **v < 0.0) {
            return Err(Error::OutOfRange {
                what: "a variance of a batch norm",
                value: v,
                expected: "at least 0",
            });
        }
        (s.mean, s.variance, s.known) = (mean.to_vec(), variance.to_vec(), true);
        self.write_constants();
        Ok(())
    }

    /// Position, mean and variance of every batch norm.
    pub fn statistics(&self) -> impl Iterator<Item = (usize, &[f64], &[f64])> {
        self.statistics.iter().map(|s| (s.position, &s.mean[..], &s.variance[..]))
    }

    /// The first batch norm whose statistics nobody has set.
    pub fn without_statistics(&self) -> Option<usize> {
        self.statistics.iter().find(|s| !s.known).map(|s| s.position)
    }

    pub(crate) fn knows_statistics(&self, position: usize) -> bool {
        self.statistics.iter().any(|s| s.position == position && s.known)
    }

    /// Sets the statistics of every batch norm to those of its input over given records, first to last, so that each
    /// sees what the ones before it make of them.
    ///
    /// The statistics are constants of the network from then on, and no accountant counts them: the records must be
    /// public.
    pub fn calibrate_statistics(&mut self, public: &Data<T>) -> Result<()> {
        public.check(self)?;
        let mut dev = Device::new();
        for i in 0..self.statistics.len() {
            let Statistics { position, node, ref mean, .. } = self.statistics[i];
            let channels = mean.len();
            let mut moments = vec![Moments::default(); channels];
            let all: Vec<usize> = (0..public.len()).collect();
            for piece in all.chunks(self.records_at_a_time()) {
                let (x, y) = public.upload(&mut dev, piece);
                dev.put(y);
                let values = self.values_before(&mut dev, x, piece.len(), node);
                for row in dev.download(&values).chunks_exact(channels) {
                    moments.iter_mut().zip(row).for_each(|(m, v)| m.add(v.to_f64()));
                }
                dev.put(values);
            }
            let (mean, variance): (Vec<f64>, Vec<f64>) = moments.iter().map(Moments::get).unzip();
            self.set_statistics(position, &mean, &variance)?;
        }
        Ok(())
    }

    /// The file this network was built from.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Shape of one record.
    pub fn input(&self) -> Shape {
        self.spec.input
    }

    /// Number of outputs, and of label values.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The loss.
    pub fn loss(&self) -> Loss {
        self.spec.loss
    }

    /// Number of parameters, frozen ones included.
    pub fn parameter_count(&self) -> usize {
        self.theta.len()
    }

    /// All parameters, in the order of [`Network::tensors`].
    pub fn parameters(&self) -> &[T] {
        Device::new().download(&self.theta)
    }

    /// Replaces all parameters; they must be finite.
    pub fn set_parameters(&mut self, theta: &[T]) -> Result<()> {
        check_len("the parameters", theta.len(), self.theta.len())?;
        check_finite("the parameters", theta)?;
        Device::new().write(&mut self.theta, theta);
        Ok(())
    }

    /// The named tensors of the parameters.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let named = |node: &Node<T>| {
            let position = node.position;
            tensors(node).into_iter().map(move |t| NamedTensor {
                name: format!("layers.{position}.{}", t.name),
                shape: t.shape,
                offset: t.offset,
            })
        };
        self.nodes.iter().flat_map(named).collect()
    }

    /// Freezes single parameters, in the order of [`Network::tensors`], beside those of frozen layers: they take no part
    /// in the released gradient. What is frozen already stays so. A layer of which only some are frozen keeps its
    /// gradient as an array per record.
    pub fn freeze(&mut self, frozen: &[bool]) -> Result<()> {
        check_len("the mask of frozen parameters", frozen.len(), self.theta.len())?;
        let before = self.trained();
        let keep: Vec<bool> =
            before.iter().zip(frozen).map(|(trained, frozen)| *trained && !frozen).collect();
        if !keep.contains(&true) {
            let reason = "every parameter is frozen: nothing would be trained".to_owned();
            return Err(Error::Format { what: "the mask of frozen parameters", reason });
        }
        for node in self.nodes.iter_mut().filter(|n| n.trained) {
            let ranges: Vec<_> = tensors(node)
                .into_iter()
                .map(|t| t.offset..t.offset + t.shape.iter().product::<usize>())
                .collect();
            let kept: usize = ranges.iter().map(|r| keep[r.clone()].iter().filter(|k| **k).count()).sum();
            node.trained = kept > 0;
            if let (true, Op::Layer(layer)) =
                (kept > 0 && kept < ranges.iter().map(|r| r.len()).sum(), &mut node.op)
            {
                layer.set_masked();
            }
        }
        self.first = self.nodes.iter().position(|n| n.trained).unwrap_or(0);
        let mut dev = Device::new();
        // frozen layers keep their ones: only what a trained layer freezes is masked
        let mask: Vec<T> =
            before.iter().zip(&keep).map(|(b, k)| if *b && !k { T::ZERO } else { T::ONE }).collect();
        let mut mask = dev.upload(&mask);
        if let Some(earlier) = &self.mask {
            dev.mul(&mut mask, earlier.all());
        }
        self.mask = Some(mask);
        Ok(())
    }

    /// Which parameters are frozen on their own; absent where none is.
    pub fn frozen(&self) -> Option<Vec<bool>> {
        let dev = Device::new();
        self.mask.as_ref().map(|m| dev.download(m).iter().map(|v| *v == T::ZERO).collect())
    }

    /// Which parameters are trained.
    pub fn trained(&self) -> Vec<bool> {
        let mut trained = vec![false; self.theta.len()];
        for node in self.nodes.iter().filter(|n| n.trained) {
            for t in tensors(node) {
                let len: usize = t.shape.iter().product();
                trained[t.offset..t.offset + len].fill(true);
            }
        }
        if let Some(frozen) = self.frozen() {
            trained.iter_mut().zip(frozen).for_each(|(t, f)| *t &= !f);
        }
        trained
    }

    /// How many records to carry through the network at a time: enough for the products to be large and the
    /// weights to be read seldom, few enough for the activations to stay near the processor. It depends on the
    /// network alone, never on the machine, so that results do not either.
    pub(crate) fn records_at_a_time(&self) -> usize {
        const NEAR: usize = 1 << 19;
        let footprint: usize = self
            .nodes
            .iter()
            .map(|n| match &n.op {
                Op::Layer(l) => l.footprint(),
                Op::Save | Op::Add => 0,
            })
            .sum::<usize>()
            .max(1);
        (NEAR / footprint).max(self.theta.len() / (4 * footprint)).clamp(4, 128)
    }
}

fn tensors<T: Real>(node: &Node<T>) -> Vec<Tensor> {
    match &node.op {
        Op::Layer(l) => l.tensors(),
        Op::Save | Op::Add => Vec::new(),
    }
}

struct Builder<T> {
    nodes: Vec<Node<T>>,
    parameters: usize,
    constants: usize,
    position: usize,
    statistics: Vec<Statistics>,
}

impl<T: Real> Builder<T> {
    fn layers(&mut self, specs: &[LayerSpec], mut shape: Shape) -> Result<Shape> {
        for spec in specs {
            shape = self.layer(spec, shape)?;
        }
        Ok(shape)
    }

    fn push(&mut self, position: usize, layer: impl Layer<T> + 'static, trained: bool) {
        self.nodes.push(Node { op: Op::Layer(Box::new(layer)), trained, position });
    }

    /// Reserves parameters and returns where they start.
    fn reserve(&mut self, len: usize) -> usize {
        self.parameters += len;
        self.parameters - len
    }

    fn layer(&mut self, spec: &LayerSpec, shape: Shape) -> Result<Shape> {
        let at = self.position;
        self.position += 1;
        let bad = |kind, need| Error::DoesNotChain { layer: at, kind, found: shape.dims(), need };
        let mut activation = |kind| {
            self.push(at, Nonlinear { kind, width: shape.len() }, false);
            Ok(shape)
        };
        match *spec {
            LayerSpec::Dense { outputs, bias, frozen } => {
                let Shape::Vector([inputs]) = shape else {
                    return Err(bad("dense", "a vector is needed: put a flatten layer before it"));
                };
                if outputs == 0 || product(&[inputs, outputs]).is_none() {
                    return Err(bad("dense", "outputs must be at least 1, and fit into memory"));
                }
                let weight = self.reserve(inputs * outputs);
                let bias = bias.then(|| self.reserve(outputs));
                self.push(at, Linear { window: None, inputs, outputs, weight, bias, masked: false }, !frozen);
                Ok(Shape::Vector([outputs]))
            }
            LayerSpec::Conv { outputs, kernel, stride, padding, dilation, groups, bias, frozen } => {
                let lie = Lie { kernel, stride, padding, dilation };
                self.convolution(lie, outputs, groups, bias, frozen, shape)
            }
            LayerSpec::AveragePool { kernel, stride, padding } => {
                let window = Window::new(shape, pooling(kernel, stride, padding), at, "average-pool")?;
                self.push(at, Pool::Average(window), false);
                Ok(Shape::Image([window.out[0], window.out[1], window.channels]))
            }
            LayerSpec::MaxPool { kernel, stride, padding } => {
                let window = Window::new(shape, pooling(kernel, stride, padding), at, "max-pool")?;
                self.push(at, Pool::Max(window), false);
                Ok(Shape::Image([window.out[0], window.out[1], window.channels]))
            }
            LayerSpec::AdaptiveAveragePool { outputs: out } => {
                let Shape::Image([height, width, channels]) = shape else {
                    return Err(bad("adaptive-average-pool", "an image [height, width, channels] is needed"));
                };
                if out.contains(&0) || product(&[out[0], out[1], channels]).is_none() {
                    return Err(bad(
                        "adaptive-average-pool",
                        "outputs must be at least 1, and fit into memory",
                    ));
                }
                self.push(at, Pool::Adaptive(Adaptive { size: [height, width], channels, out }), false);
                Ok(Shape::Image([out[0], out[1], channels]))
            }
            LayerSpec::Tanh => activation(Activation::Tanh),
            LayerSpec::Relu => activation(Activation::Relu),
            LayerSpec::Gelu => activation(Activation::Gelu),
            LayerSpec::Sigmoid => activation(Activation::Sigmoid),
            LayerSpec::Silu => activation(Activation::Silu),
            LayerSpec::Softplus => activation(Activation::Softplus),
            LayerSpec::LeakyRelu { slope } => {
                check(slope.is_finite(), "the slope of a leaky ReLU", slope, "a finite number")?;
                activation(Activation::LeakyRelu(slope))
            }
            LayerSpec::Elu { alpha } => {
                check(alpha.is_finite(), "alpha of an ELU", alpha, "a finite number")?;
                activation(Activation::Elu(alpha))
            }
            LayerSpec::Dropout { rate } => {
                check((0.0..1.0).contains(&rate), "the rate of a dropout", rate, "at least 0 and below 1")?;
                self.push(at, Dropout { rate, width: shape.len(), position: at }, false);
                Ok(shape)
            }
            LayerSpec::BatchNorm { epsilon, frozen } => {
                let affine = self.affine(shape, true);
                check(
                    epsilon >= 0.0 && epsilon.is_finite(),
                    "epsilon of a batch norm",
                    epsilon,
                    "at least 0",
                )?;
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
            LayerSpec::LayerNorm { epsilon, frozen } => {
                check(epsilon > 0.0 && epsilon.is_finite(), "epsilon of a layer norm", epsilon, "positive")?;
                self.norm(Span::Position, epsilon, true, frozen, shape);
                Ok(shape)
            }
            LayerSpec::GroupNorm { groups, epsilon, frozen } => {
                check(epsilon > 0.0 && epsilon.is_finite(), "epsilon of a group norm", epsilon, "positive")?;
                if groups == 0 || shape.channels() % groups != 0 {
                    return Err(bad("group-norm", "the groups must divide the channels"));
                }
                self.norm(Span::Groups(groups), epsilon, true, frozen, shape);
                Ok(shape)
            }
            LayerSpec::RmsNorm { epsilon, frozen } => {
                check(epsilon > 0.0 && epsilon.is_finite(), "epsilon of an RMS norm", epsilon, "positive")?;
                self.norm(Span::Position, epsilon, false, frozen, shape);
                Ok(shape)
            }
            LayerSpec::Flatten => Ok(Shape::Vector([shape.len()])),
            LayerSpec::Residual { ref layers } => {
                self.nodes.push(Node { op: Op::Save, trained: false, position: at });
                let out = self.layers(layers, shape)?;
                if out != shape {
                    return Err(bad("residual", "the layers inside must return the shape they receive"));
                }
                self.nodes.push(Node { op: Op::Add, trained: false, position: at });
                Ok(shape)
            }
        }
    }

    /// A convolution, in groups where there are several.
    fn convolution(
        &mut self,
        lie: Lie,
        outputs: usize,
        groups: usize,
        bias: bool,
        frozen: bool,
        shape: Shape,
    ) -> Result<Shape> {
        let at = self.position - 1;
        let bad = |need| Error::DoesNotChain { layer: at, kind: "conv", found: shape.dims(), need };
        let whole = Window::new(shape, lie, at, "conv")?;
        if groups == 0 || whole.channels % groups != 0 || outputs % groups != 0 {
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
    fn norm(&mut self, span: Span, epsilon: f64, centred: bool, frozen: bool, shape: Shape) {
        let affine = self.affine(shape, centred);
        let standardise = OwnStatistics { epsilon, centred, span };
        self.push(self.position - 1, Norm { affine, standardise }, !frozen);
    }

    fn affine(&mut self, shape: Shape, beta: bool) -> Affine {
        let channels = shape.channels();
        let gamma = self.reserve(channels);
        let beta = beta.then(|| self.reserve(channels));
        Affine { channels, positions: shape.len() / channels, gamma, beta }
    }
}

/// How the window of a pool lies.
fn pooling(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Lie {
    Lie { kernel, stride, padding: Padding::Zeros(padding), dilation: [1, 1] }
}
