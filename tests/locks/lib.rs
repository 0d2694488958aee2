//! The interface of `parking_lot`, on loom, which runs a test through every order of its threads' steps. See `.ci/loom`.
#![allow(missing_docs)]

use std::{
    env, fmt,
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

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
        MutexGuard(Some(self.0.lock().expect("no thread of a model panics")))
    }
}

/// Empty only while its thread waits for a condition.
pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is locked")
    }
}

/// In a model time stands still. A wait whose notification is lost never ends, where a timeout would hide the loss.
#[derive(Debug, Default)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        guard.0 = guard.0.take().map(|locked| self.0.wait(locked).expect("no thread of a model panics"));
    }

    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) {
        self.wait(guard);
    }

    pub fn wait_while_for<T>(&self, guard: &mut MutexGuard<'_, T>, mut waits: impl FnMut(&mut T) -> bool, _: Duration) {
        while waits(guard) {
            self.wait(guard);
        }
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
