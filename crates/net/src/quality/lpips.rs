//! LPIPS (Zhang, Isola, Efros, Shechtman, Wang 2018), version 0.1 with AlexNet: how different two pictures look to a network
//! that somebody trained to see. The network runs on our layers; its weights are a file that the user brings.
//!
//! A picture between −1 and 1, scaled by constants for each channel, goes through the five convolutions of AlexNet. Behind each
//! rectifier l the features are divided by their length over the channels, and `d = Σ_l mean_{h,w} Σ_c w_{lc}(x̂_{hwc} − ŷ_{hwc})²`.
//!
//! The file is safetensors. Names are those of torchvision's `alexnet` and of the `lpips` package:
//!
//! | name | shape |
//! |---|---|
//! | `features.0.weight`, `.bias` | 64 × 3 × 11 × 11, 64 |
//! | `features.3.weight`, `.bias` | 192 × 64 × 5 × 5, 192 |
//! | `features.6.weight`, `.bias` | 384 × 192 × 3 × 3, 384 |
//! | `features.8.weight`, `.bias` | 256 × 384 × 3 × 3, 256 |
//! | `features.10.weight`, `.bias` | 256 × 256 × 3 × 3, 256 |
//! | `lin0.model.1.weight` to `lin4.model.1.weight` (or `lin0.weight` …) | 1 × 64 × 1 × 1, 192, 384, 256, 256 |

use super::{Range, check_pair};
use crate::{
    LayerSpec as L, Loss, NetSpec, Network, Shape,
    data::{Batch, Input},
    device::Target,
    engine::Workers,
    error::{Error, Result, check_finite, check_len},
    io::Tensors,
};

/// Outputs, inputs and side of the filters of each convolution, and its name in the file.
const CONVOLUTIONS: [(usize, usize, usize, &str); 5] = [
    (64, 3, 11, "features.0"),
    (192, 64, 5, "features.3"),
    (384, 192, 3, "features.6"),
    (256, 384, 3, "features.8"),
    (256, 256, 3, "features.10"),
];
/// The values behind the rectifiers, by their number in the network.
const BEHIND: [usize; 5] = [2, 5, 8, 10, 12];
const SHIFT: [f64; 3] = [-0.030, -0.088, -0.188];
const SCALE: [f64; 3] = [0.458, 0.448, 0.450];
/// Pictures with a side below this leave nothing behind the second pool.
const LEAST: usize = 31;
/// What smaller ones are enlarged to, as in Edmunds (2024).
const ENLARGED: usize = 64;

/// The measure with its weights.
#[derive(Debug, Clone)]
pub struct Lpips {
    theta: Vec<f64>,
    linear: [Vec<f64>; 5],
}

fn wrong(reason: String) -> Error {
    Error::Format { subject: "the weights of LPIPS", reason }
}

impl Lpips {
    /// From a file of weights; refuses one that lacks any, or has other shapes.
    pub fn from_tensors(file: &Tensors) -> Result<Self> {
        let read = |name: &str, shape: &[usize]| -> Result<Vec<f64>> {
            if !file.has(name) {
                let names: Vec<&str> = file.names().take(6).collect();
                return Err(wrong(format!(
                    "there is no array {name}: expected the convolutions of torchvision's alexnet (features.0.weight …) and \
                     the linear layers of lpips (lin0.model.1.weight …); it has {}",
                    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
                )));
            }
            let (stored, values) = file.get::<f64>(name)?;
            if stored != shape {
                return Err(wrong(format!("{name} has shape {stored:?}: expected {shape:?}")));
            }
            check_finite("the weights of LPIPS", &values)?;
            Ok(values)
        };
        let mut theta = Vec::new();
        for (o, i, side, name) in CONVOLUTIONS {
            let weight = read(&format!("{name}.weight"), &[o, i, side, side])?;
            // (outputs, channels, height, width) there, channels last here
            let area = side * side;
            for out in weight.chunks_exact(i * area) {
                theta.extend((0..area).flat_map(|at| (0..i).map(move |c| out[c * area + at])));
            }
            theta.extend(read(&format!("{name}.bias"), &[o])?);
        }
        let mut linear: [Vec<f64>; 5] = Default::default();
        for (l, (weights, (channels, ..))) in linear.iter_mut().zip(CONVOLUTIONS).enumerate() {
            let short = format!("lin{l}.weight");
            let name = if file.has(&short) { short } else { format!("lin{l}.model.1.weight") };
            *weights = read(&name, &[1, channels, 1, 1])?;
        }
        Ok(Self { theta, linear })
    }

