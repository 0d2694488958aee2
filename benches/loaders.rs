//! This crate's loader beside Burn's own: the same data, the same batches, equal workers, in alternating rounds.
//!
//!     cargo bench --bench loaders -- --help
//!     BURN_PINNED_UNTIMED=1 cargo bench --bench loaders  # without the clocks of the statistics: what do they cost?

#[path = "support/data.rs"]
mod data;
#[path = "support/link.rs"]
mod link;

use burn::{
    data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher},
    tensor::{DType, Device, Distribution, Float, Int, Tensor, TensorData},
};
use burn_pinned::{
    Auto, BoxError, Collate, Field, KeyedRng, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut,
    memory::Decoder,
    vision::device::{CutMix, MixUp, one_hot},
};
use clap::Parser;
use data::{Item, Repeat, SIDE, Store};
use rand::RngExt;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// Times data loaders: throughput, the first batch, what the step waits for, and memory.
#[derive(Parser, Clone)]
struct Args {
    /// ram-u8-224, small-u8-28, jpeg, or `custom` with --shape
    #[arg(long, value_delimiter = ',', default_value = "ram-u8-224,small-u8-28,jpeg")]
    case: Vec<String>,
    /// pinned, burn, resident (one batch again and again: the step alone)
    #[arg(long, value_delimiter = ',', default_value = "pinned,burn")]
    loader: Vec<String>,
    /// Worker threads of each loader; 0 lets `pinned` choose, the batches ahead too
    #[arg(long, value_delimiter = ',', default_value = "2")]
    workers: Vec<usize>,
    /// Says on stderr what the loader logs, as what `--workers 0` makes it try
    #[arg(long)]
    log: bool,
    /// Timed batches per round; where decoding is slow, many times the workers: Burn's end a batch each at the same time
    #[arg(long, default_value_t = 100)]
    steps: usize,
    /// Batches before the clock starts; by default enough to drain what a loader queued meanwhile
    #[arg(long)]
    warm: Option<usize>,
    /// Rounds; the loaders take turns, figures are medians
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Row shape of the case `custom`
    #[arg(long, default_value = "3x224x224")]
    shape: String,
    /// Samples per batch; by default 256, or 1024 for small-u8-28
    #[arg(long)]
    batch: Option<usize>,
    /// Folder of JPEGs for the case `jpeg`; without files it gets 512 like photographs
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where the images of the case `jpeg` are decoded, by `pinned`: auto, host, device, or the share of the host, as 0.2
    #[arg(long, default_value = "auto")]
    decoder: Decoder,
    /// Values of raw samples
    #[arg(long, default_value = "u8", value_parser = ["u8", "f32"])]
    dtype: String,
    /// What `Collate::finish` makes of the bytes: `raw` nothing, `scaled` and `bf16` a normalised batch, `mix` with MixUp or CutMix too
    #[arg(long, default_value = "raw", value_parser = ["raw", "scaled", "bf16", "mix"])]
    finish: String,
    /// Let each step cast, scale and reduce the batch, with so many matrix products besides
    #[arg(long)]
    matmuls: Option<usize>,
    /// Side of those matrices
    #[arg(long, default_value_t = 8192)]
    matmul_side: usize,
    /// Batches ahead, for `pinned`
    #[arg(long, default_value_t = 2)]
    prefetch: usize,
    /// Transfer threads, for `pinned`; by default what the device takes
    #[arg(long)]
    transfers: Option<usize>,
    /// Bytes of the longest file that a device decodes, for the case `jpeg`; by default what the field takes
    #[arg(long)]
    room: Option<usize>,
    /// Copy rows past the CPU's caches, for `pinned`
    #[arg(long)]
    streaming: bool,
    /// Slots, for `pinned`: a limit of so many batches
    #[arg(long)]
    slots: Option<usize>,
    /// Do not measure what the workers alone fill, which takes as long as a round
    #[arg(long)]
    no_fill: bool,
    /// cpu, or cuda with the feature
    #[arg(long, default_value = if cfg!(feature = "cuda") { "cuda" } else { "cpu" })]
    device: String,
    /// A file to write: what `pinned` did in its last batches, as a picture (.svg) or a trace (.json)
    #[arg(long)]
    timeline: Option<PathBuf>,
    /// JSON lines, one per loader and round, instead of the table
    #[arg(long)]
    json: bool,
    /// `cargo bench` passes it
    #[arg(long, hide = true)]
    bench: bool,
}

