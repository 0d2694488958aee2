//! Windows over tokens, as a data set.

use super::{TokenWindow, stream::Stream};
use burn::data::dataset::{Dataset, DatasetError};
use std::{ops::Range, sync::Arc};

/// Windows of equal length over [`Tokens`](super::Tokens): a Burn data set.
///
/// ```
/// use burn::data::dataset::Dataset;
/// use burn_shards::Tokens;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("train.bin");
/// # std::fs::write(&path, (0..10u16).flat_map(u16::to_le_bytes).collect::<Vec<u8>>())?;
/// let windows = Tokens::open(path)?.windows(5, 4); // of a file with the tokens 0 to 9
/// assert_eq!(windows.len(), 2);
/// assert!(windows.get(0)?.iter().eq([0, 1, 2, 3, 4]));
/// assert!(windows.get(1)?.iter().eq([4, 5, 6, 7, 8]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `get` reads nothing from the files, but returns a handle. It panics if the index is not below `len`, as Burn's data sets do, and never
/// returns an error.
#[derive(Clone, derive_more::Debug)]
#[debug("TokenWindows {{ len: {len}, length: {length}, stride: {stride} }}")]
pub struct TokenWindows {
    stream: Arc<Stream>,
    /// For each range with windows: the number of its first window, and the place where that begins.
    ranges: Arc<[(usize, usize)]>,
    /// The number of tokens of a window.
    length: usize,
    stride: usize,
    /// The number of windows.
    len: usize,
}

impl TokenWindows {
    /// Windows over some ranges of places. No window crosses the end of a range.
    ///
    /// # Panics
    /// If `len` or `stride` is 0.
    pub(super) fn new(
        stream: Arc<Stream>,
        ranges: impl IntoIterator<Item = Range<usize>>,
        len: usize,
        stride: usize,
    ) -> Self {
        assert!(len > 0, "a window has at least one token");
        assert!(stride > 0, "a window begins at least one token after the one before it");
        let (mut firsts, mut windows) = (Vec::new(), 0);
        for places in ranges {
            if let Some(last) = places.len().checked_sub(len) {
                firsts.push((windows, places.start));
                windows += last / stride + 1; // no overflow: there is at most one window for each token
            }
        }
        Self { stream, ranges: firsts.into(), length: len, stride, len: windows }
    }
}

impl Dataset<TokenWindow> for TokenWindows {
    fn get(&self, index: usize) -> Result<TokenWindow, DatasetError> {
        assert!(index < self.len, "window {index} of {}", self.len);
        let (first, place) = self.ranges[self.ranges.partition_point(|(first, _)| *first <= index) - 1];
        let start = place + (index - first) * self.stride;
        Ok(TokenWindow::new(Arc::clone(&self.stream), start..start + self.length))
    }

    fn len(&self) -> usize {
        self.len
    }
}
