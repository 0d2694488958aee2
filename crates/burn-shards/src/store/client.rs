//! One HTTP request: where it goes, and what its answer means.
//!
//! The reading thread makes the request and waits for it, so there is no runtime, and each thread decrypts its own bytes. The HTTP crate of
//! the clouds is not used here, for three reasons. It needs a runtime and three times as many crates. It does not report the status of a
//! proxy that refuses a tunnel. It returns connections to its pool on another thread, so the next request may open one more.

use super::{
    proxies::Proxies,
    remote::{CHANGED, Refusal, Retry, SMALL_ANSWER, as_stored, no},
    stop::{STOPPED_WAIT, Stop},
    tls,
    waits::{PacedReader, Waits},
};
use crate::error::DataError;
use rustls::crypto::ring;
use rustls_pki_types::CertificateDer;
use std::{
    io::{self, Read},
    ops::Range,
    sync::Arc,
};
use ureq::{
    Agent, Body, BodyReader, Proxy,
    http::{HeaderMap, HeaderValue, Response, header, response::Parts},
    tls::{Certificate, RootCerts, TlsConfig},
    unversioned::transport::{ConnectProxyConnector, Connector, RustlsConnector},
};

mod quiet;
mod request_url;
mod resolver;
mod socket;
#[cfg(test)]
mod tests;

use quiet::{Exchange, QuietConnector};
pub(super) use request_url::RequestUrl;
use resolver::{ProxyResolver, forwarder};
use socket::Sockets;

/// The most redirects of one request. More are treated as a loop.
const REDIRECTS: usize = 5;
/// The most idle connections that are kept for later requests.
const KEPT_CONNECTIONS: usize = 128;

/// Asks servers, and keeps connections to them.
#[derive(Clone, derive_more::Debug)]
pub(super) struct Client {
    direct: Agent,
    /// For servers that are reached through a proxy's tunnel, by the proxy's URL, which may have a password.
    #[debug(skip)]
    tunnels: Arc<[(String, Agent)]>,
    proxies: Proxies,
    waits: Waits,
    stop: Stop,
}

/// An answer. It reads its body.
pub(super) struct Answer {
    head: Parts,
    body: PacedReader<BodyReader<'static>>,
    /// The bytes of the body that have not arrived, if the server says how many there are.
    left: Option<u64>,
    /// The URL that sent the answer, after redirects.
    pub(super) from: RequestUrl,
}

impl Client {
    /// Uses the proxies of the environment, and trusts the authorities of [`tls::roots`]. `stop` ends its waits.
    pub(super) fn new(waits: Waits, stop: Stop) -> Result<Self, DataError> {
        Self::with(waits, stop, Proxies::from_env(), tls::roots()?)
    }

    pub(super) fn with(
        waits: Waits,
        stop: Stop,
        proxies: Proxies,
        roots: Vec<CertificateDer<'static>>,
    ) -> Result<Self, DataError> {
        let roots: RootCerts =
            roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect::<Vec<_>>().into();
        let tls = TlsConfig::builder().root_certs(roots);
        let tls = tls.unversioned_rustls_crypto_provider(Arc::new(ring::default_provider())).build();
        let agent = |tunnel: Option<Proxy>| {
            let is_tunnel = tunnel.is_some();
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .accept_encoding("identity")
                .user_agent(concat!("burn-pinned/", env!("CARGO_PKG_VERSION")))
                .tls_config(tls.clone())
                .proxy(tunnel)
                .max_idle_connections(KEPT_CONNECTIONS)
                .max_idle_connections_per_host(KEPT_CONNECTIONS)
                .timeout_connect(Some(waits.connect))
                .timeout_send_request(Some(waits.answer))
                .timeout_recv_response(Some(waits.answer))
                .timeout_per_read(Some(waits.bytes))
                .timeout_per_write(Some(waits.bytes));
            let connector = ().chain(ConnectProxyConnector::default()).chain(Sockets(stop.clone()));
            let connector = connector.chain(RustlsConnector::default()).chain(QuietConnector { is_tunnel });
            let proxies = if is_tunnel { Proxies::default() } else { proxies.clone() };
            let resolver = ProxyResolver { time: waits.connect, stop: stop.clone(), proxies };
            Agent::with_parts(config.build(), connector, resolver)
        };
        let tunnels = proxies.urls().map(|url| {
            let proxy = Proxy::new(url).map_err(|_| {
                DataError::option(
                    "paths",
                    "a proxy of the environment has a name or a password that is no text",
                    "correct `http_proxy`, `https_proxy` or `all_proxy`, or unset it",
                )
            });
            Ok((url.into(), agent(Some(proxy?))))
        });
        let tunnels = tunnels.collect::<Result<_, DataError>>()?;
        Ok(Self { direct: agent(None), tunnels, proxies, waits, stop })
    }

