//! Few descriptors: data sets of many files share those that the process may have, and no sample is lost for want of them.
//!
//! How many there may be belongs to the process, so each test has one of its own.

use crate::{
    apart::apart,
    formats::{Format, Row, bytes as bytes_of, sum},
    golden::golden,
    sums::Sums,
};
use burn::{
    data::dataset::{Dataset, DatasetError},
    tensor::Device,
};
use burn_pinned::{
    BadSamples, Error, PinnedDataLoader, PinnedDataLoaderBuilder, data::Rows, fault::Quota, vision::ImageFolder,
};
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs::{self, File},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

const FORMATS: [Format; 4] = [Format::Tar, Format::Mds, Format::Jsonl, Format::Direct];
/// Rows of the file of numbers that is copied for each shard of Parquet.
const COPIED: usize = 120;

/// Writes shards of one row each; for Parquet, copies of a file. Returns the data set, and the label of each row.
fn many(format: Format, folder: &Path, shards: usize) -> (Rows<Row>, Vec<usize>) {
    if format != Format::Direct {
        return (format.write(folder, shards, shards).open().unwrap(), (0..shards).collect());
    }
    for part in 0..shards {
        fs::copy(golden("numbers/direct-0.parquet"), folder.join(format!("{part:03}.parquet"))).unwrap();
    }
    let rows = Rows::parquet(folder.join("*.parquet")).open().unwrap();
    (rows, (0..shards * COPIED).map(|row| row % COPIED).collect())
}

/// Sets how many files this process may have open.
fn allow(files: u64) {
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), ..getrlimit(Resource::Nofile) }).unwrap();
}

/// A loader that skips as many bad samples as there are.
fn skipping<D: Dataset<Row> + 'static>(rows: D, workers: usize) -> Arc<PinnedDataLoader<Vec<(i64, i64)>>> {
    let builder = PinnedDataLoaderBuilder::new(Sums).batch_size(8).num_workers(workers).set_device(Device::flex());
    builder.bad_samples(BadSamples::Skip(Quota::Share(1.0))).build(rows).unwrap()
}

fn expected(labels: &[usize]) -> Vec<(i64, i64)> {
    labels.iter().map(|label| (*label as i64, sum(&bytes_of(*label)))).collect()
}

#[test]
fn data_sets_of_many_shards_share_64_descriptors() {
    apart("descriptors::of_64", &[]);
}

/// Four data sets of 300 shards each are read in turn, while the program has files of its own. They were opened before the
/// limit came, and after it.
#[test]
#[ignore = "run by the test above"]
fn of_64() {
    for limit in [4096, 64] {
        allow(limit);
        let folders = FORMATS.map(|_| tempfile::tempdir().unwrap());
        let sets: Vec<_> =
            FORMATS.iter().zip(&folders).map(|(format, folder)| many(*format, folder.path(), 300)).collect();
        let _own: Vec<File> = (0..12).map(|_| File::open("/dev/null").unwrap()).collect();
        allow(64);
        let loaders: Vec<_> = sets.iter().map(|(rows, _)| skipping(rows.clone(), 3)).collect();
        let mut epochs: Vec<_> = loaders.iter().map(|loader| (loader.iter(), Vec::new())).collect();
        let mut running = epochs.len();
        while running > 0 {
            running = 0;
            for (batches, got) in &mut epochs {
                let Some(batch) = batches.next() else { continue };
                got.extend(batch.unwrap_or_else(|error| panic!("{error}")));
                running += 1;
            }
        }
        for ((format, (_, labels)), (_, got)) in FORMATS.iter().zip(&sets).zip(&epochs) {
            assert!(*got == expected(labels), "{format:?}: {} rows of {}", got.len(), labels.len());
        }
    }
}

#[test]
fn data_sets_of_400_shards_open_with_256_descriptors() {
    apart("descriptors::of_256", &[]);
}

#[test]
#[ignore = "run by the test above"]
fn of_256() {
    allow(256);
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let (rows, labels) = many(format, folder.path(), 400);
        let got: Vec<_> = rows_of(&rows).collect();
        assert_eq!(got, expected(&labels), "{format:?}");
    }
}

fn rows_of(rows: &Rows<Row>) -> impl Iterator<Item = (i64, i64)> {
    (0..rows.len()).map(|at| rows.get(at).map(|row| (row.label, sum(&row.bytes))).unwrap())
}

#[test]
fn shards_and_images_live_on_the_files_of_the_pool() {
    apart("descriptors::none_left", &[]);
}

/// The program takes all descriptors but those of shards that are open. Then shards and images are read by those.
#[test]
#[ignore = "run by the test above"]
fn none_left() {
    let (folder, pictures) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    allow(64);
    let (rows, labels) = many(Format::Tar, folder.path(), 240);
    let images = Pictures::write(pictures.path());
    assert_eq!(rows_of(&rows).count(), 240);
    let rest = || std::iter::from_fn(|| File::open("/dev/null").ok()).collect::<Vec<_>>();
    let mut own = rest();
    assert!(!own.is_empty());
    for at in 0..images.len() {
        let row = images.get(at).unwrap_or_else(|error| panic!("image {at}: {error}"));
        assert_eq!((row.label, row.bytes), Pictures::row(at));
    }
    own.extend(rest());
    let again = Rows::<Row>::tar(folder.path().join("*.tar")).open().unwrap();
    assert_eq!(again.len(), 240);
    own.extend(rest());
    assert_eq!(ImageFolder::open(pictures.path()).unwrap().len(), 80);
    own.extend(rest());
    let got: Vec<_> = skipping(rows, 4).iter().flat_map(Result::unwrap).collect();
    assert_eq!(got, expected(&labels));
}

