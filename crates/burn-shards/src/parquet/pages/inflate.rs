//! Decompresses pages. The size that a page claims is only a limit, and is not allocated at once.

use crate::parquet::fault::PartError;
use parquet::basic::CompressionCodec;
use std::io::Read;

/// Memory is allocated at once for a claim of up to this many times the stored bytes. Beyond that it grows with the decompressed bytes.
const TRUSTED_GROWTH: usize = 64;

/// Decompresses exactly `size` bytes and adds them to `into`.
pub(crate) fn inflate(
    codec: CompressionCodec,
    stored: &[u8],
    size: usize,
    into: &mut Vec<u8>,
) -> Result<(), PartError> {
    if size == 0 {
        return Ok(()); // a page of nulls, for which some writers store nothing at all
    }
    let trusted = size.min(stored.len().saturating_mul(TRUSTED_GROWTH));
    into.reserve(trusted);
    match codec {
        CompressionCodec::UNCOMPRESSED => {
            into.extend_from_slice(stored);
            if stored.len() == size { Ok(()) } else { Err(other_size()) }
        }
        CompressionCodec::SNAPPY => {
            // A copy of Snappy takes 3 bytes and stands for at most 64.
            let claims = snap::raw::decompress_len(stored).map_err(bad)?;
            if claims != size || size > trusted {
                return Err(other_size());
            }
            into_slice(into, size, |slice| snap::raw::Decoder::new().decompress(stored, slice).map_err(bad))
        }
        CompressionCodec::GZIP => stream(flate2::read::MultiGzDecoder::new(stored), size, into),
        CompressionCodec::BROTLI => stream(brotli::Decompressor::new(stored, 4096), size, into),
        CompressionCodec::ZSTD if size == trusted => {
            into_slice(into, size, |slice| zstd::bulk::decompress_to_buffer(stored, slice).map_err(bad))
        }
        CompressionCodec::ZSTD => stream(zstd::stream::read::Decoder::new(stored).map_err(bad)?, size, into),
        CompressionCodec::LZ4_RAW => block(stored, size, into),
        CompressionCodec::LZ4 => old_lz4(stored, size, into),
        other => Err(PartError::Unsupported(format!("the compression {other:?}"))),
    }
}

fn stream(reader: impl Read, size: usize, into: &mut Vec<u8>) -> Result<(), PartError> {
    let read = reader.take(size as u64 + 1).read_to_end(into).map_err(bad)?;
    if read == size { Ok(()) } else { Err(other_size()) }
}

fn into_slice(
    into: &mut Vec<u8>,
    size: usize,
    decompress: impl FnOnce(&mut [u8]) -> Result<usize, PartError>,
) -> Result<(), PartError> {
    let start = into.len();
    into.resize(start + size, 0);
    if decompress(&mut into[start..])? == size { Ok(()) } else { Err(other_size()) }
}

/// One block of LZ4. Each stored byte stands for at most 255 bytes.
fn block(stored: &[u8], size: usize, into: &mut Vec<u8>) -> Result<(), PartError> {
    if size / 256 > stored.len() {
        return Err(other_size());
    }
    into_slice(into, size, |slice| lz4_flex::block::decompress_into(stored, slice).map_err(bad))
}

/// The deprecated LZ4 codec has been written in three ways: as blocks with two sizes before each, as a frame, and as a block.
fn old_lz4(stored: &[u8], size: usize, into: &mut Vec<u8>) -> Result<(), PartError> {
    let start = into.len();
    if hadoop(stored, size, into).is_ok() {
        return Ok(());
    }
    into.truncate(start);
    if stream(lz4_flex::frame::FrameDecoder::new(stored), size, into).is_ok() {
        return Ok(());
    }
    into.truncate(start);
    block(stored, size, into)
}

fn hadoop(mut stored: &[u8], size: usize, into: &mut Vec<u8>) -> Result<(), PartError> {
    let mut left = size;
    while left > 0 {
        let (head, rest) = stored.split_at_checked(8).ok_or_else(other_size)?;
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let (part, rest) = rest.split_at_checked(word(4)).ok_or_else(other_size)?;
        left = left.checked_sub(word(0)).ok_or_else(other_size)?;
        block(part, word(0), into)?;
        stored = rest;
    }
    Ok(())
}

fn bad(error: impl std::fmt::Display) -> PartError {
    PartError::damaged(format!("a page cannot be decompressed: {error}"))
}

fn other_size() -> PartError {
    PartError::damaged("a page has another size than it claims")
}
