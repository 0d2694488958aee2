//! Numbers with their units, for people.

use std::time::Duration;

/// Reads a number of bytes such as `64MB`, `1.5 GB` or `4096`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        _ => return Err(format!("`{unit}` is no unit of bytes: write e.g. 64MB")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{number}` is no number: write e.g. 64MB"))?;
    match number * factor {
        bytes if bytes >= 1.0 => Ok(bytes as u64),
        _ => Err("it must be at least one byte".into()),
    }
}

/// Writes a number of bytes with three digits or more.
pub fn show_bytes(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let bytes = bytes as f64;
    match units.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) if bytes >= 100.0 * size => format!("{:.0} {unit}", bytes / size),
        Some((size, unit)) => format!("{:.1} {unit}", bytes / size),
        None => format!("{bytes:.0} B"),
    }
}

/// Writes a whole number with commas between the thousands.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let thousands = digits.as_bytes()[first..].chunks(3).map(String::from_utf8_lossy);
    let start = (first > 0).then(|| digits[..first].into());
    start.into_iter().chain(thousands).collect::<Vec<_>>().join(",")
}

pub fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.1} ms", 1e3 * seconds),
        seconds => format!("{seconds:.1} s"),
    }
}

/// Of a word and its number.
pub fn several(number: usize, word: &str) -> String {
    format!("{} {word}{}", count(number as u64), if number == 1 { "" } else { "s" })
}
