//! CUDA's hardware queues. Streams that share a queue wait for each other.

use crate::fault::Error;
use std::{env, fs};

/// The environment variable that sets the number of queues. The documentation of [`prepare`](crate::prepare) describes it.
pub(super) const VARIABLE: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
/// nvJPEG creates several streams. Together with those of CubeCL and of the loader, 8 queues are too few: see benches/README.md.
const ENOUGH_QUEUES: u32 = 16;

/// Whether, with this value of the variable, steps wait for a decoder on the device.
fn are_few(value: Option<&str>) -> bool {
    value.and_then(|value| value.trim().parse().ok()).is_none_or(|queues: u32| queues < ENOUGH_QUEUES)
}

/// Returns the problem in words, if steps would wait for a decoder on the device.
pub(crate) fn few_queues() -> Option<String> {
    let are_few = are_few(env::var(VARIABLE).ok().as_deref());
    are_few.then(|| format!("with few hardware queues, steps wait for the device's decoder: {}", advice()))
}

/// Returns the advice in errors and warnings about too few queues.
fn advice() -> String {
    format!("call `burn_pinned::prepare()` first in `main`, or start the program with {VARIABLE}=32 in its environment")
}

/// Whether to set the variable, in a process with this number of threads. It stays if the user has set it.
///
/// # Errors
/// If another thread may read the environment meanwhile.
pub(super) fn may_set(is_set: bool, threads: Option<usize>) -> Result<bool, Error> {
    let problem = match threads {
        _ if is_set => return Ok(false),
        _ if cfg!(windows) => return Ok(true),
        Some(1) => return Ok(true),
        Some(threads) => format!("the process has {threads} threads, and one of them may read the environment"),
        None => "this system does not say how many threads the process has".into(),
    };
    Err(Error::config("prepare", problem, advice()))
}

/// The number of threads of the process, if Linux reports it.
pub(super) fn threads() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn it_is_set_by_a_process_of_one_thread_unless_the_user_has_set_it() {
        assert!(may_set(false, Some(1)).unwrap());
        for threads in [None, Some(1), Some(9)] {
            assert!(!may_set(true, threads).unwrap());
        }
        for (threads, words) in [(Some(9), "has 9 threads"), (None, "does not say how many")] {
            let late = may_set(false, threads).unwrap_err().to_string();
            assert!(late.contains(words) && late.contains("first in `main`"), "{late}");
        }
    }

    #[test]
    fn eight_are_few_and_are_what_nobody_has_set() {
        assert!([None, Some("8"), Some("15"), Some(""), Some("many")].into_iter().all(are_few));
        assert!(!are_few(Some("16")) && !are_few(Some(" 32 ")));
        let few = few_queues(); // in the environment of this test
        assert_eq!(few.is_some(), are_few(env::var(VARIABLE).ok().as_deref()));
        assert!(few.is_none_or(|problem| problem.contains("call `burn_pinned::prepare()` first in `main`")));
    }

    #[test]
    fn linux_says_how_many_threads_there_are() {
        // Other tests run meanwhile.
        let with_two = thread::scope(|scope| scope.spawn(threads).join().unwrap());
        assert!(with_two.is_some_and(|threads| threads >= 2), "{with_two:?}");
    }
}
