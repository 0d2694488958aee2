//! Parquet as the Hugging Face hub has it: images as `{bytes, path}`, uncompressed and plain, and the features with the names of
//! the classes.

use super::write::{Sample, Shard};
use burn_pinned::BoxError;
use parquet::{
    basic::{Compression, Encoding},
    data_type::{ByteArray, ByteArrayType, DataType, Int64Type},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use serde_json::json;
use std::{fs::File, mem::take, sync::Arc};

const SCHEMA: &str = "message schema {
    OPTIONAL GROUP image {
        OPTIONAL BINARY bytes;
        OPTIONAL BINARY path (STRING);
    }
    OPTIONAL INT64 label;
}";

/// About how many bytes a row group of images has. They are kept in memory until it is written.
const GROUP_BYTES: u64 = 100_000_000;

pub(crate) struct ParquetShard {
    file: SerializedFileWriter<File>,
    written: u64,
    /// Of the row group that is not written yet.
    images: Vec<ByteArray>,
    paths: Vec<ByteArray>,
    labels: Vec<i64>,
    waiting: u64,
}

impl ParquetShard {
    pub(crate) fn new(file: File, classes: &[String]) -> Result<Self, BoxError> {
        let features = json!({"info": {"features": {
            "image": {"_type": "Image"},
            "label": {"names": classes, "_type": "ClassLabel"},
        }}});
        let image = "image.bytes".split('.').map(String::from).collect::<Vec<_>>();
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(vec![KeyValue::new("huggingface".into(), features.to_string())]))
            .set_compression(Compression::UNCOMPRESSED)
            .set_column_encoding(image.clone().into(), Encoding::PLAIN)
            .set_column_dictionary_enabled(image.clone().into(), false)
            .set_column_statistics_enabled(image.into(), EnabledStatistics::None); // the least of all images is of no use
        let file = SerializedFileWriter::new(file, Arc::new(parse_message_type(SCHEMA)?), properties.build().into())?;
        Ok(Self { file, written: 0, images: Vec::new(), paths: Vec::new(), labels: Vec::new(), waiting: 0 })
    }

    fn end_group(&mut self) -> Result<(), BoxError> {
        if self.images.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        column::<ByteArrayType>(&mut group, &take(&mut self.images), 2)?;
        column::<ByteArrayType>(&mut group, &take(&mut self.paths), 2)?;
        column::<Int64Type>(&mut group, &take(&mut self.labels), 1)?;
        group.close()?;
        self.written += take(&mut self.waiting);
        Ok(())
    }
}

/// Writes the next column of a row group. `level` says of each value that it is there.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    level: i16,
) -> Result<(), BoxError> {
    let mut column = group.next_column()?.ok_or("the schema has fewer columns")?;
    column.typed::<T>().write_batch(values, Some(&vec![level; values.len()]), None)?;
    Ok(column.close()?)
}

impl Shard for ParquetShard {
    fn add(&mut self, sample: &Sample) -> Result<(), BoxError> {
        if self.waiting + sample.bytes.len() as u64 > GROUP_BYTES {
            self.end_group()?;
        }
        self.waiting += (sample.bytes.len() + sample.path.len() + 16) as u64;
        self.images.push(sample.bytes.clone().into());
        self.paths.push(sample.path.as_str().into());
        self.labels.push(sample.label.try_into()?);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.written + self.waiting
    }

    fn end(mut self: Box<Self>) -> Result<(), BoxError> {
        self.end_group()?;
        self.file.finish()?;
        Ok(self.file.inner().sync_all()?)
    }
}
