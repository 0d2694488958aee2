//! The derives where other code stands around them: constants of any name, macros by example, levels of lints, parameters, and
//! the crate under another path.

use super::{bools, epoch, floats, ints};
use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
use burn_pinned::{MapTensors, PinnedDataLoaderBuilder, Sample, vision};
use image::RgbImage;

/// The crate, as another one may hand it on.
mod handed_on {
    pub(super) use ::burn_pinned as loader;
}

fn batch<S: Sample + Clone + Send + Sync>(sample: S) -> S::Batch {
    let builder = PinnedDataLoaderBuilder::new(S::collate()).batch_size(1).set_device(Device::flex());
    epoch(&*builder.build(InMemDataset::new(vec![sample])).unwrap()).remove(0)
}

#[test]
fn constants_may_have_any_name() {
    const FILL: i64 = -3;
    const PAD: f32 = 0.5;
    #[derive(Clone, Sample)]
    struct Row {
        #[sample(padded = [4], fill = FILL)]
        tokens: Vec<i64>,
        #[sample(fill = FILL - 1)]
        maybe: Option<i64>,
        #[sample(fill = PAD)]
        pair: Option<[f32; 2]>,
        #[sample(shape = [2], mean = 1.0 / 2.0, std = (2.0))]
        scaled: Vec<f32>,
    }
    let row = Row { tokens: Vec::new(), maybe: None, pair: None, scaled: vec![0.5, 2.5] };
    let batch = batch(row);
    assert_eq!((ints(batch.tokens), ints(batch.maybe)), (vec![-3], vec![-4]));
    assert_eq!((floats(batch.pair), floats(batch.scaled)), (vec![0.5; 2], vec![0.0, 1.0]));
}

/// Makes a sample of parts of each kind that a macro by example takes.
macro_rules! row {
    ($name:ident, $batch:ident, $plain:ident, $text:ident, $number:ty, $array:ty, $list:ty, $slice:ty, $most:expr, $size:expr, $mean:expr, $fill:expr,
        $dtype:ident, $module:path, $format:ident) => {
        #[derive(Clone, Sample)]
        #[sample(batch = $batch, crate = $crate::derived::places::handed_on::loader)]
        struct $name {
            plain: $plain,
            text: $text,
            number: $number,
            array: $array,
            #[sample(fill = $fill, mask)]
            maybe: Option<$number>,
            #[sample(padded = [$most], fill = $fill, mask, dtype = $dtype)]
            list: Vec<$number>,
            #[sample(padded = $size)]
            of_arrays: Vec<$array>,
            #[sample(jagged = [$most])]
            whole: $list,
            #[sample(shape = [$most])]
            shared: Box<$slice>,
            #[sample(shape = [1, $most], mean = $mean, std = 2.0)]
            scaled: Vec<u8>,
            #[sample(with = $module)]
            turned: f32,
            #[sample(padded = [$most], format = $format)]
            boxes: vision::Boxes,
        }
    };
}

row!(Row, Rows, usize, String, i32, [i32; 2], Vec<[i32; 2]>, [u8], 1 + 1, [3], 0.5, -1 - 1, i64, super::angle, Xywh);

#[test]
fn a_macro_by_example_makes_samples() {
    let row = Row {
        plain: 9,
        text: "nine".into(),
        number: 7,
        array: [1, 2],
        maybe: None,
        list: vec![5],
        of_arrays: vec![[3, 4]; 3],
        whole: vec![[5, 6]],
        shared: Box::new([8, 9]),
        scaled: vec![0, 255],
        turned: 0.0,
        boxes: vision::Boxes::new([[1.0, 2.0, 4.0, 6.0]], [1], vision::BoxFormat::Xyxy).unwrap(),
    };
    let batch: Rows = batch(row);
    assert_eq!((ints(batch.plain), batch.text), (vec![9], vec!["nine".to_string()]));
    assert_eq!((ints(batch.number), ints(batch.array)), (vec![7], vec![1, 2]));
    assert_eq!((ints(batch.maybe), bools(batch.maybe_mask)), (vec![-2], vec![false]));
    assert_eq!((batch.list.dtype(), ints(batch.list), bools(batch.list_mask)), (DType::I64, vec![5], vec![true]));
    assert_eq!((batch.of_arrays.dims(), batch.whole.dims()), ([1, 3, 2], [1, 2]));
    assert_eq!(ints(batch.shared), [8, 9]);
    assert_eq!((batch.scaled.dims(), floats(batch.scaled)), ([1, 1, 2], vec![-0.25, 0.25]));
    assert_eq!((floats(batch.turned), floats(batch.boxes)), (vec![0.0, 1.0], vec![1.0, 2.0, 3.0, 4.0]));
}

