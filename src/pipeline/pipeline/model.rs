//! Models of the pipeline itself, with a source whose batches hold a permit and no memory: whatever the order of the
//! steps, every batch comes, and a close ends every wait of workers, pin thread, transfer threads and consumers.

mod cases;

use super::*;
use crate::{
    batch::{BatchPlan, Content, OpenBatch, Task},
    device::{Target, Uploader},
    fault::{Faults, Skips},
    memory::{HeapAlloc, Permit, PoolLimits, Wait},
    observe::TaskClock,
    order::Schedule,
    pipeline::{
        pin,
        state::{State, workers::Work},
        worker,
    },
    sync::explore,
    vocabulary::IteratorId,
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

fn bad() -> Error {
    Error::OverLimit { bytes: 1, limit: 0 }
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

    fn open(
        &self,
        plan: Arc<BatchPlan>,
        permit: Permit,
        _: &Arc<Pool>,
        _: &Wait<'_>,
        _: usize,
    ) -> Result<Vec<Task<usize>>, Error> {
        let content = Content::Items { plan: Arc::clone(&plan), batch: plan.indices[0], permit };
        Ok(vec![Task { batch: OpenBatch::new(plan, 1, content), rows: 0..1, chunk: None }])
    }

    fn run(&self, task: Task<usize>, _: &mut TaskClock<'_>) -> Option<Batch<usize>> {
        let is_bad = self.bad == Some(task.batch.plan.key.number);
        let make = |content, _: &Skips| {
            if is_bad {
                return Err(bad());
            }
            Ok(if self.pins { BatchState::Filled(content) } else { BatchState::Pinned(content) })
        };
        task.batch.end(Ok(()), Skips::default(), |_| {}, make)
    }

    fn pin(&self, content: Box<Content<usize>>, _: &Arc<Pool>, _: &Wait<'_>) -> Result<Box<Content<usize>>, Error> {
        Ok(content)
    }

    fn send(&self, content: Box<Content<usize>>, _: &Arc<Pool>, _: &mut Uploader) -> Result<BatchState<usize>, Error> {
        let Content::Items { batch, permit, .. } = *content else { return Err(bad()) };
        Ok(BatchState::Ready { batch, items: 1, permit: Some(permit) })
    }

    fn finish(&self, _: Content<usize>) -> Result<BatchState<usize>, Error> {
        unreachable!("its batches are ready once they are sent")
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
        let schedule = Schedule::sequential(batches, 1);
        let settings = Settings { prefetch, transfers, timeout: None, lease_timeout: Duration::MAX, device: None };
        let pipeline = Pipeline::new(settings, source, pool);
        pipeline.lock().set_workers(2);
        Self { pipeline, schedule, batches }
    }

    fn begin(&self) -> IteratorId {
        let (feed, _) = self.schedule.epoch(0).unwrap();
        self.pipeline.begin(0, feed, 0..self.batches).ok().expect("threads at work")
    }

    /// Opens a batch, as a worker does; returns its only task.
    fn open_one(&self) -> Task<usize> {
        loop {
            match worker::work(&self.pipeline, 0).unwrap() {
                Work::Open { batch, feed, permit, abandoned, workers, .. } => {
                    if let Some(task) = worker::open(&self.pipeline, batch, feed, permit, abandoned, workers) {
                        return task;
                    }
                }
                Work::Task(task) => return task,
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
            while let Some((batch, _)) = pipeline.wait_for(Queue::Send, State::take_to_send) {
                let Batch { key, state: BatchState::Pinned(content), skips } = batch else { continue };
                if pipeline.starved(key).is_some() {
                    let mut uploader = Uploader::burn(pipeline.source.target());
                    let sent = pipeline.source.send(content, &pipeline.pool, &mut uploader);
                    pipeline.pass(Batch { key, state: pipeline.reported(sent), skips });
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
fn end_task(pipeline: &Pipeline<usize>, task: Task<usize>) {
    let mut clock = TaskClock::start(pipeline.counters(), 0, task.batch.plan.key);
    let done = pipeline.source.run(task, &mut clock); // nothing, if the epoch has ended
    pipeline.note_task_time(1, clock.worked());
    if let Some(batch) = done {
        pipeline.pass(batch);
    }
}

/// Takes batches until the epoch's end; returns how many there were, and whether the end was a close.
fn take(pipeline: &Pipeline<usize>, id: IteratorId) -> (usize, bool) {
    let mut taken = 0;
    while let Some((Batch { state, key, .. }, _)) = pipeline.next(id, Instant::now()) {
        match state {
            BatchState::Ready { batch, .. } => assert_eq!((batch, key.number), (taken, taken), "in order"),
            BatchState::Failed(Error::OverLimit { .. }) => {}
            BatchState::Failed(Error::Ended) => {
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
