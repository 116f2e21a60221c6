//! Many networks of dense layers at once. All have the same records but one. The first layer of c models reads the same records,
//! so that `X (W₁ … W_c)ᵀ` and its gradient are one product each; behind it every model has activations of its own, and a layer
//! of all models is a batch of products of one shape. A record's gradient is `δ ⊗ (a, 1)` in every layer: its norm, and with it
//! the clip, needs no array of parameters.

use super::training::{KNOWN, Rest, Training};
use crate::{
    Activation, LayerSpec, Loss, NetSpec,
    clip::Clipped,
    device::Backend,
    error::{Error, Result, check_len},
};
use leakscope_core::linalg::{matmul, matmul_by_transposed, matmul_transposed};

/// Numbers of one layer of all models that ride together: they should stay near the processor.
const NEAR: usize = 1 << 21;

/// A dense layer, and what follows it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Layer {
    inputs: usize,
    outputs: usize,
    bias: bool,
    activation: Option<Activation>,
    /// Where its parameters begin: weights `(outputs, inputs)`, then biases.
    offset: usize,
}

impl Layer {
    fn weights<'a>(&self, theta: &'a [f64]) -> &'a [f64] {
        &theta[self.offset..][..self.outputs * self.inputs]
    }

    fn biases<'a>(&self, theta: &'a [f64]) -> &'a [f64] {
        &theta[self.offset + self.outputs * self.inputs..][..if self.bias { self.outputs } else { 0 }]
    }

    fn end(&self) -> usize {
        self.offset + self.outputs * (self.inputs + usize::from(self.bias))
    }
}

/// A network of dense layers and how it is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    layers: Vec<Layer>,
    loss: Loss,
    /// How it is trained; parameters are in the order of [`crate::Network::parameters`].
    pub training: Training,
}

/// The layers of a network that is a chain of dense ones; refuses others by name.
fn layers(spec: &NetSpec) -> Result<Vec<Layer>> {
    let refused = |at: usize, kind: &str, why: &str| Error::Format {
        subject: "the network",
        reason: format!(
            "layer {at} ({kind}) {why}: many models are trained at once where a network is a chain of dense layers with \
             activations between them"
        ),
    };
    let mut out: Vec<Layer> = vec![];
    let mut width = spec.input.len();
    for (at, node) in spec.layers.iter().enumerate() {
        let kind = node.layer.kind();
        if !node.inputs.is_empty() {
            return Err(refused(at, kind, "reads layers by name"));
        }
        match (&node.layer, Activation::of(&node.layer)) {
            (LayerSpec::Flatten, _) => {}
            (LayerSpec::Dense { outputs, bias, .. }, _) => {
                let offset = out.last().map_or(0, Layer::end);
                out.push(Layer { inputs: width, outputs: *outputs, bias: *bias, activation: None, offset });
                width = *outputs;
            }
            (_, Some(activation)) => match out.last_mut() {
                Some(last) if last.activation.is_none() => last.activation = Some(activation),
                _ => return Err(refused(at, kind, "follows no dense layer")),
            },
            (_, None) => return Err(refused(at, kind, "is not dense")),
        }
    }
    if out.is_empty() {
        return Err(Error::Empty);
    }
    Ok(out)
}

impl Dense {
    /// Whether many networks of this kind can be trained at once.
    ///
    /// # Errors
    /// The layer that stands in the way.
    pub fn supports(spec: &NetSpec) -> Result<()> {
        layers(spec).map(|_| ())
    }

    /// A network of dense layers that starts from these parameters; in the open, until clip and sigma are set.
    pub fn new(spec: &NetSpec, start: Vec<f64>) -> Result<Self> {
        let layers = layers(spec)?;
        let parameters = layers.last().map_or(0, Layer::end);
        check_len("the start", start.len(), parameters)?;
        Ok(Self { layers, loss: spec.loss, training: Training::new(start) })
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.training.start.len()
    }

