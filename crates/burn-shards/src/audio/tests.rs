//! Sounds against what other programs made of them, and damaged ones.

mod change;
mod claims;
mod mel;
mod places;
mod wav;

use super::sound::Audio;
use crate::{error::DataError, row::decode::Decode};
use flacenc::{bitsink::ByteSink, component::BitRepr, config::Encoder, error::Verify, source::MemSource};
use std::{f32::consts::TAU, fs, io::Cursor};

/// Files of other encoders with samples 1, 2000, 3999 and so on as other decoders have them; `make.py` beside the files wrote both.
/// Behind each is how many frames it has.
const TONES: [(&str, &[u8], &[f32], usize); 4] = [
    ("mp3", include_bytes!("../../tests/data/golden/audio/tone.mp3"), &MP3, 40_000),
    ("ogg", include_bytes!("../../tests/data/golden/audio/tone.ogg"), &OGG, 40_000),
    ("m4a", include_bytes!("../../tests/data/golden/audio/tone.m4a"), &AAC, 41_024),
    ("aac", include_bytes!("../../tests/data/golden/audio/tone.aac"), &AAC, 41_984),
];
const MP3: [f32; 21] = [
    0.0916108,
    -0.1137789,
    -0.07506857,
    -0.227431,
    -0.2859744,
    -0.2172037,
    -0.0853577,
    -0.2260069,
    -0.5480196,
    -0.236519,
    -0.3552755,
    -0.2838778,
    -0.22331,
    -0.4603415,
    -0.5064149,
    -0.4996962,
    -0.2428998,
    -0.1171006,
    0.1006584,
    0.1506414,
    0.1114297,
];
const OGG: [f32; 21] = [
    0.09022494,
    -0.1464585,
    -0.03215517,
    -0.2230724,
    -0.3215392,
    -0.2390746,
    -0.1224421,
    -0.2203575,
    -0.5503349,
    -0.1865906,
    -0.3364691,
    -0.2952459,
    -0.2376431,
    -0.463124,
    -0.4743026,
    -0.460082,
    -0.2360792,
    -0.1112881,
    0.1330269,
    0.1695034,
    0.1024182,
];
const AAC: [f32; 21] = [
    1.087819e-05,
    -0.2646712,
    -0.547106,
    -0.7504646,
    -0.5918499,
    -0.2801789,
    -0.6184721,
    -0.6407927,
    -0.4568867,
    -0.1287846,
    -0.34209,
    -0.2262599,
    -0.2077328,
    0.01383834,
    0.0007356331,
    0.3353753,
    0.3247532,
    -0.1012443,
    0.4778204,
    0.5843008,
    0.4642799,
];

/// The samples of a file.
fn samples(file: Vec<u8>) -> Result<Vec<f32>, DataError> {
    Ok(Audio::decode(file)?.samples()?.into_owned())
}

fn flac(samples: &[i32], channels: usize, bits: usize) -> Vec<u8> {
    let source = MemSource::from_samples(samples, channels, bits, 44_100);
    let config = Encoder::default().into_verified().unwrap();
    let stream = flacenc::encode_with_fixed_block_size(&config, source, config.block_size).unwrap();
    let mut sink = ByteSink::new();
    stream.write(&mut sink).unwrap();
    let mut file = sink.into_inner();
    file.copy_within(10..12, 8); // the last block, which is shorter, does not count for the least length of a block
    file
}

/// Integers of this many bits without a pattern.
fn noise(count: usize, bits: usize) -> Vec<i32> {
    (0..count as u32).map(|n| n.wrapping_mul(2_654_435_761) as i32 >> (32 - bits)).collect()
}

#[test]
fn flac_is_as_it_was_before_it_was_compressed() {
    for (count, channels, bits) in [(1, 1, 8), (90_000, 2, 16), (30_000, 1, 24), (6_000, 6, 24)] {
        let right = noise(count, bits);
        let file = flac(&right, channels, bits);
        let audio = Audio::decode(file).unwrap();
        assert_eq!((usize::from(audio.channels()), audio.rate(), audio.frames()), (channels, 44_100, count / channels));
        let scale = (1_i64 << (bits - 1)) as f32;
        assert!(
            audio.samples().unwrap().iter().zip(&right).all(|(is, right)| *is == *right as f32 / scale),
            "{bits} bits"
        );
        assert_eq!(audio.samples().unwrap().len(), count);
    }
}

