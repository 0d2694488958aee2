//! Which work a worker takes.

use super::*;
use crate::{
    batch::{Next, ToSend},
    device::Uploader,
    fault::Error,
    memory::Pool,
    observe::Counters,
    order::{Distributed, Sampling, Schedule, SequentialSampler},
    pipeline::{
        crew::Crew,
        transfer::tests::fake::{one_of, rows},
        tune::Settings,
    },
};

fn batch(run: u64, number: usize) -> Option<BatchId> {
    Some(BatchId { run: RunId(run), key: BatchKey::new(0, number) })
}

/// An epoch of nine batches of one sample each.
fn epoch(id: u64) -> Run<()> {
    epoch_on(id, None)
}

/// The same with slots on a NUMA node.
fn epoch_on(id: u64, node: Option<u32>) -> Run<()> {
    let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size: 1, drop_last: false };
    let schedule = Schedule {
        sampling,
        dataset_len: 9,
        distributed: Distributed::alone(),
        slice: None,
        devices: 1,
        resumed: None,
    };
    let counters = Arc::<Counters>::default();
    let pipeline = one_of(&Arc::new(Crew::new(flow(), None)), node, rows(9, &counters), &counters);
    Run::new(RunId(id), Arc::clone(pipeline.branch()), 0, Some(schedule.epoch(0).unwrap().feed), 0..9)
}

/// With `Auto` down to one worker, a call that hangs must not make all others rest.
#[test]
fn a_worker_that_hangs_in_a_batch_that_was_given_up_is_replaced() {
    let mut epochs = Epochs::<()>::new(5);
    let (id, gone) = (1, 0);
    epochs.runs.push(epoch(id));
    let at_work = |epochs: &Epochs<()>, of| (0..5).filter(|worker| epochs.is_at_work(*worker, of)).collect::<Vec<_>>();
    assert_eq!(at_work(&epochs, 1), [0], "nobody has anything in hand");
    epochs.in_hand = vec![batch(id, 2), batch(gone, 5), batch(id, 3), None, None];
    assert_eq!(at_work(&epochs, 1), [0]);
    assert_eq!(at_work(&epochs, 2), [0, 1, 2], "one of them is of no use");
    epochs.runs[0].delivered = 3; // what the first worker has in hand was given up
    assert_eq!(at_work(&epochs, 1), [0, 1, 2]);
    assert_eq!(at_work(&epochs, 3), [0, 1, 2, 3, 4]);
    epochs.in_hand[0] = Some(ELSEWHERE);
    assert_eq!(at_work(&epochs, 1), [0, 1, 2], "it tells of an error");
    epochs.in_hand[0] = None; // it returns after all
    assert_eq!(at_work(&epochs, 1), [0]);
    assert_eq!(at_work(&epochs, 3), [0, 1, 2, 3]);
}

/// Until the first batch of an epoch is there, nobody rests.
#[test]
fn all_workers_begin_an_epoch() {
    let flow = Flow { now: Settings::new(3, 2), ..flow() };
    let mut epochs = Epochs::<()>::new(flow.workers);
    assert_eq!(epochs.at_work(&flow), 3);
    epochs.runs.push(epoch(1));
    assert_eq!(epochs.at_work(&flow), 10);
    epochs.runs[0].ready.insert(0, (Instant::now(), Err(Error::Ended)));
    assert_eq!(epochs.at_work(&flow), 3, "it is there");
    epochs.runs[0].ready.clear();
    epochs.runs[0].delivered = 1;
    assert_eq!(epochs.at_work(&flow), 3, "it was taken");
}

/// A consumer calls all workers, until it has its batch.
#[test]
fn all_workers_come_for_who_has_waited_for_long() {
    let flow = Flow { now: Settings::new(3, 2), ..flow() };
    let mut epochs = Epochs::<()>::new(flow.workers);
    epochs.runs.push(epoch(1));
    assert!(!epochs.call_all(RunId(1), &flow), "they are all at work, for its first batch");
    epochs.runs[0].delivered = 1;
    epochs.runs[0].opened = 2;
    epochs.resting = 7;
    assert!(!epochs.call_all(RunId(1), &flow), "it is not with the workers");
    epochs.in_hand[1] = batch(1, 1);
    assert!(epochs.call_all(RunId(1), &flow));
    assert_eq!(epochs.at_work(&flow), 10);
    assert!(!epochs.call_all(RunId(1), &flow), "they are about to come");
    epochs.runs[0].calls_all = false; // as when its batch is delivered
    assert_eq!(epochs.at_work(&flow), 3);
}

