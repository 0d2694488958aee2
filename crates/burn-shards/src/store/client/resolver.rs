//! The addresses of the server that a connection goes to.

use crate::store::{
    lookups::{self, Addresses},
    proxies::Proxies,
    stop::{LOOK, STOPPED_WAIT, Stop},
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};
use ureq::{
    Error, Timeout,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver as Resolve},
        transport::NextTimeout,
    },
};

/// Finds addresses within a time limit, or until they are no longer needed.
#[derive(Debug)]
pub(super) struct ProxyResolver {
    pub(super) time: Duration,
    pub(super) stop: Stop,
    /// A request without TLS goes to the addresses of its proxy.
    pub(super) proxies: Proxies,
}

impl Resolve for ProxyResolver {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let proxy = forwarder(&self.proxies, uri);
        let uri = proxy.as_ref().unwrap_or(uri);
        let host = uri.host().ok_or(Error::HostNotFound)?.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
        let mut all = self.empty();
        for address in self.addresses(host)?.into_iter().take(16) {
            all.push(SocketAddr::new(address, port));
        }
        if all.is_empty() { Err(Error::HostNotFound) } else { Ok(all) }
    }
}

/// The proxy that forwards a request without TLS. A proxy that is itself reached over TLS makes a tunnel instead.
pub(super) fn forwarder(proxies: &Proxies, uri: &Uri) -> Option<Uri> {
    let proxy = match uri.scheme_str() {
        Some("http") => proxies.through(false, uri.host()?, uri.port_u16()).ok()??,
        _ => return None,
    };
    proxy.parse().ok().filter(|proxy: &Uri| proxy.scheme_str() == Some("http"))
}

impl ProxyResolver {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Error> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let (tell, told) = mpsc::channel();
        lookups::look_up(host, move |found| _ = tell.send(found));
        self.wait(&told)
    }

    fn wait(&self, told: &Receiver<Addresses>) -> Result<Vec<IpAddr>, Error> {
        let begun = Instant::now();
        loop {
            match told.recv_timeout(LOOK) {
                Ok(found) => return found.map_err(|error| io::Error::new(error.kind(), error.to_string()).into()),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::HostNotFound),
                Err(RecvTimeoutError::Timeout) if self.stop.is_set() => {
                    return Err(io::Error::other(STOPPED_WAIT).into());
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < self.time => {}
                Err(RecvTimeoutError::Timeout) => return Err(Error::Timeout(Timeout::Resolve)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_without_an_end_is_not_waited_for() {
        let (_never, told) = mpsc::channel();
        let time = Duration::from_millis(10);
        let resolver = ProxyResolver { time, stop: Stop::default(), proxies: Proxies::default() };
        assert!(matches!(resolver.wait(&told), Err(Error::Timeout(Timeout::Resolve))));
        let resolver = ProxyResolver { time: Duration::from_secs(60), ..resolver };
        resolver.stop.stop();
        let begun = Instant::now();
        assert!(resolver.wait(&told).unwrap_err().to_string().contains(STOPPED_WAIT));
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}
