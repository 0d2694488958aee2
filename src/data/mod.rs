//! Data sets of files that many samples share: Parquet, tar shards, MDS, JSON lines ([`Rows`]), and token files ([`Tokens`]).
//!
//! ```
//! use burn::data::dataset::Dataset;
//! use burn_pinned::data::Rows;
//!
//! #[derive(serde::Deserialize)]
//! struct Row {
//!     text: String,
//!     label: usize,
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("train.jsonl");
//! # std::fs::write(&path, "{\"text\": \"a\", \"label\": 1}\n")?;
//! let train = Rows::<Row>::jsonl(path).open()?; // `parquet`, `tar` and `mds` in the same way
//! assert_eq!(train.get(0)?.label, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each is a Burn `Dataset` with random access and without a state. So order, resume, shares of processes, mixtures and
//! policies for bad samples work for all of them. Their paths may be globs or lists of braces ([`Paths`]).

mod asked;
mod cell;
mod declared;
mod error;
mod index;
mod jsonl;
mod location;
mod magic;
mod mapped;
mod mds;
mod nested;
mod options;
mod parallel;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod pieces;
mod progress;
#[cfg(feature = "remote")]
mod read_ahead;
mod replace;
mod row;
mod rows;
mod rows_builder;
mod sample;
mod source;
mod starts;
mod store;
mod tar;
mod tokens;
#[cfg(feature = "remote")]
mod traffic;
mod url;

pub use cell::Array;
pub use error::DataError;
#[cfg(feature = "remote")]
pub use error::StoreError;
pub use location::Paths;
pub(crate) use progress::Progress;
pub use rows::Rows;
pub use rows_builder::RowsBuilder;
pub use tokens::{TokenFileError, TokenType, TokenWindow, TokenWindows, Tokens, TokensError};
#[cfg(feature = "remote")]
pub use traffic::Fetched;
