//! Guo, Sablayrolles, Sanjabi (2022): figure 5, a secret token in a text that a language model was fine-tuned on.

use super::{Context, Findings, data};
use leakscope::Result;
use leakscope::text::canary::{CanaryRequest, run};
use leakscope_core::bound::optimal::{one_hot, one_hot_played};
use leakscope_core::bound::{Prior, fano, testing};
use leakscope_core::claim::{Bound, Theorem};
use leakscope_net::text::Trained;
use leakscope_report::Canary;
use leakscope_report::canary::{Guesser, LimitKind, Played, Point};
use leakscope_report::figure::{Axis, Figure as Curves, Series};
use leakscope_report::format;
use leakscope_report::reproduction::{Claim, Figure, Ours, Panel, Row};

/// Tokens of GPT-2 that the paper counts.
const VOCABULARY: u64 = 50_256;
/// 2T/σ² that the paper speaks about.
const SPOKEN: f64 = 6.0;
/// Standard errors that the largest of many points may exceed a bound by, by chance.
const BY_CHANCE: f64 = 5.0;
/// Games at that noise.
const GAMES: u64 = 1_000_000;

/// What holds for GPT-2's vocabulary at 2T/σ², whatever the model.
struct AnyModel {
    fano: Bound,
    zero: Bound,
    /// The best attack on the worst geometry: gradients of full length, each in a direction of its own.
    attack: f64,
}

fn any_model(rdp: f64) -> Result<AnyModel> {
    let prior = Prior::uniform(VOCABULARY)?;
    let (fano, _) = fano::success_from_rdp(&prior, |alpha| Ok(rdp * alpha))?;
    // √T/σ = √(rdp/2), whatever T
    let sigma = (2.0 / rdp).sqrt();
    let zero = testing::one_centre(&prior, 1.0, sigma)?;
    Ok(AnyModel {
        fano: Bound::share_at_most(prior.advantage(fano), Theorem::FanoRdp),
        zero: Bound::share_at_most(prior.advantage(zero), Theorem::OneCentre),
        attack: prior.advantage(one_hot(VOCABULARY, sigma)?),
    })
}

/// What holds for GPT-2's vocabulary, with a million games.
fn spoken_of(context: &Context<'_>) -> Result<Findings> {
    let spoken = any_model(SPOKEN)?;
    let played = one_hot_played(VOCABULARY, (2.0 / SPOKEN).sqrt(), GAMES, context.seed)?;
    let prior = Prior::uniform(VOCABULARY)?;
    let at = |rdp: f64| format!("M = 50,256, 2T/σ² = {}", format::setting(rdp));
    Ok(Findings {
        rows: vec![
            Row::printed(
                format!("{}: advantage by Fano with Rényi DP, at most", at(SPOKEN)),
                0.5,
                1,
                spoken.fano,
            )
            .because("The paper reads “close to 0.5” off its figure."),
            Row::ours(format!("{}: by a test around 0, at most", at(SPOKEN)), spoken.zero),
            Row::ours(
                format!("{}: the best attack, gradients at right angles, 10⁶ games", at(SPOKEN)),
                Ours::achieved(prior.advantage(played.value)),
            )
            .because(format!("{} exactly.", format::number(spoken.attack))),
        ],
        claims: vec![
            Claim::new(
                "“at ε = 6, the advantage upper bound is close to 0.5, which is certainly a non-trivial level of privacy \
                 protection”",
                (spoken.fano.value - 0.5).abs() < 0.05,
                format!(
                    "Fano allows {}; a test against the model that has not seen the text allows {}.",
                    format::at_most(spoken.fano.value),
                    format::at_most(spoken.zero.value)
                ),
            ),
            Claim::new(
                "No attack on a vocabulary of 50,256 exceeds the bound by a test in a million games (2T/σ² = 6, one step).",
                prior.advantage(played.value) <= spoken.zero.value && spoken.zero.value < 0.01,
                format!("{} right of {}.", format::share(played.value), format::count(GAMES)),
            ),
        ],
        ..Findings::default()
    })
}

/// Figure 5.
pub(super) fn fig5(context: &Context<'_>) -> Result<Findings> {
    let mut out = spoken_of(context)?;
    let folder = data::stories(context)?;
    let mut models: Vec<Canary> = vec![];
    for (trained, more) in [(Trained::Last, 10), (Trained::All, 1)] {
        context.check()?;
        let request = CanaryRequest {
            model: folder.0.clone(),
            tokenizer: Some(folder.1.clone()),
            layers: vec![trained],
            trials: (context.trials * more) as u64,
            seed: Some(context.seed),
            device: context.device,
            ..CanaryRequest::default()
        };
        models.push(run(&request, context.hooks)?);
    }
    let (last, all) = (&models[0], &models[1]);
    out.data = vec![format!(
        "{}: {} parameters, a vocabulary of {}, in the place of GPT-2",
        last.model.name,
        format::count(last.model.parameters),
        format::count(last.model.vocabulary)
    )];
    out.method = vec![
        format!(
            "“{} X”, X uniform over all tokens, C = 1, learning rate {} (the paper names none), the mean loss over the text. \
             {} games a point where the last layer is trained, {} where all are.",
            last.prompt,
            format::setting(last.learning_rate),
            format::count(last.trials),
            format::count(all.trials)
        ),
        "GPT-2's weights are not among the data: curves for M = 50,256 hold for every model, games are played on a small one."
            .into(),
    ];
    judge(&models, &mut out);
    out.figures.push(Figure {
        file: "guo-fig5-any-model".into(),
        title: "M = 50,256, whatever the model".into(),
        caption: "Bounds over GPT-2's vocabulary, and the best attack where all gradients have full length and right angles."
            .into(),
        panels: vec![Panel::from(&curves()?)],
    });
    for (model, name, title) in [
        (last, "last", "Figure 5, last layer trained (red in the paper)"),
        (all, "all", "Figure 5, all layers trained (blue in the paper)"),
    ] {
        out.figures.push(Figure {
            file: format!("guo-fig5-{name}"),
            title: title.into(),
            caption: "Advantage against 2T/σ²: bounds, the attack of the paper, the optimal attack.".into(),
            panels: model.figures.iter().map(Panel::from).collect(),
        });
    }
    Ok(out)
}

