//! Token files of rows.

use super::{TextError, TokenRow, Tokenized, texts::Texts};
use crate::{
    error::BoxError,
    system::replace::replace,
    tokens::{TokenType, TokensError, megatron},
};
use std::{
    io::{self, Write},
    path::Path,
};

impl Tokenized {
    /// Writes the tokens of all rows in Megatron's format: `path`, which ends with `.bin`, and an `.idx` beside it, which says where
    /// documents begin. It blocks, runs on all cores with a progress bar, and keeps the order of the rows. [`Tokens`](crate::Tokens) opens
    /// the files, and so do other programs. Each row with tokens is one document. Which tokens the loss counts is not written.
    ///
    /// ```
    /// use burn_shards::{Rows, TokenRow, TokenType, Tokens, tokenizer};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("train.jsonl");
    /// # std::fs::write(&path, "{\"text\": \"abc\"}\n{\"text\": \"de\"}\n")?;
    /// # let out = folder.path().join("train.bin");
    /// let bytes = tokenizer("bytes", |(text,): &(String,), out: &mut TokenRow| {
    ///     out.extend(text.bytes().map(u32::from));
    ///     Ok(())
    /// });
    /// let rows = Rows::<(String,)>::jsonl(path).columns(["text"]).open()?.tokenized(bytes);
    /// let written = rows.write(&out, TokenType::U16)?; // "train.bin" and "train.idx"
    /// assert_eq!(written, (2, 5));
    ///
    /// let tokens = Tokens::open(&out)?;
    /// assert_eq!((tokens.len(), tokens.documents()), (5, Some(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Returns the number of documents and of tokens. It needs memory for the rows that threads are working on, and 4 bytes per document.
    /// The files have temporary names until they are complete.
    ///
    /// # Errors
    /// If a row cannot be read or tokenised, as for [`lengths`](Self::lengths); if a token is too large for the type (the error names the
    /// row, and its source is a [`TokensError::NoSuchToken`]); if Megatron has no such type; or if one of the files already exists or
    /// cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, kind: TokenType) -> Result<(usize, u64), TextError> {
        let path = path.as_ref();
        if !megatron::has_type(kind) {
            return Err(TextError::Type(kind));
        }
        if path.extension().is_none_or(|ending| ending != "bin") {
            return Err(TextError::Name(path.into()));
        }
        let index = path.with_extension("idx");
        let refused = |path: &Path| {
            let path = path.to_path_buf();
            move |source| TextError::Write { path: path.clone(), source }
        };
        for there in [path, &index] {
            if there.symlink_metadata().is_ok() {
                return Err(refused(there)(io::Error::new(io::ErrorKind::AlreadyExists, "there is such a file")));
            }
        }
        let mut lengths = Vec::new();
        replace(path, refused(path), |file| {
            let bytes = |row, tokens: TokenRow, _| self.count_and_bytes(row, &tokens.tokens, kind);
            self.each(
                |_| Texts::default(),
                bytes,
                |rows| {
                    let (counts, bytes): (Vec<i32>, Vec<Vec<u8>>) =
                        rows.into_iter().filter(|(count, _)| *count > 0).unzip();
                    lengths.extend(counts);
                    file.write_all(&bytes.concat()).map_err(refused(path))
                },
            )?;
            // The index gets its name first, because a .bin file without an index would be read as bare tokens.
            replace(&index, refused(&index), |file| megatron::write(file, kind, &lengths).map_err(refused(&index)))
        })?;
        Ok((lengths.len(), lengths.iter().map(|length| i64::from(*length) as u64).sum()))
    }

    /// The number of tokens of a row, and their bytes.
    fn count_and_bytes(&self, row: usize, tokens: &[u32], kind: TokenType) -> Result<(i32, Vec<u8>), TextError> {
        let of_row = |source: BoxError| match self.rows() {
            Some(rows) => rows.of_map(rows.at(row), source).into(),
            None => TextError::Row { row, source },
        };
        let too_long = |_| of_row("it has more tokens than Megatron's index can tell".into());
        let count = i32::try_from(tokens.len()).map_err(too_long)?;
        let mut bytes = Vec::with_capacity(tokens.len() * kind.size());
        for token in tokens.iter().copied().map(i64::from) {
            let too_large = || of_row(TokensError::NoSuchToken { token, kind }.into());
            bytes.extend_from_slice(&kind.bytes_of(token).ok_or_else(too_large)?[..kind.size()]);
        }
        Ok((count, bytes))
    }
}
