//! Fields that the loader adds: masks of padded fields, offsets of jagged ones, and the row of each of their steps.

use crate::common::epoch;
use burn::{
    data::{dataloader::batcher::Batcher, dataset::InMemDataset},
    tensor::{Bool, BoolStore, DType, Device, Int, Tensor},
};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedBatcher, PinnedDataLoaderBuilder, RawBatch, RowMut, Sample,
    collate,
};
use burn_pinned::{
    fault::{FieldError, Quota},
    memory::Decoder,
    vision::{BoxFormat, Boxes, Image, Mask},
};
use proptest::prelude::*;

/// Steps of two numbers each, one row padded and one end to end, and how tall and wide a plane is.
type Row = (Vec<[i32; 2]>, [usize; 2]);

/// Padded values and their mask, a plane's mask and its shape, flat values, their offsets and their rows.
type Batch = (Vec<i32>, Vec<bool>, Vec<bool>, Vec<usize>, Vec<i32>, [Vec<i32>; 2]);

struct All {
    /// A row of this number of steps is bad.
    bad: usize,
}

impl Collate<Row> for All {
    type Batch = Batch;

    fn layout(&self) -> Vec<Field> {
        vec![
            Field::padded("padded", [6, 2], -1i32).with_mask(),
            Field::new("label", DType::U8, []),
            Field::padded_2d("plane", [3, 4], 0u8).with_mask(),
            Field::jagged::<i32>("flat", [6, 2]).with_rows(),
        ]
    }

    fn write(&self, (steps, size): &Row, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("flat", steps.as_flattened())?;
        row.write_2d("plane", *size, &vec![9u8; size[0] * size[1]])?;
        row.put("label", 1u8)?;
        row.write("padded", steps.as_flattened())?;
        if steps.len() == self.bad { Err("a bad one".into()) } else { Ok(()) }
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        let (mask, plane) = (batch.take::<2, Bool>("padded_mask")?, batch.take::<3, Bool>("plane_mask")?);
        let (flat, offsets) = (batch.take::<2, Int>("flat")?, batch.take::<1, Int>("flat_offsets")?);
        let rows = batch.take::<1, Int>("flat_rows")?;
        assert_eq!(batch.take::<3, Int>("plane")?.dims(), plane.dims());
        let (padded, shape) = (batch.take::<3, Int>("padded")?, plane.dims().to_vec());
        Ok((
            padded.into_data().try_to_vec()?,
            mask.into_data().iter::<bool>().collect(),
            plane.into_data().iter::<bool>().collect(),
            shape,
            flat.into_data().try_to_vec()?,
            [offsets.into_data().try_to_vec()?, rows.into_data().try_to_vec()?],
        ))
    }
}

