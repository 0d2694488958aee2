//! The readable names of types.

use super::{
    kind::{integer, width},
    nodes::{element, is, is_list, is_map},
};
use parquet::{
    basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Stored},
    schema::types::Type,
};

/// The type of a node: `int64`, `list<string>`, `struct{bytes: binary, path: string}`.
pub(crate) fn word(node: &Type) -> String {
    if is(node, Repetition::REPEATED) { format!("list<{}>", one(node)) } else { one(node) }
}

fn one(node: &Type) -> String {
    if node.is_primitive() {
        return value(node);
    }
    if is_list(node) {
        return format!("list<{}>", element(node).map_or_else(String::new, one));
    }
    if is_map(node)
        && let [pairs] = node.get_fields()
        && pairs.is_group()
    {
        let sides: Vec<String> = pairs.get_fields().iter().map(|side| word(side)).collect();
        return format!("map<{}>", sides.join(", "));
    }
    let fields: Vec<String> =
        node.get_fields().iter().map(|field| format!("{}: {}", field.name(), word(field))).collect();
    format!("struct{{{}}}", fields.join(", "))
}

/// The type of a day, a time or a timestamp, with its unit.
pub(crate) fn time(node: &Type) -> Option<String> {
    let info = node.get_basic_info();
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => "ms",
        TimeUnit::MICROS => "us",
        TimeUnit::NANOS => "ns",
    };
    let word = match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => "date",
        (Some(LogicalType::Time(time)), _) => return Some(format!("time[{}]", unit(&time.unit))),
        (Some(LogicalType::Timestamp(time)), _) => return Some(format!("timestamp[{}]", unit(&time.unit))),
        (_, ConvertedType::TIME_MILLIS) => "time[ms]",
        (_, ConvertedType::TIME_MICROS) => "time[us]",
        (_, ConvertedType::TIMESTAMP_MILLIS) => "timestamp[ms]",
        (_, ConvertedType::TIMESTAMP_MICROS) => "timestamp[us]",
        _ => return None,
    };
    Some(word.into())
}

fn value(node: &Type) -> String {
    let (info, stored) = (node.get_basic_info(), node.get_physical_type());
    let (converted, logical) = (info.converted_type(), info.logical_type_ref());
    if matches!(logical, Some(LogicalType::Unknown)) {
        return "null".into();
    }
    if converted == ConvertedType::DECIMAL || matches!(logical, Some(LogicalType::Decimal(_))) {
        return format!("decimal({}, {})", node.get_precision(), node.get_scale());
    }
    if let Some((bits, signed)) = integer(converted, logical) {
        return format!("{}int{bits}", if signed { "" } else { "u" });
    }
    if let Some(time) = time(node) {
        return time;
    }
    let word = match (logical, converted) {
        (Some(LogicalType::Float16), _) => "float16",
        (Some(LogicalType::Json), _) | (_, ConvertedType::JSON) => "json",
        (Some(LogicalType::String | LogicalType::Enum), _) | (_, ConvertedType::UTF8 | ConvertedType::ENUM) => "string",
        _ => match stored {
            Stored::BOOLEAN => "bool",
            Stored::INT32 => "int32",
            Stored::INT64 => "int64",
            Stored::INT96 => "int96",
            Stored::FLOAT => "float32",
            Stored::DOUBLE => "float64",
            Stored::BYTE_ARRAY => "binary",
            Stored::FIXED_LEN_BYTE_ARRAY => return format!("binary[{}]", width(node)),
        },
    };
    word.into()
}
