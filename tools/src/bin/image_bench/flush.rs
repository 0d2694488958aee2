//! Threads that flush devices, without which `ddp` and `multi` can deadlock: see upstream/burn-ddp-circle.md.

use burn::prelude::*;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Threads that flush a device again and again, so that no part of a collective operation stays in a buffer of CubeCL's
/// clients. They end when this is dropped.
pub(crate) struct Flushers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Flushers {
    pub(crate) fn start(devices: &[Device], every: Duration) -> io::Result<Self> {
        let mut flushers = Self { stop: Arc::default(), threads: Vec::new() };
        for (number, device) in devices.iter().cloned().enumerate() {
            let stop = Arc::clone(&flushers.stop);
            let flush = move || {
                while !stop.load(Relaxed) && device.flush().is_ok() {
                    thread::sleep(every);
                }
            };
            flushers.threads.push(thread::Builder::new().name(format!("flush-{number}")).spawn(flush)?);
        }
        Ok(flushers)
    }
}

impl Drop for Flushers {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join()); // a panic of it has been printed
        }
    }
}
