//! Pages of many nulls: what is noted of them is not more than they take in their file.

use super::*;
use crate::{parquet::pages::Note, source::cell::Cell};
use parquet::{
    data_type::{ByteArray, ByteArrayType},
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};
use std::{fs::File, path::Path, slice, sync::Arc};

/// Writes one column of plain values, in pages of `page` rows.
fn write(path: &Path, schema: &str, rows: usize, page: usize, def: impl Fn(usize) -> i16, full: i16) {
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_row_count_limit(page)
        .set_write_batch_size(page.min(100));
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties.build())).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let defs: Vec<i16> = (0..rows).map(def).collect();
    let values: Vec<ByteArray> = (0..rows).filter(|row| defs[*row] == full).map(|row| value(row).into()).collect();
    column.typed::<ByteArrayType>().write_batch(&values, Some(&defs), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
}

fn value(row: usize) -> Vec<u8> {
    row.to_string().into_bytes()
}

/// The bytes that notes take besides their places, and the number of pages.
fn noted(source: &ParquetSource) -> (usize, usize) {
    let notes: Vec<_> = source.groups.iter().flat_map(|group| &group.chunks[0].notes).collect();
    let bytes = |note: &Note| match note {
        Note::Plain { ends, defs, .. } => 4 * ends.len() + defs.len(),
        _ => 0,
    };
    (notes.iter().filter_map(|note| note.get()).map(bytes).sum(), notes.len())
}

/// Opens a file before and after its index is saved. Each time the notes have to be small, and the rows right.
fn check(path: &Path, rows: usize, right: impl Fn(usize) -> Cell) {
    let bytes = path.metadata().unwrap().len();
    for _ in 0..2 {
        let options = Options { memory: 0, ..Options::default() };
        let source = open(slice::from_ref(&path.to_path_buf()), &Selection::All, &options).unwrap();
        source.index().unwrap();
        let (noted, pages) = noted(&source);
        assert!(pages > 10 && noted as u64 <= 8 * bytes, "{noted} bytes of notes, {pages} pages, {bytes} bytes");
        for row in (0..rows).step_by(rows / 50 + 1) {
            assert_eq!(source.read(row).unwrap()[0].1, right(row), "row {row}");
        }
        assert_eq!(source.groups[0].chunks[0].notes.iter().filter(|note| note.get().is_none()).count(), 0);
    }
    let saved = path.parent().unwrap().read_dir().unwrap().flatten().find(|file| file.path() != path).unwrap();
    assert!(saved.metadata().unwrap().len() <= 8 * bytes, "an index of {}", saved.metadata().unwrap().len());
}

#[test]
fn pages_of_nulls_alone_are_noted_in_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, "message rows { optional binary x; }", 1_000_000, 20_000, |_| 0, 1);
    check(&path, 1_000_000, |_| Cell::Null);
}

#[test]
fn nulls_of_a_struct_and_of_its_field_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let (schema, there) = ("message rows { optional group s { optional binary x; } }", |row| row % 40_000 < 20_000);
    write(&path, schema, 400_000, 20_000, |row| i16::from(there(row)), 2);
    let field = || Cell::Struct(vec![("x".into(), Cell::Null)]);
    check(&path, 400_000, |row| if there(row) { field() } else { Cell::Null });
}

#[test]
fn pages_of_few_values_among_many_nulls_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let is_value = |row: usize| row.is_multiple_of(1000);
    write(&path, "message rows { optional binary x; }", 400_000, 20_000, |row| is_value(row).into(), 1);
    check(&path, 400_000, |row| if is_value(row) { Cell::Bytes(value(row)) } else { Cell::Null });
}
