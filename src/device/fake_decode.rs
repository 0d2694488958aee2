//! A fake device that decodes: on the host, by what is for files that a device refuses.

use super::{
    flat::{Flat, Part, Redo, Uploaded},
    target::Target,
};
use crate::{
    fault::{BoxError, Error},
    memory::{LongFiles, PictureKind, PictureRow, Slot, Values},
    vocabulary::MemoryKind,
};

/// Makes the tensors of rows of images.
pub(super) fn decode(
    files: (&Slot, &LongFiles),
    parts: &[Part],
    target: &Target,
    redo: Redo<'_>,
    refused: &mut Option<Error>,
) -> Result<Vec<Uploaded>, BoxError> {
    parts.iter().map(|part| images(files, part, target, redo, refused)).collect()
}

fn images(
    (slot, long): (&Slot, &LongFiles),
    part: &Part,
    target: &Target,
    redo: Redo<'_>,
    refused: &mut Option<Error>,
) -> Result<Uploaded, BoxError> {
    let values = part.images.as_ref().ok_or("no images")?;
    let rows = &slot.as_slice()[part.range.clone()];
    let mut out = Vec::with_capacity(part.bytes());
    for (nth, row) in rows.chunks_exact(rows.len() / part.shape[0]).enumerate() {
        let (head, bytes) = row.split_at(PictureRow::BYTES);
        let head = PictureRow::read(head);
        let bytes = match head.kind {
            PictureKind::LONG_JPEG => long.get(&(head.bytes as usize)).ok_or("a file is missing")?,
            _ => &bytes[..head.bytes as usize],
        };
        let pixels = match head.kind {
            PictureKind::PIXELS => bytes.to_vec(),
            _ => match redo(nth, &head, bytes) {
                Ok(pixels) => pixels,
                Err(error) => {
                    *refused = Some(error);
                    return Err("a file cannot be decoded".into());
                }
            },
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
