//! The results: a table, lines of JSON, or a picture.

use super::{args::Args, data::SimulatedData, orders::Planning, picture::picture};
use burn_pinned::BoxError;
use burn_pinned_tools::size::{count, show_bytes, time};
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// What the store had sent at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoreTraffic {
    pub(super) requests: u64,
    /// Requests that the store refused.
    pub(super) refusals: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// What the processes of an epoch did that were simulated one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EpochLoad {
    /// How many times as much all processes do.
    pub(super) scale: f64,
    pub(super) traffic: StoreTraffic,
    /// The traffic before the steps whose rates are shown. At first, a process fetches faster than it reads.
    pub(super) before: StoreTraffic,
    /// Parts that were given up after several refusals.
    pub(super) failures: u64,
    /// Bytes that rows needed, and bytes from caches.
    pub(super) used: u64,
    pub(super) cached: u64,
    pub(super) first_batch: f64,
    pub(super) steps: usize,
    /// Steps that waited, except the first, and the seconds that they waited.
    pub(super) waits: usize,
    pub(super) waited: f64,
    /// The part of `waited` in which only some processes waited: the longest wait of each step, less the mean one.
    pub(super) skew: f64,
}

impl EpochLoad {
    pub(super) fn all_requests(&self) -> f64 {
        self.traffic.requests as f64 * self.scale
    }

    pub(super) fn all_bytes(&self) -> f64 {
        self.traffic.bytes as f64 * self.scale
    }

    /// Requests, refused requests and bytes a second of all processes.
    pub(super) fn rates(&self) -> [f64; 3] {
        let of = |traffic: &StoreTraffic| [traffic.requests, traffic.refusals, traffic.bytes];
        let ([requests, refusals, bytes], before) = (of(&self.traffic), of(&self.before));
        let a_second = self.scale / (self.traffic.seconds - self.before.seconds);
        [requests - before[0], refusals - before[1], bytes - before[2]].map(|more| more as f64 * a_second)
    }

    /// The share of the steps that wait, after the first one.
    pub(super) fn waiting(&self) -> f64 {
        self.waits as f64 / self.steps.saturating_sub(1).max(1) as f64
    }

    fn hits(&self) -> f64 {
        self.cached as f64 / self.used.max(1) as f64
    }

    fn json(&self) -> Value {
        let [requests, refusals, bytes] = self.rates();
        json!({
            "requests": self.all_requests(), "bytes": self.all_bytes(), "requests_per_s": requests,
            "refused_per_s": refusals, "bytes_per_s": bytes, "failed": self.failures as f64 * self.scale,
            "seconds": self.traffic.seconds, "first_batch_s": self.first_batch, "steps": self.steps,
            "waiting_steps": self.waiting(), "waited_s": self.waited, "skew_s": self.skew, "cache_hits": self.hits(),
        })
    }
}

/// What it costs that a node is lost at the half of an epoch.
pub(super) struct LostNode {
    /// Requests and bytes more than in an epoch that is not interrupted.
    requests: f64,
    bytes: f64,
    rest: EpochLoad,
}

impl LostNode {
    pub(super) fn new(whole: Option<&EpochLoad>, half: &EpochLoad, rest: EpochLoad) -> Self {
        let more = |of: fn(&EpochLoad) -> f64| of(half) + of(&rest) - whole.map_or(0.0, of);
        Self { requests: more(EpochLoad::all_requests), bytes: more(EpochLoad::all_bytes), rest }
    }
}

pub(super) struct OrderReport {
    pub(super) name: String,
    /// The steps that were simulated, and those of an epoch.
    pub(super) steps: (usize, usize),
    pub(super) plan: Planning,
    pub(super) epochs: Vec<EpochLoad>,
    pub(super) lost: Option<LostNode>,
}

impl OrderReport {
    fn print(&self) {
        for (number, load) in (1..).zip(&self.epochs) {
            let name = if number == 1 { &*self.name } else { "" };
            let [requests, refusals, bytes] = load.rates();
            println!(
                "{name:<22}{number:>5}{:>12}{:>12}{:>11}{:>8}{:>12}{:>10}{:>10}",
                count(requests as u64),
                show_bytes(bytes as u64),
                count(refusals as u64),
                format!("{:.0} %", 100.0 * load.waiting()),
                seconds(load.first_batch),
                seconds(load.skew / load.steps as f64),
                format!("{:.0} %", 100.0 * load.hits()),
            );
        }
        let Self { plan, lost, .. } = self;
        let memory = plan.bytes.map_or("unknown memory".into(), show_bytes);
        print!("{:<22}planned in {}, {memory}", "", time(plan.time));
        if let Some(LostNode { requests, bytes, rest }) = lost {
            let more = |more: f64| more.max(0.0) as u64;
            let (requests, bytes) = (count(more(*requests)), show_bytes(more(*bytes)));
            print!("; a lost node: {requests} requests more, {bytes}, first batch after {}", seconds(rest.first_batch));
        }
        let failed: f64 = self.epochs.iter().map(|load| load.failures as f64 * load.scale).sum();
        if failed > 0.0 {
            print!("; {} reads given up", count(failed as u64));
        }
        println!();
    }

    fn json(&self) -> Value {
        let lost = self
            .lost
            .as_ref()
            .map(|lost| json!({"more_requests": lost.requests, "more_bytes": lost.bytes, "rest": lost.rest.json()}));
        json!({
            "order": self.name, "steps": self.steps.0, "steps_of_epoch": self.steps.1,
            "plan_s": self.plan.time.as_secs_f64(), "plan_bytes": self.plan.bytes,
            "epochs": self.epochs.iter().map(EpochLoad::json).collect::<Vec<_>>(), "lost_node": lost,
        })
    }
}

fn seconds(seconds: f64) -> String {
    time(Duration::from_secs_f64(seconds))
}

pub(super) struct Report<'a> {
    args: &'a Args,
    title: String,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a Args, data: &SimulatedData) -> Self {
        let (cluster, bytes) = (&args.cluster, data.layout.objects.iter().sum());
        let detail = cluster.nodes_in_detail() * cluster.gpus;
        let title = format!(
            "{} samples in {} shards, {}; {} nodes of {} processes, {detail} processes one by one, the others scaled",
            count(data.rows as u64),
            count(data.layout.objects.len() as u64),
            show_bytes(bytes),
            count(cluster.nodes as u64),
            cluster.gpus,
        );
        Self { args, title }
    }

    pub(super) fn write(&self, orders: &[OrderReport]) -> Result<(), BoxError> {
        if self.args.json {
            orders.iter().for_each(|order| println!("{}", order.json()));
        } else {
            println!("{}", self.title);
            if let Some((some, all)) = orders.iter().map(|order| order.steps).find(|(some, all)| some < all) {
                println!("of each epoch, the first {} of {} steps", count(some as u64), count(all as u64));
            }
            println!(
                "\n{:<22}{:>5}{:>12}{:>12}{:>11}{:>8}{:>12}{:>10}{:>10}",
                "order", "epoch", "requests/s", "bytes/s", "refused/s", "wait", "first batch", "skew", "cached"
            );
            orders.iter().for_each(OrderReport::print);
        }
        if let Some(file) = &self.args.svg {
            fs::write(file, picture(&self.title, orders))?;
        }
        Ok(())
    }
}
