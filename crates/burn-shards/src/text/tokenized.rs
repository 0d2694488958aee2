//! Rows with a tokeniser, as a data set of tokens.

use super::{TextError, TokenRow, Tokenize};
use crate::{error::DataError, rows::Rows, source::blocks::Blocks, system::caught::UserValues};
use burn::data::dataset::{Dataset, DatasetError};
use std::{error::Error, sync::Arc};

/// Rows with a tokeniser: a Burn data set of [`TokenRow`]s.
///
/// ```
/// use burn::data::dataset::{Dataset, transform::ComposedDataset};
/// use burn_shards::{Rows, TokenRow, tokenizer};
///
/// # let folder = tempfile::tempdir()?;
/// # let (path, chats) = (folder.path().join("train.jsonl"), folder.path().join("chats.jsonl"));
/// # std::fs::write(&path, "{\"text\": \"abc\"}\n{\"text\": \"d\"}\n")?;
/// # std::fs::write(&chats, "{\"asked\": \"a?\", \"said\": \"b\"}\n")?;
/// let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
/// let documents = Rows::<(String,)>::jsonl(path).columns(["text"]).open()?.tokenized(tokenizer(
///     "bytes",
///     move |(text,): &(String,), out: &mut TokenRow| {
///         out.extend(bytes(text));
///         Ok(())
///     },
/// ));
/// let chats = Rows::<(String, String)>::jsonl(chats).columns(["asked", "said"]).open()?.tokenized(tokenizer(
///     "bytes, asked and said",
///     move |(asked, said): &(String, String), out: &mut TokenRow| {
///         out.extend_unlearned(bytes(asked));
///         out.extend(bytes(said));
///         Ok(())
///     },
/// ));
/// let all = ComposedDataset::new(vec![documents, chats]); // their row types may differ
/// assert_eq!(all.len(), 3);
/// assert_eq!(all.get(2)?.learned, [false, false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `get` makes the tokens, on the calling thread. A clone shares everything.
#[derive(Clone, derive_more::Debug)]
pub struct Tokenized {
    #[debug("{} rows", data.len())]
    pub(super) data: Arc<dyn Dataset<TokenRow>>,
    /// The same data set, if it is `Rows`.
    rows: Option<Rows<TokenRow>>,
    /// [`Tokenize::fingerprint`].
    tokenizer: Arc<str>,
    /// Whether bad rows are left out of lengths and token files.
    pub(super) leaves_out: bool,
}

