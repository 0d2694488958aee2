//! Which work a worker takes, and what a consumer finds.

use super::{workers::Work, *};
use crate::{
    batch::{BatchPlan, BatchState, Content, OpenBatch},
    fault::{Error, Skips},
    memory::{HeapAlloc, Pool, PoolLimits},
    order::Schedule,
};
use std::time::Duration;

const BATCHES: usize = 9;
const DEPTH: Depth = Depth { prefetch: 2, slots: 4 };

/// A batch that is only looked at.
fn batch(key: BatchKey, state: BatchState<()>) -> Batch<()> {
    Batch { key, state, skips: Skips::default() }
}

fn tasks(key: BatchKey, count: usize) -> Vec<Task<()>> {
    let plan = BatchPlan {
        key,
        indices: vec![0].into(),
        items: None,
        positions: None,
        occurrences: None,
        abandoned: Arc::default(),
    };
    let plan = Arc::new(plan);
    let content = Content::SentItems { plan: Arc::clone(&plan), batch: (), tensors: Vec::new() };
    let batch = OpenBatch::new(plan, count, content);
    (0..count).map(|row| Task { batch: Arc::clone(&batch), rows: row..row + 1, chunk: None }).collect()
}

/// A state with workers and a pool of permits.
struct Fixture {
    state: State<()>,
    pool: Arc<Pool>,
    now: Instant,
}

impl Fixture {
    fn new(workers: usize) -> Self {
        let mut state = State::new(DEPTH);
        state.set_workers(workers);
        let limits = PoolLimits { slots: DEPTH.slots, bytes: 1000 };
        Self { state, pool: Pool::new(Arc::new(HeapAlloc), limits, Arc::default()), now: Instant::now() }
    }

    /// Begins an epoch of batches of one sample.
    fn begin(&mut self) -> IteratorId {
        let (feed, _) = Schedule::sequential(BATCHES, 1).epoch(0).unwrap();
        self.state.add_epoch(BatchKey::new(0, 0), Some(feed), 0..BATCHES)
    }

    fn take(&mut self) -> Option<Work<()>> {
        let Self { state, pool, now } = self;
        state.take_work(pool.has_permit(), || pool.try_permit(), *now, *now)
    }

    /// The epoch and the number of the batch that the next work is for, and whether it is to be opened.
    fn next(&mut self) -> Option<(IteratorId, usize, bool)> {
        let work = self.take()?;
        match work {
            Work::Open { batch, feed, .. } => {
                self.epoch(batch.iterator).feed = Some(feed);
                Some((batch.iterator, batch.number, true))
            }
            Work::Task(task) => {
                let batch = task.batch.plan.key;
                self.epoch(batch.iterator).tasks.push_front(task);
                Some((batch.iterator, batch.number, false))
            }
        }
    }

    /// Opens the next batch, with `count` tasks.
    fn open(&mut self, count: usize) -> BatchKey {
        let Some(Work::Open { batch, feed, permit, .. }) = self.take() else { panic!("nothing to open") };
        drop(permit);
        assert_eq!(self.state.opened(batch, feed, Ok(Some(tasks(batch, count))), self.now).0, count);
        batch
    }

    fn epoch(&mut self, id: IteratorId) -> &mut Epoch<()> {
        self.state.epoch(id).expect("it is in progress")
    }

    fn waits(&mut self, id: IteratorId, since: Duration) {
        let asked = self.now - since;
        assert!(self.state.take_ready(id, asked, self.now).is_none());
    }
}

/// Between a look at the permits and the taking of one, another thread may take the last.
#[test]
fn without_the_permit_that_was_seen_there_are_other_tasks() {
    let mut fixture = Fixture::new(10);
    let [first, second] = [fixture.begin(), fixture.begin()];
    fixture.open(0); // of the first epoch
    fixture.open(1); // of the second one
    fixture.waits(first, Duration::ZERO);
    assert_eq!(fixture.next(), Some((second, 0, false)), "its task is nearest");
    fixture.epoch(first).delivered = 1;
    assert_eq!(fixture.next(), Some((first, 1, true)), "a batch is to be opened first");
    let Fixture { state, now, .. } = &mut fixture;
    let work = state.take_work(true, || None, *now, *now);
    assert!(matches!(work, Some(Work::Task(task)) if task.batch.plan.key.iterator == second));
}

#[test]
fn the_batch_that_is_needed_first_comes_first() {
    let mut fixture = Fixture::new(10);
    let [first, second] = [fixture.begin(), fixture.begin()];
    fixture.open(0); // of the first epoch
    assert_eq!(fixture.next(), Some((second, 0, true)), "nothing of it is on its way");
    fixture.open(0);
    fixture.waits(second, Duration::ZERO);
    assert_eq!(fixture.next(), Some((second, 1, true)), "its consumer waits");
    fixture.waits(first, Duration::from_millis(1));
    assert_eq!(fixture.next(), Some((first, 1, true)), "this one has waited longer");
    let third = fixture.begin();
    fixture.waits(third, Duration::ZERO);
    fixture.open(2);
    assert_eq!(fixture.next(), Some((third, 0, false)), "a task of the batch that is needed first");
}

