//! The audio of `.wav` files.

mod riff;

use crate::{
    error::DataError,
    row::decode::{Decode, Decoded},
    source::magic,
    system::files,
};
use riff::{RiffError, header};
use serde::{Deserialize, Deserializer};
use std::{
    io::{self, BufReader, Cursor},
    path::Path,
};

/// The audio of a `.wav` file: a field for the column `wav` of a tar, or for a column of such files.
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
/// let lengths = rows.sizes("wav")?; // without reading the audio
/// # Ok::<(), burn_shards::DataError>(())
/// ```
///
/// It can also read a single file, whose header gives the length for a sampler:
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
/// Integers of up to 32 bits and floats of 32 bits are supported. Integers may take more bytes than their bits need; the bits are then the
/// highest. Files over 4 GB are supported as RF64 or BW64. Other encodings, such as mu-law, floats of 64 bits, FLAC, MP3 and Ogg, are
/// errors, which name the encoding and say what to save instead.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wave {
    /// The samples, with the channels interleaved. Integers are scaled to the range from -1 to 1. Floats are unchanged.
    pub samples: Vec<f32>,
    /// The number of channels.
    pub channels: u16,
    /// The sample rate: samples of each channel per second.
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
        Self::of(&bytes, &path.display().to_string())
    }

    /// The number of [`samples`](Self::samples) in a `.wav` file, over all channels, from its header alone. Divided by the channels and the
    /// rate, it is the duration in seconds.
    ///
    /// # Errors
    /// As for [`open`](Self::open). Damage after the header is not detected.
    pub fn len_of(path: impl AsRef<Path>) -> Result<usize, DataError> {
        let path = path.as_ref();
        let opened = files::regular(path).and_then(|()| files::open(path));
        let file = opened.map_err(|source| cannot_open(path, source))?;
        let bytes = file.metadata().map_err(|source| cannot_open(path, source))?.len();
        match header(&mut BufReader::new(file), bytes) {
            Ok((format, samples)) => {
                let count = (samples.end - samples.start) / u64::from(format.width);
                Ok(usize::try_from(count).unwrap_or(usize::MAX))
            }
            Err(RiffError::Io(source)) => Err(cannot_open(path, source)),
            Err(_) => Self::open(path).map(|wave| wave.samples.len()), // its error says what is wrong
        }
    }

    fn of(bytes: &[u8], object: &str) -> Result<Self, DataError> {
        let (format, samples) =
            header(&mut Cursor::new(bytes), bytes.len() as u64).map_err(|wrong| explain(bytes, object, wrong))?;
        let (start, end) = (samples.start as usize, samples.end as usize); // they are in the bytes
        let bytes = &bytes[start..end];
        let samples = match format.width {
            _ if format.is_float => bytes.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)).collect(),
            1 => bytes.iter().map(|byte| integer([byte ^ 0x80])).collect(), // from 0 to 255
            2 => bytes.as_chunks::<2>().0.iter().copied().map(integer).collect(),
            3 => bytes.as_chunks::<3>().0.iter().copied().map(integer).collect(),
            _ => bytes.as_chunks::<4>().0.iter().copied().map(integer).collect(),
        };
        Ok(Self { samples, channels: format.channels, rate: format.rate })
    }
}

/// An integer of this number of bytes, from -1 to 1.
fn integer<const BYTES: usize>(bytes: [u8; BYTES]) -> f32 {
    let mut word = [0; 4];
    word[4 - BYTES..].copy_from_slice(&bytes);
    i32::from_le_bytes(word) as f32 / 2_147_483_648.0
}

fn cannot_open(path: &Path, source: io::Error) -> DataError {
    DataError::Open { path: path.into(), source }
}

/// Audio files that are not `.wav`, by how they begin.
const OTHERS: [(&[u8], &str); 9] = [
    (b"fLaC", "a FLAC file"),
    (b"OggS", "an Ogg file"),
    (b"ID3", "an MP3 file"),
    (b"FORM", "an AIFF file"),
    (b"RIFX", "a `.wav` file whose numbers begin with their high bytes"),
    (b"wvpk", "a WavPack file"),
    (b"NIST_1A", "a file of NIST's form SPHERE"), // as TIMIT has them, named `.wav`
    (b".snd", "a file of Sun's form AU"),
    (b"caff", "a file of Apple's form CAF"),
];

