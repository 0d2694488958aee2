//! Which stored pixel is seen where: EXIF orientations and mirrors as steps through a picture.

use crate::vision::geometry::{Mirror, Rect};
use image::metadata::Orientation;

/// The stored pixel that is seen at column x and row y: `(x0 + x * across.0 + y * down.0, y0 + x * across.1 + y * down.1)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Walk {
    /// The pixel that is seen at the top left.
    pub(crate) start: (i32, i32),
    /// The step to the next column, and to the next row.
    pub(crate) across: (i32, i32),
    pub(crate) down: (i32, i32),
}

impl Walk {
    /// How a picture is seen that is stored in `width` x `height` pixels.
    pub(crate) fn new(orientation: Orientation, (width, height): (u32, u32)) -> Self {
        let (right, bottom) = (width as i32 - 1, height as i32 - 1);
        let (start, across, down) = match orientation {
            Orientation::NoTransforms => ((0, 0), (1, 0), (0, 1)),
            Orientation::FlipHorizontal => ((right, 0), (-1, 0), (0, 1)),
            Orientation::Rotate180 => ((right, bottom), (-1, 0), (0, -1)),
            Orientation::FlipVertical => ((0, bottom), (1, 0), (0, -1)),
            Orientation::Rotate90FlipH => ((0, 0), (0, 1), (1, 0)),
            Orientation::Rotate90 => ((0, bottom), (0, -1), (1, 0)),
            Orientation::Rotate270FlipH => ((right, bottom), (0, -1), (-1, 0)),
            Orientation::Rotate270 => ((right, 0), (0, 1), (-1, 0)),
        };
        Self { start, across, down }
    }

    /// The stored pixel that is seen at a place.
    fn at(&self, (x, y): (i32, i32)) -> (i32, i32) {
        let Self { start, across, down } = self;
        (start.0 + x * across.0 + y * down.0, start.1 + x * across.1 + y * down.1)
    }

    /// Returns the walk through a part of what is seen.
    pub(crate) fn from(self, part: Rect) -> Self {
        Self { start: self.at((part.left as i32, part.top as i32)), ..self }
    }

    /// Returns the walk through what is seen, of this size, mirrored.
    pub(crate) fn mirrored(self, by: Mirror, (width, height): (u32, u32)) -> Self {
        let far = (if by.across { width as i32 - 1 } else { 0 }, if by.down { height as i32 - 1 } else { 0 });
        let back = |step: (i32, i32), yes: bool| if yes { (-step.0, -step.1) } else { step };
        Self { start: self.at(far), across: back(self.across, by.across), down: back(self.down, by.down) }
    }

    /// Returns the walk that sees rows as columns.
    pub(crate) fn transposed(self, yes: bool) -> Self {
        if yes { Self { across: self.down, down: self.across, ..self } } else { self }
    }

    /// Returns the same walk through a picture without the columns left of `left` and the rows above `top`.
    #[cfg(feature = "turbo")]
    pub(crate) fn without(self, left: u32, top: u32) -> Self {
        Self { start: (self.start.0 - left as i32, self.start.1 - top as i32), ..self }
    }

    /// The stored pixels of what is seen in this size.
    #[cfg(any(feature = "turbo", test))]
    pub(crate) fn stored(&self, (width, height): (u32, u32)) -> Rect {
        let (a, b) = (self.start, self.at((width as i32 - 1, height as i32 - 1)));
        let (left, top) = (a.0.min(b.0) as u32, a.1.min(b.1) as u32);
        Rect { left, top, width: a.0.abs_diff(b.0) + 1, height: a.1.abs_diff(b.1) + 1 }
    }

    /// Whether columns and rows are seen as they are stored.
    pub(crate) fn is_straight(&self) -> bool {
        (self.across, self.down) == ((1, 0), (0, 1))
    }

    /// Column and row of the first pixel.
    pub(crate) fn start(&self) -> (u32, u32) {
        (self.start.0 as u32, self.start.1 as u32)
    }

    /// Copies what is seen, in this size, out of interleaved pixels with this many columns.
    pub(crate) fn gather(&self, pixels: &[u8], columns: u32, (width, height): (u32, u32), out: &mut Vec<u8>) {
        out.clear();
        out.reserve(3 * width as usize * height as usize);
        for y in 0..height as i32 {
            for x in 0..width as i32 {
                let (column, row) = self.at((x, y));
                let start = 3 * (row as usize * columns as usize + column as usize);
                out.extend_from_slice(&pixels[start..start + 3]);
            }
        }
    }
}

/// The size in which a picture is seen that is stored in this size.
pub(crate) fn seen(orientation: Orientation, (width, height): (u32, u32)) -> (u32, u32) {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    match orientation {
        Rotate90 | Rotate90FlipH | Rotate270 | Rotate270FlipH => (height, width),
        _ => (width, height),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{DynamicImage, RgbImage};

    #[test]
    fn walks_are_the_orientations_of_the_crate_image() {
        let stored = RgbImage::from_fn(5, 3, |x, y| image::Rgb([x as u8, y as u8, 7]));
        for exif in 1..=8 {
            let orientation = Orientation::from_exif(exif).unwrap();
            let mut image = DynamicImage::ImageRgb8(stored.clone());
            image.apply_orientation(orientation);
            let (size, mut out) = (seen(orientation, (5, 3)), Vec::new());
            let walk = Walk::new(orientation, (5, 3));
            walk.gather(&stored, 5, size, &mut out);
            let image = image.into_rgb8();
            assert_eq!((size, &out), (image.dimensions(), image.as_raw()), "{exif}");
            assert_eq!(walk.stored(size), Rect::whole((5, 3)));
            let part = Rect { left: 1, top: 1, width: 2, height: 2 };
            walk.from(part).mirrored(Mirror { across: true, down: false }, (2, 2)).gather(&stored, 5, (2, 2), &mut out);
            let mut part = image::imageops::crop_imm(&image, 1, 1, 2, 2).to_image();
            image::imageops::flip_horizontal_in_place(&mut part);
            assert_eq!(out, part.into_raw(), "{exif}");
        }
    }
}