impl<T> Rows<T> {
    /// These rows as tokens. See [`Tokenized`].
    ///
    /// The tokeniser's fingerprint does not cover an earlier [`map`](Self::map): do that work in the tokeniser, or add it to the
    /// tokeniser's name.
    ///
    /// # Errors
    /// An error of the tokeniser becomes the error of its row: [`DataError::Map`](crate::DataError::Map).
    pub fn tokenized(self, tokenizer: impl Tokenize<T> + 'static) -> Tokenized
    where
        T: 'static,
    {
        let fingerprint = tokenizer.fingerprint().into();
        let rows = self.map(move |row| {
            let mut tokens = TokenRow::default();
            tokenizer.tokenize(&row, &mut tokens).map(|()| tokens)
        });
        Tokenized { data: Arc::new(rows.clone()), rows: Some(rows), tokenizer: fingerprint, leaves_out: false }
    }
}

impl Tokenized {
    /// The rows of any Burn data set as tokens. For [`Rows`] use [`Rows::tokenized`], whose errors name the file, and which saves lengths
    /// and lets the loader read ahead.
    ///
    /// ```
    /// use burn::data::dataset::{Dataset, InMemDataset};
    /// use burn_shards::{TokenRow, Tokenized, tokenizer};
    ///
    /// let texts = InMemDataset::new(vec!["ab".to_string()]);
    /// let bytes = tokenizer("bytes", |text: &String, out: &mut TokenRow| {
    ///     out.extend(text.bytes().map(u32::from));
    ///     Ok(())
    /// });
    /// assert_eq!(Tokenized::new(texts, bytes).get(0)?.tokens, [97, 98]);
    /// # Ok::<(), burn::data::dataset::DatasetError>(())
    /// ```
    pub fn new<I, E, D>(data: D, tokenizer: impl Tokenize<I> + 'static) -> Self
    where
        I: 'static,
        E: Error + Send + Sync + 'static,
        D: Dataset<I, E> + 'static,
    {
        let fingerprint = tokenizer.fingerprint().into();
        let data = TokenizedData { data: Box::new(data), tokenizer: Box::new(tokenizer) };
        Self { data: Arc::new(data), rows: None, tokenizer: fingerprint, leaves_out: false }
    }

    /// Skips rows that cannot be tokenised: [`lengths`](Self::lengths) gives them the length 0, and [`write`](Self::write) leaves them out.
    /// The log says how many there are. `get` still returns their errors.
    ///
    /// This covers rows whose text is missing, or that the tokeniser refuses. A file or a store that cannot be read is still an error.
    pub fn leave_out_bad_rows(mut self) -> Self {
        self.leaves_out = true;
        self
    }

    /// What saved lengths depend on besides the files: the tokeniser, the columns that are read, which rows these are, and whether bad ones
    /// are left out.
    pub(super) fn made_by(&self, rows: &Rows<TokenRow>) -> String {
        let picks = rows.picks.as_ref().map(|picks| (picks.len(), picks.checksum()));
        // A row that is too large is left out too.
        let left_out = self.leaves_out.then_some(rows.options.largest_sample);
        format!("{}\0{:?}\0{picks:?}\0{left_out:?}", self.tokenizer, rows.reads)
    }

    /// The rows, for their blocks and for reading ahead. `None` if the data set is not `Rows`.
    pub fn rows(&self) -> Option<&Rows<TokenRow>> {
        self.rows.as_ref()
    }

    /// The runs of rows that are cheap to read together; see [`Rows::blocks`]. A data set that is not `Rows` is one run.
    ///
    /// # Errors
    /// As [`Rows::blocks`].
    pub fn blocks(&self) -> Result<Blocks, DataError> {
        self.rows.as_ref().map_or_else(|| Ok(Blocks::of_rows([self.len()])), Rows::blocks)
    }
}

impl Dataset<TokenRow> for Tokenized {
    fn get(&self, index: usize) -> Result<TokenRow, DatasetError> {
        self.data.get(index)
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<TokenRow>, DatasetError> {
        self.data.get_many(indexes)
    }

    fn len(&self) -> usize {
        self.data.len()
    }
}

/// A data set with a tokeniser.
struct TokenizedData<I, E> {
    data: Box<dyn Dataset<I, E>>,
    tokenizer: Box<dyn Tokenize<I>>,
}

impl<I, E> TokenizedData<I, E> {
    fn tokens(&self, index: usize, row: &I) -> Result<TokenRow, DatasetError> {
        let mut tokens = TokenRow::default();
        let refused = |source| DatasetError::new(TextError::Row { row: index, source });
        self.tokenizer.tokenize(row, &mut tokens).map(|()| tokens).map_err(refused)
    }
}

impl<I, E: Error + Send + Sync + 'static> Dataset<TokenRow> for TokenizedData<I, E> {
    fn get(&self, index: usize) -> Result<TokenRow, DatasetError> {
        self.tokens(index, &self.data.get(index).map_err(DatasetError::new)?)
    }

    /// For data sets that read many rows faster than one by one. If a data set returns another number of rows, it is unknown which they
    /// are, so they are read one by one.
    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<TokenRow>, DatasetError> {
        let rows = UserValues(self.data.get_many(indexes.clone()).map_err(DatasetError::new)?);
        if rows.len() != indexes.len() {
            return indexes.into_iter().map(|index| self.get(index)).collect();
        }
        indexes.into_iter().zip(&*rows).map(|(index, row)| self.tokens(index, row)).collect()
    }

    fn len(&self) -> usize {
        self.data.len()
    }
}
