//! Where a request goes, and the secrets that go with it.

use crate::store::url::shown;
use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::{fmt, path::Path};
use ureq::http::{HeaderValue, Uri};

/// Characters that a URL must encode, but which people write unencoded.
const ODD: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// The parameters of signatures of Amazon and Google, and of Azure. In a query without the first of a list, the others are not part of a
/// signature, and may identify objects.
const SIGNATURES: [&[&str]; 2] = [
    &["Signature", "AWSAccessKeyId", "Expires", "GoogleAccessId", "Key-Pair-Id", "Policy"],
    &["sig", "se", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "st", "sv"],
];

/// A URL. Its query may be a signature, and it may go with a password or a token: these are never printed.
#[derive(Clone, derive_more::Debug, PartialEq, Eq)]
#[debug("{self}")]
pub(crate) struct RequestUrl {
    pub(super) uri: Uri,
    pub(super) secret: Option<HeaderValue>,
}

impl RequestUrl {
    /// Reads a URL. A name and a password before the host are sent as HTTP credentials. `None` if it is not the URL of a web server.
    pub(crate) fn new(url: &str) -> Option<Self> {
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let (scheme, rest) = url.split_once("://")?;
        let scheme = Some(scheme.to_ascii_lowercase()).filter(|scheme| ["http", "https"].contains(&scheme.as_str()))?;
        let place = rest.find(['/', '?']).unwrap_or(rest.len());
        let (server, path) = rest.split_at(place);
        let (user, host) = server.rsplit_once('@').map_or((None, server), |(user, host)| (Some(user), host));
        let uri: Uri = format!("{scheme}://{host}{}", utf8_percent_encode(path, ODD)).parse().ok()?;
        uri.host().filter(|host| !host.is_empty())?;
        let secret = user.and_then(|user| {
            let plain = match user.split_once(':') {
                Some((name, password)) => [name, password].map(|text| percent_decode_str(text).collect::<Vec<u8>>()),
                None => [percent_decode_str(user).collect(), Vec::new()],
            };
            secret(&format!("Basic {}", BASE64_STANDARD.encode(plain.join(&b':'))))
        });
        Some(Self { uri, secret })
    }

    /// The URL with a token. A name and a password in the URL are used instead of the token, as with the hub's tools.
    pub(crate) fn with_token(mut self, token: Option<&str>) -> Self {
        let bearer = || token.and_then(|token| secret(&format!("Bearer {token}")));
        self.secret = self.secret.take().or_else(bearer);
        self
    }

    /// The URL without its query.
    pub(super) fn without_query(&self) -> Uri {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = self.uri.path().parse().ok();
        Uri::from_parts(parts).unwrap_or_else(|_| self.uri.clone())
    }

    /// Whether both URLs are on one server.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.uri.scheme() == other.uri.scheme() && self.uri.authority() == other.uri.authority()
    }

    /// Whether requests to this URL are encrypted, and those to the other are not.
    pub(crate) fn is_safer_than(&self, other: &Self) -> bool {
        self.uri.scheme_str() == Some("https") && other.uri.scheme_str() != Some("https")
    }

    /// The scheme and the server, as a URL begins.
    pub(super) fn origin(&self) -> String {
        let server = self.uri.authority().map_or("", |server| server.as_str());
        format!("{}://{server}", self.uri.scheme_str().unwrap_or_default())
    }

    /// The URL of a reference in an answer from this URL, resolved by RFC 3986. The secret is kept only for the same server.
    pub(crate) fn follow(&self, place: &str) -> Option<Self> {
        let place = place.split_once('#').map_or(place, |(place, _)| place);
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let scheme = place.split_once(':').map(|(scheme, _)| scheme);
        let to = match scheme.filter(|scheme| !scheme.is_empty() && scheme.bytes().all(is_known)) {
            Some(_) => Self::new(place)?,
            None if place.starts_with("//") => Self::new(&format!("{}:{place}", self.uri.scheme_str()?))?,
            None => return self.beside(place),
        };
        let to = to.beside(to.uri.path_and_query()?.as_str())?;
        let secret = if to.is_beside(self) { self.secret.clone() } else { None };
        Some(Self { secret, ..to })
    }

    /// A place on the same server: a path, a query or both.
    fn beside(&self, place: &str) -> Option<Self> {
        let (path, query) = place.split_at(place.find('?').unwrap_or(place.len()));
        let (path, query) = match (path, query, self.uri.query()) {
            ("", "", Some(query)) => (self.uri.path().to_owned(), format!("?{query}")),
            ("", _, _) => (self.uri.path().to_owned(), query.to_owned()),
            _ if path.starts_with('/') => (without_dots(path), query.to_owned()),
            _ => {
                let folder = self.uri.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                (without_dots(&format!("{folder}/{path}")), query.to_owned())
            }
        };
        Some(Self { secret: self.secret.clone(), ..Self::new(&format!("{}{path}{query}", self.origin()))? })
    }

    /// The file of the same name with another extension.
    pub(crate) fn with_extension(&self, extension: &str) -> Option<Self> {
        let (folder, file) = self.uri.path().rsplit_once('/')?;
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let query = self.uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let place = format!("{folder}/{stem}.{extension}{query}");
        (place != self.uri.path_and_query()?.as_str()).then(|| self.beside(&place))?
    }

    /// The query without a signature. It distinguishes objects, and does not change when a URL is signed again.
    pub(crate) fn unsigned_query(&self) -> String {
        let all = || self.uri.query().unwrap_or_default().split('&');
        let signs = |name: &str| {
            let begins = |with: &str| name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
            let is_of = |names: &&[&str]| names.contains(&name) && all().any(|other| name_of(other) == names[0]);
            begins("X-Amz-") || begins("X-Goog-") || SIGNATURES.iter().any(is_of)
        };
        all().filter(|parameter| !signs(name_of(parameter))).collect::<Vec<_>>().join("&")
    }
}

