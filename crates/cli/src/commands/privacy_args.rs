//! The options that say what a private computation does: the same for `account`, `bound` and `calibrate`.

use leakscope::output::{Folder, Pending};
use leakscope::{Failure, Result};
use leakscope_core::bound::{Encodings, Prior};
use leakscope_core::dp::{Accountant, Adjacency, Mechanism};
pub(crate) use leakscope_report::format::five_digits;
use leakscope_table::RecordsFormat;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The adjacency, which must be said.
pub(crate) fn said(adjacency: Option<Adjacency>) -> Result<Adjacency> {
    let why = "say add-remove (a record is there or is not) or replace (it takes another value): the answer depends on it";
    adjacency.ok_or_else(|| Failure::flag("--adjacency", why))
}

/// How results are shown and kept.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ShowArgs {
    /// Folder for report.html and the results as JSON
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON to stdout, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// No remarks and no progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl ShowArgs {
    /// Opens the folder, before any work is done.
    pub(crate) fn folder(&self) -> Result<Option<Folder>> {
        self.out.as_deref().map(|dir| Folder::open(dir, RecordsFormat::Parquet)).transpose()
    }

    /// Publishes a page with its JSON, and prints the JSON or the text.
    pub(crate) fn show(
        &self,
        folder: Option<&Folder>,
        (name, json): (&str, &str),
        page: impl FnOnce() -> String,
        text: &str,
    ) -> Result<()> {
        let mut written = vec![];
        if let Some(folder) = folder {
            let mut pending = Pending::default();
            folder.text(&mut pending, "report.html", &page())?;
            folder.text(&mut pending, name, json)?;
            written = folder.publish(pending)?;
        }
        // Whoever reads may stop early (`| head`): that is no failure.
        let printed = if self.json { json } else { text };
        let _ = std::io::stdout().lock().write_all(printed.as_bytes());
        if !self.quiet && !self.json {
            for path in written {
                eprintln!("wrote {}", path.display());
            }
        }
        Ok(())
    }
}

/// A whole number that may be written as 10000000000, 1e10 or 10^10.
pub(crate) fn whole(text: &str) -> std::result::Result<u64, String> {
    if let Ok(n) = text.parse::<u64>() {
        return Ok(n);
    }
    let value = match text.split_once('^') {
        Some((base, power)) => {
            base.parse::<f64>().ok().zip(power.parse().ok()).map(|(b, p): (f64, i32)| b.powi(p))
        }
        None => text.parse::<f64>().ok(),
    };
    match value {
        Some(x) if (0.0..9e15).contains(&x) && x.fract() == 0.0 => Ok(x as u64),
        _ => Err("expected a whole number such as 1000, 1e10 or 10^10".into()),
    }
}

/// One release as `sigma=1,rate=0.01,steps=1000`, `laplace=2,steps=3` or `randomised-response=4,noise=0.5`.
pub(crate) fn step(text: &str) -> Result<(Mechanism, u64)> {
    let wrong = |what: String| {
        Failure::flag(
            "--step",
            format!(
                "`{text}`: {what}; expected sigma=S[,rate=Q][,steps=T], laplace=B[,steps=T] or \
                 randomised-response=M,noise=P[,steps=T]"
            ),
        )
    };
    let (mut sigma, mut laplace, mut response, mut rate, mut noise, mut steps) =
        (None, None, None, None, None, None);
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| wrong(format!("`{part}` has no value")))?;
        let (name, value) = (name.trim(), value.trim());
        let number = || value.parse::<f64>().map_err(|_| wrong(format!("`{value}` is no number")));
        let twice = match name {
            "sigma" => sigma.replace(number()?).is_some(),
            "laplace" => laplace.replace(number()?).is_some(),
            "rate" => rate.replace(number()?).is_some(),
            "noise" => noise.replace(number()?).is_some(),
            "randomised-response" => response.replace(whole(value).map_err(wrong)?).is_some(),
            "steps" => steps.replace(whole(value).map_err(wrong)?).is_some(),
            other => return Err(wrong(format!("`{other}` is unknown"))),
        };
        if twice {
            return Err(wrong(format!("`{name}` is said twice")));
        }
    }
    let mechanism =
        mechanism(sigma, laplace, response, noise, rate).map_err(|(_, what)| wrong(what.into()))?;
    Ok((mechanism, steps.unwrap_or(1)))
}

