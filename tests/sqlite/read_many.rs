//! Burn's `SqliteDataset` behind the loader: samples that are read many at once are those that are read one by one.
//!
//!     cargo test --release --package burn-pinned-sqlite -- --nocapture    # prints how fast both are
#![cfg(test)]

use burn::{
    data::dataset::{SqliteDataset, SqliteDatasetWriter},
    prelude::*,
    tensor::DType,
};
use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
use serde::{Deserialize, Serialize};
use std::{path::Path, time::Instant};

const ROWS: usize = 20_000;
const BATCH: usize = 256;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    number: i64,
    square: f64,
    text: String,
}

impl Row {
    fn of(number: usize) -> Self {
        let number = number as i64;
        Self { number, square: (number * number) as f64, text: format!("row {number}") }
    }
}

/// A batch as numbers on the host.
type Batch = (Vec<i64>, Vec<f32>, Vec<i64>);

struct Numbers;

impl Collate<Row> for Numbers {
    type Batch = Batch;

    fn layout(&self) -> Vec<Field> {
        [("number", DType::I64), ("square", DType::F32), ("letters", DType::I64)]
            .map(|(name, dtype)| Field::new(name, dtype, []))
            .into()
    }

    fn write(&self, row: &Row, to: &mut RowMut<'_>) -> Result<(), BoxError> {
        to.put("number", row.number)?;
        to.put("square", row.square as f32)?;
        Ok(to.put("letters", row.text.len() as i64)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Batch, BoxError> {
        let mut ints =
            |name| -> Result<Vec<i64>, BoxError> { Ok(batch.take::<1, Int>(name)?.into_data().iter().collect()) };
        let (number, letters) = (ints("number")?, ints("letters")?);
        Ok((number, batch.take::<1, Float>("square")?.into_data().iter().collect(), letters))
    }
}

fn write(file: &Path) {
    let mut writer = SqliteDatasetWriter::new(file, false).unwrap();
    (0..ROWS).for_each(|number| _ = writer.write("train", &Row::of(number)).unwrap());
    writer.set_completed().unwrap();
}

/// Reads an epoch, and prints how fast it came.
fn epoch(file: &Path, many: Option<usize>) -> Vec<Batch> {
    let dataset = SqliteDataset::<Row>::from_db_file(file, "train").unwrap();
    let builder = PinnedDataLoaderBuilder::new(Numbers).batch_size(BATCH).shuffle(42).set_device(Device::flex());
    let builder = match many {
        Some(samples) => builder.read_many(samples),
        None => builder,
    };
    let loader = builder.build(dataset).unwrap();
    let begun = Instant::now();
    let batches: Vec<Batch> = loader.iter().map(Result::unwrap).collect();
    let rate = ROWS as f64 / begun.elapsed().as_secs_f64();
    let how = many.map_or_else(|| "one by one".into(), |samples| format!("{samples} at once"));
    println!("{how:>12}: {rate:.0} samples/s with {} workers", loader.stats().workers);
    batches
}

#[test]
fn many_at_once_are_the_same_batches() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.db");
    write(&file);
    let one_by_one = epoch(&file, None);
    let mut numbers: Vec<i64> = one_by_one.iter().flat_map(|(number, ..)| number.clone()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..ROWS as i64));
    for _ in 0..2 {
        assert_eq!(epoch(&file, Some(64)), one_by_one);
        assert_eq!(epoch(&file, None), one_by_one);
    }
}
