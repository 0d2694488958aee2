//! How large the rows of a padded field are, and how they lie in a slot.

/// The size of a row of a padded field: its number of lines, and the steps of each line. If only the first dimension varies, a row is one
/// line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowSize([u32; 2]); // a layout with larger rows is refused

impl RowSize {
    pub(crate) fn new(lines: usize, steps: usize) -> Self {
        Self([lines, steps].map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
    }

    pub(crate) fn lines(self) -> usize {
        self.0[0] as usize
    }

    pub(crate) fn steps(self) -> usize {
        self.0[1] as usize
    }

    /// The smallest size that covers both.
    pub(crate) fn cover(self, other: Self) -> Self {
        Self([self.0[0].max(other.0[0]), self.0[1].max(other.0[1])])
    }
}

/// How the rows of a padded field lie in a slot: planes of lines of steps, each with the maximum size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes {
    pub(crate) planes: usize,
    pub(crate) lines: usize,
    pub(crate) steps: usize,
    pub(crate) step_bytes: usize,
}