/// While a batch has tasks that nobody has begun, the next one is not opened.
#[test]
fn a_batch_with_tasks_left_is_not_followed_by_another() {
    let mut fixture = Fixture::new(10);
    let id = fixture.begin();
    let batch = fixture.open(2);
    for left in [1, 0] {
        let Some(Work::Task(task)) = fixture.take() else { panic!("{left} more tasks") };
        assert_eq!(task.batch.plan.key, batch);
    }
    assert_eq!(fixture.next(), Some((id, 1, true)));
}

#[test]
fn a_batch_is_opened_by_one_worker_with_a_permit() {
    let mut fixture = Fixture::new(10);
    fixture.begin();
    let Some(Work::Open { batch, feed, permit, .. }) = fixture.take() else { panic!("nothing to open") };
    assert!(fixture.take().is_none(), "it is being opened");
    fixture.state.opened(batch, feed, Ok(Some(Vec::new())), fixture.now);
    let held: Vec<_> = std::iter::from_fn(|| fixture.pool.try_permit()).collect();
    assert!(fixture.take().is_none() && !fixture.state.has_work_for_sleepers(false, false), "no permit is left");
    drop((permit, held));
    assert!(fixture.take().is_some());
}

/// No more batches are open than the consumer and the slots have room for, even if errors hold no permits.
#[test]
fn the_pipeline_runs_ahead_by_its_depth() {
    let mut fixture = Fixture::new(10);
    let id = fixture.begin();
    let most = DEPTH.prefetch + DEPTH.slots;
    for _ in 0..most {
        fixture.open(0);
    }
    assert!(fixture.take().is_none());
    let first = BatchKey { iterator: id, ..BatchKey::new(0, 0) };
    let failed = Batch::failed(first, Error::OverLimit { bytes: 1, limit: 0 });
    assert!(fixture.state.put(failed, fixture.now).is_none());
    let taken = fixture.state.take_ready(id, fixture.now, fixture.now);
    assert!(taken.is_some_and(|(batch, ..)| batch.key == first));
    assert_eq!(fixture.next(), Some((id, most, true)));
}

/// With more than half of the batches ahead, one that is small wakes no worker; any other does.
#[test]
fn small_batches_wake_no_worker_before_half_are_taken() {
    let mut fixture = Fixture::new(10);
    fixture.begin();
    for ahead in 0..DEPTH.prefetch + DEPTH.slots {
        let wakes = |are_small| fixture.state.has_work_for_sleepers(true, are_small);
        assert_eq!([wakes(true), wakes(false)], [ahead <= DEPTH.slots / 2, true], "{ahead} ahead");
        fixture.open(0);
    }
    assert!(![true, false].map(|are_small| fixture.state.has_work_for_sleepers(true, are_small)).contains(&true));
}

#[test]
fn what_comes_late_is_handed_back() {
    let mut fixture = Fixture::new(10);
    let id = fixture.begin();
    let key = fixture.open(3);
    assert!(fixture.state.is_awaited(key));
    let ended = fixture.state.end(id).expect("it was in progress");
    assert_eq!((ended.next, ended.left), (key, BATCHES));
    assert!(!fixture.state.is_awaited(key) && fixture.state.end(id).is_none());
    let permit = fixture.pool.try_permit().expect("a permit");
    let to_send = BatchState::Pinned(Box::new(Content::Samples(Box::new(()), permit)));
    for state in [BatchState::Empty, to_send] {
        assert!(fixture.state.put(batch(key, state), fixture.now).is_some());
    }
    assert!(fixture.state.is_over(id));
}

/// A wait for room on the device is no wait for the loader.
#[test]
fn a_wait_for_the_device_is_told_apart() {
    let mut fixture = Fixture::new(10);
    let id = fixture.begin();
    let (key, now) = (fixture.open(0), fixture.now);
    let at = |ms: u64| now + Duration::from_millis(ms);
    fixture.state.was_full(key, at(10), at(50));
    fixture.state.put(batch(key, BatchState::Empty), at(60));
    let (_, waited, since) = fixture.state.take_ready(id, now, at(70)).expect("a batch");
    assert_eq!((waited, since), (Duration::from_millis(10), at(60)));
}

/// Workers with high numbers end, and are started again when they are needed.
#[test]
fn workers_come_and_go() {
    let mut state = State::<()>::new(DEPTH);
    assert_eq!(state.set_workers(2), [0, 1]);
    assert_eq!(state.set_workers(4), [2, 3]);
    assert!(state.set_workers(1).is_empty());
    assert!(!state.goes_on(1) && !state.goes_on(3) && state.goes_on(0));
    assert_eq!(state.set_workers(4), [1, 3], "the one with number 2 has not ended yet, and goes on");
    state.not_started(3);
    assert_eq!(state.set_workers(4), [3]);
}
