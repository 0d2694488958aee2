//! Fills the pixels around the first frame of a GIF, where the frame is smaller than the screen.

use crate::images::geometry::Rect;
use image::{Rgb, RgbImage};

/// Gives the background colour to the pixels that the first frame does not cover. Without a background colour they
/// remain black.
pub(super) fn fill_around_frame(file: &[u8], image: &mut RgbImage) {
    let Some((frame, colour)) = frame_and_background(file) else { return };
    let (columns, rows) = (frame.left..frame.left + frame.width, frame.top..frame.top + frame.height);
    for (x, y, pixel) in image.enumerate_pixels_mut() {
        if !columns.contains(&x) || !rows.contains(&y) {
            *pixel = Rgb(colour);
        }
    }
}

/// Reads where the first frame lies, and the colour of the background in the table of the screen (GIF89a, sections 18
/// to 20).
fn frame_and_background(file: &[u8]) -> Option<(Rect, [u8; 3])> {
    let (head, rest) = file.split_first_chunk::<13>()?;
    let (flags, background) = (head[10], usize::from(head[11]));
    if flags & 0x80 == 0 {
        return None;
    }
    let (table, mut rest) = rest.split_at_checked(3 << ((flags & 7) + 1))?;
    let colour = *table.as_chunks::<3>().0.get(background)?;
    loop {
        match rest {
            // An extension: its kind, and blocks up to one of no bytes.
            [0x21, _, blocks @ ..] => {
                rest = blocks;
                while let [length @ 1..=u8::MAX, behind @ ..] = rest {
                    rest = behind.get(usize::from(*length)..)?;
                }
                rest = rest.get(1..)?;
            }
            [0x2C, a, b, c, d, e, f, g, h, ..] => {
                let [left, top, width, height] =
                    [[*a, *b], [*c, *d], [*e, *f], [*g, *h]].map(|side| u16::from_le_bytes(side).into());
                return Some((Rect { left, top, width, height }, colour));
            }
            _ => return None,
        }
    }
}
