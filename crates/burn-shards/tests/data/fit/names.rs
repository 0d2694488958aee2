//! Names that no file has.

use super::write::{Column, file, jsonl, mds, parquet, tar};
use crate::kept::{keep, kept};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows, RowsBuilder};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use std::{collections::HashMap, fmt::Debug, path::Path};

#[derive(Debug, Deserialize, PartialEq)]
struct Misspelt {
    text: String,
    capton: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Renamed {
    #[serde(alias = "text")]
    words: String,
}

#[derive(Debug, Deserialize, PartialEq)]
struct WithDefault {
    text: String,
    #[serde(default)]
    captions: String,
}

/// `open` must refuse the name, and tell the nearest and the cure.
fn refused<T: DeserializeOwned + Debug>(rows: RowsBuilder<T>, name: &str, nearest: &str) {
    let error = rows.open().unwrap_err();
    assert!(matches!(&error, DataError::Schema { .. }), "{error}");
    let text = error.to_string();
    let cure = format!(".optional([\"{name}\"])");
    assert!(text.contains(&format!("`{name}`")) && text.contains(&cure), "{text}");
    assert!(text.split("; there is").next().unwrap().contains(&format!("`{nearest}`")), "{text}");
}

fn every(open: impl Fn() -> RowsBuilder<Misspelt>, renamed: RowsBuilder<Renamed>, default: RowsBuilder<WithDefault>) {
    refused(open(), "capton", "caption");
    let rows = open().optional(["capton"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap(), Misspelt { text: "a".into(), capton: None });
    refused(default, "captions", "caption");
    let rows = renamed.optional(["words"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap(), Renamed { words: "a".into() });
}

const SCHEMA: &str = "required binary text (STRING); required binary caption (STRING);";

fn parquet_of(folder: &Path) -> std::path::PathBuf {
    let column = || Column::Bytes(&[b"a"], &[], &[]);
    parquet(folder, "a.parquet", SCHEMA, &[column(), column()])
}

#[test]
fn in_no_schema_are_errors_of_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = parquet_of(folder.path());
    every(|| Rows::parquet(&path), Rows::parquet(&path), Rows::parquet(&path));
    let columns = [("text", "str"), ("caption", "str")];
    let rows: [&[&[u8]]; 1] = [&[b"a", b"b"]];
    mds(folder.path(), &columns, &rows);
    every(|| Rows::mds(folder.path()), Rows::mds(folder.path()), Rows::mds(folder.path()));
    let path = tar(folder.path(), "a.tar", &[("0.text", b"a"), ("0.caption", b"b")]);
    every(|| Rows::tar(&path), Rows::tar(&path), Rows::tar(&path));

    let tuple = || Rows::<(String, Option<Bytes>)>::tar(&path).columns(["text", "capton"]);
    refused(tuple(), "capton", "caption");
    assert_eq!(tuple().optional(["capton"]).open().unwrap().get(0).unwrap(), ("a".into(), None));
    refused(Rows::<(Option<String>,)>::tar(&path).columns(["__kex__"]), "__kex__", "__key__");
}

/// A name that one file has is known.
#[test]
fn in_some_schema_are_columns() {
    let folder = tempfile::tempdir().unwrap();
    let a = tar(folder.path(), "a.tar", &[("0.text", b"a"), ("1.text", b"b")]);
    let b = tar(folder.path(), "b.tar", &[("2.text", b"a"), ("2.capton", b"b")]);
    let rows = Rows::<Misspelt>::tar([a, b]).open().unwrap();
    assert_eq!((rows.get(0).unwrap().capton, rows.get(2).unwrap().capton), (None, Some("b".into())));
    let a = parquet_of(folder.path());
    let b = parquet(folder.path(), "b.parquet", "required binary text (STRING); required binary capton (STRING);", &[]);
    assert_eq!(Rows::<Misspelt>::parquet([a, b]).open().unwrap().get(0).unwrap().capton, None);
}

#[test]
fn of_fields_are_told_like_those_of_columns() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Row {
        image: File,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct File {
        bytes: Bytes,
        pth: Option<String>,
    }
    let folder = tempfile::tempdir().unwrap();
    let schema = "required group image { required binary bytes; required binary path (STRING); }";
    let column = || Column::Bytes(&[b"a"], &[], &[]);
    let path = parquet(folder.path(), "a.parquet", schema, &[column(), column()]);
    let error = Rows::<Row>::parquet(&path).open().unwrap_err().to_string();
    assert!(
        error.contains(".optional([\"image.pth\"])") && error.contains("struct{bytes: binary, path: string}"),
        "{error}"
    );
    let rows = Rows::<Row>::parquet(&path).optional(["image.pth"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap().image, File { bytes: Bytes::from_static(b"a"), pth: None });
    // A tuple takes whole structs, whose fields are not asked for by name.
    let rows = Rows::<(File,)>::parquet(&path).columns(["image"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap().0, File { bytes: Bytes::from_static(b"a"), pth: None });
}

/// How often a warning has this text.
fn warnings(about: &str) -> usize {
    kept().lines().filter(|line| line.starts_with("WARN") && line.contains(about)).count()
}

#[test]
fn in_no_line_of_json_are_warned_of() {
    keep();
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Row {
        text: String,
        naem: Option<String>,
        meta: Option<Meta>,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Meta {
        sourec: Option<String>,
    }
    let folder = tempfile::tempdir().unwrap();
    let line = "{\"text\": \"a\", \"name\": \"b\", \"meta\": {\"source\": 1}}\n";
    let path = file(folder.path(), "a.jsonl", line.repeat(1000));
    Rows::<Row>::jsonl(&path).open().unwrap();
    assert_eq!((warnings("`naem`"), warnings("`name`"), warnings("`meta.sourec`")), (1, 1, 1));
    Rows::<Row>::jsonl(&path).optional(["naem", "meta.sourec"]).open().unwrap();
    assert_eq!(warnings("`naem`"), 1);
    // The last of the first thousand has it.
    let text = line.repeat(999) + "{\"text\": \"a\", \"naem\": \"b\", \"meta\": {\"sourec\": \"c\"}}\n";
    Rows::<Row>::jsonl(file(folder.path(), "b.jsonl", text)).open().unwrap();
    assert_eq!((warnings("`naem`"), warnings("`meta.sourec`")), (1, 1));
    // A name that is needed is an error.
    let error = Rows::<Renamed>::jsonl(jsonl(folder.path(), &["{\"word\": \"a\"}"])).open().unwrap_err().to_string();
    assert!(error.contains("`words`") && error.contains("`word` (string)"), "{error}");
}

/// A row type with `flatten` does not tell its names.
#[test]
fn of_a_tar_may_be_asked_for_beside_all_others() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Row {
        __key__: String,
        __url__: Option<String>,
        #[serde(flatten)]
        rest: HashMap<String, Bytes>,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct Without {
        a: Bytes,
        #[serde(flatten)]
        rest: HashMap<String, Bytes>,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = tar(folder.path(), "a.tar", &[("k.a", b"1"), ("k.bin", b"abc")]);
    let rest = |names: &[(&str, &'static [u8])]| -> HashMap<String, Bytes> {
        names.iter().map(|(name, bytes)| ((*name).into(), Bytes::from_static(bytes))).collect()
    };
    let row = Rows::<Row>::tar(&path).open().unwrap().get(0).unwrap();
    assert_eq!((&*row.__key__, row.__url__.as_deref()), ("k", path.to_str()));
    assert_eq!(row.rest["bin"], Bytes::from_static(b"abc"));
    // Nobody else gets them.
    let row = Rows::<Without>::tar(&path).open().unwrap().get(0).unwrap();
    assert_eq!(row, Without { a: Bytes::from_static(b"1"), rest: rest(&[("bin", b"abc")]) });
    let row = Rows::<HashMap<String, Bytes>>::tar(&path).open().unwrap().get(0).unwrap();
    assert_eq!(row, rest(&[("a", b"1"), ("bin", b"abc")]));
    let row = Rows::<HashMap<String, String>>::tar(&path).open().unwrap().get(0).unwrap();
    assert_eq!(row.len(), 2);
}

#[test]
fn that_two_columns_of_a_parquet_file_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let column = |values| Column::I64(values, &[], &[]);
    let schema = "required int64 a; required int64 a; required int64 b;";
    let path = parquet(folder.path(), "a.parquet", schema, &[column(&[1]), column(&[2]), column(&[3])]);
    assert_eq!(Rows::<(i64,)>::parquet(&path).columns(["b"]).open().unwrap().get(0).unwrap(), (3,));
    let errors = [
        Rows::<(i64,)>::parquet(&path).columns(["a"]).open().unwrap_err(),
        Rows::<HashMap<String, i64>>::parquet(&path).open().unwrap_err(),
    ];
    for error in errors.map(|error| error.to_string()) {
        assert!(
            error.contains("a.parquet") && error.contains("column `a`") && error.contains("two columns"),
            "{error}"
        );
    }
}

/// An error names the misspelt column, the nearest one that is there, and says to correct it.
fn names_the_nearest<T>(got: Result<T, impl ToString>, misspelt: &str, nearest: &str) {
    let error = got.err().map_or_else(|| panic!("`{misspelt}` is taken"), |error| error.to_string());
    for part in [format!("`{misspelt}`"), format!("(nearest: `{nearest}`")] {
        assert!(error.split("; there is").next().unwrap().contains(&part), "{part}: {error}");
    }
    let before_option = error.split("Option").next().unwrap();
    assert!(!error.contains("Option") || before_option.contains("correct the name"), "{error}");
}

#[test]
fn of_json_lines_are_errors_that_name_the_nearest() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Needs {
        capton: String,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Inside {
        image: Part,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Part {
        pth: String,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct InList {
        parts: Vec<Part>,
    }
    let folder = tempfile::tempdir().unwrap();
    let row = "{\"text\": \"a\", \"caption\": \"b\", \"image\": {\"path\": \"c\"}, \"parts\": [{\"path\": \"c\"}]}";
    // A bad row before it is no matter.
    for rows in [&[row, row][..], &["no", row]] {
        let path = jsonl(folder.path(), rows);
        names_the_nearest(Rows::<Needs>::jsonl(&path).open(), "capton", "caption");
        names_the_nearest(
            Rows::<(String, String)>::jsonl(&path).columns(["text", "Captoin"]).open(),
            "Captoin",
            "caption",
        );
        names_the_nearest(Rows::<Inside>::jsonl(&path).open(), "image.pth", "image.path");
        names_the_nearest(Rows::<InList>::jsonl(&path).open(), "parts.pth", "parts.path");
    }
    let path = jsonl(folder.path(), &[row, row]);
    let rows = Rows::<(String,)>::jsonl(&path).columns(["text"]).open().unwrap();
    names_the_nearest(rows.column::<String>("capton"), "capton", "caption");
    names_the_nearest(rows.clone().filter(|_: Needs| Ok(true)), "capton", "caption");
    names_the_nearest(rows.split_by("capton", 0.5, 1), "capton", "caption");
    names_the_nearest(rows.split_groups("capton", 0.5, 1), "capton", "caption");
    // Of one row among others, which lacks a name that the others have, no name is nearest.
    let path = jsonl(folder.path(), &[row, "{\"text\": \"a\"}"]);
    let rows = Rows::<(String, String)>::jsonl(path).columns(["text", "caption"]).open().unwrap();
    let error = rows.get(1).unwrap_err().to_string();
    assert!(error.contains("`caption`") && error.contains("Option") && !error.contains("nearest"), "{error}");
}

#[test]
fn of_a_column_of_all_rows_are_errors_also_where_none_is_there() {
    #[derive(Deserialize)]
    struct Row {
        capton: Option<String>,
    }
    let folder = tempfile::tempdir().unwrap();
    let lines = |last: &'static str| {
        let path = jsonl(folder.path(), &[vec!["{\"caption\": \"a\"}"; 1500], vec![last]].concat());
        Rows::<(String,)>::jsonl(path).columns(["caption"])
    };
    let rows = lines("{\"caption\": \"a\"}").open().unwrap();
    names_the_nearest(rows.column::<Option<String>>("capton"), "capton", "caption");
    names_the_nearest(rows.filter(|row: Row| Ok(row.capton.is_some())), "capton", "caption");
    let rows = lines("{\"caption\": \"a\"}").optional(["capton"]).open().unwrap();
    assert_eq!(rows.column::<Option<String>>("capton").unwrap(), vec![None; 1501]);
    // One row that has the key is enough, wherever it is.
    let rows = lines("{\"caption\": \"a\", \"capton\": null}").open().unwrap();
    assert_eq!(rows.column::<Option<String>>("capton").unwrap(), vec![None; 1501]);
    let none = Rows::<(String,)>::jsonl(jsonl(folder.path(), &[])).columns(["caption"]).open().unwrap();
    assert_eq!(none.column::<Option<String>>("capton").unwrap(), []);
}

#[test]
fn of_each_format_are_errors_that_name_the_nearest() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Meta {
        capton: String,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Member {
        json: Meta,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Deep {
        json: Outer,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Outer {
        meta: Meta,
    }
    let folder = tempfile::tempdir().unwrap();
    let parquet = Rows::<(String,)>::parquet(parquet_of(folder.path())).columns(["text"]).open().unwrap();
    let json = b"{\"caption\": \"b\", \"meta\": {\"caption\": \"c\"}}";
    let path = tar(folder.path(), "a.tar", &[("1.text", b"a"), ("1.caption", b"b"), ("1.json", json)]);
    let tar = Rows::<(String,)>::tar(&path).columns(["text"]).open().unwrap();
    let path_of_mds = mds(folder.path(), &[("text", "str"), ("caption", "str")], &[&[b"a", b"b"]]);
    let mds = Rows::<(String,)>::mds(path_of_mds).columns(["text"]).open().unwrap();
    for rows in [&parquet, &tar, &mds] {
        names_the_nearest(rows.column::<String>("capton"), "capton", "caption");
        names_the_nearest(rows.column::<Option<String>>("capton"), "capton", "caption");
        names_the_nearest(rows.split_by("capton", 0.5, 1), "capton", "caption");
    }
    names_the_nearest(tar.sizes("capton"), "capton", "caption");
    assert!(!parquet.sizes("caption").unwrap_err().to_string().contains("nearest"), "it is there");
    // A JSON text in a row is known when it is read.
    names_the_nearest(Rows::<Member>::tar(&path).open().unwrap().get(0), "capton", "caption");
    names_the_nearest(Rows::<Deep>::tar(&path).open().unwrap().get(0), "meta.capton", "meta.caption");
}
