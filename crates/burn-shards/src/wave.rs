//! Sounds as `.wav` files have them.

use crate::{
    decode::{Decode, Decoded},
    error::DataError,
    files,
};
use hound::{SampleFormat, WavReader};
use serde::{Deserialize, Deserializer};
use std::{
    io::{self, BufReader, Cursor, Read},
    path::Path,
};

/// A sound of a `.wav` file: a field for the column `wav` of a tar, or for a column of such files.
///
/// ```no_run
/// use burn_shards::{Rows, Wave};
///
/// #[derive(serde::Deserialize)]
/// struct Row {
///     wav: Wave,
///     cls: usize,
/// }
///
/// let rows = Rows::<Row>::tar("speech-{000..099}.tar").open()?;
/// let lengths = rows.sizes("wav")?; // without reading the sounds
/// # Ok::<(), burn_shards::DataError>(())
/// ```
///
/// A file is a sound too, and its header tells the length for a sampler:
///
/// ```
/// use burn_shards::Wave;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("1.wav");
/// # let spec = hound::WavSpec { channels: 1, sample_rate: 16_000, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
/// # let mut writer = hound::WavWriter::create(&path, spec)?;
/// # (0..3i16).for_each(|sample| writer.write_sample(sample).unwrap());
/// # writer.finalize()?;
///
/// assert_eq!(Wave::len_of(&path)?, 3); // such as "sounds/1.wav"
/// let wave = Wave::open(&path)?;
/// assert_eq!((wave.samples.len(), wave.channels, wave.rate), (3, 1, 16_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Integers of 8, 16, 24 and 32 bits are read, and floats of 32. The error of another encoding, such as mu-law or floats of 64
/// bits, names it and says what to save instead.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wave {
    /// The samples, of all channels by turns. Integers are divided by their range, so they are from -1 to 1. Floats are as they are.
    pub samples: Vec<f32>,
    /// The number of channels.
    pub channels: u16,
    /// Samples of each channel in a second.
    pub rate: u32,
}

impl Wave {
    /// Reads a `.wav` file.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged or has another encoding. The error names the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let bytes = files::read(path).map_err(|source| cannot_open(path, source))?;
        Self::of(bytes, &path.display().to_string())
    }

    /// The number of [`samples`](Self::samples) in a `.wav` file, of all channels, from its header alone. Divide it by the channels
    /// and the rate for seconds.
    ///
    /// # Errors
    /// As [`open`](Self::open). Damage behind the header is not seen.
    pub fn len_of(path: impl AsRef<Path>) -> Result<usize, DataError> {
        let path = path.as_ref();
        let opened = files::regular(path).and_then(|()| files::open(path));
        let file = opened.map_err(|source| cannot_open(path, source))?;
        let bytes = file.metadata().map_err(|source| cannot_open(path, source))?.len();
        match header(BufReader::new(file), bytes) {
            Ok(reader) if reader.len() > 0 => Ok(reader.len() as usize),
            _ => Self::open(path).map(|wave| wave.samples.len()), // it says what is wrong
        }
    }

    fn of(bytes: Vec<u8>, object: &str) -> Result<Self, DataError> {
        Self::read(&bytes).map_err(|error| explain(&bytes, object, &error))
    }

    fn read(bytes: &[u8]) -> Result<Self, hound::Error> {
        let mut reader = header(Cursor::new(bytes), bytes.len() as u64)?;
        if reader.len() == 0 && has_no_length(bytes) {
            return Err(hound::Error::FormatError("no length"));
        }
        let spec = reader.spec();
        let samples: Result<Vec<f32>, _> = match (spec.sample_format, spec.bits_per_sample) {
            (SampleFormat::Float, _) => reader.samples::<f32>().collect(),
            (SampleFormat::Int, bits) => {
                let scale = 0.5_f64.powi(i32::from(bits) - 1);
                reader.samples::<i32>().map(|sample| Ok((f64::from(sample?) * scale) as f32)).collect()
            }
        };
        Ok(Self { samples: samples?, channels: spec.channels, rate: spec.sample_rate })
    }
}

/// The bytes of the shortest header.
const LEAST_HEADER: u64 = 44;

/// Reads the header of a file of this number of bytes.
fn header<R: Read>(reader: R, bytes: u64) -> Result<WavReader<R>, hound::Error> {
    let reader = WavReader::new(reader)?;
    // The header may claim any length, and memory for it would be taken before a sample is read.
    if u64::from(reader.len()) * u64::from(reader.spec().bits_per_sample.div_ceil(8))
        > bytes.saturating_sub(LEAST_HEADER)
    {
        return Err(hound::Error::FormatError("the header claims more samples than there are bytes"));
    }
    Ok(reader)
}

