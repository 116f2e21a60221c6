//! The page of membership attacks: true positives at small false-positive rates, and ε from canaries.

use crate::document::membership::{CanaryAudit, Membership, MembershipAttack, Rate};
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::Html;
use crate::render::html::page::{figure_card, theorem};
use crate::render::html::parts::{card, facts, header, judged, list, shell, tile, tiles, warnings, whose};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_membership;
use crate::words;
use leakscope_core::claim::{Observed, Theorem};

/// Membership attacks as one self-contained HTML page.
pub fn membership_page(m: &Membership) -> String {
    let title = format!("{} on {}", m.network.name, m.data.files.join(", "));
    let meta = format!(
        "{} · {} · {} · seed {}",
        format::counted(m.members, "training record"),
        format::counted(m.others, "other record"),
        format::counted(m.shadows, "shadow model"),
        m.seed
    );
    let body = header("Leakscope: who took part", &title, &meta)
        .and(whose(m.redact))
        .and(judged(&of_membership(m)))
        .and(head_tiles(m))
        .and(warnings(&m.warnings))
        .and(attacks(m))
        .and(m.figures.iter().map(figure_card).collect())
        .and(m.canaries.as_ref().map(canaries).unwrap_or_default())
        .and(rests_on(m));
    shell(&format!("Leakscope membership: {title}"), &body)
}

fn head_tiles(m: &Membership) -> Html {
    let mut all: Vec<Html> = m
        .attacks
        .iter()
        .map(|a| {
            tile(&format::share(a.area), &format!("area of the {}", words::membership_attacker(a.attacker)))
        })
        .collect();
    if let Some(p) = &m.promise {
        all.push(tile(
            &format::at_most(p.epsilon),
            &format!("ε that the run promises at δ = {}", format::setting(p.delta)),
        ));
    }
    if let Some(own) = &m.own {
        all.push(tile(&format::at_most(own.epsilon.p50), "own ε of an attacked record, median"));
    }
    if let Some(c) = &m.canaries {
        all.push(tile(&format::at_least(c.epsilon.value), "ε at least, by canaries"));
    }
    all.push(tile(&format::seconds(m.seconds), "for all attacks"));
    tiles(all)
}

fn attacks(m: &Membership) -> Html {
    let share = |o: &Observed| {
        let shown = format!(
            "{} ({} – {})",
            format::share(o.value),
            format::share(o.ci_low),
            format::share(o.ci_high)
        );
        Cell::sorted(shown, o.value)
    };
    let row = |(a, p): (&MembershipAttack, &Rate)| {
        vec![
            Cell::text(words::membership_attacker(a.attacker)),
            Cell::sorted(format::share(p.rate), p.rate),
            share(&p.false_positive),
            share(&p.true_positive),
            match &p.allowed {
                Some(b) => Cell::sorted(format::share_at_most(b.value), b.value),
                None => Cell::say("–"),
            },
            match p.own_allowed {
                Some(most) => Cell::sorted(format::share_at_most(most), most),
                None => Cell::say("–"),
            },
            Cell::sorted(format::share(a.area), a.area),
        ]
    };
    let rows: Vec<Vec<Cell>> =
        m.attacks.iter().flat_map(|a| a.points.iter().map(move |p| (a, p))).map(row).collect();
    let heads = [
        text_column("attacker"),
        numbers("false positives, at most"),
        numbers("false positives"),
        numbers("true positives"),
        numbers("(ε, δ) allows"),
        numbers("own accounts allow"),
        numbers("area"),
    ];
    let lead = "Thresholds are set so that no larger share of the other records is taken for training records. Intervals are \
                those of Clopper and Pearson, 95%.";
    let body = table("wrap sortable stack even", "Attacks", &heads, &rows);
    card(
        "attacks",
        "True positives at small false-positive rates",
        &[Claim::Observed, Claim::Bound],
        lead,
        body,
    )
}

fn canaries(c: &CanaryAudit) -> Html {
    let mut rows = vec![
        ("canaries, each in or out by a fair coin", format::count(c.canaries)),
        ("guesses, and right ones", format!("{}, {}", format::count(c.guessed), format::count(c.right))),
        ("ε at least", format::at_least(c.epsilon.value)),
        ("confidence", format::share(c.confidence)),
        ("δ", format::setting(c.delta)),
        ("steps", format::count(c.steps)),
    ];
    if let Some(p) = c.promised {
        rows.push(("ε that such a run promises, at most", format::at_most(p)));
    }
    let lead = "One more run by the same recipe. The auditor scores every canary by how far the steps went in the direction of its \
                gradient, and says of those at both ends whether they were in. The numbers of guesses tried (all, a half, a \
                quarter …) were fixed beforehand and share the confidence.";
    card(
        "canaries",
        "ε from one run with canaries",
        &[Claim::Bound],
        lead,
        facts(&rows).and(theorem(Theorem::OneRun)),
    )
}

fn rests_on(m: &Membership) -> Html {
    let mut items = vec![
        "Loss and norm of the gradient: one threshold for all records.".to_owned(),
        "Likelihood ratio (Carlini et al. 2022): confidences of a record under shadow models trained with it and without it, \
         by the recipe of the run on halves of the records, are two normals; their spread is shared by all records below 32 \
         models a side."
            .into(),
        "What (ε, δ) allows: TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ, for every attacker.".into(),
    ];
    if m.own.is_some() {
        items.push(
            "What the records’ own accounts allow: the same curve for each attacked training record with its own ε, from the \
             norms of its gradients at every step of the run, and the largest mean over records at that mean rate of false \
             positives. It speaks of the path that the run took; what was promised beforehand is (ε, δ)."
                .into(),
        );
    }
    let rows = [("seed", m.seed.to_string()), ("schema", m.schema.clone())];
    card("rests", "What this rests on", &[], "", list(items).and(facts(&rows)))
}