#[test]
fn other_encodings_are_as_other_decoders_have_them() {
    let folder = tempfile::tempdir().unwrap();
    for (name, file, right, frames) in TONES {
        let audio = Audio::from_bytes(file).unwrap();
        assert_eq!((audio.channels(), audio.rate(), audio.frames()), (1, 16_000, frames), "{name}");
        let samples = audio.samples().unwrap();
        let (mut signal, mut noise) = (0.0, 0.0);
        for (is, right) in samples.iter().skip(1).step_by(1999).zip(right) {
            signal += right * right;
            noise += (is - right) * (is - right);
        }
        let decibels = 10.0 * (signal / noise).log10();
        assert!(samples.len() == frames && decibels > 90.0, "{name}: {decibels} dB");
        let path = folder.path().join(name);
        fs::write(&path, file).unwrap();
        assert_eq!(
            (Audio::len_of(&path).unwrap(), *Audio::open(&path).unwrap().samples().unwrap() == *samples),
            (frames, true)
        );
    }
}

#[test]
fn the_length_of_an_mp3_without_a_tag_is_not_guessed() {
    let (_, file, ..) = TONES[0];
    let whole = samples(file.to_vec()).unwrap();
    let audio = Audio::from_bytes(&file[288..]).unwrap(); // the first packet is the tag
    assert_eq!(audio.frames(), 72 * 576);
    let samples = audio.samples().unwrap();
    let is_near = |(is, right): (&f32, &f32)| (is - right).abs() < 1e-6;
    assert!(samples.len() == 72 * 576 && samples[1105..].iter().zip(&whole).all(is_near)); // behind what the encoder added
}

#[test]
fn a_film_may_have_other_units_of_time_than_the_frames_of_its_sound() {
    let (_, file, ..) = TONES[2];
    let (whole, mut file) = (samples(file.to_vec()).unwrap(), file.to_vec());
    let at = file.windows(4).position(|name| name == b"mdhd").unwrap() + 16;
    assert_eq!(file[at..at + 4], 16_000_u32.to_be_bytes());
    // The time of the 40 packets before the last one, and the frames then: a time that is none cuts no end off.
    let time = file.windows(4).position(|name| name == b"stts").unwrap() + 16;
    assert_eq!(file[time..time + 4], 1024_u32.to_be_bytes());
    for (unit, packet, frames) in [
        (32_000, 1024, whole.len()),
        (8000, 1024, whole.len()),
        (16_000, 1023, 41 * 1024),
        (16_000, 1025, 41 * 1024),
        (16_000, 9000, 41 * 1024),
        (1000_u32, 64_u32, 41 * 1024),
    ] {
        file[at..at + 4].copy_from_slice(&unit.to_be_bytes());
        file[time..time + 4].copy_from_slice(&packet.to_be_bytes());
        let audio = Audio::from_bytes(file.clone()).unwrap();
        assert_eq!((audio.frames(), audio.rate()), (frames, 16_000), "{unit} {packet}");
        assert_eq!(*audio.clone().crop(38_000..40_000).samples().unwrap(), whole[38_000..40_000]);
        assert_eq!(audio.samples().unwrap()[..whole.len()], whole);
    }
}

/// Every kind of file, and a plain sound.
fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let mut kinds: Vec<_> = TONES.iter().map(|(name, file, ..)| (*name, file.to_vec())).collect();
    kinds.push(("flac", flac(&noise(100_000, 16), 2, 16)));
    let spec =
        hound::WavSpec { channels: 2, sample_rate: 8000, bits_per_sample: 24, sample_format: hound::SampleFormat::Int };
    let mut wav = Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut wav, spec).unwrap();
    noise(1000, 24).into_iter().for_each(|sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
    kinds.push(("wav", wav.into_inner()));
    kinds
}

