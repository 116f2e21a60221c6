//! Options that every command on a model has besides those of the table: rows to test on, and where results go.

use super::table_args::{ModelArgs, TableArgs};
use crate::terminal::laid_out;
use leakscope::audit::Request;
use leakscope::output::Folder;
use leakscope::spelling::for_reader;
use leakscope::{Failure, Result};
use leakscope_net::leak::Label;
use leakscope_table::RecordsFormat;
use std::io::Write;
use std::path::PathBuf;

/// Rows to measure utility on.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct TestArgs {
    /// Score the model on these rows
    #[arg(long, value_name = "FILE")]
    pub(crate) test: Vec<PathBuf>,
    /// Score the model on this share of rows, which are not fitted to
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) holdout: Option<f64>,
    /// Whether the target is part of the record's secret
    #[arg(long, value_enum, default_value_t = Label::Secret)]
    pub(crate) label: Label,
}

/// Whom the page is for.
#[derive(clap::Args, Debug, Clone, Copy)]
pub(crate) struct RedactArgs {
    /// Name no record on the page, for sharing the page alone: numbers stand for the most exposed; pictures, texts, the list of all
    /// records, the command and the fingerprint of the data are left out (values and levels that few records have stay, and
    /// documents and tables are as they were)
    #[arg(long)]
    pub(crate) redact: bool,
}

/// Where results go.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct OutArgs {
    /// Folder for the results and report.html
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// How the command runs and speaks.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct RunArgs {
    /// Print the results as JSON to stdout, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// No remarks, no warnings (they stay in the results) and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// How many threads compute.
#[derive(clap::Args, Debug, Clone, Copy)]
pub(crate) struct ThreadArgs {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl ThreadArgs {
    /// Sets the number of threads.
    pub(crate) fn start(self) -> Result<()> {
        match self.threads {
            None => Ok(()),
            Some(0) => Err(Failure::number("threads", 0, "expected at least 1")),
            Some(threads) => rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build_global()
                .map_err(|e| Failure::option("threads", e)),
        }
    }
}

impl RunArgs {
    /// Sets the number of threads.
    pub(crate) fn start(&self) -> Result<()> {
        self.threads.start()
    }

    /// What the user should know, on stderr.
    pub(crate) fn warn(&self, warnings: &[String]) {
        if !self.quiet {
            warnings.iter().for_each(|warning| crate::tell!("warning: {}", for_reader(warning)));
        }
    }

    /// Prints the document or the summary, and where files went.
    pub(crate) fn show(&self, json: &str, summary: &str, written: &[PathBuf]) {
        let stdout = std::io::stdout();
        let text = if self.json { for_reader(json) } else { laid_out(for_reader(summary), &stdout) };
        // Whoever reads may stop early (`| head`): that is no failure.
        let _ = stdout.lock().write_all(text.as_bytes());
        if !self.quiet && !self.json {
            for path in written {
                crate::note!("wrote {}", path.display());
            }
        }
    }
}

impl OutArgs {
    /// Opens the folder, if there is one.
    pub(crate) fn folder(&self, format: RecordsFormat) -> Result<Option<Folder>> {
        self.out.as_deref().map(|dir| Folder::open(dir, format)).transpose()
    }
}

/// What a request says of the table and the model.
pub(crate) fn of_model(t: &TableArgs, model: &ModelArgs) -> Result<Request> {
    Ok(Request {
        read: t.read_options(&t.files)?,
        roles: t.roles(),
        one_hot: t.columns.one_hot,
        scale: t.columns.scale,
        pca: t.columns.pca,
        missing: t.columns.missing,
        positive: t.columns.positive.clone(),
        public: t.columns.public.public()?,
        min_level_count: t.columns.public.min_level_count,
        family: model.kind()?,
        max_classes: model.max_classes,
        l2: model.l2,
        intercept: !model.no_intercept,
        ..Request::default()
    })
}

/// A request for the model of these arguments.
pub(crate) fn request(
    t: &TableArgs,
    model: &ModelArgs,
    test: &TestArgs,
    seed: Option<u64>,
) -> Result<Request> {
    Ok(Request {
        label_secret: test.label == Label::Secret,
        test: if test.test.is_empty() { None } else { Some(t.read_options(&test.test)?) },
        holdout: test.holdout,
        seed,
        ..of_model(t, model)?
    })
}
