//! Coefficients of a model that was trained elsewhere, from JSON.

use crate::remarks::listed;
use crate::{Failure, Result};
use leakscope_table::Encoding;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::path::Path;

/// Name of the intercept among the columns.
pub(crate) const INTERCEPT: &str = "(intercept)";

/// Names and values from JSON: either the object itself, or what stands under `coefficients` (or
/// `model.coefficients`, as in an audit.json) in it; a number under `intercept` beside that is the intercept.
pub fn read_coefficients(path: &Path) -> Result<Vec<(String, f64)>> {
    let shown = path.display();
    let wrong = |problem: String| Failure::option("coefficients", format!("{shown}: {problem}"));
    let text = std::fs::read_to_string(path).map_err(|e| wrong(format!("cannot read it: {e}")))?;
    let not_json = |e: serde_json::Error| wrong(format!("not JSON ({e}): expected {{\"age\": 0.3, …}}"));
    let json: serde_json::Value = serde_json::from_str(&text).map_err(not_json)?;
    serde_json::from_str::<Distinct>(&text).map_err(|e| wrong(e.to_string()))?;
    let inner = json.get("coefficients").or_else(|| json.pointer("/model/coefficients"));
    let beside = inner.and_then(|_| json.get("intercept")).filter(|v| v.is_number());
    let Some(object) = inner.unwrap_or(&json).as_object() else {
        return Err(wrong("expected an object of column names and values, such as {\"age\": 0.3, …}".into()));
    };
    if beside.is_some() && object.contains_key(INTERCEPT) {
        return Err(wrong(format!("`intercept` and `{INTERCEPT}` are both there: keep one of them")));
    }
    let named = object.iter().map(|(name, value)| (name.as_str(), value));
    named
        .chain(beside.map(|value| (INTERCEPT, value)))
        .map(|(name, value)| match value.as_f64() {
            Some(number) if number.is_finite() => Ok((name.to_owned(), number)),
            _ => Err(wrong(format!("`{name}` is {value}: expected a finite number"))),
        })
        .collect()
}

/// Coefficients in the order of the encoding's columns; every column must be named, and nothing else.
pub(crate) fn match_coefficients(named: &[(String, f64)], encoding: &Encoding) -> Result<Vec<f64>> {
    match_named(named, &encoding.columns())
}

/// Coefficients in the order of the names of a model; each must be there, and nothing else.
pub(crate) fn match_named(named: &[(String, f64)], columns: &[String]) -> Result<Vec<f64>> {
    let list = |names: &[&String]| listed(&names.iter().map(|n| (*n).clone()).collect::<Vec<_>>());
    // What is said to be zero and is not in the model changes nothing.
    let named: Vec<&(String, f64)> =
        named.iter().filter(|(n, v)| columns.contains(n) || n != INTERCEPT || *v != 0.0).collect();
    let unknown: Vec<&String> = named.iter().map(|(n, _)| n).filter(|n| !columns.contains(n)).collect();
    if !unknown.is_empty() {
        if unknown == [INTERCEPT] {
            let message = "the given model has an intercept, which ⟨intercept=false⟩ leaves out: one of the two must go";
            return Err(Failure::option("coefficients", message));
        }
        let all: Vec<&String> = columns.iter().collect();
        return Err(Failure::option(
            "coefficients",
            format!("{} is no column of this model; its columns are {}", list(&unknown), list(&all)),
        ));
    }
    let missing: Vec<&String> = columns.iter().filter(|c| !named.iter().any(|(n, _)| n == *c)).collect();
    if !missing.is_empty() {
        let hint = if missing.iter().any(|n| *n == INTERCEPT) {
            " (a model without intercept needs ⟨intercept=false⟩)"
        } else {
            ""
        };
        return Err(Failure::option("coefficients", format!("no value for {}{hint}", list(&missing))));
    }
    Ok(columns.iter().map(|c| named.iter().find(|(n, _)| n == c).map_or(0.0, |(_, value)| *value)).collect())
}

/// Any JSON in which no object has a name twice: which of two values is meant, nobody can tell.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        d.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(A::Error::custom(format!("`{name}` is there twice: keep one of them")));
            }
            map.next_value::<Self>()?;
            seen.insert(name);
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> std::result::Result<Self, E> {
        Ok(self)
    }
}
