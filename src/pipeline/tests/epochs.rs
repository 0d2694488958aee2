//! Epochs side by side get all their batches, and one that ends leaves nothing behind.

use super::fake::{Link, ROWS, SLOTS, begin, is_whole, pipeline, rows, rows_of, threads};
use crate::{batch::BatchState, device::tests::Breaks, observe::Counters};
use burn::data::dataset::{Dataset, DatasetError};
use std::{
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

/// A fast and a slow consumer on a slow link: every batch of both arrives.
#[test]
fn two_consumers_get_all_their_batches() {
    let (batches, counters) = (40, Arc::<Counters>::default());
    let link = Link { send: Duration::from_millis(1), ..Link::new(rows(batches, &counters)) };
    let pipeline = pipeline(link, &counters);
    let threads = threads(&pipeline);
    std::thread::scope(|scope| {
        for pause in [0, 4] {
            let pipeline = &pipeline;
            scope.spawn(move || {
                let id = begin(pipeline, 0, batches);
                for number in 0..batches {
                    let (batch, _) = pipeline.next(id, Instant::now()).expect("a batch");
                    assert_eq!((batch.key.number, is_whole(&batch)), (number, true));
                    sleep(Duration::from_millis(pause));
                }
                assert!(pipeline.next(id, Instant::now()).is_none());
                pipeline.end(id);
            });
        }
    });
    assert_eq!(pipeline.lock().epochs(), 0);
    drop(threads);
}

/// Samples that take so long that a batch is cut into several tasks.
struct Slow(usize);

impl Dataset<u8> for Slow {
    fn get(&self, _: usize) -> Result<u8, DatasetError> {
        sleep(Duration::from_micros(250));
        Ok(7)
    }

    fn len(&self) -> usize {
        self.0
    }
}

/// Two epochs at once on a slow link, one of them read now and then: workers leave one of them in the middle of a batch.
#[test]
fn epochs_side_by_side_lose_no_batch() {
    let (batches, counters) = (40, Arc::<Counters>::default());
    let rows = rows_of(Slow(batches * ROWS), &counters);
    let link = Link { send: Duration::from_millis(1), ..Link::new(rows) };
    let pipeline = pipeline(link, &counters);
    let threads = threads(&pipeline);
    let ids = [0, 1].map(|epoch| begin(&pipeline, epoch, batches));
    std::thread::scope(|scope| {
        for (id, step) in ids.into_iter().zip([0, 12]) {
            let pipeline = &pipeline;
            scope.spawn(move || {
                for number in 0..batches {
                    sleep(Duration::from_millis(step));
                    let (batch, _) = pipeline.next(id, Instant::now()).expect("a batch for each place");
                    assert_eq!(batch.key.number, number);
                    if let BatchState::Failed(error) = batch.state {
                        panic!("batch {number}: {error}");
                    }
                }
                assert!(pipeline.next(id, Instant::now()).is_none());
                pipeline.end(id);
            });
        }
    });
    assert_eq!(pipeline.lock().epochs(), 0);
    drop(threads);
}

/// A consumer keeps all its batches and ends the epoch: what waits for a full device is not sent any more.
#[test]
fn an_epoch_that_ends_leaves_nothing_before_a_full_device() {
    let (batches, counters) = (20, Arc::<Counters>::default());
    let link = Link::new(rows(batches, &counters)).breaks(|_| Some(Breaks::Keeps { until: None }));
    let pipeline = pipeline(link, &counters);
    let threads = threads(&pipeline);
    let id = begin(&pipeline, 0, batches);
    for _ in 0..6 {
        assert!(pipeline.next(id, Instant::now()).is_some_and(|(batch, _)| is_whole(&batch)));
    }
    pipeline.end(id);
    let permits: Vec<_> = (0..SLOTS).map_while(|_| pipeline.pool.permit(Duration::from_secs(5))).collect();
    assert_eq!(permits.len(), SLOTS, "a slot is held by a batch that nobody waits for");
    let sent = counters.snapshot().stages.transfer.count;
    assert!((6..=6 + 4).contains(&sent), "{sent} batches sent");
    drop((permits, threads));
}
