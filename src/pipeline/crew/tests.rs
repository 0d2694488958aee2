//! Workers that rest and are called.

use super::*;
use crate::{
    fault::Error,
    observe::Counters,
    pipeline::{
        run::RunId,
        shared::Pipeline,
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

/// A crew of two, of whom `Auto` lets one rest.
fn crew(flow: Flow) -> Arc<Crew<()>> {
    let settings = Settings::new(1, 2);
    let flow = Flow { now: Arc::clone(&settings), ..flow };
    Arc::new(Crew::new(flow, Some(Tuning::new(settled(), settings))))
}

/// A copy of a loader for which the only worker at work hangs.
struct Stuck {
    copy: Arc<Pipeline<()>>,
    run: RunId,
    go_on: Arc<AtomicBool>,
    /// Those of the copy end before those of the crew.
    _threads: (Threads, Threads),
}

impl Stuck {
    fn new(crew: &Arc<Crew<()>>, counters: &Arc<Counters>) -> Self {
        let batches = 50;
        let [hung, go_on] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let data = Hangs { len: ROWS * batches, hung: Arc::clone(&hung), go_on: Arc::clone(&go_on) };
        let copy = one_of(crew, None, rows_of(data, counters), counters);
        let threads = threads(&copy);
        let run = copy.start(0, epoch_of(batches).feed, 0..batches);
        let begun = Instant::now();
        while !hung.load(SeqCst) {
            assert!(begun.elapsed() < Duration::from_secs(10), "the first worker never worked");
            let ready = crew.lock().run(run).is_some_and(|run| run.ready.contains_key(&run.delivered));
            if ready {
                drop(copy.next(run, Instant::now()));
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(crew.flow.now.workers(), 1);
        Self { copy, run, go_on, _threads: threads }
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        self.go_on.store(true, SeqCst);
        self.copy.end(self.run);
    }
}

/// The one that rests is called for another copy.
#[test]
fn who_hangs_for_one_copy_does_not_hold_up_another() {
    let (batches, counters) = (50, Arc::<Counters>::default());
    let crew = crew(flow());
    let stuck = Stuck::new(&crew, &counters);
    let second = one_of(&crew, None, rows(batches, &counters), &counters);
    let (threads, copy) = (Threads::of_steps(&second).unwrap(), counters.copy());
    let begun = Instant::now();
    let id = second.start(0, epoch_of(batches).feed, 0..batches);
    for number in 0..batches {
        let delivery = second.next(id, Instant::now()).expect("a batch");
        assert_eq!((delivery.place.batch, delivery.ready.is_ok()), (number, true));
        second.handed(copy, delivery.waited, Some(Duration::ZERO), delivery.as_chosen);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(crew.flow.now.workers(), 2, "called");
    drop((threads, stuck));
}

/// Nobody at work could tell a consumer that no slot comes. The one that rests does.
#[test]
fn who_rests_watches_the_patience_of_consumers() {
    let counters = Arc::<Counters>::default();
    let crew = crew(Flow { lease_timeout: Duration::from_millis(200), ..flow() });
    let stuck = Stuck::new(&crew, &counters);
    let second = one_of(&crew, None, rows(1, &counters), &counters);
    let permits: Vec<_> = std::iter::from_fn(|| second.pool.try_permit()).collect();
    let id = second.start(0, epoch_of(1).feed, 0..1);
    let delivery = second.next(id, Instant::now()).expect("an error");
    let Err(Error::LeaseTimeout { waited, .. }) = delivery.ready else { panic!("no LeaseTimeout") };
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert_eq!(crew.flow.now.workers(), 1, "that is no matter of workers");
    second.end(id);
    drop((permits, stuck));
}

/// While another epoch starts, all work: that says nothing about the number that was chosen.
#[test]
fn what_comes_while_an_epoch_starts_is_no_measure() {
    let counters = Arc::<Counters>::default();
    let crew = crew(flow());
    let [one, other] = [(); 2].map(|()| one_of(&crew, None, rows(3, &counters), &counters));
    let id = one.start(0, epoch_of(3).feed, 0..3);
    let next = |number| {
        let ready = (Instant::now(), Err(Error::OverLimit { bytes: 1, limit: 0 }));
        crew.lock().run(id).unwrap().ready.insert(number, ready);
        one.next(id, Instant::now()).unwrap().as_chosen
    };
    assert!(next(0));
    let starts = other.start(0, epoch_of(3).feed, 0..3);
    assert!(!next(1));
    other.end(starts);
    assert!(next(2));
}

/// An epoch that ends, or loses its first batch, before that is there leaves nobody at work who is not needed.
#[test]
fn workers_at_work_are_counted() {
    let counters = Arc::<Counters>::default();
    let crew = crew(Flow { timeout: Some(Duration::from_millis(20)), ..flow() });
    let copy = one_of(&crew, None, rows(2, &counters), &counters);
    let begin = || {
        let id = copy.start(0, epoch_of(2).feed, 0..2);
        assert_eq!(counters.loops().workers(), 2);
        id
    };
    copy.end(begin());
    assert_eq!(counters.loops().workers(), 1);
    let id = begin();
    let lost = copy.next(id, Instant::now()).expect("an error");
    assert!(matches!(lost.ready, Err(Error::Timeout { batch: 0, .. })) && !lost.as_chosen);
    assert_eq!(counters.loops().workers(), 1);
    let permits: Vec<_> = std::iter::from_fn(|| copy.pool.try_permit()).collect();
    copy.end(id);
    let id = copy.start(0, epoch_of(2).feed, 0..2);
    assert_eq!(counters.loops().workers(), 1, "it has no permit yet");
    drop(permits);
    assert_eq!(counters.loops().workers(), 2);
    copy.end(id);
}
