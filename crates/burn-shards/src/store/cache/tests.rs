//! The cache over a store that counts what it is asked for.

mod damage;
mod full;
mod planted;
mod processes;
mod shared;
mod speed;
mod waits;

use super::{PageCache, pages::PAGE, unusable};
use crate::{
    error::DataError,
    store::{Object, Store, traffic::Traffic},
    system::locks::Mutex,
};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng, seq::SliceRandom};
use std::{
    fs,
    io::{self, Cursor, Read},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

/// Objects in memory, and all requests.
#[derive(derive_more::Debug, Default)]
#[debug("Fake")]
struct Fake {
    objects: Vec<Vec<u8>>,
    asked: Mutex<Vec<(usize, Range<u64>)>>,
    /// How long each page takes.
    pause: Duration,
    /// Whether it refuses.
    is_gone: bool,
    /// After so many bytes an answer breaks off.
    most: Option<u64>,
}

impl Fake {
    /// Objects of these sizes. The same seed makes the same bytes.
    fn new(sizes: &[u64], seed: u64) -> Self {
        let mut state = seed;
        let mut object = |size: &u64| {
            let mut bytes = vec![0; *size as usize];
            for eight in bytes.chunks_mut(8) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                eight.copy_from_slice(&state.to_be_bytes()[..eight.len()]);
            }
            bytes
        };
        Self { objects: sizes.iter().map(&mut object).collect(), ..Self::default() }
    }

    fn list(&self, tag: u64) -> Vec<Object> {
        let object = |(n, bytes): (usize, &Vec<u8>)| Object {
            name: format!("https://example/{n}").into(),
            bytes: bytes.len() as u64,
            tag,
        };
        self.objects.iter().enumerate().map(object).collect()
    }

    /// The bytes that were asked for since the last call.
    fn bytes(&self) -> u64 {
        self.asked.lock().drain(..).map(|(_, part)| part.end - part.start).sum()
    }

    fn all(&self) -> u64 {
        self.objects.iter().map(|object| object.len() as u64).sum()
    }
}

struct Slow<'a>(Cursor<&'a [u8]>, Duration);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        thread::sleep(self.1);
        self.0.read(into)
    }
}

impl Store for Fake {
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        if self.is_gone {
            return Err(io::Error::other("gone"));
        }
        self.asked.lock().push((object, part.clone()));
        let end = self.most.map_or(part.end, |most| part.end.min(part.start + most));
        let bytes = self.objects[object].get(part.start as usize..end as usize);
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Box::new(Slow(Cursor::new(bytes), self.pause)))
    }
}

fn open(folder: &Path, limit: u64, fake: &Arc<Fake>) -> Result<PageCache, DataError> {
    open_counted(folder, limit, fake, Arc::default())
}

fn open_counted(folder: &Path, limit: u64, fake: &Arc<Fake>, traffic: Arc<Traffic>) -> Result<PageCache, DataError> {
    let below = Arc::clone(fake) as _;
    PageCache::open(folder, limit, &fake.list(0), below, traffic).map_err(|error| unusable(folder, &error))
}

fn read(cached: &PageCache, object: usize, part: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (part.end - part.start) as usize];
    cached.read(object, part.start, &mut bytes).map(|()| bytes)
}

/// Reads all, and checks each byte.
fn check_all(cached: &PageCache, fake: &Fake) {
    for (object, bytes) in fake.objects.iter().enumerate() {
        assert!(read(cached, object, 0..bytes.len() as u64).unwrap() == *bytes, "object {object}");
    }
}

/// The bytes of a folder on disk, of files alone.
fn on_disk(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: io::Result<fs::DirEntry>| match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
        Ok((path, meta)) if meta.is_dir() => on_disk(&path),
        Ok((_, meta)) => std::os::unix::fs::MetadataExt::blocks(&meta) * 512,
        Err(_) => 0, // it has gone
    };
    entries.map(bytes).sum()
}

/// Room for the small files of a set.
const SMALL: u64 = 65 << 10;

