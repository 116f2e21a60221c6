//! The commands as functions, for other languages: the words of a command line in, plain data out.
//!
//! The same parser reads both, so that options have one set of names, one set of checks and one wording of what is
//! wrong with them. Tables in memory take the place of files; nothing is printed, and files are written only where
//! [`release`] and the `write` functions say so.

use crate::audit::{self, Request};
use crate::balance::{self as balancing};
use crate::commands::{self, Command, net};
use crate::output::{Folder, Pending};
use crate::release::{self as releasing, Outcome as Released};
use crate::{Failure, Result, attack as attacking};
use leakscope_net::{Network, Real};
use leakscope_report::{Attack, Audit, Balance, Release};
use leakscope_table::{Columns, Hooks, Memory, Progress, ReadOptions, RecordsFormat, RecordsSchema, Stage};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

pub use crate::commands::Answer;
pub use crate::commands::net::memory::{NetArrays, NetMeasured, NetMemory};
pub use crate::unexpected::caught;

/// What stands for a comma inside a name in words that are lists.
pub const COMMA: char = '\u{1f}';

/// Tables in memory, in the place of the files of the same name.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// The table itself.
    pub data: Option<Memory>,
    /// Rows to test on.
    pub test: Option<Memory>,
    /// Points to score.
    pub score: Option<Memory>,
}

/// What a caller knows of a model that words do not say.
#[derive(Debug, Clone, Default)]
pub struct Trained {
    /// Names and values of coefficients that were fitted elsewhere.
    pub coefficients: Option<Vec<(String, f64)>>,
    /// Whether a linear model takes a target with two values as it is, not as −1 and +1.
    pub target_as_it_is: bool,
}

/// A table of results.
#[derive(Debug, Clone)]
pub struct Results {
    /// What it is called: `records`, `scores`, `weights`.
    pub name: String,
    /// Names of its columns.
    pub schema: RecordsSchema,
    /// The columns, in parts that follow one another.
    pub parts: Vec<Columns>,
}

/// Names of the options of a command, without their dashes; `None` where there is no such command.
pub fn options(command: &[&str]) -> Option<Vec<String>> {
    let mut found = commands::parser();
    for name in command {
        found = found.find_subcommand(name)?.clone();
    }
    Some(found.get_arguments().filter_map(|a| a.get_long()).map(String::from).collect())
}

pub(crate) fn results(pending: Pending) -> Vec<Results> {
    let of = |(name, schema, parts)| Results { name, schema, parts };
    pending.into_parts().into_iter().map(of).collect()
}

fn other_command() -> Failure {
    Failure::Message("these words are those of another command".into())
}

impl Tables {
    /// How to read the table itself: the one in memory, or what the words name.
    pub(crate) fn data_or(&self, named: ReadOptions) -> ReadOptions {
        match &self.data {
            Some(memory) => ReadOptions { paths: vec![], memory: vec![memory.clone()], ..named },
            None => named,
        }
    }

    /// Puts tables in memory where the words name files.
    pub(crate) fn put_into(&self, mut request: Request) -> Request {
        let like = request.read.clone();
        let read =
            |memory: &Memory| ReadOptions { paths: vec![], memory: vec![memory.clone()], ..like.clone() };
        request.read = self.data_or(request.read);
        request.test = self.test.as_ref().map(read).or(request.test);
        request.score = self.score.as_ref().map(read).or(request.score);
        request
    }
}

impl Trained {
    fn put_into(self, mut request: Request) -> Request {
        request.coefficients = self.coefficients.or(request.coefficients);
        request.two_class_coded &= !self.target_as_it_is;
        request
    }
}

/// `leakscope audit`.
pub fn audit(
    words: &[String],
    tables: &Tables,
    trained: Trained,
    hooks: &Hooks,
) -> Result<(Audit, Vec<Results>)> {
    let Command::Audit(args) = commands::parse(words)? else { return Err(other_command()) };
    let request = trained.put_into(tables.put_into(commands::audit_request(&args)?));
    let found = audit::run(&request, Some(&Folder::in_memory()), hooks, &|_| {})?;
    Ok((found.audit, results(found.pending)))
}

