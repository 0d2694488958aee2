//! Tar shards as rows.

use super::{
    dali,
    parts::{Parts, TarPart, extensions},
    samples::split,
    saved,
    scan::{Walk, scan},
};
use crate::{
    error::DataError,
    source::{
        Selection, Source,
        blocks::Blocks,
        cell::{Cell, Raw, Record},
        index::{self, Index, IndexPart},
        sample,
        starts::Starts,
    },
    store::{Objects, options::Options},
};
#[cfg(feature = "remote")]
use std::ops::Range;
use std::{collections::HashSet, sync::Arc};

/// The kind and version of the saved index.
pub(super) const KIND: &[u8; 8] = b"tar    3";
/// About how many bytes of the tar a block for the sampler has.
const BLOCK_BYTES: u64 = 4 << 20;

/// Columns that are not files of the tar.
pub(crate) const KEY: &str = "__key__";
pub(crate) const URL: &str = "__url__";

/// The samples of tar shards.
#[derive(Debug)]
pub(crate) struct TarSource {
    objects: Objects,
    index: Arc<Index>,
    /// For each list of columns of the index.
    columns: Vec<TarColumns>,
    starts: Starts,
    key: Option<Arc<str>>,
    url: Option<Arc<str>>,
}

/// The columns of some shards.
#[derive(Debug)]
struct TarColumns {
    extensions: Vec<Arc<str>>,
    /// For each extension: whether it is wanted, and the kind of its bytes.
    wanted: Vec<Option<Raw>>,
}

/// Opens shards. Their index is loaded or made. `named` has the wanted columns that are not files: [`KEY`] and [`URL`].
pub(crate) fn open(
    objects: Objects,
    wanted: &Selection,
    named: &[&str],
    options: &Options,
) -> Result<TarSource, DataError> {
    let is_of = |object, saved: &IndexPart| saved::is_of(&objects, object, saved);
    let index = index::make(&objects, KIND, options, is_of, |object, progress| {
        dali::index(&objects, object)?.map_or_else(|| scan(&objects, object, progress), Ok)
    })?;
    let (mut starts, mut columns) = (Starts::new(), Vec::new());
    for object in 0..objects.len() {
        starts.add(index.rows(object), objects.name(object))?;
    }
    for saved in &index.columns {
        let damaged =
            || DataError::damaged(objects.name(0), "the columns of its saved index cannot be read: delete it");
        columns.push(TarColumns::new(extensions(saved.clone()).ok_or_else(damaged)?, wanted));
    }
    Ok(TarSource::new(objects, Arc::new(index), columns, starts, named))
}

impl TarColumns {
    fn new(extensions: Vec<Arc<str>>, wanted: &Selection) -> Self {
        let of = |extension: &Arc<str>| wanted.of(extension).map(|_| kind(extension));
        Self { wanted: extensions.iter().map(of).collect(), extensions }
    }
}

/// The kind of a file's bytes, by WebDataset's list of extensions.
pub(super) fn kind(extension: &str) -> Raw {
    match extension.rsplit('.').next().unwrap_or(extension) {
        "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => Raw::Number,
        "txt" | "text" | "transcript" => Raw::Text,
        "json" | "jsn" => Raw::Json,
        _ => Raw::Bytes,
    }
}

impl TarSource {
    fn new(objects: Objects, index: Arc<Index>, columns: Vec<TarColumns>, starts: Starts, named: &[&str]) -> Self {
        let named = |name: &str| named.contains(&name).then(|| name.into());
        Self { key: named(KEY), url: named(URL), objects, index, columns, starts }
    }

    fn columns(&self, object: usize) -> &TarColumns {
        &self.columns[self.index.list_of(object)]
    }

    fn shard(&self, object: usize) -> Result<Parts<'_>, DataError> {
        let index = self.index.part(&self.objects, object, |saved| saved::is_of(&self.objects, object, saved))?;
        Ok(Parts::new(index, self.columns(object).extensions.len()))
    }

    /// The first shard with rows of each list of columns.
    fn firsts(&self) -> impl Iterator<Item = (usize, &TarColumns)> {
        let mut seen = HashSet::new();
        let is_first = move |object: &usize| self.index.rows(*object) > 0 && seen.insert(self.index.list_of(*object));
        (0..self.objects.len()).filter(is_first).map(|object| (object, self.columns(object)))
    }

    /// The key of a sample, from the name of its first file.
    fn key_of(&self, object: usize, part: &TarPart) -> Result<String, DataError> {
        let entry = Walk::one(&self.objects, object, part.header).next()?;
        let changed = || DataError::damaged(self.objects.name(object), "a file of its index is not there");
        let entry = entry.filter(|entry| entry.start == part.start).ok_or_else(changed)?;
        let (key, _) = split(&entry.name).ok_or_else(changed)?;
        Ok(String::from_utf8_lossy(key).into_owned())
    }
}

