//! Files of one column whose pages are written here byte by byte.

use parquet::{
    basic::{Compression, Encoding},
    file::metadata::{ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData},
    schema::{parser::parse_message_type, types::SchemaDescriptor},
};
use std::{fs, path::Path, sync::Arc};

pub(super) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

pub(super) fn zigzag(number: u32) -> Vec<u8> {
    varint(u64::from(number) << 1)
}

/// A struct of 32-bit numbers by their fields, with its end.
fn numbers(fields: &[(u8, u32)]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for (field, number) in fields {
        bytes.push((field - last) << 4 | 5);
        bytes.extend(zigzag(*number));
        last = *field;
    }
    bytes.push(0);
    bytes
}

/// A header: the kind of page, its sizes, the struct of that kind with its field, and a checksum of the stored bytes.
fn header(kind: u32, size: usize, stored: &[u8], (field, inner): (u8, Vec<u8>), checksum: bool) -> Vec<u8> {
    let mut fields = vec![(1, kind), (2, size as u32), (3, stored.len() as u32)];
    if checksum {
        // Written as a signed number: the highest bit would need a negative one.
        let sum = crc32fast::hash(stored) as i32;
        let mut bytes = numbers(&fields);
        bytes.pop();
        bytes.push(0x15);
        bytes.extend(varint(u64::from((sum << 1 ^ sum >> 31) as u32)));
        bytes.push((field - 4) << 4 | 12);
        return [bytes, inner, vec![0]].concat();
    }
    fields.truncate(3);
    let mut bytes = numbers(&fields);
    bytes.pop();
    bytes.push((field - 3) << 4 | 12);
    [bytes, inner, vec![0]].concat()
}

/// A page of the first version, with a checksum.
pub(super) fn page(values: u32, encoding: u32, size: usize, stored: &[u8]) -> Vec<u8> {
    let inner = numbers(&[(1, values), (2, encoding), (3, 3), (4, 3)]);
    [header(0, size, stored, (5, inner), true), stored.to_vec()].concat()
}

/// A dictionary of plain values.
pub(super) fn dictionary(values: u32, stored: &[u8]) -> Vec<u8> {
    [header(2, stored.len(), stored, (7, numbers(&[(1, values), (2, 0)])), false), stored.to_vec()].concat()
}

/// A page of the second version. `stored` are the levels and then the values.
pub(super) fn page_v2(values: u32, rows: u32, levels: [usize; 2], size: usize, stored: &[u8], plain: bool) -> Vec<u8> {
    let [defs, reps] = levels.map(|bytes| bytes as u32);
    let mut inner = numbers(&[(1, values), (2, 0), (3, rows), (4, 0), (5, defs), (6, reps)]);
    inner.pop();
    inner.extend([if plain { 0x12 } else { 0x11 }, 0]); // field 7: whether the values are compressed
    [header(3, size, stored, (8, inner), false), stored.to_vec()].concat()
}

/// A file of one column that is written here.
pub(super) struct Made<'a> {
    pub(super) schema: &'a str,
    pub(super) writer: &'a str,
    pub(super) codec: Compression,
    pub(super) rows: usize,
    pub(super) values: usize,
    /// Each with its first row. A dictionary has none.
    pub(super) pages: Vec<(Option<u64>, Vec<u8>)>,
    pub(super) index: bool,
    /// By this number of bytes the footer makes the column shorter than it is.
    pub(super) short: usize,
}

impl Made<'_> {
    pub(super) fn new(schema: &str) -> Made<'_> {
        Made {
            schema,
            writer: "tests",
            codec: Compression::UNCOMPRESSED,
            rows: 0,
            values: 0,
            pages: Vec::new(),
            index: false,
            short: 0,
        }
    }

    pub(super) fn write(&self, path: &Path) {
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(parse_message_type(self.schema).unwrap())));
        let (mut file, mut index, mut data, mut size) = (b"PAR1".to_vec(), Vec::new(), 0, 0);
        for (first, page) in &self.pages {
            if let Some(first) = first {
                data = if index.is_empty() { file.len() } else { data };
                index.push((file.len() as u32, page.len() as u32, *first as u32));
            }
            file.extend_from_slice(page);
            size += page.len();
        }
        let mut chunk = ColumnChunkMetaData::builder(schema.column(0))
            .set_encodings(vec![Encoding::PLAIN])
            .set_compression(self.codec)
            .set_num_values(self.values as i64)
            .set_total_compressed_size((size - self.short) as i64)
            .set_total_uncompressed_size(size as i64)
            .set_data_page_offset(data as i64)
            .set_dictionary_page_offset((data > 4).then_some(4));
        if self.index {
            let at = file.len();
            file.extend([0x19, 0xFC]);
            file.extend(varint(index.len() as u64));
            for (start, length, first) in index {
                file.extend(
                    [&[0x16][..], &zigzag(start), &[0x15], &zigzag(length), &[0x16], &zigzag(first), &[0]].concat(),
                );
            }
            file.push(0);
            let length = (file.len() - at) as i32;
            chunk = chunk.set_offset_index_offset(Some(at as i64)).set_offset_index_length(Some(length));
        }
        let group = RowGroupMetaData::builder(Arc::clone(&schema))
            .set_num_rows(self.rows as i64)
            .set_total_byte_size(size as i64)
            .set_column_metadata(vec![chunk.build().unwrap()])
            .build()
            .unwrap();
        let meta = FileMetaData::new(1, self.rows as i64, Some(self.writer.into()), None, schema, None);
        ParquetMetaDataWriter::new(&mut file, &ParquetMetaData::new(meta, vec![group])).finish().unwrap();
        fs::write(path, file).unwrap();
    }
}

/// Strings as PLAIN pages have them.
pub(super) fn plain(values: &[&[u8]]) -> Vec<u8> {
    values.iter().flat_map(|value| [&(value.len() as u32).to_le_bytes(), *value].concat()).collect()
}
