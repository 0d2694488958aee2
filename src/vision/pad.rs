//! What lies outside an image.

/// What a crop shows where it reaches beyond the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PaddingMode {
    /// The fill colour.
    #[default]
    Constant,
    /// The nearest pixel of the border: `aaa|abc|ccc`.
    Edge,
    /// The image mirrored at the border pixel, which is not repeated: `cb|abc|ba`.
    Reflect,
    /// The image mirrored beyond the border pixel, which is repeated: `cba|abc|cba`.
    Symmetric,
}

impl PaddingMode {
    /// The row or column of an image of side `side` (at least 1) that is seen at `at`; none is the fill colour.
    pub(crate) fn source(self, at: i64, side: u32) -> Option<u32> {
        let side = i64::from(side);
        if (0..side).contains(&at) {
            return Some(at as u32);
        }
        let seen = match self {
            Self::Constant => return None,
            Self::Edge => at.clamp(0, side - 1),
            Self::Reflect if side == 1 => 0,
            Self::Reflect => {
                let at = at.rem_euclid(2 * (side - 1));
                at.min(2 * (side - 1) - at)
            }
            Self::Symmetric => {
                let at = at.rem_euclid(2 * side);
                at.min(2 * side - 1 - at)
            }
        };
        Some(seen as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::PaddingMode::{self, *};

    #[test]
    fn modes_are_numpys() {
        let seen = |mode: PaddingMode| -> String {
            let letter = |at| mode.source(at, 3).map_or('-', |at| char::from(b'a' + at as u8));
            (-7..10).map(letter).collect()
        };
        // numpy.pad([a, b, c], 7, mode)
        assert_eq!(seen(Constant), "-------abc-------");
        assert_eq!(seen(Edge), "aaaaaaaabcccccccc");
        assert_eq!(seen(Reflect), "bcbabcbabcbabcbab");
        assert_eq!(seen(Symmetric), "aabccbaabccbaabcc");
        for mode in [Edge, Reflect, Symmetric] {
            assert!((-9..9).all(|at| mode.source(at, 1) == Some(0)));
        }
    }
}
