//! Rows of many Parquet files, one at a time.

mod values;

use super::{sample, saved};
use crate::{
    error::DataError,
    parquet::{
        columns::{Columns, Leaf},
        fault::PartError,
        footer::{self, Footer, RowGroup},
        pages::{Chunk, DecodedPiece, Note, PieceCache},
    },
    source::{Selection, Source, blocks::Blocks, cell::Record, index::look, starts::Starts},
    store::{Objects, options::Options},
    system::{parallel::in_parallel, progress::Progress},
};
use fnv::FnvHashMap;
#[cfg(feature = "remote")]
use std::ops::Range;
use std::{collections::BTreeMap, sync::Arc};

/// A chunk of fewer bytes than this is decoded whole, because its pages are too small for separate reads.
const SMALL_CHUNK: u64 = 1 << 20;

/// Many files as one list of rows.
#[derive(Debug)]
pub(crate) struct ParquetSource {
    pub(crate) objects: Objects,
    /// The columns of each object.
    columns: Vec<Arc<Columns>>,
    /// The row groups of all objects, without empty ones.
    pub(crate) groups: Vec<RowGroup>,
    /// The rows of each group.
    starts: Starts,
    there_is: Vec<(String, String)>,
    classes: BTreeMap<String, Vec<String>>,
    /// By the numbers of the group, of the leaf, and of the page (if the piece is not the whole chunk).
    pub(crate) pieces: PieceCache<(usize, usize, Option<usize>), DecodedPiece>,
    pub(crate) options: Options,
    /// Whether the notes of all pages were saved when the data set was opened.
    indexed: bool,
}

/// Opens Parquet files: reads their footers, and the saved notes.
pub(crate) fn open(objects: Objects, wanted: &Selection, options: &Options) -> Result<ParquetSource, DataError> {
    let source = open_with(objects, wanted, options, SMALL_CHUNK)?;
    if let Some((object, bytes)) = source.cramped() {
        let (name, mib) = (source.objects.name(object), |bytes: u64| bytes.div_ceil(1 << 20));
        log::warn!(
            "the wanted columns of a row group of {name} take about {} MiB in memory, and `memory` allows {} MiB: rows may be \
             decoded again and again. Write `.memory({} << 20)`, or write the file with an offset index or smaller row groups",
            mib(bytes),
            mib(options.memory),
            mib(bytes)
        );
    }
    Ok(source)
}

/// As [`open`], with `small` in place of [`SMALL_CHUNK`].
pub(crate) fn open_with(
    objects: Objects,
    wanted: &Selection,
    options: &Options,
    small: u64,
) -> Result<ParquetSource, DataError> {
    let all: Vec<usize> = (0..objects.len()).collect();
    let mut files = look(&objects, &all, |object| footer::read(&objects, *object, wanted, small))?;
    footer::agree(&objects, &mut files)?;
    let classes = footer::classes(&objects, &mut files)?;
    let mut source = ParquetSource {
        columns: Vec::with_capacity(files.len()),
        groups: Vec::new(),
        starts: Starts::new(),
        there_is: Vec::new(),
        classes,
        pieces: PieceCache::new(options.memory, DecodedPiece::bytes),
        options: options.clone(),
        indexed: false,
        objects,
    };
    for with_rows in [true, false] {
        let files = files.iter_mut().filter(|file| file.has_rows() == with_rows);
        files.for_each(|file| source.add_names(std::mem::take(&mut file.there_is)));
    }
    for (object, file) in files.into_iter().enumerate() {
        source.add(object, file)?;
    }
    saved::load(&source.objects, &source.options, &source.groups, &source.columns);
    source.indexed = source.not_noted().is_empty();
    Ok(source)
}

impl ParquetSource {
    fn add(&mut self, object: usize, file: Footer) -> Result<(), DataError> {
        let Footer { columns, groups, .. } = file;
        for group in groups.into_iter().filter(|group| group.rows > 0) {
            self.starts.add(group.rows, self.objects.name(object))?;
            self.groups.push(group);
        }
        self.columns.push(Arc::new(columns));
        Ok(())
    }

    /// Adds the columns of an object to the list. A column that is already listed with a type is unchanged.
    fn add_names(&mut self, there_is: Vec<(String, String)>) {
        if self.there_is.is_empty() || self.there_is == there_is {
            self.there_is = there_is;
            return;
        }
        let mut places: FnvHashMap<_, _> =
            self.there_is.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
        for (name, word) in there_is {
            match places.get(&name).and_then(|place| self.there_is.get_mut(*place)) {
                Some((_, known)) if known == "null" || known == "list<null>" => *known = word,
                Some(_) => {}
                None => {
                    places.insert(name.clone(), self.there_is.len());
                    self.there_is.push((name, word));
                }
            }
        }
    }

    pub(crate) fn leaves(&self, object: usize) -> &[Leaf] {
        self.columns.get(object).map_or(&[], |columns| &columns.leaves)
    }
}

impl Source for ParquetSource {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn read(&self, row: usize) -> Result<Record, DataError> {
        let (number, in_group) = self.starts.find(row);
        let object = self.groups[number].object;
        let columns = &self.columns[object].list;
        let mut record = Record::with_capacity(columns.len());
        for column in columns {
            let value = self.column(number, in_group, &column.shape);
            let in_row = |wrong: PartError| wrong.in_row(self.objects.name(object), &column.name, self.place(row).1);
            record.push((Arc::clone(&column.name), value.map_err(in_row)?.1));
        }
        Ok(record)
    }

