//! The options of rows, and how rows are opened.

use super::{
    dataset::{RowType, Rows},
    probe::{declares, nested},
};
#[cfg(feature = "parquet")]
use crate::parquet;
#[cfg(feature = "remote")]
use crate::store::busy::Busy;
#[cfg(all(feature = "http", feature = "parquet"))]
use crate::store::{self, url::shown};
use crate::{
    error::DataError,
    jsonl, mds,
    source::{Selection, Source, location::Paths},
    store::options::Options,
    system::progress::Progress,
    tar,
};
use serde::de::DeserializeOwned;
#[cfg(feature = "remote")]
use std::time::Duration;
use std::{marker::PhantomData, path::PathBuf, sync::Arc};

/// The options of [`Rows`], and [`open`](Self::open).
///
/// ```no_run
/// use burn_shards::Rows;
/// use bytes::Bytes;
///
/// let train = Rows::<(Bytes, usize)>::tar("shards/train-{000000..000146}.tar")
///     .columns(["jpg", "cls"])
///     .index_dir("cache")
///     .open()?;
/// # Ok::<(), burn_shards::DataError>(())
/// ```
#[derive(derive_more::Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct RowsBuilder<T> {
    pub(super) paths: Paths,
    pub(super) format: Format,
    pub(super) shape: RowType,
    /// Names that may be missing from all files.
    optional: Vec<Arc<str>>,
    pub(super) options: Options,
    #[debug(skip)]
    row: PhantomData<fn() -> T>,
}

#[derive(derive_more::Debug)]
pub(super) enum Format {
    #[cfg(feature = "parquet")]
    Parquet,
    #[cfg(all(feature = "http", feature = "parquet"))]
    #[debug("Hub({:?}, {_1:?})", shown(_0.as_ref()))] // it may be a URL by mistake
    Hub(String, String),
    Tar,
    Mds,
    Jsonl,
}

impl<T: DeserializeOwned> Rows<T> {
    /// Parquet files: one file, a glob, or a list. Column names are those at the top level of the schema.
    ///
    /// Columns may have numbers, text, bytes, and nested lists, structs and maps of these. [`open`](RowsBuilder::open) refuses others. A
    /// value in an uncompressed, plain page with an offset index is read on its own: `datasets` writes images this way. For other columns,
    /// a whole page (without an offset index, a whole column chunk) is decoded once and kept for neighbouring rows, within
    /// [`memory`](RowsBuilder::memory). Shuffle those by blocks ([`Rows::blocks`]).
    #[cfg(feature = "parquet")]
    pub fn parquet(paths: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(paths.into(), Format::Parquet)
    }

    /// A split of a data set on the Hugging Face hub, from the Parquet files that the hub makes of it (branch `refs/convert/parquet`).
    /// `dataset` is `org/name`. `split` is, for example, `train`, or `config/train` if the data set has several configurations.
    ///
    /// ```no_run
    /// use burn_shards::Rows;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Row {
    ///     text: String,
    ///     label: usize,
    /// }
    ///
    /// let train = Rows::<Row>::hub("stanfordnlp/imdb", "train").open()?;
    /// # Ok::<(), burn_shards::DataError>(())
    /// ```
    ///
    /// If a split is larger than 5 GB, the hub converts only the first 5 GB, as `config/partial-train`. For the data set's own files, use
    /// their URL: `Rows::parquet("hf://datasets/org/name/data/train-*.parquet")`.
    #[cfg(all(feature = "http", feature = "parquet"))]
    pub fn hub(dataset: impl Into<String>, split: impl Into<String>) -> RowsBuilder<T> {
        let none = Vec::<PathBuf>::new().into(); // the hub lists them
        RowsBuilder::new(none, Format::Hub(dataset.into(), split.into()))
    }

    /// Tar shards, by WebDataset's rules. Neighbouring files with the same key make a row. The key ends at the first dot of the file name,
    /// and the rest, in lower case, is the column. So `n01/0001.seg.png` is the column `seg.png` of the key `n01/0001`.
    ///
    /// The column `__key__` is the key, and `__url__` is the shard. Files without a dot, and files named `__..__`, are skipped. Each shard
    /// is scanned once to make its index. A DALI `.idx` beside the shard is used instead, if it matches the shard and is not older.
    /// Compressed tars can only be read once, from front to back: by [`stream`](RowsBuilder::stream).
    pub fn tar(paths: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(paths.into(), Format::Tar)
    }