/// A case to run: its data, and how rows of it look.
#[derive(Clone)]
struct Case {
    name: String,
    store: &'static Store,
    shape: [usize; 3],
    dtype: DType,
    batch: usize,
    finish: Finish,
    decoder: Decoder,
    room: Option<usize>,
}

/// What is made of the bytes on the device.
#[derive(Clone, Copy, PartialEq)]
enum Finish {
    Raw,
    Scaled(DType),
    Mixed,
}

type Batch = (Raw, Tensor<1, Int>);

/// The values on the device, in the dtype in which they crossed the link.
#[derive(Clone, Debug)]
enum Raw {
    Bytes(Tensor<4, Int>),
    Floats(Tensor<4, Float>),
}

impl Case {
    fn row_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }

    fn batch_bytes(&self) -> usize {
        self.batch * (self.row_bytes() + 8)
    }

    fn tensor(&self, bytes: Vec<u8>, rows: usize, device: &Device) -> Raw {
        let [c, h, w] = self.shape;
        let data = TensorData::from_bytes_vec(bytes, [rows, c, h, w], self.dtype);
        match self.dtype {
            DType::F32 => Raw::Floats(Tensor::from_data(data, device)),
            dtype => Raw::Bytes(Tensor::from_data(data, (device, dtype))),
        }
    }
}

impl Finish {
    fn run(self, x: Raw, labels: Tensor<1, Int>, rng: &mut KeyedRng) -> Result<Batch, BoxError> {
        let x = match x {
            Raw::Bytes(x) if self != Self::Raw => x,
            x => return Ok((x, labels)),
        };
        let dtype = if let Self::Scaled(dtype) = self { dtype } else { DType::F32 };
        let x = (x.float().cast(dtype) / 255.0 - 0.5) / 0.25;
        if self != Self::Mixed {
            return Ok((Raw::Floats(x), labels));
        }
        let (rows, targets) = (labels.dims()[0], one_hot(labels, 10));
        let (x, targets) = match rng.random_bool(0.5) {
            true => MixUp::new(0.2)?.apply(x, targets, rng),
            false => CutMix::new(1.0)?.apply(x, targets, rng),
        };
        Ok((Raw::Floats(x), targets.argmax(1).reshape([rows])))
    }
}

impl Collate<Item> for Case {
    type Batch = Batch;

    fn layout(&self) -> Vec<Field> {
        let x = match self.store {
            Store::Raw { .. } => Field::new("x", self.dtype, self.shape),
            Store::Jpeg(_) => {
                let image = Field::image("x", self.shape).decoder(self.decoder);
                match self.room {
                    Some(bytes) => image.room(bytes),
                    None => image,
                }
            }
        };
        vec![x, Field::new("label", DType::I64, [])]
    }

