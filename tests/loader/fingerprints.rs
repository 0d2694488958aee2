//! What stands for a sampler in a state: texts that were saved once must stay valid.

use crate::common::{self, Numbers, sized, unsized_};
use burn_pinned::{
    LoaderState,
    order::{
        BatchSampler, EpochBatches, FixedBatchSampler, LengthBucketSampler, MixPart, MixSampler, RandomSampler,
        RepeatSampler, Sampler, SequentialSampler, SubsetSampler,
    },
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

const LEN: usize = 40;

/// A sampler with a long `Debug` text: the dataset's order.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "it is in the `Debug` text")]
struct Listed(Vec<usize>);

impl Sampler for Listed {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, dataset_len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(0..dataset_len)
    }
}

fn listed() -> Listed {
    Listed((0..200).map(|n| n * 7).collect())
}

/// A sampler whose `Debug` text is another one each time.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "it is in the `Debug` text")]
struct Named(usize);

impl Named {
    fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        Self(MADE.fetch_add(1, Relaxed))
    }
}

impl Sampler for Named {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, dataset_len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(0..dataset_len)
    }

    fn fingerprint(&self) -> String {
        "named".into()
    }
}

impl BatchSampler for Named {
    fn batches(&self, dataset_len: usize, _: usize) -> EpochBatches {
        EpochBatches::new(dataset_len, (0..dataset_len).map(|index| vec![index]))
    }

    fn max_batch_size(&self, _: usize) -> usize {
        1
    }

