//! Floats in JSON and in other texts are the nearest ones, and those that JSON does not have are read as Python writes them.

use crate::shards::{file, mds, tar};
use burn::data::dataset::Dataset;
use burn_shards::{Rows, RowsBuilder};
use rand::{Rng, SeedableRng, rngs::ChaCha8Rng};
use serde::{Deserialize, de::DeserializeOwned};
use std::{collections::HashMap, fmt::Debug};

fn all<T: DeserializeOwned>(rows: RowsBuilder<T>) -> Vec<T> {
    let rows = rows.open().unwrap();
    (0..rows.len()).map(|row| rows.get(row).unwrap()).collect()
}

/// Floats as Python and others print them, and with more digits than it takes.
fn texts() -> Vec<String> {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let mut texts = vec![
        "122.416294033786585".to_string(),
        "0.1".into(),
        "1e-7".into(),
        "9007199254740993.0".into(),
        "5e-324".into(),
        "2.2250738585072011e-308".into(),
        "-0.0".into(),
        "1.7976931348623157e308".into(),
    ];
    while texts.len() < 4000 {
        let value = match rng.next_u32() % 2 {
            0 => f64::from_bits(rng.next_u64()),
            _ => (rng.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0 * 1000.0,
        };
        if value.is_finite() {
            texts.push(format!("{value:?}"));
            texts.push(format!("{value:.16e}"));
            texts.push(format!("{value:.25e}"));
        }
    }
    texts
}

fn right(texts: &[String]) -> Vec<u64> {
    texts.iter().map(|text| text.parse::<f64>().unwrap().to_bits()).collect()
}

#[derive(Deserialize)]
struct X {
    x: f64,
}

#[derive(Deserialize)]
struct Xs {
    x: Vec<f64>,
}

#[derive(Deserialize)]
struct Json<T> {
    json: T,
}

#[test]
fn floats_of_json_are_the_nearest_ones() {
    let (folder, texts) = (tempfile::tempdir().unwrap(), texts());
    let right = right(&texts);
    assert_eq!(right[0], 0x405e_9aa4_8fbb_2888);
    let bits = |read: Vec<f64>| -> Vec<u64> { read.into_iter().map(f64::to_bits).collect() };

    let lines: String = texts.iter().map(|text| format!("{{\"x\": {text}}}\n")).collect();
    let path = file(folder.path(), "a.jsonl", lines);
    assert_eq!(bits(all(Rows::<X>::jsonl(path)).into_iter().map(|row| row.x).collect()), right);

    let list = format!("{{\"x\": [{}]}}", texts.join(", "));
    let path = file(folder.path(), "list.jsonl", &list);
    assert_eq!(bits(all(Rows::<Xs>::jsonl(path)).remove(0).x), right);

    let path = file(folder.path(), "a.tar", tar(&[(b'0', "1.json", list.as_bytes())]));
    assert_eq!(bits(all(Rows::<Json<Xs>>::tar(path)).remove(0).json.x), right);

    mds(folder.path(), &[("json", "json", None)], &[vec![list.clone().into_bytes()]]);
    assert_eq!(bits(all(Rows::<Json<Xs>>::mds(folder.path())).remove(0).json.x), right);
}

#[test]
fn floats_in_texts_are_the_nearest_ones() {
    let (folder, texts) = (tempfile::tempdir().unwrap(), texts());
    let rows: Vec<Vec<Vec<u8>>> = texts.iter().map(|text| vec![text.clone().into_bytes()]).collect();
    mds(folder.path(), &[("x", "str_float", None)], &rows);
    let read: Vec<u64> = all(Rows::<X>::mds(folder.path())).into_iter().map(|row| row.x.to_bits()).collect();
    assert_eq!(read, right(&texts));

    let names: Vec<String> = (0..texts.len()).map(|n| format!("{n}.cls")).collect();
    let entries: Vec<_> = names.iter().zip(&texts).map(|(name, text)| (b'0', &**name, text.as_bytes())).collect();
    let path = file(folder.path(), "a.tar", tar(&entries));
    let read: Vec<(f64,)> = all(Rows::tar(path).columns(["cls"]));
    assert_eq!(read.into_iter().map(|(x,)| x.to_bits()).collect::<Vec<_>>(), right(&texts));
}

#[derive(Debug, Deserialize)]
struct Strange {
    a: f32,
    maybe: Option<f32>,
    none: Option<f64>,
    list: Vec<f64>,
    inner: Inner,
    text: String,
}

#[derive(Debug, Deserialize)]
struct Inner {
    lists: Vec<Vec<Option<f32>>>,
}

const STRANGE: &str = r#"{"a": NaN, "maybe": NaN, "none": null, "list": [Infinity,-Infinity, 122.416294033786585,NaN ],
    "other": {"x": [NaN]}, "inner": {"lists": [[NaN, null], [-Infinity]]}, "text": "NaN, \"Infinity\", [NaN]"}"#;

fn is_right(row: &Strange) {
    assert!(row.a.is_nan() && row.maybe.unwrap().is_nan() && row.none.is_none(), "{row:?}");
    assert_eq!(row.list[..2], [f64::INFINITY, f64::NEG_INFINITY], "{row:?}");
    assert_eq!(row.list[2].to_bits(), 0x405e_9aa4_8fbb_2888);
    assert!(row.list[3].is_nan() && row.list.len() == 4);
    assert!(row.inner.lists[0][0].unwrap().is_nan() && row.inner.lists[0][1].is_none());
    assert_eq!(row.inner.lists[1], [Some(f32::NEG_INFINITY)]);
    assert_eq!(row.text, "NaN, \"Infinity\", [NaN]");
}

