//! What goes wrong as an epoch begins is an error of its iterator: `iter()` never panics.

use crate::common::*;
use burn::data::dataloader::{DataLoader, split::split_dataloader};
use burn_pinned::{
    BadSamples, Distributed, Error,
    fault::Quota,
    order::{
        BatchSampler, EpochBatches, FixedBatchSampler, Guard, RandomSampler, ReadAhead, RepeatSampler, Sampler,
        SequentialSampler,
    },
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

/// Where a sampler panics, once the loader is built.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Len,
    Indices,
    Repeats,
    Batches,
    NumItems,
    MaxBatchSize,
}

#[derive(Debug, Clone)]
struct Armed(At, Arc<AtomicBool>);

impl Armed {
    fn pass(&self, at: At) {
        assert!(self.0 != at || !self.1.load(SeqCst), "no {at:?} today");
    }
}

impl Sampler for Armed {
    fn len(&self, len: usize) -> usize {
        self.pass(At::Len);
        len
    }
    fn indices(&self, len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        self.pass(At::Indices);
        Box::new(0..len)
    }
    fn repeats(&self) -> bool {
        self.pass(At::Repeats);
        false
    }
}

#[derive(Debug, Clone)]
struct ArmedBatches(Armed);

impl BatchSampler for ArmedBatches {
    fn batches(&self, len: usize, _: usize) -> EpochBatches {
        self.0.pass(At::Batches);
        EpochBatches::new(len / 8, (0..len / 8).map(|at| (8 * at..8 * at + 8).collect()))
    }
    fn max_batch_size(&self, _: usize) -> usize {
        self.0.pass(At::MaxBatchSize);
        8
    }
    fn num_items(&self, len: usize) -> usize {
        self.0.pass(At::NumItems);
        len
    }
    fn repeats(&self) -> bool {
        self.0.pass(At::Repeats);
        false
    }
}

#[test]
fn a_sampler_that_panics_as_an_epoch_begins_is_an_error() {
    let armed = |at| Armed(at, Arc::default());
    for policy in [BadSamples::Fail, BadSamples::Skip(Quota::Count(3))] {
        let samples = [At::Len, At::Indices, At::Repeats].map(|at| (at, false));
        let batches = [At::Batches, At::NumItems, At::MaxBatchSize, At::Repeats].map(|at| (at, true));
        for (at, in_batches) in samples.into_iter().chain(batches) {
            for kept in [false, true] {
                let fault = armed(at);
                let builder = if in_batches {
                    unsized_().order(ArmedBatches(fault.clone()))
                } else {
                    builder().order(fault.clone())
                };
                let (builder, data) = (builder.bad_samples(policy), Numbers::new(40));
                let loader = if kept { builder.build_kept(data) } else { builder.build(data) }.unwrap();
                fault.1.store(true, SeqCst);
                let mut iter = loader.iter();
                let error = iter.next().expect("an error").unwrap_err();
                let Some(Error::Panicked { message, .. }) = Error::of(&error) else { panic!("{at:?}: {error}") };
                assert_eq!(*message, format!("no {at:?} today"));
                assert!(iter.next().is_none() && !iter.progress().is_completed(), "{at:?}");
                drop(iter);
                fault.1.store(false, SeqCst);
                assert_eq!(numbers(&epoch(&*loader)), (0..40).collect::<Vec<_>>(), "{at:?}: the loader goes on");
            }
        }
    }
}

/// Fetches nothing ahead, and panics as it begins or as it ends.
#[derive(Debug, Clone)]
struct Ahead {
    begins: bool,
    ends: bool,
}

struct End(bool);

impl Drop for End {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "no end today");
    }
}

impl ReadAhead for Ahead {
    fn begin(&self, _: Box<dyn Iterator<Item = usize> + Send>) -> Guard {
        assert!(self.begins, "no begin today");
        Guard::new(End(self.ends))
    }
}

