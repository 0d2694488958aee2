//! Parquet in the layout of the Hugging Face hub: a small network classifies the shape in an image.
//!
//!     cargo run --release --features parquet --example parquet ['FILES']   # such as 'train-*.parquet'

use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::file::{metadata::KeyValue, properties::WriterProperties};
use ::parquet::schema::parser::parse_message_type;
use burn::nn::{Linear, LinearConfig, PaddingConfig2d, conv::Conv2d, conv::Conv2dConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{data::dataset::Dataset, prelude::*, tensor::activation::relu};
use burn_pinned::{BoxError, KeyedRng, PinnedDataLoaderBuilder, Sample, data::Rows, vision::*};
use image::{ImageFormat, Rgb, RgbImage};
use rand::RngExt;
use std::{fs::File, io::Cursor, path::Path};

const SIDE: u32 = 24;

/// A row of the files, and a sample of the loader.
#[derive(serde::Deserialize, Sample, HasImage)]
struct Row {
    #[sample(shape = [3, 24, 24], mean = [0.5; 3], std = [0.25; 3])]
    image: Image, // the column `image` of `{bytes, path}`; in a batch a Tensor<4>
    label: usize,
}

/// The bytes of a PNG of a disc (0), a square (1) or a ring (2).
fn draw(n: usize) -> Result<ByteArray, BoxError> {
    let mut rng = KeyedRng::for_order(1, n);
    let (x, y, r) = (rng.random_range(13..19i32), rng.random_range(13..19i32), rng.random_range(6..12i32));
    let (ground, ink) = ([0; 3].map(|_| rng.random_range(0..110)), [0; 3].map(|_| rng.random_range(130..=255)));
    let picture = RgbImage::from_fn(32, 32, |at_x, at_y| {
        let (across, down) = ((at_x as i32 - x).abs(), (at_y as i32 - y).abs());
        let far = across.pow(2) + down.pow(2);
        let inside = [far <= r * r, across.max(down) <= r, far <= r * r && far > r * r / 3][n % 3];
        Rgb(if inside { ink } else { ground })
    });
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
    Ok(bytes.into())
}

/// Writes a file of images, with the names of the classes in the hub's format.
fn write(path: &Path) -> Result<(), BoxError> {
    let schema = "message rows { REQUIRED GROUP image { REQUIRED BINARY bytes; } REQUIRED INT64 label; }";
    let names = r#"{"info": {"features": {"label": {"_type": "ClassLabel", "names": ["disc", "square", "ring"]}}}}"#;
    let names = vec![KeyValue::new("huggingface".into(), names.to_string())];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(names)).build();
    let schema = parse_message_type(schema)?.into();
    let mut file = SerializedFileWriter::new(File::create(path)?, schema, properties.into())?;
    let mut group = file.next_row_group()?;
    column::<ByteArrayType>(&mut group, &(0..1500).map(draw).collect::<Result<Vec<_>, _>>()?)?;
    column::<Int64Type>(&mut group, &(0..1500).map(|n| n % 3).collect::<Vec<_>>())?;
    group.close()?;
    file.close().map(drop).map_err(Into::into)
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, File>, values: &[T::T]) -> Result<(), BoxError> {
    let mut column = group.next_column()?.ok_or("the schema has fewer columns")?;
    column.typed::<T>().write_batch(values, None, None)?;
    Ok(column.close()?)
}

#[derive(Module, Debug)]
struct Net {
    convs: Vec<Conv2d>,
    head: Linear,
}

impl Net {
    fn new(classes: usize, device: &Device) -> Self {
        let conv = |width: &[usize]| {
            let conv = Conv2dConfig::new([width[0], width[1]], [3, 3]).with_stride([2, 2]);
            conv.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(device)
        };
        let convs = [3, 16, 32, 32].windows(2).map(conv).collect();
        Self { convs, head: LinearConfig::new(32 * 3 * 3, classes).init(device) }
    }

    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        self.head.forward(self.convs.iter().fold(images, |x, conv| relu(conv.forward(x))).flatten(1, 3))
    }
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let folder = tempfile::tempdir()?;
    let drawn = folder.path().join("train.parquet");
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => write(&drawn).map(|()| drawn)?,
    };
    let rows = Rows::<Row>::parquet(path).open()?;
    let classes = rows.classes("label").ok_or("the files name no classes")?;
    let (train, valid) = rows.split_by("label", 0.2, 42)?;
    println!("{} pictures of {}, and {} to guess", train.len(), classes.join(", "), valid.len());

    let device = Device::default().autodiff();
    let builder = || PinnedDataLoaderBuilder::new(Row::collate()).batch_size(32).set_device(device.clone());
    let changes = (RandomResizedCrop::new(SIDE)?.scale(0.7, 1.0)?, RandomHorizontalFlip::default());
    let train = builder().shuffle(42).augment(changes).build(train)?;
    let valid = builder().augment(Resize::exact(SIDE)?).build(valid)?;

    let (mut net, mut optim) = (Net::new(classes.len(), &device), AdamConfig::new().init());
    for epoch in 1..=8 {
        for batch in train.iter() {
            let RowBatch { image, label } = batch?;
            let loss = CrossEntropyLossConfig::new().init(&device).forward(net.forward(image), label);
            net = optim.step(2e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
        }
        let mut right = 0.0;
        for batch in valid.iter() {
            let RowBatch { image, label } = batch?;
            let guess = net.forward(image).argmax(1).flatten::<1>(0, 1);
            right += guess.equal(label).int().sum().into_scalar::<f64>();
        }
        println!("epoch {epoch}: {:.1} % right", 100.0 * right / valid.num_items() as f64);
    }
    Ok(())
}
