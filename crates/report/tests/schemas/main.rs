//! `docs/schemas/*.schema.json`: the schema of every document, generated from the types that serde writes and their
//! documentation. The types are read off their sources, so that no build of the programme carries the generator.
//!
//! `LEAKSCOPE_UPDATE=1 cargo nextest run --workspace --test schemas` writes the files again.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "helpers of tests")]

mod attributes;
#[path = "../common/mod.rs"]
mod common;
mod shape;
mod source;
mod validate;

use common::kinds::{attacked, balanced, canary, compared, costs, guessed, released, reproduced, texts};
use common::networks::{audit as networks, informed, inverted, members, training};
use common::situations;
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::balance::Variant;
use leakscope_report::choice::Stopped;
use leakscope_report::release::PublishedModel;
use leakscope_report::{FOR_THE_OWNER, document, owners_document};
use serde_json::{Value, json};
use shape::Shapes;
use source::Sources;
use std::path::{Path, PathBuf};

/// Whose a document is.
#[derive(Clone, Copy)]
enum Reader {
    /// It was made of records: `for` says that it is the owner's.
    Owner,
    /// The owner's where it was made of records, otherwise anybody's.
    Depends,
    /// Anybody's.
    Anybody,
    /// Leakscope's own: it stays in the folder that it was written to, and says nothing of whose it is.
    Kept,
}
use Reader::{Anybody, Depends, Kept, Owner};

/// A document: the name of its schema, its type, the constant that its field `schema` holds, and whose it is.
struct Document {
    name: &'static str,
    module: &'static [&'static str],
    ty: &'static str,
    schema: Option<&'static str>,
    reader: Reader,
}

const fn of(
    name: &'static str,
    module: &'static [&'static str],
    ty: &'static str,
    schema: Option<&'static str>,
    reader: Reader,
) -> Document {
    Document { name, module, ty, schema, reader }
}

const REPORT: &str = "leakscope_report";
const PLAIN: Option<&str> = Some("SCHEMA");

const DOCUMENTS: &[Document] = &[
    of("account", &[REPORT, "document", "account"], "Costs", PLAIN, Anybody),
    of("attack", &[REPORT, "document", "attack"], "Attack", PLAIN, Owner),
    of("audit", &[REPORT, "document", "audit"], "Audit", PLAIN, Owner),
    of("balance", &[REPORT, "document", "balance"], "Balance", PLAIN, Owner),
    of("balance-model", &[REPORT, "document", "balance"], "BalancedModel", None, Owner),
    of("bound", &[REPORT, "document", "bound"], "SecretBounds", PLAIN, Depends),
    of("calibrate", &[REPORT, "document", "calibrate"], "Calibration", PLAIN, Depends),
    of("compare", &[REPORT, "document", "comparison"], "Comparison", PLAIN, Owner),
    of("devices", &["leakscope", "net", "device"], "Listed", PLAIN, Anybody),
    of("encoding", &["leakscope", "net", "table"], "Coding", None, Kept),
    of("ledger", &["leakscope", "release", "ledger"], "Ledger", PLAIN, Anybody),
    of("model", &[REPORT, "document", "release"], "PublishedModel", Some("MODEL_SCHEMA"), Anybody),
    of("net-audit", &[REPORT, "document", "net"], "NetAudit", Some("AUDIT_SCHEMA"), Owner),
    of("net-informed", &[REPORT, "document", "informed"], "Informed", PLAIN, Owner),
    of("net-inversion", &[REPORT, "document", "inversion"], "Inversion", PLAIN, Owner),
    of("net-membership", &[REPORT, "document", "membership"], "Membership", PLAIN, Owner),
    of("net-training", &[REPORT, "document", "training"], "Training", Some("TRAINING_SCHEMA"), Owner),
    of("network", &["leakscope_net", "spec"], "NetSpec", None, Anybody),
    of("plan", &["leakscope", "cluster", "plan"], "Written", None, Kept),
    of("plan-pass", &["leakscope", "cluster", "board"], "About", None, Kept),
    of("plan-table", &["leakscope_table", "splits"], "Splits", None, Kept),
    of("release", &[REPORT, "document", "release"], "Release", PLAIN, Anybody),
    of("release-owner", &[REPORT, "document", "release"], "Owned", PLAIN, Owner),
    of("reproduce", &[REPORT, "document", "reproduction"], "Reproduction", PLAIN, Anybody),
    of("table", &["leakscope_table", "schema"], "Schema", None, Anybody),
    of("text-audit", &[REPORT, "document", "text_audit"], "TextAudit", PLAIN, Owner),
    of("text-canary", &[REPORT, "document", "canary"], "Canary", PLAIN, Anybody),
    of("withdraw", &["leakscope", "release", "withdraw"], "Withdrawn", None, Owner),
];

