//! An audit of texts as text for a terminal.

use crate::document::text_audit::TextAudit;
use crate::format;
use crate::verdict::of_text_audit;
use std::fmt::Write;

/// The verdict, and the texts that leak most.
pub fn text_audit_summary(a: &TextAudit) -> String {
    let verdict = of_text_audit(a);
    let mut text = verdict.lines() + "\n";
    let _ = writeln!(
        text,
        "{:<10} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "text", "tokens", "loss", "‖gradient‖", "dFIL", "η", "PLIS"
    );
    let maybe = |x: Option<f64>| x.map_or_else(|| "–".into(), format::number);
    for i in a.most_exposed() {
        let r = &a.records[i];
        let _ = writeln!(
            text,
            "{:<10} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}",
            r.record,
            r.tokens,
            format::number(r.loss),
            format::number(r.gradient_norm),
            maybe(r.dfil),
            maybe(r.eta),
            format::number(r.plis)
        );
    }
    for e in &a.exposures {
        let _ = writeln!(
            text,
            "secret {} in text {}: rank {} of {}, exposure {} bits",
            e.secret,
            e.record,
            format::count(e.rank),
            format::count(e.candidates),
            format::number(e.exposure)
        );
    }
    text
}
