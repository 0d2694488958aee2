//! Compressed tars through pipes, read once from front to back without an index: a small network learns the direction of strokes. The
//! training is killed in the middle of an epoch and goes on at the same sample.
//!
//!     cargo run --release --example stream

use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::activation::relu};
use burn_pinned::{BoxError, KeyedRng, LoaderState, PinnedDataLoader, PinnedDataLoaderBuilder, Sample, stream::Stream};
use burn_pinned::{data::Pipe, data::Rows, vision::*};
use flate2::{Compression, write::GzEncoder};
use image::{GrayImage, ImageFormat, Luma};
use rand::RngExt;
use std::{fs::File, io::Cursor, path::Path, sync::Arc};

/// The files of a row, and a sample of the loader.
#[derive(serde::Deserialize, Sample, HasImage)]
struct Stroke {
    #[sample(shape = [1, 16, 16], dtype = f32, mean = 0.5, std = 0.25)]
    png: Image, // in a batch a Tensor<4>
    cls: usize, // a Tensor<1, Int>
}

const NAMES: [&str; 4] = ["-", "/", "|", "\\"];
const SHARDS: usize = 6; // and one more, for validation
const OF_SHARD: usize = 300;

/// An image of a stroke in one of four directions.
fn draw(rng: &mut KeyedRng) -> Result<(Vec<u8>, usize), BoxError> {
    let class = rng.random_range(0..4);
    let angle = std::f32::consts::FRAC_PI_4 * (class as f32 + rng.random_range(-0.35..0.35));
    let (x, y): (f32, f32) = (rng.random_range(5.0..11.0), rng.random_range(5.0..11.0));
    let image = GrayImage::from_fn(16, 16, |column, row| {
        let (dx, dy) = (column as f32 - x, y - row as f32);
        let is_near = (dx * angle.sin() - dy * angle.cos()).abs() < 1.0;
        Luma([rng.random_range(0..90) + if is_near { 120 } else { 0 }])
    });
    let mut png = Vec::new();
    image.write_to(&mut Cursor::new(&mut png), ImageFormat::Png)?;
    Ok((png, class))
}

fn write(folder: &Path) -> Result<(), BoxError> {
    for shard in 0..=SHARDS {
        let mut rng = KeyedRng::for_order(1, shard);
        let gzip = GzEncoder::new(File::create(folder.join(format!("{shard}.tar.gz")))?, Compression::fast());
        let mut tar = ::tar::Builder::new(gzip);
        for n in 0..OF_SHARD {
            let (png, class) = draw(&mut rng)?;
            for (extension, bytes) in [("png", png), ("cls", class.to_string().into_bytes())] {
                let mut header = ::tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, format!("{n:04}.{extension}"), &*bytes)?;
            }
        }
        tar.into_inner()?.finish()?;
    }
    Ok(())
}

/// Shards, each through a pipe. `cat` could be `curl -sf https://..` or `aws s3 cp .. -`.
fn shards(folder: &Path, first: usize, count: usize) -> Stream<Stroke> {
    let folder = folder.to_owned();
    let open = move |shard| format!("cat '{}/{}.tar.gz'", folder.display(), first + shard);
    Stream::new(move |place| Ok(Rows::tar("the pipe").stream_from(Pipe::new(open(place.shard))?)?)).shards(count)
}

fn forward(net: &[Linear; 2], images: Tensor<4>) -> Tensor<2> {
    net[1].forward(relu(net[0].forward(images.flatten::<2>(1, 3))))
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let folder = tempfile::tempdir()?;
    write(folder.path())?;
    let device = Device::default().autodiff();
    let builder = || PinnedDataLoaderBuilder::new(Stroke::collate()).batch_size(30).set_device(device.clone());
    let train = |state: Option<LoaderState>| {
        let builder = state.into_iter().fold(builder().seed(42), PinnedDataLoaderBuilder::resume);
        builder.build_stream(shards(folder.path(), 0, SHARDS).interleave(2).shuffle_buffer(500)) // two pipes at once
    };
    let valid = builder().build_stream(shards(folder.path(), SHARDS, 1))?;
    let layer = |(from, to)| LinearConfig::new(from, to).init(&device);
    let (mut net, mut optim) = ([(256, 64), (64, 4)].map(layer), AdamConfig::new().init());
    let mut learn =
        |loader: &Arc<PinnedDataLoader<StrokeBatch>>, net: &mut [Linear; 2], most| -> Result<usize, BoxError> {
            let mut samples = 0;
            for batch in loader.iter().take(most) {
                let StrokeBatch { png, cls } = batch?;
                samples += cls.dims()[0];
                let loss = CrossEntropyLossConfig::new().init(&device).forward(forward(net, png), cls);
                *net = optim.step(2e-3, net.clone(), GradientsParams::from_grads(loss.backward(), net));
            }
            Ok(samples)
        };
    let (mut loader, mut share) = (train(None)?, 0.0);
    for epoch in 1..=6 {
        let mut samples = learn(&loader, &mut net, if epoch == 3 { 25 } else { usize::MAX })?;
        if epoch == 3 {
            let state = serde_json::to_string(&loader.state())?; // the process may end here
            loader = train(Some(serde_json::from_str(&state)?))?;
            println!("         stopped after {samples} samples, and goes on from a state of {} bytes", state.len());
            samples += learn(&loader, &mut net, usize::MAX)?;
        }
        assert_eq!(samples, SHARDS * OF_SHARD, "each sample comes once in an epoch");
        let mut wrong = [0; 4];
        for batch in valid.iter() {
            let StrokeBatch { png, cls } = batch?;
            let right = forward(&net, png).argmax(1).flatten::<1>(0, 1).equal(cls.clone()).into_data();
            for (class, _) in cls.into_data().iter::<u32>().zip(right.iter::<bool>()).filter(|(_, right)| !right) {
                wrong[class as usize] += 1;
            }
        }
        share = 1.0 - wrong.iter().sum::<usize>() as f64 / OF_SHARD as f64;
        let wrong: Vec<_> = NAMES.iter().zip(wrong).map(|(name, wrong)| format!("{wrong} {name}")).collect();
        println!("epoch {epoch}: {:5.1} % right; wrong: {}", 100.0 * share, wrong.join("  "));
    }
    println!("{}", loader.stats().verdict());
    if share > 0.9 { Ok(()) } else { Err("it has not learned".into()) }
}
