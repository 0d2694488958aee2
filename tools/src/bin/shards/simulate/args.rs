//! The options of `shards simulate`.

use super::data::SimulatedData;
use burn_pinned::BoxError;
use burn_pinned_tools::{
    format::Format,
    open::Open,
    row::{self, Row},
    size::{self, several, show_bytes},
};
use clap::builder::RangedU64ValueParser;
use std::path::PathBuf;

/// Computes what a data set on a store would do on many nodes. Only the data set's index is read
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files, globs or URLs of a data set. Without them, one is made up: --shards, --samples, --bytes
    pub(super) paths: Vec<PathBuf>,
    /// Columns to read: of a tar the extensions. Without it, all
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    columns: Vec<String>,
    /// Made up: the number of shards
    #[arg(long, default_value_t = 1024, value_parser = at_least_1())]
    pub(super) shards: usize,
    /// Made up: the number of samples
    #[arg(long, default_value_t = 10_000_000, value_parser = at_least_1())]
    pub(super) samples: usize,
    /// Made up: the bytes of a sample
    #[arg(long, default_value = "110kB", value_parser = size::bytes)]
    pub(super) bytes: u64,
    #[command(flatten)]
    pub(super) cluster: Cluster,
    /// Epochs, one after the other
    #[arg(long, default_value_t = 2, value_parser = at_least_1())]
    pub(super) epochs: usize,
    /// The most steps of an epoch that are simulated
    #[arg(long, default_value_t = 200, value_parser = at_least_1())]
    pub(super) steps: usize,
    /// Print lines of JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
    /// Draw a picture of the waits
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// The machines that read, and what the store and the network give.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct Cluster {
    #[arg(long, default_value_t = 8, value_parser = at_least_1())]
    pub(super) nodes: usize,
    /// Processes of a node, each with a GPU
    #[arg(long, default_value_t = 8, value_parser = at_least_1())]
    pub(super) gpus: usize,
    /// Threads of a process that read
    #[arg(long, default_value_t = 8, value_parser = at_least_1())]
    pub(super) workers: usize,
    /// Requests of a process at once
    #[arg(long, default_value_t = 64, value_parser = at_least_1())]
    pub(super) requests: usize,
    /// Bytes that a process fetches ahead
    #[arg(long, default_value = "512MB", value_parser = size::bytes)]
    pub(super) read_ahead: u64,
    /// The cache of a node in bytes. Without it, there is none
    #[arg(long, value_parser = size::bytes, value_name = "BYTES")]
    pub(super) cache: Option<u64>,
    /// Samples of a batch of one process
    #[arg(long, default_value_t = 64, value_parser = at_least_1())]
    pub(super) batch_size: usize,
    /// Milliseconds of a step
    #[arg(long, default_value_t = 200.0, value_name = "MS")]
    pub(super) step: f64,
    /// Milliseconds that a worker takes for a sample that is there
    #[arg(long, default_value_t = 1.0, value_name = "MS")]
    pub(super) decode: f64,
    /// How many processes are simulated one by one, in whole nodes. The load of the others is theirs, scaled
    #[arg(long, default_value_t = 16, value_parser = at_least_1())]
    pub(super) detail: usize,
    /// Milliseconds to the first byte
    #[arg(long, default_value_t = 50.0, value_name = "MS")]
    pub(super) latency: f64,
    /// Bytes a second of the store for all nodes
    #[arg(long, value_parser = size::bytes, value_name = "BYTES")]
    pub(super) bandwidth: Option<u64>,
    /// Bytes a second of each node
    #[arg(long, value_parser = size::bytes, value_name = "BYTES")]
    pub(super) node_bandwidth: Option<u64>,
    /// Requests a second of the store. More are refused, and made again
    #[arg(long, value_name = "N")]
    pub(super) rate: Option<u64>,
    /// The share of requests that fail, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(super) failures: f64,
    /// Streams of a second shuffle by blocks. Without it, one for each process
    #[arg(long)]
    pub(super) streams: Option<usize>,
    #[arg(long, default_value_t = 42)]
    pub(super) seed: u64,
}

impl Cluster {
    pub(super) fn world(&self) -> usize {
        self.nodes * self.gpus
    }

    /// The steps of an epoch of so many samples.
    pub(super) fn steps(&self, samples: usize) -> usize {
        samples.div_ceil(self.world()).div_ceil(self.batch_size)
    }

    /// The number of nodes that are simulated one by one.
    pub(super) fn nodes_in_detail(&self) -> usize {
        (self.detail / self.gpus).clamp(1, self.nodes)
    }

    /// Their share of the nodes.
    pub(super) fn share(&self) -> f64 {
        self.nodes_in_detail() as f64 / self.nodes as f64
    }
}

impl Args {
    pub(super) fn data(&self) -> Result<SimulatedData, BoxError> {
        if self.cluster.world() > 8192 {
            return Err("at most 8,192 processes can be simulated".into());
        }
        if self.paths.is_empty() {
            return Ok(SimulatedData::made_up(self.shards, self.samples, self.bytes));
        }
        row::choose(&self.columns);
        let open = Open::of(self.paths.clone(), Format::guess(&self.paths)?);
        SimulatedData::of(&open.rows::<Row>(&[], &[])?)
    }

    /// What is simulated, in words.
    pub(super) fn title(&self, data: &SimulatedData) -> String {
        let (rows, bytes) = (several(data.rows, "sample"), show_bytes(data.layout.objects.iter().sum()));
        let (steps, detail) = (self.cluster.steps(data.rows), self.cluster.nodes_in_detail() * self.cluster.gpus);
        let (some, all, world) = (steps.min(self.steps), several(steps, "step"), self.cluster.world());
        format!("{rows}, {bytes}; {some} of {all} of an epoch; {detail} of {world} processes, the others scaled")
    }
}

fn at_least_1() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}
