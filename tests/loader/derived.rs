//! `#[derive(Sample)]`: batches of a struct of plain fields, equal to those of a collate written by hand.

mod arrays;
mod places;

use crate::common::epoch;
use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType, tensor::f16};
use burn_pinned::vision::{BoxFormat, Boxes, CenterCrop, HasImage, Image, Mask, Part, Points};
use burn_pinned::{
    Augment, BoxError, Collate, Field, KeyedRng, MapTensors, PinnedDataLoaderBuilder, RawBatch, RowMut, Sample,
    TensorMapper, collate,
};
use image::{GrayImage, RgbImage};
use std::{path::PathBuf, sync::Arc};

const MEAN: [f32; 3] = [0.5, 0.4, 0.3];
const STD: [f32; 3] = [0.2, 0.3, 0.4];
const MOST: usize = 9;

/// Every type of field.
#[derive(Clone, Sample)]
#[sample(batch = Everything)]
struct Row {
    /// A number.
    label: u8,
    size: usize,
    #[sample(dtype = f32)]
    age: u8,
    good: bool,
    half: f16,
    array: [i32; 3],
    deep: [[[f32; 2]; 3]; 4],
    #[sample(dtype = bf16)]
    shared: [f32; 2],
    #[sample(shape = [3, 2, 2], mean = MEAN, std = STD)]
    pixels: Vec<u8>,
    #[sample(shape = [4], mean = 0.5, std = 2.0, dtype = f16)]
    scaled: Arc<[f32]>,
    #[sample(padded = [MOST], fill = -1, mask)]
    tokens: Vec<i64>,
    #[sample(padded = [5, 4])]
    quads: Vec<[f32; 4]>,
    #[sample(jagged = [MOST], dtype = u8)]
    bytes: Box<[u8]>,
    #[sample(fill = -7, mask)]
    maybe: Option<i32>,
    #[sample(fill = 0.5)]
    pair: Option<[[f32; 2]; 2]>,
    caption: String,
    title: Option<String>,
    #[sample(column)]
    path: PathBuf,
    #[sample(skip)]
    _weight: Vec<PathBuf>,
    #[sample(with = angle)]
    r#type: f32,
}

/// An angle as its sine and cosine.
mod angle {
    use super::*;

    pub(super) type Batch = Tensor<2>;

    pub(super) fn field(name: &'static str) -> Field {
        Field::new(name, DType::F32, [2])
    }

    pub(super) fn write(angle: &f32, name: &str, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.write(name, &[angle.sin(), angle.cos()])?)
    }

    pub(super) fn finish(batch: &mut RawBatch, name: &str) -> Result<Batch, BoxError> {
        Ok(batch.take(name)?)
    }
}

fn rows() -> Vec<Row> {
    let row = |n: usize| Row {
        label: n as u8,
        size: n * 1000,
        age: 200 + n as u8,
        good: n.is_multiple_of(3),
        half: f16::from_f32(n as f32 / 2.0),
        array: [n as i32, -1, 2],
        deep: [[[n as f32, 0.5]; 3]; 4],
        shared: [n as f32, 0.25],
        pixels: (0..12).map(|at| (at * 20 + n) as u8).collect(),
        scaled: Arc::from(vec![n as f32; 4]),
        tokens: (0..n % 5).map(|at| at as i64 + 1).collect(),
        quads: vec![[n as f32; 4]; n % 4],
        bytes: vec![n as u8; n % 3].into(),
        maybe: n.is_multiple_of(2).then_some(n as i32),
        pair: (n % 2 == 1).then_some([[n as f32; 2]; 2]),
        caption: format!("caption {n}"),
        title: n.is_multiple_of(2).then(|| format!("title {n}")),
        path: PathBuf::from(format!("{n}.txt")),
        _weight: Vec::new(),
        r#type: n as f32,
    };
    (0..17).map(row).collect()
}

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data_dtype(DType::F32).try_to_vec().unwrap()
}