/// The pages of all sets, and what is half written.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let all = |folder: &Path| {
        let mut all: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all.into_iter()
    };
    let folders = |folder: &Path| all(folder).filter(|path| path.is_dir());
    folders(folder).flat_map(|set| folders(&set)).flat_map(|folder| all(&folder)).collect()
}

fn sets(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
}

/// Samples of 100,000 bytes in random order: those that begin in each object.
fn epoch(cached: &PageCache, fake: &Fake, seed: u64) {
    let mut samples: Vec<(usize, Range<usize>)> = Vec::new();
    for (object, bytes) in fake.objects.iter().enumerate() {
        let part = |start| (object, start..bytes.len().min(start + 100_000));
        samples.extend((0..bytes.len()).step_by(100_000).map(part));
    }
    samples.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    for (object, part) in samples {
        let bytes = read(cached, object, part.start as u64..part.end as u64).unwrap();
        assert!(bytes == fake.objects[object][part.clone()], "{object} {part:?}");
    }
}

#[test]
fn half_a_cache_saves_half_of_the_second_epoch_and_a_whole_one_all_of_it() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[40 << 20, 5 << 20, (21 << 20) + 7], 1)));
    for (limit, most) in [(fake.all() / 2, 0.52), (2 * fake.all(), 0.0)] {
        let traffic = Arc::<Traffic>::default();
        let cached = open_counted(folder.path(), limit, &fake, Arc::clone(&traffic)).unwrap();
        let (first, had) = (fake.all(), traffic.seen().cached);
        fake.bytes();
        epoch(&cached, &fake, 1);
        let first_asked = fake.bytes();
        let first_cached = traffic.seen().cached - had;
        assert!(first_asked <= first + (1 << 20), "{first_asked} of {first}: nothing is fetched twice");
        epoch(&cached, &fake, 2);
        let second = fake.bytes();
        assert!(second as f64 <= most * first as f64, "{second} of {first}");
        assert_eq!(traffic.seen().cached - had - first_cached, fake.all() - second, "what is not fetched is cached");
        assert!(on_disk(folder.path()) <= limit);
        drop(cached);
        // Another process, with another order.
        epoch(&open(folder.path(), limit, &fake).unwrap(), &fake, 3);
        let third = fake.bytes();
        assert!(third as f64 <= most * first as f64, "{third} of {first}");
        fs::remove_dir_all(folder.path()).unwrap();
    }
}

#[test]
fn ranges_at_random_are_what_they_are_without_a_cache() {
    for seed in 0..12 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let sizes: Vec<u64> = (0..rng.random_range(1..5)).map(|_| rng.random_range(0..4 << 20)).collect();
        let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&sizes, seed)));
        let limit = rng.random_range(SMALL..fake.all() + (1 << 20));
        let mut cached = open(folder.path(), limit, &fake).unwrap();
        for _ in 0..60 {
            let object = rng.random_range(0..sizes.len());
            let start = rng.random_range(0..=sizes[object]);
            let longest = if rng.random() { 1000 } else { 3 << 20 };
            let end = rng.random_range(start..=sizes[object].min(start + longest));
            let right = &fake.objects[object][start as usize..end as usize];
            if rng.random() {
                assert!(read(&cached, object, start..end).unwrap() == right, "{seed}: {object}, {start}..{end}");
            } else {
                // Through a reader, piece by piece, not always to its end.
                let (mut reader, mut got) = (cached.open(object, start..end).unwrap(), Vec::new());
                for _ in 0..rng.random_range(1..9) {
                    let mut piece = vec![0; rng.random_range(1..1 << 20)];
                    let bytes = reader.read(&mut piece).unwrap();
                    got.extend(&piece[..bytes]);
                }
                assert!(got == right[..got.len()], "{seed}: {object}, {start}..{end}");
                if rng.random() {
                    reader.read_to_end(&mut got).unwrap();
                    assert!(got == right, "{seed}: {object}, {start}..{end}");
                }
            }
            if rng.random_ratio(1, 15) {
                drop(cached);
                cached = open(folder.path(), limit, &fake).unwrap();
            }
            assert!(on_disk(folder.path()) <= limit, "{seed}");
        }
        assert!(cached.read(0, sizes[0], &mut [0]).is_err(), "there is nothing behind the end");
    }
}

