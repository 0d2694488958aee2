//! Counts the transfer threads of each device: the last one cleans up.

use burn::tensor::Device;
use parking_lot::Mutex;

/// How many transfer threads each device has.
pub(super) struct ThreadCounts(Mutex<Vec<(Device, usize)>>);

/// The transfer threads of the process.
pub(super) static THREADS: ThreadCounts = ThreadCounts::none();

impl ThreadCounts {
    const fn none() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Counts a thread in.
    pub(super) fn enter(&self, device: &Device) {
        let mut threads = self.0.lock();
        match threads.iter_mut().find(|(other, _)| other == device) {
            Some((_, count)) => *count += 1,
            None => threads.push((device.clone(), 1)),
        }
    }

    /// Counts a thread out; returns whether it was the last one of its device.
    pub(super) fn leave(&self, device: &Device) -> bool {
        let mut threads = self.0.lock();
        let Some(at) = threads.iter().position(|(other, _)| other == device) else { return false };
        threads[at].1 -= 1;
        let last = threads[at].1 == 0;
        if last {
            threads.swap_remove(at);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thread_of_a_device_is_told() {
        let (threads, device) = (ThreadCounts::none(), Device::flex());
        threads.enter(&device);
        threads.enter(&device);
        assert!(!threads.leave(&device));
        threads.enter(&device); // another loader's
        assert!(!threads.leave(&device));
        assert!(threads.leave(&device));
        threads.enter(&device);
        assert!(threads.leave(&device));
    }
}