/// Whose fault it is that a consumer waits.
#[test]
fn workers_have_a_batch_until_they_have_put_it_down() {
    let mut epochs = Epochs::<()>::new(2);
    epochs.runs.push(epoch(1));
    let theirs = |epochs: &Epochs<()>| epochs.runs[0].is_with_workers(&epochs.in_hand);
    assert!(theirs(&epochs), "it is to be opened");
    epochs.runs[0].opened = 1;
    assert!(!theirs(&epochs), "it waits for room on the device, say");
    epochs.in_hand[1] = batch(1, 0);
    assert!(theirs(&epochs));
    epochs.in_hand[1] = batch(1, 1);
    assert!(!theirs(&epochs));
    epochs.runs[0].tasks.push_back(Box::new(Nothing));
    assert!(theirs(&epochs), "nobody has begun it");
}

struct Nothing;

impl Task<()> for Nothing {
    fn rows(&self) -> usize {
        1
    }

    fn run(self: Box<Self>, _: usize) -> crate::batch::Done<()> {
        unreachable!("it is only looked at")
    }
}

impl ToSend<()> for Nothing {
    fn send(self: Box<Self>, _: &Arc<Pool>, _: &mut Uploader) -> Result<Next<()>, Error> {
        unreachable!("it is only counted")
    }
}

/// While workers rest for an epoch that has tasks left, its next batch is not opened.
#[test]
fn a_batch_with_tasks_left_is_not_followed_by_another() {
    let flow = flow();
    let mut epochs = Epochs::<()>::new(flow.workers);
    let (resting, here) = (0, 1);
    epochs.runs.extend([epoch(resting), epoch(here)]);
    epochs.runs[0].hands = flow.steady();
    epochs.runs[0].queues.to_send.insert(0, Box::new(Nothing));
    epochs.runs[0].tasks.push_back(Box::new(Nothing));
    assert!(matches!(epochs.take_work(9, None, &flow, Instant::now()), Some(Work::Open(_))), "of the other epoch");
    assert_eq!([0, 1].map(|at| epochs.runs[at].can_open()), [false, false], "it is being opened");
    epochs.runs[0].tasks.clear();
    assert!(epochs.runs[0].can_open());
}

fn flow() -> Flow {
    Flow {
        workers: 10,
        steps_back: false,
        prefetch: 2,
        now: Settings::new(10, 2),
        lease_timeout: Duration::MAX,
        timeout: None,
    }
}

/// A worker that opens a batch has it in hand. If it hangs there and the batch is given up, another takes its place.
#[test]
fn who_opens_a_batch_has_it_in_hand() {
    let mut epochs = Epochs::<()>::new(2);
    epochs.runs.push(epoch(1));
    assert!(matches!(epochs.take_work(0, None, &flow(), Instant::now()), Some(Work::Open(_))));
    assert_eq!((epochs.runs[0].hands, epochs.in_hand[0]), (1, batch(1, 0)));
    assert!(!epochs.is_at_work(1, 1));
    epochs.runs[0].delivered = 1; // given up
    epochs.lets_go(BatchId { run: RunId(1), key: BatchKey::new(0, 0) });
    assert!(epochs.is_at_work(1, 1));
    assert_eq!(epochs.runs[0].hands, 0);
}

/// With many workers, tasks get longer, as long as each worker gets one of the batch. Rows that take different times keep
/// short tasks.
#[test]
fn tasks_are_as_long_as_workers_are_many() {
    let chunk = |workers: usize, row: Duration, uneven: bool| {
        let crew = Crew::<()>::new(Flow { workers, now: Settings::new(workers, 2), ..flow() }, None);
        crew.ran(1, row);
        crew.chunk(256, uneven)
    };
    let slow = Duration::from_micros(100);
    assert_eq!([1, 8, 56, 112].map(|workers| chunk(workers, slow, false)), [2, 2, 5, 3]);
    assert_eq!([1, 8, 56, 112].map(|workers| chunk(workers, slow, true)), [2; 4]);
    let quick = Duration::from_nanos(100);
    assert_eq!(chunk(56, quick, false), 256, "the whole batch");
    assert_eq!(chunk(4, Duration::from_millis(5), false), 1);
}

/// Workers count for an epoch while they have a task of it in hand, and somebody waits for that.
#[test]
fn workers_count_while_they_are_of_use() {
    let mut epochs = Epochs::<()>::new(3);
    epochs.runs.push(epoch(1));
    for worker in 0..2 {
        epochs.runs[0].tasks.push_back(Box::new(Nothing));
        assert!(matches!(epochs.take_work(worker, None, &flow(), Instant::now()), Some(Work::Task { .. })));
    }
    assert_eq!(epochs.runs[0].hands, 2);
    epochs.puts_down(0);
    assert_eq!((epochs.runs[0].hands, epochs.in_hand[0]), (1, None));
    epochs.lets_go(BatchId { run: RunId(1), key: BatchKey::new(0, 0) });
    assert_eq!((epochs.runs[0].hands, epochs.in_hand[1]), (0, Some(ELSEWHERE)));
    epochs.puts_down(1);
    assert_eq!((epochs.runs[0].hands, epochs.in_hand[1]), (0, None), "it returns after all");
}

