//! Columns: values that are no tensors, in the order of the rows.

use crate::common::{Mischief, Numbers, epoch};
use burn::data::dataloader::{DataLoaderBuilder, batcher::Batcher};
use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
use burn_pinned::fault::Quota;
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedBatcher, PinnedDataLoaderBuilder, RawBatch, collate,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

type Named = (Vec<i64>, Vec<String>, Vec<Option<Arc<usize>>>);

/// The number, its name, and something that is not always there.
fn named() -> impl Collate<usize, Batch = Named> + Clone {
    collate(
        [
            Field::column::<String>("name"),
            Field::new("number", DType::I64, []),
            Field::column::<Option<Arc<usize>>>("odd"),
        ],
        |number: &usize, row| {
            row.put_column("odd", (number % 2 == 1).then(|| Arc::new(*number)))?;
            row.put("number", *number as i64)?;
            row.put_column("name", format!("number {number}"))?;
            if number % 10 == 3 { Err("a bad one".into()) } else { Ok(()) } // with its values in their places
        },
        |mut batch| {
            let numbers = batch.take::<1, Int>("number")?.into_data().try_to_vec()?;
            Ok((numbers, batch.column("name")?, batch.column("odd")?))
        },
    )
}

fn builder() -> PinnedDataLoaderBuilder<usize, Named> {
    PinnedDataLoaderBuilder::new(named()).batch_size(7).shuffle(5).num_workers(3).set_device(Device::flex())
}

fn check((numbers, names, odd): &Named) {
    assert_eq!(*names, numbers.iter().map(|number| format!("number {number}")).collect::<Vec<_>>());
    let expected: Vec<_> = numbers.iter().map(|number| (number % 2 == 1).then_some(*number as usize)).collect();
    assert_eq!(odd.iter().map(|odd| odd.as_deref().copied()).collect::<Vec<_>>(), expected);
}

fn all() -> InMemDataset<usize> {
    InMemDataset::new((0..60).collect())
}

#[test]
fn columns_are_in_the_order_of_the_rows() {
    let quota = Quota::Share(1.0);
    for (policy, left) in [(BadSamples::Skip(quota), 54), (BadSamples::Replace { tries: 60 }, 60)] {
        let loader = builder().bad_samples(policy).build(all()).unwrap();
        for _ in 0..2 {
            let batches = epoch(&*loader);
            batches.iter().for_each(check);
            assert_eq!(batches.iter().map(|(numbers, ..)| numbers.len()).sum::<usize>(), left);
        }
    }
}

#[test]
fn a_resumed_epoch_goes_on_with_its_columns() {
    let loader = || builder().bad_samples(BadSamples::Skip(Quota::Share(1.0)));
    let whole = epoch(&*loader().build(all()).unwrap());
    let first = loader().build(all()).unwrap();
    let mut begun: Vec<_> = first.iter().take(3).map(Result::unwrap).collect();
    begun.extend(epoch(&*loader().resume(first.state()).build(all()).unwrap()));
    assert_eq!(begun, whole);
}

#[test]
fn a_kept_data_set_keeps_its_columns() {
    for policy in [BadSamples::Skip(Quota::Share(1.0)), BadSamples::Replace { tries: 60 }] {
        let loader = || builder().bad_samples(policy);
        let (read, kept) = (loader().build(all()).unwrap(), loader().build_kept(all()).unwrap());
        for _ in 0..2 {
            let batches = epoch(&*kept);
            batches.iter().for_each(check);
            assert_eq!(batches, epoch(&*read));
        }
    }
}

#[test]
fn a_collate_with_columns_serves_burns_loader() {
    let good = || InMemDataset::new(vec![1usize, 2, 4, 5, 6]);
    let loader = DataLoaderBuilder::new(PinnedBatcher::new(named()).unwrap()).batch_size(2).build(good());
    epoch(&*loader).iter().for_each(check);
    let batch: Named = PinnedBatcher::new(named()).unwrap().batch(vec![8, 9], &Device::flex());
    assert_eq!(batch.1, ["number 8", "number 9"]);
}

