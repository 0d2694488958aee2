//! Access to the tensors of any batch type.

use burn::tensor::{Tensor, TensorData, kind::Basic};
use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, Hash},
    path::PathBuf,
};

/// An operation on every tensor of a batch, of any rank and kind.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `TensorMapper`",
    label = "this must replace the tensors of a batch",
    note = "only `MapTensors::map_tensors` takes one: pass on the `mapper` that it got"
)]
pub trait TensorMapper {
    /// Replaces one tensor.
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K>;
}

/// A batch whose tensors can be replaced one by one. [`from_batcher`](crate::PinnedDataLoaderBuilder::from_batcher)
/// uses it to move them to the device. It is implemented for tensors, for tuples, `Vec`, `Option`, `Box`, arrays and
/// maps of them, and for plain values. For your own struct or enum use `#[derive(MapTensors)]` of the feature `derive`;
/// without this feature use [`map_tensors!`](crate::map_tensors) for a plain struct.
///
#[cfg_attr(feature = "derive", doc = "```")]
#[cfg_attr(not(feature = "derive"), doc = "```ignore")]
/// use burn::prelude::*;
/// use burn_pinned::MapTensors;
/// use std::collections::HashMap;
///
/// # #[derive(Clone, Debug)]
/// enum Split { Train, Valid }
///
/// #[derive(MapTensors)]
/// struct Batch<const D: usize> {
///     values: Tensor<D>,
///     by_name: HashMap<String, Tensor<1, Int>>,
///     #[map_tensors(skip)]
///     split: Split, // a type without tensors, and without the trait
/// }
///
/// #[derive(MapTensors)]
/// enum Either { Images(Batch<4>, Tensor<1, Bool>), Texts(Batch<2>) }
/// ```
///
/// `skip` is for fields without tensors whose types do not implement the trait, such as types of other crates. If this
/// crate has another name in your program, put `#[map_tensors(crate = "other::name")]` on the type.
///
/// An implementation must visit the same tensors in the same order each time. On an accelerator it runs twice per
/// batch. The first run, on the pin thread, takes the values out; in this run the mapper returns tensors without
/// elements. The second run is in `next()`, on the training thread. There the mapper returns the tensors on the device,
/// and the implementation may compute with them. On a CPU backend it runs once, on a worker, and the mapper returns
/// each tensor unchanged.
#[diagnostic::on_unimplemented(
    message = "the tensors of `{Self}` cannot be reached to send them to a device",
    label = "this batch does not implement `MapTensors`",
    note = "a type of your own: put `#[derive(burn_pinned::MapTensors)]` at it (feature `derive`), or name a struct's fields \
            in `burn_pinned::map_tensors!`",
    note = "a type without tensors, of a field of your batch: put `#[map_tensors(skip)]` at the field, and derive the batch"
)]
pub trait MapTensors: Sized {
    /// Replaces every tensor by the mapper's result for it.
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self;
}

impl<const D: usize, K: Basic + 'static> MapTensors for Tensor<D, K> {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        mapper.map(self)
    }
}

impl<T: MapTensors> MapTensors for Vec<T> {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        self.into_iter().map(|part| part.map_tensors(mapper)).collect()
    }
}

impl<T: MapTensors> MapTensors for Option<T> {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        self.map(|part| part.map_tensors(mapper))
    }
}

impl<T: MapTensors> MapTensors for Box<T> {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        Box::new((*self).map_tensors(mapper))
    }
}

impl<T: MapTensors, const N: usize> MapTensors for [T; N] {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        self.map(|part| part.map_tensors(mapper))
    }
}

/// Maps are visited in the order of their keys, so the order is the same each time.
impl<K: Ord + Hash, T: MapTensors, S: BuildHasher + Default> MapTensors for HashMap<K, T, S> {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        let sorted: BTreeMap<K, T> = self.into_iter().collect();
        sorted.map_tensors(mapper).into_iter().collect()
    }
}

impl<K: Ord, T: MapTensors> MapTensors for BTreeMap<K, T> {
    fn map_tensors<M: TensorMapper>(self, mapper: &mut M) -> Self {
        self.into_iter().map(|(key, part)| (key, part.map_tensors(mapper))).collect()
    }
}

macro_rules! plain {
    ($($plain:ty)*) => {$(
        impl MapTensors for $plain {
            fn map_tensors<M: TensorMapper>(self, _: &mut M) -> Self {
                self
            }
        }
    )*};
}
plain!(() bool char u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 String &'static str PathBuf TensorData);

macro_rules! tuples {
    ($(($($part:ident)*))*) => {$(
        impl<$($part: MapTensors),*> MapTensors for ($($part,)*) {
            fn map_tensors<Mapper: TensorMapper>(self, mapper: &mut Mapper) -> Self {
                #[expect(non_snake_case, reason = "the type's name serves for its value")]
                let ($($part,)*) = self;
                ($($part.map_tensors(mapper),)*)
            }
        }
    )*};
}
tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));

/// Implements [`MapTensors`](crate::MapTensors) for a batch struct with named fields and without generic parameters.
/// Name every field: if one is missing, it does not compile. All other types, and fields that do not implement the
/// trait, need `#[derive(MapTensors)]` of the feature `derive`.
///
/// ```
/// use burn::prelude::*;
/// use burn_pinned::map_tensors;
///
/// struct Boxes { corners: Tensor<3>, count: Option<Tensor<1, Int>> }
/// struct DetectionBatch { images: Tensor<4>, boxes: Vec<Boxes>, split: String }
///
/// map_tensors!(Boxes { corners, count });
/// map_tensors!(DetectionBatch { images, boxes, split });
/// ```
#[macro_export]
macro_rules! map_tensors {
    ($batch:ty { $($field:ident),+ $(,)? }) => {
        impl $crate::MapTensors for $batch {
            fn map_tensors<M: $crate::TensorMapper>(self, mapper: &mut M) -> Self {
                // The order of the names is the order of the visit.
                Self { $($field: $crate::MapTensors::map_tensors(self.$field, mapper)),+ }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Bool, Device, Int};

    struct Inner {
        mask: Tensor<1, Bool>,
        name: String,
    }
    struct Batch {
        x: Tensor<2>,
        nested: Vec<Inner>,
        rest: (Option<Tensor<1, Int>>, u8),
    }
    map_tensors!(Inner { mask, name });
    map_tensors!(Batch { x, nested, rest });

    #[derive(Default)]
    struct TensorDims(Vec<Vec<usize>>);

    impl TensorMapper for TensorDims {
        fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
            self.0.push(tensor.dims().to_vec());
            tensor
        }
    }

    #[test]
    fn every_tensor_is_reached_in_order() {
        let device = Device::flex();
        let inner = |n| Inner { mask: Tensor::empty([n], &device), name: "kept".into() };
        let rest = (Some(Tensor::zeros([7], &device)), 3);
        let batch = Batch { x: Tensor::zeros([2, 3], &device), nested: vec![inner(4), inner(5)], rest };
        let mut seen = TensorDims::default();
        let batch = batch.map_tensors(&mut seen);
        assert_eq!(seen.0, [vec![2, 3], vec![4], vec![5], vec![7]]);
        assert_eq!((batch.nested[1].name.as_str(), batch.rest.1), ("kept", 3));
        assert_eq!(batch.nested[0].mask.dims(), [4]);
    }
}
