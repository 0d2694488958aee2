//! What a pattern makes of the lists of a bucket.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A page of a list, with names and sizes.
fn page(objects: &[(&str, usize)], next: Option<&str>) -> Fault {
    let object = |(key, size): &(&str, usize)| {
        let when = "<LastModified>2015-10-21T07:28:00.000Z</LastModified>";
        format!("<Contents><Key>{key}</Key>{when}<ETag>\"a\"</ETag><Size>{size}</Size></Contents>")
    };
    let next = next.map_or_else(String::new, |next| {
        format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>")
    });
    let all: String = objects.iter().map(object).collect();
    Fault::Answer(200, String::new(), format!("<ListBucketResult>{next}{all}</ListBucketResult>"))
}

fn listed(server: &Server, pattern: &str) -> Result<Vec<String>, DataError> {
    expand_with(pattern, |place| Ok(connect(place, server)), &quick())
}

#[test]
fn folders_that_tools_mark_are_no_objects() {
    let files = [("/bucket/a/empty.tar".into(), Vec::new())].into();
    let server = Server::new(files, |request| match request.is_head {
        true => Fault::None,
        false => page(
            &[("a/", 0), ("a/b/", 0), ("a/b_$folder$", 0), ("a/b/c.tar", 1), ("a/d.tar/", 0), ("a/empty.tar", 0)],
            None,
        ),
    });
    assert_eq!(listed(&server, "s3://bucket/a/**").unwrap(), ["s3://bucket/a/b/c.tar", "s3://bucket/a/empty.tar"]);
    assert!(server.seen().iter().all(|seen| !seen.target.contains("delimiter")), "what is in folders is listed too");
    assert_eq!(listed(&server, "s3://bucket/**/*.tar").unwrap(), ["s3://bucket/a/b/c.tar", "s3://bucket/a/empty.tar"]);
    let none = Server::new(Files::new(), |request| match request.is_head {
        true => Fault::None,
        false => page(&[("a/b/", 0)], None),
    });
    assert!(matches!(listed(&none, "s3://bucket/a/*"), Err(DataError::NoFiles { .. })));
}

#[test]
fn azure_says_what_is_a_folder() {
    let head = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nETag: \"a\"\r\n";
    let server = Server::new(Files::new(), move |request| {
        let mark = if request.target.contains("folder") { "x-ms-meta-hdi_isfolder: true\r\n" } else { "" };
        Fault::Answer(200, format!("{head}{mark}"), String::new())
    });
    let thread = CloudThread::start(Stop::default()).unwrap();
    for (key, is) in [("folder", true), ("empty.tar", false)] {
        let place = CloudUrl::parse(&format!("az://bucket/{key}")).unwrap();
        let store = connect(&place, &server);
        let meta = ask(&thread, store.head(&place.key)).unwrap();
        assert_eq!((meta.size, marks_folder(&thread, &*store, &meta).unwrap()), (0, is), "{key}");
    }
}

#[test]
fn a_long_list_repeats_a_page_that_failed() {
    let failures = AtomicUsize::new(2);
    let server = Server::new(Files::new(), move |request| match request.target.contains("continuation-token=two") {
        false => page(&[("a/1.tar", 1)], Some("two")),
        true if failures.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() => xml(503, "SlowDown"),
        true => page(&[("a/2.tar", 1)], None),
    });
    assert_eq!(listed(&server, "s3://bucket/a/*.tar").unwrap(), ["s3://bucket/a/1.tar", "s3://bucket/a/2.tar"]);
    assert_eq!(server.seen().len(), 4, "the first page is asked for once");
}

#[test]
fn an_object_without_bytes_is_read() {
    let files = ["/bucket/a.tar", "/bucket/a.idx"].map(|name| (name.into(), Vec::new())).into();
    let server = Server::new(files, |_| Fault::None);
    let (list, cloud) = found(&server, &["s3://bucket/a.tar"]).unwrap();
    assert_eq!(list[0].bytes, 0);
    let store = SteadyStore::new(cloud, quick(), Arc::default());
    assert!(read(&store, 0, 0).unwrap().is_empty());
    assert_eq!(store.beside(0, "idx").unwrap(), Some(Vec::new()));
}
