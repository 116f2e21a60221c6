//! A network: a graph of layers, their parameters in one array, the loss.
//!
//! Values are numbered: 0 is the record, i + 1 what node i returns. A node reads values before its own, so the order of the
//! nodes is one in which passes may visit them.

mod builder;

use builder::Builder;

use crate::{
    Loss, NetSpec, Real, Shape,
    device::{Backend, Buf, Device, cuda},
    error::{Error, Result, check, check_finite, check_len},
    layer::{Embedding, Join, Layer, Start, Tensor},
    random::{Generator, Purpose},
    shape::{Width, product},
    spec::SPEC_VERSION,
};

/// What a node does.
#[derive(Debug)]
pub(crate) enum Op<T> {
    /// Of one value.
    Layer(Box<dyn Layer<T>>),
    /// Of several values.
    Join(Box<dyn Join<T>>),
}

#[derive(Debug)]
pub(crate) struct Node<T> {
    pub(crate) op: Op<T>,
    /// The values it reads.
    pub(crate) inputs: Vec<usize>,
    /// Whether it has parameters that are trained, and so released.
    pub(crate) trained: bool,
    /// Position of its layer in the file, counted through residual blocks.
    pub(crate) position: usize,
}

/// Frozen statistics of one batch norm.
#[derive(Debug, Clone)]
pub(crate) struct Statistics {
    pub(crate) position: usize,
    /// Its node.
    pub(crate) node: usize,
    /// Whether somebody has set them; until then they are 0 and 1.
    pub(crate) known: bool,
    /// Where its constants start.
    pub(crate) offset: usize,
    pub(crate) epsilon: f64,
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
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
    backend: Backend,
    spec: NetSpec,
    pub(crate) nodes: Vec<Node<T>>,
    pub(crate) theta: Buf<T>,
    pub(crate) constants: Buf<T>,
    pub(crate) statistics: Vec<Statistics>,
    outputs: usize,
    /// Rows of outputs: one, or one for each position.
    places: Width,
    /// What makes values of tokens.
    pub(crate) embedding: Option<Embedding>,
    /// The node whose weights are the embedding's table.
    pub(crate) tied: Option<usize>,
    /// Whether sequences must be as long as the file says.
    whole: bool,
    /// Which parameters are frozen on their own; absent where none is.
    frozen: Option<Vec<bool>>,
    /// 0 for those, 1 for the others.
    pub(crate) mask: Option<Buf<T>>,
    /// How often every value is read, by nodes or by the loss.
    pub(crate) readers: Vec<usize>,
    /// Whether a value moves with a trained parameter: where it does not, backward passes end.
    pub(crate) moves: Vec<bool>,
}

