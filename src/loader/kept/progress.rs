//! Shows how a data set is read: a bar on a terminal, and two lines in the log.

#[cfg(feature = "data")]
use burn_shards::for_loader::Progress as Bar;
use std::time::Instant;

/// The rows that were read, of those that there are.
#[derive(Debug)]
pub(super) struct Progress {
    started: Instant,
    #[cfg(feature = "data")]
    bar: Bar,
    #[cfg(feature = "data")]
    row_bytes: usize,
}

impl Progress {
    pub(super) fn new(rows: usize, bytes: usize) -> Self {
        log::info!("burn-pinned reads {rows} samples once, to keep them on the device in {:.3} GB", bytes as f64 / 1e9);
        Self {
            started: Instant::now(),
            #[cfg(feature = "data")]
            bar: Bar::new("keeping", bytes as u64),
            #[cfg(feature = "data")]
            row_bytes: bytes / rows,
        }
    }

    /// Notes that `rows` more rows were read.
    pub(super) fn add(&self, rows: usize) {
        #[cfg(feature = "data")]
        self.bar.add((rows * self.row_bytes) as u64);
        let _ = rows;
    }

    pub(super) fn end(self, rows: usize, bytes: usize) {
        let (took, gb) = (self.started.elapsed(), bytes as f64 / 1e9);
        log::info!("burn-pinned keeps {rows} rows on the device in {gb:.3} GB, read in {took:.1?}");
    }
}

/// The bar goes, whether all was read or not.
#[cfg(feature = "data")]
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.end();
    }
}
