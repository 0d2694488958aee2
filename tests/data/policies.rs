//! A damaged row in the middle of a shard, in each format: it is named, skipped or replaced, and nothing else is lost.

use crate::{
    formats::{Format, ROWS, Row, bytes, sum},
    golden::golden,
    sums::Sums,
};
use burn::{
    data::dataset::Dataset,
    tensor::{DType, Device},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut,
    data::{DataError, Rows},
    fault::Quota,
};
use burn_pinned_made::write::jsonl;
use std::{error, fs, path::Path, sync::Arc};

/// All but compressed column chunks, whose damage need not show: they have no checksums.
const FORMATS: [Format; 5] = [Format::Tar, Format::Mds, Format::Jsonl, Format::Direct, Format::Pages];
const DAMAGED: usize = 100;

/// Writes `new` over what lies `behind` bytes after the only place of `old` in a shard.
fn patch(folder: &Path, old: &[u8], behind: usize, new: &[u8]) {
    let mut patched = 0;
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let mut file = fs::read(&path).unwrap();
        let places =
            file.windows(old.len()).enumerate().filter(|(_, window)| *window == old).map(|(at, _)| at + behind);
        for at in places.collect::<Vec<_>>() {
            file[at..at + new.len()].copy_from_slice(new);
            patched += 1;
        }
        fs::write(path, file).unwrap();
    }
    assert_eq!(patched, 1);
}

/// A data set with a damaged row, which is found when it is read and not before.
fn damaged(format: Format, folder: &Path) -> Rows<Row> {
    let value = [&(bytes(DAMAGED).len() as u32).to_le_bytes()[..], &bytes(DAMAGED)].concat();
    let copy = |kind: &str| {
        for name in [0, 1].map(|part| format!("{kind}-{part}.parquet")) {
            fs::copy(golden("numbers").join(&name), folder.join(name)).unwrap();
        }
        Rows::parquet(folder.join("*.parquet"))
    };
    let builder = match format {
        Format::Direct => copy("direct"),
        Format::Pages => copy("pages"),
        _ => format.open(folder),
    };
    match format {
        // A label that is no number, behind its header.
        Format::Tar => patch(folder, format!("{DAMAGED:04}.label\0").as_bytes(), 512, b"?"),
        // A line that is no JSON.
        Format::Jsonl => patch(folder, format!("\"label\":{DAMAGED}}}").as_bytes(), 7, b"?"),
        // More bytes than there are.
        Format::Mds | Format::Direct => patch(folder, &value, 0, &[0xff; 4]),
        // Each compressed page begins with the mark of its codec. The first file has rows of pages in their order.
        Format::Pages => {
            let path = folder.join("pages-0.parquet");
            let mut file = fs::read(&path).unwrap();
            let is_mark = |(_, four): &(usize, &[u8])| *four == [0x28, 0xb5, 0x2f, 0xfd];
            let marks: Vec<usize> = file.windows(4).enumerate().filter(is_mark).map(|(at, _)| at).collect();
            let at = marks[marks.len() / 2];
            file[at..at + 4].fill(0);
            fs::write(path, file).unwrap();
        }
        Format::Chunks => unreachable!("not among the formats of this test"),
    }
    builder.open().unwrap_or_else(|error| panic!("{format:?}: {error}"))
}

/// What of the rows cannot be read. In Parquet the rest of a page goes with its damaged value.
fn bad(format: Format, rows: &Rows<Row>) -> Vec<usize> {
    let bad: Vec<usize> = (0..ROWS).filter(|at| rows.get(*at).is_err()).collect();
    let most = if matches!(format, Format::Direct | Format::Pages) { 40 } else { 1 };
    assert!((1..=most).contains(&bad.len()), "{format:?}: {bad:?}");
    assert!(format == Format::Pages || bad.contains(&DAMAGED), "{format:?}: {bad:?}");
    bad
}

fn build(rows: &Rows<Row>, policy: BadSamples, workers: usize) -> Arc<PinnedDataLoader<Vec<(i64, i64)>>> {
    let builder = PinnedDataLoaderBuilder::new(Sums).batch_size(7).set_device(Device::flex());
    builder.num_workers(workers).bad_samples(policy).build(rows.clone()).unwrap()
}

#[test]
fn a_damaged_row_is_skipped_or_replaced() {
    let row = |at: usize| (at as i64, sum(&bytes(at)));
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let rows = damaged(format, folder.path());
        let bad = bad(format, &rows);
        for workers in [1, 4] {
            let loader = build(&rows, BadSamples::Skip(Quota::Count(bad.len())), workers);
            let got: Vec<_> = loader.iter().flat_map(Result::unwrap).collect();
            let good: Vec<_> = (0..ROWS).filter(|at| !bad.contains(at)).map(row).collect();
            assert_eq!(got, good, "{format:?}");

            let next = |at: usize| (at..).map(|at| at % ROWS).find(|at| !bad.contains(at)).unwrap();
            let loader = build(&rows, BadSamples::Replace { tries: 50 }, workers);
            let got: Vec<_> = loader.iter().flat_map(Result::unwrap).collect();
            assert_eq!(got, (0..ROWS).map(next).map(row).collect::<Vec<_>>(), "{format:?}");
        }
    }
}

/// The error has the row's number in the data set, and the name of its file.
#[test]
fn a_damaged_row_is_named() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let rows = damaged(format, folder.path());
        let first = bad(format, &rows)[0];
        let error = build(&rows, BadSamples::Fail, 3).iter().find_map(Result::err).unwrap();
        let error = Error::of(&error).unwrap();
        assert_eq!(error.place().and_then(|place| place.index), Some(first), "{format:?}: {error}");
        let mut cause: &(dyn error::Error + 'static) = error;
        while !cause.is::<DataError>() {
            cause = cause.source().unwrap_or_else(|| panic!("{format:?}: no `DataError` in {error:?}"));
        }
        assert!(cause.to_string().contains(rows.place(first).0), "{format:?}: {cause}");
    }
}

#[derive(Debug, serde::Deserialize)]
struct Of {
    x: u8,
}

struct Numbers;

impl Collate<Of> for Numbers {
    type Batch = usize;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::I64, [])]
    }

    fn write(&self, row: &Of, to: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(to.put("x", i64::from(row.x))?)
    }

    fn finish(&self, batch: RawBatch) -> Result<usize, BoxError> {
        Ok(batch.len())
    }
}

#[test]
fn a_bad_first_row_is_for_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Rows::<Of>::jsonl(jsonl(folder.path(), &["{\"x\": null}", "{\"x\": 1}", "{\"x\": 2}"])).open().unwrap();
    let build = |policy| {
        let builder = PinnedDataLoaderBuilder::new(Numbers).batch_size(2).set_device(Device::flex());
        builder.bad_samples(policy).build(rows.clone()).unwrap()
    };
    let rows: usize = build(BadSamples::Skip(Quota::Count(1))).iter().map(Result::unwrap).sum();
    assert_eq!(rows, 2);
    assert!(build(BadSamples::Fail).iter().any(|batch| batch.is_err()));
}
