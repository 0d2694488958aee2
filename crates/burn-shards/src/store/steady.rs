//! Retries a request from the byte where it broke off.

use super::{
    Store,
    remote::{LEAST_RATE, Refusal, Remote, Retry},
    stop::{STOPPED_WAIT, Stop},
};
use crate::{
    error::StoreError,
    store::{
        busy::{Busy, seconds},
        traffic::Traffic,
    },
};
use std::{
    hash::{BuildHasher, RandomState},
    io::{self, Read},
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a part is retried, counted from the last byte that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    /// The most consecutive attempts without a byte.
    pub(crate) attempts: u32,
    /// The time after which no attempt begins. The waits that a server asks for do not count.
    pub(crate) time: Duration,
    /// The pause after the first attempt. Each later pause is twice as long, up to [`LONGEST_PAUSE`].
    pub(crate) pause: Duration,
    /// The waits that servers ask for.
    pub(crate) busy: Busy,
    /// Ends all waits and requests.
    pub(crate) stop: Stop,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new(Busy::default())
    }
}

/// The longest pause, unless a server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The most requests for one part, however little each answer brings.
const MOST_ATTEMPTS: u32 = 1000;

impl Patience {
    pub(crate) fn new(busy: Busy) -> Self {
        let (time, pause) = (Duration::from_secs(60), Duration::from_millis(100));
        Self { attempts: 8, time, pause, busy, stop: Stop::default() }
    }

    /// The shortest pause after this number of consecutive attempts without a byte.
    fn pause_after(&self, vain: u32) -> Duration {
        self.pause.saturating_mul(1 << (vain.max(1) - 1).min(16)).min(LONGEST_PAUSE)
    }
}

/// A store that gives up only after [`Patience`].
#[derive(Debug)]
pub(crate) struct SteadyStore<R> {
    remote: R,
    patience: Patience,
    traffic: Arc<Traffic>,
}

impl<R: Remote> SteadyStore<R> {
    pub(crate) fn new(remote: R, patience: Patience, traffic: Arc<Traffic>) -> Self {
        Self { remote, patience, traffic }
    }
}

impl<R: Remote> Store for SteadyStore<R> {
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        let attempts = Attempts::new(&self.patience);
        let longest = self.patience.time + Duration::from_secs(part.end.saturating_sub(part.start) / LEAST_RATE);
        Ok(Box::new(SteadyPart {
            steady: self,
            object,
            rest: part,
            from: None,
            attempts,
            asked: None,
            longest,
            left: Instant::now(),
        }))
    }

    fn beside(&self, object: usize, extension: &str) -> io::Result<Option<Vec<u8>>> {
        patiently(&self.patience, || self.remote.beside(object, extension)).map_err(io::Error::other)
    }
}

/// Asks until there is an answer, within [`Patience`].
pub(super) fn patiently<T>(patience: &Patience, ask: impl Fn() -> Result<T, Refusal>) -> Result<T, StoreError> {
    let mut attempts = Attempts::new(patience);
    loop {
        attempts.go_on()?;
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(refused) => attempts.wait(refused)?,
        }
    }
}

/// The failed attempts at one request.
struct Attempts<'a> {
    patience: &'a Patience,
    /// The number of failed attempts: all of them, and those since the last byte.
    all: u32,
    vain: u32,
    /// The sum of the waits that the server has asked for since the last byte.
    told: Duration,
    /// When the first attempt began, or when the last byte arrived, if there was one since. Time that does not count is added to both.
    begun: Instant,
    since: Instant,
}

impl<'a> Attempts<'a> {
    fn new(patience: &'a Patience) -> Self {
        let now = Instant::now();
        Self { patience, all: 0, vain: 0, told: Duration::ZERO, begun: now, since: now }
    }

    /// Excludes time that the store did not cause, or that the server asked for.
    fn leave_out(&mut self, time: Duration) {
        (self.begun, self.since) = (self.begun + time, self.since + time);
    }

    fn succeeded(&mut self) {
        (self.vain, self.told, self.since) = (0, Duration::ZERO, Instant::now());
    }

    /// Returns an error if the bytes are no longer needed.
    fn go_on(&self) -> Result<(), StoreError> {
        match self.patience.stop.is_set() {
            false => Ok(()),
            true => Err(self.failed(STOPPED_WAIT, None)),
        }
    }

    fn failed(&self, problem: impl Into<String>, status: Option<u16>) -> StoreError {
        StoreError { problem: problem.into(), status, attempts: self.all.max(1) }
    }

