//! Several GPUs of one host: how fast one loader that Burn cuts for them feeds them, or a loader for each; what links and
//! workers allow; what a step takes.
//!
//!     cargo bench --features cuda --bench devices -- --help

#[path = "devices/batch.rs"]
mod batch;
#[path = "devices/by_hand.rs"]
mod by_hand;
#[path = "support/data.rs"]
mod data;
#[path = "devices/feed.rs"]
mod feed;
#[path = "support/link.rs"]
#[allow(dead_code, reason = "the bench `loaders` needs the rest of it")]
mod link;
#[path = "devices/links.rs"]
mod links;
#[path = "support/logger.rs"]
mod logger;
#[path = "devices/machine.rs"]
mod machine;
#[path = "devices/report.rs"]
mod report;
#[path = "devices/step.rs"]
mod step;
#[path = "devices/window.rs"]
mod window;

use batch::{Case, ROW};
use burn::tensor::{DType, Device};
use burn_pinned::{BoxError, memory::Decoder};
use clap::Parser;
use data::SIDE;
use feed::{Ceiling, Feed};
use report::{Place, Report, each, rounded};
use serde_json::{Value, json};
use std::{
    num::NonZeroUsize,
    path::PathBuf,
    process::{ExitCode, exit},
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};
use step::Work;
use window::Start;

const CASES: [&str; 8] = ["topology", "links", "by-hand", "by-batch", "ram", "loaders", "jpeg", "step"];

/// The time of one link alone, per round.
const ALONE: Duration = Duration::from_millis(300);

/// Beyond the limit of the run: what the last measurement may take.
const GRACE: Duration = Duration::from_secs(60);

/// Measures loaders that feed several devices of one host.
#[derive(Parser)]
struct Args {
    /// Numbers of devices; by default 1 and all. Those that the host does not have are left out
    #[arg(long, value_delimiter = ',')]
    devices: Vec<usize>,
    /// Worker threads of all devices together; by default all cores less one in eight. With 0 the loaders choose, which takes
    /// them some seconds
    #[arg(long, value_delimiter = ',')]
    workers: Vec<usize>,
    /// Says on stderr what the loaders log, as what `--workers 0` makes them try
    #[arg(long)]
    log: bool,
    /// Rounds; in each, everything is measured once
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// What to measure; `ram` and `jpeg` have one loader for all devices, `loaders` is `ram` with one for each, `by-hand` with
    /// none, `by-batch` with none and whole batches
    #[arg(long, value_delimiter = ',', default_values = CASES, value_parser = CASES)]
    cases: Vec<String>,
    /// Samples per batch
    #[arg(long, default_value_t = 256)]
    batch: usize,
    /// Steps of the case `step` from one wait for the device to the next
    #[arg(long, default_value = "10")]
    every: NonZeroUsize,
    /// Slots of each device; by default as many as the loader chooses
    #[arg(long)]
    slots: Option<usize>,
    /// Threads that copy to each device; by default as many as the loader chooses
    #[arg(long)]
    transfers: Option<usize>,
    /// Folder of JPEGs for the case `jpeg`; without files it gets 512 like photographs
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where the images of the case `jpeg` are decoded: auto, host or device
    #[arg(long, default_value = "auto")]
    decoder: Decoder,
    /// No measurement begins after this number of seconds
    #[arg(long, default_value_t = 200)]
    limit: u64,
    /// JSON lines
    #[arg(long)]
    json: bool,
    /// `cargo bench` passes it
    #[arg(long, hide = true)]
    bench: bool,
}

/// What all measurements need.
struct Bench {
    args: Args,
    begun: Instant,
    time: Duration,
    report: Report,
    /// All devices of the host, or stand-ins.
    devices: Vec<Device>,
    gpus: bool,
    ram: Option<Case>,
    jpeg: Option<Case>,
    work: Option<Work>,
    /// Whether a measurement has failed.
    failed: bool,
}

impl Bench {
    fn new(args: Args) -> Result<Self, BoxError> {
        let begun = Instant::now();
        let (devices, gpus) = match links::devices() {
            Ok(devices) => (devices, true),
            Err(problem) => {
                eprintln!("{problem}: CPU devices stand in for GPUs, and there are no links");
                (vec![Device::flex(); args.devices.iter().copied().max().unwrap_or(2)], false)
            }
        };
        let has = |case: &str| args.cases.iter().any(|wanted| wanted == case);
        let case = |store| Case {
            store,
            batch: args.batch,
            decoder: args.decoder,
            slots: args.slots,
            transfers: args.transfers,
        };
        let ram = ["by-hand", "by-batch", "ram", "loaders", "step"].into_iter().any(has);
        let ram = ram.then(|| case(data::raw(&[3, SIDE, SIDE], DType::U8)));
        let jpeg = if has("jpeg") {
            let folder = args.data.clone().unwrap_or_else(|| std::env::temp_dir().join("burn-pinned-photos"));
            Some(case(data::jpegs(&folder, 512)?))
        } else {
            None
        };
        let time = Duration::try_from_secs_f64(args.seconds)?;
        let report = Report::new(args.json);
        Ok(Self { args, begun, time, report, devices, gpus, ram, jpeg, work: None, failed: false })
    }

    /// The numbers of devices to measure.
    fn counts(&self) -> Vec<usize> {
        let all = self.devices.len();
        let mut counts = match self.args.devices.is_empty() {
            true => vec![1, all],
            false => self.args.devices.clone(),
        };
        counts.retain(|count| (1..=all).contains(count));
        counts.dedup();
        counts
    }

    /// The numbers of workers to measure.
    fn workers(&self) -> Vec<usize> {
        match self.args.workers.is_empty() {
            true => vec![usual_workers()],
            false => self.args.workers.clone(),
        }
    }

