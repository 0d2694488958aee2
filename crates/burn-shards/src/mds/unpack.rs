//! Decompresses shards, once. Several processes may do it at the same time.

use super::index_json::{ListedShard, SizedFile};
use crate::{
    error::DataError,
    source::magic::{BZIP2, GZIP, Magic, ZSTD, tell},
    store::{
        Object, Objects,
        cache::{CacheSet, SMALL_FILES, Shards, id, unusable, whole_blocks},
        options::Options,
        url::{shown, url},
    },
    system::{parallel::in_parallel, progress::Progress},
};
use std::{
    cell::RefCell,
    fs,
    io::{self, BufReader, Cursor, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// A process that holds a shard and writes no byte for this time counts as stopped. Some shards are decompressed completely before a byte
/// is written.
const PATIENCE: Duration = Duration::from_secs(300);

/// A shard that exists only in compressed form.
#[derive(Debug)]
struct PackedShard<'a> {
    file: &'a SizedFile,
    /// The name of the compression, often with a colon and a level.
    compression: &'a str,
    raw: &'a SizedFile,
}

/// How a shard is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Brotli,
    Bzip2,
    Gzip,
    Snappy,
    Zstd,
}

impl Codec {
    /// The magic bytes, if the codec has any.
    fn magic(self) -> Option<&'static Magic> {
        match self {
            Self::Bzip2 => Some(&BZIP2),
            Self::Gzip => Some(&GZIP),
            Self::Zstd => Some(&ZSTD),
            Self::Brotli | Self::Snappy => None,
        }
    }
}

/// Returns the decompressed files, and the set that protects them from eviction. Missing files are made.
pub(super) fn unpack<'a>(
    shards: impl Iterator<Item = &'a ListedShard>,
    options: &Options,
) -> Result<(Vec<PathBuf>, Option<CacheSet>), DataError> {
    let packed = |shard: &'a ListedShard| {
        let (file, compression) = shard.zip.as_ref()?;
        Some(PackedShard { file, compression, raw: &shard.raw })
    };
    let shards: Vec<PackedShard> = shards.filter_map(packed).collect();
    let Some(first) = shards.first() else { return Ok((Vec::new(), None)) };
    let bytes = shards.iter().fold(SMALL_FILES, |bytes, shard| bytes.saturating_add(whole_blocks(shard.raw.bytes)));
    let ((folder, limit), codecs) = (limit(options, first, bytes)?, codecs(&shards)?);
    let sources = Objects::at(shards.iter().map(|shard| shard.file.path.clone()).collect(), &options.for_once())?;
    for (number, (shard, source)) in shards.iter().zip(sources.list()).enumerate() {
        if source.bytes != shard.file.bytes {
            let problem = format!("it has {} bytes, and `index.json` says {}", source.bytes, shard.file.bytes);
            return Err(tell(&sources, number, codecs[number].magic(), DataError::damaged(&source.name, problem)));
        }
    }
    let unusable = |error| unusable(folder, &error);
    let set = CacheSet::open(folder, limit, &id("shards", &named(&shards, &sources)), bytes, true).map_err(unusable)?;
    let kept = Shards::open(&set, PATIENCE).map_err(unusable)?;
    let all: Vec<usize> = (0..shards.len()).collect();
    let there = in_parallel(&all, |n| Ok(kept.find(*n, shards[*n].raw.bytes)))?;
    let missing: Vec<usize> = all.into_iter().filter(|n| there[*n].is_none()).collect();
    let progress =
        Progress::new("decompressing", missing.iter().fold(0, |all: u64, n| all.saturating_add(shards[*n].file.bytes)));
    let _shown = options.busy.shown_in(&progress);
    let one = |n: &usize| unpack_one(&shards[*n], codecs[*n], (&sources, *n), &kept, &progress);
    let mut made = in_parallel(&missing, one)?.into_iter();
    let files = there.into_iter().filter_map(|file| file.or_else(|| made.next())).collect();
    kept.are_good().map_err(unusable)?;
    Ok((files, Some(set)))
}

/// The folder and its limit, if `bytes` bytes fit into the limit.
fn limit<'a>(options: &'a Options, first: &PackedShard, bytes: u64) -> Result<(&'a Path, u64), DataError> {
    let (problem, folder) = match &options.cache {
        Some((folder, limit)) if bytes <= *limit => return Ok((folder, *limit)),
        Some((folder, limit)) => (
            format!("the decompressed shards take {bytes} bytes, and the limit is {limit}"),
            folder.display().to_string(),
        ),
        None => {
            let shard = shown(&first.file.path);
            (format!("{shard} is compressed, and nothing says where to keep decompressed shards"), "a folder".into())
        }
    };
    Err(DataError::Option { option: "cache", problem, advice: format!("write `.cache(\"{folder}\", {bytes})`") })
}

/// The shards with names that change if a compressed shard changes or is replaced.
fn named(shards: &[PackedShard], sources: &Objects) -> Vec<Object> {
    let object = |(shard, source): (&PackedShard, &Object)| {
        // Only the signature of a URL, which changes each day, is not part of the name and the tag.
        let place = match url(&shard.file.path) {
            Some(_) => source.name.to_string(),
            None => {
                let path = fs::canonicalize(&shard.file.path).unwrap_or_else(|_| shard.file.path.clone());
                format!("{} {}", path.display(), marks(&path))
            }
        };
        let name = format!("{place} {} {}", shard.compression, shard.raw.bytes);
        Object { name: name.into(), ..source.clone() }
    };
    shards.iter().zip(sources.list()).map(object).collect()
}

