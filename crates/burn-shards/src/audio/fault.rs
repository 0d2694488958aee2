//! What is wrong with a file, and the error that says what the file is and what to do.

use crate::{error::DataError, source::magic};
use std::io;
use symphonia::core::errors::Error as CodecError;

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum AudioFault {
    Io(io::Error),
    /// It does not begin like a file that is read here.
    Other,
    /// It is a sound of this kind, which is not supported.
    Encoding(String),
    Damaged(String),
}

impl From<io::Error> for AudioFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<CodecError> for AudioFault {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::IoError(error) => Self::Io(error),
            CodecError::Unsupported(what) => Self::Encoding(format!("a sound that is not supported ({what})")),
            CodecError::DecodeError(problem) => Self::Damaged(problem.into()),
            error => Self::Damaged(error.to_string()),
        }
    }
}

/// Sounds that are not supported, by some of their first bytes and where these are.
const OTHERS: [(usize, &[u8], &str); 14] = [
    (0, b"RIFX", "a `.wav` file whose numbers begin with their high bytes"),
    (0, b"wvpk", "a WavPack file"),
    (0, b"NIST_1A", "a file of NIST's form SPHERE"), // as TIMIT has them, named `.wav`
    (0, b".snd", "a file of Sun's form AU"),
    (0, b"caff", "a file of Apple's form CAF"),
    (0, b"MThd", "a MIDI file"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "a WMA file"),
    (0, b"riff\x2e\x91\xcf\x11", "a W64 file"),
    (0, b"Creative Voice File", "a VOC file"),
    (0, b"\x0b\x77", "an AC-3 file"),
    (0, b"TTA", "a TTA file"),
    (0, b"FLV", "a Flash video"),
    (28, b"OpusHead", "an Ogg file with Opus in it"),
    (28, b"Speex   ", "an Ogg file with Speex in it"),
];

/// The error for a file.
pub(super) fn explain(bytes: &[u8], object: &str, fault: AudioFault) -> DataError {
    const CURE: &str = "save it as FLAC, or as a `.wav` file of integers of 8 to 32 bits or of floats";
    let begins = |at: usize, mark: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(mark));
    if bytes.is_empty() {
        return DataError::Empty { object: object.into() };
    }
    if let Some((_, _, is)) = OTHERS.iter().find(|(at, mark, _)| begins(*at, mark)) {
        return DataError::format(object, *is, CURE);
    }
    let is_sound = magic::is_sound(bytes);
    if let Some(error) = magic::other_format(object, bytes).filter(|_| !is_sound) {
        return error;
    }
    match fault {
        _ if !is_sound && !begins(0, b"\xff") => DataError::format(object, "no sound", CURE),
        AudioFault::Other => DataError::format(object, "no sound", CURE),
        AudioFault::Encoding(is) => DataError::format(object, is, CURE),
        AudioFault::Damaged(problem) => DataError::damaged(object, problem),
        AudioFault::Io(error) => DataError::damaged(object, error.to_string()),
    }
}
