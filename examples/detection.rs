//! Detection: a small network finds boxes around discs and squares, which the program draws. Crops, flips and resizes move images and boxes
//! together. It prints COCO's mean average precision, and that at an IoU of 0.5. For files of COCO's annotations, there is `vision::Coco`.
//!
//!     cargo run --release --example detection [epochs, 12 by default] [images, 2,048 by default]

use burn::data::dataset::InMemDataset;
use burn::nn::{PaddingConfig2d, conv::Conv2d, conv::Conv2dConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::DType, tensor::activation::log_sigmoid, tensor::activation::relu};
use burn_pinned::{BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, RowMut, collate, vision::*};
use image::{Rgb, RgbImage};
use rand::RngExt;

const SIDE: usize = 64;
/// Cells of 8 x 8 pixels. The cell at the centre of an object has six numbers: whether it is a disc, whether it is a square (the network
/// outputs logits), the centre's offset from the cell's corner, and the logarithms of the sides, in cells.
const CELLS: usize = SIDE / 8;

/// An image of one to three discs (0) and squares (1) that do not overlap.
fn draw(index: usize) -> Result<(Image, Boxes), VisionError> {
    let mut rng = KeyedRng::for_order(1, index);
    let mut image = RgbImage::from_fn(96, 80, |_, _| Rgb([0; 3].map(|_| rng.random_range(0..60))));
    let (mut boxes, mut labels) = (Vec::new(), Vec::new());
    for n in 0..rng.random_range(1..=3) {
        let (x, y, r) = (16 + 32 * n, rng.random_range(15..65i32), rng.random_range(7..14i32));
        let (class, colour) = (rng.random_range(0..2), Rgb([0; 3].map(|_| rng.random_range(120..=255))));
        for (at_x, at_y, pixel) in image.enumerate_pixels_mut() {
            let (across, down) = ((at_x as i32 - x).abs(), (at_y as i32 - y).abs());
            let within = if class == 0 { across.pow(2) + down.pow(2) <= r.pow(2) } else { across.max(down) <= r };
            *pixel = if within { colour } else { *pixel };
        }
        boxes.push([x - r, y - r, 2 * r + 1, 2 * r + 1].map(|number| number as f32));
        labels.push(class);
    }
    Ok((image.into(), Boxes::new(boxes, labels, BoxFormat::Xywh)?.least_visible(0.4)?))
}

fn write((image, boxes): &(Image, Boxes), row: &mut RowMut<'_>) -> Result<(), BoxError> {
    row.image("image", image)?;
    let cells = row.slice_mut("cells")?;
    cells.fill(0.0);
    for (edges, class) in boxes.values(BoxFormat::Cxcywh).as_chunks::<4>().0.iter().zip(boxes.labels()) {
        let [x, y, w, h] = edges.map(|number| number / 8.0);
        let put = |(n, to): (usize, f32)| cells[(n * CELLS + y as usize) * CELLS + x as usize] = to;
        (2..).zip([x.fract(), y.fract(), w.ln(), h.ln()]).chain([(*class as usize, 1.0)]).for_each(put);
    }
    Ok(())
}

/// The boxes of each picture with a score above `least_score`, and their scores.
fn found(cells: &[f32], least_score: f32) -> Result<Vec<(Boxes, Vec<f32>)>, VisionError> {
    let of_picture = |cells: &[f32]| {
        let (mut boxes, mut labels, mut scores) = (Vec::new(), Vec::new(), Vec::new());
        for (at, score) in cells[..2 * CELLS * CELLS].iter().enumerate().filter(|(_, score)| **score > least_score) {
            let (class, y, x) = (at / CELLS / CELLS, at / CELLS % CELLS, at % CELLS);
            let number = |n: usize| cells[(n * CELLS + y) * CELLS + x];
            let place = [x as f32 + number(2), y as f32 + number(3), number(4).exp(), number(5).exp()];
            boxes.push(place.map(|number| number * 8.0));
            labels.push(class as i32);
            scores.push(*score);
        }
        Ok((Boxes::new(boxes, labels, BoxFormat::Cxcywh)?, scores))
    };
    cells.chunks_exact(6 * CELLS * CELLS).map(of_picture).collect()
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let (epochs, pictures) = (numbers.next().unwrap_or(Ok(12))?, numbers.next().unwrap_or(Ok(2048))?);
    let device = Device::default().autodiff();
    let image = Field::image("image", SIDE).with_dtype(DType::F32);
    let fields = [image, Field::new("cells", DType::F32, [6, CELLS, CELLS])];
    let cells = collate(fields, write, |mut batch| Ok((batch.take("image")?, batch.take("cells")?)));
    let builder = |size| PinnedDataLoaderBuilder::new(cells.clone()).batch_size(size).set_device(device.clone());
    let data = |indices: std::ops::Range<usize>| indices.map(draw).collect::<Result<_, _>>().map(InMemDataset::new);
    let (crop, size) = (RandomIoUCrop::new().scale(0.6, 1.0)?, Resize::exact(SIDE)?);
    let train =
        builder(32).shuffle(7).augment((crop, RandomHorizontalFlip::default(), size)).build(data(0..pictures)?)?;
    let valid = builder(pictures / 8).augment(size).build(data(pictures..pictures * 9 / 8)?)?; // one batch
    let conv = |(from, to, stride)| {
        let conv = Conv2dConfig::new([from, to], [3, 3]).with_stride([stride; 2]);
        conv.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(&device)
    };
    let forward = |net: &[Conv2d; 5], images| (1..5).fold(net[0].forward(images), |x, n| net[n].forward(relu(x)));
    let mut net = [(3, 16, 2), (16, 32, 2), (32, 64, 2), (64, 64, 1), (64, 6, 1)].map(conv);
    let mut optim = AdamConfig::new().init();
    for epoch in 1..=epochs {
        for batch in train.iter() {
            let (images, cells) = batch?;
            let (out, there) = (forward(&net, images), cells.clone().narrow(1, 0, 2));
            let (logits, has) = (out.clone().narrow(1, 0, 2), there.clone().sum_dim(1));
            let classes = there * logits.clone() + log_sigmoid(-logits);
            let places = (out - cells).narrow(1, 2, 4).powi_scalar(2) * has.clone();
            let loss = (places.sum() - classes.sum()) / (has.sum() + 1.0);
            net = optim.step(2e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
        }
        let (images, cells) = valid.iter().next().ok_or("no pictures")??;
        let [guesses, truth] = [forward(&net, images), cells].map(|cells| cells.into_data().try_to_vec::<f32>());
        let mut precision = AveragePrecision::default();
        for ((boxes, scores), (objects, _)) in found(&guesses?, -3.0)?.iter().zip(&found(&truth?, 0.5)?) {
            precision.add((boxes, scores), (objects, &[]))?;
        }
        let at_half = precision.by_class().values().map(|ious| ious[0]).sum::<f64>() / 2.0;
        println!("epoch {epoch:>2}: mAP {:.3}, {at_half:.3} at an IoU of 0.5", precision.mean().unwrap_or(0.0));
    }
    Ok(())
}
