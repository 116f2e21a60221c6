//! Figures A.1 to A.29: what the perturbation does to gradients, step by step. Three runs, and the first of them once more with
//! λ = 10⁶; of each the norms, accuracy and dFIL, and for every step the gradients on their two principal components and their
//! cosine with the perturbation. A.29 is the first step of a perturbation without batch norm.

use super::super::mueller::failure_of;
use super::super::{Context, Findings};
use super::informed::{CLIP, Pool, Ran, SIGMA, pool, setup, start, train, trained, usual};
use super::run::records;
use leakscope::Result;
use leakscope_core::linalg::{matmul_transposed, symmetric_eigen};
use leakscope_net::Data;
use leakscope_net::perturb::{PerturbationKind, Perturbing};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

/// Steps of a run.
const STEPS: u64 = 5;
/// Records that are drawn: all 1,000 would hide one another.
const DRAWN: usize = 250;

/// Runs of the appendix: the number of the first figure, what it is called, what is added to the seed, λ.
const FAMILIES: [(u32, &str, u64, f64); 4] =
    [(1, "seed 0", 0, 1e3), (8, "seed 0, λ = 10⁶", 0, 1e6), (15, "seed 1", 1, 1e3), (22, "seed 2", 2, 1e3)];

/// The gradients of a step over the trained parameters.
struct Gradients {
    /// Trained parameters.
    width: usize,
    /// `(n, width)`: of the records, of their sum with the perturbation behind the clip.
    base: Vec<f64>,
    last: Vec<f64>,
    /// What is added.
    added: Vec<f64>,
    /// Class of every record.
    classes: Vec<u8>,
}

impl Gradients {
    /// Of a linear model of one logit: `(p − y)(x, 1)`.
    fn of(data: &Data<f32>, theta: &[f32], kept: &[bool], added: &[f64]) -> Self {
        let d = data.input().len();
        let trained: Vec<usize> = (0..=d).filter(|&j| kept[j]).collect();
        let width = trained.len();
        let added: Vec<f64> = trained.iter().map(|&j| added.get(j).copied().unwrap_or(0.0)).collect();
        let (mut base, mut last, mut classes) = (vec![], vec![], vec![]);
        for i in 0..data.len() {
            let (x, y) = (data.record(i), f64::from(data.label(i)[0]));
            let z = f64::from(theta[d]) + (0..d).map(|j| f64::from(theta[j]) * f64::from(x[j])).sum::<f64>();
            let slope = 1.0 / (1.0 + (-z).exp()) - y;
            let g: Vec<f64> =
                trained.iter().map(|&j| slope * if j < d { f64::from(x[j]) } else { 1.0 }).collect();
            let h: Vec<f64> = g.iter().zip(&added).map(|(g, f)| g + f).collect();
            let (s, _) = CLIP.factor(norm(&h));
            base.extend(g);
            last.extend(h.iter().map(|v| s * v));
            classes.push(u8::from(y > 0.5));
        }
        Self { width, base, last, added, classes }
    }

    /// Norms of the gradients, of what is added, and of what is released.
    fn norms(&self) -> [f64; 3] {
        let mean = |all: &[f64]| {
            let n = (all.len() / self.width).max(1) as f64;
            all.chunks_exact(self.width).map(norm).sum::<f64>() / n
        };
        [mean(&self.base), norm(&self.added), mean(&self.last)]
    }

