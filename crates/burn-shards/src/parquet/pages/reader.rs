//! Passes the decompressed pages of a piece to the decoder, one by one. First it checks all claims of their headers.

use super::{
    header::{PageHeader, PageKind},
    inflate::inflate,
    levels::delta_lengths,
    writer::Writer,
};
use crate::parquet::{columns::Leaf, fault::PartError};
use bytes::{Buf, Bytes};
use parquet::{
    basic::{CompressionCodec, Encoding, Type as Stored},
    column::page::{Page, PageMetadata, PageReader},
    errors::Result as ParquetResult,
    schema::types::ColumnDescPtr,
};
use std::{
    collections::VecDeque,
    ops::Range,
    sync::{Arc, OnceLock},
};

/// The memory that a dictionary value takes in the decoder, besides its bytes.
const IN_DICTIONARY: u64 = 32;

/// The pages of a piece.
pub(crate) struct PageQueue {
    is: ColumnDescPtr,
    codec: CompressionCodec,
    writer: Writer,
    parts: VecDeque<Bytes>,
    /// How many more values the pages may have.
    values: u64,
    /// How many bytes of memory a value takes.
    kept: u64,
    /// How many bytes, decompressed and decoded, the pages have taken so far, and how many they may take.
    spent: u64,
    room: u64,
    /// The address range of the dictionary, while the decoder has it.
    dictionary: Arc<OnceLock<Range<usize>>>,
    started: bool,
}

impl PageQueue {
    /// `parts` are whole pages, the dictionary first. They may have at most `values` values, and take at most `room` bytes. The writer of
    /// the pages may have bugs.
    pub(crate) fn new(
        leaf: &Leaf,
        codec: CompressionCodec,
        writer: Writer,
        parts: Vec<Bytes>,
        values: u64,
        room: u64,
    ) -> Self {
        let (is, kept, dictionary) = (Arc::clone(&leaf.is), leaf.kept(), Arc::default());
        Self { is, codec, writer, parts: parts.into(), values, kept, spent: 0, room, dictionary, started: false }
    }

    pub(crate) fn dictionary(&self) -> Arc<OnceLock<Range<usize>>> {
        Arc::clone(&self.dictionary)
    }

    /// The header of the next page with something to decode, and the part that begins with that page. The part has all stored bytes of the
    /// page.
    fn header(&mut self) -> Result<Option<(PageHeader, &mut Bytes)>, PartError> {
        while let Some(mut part) = self.parts.pop_front() {
            // If the chunk is longer than its writer says, nothing is read after the last page.
            let over = self.writer.is_short && self.started && self.values == 0;
            while !over && !part.is_empty() {
                let header = PageHeader::read(&part)?;
                if header.is_used() {
                    self.parts.push_front(part);
                    return Ok(self.parts.front_mut().map(|part| (header, part)));
                }
                part.advance(header.length + header.stored);
            }
        }
        Ok(None)
    }

    fn next_page(&mut self) -> Result<Option<Page>, PartError> {
        let Some((header, part)) = self.header()? else { return Ok(None) };
        let stored = part.split_to(header.length + header.stored).split_off(header.length);
        header.check(&stored)?;
        self.spend(header.size as u64)?;
        let page = match header.page {
            PageKind::Dictionary { values, encoding } => {
                if self.started {
                    return Err(PartError::damaged("a column has a dictionary after its first page"));
                }
                let buf = self.decompressed(&stored, header.size)?;
                let least = self.least();
                if least.is_none_or(|least| u64::from(values) * least > buf.len() as u64) {
                    return Err(PartError::damaged(format!(
                        "a dictionary claims {values} values in {} bytes",
                        buf.len()
                    )));
                }
                self.spend(u64::from(values) * IN_DICTIONARY)?;
                let start = buf.as_ptr().addr();
                if self.dictionary.set(start..start + buf.len()).is_err() {
                    return Err(PartError::damaged("a column has two dictionaries"));
                }
                Page::DictionaryPage { buf, num_values: values, encoding, is_sorted: false }
            }
            PageKind::V1 { values, encoding, defs, reps } => {
                self.count(values, encoding)?;
                let buf = self.decompressed(&stored, header.size)?;
                let mut at = 0;
                for (levels, encoding) in [(self.is.max_rep_level(), reps), (self.is.max_def_level(), defs)] {
                    at += levels_length(levels, encoding, values, buf.get(at..).unwrap_or_default())?;
                }
                self.check_values(encoding, values, buf.get(at..))?;
                Page::DataPage {
                    buf,
                    num_values: values,
                    encoding,
                    def_level_encoding: defs,
                    rep_level_encoding: reps,
                    statistics: None,
                }
            }
            PageKind::V2 { values, nulls, rows, encoding, defs, reps, compressed } => {
                self.count(values, encoding)?;
                let levels = u64::from(defs) + u64::from(reps);
                let split = usize::try_from(levels).ok().and_then(|levels| stored.split_at_checked(levels));
                let Some((levels, rest)) = split.filter(|(levels, _)| levels.len() <= header.size) else {
                    return Err(PartError::damaged("the levels of a page are larger than the page"));
                };
                if nulls > values {
                    return Err(PartError::damaged("a page has more nulls than values"));
                }
                let mut buf = levels.to_vec();
                let compressed = compressed || self.writer.packs_all || rest.len() != header.size - levels.len();
                let codec = if compressed { self.codec } else { CompressionCodec::UNCOMPRESSED };
                inflate(codec, rest, header.size - levels.len(), &mut buf)?;
                self.check_values(encoding, values, buf.get(levels.len()..))?;
                Page::DataPageV2 {
                    buf: buf.into(),
                    num_values: values,
                    encoding,
                    num_nulls: nulls,
                    num_rows: rows,
                    def_levels_byte_len: defs,
                    rep_levels_byte_len: reps,
                    is_compressed: false,
                    statistics: None,
                }
            }
            PageKind::Other => return Err(PartError::damaged("a page has no data")),
        };
        self.started = true;
        Ok(Some(page))
    }

