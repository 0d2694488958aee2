//! Models of the pipeline itself, with a source whose batches hold a permit and no memory: whatever the order of the steps, every
//! batch comes, and a close ends every wait of workers, pin thread, transfer threads and consumers.

use super::*;
use crate::{
    distributed::Distributed,
    epoch::Delivery,
    order::{EpochOrder, Orders, Sampling},
    policy::Faults,
    pool::{Limits, Permit, Wanted},
    sample::BatchPlan,
    sampler::SequentialSampler,
    slot::HeapAlloc,
    source::{Done, Task},
    sync::explore,
    target::Target,
    tune::Settings,
    worker::work,
};
use burn::tensor::Device;
use loom::thread::{JoinHandle, spawn};

/// Makes batches of one task that are the number of their first sample.
struct Numbers {
    target: Target,
    faults: Faults,
    pins: bool,
    /// The batch that fails on the worker.
    bad: Option<usize>,
}

struct Number {
    bad: bool,
    plan: Arc<BatchPlan>,
    permit: Permit,
}

fn bad() -> Error {
    Error::OverLimit { bytes: 1, limit: 0 }
}

impl Task<usize> for Number {
    fn rows(&self) -> usize {
        1
    }

    fn run(self: Box<Self>, _: usize) -> Done<usize> {
        let filled = match *self {
            Self { bad: true, .. } => Filled::Failed(bad()),
            Self { plan, permit, .. } => Filled::Made { batch: plan.indices[0], plan, permit },
        };
        Done { filled: Some(filled), rows_took: Duration::ZERO, bad: Bad::default() }
    }
}

impl Source<usize> for Numbers {
    fn target(&self) -> &Target {
        &self.target
    }

    fn faults(&self) -> &Faults {
        &self.faults
    }

    fn slot_bytes(&self) -> Option<usize> {
        None
    }

    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        _: &Arc<Pool>,
        _: Wanted<'_>,
        _: usize,
    ) -> Result<Vec<Box<dyn Task<usize>>>, Error> {
        Ok(vec![Box::new(Number { bad: self.bad == Some(plan.at.number), plan, permit })])
    }

    fn needs_pin(&self) -> bool {
        self.pins
    }

    fn pin(&self, filled: Filled<usize>, _: &Arc<Pool>, _: Wanted<'_>) -> Result<Filled<usize>, Error> {
        Ok(filled)
    }

    fn send(&self, filled: Filled<usize>, _: &Arc<Pool>, _: &mut Uploader) -> Result<Ready<usize>, Error> {
        match filled {
            Filled::Made { batch, permit, .. } => Ok(Ready::Done { batch, items: 1, permit: Some(permit) }),
            _ => Err(Error::Ended),
        }
    }

    fn finish(&self, _: crate::RawBatch) -> Result<usize, Error> {
        Err(Error::Ended)
    }
}

/// What is modelled.
#[derive(Clone, Copy)]
struct Shape {
    batches: usize,
    permits: usize,
    prefetch: usize,
    transfers: usize,
    pins: bool,
    /// Workers that may be at work.
    at_work: usize,
    /// The batch that fails on the worker.
    bad: Option<usize>,
}

const SHAPE: Shape = Shape { batches: 2, permits: 1, prefetch: 1, transfers: 0, pins: false, at_work: 2, bad: None };

struct Model {
    pipeline: Arc<Pipeline<usize>>,
    /// The order of every epoch.
    orders: Orders,
    batches: usize,
}

