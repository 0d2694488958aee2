//! Every dtype and shape that a batch can have, and what goes wrong with fields.

use crate::common::epoch;
use burn::{
    data::dataset::InMemDataset,
    tensor::{Bool, BoolStore, DType, Device, Float, Int, Tensor, bf16, f16},
};
use burn_pinned::{
    BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut, collate, fault::FieldError,
};
use proptest::prelude::*;

/// One field of every dtype, of ranks 1 to 4.
struct Everything;

type Everywhere = (Vec<u8>, Vec<i32>, Vec<i64>, Vec<f32>, Vec<f64>, Vec<f32>, Vec<f32>, Vec<bool>);

impl Collate<usize> for Everything {
    type Batch = Everywhere;

    fn layout(&self) -> Vec<Field> {
        vec![
            Field::new("u8", DType::U8, [3, 2, 2]),
            Field::new("i32", DType::I32, []),
            Field::new("i64", DType::I64, [1]),
            Field::new("f32", DType::F32, [5]),
            Field::new("f64", DType::F64, [2, 2]),
            Field::new("f16", DType::F16, [3]),
            Field::new("bf16", DType::BF16, [7]),
            Field::new("bool", DType::Bool(BoolStore::Native), [3]),
        ]
    }

    fn write(&self, &n: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("u8", &[n as u8; 12])?;
        row.put("i32", -(n as i32))?;
        row.write("i64", &[n as i64 - 7])?;
        row.write("f32", &[n as f32 / 2.0; 5])?;
        row.slice_mut::<f64>("f64")?.fill(n as f64 / 3.0);
        row.write("f16", &[f16::from_f32(n as f32); 3])?;
        row.write("bf16", &[bf16::from_f32(n as f32); 7])?;
        row.write("bool", &[n % 2 == 0, n % 3 == 0, true])?;
        Ok(())
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Everywhere, BoxError> {
        fn data<const D: usize, E: burn::tensor::Element>(tensor: Tensor<D, Int>) -> Result<Vec<E>, BoxError> {
            Ok(tensor.into_data().try_to_vec::<E>()?)
        }
        let halves: Tensor<2, Float> = batch.take("f16")?;
        assert_eq!(halves.dtype(), DType::F16);
        let brains: Tensor<2, Float> = batch.take("bf16")?;
        assert_eq!(brains.dtype(), DType::BF16);
        let mask: Tensor<2, Bool> = batch.take("bool")?;
        Ok((
            data(batch.take::<4, Int>("u8")?)?,
            data(batch.take::<1, Int>("i32")?)?,
            data(batch.take::<2, Int>("i64")?)?,
            batch.take::<2, Float>("f32")?.into_data().try_to_vec()?,
            batch.take::<3, Float>("f64")?.into_data().try_to_vec()?,
            halves.into_data_dtype(DType::F32).try_to_vec()?,
            brains.into_data_dtype(DType::F32).try_to_vec()?,
            mask.into_data().iter::<bool>().collect(),
        ))
    }
}

#[test]
fn every_dtype_arrives_as_it_was_written() {
    let builder = PinnedDataLoaderBuilder::new(Everything).batch_size(6).num_workers(3).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new((0..20usize).collect())).unwrap();
    let mut first = 0;
    for (u8s, i32s, i64s, f32s, f64s, f16s, bf16s, bools) in epoch(&*loader) {
        for n in first..first + i32s.len() {
            let at = n - first;
            assert_eq!(u8s[at * 12..at * 12 + 12], [n as u8; 12]);
            assert_eq!((i32s[at], i64s[at]), (-(n as i32), n as i64 - 7));
            assert_eq!(f32s[at * 5..at * 5 + 5], [n as f32 / 2.0; 5]);
            assert_eq!(f64s[at * 4..at * 4 + 4], [n as f64 / 3.0; 4]);
            assert_eq!(f16s[at * 3..at * 3 + 3], [n as f32; 3]);
            assert_eq!(bf16s[at * 7..at * 7 + 7], [n as f32; 7]);
            assert_eq!(bools[at * 3..at * 3 + 3], [n % 2 == 0, n % 3 == 0, true]);
        }
        first += i32s.len();
    }
    assert_eq!(first, 20);
}

