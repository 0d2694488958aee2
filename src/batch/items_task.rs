//! Batches made by an ordinary Burn `Batcher`: workers share the samples of a batch, and the last one calls the batcher.

use super::{
    fill::{Fill, Places},
    filled_items::{FilledItems, Memory},
    items_source::ItemsSource,
    job::Job,
    next::Next,
    samples::BatchPlan,
    source::{Source, Task},
};
use crate::{
    device::Target,
    fault::{BoxError, Caught, Doing, Each, Error, Faults, Skips, guard},
    memory::{Permit, Pool, Wait},
    observe::{Span, TaskClock},
    vocabulary::{Place, Stage},
};
use burn::tensor::Device;
use std::{ops::Range, sync::Arc};

/// The samples that the tasks of one batch gather.
struct Gathered<I> {
    /// In the batch's order.
    items: Each<Option<I>>,
    permit: Permit,
}

struct ItemsTask<I, O> {
    job: Arc<Job<ItemsSource<I, O>, Gathered<I>>>,
    rows: Range<usize>,
}

/// Samples with their positions, for the batcher.
impl<I> Places<I> for &mut Each<(usize, I)> {
    fn write(&mut self, _: usize, _: &[I], _: &mut TaskClock<'_>) -> Result<(), (usize, Error)> {
        Ok(())
    }

    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error> {
        self.push((position, sample));
        Ok(())
    }

    fn keep(&mut self, first: usize, samples: &mut Vec<I>) -> Result<(), Caught> {
        self.extend((first..).zip(samples.drain(..)));
        Ok(())
    }
}

impl<I: Send + 'static, O: Send + 'static> Task<O> for ItemsTask<I, O> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn run(self: Box<Self>, clock: &mut TaskClock<'_>) -> Option<(Result<Next<O>, Error>, Skips)> {
        let Job { source, plan, .. } = &*self.job;
        let (samples, worker) = (&source.samples, clock.worker());
        let (mut items, mut skips) = (Each::from(Vec::with_capacity(self.rows.len())), Skips::default());
        let fill = Fill { samples, plan, worker, skips: &mut skips, clock, places: &mut items };
        let filled = fill.run(self.rows.clone(), samples.group(self.rows.len()));
        clock.end(self.rows.len());
        Doing::here().whole(Place { worker: Some(worker), ..plan.place(Stage::Collate) });
        let add = |all: &mut Gathered<I>| {
            items.drain(..).for_each(|(position, item)| all.items[position] = Some(item));
        };
        self.job.end(filled, skips, add, |Gathered { mut items, permit }, skips| {
            let items: Vec<I> = items.drain(..).flatten().collect();
            let plan = plan.without(skips);
            let place = Place { worker: Some(worker), ..plan.place(Stage::Batcher) };
            let span = Span::new(&samples.counters, Stage::Batcher, plan.key);
            let batch = guard(place, || Ok::<_, BoxError>(source.batcher.batch(items, &source.host_device)));
            drop(span);
            let batch = batch.inspect_err(|error| samples.faults.saw(error))?;
            let host = source.target.host;
            let filled =
                Box::new(FilledItems { source: Arc::clone(source), batch, plan, memory: Memory::Permit(permit) });
            Ok(if host { Next::Send(filled) } else { Next::Pin(filled) })
        })
    }
}

impl<I: Send + 'static, O: Send + 'static> Source<O> for ItemsSource<I, O> {
    fn target(&self) -> &Target {
        &self.target
    }

    fn on(&self, target: Target) -> Result<Arc<dyn Source<O>>, Error> {
        let host_device = match &self.asked {
            _ if target.host => target.device.clone(),
            Some(device) if !Target::of(device.clone()).host => {
                let problem = format!("{device:?} does not compute in host memory");
                return Err(Error::config("host_device", problem, "use a CPU device, e.g. `Device::flex()`"));
            }
            Some(device) => device.clone(),
            None => default_host_device(&target.device)?,
        };
        let (samples, batcher, asked) = (Arc::clone(&self.samples), Arc::clone(&self.batcher), self.asked.clone());
        Ok(Arc::new(Self { samples, batcher, asked, host_device, target }))
    }

    fn faults(&self) -> &Faults {
        &self.samples.faults
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
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let (rows, chunk) = (plan.indices.len(), self.samples.chunk(chunk));
        let items = (0..rows).map(|_| None).collect::<Vec<_>>().into();
        let job = Job::new(self, plan, rows.div_ceil(chunk), Gathered { items, permit });
        let task = |first| {
            let rows = first..rows.min(first + chunk);
            Box::new(ItemsTask { job: Arc::clone(&job), rows }) as Box<dyn Task<O>>
        };
        Ok((0..rows).step_by(chunk).map(task).collect())
    }
}

fn default_host_device(device: &Device) -> Result<Device, Error> {
    #[cfg(feature = "cuda")]
    {
        let _ = device;
        Ok(Device::flex())
    }
    #[cfg(not(feature = "cuda"))]
    {
        let problem = format!("a batcher needs a CPU device to make its batches on, before they go to {device:?}");
        Err(Error::config("host_device", problem, "add e.g. `.host_device(Device::flex())`"))
    }
}
