//! Every format over HTTP, with faults; TLS; the hub as its users see it.

use crate::{
    apart::apart,
    formats::{FORMATS, Format, ROWS, Row, bytes, files, remote},
    kept::{keep, kept},
    server::{Fault, Files, Request, SECRET, Server, folder},
};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows, StoreError};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use std::{
    env,
    error::Error,
    fs,
    io::Write,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
    time::Duration,
};
use tempfile::NamedTempFile;

/// A commit of a data set of the hub.
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Checks all rows, read by four threads in another order.
fn check(rows: Rows<Row>, name: &str) {
    let rows = &rows;
    thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || {
                for row in (first..ROWS).step_by(4).map(|row| row * 101 % ROWS) {
                    let read = rows.get(row).unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert!(read.label == row as i64 && read.bytes == bytes(row), "{name}: row {row}");
                }
            });
        }
    });
    assert_eq!(rows.len(), ROWS, "{name}");
}

#[test]
fn every_format_is_the_same_from_a_server_that_fails_now_and_then() {
    keep();
    for format in FORMATS {
        let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = files(format, written.path());
        let good = Server::new(files.clone(), |_| Fault::None);
        check(remote(format, &good, indices.path()).open().unwrap(), &format!("{format:?}"));
        assert!(good.seen().iter().any(|seen| seen.headers.contains_key("range")), "{format:?}");

        // No two faults come in a row: the pauses grow otherwise.
        let bad = Server::new(files, |request| match request.number % 26 {
            3 => Fault::Answer(503, "Retry-After: 0\r\n".into(), "busy".into()),
            9 => Fault::Cut(5),
            15 => Fault::Reset,
            21 => Fault::Late(Duration::from_millis(20)),
            _ => Fault::None,
        });
        let rows = remote(format, &bad, indices.path()).open().unwrap();
        check(rows, &format!("{format:?} with faults"));
    }
    let log = kept();
    assert!(log.contains("a request is made again"), "{log}");
    assert!(!log.contains(SECRET) && !log.contains("bWU6dmVye"), "{log}");
}

#[test]
fn an_error_names_object_range_status_and_attempts() {
    let written = tempfile::tempdir().unwrap();
    let files = files(Format::Jsonl, written.path());
    let gone = std::sync::Arc::new(AtomicUsize::new(0));
    let told = std::sync::Arc::clone(&gone);
    let server = Server::new(files, move |_| match told.load(SeqCst) {
        0 => Fault::None,
        1 => Fault::Answer(404, String::new(), String::new()),
        _ => Fault::Changed,
    });
    let rows = remote(Format::Jsonl, &server, written.path()).open().unwrap();
    for (state, status, problem) in [(1, 404, "it is not there"), (2, 412, "it has changed since it was opened")] {
        gone.store(state, SeqCst);
        let error = rows.get(1).unwrap_err();
        let read = error.source().and_then(|error| error.downcast_ref());
        let Some(DataError::Read { source, .. }) = read else { panic!("{error:?}") };
        let store = source.get_ref().and_then(|inner| inner.downcast_ref::<StoreError>()).unwrap();
        assert_eq!((store.status, store.attempts, store.problem.as_str()), (Some(status), 1, problem));
        let (text, object) = (error.to_string(), server.url("/0.jsonl"));
        assert!(text.contains(&format!(" of {object}: {problem} (status {status}, attempt 1)")), "{text}");
        assert!(text.contains("cannot read bytes ") && !text.contains(SECRET), "{text}");
    }
}

