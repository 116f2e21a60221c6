//! The line that releases what an audit is of: its own options, as far as a release has them.

use clap::Command;
use std::ffi::OsString;

/// Options that are about this run, its noise or its results, and not about the table and its model.
const OWN: [&str; 12] = [
    "sigma",
    "target-eta",
    "target-sd",
    "statistic",
    "group",
    "out",
    "json",
    "quiet",
    "threads",
    "config",
    "open",
    "redact",
];

/// `leakscope release` with the words of an audit's command line that both commands take; nothing where `words` are no audit.
pub(super) fn release_line(words: &[OsString], command: &Command) -> Option<String> {
    let (audit, release) = (command.find_subcommand("audit")?, command.find_subcommand("release")?);
    let first = words.iter().position(|w| w == "audit")? + 1;
    let option = |of: &Command, name: &str| of.get_arguments().find(|a| a.get_long() == Some(name)).cloned();
    let mut line = vec!["leakscope release".to_owned()];
    let mut left = words[first..].iter().map(|w| w.to_string_lossy().into_owned());
    let mut only_files = false;
    while let Some(word) = left.next() {
        let long = if only_files { None } else { word.strip_prefix("--") };
        match long {
            Some("") => {
                only_files = true;
                line.push("--".into());
            }
            Some(long) => {
                let (name, joined) = match long.split_once('=') {
                    Some((name, _)) => (name, true),
                    None => (long, false),
                };
                let is_global = ["config", "open"].contains(&name);
                let known = option(if is_global { command } else { audit }, name)?;
                let value = match !joined && known.get_action().takes_values() {
                    true => Some(left.next()?),
                    false => None,
                };
                if OWN.contains(&name) || option(release, name).is_none() {
                    continue;
                }
                line.push(leakscope_report::quoted(&word));
                line.extend(value.map(|v| leakscope_report::quoted(&v)));
            }
            // A letter for an option: none of them is shared.
            None if !only_files && word.len() > 1 && word.starts_with('-') => {}
            None => line.push(leakscope_report::quoted(&word)),
        }
    }
    Some(line.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split('|').map(OsString::from).collect();
        release_line(&words, &super::super::command())
    }

    #[test]
    fn options_that_both_have_are_kept_and_the_others_are_not() {
        let line = "leakscope|audit|a b.csv|--target|y|--no-header|--missing|drop|--decimal|,|--encoding=latin-1|--bounds|c1=0..9|\
                    --min-level-count|3|--sigma|0.4|--holdout|0.2|--group|sex|-q|--out|audit|--drop|x,y|--tell-budget|all|--l2|1e-3";
        assert_eq!(
            of(line).unwrap(),
            "leakscope release 'a b.csv' --target y --no-header --missing drop --decimal , --encoding=latin-1 --bounds c1=0..9 \
             --min-level-count 3 --drop x,y --tell-budget all --l2 1e-3"
        );
        assert_eq!(
            of("leakscope|--config|c.toml|--open|audit|--target=y|--|--odd.csv").unwrap(),
            "leakscope release --target=y -- --odd.csv"
        );
        assert_eq!(of("leakscope|demo"), None);
        assert_eq!(of("leakscope|audit|--unheard-of|t.csv"), None);
    }

    /// What is typed from a page must be a line that is understood.
    #[test]
    fn the_line_parses() {
        let line =
            of("leakscope|audit|t.csv|--target|y|--model|logistic|--positive|yes|--schema|s.json|--sigma|2")
                .unwrap();
        let words = line.split(' ').chain(["--sigma", "1", "--out", "r"]);
        assert!(super::super::command().try_get_matches_from(words).is_ok(), "{line}");
    }
}
