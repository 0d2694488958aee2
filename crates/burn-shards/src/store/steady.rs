//! Repeats a request that broke off, from the byte where it broke off.

use super::{
    Store,
    remote::{Again, Refused, Remote},
    stop::Stop,
};
use crate::{error::StoreError, traffic::Traffic};
use std::{
    io::{self, Read},
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a part is tried for. Both count from the last byte that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// The most attempts in a row that give no byte.
    pub(crate) attempts: u32,
    /// No attempt begins later.
    pub(crate) time: Duration,
    /// The pause after the first attempt. Each one after it is twice as long, up to [`LONGEST`].
    pub(crate) pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { attempts: 8, time: Duration::from_secs(60), pause: Duration::from_millis(100) }
    }
}

/// No pause is longer, whatever a store asks for.
const LONGEST: Duration = Duration::from_secs(5);
/// A part is not asked for more often, however little each answer brings.
const MOST: u32 = 1000;
/// Bytes a second. A part that comes more slowly has failed.
const LEAST: u64 = 1 << 10;

/// A store that gives up only after [`Patience`].
#[derive(Debug)]
pub(crate) struct Steady<R> {
    remote: R,
    patience: Patience,
    traffic: Arc<Traffic>,
}

impl<R: Remote> Steady<R> {
    pub(crate) fn new(remote: R, patience: Patience, traffic: Arc<Traffic>) -> Self {
        Self { remote, patience, traffic }
    }
}

impl<R: Remote> Store for Steady<R> {
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        let attempts = Attempts::new(self.patience);
        let longest = self.patience.time + Duration::from_secs((part.end - part.start) / LEAST);
        Ok(Box::new(Body { steady: self, object, rest: part, from: None, attempts, asked: None, longest }))
    }

    fn beside(&self, object: usize, extension: &str) -> io::Result<Option<Vec<u8>>> {
        patiently(self.patience, || self.remote.beside(object, extension)).map_err(io::Error::other)
    }
}

/// Asks until there is an answer, within [`Patience`].
pub(super) fn patiently<T>(patience: Patience, ask: impl Fn() -> Result<T, Refused>) -> Result<T, StoreError> {
    let mut attempts = Attempts::new(patience);
    loop {
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(refused) => attempts.wait(refused)?,
        }
    }
}

/// The attempts at one thing that have failed.
struct Attempts {
    patience: Patience,
    begun: Instant,
    /// All of them, and those since the last byte.
    all: u32,
    vain: u32,
    /// When the last byte came, or it was begun.
    since: Instant,
}

impl Attempts {
    fn new(patience: Patience) -> Self {
        let now = Instant::now();
        Self { patience, begun: now, all: 0, vain: 0, since: now }
    }

    fn came(&mut self) {
        (self.vain, self.since) = (0, Instant::now());
    }

    /// Waits before the next attempt. An error if there is none.
    fn wait(&mut self, Refused { status, problem, again }: Refused) -> Result<(), StoreError> {
        (self.all, self.vain) = (self.all + 1, self.vain + 1);
        let Patience { attempts, time, pause } = self.patience;
        let pause = match again {
            Again::Yes => pause.saturating_mul(1 << (self.vain - 1).min(16)),
            Again::After(named) => named.max(pause),
            Again::No => Duration::MAX,
        };
        let pause = if again == Again::No { pause } else { pause.min(LONGEST) };
        let is_late = self.since.elapsed().saturating_add(pause) > time;
        if self.vain >= attempts || self.all >= MOST || is_late {
            return Err(StoreError { problem, status, attempts: self.all });
        }
        log::debug!("a request is made again: {problem}");
        if !Stop::default().sleep(pause) {
            return Err(StoreError { problem: "nobody needs it any more".into(), status, attempts: self.all });
        }
        Ok(())
    }
}

/// The bytes of a part, through as many requests as it takes.
struct Body<'a, R> {
    steady: &'a Steady<R>,
    object: usize,
    /// What has not come yet.
    rest: Range<u64>,
    from: Option<Box<dyn Read + Send + 'a>>,
    attempts: Attempts,
    /// When a request was made that has not brought a byte yet.
    asked: Option<Instant>,
    /// How long all of it may take.
    longest: Duration,
}

