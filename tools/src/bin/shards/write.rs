//! From a folder of images to shards.

use super::{index::indices, write_tar::TarShard};
use burn::data::dataset::Dataset;
use burn_pinned::{BoxError, vision::ImageFolder};
use burn_pinned_tools::{
    format::Format,
    open::Open,
    row::Row,
    size::{self, several, show_bytes, time},
};
use bytes::Bytes;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use rand::{SeedableRng, rngs::ChaCha8Rng, seq::SliceRandom};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Instant,
};

/// Writes a folder of images as tar shards or as Parquet, with their index. The files' bytes are copied as they are
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A folder with one sub-folder of images for each class
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The folder for the shards: a new one, or an empty one
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    #[arg(long, value_enum)]
    format: Target,
    /// The most bytes of a shard, unless it is a single image. By default 64 MB (tar), 500 MB (Parquet)
    #[arg(long, value_parser = size::bytes)]
    shard_bytes: Option<u64>,
    /// Mix the images by this seed. Without it, they are sorted by class, which is bad where a shuffle is not a full one
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Target {
    Tar,
    Parquet,
}

/// An image to be written.
pub(crate) struct Sample {
    pub(crate) number: usize,
    /// The path below the folder, with `/`. Parquet has it.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code))]
    pub(crate) path: String,
    /// In lower case.
    pub(crate) extension: String,
    pub(crate) label: usize,
    pub(crate) bytes: Bytes,
}

/// A file that samples are added to.
pub(crate) trait Shard {
    fn add(&mut self, sample: &Sample) -> Result<(), BoxError>;

    /// How large the file would be if it ended now, about.
    fn bytes(&self) -> u64;

    /// Writes what is left, to the disk itself.
    fn end(self: Box<Self>) -> Result<(), BoxError>;
}

impl Args {
    fn shard_bytes(&self) -> u64 {
        self.shard_bytes.unwrap_or(if self.format == Target::Tar { 64_000_000 } else { 500_000_000 })
    }

    #[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "Parquet alone has the names of classes"))]
    fn new_shard(&self, path: &Path, classes: &[String]) -> Result<Box<dyn Shard>, BoxError> {
        let file = || File::create_new(path).map_err(|error| format!("cannot write {}: {error}", path.display()));
        Ok(match self.format {
            Target::Tar => Box::new(TarShard::new(file()?)),
            #[cfg(feature = "parquet")]
            Target::Parquet => Box::new(super::write_parquet::ParquetShard::new(file()?, classes)?),
            #[cfg(not(feature = "parquet"))]
            Target::Parquet => return Err("Parquet needs a build with the feature `parquet`".into()),
        })
    }

    /// Until all of them are written, shards have names that no glob for shards matches.
    fn partial(&self, shard: usize) -> PathBuf {
        self.out.join(format!("{}.partial", self.name(shard)))
    }

    fn name(&self, shard: usize) -> String {
        let ending = if self.format == Target::Tar { "tar" } else { "parquet" };
        format!("shard-{shard:05}.{ending}")
    }

    /// Writes all images, and returns the number of shards and of bytes.
    fn write(&self, folder: &ImageFolder) -> Result<(usize, u64), BoxError> {
        let mut order: Vec<usize> = (0..folder.len()).collect();
        if let Some(seed) = self.shuffle {
            order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        }
        let labels = folder.labels();
        let bar = ProgressBar::new(order.len() as u64);
        bar.set_style(ProgressStyle::with_template("writing {bar:40} {pos} of {len} images, {per_sec}, {eta} left")?);
        let (mut shard, mut shards, mut all): (Option<Box<dyn Shard>>, _, _) = (None, 0, 0);
        for (number, index) in order.into_iter().enumerate() {
            let sample = sample(folder, index, number, labels[index])?;
            all += sample.bytes.len() as u64;
            if let Some(full) = shard.take_if(|shard| shard.bytes() + sample.bytes.len() as u64 > self.shard_bytes()) {
                full.end()?;
            }
            let shard = match &mut shard {
                Some(shard) => shard,
                none => {
                    shards += 1;
                    none.insert(self.new_shard(&self.partial(shards - 1), folder.classes())?)
                }
            };
            shard.add(&sample)?;
            bar.inc(1);
        }
        shard.map_or(Ok(()), |last| last.end())?;
        bar.finish_and_clear();
        for shard in 0..shards {
            fs::rename(self.partial(shard), self.out.join(self.name(shard)))?;
        }
        Ok((shards, all))
    }
}

fn sample(folder: &ImageFolder, index: usize, number: usize, label: usize) -> Result<Sample, BoxError> {
    let path = folder.path(index);
    let bytes = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let path = format!("{}/{name}", folder.classes()[label]);
    Ok(Sample { number, path, extension, label, bytes: bytes.into() })
}

/// Makes a new folder, or takes an empty one.
fn empty(folder: &Path) -> Result<(), BoxError> {
    let of = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(of)?;
    match fs::read_dir(folder).map_err(of)?.next() {
        Some(_) => Err(format!("{} is not empty: name a new folder with --out", folder.display()).into()),
        None => Ok(()),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), BoxError> {
    let started = Instant::now();
    let folder = ImageFolder::open(&args.data)?;
    empty(&args.out)?;
    let (shards, bytes) = args.write(&folder)?;
    let format = if args.format == Target::Tar { Format::Tar } else { Format::Parquet };
    let paths = (0..shards).map(|shard| args.out.join(args.name(shard))).collect();
    Open::of(paths, format).rows::<Row>(&[], &[])?.index()?;
    let index: u64 = indices(&args.out).iter().map(|index| index.bytes).sum();
    let index = if index > 0 { format!(" with an index of {}", show_bytes(index)) } else { String::new() };
    println!(
        "{} of {}, {}, in {}{index}: {}",
        several(folder.len(), "image"),
        several(folder.classes().len(), "class").replace("classs", "classes"),
        show_bytes(bytes),
        several(shards, "shard"),
        args.out.display()
    );
    println!("it took {}", time(started.elapsed()));
    Ok(())
}
