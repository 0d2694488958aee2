//! Loaders at the end of a thread, and in a process that has forked.

use crate::{apart::apart, common::*};
use burn::data::dataloader::DataLoaderIterator;
use burn_pinned::{Error, PinnedDataLoader};
use std::{
    cell::RefCell,
    sync::Arc,
    time::{Duration, Instant},
};

struct Held {
    iter: Option<Box<dyn DataLoaderIterator<Shown>>>,
    loader: Option<Arc<PinnedDataLoader<Shown>>>,
}

thread_local! {
    static HELD: RefCell<Held> = const { RefCell::new(Held { iter: None, loader: None }) };
}

/// A thread that ends drops its loader when its own thread-locals, and those of this crate, are gone already.
#[test]
fn a_thread_may_hold_a_loader_until_it_ends() {
    for timeout in ["", "timed"] {
        for part in ["loader", "iterator", "panic"] {
            apart("ends::thread_child", &[("PART", part), ("TIMED", timeout), ("RUST_BACKTRACE", "1")]);
        }
    }
}

#[test]
#[ignore = "run by the test above"]
fn thread_child() {
    let part = std::env::var("PART").unwrap();
    std::thread::spawn(move || {
        HELD.with_borrow_mut(|held| {
            let data = Numbers::new(40).with(39, Mischief::Panic);
            let builder = builder();
            let timed = std::env::var("TIMED").unwrap() == "timed";
            let builder = if timed { builder.timeout(Duration::from_secs(5)) } else { builder };
            let loader = builder.build(data).unwrap();
            match &*part {
                "iterator" => {
                    let forever: &'static PinnedDataLoader<Shown> = Box::leak(Box::new(Arc::clone(&loader)));
                    let mut iter = forever.iter();
                    assert!(iter.next().unwrap().is_ok());
                    held.iter = Some(iter);
                }
                "panic" => assert_eq!(loader.iter().filter(|batch| batch.is_err()).count(), 1),
                _ => assert!(loader.iter().next().unwrap().is_ok()),
            }
            held.loader = Some(loader);
        });
    })
    .join()
    .unwrap();
    if std::env::var("PART").unwrap() != "iterator" {
        wait_for_threads(0);
    }
}

/// The child has none of the loader's threads.
#[cfg(unix)]
#[test]
fn a_forked_child_is_told_that_it_has_no_threads() {
    apart("ends::fork_child", &[]);
}

#[cfg(unix)]
#[test]
#[ignore = "run by the test above"]
#[expect(unsafe_code, reason = "std cannot fork")]
fn fork_child() {
    let unused = builder().build(Numbers::new(40)).unwrap();
    let loader = builder().build(Numbers::new(400)).unwrap();
    let dropped = builder().build(Numbers::new(400)).unwrap();
    dropped.iter().next().unwrap().unwrap();
    let mut iter = loader.iter();
    iter.next().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(50)); // nobody holds a lock
    // SAFETY: the threads of the loader sleep, so no lock is held that the child would wait for.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let checks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let forked = |error| matches!(Error::of(&error), Some(Error::Forked { .. }));
            assert!(forked(iter.next().unwrap().unwrap_err()));
            assert!(iter.next().is_none() && !iter.progress().is_completed(), "the epoch is over");
            let mut other = loader.iter();
            assert!(forked(other.next().unwrap().unwrap_err()) && other.next().is_none());
            drop(other);
            drop(dropped);
            assert_eq!(epoch(&*unused).len(), 5, "a loader that had no threads yet has some now");
            assert_eq!(epoch(&*builder().build(Numbers::new(16)).unwrap()).len(), 2);
        }));
        // SAFETY: the child ends without the destructors of the test program.
        unsafe { libc::_exit(i32::from(checks.is_err())) };
    }
    let (start, mut status) = (Instant::now(), -1);
    // SAFETY: it is a child of this process, and `status` is an integer.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > Duration::from_secs(10) {
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child waits for ever");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    assert_eq!(iter.filter(Result::is_ok).count(), 49, "the parent goes on");
}