    /// How different two pictures look; 0 where they are the same. Pictures have 1 or 3 channels, channels last; those with a
    /// side below 31 are enlarged to 64 × 64 first (bilinear).
    pub fn distance(
        &self,
        shape: Shape,
        record: &[f64],
        reconstruction: &[f64],
        range: Range,
    ) -> Result<f64> {
        check_pair(record, reconstruction)?;
        check_len("the record", record.len(), shape.len())?;
        range.check()?;
        let Shape::Image([height, width, channels @ (1 | 3)]) = shape else {
            let need = "LPIPS is of images with 1 or 3 channels";
            return Err(Error::DoesNotChain { layer: 0, kind: "LPIPS", actual: shape.dims(), need });
        };
        let network_input = |values: &[f64]| network_input(values, [height, width, channels], range);
        let ([h, w], x) = network_input(record);
        let (_, y) = network_input(reconstruction);
        let net = self.network(h, w)?;
        let mut sum = 0.0;
        for (value, weights) in BEHIND.iter().zip(&self.linear) {
            let features = behind(&net, &[x.as_slice(), &y].concat(), *value)?;
            let (a, b) = features.split_at(features.len() / 2);
            let c = weights.len();
            let places = a.chunks_exact(c).zip(b.chunks_exact(c));
            let n = (a.len() / c).max(1) as f64;
            sum += places.map(|(a, b)| apart(a, b, weights)).sum::<f64>() / n;
        }
        Ok(sum)
    }

    fn network(&self, height: usize, width: usize) -> Result<Network<f64>> {
        let pool = || L::MaxPool { kernel: [3, 3], stride: [2, 2], padding: [0, 0] };
        let layers = vec![
            L::conv(64, 11, 4, 2),
            L::Relu,
            pool(),
            L::conv(192, 5, 1, 2),
            L::Relu,
            pool(),
            L::conv(384, 3, 1, 1),
            L::Relu,
            L::conv(256, 3, 1, 1),
            L::Relu,
            L::conv(256, 3, 1, 1),
            L::Relu,
        ];
        let spec = NetSpec::sequential(Shape::Image([height, width, 3]), layers, Loss::SquaredError);
        Network::with_parameters(spec, &self.theta)
    }
}

/// The value of a number of the network, of two pictures.
fn behind(net: &Network<f64>, both: &[f64], value: usize) -> Result<Vec<f64>> {
    Workers::of(net).with(|dev| {
        let (x, y) = (Input::Values(dev.upload(both)), Target::Classes(dev.upload_index(&[])));
        let batch = Batch { records: &[0, 1], length: 1, x, y, weights: None };
        let features = net.value_of(dev, batch, value);
        dev.unload(features)
    })
}

/// `Σ_c w_c (â_c − b̂_c)²` at one place.
fn apart(a: &[f64], b: &[f64], weights: &[f64]) -> f64 {
    // as published: what keeps it finite is added to the length
    let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt() + 1e-10;
    let (na, nb) = (length(a), length(b));
    a.iter().zip(b).zip(weights).map(|((a, b), w)| w * (a / na - b / nb).powi(2)).sum()
}

/// A picture as the network sees it: three channels, scaled, large enough.
fn network_input(
    values: &[f64],
    [height, width, channels]: [usize; 3],
    range: Range,
) -> ([usize; 2], Vec<f64>) {
    let unit = |v: f64| 2.0 * (v - range.low) / range.width() - 1.0;
    let three: Vec<f64> = (0..height * width)
        .flat_map(|at| (0..3).map(move |c| at * channels + c.min(channels - 1)))
        .map(|i| unit(values[i]))
        .collect();
    let (to, picture) = match height.min(width) < LEAST {
        true => ([ENLARGED; 2], enlarged(&three, [height, width])),
        false => ([height, width], three),
    };
    let scaled = picture.iter().enumerate().map(|(i, v)| (v - SHIFT[i % 3]) / SCALE[i % 3]);
    (to, scaled.collect())
}

