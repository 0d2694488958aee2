//! The simulation beside real processes, which read from a slow server here.

use super::{
    args::Cluster, cache::NodeCache, data::SimulatedData, orders::orders, report::EpochLoad, run::Run,
    training::Training,
};
use burn::tensor::Device;
use burn_pinned::{Distributed, PinnedDataLoaderBuilder, data::Rows, order::Sampler};
use burn_pinned_made::server::{Fault, Request, Server, folder};
use burn_pinned_tools::{
    collate::Count,
    order::Order,
    row::{self, Row},
};
use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

const SHARDS: usize = 128;
const SAMPLES: usize = 32;
const SEED: u64 = 7;
/// Of the server: milliseconds, and bytes a second.
const LATENCY: f64 = 40.0;
const BANDWIDTH: u64 = 6_000_000;

fn cluster(gpus: usize) -> Cluster {
    Cluster {
        nodes: 1,
        gpus,
        workers: 4,
        requests: 16,
        read_ahead: 2_000_000,
        cache: None,
        batch_size: 32,
        step: 20.0,
        decode: 0.05,
        detail: gpus,
        latency: LATENCY,
        bandwidth: Some(BANDWIDTH),
        node_bandwidth: None,
        rate: None,
        failures: 0.0,
        streams: None,
        seed: SEED,
    }
}

/// What the server has sent.
#[derive(Default)]
struct Sent {
    requests: u64,
    bytes: u64,
    /// When the last byte is sent of what it has promised.
    free: Option<Instant>,
}

/// A server with the limits of the store. All connections share its bandwidth.
fn server(folder_of_shards: &Path) -> (Server, Arc<Mutex<Sent>>) {
    let sent = Arc::<Mutex<Sent>>::default();
    let counted = Arc::clone(&sent);
    let bytes_of = |request: &Request| {
        let (first, last) = request.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some(last.parse::<u64>().ok()? + 1 - first.parse::<u64>().ok()?)
    };
    let server = Server::new(folder(folder_of_shards), move |request| {
        let Some(bytes) = bytes_of(request).filter(|_| !request.is_head) else { return Fault::None };
        let now = Instant::now();
        let mut sent = counted.lock().unwrap();
        (sent.requests, sent.bytes) = (sent.requests + 1, sent.bytes + bytes);
        let answers = now + Duration::from_secs_f64(LATENCY / 1e3);
        let takes = Duration::from_secs_f64(bytes as f64 / BANDWIDTH as f64);
        let last = sent.free.map_or(answers, |free| free.max(answers)) + takes;
        sent.free = Some(last);
        Fault::Paced(last - takes - now, takes)
    });
    (server, sent)
}

fn write_tars(folder: &Path) {
    for shard in 0..SHARDS {
        let mut tar = tar::Builder::new(fs::File::create(folder.join(format!("{shard:03}.tar"))).unwrap());
        for sample in 0..SAMPLES {
            let row = shard * SAMPLES + sample;
            let bytes = vec![row as u8; 4000 + row * 7919 % 8000];
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, format!("{row:06}.bin"), &*bytes).unwrap();
        }
        tar.finish().unwrap();
    }
}

fn rows(url: &str, index_dir: &Path, cluster: &Cluster) -> Rows<Row> {
    row::choose(&["bin".into()]);
    let rows = Rows::<Row>::tar(url).index_dir(index_dir);
    rows.read_ahead(cluster.read_ahead).requests(cluster.requests).open().unwrap()
}

/// A process of the test below, which tells it what to do.
#[test]
#[ignore = "the test beside it runs it"]
fn one_of_several_processes() {
    let Ok(url) = env::var("SIMULATED_URL") else { return };
    let number = |name: &str| env::var(name).unwrap().parse::<usize>().unwrap();
    let (rank, world, order) = (number("SIMULATED_RANK"), number("SIMULATED_WORLD"), number("SIMULATED_ORDER"));
    let cluster = cluster(world);
    let rows = rows(&url, env::var("SIMULATED_INDEX").unwrap().as_ref(), &cluster);
    let builder = PinnedDataLoaderBuilder::new(Count)
        .batch_size(cluster.batch_size)
        .num_workers(cluster.workers)
        .set_device(Device::flex())
        .distributed(Distributed::new(rank, world).unwrap());
    let order = [Order::Full, Order::Blocks, Order::Sequential][order];
    let (builder, _) = order.set(builder, Some(rows.blocks().unwrap().into()), SEED).unwrap();
    let loader = builder.build(rows).unwrap();
    // As in a training, a step begins when all processes have its batch.
    let wait_for_others = || {
        println!("\nready");
        assert!(std::io::stdin().read_line(&mut String::new()).unwrap() > 0);
    };
    wait_for_others();
    let begun = Instant::now();
    for batch in loader.iter() {
        assert!(batch.unwrap().rows > 0);
        wait_for_others();
        thread::sleep(Duration::from_secs_f64(cluster.step / 1e3));
    }
    println!("\ntook {}", begun.elapsed().as_secs_f64());
}

