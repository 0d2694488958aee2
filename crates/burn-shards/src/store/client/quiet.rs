//! Keeps secrets out of the log. At the level `trace`, the HTTP crate logs its requests and the answers. So it gets requests without
//! queries and credentials. The connections of this file add both when a request is sent, and hide the URLs in an answer's headers from the
//! crate.

use std::cell::RefCell;
use ureq::{
    Body, Error,
    http::{HeaderName, HeaderValue, Response, header},
    unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport},
};

/// The headers of an answer that have URLs.
const PLACES: [HeaderName; 2] = [header::LOCATION, header::LINK];
const END: &[u8] = b"\r\n\r\n";

thread_local! {
    /// The request that this thread is making.
    static EXCHANGE: RefCell<Option<Exchange>> = const { RefCell::new(None) };
}

/// A request: its secrets, which the HTTP crate does not know, and the URLs in the headers of its answer.
#[derive(Default)]
pub(super) struct Exchange {
    pub(super) query: Option<String>,
    pub(super) authorization: Option<HeaderValue>,
    /// For a request that is sent to a forwarding proxy: the scheme and the server that the proxy must ask, and the credentials for the
    /// proxy.
    pub(super) forward: Option<(String, Option<HeaderValue>)>,
    is_sent: bool,
    is_answered: bool,
    places: Vec<(HeaderName, HeaderValue)>,
}

impl Exchange {
    pub(super) fn new(query: Option<&str>, authorization: Option<&HeaderValue>) -> Self {
        Self { query: query.map(String::from), authorization: authorization.cloned(), ..Self::default() }
    }

    /// Makes the request.
    pub(super) fn run(self, make: impl FnOnce() -> Result<Response<Body>, Error>) -> Result<Response<Body>, Error> {
        EXCHANGE.set(Some(self));
        let answer = make();
        let places = EXCHANGE.take().map_or_else(Vec::new, |exchange| exchange.places);
        let mut answer = answer?;
        places.iter().for_each(|(name, _)| _ = answer.headers_mut().remove(name));
        places.into_iter().for_each(|(name, value)| _ = answer.headers_mut().append(name, value));
        Ok(answer)
    }

    /// The head of a request, as it is sent.
    fn with_secrets(&self, head: &[u8]) -> Vec<u8> {
        let line = find(head, b"\r\n").unwrap_or(head.len());
        let path = find(&head[..line], b" ").map_or(line, |space| space + 1);
        let end = head[..line].iter().rposition(|byte| *byte == b' ').map_or(line, |space| space.max(path));
        let Self { query, authorization, forward, .. } = self;
        let mut whole = head[..path].to_vec();
        if let Some((server, _)) = forward {
            whole.extend(server.as_bytes());
        }
        whole.extend(&head[path..end]);
        if let Some(query) = query {
            whole.extend([b"?", query.as_bytes()].concat());
        }
        whole.extend(&head[end..line]);
        let proxy = forward.as_ref().and_then(|(_, secret)| secret.as_ref());
        for (name, secret) in [("authorization", authorization.as_ref()), ("proxy-authorization", proxy)] {
            if let Some(secret) = secret {
                whole.extend([b"\r\n", name.as_bytes(), b": ", secret.as_bytes()].concat());
            }
        }
        whole.extend(&head[line..]);
        whole
    }

