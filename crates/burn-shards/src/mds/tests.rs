use super::{open, source::MdsSource};
use crate::{
    error::DataError,
    source::{
        Selection, Source,
        cell::{Cell, Raw, Type},
        location::Paths,
    },
    store::options::Options,
};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use serde_json::{Value, json};
use std::{fs, ops::Range, path::Path, sync::Arc};

/// Name, encoding, fixed size.
type Column = (&'static str, &'static str, Option<u64>);

const COLUMNS: [Column; 3] = [("image", "jpeg", None), ("label", "int", Some(8)), ("text", "str", None)];

/// A shard, and where its rows are.
fn shard(columns: &[Column], rows: &[Vec<Vec<u8>>]) -> (Vec<u8>, Vec<Range<usize>>) {
    let row = |values: &Vec<Vec<u8>>| {
        let variable = values.iter().zip(columns).filter(|(_, column)| column.2.is_none());
        let sizes = variable.flat_map(|(value, _)| (value.len() as u32).to_le_bytes());
        sizes.chain(values.iter().flatten().copied()).collect::<Vec<u8>>()
    };
    let config = b"{\"config\": \"is not read\"}";
    let (mut at, mut ranges) = (4 * (rows.len() + 2) + config.len(), Vec::new());
    let mut file = (rows.len() as u32).to_le_bytes().to_vec();
    file.extend((at as u32).to_le_bytes());
    let rows: Vec<Vec<u8>> = rows.iter().map(row).collect();
    for row in &rows {
        ranges.push(at..at + row.len());
        at += row.len();
        file.extend((at as u32).to_le_bytes());
    }
    file.extend(config);
    file.extend(rows.concat());
    (file, ranges)
}

fn entry(columns: &[Column], name: &str, bytes: usize, rows: usize) -> Value {
    json!({
        "column_names": columns.iter().map(|it| it.0).collect::<Vec<_>>(),
        "column_encodings": columns.iter().map(|it| it.1).collect::<Vec<_>>(),
        "column_sizes": columns.iter().map(|it| it.2).collect::<Vec<_>>(),
        "compression": null, "format": "mds", "hashes": [], "samples": rows, "size_limit": 60000, "version": 2,
        "raw_data": {"basename": name, "bytes": bytes, "hashes": {}}, "zip_data": null,
    })
}

fn write_index(folder: &Path, shards: &[Value]) {
    fs::write(folder.join("index.json"), json!({"shards": shards, "version": 2}).to_string()).unwrap();
}

/// The values of row `n`.
fn values(n: usize) -> Vec<Vec<u8>> {
    let image = (0..n * 7 % 40 + 20).map(|at| (at * n) as u8).collect();
    vec![image, (n as i64 - 5).to_le_bytes().to_vec(), format!("row {n}").into_bytes()]
}

fn cells(n: usize) -> [Cell; 3] {
    let [image, _, text] = values(n).try_into().unwrap();
    [Cell::Bytes(image), Cell::Int(n as i64 - 5), Cell::Text(String::from_utf8(text).unwrap())]
}

/// Writes a shard for each of these numbers of rows into a folder, and returns the shards' entries.
fn write(folder: &Path, first: usize, rows: &[usize]) -> Vec<Value> {
    let mut at = first;
    let one = |(n, rows): (usize, &usize)| {
        let (file, _) = shard(&COLUMNS, &(at..at + rows).map(values).collect::<Vec<_>>());
        at += rows;
        let name = format!("shard.{n:05}.mds");
        fs::write(folder.join(&name), &file).unwrap();
        entry(&COLUMNS, &name, file.len(), *rows)
    };
    rows.iter().enumerate().map(one).collect()
}

fn opened(folder: &Path, wanted: &[&str]) -> Result<MdsSource, DataError> {
    open(&folder.into(), &some(wanted), &Options::default())
}

fn some(names: &[&str]) -> Selection {
    Selection::Some(names.iter().map(|name| (Arc::from(*name), Selection::All)).collect())
}

