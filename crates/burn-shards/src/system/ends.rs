//! Ends the waits of a thread whose results are no longer needed.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// The error text of a wait that was ended because its result is no longer needed.
pub(crate) const STOPPED_WAIT: &str = "nobody needs it any more";

/// How often a wait checks whether it must end.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Makes the calling thread's waits for stores and pipes end soon after this flag is set. A loader gives its workers such a flag.
pub fn end_waits_by(set: Arc<AtomicBool>) {
    OF_THREAD.set(Some(set));
}

/// The flag of [`end_waits_by`], to pass it to threads that work for the calling thread.
pub(crate) fn ends_waits() -> Option<Arc<AtomicBool>> {
    OF_THREAD.with_borrow(Clone::clone)
}

/// Whether the waits of the calling thread must end.
pub(crate) fn thread_ends() -> bool {
    OF_THREAD.with_borrow(|set| set.as_ref().is_some_and(|set| set.load(Relaxed)))
}
