//! Footers: the columns of a file, and where its pages are.

use super::{check::check_schema, mend::mend};
use crate::{
    error::DataError,
    parquet::{
        columns::{Columns, word},
        fault::PartError,
        pages::{Chunk, PagePlace, Writer, offset_index},
    },
    source::{
        Selection,
        magic::{PARQUET, tell},
    },
    store::Objects,
    system::caught::catch,
};
use parquet::{
    basic::{CompressionCodec, Type as Stored},
    file::metadata::{
        ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
    },
    schema::types::Type,
};
use std::{borrow::Cow, cell::Cell, collections::BTreeMap, ops::Range, sync::Arc};

/// The bytes that are read at once at the end of a file. They mostly contain the footer and the offset indices.
const FILE_TAIL: u64 = 64 << 10;
/// The longest header of a dictionary's page.
const DICTIONARY_HEADER: u64 = 100;
/// The bytes after the footer: its length, and the magic bytes.
const TRAILER: u64 = 8;

/// The contents of a file's footer.
#[derive(Debug)]
pub(crate) struct Footer {
    pub(crate) columns: Columns,
    pub(crate) groups: Vec<RowGroup>,
    pub(crate) there_is: Vec<(String, String)>,
    pub(crate) classes: BTreeMap<String, Vec<String>>,
}

impl Footer {
    pub(crate) fn has_rows(&self) -> bool {
        self.groups.iter().any(|group| group.rows > 0)
    }
}

/// A row group.
#[derive(Debug)]
pub(crate) struct RowGroup {
    pub(crate) object: usize,
    /// The number of the group's first row in its object.
    pub(crate) first: usize,
    pub(crate) rows: usize,
    /// One chunk for each wanted leaf.
    pub(crate) chunks: Vec<Chunk>,
}

/// A footer, and the end of its object, which mostly contains the offset indices too.
struct LoadedFooter {
    meta: ParquetMetaData,
    writer: Writer,
    /// Where the footer begins.
    start: u64,
    tail: Vec<u8>,
    tail_at: u64,
}