impl Model {
    fn new(shape: Shape, counters: &Arc<Counters>) -> Self {
        let Shape { batches, permits, prefetch, transfers, pins, at_work, bad } = shape;
        let target = Target { device: Device::flex(), host: true };
        let source = Arc::new(Numbers { target, faults: Faults::default(), pins, bad });
        let limits = Limits { slots: permits, bytes: 100 };
        let pool = Pool::new(Arc::new(HeapAlloc), limits, Arc::clone(counters));
        let now = Settings::new(at_work, prefetch);
        let flow = Flow { workers: 2, transfers, prefetch, now, lease_timeout: Duration::MAX, timeout: None };
        let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size: 1, drop_last: false };
        let (dataset_len, distributed) = (batches, Distributed::alone());
        let orders = Orders { sampling, dataset_len, distributed, slice: None, resumed: None };
        Self { pipeline: Arc::new(Pipeline::new(source, pool, flow, None)), orders, batches }
    }

    fn start(&self) -> RunId {
        let EpochOrder { order, .. } = self.orders.epoch(0).unwrap();
        self.pipeline.start(0, order, 0..self.batches)
    }

    /// Opens a batch, as a worker does; gives its only task.
    fn open_one(&self) -> (usize, Box<dyn Task<usize>>) {
        loop {
            match self.pipeline.work(0).unwrap() {
                Work::Open => self.pipeline.open(0),
                Work::Task { number, task, .. } => return (number, task),
            }
        }
    }

    fn beside(&self, run: impl FnOnce(&Pipeline<usize>) + 'static) -> JoinHandle<()> {
        let pipeline = Arc::clone(&self.pipeline);
        spawn(move || run(&pipeline))
    }

    fn worker(&self, number: usize) -> JoinHandle<()> {
        self.beside(move |pipeline| work(pipeline, number))
    }

    /// The pin thread of an accelerator's pipeline.
    fn pin(&self) -> JoinHandle<()> {
        self.beside(|pipeline| {
            while let Some((run, number, filled)) = pipeline.to_pin() {
                pipeline.pinned(run, number, pipeline.pin(run, filled));
            }
        })
    }

    /// A transfer thread without a device.
    fn transfer(&self) -> JoinHandle<()> {
        self.beside(|pipeline| {
            while let Some((run, place, filled)) = pipeline.to_send() {
                if pipeline.starved(run, place.batch).is_none() {
                    continue;
                }
                let ready = pipeline.source.send(filled, &pipeline.pool, &mut Uploader::Burn);
                pipeline.ready(run, place.batch, ready);
            }
        })
    }

    /// Joins threads of a closed pipeline; all permits must be home.
    fn end(self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let Pipeline { pool, .. } = &*self.pipeline;
        assert!(pool.is_closed());
        assert_eq!(pool.permits(), pool.limits().slots);
    }
}

/// What a worker does with a task.
fn end_task(pipeline: &Pipeline<usize>, run: RunId, number: usize, task: Box<dyn Task<usize>>) {
    let done = task.run(0);
    pipeline.ran(1, done.rows_took);
    pipeline.filled(run, number, done.filled.unwrap(), done.bad);
}

/// Takes batches until the epoch's end; gives how many there were, and whether the end was a close.
fn take(pipeline: &Pipeline<usize>, id: RunId) -> (usize, bool) {
    let mut taken = 0;
    while let Some(Delivery { ready, place, .. }) = pipeline.next(id, Instant::now()) {
        match ready {
            Ok(Ready::Done { batch, .. }) => assert_eq!((batch, place.batch), (taken, taken), "in order"),
            Err(Error::OverLimit { .. }) => {}
            Err(Error::Ended) => {
                assert!(pipeline.next(id, Instant::now()).is_none());
                return (taken, true);
            }
            _ => unreachable!("no other batches, and no other errors"),
        }
        taken += 1;
    }
    (taken, false)
}

/// Explores an epoch that comes whole, with these threads at work.
fn explore_epoch(name: &str, interruptions: usize, shape: Shape, threads: fn(&Model) -> Vec<JoinHandle<()>>) {
    let counters = Arc::<Counters>::default();
    explore(name, interruptions, move || {
        let model = Model::new(shape, &counters);
        let threads = threads(&model);
        let id = model.start();
        assert_eq!(take(&model.pipeline, id), (shape.batches, false));
        model.pipeline.end(id);
        model.pipeline.close();
        model.end(threads);
    });
}

#[test]
fn model_two_workers_bring_an_epoch() {
    explore_epoch("an epoch, two workers", 2, Shape { batches: 3, ..SHAPE }, |model| {
        vec![model.worker(0), model.worker(1)]
    });
}

/// One of two workers rests.
#[test]
fn model_a_worker_rests() {
    explore_epoch(
        "an epoch, one of two workers at work",
        2,
        Shape { batches: 3, permits: 2, at_work: 1, ..SHAPE },
        |model| vec![model.worker(0), model.worker(1)],
    );
}

/// The number of workers at work changes amid an epoch; in the first case no other than the one who rests is there.
#[test]
fn model_workers_are_called_and_sent_to_rest() {
    for (name, from, to, all) in [("called", 1, 2, false), ("sent to rest", 2, 1, true)] {
        let counters = Arc::<Counters>::default();
        explore(&format!("a worker is {name}"), 2, move || {
            let model = Model::new(Shape { permits: 2, at_work: from, ..SHAPE }, &counters);
            let mut threads = vec![model.worker(1)];
            threads.extend(all.then(|| model.worker(0)));
            let id = model.start();
            threads.push(model.beside(move |pipeline| {
                pipeline.flow.now.set_workers(to);
                pipeline.adjust();
            }));
            assert_eq!(take(&model.pipeline, id), (2, false));
            model.pipeline.end(id);
            model.pipeline.close();
            model.end(threads);
        });
    }
}

