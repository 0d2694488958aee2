//! Decodes pages into a piece with the crate `parquet`, which may panic on corrupt pages. The panic becomes an error here.

use super::{
    piece::{Blob, DecodedPiece, Values},
    reader::PageQueue,
};
use crate::{
    parquet::{columns::Leaf, fault::PartError},
    system::caught::catch,
};
use fnv::FnvHashMap;
use parquet::{
    column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader},
    data_type::{AsBytes, DataType},
};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// The number of rows that are decoded at once, before they are packed.
const ROWS_AT_ONCE: usize = 1024;
/// The same number for rows of byte strings, each of which may be as long as a page.
const BLOBS_AT_ONCE: usize = 64;

/// Decodes all pages. They must have exactly `rows` rows.
pub(crate) fn decode(leaf: &Leaf, pages: PageQueue, rows: usize, room: u64) -> Result<DecodedPiece, PartError> {
    let decoded = catch(|| decode_or_panic(leaf, pages, rows, room));
    decoded.unwrap_or_else(|panic| Err(PartError::damaged(format!("a page cannot be decoded: {}", panic))))
}

fn decode_or_panic(leaf: &Leaf, pages: PageQueue, rows: usize, room: u64) -> Result<DecodedPiece, PartError> {
    let dictionary = pages.dictionary();
    let mut piece = DecodedPiece {
        rows,
        defs: Vec::new(),
        reps: Vec::new(),
        starts: Vec::new(),
        holes: Vec::new(),
        values: Values::Bool(Vec::new()),
    };
    piece.values = match get_column_reader(Arc::clone(&leaf.is), Box::new(pages)) {
        ColumnReader::BoolColumnReader(reader) => Values::Bool(numbers(reader, leaf, &mut piece)?),
        ColumnReader::Int32ColumnReader(reader) => Values::I32(numbers(reader, leaf, &mut piece)?),
        ColumnReader::Int64ColumnReader(reader) => Values::I64(numbers(reader, leaf, &mut piece)?),
        ColumnReader::FloatColumnReader(reader) => Values::F32(numbers(reader, leaf, &mut piece)?),
        ColumnReader::DoubleColumnReader(reader) => Values::F64(numbers(reader, leaf, &mut piece)?),
        ColumnReader::ByteArrayColumnReader(reader) => strings(reader, leaf, &mut piece, dictionary, room)?,
        ColumnReader::FixedLenByteArrayColumnReader(reader) => strings(reader, leaf, &mut piece, dictionary, room)?,
        ColumnReader::Int96ColumnReader(_) => return Err(PartError::Unsupported("the type int96".into())),
    };
    // Levels that are all `full` take no memory.
    if piece.defs.iter().all(|def| *def == leaf.full) {
        piece.defs.clear();
    }
    if !piece.holes.contains(&true) {
        piece.holes.clear();
    }
    piece.defs.shrink_to_fit();
    piece.reps.shrink_to_fit();
    piece.starts.shrink_to_fit();
    piece.holes.shrink_to_fit();
    Ok(piece)
}

fn numbers<T: DataType>(
    reader: ColumnReaderImpl<T>,
    leaf: &Leaf,
    levels: &mut DecodedPiece,
) -> Result<Vec<T::T>, PartError> {
    let mut numbers = Vec::new();
    read(reader, leaf, ROWS_AT_ONCE, levels, |value| {
        numbers.push(value.cloned().unwrap_or_default());
        Ok(())
    })?;
    numbers.shrink_to_fit();
    Ok(numbers)
}

fn strings<T: DataType>(
    reader: ColumnReaderImpl<T>,
    leaf: &Leaf,
    levels: &mut DecodedPiece,
    dictionary: Arc<OnceLock<Range<usize>>>,
    room: u64,
) -> Result<Values, PartError> {
    let mut pack = Pack { blob: Blob::default(), dictionary, shared: FnvHashMap::default(), room };
    read(reader, leaf, BLOBS_AT_ONCE, levels, |value| pack.add(value.map(AsBytes::as_bytes)))?;
    Ok(Values::Bytes(pack.end()))
}