fn check((padded, mask, plane, shape, flat, [offsets, numbers]): Batch, rows: &[&Row]) {
    let longest = rows.iter().map(|(steps, _)| steps.len()).max().unwrap().max(1);
    let steps = || rows.iter().flat_map(|(steps, _)| (0..longest).map(move |step| steps.get(step)));
    assert_eq!(mask, steps().map(|step| step.is_some()).collect::<Vec<_>>());
    assert_eq!(padded, steps().flat_map(|step| *step.unwrap_or(&[-1; 2])).collect::<Vec<_>>());
    let [_, tall, wide] = shape[..] else { panic!("{shape:?}") };
    let inside = |size: &[usize; 2], at: usize| at / wide < size[0] && at % wide < size[1];
    let all = rows.iter().flat_map(|(_, size)| (0..tall * wide).map(move |at| inside(size, at)));
    assert_eq!(plane, all.collect::<Vec<_>>());
    let values: Vec<i32> = rows.iter().flat_map(|(steps, _)| steps.as_flattened()).copied().collect();
    assert_eq!(flat, values);
    let ends = rows.iter().scan(0, |end, (steps, _)| {
        *end += steps.len() as i32;
        Some(*end)
    });
    assert_eq!(offsets, [0].into_iter().chain(ends).collect::<Vec<_>>());
    let of_steps = (0..).zip(rows).flat_map(|(row, (steps, _))| vec![row; steps.len()]);
    assert_eq!(numbers, of_steps.collect::<Vec<i32>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn what_the_loader_adds_tells_where_the_values_are(
        sizes in prop::collection::vec((0usize..=6, 0usize..=3, 0usize..=4), 1..40),
        bad in 1usize..9,
    ) {
        let rows: Vec<Row> = sizes
            .iter()
            .enumerate()
            .map(|(n, (steps, tall, wide))| ((0..*steps).map(|step| [n as i32, step as i32 + 1]).collect(), [*tall, *wide]))
            .collect();
        let good: Vec<_> = rows.iter().map(|row| row.0.len() != bad).collect();
        prop_assume!(good.contains(&true));
        let builder = PinnedDataLoaderBuilder::new(All { bad }).batch_size(5).num_workers(3).set_device(Device::flex());
        let loader =
            builder.bad_samples(BadSamples::Skip(Quota::Share(1.0))).build(InMemDataset::new(rows.clone())).unwrap();
        let batches = rows.chunks(5).zip(good.chunks(5));
        let batches = batches.map(|(rows, good)| rows.iter().zip(good).filter(|(_, good)| **good).map(|(row, _)| row));
        let expected: Vec<Vec<&Row>> = batches.map(Iterator::collect).filter(|rows: &Vec<_>| !rows.is_empty()).collect();
        let read = epoch(&*loader);
        prop_assert_eq!(read.len(), expected.len());
        read.into_iter().zip(expected).for_each(|(batch, rows)| check(batch, &rows));
    }
}

fn texts(field: Field) -> impl Collate<Vec<i64>, Batch = (Vec<i64>, Vec<bool>)> + Clone {
    collate(
        [field],
        |tokens: &Vec<i64>, row| Ok(row.write("tokens", tokens)?),
        |mut batch| {
            let mask = batch.take::<2, Bool>("tokens_mask")?.into_data().try_to_vec()?;
            Ok((batch.take::<2, Int>("tokens")?.into_data().try_to_vec()?, mask))
        },
    )
}

#[test]
fn a_kept_data_set_has_the_same_masks() {
    let dataset = || InMemDataset::new((0..23).map(|n| vec![n; n as usize % 7]).collect::<Vec<Vec<i64>>>());
    let builder = || {
        let texts = texts(Field::padded("tokens", [9], 0i64).with_mask());
        PinnedDataLoaderBuilder::new(texts).batch_size(4).shuffle(3).set_device(Device::flex())
    };
    let (read, kept) = (builder().build(dataset()).unwrap(), builder().build_kept(dataset()).unwrap());
    for _ in 0..2 {
        assert_eq!(epoch(&*read), epoch(&*kept));
    }
}

#[test]
fn a_field_that_cannot_be_masked_or_kept_is_refused() {
    let message = |field: Field| {
        let builder = PinnedDataLoaderBuilder::new(texts(field)).batch_size(2).set_device(Device::flex());
        builder.build(InMemDataset::new(vec![vec![1i64]])).unwrap_err().to_string()
    };
    let plain = message(Field::new("tokens", DType::I64, [3]).with_mask());
    assert!(plain.contains("field `tokens` has no padding to mask"), "{plain}");
    let jagged = message(Field::jagged::<i64>("tokens", [3]).with_mask());
    assert!(jagged.contains("field `tokens` has no padding to mask"), "{jagged}");
    for field in [Field::padded("tokens", [3], 0i64), Field::new("tokens", DType::I64, [3])] {
        let unlike = message(field.with_rows());
        assert!(unlike.contains("rows of field `tokens` do not lie end to end"), "{unlike}");
    }
    let scalar = message(Field::jagged::<i64>("tokens", []));
    assert!(scalar.contains("no dimension to pad"), "{scalar}");
    let scalar = message(Field::jagged::<i64>("tokens", []).with_rows());
    assert!(scalar.contains("no dimension to pad"), "{scalar}");
    let large = message(Field::jagged::<i64>("tokens", [1 << 31]));
    assert!(large.contains("more steps than 32 bits can number"), "{large}");

    let field = Field::jagged::<i64>("tokens", [3]);
    let kept = PinnedDataLoaderBuilder::new(texts(field.clone())).batch_size(2).set_device(Device::flex());
    let kept = kept.build_kept(InMemDataset::new(vec![vec![1i64]])).unwrap_err().to_string();
    assert!(kept.contains("the rows of field `tokens` lie end to end"), "{kept}");

    let image = Field::image("image", 8).decoder(Decoder::Device);
    let both = collate([image, field], |_: &Vec<i64>, _| Ok(()), |_| Ok(()));
    let both = PinnedDataLoaderBuilder::new(both).batch_size(2).set_device(Device::flex());
    let Err(Error::Config { problem, .. }) = both.build(InMemDataset::new(vec![vec![1i64]])) else { panic!() };
    assert_eq!(problem, "images of field `image` are to be decoded on the device, beside a jagged field");
}

/// The user has given the name once, and the loader once more.
#[test]
fn a_name_that_the_loader_gives_too_is_told() {
    let (masked, flat) = (|| Field::padded("t", [3], 0i64).with_mask(), || Field::jagged::<i64>("t", [3]).with_rows());
    let mask = || Field::new("t_mask", DType::Bool(BoolStore::Native), [3]);
    let layouts: [(&str, Vec<Field>); 5] = [
        ("t_mask", vec![masked(), mask()]),
        ("t_mask", vec![mask(), masked()]),
        ("t_mask", vec![masked(), Field::column::<Vec<bool>>("t_mask")]),
        ("t_offsets", vec![Field::new("t_offsets", DType::I32, []), flat()]),
        ("t_rows", vec![flat(), Field::new("t_rows", DType::I32, [])]),
    ];
    for (name, layout) in layouts {
        let both = collate(layout, |_: &u8, _| Ok(()), |_| Ok(()));
        let Err(Error::Config { problem, advice, .. }) = PinnedBatcher::new::<u8>(both) else { panic!("{name}") };
        assert_eq!(problem, format!("two fields are named `{name}`"));
        assert_eq!(advice, "the loader adds one of them to a padded or jagged field: give yours another name");
    }
}

/// What the loader fills cannot be written: it would have the last word of two.
#[test]
fn what_the_loader_makes_is_not_written_by_hand() {
    type Write = fn(&mut RowMut<'_>) -> Result<(), BoxError>;
    let writes: [(&str, Write); 10] = [
        ("padded_mask", |row| Ok(row.write("padded_mask", &[true; 2])?)),
        ("padded_mask", |row| Ok(row.put("padded_mask", true)?)),
        ("padded_mask", |row| Ok(row.slice_mut::<u8>("padded_mask").map(drop)?)),
        ("padded_mask", |row| Ok(row.put_column("padded_mask", true)?)),
        ("plane_mask", |row| Ok(row.write_2d("plane_mask", [1, 1], &[true])?)),
        ("plane_mask", |row| Ok(row.mask("plane_mask", &Mask::from(image::GrayImage::new(1, 1)))?)),
        ("flat_offsets", |row| Ok(row.put("flat_offsets", 0i32)?)),
        ("flat_offsets", |row| Ok(row.slice_mut::<i32>("flat_offsets").map(drop)?)),
        ("flat_rows", |row| Ok(row.write("flat_rows", &[0i32])?)),
        ("image_mask", |row| Ok(row.image("image_mask", &Image::from(image::RgbImage::new(1, 1)))?)),
    ];
    for (name, write) in writes {
        let fields = [
            Field::padded("padded", [6], 0u8).with_mask(),
            Field::padded_2d("plane", [3, 4], 0u8).with_mask(),
            Field::jagged::<u8>("flat", [6]).with_rows(),
            Field::image("image", 4).any_size().with_mask(),
        ];
        let both = collate(
            fields,
            move |_: &u8, row| {
                row.write("padded", &[1u8])?;
                row.write_2d("plane", [1, 1], &[1u8])?;
                row.write("flat", &[1u8])?;
                row.image("image", &Image::from(image::RgbImage::new(1, 1)))?;
                write(row)
            },
            |_| Ok(()),
        );
        let builder = PinnedDataLoaderBuilder::new(both).batch_size(2).set_device(Device::flex());
        let skips = builder.bad_samples(BadSamples::Skip(Quota::Share(1.0))); // a fault of the program is not skipped
        let loader = skips.build(InMemDataset::new(vec![1u8, 2])).unwrap();
        let error = loader.iter().next().unwrap().unwrap_err();
        let Some(Error::Failed { source, .. }) = Error::of(&error) else { panic!("{error}") };
        let text = source.to_string();
        assert!(text.contains(&format!("`{name}` is made by the loader: write the field before it alone")), "{text}");
        let is_ours = source.is::<FieldError>() || source.is::<burn_pinned::vision::VisionError>();
        assert!(is_ours, "{name}: {source:?}");
    }
}

/// Rows that lie end to end and have no values.
#[derive(Clone, Sample)]
struct Empty {
    #[sample(jagged = [9], rows)]
    edges: Vec<[i64; 2]>,
    #[sample(jagged = [9], dtype = i64)]
    as_they_are: Vec<i64>,
    #[sample(jagged = [9], mean = 0.5, std = 2.0, dtype = f16)]
    scaled: Vec<f32>,
    #[sample(jagged = [9, 2, 3])]
    deep: Vec<[[f32; 3]; 2]>,
    #[sample(jagged = [9])]
    good: Vec<bool>,
    #[sample(jagged = [9], rows)]
    boxes: Boxes,
}

fn empty(steps: usize) -> Empty {
    Empty {
        edges: vec![[1, 2]; steps],
        as_they_are: vec![3; steps],
        scaled: vec![0.5; steps],
        deep: vec![[[1.0; 3]; 2]; steps],
        good: vec![true; steps],
        boxes: Boxes::new(vec![[1.0, 2.0, 3.0, 4.0]; steps], vec![1; steps], BoxFormat::Xyxy).unwrap(),
    }
}

#[test]
fn rows_without_values_make_no_step() {
    let check = |batch: EmptyBatch, steps: usize| {
        assert_eq!((batch.edges.dims(), batch.as_they_are.dims(), batch.scaled.dims()), ([steps, 2], [steps], [steps]));
        assert_eq!((batch.deep.dims(), batch.good.dims()), ([steps, 2, 3], [steps]));
        assert_eq!((batch.boxes.dims(), batch.boxes_labels.dims()), ([steps, 4], [steps]));
        assert_eq!((batch.edges.dtype(), batch.as_they_are.dtype()), (DType::I32, DType::I64));
        assert_eq!((batch.scaled.dtype(), batch.scaled.into_data().num_elements()), (DType::F16, steps));
        let offsets: Vec<i32> = batch.edges_offsets.into_data().try_to_vec().unwrap();
        assert_eq!(offsets, [0, 0, steps as i32]);
        assert_eq!(batch.boxes_offsets.into_data().try_to_vec::<i32>().unwrap(), offsets);
        for rows in [batch.edges_rows, batch.boxes_rows] {
            assert_eq!(rows.into_data().try_to_vec::<i32>().unwrap(), vec![1; steps]);
        }
    };
    let rows = || [0, 0, 0, 3].map(empty);
    let builder = PinnedDataLoaderBuilder::new(Empty::collate()).batch_size(2).set_device(Device::flex());
    let mut batches = epoch(&*builder.build(InMemDataset::new(rows().to_vec())).unwrap()).into_iter();
    check(batches.next().unwrap(), 0);
    check(batches.next().unwrap(), 3);
    let batcher = PinnedBatcher::new(Empty::collate()).unwrap();
    check(batcher.batch(rows()[..2].to_vec(), &Device::flex()), 0);

    // All steps of an epoch, one behind the other, are those of the rows.
    let all = |batches: Vec<EmptyBatch>| Tensor::cat(batches.into_iter().map(|batch| batch.edges).collect(), 0).dims();
    let builder = PinnedDataLoaderBuilder::new(Empty::collate()).batch_size(1).set_device(Device::flex());
    assert_eq!(all(epoch(&*builder.build(InMemDataset::new(rows().to_vec())).unwrap())), [3, 2]);
}

/// The rows of steps are numbered in each batch as it arrives: without skipped samples, for any number of workers, and after a resume.
#[test]
fn rows_of_steps_are_those_of_the_batch_that_arrives() {
    let (lens, len) = (|n: usize| (n * 7) % 5, 43);
    let flat = collate(
        [Field::jagged::<i32>("flat", [4]).with_rows(), Field::new("id", DType::I32, [])],
        move |n: &usize, row| {
            row.write("flat", &vec![*n as i32; lens(*n)])?;
            row.put("id", *n as i32)?;
            if n % 6 == 1 { Err("a bad one".into()) } else { Ok(()) }
        },
        |mut batch| {
            let ints =
                |batch: &mut RawBatch, name| batch.take_int::<1>(name).map(|it| it.into_data().iter::<i64>().collect());
            let [flat, rows, ids]: [Vec<i64>; 3] =
                [ints(&mut batch, "flat")?, ints(&mut batch, "flat_rows")?, ints(&mut batch, "id")?];
            Ok([flat, rows, ids])
        },
    );
    let dataset = || InMemDataset::new((0..len).collect::<Vec<usize>>());
    let builder = || {
        let builder = PinnedDataLoaderBuilder::new(flat.clone()).batch_size(5).shuffle(1).drop_last(true);
        builder.bad_samples(BadSamples::Skip(Quota::Share(1.0))).set_device(Device::flex())
    };
    let whole = epoch(&*builder().num_workers(1).build(dataset()).unwrap());
    assert_eq!(whole.len(), len / 5);
    for [flat, rows, ids] in &whole {
        let steps = || ids.iter().zip(0..).flat_map(|(id, row)| vec![(*id, row); lens(*id as usize)]);
        assert_eq!(*flat, steps().map(|(id, _)| id).collect::<Vec<i64>>());
        assert_eq!(*rows, steps().map(|(_, row)| row).collect::<Vec<i64>>());
        assert!(ids.iter().all(|id| id % 6 != 1));
    }
    assert!(whole.iter().any(|[.., ids]| ids.len() < 5), "a sample was skipped");
    let first = builder().num_workers(3).build(dataset()).unwrap();
    let mut given: Vec<_> = first.iter().take(3).map(Result::unwrap).collect();
    let rest = builder().num_workers(4).resume(first.state()).build(dataset()).unwrap();
    given.extend(epoch(&*rest));
    assert_eq!(given, whole);
}
