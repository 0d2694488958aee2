//! Reading one column of all rows, or rows of another type, on all threads.

use super::{
    builder::{named, names},
    dataset::{RowType, Rows},
};
use crate::{
    error::{BoxError, DataError},
    row::nearest,
    system::{
        caught::UserValues,
        parallel::{cores, in_parallel_by},
    },
};
use serde::de::DeserializeOwned;
use std::{ops::Range, sync::Arc};

/// The number of reads at once from a store behind a network, where most of a read is waiting.
const READS_AT_ONCE: usize = 32;
/// The most rows that a thread reads in one piece of work.
const ROWS_AT_ONCE: usize = 4096;

impl<T> Rows<T> {
    /// Reads one column of all rows, such as labels for class weights, or texts for a vocabulary. `T` need not have the column. It blocks,
    /// and reads on all threads of the machine.
    ///
    /// ```
    /// # use burn_shards::Rows;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.jsonl");
    /// # std::fs::write(&path, (0..4).map(|n| format!("{{\"text\": \"a\", \"label\": {}}}\n", n % 2)).collect::<String>())?;
    /// let rows = Rows::<(String,)>::jsonl(path).columns(["text"]).open()?;
    /// assert_eq!(rows.column::<i64>("label")?, [0, 1, 0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// In Parquet it reads the pages of that column; in a tar the files with that extension, or for `__key__` their headers. In MDS and
    /// JSON lines it reads whole rows, and skips the other columns. Use an `Option` if values may be null or missing.
    ///
    /// # Errors
    /// If no file (for JSON lines, no row) has the column, unless it is [`optional`](crate::RowsBuilder::optional); if it has another type;
    /// or if a row cannot be read. The error names file, row and column.
    pub fn column<V: DeserializeOwned + Send>(&self, name: &str) -> Result<Vec<V>, DataError> {
        let rows = self.reread::<(V,)>(Some([name.into()].into()))?;
        rows.each(|_, (value,)| Ok(value))
    }

    /// The rows for which `keep` returns true. `U` is any row type. Its fields choose what is read, so give it only the fields that `keep`
    /// needs. It blocks, and reads all rows once, on all threads.
    ///
    /// ```
    /// use burn::data::dataset::Dataset;
    /// use burn_shards::Rows;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Stars {
    ///     stars: u8,
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.jsonl");
    /// # std::fs::write(&path, (0..6).map(|n| format!("{{\"text\": \"a\", \"stars\": {n}}}\n")).collect::<String>())?;
    ///
    /// let all = Rows::<(String,)>::jsonl(path).columns(["text"]).open()?;
    /// let good = all.filter(|row: Stars| Ok(row.stars > 3))?;
    /// assert_eq!(good.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`column`](Self::column). An error of `keep` becomes [`DataError::Map`], which names the row.
    pub fn filter<U: DeserializeOwned>(
        self,
        keep: impl Fn(U) -> Result<bool, BoxError> + Sync,
    ) -> Result<Self, DataError> {
        let rows = self.reread::<U>(None)?;
        let kept = rows.each(|row, value| keep(value).map_err(|error| rows.of_map(rows.at(row), error)))?;
        self.picked("filter", |row| kept[row])
    }

    /// The size in bytes of one file of each row of a tar, from the index, without reading the files. Use it if the real length would need
    /// decoding, for example to batch sounds of similar length. A row without the file has 0.
    ///
    /// ```no_run
    /// # #[cfg(feature = "audio")]
    /// # fn run() -> Result<(), burn_shards::DataError> {
    /// # use burn_shards::{Audio, Rows};
    /// let sounds = Rows::<(Audio,)>::tar("train-{000..146}.tar").columns(["wav"]).open()?;
    /// let lengths = sounds.sizes("wav")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If no row has such a file, if the rows have another format, whose index has no sizes, or if the index cannot be read.
    pub fn sizes(&self, column: &str) -> Result<Vec<usize>, DataError> {
        let size = |row| self.source.size(self.at(row), column);
        let sizes = (0..self.rows()).map(size).collect::<Result<Vec<_>, _>>()?;
        if sizes.iter().all(Option::is_none) {
            let near = nearest(column, &self.names());
            let problem = format!("no row has `{column}`{near} in an index that tells its size");
            let advice = "`there_is` lists what a tar has; of other formats read the values with `column`";
            return Err(DataError::option("sizes", problem, advice));
        }
        let bytes = |size: Option<u64>| usize::try_from(size.unwrap_or_default()).unwrap_or(usize::MAX);
        Ok(sizes.into_iter().map(bytes).collect())
    }

    /// The same rows as another type, with other columns. Nothing is fetched ahead for them.
    fn reread<U: DeserializeOwned>(&self, columns: Option<Arc<[Arc<str>]>>) -> Result<Rows<U>, DataError> {
        let shape = RowType { columns, around: self.shape.around.clone() };
        let wanted = Rows::<U>::wanted(&shape)?;
        let names = names::<U>(&wanted, &shape);
        let source = self.source.select(&wanted, &names, &named::<U>(&wanted))?;
        let rows =
            Rows::<U>::new(source, shape, Arc::clone(&self.optional), Arc::clone(&self.options), Arc::new(names));
        rows.fit(true)?;
        Ok(Rows { picks: self.picks.clone(), ..rows })
    }

    /// Reads all rows on all threads, and returns their values in order.
    fn each<O: Send>(&self, take: impl Fn(usize, T) -> Result<O, DataError> + Sync) -> Result<Vec<O>, DataError> {
        let take = |row, value: Result<T, DataError>| take(row, value?);
        let run = |run: &Range<usize>| self.read_run(run.clone(), take).map(UserValues);
        let read = in_parallel_by(self.readers(), &self.runs(ROWS_AT_ONCE)?, run)?;
        Ok(read.into_iter().flat_map(UserValues::take).collect())
    }

    /// How many threads read all rows.
    pub(crate) fn readers(&self) -> usize {
        if self.source.objects().is_far() { READS_AT_ONCE } else { cores() }
    }

    /// All rows in runs of at most `most`. Rows that are decoded together are read by one thread.
    pub(crate) fn runs(&self, most: usize) -> Result<Vec<Range<usize>>, DataError> {
        let cut = |block: Range<usize>| {
            let step = if self.source.decodes() { block.len() } else { most }.max(1);
            block.clone().step_by(step).map(move |start| start..(start + step).min(block.end))
        };
        Ok(self.blocks()?.ranges().flat_map(cut).collect())
    }

    /// Reads a run of rows on the calling thread.
    pub(crate) fn read_run<O, E: From<DataError>>(
        &self,
        rows: Range<usize>,
        take: impl Fn(usize, Result<T, DataError>) -> Result<O, E>,
    ) -> Result<Vec<O>, E> {
        // A damaged file may claim any number of rows.
        let mut taken = UserValues(Vec::with_capacity(rows.len().min(ROWS_AT_ONCE)));
        let mut end = rows.start; // of the rows that are adjacent in the files
        while let Some(row) = Some(rows.start + taken.len()).filter(|row| *row < rows.end) {
            let first = self.at(row);
            if row >= end {
                let follows = |next: &usize| self.at(*next) - first == next - row;
                end = row + (row..rows.end).take(ROWS_AT_ONCE).take_while(follows).count();
            }
            for record in self.source.run(first, end - row)? {
                let row = rows.start + taken.len();
                let made = record.map_err(|error| self.with_key(self.at(row), error));
                taken.push(take(row, made.and_then(|record| self.made(self.at(row), record)))?);
            }
        }
        Ok(taken.take())
    }
}
