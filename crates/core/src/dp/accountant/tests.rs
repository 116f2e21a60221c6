use super::super::golden;
use super::*;
use proptest::prelude::*;

const CASES: u32 = 12;
const ADJACENCIES: [Adjacency; 2] = [Adjacency::AddRemove, Adjacency::Replace];

#[test]
fn epsilon_contains_what_google_computes() {
    for row in golden("google_pld_epsilon") {
        let (sigma, rate, steps, delta, epsilon, grid) =
            (row[1], row[2], row[3] as u64, row[4], row[5], row[6]);
        let a = Accountant::dp_sgd(sigma, rate, steps, ADJACENCIES[row[0] as usize]).unwrap();
        let e = a.epsilon(delta).unwrap();
        assert!(e.relative_width() <= 1e-3, "{row:?}: {e:?}");
        // Google's number is an upper estimate: it may exceed ours by what its grid costs, never undercut it.
        assert!(e.lower <= epsilon && epsilon <= e.upper + grid, "{row:?}: {e:?}");
        assert!(e.upper <= rdp::epsilon(a.steps(), a.adjacency(), delta).unwrap().epsilon);
    }
}

#[test]
fn the_published_epsilons_are_inside() {
    for (sigma, rate, steps, epsilon) in [
        (1.0, 0.01, 1000, 1.8282),
        (0.5, 0.002, 10_000, 8.8659),
        (1.1, 256.0 / 60_000.0, 14_040, 2.3796),
        (0.6, 0.2, 500, 109.157),
    ] {
        let e = Accountant::dp_sgd(sigma, rate, steps, Adjacency::AddRemove).unwrap().epsilon(1e-5).unwrap();
        assert!(e.contains(epsilon) && e.relative_width() <= 1e-3, "{e:?} {epsilon}");
    }
}

#[test]
fn delta_contains_what_google_computes() {
    for row in golden("google_pld_delta") {
        let a = Accountant::dp_sgd(row[1], row[2], row[3] as u64, ADJACENCIES[row[0] as usize]).unwrap();
        let d = a.delta(row[4]).unwrap();
        assert!(
            d.lower <= row[5] && row[5] <= d.upper * 1.001 && d.relative_width() <= 1e-3,
            "{row:?}: {d:?}"
        );
    }
}

#[test]
fn the_plain_gaussian_agrees_with_its_closed_form_at_every_extreme() {
    for (sigma, steps) in [(0.1, 1), (0.1, 1000), (1.0, 10), (100.0, 1), (100.0, 1_000_000), (5.0, 3)] {
        for adjacency in ADJACENCIES {
            let a = Accountant::dp_sgd(sigma, 1.0, steps, adjacency).unwrap();
            let mu = gaussian::distance(a.steps(), adjacency).unwrap();
            for delta in [1e-2, 1e-5, 1e-15, 1e-100, 1e-290] {
                let (e, exact) = (a.epsilon(delta).unwrap(), gaussian::epsilon(mu, delta).unwrap());
                let near = Interval { lower: e.lower * (1.0 - 1e-9), upper: e.upper * (1.0 + 1e-9) };
                assert!(near.contains(exact) && e.relative_width() <= 1e-3, "{mu} {delta}: {e:?} {exact}");
            }
            for alpha in [1e-30, 1e-9, 1e-4, 0.3, 0.9] {
                let (p, exact) = (a.power(alpha).unwrap(), 1.0 - gaussian::trade_off(mu, alpha));
                let near = Interval { lower: p.lower * (1.0 - 1e-9), upper: p.upper * (1.0 + 1e-9) };
                assert!(near.contains(exact) || alpha < 1e-15, "{mu} {alpha}: {p:?} {exact}");
                assert!(p.relative_width() <= 1e-3, "{mu} {alpha}: {p:?}");
            }
        }
    }
}

#[test]
fn one_sampled_step_agrees_with_its_integral() {
    for row in golden("one_step").iter().filter(|r| r[0] != 1.0) {
        let adjacency = if row[0] == 0.0 { Adjacency::AddRemove } else { Adjacency::Replace };
        let d = Accountant::dp_sgd(row[1], row[2], 1, adjacency).unwrap().delta(row[3]).unwrap();
        // For add/remove the worse of two directions: not below this one.
        assert!(d.upper >= row[4] && d.relative_width() <= 1e-3, "{row:?} {d:?}");
        assert!(row[0] == 0.0 || d.contains(row[4]), "{row:?} {d:?}");
    }
}

