//! Any value that serde knows, written as bytes that only the same types can read.

use serde::{Serialize, Serializer, ser};
use std::fmt;

/// Why a value cannot be written or read, in words.
#[derive(Debug)]
pub(super) struct Fault(pub(super) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Bytes so far.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) out: Vec<u8>,
}

type Written = Result<(), Fault>;

impl Writer {
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Seven bits a byte, low ones first; the high bit says that more follow.
    fn whole(&mut self, mut n: u64) -> Written {
        while n > 0x7F {
            self.out.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.out.push(n as u8);
        Ok(())
    }

    fn length(&mut self, length: Option<usize>) -> Result<&mut Self, Fault> {
        let length = length.ok_or_else(|| Fault("a sequence must know its length".into()))?;
        self.whole(length as u64)?;
        Ok(self)
    }
}

/// NaN, refused.
pub(super) fn nan() -> Fault {
    Fault("a number is NaN".into())
}

impl Serializer for &mut Writer {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, v: bool) -> Written {
        self.whole(u64::from(v))
    }

    fn serialize_i8(self, v: i8) -> Written {
        self.serialize_i64(v.into())
    }

    fn serialize_i16(self, v: i16) -> Written {
        self.serialize_i64(v.into())
    }

    fn serialize_i32(self, v: i32) -> Written {
        self.serialize_i64(v.into())
    }

    fn serialize_i64(self, v: i64) -> Written {
        // Small magnitudes of either sign become small numbers: 0, −1, 1, −2, …
        self.whole(((v << 1) ^ (v >> 63)) as u64)
    }

    fn serialize_u8(self, v: u8) -> Written {
        self.whole(v.into())
    }

    fn serialize_u16(self, v: u16) -> Written {
        self.whole(v.into())
    }

    fn serialize_u32(self, v: u32) -> Written {
        self.whole(v.into())
    }

    fn serialize_u64(self, v: u64) -> Written {
        self.whole(v)
    }

    fn serialize_f32(self, v: f32) -> Written {
        self.serialize_f64(v.into())
    }

    fn serialize_f64(self, v: f64) -> Written {
        if v.is_nan() {
            return Err(nan());
        }
        self.raw(&v.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, v: char) -> Written {
        self.whole(u32::from(v).into())
    }

    fn serialize_str(self, v: &str) -> Written {
        self.serialize_bytes(v.as_bytes())
    }

    fn serialize_bytes(self, v: &[u8]) -> Written {
        self.whole(v.len() as u64)?;
        self.raw(v);
        Ok(())
    }

    fn serialize_none(self) -> Written {
        self.whole(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        self.whole(1)?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Written {
        self.whole(index.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Written {
        self.whole(index.into())?;
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Fault> {
        self.length(length)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Fault> {
        self.whole(index.into())?;
        Ok(self)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self, Fault> {
        self.length(length)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Fault> {
        self.whole(index.into())?;
        Ok(self)
    }
}

impl ser::SerializeSeq for &mut Writer {
    type Ok = ();
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        Ok(())
    }
}

impl ser::SerializeTuple for &mut Writer {
    type Ok = ();
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        Ok(())
    }
}

impl ser::SerializeTupleStruct for &mut Writer {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        Ok(())
    }
}

impl ser::SerializeTupleVariant for &mut Writer {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        Ok(())
    }
}

impl ser::SerializeMap for &mut Writer {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Written {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        Ok(())
    }
}

impl ser::SerializeStruct for &mut Writer {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        Ok(())
    }
}

impl ser::SerializeStructVariant for &mut Writer {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        Ok(())
    }
}
