//! Tokenisers: from a row to its tokens.

use super::TokenRow;
use crate::error::BoxError;

/// Makes the tokens of a row. It runs on the thread that reads the row, such as a worker of a loader.
///
/// [`tokenizer`] makes one from a name and a closure:
///
/// ```
/// use burn::data::dataset::Dataset;
/// use burn_shards::{Rows, TokenRow, tokenizer};
///
/// #[derive(serde::Deserialize)]
/// struct Doc {
///     text: String,
/// }
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("train.jsonl");
/// # std::fs::write(&path, "{\"text\": \"abc\"}\n")?;
///
/// let bytes = tokenizer("bytes, then 256", |doc: &Doc, out: &mut TokenRow| {
///     out.extend(doc.text.bytes().map(u32::from));
///     out.push(256); // the end of the document
///     Ok(())
/// });
/// let rows = Rows::<Doc>::jsonl(path).open()?.tokenized(bytes);
/// assert_eq!(rows.get(0)?.tokens, [97, 98, 99, 256]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` makes no tokens of a `{I}`",
    label = "this is not a tokeniser of `{I}`",
    note = "write `tokenizer(\"a name\", |row: &{I}, out: &mut TokenRow| ..)`, or name the text of an `HfTokenizer` with `.column(|row| &row.text)`"
)]
pub trait Tokenize<I>: Send + Sync {
    /// Adds the tokens of a row to `out`, which is empty.
    ///
    /// # Errors
    /// If this row cannot be tokenised. The error of the data set names the row.
    fn tokenize(&self, row: &I, out: &mut TokenRow) -> Result<(), BoxError>;

    /// A text that differs whenever the tokens may differ: the name and version of the tokeniser, its vocabulary or a hash of it, and its
    /// options. Lengths saved for another fingerprint are not used.
    fn fingerprint(&self) -> String;
}

/// Makes a tokeniser from a function. Change `name` when the function changes, because lengths are saved for this name.
///
/// The function adds the tokens of a row to an empty [`TokenRow`].
pub fn tokenizer<I, F>(name: &str, with: F) -> impl Tokenize<I> + use<I, F>
where
    F: Fn(&I, &mut TokenRow) -> Result<(), BoxError> + Send + Sync,
{
    NamedTokenizer { name: name.into(), with }
}

struct NamedTokenizer<F> {
    name: String,
    with: F,
}

impl<I, F: Fn(&I, &mut TokenRow) -> Result<(), BoxError> + Send + Sync> Tokenize<I> for NamedTokenizer<F> {
    fn tokenize(&self, row: &I, out: &mut TokenRow) -> Result<(), BoxError> {
        (self.with)(row, out)
    }

    fn fingerprint(&self) -> String {
        self.name.clone()
    }
}
