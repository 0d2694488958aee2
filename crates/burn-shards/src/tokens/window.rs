//! One window of tokens.

use super::{TokenType, TokensError, stream::Stream};
use burn::tensor::Element;
use bytemuck::Pod;
use std::{iter, ops::Range, sync::Arc};

/// A handle to a window of tokens. The tokens stay in the mapped file until they are copied into a row of a batch.
///
/// ```
/// use burn::data::dataset::Dataset;
/// use burn_shards::Tokens;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("train.bin");
/// # std::fs::write(&path, (0..65u16).flat_map(u16::to_le_bytes).collect::<Vec<u8>>())?;
/// let windows = Tokens::open(path)?.windows(9, 8); // of a file with the tokens 0 to 64
/// let window = windows.get(1)?;
///
/// let mut tokens = [0u16; 9];
/// window.copy_to(&mut tokens)?; // from the pages of the file into your memory
/// let (inputs, targets) = (&tokens[..8], &tokens[1..]);
/// assert_eq!((inputs[0], targets[0], targets[7]), (8, 9, 16));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It may be used on any thread. Every clone keeps all files of the data set open.
#[derive(Clone, derive_more::Debug)]
#[debug("TokenWindow {{ kind: {:?}, places: {places:?} }}", self.kind())]
pub struct TokenWindow {
    stream: Arc<Stream>,
    places: Range<usize>,
}

impl TokenWindow {
    pub(super) fn new(stream: Arc<Stream>, places: Range<usize>) -> Self {
        Self { stream, places }
    }

    /// Copies all tokens unchanged. `E` is the integer type of [`kind`](Self::kind), such as `u16`.
    ///
    /// This is the only copy of the tokens, so pass their place in the batch. For another type, write the tokens of [`iter`](Self::iter)
    /// there, one by one. That is slower, and the batch may have more bytes.
    ///
    /// # Errors
    /// If `place` has another type, or is longer or shorter than the window.
    pub fn copy_to<E: Element + Pod>(&self, place: &mut [E]) -> Result<(), TokensError> {
        let kind = self.kind();
        if E::dtype() != kind.dtype() || place.len() != self.len() {
            let (places, place) = (place.len(), E::dtype().name());
            return Err(TokensError::Place { len: self.len(), kind, places, place });
        }
        let mut rest: &mut [u8] = bytemuck::cast_slice_mut(place);
        for bytes in self.stream.pieces(self.places.clone()) {
            let (here, behind) = rest.split_at_mut(bytes.len());
            here.copy_from_slice(bytes);
            rest = behind;
        }
        Ok(())
    }

    /// The documents in the window, or their parts: ranges that cover `0..len()` in order, without gaps. Where one range ends, another
    /// document begins. If it is not known where documents begin, there is one range.
    ///
    /// From it, write what a model needs to keep documents apart, such as the number of each token's document, and its position in the
    /// document:
    ///
    /// ```
    /// use burn::data::dataset::Dataset;
    /// use burn_shards::Tokens;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("train.bin");
    /// # std::fs::write(&path, [7, 0, 8, 9, 0, 5, 5, 5u16].map(u16::to_le_bytes).concat())?;
    /// let tokens = Tokens::open(path)?.documents_end_with(0)?; // of a file with 7 0 8 9 0 5 5 5
    /// let window = tokens.packed(8)?.get(0)?;
    ///
    /// let (mut document, mut position) = ([0i32; 8], [0i32; 8]); // or their places in a batch
    /// for (number, range) in (0..).zip(window.documents()) {
    ///     document[range.clone()].fill(number);
    ///     position[range].iter_mut().zip(0..).for_each(|(position, n)| *position = n);
    /// }
    /// assert_eq!(document, [0, 0, 1, 1, 1, 2, 2, 2]);
    /// assert_eq!(position, [0, 1, 0, 1, 2, 0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn documents(&self) -> impl Iterator<Item = Range<usize>> {
        let Range { start, end } = self.places;
        let all = self.stream.documents().unwrap_or_default();
        let inside = &all[all.partition_point(|place| *place <= start)..];
        let borders = inside.iter().copied().take_while(move |place| *place < end);
        let mut from = 0;
        borders.chain(iter::once(end)).map(move |place| {
            let range = from..place - start;
            from = range.end;
            range
        })
    }

    /// The token at an index of the window. `None` if the index is too large.
    pub fn get(&self, index: usize) -> Option<i64> {
        let place = self.places.start.checked_add(index).filter(|place| self.places.contains(place))?;
        self.stream.values(place..place + 1).next()
    }

    /// The tokens, one by one, whatever their type.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        self.stream.values(self.places.clone())
    }

    /// The number of tokens, which is the same for all windows of the data set.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no tokens. No data set has such a window.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The type of the tokens.
    pub fn kind(&self) -> TokenType {
        self.stream.kind()
    }
}
