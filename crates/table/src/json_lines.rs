//! JSON lines: one object a line. They are turned into CSV in memory, so that every rule about cells is the same.

use crate::content::Content;
use crate::place::Place;
use crate::{Error, Result};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;

/// The members of an object, in the order in which they are written.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object such as {\"age\": 30}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The table as CSV with a header: columns in the order in which the lines bring them up.
pub(crate) fn to_csv(content: &Content) -> Result<Content> {
    let mut names: Vec<String> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    each_line(content, |_, members| {
        for (name, _) in members {
            if !index.contains_key(&name) {
                index.insert(name.clone(), names.len());
                names.push(name);
            }
        }
        Ok(())
    })?;
    if names.is_empty() {
        return Err(Error::EmptyFile { path: content.path.clone() });
    }
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    let failed = |e: csv::Error| content.failed(std::io::Error::other(e));
    writer.write_record(&names).map_err(failed)?;
    let mut cells = vec![String::new(); names.len()];
    each_line(content, |row, members| {
        cells.iter_mut().for_each(String::clear);
        for (name, value) in members {
            let Some(&i) = index.get(&name) else { continue };
            match value {
                Value::Null => {}
                Value::Bool(yes) => cells[i] = yes.to_string(),
                Value::Number(number) => cells[i] = number.to_string(),
                Value::String(text) => cells[i] = text,
                Value::Array(_) | Value::Object(_) => {
                    let place = Place { path: content.path.clone(), row, header: false };
                    return Err(Error::Nested { place, column: name });
                }
            }
        }
        writer.write_record(&cells).map_err(failed)
    })?;
    let bytes = writer.into_inner().map_err(|e| content.failed(std::io::Error::other(e.to_string())))?;
    Ok(Content::of_memory(&content.path, bytes))
}

/// Calls `each` with the number (from 1) and the members of every line that is not blank.
fn each_line(content: &Content, mut each: impl FnMut(u64, Vec<(String, Value)>) -> Result<()>) -> Result<()> {
    let mut stream = content.stream(0)?;
    let mut line = Vec::new();
    let mut row = 0;
    loop {
        line.clear();
        if stream.read_until(b'\n', &mut line).map_err(|source| content.failed(source))? == 0 {
            return Ok(());
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        row += 1;
        if row == 1 && text.starts_with(b"[") {
            return Err(Error::JsonArray { path: content.path.clone() });
        }
        match serde_json::from_slice::<Members>(text) {
            Ok(Members(members)) => each(row, members)?,
            Err(e) => {
                let place = Place { path: content.path.clone(), row, header: false };
                return Err(Error::Json { place, message: e.to_string() });
            }
        }
    }
}