/// Marks that distinguish a file from a replacement with the same size and time.
#[cfg(unix)]
fn marks(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let marks = |meta: fs::Metadata| format!("{} {} {}", meta.ino(), meta.ctime(), meta.ctime_nsec());
    fs::metadata(path).map_or_else(|_| String::new(), marks)
}

/// On this system only the size and the time distinguish files.
#[cfg(not(unix))]
fn marks(_: &Path) -> &'static str {
    ""
}

fn codecs(shards: &[PackedShard]) -> Result<Vec<Codec>, DataError> {
    let codec = |shard: &PackedShard| match shard.compression.split(':').next() {
        Some("br") => Ok(Codec::Brotli),
        Some("bz2") => Ok(Codec::Bzip2),
        Some("gz") => Ok(Codec::Gzip),
        Some("snappy") => Ok(Codec::Snappy),
        Some("zstd") => Ok(Codec::Zstd),
        _ => {
            let what = format!("the compression `{}`", shard.compression);
            Err(DataError::unsupported(&shown(&shard.file.path), None, what))
        }
    };
    shards.iter().map(codec).collect()
}

fn unpack_one(
    shard: &PackedShard,
    codec: Codec,
    (sources, number): (&Objects, usize),
    kept: &Shards,
    progress: &Progress,
) -> Result<PathBuf, DataError> {
    let (file, name) = (sources.whole(number)?, sources.name(number));
    let stem = shard.raw.path.file_stem().unwrap_or_default().to_string_lossy();
    let no_room = |error: io::Error| no_room(&kept.folder, shard.raw.bytes, &error);
    kept.write((number, &stem), no_room, |to, mut sum| {
        let broken = RefCell::new(None);
        let damaged = |problem: String| match broken.take() {
            Some(source) => DataError::Read { object: name.into(), key: None, range: 0..shard.file.bytes, source },
            None => DataError::damaged(name, problem),
        };
        let file = CountedReader { file, progress, broken: &broken };
        let mut from = reader(codec, file, shard).map_err(|error| damaged(error.to_string()))?;
        let (mut piece, mut left) = (vec![0; 1 << 18], shard.raw.bytes);
        loop {
            let bytes = match from.read(&mut piece) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(damaged(error.to_string())),
            };
            let size = || format!("it does not decompress to the {} bytes of `index.json`", shard.raw.bytes);
            match left.checked_sub(bytes as u64) {
                // A shard that is noted as done must be on the disk even after a power failure.
                Some(0) if bytes == 0 => return to.sync_data().map(|()| sum.finalize()).map_err(no_room),
                Some(after) if bytes > 0 => left = after,
                _ => return Err(damaged(size())),
            }
            let some = piece.get(..bytes).unwrap_or_default();
            sum.update(some);
            to.write_all(some).map_err(no_room)?;
        }
    })
}

/// Returns a reader of the decompressed bytes. All codecs but Snappy decompress in pieces.
fn reader<'a>(codec: Codec, file: CountedReader<'a>, shard: &PackedShard) -> io::Result<Box<dyn Read + 'a>> {
    let file = BufReader::with_capacity(1 << 16, file);
    Ok(match codec {
        Codec::Brotli => Box::new(brotli::Decompressor::new(file, 1 << 16)),
        Codec::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        Codec::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        Codec::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        Codec::Snappy => Box::new(Cursor::new(snappy(file, shard)?)),
    })
}

/// The highest compression ratio of Snappy: three bytes stand for at most 64.
const SNAPPY_GROWTH: u64 = 22;

/// Snappy's raw format, without frames, which must be decompressed at once.
fn snappy(file: impl Read, shard: &PackedShard) -> io::Result<Vec<u8>> {
    // Incompressible data become longer in Snappy, by at most a sixth.
    let most = shard.raw.bytes.saturating_add(shard.raw.bytes / 6).saturating_add(32);
    if shard.file.bytes > most {
        let problem = format!("{} bytes are more than Snappy makes of {}", shard.file.bytes, shard.raw.bytes);
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    let mut packed = Vec::new();
    file.take(shard.file.bytes).read_to_end(&mut packed)?;
    let bytes = snap::raw::decompress_len(&packed)? as u64;
    if bytes != shard.raw.bytes || bytes / SNAPPY_GROWTH > packed.len() as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{bytes} bytes cannot be in it")));
    }
    Ok(snap::raw::Decoder::new().decompress_vec(&packed)?)
}

fn no_room(path: &Path, bytes: u64, error: &io::Error) -> DataError {
    let problem = format!("a shard cannot be written into {}: {error}", path.display());
    DataError::Option { option: "cache", problem, advice: format!("name a folder that has room for {bytes} bytes") }
}

/// Adds the bytes that were read to the progress bar. It keeps the error of a failed read, so that the compressed data are not reported as
/// corrupt.
struct CountedReader<'a> {
    file: Box<dyn Read + Send + 'a>,
    progress: &'a Progress,
    broken: &'a RefCell<Option<io::Error>>,
}

impl Read for CountedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.file.read(into) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                *self.broken.borrow_mut() = Some(error);
                Err(io::Error::other("it cannot be read"))
            }
            read => read.inspect(|bytes| self.progress.add(*bytes as u64)),
        }
    }
}
