//! What one copy of a loader has for itself: its slots, its device, and where its threads sleep.

use super::flow::Flow;
use crate::{
    batch::{Source, Step},
    device::{Common, DeviceWindow},
    fault::Watch,
    memory::{AwaitsPermits, Pool},
    observe::OnDevice,
    sync::Condvar,
};
use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

pub(crate) struct Branch<O> {
    pub(crate) flow: Flow,
    pub(crate) source: Arc<dyn Source<O>>,
    pub(crate) pool: Arc<Pool>,
    /// The number of transfer threads. With none, as on a CPU backend, the worker that ends a batch also does its other
    /// steps. There is no copy to wait for then, and permits alone limit what is ready.
    pub(crate) transfers: usize,
    /// The number of the device among those that the loader is cut for.
    pub(crate) device: Option<u16>,
    /// The NUMA node of the slots.
    pub(super) node: Option<u32>,
    pub(super) window: Arc<DeviceWindow>,
    /// What the transfer threads share.
    pub(super) common: Common,
    /// The threads of the steps. The crew watches the workers.
    pub(super) watch: Arc<Watch>,
    /// Where the threads of the steps sleep.
    for_steps: [Condvar; Step::COUNT],
    pub(super) for_consumers: Condvar,
    /// The batches ahead that slots and device have room for.
    pub(super) ahead: AtomicUsize,
    /// Changed under the crew's lock only.
    closed: AtomicBool,
}

impl<O> Branch<O> {
    /// Makes what a copy has for itself. `workers` are told when a permit comes back; `transfers` threads copy to the
    /// device.
    pub(super) fn new(
        flow: &Flow,
        workers: Weak<dyn AwaitsPermits>,
        source: Arc<dyn Source<O>>,
        pool: Arc<Pool>,
        transfers: usize,
        device: Option<u16>,
    ) -> Self {
        let common = Common::default();
        let (looks, hurries) = (common.clone(), common.clone());
        // One more than `ahead`, for the batch of the step, or it waits.
        let window = DeviceWindow::new(flow.ahead() + 1, move |urgent| looks.look(urgent), move || hurries.make_room());
        let window = Arc::new(window);
        let watched = Arc::clone(&window) as Arc<dyn OnDevice>;
        pool.counters().watch_device(Arc::downgrade(&watched));
        pool.tell(workers, source.slot_bytes());
        Self {
            flow: flow.clone(),
            node: pool.node(),
            source,
            pool,
            transfers,
            device,
            window,
            common,
            watch: Arc::new(Watch::new(flow.timeout)),
            for_steps: Default::default(),
            for_consumers: Condvar::new(),
            ahead: AtomicUsize::new(flow.prefetch),
            closed: AtomicBool::new(false),
        }
    }

    /// Whether the worker that ends a batch also does its other steps, as on a CPU backend.
    pub(super) fn is_host(&self) -> bool {
        self.transfers == 0
    }

    /// The number of batches that may be opened ahead of the consumer.
    pub(super) fn most_open(&self) -> usize {
        self.flow.most_open(self.pool.limits().slots)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Notes, under the crew's lock, that all waits are to end.
    pub(super) fn set_closed(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Where the threads of a step sleep.
    pub(super) fn for_step(&self, step: Step) -> &Condvar {
        &self.for_steps[step as usize]
    }

    /// Wakes the threads of all steps.
    pub(super) fn wake_steps(&self) {
        for condition in &self.for_steps {
            condition.notify_all();
        }
    }
}