#[test]
fn packed_shards_are_read_from_a_server() {
    let (written, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(Format::Mds.open(written.path()));
    let mut files = folder(written.path());
    let mut index: serde_json::Value = serde_json::from_slice(&files["/index.json"]).unwrap();
    for shard in index["shards"].as_array_mut().unwrap() {
        let name = shard["raw_data"]["basename"].as_str().unwrap().to_owned();
        let packed = snap::raw::Encoder::new().compress_vec(&files.remove(&format!("/{name}")).unwrap()).unwrap();
        shard["compression"] = "snappy".into();
        shard["zip_data"] = serde_json::json!({"basename": format!("{name}.s"), "bytes": packed.len(), "hashes": {}});
        files.insert(format!("/{name}.s"), packed);
    }
    files.insert("/index.json".into(), index.to_string().into_bytes());
    let server = Server::new(files, |request| if request.number % 5 == 2 { Fault::Cut(9) } else { Fault::None });
    // Each day the folder is signed again.
    for day in 0..2 {
        let rows = Rows::mds(server.url(&format!("?X-Amz-Signature={SECRET}{day}"))).index_dir(cache.path());
        check(rows.cache(cache.path(), 1 << 20).open().unwrap(), "packed");
    }
    let list = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let sets = list(cache.path()).into_iter().filter(|path| path.is_dir());
    let unpacked = sets.flat_map(|set| list(&set)).filter(|file| file.extension().is_some_and(|end| end == "mds"));
    assert_eq!(unpacked.count(), 2);

    index["shards"][0]["raw_data"]["basename"] = "../shard.mds".into();
    let outside = Server::new([("/index.json".into(), index.to_string().into_bytes())].into(), |_| Fault::None);
    let error = remote(Format::Mds, &outside, cache.path()).open().unwrap_err().to_string();
    assert!(error.contains("is not in the folder") && !error.contains(SECRET), "{error}");
}

#[test]
fn an_idx_beside_a_tar_saves_the_scan() {
    let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut files = files(Format::Tar, written.path());
    for part in 0..2 {
        let rows = part * ROWS / 2..(part + 1) * ROWS / 2;
        let (mut at, mut lines) = (0, format!("v1.2 {}\n", rows.len()));
        for row in rows {
            for (end, size) in [("bytes", bytes(row).len()), ("label", row.to_string().len())] {
                lines +=
                    &format!("{end} {} {size} {row:04}.{end}{}", at + 512, if end == "label" { "\n" } else { " " });
                at += 512 + size.next_multiple_of(512);
            }
        }
        files.insert(format!("/{part}.idx"), lines.into_bytes());
    }
    let read = |server: &Server| {
        let opened = remote(Format::Tar, server, &indices.path().join(server.url("").replace(['/', ':'], "")));
        check(opened.read_ahead(0).open().unwrap(), "tar"); // so that no reads are put together
        let range = |text: &String| {
            let (start, last) = text.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            last.parse::<u64>().unwrap() + 1 - start.parse::<u64>().unwrap()
        };
        server.seen().iter().filter_map(|seen| seen.headers.get("range")).map(range).max().unwrap()
    };
    let with = read(&Server::new(files.clone(), |_| Fault::None));
    files.retain(|name, _| !name.ends_with(".idx"));
    let without = read(&Server::new(files, |_| Fault::None));
    assert!(with <= 512 && without > 50_000, "the longest read has {with} bytes, {without} without an index");
}

/// A server of TLS, and the file of its certificate.
fn tls(files: Files, fault: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> (Server, NamedTempFile) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config =
        ServerConfig::builder_with_provider(ring::default_provider().into()).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let mut root = NamedTempFile::new().unwrap();
    root.write_all(cert.pem().as_bytes()).unwrap();
    (Server::tls(files, config, fault), root)
}

#[test]
fn a_redirect_from_https_to_http_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Server::new(files(Format::Jsonl, folder.path()), |_| Fault::None);
    let place = plain.url("");
    let (server, root) = tls(Files::new(), move |request| {
        Fault::Answer(302, format!("Location: {place}{}?sig={SECRET}\r\n", request.target), String::new())
    });
    let root = root.path().to_str().unwrap();
    apart("web::is_led_astray", &[("URL_OF_TEST", &server.url("/0.jsonl")), ("SSL_CERT_FILE", root)]);
    assert!(!server.seen().is_empty() && plain.seen().is_empty(), "{:?}", plain.seen());
}

#[test]
#[ignore = "a part of `a_redirect_from_https_to_http_is_refused`"]
fn is_led_astray() {
    let error = Rows::<Row>::jsonl(env::var("URL_OF_TEST").unwrap()).open().unwrap_err().to_string();
    assert!(error.contains("from https to http") && !error.contains(SECRET), "{error}");
}