#[test]
fn a_part_is_that_of_the_whole() {
    for (name, file) in kinds() {
        let audio = Audio::from_bytes(file).unwrap();
        let (whole, channels, frames) = (audio.samples().unwrap(), usize::from(audio.channels()), audio.frames());
        for start in (0..frames).step_by(frames / 7).chain([frames - 1, frames]) {
            for length in [0, 1, 3000] {
                let end = (start + length).min(frames);
                let part = audio.clone().crop(start..start + length);
                assert_eq!(part.frames(), end - start);
                assert!(*part.samples().unwrap() == whole[start * channels..end * channels], "{name}, {start}..{end}");
            }
        }
        let of_part = audio.clone().crop(100..200).crop(10..usize::MAX);
        assert!(*of_part.samples().unwrap() == whole[110 * channels..200 * channels], "{name}");
        #[expect(clippy::reversed_empty_ranges, reason = "a range that a user computes")]
        let nothing = audio.clone().crop(9..3).samples().unwrap().len() + audio.crop(usize::MAX..usize::MAX).frames();
        assert_eq!(nothing, 0);
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_an_error_or_its_start() {
    for (name, file) in kinds() {
        let whole = samples(file.clone()).unwrap();
        // Every length around the headers, and some behind them.
        for end in (0..file.len()).filter(|end| *end < 120 || end % (file.len() / 40) == 0 || file.len() - end < 10) {
            match samples(file[..end].to_vec()) {
                // These have no length: what is cut off cannot be known.
                Ok(cut) => {
                    assert!(name == "aac" && whole.starts_with(&cut[..cut.len() / 2]), "{name}, {end}")
                }
                Err(error) => assert!(!error.to_string().contains("panic"), "{name}, {end}: {error}"),
            }
        }
    }
}

#[test]
fn bytes_that_are_wrong_are_errors_and_no_panics() {
    for (name, file) in kinds() {
        for at in (0..file.len().min(120)).chain((120..file.len()).step_by(file.len() / 40)) {
            for value in [0xFF, file[at] ^ 0x10] {
                let mut file = file.clone();
                file[at] = value;
                let limited = Audio::decode(file).map(|audio| audio.limit(4 << 20));
                if let Err(error) = limited.and_then(|audio| audio.samples().map(drop)) {
                    assert!(!error.to_string().contains("panic"), "{name}, byte {at}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_claim_of_more_than_the_limit_is_refused_before_it_is_decoded() {
    let mut file = flac(&noise(5000, 16), 1, 16);
    file[21..26].copy_from_slice(&[0xFF; 5]); // the number of frames, in 36 bits
    let audio = Audio::from_bytes(file).unwrap();
    assert_eq!(audio.frames(), (1 << 36) - 1);
    let error = audio.samples().unwrap_err().to_string();
    assert!(error.contains("Audio::limit") && error.contains("crop"), "{error}");
    assert_eq!(audio.clone().crop(10..20).samples().unwrap().len(), 10);
    assert!(audio.crop(0..6000).samples().unwrap_err().to_string().contains("damaged"));
    let short = Audio::new(vec![0.0; 6], 2, 8000).unwrap();
    assert_eq!((short.frames(), short.clone().crop(1..9).frames()), (3, 2));
    for (samples, channels, rate) in [(6, 0, 8000), (5, 2, 8000), (6, 2, 0)] {
        assert!(Audio::new(vec![0.0; samples], channels, rate).is_err(), "{samples}, {channels}, {rate}");
    }
}

#[test]
fn other_rates_keep_the_tone_and_its_time() {
    let tone = |rate: u32, frames: u32| (0..frames).map(move |n| (TAU * 440.0 * n as f32 / rate as f32).sin());
    for (from, to) in
        [(16_000, 8000), (44_100, 16_000), (8000, 48_000), (22_050, 44_100), (48_000, 44_100), (16_000, 11_025)]
    {
        let samples = tone(from, from / 2).flat_map(|sample| [sample, -sample]).collect();
        let made = Audio::new(samples, 2, from).unwrap().resample(to).unwrap();
        assert_eq!((made.channels(), made.rate(), made.frames()), (2, to, to.div_ceil(2) as usize));
        let (made, middle) = (made.samples().unwrap().into_owned(), to as usize / 8..to as usize * 3 / 8);
        for (frame, right) in made.as_chunks::<2>().0.iter().zip(tone(to, to / 2)).skip(middle.start).take(middle.len())
        {
            assert!((frame[0] - right).abs() < 1e-3 && frame[0] == -frame[1], "{from} to {to}: {frame:?}, not {right}");
        }
    }
    let one = Audio::new(vec![0.5], 1, 8000).unwrap();
    assert_eq!(one.clone().resample(16_000).unwrap().frames(), 2);
    assert_eq!(one.clone().crop(1..1).resample(16_000).unwrap().frames(), 0);
    assert_eq!(*one.clone().resample(8000).unwrap().samples().unwrap(), [0.5]);
    for rate in [0, u32::MAX] {
        assert!(one.clone().resample(rate).unwrap_err().to_string().contains("resample"), "{rate}");
    }
    assert!(one.clone().limit(100).resample(1 << 20).is_err());
    let long_filter = Audio::new(vec![0.5], 1, 1_048_573).unwrap().limit(16 << 20);
    assert!(long_filter.resample(1_048_571).unwrap_err().to_string().contains("limit")); // both are primes
}

#[test]
fn the_length_at_another_rate_is_rounded_up_once() {
    let rates = [7350, 8000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 88_200, 96_000];
    for (from, to) in rates.iter().flat_map(|from| rates.map(|to| (*from, to))) {
        for frames in [1, 147, 160, 441, from / 50, from / 10, from / 10 + 1] {
            let made = Audio::new(vec![0.0; frames as usize], 1, from).unwrap().resample(to).unwrap();
            let right = (u64::from(frames) * u64::from(to)).div_ceil(from.into());
            assert_eq!(
                (made.frames() as u64, made.samples().unwrap().len() as u64),
                (right, right),
                "{frames}, {from}, {to}"
            );
        }
    }
}

#[test]
fn a_much_lower_rate_keeps_the_tones_that_it_can_have() {
    for (from, to) in [(192_000, 16_000), (384_000, 16_000), (48_000, 1000), (4000, 100)] {
        let step = TAU * 0.4 * to as f32 / from as f32;
        let tone = (0..2 * from).map(|n| (n as f32 * step).sin()).collect();
        let audio = Audio::new(tone, 1, from).unwrap().resample(to).unwrap();
        let (samples, rest) = (audio.samples().unwrap(), audio.frames() / 4);
        let middle = &samples[rest..3 * rest];
        let power = middle.iter().map(|value| value * value).sum::<f32>() / middle.len() as f32;
        assert!((power - 0.5).abs() < 0.05, "{from} to {to}: {power}");
    }
}

#[test]
fn one_channel_is_the_mean_of_all() {
    let two = Audio::new(vec![0.5, -0.25, 1.0, 0.0], 2, 8000).unwrap();
    let one = two.mono().unwrap();
    assert_eq!((one.channels(), one.rate(), &*one.samples().unwrap()), (1, 8000, &[0.125, 0.5][..]));
}

/// symphonia decodes these to other samples.
#[test]
fn channels_of_vorbis_are_those_of_ffmpeg() {
    const STEREO: &[u8] = include_bytes!("../../tests/data/golden/audio/stereo.ogg");
    const SIX: &[u8] = include_bytes!("../../tests/data/golden/audio/six.ogg");
    let files: [(&[u8], u16, &[f32]); 2] = [
        (STEREO, 2, &[0.4440476, 0.09998247, 0.318516, 0.1211702, 0.2266765, -0.4109024, -0.3286094, 0.2889143]),
        (SIX, 6, &[0.4440476, -0.2666251, -0.2055087, -0.3291739, -0.4202919, 0.1564793, 0.318516, 0.2515276]),
    ];
    for (file, channels, right) in files {
        let audio = Audio::from_bytes(file).unwrap();
        assert_eq!((audio.channels(), audio.frames()), (channels, 8000));
        let samples = audio.samples().unwrap();
        let apart = samples.iter().skip(1).step_by(1999).zip(right).map(|(is, right)| (is - right).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-5, "{channels} channels");
        let part = audio.clone().crop(3000..5001);
        let channels = usize::from(channels);
        assert_eq!(*part.samples().unwrap(), samples[3000 * channels..5001 * channels]);
    }
}

/// Tags of MP3 players behind other sounds: ID3 of 128 bytes, and APE before it.
#[test]
fn tags_behind_the_sound_are_no_sound() {
    let right = noise(20_000, 16);
    let flac = flac(&right, 1, 16);
    let ape = |marks: &[u8; 4]| [b"APETAGEX", &[0; 4][..], &40u32.to_le_bytes(), &[0; 4], marks, &[0; 8]].concat();
    let ape = [ape(&[0; 4]), b"an entry".to_vec(), ape(&[0, 0, 0, 0x80])].concat();
    let id3 = [&b"TAG"[..], &[b'x'; 125]].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.flac");
    for tags in [&id3, &ape, &[ape.clone(), id3.clone()].concat()] {
        // With the length in the header, and without it.
        for length in [&flac[21..26], &[flac[21] & 0xf0, 0, 0, 0, 0]] {
            let mut file = [&flac, &tags[..]].concat();
            file[21..26].copy_from_slice(length);
            fs::write(&path, &file).unwrap();
            let audio = Audio::from_bytes(file).unwrap();
            assert_eq!((audio.frames(), Audio::len_of(&path).unwrap()), (right.len(), right.len()));
            assert_eq!(audio.crop(19_990..20_000).samples().unwrap().len(), 10);
            assert_eq!(Audio::open(&path).unwrap().samples().unwrap().len(), right.len());
        }
    }
}
