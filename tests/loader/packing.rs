//! Packed documents through the loader: no token is lost or comes twice, wherever an epoch is interrupted.

use crate::common::device;
use burn::{
    data::dataset::{Dataset, DatasetError},
    prelude::*,
    tensor::DType,
};
use burn_pinned::{
    BadSamples, Distributed, Error, LoaderState, PinnedDataLoader, PinnedDataLoaderBuilder,
    data::TokenRow,
    fault::Quota,
    order::{
        BatchSampler, BlockShuffle, Blocks, MixPart, MixSampler, PackingSampler, RandomSampler, Sampler,
        SequentialSampler,
    },
    text::{PackTokens, PackedBatch},
};
use std::{io, path::Path, sync::Arc};

const DOCUMENTS: usize = 3000;
const ROW: usize = 96;
const ROWS: usize = 4;

fn length(document: usize) -> usize {
    1 + document * 7919 % 61 + document * 31 % 30
}

/// Documents whose tokens are found nowhere else.
#[derive(Clone)]
struct Documents {
    bad: Option<usize>,
}

impl Dataset<TokenRow> for Documents {
    fn get(&self, document: usize) -> Result<TokenRow, DatasetError> {
        if self.bad == Some(document) {
            return Err(DatasetError::new(io::Error::other("a bad document")));
        }
        let first = document as u32 * 100;
        Ok(TokenRow::from((first..first + length(document) as u32).collect::<Vec<_>>()))
    }

    fn len(&self) -> usize {
        DOCUMENTS
    }
}

type Loader = Arc<PinnedDataLoader<PackedBatch>>;

/// An order, by name.
type Order = (&'static str, fn() -> Arc<dyn Sampler>);

fn orders() -> [Order; 4] {
    [
        ("in order", || Arc::new(SequentialSampler)),
        ("shuffled", || Arc::new(RandomSampler::new(5))),
        ("in blocks", || Arc::new(BlockShuffle::new(Blocks::new((0..30).map(|_| (100, 0))), 5))),
        ("mixed", || {
            let parts =
                [MixPart::new(1000, 2.0, RandomSampler::new(1)), MixPart::new(2000, 1.0, RandomSampler::new(2))];
            Arc::new(MixSampler::new(parts, 5).unwrap())
        }),
    ]
}

fn sampler(order: Arc<dyn Sampler>, plans: &Path) -> PackingSampler<Arc<dyn Sampler>> {
    let lengths: Vec<u32> = (0..DOCUMENTS).map(|document| length(document) as u32).collect();
    PackingSampler::new(order, lengths, ROW, ROWS).unwrap().window(100).save_plans_in(plans)
}

fn builder(sampler: impl BatchSampler, workers: usize) -> PinnedDataLoaderBuilder<TokenRow, PackedBatch> {
    let builder = PinnedDataLoaderBuilder::from_batcher(PackTokens::new(ROW).unwrap());
    builder.order(sampler).num_workers(workers).set_device(device()).host_device(Device::flex())
}

fn saved(state: &LoaderState) -> LoaderState {
    serde_json::from_str(&serde_json::to_string(state).unwrap()).unwrap()
}

/// The documents of a batch, by their first tokens. Each must be whole.
fn documents(batch: &PackedBatch) -> Vec<usize> {
    let numbers = |tensor: &Tensor<2, Int>| tensor.to_data().iter::<i64>().collect::<Vec<_>>();
    let [tokens, positions, of] = [&batch.tokens, &batch.positions, &batch.documents].map(numbers);
    let starts: Vec<usize> = (0..tokens.len()).filter(|at| of[*at] > 0 && positions[*at] == 0).collect();
    let mut found = Vec::new();
    for &start in &starts {
        let document = tokens[start] as usize / 100;
        let end = (start + 1..tokens.len()).find(|at| positions[*at] == 0).unwrap_or(tokens.len());
        assert!((start..end).all(|at| tokens[at] as usize == document * 100 + at - start));
        assert_eq!(end - start, length(document));
        found.push(document);
    }
    found
}

fn epoch(loader: &Loader) -> Vec<Vec<usize>> {
    loader.iter().map(|batch| documents(&batch.unwrap())).collect()
}

fn sorted(batches: &[Vec<usize>]) -> Vec<usize> {
    let mut all = batches.concat();
    all.sort_unstable();
    all
}

#[test]
fn a_batch_has_the_rows_that_were_planned() {
    let folder = tempfile::tempdir().unwrap();
    for (name, order) in orders() {
        let loader = builder(sampler(order(), folder.path()), 3).build(Documents { bad: None }).unwrap();
        for _ in 0..2 {
            let batches: Vec<PackedBatch> = loader.iter().map(Result::unwrap).collect();
            let (last, whole) = batches.split_last().unwrap();
            assert!(whole.iter().all(|batch| batch.tokens.dims() == [ROWS, ROW]), "{name}");
            assert!(last.tokens.dims()[0] <= ROWS);
            let all: Vec<Vec<usize>> = batches.iter().map(documents).collect();
            let mut wanted: Vec<usize> = order().indices(DOCUMENTS, loader.state().epoch() - 1).collect();
            wanted.sort_unstable();
            assert_eq!(sorted(&all), wanted, "{name}: each document of the order");
        }
    }
}

#[test]
fn an_epoch_that_is_killed_at_ten_places_loses_no_token() {
    for (name, order) in orders() {
        let folder = tempfile::tempdir().unwrap();
        let build = |workers, state: Option<&LoaderState>, share: Distributed| {
            let builder = builder(sampler(order(), folder.path()), workers).distributed(share);
            let builder = match state {
                Some(state) => builder.resume(saved(state)),
                None => builder,
            };
            builder.build(Documents { bad: None }).unwrap()
        };
        let alone = Distributed::new(0, 1).unwrap();
        let whole = epoch(&build(2, None, alone));
        let (mut given, mut state) = (Vec::new(), None);
        for kill in 0..10 {
            // Each time another number of processes with other workers. All stop after as many batches.
            let (world, steps) = (1 + kill % 3, 1 + kill * 7 % 5);
            let mut ranks = Vec::new();
            for rank in 0..world {
                let share = Distributed::new(rank, world).unwrap();
                let loader = build(1 + (kill + rank) % 4, state.as_ref(), share);
                ranks.push(loader.iter().take(steps).map(|batch| documents(&batch.unwrap())).collect::<Vec<_>>());
                if rank + 1 == world {
                    state = Some(saved(&loader.state()));
                }
            }
            given.extend((0..steps).flat_map(|step| ranks.iter().map(move |batches| batches[step].clone())));
            // A plan that was lost with the machine is made again.
            if kill == 5 {
                std::fs::read_dir(folder.path())
                    .unwrap()
                    .for_each(|file| std::fs::remove_file(file.unwrap().path()).unwrap());
            }
        }
        assert!(given.len() < whole.len(), "{name}: the epoch is not over");
        given.extend(epoch(&build(3, state.as_ref(), alone)));
        assert_eq!(given, whole, "{name}");
    }
}

#[test]
fn a_state_of_other_lengths_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = builder(sampler(Arc::new(SequentialSampler), folder.path()), 1).build(Documents { bad: None }).unwrap();
    drop(first.iter().next().unwrap().unwrap());
    let mut lengths: Vec<u32> = (0..DOCUMENTS).map(|document| length(document) as u32).collect();
    lengths[9] += 1;
    let other = PackingSampler::new(SequentialSampler, lengths, ROW, ROWS).unwrap().window(100);
    let error = builder(other, 1).resume(first.state()).build(Documents { bad: None }).unwrap_err();
    assert!(matches!(error, Error::Config { option: "resume", .. }), "{error}");
}

