//! Options of data sets, as they were set.

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
    /// The most bytes that are fetched ahead from a store behind a network, and the most requests at once.
    #[cfg(feature = "remote")]
    pub(crate) read_ahead: u64,
    #[cfg(feature = "remote")]
    pub(crate) requests: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            index_dir: None,
            cache: None,
            memory: 512 << 20,
            #[cfg(feature = "remote")]
            read_ahead: 512 << 20,
            #[cfg(feature = "remote")]
            requests: 32,
        }
    }
}
