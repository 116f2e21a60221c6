//! From paths to documents that can be compared: of one kind, of one version, about one table.

use crate::{Failure, Result};
use leakscope_core::dp::Target;
use leakscope_report::account::Costs;
use leakscope_report::calibrate::{Aim, Calibration, Leakage};
use leakscope_report::comparison::{EtaOver, Kind};
use leakscope_report::document::net::{AUDIT_SCHEMA, NetAudit};
use leakscope_report::document::public::PerturbationKind;
use leakscope_report::document::training::{TRAINING_SCHEMA, Training};
use leakscope_report::informed::Informed;
use leakscope_report::inversion::Inversion;
use leakscope_report::membership::Membership;
use leakscope_report::verdict::{self, Verdict};
use leakscope_report::{
    Attack, Audit, Balance, Canary, Release, Reproduction, TextAudit, bound, format, words,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of the documents that a folder of results may hold.
const FILES: [&str; 13] = [
    "audit.json",
    "balance.json",
    "attack.json",
    "bound.json",
    "release.json",
    "training.json",
    "canary.json",
    "account.json",
    "calibrate.json",
    "inversion.json",
    "membership.json",
    "informed.json",
    "reproduce.json",
];

/// A document that can be compared.
#[derive(Debug)]
pub(super) enum Document {
    Audit(Box<Audit>),
    Balance(Box<Balance>),
    Attack(Box<Attack>),
    Bound(Box<bound::SecretBounds>),
    Release(Box<Release>),
    Training(Box<Training>),
    NetAudit(Box<NetAudit>),
    Canary(Box<Canary>),
    TextAudit(Box<TextAudit>),
    Account(Box<Costs>),
    Calibrate(Box<Calibration>),
    Inversion(Box<Inversion>),
    Membership(Box<Membership>),
    Informed(Box<Informed>),
    Reproduce(Box<Reproduction>),
}

/// A document with where it comes from.
#[derive(Debug)]
pub(super) struct Source {
    /// What it is called in the comparison.
    pub(super) name: String,
    /// The file.
    pub(super) file: PathBuf,
    /// What it holds.
    pub(super) document: Document,
}

/// The part of every document that says what it is.
#[derive(Deserialize)]
struct Header {
    schema: String,
}

/// Name and version of the schema of a kind.
fn schema(kind: Kind) -> &'static str {
    match kind {
        Kind::Audit => leakscope_report::audit::SCHEMA,
        Kind::Balance => leakscope_report::balance::SCHEMA,
        Kind::Attack => leakscope_report::attack::SCHEMA,
        Kind::Bound => bound::SCHEMA,
        Kind::Release => leakscope_report::release::SCHEMA,
        Kind::Training => TRAINING_SCHEMA,
        Kind::NetAudit => AUDIT_SCHEMA,
        Kind::Canary => leakscope_report::canary::SCHEMA,
        Kind::TextAudit => leakscope_report::text_audit::SCHEMA,
        Kind::Account => leakscope_report::account::SCHEMA,
        Kind::Calibrate => leakscope_report::calibrate::SCHEMA,
        Kind::Inversion => leakscope_report::inversion::SCHEMA,
        Kind::Membership => leakscope_report::membership::SCHEMA,
        Kind::Informed => leakscope_report::informed::SCHEMA,
        Kind::Reproduce => leakscope_report::reproduction::SCHEMA,
    }
}

fn names(kinds: impl IntoIterator<Item = Kind>) -> String {
    kinds.into_iter().map(Kind::name).collect::<Vec<_>>().join(", ")
}

/// A document that was found, before it is read in full.
struct Candidate {
    kind: Kind,
    file: PathBuf,
    text: String,
}

