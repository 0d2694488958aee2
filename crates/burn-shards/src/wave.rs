//! Sounds as `.wav` files have them.

use crate::decode::{Decode, Decoded};
use hound::{SampleFormat, WavReader};
use serde::{Deserialize, Deserializer};
use std::io::Cursor;

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
/// Integers of 8, 16, 24 and 32 bits are read, and floats of 32. Other encodings, such as A-law, are an error of the row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wave {
    /// The samples, of all channels by turns. Integers are divided by their range, so they are from -1 to 1. Floats are as they are.
    pub samples: Vec<f32>,
    /// The number of channels.
    pub channels: u16,
    /// Samples of each channel in a second.
    pub rate: u32,
}

impl Decode for Wave {
    type Error = hound::Error;

    fn decode(bytes: Vec<u8>) -> Result<Self, hound::Error> {
        let most = bytes.len();
        let mut reader = WavReader::new(Cursor::new(bytes))?;
        let spec = reader.spec();
        // The header may claim any length, and memory for it would be taken before a sample is read.
        if reader.len() as usize > most || spec.channels == 0 {
            return Err(hound::Error::FormatError("the header claims more samples than there are bytes"));
        }
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

impl<'de> Deserialize<'de> for Wave {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Decoded::deserialize(deserializer).map(|Decoded(wave)| wave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hound::{WavSpec, WavWriter};

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
    fn a_header_that_claims_too_much_or_another_encoding_is_an_error() {
        let good = written(16, SampleFormat::Int, 1, |file| file.write_sample(7_i16).unwrap());
        let at = good.windows(4).position(|some| some == b"data").unwrap() + 4;
        let mut long = good.clone();
        long[at..at + 4].copy_from_slice(&0xFFFF_FFF0_u32.to_le_bytes());
        assert!(Wave::decode(long).is_err());
        let mut alaw = good.clone();
        alaw[20] = 6;
        assert!(Wave::decode(alaw).is_err());
        assert!(Wave::decode(good[..good.len() - 1].to_vec()).is_err());
        assert!(Wave::decode(Vec::new()).is_err());
    }
}