    /// Values of a record.
    pub fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    /// Outputs.
    pub fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs
    }

    /// Trains one model for each target on the known records and that target; parameters `(targets, p)`. Every model has
    /// noise of its own, by the seed and its number. `watch` hears how many are done, and says whether to go on.
    pub fn train_many(
        &self,
        rest: &Rest,
        targets: &Rest,
        seed: u64,
        watch: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<Vec<f64>> {
        let size = [self.inputs(), self.outputs()];
        let n = rest.check(size, KNOWN)?;
        self.training.check(self.parameters())?;
        let widest = self.layers.iter().map(|l| l.outputs).max().unwrap_or(1);
        let together = (NEAR / ((n + 1) * widest)).clamp(1, 64);
        let masks = Masks::new(self, rest);
        self.training.run((targets, size), (together, n + 1), seed, watch, &|models| {
            Pass::new(self, rest, models.own).gradients(models.theta, &masks)
        })
    }
}

/// What is frozen inside layers: those parameters have no gradient, and no part in the clip.
struct Masks {
    /// By layer: 1 where a weight is trained, `(outputs, inputs)`; none where all are, biases too.
    weights: Vec<Option<Vec<f64>>>,
    /// `(x²) Mᵀ` of the known records in the first layer, `(n, outputs)`; empty where nothing is frozen there.
    first: Vec<f64>,
}

impl Masks {
    fn new(model: &Dense, rest: &Rest) -> Self {
        let mask = |l: &Layer| {
            let own = &model.training.trained[l.offset..l.end()];
            own.contains(&false)
                .then(|| own[..l.outputs * l.inputs].iter().map(|t| f64::from(u8::from(*t))).collect())
        };
        let weights: Vec<Option<Vec<f64>>> = model.layers.iter().map(mask).collect();
        let first = weights[0].as_ref().map(|m| squares(&rest.x, m, &model.layers[0])).unwrap_or_default();
        Self { weights, first }
    }
}

/// `(a²) Mᵀ` of rows.
fn squares(rows: &[f64], mask: &[f64], l: &Layer) -> Vec<f64> {
    let n = rows.len() / l.inputs;
    let squared: Vec<f64> = rows.iter().map(|v| v * v).collect();
    let mut out = vec![0.0; n * l.outputs];
    matmul_by_transposed(&squared, mask, (n, l.inputs, l.outputs), &mut out);
    out
}

/// Numbers behind every layer.
type ByLayer = Vec<Vec<f64>>;

/// One pass of c models over their records: `(c, n + 1, width)` behind every layer, the target last.
struct Pass<'a> {
    model: &'a Dense,
    rest: &'a Rest,
    own: &'a Rest,
    /// Models.
    c: usize,
    /// Records of each.
    n: usize,
}

impl<'a> Pass<'a> {
    fn new(model: &'a Dense, rest: &'a Rest, own: &'a Rest) -> Self {
        let d = model.inputs();
        Self { model, rest, own, c: own.x.len() / d, n: rest.x.len() / d + 1 }
    }

    /// The sums of the clipped gradients, `(c, p)`.
    fn gradients(&self, theta: &[f64], masks: &Masks) -> Result<Vec<f64>> {
        let (values, slopes) = self.forward(theta)?;
        let (mut deltas, factors) = self.backward(theta, &values, &slopes, masks);
        for (delta, l) in deltas.iter_mut().zip(&self.model.layers) {
            for (row, s) in delta.chunks_exact_mut(l.outputs).zip(&factors) {
                row.iter_mut().for_each(|v| *v *= s);
            }
        }
        Ok(self.sums(&values, &deltas))
    }