/// `leakscope balance`.
pub fn balance(words: &[String], tables: &Tables, hooks: &Hooks) -> Result<(Balance, Vec<Results>)> {
    let Command::Balance(args) = commands::parse(words)? else { return Err(other_command()) };
    let (request, asked) = commands::balance_asked(&args)?;
    let request = tables.put_into(request);
    let found = balancing::run(&request, &asked, Some(&Folder::in_memory()), hooks, |_| {})?;
    Ok((found.balance, results(found.pending)))
}

/// `leakscope attack`.
pub fn attack(words: &[String], tables: &Tables, hooks: &Hooks) -> Result<Attack> {
    let Command::Attack(args) = commands::parse(words)? else { return Err(other_command()) };
    let (request, playing) = commands::attack_asked(&args)?;
    attacking::run(&tables.put_into(request), &playing, hooks)
}

/// `leakscope release`: the statement with what was written, or why it was refused.
pub fn release(
    words: &[String],
    tables: &Tables,
    hooks: &Hooks,
) -> Result<std::result::Result<(Release, Vec<PathBuf>), String>> {
    let Command::Release(args) = commands::parse(words)? else { return Err(other_command()) };
    let (request, terms, out) = commands::release_asked(&args)?;
    let request = tables.put_into(request);
    let folder = Folder::open(&out, RecordsFormat::Parquet)?;
    folder.spare(&request.inputs(), &commands::RELEASE_TEXTS, &[])?;
    match releasing::run(&request, &terms, folder.path(), hooks)? {
        Released::Refused(why) => Ok(Err(why)),
        Released::Released(statement, held) => {
            let written = commands::release_publish(&folder, &statement)?;
            drop(held);
            Ok(Ok((*statement, written)))
        }
    }
}

/// The private model of `leakscope release` without a ledger; a seed makes its noise repeatable, and so no secret.
pub fn private_model(
    words: &[String],
    tables: &Tables,
    trained: Trained,
    seed: Option<u64>,
    hooks: &Hooks,
) -> Result<releasing::Private> {
    let Command::Release(args) = commands::parse(words)? else { return Err(other_command()) };
    let (request, terms, _) = commands::release_asked(&args)?;
    releasing::private(&trained.put_into(tables.put_into(request)), &terms, seed, hooks)
}

/// `leakscope account`, `bound` or `calibrate`.
pub fn answer(words: &[String], tables: &Tables, hooks: &Hooks) -> Result<Answer> {
    commands::answer(words, tables, hooks)
}

/// `leakscope net audit` over arrays; the words name files that nobody reads.
pub fn net_audit<T: Real>(words: &[String], memory: NetMemory<T>, hooks: &Hooks) -> Result<NetMeasured> {
    let Command::Net(args) = commands::parse(words)? else { return Err(other_command()) };
    let args = net::memory::audit_args(args)?;
    net::memory::audit(&args, memory, &|done, total| tick(hooks, done, total))
}

/// The same network again, with layers (by position) and a share of its parameters (the smallest) frozen: what
/// `net train --freeze` and `--freeze-smallest` start from.
pub fn net_frozen<T: Real>(net: &Network<T>, layers: &[usize], smallest: Option<f64>) -> Result<Network<T>> {
    net::memory::frozen(net, layers, smallest)
}

/// Tells how far a pass over records is; an error where it is to stop.
pub fn tick(hooks: &Hooks, done: u64, total: u64) -> Result<()> {
    if hooks.interrupt.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    if let Some(progress) = &hooks.progress {
        progress(Progress { stage: Stage::Pass, done, total });
    }
    Ok(())
}

/// Writes an audit of a network into a folder: what `leakscope net audit --out` leaves.
pub fn write_net_audit(measured: &NetMeasured, out: &Path, format: RecordsFormat) -> Result<Vec<PathBuf>> {
    net::memory::write(measured, out, format)
}