#[test]
fn edges_that_break_others() {
    for (sigma, rate, steps, delta) in [
        (1.0, 0.001, 1_000_000, 1e-5),
        (1.0, 0.01, 1000, 1e-15),
        (100.0, 0.01, 1000, 1e-5),
        (0.1, 0.01, 1000, 1e-5),
        (0.1, 0.9, 100, 1e-15),
        (100.0, 0.5, 1_000_000, 1e-15),
        (0.3, 1e-5, 100_000, 1e-10),
        (1.0, 0.01, 1000, 1e-200),
    ] {
        for adjacency in ADJACENCIES {
            let a = Accountant::dp_sgd(sigma, rate, steps, adjacency).unwrap();
            let e = a.epsilon(delta).unwrap();
            let rdp = rdp::epsilon(a.steps(), adjacency, delta).unwrap().epsilon;
            assert!(e.relative_width() <= 1e-3, "{sigma} {rate} {steps} {delta}: {e:?}");
            assert!(e.lower >= 0.0 && e.upper <= rdp, "{sigma} {rate} {steps} {delta}: {e:?} {rdp}");
        }
    }
}

#[test]
fn different_mechanisms_compose_in_any_order() {
    let row = &golden("google_mixed")[0];
    let g = (Mechanism::gaussian(row[0], row[1]), row[2] as u64);
    let l = (Mechanism::Laplace { scale: row[3] }, row[4] as u64);
    let make = |order: [(Mechanism, u64); 2]| {
        let a = Accountant::new(Adjacency::AddRemove).with(order[0].0, order[0].1).unwrap();
        a.with(order[1].0, order[1].1).unwrap().epsilon(row[5]).unwrap()
    };
    let (a, b) = (make([g, l]), make([l, g]));
    assert!(a.lower <= row[6] && row[6] <= a.upper * 1.001 && a.relative_width() <= 1e-3, "{a:?} {row:?}");
    assert!((a.lower - b.lower).abs() < 1e-9 && (a.upper - b.upper).abs() < 1e-9);
}

#[test]
fn laplace_and_randomised_response_agree_with_google() {
    for row in golden("google_laplace") {
        let m = Mechanism::Laplace { scale: row[0] };
        let e =
            Accountant::new(Adjacency::AddRemove).with(m, row[1] as u64).unwrap().epsilon(row[2]).unwrap();
        assert!(
            e.lower <= row[3] && row[3] <= e.upper * 1.001 && e.relative_width() <= 1e-3,
            "{e:?} {row:?}"
        );
    }
    for row in golden("google_randomised_response") {
        let m = Mechanism::RandomisedResponse { noise: row[0], categories: row[1] as u64 };
        let e = Accountant::new(Adjacency::Replace).with(m, row[2] as u64).unwrap().epsilon(row[3]).unwrap();
        assert!(
            e.lower <= row[4] && row[4] <= e.upper * 1.001 && e.relative_width() <= 1e-3,
            "{e:?} {row:?}"
        );
    }
}

#[test]
fn more_noise_less_sampling_fewer_steps_cost_less() {
    let e = |sigma, rate, steps| {
        Accountant::dp_sgd(sigma, rate, steps, Adjacency::AddRemove).unwrap().epsilon(1e-6).unwrap()
    };
    let base = e(1.0, 0.02, 300);
    for less in [e(1.01, 0.02, 300), e(1.0, 0.0195, 300), e(1.0, 0.02, 290)] {
        assert!(less.upper < base.lower, "{less:?} {base:?}");
    }
}

#[test]
fn the_trade_off_curve_is_convex_and_agrees_with_single_points() {
    let a = Accountant::dp_sgd(1.0, 0.01, 1000, Adjacency::AddRemove).unwrap();
    let alphas: Vec<f64> = (1..50).map(|i| f64::from(i) / 50.0).collect();
    let curve = a.trade_off(&alphas).unwrap();
    for w in curve.windows(3) {
        let chord = 0.5 * (w[0].false_negative.upper + w[2].false_negative.upper);
        assert!(w[1].false_negative.lower <= chord + 1e-9);
    }
    let best = curve.iter().map(|p| 1.0 - p.false_positive - p.false_negative.lower).fold(0.0, f64::max);
    let advantage = a.advantage().unwrap();
    // δ just off ε = 0 looks at both directions: the same number.
    let both = a.delta(1e-9).unwrap();
    assert!(both.lower <= advantage.upper * (1.0 + 1e-6) && advantage.lower <= both.upper * (1.0 + 1e-6));
    assert!(best <= advantage.upper * 1.002 && best > advantage.lower * 0.99, "{best} {advantage:?}");
    let point = a.power(0.1).unwrap();
    assert!((1.0 - curve[4].false_negative.lower - point.upper).abs() < 1e-3);
    // Power of presence is one of the two directions.
    assert!(a.power_of_presence(0.1).unwrap().lower <= point.upper);
}

#[test]
fn a_delta_below_what_can_be_written_is_not_zero() {
    let a = Accountant::dp_sgd(1.0, 0.01, 10, Adjacency::AddRemove).unwrap();
    let d = a.delta(1e4).unwrap();
    assert!(d.upper > 0.0 && d.upper <= f64::MIN_POSITIVE && d.lower == 0.0, "{d:?}");
    let e = a.epsilon(1e-300).unwrap();
    assert!(e.lower > 30.0 && e.relative_width() <= 1e-3, "{e:?}");
    // And back: δ at that ε is the δ asked for.
    let d = a.delta(e.upper).unwrap();
    assert!(d.lower <= 1e-300 * 1.01, "{d:?}");
}