    /// The agent for a server, and the request with its secrets and those for a forwarding proxy.
    fn route(&self, to: &RequestUrl) -> Result<(&Agent, Exchange), Refusal> {
        let RequestUrl { uri, secret } = to;
        let mut exchange = Exchange::new(uri.query(), secret.as_ref());
        let (is_tls, host) = (uri.scheme_str() == Some("https"), uri.host().unwrap_or_default());
        let Some(url) = self.proxies.through(is_tls, host, uri.port_u16())? else {
            return Ok((&self.direct, exchange));
        };
        if forwarder(&self.proxies, uri).is_some() {
            let secret = RequestUrl::new(url).and_then(|proxy| proxy.secret);
            exchange.forward = Some((to.origin(), secret));
            return Ok((&self.direct, exchange));
        }
        let tunnel = self.tunnels.iter().find(|(tunnel, _)| tunnel == url);
        Ok((tunnel.map_or(&self.direct, |(_, agent)| agent), exchange))
    }

    /// Requests an object or a part of it, of a certain version if one is given. Redirects are followed. The secrets of a URL are sent only
    /// to its own server.
    pub(super) fn ask(
        &self,
        target: &RequestUrl,
        part: Option<&Range<u64>>,
        version: Option<&HeaderValue>,
    ) -> Result<Answer, Refusal> {
        let mut from = target.clone();
        for _ in 0..=REDIRECTS {
            let (agent, exchange) = self.route(&from)?;
            let mut request = agent.get(from.without_query());
            if let Some(part) = part {
                request = request.header(header::RANGE, format!("bytes={}-{}", part.start, part.end.saturating_sub(1)));
            }
            // `If-Match` with a weak ETag never matches, by the rules of HTTP.
            if let Some(version) = version.filter(|version| !version.as_bytes().starts_with(b"W/")) {
                request = request.header(header::IF_MATCH, version);
            }
            let response = exchange.run(|| request.call()).map_err(|error| match self.stop.is_set() {
                true => no(None, STOPPED_WAIT),
                false => failed(&error),
            })?;
            let status = response.status();
            if !status.is_redirection() {
                let answer = Answer::new(response, self.waits, from);
                let is_empty = answer.is_empty() && part.is_some_and(|part| part.start == 0);
                if status.is_success() {
                    as_stored(status.as_u16(), answer.headers())?;
                } else if !is_empty {
                    return Err(refused(&answer));
                }
                return Ok(answer);
            }
            let to = response.headers().get(header::LOCATION).and_then(|place| place.to_str().ok());
            let to = to.and_then(|place| from.follow(place));
            let wrong = |problem: &str| no(Some(status.as_u16()), problem);
            let to = to.ok_or_else(|| wrong("the server names another place that makes no sense"))?;
            if from.is_safer_than(&to) {
                return Err(wrong("the server leads from https to http, where anybody can read along"));
            }
            // The rest of the answer may be slow, so its connection is closed.
            from = to;
        }
        Err(no(None, "the server names other places without end"))
    }

    /// Reads a whole small answer.
    pub(super) fn read_all(&self, target: &RequestUrl) -> Result<(HeaderMap, Vec<u8>), Refusal> {
        let (mut answer, mut bytes) = (self.ask(target, None, None)?, Vec::new());
        let read = (&mut answer).take(SMALL_ANSWER + 1).read_to_end(&mut bytes);
        read.map_err(|error| Refusal { status: None, problem: error.to_string(), again: Retry::Yes })?;
        if bytes.len() as u64 > SMALL_ANSWER {
            return Err(no(None, "the answer is too long"));
        }
        Ok((answer.head.headers, bytes))
    }

