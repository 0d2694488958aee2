//! Parts of any dataset, and what is learnt from one of them.

use crate::common::*;
use burn::data::dataset::{Dataset, DatasetError, InMemDataset};
use burn_pinned::{
    DatasetExt,
    data::{Categories, MeanStd, Rows, medians},
};
use std::{collections::BTreeSet, fs, sync::Arc};

fn all_of(part: &impl Dataset<usize>) -> Vec<usize> {
    (0..part.len()).map(|index| part.get(index).unwrap()).collect()
}

#[test]
fn parts_are_those_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    for len in [2, 20, 70_000] {
        let path = folder.path().join(format!("{len}.jsonl"));
        let line = |n| format!("{{\"x\": {n}, \"label\": {}}}\n", n % 10 == 3);
        fs::write(&path, (0..len).map(line).collect::<String>()).unwrap();
        let rows = Rows::<(usize,)>::jsonl(path).columns(["x"]).open().unwrap();
        let same = |part: &dyn Dataset<usize>, of_rows: &Rows<(usize,)>| {
            assert_eq!(part.len(), of_rows.len());
            for index in (0..part.len()).step_by(1 + len / 300) {
                assert_eq!(part.get(index).unwrap(), of_rows.get(index).unwrap().0, "{index} of {len}");
            }
        };
        let (rest, part) = Numbers::new(len).split(0.4, 42).unwrap();
        let (rest_of_rows, part_of_rows) = rows.split(0.4, 42).unwrap();
        same(&rest, &rest_of_rows);
        same(&part, &part_of_rows);
        let folds = Numbers::new(len).folds(2, 7).unwrap();
        for ((rest, part), (rest_of_rows, part_of_rows)) in folds.iter().zip(rows.folds(2, 7).unwrap()) {
            same(rest, &rest_of_rows);
            same(part, &part_of_rows);
        }
        if len > 2 {
            let (rest, part) = Numbers::new(len).split_by(|n| n % 10 == 3, 0.3, 1).unwrap();
            let (rest_of_rows, part_of_rows) = rows.split_by("label", 0.3, 1).unwrap();
            same(&rest, &rest_of_rows);
            same(&part, &part_of_rows);
        }
    }
}

#[test]
fn groups_stay_together_and_folds_have_each_sample_once() {
    let (rest, part) = Numbers::new(100).split_groups(|n| n % 13, 0.3, 5).unwrap();
    let groups = |part: &Vec<usize>| part.iter().map(|n| n % 13).collect::<BTreeSet<usize>>();
    let (rest, part) = (all_of(&rest), all_of(&part));
    assert!(groups(&rest).is_disjoint(&groups(&part)) && rest.len() + part.len() == 100);
    assert!((25..=35).contains(&part.len()), "{}", part.len());

    // Samples that are left out are no group that could be a part.
    let (rest, part) = Numbers::new(100).filter(|n| n % 2 == 0).split_groups(|n| n % 13, 0.5, 5).unwrap();
    let left = |part: &dyn Dataset<usize>| (0..part.len()).filter(|index| part.get(*index).is_ok()).count();
    assert!((15..=35).contains(&left(&rest)) && left(&rest) + left(&part) == 50, "{}", left(&rest));

    // A large group is not taken where small ones fit.
    for seed in 0..50 {
        for (len, large, share, right) in
            [(100, 20, 0.1, 10..=10), (1000, 500, 0.5, 500..=500), (16, 6, 0.625, 10..=12)]
        {
            let group = |n: &usize| if *n < large { 0 } else { n / 5 };
            let (_, part) = Numbers::new(len).split_groups(group, share, seed).unwrap();
            assert!(right.contains(&part.len()), "{seed}: {} of {len}", part.len());
        }
    }

    let folds = Numbers::new(11).folds(4, 3).unwrap();
    let mut parts: Vec<usize> = folds.iter().flat_map(|(_, part)| all_of(part)).collect();
    parts.sort_unstable();
    assert!(parts.into_iter().eq(0..11));
    for (rest, part) in &folds {
        assert!(rest.len() + part.len() == 11 && (2..=3).contains(&part.len()));
        assert!(all_of(rest).iter().all(|n| !all_of(part).contains(n)));
    }
    let chosen = Numbers::new(9).select([7, 2, 7]).unwrap();
    assert_eq!(all_of(&chosen), [2, 7]);
}