fn cannot_open(path: &Path, source: io::Error) -> DataError {
    DataError::Open { path: path.into(), source }
}

/// Says which encoding a file has that is not read, or else that it is damaged.
fn explain(bytes: &[u8], object: &str, error: &hound::Error) -> DataError {
    if bytes.is_empty() {
        return DataError::Empty { object: object.into() };
    }
    let format =
        bytes.windows(4).position(|some| some == b"fmt ").and_then(|at| bytes.get(at + 8..)).unwrap_or_default();
    let number = |at: usize| format.get(at..at + 2).map_or(0, |pair| u16::from_le_bytes([pair[0], pair[1]]));
    // An extensible header has the code of the encoding behind the usual fields.
    let (code, bits) = (if number(0) == 0xFFFE { number(24) } else { number(0) }, number(14));
    let is = match (code, bits) {
        _ if !bytes.starts_with(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") => "no `.wav` file".into(),
        (0, _) | (1, 8 | 16 | 24 | 32) | (3, 32) if has_no_length(bytes) => {
            let problem = "the length of its sound was never written: a recorder died, or the file came through a pipe";
            return DataError::damaged(object, format!("{problem} (`ffmpeg -i in.wav out.wav` mends it)"));
        }
        (0, _) | (1, 8 | 16 | 24 | 32) | (3, 32) => return DataError::damaged(object, error.to_string()),
        (1, _) => format!("a `.wav` file of integers of {bits} bits"),
        (3, _) => format!("a `.wav` file of floats of {bits} bits"),
        (6, _) => "a `.wav` file in A-law".into(),
        (7, _) => "a `.wav` file in mu-law".into(),
        _ => format!("a `.wav` file in the encoding {code:#06x}"),
    };
    let cure = "save it as a `.wav` file of integers of 8 to 32 bits, or of floats of 32".into();
    DataError::Format { object: object.into(), is, cure }
}

/// Whether the chunk of the samples claims none, or all that its field can say, and bytes follow.
fn has_no_length(bytes: &[u8]) -> bool {
    let at = bytes.windows(4).position(|some| some == b"data").map(|at| at + 4);
    let (claim, rest) = at.and_then(|at| bytes.get(at..)?.split_first_chunk::<4>()).unwrap_or((&[1, 0, 0, 0], &[]));
    // An empty sound may have a chunk of words behind it.
    let is_chunk = rest.get(..4).is_some_and(|name| name.iter().all(|byte| (b' '..=b'~').contains(byte)));
    match u32::from_le_bytes(*claim) {
        0 => !rest.is_empty() && !is_chunk,
        claim => claim == u32::MAX,
    }
}

impl Decode for Wave {
    type Error = DataError;

    fn decode(bytes: Vec<u8>) -> Result<Self, DataError> {
        Self::of(bytes, "the sound")
    }
}

impl<'de> Deserialize<'de> for Wave {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Decoded::deserialize(deserializer).map(|Decoded(wave)| wave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hound::{WavSpec, WavWriter};
    use std::fs;

    fn written(
        bits: u16,
        format: SampleFormat,
        channels: u16,
        write: impl Fn(&mut WavWriter<&mut Cursor<Vec<u8>>>),
    ) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        let spec = WavSpec { channels, sample_rate: 16_000, bits_per_sample: bits, sample_format: format };
        let mut writer = WavWriter::new(&mut file, spec).unwrap();
        write(&mut writer);
        writer.finalize().unwrap();
        file.into_inner()
    }

    #[test]
    fn integers_of_each_width_are_from_minus_one_to_one() {
        for bits in [8, 16, 24, 32] {
            let (low, half) = (-(1_i64 << (bits - 1)), 1_i64 << (bits - 2));
            let bytes = written(bits, SampleFormat::Int, 2, |file| {
                [low, 0, half, -half].into_iter().for_each(|sample| file.write_sample(sample as i32).unwrap());
            });
            let wave = Wave::decode(bytes).unwrap();
            assert_eq!(wave, Wave { samples: vec![-1.0, 0.0, 0.5, -0.5], channels: 2, rate: 16_000 }, "{bits} bits");
        }
        let floats = written(32, SampleFormat::Float, 1, |file| {
            [0.25_f32, -3.5].into_iter().for_each(|sample| file.write_sample(sample).unwrap());
        });
        assert_eq!(Wave::decode(floats).unwrap().samples, [0.25, -3.5]);
    }

    #[test]
    fn a_header_that_claims_too_much_is_an_error() {
        let good = written(16, SampleFormat::Int, 1, |file| file.write_sample(7_i16).unwrap());
        let at = good.windows(4).position(|some| some == b"data").unwrap() + 4;
        let mut long = good.clone();
        long[at..at + 4].copy_from_slice(&0xFFFF_FFF0_u32.to_le_bytes());
        assert!(Wave::decode(long).is_err());
        assert!(Wave::decode(good[..good.len() - 1].to_vec()).is_err());
        assert!(Wave::decode(Vec::new()).is_err());
    }

    #[test]
    fn a_length_that_was_never_written_is_an_error_that_says_so() {
        let good = written(16, SampleFormat::Int, 1, |file| (0..50).for_each(|n| file.write_sample(n as i16).unwrap()));
        let at = good.windows(4).position(|some| some == b"data").unwrap() + 4;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        for claim in [0, u32::MAX] {
            let mut file = good.clone();
            file[at..at + 4].copy_from_slice(&claim.to_le_bytes());
            let error = Wave::decode(file.clone()).unwrap_err().to_string();
            assert!(error.contains("never written") && error.contains("ffmpeg"), "{claim}: {error}");
            fs::write(&path, file).unwrap();
            assert!(Wave::len_of(&path).unwrap_err().to_string().contains("never written"));
        }
        let none = written(16, SampleFormat::Int, 1, |_| ());
        assert_eq!(Wave::decode(none).unwrap().samples, [0.0; 0]);
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_an_error() {
        let good = written(16, SampleFormat::Int, 1, |file| file.write_sample(7_i16).unwrap());
        for end in 0..good.len() {
            assert!(Wave::decode(good[..end].to_vec()).is_err(), "{end}");
        }
        assert!(Wave::decode(b"fmt ".to_vec()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_waited_for() {
        for open in [|| Wave::open("/dev/zero").map(drop), || Wave::len_of("/dev/zero").map(drop)] {
            assert!(open().unwrap_err().to_string().contains("/dev/zero"));
        }
    }

    #[test]
    fn another_encoding_is_named_and_is_no_damage() {
        let good = written(16, SampleFormat::Int, 1, |file| file.write_sample(7_i16).unwrap());
        let cases = [
            (3, 64, "a `.wav` file of floats of 64 bits"),
            (6, 8, "a `.wav` file in A-law"),
            (7, 8, "a `.wav` file in mu-law"),
            (1, 12, "a `.wav` file of integers of 12 bits"),
            (0x55, 0, "a `.wav` file in the encoding 0x0055"),
        ];
        for (code, bits, is) in cases {
            let mut file = good.clone();
            (file[20], file[34]) = (code, bits);
            let error = Wave::decode(file).unwrap_err().to_string();
            let cure = "save it as a `.wav` file of integers of 8 to 32 bits, or of floats of 32";
            assert_eq!(error, format!("the sound is {is}: {cure}"));
        }
        assert!(
            Wave::decode(b"fLaC and more".to_vec()).unwrap_err().to_string().starts_with("the sound is no `.wav` file")
        );
        assert!(Wave::decode(good[..45].to_vec()).unwrap_err().to_string().starts_with("the sound is damaged: "));
    }

    #[test]
    fn a_file_is_named_and_its_header_tells_the_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        let good = written(16, SampleFormat::Int, 2, |file| (0..6_i16).for_each(|n| file.write_sample(n).unwrap()));
        fs::write(&path, &good).unwrap();
        assert_eq!((Wave::len_of(&path).unwrap(), Wave::open(&path).unwrap().samples.len()), (6, 6));
        let name = path.display().to_string();
        for bytes in [&good[..50], &good[..20], b"", b"ID3 and more"] {
            fs::write(&path, bytes).unwrap();
            let errors =
                [Wave::len_of(&path).unwrap_err(), Wave::open(&path).unwrap_err()].map(|error| error.to_string());
            assert!(errors[0].starts_with(&name) && errors[0] == errors[1], "{errors:?}");
        }
        fs::remove_file(&path).unwrap();
        for error in [Wave::len_of(&path).unwrap_err(), Wave::open(&path).unwrap_err()] {
            assert!(error.to_string().starts_with(&format!("cannot open {name}")), "{error}");
        }
    }
}
