//! Many files whose types must be compared.

use super::*;
use crate::store::{Object, Store};
use parquet::{
    data_type::{ByteArray, ByteArrayType, Int64Type},
    file::writer::SerializedFileWriter,
    schema::parser::parse_message_type,
};
use std::{
    io::{self, Read},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// A file of one row: a null of a number, or a text.
fn file(is_null: bool) -> Vec<u8> {
    let schema =
        if is_null { "message rows { optional int64 x; }" } else { "message rows { optional binary x (STRING); }" };
    let mut file =
        SerializedFileWriter::new(Vec::new(), Arc::new(parse_message_type(schema).unwrap()), Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    match is_null {
        true => column.typed::<Int64Type>().write_batch(&[], Some(&[0]), None).unwrap(),
        false => column.typed::<ByteArrayType>().write_batch(&[ByteArray::from("seven")], Some(&[1]), None).unwrap(),
    };
    column.close().unwrap();
    group.close().unwrap();
    file.into_inner().unwrap()
}

/// Files of two kinds in memory. Each read takes a while.
#[derive(Debug)]
struct Slow {
    files: [Vec<u8>; 2],
    /// The kind of each object.
    kinds: Vec<usize>,
    reads: Vec<AtomicUsize>,
    all: AtomicUsize,
    /// The reads of now, and the most of them once all objects were read.
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Store for Slow {
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        if self.all.fetch_add(1, SeqCst) >= self.kinds.len() + 8 {
            self.most.fetch_max(now, SeqCst);
        }
        self.reads[object].fetch_add(1, SeqCst);
        thread::sleep(Duration::from_millis(1));
        self.now.fetch_sub(1, SeqCst);
        Ok(Box::new(&self.files[self.kinds[object]][part.start as usize..part.end as usize]))
    }
}

/// Opens objects of these kinds.
fn open_kinds(kinds: Vec<usize>) -> (Arc<Slow>, Result<ParquetSource, DataError>) {
    let files = [file(true), file(false)];
    let object =
        |(n, kind): (usize, &usize)| Object { name: format!("{n}").into(), bytes: files[*kind].len() as u64, tag: 1 };
    let list = kinds.iter().enumerate().map(object).collect();
    let reads = kinds.iter().map(|_| AtomicUsize::new(0)).collect();
    let counts = [0; 3].map(AtomicUsize::new);
    let [all, now, most] = counts;
    let store = Arc::new(Slow { files, kinds, reads, all, now, most });
    let opened = open_with(Objects::of(list, Arc::clone(&store) as _), &Selection::All, &Options::default(), 0);
    (store, opened)
}

#[test]
fn footers_of_files_with_nulls_alone_are_read_again_once_and_side_by_side() {
    for kinds in [
        (0..200).map(|n| usize::from(n >= 100)).collect::<Vec<_>>(),
        (0..200).map(|n| usize::from(n % 2 == 0)).collect(),
    ] {
        let (store, source) = open_kinds(kinds);
        assert_eq!(source.unwrap().len(), 200);
        assert!(store.reads.iter().all(|reads| reads.load(SeqCst) <= 2));
        let threads = thread::available_parallelism().map_or(1, usize::from);
        assert!(store.most.load(SeqCst) >= threads.min(2), "{} at once", store.most.load(SeqCst));
    }
}

#[test]
fn one_odd_file_costs_few_footers() {
    // The odd file is the first, the last, or in between.
    for odd in [0, 100, 199] {
        let (store, source) = open_kinds((0..200).map(|n| usize::from(n != odd)).collect());
        assert_eq!(source.unwrap().len(), 200);
        assert!(store.all.load(SeqCst) <= 202, "{} reads", store.all.load(SeqCst));
    }
}