fn record(source: &MdsSource, row: usize) -> Vec<Cell> {
    source.read(row).unwrap().into_iter().map(|(_, cell)| cell).collect()
}

fn error(folder: &Path) -> String {
    open(&folder.into(), &Selection::All, &Options::default()).unwrap_err().to_string()
}

#[test]
fn rows_of_several_shards_and_folders_come_in_order() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // An index of merged data sets names files in folders.
    fs::create_dir(folders[0].path().join("part")).unwrap();
    let mut shards = write(&folders[0].path().join("part"), 0, &[3, 0, 4]);
    for shard in &mut shards {
        let name = format!("part/{}", shard["raw_data"]["basename"].as_str().unwrap());
        shard["raw_data"]["basename"] = name.into();
    }
    write_index(folders[0].path(), &shards);
    write_index(folders[1].path(), &write(folders[1].path(), 7, &[0, 2]));
    let paths: Paths = folders.iter().map(|folder| folder.path()).collect();
    let source = open(&paths, &Selection::All, &Options::default()).unwrap();
    assert_eq!(source.len(), 9);
    for n in (0..9).rev() {
        assert_eq!(record(&source, n), cells(n), "{n}");
    }
    let names: Vec<_> = source.read(0).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["image", "label", "text"]);
    assert_eq!(source.starts().firsts(), [0, 3, 7]);
    let (name, row) = source.place(5);
    assert!(name.ends_with("part/shard.00002.mds") && row == 2, "{name} {row}");
    assert_eq!((source.place(8).1, source.place(3).1), (1, 0));
    let pair = |name: &str, encoding: &str| (name.to_string(), encoding.to_string());
    assert_eq!(source.there_is(), [pair("image", "jpeg"), pair("label", "int"), pair("text", "str")]);
}

#[test]
fn only_wanted_columns_are_read_in_the_order_in_which_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    write_index(folder.path(), &write(folder.path(), 0, &[3]));
    let source = opened(folder.path(), &["text", "none", "label"]).unwrap();
    let [_, label, text] = cells(2);
    assert_eq!(record(&source, 2), [text, label]);
}

#[test]
fn a_column_may_be_wanted_twice() {
    let folder = tempfile::tempdir().unwrap();
    write_index(folder.path(), &write(folder.path(), 0, &[6]));
    let source = opened(folder.path(), &["image", "label", "image"]).unwrap();
    for n in 0..6 {
        let [image, label, _] = cells(n);
        assert_eq!(record(&source, n), [image.clone(), label, image]);
    }
}

/// Writes one row of one column.
fn one(folder: &Path, encoding: &'static str, size: Option<u64>, value: &[u8]) {
    let columns = [("x", encoding, size)];
    let (file, _) = shard(&columns, &[vec![value.to_vec()]]);
    fs::write(folder.join("a.mds"), &file).unwrap();
    write_index(folder, &[entry(&columns, "a.mds", file.len(), 1)]);
}

