//! What a stream costs, beside the same samples with an index: JSON lines.
//!
//!     cargo bench --features vision --bench streams -- [rounds, 9 by default] [large, small, buffer, memory; all by default]
//!     cargo bench --features turbo,mds --bench streams -- tars FOLDER [bytes or decoded] [workers]
//!
//! `ratio` is the rate of a stream by that of an index, the median of rounds that alternate, with the quartiles. `buffer_ns` is what a
//! shuffle buffer of 10,000 adds to a sample. `ahead_mb` is the most bytes of items of 10 MB that were alive at once; `slots_mb` is the
//! memory of the slots that they are read for.
//!
//! `tars` reads each tar of a folder through a pipe: `peer_streams.py` says what it does, and does the same by webdataset.

use burn::{
    data::dataset::{Dataset, DatasetError},
    prelude::*,
    tensor::DType,
};
use burn_pinned::{
    BoxError, Collate, Field, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut, collate,
    data::{self, Pipe},
    stream::Stream,
    vision::{Image, Resize},
};
use bytes::Bytes;
use std::{
    convert::Infallible,
    env, fs, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// Rows of bytes.
struct Rows(usize);

impl<S: AsRef<[u8]>> Collate<S> for Rows {
    type Batch = Tensor<2, Int>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::U8, [self.0])]
    }

    fn write(&self, sample: &S, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.write("x", sample.as_ref())?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok(batch.take("x")?)
    }
}

/// Samples that are ready.
#[derive(Clone)]
struct Ready(Arc<Vec<Arc<[u8]>>>, usize);

impl Ready {
    fn new(bytes: usize, samples: usize) -> Self {
        Self(Arc::new((0..64).map(|at| vec![at as u8; bytes].into()).collect()), samples)
    }

    fn sample(&self, index: usize) -> Arc<[u8]> {
        Arc::clone(&self.0[index % self.0.len()])
    }

    fn stream(&self) -> Stream<Arc<[u8]>> {
        let this = self.clone();
        Stream::new(move |_| {
            let this = this.clone();
            Ok((0..this.1).map(move |index| Ok::<_, Infallible>(this.sample(index))))
        })
    }
}

impl Dataset<Arc<[u8]>> for Ready {
    fn get(&self, index: usize) -> Result<Arc<[u8]>, DatasetError> {
        Ok(self.sample(index))
    }

    fn len(&self) -> usize {
        self.1
    }
}

fn builder<S: AsRef<[u8]> + Send + 'static>(bytes: usize, batch: usize) -> PinnedDataLoaderBuilder<S, Tensor<2, Int>> {
    PinnedDataLoaderBuilder::new(Rows(bytes)).batch_size(batch).num_workers(2)
}

/// Samples per second of an epoch.
fn rate(loader: &PinnedDataLoader<Tensor<2, Int>>, samples: usize) -> f64 {
    let start = Instant::now();
    let given: usize = loader.iter().map(|batch| batch.map_or(0, |batch| batch.dims()[0])).sum();
    assert_eq!(given, samples);
    samples as f64 / start.elapsed().as_secs_f64()
}

/// The median and the quartiles.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [2, 1, 3].map(|quarter| (values[(values.len() - 1) * quarter / 4] * 1e3).round() / 1e3)
}

fn pair(bytes: usize, batch: usize, samples: usize, rounds: usize) -> Result<(), BoxError> {
    let ready = Ready::new(bytes, samples);
    let indexed = builder(bytes, batch).build(ready.clone())?;
    let streamed = builder(bytes, batch).build_stream(ready.stream())?;
    let loaders = [indexed, streamed];
    for loader in &loaders {
        rate(loader, samples); // warms up
    }
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let first = round % 2;
        let (one, other) = (rate(&loaders[first], samples), rate(&loaders[1 - first], samples));
        let [index, stream] = if first == 0 { [one, other] } else { [other, one] };
        ratios.push(stream / index);
        rates.push(stream);
    }
    let line = serde_json::json!({ "case": "ready", "bytes": bytes, "ratio": quartiles(ratios), "per_s": quartiles(rates)[0] });
    println!("{line}");
    Ok(())
}

fn buffer(rounds: usize) -> Result<(), BoxError> {
    const SAMPLES: usize = 1_000_000;
    let ready = Ready::new(80, SAMPLES);
    let loader = |size| builder(80, 256).build_stream(ready.stream().shuffle_buffer(size));
    let loaders = [loader(0)?, loader(10_000)?];
    let more = |_| {
        let [plain, mixed] = [0, 1].map(|at| 1e9 / rate(&loaders[at], SAMPLES));
        mixed - plain
    };
    let line = serde_json::json!({ "case": "buffer", "buffer_ns": quartiles((0..rounds).map(more).collect()) });
    println!("{line}");
    Ok(())
}

/// An item whose life is counted.
struct Large(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len(), Relaxed);
    }
}

