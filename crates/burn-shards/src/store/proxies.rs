//! The proxies that the environment names, as curl and Python's `requests` read it.

use super::remote::{Refusal, no};
use std::{
    env,
    net::{IpAddr, SocketAddr},
};

/// A proxy for each scheme, and the servers that are reached without one. The proxies' URLs may have passwords.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Proxies")]
pub(super) struct Proxies {
    http: Option<ProxyVariable>,
    https: Option<ProxyVariable>,
    /// With a port, if the exception is only for that port.
    except: Vec<(Host, Option<u16>)>,
}

/// A proxy, and the variable that names it.
#[derive(Clone)]
struct ProxyVariable {
    variable: &'static str,
    /// The URL of the proxy, or the reason why it cannot be used.
    url: Result<String, &'static str>,
}

/// Hosts that are reached without a proxy.
#[derive(Clone)]
enum Host {
    Any,
    /// The address of a network, and the length of its prefix in bits.
    Net(IpAddr, u32),
    /// A host, and all its subdomains.
    Name(String),
}

impl Proxies {
    pub(super) fn from_env() -> Self {
        Self::from_variables(|name| Some(env::var_os(name)?.to_string_lossy().into_owned()))
    }

    /// Reads variables. An empty variable counts as unset. A lower-case name takes precedence over the one in capitals.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            let mut set = names.iter().filter_map(|name| Some((*name, variable(name)?.trim().to_owned())));
            set.find(|(_, text)| !text.is_empty())
        };
        let proxy =
            |names: &[&'static str]| first(names).map(|(variable, text)| ProxyVariable { variable, url: parse(&text) });
        let except = first(&["no_proxy", "NO_PROXY"]).map(|(_, text)| text).unwrap_or_default();
        Self {
            // In a CGI program, `HTTP_PROXY` is a header sent by the client.
            http: proxy(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            except: except.split([',', ' ']).filter_map(Host::parse).collect(),
        }
    }

    /// The URLs of the proxies that can be used.
    #[cfg(feature = "http")]
    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        [&self.http, &self.https].into_iter().flatten().filter_map(|proxy| proxy.url.as_deref().ok())
    }

    /// The URL of the proxy for a server. `None` if the server is reached without a proxy.
    ///
    /// # Errors
    /// If the proxy for this server cannot be used.
    pub(super) fn through(&self, is_tls: bool, host: &str, port: Option<u16>) -> Result<Option<&str>, Refusal> {
        let Some(proxy) = (if is_tls { &self.https } else { &self.http }) else { return Ok(None) };
        let host = bare(host);
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        let is_of =
            |(except, of_port): &(Host, Option<u16>)| except.covers(&host) && of_port.is_none_or(|of| of == port);
        if gives_credentials(&host) || self.except.iter().any(is_of) {
            return Ok(None);
        }
        let ProxyVariable { variable, url } = proxy;
        let wrong = |problem: &&str| {
            let cure = format!("correct `{variable}`, unset it, or name the server in `no_proxy`");
            no(None, format!("the proxy of the variable `{variable}` {problem}: {cure}"))
        };
        url.as_deref().map(Some).map_err(wrong)
    }
}

/// The URL of a proxy. Without a scheme it begins with `http://`.
fn parse(text: &str) -> Result<String, &'static str> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let scheme = scheme.to_ascii_lowercase();
    if scheme.starts_with("socks") {
        return Err("speaks SOCKS, and only proxies of HTTP can be used");
    }
    let server = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = server.rsplit_once('@').map_or(("", server), |(user, host)| (user, host));
    let is_user = user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:".contains(&byte));
    let (name, port) = match host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_host = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
        None => !name.is_empty() && name.bytes().all(is_name),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    match ["http", "https"].contains(&scheme.as_str()) && is_user && is_host && is_port {
        true => Ok(format!("{scheme}://{server}")),
        false => Err("is no URL, such as `http://host:3128`"),
    }
}

impl Host {
    /// An entry of `no_proxy`: hosts, and the port after them.
    fn parse(text: &str) -> Option<(Self, Option<u16>)> {
        let text = text.trim().to_ascii_lowercase();
        let net = |address: IpAddr, bits: Option<u32>| {
            let all = if address.is_ipv4() { 32 } else { 128 };
            Self::Net(address, bits.map_or(all, |bits| bits.min(all)))
        };
        let address = |text: &str| text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let cidr =
            |text: &str| text.split_once('/').and_then(|(at, bits)| Some(net(address(at)?, Some(bits.parse().ok()?))));
        Some(if text == "*" {
            (Self::Any, None)
        } else if let Some(net) = cidr(&text).or_else(|| Some(net(address(&text)?, None))) {
            (net, None)
        } else if let Ok(server) = text.parse::<SocketAddr>() {
            (net(server.ip(), None), Some(server.port()))
        } else {
            let (name, port) = match text.rsplit_once(':') {
                Some((name, port)) => (name, Some(port.parse().ok()?)),
                None => (text.as_str(), None),
            };
            let name = name.strip_prefix("*").unwrap_or(name).trim_matches('.');
            (Self::Name(Some(name).filter(|name| !name.is_empty())?.into()), port)
        })
    }

