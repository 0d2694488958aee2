//! Several iterators that one loop reads in turn, and how soon the first batch of an epoch comes.

use crate::common::*;
use burn_pinned::{BadSamples, fault::Quota};
use std::time::{Duration, Instant};

/// There are fewer slots than iterators. The loop itself keeps the others from being read, so no wait would help.
#[test]
fn more_iterators_than_slots_in_turn_do_not_wait() {
    const ITERATORS: usize = 7;
    soon("the longest wait for a batch of seven iterators in turn", || {
        let loader = builder().build(Numbers::new(8 * 40)).unwrap();
        let mut iters: Vec<_> = (0..ITERATORS).map(|_| loader.iter()).collect();
        let mut longest = Duration::ZERO;
        for batch in 0..40 {
            for iter in &mut iters {
                let asked = Instant::now();
                let shown = iter.next().unwrap().unwrap();
                longest = longest.max(asked.elapsed());
                assert_eq!(shown.numbers, (8 * batch..8 * batch + 8).collect::<Vec<_>>());
            }
        }
        assert!(iters.iter_mut().all(|iter| iter.next().is_none()));
        longest
    });
}

/// Under a quota that allows all of an epoch to be skipped, a batch does not wait for the one after it.
#[test]
fn the_first_batch_comes_before_the_second_is_read() {
    for policy in [BadSamples::Fail, BadSamples::Skip(Quota::Share(1.0)), BadSamples::Skip(Quota::Count(1000))] {
        let data = Numbers::new(24).with(8, Mischief::Hang);
        let gate = data.gate.clone();
        let loader = builder().timeout(Duration::from_secs(5)).bad_samples(policy).build(data).unwrap();
        let mut iter = loader.iter();
        let first = iter.next().unwrap();
        assert_eq!(first.unwrap().numbers, (0..8).collect::<Vec<_>>(), "{policy:?}");
        assert_eq!((loader.state().epoch(), loader.state().position()), (0, 8));
        gate.open();
        assert!(!iter.progress().is_completed());
        assert_eq!(iter.count(), 2);
    }
}

/// The progress waits where it has to: the first batch may also be the last.
#[test]
fn the_progress_knows_whether_the_first_batch_is_the_last() {
    for last in [false, true] {
        let bad = |at: usize| at >= 8 && (last || at < 16);
        let data = (0..24)
            .filter(|at| bad(*at))
            .fold(Numbers::new(24), |data, at| data.with(at, Mischief::SleepError(Duration::from_millis(5))));
        let loader = builder().bad_samples(BadSamples::Skip(Quota::Share(1.0))).build(data).unwrap();
        let mut iter = loader.iter();
        iter.next().unwrap().unwrap();
        assert_eq!(iter.progress().is_completed(), last);
        let at = (loader.state().epoch(), loader.state().position());
        assert_eq!(at, if last { (1, 0) } else { (0, 8) });
        assert_eq!(iter.count(), usize::from(!last));
        assert_eq!((loader.state().epoch(), loader.state().position()), (1, 0));
    }
}
