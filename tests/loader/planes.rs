//! Fields whose rows vary in two dimensions: masks and depths of images of different sizes.

use crate::common::epoch;
use burn::{
    data::dataset::InMemDataset,
    tensor::{DType, Device, Int},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut,
    fault::{FieldError, Quota},
};
use proptest::prelude::*;

/// Two planes of a height and a width, and values that tell plane, line and step apart.
#[derive(Debug, Clone)]
struct Planes {
    size: [usize; 2],
    seed: i32,
}

impl Planes {
    fn value(&self, plane: usize, line: usize, step: usize) -> i32 {
        self.seed * 10_000 + (plane * 1000 + line * 100 + step) as i32
    }

    fn values(&self) -> Vec<i32> {
        let [height, width] = self.size;
        let all =
            (0..2).flat_map(|plane| (0..height).flat_map(move |line| (0..width).map(move |step| (plane, line, step))));
        all.map(|(plane, line, step)| self.value(plane, line, step)).collect()
    }
}

/// The planes, padded with -1, beside a padded field of one dimension. Planes with this seed are bad.
struct Padded {
    bad: Option<i32>,
}

type Batch = (Vec<usize>, Vec<i32>, Vec<[usize; 2]>, Vec<usize>);

impl Collate<Planes> for Padded {
    type Batch = Batch;

    fn layout(&self) -> Vec<Field> {
        vec![Field::padded("steps", [9], 0u8), Field::padded_2d("planes", [2, 5, 7], -1i32)]
    }

    fn write(&self, planes: &Planes, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("steps", &vec![1u8; planes.size[0]])?;
        row.write_2d("planes", planes.size, &planes.values())?;
        if self.bad == Some(planes.seed) { Err("a bad one".into()) } else { Ok(()) }
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let (sizes, planes) = (batch.sizes("planes")?, batch.take::<4, Int>("planes")?);
        let steps = batch.take::<2, Int>("steps")?;
        Ok((planes.dims().to_vec(), planes.into_data().try_to_vec()?, sizes, steps.dims().to_vec()))
    }
}

