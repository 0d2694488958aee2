//! Detection: a small network finds boxes around discs and squares. They are drawn, with their boxes; crops, flips and resizes
//! move both alike. It prints the mean average precision at an IoU of 0.5.
//!
//!     cargo run --release --example detection [epochs, 12 by default] [pictures, 2,048 by default]

use burn::data::{dataloader::DataLoader, dataset::InMemDataset};
use burn::nn::{PaddingConfig2d, conv::Conv2d, conv::Conv2dConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::{DType, activation::log_sigmoid, activation::relu};
use burn_pinned::{BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, collate, vision::*};
use image::{Rgb, RgbImage};
use rand::RngExt;

const SIDE: usize = 64;
/// Cells of 8 x 8 pixels. The one under the middle of an object has its class, its middle and its size.
const CELLS: usize = SIDE / 8;

/// A picture of one to three discs (0) and squares (1), apart from each other.
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
    Ok((image.into(), Boxes::new(boxes, labels, BoxFormat::Xywh)?.least_visible(0.4)))
}

/// `[batch, 6, cells, cells]`: a logit for each class, the middle in the cell, and the logarithms of half the sides.
fn forward(net: &[Conv2d], images: Tensor<4>) -> Tensor<4> {
    net.iter().enumerate().fold(images, |x, (n, conv)| conv.forward(if n == 0 { x } else { relu(x) }))
}

/// Score, picture, class, and the box as left, top, right, bottom.
type Object = (f32, usize, usize, [f32; 4]);

fn objects(cells: &[f32], least_score: f32) -> Vec<Object> {
    let of_cell = |at: usize| {
        let (picture, class, y, x) = (at / 2 / CELLS / CELLS, at / CELLS / CELLS % 2, at / CELLS % CELLS, at % CELLS);
        let number = |n: usize| cells[((picture * 6 + n) * CELLS + y) * CELLS + x];
        let [x, y] = [x as f32 + number(2), y as f32 + number(3)].map(|middle| 8.0 * middle);
        let [w, h] = [number(4), number(5)].map(|side| 8.0 * side.exp());
        (number(class), picture, class, [x - w, y - h, x + w, y + h])
    };
    (0..cells.len() / 3).map(of_cell).filter(|object| object.0 > least_score).collect()
}

fn iou(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let side = |n: usize| (a[n + 2].min(b[n + 2]) - a[n].max(b[n])).max(0.0);
    let area = |edges: &[f32; 4]| (edges[2] - edges[0]) * (edges[3] - edges[1]);
    side(0) * side(1) / (area(a) + area(b) - side(0) * side(1))
}

/// The mean over both classes of the area under precision by recall.
fn mean_average_precision(mut guesses: Vec<Object>, mut truth: Vec<Object>) -> f32 {
    guesses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all = [0, 1].map(|class| truth.iter().filter(|object| object.2 == class).count() as f32);
    let (mut seen, mut right, mut areas) = ([0.0; 2], [0.0; 2], 0.0);
    for (_, picture, class, edges) in guesses {
        seen[class] += 1.0;
        let is_it = |there: &Object| (there.1, there.2) == (picture, class) && iou(&there.3, &edges) >= 0.5;
        if let Some(at) = truth.iter().position(is_it) {
            truth.swap_remove(at);
            right[class] += 1.0;
            areas += right[class] / seen[class] / all[class];
        }
    }
    areas / 2.0
}

fn write_cells(boxes: &Boxes, cells: &mut [f32]) {
    cells.fill(0.0);
    for (numbers, class) in boxes.values(BoxFormat::Cxcywh).as_chunks::<4>().0.iter().zip(boxes.labels()) {
        let [x, y, w, h] = numbers.map(|number| number / 8.0);
        let mut put = |n: usize, to| cells[(n * CELLS + y as usize) * CELLS + x as usize] = to;
        put(*class as usize, 1.0);
        [x.fract(), y.fract(), (w / 2.0).ln(), (h / 2.0).ln()].into_iter().zip(2..).for_each(|(to, n)| put(n, to));
    }
}

fn main() -> Result<(), BoxError> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let (epochs, pictures) = (numbers.next().unwrap_or(Ok(12))?, numbers.next().unwrap_or(Ok(2048))?);
    let device = Device::default().autodiff();
    let image = Field::image("image", [3, SIDE, SIDE]).with_dtype(DType::F32);
    let cells = collate(
        [image, Field::new("cells", DType::F32, [6, CELLS, CELLS])],
        |(image, boxes): &(Image, Boxes), row| {
            row.image("image", image)?;
            write_cells(boxes, row.slice_mut("cells")?);
            Ok(())
        },
        |mut batch| Ok((batch.take::<4, Float>("image")?, batch.take::<4, Float>("cells")?)),
    );
    let builder = |cells| PinnedDataLoaderBuilder::new(cells).batch_size(32).set_device(device.clone());
    let data = |indices: std::ops::Range<usize>| indices.map(draw).collect::<Result<_, _>>().map(InMemDataset::new);
    let size = Resize::exact(SIDE as u32)?;
    let changes = (RandomIoUCrop::new().scale(0.6, 1.0)?, RandomHorizontalFlip::default(), size);
    let train = builder(cells.clone()).shuffle(7).augment(changes).build(data(0..pictures)?)?;
    let valid = builder(cells).augment(size).build(data(pictures..pictures * 9 / 8)?)?;

    let conv = |(n, width): (usize, &[usize])| {
        let conv = Conv2dConfig::new([width[0], width[1]], [3, 3]).with_stride(if n < 3 { [2, 2] } else { [1, 1] });
        conv.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(&device)
    };
    let mut net: Vec<Conv2d> = [3, 16, 32, 64, 64, 6].windows(2).enumerate().map(conv).collect();
    let mut optim = AdamConfig::new().init();
    for epoch in 1..=epochs {
        for batch in train.iter() {
            let (images, cells) = batch?;
            let split = |x: Tensor<4>| (x.clone().narrow(1, 0, 2), x.narrow(1, 2, 4));
            let ((logits, place), (there, right)) = (split(forward(&net, images)), split(cells));
            let has = there.clone().sum_dim(1).clamp(0.0, 1.0);
            let classes = there.clone() * log_sigmoid(logits.clone()) + (-there + 1.0) * log_sigmoid(-logits);
            let places = (place - right).powi_scalar(2) * has.clone();
            let loss = (places.sum() - classes.sum()) / (has.sum() + 1.0);
            net = optim.step(2e-3, net.clone(), GradientsParams::from_grads(loss.backward(), &net));
        }
        let (mut guesses, mut truth) = (Vec::new(), Vec::new());
        for batch in valid.iter() {
            let (images, cells) = batch?;
            guesses.extend(forward(&net, images).into_data().try_to_vec::<f32>()?);
            truth.extend(cells.into_data().try_to_vec::<f32>()?);
        }
        println!("epoch {epoch:>2}: mAP {:.3}", mean_average_precision(objects(&guesses, -3.0), objects(&truth, 0.5)));
    }
    Ok(())
}
