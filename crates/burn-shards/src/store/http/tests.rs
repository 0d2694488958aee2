//! What a web store makes of each fault of a server.

use super::*;
use crate::{
    error::StoreError,
    store::{
        Store,
        server::{Fault, Files, Request, Server, alerting},
        steady::SteadyStore,
        stop::STOPPED_WAIT,
        traffic::Traffic,
    },
};
use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

mod slow;

const SIZE: usize = 100_000;

fn content() -> Vec<u8> {
    (0..SIZE).map(|at| (at * 7 % 251) as u8).collect()
}

fn files() -> Files {
    [("/a/shard.bin".into(), content()), ("/empty".into(), Vec::new())].into()
}

pub(crate) fn quick() -> (Waits, Patience) {
    let time = Duration::from_millis;
    let waits = Waits { connect: time(2000), answer: time(300), bytes: time(300), ..Waits::default() };
    (waits, Patience { attempts: 3, time: Duration::from_secs(20), pause: time(1), ..Patience::default() })
}

/// Opens the shard of a server that is good when it is opened.
fn open(server: &Server) -> (SteadyStore<Web>, Arc<Traffic>) {
    let (waits, patience) = quick();
    let (list, web) = super::open(&[server.url("/a/shard.bin")], waits, &patience).unwrap();
    assert_eq!((list[0].bytes, &*list[0].name), (SIZE as u64, server.url("/a/shard.bin").as_str()));
    let traffic = Arc::<Traffic>::default();
    (SteadyStore::new(web, patience, Arc::clone(&traffic)), traffic)
}

