//! Rows that are read once, from front to back: of any reader, and of shards.

use super::{
    builder::{Format, RowsBuilder, named},
    dataset::{Rows, row_error},
};
use crate::{
    error::DataError,
    jsonl, row,
    source::stream::{ByteStream, RecordReader},
    store::{Objects, reader::ObjectReader},
    tar,
};
use serde::de::DeserializeOwned;
use std::{io::Read, iter, path::PathBuf, sync::Arc};

/// Rows that are read once, from front to back: an iterator. [`RowsBuilder::stream_from`] makes it from any reader, and
/// [`ShardStream::open`] from a shard.
///
/// `next` reads a row on the calling thread, and blocks until it is there. An error of a row ([`DataError::Row`],
/// [`DataError::TooLarge`]) is an item in place of that row. After any other error, the stream has ended: where the next row begins is
/// not known then. Dropping it drops the reader.
#[derive(derive_more::Debug)]
#[debug("RowStream")]
#[must_use = "rows are read by `next`"]
pub struct RowStream<T> {
    /// `None` after the end.
    rows: Option<Box<dyn Iterator<Item = Result<T, DataError>> + Send>>,
}

impl<T> Iterator for RowStream<T> {
    type Item = Result<T, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.as_mut()?.next();
        if !matches!(row, Some(Ok(_) | Err(DataError::Row { .. } | DataError::TooLarge { .. }))) {
            self.rows = None;
        }
        row
    }
}

impl<T> iter::FusedIterator for RowStream<T> {}

/// Shards that are read once, one by one: tars, JSON lines or Parquet. [`RowsBuilder::stream`] makes it. A clone shares everything.
#[derive(derive_more::Debug)]
#[debug("ShardStream {{ shards: {} }}", files.len())]
pub struct ShardStream<T> {
    files: Arc<[PathBuf]>,
    of: Arc<RowsBuilder<T>>,
}

/// Not derived, because `T` need not be `Clone`.
impl<T> Clone for ShardStream<T> {
    fn clone(&self) -> Self {
        Self { files: Arc::clone(&self.files), of: Arc::clone(&self.of) }
    }
}

impl<T: DeserializeOwned + 'static> ShardStream<T> {
    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.files.len()
    }

    /// Opens a shard, and waits for its first bytes. Parquet reads its footer, and checks the row type against it.
    ///
    /// # Errors
    /// If the shard is missing or has another format.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn open(&self, shard: usize) -> Result<RowStream<T>, DataError> {
        let (file, of) = (self.files[shard].clone(), &*self.of);
        #[cfg(feature = "parquet")]
        if !of.format.is_onward() {
            return of.of_file(file).open().map(in_order);
        }
        let objects = Objects::at(vec![file], &of.options)?;
        of.read_rows(&objects.name(0).to_owned(), ObjectReader::new(objects))
    }
}