/// Checks a batch against the samples that it is made of.
fn check((shape, values, sizes, steps): Batch, samples: &[&Planes]) {
    let largest = |axis: usize| samples.iter().map(|planes| planes.size[axis]).max().unwrap_or(0).max(1);
    let [height, width] = [0, 1].map(largest);
    assert_eq!(shape, [samples.len(), 2, height, width]);
    assert_eq!(steps, [samples.len(), height]);
    assert_eq!(sizes, samples.iter().map(|planes| planes.size).collect::<Vec<_>>());
    let mut values = values.into_iter();
    for planes in samples {
        for (plane, line, step) in
            (0..2).flat_map(|plane| (0..height).flat_map(move |line| (0..width).map(move |step| (plane, line, step))))
        {
            let is_padding = line >= planes.size[0] || step >= planes.size[1];
            let expected = if is_padding { -1 } else { planes.value(plane, line, step) };
            assert_eq!(values.next(), Some(expected), "{planes:?} at {plane}, {line}, {step}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn rows_are_as_tall_and_wide_as_their_batch_needs(sizes in prop::collection::vec((0usize..=5, 0usize..=7), 1..40)) {
        let samples: Vec<_> =
            sizes.iter().enumerate().map(|(seed, (height, width))| Planes { size: [*height, *width], seed: seed as i32 }).collect();
        let builder = PinnedDataLoaderBuilder::new(Padded { bad: None }).batch_size(5).num_workers(3).set_device(Device::flex());
        let loader = builder.build(InMemDataset::new(samples.clone())).unwrap();
        for _ in 0..2 { // the second epoch finds the first one's bytes in its slots
            for (batch, samples) in epoch(&*loader).into_iter().zip(samples.chunks(5)) {
                check(batch, &samples.iter().collect::<Vec<_>>());
            }
        }
    }
}

/// The sizes move with their rows.
#[test]
fn a_sample_that_is_left_out_takes_its_size_along() {
    let sizes = [[1, 7], [5, 1], [2, 2], [3, 3], [0, 4]];
    let samples: Vec<_> = sizes.into_iter().zip(0..).map(|(size, seed)| Planes { size, seed }).collect();
    let builder = PinnedDataLoaderBuilder::new(Padded { bad: Some(1) }).batch_size(5).num_workers(2);
    let builder = builder.bad_samples(BadSamples::Skip(Quota::Count(1))).set_device(Device::flex());
    let loader = builder.build(InMemDataset::new(samples.clone())).unwrap();
    let left: Vec<_> = samples.iter().filter(|planes| planes.seed != 1).collect();
    let batch = epoch(&*loader).pop().unwrap();
    check(batch, &left);
}

/// Does with a row or a batch what a test says.
struct Do(fn(&mut RowMut<'_>) -> Result<(), FieldError>, fn(&RawBatch) -> Result<(), FieldError>);

impl Collate<u8> for Do {
    type Batch = ();
    fn layout(&self) -> Vec<Field> {
        vec![Field::padded_2d("mask", [3, 4], 0u8), Field::new("label", DType::I32, [])]
    }
    fn write(&self, _: &u8, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.put("label", 1i32)?;
        Ok((self.0)(row)?)
    }
    fn finish(&self, batch: RawBatch) -> Result<(), BoxError> {
        Ok((self.1)(&batch)?)
    }
}

#[test]
fn wrong_rows_are_named_with_what_fits() {
    let cases: [(Do, &str); 9] = [
        (Do(|row| row.write_2d("mask", [4, 4], &[0u8; 16]), |_| Ok(())), "up to 3 x 4 (height, width); 4 x 4 with 16"),
        (Do(|row| row.write_2d("mask", [1, 5], &[0u8; 5]), |_| Ok(())), "up to 3 x 4 (height, width); 1 x 5 with 5"),
        (Do(|row| row.write_2d("mask", [2, 2], &[0u8; 3]), |_| Ok(())), "2 x 2 with 3 values is none"),
        (Do(|row| row.write_2d("mask", [usize::MAX, 2], &[0u8; 3]), |_| Ok(())), "with 3 values is none"),
        (Do(|row| row.write_2d("mask", [2, 2], &[0i32; 4]), |_| Ok(())), "field `mask` holds u8, not i32"),
        (
            Do(|row| row.write("mask", &[0u8; 4]), |_| Ok(())),
            "varies in two dimensions: write it by `RowMut::write_2d`",
        ),
        (Do(|row| row.slice_mut::<u8>("mask").map(|_| ()), |_| Ok(())), "write it by `RowMut::write_2d`"),
        (Do(|row| row.write_2d("label", [1, 1], &[0i32]), |_| Ok(())), "field `label` does not vary in two dimensions"),
        (
            Do(|row| row.write_2d("mask", [1, 1], &[0u8]), |batch| batch.sizes("label").map(|_| ())),
            "field `label` has rows of one size",
        ),
    ];
    for (wrong, expected) in cases {
        let builder = PinnedDataLoaderBuilder::new(wrong).batch_size(1).num_workers(1).set_device(Device::flex());
        let loader = builder.build(InMemDataset::new(vec![0u8])).unwrap();
        let error = loader.iter().next().unwrap().unwrap_err();
        let message = Error::of(&error).unwrap().to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn what_cannot_be_is_refused_when_it_is_built() {
    let mask = || InMemDataset::new(vec![Planes { size: [1, 1], seed: 0 }]);
    let kept =
        PinnedDataLoaderBuilder::new(Padded { bad: None }).batch_size(1).set_device(Device::flex()).build_kept(mask());
    let message = kept.err().unwrap().to_string();
    assert!(message.contains("rows of field `planes` vary in two dimensions"), "{message}");

    struct Flat;
    impl Collate<u8> for Flat {
        type Batch = ();
        fn layout(&self) -> Vec<Field> {
            vec![Field::padded_2d("line", [3], 0u8)]
        }
        fn write(&self, _: &u8, _: &mut RowMut<'_>) -> Result<(), BoxError> {
            Ok(())
        }
        fn finish(&self, _: RawBatch) -> Result<(), BoxError> {
            Ok(())
        }
    }
    let built =
        PinnedDataLoaderBuilder::new(Flat).batch_size(1).set_device(Device::flex()).build(InMemDataset::new(vec![0u8]));
    let message = built.err().unwrap().to_string();
    assert!(message.contains("padded field `line` has no two dimensions to pad"), "{message}");
}