/// Which epoch a worker on a node works for.
fn chosen(epochs: &mut Epochs<()>, node: Option<u32>) -> Option<u64> {
    match epochs.take_work(9, node, &flow(), Instant::now())? {
        Work::Task { batch, .. } => Some(batch.run.0),
        Work::Open(opening) => Some(opening.batch.run.0),
    }
}

#[test]
fn the_batch_that_is_needed_first_comes_first() {
    let epochs = |change: fn(&mut [Run<()>])| {
        let mut epochs = Epochs::<()>::new(10);
        epochs.runs.extend([epoch(0), epoch(1)]);
        change(&mut epochs.runs);
        epochs
    };
    let task = |run: &mut Run<()>| run.tasks.push_back(Box::new(Nothing));
    assert_eq!(chosen(&mut epochs(|runs| runs[0].opened = 1), None), Some(1), "nothing is on its way");
    let waits = |runs: &mut [Run<()>]| {
        runs[0].waiting = Some(Instant::now());
        runs[1].waiting = Some(Instant::now() - Duration::from_millis(1));
    };
    assert_eq!(chosen(&mut epochs(waits), None), Some(1), "its consumer has waited longer");
    assert_eq!(chosen(&mut epochs(|runs| runs[1].waiting = Some(Instant::now())), None), Some(1), "one waits");
    let mut open = epochs(|_| ());
    task(&mut open.runs[1]);
    assert_eq!(chosen(&mut open, None), Some(1), "a task comes before a batch to open");
    open.runs[1].tasks_of = 1;
    task(&mut open.runs[1]);
    assert_eq!(chosen(&mut open, None), Some(0), "the batch to open is needed first");
}

/// A host with two NUMA nodes.
#[test]
fn workers_prefer_slots_on_their_own_node() {
    let epochs = |change: fn(&mut [Run<()>])| {
        let mut epochs = Epochs::<()>::new(10);
        epochs.runs.extend([epoch_on(0, Some(0)), epoch_on(1, Some(1))]);
        change(&mut epochs.runs);
        epochs
    };
    assert!(epochs(|_| ()).has_nodes());
    let here = |change: fn(&mut [Run<()>])| [0, 1].map(|node| chosen(&mut epochs(change), Some(node)));
    assert_eq!(here(|_| ()), [Some(0), Some(1)]);
    assert_eq!(here(|runs| runs[1].opened = 1), [Some(0), Some(0)], "the other needs its batch first");
    let waits = |runs: &mut [Run<()>], longer: u64| {
        let now = Instant::now();
        runs[0].waiting = Some(now);
        runs[1].waiting = Some(now - Duration::from_millis(longer));
    };
    assert_eq!(here(|runs| runs[1].waiting = Some(Instant::now())), [Some(1), Some(1)], "nobody waits for the other");
    let mut both = epochs(|_| ());
    waits(&mut both.runs, 1);
    assert_eq!(chosen(&mut both, Some(0)), Some(0), "the other has waited a little longer");
    let mut both = epochs(|_| ());
    waits(&mut both.runs, 10);
    assert_eq!(chosen(&mut both, Some(0)), Some(1), "the other has waited much longer");
    let mut alone = Epochs::<()>::new(10);
    alone.runs.extend([epoch_on(0, Some(1)), epoch_on(1, Some(1)), epoch(2)]);
    assert!(!alone.has_nodes());
}

/// Workers rest while the link is behind. Batches that a consumer does not take do not hold up another epoch.
#[test]
fn an_epoch_whose_consumer_is_away_makes_nobody_rest() {
    let flow = flow();
    let mut epochs = Epochs::<()>::new(flow.workers);
    let (away, here) = (0, 1);
    epochs.runs.extend([epoch(away), epoch(here)]);
    epochs.runs[1].hands = flow.steady();
    let may_work = |epochs: &Epochs<()>| [0, 1].map(|at| epochs.may_work_for(&flow)(&epochs.runs[at]));
    assert_eq!(may_work(&epochs), [true, true]);
    epochs.runs[0].queues.to_send.insert(flow.ahead(), Box::new(Nothing));
    assert_eq!(may_work(&epochs), [false, true]);
    epochs.runs[1].queues.to_send.insert(0, Box::new(Nothing));
    assert_eq!(may_work(&epochs), [false, false]);
    epochs.runs[1].hands -= 1;
    assert_eq!(may_work(&epochs), [true, true]);
    epochs.runs[1].hands = flow.workers;
    epochs.runs.iter_mut().for_each(|run| run.queues.to_send.clear());
    assert_eq!(may_work(&epochs), [true, true]);
}
