//! Tar shards by WebDataset's rules: a small network learns to read dice. One image is corrupt: it is skipped and reported.
//!
//!     cargo run --release --example tar ['FILES']   # such as 'train-{000..146}.tar', of `png` and `cls`

use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{data::dataset::Dataset, prelude::*, tensor::activation::relu};
use burn_pinned::fault::{BadSamples, Quota};
use burn_pinned::{BoxError, KeyedRng, PinnedDataLoaderBuilder, Sample, data::Rows, vision::*};
use image::{GrayImage, ImageFormat, Luma};
use rand::RngExt;
use std::{fs::File, io::Cursor, path::Path};

/// The files of a row, and a sample of the loader: `0042.png` and `0042.cls` have the key `0042`.
#[derive(serde::Deserialize, Sample, HasImage)]
struct Row {
    #[sample(shape = [1, 12, 12], dtype = f32)]
    png: Image, // in a batch a Tensor<4>
    cls: usize, // a Tensor<1, Int>
    #[serde(rename = "__key__")]
    key: String, // a Vec<String>
}

/// A small image of a die that shows 1 to 6.
fn draw(n: usize) -> Result<Vec<u8>, BoxError> {
    const DOTS: [[u8; 9]; 6] = [
        [0, 0, 0, 0, 1, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 0, 1],
        [1, 0, 0, 0, 1, 0, 0, 0, 1],
        [1, 0, 1, 0, 0, 0, 1, 0, 1],
        [1, 0, 1, 0, 1, 0, 1, 0, 1],
        [1, 0, 1, 1, 0, 1, 1, 0, 1],
    ];
    let mut rng = KeyedRng::for_order(1, n);
    let (left, top) = (rng.random_range(0..4), rng.random_range(0..4));
    let die = GrayImage::from_fn(16, 16, |x, y| {
        let at = |place: u32, start: u32| place.checked_sub(start).filter(|at| at % 4 < 3).map(|at| (at / 4) as usize);
        let dot = at(x, left).zip(at(y, top)).and_then(|(x, y)| (x < 3 && y < 3).then(|| DOTS[n % 6][3 * y + x]));
        Luma([rng.random_range(0..120) + 110 * dot.unwrap_or(0)])
    });
    let mut bytes = Vec::new();
    die.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
    Ok(bytes)
}

/// Writes two shards.
fn write(folder: &Path) -> Result<(), BoxError> {
    for shard in 0..2 {
        let mut tar = ::tar::Builder::new(File::create(folder.join(format!("train-{shard}.tar")))?);
        for n in shard * 900..(shard + 1) * 900 {
            let mut png = draw(n)?;
            if n == 1000 {
                png.truncate(20);
            }
            for (extension, bytes) in [("png", png), ("cls", (n % 6).to_string().into_bytes())] {
                let mut header = ::tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, format!("{n:04}.{extension}"), &*bytes)?;
            }
        }
        tar.finish()?;
    }
    Ok(())
}

fn forward(net: &[Linear; 2], images: Tensor<4>) -> Tensor<2> {
    net[1].forward(relu(net[0].forward(images.flatten::<2>(1, 3))))
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let folder = tempfile::tempdir()?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => write(folder.path()).map(|()| folder.path().join("train-{0..1}.tar"))?,
    };
    let (train, valid) = Rows::<Row>::tar(path).open()?.split_by("cls", 0.2, 42)?;
    println!("{} dice to learn from, and {} to guess", train.len(), valid.len());

    let device = Device::default().autodiff();
    let builder = || {
        PinnedDataLoaderBuilder::new(Row::collate())
            .batch_size(32)
            .bad_samples(BadSamples::Skip(Quota::Share(0.01)))
            .set_device(device.clone())
    };
    let name = |error: &burn_pinned::Error| {
        if error.place().is_some_and(|place| place.epoch == 0) {
            eprintln!("left out: {error}");
        }
    };
    let train = builder().shuffle(42).augment(RandomCrop::new(12)?).on_fault(name).build(train)?;
    let valid = builder().augment(CenterCrop::new(12)?).build(valid)?;

    let layer = |(from, to)| LinearConfig::new(from, to).init(&device);
    let (mut net, mut optim) = ([(144, 64), (64, 6)].map(layer), AdamConfig::new().init());
    for epoch in 1..=8 {
        for batch in train.iter() {
            let RowBatch { png, cls, .. } = batch?;
            let loss = CrossEntropyLossConfig::new().init(&device).forward(forward(&net, png), cls);
            net = optim.step(2e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
        }
        let (mut all, mut wrong) = (0, Vec::new());
        for batch in valid.iter() {
            let RowBatch { png, cls, key } = batch?;
            let right = forward(&net, png).argmax(1).flatten::<1>(0, 1).equal(cls).into_data();
            all += key.len();
            wrong.extend(key.into_iter().zip(right.iter::<bool>()).filter(|(_, right)| !right).map(|(key, _)| key));
        }
        let share = 100.0 - 100.0 * wrong.len() as f64 / all as f64;
        println!("epoch {epoch}: {share:.1} % right; wrong are {:?} ..", wrong.iter().take(5).collect::<Vec<_>>());
    }
    Ok(())
}
