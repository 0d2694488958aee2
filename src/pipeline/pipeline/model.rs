//! Models of the pipeline itself, with a source whose batches hold a permit and no memory: whatever the order of the
//! steps, every batch comes, and a close ends every wait of workers, pin thread, transfer threads and consumers.

mod cases;

use super::*;
use crate::{
    batch::{BatchPlan, Delivery, Filled, Finished, Next, Task},
    device::{Target, Uploader},
    fault::Faults,
    memory::{HeapAlloc, Permit, PoolLimits, Wait},
    observe::TaskClock,
    order::{Distributed, EpochOrder, Sampling, Schedule, SequentialSampler},
    pipeline::{
        pin,
        state::{State, workers::Work},
        worker,
    },
    sync::explore,
    vocabulary::EpochId,
};
use burn::tensor::Device;
use loom::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Makes batches of one task. Each batch is the number of its first sample.
struct Numbers {
    target: Target,
    faults: Faults,
    pins: bool,
    /// The batch that fails on the worker.
    bad: Option<usize>,
}

struct Number {
    bad: bool,
    pins: bool,
    plan: Arc<BatchPlan>,
    permit: Permit,
}

impl Filled<usize> for Number {
    fn pin(self: Box<Self>, _: &Arc<Pool>, _: &Wait<'_>) -> Result<Box<dyn Filled<usize>>, Error> {
        Ok(self)
    }

    fn send(self: Box<Self>, _: &Arc<Pool>, _: &mut Uploader) -> Result<Ready<usize>, Error> {
        let finished = Finished { batch: self.plan.indices[0], items: 1, permit: Some(self.permit) };
        Ok(Ready::Finished(finished))
    }
}

fn bad() -> Error {
    Error::OverLimit { bytes: 1, limit: 0 }
}

impl Task<usize> for Number {
    fn rows(&self) -> usize {
        1
    }

    fn run(self: Box<Self>, _: &mut TaskClock<'_>) -> Option<(Result<Next<usize>, Error>, Skips)> {
        let next = match *self {
            Self { bad: true, .. } => Err(bad()),
            Self { pins: true, .. } => Ok(Next::Pin(self)),
            Self { pins: false, .. } => Ok(Next::Send(self)),
        };
        Some((next, Skips::default()))
    }
}

impl Source<usize> for Numbers {
    fn target(&self) -> &Target {
        &self.target
    }

    fn on(&self, _: Target) -> Result<Arc<dyn Source<usize>>, Error> {
        unreachable!("a model has one target")
    }

    fn faults(&self) -> &Faults {
        &self.faults
    }

    fn slot_bytes(&self) -> Option<usize> {
        None
    }

    fn is_uneven(&self) -> bool {
        false
    }

    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        _: &Arc<Pool>,
        _: &Wait<'_>,
        _: usize,
    ) -> Result<Vec<Box<dyn Task<usize>>>, Error> {
        Ok(vec![Box::new(Number { bad: self.bad == Some(plan.key.number), pins: self.pins, plan, permit })])
    }
}

/// The pipeline and the epoch that are modelled.
#[derive(Clone, Copy)]
struct Shape {
    batches: usize,
    permits: usize,
    prefetch: usize,
    transfers: usize,
    pins: bool,
    /// The batch that fails on the worker.
    bad: Option<usize>,
}

const SHAPE: Shape = Shape { batches: 2, permits: 1, prefetch: 1, transfers: 0, pins: false, bad: None };

struct Model {
    pipeline: Arc<Pipeline<usize>>,
    /// The order of every epoch.
    schedule: Schedule,
    batches: usize,
}