#[test]
fn what_the_sampler_refuses_is_an_error_of_build() {
    let built = |lengths: Vec<u32>| {
        let sampler = PackingSampler::new(SequentialSampler, lengths, ROW, ROWS).unwrap();
        builder(sampler, 1).build(Documents { bad: None }).map(|_| ()).unwrap_err().to_string()
    };
    assert!(built(vec![1; 7]).contains("7 lengths for a dataset of 3000"));
    assert!(built(vec![97; DOCUMENTS]).contains("document 0 has 97 tokens"));
    assert!(built(vec![0; DOCUMENTS]).contains("no document has tokens"), "{}", built(vec![0; DOCUMENTS]));
}

/// Lengths of another tokeniser: the batcher finds documents that are longer than they should be.
#[test]
fn a_document_that_is_too_long_names_its_batch() {
    let sampler = PackingSampler::new(SequentialSampler, vec![1; DOCUMENTS], 20, ROWS).unwrap();
    let pack = PinnedDataLoaderBuilder::from_batcher(PackTokens::new(20).unwrap()).order(sampler);
    let loader = pack.set_device(device()).host_device(Device::flex()).build(Documents { bad: None }).unwrap();
    let error = loader.iter().next().unwrap().map(|_| ()).unwrap_err();
    let error = Error::of(&error).unwrap();
    assert!(matches!(error, Error::Panicked { place, .. } if place.batch == 0), "{error}");
    assert!(error.to_string().contains("but a row has 20"), "{error}");
}

#[test]
fn a_bad_document_leaves_the_others_of_its_batch() {
    let folder = tempfile::tempdir().unwrap();
    let builder = builder(sampler(Arc::new(RandomSampler::new(5)), folder.path()), 2);
    let builder = builder.bad_samples(BadSamples::Skip(Quota::Count(1)));
    let loader = builder.build(Documents { bad: Some(77) }).unwrap();
    let wanted: Vec<usize> = (0..DOCUMENTS).filter(|document| *document != 77).collect();
    assert_eq!(sorted(&epoch(&loader)), wanted);
}

/// Tokens cross the link in the type that the vocabulary asks for.
#[test]
fn tokens_of_a_small_vocabulary_are_of_two_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (vocabulary, dtype) in [(1 << 16, DType::U16), (DOCUMENTS * 100, DType::U32)] {
        let pack = PackTokens::new(ROW).unwrap().vocabulary(vocabulary).cumulative_lengths();
        let order = sampler(Arc::new(SequentialSampler), folder.path());
        let builder = PinnedDataLoaderBuilder::from_batcher(pack).order(order);
        let loader = builder.set_device(device()).host_device(Device::flex()).build(Documents { bad: None }).unwrap();
        let batch = loader.iter().next().unwrap().unwrap();
        let ints = [&batch.tokens, &batch.targets, &batch.positions, &batch.documents].map(|tensor| tensor.dtype());
        assert_eq!(ints, [dtype; 4]);
        assert_eq!(batch.cumulative_lengths.as_ref().unwrap().dtype(), DType::I32);
        // Each token but the last of a document has a target.
        let counted = batch.loss_mask.to_data().iter::<bool>().filter(|counts| *counts).count();
        assert_eq!(counted, documents(&batch).into_iter().map(|document| length(document) - 1).sum::<usize>());
    }
}
