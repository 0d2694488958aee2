//! The header of a `.npy` file: a dictionary in Python's words.

/// The most dimensions, as in NumPy.
const DIMENSIONS: usize = 64;

/// What the header tells.
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) is_fortran: bool,
    pub(super) shape: Vec<usize>,
}

impl Header {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`. `None` if it is anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, behind) = quoted(rest)?;
            let value = behind.trim_start().strip_prefix(':')?.trim_start();
            rest = match key {
                "descr" if descr.is_none() => {
                    let (value, rest) = quoted(value)?;
                    descr = Some(value.to_string());
                    rest
                }
                "fortran_order" if is_fortran.is_none() => {
                    let (value, rest) = value.split_at(value.find([',', ' ']).unwrap_or(value.len()));
                    is_fortran = Some(value.to_lowercase().parse().ok()?);
                    rest
                }
                "shape" if shape.is_none() => {
                    let (value, rest) = value.strip_prefix('(')?.split_once(')')?;
                    shape = Some(sides(value)?);
                    rest
                }
                _ => return None,
            };
            rest = rest.trim_start();
            if !rest.is_empty() {
                rest = rest.strip_prefix(',')?.trim_start();
            }
        }
        Some(Self { descr: descr?, is_fortran: is_fortran?, shape: shape? })
    }
}

/// A text in quotation marks, and what comes behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let mark = text.chars().next().filter(|mark| ['\'', '"'].contains(mark))?;
    text[1..].split_once(mark).filter(|(inside, _)| !inside.contains('\\'))
}

/// The numbers of a tuple. Python 2 wrote an `L` behind them.
fn sides(text: &str) -> Option<Vec<usize>> {
    let text = text.trim().trim_end_matches(',');
    if text.is_empty() {
        return Some(Vec::new());
    }
    let side = |side: &str| side.trim().trim_end_matches('L').parse().ok();
    let sides: Option<Vec<usize>> = text.split(',').map(side).collect();
    sides.filter(|sides| sides.len() <= DIMENSIONS)
}
