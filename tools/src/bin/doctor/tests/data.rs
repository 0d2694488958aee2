//! What `doctor` measures of a data set, and concludes.

use crate::data::{Data, Pass, Store, advice::verdict, measured};
use burn_pinned_made::server::{Fault, Server, folder};
use burn_pinned_tools::{collate::Tally, order::Order, remote::Traffic};
use clap::Parser;
use std::{path::Path, time::Duration};

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    data: Data,
}

const TIME: Duration = Duration::from_millis(60);
const ROWS: usize = 240;

/// 240 rows in Parquet files, which need no index.
fn numbers() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/burn-shards/tests/data/golden/numbers"))
}

#[test]
fn a_data_set_on_a_server_is_measured_with_few_and_many_requests() {
    let server = Server::new(folder(numbers()), |_| Fault::Late(Duration::from_millis(2)));
    let url = server.url("/direct-{0..1}.parquet");
    let facts = measured(&Args::parse_from(["doctor", "--data", &url]).data, TIME).unwrap();
    let Store { one, many } = facts.store.as_ref().expect("a URL has a store");
    assert_eq!((facts.rows, one.requests, many.requests), (ROWS, 1, 32));
    for pass in [one, many, &facts.pass] {
        assert!(pass.tally.rows > 0 && pass.tally.bytes > 0 && pass.waiting <= 1.0, "{pass:?}");
        assert!(pass.traffic.requests > 0 && pass.traffic.used > 0, "{pass:?}");
        assert!(pass.traffic.first_byte() >= Duration::from_millis(2), "{pass:?}");
    }
    let text = facts.to_string();
    for words in
        ["1 request at once, in order", "32 requests at once, full shuffle", "samples/s", "used of it", "Verdict"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn an_order_that_was_measured_for_the_store_is_not_measured_again() {
    let server = Server::new(folder(numbers()), |_| Fault::None);
    let args = ["doctor", "--data", &server.url("/direct-0.parquet"), "--order", "sequential"];
    let facts = measured(&Args::parse_from(args).data, TIME).unwrap();
    assert_eq!(facts.pass.tally.rows, facts.store.as_ref().unwrap().many.tally.rows);
    assert_eq!(facts.to_string().matches("at once, in order").count(), 2, "{facts}");
}

#[test]
fn local_files_have_samples_and_bytes_a_second_alone() {
    let path = numbers().join("direct-{0..1}.parquet");
    let facts = measured(&Args::parse_from(["doctor", "--data", path.to_str().unwrap()]).data, TIME).unwrap();
    assert!(facts.store.is_none() && facts.pass.samples_per_s() > 0 && facts.pass.whole, "{facts:?}");
    let text = facts.to_string();
    assert!(text.contains("samples/s") && !text.contains("at once") && !text.contains("Verdict"), "{text}");
}

/// A pass of one second.
fn pass(order: Order, requests: usize, mb: u64, waiting: f64) -> Pass {
    let bytes = mb * 1_000_000;
    Pass {
        order,
        words: "some order".into(),
        requests,
        workers: 2,
        tally: Tally { rows: 1000, bytes, sum: 0 },
        time: Duration::from_secs(1),
        traffic: Traffic { requests: mb * 10, bytes, used: bytes, ..Traffic::default() },
        waiting,
        whole: true,
    }
}

#[track_caller]
fn says((one, many): (u64, u64), pass: &Pass, words: &str, not: &str) {
    let store =
        Store { one: self::pass(Order::Sequential, 1, one, 0.9), many: self::pass(Order::Sequential, 32, many, 0.9) };
    let line = verdict(&store, pass);
    assert!(line.contains(words) && !line.contains(not) && !line.contains('\n'), "{line}");
}

#[test]
fn the_verdict_follows_from_the_passes() {
    let (full, blocks) = (|mb, waiting| pass(Order::Full, 32, mb, waiting), |mb| pass(Order::Blocks, 32, mb, 0.8));
    says((10, 300), &full(20, 0.1), "The store keeps up: the workers wait for it 10 %", "limit");
    // Small requests.
    says(
        (10, 300),
        &full(100, 0.8),
        "Requests of 100 kB get 100 MB/s of the 300 MB/s that there are: shuffle by blocks",
        "cache",
    );
    says((10, 300), &blocks(100), "`.requests(128)`", "blocks");
    // 32 requests get nearly 32 times as much as one.
    says((10, 300), &full(290, 0.8), "32 requests get 30 x as much as one: open the rows with more requests", "blocks");
    // They get no more than what the link gives.
    says((100, 300), &full(290, 0.8), "`.cache(folder, bytes)`", "`.requests");
    // What is read for one sample would serve its neighbours.
    let mut shared = full(290, 0.8);
    shared.tally.bytes /= 10;
    says((10, 300), &shared, "For 29.0 MB of samples, 290 MB are read: shuffle by blocks", "`.requests");
}
