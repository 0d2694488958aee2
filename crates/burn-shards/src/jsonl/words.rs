//! `NaN`, `Infinity` and `-Infinity`, which JSON does not have, but Python writes.

use serde::de::Error as _;

/// With serde_json's feature `arbitrary_precision`, which any crate of a program may enable, a number is a map with this key. Here each of
/// the words becomes such a map.
pub(super) const NUMBER: &str = "$serde_json::private::Number";

const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// A JSON text in which each of the words is replaced by a map with the key [`NUMBER`].
#[derive(Debug)]
pub(super) struct MendedText {
    pub(super) text: Vec<u8>,
    /// Where each of these maps ends, and by how much it is longer than its word.
    maps: Vec<(usize, usize)>,
}

impl MendedText {
    /// Returns `None` if a text has none of the words outside of strings.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        if !text.contains(&b'N') && !text.contains(&b'I') {
            return None;
        }
        let mut mended = Self { text: Vec::with_capacity(text.len() + 64), maps: Vec::new() };
        let (mut at, mut copied) = (0, 0);
        while let Some(byte) = text.get(at) {
            let word = WORDS.iter().find(|word| stands(text, at, word));
            match (byte, word) {
                (b'"', _) => at = end_of_string(text, at),
                (_, Some(word)) => {
                    mended.text.extend(&text[copied..at]);
                    let map = format!("{{\"{NUMBER}\":\"{}\"}}", String::from_utf8_lossy(word));
                    mended.text.extend(map.as_bytes());
                    mended.maps.push((mended.text.len(), map.len() - word.len()));
                    at += word.len();
                    copied = at;
                }
                _ => at += 1,
            }
        }
        mended.text.extend(&text[copied..]);
        (copied > 0).then_some(mended)
    }

    /// Converts the place of an error in the mended text to the place in the original text.
    pub(super) fn error(&self, error: serde_json::Error) -> serde_json::Error {
        let (line, column) = (error.line(), error.column());
        let lines = self.text.split_inclusive(|byte| *byte == b'\n');
        let start: usize = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum();
        let before = self.maps.iter().filter(|(end, _)| (start..=start + column).contains(end));
        let place = column - before.map(|(_, longer)| longer).sum::<usize>().min(column);
        let text = error.to_string();
        let problem = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        serde_json::Error::custom(format_args!("{problem} at line {line} column {place}"))
    }
}

/// Whether a word is at a place, and not part of a longer word.
fn stands(text: &[u8], at: usize, word: &[u8]) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let end = text.get(at + word.len());
    text[at..].starts_with(word)
        && before.is_none_or(|byte| b"[,: \t\r\n".contains(byte))
        && end.is_none_or(|byte| b"],} \t\r\n".contains(byte))
}

/// Where the string ends that begins at a place.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_outside_of_strings_alone() {
        let text = |text: &str| MendedText::of(text.as_bytes()).map(|mended| String::from_utf8(mended.text).unwrap());
        let number = |word| format!("{{\"$serde_json::private::Number\":\"{word}\"}}");
        assert_eq!(text("NaN"), Some(number("NaN")));
        let mended = format!("[{},{} , {}]", number("NaN"), number("-Infinity"), number("Infinity"));
        assert_eq!(text("[NaN,-Infinity , Infinity]"), Some(mended));
        for same in
            ["[1, 2]", "\"NaN\"", "{\"N\\\": NaN\": 1}", "NaNs", "xNaN", "-NaN", "\"I", "\"N\\", "Infinity1", ""]
        {
            assert_eq!(text(same), None, "{same}");
        }
    }

    #[test]
    fn the_place_of_an_error_is_that_in_the_text() {
        for text in ["[NaN, -Infinity, 1 2, NaN]", "[\n  NaN, NaN,\n  NaN, x]", "[NaN", "[NaN, Infinity}"] {
            let mended = MendedText::of(text.as_bytes()).unwrap();
            let read = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap_err();
            let error = mended.error(read(&mended.text));
            let other = read(
                text.replace("-Infinity", "-1234567").replace("Infinity", "12345678").replace("NaN", "123").as_bytes(),
            );
            // `-1234567` is a byte shorter than the word.
            let shorter = usize::from(text.contains("-Infinity"));
            assert_eq!((error.line(), error.column()), (other.line(), other.column() + shorter), "{text}: {error}");
            assert!(!error.to_string().contains("column 0"), "{error}");
        }
    }
}
