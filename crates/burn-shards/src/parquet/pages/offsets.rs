//! Offset indices: where the pages of a chunk are, and which rows they have.

use crate::parquet::{
    fault::PartError,
    thrift::{FieldType, Thrift},
};
use std::ops::Range;

/// A page with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PagePlace {
    pub(crate) start: u64,
    pub(crate) length: u32,
    /// The number of the page's first row in its row group.
    pub(crate) first_row: u64,
}

impl PagePlace {
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + u64::from(self.length)
    }
}

pub(crate) fn offset_index(bytes: &[u8]) -> Result<Vec<PagePlace>, PartError> {
    let mut pages = Vec::new();
    Thrift::new(bytes).fields(|thrift, field, kind| {
        if (field, kind) != (1, FieldType::List) {
            return Ok(false);
        }
        let (length, item) = thrift.list()?;
        if item != FieldType::Struct {
            return Err(PartError::damaged("an offset index has no pages"));
        }
        for _ in 0..length {
            pages.push(page(thrift)?);
        }
        Ok(true)
    })?;
    Ok(pages)
}

fn page(thrift: &mut Thrift<'_>) -> Result<PagePlace, PartError> {
    let (mut start, mut length, mut first_row) = (None, None, None);
    thrift.fields(|thrift, field, kind| {
        match (field, kind) {
            (1, FieldType::I64) => start = u64::try_from(thrift.i64()?).ok(),
            (2, FieldType::I32) => length = Some(thrift.count()?),
            (3, FieldType::I64) => first_row = u64::try_from(thrift.i64()?).ok(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match (start, length, first_row) {
        (Some(start), Some(length), Some(first_row)) => Ok(PagePlace { start, length, first_row }),
        _ => Err(PartError::damaged("an offset index lacks a field")),
    }
}