#[test]
fn floats_that_json_does_not_have_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let line = STRANGE.replace('\n', " ");
    let path = file(folder.path(), "a.jsonl", format!("{line}\n{line}\n"));
    let rows = all(Rows::<Strange>::jsonl(path));
    rows.iter().for_each(is_right);
    assert_eq!(rows.len(), 2);

    let path = file(folder.path(), "b.jsonl", "{\"a\": NaN}\n{\"a\": 1}\n{\"a\": -Infinity}");
    let rows: Vec<(f64,)> = all(Rows::jsonl(path).columns(["a"]));
    assert!(rows[0].0.is_nan() && rows[1].0 == 1.0 && rows[2].0 == f64::NEG_INFINITY, "{rows:?}");

    let members = tar(&[
        (b'0', "1.json", STRANGE.as_bytes()),
        (b'0', "1.list.json", b"[1, NaN]"),
        (b'0', "1.one.json", b" NaN\n"),
        (b'0', "1.txt", b"[-Infinity]"),
    ]);
    let path = file(folder.path(), "a.tar", members);
    type Row = (Strange, Vec<f32>, Option<f64>, Vec<f64>);
    let row: Row = all(Rows::tar(&path).columns(["json", "list.json", "one.json", "txt"])).remove(0);
    is_right(&row.0);
    assert!(row.1[0] == 1.0 && row.1[1].is_nan() && row.2.unwrap().is_nan() && row.3 == [f64::NEG_INFINITY]);
    // As a text, it is what is in the file.
    let text: (String,) = all(Rows::tar(&path).columns(["json"])).remove(0);
    assert_eq!(text.0, STRANGE);

    mds(folder.path(), &[("x", "json", None), ("y", "str_float", None)], &[vec![STRANGE.into(), "nan".into()]]);
    let row: (Strange, f32) = all(Rows::mds(folder.path()).columns(["x", "y"])).remove(0);
    is_right(&row.0);
    assert!(row.1.is_nan());
}

fn problem<T: DeserializeOwned + Debug>(line: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a.jsonl", format!("{{\"a\": 0}}\n{line}\n"));
    let rows = Rows::<T>::jsonl(path).open().unwrap();
    rows.get(1).map(|row| panic!("{row:?}")).unwrap_or_else(|error| error.to_string())
}

#[test]
fn they_are_floats_only_and_words_only() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "none of its rows is right")]
    struct Whole {
        a: i64,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "none of its rows is right")]
    struct Float {
        a: f64,
    }
    assert!(problem::<Whole>(r#"{"a": NaN}"#).contains("expected i64"));
    for wrong in ["nan", "NaNs", "Nan", "+Infinity", "- Infinity", "Infinit", "-NaN", "1NaN", "NaN1", "--Infinity"] {
        let error = problem::<Float>(&format!("{{\"a\": {wrong}}}"));
        assert!(error.contains("row 1"), "{wrong}: {error}");
    }
    // The place of another fault is the one in the line.
    let error = problem::<Float>(r#"{"b": [NaN, -Infinity], "a": 1 2}"#);
    assert!(error.contains("at column 32"), "{error}");
    let error = problem::<Float>(r#"{"a": 1 2, "b": NaN}"#);
    assert!(error.contains("at column 9"), "{error}");
    let error = problem::<Float>(r#"{NaN: 1}"#);
    assert!(error.contains("at column 2"), "{error}");
}

#[test]
fn they_are_values_of_maps_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a.jsonl", r#"{"a": NaN, "b": 2}"#);
    let row = all(Rows::<HashMap<String, f64>>::jsonl(path)).remove(0);
    assert!(row["a"].is_nan() && row["b"] == 2.0);
}

#[test]
fn a_file_of_one_array_or_of_pretty_objects_names_the_command_that_makes_lines() {
    let folder = tempfile::tempdir().unwrap();
    let array = "jq -c '.[]'";
    let objects = "jq -c . ";
    let many: String = (0..100_000).map(|n| format!("  {{\"a\": {n}}},\n")).collect();
    let cases: Vec<(String, &str)> = vec![
        ("[{\"a\": 1}, {\"a\": 2}]".into(), array),
        ("[{\"a\": 1},\n {\"a\": 2}]\n".into(), array),
        ("\u{feff}\n [\n  {\n    \"a\": NaN\n  }\n]\n".into(), array),
        (format!("[\n{many}  {{\"a\": 1}}\n]"), array),
        (format!("[{}{{\"a\": 1}}]", many.replace('\n', "")), array),
        ("{\n  \"a\": 1\n}\n".into(), objects),
        ("{\"a\": 1,\n\"b\": -Infinity}\n{\"a\": 1,\n\"b\": 2}\n".into(), objects),
        (format!("{{\"rows\": [\n{many}{{}}]}}"), objects),
    ];
    for (text, command) in cases {
        let path = file(folder.path(), "a.jsonl", &text);
        let error = Rows::<X>::jsonl(&path).open().unwrap_err().to_string();
        let start: String = text.chars().take(40).collect();
        assert!(error.contains(command) && error.contains("a.jsonl") && error.contains("lines"), "{start}: {error}");
    }
    // A bad first line is one bad row.
    for first in ["[1]", "{\"a\": [1, 2,", "{", "{\"x\": 1"] {
        let path = file(folder.path(), "a.jsonl", format!("{first}\n{{\"x\": 1.5}}\n{{\"x\": 2}}\n"));
        let problem = Rows::<X>::jsonl(path).open().map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!problem.contains("jq"), "{first}: {problem}");
    }
}

#[test]
fn json_in_a_tar_may_begin_with_the_mark_of_an_editor() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a.tar", tar(&[(b'0', "1.json", b"\xef\xbb\xbf{\"x\": [1.5]}")]));
    assert_eq!(all(Rows::<Json<Xs>>::tar(path)).remove(0).json.x, [1.5]);
}
