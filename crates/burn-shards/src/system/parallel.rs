//! Does the same work on many objects, on several threads. It is for `open` and for reading whole data sets before training, when there are
//! no workers yet.

use super::ends::{end_waits_by, ends_waits};
use crate::system::caught::{UserValues, discard};
use std::{
    cmp::Reverse,
    panic::resume_unwind,
    sync::{
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, Scope, ScopedJoinHandle},
};

/// Calls `act` for each item, on all threads of the machine. It returns the first error, in the order of the items.
pub(crate) fn in_parallel<I: Sync, O: Send, E: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<O, E> + Sync,
) -> Result<Vec<O>, E> {
    in_parallel_by(cores(), items, work)
}

/// The number of threads that the machine has.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// As [`in_parallel`], on `threads` named threads, for work that mostly waits.
pub(crate) fn in_parallel_by<I: Sync, O: Send, E: Send>(
    threads: usize,
    items: &[I],
    work: impl Fn(&I) -> Result<O, E> + Sync,
) -> Result<Vec<O>, E> {
    let next = AtomicUsize::new(0);
    // The results and errors may be of a user's types.
    let run = || {
        let mut done = UserValues::default();
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(at) else { return done };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Relaxed); // the other threads end after their current item
            }
            done.push((at, result));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len())).filter_map(|n| spawn(scope, n, run)).collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)).take());
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| Reverse(*at));
    let mut all = UserValues(Vec::with_capacity(done.len()));
    while let Some((_, result)) = done.pop() {
        all.push(result?);
    }
    Ok(all.take())
}

/// As [`in_parallel_by`], but gives each result to `take`, in the order of the items and on the calling thread. At most two results for
/// each thread are kept.
pub(crate) fn in_order<I: Sync, O: Send, E: Send>(
    threads: usize,
    items: &[I],
    work: impl Fn(&I) -> Result<O, E> + Sync,
    mut take: impl FnMut(O) -> Result<(), E>,
) -> Result<(), E> {
    let work = &work;
    thread::scope(|scope| {
        // The items go to the threads in turn, so the thread of the next result is known.
        let start = |n| {
            let (sender, results) = mpsc::sync_channel(1);
            let own = items.iter().skip(n).step_by(threads);
            spawn(scope, n, move || own.map(work).all(|result| sender.send(result).map_err(discard).is_ok()));
            results
        };
        // Results that are not taken may contain errors of a user's types.
        let threads = UserValues((0..threads.min(items.len())).map(start).collect::<Vec<_>>());
        for (results, item) in threads.iter().cycle().zip(items) {
            // The calling thread does the work of a thread that could not start. If a thread panicked, this one repeats the work and panics
            // too.
            take(results.recv().unwrap_or_else(|_| work(item))?)?;
        }
        Ok(())
    })
}

/// Starts a thread with a name. It inherits the flag that ends the calling thread's waits.
fn spawn<'scope, O: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    number: usize,
    run: impl FnOnce() -> O + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, O>> {
    let ends = ends_waits();
    let run = move || {
        ends.into_iter().for_each(end_waits_by);
        run()
    };
    thread::Builder::new().name(format!("bp-open-{number}")).spawn_scoped(scope, run).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DataError;
    use std::{mem, sync::Barrier};

    #[test]
    fn the_first_error_in_order_is_the_result() {
        let fail = |n: &usize| if *n >= 3 { Err(DataError::damaged(&n.to_string(), "bad")) } else { Ok(*n) };
        assert_eq!(in_parallel(&[0, 1, 2], fail).unwrap(), [0, 1, 2]);
        assert!(in_parallel(&[0, 1, 2, 3, 4, 5, 6, 7, 8], fail).unwrap_err().to_string().starts_with('3'));
    }

    #[test]
    fn results_are_taken_in_order_and_few_are_kept() {
        let items: Vec<usize> = (0..500).collect();
        let (begun, mut taken) = (AtomicUsize::new(0), Vec::new());
        let work = |n: &usize| {
            begun.fetch_add(1, Relaxed);
            if n.is_multiple_of(50) {
                thread::sleep(std::time::Duration::from_millis(5));
            }
            Ok::<_, DataError>(*n)
        };
        in_order(4, &items, work, |n| {
            let ahead = begun.load(Relaxed) - taken.len();
            assert!(ahead <= 8 + 1, "{ahead} results are kept");
            taken.push(n);
            Ok(())
        })
        .unwrap();
        assert_eq!(taken, items);
    }

    #[test]
    fn the_first_error_of_work_or_of_taking_ends_it() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [1, 4] {
            let (mut taken, begun) = (0, AtomicUsize::new(0));
            let fail = |n: &usize| {
                begun.fetch_add(1, Relaxed);
                if *n >= 30 { Err(*n) } else { Ok(*n) }
            };
            let error = in_order(threads, &items, fail, |_| {
                taken += 1;
                Ok(())
            });
            assert_eq!((error, taken), (Err(30), 30));
            assert!(begun.into_inner() < 50);
            assert_eq!(in_order(threads, &items, |n| Ok(*n), |n| if n == 7 { Err(n) } else { Ok(()) }), Err(7));
        }
    }

    /// A result or an error of the user's, whose `drop` panics.
    #[derive(Debug, PartialEq)]
    struct Bomb(usize);

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped {}", self.0);
        }
    }

    /// Each thread has an error, or the first one has and the others have results. Their panics would end the process.
    #[test]
    fn what_is_not_taken_is_dropped_one_by_one() {
        let items: Vec<usize> = (0..6).collect();
        for failing in [6, 1] {
            let all_have_begun = Barrier::new(3);
            let work = |n: &usize| {
                if *n < 3 {
                    all_have_begun.wait();
                }
                if *n < failing { Err(Bomb(*n)) } else { Ok(Bomb(*n)) }
            };
            let first = in_parallel_by(3, &items, work).unwrap_err();
            assert_eq!(first.0, 0);
            mem::forget(first);
            let first = in_order(3, &items, work, |_| Ok(())).unwrap_err();
            assert_eq!(first.0, 0);
            mem::forget(first);
        }
        // Of threads of which one panics, too.
        let all_have_begun = Barrier::new(3);
        let caught = std::panic::catch_unwind(|| {
            in_parallel_by(3, &items[..3], |n| {
                all_have_begun.wait();
                if *n == 2 { panic!("two") } else { Ok::<_, ()>(UserValues(vec![Bomb(*n), Bomb(*n)])) }
            })
        });
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"two"));
    }

    #[test]
    fn a_panic_of_work_is_one_of_the_caller() {
        let items: Vec<usize> = (0..100).collect();
        let work = |n: &usize| if *n == 5 { panic!("five") } else { Ok::<_, ()>(*n) };
        let caught = std::panic::catch_unwind(|| in_order(3, &items, work, |_| Ok(())));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"five"));
    }
}
