//! What a user opens: the tokens of one or several files.

use super::{TokenFileError, TokenType, TokenWindows, TokensError, format, open::files, stream::Stream};
use crate::{source::location::Paths, system::mapped::MappedFile};
use std::{iter, path::Path, sync::Arc};

/// The tokens of one or several files, mapped into memory.
///
/// ```
/// use burn::data::dataset::Dataset;
/// use burn_shards::Tokens;
///
/// # let folder = tempfile::tempdir()?;
/// # let tokens: Vec<u8> = (0..5000u16).flat_map(u16::to_le_bytes).collect();
/// # std::fs::write(folder.path().join("train.bin"), tokens)?;
/// # let path = folder.path().join("*.bin").to_str().unwrap().to_owned();
/// let tokens = Tokens::open(path)?; // such as "tokens/train-*.bin"
/// assert_eq!(tokens.len(), 5000);
///
/// let windows = tokens.windows(1025, 1024); // 1024 inputs and their targets, shifted by one token
/// assert_eq!(windows.len(), 4);
/// assert!(windows.get(1)?.iter().eq(1024..2049));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`windows`](Self::windows) and [`packed`](Self::packed) cut the tokens into samples: stateless Burn data sets with random access, which
/// work with any order, resume and number of processes. `open` reads only headers and indices. The system's page cache is the only copy in
/// memory, and all processes of a machine share it. A sample is copied once, from the map into its row of the batch.
///
/// # Formats
///
/// The name and content of each file show its format:
///
/// | format | recognised by | tokens |
/// | --- | --- | --- |
/// | Megatron | a `.bin` with an `.idx` beside it | the type that the index names; floats are refused |
/// | llm.c | the first number, 20240520 or 20240801 | `u16` or `u32` |
/// | nanoGPT: bare tokens | no header, and a name that ends with `.bin` | `u16` |
///
/// Bare tokens of other types or in files of other names need [`open_raw`](Self::open_raw). All files must have the same type. Counts in
/// headers and pointers in indices are checked against the size of the file.
///
/// # Files that change
///
/// Do not truncate a file or write to it while it is open. The map of a truncated file has pages without bytes, and reading one cannot
/// return an error. On Unix it raises the signal SIGBUS, which ends the process. The same may happen if a network share goes away. To
/// replace a file, write another one and rename it: the map keeps the old one.
#[derive(Clone, derive_more::Debug)]
#[debug(
    "Tokens {{ files: {}, kind: {:?}, len: {}, documents: {:?} }}",
    stream.files().len(), self.kind(), self.len(), self.documents()
)]
pub struct Tokens {
    stream: Arc<Stream>,
}

impl Tokens {
    /// Opens files and detects their formats.
    ///
    /// # Errors
    /// If a file does not exist, is empty or has no known format; if its size does not match its header or index; if the files have tokens
    /// of different types; or if a file is something else: a pointer of Git LFS, a web page, a text, a pickle, tensors, audio, an image, a
    /// compressed file. The error names the file and says what to do.
    pub fn open(paths: impl Into<Paths>) -> Result<Self, TokensError> {
        Self::mapped(&paths.into(), None)
    }

    /// Opens files that have only tokens, from the first byte to the last, whatever their names.
    ///
    /// ```
    /// use burn_shards::{TokenType, Tokens};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("novel.txt");
    /// std::fs::write(&path, "Call me Ishmael.")?;
    /// let bytes = Tokens::open_raw(path, TokenType::U8)?; // a text is a token file too
    /// assert_eq!(bytes.len(), 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a file does not exist, is empty, or is not a whole number of tokens; if it is a NumPy array or a pointer of Git LFS; or, for
    /// tokens of more than one byte, if it is any other kind of file that [`open`](Self::open) refuses.
    pub fn open_raw(paths: impl Into<Paths>, kind: TokenType) -> Result<Self, TokensError> {
        Self::mapped(&paths.into(), Some(kind))
    }

