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

/// Options of [`Rows`], and [`open`](Self::open).
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
    paths: Paths,
    format: Format,
    shape: RowType,
    /// Names that the files need not have.
    optional: Vec<Arc<str>>,
    options: Options,
    #[debug(skip)]
    row: PhantomData<fn() -> T>,
}

#[derive(derive_more::Debug)]
enum Format {
    #[cfg(feature = "parquet")]
    Parquet,
    #[cfg(all(feature = "http", feature = "parquet"))]
    #[debug("Hub({:?}, {_1:?})", shown(_0.as_ref()))] // it may be a URL, by mistake
    Hub(String, String),
    Tar,
    Mds,
    Jsonl,
}

impl<T: DeserializeOwned> Rows<T> {
    /// Parquet files: one, a glob, or a list. Column names are those of the schema's top level.
    ///
    /// Columns may be numbers, text, bytes, and lists, structs and maps of these, one in another. Others are refused by
    /// [`open`](RowsBuilder::open).
    /// A value in an uncompressed, plain page with an offset index is read by itself: this is how `datasets` writes
    /// images. Of other columns a page, or without an offset index a column chunk, is decoded once and kept for its
    /// neighbours, within [`memory`](RowsBuilder::memory). Shuffle those by blocks ([`Rows::blocks`]).
    #[cfg(feature = "parquet")]
    pub fn parquet(paths: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(paths.into(), Format::Parquet)
    }

    /// A split of a data set of the Hugging Face hub: the Parquet files that the hub has made of it (its branch
    /// `refs/convert/parquet`). `dataset` is `org/name`; `split` is such as `train`, or `config/train` if it has several
    /// configurations.
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
    /// The hub converts the first 5 GB of a split that is larger; that part is `config/partial-train`. For the data set's own
    /// files, write their URL: `Rows::parquet("hf://datasets/org/name/data/train-*.parquet")`.
    #[cfg(all(feature = "http", feature = "parquet"))]
    pub fn hub(dataset: impl Into<String>, split: impl Into<String>) -> RowsBuilder<T> {
        let none = Vec::<PathBuf>::new().into(); // the hub lists them
        RowsBuilder::new(none, Format::Hub(dataset.into(), split.into()))
    }

    /// Tar shards by the rules of WebDataset: neighbouring files with one key make a row, and the rest of the name, behind
    /// its first dot, is the column, in lower case. So `n01/0001.seg.png` is the column `seg.png` of the key `n01/0001`.
    ///
    /// The key itself is the column `__key__`, and the shard `__url__`. Files without a dot, and those
    /// named `__..__`, are left out. Each shard is scanned once for its index. DALI's `.idx` beside a shard is taken instead, if it
    /// fits and is not older. Compressed tars are not supported.
    pub fn tar(paths: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(paths.into(), Format::Tar)
    }

    /// A folder of MDS shards with its `index.json`, as MosaicML's `streaming` writes it.
    ///
    /// All encodings can be read but `pkl`, which can run any code. Compressed shards need a
    /// [`cache`](RowsBuilder::cache).
    pub fn mds(folder: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(folder.into(), Format::Mds)
    }

    /// JSON lines: an object on each line. Blank lines are left out.
    pub fn jsonl(paths: impl Into<Paths>) -> RowsBuilder<T> {
        RowsBuilder::new(paths.into(), Format::Jsonl)
    }
}

impl<T: DeserializeOwned> RowsBuilder<T> {
    fn new(paths: Paths, format: Format) -> Self {
        let shape = RowType { columns: None, around: None };
        Self { paths, format, shape, optional: Vec::new(), options: Options::default(), row: PhantomData }
    }

    /// Names the columns of a tuple's values, in their order. Each may be named once.
    pub fn columns<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.shape.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Names columns that no file need have. Any other name that the row type asks for, and that is in no schema and no index,
    /// is an error of [`open`](Self::open), also where its field is an `Option` or has a default: a misspelt name would be
    /// `None` in every row. JSON lines have no schema: a name that the first 1,000 rows lack is a warning of the log.
    ///
    /// A field with `#[serde(alias = "..")]` asks for all its names. So name those that are not there. A field of a struct is
    /// named with its column: `image.path`.
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

    /// Runs this around the making of each row, on the thread that reads it: it gets the function that makes the row, and calls
    /// it once. A row type whose `Deserialize` looks at a thread-local can have it set here. Default: nothing. If it is
    /// set twice, the later function runs around the earlier one.
    pub fn around_rows(mut self, around: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        self.shape.around = Some(match self.shape.around.take() {
            Some(inner) => Arc::new(move |make: &mut dyn FnMut()| around(&mut || inner(make))),
            None => Arc::new(around),
        });
        self
    }

