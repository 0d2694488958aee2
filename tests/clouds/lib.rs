//! Data sets in buckets of a server that speaks S3. The settings are in the environment, so each test has a process of
//! its own for what it reads.

#![cfg(test)]

mod server;

use burn::data::dataset::Dataset;
use burn_pinned::data::{DataError, Paths, Rows, RowsBuilder, StoreError};
use burn_pinned_made::{any::Any, golden::golden};
use bytes::Bytes;
use log::{LevelFilter, Log, Metadata, Record};
use serde::de::DeserializeOwned;
use server::{KEY, SECRET, Server};
use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Debug,
    fs,
    path::PathBuf,
    process::{self, Command},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

type Row = BTreeMap<String, Any>;

fn settings(server: &Server) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL", server.endpoint()),
        ("AWS_ALLOW_HTTP", "true".into()),
        ("AWS_REGION", "us-east-1".into()),
        ("AWS_ACCESS_KEY_ID", KEY.into()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.into()),
    ]
}

/// Runs a test of this file in a process of its own, with these settings, and returns what it prints.
fn apart(test: &str, settings: &[(&'static str, String)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    command.env("XDG_CACHE_HOME", folder.path()).envs(settings.iter().map(|(name, text)| (*name, text)));
    let output = command.args(["--exact", test, "--ignored", "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert!([KEY, SECRET].iter().all(|secret| !text.contains(secret)), "{text}");
    text
}

/// Prints what is logged.
struct Printed;

impl Log for Printed {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        eprintln!("{} {} {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

fn print_logs() {
    log::set_logger(&Printed).unwrap();
    log::set_max_level(LevelFilter::Trace);
}

/// Checks that all rows of a bucket are those of the disk.
fn check<R>(open: impl Fn(Paths) -> RowsBuilder<R>, name: &str)
where
    R: DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let cache = tempfile::tempdir().unwrap();
    let read = |paths: Paths, index: &str| -> Vec<R> {
        let rows = open(paths).index_dir(cache.path().join(index)).cache(cache.path().join(index), 10 << 20).open();
        let rows = rows.unwrap_or_else(|error| panic!("{name}: {error}"));
        (0..rows.len()).map(|row| rows.get(row).unwrap_or_else(|error| panic!("{name}, {row}: {error}"))).collect()
    };
    let here = read(golden("").join(name).into(), "here");
    let there = read(format!("s3://golden/{name}").into(), "there");
    assert!(here == there && !here.is_empty(), "{name}: {} and {} rows", here.len(), there.len());
}

#[test]
fn rows_of_a_bucket_are_those_of_the_disk() {
    let server = Server::start();
    server.put("golden", &golden(""));
    let printed = apart("reads_every_format", &settings(&server));
    assert!(printed.contains("TRACE"), "{printed}");
}

#[test]
#[ignore = "a part of `rows_of_a_bucket_are_those_of_the_disk`"]
fn reads_every_format() {
    print_logs();
    for name in ["train-*.tar", "train-{000000..000001}.tar", "pax.tar"] {
        check::<BTreeMap<String, Bytes>>(Rows::tar, &format!("tar/{name}"));
    }
    for name in ["plain", "zstd", "merged"] {
        check::<Row>(Rows::mds, &format!("mds/{name}"));
    }
    for name in ["lf.jsonl", "p*.jsonl"] {
        check::<Row>(Rows::jsonl, &format!("jsonl/{name}"));
    }
    for name in ["numbers/{direct,pages,chunks}-?.parquet", "*/hub-*.parquet", "**/zstd_v[0-9].parquet"] {
        check::<Row>(Rows::parquet, name);
    }
}

/// A file of JSON lines with numbers.
fn lines(rows: impl IntoIterator<Item = usize>) -> String {
    rows.into_iter().map(|row| format!("{{\"row\": {row}}}\n")).collect()
}

/// The rows of numbers that a pattern means.
fn numbers(pattern: &str) -> Result<Vec<usize>, DataError> {
    #[derive(Debug, Clone, serde::Deserialize)]
    struct Number {
        row: usize,
    }
    let index = tempfile::tempdir().unwrap();
    let rows = Rows::<Number>::jsonl(pattern).index_dir(index.path()).open()?;
    Ok((0..rows.len()).map(|row| rows.get(row).unwrap().row).collect())
}

#[test]
fn patterns_mean_objects_in_the_order_of_their_names() {
    let server = Server::start();
    for (number, name) in ["b-2", "b-1", ".b-0", "odd name+%41", "deep/b-3", "deep/er/b-4"].into_iter().enumerate() {
        let file = server.bucket("one").join(format!("{name}.jsonl"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, lines([number])).unwrap();
    }
    fs::create_dir_all(server.bucket("two")).unwrap();
    fs::write(server.bucket("two").join("x.jsonl"), lines([9])).unwrap();
    // More than one page of a list.
    fs::create_dir_all(server.bucket("many")).unwrap();
    (0..1100).for_each(|row| fs::write(server.bucket("many").join(format!("{row:04}.jsonl")), lines([row])).unwrap());
    apart("lists", &settings(&server));
}

#[test]
#[ignore = "a part of `patterns_mean_objects_in_the_order_of_their_names`"]
fn lists() {
    print_logs();
    for (pattern, rows) in [
        ("s3://one/b-*.jsonl", &[1, 0][..]),
        ("s3://one/b-[2-9].jsonl", &[0]),
        ("s3://one/*.jsonl", &[2, 1, 0, 3]),
        ("s3://one/*/b-?.jsonl", &[4]),
        ("s3://one/deep/**/*.jsonl", &[4, 5]),
        ("s3://one/odd name+%41.jsonl", &[3]),
        ("s3://{one/b-1,two/x}.jsonl", &[1, 9]),
    ] {
        assert_eq!(numbers(pattern).unwrap(), rows, "{pattern}");
    }
    assert_eq!(numbers("s3://many/*.jsonl").unwrap(), (0..1100).collect::<Vec<_>>());
    let none = numbers("s3://one/c*.jsonl").unwrap_err();
    assert!(matches!(&none, DataError::NoFiles { pattern } if pattern == "s3://one/c*.jsonl"), "{none}");
    let bucket = numbers("s3://none/*.jsonl").unwrap_err().to_string();
    assert!(bucket.contains("s3://none/*.jsonl: it is not there (NoSuchBucket) (status 404, attempt 1)"), "{bucket}");
    let missing = numbers("s3://one/b-7.jsonl").unwrap_err().to_string();
    assert!(missing.contains("s3://one/b-7.jsonl: it is not there (status 404, attempt 1)"), "{missing}");
    let wrong = numbers(&format!("s3://{KEY}:{SECRET}@one/b.jsonl")).unwrap_err().to_string();
    assert!(wrong.contains("names no bucket"), "{wrong}");
    eprintln!("{:?}", Paths::from(format!("s3://{KEY}:secret@one/b.jsonl")));
}

#[test]
fn a_wrong_secret_is_in_no_error() {
    let server = Server::start();
    server.put("golden", &golden(""));
    let mut wrong = settings(&server);
    wrong[4].1 = "wrong/secret".into();
    let printed = apart("is_denied", &wrong);
    assert!(!printed.contains("wrong/secret"), "{printed}");
    let mut half = settings(&server);
    half.pop();
    apart("has_no_secret", &half);
    let mut plain = settings(&server);
    plain.remove(1);
    apart("has_no_tls", &plain);
}

#[test]
#[ignore = "a part of `a_wrong_secret_is_in_no_error`"]
fn is_denied() {
    print_logs();
    let error = numbers("s3://golden/jsonl/lf.jsonl").unwrap_err();
    eprintln!("{error} {error:?}");
    assert!(error.to_string().contains("lf.jsonl: access is denied (status 403, attempt 1)"), "{error}");
    let error = numbers("s3://golden/jsonl/*.jsonl").unwrap_err();
    eprintln!("{error} {error:?}");
    let told = "s3://golden/jsonl/*.jsonl: access is denied (SignatureDoesNotMatch) (status 403, attempt 1)";
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
#[ignore = "a part of `a_wrong_secret_is_in_no_error`"]
fn has_no_secret() {
    let error = numbers("s3://golden/jsonl/lf.jsonl").unwrap_err();
    eprintln!("{error} {error:?}");
    assert!(
        error.to_string().contains("the variables `AWS_..` of the environment: Missing SecretAccessKey"),
        "{error}"
    );
}

#[test]
#[ignore = "a part of `a_wrong_secret_is_in_no_error`"]
fn has_no_tls() {
    let error = numbers("s3://golden/jsonl/lf.jsonl").unwrap_err().to_string();
    assert!(error.contains("plain HTTP is not allowed: set `AWS_ALLOW_HTTP=true`"), "{error}");
}

#[test]
fn an_object_that_changes_is_an_error() {
    let server = Server::start();
    fs::create_dir_all(server.bucket("one")).unwrap();
    let mut with_file = settings(&server);
    with_file.push(("FILE_OF_TEST", server.bucket("one").join("a.jsonl").to_str().unwrap().into()));
    apart("reads_while_it_changes", &with_file);
}

#[test]
#[ignore = "a part of `an_object_that_changes_is_an_error`"]
fn reads_while_it_changes() {
    let file = PathBuf::from(env::var_os("FILE_OF_TEST").unwrap());
    let (index, old) = (tempfile::tempdir().unwrap(), lines(100..200));
    fs::write(&file, &old).unwrap();
    let open = || Rows::<Row>::jsonl("s3://one/a.jsonl").index_dir(index.path()).open().unwrap();
    let rows = open();
    assert_eq!((rows.len(), rows.get(5).unwrap()["row"].0.as_u64()), (100, Some(105)));
    // As long as before, and longer.
    for new in [lines(200..300), lines(100..300)] {
        fs::write(&file, &new).unwrap();
        let error = rows.get(6).unwrap_err();
        let told = error.source().and_then(store_error).unwrap_or_else(|| panic!("{error:?}"));
        assert_eq!((told.problem.as_str(), told.attempts), ("it has changed since it was opened", 1), "{error}");
        assert!(error.to_string().contains("of s3://one/a.jsonl: it has changed"), "{error}");
    }
    assert_eq!(open().len(), 200, "the index is made again");
    fs::remove_file(&file).unwrap();
    let error = rows.get(6).unwrap_err().to_string();
    assert!(error.contains("it is not there (NoSuchKey) (status 404, attempt 1)"), "{error}");
}

fn store_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a StoreError> {
    match error.downcast_ref()? {
        DataError::Read { source, .. } => source.get_ref()?.downcast_ref(),
        _ => None,
    }
}

#[test]
fn a_bucket_is_read_inside_a_runtime_too() {
    let server = Server::start();
    server.put("golden", &golden(""));
    apart("reads_inside_a_runtime", &settings(&server));
}

#[test]
#[ignore = "a part of `a_bucket_is_read_inside_a_runtime_too`"]
fn reads_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { check::<Row>(Rows::jsonl, "jsonl/lf.jsonl") });
    // A runtime lets a task poll its sockets only so often before it must give way, which a thread that waits never does.
    let (done, ends) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if ends.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a read inside a runtime hangs");
            process::abort();
        }
    });
    let index = tempfile::tempdir().unwrap();
    let rows = Rows::<Row>::jsonl("s3://golden/jsonl/lf.jsonl").index_dir(index.path()).read_ahead(0).open().unwrap();
    runtime.block_on(async { (0..300).for_each(|read| _ = rows.get(read % rows.len()).unwrap()) });
    assert!(rows.fetched().unwrap().requests >= 300);
    drop(done);
    watchdog.join().unwrap();
    assert!(rustls::crypto::CryptoProvider::get_default().is_none(), "nothing is installed for the process");
}
