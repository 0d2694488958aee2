//! Rows that are read once, from front to back: the same as with an index, of whole, compressed, truncated and damaged bytes, of commands
//! and of shards.

use crate::{any::Any, golden::golden, write::tar};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, RowStream, Rows, RowsBuilder};
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    io::{self, Cursor, Read, Write},
    path::{Path, PathBuf},
};

mod pipes;
mod shards;

/// A row with all that its format has of it.
#[derive(Debug, PartialEq, serde::Deserialize)]
struct Whole {
    #[serde(default)]
    __key__: String,
    #[serde(flatten)]
    rest: BTreeMap<String, Any>,
}

/// Rows and the texts of errors.
fn texts<T>(rows: RowStream<T>) -> Vec<Result<T, String>> {
    rows.map(|row| row.map_err(|error| error.to_string())).collect()
}

/// The rows of a file by an index, in the same form.
fn indexed<T: DeserializeOwned + 'static>(rows: RowsBuilder<T>) -> Result<Vec<Result<T, String>>, DataError> {
    let none = tempfile::tempdir().unwrap();
    let rows = rows.index_dir(none.path()).open()?;
    let text = |error: burn::data::dataset::DatasetError| {
        error.source().and_then(|error| error.downcast_ref::<DataError>()).unwrap().to_string()
    };
    Ok((0..rows.len()).map(|row| rows.get(row).map_err(text)).collect())
}

/// The rows of bytes, which have the name of this file.
fn streamed<T: DeserializeOwned + 'static>(
    rows: RowsBuilder<T>,
    bytes: impl Read + Send + 'static,
) -> Vec<Result<T, String>> {
    rows.stream_from(bytes).map_or_else(|error| vec![Err(error.to_string())], texts)
}

/// Gives a byte or a few at a time.
struct Trickle<R>(R, usize);

impl<R: Read> Read for Trickle<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 % 7 + 1;
        let most = self.1.min(into.len());
        self.0.read(&mut into[..most])
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// The files of a folder that end so.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = all.filter(|path| path.extension().is_some_and(|it| it == extension)).collect();
    assert!(files.len() > 5);
    files
}

#[test]
fn rows_are_those_of_an_index_however_the_bytes_come() {
    let check = |path: &Path, of: fn(&Path) -> RowsBuilder<Whole>| {
        let expected = indexed(of(path)).unwrap();
        let bytes = fs::read(path).unwrap();
        let half = bytes.len() / 2;
        let (head, tail) = bytes.split_at(half);
        let forms: [(&str, Box<dyn Read + Send>); 6] = [
            ("whole", Box::new(Cursor::new(bytes.clone()))),
            ("a few bytes at a time", Box::new(Trickle(Cursor::new(bytes.clone()), 0))),
            ("gzip", Box::new(Cursor::new(gzip(&bytes)))),
            ("gzip in members", Box::new(Trickle(Cursor::new([gzip(head), gzip(tail)].concat()), 0))),
            ("zstd", Box::new(Cursor::new(zstd(&bytes)))),
            ("zstd in frames", Box::new(Cursor::new([zstd(head), zstd(tail)].concat()))),
        ];
        for (form, read) in forms {
            assert_eq!(streamed(of(path), read), expected, "{}, {form}", path.display());
        }
        let shards = of(path).stream().unwrap();
        assert_eq!((shards.shards(), texts(shards.open(0).unwrap())), (1, expected), "{}", path.display());
    };
    let mut refused = 0;
    for path in files(&golden("tar"), "tar") {
        let Err(error) = indexed(Rows::<Whole>::tar(&path)) else {
            check(&path, |path| Rows::tar(path));
            continue;
        };
        let last = streamed(Rows::<Whole>::tar(&path), fs::File::open(&path).unwrap()).pop().unwrap().unwrap_err();
        assert_eq!(last.split(" (at byte").next(), error.to_string().split(" (at byte").next());
        refused += 1;
    }
    assert_eq!(refused, 3); // two sparse ones, and one with a repeated name
    files(&golden("jsonl"), "jsonl").iter().for_each(|path| check(path, |path| Rows::jsonl(path)));
}

#[test]
fn a_tuple_the_key_and_the_name_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = tar(folder.path(), "a.tar", &[("x/1.JPG", b"one"), ("x/1.cls", b"7"), ("x/2.cls", b"8")]);
    let columns = ["__url__", "cls", "__key__", "jpg"];
    let rows = Rows::<(String, u8, String, Option<String>)>::tar("the net").columns(columns);
    let read: Vec<_> = texts(rows.stream_from(fs::File::open(path).unwrap()).unwrap());
    let row = |cls, key: &str, jpg: Option<&str>| Ok(("the net".into(), cls, key.into(), jpg.map(String::from)));
    assert_eq!(read, [row(7, "x/1", Some("one")), row(8, "x/2", None)]);
    let wrong = Rows::<(u8,)>::tar("a").stream_from(io::empty()).map(drop).unwrap_err();
    assert!(matches!(wrong, DataError::Option { option: "columns", .. }), "{wrong}");
}