/// What the paper says of attacks and bounds, on the models that were played.
fn judge(models: &[Canary], out: &mut Findings) {
    let points = || models.iter().flat_map(|m| &m.points);
    // how far an attack lies above a bound, in standard errors of a success at the bound: of many points some are by chance
    let above = |kind: LimitKind| {
        let of = |p: &Point| {
            let bound = p.bound(kind)?.success.value;
            let error = |a: &Played| (bound * (1.0 - bound) / a.success.trials.max(1) as f64).sqrt() + 1e-9;
            p.attacks.iter().map(|a| (a.success.value - bound) / error(a)).max_by(f64::total_cmp)
        };
        points().filter_map(of).fold(f64::NEG_INFINITY, f64::max)
    };
    let values = |p: &Point| p.attacks.iter().map(|a| a.advantage.value).fold(f64::NEG_INFINITY, f64::max);
    let dominated = points()
        .all(|p| p.bound(LimitKind::FanoRdp).is_none_or(|b| values(p) <= b.advantage.value.max(0.0) + 1e-12));
    out.claims.push(Claim::new(
        "“the advantage bound using Fano’s inequality strictly dominates the advantage of simulated extraction attacks”",
        dominated,
        "Over both variants, all steps and noises, with the optimal attack among them.",
    ));
    let centre = above(LimitKind::AroundCentre);
    out.claims.push(Claim::new(
        "No attack exceeds the bound around the candidates' centre, by more than chance.",
        centre <= BY_CHANCE,
        format!("The largest excess over all points is {} standard errors.", format::number(centre.max(0.0))),
    ));
    for (part, name) in [(Trained::Last, "last layer"), (Trained::All, "all layers")] {
        let of = |p: &&Point| p.trained == part && p.steps == 1;
        let mut some: Vec<&Point> = points().filter(of).collect();
        some.sort_by(|a, b| a.rdp.total_cmp(&b.rdp));
        let height = |p: &Point, attack| p.played(attack).map_or(f64::NAN, |a| a.advantage.value);
        if let (Some(least), Some(most)) = (some.first(), some.last()) {
            let (a, b) = (height(least, Guesser::Difference), height(most, Guesser::Difference));
            out.claims.push(Claim::new(
                format!("“the adversary’s advantage increases monotonically as ε increases” ({name}, one step, ends)"),
                b > a,
                format!(
                    "From {} at 2T/σ² = {} to {} at {}.",
                    format::number(a),
                    format::setting(least.rdp),
                    format::number(b),
                    format::setting(most.rdp)
                ),
            ));
        }
        for p in some.iter().filter(|p| (p.rdp - SPOKEN).abs() < 1e-9) {
            let name = |quantity: &str| format!("small model, {name}, T = 1, 2T/σ² = 6: {quantity}");
            for (kind, quantity) in [
                (LimitKind::FanoRdp, "Fano, at most"),
                (LimitKind::AroundZero, "around 0, at most"),
                (LimitKind::AroundCentre, "around the centre, at most"),
            ] {
                out.rows.extend(p.bound(kind).map(|b| Row::ours(name(quantity), b.advantage)));
            }
            for (attack, quantity) in
                [(Guesser::Optimal, "optimal attack"), (Guesser::Difference, "attack of the paper")]
            {
                let row = |value: f64| Row::ours(name(quantity), Ours::achieved(value));
                out.rows.extend(p.played(attack).map(|a| row(a.advantage.value)));
            }
        }
    }
}

/// Bounds and the best attack over GPT-2's vocabulary.
fn curves() -> Result<Curves> {
    let grid: Vec<f64> = (0..=60).map(|k| 10_f64.powf(-0.5 + 0.05 * f64::from(k))).collect();
    let all: Vec<(f64, AnyModel)> =
        grid.into_iter().map(|rdp| Ok((rdp, any_model(rdp)?))).collect::<Result<_>>()?;
    Ok(Curves {
        id: "any-model".into(),
        title: "Advantage against 2T/σ²".into(),
        caption: String::new(),
        x: Axis::log("2T/σ²"),
        y: Axis::linear("advantage").of_shares(),
        series: vec![
            Series::bound("Fano with Rényi DP, as published", all.iter().map(|(x, a)| (*x, a.fano))),
            Series::bound("test around 0", all.iter().map(|(x, a)| (*x, a.zero))),
            Series::measured(
                "best attack on gradients at right angles",
                all.iter().map(|(x, a)| (*x, a.attack)),
            ),
        ],
        levels: vec![],
        chosen: Some(SPOKEN),
    })
}
