//! How fast `.npy` members of tars are read: arrays and megabytes a second. `peer_npy.py` makes the tars, and reads them by webdataset.
//!
//!     python benches/peer_npy.py make /tmp/npy
//!     cargo bench -p burn-shards --bench npy -- /tmp/npy 2
//!     python benches/peer_npy.py read /tmp/npy 2

use burn::data::dataset::Dataset;
use burn_shards::{Array, Rows};
use std::{
    env,
    error::Error,
    hint::black_box,
    path::Path,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

const PASSES: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(folder) = arguments.next() else { return Ok(()) }; // `cargo test --benches` has none
    let threads = arguments.next().map_or(Ok(2), |threads| threads.parse())?;
    for size in ["small", "medium", "large"] {
        let path = Path::new(&folder).join(size).join("*.tar");
        let rows = Rows::<(Array<f32>,)>::tar(path).columns(["npy"]).open()?;
        let bytes = rows.sizes("npy")?.iter().sum::<usize>() as f64 / 1e6;
        let best = (0..PASSES).map(|_| pass(&rows, threads)).min().unwrap_or_default().as_secs_f64();
        println!("{size}: {:.0} arrays/s, {:.0} MB/s", rows.len() as f64 / best, bytes / best);
    }
    Ok(())
}

/// Reads all rows once: each thread has a part of them, as a loader's workers have.
fn pass(rows: &Rows<(Array<f32>,)>, threads: usize) -> Duration {
    let start = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let read = |thread: usize| {
            start.wait();
            for row in (thread..rows.len()).step_by(threads) {
                black_box(rows.get(row).expect("a whole tar"));
            }
        };
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || read(thread))).collect();
        start.wait();
        let started = Instant::now();
        workers.into_iter().for_each(|worker| worker.join().expect("a thread that reads"));
        started.elapsed()
    })
}
