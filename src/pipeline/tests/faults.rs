//! Uploads and decoders that fail: each error is told at the place of its batch, and the other batches come.

use super::fake::{BROKEN, Link, ROWS, SLOTS, begin, finish, pictures, pictures_of, pipeline, rows, threads};
use crate::{
    batch::{Batch, BatchState},
    device::tests::Breaks,
    fault::{BadSamples, Error, Quota},
    observe::Counters,
    vocabulary::Stage,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A device that does not even say that its copies are done: each batch is its error at once, however few slots there
/// are.
#[test]
fn copies_whose_end_is_unknown_cost_no_permit() {
    for (breaks, stage, problem) in [
        (Breaks::Lost, Stage::Transfer, "the copy did not end"),
        (Breaks::LostInDecode, Stage::Decode, "the engines did not end"),
    ] {
        let (batches, counters, start) = (5 * SLOTS, Arc::<Counters>::default(), Instant::now());
        let rows = if stage == Stage::Decode { pictures(batches, &counters) } else { rows(batches, &counters) };
        let link = Link::new(rows).breaks(move |_| Some(breaks));
        let pipeline = pipeline(link, &counters);
        let threads = threads(&pipeline);
        let id = begin(&pipeline, 0, batches);
        for number in 0..batches {
            let (batch, _) = pipeline.next(id, Instant::now()).expect("an error for each batch");
            let BatchState::Failed(Error::Device { place, message }) = batch.state else {
                panic!("batch {number}: another end")
            };
            assert_eq!((place.batch, place.stage, message.as_str()), (number, stage, problem));
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}: something waited for a permit", start.elapsed());
        pipeline.end(id);
        let permits: Vec<_> = (0..SLOTS).map_while(|_| pipeline.pool.permit(Duration::from_secs(5))).collect();
        assert_eq!(permits.len(), SLOTS);
        // The pin thread allocates ahead of use, so there may be more than was used.
        let (allocated, used) = (counters.snapshot().allocations, batches as u64);
        assert!(
            (used..=used + SLOTS as u64).contains(&allocated),
            "{allocated}: memory that may be read was used again"
        );
        drop((permits, threads));
    }
}

#[test]
fn a_failed_upload_is_reported_at_its_place_and_the_next_batches_come() {
    for (breaks, images) in [
        (Breaks::Upload { after: 0 }, false),
        (Breaks::Upload { after: 1 }, false), // a part of the batch is on the device
        (Breaks::Upload { after: 1 }, true),
        (Breaks::Panic { after: 0 }, false),
        (Breaks::Panic { after: 1 }, false),
        (Breaks::Panic { after: 0 }, true),
        (Breaks::Decode, true),
        (Breaks::PanicInDecode, true),
        (Breaks::Settle, false),
        (Breaks::Settle, true),
    ] {
        let (batches, counters) = (30, Arc::<Counters>::default());
        let of_decode = matches!(breaks, Breaks::Decode | Breaks::PanicInDecode);
        let stage = if of_decode { Stage::Decode } else { Stage::Transfer };
        let rows = if images { pictures(batches, &counters) } else { rows(batches, &counters) };
        let link = Link::new(rows).breaks(move |number| Some(breaks).filter(|_| number % 3 == 2));
        let pipeline = pipeline(link, &counters);
        let threads = threads(&pipeline);
        for epoch in 0..2 {
            let id = begin(&pipeline, epoch, batches);
            for number in 0..batches {
                let (Batch { key, state, .. }, _) =
                    pipeline.next(id, Instant::now()).expect("a batch or an error for each place");
                assert_eq!((key.epoch, key.number), (epoch, number));
                match state {
                    BatchState::OnDevice(content) if number % 3 != 2 => assert_eq!(finish(&pipeline, content), ROWS),
                    BatchState::Failed(error) if number % 3 == 2 => {
                        let at = error.place().expect("a place");
                        assert_eq!((at.stage, at.epoch, at.batch), (stage, epoch, number), "{error}");
                        let fits = match breaks {
                            Breaks::Upload { .. } | Breaks::Decode => matches!(error, Error::Failed { .. }),
                            Breaks::Panic { .. } | Breaks::PanicInDecode => matches!(error, Error::Panicked { .. }),
                            Breaks::Settle => matches!(error, Error::Device { .. }),
                            Breaks::Keeps { .. } | Breaks::Lost | Breaks::LostInDecode => false,
                        };
                        assert!(fits, "{breaks:?}: {error:?}");
                    }
                    BatchState::Failed(error) => panic!("{breaks:?}: batch {number}: {error}"),
                    _ => panic!("{breaks:?}: batch {number} in spite of the fault"),
                }
            }
            assert!(pipeline.next(id, Instant::now()).is_none());
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

#[test]
#[cfg_attr(feature = "turbo", ignore = "libjpeg-turbo makes something of these files")]
fn a_file_that_nobody_can_decode_is_left_out_or_fails_its_batch() {
    // The bad ones: none, the first, some in the middle, the last, all.
    let bad: [&[usize]; 5] = [&[], &[0], &[2, 3, 5], &[7], &[0, 1, 2, 3, 4, 5, 6, 7]];
    for policy in [BadSamples::Skip(Quota::Share(1.0)), BadSamples::Fail, BadSamples::Replace { tries: 2 }] {
        let counters = Arc::<Counters>::default();
        let numbers = (0..bad.len() * ROWS).map(|n| if bad[n / ROWS].contains(&(n % ROWS)) { BROKEN } else { n as u8 });
        let mut rows = pictures_of(numbers.collect(), &counters);
        let samples = Arc::get_mut(&mut rows.samples).unwrap();
        samples.faults.policy = policy;
        let breaks = Breaks::Keeps { until: Some(Instant::now()) };
        let link = Link::new(rows).breaks(move |_| Some(breaks));
        let pipeline = pipeline(link, &counters);
        let threads = threads(&pipeline);
        let id = begin(&pipeline, 0, bad.len());
        for (number, bad) in bad.iter().enumerate() {
            let (Batch { state, skips, .. }, _) = pipeline.next(id, Instant::now()).expect("one for each place");
            match (state, &policy) {
                (BatchState::Empty, BadSamples::Skip(_)) => assert_eq!(bad.len(), ROWS),
                (BatchState::OnDevice(content), BadSamples::Skip(_)) => {
                    assert_eq!(finish(&pipeline, content), ROWS - bad.len(), "batch {number}");
                }
                (BatchState::OnDevice(content), _) => assert_eq!((finish(&pipeline, content), bad.len()), (ROWS, 0)),
                (BatchState::Failed(error), BadSamples::Fail | BadSamples::Replace { .. }) => {
                    let place = error.place().expect("a place");
                    assert_eq!((place.stage, place.index), (Stage::Decode, Some(number * ROWS + bad[0])), "{error}");
                }
                (BatchState::Failed(error), _) => panic!("batch {number}: {error}"),
                _ => panic!("batch {number}: another step"),
            }
            assert_eq!(skips.skipped, if matches!(policy, BadSamples::Skip(_)) { *bad } else { &[] });
        }
        assert!(pipeline.next(id, Instant::now()).is_none());
        pipeline.end(id);
        drop(threads);
        let faults = if matches!(policy, BadSamples::Skip(_)) { 13 } else { 4 };
        assert_eq!((counters.snapshot().faults, counters.snapshot().host_bytes), (faults, 0), "{policy:?}");
    }
}