impl Source for TarSource {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn read(&self, row: usize) -> Result<Record, DataError> {
        let (object, sample) = self.starts.find(row);
        let (parts, TarColumns { extensions, wanted }) = (self.shard(object)?.of(sample)?, self.columns(object));
        let mut record = Record::with_capacity(wanted.len() + 2);
        let all = parts.iter().filter(|part| wanted[part.extension].is_some());
        self.objects.allow(object, all.fold(0, |bytes, part| part.bytes.saturating_add(bytes)))?;
        if let Some((name, first)) = self.key.as_ref().zip(parts.first()) {
            record.push((Arc::clone(name), Cell::Text(self.key_of(object, first)?)));
        }
        for part in parts {
            let Some(kind) = wanted[part.extension] else { continue };
            let bytes = self.objects.samples(object, part.start..part.start.saturating_add(part.bytes), 1)?;
            record.push((Arc::clone(&extensions[part.extension]), Cell::Raw(bytes, kind)));
        }
        if let Some(name) = &self.url {
            record.push((Arc::clone(name), Cell::Text(self.objects.name(object).into())));
        }
        Ok(record)
    }

    fn key(&self, row: usize) -> Option<Box<str>> {
        let (object, sample) = self.starts.find(row);
        let parts = self.shard(object).and_then(|shard| shard.of(sample)).ok()?;
        Some(self.key_of(object, parts.first()?).ok()?.into())
    }

    fn select(&self, wanted: &Selection, _: &Selection, named: &[&str]) -> Result<Arc<dyn Source>, DataError> {
        let columns = self.columns.iter().map(|of| TarColumns::new(of.extensions.clone(), wanted)).collect();
        let (objects, index) = (self.objects.without_ahead(), Arc::clone(&self.index));
        Ok(Arc::new(Self::new(objects, index, columns, self.starts.clone(), named)))
    }

    fn size(&self, row: usize, column: &str) -> Result<Option<u64>, DataError> {
        let (object, sample) = self.starts.find(row);
        let (parts, extensions) = (self.shard(object)?.of(sample)?, &self.columns(object).extensions);
        Ok(parts.iter().find(|part| *extensions[part.extension] == *column).map(|part| part.bytes))
    }

    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (object, sample) = self.starts.find(row);
        let (parts, wanted) = (self.shard(object)?.of(sample)?, &self.columns(object).wanted);
        let wanted = parts.iter().filter(|part| wanted[part.extension].is_some());
        wanted.for_each(|of| part(object, of.start..of.start.saturating_add(of.bytes)));
        Ok(())
    }

    fn samples(&self) -> Vec<(usize, Record)> {
        let record = |columns: &TarColumns| {
            let file = |(name, wanted): (&Arc<str>, &Option<Raw>)| {
                let kind = (*wanted)?;
                let bytes = match kind {
                    Raw::Bytes if name.ends_with("npy") => sample::npy(),
                    Raw::Bytes => sample::bytes(),
                    Raw::Json => Vec::new(),
                    Raw::Number | Raw::Text => b"0".to_vec(),
                };
                Some((Arc::clone(name), Cell::Raw(bytes, kind)))
            };
            let files = columns.extensions.iter().zip(&columns.wanted).filter_map(file);
            let others = [&self.key, &self.url].into_iter().flatten();
            files.chain(others.map(|name| (Arc::clone(name), Cell::Text(String::new())))).collect()
        };
        self.firsts().map(|(object, columns)| (object, record(columns))).collect()
    }

    fn lacking(&self, row: usize, column: &str) -> Option<(usize, usize)> {
        let object = self.starts.find(row).0;
        let (shard, extensions) = (self.shard(object).ok()?, &self.columns(object).extensions);
        let mut lacking = shard.samples();
        for run in shard.runs() {
            let has = |part: &TarPart| *extensions[part.extension] == *column;
            lacking = lacking.saturating_sub(run.ok()?.iter().filter(|(_, part)| has(part)).count());
        }
        Some((lacking, shard.samples()))
    }

    fn there_is(&self) -> Vec<(String, String)> {
        let Some((_, columns)) = self.firsts().next() else { return Vec::new() };
        let file = |name: &Arc<str>| {
            let kind = match kind(name) {
                Raw::Bytes => "bytes",
                Raw::Number => "number",
                Raw::Text => "text",
                Raw::Json => "JSON",
            };
            (name.to_string(), kind.into())
        };
        let others = [KEY, URL].map(|name| (name.into(), "text".into()));
        columns.extensions.iter().map(file).chain(others).collect()
    }

    /// Reads the whole index, shard by shard.
    fn blocks(&self) -> Result<Blocks, DataError> {
        let mut blocks = Vec::new();
        for object in 0..self.objects.len() {
            blocks.extend(self.blocks_of(object)?);
        }
        Ok(Blocks::of_rows(blocks))
    }
}

impl TarSource {
    /// The number of samples in each run of about [`BLOCK_BYTES`] bytes.
    fn blocks_of(&self, object: usize) -> Result<Vec<usize>, DataError> {
        let shard = self.shard(object)?;
        let (mut blocks, mut first, mut bytes, mut last) = (Vec::new(), 0, 0_u64, 0);
        for run in shard.runs() {
            for (sample, part) in run? {
                if sample != last && bytes >= BLOCK_BYTES {
                    blocks.push(sample - first);
                    (first, bytes) = (sample, 0);
                }
                (last, bytes) = (sample, bytes.saturating_add(part.bytes));
            }
        }
        if first < shard.samples() {
            blocks.push(shard.samples() - first);
        }
        Ok(blocks)
    }
}