/// The documents of a path, with their kinds.
fn candidates(path: &Path) -> Result<Vec<Candidate>> {
    let shown = path.display();
    if !path.exists() {
        return Err(Failure::Message(format!(
            "{shown} does not exist: name a folder of results (of ⟨out⟩), or a document in one"
        )));
    }
    if !path.is_dir() {
        return Ok(vec![candidate(path)?]);
    }
    let files: Vec<PathBuf> = FILES.iter().map(|f| path.join(f)).filter(|f| f.is_file()).collect();
    if files.is_empty() {
        return Err(Failure::Message(match release_in(path) {
            Some(release) => {
                format!("{shown} is a folder of releases: name one of them, such as {}", release.display())
            }
            None => format!(
                "{shown} holds no result: expected one of {} in it, as a command with ⟨out⟩ leaves them",
                FILES.join(", ")
            ),
        }));
    }
    let all: Vec<Result<Candidate>> = files.iter().map(|f| candidate(f)).collect();
    // A document that cannot be compared is no harm beside one that can.
    match all.iter().any(Result::is_ok) {
        true => Ok(all.into_iter().filter_map(Result::ok).collect()),
        false => all.into_iter().collect(),
    }
}

/// A release below a folder of several.
fn release_in(path: &Path) -> Option<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.join("release.json").is_file())
        .collect();
    all.sort();
    all.pop()
}

fn candidate(file: &Path) -> Result<Candidate> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|e| Failure::Message(format!("cannot read {shown}: {e}")))?;
    let Header { schema: own } = serde_json::from_str(&text).map_err(|e| {
        Failure::Message(format!(
            "{shown} is no document of Leakscope ({e}): name a folder of results, or the JSON file in it"
        ))
    })?;
    if let Some(kind) = Kind::ALL.into_iter().find(|k| schema(*k) == own) {
        return Ok(Candidate { kind, file: file.into(), text });
    }
    let stem = |schema: &str| schema.split('/').next().unwrap_or_default().to_owned();
    Err(Failure::Message(match Kind::ALL.into_iter().find(|k| stem(schema(*k)) == stem(&own)) {
        Some(kind) => format!(
            "{shown} was written by another version (`{own}`, this one reads `{}`): run the command that made it again",
            schema(kind)
        ),
        None => {
            format!("{shown} is `{own}`, which cannot be compared: expected one of {}", names(Kind::ALL))
        }
    }))
}

/// The documents of all paths, of one kind and about one table.
pub(super) fn sources(paths: &[PathBuf], wanted: Option<Kind>) -> Result<(Kind, Vec<Source>)> {
    let all_candidates: Vec<Vec<Candidate>> = paths.iter().map(|p| candidates(p)).collect::<Result<_>>()?;
    let kind = common_kind(paths, &all_candidates, wanted)?;
    let chosen: Vec<Candidate> =
        all_candidates.into_iter().filter_map(|all| all.into_iter().find(|c| c.kind == kind)).collect();
    let files: Vec<&Path> = chosen.iter().map(|c| c.file.as_path()).collect();
    let called = short_names(paths, &files);
    let mut sources = vec![];
    for (name, Candidate { kind, file, text }) in called.into_iter().zip(chosen) {
        let document = read(kind, &file, &text)?;
        sources.push(Source { name, file, document });
    }
    if let Some((reference, others)) = sources.split_first() {
        others.iter().try_for_each(|other| same_table(reference, other))?;
    }
    Ok((kind, sources))
}

