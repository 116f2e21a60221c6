//! `leakscope audit`: fit, measure, say what follows, leave a page.

use super::columns::columns;
use super::noise_args::ShapeArgs;
use super::release_line::release_line;
use super::run_args::{RedactArgs, RunArgs, of_model};
use super::table_args::{ModelArgs, TableArgs, name_and_number, name_and_text};
use crate::progress::Display;
use leakscope::audit::{self, Limit, Noise, Outcome, Pair, Request, ScalingMode, Statistic};
use leakscope::coefficients::read_coefficients;
use leakscope::output::Folder;
use leakscope::spelling::for_reader;
use leakscope::{Failure, Result, saving};
use leakscope_net::leak::Label;
use leakscope_report::explore::Beside;
use leakscope_report::verdict::PROTECT_AT;
use leakscope_report::{Audit, PageKind};
use leakscope_table::{Encoding, RecordsFormat};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Fit a generalised linear model to a table and measure what its release gives away.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Audit a model that was trained elsewhere: JSON of column names and values, for the columns as encoded here
    /// (with --scale none as in the file)
    #[arg(long, value_name = "FILE")]
    pub(crate) coefficients: Option<PathBuf>,
    /// Standard deviation of the noise on every coefficient
    #[arg(long, value_name = "S", allow_negative_numbers = true, conflicts_with_all = ["target_eta", "target_sd"])]
    pub(crate) sigma: Option<f64>,
    /// Solve for the noise at which a statistic of η is this
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) target_eta: Option<f64>,
    /// The statistic of --target-eta
    #[arg(long, value_enum, default_value_t = Statistic::Max, requires = "target_eta")]
    #[arg(conflicts_with_all = ["sigma", "target_sd"])]
    pub(crate) statistic: Statistic,
    /// Solve for the noise at which no unbiased estimate of an attribute (or of a secret target) is closer than this, in
    /// its own units; may be repeated
    #[arg(long, value_name = "ATTRIBUTE=VALUE")]
    pub(crate) target_sd: Vec<String>,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// How many times the model is released, each time with fresh noise
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub(crate) releases: u32,
    /// Whether the target is part of the record's secret
    #[arg(long, value_enum, default_value_t = Label::Secret)]
    pub(crate) label: Label,
    /// Measure what noise costs on these rows
    #[arg(long, value_name = "FILE")]
    pub(crate) test: Vec<PathBuf>,
    /// Measure what noise costs on this share of rows, which are not fitted to
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) holdout: Option<f64>,
    /// Seed of the split [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Score points that were not in the training set
    #[arg(long, value_name = "FILE")]
    pub(crate) score: Vec<PathBuf>,
    /// Spread of what an attacker knows beforehand of an attribute [default: the population's]
    #[arg(long, value_name = "ATTRIBUTE=SD")]
    pub(crate) prior_sd: Vec<String>,
    /// Unit of an attribute, for display
    #[arg(long, value_name = "ATTRIBUTE=UNIT")]
    pub(crate) unit: Vec<String>,
    /// Exit with code 1 if a statistic of η over records is above a value: max, p99 or mean
    #[arg(long, value_name = "STATISTIC=VALUE")]
    pub(crate) fail_above: Vec<String>,
    /// Show what any attacker can guess of this attribute, beside what attacks do
    #[arg(long, value_name = "ATTRIBUTE")]
    pub(crate) secret: Option<String>,
    /// Two values of an attribute to tell apart, instead of its 10% and 90% quantiles and of each
    /// record's own value and the median
    #[arg(long, value_name = "ATTRIBUTE=A,B")]
    pub(crate) tell: Vec<String>,
    /// Values that are told apart at most this often count as protected
    #[arg(long, value_name = "SHARE", default_value_t = PROTECT_AT, allow_negative_numbers = true)]
    pub(crate) protect_at: f64,
    /// About how long telling values apart may take, in seconds, or `all`: as long as it takes
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true)]
    pub(crate) tell_budget: String,
    /// Whether leakage counts that columns are scaled by their own data
    #[arg(long, value_enum, default_value_t = ScalingMode::Counted)]
    pub(crate) scaling: ScalingMode,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where results go.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct OutputArgs {
    /// Folder for audit.json, records.parquet and report.html
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Format of the table of records
    #[arg(long, value_enum, default_value_t = RecordsFormat::Parquet)]
    pub(crate) format: RecordsFormat,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let request = request(args)?;
    args.output.run.start()?;
    let format = args.output.format;
    let folder = args.output.out.as_deref().map(|dir| Folder::open(dir, format)).transpose()?;
    if let Some(folder) = &folder {
        let read: Vec<&Path> = request.inputs().into_iter().chain(args.coefficients.as_deref()).collect();
        let files = saving::audit_files(request.score.is_some());
        folder.spare(&read, files.texts, files.tables)?;
    }
    if let (false, Some(folder)) = (args.output.run.quiet, &folder)
        && leakscope::release::holds_releases(folder.path())
    {
        crate::tell!(
            "warning: {} holds releases, which may be passed on: an audit is for the owner alone, and better kept in a folder of its own",
            folder.path().display()
        );
    }
    let display =
        Display::start(args.output.run.quiet || args.output.run.json, args.output.out.clone())?.may_end();
    let on_encoding =
        |encoding: &Encoding| display.remark(&(columns(encoding, &args.table.columns.drop) + "\n"));
    let Outcome { mut audit, mut pending } =
        audit::run(&request, folder.as_ref(), &display.hooks, &on_encoding)?;
    let mut written = vec![];
    if let Some(folder) = &folder {
        let clock = Instant::now();
        audit.tables = pending.table_names();
        let beside = Beside {
            records: audit::explore::sample(&audit, &mut pending),
            command: Some(command_line()),
            release: release_of_this()?,
            fingerprint: if audit.redact { None } else { saving::fingerprint(folder, &request.read)? },
        };
        let page = leakscope_report::page_with(&audit, &beside);
        audit.timings.report = clock.elapsed().as_secs_f64();
        folder.page(&mut pending, PageKind::Audit, &page)?;
        folder.text(&mut pending, "audit.json", &leakscope_report::json(&audit))?;
        display.check()?;
        display.settle();
        written = folder.publish(pending)?;
    }
    display.finish();
    show(args, &audit, &written)?;
    let breached = audit.limits.iter().any(|l| !l.ok);
    Ok(ExitCode::from(u8::from(breached)))
}

