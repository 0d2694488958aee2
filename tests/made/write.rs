//! Writes small files of each format.

pub use crate::shards::file;
use parquet::{
    column::writer::ColumnWriter, data_type::ByteArray, file::writer::SerializedFileWriter,
    schema::parser::parse_message_type,
};
use serde_json::json;
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Lines that are in a list.
pub fn jsonl(folder: &Path, lines: &[&str]) -> PathBuf {
    file(folder, "rows.jsonl", lines.join("\n"))
}

pub fn tar(folder: &Path, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let path = folder.join(name);
    let mut tar = tar::Builder::new(File::create(&path).unwrap());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.finish().unwrap();
    path
}

/// An MDS folder of one shard. Columns have a name and an encoding, and their sizes are in the rows.
pub fn mds(folder: &Path, columns: &[(&str, &str)], rows: &[&[&[u8]]]) -> PathBuf {
    let row = |values: &&[&[u8]]| -> Vec<u8> {
        values.iter().flat_map(|value| (value.len() as u32).to_le_bytes()).chain(values.concat()).collect()
    };
    let rows: Vec<Vec<u8>> = rows.iter().map(row).collect();
    let mut at = 4 * (rows.len() as u32 + 2);
    let mut shard = (rows.len() as u32).to_le_bytes().to_vec();
    shard.extend(at.to_le_bytes());
    for row in &rows {
        at += row.len() as u32;
        shard.extend(at.to_le_bytes());
    }
    shard.extend(rows.concat());
    file(folder, "shard.00000.mds", &shard);
    let entry = json!({
        "column_names": columns.iter().map(|it| it.0).collect::<Vec<_>>(),
        "column_encodings": columns.iter().map(|it| it.1).collect::<Vec<_>>(),
        "column_sizes": vec![None::<u64>; columns.len()], "compression": null, "format": "mds", "hashes": [],
        "samples": rows.len(), "size_limit": null, "version": 2, "zip_data": null,
        "raw_data": {"basename": "shard.00000.mds", "bytes": shard.len(), "hashes": {}},
    });
    file(folder, "index.json", json!({"version": 2, "shards": [entry]}).to_string());
    folder.into()
}

/// The values of a column of Parquet, and its definition and repetition levels.
pub enum Column<'a> {
    I64(&'a [i64], &'a [i16], &'a [i16]),
    F32(&'a [f32], &'a [i16], &'a [i16]),
    F64(&'a [f64], &'a [i16], &'a [i16]),
    Bytes(&'a [&'a [u8]], &'a [i16], &'a [i16]),
}

/// A Parquet file of one row group, or of none if there are no columns.
pub fn parquet(folder: &Path, name: &str, schema: &str, columns: &[Column]) -> PathBuf {
    let path = folder.join(name);
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {schema} }}")).unwrap());
    let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    if !columns.is_empty() {
        let mut group = file.next_row_group().unwrap();
        for column in columns {
            let mut writer = group.next_column().unwrap().unwrap();
            let some = |levels: &&[i16]| (!levels.is_empty()).then(|| levels.to_vec());
            match (column, writer.untyped()) {
                (Column::I64(values, defs, reps), ColumnWriter::Int64ColumnWriter(writer)) => {
                    writer.write_batch(values, some(defs).as_deref(), some(reps).as_deref()).unwrap();
                }
                (Column::F32(values, defs, reps), ColumnWriter::FloatColumnWriter(writer)) => {
                    writer.write_batch(values, some(defs).as_deref(), some(reps).as_deref()).unwrap();
                }
                (Column::F64(values, defs, reps), ColumnWriter::DoubleColumnWriter(writer)) => {
                    writer.write_batch(values, some(defs).as_deref(), some(reps).as_deref()).unwrap();
                }
                (Column::Bytes(values, defs, reps), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                    let values: Vec<ByteArray> = values.iter().map(|value| value.to_vec().into()).collect();
                    writer.write_batch(&values, some(defs).as_deref(), some(reps).as_deref()).unwrap();
                }
                _ => panic!("the column has another type in the schema"),
            }
            writer.close().unwrap();
        }
        group.close().unwrap();
    }
    file.close().unwrap();
    path
}

/// The schema of a list.
pub fn list(name: &str, element: &str) -> String {
    format!("required group {name} (LIST) {{ repeated group list {{ required {element} element; }} }}")
}
