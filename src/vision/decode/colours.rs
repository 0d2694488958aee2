//! From the values of components to red, green and blue.

/// The colours that the components of a picture stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Colours {
    Grey,
    Rgb,
    Ycc,
    /// Inks. Each value is the light that the ink leaves.
    Cmyk,
    Ycck,
}

impl Colours {
    pub(super) fn components(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb | Self::Ycc => 3,
            Self::Cmyk | Self::Ycck => 4,
        }
    }

    /// Returns the pixel of some values, of which there is one for each component.
    pub(super) fn pixel(self, values: [u8; 4]) -> [u8; 3] {
        let [a, b, c, black] = values;
        match self {
            Self::Grey => [a; 3],
            Self::Rgb => [a, b, c],
            Self::Ycc => rgb(a, b, c),
            Self::Cmyk => [a, b, c].map(|ink| product(ink, black)),
            Self::Ycck => rgb(a, b, c).map(|value| product(255 - value, black)),
        }
    }
}

/// The arithmetic of libjpeg (`jdcolor.c`).
fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let [y, cb, cr] = [i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128];
    let half = 1 << 15;
    let red = y + ((91881 * cr + half) >> 16);
    let green = y + ((-22554 * cb - 46802 * cr + half) >> 16);
    let blue = y + ((116130 * cb + half) >> 16);
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}

/// The product of two shares of 255.
fn product(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    ((product + (product >> 8)) >> 8) as u8
}
