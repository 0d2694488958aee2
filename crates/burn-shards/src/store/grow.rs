//! Memory that grows as bytes arrive, because their number is only a claim of a file or a server.

use super::Store;
use std::{
    io::{self, Read},
    ops::Range,
};

/// For a claim of at most this number of bytes, the memory is allocated at once.
pub(crate) const BELIEVED_BYTES: u64 = 16 << 20;

/// Reads a part of an object, on the calling thread.
///
/// # Errors
/// Those of [`Store::read`], and if there is no memory for it.
pub(super) fn whole(store: &dyn Store, object: usize, part: Range<u64>) -> io::Result<Vec<u8>> {
    let bytes = part.end.saturating_sub(part.start);
    if bytes <= BELIEVED_BYTES {
        return grown(bytes, |all| store.read(object, part.start, all));
    }
    let mut from = store.open(object, part)?;
    grown(bytes, |more| from.read_exact(more))
}

/// Returns `bytes` bytes. `fill` is called for pieces of them, in order.
pub(super) fn grown(bytes: u64, mut fill: impl FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut all = vec![0; bytes.min(BELIEVED_BYTES) as usize];
    fill(&mut all)?;
    while (all.len() as u64) < bytes {
        let (here, left) = (all.len(), bytes - all.len() as u64);
        let more = here.min(usize::try_from(left).unwrap_or(usize::MAX));
        all.try_reserve_exact(more)?;
        all.resize(here + more, 0);
        fill(&mut all[here..])?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has zeros up to a place, whatever it claims.
    #[derive(Debug)]
    struct Zeros(u64);

    impl Store for Zeros {
        fn open(&self, _: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
            Ok(Box::new(io::repeat(0).take(self.0.saturating_sub(part.start))))
        }
    }

    #[test]
    fn memory_grows_as_bytes_come() {
        for bytes in [0, 1, BELIEVED_BYTES, BELIEVED_BYTES + 1, 5 * BELIEVED_BYTES + 3] {
            let all = whole(&Zeros(u64::MAX), 0, 7..7 + bytes).unwrap();
            assert!(all.len() as u64 == bytes && all.iter().all(|byte| *byte == 0), "{bytes}");
        }
        // The claim is more than any machine has.
        let error = whole(&Zeros(3 * BELIEVED_BYTES), 0, 0..1 << 60).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
