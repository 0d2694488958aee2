//! Transfer threads without a GPU: a device that computes in host memory, treated as an accelerator.

use crate::{
    collate::Collate,
    distributed::Distributed,
    epoch::{Delivery, Flow},
    error::{BoxError, Error, Stage},
    layout::{Field, SlotLayout},
    order::{EpochOrder, Orders, Sampling},
    pipeline::Pipeline,
    policy::Faults,
    pool::{Limits, Permit, Pool, Wanted},
    row::RowMut,
    rows::RowsSource,
    sample::{BatchPlan, Samples},
    sampler::SequentialSampler,
    slot::HeapAlloc,
    source::{Filled, Ready, Source, Task},
    stats::{Counters, Verdict, step::StepClock},
    target::Target,
    timeline::Timeline,
    tune::Settings,
    upload::{Breaks, Uploader},
    worker::Threads,
};
use burn::{
    data::dataset::InMemDataset,
    tensor::{DType, Device},
};
use std::{
    mem,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

const ROWS: usize = 8;
const SLOTS: usize = 4;

struct Bytes;

impl Collate<u8> for Bytes {
    type Batch = ();

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::U8, [9]), Field::new("y", DType::U8, [])]
    }

    fn write(&self, x: &u8, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("x", &[*x; 9])?;
        Ok(row.put("y", *x)?)
    }

    fn finish(&self, _: crate::RawBatch) -> Result<(), BoxError> {
        sleep(Duration::from_millis(1));
        Ok(())
    }
}

fn rows(batches: usize, counters: &Arc<Counters>) -> RowsSource<u8, Bytes> {
    let samples = Samples {
        dataset: Arc::new(InMemDataset::new(vec![7u8; batches * ROWS])),
        len: batches * ROWS,
        augment: None,
        seed: 0,
        counters: Arc::clone(counters),
        faults: Faults { counters: Arc::clone(counters), ..Faults::default() },
    };
    RowsSource {
        samples: Arc::new(samples),
        collate: Arc::new(Bytes),
        layout: Arc::new(SlotLayout::new(Bytes.layout(), ROWS).unwrap()),
        target: Target { device: Device::flex(), host: false },
        group: 4,
    }
}

fn pipeline(source: impl Source<()> + 'static, counters: &Arc<Counters>) -> Arc<Pipeline<()>> {
    let limits = Limits { slots: SLOTS, bytes: SLOTS * source.slot_bytes().unwrap() };
    let pool = Pool::new(Arc::new(HeapAlloc), limits, Arc::clone(counters));
    let flow = Flow {
        workers: 2,
        transfers: 2,
        prefetch: 2,
        now: Settings::new(2, 2),
        lease_timeout: Duration::from_secs(10),
        timeout: None,
    };
    counters.started(flow.workers, flow.transfers, limits.slots);
    Arc::new(Pipeline::new(Arc::new(source), pool, flow, None))
}

fn order(batches: usize) -> EpochOrder {
    let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size: ROWS, drop_last: false };
    let (dataset_len, distributed) = (batches * ROWS, Distributed::alone());
    Orders { sampling, dataset_len, distributed, slice: None, resumed: None }.epoch(0).unwrap()
}

