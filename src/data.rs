//! Datasets in files that hold many samples each: Parquet, tar shards, MDS, JSON lines ([`Rows`]), and token files ([`Tokens`]).
//!
//! They come from the crate [`burn_shards`]. The loader adds prefetching of rows, blocks for
//! [`BlockShuffle`](crate::order::BlockShuffle), and limits for images.
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
//! let train = Rows::<Row>::jsonl(path).open()?; // or `parquet`, `tar`, `mds`
//! assert_eq!(train.get(0)?.label, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each is a Burn `Dataset` with random access and without state. So sample order, resume, shares of processes,
//! mixtures and policies for bad samples work with all of them. Paths may be globs or brace lists ([`Paths`]).

use crate::order::Blocks;
#[cfg(feature = "remote")]
use crate::order::{Guard, ReadAhead};
#[cfg(feature = "vision")]
pub use burn_shards::ImageLimits;
#[cfg(feature = "remote")]
#[doc(hidden)]
pub use burn_shards::for_tools;
#[cfg(feature = "audio")]
pub use burn_shards::{
    AddGaussianNoise, Audio, BatchMelSpectrogram, FrequencyMasking, Gain, MelSpectrogram, Shift, TimeMasking,
};
pub use burn_shards::{
    Array, Categories, DataError, Decode, Decoded, MeanStd, Paths, Pipe, PipeError, RowStream, Rows, RowsBuilder,
    SeriesWindow, SeriesWindows, ShardStream, TextError, TokenFileError, TokenLengths, TokenRow, TokenType,
    TokenWindow, TokenWindows, Tokenize, Tokenized, Tokens, TokensError, medians, tokenizer,
};
#[cfg(feature = "tokenizers")]
pub use burn_shards::{ChatTemplate, ChatText, HfTokenizer};
#[cfg(feature = "remote")]
pub use burn_shards::{FetchAhead, Fetched, StoreError};
#[cfg(feature = "remote")]
use std::time::Duration;

impl From<burn_shards::Blocks> for Blocks {
    fn from(blocks: burn_shards::Blocks) -> Self {
        let made = Self::new(blocks.blocks);
        match blocks.limit {
            Some(limit) => made.with_limit(limit),
            None => made,
        }
    }
}

/// Does nothing for local files: the operating system prefetches them.
#[cfg(feature = "remote")]
impl<T> ReadAhead for Rows<T> {
    fn begin(&self, order: Box<dyn Iterator<Item = usize> + Send>) -> Guard {
        Guard::new(self.fetch_ahead(order))
    }

    fn asked_to_wait(&self) -> Duration {
        self.fetched().map_or(Duration::ZERO, |fetched| fetched.asked_to_wait)
    }
}

/// The same as for its rows. Does nothing for other datasets.
#[cfg(feature = "remote")]
impl ReadAhead for Tokenized {
    fn begin(&self, order: Box<dyn Iterator<Item = usize> + Send>) -> Guard {
        Guard::new(self.rows().map(|rows| rows.fetch_ahead(order)))
    }

    fn asked_to_wait(&self) -> Duration {
        self.rows().map_or(Duration::ZERO, ReadAhead::asked_to_wait)
    }
}