/// Texts of bytes, padded with 255, and word vectors of two, padded with -1.
struct Texts;

impl Collate<Vec<u8>> for Texts {
    type Batch = (Vec<usize>, Vec<u8>, Vec<usize>, Vec<f32>, Vec<i64>);

    fn layout(&self) -> Vec<Field> {
        vec![
            Field::padded("text", [12], 255u8),
            Field::padded("pairs", [12, 2], -1f32),
            Field::new("length", DType::I64, []),
        ]
    }

    fn write(&self, text: &Vec<u8>, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("text", text)?;
        let pairs: Vec<f32> = text.iter().flat_map(|byte| [f32::from(*byte), 0.5]).collect();
        row.write("pairs", &pairs)?;
        Ok(row.put("length", text.len() as i64)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let (text, pairs) = (batch.take::<2, Int>("text")?, batch.take::<3, Float>("pairs")?);
        let (text_shape, pairs_shape) = (text.dims().to_vec(), pairs.dims().to_vec());
        let length = batch.take::<1, Int>("length")?.into_data().try_to_vec()?;
        Ok((text_shape, text.into_data().try_to_vec()?, pairs_shape, pairs.into_data().try_to_vec()?, length))
    }
}

#[test]
fn one_worker_with_padded_rows_and_one_slot_is_not_slow() {
    let builder = PinnedDataLoaderBuilder::new(Texts).batch_size(5).num_workers(1).pinned_limit(1000);
    let loader = builder.set_device(Device::flex()).build(InMemDataset::new(vec![vec![1u8; 7]; 200])).unwrap();
    let start = std::time::Instant::now();
    assert_eq!(epoch(&*loader).len(), 40);
    assert!(start.elapsed().as_millis() < 500, "{:?}", start.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn padded_rows_are_as_wide_as_their_batch(texts in prop::collection::vec(prop::collection::vec(0u8..200, 0..=12), 1..40)) {
        let builder = PinnedDataLoaderBuilder::new(Texts).batch_size(5).num_workers(3).set_device(Device::flex());
        let loader = builder.build(InMemDataset::new(texts.clone())).unwrap();
        for _ in 0..2 { // the second epoch finds the first one's bytes in its slots
            for (batch, texts) in epoch(&*loader).into_iter().zip(texts.chunks(5)) {
                let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
                let (shape, text, pairs_shape, pairs, length) = batch;
                prop_assert_eq!(&shape, &[texts.len(), longest]);
                prop_assert_eq!(&pairs_shape, &[texts.len(), longest, 2]);
                for (at, expected) in texts.iter().enumerate() {
                    let row = &text[at * longest..(at + 1) * longest];
                    prop_assert_eq!(&row[..expected.len()], &expected[..]);
                    prop_assert!(row[expected.len()..].iter().all(|byte| *byte == 255));
                    let row = &pairs[at * longest * 2..(at + 1) * longest * 2];
                    for (nth, byte) in expected.iter().enumerate() {
                        prop_assert_eq!(&row[2 * nth..2 * nth + 2], &[f32::from(*byte), 0.5]);
                    }
                    prop_assert!(row[2 * expected.len()..].iter().all(|value| *value == -1.0));
                    prop_assert_eq!(length[at], expected.len() as i64);
                }
            }
        }
    }
}

/// Does what the test says with its row or its batch.
struct Do<W, F>(W, F);

impl<W, F> Collate<u8> for Do<W, F>
where
    W: Fn(&mut RowMut<'_>) -> Result<(), FieldError> + Send + Sync + 'static,
    F: Fn(&mut RawBatch) -> Result<(), FieldError> + Send + Sync + 'static,
{
    type Batch = ();
    fn layout(&self) -> Vec<Field> {
        vec![Field::new("a", DType::F32, [2]), Field::padded("b", [3, 2], 0i64)]
    }
    fn write(&self, _: &u8, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok((self.0)(row)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<(), BoxError> {
        Ok((self.1)(&mut batch)?)
    }
}

fn message<W, F>(write: W, finish: F) -> String
where
    W: Fn(&mut RowMut<'_>) -> Result<(), FieldError> + Send + Sync + 'static,
    F: Fn(&mut RawBatch) -> Result<(), FieldError> + Send + Sync + 'static,
{
    let builder =
        PinnedDataLoaderBuilder::new(Do(write, finish)).batch_size(1).num_workers(1).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(vec![0u8])).unwrap();
    let error = loader.iter().next().unwrap().unwrap_err();
    Error::of(&error).unwrap().to_string()
}

#[test]
fn wrong_fields_are_named() {
    let good = |row: &mut RowMut<'_>| {
        row.write("a", &[1f32, 2.0])?;
        row.write("b", &[1i64, 2])
    };
    let fine = |_: &mut RawBatch| Ok(());
    type Write = fn(&mut RowMut<'_>) -> Result<(), FieldError>;
    let writes: [(Write, &str); 9] = [
        (|row| row.write("c", &[1f32]), "no field `c` in the layout; it has `a`, `b`"),
        (|row| row.write("a", &[1f64, 2.0]), "field `a` holds f32, not f64"),
        (|row| row.write("a", &[1f32]), "field `a` takes 2 values a row, not 1"),
        (|row| row.write("b", &[1i64]), "padded field `b` takes steps of 2 values, and 1 values are no whole steps"),
        (
            |row| row.write("b", &[1i64; 8]),
            "padded field `b` takes up to 3 steps of 2 values a row, not 4: cut the row, or raise",
        ),
        (|row| row.slice_mut::<i64>("b").map(|_| ()), "field `b` is padded or jagged: write it by `RowMut::write`"),
        (|row| row.write("a", &[1f32, 2.0]), "field `b` was not written"),
        (
            |row| {
                let _ignored = row.write("a", &[1f32]);
                row.write("b", &[1i64, 2])
            },
            "field `a` was not written",
        ),
        (|_| Ok(()), "field `a` was not written"),
    ];
    for (write, expected) in writes {
        let message = message(write, fine);
        assert!(message.starts_with("collate of sample 0 (") && message.contains(expected), "{message}");
    }
    type Finish = fn(&mut RawBatch) -> Result<(), FieldError>;
    let finishes: [(Finish, &str); 4] = [
        (|batch| batch.take::<1, Float>("c").map(|_| ()), "no field `c`"),
        (
            |batch| batch.take::<3, Float>("a").map(|_| ()),
            "field `a` cannot be taken as Tensor<3, Float>: it is a Tensor<2, Float> of f32 [1, 2]",
        ),
        (|batch| batch.take::<3, Float>("b").map(|_| ()), "it is a Tensor<3, Int> of i64 [1, 1, 2]"),
        (
            |batch| {
                batch.take::<2, Float>("a")?;
                batch.take::<2, Float>("a").map(|_| ())
            },
            "it was taken before",
        ),
    ];
    for (finish, expected) in finishes {
        let message = message(good, finish);
        assert!(message.starts_with("finish (") && message.contains(expected), "{message}");
    }
}

/// Writes a row of three values into a field of up to two.
fn too_long(field: Field) -> String {
    let tokens = collate([field], |_: &u8, row| Ok(row.write("tokens", &[1i32; 3])?), |_| Ok(()));
    let builder = PinnedDataLoaderBuilder::new(tokens).batch_size(1).num_workers(1).set_device(Device::flex());
    builder.build(InMemDataset::new(vec![0])).unwrap().iter().next().unwrap().unwrap_err().to_string()
}

#[test]
fn a_row_that_is_too_long_is_told_what_to_do() {
    let padded = too_long(Field::padded("tokens", [2], 0i32));
    assert!(
        padded.contains(
            "padded field `tokens` takes up to 2 values a row, not 3: cut the row, or raise the limit, which is that of \
             `Field::padded` or of `padded = [..]` in `#[sample(..)]`"
        ),
        "{padded}"
    );
    let jagged = too_long(Field::jagged::<i32>("tokens", [2]));
    assert!(jagged.contains("jagged field `tokens` takes up to 2 values a row, not 3"), "{jagged}");
    assert!(jagged.contains("that of `Field::jagged` or of `jagged = [..]`"), "{jagged}");
}