/// Batches are finished in `next()`, which is what its consumer waits for.
#[test]
fn transfers_are_counted_and_a_slow_finish_is_found() {
    let (batches, counters) = (30, Arc::<Counters>::default());
    counters.timeline.start(10_000);
    let pipeline = pipeline(rows(batches, &counters), &counters);
    let threads = Threads::start(&pipeline).unwrap();
    let mut clock =
        StepClock::new(Arc::clone(&counters), crate::activity::BatchKey { epoch: 0, number: 0 }, Instant::now());
    let id = pipeline.start(0, order(batches).order, 0..batches);
    loop {
        let asked = clock.asked();
        let Some(delivery) = pipeline.next(id) else { break };
        let Ok(Ready::Raw(raw)) = delivery.ready else { panic!("batches are finished by the consumer") };
        pipeline.source.finish(raw).unwrap();
        clock.handed(asked, delivery.place.batch, Some(ROWS));
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

/// Rows whose upload breaks in each third batch.
struct Breaking(Arc<RowsSource<u8, Bytes>>, Breaks);

impl Source<()> for Breaking {
    fn target(&self) -> &Target {
        self.0.target()
    }

    fn faults(&self) -> &Faults {
        self.0.faults()
    }

    fn slot_bytes(&self) -> Option<usize> {
        self.0.slot_bytes()
    }

    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wanted: Wanted<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<()>>>, Error> {
        Arc::clone(&self.0).open(plan, permit, pool, wanted, chunk)
    }

    fn needs_pin(&self) -> bool {
        self.0.needs_pin()
    }

    fn pin(&self, filled: Filled<()>, pool: &Arc<Pool>, wanted: Wanted<'_>) -> Result<Filled<()>, Error> {
        self.0.pin(filled, pool, wanted)
    }

    fn send(&self, filled: Filled<()>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<()>, Error> {
        let breaks = filled.at().is_some_and(|at| at.number % 3 == 2);
        // It stays with the transfer thread, which is to settle with it next.
        drop(mem::replace(uploader, if breaks { Uploader::Broken(self.1) } else { Uploader::Burn }));
        self.0.send(filled, pool, uploader)
    }

    fn finish(&self, batch: crate::RawBatch) -> Result<(), Error> {
        self.0.finish(batch)
    }
}

#[test]
fn a_failed_upload_is_reported_at_its_place_and_the_next_batches_come() {
    for breaks in [
        Breaks::Upload { after: 0 },
        Breaks::Upload { after: 1 }, // a part of the batch is on the device
        Breaks::Panic { after: 0 },
        Breaks::Panic { after: 1 },
        Breaks::Settle,
    ] {
        let (batches, counters) = (30, Arc::<Counters>::default());
        let pipeline = pipeline(Breaking(Arc::new(rows(batches, &counters)), breaks), &counters);
        let threads = Threads::start(&pipeline).unwrap();
        for epoch in 0..2 {
            let id = pipeline.start(epoch, order(batches).order, 0..batches);
            for number in 0..batches {
                let Delivery { place, ready, .. } = pipeline.next(id).expect("a batch or an error for each place");
                assert_eq!((place.epoch, place.batch), (epoch, number));
                match ready {
                    Ok(Ready::Raw(raw)) if number % 3 != 2 => {
                        assert_eq!((raw.number(), raw.len()), (number, ROWS));
                    }
                    Err(error) if number % 3 == 2 => {
                        let at = error.place().expect("a place");
                        assert_eq!((at.stage, at.epoch, at.batch), (Stage::Transfer, epoch, number), "{error}");
                        let fits = match breaks {
                            Breaks::Upload { .. } => matches!(error, Error::Failed { .. }),
                            Breaks::Panic { .. } => matches!(error, Error::Panicked { .. }),
                            Breaks::Settle => matches!(error, Error::Device { .. }),
                        };
                        assert!(fits, "{breaks:?}: {error:?}");
                    }
                    Ok(_) => panic!("{breaks:?}: batch {number} in spite of the fault"),
                    Err(error) => panic!("{breaks:?}: batch {number}: {error}"),
                }
            }
            assert!(pipeline.next(id).is_none());
            pipeline.end(id);
        }
        let permits: Vec<_> = (0..SLOTS).map_while(|_| pipeline.pool.permit(Duration::from_secs(5))).collect();
        assert_eq!(permits.len(), SLOTS, "{breaks:?}: a slot did not come home");
        drop(permits);
        drop(threads);
        let stats = counters.snapshot();
        assert_eq!((stats.faults, stats.host_bytes), (20, 0), "{breaks:?}");
        assert_eq!(stats.allocations, SLOTS as u64, "{breaks:?}: memory was not used again");
    }
}
