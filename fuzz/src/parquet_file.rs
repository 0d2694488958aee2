//! A Parquet file with a column of each kind, as the crate `parquet` writes it.

use parquet::{
    basic::{Compression, GzipLevel, ZstdLevel},
    column::writer::ColumnWriter,
    data_type::{ByteArray, FixedLenByteArray},
    file::{
        properties::{WriterProperties, WriterVersion},
        writer::SerializedFileWriter,
    },
    schema::{
        parser::parse_message_type,
        types::{ColumnDescriptor, SchemaDescriptor, TypePtr},
    },
};
use std::sync::Arc;

/// The kinds of columns.
pub const COLUMNS: [&str; 10] = [
    "required int32 c",
    "optional int64 c",
    "optional double c",
    "required float c",
    "optional boolean c",
    "optional binary c (UTF8)",
    "required binary c",
    "required fixed_len_byte_array(5) c",
    "optional group c (LIST) { repeated group list { optional int32 element; } }",
    "required group c (LIST) { repeated group list { required binary element (UTF8); } }",
];

/// Codecs, by their number.
pub fn codec(number: u8) -> Compression {
    match number % 6 {
        0 => Compression::UNCOMPRESSED,
        1 => Compression::SNAPPY,
        2 => Compression::GZIP(GzipLevel::default()),
        3 => Compression::BROTLI(Default::default()),
        4 => Compression::LZ4_RAW,
        _ => Compression::ZSTD(ZstdLevel::default()),
    }
}

/// The schema of these columns. Each has its place behind its name.
///
/// # Panics
/// Never: the schema is right.
pub fn schema(columns: &[&str]) -> TypePtr {
    let fields: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let field = column.replacen(" c", &format!(" c{place}"), 1);
            if field.ends_with('}') { field } else { field + ";" }
        })
        .collect();
    Arc::new(parse_message_type(&format!("message rows {{ {} }}", fields.join(" "))).expect("a schema"))
}

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Rows of each group.
    pub rows: usize,
    /// Row groups.
    pub groups: usize,
    /// See [`codec`].
    pub codec: u8,
    /// Pages of the second version.
    pub v2: bool,
    /// With dictionaries.
    pub dictionary: bool,
}

/// Writes a file.
///
/// # Panics
/// If the crate cannot write it.
pub fn write(columns: &[&str], how: How) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(codec(how.codec))
        .set_writer_version(if how.v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 })
        .set_dictionary_enabled(how.dictionary)
        .set_data_page_row_count_limit(how.rows.div_ceil(2))
        .set_write_batch_size(2);
    let properties = Arc::new(properties.build());
    let described = SchemaDescriptor::new(schema(columns));
    let mut file = SerializedFileWriter::new(Vec::new(), schema(columns), properties).expect("a writer");
    for _ in 0..how.groups {
        let mut group = file.next_row_group().expect("a row group");
        for is in described.columns() {
            let mut column = group.next_column().expect("a column").expect("a column");
            fill(column.untyped(), is, how.rows);
            column.close().expect("a column");
        }
        group.close().expect("a row group");
    }
    file.into_inner().expect("a file")
}

fn fill(column: &mut ColumnWriter<'_>, is: &ColumnDescriptor, rows: usize) {
    let (full, list) = (is.max_def_level(), is.max_rep_level() > 0);
    // The last row of three is null, if it can be. A list has two elements.
    let each = if list { 2 } else { 1 };
    let defs: Vec<i16> = (0..rows * each).map(|at| full - i16::from(at % 3 == 2 && full > i16::from(list))).collect();
    let reps: Vec<i16> = (0..rows * each).map(|at| i16::from(list && at % 2 == 1)).collect();
    let values = defs.iter().filter(|def| **def == full).count();
    let text = |at: usize| "text".repeat(at % 4).into_bytes();
    macro_rules! put {
        ($writer:expr, $value:expr) => {{
            let values: Vec<_> = (0..values).map($value).collect();
            $writer.write_batch(&values, (full > 0).then_some(&defs[..]), list.then_some(&reps[..])).map(drop)
        }};
    }
    let written = match column {
        ColumnWriter::BoolColumnWriter(writer) => put!(writer, |at| at % 3 == 0),
        ColumnWriter::Int32ColumnWriter(writer) => put!(writer, |at| at as i32 * 77 - 5),
        ColumnWriter::Int64ColumnWriter(writer) => put!(writer, |at| at as i64 * 77_000_000_000 - 5),
        ColumnWriter::FloatColumnWriter(writer) => put!(writer, |at| at as f32 * 0.1),
        ColumnWriter::DoubleColumnWriter(writer) => put!(writer, |at| at as f64 * 0.1),
        ColumnWriter::ByteArrayColumnWriter(writer) => put!(writer, |at| ByteArray::from(text(at))),
        ColumnWriter::FixedLenByteArrayColumnWriter(writer) => {
            put!(writer, |at| FixedLenByteArray::from(vec![at as u8; 5]))
        }
        ColumnWriter::Int96ColumnWriter(_) => unreachable!("no column has this type"),
    };
    written.expect("values that fit");
}