/// Starts processes and lets them read an epoch at the same time. Returns the longest time. What the server sends for it is in `sent`.
fn read_by_processes(world: usize, order: usize, url: &str, index: &Path, sent: &Mutex<Sent>) -> f64 {
    let start = |rank: usize| {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "simulate::tests::one_of_several_processes", "--ignored", "--nocapture"])
            .env("SIMULATED_URL", url)
            .env("SIMULATED_INDEX", index)
            .envs(
                [("SIMULATED_RANK", rank), ("SIMULATED_WORLD", world), ("SIMULATED_ORDER", order)]
                    .map(|(name, value)| (name, value.to_string())),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut processes: Vec<_> = (0..world).map(start).collect();
    let mut lines: Vec<_> =
        processes.iter_mut().map(|process| BufReader::new(process.stdout.take().unwrap()).lines()).collect();
    let mut line_of = |rank: usize, begin: &str| {
        lines[rank].find_map(|line| Some(line.unwrap().strip_prefix(begin)?.to_owned())).unwrap()
    };
    for step in 0..=cluster(world).steps(SHARDS * SAMPLES) {
        (0..world).for_each(|rank| drop(line_of(rank, "ready")));
        if step == 0 {
            *sent.lock().unwrap() = Sent::default();
        }
        processes.iter_mut().for_each(|process| writeln!(process.stdin.as_mut().unwrap(), "go").unwrap());
    }
    let longest = (0..world).map(|rank| line_of(rank, "took ").parse().unwrap()).fold(0.0, f64::max);
    processes.into_iter().for_each(|mut process| assert!(process.wait().unwrap().success()));
    longest
}

fn run(run: Run<'_>, caches: &mut [NodeCache]) -> EpochLoad {
    Training::simulate(&run, caches).unwrap()
}

fn simulated(world: usize, sampler: &Arc<dyn Sampler>, data: &SimulatedData) -> EpochLoad {
    let steps = cluster(world).steps(SHARDS * SAMPLES);
    run(Run { cluster: cluster(world), data, sampler, epoch: 0, given: 0, steps }, &mut [NodeCache::new(None)])
}

#[test]
#[ignore = "takes a minute, and a machine that does nothing else"]
fn real_processes_do_what_is_simulated() {
    let (shards, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_tars(shards.path());
    let (server, sent) = server(shards.path());
    let url = server.url(&format!("/{{000..{:03}}}.tar", SHARDS - 1));
    let rows = rows(&url, index.path(), &cluster(1));
    let data = SimulatedData::of(&rows).unwrap();
    let mut wrong = 0;
    println!("order            processes   requests      bytes  seconds, each real and simulated");
    for world in [1, 2, 4] {
        let all = orders(&data.blocks, &cluster(world));
        for (number, (order, sampler)) in [&all[0], &all[1], &all[3]].into_iter().enumerate() {
            let seconds = read_by_processes(world, number, &url, index.path(), &sent);
            let (real, load) = (sent.lock().unwrap(), simulated(world, sampler, &data));
            println!(
                "{:<16} {world:>9} {:>6} {:>6} {:>10} {:>10} {seconds:>6.2} {:>6.2}",
                order, real.requests, load.requests, real.bytes, load.bytes, load.seconds
            );
            let within = |real: f64, simulated: f64, share: f64| (real - simulated).abs() <= share * real;
            wrong += usize::from(!within(real.requests as f64, load.requests, 0.05));
            wrong += usize::from(!within(real.bytes as f64, load.bytes, 0.01));
            wrong += usize::from(!within(seconds, load.seconds, 0.2));
        }
    }
    assert_eq!(wrong, 0, "figures above are too far apart");
}

#[test]
fn a_run_reads_each_sample_once_and_is_the_same_again() {
    let data = SimulatedData::made_up(10, 1280, 10_000);
    let cluster = Cluster { cache: Some(1 << 30), failures: 0.05, ..cluster(4) };
    let [.., (_, in_order)] = orders(&data.blocks, &cluster);
    let runs = || {
        let mut caches = [NodeCache::new(cluster.cache)];
        let epoch = |epoch| Run { cluster, data: &data, sampler: &in_order, epoch, given: 0, steps: 10 };
        [0, 1].map(|number| run(epoch(number), &mut caches))
    };
    let [first, second] = runs();
    assert_eq!((first.used, first.steps, first.failed), (12_800_000.0, 10, 0.0));
    assert!(first.refused_per_s > 0.0 && first.bytes > first.used, "pages are longer than samples");
    assert_eq!((second.requests, second.used), (0.0, 12_800_000.0));
    assert!(second.first_batch_s < first.first_batch_s && second.cache_hits >= 1.0);
    assert_eq!(format!("{:?}", runs()), format!("{:?}", [first, second]));
}

/// Several processes take single samples of the blocks of one stream. With a stream of its own, a process takes neighbours.
#[test]
fn a_store_that_refuses_gives_more_bytes_to_a_stream_for_each_process() {
    let data = SimulatedData::made_up(64, 64 * 400, 50_000);
    let cluster = Cluster { read_ahead: 100_000_000, rate: Some(400), bandwidth: None, ..cluster(16) };
    let [(_, full), _, (_, blocks), _] = orders(&data.blocks, &cluster);
    let load = |sampler| {
        run(Run { cluster, data: &data, sampler, epoch: 0, given: 0, steps: 50 }, &mut [NodeCache::new(None)])
    };
    let (full, blocks) = (load(&full), load(&blocks));
    assert_eq!(full.used, blocks.used);
    assert!(2.0 * blocks.requests < full.requests, "{full:?} {blocks:?}");
    assert!(blocks.seconds < full.seconds);
}
