//! A data set that is kept on the device has the same batches as one that is read in each epoch.

mod refused;

use crate::common::{Mischief, Numbers, byte, device};
use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    tensor::{Bool, BoolStore, DType, Float, Int, Tensor},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Distributed, Error, Field, KeyedRng, LoaderState, PinnedDataLoader,
    PinnedDataLoaderBuilder, RawBatch, RowMut, collate,
    fault::Quota,
    memory::MemoryLimit,
    order::{
        FixedBatchSampler, LengthBucketSampler, RandomSampler, RandomWithReplacementSampler, RepeatSampler, Sampler,
        SequentialSampler, SubsetSampler, WeightedSampler,
    },
};
use proptest::prelude::*;
use rand::Rng;
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// Fields of every kind, one of them padded.
struct Every;

/// All that a batch is, read back to the host.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    numbers: Vec<i32>,
    images: (Vec<usize>, Vec<u8>),
    halves: Vec<f32>,
    marks: Vec<bool>,
    tokens: (Vec<usize>, Vec<i64>),
    indices: Vec<usize>,
    place: (usize, usize),
    random: u64,
    autodiff: bool,
}

impl Collate<usize> for Every {
    type Batch = Told;

    fn layout(&self) -> Vec<Field> {
        vec![
            Field::new("number", DType::I32, []),
            Field::new("image", DType::U8, [1, 3, 4]),
            Field::new("half", DType::F32, [2]),
            Field::new("mark", DType::Bool(BoolStore::Native), [3]),
            Field::padded("tokens", [9, 2], -1i64),
        ]
    }

    fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("number", number as i32)?;
        row.write("image", &(0..12).map(|at| byte(number, at)).collect::<Vec<_>>())?;
        row.write("half", &[number as f32 / 2.0, -0.0])?;
        row.write("mark", &[number % 2 == 0, number % 3 == 0, true])?;
        // Of 6 steps at most, so that a table is cut.
        Ok(row.write("tokens", &vec![number as i64; 2 * (number * 5 % 7)])?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Told, BoxError> {
        let (place, random) = ((batch.epoch(), batch.number()), batch.rng().next_u64());
        let indices = batch.indices().ok_or("no indices")?.to_vec();
        let (image, tokens) = (batch.take::<4, Int>("image")?, batch.take::<3, Int>("tokens")?);
        let half: Tensor<2, Float> = batch.take("half")?;
        let mark: Tensor<2, Bool> = batch.take("mark")?;
        Ok(Told {
            numbers: batch.take::<1, Int>("number")?.into_data().try_to_vec()?,
            images: (image.dims().to_vec(), image.into_data().try_to_vec()?),
            autodiff: half.is_autodiff(),
            halves: half.into_data().try_to_vec()?,
            marks: mark.into_data().iter::<bool>().collect(),
            tokens: (tokens.dims().to_vec(), tokens.into_data().try_to_vec()?),
            indices,
            place,
            random,
        })
    }
}

type Builder = PinnedDataLoaderBuilder<usize, Told>;
type Loader = Arc<PinnedDataLoader<Told>>;

/// A loader that has no batch size yet.
fn bare() -> Builder {
    PinnedDataLoaderBuilder::new(Every).num_workers(2).set_device(device())
}

fn builder() -> Builder {
    bare().batch_size(8)
}

/// The same loader, kept and read.
fn both(builder: impl Fn() -> Builder, numbers: &Numbers) -> [Loader; 2] {
    [builder().build_kept(numbers.clone()).unwrap(), builder().build(numbers.clone()).unwrap()]
}

/// What is at the place of a batch. The worker that met an error, and its batch, are another's.
fn outcome(batch: Result<Told, burn::data::dataset::DatasetError>) -> Result<Told, String> {
    batch.map_err(|error| match Error::of(&error).expect("ours") {
        Error::QuotaExceeded { place, skipped, quota, first } => {
            let first: Vec<_> = first.iter().filter_map(|error| error.place()?.index).collect();
            format!("{} {skipped} {quota} {first:?}", place.batch)
        }
        Error::IndexOutOfRange { place, index, len } => format!("{} {index} {len}", place.batch),
        other => other.to_string(),
    })
}

/// Compares an epoch, batch by batch, with its progress. Returns how many batches it has.
fn same(kept: &dyn DataLoader<Told>, read: &dyn DataLoader<Told>) -> usize {
    assert_eq!(kept.num_items(), read.num_items());
    let (mut ours, mut theirs) = (kept.iter(), read.iter());
    for batch in 0.. {
        let (our, their) = (ours.next(), theirs.next());
        assert_eq!(our.map(outcome), their.map(outcome), "batch {batch}");
        let progress = [&ours, &theirs].map(|iter| (iter.progress().items_processed, iter.progress().items_total));
        assert_eq!(progress[0], progress[1], "batch {batch}");
        if batch > 10_000 || progress[0].0 == progress[0].1 {
            assert!(ours.next().is_none() && theirs.next().is_none());
            return batch + 1;
        }
    }
    unreachable!()
}

fn same_epochs(builder: impl Fn() -> Builder, numbers: &Numbers) {
    let [kept, read] = both(builder, numbers);
    for _ in 0..3 {
        assert!(same(&*kept, &*read) > 1);
        assert_eq!(kept.state(), read.state());
        assert_eq!(kept.num_batches(), read.num_batches());
    }
    let [kept, read] = [kept.stats(), read.stats()];
    let counts = |stats: &burn_pinned::Stats| {
        (stats.batches, stats.items, stats.errors, stats.skipped, stats.replaced, stats.epochs)
    };
    assert_eq!(counts(&kept), counts(&read));
}

#[test]
fn all_samplers_have_the_same_batches() {
    let numbers = Numbers::new(61);
    same_epochs(builder, &numbers);
    same_epochs(|| builder().shuffle(7), &numbers);
    // More batches than are gathered at once.
    same_epochs(|| builder().batch_size(1).shuffle(7), &Numbers::new(200));
    same_epochs(|| builder().shuffle(7).drop_last(true).seed(3).start_epoch(4), &numbers);
    same_epochs(|| builder().order(RandomWithReplacementSampler::new(1).with_size(100)), &numbers);
    same_epochs(|| builder().order(RepeatSampler::new(RandomSampler::new(2), 2).unwrap()), &numbers);
    let weights: Vec<f64> = (0..61).map(f64::from).collect();
    same_epochs(|| builder().order(WeightedSampler::new(weights.clone(), 5).unwrap()), &numbers);
    same_epochs(|| builder().order(SubsetSampler::new(20..50)), &numbers);
    same_epochs(|| bare().order(FixedBatchSampler::new(RandomSampler::new(9), 7).unwrap()), &numbers);
    let lengths: Vec<usize> = (0..61).map(|number| number * 5 % 7).collect();
    same_epochs(|| bare().order(LengthBucketSampler::new(lengths.clone(), 6, 4).unwrap()), &numbers);
}

/// Rows of which only some batches, one batch, or not even that are gathered at once.
#[test]
fn large_rows_have_the_same_batches() {
    for (row_bytes, batch_size) in [(1 << 20, 3), (3 << 20, 2), (9 << 20, 2)] {
        let collate = collate::<usize, _>(
            [Field::new("bytes", DType::U8, [row_bytes])],
            move |&number, row| Ok(row.write("bytes", &vec![number as u8 + 1; row_bytes])?),
            |mut batch| {
                let bytes = batch.take::<2, Int>("bytes")?.into_data();
                Ok(bytes.as_slice::<u8>().map_err(|error| format!("{error:?}"))?.to_vec())
            },
        );
        let builder = PinnedDataLoaderBuilder::new(collate).batch_size(batch_size).shuffle(3).set_device(device());
        let loader = builder.build_kept(Numbers::new(14)).unwrap();
        let mut numbers = Vec::new();
        for batch in loader.iter() {
            for row in batch.unwrap().chunks(row_bytes) {
                assert!(row.iter().all(|byte| *byte == row[0]), "the row of one sample");
                numbers.push(row[0] as usize - 1);
            }
        }
        let order: Vec<_> = RandomSampler::new(3).indices(14, 0).collect();
        assert_eq!(numbers, order, "rows of {row_bytes} bytes");
    }
}

fn bad(len: usize, indices: &[usize]) -> Numbers {
    let mischief = |at: usize| if at.is_multiple_of(2) { Mischief::Error } else { Mischief::Panic };
    indices.iter().fold(Numbers::new(len), |numbers, at| numbers.with(*at, mischief(*at)))
}

#[test]
fn skipped_and_replaced_samples_are_the_same() {
    let whole_batch: Vec<usize> = (8..16).chain([0, 7, 33, 47, 60]).collect();
    let numbers = bad(61, &whole_batch);
    for policy in [
        BadSamples::Skip(Quota::Count(61)),
        BadSamples::Skip(Quota::Count(9)),
        BadSamples::Skip(Quota::Share(0.05)),
        BadSamples::Replace { tries: 30 },
    ] {
        same_epochs(|| builder().bad_samples(policy), &numbers);
        same_epochs(|| builder().bad_samples(policy).shuffle(1), &numbers);
        // Of several processes, one has a batch that is skipped whole.
        let rank = || builder().batch_size(2).bad_samples(policy).distributed(Distributed::new(1, 4).unwrap());
        same_epochs(rank, &numbers);
    }
    // Several batches are read as one. The list of an epoch's errors is the same also if that one has many.
    let odd: Vec<usize> = (1..61).step_by(2).collect();
    same_epochs(|| builder().shuffle(1).bad_samples(BadSamples::Skip(Quota::Count(25))), &bad(61, &odd));
    let all: Vec<usize> = (0..20).collect();
    let none = builder().bad_samples(BadSamples::Skip(Quota::Share(1.0))).build_kept(bad(20, &all)).unwrap_err();
    assert!(
        none.to_string().contains("all 20 samples of the dataset are bad or left out; the first: read of sample 0"),
        "{none}"
    );
}

#[test]
fn either_goes_on_where_the_other_stood() {
    let numbers = bad(61, &[3, 17, 18, 40]);
    let make = || builder().shuffle(11).bad_samples(BadSamples::Skip(Quota::Count(3)));
    for batches in [0, 1, 5, 8, 11] {
        let states = both(make, &numbers).map(|loader| {
            (0..=batches / 8).for_each(|epoch| loader.iter().take(batches - 8 * epoch).for_each(drop));
            loader.state()
        });
        assert_eq!(states[0], states[1]);
        let [kept, read] = both(|| make().resume(states[0].clone()), &numbers);
        for _ in 0..2 {
            same(&*kept, &*read);
        }
    }
    let state: LoaderState = builder().shuffle(12).build(numbers.clone()).unwrap().state();
    let asked = numbers.asked.load(Relaxed);
    let error = make().resume(state).build_kept(numbers.clone()).unwrap_err();
    assert!(error.to_string().contains("another loader"), "{error}");
    assert_eq!(numbers.asked.load(Relaxed), asked, "nothing was read");
}

#[test]
fn shares_slices_and_copies_are_the_same() {
    let numbers = Numbers::new(61);
    let shuffled = || bare().order(FixedBatchSampler::new(RandomSampler::new(2), 4).unwrap());
    let batches = || bare().order(FixedBatchSampler::new(SequentialSampler, 4).unwrap());
    for make in [builder, || builder().shuffle(5), batches, shuffled] {
        for rank in 0..3 {
            same_epochs(|| make().distributed(Distributed::new(rank, 3).unwrap()), &numbers);
        }
    }
    for make in [builder, || builder().shuffle(5), batches] {
        let [kept, read] = both(make, &numbers);
        let [part, of_read] = [&kept, &read].map(|loader| loader.slice(10, 41));
        for _ in 0..2 {
            same(&*part, &*of_read);
        }
        let inner = [&part, &of_read].map(|part| part.slice(3, 20).to_device(&device()));
        same(&*inner[0], &*inner[1]);
    }
    for make in [|| builder().devices(2), || builder().devices(2).shuffle(5)] {
        let cut = both(make, &numbers).map(|loader| {
            let devices = split_dataloader(Arc::clone(&loader) as Arc<dyn DataLoader<_>>, &[device(), device()]);
            (loader, devices)
        });
        for _ in 0..2 {
            cut[0].1.iter().zip(&cut[1].1).for_each(|(kept, read)| assert_eq!(same(&**kept, &**read), 4));
            assert_eq!(cut[0].0.state(), cut[1].0.state());
        }
    }
}

/// Batches have autodiff if the copy's device has it, whatever the device that the rows were read to.
#[test]
fn tensors_follow_the_autodiff_of_their_device() {
    let (plain, autodiff) = (device(), device().autodiff());
    for first in [&plain, &autodiff] {
        let [kept, read] = both(|| builder().set_device(first.clone()), &Numbers::new(20));
        same(&*kept, &*read);
        for second in [&plain, &autodiff] {
            let [kept, read] = [&kept, &read].map(|loader| loader.to_device(second));
            assert!(kept.iter().all(|batch| batch.unwrap().autodiff == second.is_autodiff()));
            assert_eq!(read.iter().count(), 3);
            same(&*kept, &*read);
        }
    }
}

/// All is read once. The dataset is dropped then, and so are the threads and the slots.
#[test]
fn each_sample_is_read_once() {
    let (numbers, limit) = (Numbers::new(61), MemoryLimit::new(1 << 20));
    let loader = builder().shuffle(1).shared_limit(&limit).build_kept(numbers.clone()).unwrap();
    assert_eq!(Arc::strong_count(&numbers.asked), 1);
    for _ in 0..3 {
        assert_eq!(loader.iter().count(), 8);
    }
    assert_eq!(numbers.asked.load(Relaxed), 61);
    assert_eq!(limit.used(), 0);
    let stats = loader.stats();
    assert_eq!((stats.batches, stats.stages.read.count), (24, 61), "{stats}");
    assert_eq!((stats.stages.finish.count >= 24, stats.host_bytes), (true, 0), "{stats}");
}

/// The statistics of what is read have the bytes of what could be kept.
#[test]
fn what_could_be_kept_is_told() {
    let told = |builder: Builder| builder.build(Numbers::new(20)).unwrap().stats().keepable;
    assert_eq!(told(builder()), Some(20 * (4 + 12 + 8 + 3 + 9 * 2 * 8)));
    assert_eq!(told(builder().augment(|number: usize, _: &mut KeyedRng| Ok(number))), None);
    assert_eq!(builder().build_kept(Numbers::new(20)).unwrap().stats().keepable, None);
    assert_eq!(builder().build(Numbers::new(1 << 40)).unwrap().stats().keepable, None);
}

/// A sampler that names what is not there fails its batch, as it does for a dataset that is read.
#[test]
fn wrong_samplers_fail_their_batches() {
    #[derive(Debug)]
    struct Wrong(&'static [usize], usize);
    impl Sampler for Wrong {
        fn len(&self, _: usize) -> usize {
            self.1
        }
        fn indices(&self, _: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
            Box::new(self.0.iter().copied())
        }
    }
    for wrong in [|| Wrong(&[1, 2, 99, 3, 4], 5), || Wrong(&[1, 2, 3], 7)] {
        same_epochs(|| builder().batch_size(2).order(wrong()), &Numbers::new(20));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_loader_is_the_same(
        len in 1usize..80, size in 1usize..20, seed in prop::option::of(0u64..9), drop_last: bool, world in 1usize..4,
        bad_ones in prop::collection::vec(0usize..80, 0..12), replace: bool,
    ) {
        let numbers = bad(len, &bad_ones.into_iter().filter(|at| *at < len).collect::<Vec<_>>());
        let policy = if replace { BadSamples::Replace { tries: 99 } } else { BadSamples::Skip(Quota::Share(0.3)) };
        let make = || {
            let builder = bare().batch_size(size).bad_samples(policy).drop_last(drop_last);
            let builder = builder.distributed(Distributed::new(world - 1, world).unwrap());
            match seed {
                Some(seed) => builder.shuffle(seed),
                None => builder.order(SequentialSampler),
            }
        };
        let (kept, read) = (make().build_kept(numbers.clone()), make().build(numbers.clone()));
        prop_assert!(read.is_ok() || kept.is_err());
        if let (Ok(kept), Ok(read)) = (kept, read) {
            for _ in 0..2 {
                same(&*kept, &*read);
                prop_assert_eq!(kept.state(), read.state());
            }
        }
    }
}
