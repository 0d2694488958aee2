//! The chunks of a `.wav` file: what its samples are, and where they are. Chunks are followed by their lengths, not searched by name,
//! because other chunks may contain the same words.

use super::fault::AudioFault;
use std::{
    io::{self, Read, Seek},
    ops::Range,
};

/// The format of the samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleFormat {
    pub(super) channels: u16,
    pub(super) rate: u32,
    encoding: WavEncoding,
    /// The bytes of a sample. An integer of fewer bits is in their highest bits.
    width: u16,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum WavEncoding {
    Integer,
    Float,
    ALaw,
    MuLaw,
}

fn damaged<T>(problem: impl Into<String>) -> Result<T, AudioFault> {
    Err(AudioFault::Damaged(problem.into()))
}

/// The bytes before the first chunk, and those of the head of a chunk: its name and its length.
const START: u64 = 12;
const HEAD: u64 = 8;
/// The most bytes of a chunk that are read: those of an extensible `fmt `.
const LOOK: u64 = 40;

/// Reads the header of a file of this number of bytes: the format of its samples, and their range of bytes, which has whole samples of all
/// channels. `file` is at its start.
pub(super) fn header(file: &mut (impl Read + Seek), bytes: u64) -> Result<(SampleFormat, Range<u64>), AudioFault> {
    let start = some(file, START.min(bytes))?;
    let form = start.first_chunk::<4>().filter(|_| start.get(8..) == Some(b"WAVE")).ok_or(AudioFault::Other)?;
    // A 64-bit length of the samples is in a separate chunk.
    let is_long = match form {
        b"RIFF" => false,
        b"RF64" | b"BW64" => true,
        _ => return Err(AudioFault::Other),
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
const PIPED: &str = "the file came through a pipe (`ffmpeg -i in.wav out.wav` mends it)";

/// Which of the bytes after the head of the chunk are samples.
fn samples(file: &mut impl Read, format: SampleFormat, rest: Range<u64>, claim: u64) -> Result<Range<u64>, AudioFault> {
    // Another chunk may follow an empty sound.
    let next = if claim == 0 { some(file, (rest.end - rest.start).min(4))? } else { Vec::new() };
    let is_chunk = next.len() == 4 && next.iter().all(|byte| (b' '..=b'~').contains(byte));
    if claim == NEVER || !(next.is_empty() || is_chunk) {
        return damaged(format!("the length of its sound was never written: a recorder died, or {PIPED}"));
    }
    if claim > rest.end - rest.start {
        return damaged(format!("the header claims more samples than there are bytes: it is cut off, or {PIPED}"));
    }
    let frame = u64::from(format.width) * u64::from(format.channels);
    Ok(rest.start..rest.start + claim / frame * frame)
}

impl SampleFormat {
    /// The bytes of a sample.
    pub(super) fn width(&self) -> usize {
        self.width.into()
    }

    /// Whole samples, from -1 to 1 if they are no floats.
    pub(super) fn decode(&self, bytes: &[u8]) -> Vec<f32> {
        match (self.encoding, self.width) {
            (WavEncoding::ALaw, _) => bytes.iter().copied().map(a_law).collect(),
            (WavEncoding::MuLaw, _) => bytes.iter().copied().map(mu_law).collect(),
            (WavEncoding::Float, 4) => bytes.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)).collect(),
            (WavEncoding::Float, _) => {
                bytes.as_chunks().0.iter().map(|float| f64::from_le_bytes(*float) as f32).collect()
            }
            (_, 1) => bytes.iter().map(|byte| integer([byte ^ 0x80])).collect(), // from 0 to 255
            (_, 2) => bytes.as_chunks::<2>().0.iter().copied().map(integer).collect(),
            (_, 3) => bytes.as_chunks::<3>().0.iter().copied().map(integer).collect(),
            _ => bytes.as_chunks::<4>().0.iter().copied().map(integer).collect(),
        }
    }

    /// Parses a chunk `fmt `.
    fn of(chunk: &[u8]) -> Result<Self, AudioFault> {
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
            EXTENSIBLE => return Err(AudioFault::Encoding("a `.wav` file in an encoding of a program's own".into())),
            code => code,
        };
        let encoding = match (code, bits) {
            (1, 1..=32) => WavEncoding::Integer,
            (3, 32 | 64) => WavEncoding::Float,
            (6, _) => WavEncoding::ALaw, // of 8 bits, whatever the header says
            (7, _) => WavEncoding::MuLaw,
            (0, _) => return damaged("its chunk `fmt ` names no encoding"),
            (1, _) => return Err(AudioFault::Encoding(format!("a `.wav` file of integers of {bits} bits"))),
            (3, _) => return Err(AudioFault::Encoding(format!("a `.wav` file of floats of {bits} bits"))),
            (2 | 0x11, _) => return Err(AudioFault::Encoding("a `.wav` file in ADPCM".into())),
            (0x55, _) => return Err(AudioFault::Encoding("a `.wav` file with MP3 in it".into())),
            _ => return Err(AudioFault::Encoding(format!("a `.wav` file in the encoding {code:#06x}"))),
        };
        if channels == 0 || rate == 0 {
            return damaged(if rate == 0 { "its rate is 0 Hz" } else { "it has no channels" });
        }
        // Integers may have more bytes than their bits need. Up to 16 bits it is an error of the writer, if the bytes of a second are of fewer.
        let least = bits.div_ceil(8);
        let fewer = u64::from(rate) * u64::from(channels) * u64::from(least);
        let is_wide = bits > 16 || u64::from(word(chunk, 8)) != fewer;
        let width = match (encoding, block / channels, block % channels) {
            (WavEncoding::ALaw | WavEncoding::MuLaw, ..) => 1,
            (WavEncoding::Integer, width, 0) if is_wide && (least..=4).contains(&width) => width,
            _ => least,
        };
        Ok(Self { channels, rate, encoding, width })
    }
}

/// An integer of this number of bytes, from -1 to 1.
fn integer<const BYTES: usize>(bytes: [u8; BYTES]) -> f32 {
    let mut word = [0; 4];
    word[4 - BYTES..].copy_from_slice(&bytes);
    i32::from_le_bytes(word) as f32 / 2_147_483_648.0
}

/// A-law of G.711: 13 bits.
fn a_law(byte: u8) -> f32 {
    let byte = byte ^ 0x55;
    let (exponent, mantissa) = (byte >> 4 & 7, i32::from(byte & 15));
    let steps = if exponent == 0 { 2 * mantissa + 1 } else { (2 * mantissa + 33) << (exponent - 1) };
    (if byte & 0x80 == 0 { -steps } else { steps }) as f32 / 4096.0
}

/// Mu-law of G.711: 14 bits.
fn mu_law(byte: u8) -> f32 {
    let byte = !byte;
    let steps = ((2 * i32::from(byte & 15) + 33) << (byte >> 4 & 7)) - 33;
    (if byte & 0x80 == 0 { steps } else { -steps }) as f32 / 8192.0
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
