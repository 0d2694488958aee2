//! What several tests need: datasets that misbehave on demand, and a collate that shows what arrived.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use burn::{
    data::{
        dataloader::DataLoader,
        dataset::{Dataset, DatasetError},
    },
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// What happens at an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mischief {
    Error,
    Panic,
    Sleep(Duration),
    /// Takes so long to fail.
    SleepError(Duration),
    Hang,
    /// Hangs the first time that it is asked for.
    HangOnce,
}

/// The numbers `0..len`, with mischief at some of them. Counts what was asked for.
#[derive(Debug, Clone)]
pub struct Numbers {
    pub len: usize,
    pub mischief: HashMap<usize, Mischief>,
    pub asked: Arc<AtomicUsize>,
    pub hung: Arc<AtomicBool>,
    /// Opened by the test when those that hang may go on.
    pub gate: Gate,
}

impl Numbers {
    pub fn new(len: usize) -> Self {
        Self { len, mischief: HashMap::new(), asked: Arc::default(), hung: Arc::default(), gate: Gate::default() }
    }

    pub fn with(mut self, index: usize, mischief: Mischief) -> Self {
        self.mischief.insert(index, mischief);
        self
    }
}

impl Dataset<usize> for Numbers {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.mischief.get(&index) {
            Some(Mischief::Error) => Err(DatasetError::new(io::Error::other(format!("number {index} is bad")))),
            Some(Mischief::Panic) => panic!("number {index} is worse"),
            Some(Mischief::Sleep(time)) => {
                std::thread::sleep(*time);
                Ok(index)
            }
            Some(Mischief::SleepError(time)) => {
                std::thread::sleep(*time);
                Err(DatasetError::new(io::Error::other(format!("number {index} is late and bad"))))
            }
            Some(Mischief::HangOnce) if self.hung.swap(true, Ordering::Relaxed) => Ok(index),
            Some(Mischief::Hang | Mischief::HangOnce) => {
                self.gate.pass();
                Ok(index)
            }
            None => Ok(index),
        }
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Sends the number and `width` bytes made from it. The batch is what arrived, read back to the host.
#[derive(Debug, Clone)]
pub struct Show {
    pub width: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub numbers: Vec<i64>,
    pub bytes: Vec<u8>,
}

pub fn byte(number: usize, at: usize) -> u8 {
    (number.wrapping_mul(31) ^ at.wrapping_mul(7)) as u8
}

impl Collate<usize> for Show {
    type Batch = Shown;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("number", DType::I64, []), Field::new("bytes", DType::U8, [self.width])]
    }

    fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("number", number as i64)?;
        for (at, place) in row.slice_mut::<u8>("bytes")?.iter_mut().enumerate() {
            *place = byte(number, at);
        }
        Ok(())
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Shown, BoxError> {
        let numbers: Tensor<1, Int> = batch.take("number")?;
        let bytes: Tensor<2, Int> = batch.take("bytes")?;
        assert_eq!(bytes.dims(), [batch.len(), self.width]);
        Ok(Shown { numbers: numbers.into_data().try_to_vec::<i64>()?, bytes: bytes.into_data().try_to_vec::<u8>()? })
    }
}

/// The device of these tests: a CPU backend, or with `BURN_PINNED_DEVICE=default` the one that Burn takes by default, for
/// runs on other accelerators.
pub fn device() -> Device {
    match std::env::var("BURN_PINNED_DEVICE").as_deref() {
        Ok("default") => Device::default(),
        _ => Device::flex(),
    }
}

/// Whether [`device`] is a CPU backend. Others have more slots for small batches, and copy what they get.
pub fn on_host() -> bool {
    device() == Device::flex()
}

pub fn builder() -> PinnedDataLoaderBuilder<usize, Shown> {
    sized(8)
}

/// A loader with batches of this size.
pub fn sized(batch_size: usize) -> PinnedDataLoaderBuilder<usize, Shown> {
    unsized_().batch_size(batch_size)
}

