//! A data set of MDS shards.

use super::{
    index_json::{self, Columns, Listed},
    row::{Cut, Wrong},
    shard::Shard,
    unpack::{self, Packed},
};
use crate::{
    data::{
        cell::Record,
        error::DataError,
        location::Paths,
        options::Options,
        source::{Source, Wanted},
        starts::Starts,
        store::{Objects, cache::Set},
        url::{shown, url},
    },
    order::Blocks,
};
#[cfg(feature = "remote")]
use std::ops::Range;
use std::sync::Arc;

/// The rows of MDS shards.
#[derive(Debug)]
pub(crate) struct MdsSource {
    objects: Objects,
    shards: Vec<Shard>,
    starts: Starts,
    columns: Arc<Columns>,
    cut: Cut,
    /// Keeps decompressed shards from being evicted.
    _unpacked: Option<Set>,
}

/// Opens the data set of a folder that has an `index.json`, or of several such folders, one after the other.
///
/// Compressed shards are decompressed first. The columns of uncompressed images (`pil`) have structs of `width`, `height`,
/// `mode` and `data`.
///
/// # Errors
/// If a file is missing, damaged or of another size than `index.json` says, if the shards do not have the same columns, if
/// a wanted column cannot be read, or if there is no room for decompressed shards.
pub(crate) fn open(paths: &Paths, wanted: &Wanted, options: &Options) -> Result<MdsSource, DataError> {
    let files = paths.in_folders("index.json")?;
    let (columns, listed) = index_json::read(&files, options)?;
    let cut = Cut::new(&files.first().map_or_else(String::new, |path| shown(path)), &columns, wanted)?;
    // Looked at once: another process may decompress a shard meanwhile.
    let packed: Vec<Option<Packed>> = listed.iter().map(packed).collect();
    let (unpacked, set) = unpack::unpack(packed.iter().flatten(), options)?;
    let mut unpacked = unpacked.into_iter();
    let path = |(shard, packed): (&Listed, &Option<Packed>)| {
        packed.as_ref().and_then(|_| unpacked.next()).unwrap_or_else(|| shard.raw.path.clone())
    };
    let objects = Objects::at(listed.iter().zip(&packed).map(path).collect(), options)?;
    let columns = Arc::new(columns);
    let (mut shards, mut starts) = (Vec::with_capacity(listed.len()), Starts::new());
    for (object, listed) in listed.iter().enumerate() {
        if objects.bytes(object) != listed.raw.bytes {
            let problem = format!("it has {} bytes, and `index.json` says {}", objects.bytes(object), listed.raw.bytes);
            return Err(DataError::damaged(objects.name(object), problem));
        }
        let shard = Shard::new(&objects, object, listed.rows, &columns)?;
        let too_many = || DataError::damaged(objects.name(object), "there are too many rows");
        starts.add(shard.rows()).ok_or_else(too_many)?;
        shards.push(shard);
    }
    Ok(MdsSource { objects, shards, starts, columns, cut, _unpacked: set })
}

/// What has to be decompressed of a shard: nothing if it is there as it is. A store has compressed shards alone.
fn packed(shard: &Listed) -> Option<Packed<'_>> {
    let (file, compression) =
        shard.zip.as_ref().filter(|_| url(&shard.raw.path).is_some() || !shard.raw.path.exists())?;
    Some(Packed { file, compression, raw: &shard.raw })
}

impl Source for MdsSource {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn read(&self, row: usize) -> Result<Record, DataError> {
        let (object, row) = self.starts.find(row);
        let range = self.shards[object].row(&self.objects, object, row)?;
        let bytes = self.objects.read(object, range)?;
        self.cut.read(bytes).map_err(|Wrong(column, problem)| DataError::Row {
            object: self.objects.name(object).into(),
            row,
            key: None,
            column: column.map(|column| (*column).into()),
            problem,
        })
    }

    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (object, row) = self.starts.find(row);
        part(object, self.shards[object].row(&self.objects, object, row)?);
        Ok(())
    }

    fn there_is(&self) -> Vec<(String, String)> {
        self.columns.there_is()
    }

    /// A block is a shard. Its rows are read one by one, so it takes no memory.
    fn blocks(&self) -> Blocks {
        Blocks::new(self.shards.iter().filter(|shard| shard.rows() > 0).map(|shard| (shard.rows(), 0)))
    }
}
