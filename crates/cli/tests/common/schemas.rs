//! Every document that a test reads is held against its schema in `docs/schemas`.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "helpers; every binary uses its own part")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

#[path = "../../../report/tests/schemas/validate.rs"]
mod validate;

/// Every schema by its name.
fn all() -> &'static BTreeMap<String, Value> {
    static ALL: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        files
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().replace(".schema.json", "");
                (name, serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap())
            })
            .collect()
    })
}

/// The document, which must be as its schema says; what says of itself that it is none of ours, or is a list, passes.
#[track_caller]
pub fn checked(document: Value) -> Value {
    if let Some(own) = document["schema"].as_str().filter(|own| own.starts_with("leakscope.")) {
        let owners = document["for"].is_string() && document["measured"]["eta_max"].is_number();
        let fits = |(name, schema): &(&String, &Value)| {
            schema["title"] == own && (own != "leakscope.release/2" || (*name == "release-owner") == owners)
        };
        let (name, _) =
            all().iter().find(fits).unwrap_or_else(|| panic!("{own} has no schema in docs/schemas"));
        is_a(name, &document);
    }
    document
}

/// Fails unless a document is as the schema of that name says.
#[track_caller]
pub fn is_a(name: &str, document: &Value) {
    if let Some(wrong) = validate::complaint(&all()[name], document) {
        panic!("{name}.schema.json: {wrong}\n{document:#}");
    }
}