/// What was typed, as a shell takes it.
fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| leakscope_report::quoted(&word.to_string_lossy()));
    std::iter::once("leakscope".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The line that releases what this one audits, options of a configuration file included.
fn release_of_this() -> Result<Option<String>> {
    let command = super::command();
    let words = super::config::expanded(std::env::args_os().collect(), &command)?;
    Ok(release_line(&words, &command))
}

fn show(args: &Args, audit: &Audit, written: &[PathBuf]) -> Result<()> {
    let stdout = std::io::stdout();
    let text = if args.output.run.json {
        leakscope_report::json(audit)
    } else {
        let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let shown = if args.output.run.quiet { &Audit { warnings: vec![], ..audit.clone() } } else { audit };
        leakscope_report::summary(shown, 80, colour)
    };
    // Whoever reads may stop early (`| head`): that is no failure.
    let _ = stdout.lock().write_all(for_reader(&text).as_bytes());
    if !args.output.run.quiet && !args.output.run.json {
        crate::note!();
        if let (None, Some(seed)) = (args.seed, audit.seed) {
            crate::note!("seed {seed} (drawn; give it with --seed to repeat this split)");
        }
        for path in written {
            crate::note!("wrote {}", path.display());
        }
        if written.is_empty() {
            crate::tell!(
                "nothing was written: --out DIR keeps the report, the audit as JSON and a table of records"
            );
        }
    }
    Ok(())
}

pub(crate) fn request(args: &Args) -> Result<Request> {
    let t = &args.table;
    let noise = noise(args)?;
    let others = |files: &[PathBuf]| -> Result<_> {
        if files.is_empty() { Ok(None) } else { t.read_options(files).map(Some) }
    };
    Ok(Request {
        coefficients: args.coefficients.as_deref().map(read_coefficients).transpose()?,
        noise,
        releases: args.releases,
        label_secret: args.label == Label::Secret,
        test: others(&args.test)?,
        holdout: args.holdout,
        seed: args.seed,
        score: others(&args.score)?,
        prior_sd: args.prior_sd.iter().map(|t| name_and_number("prior_sd", t)).collect::<Result<_>>()?,
        units: args.unit.iter().map(|t| name_and_text("unit", t)).collect::<Result<_>>()?,
        limits: args.fail_above.iter().map(|t| limit(t)).collect::<Result<_>>()?,
        secret: args.secret.clone(),
        tell: args.tell.iter().map(|t| pair(t)).collect::<Result<_>>()?,
        protect_at: args.protect_at,
        tell_budget: tell_budget(&args.tell_budget)?,
        scaling: args.scaling,
        redact: args.output.redact.redact,
        ..of_model(t, &args.model)?
    })
}

/// σ, or what the noise must achieve.
fn noise(args: &Args) -> Result<Noise> {
    let shaped = args.shape.is_needed(args.target_eta, &args.target_sd);
    match (args.sigma, args.target_eta, args.target_sd.as_slice()) {
        (Some(_), ..) if shaped => Err(Failure::option(
            "sigma",
            "noise with a shape has no σ: say what it must achieve with ⟨target_eta⟩ or ⟨target_sd⟩, or take \
             ⟨noise_shape=isotropic⟩",
        )),
        _ if shaped && args.statistic != Statistic::Max => {
            let message = "a target of noise with a shape is for every record: leave it out";
            Err(Failure::option("statistic", message))
        }
        (_, eta, sd) if shaped => Ok(Noise::Shaped(Box::new(args.shape.options(&args.table, eta, sd)?))),
        (Some(sigma), ..) => Ok(Noise::Given(sigma)),
        (_, Some(eta), _) => Ok(Noise::TargetEta { eta, statistic: args.statistic }),
        (_, _, [text, ..]) => {
            let (attribute, sd) = name_and_number("target_sd", text)?;
            Ok(Noise::TargetSd { attribute, sd })
        }
        (None, None, []) => Ok(Noise::Default),
    }
}

/// `NAME=A,B`.
pub(crate) fn pair(text: &str) -> Result<Pair> {
    let (attribute, values) = name_and_text("tell", text)?;
    match values.split_once(',') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && !b.contains(',') => {
            Ok(Pair { attribute, values: [a, b].map(|v| v.trim().to_owned()) })
        }
        Some(_) | None => {
            Err(Failure::option("tell", format!("`{text}`: expected NAME=A,B, such as age=40,60")))
        }
    }
}

/// Seconds, or none for `all`.
pub(crate) fn tell_budget(text: &str) -> Result<Option<f64>> {
    if text.trim() == "all" {
        return Ok(None);
    }
    let seconds = text.trim().parse::<f64>();
    let message = || format!("`{text}`: expected seconds, or `all`");
    seconds.map(Some).map_err(|_| Failure::option("tell_budget", message()))
}

fn limit(text: &str) -> Result<Limit> {
    let (name, limit) = name_and_number("fail_above", text)?;
    let statistic = match name.as_str() {
        // `eta` is what `max` was called before every command named its statistics alike.
        "max" | "eta" => Statistic::Max,
        "p99" => Statistic::P99,
        "mean" => Statistic::Mean,
        other => {
            let message = format!("`{other}`: expected max, p99 or mean, such as max=0.1");
            return Err(Failure::option("fail_above", message));
        }
    };
    Ok(Limit { statistic, limit })
}
