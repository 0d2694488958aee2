//! Any bytes as the pages of a Parquet column, with their headers, and an offset index behind them. The first bytes of an
//! input choose the column, the codec, the numbers of rows and values, where the dictionary ends, and the length of the index.
#![no_main]

#[path = "../../tests/differential/exact.rs"]
mod exact;

use burn_pinned::data::Rows;
use burn_pinned_fuzz::{
    as_file, begin,
    parquet_file::{COLUMNS, How, codec, schema, write},
    read, run,
};
use exact::Exact;
use libfuzzer_sys::fuzz_target;
use parquet::{
    file::{
        metadata::{ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData},
        reader::{FileReader, SerializedFileReader},
    },
    schema::types::SchemaDescriptor,
};
use std::sync::Arc;

const MAGIC: &[u8] = b"PAR1";

/// The footer of a file whose only column is these pages, with its length and magic.
fn footer(head: &[u8; 10], bytes: usize) -> Option<Vec<u8>> {
    let [kind, by, numbers @ ..] = *head;
    let number = |at: usize| u16::from_le_bytes([numbers[2 * at], numbers[2 * at + 1]]);
    let (rows, values, dictionary, index) = (number(0), number(1), i64::from(number(2)), i32::from(number(3)));
    let pages = bytes as i64 - i64::from(index);
    let columns = &COLUMNS[usize::from(kind) % COLUMNS.len()..][..1];
    let schema = Arc::new(SchemaDescriptor::new(schema(columns)));
    let chunk = ColumnChunkMetaData::builder(schema.column(0))
        .set_compression(codec(by))
        .set_num_values(values.into())
        .set_total_compressed_size(pages)
        .set_total_uncompressed_size(1 << 20)
        .set_data_page_offset(4 + dictionary)
        .set_dictionary_page_offset((dictionary > 0).then_some(4))
        .set_offset_index_offset((index > 0).then_some(4 + pages))
        .set_offset_index_length((index > 0).then_some(index));
    let group = RowGroupMetaData::builder(Arc::clone(&schema))
        .set_num_rows(rows.into())
        .set_total_byte_size(1 << 20)
        .add_column_metadata(chunk.build().ok()?);
    let file = FileMetaData::new(1, rows.into(), None, None, schema, None);
    let meta = ParquetMetaData::new(file, vec![group.build().ok()?]);
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &meta).finish().ok()?;
    Some(footer)
}

fn open(data: &[u8]) {
    let Some((head, pages)) = data.split_first_chunk::<10>() else { return };
    let Some(footer) = footer(head, pages.len()) else { return };
    as_file("a.parquet", &[MAGIC, pages, &footer], |path| {
        if let Ok(rows) = Rows::<(Exact,)>::parquet(path).columns(["c0"]).memory(1 << 20).open() {
            read(&rows);
            _ = rows.index();
            read(&rows);
        }
    });
}

/// The pages of a column as the crate writes them, with the head that belongs to them.
fn input(kind: usize, indexed: bool, how: How) -> Vec<u8> {
    let file = write(&COLUMNS[kind..=kind], how);
    let reader = SerializedFileReader::new(bytes::Bytes::from(file.clone())).expect("a file");
    let chunk = reader.metadata().row_group(0).column(0);
    let (start, length) = chunk.byte_range();
    let dictionary = chunk.data_page_offset() as u64 - start;
    let mut input = vec![kind as u8, how.codec];
    input.extend((how.rows as u16).to_le_bytes());
    input.extend((chunk.num_values() as u16).to_le_bytes());
    input.extend((dictionary as u16).to_le_bytes());
    let index =
        chunk.offset_index_range().filter(|_| indexed).map_or(0..0, |index| index.start as usize..index.end as usize);
    input.extend((index.len() as u16).to_le_bytes());
    input.extend(&file[start as usize..(start + length) as usize]);
    input.extend(&file[index]);
    input
}

fuzz_target!(
    init: begin(|| {
        let ways = (0..COLUMNS.len()).flat_map(|kind| (0..6).map(move |codec| (kind, codec)));
        let how = |codec: u8, at: usize| How { rows: 9, groups: 1, codec, v2: at % 2 == 1, dictionary: at % 3 != 1 };
        ways.map(|(kind, codec)| input(kind, codec % 2 == 0, how(codec, kind + usize::from(codec)))).collect()
    }),
    |data: &[u8]| run(|| open(data))
);
