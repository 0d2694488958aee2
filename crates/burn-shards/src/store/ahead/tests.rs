//! Reading ahead over a store in memory that counts what it is asked for.

use super::*;
use crate::store::{
    remote::{Refusal, Remote, Retry},
    steady::{Patience, SteadyStore},
};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::ChaCha8Rng, seq::SliceRandom};
use std::{
    io::Cursor,
    sync::atomic::{AtomicBool, AtomicUsize},
    time::{Duration, Instant},
};

/// Rows of `BYTES` bytes, with a gap behind each, in one object.
const BYTES: u64 = 1000;
const STEP: u64 = 1512;

/// An object whose byte at `n` is `n as u8`.
#[derive(Debug, Default)]
struct Memory {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// The request of this number fails.
    fails: Option<usize>,
    waits: Duration,
}

impl Store for Memory {
    fn open(&self, _: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        thread::sleep(self.waits);
        if Some(self.requests.fetch_add(1, Relaxed)) == self.fails {
            return Err(io::Error::other("broken"));
        }
        self.bytes.fetch_add((part.end - part.start) as usize, Relaxed);
        Ok(Box::new(Cursor::new(part.map(|at| at as u8).collect::<Vec<u8>>())))
    }
}

fn row_range(row: usize) -> Range<u64> {
    let start = row as u64 * STEP;
    start..start + BYTES
}

fn plan(rows: impl Iterator<Item = usize> + Send + 'static) -> Plan {
    Box::new(rows.map(|row| Some(PlannedRow { row, parts: vec![(0, row_range(row))] })))
}

struct Set {
    memory: Arc<Memory>,
    ahead: ReadAhead,
}

fn set(limit: u64, memory: Memory) -> Set {
    let memory = Arc::new(memory);
    let store: Arc<dyn Store> = Arc::clone(&memory) as _;
    Set { memory, ahead: ReadAhead::new(store, Stop::default(), limit, 8) }
}

impl Set {
    fn begin(&self, rows: Vec<usize>) -> FetchAhead {
        self.ahead.begin(plan(rows.into_iter()), true)
    }

    fn read(&self, row: usize) -> io::Result<()> {
        let bytes = self.ahead.read(0, row_range(row))?;
        self.ahead.row_read(row);
        assert!(bytes.iter().copied().eq(row_range(row).map(|at| at as u8)), "row {row}");
        Ok(())
    }

    fn held(&self) -> u64 {
        self.ahead.shared.state.lock().held
    }
}

fn shuffled(rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    order
}

#[test]
fn each_row_is_fetched_once_and_neighbours_together() {
    let set = set(1 << 30, Memory { waits: Duration::from_micros(200), ..Memory::default() });
    let epoch = set.begin(shuffled(5000));
    shuffled(5000).into_iter().for_each(|row| set.read(row).unwrap());
    drop(epoch);
    let (requests, bytes) = (set.memory.requests.load(Relaxed), set.memory.bytes.load(Relaxed) as u64);
    assert!(requests < 2500, "{requests} requests for 5000 rows");
    // A gap may be a row that was fetched before.
    assert!((5000 * BYTES..=5500 * STEP).contains(&bytes), "{bytes} bytes");
    wait_until(|| set.held() == 0);
}

#[test]
fn what_is_held_stays_within_the_limit() {
    let limit = 50 * BYTES;
    let set = set(limit, Memory::default());
    let epoch = set.begin(shuffled(2000));
    for row in shuffled(2000) {
        assert!(set.held() <= limit + BYTES, "a read may fetch one part by itself");
        set.read(row).unwrap();
    }
    drop(epoch);
    wait_until(|| set.held() == 0);
}

#[test]
fn workers_read_in_any_order_and_what_was_not_announced() {
    let set = set(200 * BYTES, Memory::default());
    let epoch = set.begin(shuffled(3000));
    thread::scope(|scope| {
        for worker in 0..4 {
            let set = &set;
            scope.spawn(move || {
                shuffled(3000).into_iter().skip(worker).step_by(4).for_each(|row| set.read(row).unwrap())
            });
        }
        (3000..3100).for_each(|row| set.read(row).unwrap());
    });
    drop(epoch);
    wait_until(|| set.held() == 0);
}

