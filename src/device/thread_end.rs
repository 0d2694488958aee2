//! Whether a thread has ended.

use std::sync::{Arc, Weak};

thread_local! {
    static LIFE: Arc<()> = Arc::default();
}

/// Refers to a thread, and keeps nothing of it alive.
#[derive(Debug)]
pub(super) struct Life(Weak<()>);

impl Life {
    pub(super) fn of_this_thread() -> Self {
        Self(LIFE.try_with(Arc::downgrade).unwrap_or_default()) // the thread may be ending
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.strong_count() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread};

    #[test]
    fn a_thread_is_known_to_have_ended() {
        let ((told, life), (go_on, end)) = (mpsc::channel(), mpsc::channel::<()>());
        let thread = thread::spawn(move || {
            told.send(Life::of_this_thread()).unwrap();
            let _ = end.recv();
        });
        let (life, here) = (life.recv().unwrap(), Life::of_this_thread());
        assert!(!life.has_ended());
        drop(go_on);
        thread.join().unwrap();
        assert!(life.has_ended() && !here.has_ended());
    }
}