#[test]
fn tls_trusts_the_named_roots_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (server, root) = tls(files(Format::Jsonl, folder.path()), |_| Fault::None);
    let url = server.url("/{0..1}.jsonl");
    assert!(url.starts_with("https://"));
    apart("web::reads_over_tls", &[("URL_OF_TEST", &url), ("SSL_CERT_FILE", root.path().to_str().unwrap())]);

    let error = Rows::<Row>::jsonl(url).open().unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate") && error.contains("attempt 1"), "{error}");
    assert!(rustls::crypto::CryptoProvider::get_default().is_none(), "nothing is installed for the process");
}

#[test]
#[ignore = "a part of `tls_trusts_the_named_roots_alone`"]
fn reads_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Rows::jsonl(env::var("URL_OF_TEST").unwrap()).index_dir(folder.path());
    check(rows.open().unwrap(), "TLS");
    assert!(rustls::crypto::CryptoProvider::get_default().is_none(), "nothing is installed for the process");
}

#[test]
fn a_split_of_the_hub_is_found_with_the_settings_of_its_tools() {
    let written = tempfile::tempdir().unwrap();
    let there = files(Format::Jsonl, written.path());
    let names = ["pages-0.parquet", "pages-1.parquet", "0.jsonl", "1.jsonl"];
    let list: Vec<serde_json::Value> = names
        .map(|name| {
            let size = there[&format!("/{name}")].len();
            serde_json::json!({"type": "file", "path": format!("default/train/{name}"), "size": size, "oid": name})
        })
        .into();
    let list = serde_json::Value::from(list).to_string();
    let place = |name: &str| format!("/datasets/o/n/resolve/{COMMIT}/default/train/{name}");
    let files = names.map(|name| (place(name), there[&format!("/{name}")].clone())).into();
    let server = Server::new(files, move |request| {
        let sent = request.headers.get("authorization").map(String::as_str);
        if sent != Some("Bearer hf_test") {
            return Fault::Answer(401, String::new(), String::new());
        }
        match request.target.as_str() {
            "/api/datasets/o/n/revision/refs%2Fconvert%2Fparquet" => {
                Fault::Answer(200, String::new(), format!(r#"{{"sha":"{COMMIT}"}}"#))
            }
            tree if tree.starts_with(&format!("/api/datasets/o/n/tree/{COMMIT}")) => {
                Fault::Answer(200, String::new(), list.clone())
            }
            _ => Fault::None,
        }
    });
    let home = tempfile::tempdir().unwrap();
    let home = home.path().to_str().unwrap();
    let given = [("HF_ENDPOINT", &*server.url("")), ("HF_HOME", home), ("XDG_CACHE_HOME", home)]
        .map(|(name, text)| (name, text.to_owned()));
    let settings: Vec<(&str, &str)> = given.iter().map(|(name, text)| (*name, text.as_str())).collect();
    apart("web::reads_a_gated_split", &settings);
    fs::write(Path::new(home).join("token"), "hf_test\n").unwrap();
    apart("web::reads_a_split", &settings);
    let saved = fs::read_dir(Path::new(home).join("burn-pinned"));
    assert_eq!(saved.map(|files| files.count()).ok(), Some(1), "the index of the lines is saved");
}

#[test]
#[ignore = "a part of `a_split_of_the_hub_is_found_with_the_settings_of_its_tools`"]
fn reads_a_split() {
    check(Rows::hub("o/n", "train").open().unwrap(), "the hub");
    let lines = format!("hf://datasets/o/n@{COMMIT}/default/train/{{0..1}}.jsonl");
    check(Rows::jsonl(lines).open().unwrap(), "lines of the hub");
}

#[test]
#[ignore = "a part of `a_split_of_the_hub_is_found_with_the_settings_of_its_tools`"]
fn reads_a_gated_split() {
    let error = Rows::<Row>::hub("o/n", "train").open().unwrap_err().to_string();
    assert!(error.contains("private or gated") && error.contains("set `HF_TOKEN`"), "{error}");
}
