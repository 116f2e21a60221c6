//! Shapes of noise on tables of the size of the papers' two: time to the certificate, and what it buys.

use crate::parallel::Parallel;
use crate::{best, peak_memory};
use leakscope_core::fisher::Directions;
use leakscope_core::fisher::noise::{Protected, Request, Shape, Target, design};
use leakscope_core::glm::{self, Family, Penalty};

type Done = Result<(), Box<dyn std::error::Error>>;

pub(crate) fn run() -> Done {
    println!("shapes of noise, linear regression, {} threads, gap 1%", rayon::current_num_threads());
    println!(
        "{:>8} {:>4} {:>15} {:>10} {:>9} {:>8} {:>8} {:>7} {:>6} {:>12}",
        "n", "d", "protected", "shape", "seconds", "gain", "gap", "rounds", "atoms", "covariance"
    );
    for (n, d, column) in [(4_819, 14, None), (30_162, 86, Some(3))] {
        let rows = Parallel::synthetic(n, d, 5);
        let fit = glm::fit(&rows, Family::Linear, Penalty::new(1e-5, false))?;
        let (protected, name) = match column {
            None => (Protected::Record { label: true }, "whole records"),
            Some(j) => (Protected::Attribute(Directions::columns(j..j + 1, d)), "one attribute"),
        };
        // Within the default budget for the shape's own information weights are evened out, which costs some of the gap.
        for (shape, shape_budget) in [(Shape::Shaped, 0.05), (Shape::Optimal, 0.05), (Shape::Optimal, 1.0)] {
            let target = Target { protected: protected.clone(), eta: 1.0 };
            let request = Request { shape_budget, ..Request::new(vec![target], shape) };
            let (seconds, design_made) = best(1, || design(&rows, &fit, &request));
            let design_made = design_made?;
            println!(
                "{n:>8} {d:>4} {name:>15} {:>10} {seconds:>9.2} {:>8.1} {:>7.2}% {:>7} {:>6} {:>12.1e}",
                format!("{shape:?}").to_lowercase(),
                design_made.gain,
                100.0 * design_made.gap,
                design_made.rounds,
                design_made.atoms.len(),
                design_made.covariance_information
            );
        }
    }
    println!("covariance: its own information as a share of η² = 1; seconds include counting it");
    println!("peak memory {} MB", peak_memory());
    Ok(())
}
