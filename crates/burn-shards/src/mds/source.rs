//! A data set of MDS shards.

#[cfg(feature = "mds")]
use super::unpack::unpack;
use super::{
    index_json::{self, ListedShard},
    row::{ColumnError, Cut},
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
#[derive(Debug)]
pub(crate) struct MdsSource {
    objects: Objects,
    shards: Arc<[MdsShard]>,
    starts: Starts,
    /// For each shard the place in `cuts` of what is read of its rows.
    cut: Vec<usize>,
    /// One for each list of columns that shards have.
    cuts: Vec<Cut>,
    /// Keeps decompressed shards from being evicted.
    #[cfg(feature = "mds")]
    unpacked: Arc<Option<CacheSet>>,
}

/// Opens the data set of a folder that has an `index.json`, or of several such folders, one after the other.
///
/// Compressed shards are decompressed first. The columns of uncompressed images (`pil`) have structs of `width`, `height`,
/// `mode` and `data`.
///
/// # Errors
/// If a file is missing, damaged or of another size than `index.json` says, if a wanted column cannot be read or has another
/// encoding than in a shard before, or if there is no room for decompressed shards.
pub(crate) fn open(paths: &Paths, wanted: &Selection, options: &Options) -> Result<MdsSource, DataError> {
    let files = paths.in_folders("index.json", options)?;
    let listed = index_json::read(&files, options)?;
    let (cut, cuts) = cuts(&listed, wanted)?;
    // The list of packed shards is made once, because another process may decompress a shard meanwhile.
    let packed: Vec<bool> = listed.iter().map(is_packed).collect();
    let to_unpack = listed.iter().zip(&packed).filter(|(_, is_packed)| **is_packed).map(|(shard, _)| shard);
    #[cfg(feature = "mds")]
    let (unpacked, set) = unpack(to_unpack, options)?;
    #[cfg(not(feature = "mds"))]
    let unpacked = refuse(to_unpack)?;
    let mut unpacked = unpacked.into_iter();
    let path = |(shard, is_packed): (&ListedShard, &bool)| {
        let unpacked = if *is_packed { unpacked.next() } else { None };
        unpacked.unwrap_or_else(|| shard.raw.path.clone())
    };
    let objects = Objects::at(listed.iter().zip(&packed).map(path).collect(), options)?;
    let (mut shards, mut starts) = (Vec::with_capacity(listed.len()), Starts::new());
    for (object, listed) in listed.iter().enumerate() {
        if objects.bytes(object) != listed.raw.bytes {
            let problem = format!("it has {} bytes, and `index.json` says {}", objects.bytes(object), listed.raw.bytes);
            return Err(tell(&objects, object, None, DataError::damaged(objects.name(object), problem)));
        }
        let shard = MdsShard::new(&objects, object, listed.rows, &listed.columns)?;
        let too_many = || DataError::damaged(objects.name(object), "there are too many rows");
        starts.add(shard.rows()).ok_or_else(too_many)?;
        shards.push(shard);
    }
    Ok(MdsSource {
        objects,
        shards: shards.into(),
        starts,
        cut,
        cuts,
        #[cfg(feature = "mds")]
        unpacked: Arc::new(set),
    })
}

/// What is read of the rows of shards, and which of it is for which shard. A column must have one encoding in all
/// shards that have it.
fn cuts(listed: &[ListedShard], wanted: &Selection) -> Result<(Vec<usize>, Vec<Cut>), DataError> {
    let (mut place, mut cuts) = (Vec::with_capacity(listed.len()), Vec::<Cut>::new());
    for (number, ListedShard { columns, index, .. }) in listed.iter().enumerate() {
        let known = cuts.iter().position(|known| Arc::ptr_eq(&known.columns, columns) || known.columns == *columns);
        place.push(known.unwrap_or(cuts.len()));
        if known.is_some() {
            continue;
        }
        let cut = Cut::new(index, columns, wanted)?;
        if let Some(column) = cuts.iter().find_map(|known| cut.differs(known)) {
            let problem = format!("shard {number} has column `{column}` in another encoding than shards before it");
            return Err(DataError::Schema { object: (**index).into(), problem, there_is: columns.there_is() });
        }
        cuts.push(cut);
    }
    Ok((place, cuts))
}

/// Whether a shard has to be decompressed: the plain shard is not there. Behind a network only the compressed file is used.
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
        self.cuts[self.cut[object]].read(bytes).map_err(|ColumnError(column, problem)| DataError::Row {
            object: self.objects.name(object).into(),
            row,
            key: None,
            column: column.map(|column| (*column).into()),
            problem,
        })
    }

    fn select(&self, wanted: &Selection, _: &Selection, _: &[&str]) -> Result<Arc<dyn Source>, DataError> {
        let cut = |(number, known): (usize, &Cut)| {
            let shard = self.cut.iter().position(|cut| *cut == number).unwrap_or_default();
            Cut::new(self.objects.name(shard), &known.columns, wanted)
        };
        Ok(Arc::new(Self {
            objects: self.objects.without_ahead(),
            shards: Arc::clone(&self.shards),
            starts: self.starts.clone(),
            cut: self.cut.clone(),
            cuts: self.cuts.iter().enumerate().map(cut).collect::<Result<_, _>>()?,
            #[cfg(feature = "mds")]
            unpacked: Arc::clone(&self.unpacked),
        }))
    }

    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (object, row) = self.starts.find(row);
        part(object, self.shards[object].row(&self.objects, object, row)?);
        Ok(())
    }

    /// Reads the table of each shard. It shows whether the file is the shard that `index.json` names.
    fn check(&self) -> Result<(), DataError> {
        let with_rows: Vec<usize> = (0..self.shards.len()).filter(|object| self.shards[*object].rows() > 0).collect();
        look(&self.objects, &with_rows, |object| self.shards[*object].row(&self.objects, *object, 0)).map(drop)
    }

    fn samples(&self) -> Vec<(usize, Record)> {
        self.cut.iter().enumerate().map(|(object, cut)| (object, self.cuts[*cut].sample())).collect()
    }

    fn there_is(&self) -> Vec<(String, String)> {
        let mut there_is: Vec<(String, String)> = Vec::new();
        for column in self.cuts.iter().flat_map(|cut| cut.columns.there_is()) {
            if there_is.iter().all(|(name, _)| *name != column.0) {
                there_is.push(column);
            }
        }
        there_is
    }

    /// A block is a shard. Its rows are read one by one, so it takes no memory.
    fn blocks(&self) -> Blocks {
        Blocks::of_rows(self.shards.iter().map(MdsShard::rows).filter(|rows| *rows > 0))
    }
}
