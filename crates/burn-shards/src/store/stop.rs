//! Ends waits for a store whose bytes are no longer needed. A wait checks its [`Stop`] every [`LOOK`].

use crate::system::ends::thread_ends;
pub(crate) use crate::system::ends::{LOOK, STOPPED_WAIT, end_waits_by};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Ends the waits of all threads for one store. Clones are the same stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn stop(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether waits of the calling thread must end.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed) || thread_ends()
    }

    /// Sleeps. Returns false if the sleep was ended early.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let start = Instant::now();
        while !self.is_set() {
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_for_its_store_or_its_thread() {
        let stop = Stop::default();
        assert!(stop.sleep(Duration::from_millis(1)));
        let other = stop.clone();
        let sleeper = thread::spawn(move || {
            let start = Instant::now();
            (other.sleep(Duration::from_secs(60)), start.elapsed() < Duration::from_secs(10))
        });
        stop.stop();
        assert_eq!(sleeper.join().unwrap(), (false, true));
        let set = Arc::new(AtomicBool::new(true));
        let of_thread = thread::spawn(|| {
            end_waits_by(set);
            Stop::default().sleep(Duration::from_secs(60))
        });
        assert!(!of_thread.join().unwrap());
        assert!(Stop::default().sleep(Duration::from_millis(1)));
    }
}
