//! Sample values, each standing for all values of a column. With them, a row type is checked against a schema before a row is read.

use super::cell::{Cell, Raw};

/// Bytes that are also a text and the header of an image, so that types that check their bytes accept them.
const BYTES: &[u8] = b"GIF89a\x01\0\x01\0\0\0\0;";

/// A value of a column of bytes.
pub(crate) fn bytes() -> Vec<u8> {
    BYTES.to_vec()
}

/// An empty array, as a file.
pub(crate) fn npy() -> Vec<u8> {
    b"\x93NUMPY\x01\0\x3a\0{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }\n".to_vec()
}

/// A value of a column whose type is not known. A row type that refuses it may accept the column's real values.
pub(crate) fn unknown() -> Cell {
    Cell::Raw(Vec::new(), Raw::Json)
}
