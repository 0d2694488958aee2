//! Values that do not fit the integers of a tensor: they are errors, and never other numbers. Flex has integers of 32 bits.

use crate::common::epoch;
use burn::{
    data::{
        dataloader::{DataLoader, batcher::Batcher},
        dataset::InMemDataset,
    },
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedBatcher, PinnedDataLoaderBuilder, RawBatch, RowMut, Sample,
    collate, fault::Quota,
};
use std::sync::Arc;

const LARGE: i64 = 5_000_000_000;

fn builder<I: Send + 'static, C: Collate<I>>(collate: C) -> PinnedDataLoaderBuilder<I, C::Batch> {
    PinnedDataLoaderBuilder::new(collate).batch_size(4).num_workers(2).set_device(Device::flex())
}

fn values<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i64> {
    tensor.into_data_dtype(DType::I64).try_to_vec().unwrap()
}

type Outcome = Result<Vec<i64>, (Option<usize>, String)>;

/// What becomes of each batch: its values, or the index and the message of its error.
fn outcomes<O: 'static>(loader: &dyn DataLoader<O>, show: impl Fn(O) -> Vec<i64>) -> Vec<Outcome> {
    let failed = |error: &Error| match error {
        Error::Failed { place, source } => (place.index, source.to_string()),
        other => panic!("{other}"),
    };
    loader.iter().map(|batch| batch.map(&show).map_err(|error| failed(Error::of(&error).unwrap()))).collect()
}

