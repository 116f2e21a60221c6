//! `leakscope net demo`: Mueller's first figure. A private linear regression on synthetic records, of whose values only
//! some say anything about the target, and what each value gives away.

use super::{audit, train};
use crate::commands::demo::quoted;
use clap::Parser;
use leakscope::{Failure, Result};
use leakscope_net::{
    LayerSpec, Loss, NetSpec, Shape,
    io::{Tensors, write_private},
};
use leakscope_papers::regression::{INFORMATIVE, WIDTH, regression};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Train a private regression on synthetic records, and show which of their values it gives away (Mueller fig. 1).
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Folder for the records, the model and the results
    #[arg(long, value_name = "DIR", default_value = "leakscope-net-demo")]
    out: PathBuf,
    /// Number of records
    #[arg(long, value_name = "N", default_value_t = 2000)]
    records: usize,
    /// ε of the run, at δ = 1e-3
    #[arg(long, value_name = "E", default_value_t = 0.2, allow_negative_numbers = true)]
    epsilon: f64,
    /// Seed of the records, the run and the audit
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Parser)]
struct TrainShell {
    #[command(flatten)]
    args: train::Args,
}

#[derive(Parser)]
struct AuditShell {
    #[command(flatten)]
    args: audit::Args,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if args.records < 100 {
        return Err(Failure::option("records", format!("{}: expected at least 100", args.records)));
    }
    if !(args.epsilon > 0.0 && args.epsilon.is_finite()) {
        return Err(Failure::option("epsilon", format!("{}: expected a positive number", args.epsilon)));
    }
    std::fs::create_dir_all(&args.out).map_err(|e| {
        Failure::option("out", format!("cannot write to {}: {e}; choose another folder", args.out.display()))
    })?;
    let at = |name: &str| args.out.join(name);
    let (data, network, model, results) =
        (at("records.safetensors"), at("regression.json"), at("model"), at("audit"));
    let (x, y) = regression(args.records, args.seed);
    let mut records = Tensors::default();
    records.insert("x", &[args.records, WIDTH], &x);
    records.insert("y", &[args.records], &y);
    write(&data, &records.to_bytes()?)?;
    let layers = vec![LayerSpec::Dense { outputs: 1, bias: false, frozen: false }];
    let input = Shape::Vector([WIDTH]);
    let spec = NetSpec::sequential(input, layers, Loss::SquaredError);
    write(&network, spec.to_json().as_bytes())?;
    let (seed, epsilon) = (args.seed.to_string(), args.epsilon.to_string());
    let batch = (args.records / 4).to_string();
    let trained: Vec<OsString> = vec![
        "--data".into(),
        data.clone().into(),
        "--network".into(),
        network.into(),
        "--epsilon".into(),
        epsilon.into(),
        "--delta".into(),
        "1e-3".into(),
        "--clip".into(),
        "5".into(),
        "--clip-kind".into(),
        "gelu".into(),
        "--batch".into(),
        batch.into(),
        "--steps".into(),
        "20".into(),
        "--lr".into(),
        "0.3".into(),
        "--momentum".into(),
        "0".into(),
        "--precision".into(),
        "f64".into(),
        "--seed".into(),
        seed.clone().into(),
        "--out".into(),
        model.clone().into(),
    ];
    let shell: TrainShell = parse("train", &trained)?;
    train::run(&shell.args)?;
    let audited: Vec<OsString> = vec![
        "--model".into(),
        model.into(),
        "--data".into(),
        data.into(),
        "--records".into(),
        "all".into(),
        "--trace".into(),
        "elements".into(),
        "--plis".into(),
        "--seed".into(),
        seed.into(),
        "--out".into(),
        results.clone().into(),
    ];
    let shell: AuditShell = parse("audit", &audited)?;
    let code = audit::run(&shell.args)?;
    let named = INFORMATIVE.map(|j| j.to_string()).join(", ");
    crate::note!(
        "\nThe target depends on values {named} alone. Open {} in a browser.",
        results.join("report.html").display()
    );
    Ok(code)
}

/// Shows a command as a user would type it, and parses it.
fn parse<P: Parser>(command: &str, words: &[OsString]) -> Result<P> {
    let shown: Vec<String> = words.iter().map(|w| quoted(&w.to_string_lossy())).collect();
    crate::note!("$ leakscope net {command} {}\n", shown.join(" "));
    P::try_parse_from(std::iter::once(OsString::from("leakscope")).chain(words.iter().cloned()))
        .map_err(|e| Failure::Message(e.to_string()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_private(path, bytes).map_err(|e| Failure::Message(format!("cannot write {}: {e}", path.display())))
}