/// Writes an audit, with its page and its tables, into a folder: what `leakscope audit --out` leaves.
pub fn write_audit(
    audit: &Audit,
    tables: &[Results],
    out: &Path,
    format: RecordsFormat,
) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, format)?;
    let scored = audit.score.iter().flat_map(|s| &s.files);
    let read: Vec<String> = audit.data.files.iter().chain(scored).cloned().collect();
    folder.spare_named(&read, &commands::AUDIT_TEXTS, commands::audit_tables(audit.score.is_some()))?;
    let mut pending = Pending::default();
    write_tables(&folder, &mut pending, tables)?;
    let audit = &Audit { tables: pending.table_names(), ..audit.clone() };
    folder.text(&mut pending, "report.html", &leakscope_report::page(audit))?;
    folder.text(&mut pending, "audit.json", &leakscope_report::json(audit))?;
    folder.publish(pending)
}

/// Writes a balancing into a folder: what `leakscope balance --out` leaves.
pub fn write_balance(
    balance: &Balance,
    tables: &[Results],
    out: &Path,
    format: RecordsFormat,
) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, format)?;
    folder.spare_named(&balance.subject.files, &commands::BALANCE_TEXTS, &commands::BALANCE_TABLES)?;
    let mut pending = Pending::default();
    write_tables(&folder, &mut pending, tables)?;
    let balance = &Balance { tables: pending.table_names(), ..balance.clone() };
    commands::balance_texts(&folder, &mut pending, balance)?;
    folder.publish(pending)
}

/// Writes attacks into a folder: what `leakscope attack --out` leaves.
pub fn write_attack(attack: &Attack, out: &Path) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, RecordsFormat::Parquet)?;
    folder.spare_named(&attack.subject.files, &commands::ATTACK_TEXTS, &[])?;
    let mut pending = Pending::default();
    commands::attack_texts(&folder, &mut pending, attack)?;
    folder.publish(pending)
}

pub(crate) fn write_tables(folder: &Folder, pending: &mut Pending, tables: &[Results]) -> Result<()> {
    for table in tables {
        let mut writer = folder.table(&table.name, table.schema.clone())?;
        for Columns { ids, texts, numbers, .. } in &table.parts {
            let mut part = writer.parts().part();
            for (i, id) in ids.iter().enumerate() {
                let texts: Vec<&str> = texts.iter().map(|t| t[i].as_str()).collect();
                let numbers: Vec<f64> = numbers.iter().map(|n| n[i]).collect();
                part.push(id, &texts, &numbers)?;
            }
            writer.append(part)?;
        }
        pending.tables([writer]);
    }
    Ok(())
}

/// Writes one text file whole or not at all, readable by its owner alone.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let Some(name) = name.filter(|_| !path.is_dir()) else {
        return Err(Failure::Message(format!("{} is no file name: name a file to write", path.display())));
    };
    let folder = Folder::open(parent, RecordsFormat::Parquet)?;
    let mut pending = Pending::default();
    folder.text(&mut pending, &name, text)?;
    folder.publish(pending).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::parse;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|w| (*w).to_string()).collect()
    }

    #[test]
    fn names_may_have_commas() {
        let line = words(&["audit", "--target=y", &format!("--drop=a{COMMA}b,c"), "--", "rows.csv"]);
        let Ok(Command::Audit(args)) = parse(&line) else { panic!("an audit was asked for") };
        assert_eq!(args.table.columns.drop, ["a,b", "c"]);
    }

    #[test]
    fn what_is_wrong_with_words_is_said_without_how_to_call_the_programme() {
        let failed = parse(&words(&["audit", "--target=y", "--scale=big", "--", "rows.csv"])).err().unwrap();
        let text = failed.to_string();
        assert!(text.starts_with("invalid value 'big' for '--scale <SCALE>'"), "{text}");
        assert!(text.contains("unit-ball") && !text.contains("Usage") && !text.contains("--help"), "{text}");
        assert!(matches!(failed, Failure::Option(_)));
        let other = words(&["audit", "--target=y", "--", "rows.csv"]);
        assert!(answer(&other, &Tables::default(), &Hooks::default()).is_err());
    }

    #[test]
    fn commands_tell_their_options() {
        let account = options(&["account"]).unwrap();
        assert!(account.contains(&"delta".into()) && !account.contains(&"target".into()));
        assert!(options(&["net", "audit"]).unwrap().contains(&"eta".into()));
        assert_eq!(options(&["nothing"]), None);
    }
}