    fn covers(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Net(net, bits) => host.parse().is_ok_and(|address| is_inside(address, *net, *bits)),
            Self::Name(name) => host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
        }
    }
}

/// Whether an address is in a network.
fn is_inside(address: IpAddr, net: IpAddr, bits: u32) -> bool {
    let (one, other, all) = match (address, net) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u32::from(one).into(), u32::from(other).into(), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (u128::from(one), u128::from(other), 128),
        _ => return false,
    };
    one.checked_shr(all - bits) == other.checked_shr(all - bits)
}

/// Whether a host gives machines their credentials. Each cloud has such a host.
pub(super) fn gives_credentials(host: &str) -> bool {
    let host = bare(host);
    ["metadata.google.internal", "metadata"].contains(&&*host)
        || match host.parse() {
            Ok(IpAddr::V4(address)) => address.is_link_local(),
            Ok(IpAddr::V6(address)) => address.is_unicast_link_local() || address.segments()[..2] == [0xfd00, 0xec2],
            Err(_) => false,
        }
}

/// A host in the form used for comparisons.
fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(set: &[(&str, &str)]) -> Proxies {
        Proxies::from_variables(|name| set.iter().find(|(there, _)| *there == name).map(|(_, text)| (*text).into()))
    }

    /// The proxies of `http://h` and `https://h`.
    fn both(set: &[(&str, &str)]) -> [Option<String>; 2] {
        [false, true].map(|is_tls| proxies(set).through(is_tls, "h", None).unwrap().map(String::from))
    }

    #[test]
    fn each_scheme_has_its_own_proxy() {
        let url = |url: &str| Some(url.to_owned());
        assert_eq!(both(&[]), [None, None]);
        assert_eq!(both(&[("HTTPS_PROXY", "http://p:1")]), [None, url("http://p:1")]);
        assert_eq!(both(&[("http_proxy", "p:1")]), [url("http://p:1"), None]);
        assert_eq!(both(&[("HTTP_PROXY", "http://p:1")]), [None, None], "it may be a header of a request");
        assert_eq!(both(&[("ALL_PROXY", "HTTPS://p/")]), [url("https://p"), url("https://p")]);
        let mixed = [("all_proxy", "http://a"), ("https_proxy", "http://s"), ("HTTPS_PROXY", "http://S")];
        assert_eq!(both(&mixed), [url("http://a"), url("http://s")]);
        assert_eq!(both(&[("https_proxy", " "), ("HTTPS_PROXY", "http://s")]), [None, url("http://s")]);
        assert_eq!(both(&[("https_proxy", "http://me:p%40ss@[::1]:3128")])[1], url("http://me:p%40ss@[::1]:3128"));
    }

    #[test]
    fn servers_may_be_asked_without_a_proxy() {
        let is_direct = |list: &str, host: &str, port: Option<u16>| {
            proxies(&[("https_proxy", "http://p"), ("NO_PROXY", list)]).through(true, host, port).unwrap().is_none()
        };
        for (list, host, is) in [
            ("example.org", "example.org", true),
            ("example.org", "a.EXAMPLE.org.", true),
            (".example.org", "a.example.org", true),
            (".example.org", "example.org", true),
            ("*.example.org", "a.example.org", true),
            ("example.org", "badexample.org", false),
            ("a, b,example.org", "example.org", true),
            ("a b", "b", true),
            ("*", "anything", true),
            ("10.0.0.0/8", "10.200.3.4", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "11.0.0.1", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.30", false),
            ("fd12::/16", "[fd12::1]", true),
            ("[::1]", "[::1]", true),
            ("::1", "[::2]", false),
            ("", "h", false),
        ] {
            assert_eq!(is_direct(list, host, None), is, "{list}: {host}");
        }
        for (list, port, is) in [("h:8443", Some(8443), true), ("h:8443", None, false), ("h:443", None, true)] {
            assert_eq!(is_direct(list, "h", port), is, "{list} {port:?}");
        }
        assert!(is_direct("[::1]:81,127.0.0.1:82", "127.0.0.1", Some(82)));
        let small = [("https_proxy", "http://p"), ("NO_PROXY", "h"), ("no_proxy", "other")];
        assert!(proxies(&small).through(true, "h", None).unwrap().is_some());
    }

    #[test]
    fn credentials_of_machines_go_through_no_proxy() {
        let all = proxies(&[("ALL_PROXY", "socks5://p")]);
        for host in ["169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "[fe80::1]", "metadata.google.internal"] {
            assert_eq!(all.through(false, host, None).unwrap(), None, "{host}");
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_told_without_its_text() {
        for wrong in [
            "socks5://me:topsecret@p:1080",
            "ftp://me:topsecret@p",
            "http://me:topsecret@",
            "http://me:top#secret@p",
            "http://p:topsecret",
            "http://:3128",
            "me:topsecret@p q",
        ] {
            let set = proxies(&[("HTTPS_PROXY", wrong)]);
            let told = set.through(true, "h", None).unwrap_err().to_string();
            assert!(told.contains("`HTTPS_PROXY`") && told.contains("unset it"), "{told}");
            assert!(!told.contains("secret") && !format!("{set:?}").contains("secret"), "{told}");
            assert_eq!(set.through(false, "h", None).unwrap(), None, "the other scheme has none");
        }
    }
}
