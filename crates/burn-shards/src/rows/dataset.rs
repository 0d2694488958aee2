//! Rows of any format as a Burn dataset.

use super::{
    picks::Picks,
    probe::{Demand, asked},
};
use crate::{
    error::{BoxError, DataError},
    row::{self, Fault, RowError, nearest},
    source::{Selection, Source, blocks::Blocks, cell::Record},
    store::options::Options,
};
use burn::data::dataset::{Dataset, DatasetError};
use serde::de::DeserializeOwned;
use std::{ops::Range, sync::Arc};

/// The rows of Parquet files, tar shards, MDS folders or JSON lines, each as a `T`: a Burn dataset with random access.
///
/// ```
/// use burn::data::dataset::Dataset;
/// use burn_shards::Rows;
///
/// #[derive(serde::Deserialize)]
/// struct Row {
///     text: String,
///     label: usize,
///     weight: Option<f32>, // may be null, or missing
/// }
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("train.jsonl");
/// # std::fs::write(&path, "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\", \"label\": 0, \"id\": 7}\n")?;
/// let rows = Rows::<Row>::jsonl(path).open()?;
/// let row = rows.get(1)?;
/// assert_eq!((rows.len(), row.text.as_str(), row.label, row.weight), (2, "b", 0, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `T` is any type that implements serde's `Deserialize`. The names of its fields choose the columns (Parquet, MDS, JSON) or the extensions
/// (tar), and only those are read. Use `#[serde(rename = "..")]` for a column that is not a valid Rust name, and `#[serde(alias = "..")]`
/// for another name of it. With `#[serde(flatten)]`, all columns are read. A tuple takes its names from
/// [`columns`](crate::RowsBuilder::columns). Columns that may be missing from all files are [`optional`](crate::RowsBuilder::optional).
///
/// | field type | accepts |
/// | --- | --- |
/// | integers | numbers that fit; in tars also text, as in `.cls` files |
/// | `bool` | booleans; in tars also `true`, `false`, `1` and `0` |
/// | `f32`, `f64` | numbers, rounded to the nearest `f64` and then to the nearest `f32`; a number that would become infinite is an error |
/// | `String` | text, or bytes in UTF-8 |
/// | `bytes::Bytes` | bytes of any kind, without another copy |
/// | `Option` | null, and missing values |
/// | `Vec` | lists, also of structs and of lists; maps, as pairs; arrays of numbers; bytes as `u8` |
/// | `HashMap`, `BTreeMap` | maps, JSON objects |
/// | arrays, tuples | lists of exactly that length |
/// | structs | structs, JSON objects, also those of `.json` files and of `json` columns |
///
/// [`get`](Dataset::get) reads a row on the calling thread, such as a worker of a loader. Rows are numbered across all files, in order. A
/// clone shares everything.
///
/// # Errors
/// `get` returns a [`DataError`] inside Burn's `DatasetError`. It names the file, row and column.
///
/// # Panics
/// `get` panics if `index >= len()`, as Burn requires.
///
/// A part of the rows, such as a split for validation, is `Rows` too: see [`split`](Self::split). So is the result of [`map`](Self::map).
#[derive(derive_more::Debug)]
#[debug("Rows {{ len: {}, columns: {:?} }}", picks.as_ref().map_or(source.len(), |picks| picks.len()), source.there_is())]
pub struct Rows<T> {
    pub(crate) source: Arc<dyn Source>,
    /// If these are only a part of the source's rows: which.
    pub(crate) picks: Option<Picks>,
    pub(super) shape: RowType,
    /// Names that may be missing from all files.
    pub(super) optional: Arc<[Arc<str>]>,
    pub(crate) options: Arc<Options>,
    /// The columns that are read.
    pub(crate) reads: Arc<Selection>,
    pub(super) make: RowMaker<T>,
}

/// Makes a row from its record.
pub(super) type RowMaker<T> = Arc<dyn Fn(Record) -> Result<T, MakeError> + Send + Sync>;

/// Why there is no row.
pub(super) enum MakeError {
    Row(RowError),
    /// The error of a user's function.
    Map(BoxError),
}

/// Not derived, because `T` need not be `Clone`.
impl<T> Clone for Rows<T> {
    fn clone(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            picks: self.picks.clone(),
            shape: self.shape.clone(),
            optional: Arc::clone(&self.optional),
            options: Arc::clone(&self.options),
            reads: Arc::clone(&self.reads),
            make: Arc::clone(&self.make),
        }
    }
}

/// Runs around the making of each row; see [`RowsBuilder::around_rows`](super::RowsBuilder::around_rows).
type RowHook = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// What is known of a row type before files are opened.
#[derive(Clone, derive_more::Debug)]
pub(super) struct RowType {
    /// The names of the values of a tuple.
    pub(super) columns: Option<Arc<[Arc<str>]>>,
    #[debug(skip)]
    pub(super) around: Option<RowHook>,
}

