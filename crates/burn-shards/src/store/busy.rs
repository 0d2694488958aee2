//! Waits that a busy server asks for: their limit, their sum, and where they are shown.

use crate::system::{locks::Mutex, progress::Progress};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a read waits for a busy server by default. The hub's rate limits use windows of five minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 60);

/// The waits of one data set. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Busy {
    /// The longest wait that a server may ask for, in sum since the last byte.
    pub(crate) longest: Duration,
    state: Arc<Mutex<WaitTotals>>,
    /// Where waits are shown. This is outside of `state`, because a terminal may be slow and must not delay the counting.
    bar: Arc<Mutex<Option<Progress>>>,
}

#[derive(Debug, Default)]
struct WaitTotals {
    /// The number of waiting threads.
    waiting: usize,
    /// Since when at least one thread waits.
    since: Option<Instant>,
    /// How long at least one thread waited before `since`.
    waited: Duration,
}

impl Default for Busy {
    fn default() -> Self {
        Self::new(LONGEST_WAIT)
    }
}

impl Busy {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, state: Arc::default(), bar: Arc::default() }
    }

    /// Runs a wait that a server asks for, and shows it.
    pub(crate) fn wait<T>(&self, asked: Duration, wait: impl FnOnce() -> T) -> T {
        let mut state = self.state.lock();
        state.waiting += 1;
        let is_first = state.since.is_none();
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        self.show(Some(asked));
        if is_first {
            log::info!("a store is busy: the server asks to wait {}", seconds(asked));
        }
        let waited = wait();
        let mut state = self.state.lock();
        state.waiting -= 1;
        if state.waiting == 0 {
            let since = state.since.take();
            state.waited += since.map_or(Duration::ZERO, |since| since.elapsed());
            drop(state);
            self.show(None);
        }
        waited
    }

    /// The time in which at least one thread has waited.
    pub(crate) fn waited(&self) -> Duration {
        let state = self.state.lock();
        state.waited + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Shows waits in this bar until the result is dropped, which ends the bar.
    #[must_use = "its drop ends the bar"]
    pub(crate) fn shown_in(&self, progress: &Progress) -> ShownWaits<'_> {
        let before = self.bar.lock().replace(progress.clone());
        ShownWaits { busy: self, progress: progress.clone(), before }
    }

    /// Shows a wait, or that it is over.
    fn show(&self, wait: Option<Duration>) {
        let bar = self.bar.lock();
        // Another thread may have begun to wait meanwhile. It shows its wait before or after this.
        if wait.is_some() || self.state.lock().waiting == 0 {
            let text = wait.map(|asked| format!("the server asks to wait {}", seconds(asked)));
            bar.iter().for_each(|bar| bar.say(text.as_deref()));
        }
    }
}

/// A time in whole seconds, rounded up, so that no wait takes less than is shown.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)))
}

/// A bar that shows waits. Dropping it ends the bar, and the previous bar shows waits again.
pub(crate) struct ShownWaits<'a> {
    busy: &'a Busy,
    progress: Progress,
    before: Option<Progress>,
}

impl Drop for ShownWaits<'_> {
    fn drop(&mut self) {
        self.progress.end();
        *self.busy.bar.lock() = self.before.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{scope, sleep};

    #[test]
    fn a_slow_terminal_holds_up_no_statistics() {
        let (busy, (tell, told)) = (Busy::default(), std::sync::mpsc::channel());
        let drawing = busy.bar.lock();
        scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| busy.wait(Duration::from_secs(1), || ()));
            }
            sleep(Duration::from_millis(50)); // the threads wait for the terminal
            scope.spawn(|| tell.send(busy.waited()));
            let waited = told.recv_timeout(Duration::from_secs(5));
            drop(drawing);
            assert!(!waited.expect("it waits for the terminal").is_zero(), "they wait, whether it is shown or not");
        });
    }

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
