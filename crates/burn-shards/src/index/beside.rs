//! Where something else is saved than an index: one file for all objects together, beside their indices.

use super::{Place, bound, is_own};
use crate::{options::Options, store::Objects};
use fnv::FnvHasher;
use std::{hash::Hasher, path::PathBuf};

/// A place for a file, and what tells whether a file there is of these objects.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) path: PathBuf,
    /// Another number if the objects have other names, sizes or tags, or if something else made the file.
    pub(crate) mark: u64,
    /// Another number if an object is another one. 0 if that is not known; see
    /// [`Store::identity`](crate::store::Store::identity).
    pub(crate) identity: u64,
    is_own: bool,
}

impl Beside {
    /// The place of a file of this kind that was `made_by` something. `None` if there is no folder for it.
    pub(crate) fn of(objects: &Objects, kind: &str, made_by: &str, options: &Options) -> Option<Self> {
        let Place { path, marks } = Place::named(objects, kind, made_by, options)?;
        let (mut mark, mut identity) = (FnvHasher::default(), FnvHasher::default());
        for (object, name) in objects.list().iter().zip(&marks.names) {
            [*name, object.bytes, object.tag].iter().for_each(|word| mark.write_u64(*word));
        }
        mark.write(made_by.as_bytes());
        marks.identities.iter().for_each(|one| identity.write_u64(*one));
        let is_known = marks.identities.iter().all(|one| *one != 0);
        let identity = if is_known { identity.finish() } else { 0 };
        Some(Self { path, mark: mark.finish(), identity, is_own: is_own(objects, options) })
    }

    /// Notes that the file is used, so that it stays in a folder of the user's cache.
    pub(crate) fn note_use(&self) {
        if self.is_own {
            bound::note_use(&self.path);
        }
    }
}
