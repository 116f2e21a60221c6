//! What a question found, until Python asks for parts of it.

use crate::failure::{LeakscopeError, exception};
use crate::frames::{Named, ResultTable, bytes};
use crate::keywords::option;
use leakscope::compare::SummaryFormat;
use leakscope::net::attack::informed::{self, InformedOutcome};
use leakscope::net::attack::inversion::{self, InversionOutcome};
use leakscope::net::attack::membership::{self, MembershipOutcome};
use leakscope::net::memory::{self, NetMeasured};
use leakscope::net::training::{self, NetTraining};
use leakscope::output::Results;
use leakscope::spelling::for_reader;
use leakscope::{Result, saving};
use leakscope_report::account::Costs;
use leakscope_report::bound::SecretBounds;
use leakscope_report::calibrate::Calibration;
use leakscope_report::net as net_page;
use leakscope_report::release::Owned;
use leakscope_report::text_audit::Texts;
use leakscope_report::{Attack, Audit, Balance, Canary, Comparison, PageKind, TextAudit};
use leakscope_table::RecordsFormat;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A document of one of the questions.
#[derive(Debug)]
pub(crate) enum Document {
    Audit(Box<Audit>),
    Balance(Box<Balance>),
    Attack(Box<Attack>),
    Release(Box<Owned>),
    Account(Box<Costs>),
    Bound(Box<SecretBounds>),
    Calibration(Box<Calibration>),
    Canary(Box<Canary>),
    Comparison(Box<Comparison>),
    Texts(Box<(TextAudit, Texts)>),
    Net(Box<NetMeasured>),
    Training(Box<NetTraining>),
    Inversion(Box<InversionOutcome>),
    Membership(Box<MembershipOutcome>),
    Informed(Box<InformedOutcome>),
}

/// A document and the tables that go with it.
#[pyclass(module = "leakscope._native", frozen)]
#[derive(Debug)]
pub(crate) struct Outcome {
    document: Document,
    tables: Vec<Arc<Results>>,
    /// Every step of a training run.
    steps: Option<ResultTable>,
    /// Files that were written already.
    written: Vec<PathBuf>,
}

impl Outcome {
    pub(crate) fn new(document: Document, tables: Vec<Arc<Results>>) -> Self {
        Self { document, tables, steps: None, written: vec![] }
    }

    pub(crate) fn of_training(training: NetTraining, steps: ResultTable) -> Self {
        let tables = training.tables.clone();
        Self { steps: Some(steps), ..Self::new(Document::Training(Box::new(training)), tables) }
    }

    /// One whose files are written already.
    pub(crate) fn stored(document: Document, tables: Vec<Arc<Results>>, written: Vec<PathBuf>) -> Self {
        Self { written, ..Self::new(document, tables) }
    }

    pub(crate) fn of_release(release: Box<Owned>, written: Vec<PathBuf>) -> Self {
        Self { written, ..Self::new(Document::Release(release), vec![]) }
    }

    fn write_into(&self, out: &Path, format: RecordsFormat) -> Result<Vec<PathBuf>> {
        let answer = |kind: PageKind| saving::answer(out, kind, &self.json(), self.page().as_deref());
        match &self.document {
            Document::Audit(audit) => saving::audit(audit, &self.tables, out, format),
            Document::Balance(balance) => saving::balance(balance, &self.tables, out, format),
            Document::Attack(attack) => saving::attack(attack, out),
            Document::Release(release) => saving::release(&release.statement, out),
            Document::Account(_) => answer(PageKind::Account),
            Document::Bound(_) => answer(PageKind::Bound),
            Document::Calibration(_) => answer(PageKind::Calibrate),
            Document::Canary(_) => answer(PageKind::Canary),
            Document::Comparison(_) => answer(PageKind::Comparison),
            Document::Texts(answer) => {
                leakscope::text::audit::write(&answer.0, &answer.1, &self.tables, out, format)
            }
            Document::Net(measured) => memory::write(measured, out, format),
            Document::Training(run) => training::write(run, out, format),
            Document::Inversion(answer) => inversion::write(answer, out, format),
            Document::Membership(answer) => membership::write(answer, out, format),
            Document::Informed(answer) => informed::write(answer, out),
        }
    }
}

