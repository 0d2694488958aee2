//! Objects of web servers.

use super::{
    Object,
    client::{Client, RequestUrl},
    remote::{CHANGED, LOOKS_AT_ONCE, Refusal, Remote, no, unreadable},
    steady::{Patience, patiently},
    waits::Waits,
};
use crate::{error::DataError, store::url::shown, system::parallel::in_parallel_by};
use fnv::FnvHasher;
use std::{hash::Hasher, io::Read, ops::Range};
use ureq::http::{HeaderMap, HeaderValue, header};

#[cfg(test)]
pub(super) mod tests;

/// Objects of web servers, as they were when they were opened.
#[derive(Debug)]
pub(super) struct Web {
    client: Client,
    objects: Vec<WebObject>,
}

/// An object as it was when it was opened.
#[derive(Debug)]
struct WebObject {
    target: RequestUrl,
    bytes: u64,
    /// Headers that change with the object, if the server sends them.
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

/// A web server cannot list objects, so patterns are refused.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, DataError> {
    let path = pattern.split('?').next().unwrap_or(pattern).splitn(4, '/').nth(3).unwrap_or_default();
    match path.contains(['*', '[']) {
        false => Ok(vec![pattern.into()]),
        true => Err(DataError::Pattern {
            pattern: shown(pattern.as_ref()),
            problem: "a web server cannot list its files. Write braces, such as `{000..146}`, or a list".into(),
        }),
    }
}

/// Gets the sizes of objects, and checks that the server supports requests for parts.
pub(super) fn open(urls: &[String], waits: Waits, patience: &Patience) -> Result<(Vec<Object>, Web), DataError> {
    let client = Client::new(waits, patience.stop.clone())?;
    let targets = urls.iter().map(|url| {
        // Only the scheme is shown, because an invalid URL may have a password anywhere.
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        RequestUrl::new(url).ok_or_else(|| {
            DataError::option(
                "paths",
                format!("a path that begins with `{scheme}://` is no URL"),
                "write `https://host/folder/name`",
            )
        })
    });
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    let seen = in_parallel_by(LOOKS_AT_ONCE, &targets, |target| {
        patiently(patience, || look(&client, target)).map_err(|error| unreadable(&target.to_string(), error))
    })?;
    let list =
        seen.iter().map(|seen| Object { name: seen.target.to_string().into(), bytes: seen.bytes, tag: seen.tag() });
    Ok((list.collect(), Web { client, objects: seen }))
}

/// Requests the first byte. Unlike HEAD, this works with signed URLs, and shows whether parts are supported.
fn look(client: &Client, target: &RequestUrl) -> Result<WebObject, Refusal> {
    let answer = client.ask(target, Some(&(0..1)), None)?;
    let status = Some(answer.status());
    let bytes = match (answer.status(), answer.range(), answer.length()) {
        _ if answer.is_empty() => 0,
        (206, Some((Range { start: 0, end: 1 }, Some(bytes))), _) => bytes,
        (206, ..) => return Err(no(status, "the server does not say how many bytes it has")),
        (_, _, Some(0)) => 0,
        _ => return Err(no(status, "the server gives whole objects only, and parts are needed: copy it to a disk")),
    };
    let mark = |name| answer.headers().get(name).cloned();
    let (etag, modified) = (mark(header::ETAG), mark(header::LAST_MODIFIED));
    // The body is read to its end, so that the connection is kept.
    _ = answer.take(1).read_to_end(&mut Vec::new());
    Ok(WebObject { target: target.clone(), bytes, etag, modified })
}

impl WebObject {
    /// Whether an answer with these headers is of the same version of the object, as far as they say.
    fn is_same_version(&self, headers: &HeaderMap) -> bool {
        let is_same = |one: &Option<HeaderValue>, name| Some(one.as_ref()? == headers.get(name)?);
        let is_same = is_same(&self.etag, header::ETAG).or_else(|| is_same(&self.modified, header::LAST_MODIFIED));
        is_same.unwrap_or(true)
    }

    fn tag(&self) -> u64 {
        let mut hash = FnvHasher::default();
        let mark = self.etag.as_ref().or(self.modified.as_ref());
        hash.write(mark.map_or(&[], HeaderValue::as_bytes));
        hash.write_u8(0);
        // The name of an object has no query, but the query may distinguish objects.
        hash.write(self.target.unsigned_query().as_bytes());
        hash.finish()
    }
}

impl Remote for Web {
    fn get(&self, object: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        let seen = &self.objects[object];
        let answer = self.client.ask(&seen.target, Some(&part), seen.etag.as_ref())?;
        if !seen.is_same_version(answer.headers()) {
            return Err(no(Some(answer.status()), CHANGED));
        }
        answer.into_part(&part, seen.bytes).map(|body| body as _)
    }

    fn beside(&self, object: usize, extension: &str) -> Result<Option<Vec<u8>>, Refusal> {
        self.client.read_beside(&self.objects[object].target, extension)
    }
}