/// The one kind that every path has.
fn common_kind(paths: &[PathBuf], all_candidates: &[Vec<Candidate>], wanted: Option<Kind>) -> Result<Kind> {
    let has = |all: &Vec<Candidate>, kind: Kind| all.iter().any(|c| c.kind == kind);
    if let Some(kind) = wanted {
        return match all_candidates.iter().position(|all| !has(all, kind)) {
            None => Ok(kind),
            Some(i) => Err(Failure::text(
                "kind",
                kind.name(),
                format!(
                    "{} holds {} only",
                    paths[i].display(),
                    names(all_candidates[i].iter().map(|c| c.kind))
                ),
            )),
        };
    }
    let common: Vec<Kind> =
        Kind::ALL.into_iter().filter(|k| all_candidates.iter().all(|all| has(all, *k))).collect();
    match common[..] {
        [kind] => Ok(kind),
        [] => {
            let each: Vec<String> = paths
                .iter()
                .zip(all_candidates)
                .map(|(p, all)| format!("{} holds {}", p.display(), names(all.iter().map(|c| c.kind))))
                .collect();
            Err(Failure::Message(format!(
                "results of different kinds cannot be compared: {}; name results of one kind",
                each.join(", ")
            )))
        }
        [first, ..] => Err(Failure::option(
            "kind",
            format!(
                "these folders hold several kinds ({}): choose one, for example ⟨kind={}⟩",
                names(common.iter().copied()),
                first.name()
            ),
        )),
    }
}

fn read(kind: Kind, file: &Path, text: &str) -> Result<Document> {
    fn whole<T>(file: &Path, read: serde_json::Result<T>) -> Result<Box<T>> {
        read.map(Box::new).map_err(|e| {
            Failure::Message(format!(
                "{} was edited or cut off ({e}): run the command that made it again",
                file.display()
            ))
        })
    }
    fn of<T: DeserializeOwned>(file: &Path, text: &str) -> Result<Box<T>> {
        whole(file, serde_json::from_str(text))
    }
    Ok(match kind {
        Kind::Audit => Document::Audit(of(file, text)?),
        Kind::Balance => Document::Balance(of(file, text)?),
        Kind::Attack => Document::Attack(of(file, text)?),
        Kind::Bound => Document::Bound(of(file, text)?),
        Kind::Release => Document::Release(of(file, text)?),
        Kind::Training => Document::Training(of(file, text)?),
        Kind::NetAudit => Document::NetAudit(of(file, text)?),
        Kind::Canary => Document::Canary(of(file, text)?),
        Kind::TextAudit => Document::TextAudit(of(file, text)?),
        Kind::Account => Document::Account(whole(file, Costs::from_json(text))?),
        Kind::Calibrate => Document::Calibrate(of(file, text)?),
        Kind::Inversion => Document::Inversion(of(file, text)?),
        Kind::Membership => Document::Membership(of(file, text)?),
        Kind::Informed => Document::Informed(of(file, text)?),
        Kind::Reproduce => Document::Reproduce(of(file, text)?),
    })
}

/// Names that tell the results apart: the last part of each path, or all of it where two have the same.
fn short_names(paths: &[PathBuf], files: &[&Path]) -> Vec<String> {
    let last = |p: &Path| p.file_name().map(|n| n.to_string_lossy().into_owned());
    let short: Vec<String> = paths
        .iter()
        .zip(files)
        .map(|(path, file)| {
            // A document is called by its folder.
            let folder = if path.is_dir() { Some(path.as_path()) } else { file.parent() };
            folder.and_then(last).or_else(|| last(path)).unwrap_or_else(|| path.display().to_string())
        })
        .collect();
    let unique = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    if unique(&short) {
        return short;
    }
    let long: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    match unique(&long) {
        true => long,
        // One path twice.
        false => long.into_iter().enumerate().map(|(i, name)| format!("{name} ({})", i + 1)).collect(),
    }
}

