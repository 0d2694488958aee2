//! Values that are read one by one.

use super::{
    written::{plain, row, write},
    *,
};
use crate::{
    parquet::pages::Note,
    source::cell::Cell,
    store::{Object, Store},
};
use parquet::{
    data_type::{ByteArray, ByteArrayType},
    file::{properties::WriterVersion, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use std::{
    fs::{self, File},
    io::{self, Read},
    ops::Range,
    path::Path,
    slice,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The notes of the images' bytes: how many pages there are, and how many of them were noted.
fn noted(source: &ParquetSource) -> (usize, usize) {
    let notes: Vec<_> = source.groups.iter().flat_map(|group| &group.chunks[1].notes).collect();
    (notes.len(), notes.iter().filter(|note| matches!(note.get(), Some(Note::Plain { .. }))).count())
}

#[test]
fn values_are_the_same_before_and_after_their_pages_are_noted() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.parquet");
        write(&path, 300, 120, plain(version));
        let options = Options { memory: 0, ..Options::default() };
        let source = open(std::slice::from_ref(&path), &Selection::All, &options).unwrap();
        assert_eq!(noted(&source).1, 0);
        for pass in 0..2 {
            for at in 0..300 {
                let at = at * 137 % 300;
                assert_eq!(source.read(at).unwrap(), row(at), "pass {pass}");
            }
            let (pages, noted) = noted(&source);
            assert!(pages > 10 && noted == pages);
        }
        // What was noted by reading helps the next process once it is saved.
        let second = open(std::slice::from_ref(&path), &Selection::All, &options).unwrap();
        assert_eq!(noted(&second).1, 0);
        source.index().unwrap();
        let third = open(&[path], &Selection::All, &options).unwrap();
        assert_eq!(noted(&third).1, noted(&third).0);
        (0..300).for_each(|at| assert_eq!(third.read(at).unwrap(), row(at)));
    }
}

/// A file in memory. It counts what is read of it.
#[derive(Debug)]
pub(super) struct Counting {
    file: Vec<u8>,
    pub(super) reads: AtomicUsize,
    bytes: AtomicUsize,
}

impl Store for Counting {
    fn open(&self, _: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        let part = &self.file[part.start as usize..part.end as usize];
        self.reads.fetch_add(1, Relaxed);
        self.bytes.fetch_add(part.len(), Relaxed);
        Ok(Box::new(part))
    }
}

pub(super) fn counting(path: &Path) -> (Arc<Counting>, Objects) {
    let file = fs::read(path).unwrap();
    let object = Object { name: "memory".into(), bytes: file.len() as u64, tag: 1 };
    let store = Arc::new(Counting { file, reads: AtomicUsize::new(0), bytes: AtomicUsize::new(0) });
    let all: Arc<dyn Store> = Arc::clone(&store) as _;
    (store, Objects::of(vec![object], all))
}

#[test]
fn a_noted_value_costs_one_read_of_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 300, 120, plain(WriterVersion::PARQUET_1_0));
    let (store, objects) = counting(&path);
    let bytes = Selection::Some(vec![("bytes".into(), Selection::All)]);
    let wanted = Selection::Some(vec![("image".into(), bytes)]);
    let source = open_with(objects, &wanted, &Options { memory: 0, ..Options::default() }, 0).unwrap();
    source.index().unwrap();
    let (mut reads, mut length) = (0, 0);
    store.reads.store(0, Relaxed);
    store.bytes.store(0, Relaxed);
    for at in (0..300).rev() {
        let Cell::Struct(image) = source.read(at).unwrap().remove(0).1 else { continue };
        if let Cell::Bytes(bytes) = &image[0].1 {
            (reads, length) = (reads + 1, length + 4 + bytes.len());
        }
    }
    assert!(reads > 200);
    assert_eq!((store.reads.load(Relaxed), store.bytes.load(Relaxed)), (reads, length));
}

