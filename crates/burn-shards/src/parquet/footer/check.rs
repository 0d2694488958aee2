//! Checks the schema in a footer before the crate `parquet` reads it. That crate allocates as many children as a node claims
//! to have, and recurses as deep as nodes are nested.
//!
//! The crate reads each field by its number and ignores its type. So a field with a type that differs from the format is refused here,
//! because the two readers would read different things.

use crate::parquet::{
    fault::PartError,
    thrift::{FieldType, Thrift},
};

/// The deepest nesting of columns.
const DEPTH: usize = 64;

pub(crate) fn check_schema(footer: &[u8]) -> Result<(), PartError> {
    Thrift::new(footer).fields(|thrift, field, kind| match (field, kind) {
        (8, FieldType::Struct) => Err(PartError::Unsupported("encrypted columns".into())),
        (1, FieldType::I32) | (3, FieldType::I64) | (4 | 5 | 7, FieldType::List) | (6 | 9, FieldType::Binary) => {
            Ok(false)
        }
        (1..=9, kind) if (field, kind) != (2, FieldType::List) => Err(other_type()),
        (2, _) => check_nodes(thrift).map(|()| true),
        _ => Ok(false),
    })
}

fn check_nodes(thrift: &mut Thrift<'_>) -> Result<(), PartError> {
    let (length, item) = thrift.list()?;
    if item != FieldType::Struct {
        return Err(other_type());
    }
    // How many children of each open node are still missing.
    let mut open: Vec<usize> = Vec::new();
    for node in 0..length {
        let children = check_node(thrift)? as usize;
        if children > length - node - 1 {
            return Err(PartError::damaged("the schema is cut off"));
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if children > 0 {
            open.push(children);
        }
        while open.last() == Some(&0) {
            open.pop();
        }
        if open.len() > DEPTH {
            return Err(PartError::Unsupported(format!("columns that are nested more than {DEPTH} deep")));
        }
    }
    Ok(())
}

/// Returns how many children a node has.
fn check_node(thrift: &mut Thrift<'_>) -> Result<u32, PartError> {
    let mut children = 0;
    thrift.fields(|thrift, field, kind| match (field, kind) {
        (5, FieldType::I32) => {
            children = thrift.count()?;
            Ok(true)
        }
        (10, FieldType::Struct) => check_logical(thrift).map(|()| true),
        (1..=3 | 6..=9, FieldType::I32) | (4, FieldType::Binary) => Ok(false),
        (1..=10, _) => Err(other_type()),
        _ => Ok(false),
    })?;
    Ok(children)
}

/// A logical type is a struct of one field, which is a struct too.
fn check_logical(thrift: &mut Thrift<'_>) -> Result<(), PartError> {
    thrift.fields(|thrift, logical, kind| {
        if kind != FieldType::Struct {
            return Err(other_type());
        }
        thrift.fields(|_, field, kind| {
            let right = match (logical, field) {
                (5, 1 | 2) => kind == FieldType::I32,
                (7 | 8, 1) | (10, 2) => matches!(kind, FieldType::Bool(_)),
                (7 | 8, 2) => kind == FieldType::Struct,
                (10 | 16, 1) => kind == FieldType::Byte,
                (17 | 18, 1) => kind == FieldType::Binary,
                (18, 2) => kind == FieldType::I32,
                _ => true,
            };
            if right { Ok(false) } else { Err(other_type()) }
        })?;
        Ok(true)
    })
}

fn other_type() -> PartError {
    PartError::damaged("a field has another type than the format says")
}
