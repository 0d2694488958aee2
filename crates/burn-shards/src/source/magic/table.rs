//! The table of formats.

use super::{
    Magic,
    structure::{
        is_gzip, is_html, is_jpeg, is_json, is_mp3, is_npz, is_pickle, is_safetensors, is_table, is_text, is_torch,
        is_utf16,
    },
};

/// A format that is recognised by magic bytes.
const fn marks(marks: &'static [(usize, &'static [u8])], (is, cure): (&'static str, &'static str)) -> Magic {
    Magic { marks, fits: |_| true, is, cure }
}

/// A format that is recognised by its structure.
const fn fits(fits: fn(&[u8]) -> bool, (is, cure): (&'static str, &'static str)) -> Magic {
    Magic { marks: &[], fits, is, cure }
}

/// NumPy's arrays have a header, and then numbers.
pub(crate) const NPY: Magic = marks(
    &[(0, b"\x93NUMPY")],
    (
        "a NumPy array (.npy)",
        "write its rows as Parquet or MDS; tokens: `numpy.load(path).tofile(\"tokens.bin\")`, for `Tokens::open_raw`",
    ),
);
pub(crate) const TAR: Magic = marks(&[(257, b"ustar\0")], IS_TAR);
pub(crate) const PARQUET: Magic = marks(&[(0, b"PAR1")], ("a Parquet file", "open it with `Rows::parquet`"));
/// A file that stands for another one.
pub(crate) const LFS: Magic = marks(&[(0, b"version https://git-lfs.github.com/spec/")], IS_LFS);
pub(crate) const GZIP: Magic = fits(is_gzip, ("compressed with gzip", "decompress it with `gunzip`"));
pub(crate) const ZSTD: Magic =
    marks(&[(0, b"\x28\xb5\x2f\xfd")], ("compressed with Zstandard", "decompress it with `unzstd`"));
pub(crate) const BZIP2: Magic =
    marks(&[(0, b"BZh"), (4, b"1AY&SY")], ("compressed with bzip2", "decompress it with `bunzip2`"));
pub(crate) const JSON: Magic = fits(is_json, ("JSON", "open it with `Rows::jsonl`: an object on each line"));
pub(super) const TEXT: Magic = fits(
    is_text,
    (
        "a text",
        "write its documents as JSON lines, such as `{\"text\": \"..\"}`, for `Rows::jsonl`; its bytes are tokens with `Tokens::open_raw(path, TokenType::U8)`",
    ),
);

