//! `num_workers(Auto)`, the default, and `prefetch(Auto)`: fewer workers if they have little to do, and all of them if they have
//! much.

mod common;

use burn::data::dataloader::DataLoader;
use burn_pinned::{Auto, PinnedDataLoaderBuilder};
use common::{Mischief, Numbers, Show, builder, keep_log, logged, numbers};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// This is one test, because the log belongs to the process.
#[test]
fn workers_that_are_not_needed_rest_and_come_back() {
    keep_log(log::LevelFilter::Debug);
    // A worker needs 100 us for a sample, so 0.8 ms for a batch of 8. The step takes 4 ms, and later no time.
    const BATCHES: usize = 4000;
    let mut dataset = Numbers::new(8 * BATCHES);
    for index in 0..dataset.len {
        dataset = dataset.with(index, Mischief::Sleep(Duration::from_micros(100)));
    }
    let default = PinnedDataLoaderBuilder::new(Show { width: 13 }).batch_size(8).set_device(common::device());
    let loader = default.prefetch(Auto).build(dataset).unwrap();
    let (mut seen, start) = (Vec::new(), Instant::now());
    for (nth, batch) in loader.iter().enumerate() {
        seen.extend(batch.unwrap().numbers);
        sleep(Duration::from_millis(if nth < 1000 { 4 } else { 0 }));
    }
    assert_eq!(seen, (0..8 * BATCHES as i64).collect::<Vec<i64>>(), "what is loaded does not depend on it");
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let most = if most < 8 { most } else { most - 1 };
    let lines = logged().join("\n");
    println!("{lines}\nin {:.1?}\n{}", start.elapsed(), loader.stats());
    if most > 1 {
        let trial = lines.find(&format!("burn-pinned: workers {most} -> ")).unwrap_or_else(|| panic!("{lines}"));
        assert!(lines[trial..].lines().next().unwrap().ends_with("a trial"), "{lines}");
        let judged = ["are kept: ", &format!("-> {most}: ")].map(|said| lines[trial..].contains(said));
        assert!(judged.contains(&true), "a trial has an end: {lines}");
        if let Some(alone) = lines.find("workers 1 are kept: ") {
            assert!(lines[alone..].contains("workers 1 -> "), "the others come back: {lines}");
        }
    }

    // If samples differ much in cost, batches ahead help. The limit allows for five.
    let mut uneven = Numbers::new(8 * 600);
    for index in (0..uneven.len).step_by(64) {
        uneven = uneven.with(index, Mischief::Sleep(Duration::from_millis(30)));
    }
    let slot = 192; // 8 rows of 8 and 13 bytes, at multiples of 64
    let loader = builder().prefetch(Auto).pinned_limit(5 * slot).build(uneven).unwrap();
    for batch in loader.iter() {
        batch.unwrap();
        sleep(Duration::from_millis(4));
    }
    let stats = loader.stats();
    // On a CPU backend the batches that the loop holds come on top of the limit: that of the step, and the one before.
    assert!(stats.host_bytes_peak <= (5 + 2) * slot, "{stats}");
    println!("{}", logged().join("\n"));

    let fixed = builder().num_workers(2).prefetch(3).build(Numbers::new(100)).unwrap();
    let auto = builder().num_workers(Auto).prefetch(Auto).build(Numbers::new(100)).unwrap();
    assert_eq!(numbers(&common::epoch(&*auto)), numbers(&common::epoch(&*fixed)));
    assert!(builder().num_workers(Auto).pinned_limit(192).build(Numbers::new(100)).is_ok(), "one slot");
    assert!(builder().num_workers(Auto).prefetch(Auto).pinned_limit(10).build(Numbers::new(100)).is_err());
}
