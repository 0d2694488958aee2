//! Tells the waits of a thread to end, because nobody needs what they wait for.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// How often a wait looks whether it has to end.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Makes the waits of the calling thread for stores end soon after this flag is set. A loader gives its workers one.
pub fn end_waits_by(set: Arc<AtomicBool>) {
    OF_THREAD.set(Some(set));
}

/// The flag of [`end_waits_by`], for threads that work for the calling one.
pub(crate) fn ends_waits() -> Option<Arc<AtomicBool>> {
    OF_THREAD.with_borrow(Clone::clone)
}

/// Whether the waits of the calling thread have to end.
pub(crate) fn thread_ends() -> bool {
    OF_THREAD.with_borrow(|set| set.as_ref().is_some_and(|set| set.load(Relaxed)))
}