#[test]
fn parts_that_cannot_be_are_errors() {
    for share in [0.0, 1.0, -1.0, f64::NAN, 0.001] {
        assert!(Numbers::new(20).split(share, 1).is_err(), "{share}");
        assert!(Numbers::new(20).split_by(|n| n % 2, share, 1).is_err(), "{share}");
    }
    assert!(Numbers::new(0).split(0.5, 1).is_err());
    assert!(Numbers::new(20).split_groups(|_| 0, 0.5, 1).is_err());
    assert!(Numbers::new(3).folds(4, 1).is_err() && Numbers::new(3).folds(1, 1).is_err());
    let error = Numbers::new(3).select([3]).err().unwrap().to_string();
    assert!(error.contains("row 3 of 3"), "{error}");
    // A sample that cannot be read has no key, and its error is not lost.
    let bad = Numbers::new(5).map(|n| if n == 3 { Err("no third".into()) } else { Ok(n) });
    let error = bad.clone().split_by(|n| *n, 0.5, 1).err().unwrap().to_string();
    assert!(error.contains("sample 3: ") && error.contains("no third"), "{error}");
    let error = MeanStd::of(&bad, 1, |n| [n as f64]).unwrap_err().to_string();
    assert!(error.contains("sample 3: ") && error.contains("no third"), "{error}");
    assert!(bad.split(0.5, 1).is_ok()); // which reads nothing
}

#[test]
fn parts_go_through_a_loader_and_a_filter() {
    // What a filter leaves out has a place in a part, and none in a batch.
    let (rest, part) = Numbers::new(40).filter(|n| n % 2 == 0).split_by(|n| n % 3, 0.25, 9).unwrap();
    assert_eq!((rest.len(), part.len()), (30, 10));
    let mut seen = Vec::new();
    for (part, workers) in [(rest, 1), (part, 3)] {
        seen.extend(numbers(&epoch(&*builder().num_workers(workers).read_many(4).build(part).unwrap())));
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq((0..40).step_by(2)));
    let part = Numbers::new(40).split(0.5, 1).unwrap().1;
    assert_eq!(part.get_many(vec![3, 1]).unwrap(), [part.get(3).unwrap(), part.get(1).unwrap()]);
    let beyond = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| part.get(20)));
    assert!(beyond.is_err());
}

/// A number that may be missing, a town, and tags.
type House = (Option<f32>, String, Vec<String>);

fn houses() -> Arc<InMemDataset<House>> {
    let house = |n: usize| {
        let rooms = (!n.is_multiple_of(5)).then_some((n % 7) as f32);
        (rooms, format!("town {}", n % 4), (0..n % 3).map(|tag| format!("tag {tag}")).collect())
    };
    Arc::new(InMemDataset::new((0..60).map(house).collect()))
}

fn rooms(house: House) -> [f32; 1] {
    [house.0.unwrap_or(f32::NAN)]
}

#[test]
fn what_is_learnt_is_of_the_part_for_training_alone() -> Result<(), DatasetError> {
    let (train, valid) = houses().split(0.25, 42)?;
    let learn = |train: &dyn Dataset<House>| -> Result<_, DatasetError> {
        let towns = Categories::of(train, |(_, town, _)| [town])?;
        let tags = Categories::of(train, |(_, _, tags)| tags)?;
        Ok((MeanStd::of(train, 1, rooms)?, medians(train, 1, rooms)?, towns, tags))
    };
    let learnt = learn(&train)?;
    // The same rows for training, with others for validation.
    let mut items: Vec<House> = train.iter().collect::<Result<_, _>>()?;
    assert_eq!(learn(&InMemDataset::new(items.clone()))?, learnt);
    let values: Vec<f64> = items.iter().filter_map(|house| house.0).map(f64::from).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((learnt.0.mean[0] - mean).abs() < 1e-12 && learnt.0.count[0] == values.len() as u64);
    items.extend(valid.iter().collect::<Result<Vec<_>, _>>()?);
    items.push((Some(1e6), "village".into(), vec!["far".into()]));
    let all = learn(&InMemDataset::new(items))?;
    assert_ne!(all, learnt);
    assert!(learnt.2.number("village").is_err() && all.2.number("village").is_ok());
    Ok(())
}