#[test]
fn each_encoding_has_its_cell() {
    let folder = tempfile::tempdir().unwrap();
    let array = |shape: &[usize], kind, numbers: &[u8]| Cell::Array(shape.to_vec(), kind, numbers.to_vec().into());
    let pil: Vec<u8> = [&[2u8, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'L', 8, 9][..]].concat();
    let fields = [("width", Cell::Unsigned(2)), ("height", Cell::Unsigned(1)), ("mode", Cell::Text("L".into()))];
    let mut pixels: Vec<(Arc<str>, Cell)> = fields.map(|(name, cell)| (name.into(), cell)).into();
    pixels.push(("data".into(), Cell::Bytes(vec![8, 9])));
    let pixels = Cell::Struct(pixels);
    let two = [&[2u8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 6, 7][..]].concat();
    let files = Cell::List(vec![Cell::Bytes(vec![5]), Cell::Bytes(vec![6, 7])]);
    let headed = |list: &[u8]| [&[0; 4], list].concat();
    let one_pil = headed(&[&[1, 0, 0, 0, 15, 0, 0, 0], &pil[..]].concat());
    let raw = |text: &str, raw| Cell::Raw(text.into(), raw);
    let cases: Vec<(&'static str, Option<u64>, Vec<u8>, Cell)> = vec![
        ("int", Some(8), (-3i64).to_le_bytes().into(), Cell::Int(-3)),
        ("uint8", Some(1), vec![200], Cell::Unsigned(200)),
        ("uint16", Some(2), 60000u16.to_le_bytes().into(), Cell::Unsigned(60000)),
        ("uint32", Some(4), u32::MAX.to_le_bytes().into(), Cell::Unsigned(u32::MAX.into())),
        ("uint64", Some(8), u64::MAX.to_le_bytes().into(), Cell::Unsigned(u64::MAX)),
        ("int8", Some(1), vec![255], Cell::Int(-1)),
        ("int16", Some(2), (-2i16).to_le_bytes().into(), Cell::Int(-2)),
        ("int32", Some(4), i32::MIN.to_le_bytes().into(), Cell::Int(i32::MIN.into())),
        ("int64", Some(8), i64::MIN.to_le_bytes().into(), Cell::Int(i64::MIN)),
        ("float16", Some(2), 0xc100u16.to_le_bytes().into(), Cell::F32(-2.5)),
        ("float32", Some(4), 1.5f32.to_le_bytes().into(), Cell::F32(1.5)),
        ("float64", Some(8), 0.1f64.to_le_bytes().into(), Cell::F64(0.1)),
        ("str", None, "größe".into(), Cell::Text("größe".into())),
        ("str", None, vec![], Cell::Text(String::new())),
        ("str_int", None, "-12".into(), raw("-12", Raw::Number)),
        ("str_float", None, "1e-5".into(), raw("1e-5", Raw::Number)),
        ("str_decimal", None, "1.10".into(), raw("1.10", Raw::Text)),
        ("json", None, "[1]".into(), raw("[1]", Raw::Json)),
        ("bytes", None, vec![1, 2], Cell::Bytes(vec![1, 2])),
        ("png", None, vec![1, 2], Cell::Bytes(vec![1, 2])),
        ("pil", None, pil.clone(), pixels.clone()),
        ("jpeg_array", None, two.clone(), files.clone()),
        ("jpegarray", None, two.clone(), files.clone()),
        ("list[jpeg]", None, headed(&two), files.clone()),
        ("list[png]", None, headed(&two), files),
        ("list[pil]", None, one_pil, Cell::List(vec![pixels])),
        ("ndarray", None, vec![16, 2 << 2, 1, 2, 1, 0, 2, 0], array(&[1, 2], Type::U16, &[1, 0, 2, 0])),
        ("ndarray", None, vec![18, (1 << 2) | 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x3c], array(&[1], Type::F16, &[0, 0x3c])),
        ("ndarray:int8", None, vec![(1 << 2) | 1, 3, 0, 1, 2, 255], array(&[3], Type::I8, &[1, 2, 255])),
        ("ndarray:float32:1,1", Some(4), 2.5f32.to_le_bytes().into(), array(&[1, 1], Type::F32, &2.5f32.to_le_bytes())),
        ("ndarray:int64:1", Some(8), 7i64.to_le_bytes().into(), array(&[1], Type::I64, &7i64.to_le_bytes())),
        ("ndarray:uint8:2,2", Some(4), vec![1, 2, 3, 4], array(&[2, 2], Type::U8, &[1, 2, 3, 4])),
    ];
    for (encoding, size, value, cell) in cases {
        one(folder.path(), encoding, size, &value);
        assert_eq!(record(&opened(folder.path(), &["x"]).unwrap(), 0), [cell], "{encoding}");
    }
}