/// Reads all rows of a piece, and their levels. `add` gets each value, `None` for a null.
fn read<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    leaf: &Leaf,
    at_once: usize,
    piece: &mut DecodedPiece,
    mut add: impl FnMut(Option<&T::T>) -> Result<(), PartError>,
) -> Result<(), PartError> {
    let (mut defs, mut reps, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (rows, mut done) = (piece.rows, 0);
    let mut elements: u32 = 0;
    loop {
        defs.clear();
        reps.clear();
        values.clear();
        // After the last row, one more is requested, which must not exist.
        let wanted = (rows - done).clamp(1, at_once);
        let (read, _, count) = reader.read_records(wanted, Some(&mut defs), Some(&mut reps), &mut values)?;
        if read == 0 && done == rows {
            break;
        }
        if read == 0 || done == rows {
            return Err(PartError::damaged(format!("pages have not the {rows} rows that the file says")));
        }
        done += read;
        let mut next = values.iter();
        for at in 0..count {
            let def = match defs.get(at) {
                Some(def) => u8::try_from(*def).ok().filter(|def| *def <= leaf.full),
                None => Some(leaf.full),
            };
            let def = def.ok_or_else(|| PartError::damaged("a level is too high"))?;
            if let Some(list) = leaf.list {
                match reps.get(at) {
                    Some(0) => {
                        piece.starts.push(elements);
                        piece.defs.push(def);
                    }
                    Some(1) if !piece.starts.is_empty() && def >= list.element => {}
                    _ => return Err(wrong_levels()),
                }
                if def < list.element {
                    continue; // an empty list, or a null instead of a list
                }
                elements = elements.checked_add(1).ok_or_else(too_many)?;
                piece.holes.push(def < leaf.full);
            } else if leaf.reps > 0 {
                let rep = reps.get(at).and_then(|rep| u8::try_from(*rep).ok()).filter(|rep| *rep <= leaf.reps);
                let rep = rep.filter(|rep| *rep == 0 || !piece.starts.is_empty()).ok_or_else(wrong_levels)?;
                if rep == 0 {
                    piece.starts.push(elements);
                }
                elements = elements.checked_add(1).ok_or_else(too_many)?;
                piece.reps.push(rep);
                piece.defs.push(def);
            } else if leaf.full > 0 {
                piece.defs.push(def);
            }
            match def == leaf.full {
                true => add(Some(next.next().ok_or_else(|| PartError::damaged("a page has too few values"))?))?,
                false => add(None)?,
            }
        }
    }
    if leaf.reps > 0 {
        if piece.starts.len() != rows {
            return Err(wrong_levels());
        }
        piece.starts.push(elements);
    }
    Ok(())
}

fn too_many() -> PartError {
    PartError::damaged("a piece has too many elements")
}

fn wrong_levels() -> PartError {
    PartError::damaged("the levels of a list are wrong")
}

/// Packs byte strings. A string of the dictionary is kept once.
struct Pack {
    blob: Blob,
    /// The address range of the dictionary, while the decoder has it.
    dictionary: Arc<OnceLock<Range<usize>>>,
    /// Where a string of the dictionary was packed, by its address.
    shared: FnvHashMap<(usize, usize), (u32, u32)>,
    room: u64,
}

impl Pack {
    fn add(&mut self, value: Option<&[u8]>) -> Result<(), PartError> {
        let bytes = value.unwrap_or_default();
        if bytes.is_empty() {
            self.blob.places.push((0, 0));
            return Ok(());
        }
        let address = bytes.as_ptr().addr();
        let shared = self.dictionary.get().is_some_and(|dictionary| dictionary.contains(&address));
        if shared && let Some(place) = self.shared.get(&(address, bytes.len())) {
            self.blob.places.push(*place);
            return Ok(());
        }
        let Some(room) = self.room.checked_sub(bytes.len() as u64) else {
            return Err(PartError::Large(self.blob.bytes.len() as u64 + bytes.len() as u64));
        };
        self.room = room;
        let (Ok(start), Ok(length)) = (u32::try_from(self.blob.bytes.len()), u32::try_from(bytes.len())) else {
            return Err(PartError::Unsupported("more than 4 GiB in one group of rows without an offset index".into()));
        };
        self.blob.bytes.extend_from_slice(bytes);
        self.blob.places.push((start, length));
        if shared {
            self.shared.insert((address, bytes.len()), (start, length));
        }
        Ok(())
    }

    fn end(mut self) -> Blob {
        self.blob.bytes.shrink_to_fit();
        self.blob.places.shrink_to_fit();
        self.blob
    }
}
