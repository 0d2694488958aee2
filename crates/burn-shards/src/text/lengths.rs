//! How many tokens each row has.

use super::{
    TextError, TokenRow, Tokenized,
    saved::{Saved, open, save},
};
use crate::{error::DataError, index::Beside};
use std::{path::Path, sync::Arc};

/// The number of tokens of each row, to pack by.
///
/// ```
/// use burn_shards::{Rows, TokenLengths, TokenRow, tokenizer};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("train.jsonl");
/// # std::fs::write(&path, "{\"text\": \"abc\"}\n{\"text\": \"de\"}\n")?;
/// let bytes = tokenizer("bytes", |(text,): &(String,), out: &mut TokenRow| {
///     out.extend(text.bytes().map(u32::from));
///     Ok(())
/// });
/// let rows = Rows::<(String,)>::jsonl(path).columns(["text"]).open()?.tokenized(bytes);
/// let lengths = rows.lengths()?; // reads all rows once, and saves 4 bytes for each
/// assert_eq!(lengths.as_ref(), [3, 2]);
///
/// // Of rows that follow those, as in Burn's `ComposedDataset`:
/// let all = TokenLengths::concat([&lengths, &TokenLengths::from(vec![7])]);
/// assert_eq!(all.as_ref(), [3, 2, 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A clone shares the memory. Lengths that were saved are mapped into memory: to open them takes as long for any number of
/// rows, and all processes of a machine share them.
#[derive(Clone, derive_more::Debug)]
#[debug("TokenLengths {{ rows: {}, path: {path:?} }}", self.as_ref().len())]
pub struct TokenLengths {
    lengths: Arc<dyn AsRef<[u32]> + Send + Sync>,
    path: Option<Arc<Path>>,
}

impl Tokenized {
    /// The number of tokens of each row. The first call reads and tokenises all rows on all cores, with a progress bar, and blocks.
    ///
    /// Of [`Rows`](crate::Rows) the lengths are saved beside the indices: beside the first file, in
    /// [`index_dir`](crate::RowsBuilder::index_dir), or for URLs in the user's cache. Later calls, also of other processes, open
    /// the file, and compare up to five rows with it. It holds for the same files, the same columns, the same part of the rows and
    /// the same fingerprint of the tokeniser, and is made again for others. If it cannot be saved, the log says so. Of other data
    /// sets nothing is saved.
    ///
    /// A row of 2³² - 1 tokens or more has the length 2³² - 1.
    ///
    /// # Errors
    /// If a row cannot be read, or the tokeniser refuses it. The error names the file and the row. See also
    /// [`leave_out_bad_rows`](Self::leave_out_bad_rows).
    pub fn lengths(&self) -> Result<TokenLengths, TextError> {
        let place = self
            .rows()
            .and_then(|rows| Beside::of(rows.source.objects(), "lengths", &self.made_by(rows), &rows.opened.options));
        if let Some(place) = &place
            && let Some(saved) = open(place, self)
        {
            return Ok(TokenLengths::saved(saved, place));
        }
        let mut lengths = Vec::new(); // a damaged file may claim any number of rows
        let count = |_, row: TokenRow| Ok(u32::try_from(row.len()).unwrap_or(u32::MAX));
        self.each(count, |counts| {
            lengths.extend(counts);
            Ok(())
        })?;
        let Some(place) = place else { return Ok(lengths.into()) };
        match save(&place, &lengths) {
            Ok(saved) => Ok(TokenLengths::saved(saved, &place)),
            Err(source) => {
                let error = DataError::Save { path: place.path, source };
                log::warn!("{error}. Until then each process tokenises all rows again");
                Ok(lengths.into())
            }
        }
    }
}

impl TokenLengths {
    fn saved(lengths: Saved, place: &Beside) -> Self {
        Self { lengths: Arc::new(lengths), path: Some(place.path.as_path().into()) }
    }

    /// The lengths of several data sets one behind the other, as Burn's `ComposedDataset` has their rows.
    pub fn concat<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        all.into_iter().flat_map(AsRef::as_ref).copied().collect::<Vec<u32>>().into()
    }

    /// The file that the lengths were saved as, if they were.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl AsRef<[u32]> for TokenLengths {
    fn as_ref(&self) -> &[u32] {
        (*self.lengths).as_ref()
    }
}

impl From<Vec<u32>> for TokenLengths {
    fn from(lengths: Vec<u32>) -> Self {
        Self { lengths: Arc::new(lengths), path: None }
    }
}
