//! FLAC files through the loader: JSON lines, a line a case and round.
//!
//!     cargo bench --features audio --bench sounds -- DIR [seconds, 5 by default] [rounds, 5 by default] [workers, 2 by default]
//!
//! A folder without files is first given 64 FLACs of 10 seconds at 16 kHz. `whole` decodes all of each, `second` a second of its middle.
//! benches/peer_sounds.py reads the same files by PyTorch's loader.

use burn::{prelude::*, tensor::DType};
use burn_pinned::{BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, collate, data::Audio, dataset};
use flacenc::{bitsink::ByteSink, component::BitRepr, config::Encoder, error::Verify, source::MemSource};
use rand::RngExt;
use std::{
    env, fs,
    hint::black_box,
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const RATE: usize = 16_000;

/// Writes tones in noise, whose loudness comes and goes.
fn draw(path: &Path, seed: usize) -> Result<(), BoxError> {
    let mut rng = KeyedRng::for_order(1, seed);
    let tones: [f32; 4] = std::array::from_fn(|_| rng.random_range(0.01..0.4));
    let sample = |n: usize| {
        let tone: f32 = tones.iter().map(|step| (n as f32 * step).sin()).sum();
        let loud = (n as f32 * 6e-4).sin().abs() * 4000.0;
        (loud * (tone + rng.random_range(-0.5..0.5f32))) as i32
    };
    let source = MemSource::from_samples(&(0..10 * RATE).map(sample).collect::<Vec<i32>>(), 1, 16, RATE);
    let config = Encoder::default().into_verified().map_err(|(_, error)| error.to_string())?;
    let flac =
        flacenc::encode_with_fixed_block_size(&config, source, config.block_size).map_err(|error| error.to_string())?;
    let mut sink = ByteSink::new();
    flac.write(&mut sink)?;
    let mut file = sink.into_inner();
    file.copy_within(10..12, 8); // this encoder counts the last block, which is shorter, as the least length of a block
    Ok(fs::write(path, file)?)
}

/// Sounds a second of a loader.
fn loaded(paths: &[PathBuf], part: Range<usize>, seconds: u64, workers: usize) -> Result<f64, BoxError> {
    let batches = collate(
        [Field::new("wave", DType::F32, [part.len()])],
        |audio: &Audio, row| Ok(row.write("wave", &audio.samples()?)?),
        |mut batch| Ok(batch.take::<2, Float>("wave")?),
    );
    let names = paths.iter().cycle().take(1 << 16).cloned().collect();
    let sounds = dataset(names, move |path: &PathBuf| Ok(Audio::open(path)?.crop(part.clone())));
    let builder = PinnedDataLoaderBuilder::new(batches).batch_size(32).num_workers(workers).shuffle(7);
    let loader = builder.set_device(Device::flex()).build(sounds)?;
    let mut epoch = loader.iter();
    for _ in 0..8 {
        epoch.next().ok_or("no batch")??;
    }
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        done += black_box(epoch.next().ok_or("the epoch is over")??).dims()[0];
    }
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

fn main() -> Result<(), BoxError> {
    // `cargo bench` adds this word.
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let folder = Path::new(args.first().ok_or("give a folder, such as an empty one")?);
    let number = |at: usize, usual: u64| args.get(at).map_or(Ok(usual), |text| text.parse());
    let (seconds, rounds, workers) = (number(1, 5)?, number(2, 5)?, number(3, 2)? as usize);
    let paths: Vec<PathBuf> = (0..64).map(|n| folder.join(format!("{n:02}.flac"))).collect();
    for (seed, path) in paths.iter().enumerate().filter(|(_, path)| !path.exists()) {
        draw(path, seed)?;
    }
    for round in 0..rounds {
        for (case, part) in [("whole", 0..10 * RATE), ("second", 9 * RATE / 2..11 * RATE / 2)] {
            let rate = loaded(&paths, part, seconds, workers)?.round();
            let line = serde_json::json!({"bench": "sounds", "case": case, "workers": workers, "round": round, "items_per_s": rate});
            println!("{line}");
        }
    }
    Ok(())
}