fn load(objects: &Objects, object: usize, statistics: ParquetStatisticsPolicy) -> Result<LoadedFooter, DataError> {
    let (name, bytes) = (objects.name(object), objects.bytes(object));
    let damaged = |problem: &str| DataError::damaged(name, problem);
    let no_parquet = |problem: &str| tell(objects, object, Some(&PARQUET), damaged(problem));
    let tail_at = bytes.saturating_sub(FILE_TAIL);
    let tail = objects.read(object, tail_at..bytes)?;
    let [.., a, b, c, d, m, a2, g, i] = tail[..] else { return Err(no_parquet("it is too short for a Parquet file")) };
    match &[m, a2, g, i] {
        b"PAR1" => {}
        b"PARE" => return Err(DataError::unsupported(name, None, "an encrypted footer")),
        _ => return Err(no_parquet("it does not end as a Parquet file does: is it one, and whole?")),
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = (bytes - TRAILER).checked_sub(length).filter(|start| *start >= 4);
    let start = start.ok_or_else(|| damaged("its footer claims to be larger than the file"))?;
    let footer = match start.checked_sub(tail_at) {
        Some(at) => Cow::from(&tail[at as usize..tail.len() - TRAILER as usize]),
        None => objects.read(object, start..bytes - TRAILER)?.into(),
    };
    let (footer, writer) = mend(&footer).map_err(|wrong| of_footer(name, wrong))?;
    check_schema(&footer).map_err(|wrong| of_footer(name, wrong))?;
    let meta = parse(&footer, statistics).map_err(|wrong| match wrong {
        // All fields of the footer could be skipped, so it is not truncated.
        PartError::Damaged(problem) => PartError::Unsupported(format!(
            "a footer that does not follow the format (writer: `{writer}`; {problem}; rewrite it with pyarrow)"
        )),
        other => other,
    });
    let (meta, writer) = (meta.map_err(|wrong| of_footer(name, wrong))?, Writer::of(&writer));
    Ok(LoadedFooter { meta, writer, start, tail, tail_at })
}

fn of_footer(object: &str, wrong: PartError) -> DataError {
    match wrong {
        PartError::Unsupported(what) => DataError::unsupported(object, None, what),
        PartError::Data(error) => error,
        other => DataError::damaged(object, format!("footer: {other}")),
    }
}

/// Which leaves of an object have only nulls, according to its statistics. A file without rows has no such leaves.
pub(crate) fn nulls(objects: &Objects, object: usize) -> Result<Vec<bool>, DataError> {
    let LoadedFooter { meta, .. } = load(objects, object, ParquetStatisticsPolicy::KeepAll)?;
    let groups: Vec<_> = meta.row_groups().iter().filter(|group| group.num_rows() > 0).collect();
    let has_none = |leaf: usize| {
        let nulls_alone = groups.iter().all(|group| {
            let chunk = group.columns().get(leaf);
            let nulls = chunk.and_then(|chunk| Some((chunk.statistics()?.null_count_opt()?, chunk.num_values())));
            nulls.is_some_and(|(nulls, values)| u64::try_from(values) == Ok(nulls))
        });
        nulls_alone && !groups.is_empty()
    };
    Ok((0..meta.file_metadata().schema_descr().num_columns()).map(has_none).collect())
}

/// Reads the footer of an object. Chunks of less than `small` bytes are read whole, even if they have an offset index.
pub(crate) fn read(objects: &Objects, object: usize, wanted: &Selection, small: u64) -> Result<Footer, DataError> {
    let (name, bytes) = (objects.name(object), objects.bytes(object));
    let damaged = |problem: &str| DataError::damaged(name, problem);
    let LoadedFooter { meta, writer, start, tail, tail_at } = load(objects, object, ParquetStatisticsPolicy::SkipAll)?;
    let read_part = |range: Range<u64>| match range.start.checked_sub(tail_at) {
        Some(at) if range.end <= bytes => Ok(tail[at as usize..(range.end - tail_at) as usize].to_vec()),
        _ => objects.read(object, range),
    };
    let schema = meta.file_metadata().schema_descr();
    let columns = Columns::find(schema, wanted).map_err(|(column, wrong)| match wrong {
        PartError::Unsupported(what) => DataError::unsupported(name, Some(&column), what),
        other => of_footer(name, other),
    })?;
    // Indices do not overlap, unless a hostile file lets many chunks read the same bytes.
    let index_bytes = Cell::new(bytes);
    let read_index = |index: Range<u64>| {
        let left = index.end.checked_sub(index.start).and_then(|length| index_bytes.get().checked_sub(length));
        index_bytes
            .set(left.ok_or_else(|| PartError::damaged("its offset indices take more bytes than the file has"))?);
        Ok(read_part(index)?)
    };
    let mut first = 0_usize;
    let groups = meta.row_groups().iter().enumerate().map(|(number, group)| {
        let rows = usize::try_from(group.num_rows()).map_err(|_| damaged("a row group has less than no rows"))?;
        let chunks = columns.leaves.iter().map(|leaf| {
            let chunk = group.columns().get(leaf.place).ok_or_else(|| PartError::damaged("a row group lacks a column"));
            let list = leaf.reps > 0;
            let small = if list && writer.splits_lists { u64::MAX } else { small };
            let chunk = chunk.and_then(|column| chunk_of(column, rows, start, small, list, writer, read_index));
            chunk.map_err(|wrong| wrong.at(name, &leaf.path, &format!("row group {number}")))
        });
        // A group without rows has nothing to read, and its chunks may be anywhere.
        let chunks = if rows == 0 { Vec::new() } else { chunks.collect::<Result<_, _>>()? };
        let group = RowGroup { object, first, rows, chunks };
        first = first.checked_add(rows).ok_or_else(|| damaged("it claims too many rows"))?;
        Ok(group)
    });
    let groups = groups.collect::<Result<_, DataError>>()?;
    let there_is = schema.root_schema().get_fields().iter().map(|node: &Arc<Type>| (node.name().into(), word(node)));
    Ok(Footer { columns, groups, there_is: there_is.collect(), classes: classes(&meta) })
}

fn parse(footer: &[u8], statistics: ParquetStatisticsPolicy) -> Result<ParquetMetaData, PartError> {
    let options = ParquetMetaDataOptions::new()
        .with_column_stats_policy(statistics)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    let parsed = catch(|| ParquetMetaDataReader::decode_metadata_with_options(footer, Some(&options)));
    parsed.map_err(PartError::damaged)?.map_err(PartError::from)
}

/// Where a chunk of a column is. The pages of the file end at `end` or before.
fn chunk_of(
    column: &ColumnChunkMetaData,
    rows: usize,
    end: u64,
    small: u64,
    list: bool,
    writer: Writer,
    read_index: impl Fn(Range<u64>) -> Result<Vec<u8>, PartError>,
) -> Result<Chunk, PartError> {
    if column.file_path().is_some() {
        return Err(PartError::Unsupported("its data in another file".into()));
    }
    let number = |number: i64| u64::try_from(number).map_err(|_| PartError::damaged("a column begins before its file"));
    let data = number(column.data_page_offset())?;
    // Some writers write a dictionary offset of 0 if there is no dictionary.
    let dictionary = column.dictionary_page_offset().map(number).transpose()?.filter(|at| *at > 0 && *at < data);
    let start = dictionary.unwrap_or(data);
    let mut range = start..start.saturating_add(number(column.compressed_size())?);
    if start < 4 || range.end > end {
        return Err(PartError::damaged("a column claims to lie beyond its file"));
    }
    if writer.is_short {
        range.end = end.min(range.end + DICTIONARY_HEADER);
    }
    let (values, size) = (number(column.num_values())?, number(column.uncompressed_size())?);
    if !list && values != rows as u64 {
        return Err(PartError::damaged(format!("a column has {values} values in {rows} rows")));
    }
    let codec = column.compression_codec();
    let mut pages = Vec::new();
    if let (Some(at), Some(length), true) =
        (column.offset_index_offset(), column.offset_index_length(), size.max(range.end - range.start) >= small)
    {
        let at = number(at)?;
        let index = at..at.saturating_add(number(length.into())?);
        if index.end > end {
            return Err(PartError::damaged("an offset index claims to lie beyond its file"));
        }
        // Without an offset index, or with a wrong one, the whole chunk is read.
        pages = offset_index(&read_index(index)?).ok().filter(|pages| fits(pages, &range, rows)).unwrap_or_default();
    }
    let plain = codec == CompressionCodec::UNCOMPRESSED && column.column_type() == Stored::BYTE_ARRAY && !list;
    let direct = plain && pages.first().is_some_and(|page| page.start == range.start);
    let notes = if direct { pages.iter().map(|_| Default::default()).collect() } else { Vec::new() };
    Ok(Chunk { codec, writer, range, values, size, pages, notes })
}

/// Whether pages lie in their chunk one after another, and have rows.
fn fits(pages: &[PagePlace], range: &Range<u64>, rows: usize) -> bool {
    let Some(first) = pages.first() else { return false };
    let ends = pages.iter().map(|page| page.start.saturating_add(page.length.into()));
    let after = pages.iter().skip(1).map(|page| page.start).chain([range.end]);
    let in_order = ends.zip(after).all(|(end, next)| end <= next);
    let rising = pages.windows(2).all(|two| two[0].first_row < two[1].first_row);
    let last = pages.last().is_some_and(|page| page.first_row < rows as u64);
    in_order && rising && last && first.first_row == 0 && first.start >= range.start
}

/// The names of classes, from the features in the metadata of the Hugging Face hub's writer.
fn classes(meta: &ParquetMetaData) -> BTreeMap<String, Vec<String>> {
    let pairs = meta.file_metadata().key_value_metadata();
    let text = pairs.into_iter().flatten().find(|pair| pair.key == "huggingface").and_then(|pair| pair.value.as_ref());
    let json: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(text).ok());
    let features = json.as_ref().and_then(|json| json.pointer("/info/features")).and_then(|value| value.as_object());
    let of = |feature: &serde_json::Value| -> Option<Vec<String>> {
        // The hub's writer has written lists in two ways.
        let element = feature.get("feature").or_else(|| feature.get(0)).unwrap_or(feature);
        element.get("names")?.as_array()?.iter().map(|name| name.as_str().map(String::from)).collect()
    };
    features.into_iter().flatten().filter_map(|(name, feature)| Some((name.clone(), of(feature)?))).collect()
}