impl Model {
    /// A pipeline of two workers.
    fn new(shape: Shape, counters: &Arc<Counters>) -> Self {
        let Shape { batches, permits, prefetch, transfers, pins, bad } = shape;
        let target = Target::of(Device::flex());
        let source = Arc::new(Numbers { target, faults: Faults::default(), pins, bad });
        let limits = PoolLimits { slots: permits, bytes: 100 };
        let pool = Pool::new(Arc::new(HeapAlloc), limits, Arc::clone(counters));
        let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size: 1, drop_last: false };
        let (dataset_len, distributed) = (batches, Distributed::alone());
        let schedule = Schedule {
            sampling,
            dataset_len,
            distributed,
            slice: None,
            start: 0,
            devices: 1,
            resumed: None,
            counted: false,
        };
        let settings = Settings { prefetch, transfers, timeout: None, lease_timeout: Duration::MAX, device: None };
        let pipeline = Pipeline::new(settings, source, pool);
        pipeline.lock().set_workers(2);
        Self { pipeline, schedule, batches }
    }

    fn begin(&self) -> EpochId {
        let EpochOrder { feed, .. } = self.schedule.epoch(0).unwrap();
        self.pipeline.begin(0, feed, 0..self.batches).ok().expect("threads at work")
    }

    /// Opens a batch, as a worker does; returns its only task.
    fn open_one(&self) -> (BatchKey, Box<dyn Task<usize>>) {
        loop {
            match worker::work(&self.pipeline, 0).unwrap() {
                Work::Open { batch, feed, permit, abandoned, workers, .. } => {
                    if let Some(task) = worker::open(&self.pipeline, batch, feed, permit, abandoned, workers) {
                        return (batch, task);
                    }
                }
                Work::Task { batch, task } => return (batch, task),
            }
        }
    }

    fn beside(&self, run: impl FnOnce(&Pipeline<usize>) + 'static) -> JoinHandle<()> {
        let pipeline = Arc::clone(&self.pipeline);
        spawn(move || run(&pipeline))
    }

    fn worker(&self, number: usize) -> JoinHandle<()> {
        self.beside(move |pipeline| worker::run(pipeline, number))
    }

    /// The pin thread of an accelerator's pipeline.
    fn pin(&self) -> JoinHandle<()> {
        self.beside(pin::run)
    }

    /// A transfer thread without a device.
    fn transfer(&self) -> JoinHandle<()> {
        self.beside(|pipeline| {
            while let Some((batch, _, filled)) = pipeline.wait_for(Queue::Send, State::take_to_send) {
                if pipeline.starved(batch).is_some() {
                    let mut uploader = Uploader::burn(pipeline.source.target());
                    pipeline.ready(batch, filled.send(&pipeline.pool, &mut uploader));
                }
            }
        })
    }

    /// Joins threads of a closed pipeline; all permits must be home.
    fn end(self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let pool = &self.pipeline.pool;
        assert!(pool.is_closed());
        assert_eq!(pool.permits(), pool.limits().slots);
    }
}

/// What a worker does with a task.
fn end_task(pipeline: &Pipeline<usize>, batch: BatchKey, task: Box<dyn Task<usize>>) {
    let mut clock = TaskClock::start(pipeline.counters(), 0, batch);
    let (next, skips) = task.run(&mut clock).unwrap();
    pipeline.ran(1, clock.worked());
    pipeline.filled(batch, next, skips);
}

/// Takes batches until the epoch's end; returns how many there were, and whether the end was a close.
fn take(pipeline: &Pipeline<usize>, id: EpochId) -> (usize, bool) {
    let mut taken = 0;
    while let Some(Delivery { ready, key, .. }) = pipeline.next(id, Instant::now()) {
        match ready {
            Ok(Ready::Finished(Finished { batch, .. })) => {
                assert_eq!((batch, key.number), (taken, taken), "in order")
            }
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

/// Explores an epoch whose batches all come, with these threads at work.
fn explore_epoch(name: &str, interruptions: usize, shape: Shape, threads: fn(&Model) -> Vec<JoinHandle<()>>) {
    let counters = Arc::<Counters>::default();
    explore(name, interruptions, move || {
        let model = Model::new(shape, &counters);
        let threads = threads(&model);
        let id = model.begin();
        assert_eq!(take(&model.pipeline, id), (shape.batches, false));
        model.pipeline.end(id);
        model.pipeline.close();
        model.end(threads);
    });
}
