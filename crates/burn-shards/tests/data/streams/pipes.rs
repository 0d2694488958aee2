//! The output of commands.
#![cfg(unix)]

use super::texts;
use burn_shards::{DataError, Pipe, PipeError, Rows, for_loader::end_waits_by};
use std::{
    fs,
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

fn lines(command: &str) -> Result<Vec<Result<(u32,), DataError>>, DataError> {
    Ok(Rows::jsonl("net").columns(["n"]).stream_from(Pipe::new(command).unwrap())?.collect())
}

fn failure(error: &DataError) -> &PipeError {
    let DataError::Read { object, source, .. } = error else { panic!("{error}") };
    assert_eq!(object, "net");
    source.get_ref().and_then(|inner| inner.downcast_ref()).unwrap()
}

/// Whether a process of this number is alive. A killed one may stay for a moment.
fn is_gone(process: &str) -> bool {
    let state = || fs::read_to_string(format!("/proc/{}/stat", process.trim()));
    (0..100).any(|_| {
        thread::sleep(Duration::from_millis(1));
        state().map_or(true, |stat| stat.contains(") Z "))
    })
}

#[test]
fn all_that_a_command_writes_is_read() {
    let rows = lines("seq 200000 | sed 's/.*/{\"n\": &}/'").unwrap();
    assert!(rows.into_iter().map(|row| row.unwrap().0).eq(1..=200_000));
    // What it says on the side, however much that is, does not matter.
    let rows = lines("seq 100000 >&2; echo '{\"n\": 1}'").unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(lines("true").unwrap().len(), 0);
    let mut pipe = Pipe::new("printf 12345").unwrap();
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.as_slice(), pipe.read(&mut [0]).unwrap()), (&b"12345"[..], 0));
}

#[test]
fn a_command_that_fails_is_an_error_after_its_bytes() {
    let mut rows = lines("seq 500 | sed 's/.*/{\"n\": &}/'; echo first >&2; echo 'no route' >&2; exit 7").unwrap();
    let error = rows.pop().unwrap().unwrap_err();
    assert!(rows.into_iter().map(|row| row.unwrap().0).eq(1..=500));
    assert_eq!((failure(&error).status.code(), &*failure(&error).last_line), (Some(7), "no route"));
    assert!(error.to_string().contains("no route"), "{error}");

    // At once, by a signal, with a long line, and where it does not exist.
    assert_eq!(failure(&lines("exit 3").unwrap_err()).status.code(), Some(3));
    assert_eq!(failure(&lines("kill -9 $$").unwrap_err()).status.code(), None);
    let error = lines("head -c 100000 /dev/zero | tr '\\0' x >&2; false").unwrap_err();
    assert_eq!(failure(&error).last_line.len(), 1024);
    assert_eq!(failure(&lines("/no/such/command").unwrap_err()).status.code(), Some(127));
}

#[test]
fn a_tar_of_a_command_that_fails_is_not_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = super::tar(folder.path(), "a.tar", &[("1.txt", b"one"), ("2.txt", b"two"), ("3.txt", &[b'x'; 9000])]);
    let read = |bytes: usize| {
        let pipe = Pipe::new(format!("head -c {bytes} {}; exit 22", path.display())).unwrap();
        texts(Rows::<(String,)>::tar("net").columns(["txt"]).stream_from(pipe).unwrap())
    };
    let rows = read(5000);
    assert_eq!(rows[..2], [Ok(("one".into(),)), Ok(("two".into(),))]);
    assert!(rows.len() == 3 && rows[2].as_ref().unwrap_err().contains("exit status: 22"), "{rows:?}");
}

#[test]
fn a_drop_kills_what_the_command_has_started() {
    for reads in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        let mut pipe = Pipe::new(format!("sleep 600 & echo $! > {}; echo; wait; true", own.display())).unwrap();
        if reads {
            pipe.read_exact(&mut [0]).unwrap();
        }
        while fs::read_to_string(&own).map_or(true, |text| !text.ends_with('\n')) {
            thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        drop(pipe);
        assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
        if cfg!(target_os = "linux") {
            assert!(is_gone(&fs::read_to_string(&own).unwrap()));
        }
    }
    // One that writes without end, and that nobody reads.
    let pipe = Pipe::new("yes").unwrap();
    thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    drop(pipe);
    assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
}

/// As a loader ends the waits of its threads.
#[test]
fn a_blocked_read_ends_soon_and_with_it_the_command() {
    let ends = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ends);
    let reader = thread::spawn(move || {
        end_waits_by(flag);
        let rows = Rows::<(u32,)>::jsonl("net").columns(["n"]);
        // The first bytes suffice to begin.
        let pipe = Pipe::new("yes '{\"n\": 1}' | head -n 1000; sleep 600").unwrap();
        let rows = rows.stream_from(pipe).unwrap();
        let last = rows.last().unwrap().unwrap_err();
        (last.to_string(), Instant::now())
    });
    thread::sleep(Duration::from_millis(300));
    assert!(!reader.is_finished());
    let start = Instant::now();
    ends.store(true, SeqCst);
    let (last, end) = reader.join().unwrap();
    assert!(last.contains("nobody needs it any more"), "{last}");
    assert!(end - start < Duration::from_millis(100), "{:?}", end - start);
}
