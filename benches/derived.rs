//! Samples whose layout, `write` and `finish` are derived, beside the same by hand: a JSON line a case.
//!
//!     cargo bench --features derive --bench derived -- [pairs, 15 by default] [workers, 2] [seconds a run, 1]
//!
//! Bytes stay bytes on the device, so the derived one says `dtype = u8`. The two take turns. `ratio` is the median over the pairs of what the derived one gives a second, divided by what the other gives.

use burn::{
    data::dataset::{Dataset, DatasetError},
    prelude::*,
    tensor::DType,
};
use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut, Sample, SampleCollate};
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

#[derive(Clone, Sample)]
struct Small {
    #[sample(shape = [1, 28, 28], dtype = u8)]
    pixels: Arc<[u8]>,
    label: i64,
}

#[derive(Clone, Sample)]
struct Ram {
    #[sample(shape = [3, 224, 224], dtype = u8)]
    pixels: Arc<[u8]>,
    label: i64,
}

/// What both cases have.
trait Row: Clone + Send + Sync + 'static {
    const NAME: &str;
    const SHAPE: [usize; 3];
    const BATCH: usize;

    fn new(pixels: Arc<[u8]>, label: i64) -> Self;
    fn parts(&self) -> (&[u8], i64);
}

macro_rules! row {
    ($row:ty, $name:literal, $shape:expr, $batch:literal) => {
        impl Row for $row {
            const NAME: &str = $name;
            const SHAPE: [usize; 3] = $shape;
            const BATCH: usize = $batch;

            fn new(pixels: Arc<[u8]>, label: i64) -> Self {
                Self { pixels, label }
            }

            fn parts(&self) -> (&[u8], i64) {
                (&self.pixels, self.label)
            }
        }
    };
}
row!(Small, "small-u8-28", [1, 28, 28], 1024);
row!(Ram, "ram-u8-224", [3, 224, 224], 256);

/// The same layout, written by hand.
#[derive(Clone)]
struct ByHand;

impl<R: Row> Collate<R> for ByHand {
    type Batch = (Tensor<4, Int>, Tensor<1, Int>);

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("pixels", DType::U8, R::SHAPE), Field::new("label", DType::I64, [])]
    }

    fn write(&self, row: &R, out: &mut RowMut<'_>) -> Result<(), BoxError> {
        let (pixels, label) = row.parts();
        out.write("pixels", pixels)?;
        Ok(out.put("label", label)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok((batch.take("pixels")?, batch.take("label")?))
    }
}

/// Rows in memory, again and again.
#[derive(Clone)]
struct Rows<R>(Arc<[R]>);

impl<R: Row> Rows<R> {
    fn new() -> Self {
        let bytes = R::SHAPE.iter().product::<usize>();
        let row = |row: usize| R::new((0..bytes).map(|at| (at * 31 + row) as u8).collect(), row as i64 % 10);
        Self((0..(64 << 20) / bytes).map(row).collect())
    }
}

impl<R: Row> Dataset<R> for Rows<R> {
    fn get(&self, index: usize) -> Result<R, DatasetError> {
        Ok(self.0[index * 7919 % self.0.len()].clone())
    }

    fn len(&self) -> usize {
        R::BATCH * 100_000
    }
}

/// Batches a second.
fn rate<R: Row, C: Collate<R> + 'static>(
    collate: C,
    rows: &Rows<R>,
    workers: usize,
    seconds: f64,
) -> Result<f64, BoxError>
where
    C::Batch: Send,
{
    let builder = PinnedDataLoaderBuilder::new(collate).batch_size(R::BATCH).num_workers(workers);
    let loader = builder.set_device(Device::flex()).build(rows.clone())?;
    let mut batches = loader.iter();
    for _ in 0..8 {
        black_box(batches.next().ok_or("the epoch is over")??);
    }
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs_f64(seconds) {
        black_box(batches.next().ok_or("the epoch is over")??);
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn compare<R: Row + Sample>(pairs: usize, workers: usize, seconds: f64) -> Result<(), BoxError>
where
    SampleCollate<R>: Collate<R>,
    <SampleCollate<R> as Collate<R>>::Batch: Send,
{
    let rows = Rows::<R>::new();
    let derived = || rate(R::collate(), &rows, workers, seconds);
    let by_hand = || rate(ByHand, &rows, workers, seconds);
    let mut both = Vec::new();
    for pair in 0..pairs {
        both.push(if pair % 2 == 0 {
            let derived = derived()?;
            (derived, by_hand()?)
        } else {
            let by_hand = by_hand()?;
            (derived()?, by_hand)
        });
    }
    let items = |rates: Vec<f64>| (median(rates) * R::BATCH as f64).round();
    let line = serde_json::json!({
        "bench": "derived", "case": R::NAME, "workers": workers, "pairs": pairs,
        "derived_items_per_s": items(both.iter().map(|pair| pair.0).collect()),
        "by_hand_items_per_s": items(both.iter().map(|pair| pair.1).collect()),
        "ratio": median(both.iter().map(|pair| pair.0 / pair.1).collect()),
    });
    println!("{line}");
    Ok(())
}

fn main() -> Result<(), BoxError> {
    // `cargo bench` adds this word.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |at: usize, usual: f64| args.get(at).map_or(Ok(usual), |text| text.parse());
    let (pairs, workers, seconds) = (number(0, 15.0)? as usize, number(1, 2.0)? as usize, number(2, 1.0)?);
    compare::<Small>(pairs, workers, seconds)?;
    compare::<Ram>(pairs, workers, seconds)
}