#[test]
fn values_that_are_not_what_they_should_be_are_errors_of_their_column() {
    let folder = tempfile::tempdir().unwrap();
    let huge = u64::MAX.to_le_bytes();
    let cases: [(&'static str, Vec<u8>); 13] = [
        ("int", vec![1; 7]),
        ("float32", vec![1; 8]),
        ("str", vec![0xff]),
        ("pil", vec![0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]),
        ("pil", vec![0; 11]),
        ("jpeg_array", vec![255, 255, 255, 255, 1]),
        ("jpeg_array", vec![1, 0, 0, 0, 1, 0, 0, 0, 1, 2]),
        ("list[jpeg]", vec![0, 0, 0]),
        ("list[png]", vec![0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0]),
        ("ndarray", vec![7, 4, 1, 0]),
        ("ndarray", vec![]),
        ("ndarray", [&[66, (3 << 2) | 3], &huge[..], &huge, &[0; 8]].concat()),
        ("ndarray:int32:2,2", vec![0; 15]),
    ];
    for (encoding, value) in cases {
        one(folder.path(), encoding, None, &value);
        let error = opened(folder.path(), &["x"]).unwrap().read(0).unwrap_err();
        assert!(
            matches!(&error, DataError::Row { object, row: 0, column: Some(column), .. } if column == "x" && object.ends_with("a.mds")),
            "{encoding}: {error}"
        );
    }
}

#[test]
fn encodings_that_cannot_be_read_are_refused_only_if_wanted() {
    let folder = tempfile::tempdir().unwrap();
    for encoding in ["pkl", "ndarray:bool", "ndarray:complex64:2", "ndarray:int8:x", "int:3", "unheard", "list[pkl]"] {
        one(folder.path(), encoding, None, b"any");
        let error = opened(folder.path(), &["x"]).unwrap_err();
        assert!(matches!(&error, DataError::Unsupported { column: Some(column), .. } if column == "x"), "{error}");
        assert!(opened(folder.path(), &["y"]).unwrap().read(0).unwrap().is_empty());
    }
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("in");
    fs::create_dir(&folder).unwrap();
    let shards = write(outside.path(), 0, &[2]);
    let absolute = outside.path().join("shard.00000.mds");
    for name in ["../shard.00000.mds", "a/../../shard.00000.mds", absolute.to_str().unwrap(), "", "..", "/"] {
        let mut shard = shards[0].clone();
        shard["raw_data"]["basename"] = name.into();
        write_index(&folder, &[shard.clone()]);
        assert!(error(&folder).contains("not in the folder"), "{name}");
        shard["raw_data"]["basename"] = "a".into();
        shard["zip_data"] = json!({"basename": name, "bytes": 1});
        shard["compression"] = "zstd".into();
        write_index(&folder, &[shard]);
        assert!(error(&folder).contains("not in the folder"), "{name}");
    }
}

#[test]
fn an_index_that_does_not_fit_is_an_error_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, shards) = (folder.path(), write(folder.path(), 0, &[2, 3]));
    let cases: [(&str, Value, &str); 9] = [
        ("/0/version", 1.into(), "shards of version `1`"),
        ("/0/format", "json".into(), "shards of the format `json`"),
        ("/0/samples", 1_000_000_000_000u64.into(), "too few for 1000000000000 rows"),
        ("/0/samples", u64::MAX.into(), "too few"),
        ("/0/samples", (-1).into(), "invalid value"),
        ("/1/raw_data/bytes", 3.into(), "`index.json` says 3"),
        ("/1/raw_data/basename", "none.mds".into(), "cannot open"),
        ("/1/column_encodings/1", "str".into(), "shard 1 has column `label` in another encoding"),
        ("/1/column_names/0", "label".into(), "do not fit together"),
    ];
    for (place, value, problem) in cases {
        let mut changed = Value::from(shards.clone());
        *changed.pointer_mut(place).unwrap() = value;
        write_index(folder, changed.as_array().unwrap());
        assert!(error(folder).contains(problem), "{place}: {}", error(folder));
    }
    write_index(folder, &[]);
    assert!(
        error(folder).contains("index.json is an index of no shards: write the samples again"),
        "{}",
        error(folder)
    );
    // Beside a folder that has some, too.
    let other = tempfile::tempdir().unwrap();
    write_index(other.path(), &write(other.path(), 0, &[1]));
    let both = open(&[other.path(), folder].into(), &Selection::All, &Options::default()).unwrap_err().to_string();
    assert!(both.contains("no shards") && both.contains(folder.to_str().unwrap()), "{both}");
    // A shard may have no rows.
    write_index(other.path(), &write(other.path(), 0, &[0]));
    let empty = opened(other.path(), &["label"]).unwrap();
    assert!(empty.len() == 0 && empty.starts().firsts().is_empty() && !empty.there_is().is_empty());
    fs::write(folder.join("index.json"), r#"{"version": 3, "shards": []}"#).unwrap();
    assert!(error(folder).contains("its version `3`"));
    fs::remove_file(folder.join("index.json")).unwrap();
    assert!(error(folder).contains("index.json"));
}

