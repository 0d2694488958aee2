//! Changes of colour that are recorded, and made at the end, in the part that is seen.

use crate::images::{
    colour::Adjust,
    geometry::{Rect, Walk, fill},
};
use image::{RgbImage, metadata::Orientation};

/// Changes of colour, in their order, and then an erased part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Paint {
    /// `None` behind the last change.
    pub(crate) changes: [Option<Adjust>; Self::MOST],
    /// A part of what is seen, and its colour.
    pub(crate) erased: Option<(Rect, [u8; 3])>,
}

impl Paint {
    /// The most changes that can be recorded: those of `ColorJitter`, one to grey, and one to spare.
    pub(crate) const MOST: usize = 6;

    /// Whether there is no change.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether each change depends on single pixels alone: then a part of the picture gets the same colours as in the
    /// whole.
    pub(crate) fn is_of_pixels(&self) -> bool {
        self.erased.is_none() && !self.changes.iter().flatten().any(is_contrast)
    }

    /// Adds a change. Returns whether it can be recorded. A second contrast cannot, since each needs the mean of all
    /// pixels. Nor can a change after an erased part.
    pub(crate) fn adjust(&mut self, change: Adjust) -> bool {
        let second = is_contrast(&change) && self.changes.iter().flatten().any(is_contrast);
        let free = self.changes.iter_mut().find(|change| change.is_none());
        let free = free.filter(|_| self.erased.is_none() && !second);
        free.is_some_and(|free| {
            *free = Some(change);
            true
        })
    }

    /// Erases a part of what is seen. Returns whether it can be recorded: only one part can.
    pub(crate) fn erase(&mut self, part: Rect, colour: [u8; 3]) -> bool {
        self.erased.is_none() && self.erased.insert((part, colour)).0 == part
    }

    /// Turns the erased part with the picture, which has this size. `by` is its own inverse, so the walk serves both
    /// directions. The part may have no pixels. A part and a picture have one edge more than pixels.
    pub(crate) fn turn(&mut self, by: Orientation, (width, height): (u32, u32)) {
        if let Some((part, _)) = &mut self.erased {
            let edges = Rect { width: part.width + 1, height: part.height + 1, ..*part };
            let edges = Walk::new(by, (width + 1, height + 1)).part(edges).rect();
            *part = Rect { width: edges.width - 1, height: edges.height - 1, ..edges };
        }
    }

    /// Changes the pixels of the picture that is seen.
    pub(crate) fn change_pixels(&self, image: &mut RgbImage) {
        self.changes.iter().flatten().for_each(|change| change.apply(image));
        if let Some((part, colour)) = self.erased {
            fill(image, part, colour);
        }
    }
}

fn is_contrast(change: &Adjust) -> bool {
    matches!(change, Adjust::Contrast(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erased_part_is_turned_with_the_picture() {
        let turned = |by, (left, top, width, height)| {
            let mut paint = Paint::default();
            assert!(paint.erase(Rect { left, top, width, height }, [7; 3]));
            paint.turn(by, (50, 30));
            let Rect { left, top, width, height } = paint.erased.unwrap().0;
            (left, top, width, height)
        };
        assert_eq!(turned(Orientation::FlipHorizontal, (3, 4, 10, 20)), (37, 4, 10, 20));
        assert_eq!(turned(Orientation::FlipVertical, (3, 4, 10, 20)), (3, 6, 10, 20));
        assert_eq!(turned(Orientation::Rotate90FlipH, (3, 4, 10, 20)), (4, 3, 20, 10));
        assert_eq!(turned(Orientation::FlipHorizontal, (3, 4, 0, 20)), (47, 4, 0, 20), "no columns");
        assert_eq!(turned(Orientation::FlipVertical, (3, 0, 10, 0)), (3, 30, 10, 0), "no rows");
    }
}
