//! The chunks of a `.wav` file: what its samples are, and where they are. Chunks are followed by their lengths, not searched by name,
//! because other chunks may contain the same words.

use std::{
    io::{self, Read, Seek},
    ops::Range,
};

/// The format of the samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleFormat {
    pub(super) channels: u16,
    pub(super) rate: u32,
    /// Whether they are floats of 32 bits. Otherwise they are integers.
    pub(super) is_float: bool,
    /// The bytes of a sample. An integer of fewer bits is in their highest bits.
    pub(super) width: u16,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum RiffError {
    Io(io::Error),
    /// It does not begin like a `.wav` file.
    Other,
    /// It is a `.wav` file with this encoding.
    Encoding(String),
    Damaged(String),
}

impl From<io::Error> for RiffError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn damaged<T>(problem: impl Into<String>) -> Result<T, RiffError> {
    Err(RiffError::Damaged(problem.into()))
}

/// The bytes before the first chunk, and those of the head of a chunk: its name and its length.
const START: u64 = 12;
const HEAD: u64 = 8;
/// The most bytes of a chunk that are read: those of an extensible `fmt `.
const LOOK: u64 = 40;

/// Reads the header of a file of this number of bytes: the format of its samples, and their range of bytes, which has whole samples of all
/// channels. `file` is at its start.
pub(super) fn header(file: &mut (impl Read + Seek), bytes: u64) -> Result<(SampleFormat, Range<u64>), RiffError> {
    let start = some(file, START.min(bytes))?;
    let form = start.first_chunk::<4>().filter(|_| start.get(8..) == Some(b"WAVE")).ok_or(RiffError::Other)?;
    // A 64-bit length of the samples is in a separate chunk.
    let is_long = match form {
        b"RIFF" => false,
        b"RF64" | b"BW64" => true,
        _ => return Err(RiffError::Other),
    };
    let (mut at, mut format, mut long) = (START, None, None);
    while at + HEAD <= bytes {
        let head = some(file, HEAD)?;
        let (name, claim) = (&head[..4], word(&head, 4));
        at += HEAD;
        if name == b"data" {
            let Some(format) = format else { return damaged("its samples come before the chunk `fmt `") };
            let claim = match long {
                Some(long) if is_long && claim == u32::MAX => long,
                _ => claim.into(),
            };
            return Ok((format, samples(file, format, at..bytes, claim)?));
        }
        let read = u64::from(claim).min(LOOK).min(bytes - at);
        let body = if matches!(name, b"fmt " | b"ds64") { some(file, read)? } else { Vec::new() };
        match name {
            b"fmt " => format = Some(SampleFormat::of(&body)?),
            b"ds64" if body.len() >= 16 => long = Some(u64::from(word(&body, 8)) | u64::from(word(&body, 12)) << 32),
            _ => {}
        }
        let end = u64::from(claim) + u64::from(claim % 2); // with the padding after an odd chunk
        file.seek_relative((end - body.len() as u64) as i64)?;
        at += end;
    }
    damaged("it ends before its samples begin")
}

/// The length of a chunk whose length was unknown when its head was written.
const NEVER: u64 = u32::MAX as u64;

/// Which of the bytes after the head of the chunk are samples.
fn samples(file: &mut impl Read, format: SampleFormat, rest: Range<u64>, claim: u64) -> Result<Range<u64>, RiffError> {
    // Another chunk may follow an empty sound.
    let next = if claim == 0 { some(file, (rest.end - rest.start).min(4))? } else { Vec::new() };
    let is_chunk = next.len() == 4 && next.iter().all(|byte| (b' '..=b'~').contains(byte));
    if claim == NEVER || !(next.is_empty() || is_chunk) {
        return damaged(
            "the length of its sound was never written: a recorder died, or the file came through a pipe \
             (`ffmpeg -i in.wav out.wav` mends it)",
        );
    }
    if claim > rest.end - rest.start {
        return damaged("the header claims more samples than there are bytes");
    }
    let frame = u64::from(format.width) * u64::from(format.channels);
    Ok(rest.start..rest.start + claim / frame * frame)
}

impl SampleFormat {
    /// Parses a chunk `fmt `.
    fn of(chunk: &[u8]) -> Result<Self, RiffError> {
        const EXTENSIBLE: u16 = 0xFFFE;
        if chunk.len() < 16 {
            return damaged("its chunk `fmt ` is too short");
        }
        let number = |at: usize| chunk.get(at..at + 2).map_or(0, |pair| u16::from_le_bytes([pair[0], pair[1]]));
        let (code, channels, rate, block, bits) = (number(0), number(2), word(chunk, 4), number(12), number(14));
        // An extensible chunk has the code of the encoding in a GUID after the usual fields.
        let code = match code {
            EXTENSIBLE if chunk.len() < 40 => return damaged("its chunk `fmt ` is too short"),
            EXTENSIBLE if SUBTYPES.contains(&&chunk[26..40]) => number(24),
            EXTENSIBLE => return Err(RiffError::Encoding("in an encoding of a program's own".into())),
            code => code,
        };
        let is_float = match (code, bits) {
            (1, 1..=32) => false,
            (3, 32) => true,
            (0, _) => return damaged("its chunk `fmt ` names no encoding"),
            (1, _) => return Err(RiffError::Encoding(format!("of integers of {bits} bits"))),
            (3, _) => return Err(RiffError::Encoding(format!("of floats of {bits} bits"))),
            (6, _) => return Err(RiffError::Encoding("in A-law".into())),
            (7, _) => return Err(RiffError::Encoding("in mu-law".into())),
            (2 | 0x11, _) => return Err(RiffError::Encoding("in ADPCM".into())),
            (0x55, _) => return Err(RiffError::Encoding("with MP3 in it".into())),
            _ => return Err(RiffError::Encoding(format!("in the encoding {code:#06x}"))),
        };
        if channels == 0 || rate == 0 {
            return damaged(if rate == 0 { "its rate is 0 Hz" } else { "it has no channels" });
        }
        // Integers may have more bytes than their bits need. A block size that does not match is an error of the writer.
        let least = bits.div_ceil(8);
        let width = match (block / channels, block % channels) {
            (width, 0) if !is_float && (least..=4).contains(&width) => width,
            _ => least,
        };
        Ok(Self { channels, rate, is_float, width })
    }
}

/// The ends of GUIDs that begin with the code of an encoding: Microsoft's, and the ambisonic ones.
pub(super) const SUBTYPES: [&[u8]; 2] =
    [b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", b"\0\0\x21\x07\xd3\x11\x86\x44\xc8\xc1\xca\0\0\0"];

/// This number of bytes, or fewer if the file was truncated.
fn some(file: &mut impl Read, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    if (read.len() as u64) < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(read)
}

/// Four bytes, which must exist.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}
