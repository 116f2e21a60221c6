//! No document holds a number that is none. JSON has no infinity and no NaN: the writer would put `null`, and an overflow
//! would leave with a good exit code. Numbers that may be without bound say so in their type's field (`unbounded`) and are
//! written as absent; whatever else is not finite is found here, with the name of its field.

use serde::ser::{self, Serialize};
use std::fmt::Display;

/// A number of a document that is not finite.
#[derive(Debug, Clone, PartialEq)]
pub struct NotFinite {
    /// Where in the document, as `eta.max`.
    pub field: String,
    /// What it is.
    pub value: f64,
}

impl Display for NotFinite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` came out as {}, which is no number: the data, the penalty or the noise are of a size that overflows; \
             bring columns to ordinary units",
            self.field, self.value
        )
    }
}

impl std::error::Error for NotFinite {}

/// Checks that every number of a document is finite, but for those that are meant to be without bound.
pub fn check_finite(document: &impl Serialize) -> Result<(), NotFinite> {
    match document.serialize(Checker { path: "" }) {
        Ok(()) => Ok(()),
        Err(Stop::Number(number)) => Err(number),
        // A document that does not serialise is found by its writer.
        Err(Stop::Other) => Ok(()),
    }
}

#[derive(Debug)]
enum Stop {
    Number(NotFinite),
    Other,
}

impl Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Other => f.write_str("not a document"),
        }
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Self::Other
    }
}

/// Looks at a value at a place of the document.
#[derive(Clone, Copy)]
struct Checker<'a> {
    path: &'a str,
}

impl Checker<'_> {
    fn number(self, value: f64) -> Result<(), Stop> {
        if value.is_finite() {
            return Ok(());
        }
        Err(Stop::Number(NotFinite { field: self.path.to_owned(), value }))
    }

    fn part(self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Stop> {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        value.serialize(Checker { path: &path })
    }
}

/// The parts of a value one after the other.
struct Parts<'a> {
    whole: Checker<'a>,
    next: usize,
    key: String,
}

impl Parts<'_> {
    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Stop> {
        let name = self.next.to_string();
        self.next += 1;
        self.whole.part(&name, value)
    }
}

/// Nothing to see in values of these types.
macro_rules! fine {
    ($($name:ident($of:ty)),*) => {
        $(fn $name(self, _: $of) -> Result<(), Stop> {
            Ok(())
        })*
    };
}

impl<'a> ser::Serializer for Checker<'a> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    fine!(
        serialize_bool(bool),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_char(char),
        serialize_str(&str),
        serialize_bytes(&[u8]),
        serialize_unit_struct(&'static str)
    );

    fn serialize_f32(self, value: f32) -> Result<(), Stop> {
        self.number(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Stop> {
        self.number(value)
    }

    fn serialize_none(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        self.part(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Stop> {
        Ok(Parts { whole: self, next: 0, key: String::new() })
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Stop> {
        self.serialize_seq(None)
    }
}

/// Elements that have a number for a name.
macro_rules! elements {
    ($($of:ident $method:ident),*) => {
        $(impl ser::$of for Parts<'_> {
            type Ok = ();
            type Error = Stop;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                self.element(value)
            }

            fn end(self) -> Result<(), Stop> {
                Ok(())
            }
        })*
    };
}

elements!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// Fields that have a name of their own.
macro_rules! fields {
    ($($of:ident),*) => {
        $(impl ser::$of for Parts<'_> {
            type Ok = ();
            type Error = Stop;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Stop> {
                self.whole.part(name, value)
            }

            fn end(self) -> Result<(), Stop> {
                Ok(())
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        self.key = serde_json::to_value(key).map_or_else(
            |_| String::new(),
            |key| match key {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            },
        );
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        let key = std::mem::take(&mut self.key);
        self.whole.part(&key, value)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use std::collections::BTreeMap;

    #[derive(Serialize)]
    struct Inner {
        max: f64,
        #[serde(with = "crate::unbounded::number")]
        free: f64,
    }

    #[derive(Serialize)]
    struct Document {
        eta: Vec<Inner>,
        of: BTreeMap<String, Option<f64>>,
    }

    #[test]
    fn what_is_no_number_is_named_and_what_may_be_without_bound_passes() {
        let document = |max: f64, age: f64| Document {
            eta: vec![Inner { max: 1.0, free: f64::INFINITY }, Inner { max, free: 1.0 }],
            of: [("age".to_owned(), Some(age)), ("sex".to_owned(), None)].into(),
        };
        assert_eq!(check_finite(&document(2.0, 3.0)), Ok(()));
        let complaint = |d: Document| check_finite(&d).map_err(|e| e.field);
        assert_eq!(complaint(document(f64::INFINITY, 3.0)), Err("eta.1.max".into()));
        assert_eq!(complaint(document(2.0, f64::NAN)), Err("of.age".into()));
    }
}
