use super::*;
use crate::audio::wav::SUBTYPES;
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
        let audio = Audio::decode(bytes).unwrap();
        assert_eq!((audio.channels(), audio.rate()), (2, 16_000));
        assert_eq!(*audio.samples().unwrap(), [-1.0, 0.0, 0.5, -0.5], "{bits} bits");
    }
    let floats = written(32, SampleFormat::Float, 1, |file| {
        [0.25_f32, -3.5].into_iter().for_each(|sample| file.write_sample(sample).unwrap());
    });
    assert_eq!(samples(floats).unwrap(), [0.25, -3.5]);
}

#[test]
fn a_header_that_claims_too_much_is_an_error() {
    let good = written(16, SampleFormat::Int, 1, |file| file.write_sample(7_i16).unwrap());
    let at = good.windows(4).position(|some| some == b"data").unwrap() + 4;
    let mut long = good.clone();
    long[at..at + 4].copy_from_slice(&0xFFFF_FFF0_u32.to_le_bytes());
    assert!(Audio::decode(long).is_err());
    assert!(Audio::decode(good[..good.len() - 1].to_vec()).is_err());
    assert!(Audio::decode(Vec::new()).is_err());
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
        let error = Audio::decode(file.clone()).unwrap_err().to_string();
        assert!(error.contains("never written") && error.contains("ffmpeg"), "{claim}: {error}");
        fs::write(&path, file).unwrap();
        assert!(Audio::len_of(&path).unwrap_err().to_string().contains("never written"));
    }
    let none = written(16, SampleFormat::Int, 1, |_| ());
    assert_eq!(samples(none).unwrap(), [0.0; 0]);
}

#[test]
fn a_file_that_is_cut_anywhere_is_an_error() {
    let good = written(16, SampleFormat::Int, 1, |file| file.write_sample(7_i16).unwrap());
    for end in 0..good.len() {
        assert!(Audio::decode(good[..end].to_vec()).is_err(), "{end}");
    }
    assert!(Audio::decode(b"fmt ".to_vec()).is_err());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    for open in [|| Audio::open("/dev/zero").map(drop), || Audio::len_of("/dev/zero").map(drop)] {
        assert!(open().unwrap_err().to_string().contains("/dev/zero"));
    }
}

#[test]
fn another_encoding_is_named_and_is_no_damage() {
    let good = written(16, SampleFormat::Int, 1, |file| file.write_sample(7_i16).unwrap());
    let cases = [
        (3, 16, "a `.wav` file of floats of 16 bits"),
        (1, 40, "a `.wav` file of integers of 40 bits"),
        (0x55, 0, "a `.wav` file with MP3 in it"),
        (0x11, 4, "a `.wav` file in ADPCM"),
        (0x61, 0, "a `.wav` file in the encoding 0x0061"),
    ];
    for (code, bits, is) in cases {
        let mut file = good.clone();
        (file[20], file[34]) = (code, bits);
        let error = Audio::decode(file).unwrap_err().to_string();
        let cure = "save it as FLAC, or as a `.wav` file of integers of 8 to 32 bits or of floats";
        assert_eq!(error, format!("the sound is {is}: {cure}"));
    }
    let ogg = |codec: &[u8; 8]| [&b"OggS\0\x02"[..], &[0; 22], codec].concat();
    let others: [(&[u8], &str); 17] = [
        (b"PAR1", "a Parquet file"),
        (b"words", "no sound"),
        (b"wvpk", "a WavPack file"),
        (b"RIFX\0\0\0\x20WAVE", "a `.wav` file whose numbers begin with their high bytes"),
        (b"MThd\0\0\0\x06", "a MIDI file"),
        (&ogg(b"OpusHead"), "an Ogg file with Opus in it"),
        (&ogg(b"Speex   "), "an Ogg file with Speex in it"),
        (b"riff\x2e\x91\xcf\x11\xa5\xd6", "a W64 file"),
        (b"\x0b\x77\xff\xff", "an AC-3 file"),
        (b"Creative Voice File\x1a", "a VOC file"),
        (b"NIST_1A\n   1024\n", "a file of NIST's form SPHERE"),
        (b".snd\0\0\0\x18", "a file of Sun's form AU"),
        (b"caff\0\x01\0\0", "a file of Apple's form CAF"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "a pointer of Git LFS"),
        (b"<!DOCTYPE html>\n<html>", "an answer of a web server (HTML, XML or an error)"),
        (b"\x93NUMPY\x01\0", "a NumPy array (.npy)"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "an image"),
    ];
    for (bytes, is) in others {
        let error = Audio::decode(bytes.to_vec()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the sound is {is}: ")), "{error}");
    }
    assert!(Audio::decode(good[..45].to_vec()).unwrap_err().to_string().starts_with("the sound is damaged: "));
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
    [&format(0xFFFE, width, width * 8), &*behind, SUBTYPES[0], more].concat()
}

const HALVES: [u8; 6] = [0, 0, 0, 0x40, 0, 0xC0];

/// What a file is, by both ways to it.
fn read(file: &[u8]) -> Result<Vec<f32>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    fs::write(&path, file).unwrap();
    let (length, wave) = (Audio::len_of(&path), Audio::open(&path));
    match (&wave, &length) {
        (Ok(wave), Ok(length)) => assert_eq!(wave.frames() * usize::from(wave.channels()), *length),
        (wave, length) => assert_eq!(wave.is_ok(), length.is_ok(), "{wave:?}, {length:?}"),
    }
    wave.and_then(|wave| Ok(wave.samples()?.into_owned())).map_err(|error| error.to_string())
}

