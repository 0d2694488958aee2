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
/// let windows = tokens.windows(1025, 1024); // 1024 inputs, and their targets: each one token further
/// assert_eq!(windows.len(), 4);
/// assert!(windows.get(1)?.iter().eq(1024..2049));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`windows`](Self::windows) and [`packed`](Self::packed) cut the tokens into samples: Burn data sets with random
/// access and without state, for any order, resume and number of processes. Nothing is read at `open` but headers and
/// indices. The system's page cache is the only copy in memory, and all processes of a machine share it. A sample is
/// copied once, from the map into its row of the batch.
///
/// # Formats
///
/// Name and content of each file tell its format:
///
/// | format | seen by | tokens |
/// | --- | --- | --- |
/// | Megatron | a `.bin` with an `.idx` beside it | the type that the index names; floats are refused |
/// | llm.c | the first number, 20240520 or 20240801 | `u16` or `u32` |
/// | nanoGPT: bare tokens | no header, and a name that ends with `.bin` | `u16` |
///
/// Bare tokens of other types or in files of other names need [`open_raw`](Self::open_raw). All files must have one
/// type. Counts of headers and pointers of indices are checked against the size of the file.
///
/// # Files that change
///
/// Do not make a file shorter, nor write to it, while it is open. The map of a file that is made shorter has pages
/// without bytes. To read one is not an error that could be returned. On Unix it is the signal SIGBUS, which ends the
/// process. The same may happen if a network share goes away. To replace a file, write another one and rename it: the
/// map keeps the old one.
#[derive(Clone, derive_more::Debug)]
#[debug(
    "Tokens {{ files: {}, kind: {:?}, len: {}, documents: {:?} }}",
    stream.files().len(), self.kind(), self.len(), self.documents()
)]
pub struct Tokens {
    stream: Arc<Stream>,
}

impl Tokens {
    /// Opens files, and finds out what they are.
    ///
    /// # Errors
    /// If there is no such file, a file is empty or of no known format, its size does not fit its header or index, or the
    /// files have tokens of different types. If it is no file of tokens: a pointer of Git LFS, a page of a web server, a text, a
    /// pickle, tensors, a sound, an image, a compressed file. The error names the file, and says what to do.
    pub fn open(paths: impl Into<Paths>) -> Result<Self, TokensError> {
        Self::mapped(&paths.into(), None)
    }

    /// Opens files that are tokens from the first byte to the last, whatever their names are.
    ///
    /// ```
    /// use burn_shards::{TokenType, Tokens};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("novel.txt");
    /// std::fs::write(&path, "Call me Ishmael.")?;
    /// let bytes = Tokens::open_raw(path, TokenType::U8)?; // a text is a file of tokens, too
    /// assert_eq!(bytes.len(), 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such file, if it is empty, or if its size is no whole number of tokens. If it is a NumPy array or a pointer
    /// of Git LFS, or for tokens of more than one byte any file that [`open`](Self::open) refuses too.
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

    /// Says that each document ends with this token, such as GPT-2's 50256. The next token begins another document.
    ///
    /// This reads all tokens once, on the calling thread. That takes as long as to read the files. It keeps 8 bytes for
    /// each document, and saves nothing. A file's first token always begins a document. What an index says of documents
    /// no longer counts.
    ///
    /// # Errors
    /// If the files' type has no such token.
    pub fn documents_end_with(self, token: i64) -> Result<Self, TokensError> {
        self.find_documents(token, true)
    }

    /// Says that each document begins with this token. For files of llm.c's scripts this is 50256. It reads all tokens,
    /// as [`documents_end_with`](Self::documents_end_with) does.
    ///
    /// # Errors
    /// If the files' type has no such token.
    pub fn documents_begin_with(self, token: i64) -> Result<Self, TokensError> {
        self.find_documents(token, false)
    }

    fn find_documents(mut self, token: i64, behind: bool) -> Result<Self, TokensError> {
        Arc::make_mut(&mut self.stream).find_documents(token, behind)?;
        Ok(self)
    }

    /// Windows of `len` tokens, of which each begins `stride` tokens after the one before. Window `i` of a file has the
    /// tokens from `i * stride` on.
    ///
    /// No window crosses from a file to the next. A file of `n` tokens has `(n - len) / stride + 1` windows, or none if it
    /// is shorter than one. The tokens behind its last window are in no sample. With a stride below `len` windows
    /// overlap. A model that learns to predict the next token takes `windows(1025, 1024)`: then each token is a target
    /// once.
    ///
    /// # Panics
    /// If `len` or `stride` is 0.
    pub fn windows(&self, len: usize, stride: usize) -> TokenWindows {
        let files = self.stream.files().iter().map(|file| file.places.clone());
        TokenWindows::new(Arc::clone(&self.stream), files, len, stride)
    }

    /// Documents packed into windows: all tokens end to end, across the borders of documents and files, cut every `len`
    /// tokens. [`TokenWindow::documents`](super::TokenWindow::documents) tells which tokens of a window belong together.
    /// The tokens behind the last window, fewer than `len`, are in no sample.
    ///
    /// Windows of [`windows`](Self::windows) tell their documents too. They may overlap, so that each token is a target
    /// once, but leave out some tokens at the end of each file. Packed windows are better where files are small.
    ///
    /// # Errors
    /// [`TokensError::NoDocuments`] if nothing says where documents begin. Megatron's index does. For other files call
    /// [`documents_end_with`](Self::documents_end_with) or [`documents_begin_with`](Self::documents_begin_with) before.
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

    /// The files in their order, each with its number of tokens.
    pub fn files(&self) -> impl Iterator<Item = (&Path, usize)> {
        self.stream.files().iter().map(|file| (&*file.path, file.places.len()))
    }

    /// The number of documents, if it is known where they begin. Documents without tokens do not count.
    pub fn documents(&self) -> Option<usize> {
        self.stream.documents().map(<[usize]>::len)
    }

    /// The largest token, if there is any: a model's vocabulary must be larger. This reads all tokens, on the calling
    /// thread.
    pub fn largest(&self) -> Option<i64> {
        self.stream.values(0..self.len()).max()
    }
}
