//! The extraction game: candidates against the engine's gradients, attacks against other simulations, bounds against attacks.
#![allow(clippy::unwrap_used)]

use leakscope_core::bound::{Encodings, Prior, optimal::gaussian_attack};
use leakscope_core::linalg::norm;
use leakscope_core::special::ln_sum_exp;
use leakscope_net::random::{Generator, Purpose};
use leakscope_net::text::canary::{AllLayers, Canary, FineTuning, LastLayer, Rounds, around_centre};
use leakscope_net::text::{LanguageModel, Trained, Tuned};
use leakscope_net::{
    Clip, Data, Error, Network,
    engine::{clipped_gradient, predict_data},
};
use std::path::{Path, PathBuf};

const TUNING: FineTuning = FineTuning { clip: 0.4, learning_rate: 0.5 };

fn model(trained: Trained) -> LanguageModel<f64> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/text/llama2.bin");
    LanguageModel::read(&path, trained).unwrap()
}

/// Every token as the secret.
fn one_token(vocabulary: u32) -> Canary {
    Canary::new(vec![1, 7, 3, 9, 4], (0..vocabulary).map(|y| vec![y]).collect()).unwrap()
}

/// Secrets of several lengths with common beginnings, one the beginning of another.
fn several() -> Canary {
    let candidates = [&[5, 2, 8][..], &[5, 2, 9], &[5, 6], &[7], &[7, 2, 8], &[2, 2, 2]];
    Canary::new(vec![1, 7, 3], candidates.iter().map(|c| c.to_vec()).collect()).unwrap()
}

/// Gradients and clipped gradients of all candidates, by the engine.
fn dense(model: &LanguageModel<f64>, canary: &Canary) -> Vec<(f64, Vec<f64>)> {
    let of = |m: usize| {
        let data = model.texts(&[&canary.text(m)]).unwrap();
        let actual =
            clipped_gradient(model.network(), &data, &[0], Clip::Hard { bound: TUNING.clip }).unwrap();
        (actual.norms[0], actual.sum)
    };
    (0..canary.candidates().len()).map(of).collect()
}

fn from_mean(all: &[(f64, Vec<f64>)], w: &[f64]) -> Vec<f64> {
    let total: f64 = w.iter().sum();
    let mut mean = vec![0.0; all[0].1.len()];
    all.iter().zip(w).for_each(|(g, w)| mean.iter_mut().zip(&g.1).for_each(|(m, g)| *m += w / total * g));
    let distance = |g: &Vec<f64>| g.iter().zip(&mean).map(|(g, m)| (g - m).powi(2)).sum::<f64>().sqrt();
    all.iter().map(|g| distance(&g.1)).collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} {b}"));
}

