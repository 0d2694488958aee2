//! Tar shards by WebDataset's rules.

use super::write::{Sample, Shard};
use burn_pinned::BoxError;
use std::{
    fs::File,
    io::{BufWriter, Write},
};
use tar::{Builder, Header};

/// The blocks that a tar is made of.
const BLOCK: u64 = 512;

pub(crate) struct TarShard {
    tar: Builder<BufWriter<File>>,
    bytes: u64,
}

impl TarShard {
    pub(crate) fn new(file: File) -> Self {
        Self { tar: Builder::new(BufWriter::new(file)), bytes: 2 * BLOCK } // the end
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<(), BoxError> {
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        self.tar.append_data(&mut header, name, bytes)?; // no time, no user: the same images give the same bytes
        self.bytes += BLOCK + (bytes.len() as u64).next_multiple_of(BLOCK);
        Ok(())
    }
}

impl Shard for TarShard {
    /// The key is the number of the sample: names of files may have dots, and two of them may differ in their ends alone.
    fn add(&mut self, sample: &Sample) -> Result<(), BoxError> {
        let Sample { number, extension, label, bytes, .. } = sample;
        self.file(&format!("{number:08}.{extension}"), bytes)?;
        self.file(&format!("{number:08}.cls"), label.to_string().as_bytes())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn end(self: Box<Self>) -> Result<(), BoxError> {
        let mut file = self.tar.into_inner()?;
        file.flush()?;
        Ok(file.get_ref().sync_all()?)
    }
}
