//! How many tokens each row has.

use super::{
    TextError, TokenRow, Tokenized,
    saved::{ComparedRow, SavedLengths, open, save},
    texts::{Texts, tells},
};
use crate::{
    error::DataError,
    source::index::{IndexPlace, drawn_by},
};
use burn::data::dataset::Dataset;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

/// The number of tokens of each row, for packing.
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
/// // With the lengths of rows that follow, as in Burn's `ComposedDataset`:
/// let all = TokenLengths::concat([&lengths, &TokenLengths::from(vec![7])]);
/// assert_eq!(all.as_ref(), [3, 2, 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A clone shares the memory. Saved lengths are mapped into memory: opening them takes the same time for any number of rows, and all
/// processes of a machine share them.
#[derive(Clone, derive_more::Debug)]
#[debug("TokenLengths {{ rows: {}, path: {path:?} }}", self.as_ref().len())]
pub struct TokenLengths {
    lengths: Arc<dyn AsRef<[u32]> + Send + Sync>,
    path: Option<Arc<Path>>,
}

impl Tokenized {
    /// The number of tokens of each row. The first call reads and tokenises all rows on all cores, with a progress bar, and blocks.
    ///
    /// For [`Rows`](crate::Rows) the lengths are saved with the indices: beside the first file, in
    /// [`index_dir`](crate::RowsBuilder::index_dir), or for URLs in the user's cache. Later calls, also in other processes, open that file.
    /// It is valid for the same files, columns, part of the rows and fingerprint of the tokeniser. Otherwise the lengths are computed
    /// again. If they cannot be saved, the log says so. For other data sets nothing is saved.
    ///
    /// The fingerprint does not show which text of a row the tokeniser uses. So each call that opens the file tokenises some rows again and
    /// compares the tokens: five rows, and rows in which the texts differ. If the tokeniser now uses another text, or one more, the lengths
    /// are computed again, even if only one row has a different text there. If the tokeniser chooses a text by a condition, or edits it, a
    /// change of that code is noticed only if one of these rows shows it. So put that into the tokeniser's name.
    ///
    /// A row of 2³² - 1 tokens or more has the length 2³² - 1.
    ///
    /// # Errors
    /// If a row cannot be read, or the tokeniser refuses it. The error names the file and the row. See also
    /// [`leave_out_bad_rows`](Self::leave_out_bad_rows).
    pub fn lengths(&self) -> Result<TokenLengths, TextError> {
        let place = self
            .rows()
            .and_then(|rows| IndexPlace::for_all(rows.source.objects(), "lengths", &self.made_by(rows), &rows.options));
        if let Some(place) = &place
            && let Some(saved) = open(place, self)
        {
            return Ok(TokenLengths::saved(saved, place));
        }
        let drawn: BTreeSet<usize> = place.iter().flat_map(|place| drawn_by(&[place.mark], self.len())).collect();
        let mut lengths = Vec::new(); // a damaged file may claim any number of rows
        let (mut compared, mut classes) = (Vec::new(), BTreeMap::new());
        let count = |row, tokens: TokenRow, texts| {
            Ok((u32::try_from(tokens.len()).unwrap_or(u32::MAX), ComparedRow::new(row, &tokens), texts))
        };
        self.each(Texts::of, count, |rows| {
            for (length, row, texts) in rows {
                if tells(&mut classes, &texts) || drawn.contains(&lengths.len()) {
                    compared.push(row);
                }
                lengths.push(length);
            }
            Ok(())
        })?;
        let Some(place) = place else { return Ok(lengths.into()) };
        match save(&place, &lengths, &compared) {
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
    fn saved(lengths: SavedLengths, place: &IndexPlace) -> Self {
        Self { lengths: Arc::new(lengths), path: Some(place.path.as_path().into()) }
    }

    /// The lengths of several data sets one after the other, in the order of the rows of Burn's `ComposedDataset`.
    pub fn concat<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        all.into_iter().flat_map(AsRef::as_ref).copied().collect::<Vec<u32>>().into()
    }

    /// The file with the saved lengths, if they were saved.
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