impl<T: DeserializeOwned + 'static> RowsBuilder<T> {
    /// Finds the shards, for reading each once from front to back. Unlike [`open`](Self::open) it opens none of them, and makes no index. It
    /// blocks only where paths are globs, or of the hub.
    ///
    /// ```
    /// use burn_shards::Rows;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # for shard in 0..3 {
    /// #     std::fs::write(folder.path().join(format!("{shard}.jsonl")), format!("{{\"label\": {shard}}}\n"))?;
    /// # }
    /// let path = folder.path().join("{0..2}.jsonl"); // or `s3://bucket/train-{0000..9999}.tar`
    /// let stream = Rows::<(u8,)>::jsonl(path).columns(["label"]).stream()?;
    /// let mut labels = Vec::new();
    /// for shard in (0..stream.shards()).rev() {
    ///     for row in stream.open(shard)? {
    ///         labels.push(row?.0);
    ///     }
    /// }
    /// assert_eq!(labels, [2, 1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Tars and JSON lines are read as bytes arrive, and may be compressed with gzip or Zstandard (feature `mds` or `parquet`). Parquet is
    /// read row group by row group, after its footer. Of a remote store, at most 64 MiB are fetched ahead for each open shard, by 8
    /// requests, or less by the options `read_ahead` and `requests`.
    ///
    /// Rows, their order and their errors are those of [`open`](Self::open). But without an index, what is wrong with a tar or with a row
    /// type is found when a row is read. A name that is in no file is not an error where the row type has an `Option` for it.
    ///
    /// # Errors
    /// If no file matches, or if an option is wrong. MDS has an index already, so it is not streamed: use [`open`](Self::open).
    pub fn stream(mut self) -> Result<ShardStream<T>, DataError> {
        self.options.check()?;
        Rows::<T>::wanted(&self.shape)?;
        if matches!(self.format, Format::Mds) {
            return Err(not_streamed("stream"));
        }
        let files = self.paths()?.files(&self.options)?.into();
        self.options = self.options.for_stream();
        Ok(ShardStream { files, of: Arc::new(self) })
    }

    /// Reads rows from any reader, such as the standard input, a socket or a [`Pipe`](crate::Pipe). The path is only its name in errors, and
    /// the column `__url__` of a tar.
    ///
    /// ```
    /// use burn_shards::Rows;
    ///
    /// let text: &[u8] = b"{\"label\": 3}\n{\"label\": \"no number\"}\n{\"label\": 5}\n"; // or `std::io::stdin()`
    /// let rows = Rows::<(u8,)>::jsonl("stdin").columns(["label"]).stream_from(text)?;
    /// let labels: Vec<_> = rows.map(|row| row.ok().map(|row| row.0)).collect();
    /// assert_eq!(labels, [Some(3), None, Some(5)]);
    /// # Ok::<(), burn_shards::DataError>(())
    /// ```
    ///
    /// The rows of a tar, and of JSON lines, are those of [`open`](Self::open). The bytes may be compressed with gzip, also in several
    /// members, or with Zstandard (feature `mds` or `parquet`). A row of a tar comes when the next one begins. Memory holds one row, which may
    /// have [`largest_sample`](Self::largest_sample) bytes, and some KiB. It blocks until the first 2 KiB are there, or the end.
    ///
    /// # Errors
    /// If the first bytes cannot be read, or have another format. Parquet and MDS are not read from front to back.
    pub fn stream_from(self, read: impl Read + Send + 'static) -> Result<RowStream<T>, DataError> {
        if !self.format.is_onward() {
            return Err(not_streamed("stream_from"));
        }
        self.read_rows(&self.paths.shown(), read)
    }

    fn read_rows(&self, name: &str, read: impl Read + Send + 'static) -> Result<RowStream<T>, DataError> {
        let wanted = Rows::<T>::wanted(&self.shape)?;
        let bytes = ByteStream::new(name, Box::new(read), self.options.largest_sample)?;
        let mut records: Box<dyn RecordReader> = match self.format {
            Format::Tar => Box::new(tar::stream(bytes, named::<T>(&wanted), wanted)),
            _ => Box::new(jsonl::stream(bytes, wanted)?),
        };
        let (shape, name, mut numbers) = (self.shape.clone(), name.to_owned(), 0..);
        let rows = iter::from_fn(move || {
            let row = numbers.next()?;
            let made = records.next(row).transpose()?.and_then(|(record, key)| {
                let made = shape.within(|columns| row::row(record, columns));
                made.map_err(|error| row_error((&name, row), key, error, |_| Default::default()))
            });
            Some(made)
        });
        Ok(RowStream { rows: Some(Box::new(rows)) })
    }
}

/// The rows of a file that knows where they are.
#[cfg(feature = "parquet")]
fn in_order<T: 'static>(rows: Rows<T>) -> RowStream<T> {
    let numbers = 0..rows.rows();
    #[cfg(feature = "remote")]
    let ahead = rows.fetch_ahead(numbers.clone());
    let read = move |row| {
        #[cfg(feature = "remote")]
        let _until_the_end = &ahead;
        rows.read(row)
    };
    RowStream { rows: Some(Box::new(numbers.map(read))) }
}

fn not_streamed(option: &'static str) -> DataError {
    DataError::option(
        option,
        "it reads from front to back, and the format does not",
        "use `open`, which needs no scan here",
    )
}
