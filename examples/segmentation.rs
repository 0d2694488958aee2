//! Segmentation: a small network classifies every pixel. The program draws discs and squares with their masks. Crops and flips move images
//! and masks together. It prints the IoU of each class.
//!
//!     cargo run --release --example segmentation [epochs, 6 by default] [images, 1,024 by default]

use burn::data::dataset::{Dataset, DatasetError};
use burn::nn::conv::{Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::nn::{PaddingConfig2d, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::DType, tensor::activation::relu};
use burn_pinned::{BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, collate, vision::*};
use image::{GrayImage, Luma, Rgb, RgbImage};
use rand::RngExt;

const SIDE: usize = 48;
const CLASSES: [&str; 3] = ["background", "disc", "square"];

/// Images of a disc and a square, drawn from their index.
struct Shapes(std::ops::Range<usize>);

impl Dataset<(Image, Mask)> for Shapes {
    fn get(&self, index: usize) -> Result<(Image, Mask), DatasetError> {
        let mut rng = KeyedRng::for_order(1, self.0.start + index);
        let mut image = RgbImage::from_fn(72, 64, |_, _| Rgb([0; 3].map(|_| rng.random_range(0..90))));
        let mut mask = GrayImage::new(72, 64);
        for class in [1, 2] {
            let (x, y, r) = (rng.random_range(8..64i32), rng.random_range(8..56i32), rng.random_range(6..16i32));
            let colour = Rgb([1, 0, 2].map(|n| if n == class { rng.random_range(120..=255) } else { 60 }));
            for (at_x, at_y, number) in mask.enumerate_pixels_mut() {
                let (across, down) = ((at_x as i32 - x).abs(), (at_y as i32 - y).abs());
                let inside = if class == 1 { across.pow(2) + down.pow(2) < r.pow(2) } else { across.max(down) < r };
                if inside {
                    *number = Luma([class]);
                    image.put_pixel(at_x, at_y, colour);
                }
            }
        }
        Ok((image.into(), mask.into())) // for files: `(Image::open(..)?, Mask::open(..)?)`
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

#[derive(Module, Debug)]
struct Net {
    down: Vec<Conv2d>,
    up: Vec<ConvTranspose2d>,
}

impl Net {
    fn new(device: &Device) -> Self {
        let down = |width: &[usize]| {
            let conv = Conv2dConfig::new([width[0], width[1]], [3, 3]).with_stride([2, 2]);
            conv.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(device)
        };
        let up = |width: &[usize]| {
            ConvTranspose2dConfig::new([width[0], width[1]], [4, 4])
                .with_stride([2, 2])
                .with_padding([1, 1])
                .init(device)
        };
        Self {
            down: [3, 16, 32, 48, 64].windows(2).map(down).collect(),
            up: [64, 48, 32, 16, CLASSES.len()].windows(2).map(up).collect(),
        }
    }

    /// Logits `[pixels, classes]` of images `[batch, 3, side, side]`.
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.down.iter().fold(images, |x, conv| relu(conv.forward(x)));
        let x = self.up.iter().enumerate().fold(x, |x, (n, conv)| conv.forward(if n == 0 { x } else { relu(x) }));
        x.permute([0, 2, 3, 1]).reshape([-1, CLASSES.len() as i32])
    }
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let (epochs, pictures) = (numbers.next().unwrap_or(Ok(6))?, numbers.next().unwrap_or(Ok(1024))?);
    let device = Device::default().autodiff();
    let fields = [Field::image("image", SIDE).with_dtype(DType::F32), Field::new("mask", DType::U8, [SIDE, SIDE])];
    let pixels = collate(
        fields,
        |(image, mask): &(Image, Mask), row| {
            row.image("image", image)?;
            Ok(row.mask("mask", mask)?)
        },
        |mut batch| Ok((batch.take::<4, Float>("image")?, batch.take_int::<3>("mask")?.flatten::<1>(0, 2))),
    );
    let builder = |pixels| PinnedDataLoaderBuilder::new(pixels).batch_size(32).set_device(device.clone());
    let train = builder(pixels.clone())
        .shuffle(7)
        .augment((RandomResizedCrop::new(SIDE)?.scale(0.4, 1.0)?, RandomHorizontalFlip::default()))
        .build(Shapes(0..pictures))?;
    let valid = builder(pixels).augment(Resize::exact(SIDE)?).build(Shapes(pictures..pictures * 5 / 4))?;

    let (mut net, mut optim) = (Net::new(&device), AdamConfig::new().init());
    for epoch in 1..=epochs {
        for batch in train.iter() {
            let (images, classes) = batch?;
            let loss = CrossEntropyLossConfig::new().init(&device).forward(net.forward(images), classes);
            net = optim.step(3e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
        }
        let mut areas = [[0.0; 2]; CLASSES.len()]; // intersection and union
        for batch in valid.iter() {
            let (images, classes) = batch?;
            let guess = net.forward(images).argmax(1).flatten::<1>(0, 1);
            for (class, [both, either]) in (0..).zip(&mut areas) {
                let (a, b) = (guess.clone().equal_elem(class), classes.clone().equal_elem(class));
                *both += a.clone().bool_and(b.clone()).int().sum().into_scalar::<f64>();
                *either += a.bool_or(b).int().sum().into_scalar::<f64>();
            }
        }
        let ious = CLASSES.iter().zip(areas).map(|(class, [both, either])| format!("{class} {:.3}", both / either));
        println!("epoch {epoch}: IoU of {}", ious.collect::<Vec<_>>().join(", "));
    }
    Ok(())
}
