//! Rows of text, in JSON lines or Parquet, as packed rows of tokens. The vocabulary is made of the text itself.

use super::{
    Args,
    words::{END, Words},
};
use burn::{data::dataset::Dataset, prelude::*};
use burn_pinned::{
    BoxError, PinnedDataLoader, PinnedDataLoaderBuilder,
    data::{Rows, TokenRow, Tokenized, tokenizer},
    order::{PackingSampler, RandomSampler, Sampler, SequentialSampler, TooLong},
    text::{PackTokens, PackedBatch},
};
use std::{
    hash::{DefaultHasher, Hasher},
    sync::Arc,
};

/// Words of the vocabulary, besides single bytes.
const WORDS: usize = 4000;
/// The rows that the vocabulary is made of.
const ROWS_FOR_WORDS: usize = 5000;

/// The loaders of what is trained on and of what is held back, and the words.
pub(crate) struct Documents {
    pub(crate) train: Arc<PinnedDataLoader<PackedBatch>>,
    pub(crate) valid: Arc<PinnedDataLoader<PackedBatch>>,
    pub(crate) words: Arc<Words>,
}

/// Whether files have rows of text, by their name.
pub(crate) fn are_rows(files: &str) -> bool {
    [".jsonl", ".parquet"].iter().any(|ending| files.ends_with(ending))
}

pub(crate) fn open(args: &Args, files: &str, device: &Device) -> Result<Documents, BoxError> {
    let rows = rows(files, &args.column)?;
    let (train, valid) = rows.split(0.05, args.seed)?;
    let first = (0..train.len().min(ROWS_FOR_WORDS)).map(|row| Ok(train.get(row)?.0));
    let words = Arc::new(Words::of(&first.collect::<Result<Vec<String>, BoxError>>()?, WORDS));
    let train = tokens(train, &words);
    println!("{} documents to train on, {} held back", train.len(), valid.len());
    let valid = loader(args, tokens(valid, &words), SequentialSampler, words.len(), &device.clone().inner())?;
    let train = loader(args, train, RandomSampler::new(args.seed), words.len(), device)?;
    Ok(Documents { train, valid, words })
}

fn rows(files: &str, column: &str) -> Result<Rows<(String,)>, BoxError> {
    if files.ends_with(".jsonl") {
        return Ok(Rows::jsonl(files).columns([column]).open()?);
    }
    #[cfg(feature = "parquet")]
    return Ok(Rows::parquet(files).columns([column]).open()?);
    #[cfg(not(feature = "parquet"))]
    Err("Parquet needs `--features parquet`".into())
}

/// The rows as tokens. Lengths are saved for the name, so it tells one vocabulary from another.
fn tokens(rows: Rows<(String,)>, words: &Arc<Words>) -> Tokenized {
    let (words, mut hasher) = (Arc::clone(words), DefaultHasher::new());
    words.hash(&mut hasher);
    rows.tokenized(tokenizer(
        &format!("words {:x}", hasher.finish()),
        move |(text,): &(String,), out: &mut TokenRow| {
            out.extend(words.encode(text).into_iter().chain([END]).map(u32::from));
            Ok(())
        },
    ))
}

fn loader(
    args: &Args,
    tokens: Tokenized,
    order: impl Sampler,
    vocabulary: usize,
    device: &Device,
) -> Result<Arc<PinnedDataLoader<PackedBatch>>, BoxError> {
    let order = PackingSampler::new(order, tokens.lengths()?, args.context, args.batch_size)?.too_long(TooLong::Cut);
    let pack = PackTokens::new(args.context)?.vocabulary(vocabulary).too_long(TooLong::Cut);
    let builder = PinnedDataLoaderBuilder::from_batcher(pack).order(order);
    Ok(builder.set_device(device.clone()).build(tokens)?)
}
