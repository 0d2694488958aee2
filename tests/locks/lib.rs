//! The interface of `sync/locks.rs`, on loom, which runs a test through every order of its threads' steps. See `.ci/loom`.
#![allow(missing_docs)]

pub use loom::sync::MutexGuard;
use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

const NO_PANIC: &str = "no thread of a model panics";

#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect(NO_PANIC)
    }
}

/// Notifies only if a thread waits, as the crate's own. In a model time stands still. A wait whose notification is lost never ends,
/// where a timeout would hide the loss.
#[derive(Debug, Default)]
pub struct Condvar {
    changed: loom::sync::Condvar,
    /// No step of the model: the lock of those who wait orders what matters.
    waiting: AtomicUsize,
}

impl Condvar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn notify_one(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.changed.notify_one();
        }
    }

    pub fn notify_all(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.changed.notify_all();
        }
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Relaxed);
        let guard = self.changed.wait(guard).expect(NO_PANIC);
        self.waiting.fetch_sub(1, Relaxed);
        guard
    }

    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, _: Duration) -> MutexGuard<'a, T> {
        self.wait(guard)
    }

    pub fn wait_while_for<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut waits: impl FnMut(&mut T) -> bool,
        _: Duration,
    ) -> MutexGuard<'a, T> {
        while waits(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }
}

/// Runs a model in every order of its threads' steps with at most `preemptions` interruptions. An interruption
/// stops a thread that could go on. The variable `LOOM_MORE` adds to this number.
pub fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let (start, orders) = (Instant::now(), Arc::<AtomicUsize>::default());
    let count = Arc::clone(&orders);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    let more: usize = env::var("LOOM_MORE").map_or(0, |more| more.parse().expect("a number"));
    let bound = preemptions + more;
    builder.preemption_bound = Some(bound);
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        model();
    });
    let seconds = start.elapsed().as_secs_f64();
    println!("{name}: {} orders with up to {bound} interruptions in {seconds:.1} s", orders.load(Relaxed));
}
