//! How fast a tokeniser of Hugging Face makes tokens of JSON lines, beside its crate alone on as many threads: a JSON line a round.
//!
//!     cargo bench -p burn-shards --features tokenizers --bench tokens -- FOLDER [threads, 2 by default] [rounds, 5]
//!
//! The first run makes `docs.jsonl` and a byte-level BPE of 8,000 tokens, `tokenizer.json`, in the folder. `alone` has the texts in
//! memory; `rows` reads and parses the lines too; `lengths` is the pass that a packing sampler needs. In tokens a second.

use burn::data::dataset::Dataset;
use burn_shards::{HfTokenizer, Rows};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    env,
    error::Error,
    fs,
    hint::black_box,
    path::Path,
    thread,
    time::{Duration, Instant},
};
use tokenizers::{
    Tokenizer,
    models::{
        TrainerWrapper,
        bpe::{BPE, BpeTrainer},
    },
    pre_tokenizers::byte_level::ByteLevel,
};

type BoxError = Box<dyn Error + Send + Sync>;

const DOCUMENTS: usize = 20_000;
const FOR_TRAINING: usize = 2_000;

fn main() -> Result<(), BoxError> {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(folder) = arguments.next() else { return Ok(()) }; // `cargo test --benches` has none
    let mut number = |usual| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (folder, threads, rounds) = (Path::new(&folder), number(2)?, number(5)?);
    let (docs, file) = (folder.join("docs.jsonl"), folder.join("tokenizer.json"));
    if !file.exists() {
        make(&docs, &file)?;
    }
    let rows = Rows::<(String,)>::jsonl(&docs).columns(["text"]).open()?;
    let texts = (0..rows.len()).map(|row| Ok(rows.get(row)?.0)).collect::<Result<Vec<_>, BoxError>>()?;
    let alone = Tokenizer::from_file(&file)?;
    for round in 0..rounds {
        let saved = tempfile::tempdir()?; // so that no round finds the lengths of another
        let rows = Rows::<(String,)>::jsonl(&docs).columns(["text"]).index_dir(saved.path()).open()?;
        let tokens = rows.tokenized(HfTokenizer::open(&file)?.column(|(text,): &(String,)| text));
        let rows = || timed(threads, texts.len(), |row| Ok(tokens.get(row)?.tokens.len()));
        let crate_alone = || timed(threads, texts.len(), |row| Ok(alone.encode_fast(texts[row].as_str(), true)?.len()));
        // In turn.
        let (ours, theirs) = if round % 2 == 0 {
            let ours = rows()?;
            (ours, crate_alone()?)
        } else {
            let theirs = crate_alone()?;
            (rows()?, theirs)
        };
        assert_eq!(ours.0, theirs.0, "the same tokens");
        let begun = Instant::now();
        let lengths: u64 = tokens.lengths()?.as_ref().iter().map(|length| u64::from(*length)).sum();
        assert_eq!(lengths, theirs.0 as u64, "the same tokens");
        let per_s = |(tokens, time): (usize, Duration)| (tokens as f64 / time.as_secs_f64()).round();
        let line = serde_json::json!({
            "bench": "tokens", "threads": threads, "round": round, "alone": per_s(theirs), "rows": per_s(ours),
            "lengths": per_s((theirs.0, begun.elapsed())),
        });
        println!("{line}");
    }
    Ok(())
}

/// Documents of made-up words, frequent ones and rare ones, and a tokeniser that learnt them.
fn make(docs: &Path, file: &Path) -> Result<(), BoxError> {
    let mut rng = StdRng::seed_from_u64(7);
    let syllables = ["ba", "ker", "lo", "min", "sta", "ti", "on", "ra", "vel", "du", "shi", "est", "pro", "qua", "en"];
    let mut word = || (0..rng.random_range(1..5)).map(|_| syllables[rng.random_range(0..15)]).collect::<String>();
    let words: Vec<String> = (0..20_000).map(|_| word()).collect();
    let mut text = || {
        let mut text = String::new();
        for _ in 0..rng.random_range(50..600) {
            let rare: f64 = rng.random();
            text.push_str(&words[((words.len() as f64).powf(rare) as usize).min(words.len() - 1)]);
            text.push_str(if rng.random_bool(0.1) { ", " } else { " " });
        }
        text
    };
    let texts: Vec<String> = (0..DOCUMENTS).map(|_| text()).collect();
    let lines = texts.iter().map(|text| format!("{}\n", serde_json::json!({ "text": text })));
    fs::write(docs, lines.collect::<String>())?;
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(ByteLevel::default()));
    let mut trainer: TrainerWrapper = BpeTrainer::builder().vocab_size(8_000).show_progress(false).build().into();
    tokenizer.train(&mut trainer, texts[..FOR_TRAINING].iter())?;
    tokenizer.save(file, false)?;
    Ok(())
}

/// The tokens of all rows, and the time: each thread has a part of the rows, as a loader's workers have.
fn timed(
    threads: usize,
    rows: usize,
    tokens: impl Fn(usize) -> Result<usize, BoxError> + Sync,
) -> Result<(usize, Duration), BoxError> {
    let begun = Instant::now();
    let part = |thread: usize| {
        (thread..rows).step_by(threads).try_fold(0, |sum, row| Ok::<_, BoxError>(sum + black_box(tokens(row)?)))
    };
    let sum = thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        parts.into_iter().map(|part| part.join().map_err(|_| "a thread panicked")?).sum::<Result<usize, BoxError>>()
    })?;
    Ok((sum, begun.elapsed()))
}
