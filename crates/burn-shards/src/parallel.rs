//! Does the same work on many objects, on several threads. It is for `open` and for what is read as a whole before
//! training, when there are no workers yet.

#[cfg(feature = "remote")]
use super::ends::{end_waits_by, ends_waits};
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

/// Calls `act` for each item, on all threads of the machine. The first error, in the order of the items, is the result.
pub(crate) fn in_parallel<I: Sync, O: Send, E: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<O, E> + Sync,
) -> Result<Vec<O>, E> {
    in_parallel_by(thread::available_parallelism().map_or(1, usize::from), items, work)
}

/// As [`in_parallel`], on `threads` named threads. It is for work that waits.
pub(crate) fn in_parallel_by<I: Sync, O: Send, E: Send>(
    threads: usize,
    items: &[I],
    work: impl Fn(&I) -> Result<O, E> + Sync,
) -> Result<Vec<O>, E> {
    let threads = threads.min(items.len());
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(at) else { return done };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Relaxed); // the others end after their item
            }
            done.push((at, result));
        }
    };
    // What ends the waits of the calling thread ends the waits of these threads too.
    #[cfg(feature = "remote")]
    let ends = ends_waits();
    let run_beside = || {
        #[cfg(feature = "remote")]
        ends.iter().cloned().for_each(end_waits_by);
        run()
    };
    let mut done = thread::scope(|scope| {
        let spawn = |n| thread::Builder::new().name(format!("bp-open-{n}")).spawn_scoped(scope, run_beside);
        let others: Vec<_> = (1..threads).filter_map(|n| spawn(n).ok()).collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DataError;

    #[test]
    fn the_first_error_in_order_is_the_result() {
        let fail = |n: &usize| if *n >= 3 { Err(DataError::damaged(&n.to_string(), "bad")) } else { Ok(*n) };
        assert_eq!(in_parallel(&[0, 1, 2], fail).unwrap(), [0, 1, 2]);
        assert!(in_parallel(&[0, 1, 2, 3, 4, 5, 6, 7, 8], fail).unwrap_err().to_string().starts_with('3'));
    }
}