/// The only worker at work hangs in an epoch that has ended.
#[test]
fn model_who_hangs_is_replaced_by_one_who_rests() {
    let counters = Arc::<Counters>::default();
    explore("one who rests replaces one who hangs", 2, move || {
        let model = Model::new(Shape { permits: 2, at_work: 1, ..SHAPE }, &counters);
        let first = model.start();
        let (number, task) = model.open_one();
        let resting = model.worker(1);
        model.pipeline.end(first);
        let second = model.start();
        assert_eq!(take(&model.pipeline, second), (2, false));
        end_task(&model.pipeline, first, number, task);
        model.pipeline.end(second);
        model.pipeline.close();
        model.end([resting]);
    });
}

#[test]
fn model_a_batch_goes_through_all_stages() {
    explore_epoch(
        "an epoch through pin and transfer",
        2,
        Shape { permits: 2, transfers: 1, pins: true, ..SHAPE },
        |model| vec![model.worker(0), model.pin(), model.transfer()],
    );
}

/// A batch that waits for the pin stage behind one that fails.
#[test]
fn model_a_failed_batch_lets_the_next_through() {
    let counters = Arc::<Counters>::default();
    explore("a failed batch", 1, move || {
        let model = Model::new(Shape { permits: 2, transfers: 1, pins: true, bad: Some(0), ..SHAPE }, &counters);
        let id = model.start();
        let tasks = [model.open_one(), model.open_one()];
        let ends = tasks.map(|(number, task)| model.beside(move |pipeline| end_task(pipeline, id, number, task)));
        let threads = [model.pin(), model.transfer()];
        assert_eq!(take(&model.pipeline, id), (2, false));
        model.pipeline.end(id);
        model.pipeline.close();
        model.end(ends.into_iter().chain(threads));
    });
}

/// Batches that may not be opened, or not be sent, before the consumer has taken some.
#[test]
fn model_a_delivery_lets_the_next_go_on() {
    explore_epoch("nothing ahead", 2, Shape { batches: 2, prefetch: 0, ..SHAPE }, |model| vec![model.worker(0)]);
    explore_epoch(
        "more batches than may be sent",
        2,
        Shape { batches: 3, permits: 3, prefetch: 0, transfers: 1, ..SHAPE },
        |model| vec![model.worker(0), model.transfer()],
    );
}

/// One epoch is dropped amid its work, the next is whole.
#[test]
fn model_an_epoch_after_one_that_was_dropped() {
    let counters = Arc::<Counters>::default();
    explore("an epoch after a dropped one", 2, move || {
        let model = Model::new(SHAPE, &counters);
        let workers = [model.worker(0), model.worker(1)];
        let first = model.start();
        model.pipeline.end(first);
        let second = model.start();
        assert_eq!(take(&model.pipeline, second), (2, false));
        model.pipeline.close();
        model.end(workers);
    });
}

#[test]
fn model_two_consumers_share_the_permits() {
    let counters = Arc::<Counters>::default();
    explore("two consumers", 2, move || {
        let model = Model::new(SHAPE, &counters);
        let worker = model.worker(0);
        let (first, second) = (model.start(), model.start());
        let other = model.beside(move |pipeline| {
            assert_eq!(take(pipeline, first), (2, false));
            pipeline.end(first);
        });
        assert_eq!(take(&model.pipeline, second), (2, false));
        model.pipeline.end(second);
        other.join().unwrap();
        model.pipeline.close();
        model.end([worker]);
    });
}

#[test]
fn model_a_close_ends_worker_and_consumer() {
    let counters = Arc::<Counters>::default();
    explore("closed amid an epoch", 3, move || {
        let model = Model::new(SHAPE, &counters);
        let worker = model.worker(0);
        let id = model.start();
        let closer = model.beside(Pipeline::close);
        let (taken, closed) = take(&model.pipeline, id);
        assert!(closed || taken == 2, "{taken} batches and no error");
        model.pipeline.end(id);
        model.end([worker, closer]);
    });
}

#[test]
fn model_a_close_ends_pin_and_transfer() {
    let counters = Arc::<Counters>::default();
    explore("closed amid pin and transfer", 2, move || {
        let model = Model::new(Shape { batches: 1, transfers: 1, pins: true, ..SHAPE }, &counters);
        let threads = [model.worker(0), model.pin(), model.transfer()];
        let id = model.start();
        model.pipeline.close();
        model.pipeline.end(id); // what is ready lies there until its consumer has gone
        model.end(threads);
    });
}

#[test]
fn model_a_close_ends_everything() {
    let counters = Arc::<Counters>::default();
    explore("closed with a consumer amid pin and transfer", 1, move || {
        let model = Model::new(Shape { batches: 1, transfers: 1, pins: true, ..SHAPE }, &counters);
        let threads = [model.worker(0), model.pin(), model.transfer()];
        let id = model.start();
        let closer = model.beside(Pipeline::close);
        let (taken, closed) = take(&model.pipeline, id);
        assert!(closed || taken == 1, "{taken} batches and no error");
        model.pipeline.end(id);
        model.end(threads.into_iter().chain([closer]));
    });
}