    fn num_items(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn fingerprint(&self) -> String {
        "named too".into()
    }
}

fn of(sampler: impl Sampler) -> LoaderState {
    sized(8).order(sampler).build(Numbers::new(LEN)).unwrap().state()
}

fn of_batches(sampler: impl BatchSampler) -> LoaderState {
    unsized_().order(sampler).build(Numbers::new(LEN)).unwrap().state()
}

/// Loaders, each with the text of its sampler in a state that was saved before there was `Sampler::fingerprint`.
fn saved() -> Vec<(LoaderState, &'static str)> {
    let shared: Arc<dyn Sampler> = Arc::new(RandomSampler::new(7));
    let buckets = || LengthBucketSampler::new(1..=LEN, 200, 8).unwrap().shuffle(3);
    let mixed =
        MixSampler::new([MixPart::new(30, 1.0, RandomSampler::new(1)), MixPart::new(10, 3.0, Arc::new(listed()))], 42);
    vec![
        (of(SequentialSampler), "SequentialSampler"),
        (of(RandomSampler::new(7)), "RandomSampler { seed: 7, size: None }"),
        (of(shared), "RandomSampler { seed: 7, size: None }"),
        (
            of(listed()),
            "Listed([0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91, 98, 105, 112, 119, 126, 133, \
             140, 147, 154, 161, 168, 175, 182, 189, 196, 203, 210, 217, 224, 231,... (9879f394c6738d6e)",
        ),
        (
            of(Arc::new(listed())),
            "Listed([0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91, 98, 105, 112, 119, 126, 133, \
             140, 147, 154, 161, 168, 175, 182, 189, 196, 203, 210, 217, 224, 231,... (9879f394c6738d6e)",
        ),
        (
            of(SubsetSampler::new(0..20).shuffle(5)),
            "SubsetSampler { seed: Some(5), indices: 20 of hash 023af134995011a5 }",
        ),
        (
            of(RepeatSampler::new(RandomSampler::new(7), 3).unwrap()),
            "RepeatSampler { sampler: RandomSampler { seed: 7, size: None }, times: Some(3) }",
        ),
        (
            of(RepeatSampler::endless(Arc::new(listed()))),
            "RepeatSampler { sampler: Listed([0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91, 98, \
             105, 112, 119, 126, 133, 140, 147, 154, 161, 168, 175, 182, 189, 196,... (4744bbb9ed3c2483)",
        ),
        (
            of(mixed.unwrap().with_size(16)),
            "MixSampler { seed: 42, end: Size(Some(16)), parts: [MixPart { len: 30, weight: 1.0, sampler: \
             RandomSampler { seed: 1, size: None } }, MixPart { len: 10, weight:... (1d9e5f053a997644)",
        ),
        (
            of_batches(FixedBatchSampler::new(RandomSampler::new(7), 4).unwrap().drop_last(true)),
            "FixedBatchSampler { sampler: RandomSampler { seed: 7, size: None }, batch_size: 4, \
             drop_last: true }",
        ),
        (
            of_batches(FixedBatchSampler::new(RepeatSampler::new(listed(), 2).unwrap(), 4).unwrap()),
            "FixedBatchSampler { sampler: RepeatSampler { sampler: Listed([0, 7, 14, 21, 28, 35, 42, 49, \
             56, 63, 70, 77, 84, 91, 98, 105, 112, 119, 126, 133, 140, 147, 154, ... (259b612e0fc363fd)",
        ),
        (
            of_batches(buckets()),
            "LengthBucketSampler { max_tokens: 200, max_batch_size: 8, pool: 800, seed: Some(3), lengths: \
             40 of hash 09f6fbe89e188ccd }",
        ),
        (
            of_batches(Arc::new(buckets())),
            "LengthBucketSampler { max_tokens: 200, max_batch_size: 8, pool: 800, seed: Some(3), lengths: \
             40 of hash 09f6fbe89e188ccd }",
        ),
    ]
}

#[test]
fn a_state_that_was_saved_before_stays_valid() {
    for (state, sampler) in saved() {
        let batches =
            if sampler.contains("BatchSampler {") || sampler.contains("Bucket") { "the sampler's" } else { "of 8" };
        let text = format!(
            r#"{{"version":3,"epoch":0,"position":0,"skipped":0,"seed":0,"dataset_len":40,"batches":"{batches}","sampler":"{sampler}"}}"#
        );
        assert_eq!(serde_json::from_str::<LoaderState>(&text).unwrap(), state);
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
    }
}

/// A fingerprint of one's own replaces the `Debug` text, also within samplers that wrap the sampler.
#[test]
fn a_fingerprint_of_ones_own() {
    let mix = || MixSampler::new([MixPart::new(LEN, 1.0, Named::new())], 42).unwrap();
    let twice = |make: fn() -> LoaderState| [make(), make()];
    let states = [
        (twice(|| of(Named::new())), "named"),
        (twice(|| of(Arc::new(Named::new()) as Arc<dyn Sampler>)), "named"),
        (twice(|| of_batches(Named::new())), "named too"),
        (twice(|| of_batches(Arc::new(Named::new()) as Arc<dyn BatchSampler>)), "named too"),
        (
            twice(|| of(RepeatSampler::new(Named::new(), 2).unwrap())),
            "RepeatSampler { sampler: named, times: Some(2) }",
        ),
        (
            twice(|| of_batches(FixedBatchSampler::new(Arc::new(Named::new()), 4).unwrap())),
            "FixedBatchSampler { sampler: named, batch_size: 4, drop_last: false }",
        ),
    ];
    for ([state, again], text) in states {
        assert!(serde_json::to_string(&state).unwrap().ends_with(&format!("\"sampler\":\"{text}\"}}")), "{state:?}");
        assert_eq!(state, again);
    }
    assert!(of(mix()).eq(&of(mix())) && mix().fingerprint().contains("weight: 1.0, sampler: named }"));
    let state = of(mix());
    assert!(sized(8).order(mix()).resume(state.clone()).build(Numbers::new(LEN)).is_ok());
    assert!(sized(8).order(Arc::new(Named::new()) as Arc<dyn Sampler>).resume(state).build(Numbers::new(LEN)).is_err());
}

/// A sampler of many samples, which counts how often it is shown.
#[derive(Clone)]
struct Counted(Arc<AtomicUsize>);

impl std::fmt::Debug for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fetch_add(1, Relaxed);
        f.write_str("many samples")
    }
}

impl Sampler for Counted {
    fn len(&self, len: usize) -> usize {
        len
    }
    fn indices(&self, len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(0..len)
    }
}

/// A training may save its state after each step.
#[test]
fn a_sampler_is_shown_once_for_all_states() {
    let shown = Arc::<AtomicUsize>::default();
    let loader = common::builder().order(Counted(Arc::clone(&shown))).build(Numbers::new(40)).unwrap();
    let copy = loader.to_device(&common::device());
    let states: Vec<_> = copy.iter().map(|batch| batch.map(|_| loader.state()).unwrap()).collect();
    assert_eq!((states.len(), shown.load(Relaxed)), (5, 1));
    let again = common::builder().order(Counted(Arc::clone(&shown))).resume(states[1].clone()).build(Numbers::new(40));
    let again = again.unwrap();
    assert_eq!((again.state(), shown.load(Relaxed)), (states[1].clone(), 2), "once for each loader");
}