#[test]
fn what_is_learnt_is_saved_and_applied() -> Result<(), Box<dyn std::error::Error>> {
    let data = houses();
    let normal = MeanStd::of(&*data, 1, rooms)?;
    let again: MeanStd = serde_json::from_str(&serde_json::to_string(&normal)?)?;
    assert_eq!(again, normal);
    // Normalised values have the mean 0 and the deviation 1, and missing ones are the mean.
    let scaled = data.map(move |house| Ok(normal.normalise(rooms(house))?));
    let all: Vec<f32> = scaled.iter().collect::<Result<Vec<_>, _>>()?.concat();
    assert!(all.iter().step_by(5).all(|rooms| *rooms == 0.0));
    assert!(all.iter().sum::<f32>().abs() < 1e-4);
    let squares: f32 = all.iter().map(|value| value * value).sum();
    assert!((squares / 48.0 - 1.0).abs() < 1e-5, "{squares}");

    let towns = Categories::of(&*houses(), |(_, town, _)| [town])?;
    let again: Categories = serde_json::from_str(&serde_json::to_string(&towns.clone().with_unknown())?)?;
    assert_eq!((towns.count(), again.count(), again.names()), (4, 5, towns.names()));
    assert_eq!((again.number("town 2")?, again.number("nowhere")?), (2, 4));
    let error = towns.number("town2").unwrap_err().to_string();
    assert!(error.contains("`town2`") && error.contains("nearest: `town 2`"), "{error}");
    assert_eq!(again.multi_hot(["town 3", "x", "town 3"])?, [0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(towns.multi_hot([""; 0])?, [0.0; 4]);
    // A saved file that was edited gives no wrong numbers.
    for names in [r#"["b", "a"]"#, r#"["a", "a"]"#, "[1]"] {
        assert!(serde_json::from_str::<Categories>(&format!(r#"{{"names": {names}, "has_unknown": true}}"#)).is_err());
    }
    Ok(())
}

#[test]
fn what_cannot_be_learnt_is_an_error() {
    let none = InMemDataset::<House>::new(Vec::new());
    assert!(MeanStd::of(&none, 1, rooms).is_err() && medians(&none, 1, rooms).is_err());
    assert!(Categories::of(&none, |(_, town, _)| [town]).is_err());
    let missing = InMemDataset::new(vec![(None, "a".to_string(), Vec::new())]);
    assert!(MeanStd::of(&missing, 1, rooms).is_err() && medians(&missing, 1, rooms).is_err());
    assert!(Categories::of(&missing, |(_, _, tags)| tags).is_err());
    let infinite = InMemDataset::new(vec![[1.0, f32::INFINITY]]);
    let error = format!("{:?}", MeanStd::of(&infinite, 2, |row| row).unwrap_err());
    assert!(error.contains("sample 0 has an infinite value"), "{error}");
    assert!(medians(&infinite, 3, |row| row).is_err());

    // The median of one, two and three values; a constant channel is not divided.
    let table = InMemDataset::new(vec![[3.0, 7.0, f32::NAN], [1.0, 7.0, f32::NAN], [2.0, f32::NAN, 5.0]]);
    assert_eq!(medians(&table, 3, |row| row).unwrap(), [2.0, 7.0, 5.0]);
    let normal = MeanStd::of(&table, 3, |row| row).unwrap();
    assert_eq!((&*normal.count, normal.std[1]), (&[3, 2, 1][..], 0.0));
    let rows = normal.normalise([2.0, 9.0, f32::NAN, 2.0, 7.0, 5.0]).unwrap();
    assert_eq!(rows, [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    assert!(normal.normalise([1.0, 2.0]).is_err());
    let broken = MeanStd { count: vec![], mean: vec![], std: vec![1.0] };
    assert!(broken.normalise([1.0]).is_err());
}
