//! How long each wait for a server may take, and how slowly the bytes of an answer may arrive.

use super::remote::LEAST_RATE;
use std::{
    io::{self, Read},
    time::{Duration, Instant},
};

/// How long each wait may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    /// The wait for the address of a host, and that for a connection.
    pub(super) connect: Duration,
    /// The wait for the head of an answer.
    pub(super) answer: Duration,
    /// The wait for the next bytes of a body.
    pub(super) bytes: Duration,
    /// The minimum rate of an answer, in bytes per second. A slower answer counts as failed.
    pub(super) least: u64,
}

impl Default for Waits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), answer: seconds(30), bytes: seconds(30), least: LEAST_RATE }
    }
}

impl Waits {
    /// Returns an error if the bytes of an answer have arrived too slowly.
    pub(super) fn check(&self, waited: Duration, came: u64) -> io::Result<()> {
        match waited > self.answer + Duration::from_secs_f64(came as f64 / self.least as f64) {
            true => Err(io::Error::other(format!("less than {} bytes a second came", self.least))),
            false => Ok(()),
        }
    }
}

/// The bytes of an answer. Reading fails if they arrive too slowly. Only the waits for bytes count, not the time between reads.
#[derive(Debug)]
pub(super) struct PacedReader<R> {
    from: R,
    waits: Waits,
    waited: Duration,
    came: u64,
}

impl<R: Read> PacedReader<R> {
    pub(super) fn new(from: R, waits: Waits) -> Self {
        Self { from, waits, waited: Duration::ZERO, came: 0 }
    }
}

impl<R: Read> Read for PacedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let since = Instant::now();
        let bytes = self.from.read(into)?;
        self.waited += since.elapsed();
        self.came += bytes as u64;
        self.waits.check(self.waited, self.came).map(|()| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Waits before each byte.
    struct Slow(Duration);

    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            thread::sleep(self.0);
            Ok(into.len().min(1))
        }
    }

    #[test]
    fn only_waits_for_bytes_count() {
        let millis = Duration::from_millis;
        let waits = Waits { answer: millis(50), least: 100, ..Waits::default() };
        let mut slow = PacedReader::new(Slow(millis(40)), waits);
        let error = slow.read_exact(&mut [0; 100]).unwrap_err();
        assert_eq!(error.to_string(), "less than 100 bytes a second came");
        let mut quick = PacedReader::new(Slow(Duration::ZERO), waits);
        for _ in 0..5 {
            quick.read_exact(&mut [0; 1]).unwrap();
            thread::sleep(millis(40));
        }
    }
}