pub(super) const KNOWN: &[Magic] = &[
    LFS,
    marks(&[(0, b"version https://hawser.github.com/spec/")], IS_LFS), // as it was called before
    marks(&[(0, b"/annex/objects/")], ("a pointer of git-annex", "get the file itself with `git annex get`")),
    fits(is_html, PAGE),
    // What servers send instead of a file. It is shorter than the texts that are recognised.
    marks(&[(0, b"404: Not Found")], PAGE),
    marks(&[(0, b"Entry not found")], PAGE),
    marks(&[(0, b"Repository not found")], PAGE),
    marks(&[(0, b"Invalid username or password")], PAGE),
    NPY,
    TAR,
    marks(&[(257, b"ustar  \0")], IS_TAR), // as GNU writes it
    PARQUET,
    fits(
        is_npz,
        (
            "a zip archive of NumPy arrays (.npz)",
            "save each array as a file with `numpy.save(name, numpy.load(path)[name])`; tokens: `.tofile(\"tokens.bin\")`, for `Tokens::open_raw`",
        ),
    ),
    fits(is_torch, ("a file of `torch.save`", FROM_PYTHON)),
    marks(&[(0, b"PK\x03\x04")], IS_ZIP),
    marks(&[(0, b"PK\x05\x06")], IS_ZIP),
    GZIP,
    ZSTD,
    BZIP2,
    marks(&[(0, b"\xfd7zXZ\0")], ("compressed with xz", "decompress it with `unxz`")),
    marks(&[(0, b"\x04\x22\x4d\x18")], ("compressed with LZ4", "decompress it with `unlz4`")),
    marks(&[(0, b"\xff\x06\0\0sNaPpY")], ("compressed with Snappy", "decompress it with `snzip -d`")),
    marks(&[(0, b"7z\xbc\xaf\x27\x1c")], ("a 7z archive", "unpack it with `7z x`")),
    marks(&[(0, b"ARROW1\0\0")], ("an Arrow file", "write its rows as Parquet, with `pyarrow.parquet.write_table`")),
    // A stream's first message: a mark, its length, and where its schema begins.
    marks(
        &[(0, b"\xff\xff\xff\xff"), (8, b"\x10\0\0\0")],
        (
            "an Arrow stream, as `datasets` saves",
            "write its rows as Parquet, with `datasets.load_from_disk(folder).to_parquet(file)`",
        ),
    ),
    marks(
        &[(0, b"\x89HDF\r\n\x1a\n")],
        ("an HDF5 file", "write its rows as Parquet or MDS, e.g. with `h5py` and `pyarrow`"),
    ),
    marks(&[(0, b"Obj\x01")], ("an Avro file", "write its rows as Parquet")),
    marks(&[(0, b"%PDF-")], ("a PDF", "write its text as JSON lines, for `Rows::jsonl`")),
    marks(&[(0, b"SQLite format 3\0")], ("a database of SQLite", "write the rows of a table as Parquet")),
    marks(
        &[(0, b"MMIDIDX\0\0")],
        ("an index of Megatron", "name it `.idx` beside its `.bin`, and open that with `Tokens::open`"),
    ),
    marks(
        &[(0, b"LITPKDS")],
        (
            "a file of LitGPT's `PackedDataset`",
            "its tokens are behind 24 bytes: `tail -c +25 file.bin > tokens.bin`, for `Tokens::open_raw` with the type that it was written with",
        ),
    ),
    fits(is_pickle, ("a pickle of Python, which may run any code", FROM_PYTHON)),
    fits(is_safetensors, ("a file of tensors (safetensors)", FROM_PYTHON)),
    marks(&[(0, b"GGUF"), (5, b"\0\0\0")], ("the weights of a model (GGUF)", "leave it out")),
    // Sounds and films.
    marks(&[(0, b"RIFF"), (8, b"WAVE")], SOUND),
    marks(&[(0, b"RIFX"), (8, b"WAVE")], SOUND),
    marks(&[(0, b"RF64"), (8, b"WAVE")], SOUND),
    marks(&[(0, b"BW64"), (8, b"WAVE")], SOUND),
    marks(&[(0, b"FORM"), (8, b"AIF")], SOUND),
    marks(&[(0, b"fLaC"), (5, b"\0\0\x22")], SOUND),
    marks(&[(0, b"OggS\0\x02")], SOUND),
    marks(&[(0, b"ID3\x02\0")], SOUND),
    marks(&[(0, b"ID3\x03\0")], SOUND),
    marks(&[(0, b"ID3\x04\0")], SOUND),
    fits(is_mp3, SOUND),
    marks(&[(0, b"MThd\0\0\0\x06")], SOUND),
    marks(&[(0, b"\0\0\0"), (4, b"ftypavif")], IMAGE),
    marks(&[(0, b"\0\0\0"), (4, b"ftypheic")], IMAGE),
    marks(&[(0, b"\0\0\0"), (4, b"ftypmif1")], IMAGE),
    marks(&[(0, b"\0\0\0"), (4, b"ftyp")], FILM),
    marks(&[(0, b"\x1a\x45\xdf\xa3")], FILM),
    marks(&[(0, b"RIFF"), (8, b"AVI ")], FILM),
    // Images.
    marks(&[(0, b"\x89PNG\r\n\x1a\n")], IMAGE),
    fits(is_jpeg, IMAGE),
    marks(&[(0, b"GIF87a")], IMAGE),
    marks(&[(0, b"GIF89a")], IMAGE),
    marks(&[(0, b"RIFF"), (8, b"WEBP")], IMAGE),
    marks(&[(0, b"II*\0")], IMAGE),
    marks(&[(0, b"MM\0*")], IMAGE),
    marks(&[(0, b"BM"), (6, b"\0\0\0\0"), (14, b"\x28\0\0\0")], IMAGE),
    marks(&[(0, b"BM"), (6, b"\0\0\0\0"), (14, b"\x6c\0\0\0")], IMAGE),
    marks(&[(0, b"BM"), (6, b"\0\0\0\0"), (14, b"\x7c\0\0\0")], IMAGE),
    fits(is_utf16, ("a text in UTF-16, as PowerShell writes it", "make UTF-8 of it with `iconv -f UTF-16 -t UTF-8`")),
];

/// Texts, which may be rows.
pub(super) const TEXTS: &[Magic] = &[
    JSON,
    fits(
        is_table,
        (
            "a table in a text (CSV)",
            "make JSON lines of it, for `Rows::jsonl`: `pandas.read_csv(path).to_json(\"rows.jsonl\", orient=\"records\", lines=True)`",
        ),
    ),
    TEXT,
];

const PAGE: (&str, &str) =
    ("an answer of a web server (HTML, XML or an error)", "it may say why there is no file: download the file again");
const IS_LFS: (&str, &str) = ("a pointer of Git LFS", "get the file itself with `git lfs pull`");
const IS_TAR: (&str, &str) = ("a tar", "open it with `Rows::tar`");
const IS_ZIP: (&str, &str) = ("a zip archive", "unpack it with `unzip`");
pub(super) const SOUND: (&str, &str) =
    ("a sound", "put sounds into tars, for `Rows::tar`, or read a file with `Audio::open`");
pub(super) const FILM: (&str, &str) =
    ("a film or its sound", "put its pictures or its sound into tars, for `Rows::tar`");
const IMAGE: (&str, &str) = ("an image", "put images into tars, for `Rows::tar`, or read a folder of them");
const FROM_PYTHON: &str = "load it in Python, and write Parquet or MDS; tokens: `numpy.asarray(tokens).tofile(\"tokens.bin\")`, for `Tokens::open_raw`";