#[test]
fn candidates_are_those_of_the_engine() {
    let last = model(Trained::Last);
    let vocabulary = last.vocabulary() as u32;
    for canary in [one_token(vocabulary), several()] {
        let m = canary.candidates().len();
        let uneven: Vec<f64> = (0..m).map(|i| 1.0 + (i % 3) as f64).collect();
        let game = LastLayer::new(&last, &canary, TUNING).unwrap();
        let exact = dense(&last, &canary);
        let norms: Vec<f64> = exact.iter().map(|g| g.0).collect();
        close(&game.norms(), &norms, 1e-12);
        // some are clipped and some are not, or the test would see one case only
        let clip = median(&norms);
        assert!(norms.iter().any(|n| *n > clip) && norms.iter().any(|n| *n < clip));
        for w in [vec![1.0; m], uneven.clone()] {
            let (actual, exact) = (game.distances(&w).unwrap(), from_mean(&exact, &w));
            close(&actual, &exact, 1e-6);
            assert!(actual.iter().zip(&exact).all(|(f, e)| f >= e), "rounded to the safe side");
        }
        let all = model(Trained::All);
        let (game, exact) = (AllLayers::new(&all, &canary, TUNING).unwrap(), dense(&all, &canary));
        close(game.norms().unwrap(), &exact.iter().map(|g| g.0).collect::<Vec<_>>(), 1e-12);
        let actual = game.distances(&uneven).unwrap().unwrap();
        close(&actual, &from_mean(&exact, &uneven), 1e-6);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    0.5 * (sorted[sorted.len() / 2 - 1] + sorted[sorted.len() / 2])
}

/// The probability that a network gives to what follows the prompt.
fn likelihoods(net: &Network<f64>, canary: &Canary, vocabulary: usize) -> Vec<f64> {
    let of = |m: usize| {
        let text = canary.text(m);
        let data = Data::tokens(text.len(), text.clone(), vocabulary, &vec![0; text.len()]).unwrap();
        let actual = predict_data(net, &data).unwrap();
        let z = actual.outputs(0);
        (canary.prompt().len()..text.len())
            .map(|t| {
                let row = &z[(t - 1) * vocabulary..t * vocabulary];
                row[text[t] as usize] - ln_sum_exp(row.iter().copied())
            })
            .sum()
    };
    (0..canary.candidates().len()).map(of).collect()
}

/// Two steps all but without noise, in the span of the contexts and in the network.
#[test]
fn steps_in_the_span_are_steps_of_the_network() {
    let last = model(Trained::Last);
    let v = last.vocabulary();
    for canary in [one_token(v as u32), several()] {
        let game = LastLayer::new(&last, &canary, TUNING).unwrap();
        let before = game.log_likelihoods();
        close(&before, &likelihoods(last.network(), &canary, v), 1e-12);
        let total = ln_sum_exp(before.iter().copied());
        let prior: Vec<f64> = before.iter().map(|l| (l - total).exp()).collect();
        assert_eq!(game.prior().unwrap(), Prior::from_probabilities(prior).unwrap());
        let secret = 3;
        let data = last.texts(&[&canary.text(secret)]).unwrap();
        let mut theta = last.network().parameters().unwrap();
        let mut net = Network::with_parameters(last.network().spec().clone(), &theta).unwrap();
        for _ in 0..2 {
            let g = clipped_gradient(&net, &data, &[0], Clip::Hard { bound: TUNING.clip }).unwrap().sum;
            theta.iter_mut().zip(g).for_each(|(t, g)| *t -= TUNING.learning_rate * g);
            net.set_parameters(&theta).unwrap();
        }
        let told = game.tell(secret, (1e-12, 2), &mut Generator::new(1, Purpose::Other, 0));
        close(&told.after, &likelihoods(&net, &canary, v), 1e-9);
        assert!(told.after[secret] > before[secret]);
        assert!(told.evidence.iter().enumerate().all(|(m, e)| m == secret || *e < told.evidence[secret]));
    }
}

/// The optimal attack from M + 1 numbers is that on the dense vectors, by another simulation.
#[test]
fn the_optimal_attack_is_that_on_dense_candidates() {
    let last = model(Trained::Last);
    for (canary, sigma) in [(one_token(12), 0.7), (several(), 0.5)] {
        let m = canary.candidates().len();
        let p: Vec<f64> = (1..=m).map(|i| i as f64 / (m * (m + 1) / 2) as f64).collect();
        let prior = Prior::from_probabilities(p.clone()).unwrap();
        let game = LastLayer::new(&last, &canary, TUNING).unwrap();
        let rounds = Rounds { sigma, steps: 1, trials: 6_000, seed: 3 };
        let played = game.play(&p, rounds).unwrap().optimal.unwrap().observed(3);
        let vectors: Vec<f64> = dense(&last, &canary).into_iter().flat_map(|g| g.1).collect();
        let encodings = Encodings::compact(vectors.len() / m, &vectors).unwrap();
        let exact = gaussian_attack(&prior, &encodings, sigma * TUNING.clip, 20_000, 5).unwrap();
        let half = 2.0 * (played.ci_high - played.ci_low);
        assert!((played.value - exact.value).abs() < half, "{played:?} {exact:?}");
        let all = model(Trained::All);
        let game = AllLayers::new(&all, &canary, TUNING).unwrap();
        let actual = game.optimal(&prior, rounds).unwrap().unwrap();
        let vectors: Vec<f64> = dense(&all, &canary).into_iter().flat_map(|g| g.1).collect();
        let encodings = Encodings::compact(vectors.len() / m, &vectors).unwrap();
        let exact = gaussian_attack(&prior, &encodings, sigma * TUNING.clip, 20_000, 5).unwrap();
        assert!(
            (actual.value - exact.value).abs() < 2.0 * (actual.ci_high - actual.ci_low),
            "{actual:?} {exact:?}"
        );
    }
}

/// Every bound is attacked, over several steps, with either prior.
#[test]
fn no_attack_beats_a_bound() {
    let last = model(Trained::Last);
    let mut close_calls = 0;
    for canary in [one_token(20), several()] {
        let m = canary.candidates().len();
        let game = LastLayer::new(&last, &canary, TUNING).unwrap();
        let of_model = match game.prior().unwrap() {
            Prior::Given(p) => p,
            Prior::Uniform(_) => unreachable!(),
        };
        for (p, prior) in [
            (vec![1.0 / m as f64; m], Prior::uniform(m as u64).unwrap()),
            (of_model.clone(), Prior::from_probabilities(of_model.clone()).unwrap()),
        ] {
            for (steps, sigma) in [(1, 0.5), (1, 0.2), (3, 1.0), (3, 0.4)] {
                let played = game.play(&p, Rounds { sigma, steps, trials: 1_500, seed: 9 }).unwrap();
                let optimal = played.optimal.unwrap().observed(9);
                let difference =
                    leakscope_core::claim::Observed::of_hits(played.difference, played.trials, 9);
                let noise = sigma * TUNING.clip;
                let bound =
                    around_centre(&prior, &p, |w| game.distances(w), game.radius(), (steps, noise)).unwrap();
                let zero =
                    leakscope_core::bound::testing::one_centre(&prior, (steps as f64).sqrt(), sigma).unwrap();
                assert!(
                    optimal.ci_low <= bound && difference.ci_low <= bound,
                    "{optimal:?} {difference:?} {bound}"
                );
                assert!(difference.ci_low <= optimal.ci_high, "{difference:?} {optimal:?}");
                assert!(optimal.ci_low <= zero);
                close_calls += usize::from(optimal.value > 0.7 * bound);
            }
        }
    }
    assert!(close_calls > 4, "bounds that nobody comes near: {close_calls}");
}

/// Whatever the weights, candidates of one token stay within the radius of their clipped mean, or of 0.
#[test]
fn the_radius_holds_wherever_a_run_may_get() {
    let last = model(Trained::Last);
    let m = 24;
    let canary = one_token(m as u32);
    let mut random = Generator::new(4, Purpose::Other, 0);
    for clip in [0.05, 0.4, 5.0] {
        let radius = LastLayer::new(&last, &canary, FineTuning { clip, ..TUNING }).unwrap().radius();
        let mut largest = 0.0_f64;
        for far in [0.0, 0.5, 3.0] {
            let (theta, trained) = (last.network().parameters().unwrap(), last.network().trained());
            let theta: Vec<f64> = theta
                .iter()
                .zip(trained)
                .map(|(t, moves)| t + if moves { far * random.normal() } else { 0.0 })
                .collect();
            let net = Network::with_parameters(last.network().spec().clone(), &theta).unwrap();
            let gradient = |i: usize| {
                let data = last.texts(&[&canary.text(i)]).unwrap();
                clipped_gradient(&net, &data, &[0], Clip::None).unwrap().sum
            };
            let each: Vec<Vec<f64>> = (0..m).map(gradient).collect();
            let cut = |g: &[f64]| {
                let s = (clip / norm(g)).min(1.0);
                g.iter().map(|x| s * x).collect::<Vec<f64>>()
            };
            let mut mean = vec![0.0; theta.len()];
            each.iter().for_each(|g| leakscope_core::linalg::axpy(1.0 / m as f64, g, &mut mean));
            let centre = cut(&mean);
            for g in each.iter().map(|g| cut(g)) {
                let away: Vec<f64> = g.iter().zip(&centre).map(|(a, b)| a - b).collect();
                largest = largest.max(norm(&away).min(norm(&g)));
            }
        }
        assert!(largest <= radius * (1.0 + 1e-9) && largest > 0.3 * radius, "{largest} {radius}");
    }
}

/// All but without noise the guess of every secret is that of the network trained step by step.
#[test]
fn all_layers_play_the_same_game() {
    let all = model(Trained::All);
    let v = all.vocabulary();
    let tuning = FineTuning { clip: 1.0, learning_rate: 0.5 };
    for canary in [one_token(9), several()] {
        let m = canary.candidates().len();
        let game = AllLayers::new(&all, &canary, tuning).unwrap();
        let p = vec![1.0 / m as f64; m];
        let before = likelihoods(all.network(), &canary, v);
        let guessed = |secret: usize| {
            let data = all.texts(&[&canary.text(secret)]).unwrap();
            let mut theta = all.network().parameters().unwrap();
            let mut net = Network::with_parameters(all.network().spec().clone(), &theta).unwrap();
            for _ in 0..2 {
                let g = clipped_gradient(&net, &data, &[0], Clip::Hard { bound: tuning.clip }).unwrap().sum;
                theta.iter_mut().zip(g).for_each(|(t, g)| *t -= tuning.learning_rate * g);
                net.set_parameters(&theta).unwrap();
            }
            let after = likelihoods(&net, &canary, v);
            let rise = |i: usize| after[i] - before[i];
            (0..m).all(|i| i == secret || rise(i) < rise(secret))
        };
        let right: Vec<bool> = (0..m).map(guessed).collect();
        let quiet = game.play(&p, Rounds { sigma: 1e-9, steps: 2, trials: 12, seed: 1 }).unwrap();
        let secret = |trial| (Generator::new(1, Purpose::Other, trial).uniform() * m as f64) as usize;
        let expected = (0..12).filter(|&trial| right[secret(trial)]).count();
        assert_eq!((quiet.difference as usize, quiet.trials), (expected, 12), "{right:?}");
        assert!(expected > 2, "{right:?}");
        let loud = game.play(&p, Rounds { sigma: 100.0, steps: 1, trials: 40, seed: 1 }).unwrap();
        assert!(loud.difference < 30 && loud.optimal.is_none());
    }
}

#[test]
fn bad_canaries_are_errors() {
    let says = |prompt: &[u32], candidates: &[&[u32]]| {
        Canary::new(prompt.to_vec(), candidates.iter().map(|c| c.to_vec()).collect()).unwrap_err().to_string()
    };
    assert!(says(&[], &[&[1], &[2]]).contains("no token"));
    assert!(says(&[1], &[&[1]]).contains("at least 2"));
    assert!(says(&[1], &[&[1], &[]]).contains("candidate 1 has no token"));
    assert!(says(&[1], &[&[1, 2], &[1, 2]]).contains("tokens of another"));
    let last = model(Trained::Last);
    let outside = Canary::new(vec![1], vec![vec![2], vec![9_999]]).unwrap();
    assert!(matches!(LastLayer::new(&last, &outside, TUNING), Err(Error::Token { token: 9_999, .. })));
    let long = Canary::new(vec![1; last.context()], vec![vec![2], vec![3]]).unwrap();
    assert!(LastLayer::new(&last, &long, TUNING).unwrap_err().to_string().contains("context"));
    let canary = one_token(4);
    assert!(
        LastLayer::new(&model(Trained::All), &canary, TUNING)
            .unwrap_err()
            .to_string()
            .contains("output layer")
    );
    assert!(LastLayer::new(&last, &canary, FineTuning { clip: 0.0, ..TUNING }).is_err());
    let game = LastLayer::new(&last, &canary, TUNING).unwrap();
    assert!(game.distances(&[1.0; 3]).is_err() && game.distances(&[0.0; 4]).is_err());
    let rounds = Rounds { sigma: 1.0, steps: 0, trials: 1, seed: 0 };
    assert!(
        game.play(&[0.25; 4], rounds).is_err()
            && game.play(&[0.25; 4], Rounds { sigma: 0.0, steps: 1, ..rounds }).is_err()
    );
}

/// With adapters the noise is on them alone: the game is over their parameters.
#[test]
fn adapters_play_over_their_own_parameters() {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/text/llama2.bin");
    let tuned = Tuned { part: Trained::Adapters, rank: 2, seed: 1 };
    let model = LanguageModel::<f64>::read(&path, tuned).unwrap();
    let canary = one_token(8);
    let game = AllLayers::new(&model, &canary, TUNING).unwrap();
    assert_eq!(game.parameters(), model.network().trained().iter().filter(|t| **t).count());
    close(&game.distances(&[1.0; 8]).unwrap().unwrap(), &from_mean(&dense(&model, &canary), &[1.0; 8]), 1e-6);
    let quiet = game.play(&[0.125; 8], Rounds { sigma: 1e-6, steps: 1, trials: 8, seed: 1 }).unwrap();
    assert!(quiet.difference >= 6, "{quiet:?}");
}
