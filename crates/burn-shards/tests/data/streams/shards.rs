//! Shards one by one, of disks and of servers.

use crate::{
    formats::{FORMATS, Format, ROWS, Row, bytes},
    write::tar,
};
#[cfg(feature = "http")]
use crate::{
    formats::{files, remote},
    server::{Fault, Server},
};
use burn_shards::{DataError, Rows, RowsBuilder};
use std::{fs, thread};

/// Checks the rows of each shard, which have one half each.
fn check(rows: RowsBuilder<Row>, name: &str) {
    let stream = rows.stream().unwrap();
    assert_eq!(stream.shards(), 2, "{name}");
    thread::scope(|scope| {
        for shard in [1, 0] {
            let stream = stream.clone();
            scope.spawn(move || {
                let mut rows = stream.open(shard).unwrap();
                for number in shard * ROWS / 2..(shard + 1) * ROWS / 2 {
                    let row = rows.next().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert!(row.label == number as i64 && row.bytes == bytes(number), "{name}: {number}");
                }
                assert!(rows.next().is_none(), "{name}");
                // Another one begins anew.
                assert_eq!(stream.open(shard).unwrap().nth(3).unwrap().unwrap().label, (shard * ROWS / 2 + 3) as i64);
            });
        }
    });
}

#[test]
fn each_shard_has_its_rows() {
    for format in FORMATS.into_iter().filter(|format| *format != Format::Mds) {
        let folder = tempfile::tempdir().unwrap();
        check(format.open(folder.path()), &format!("{format:?}"));
        let has_index = |entry: fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "index");
        assert!(!fs::read_dir(folder.path()).unwrap().any(|entry| has_index(entry.unwrap())), "{format:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = Format::Mds.open(folder.path()).stream().map(drop).unwrap_err();
    assert!(matches!(error, DataError::Option { option: "stream", .. }), "{error}");
}

#[cfg(feature = "http")]
#[test]
fn shards_of_a_server_that_fails_now_and_then() {
    for format in FORMATS.into_iter().filter(|format| *format != Format::Mds) {
        let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = Server::new(files(format, written.path()), |request| match request.number % 26 {
            3 => Fault::Answer(503, "Retry-After: 0\r\n".into(), "busy".into()),
            9 => Fault::Cut(5),
            15 => Fault::Reset,
            _ => Fault::None,
        });
        check(remote(format, &server, indices.path()), &format!("{format:?}"));
    }
}

/// A shard is asked for when it is opened, and each of its bytes once.
#[cfg(feature = "http")]
#[test]
fn nothing_is_asked_for_before_a_shard_is_opened() {
    let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new(files(Format::Tar, written.path()), |_| Fault::None);
    let stream = remote(Format::Tar, &server, indices.path()).stream().unwrap();
    assert_eq!(server.seen().len(), 0);
    assert_eq!(stream.open(1).unwrap().count(), ROWS / 2);
    let seen = server.seen();
    assert!(seen.len() <= 3 && seen.iter().all(|request| request.target.contains("1.tar")), "{}", seen.len());
}

#[test]
fn a_shard_may_be_longer_than_a_part_and_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..7 << 20).map(|n: u32| (n / 251) as u8).collect();
    let files: Vec<(String, &[u8])> = (0..7).map(|n| (format!("{n}.bin"), &large[n..])).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (&**name, *bytes)).collect();
    tar(folder.path(), "0.tar", &files);
    fs::write(folder.path().join("1.tar"), b"").unwrap();
    let stream = Rows::<(bytes::Bytes,)>::tar(folder.path().join("{0..2}.tar")).columns(["bin"]).stream().unwrap();
    let rows: Vec<_> = stream.open(0).unwrap().map(|row| row.unwrap().0).collect();
    assert!(rows.len() == 7 && rows.iter().enumerate().all(|(n, bytes)| bytes == &large[n..]));
    assert!(matches!(stream.open(1).map(drop).unwrap_err(), DataError::Empty { .. }));
    assert!(matches!(stream.open(2).map(drop).unwrap_err(), DataError::Open { .. }));
    assert!(Rows::<(u8,)>::tar(folder.path().join("*.none")).columns(["bin"]).stream().is_err());
}
