//! Arrow arrays to cells: what a type means, and how its values are read.

use crate::batch::{Cells, Levels, MISSING, Numbers, Reading, Texts};
use crate::column::Kind;
use crate::csv_file::Markers;
use crate::dates::{DateOrder, days_of_units, iso_of_units};
use crate::notation::Notation;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use std::borrow::Cow;
use std::path::Path;

/// Number or category; `Err` with the type's name where there is no encoding.
pub(crate) fn kind_of(data_type: &DataType) -> std::result::Result<Kind, String> {
    use DataType as T;
    match data_type {
        T::Null | T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
            Ok(Kind::Number)
        }
        T::Float16 | T::Float32 | T::Float64 => Ok(Kind::Number),
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..) => Ok(Kind::Number),
        T::Date32 | T::Date64 | T::Timestamp(..) => Ok(Kind::Number),
        T::Boolean | T::Utf8 | T::LargeUtf8 | T::Utf8View => Ok(Kind::Category),
        T::Dictionary(_, values) => kind_of(values).map(|_| Kind::Category),
        other => Err(other.to_string()),
    }
}

/// How the numbers of a type are written: dates are days since 1970-01-01.
pub(crate) fn notation_of(data_type: &DataType) -> Notation {
    use DataType as T;
    match data_type {
        T::Date32 | T::Date64 | T::Timestamp(..) => Notation::Date(DateOrder::YearFirst),
        _ => Notation::Plain,
    }
}

/// The values of a date or timestamp, as numbers of a unit of which a day has so many; `None` for other types.
fn times(array: &dyn Array) -> Option<(Cow<'_, [i64]>, i64)> {
    const DAY: i64 = 86_400;
    Some(match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values();
            (Cow::Owned(days.iter().map(|d| i64::from(*d)).collect()), 1)
        }
        DataType::Date64 => (Cow::Borrowed(array.as_primitive::<Date64Type>().values().as_ref()), DAY * 1000),
        DataType::Timestamp(TimeUnit::Second, _) => {
            (Cow::Borrowed(array.as_primitive::<TimestampSecondType>().values().as_ref()), DAY)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            (Cow::Borrowed(array.as_primitive::<TimestampMillisecondType>().values().as_ref()), DAY * 1000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => (
            Cow::Borrowed(array.as_primitive::<TimestampMicrosecondType>().values().as_ref()),
            DAY * 1_000_000,
        ),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => (
            Cow::Borrowed(array.as_primitive::<TimestampNanosecondType>().values().as_ref()),
            DAY * 1_000_000_000,
        ),
        _ => return None,
    })
}

/// Appends dates as days, nulls as NaN.
fn extend_times(array: &dyn Array, out: &mut Vec<f64>) {
    let Some((units, per_day)) = times(array) else { return };
    let value = |(i, v): (usize, &i64)| if array.is_null(i) { f64::NAN } else { days_of_units(*v, per_day) };
    out.extend(units.iter().enumerate().map(value));
}

/// Whether a column of this kind can be read as wanted; an error names it.
pub(crate) fn check_reading(
    path: &Path,
    (name, kind, data_type): (&str, &std::result::Result<Kind, String>, &DataType),
    reading: Reading,
) -> Result<()> {
    let (path, column) = (path.to_path_buf(), name.to_string());
    match (kind, reading) {
        (Err(type_name), _) => Err(Error::UnsupportedType { path, column, type_name: type_name.clone() }),
        (Ok(Kind::Category), Reading::Number) => {
            Err(Error::KindsDiffer { path, column, actual: data_type.to_string() })
        }
        (Ok(_), _) => Ok(()),
    }
}

/// Appends an array of primitives, nulls as NaN.
fn extend<T: ArrowPrimitiveType>(array: &dyn Array, out: &mut Vec<f64>, convert: impl Fn(T::Native) -> f64) {
    let array = array.as_primitive::<T>();
    let start = out.len();
    out.extend(array.values().iter().map(|v| convert(*v)));
    if let Some(nulls) = array.nulls() {
        for (x, valid) in out[start..].iter_mut().zip(nulls) {
            if !valid {
                *x = f64::NAN;
            }
        }
    }
}

/// A decimal is parsed from its digits: correctly rounded, as a CSV file with the same digits would be.
fn extend_decimal<T: DecimalType + ArrowPrimitiveType>(array: &dyn Array, out: &mut Vec<f64>) {
    let array: &PrimitiveArray<T> = array.as_primitive();
    out.extend((0..array.len()).map(|i| {
        if array.is_null(i) { f64::NAN } else { array.value_as_string(i).parse().unwrap_or(f64::NAN) }
    }));
}

