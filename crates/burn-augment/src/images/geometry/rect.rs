//! Rectangles of an image.

/// A rectangle of an image, in pixels from its top left corner. It may reach beyond the image: that part is padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CropBox {
    /// The first column.
    pub left: i64,
    /// The first row.
    pub top: i64,
    /// The number of columns.
    pub width: u32,
    /// The number of rows.
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

impl CropBox {
    /// All of an image of this size.
    pub(crate) fn whole((width, height): (u32, u32)) -> Self {
        Self { left: 0, top: 0, width, height }
    }
}

impl From<Rect> for CropBox {
    fn from(Rect { left, top, width, height }: Rect) -> Self {
        Self { left: left.into(), top: top.into(), width, height }
    }
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
}