/// What a result is about: results that differ in it are of different tables, or of different questions.
struct About {
    facts: Vec<(&'static str, String)>,
    columns: Option<BTreeSet<String>>,
}

fn same_table(reference: &Source, other: &Source) -> Result<()> {
    let (a, b) = (reference.document.about(), other.document.about());
    let (first, second) = (reference.file.display(), other.file.display());
    for ((fact, x), (_, y)) in a.facts.iter().zip(&b.facts) {
        if x != y {
            return Err(Failure::Message(format!(
                "{second} is about something else than {first}: its {fact} is `{y}`, there it is `{x}`; compare results of \
                 the same data"
            )));
        }
    }
    let (Some(a), Some(b)) = (&a.columns, &b.columns) else { return Ok(()) };
    let (only, place, not) = match (a.difference(b).next(), b.difference(a).next()) {
        (None, None) => return Ok(()),
        (Some(column), _) => (column, &first, &second),
        (None, Some(column)) => (column, &second, &first),
    };
    Err(Failure::Message(format!(
        "{second} is about another table than {first}: column `{only}` is in {place} and not in {not}; compare results of the \
         same table"
    )))
}

impl Document {
    /// The verdict of its page.
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            Self::Audit(d) => verdict::of_audit(d),
            Self::Balance(d) => verdict::of_balance(d),
            Self::Attack(d) => verdict::of_attack(d),
            Self::Bound(d) => verdict::of_bound(d),
            Self::Release(d) => verdict::of_release(d),
            Self::Training(d) => verdict::of_training(d),
            Self::NetAudit(d) => verdict::of_net_audit(d),
            Self::Canary(d) => verdict::of_canary(d),
            Self::TextAudit(d) => verdict::of_text_audit(d),
            Self::Account(d) => verdict::of_account(d),
            Self::Calibrate(d) => verdict::of_calibration(d),
            Self::Inversion(d) => verdict::of_inversion(d),
            Self::Membership(d) => verdict::of_membership(d),
            Self::Informed(d) => verdict::of_informed(d),
            Self::Reproduce(d) => verdict::of_reproduction(d),
        }
    }

    /// When it was made, where it says so.
    pub(super) fn created(&self) -> Option<String> {
        match self {
            Self::Audit(d) => Some(d.created.clone()),
            Self::Balance(d) => Some(d.created.clone()),
            Self::Attack(d) => Some(d.created.clone()),
            Self::Release(d) => Some(d.created.clone()),
            Self::Canary(d) => Some(d.created.clone()),
            Self::TextAudit(d) => Some(d.created.clone()),
            Self::Reproduce(d) => Some(d.created.clone()),
            Self::Bound(_)
            | Self::Training(_)
            | Self::NetAudit(_)
            | Self::Account(_)
            | Self::Calibrate(_)
            | Self::Inversion(_)
            | Self::Membership(_)
            | Self::Informed(_) => None,
        }
    }

    /// η over records, where it has one.
    pub(super) fn eta(&self) -> Option<EtaOver> {
        match self {
            Self::Audit(d) => {
                Some(EtaOver { mean: Some(d.records.eta.mean), largest: Some(d.records.eta.max) })
            }
            Self::Balance(d) => {
                let best = d.iterations.get(d.best)?;
                Some(EtaOver { mean: Some(best.eta_mean), largest: Some(best.eta_max) })
            }
            Self::Release(d) => d.eta.max.map(|eta| EtaOver { mean: None, largest: Some(eta) }),
            Self::NetAudit(d) => d.eta.as_ref().map(|e| EtaOver { mean: Some(e.mean), largest: Some(e.max) }),
            Self::TextAudit(d) => {
                d.eta.as_ref().map(|e| EtaOver { mean: Some(e.mean), largest: Some(e.max) })
            }
            Self::Attack(_)
            | Self::Bound(_)
            | Self::Training(_)
            | Self::Canary(_)
            | Self::Account(_)
            | Self::Calibrate(_)
            | Self::Inversion(_)
            | Self::Membership(_)
            | Self::Informed(_)
            | Self::Reproduce(_) => None,
        }
    }

    /// What a training run added to gradients.
    pub(super) fn added(&self) -> Option<PerturbationKind> {
        match self {
            Self::Training(d) => d.public.as_ref()?.perturbation.map(|p| p.variant),
            Self::Audit(_)
            | Self::Balance(_)
            | Self::Release(_)
            | Self::NetAudit(_)
            | Self::Attack(_)
            | Self::Bound(_)
            | Self::Canary(_)
            | Self::TextAudit(_)
            | Self::Account(_)
            | Self::Calibrate(_)
            | Self::Inversion(_)
            | Self::Membership(_)
            | Self::Informed(_)
            | Self::Reproduce(_) => None,
        }
    }

    fn about(&self) -> About {
        let extents = |all: &[u64]| all.iter().map(u64::to_string).collect::<Vec<_>>().join("×");
        let network = |n: &leakscope_report::document::net::NetworkFacts, target: &Option<String>| {
            vec![
                ("target", target.clone().unwrap_or_default()),
                ("record", extents(&n.input)),
                ("number of outputs", n.outputs.to_string()),
            ]
        };
        let (facts, columns) = match self {
            Self::Audit(d) => (
                vec![("target", d.data.target.clone())],
                Some(d.data.columns.iter().map(|c| c.name.clone()).collect()),
            ),
            Self::Balance(d) => (
                vec![
                    ("target", d.subject.target.clone()),
                    ("attribute", d.attribute.clone().unwrap_or_default()),
                ],
                None,
            ),
            Self::Attack(d) => {
                (vec![("target", d.subject.target.clone()), ("secret", d.secret.name.clone())], None)
            }
            Self::Bound(d) => {
                let data = d.data.as_ref();
                let facts = vec![
                    ("target", data.map(|d| d.subject.target.clone()).unwrap_or_default()),
                    ("secret", data.map(|d| d.secret.name.clone()).unwrap_or_default()),
                ];
                (facts, None)
            }
            Self::Release(d) => (
                vec![("target", d.subject.target.clone())],
                Some(d.mechanism.units.keys().cloned().collect()),
            ),
            Self::Training(d) => (network(&d.network, &d.data.target), None),
            Self::NetAudit(d) => (network(&d.network, &d.data.target), None),
            Self::Canary(d) => (
                vec![("prompt", d.prompt.clone()), ("number of candidates", d.secret.candidates.to_string())],
                None,
            ),
            Self::TextAudit(d) => (vec![("texts", d.files.join(", "))], None),
            Self::Account(d) => (
                vec![
                    ("adjacency", words::adjacency(d.account.adjacency).into()),
                    ("δ", format::setting(d.account.delta)),
                ],
                None,
            ),
            Self::Calibrate(d) => (vec![("target", aim(&d.target))], None),
            Self::Inversion(d) => {
                (network(&d.network, &d.data.as_ref().and_then(|data| data.target.clone())), None)
            }
            Self::Membership(d) => (network(&d.network, &d.data.target), None),
            Self::Informed(d) => (network(&d.network, &d.data.target), None),
            Self::Reproduce(d) => (
                vec![
                    ("table or figure", d.name.clone()),
                    ("origin", if d.synthetic { "made-up data" } else { "published data" }.into()),
                ],
                None,
            ),
        };
        About { facts, columns }
    }
}

/// What a calibration had to meet, without the number.
fn aim(target: &Aim) -> String {
    match target {
        Aim::Training(Target::Epsilon { delta, .. }) => format!("ε at δ = {}", format::setting(*delta)),
        Aim::Training(Target::Advantage { .. }) => "membership advantage".into(),
        Aim::Training(Target::TruePositiveRate { false_positive, .. }) => {
            format!("true-positive rate at {}", format::setting(*false_positive))
        }
        Aim::Training(Target::Reconstruction { .. })
        | Aim::Leakage(Leakage::Guessing { secret: None, .. }) => "probability of guessing a secret".into(),
        Aim::Leakage(Leakage::Guessing { secret: Some(secret), .. }) => {
            format!("probability of guessing {secret}")
        }
        Aim::Leakage(Leakage::Eta { statistic, .. }) => format!("{} of η", statistic.name()),
        Aim::Leakage(Leakage::Sd { attribute, .. }) => format!("least error of {attribute}"),
        Aim::Leakage(Leakage::Goals { .. }) => "goals of noise with a shape".into(),
    }
}