    fn write(&self, item: &Item, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        match (item.raw(), self.dtype) {
            (Some(raw), DType::F32) => row.write::<f32>("x", bytemuck::cast_slice(raw))?,
            (Some(raw), _) => row.write("x", raw)?,
            (None, _) => row.image("x", &item.image()?)?,
        }
        Ok(row.put("label", item.label())?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Batch, BoxError> {
        let x = match self.dtype {
            DType::F32 => Raw::Floats(batch.take("x")?),
            _ => Raw::Bytes(batch.take("x")?),
        };
        let labels = batch.take("label")?;
        self.finish.run(x, labels, &mut batch.rng())
    }
}

/// The same batches, as a Burn user writes them.
impl Batcher<Item, Batch> for Case {
    fn batch(&self, items: Vec<Item>, device: &Device) -> Batch {
        let mut bytes = Vec::with_capacity(items.len() * self.row_bytes());
        for item in &items {
            match item.raw() {
                Some(raw) => bytes.extend_from_slice(raw),
                None => {
                    let start = bytes.len();
                    bytes.resize(start + self.row_bytes(), 0);
                    item.write(&mut bytes[start..]).expect("the bench made these images itself");
                }
            }
        }
        let labels: Vec<i64> = items.iter().map(Item::label).collect();
        let labels = TensorData::new(labels, [items.len()]);
        (self.tensor(bytes, items.len(), device), Tensor::from_data(labels, (device, DType::I64)))
    }
}

/// Stands in for a training step: casts, scales and reduces the batch, and multiplies matrices.
struct Step {
    matrix: Tensor<2>,
    matmuls: usize,
}

impl Step {
    fn new(matmuls: usize, side: usize, device: &Device) -> Self {
        let matrix: Tensor<2> = Tensor::random([side, side], Distribution::Normal(0.0, 0.01), device);
        let matrix: Tensor<2> = if device.supports_dtype(DType::BF16) { matrix.cast(DType::BF16) } else { matrix };
        Self { matrix, matmuls }
    }

    fn run(&self, x: Raw) -> Tensor<1> {
        let x = match x {
            Raw::Bytes(x) => x.float(),
            Raw::Floats(x) => x,
        };
        let x = x * 0.0039 - 0.5;
        let mut h = self.matrix.clone();
        for _ in 0..self.matmuls {
            h = h.matmul(self.matrix.clone());
        }
        let out = x.clone().mean() + (x * 2.0).mean();
        if self.matmuls > 0 { out + h.mean().cast(DType::F32) } else { out }
    }
}

/// What one loader did in one round.
#[derive(Clone, Default)]
struct Figures {
    items_per_s: f64,
    gb_per_s: f64,
    step_ms: f64,
    wait_us_p50: f64,
    wait_us_p99: f64,
    first_batch_ms: f64,
    pinned_mb: Option<f64>,
    device_mb: Option<f64>,
    /// Where images were decoded.
    decoder: Option<&'static str>,
}

/// Every loader behind one face.
enum Source {
    Pinned(Arc<PinnedDataLoader<Batch>>),
    Burn(Arc<dyn DataLoader<Batch>>),
    Resident(Box<Batch>),
}

impl Args {
    fn device(&self) -> Device {
        match self.device.as_str() {
            #[cfg(feature = "cuda")]
            "cuda" => Device::cuda(0),
            "cpu" => Device::flex(),
            other => fail(&format!("--device {other}: use `cpu`, or `cuda` with `--features cuda`")),
        }
    }

    fn case(&self, name: &str) -> Case {
        let dtype = if self.dtype == "f32" { DType::F32 } else { DType::U8 };
        let raw = |shape: [usize; 3], batch, dtype| (data::raw(&shape, dtype), shape, batch, dtype);
        let (store, shape, batch, dtype) = match name {
            "ram-u8-224" => raw([3, SIDE, SIDE], 256, dtype),
            "small-u8-28" => raw([1, 28, 28], 1024, dtype),
            "custom" => {
                let sides: Vec<usize> = self.shape.split('x').filter_map(|side| side.parse().ok()).collect();
                let Ok(shape) = sides.try_into() else { fail("--shape takes three numbers, as in 3x224x224") };
                raw(shape, 256, dtype)
            }
            "jpeg" => match data::jpegs(&self.data.clone().unwrap_or_else(default_folder), 512) {
                Ok(store) => (store, [3, SIDE, SIDE], 256, DType::U8),
                Err(error) => fail(&format!("JPEGs for the case `jpeg`: {error}")),
            },
            other => fail(&format!("--case {other}: use ram-u8-224, small-u8-28, jpeg or custom")),
        };
        let name = if dtype == DType::F32 { name.replace("u8", "f32") } else { name.to_string() };
        let finish = match self.finish.as_str() {
            "scaled" => Finish::Scaled(DType::F32),
            "bf16" => Finish::Scaled(DType::BF16),
            "mix" => Finish::Mixed,
            _ => Finish::Raw,
        };
        Case {
            name,
            store,
            shape,
            dtype,
            batch: self.batch.unwrap_or(batch),
            finish,
            decoder: self.decoder,
            room: self.room,
        }
    }

    fn builder(&self, case: &Case, workers: usize) -> PinnedDataLoaderBuilder<Item, Batch> {
        let mut builder =
            PinnedDataLoaderBuilder::new(case.clone()).batch_size(case.batch).streaming_stores(self.streaming);
        builder = match workers {
            0 => builder.num_workers(Auto).prefetch(Auto),
            workers => builder.num_workers(workers).prefetch(self.prefetch),
        };
        if let Some(transfers) = self.transfers {
            builder = builder.transfer_threads(transfers);
        }
        if let Some(slots) = self.slots {
            builder = builder.pinned_limit(slots * (case.batch_bytes() + 128));
        }
        builder
    }

    fn source(&self, loader: &str, case: &Case, workers: usize, device: &Device, len: usize) -> Source {
        let dataset = Repeat { store: case.store, len };
        match loader {
            "pinned" => match self.builder(case, workers).set_device(device.clone()).build(dataset) {
                Ok(loader) => {
                    if self.timeline.is_some() {
                        loader.record(200_000); // 16 MB
                    }
                    Source::Pinned(loader)
                }
                Err(error) => fail(&error.to_string()),
            },
            "burn" => Source::Burn(
                DataLoaderBuilder::new(case.clone())
                    .batch_size(case.batch)
                    .num_workers(workers)
                    .set_device(device.clone())
                    .build(dataset),
            ),
            "resident" => {
                let items = (0..case.batch).map(|index| Item { store: case.store, index }).collect();
                let (x, labels) = case.batch(items, device);
                let finished = case.finish.run(x, labels, &mut KeyedRng::for_order(0, 0));
                Source::Resident(Box::new(finished.unwrap_or_else(|error| fail(&error.to_string()))))
            }
            other => fail(&format!("--loader {other}: use pinned, burn or resident")),
        }
    }

    /// Batches before the clock. A loader that is not outrun by the step fills its queue, 100 deep in Burn, while the clock
    /// stands still; what it took from there must be gone.
    fn warm(&self, case: &Case) -> usize {
        let queued = if self.matmuls.is_some() { 110 } else { 20 };
        self.warm.unwrap_or(if case.name == "jpeg" { 4 } else { queued })
    }
}

/// Where files like photographs are kept from run to run.
fn default_folder() -> PathBuf {
    std::env::temp_dir().join("burn-pinned-photos")
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2)
}

/// Runs one loader for one round.
fn drive(args: &Args, source: &Source, case: &Case, step: Option<&Step>, device: &Device) -> Figures {
    let warm = args.warm(case);
    let mut figures = Figures::default();
    let started = Instant::now();
    let mut epoch: Box<dyn Iterator<Item = Batch>> = match source {
        Source::Pinned(loader) => Box::new(loader.iter().map(|batch| batch.unwrap_or_else(|e| fail(&e.to_string())))),
        Source::Burn(loader) => Box::new(loader.iter().map(|batch| batch.unwrap_or_else(|e| fail(&e.to_string())))),
        Source::Resident(batch) => Box::new(std::iter::repeat(Batch::clone(batch))),
    };
    let (mut waits, mut clock, mut last) = (Vec::with_capacity(args.steps), started, None);
    let sync = || device.sync().unwrap_or_else(|error| fail(&error.to_string()));
    for nth in 0..warm + args.steps {
        if nth == warm {
            sync();
            clock = Instant::now();
        }
        let asked = Instant::now();
        let Some((x, labels)) = epoch.next() else { fail("the epoch ended early") };
        let waited = asked.elapsed();
        if nth == 0 {
            sync();
            figures.first_batch_ms = 1e3 * started.elapsed().as_secs_f64();
        } else if nth >= warm {
            waits.push(waited);
        }
        if let Some(step) = step {
            last = Some(step.run(x));
        }
        drop(labels);
    }
    sync();
    let time = clock.elapsed().as_secs_f64();
    drop((last, epoch));
    waits.sort_unstable();
    let quantile = |share: usize| waits.get(waits.len() * share / 100).map_or(0.0, |wait| 1e6 * wait.as_secs_f64());
    let items = (args.steps * case.batch) as f64;
    figures.items_per_s = items / time;
    figures.gb_per_s = items * case.row_bytes() as f64 / time / 1e9;
    figures.step_ms = 1e3 * time / args.steps as f64;
    (figures.wait_us_p50, figures.wait_us_p99) = (quantile(50), quantile(99));
    figures.device_mb = link::device_mb();
    if let Source::Pinned(loader) = source {
        let stats = loader.stats();
        if let Some(file) = &args.timeline {
            let is_picture = file.extension().is_some_and(|kind| kind == "svg");
            let timeline = loader.timeline();
            let timeline = if is_picture { timeline.last_batches(12) } else { timeline };
            timeline.save(file).unwrap_or_else(|error| fail(&format!("{}: {error}", file.display())));
            eprintln!("{}", stats.verdict());
        }
        figures.pinned_mb = Some(stats.host_bytes_peak as f64 / 1e6);
        figures.decoder = match (case.store, stats.stages.decode.count) {
            (Store::Raw { .. }, _) => None,
            (Store::Jpeg(_), 0) => Some("host"),
            (Store::Jpeg(_), _) => Some("device"),
        };
    }
    figures
}

/// What the same workers write into the same slots when nothing is sent anywhere: a CPU backend takes them as they are.
fn fill(args: &Args, case: &Case, workers: usize, device: &Device, len: usize) -> f64 {
    let alloc = burn_pinned::host_alloc(device, false).unwrap_or_else(|error| fail(&error.to_string()));
    let builder = args.builder(case, workers).set_device(Device::flex()).allocator(alloc);
    let dataset = Repeat { store: case.store, len };
    let loader = builder.build(dataset).unwrap_or_else(|error| fail(&error.to_string()));
    drive(args, &Source::Pinned(loader), case, None, &Device::flex()).gb_per_s
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints what the loader logs.
struct Log;

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("burn_pinned")
    }
    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}", record.args());
        }
    }
    fn flush(&self) {}
}

