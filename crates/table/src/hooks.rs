//! What a caller can hang into a pass: a request to stop, and progress.

use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a pass over the table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Finding record boundaries of CSV files.
    Index,
    /// Ranges, means, levels, duplicates.
    Profile,
    /// The largest row norm.
    Norm,
    /// Covariance for principal components.
    Components,
    /// The first encoding of a subset.
    Encode,
    /// A pass that the caller asked for.
    Pass,
    /// Matrices over all coefficients inverted and decomposed: with thousands of columns, most of the work.
    Matrices,
    /// Standard errors of the coefficients.
    Errors,
    /// Records measured one by one.
    Records,
    /// Values told apart, question by question.
    Tell,
    /// Steps of a training run.
    Steps,
}

impl Stage {
    /// What is going on, in words for a progress bar.
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => "finding rows",
            Self::Profile => "reading columns",
            Self::Norm => "scaling",
            Self::Components => "principal components",
            Self::Encode => "encoding",
            Self::Pass => "computing",
            Self::Matrices => "inverting matrices",
            Self::Errors => "errors of coefficients",
            Self::Records => "measuring records",
            Self::Tell => "telling values apart",
            Self::Steps => "training",
        }
    }
}

/// How far a pass has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What the pass is for.
    pub stage: Stage,
    /// Rows read so far in this pass; for [`Stage::Index`], bytes.
    pub done: u64,
    /// Rows in all; for [`Stage::Index`], bytes.
    pub total: u64,
}

/// Called with progress, from several threads.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// A request to stop and a listener for progress; the default never stops and tells nobody.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Set to true to stop at the next block with [`Error::Interrupted`].
    pub interrupt: Arc<AtomicBool>,
    /// Told after every block.
    pub progress: Option<OnProgress>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("interrupt", &self.interrupt)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The hooks of one pass in progress.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    hooks: &'a Hooks,
    stage: Stage,
    done: AtomicU64,
    total: u64,
}

impl Hooks {
    /// Whether the caller has asked to stop.
    pub fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Tells whoever listens how far a stage has come.
    pub fn report(&self, stage: Stage, done: u64, total: u64) {
        if let Some(progress) = &self.progress {
            progress(Progress { stage, done, total });
        }
    }

    /// The same between steps that cannot be stopped inside.
    ///
    /// # Errors
    /// Where the caller has asked to stop.
    pub fn step(&self, stage: Stage, done: u64, total: u64) -> Result<()> {
        if self.interrupted() {
            return Err(Error::Interrupted);
        }
        self.report(stage, done, total);
        Ok(())
    }

    pub(crate) fn watch(&self, stage: Stage, total: u64) -> Watch<'_> {
        Watch { hooks: self, stage, done: AtomicU64::new(0), total }
    }
}

impl Watch<'_> {
    /// Stops if asked to; otherwise reports `more` done.
    pub(crate) fn advance(&self, more: u64) -> Result<()> {
        if self.hooks.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        if let Some(progress) = &self.hooks.progress {
            progress(Progress { stage: self.stage, done, total: self.total });
        }
        Ok(())
    }
}
