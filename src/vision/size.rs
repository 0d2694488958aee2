//! The size of an image, as a parameter.

use crate::error::Error;

/// The longest side that a transform makes: JPEG's limit.
pub(crate) const MAX_SIDE: u32 = 65_535;

/// Height and width in pixels, in torchvision's order: `224` is a square, `[224, 320]` is `[height, width]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

impl Size {
    pub(crate) fn checked(self, option: &'static str) -> Result<Self, Error> {
        let fine = 1..=MAX_SIDE;
        if fine.contains(&self.height) && fine.contains(&self.width) {
            return Ok(self);
        }
        let problem = format!("{} x {} pixels (height x width) is not a size", self.height, self.width);
        Err(Error::config(option, problem, format!("give sides from 1 to {MAX_SIDE}")))
    }
}

impl From<u32> for Size {
    fn from(side: u32) -> Self {
        Self { height: side, width: side }
    }
}

impl From<[u32; 2]> for Size {
    fn from([height, width]: [u32; 2]) -> Self {
        Self { height, width }
    }
}
