//! Options of data sets, as they were set.

use super::{busy::Busy, error::DataError};
use std::path::PathBuf;

/// What a format may need to know besides.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Where indices are saved. By default they lie beside the shards.
    pub(crate) index_dir: Option<PathBuf>,
    /// Where decompressed shards are kept, and how many bytes of them.
    pub(crate) cache: Option<(PathBuf, u64)>,
    /// The most bytes of decoded pieces in memory.
    pub(crate) memory: u64,
    /// The most bytes that a sample may have.
    pub(crate) largest_sample: u64,
    /// Whether this is only to learn what the row type asks for. Then fields of structs that are not supported are left
    /// out, and nothing is warned of.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "the other formats need no such look"))]
    pub(crate) first_look: bool,
    /// The most bytes that are fetched ahead from a store behind a network, and the most requests at once.
    #[cfg(feature = "remote")]
    pub(crate) read_ahead: u64,
    #[cfg(feature = "remote")]
    pub(crate) requests: usize,
    /// The waits that a store asks for.
    pub(crate) busy: Busy,
}

/// A sample has no more bytes, unless the user says so.
pub(crate) const LARGEST: u64 = 1 << 30;

impl Default for Options {
    fn default() -> Self {
        Self {
            index_dir: None,
            cache: None,
            memory: 512 << 20,
            largest_sample: LARGEST,
            first_look: false,
            #[cfg(feature = "remote")]
            read_ahead: 512 << 20,
            #[cfg(feature = "remote")]
            requests: 64,
            busy: Busy::default(),
        }
    }
}

/// More requests at once would be more threads than a process should have.
#[cfg(feature = "remote")]
const MOST: usize = 512;

impl Options {
    /// Checks what depends on nothing but the options.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        #[cfg(feature = "remote")]
        if !(1..=MOST).contains(&self.requests) {
            return Err(DataError::Option {
                option: "requests",
                problem: format!("there cannot be {} requests at once", self.requests),
                advice: format!("write a number from 1 to {MOST}; to fetch nothing ahead, write `.read_ahead(0)`"),
            });
        }
        Ok(())
    }

    /// For objects that are read once, when a data set is opened.
    pub(crate) fn for_once(&self) -> Self {
        Self { cache: None, ..self.clone() }
    }
}
