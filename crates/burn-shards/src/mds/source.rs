//! A data set of MDS shards.

#[cfg(feature = "mds")]
use super::unpack::unpack;
use super::{
    index_json::{self, ListedShard},
    row::RowReader,
    shard::MdsShard,
};
#[cfg(feature = "mds")]
use crate::store::cache::CacheSet;
#[cfg(not(feature = "mds"))]
use crate::store::url::shown;
use crate::{
    error::DataError,
    source::{
        Selection, Source, blocks::Blocks, cell::Record, index::look, location::Paths, magic::tell, starts::Starts,
    },
    store::{Objects, options::Options, url::url},
};
#[cfg(feature = "remote")]
use std::ops::Range;
#[cfg(not(feature = "mds"))]
use std::path::PathBuf;
use std::sync::Arc;

/// The rows of MDS shards.
#[derive(Debug, Clone)]
pub(crate) struct MdsSource {
    objects: Objects,
    shards: Arc<[MdsShard]>,
    starts: Starts,
    /// For each shard, the index of its reader in `readers`.
    reader: Vec<usize>,
    /// One for each distinct list of columns.
    readers: Vec<RowReader>,
    /// Keeps decompressed shards from being evicted.
    #[cfg(feature = "mds")]
    _unpacked: Arc<Option<CacheSet>>,
}

/// Opens the data set of a folder that has an `index.json`, or of several such folders, one after the other.
///
/// Compressed shards are decompressed first. The columns of uncompressed images (`pil`) have structs of `width`, `height`,
/// `mode` and `data`.
///
/// # Errors
/// If a file is missing, corrupt or not of the size in `index.json`; if a wanted column cannot be read or has different encodings in two
/// shards; or if there is no space for decompressed shards.
pub(crate) fn open(paths: &Paths, wanted: &Selection, options: &Options) -> Result<MdsSource, DataError> {
    let files = paths.in_folders("index.json", options)?;
    let mut listed = index_json::read(&files, options)?;
    let (reader, readers) = readers(&listed, wanted)?;
    // The list of compressed shards is made only once, because another process may decompress a shard meanwhile.
    let packed: Vec<&mut ListedShard> = listed.iter_mut().filter(|shard| is_packed(shard)).collect();
    #[cfg(feature = "mds")]
    let (unpacked, set) = unpack(packed.iter().map(|shard| &**shard), options)?;
    #[cfg(not(feature = "mds"))]
    let unpacked = refuse(packed.iter().map(|shard| &**shard))?;
    packed.into_iter().zip(unpacked).for_each(|(shard, path)| shard.raw.path = path);
    let objects = Objects::at(listed.iter().map(|shard| shard.raw.path.clone()).collect(), options)?;
    let (mut shards, mut starts) = (Vec::with_capacity(listed.len()), Starts::new());
    for (object, listed) in listed.iter().enumerate() {
        if objects.bytes(object) != listed.raw.bytes {
            let problem = format!("it has {} bytes, and `index.json` says {}", objects.bytes(object), listed.raw.bytes);
            return Err(tell(&objects, object, None, DataError::damaged(objects.name(object), problem)));
        }
        let shard = MdsShard::new(&objects, object, listed.rows, &listed.columns)?;
        starts.add(shard.rows(), objects.name(object))?;
        shards.push(shard);
    }
    Ok(MdsSource {
        objects,
        shards: shards.into(),
        starts,
        reader,
        readers,
        #[cfg(feature = "mds")]
        _unpacked: Arc::new(set),
    })
}

/// The readers of rows, and which reader each shard uses. A column must have one encoding in all shards that have it.
fn readers(listed: &[ListedShard], wanted: &Selection) -> Result<(Vec<usize>, Vec<RowReader>), DataError> {
    let (mut place, mut readers) = (Vec::with_capacity(listed.len()), Vec::<RowReader>::new());
    for (number, ListedShard { columns, index, .. }) in listed.iter().enumerate() {
        let known = readers.iter().position(|known| Arc::ptr_eq(&known.columns, columns) || known.columns == *columns);
        place.push(known.unwrap_or(readers.len()));
        if known.is_some() {
            continue;
        }
        let reader = RowReader::new(index, columns, wanted)?;
        if let Some(column) = readers.iter().find_map(|known| reader.differs(known)) {
            let problem = format!("shard {number} has column `{column}` in another encoding than shards before it");
            return Err(DataError::Schema { object: (**index).into(), problem, there_is: columns.there_is() });
        }
        readers.push(reader);
    }
    Ok((place, readers))
}

/// Whether a shard must be decompressed, because the plain shard does not exist. On a remote store only the compressed file is used.
fn is_packed(shard: &ListedShard) -> bool {
    shard.zip.is_some() && (url(&shard.raw.path).is_some() || !shard.raw.path.exists())
}

/// Refuses compressed shards.
#[cfg(not(feature = "mds"))]
fn refuse<'a>(mut shards: impl Iterator<Item = &'a ListedShard>) -> Result<Vec<PathBuf>, DataError> {
    let Some(shard) = shards.next() else { return Ok(Vec::new()) };
    let problem = format!("`{}` is compressed, and this build reads plain shards only", shown(&shard.raw.path));
    Err(DataError::option("paths", problem, "enable the feature `mds`"))
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
        let bytes = self.objects.samples(object, range, 1)?;
        self.readers[self.reader[object]].read(bytes).map_err(|(column, problem)| DataError::Row {
            object: self.objects.name(object).into(),
            row,
            key: None,
            column,
            problem,
        })
    }

    fn select(&self, wanted: &Selection, _: &Selection, _: &[&str]) -> Result<Arc<dyn Source>, DataError> {
        let reader = |(number, known): (usize, &RowReader)| {
            let shard = self.reader.iter().position(|reader| *reader == number).unwrap_or_default();
            RowReader::new(self.objects.name(shard), &known.columns, wanted)
        };
        let readers = self.readers.iter().enumerate().map(reader).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { objects: self.objects.without_ahead(), readers, ..self.clone() }))
    }

    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (object, row) = self.starts.find(row);
        part(object, self.shards[object].row(&self.objects, object, row)?);
        Ok(())
    }

    /// Reads the table of each shard, to check that the file is the shard in `index.json`.
    fn check(&self) -> Result<(), DataError> {
        let with_rows: Vec<usize> = (0..self.shards.len()).filter(|object| self.shards[*object].rows() > 0).collect();
        look(&self.objects, &with_rows, |object| self.shards[*object].row(&self.objects, *object, 0)).map(drop)
    }

    fn samples(&self) -> Vec<(usize, Record)> {
        self.reader.iter().enumerate().map(|(object, reader)| (object, self.readers[*reader].sample())).collect()
    }

    fn there_is(&self) -> Vec<(String, String)> {
        let mut there_is: Vec<(String, String)> = Vec::new();
        for column in self.readers.iter().flat_map(|reader| reader.columns.there_is()) {
            if there_is.iter().all(|(name, _)| *name != column.0) {
                there_is.push(column);
            }
        }
        there_is
    }

    /// A block is a shard. Its rows are read one by one, so it takes no memory.
    fn blocks(&self) -> Result<Blocks, DataError> {
        Ok(Blocks::of_rows(self.shards.iter().map(MdsShard::rows).filter(|rows| *rows > 0)))
    }
}