fn main() {
    let args = Args::parse();
    if args.log && log::set_logger(&Log).is_ok() {
        log::set_max_level(log::LevelFilter::Debug);
    }
    let device = args.device();
    let gpu = link::gpu();
    if !args.json {
        println!(
            "{} threads, {}",
            std::thread::available_parallelism().map_or(0, usize::from),
            gpu.as_deref().unwrap_or("no GPU")
        );
    }
    let date = time_of_day();
    for name in &args.case {
        let case = args.case(name);
        let step = args.matmuls.map(|matmuls| Step::new(matmuls, args.matmul_side, &device));
        for &workers in &args.workers {
            let len = case.batch * (args.warm(&case) + args.steps + 120);
            let mut all: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
            let (mut links, mut fills) = (Vec::new(), Vec::new());
            for round in 0..args.rounds {
                let link = link::gb_per_s(case.batch_bytes());
                let fill = (!args.no_fill).then(|| fill(&args, &case, workers, &device, len));
                links.extend(link);
                fills.extend(fill);
                for loader in &args.loader {
                    let source = args.source(loader, &case, workers, &device, len);
                    let figures = drive(&args, &source, &case, step.as_ref(), &device);
                    drop(source);
                    device.memory_cleanup();
                    if args.json {
                        println!(
                            "{}",
                            serde_json::json!({
                                "date": date, "gpu": gpu, "burn": "0.22.1", "burn_pinned": env!("CARGO_PKG_VERSION"),
                                "loader": loader, "case": case.name, "decoder": figures.decoder, "decoder_asked": format!("{:?}", args.decoder), "room": case.room, "batch": case.batch, "workers": workers,
                                "matmuls": args.matmuls, "matmul_side": args.matmul_side, "finish": args.finish, "round": round, "steps": args.steps,
                                "items_per_s": figures.items_per_s.round(), "gb_per_s": rounded(figures.gb_per_s, 3),
                                "link_gb_per_s": link.map(|rate| rounded(rate, 2)),
                                "fill_gb_per_s": fill.map(|rate| rounded(rate, 3)),
                                "step_ms": rounded(figures.step_ms, 3), "wait_us_p50": rounded(figures.wait_us_p50, 1),
                                "wait_us_p99": rounded(figures.wait_us_p99, 1),
                                "first_batch_ms": rounded(figures.first_batch_ms, 2),
                                "pinned_mb": figures.pinned_mb.map(|mb| rounded(mb, 1)),
                                "device_mb": figures.device_mb.map(|mb| rounded(mb, 1)),
                            })
                        );
                    }
                    all.entry(loader).or_default().push(figures);
                }
            }
            if !args.json {
                table(&args, &case, workers, &all, &links, &fills);
            }
        }
    }
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// Seconds since 1970, for the record.
fn time_of_day() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_secs()
}

