//! Sample values of columns, made from their schema.

use super::{
    kind::Kind,
    schema::{Column, Columns, Shape, Struct},
};
use crate::{
    cell::{Cell, Numbers, Raw, Record},
    sample,
};
use std::sync::Arc;

/// A row of these columns.
pub(super) fn row(columns: &Columns) -> Record {
    fields(columns, &columns.list)
}

fn fields(columns: &Columns, list: &[Column]) -> Record {
    list.iter().map(|column| (Arc::clone(&column.name), value(columns, &column.shape))).collect()
}

fn value(columns: &Columns, shape: &Shape) -> Cell {
    match shape {
        Shape::Value(leaf) => one(columns, *leaf),
        Shape::List(leaf) => match (columns.leaves[*leaf].kind, one(columns, *leaf)) {
            (Kind::Unsigned(8), _) => Cell::Numbers(Numbers::U8(vec![0])),
            (_, Cell::Null) => Cell::List(Vec::new()),
            (_, one) => Cell::List(vec![one]),
        },
        Shape::Struct(Struct { fields: list, .. }) => Cell::Struct(fields(columns, list)),
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
        Kind::Decimal => Cell::Raw(b"0".into(), Raw::Number),
        Kind::Null => Cell::Null,
    }
}