/// Appends the cells of an array to `cells`; `whole` where they are all that it will hold, so that numbers need
/// not be copied. `Err` with the position of an infinity.
pub(crate) fn read_cells(
    array: &ArrayRef,
    cells: &mut Cells,
    dictionary: &mut Dictionary,
    markers: &Markers,
    whole: bool,
) -> std::result::Result<(), usize> {
    match cells {
        Cells::Number(numbers) => {
            read_numbers(array, numbers, &markers.own_numbers, whole);
            numbers.check()
        }
        Cells::Level(levels) => {
            read_levels(array, levels, dictionary, markers);
            Ok(())
        }
        Cells::Text(texts) => {
            read_texts(array, texts, markers);
            Ok(())
        }
    }
}

fn read_numbers(array: &ArrayRef, numbers: &mut Numbers, missing: &[f64], whole: bool) {
    use DataType as T;
    let out = &mut numbers.own;
    match array.data_type() {
        T::Float64 if whole && array.null_count() == 0 && missing.is_empty() => {
            return numbers.adopt(array.clone());
        }
        T::Float64 => extend::<Float64Type>(array, out, |v| v),
        T::Float32 => extend::<Float32Type>(array, out, f64::from),
        T::Float16 => extend::<Float16Type>(array, out, |v| v.to_f64()),
        T::Int8 => extend::<Int8Type>(array, out, f64::from),
        T::Int16 => extend::<Int16Type>(array, out, f64::from),
        T::Int32 => extend::<Int32Type>(array, out, f64::from),
        T::Int64 => extend::<Int64Type>(array, out, |v| v as f64),
        T::UInt8 => extend::<UInt8Type>(array, out, f64::from),
        T::UInt16 => extend::<UInt16Type>(array, out, f64::from),
        T::UInt32 => extend::<UInt32Type>(array, out, f64::from),
        T::UInt64 => extend::<UInt64Type>(array, out, |v| v as f64),
        T::Decimal32(..) => extend_decimal::<Decimal32Type>(array, out),
        T::Decimal64(..) => extend_decimal::<Decimal64Type>(array, out),
        T::Decimal128(..) => extend_decimal::<Decimal128Type>(array, out),
        T::Decimal256(..) => extend_decimal::<Decimal256Type>(array, out),
        T::Date32 | T::Date64 | T::Timestamp(..) => extend_times(array, out),
        // Only the null type is left: `check` lets no other type be read as numbers.
        _ => out.extend(std::iter::repeat_n(f64::NAN, array.len())),
    }
    if !missing.is_empty() {
        out.iter_mut().filter(|x| missing.contains(x)).for_each(|x| *x = f64::NAN);
    }
}

/// What the dictionary of the last batch came to, for as long as it stays the same.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    values: Option<ArrayRef>,
    codes: Vec<u32>,
}

/// A dictionary value that no row has used yet: it must not count as a level.
const UNUSED: u32 = u32::MAX - 1;

fn read_levels(array: &ArrayRef, levels: &mut Levels, dictionary: &mut Dictionary, markers: &Markers) {
    use DataType as T;
    match array.data_type() {
        T::Dictionary(..) => read_dictionary(array, levels, dictionary, markers),
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 => {
            let mut values = Vec::with_capacity(array.len());
            match array.data_type() {
                T::Int8 => integers::<Int8Type>(array, &mut values),
                T::Int16 => integers::<Int16Type>(array, &mut values),
                T::Int32 => integers::<Int32Type>(array, &mut values),
                T::UInt8 => integers::<UInt8Type>(array, &mut values),
                T::UInt16 => integers::<UInt16Type>(array, &mut values),
                T::UInt32 => integers::<UInt32Type>(array, &mut values),
                _ => integers::<Int64Type>(array, &mut values),
            }
            let names = &mut levels.names;
            let code = |v: Option<i64>| match v {
                Some(v) if markers.own.is_empty() || !markers.own.contains(&v.to_string()) => {
                    names.code_of_bits(v as u64, || v.to_string())
                }
                _ => MISSING,
            };
            levels.codes.extend(values.into_iter().map(code));
        }
        _ => {
            for i in 0..array.len() {
                let code = match text_at(array, i).filter(|t| !is_marker(markers, t)) {
                    Some(text) => levels.names.code(&text),
                    None => MISSING,
                };
                levels.codes.push(code);
            }
        }
    }
}

fn integers<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array, out: &mut Vec<Option<i64>>) {
    out.extend(array.as_primitive::<T>().iter().map(|v| v.map(Into::into)));
}

