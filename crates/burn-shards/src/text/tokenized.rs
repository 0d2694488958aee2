//! Rows with a tokeniser over them, as a data set of tokens.

use super::{TextError, TokenRow, Tokenize};
use crate::{rows::Rows, source::blocks::Blocks, system::caught::UserValues};
use burn::data::dataset::{Dataset, DatasetError};
use std::{error::Error, sync::Arc};

/// Rows of which a tokeniser makes tokens: a Burn data set of [`TokenRow`]s.
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
/// let all = ComposedDataset::new(vec![documents, chats]); // whatever their rows were
/// assert_eq!(all.len(), 3);
/// assert_eq!(all.get(2)?.learned, [false, false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The tokens are made by `get`, on the thread that calls it. A clone shares everything.
#[derive(Clone, derive_more::Debug)]
pub struct Tokenized {
    #[debug("{} rows", data.len())]
    pub(super) data: Arc<dyn Dataset<TokenRow>>,
    /// The same, unless it is a data set of another kind.
    rows: Option<Rows<TokenRow>>,
    /// [`Tokenize::fingerprint`].
    tokenizer: Arc<str>,
    /// Whether bad rows are left out of lengths and token files.
    pub(super) leaves_out: bool,
}

impl<T> Rows<T> {
    /// These rows as tokens. See [`Tokenized`].
    ///
    /// What a [`map`](Self::map) before it does is not in the tokeniser's fingerprint: do it in the tokeniser, or name it there.
    ///
    /// # Errors
    /// An error of the tokeniser is one of its row: [`DataError::Map`](crate::DataError::Map).
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
    /// The rows of any Burn data set as tokens. For [`Rows`] take [`Rows::tokenized`], which tells files of errors, saves lengths,
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

    /// Leaves rows that cannot be tokenised out of [`lengths`](Self::lengths), where they have the length 0, and of
    /// [`write`](Self::write). The log says how many there are. `get` still gives their errors.
    ///
    /// It is for rows whose text is missing, or that the tokeniser refuses. A file or a store that cannot be read is still an error.
    pub fn leave_out_bad_rows(mut self) -> Self {
        self.leaves_out = true;
        self
    }

    /// What saved lengths of these rows depend on, besides the files: the tokeniser, the columns that are read, which rows these
    /// are, and which of them are left out.
    pub(super) fn made_by(&self, rows: &Rows<TokenRow>) -> String {
        let picks = rows.picks.as_ref().map(|picks| (picks.len(), crc32fast::hash(bytemuck::cast_slice(picks))));
        // A row that is too large is left out too.
        let left_out = self.leaves_out.then_some(rows.options.largest_sample);
        format!("{}\0{:?}\0{picks:?}\0{left_out:?}", self.tokenizer, rows.reads)
    }

    /// The rows, for their blocks and for reading ahead. `None` for other data sets.
    pub fn rows(&self) -> Option<&Rows<TokenRow>> {
        self.rows.as_ref()
    }

    /// The runs of rows that are cheap to read together; see [`Rows::blocks`]. A data set that is not `Rows` is one run.
    pub fn blocks(&self) -> Blocks {
        self.rows.as_ref().map_or_else(|| Blocks::of_rows([self.len()]), Rows::blocks)
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

/// A data set with a tokeniser over it.
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

    /// For data sets that read many rows faster than one by one. One that gives another number of rows does not tell which they
    /// are: then they are read one by one.
    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<TokenRow>, DatasetError> {
        let rows = UserValues::from(self.data.get_many(indexes.clone()).map_err(DatasetError::new)?);
        if rows.len() != indexes.len() {
            return indexes.into_iter().map(|index| self.get(index)).collect();
        }
        indexes.into_iter().zip(&*rows).map(|(index, row)| self.tokens(index, row)).collect()
    }

    fn len(&self) -> usize {
        self.data.len()
    }
}