/// The error for a file that is not supported. It says what the file is.
fn explain(bytes: &[u8], object: &str, wrong: RiffError) -> DataError {
    let is = match wrong {
        _ if bytes.is_empty() => return DataError::Empty { object: object.into() },
        RiffError::Damaged(problem) => return DataError::damaged(object, problem),
        RiffError::Io(error) => return DataError::damaged(object, error.to_string()),
        RiffError::Encoding(encoding) => format!("a `.wav` file {encoding}"),
        RiffError::Other => match (OTHERS.iter().find(|(mark, _)| bytes.starts_with(mark)), bytes) {
            (Some((_, is)), _) => (*is).into(),
            // Eleven bits that are set, and then no reserved version or layer.
            (None, [0xFF, byte, ..]) if byte & 0xE0 == 0xE0 && byte & 0x18 != 0x08 && byte & 0x06 != 0 => {
                "an MP3 file".into()
            }
            (None, [0xFF, 0xF0 | 0xF1 | 0xF8 | 0xF9, ..]) => "an AAC file".into(),
            (None, [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..])
                if ![b"avi", b"hei", b"mif", b"msf"].iter().any(|image| brand.starts_with(*image)) =>
            {
                "an MP4 or M4A file".into()
            }
            (None, _) => match magic::other_format(object, bytes) {
                Some(error) => return error,
                None => "no `.wav` file".into(),
            },
        },
    };
    let cure = "save it as a `.wav` file of integers of 8 to 32 bits, or of floats of 32";
    DataError::format(object, is, cure)
}

impl Decode for Wave {
    type Error = DataError;

    fn decode(bytes: Vec<u8>) -> Result<Self, DataError> {
        Self::of(&bytes, "the sound")
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
    use hound::{SampleFormat, WavSpec, WavWriter};
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
            (1, 40, "a `.wav` file of integers of 40 bits"),
            (0x55, 0, "a `.wav` file with MP3 in it"),
            (0x11, 4, "a `.wav` file in ADPCM"),
            (0x61, 0, "a `.wav` file in the encoding 0x0061"),
        ];
        for (code, bits, is) in cases {
            let mut file = good.clone();
            (file[20], file[34]) = (code, bits);
            let error = Wave::decode(file).unwrap_err().to_string();
            let cure = "save it as a `.wav` file of integers of 8 to 32 bits, or of floats of 32";
            assert_eq!(error, format!("the sound is {is}: {cure}"));
        }
        let others: [(&[u8], &str); 15] = [
            (b"fLaC\0\0\0\x22", "a FLAC file"),
            (b"OggS\0\x02", "an Ogg file"),
            (b"ID3\x04\0", "an MP3 file"),
            (b"\xff\xfb\x90\x64", "an MP3 file"),
            (b"FORM\0\0\0\x2eAIFF", "an AIFF file"),
            (b"PAR1", "a Parquet file"),
            (b"words", "no `.wav` file"),
            (b"\xff\xf1\x50\x80", "an AAC file"),
            (b"\0\0\0\x20ftypM4A ", "an MP4 or M4A file"),
            (b"NIST_1A\n   1024\n", "a file of NIST's form SPHERE"),
            (b".snd\0\0\0\x18", "a file of Sun's form AU"),
            (b"caff\0\x01\0\0", "a file of Apple's form CAF"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "a pointer of Git LFS"),
            (b"<!DOCTYPE html>\n<html>", "an answer of a web server (HTML, XML or an error)"),
            (b"\x93NUMPY\x01\0", "a NumPy array (.npy)"),
        ];
        for (bytes, is) in others {
            let error = Wave::decode(bytes.to_vec()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the sound is {is}: ")), "{error}");
        }
        let jpeg = Wave::decode(b"\xff\xd8\xff\xe0".to_vec()).unwrap_err().to_string();
        assert!(!jpeg.contains("MP3"), "{jpeg}");
        assert!(Wave::decode(good[..45].to_vec()).unwrap_err().to_string().starts_with("the sound is damaged: "));
    }