/// Documents that the Python package alone writes: its tests generate their schemas from its types.
const OF_PYTHON: [&str; 2] = ["model-attack", "torch-attack"];

const CRATES: &[(&str, &str)] = &[
    ("core", "leakscope_core"),
    ("table", "leakscope_table"),
    ("net", "leakscope_net"),
    ("report", REPORT),
    ("leakscope", "leakscope"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files() -> PathBuf {
    crates().join("../docs/schemas")
}

fn generate(sources: &Sources, d: &Document) -> Value {
    let mut schema = Shapes::document(sources, d.module, d.ty);
    let module: Vec<String> = d.module.iter().map(|&m| m.to_owned()).collect();
    let mut title = format!("leakscope {}", d.name);
    if let Some(constant) = d.schema {
        title = sources.text(&module, constant).to_owned();
        let about = "Name and version of this schema: a field that changes its meaning raises the number.";
        schema["properties"]["schema"] = json!({ "const": title, "description": about });
    }
    let whose = json!({ "const": FOR_THE_OWNER, "description": "Whose it is." });
    match d.reader {
        Owner => {
            schema["properties"]["for"] = whose;
            schema["required"].as_array_mut().unwrap().insert(0, "for".into());
        }
        Depends => schema["properties"]["for"] = whose,
        Anybody | Kept => {}
    }
    if d.name == "account" {
        flat_order(&mut schema);
    }
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$id"] = format!("{}.schema.json", d.name).into();
    schema["title"] = title.into();
    schema
}

/// `account.json` has ε of the Rényi accountant as a number, and its order beside it (`Costs::json`).
fn flat_order(schema: &mut Value) {
    let fields = schema["$defs"].as_object_mut().unwrap();
    let order = fields.remove("RdpEpsilon").unwrap();
    let epsilons = &mut fields["Epsilons"];
    epsilons["properties"]["rdp"] = order["properties"]["epsilon"].clone();
    epsilons["properties"]["rdp_order"] = order["properties"]["alpha"].clone();
    epsilons["required"].as_array_mut().unwrap().push("rdp_order".into());
}

fn schema(name: &str) -> Value {
    let path = files().join(format!("{name}.schema.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_files_are_what_the_types_say() {
    let sources = Sources::read(&crates(), CRATES);
    let update = std::env::var_os("LEAKSCOPE_UPDATE").is_some();
    let mut stale = vec![];
    for d in DOCUMENTS {
        let text = format!("{:#}\n", generate(&sources, d));
        let path = files().join(format!("{}.schema.json", d.name));
        if std::fs::read_to_string(&path).unwrap_or_default() != text {
            stale.push(d.name);
            if update {
                std::fs::write(&path, text).unwrap();
            }
        }
    }
    let names = || DOCUMENTS.iter().map(|d| d.name).chain(OF_PYTHON);
    let known = |e: &str| names().any(|name| e == format!("{name}.schema.json"));
    for entry in std::fs::read_dir(files()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(known(&name), "docs/schemas/{name} is the schema of no document");
    }
    assert!(
        update || stale.is_empty(),
        "the types of {stale:?} have changed: LEAKSCOPE_UPDATE=1 cargo nextest run --workspace --test schemas"
    );
}

/// Every field that a schema lists says what it is.
#[test]
fn every_field_is_described() {
    fn walk(at: &str, schema: &Value, bare: &mut Vec<String>) {
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            for (name, field) in fields {
                // a variant's only field is described by the variant
                let alone = fields.len() == 1 && schema.get("description").is_some();
                if field.get("description").is_none() && field.get("const").is_none() && !alone {
                    bare.push(format!("{at}.{name}"));
                }
            }
        }
        for list in ["oneOf", "anyOf"].iter().filter_map(|k| schema.get(*k)?.as_array()) {
            list.iter().for_each(|way| walk(at, way, bare));
        }
    }
    let mut bare = vec![];
    for d in DOCUMENTS {
        let schema = schema(d.name);
        walk(d.name, &schema, &mut bare);
        for (name, one) in schema["$defs"].as_object().into_iter().flatten() {
            walk(&format!("{}#{name}", d.name), one, &mut bare);
        }
    }
    bare.sort();
    assert!(bare.is_empty(), "fields without documentation: {bare:#?}");
}

fn written(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn documents_are_what_their_schemas_say() {
    let attacks = [(Attacker::WhiteBox, 0.1, 0.9), (Attacker::BlackBox, 0.1, 0.8)];
    let statement = released(0.5, 0.3);
    let mut all = vec![
        ("balance", owners_document(&balanced(&[0.8, 0.1], Variant::Weighted, Stopped::Iterations))),
        ("attack", owners_document(&attacked(&attacks))),
        ("release", document(&statement)),
        ("model", document(&PublishedModel::of(&statement))),
        ("bound", document(&guessed())),
        ("account", costs(2.0, 3, true).json()),
        ("text-canary", document(&canary(0.3))),
        ("text-audit", owners_document(&texts(4.0).0)),
        ("net-audit", owners_document(&networks())),
        ("net-inversion", owners_document(&inverted(0.9, &[0.0, 0.1]))),
        ("net-membership", owners_document(&members(0.7, Some(2.0), 0.3))),
        ("net-informed", owners_document(&informed(0.9, 2.0))),
        ("net-training", owners_document(&training(1.0))),
        ("reproduce", document(&reproduced())),
        ("compare", owners_document(&compared())),
    ];
    all.extend(situations().iter().map(|(_, audit)| ("audit", owners_document(audit))));
    for (name, text) in &all {
        assert_eq!(validate::complaint(&schema(name), &written(text)), None, "{name}: {text}");
    }
}

/// The validator finds what is wrong, wherever it is.
#[test]
fn what_does_not_fit_is_found() {
    let schema = schema("attack");
    let whole = written(&owners_document(&attacked(&[(Attacker::WhiteBox, 0.1, 0.9)])));
    let complaint = |change: &dyn Fn(&mut Value)| {
        let mut document = whole.clone();
        change(&mut document);
        validate::complaint(&schema, &document).unwrap_or_default()
    };
    assert_eq!(complaint(&|_| {}), "");
    assert!(complaint(&|d| d["records"] = json!(-1)).contains("/records"));
    assert!(complaint(&|d| d["seed"] = json!(0.5)).contains("/seed"));
    assert!(complaint(&|d| d["schema"] = json!("leakscope.attack/0")).contains("/schema"));
    assert!(complaint(&|d| d["results"][0]["attack"] = json!("magic")).contains("/results/0/attack"));
    assert!(complaint(&|d| d["new"] = json!(1)).contains("/new"));
    assert!(complaint(&|d| drop(d.as_object_mut().unwrap().remove("for"))).contains("no field for"));
    assert!(complaint(&|d| d["subject"]["family"] = Value::Null).contains("/subject/family"));
}
