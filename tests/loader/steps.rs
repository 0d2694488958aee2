//! Epochs of a fixed number of batches.

use crate::common::{Numbers, Shown, sized, unsized_};
use burn::data::dataloader::DataLoader;
use burn_pinned::{
    Distributed, PinnedDataLoaderBuilder,
    order::{
        BatchSampler, EpochBatches, LengthBucketSampler, LiveWeights, MixPart, MixSampler, PKSampler, RandomSampler,
        Sampler,
    },
};

fn steps(steps: usize) -> PinnedDataLoaderBuilder<usize, Shown> {
    sized(4).shuffle(7).steps_per_epoch(steps)
}

/// The numbers of the samples of an epoch, batch by batch.
fn epoch(loader: &dyn DataLoader<Shown>) -> Vec<Vec<i64>> {
    loader.iter().map(|batch| batch.unwrap().numbers).collect()
}

#[test]
fn epochs_are_the_passes_in_batches() {
    // 22 samples make 5.5 batches of 4: no batch is short, and eleven epochs of 3 steps are six passes.
    let loader = steps(3).build(Numbers::new(22)).unwrap();
    assert_eq!((loader.num_batches(), loader.num_items()), (3, 12));
    let all: Vec<Vec<i64>> = (0..11).flat_map(|_| epoch(&*loader)).collect();
    assert_eq!(all.len(), 33);
    let passes = sized(22).shuffle(7).build(Numbers::new(22)).unwrap();
    let whole: Vec<i64> = (0..6).flat_map(|_| epoch(&*passes).concat()).collect();
    assert_eq!(all.concat(), whole);
    assert_eq!(loader.state().epoch(), 11);
}

#[test]
fn processes_devices_and_a_resume_have_the_same_batches() {
    let whole = steps(4).build(Numbers::new(22)).unwrap();
    // Four steps of two processes are eight batches' samples in an epoch.
    let all: Vec<Vec<i64>> = (0..4).flat_map(|_| epoch(&*whole)).collect();
    let ranks =
        [0, 1].map(|rank| steps(4).distributed(Distributed::new(rank, 2).unwrap()).build(Numbers::new(22)).unwrap());
    let given = [0, 1].map(|rank: usize| [epoch(&*ranks[rank]), epoch(&*ranks[rank])].concat());
    assert!(given.iter().all(|batches| batches.len() == 8));
    let mut both: Vec<_> = given.concat().concat();
    let mut expected = all.concat();
    both.sort();
    expected.sort();
    assert_eq!(both, expected);

    let devices = steps(4).devices(2).build(Numbers::new(22)).unwrap();
    assert_eq!((devices.num_batches(), devices.num_items()), (4, 32));
    let slices = [devices.slice(0, 16), devices.slice(16, 32)];
    let counts = slices.each_ref().map(|slice| epoch(&**slice).len());
    assert_eq!(counts, [4, 4]);

    // Stopped in the middle of the second epoch.
    let first = steps(4).build(Numbers::new(22)).unwrap();
    let mut before = epoch(&*first);
    before.extend(first.iter().take(1).map(|batch| batch.unwrap().numbers));
    let resumed = steps(4).resume(first.state()).build(Numbers::new(22)).unwrap();
    let after: Vec<Vec<i64>> = (0..3).flat_map(|_| epoch(&*resumed)).collect();
    assert_eq!([before, after].concat(), all);
    let error = steps(5).resume(first.state()).build(Numbers::new(22)).unwrap_err().to_string();
    assert!(error.contains("epochs of 16 of") && error.contains("epochs of 20 of"), "{error}");
}

