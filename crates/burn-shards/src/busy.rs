//! Waits that a busy server asks for: how long they may be, how long they were, and where they are shown.

use crate::{progress::Progress, sync::locks::Mutex};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a read waits for a server that asks it to, unless the user names another time. The hub counts in windows of
/// five minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 60);

/// The waits of one data set. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Busy {
    /// The longest wait that a server may ask for, since the last byte that came.
    pub(crate) longest: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of threads that wait.
    waiting: usize,
    /// Since when at least one thread waits.
    since: Option<Instant>,
    /// The time before `since` in which at least one thread waited.
    waited: Duration,
    /// Where waits are shown.
    shown: Option<Progress>,
}

impl Default for Busy {
    fn default() -> Self {
        Self::new(LONGEST_WAIT)
    }
}

impl Busy {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, state: Arc::default() }
    }

    /// Runs a wait that a server asks for, and shows it.
    pub(crate) fn wait<T>(&self, asked: Duration, wait: impl FnOnce() -> T) -> T {
        let _waiting = Waiting::new(self, asked);
        wait()
    }

    /// The time in which at least one thread has waited.
    pub(crate) fn waited(&self) -> Duration {
        let state = self.state.lock();
        state.waited + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Shows waits in this bar until the result is dropped. The drop ends the bar.
    #[must_use = "its drop ends the bar"]
    pub(crate) fn shown_in(&self, progress: &Progress) -> Shown<'_> {
        let before = self.state.lock().shown.replace(progress.clone());
        Shown { busy: self, progress: progress.clone(), before }
    }
}

/// A time in whole seconds, rounded up: a wait is not shorter than what is shown.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)))
}

/// A thread that waits.
struct Waiting<'a>(&'a Busy);

impl<'a> Waiting<'a> {
    fn new(busy: &'a Busy, asked: Duration) -> Self {
        let mut state = busy.state.lock();
        state.waiting += 1;
        let is_first = state.since.is_none();
        state.since.get_or_insert_with(Instant::now);
        if let Some(shown) = &state.shown {
            shown.say(Some(&format!("the server asks to wait {}", seconds(asked))));
        }
        drop(state);
        if is_first {
            log::info!("a store is busy: the server asks to wait {}", seconds(asked));
        }
        Self(busy)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.waiting -= 1;
        if state.waiting > 0 {
            return;
        }
        let since = state.since.take();
        state.waited += since.map_or(Duration::ZERO, |since| since.elapsed());
        if let Some(shown) = &state.shown {
            shown.say(None);
        }
    }
}

/// A bar that shows waits. Its drop ends the bar, and the bar before it shows waits again.
pub(crate) struct Shown<'a> {
    busy: &'a Busy,
    progress: Progress,
    before: Option<Progress>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.progress.end();
        self.busy.state.lock().shown = self.before.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{scope, sleep};

    #[test]
    fn waits_at_once_count_once_and_are_shown() {
        let (busy, bar, line) = (Busy::default(), Progress::new("indexing", 100), Progress::line("opening"));
        let _line = busy.shown_in(&line);
        let shown = busy.shown_in(&bar);
        let minute = Duration::from_secs(60);
        scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| busy.wait(minute, || sleep(Duration::from_millis(200))));
            }
            sleep(Duration::from_millis(100));
            assert_eq!(bar.message(), "indexing: the server asks to wait 60 s");
            assert!(!busy.waited().is_zero(), "a wait that goes on counts");
        });
        assert_eq!(bar.message(), "indexing");
        assert!((0.2..0.6).contains(&busy.waited().as_secs_f64()), "{:?}", busy.waited());
        drop(shown);
        busy.wait(Duration::from_millis(1500), || assert_eq!(line.message(), "opening: the server asks to wait 2 s"));
        assert_eq!((line.message().as_str(), bar.message().as_str()), ("opening", "indexing"));
    }
}
