//! Workers that rest and are called.

use super::*;
use crate::{
    observe::Counters,
    pipeline::{
        threads::Threads,
        transfer::tests::fake::{ROWS, epoch_of, flow, one_of, rows, rows_of, threads},
        tune::{Seen, Settings, Tuner},
    },
};
use burn::data::dataset::{Dataset, DatasetError};
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

/// Hangs on the first worker, after the first batch, until it is let go.
struct Hangs {
    len: usize,
    hung: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
}

impl Dataset<u8> for Hangs {
    fn get(&self, index: usize) -> Result<u8, DatasetError> {
        if index >= ROWS && thread::current().name() == Some("bp-worker-0") {
            self.hung.store(true, SeqCst);
            while !self.go_on.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(index as u8)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// A tuner of two workers that has come down to one.
fn settled() -> Tuner {
    let mut tuner = Tuner::new((1, 2), (2, 2));
    let calm = Seen { time: Duration::from_secs(1), waited: Duration::ZERO, batches: 100 };
    for _ in 0..20 {
        tuner.window(calm);
    }
    assert_eq!((tuner.workers(), tuner.settled().0), (1, 1));
    tuner
}

/// The only worker at work hangs for one copy of the loader. The one that rests is called for another copy.
#[test]
fn who_hangs_for_one_copy_does_not_hold_up_another() {
    let (batches, counters) = (50, Arc::<Counters>::default());
    let settings = Settings::new(1, 2);
    let flow = Flow { now: Arc::clone(&settings), ..flow() };
    let crew = Arc::new(Crew::new(flow, Some(Tuning::new(settled(), settings))));
    let [hung, go_on] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let data = Hangs { len: ROWS * batches, hung: Arc::clone(&hung), go_on: Arc::clone(&go_on) };
    let first = one_of(&crew, None, rows_of(data, &counters), &counters);
    let second = one_of(&crew, None, rows(batches, &counters), &counters);
    let threads = (Threads::of_steps(&first).unwrap(), threads(&second));
    let stuck = first.start(0, epoch_of(batches).feed, 0..batches);
    let begun = Instant::now();
    while !hung.load(SeqCst) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the first worker never worked");
        let ready = crew.lock().run(stuck).is_some_and(|run| run.ready.contains_key(&run.delivered));
        if ready {
            drop(first.next(stuck, Instant::now()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(crew.flow.now.workers(), 1);
    let begun = Instant::now();
    let id = second.start(0, epoch_of(batches).feed, 0..batches);
    for number in 0..batches {
        let delivery = second.next(id, Instant::now()).expect("a batch");
        assert_eq!((delivery.place.batch, delivery.ready.is_ok()), (number, true));
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(crew.flow.now.workers(), 2, "called");
    go_on.store(true, SeqCst);
    first.end(stuck);
    drop(threads);
}
