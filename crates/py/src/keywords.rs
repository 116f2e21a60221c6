//! Keywords to requests: Python values are read into the request's own types by serde, so that what an option may be is
//! declared once, in the request. A value of the wrong kind is named by its keyword: `l2='much': expected a number`.

use crate::failure::OptionError;
use leakscope::Spelling;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};
use std::fmt::Display;

/// Fields of requests whose keyword has another name: where they are, and the keyword.
const RENAMED: [(&str, &str); 27] = [
    ("noise.given", "sigma"),
    ("noise.sigma", "sigma"),
    ("noise.target-eta.eta", "target_eta"),
    ("noise.target-eta.0", "target_eta"),
    ("noise.target-eta.statistic", "statistic"),
    ("noise.target-eta.1", "statistic"),
    ("noise.target-sd", "target_sd"),
    ("noise.shaped.shape", "noise_shape"),
    ("noise.shape", "noise_shape"),
    ("target_sd", "target_sd"),
    ("limits", "fail_above"),
    ("table.read.encoding", "text_encoding"),
    ("column.encoding", "text_encoding"),
    ("no_header", "header"),
    ("schema", "schema"),
    ("bounds", "bounds"),
    ("levels", "levels"),
    ("family", "model"),
    ("intercept", "fit_intercept"),
    ("label_secret", "label"),
    ("units", "unit"),
    ("sharing", "weights_per"),
    ("clamp.0", "min_weight"),
    ("clamp.1", "max_weight"),
    ("prior_sd", "prior_sd"),
    ("trace", "trace"),
    ("coefficients", "coefficients"),
];

/// The keyword of a field: of what is renamed the new name, else the innermost name.
pub(crate) fn keyword(path: &str) -> &str {
    let inside = |pattern: &str| format!(".{path}.").contains(&format!(".{pattern}."));
    let renamed = RENAMED.iter().find(|(pattern, _)| inside(pattern)).map(|(_, keyword)| *keyword);
    let number = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    renamed.or_else(|| path.rsplit('.').find(|name| !number(name))).unwrap_or(path)
}

/// Reads a request from Python values.
pub(crate) fn request<T: DeserializeOwned>(values: &Bound<'_, PyAny>) -> PyResult<T> {
    T::deserialize(PyValue(values)).map_err(Wrong::exception)
}

/// Reads one keyword from a Python value.
pub(crate) fn option<T: DeserializeOwned>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    T::deserialize(PyValue(value)).map_err(|wrong| wrong.inside(name).exception())
}

/// What is wrong with a value, and where it is: the innermost name comes first.
#[derive(Debug)]
struct Wrong {
    path: Vec<String>,
    value: Option<String>,
    message: String,
}

impl Wrong {
    fn inside(mut self, name: impl Into<String>) -> Self {
        self.path.push(name.into());
        self
    }

    fn exception(self) -> PyErr {
        let path: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        let name = keyword(&path.join(".")).to_owned();
        OptionError::new_err(match self.value {
            Some(value) => format!("{name}={value}: {}", self.message),
            None => Spelling::Python.complaint(&name, None, &self.message),
        })
    }
}

impl Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: Display>(message: T) -> Self {
        Self { path: vec![], value: None, message: message.to_string() }
    }
}

/// A Python value.
struct PyValue<'a, 'py>(&'a Bound<'py, PyAny>);

impl<'py> PyValue<'_, 'py> {
    fn wrong(&self, expected: impl Display) -> Wrong {
        let value = self.0.repr().map_or_else(|_| "?".into(), |r| r.to_string());
        Wrong { path: vec![], value: Some(value), message: format!("expected {expected}") }
    }

    /// A type of its own words about a text quotes it before them, and serde hands on nothing else: here it stands before them as
    /// Python writes it.
    fn own_words(&self, wrong: Wrong) -> Wrong {
        let Ok(text) = self.0.extract::<String>() else { return wrong };
        match wrong.message.strip_prefix(&format!("`{text}`: ")) {
            Some(message) if wrong.path.is_empty() && wrong.value.is_none() => {
                Wrong { message: message.into(), ..self.wrong("") }
            }
            Some(_) | None => wrong,
        }
    }

    /// A truth value or a text is no number, though Python has an order of both.
    fn is_number(&self) -> bool {
        !self.0.is_instance_of::<PyBool>() && !self.0.is_instance_of::<PyString>()
    }

    fn real(&self) -> Result<f64, Wrong> {
        match self.0.extract::<f64>() {
            Ok(x) if self.is_number() && x.is_finite() => Ok(x),
            Ok(_) if self.is_number() => Err(self.wrong("a finite number")),
            _ => Err(self.wrong("a number")),
        }
    }

    fn whole(&self) -> Result<u64, Wrong> {
        let number = self.0.extract::<u64>().ok().or_else(|| {
            let x = self.0.cast::<PyFloat>().ok()?.value();
            (x.fract() == 0.0 && (0.0..9e15).contains(&x)).then_some(x as u64)
        });
        number.filter(|_| self.is_number()).ok_or_else(|| self.wrong("a whole number from 0"))
    }

    /// A text, or what has a path (`os.PathLike`).
    fn text(&self) -> Result<String, Wrong> {
        if let Ok(text) = self.0.extract::<String>() {
            return Ok(text);
        }
        let path = self.0.call_method0("__fspath__").ok().and_then(|p| p.extract::<String>().ok());
        path.ok_or_else(|| match self.0.extract::<i64>().ok().filter(|_| self.is_number()) {
            // Columns and classes may be numbers in a frame: here they go by how they are written.
            Some(number) => self.wrong(format!("a text, such as '{number}'")),
            None => self.wrong("a text"),
        })
    }

    fn items(&self) -> Result<Vec<Bound<'py, PyAny>>, Wrong> {
        let plain = !self.0.is_instance_of::<PyString>() && !self.0.is_instance_of::<PyDict>();
        let items = self.0.try_iter().ok().filter(|_| plain);
        let items = items.and_then(|i| i.collect::<PyResult<Vec<_>>>().ok());
        items.ok_or_else(|| self.wrong("a list"))
    }

    fn entries(&self) -> Result<Vec<(String, Bound<'py, PyAny>)>, Wrong> {
        let dict = self.0.cast::<PyDict>().map_err(|_| self.wrong("a mapping"))?;
        let entry = |(key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>)| match key.extract() {
            Ok(key) => Ok((key, value)),
            Err(_) => Err(PyValue(&key).wrong("a name")),
        };
        dict.iter().map(entry).collect()
    }
}