impl<T: DeserializeOwned> Rows<T> {
    /// Returns the columns that `T` wants, or what is wrong with the option `columns`.
    pub(super) fn wanted(shape: &RowType) -> Result<Selection, DataError> {
        let wrong = |problem: String, advice: &str| Err(DataError::option("columns", problem, advice));
        let columns = shape.columns.as_deref().unwrap_or_default();
        if let Some((_, twice)) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
            return wrong(format!("it names `{twice}` twice"), "name each column once, and clone its value");
        }
        match (asked::<T>(), &shape.columns) {
            (Demand::Value, _) => Err(DataError::option(
                "Rows<T>",
                "the row type is neither a struct nor a tuple",
                "derive `Deserialize` for a struct whose fields are named as the columns, or take a tuple and `.columns([..])`",
            )),
            (Demand::All, None) => Ok(Selection::All),
            (Demand::Fields(fields), None) => Ok(Selection::of_names(fields.iter().map(|name| Arc::from(*name)))),
            (Demand::Tuple(values), Some(columns)) if columns.len() == values => {
                Ok(Selection::of_names(columns.iter().cloned()))
            }
            (Demand::Tuple(values), Some(columns)) => {
                let problem = format!("it names {} columns for a tuple of {values} values", columns.len());
                wrong(problem, "name one column for each value")
            }
            (Demand::Tuple(_), None) => {
                wrong("a tuple has no names".into(), "write e.g. `.columns([\"image\", \"label\"])`")
            }
            (_, Some(_)) => {
                wrong("the row type has names of its own".into(), "leave it out, or use `#[serde(rename = \"..\")]`")
            }
        }
    }

    pub(super) fn new(
        source: Arc<dyn Source>,
        shape: RowType,
        optional: Arc<[Arc<str>]>,
        options: Arc<Options>,
        reads: Arc<Selection>,
    ) -> Self {
        let of = shape.clone();
        let make: RowMaker<T> =
            Arc::new(move |record| of.within(|columns| row::row(record, columns)).map_err(MakeError::Row));
        Self { source, picks: None, shape, optional, options, reads, make }
    }
}

impl RowType {
    /// Makes a row with `make`, inside the function that was set to wrap it.
    pub(super) fn within<O>(&self, make: impl FnOnce(Option<&[Arc<str>]>) -> O) -> O {
        let mut make = Some(|| make(self.columns.as_deref()));
        let mut made = None;
        if let Some(around) = &self.around {
            around(&mut || {
                if let Some(make) = make.take() {
                    made = Some(make());
                }
            });
        }
        match (made, make) {
            (Some(made), _) => made,
            (None, Some(make)) => make(), // no function is set, or it has not called it
            (None, None) => unreachable!("it was taken, and then it was made or has panicked"),
        }
    }
}

impl<T> Rows<T> {
    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.picks.as_ref().map_or_else(|| self.source.len(), |picks| picks.len())
    }

    /// The number of a row in the source. `index < rows()`.
    pub(crate) fn at(&self, index: usize) -> usize {
        let Some(picks) = &self.picks else { return index };
        picks.nth(index).unwrap_or_else(|| panic!("there is no row {index} of {}", picks.len()))
    }

    /// Reads a row, by its number in the source.
    pub(super) fn read(&self, row: usize) -> Result<T, DataError> {
        let record = self.source.read(row);
        self.source.objects().done(row);
        self.made(row, record.map_err(|error| self.with_key(row, error))?)
    }

    /// Makes a row from its record. `row` is its number in the source.
    pub(super) fn made(&self, row: usize, record: Record) -> Result<T, DataError> {
        (self.make)(record).map_err(|unmade| match unmade {
            MakeError::Row(error) => self.of_row(row, error),
            MakeError::Map(error) => self.of_map(row, error),
        })
    }

    /// The error of a user's function, for a row of the source.
    pub(crate) fn of_map(&self, row: usize, source: BoxError) -> DataError {
        let (object, number) = self.source.place(row);
        DataError::Map { object: object.into(), row: number, key: self.source.key(row), source }
    }

    /// Adds the key of a row to the error of a read. If the store did not return the row, it is not asked for the key.
    pub(super) fn with_key(&self, row: usize, mut error: DataError) -> DataError {
        if let DataError::Read { key, .. } | DataError::TooLarge { key, .. } = &mut error
            && !self.source.objects().is_far()
        {
            *key = self.source.key(row);
        }
        error
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<String> {
        self.source.there_is().into_iter().map(|(name, _)| name).collect()
    }

    pub(super) fn of_row(&self, index: usize, RowError { column, mut problem, fault }: RowError) -> DataError {
        let (object, row) = self.source.place(index);
        if fault == Fault::Missing {
            let lacking = column.as_deref().and_then(|column| self.source.lacking(index, column));
            let count =
                lacking.map_or_else(String::new, |(lack, all)| format!(", as {lack} of {all} rows of this file do"));
            let cure = match nearest(column.as_deref().unwrap_or_default(), &self.names()) {
                near if near.is_empty() => "; take".into(),
                near => format!("{near}: correct the name, or take"),
            };
            problem =
                format!("the row lacks it{count}{cure} an `Option`, or `#[serde(default)]`, where it may be missing");
        }
        DataError::Row { object: object.into(), row, key: self.source.key(index), column, problem }
    }
}

