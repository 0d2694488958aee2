//! A resumed loader gives exactly the batches that were not given before, with any number of workers and of processes.

use crate::common::{self, Mischief, Numbers, Shown, builder, numbers};
use burn::{
    data::dataloader::DataLoader,
    tensor::{DType, Device},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Distributed, Error, Field, KeyedRng, LoaderState, PinnedDataLoader,
    PinnedDataLoaderBuilder, RawBatch, RowMut,
    fault::Quota,
    order::{
        BatchSampler, ClassBalancedSampler, EpochBatches, LengthBucketSampler, MixPart, MixSampler, RandomSampler,
        RandomWithReplacementSampler, RepeatSampler, SequentialSampler, SubsetSampler, WeightedSampler,
        WeightedWithoutReplacementSampler,
    },
};
use rand::RngExt;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

type Builder = PinnedDataLoaderBuilder<usize, Shown>;

/// Changes the number in a way that shows whether its random numbers are the same.
fn jitter(number: usize, rng: &mut KeyedRng) -> usize {
    number * 1000 + rng.random_range(0..1000)
}

fn saved(state: &LoaderState) -> LoaderState {
    let text = serde_json::to_string(state).unwrap();
    assert!(text.len() < 400, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn shown(loader: &PinnedDataLoader<Shown>) -> Vec<Shown> {
    loader.iter().map(Result::unwrap).collect()
}

const LEN: usize = 101;

/// A kind of order, by name.
type Order = (&'static str, fn() -> Builder);

fn orders() -> Vec<Order> {
    fn plain() -> Builder {
        common::sized(7).augment(jitter).seed(3)
    }
    fn batches() -> Builder {
        common::unsized_().augment(jitter).seed(3)
    }
    fn weights() -> impl Iterator<Item = f64> {
        (0..LEN).map(|at| (at % 5) as f64)
    }
    vec![
        ("in order", plain),
        ("shuffled", || plain().shuffle(5)),
        ("the last full", || plain().shuffle(5).drop_last(true)),
        ("with replacement", || plain().order(RandomWithReplacementSampler::new(5))),
        ("weighted", || plain().order(WeightedSampler::new(weights(), 5).unwrap())),
        ("weighted once", || plain().order(WeightedWithoutReplacementSampler::new(weights(), 5).unwrap())),
        ("subset", || plain().order(SubsetSampler::new((0..LEN).step_by(2)).shuffle(5))),
        ("balanced", || plain().order(ClassBalancedSampler::new((0..LEN).map(|at| at % 3), 5).unwrap())),
        ("repeated", || plain().order(RepeatSampler::new(RandomSampler::new(5), 3).unwrap())),
        ("mixed", || {
            let parts = [MixPart::new(50, 1.0, RandomSampler::new(1)), MixPart::new(51, 3.0, SequentialSampler)];
            plain().order(MixSampler::new(parts, 5).unwrap())
        }),
        ("buckets", || {
            let buckets = LengthBucketSampler::new((0..LEN).map(|at| 1 + at * 7 % 30), 120, 9).unwrap().shuffle(5);
            batches().order(buckets)
        }),
    ]
}

#[test]
fn the_rest_of_an_epoch_is_what_was_not_given() {
    for (name, order) in orders() {
        let build = |workers: usize, builder: Builder| builder.num_workers(workers).build(Numbers::new(LEN)).unwrap();
        let whole = build(2, order());
        let epochs: Vec<Vec<Shown>> = (0..3).map(|_| shown(&whole)).collect();
        for stop in [0, 1, epochs[1].len() / 2, epochs[1].len() - 1, epochs[1].len()] {
            let first = build(1, order());
            shown(&first);
            let mut given: Vec<Shown> = first.iter().take(stop).map(Result::unwrap).collect();
            let state = saved(&first.state());
            drop(first);
            let rest = build(5, order().resume(state.clone()));
            assert_eq!(rest.state(), state, "{name}");
            if stop > 0 && stop < epochs[1].len() {
                assert_eq!(state.epoch(), 1, "{name}");
                let mut iter = rest.iter();
                let before = iter.progress().items_processed;
                given.extend(iter.by_ref().map(Result::unwrap));
                assert!(before > 0 && iter.progress().items_processed >= iter.progress().items_total - 30, "{name}");
            } else if stop == 0 {
                given = shown(&rest);
            }
            assert_eq!(given, epochs[1], "{name}, stopped after {stop}");
            assert_eq!(shown(&rest), epochs[2], "{name}: the epoch after it is whole");
        }
    }
}

#[test]
fn a_state_may_be_taken_in_a_resumed_epoch() {
    let build = |builder: Builder| builder.shuffle(1).build(Numbers::new(100)).unwrap();
    let whole = numbers(&shown(&build(builder())));
    let (mut seen, mut state) = (Vec::new(), build(builder()).state());
    while state.epoch() == 0 {
        let loader = build(builder().resume(saved(&state)));
        seen.extend(loader.iter().take(2).flat_map(|shown| shown.unwrap().numbers));
        state = loader.state();
    }
    assert_eq!(seen, whole);
}

fn rank(builder: Builder, rank: usize, world: usize, len: usize) -> Arc<PinnedDataLoader<Shown>> {
    builder.distributed(Distributed::new(rank, world).unwrap()).build(Numbers::new(len)).unwrap()
}

#[test]
fn ranks_share_an_epoch_of_any_sampler() {
    for (name, order) in orders() {
        for world in [2, 3, 7] {
            let all = shown(&order().build(Numbers::new(LEN)).unwrap());
            let loaders: Vec<_> = (0..world).map(|at| rank(order(), at, world, LEN)).collect();
            let shares: Vec<Vec<Shown>> = loaders.iter().map(|loader| shown(loader)).collect();
            let batches: Vec<usize> = shares.iter().map(Vec::len).collect();
            assert!(batches.iter().all(|count| *count == batches[0]), "{name}: ranks have the same number of batches");
            assert!(loaders.iter().all(|loader| loader.num_batches() == batches[0]), "{name}");
            let mut expected = numbers(&all);
            let mut given: Vec<i64> = shares.iter().flat_map(|share| numbers(share)).collect();
            given.sort_unstable();
            expected.sort_unstable();
            if name != "the last full" {
                assert!(given.len() >= expected.len(), "{name}");
                let mut rest = given.clone();
                for number in &expected {
                    // A sample that an order repeats is augmented by its place in the order, and so is padding. So
                    // compare the numbers without the augmentation.
                    let at = rest.iter().position(|other| other / 1000 == number / 1000);
                    rest.remove(at.unwrap_or_else(|| panic!("{name}: {number} is in no share of {world}")));
                }
                assert!(rest.len() < world * 9, "{name}: {} given again", rest.len());
            }
        }
    }
}

#[test]
fn a_world_of_another_size_goes_on() {
    let len = 400;
    let order = || builder().shuffle(9).augment(jitter).batch_size(5);
    let mut whole = numbers(&shown(&order().build(Numbers::new(len)).unwrap()));
    whole.sort_unstable();
    for (then, now) in [(4, 3), (1, 4), (3, 1), (2, 2)] {
        let mut given = Vec::new();
        let mut states = Vec::new();
        for at in 0..then {
            let loader = rank(order(), at, then, len);
            given.extend(loader.iter().take(6).flat_map(|shown| shown.unwrap().numbers));
            states.push(saved(&loader.state()));
        }
        assert!(states.iter().all(|state| *state == states[0] && state.position() == 6 * 5 * then));
        let dropped = |at| Distributed::new(at, now).unwrap().drop_uneven();
        let left = len - states[0].position();
        for at in 0..now {
            let loader = order().resume(states[0].clone()).distributed(dropped(at)).build(Numbers::new(len)).unwrap();
            given.extend(loader.iter().flat_map(|shown| shown.unwrap().numbers));
        }
        given.sort_unstable();
        let missing = whole.iter().filter(|number| given.binary_search(number).is_err()).count();
        assert_eq!((given.len(), missing), (len - left % now, left % now), "{then} -> {now}: nothing twice");
    }
}

/// Batches of a resumed epoch keep their numbers, for `finish` and in errors.
#[test]
fn a_resumed_epoch_counts_on() {
    struct Number;
    impl Collate<usize> for Number {
        type Batch = usize;
        fn layout(&self) -> Vec<Field> {
            vec![Field::new("number", DType::I64, [])]
        }
        fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
            Ok(row.put("number", number as i64)?)
        }
        fn finish(&self, batch: RawBatch) -> Result<usize, BoxError> {
            Ok(batch.number())
        }
    }
    let builder = || PinnedDataLoaderBuilder::new(Number).batch_size(8).num_workers(2).set_device(Device::flex());
    let data = || Numbers::new(80).with(60, Mischief::Error);
    let first = builder().build(data()).unwrap();
    assert_eq!(first.iter().take(4).map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let second = builder().resume(saved(&first.state())).build(data()).unwrap();
    let rest: Vec<_> =
        second.iter().map(|batch| batch.map_err(|error| Error::of(&error).unwrap().place().unwrap().batch)).collect();
    assert_eq!(rest, [Ok(4), Ok(5), Ok(6), Err(7), Ok(8), Ok(9)]);
    assert_eq!(second.iter().filter_map(Result::ok).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
}

/// A quota counts for the whole epoch, even if the epoch is resumed.
#[test]
fn a_quota_goes_on_where_it_was() {
    let data = || [3, 4, 50].into_iter().fold(Numbers::new(80), |data, at| data.with(at, Mischief::Error));
    let builder = || builder().bad_samples(BadSamples::Skip(Quota::Count(2)));
    let first = builder().build(data()).unwrap();
    first.iter().take(2).for_each(|batch| drop(batch.unwrap()));
    let second = builder().resume(saved(&first.state())).build(data()).unwrap();
    let errors: Vec<_> = second.iter().filter_map(Result::err).collect();
    assert!(
        matches!(errors.iter().map(Error::of).collect::<Vec<_>>()[..], [Some(Error::QuotaExceeded { skipped: 3, .. })]),
        "{errors:?}"
    );
}

/// If processes share an epoch, each gives the same number of batches, even if all samples of a batch are skipped.
#[test]
fn a_batch_of_bad_samples_keeps_its_place_among_ranks() {
    for world in [1, 2] {
        let data =
            (0..16).filter(|at| at % world == 0).fold(Numbers::new(64), |data, at| data.with(at, Mischief::Error));
        let skip = BadSamples::Skip(Quota::Count(16));
        let outcomes: Vec<_> = {
            let share = Distributed::new(0, world).unwrap();
            builder().bad_samples(skip).distributed(share).build(data).unwrap().iter().collect()
        };
        if world == 1 {
            assert!(outcomes.len() == 6 && outcomes.iter().all(Result::is_ok), "empty batches are left out");
        } else {
            assert_eq!(outcomes.len(), 4);
            let error = outcomes[0].as_ref().map(|_| ()).unwrap_err();
            assert!(matches!(Error::of(error), Some(Error::AllSkipped { skipped: 8, .. })), "{error}");
        }
    }
}

/// Burn's learners cut a loader into slices of samples, one for each device.
#[test]
fn slices_of_a_batch_sampler_are_of_samples() {
    let lengths = (0..300).map(|at| 1 + at % 7);
    let sampler = LengthBucketSampler::new(lengths, 20, 4).unwrap().shuffle(1);
    let loader = common::unsized_().order(sampler).build(Numbers::new(300)).unwrap();
    let whole = numbers(&shown(&loader));
    let parts: Vec<_> = [(0, 100), (100, 200), (200, 300)].map(|(start, end)| loader.slice(start, end)).into();
    let counts: Vec<usize> = parts.iter().map(|part| part.num_items()).collect();
    assert_eq!(counts, [100; 3]);
    let delivered: Vec<Vec<i64>> = parts.iter().map(|part| numbers(&common::epoch(&**part))).collect();
    assert!(delivered.iter().all(|part| part.len() > 60), "{delivered:?}");
    let mut all: Vec<i64> = delivered.concat();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..300) && whole.len() == 300);
}

#[test]
fn a_state_of_another_loader_is_refused_by_name() {
    let state = builder().shuffle(1).build(Numbers::new(100)).unwrap().state();
    let cases = [
        (builder().shuffle(1), 99, "samples of the dataset: then 100, now 99"),
        (builder().shuffle(2), 100, "sampler: then RandomSampler { seed: 1"),
        (builder().shuffle(1).seed(7), 100, "seed: then 1, now 7"),
        (builder().shuffle(1).batch_size(9), 100, "batches: then of 8, now of 9"),
        (builder().shuffle(1).drop_last(true), 100, "now of 8, the last full"),
    ];
    for (builder, len, part) in cases {
        let error = builder.resume(saved(&state)).build(Numbers::new(len)).unwrap_err();
        assert!(matches!(error, Error::Config { option: "resume", .. }));
        assert!(error.to_string().contains(part), "{error}");
    }
    let both = builder().shuffle(1).start_epoch(2).resume(state.clone()).build(Numbers::new(100)).unwrap_err();
    assert!(both.to_string().contains("the state knows the epoch"), "{both}");
    assert!(builder().shuffle(1).num_workers(7).prefetch(3).resume(state).build(Numbers::new(100)).is_ok());
}

#[test]
fn start_epoch_begins_at_the_order_of_that_epoch() {
    let build = |builder: Builder| builder.shuffle(1).augment(jitter).build(Numbers::new(50)).unwrap();
    let whole = build(builder());
    let epochs: Vec<_> = (0..4).map(|_| shown(&whole)).collect();
    let late = build(builder().start_epoch(2));
    assert_eq!([shown(&late), shown(&late)], epochs[2..]);
    assert_ne!(epochs[2], epochs[3]);
}

#[test]
fn a_resumed_epoch_cannot_be_sliced_and_says_so() {
    let loader = builder().build(Numbers::new(100)).unwrap();
    loader.iter().next().unwrap().unwrap();
    let resumed = builder().resume(loader.state()).build(Numbers::new(100)).unwrap();
    let slice = resumed.slice(0, 50);
    let error = slice.iter().next().unwrap().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("cannot be cut into slices"), "{error}");
    assert_eq!(
        slice.iter().map(Result::unwrap).map(|shown| shown.numbers.len()).sum::<usize>(),
        50,
        "the next epoch can"
    );
}

/// Promises three batches of at most two samples, and breaks both promises.
#[derive(Debug)]
struct Large;

impl BatchSampler for Large {
    fn batches(&self, _: usize, _: usize) -> EpochBatches {
        EpochBatches::new(3, [vec![0, 1], vec![0, 1, 2], vec![]].into_iter())
    }
    fn max_batch_size(&self, _: usize) -> usize {
        2
    }
    fn num_items(&self, _: usize) -> usize {
        5
    }
}

#[test]
fn a_batch_sampler_is_held_to_its_word() {
    let loader = common::unsized_().order(Large).build(Numbers::new(10)).unwrap();
    let outcomes = common::outcomes(&*loader);
    assert_eq!(outcomes[0], Ok(vec![0, 1]));
    assert!(outcomes[1].as_ref().unwrap_err().contains("gave 3 samples, but its `max_batch_size` promised at most 2"));
    assert!(outcomes[2].as_ref().unwrap_err().contains("ended after 2 of the 3"), "{:?}", outcomes[2]);
    for wrong in [common::unsized_().batch_size(3), common::unsized_().shuffle(1), common::unsized_().drop_last(true)] {
        let error = wrong.order(Large).build(Numbers::new(10)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("has a batch sampler, which decides it") || error.contains("`shuffle` is set too"),
            "{error}"
        );
    }
}

/// The state also goes on in an endless epoch.
#[test]
fn an_endless_epoch_is_resumed() {
    let build = |builder: Builder| {
        let sampler = RepeatSampler::endless(RandomSampler::new(4));
        builder.order(sampler).augment(jitter).build(Numbers::new(20)).unwrap()
    };
    let loader = build(builder());
    let whole: Vec<Shown> = loader.iter().take(30).map(Result::unwrap).collect();
    let first = build(builder());
    first.iter().take(11).for_each(|shown| drop(shown.unwrap()));
    let rest = build(builder().num_workers(5).resume(saved(&first.state())));
    assert_eq!(rest.iter().take(19).map(Result::unwrap).collect::<Vec<_>>(), whole[11..]);
    let pass = |range: std::ops::Range<usize>| numbers(&whole)[range].to_vec();
    assert_ne!(pass(0..20), pass(20..40), "another order and other random numbers in each pass");
}

fn victim() -> Builder {
    builder().shuffle(77).augment(jitter)
}

/// The process that is killed. It prints each batch and the state after it.
#[test]
#[ignore = "run by the test below"]
fn child() {
    let loader = victim().num_workers(3).build(Numbers::new(400)).unwrap();
    let mut out = std::io::stdout().lock();
    for batch in loader.iter() {
        let line = serde_json::to_string(&(batch.unwrap().numbers, loader.state())).unwrap();
        writeln!(out, "\nbatch {line}").unwrap();
        out.flush().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_process_and_the_next_make_one_epoch() {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "resume::child", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut given, mut last) = (Vec::new(), None);
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        let Some(batch) = line.unwrap().strip_prefix("batch ").map(ToString::to_string) else { continue };
        let (numbers, state): (Vec<i64>, LoaderState) = serde_json::from_str(&batch).unwrap();
        given.extend(numbers);
        last = Some(state);
        if given.len() >= 160 {
            break;
        }
    }
    process.kill().unwrap(); // SIGKILL
    process.wait().unwrap();
    let resumed = victim().num_workers(1).resume(last.unwrap()).build(Numbers::new(400)).unwrap();
    given.extend(numbers(&shown(&resumed)));
    assert_eq!(given, numbers(&shown(&victim().build(Numbers::new(400)).unwrap())));
}

/// Burn applies the last gradients of an epoch when its progress is complete.
#[test]
fn a_resumed_epoch_is_complete_at_its_last_batch() {
    for (name, order) in orders() {
        for (then, now) in [(1, 1), (1, 2), (3, 2), (2, 1)] {
            for steps in [0, 1, 2] {
                let first = rank(order(), 0, then, LEN);
                first.iter().take(steps).for_each(|batch| drop(batch.unwrap()));
                for at in 0..now {
                    let rest = rank(order().resume(saved(&first.state())), at, now, LEN);
                    let mut iter = rest.iter();
                    let mut completed = Vec::new();
                    while iter.next().is_some() {
                        let progress = iter.progress();
                        assert!(progress.items_processed <= progress.items_total);
                        completed.push(progress.is_completed());
                    }
                    let last = completed.pop().unwrap();
                    assert!(last && !completed.contains(&true), "{name}, {then} to {now} after {steps}: {completed:?}");
                }
            }
        }
    }
}