#[test]
fn what_reads_ahead_may_panic() {
    let broken = Ahead { begins: false, ends: false };
    let loader = builder().reads_ahead(&broken).build(Numbers::new(40)).unwrap();
    let outcomes_of = outcomes(&*loader);
    assert!(
        outcomes_of.len() == 1 && outcomes_of[0].as_ref().unwrap_err().ends_with("no begin today"),
        "{outcomes_of:?}"
    );
    // A guard that panics is dropped at the end of an epoch, early, or since another one could not begin.
    let brittle = Ahead { begins: true, ends: true };
    let loader = builder().reads_ahead(&brittle).build(Numbers::new(40)).unwrap();
    for _ in 0..2 {
        assert_eq!(numbers(&epoch(&*loader)).len(), 40);
        drop(loader.iter());
        loader.iter().take(2).for_each(|batch| drop(batch.unwrap()));
    }
    let loader = builder().reads_ahead(&brittle).reads_ahead(&broken).build(Numbers::new(40)).unwrap();
    assert!(outcomes(&*loader)[0].as_ref().unwrap_err().ends_with("no begin today"));
}

/// Plans no batches at all.
#[derive(Debug)]
struct Nothing;

impl BatchSampler for Nothing {
    fn batches(&self, _: usize, _: usize) -> EpochBatches {
        EpochBatches::new(0, std::iter::empty())
    }
    fn max_batch_size(&self, _: usize) -> usize {
        8
    }
    fn num_items(&self, _: usize) -> usize {
        0
    }
}

/// A training must not go on with nothing.
#[test]
fn fewer_batches_than_processes_are_an_error() {
    let only_error = |loader: &dyn DataLoader<Shown>, said: &str| {
        let outcomes = outcomes(loader);
        assert!(outcomes.len() == 1 && outcomes[0].as_ref().unwrap_err().contains(said), "{outcomes:?}");
    };
    let batches = || FixedBatchSampler::new(SequentialSampler, 8).unwrap();
    for rank in 0..3 {
        let share = Distributed::new(rank, 3).unwrap().drop_uneven();
        let loader = unsized_().order(batches()).distributed(share).build(Numbers::new(16)).unwrap();
        only_error(&*loader, "2 batches are fewer than the 3 processes");
        let loader = unsized_().order(batches()).distributed(share).build(Numbers::new(24)).unwrap();
        assert_eq!(epoch(&*loader).len(), 1);
    }
    let devices = unsized_().order(batches()).devices(3).distributed(Distributed::new(0, 1).unwrap().drop_uneven());
    let cut = split_dataloader(devices.build(Numbers::new(16)).unwrap(), &vec![device(); 3]);
    cut.iter().for_each(|device| only_error(&**device, "2 batches are fewer"));
    let nothing = unsized_().order(Nothing).build(Numbers::new(16)).unwrap();
    only_error(&*nothing, "no batches for this epoch");
}

/// The rest of a resumed epoch may be too little for another world. That is no error.
#[test]
fn the_rest_of_an_epoch_may_be_fewer_batches_than_processes() {
    let batches = || FixedBatchSampler::new(SequentialSampler, 8).unwrap();
    let first = unsized_().order(batches()).build(Numbers::new(40)).unwrap();
    first.iter().take(4).for_each(|batch| drop(batch.unwrap()));
    let share = Distributed::new(0, 3).unwrap().drop_uneven();
    let rest = unsized_().order(batches()).distributed(share).resume(first.state()).build(Numbers::new(40)).unwrap();
    assert_eq!(outcomes(&*rest), []);
}

/// Burn adds up the totals of devices, and multiplies them by the number of epochs.
#[test]
fn totals_of_endless_epochs_can_be_added_up() {
    const EPOCHS: usize = 1000;
    for devices in [1, 2, 3, 8] {
        let sampler = RepeatSampler::endless(RandomSampler::new(3));
        let loader = builder().order(sampler).devices(devices).build(Numbers::new(40)).unwrap();
        let cut: Vec<Arc<dyn DataLoader<Shown>>> =
            if devices > 1 { split_dataloader(loader, &vec![device(); devices]) } else { vec![loader] };
        let (mut processed, mut total) = (0usize, 0usize);
        for loader in &cut {
            let mut iter = loader.iter();
            iter.next().unwrap().unwrap();
            let progress = iter.progress();
            assert!(!progress.is_completed() && progress.items_processed == 8);
            processed = processed.checked_add(progress.items_processed).unwrap();
            total = total.checked_add(progress.items_total).expect("a sum");
            assert!(progress.items_total.checked_mul(devices).is_some_and(|all| all.checked_mul(EPOCHS).is_some()));
        }
        assert!(processed < total && total.checked_mul(EPOCHS).is_some(), "{devices} devices");
    }
}
