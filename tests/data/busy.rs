//! Servers that ask to wait: how long that is, what ends it, and who is told.

use crate::{
    formats::{Format, Row, bytes},
    server::{Fault, Server, folder},
    sums::Sums,
};
use burn::{data::dataset::Dataset, tensor::Device};
use burn_pinned::{PinnedDataLoaderBuilder, data::Rows};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};
use tempfile::TempDir;

/// A server of two shards, which gives one answer to the next `left` requests.
struct Busy {
    server: Server,
    left: Arc<AtomicUsize>,
    indices: TempDir,
}

impl Busy {
    fn new(status: u16, lines: &str) -> Self {
        let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(Format::Jsonl.open(written.path()));
        let (left, lines) = (Arc::new(AtomicUsize::new(0)), lines.to_owned());
        let asked = Arc::clone(&left);
        let server = Server::new(folder(written.path()), move |_| {
            match asked.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
                Ok(_) => Fault::Answer(status, lines.clone(), "busy".into()),
                Err(_) => Fault::None,
            }
        });
        Self { server, left, indices }
    }

    /// The rows of a server that is busy for the next `requests` requests.
    fn rows(&self, requests: usize) -> Rows<Row> {
        let rows = Rows::<Row>::jsonl(self.server.url("/{0..1}.jsonl")).index_dir(self.indices.path()).open().unwrap();
        self.left.store(requests, SeqCst);
        rows
    }
}

/// How long a row takes at a server that has this answer once.
fn takes(status: u16, lines: &str) -> Duration {
    let busy = Busy::new(status, lines);
    let (rows, since) = (busy.rows(1), Instant::now());
    assert!(rows.get(1).unwrap().bytes == bytes(1), "{lines}");
    since.elapsed()
}

/// The time in `seconds` seconds, in the three forms of HTTP.
fn dates(seconds: u64) -> [String; 3] {
    let time = SystemTime::now() + Duration::from_secs(seconds);
    let date = httpdate::fmt_http_date(time);
    let (weekday, rest) = date.split_once(", ").unwrap();
    let words: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, clock, _] = words[..] else { panic!("{date}") };
    let long = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let long = long.into_iter().find(|name| name.starts_with(weekday)).unwrap();
    let day_of_asctime = day.trim_start_matches('0');
    [
        date.clone(),
        format!("{long}, {day}-{month}-{} {clock} GMT", &year[2..]),
        format!("{weekday} {month} {day_of_asctime:>2} {clock} {year}"),
    ]
}

#[test]
fn a_time_is_waited_for_in_each_form() {
    let mut all: Vec<(u16, String)> =
        dates(5).into_iter().map(|date| (429, format!("Retry-After: {date}\r\n"))).collect();
    for lines in [
        "Retry-After: 2\r\n",
        "RateLimit: \"api\";r=0;t=2\r\n",
        "RateLimit: \"other\";r=7;t=90, \"api\";r=0;t=2\r\n",
        "RateLimit: limit=100, remaining=0, reset=2\r\n",
        "RateLimit-Reset: 2\r\n",
        "RateLimit-Remaining: 0\r\nRateLimit-Reset: 2\r\n",
        "Retry-After: 2\r\nRateLimit: \"api\";r=0;t=90\r\n",
    ] {
        all.extend([429, 503].map(|status| (status, lines.to_owned())));
    }
    thread::scope(|scope| {
        for (status, lines) in &all {
            scope.spawn(move || {
                let took = takes(*status, lines).as_secs_f64();
                // A date is of whole seconds, and the rows are opened before.
                assert!((1.5..9.0).contains(&took), "{status} {lines} {took} s");
            });
        }
    });
}

#[test]
fn headers_that_name_no_time_are_no_wait() {
    let mut all = vec![String::new(), "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n".into()];
    for text in ["-1", "1e9", "soon", "", "0", "2 s"] {
        all.push(format!("Retry-After: {text}\r\n"));
    }
    for text in ["\"api\";r=5;t=90", "\"api\";t=90", "\"api\";r=0", "\"api\";r=0;t=-5", "remaining=3, reset=90", ","] {
        all.push(format!("RateLimit: {text}\r\n"));
    }
    all.push("RateLimit-Remaining: 3\r\nRateLimit-Reset: 90\r\n".into());
    all.push("RateLimit-Reset: soon\r\n".into());
    thread::scope(|scope| {
        for lines in &all {
            scope.spawn(move || {
                let took = takes(503, lines);
                assert!(took < Duration::from_secs(1), "{lines} {took:?}");
            });
        }
    });
}

#[test]
fn a_time_that_is_too_long_is_an_error_at_once() {
    for (lines, seconds) in [
        ("Retry-After: 1000000000\r\n", "1000000000 s"),
        ("Retry-After: 99999999999999999999999\r\n", " s"),
        ("RateLimit: \"api\";r=0;t=361\r\n", "361 s"),
        ("Retry-After: Wed, 21 Oct 2150 07:28:00 GMT\r\n", " s"),
    ] {
        let busy = Busy::new(429, lines);
        let (rows, since) = (busy.rows(usize::MAX), Instant::now());
        let error = rows.get(1).unwrap_err().to_string();
        assert!(since.elapsed() < Duration::from_secs(5), "{lines} {:?}", since.elapsed());
        assert!(error.contains(&format!("the server asks to wait {seconds}")) || seconds == " s", "{error}");
        assert!(error.contains("`longest_wait`") && error.contains("360 s"), "{error}");
        assert!(error.contains("status 429"), "{error}");
    }
}

#[test]
fn a_busy_store_does_not_hold_up_a_drop() {
    let busy = Busy::new(429, "Retry-After: 60\r\n");
    let loader = PinnedDataLoaderBuilder::new(Sums).batch_size(8).num_workers(2).set_device(Device::flex());
    let loader = loader.build(busy.rows(usize::MAX)).unwrap();
    let epoch = loader.iter();
    thread::sleep(Duration::from_millis(300));
    let since = Instant::now();
    drop(epoch);
    drop(loader);
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    let seen = busy.server.seen().len();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(busy.server.seen().len(), seen);
}

#[test]
fn rows_that_are_read_ahead_are_dropped_at_once() {
    let busy = Busy::new(503, "Retry-After: 60\r\n");
    let rows = busy.rows(usize::MAX);
    let ahead = rows.fetch_ahead(0..rows.len());
    thread::sleep(Duration::from_millis(300));
    let since = Instant::now();
    drop(ahead);
    drop(rows);
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
}

/// The loader stays, and reads the next epoch once the server has time.
#[test]
fn an_epoch_that_was_dropped_asks_for_nothing_more() {
    let busy = Busy::new(429, "Retry-After: 2\r\n");
    let loader = PinnedDataLoaderBuilder::new(Sums).batch_size(8).num_workers(2).set_device(Device::flex());
    let loader = loader.on_fault(|error| panic!("{error}")).build(busy.rows(usize::MAX)).unwrap();
    let epoch = loader.iter();
    thread::sleep(Duration::from_millis(300));
    drop(epoch);
    thread::sleep(Duration::from_millis(500));
    let seen = busy.server.seen().len();
    thread::sleep(Duration::from_millis(3200));
    assert_eq!(busy.server.seen().len(), seen);
    busy.left.store(0, SeqCst);
    let (since, rows) = (Instant::now(), loader.iter().map(|batch| batch.unwrap().len()).sum::<usize>());
    assert!(since.elapsed() < Duration::from_millis(1800), "{:?}", since.elapsed());
    assert_eq!((rows, loader.stats().faults), (240, 0));
}
