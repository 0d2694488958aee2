//! Tar shards as rows.

use super::{
    dali,
    parts::{Parts, TarPart},
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
        index, sample,
        starts::Starts,
    },
    store::{Objects, options::Options},
    system::parallel::in_parallel,
};
use bytes::Bytes;
#[cfg(feature = "remote")]
use std::ops::Range;
use std::sync::Arc;

/// The kind and version of the saved index.
const KIND: &[u8; 8] = b"tar    2";
/// About how many bytes of the tar a block for the sampler has.
const BLOCK_BYTES: u64 = 4 << 20;

/// Columns that are not files of the tar.
pub(crate) const KEY: &str = "__key__";
pub(crate) const URL: &str = "__url__";

/// The samples of tar shards.
#[derive(Debug)]
pub(crate) struct TarSource {
    objects: Objects,
    shards: Vec<TarShard>,
    starts: Starts,
    key: Option<Arc<str>>,
    url: Option<Arc<str>>,
}

#[derive(Debug)]
struct TarShard {
    parts: Arc<Parts>,
    /// For each extension of the shard: whether it is wanted, and the kind of its bytes.
    wanted: Vec<Option<Raw>>,
}

/// Opens shards. Their index is loaded or made. `named` has the wanted columns that are not files: [`KEY`] and [`URL`].
pub(crate) fn open(
    objects: Objects,
    wanted: &Selection,
    named: &[&str],
    options: &Options,
) -> Result<TarSource, DataError> {
    let is_of = |object, saved: &Bytes| saved::is_of(&objects, object, saved);
    let indices = index::make(&objects, KIND, options, is_of, |object, progress| {
        dali::index(&objects, object)?.map_or_else(|| scan(&objects, object, progress), Ok)
    })?;
    let all: Vec<usize> = (0..objects.len()).collect();
    let read = in_parallel(&all, |object| {
        let damaged = || DataError::damaged(objects.name(*object), "its saved index cannot be read: delete it");
        Parts::read(indices[*object].clone()).ok_or_else(damaged)
    })?;
    let (mut shards, mut starts) = (Vec::with_capacity(objects.len()), Starts::new());
    for (object, parts) in read.into_iter().enumerate() {
        starts.add(parts.samples(), objects.name(object))?;
        shards.push(TarShard::new(Arc::new(parts), wanted));
    }
    Ok(TarSource::new(objects, shards, starts, named))
}

impl TarShard {
    fn new(parts: Arc<Parts>, wanted: &Selection) -> Self {
        let of = |extension: &Arc<str>| wanted.of(extension).map(|_| kind(extension));
        Self { wanted: parts.extensions.iter().map(of).collect(), parts }
    }
}

/// The kind of a file's bytes, by WebDataset's list of extensions.
fn kind(extension: &str) -> Raw {
    match extension.rsplit('.').next().unwrap_or(extension) {
        "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => Raw::Number,
        "txt" | "text" | "transcript" => Raw::Text,
        "json" | "jsn" => Raw::Json,
        _ => Raw::Bytes,
    }
}

impl TarSource {
    fn new(objects: Objects, shards: Vec<TarShard>, starts: Starts, named: &[&str]) -> Self {
        let named = |name: &str| named.contains(&name).then(|| name.into());
        Self { key: named(KEY), url: named(URL), objects, shards, starts }
    }

    /// The key of a sample, from the name of its first file.
    fn key_of(&self, object: usize, part: TarPart) -> Result<String, DataError> {
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
        let TarShard { parts, wanted } = &self.shards[object];
        let mut record = Record::with_capacity(wanted.len() + 2);
        let all = parts.of(sample).filter(|part| wanted[part.extension].is_some());
        self.objects.allow(object, all.fold(0, |bytes, part| part.bytes.saturating_add(bytes)))?;
        for part in parts.of(sample) {
            if let Some(name) = &self.key
                && part.first
            {
                record.push((Arc::clone(name), Cell::Text(self.key_of(object, part)?)));
            }
            let Some(kind) = wanted[part.extension] else { continue };
            let bytes = self.objects.samples(object, part.start..part.start.saturating_add(part.bytes), 1)?;
            record.push((Arc::clone(&parts.extensions[part.extension]), Cell::Raw(bytes, kind)));
        }
        if let Some(name) = &self.url {
            record.push((Arc::clone(name), Cell::Text(self.objects.name(object).into())));
        }
        Ok(record)
    }

    fn key(&self, row: usize) -> Option<Box<str>> {
        let (object, sample) = self.starts.find(row);
        let first = self.shards[object].parts.of(sample).next()?;
        Some(self.key_of(object, first).ok()?.into())
    }

    fn select(&self, wanted: &Selection, _: &Selection, named: &[&str]) -> Result<Arc<dyn Source>, DataError> {
        let shards = self.shards.iter().map(|shard| TarShard::new(Arc::clone(&shard.parts), wanted)).collect();
        Ok(Arc::new(Self::new(self.objects.without_ahead(), shards, self.starts.clone(), named)))
    }

    fn size(&self, row: usize, column: &str) -> Option<u64> {
        let (object, sample) = self.starts.find(row);
        let parts = &self.shards[object].parts;
        parts.of(sample).find(|part| *parts.extensions[part.extension] == *column).map(|part| part.bytes)
    }

    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (object, sample) = self.starts.find(row);
        let TarShard { parts, wanted } = &self.shards[object];
        let wanted = parts.of(sample).filter(|part| wanted[part.extension].is_some());
        wanted.for_each(|of| part(object, of.start..of.start.saturating_add(of.bytes)));
        Ok(())
    }

    fn samples(&self) -> Vec<(usize, Record)> {
        let shards = self.shards.iter().enumerate().filter(|(_, shard)| shard.parts.samples() > 0);
        let record = |shard: &TarShard| {
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
            let files = shard.parts.extensions.iter().zip(&shard.wanted).filter_map(file);
            let others = [&self.key, &self.url].into_iter().flatten();
            files.chain(others.map(|name| (Arc::clone(name), Cell::Text(String::new())))).collect()
        };
        shards.map(|(object, shard)| (object, record(shard))).collect()
    }

    fn lacking(&self, row: usize, column: &str) -> Option<(usize, usize)> {
        let TarShard { parts, .. } = &self.shards[self.starts.find(row).0];
        let number = parts.extensions.iter().position(|name| **name == *column);
        Some((parts.samples().saturating_sub(number.map_or(0, |number| parts.with(number))), parts.samples()))
    }

    fn there_is(&self) -> Vec<(String, String)> {
        let Some(shard) = self.shards.iter().find(|shard| shard.parts.samples() > 0) else { return Vec::new() };
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
        shard.parts.extensions.iter().map(file).chain(others).collect()
    }

    fn blocks(&self) -> Blocks {
        let mut blocks = Vec::new();
        for shard in &self.shards {
            let (mut samples, mut bytes) = (0, 0_u64);
            for sample in 0..shard.parts.samples() {
                samples += 1;
                bytes = shard.parts.of(sample).fold(bytes, |bytes, part| bytes.saturating_add(part.bytes));
                if bytes >= BLOCK_BYTES {
                    blocks.push(samples);
                    (samples, bytes) = (0, 0);
                }
            }
            if samples > 0 {
                blocks.push(samples);
            }
        }
        Blocks::of_rows(blocks)
    }
}