    /// Reads the footers again.
    fn select(&self, _: &Selection, nested: &Selection, _: &[&str]) -> Result<Arc<dyn Source>, DataError> {
        Ok(Arc::new(open(self.objects.without_ahead(), nested, &self.options)?))
    }

    /// The part of a noted value is its bytes. Other values have two parts, their page and its dictionary, or one part, the whole chunk.
    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (number, row) = self.starts.find(row);
        let group = &self.groups[number];
        for (leaf, chunk) in self.leaves(group.object).iter().zip(&group.chunks) {
            if chunk.pages.is_empty() {
                part(group.object, chunk.range.clone());
                continue;
            }
            let (page, rows) = chunk.page(row, group.rows);
            match chunk.notes.get(page).and_then(|note| note.get()) {
                Some(note) if note.is_direct() => {
                    note.place(leaf, row - rows.start).into_iter().for_each(|place| part(group.object, place));
                }
                _ => {
                    chunk.dictionary().into_iter().for_each(|dictionary| part(group.object, dictionary));
                    part(group.object, chunk.pages[page].range());
                }
            }
        }
        Ok(())
    }

    fn place(&self, row: usize) -> (&str, usize) {
        let (number, row) = self.starts.find(row);
        let RowGroup { object, first, .. } = &self.groups[number];
        (self.objects.name(*object), first + row)
    }

    fn samples(&self) -> Vec<(usize, Record)> {
        self.columns.iter().enumerate().map(|(object, columns)| (object, sample::row(columns))).collect()
    }

    fn has_rows(&self, object: usize) -> bool {
        self.groups.binary_search_by_key(&object, |group| group.object).is_ok()
    }

    fn there_is(&self) -> Vec<(String, String)> {
        self.there_is.clone()
    }

    /// Blocks are row groups. Their bytes are about those of the decoded pieces of the wanted columns. Columns whose values are read one by
    /// one do not count.
    fn blocks(&self) -> Result<Blocks, DataError> {
        let block = |group: &RowGroup| (group.rows, self.decoded(group, |chunk| chunk.notes.is_empty()));
        Ok(Blocks { blocks: self.groups.iter().map(block).collect(), limit: Some(self.options.memory) })
    }

    fn decodes(&self) -> bool {
        true
    }

    fn classes(&self, column: &str) -> Option<Vec<String>> {
        self.classes.get(column).cloned()
    }

    fn index(&self) -> Result<(), DataError> {
        if self.indexed {
            return Ok(());
        }
        let missing = self.not_noted();
        let bytes = missing.iter().map(|(.., chunk)| chunk.range.end - chunk.range.start).sum();
        let progress = Progress::new("indexing", bytes);
        let _shown = self.options.busy.shown_in(&progress);
        in_parallel(&missing, |(group, leaf, chunk)| self.note(group, *leaf, chunk, &progress))?;
        saved::save(&self.objects, &self.options, &self.groups, &self.columns)
    }
}

impl ParquetSource {
    /// About how many bytes some chunks of a row group take when decoded.
    fn decoded(&self, group: &RowGroup, is_counted: impl Fn(&Chunk) -> bool) -> u64 {
        let chunks = self.leaves(group.object).iter().zip(&group.chunks);
        let decoded =
            chunks.filter(|(_, chunk)| is_counted(chunk)).map(|(leaf, chunk)| chunk.decoded(leaf, group.rows));
        decoded.fold(0, u64::saturating_add)
    }

    /// The object of the row group whose chunks without pages take the most memory, and their bytes, if these exceed the limit. Each row
    /// needs all of these chunks.
    pub(crate) fn cramped(&self) -> Option<(usize, u64)> {
        let groups = self.groups.iter().map(|group| {
            let bytes = self.decoded(group, |chunk| chunk.pages.is_empty());
            (group.object, bytes)
        });
        groups.filter(|(_, bytes)| *bytes > self.options.memory).max_by_key(|(_, bytes)| *bytes)
    }

    /// The chunks with pages that are not noted, each with its group and the number of its leaf.
    fn not_noted(&self) -> Vec<(&RowGroup, usize, &Chunk)> {
        let lacks_a_note = |chunk: &Chunk| chunk.notes.iter().any(|note| note.get().is_none());
        saved::chunks(&self.groups).filter(|(.., chunk)| lacks_a_note(chunk)).collect()
    }

    /// Notes all pages of a chunk.
    fn note(&self, group: &RowGroup, leaf: usize, chunk: &Chunk, progress: &Progress) -> Result<(), DataError> {
        let leaf = &self.leaves(group.object)[leaf];
        for (number, (note, page)) in chunk.notes.iter().zip(&chunk.pages).enumerate() {
            if note.get().is_none() {
                let rows = chunk.rows(number, group.rows);
                let found = Note::find(&self.objects, group.object, leaf, page, rows.len(), None);
                let from = |wrong: PartError| {
                    let place = format!("rows from {} on", group.first + rows.start);
                    wrong.at(self.objects.name(group.object), &leaf.path, &place)
                };
                _ = note.set(found.map_err(from)?);
            }
            progress.add(page.length.into());
        }
        Ok(())
    }
}