/// A path without its parts `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut parts = Vec::new();
    let all = path.strip_prefix('/').unwrap_or(path);
    for part in all.split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    if all == "." || all == ".." || all.ends_with("/.") || all.ends_with("/..") {
        parts.push("");
    }
    format!("/{}", parts.join("/"))
}

/// The name of a parameter.
fn name_of(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The URL without its secrets.
impl fmt::Display for RequestUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(Path::new(&self.uri.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_sent_and_not_printed() {
        let target = RequestUrl::new("https://me:p%40ss@host:81/a b/c.tar?sig=xyz#end").unwrap();
        assert_eq!(target.uri.to_string(), "https://host:81/a%20b/c.tar?sig=xyz");
        assert_eq!(target.secret.as_ref().unwrap(), &format!("Basic {}", BASE64_STANDARD.encode("me:p@ss")));
        for text in [target.to_string(), format!("{target:?}")] {
            assert_eq!(text, "https://host:81/a%20b/c.tar?..");
        }
        for wrong in ["ftp://host/a", "https://", "https:///a", "host/a"] {
            assert_eq!(RequestUrl::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_and_a_password_go_before_a_token() {
        let mirror = RequestUrl::new("https://me:pass@mirror/a").unwrap();
        let basic = format!("Basic {}", BASE64_STANDARD.encode("me:pass"));
        for token in [None, Some("hf_secret")] {
            assert_eq!(mirror.clone().with_token(token).secret.as_ref().unwrap(), &basic);
        }
    }

    #[test]
    fn places_are_read_as_the_rfc_says() {
        let target = RequestUrl::new("http://a/b/c/d;p?q").unwrap();
        // The examples of RFC 3986 that are of HTTP.
        for (place, url) in [
            ("http://g", "http://g/"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http://g/a/../b?c", "http://g/b?c"),
        ] {
            assert_eq!(target.follow(place).unwrap().uri.to_string(), url, "{place}");
        }
        for wrong in ["ftp://g", "mailto:g", "g:h", "http:g", "https:///g"] {
            assert_eq!(target.follow(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_stays_on_its_server() {
        let target = RequestUrl::new("https://hub/a/b.tar?x").unwrap().with_token(Some("hf_secret"));
        assert!(!format!("{target:?}").contains("secret"));
        for (place, url, is_sent) in [
            ("/c", "https://hub/c", true),
            ("c", "https://hub/a/c", true),
            ("https://hub/c", "https://hub/c", true),
            ("//cdn/c", "https://cdn/c", false),
            ("https://hub:8443/c", "https://hub:8443/c", false),
            ("http://hub/c", "http://hub/c", false),
            ("/get?u=https://x", "https://hub/get?u=https://x", true),
            ("get?u=https://x", "https://hub/a/get?u=https://x", true),
        ] {
            let to = target.follow(place).unwrap();
            assert_eq!((to.uri.to_string().as_str(), to.secret.is_some()), (url, is_sent), "{place}");
        }
        let beside = target.with_extension("idx").unwrap();
        assert_eq!((beside.uri.to_string().as_str(), beside.secret.is_some()), ("https://hub/a/b.idx?x", true));
        assert_eq!(beside.with_extension("idx"), None);
        let odd = RequestUrl::new("https://hub//a/b.tar").unwrap().with_extension("idx").unwrap();
        assert_eq!(odd.uri.to_string(), "https://hub//a/b.idx", "it stays on its server");
        let nested = RequestUrl::new("https://hub/a.tar?u=https://x").unwrap().with_extension("idx").unwrap();
        assert_eq!(nested.uri.to_string(), "https://hub/a.idx?u=https://x");
    }
}
