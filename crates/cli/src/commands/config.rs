//! `--config leakscope.toml`: options from a file. What stands on the command line wins.
//!
//! A section is named after its command (`[audit]`, `[net.train]`), keys after its options (`target-eta` or
//! `target_eta`). Options are put into the command line before it is read, so that they are checked by the same rules.

use clap::Command;
use leakscope::{Failure, Result};
use std::ffi::OsString;
use toml::{Table, Value};

/// The command line with the options of its configuration file, where it names one.
pub(super) fn expanded(words: Vec<OsString>, command: &Command) -> Result<Vec<OsString>> {
    let Some(path) = value_of(&words, "--config") else { return Ok(words) };
    let shown = path.to_string_lossy().into_owned();
    let fail = |why: String| Failure::option("config", format!("{shown}: {why}"));
    let text = std::fs::read_to_string(&path).map_err(|e| fail(e.to_string()))?;
    let file: Table = text.parse().map_err(|e: toml::de::Error| fail(e.to_string()))?;
    check(&file, command, "").map_err(fail)?;
    // The command is the words that name commands, after what may stand before them.
    let before = |i: usize| {
        let word = words[i].to_string_lossy();
        word == "--config" || word == "--open" || word.starts_with("--config=") || words[i - 1] == "--config"
    };
    let first = (1..words.len()).find(|&i| !before(i)).unwrap_or(words.len());
    let (mut at, mut here, mut section) = (first, command, Some(&file));
    while let Some(sub) = words.get(at).and_then(|w| here.find_subcommand(w)) {
        section = section.and_then(|s| s.get(sub.get_name())).and_then(Value::as_table);
        (at, here) = (at + 1, sub);
    }
    let mut options = vec![];
    for (key, value) in section.into_iter().flatten().filter(|(_, v)| !v.is_table()) {
        let name = key.replace('_', "-");
        let option = format!("--{name}");
        // What excludes an option, said on the command line, wins over it as the option itself does.
        let argument = here.get_arguments().find(|a| a.get_long() == Some(&name));
        let excluded = argument.is_some_and(|own| {
            let others = here.get_arg_conflicts_with(own);
            others.iter().filter_map(|a| a.get_long()).any(|long| is_given(&words, &format!("--{long}")))
        });
        if !excluded && !is_given(&words, &option) {
            push(&mut options, &option, value).map_err(|why| fail(format!("{key}: {why}")))?;
        }
    }
    let mut expanded = words;
    expanded.splice(at..at, options);
    Ok(expanded)
}

/// Every section is a command and every key one of its options.
fn check(section: &Table, command: &Command, path: &str) -> std::result::Result<(), String> {
    for (key, value) in section {
        let commands = command.get_subcommands().map(Command::get_name);
        if let (Value::Table(inner), Some(sub)) = (value, command.find_subcommand(key)) {
            check(inner, sub, &format!("{path}{key}."))?;
            continue;
        }
        let options = command.get_arguments().filter_map(|a| a.get_long());
        let (known, kind): (Vec<&str>, _) =
            if value.is_table() { (commands.collect(), "section") } else { (options.collect(), "option") };
        let name = key.replace('_', "-");
        if value.is_table() || !known.contains(&name.as_str()) || ["config", "help"].contains(&name.as_str())
        {
            let closest = leakscope_table::closest(&name, known.into_iter()).into_iter().next();
            let hint = closest.map_or_else(String::new, |c| format!(" (did you mean `{c}`?)"));
            return Err(format!("there is no {kind} `{path}{key}`{hint}"));
        }
    }
    Ok(())
}

/// A value as words of a command line.
fn push(words: &mut Vec<OsString>, option: &str, value: &Value) -> std::result::Result<(), String> {
    let joined = |text: String| OsString::from(format!("{option}={text}"));
    match value {
        Value::Boolean(true) => words.push(option.into()),
        Value::Boolean(false) => {}
        Value::String(text) => words.push(joined(text.clone())),
        Value::Integer(n) => words.push(joined(n.to_string())),
        Value::Float(x) => words.push(joined(x.to_string())),
        Value::Array(items) => {
            for item in items {
                if matches!(item, Value::Array(_) | Value::Boolean(_)) {
                    return Err("expected a list of texts or numbers".into());
                }
                push(words, option, item)?;
            }
        }
        Value::Datetime(date) => words.push(joined(date.to_string())),
        Value::Table(_) => return Err("expected a value".into()),
    }
    Ok(())
}

fn is_given(words: &[OsString], option: &str) -> bool {
    let with_value = format!("{option}=");
    words.iter().any(|w| w == option || w.to_string_lossy().starts_with(&with_value))
}

fn value_of(words: &[OsString], option: &str) -> Option<OsString> {
    let with_value = format!("{option}=");
    let at = words.iter().position(|w| w == option || w.to_string_lossy().starts_with(&with_value))?;
    match words[at].to_string_lossy().strip_prefix(&with_value) {
        Some(value) => Some(value.into()),
        None => words.get(at + 1).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(file: &str, words: &str) -> std::result::Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leakscope.toml");
        std::fs::write(&path, file).unwrap();
        let words: Vec<OsString> =
            words.split_whitespace().map(|w| w.replace("FILE", path.to_str().unwrap()).into()).collect();
        expanded(words, &super::super::command())
            .map(|w| w.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "))
            .map(|line| line.replace(path.to_str().unwrap(), "FILE"))
            .map_err(|f| f.to_string())
    }

    #[test]
    fn options_come_from_the_section_of_the_command_and_the_command_line_wins() {
        let file = "[audit]\ntarget = \"dose\"\nl2 = 0.01\nsigma = 2\njson = true\nquiet = false\ndrop = [\"a\", \"b\"]\n\
                    [net.train]\nsteps = 500\n";
        let line = run(file, "leakscope audit t.csv --sigma 3 --config FILE").unwrap();
        assert_eq!(
            line,
            "leakscope audit --drop=a --drop=b --json --l2=0.01 --target=dose t.csv --sigma 3 --config FILE"
        );
        let line = run(file, "leakscope net train --config=FILE --data x").unwrap();
        assert_eq!(line, "leakscope net train --steps=500 --config=FILE --data x");
        let line = run(file, "leakscope --config FILE --open net train --data x").unwrap();
        assert_eq!(line, "leakscope --config FILE --open net train --steps=500 --data x");
        assert_eq!(run("", "leakscope audit t.csv").unwrap(), "leakscope audit t.csv");
    }

    #[test]
    fn unknown_keys_are_named_with_the_closest() {
        let error = run("[audit]\ntargt = \"y\"\n", "leakscope audit --config FILE").unwrap_err();
        assert!(error.contains("there is no option `audit.targt` (did you mean `target`?)"), "{error}");
        // Also in sections of other commands: a slip is seen before it matters.
        let error = run("[net.trian]\nsteps = 1\n", "leakscope audit --config FILE").unwrap_err();
        assert!(error.contains("`net.trian` (did you mean `train`?)"), "{error}");
        let error = run("[audit\n", "leakscope audit --config FILE").unwrap_err();
        assert!(error.contains("config"), "{error}");
        let error = run("[audit]\nbounds = [[1, 2]]\n", "leakscope audit --config FILE").unwrap_err();
        assert!(error.contains("bounds: expected a list of texts or numbers"), "{error}");
    }
}