#[test]
fn repeated_rows_and_two_epochs_at_once() {
    let set = set(100 * BYTES, Memory::default());
    let twice: Vec<usize> = (0..300).flat_map(|row| [row, row]).collect();
    let (one, two) = (set.begin(twice.clone()), set.begin(shuffled(300)));
    twice.iter().for_each(|row| set.read(*row).unwrap());
    drop(one);
    shuffled(300).into_iter().for_each(|row| set.read(row).unwrap());
    drop(two);
    wait_until(|| set.held() == 0);
}

#[test]
fn an_epoch_that_ends_early_leaves_nothing() {
    let set = set(1 << 30, Memory::default());
    let epoch = set.begin(shuffled(1000));
    shuffled(1000).into_iter().take(10).for_each(|row| set.read(row).unwrap());
    drop(epoch);
    set.read(999).unwrap();
    // Pieces that were on their way are dropped as they come.
    for _ in 0..2000 {
        if set.held() == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{} bytes are held", set.held());
}

#[test]
fn a_request_that_fails_is_an_error_of_the_read_that_waited_alone() {
    for fails in 0..8 {
        let set = set(1 << 30, Memory { fails: Some(fails), ..Memory::default() });
        let epoch = set.begin((0..1000).collect());
        let mut failed = 0;
        for row in 0..1000 {
            if let Err(error) = set.read(row) {
                set.ahead.row_read(row);
                assert_eq!(error.to_string(), "broken");
                failed += 1;
            }
        }
        drop(epoch);
        assert!(failed <= 1, "{failed} rows failed by one request");
        wait_until(|| set.held() == 0);
    }
}

/// Each epoch ends while requests are on their way, and the next one needs the same parts.
#[test]
fn no_answer_of_an_epoch_that_has_ended_reaches_the_next_one() {
    let set = set(1 << 30, Memory { waits: Duration::from_micros(20), ..Memory::default() });
    for epoch in 0..20_000 {
        let begun = set.begin((0..4).collect());
        (0..epoch % 4)
            .for_each(|row| set.read(row).unwrap_or_else(|error| panic!("epoch {epoch}, row {row}: {error}")));
        drop(begun);
    }
}

/// As rows of one page, which is decoded once for all of them.
#[test]
fn a_part_that_failed_is_tried_again_by_the_next_row() {
    let set = set(1 << 30, Memory { fails: Some(0), ..Memory::default() });
    let rows = (0..50).map(|row| Some(PlannedRow { row, parts: vec![(0, row_range(0))] }));
    let epoch = set.ahead.begin(Box::new(rows), false);
    let outcomes: Vec<bool> = (0..50)
        .map(|row| {
            let read = set.ahead.read(0, row_range(0));
            set.ahead.row_read(row);
            read.is_ok()
        })
        .collect();
    drop(epoch);
    assert!(outcomes[1..].iter().all(|is_read| *is_read), "{outcomes:?}");
    wait_until(|| set.held() == 0);
}

/// Gives a few bytes at a time, for ever.
#[derive(Debug, Default)]
struct Trickle(Arc<AtomicUsize>);

impl Store for Trickle {
    fn open(&self, _: usize, _: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }
}

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        thread::sleep(Duration::from_micros(100));
        self.0.fetch_add(1, Relaxed);
        Ok(into.len().min(BYTES_AT_A_TIME / 8))
    }
}

#[test]
fn an_epoch_that_ends_ends_its_requests() {
    let store = Trickle::default();
    let reads = Arc::clone(&store.0);
    let ahead = ReadAhead::new(Arc::new(store), Stop::default(), u64::MAX, 2);
    let part = 0..1 << 30;
    let epoch = ahead.begin(Box::new([Some(PlannedRow { row: 0, parts: vec![(0, part)] })].into_iter()), true);
    while reads.load(Relaxed) < 8 {
        thread::sleep(Duration::from_millis(1));
    }
    drop(epoch);
    while ahead.shared.state.lock().held > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let reads = reads.load(Relaxed);
    assert!(reads < 8 * 1024, "{reads} reads: all of the part came");
}

/// Refuses each request for a while, and counts them.
#[derive(Debug)]
struct Refuses(Arc<AtomicUsize>, Duration);

impl Remote for Refuses {
    fn get(&self, _: usize, _: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        self.0.fetch_add(1, Relaxed);
        Err(Refusal { status: Some(429), problem: "busy".into(), again: Retry::After(self.1) })
    }
}