    /// A folder of MDS shards with its `index.json`, as MosaicML's `streaming` writes it.
    ///
    /// All encodings are supported except `pkl`, which can run any code. Compressed shards need a [`cache`](RowsBuilder::cache).
    pub fn mds(folder: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(folder.into(), Format::Mds)
    }

    /// JSON lines: one object per line. Blank lines are skipped.
    pub fn jsonl(paths: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(paths.into(), Format::Jsonl)
    }
}

impl<T: DeserializeOwned> RowsBuilder<T> {
    fn new(paths: Paths, format: Format) -> Self {
        let shape = RowType { columns: None, around: None };
        Self { paths, format, shape, optional: Vec::new(), options: Options::default(), row: PhantomData }
    }

    /// Names the columns of a tuple's values, in order. Each column may be named once.
    pub fn columns<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.shape.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Names columns that may be missing from all files. [`open`](Self::open) fails if any other name that the row type asks for is in no
    /// schema and no index. This holds even if its field is an `Option` or has a default, because a misspelt name would be `None` in every
    /// row. JSON lines have no schema: if the first 1,000 rows lack a name, the log has a warning.
    ///
    /// A field with `#[serde(alias = "..")]` asks for all its names, so list those that do not exist. Write a field of a struct with its
    /// column: `image.path`.
    ///
    /// ```no_run
    /// use burn_shards::Rows;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Row {
    ///     #[serde(alias = "txt")]
    ///     text: String,
    ///     caption: Option<String>,
    /// }
    ///
    /// // Tars with `txt` files, some of them with captions.
    /// let rows = Rows::<Row>::tar("train-{000..146}.tar").optional(["text", "caption"]).open()?;
    /// # Ok::<(), burn_shards::DataError>(())
    /// ```
    pub fn optional<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.optional.extend(names.into_iter().map(Into::into));
        self
    }

    /// Wraps the deserialization of each row, on the thread that reads it. `around` gets the function that makes the row, and must call it
    /// once. Use it to set a thread-local that the row type's `Deserialize` reads. Default: none. If it is set twice, the later function
    /// wraps the earlier one.
    pub fn around_rows(mut self, around: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        self.shape.around = Some(match self.shape.around.take() {
            Some(inner) => Arc::new(move |make: &mut dyn FnMut()| around(&mut || inner(make))),
            None => Arc::new(around),
        });
        self
    }

    /// Sets the folder where indices are saved, for shards in read-only folders. Default: beside the first shard, and for URLs a folder in
    /// the user's cache, `~/.cache/burn-pinned`. There, indices that were not used for 90 days are removed, and the least recently used
    /// ones beyond 10 GiB.
    pub fn index_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.index_dir = Some(folder.into());
        self
    }

    /// Sets a cache folder on a local disk, and its limit in bytes. It keeps pages of remote objects, and decompressed MDS shards (feature
    /// `mds`). Default: no cache. Compressed shards need one.
    ///
    /// All data sets and processes that use the folder share it and its limit. The cache fills up to the limit and then keeps what it has,
    /// because an epoch reads each sample once. To free space for another data set, only data sets that no process has open are evicted. A
    /// process may be killed at any time. If the disk becomes full or fails, a warning is logged and everything is read from the store.
    /// [`open`](Self::open) refuses a limit that the disk has no space for.
    ///
    /// A page is 1 MiB, and is always fetched whole. Processes that need the same page at the same time each fetch it once. Processes that
    /// fill a cache together may exceed its limit, each by 64 pages plus the pages that it is fetching. The original objects and shards are
    /// never modified.
    pub fn cache(mut self, folder: impl Into<PathBuf>, bytes: u64) -> Self {
        self.options.cache = Some((folder.into(), bytes));
        self
    }

    /// Sets how many bytes are fetched from a remote store ahead of the workers. Default: 512 MiB. 0 fetches nothing ahead. It counts bytes
    /// in flight and bytes that wait to be read.
    ///
    /// The larger it is, the more neighbouring rows of a shuffled order are fetched in one request.
    #[cfg(feature = "remote")]
    pub fn read_ahead(mut self, bytes: u64) -> Self {
        self.options.read_ahead = bytes;
        self
    }

    /// Sets how many requests to a store run at once. Default: 64. Each uses a thread.
    #[cfg(feature = "remote")]
    pub fn requests(mut self, requests: usize) -> Self {
        self.options.requests = requests;
        self
    }

    /// Sets how long a read waits for a busy server that says when to retry (status 429 or 503). Default: 6 minutes, because the hub's rate
    /// limits use windows of 5 minutes. If the server asks for a longer wait, the read fails at once. With 0, the read fails whenever a
    /// server asks for a wait.
    ///
    /// Consecutive waits without a byte between them add up. The limit also applies to `open`, which shows the waits.
    #[cfg(feature = "remote")]
    pub fn longest_wait(mut self, time: Duration) -> Self {
        self.options.busy = Busy::new(time);
        self
    }

    /// Sets how many bytes of decoded Parquet pages are kept in memory. Default: 512 MiB. Pages in use by workers are not counted, nor is
    /// the newest page or column chunk that alone exceeds the limit. If the columns of a row group are decoded whole and take more,
    /// [`open`](Self::open) warns.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Sets the most bytes that a sample may take in its file. Default: 1 GiB. A sample that claims more is an error of that sample. A file
    /// or a server can claim any length, so memory is allocated only for bytes that arrive.
    ///
    /// In Parquet the limit applies to each column. A page or column chunk that is decoded whole may take this number of bytes for each of
    /// its rows.
    pub fn largest_sample(mut self, bytes: u64) -> Self {
        self.options.largest_sample = bytes;
        self
    }

    /// Opens the files and locates each row. It blocks. Missing indices are made on all threads of the machine, with a progress bar.
    ///
    /// The row type is checked against the schema (Parquet, MDS) or the index (tar). For JSON lines it is checked against the first
    /// readable row of each file. A bad row, even the first one, is an error of `get`, not of `open`.
    ///
    /// # Errors
    /// If a file is missing, corrupt or not supported; if an option is wrong; or if the row type asks for a column that has another type,
    /// or that no file has and that is not [`optional`](Self::optional). The error then lists the columns that exist.
    pub fn open(self) -> Result<Rows<T>, DataError> {
        self.options.check()?;
        let (busy, line) = (self.options.busy.clone(), Progress::line("opening"));
        let _shown = busy.shown_in(&line);
        let wanted = Rows::<T>::wanted(&self.shape)?;
        let names = names::<T>(&wanted, &self.shape);
        let source: Arc<dyn Source> = match &self.format {
            #[cfg(all(feature = "http", feature = "parquet"))]
            Format::Hub(dataset, split) => {
                let paths: Paths = store::converted(dataset, split, &self.options)?.into();
                Arc::new(parquet::open(paths.objects(&self.options)?, &names, &self.options)?)
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => Arc::new(parquet::open(self.paths.objects(&self.options)?, &names, &self.options)?),
            Format::Tar => {
                let objects = self.paths.objects(&self.options)?;
                Arc::new(tar::open(objects, &wanted, &named::<T>(&wanted), &self.options)?)
            }
            Format::Mds => Arc::new(mds::open(&self.paths, &wanted, &self.options)?),
            Format::Jsonl => Arc::new(jsonl::open(self.paths.objects(&self.options)?, &wanted, &self.options)?),
        };
        let rows = Rows::new(source, self.shape, self.optional.into(), self.options.into(), names.into());
        rows.fit(false)?;
        Ok(rows)
    }

    /// The same options for one Parquet file.
    #[cfg(feature = "parquet")]
    pub(super) fn of_file(&self, file: PathBuf) -> Self {
        let (shape, optional, options) = (self.shape.clone(), self.optional.clone(), self.options.clone());
        Self { shape, optional, options, ..Self::new(file.into(), Format::Parquet) }
    }
}

/// The names that a row type asks for, with the fields that its structs name.
pub(super) fn names<T: DeserializeOwned>(wanted: &Selection, shape: &RowType) -> Selection {
    match wanted {
        Selection::Some(columns) if shape.columns.is_none() => nested::<T>(columns),
        other => other.clone(),
    }
}

/// The wanted columns of a tar that are not files.
pub(super) fn named<T: DeserializeOwned>(wanted: &Selection) -> Vec<&'static str> {
    let is_named = |name: &&str| match wanted {
        Selection::All => declares::<T>(name),
        some => some.of(name).is_some(),
    };
    [tar::KEY, tar::URL].into_iter().filter(is_named).collect()
}