impl<'de> Deserializer<'de> for PyValue<'_, '_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            v if v.is_none() => visitor.visit_unit(),
            v if v.is_instance_of::<PyBool>() => self.deserialize_bool(visitor),
            v if v.is_instance_of::<PyString>() => visitor.visit_string(self.text()?),
            v if v.is_instance_of::<PyDict>() => self.deserialize_map(visitor),
            v if v.is_instance_of::<PyList>() || v.is_instance_of::<PyTuple>() => {
                self.deserialize_seq(visitor)
            }
            v if v.extract::<u64>().is_ok() => visitor.visit_u64(self.whole()?),
            _ => visitor.visit_f64(self.real()?),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_bool(self.0.extract().map_err(|_| self.wrong("True or False"))?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_f64(self.real()?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u64(self.whole()?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let whole = u32::try_from(self.whole()?);
        visitor.visit_u32(whole.map_err(|_| self.wrong(format!("a whole number up to {}", u32::MAX)))?)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let whole = u8::try_from(self.whole()?);
        visitor.visit_u8(whole.map_err(|_| self.wrong(format!("a whole number up to {}", u8::MAX)))?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.0.is_none() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let items = self.items()?;
        visitor.visit_seq(Items { items: items.iter(), at: 0 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Wrong> {
        match self.items()?.len() == length {
            true => self.deserialize_seq(visitor),
            false => Err(self.wrong(format!("{length} items"))),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let entries = self.entries()?;
        visitor.visit_map(Entries { entries: entries.iter(), value: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if let Some((name, _)) = self.entries()?.iter().find(|(name, _)| !fields.contains(&&**name)) {
            let message = format!("there is no such option; they are {}", fields.join(", "));
            return Err(Wrong { path: vec![name.clone()], value: None, message });
        }
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let content = match self.0.cast::<PyDict>() {
            Ok(dict) => dict.iter().next(),
            Err(_) => None,
        };
        let (name, content) = match content {
            Some((name, content)) => (PyValue(&name).text()?, Some(content)),
            None => (self.0.extract::<String>().unwrap_or_default(), None),
        };
        if !variants.contains(&&*name) {
            return Err(self.wrong(choice(variants)));
        }
        visitor.visit_enum(Choice { name, content })
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u16 u128 f32 char bytes byte_buf unit unit_struct tuple_struct identifier ignored_any
    }
}

/// Choices as Python writes them: `'a', 'b' or 'c'`.
pub(crate) fn choice(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("'{n}'")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

struct Items<'a, 'py> {
    items: std::slice::Iter<'a, Bound<'py, PyAny>>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(item) = self.items.next() else { return Ok(None) };
        self.at += 1;
        let (value, at) = (PyValue(item), (self.at - 1).to_string());
        seed.deserialize(PyValue(item)).map(Some).map_err(|wrong| value.own_words(wrong).inside(at))
    }
}

struct Entries<'a, 'py> {
    entries: std::slice::Iter<'a, (String, Bound<'py, PyAny>)>,
    value: Option<&'a (String, Bound<'py, PyAny>)>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        self.value = self.entries.next();
        self.value.map(|(name, _)| seed.deserialize(StrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let (name, value) = self.value.take().ok_or_else(|| de::Error::custom("a value without a name"))?;
        seed.deserialize(PyValue(value)).map_err(|wrong| PyValue(value).own_words(wrong).inside(name))
    }
}

struct Choice<'py> {
    name: String,
    content: Option<Bound<'py, PyAny>>,
}

impl<'de, 'py> EnumAccess<'de> for Choice<'py> {
    type Error = Wrong;
    type Variant = Content<'py>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'py>), Wrong> {
        let variant = seed.deserialize(StrDeserializer::<Wrong>::new(&self.name))?;
        Ok((variant, Content { name: self.name, content: self.content }))
    }
}

/// What a choice comes with.
struct Content<'py> {
    name: String,
    content: Option<Bound<'py, PyAny>>,
}

impl<'py> Content<'py> {
    fn read<T>(self, read: impl FnOnce(PyValue<'_, 'py>) -> Result<T, Wrong>) -> Result<T, Wrong> {
        match &self.content {
            Some(content) => read(PyValue(content)).map_err(|wrong| wrong.inside(&self.name)),
            None => Err(de::Error::custom(format!("'{}' needs a value", self.name))),
        }
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        self.read(|content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.read(|content| content.deserialize_tuple(length, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.read(|content| content.deserialize_struct("", fields, visitor))
    }
}