impl<T> Rows<T> {
    /// The runs of rows that are cheap to read together, for an order of your own, or for the sampler `BlockShuffle` of the loader
    /// `burn-pinned`.
    ///
    /// In a part of the rows, such as a split, a block has only those of its rows that are in the part, but takes the memory of all its
    /// rows. A block may be empty. For tars and JSON lines it reads the whole index.
    ///
    /// # Errors
    /// If the index cannot be read, or is of another file.
    pub fn blocks(&self) -> Result<Blocks, DataError> {
        let mut all = self.source.blocks()?;
        if let Some(picks) = &self.picks {
            let rows = |rows: Range<usize>| picks.before(rows.end) - picks.before(rows.start);
            let counts: Vec<usize> = all.ranges().map(rows).collect();
            all.blocks.iter_mut().zip(counts).for_each(|((rows, _), count)| *rows = count);
        }
        Ok(all)
    }

    /// The blocks of rows that are decoded together. `None` if rows are read one by one, so that blocks need no memory.
    #[doc(hidden)]
    pub fn decoded_blocks(&self) -> Option<Blocks> {
        self.source.decodes().then(|| self.blocks().ok())?
    }

    /// The class names of a column, if the files have them, as those written by Hugging Face's `datasets` do.
    ///
    /// A label is an index into them. All files have the same names, but some may have more at the end.
    pub fn classes(&self, column: &str) -> Option<Vec<String>> {
        self.source.classes(column)
    }

    /// The names and types of all columns of the first file, including those that are not read. For Parquet and MDS also of columns that
    /// only later files have.
    pub fn there_is(&self) -> Vec<(String, String)> {
        self.source.there_is()
    }

    /// Reads the lengths of the values in uncompressed Parquet files once, and saves them beside the files or in
    /// [`index_dir`](crate::RowsBuilder::index_dir). Single rows are then cheap to read. Without this call, the lengths are noted as rows
    /// are read. Other formats do not need it. It blocks, and shows a progress bar. Pages with a checksum are read whole and checked.
    ///
    /// # Errors
    /// If a file cannot be read, if a page is corrupt, or if the index cannot be saved. This data set and its clones still use an index
    /// that cannot be saved.
    pub fn index(&self) -> Result<(), DataError> {
        self.source.index()
    }

    /// The file that a row is in, and the row's number in it, from 0.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn place(&self, index: usize) -> (&str, usize) {
        assert!(index < self.rows(), "row {index} of {}", self.rows());
        self.source.place(self.at(index))
    }

    /// The name of a row: in a tar its `__key__`, read from the header of its first file. `None` in other formats, and if it cannot be
    /// read. Use it for errors that occur after the row was read.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn key(&self, index: usize) -> Option<String> {
        assert!(index < self.rows(), "row {index} of {}", self.rows());
        self.source.key(self.at(index)).map(String::from)
    }

    /// Applies a function to each row, on the thread that reads it. The function may fail. The result is `Rows` too: it has blocks, is read
    /// ahead and can be split.
    ///
    /// ```
    /// use burn::data::dataset::Dataset;
    /// use burn_shards::{DataError, Rows};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.jsonl");
    /// # std::fs::write(&path, "{\"x\": \"7\"}\n{\"x\": \"seven\"}\n")?;
    ///
    /// let texts = Rows::<(String,)>::jsonl(path).columns(["x"]).open()?;
    /// let numbers = texts.map(|(text,)| Ok(text.parse::<i32>()?));
    /// assert_eq!(numbers.get(0)?, 7);
    /// let error = numbers.get(1).unwrap_err(); // names the row, and has the error of `parse` as its source
    /// # let source = std::error::Error::source(&error).unwrap();
    /// # assert!(matches!(source.downcast_ref(), Some(DataError::Map { row: 1, .. })), "{source:?}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An error of the function becomes the error of its row: [`DataError::Map`].
    pub fn map<O>(self, with: impl Fn(T) -> Result<O, BoxError> + Send + Sync + 'static) -> Rows<O>
    where
        T: 'static,
    {
        self.making(|make| Arc::new(move |record| make(record).and_then(|row| with(row).map_err(MakeError::Map))))
    }

    /// Pairs each row with the result of a function of its record.
    pub(crate) fn beside<O>(self, of: impl Fn(&Record) -> O + Send + Sync + 'static) -> Rows<(T, O)>
    where
        T: 'static,
    {
        self.making(|make| {
            Arc::new(move |record| {
                let beside = of(&record);
                make(record).map(|row| (row, beside))
            })
        })
    }

    fn making<O>(self, with: impl FnOnce(RowMaker<T>) -> RowMaker<O>) -> Rows<O> {
        let Self { source, picks, shape, optional, options, reads, make } = self;
        Rows { source, picks, shape, optional, options, reads, make: with(make) }
    }
}

impl<T> Dataset<T> for Rows<T> {
    fn get(&self, index: usize) -> Result<T, DatasetError> {
        assert!(index < self.rows(), "row {index} of {}", self.rows());
        self.read(self.at(index)).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        self.rows()
    }
}