/// A tar with names of each length, folders between its files, and a size that fills its blocks.
fn mixed(folder: &Path) -> Vec<u8> {
    let (long, blocks) = (format!("{}/b.txt", "deep".repeat(40)), [7; 1024]);
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8], is_pax: bool| {
        if is_pax {
            tar.append_pax_extensions([("path", name.as_bytes())]).unwrap();
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, if is_pax { "short" } else { name }, bytes).unwrap();
    };
    add("a.jpg", b"picture", false);
    add("a.cls", b"1", false);
    add("readme", &blocks, false);
    add(&long, b"text", false);
    add("c.jpg", &blocks, false);
    add(&long.replace("b.txt", "d.txt"), b"of pax", true);
    add("d.cls", b"no number", false);
    add("e.jpg", b"", false);
    let bytes = tar.into_inner().unwrap();
    fs::write(folder.join("mixed.tar"), &bytes).unwrap();
    bytes
}

/// Compares the rows of damaged bytes with those of an index. Returns whether they are whole.
fn compare(path: &Path, bytes: Vec<u8>) -> bool {
    fs::write(path, &bytes).unwrap();
    let read = streamed(Rows::<Whole>::tar(path), Cursor::new(bytes));
    match indexed(Rows::<Whole>::tar(path)) {
        Ok(expected) => {
            assert_eq!(read, expected);
            true
        }
        Err(error) => {
            let last = read.last().unwrap().as_ref().expect_err(&error.to_string());
            let has_place = last.contains(path.to_str().unwrap()) && !last.contains("row ");
            assert!(has_place, "{last}, and by an index {error}");
            false
        }
    }
}

#[test]
fn a_truncated_tar_is_an_error_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, path) = (mixed(folder.path()), folder.path().join("cut.tar"));
    let good = streamed(Rows::<Whole>::tar(&path), Cursor::new(bytes.clone()));
    let whole = (0..=bytes.len()).step_by(512).filter(|end| compare(&path, bytes[..*end].to_vec())).count();
    assert!(whole > 5, "a tar may end after each entry: {whole}");
    for end in (1..bytes.len()).step_by(97) {
        compare(&path, bytes[..end].to_vec());
        for packed in [gzip(&bytes), zstd(&bytes)] {
            let read =
                streamed(Rows::<Whole>::tar(&path), Cursor::new(packed[..packed.len() * end / bytes.len()].to_vec()));
            let rows = read.len() - 1;
            assert!(read[..rows] == good[..rows] && read[rows].is_err(), "{end}: {:?}", read[rows]);
        }
    }
    // The rows before are there, and the error says where.
    let cut = streamed(Rows::<Whole>::tar("cut.tar"), Cursor::new(bytes[..512 + 512 + 512 + 512 + 100].to_vec()));
    assert_eq!(cut, [Err("cut.tar is damaged: the file is cut off in a header (at byte 2048)".into())]);
    let cut = streamed(Rows::<Whole>::tar("cut.tar"), Cursor::new(bytes[..512 + 3].to_vec()));
    assert_eq!(cut, [Err("cut.tar is damaged: the file is cut off: an entry ends behind it (at byte 515)".into())]);
}

#[test]
fn a_damaged_tar_gives_the_rows_of_an_index_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (good, path) = (mixed(folder.path()), folder.path().join("bad.tar"));
    let headers: Vec<usize> =
        (0..good.len()).step_by(512).filter(|at| good[at + 257..].starts_with(b"ustar")).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut whole = 0;
    for _ in 0..600 {
        let mut bad = good.clone();
        match rng.random_range(0..3) {
            0 => bad[rng.random_range(0..good.len())] ^= 1 << rng.random_range(0..8),
            // A header that is wrong, but whose checksum is right.
            1 => {
                let at = headers[rng.random_range(0..headers.len())];
                let block = &mut bad[at..at + 512];
                block[rng.random_range(0..512)] = rng.random();
                block[148..156].fill(b' ');
                let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
                block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
            _ => {
                let from = rng.random_range(0..good.len());
                bad.extend_from_slice(&good[from..]);
            }
        }
        whole += usize::from(compare(&path, bad));
    }
    assert!((100..500).contains(&whole), "{whole}");
}