    /// Cosine of every gradient with what is added; none where one of them is 0.
    fn cosines(&self) -> Vec<f64> {
        let f = norm(&self.added);
        let one = |g: &[f64]| {
            let dot: f64 = g.iter().zip(&self.added).map(|(a, b)| a * b).sum();
            Some(dot / (norm(g) * f)).filter(|c| c.is_finite())
        };
        self.base.chunks_exact(self.width).filter_map(one).collect()
    }
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Rows on their two principal components, and the variances along these.
fn principal(rows: &[f64], width: usize) -> Result<(Vec<[f64; 2]>, [f64; 2])> {
    let n = (rows.len() / width).max(1);
    let mut mean = vec![0.0; width];
    rows.chunks_exact(width).for_each(|r| mean.iter_mut().zip(r).for_each(|(m, v)| *m += v / n as f64));
    let off: Vec<f64> = rows.iter().zip(mean.iter().cycle()).map(|(v, m)| v - m).collect();
    let mut square = vec![0.0; width * width];
    matmul_transposed(&off, &off, (width, n, width), &mut square);
    let (values, vectors) = symmetric_eigen(&square, width).map_err(failure_of)?;
    let along = |r: &[f64], k: usize| r.iter().enumerate().map(|(j, v)| v * vectors[j * width + k]).sum();
    let second = usize::from(width > 1);
    let places = off.chunks_exact(width).map(|r| [along(r, 0), along(r, second)]).collect();
    Ok((places, [values[0].max(0.0) / n as f64, values[second].max(0.0) / n as f64]))
}

/// Points of the two digits.
fn dots(title: &str, places: &[[f64; 2]], classes: &[u8]) -> Panel {
    let of = |digit: u8| {
        let own = places.iter().zip(classes).take(DRAWN).filter(|(_, c)| **c == digit).map(|(p, _)| *p);
        PointSeries::new(format!("digit {digit}"), own.collect())
    };
    Panel {
        title: title.into(),
        content: Content::Dots {
            x: AxisTitle::linear("first component"),
            y: AxisTitle::linear("second component"),
            series: vec![of(0), of(1)],
            line: None,
            notes: vec![],
        },
    }
}

fn curves(title: &str, y: &str, series: Vec<(&str, Vec<f64>)>) -> Panel {
    let points = |v: Vec<f64>| v.iter().enumerate().map(|(t, v)| [(t + 1) as f64, *v]).collect();
    Panel {
        title: title.into(),
        content: Content::Curves {
            x: AxisTitle::linear("private step"),
            y: AxisTitle::linear(y),
            series: series.into_iter().map(|(name, v)| PointSeries::new(name, points(v))).collect(),
            levels: vec![],
        },
    }
}

/// What a family of figures shows, for the statements.
struct Family {
    name: &'static str,
    /// By step: norms of gradient, perturbation and release.
    norms: Vec<[f64; 3]>,
    /// By step: variances along the first component before and after.
    variances: Vec<[f64; 2]>,
    /// Cosines of the first step.
    cosines: Vec<f64>,
    /// By step: the mean and the largest √dFIL so far, which is what the thesis draws as dFIL.
    roots: Vec<[f64; 2]>,
}

fn family(
    context: &Context<'_>,
    pool: &Pool,
    (first, name, more, lambda): (u32, &'static str, u64, f64),
    figures: &mut Vec<Figure>,
) -> Result<Family> {
    let seed = context.seed + more;
    let how = Perturbing { variant: PerturbationKind::Thesis, lambda, ..usual(context) };
    let ran = train(context, pool, (SIGMA, true, Some(how)), (STEPS, seed))?;
    let kept = trained(&start(pool.images.size(), seed), true);
    let data = records(&pool.images, pool.parts[0], pool.parts[1], 1)?;
    let mut out = Family { name, norms: vec![], variances: vec![], cosines: vec![], roots: vec![] };
    let mut steps = vec![];
    for (t, (behind, added)) in ran.path.iter().zip(&ran.added).enumerate() {
        context.check()?;
        let g = Gradients::of(&data, &behind.theta, &kept, added);
        let ((before, v), (after, w)) = (principal(&g.base, g.width)?, principal(&g.last, g.width)?);
        let cosines = g.cosines();
        out.norms.push(g.norms());
        out.variances.push([v[0], w[0]]);
        out.roots.extend(behind.dfil.map(|l| [l.root[1], l.root[0]]));
        steps.push(Figure {
            file: format!("edmunds-figA.{}", first + 2 + t as u32),
            title: format!("Figure A.{}: gradients of step {}, {name}", first + 2 + t as u32, t + 1),
            caption: "On two principal components each: of the gradients, and of what is released, before the noise. The \
                      perturbation is one point for all records, and not drawn."
                .into(),
            panels: vec![
                dots("gradients (Prune)", &before, &g.classes),
                dots("with the perturbation, clipped", &after, &g.classes),
                Panel {
                    title: "cosine of gradient and perturbation".into(),
                    content: Content::Histograms {
                        x: AxisTitle::linear("cosine"),
                        series: vec![("records".into(), cosines.clone())],
                    },
                },
            ],
        });
        if t == 0 {
            out.cosines = cosines;
        }
    }
    figures.extend(overview((first, name), &out, &ran));
    figures.extend(steps);
    Ok(out)
}

/// Norms, accuracy and dFIL over the steps.
fn overview((first, name): (u32, &str), family: &Family, ran: &Ran) -> [Figure; 2] {
    let norms = |k: usize| family.norms.iter().map(|n| n[k]).collect::<Vec<f64>>();
    let roots = |k: usize| ran.path.iter().filter_map(|b| b.dfil.map(|l| l.root[k])).collect::<Vec<f64>>();
    [
        Figure {
            file: format!("edmunds-figA.{first}"),
            title: format!("Figure A.{first}: norms, {name}"),
            caption: "Means over the records.".into(),
            panels: vec![curves(
                "norms",
                "norm",
                vec![
                    ("gradient (Base)", norms(0)),
                    ("perturbation", norms(1)),
                    ("released (Final)", norms(2)),
                ],
            )],
        },
        Figure {
            file: format!("edmunds-figA.{}", first + 1),
            title: format!("Figure A.{}: accuracy and dFIL, {name}", first + 1),
            caption: "Up to each step; √dFIL, as the thesis prints it.".into(),
            panels: vec![
                curves("accuracy", "accuracy", vec![("FIM", ran.path.iter().map(|b| b.accuracy).collect())]),
                curves(
                    "√dFIL",
                    "√dFIL",
                    vec![("largest", roots(0)), ("mean", roots(1)), ("median", roots(2))],
                ),
            ],
        },
    ]
}

/// Figure A.29: the first step of a network that reads the image, without batch norm.
fn without_batch_norm(context: &Context<'_>, pool: &Pool, findings: &mut Findings) -> Result<()> {
    let epochs = if context.full { 1000 } else { usual(context).epochs };
    let how = Perturbing {
        variant: PerturbationKind::Network,
        epochs,
        weight_decay: 0.2,
        fresh: true,
        ..usual(context)
    };
    let ran = train(context, pool, (SIGMA, true, Some(how)), (1, context.seed))?;
    let (Some(step), Some(behind)) = (ran.steps.first(), ran.path.first()) else { return Ok(()) };
    let kept = trained(&start(pool.images.size(), context.seed), true);
    let data = records(&pool.images, pool.parts[0], pool.parts[1], 1)?;
    let g = Gradients::of(&data, &behind.theta, &kept, &[]);
    let (before, _) = principal(&g.base, g.width)?;
    findings.rows.push(Row::ours("A.29: difference of the perturbation between records", step.spread));
    findings.rows.push(Row::ours("A.29: cosine with the average public gradient", step.cosine));
    findings.claims.push(Claim::new(
        "Without batch norm “the perturbation is seen to no longer be constant” (A.29).",
        step.spread > 1e-6,
        format!("It differs between public records by {} of its norm.", format::share(step.spread)),
    ));
    findings.figures.push(Figure {
        file: "edmunds-figA.29".into(),
        title: "Figure A.29: gradients of step 1, without batch norm".into(),
        caption: "The gradients on their two principal components. What is added to single records is not kept: the rows above \
                  say how far it differs between them."
            .into(),
        panels: vec![dots("gradients (Prune)", &before, &g.classes)],
    });
    Ok(())
}

/// The figures of the appendix.
pub(crate) fn appendix(context: &Context<'_>) -> Result<Findings> {
    let pool = pool(context)?;
    let mut findings = Findings { method: setup(context, &pool), ..Findings::default() };
    let mut figures = vec![];
    let families: Vec<Family> =
        FAMILIES.iter().map(|f| family(context, &pool, *f, &mut figures)).collect::<Result<_>>()?;
    findings.figures = figures;
    for f in &families {
        let Some([base, added, last]) = f.norms.first().copied() else { continue };
        let name = f.name;
        findings.rows.push(Row::ours(format!("{name}: mean norm of a gradient, step 1"), base));
        findings.rows.push(Row::ours(format!("{name}: norm of the perturbation, step 1"), added));
        findings.rows.push(Row::ours(format!("{name}: mean norm of what is released, step 1"), last));
        if let Some([before, after]) = f.variances.first() {
            let text = format!("{name}: variance along the first component, after over before, step 1");
            findings.rows.push(Row::ours(text, after / before));
        }
        for (t, [mean, largest]) in f.roots.iter().enumerate() {
            findings.rows.push(Row::ours(format!("{name}: mean √dFIL up to step {}", t + 1), *mean));
            findings.rows.push(Row::ours(format!("{name}: largest √dFIL up to step {}", t + 1), *largest));
        }
    }
    findings.claims = claims(&families);
    without_batch_norm(context, &pool, &mut findings)?;
    findings.method.push(
        "The thesis’s perturbation is run as what it is, a constant: its panels of the perturbation are a single point. Seeds are \
         ours, so that single points are others than in the thesis."
            .into(),
    );
    Ok(findings)
}

/// What the text of the appendix says.
fn claims(families: &[Family]) -> Vec<Claim> {
    let Some(usual) = families.first() else { return vec![] };
    let mut out = vec![];
    if let Some([base, _, last]) = usual.norms.first() {
        out.push(Claim::new(
            "“FIM encourages the gradients to be larger” (A.1).",
            last > base,
            format!(
                "In the first step {} on average, {} without.",
                format::number(*last),
                format::number(*base)
            ),
        ));
    }
    let ends = usual.cosines.iter().fold([1.0_f64, -1.0], |[a, b], c| [a.min(*c), b.max(*c)]);
    out.push(Claim::new(
        "It “does not linearly scale the gradients as indicated in the cosine similarity plots” (A.3).",
        ends[0] < 0.99,
        format!("Cosines of the first step from {} to {}.", format::number(ends[0]), format::number(ends[1])),
    ));
    if let Some((a, b)) = usual.norms.first().zip(families.get(1).and_then(|f| f.norms.first())) {
        out.push(Claim::new(
            "“Increasing λ increases the norms” (A.1, A.8).",
            b[1] > a[1],
            format!("Of the perturbation: {} at 10³, {} at 10⁶.", format::number(a[1]), format::number(b[1])),
        ));
    }
    if let Some([before, after]) = usual.variances.first() {
        out.push(Claim::new(
            "“FIM also decreases the variance of the most important principal components” (A.3).",
            after < before,
            format!("Along the first: {} before, {} after.", format::number(*before), format::number(*after)),
        ));
    }
    if let [first, .., last] = usual.roots[..] {
        out.push(Claim::new(
            "“The majority of the privacy is seen to be leaked in the first iteration” (A.2): more than half of the mean.",
            first[0] > 0.5 * last[0],
            format!("{} of the mean √dFIL.", format::share(first[0] / last[0])),
        ));
        let ratio = last[1] / first[1];
        out.push(Claim::new(
            "“The maximum privacy scales linearly”: the largest √dFIL, which it draws, is three to seven times that of one step after five.",
            (3.0..=7.0).contains(&ratio),
            format!("{} times; dFIL itself {} times.", format::number(ratio), format::number(ratio * ratio)),
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_net::engine::clipped_gradient;
    use leakscope_net::preset::Preset;
    use leakscope_net::{Network, Shape};

    /// The gradients here, summed behind the clip, are those of the engine.
    #[test]
    fn gradients_are_those_of_the_engine() {
        let (d, n) = (6, 9);
        let x: Vec<f32> = (0..n * d).map(|i| ((i * 7 % 13) as f32 / 13.0).sin()).collect();
        let y: Vec<f32> = (0..n).map(|i| (i % 2) as f32).collect();
        let data = Data::new(Shape::Vector([d]), x, 1, y).unwrap();
        let theta: Vec<f32> = (0..=d).map(|i| (i as f32).cos()).collect();
        let net = Network::with_parameters(Preset::Linear.spec(Shape::Vector([d]), 1), &theta).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let engine = clipped_gradient(&net, &data, &all, CLIP).unwrap();
        let g = Gradients::of(&data, &theta, &vec![true; d + 1], &[]);
        for j in 0..=d {
            let sum: f64 = g.last.chunks_exact(d + 1).map(|r| r[j]).sum();
            assert!((sum - f64::from(engine.sum[j])).abs() < 1e-5, "{j}: {sum} {}", engine.sum[j]);
        }
        assert!(g.cosines().is_empty() && g.norms()[1] == 0.0);
        let (places, [v, w]) = principal(&g.base, d + 1).unwrap();
        assert!(v >= w && places.len() == n);
        let variance: f64 = places.iter().map(|p| p[0] * p[0]).sum::<f64>() / n as f64;
        assert!((variance - v).abs() < 1e-10 * v.max(1.0));
    }
}
