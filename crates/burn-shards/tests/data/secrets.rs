//! What is logged has no secret of a URL.

use crate::{
    apart::apart,
    formats::{Format, Row, bytes, files},
    server::{Fault, SECRET, Server},
};
use burn::data::dataset::Dataset;
use burn_shards::Rows;
use log::{LevelFilter, Log, Metadata, Record};
use std::sync::Mutex;

/// Keeps all that is logged. Of what goes over a connection, the HTTP crate logs 16 bytes a line.
struct All {
    told: Mutex<String>,
    wire: Mutex<String>,
}

static ALL: All = All { told: Mutex::new(String::new()), wire: Mutex::new(String::new()) };

impl Log for All {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        match record.target() {
            "ureq_proto::util" => self.wire.lock().unwrap().push_str(&text[text.len() - 16..]),
            _ => self.told.lock().unwrap().push_str(&text),
        }
    }

    fn flush(&self) {}
}

#[test]
fn no_level_of_the_log_has_a_secret() {
    apart("secrets::logs_all", &[]);
}

#[test]
#[ignore = "a part of `no_level_of_the_log_has_a_secret`"]
fn logs_all() {
    log::set_logger(&ALL).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server =
        Server::new(files(Format::Jsonl, written.path()), |request| match request.target.starts_with("/moved") {
            true => Fault::Answer(302, format!("Location: /0.jsonl?sig={SECRET}&moved\r\n"), String::new()),
            false => Fault::None,
        });
    for path in ["/0.jsonl", "/moved"] {
        let url = server.url(&format!("{path}?sig={SECRET}")).replace("http://", &format!("http://me:{SECRET}@"));
        let rows = Rows::<Row>::jsonl(url).index_dir(indices.path()).open().unwrap();
        assert!(rows.get(1).unwrap().bytes == bytes(1));
    }
    let (told, wire) = (ALL.told.lock().unwrap().clone(), ALL.wire.lock().unwrap().clone());
    assert!(wire.contains("GET./0.jsonl.HTTP") && wire.contains("206.Told"), "{wire}");
    for text in [told, wire] {
        assert!(!text.contains(SECRET) && !text.contains("bWU6dmVye"), "{text}");
    }
    // They were sent.
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.headers.contains_key("authorization") && seen.target.contains(SECRET)));
    assert!(seen.iter().any(|seen| seen.target.ends_with("&moved")));
}