#[test]
fn a_sample_beyond_the_limit_is_an_error_and_the_next_one_follows() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 5] =
        [("a.jpg", &[1; 300]), ("a.txt", &[b'x'; 300]), ("b.jpg", &[2; 900]), ("b.txt", b"b"), ("c.jpg", &[3; 600])];
    let path = tar(folder.path(), "a.tar", &files);
    let of = |names: &[&'static str]| Rows::<(Option<String>,)>::tar(&path).columns(names.to_vec()).largest_sample(600);
    for names in [["jpg"], ["txt"]] {
        let read = streamed(of(&names), fs::File::open(&path).unwrap());
        assert_eq!(read, indexed(of(&names)).unwrap(), "{names:?}");
        assert_eq!(read.len(), 3);
    }
    let error = &streamed(of(&["jpg"]), fs::File::open(&path).unwrap())[1];
    assert!(error.as_ref().unwrap_err().contains("key `b`: 900 bytes are asked for at once, and the limit is 600"));

    let lines = format!("{{\"a\": 1}}\n{{\"a\": 2, \"b\": \"{}\"}}\n\n{{\"a\": 3}}", "x".repeat(600));
    let rows = Rows::<(u8,)>::jsonl("lines").columns(["a"]).largest_sample(600).stream_from(Cursor::new(lines));
    let read = texts(rows.unwrap());
    assert_eq!((&read[0], &read[2], read.len()), (&Ok((1,)), &Ok((3,)), 3));
    assert!(read[1].as_ref().unwrap_err().contains("618 bytes"), "{:?}", read[1]);
}

/// A header claims what never comes, and what comes never ends.
#[test]
fn a_claim_takes_no_memory() {
    let mut header = tar::Header::new_gnu();
    header.set_path("a.jpg").unwrap();
    header.set_size(1 << 60);
    header.set_cksum();
    let bytes = header.as_bytes().to_vec();
    for limit in [1 << 20, 1 << 61] {
        let rows = Rows::<(String,)>::tar("a").columns(["jpg"]).largest_sample(limit);
        let read = streamed(rows, Cursor::new(bytes.clone()));
        assert_eq!(read, [Err("a is damaged: the file is cut off: an entry ends behind it (at byte 512)".into())]);
    }
    let endless = b"{\"a\": \"".chain(io::repeat(b'x').take(64 << 20));
    let read = streamed(Rows::<(String,)>::jsonl("a").columns(["a"]).largest_sample(1 << 10), endless);
    assert!(read.len() == 1 && read[0].as_ref().unwrap_err().contains("the limit is 1024"), "{read:?}");
}

#[test]
fn bytes_of_another_format_are_told() {
    let error = |rows: RowsBuilder<(u8,)>, bytes: &[u8]| {
        let read =
            rows.columns(["a"]).stream_from(Cursor::new(bytes.to_vec())).and_then(|mut rows| rows.next().unwrap());
        read.map(drop).unwrap_err()
    };
    let lines = b"{\"a\": 1}\n{\"a\": 2}\n".repeat(40);
    for bytes in [lines.clone(), gzip(&lines), zstd(&lines)] {
        let error = error(Rows::tar("net"), &bytes);
        assert!(matches!(&error, DataError::Format { is, .. } if is == "JSON"), "{error}");
    }
    let packed = gzip(&fs::read(golden("tar").join("gnu.tar")).unwrap());
    let error_of_tar = error(Rows::jsonl("net"), &packed);
    assert!(matches!(&error_of_tar, DataError::Format { is, .. } if is == "a tar"), "{error_of_tar}");
    assert!(matches!(error(Rows::jsonl("net"), b"a,b\n1,2\n"), DataError::Format { .. }));
    assert!(matches!(error(Rows::jsonl("net"), b"[{\"a\": 1},\n{\"a\": 2}]"), DataError::Format { .. }));
    assert!(matches!(error(Rows::jsonl("net"), &gzip(&gzip(&lines))), DataError::Format { .. }));
    for empty in [&b""[..], &gzip(b""), &zstd(b"")] {
        assert!(matches!(error(Rows::tar("net"), empty), DataError::Empty { .. }));
        let rows = Rows::<(u8,)>::jsonl("net").columns(["a"]).stream_from(Cursor::new(empty.to_vec()));
        assert_eq!(rows.unwrap().count(), 0);
    }
    for other in [Rows::parquet("net"), Rows::mds("net")] {
        assert!(matches!(error(other, &lines), DataError::Option { option: "stream_from", .. }));
    }
}

/// The bytes of a reader, and then its error.
#[test]
fn an_error_of_the_reader_is_the_last_item() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the line is cut"))
        }
    }
    let lines = b"{\"a\": 1}\n".repeat(300);
    let mut rows = Rows::<(u8,)>::jsonl("net").columns(["a"]).stream_from(Cursor::new(lines).chain(Broken)).unwrap();
    assert_eq!(rows.by_ref().take(300).filter(|row| row.as_ref().is_ok_and(|row| row.0 == 1)).count(), 300);
    let error = rows.next().unwrap().unwrap_err();
    assert!(matches!(&error, DataError::Read { range, .. } if range.start == 2700), "{error}");
    assert!(error.to_string().contains("the line is cut") && rows.next().is_none() && rows.next().is_none());
}
