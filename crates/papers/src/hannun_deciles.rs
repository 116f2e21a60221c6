//! Hannun, Guo, van der Maaten (2021): figure 7, reweighting and what it does to attribute inference.

use super::hannun_attacks::{DROPPED, SECRET, WARFARIN, features, playing, range, table_model};
use super::{Context, Findings, data};
use leakscope::Result;
use leakscope::attack::{self, Playing};
use leakscope::audit::Request;
use leakscope::balance::{self, Balancing};
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::balance::{Sharing, Update, Variant};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Ours, Panel, PointSeries, Row};
use leakscope_table::{OneHot, Scale};

const SIGMA: f64 = 1e-3;
/// Iterations after which attacks are played.
const STEPS: [usize; 3] = [0, 2, 10];

/// What figure 7 shows of one table.
struct Equalised {
    columns: usize,
    /// Standard deviation over mean of η after the last iteration.
    spread: f64,
    /// η over the iterations.
    eta: Vec<PointSeries>,
    /// Accuracy by decile, for each of [`STEPS`].
    deciles: Vec<PointSeries>,
}

impl Equalised {
    fn new(context: &Context<'_>, request: &Request, secret: &str) -> Result<Self> {
        let balancing = Balancing {
            attribute: Some(secret.into()),
            sum_to_one: false,
            sharing: Sharing::Sample,
            variant: Variant::Weighted,
            update: Update::Published,
            clamp: None,
            iterations: STEPS[2],
            tolerance: 0.0,
            sigma: SIGMA,
        };
        let document = balance::run(request, &balancing, None, context.hooks, |_| {})?.balance;
        context.check()?;
        let curve = |title: &str, of: fn(&leakscope_report::balance::Step) -> f64| {
            PointSeries::new(title, document.iterations.iter().map(|s| [s.iteration as f64, of(s)]).collect())
        };
        let eta = vec![
            curve("largest", |s| s.eta_max),
            curve("mean", |s| s.eta_mean),
            curve("standard deviation", |s| s.eta_std),
        ];
        let mut deciles = vec![];
        for after in STEPS {
            let play = Playing {
                balance: after,
                ..playing(secret, vec![SIGMA], context.trials, vec![Attacker::WhiteBox])
            };
            let attacked = attack::run(request, &play, context.hooks)?;
            context.check()?;
            let mine: Vec<_> = attacked.deciles.iter().filter(|d| d.balanced == (after > 0)).collect();
            deciles.push(PointSeries {
                name: format!("after {}", format::counted(after as u64, "iteration")),
                points: mine.iter().map(|d| [d.decile as f64, d.accuracy.value]).collect(),
                intervals: mine.iter().map(|d| [d.accuracy.ci_low, d.accuracy.ci_high]).collect(),
            });
        }
        let spread = document.iterations.last().map_or(f64::NAN, |s| s.spread());
        Ok(Self { columns: document.coefficients.len(), spread, eta, deciles })
    }

    /// Accuracy of the lowest and of the highest decile.
    fn ends(&self, step: usize) -> [f64; 2] {
        let ys = || self.deciles.get(step).into_iter().flat_map(|s| s.points.iter().map(|p| p[1]));
        [ys().next().unwrap_or(f64::NAN), ys().next_back().unwrap_or(f64::NAN)]
    }

    /// How far deciles lie apart.
    fn apart(&self, step: usize) -> f64 {
        self.deciles.get(step).map_or(f64::NAN, |s| range(s.points.iter().map(|p| p[1])))
    }

    fn rows(&self, name: &str) -> Vec<Row> {
        let mut rows = vec![Row::ours(format!("{name}: spread of η after ten iterations"), self.spread)];
        for (step, after) in STEPS.iter().enumerate() {
            let [low, high] = self.ends(step);
            let stage = match after {
                0 => format!("{name}, before"),
                n => format!("{name}, after {}", format::counted(*n as u64, "iteration")),
            };
            rows.push(Row::ours(format!("{stage}: accuracy in the lowest decile"), Ours::achieved(low)));
            rows.push(Row::ours(format!("{stage}: accuracy in the highest decile"), Ours::achieved(high)));
            rows.push(Row::ours(
                format!("{stage}: accuracy between deciles, at most"),
                Ours::achieved(self.apart(step)),
            ));
        }
        rows
    }

