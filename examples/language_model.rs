//! A small transformer learns to write, from files of tokens or rows of text.
//!
//!     cargo run --release --example language_model
//!     cargo run --release --example language_model -- --data 'tokens/*.bin'  # nanoGPT, llm.c, Megatron
//!     cargo run --release --example language_model -- --data novel.txt  # the bytes of a text
//!     cargo run --release --example language_model -- --data 'docs/*.jsonl' --column text
//!     cargo run --release --features parquet --example language_model -- --data 'docs/*.parquet' --column text
//!     cargo run --release --features cuda --example language_model  # on an NVIDIA GPU
//!
//! Without `--data` it learns from the pages and comments of this repository, which it turns into a file of tokens. The
//! file is mapped into memory. Each window of tokens is copied once, into the batch, and crosses the link as it is in the
//! file.
//!
//! Of JSON lines and Parquet, the text of each row is a document. Its tokens are made on the workers, with a vocabulary of the text's
//! own words, and documents are packed into full rows.

#[path = "language_model/collate.rs"]
mod collate;
#[path = "language_model/corpus.rs"]
mod corpus;
#[path = "language_model/documents.rs"]
mod documents;
#[path = "language_model/model.rs"]
mod model;
#[path = "language_model/train.rs"]
mod train;
#[path = "language_model/words.rs"]
mod words;

use burn::{
    data::dataset::{Dataset, transform::PartialDataset},
    prelude::*,
};
use burn_pinned::{
    BoxError, PinnedDataLoader, PinnedDataLoaderBuilder,
    data::{TokenType, TokenWindow, Tokens},
};
use clap::Parser;
use collate::{NextToken, NextTokens};
use documents::Documents;
use model::{Transformer, TransformerConfig};
use std::sync::Arc;
use words::Words;

/// How bold the model is when it writes: with less than 1 it prefers what it is sure of.
const TEMPERATURE: f64 = 0.7;

/// Trains a small transformer on files of tokens.
#[derive(Parser)]
struct Args {
    /// Files of tokens, such as 'tokens/*.bin', a .txt file of which each byte is a token, or rows of text, such as 'docs/*.jsonl' and 'docs/*.parquet'
    #[arg(long)]
    data: Option<String>,
    /// The column of rows that has the text
    #[arg(long, default_value = "text")]
    column: String,
    #[arg(long, default_value_t = 400)]
    steps: usize,
    #[arg(long, default_value_t = 8)]
    batch_size: usize,
    /// Tokens that the model sees at once
    #[arg(long, default_value_t = 128)]
    context: usize,
    #[arg(long, default_value_t = 2e-3)]
    learning_rate: f64,
    /// What a text begins with that is written at the end, where the vocabulary is of words
    #[arg(long, default_value = "A batch")]
    start: String,
    /// Tokens to write at the end
    #[arg(long, default_value_t = 150)]
    write: usize,
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

impl Args {
    /// Opens the tokens, and returns the words of the repository's own.
    fn open(&self) -> Result<(Tokens, Option<Words>), BoxError> {
        match &self.data {
            Some(text) if text.ends_with(".txt") => Ok((Tokens::open_raw(text.as_str(), TokenType::U8)?, None)),
            Some(files) => Ok((Tokens::open(files.as_str())?, None)),
            None => {
                let folder = tempfile::tempdir()?;
                let file = folder.path().join("prose.bin");
                let words = corpus::write(&file)?;
                // On Unix a mapped file stays when its folder is removed, as it is here.
                Ok((Tokens::open(file)?, Some(words)))
            }
        }
    }

    fn loader(
        &self,
        windows: impl Dataset<TokenWindow> + 'static,
        kind: TokenType,
        device: &Device,
    ) -> Result<Arc<PinnedDataLoader<NextTokens>>, BoxError> {
        let collate = NextToken { kind, length: self.context };
        let builder = PinnedDataLoaderBuilder::new(collate).batch_size(self.batch_size).shuffle(self.seed);
        Ok(builder.set_device(device.clone()).build(windows)?)
    }
}

/// What the model writes: words, the bytes of a text, or numbers.
fn written(
    args: &Args,
    model: &Transformer,
    tokens: Option<&Tokens>,
    words: Option<&Words>,
    device: &Device,
) -> Result<String, BoxError> {
    let start = match (words, tokens) {
        (Some(words), _) => words.encode(&args.start).into_iter().map(i64::from).collect(),
        (None, Some(tokens)) => tokens.windows(1, 1).get(0)?.iter().collect::<Vec<_>>(),
        (None, None) => return Err("there are no tokens to begin with".into()),
    };
    let written = model.generate(&start, args.write, TEMPERATURE, device);
    Ok(match words {
        Some(words) => {
            let tokens = written.into_iter().map(u16::try_from).collect::<Result<Vec<_>, _>>()?;
            words.decode(&tokens)
        }
        None if tokens.is_some_and(|tokens| tokens.kind() == TokenType::U8) => {
            let bytes = written.into_iter().map(u8::try_from).collect::<Result<Vec<_>, _>>()?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        None => format!("{written:?}"),
    })
}

/// Trains a new model, and tells how it does.
fn run<B: Into<NextTokens> + Send + 'static>(
    args: &Args,
    vocabulary: usize,
    train: &PinnedDataLoader<B>,
    valid: &PinnedDataLoader<B>,
    device: &Device,
) -> Result<Transformer, BoxError> {
    let model = TransformerConfig::new(vocabulary, args.context).init(device);
    println!("a transformer of {} parameters\n", model.num_params());
    let model = train::train(args, model, train)?.valid();
    println!("\nloss of what was held back: {:.3}", train::evaluate(&model, valid)?);
    println!("the loader: {}\n", train.stats().verdict());
    Ok(model)
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let args = Args::parse();
    let device = Device::default().autodiff();
    device.seed(args.seed);
    if let Some(files) = args.data.as_deref().filter(|files| documents::are_rows(files)) {
        let Documents { train, valid, words } = documents::open(&args, files, &device)?;
        let model = run(&args, words.len(), &train, &valid, &device)?;
        println!("{}", written(&args, &model, None, Some(&words), &device.inner())?);
        return Ok(());
    }
    let (tokens, words) = args.open()?;
    let windows = tokens.windows(args.context + 1, args.context);
    // The last windows are held back. They overlap with the others by one token at most.
    let held_back = (windows.len() / 20).clamp(1, 64);
    let trained = windows.len().saturating_sub(held_back);
    if trained < args.batch_size {
        return Err(format!("{} windows of {} tokens are too few", windows.len(), args.context + 1).into());
    }
    // Without a list of words, the largest token tells how many there are. All tokens are read for it.
    let vocabulary = match &words {
        Some(words) => words.len(),
        None => usize::try_from(tokens.largest().unwrap_or(0))? + 1,
    };
    println!("{} tokens of {}, of a vocabulary of {vocabulary}, in:", tokens.len(), tokens.kind());
    for (path, tokens) in tokens.files().take(10) {
        println!("  {}  {tokens}", path.display());
    }
    println!("{trained} windows of {} to train on, {held_back} held back", args.context + 1);

    let train = args.loader(PartialDataset::new(windows.clone(), 0, trained), tokens.kind(), &device)?;
    let held_back = PartialDataset::new(windows.clone(), trained, windows.len());
    let valid = args.loader(held_back, tokens.kind(), &device.clone().inner())?;
    let model = run(&args, vocabulary, &train, &valid, &device)?;
    println!("{}", written(&args, &model, Some(&tokens), words.as_ref(), &device.inner())?);
    Ok(())
}
