//! Sample values of columns, made from their schema.

use super::assemble::pair;
use crate::{
    parquet::columns::{Column, Columns, Kind, Shape},
    source::{
        cell::{Cell, Raw, Record, Type},
        sample,
    },
};
use std::sync::Arc;

/// A row with sample values of these columns.
pub(crate) fn row(columns: &Columns) -> Record {
    fields(columns, &columns.list)
}

fn fields(columns: &Columns, list: &[Column]) -> Record {
    list.iter().map(|column| (Arc::clone(&column.name), value(columns, &column.shape))).collect()
}

fn value(columns: &Columns, shape: &Shape) -> Cell {
    match shape {
        Shape::Value(leaf) => one(columns, *leaf),
        Shape::List(leaf) => list(columns, *leaf),
        Shape::Repeated { element, is_map: true, .. } => {
            Cell::Map(pair(value(columns, &element.shape)).into_iter().collect())
        }
        Shape::Repeated { element, .. } => match &element.shape {
            Shape::Value(leaf) => list(columns, *leaf),
            shape => Cell::List(vec![value(columns, shape)]),
        },
        Shape::Struct { fields: list, .. } => Cell::Struct(fields(columns, list)),
    }
}

fn list(columns: &Columns, leaf: usize) -> Cell {
    match (columns.leaves[leaf].kind, one(columns, leaf)) {
        (Kind::Unsigned(8), _) => Type::U8.list(&[0u8]),
        (_, Cell::Null) => Cell::List(Vec::new()),
        (_, one) => Cell::List(vec![one]),
    }
}

fn one(columns: &Columns, leaf: usize) -> Cell {
    match columns.leaves[leaf].kind {
        Kind::Bool => Cell::Bool(false),
        Kind::Int(_) => Cell::Int(0),
        Kind::Unsigned(_) => Cell::Unsigned(0),
        Kind::F16 | Kind::F32 => Cell::F32(0.0),
        Kind::F64 => Cell::F64(0.0),
        Kind::Text => Cell::Text(String::new()),
        Kind::Json => sample::unknown(),
        Kind::Bytes => Cell::Bytes(sample::bytes()),
        Kind::Decimal(0) => Cell::Raw(b"0".into(), Raw::Number),
        Kind::Decimal(_) => Cell::Raw(b"0.5".into(), Raw::Number), // integers do not accept it
        Kind::Null => Cell::Null,
    }
}