    /// Behind every layer, its values and the slopes of its activation (empty without one).
    fn forward(&self, theta: &[f64]) -> Result<(ByLayer, ByLayer)> {
        let p = self.model.parameters();
        let mut dev = Backend::Cpu.device();
        let (mut values, mut slopes): (ByLayer, ByLayer) = (vec![], vec![]);
        for (at, l) in self.model.layers.iter().enumerate() {
            let mut z = match values.last() {
                None => self.first(theta),
                Some(a) => {
                    let mut z = vec![0.0; self.c * self.n * l.outputs];
                    for j in 0..self.c {
                        let rows = &a[j * self.n * l.inputs..][..self.n * l.inputs];
                        let out = &mut z[j * self.n * l.outputs..][..self.n * l.outputs];
                        let w = l.weights(&theta[j * p..][..p]);
                        matmul_by_transposed(rows, w, (self.n, l.inputs, l.outputs), out);
                    }
                    z
                }
            };
            for j in (0..self.c).filter(|_| l.bias) {
                let b = l.biases(&theta[j * p..][..p]);
                let rows = &mut z[j * self.n * l.outputs..][..self.n * l.outputs];
                rows.chunks_exact_mut(l.outputs).for_each(|r| r.iter_mut().zip(b).for_each(|(z, b)| *z += b));
            }
            slopes.push(match self.model.layers[at].activation {
                None => vec![],
                Some(kind) => {
                    let mut buf = dev.upload(&z);
                    let (mut d1, mut d2) = (dev.take(z.len()), dev.take(z.len()));
                    dev.activate(kind, &mut buf, &mut d1, &mut d2);
                    z = dev.unload(buf)?;
                    dev.unload(d1)?
                }
            });
            values.push(z);
        }
        Ok((values, slopes))
    }

    /// The first layer without its bias: one product for all models.
    fn first(&self, theta: &[f64]) -> Vec<f64> {
        let l = &self.model.layers[0];
        let (p, d, h) = (self.model.parameters(), l.inputs, l.outputs);
        let known = self.n - 1;
        let stacked: Vec<f64> = theta.chunks_exact(p).flat_map(|t| l.weights(t)).copied().collect();
        let mut all = vec![0.0; known * self.c * h];
        matmul_by_transposed(&self.rest.x, &stacked, (known, d, self.c * h), &mut all);
        let mut z = vec![0.0; self.c * self.n * h];
        for j in 0..self.c {
            for i in 0..known {
                let from = &all[(i * self.c + j) * h..][..h];
                z[(j * self.n + i) * h..][..h].copy_from_slice(from);
            }
            let out = &mut z[(j * self.n + known) * h..][..h];
            matmul_by_transposed(&self.own.x[j * d..][..d], &stacked[j * h * d..][..h * d], (1, d, h), out);
        }
        z
    }

    /// `∂ℓ/∂z` of every layer, and by record the factor of the clip.
    fn backward(
        &self,
        theta: &[f64],
        values: &[Vec<f64>],
        slopes: &[Vec<f64>],
        masks: &Masks,
    ) -> (ByLayer, Vec<f64>) {
        let (p, k) = (self.model.parameters(), self.model.outputs());
        let last = self.model.layers.len() - 1;
        let mut delta = self.slopes_of_loss(&values[last], k);
        let mut norms = vec![0.0; self.c * self.n];
        let mut deltas = vec![vec![]; last + 1];
        for at in (0..=last).rev() {
            let l = &self.model.layers[at];
            if !slopes[at].is_empty() {
                delta.iter_mut().zip(&slopes[at]).for_each(|(d, s)| *d *= s);
            }
            self.add_squares(&mut norms, at, &delta, values, masks);
            let mut before = vec![];
            if at > 0 {
                before = vec![0.0; self.c * self.n * l.inputs];
                for j in 0..self.c {
                    let rows = &delta[j * self.n * l.outputs..][..self.n * l.outputs];
                    let out = &mut before[j * self.n * l.inputs..][..self.n * l.inputs];
                    matmul(rows, l.weights(&theta[j * p..][..p]), (self.n, l.outputs, l.inputs), out);
                }
            }
            deltas[at] = std::mem::replace(&mut delta, before);
        }
        let factors = norms.iter().map(|n| Clipped::new(self.model.training.clip, n.sqrt()).s).collect();
        (deltas, factors)
    }

    fn slopes_of_loss(&self, z: &[f64], k: usize) -> Vec<f64> {
        let rule = self.model.loss.rule();
        let (mut delta, mut kept) = (vec![0.0; z.len()], vec![0.0; k]);
        for (i, (z, out)) in z.chunks_exact(k).zip(delta.chunks_exact_mut(k)).enumerate() {
            let (j, record) = (i / self.n, i % self.n);
            let y = match record + 1 < self.n {
                true => &self.rest.y[record * k..][..k],
                false => &self.own.y[j * k..][..k],
            };
            rule.primal(z, y, out, &mut kept);
        }
        delta
    }

