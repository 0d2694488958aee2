//! Rectangles of an image, and how they are mirrored.

/// A rectangle of an image, in pixels from its top left corner. If it reaches beyond the image, it shows padding there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CropBox {
    /// The first column.
    pub left: i64,
    /// The first row.
    pub top: i64,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// A rectangle of pixels within an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Rect {
    /// All of an image of this size.
    pub(crate) fn whole((width, height): (u32, u32)) -> Self {
        Self { left: 0, top: 0, width, height }
    }

    /// Returns the box as a rectangle of an image of this size. `None` if it reaches beyond the image.
    pub(crate) fn within(part: CropBox, (width, height): (u32, u32)) -> Option<Self> {
        let (left, top) = (u32::try_from(part.left).ok()?, u32::try_from(part.top).ok()?);
        let fits = left.checked_add(part.width)? <= width && top.checked_add(part.height)? <= height;
        fits.then_some(Self { left, top, width: part.width, height: part.height })
    }

    /// Returns the same pixels of the image after it is mirrored in these directions.
    pub(crate) fn mirrored(self, by: Mirror, (width, height): (u32, u32)) -> Self {
        let left = if by.across { width - self.left - self.width } else { self.left };
        let top = if by.down { height - self.top - self.height } else { self.top };
        Self { left, top, ..self }
    }

    /// Returns the same pixels after rows became columns.
    pub(crate) fn transposed(self) -> Self {
        Self { left: self.top, top: self.left, width: self.height, height: self.width }
    }

    /// Returns a part of this part, which must lie within it, as a part of the image.
    pub(crate) fn part(self, part: Self) -> Self {
        Self { left: self.left + part.left, top: self.top + part.top, ..part }
    }
}

/// In which directions an image is mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mirror {
    /// Left to right.
    pub(crate) across: bool,
    /// Top to bottom.
    pub(crate) down: bool,
}
