//! The verdict on an account: what a sequence of releases costs.

use super::{Colour, Facts, Verdict, decide, left_out, plain, strong};
use crate::document::account::Costs;
use crate::format;
use crate::words;
use leakscope_core::dp::Mechanism;

/// What the page prints.
pub(crate) fn facts(c: &Costs) -> Facts {
    let a = &c.account;
    // A batch has a record on average at least.
    let rates = a.releases.iter().map(|(mechanism, _)| match mechanism {
        Mechanism::Gaussian { rate, .. } if *rate > 0.0 => *rate,
        Mechanism::Gaussian { .. } | Mechanism::Laplace { .. } | Mechanism::RandomisedResponse { .. } => 1.0,
    });
    let records = 1.0 / rates.fold(1.0, f64::min);
    Facts {
        epsilon: Some(a.epsilon.pld.upper),
        left_out: Some(left_out(a.delta, records)),
        membership: Some(a.advantage.upper),
        ..Facts::default()
    }
}

/// The verdict on an account.
pub fn of_account(c: &Costs) -> Verdict {
    let decision = decide(&facts(c));
    let a = &c.account;
    let head = match decision.colour {
        Colour::Green => "Hard to say who took part",
        Colour::Amber => "Somewhat easier than a guess to say who took part",
        Colour::Red => "Easy to say who took part",
    };
    let first = vec![
        plain(
            "Somebody who sees all releases, knows everything else and must say whether a record took part, at even odds, is right at most ",
        ),
        strong(format::share_at_most(0.5 + 0.5 * a.advantage.upper)),
        plain(" of the time (a coin toss: 50%). ε is at most "),
        strong(format::at_most(a.epsilon.pld.upper)),
        plain(format!(" at δ = {}.", format::setting(a.delta))),
    ];
    let mut second = vec![plain(format!("Neighbours: {}.", words::adjacency(a.adjacency)))];
    if c.adjacency_assumed {
        second.extend([
            plain(" "),
            strong("This adjacency was assumed"),
            plain(": none was stated (⟨adjacency⟩)."),
        ]);
    }
    Verdict::new(decision, head, vec![first, second])
}