/// Reads ahead on this number of threads from a store that is busy, and counts how often it was asked.
fn busy(threads: usize, asks_for: Duration) -> (ReadAhead, Stop, Arc<AtomicUsize>) {
    let (asked, patience) = (Arc::default(), Patience::default());
    let stop = patience.stop.clone();
    let store = SteadyStore::new(Refuses(Arc::clone(&asked), asks_for), patience, Arc::default());
    (ReadAhead::new(Arc::new(store), stop.clone(), 1 << 30, threads), stop, asked)
}

fn wait_until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(1));
    }
}

const SOON: Duration = Duration::from_secs(2); // the server answers after a minute

#[test]
fn a_drop_ends_the_waits_of_its_threads() {
    let (ahead, stop, asked) = busy(4, Duration::from_secs(60));
    let epoch = ahead.begin(plan((0..100).map(|row| 1000 * row)), true);
    wait_until(|| asked.load(Relaxed) >= 4);
    let since = Instant::now();
    drop(ahead);
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    assert!(stop.is_set());
    drop(epoch);
    assert_eq!(asked.load(Relaxed), 4);
}

#[test]
fn an_epoch_that_ends_asks_for_nothing_more() {
    let (ahead, _, asked) = busy(4, Duration::from_millis(500));
    let epoch = ahead.begin(plan((0..100).map(|row| 1000 * row)), true);
    wait_until(|| asked.load(Relaxed) >= 4);
    drop(epoch);
    wait_until(|| ahead.shared.state.lock().held == 0);
    thread::sleep(Duration::from_millis(900));
    assert_eq!(asked.load(Relaxed), 4);
}

/// Two epochs need the part: the end of one leaves the request to the other.
#[test]
fn what_another_epoch_needs_goes_on() {
    let (ahead, _, asked) = busy(4, Duration::from_millis(300));
    let (one, two) = (ahead.begin(plan(0..1), true), ahead.begin(plan(0..1), true));
    wait_until(|| asked.load(Relaxed) == 1);
    drop(one);
    wait_until(|| asked.load(Relaxed) > 1);
    drop(two);
}

#[test]
fn a_read_that_waits_for_a_piece_ends_with_its_thread() {
    let (ahead, _, asked) = busy(4, Duration::from_secs(60));
    let epoch = ahead.begin(plan(0..1), true);
    wait_until(|| asked.load(Relaxed) == 1);
    let set = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            end_waits_by(Arc::clone(&set));
            ahead.read(0, row_range(0))
        });
        thread::sleep(Duration::from_millis(100));
        let since = Instant::now();
        set.store(true, Relaxed);
        assert_eq!(reader.join().unwrap().unwrap_err().to_string(), STOPPED_WAIT);
        assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    });
    drop(epoch);
}

/// A worker fetches a part by itself, and ends. Another one that waits for it does it then.
#[test]
fn a_read_that_ends_leaves_its_part_to_others() {
    let (ahead, _, asked) = busy(0, Duration::from_secs(60));
    let _epoch = ahead.begin(plan(0..1), true);
    let set = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let ends = Arc::clone(&set);
        let one = scope.spawn(|| {
            end_waits_by(ends);
            ahead.read(0, row_range(0)).unwrap_err()
        });
        wait_until(|| asked.load(Relaxed) == 1);
        let end_of_other = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end_of_other);
        let other = scope.spawn(|| {
            end_waits_by(ends);
            ahead.read(0, row_range(0)).unwrap_err()
        });
        thread::sleep(Duration::from_millis(100));
        set.store(true, Relaxed);
        one.join().unwrap();
        wait_until(|| asked.load(Relaxed) == 2);
        end_of_other.store(true, Relaxed);
        other.join().unwrap();
    });
    assert_eq!(ahead.shared.state.lock().held, 0);
}

#[test]
fn an_order_whose_sampler_panics_is_read_directly() {
    let set = set(1 << 30, Memory::default());
    let rows = (0..100).map(|row| if row < 70 { row } else { panic!("the sampler") });
    let epoch = set.ahead.begin(plan(rows), true);
    (0..100).for_each(|row| set.read(row).unwrap());
    drop(epoch);
    wait_until(|| set.held() == 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_order_gives_the_bytes(order in prop::collection::vec(0usize..60, 1..400), limit in 1u64..100) {
        let set = set(limit * BYTES, Memory::default());
        let epoch = set.begin(order.clone());
        for row in order {
            set.read(row).unwrap();
        }
        drop(epoch);
        wait_until(|| set.held() == 0);
    }
}
