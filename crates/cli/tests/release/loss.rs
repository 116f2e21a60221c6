//! η against what published coefficients do when a value changes, and the path that other languages take.

use super::support::*;
use leakscope::audit::Request;
use leakscope::release::{Amount, Terms, private};
use leakscope_core::glm::Family;
use leakscope_core::random::Seeded;
use leakscope_core::release::Grid;
use leakscope_core::units::public_scale;
use leakscope_table::{Hooks, ReadOptions, Roles};

/// The estimators of other languages take the same path.
#[test]
fn a_private_model_is_in_original_units_on_the_public_lattice() {
    let place = Place::new();
    let mut people = People::draw(21, 700);
    place.write("a.csv", &people.csv(false));
    people.numbers[4][0] += 2.0;
    place.write("b.csv", &people.csv(false));
    let request = |name: &str| Request {
        read: ReadOptions { paths: vec![place.path(name)], ..ReadOptions::default() },
        roles: Roles { target: "y".into(), drop: vec!["race".into(), "home".into()], ..Roles::default() },
        family: Family::Linear.into(),
        l2: 0.2,
        ..Request::default()
    };
    let terms = Terms { noise: Amount::Sigma(0.3), ..Terms::default() };
    let of = |name: &str, seed| private(&request(name), &terms, Some(seed), &Hooks::default()).unwrap();
    let (a, b) = (of("a.csv", 1), of("b.csv", 1));
    assert_eq!((a.sigma, a.eta), (b.sigma, b.eta));
    let grid = Grid::new(a.sigma).unwrap();
    assert_eq!(grid.sigma(), a.sigma);
    for m in [&a, &b] {
        for (j, name) in NAMES.iter().enumerate() {
            let value = m.coefficients.iter().find(|c| c.0 == *name).unwrap().1;
            let sd = people.statistics().iter().find(|s| s.0 == format!("sd of {name}")).unwrap().1;
            assert_eq!((value * public_scale(sd) / grid.step).fract(), 0.0, "{name}");
            assert!(!on_lattice(&[value, of("a.csv", 2).coefficients[j].1], sd, grid.step), "{name}");
        }
    }
    assert_ne!(a.coefficients, of("a.csv", 2).coefficients);
}

/// Largest singular value of a 3 × 3 matrix of columns, by powers of `JᵀJ`.
fn spectral_norm(columns: &[[f64; 3]; 3]) -> f64 {
    let mut v = [0.6, 0.5, 0.62];
    let mut length = 0.0;
    for _ in 0..500 {
        let image: [f64; 3] = std::array::from_fn(|r| (0..3).map(|k| columns[k][r] * v[k]).sum());
        let back: [f64; 3] = std::array::from_fn(|k| (0..3).map(|r| columns[k][r] * image[r]).sum());
        length = back.iter().map(|x| x * x).sum::<f64>().sqrt();
        v = back.map(|x| x / length);
    }
    length.sqrt()
}

/// No formula of leakage: change a value in the file, release again with the same noise, and see how what is published
/// moved. Scaling and balancing move with it.
#[test]
fn loss_is_how_published_coefficients_move_with_each_value() {
    let place = Place::new();
    let mut random = Seeded::new(8);
    let table: Vec<[f64; 3]> = (0..28)
        .map(|_| {
            let z = random.normals(3);
            [40.0 + 11.0 * z[0], 3.0 * z[1], 2.0 + z[0] - 0.7 * z[1] + 0.6 * z[2]]
        })
        .collect();
    let write = |table: &[[f64; 3]]| {
        let rows: String = table.iter().map(|r| format!("{},{},{}\n", r[0], r[1], r[2])).collect();
        place.write("t.csv", &format!("a,b,y\n{rows}"));
    };
    for (i, (l2, balance)) in [(0.3, 0), (0.05, 0), (0.1, 2)].into_iter().enumerate() {
        write(&table);
        let actual =
            place.release(&format!("t.csv --target y --l2 {l2} --sigma 1 --balance {balance} --out out-{i}"));
        let r = place.statement(&format!("out-{i}/release-1/release.json"));
        let measured = actual["measured"]["eta_max"].as_f64().unwrap() * r.mechanism.sigma;
        let [a, b] = ["a", "b"].map(|name| r.mechanism.units[name]);
        let request = Request {
            read: ReadOptions { paths: vec![place.path("t.csv")], ..ReadOptions::default() },
            roles: Roles { target: "y".into(), ..Roles::default() },
            l2,
            ..Request::default()
        };
        let terms = Terms { noise: Amount::Sigma(1e-6), balance, ..Terms::default() };
        let at = |i: usize, k: usize, step: f64| -> [f64; 3] {
            let mut changed = table.clone();
            changed[i][k] += step * [a.unit, b.unit, 1.0][k];
            write(&changed);
            let m = private(&request, &terms, Some(1), &Hooks::default()).unwrap();
            let of = |name: &str| m.coefficients.iter().find(|c| c.0 == name).unwrap().1;
            let w = [of("a"), of("b")];
            [w[0] * a.unit, w[1] * b.unit, of("(intercept)") + a.centre * w[0] + b.centre * w[1]]
        };
        let h = 1e-3;
        let norms = (0..table.len()).map(|i| {
            let columns: [[f64; 3]; 3] = std::array::from_fn(|k| {
                let (up, down) = (at(i, k, h), at(i, k, -h));
                std::array::from_fn(|j| (up[j] - down[j]) / (2.0 * h))
            });
            spectral_norm(&columns)
        });
        let most = norms.fold(0.0, f64::max);
        assert!((most / measured - 1.0).abs() < 1e-4, "λ = {l2}, {balance}: moved {most}, stated {measured}");
    }
}