    /// What layer `at` adds to the squared norms of the records' gradients: `Σ_o δ_o² (Σ_i M_oi a_i² + m_o)`.
    fn add_squares(&self, norms: &mut [f64], at: usize, delta: &[f64], values: &[Vec<f64>], masks: &Masks) {
        let l = &self.model.layers[at];
        let h = l.outputs;
        let biases: Vec<f64> =
            l.biases_trained(&self.model.training.trained).iter().map(|t| f64::from(u8::from(*t))).collect();
        let bias = |o: usize| biases.get(o).copied().unwrap_or(0.0);
        let known = self.n - 1;
        for j in 0..self.c {
            let rows: &[f64] = if at == 0 { &[] } else { &values[at - 1][j * self.n * l.inputs..] };
            let inputs = |i: usize| match at {
                0 if i < known => &self.rest.x[i * l.inputs..][..l.inputs],
                0 => &self.own.x[j * l.inputs..][..l.inputs],
                _ => &rows[i * l.inputs..][..l.inputs],
            };
            let masked = masks.weights[at].as_ref().map(|m| match at {
                0 => [&masks.first[..], &squares(inputs(known), m, l)].concat(),
                _ => squares(&rows[..self.n * l.inputs], m, l),
            });
            for i in 0..self.n {
                let d = &delta[(j * self.n + i) * h..][..h];
                norms[j * self.n + i] += match &masked {
                    Some(q) => {
                        let q = &q[i * h..][..h];
                        d.iter().zip(q).enumerate().map(|(o, (d, q))| d * d * (q + bias(o))).sum::<f64>()
                    }
                    None => {
                        let a: f64 = inputs(i).iter().map(|v| v * v).sum();
                        d.iter().enumerate().map(|(o, d)| d * d * (a + bias(o))).sum::<f64>()
                    }
                };
            }
        }
    }

    /// `Σ δ ⊗ (a, 1)` of every layer and model; in the first layer one product for all.
    fn sums(&self, values: &[Vec<f64>], deltas: &[Vec<f64>]) -> Vec<f64> {
        let p = self.model.parameters();
        let known = self.n - 1;
        let mut out = vec![0.0; self.c * p];
        for (at, l) in self.model.layers.iter().enumerate() {
            let (h, d) = (l.outputs, l.inputs);
            if at == 0 {
                let mut stacked = vec![0.0; known * self.c * h];
                for (j, i) in (0..self.c).flat_map(|j| (0..known).map(move |i| (j, i))) {
                    let from = &deltas[0][(j * self.n + i) * h..][..h];
                    stacked[(i * self.c + j) * h..][..h].copy_from_slice(from);
                }
                let mut all = vec![0.0; self.c * h * d];
                matmul_transposed(&stacked, &self.rest.x, (self.c * h, known, d), &mut all);
                for j in 0..self.c {
                    let sum = &mut out[j * p + l.offset..][..h * d];
                    sum.copy_from_slice(&all[j * h * d..][..h * d]);
                    let (delta, x) = (&deltas[0][(j * self.n + known) * h..][..h], &self.own.x[j * d..][..d]);
                    for (row, v) in sum.chunks_exact_mut(d).zip(delta) {
                        row.iter_mut().zip(x).for_each(|(s, x)| *s += v * x);
                    }
                }
            }
            for j in 0..self.c {
                let delta = &deltas[at][j * self.n * h..][..self.n * h];
                if at > 0 {
                    let a = &values[at - 1][j * self.n * d..][..self.n * d];
                    matmul_transposed(delta, a, (h, self.n, d), &mut out[j * p + l.offset..][..h * d]);
                }
                if l.bias {
                    let sum = &mut out[j * p + l.offset + h * d..][..h];
                    delta.chunks_exact(h).for_each(|r| sum.iter_mut().zip(r).for_each(|(s, v)| *s += v));
                }
            }
        }
        out
    }
}

impl Layer {
    fn biases_trained<'a>(&self, trained: &'a [bool]) -> &'a [bool] {
        &trained[self.offset + self.outputs * self.inputs..self.end()]
    }
}