#[test]
fn an_index_of_large_values_reads_only_their_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let schema = Arc::new(parse_message_type("message rows { required binary image; }").unwrap());
    let properties = Arc::new(plain(WriterVersion::PARQUET_1_0).set_data_page_size_limit(400_000).build());
    let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    let values: Vec<_> = (0..60).map(|n| ByteArray::from(vec![n as u8; 50_000 + n])).collect();
    let mut column = group.next_column().unwrap().unwrap();
    values.iter().for_each(|value| {
        column.typed::<ByteArrayType>().write_batch(std::slice::from_ref(value), None, None).unwrap();
    });
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();

    let (store, objects) = counting(&path);
    let options = Options { memory: 0, ..Options::default() };
    let source = open_with(objects, &Selection::All, &options, 0).unwrap();
    store.bytes.store(0, Relaxed);
    source.index().unwrap();
    let read = store.bytes.load(Relaxed);
    assert!(read < 300_000, "{read} bytes of 3 MB were read");
    for (n, value) in values.iter().enumerate() {
        assert_eq!(source.read(n).unwrap()[0].1, Cell::Bytes(value.data().to_vec()));
    }
}

#[test]
fn a_damaged_index_is_made_again_or_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 100, 60, plain(WriterVersion::PARQUET_1_0));
    let options = Options { memory: 0, ..Options::default() };
    let source = open(slice::from_ref(&path), &Selection::All, &options).unwrap();
    source.index().unwrap();
    let notes = |source: &ParquetSource| source.groups[0].chunks[1].notes[0].get().cloned();
    let good = notes(&source).unwrap();
    let (leaf, page) = (&source.leaves(0)[1], source.groups[0].chunks[1].pages[0]);
    let Note::Plain { first, ends, defs } = &good else { panic!("{good:?}") };
    let rows = ends.len();
    assert!(good.fits(leaf, &page, rows) && !good.fits(leaf, &page, rows + 1));
    type Change<'a> = &'a dyn Fn(&mut u64, &mut [u32], &mut [u8]);
    let change = |change: Change<'_>| {
        let (mut first, mut ends, mut defs) = (*first, ends.clone(), defs.clone());
        change(&mut first, &mut ends, &mut defs);
        Note::Plain { first, ends, defs }
    };
    let bad = [
        change(&|first, _, _| *first = u64::MAX),
        change(&|first, _, _| *first = page.start - 1),
        change(&|_, ends, _| ends[rows - 1] = u32::MAX),
        change(&|_, ends, _| ends[0] = 3),
        change(&|_, ends, _| ends.swap(0, 1)),
        change(&|_, _, defs| defs[0] = 3),
        change(&|_, _, defs| defs[0] = 0),
    ];
    bad.iter().for_each(|bad| assert!(!bad.fits(leaf, &page, rows), "{bad:?}"));
    // One that could be right gives an error, not another value.
    let shifted = change(&|_, ends, _| ends[0] += 1);
    if shifted.fits(leaf, &page, rows) {
        assert!(shifted.read(&source.objects, 0, leaf, 0).is_err());
    }
    let mut saved = Vec::new();
    good.save(&mut saved);
    assert_eq!(Note::load(&mut &saved[..]), Some(good));
    (0..saved.len()).for_each(|length| assert_eq!(Note::load(&mut &saved[..length]), None));
}

#[test]
fn a_file_that_changed_since_its_values_were_noted_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 100, 100, plain(WriterVersion::PARQUET_1_0));
    let options = Options { memory: 0, ..Options::default() };
    let source = open(slice::from_ref(&path), &columns(&["image"]), &options).unwrap();
    source.index().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let length = bytes.len();
    bytes.rotate_left(17);
    fs::write(&path, &bytes).unwrap();
    let error = source.read(12).unwrap_err().to_string();
    assert!(error.contains("row 12") && error.contains("image") && error.contains("changed"), "{error}");
    fs::write(&path, &bytes[..length / 20]).unwrap();
    assert!(matches!(source.read(99), Err(DataError::Read { .. })));
}

/// A folder that cannot be written is an error of `index`. What was noted still serves this process.
#[test]
fn an_index_that_cannot_be_saved_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 300, 120, plain(WriterVersion::PARQUET_2_0));
    let no_folder = Options { index_dir: Some(path.join("index")), ..Options::default() };
    let source = open(slice::from_ref(&path), &Selection::All, &no_folder).unwrap();
    let error = source.index().unwrap_err().to_string();
    assert!(error.contains("cannot save the index as") && error.contains("`index_dir`"), "{error}");
    assert_eq!(noted(&source).1, noted(&source).0);
    (0..300).for_each(|at| assert_eq!(source.read(at).unwrap(), row(at)));
}
