//! What a store of objects makes of URLs, settings and faults. `tests/clouds` reads from a server that speaks S3.

use super::{url, *};
use crate::{
    error::StoreError,
    store::{
        Store,
        proxies::Proxies,
        server::{Fault, Files, Request, Server, alerting},
        steady::SteadyStore,
        tls,
        traffic::Traffic,
    },
};
use object_store::{
    ClientOptions,
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::time::Duration;
use url::{azure, google, once, s3};

mod listed;
mod slow;

const SECRET: &str = "c2VjcmV0b2Z0ZXN0";
const SIZE: usize = 100_000;

fn content() -> Vec<u8> {
    (0..SIZE).map(|at| (at * 7 % 251) as u8).collect()
}

/// Google's API wants more bytes encoded than the others.
const TARGETS: [&str; 2] = ["/bucket/a/shard%201.bin", "/bucket/a%2Fshard%201%2Ebin"];

fn files() -> Files {
    let idx = |target: &str| (target.replace("bin", "idx"), b"idx".into());
    TARGETS.into_iter().flat_map(|target| [(target.into(), content()), idx(target)]).collect()
}

fn quick() -> Patience {
    Patience { attempts: 3, time: Duration::from_secs(20), pause: Duration::from_millis(1), ..Patience::default() }
}

fn waits() -> Waits {
    let millis = Duration::from_millis;
    Waits { connect: millis(2000), answer: millis(300), bytes: millis(300), ..Waits::default() }
}

/// A bucket at a server.
fn connect(place: &CloudUrl, server: &Server) -> Arc<dyn Bucket> {
    let (connector, url, bucket) = (Connector::new(waits()).unwrap(), server.url(""), place.bucket.as_str());
    let plain = ClientOptions::new().with_allow_http(true);
    match place.scheme.as_str() {
        "s3" => {
            let builder = s3(bucket).with_endpoint(url).with_region("here").with_client_options(plain);
            let builder = builder.with_access_key_id("key-of-test").with_secret_access_key(SECRET);
            Arc::new(builder.with_http_connector(connector).with_retry(once()).build().unwrap())
        }
        "gs" => {
            let builder = google(bucket).with_config(GoogleConfigKey::BaseUrl, url).with_client_options(plain);
            let builder = builder.with_bearer_token(SECRET);
            Arc::new(builder.with_http_connector(connector).with_retry(once()).build().unwrap())
        }
        _ => {
            let builder = azure(bucket).with_account("me").with_endpoint(url).with_client_options(plain);
            let builder = builder.with_access_key(SECRET);
            Arc::new(builder.with_http_connector(connector).with_retry(once()).build().unwrap())
        }
    }
}

fn found(server: &Server, urls: &[&str]) -> Result<(Vec<Object>, Cloud), DataError> {
    let urls: Vec<String> = urls.iter().map(|url| (*url).into()).collect();
    open_with(&urls, |place| Ok(connect(place, server)), waits(), &quick())
}

fn open(server: &Server) -> (SteadyStore<Cloud>, Arc<Traffic>) {
    let (list, cloud) = found(server, &["s3://bucket/a/shard 1.bin"]).unwrap();
    assert_eq!((list[0].bytes, &*list[0].name), (SIZE as u64, "s3://bucket/a/shard 1.bin"));
    let traffic = Arc::<Traffic>::default();
    (SteadyStore::new(cloud, quick(), Arc::clone(&traffic)), traffic)
}

fn read(store: &SteadyStore<Cloud>, start: usize, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    store.read(0, start as u64, &mut bytes).map(|()| bytes)
}

/// A server that does `fault` to some of the requests after the first one, which opens the object.
fn server(fault: Fault, is_struck: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Server {
    Server::new(files(), move |request| match request.number > 0 && is_struck(request) {
        true => fault.clone(),
        false => Fault::None,
    })
}

fn xml(status: u16, code: &str) -> Fault {
    let body = format!("<Error><Code>{code}</Code><AWSAccessKeyId>key-of-test</AWSAccessKeyId></Error>");
    Fault::Answer(status, String::new(), body)
}

/// Without an ETag, a tag is the time of the last change.
#[test]
fn a_tag_identifies_the_bytes_if_there_is_an_etag() {
    let url = "s3://bucket/a/shard 1.bin";
    let is_exact = |server: Server| found(&server, &[url]).unwrap().1.is_exact();
    assert!(is_exact(Server::new(files(), |_| Fault::None)));
    assert!(!is_exact(Server::unmarked(files(), |_| Fault::None)));
}

#[test]
fn each_cloud_is_asked_with_its_own_signature() {
    for (scheme, target, signature) in [
        ("s3", TARGETS[0], "AWS4-HMAC-SHA256 Credential=key-of-test/"),
        ("gs", TARGETS[1], "Bearer "),
        ("az", TARGETS[0], "SharedKey me:"),
    ] {
        let server = Server::new(files(), |_| Fault::None);
        let url = format!("{scheme}://bucket/a/shard 1.bin");
        let (list, cloud) = found(&server, &[&url]).unwrap();
        assert_eq!((list[0].bytes, &*list[0].name), (SIZE as u64, url.as_str()));
        let shown = format!("{list:?} {cloud:?}");
        assert!(!shown.contains(SECRET) && !shown.contains("key-of-test"), "{shown}");
        let store = SteadyStore::new(cloud, quick(), Arc::default());
        assert!(read(&store, 500, 1000).unwrap() == content()[500..1500], "{scheme}");
        assert_eq!(store.beside(0, "idx").unwrap().unwrap(), b"idx");
        assert_eq!(store.beside(0, "none").unwrap(), None);
        let seen = server.seen();
        assert!(seen[0].is_head && seen[1].headers.contains_key("if-match"), "{seen:?}");
        assert_eq!(seen[1].target, target);
        assert!(seen.iter().all(|seen| seen.headers["authorization"].starts_with(signature)), "{seen:?}");
        let connections = 1 + seen.iter().map(|seen| seen.connection).max().unwrap_or(0);
        assert!(connections < seen.len(), "connections are kept: {connections} for {} requests", seen.len());
    }
}

#[test]
fn faults_that_pass_lose_and_double_nothing() {
    let second = Duration::from_secs(1);
    for fault in [
        xml(503, "SlowDown"),
        xml(500, "InternalError"),
        xml(400, "RequestTimeout"),
        Fault::Answer(429, "Retry-After: 0\r\n".into(), String::new()),
        Fault::Cut(0),
        Fault::Cut(777),
        Fault::Reset,
        Fault::Stall(second),
        Fault::Late(second),
    ] {
        let server = server(fault.clone(), |request| request.number % 2 == 1);
        let (store, traffic) = open(&server);
        for start in [0, 5000, 99_000] {
            assert!(read(&store, start, 1000).unwrap() == content()[start..start + 1000], "{fault:?} at {start}");
        }
        assert_eq!(traffic.seen().bytes, 3000, "{fault:?}");
        assert!(traffic.seen().retries >= 3, "{fault:?}: {:?}", traffic.seen());
    }
}

#[test]
fn faults_that_stay_are_told_in_words() {
    for (fault, status, attempts, problem) in [
        (xml(503, "SlowDown"), Some(503), 3, "the server has failed (SlowDown)"),
        (xml(403, "SignatureDoesNotMatch"), Some(403), 1, "access is denied (SignatureDoesNotMatch)"),
        (xml(403, "key of test"), Some(403), 1, "access is denied ("),
        (xml(404, "NoSuchKey"), Some(404), 1, "it is not there (NoSuchKey)"),
        (xml(400, "ExpiredToken"), Some(400), 1, "the store refuses the request (ExpiredToken)"),
        (xml(301, "PermanentRedirect"), Some(301), 1, "it is in another place: is the region right?"),
        (Fault::Cut(0), None, 3, ""),
        (Fault::Reset, None, 3, "127.0.0.1: "),
        (Fault::Late(Duration::from_secs(1)), None, 3, "127.0.0.1 did not answer in time"),
        (Fault::WrongRange, None, 1, "Requested 10..110, got 11..111"),
        (Fault::Whole, None, 1, "non-partial response"),
        (Fault::Changed, Some(412), 1, "it has changed since it was opened"),
        (Fault::Swapped, None, 1, "it has changed since it was opened"),
        (Fault::Longer, Some(412), 1, "it has changed since it was opened"),
    ] {
        let server = server(fault.clone(), |_| true);
        let error = read(&open(&server).0, 10, 100).unwrap_err();
        let told: &StoreError = error.get_ref().and_then(|error| error.downcast_ref()).unwrap();
        assert_eq!((told.status, told.attempts), (status, attempts), "{fault:?}: {error}");
        assert!(error.to_string().contains(problem), "{fault:?}: {error}");
        assert!(!format!("{error:?}").contains("test"), "{error:?}");
    }
}

#[test]
fn a_body_in_another_form_is_no_part() {
    let lines = |start: usize, end: usize, more: &str| {
        format!(
            "Content-Range: bytes {start}-{}/{SIZE}\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n{more}",
            end - 1
        )
    };
    for (more, word) in [
        ("Content-Encoding: gzip\r\n", "Content-Encoding: gzip"),
        ("Content-Encoding: deflate\r\n", "deflate"),
        ("Content-Encoding: br\r\n", "br"),
        ("Content-Type: multipart/byteranges; boundary=x\r\n", "multipart/byteranges"),
    ] {
        let server = server(Fault::Answer(206, lines(10, 110, more), "x".repeat(100)), |_| true);
        let error = read(&open(&server).0, 10, 100).unwrap_err();
        assert!(error.to_string().contains(word) && error.to_string().contains("attempt 1"), "{more}: {error}");
    }
    // Of a HEAD, with which an object is opened.
    let encoded = |coding: &str| {
        let lines = format!("Content-Encoding: {coding}\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n");
        Server::new(files(), move |request| match request.is_head {
            true => Fault::Answer(200, lines.clone(), "x".repeat(SIZE)),
            false => Fault::None,
        })
    };
    let error = found(&encoded("gzip"), &["s3://bucket/a/shard 1.bin"]).unwrap_err().to_string();
    assert!(error.contains("Content-Encoding: gzip") && error.contains("s3://bucket/a/shard 1.bin"), "{error}");
    assert!(found(&encoded("identity"), &["s3://bucket/a/shard 1.bin"]).is_ok());
}

#[test]
fn several_buckets_are_one_list() {
    let files = [("/one/a".into(), b"one".into()), ("/two/a".into(), b"two!".into())].into();
    let server = Server::new(files, |_| Fault::None);
    let (list, cloud) = found(&server, &["s3://two/a", "s3://one/a"]).unwrap();
    assert_eq!(list.iter().map(|object| object.bytes).collect::<Vec<_>>(), [4, 3]);
    let mut bytes = Vec::new();
    cloud.get(1, 0..3).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"one");
    let missing = found(&server, &["s3://two/a", "s3://two/b"]).unwrap_err().to_string();
    assert!(missing.contains("s3://two/b: it is not there (status 404, attempt 1)"), "{missing}");
}

#[test]
fn what_all_objects_lack_is_found_with_the_first_one() {
    let server = Server::new(files(), |_| xml(403, "AccessDenied"));
    let urls: Vec<String> = (0..40).map(|name| format!("s3://bucket/{name}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    assert!(found(&server, &urls).unwrap_err().to_string().contains("s3://bucket/0: access is denied"));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_name_that_cannot_be_read_is_told() {
    let server = Server::new(files(), |_| {
        let object = "<LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>\"a\"</ETag><Size>1</Size>";
        let list = format!("<ListBucketResult><Contents><Key>a//b.tar</Key>{object}</Contents></ListBucketResult>");
        Fault::Answer(200, String::new(), list)
    });
    let told = expand_with("s3://bucket/a/**/*.tar", |place| Ok(connect(place, &server)), &quick());
    let told = told.unwrap_err().to_string();
    assert!(told.contains("a name in this folder cannot be read") && told.contains("a//b.tar"), "{told}");
}

/// A server whose list has three pages of one name. Each page fails at first.
fn listing(link: impl Fn(usize) -> usize + Send + Sync + 'static) -> Server {
    Server::new(Files::new(), move |request| {
        let page = request
            .target
            .split_once("continuation-token=")
            .map_or(0, |(_, rest)| rest.split('&').next().unwrap().parse::<usize>().unwrap());
        if request.number % 2 == 0 {
            return xml(503, "SlowDown");
        }
        let object = "<LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>\"a\"</ETag><Size>1</Size>";
        let next = match link(page) {
            0 => String::new(),
            next => format!("<NextContinuationToken>{next}</NextContinuationToken>"),
        };
        let list = format!("<Contents><Key>a/{page}.tar</Key>{object}</Contents>{next}");
        Fault::Answer(200, String::new(), format!("<ListBucketResult>{list}</ListBucketResult>"))
    })
}

#[test]
fn a_list_goes_on_with_the_page_that_failed() {
    for pattern in ["s3://bucket/a/*.tar", "s3://bucket/a/**/*.tar"] {
        let server = listing(|page| if page < 2 { page + 1 } else { 0 });
        let urls = expand_with(pattern, |place| Ok(connect(place, &server)), &quick()).unwrap();
        assert_eq!(urls, [0, 1, 2].map(|page| format!("s3://bucket/a/{page}.tar")));
        let seen = server.seen();
        let targets: Vec<&str> = seen.iter().map(|request| request.target.as_str()).collect();
        assert!(targets.chunks(2).all(|twice| twice[0] == twice[1]) && targets.len() == 6, "{targets:?}");
        let is_of_folder =
            |target: &&str| target.contains("prefix=a%2F") && target.contains("delimiter") != pattern.contains("**");
        assert!(targets.iter().all(is_of_folder), "{targets:?}");
    }
}

#[test]
fn a_list_without_end_is_an_error() {
    let server = listing(|page| if page < 2 { page + 1 } else { 1 });
    let told = expand_with("s3://bucket/a/*.tar", |place| Ok(connect(place, &server)), &quick()).unwrap_err();
    assert!(told.to_string().contains("a next page that was there before"), "{told}");
}

/// Opens an object over TLS, with these roots.
fn over_tls(url: String, roots: Option<Vec<CertificateDer<'static>>>) -> Result<(Vec<Object>, Cloud), DataError> {
    let connector = Connector::with(waits(), Proxies::default(), roots.map_or_else(tls::roots, Ok)?)?;
    let connect = |place: &CloudUrl| -> Result<Arc<dyn Bucket>, DataError> {
        let builder = s3(&place.bucket).with_endpoint(url.clone()).with_region("here").with_access_key_id("me");
        let builder = builder.with_secret_access_key(SECRET).with_http_connector(connector.clone()).with_retry(once());
        Ok(Arc::new(builder.build().unwrap()))
    };
    open_with(&["s3://bucket/a/shard 1.bin".into()], connect, waits(), &quick())
}

#[test]
fn tls_trusts_the_named_roots_alone() {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(ring::default_provider().into());
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let server = Server::tls(files(), config.with_single_cert(vec![cert.der().clone()], key).unwrap(), |_| Fault::None);
    let (list, cloud) = over_tls(server.url(""), Some(vec![cert.der().clone()])).unwrap();
    assert_eq!(list[0].bytes, SIZE as u64);
    let store = SteadyStore::new(cloud, quick(), Arc::default());
    assert!(read(&store, 500, 1000).unwrap() == content()[500..1500]);
    let error = over_tls(server.url(""), None).unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate") && error.contains("attempt 1"), "{error}");
}

#[test]
fn of_errors_of_tls_those_of_certificates_stay() {
    // An error of the server, and its wish for a certificate of ours.
    for (alert, attempt) in [(80, "attempt 3"), (116, "attempt 1")] {
        let error = over_tls(format!("https://{}", alerting(alert)), None).unwrap_err().to_string();
        assert!(error.contains("alert") && error.contains(attempt), "{error}");
    }
}

#[test]
fn what_is_no_url_is_refused_without_its_text() {
    let place = CloudUrl::parse("az://my-container/a b/c%41.tar").unwrap();
    assert_eq!((&*place.scheme, &*place.bucket, place.key.as_ref()), ("az", "my-container", "a b/c%41.tar"));
    assert_eq!(place.to_string(), "az://my-container/a b/c%41.tar");
    for wrong in ["s3://bucket", "s3://bucket/", "s3://key:secret@bucket/a", "s3:///a", "gs://b/a//c", "gs://b/a/../c"]
    {
        let error = CloudUrl::parse(wrong).unwrap_err().to_string();
        assert!(error.contains("names no ") && !error.contains("secret"), "{error}");
    }
}

#[test]
fn settings_that_make_no_store_are_told_without_secrets() {
    let place = CloudUrl::parse("gs://bucket/a").unwrap();
    let key = GoogleCloudStorageBuilder::new().with_bucket_name("bucket").with_service_account_key("\"topsecret\"");
    let raw = key.build().unwrap_err();
    assert!(raw.to_string().contains("topsecret"), "{raw}");
    let told = place.unusable(&raw).to_string();
    assert!(told.contains("`GOOGLE_..`") && !told.contains("topsecret"), "{told}");
    let none = object_store::azure::MicrosoftAzureBuilder::new().with_container_name("c").build().unwrap_err();
    let told = CloudUrl::parse("az://c/a").unwrap().unusable(&none).to_string();
    assert!(told.contains("`AZURE_..` of the environment: Account must be specified"), "{told}");
}