    fn mapped(paths: &Paths, raw: Option<TokenType>) -> Result<Self, TokensError> {
        if cfg!(target_endian = "big") {
            return Err(TokensError::BigEndian);
        }
        let mut stream = Stream::new();
        for path in files(paths, raw.is_none())? {
            let map = MappedFile::open(&path)
                .map_err(|source| TokensError::File { path: path.clone(), source: TokenFileError::Io(source) })?;
            let content = format::content(&path, &map, raw)?;
            stream.push(path, map, content)?;
        }
        Ok(Self { stream: Arc::new(stream) })
    }

    /// Sets the token that ends each document, such as GPT-2's 50256. The next token begins another document.
    ///
    /// This reads all tokens once, on the calling thread, which takes as long as reading the files. It keeps 8 bytes in memory for each
    /// document, and saves nothing. A file's first token always begins a document. The documents of an index are then ignored.
    ///
    /// # Errors
    /// If the type of the tokens has no such value.
    pub fn documents_end_with(self, token: i64) -> Result<Self, TokensError> {
        self.find_documents(token, true)
    }

    /// Sets the token that begins each document. For files of llm.c's scripts this is 50256. It reads all tokens, as
    /// [`documents_end_with`](Self::documents_end_with) does.
    ///
    /// # Errors
    /// If the type of the tokens has no such value.
    pub fn documents_begin_with(self, token: i64) -> Result<Self, TokensError> {
        self.find_documents(token, false)
    }

    fn find_documents(mut self, token: i64, behind: bool) -> Result<Self, TokensError> {
        Arc::make_mut(&mut self.stream).find_documents(token, behind)?;
        Ok(self)
    }

    /// Windows of `len` tokens, each beginning `stride` tokens after the one before. Window `i` of a file begins at token `i * stride`.
    ///
    /// No window crosses from one file to the next. A file of `n` tokens has `(n - len) / stride + 1` windows, or none if `n < len`. The
    /// tokens after its last window are in no sample. If `stride < len`, windows overlap. To predict the next token, use for example
    /// `windows(1025, 1024)`: each token is then a target once.
    ///
    /// # Panics
    /// If `len` or `stride` is 0.
    pub fn windows(&self, len: usize, stride: usize) -> TokenWindows {
        let files = self.stream.files().iter().map(|file| file.places.clone());
        TokenWindows::new(Arc::clone(&self.stream), files, len, stride)
    }

    /// Documents packed into windows: all tokens end to end, across the borders of documents and files, cut every `len` tokens.
    /// [`TokenWindow::documents`](super::TokenWindow::documents) returns the documents in a window. The tokens after the last window, fewer
    /// than `len`, are in no sample.
    ///
    /// The windows of [`windows`](Self::windows) have their documents too. They may overlap, so that each token is a target once, but leave
    /// out some tokens at the end of each file. For small files, packed windows are better.
    ///
    /// # Errors
    /// [`TokensError::NoDocuments`] if it is not known where documents begin. Megatron's index has this. For other files, first call
    /// [`documents_end_with`](Self::documents_end_with) or [`documents_begin_with`](Self::documents_begin_with).
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn packed(&self, len: usize) -> Result<TokenWindows, TokensError> {
        self.stream.documents().ok_or(TokensError::NoDocuments)?;
        Ok(TokenWindows::new(Arc::clone(&self.stream), iter::once(0..self.len()), len, len))
    }

    /// The number of tokens in all files.
    pub fn len(&self) -> usize {
        self.stream.tokens()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the tokens.
    pub fn kind(&self) -> TokenType {
        self.stream.kind()
    }

    /// The files in order, each with its number of tokens.
    pub fn files(&self) -> impl Iterator<Item = (&Path, usize)> {
        self.stream.files().iter().map(|file| (&*file.path, file.places.len()))
    }

    /// The number of documents, if it is known where they begin. Documents without tokens do not count.
    pub fn documents(&self) -> Option<usize> {
        self.stream.documents().map(<[usize]>::len)
    }

    /// The largest token, if there are tokens. A model's vocabulary must be larger. This reads all tokens, on the calling thread.
    pub fn largest(&self) -> Option<i64> {
        self.stream.values(0..self.len()).max()
    }
}
