//! A fake device that decodes: on the host, by what is for files that a device refuses.

use super::{
    flat::{Failure, Flat, Part, Redo, Uploaded},
    target::Target,
};
use crate::{
    memory::{LongFiles, PictureKind, PictureRow, Slot, Values},
    vocabulary::MemoryKind,
};

/// Makes the tensors of rows of images.
pub(super) fn decode(
    files: (&Slot, &LongFiles),
    parts: &[Part],
    target: &Target,
    redo: Redo<'_>,
) -> Result<Vec<Uploaded>, Failure> {
    parts.iter().map(|part| images(files, part, target, redo)).collect()
}

fn images(
    (slot, long): (&Slot, &LongFiles),
    part: &Part,
    target: &Target,
    redo: Redo<'_>,
) -> Result<Uploaded, Failure> {
    let values = part.images.as_ref().ok_or_else(|| Failure::Device("no images".into()))?;
    let rows = &slot.as_slice()[part.range.clone()];
    let mut out = Vec::with_capacity(part.bytes());
    for (nth, row) in rows.chunks_exact(rows.len() / part.shape[0]).enumerate() {
        let result = [part.shape[3], part.shape[2]].map(|side| side as u32);
        let (head, bytes) = PictureRow::open(row, long, result).map_err(|error| Failure::Device(error.into()))?;
        let pixels = match head.kind {
            PictureKind::PIXELS => bytes.to_vec(),
            _ => redo(nth, &head, bytes).map_err(Failure::Sample)?,
        };
        let plane = pixels.len() / 3;
        for (at, byte) in pixels.into_iter().enumerate() {
            let (channel, byte) = (at / plane, usize::from(byte));
            match &**values {
                Values::Bits8(table) => out.push(table[channel][byte]),
                Values::Bits16(table) => out.extend(table[channel][byte].to_ne_bytes()),
                Values::Bits32(table) => out.extend(table[channel][byte].to_ne_bytes()),
            }
        }
    }
    let whole = Part { range: 0..out.len(), images: None, ..part.clone() };
    let tensor = Flat::of(&bytes::Bytes::from(out), MemoryKind::Pageable, &whole, &target.device);
    Ok(Uploaded::Tensor(tensor.reshaped(&whole, &target.device)))
}
