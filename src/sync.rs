//! The locks and conditions of the pool and of the pipeline.
//!
//! They are those of `std` or, with the cfg `burn_pinned_loom`, those of loom, which runs a test through every order of
//! its threads' steps. `.ci/loom` runs the models, `memory/pool/model.rs` and `pipeline/shared/model.rs`.

#[cfg(all(test, burn_pinned_loom))]
use self::modelled::Condvar as Raw;
#[cfg(all(test, burn_pinned_loom))]
pub(crate) use self::modelled::Mutex;
#[cfg(all(test, burn_pinned_loom))]
pub(crate) use self::modelled::MutexGuard;
#[cfg(all(test, burn_pinned_loom))]
use self::modelled::Outcome;
#[cfg(all(test, burn_pinned_loom))]
pub(crate) use self::modelled::explore;
#[cfg(all(test, burn_pinned_loom))]
use loom::sync::atomic::AtomicUsize;
#[cfg(not(all(test, burn_pinned_loom)))]
use std::sync::Condvar as Raw;
#[cfg(not(all(test, burn_pinned_loom)))]
pub(crate) use std::sync::Mutex;
#[cfg(not(all(test, burn_pinned_loom)))]
pub(crate) use std::sync::MutexGuard;
#[cfg(not(all(test, burn_pinned_loom)))]
use std::sync::WaitTimeoutResult as Outcome;
#[cfg(not(all(test, burn_pinned_loom)))]
use std::sync::atomic::AtomicUsize;
use std::{
    sync::{LockResult, atomic::Ordering::Relaxed},
    time::Duration,
};

/// A condition variable that asks the kernel to wake a thread only if one waits. That of `std` asks at each
/// notification, which made seven calls of the kernel for each batch.
///
/// Threads notify after they held the lock under which they changed what is waited for. So the lock orders the count: a
/// thread that waits has counted itself before the change, or sees the change.
#[derive(Debug)]
pub(crate) struct Condvar {
    raw: Raw,
    waiting: AtomicUsize,
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self { raw: Raw::new(), waiting: AtomicUsize::new(0) }
    }

    pub(crate) fn notify_one(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.raw.notify_one();
        }
    }

    pub(crate) fn notify_all(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.raw.notify_all();
        }
    }

    fn counted<T>(&self, wait: impl FnOnce(&Raw) -> T) -> T {
        self.waiting.fetch_add(1, Relaxed);
        let result = wait(&self.raw);
        self.waiting.fetch_sub(1, Relaxed);
        result
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.counted(|raw| raw.wait(guard))
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, Outcome)> {
        self.counted(|raw| raw.wait_timeout(guard, limit))
    }

    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
        waits: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, Outcome)> {
        self.counted(|raw| raw.wait_timeout_while(guard, limit, waits))
    }
}

#[cfg(all(test, burn_pinned_loom))]
mod modelled {
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    use std::{
        env,
        sync::{
            Arc, LockResult, PoisonError,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        time::{Duration, Instant},
    };

    pub(super) type Outcome = ();

    /// In a model time stands still. A wait whose notification is lost never ends, where a timeout would hide the loss.
    #[derive(Debug)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        pub(crate) fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, Outcome)> {
            Ok((self.0.wait(guard).unwrap_or_else(PoisonError::into_inner), ()))
        }

        pub(crate) fn wait_timeout_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            _: Duration,
            mut waits: impl FnMut(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'a, T>, Outcome)> {
            while waits(&mut guard) {
                guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            Ok((guard, ()))
        }
    }

    /// Runs a model in every order of its threads' steps with at most `preemptions` interruptions. An interruption
    /// stops a thread that could go on. The variable `LOOM_MORE` adds to this number.
    pub(crate) fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
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
}