    /// Names the folder where indices are saved, for shards in folders that cannot be written to. Default: beside the first
    /// shard, and for URLs a folder of the user's cache, `~/.cache/burn-pinned`. In that folder of the user's cache, indices go
    /// that were not used for 90 days, and the oldest ones beyond 10 GiB.
    pub fn index_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.index_dir = Some(folder.into());
        self
    }

    /// Names a folder on a local disk where data are kept that are dear to get, and the most bytes that they may take there:
    /// pages of objects behind a network, and decompressed MDS shards (feature `mds`). Default: none. Compressed
    /// shards need one.
    ///
    /// All data sets and processes that name the folder share it and its limit. It fills up to the limit, and then keeps what
    /// it has, since in an epoch each sample comes once. Only data sets that nobody has open make room for another one. A
    /// process may be killed at any time. If the disk gets full or fails, a warning says so, and all is read from the store.
    /// [`open`](Self::open) refuses a limit that the disk has no room for.
    ///
    /// A page has 1 MB, and is fetched as a whole, once by each process that wants it at the same time. Several processes that
    /// fill a cache together may pass its limit, each by 64 pages and those that it is fetching. The objects and shards
    /// themselves are never touched.
    pub fn cache(mut self, folder: impl Into<PathBuf>, bytes: u64) -> Self {
        self.options.cache = Some((folder.into(), bytes));
        self
    }

    /// Sets how many bytes are fetched ahead of the workers from a store behind a network. Default: 512 MiB. 0 fetches
    /// nothing ahead. It counts the bytes that are on their way and those that wait to be read.
    ///
    /// The larger it is, the more neighbours of a shuffled order are fetched together.
    #[cfg(feature = "remote")]
    pub fn read_ahead(mut self, bytes: u64) -> Self {
        self.options.read_ahead = bytes;
        self
    }

    /// Sets how many requests to a store are made at once. Default: 64. Each has a thread.
    #[cfg(feature = "remote")]
    pub fn requests(mut self, requests: usize) -> Self {
        self.options.requests = requests;
        self
    }

    /// Sets how long a read waits for a server that is busy and says when to come back (status 429 or 503). Default: 6 minutes,
    /// since the hub counts in windows of 5. A server that names a longer time makes the read fail at once. With 0
    /// every server that names a time does.
    ///
    /// Several waits in a row, without a byte between them, are added up. They count for `open`, too, which shows them.
    #[cfg(feature = "remote")]
    pub fn longest_wait(mut self, time: Duration) -> Self {
        self.options.busy = Busy::new(time);
        self
    }

    /// Sets how many bytes of decoded Parquet pages are kept in memory. Default: 512 MiB. Pages that workers have in use
    /// come on top. So does the newest page or column chunk that is larger than all of this. If the columns of a row
    /// group are decoded as a whole and take more, [`open`](Self::open) warns.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Sets the most bytes that a sample may have in its file. Default: 1 GiB. A sample that claims more is an error of
    /// that sample: a file or a server can claim any length, and memory is only given to bytes that come.
    ///
    /// In Parquet the limit is for each column. Where a page or a column chunk is decoded as a whole, it may have this
    /// number of bytes for each of its rows.
    pub fn largest_sample(mut self, bytes: u64) -> Self {
        self.options.largest_sample = bytes;
        self
    }

    /// Opens the files, and finds out where each row is. It blocks. Indices that are not saved yet are made on all threads of
    /// the machine, with a progress bar.
    ///
    /// Whether the row type fits is learnt from the schema (Parquet, MDS) or the index (tar). Of JSON lines, the first row of
    /// each file that can be read tells it. A bad row, even the first one, is an error of `get` and not of `open`.
    ///
    /// # Errors
    /// If a file is missing, damaged or not supported; if the row type asks for a column that no file has and that is not
    /// [`optional`](Self::optional), or that has another type: then the error lists what there is; and if an option is wrong.
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
}

/// What a row type wants, with the fields of structs that its own structs name.
pub(super) fn names<T: DeserializeOwned>(wanted: &Selection, shape: &RowType) -> Selection {
    match wanted {
        Selection::Some(columns) if shape.columns.is_none() => nested::<T>(columns),
        other => other.clone(),
    }
}

/// The wanted columns of a tar that are no files.
pub(super) fn named<T: DeserializeOwned>(wanted: &Selection) -> Vec<&'static str> {
    let is_named = |name: &&str| match wanted {
        Selection::All => declares::<T>(name),
        some => some.of(name).is_some(),
    };
    [tar::KEY, tar::URL].into_iter().filter(is_named).collect()
}