fn ints<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i64> {
    tensor.into_data_dtype(DType::I64).try_to_vec().unwrap()
}

fn bools<const D: usize>(tensor: Tensor<D, Bool>) -> Vec<bool> {
    tensor.into_data().iter::<bool>().collect()
}

#[test]
fn every_type_of_field_arrives_as_it_was() {
    let builder = PinnedDataLoaderBuilder::new(Row::collate()).batch_size(6).num_workers(2).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(rows())).unwrap();
    let int = Device::flex().settings().int_dtype.into();
    let mut left = rows().into_iter();
    for batch in epoch(&*loader) {
        let rows: Vec<Row> = left.by_ref().take(6).collect();
        let n = rows.len();
        let of = |value: fn(&Row) -> f32| rows.iter().map(value).collect::<Vec<f32>>();
        assert_eq!((batch.label.dtype(), batch.size.dtype(), batch.tokens.dtype()), (int, int, int));
        assert_eq!(ints(batch.label), rows.iter().map(|row| i64::from(row.label)).collect::<Vec<_>>());
        assert_eq!(ints(batch.size), rows.iter().map(|row| row.size as i64).collect::<Vec<_>>());
        assert_eq!((batch.age.dtype(), floats(batch.age)), (DType::F32, of(|row| f32::from(row.age))));
        assert_eq!(bools(batch.good), rows.iter().map(|row| row.good).collect::<Vec<_>>());
        assert_eq!((batch.half.dtype(), floats(batch.half)), (DType::F16, of(|row| row.half.to_f32())));
        assert_eq!((batch.array.dims(), batch.deep.dims()), ([n, 3], [n, 4, 3, 2]));
        assert_eq!(ints(batch.array), rows.iter().flat_map(|row| row.array.map(i64::from)).collect::<Vec<_>>());
        let deep: Vec<f32> = rows.iter().flat_map(|row| row.deep.as_flattened().as_flattened().to_vec()).collect();
        assert_eq!(floats(batch.deep), deep);
        assert_eq!((batch.shared.dtype(), batch.shared.dims()), (DType::BF16, [n, 2]));
        assert_eq!((batch.pixels.dtype(), batch.pixels.dims()), (DType::F32, [n, 3, 2, 2]));
        let pixel = |(at, byte): (usize, &u8)| (f32::from(*byte) / 255.0 - MEAN[at / 4]) / STD[at / 4];
        let expected = rows.iter().flat_map(|row| row.pixels.iter().enumerate().map(pixel));
        assert!(
            floats(batch.pixels).into_iter().zip(expected).all(|(pixel, expected)| (pixel - expected).abs() < 1e-5)
        );
        let scaled: Vec<f32> = rows.iter().flat_map(|row| row.scaled.iter().map(|x| (x - 0.5) / 2.0)).collect();
        assert_eq!((batch.scaled.dtype(), floats(batch.scaled)), (DType::F16, scaled));

        let longest = rows.iter().map(|row| row.tokens.len()).max().unwrap().max(1);
        let steps = || rows.iter().flat_map(|row| (0..longest).map(|at| row.tokens.get(at).copied()));
        assert_eq!(ints(batch.tokens), steps().map(|token| token.unwrap_or(-1)).collect::<Vec<_>>());
        assert_eq!(bools(batch.tokens_mask), steps().map(|token| token.is_some()).collect::<Vec<_>>());
        let most = rows.iter().map(|row| row.quads.len()).max().unwrap().max(1);
        assert_eq!(batch.quads.dims(), [n, most, 4]);
        let bytes: Vec<i64> = rows.iter().flat_map(|row| row.bytes.iter().map(|byte| i64::from(*byte))).collect();
        assert_eq!((batch.bytes.dtype(), ints(batch.bytes)), (DType::U8, bytes));
        let offsets = rows.iter().scan(0, |end, row| {
            *end += row.bytes.len() as i64;
            Some(*end)
        });
        assert_eq!(ints(batch.bytes_offsets), [0].into_iter().chain(offsets).collect::<Vec<_>>());
        let maybe: Vec<i64> = rows.iter().map(|row| i64::from(row.maybe.unwrap_or(-7))).collect();
        assert_eq!(
            (ints(batch.maybe), bools(batch.maybe_mask)),
            (maybe, rows.iter().map(|row| row.maybe.is_some()).collect())
        );
        let pair: Vec<f32> =
            rows.iter().flat_map(|row| row.pair.unwrap_or([[0.5; 2]; 2]).as_flattened().to_vec()).collect();
        assert_eq!((batch.pair.dims(), floats(batch.pair)), ([n, 2, 2], pair));
        assert_eq!(batch.caption, rows.iter().map(|row| row.caption.clone()).collect::<Vec<_>>());
        assert_eq!(batch.title, rows.iter().map(|row| row.title.clone()).collect::<Vec<_>>());
        assert_eq!(batch.path, rows.iter().map(|row| row.path.clone()).collect::<Vec<_>>());
        assert_eq!(
            floats(batch.r#type),
            rows.iter().flat_map(|row| [row.r#type.sin(), row.r#type.cos()]).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_kept_data_set_has_the_same_derived_batches() {
    #[derive(Clone, Sample)]
    struct Text {
        #[sample(padded = [MOST], mask)]
        tokens: Vec<i64>,
        caption: String,
    }
    let text = |n: usize| Text { tokens: vec![n as i64; n % 7], caption: format!("caption {n}") };
    let dataset = || InMemDataset::new((0..23).map(text).collect::<Vec<_>>());
    let builder = || PinnedDataLoaderBuilder::new(Text::collate()).batch_size(4).shuffle(3).set_device(Device::flex());
    let show = |batch: TextBatch| (ints(batch.tokens), bools(batch.tokens_mask), batch.caption);
    let (read, kept) = (builder().build(dataset()).unwrap(), builder().build_kept(dataset()).unwrap());
    let [read, kept] = [read, kept].map(|loader| epoch(&*loader).into_iter().map(show).collect::<Vec<_>>());
    assert_eq!(read, kept);
}

#[test]
fn the_layout_is_the_one_of_a_hand() {
    #[derive(Clone, Sample)]
    struct House {
        rooms: [f32; 4],
        #[sample(padded = [9, 2], fill = 1.5)]
        walls: Vec<[f32; 2]>,
        price: f32,
    }
    let by_hand = collate(
        [
            Field::new("rooms", DType::F32, [4]),
            Field::padded("walls", [9, 2], 1.5f32),
            Field::new("price", DType::F32, []),
        ],
        |house: &House, row| {
            row.write("rooms", &house.rooms)?;
            row.write("walls", house.walls.as_flattened())?;
            Ok(row.put("price", house.price)?)
        },
        |mut batch| House::finish(&mut batch), // both mix
    );
    let fields = |fields: Vec<Field>| fields.iter().map(|field| format!("{field:?}")).collect::<Vec<_>>();
    assert_eq!(fields(House::fields()), fields(by_hand.layout()));
    let house = |n: usize| House { rooms: [n as f32; 4], walls: vec![[n as f32; 2]; n % 5], price: n as f32 };
    let dataset = || InMemDataset::new((0..10).map(house).collect::<Vec<_>>());
    let show = |batch: HouseBatch| (floats(batch.rooms), floats(batch.walls), floats(batch.price));
    let derived = PinnedDataLoaderBuilder::new(House::collate()).batch_size(4).set_device(Device::flex());
    let derived: Vec<_> = epoch(&*derived.build(dataset()).unwrap()).into_iter().map(show).collect();
    let by_hand = PinnedDataLoaderBuilder::new(by_hand).batch_size(4).set_device(Device::flex());
    assert_eq!(epoch(&*by_hand.build(dataset()).unwrap()).into_iter().map(show).collect::<Vec<_>>(), derived);
}

/// An image, and all that moves with it.
#[derive(Clone, Sample, HasImage)]
struct Street {
    #[sample(padded = [3, 12, 16], mask, mean = MEAN, std = STD, dtype = f16)]
    image: Image,
    #[sample(padded = [12, 16], fill = 255, mask)]
    road: Mask,
    #[sample(padded = [5], mask, format = Cxcywh)]
    cars: Boxes,
    #[sample(jagged = [5])]
    signs: Boxes,
    #[sample(shape = [2])]
    corners: Points,
}

/// Parts in any number.
#[derive(HasImage)]
struct Many {
    image: Image,
    lanes: Vec<Mask>,
    cars: Option<Boxes>,
    ways: Option<Points>,
    n: usize,
}

/// The same of one size, as bytes.
#[derive(Clone, Sample, HasImage)]
struct Fixed {
    #[sample(shape = [3, 8, 8])]
    image: Image,
    #[sample(shape = [8, 8], dtype = u8)]
    road: Mask,
}

fn street(n: usize) -> Street {
    let (width, height) = (8 + n as u32, 12 - n as u32);
    let boxes =
        |count: usize| Boxes::new(vec![[1.0, 2.0, 3.0, 6.0]; count], vec![n as i32; count], BoxFormat::Xyxy).unwrap();
    Street {
        image: RgbImage::from_pixel(width, height, image::Rgb([n as u8; 3])).into(),
        road: GrayImage::from_pixel(width, height, image::Luma([n as u8])).into(),
        cars: boxes(n % 3),
        signs: boxes(n % 2),
        corners: Points::new([[0.0, n as f32], [1.0, 2.0]]).unwrap(),
    }
}

#[test]
fn images_and_their_parts_are_fields() {
    let builder = PinnedDataLoaderBuilder::new(Street::collate()).batch_size(3).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new((0..3).map(street).collect())).unwrap();
    let batch = epoch(&*loader).pop().unwrap();
    assert_eq!((batch.image.dims(), batch.image.dtype()), ([3, 3, 12, 10], DType::F16));
    assert_eq!(
        (batch.image_mask.dims(), batch.road.dims(), batch.road_mask.dims()),
        ([3, 12, 10], [3, 12, 10], [3, 12, 10])
    );
    assert_eq!(bools(batch.image_mask.clone()), bools(batch.road_mask));
    assert_eq!(bools(batch.image_mask).into_iter().filter(|inside| *inside).count(), 8 * 12 + 9 * 11 + 10 * 10);
    assert_eq!(ints(batch.road).into_iter().filter(|number| *number == 255).count(), 3 * 120 - 295);
    assert_eq!((batch.cars.dims(), ints(batch.cars_labels)), ([3, 2, 4], vec![-1, -1, 1, -1, 2, 2]));
    assert_eq!(floats(batch.cars)[8..12], [2.0, 4.0, 2.0, 4.0]);
    assert_eq!(bools(batch.cars_mask), [false, false, true, false, true, true]);
    assert_eq!((floats(batch.signs), ints(batch.signs_labels)), (vec![1.0, 2.0, 3.0, 6.0], vec![1]));
    assert_eq!(ints(batch.signs_offsets), [0, 0, 1, 1]);
    assert_eq!((batch.corners.dims(), floats(batch.corners)[..2].to_vec()), ([3, 2, 2], vec![0.0, 0.0]));

    let mut parts = street(1);
    assert_eq!((parts.parts_mut().len(), parts.image_mut().dimensions()), (4, (9, 11)));
    let mut many = Many {
        image: parts.image,
        lanes: vec![parts.road.clone(), parts.road],
        cars: Some(parts.cars),
        ways: None,
        n: 3,
    };
    assert!(matches!(many.parts_mut()[..], [Part::Masks(_), Part::Boxes(_)]));
    assert_eq!((many.ways.is_none(), many.n), (true, 3));
}

#[test]
fn transforms_take_a_sample_that_derives_its_image() {
    let fixed = |n: usize| {
        let Street { image, road, .. } = street(n);
        Fixed { image, road }
    };
    let builder = PinnedDataLoaderBuilder::new(Fixed::collate()).batch_size(3).set_device(Device::flex());
    let builder = builder.augment(CenterCrop::new(8).unwrap());
    let loader = builder.build(InMemDataset::new((0..3).map(fixed).collect())).unwrap();
    let batch = epoch(&*loader).pop().unwrap();
    assert_eq!((batch.image.dims(), batch.image.dtype()), ([3, 3, 8, 8], DType::U8));
    assert_eq!((batch.road.dims(), batch.road.dtype()), ([3, 8, 8], DType::U8));
    assert_eq!(ints(batch.road.slice([0..3, 0..1, 0..1])), [0, 1, 2]);
}

#[test]
fn one_mean_is_for_all_channels_of_an_image() {
    #[derive(Clone, Sample)]
    struct Picture {
        #[sample(shape = [3, 8, 8], mean = 0.5, std = 0.25)]
        image: Image,
    }
    let picture = Picture { image: RgbImage::from_pixel(8, 8, image::Rgb([0, 51, 255])).into() };
    let builder = PinnedDataLoaderBuilder::new(Picture::collate()).batch_size(1).set_device(Device::flex());
    let batch = epoch(&*builder.build(InMemDataset::new(vec![picture])).unwrap()).remove(0);
    let pixel = floats(batch.image.slice([0..1, 0..3, 0..1, 0..1]));
    assert!(pixel.iter().zip([-2.0, -1.2, 2.0]).all(|(value, right)| (value - right).abs() < 1e-5), "{pixel:?}");
}

#[test]
fn the_tensors_of_a_derived_batch_are_reached_in_order() {
    struct Ranks(Vec<usize>);
    impl TensorMapper for Ranks {
        fn map<const D: usize, K: burn::tensor::kind::Basic + 'static>(
            &mut self,
            tensor: Tensor<D, K>,
        ) -> Tensor<D, K> {
            self.0.push(D);
            tensor
        }
    }
    let builder = PinnedDataLoaderBuilder::new(Row::collate()).batch_size(6).set_device(Device::flex());
    let batch: Everything = epoch(&*builder.build(InMemDataset::new(rows())).unwrap()).remove(0);
    let mut ranks = Ranks(Vec::new());
    let batch = batch.map_tensors(&mut ranks);
    assert_eq!(ranks.0, [1, 1, 1, 1, 1, 2, 4, 2, 4, 2, 2, 2, 3, 1, 1, 1, 1, 3, 2]);
    assert_eq!(batch.caption.len(), 6);
}

#[test]
fn wrong_means_are_an_error_of_the_batch() {
    #[derive(Clone, Sample)]
    struct Wrong {
        #[sample(shape = [3, 2], mean = [0.5, 0.5], std = [0.5, 0.5])]
        values: Vec<f32>,
    }
    let builder = PinnedDataLoaderBuilder::new(Wrong::collate()).batch_size(1).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(vec![Wrong { values: vec![0.0; 6] }])).unwrap();
    let error = loader.iter().next().unwrap().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("2 means and 2 deviations for 3 channels"), "{error}");
}

#[test]
fn further_images_move_with_the_first() {
    #[derive(HasImage)]
    struct Pair {
        before: RgbImage,
        after: Image,
        others: Vec<RgbImage>,
    }
    let image = || RgbImage::from_fn(6, 4, |x, y| image::Rgb([x as u8, y as u8, 7]));
    let pair = Pair { before: image(), after: image().into(), others: vec![image()] };
    let rng = &mut KeyedRng::for_order(1, 0);
    let pair = CenterCrop::new(3).unwrap().apply(pair, rng).unwrap();
    assert_eq!(pair.before.dimensions(), (3, 3));
    assert_eq!((&pair.after.to_rgb().unwrap(), &pair.others[0]), (&pair.before, &pair.before));
}