impl<T: Real> Network<T> {
    /// Builds the network and draws its weights: normal with variance 1/fan-in, biases 0, γ = 1.
    pub fn new(spec: NetSpec, seed: u64) -> Result<Self> {
        let mut net = Self::build(spec)?;
        let mut rng = Generator::new(seed, Purpose::Weights, 0);
        let mut theta = vec![T::ZERO; net.theta.len()];
        for (_, tensor) in net.own_tensors() {
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
        T::build(spec)
    }

    pub(crate) fn build_generic(spec: NetSpec) -> Result<Self> {
        if spec.version != SPEC_VERSION {
            return Err(Error::Version {
                subject: "the network",
                actual: spec.version,
                expected: SPEC_VERSION,
            });
        }
        let size = product(&spec.input.dims());
        check(
            size.is_some_and(|n| n > 0),
            "the size of a record",
            size.unwrap_or(usize::MAX) as f64,
            "1 to 2^32",
        )?;
        let mut b = Builder::new(spec.input);
        let shape = b.nodes(&spec.layers)?;
        let (outputs, places) = match shape {
            Shape::Sequence([_, k]) => (k, Width::Each(1)),
            Shape::Image(_) | Shape::Vector(_) | Shape::Tokens { .. } => (shape.len(), Width::Fixed(1)),
        };
        if spec.loss == Loss::SoftmaxCrossEntropy && outputs < 2 {
            let reason = "a softmax over one output is 1 whatever the record, so nothing would be learned and nothing \
                          measured: give it an output for each class, or take binary-cross-entropy";
            return Err(Error::Format { subject: "the network", reason: reason.to_owned() });
        }
        if !b.nodes.iter().any(|n| n.trained) && !b.embedding.as_ref().is_some_and(|e| e.trained) {
            let reason = "no layer has parameters that are trained".to_owned();
            return Err(Error::Format { subject: "the network", reason });
        }
        let readers = b.readers()?;
        let mut dev: Device<T> = Backend::default().device();
        let mut net = Self {
            backend: Backend::default(),
            outputs,
            places,
            embedding: b.embedding,
            tied: b.tied,
            whole: b.whole,
            nodes: b.nodes,
            theta: dev.zeros(b.parameters),
            constants: dev.zeros(b.constants),
            statistics: b.statistics,
            frozen: None,
            mask: None,
            spec,
            readers,
            moves: Vec::new(),
        };
        net.join_activations();
        net.find_moves();
        net.write_constants();
        Ok(net)
    }

    /// Lets layers compute the activation before them, where nobody else reads it.
    fn join_activations(&mut self) {
        for i in 1..self.nodes.len() {
            let (before, after) = self.nodes.split_at_mut(i);
            let (Some(before), Some(node)) = (before.last_mut(), after.first_mut()) else { continue };
            let alone = node.inputs == [i] && self.readers[i] == 1;
            let (true, Op::Layer(first), Op::Layer(second)) = (alone, &mut before.op, &mut node.op) else {
                continue;
            };
            if first.activation().is_some_and(|activation| second.take_activation(activation)) {
                first.defer();
            }
        }
    }

    fn find_moves(&mut self) {
        self.moves = vec![self.embedding.as_ref().is_some_and(|e| e.trained)];
        for node in &self.nodes {
            let moves = node.trained || node.inputs.iter().any(|&v| self.moves[v]);
            self.moves.push(moves);
        }
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
        self.device().write(&mut self.constants, &values);
    }

    /// Sets mean and variance of the batch norm at a position of the file.
    pub fn set_statistics(&mut self, position: usize, mean: &[f64], variance: &[f64]) -> Result<()> {
        check_finite("the mean of a batch norm", mean)?;
        check_finite("the variance of a batch norm", variance)?;
        let Some(s) = self.statistics.iter_mut().find(|s| s.position == position) else {
            let reason = format!("layer {position} is no batch norm");
            return Err(Error::Format { subject: "the statistics", reason });
        };
        check_len("the mean of a batch norm", mean.len(), s.mean.len())?;
        check_len("the variance of a batch norm", variance.len(), s.mean.len())?;
        if let Some(&v) = variance.iter().find(|v| **v < 0.0) {
            return Err(Error::OutOfRange {
                subject: "a variance of a batch norm",
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

    /// The file this network was built from.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// Shape of one record, as the file has it: of a sequence, the longest.
    pub fn input(&self) -> Shape {
        self.spec.input
    }

    /// Number of tokens there are, where records are tokens.
    pub fn vocabulary(&self) -> Option<usize> {
        self.embedding.as_ref().map(|e| e.vocabulary)
    }

    /// Whether records of a shape can be read: the network's own, a plain vector of as many values, or a shorter
    /// sequence.
    pub fn takes(&self, records: Shape) -> bool {
        let fits = |t: usize, most: usize| t == most || (t <= most && !self.whole);
        match (self.spec.input, records) {
            (Shape::Sequence([most, c]), Shape::Sequence([t, d])) => c == d && fits(t, most),
            (Shape::Tokens { tokens: most }, Shape::Tokens { tokens: t }) => fits(t, most),
            (own, Shape::Vector([n])) => own.length() == 1 && own.len() == n,
            (own, other) => own == other,
        }
    }

    /// Number of values that leakage is about, of records of a length: the record's own, or those that its tokens are
    /// embedded as.
    pub fn values(&self, length: usize) -> usize {
        match &self.embedding {
            Some(e) => length * e.width,
            None => self.spec.input.width().at(length),
        }
    }

    /// Rows of outputs, and labels, of a record of a length: 1, or one for each position.
    pub fn places(&self, length: usize) -> usize {
        self.places.at(length)
    }

    /// Number of outputs, and of label values; of one position where there are several.
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

    /// What it computes on.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The same network computing elsewhere.
    pub fn on(mut self, backend: Backend) -> Result<Self> {
        self.move_to(backend)?;
        Ok(self)
    }

    /// Computes elsewhere from now on. After an error it is where it was.
    pub fn move_to(&mut self, backend: Backend) -> Result<()> {
        if backend == self.backend {
            return Ok(());
        }
        let (from, mut to) = (self.device(), backend.device());
        let mut moved = |buf: &Buf<T>| Ok::<_, Error>(to.upload(&from.download(buf)?));
        let (theta, constants) = (moved(&self.theta)?, moved(&self.constants)?);
        let mask = self.mask.as_ref().map(moved).transpose()?;
        // what does not fit there shows now
        backend.device().download(&theta)?;
        (self.theta, self.constants, self.mask, self.backend) = (theta, constants, mask, backend);
        Ok(())
    }

    pub(crate) fn device(&self) -> Device<T> {
        self.backend.device()
    }

    /// All parameters, in the order of [`Network::tensors`]: a copy, from wherever they are.
    pub fn parameters(&self) -> Result<Vec<T>> {
        self.device().download(&self.theta)
    }

    /// Replaces all parameters; they must be finite.
    pub fn set_parameters(&mut self, theta: &[T]) -> Result<()> {
        check_len("the parameters", theta.len(), self.theta.len())?;
        check_finite("the parameters", theta)?;
        self.device().write(&mut self.theta, theta);
        Ok(())
    }

    /// The named tensors of the parameters.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let named = |(position, t): (usize, Tensor)| NamedTensor {
            name: format!("layers.{position}.{}", t.name),
            shape: t.shape,
            offset: t.offset,
        };
        self.own_tensors().map(named).collect()
    }

    /// The tensors of all layers, with the layers' positions in the file.
    fn own_tensors(&self) -> impl Iterator<Item = (usize, Tensor)> {
        let embedding = self.embedding.iter().map(|e| (e.position, e.tensor()));
        let of = |node: &Node<T>| tensors(node).into_iter().map(|t| (node.position, t)).collect::<Vec<_>>();
        embedding.chain(self.nodes.iter().flat_map(of))
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
            return Err(Error::Format { subject: "the mask of frozen parameters", reason });
        }
        if let Some(e) = self.embedding.as_mut().filter(|e| e.trained) {
            let table = &keep[e.table..][..e.vocabulary * e.width];
            e.trained = table.contains(&true);
            if e.trained && table.contains(&false) && self.tied.is_some() {
                let reason =
                    "the output layer has the embedding's table: freeze all of it or nothing".to_owned();
                return Err(Error::Format { subject: "the mask of frozen parameters", reason });
            }
            if let Some(output) = self.tied {
                self.nodes[output].trained = e.trained;
            }
        }
        let tied = self.tied;
        for (_, node) in self.nodes.iter_mut().enumerate().filter(|(i, n)| n.trained && Some(*i) != tied) {
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
        self.find_moves();
        // frozen layers keep their ones: only what a trained layer freezes is masked
        let earlier = self.frozen.take().unwrap_or_else(|| vec![false; keep.len()]);
        let now: Vec<bool> =
            before.iter().zip(&keep).zip(earlier).map(|((b, k), was)| was || (*b && !k)).collect();
        let mask: Vec<T> = now.iter().map(|f| if *f { T::ZERO } else { T::ONE }).collect();
        self.mask = Some(self.device().upload(&mask));
        self.frozen = Some(now);
        Ok(())
    }

    /// Which parameters are frozen on their own; absent where none is.
    pub fn frozen(&self) -> Option<Vec<bool>> {
        self.frozen.clone()
    }

    /// Which parameters are trained.
    pub fn trained(&self) -> Vec<bool> {
        let mut trained = vec![false; self.theta.len()];
        let embedding = self.embedding.iter().filter(|e| e.trained).map(Embedding::tensor);
        for t in embedding.chain(self.nodes.iter().filter(|n| n.trained).flat_map(tensors)) {
            let len: usize = t.shape.iter().product();
            trained[t.offset..t.offset + len].fill(true);
        }
        if let Some(frozen) = self.frozen() {
            trained.iter_mut().zip(frozen).for_each(|(t, f)| *t &= !f);
        }
        trained
    }

    /// How many records to carry through the network at a time: enough for the products to be large and the
    /// weights to be read seldom, few enough for the activations to stay near the processor. It depends on the
    /// network and the length of sequences alone, never on the machine, so that results do not either.
    pub(crate) fn records_at_a_time(&self, length: usize) -> usize {
        const NEAR: usize = 1 << 19;
        const FAR: usize = 1 << 26;
        let each = |n: &Node<T>| match (&n.op, self.backend) {
            (Op::Layer(l), Backend::Cpu) => l.footprint(length),
            (Op::Layer(l), Backend::Cuda(_)) => l.far_footprint(length),
            (Op::Join(j), _) => j.footprint(length),
        };
        let footprints = || self.nodes.iter().map(each);
        let footprint = footprints().sum::<usize>().max(1);
        match self.backend {
            Backend::Cpu => {
                // of a large language model even four would take more memory than its parameters
                let few = (FAR / footprint).clamp(1, 4);
                (NEAR / footprint).max(self.theta.len() / (4 * footprint)).clamp(few, 128)
            }
            // a GPU wants much at a time; what it holds, tangents included, must fit
            Backend::Cuda(card) => {
                const MANY: usize = 8192;
                // no buffer is larger than what its node keeps
                let counted = cuda::MOST_VALUES / footprints().max().unwrap_or(1).max(1);
                let fit = |memory: usize| (memory / (8 * T::BYTES) / footprint).min(counted);
                // asking for free memory takes longer than many a kernel
                if fit(card.total_memory() / 8) >= MANY {
                    return MANY;
                }
                fit(card.free_memory()).clamp(1, MANY)
            }
        }
    }
}

fn tensors<T: Real>(node: &Node<T>) -> Vec<Tensor> {
    match &node.op {
        Op::Layer(l) => l.tensors(),
        Op::Join(_) => Vec::new(),
    }
}
