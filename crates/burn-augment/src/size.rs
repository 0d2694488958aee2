//! The size of images.

/// Height and width in pixels, in torchvision's order: `224` is a square, `[224, 320]` is `[height, width]`. The numbers are `u32`,
/// `usize` or `i32`.
///
/// ```
/// use burn_augment::Size;
///
/// assert_eq!(Size::from([224, 320]), Size { height: 224, width: 320 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The number of rows.
    pub height: u32,
    /// The number of columns.
    pub width: u32,
}

/// A number that is no side becomes 0 or `u32::MAX`, which every user of a [`Size`] refuses.
macro_rules! sizes_of {
    ($($int:ty)+) => {$(
        impl From<$int> for Size {
            fn from(side: $int) -> Self {
                Self::from([side; 2])
            }
        }

        impl From<[$int; 2]> for Size {
            fn from(sides: [$int; 2]) -> Self {
                let [height, width] = sides.map(|side| (side as i128).clamp(0, u32::MAX.into()) as u32);
                Self { height, width }
            }
        }
    )+};
}

// Numbers without a type are `i32`.
sizes_of!(u32 usize i32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_a_size_are_its_ends() {
        assert_eq!(Size::from([-1, 3]), Size { height: 0, width: 3 });
        assert_eq!(Size::from(usize::MAX), Size { height: u32::MAX, width: u32::MAX });
        assert_eq!((Size::from(7u32), Size::from([7usize, 7])), (Size::from(7), Size::from([7u32; 2])));
    }
}
