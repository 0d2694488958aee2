//! What comes too slowly, or not at all, is not waited for without an end.

use super::*;
use crate::store::stop::Stop;

/// Answers come at 50 bytes a second.
fn slow() -> (Waits, Patience) {
    let (waits, patience) = quick();
    (Waits { least: 1000, ..waits }, Patience { attempts: 2, ..patience })
}

fn trickle(status: u16, lines: &str) -> Fault {
    Fault::Trickle(status, lines.into(), 60_000)
}

fn soon<T>(act: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = act();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    done
}

#[test]
fn what_trickles_is_an_error() {
    let part = "Content-Range: bytes 0-59999/100000\r\n";
    let server = Server::new(files(), move |request| match request.target.as_str() {
        "/a/shard.idx" => trickle(200, ""),
        "/a/shard.bin" if request.number > 0 => trickle(206, part),
        _ => Fault::None,
    });
    let (waits, patience) = slow();
    let (_, web) = crate::store::http::open(&[server.url("/a/shard.bin")], waits, &patience).unwrap();
    let read = || web.get(0, 0..60_000).unwrap().read_exact(&mut [0; 60_000]).unwrap_err().to_string();
    let beside = || web.beside(0, "idx").unwrap_err().to_string();
    for error in [soon(read), soon(beside)] {
        assert_eq!(error, "less than 1000 bytes a second came");
    }
}

#[test]
fn bodies_that_tell_nothing_are_not_read() {
    let server = Server::new(files(), move |request| match request.target.as_str() {
        "/moved" => trickle(302, "Location: /a/shard.bin\r\n"),
        "/gone" => trickle(404, ""),
        _ => Fault::None,
    });
    let (waits, patience) = slow();
    let open = |path: &str| soon(|| crate::store::http::open(&[server.url(path)], waits, &patience).map(drop));
    open("/moved").unwrap();
    assert!(open("/gone").unwrap_err().to_string().contains("it is not there"));
}

#[test]
fn a_stop_ends_a_request() {
    let late = Fault::Late(Duration::from_secs(5));
    let stalls = Fault::Stall(Duration::from_secs(5));
    for fault in [late, stalls] {
        let server = server(fault, |_| true);
        let stop = Stop::default();
        let patience = Patience { stop: stop.clone(), ..quick().1 };
        let (_, web) = crate::store::http::open(&[server.url("/a/shard.bin")], Waits::default(), &patience).unwrap();
        let reader = thread::spawn(move || {
            let mut body = web.get(0, 0..1000).map_err(|refused| refused.problem)?;
            body.read_exact(&mut [0; 1000]).map_err(|error| error.to_string())
        });
        thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        stop.stop();
        let error = reader.join().unwrap().unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(2) && error.contains(STOPPED_WAIT), "{error}");
    }
}