#[test]
fn a_run_is_one_request_of_whole_pages_and_what_has_no_place_is_read_as_asked() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[9 << 20], 2)));
    let cached = open(folder.path(), 5 * PAGE + SMALL, &fake).unwrap();
    read(&cached, 0, PAGE + 5..3 * PAGE - 5).unwrap();
    read(&cached, 0, PAGE + 5..3 * PAGE - 5).unwrap();
    assert_eq!(*fake.asked.lock(), [(0, PAGE..3 * PAGE)]);
    read(&cached, 0, 0..9 * PAGE - 1).unwrap();
    assert_eq!(fake.asked.lock()[1..], [(0, 0..PAGE), (0, 3 * PAGE..5 * PAGE), (0, 5 * PAGE..9 * PAGE - 1)]);
    read(&cached, 0, 8 * PAGE + 3..8 * PAGE + 9).unwrap();
    assert_eq!(fake.asked.lock()[4..], [(0, 8 * PAGE + 3..8 * PAGE + 9)]);
}

#[test]
fn another_tag_is_another_set() {
    let folder = tempfile::tempdir().unwrap();
    for tag in 0..3 {
        let fake = Arc::new(Fake::new(&[3 << 20, 100], tag));
        for _ in 0..2 {
            let below = Arc::clone(&fake) as _;
            let cached = PageCache::open(folder.path(), 50 << 20, &fake.list(tag), below, Arc::default()).unwrap();
            check_all(&cached, &fake);
        }
        assert_eq!(fake.bytes(), fake.all());
    }
    assert_eq!(sets(folder.path()), 3);
}

#[test]
fn an_error_below_is_the_readers_and_leaves_the_cache_on() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[3 << 20], 4)));
    let gone = Arc::new(Fake { is_gone: true, ..Fake::new(&[3 << 20], 4) });
    let cached = open(folder.path(), 50 << 20, &gone).unwrap();
    assert_eq!(read(&cached, 0, 0..9).unwrap_err().to_string(), "gone");
    check_all(&open(folder.path(), 50 << 20, &fake).unwrap(), &fake);
    assert_eq!(read(&cached, 0, 0..3 << 20).unwrap(), fake.objects[0], "it finds what the other has fetched");
}

#[test]
fn pages_before_an_error_are_good() {
    let fake = Arc::new(Fake { most: Some(5 * PAGE / 2), ..Fake::new(&[6 << 20], 4) });
    let folder = tempfile::tempdir().unwrap();
    check_all(&open(folder.path(), 50 << 20, &fake).unwrap(), &fake);
    assert_eq!(*fake.asked.lock(), [0, 2, 4].map(|page| (0, page * PAGE..6 * PAGE)));
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake { most: Some(9), ..Fake::new(&[6 << 20], 4) }));
    let error = read(&open(folder.path(), 50 << 20, &fake).unwrap(), 0, 0..6 << 20).unwrap_err();
    assert_eq!((error.kind(), fake.asked.lock().len()), (io::ErrorKind::UnexpectedEof, 1), "an error is told");
}

#[test]
fn small_objects_pass_no_limit() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let sizes: Vec<u64> = (0..12_000).map(|_| rng.random_range(1..5000)).collect();
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&sizes, 1)));
    for limit in [4 << 20, 80 << 20] {
        let cached = open(folder.path(), limit, &fake).unwrap();
        check_all(&cached, &fake);
        fake.bytes();
        check_all(&cached, &fake);
        let (kept, held) = (fake.all() - fake.bytes(), on_disk(folder.path()));
        assert!(held <= limit, "{held} of {limit}");
        assert!(kept == fake.all() || held > limit - (1 << 18), "{kept} bytes are kept in {held} of {limit}");
    }
}

#[test]
fn a_limit_beyond_the_disk_is_refused_with_figures() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new(&[10], 1)));
    let error = open(folder.path(), u64::MAX, &fake).unwrap_err();
    assert!(matches!(error, DataError::Option { option: "cache", .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains(&format!("the limit is {} bytes", u64::MAX)) && error.contains("write `.cache("), "{error}");
}