#[pymethods]
impl Outcome {
    /// The document as text: what the command prints with its JSON option.
    fn json(&self) -> String {
        match &self.document {
            Document::Audit(audit) => leakscope_report::json(audit),
            Document::Balance(balance) => leakscope_report::owners_document(balance),
            Document::Attack(attack) => leakscope_report::owners_document(attack),
            Document::Release(release) => leakscope_report::owners_document(release),
            Document::Account(costs) => costs.json(),
            Document::Bound(answer) => leakscope::bound::document(answer),
            Document::Calibration(answer) => leakscope::calibrate::document(answer),
            Document::Canary(answer) => leakscope_report::document(answer),
            Document::Comparison(answer) => leakscope_report::owners_document(answer),
            Document::Texts(answer) => leakscope_report::owners_document(&answer.0),
            Document::Net(measured) => net_page::to_json(&measured.audit),
            Document::Training(run) => net_page::to_json(&run.training),
            Document::Inversion(answer) => net_page::to_json(&answer.document),
            Document::Membership(answer) => net_page::to_json(&answer.document),
            Document::Informed(answer) => net_page::to_json(&answer.document),
        }
    }

    /// The page; `None` where there is none.
    fn page(&self) -> Option<String> {
        let page = match &self.document {
            Document::Audit(audit) => Some(leakscope_report::page(audit)),
            Document::Balance(balance) => Some(leakscope_report::balance_page(balance)),
            Document::Attack(attack) => Some(leakscope_report::attack_page(attack)),
            // The owner's: the one that is published is among its files.
            Document::Release(release) => Some(leakscope_report::owners_release_page(release)),
            Document::Account(costs) => Some(leakscope_report::account_page(costs)),
            Document::Bound(answer) => Some(leakscope_report::bound_page(answer)),
            Document::Calibration(_) => None,
            Document::Canary(answer) => Some(leakscope_report::canary_page(answer)),
            Document::Comparison(answer) => Some(leakscope_report::comparison_page(answer)),
            Document::Texts(answer) => Some(leakscope_report::text_audit_page(&answer.0, &answer.1)),
            Document::Net(measured) => Some(net_page::page(&measured.audit, &measured.pictures)),
            Document::Training(run) => Some(net_page::training_page(&run.training)),
            Document::Inversion(answer) => Some(net_page::inversion_page(&answer.document, &answer.pictures)),
            Document::Membership(answer) => Some(net_page::membership_page(&answer.document)),
            Document::Informed(answer) => Some(net_page::informed_page(&answer.document, &answer.pictures)),
        };
        page.map(|page| leakscope_report::rewritten_page(&page, for_reader))
    }

    /// A screenful of text for people.
    fn summary(&self, width: usize) -> String {
        for_reader(&match &self.document {
            Document::Audit(audit) => leakscope_report::summary(audit, width, false),
            Document::Balance(balance) => leakscope::balance::summary(balance),
            Document::Attack(attack) => leakscope::attack::summary(attack),
            Document::Release(release) => leakscope::release::summary(release),
            Document::Account(costs) => leakscope_report::account_summary(costs),
            Document::Bound(answer) => leakscope::bound::summary(answer),
            Document::Calibration(answer) => leakscope_report::calibration(answer),
            Document::Canary(answer) => leakscope_report::canary_summary(answer),
            Document::Comparison(answer) => leakscope_report::comparison_summary(answer, width, false),
            Document::Texts(answer) => leakscope_report::text_audit_summary(&answer.0),
            Document::Net(measured) => net_page::summary(&measured.audit),
            Document::Training(run) => net_page::training_summary(&run.training),
            Document::Inversion(answer) => net_page::inversion_summary(&answer.document),
            Document::Membership(answer) => net_page::membership_summary(&answer.document),
            Document::Informed(answer) => net_page::informed_summary(&answer.document),
        })
    }

    /// A comparison for other programmes, naming no record and no value of the data; `None` of anything else.
    fn pipeline(&self, format: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let Document::Comparison(answer) = &self.document else { return Ok(None) };
        let format: SummaryFormat = option("format", format)?;
        Ok(Some(format.of(answer)))
    }