    /// Waits before the next attempt. Returns an error if there must not be another attempt.
    fn wait(&mut self, Refusal { status, problem, again }: Refusal) -> Result<(), StoreError> {
        self.all += 1;
        let asked = match again {
            Retry::No => return Err(self.failed(problem, status)),
            _ if self.all >= MOST_ATTEMPTS => return Err(self.failed(problem, status)),
            Retry::After(asked) => asked,
            Retry::Yes => Duration::ZERO,
        };
        log::debug!("a request is made again: {problem}");
        if asked.is_zero() {
            self.pause(problem, status)?
        } else {
            self.obey(asked, status)?
        }
        self.go_on()
    }

    /// Waits if the server has named no time.
    fn pause(&mut self, problem: String, status: Option<u16>) -> Result<(), StoreError> {
        self.vain += 1;
        let Patience { attempts, time, stop, .. } = self.patience;
        let pause = self.patience.pause_after(self.vain);
        if self.vain >= *attempts || self.since.elapsed().saturating_add(pause) > *time {
            return Err(self.failed(problem, status));
        }
        stop.sleep(spread(pause));
        Ok(())
    }

    /// Waits as long as the server asks for. This does not count as a failed attempt.
    fn obey(&mut self, asked: Duration, status: Option<u16>) -> Result<(), StoreError> {
        let Patience { busy, stop, .. } = self.patience;
        let before = self.told;
        self.told = self.told.saturating_add(asked);
        if self.told > busy.longest {
            let after = if before.is_zero() { String::new() } else { format!(" after {}", seconds(before)) };
            let (asked, longest) = (seconds(asked), seconds(busy.longest));
            let problem =
                format!("the server asks to wait {asked}{after}, and the option `longest_wait` allows {longest}");
            return Err(self.failed(problem, status));
        }
        let start = Instant::now();
        busy.wait(asked, || stop.sleep(spread(asked)));
        self.leave_out(start.elapsed());
        Ok(())
    }
}

/// What a request does by default after this number of refusals: the shortest pause and the longest one, or `None` if it gives up.
pub fn default_pause(refusals: u32) -> Option<(Duration, Duration)> {
    let patience = Patience::default();
    let pause = patience.pause_after(refusals);
    (refusals < patience.attempts).then(|| (pause, spread_by(pause, 1.0)))
}

/// Makes a pause up to half as long again, and at most [`LONGEST_PAUSE`]. Without this, requests that were refused at the same time would
/// all be retried at the same time.
fn spread(pause: Duration) -> Duration {
    // Each hasher has different keys.
    spread_by(pause, RandomState::new().hash_one(0) as f64 / u64::MAX as f64)
}

fn spread_by(pause: Duration, share: f64) -> Duration {
    pause.saturating_add((pause / 2).min(LONGEST_PAUSE).mul_f64(share))
}

/// The bytes of a part, through as many requests as it takes.
struct SteadyPart<'a, R> {
    steady: &'a SteadyStore<R>,
    object: usize,
    /// The bytes that have not arrived yet.
    rest: Range<u64>,
    from: Option<Box<dyn Read + Send + 'a>>,
    attempts: Attempts<'a>,
    /// When the latest request was made, if it has returned no byte yet.
    asked: Option<Instant>,
    /// How long all reads of this body may take. The waits that a server asks for do not count, nor does the time between the
    /// reads.
    longest: Duration,
    /// When the last read ended, or the body was opened.
    left: Instant,
}

impl<R: Remote> SteadyPart<'_, R> {
    fn failed(&mut self, refused: Refusal) -> io::Result<()> {
        self.from = None;
        self.attempts.wait(refused).map_err(io::Error::other)?;
        self.steady.traffic.count(|sums| sums.retries += 1);
        Ok(())
    }
}

impl<R: Remote> Read for SteadyPart<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX).min(into.len());
        if left == 0 {
            return Ok(0);
        }
        self.attempts.leave_out(self.left.elapsed());
        loop {
            self.attempts.go_on().map_err(io::Error::other)?;
            let Some(from) = &mut self.from else {
                self.asked = Some(Instant::now());
                match self.steady.remote.get(self.object, self.rest.clone()) {
                    Ok(from) => self.from = Some(from),
                    Err(refused) => self.failed(refused)?,
                }
                continue;
            };
            let problem = match from.read(&mut into[..left]) {
                Ok(0) => "the answer ended too early".into(),
                Ok(bytes) => {
                    self.attempts.succeeded();
                    self.steady.traffic.came(bytes as u64, self.asked.take().map(|asked| asked.elapsed()));
                    self.rest.start += bytes as u64;
                    self.left = Instant::now();
                    if self.attempts.begun.elapsed() > self.longest {
                        self.attempts.all += 1;
                        let problem = format!("less than {LEAST_RATE} bytes a second came");
                        return Err(io::Error::other(self.attempts.failed(problem, None)));
                    }
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error.to_string(),
            };
            self.failed(Refusal { status: None, problem, again: Retry::Yes })?;
        }
    }
}

#[cfg(test)]
mod tests;
