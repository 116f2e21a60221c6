//! The options that say what a private computation does: the same for `account`, `bound` and `calibrate`.

use crate::terminal::laid_out;
use leakscope::mechanism::ReleaseStep;
use leakscope::output::{Folder, Pending};
use leakscope::spelling::for_reader;
use leakscope::{Failure, Result};
use leakscope_report::PageKind;
use leakscope_table::RecordsFormat;
use std::io::Write;
use std::path::PathBuf;

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
        (kind, json): (PageKind, &str),
        page: impl FnOnce() -> String,
        text: &str,
    ) -> Result<()> {
        let mut written = vec![];
        if let Some(folder) = folder {
            let mut pending = Pending::default();
            folder.page(&mut pending, kind, &page())?;
            folder.text(&mut pending, &format!("{}.json", kind.stem()), json)?;
            written = folder.publish(pending)?;
        }
        // Whoever reads may stop early (`| head`): that is no failure.
        let stdout = std::io::stdout();
        let printed = if self.json { for_reader(json) } else { laid_out(for_reader(text), &stdout) };
        let _ = stdout.lock().write_all(printed.as_bytes());
        if !self.quiet && !self.json {
            for path in written {
                crate::note!("wrote {}", path.display());
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
pub(crate) fn step(text: &str) -> Result<ReleaseStep> {
    let wrong = |message: String| {
        Failure::option(
            "step",
            format!(
                "`{text}`: {message}; expected sigma=S[,rate=Q][,steps=T], laplace=B[,steps=T] or \
                 randomised-response=M,noise=P[,steps=T]"
            ),
        )
    };
    let mut step = ReleaseStep::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| wrong(format!("`{part}` has no value")))?;
        let (name, value) = (name.trim(), value.trim());
        let number = || value.parse::<f64>().map_err(|_| wrong(format!("`{value}` is no number")));
        let twice = match name {
            "sigma" => step.sigma.replace(number()?).is_some(),
            "laplace" => step.laplace.replace(number()?).is_some(),
            "rate" => step.rate.replace(number()?).is_some(),
            "noise" => step.noise.replace(number()?).is_some(),
            "randomised-response" => step.randomised_response.replace(whole(value).map_err(wrong)?).is_some(),
            "steps" => step.steps.replace(whole(value).map_err(wrong)?).is_some(),
            other => return Err(wrong(format!("`{other}` is unknown"))),
        };
        if twice {
            return Err(wrong(format!("`{name}` is said twice")));
        }
    }
    match step.mechanism() {
        Ok(_) => Ok(step),
        Err(Failure::Option { value: Some(value), message, .. }) => Err(wrong(format!("{value}: {message}"))),
        Err(Failure::Option { value: None, message, .. }) => Err(wrong(message)),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_core::dp::Mechanism;

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
        assert_eq!(
            step("sigma=1,rate=0.01,steps=1000").unwrap().mechanism().unwrap(),
            (Mechanism::gaussian(1.0, 0.01), 1000)
        );
        assert_eq!(step("laplace=2").unwrap().mechanism().unwrap(), (Mechanism::Laplace { scale: 2.0 }, 1));
        let rr = Mechanism::RandomisedResponse { categories: 4, noise: 0.5 };
        assert_eq!(step("randomised-response=4,noise=0.5,steps=2").unwrap().mechanism().unwrap(), (rr, 2));
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