    /// A file of chunks. An odd one has a byte of padding.
    fn chunks(form: &[u8], chunks: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut file = [form, b"\0\0\0\0WAVE"].concat();
        for (name, body) in chunks {
            file.extend_from_slice(name);
            file.extend((body.len() as u32).to_le_bytes());
            file.extend_from_slice(body);
            file.resize(file.len().next_multiple_of(2), 0);
        }
        file
    }

    /// The 16 bytes of a chunk `fmt ` of one channel. The rate of bytes is 0, as some programs leave it.
    fn format(code: u16, width: u16, bits: u16) -> Vec<u8> {
        [code, 1, 8000, 0, 0, 0, width, bits].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn extensible(width: u16, valid: u16, code: u16, more: &[u8]) -> Vec<u8> {
        let size = 22 + more.len() as u16;
        let behind = [size.to_le_bytes(), valid.to_le_bytes(), [4, 0], [0, 0], code.to_le_bytes()].concat();
        [&format(0xFFFE, width, width * 8), &*behind, riff::SUBTYPES[0], more].concat()
    }

    const HALVES: [u8; 6] = [0, 0, 0, 0x40, 0, 0xC0];

    /// What a file is, by both ways to it.
    fn read(file: &[u8]) -> Result<Vec<f32>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        fs::write(&path, file).unwrap();
        let (length, wave) = (Wave::len_of(&path), Wave::open(&path));
        match (&wave, &length) {
            (Ok(wave), Ok(length)) => assert_eq!(wave.samples.len(), *length),
            (wave, length) => assert_eq!(wave.is_ok(), length.is_ok(), "{wave:?}, {length:?}"),
        }
        wave.map(|wave| wave.samples).map_err(|error| error.to_string())
    }

