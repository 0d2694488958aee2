//! Burn datasets from files that hold many samples: Parquet, tar shards, MDS, JSON lines ([`Rows`]), and token files ([`Tokens`]).
//!
//! ```
//! use burn::data::dataset::Dataset;
//! use burn_shards::Rows;
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
//! Each is a stateless Burn `Dataset` with random access, so it works with Burn's own `DataLoader` and transforms. The loader `burn-pinned`
//! feeds GPUs from it. Paths may be globs or lists in braces ([`Paths`]).
//!
//! # Where to read on
//!
//! - [`Rows`]: which types a row may have. [`RowsBuilder`]: every option, and `open`.
//! - [`Tokens`] and [`TokenWindow`]: token files, and windows over them.
//! - [`SeriesWindows`]: windows over series of numbers, such as those of `.npy` files ([`Array::open`]).
//! - [`RowsBuilder::stream`] and [`RowsBuilder::stream_from`]: rows that are read once, of shards without an index, of any reader, and of
//!   a command's output ([`Pipe`]).
//! - [`Rows::tokenized`] and [`Tokenized`]: rows of text as tokens, their lengths, and how to write them as token files.
//! - [`Rows::blocks`]: which rows are cheap to read together, for an order of your own.
//! - [`Rows::split`], [`Rows::column`], [`Rows::filter`], [`Rows::map`]: parts of the rows, and single columns.
//! - [`MeanStd`], [`medians`], [`Categories`]: numbers and names of a table, normalised and numbered.
//! - [`Decode`] and [`Array`]: files in a row, such as sounds and `.npy` arrays.
//! - [`DataError`]: what can go wrong, with file, row and column.
//! - `README.md`: a quick start with Burn's loader. The module `guide` of this documentation: formats, stores, caches and tokens in detail.
//!
//! # Features
//!
//! Local tars, uncompressed MDS shards, JSON lines and token files need no feature.
//!
//! - `parquet`: Parquet files.
//! - `mds`: compressed shards of MDS.
//! - `http`: web servers and the Hugging Face hub.
//! - `cloud`: S3, Google Cloud Storage and Azure.
//! - `images`: rows of images, which the crate `burn-augment` decodes: `ImageLimits`, and errors that name the row.
//! - `audio`: `Audio`, the sounds of WAV, FLAC, MP3, Ogg Vorbis, AAC and others, `MelSpectrogram`, and random changes of both.
//! - `tokenizers`: `HfTokenizer` and `ChatTemplate`, Hugging Face's tokenisers and chat templates.
//!
//! # Other crates in the API
//!
//! The API uses types and traits of burn 0.22, burn-augment 0.1 (features `images` and `audio`), serde 1 and serde_json 1 (feature `tokenizers`). A new major version of any of them requires
//! a new major version of this crate.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[cfg(feature = "audio")]
mod audio;
mod error;
#[cfg(doc)]
pub mod guide;
mod jsonl;
mod mds;
#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod rows;
mod series;
mod source;
mod store;
mod system;
mod tar;
mod text;
mod tokens;

#[cfg(feature = "audio")]
pub use audio::{
    AddGaussianNoise, Audio, BatchMelSpectrogram, FrequencyMasking, Gain, MelSpectrogram, Shift, TimeMasking,
};
#[cfg(feature = "remote")]
pub use error::StoreError;
pub use error::{BoxError, DataError};
pub use row::decode::{Decode, Decoded};
#[cfg(feature = "images")]
pub use rows::ImageLimits;
pub use rows::{Categories, MeanStd, RowStream, Rows, RowsBuilder, ShardStream, medians};
pub use series::{SeriesWindow, SeriesWindows};
pub use source::{blocks::Blocks, cell::Array, location::Paths};
pub use store::pipe::{Pipe, PipeError};
#[cfg(feature = "remote")]
pub use store::{ahead::FetchAhead, traffic::Fetched};
#[cfg(feature = "tokenizers")]
pub use text::{ChatTemplate, ChatText, HfTokenizer};
pub use text::{TextError, TokenLengths, TokenRow, Tokenize, Tokenized, tokenizer};
pub use tokens::{TokenFileError, TokenType, TokenWindow, TokenWindows, Tokens, TokensError};

/// What else the loader `burn-pinned` needs. It may change in any version.
#[doc(hidden)]
pub mod for_loader {
    #[cfg(feature = "remote")]
    pub use crate::store::fetching::take as take_fetching;
    pub use crate::{
        rows::{PartedRows, Picks, SampleError},
        system::{
            caught::{UserValues, panic_message},
            ends::end_waits_by,
            files::are_too_many,
            locks,
            permutation::Permutation,
            progress::Progress,
            replace::replace,
            step_back,
        },
    };
}

/// What `shards simulate` needs: the decisions of reading ahead, of the cache and of retries, without threads, clocks and bytes. It may
/// change in any version.
#[cfg(feature = "remote")]
#[doc(hidden)]
pub mod for_tools {
    pub use crate::{
        rows::{FindParts, RowLayout},
        store::{
            ahead::{AheadPiece, AheadState, PartState, Plan, PlannedRow, ReadAction, next_rows},
            cache::{PAGE, RUN, on_disk},
            steady::default_pause,
        },
    };
}

/// The example of the README, compiled and run as a test.
#[cfg(all(doctest, feature = "parquet"))]
#[doc = include_str!("../README.md")]
mod readme {}