/// An image folder as rows: the label, and the first pixel.
struct Pictures(ImageFolder);

impl Pictures {
    /// Writes two classes of 40 images each.
    fn write(folder: &Path) -> Self {
        for class in ["a", "b"] {
            fs::create_dir(folder.join(class)).unwrap();
            for nth in 0..40 {
                let image = image::RgbImage::from_pixel(4, 4, image::Rgb([nth, 2, 3]));
                image.save(folder.join(class).join(format!("{nth:02}.png"))).unwrap();
            }
        }
        Self(ImageFolder::open(folder).unwrap())
    }

    fn row(at: usize) -> (i64, Bytes) {
        (at as i64 / 40, vec![at as u8 % 40, 2, 3].into())
    }
}

impl Dataset<Row> for Pictures {
    fn get(&self, index: usize) -> Result<Row, DatasetError> {
        let (image, label) = self.0.get(index)?;
        let pixels = image.to_rgb().map_err(DatasetError::new)?;
        Ok(Row { label: label as i64, bytes: pixels[(0, 0)].0.to_vec().into() })
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Rows, of which the first read of one meets a process that may open no file at all.
struct Starved {
    rows: Arc<dyn Dataset<Row>>,
    at: usize,
    is_over: AtomicBool,
}

impl Dataset<Row> for Starved {
    fn get(&self, index: usize) -> Result<Row, DatasetError> {
        let starves = index == self.at && !self.is_over.swap(true, Relaxed);
        let before = getrlimit(Resource::Nofile);
        if starves {
            allow(0);
        }
        let row = self.rows.get(index);
        setrlimit(Resource::Nofile, before).unwrap();
        row
    }

    fn len(&self) -> usize {
        self.rows.len()
    }
}

#[test]
fn a_lack_of_descriptors_is_an_error_of_its_batch() {
    apart("descriptors::starved", &[]);
}

#[test]
#[ignore = "run by the test above"]
fn starved() {
    allow(64);
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let (rows, labels) = many(format, folder.path(), 200);
        // The first row of the third shard from the end.
        let at = rows.len() - 3 * rows.len() / 200;
        is_an_error(&format!("{format:?}"), Arc::new(rows), at, &expected(&labels));
    }
    let folder = tempfile::tempdir().unwrap();
    let pictures = Pictures::write(folder.path());
    let rows: Vec<_> = (0..80).map(Pictures::row).map(|(label, bytes)| (label, sum(&bytes))).collect();
    is_an_error("images", Arc::new(pictures), 50, &rows);
}

/// Checks that the batch of a row that meets no descriptors is an error, and that the other ones are whole.
fn is_an_error(name: &str, rows: Arc<dyn Dataset<Row>>, at: usize, expected: &[(i64, i64)]) {
    let loader = skipping(Starved { rows, at, is_over: AtomicBool::new(false) }, 1);
    let batches: Vec<_> = loader.iter().collect();
    assert_eq!(batches.len(), expected.len() / 8, "{name}");
    for (n, (batch, rows)) in batches.iter().zip(expected.chunks(8)).enumerate() {
        match batch {
            Ok(got) => assert!(n != at / 8 && got == rows, "{name}, batch {n}"),
            Err(error) => {
                let error = Error::of(error).unwrap();
                assert_eq!((n, error.place().unwrap().index), (at / 8, Some(at)), "{name}: {error}");
                assert!(error.to_string().contains("(os error 24)"), "{name}: {error}");
            }
        }
    }
    assert_eq!(loader.stats().skipped, 0);
    assert_eq!(loader.iter().flat_map(Result::unwrap).collect::<Vec<_>>(), expected, "{name}: the next epoch has all");
}

#[test]
fn a_shard_that_was_replaced_is_told_when_it_is_opened_again() {
    apart("descriptors::replaced", &[]);
}

/// The other shard has the same size and the same time.
#[test]
#[ignore = "run by the test above"]
fn replaced() {
    allow(64);
    let folder = tempfile::tempdir().unwrap();
    let (rows, labels) = many(Format::Tar, folder.path(), 200);
    assert_eq!(rows_of(&rows).collect::<Vec<_>>(), expected(&labels));
    let [first, second, new] = ["0.tar", "1.tar", "new"].map(|name| folder.path().join(name));
    let old = fs::metadata(&first).unwrap();
    fs::copy(second, &new).unwrap();
    File::options().write(true).open(&new).unwrap().set_modified(old.modified().unwrap()).unwrap();
    assert_eq!(fs::metadata(&new).unwrap().len(), old.len());
    fs::rename(new, &first).unwrap();
    let error = rows.get(0).unwrap_err().to_string();
    assert!(error.contains("0.tar has changed"), "{error}");
    assert_eq!(rows.get(1).unwrap().label, 1);
}
