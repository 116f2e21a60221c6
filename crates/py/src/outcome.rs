//! What a command found, until Python asks for parts of it.

use crate::failure::exception;
use leakscope::Failure;
use leakscope::calls::{self, Answer, NetMeasured, Results};
use leakscope_report::net as net_page;
use leakscope_report::{Attack, Audit, Balance, Release};
use leakscope_table::RecordsFormat;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;

/// A document of one of the commands.
#[derive(Debug)]
pub(crate) enum Document {
    Audit(Box<Audit>),
    Balance(Box<Balance>),
    Attack(Box<Attack>),
    Release(Box<Release>),
    Answer(Answer),
    Net(Box<NetMeasured>),
}

/// A document and the tables that go with it.
#[pyclass(module = "leakscope._native", frozen)]
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) document: Document,
    pub(crate) tables: Vec<Results>,
    /// Files that were written already.
    pub(crate) written: Vec<PathBuf>,
}

impl Outcome {
    pub(crate) fn new(document: Document, tables: Vec<Results>) -> Self {
        Self { document, tables, written: vec![] }
    }
}

/// Items end to end.
pub(crate) fn bytes<'py, const N: usize>(
    py: Python<'py>,
    count: usize,
    items: impl Iterator<Item = [u8; N]>,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, N * count, |out| {
        out.chunks_exact_mut(N).zip(items).for_each(|(to, from)| to.copy_from_slice(&from));
        Ok(())
    })
}

#[pymethods]
impl Outcome {
    /// What the command prints with `--json`.
    fn json(&self) -> String {
        match &self.document {
            Document::Audit(audit) => leakscope_report::json(audit),
            Document::Balance(balance) => leakscope_report::document(balance),
            Document::Attack(attack) => leakscope_report::document(attack),
            Document::Release(release) => leakscope_report::document(release),
            Document::Answer(answer) => answer.json.clone(),
            Document::Net(found) => net_page::to_json(&found.audit),
        }
    }

    /// The page; `None` where the command has none.
    fn page(&self) -> Option<String> {
        match &self.document {
            Document::Audit(audit) => Some(leakscope_report::page(audit)),
            Document::Balance(balance) => Some(leakscope_report::balance_page(balance)),
            Document::Attack(attack) => Some(leakscope_report::attack_page(attack)),
            Document::Release(release) => Some(leakscope_report::release_page(release)),
            Document::Answer(answer) => answer.page.clone(),
            Document::Net(found) => Some(net_page::page(&found.audit, &found.pictures)),
        }
    }

    /// What the command prints for people.
    fn summary(&self, width: usize) -> String {
        match &self.document {
            Document::Audit(audit) => leakscope_report::summary(audit, width, false),
            Document::Balance(balance) => leakscope::balance::summary(balance),
            Document::Attack(attack) => leakscope::attack::summary(attack),
            Document::Release(release) => leakscope::release::summary(release),
            Document::Answer(answer) => answer.text.clone(),
            Document::Net(found) => net_page::summary(&found.audit),
        }
    }

    /// PLIS of every value of every record (float64) of a network's audit; `None` where there is none.
    fn maps<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match &self.document {
            Document::Net(found) if !found.maps.is_empty() => {
                Ok(Some(bytes(py, found.maps.len(), found.maps.iter().map(|x| x.to_ne_bytes()))?))
            }
            _ => Ok(None),
        }
    }

    /// Files that the command wrote.
    fn written(&self) -> Vec<PathBuf> {
        self.written.clone()
    }

    /// A table by name: the name of the id column, positions (int64), ids, texts and numbers (float64) by column.
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let tables = match &self.document {
            Document::Net(found) => &found.tables,
            _ => &self.tables,
        };
        let Some(table) = tables.iter().find(|t| t.name == name) else { return Ok(None) };
        let found = PyDict::new(py);
        let rows = table.parts.iter().map(|p| p.ids.len()).sum();
        let parts = || table.parts.iter();
        let positions = parts().flat_map(|p| p.positions.iter()).map(|p| (*p as i64).to_ne_bytes());
        found.set_item("positions", bytes(py, rows, positions)?)?;
        found.set_item("id", &table.schema.id)?;
        found.set_item("ids", parts().flat_map(|p| p.ids.iter()).collect::<Vec<_>>())?;
        let text = |k: usize| parts().flat_map(move |p| p.texts[k].iter()).collect::<Vec<_>>();
        let texts: Vec<_> = table.schema.texts.iter().enumerate().map(|(k, name)| (name, text(k))).collect();
        found.set_item("texts", texts)?;
        let mut numbers = vec![];
        for (k, name) in table.schema.numbers.iter().enumerate() {
            let values = parts().flat_map(|p| p.numbers[k].iter()).map(|x| x.to_ne_bytes());
            numbers.push((name, bytes(py, rows, values)?));
        }
        found.set_item("numbers", numbers)?;
        Ok(Some(found))
    }

    /// Writes into a folder what the command leaves with `--out`.
    fn write(&self, py: Python<'_>, out: PathBuf, csv: bool) -> PyResult<Vec<PathBuf>> {
        let format = if csv { RecordsFormat::Csv } else { RecordsFormat::Parquet };
        let written = py.detach(|| match &self.document {
            Document::Audit(audit) => calls::write_audit(audit, &self.tables, &out, format),
            Document::Balance(balance) => calls::write_balance(balance, &self.tables, &out, format),
            Document::Attack(attack) => calls::write_attack(attack, &out),
            Document::Net(found) => calls::write_net_audit(found, &out, format),
            Document::Release(_) | Document::Answer(_) => {
                Err(Failure::Message("there are no files of this: keep what to_json gives".into()))
            }
        });
        written.map_err(|failure| exception(&failure))
    }
}