    /// PLIS of every value of every record (float64) of a network's audit; `None` where there is none.
    fn maps<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Document::Net(measured) = &self.document else { return Ok(None) };
        let maps = &measured.maps;
        if maps.is_empty() {
            return Ok(None);
        }
        Ok(Some(bytes(py, maps.len(), maps.iter().map(|x| x.to_ne_bytes()))?))
    }

    /// Reconstructions (float64) of an attack on a network; `None` where there are none.
    fn reconstructions<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let values = match &self.document {
            Document::Inversion(answer) => &answer.reconstructions,
            Document::Informed(answer) => &answer.reconstructions,
            Document::Audit(_)
            | Document::Balance(_)
            | Document::Attack(_)
            | Document::Release(_)
            | Document::Account(_)
            | Document::Bound(_)
            | Document::Calibration(_)
            | Document::Canary(_)
            | Document::Comparison(_)
            | Document::Texts(_)
            | Document::Net(_)
            | Document::Training(_)
            | Document::Membership(_) => return Ok(None),
        };
        Ok(Some(bytes(py, values.len(), values.iter().map(|x| x.to_ne_bytes()))?))
    }

    /// Numbers of the records that were attacked by inversion.
    fn attacked(&self) -> Vec<usize> {
        let Document::Inversion(answer) = &self.document else { return vec![] };
        answer.records.clone()
    }

    /// Files that were written already.
    fn written(&self) -> Vec<PathBuf> {
        self.written.clone()
    }

    /// Names of its tables.
    fn tables(&self) -> Vec<String> {
        let of_document: &[&str] = match &self.document {
            Document::Audit(audit) if audit.inference.is_some() => &["attributes", "groups", "inference"],
            Document::Audit(_) => &["attributes", "groups"],
            Document::Attack(_) => &["results"],
            Document::Training(_) => &["steps"],
            Document::Balance(_)
            | Document::Release(_)
            | Document::Account(_)
            | Document::Bound(_)
            | Document::Calibration(_)
            | Document::Canary(_)
            | Document::Comparison(_)
            | Document::Texts(_)
            | Document::Net(_)
            | Document::Inversion(_)
            | Document::Membership(_)
            | Document::Informed(_) => &[],
        };
        let of_records = self.tables.iter().map(|t| t.name.clone());
        of_records.chain(of_document.iter().map(|name| (*name).to_owned())).collect()
    }

    /// A table by name; `None` where there is none.
    fn table(&self, name: &str) -> Option<ResultTable> {
        match (&self.document, name) {
            (Document::Audit(audit), "attributes") => {
                return Some(ResultTable::of_document(&audit.attributes));
            }
            (Document::Audit(audit), "groups") => return Some(ResultTable::of_document(&audit.groups)),
            (Document::Audit(audit), "inference") => {
                return audit.inference.as_ref().map(|i| ResultTable::of_document(&i.coefficients));
            }
            (Document::Attack(attack), "results") => {
                let all: Vec<_> = attack.results.iter().chain(&attack.results_balanced).collect();
                return Some(ResultTable::of_document(&all));
            }
            (Document::Training(_), "steps") => return self.steps.clone(),
            _ => {}
        }
        let named = match &self.document {
            Document::Net(_)
            | Document::Training(_)
            | Document::Texts(_)
            | Document::Inversion(_)
            | Document::Membership(_)
            | Document::Informed(_) => Named::Record,
            Document::Audit(_)
            | Document::Balance(_)
            | Document::Attack(_)
            | Document::Release(_)
            | Document::Account(_)
            | Document::Bound(_)
            | Document::Calibration(_)
            | Document::Canary(_)
            | Document::Comparison(_) => Named::Row,
        };
        self.tables.iter().find(|t| t.name == name).map(|t| ResultTable::of(t, named))
    }

    /// Writes into a folder what the command leaves there.
    fn write(&self, py: Python<'_>, out: PathBuf, format: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
        let format: RecordsFormat = option("format", format)?;
        py.detach(|| self.write_into(&out, format)).map_err(|failure| exception(&failure))
    }

    /// Writes the page into a file.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let page = py.detach(|| self.page());
        let page = page.ok_or_else(|| {
            LeakscopeError::new_err(
                "this answer has no page: summary() shows it, to_json() and save() keep it",
            )
        })?;
        leakscope::output::write_text(&path, &page).map_err(|failure| exception(&failure))
    }
}