#[test]
fn batch_samplers_and_mixtures_go_on_too() {
    let lengths: Vec<usize> = (0..22).map(|n| n * n % 9).collect();
    let buckets = || LengthBucketSampler::new(lengths.clone(), 24, 4).unwrap().shuffle(3);
    let passes = unsized_().order(buckets()).build(Numbers::new(22)).unwrap();
    let whole: Vec<Vec<i64>> = (0..3).flat_map(|_| epoch(&*passes)).collect();
    let loader = unsized_().order(buckets()).steps_per_epoch(4).build(Numbers::new(22)).unwrap();
    let cut: Vec<Vec<i64>> = (0..4).flat_map(|_| epoch(&*loader)).collect();
    assert_eq!(cut, whole[..16]);
    let part = |len, weight| MixPart::new(len, weight, RandomSampler::new(5));
    let mixture = MixSampler::new([part(10, 1.0), part(12, 3.0)], 1).unwrap();
    let loader = sized(4).order(mixture).steps_per_epoch(3).build(Numbers::new(22)).unwrap();
    assert_eq!((0..5).map(|_| epoch(&*loader).len()).sum::<usize>(), 15);
}

/// Epochs that are longer or shorter than a pass: the draws and the rounds of the passes, one after the other.
#[test]
fn live_weights_and_labels_go_on_too() {
    let weights = || LiveWeights::new((0..22).map(f64::from), 5).unwrap().with_size(10);
    let labels = || PKSampler::new((0..22).map(|item| item % 5), 2, 3, 5).unwrap();
    let live = || sized(4).order(weights());
    let drawn: Vec<i64> = (0..6).flat_map(|pass| weights().indices(22, pass)).map(|item| item as i64).collect();
    let batches = (0..5).flat_map(|pass| labels().batches(22, pass).batches).flatten();
    let rounds: Vec<i64> = batches.map(|item| item as i64).collect();
    let orders: [(&dyn Fn() -> _, _, _); 2] = [(&live, drawn, 4), (&|| unsized_().order(labels()), rounds, 6)];
    for (order, all, size) in orders {
        for steps in [1, 2, 5] {
            let loader = order().steps_per_epoch(steps).build(Numbers::new(22)).unwrap();
            assert_eq!((loader.num_batches(), loader.num_items()), (steps, steps * size));
            let epochs: Vec<i64> = (0..2).flat_map(|_| epoch(&*loader).concat()).collect();
            assert_eq!(epochs, all[..2 * steps * size]);
            let first = order().steps_per_epoch(steps).build(Numbers::new(22)).unwrap();
            drop(epoch(&*first));
            let resumed = order().steps_per_epoch(steps).resume(first.state()).build(Numbers::new(22)).unwrap();
            assert_eq!(epoch(&*resumed).concat(), all[steps * size..2 * steps * size]);
        }
    }
}

#[test]
fn no_step_is_an_error() {
    let error = steps(0).build(Numbers::new(22)).unwrap_err().to_string();
    assert!(error.contains("steps_per_epoch") && error.contains("0 batches make no epoch"), "{error}");
    assert!(steps(usize::MAX).build(Numbers::new(22)).is_err());
}

/// The first passes have batches, and later ones have none.
#[derive(Debug)]
struct Ends;

impl BatchSampler for Ends {
    fn batches(&self, _: usize, pass: usize) -> EpochBatches {
        EpochBatches::new(if pass < 2 { 3 } else { 0 }, (0..3).map(move |batch| vec![3 * pass + batch]))
    }

    fn max_batch_size(&self, _: usize) -> usize {
        1
    }

    fn num_items(&self, _: usize) -> usize {
        3
    }
}

#[test]
fn passes_without_batches_end_an_epoch() {
    let loader = unsized_().order(Ends).steps_per_epoch(4).build(Numbers::new(22)).unwrap();
    assert_eq!(epoch(&*loader).concat(), [0, 1, 2, 3]);
    let rest: Vec<_> = loader.iter().collect();
    assert!(rest.len() >= 3 && rest[..2].iter().all(Result::is_ok) && rest[2].is_err(), "two batches are left");
    let error = loader.iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("no batches for this epoch"), "{error}");
}