fn memory() -> Result<(), BoxError> {
    const BYTES: usize = 10_000_000;
    let (alive, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (now, peak) = (Arc::clone(&alive), Arc::clone(&most));
    let stream = Stream::new(move |_| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        Ok((0..200).map(move |_| {
            peak.fetch_max(now.fetch_add(BYTES, Relaxed) + BYTES, Relaxed);
            Ok::<_, Infallible>(Large(vec![7; BYTES], Arc::clone(&now)))
        }))
    });
    let loader = builder(BYTES, 4).pinned_limit(3 * 4 * BYTES).build_stream(stream)?;
    rate(&loader, 200);
    let (ahead, slots) = (most.load(Relaxed) as f64 / 1e6, loader.stats().slots * 4 * BYTES / 1_000_000);
    println!("{}", serde_json::json!({ "case": "memory", "ahead_mb": ahead, "slots_mb": slots }));
    Ok(())
}

/// Rows of tars, each through a pipe. As many tars are read at once as there are workers.
fn tars<T: serde::de::DeserializeOwned + Send + 'static>(
    folder: &str,
    workers: usize,
) -> Result<Stream<(T, i64)>, BoxError> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().contains(".tar")));
    files.sort();
    let shards = files.len();
    let stream = Stream::new(move |place| {
        let pipe = Pipe::new(format!("cat '{}'", files[place.shard].display()))?;
        Ok(data::Rows::<(T, i64)>::tar("a pipe").columns(["jpg", "cls"]).stream_from(pipe)?)
    });
    Ok(stream.shards(shards).interleave(workers).shuffle_buffer(1000))
}

/// Two epochs of values and labels: what the first one has, and how fast the second one is.
fn epochs<const D: usize>(
    loader: &PinnedDataLoader<(Tensor<D, Int>, Tensor<1, Int>)>,
    work: &str,
    workers: usize,
) -> Result<(), BoxError> {
    let (mut total, mut numbers) = (0, 0);
    for batch in loader.iter() {
        let values = batch?.0.into_data();
        total += values.iter::<u64>().sum::<u64>();
        numbers += values.num_elements();
    }
    let (start, mut samples) = (Instant::now(), 0);
    for batch in loader.iter() {
        samples += batch?.1.dims()[0];
    }
    let per_s = (samples as f64 / start.elapsed().as_secs_f64()).round();
    let mean = (1e3 * total as f64 / numbers as f64).round() / 1e3;
    let line = serde_json::json!({
        "case": "tars", "loader": "burn-pinned", "work": work, "workers": workers, "samples": samples, "mean": mean, "per_s": per_s
    });
    println!("{line}");
    Ok(())
}

/// What `peer_streams.py` does.
fn peer(folder: &str, work: &str, workers: usize) -> Result<(), BoxError> {
    const BATCH: usize = 64;
    let label = Field::new("label", DType::I64, []);
    if work == "bytes" {
        let collate = collate(
            [Field::jagged::<u8>("file", [200_000]), label],
            |(file, label): &(Bytes, i64), row| {
                row.write("file", file)?;
                Ok(row.put("label", *label)?)
            },
            |mut batch| Ok((batch.take::<1, Int>("file")?, batch.take_int::<1>("label")?)),
        );
        let builder = PinnedDataLoaderBuilder::new(collate).batch_size(BATCH).num_workers(workers);
        return epochs(&*builder.build_stream(tars(folder, workers)?)?, work, workers);
    }
    if work != "decoded" {
        return Err(format!("the work is `bytes` or `decoded`, not `{work}`").into());
    }
    let collate = collate(
        [Field::image("image", 64), label],
        |(image, label): &(Image, i64), row| {
            row.image("image", image)?;
            Ok(row.put("label", *label)?)
        },
        |mut batch| Ok((batch.take::<4, Int>("image")?, batch.take_int::<1>("label")?)),
    );
    let builder = PinnedDataLoaderBuilder::new(collate).batch_size(BATCH).num_workers(workers);
    let loader = builder.augment(Resize::exact(64)?).build_stream(tars(folder, workers)?)?;
    epochs(&*loader, work, workers)
}

fn main() -> Result<(), BoxError> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [case, folder, rest @ ..] = &*args
        && case == "tars"
    {
        let work = rest.first().map_or("bytes", String::as_str);
        let workers = rest.get(1).map_or(Ok(2), |workers| workers.parse())?;
        return peer(folder, work, workers);
    }
    let rounds = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(9);
    let cases: Vec<_> = args.iter().filter(|arg| arg.parse::<usize>().is_err()).collect();
    let wants = |case: &str| cases.is_empty() || cases.iter().any(|wanted| *wanted == case);
    if wants("large") {
        pair(150_000, 64, 20_000, rounds)?;
    }
    if wants("small") {
        pair(80, 256, 2_000_000, rounds)?;
    }
    if wants("buffer") {
        buffer(rounds)?;
    }
    if wants("memory") {
        memory()?;
    }
    Ok(())
}