fn read_dictionary(array: &ArrayRef, levels: &mut Levels, dictionary: &mut Dictionary, markers: &Markers) {
    let keyed = array.as_any_dictionary();
    let values = keyed.values();
    if values.is_empty() {
        levels.codes.extend(std::iter::repeat_n(MISSING, array.len()));
        return;
    }
    let same = dictionary.values.as_ref().is_some_and(|last| last.to_data().ptr_eq(&values.to_data()));
    if !same {
        dictionary.codes.clear();
        dictionary.codes.resize(values.len(), UNUSED);
        dictionary.values = Some(values.clone());
    }
    let nulls = keyed.keys().nulls();
    for (i, key) in keyed.normalized_keys().into_iter().enumerate() {
        if nulls.is_some_and(|n| n.is_null(i)) {
            levels.codes.push(MISSING);
            continue;
        }
        if dictionary.codes[key] == UNUSED {
            dictionary.codes[key] = match text_at(values, key).filter(|t| !is_marker(markers, t)) {
                Some(text) => levels.names.code(&text),
                None => MISSING,
            };
        }
        levels.codes.push(dictionary.codes[key]);
    }
}

fn read_texts(array: &ArrayRef, texts: &mut Texts, markers: &Markers) {
    for i in 0..array.len() {
        texts.push(text_at(array, i).filter(|t| !is_marker(markers, t)).as_deref());
    }
}

/// In Parquet a missing value is a null; only the caller's own markers are looked for in text.
fn is_marker(markers: &Markers, text: &str) -> bool {
    markers.own.iter().any(|m| m == text)
}

/// A cell as text, trimmed as in CSV; `None` where it is missing.
pub(crate) fn text_at(array: &dyn Array, i: usize) -> Option<Cow<'_, str>> {
    use DataType as T;
    if array.is_null(i) {
        return None;
    }
    let shown = |text: String| Some(Cow::Owned(text));
    match array.data_type() {
        T::Utf8 => Some(Cow::Borrowed(array.as_string::<i32>().value(i).trim())),
        T::LargeUtf8 => Some(Cow::Borrowed(array.as_string::<i64>().value(i).trim())),
        T::Utf8View => Some(Cow::Borrowed(array.as_string_view().value(i).trim())),
        T::Boolean => Some(Cow::Borrowed(if array.as_boolean().value(i) { "true" } else { "false" })),
        T::Int8 => shown(array.as_primitive::<Int8Type>().value(i).to_string()),
        T::Int16 => shown(array.as_primitive::<Int16Type>().value(i).to_string()),
        T::Int32 => shown(array.as_primitive::<Int32Type>().value(i).to_string()),
        T::Int64 => shown(array.as_primitive::<Int64Type>().value(i).to_string()),
        T::UInt8 => shown(array.as_primitive::<UInt8Type>().value(i).to_string()),
        T::UInt16 => shown(array.as_primitive::<UInt16Type>().value(i).to_string()),
        T::UInt32 => shown(array.as_primitive::<UInt32Type>().value(i).to_string()),
        T::UInt64 => shown(array.as_primitive::<UInt64Type>().value(i).to_string()),
        T::Float16 => not_nan(array.as_primitive::<Float16Type>().value(i).to_f32().into()),
        T::Float32 => {
            let x = array.as_primitive::<Float32Type>().value(i);
            if x.is_nan() { None } else { shown(x.to_string()) }
        }
        T::Float64 => not_nan(array.as_primitive::<Float64Type>().value(i)),
        T::Decimal32(..) => shown(array.as_primitive::<Decimal32Type>().value_as_string(i)),
        T::Decimal64(..) => shown(array.as_primitive::<Decimal64Type>().value_as_string(i)),
        T::Decimal128(..) => shown(array.as_primitive::<Decimal128Type>().value_as_string(i)),
        T::Decimal256(..) => shown(array.as_primitive::<Decimal256Type>().value_as_string(i)),
        T::Date32 | T::Date64 | T::Timestamp(..) => {
            let one = array.slice(i, 1);
            let (units, per_day) = times(&one)?;
            shown(iso_of_units(units[0], per_day))
        }
        T::Dictionary(..) => {
            let keyed = array.as_any_dictionary();
            if keyed.values().is_empty() {
                None
            } else {
                text_of_key(keyed.values(), key_at(keyed.keys(), i))
            }
        }
        _ => None,
    }
}

fn not_nan(x: f64) -> Option<Cow<'static, str>> {
    if x.is_nan() { None } else { Some(Cow::Owned(x.to_string())) }
}

fn text_of_key(values: &ArrayRef, key: Option<usize>) -> Option<Cow<'_, str>> {
    key.filter(|k| *k < values.len()).and_then(|k| text_at(values.as_ref(), k))
}

fn key_at(keys: &dyn Array, i: usize) -> Option<usize> {
    text_at(keys, i)?.parse().ok()
}