    /// Decompresses a whole page.
    fn decompressed(&self, stored: &Bytes, size: usize) -> Result<Bytes, PartError> {
        if self.codec == CompressionCodec::UNCOMPRESSED && stored.len() == size {
            return Ok(stored.clone());
        }
        let mut buf = Vec::new();
        inflate(self.codec, stored, size, &mut buf)?;
        Ok(buf.into())
    }

    /// Checks the number of values that a page claims.
    fn count(&mut self, values: u32, encoding: Encoding) -> Result<(), PartError> {
        if matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) && self.dictionary.get().is_none()
        {
            return Err(PartError::damaged("a page wants a dictionary, and there is none"));
        }
        let left = self.values.checked_sub(values.into());
        self.values =
            left.ok_or_else(|| PartError::damaged("the pages of a column have more values than its file says"))?;
        // The values of a page are decoded in small groups. `kept` is the memory that each takes afterwards.
        self.spend(u64::from(values).saturating_mul(self.kept))
    }

    fn spend(&mut self, bytes: u64) -> Result<(), PartError> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > self.room { Err(PartError::Large(self.spent)) } else { Ok(()) }
    }

    /// The minimum bytes of a plain value. `None` if a value takes less than one byte.
    fn least(&self) -> Option<u64> {
        Some(match self.is.physical_type() {
            Stored::BOOLEAN => return None,
            Stored::INT32 | Stored::FLOAT | Stored::BYTE_ARRAY => 4,
            Stored::INT64 | Stored::DOUBLE => 8,
            Stored::INT96 => 12,
            Stored::FIXED_LEN_BYTE_ARRAY => self.is.type_length().max(1) as u64,
        })
    }

    /// The decoder allocates all lengths of byte strings at once, as many as the data claim, and copies prefixes.
    fn check_values(&mut self, encoding: Encoding, values: u32, data: Option<&[u8]>) -> Result<(), PartError> {
        let data = data.ok_or_else(|| PartError::damaged("the levels of a page are larger than the page"))?;
        match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => _ = delta_lengths(data, values)?,
            Encoding::DELTA_BYTE_ARRAY => {
                let (suffixes, prefixes) = delta_lengths(data, values)?;
                self.spend(prefixes)?;
                delta_lengths(data.get(suffixes..).unwrap_or_default(), values)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The bytes of the levels of a version 1 page.
fn levels_length(most: i16, encoding: Encoding, values: u32, data: &[u8]) -> Result<usize, PartError> {
    if most == 0 {
        return Ok(0);
    }
    let length = match encoding {
        Encoding::RLE => data.first_chunk().map(|length| u64::from(u32::from_le_bytes(*length)) + 4),
        #[expect(deprecated)] // old files
        Encoding::BIT_PACKED => {
            let bits = u64::from(16 - (most as u16).leading_zeros());
            Some((u64::from(values) * bits).div_ceil(8))
        }
        other => return Err(PartError::Unsupported(format!("levels of the encoding {other}"))),
    };
    let length = length.filter(|length| *length <= data.len() as u64);
    length
        .map(|length| length as usize)
        .ok_or_else(|| PartError::damaged("the levels of a page are larger than the page"))
}

impl Iterator for PageQueue {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for PageQueue {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        Ok(self.next_page()?)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        // The decoder only asks whether a row may continue in the next page. If the number of rows is not given, it may. Some writers of
        // version 2 also write such pages.
        let Some((header, _)) = self.header()? else { return Ok(None) };
        let (values, is_dict) = match header.page {
            PageKind::V2 { values, .. } | PageKind::V1 { values, .. } => (Some(values as usize), false),
            PageKind::Dictionary { .. } => (None, true),
            PageKind::Other => (None, false),
        };
        Ok(Some(PageMetadata { num_rows: None, num_levels: values, is_dict }))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.get_next_page().map(|_| ())
    }
}