#[test]
fn what_is_wrong_with_a_column_is_said() {
    let message = |write: fn(&mut burn_pinned::RowMut<'_>) -> Result<(), BoxError>,
                   finish: fn(RawBatch) -> Result<(), BoxError>| {
        let fields = [Field::new("number", DType::I64, []), Field::column::<String>("name")];
        let collate = collate(
            fields,
            move |number: &usize, row| {
                row.put("number", *number as i64)?;
                write(row)
            },
            finish,
        );
        let loader =
            PinnedDataLoaderBuilder::new(collate).batch_size(2).set_device(Device::flex()).build(all()).unwrap();
        let error = loader.iter().next().unwrap().unwrap_err();
        Error::of(&error).unwrap().to_string()
    };
    let good: fn(&mut burn_pinned::RowMut<'_>) -> _ = |row| Ok(row.put_column("name", String::new())?);
    let cases: [(String, &str); 9] = [
        (message(|_| Ok(()), |_| Ok(())), "field `name` was not written"),
        (message(|row| Ok(row.put_column("name", "text")?), |_| Ok(())), "holds alloc::string::String, not &str"),
        (message(|row| Ok(row.put_column("other", 1)?), |_| Ok(())), "no field `other` in the layout"),
        (message(|row| Ok(row.put_column("number", 1)?), |_| Ok(())), "field `number` is no column"),
        (message(|row| Ok(row.put("name", 1u8)?), |_| Ok(())), "field `name` is a column: write it by"),
        (
            message(good, |mut batch| batch.column::<u8>("name").map(drop).map_err(Into::into)),
            "holds alloc::string::String, not u8",
        ),
        (
            message(good, |mut batch| batch.column::<u8>("number").map(drop).map_err(Into::into)),
            "field `number` is a tensor",
        ),
        (
            message(good, |mut batch| batch.take::<1, Int>("name").map(drop).map_err(Into::into)),
            "field `name` is a column: take it by",
        ),
        (
            message(good, |mut batch| {
                drop(batch.column::<String>("name")?);
                batch.column::<String>("name").map(drop).map_err(Into::into)
            }),
            "it was taken before",
        ),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}");
    }
    let only = collate([Field::column::<u8>("a")], |_: &usize, _| Ok(()), |_| Ok(()));
    let only = PinnedDataLoaderBuilder::new(only).batch_size(1).set_device(Device::flex()).build(all()).unwrap_err();
    assert!(only.to_string().contains("no field besides columns"), "{only}");
}

/// Counts those that live.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(live: &Arc<AtomicUsize>, most: &AtomicUsize) -> Self {
        most.fetch_max(live.fetch_add(1, Relaxed) + 1, Relaxed);
        Self(Arc::clone(live))
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.0, &AtomicUsize::new(0))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn values_are_no_more_than_open_batches_have_rows() {
    let (live, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (counter, peak) = (Arc::clone(&live), Arc::clone(&most));
    let counted = collate(
        [Field::new("number", DType::I64, [1 << 16]), Field::column::<Counted>("counted")],
        move |_: &usize, row| {
            row.slice_mut::<i64>("number")?.fill(0);
            Ok(row.put_column("counted", Counted::new(&counter, &peak))?)
        },
        |mut batch| Ok(batch.column::<Counted>("counted")?),
    );
    let builder = PinnedDataLoaderBuilder::new(counted).batch_size(8).num_workers(2).prefetch(1);
    let loader = builder
        .set_device(Device::flex())
        .pinned_limit(3 * (8 << 19))
        .build(InMemDataset::new((0..400).collect()))
        .unwrap();
    assert_eq!(loader.iter().map(|batch| batch.unwrap().len()).sum::<usize>(), 400);
    assert!(most.load(Relaxed) <= 6 * 8, "{most:?} values at once");
    drop(loader.iter().next());
    drop(loader);
    assert_eq!(live.load(Relaxed), 0);
}

/// Panics as it is dropped, unless it was delivered.
#[derive(Clone, Debug)]
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("a bad end");
    }
}

#[test]
fn a_panic_in_a_drop_of_a_value_ends_no_thread() {
    let fragile = collate(
        [Field::new("number", DType::I64, []), Field::column::<Fragile>("fragile")],
        |number: &usize, row| {
            row.put("number", *number as i64)?;
            row.put_column("fragile", Fragile)?;
            if *number == 2 { Err("a bad one".into()) } else { Ok(()) }
        },
        |mut batch| {
            std::mem::forget(batch.column::<Fragile>("fragile")?);
            Ok(batch.len())
        },
    );
    let builder = PinnedDataLoaderBuilder::new(fragile).batch_size(4).num_workers(2).set_device(Device::flex());
    let loader = builder.bad_samples(BadSamples::Skip(Quota::Count(1))).build(Numbers::new(12)).unwrap();
    assert_eq!(epoch(&*loader), [3, 4, 4]);
    let failing = Numbers::new(12).with(5, Mischief::Error);
    let builder = PinnedDataLoaderBuilder::new(named()).batch_size(4).set_device(Device::flex());
    let loader = builder.build(failing).unwrap();
    assert!(loader.iter().nth(1).unwrap().is_err());
}
