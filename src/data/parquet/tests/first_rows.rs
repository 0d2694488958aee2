//! Whether files open depends on their schemas, and not on their first rows.

use crate::data::Rows;
use burn::data::dataset::Dataset;
use parquet::{
    data_type::{ByteArray, ByteArrayType},
    file::writer::SerializedFileWriter,
    schema::parser::parse_message_type,
};
use serde::Deserialize;
use std::{fs::File, path::Path, sync::Arc};

#[derive(Debug, PartialEq, Deserialize)]
struct Text {
    text: String,
}

fn texts(path: &Path, texts: &[&[u8]]) {
    let schema = Arc::new(parse_message_type("message rows { required binary text (STRING); }").unwrap());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<_> = texts.iter().map(|text| ByteArray::from(text.to_vec())).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
}

#[test]
fn a_first_text_that_is_not_utf8_is_an_error_of_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    texts(&path, &[b"bad\xFF", b"good", b"\xFF"]);
    let rows = Rows::<Text>::parquet(&path).open().unwrap();
    assert_eq!(rows.get(1).unwrap(), Text { text: "good".into() });
    for row in [0, 2] {
        let error = rows.get(row).unwrap_err().to_string();
        assert!(error.contains(&format!("row {row} of")) && error.contains("column `text`"), "{error}");
        assert!(error.contains("UTF-8") && !error.contains("damaged"), "{error}");
    }
    // Its bytes are there.
    let rows = Rows::<(bytes::Bytes,)>::parquet(&path).columns(["text"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap().0[..], *b"bad\xFF");
}
