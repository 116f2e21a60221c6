//! Whether a document is what a schema says: the words of JSON Schema that our own schemas use, and no others. The tests of the
//! Python package ask an independent validator the same.

use serde_json::Value;

/// The first thing in a document that its schema does not allow, with its place.
pub fn complaint(schema: &Value, document: &Value) -> Option<String> {
    Check { whole: schema }.at(schema, document, "").err()
}

struct Check<'a> {
    whole: &'a Value,
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // A whole number, however it is written.
        "integer" => value.is_u64() || value.is_i64() || value.as_f64().is_some_and(|x| x.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type: {other}"),
    }
}

impl Check<'_> {
    fn at(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let rules = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => return Err(format!("{place}: nothing is expected here")),
            other => other.as_object().expect("a schema is an object"),
        };
        for (rule, constraint) in rules {
            let holds = match rule.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => Ok(()),
                "$ref" => {
                    let name =
                        constraint.as_str().and_then(|r| r.strip_prefix('#')).expect("a place in this file");
                    self.at(self.whole.pointer(name).expect("a definition that is there"), value, place)
                }
                "type" => self.kind(constraint, value),
                "const" if constraint == value => Ok(()),
                "const" => Err(format!("{value} is not {constraint}")),
                "oneOf" => match self.ways(constraint, value, place) {
                    1 => Ok(()),
                    n => Err(format!("{n} of the ways it may be written fit, not one: {value}")),
                },
                "anyOf" => match self.ways(constraint, value, place) {
                    0 => Err(format!("none of the ways it may be written fits: {value}")),
                    _ => Ok(()),
                },
                "properties" | "required" | "additionalProperties" | "dependentRequired" => {
                    self.object(rule, constraint, rules, value, place)
                }
                "items" | "prefixItems" | "minItems" | "maxItems" => {
                    self.array(rule, constraint, rules, value, place)
                }
                "minimum" if value.as_f64() < constraint.as_f64() && value.is_number() => {
                    Err(format!("{value} is below {constraint}"))
                }
                "minimum" => Ok(()),
                other => panic!("the validator does not know {other}"),
            };
            holds.map_err(|why| if why.starts_with('/') { why } else { format!("{place}/: {why}") })?;
        }
        Ok(())
    }

    fn kind(&self, constraint: &Value, value: &Value) -> Result<(), String> {
        let fits = match constraint {
            Value::Array(kinds) => kinds.iter().any(|k| is_kind(k.as_str().expect("a name"), value)),
            one => is_kind(one.as_str().expect("a name"), value),
        };
        if fits { Ok(()) } else { Err(format!("{value} is no {constraint}")) }
    }

    fn ways(&self, constraint: &Value, value: &Value, place: &str) -> usize {
        let ways = constraint.as_array().expect("a list of schemas");
        ways.iter().filter(|way| self.at(way, value, place).is_ok()).count()
    }

    fn object(
        &self,
        rule: &str,
        constraint: &Value,
        rules: &serde_json::Map<String, Value>,
        value: &Value,
        place: &str,
    ) -> Result<(), String> {
        let Some(fields) = value.as_object() else { return Ok(()) };
        let absent = |names: &Value| {
            let names = names.as_array().expect("a list of names").iter().filter_map(Value::as_str);
            names.filter(|name| !fields.contains_key(*name)).map(str::to_owned).next()
        };
        match rule {
            "required" => absent(constraint).map_or(Ok(()), |name| Err(format!("no field {name}"))),
            "dependentRequired" => {
                let mut rules = constraint.as_object().expect("by field").iter();
                let gap = rules.find_map(|(field, others)| fields.get(field).and_then(|_| absent(others)));
                gap.map_or(Ok(()), |name| Err(format!("no field {name} beside the others")))
            }
            "properties" => {
                let known = constraint.as_object().expect("by field");
                known.iter().try_for_each(|(name, schema)| match fields.get(name) {
                    Some(field) => self.at(schema, field, &format!("{place}/{name}")),
                    None => Ok(()),
                })
            }
            _ => {
                let known = rules.get("properties").and_then(Value::as_object);
                fields.iter().try_for_each(|(name, field)| {
                    match known.is_some_and(|k| k.contains_key(name)) {
                        true => Ok(()),
                        false => self.at(constraint, field, &format!("{place}/{name}")),
                    }
                })
            }
        }
    }

    fn array(
        &self,
        rule: &str,
        constraint: &Value,
        rules: &serde_json::Map<String, Value>,
        value: &Value,
        place: &str,
    ) -> Result<(), String> {
        let Some(items) = value.as_array() else { return Ok(()) };
        let bound = || usize::try_from(constraint.as_u64().expect("a number")).expect("a small one");
        let each = |schemas: &mut dyn Iterator<Item = &Value>, skip: usize| {
            let mut numbered = items.iter().enumerate().skip(skip).zip(schemas);
            numbered.try_for_each(|((i, item), schema)| self.at(schema, item, &format!("{place}/{i}")))
        };
        match rule {
            "minItems" if items.len() < bound() => Err(format!("fewer than {constraint} items")),
            "maxItems" if items.len() > bound() => Err(format!("more than {constraint} items")),
            "prefixItems" => each(&mut constraint.as_array().expect("a list").iter(), 0),
            "items" => {
                let before = rules.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                each(&mut std::iter::repeat(constraint), before)
            }
            _ => Ok(()),
        }
    }
}
