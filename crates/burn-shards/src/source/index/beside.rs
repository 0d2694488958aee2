//! Where something else is saved than an index: one file for all objects together, beside their indices.

use super::{IndexPlace, bound, is_own};
use crate::store::{Objects, options::Options};
use fnv::FnvHasher;
use std::{hash::Hasher, path::PathBuf};

/// A place for a file, and what tells whether a file there is of these objects.
#[derive(Debug)]
pub(crate) struct FileBeside {
    pub(crate) path: PathBuf,
    /// Another number if the objects have other names, sizes or tags, or if something else made the file.
    pub(crate) mark: u64,
}

impl FileBeside {
    /// The place of a file of this kind that was `made_by` something. `None` if there is no folder for it.
    pub(crate) fn of(objects: &Objects, kind: &str, made_by: &str, options: &Options) -> Option<Self> {
        let IndexPlace { path, marks } = IndexPlace::named(objects, kind, made_by, options)?;
        if is_own(objects, options) {
            bound::note_use(&path);
        }
        let mut mark = FnvHasher::default();
        for (object, name) in objects.list().iter().zip(&marks.names) {
            [*name, object.bytes, object.tag].iter().for_each(|word| mark.write_u64(*word));
        }
        mark.write(made_by.as_bytes());
        Some(Self { path, mark: mark.finish() })
    }
}