/// The one mechanism that these values describe; else the flag that is wrong and why.
pub(crate) fn mechanism(
    sigma: Option<f64>,
    laplace: Option<f64>,
    response: Option<u64>,
    noise: Option<f64>,
    rate: Option<f64>,
) -> std::result::Result<Mechanism, (&'static str, &'static str)> {
    let kinds = u8::from(sigma.is_some()) + u8::from(laplace.is_some()) + u8::from(response.is_some());
    if kinds > 1 {
        return Err(("--sigma", "several mechanisms at once: give each its own --step"));
    }
    if noise.is_some() && response.is_none() {
        return Err(("--noise", "it belongs to --randomised-response"));
    }
    if rate.is_some() && sigma.is_none() {
        return Err(("--rate", "sampling is accounted for with --sigma only"));
    }
    match (sigma, laplace, response, noise) {
        (Some(sigma), ..) => Ok(Mechanism::gaussian(sigma, rate.unwrap_or(1.0))),
        (_, Some(scale), ..) => Ok(Mechanism::Laplace { scale }),
        (_, _, Some(categories), Some(noise)) => Ok(Mechanism::RandomisedResponse { categories, noise }),
        (_, _, Some(_), None) => {
            Err(("--noise", "randomised response needs it: the probability of a uniform draw"))
        }
        (None, None, None, _) => {
            Err(("--sigma", "say what is released: --sigma S, --laplace B or --randomised-response M"))
        }
    }
}

/// Several releases as one composition.
pub(crate) fn composed(steps: &[(Mechanism, u64)], adjacency: Adjacency) -> Result<Accountant> {
    let mut accountant = Accountant::new(adjacency);
    for &(mechanism, count) in steps {
        accountant = accountant.with(mechanism, count)?;
    }
    Ok(accountant)
}

/// Encodings by name (`one-hot`, `line`) or from a file with one vector per candidate.
pub(crate) fn encodings(text: &str, prior: &Prior) -> Result<Encodings> {
    match text {
        "one-hot" => return Ok(Encodings::OneHot),
        "line" => return Ok(Encodings::line(prior.candidates())?),
        _ => {}
    }
    let rows = vectors(Path::new(text))?;
    let m = prior.candidates();
    if rows.len() as u64 != m {
        let found = rows.len();
        return Err(Failure::flag("--encoding", format!("{text} has {found} vectors for {m} candidates")));
    }
    let width = rows.first().map_or(0, Vec::len);
    Ok(Encodings::vectors(width, rows.concat())?)
}

/// Vectors of a file: rows of a CSV file of numbers, or a JSON array of arrays.
fn vectors(path: &Path) -> Result<Vec<Vec<f64>>> {
    let shown = path.display();
    let wrong = |what: String| Failure::flag("--encoding", format!("{shown}: {what}"));
    let text = std::fs::read_to_string(path)
        .map_err(|e| wrong(format!("cannot read it ({e}); expected one-hot, line, or a CSV or JSON file")))?;
    let rows: Vec<Vec<f64>> = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).map_err(|e| wrong(format!("{e}; expected [[1, 0], [0, 1], …]")))?
    } else {
        let mut rows = vec![];
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let cells = line.split([',', ';', '\t']).map(|c| {
                let n = c.trim().parse::<f64>();
                n.map_err(|_| wrong(format!("line {}: `{}` is no number", i + 1, c.trim())))
            });
            rows.push(cells.collect::<Result<Vec<f64>>>()?);
        }
        rows
    };
    let width = rows.first().map_or(0, Vec::len);
    if width == 0 {
        return Err(wrong("it has no numbers".into()));
    }
    if let Some(i) = rows.iter().position(|r| r.len() != width) {
        let found = rows[i].len();
        return Err(wrong(format!("vector {} has {found} numbers, the first has {width}", i + 1)));
    }
    if let Some(i) = rows.iter().position(|r| r.iter().any(|x| !x.is_finite())) {
        return Err(wrong(format!("vector {} holds a value that is not finite", i + 1)));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_rounded_to_the_side_asked_for() {
        assert_eq!(five_digits(1.827_51, true), "1.8276");
        assert_eq!(five_digits(1.827_51, false), "1.8275");
        assert_eq!(five_digits(0.5, true), "0.50000");
        assert_eq!(five_digits(109.1941, true), "109.20");
        assert_eq!(five_digits(1_234_567.0, false), "1234500");
        assert_eq!(five_digits(0.0, true), "0");
    }

    #[test]
    fn whole_numbers_in_three_spellings() {
        assert_eq!(whole("10000000000"), Ok(10_000_000_000));
        assert_eq!((whole("1e10"), whole("10^10")), (Ok(10_000_000_000), Ok(10_000_000_000)));
        assert!(
            whole("1.5").is_err() && whole("-3").is_err() && whole("ten").is_err() && whole("1e30").is_err()
        );
    }

    #[test]
    fn steps_are_read_or_refused() {
        assert_eq!(step("sigma=1,rate=0.01,steps=1000").unwrap(), (Mechanism::gaussian(1.0, 0.01), 1000));
        assert_eq!(step("laplace=2").unwrap(), (Mechanism::Laplace { scale: 2.0 }, 1));
        let rr = Mechanism::RandomisedResponse { categories: 4, noise: 0.5 };
        assert_eq!(step("randomised-response=4,noise=0.5,steps=2").unwrap(), (rr, 2));
        for text in [
            "sigma",
            "sigma=x",
            "sigma=1,sigma=2",
            "sigma=1,laplace=2",
            "rate=0.1",
            "q=1",
            "laplace=1,rate=0.1",
            "",
        ] {
            assert!(step(text).is_err(), "{text}");
        }
    }
}