/// Warnings of this module are errors, but where a sample allows them: its batch has the same names.
#[deny(non_snake_case, non_camel_case_types, dead_code)]
mod strict {
    use burn_pinned::Sample;

    #[derive(Clone, Sample)]
    #[allow(non_camel_case_types)]
    #[expect(non_snake_case, reason = "the names are those of the file")]
    #[sample(batch = rows_of_C)]
    pub(super) struct row_of_C {
        #[sample(padded = [2], mask)]
        pub(super) Values: Vec<f32>,
        pub(super) ID: u8,
        #[allow(dead_code)]
        #[sample(fill = 3, mask)]
        maybe: Option<u8>,
        #[cfg(any())]
        nowhere: NoType,
    }

    impl row_of_C {
        pub(super) fn new() -> Self {
            Self { Values: vec![1.0], ID: 4, maybe: None }
        }
    }
}

#[test]
fn what_is_allowed_of_a_sample_is_allowed_of_its_batch() {
    let batch = batch(strict::row_of_C::new());
    assert_eq!((floats(batch.Values), ints(batch.ID)), (vec![1.0], vec![4]));
    assert_eq!(bools(batch.Values_mask), [true]);
}

/// Parameters and types with the names that a derive might have chosen.
#[derive(MapTensors)]
#[map_tensors(crate = "handed_on::loader")]
struct Named<Mapper, M, const N: usize> {
    mapper: Mapper,
    field_0: [M; N],
}

#[derive(MapTensors)]
#[expect(clippy::large_enum_variant, reason = "of a test")]
enum Either<Mapper> {
    One(Mapper),
    Other { mapper: Tensor<1> },
}

/// Makes a batch, and a sample with an image, of the types that a macro by example is given.
macro_rules! given {
    ($batch:ident, $inner:ident, $tensor:ty, $street:ident, $image:ident, $mask:ty) => {
        #[derive(MapTensors)]
        struct $batch<$inner> {
            inner: $inner,
            list: Vec<$inner>,
            tensor: $tensor,
        }

        #[derive(vision::HasImage)]
        struct $street {
            image: $image,
            road: Option<$mask>,
        }
    };
}

given!(Given, Inner, Tensor<1>, Lane, RgbImage, vision::Mask);

#[derive(Clone, Sample, vision::HasImage)]
#[sample(crate = "handed_on::loader")]
struct Street {
    #[sample(shape = [3, 2, 2])]
    image: vision::Image,
    #[sample(shape = [2, 2])]
    road: vision::Mask,
}

#[test]
fn parameters_and_the_crate_may_have_other_names() {
    struct Count(usize);
    impl burn_pinned::TensorMapper for Count {
        fn map<const D: usize, K: burn::tensor::kind::Basic + 'static>(
            &mut self,
            tensor: Tensor<D, K>,
        ) -> Tensor<D, K> {
            self.0 += 1;
            tensor
        }
    }
    let (mut count, tensor) = (Count(0), Tensor::<1>::zeros([1], &Device::flex()));
    let named = Named { mapper: tensor.clone(), field_0: [tensor.clone(), tensor.clone()] }.map_tensors(&mut count);
    assert_eq!((named.mapper.dims(), named.field_0.len(), count.0), ([1], 2, 3));
    for either in [Either::One(tensor.clone()), Either::Other { mapper: tensor.clone() }] {
        match either.map_tensors(&mut count) {
            Either::One(tensor) | Either::Other { mapper: tensor } => assert_eq!(tensor.dims(), [1]),
        }
    }
    assert_eq!(count.0, 5);
    let given = Given { inner: tensor.clone(), list: vec![tensor.clone(); 2], tensor }.map_tensors(&mut count);
    assert_eq!((given.inner.dims(), given.list.len(), given.tensor.dims(), count.0), ([1], 2, [1], 9));
    let mut lane = Lane { image: RgbImage::new(2, 3), road: Some(image::GrayImage::new(2, 3).into()) };
    assert_eq!(vision::HasImage::image_mut(&mut lane).dimensions(), (2, 3));
    assert_eq!(vision::HasImage::parts_mut(&mut lane).len(), 1);

    let image = RgbImage::new(2, 2).into();
    let mut street = Street { image, road: image::GrayImage::new(2, 2).into() };
    assert_eq!(vision::HasImage::parts_mut(&mut street).len(), 1);
    assert_eq!(batch(street).image.dims(), [1, 3, 2, 2]);
}
