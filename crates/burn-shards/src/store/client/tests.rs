//! What goes through a proxy, and what a failure means.

use super::*;
use crate::store::server::{Fault, Files, Server};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

const SECRETS: &str = "me:topsecret@";

/// A proxy of HTTP for one connection. It tells the head that it gets, and connects to a server.
fn proxy(to: String) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://name:pass@{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let mut server = TcpStream::connect(to).unwrap();
        match head.starts_with(b"CONNECT ") {
            true => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap(),
            false => server.write_all(&head).unwrap(),
        }
        tell.send(String::from_utf8(head).unwrap()).unwrap();
        let (mut from, mut into) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || io::copy(&mut from, &mut into));
        _ = io::copy(&mut client, &mut server);
    });
    (url, told)
}

fn files() -> Files {
    [("/a".into(), b"bytes".to_vec())].into()
}

/// Asks for an object through a proxy, and returns the head that the proxy got.
fn head_at_proxy(server: &Server, roots: Vec<CertificateDer<'static>>) -> String {
    let (place, port) = (server.url("/a?sig=topsecret"), server.url("").rsplit_once(':').unwrap().1.to_owned());
    let (url, told) = proxy(format!("127.0.0.1:{port}"));
    let proxies = Proxies::from_variables(|name| (name == "all_proxy").then(|| url.clone()));
    let client = Client::with(Waits::default(), Stop::default(), proxies, roots).unwrap();
    let target = RequestUrl::new(&place.replace("://", &format!("://{SECRETS}"))).unwrap();
    assert_eq!(client.read_all(&target).unwrap().1, b"bytes");
    told.recv().unwrap()
}

/// What the server got has the secrets of the URL, but none of the proxy.
fn is_whole(server: &Server) -> bool {
    let seen = &server.seen()[0];
    seen.target.ends_with("/a?sig=topsecret") && seen.headers["authorization"].starts_with("Basic bWU6")
}

#[test]
fn a_proxy_passes_on_a_request_without_tls() {
    let server = Server::new(files(), |request| {
        // As a proxy would pass it on.
        let path = request.target.find("/a").unwrap();
        Fault::Answer(200, String::new(), if path > 0 { "bytes".into() } else { String::new() })
    });
    let head = head_at_proxy(&server, Vec::new());
    assert!(head.starts_with(&format!("GET {}?sig=topsecret HTTP/1.1\r\n", server.url("/a"))), "{head}");
    assert!(head.to_lowercase().contains("\r\nproxy-authorization: basic bmftztpwyxnz\r\n"), "{head}");
    assert!(is_whole(&server));
}

#[test]
fn a_tunnel_gets_no_secret_of_a_request() {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(ring::default_provider().into());
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
    let server = Server::tls(files(), config, |_| Fault::None);
    let head = head_at_proxy(&server, vec![cert.der().clone()]);
    assert!(
        head.starts_with("CONNECT localhost:") && head.contains("Proxy-Authorization: Basic bmFtZTpwYXNz"),
        "{head}"
    );
    assert!(!head.contains("topsecret") && !head.to_lowercase().contains("\r\nauthorization"), "{head}");
    assert!(is_whole(&server));
}

#[test]
fn a_proxy_that_cannot_be_used_is_an_error() {
    let proxies = Proxies::from_variables(|name| (name == "all_proxy").then(|| "socks5://me:topsecret@h".into()));
    let client = Client::with(Waits::default(), Stop::default(), proxies, Vec::new()).unwrap();
    let refused = client.read_all(&RequestUrl::new("http://h/a").unwrap()).err().unwrap();
    assert_eq!((refused.again, refused.problem.contains("`all_proxy` speaks SOCKS")), (Retry::No, true), "{refused}");
}

#[test]
fn a_proxy_that_fails_may_answer_later() {
    let refused = failed(&ureq::Error::ConnectProxyFailed("proxy server responded 503/503".into()));
    assert_eq!((refused.again, refused.status), (Retry::Yes, None));
    assert!(refused.problem.contains("proxy server responded 503"), "{refused}");
    let refused = failed(&ureq::Error::ConnectProxyFailed("proxy server responded 407/407".into()));
    assert_eq!(refused.again, Retry::No, "a password of a proxy stays wrong");
}