/// A loader that has no batch size yet.
pub fn unsized_() -> PinnedDataLoaderBuilder<usize, Shown> {
    PinnedDataLoaderBuilder::new(Show { width: 13 }).num_workers(2).set_device(device())
}

/// All batches of the next epoch; panics on an error.
pub fn epoch<O>(loader: &dyn DataLoader<O>) -> Vec<O> {
    loader.iter().map(|batch| batch.unwrap_or_else(|error| panic!("{error}"))).collect()
}

pub fn numbers(batches: &[Shown]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.numbers.clone()).collect()
}

/// All outcomes of the next epoch: the numbers of each batch, or the text of its error.
pub fn outcomes(loader: &dyn DataLoader<Shown>) -> Vec<Result<Vec<i64>, String>> {
    loader
        .iter()
        .map(|batch| batch.map(|shown| shown.numbers).map_err(|error| Error::of(&error).expect("ours").to_string()))
        .collect()
}

/// The names of this process's threads that belong to loaders. The kernel still lists a thread for a moment after it was joined:
/// see [`wait_for_threads`].
pub fn loader_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a Linux machine");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim().to_string()).filter(|name| name.starts_with("bp-")).collect()
}

/// Waits until loaders have this many threads.
pub fn wait_for_threads(count: usize) {
    eventually(&format!("loaders have {count} threads"), || loader_threads().len() == count);
}

/// Tests that count threads must not run at the same time as others of their process.
pub static ALONE: Mutex<()> = Mutex::new(());

/// Begins a test that counts threads, once the threads of earlier tests have ended.
pub fn alone() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    wait_for_threads(0);
    alone
}

/// Threads that pass it wait while it is shut.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<Passage>, Condvar)>);

#[derive(Debug, Default)]
struct Passage {
    open: bool,
    waiting: usize,
}

impl Gate {
    fn passage(&self) -> MutexGuard<'_, Passage> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the gate is open.
    pub fn pass(&self) {
        let mut passage = self.passage();
        passage.waiting += 1;
        while !passage.open {
            passage = self.0.1.wait(passage).unwrap_or_else(PoisonError::into_inner);
        }
        passage.waiting -= 1;
    }

    pub fn open(&self) {
        self.passage().open = true;
        self.0.1.notify_all();
    }

    /// Waits until this many threads wait at the gate.
    pub fn wait_for(&self, count: usize) {
        eventually(&format!("{count} calls hang"), || self.passage().waiting == count);
    }
}

/// Keeps what the loader logs.
struct Lines(Mutex<Vec<String>>);

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        if ["burn_pinned", "burn_augment"].iter().any(|name| record.target().starts_with(name)) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }
    fn flush(&self) {}
}

static LINES: Lines = Lines(Mutex::new(Vec::new()));

/// Keeps what loaders log from now on. The log belongs to the process, so only one test of a program may call this.
pub fn keep_log(level: log::LevelFilter) {
    log::set_logger(&LINES).unwrap();
    log::set_max_level(level);
}

/// What was logged so far.
pub fn logged() -> Vec<String> {
    LINES.0.lock().unwrap().clone()
}

/// Waits until a condition holds; panics if it takes longer than 10 s.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: not within 10 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that something takes less than 100 ms in one of three tries, and less than 2 s in each of them. A machine
/// with other work is sometimes late. `run` returns how long a try took.
pub fn soon(what: &str, mut run: impl FnMut() -> Duration) {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let took = run();
        assert!(took < Duration::from_secs(2), "{what} took {took:?}");
        best = best.min(took);
        if best < Duration::from_millis(100) {
            return;
        }
    }
    panic!("{what} took {best:?} at best");
}

/// Runs a check of times up to three times, until it does not panic. A machine with other work is sometimes late.
pub fn in_three_tries(check: impl Fn()) {
    for _ in 0..2 {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&check)).is_ok() {
            return;
        }
    }
    check();
}
