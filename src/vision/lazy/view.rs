//! The noted changes of a picture: which part of it is seen, at what size, and how it is turned.

use crate::vision::{
    geometry::{Interpolation, Mirror, Rect},
    parameters::Size,
};
use std::iter;

/// A part of a picture. It may be resized, and then cut and turned again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct View {
    /// The part, in the picture as it is meant to be seen.
    pub(crate) part: Rect,
    /// Whether its rows became columns.
    pub(crate) transposed: bool,
    /// How the part is mirrored after that.
    pub(crate) mirror: Mirror,
    pub(crate) resized: Option<ResizeStep>,
}

/// A resize of the part after it was turned, then a cut and a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ResizeStep {
    pub(crate) size: Size,
    pub(crate) by: Interpolation,
    /// The part of the resized picture that is left.
    pub(crate) window: Rect,
    /// Whether its rows became columns.
    pub(crate) transposed: bool,
    /// How that part is mirrored after that.
    pub(crate) mirror: Mirror,
}

impl ResizeStep {
    /// No change of size, but a mirror.
    pub(crate) fn none((width, height): (u32, u32), mirror: Mirror) -> Self {
        let size = Size { height, width };
        Self { size, by: Interpolation::Nearest, window: Rect::whole((width, height)), transposed: false, mirror }
    }
}

impl View {
    /// All of a picture.
    pub(crate) fn whole(size: (u32, u32)) -> Self {
        Self { part: Rect::whole(size), transposed: false, mirror: Mirror::default(), resized: None }
    }

    /// The size of what is seen.
    pub(crate) fn dimensions(&self) -> (u32, u32) {
        match self.resized {
            Some(ResizeStep { window, transposed: false, .. }) => (window.width, window.height),
            Some(ResizeStep { window, transposed: true, .. }) => (window.height, window.width),
            None => self.part_size(),
        }
    }

    /// The size of the part after its turn.
    pub(crate) fn part_size(&self) -> (u32, u32) {
        let Rect { width, height, .. } = if self.transposed { self.part.transposed() } else { self.part };
        (width, height)
    }

    /// Cuts out a part of what is seen.
    pub(crate) fn crop(&mut self, part: Rect) {
        let size = self.dimensions();
        let (seen, mirror, transposed) = match &mut self.resized {
            Some(resized) => (&mut resized.window, resized.mirror, resized.transposed),
            None => (&mut self.part, self.mirror, self.transposed),
        };
        let part = part.mirrored(mirror, size);
        *seen = seen.part(if transposed { part.transposed() } else { part });
    }

    /// Resizes a part of what is seen. Returns whether it can be noted: a picture is resized once.
    pub(crate) fn resize(&mut self, part: Rect, size: Size, by: Interpolation) -> bool {
        if self.resized.is_some() {
            return false;
        }
        self.crop(part);
        let window = Rect::whole((size.width, size.height));
        self.resized = Some(ResizeStep { size, by, window, transposed: false, mirror: Mirror::default() });
        true
    }

    /// Mirrors what is seen.
    pub(crate) fn mirror(&mut self, by: Mirror) {
        let last = self.resized.as_mut().map_or(&mut self.mirror, |resized| &mut resized.mirror);
        *last = Mirror { across: last.across ^ by.across, down: last.down ^ by.down };
    }

    /// Makes columns of the rows of what is seen.
    pub(crate) fn transpose(&mut self) {
        let (transposed, mirror) = match &mut self.resized {
            Some(resized) => (&mut resized.transposed, &mut resized.mirror),
            None => (&mut self.transposed, &mut self.mirror),
        };
        *transposed ^= true;
        *mirror = Mirror { across: mirror.down, down: mirror.across };
    }

    /// Returns the columns and the rows of the picture that are seen, one after another, whatever the filter: of a
    /// resized part those under the middle of each new one. If `true` comes with them, they are seen as rows and columns.
    pub(crate) fn nearest(&self) -> ([Vec<usize>; 2], bool) {
        let Self { part, transposed, mirror, resized } = *self;
        let turned = self.part_size();
        let ResizeStep { size, window, transposed: again, mirror: last, .. } =
            resized.unwrap_or(ResizeStep::none(turned, Mirror::default()));
        // The two sums round as those of the resizer of images, so that a mask and an image of nearest pixels agree.
        let step = f64::from(turned.0) / f64::from(size.width);
        let columns = (0..size.width).map(|at| step * 0.5 + step * f64::from(at));
        let step = f64::from(turned.1) / f64::from(size.height);
        let rows = iter::successors(Some(step * 0.5), |at| Some(at + step));
        let (left, top) = if transposed { (part.top, part.left) } else { (part.left, part.top) };
        let across = AxisSpan { from: left, side: turned.0, mirrored: mirror.across };
        let down = AxisSpan { from: top, side: turned.1, mirrored: mirror.down };
        let last = if again { Mirror { across: last.down, down: last.across } } else { last };
        let seen_across = AxisSpan { from: window.left, side: window.width, mirrored: last.across };
        let seen_down = AxisSpan { from: window.top, side: window.height, mirrored: last.down };
        let columns = seen_across.select(across.places(columns));
        let rows = seen_down.select(down.places(rows.take(size.height as usize)));
        (if transposed { [rows, columns] } else { [columns, rows] }, transposed ^ again)
    }
}

/// Neighbouring columns, or rows, of a picture.
struct AxisSpan {
    from: u32,
    side: u32,
    mirrored: bool,
}

impl AxisSpan {
    /// Returns the columns at these places of the span.
    fn places(self, at: impl Iterator<Item = f64>) -> Vec<usize> {
        let turned = |at: u32| if self.mirrored { self.side - 1 - at } else { at };
        at.map(|at| (self.from + turned((at as u32).min(self.side - 1))) as usize).collect()
    }

    /// Returns the entries of a list that lie in the span.
    fn select(self, mut list: Vec<usize>) -> Vec<usize> {
        list.truncate((self.from + self.side) as usize);
        list.drain(..self.from as usize);
        if self.mirrored {
            list.reverse();
        }
        list
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
        view.mirror(Mirror { across: true, down: false });
        view.crop(rect(0, 5, 20, 10));
        assert_eq!((view.part, view.mirror), (rect(40, 25, 20, 10), Mirror { across: true, down: false }));
        assert!(view.resize(rect(0, 0, 10, 10), Size { height: 8, width: 8 }, Interpolation::Bilinear));
        assert_eq!(view.part, rect(50, 25, 10, 10));
        view.mirror(Mirror { across: false, down: true });
        view.crop(rect(1, 0, 7, 3));
        assert_eq!(view.resized.map(|resized| resized.window), Some(rect(1, 5, 7, 3)));
        assert_eq!(view.dimensions(), (7, 3));
        assert!(!view.resize(rect(0, 0, 2, 2), Size { height: 8, width: 8 }, Interpolation::Bilinear));
    }
}
