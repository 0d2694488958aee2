//! A table: a small network learns from a CSV of measurements to tell three kinds of flowers apart.
//!
//!     cargo run --release --example table [FILE]   # a header, then rows of four numbers and a kind (0, 1 or 2)

use burn::data::dataset::InMemDataset;
use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::activation::relu};
use burn_pinned::{BoxError, KeyedRng, PinnedDataLoader, PinnedDataLoaderBuilder, Sample};
use rand::RngExt;
use std::{fmt::Write, fs, path::Path};

const KINDS: [&str; 3] = ["iris", "rose", "tulip"];

/// A row of the file. In a batch, `sizes` is a `Tensor<2>` and `kind` a `Tensor<1, Int>`.
#[derive(Clone, serde::Deserialize, Sample)]
struct Flower {
    sizes: [f32; 4],
    kind: usize,
}

/// Writes a file of flowers whose sizes overlap.
fn draw(path: &Path) -> Result<(), BoxError> {
    let means = [[5.0, 3.4, 1.5, 0.3], [6.4, 2.8, 4.3, 1.3], [6.6, 3.1, 5.1, 2.0]];
    let mut text = String::from("sepal length,sepal width,petal length,petal width,kind\n");
    for n in 0..3000 {
        let (mut rng, kind) = (KeyedRng::for_order(1, n), n % 3);
        for mean in means[kind] {
            write!(text, "{:.2},", mean + (0..3).map(|_| rng.random_range(-0.3..0.3f32)).sum::<f32>())?;
        }
        writeln!(text, "{kind}")?;
    }
    Ok(fs::write(path, text)?)
}

fn forward(net: &[Linear; 3], x: Tensor<2>) -> Tensor<2> {
    net[2].forward(relu(net[1].forward(relu(net[0].forward(x)))))
}

/// For each kind, the share of flowers that is classified correctly.
fn accuracy(net: &[Linear; 3], flowers: &PinnedDataLoader<FlowerBatch>) -> Result<[f64; 3], BoxError> {
    let mut counts = [[0.0; 2]; 3];
    for batch in flowers.iter() {
        let FlowerBatch { sizes, kind } = batch?;
        let right = forward(net, sizes).argmax(1).flatten::<1>(0, 1).equal(kind.clone());
        for (number, [all, good]) in (0..).zip(&mut counts) {
            let of_kind = kind.clone().equal_elem(number);
            *good += of_kind.clone().bool_and(right.clone()).int().sum().into_scalar::<f64>();
            *all += of_kind.int().sum().into_scalar::<f64>();
        }
    }
    Ok(counts.map(|[all, good]| good / all.max(1.0)))
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let folder = tempfile::tempdir()?;
    let drawn = folder.path().join("flowers.csv");
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => draw(&drawn).map(|()| drawn)?,
    };
    // By the order of the columns. The reader's `deserialize` would look for columns with the names of the fields.
    let records = csv::Reader::from_path(path)?.into_records();
    let flowers = records.map(|record| record?.deserialize(None)).collect::<Result<Vec<Flower>, csv::Error>>()?;
    let (valid, train) = flowers.split_at(flowers.len() / 5);
    println!("{} flowers to learn from, {} to guess", train.len(), valid.len());

    let device = Device::default().autodiff();
    let builder = || PinnedDataLoaderBuilder::new(Flower::collate()).batch_size(64).set_device(device.clone());
    let train = builder().shuffle(42).build(InMemDataset::new(train.to_vec()))?;
    let valid = builder().build(InMemDataset::new(valid.to_vec()))?;

    let layer = |(from, to)| LinearConfig::new(from, to).init(&device);
    let (mut net, mut optim) = ([(4, 32), (32, 32), (32, 3)].map(layer), AdamConfig::new().init());
    for epoch in 1..=8 {
        for batch in train.iter() {
            let FlowerBatch { sizes, kind } = batch?;
            let loss = CrossEntropyLossConfig::new().init(&device).forward(forward(&net, sizes), kind);
            net = optim.step(3e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
        }
        let shares = accuracy(&net, &valid)?;
        let each = KINDS.iter().zip(shares).map(|(kind, share)| format!("{kind} {:>5.1} %", 100.0 * share));
        let all = 100.0 * shares.iter().sum::<f64>() / 3.0;
        println!("epoch {epoch}: {all:>5.1} % right ({})", each.collect::<Vec<_>>().join(", "));
    }
    Ok(())
}
