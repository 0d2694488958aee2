//! Parquet columns of lists in lists, lists of structs, maps and decimals, against what pyarrow wrote.

use crate::golden::golden;
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::PathBuf,
};

const FILES: [&str; 4] = ["whole", "pages", "pages_v2", "old_names"];

/// A list that may be null, of elements that may be null.
type Some<T> = Option<Vec<Option<T>>>;

#[derive(Debug, PartialEq, Deserialize)]
struct Row {
    chat: Some<Message>,
    grid: Some<Vec<Option<f32>>>,
    deep: Some<Vec<Option<Vec<Option<Inner>>>>>,
    scores: Option<HashMap<String, Option<f64>>>,
    by_id: Option<BTreeMap<i64, Some<String>>>,
    shapes: Vec<Vec<i16>>,
    price: Option<String>,
    wide: Option<String>,
    prices: Some<String>,
    meta: Option<Meta>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Message {
    role: Option<String>,
    content: Option<String>,
    tokens: Some<i32>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Inner {
    x: Option<i64>,
    tags: Some<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Meta {
    boxes: Some<[f32; 4]>,
    label: Option<String>,
}

fn path(name: &str) -> PathBuf {
    golden("nested").join(format!("{name}.parquet"))
}

fn told<T: for<'de> Deserialize<'de>>() -> Vec<T> {
    let lines = fs::read_to_string(golden("nested").join("rows.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn nested_columns_are_what_pyarrow_wrote() {
    let told = told::<Row>();
    for name in FILES {
        let rows = Rows::<Row>::parquet(path(name)).open().unwrap();
        assert_eq!(rows.len(), told.len());
        for index in (0..rows.len()).rev() {
            assert_eq!(rows.get(index).unwrap(), told[index], "{name}, row {index}");
        }
    }
    let rows = Rows::<Row>::parquet(FILES.map(path)).open().unwrap();
    assert_eq!(rows.get(3 * told.len() + 7).unwrap(), told[7]);
}

#[test]
fn a_list_of_structs_gives_the_fields_that_are_asked_for() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Chat {
        chat: Some<Role>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Role {
        role: Option<String>,
    }
    let rows = Rows::<Chat>::parquet(path("pages")).open().unwrap();
    let tuple = Rows::<(Some<Role>,)>::parquet(path("pages")).columns(["chat"]).open().unwrap();
    for (index, right) in told::<Chat>().into_iter().enumerate() {
        assert_eq!(tuple.get(index).unwrap().0, right.chat);
        assert_eq!(rows.get(index).unwrap(), right);
    }
}

#[test]
fn a_misspelt_field_of_a_list_of_structs_is_an_error_of_open() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only opened")]
    struct Chat {
        chat: Some<Role>,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only opened")]
    struct Role {
        roel: Option<String>,
    }
    let error = Rows::<Chat>::parquet(path("whole")).open().unwrap_err().to_string();
    assert!(error.contains("`chat.roel`") && error.contains("struct{role: string"), "{error}");
    Rows::<Chat>::parquet(path("whole")).optional(["chat.roel"]).open().unwrap();
}

#[test]
fn a_map_is_a_list_of_pairs_too() {
    #[derive(Deserialize)]
    struct Scores {
        scores: Option<HashMap<String, Option<f64>>>,
    }
    let rows =
        Rows::<(Option<Vec<(String, Option<f64>)>>,)>::parquet(path("pages")).columns(["scores"]).open().unwrap();
    for (index, right) in told::<Scores>().into_iter().enumerate() {
        let pairs = rows.get(index).unwrap().0;
        assert_eq!(pairs.map(|pairs| pairs.into_iter().collect()), right.scores, "row {index}");
    }
    // Keys of numbers are no texts, but their names are.
    let by_name = Rows::<(Option<HashMap<String, Some<String>>>,)>::parquet(path("pages")).columns(["by_id"]);
    assert_eq!(by_name.open().unwrap().get(0).unwrap().0.unwrap()["4"], None);
    let error = Rows::<(Vec<f64>,)>::parquet(path("pages")).columns(["scores"]).open().map(drop).unwrap_err();
    assert!(matches!(&error, DataError::Schema { .. }) && error.to_string().contains("`scores`"), "{error}");
}

#[test]
fn decimals_are_floats_or_texts_and_no_integers() {
    #[derive(Deserialize)]
    struct Price {
        price: Option<String>,
    }
    let floats = Rows::<(Option<f64>,)>::parquet(path("pages_v2")).columns(["price"]).open().unwrap();
    for (index, right) in told::<Price>().into_iter().enumerate() {
        assert_eq!(floats.get(index).unwrap().0, right.price.map(|price| price.parse().unwrap()));
    }
    let error = Rows::<(Option<i64>,)>::parquet(path("pages")).columns(["price"]).open().map(drop).unwrap_err();
    assert!(error.to_string().contains("decimal(9, 2)"), "{error}");
}

#[test]
fn damaged_nested_files_give_rows_or_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut rng) = (folder.path().join("a.parquet"), StdRng::seed_from_u64(6));
    let files = FILES.map(|name| fs::read(self::path(name)).unwrap());
    let (told, mut right, mut wrong) = (told::<Row>(), 0, 0);
    for round in 0..600 {
        let mut bytes = files[round % files.len()].clone();
        let end = bytes.len() * if round % 3 == 0 { 4 } else { 2 } / 4;
        (0..3).for_each(|_| bytes[rng.random_range(0..end)] ^= 1 << rng.random_range(0..8));
        fs::write(&path, bytes).unwrap();
        let Ok(rows) = Rows::<Row>::parquet(&path).index_dir(folder.path()).open() else {
            wrong += 1;
            continue;
        };
        for (index, told) in told.iter().enumerate().take(rows.len()).step_by(9) {
            match rows.get(index) {
                Ok(row) => right += usize::from(row == *told),
                Err(_) => wrong += 1,
            }
        }
    }
    assert!(right > 500 && wrong > 500, "{right} right, {wrong} wrong");
}
