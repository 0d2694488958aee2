//! The known bugs of writers, by their name and version.

/// The bugs of a writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Version 2 pages are compressed, even if they do not say so: Arrow before 3.0.
    pub(crate) packs_all: bool,
    /// A chunk is longer than it says, by the header of its dictionary: parquet-mr before 1.2.9.
    pub(crate) is_short: bool,
    /// A list may continue in the next page, even if there is an offset index: parquet-rs before 48.
    pub(crate) splits_lists: bool,
    /// The writer's name, if no current program can read some of its pages.
    pub(crate) old: Option<&'static str>,
}

impl Writer {
    /// The writer with that name, e.g. `parquet-mr version 1.2.8 (build ..)`.
    pub(crate) fn of(name: &str) -> Self {
        let (name, version) = name.split_once(" version ").unwrap_or((name, ""));
        let mut numbers = version.split(|char: char| !char.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let version: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
        Self {
            packs_all: name == "parquet-cpp",
            is_short: name == "parquet-mr" && version < [1, 2, 9],
            splits_lists: name == "parquet-rs" && version < [48, 0, 0],
            old: match name {
                "parquet-cpp" => Some("Arrow before 3.0"),
                "parquet-mr" if version < [1, 8, 0] => Some("parquet-mr before 1.8"),
                _ => None,
            },
        }
    }
}