/// Bilinear, the centres of pixels at halves.
fn enlarged(picture: &[f64], [height, width]: [usize; 2]) -> Vec<f64> {
    // the two nearest pixels, and the share of the second
    let near = |i: usize, from: usize| {
        let at = ((i as f64 + 0.5) * from as f64 / ENLARGED as f64 - 0.5).max(0.0);
        let first = (at.floor() as usize).min(from - 1);
        (first, (first + 1).min(from - 1), at - first as f64)
    };
    let mut out = Vec::with_capacity(ENLARGED * ENLARGED * 3);
    for y in 0..ENLARGED {
        let (y0, y1, v) = near(y, height);
        for x in 0..ENLARGED {
            let (x0, x1, u) = near(x, width);
            let at = |y: usize, x: usize, c: usize| picture[(y * width + x) * 3 + c];
            out.extend((0..3).map(|c| {
                let row = |y: usize| (1.0 - u) * at(y, x0, c) + u * at(y, x1, c);
                (1.0 - v) * row(y0) + v * row(y1)
            }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// The generator of `testdata/net/lpips.py`.
    fn values(seed: u32, count: usize) -> Vec<f64> {
        let mut state = seed;
        let one = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state) / 4_294_967_296.0 - 0.5
        };
        (0..count).map(one).collect()
    }

    fn file() -> Tensors {
        let mut file = Tensors::default();
        for (i, (o, channels, side, name)) in CONVOLUTIONS.into_iter().enumerate() {
            let fan_in = channels * side * side;
            let scale = (24.0 / fan_in as f64).sqrt();
            let weight: Vec<f64> = values(10 + i as u32, o * fan_in).iter().map(|v| v * scale).collect();
            file.insert(&format!("{name}.weight"), &[o, channels, side, side], &weight);
            file.insert(&format!("{name}.bias"), &[o], &values(20 + i as u32, o));
            let linear: Vec<f64> = values(30 + i as u32, o).iter().map(|v| v + 0.5).collect();
            file.insert(&format!("lin{i}.model.1.weight"), &[1, o, 1, 1], &linear);
        }
        file
    }

    #[derive(Deserialize)]
    struct Case {
        seed: u32,
        height: usize,
        width: usize,
        channels: usize,
        lpips: f64,
        itself: f64,
    }

    #[derive(Deserialize)]
    struct Golden {
        cases: Vec<Case>,
    }

    /// Against the package, weights and pictures from a counter.
    #[test]
    fn the_distance_is_that_of_the_reference_package() {
        let golden: Golden =
            serde_json::from_str(include_str!("../../../../testdata/net/lpips.json")).unwrap();
        assert_eq!(golden.cases.len(), 5);
        let lpips = Lpips::from_tensors(&file()).unwrap();
        for c in &golden.cases {
            let shape = Shape::Image([c.height, c.width, c.channels]);
            let n = c.height * c.width * c.channels;
            // between 0 and 1 here, between −1 and 1 there
            let picture = |seed| values(seed, n).iter().map(|v| v + 0.5).collect::<Vec<f64>>();
            let (a, b) = (picture(c.seed), picture(c.seed + 100));
            let range = Range { low: 0.0, high: 1.0 };
            let actual = lpips.distance(shape, &a, &b, range).unwrap();
            assert!((actual / c.lpips - 1.0).abs() < 1e-9, "{actual} against {}", c.lpips);
            assert!(lpips.distance(shape, &a, &a, range).unwrap() == 0.0 && c.itself == 0.0);
            let grown: Vec<f64> = a.iter().map(|v| 7.0 * v - 3.0).collect();
            let other: Vec<f64> = b.iter().map(|v| 7.0 * v - 3.0).collect();
            let wide = lpips.distance(shape, &grown, &other, Range { low: -3.0, high: 4.0 }).unwrap();
            assert!((wide / c.lpips - 1.0).abs() < 1e-9);
        }
        let shape = Shape::Vector([4]);
        let e = lpips.distance(shape, &[0.0; 4], &[0.1; 4], Range { low: 0.0, high: 1.0 }).unwrap_err();
        assert!(e.to_string().contains("1 or 3 channels"), "{e}");
    }

    #[test]
    fn weights_that_do_not_fit_are_refused() {
        let says = |file: &Tensors| Lpips::from_tensors(file).unwrap_err().to_string();
        assert!(says(&Tensors::default()).contains("there is no array features.0.weight"));
        let mut other = file();
        other.insert("features.3.weight", &[192, 64, 3, 3], &vec![0.0; 192 * 64 * 9]);
        assert!(
            says(&other).contains("features.3.weight has shape [192, 64, 3, 3]: expected [192, 64, 5, 5]")
        );
        let mut nan = file();
        nan.insert("lin2.weight", &[1, 384, 1, 1], &vec![f64::NAN; 384]);
        assert!(says(&nan).contains("weights of LPIPS"));
        let mut short = file();
        (0..5).for_each(|l| {
            let values = file().get::<f64>(&format!("lin{l}.model.1.weight")).unwrap().1;
            short.insert(&format!("lin{l}.weight"), &[1, values.len(), 1, 1], &values);
        });
        assert!(Lpips::from_tensors(&short).is_ok());
    }
}
