//! Options under headings, one screen each, and examples below: said once for all commands.

use clap::Command;

/// Headings with the options below them. An option has the same heading in every command.
const GROUPS: [(&str, &[&str]); 20] = [
    (
        "The mechanism and the target",
        &[
            "mechanism",
            "noise",
            "laplace",
            "randomised_response",
            "step",
            "adjacency",
            "alpha",
            "curve",
            "at",
            "advantage",
            "tpr",
            "fpr",
            "success",
            "over",
        ],
    ),
    (
        "The table",
        &[
            "data",
            "synthetic",
            "target",
            "id",
            "drop",
            "categorical",
            "weights",
            "group",
            "delimiter",
            "na",
            "decimal",
            "no_header",
            "encoding",
            "text_encoding",
        ],
    ),
    ("Arrays and texts", &["limit", "normalize", "field", "user_field", "long"]),
    ("Columns as numbers", &["one_hot", "scale", "pca", "missing", "positive"]),
    ("What is public", &["schema", "bounds", "levels", "clip_to_bounds", "min_level_count", "public"]),
    (
        "The model",
        &[
            "model",
            "power",
            "huber_threshold",
            "l2",
            "no_intercept",
            "max_classes",
            "coefficients",
            "network",
            "outputs",
            "loss",
            "tokenizer",
            "layers",
            "rank",
            "sum_to_one",
            "attribute",
        ],
    ),
    (
        "Balancing",
        &[
            "weights_per",
            "variant",
            "update",
            "min_weight",
            "max_weight",
            "iterations",
            "tolerance",
            "balance",
            "compare",
        ],
    ),
    (
        "Training",
        &["epochs", "steps", "batch", "rate", "lr", "momentum", "adam", "sgd", "sampling", "weight_decay"],
    ),
    (
        "Public records first",
        &[
            "public_epochs",
            "public_steps",
            "public_batch",
            "public_lr",
            "public_optimizer",
            "public_weight_decay",
            "pretrain",
            "freeze",
            "freeze_smallest",
            "density",
        ],
    ),
    ("Where and how it computes", &["checkpoint_every", "resume", "precision", "device"]),
    (
        "The noise",
        &[
            "sigma",
            "sigmas",
            "target_eta",
            "statistic",
            "target_sd",
            "releases",
            "clip",
            "clip_kind",
            "epsilon",
            "delta",
            "not_private_noise_from_seed",
            "noise_vectors",
        ],
    ),
    ("The shape of the noise", &["noise_shape", "protect", "shape_budget", "shape_from", "gap"]),
    (
        "What is added before the clip",
        &[
            "perturb",
            "perturb_lambda",
            "perturb_epochs",
            "perturb_batch",
            "perturb_lr",
            "perturb_weight_decay",
        ],
    ),
    ("Budgets", &["filter_epsilon", "filter_budgets", "budget_eta", "ledger_key", "data_changed"]),
    (
        "What is measured",
        &[
            "list",
            "full",
            "runs",
            "label",
            "unit",
            "score",
            "test",
            "holdout",
            "track",
            "probes",
            "records",
            "trace",
            "eta",
            "plis",
            "grid",
            "superpixels",
            "no_eta",
            "fail_above",
            "kind",
            "fail_on",
        ],
    ),
    ("Two values told apart", &["tell", "protect_at", "tell_budget", "scaling"]),
    (
        "The secret and what is known of it",
        &[
            "secret",
            "candidates",
            "bins",
            "prior",
            "prior_sd",
            "prompt",
            "secret_tokens",
            "secrets",
            "secret_pattern",
            "labels",
            "classes",
            "known",
            "learn",
            "targets",
        ],
    ),
    (
        "The attack",
        &["method", "gradient", "after", "shadows", "canaries", "confidence", "trials", "attacks"],
    ),
    (
        "How the attack searches",
        &[
            "local_steps",
            "local_lr",
            "objective",
            "restarts",
            "total_variation",
            "range",
            "attack_lr",
            "attack_decay",
        ],
    ),
    (
        "Results",
        &[
            "out",
            "format",
            "json",
            "quiet",
            "threads",
            "seed",
            "no_pictures",
            "lpips",
            "no_texts",
            "open",
            "redact",
            "config",
            "help",
            "version",
            "summary",
            "summary_out",
        ],
    ),
];

/// Commands with a screen of options are grouped; an option that only one of them has keeps its own heading.
const MANY: usize = 7;