/// Makes a test that a value in row 3 of a derived sample, whose other rows have another value, is an error of that row.
macro_rules! beyond {
    ($($name:ident: $(#[$option:meta])* $ty:ty, $good:expr, $bad:expr => $says:literal;)*) => {$(
        #[test]
        fn $name() {
            #[derive(Clone, Sample)]
            #[allow(dead_code)]
            struct Row {
                $(#[$option])*
                value: $ty,
            }
            let rows = |bad: usize| {
                InMemDataset::new((0..8).map(|n| Row { value: if n == bad { $bad } else { $good } }).collect())
            };
            let build = |bad: usize| builder(Row::collate()).build(rows(bad)).unwrap();
            assert_eq!(epoch(&*build(9)).len(), 2, "all are good");
            let mut batches = build(3).iter().map(|batch| batch.map(drop).map_err(|error| error.to_string())).collect::<Vec<_>>();
            let error = batches.remove(0).unwrap_err();
            assert!(error.contains($says) && error.contains("3") && error.contains("at the field `value`"), "{error}");
            assert_eq!(batches, [Ok(())]);
            let kept = builder(Row::collate()).build_kept(rows(3)).unwrap_err().to_string();
            // No jagged field is kept, whatever its values.
            assert!(kept.contains($says) || kept.contains("lie end to end"), "{kept}");
        }
    )*};
}

beyond! {
    an_i64: i64, 7, LARGE => "value 5000000000 of row 3 does not fit into i32: write `dtype = i64`";
    an_i64_below: i64, i64::from(i32::MIN), i64::from(i32::MIN) - 1 => "value -2147483649 of row 3";
    a_u64: u64, 7, 1_700_000_000_000 => "value 1700000000000 of row 3 does not fit into i32: write `dtype = u64`";
    a_usize: usize, 7, 1 << 40 => "value 1099511627776 of row 3 does not fit into i32: write `dtype = i64`";
    an_isize: isize, 7, -(1 << 40) => "value -1099511627776 of row 3 does not fit into i32";
    a_u32: u32, i32::MAX as u32, 4_000_000_000 => "value 4000000000 of row 3 does not fit into i32: write `dtype = u32`";
    an_option: #[sample(fill = 0)] Option<i64>, None, Some(LARGE) => "value 5000000000 of row 3";
    the_fill_of_an_option: #[sample(fill = 5_000_000_000)] Option<i64>, Some(1), None => "value 5000000000 of row 3";
    an_option_of_usize: #[sample(fill = 0)] Option<usize>, None, Some(1 << 40) => "value 1099511627776 of row 3";
    a_usize_beyond_all: #[sample(dtype = u64)] usize, 1, usize::MAX => "value 18446744073709551615 does not fit into i64";
    an_array: [u64; 2], [1, 2], [1, LARGE as u64] => "value 5000000000 of row 3";
    arrays_in_an_array: [[i64; 2]; 2], [[1; 2]; 2], [[1, 2], [3, LARGE]] => "value 5000000000 of row 3";
    a_list: #[sample(shape = [2])] Vec<i64>, vec![1, 2], vec![LARGE, 1] => "value 5000000000 of row 3";
    a_padded_list: #[sample(padded = [9], mask)] Vec<i64>, vec![1; 5], vec![1, LARGE] => "value 5000000000 of row 3";
    a_jagged_list: #[sample(jagged = [9])] Arc<[u32]>, [1; 5].into(), [u32::MAX].into() => "value 4294967295 of row 3";
    bytes_of_an_i64: #[sample(dtype = u8)] i64, 255, 256 => "value 256 of row 3 does not fit into u8: write `dtype = i64`";
    a_negative_number: #[sample(dtype = u32)] i32, 0, -1 => "value -1 of row 3 does not fit into u32: write `dtype = i32`";
    a_u64_beyond_all: #[sample(dtype = i64)] u64, 1, u64::MAX => "does not fit into i64: write `dtype = u64`";
    no_number: #[sample(dtype = i32)] f32, -2.5, f32::NAN => "value NaN of row 3 does not fit into i32: write `dtype = f32`";
    a_large_float: #[sample(dtype = i64)] f64, 1e18, 1e19 => "does not fit into i64: write `dtype = f64`";
    an_infinite_half: #[sample(dtype = f16)] u32, 65504, 70_000 => "value 70000 of row 3 does not fit into f16";
}

/// The same number in each kind of derived field, all of which keep it.
#[derive(Clone, Sample)]
struct Wide {
    #[sample(dtype = i64)]
    id: usize,
    #[sample(dtype = u64)]
    stamp: u64,
    #[sample(padded = [3], fill = 5_000_000_000, dtype = i64)]
    ids: Vec<i64>,
    label: u32,
}

fn wide(n: usize) -> Wide {
    let id = LARGE as usize + n;
    Wide { id, stamp: u64::MAX - n as u64, ids: vec![id as i64; n % 3], label: n as u32 }
}

#[test]
fn a_dtype_that_takes_the_values_keeps_them() {
    for kept in [false, true] {
        let (builder, dataset) = (builder(Wide::collate()), InMemDataset::new((0..4).map(wide).collect()));
        let loader = if kept { builder.build_kept(dataset) } else { builder.build(dataset) }.unwrap();
        let batch = epoch(&*loader).remove(0);
        assert_eq!(values(batch.id), [LARGE, LARGE + 1, LARGE + 2, LARGE + 3]);
        let stamps: Vec<u64> = batch.stamp.into_data().try_to_vec().unwrap();
        assert_eq!(stamps, [u64::MAX, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3]);
        assert_eq!(values(batch.ids), [LARGE, LARGE, LARGE + 1, LARGE, LARGE + 2, LARGE + 2, LARGE, LARGE]);
        assert_eq!((batch.label.dtype(), values(batch.label)), (DType::I32, vec![0, 1, 2, 3]));
    }
}

#[derive(Clone, Sample)]
struct Id {
    id: i64,
}

fn ids(bad: impl Fn(usize) -> bool) -> InMemDataset<Id> {
    InMemDataset::new((0..8).map(|n| Id { id: if bad(n) { LARGE } else { n as i64 } }).collect())
}

#[test]
fn a_value_that_does_not_fit_is_a_bad_sample() {
    let policy = |policy: BadSamples| builder(Id::collate()).bad_samples(policy);
    let bad = |n: usize| n == 2;
    let show = |batch: IdBatch| values(batch.id);

    let failed = outcomes(&*policy(BadSamples::Fail).build(ids(bad)).unwrap(), show);
    let (index, message) = failed[0].clone().unwrap_err();
    assert_eq!(index, Some(2), "{message}");
    assert_eq!(failed[1], Ok(vec![4, 5, 6, 7]));

    let skip = || policy(BadSamples::Skip(Quota::Count(1)));
    for loader in [skip().build(ids(bad)).unwrap(), skip().build_kept(ids(bad)).unwrap()] {
        assert_eq!(outcomes(&*loader, show), [Ok(vec![0, 1, 3]), Ok(vec![4, 5, 6, 7])]);
    }
    let replace = || policy(BadSamples::Replace { tries: 1 });
    for loader in [replace().build(ids(bad)).unwrap(), replace().build_kept(ids(bad)).unwrap()] {
        assert_eq!(outcomes(&*loader, show), [Ok(vec![0, 1, 3, 3]), Ok(vec![4, 5, 6, 7])]);
    }
}

#[test]
fn padding_that_does_not_fit_is_refused_by_build() {
    #[derive(Clone, Sample)]
    struct Text {
        #[sample(padded = [3], fill = 5_000_000_000)]
        ids: Vec<i64>,
    }
    let error = builder(Text::collate()).build(InMemDataset::new(vec![Text { ids: vec![1] }])).unwrap_err().to_string();
    assert!(
        error.contains("the padding 5000000000 of field `ids` does not fit into i32; write `dtype = i64`"),
        "{error}"
    );
}

/// How a collate of a hand writes the value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Hand {
    Put,
    Place,
    Padded,
    Plane,
    Jagged,
    Padding,
}

const HANDS: [Hand; 6] = [Hand::Put, Hand::Place, Hand::Padded, Hand::Plane, Hand::Jagged, Hand::Padding];

/// A field of `i64` that is taken as the device's integers, or as it is.
#[derive(Debug, Clone, Copy)]
struct ByHand {
    hand: Hand,
    as_it_is: bool,
}

impl Collate<i64> for ByHand {
    type Batch = Vec<i64>;

    fn layout(&self) -> Vec<Field> {
        let before = Field::new("before", DType::U8, []);
        let value = match self.hand {
            Hand::Put | Hand::Place => Field::new("value", DType::I64, []),
            Hand::Padded => Field::padded("value", [3], 0i64).with_mask(),
            Hand::Plane => Field::padded_2d("value", [2, 2, 3], 0i64),
            Hand::Jagged => Field::jagged::<i64>("value", [2, 2]),
            Hand::Padding => Field::padded("value", [3], LARGE),
        };
        vec![before, value]
    }

    fn write(&self, value: &i64, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("before", 0u8)?;
        match self.hand {
            Hand::Put => row.put("value", *value)?,
            Hand::Place => row.slice_mut("value")?[0] = *value,
            Hand::Padded => row.write("value", &vec![*value; 1 + (*value % 3) as usize])?,
            // The last line of the second plane.
            Hand::Plane => row.write_2d("value", [2, 1], &[0, 0, 0, *value])?,
            Hand::Jagged if *value % 2 == 1 => row.write::<i64>("value", &[])?,
            Hand::Jagged => row.write("value", &[0, *value, 0, 0])?,
            // The rows have a small number, and one of them is short if the value is large.
            Hand::Padding => row.write("value", &vec![1i64; if *value == LARGE { 2 } else { 3 }])?,
        }
        Ok(())
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Vec<i64>, BoxError> {
        fn taken<const D: usize>(batch: &mut RawBatch, as_it_is: bool) -> Result<Vec<i64>, BoxError> {
            let own = batch.take_int::<D>("value");
            if !as_it_is {
                let own = own?;
                assert_eq!(own.dtype(), DType::I32);
                return Ok(values(own));
            }
            // What cannot be cast may be taken as it is.
            Ok(if own.is_err() { batch.take::<D, Int>("value")?.into_data().try_to_vec()? } else { Vec::new() })
        }
        match self.hand {
            Hand::Put | Hand::Place => taken::<1>(&mut batch, self.as_it_is),
            Hand::Padded | Hand::Padding | Hand::Jagged => taken::<2>(&mut batch, self.as_it_is),
            Hand::Plane => taken::<4>(&mut batch, self.as_it_is),
        }
    }
}

fn large(row: usize) -> InMemDataset<i64> {
    InMemDataset::new((0..8).map(|n| if n == row { LARGE } else { n as i64 }).collect())
}

#[test]
fn a_field_of_a_hand_is_not_cast_where_a_value_does_not_fit() {
    for hand in HANDS {
        let of = |as_it_is| builder(ByHand { hand, as_it_is });
        let good = outcomes(&*of(false).build(large(9)).unwrap(), |values| values);
        assert!(good.iter().all(Result::is_ok) && good.len() == 2, "{hand:?}: {good:?}");
        let mut loaders = vec![of(false).build(large(6)).unwrap()];
        if !matches!(hand, Hand::Plane | Hand::Jagged) {
            loaders.push(of(false).build_kept(large(6)).unwrap());
        }
        for loader in loaders {
            let batches = outcomes(&*loader, |values| values);
            assert_eq!(batches[0], good[0], "{hand:?}");
            let (index, message) = batches[1].clone().unwrap_err();
            let says = "value 5000000000 of row 2 does not fit into i32: write `dtype = i64` at the field `value`";
            assert!(index.is_none() && message.contains(says), "{hand:?}: {message}");
        }
        let taken = outcomes(&*of(true).build(large(6)).unwrap(), |values| values);
        assert!(taken[0] == Ok(Vec::new()) && taken[1].as_ref().unwrap().contains(&LARGE), "{hand:?}: {taken:?}");
    }
}

/// Skipped samples are no part of the batch, whatever they have written.
#[test]
fn what_a_skipped_sample_wrote_does_not_count() {
    let bad = collate(
        [Field::new("value", DType::I64, []), Field::new("other", DType::I32, [])],
        |value: &i64, row| {
            row.put("value", *value)?;
            row.put("other", 0i32)?;
            if *value == LARGE { Err("a bad one".into()) } else { Ok(()) }
        },
        |mut batch| Ok(values(batch.take_int::<1>("value")?)),
    );
    let skip = builder(bad).bad_samples(BadSamples::Skip(Quota::Count(1))).build(large(1)).unwrap();
    assert_eq!(outcomes(&*skip, |values| values), [Ok(vec![0, 2, 3]), Ok(vec![4, 5, 6, 7])]);
}

#[test]
fn a_batcher_of_a_collate_says_so_too() {
    let message = |panic: Box<dyn std::any::Any + Send>| panic.downcast_ref::<String>().cloned().unwrap_or_default();
    let derived = PinnedBatcher::new(Id::collate()).unwrap();
    let items = vec![Id { id: 1 }, Id { id: LARGE }];
    let batch = || derived.batch(items, &Device::flex());
    let panic = message(std::panic::catch_unwind(std::panic::AssertUnwindSafe(batch)).map(drop).unwrap_err());
    assert!(panic.contains("value 5000000000 of row 1 does not fit into i32"), "{panic}");
    for hand in HANDS.into_iter().filter(|hand| *hand != Hand::Padding) {
        let batcher = PinnedBatcher::new(ByHand { hand, as_it_is: false }).unwrap();
        assert!(!batcher.batch(vec![2, 4], &Device::flex()).is_empty());
        let batch = || batcher.batch(vec![2, 4, LARGE], &Device::flex());
        let panic = message(std::panic::catch_unwind(std::panic::AssertUnwindSafe(batch)).map(drop).unwrap_err());
        assert!(panic.contains("value 5000000000 of row 2 does not fit into i32"), "{hand:?}: {panic}");
    }
}

/// The tensors of a Burn batcher keep their dtypes, so none of their values changes.
#[test]
fn integers_of_a_batcher_stay_as_they_are() {
    #[derive(Clone)]
    struct Ids;
    impl Batcher<i64, Tensor<1, Int>> for Ids {
        fn batch(&self, items: Vec<i64>, device: &Device) -> Tensor<1, Int> {
            Tensor::from_data(items.as_slice(), (device, DType::I64))
        }
    }
    let builder = PinnedDataLoaderBuilder::from_batcher(Ids).batch_size(4).set_device(Device::flex());
    let batches = epoch(&*builder.build(large(1)).unwrap());
    assert_eq!(batches[0].clone().into_data().try_to_vec::<i64>().unwrap(), [0, LARGE, 2, 3]);
}
