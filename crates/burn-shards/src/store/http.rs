//! Objects of web servers.

use super::{
    Object,
    client::{Answer, Client, RequestUrl},
    remote::{CHANGED, LOOKS_AT_ONCE, Refusal, Remote, RemoteObjects, no, unreadable},
    steady::{Patience, patiently},
    waits::Waits,
};
use crate::{error::DataError, store::url::shown, system::parallel::in_parallel_by};
use fnv::FnvHasher;
use std::{hash::Hasher, io::Read, ops::Range};
use ureq::http::{HeaderValue, header};

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
    marks: VersionMarks,
}

/// Headers that change when an object does. Each is there if the server gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct VersionMarks {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

/// A web server lists nothing, so a pattern cannot be one.
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

/// Looks at objects: their sizes, and whether the server gives parts of them.
pub(super) fn open(urls: &[String], patience: &Patience) -> Result<RemoteObjects<Web>, DataError> {
    open_by(Client::new(Waits::default(), patience.stop.clone())?, urls, patience)
}

fn open_by(client: Client, urls: &[String], patience: &Patience) -> Result<RemoteObjects<Web>, DataError> {
    let targets = urls.iter().map(|url| {
        // Only the scheme is shown: a text that is no URL may have a password anywhere.
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        RequestUrl::new(url).ok_or_else(|| DataError::Option {
            option: "paths",
            problem: format!("a path that begins with `{scheme}://` is no URL"),
            advice: "write `https://host/folder/name`".into(),
        })
    });
    let targets = targets.collect::<Result<Vec<_>, _>>()?;
    let seen = in_parallel_by(LOOKS_AT_ONCE, &targets, |target| {
        patiently(patience, || look(&client, target)).map_err(|error| unreadable(&target.to_string(), error))
    })?;
    let list = seen.iter().map(|seen| Object {
        name: seen.target.to_string().into(),
        bytes: seen.bytes,
        tag: tag(&seen.marks, &seen.target),
    });
    Ok((list.collect(), Web { client, objects: seen }))
}

/// Asks for the first byte. Unlike HEAD, this works with signed URLs, and shows that parts are given.
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
    let marks = VersionMarks::of(&answer);
    // The body is read to its end, so that the connection is kept.
    _ = answer.body().take(1).read_to_end(&mut Vec::new());
    Ok(WebObject { target: target.clone(), bytes, marks })
}

impl VersionMarks {
    fn of(answer: &Answer) -> Self {
        let of = |name| answer.headers().get(name).cloned();
        Self { etag: of(header::ETAG), modified: of(header::LAST_MODIFIED) }
    }

    /// Whether an answer is of the same version of the object, as far as its headers tell.
    fn fit(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            (Some(one), Some(other)) => one == other,
            _ => self.modified.is_none() || other.modified.is_none() || self.modified == other.modified,
        }
    }
}

fn tag(marks: &VersionMarks, target: &RequestUrl) -> u64 {
    let mut hash = FnvHasher::default();
    let mark = marks.etag.as_ref().or(marks.modified.as_ref());
    hash.write(mark.map_or(&[], HeaderValue::as_bytes));
    hash.write_u8(0);
    // The name of an object has no query, but the query may tell objects apart.
    hash.write(target.unsigned_query().as_bytes());
    hash.finish()
}

impl Remote for Web {
    fn get(&self, object: usize, part: Range<u64>) -> Result<Box<dyn Read + Send + '_>, Refusal> {
        let WebObject { target, bytes, marks } = &self.objects[object];
        let answer = self.client.ask(target, Some(&part), marks.etag.as_ref())?;
        if !marks.fit(&VersionMarks::of(&answer)) {
            return Err(no(Some(answer.status()), CHANGED));
        }
        answer.into_part(&part, *bytes).map(|body| body as _)
    }

    fn beside(&self, object: usize, extension: &str) -> Result<Option<Vec<u8>>, Refusal> {
        match self.objects[object].target.with_extension(extension) {
            Some(target) => self.client.small(&target),
            None => Ok(None),
        }
    }
}