/// Examples of each command, to be read below its options.
const EXAMPLES: [(&str, &str); 28] = [
    (
        "audit",
        "  leakscope audit patients.csv --target dose --id patient --l2 0.01 --sigma 0.4 --out audit/
  leakscope audit patients.csv --target dose --holdout 0.2 --target-eta 0.5 --out audit/",
    ),
    ("balance", "  leakscope balance patients.csv --target dose --l2 0.01 --sigma 0.4 --out balance/"),
    ("attack", "  leakscope attack patients.csv --target dose --secret vkorc1 --l2 0.01 --sigmas 0.01,0.1,1"),
    (
        "release",
        "  leakscope schema patients.csv > schema.json     (edit it: what is in it becomes public)
  leakscope release patients.csv --target dose --schema schema.json --l2 0.01 --sigma 0.4 --out released/",
    ),
    ("withdraw", "  leakscope withdraw released/ 2 --reason \"red page, deleted before anybody saw it\""),
    ("account", "  leakscope account --sigma 1 --rate 0.01 --steps 1000 --delta 1e-5"),
    (
        "bound",
        "  leakscope bound --candidates 10 --mechanism gaussian --sigma 1
  leakscope bound --data patients.csv --target dose --secret vkorc1 --l2 0.01 --sigma 0.1 --out bound/",
    ),
    (
        "calibrate",
        "  leakscope calibrate --advantage 0.1 --rate 0.002 --steps 10000 --adjacency add-remove
  leakscope calibrate --data patients.csv --target dose --target-eta 0.5 --holdout 0.2",
    ),
    (
        "compare",
        "  leakscope compare last-week/ today/ --out compared/ --open
  leakscope compare released/release-1/ released/release-2/
  leakscope compare main/ branch/ --fail-on worse,eta=10% \\
      --summary junit --summary-out leakscope.xml",
    ),
    (
        "plan",
        "  leakscope plan patients-*.parquet --target dose --sigma 0.4 --out plan/
  leakscope run plan/ --part 0          (any part, on any machine, any number of times)
  leakscope merge plan/                 (says which pass comes next, and ends with plan/audit/)",
    ),
    ("run", "  leakscope run plan/ --part 0"),
    ("merge", "  leakscope merge plan/"),
    ("worker", "  leakscope worker plan/ &  leakscope worker plan/ &  wait"),
    ("demo", "  leakscope demo --open"),
    ("schema", "  leakscope schema patients.csv > schema.json"),
    ("data list", "  leakscope data list"),
    ("data get", "  leakscope data get mnist --out data/"),
    ("devices", "  leakscope devices"),
    ("net demo", "  leakscope net demo --open"),
    ("reproduce", "  leakscope reproduce --list"),
    (
        "net train",
        "  leakscope net train --data mnist/ --network cnn-mnist --outputs 10 --epsilon 1 --delta 1e-5 --clip 1 \\
      --steps 500 --batch 1024 --lr 0.5 --track --out run/",
    ),
    (
        "text canary",
        "  leakscope text canary --model gpt2/ --layers last,all --out canary/
  leakscope text canary --model gpt2/ --prompt \"My card number is\" --secret-pattern \"4539 1488 0343 6##{luhn}\"",
    ),
    (
        "net audit",
        "  leakscope net audit --model run/ --data mnist/ --records 1000 --eta --plis --out audit/",
    ),
    (
        "net attack",
        "  leakscope net attack --method inversion --model run/ --data mnist/ --records 100 --sigmas 0,0.01,0.1 --out attack/
  leakscope net attack --method membership --model run/ --data mnist/ --canaries 1000 --out members/
  leakscope net attack --method informed --data mnist/ --classes 0,1 --clip 10 --clip-kind gelu --sigma 0.05 --out informed/",
    ),
    (
        "text train",
        "  leakscope text train --model gpt2/ letters.txt --layers adapters --epsilon 2 --clip 1 --steps 500 --out run/
  leakscope text train --model gpt2/ letters.jsonl --field text --user-field author --epsilon 2 --out run/",
    ),
    ("text audit", "  leakscope text audit --model gpt2/ letters.txt --layers last --out audit/"),
    ("completions", "  leakscope completions bash > ~/.local/share/bash-completion/completions/leakscope"),
    ("man", "  leakscope man --out ~/.local/share/man/man1"),
];

/// The command with headings and examples, and all commands below it.
pub(super) fn grouped(command: Command) -> Command {
    command.mut_subcommands(|sub| below(sub, ""))
}

fn below(command: Command, path: &str) -> Command {
    let path = format!("{path}{}", command.get_name());
    let many = command.get_arguments().count() > MANY;
    let command = match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, text)) => command.after_help(format!("Examples:\n{text}")),
        None => command,
    };
    let command = if many { command.mut_args(with_heading) } else { command };
    command.mut_subcommands(|sub| below(sub, &format!("{path} ")))
}

fn with_heading(arg: clap::Arg) -> clap::Arg {
    let group = GROUPS.iter().position(|(_, names)| names.contains(&arg.get_id().as_str()));
    match group {
        Some(at) if !arg.is_positional() => arg.help_heading(GROUPS[at].0),
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_has_two_headings() {
        let mut all: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    /// Every option of a command with headings is below one that says something, and the examples are those of
    /// commands that there are.
    #[test]
    fn every_option_is_under_a_heading() {
        let mut names = vec![];
        walk(&grouped(super::super::command()), "", &mut names);
        for (name, _) in EXAMPLES {
            assert!(names.iter().any(|n| n == name), "{name}");
        }
    }

    fn walk(command: &Command, path: &str, names: &mut Vec<String>) {
        names.push(path.trim_start().into());
        let mut bare = vec![];
        if command.get_arguments().count() > MANY {
            for arg in command.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set()) {
                if arg.get_help_heading().is_none() {
                    bare.push(arg.get_id().to_string());
                }
            }
        }
        assert!(bare.is_empty(), "{}: {bare:?}", command.get_name());
        command.get_subcommands().for_each(|c| walk(c, &format!("{path} {}", c.get_name()), names));
    }
}