    fn has(&self, case: &str) -> bool {
        self.args.cases.iter().any(|wanted| wanted == case)
    }

    /// Measures something and prints it, unless it is not wanted or too late. What fails is told, and the rest goes on.
    fn measure(&mut self, case: &str, place: Place, run: impl FnOnce(&mut Self) -> Result<Value, BoxError>) {
        if !self.has(case) {
            return;
        }
        let Place { devices, workers, round } = place;
        if self.begun.elapsed().as_secs() >= self.args.limit {
            eprintln!("left out after {} s: {case}, {devices} devices, round {round}", self.args.limit);
            return;
        }
        match run(self) {
            Ok(figures) => self.report.print(case, place, &figures),
            Err(error) => {
                eprintln!("{case}, {devices} devices, round {round}: {error}");
                self.failed = true;
            }
        }
        let used = if workers.is_some() { devices } else { 0 };
        self.devices[..used].iter().for_each(Device::memory_cleanup);
    }

    fn round(&mut self, round: usize) {
        let counts = self.counts();
        let bytes = self.args.batch * ROW;
        let most = counts.iter().copied().max().unwrap_or(0);
        let mut alone = Vec::new();
        for devices in counts {
            let place = Place { devices, workers: None, round };
            if self.gpus {
                self.measure("links", place, |bench| {
                    if alone.is_empty() {
                        let one = |nth| links::copy(nth, bytes, &Start::new(1, ALONE));
                        alone = (0..most).map(one).collect::<Result<Vec<_>, BoxError>>()?;
                    }
                    let all = links::together(devices, bytes, &Start::new(devices, bench.time))?;
                    Ok(json!({
                        "gb_per_s": rounded(all.iter().sum(), 2),
                        "gb_per_s_each": each(&all, 2),
                        "gb_per_s_alone": each(&alone[..devices], 2),
                    }))
                });
            }
            for workers in self.workers() {
                self.loaders(Place { workers: Some(workers), ..place }, workers);
            }
        }
    }

    /// Measures loaders with `workers` workers. 0 stands for the usual number.
    fn loaders(&mut self, place: Place, workers: usize) {
        let Place { devices: count, round, .. } = place;
        let devices = self.devices[..count].to_vec();
        let fixed = if workers == 0 { usual_workers() } else { workers };
        let mut ceiling = None;
        // Each comes first in turn.
        let mut both = [("ram", Feed::cut as Build), ("loaders", Feed::separate as Build)];
        both.rotate_left(round % 2);
        for (name, build) in both {
            self.measure(name, place, |bench| {
                let case = bench.ram.as_ref().ok_or("no data")?;
                let limit = match ceiling {
                    Some(limit) => limit,
                    None => *ceiling.insert(Ceiling::measure(case, &devices, fixed, bench.gpus, bench.time)?),
                };
                let mut figures = build(case, &devices, workers)?.figures(case, &devices, bench.time)?;
                let rate = figures["gb_per_s"].as_f64().unwrap_or(f64::NAN);
                figures["fill_gb_per_s"] = json!(rounded(limit.fill, 3));
                figures["links_gb_per_s"] = json!(limit.links.map(|links| rounded(links, 2)));
                figures["ceiling_gb_per_s"] = json!(rounded(limit.lower(), 3));
                figures["of_ceiling"] = json!(rounded(rate / limit.lower(), 4));
                Ok(figures)
            });
        }
        let by_hand: &[_] = if self.gpus { &[("by-hand", false), ("by-batch", true)] } else { &[] };
        for &(name, whole) in by_hand {
            self.measure(name, place, |bench| {
                let case = bench.ram.as_ref().ok_or("no data")?;
                let all = by_hand::feed(case, count, fixed, whole, &Start::new(count, bench.time))?;
                let sum = rounded(all.iter().sum(), 3);
                Ok(json!({ "batch": case.batch, "gb_per_s": sum, "gb_per_s_each": each(&all, 3) }))
            });
        }
        self.measure("jpeg", place, |bench| {
            let case = bench.jpeg.as_ref().ok_or("no data")?;
            let mut figures = Feed::cut(case, &devices, workers)?.figures(case, &devices, bench.time)?;
            figures["decoder_asked"] = json!(format!("{:?}", case.decoder));
            Ok(figures)
        });
        self.measure("step", place, |bench| {
            let case = bench.ram.as_ref().ok_or("no data")?;
            let work = match bench.work {
                Some(work) => work,
                None => {
                    let side = if bench.gpus { 4096 } else { 128 };
                    *bench.work.insert(Work::calibrate(case, &devices[0], side, bench.args.every.get())?)
                }
            };
            let feed = Feed::cut(case, &devices, workers)?;
            work.run(case, &feed, &devices, bench.time, round, bench.gpus)
        });
    }
}

/// All cores less one in eight.
fn usual_workers() -> usize {
    let cores = available_parallelism().map_or(1, usize::from);
    (cores - cores / 8).max(1)
}

/// Makes the loaders of some devices.
type Build = fn(&Case, &[Device], usize) -> Result<Feed, BoxError>;

fn main() -> Result<ExitCode, BoxError> {
    let args = Args::parse();
    if args.log {
        logger::start();
    }
    let (limit, rounds) = (Duration::from_secs(args.limit), args.rounds);
    // A measurement that hangs must not keep an expensive machine.
    thread::spawn(move || {
        thread::sleep(limit + GRACE);
        eprintln!("a measurement hangs");
        exit(3)
    });
    let mut bench = Bench::new(args)?;
    let all = Place { devices: bench.devices.len(), workers: None, round: 0 };
    bench.measure("topology", all, |bench| Ok(machine::look(bench.devices.len())));
    for round in 0..rounds {
        bench.round(round);
    }
    Ok(if bench.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
