//! A progress bar for long work before training.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// A bar is shown only for work that takes longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows the bytes read so far on standard error, if that is a terminal. Clones share one bar.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: ProgressBar,
    what: &'static str,
    started: Instant,
}

impl Progress {
    /// Begins a bar. `what` is written before it, and `bytes` is the number of bytes at its end.
    pub fn new(what: &'static str, bytes: u64) -> Self {
        Self::styled(what, Some(bytes), "{msg} {bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
    }

    /// Begins a bar that counts rows: [`add`](Self::add) then adds rows.
    pub(crate) fn rows(what: &'static str, rows: u64) -> Self {
        Self::styled(what, Some(rows), "{msg} {bar:40} {human_pos} of {human_len} rows, {per_sec}, {eta} left")
    }

    /// Begins a line without a bar. It is shown once [`say`](Self::say) has a text for it.
    pub(crate) fn line(what: &'static str) -> Self {
        Self::styled(what, None, "{msg}")
    }

    fn styled(what: &'static str, bytes: Option<u64>, style: &str) -> Self {
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Self { bar, what, started: Instant::now() }
    }

    /// Notes that `bytes` more bytes were read.
    pub fn add(&self, bytes: u64) {
        if self.started.elapsed() > PATIENCE {
            self.show();
        }
        self.bar.inc(bytes);
    }

    fn show(&self) {
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Shows at once why no bytes arrive. `None` removes the text.
    pub(crate) fn say(&self, why: Option<&str>) {
        match why {
            Some(why) => self.bar.set_message(format!("{}: {why}", self.what)),
            None => self.bar.set_message(self.what),
        }
        if why.is_some() {
            self.show();
        }
        self.bar.tick();
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> String {
        self.bar.message()
    }
}
