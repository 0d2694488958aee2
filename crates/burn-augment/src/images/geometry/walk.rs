//! Which pixel appears where: orientations, crops and turns as steps through pixels.

use super::rect::Rect;
use image::{ImageBuffer, Pixel, Primitive, Rgb, metadata::Orientation};

/// The pixel that is seen at column x and row y: `(x0 + x * across.0 + y * down.0, y0 + x * across.1 + y * down.1)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Walk {
    /// The pixel that is seen at the top left.
    pub start: (i32, i32),
    /// The step to the next column.
    pub across: (i32, i32),
    /// The step to the next row.
    pub down: (i32, i32),
    /// The columns and rows that are seen.
    pub size: (u32, u32),
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
        let size = if across.0 == 0 { (height, width) } else { (width, height) };
        Self { start, across, down, size }
    }

    /// All of a picture of this size, as it is stored.
    pub(crate) fn whole(size: (u32, u32)) -> Self {
        Self::new(Orientation::NoTransforms, size)
    }

    /// The pixel that is seen at a place.
    pub(crate) fn at(&self, (x, y): (i32, i32)) -> (i32, i32) {
        let Self { start, across, down, .. } = self;
        (start.0 + x * across.0 + y * down.0, start.1 + x * across.1 + y * down.1)
    }

    /// Returns the walk through a part of what is seen.
    pub(crate) fn part(self, part: Rect) -> Self {
        Self { start: self.at((part.left as i32, part.top as i32)), size: (part.width, part.height), ..self }
    }

    /// Returns the walk through what `next` sees of what this one sees.
    pub(crate) fn then(self, next: Self) -> Self {
        let step = |step| Self { start: (0, 0), ..self }.at(step);
        Self { start: self.at(next.start), across: step(next.across), down: step(next.down), size: next.size }
    }

    /// Returns the walk through what is seen, turned.
    pub(crate) fn turned(self, by: Orientation) -> Self {
        self.then(Self::new(by, self.size))
    }

    /// The pixels that are seen. There is at least one.
    pub(crate) fn rect(&self) -> Rect {
        let (a, b) = (self.start, self.at((self.size.0 as i32 - 1, self.size.1 as i32 - 1)));
        let (left, top) = (a.0.min(b.0) as u32, a.1.min(b.1) as u32);
        Rect { left, top, width: a.0.abs_diff(b.0) + 1, height: a.1.abs_diff(b.1) + 1 }
    }

    /// Copies a row of what is seen out of pixels with this many columns.
    pub(crate) fn copy_row<P: Copy>(&self, row: usize, pixels: &[P], columns: u32, out: &mut [P]) {
        let place = |x: usize| {
            let (column, row) = self.at((x as i32, row as i32));
            row as usize * columns as usize + column as usize
        };
        match self.across {
            (1, 0) => out.copy_from_slice(&pixels[place(0)..][..out.len()]),
            (-1, 0) => out.iter_mut().zip(pixels[..=place(0)].iter().rev()).for_each(|(out, pixel)| *out = *pixel),
            _ => out.iter_mut().enumerate().for_each(|(x, out)| *out = pixels[place(x)]),
        }
    }

    /// Copies what is seen out of pixels with this many columns.
    pub(crate) fn copy<P: Copy>(&self, pixels: &[P], columns: u32, out: &mut [P]) {
        let rows = out.chunks_exact_mut(self.size.0.max(1) as usize);
        rows.enumerate().for_each(|(row, out)| self.copy_row(row, pixels, columns, out));
    }

    /// Returns what is seen of an image.
    pub(crate) fn image<V: Primitive>(&self, whole: &ImageBuffer<Rgb<V>, Vec<V>>) -> ImageBuffer<Rgb<V>, Vec<V>>
    where
        Rgb<V>: Pixel<Subpixel = V>,
    {
        let mut seen = ImageBuffer::new(self.size.0, self.size.1);
        self.copy(whole.as_chunks::<3>().0, whole.width(), seen.as_chunks_mut::<3>().0);
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{DynamicImage, RgbImage};

    #[test]
    fn walks_are_the_orientations_of_the_crate_image() {
        let stored = RgbImage::from_fn(5, 3, |x, y| Rgb([x as u8, y as u8, 7]));
        for exif in 1..=8 {
            let orientation = Orientation::from_exif(exif).unwrap();
            let mut image = DynamicImage::ImageRgb8(stored.clone());
            image.apply_orientation(orientation);
            let walk = Walk::new(orientation, (5, 3));
            let image = image.into_rgb8();
            assert_eq!((walk.size, walk.image(&stored)), (image.dimensions(), image.clone()), "{exif}");
            assert_eq!(walk.rect(), Rect::whole((5, 3)));
            let part = walk.part(Rect { left: 1, top: 1, width: 2, height: 2 }).turned(Orientation::FlipHorizontal);
            let mut mirrored = image::imageops::crop_imm(&image, 1, 1, 2, 2).to_image();
            image::imageops::flip_horizontal_in_place(&mut mirrored);
            assert_eq!(part.image(&stored), mirrored, "{exif}");
        }
    }

    #[test]
    fn walks_go_one_through_the_other() {
        let stored = RgbImage::from_fn(5, 3, |x, y| Rgb([x as u8, y as u8, 7]));
        for (first, second) in (1..=8).flat_map(|first| (1..=8).map(move |second| (first, second))) {
            let [first, second] = [first, second].map(|exif| Orientation::from_exif(exif).unwrap());
            let mut image = DynamicImage::ImageRgb8(stored.clone());
            image.apply_orientation(first);
            image.apply_orientation(second);
            let walk = Walk::new(first, (5, 3)).turned(second);
            assert_eq!(walk.image(&stored), image.into_rgb8(), "{first:?} {second:?}");
        }
    }
}
