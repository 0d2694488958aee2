//! Rows of Parquet files, from values in pieces or values that are read one by one.

mod assemble;
mod sample;
mod saved;
mod source;

pub(crate) use source::open;
#[cfg(test)]
pub(super) use source::{ParquetSource, open_with};