    /// Reads a whole small object of the same name with another extension. `None` if there is none.
    pub(super) fn read_beside(&self, target: &RequestUrl, extension: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(beside) = target.with_extension(extension) else { return Ok(None) };
        match self.read_all(&beside) {
            Ok((_, bytes)) => Ok(Some(bytes)),
            // A store that does not allow listing answers with 403 if an object does not exist.
            Err(Refusal { status: Some(403 | 404 | 410), .. }) => Ok(None),
            Err(refused) => Err(refused),
        }
    }
}

impl Answer {
    fn new(response: Response<Body>, waits: Waits, from: RequestUrl) -> Self {
        let (head, body) = response.into_parts();
        let mut answer = Self { head, body: PacedReader::new(body.into_reader(), waits), left: None, from };
        answer.left = answer.length();
        answer
    }

    pub(super) fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// How many bytes the body has, if the server says it.
    pub(super) fn length(&self) -> Option<u64> {
        number(self.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?)
    }

    /// The contents of `Content-Range`: the part in the body, and the size of the whole object, if the server says it.
    pub(super) fn range(&self) -> Option<(Range<u64>, Option<u64>)> {
        let text = self.headers().get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
        let (part, size) = text.split_once('/')?;
        let part = match part {
            "*" => 0..0,
            _ => part.split_once('-').and_then(|(start, last)| Some(number(start)?..number(last)?.checked_add(1)?))?,
        };
        Some((part, number(size)))
    }

    /// Whether the server sent no bytes because the object is empty. S3 does not say the size then.
    pub(super) fn is_empty(&self) -> bool {
        self.status() == 416 && self.range().is_none_or(|range| range == (0..0, Some(0)))
    }

    /// The bytes of a part of an object with `bytes` bytes, if the answer has them. They may end early.
    pub(super) fn into_part(self, part: &Range<u64>, bytes: u64) -> Result<Box<dyn Read + Send>, Refusal> {
        let status = Some(self.status());
        let (there, size) = match (self.status(), self.range()) {
            (206, Some(there)) => there,
            (206, None) => return Err(no(status, "the server does not say which bytes it gives")),
            (416, _) => return Err(no(status, CHANGED)),
            _ => (0..self.length().unwrap_or(bytes), self.length()),
        };
        if size.is_some_and(|size| size != bytes) {
            return Err(no(status, CHANGED));
        }
        // A server may return less than was requested.
        if there.start != part.start || there.end > part.end {
            let problem = format!("the server gives bytes {} to {} of it instead", there.start, there.end);
            return Err(no(status, problem));
        }
        Ok(Box::new(self.take(part.end - part.start)))
    }
}

/// The end of the body is read together with its last byte, because a connection is kept only if its answer was read to the end.
impl Read for Answer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.body.read(into)?;
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
            if *left == 0 && bytes > 0 {
                _ = self.body.read(&mut [0])?;
            }
        }
        Ok(bytes)
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// What an answer without success means.
fn refused(answer: &Answer) -> Refusal {
    Refusal::of_answer(answer.status(), |name| answer.headers().get(name)?.to_str().ok())
}

/// What a request without an answer means. The text of the error has no URL in it.
fn failed(error: &ureq::Error) -> Refusal {
    let (problem, again) = match error {
        ureq::Error::Timeout(_) => ("the server did not answer in time".into(), Retry::Yes),
        ureq::Error::HostNotFound => ("the host was not found".into(), Retry::Yes),
        ureq::Error::Io(inner) if tls::is_of_certificate(inner) => (inner.to_string(), Retry::No),
        ureq::Error::Io(inner) => (inner.to_string(), Retry::Yes),
        // Only the text of this error has the status of the proxy's answer.
        ureq::Error::ConnectProxyFailed(answer)
            if ["401", "403", "407"].iter().any(|status| answer.contains(status)) =>
        {
            (error.to_string(), Retry::No)
        }
        ureq::Error::ConnectionFailed | ureq::Error::Protocol(_) | ureq::Error::ConnectProxyFailed(_) => {
            (error.to_string(), Retry::Yes)
        }
        ureq::Error::Rustls(error) => (error.to_string(), Retry::No),
        ureq::Error::Tls(problem) => ((*problem).into(), Retry::No),
        _ => ("the request cannot be made: is the URL right?".into(), Retry::No),
    };
    Refusal { status: None, problem, again }
}
