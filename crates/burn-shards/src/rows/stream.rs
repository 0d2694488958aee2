//! Rows that are read once, from front to back: of any reader, and of shards.

use super::{
    builder::{Format, RowsBuilder, named},
    dataset::Rows,
};
use crate::{
    error::DataError,
    jsonl,
    row::{self, RowError},
    source::stream::{ByteStream, RecordReader},
    store::{Objects, reader::ObjectReader},
    tar,
};
use serde::de::DeserializeOwned;
use std::{io::Read, iter, path::PathBuf, sync::Arc};

/// Rows that are read once, from front to back. [`RowsBuilder::stream_from`] makes it of any reader, and [`ShardStream::open`] of a shard.
///
/// `next` reads a row on the calling thread, and blocks until it is there. An error of one row ([`DataError::Row`],
/// [`DataError::TooLarge`]) is an item in place of that row. Any other error of a tar or of JSON lines is the last item, because it is not
/// known where the next row begins. Dropping it drops the reader.
pub type RowStream<T> = Box<dyn Iterator<Item = Result<T, DataError>> + Send>;

/// Shards that are read once, each from front to back. [`RowsBuilder::stream`] makes it. A clone shares everything.
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

    /// Opens a shard on the calling thread, and waits for its first bytes. Of Parquet it reads the footer, and checks the row type.
    ///
    /// # Errors
    /// If the shard is missing or has another format.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn open(&self, shard: usize) -> Result<RowStream<T>, DataError> {
        let (file, of) = (self.files[shard].clone(), &*self.of);
        #[cfg(feature = "parquet")]
        if matches!(of.format, Format::Parquet) {
            let rows = of.of_file(file).open()?;
            let numbers = 0..rows.rows();
            #[cfg(feature = "remote")]
            let ahead = rows.fetch_ahead(numbers.clone());
            return Ok(Box::new(numbers.map(move |row| {
                #[cfg(feature = "remote")]
                let _until_the_end = &ahead;
                rows.read(row)
            })));
        }
        let objects = Objects::at(vec![file], &of.options)?;
        of.read_rows(objects.name(0).into(), Box::new(ObjectReader::new(objects)))
    }
}

impl<T: DeserializeOwned + 'static> RowsBuilder<T> {
    /// Finds the shards, to read each of them once from front to back. Unlike [`open`](Self::open) it opens no file and makes no index. It
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
    /// Rows and their order are those of [`open`](Self::open). Tars and JSON lines may also be compressed with gzip or Zstandard (feature
    /// `mds` or `parquet`). They are read in parts of 16 MiB, one after the other, each by a request to a remote store. So open several
    /// shards at once where one connection is too slow. Parquet is read in the order of its rows. There the options `read_ahead` and
    /// `requests` hold for each open shard.
    ///
    /// Without an index, what is wrong with a tar or with the row type is found when a row is read. A name that no file has is not found
    /// where the field is an `Option` or has a default.
    ///
    /// # Errors
    /// If no file matches, or if an option is wrong. MDS and `Rows::hub` are not streamed: `open` makes no index of them.
    pub fn stream(self) -> Result<ShardStream<T>, DataError> {
        self.options.check()?;
        Rows::<T>::wanted(&self.shape)?;
        match self.format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {}
            Format::Tar | Format::Jsonl => {}
            _ => return Err(not_streamed("stream")),
        }
        Ok(ShardStream { files: self.paths.files(&self.options)?.into(), of: Arc::new(self) })
    }

    /// Reads a tar or JSON lines from any reader, such as the standard input, a socket or a [`Pipe`](crate::Pipe). The path is only its name
    /// in errors, and in the column `__url__`.
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
    /// Rows and their order are those of [`open`](Self::open). The bytes may be compressed with gzip or Zstandard (feature `mds` or
    /// `parquet`), also in several members or frames. A row of a tar is complete, and returned, when the next one begins. Memory holds one
    /// row, of at most [`largest_sample`](Self::largest_sample) bytes, and what the decompression needs. The call blocks until 2 KiB are
    /// there, or the end.
    ///
    /// # Errors
    /// If the first bytes cannot be read, or have another format. Parquet and MDS are not read from front to back.
    pub fn stream_from(self, read: impl Read + Send + 'static) -> Result<RowStream<T>, DataError> {
        self.read_rows(self.paths.shown(), Box::new(read))
    }

    fn read_rows(&self, name: String, read: Box<dyn Read + Send>) -> Result<RowStream<T>, DataError> {
        let wanted = Rows::<T>::wanted(&self.shape)?;
        let bytes = || ByteStream::new(name.clone(), read, self.options.largest_sample);
        let records: Box<dyn RecordReader> = match self.format {
            Format::Tar => Box::new(tar::stream(bytes()?, named::<T>(&wanted), wanted)?),
            Format::Jsonl => Box::new(jsonl::stream(bytes()?, wanted)?),
            _ => return Err(not_streamed("stream_from")),
        };
        let (shape, mut records, mut numbers) = (self.shape.clone(), Some(records), 0..);
        Ok(Box::new(iter::from_fn(move || {
            let row = numbers.next()?;
            let read = records.as_mut()?.next(row);
            if !matches!(read, Ok(Some(_)) | Err(DataError::Row { .. } | DataError::TooLarge { .. })) {
                records = None;
            }
            Some(read.transpose()?.and_then(|(record, key)| {
                let of_row = |RowError { column, problem, .. }| DataError::Row {
                    object: name.clone(),
                    row,
                    key,
                    column,
                    problem,
                };
                shape.within(|columns| row::row(record, columns)).map_err(of_row)
            }))
        })))
    }
}

fn not_streamed(option: &'static str) -> DataError {
    let problem = "this format is not read from front to back";
    DataError::option(
        option,
        problem,
        "use `open`; tars and JSON lines are, and `stream` reads Parquet files one by one",
    )
}
