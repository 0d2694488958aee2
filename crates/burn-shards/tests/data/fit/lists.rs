//! A list that is longer than its type is an error. Its beginning is no value of that type.

use super::write::{Column, jsonl, list, mds, parquet, tar};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows, RowsBuilder};
use serde::{Deserialize, de::DeserializeOwned};
use std::{error::Error, fmt::Debug};

/// Checks that row 0 fits and that row 1 is an error that names the column and both lengths.
fn check<T: DeserializeOwned + Debug + Send + Sync>(rows: RowsBuilder<T>, column: &str, lengths: [&str; 2]) {
    let rows = rows.open().unwrap();
    rows.get(0).unwrap();
    let error = rows.get(1).unwrap_err();
    let error = error.source().and_then(|error| error.downcast_ref::<DataError>()).unwrap();
    let DataError::Row { row, column: Some(of), problem, .. } = error else { panic!("{error:?}") };
    assert!(*row == 1 && of == column, "{error}");
    assert!(lengths.iter().all(|length| problem.contains(length)), "{error}");
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Of<V> {
    x: V,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Pair(f32, f32);

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Named {
    a: f32,
    b: f32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only read")]
enum Shape {
    Line(f32, f32),
}

#[test]
fn of_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let of = |good: &str, bad: &str| jsonl(folder.path(), &[good, bad]);
    let lists = |two: &str, three: &str| of(&format!("{{\"x\": {two}}}"), &format!("{{\"x\": {three}}}"));
    let (two, three) = ("[1, 2]", "[1, 2, 3.5]");
    check(Rows::<Of<[f32; 2]>>::jsonl(lists(two, three)), "x", ["3", "2"]);
    check(Rows::<Of<(f32, f32)>>::jsonl(lists(two, three)), "x", ["3", "2"]);
    check(Rows::<Of<Pair>>::jsonl(lists(two, three)), "x", ["3", "2"]);
    check(Rows::<Of<Named>>::jsonl(lists(two, three)), "x", ["3", "2"]);
    check(Rows::<Of<Option<[f32; 2]>>>::jsonl(lists(two, three)), "x", ["3", "2"]);
    check(Rows::<([f32; 2],)>::jsonl(lists(two, three)).columns(["x"]), "x", ["3", "2"]);
    check(Rows::<Of<Vec<[f32; 2]>>>::jsonl(lists("[[1, 2]]", "[[1, 2], [1, 2, 3]]")), "x", ["3", "2"]);
    check(Rows::<Of<Of<[f32; 2]>>>::jsonl(lists("{\"x\": [1, 2]}", "{\"x\": [1, 2, 3]}")), "x.x", ["3", "2"]);
    check(Rows::<Of<Shape>>::jsonl(lists("{\"line\": [1, 2]}", "{\"line\": [1, 2, 3]}")), "x.line", ["3", "2"]);
    let sixteen = format!("{:?}", [1; 16]);
    check(Rows::<Of<[f32; 8]>>::jsonl(lists(&format!("{:?}", [1; 8]), &sixteen)), "x", ["16", "8"]);
    // A list that is too short was an error before.
    check(Rows::<Of<[f32; 2]>>::jsonl(lists(two, "[1]")), "x", ["1", "2"]);
}

#[test]
fn of_files_in_a_tar() {
    let folder = tempfile::tempdir().unwrap();
    let path = tar(
        folder.path(),
        "a.tar",
        &[
            ("0.jpg", b"1234"),
            ("0.json", b"{\"a\": [1, 2]}"),
            ("0.box.json", b"[1, 2]"),
            ("1.jpg", b"12345"),
            ("1.json", b"{\"a\": [1, 2, 3]}"),
            ("1.box.json", b"[1, 2, 3]"),
        ],
    );
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Json {
        a: [f32; 2],
    }
    check(Rows::<([u8; 4],)>::tar(&path).columns(["jpg"]), "jpg", ["5", "4"]);
    check(Rows::<(Json,)>::tar(&path).columns(["json"]), "json.a", ["3", "2"]);
    check(Rows::<((u8, u8),)>::tar(&path).columns(["box.json"]), "box.json", ["3", "2"]);
}

#[test]
fn of_mds() {
    let folder = tempfile::tempdir().unwrap();
    let floats = |count: u8| -> Vec<u8> {
        let numbers = (0..count).flat_map(|number| f32::from(number).to_le_bytes());
        [34, 1 << 2, count].into_iter().chain(numbers).collect()
    };
    let columns = [("emb", "ndarray"), ("raw", "bytes"), ("json", "json")];
    let rows: [&[&[u8]]; 2] = [&[&floats(8), b"1234", b"[1, 2]"], &[&floats(16), b"12345", b"[1, 2, 3]"]];
    mds(folder.path(), &columns, &rows);
    check(Rows::<([f32; 8],)>::mds(folder.path()).columns(["emb"]), "emb", ["16", "8"]);
    check(Rows::<([u8; 4],)>::mds(folder.path()).columns(["raw"]), "raw", ["5", "4"]);
    check(Rows::<([u8; 2],)>::mds(folder.path()).columns(["json"]), "json", ["3", "2"]);
}

#[test]
fn of_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let schema = format!(
        "{} required binary jpg; required group s {{ {} }} {}",
        list("emb", "float"),
        list("emb", "float"),
        list("words", "binary")
    );
    let (values, defs) = (vec![0.5; 24], vec![1; 24]);
    let reps: Vec<i16> = (0..24).map(|at| i16::from(at != 0 && at != 8)).collect();
    let columns = [
        Column::F32(&values, &defs, &reps),
        Column::Bytes(&[b"1234", b"12345"], &[], &[]),
        Column::F32(&values, &defs, &reps),
        Column::Bytes(&[b"a", b"b", b"c"], &[1; 3], &[0, 0, 1]),
    ];
    let path = parquet(folder.path(), "a.parquet", &schema, &columns);
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        emb: [f32; 8],
    }
    check(Rows::<([f32; 8],)>::parquet(&path).columns(["emb"]), "emb", ["16", "8"]);
    check(Rows::<([u8; 4],)>::parquet(&path).columns(["jpg"]), "jpg", ["5", "4"]);
    check(Rows::<(Inner,)>::parquet(&path).columns(["s"]), "s.emb", ["16", "8"]);
    check(Rows::<((String,),)>::parquet(&path).columns(["words"]), "words", ["2", "1"]);
}