#[test]
fn bad_input_is_an_error() {
    let a = Accountant::dp_sgd(1.0, 0.01, 10, Adjacency::AddRemove).unwrap();
    assert!(a.epsilon(0.0).is_err() && a.epsilon(1.0).is_err() && a.epsilon(f64::NAN).is_err());
    assert!(a.delta(f64::INFINITY).is_err() && a.power(0.0).is_err() && a.trade_off(&[1.0]).is_err());
    assert!(Accountant::dp_sgd(1.0, 0.01, 0, Adjacency::AddRemove).is_err());
    assert!(matches!(Accountant::new(Adjacency::Replace).epsilon(1e-5), Err(Error::Empty)));
}

fn any_release() -> impl Strategy<Value = (Mechanism, u64)> {
    prop_oneof![
        ((-1.0_f64..2.0), (-5.0_f64..0.0), 1_u64..200)
            .prop_map(|(s, q, n)| (Mechanism::gaussian(s.exp(), q.exp()), n)),
        ((0.0_f64..3.0), 1_u64..5).prop_map(|(b, n)| (Mechanism::Laplace { scale: b.exp() }, n)),
        ((0.05_f64..1.0), 2_u64..20, 1_u64..4)
            .prop_map(|(noise, categories, n)| (Mechanism::RandomisedResponse { categories, noise }, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn composition_does_not_depend_on_the_order_and_more_costs_more(
        releases in proptest::collection::vec(any_release(), 2..4),
        ln_delta in -20.0_f64..-3.0,
    ) {
        let of = |list: &[(Mechanism, u64)]| {
            let start = Accountant::new(Adjacency::Replace);
            list.iter().try_fold(start, |a, &(m, n)| a.with(m, n)).unwrap().epsilon(ln_delta.exp()).unwrap()
        };
        let forwards = of(&releases);
        let backwards: Vec<_> = releases.iter().rev().copied().collect();
        let b = of(&backwards);
        let close = |x: f64, y: f64| (x - y).abs() <= 1e-6 * x.abs().max(1e-6);
        prop_assert!(close(forwards.lower, b.lower) && close(forwards.upper, b.upper), "{releases:?}: {forwards:?} {b:?}");
        let fewer = of(&releases[1..]);
        prop_assert!(fewer.lower <= forwards.upper, "{releases:?}: {fewer:?} {forwards:?}");
    }

    /// Two grids give two intervals; both hold the truth, so they must meet. An error on the unsafe side of
    /// either discretisation, of the transforms or of the tilt would show as a gap.
    #[test]
    fn intervals_of_different_grids_meet(
        ln_sigma in -1.2_f64..3.0,
        ln_rate in -7.0_f64..0.0,
        ln_steps in 0.0_f64..9.0,
        ln_delta in -40.0_f64..-2.0,
        replace in proptest::bool::ANY,
    ) {
        let adjacency = ADJACENCIES[usize::from(replace)];
        let a = Accountant::dp_sgd(ln_sigma.exp(), ln_rate.exp(), ln_steps.exp() as u64, adjacency).unwrap();
        let fine = a.clone().precision(1e-4).unwrap();
        let meet = |x: Interval, y: Interval| x.lower <= y.upper && y.lower <= x.upper && x.lower <= x.upper;
        let (delta, rdp) = (ln_delta.exp(), rdp::epsilon(a.steps(), adjacency, ln_delta.exp()).unwrap().epsilon);
        let (x, y) = (a.epsilon(delta).unwrap(), fine.epsilon(delta).unwrap());
        prop_assert!(meet(x, y) && x.upper <= rdp * (1.0 + PRECISION) + 1e-9, "{a:?} {delta}: {x:?} {y:?} {rdp}");
        let (u, v) = (a.delta(x.upper).unwrap(), fine.delta(x.upper).unwrap());
        // At the upper end of ε, δ is not above the δ asked for.
        prop_assert!(meet(u, v) && u.lower <= delta, "{a:?} {delta}: {u:?} {v:?}");
        let alpha = delta.sqrt();
        let (u, v) = (a.power(alpha).unwrap(), fine.power(alpha).unwrap());
        prop_assert!(meet(u, v), "{a:?} power at {alpha}: {u:?} {v:?}");
        // Less noise, more sampling, more steps never cost less.
        let (s, q, t) = (ln_sigma.exp(), ln_rate.exp(), ln_steps.exp() as u64);
        for (s, q, t) in [(0.9 * s, q, t), (s, (1.2 * q).min(1.0), t), (s, q, t + 1 + t / 5)] {
            let more = Accountant::dp_sgd(s, q, t, adjacency).unwrap().epsilon(delta).unwrap();
            prop_assert!(more.upper >= x.lower, "{a:?} against {s} {q} {t}: {more:?} {x:?}");
        }
        // Any test obeys (ε, δ): power ≤ e^ε α + δ.
        prop_assert!(u.lower <= x.upper.exp() * alpha + delta, "{a:?} power at {alpha}: {u:?} {x:?}");
    }
}