    /// Notes the URLs in the head of an answer, and overwrites them.
    fn hide(&mut self, head: &mut [u8]) {
        for line in head.split_mut(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = line.split_at_mut(colon);
            let Some(name) = PLACES.into_iter().find(|place| name.eq_ignore_ascii_case(place.as_str().as_bytes()))
            else {
                continue;
            };
            if let Ok(place) = HeaderValue::from_bytes(value[1..].trim_ascii()) {
                self.places.push((name, place));
                value[1..].iter_mut().filter(|byte| !byte.is_ascii_whitespace()).for_each(|byte| *byte = b'-');
            }
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Wraps each connection to a server. A connection to the proxy of a tunnel gets no secret.
#[derive(Debug)]
pub(super) struct QuietConnector {
    /// Whether servers are asked through a tunnel.
    pub(super) is_tunnel: bool,
}

impl<In: Transport> Connector<In> for QuietConnector {
    type Out = QuietTransport<In>;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        // The connection to the proxy is made without a proxy.
        let is_of_server = details.config.proxy().is_some() == self.is_tunnel;
        Ok(chained.map(|inner| QuietTransport { inner, is_of_server }))
    }
}

#[derive(Debug)]
pub(super) struct QuietTransport<In> {
    inner: In,
    is_of_server: bool,
}

impl<In: Transport> Transport for QuietTransport<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, mut amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let output = self.inner.buffers().output();
        let whole = EXCHANGE.with_borrow_mut(|exchange| {
            let exchange = exchange.as_mut().filter(|exchange| self.is_of_server && !exchange.is_sent)?;
            exchange.is_sent = true;
            Some(exchange.with_secrets(output.get(..amount)?))
        });
        if let Some(whole) = whole {
            let into = output.get_mut(..whole.len()).ok_or_else(|| Error::BadUri("it is too long".into()))?;
            into.copy_from_slice(&whole);
            amount = whole.len();
        }
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let came = self.inner.await_input(timeout)?;
        let buffers = self.inner.buffers();
        EXCHANGE.with_borrow_mut(|exchange| {
            let exchange =
                exchange.as_mut().filter(|exchange| self.is_of_server && exchange.is_sent && !exchange.is_answered)?;
            let end = find(buffers.input(), END)?;
            let mut input = buffers.input().get(..end)?.to_vec();
            exchange.is_answered = true;
            exchange.hide(&mut input);
            if !exchange.places.is_empty() {
                input.extend_from_slice(buffers.input().get(end..)?);
                buffers.input_consume(input.len());
                buffers.input_append_buf().get_mut(..input.len())?.copy_from_slice(&input);
                buffers.input_appended(input.len());
            }
            Some(())
        });
        Ok(came)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_gets_what_was_left_out_and_keeps_its_length_otherwise() {
        let head = b"GET /a HTTP/1.1\r\nhost: h\r\n\r\n";
        let made = |query: Option<&str>, secret: Option<&str>| {
            Exchange::new(query, secret.map(|secret| HeaderValue::from_str(secret).unwrap()).as_ref())
        };
        assert_eq!(made(None, None).with_secrets(head), head);
        let whole = b"GET /a?sig=x HTTP/1.1\r\nauthorization: Basic y\r\nhost: h\r\n\r\n";
        assert_eq!(made(Some("sig=x"), Some("Basic y")).with_secrets(head), whole);
        let mut forwarded = made(Some("sig=x"), None);
        forwarded.forward = Some(("http://h".into(), Some(HeaderValue::from_static("Basic z"))));
        let whole = b"GET http://h/a?sig=x HTTP/1.1\r\nproxy-authorization: Basic z\r\nhost: h\r\n\r\n";
        assert_eq!(forwarded.with_secrets(head), whole);

        let mut made = Exchange::default();
        let mut answer =
            *b"HTTP/1.1 302 Found\r\nlocation: https://h/a?sig=x\r\nLINK:</b>; rel=\"next\"\r\nA: https://b";
        made.hide(&mut answer);
        assert_eq!(made.places.len(), 2);
        assert_eq!(
            (&made.places[0].1, &made.places[1].1),
            (&"https://h/a?sig=x".parse().unwrap(), &"</b>; rel=\"next\"".parse().unwrap())
        );
        let hidden = String::from_utf8_lossy(&answer).into_owned();
        assert!(hidden.contains("\r\nlocation: -----------------\r\n") && hidden.ends_with("A: https://b"), "{hidden}");
    }
}
