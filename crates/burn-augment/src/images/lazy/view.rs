//! The recorded changes of shape: which part of a picture is seen, at what size, and how it is turned.

use crate::images::{
    geometry::{Interpolation, Rect, Walk},
    parameters::Size,
};
use image::metadata::Orientation;
use std::iter;

/// A part of a picture. It may be resized, and then cut and turned again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct View {
    /// The part, in the picture rotated for viewing, and how it is turned.
    pub(crate) part: Walk,
    pub(crate) resized: Option<ResizeStep>,
}

/// A resize of the part after it was turned, then a cut and a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ResizeStep {
    pub(crate) size: Size,
    pub(crate) by: Interpolation,
    /// The part of the resized picture that is left, and how it is turned.
    pub(crate) part: Walk,
}

impl View {
    /// All of a picture.
    pub(crate) fn whole(size: (u32, u32)) -> Self {
        Self { part: Walk::whole(size), resized: None }
    }

    /// The size of what is seen.
    pub(crate) fn dimensions(&self) -> (u32, u32) {
        self.resized.map_or(self.part, |resized| resized.part).size
    }

    /// The resize. Without one, a resize to the size that the part has.
    pub(crate) fn resize_step(&self) -> ResizeStep {
        let (width, height) = self.part.size;
        let same =
            ResizeStep { size: Size { height, width }, by: Interpolation::Nearest, part: Walk::whole(self.part.size) };
        self.resized.unwrap_or(same)
    }

    /// Cuts out a part of what is seen.
    pub(crate) fn crop(&mut self, part: Rect) {
        let last = self.last_part();
        *last = last.part(part);
    }

    /// Resizes a part of what is seen. Returns whether it can be recorded: only one resize can.
    pub(crate) fn resize(&mut self, part: Rect, size: Size, by: Interpolation) -> bool {
        if self.resized.is_some() {
            return false;
        }
        self.crop(part);
        self.resized = Some(ResizeStep { size, by, part: Walk::whole((size.width, size.height)) });
        true
    }

    /// Turns what is seen.
    pub(crate) fn turn(&mut self, by: Orientation) {
        let last = self.last_part();
        *last = last.turned(by);
    }

    fn last_part(&mut self) -> &mut Walk {
        self.resized.as_mut().map_or(&mut self.part, |resized| &mut resized.part)
    }

    /// Returns a number for each column and for each row of what is seen. Their sum is the place of a pixel among those of a
    /// picture with so many `columns`, whatever the filter: of a resized part, that of the pixel under the middle of the new
    /// one.
    pub(crate) fn nearest(&self, columns: u32) -> [Vec<i64>; 2] {
        let ((width, height), ResizeStep { size, part: seen, .. }) = (self.part.size, self.resize_step());
        let within = |at: f64, side: u32| (at as u32).min(side - 1) as i32;
        // The two sums round as those of the resizer of images, so that a mask and an image of nearest pixels agree.
        let step = f64::from(width) / f64::from(size.width);
        let across: Vec<i32> = (0..size.width).map(|at| within(step * 0.5 + step * f64::from(at), width)).collect();
        let step = f64::from(height) / f64::from(size.height);
        let down = iter::successors(Some(step * 0.5), |at| Some(at + step)).map(|at| within(at, height));
        let down: Vec<i32> = down.take(size.height as usize).collect();
        let place = |x: u32, y: u32| {
            let (x, y) = seen.at((x as i32, y as i32));
            let (column, row) = self.part.at((across[x as usize], down[y as usize]));
            i64::from(row) * i64::from(columns) + i64::from(column)
        };
        let rows = (0..seen.size.1).map(|y| place(0, y) - place(0, 0));
        [(0..seen.size.0).map(|x| place(x, 0)).collect(), rows.collect()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_mirrored_part_is_on_its_other_side() {
        let rect = |left, top, width, height| Rect { left, top, width, height };
        let mut view = View::whole((100, 60));
        view.crop(rect(10, 20, 50, 30));
        view.turn(Orientation::FlipHorizontal);
        view.crop(rect(0, 5, 20, 10));
        assert_eq!((view.part.rect(), view.part.across, view.part.down), (rect(40, 25, 20, 10), (-1, 0), (0, 1)));
        assert!(view.resize(rect(0, 0, 10, 10), Size { height: 8, width: 8 }, Interpolation::Bilinear));
        assert_eq!(view.part.rect(), rect(50, 25, 10, 10));
        view.turn(Orientation::FlipVertical);
        view.crop(rect(1, 0, 7, 3));
        assert_eq!(view.resized.map(|resized| resized.part.rect()), Some(rect(1, 5, 7, 3)));
        assert_eq!(view.dimensions(), (7, 3));
        assert!(!view.resize(rect(0, 0, 2, 2), Size { height: 8, width: 8 }, Interpolation::Bilinear));
    }
}