fn table(args: &Args, case: &Case, workers: usize, all: &BTreeMap<&str, Vec<Figures>>, links: &[f64], fills: &[f64]) {
    let [c, h, w] = case.shape;
    println!(
        "\n{}: {} x [{c}, {h}, {w}] {}, {workers} workers, medians of {} rounds",
        case.name,
        case.batch,
        case.dtype.name(),
        args.rounds
    );
    if !links.is_empty() {
        println!("  raw link {:.1} GB/s", median(links.to_vec()));
    }
    if !fills.is_empty() {
        println!("  the workers alone fill {:.2} GB/s", median(fills.to_vec()));
    }
    println!(
        "  {:<9} {:>11} {:>8} {:>9} {:>11} {:>11} {:>9} {:>9}",
        "loader", "items/s", "GB/s", "ms/step", "wait p50 us", "wait p99 us", "first ms", "slots MB"
    );
    let of = |figures: &[Figures], pick: fn(&Figures) -> f64| median(figures.iter().map(pick).collect());
    for loader in &args.loader {
        let Some(figures) = all.get(loader.as_str()) else { continue };
        println!(
            "  {loader:<9} {:>11.0} {:>8.2} {:>9.2} {:>11.1} {:>11.1} {:>9.1} {:>9}",
            of(figures, |f| f.items_per_s),
            of(figures, |f| f.gb_per_s),
            of(figures, |f| f.step_ms),
            of(figures, |f| f.wait_us_p50),
            of(figures, |f| f.wait_us_p99),
            of(figures, |f| f.first_batch_ms),
            figures[0].pinned_mb.map_or("-".into(), |mb| format!("{mb:.1}")),
        );
    }
    if let (Some(ours), Some(burns)) = (all.get("pinned"), all.get("burn")) {
        let ratio =
            |pick: fn(&Figures) -> f64| median(ours.iter().zip(burns).map(|(a, b)| pick(a) / pick(b)).collect());
        println!(
            "  pinned / burn: {:.2} x the throughput, {:.2} x the time to the first batch",
            ratio(|f| f.items_per_s),
            ratio(|f| f.first_batch_ms)
        );
    }
}
