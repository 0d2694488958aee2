//! Counts the transfer threads of each device: the last one cleans up.

use crate::sync::locks::Mutex;
use burn::tensor::Device;

/// The device of each transfer thread.
pub(super) struct ThreadCounts(Mutex<Vec<Device>>);

/// The transfer threads of the process.
pub(super) static THREADS: ThreadCounts = ThreadCounts::none();

impl ThreadCounts {
    const fn none() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Counts a thread in.
    pub(super) fn count_in(&self, device: &Device) {
        self.0.lock().push(device.clone());
    }

    /// Counts a thread out; returns whether it was the last one of its device.
    pub(super) fn count_out(&self, device: &Device) -> bool {
        let mut threads = self.0.lock();
        let Some(at) = threads.iter().position(|other| other == device) else { return false };
        threads.swap_remove(at);
        !threads.contains(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thread_of_a_device_is_told() {
        let (threads, device) = (ThreadCounts::none(), Device::flex());
        threads.count_in(&device);
        threads.count_in(&device);
        assert!(!threads.count_out(&device));
        threads.count_in(&device); // another loader's
        assert!(!threads.count_out(&device));
        assert!(threads.count_out(&device));
        threads.count_in(&device);
        assert!(threads.count_out(&device));
    }
}
