//! Options of data sets.

use super::busy::Busy;
use crate::error::DataError;
use std::path::PathBuf;

/// The options of a data set that formats and stores need.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Where indices are saved. By default they lie beside the shards.
    pub(crate) index_dir: Option<PathBuf>,
    /// Where decompressed shards are kept, and how many bytes of them.
    #[cfg_attr(not(any(feature = "mds", feature = "remote")), allow(dead_code, reason = "nothing is kept"))]
    pub(crate) cache: Option<(PathBuf, u64)>,
    /// The most bytes of decoded pieces in memory.
    pub(crate) memory: u64,
    /// The most bytes that a sample may have.
    pub(crate) largest_sample: u64,
    /// The most bytes that are fetched ahead from a store behind a network, and the most requests at once.
    #[cfg(feature = "remote")]
    pub(crate) read_ahead: u64,
    #[cfg(feature = "remote")]
    pub(crate) requests: usize,
    /// The waits that a store asks for.
    pub(crate) busy: Busy,
}

/// The most bytes of a sample, unless the user names another number.
pub(crate) const LARGEST_SAMPLE: u64 = 1 << 30;

impl Default for Options {
    fn default() -> Self {
        Self {
            index_dir: None,
            cache: None,
            memory: 512 << 20,
            largest_sample: LARGEST_SAMPLE,
            #[cfg(feature = "remote")]
            read_ahead: 512 << 20,
            #[cfg(feature = "remote")]
            requests: 64,
            busy: Busy::default(),
        }
    }
}

/// The most requests at once. Each has a thread, and a process should not have more.
#[cfg(feature = "remote")]
const MOST_REQUESTS: usize = 512;

impl Options {
    /// Checks the options, before any file is accessed.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        #[cfg(feature = "remote")]
        if !(1..=MOST_REQUESTS).contains(&self.requests) {
            return Err(DataError::option(
                "requests",
                format!("there cannot be {} requests at once", self.requests),
                format!("write a number from 1 to {MOST_REQUESTS}; to fetch nothing ahead, write `.read_ahead(0)`"),
            ));
        }
        Ok(())
    }

    /// The options for objects that are read once, when a data set is opened: without a cache.
    pub(crate) fn for_once(&self) -> Self {
        Self { cache: None, ..self.clone() }
    }
}
