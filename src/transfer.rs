//! The transfer stage: filled slots become tensors on the device, on threads and a stream of their own.

use crate::{
    activity::{Activity, BatchKey},
    error::{Error, Place},
    pipeline::Pipeline,
    source::Target,
    upload::Uploader,
};
use burn::tensor::StreamId;
use std::sync::OnceLock;

/// The CubeCL stream that all transfer threads of the process allocate on. One, since CubeCL keeps a pool of device memory for
/// each stream, as large as the most that was ever alive on it: three pools held 370 MB where one holds 150.
static STREAM: OnceLock<StreamId> = OnceLock::new();

/// A transfer thread.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    STREAM.get_or_init(StreamId::current).executes(|| {
        let target = pipeline.source.target();
        let bytes = pipeline.source.slot_bytes().unwrap_or(usize::MAX);
        let mut uploader = Uploader::to(target);
        while let Some((run, place, filled)) = pipeline.to_send() {
            let (counters, batch) = (pipeline.counters(), BatchKey { epoch: place.epoch, number: place.batch });
            let waits = counters.span(Activity::DeviceWait, batch);
            pipeline.device.enter(pipeline.epochs(), || pipeline.starved());
            drop(waits);
            let copies = counters.span(Activity::Transfer, batch);
            let ready = pipeline.source.send(filled, &pipeline.pool, &mut uploader);
            // Also after a failure: a part of the batch may be on its way.
            let settled = settle(&mut uploader, target, bytes, place);
            drop(copies);
            let held = pipeline.device.copied(uploader.in_use());
            counters.on_device(pipeline.source.slot_bytes().unwrap_or(0) * held);
            pipeline.ready(run, place.batch, ready.and_then(|ready| settled.map(|()| ready)));
        }
        // CubeCL keeps a stream's memory pools for as long as the device lives: what can be freed of this one's is freed now.
        if !target.host {
            target.device.memory_cleanup();
        }
    });
}

/// Waits until the copies of a batch are done and its slot is home.
pub(crate) fn settle(uploader: &mut Uploader, target: &Target, bytes: usize, place: Place) -> Result<(), Error> {
    uploader.settle(target, bytes).map_err(|error| Error::Device { place, message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use crate::{
        collate::Collate,
        distributed::Distributed,
        epoch::{Delivery, Flow},
        error::BoxError,
        layout::{Field, SlotLayout},
        order::{EpochOrder, Orders, Sampling},
        pipeline::Pipeline,
        policy::Faults,
        pool::{Limits, Pool},
        row::RowMut,
        rows::RowsSource,
        sample::Samples,
        sampler::SequentialSampler,
        slot::HeapAlloc,
        source::{Ready, Target},
        stats::{Counters, Verdict, step::StepClock},
        timeline::Timeline,
        tune::Settings,
        worker::Threads,
    };
    use burn::{
        data::dataset::InMemDataset,
        tensor::{DType, Device},
    };
    use std::{
        sync::Arc,
        thread::sleep,
        time::{Duration, Instant},
    };

    struct Bytes;

    impl Collate<u8> for Bytes {
        type Batch = ();

        fn layout(&self) -> Vec<Field> {
            vec![Field::new("x", DType::U8, [10])]
        }

        fn write(&self, x: &u8, row: &mut RowMut<'_>) -> Result<(), BoxError> {
            Ok(row.write("x", &[*x; 10])?)
        }

        fn finish(&self, _: crate::RawBatch) -> Result<(), BoxError> {
            sleep(Duration::from_millis(1));
            Ok(())
        }
    }

    /// A device that computes in host memory, treated as an accelerator: batches go through transfer threads, and are finished in
    /// `next()`, which is what its consumer waits for.
    #[test]
    fn transfers_are_counted_and_a_slow_finish_is_found() {
        let (batches, rows, counters) = (30, 8, Arc::<Counters>::default());
        let layout = Arc::new(SlotLayout::new(Bytes.layout(), rows).unwrap());
        let limits = Limits { slots: 4, bytes: 4 * layout.bytes() };
        let pool = Pool::new(Arc::new(HeapAlloc), limits, Arc::clone(&counters));
        let samples = Arc::new(Samples {
            dataset: Arc::new(InMemDataset::new(vec![7u8; batches * rows])),
            len: batches * rows,
            augment: None,
            seed: 0,
            counters: Arc::clone(&counters),
            faults: Faults::default(),
        });
        let target = Target { device: Device::flex(), host: false };
        let source = RowsSource { samples, collate: Arc::new(Bytes), layout, target, group: 4 };
        let flow = Flow {
            workers: 2,
            transfers: 2,
            prefetch: 2,
            now: Settings::new(2, 2),
            lease_timeout: Duration::from_secs(10),
            timeout: None,
        };
        counters.started(flow.workers, flow.transfers, limits.slots);
        counters.timeline.start(10_000);
        let pipeline = Arc::new(Pipeline::new(Arc::new(source), pool, flow, None));
        let threads = Threads::start(&pipeline).unwrap();
        let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size: rows, drop_last: false };
        let (dataset_len, distributed) = (batches * rows, Distributed::alone());
        let orders = Orders { sampling, dataset_len, distributed, slice: None, resumed: None };
        let EpochOrder { order, .. } = orders.epoch(0).unwrap();
        let mut clock = StepClock::new(Arc::clone(&counters), 0, Instant::now());
        let id = pipeline.start(0, order, batches);
        loop {
            let asked = clock.asked();
            let Some(Delivery { ready, .. }) = pipeline.next(id) else { break };
            let Ok(Ready::Raw(raw)) = ready else { panic!("batches are finished by the consumer") };
            pipeline.source.finish(raw).unwrap();
            clock.handed(asked, Some(rows));
        }
        drop(threads);
        let stats = counters.snapshot();
        assert_eq!((stats.transfer.count, stats.device_wait.count, stats.finish.count), (30, 30, 30));
        assert_eq!((stats.sent_bytes, stats.transfer_threads), (10 * 240, 2));
        assert!(stats.to_string().contains("transfers"), "{stats}");
        assert!(matches!(stats.verdict(), Verdict::Finish { .. }), "{stats}\n{}", stats.verdict());
        let svg = Timeline::of(counters.timeline.events()).to_svg();
        assert!(svg.contains("transfer 0</text>") || svg.contains("transfer 1</text>"));
    }
}
