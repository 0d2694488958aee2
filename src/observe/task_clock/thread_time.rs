//! How long the calling thread was awake: the time in which it computed or waited for a core. In the rest of its time
//! it slept, for example waiting for a disk or a network. Only Linux reports this.

use std::{cell::Cell, time::Duration};

thread_local! {
    /// How long the thread was awake until its last `look`; `None` if it is not followed.
    static LAST: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Begins to follow the calling thread, unless it is followed already.
pub(super) fn follow() {
    if LAST.get().is_none() {
        LAST.set(now());
    }
}

/// Stops following the calling thread.
pub(super) fn leave() {
    LAST.set(None);
}

/// Returns how long the calling thread was awake since `follow` or the last `look`. `None` if that is not known.
///
/// Linux updates a thread's time when the thread stops, and otherwise every few milliseconds. Time that is added late
/// counts towards the next look. So only the sum of many consecutive looks is accurate.
pub(super) fn look() -> Option<Duration> {
    let now = now()?;
    LAST.replace(Some(now)).map(|last| now.saturating_sub(last))
}

/// How long the calling thread has been awake in total.
#[cfg(target_os = "linux")]
fn now() -> Option<Duration> {
    use std::{fs::File, os::unix::fs::FileExt};

    thread_local! {
        // Reading an open file takes 2 µs, opening it 10 µs.
        static FILE: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    FILE.with(|file| {
        let mut text = [0; 64];
        let len = file.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(str::from_utf8(text.get(..len)?).ok()?)
    })
}

#[cfg(not(target_os = "linux"))]
fn now() -> Option<Duration> {
    None
}

/// Parses the nanoseconds on a core, the nanoseconds waiting for a core, and how often the thread ran. A kernel that
/// does not count writes zeros.
#[cfg(any(target_os = "linux", test))]
fn parse(line: &str) -> Option<Duration> {
    let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().ok());
    let (computed, waited, times) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (times > 0).then(|| Duration::from_nanos(computed.saturating_add(waited)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        thread::{sleep, spawn},
        time::Instant,
    };

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn lines() {
        assert_eq!(parse("5 7 1\n"), Some(Duration::from_nanos(12)));
        assert_eq!(parse("0 0 1"), Some(Duration::ZERO), "a thread that has just begun");
        for unknown in ["0 0 0\n", "", "5 7", "5 x 1", "-5 7 1"] {
            assert_eq!(parse(unknown), None, "{unknown:?}");
        }
    }

    /// Returns how long a thread was awake, and how long it took in all, if it looks after each run of `work`.
    fn followed(runs: u32, work: fn()) -> Option<(Duration, Duration)> {
        let thread = spawn(move || {
            follow();
            let (started, mut awake) = (Instant::now(), Duration::ZERO);
            for _ in 0..runs {
                work();
                awake += look()?;
            }
            Some((awake, started.elapsed()))
        });
        thread.join().unwrap()
    }

    fn compute() {
        let started = Instant::now();
        while started.elapsed() < 2 * MS {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_thread_that_sleeps_is_told_from_one_that_computes() {
        let Some((awake, took)) = followed(20, || sleep(10 * MS)) else { return }; // this system does not tell
        assert!(awake < took / 2, "{awake:?} of {took:?}");
        let (awake, took) = followed(100, compute).expect("the system told before");
        assert!(awake > took.mul_f64(0.8), "{awake:?} of {took:?}"); // also where other programs have the cores
    }

    #[test]
    fn a_thread_that_looked_away_begins_anew() {
        let thread = spawn(|| {
            follow();
            assert!(look().is_none_or(|awake| awake < 1000 * MS));
            leave();
            assert_eq!(look(), None);
        });
        thread.join().unwrap();
    }
}
