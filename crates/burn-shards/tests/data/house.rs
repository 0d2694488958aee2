//! Faults of stores that are known and not mended yet.

use crate::{
    apart::apart,
    formats::{Format, Row, bytes, jsonl_files},
    server::{Fault, Server},
};
use burn::data::dataset::Dataset;
use burn_shards::Rows;
use httpdate::fmt_http_date;
use std::{
    env, fs,
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
    time::{Duration, SystemTime},
};

/// The address of a server that answers with this, and then with a byte now and then.
fn trickling(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                _ = stream.read(&mut [0; 1 << 12]);
                _ = stream.write_all(answer.as_bytes());
                while stream.write_all(b"x").is_ok() {
                    thread::sleep(Duration::from_millis(50));
                }
            });
        }
    });
    format!("http://{address}")
}

/// Whether something ends within a time. If not, it goes on beside the other tests.
fn ends_within(seconds: u64, act: impl FnOnce() + Send + 'static) -> bool {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        act();
        _ = done.send(());
    });
    ended.recv_timeout(Duration::from_secs(seconds)).is_ok()
}

#[test]
fn the_body_of_a_redirect_is_not_read() {
    let server = Server::new(jsonl_files(), |_| Fault::None);
    let answer = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 60000\r\n\r\n", server.url("/0.jsonl"));
    let url = trickling(answer.leak());
    let indices = tempfile::tempdir().unwrap();
    let rows = Rows::<Row>::jsonl(format!("{url}/0.jsonl")).index_dir(indices.path());
    assert!(ends_within(10, move || drop(rows.open().unwrap())));
}

#[test]
fn a_date_to_retry_at_is_waited_for() {
    // The server is busy for 20 s, and says so in whole seconds.
    let free = SystemTime::now() + Duration::from_secs(20);
    let server = Server::new(jsonl_files(), move |request| match request.number > 0 && SystemTime::now() < free {
        true => Fault::Answer(
            429,
            format!("Retry-After: {}\r\n", fmt_http_date(free + Duration::from_secs(1))),
            String::new(),
        ),
        false => Fault::None,
    });
    let indices = tempfile::tempdir().unwrap();
    let rows = Rows::<Row>::jsonl(server.url("/0.jsonl")).index_dir(indices.path());
    drop(rows.open().unwrap());
    assert!(server.seen().len() < 10, "{} requests", server.seen().len());
}

#[test]
fn a_proxy_is_for_its_scheme() {
    let server = Server::new(jsonl_files(), |_| Fault::None);
    let set = [("URL_OF_TEST", server.url("/0.jsonl")), ("HTTPS_PROXY", "http://127.0.0.1:1".into())];
    apart("house::reads_plainly", &[(set[0].0, &set[0].1), (set[1].0, &set[1].1)]);
}

#[test]
#[ignore = "a part of `a_proxy_is_for_its_scheme`"]
fn reads_plainly() {
    let indices = tempfile::tempdir().unwrap();
    let rows = Rows::<Row>::jsonl(env::var("URL_OF_TEST").unwrap()).index_dir(indices.path()).open().unwrap();
    assert!(rows.get(1).unwrap().bytes == bytes(1));
}

#[test]
fn a_shard_has_one_index_however_it_is_spelled() {
    let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(Format::Jsonl.open(written.path()));
    for name in ["0.jsonl", "./0.jsonl", "../0.jsonl", "{0..0}.jsonl"] {
        let name = name.replace("../", &format!("../{}/", written.path().file_name().unwrap().to_str().unwrap()));
        drop(Rows::<Row>::jsonl(written.path().join(name)).index_dir(indices.path()).open().unwrap());
    }
    assert_eq!(fs::read_dir(indices.path()).unwrap().count(), 1);
}

#[test]
fn an_object_has_one_index_however_it_is_spelled() {
    let (server, indices) = (Server::new(jsonl_files(), |_| Fault::None), tempfile::tempdir().unwrap());
    let (scheme, host) = ("http://", server.url("/0.jsonl").replace("http://", "").replace("/0.jsonl", ""));
    for url in [
        format!("{scheme}{host}/0.jsonl"),
        format!("HTTP://{host}/0.jsonl"),
        format!("{scheme}me:pass@{host}/0.jsonl"),
        format!("{scheme}{host}/0.jsonl?X-Amz-Signature=one"),
        format!("{scheme}{host}/0.jsonl#end"),
        format!("{scheme}{host}/{{0..0}}.jsonl"),
    ] {
        let rows = Rows::<Row>::jsonl(url.as_str()).index_dir(indices.path()).open().unwrap();
        assert!(rows.get(1).unwrap().bytes == bytes(1));
        assert_eq!(fs::read_dir(indices.path()).unwrap().count(), 1, "{url}");
    }
    // Another object has another one.
    drop(Rows::<Row>::jsonl(server.url("/1.jsonl")).index_dir(indices.path()).open().unwrap());
    assert_eq!(fs::read_dir(indices.path()).unwrap().count(), 2);
}