#[test]
fn integers_of_fewer_bits_than_their_bytes_lie_at_the_top() {
    let three: &[u8] = &[0, 0, 0, 0, 0, 0x40, 0, 0, 0xC0];
    let four: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0xC0];
    let mut tight = format(1, 4, 16); // two bytes a sample, by the bytes of a second
    tight[8..12].copy_from_slice(&16_000u32.to_le_bytes());
    let cases: [(Vec<u8>, &[u8]); 10] = [
        (extensible(4, 24, 1, b""), four),
        (extensible(4, 20, 1, b""), four),
        (extensible(3, 20, 1, b""), three),
        (extensible(2, 12, 1, b"\0\0"), &HALVES),
        (format(1, 2, 12), &HALVES),
        (format(1, 3, 20), three),
        (format(1, 4, 20), four),
        (format(1, 1, 5), &[0x80, 0xC0, 0x40]),
        (format(1, 5, 16), &HALVES), // a block that no sample has
        (tight, &HALVES),
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
fn logarithms_of_8_bits_and_floats_of_64_are_as_in_the_tables() {
    let floats: Vec<u8> = [0.5_f64, -2.5].iter().flat_map(|float| float.to_le_bytes()).collect();
    let bytes = [0x00, 0x7F, 0x80, 0xFF, 0xD5, 0x55, 0x2A, 0xAA];
    let law = |values: [i16; 8]| values.map(|value| f32::from(value) / 32_768.0).to_vec();
    let cases = [
        (3, 64, &floats[..], vec![0.5, -2.5]),
        (6, 8, &bytes, law([-5504, -848, 5504, 848, 8, -8, -32_256, 32_256])),
        (7, 8, &bytes, law([-32_124, 0, 32_124, 0, 716, -716, -5372, 5372])),
    ];
    for (code, bits, samples, right) in cases {
        let file = chunks(b"RIFF", &[(b"fmt ", &format(code, bits / 8, bits)), (b"data", samples)]);
        assert_eq!(read(&file).unwrap(), right, "code {code}");
    }
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
    assert_eq!((Audio::len_of(&path).unwrap(), Audio::open(&path).unwrap().samples().unwrap().len()), (6, 6));
    let name = path.display().to_string();
    for bytes in [&good[..50], &good[..20], b"", b"words"] {
        fs::write(&path, bytes).unwrap();
        let errors =
            [Audio::len_of(&path).unwrap_err(), Audio::open(&path).unwrap_err()].map(|error| error.to_string());
        assert!(errors[0].starts_with(&name) && errors[0] == errors[1], "{errors:?}");
    }
    fs::remove_file(&path).unwrap();
    for error in [Audio::len_of(&path).unwrap_err(), Audio::open(&path).unwrap_err()] {
        assert!(error.to_string().starts_with(&format!("cannot open {name}")), "{error}");
    }
}
