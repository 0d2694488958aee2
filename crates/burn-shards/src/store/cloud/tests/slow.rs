//! What comes too slowly, or not at all, is not waited for without an end.

use super::*;
use crate::store::stop::STOPPED_WAIT;
use std::{
    thread,
    time::{Duration, Instant},
};

fn trickle(status: u16, lines: &str) -> Fault {
    let head = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nETag: \"a\"\r\n";
    Fault::Trickle(status, format!("{head}{lines}"), 60_000)
}

fn soon<T>(act: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = act();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    done
}

#[test]
fn what_trickles_is_an_error() {
    let server = Server::unmarked(files(), move |request| match request.is_head {
        true => Fault::Answer(
            200,
            "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nETag: \"a\"\r\n".into(),
            "x".repeat(SIZE),
        ),
        false if request.target.contains("idx") => trickle(200, ""),
        false => trickle(206, "Content-Range: bytes 0-59999/100000\r\n"),
    });
    let (_, cloud) = found(&server, &["s3://bucket/a/shard 1.bin"]).unwrap();
    let read = || cloud.get(0, 0..60_000).unwrap().read_exact(&mut [0; 60_000]).unwrap_err().to_string();
    let beside = || cloud.beside(0, "idx").unwrap_err().to_string();
    for error in [soon(read), soon(beside)] {
        assert_eq!(error, "less than 8192 bytes a second came");
    }
}

#[test]
fn lists_and_errors_that_trickle_end() {
    for (status, problem) in [(200, "bytes a second came"), (503, "the server has failed")] {
        let server = Server::new(files(), move |_| trickle(status, ""));
        let connect = |place: &CloudUrl| Ok(connect(place, &server));
        let list = || expand_with("s3://bucket/a/*.tar", connect, &quick());
        let error = soon(list).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_stop_ends_a_request() {
    for fault in [Fault::Late(Duration::from_secs(5)), Fault::Stall(Duration::from_secs(5))] {
        let (server, stop) = (server(fault, |_| true), Stop::default());
        let connect = |place: &CloudUrl| Ok(connect(place, &server));
        let urls = ["s3://bucket/a/shard 1.bin".into()];
        let (_, cloud) = open_with(&urls, connect, waits(), &Patience { stop: stop.clone(), ..quick() }).unwrap();
        let reader = thread::spawn(move || {
            let mut body = cloud.get(0, 0..1000).map_err(|refused| refused.problem)?;
            body.read_exact(&mut [0; 1000]).map_err(|error| error.to_string())
        });
        thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        stop.stop();
        let error = reader.join().unwrap().unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(2) && error.contains(STOPPED_WAIT), "{error}");
    }
}
