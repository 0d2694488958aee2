//! Rows of Parquet files, from values in pieces or read alone.

mod assemble;
mod sample;
mod saved;
mod source;

pub(crate) use source::open;
#[cfg(test)]
pub(super) use source::{ParquetSource, open_with};
