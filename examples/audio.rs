//! Audio: a small network classifies the tone in FLAC files of any length and of several rates. The workers decode them and compute them at
//! one rate. Each batch is padded to its own longest sound, and a mask marks the real samples. Sounds of similar length share a batch.
//!
//!     cargo run --release --features audio --example audio ['FILES']   # tar shards of `flac` and `cls`

use burn::nn::pool::{AvgPool1d, AvgPool1dConfig};
use burn::nn::{Linear, LinearConfig, conv::Conv1d, conv::Conv1dConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{data::dataset::Dataset, prelude::*, tensor::activation::relu};
use burn_pinned::data::{Audio, Rows};
use burn_pinned::{BoxError, KeyedRng, PinnedDataLoaderBuilder, Sample, order::LengthBucketSampler};
use flacenc::{bitsink::ByteSink, component::BitRepr, config::Encoder, error::Verify, source::MemSource};
use rand::RngExt;
use std::{f32::consts::TAU, fs::File, path::Path};

const RATE: u32 = 8000;
const TONES: [&str; 4] = ["sine", "square", "saw", "noise"];

/// The files of a row of the tar. In a batch, `flac` and `flac_mask` are as long as the longest sound.
#[derive(serde::Deserialize, Sample)]
struct Sound {
    #[sample(padded = [8000], mask)]
    flac: Audio,
    cls: usize,
}

/// A FLAC of 16 bits: 0.1 to 0.8 seconds of a tone of random pitch and volume.
fn draw(tone: usize, rng: &mut KeyedRng) -> Result<Vec<u8>, BoxError> {
    let rate = [RATE, 16_000, 22_050][rng.random_range(0..3)];
    let (step, loud) = (rng.random_range(150.0..900.0) / rate as f32, rng.random_range(0.2..0.9));
    let count = rng.random_range(rate / 10..rate * 4 / 5);
    let sample = |n: u32| {
        let (turn, noise) = ((n as f32 * step).fract(), rng.random_range(-1.0..1.0));
        let value = [(turn * TAU).sin(), if turn < 0.5 { 1.0 } else { -1.0 }, 2.0 * turn - 1.0, noise][tone];
        ((loud * value + 0.05 * noise) * 32_000.0) as i32
    };
    let source = MemSource::from_samples(&(0..count).map(sample).collect::<Vec<i32>>(), 1, 16, rate as usize);
    let config = Encoder::default().into_verified().map_err(|(_, error)| error.to_string())?;
    let flac = flacenc::encode_with_fixed_block_size(&config, source, config.block_size);
    let mut sink = ByteSink::new();
    flac.map_err(|error| error.to_string())?.write(&mut sink)?;
    let mut file = sink.into_inner();
    file.copy_within(10..12, 8); // this encoder counts the last block, which is shorter, as the least length of a block
    Ok(file)
}

fn write(path: &Path) -> Result<(), BoxError> {
    let mut tar = tar::Builder::new(File::create(path)?);
    for n in 0..800 {
        let flac = draw(n % 4, &mut KeyedRng::for_order(1, n))?;
        for (extension, bytes) in [("flac", flac), ("cls", (n % 4).to_string().into_bytes())] {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, format!("{n:04}.{extension}"), &*bytes)?;
        }
    }
    Ok(tar.finish()?)
}

#[derive(Module, Debug)]
struct Net {
    conv: Conv1d,
    pool: AvgPool1d,
    layers: [Linear; 2],
}

impl Net {
    fn new(device: &Device) -> Self {
        let conv = Conv1dConfig::new(1, 24, 64).with_stride(16).init(device);
        let layers = [(24, 32), (32, TONES.len())].map(|(from, to)| LinearConfig::new(from, to).init(device));
        Self { conv, pool: AvgPool1dConfig::new(64).with_stride(16).init(), layers }
    }

    /// Logits `[batch, tones]`: the mean over the windows that contain only sound.
    fn forward(&self, wave: Tensor<2>, mask: Tensor<2, Bool>) -> Tensor<2> {
        let windows = relu(self.conv.forward(wave.unsqueeze_dim(1)));
        let mask = self.pool.forward(mask.float().unsqueeze_dim(1)).greater_equal_elem(1.0).float();
        let mean = (windows * mask.clone()).sum_dim(2) / mask.sum_dim(2);
        self.layers[1].forward(relu(self.layers[0].forward(mean.flatten(1, 2))))
    }
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let folder = tempfile::tempdir()?;
    let drawn = folder.path().join("train.tar");
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => write(&drawn).map(|()| drawn)?,
    };
    let (train, valid) = Rows::<Sound>::tar(path).open()?.split_by("cls", 0.2, 42)?;
    // The index has the sizes of the files. A batch has at most 200 kB of them, including padding, and at most 32 files.
    let order = LengthBucketSampler::new(train.sizes("flac")?, 200_000, 32)?.shuffle(42);
    let one_rate = |mut row: Sound| {
        row.flac = row.flac.mono()?.resample(RATE)?; // on a worker
        Ok(row)
    };
    let (train, valid) = (train.map(one_rate), valid.map(one_rate));
    println!("{} sounds of {}, and {} to guess", train.len(), TONES.join(", "), valid.len());
    let device = Device::default().autodiff();
    let builder = || PinnedDataLoaderBuilder::new(Sound::collate()).set_device(device.clone());
    let train = builder().order(order).build(train)?;
    let valid = builder().batch_size(32).build(valid)?;
    let (mut net, mut optim) = (Net::new(&device), AdamConfig::new().init());
    for epoch in 1..=10 {
        for batch in train.iter() {
            let SoundBatch { flac, flac_mask, cls } = batch?;
            let loss = CrossEntropyLossConfig::new().init(&device).forward(net.forward(flac, flac_mask), cls);
            net = optim.step(5e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
        }
        let mut right = 0.0;
        for batch in valid.iter() {
            let SoundBatch { flac, flac_mask, cls } = batch?;
            let guess = net.forward(flac, flac_mask).argmax(1).flatten::<1>(0, 1);
            right += guess.equal(cls).int().sum().into_scalar::<f64>();
        }
        println!("epoch {epoch:>2}: {:.1} % right", 100.0 * right / valid.num_items() as f64);
    }
    Ok(())
}