impl<R: Remote> Body<'_, R> {
    fn failed(&mut self, refused: Refused) -> io::Result<()> {
        self.from = None;
        self.attempts.wait(refused).map_err(io::Error::other)?;
        self.steady.traffic.retried();
        Ok(())
    }
}

impl<R: Remote> Read for Body<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX).min(into.len());
        if left == 0 {
            return Ok(0);
        }
        loop {
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
                    self.attempts.came();
                    self.steady.traffic.came(bytes as u64, self.asked.take().map(|asked| asked.elapsed()));
                    self.rest.start += bytes as u64;
                    if self.attempts.begun.elapsed() > self.longest {
                        let problem = format!("less than {LEAST} bytes a second came");
                        return Err(io::Error::other(StoreError {
                            problem,
                            status: None,
                            attempts: self.attempts.all + 1,
                        }));
                    }
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error.to_string(),
            };
            self.failed(Refused { status: None, problem, again: Again::Yes })?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::io::Cursor;

    /// Answers as told: with so many bytes of the part, or not at all. Then with all of it.
    #[derive(Debug)]
    struct Told(Mutex<Vec<Result<usize, Refused>>>, Mutex<Vec<Range<u64>>>);

    impl Remote for Told {
        fn get(&self, _: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refused> {
            self.1.lock().push(part.clone());
            let bytes: Vec<u8> = part.map(|at| at as u8).collect();
            let most = match self.0.lock().pop() {
                Some(told) => told?,
                None => bytes.len(),
            };
            Ok(Box::new(Cursor::new(bytes).take(most as u64)))
        }
    }

    fn refused(again: Again) -> Result<usize, Refused> {
        Err(Refused { status: Some(503), problem: "busy".into(), again })
    }

    fn steady(mut told: Vec<Result<usize, Refused>>) -> Steady<Told> {
        told.reverse();
        let patience = Patience { attempts: 3, time: Duration::from_secs(60), pause: Duration::ZERO };
        Steady::new(Told(Mutex::new(told), Mutex::default()), patience, Arc::default())
    }

    #[test]
    fn a_part_goes_on_inside_the_object() {
        let store = steady(vec![refused(Again::Yes), Ok(10), refused(Again::After(Duration::ZERO)), Ok(5)]);
        let mut bytes = [0; 50];
        store.read(0, 100, &mut bytes).unwrap();
        assert!(bytes.iter().copied().eq(100..150));
        assert_eq!(*store.remote.1.lock(), [100..150, 100..150, 110..150, 110..150, 115..150]);
        let seen = store.traffic.seen();
        assert_eq!((seen.requests, seen.retries, seen.bytes), (3, 4, 50));
    }

    #[test]
    fn attempts_in_vain_are_bounded_and_told() {
        let store = steady(vec![Ok(1), refused(Again::Yes), refused(Again::Yes), refused(Again::Yes)]);
        let error = store.read(0, 0, &mut [0; 9]).unwrap_err();
        let told = error.get_ref().and_then(|error| error.downcast_ref::<StoreError>()).unwrap();
        assert_eq!((told.status, told.attempts), (Some(503), 3));
        assert_eq!(error.to_string(), "busy (status 503, attempt 3)");
    }

    #[test]
    fn a_store_that_trickles_has_an_end() {
        let told = Told(Mutex::default(), Mutex::default());
        let patience = Patience { attempts: 3, time: Duration::ZERO, pause: Duration::ZERO };
        let store = Steady::new(told, patience, Arc::default());
        let mut body = store.open(0, 0..9).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let error = body.read(&mut [0; 1]).unwrap_err();
        assert!(error.to_string().contains("bytes a second"), "{error}");
    }

    #[test]
    fn what_cannot_succeed_is_not_tried_again() {
        let store = steady(vec![refused(Again::No)]);
        assert!(store.read(0, 0, &mut [0; 9]).is_err());
        assert_eq!(store.remote.1.lock().len(), 1);
    }
}