    fn claims(&self, name: &str) -> Vec<Claim> {
        /// Limits of what the paper's words mean here.
        const SAME: f64 = 0.05;
        const MUCH: f64 = 0.1;
        const FLATTER: f64 = 2.0 / 3.0;
        const CONSTANT: f64 = 0.25;
        let [low, high] = self.ends(0);
        let (before, two, ten) = (self.apart(0), self.apart(1), self.apart(2));
        let differ = |now: f64, limit: &str| {
            format!(
                "Between the deciles the accuracy differs by {} at most, by {} before (limit: {limit} of that).",
                format::number(now),
                format::number(before)
            )
        };
        vec![
            Claim::new(
                format!("{name}: “the η for each example rapidly converge to the same value”"),
                self.spread <= SAME,
                format!(
                    "Standard deviation over mean after ten iterations: {} (limit: {}).",
                    format::share(self.spread),
                    format::share(SAME)
                ),
            ),
            Claim::new(
                format!(
                    "{name}: “the highest η decile is initially much more susceptible to attribute inversion than the \
                     lowest η decile”"
                ),
                high - low > MUCH,
                format!(
                    "Accuracy {} in the highest and {} in the lowest (limit: {} more).",
                    format::number(high),
                    format::number(low),
                    format::setting(MUCH)
                ),
            ),
            Claim::new(
                format!(
                    "{name}: “after only two iterations of IRFIL, the inversion accuracies flatten substantially”"
                ),
                two <= FLATTER * before,
                differ(two, "two thirds"),
            ),
            Claim::new(
                format!("{name}: “after ten iterations they are nearly constant”"),
                ten <= CONSTANT * before,
                differ(ten, "a quarter"),
            ),
        ]
    }

    fn deciles_panel(&self, name: &str) -> Panel {
        Panel {
            title: format!("{name}: white-box accuracy by decile of the first η"),
            content: Content::Curves {
                x: AxisTitle::linear("decile of η before reweighting"),
                y: AxisTitle::linear("accuracy"),
                series: self.deciles.clone(),
                levels: vec![],
            },
        }
    }

    fn panels(&self, name: &str, secret: &str) -> [Panel; 2] {
        let over = Panel {
            title: format!("{name}: η of {secret} over the iterations"),
            content: Content::Curves {
                x: AxisTitle::linear("iteration"),
                y: AxisTitle::log("information loss η"),
                series: self.eta.clone(),
                levels: vec![],
            },
        };
        [over, self.deciles_panel(name)]
    }
}

/// Figure 7.
pub(super) fn fig7(context: &Context<'_>) -> Result<Findings> {
    let path = data::warfarin(context)?;
    let (train, test) = data::incomes(context)?;
    let warfarin = |one_hot: OneHot| {
        let request = table_model((path.clone(), None), WARFARIN, (1e-2, Scale::None, one_hot), context.seed);
        Equalised::new(context, &request, SECRET)
    };
    let (iwpc, other) = (warfarin(OneHot::DropFirst)?, warfarin(OneHot::DropLast)?);
    let how = (1e-3, Scale::Standard, OneHot::DropLast);
    let request = table_model((train, Some(test)), ("income", &[]), how, context.seed);
    let adult = Equalised::new(context, &request, "marital_status")?;
    let mut rows = vec![features("IWPC", 14.0, iwpc.columns), features("UCI Adult", 86.0, adult.columns)];
    rows.extend(iwpc.rows("IWPC"));
    rows.extend(adult.rows("UCI Adult"));
    rows.extend(other.rows("IWPC, last level dropped"));
    let [low, high] = other.ends(STEPS.len() - 1);
    Ok(Findings {
        data: vec![
            "IWPC: secret vkorc1, λ = 0.01".into(),
            "UCI Adult: complete rows, married or unmarried, without relationship; secret marital status, λ = 0.001"
                .into(),
        ],
        rows,
        claims: [iwpc.claims("IWPC"), adult.claims("UCI Adult")].concat(),
        method: vec![
            format!(
                "Linear regression without intercept, noise σ = {}, {} noise vectors. Records are sorted into deciles by \
                 their η before reweighting (§6.4).",
                format::setting(SIGMA),
                context.trials
            ),
            DROPPED.into(),
            format!(
                "It matters: with the last level dropped, reweighting makes η just as equal (spread {}), but the accuracy \
                 is {} in the lowest decile and {} in the highest after ten iterations. Equal η, a local measure in \
                 one coding of the genotype, does not promise equal success. We do not know why the one coding \
                 equalises both and the other does not: the step from one genotype to another is as large in both.",
                format::share(other.spread),
                format::number(low),
                format::number(high)
            ),
            "Adult has its numbers standardised and the last level dropped; its secret has two values, which makes no \
             difference."
                .into(),
        ],
        figures: vec![
            Figure {
                file: "hannun-fig7".into(),
                title: "Figure 7: reweighting equalises η and with it the success of attacks".into(),
                caption: "Left: η of the secret attribute over the iterations. Right: white-box accuracy by decile, with \
                          95% intervals."
                    .into(),
                panels: [iwpc.panels("IWPC", SECRET), adult.panels("UCI Adult", "marital status")].concat(),
            },
            Figure {
                file: "hannun-fig7-other".into(),
                title: "The same on IWPC with the last level of each category dropped".into(),
                caption: "η is as equal as above, the success of the attack is not.".into(),
                panels: vec![other.deciles_panel("IWPC, last level dropped")],
            },
        ],
    })
}
