//! CUDA's hardware queues. Streams that share a queue wait for each other.
#![cfg_attr(feature = "cuda", expect(unsafe_code))]

use crate::fault::Error;
#[cfg(feature = "cuda")]
use std::env;
use std::fs;

/// The environment variable that sets the number of queues. CUDA reads it when the process first uses a device. Its default is 8,
/// and the most is 32.
const VARIABLE: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
/// nvJPEG makes several streams. Beside CubeCL's and those of the loader, 8 queues are too few: see benches/README.md.
#[cfg(feature = "cuda")]
const ENOUGH_QUEUES: u32 = 16;

/// What to write instead.
fn advice() -> String {
    format!("call `burn_pinned::prepare()` first in `main`, or start the program with {VARIABLE}=32 in its environment")
}

/// Asks for 32 queues, unless the environment says how many there should be.
#[cfg(feature = "cuda")]
pub(crate) fn prepare() -> Result<(), Error> {
    if may_set(env::var_os(VARIABLE).is_some(), threads())? {
        // SAFETY: the process has this thread alone, so nobody reads the environment meanwhile. Windows locks its environment.
        unsafe { env::set_var(VARIABLE, "32") };
    }
    Ok(())
}

/// Whether the number is to be set, by the calling thread of a process with so many threads.
fn may_set(is_set: bool, threads: Option<usize>) -> Result<bool, Error> {
    let problem = match threads {
        _ if is_set => return Ok(false),
        _ if cfg!(windows) => return Ok(true),
        Some(1) => return Ok(true),
        Some(threads) => format!("the process has {threads} threads, and one of them may read the environment"),
        None => "this system does not say how many threads the process has".into(),
    };
    Err(Error::config("prepare", problem, advice()))
}

/// The threads of the process, where Linux says it.
fn threads() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

/// Warns, once, if steps would wait for a decoder on the device.
///
/// # Errors
/// The same in words, if the workers can decode instead.
#[cfg(feature = "cuda")]
pub(super) fn check(workers_can: bool) -> Result<(), String> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let queues = env::var(VARIABLE).ok().and_then(|value| value.trim().parse().ok());
    if queues.is_some_and(|queues: u32| queues >= ENOUGH_QUEUES) {
        return Ok(());
    }
    let place = if workers_can { "on the workers" } else { "on the device" };
    let problem = format!("with few hardware queues, steps wait for the device's decoder: {}", advice());
    ONCE.call_once(|| log::warn!("burn-pinned decodes images {place}: {problem}"));
    if workers_can { Err(problem) } else { Ok(()) }
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
    fn linux_says_how_many_threads_there_are() {
        // Other tests run meanwhile.
        let with_two = thread::scope(|scope| scope.spawn(threads).join().unwrap());
        assert!(with_two.is_some_and(|threads| threads >= 2), "{with_two:?}");
    }
}
