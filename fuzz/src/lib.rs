//! What the fuzz targets share.

mod allocator;
mod files;
mod jpegs;
pub mod parquet_file;
pub mod picture;
mod pngs;
mod target;

pub use files::{BETWEEN, as_file, as_files, cut};
pub use jpegs::jpegs;
pub use pngs::pngs;
pub use target::{begin, run};

use burn::data::dataset::Dataset;
use burn_pinned::data::Rows;
use serde::de::DeserializeOwned;

/// Reads the first rows from the front, then from the back: a result must not depend on the order of reads.
///
/// # Panics
/// If it does.
pub fn read<T: DeserializeOwned + PartialEq + std::fmt::Debug + Send + Sync + Clone + 'static>(
    rows: &Rows<T>,
) -> Vec<Result<T, String>> {
    const MOST: usize = 64;
    let get = |row| rows.get(row).map_err(|error| error.to_string());
    let there: Vec<_> = (0..rows.len().min(MOST)).map(get).collect();
    for (row, first) in there.iter().enumerate().rev() {
        assert_eq!(first.as_ref().ok(), get(row).as_ref().ok(), "row {row} is another one when it is read again");
    }
    there
}
