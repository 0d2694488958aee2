//! The pages of a chunk: decoded into pieces, which are kept within a memory limit, or noted, so that single values can be read.

mod cache;
mod cells;
mod chunk;
mod decode;
mod header;
mod inflate;
mod levels;
mod notes;
mod offsets;
mod piece;
mod reader;
mod writer;

pub(super) use cache::PieceCache;
pub(super) use cells::{cell, list, value};
pub(super) use chunk::Chunk;
pub(super) use decode::decode;
pub(super) use notes::Note;
pub(super) use offsets::{PagePlace, offset_index};
pub(super) use piece::DecodedPiece;
pub(super) use reader::PageQueue;
pub(super) use writer::Writer;
#[cfg(test)]
pub(super) use {
    header::{PageHeader, PageKind},
    inflate::inflate,
    levels::delta_lengths,
};
