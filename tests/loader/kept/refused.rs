//! What cannot be kept, and what ends the reading of it.

use super::{Builder, bad, bare, builder};
use crate::common::{Mischief, Numbers, device};
use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, KeyedRng, PinnedDataLoaderBuilder, RawBatch, RowMut,
    fault::Quota,
    memory::{HostAlloc, HostBlock, MemoryLimit},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

#[test]
fn what_cannot_be_kept_is_an_error() {
    let refused = |builder: Builder| builder.build_kept(Numbers::new(20)).unwrap_err().to_string();
    let augmented = refused(builder().augment(|number: usize, _: &mut KeyedRng| Ok(number)));
    assert!(augmented.contains("vision::device"), "{augmented}");
    let sized = refused(bare());
    assert!(sized.contains("batch_size"), "{sized}");

    #[derive(Clone)]
    struct Sums;
    impl Batcher<usize, Tensor<1, Int>> for Sums {
        fn batch(&self, items: Vec<usize>, device: &Device) -> Tensor<1, Int> {
            Tensor::from_data([items.iter().sum::<usize>() as i32], device)
        }
    }
    let batcher = PinnedDataLoaderBuilder::from_batcher(Sums).batch_size(4).set_device(device());
    let batcher = batcher.build_kept(Numbers::new(20)).unwrap_err().to_string();
    assert!(batcher.contains("batcher"), "{batcher}");
}

/// A row that no memory can hold.
#[test]
fn a_layout_beyond_any_memory_is_an_error() {
    struct Vast;
    impl Collate<usize> for Vast {
        type Batch = ();

        fn layout(&self) -> Vec<Field> {
            vec![Field::new("vast", DType::U8, [usize::MAX, 2])]
        }

        fn write(&self, _: &usize, _: &mut RowMut<'_>) -> Result<(), BoxError> {
            Ok(())
        }

        fn finish(&self, _: RawBatch) -> Result<(), BoxError> {
            Ok(())
        }
    }
    let builder = PinnedDataLoaderBuilder::new(Vast).batch_size(2).set_device(device());
    let error = builder.build_kept(Numbers::new(20)).unwrap_err();
    assert!(matches!(&error, Error::Config { .. }) && error.to_string().contains("vast"), "{error}");
}

/// A dataset that says it has more samples than there is memory for is refused before anything is read.
#[test]
fn a_dataset_that_does_not_fit_is_not_read() {
    for len in [1 << 31, 1 << 40] {
        let numbers = Numbers::new(len);
        let error = builder().build_kept(numbers.clone()).unwrap_err().to_string();
        assert!(error.contains("`build_kept`") && error.contains("rows"), "{error}");
        assert_eq!(numbers.asked.load(Relaxed), 0);
    }
}

#[test]
fn an_error_while_it_is_read_ends_it() {
    let seen = Arc::<AtomicUsize>::default();
    let counts = Arc::clone(&seen);
    let make = || {
        let counts = Arc::clone(&counts);
        builder().on_fault(move |_| {
            counts.fetch_add(1, Relaxed);
        })
    };
    let error = make().build_kept(bad(61, &[20])).unwrap_err();
    assert!(matches!(&error, Error::Failed { place, .. } if place.index == Some(20)), "{error}");
    let error = make().bad_samples(BadSamples::Replace { tries: 2 }).build_kept(bad(61, &[20, 21, 22])).unwrap_err();
    assert!(matches!(&error, Error::NoReplacement { tries: 2, .. }), "{error}");
    // Another worker may meet two of the three in their own rows meanwhile.
    assert!(seen.swap(0, Relaxed) >= 4, "one sample, and three");
    make().bad_samples(BadSamples::Skip(Quota::Count(9))).build_kept(bad(61, &[20, 21])).unwrap().iter().for_each(drop);
    assert_eq!(seen.load(Relaxed), 2, "each bad sample is met once");

    let hangs = Numbers::new(61).with(40, Mischief::Hang);
    let error = builder().timeout(Duration::from_millis(200)).build_kept(hangs.clone()).unwrap_err();
    hangs.gate.open();
    assert!(matches!(error, Error::Timeout { hung: Some(_), .. }), "{error}");
}

/// Host memory that is refused.
#[test]
fn without_memory_for_slots_nothing_is_left() {
    #[derive(Debug)]
    struct Nothing;
    impl HostAlloc for Nothing {
        fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
            Err(Error::OutOfHostMemory { kind: "pageable", bytes, message: "none for this test".into() })
        }
    }
    let (numbers, limit) = (Numbers::new(400), MemoryLimit::new(1 << 20));
    let error = builder().allocator(Nothing).shared_limit(&limit).build_kept(numbers.clone()).unwrap_err();
    assert!(matches!(error, Error::OutOfHostMemory { .. }), "{error}");
    assert_eq!((limit.used(), Arc::strong_count(&numbers.asked)), (0, 1));
}