    #[test]
    fn integers_of_fewer_bits_than_their_bytes_lie_at_the_top() {
        let three: &[u8] = &[0, 0, 0, 0, 0, 0x40, 0, 0, 0xC0];
        let four: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0xC0];
        let cases: [(Vec<u8>, &[u8]); 9] = [
            (extensible(4, 24, 1, b""), four),
            (extensible(4, 20, 1, b""), four),
            (extensible(3, 20, 1, b""), three),
            (extensible(2, 12, 1, b"\0\0"), &HALVES),
            (format(1, 2, 12), &HALVES),
            (format(1, 3, 20), three),
            (format(1, 4, 20), four),
            (format(1, 1, 5), &[0x80, 0xC0, 0x40]),
            (format(1, 5, 16), &HALVES), // a block that no sample has
        ];
        for (format, samples) in cases {
            let file = chunks(b"RIFF", &[(b"fmt ", &format), (b"data", samples)]);
            assert_eq!(read(&file).unwrap(), [0.0, 0.5, -0.5], "{format:?}");
        }
        let least = [0, 1, 0, 0];
        let file = chunks(b"RIFF", &[(b"fmt ", &extensible(4, 24, 1, b"")), (b"data", &least)]);
        assert_eq!(read(&file).unwrap(), [0.5_f32.powi(23)]);
    }

    #[test]
    fn chunks_of_all_lengths_and_in_any_order_before_the_samples_are_passed_over() {
        type Chunk<'a> = (&'a [u8], &'a [u8]);
        let (fmt, data): (Chunk<'_>, Chunk<'_>) = ((b"fmt ", &format(1, 2, 16)), (b"data", &HALVES));
        let longer = |bytes: usize| [format(1, 2, 16), vec![0; bytes - 16]].concat();
        let words = b"INFOdata\x02\0\0\0zzfmt \x02\0\0\0yy";
        let files: [Vec<u8>; 12] = [
            chunks(b"RIFF", &[fmt, (b"LIST", b"INFOodd"), data]),
            chunks(b"RIFF", &[(b"JUNK", &[7; 29]), fmt, data, (b"LIST", b"INFO")]),
            chunks(b"RIFF", &[(b"LIST", words), fmt, (b"LIST", words), data]),
            chunks(b"RIFF", &[fmt, (b"fact", &[3, 0, 0, 0]), data]),
            chunks(b"RIFF", &[fmt, (b"fact", &[3, 0, 0, 0, 0, 0, 0, 0]), data]),
            chunks(b"RIFF", &[(b"fmt ", &longer(18)), data]),
            chunks(b"RIFF", &[(b"fmt ", &longer(20)), data]),
            chunks(b"RIFF", &[(b"fmt ", &longer(40)), data]),
            chunks(b"RIFF", &[(b"fmt ", &longer(99)), data]),
            chunks(b"RIFF", &[fmt, (b"data", &[&HALVES[..], &[9]].concat())]), // half a sample
            chunks(b"RF64", &[(b"ds64", &[0; 28]), fmt, data]),
            chunks(b"BW64", &[fmt, data]),
        ];
        for (number, file) in files.iter().enumerate() {
            assert_eq!(read(file).as_deref(), Ok(&[0.0, 0.5, -0.5][..]), "file {number}");
        }
        let floats = [0.5_f32, -2.5].map(f32::to_le_bytes).concat();
        for bytes in [16, 18, 20, 40] {
            let format = [format(3, 4, 32), vec![0; bytes - 16]].concat();
            let file = chunks(b"RIFF", &[(b"fmt ", &format), (b"data", &floats)]);
            assert_eq!(read(&file).as_deref(), Ok(&[0.5, -2.5][..]), "{bytes} bytes");
        }
        let file = chunks(b"RIFF", &[(b"fmt ", &extensible(4, 32, 3, b"")), (b"data", &floats)]);
        assert_eq!(read(&file).as_deref(), Ok(&[0.5, -2.5][..]));
    }

    #[test]
    fn with_64_bits_the_length_is_in_a_chunk_of_its_own() {
        let long = |bytes: u64| [[0; 8], bytes.to_le_bytes(), [0; 8]].concat();
        let of = |form: &[u8], before: &[(&[u8], &[u8])]| {
            let (format, mut file) = (format(1, 2, 16), chunks(form, before));
            file.extend(&chunks(form, &[(b"fmt ", &format)])[12..]);
            file.extend([&b"data\xff\xff\xff\xff"[..], &HALVES, b"LIST\x04\0\0\0INFO"].concat());
            read(&file)
        };
        for form in [b"RF64", b"BW64"] {
            assert_eq!(of(form, &[(b"ds64", &long(6))]).as_deref(), Ok(&[0.0, 0.5, -0.5][..]));
            assert!(of(form, &[(b"ds64", &long(1 << 40))]).unwrap_err().contains("claims more"));
            assert!(of(form, &[(b"ds64", &long(u64::MAX))]).unwrap_err().contains("claims more"));
            assert!(of(form, &[]).unwrap_err().contains("never written"));
        }
        assert!(of(b"RIFF", &[(b"ds64", &long(6))]).unwrap_err().contains("never written"));
    }

    #[test]
    fn a_header_that_makes_no_sense_is_an_error() {
        let data = (&b"data"[..], &HALVES[..]);
        let mut cases = vec![
            (chunks(b"RIFF", &[(b"fmt ", &format(1, 2, 16))]), "before its samples"),
            (chunks(b"RIFF", &[data, (b"fmt ", &format(1, 2, 16))]), "before the chunk `fmt `"),
            (chunks(b"RIFF", &[(b"fmt ", &format(1, 2, 16)[..14]), data]), "too short"),
            (chunks(b"RIFF", &[(b"fmt ", &extensible(2, 16, 1, b"")[..38]), data]), "too short"),
            (chunks(b"RIFF", &[(b"fmt ", &format(0, 2, 16)), data]), "names no encoding"),
        ];
        for (places, problem) in [(4..8, "0 Hz"), (2..4, "no channels")] {
            let mut format = format(1, 2, 16);
            format[places].fill(0);
            cases.push((chunks(b"RIFF", &[(b"fmt ", &format), data]), problem));
        }
        let mut own = extensible(2, 16, 1, b"");
        own[30] = 9;
        cases.push((chunks(b"RIFF", &[(b"fmt ", &own), data]), "of a program's own"));
        for (file, problem) in cases {
            let error = read(&file).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
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