/// A server that does `fault` to some of the requests after the first one, which opens the object.
fn server(fault: Fault, is_struck: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Server {
    Server::new(files(), move |request| match request.number > 0 && is_struck(request) {
        true => fault.clone(),
        false => Fault::None,
    })
}

fn read(store: &SteadyStore<Web>, start: usize, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    store.read(0, start as u64, &mut bytes).map(|()| bytes)
}

fn told(error: &io::Error) -> &StoreError {
    error.get_ref().and_then(|error| error.downcast_ref()).unwrap()
}

#[test]
fn faults_that_pass_lose_and_double_nothing() {
    let second = Duration::from_secs(1);
    let busy = |status, lines: &str| Fault::Answer(status, lines.into(), "busy".into());
    for fault in [
        busy(503, "Retry-After: 0\r\n"),
        busy(429, ""),
        busy(500, ""),
        busy(408, ""),
        Fault::Cut(0),
        Fault::Cut(1),
        Fault::Cut(777),
        Fault::Reset,
        Fault::Stall(second),
        Fault::Late(second),
        Fault::WrongLength,
    ] {
        // The wrong length is wrong at each request, but all bytes come.
        let is_always = matches!(fault, Fault::WrongLength);
        let server = server(fault.clone(), move |request| is_always || request.number % 2 == 1);
        let (store, traffic) = open(&server);
        for start in [0, 5000, 99_000] {
            assert!(read(&store, start, 1000).unwrap() == content()[start..start + 1000], "{fault:?} at {start}");
        }
        assert_eq!(traffic.seen().bytes, 3000, "{fault:?}");
        assert!(is_always || traffic.seen().retries >= 3, "{fault:?}: {:?}", traffic.seen());
    }
}

#[test]
fn a_part_goes_on_where_it_was_cut() {
    let server = server(Fault::Cut(300), |_| true);
    let (store, traffic) = open(&server);
    assert!(read(&store, 500, 1000).unwrap() == content()[500..1500]);
    let ranges: Vec<String> = server.seen()[1..].iter().map(|request| request.headers["range"].clone()).collect();
    assert_eq!(ranges, ["bytes=500-1499", "bytes=800-1499", "bytes=1100-1499", "bytes=1400-1499"]);
    assert_eq!((traffic.seen().bytes, traffic.seen().retries), (1000, 3));
}

#[test]
fn faults_that_stay_are_told_in_words() {
    let answer = |status| Fault::Answer(status, String::new(), "<html>".into());
    for (fault, status, attempts, problem) in [
        (answer(503), Some(503), 3, "the server has failed"),
        (answer(429), Some(429), 3, "the server asks to wait"),
        (answer(401), Some(401), 1, "access is denied"),
        (answer(403), Some(403), 1, "access is denied"),
        (answer(404), Some(404), 1, "it is not there"),
        (answer(400), Some(400), 1, "the answer makes no sense here"),
        (answer(302), Some(302), 1, "another place that makes no sense"),
        (Fault::Reset, None, 3, ""),
        (Fault::Cut(0), None, 3, ""),
        (Fault::Late(Duration::from_secs(1)), None, 3, "did not answer in time"),
        (Fault::WrongRange, Some(206), 1, "the server gives bytes 11 to 111 of it instead"),
        (Fault::Whole, Some(200), 1, "the server gives bytes 0 to 100000 of it instead"),
        (Fault::Changed, Some(412), 1, "it has changed since it was opened"),
        (Fault::Swapped, Some(206), 1, "it has changed since it was opened"),
        (Fault::Longer, Some(412), 1, "it has changed since it was opened"),
    ] {
        let server = server(fault.clone(), |_| true);
        let error = read(&open(&server).0, 10, 100).unwrap_err();
        let told = told(&error);
        assert_eq!((told.status, told.attempts), (status, attempts), "{fault:?}: {error}");
        assert!(error.to_string().contains(problem), "{fault:?}: {error}");
    }
}

/// Headers that tell of a body that is no bytes of the object, and a word of the error.
const OTHER_FORMS: [(&str, &str); 9] = [
    ("Content-Encoding: gzip\r\n", "Content-Encoding: gzip"),
    ("content-encoding: GZIP\r\n", "Content-Encoding: GZIP"),
    ("Content-Encoding: x-gzip\r\n", "x-gzip"),
    ("Content-Encoding: deflate\r\n", "deflate"),
    ("Content-Encoding: br\r\n", "br"),
    ("Content-Encoding: zstd\r\n", "zstd"),
    ("Content-Encoding: identity, gzip\r\n", "gzip"),
    ("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", "gzip"),
    ("Content-Type: multipart/byteranges; boundary=x\r\n", "multipart/byteranges"),
];

#[test]
fn a_body_in_another_form_is_no_part() {
    let answer = |range: &str, lines: &str, body: String| {
        Fault::Answer(206, format!("Content-Range: bytes {range}/{SIZE}\r\n{lines}"), body)
    };
    for (lines, word) in OTHER_FORMS {
        let faulty = server(answer("10-109", lines, "x".repeat(100)), |_| true);
        let error = read(&open(&faulty).0, 10, 100).unwrap_err();
        assert_eq!((told(&error).status, told(&error).attempts), (Some(206), 1), "{lines}: {error}");
        assert!(error.to_string().contains(word), "{lines}: {error}");
        // Of a whole object too, and when it is opened.
        let (waits, patience) = quick();
        for first in [answer("0-0", lines, "x".into()), Fault::Answer(200, lines.into(), "x".into())] {
            let is_whole = matches!(first, Fault::Answer(200, ..));
            let server = Server::new(files(), move |_| first.clone());
            let error = super::open(&[server.url("/a/shard.bin")], waits, &patience).unwrap_err().to_string();
            assert!(error.contains("/a/shard.bin"), "{lines}: {error}");
            assert!(error.contains(word) || is_whole && word.starts_with("multi"), "{lines}: {error}");
        }
        // And of a small object beside it.
        let lines = lines.to_owned();
        let beside = Server::new(files(), move |request| match request.target.ends_with("idx") {
            true => Fault::Answer(200, lines.clone(), "v1.2 1".into()),
            false => Fault::None,
        });
        let (_, web) = super::open(&[beside.url("/a/shard.bin")], waits, &patience).unwrap();
        assert!(web.beside(0, "idx").is_err() || word.starts_with("multi"), "{word}");
    }
    for lines in ["Content-Encoding: identity\r\n", "Content-Encoding: \r\n", "Content-Encoding: aws-chunked\r\n"] {
        let body = "y".repeat(100);
        let server = server(answer("10-109", lines, body.clone()), |_| true);
        assert_eq!(read(&open(&server).0, 10, 100).unwrap(), body.as_bytes(), "{lines}");
    }
}

#[test]
fn a_change_is_found_without_a_mark_if_the_size_changes() {
    let change = |fault: Fault| move |request: &Request| if request.number > 0 { fault.clone() } else { Fault::None };
    let server = Server::unmarked(files(), change(Fault::Longer));
    let error = read(&open(&server).0, 10, 100).unwrap_err();
    assert_eq!(error.to_string(), "it has changed since it was opened (status 206, attempt 1)");
    // Nothing can tell of this one.
    let server = Server::unmarked(files(), change(Fault::Changed));
    assert!(read(&open(&server).0, 10, 100).is_ok());
}

#[test]
fn versions_are_told_apart_by_what_both_answers_have() {
    let (etag, modified) = (HeaderValue::from_static("\"a\""), HeaderValue::from_static("Mon"));
    let target = RequestUrl::new("http://h/a").unwrap();
    let old = WebObject { target, bytes: 1, etag: Some(etag), modified: Some(modified) };
    for (etag, time, fits) in [
        (Some("\"a\""), Some("Tue"), true), // a copy on another machine
        (Some("\"b\""), Some("Mon"), false),
        (None, Some("Mon"), true),
        (None, Some("Tue"), false),
        (None, None, true),
    ] {
        let marks = [(header::ETAG, etag), (header::LAST_MODIFIED, time)];
        let marks = marks.into_iter().filter_map(|(name, mark)| Some((name, HeaderValue::from_static(mark?))));
        let new: HeaderMap = marks.collect();
        assert_eq!(old.is_same_version(&new), fits, "{new:?}");
    }
}

#[test]
fn a_stall_ends() {
    let server = server(Fault::Stall(Duration::from_secs(30)), |request| request.number == 1);
    let (store, _) = open(&server);
    let begun = Instant::now();
    assert!(read(&store, 0, SIZE).unwrap() == content());
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[test]
fn connections_are_used_again() {
    let server = server(Fault::None, |_| true);
    let (store, _) = open(&server);
    for start in 0..50 {
        read(&store, start * 1000, 1000).unwrap();
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 51);
    assert_eq!(seen.iter().map(|request| request.connection).max(), Some(0), "one connection is enough");
    thread::scope(|scope| (0..16).for_each(|_| _ = scope.spawn(|| read(&store, 7, 10).unwrap())));
    assert!(server.seen().iter().all(|request| request.connection < 17));
}

#[test]
fn what_cannot_be_read_is_refused_by_open() {
    let opened = |server: &Server, path: &str| {
        let (waits, patience) = quick();
        super::open(&[server.url(path)], waits, &patience)
            .map(|(list, _)| list[0].bytes)
            .map_err(|error| error.to_string())
    };
    let good = Server::new(files(), |_| Fault::None);
    assert_eq!(opened(&good, "/empty"), Ok(0));
    // As S3 says it.
    let empty = Server::new(files(), |_| Fault::Answer(416, String::new(), "<Error/>".into()));
    assert_eq!(opened(&empty, "/empty"), Ok(0));
    let missing = opened(&good, "/a/other.bin").unwrap_err();
    assert!(missing.contains("/a/other.bin: it is not there (status 404, attempt 1)"), "{missing}");
    let whole = opened(&Server::new(files(), |_| Fault::Whole), "/a/shard.bin").unwrap_err();
    assert!(whole.contains("the server gives whole objects only"), "{whole}");
    let busy = Server::new(files(), |_| Fault::Answer(503, String::new(), String::new()));
    assert!(opened(&busy, "/empty").unwrap_err().contains("(status 503, attempt 3)"));
    let (waits, patience) = quick();
    let closed = super::open(&["http://127.0.0.1:1/a".into()], waits, &patience).unwrap_err().to_string();
    assert!(closed.contains("http://127.0.0.1:1/a") && closed.contains("attempt 3"), "{closed}");
    assert!(expand("https://[::1]/a?b=*").is_ok());
    assert!(expand("https://me:pass@host/*.tar").unwrap_err().to_string().contains("`https://host/*.tar`"));
}

#[test]
fn of_errors_of_tls_those_of_certificates_stay() {
    // An error of the server, and its wish for a certificate of ours.
    for (alert, attempt) in [(80, "attempt 3"), (116, "attempt 1")] {
        let (waits, patience) = quick();
        let error = super::open(&[format!("https://{}/a", alerting(alert))], waits, &patience).unwrap_err().to_string();
        assert!(error.contains("alert") && error.contains(attempt), "{error}");
    }
}

#[test]
fn objects_that_differ_in_their_query_alone_are_not_taken_for_each_other() {
    let mark = "Content-Range: bytes 0-0/1\r\nETag: \"same\"\r\n";
    let server = Server::new(Files::new(), move |_| Fault::Answer(206, mark.into(), "a".into()));
    let urls: Vec<String> = [
        "id=1",
        "id=2",
        "id=1&X-Amz-Date=1&X-Amz-Signature=secret",
        "X-Amz-Signature=s&id=1&x-amz-security-token=secret",
        "id=1&Expires=7&Signature=secret&Key-Pair-Id=k",
        "id=1&sv=2&se=7&sig=secret",
        // Without a signature, these names are no part of one.
        "id=1&se=7",
        "id=1&se=8",
    ]
    .map(|query| server.url(&format!("/get?{query}")))
    .into();
    let (waits, patience) = quick();
    let (list, _) = super::open(&urls, waits, &patience).unwrap();
    assert!(list.iter().all(|object| *object.name == server.url("/get?..")), "{list:?}");
    let tags: Vec<u64> = list.iter().map(|object| object.tag).collect();
    assert!(tags[2..6].iter().all(|tag| *tag == tags[0]), "a new signature keeps the tag: {tags:?}");
    let others = [tags[0], tags[1], tags[6], tags[7]].into_iter().collect::<std::collections::HashSet<_>>();
    assert_eq!(others.len(), 4, "{tags:?}");
}

#[test]
fn passwords_are_sent_to_the_server_alone() {
    let other = Server::new(files(), |_| Fault::None);
    let place = other.url("/a/shard.bin?Signature=topsecret");
    let server = Server::new(Files::new(), move |request| match request.target.as_str() {
        "/moved?key=hidden" => Fault::Answer(302, "Location: /again\r\n".into(), String::new()),
        "/again" => Fault::Answer(307, format!("Location: {place}\r\n"), "gone".into()),
        _ => Fault::None,
    });
    let url = server.url("/moved?key=hidden").replace("http://", "http://me:pass@");
    let (waits, patience) = quick();
    let (list, web) = super::open(&[url], waits, &patience).unwrap();
    assert_eq!(&*list[0].name, server.url("/moved?.."));
    let shown = format!("{list:?} {web:?}");
    assert!(["hidden", "pass", "topsecret", "bWU6cGFzcw"].iter().all(|word| !shown.contains(word)), "{shown}");
    let store = SteadyStore::new(web, patience, Arc::default());
    assert!(read(&store, 100, 50).unwrap() == content()[100..150]);
    let sent = |server: &Server| server.seen().iter().filter(|seen| seen.headers.contains_key("authorization")).count();
    assert_eq!((sent(&server), server.seen().len()), (4, 4), "both places of this server");
    assert_eq!((sent(&other), other.seen().len()), (0, 2));
    drop(other);
    let error = read(&store, 0, 1).unwrap_err().to_string();
    assert!(["hidden", "pass", "topsecret"].iter().all(|word| !error.contains(word)), "{error}");
}