#[test]
fn shards_may_have_other_columns_and_each_column_one_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let x: Column = ("x", "int", Some(8));
    let shards = |t: &[Option<Column>]| {
        let write = |(number, t): (usize, &Option<Column>)| {
            let (name, x_value) = (format!("{number}.mds"), (number as i64).to_le_bytes().to_vec());
            // Another order, too.
            let (columns, row) = match t {
                Some(t) => (vec![*t, x], vec![b"7".to_vec(), x_value]),
                None => (vec![x], vec![x_value]),
            };
            let (file, _) = shard(&columns, &[row]);
            fs::write(folder.path().join(&name), &file).unwrap();
            entry(&columns, &name, file.len(), 1)
        };
        write_index(folder.path(), &t.iter().enumerate().map(write).collect::<Vec<_>>());
    };
    let (text, digits, bytes) = (("t", "str", None), ("t", "str_int", None), ("t", "bytes", Some(1)));
    shards(&[None, Some(text), None, Some(text)]);
    let source = opened(folder.path(), &["t", "x"]).unwrap();
    assert_eq!(record(&source, 2), [Cell::Int(2)]);
    assert_eq!(record(&source, 3), [Cell::Text("7".into()), Cell::Int(3)]);
    let names: Vec<_> = source.there_is().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["x", "t"]);
    for other in [digits, bytes] {
        shards(&[None, Some(text), Some(other)]);
        let error = opened(folder.path(), &["t"]).unwrap_err();
        assert!(matches!(&error, DataError::Schema { object, .. } if object.ends_with("index.json")), "{error}");
        assert!(error.to_string().contains("shard 2 has column `t` in another encoding"), "{error}");
        assert!(opened(folder.path(), &["x"]).is_ok(), "a column that is not wanted may have any");
    }
    // Another name for the same encoding, and a size that is fixed in one shard.
    shards(&[Some(("t", "jpeg", None)), Some(bytes)]);
    let source = opened(folder.path(), &["t"]).unwrap();
    assert_eq!([record(&source, 0), record(&source, 1)], [[Cell::Bytes(b"7".into())], [Cell::Bytes(b"7".into())]]);
}

#[cfg(not(feature = "mds"))]
#[test]
fn compressed_shards_are_refused_without_the_feature() {
    let folder = tempfile::tempdir().unwrap();
    let mut shards = write(folder.path(), 0, &[1]);
    shards[0]["zip_data"] = json!({"basename": "packed", "bytes": 1});
    shards[0]["compression"] = "zstd".into();
    write_index(folder.path(), &shards);
    assert_eq!(opened(folder.path(), &["label"]).unwrap().len(), 1, "the plain shard is there");
    fs::remove_file(folder.path().join(shards[0]["raw_data"]["basename"].as_str().unwrap())).unwrap();
    let error = error(folder.path());
    assert!(error.contains("is compressed") && error.contains("enable the feature `mds`"), "{error}");
}

#[cfg(feature = "mds")]
mod compressed;
mod damaged;
