//! How files of known formats begin. With it an error tells what a file is that was taken for another format, and what
//! to do.

use super::{error::DataError, store::Objects};
use serde::{Deserialize, de::IgnoredAny};

/// A format of files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Magic {
    /// Bytes, and where they are.
    marks: &'static [(usize, &'static [u8])],
    /// What a file is.
    pub(crate) is: &'static str,
    /// What to do with the file so that it can be read.
    pub(crate) cure: &'static str,
}

/// NumPy's arrays have a header, and then numbers.
pub(crate) const NPY: Magic = Magic {
    marks: &[(0, b"\x93NUMPY")],
    is: "a NumPy array (.npy)",
    cure: "write its rows as Parquet or MDS; tokens: `numpy.load(path).tofile(\"tokens.bin\")`, for `Tokens::open_raw`",
};

pub(crate) const TAR: Magic = Magic { marks: &[(257, b"ustar\0")], is: "a tar", cure: "open it with `Rows::tar`" };
/// As GNU writes it.
const GNU_TAR: Magic = Magic { marks: &[(257, b"ustar  \0")], ..TAR };
pub(crate) const PARQUET: Magic =
    Magic { marks: &[(0, b"PAR1")], is: "a Parquet file", cure: "open it with `Rows::parquet`" };

const KNOWN: [Magic; 14] = [
    NPY,
    TAR,
    GNU_TAR,
    PARQUET,
    Magic { marks: &[(0, b"PK\x03\x04")], is: ZIP, cure: UNZIP },
    Magic { marks: &[(0, b"PK\x05\x06")], is: ZIP, cure: UNZIP },
    Magic { marks: &[(0, b"\x1f\x8b\x08")], is: "compressed with gzip", cure: "decompress it with `gunzip`" },
    Magic { marks: &[(0, b"\x28\xb5\x2f\xfd")], is: "compressed with Zstandard", cure: "decompress it with `unzstd`" },
    Magic { marks: &[(0, b"BZh"), (4, b"1AY&SY")], is: "compressed with bzip2", cure: "decompress it with `bunzip2`" },
    Magic { marks: &[(0, b"\xfd7zXZ\0")], is: "compressed with xz", cure: "decompress it with `unxz`" },
    Magic { marks: &[(0, b"\x04\x22\x4d\x18")], is: "compressed with LZ4", cure: "decompress it with `unlz4`" },
    Magic {
        marks: &[(0, b"ARROW1\0\0")],
        is: "an Arrow file",
        cure: "write its rows as Parquet, with `pyarrow.parquet.write_table`",
    },
    // A stream's first message: a mark, its length, and where its schema begins.
    Magic {
        marks: &[(0, b"\xff\xff\xff\xff"), (8, b"\x10\0\0\0")],
        is: "an Arrow stream, as `datasets` saves",
        cure: "write its rows as Parquet, with `datasets.load_from_disk(folder).to_parquet(file)`",
    },
    Magic {
        marks: &[(0, b"\x89HDF\r\n\x1a\n")],
        is: "an HDF5 file",
        cure: "write its rows as Parquet or MDS, e.g. with `h5py` and `pyarrow`",
    },
];

const ZIP: &str = "a zip archive, as .npz files are";
const UNZIP: &str = "unpack it with `unzip`";

/// The number of bytes at the start of a file that are enough to tell its format.
pub(crate) const START_BYTES: u64 = 512;

/// Tells a format by the start of a file.
pub(crate) fn known(start: &[u8]) -> Option<&'static Magic> {
    let has = |(at, mark): &(usize, &[u8])| start.get(*at..).is_some_and(|rest| rest.starts_with(mark));
    KNOWN.iter().find(|magic| magic.marks.iter().all(has))
}

/// The error for an object that is of another format, if it begins like one.
pub(crate) fn other_format(name: &str, start: &[u8]) -> Option<DataError> {
    known(start).map(|Magic { is, cure, .. }| DataError::Format {
        object: name.into(),
        is: (*is).into(),
        cure: (*cure).into(),
    })
}

/// Turns an error about an object that was taken for a format into one that says what it is, if it begins like another one.
pub(crate) fn tell(objects: &Objects, object: usize, taken_for: &Magic, error: DataError) -> DataError {
    let name = objects.name(object);
    if objects.bytes(object) == 0 {
        return DataError::Empty { object: name.into() };
    }
    let start = objects.read(object, 0..objects.bytes(object).min(START_BYTES)).unwrap_or_default();
    if known(&start).is_some_and(|magic| magic.is == taken_for.is) {
        error
    } else {
        other_format(name, &start).unwrap_or(error)
    }
}

/// What a folder of LitData is, and the cure.
pub(crate) const LITDATA: (&str, &str) = (
    "the index of a folder of LitData (Lightning)",
    "read its samples with `litdata.StreamingDataset`, and write them as MDS with `streaming.MDSWriter`, or as Parquet",
);

/// Whether an `index.json` is LitData's.
pub(crate) fn is_litdata(index: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Index {
        #[serde(rename = "chunks")]
        _chunks: Vec<IgnoredAny>,
    }
    serde_json::from_slice::<Index>(index).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_all_their_marks() {
        let is = |start: &[u8]| known(start).map(|magic| magic.is);
        assert_eq!(known(b"\x93NUMPY\x01\x00"), Some(&NPY));
        assert_eq!(is(b"BZh91AY&SY"), Some("compressed with bzip2"));
        assert_eq!(is(b"\xff\xff\xff\xff\x60\x01\0\0\x10\0\0\0"), Some("an Arrow stream, as `datasets` saves"));
        assert_eq!(is(b"\xff\xff\xff\xff\x60\x01\0\0\xff\0\0\0"), None, "numbers of a token file");
        assert_eq!(is(&[&[0; 257][..], b"ustar\0"].concat()), Some("a tar"));
        for none in [&b"BZh is a word"[..], b"", b"\x1f", b"\x1f\x8b\x07", b"{}", b"PK", b"PAR"] {
            assert_eq!(is(none), None, "{none:?}");
        }
    }
}
