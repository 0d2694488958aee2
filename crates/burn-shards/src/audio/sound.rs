//! The sound of a file, which is decoded when its samples are asked for.

use super::{
    codec::CodecFile,
    fault::{AudioFault, explain},
    wav::{SampleFormat, header},
};
use crate::{
    error::DataError,
    row::decode::{Decode, Decoded},
    source::magic,
    system::{caught, files},
};
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use std::{
    borrow::Cow,
    io::{self, BufReader, Cursor, Read},
    ops::Range,
    path::Path,
    sync::Arc,
};
use symphonia::core::io::MediaSource;

/// A sound: a field for the columns `wav`, `flac`, `mp3`, `ogg`, `m4a` of a tar, or for a column of such files.
///
/// ```no_run
/// use burn_shards::{Audio, Rows};
///
/// #[derive(serde::Deserialize)]
/// struct Row {
///     flac: Audio,
///     cls: usize,
/// }
///
/// let rows = Rows::<Row>::tar("speech-{000..099}.tar").open()?;
/// let lengths = rows.sizes("flac")?; // without reading the sounds
/// let rows = rows.map(|mut row| {
///     row.flac = row.flac.mono()?.resample(16_000)?; // on the thread that reads the row
///     Ok(row)
/// });
/// # Ok::<(), burn_shards::DataError>(())
/// ```
///
/// It can also read a single file:
///
/// ```
/// use burn_shards::Audio;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("1.wav");
/// # let spec = hound::WavSpec { channels: 2, sample_rate: 16_000, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
/// # let mut writer = hound::WavWriter::create(&path, spec)?;
/// # (0..6i16).for_each(|sample| writer.write_sample(sample).unwrap());
/// # writer.finalize()?;
///
/// assert_eq!(Audio::len_of(&path)?, 6); // such as "sounds/1.wav": the samples of both channels, by the header
/// let audio = Audio::open(&path)?;
/// assert_eq!((audio.channels(), audio.rate(), audio.frames()), (2, 16_000, 3));
/// let end = audio.crop(1..3).samples()?.into_owned(); // only this part is decoded
/// assert_eq!(end.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An `Audio` is cheap to clone: it has the bytes of a file, or samples that its clones share. A **frame** has one sample of each channel.
///
/// | file | samples |
/// | --- | --- |
/// | WAV, also extensible, RF64 and BW64: integers of up to 32 bits, floats of 32 and 64 bits, mu-law, A-law; AIFF | those of the file. Integers are scaled to the range from -1 to 1, floats are unchanged |
/// | FLAC, and ALAC in MP4 | the same. FLAC of 32 bits and several channels may be an error |
/// | MP3, Ogg Vorbis | without the frames that the encoder added, if the file tells their number. Channels are in the order of WAV. MP3 with mixed blocks, which encoders seldom write, becomes noise |
/// | AAC in MP4 and ADTS | with the frames that the encoder added at the start, usually 1024 or 2112, and, if the times of an MP4 have gaps or are rounded, at the end. AAC is of low complexity and of one or two channels; more are an error. Its SBR is not decoded: of such a file in ADTS the result has half the rate, and the lower half of the band |
///
/// Integers of WAV may take more bytes than their bits need; the bits are then the highest. Opus, ADPCM, WMA, most PCM of
/// QuickTime and others are errors, which say what to save instead.
#[derive(Debug, Clone)]
pub struct Audio {
    content: AudioContent,
    channels: u16,
    rate: u32,
    /// Which frames of the content it has.
    part: Range<usize>,
    /// The most bytes of samples.
    pub(super) limit: usize,
}

#[derive(derive_more::Debug, Clone)]
enum AudioContent {
    #[debug("{name}, {} bytes", bytes.len())]
    File {
        bytes: Bytes,
        name: Arc<str>,
        /// Of a `.wav` file: what its samples are, and where.
        wav: Option<(SampleFormat, Range<u64>)>,
    },
    #[debug("{} samples", _0.len())]
    Samples(Arc<Vec<f32>>),
}

impl Audio {
    /// The default of [`limit`](Self::limit): 512 MiB of samples, which are 23 minutes of stereo sound at 48 kHz.
    pub const LIMIT: usize = 512 << 20;

    /// Reads a file, but does not decode it; of an MP4 it counts the frames, and decodes packets of unusual times.
    ///
    /// # Errors
    /// If the file cannot be read, is empty, is no sound, has an encoding that is not supported, or a damaged header. The error names the
    /// path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let bytes = files::read(path).map_err(|source| cannot_open(path, source))?;
        Self::of(bytes.into(), &path.display().to_string())
    }

    /// Takes the bytes of a file, and reads its header.
    ///
    /// # Errors
    /// As for [`open`](Self::open), but the error has no path.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, DataError> {
        Self::of(bytes.into(), "the sound")
    }

    /// Takes samples, with the channels interleaved.
    ///
    /// # Errors
    /// If there are no channels, the rate is 0, or the last frame lacks samples.
    pub fn new(samples: Vec<f32>, channels: u16, rate: u32) -> Result<Self, DataError> {
        if rate == 0 || channels == 0 || !samples.len().is_multiple_of(channels.into()) {
            let problem = format!("{} samples of {channels} channels at {rate} Hz", samples.len());
            return Err(DataError::option("Audio::new", problem, "give whole frames, and a rate above 0"));
        }
        let part = 0..samples.len() / usize::from(channels);
        Ok(Self { content: AudioContent::Samples(Arc::new(samples)), channels, rate, part, limit: Self::LIMIT })
    }

    /// Whole frames that were made of this sound.
    pub(super) fn with(&self, samples: Vec<f32>, channels: u16, rate: u32) -> Self {
        let part = 0..samples.len() / usize::from(channels);
        Self { content: AudioContent::Samples(Arc::new(samples)), channels, rate, part, limit: self.limit }
    }

    /// The number of channels, at least 1.
    pub fn channels(&self) -> u16 {
        self.channels
    }

    /// The sample rate: frames per second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// The number of frames. Of an undecoded file it is what the header says; if it says nothing, as that of an MP3 file of a constant bit
    /// rate, the number of all packets.
    pub fn frames(&self) -> usize {
        self.part.len()
    }

    /// Keeps these frames, and decodes nothing. What is beyond the end is left out, so the result may be shorter: the field of a batch says
    /// whether that is padded or an error. A part of a part is counted from the part's start.
    ///
    /// The samples are those that the whole sound has at these frames. WAV, AIFF, FLAC, Vorbis, and MP3 whose header tells its length
    /// are decoded from a place shortly before them. Others, as AAC and all of MP4, are decoded from their start, and so is a file in which
    /// the place is not found.
    pub fn crop(mut self, frames: Range<usize>) -> Self {
        let at = |frame| self.part.start.saturating_add(frame).min(self.part.end);
        self.part = at(frames.start)..at(frames.end.max(frames.start));
        self
    }

    /// Sets the most bytes of samples that [`samples`](Self::samples) may decode, four for each sample. A small file can claim a sound of
    /// any length. Default: [`LIMIT`](Self::LIMIT). It does not limit what the decoder takes for itself: the headers of a hostile file may
    /// make that more memory, or more time.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Decodes the samples, on the calling thread. The channels are interleaved: one sample of each channel in turn. Each call decodes them
    /// again.
    ///
    /// # Errors
    /// If the sound is damaged, cut off, or longer than its [`limit`](Self::limit). The error names the file if it was opened by its path.
    pub fn samples(&self) -> Result<Cow<'_, [f32]>, DataError> {
        let channels = usize::from(self.channels);
        let (bytes, name, wav) = match &self.content {
            AudioContent::Samples(samples) => {
                return Ok(Cow::Borrowed(&samples[self.part.start * channels..self.part.end * channels]));
            }
            AudioContent::File { bytes, name, wav } => (bytes, name, wav),
        };
        let needed = self.part.len().saturating_mul(4 * channels);
        if needed > self.limit {
            let problem = format!("{name} has {needed} bytes of samples, and the limit is {}", self.limit);
            return Err(DataError::option("Audio::limit", problem, "crop the sound, or set a higher limit"));
        }
        if let Some((format, place)) = wav {
            let frame = format.width() * channels;
            let start = place.start as usize + self.part.start * frame; // it is in the bytes
            return Ok(Cow::Owned(format.decode(&bytes[start..start + self.part.len() * frame])));
        }
        let part = self.part.start as u64..self.part.end as u64;
        let from =
            |place| by_codec(|| CodecFile::open(|| Ok(Cursor::new(bytes.clone())))?.seek(place)?.decode(part.clone()));
        // The whole may be right where a search fails, such as by a table of places that is wrong.
        let samples = from(part.start).or_else(|fault| if part.start == 0 { Err(fault) } else { from(0) });
        samples.map(Cow::Owned).map_err(|fault| explain(bytes, name, fault))
    }

    /// The number of samples in a file, over all channels, by its header. Divided by the channels and the rate, it is the duration in
    /// seconds. Nothing is decoded, but packets of unusual times in MP4. A file whose header has no length is read, as are MP4, AAC in
    /// ADTS and some of MP3.
    ///
    /// # Errors
    /// As for [`open`](Self::open). Damage after the header is not detected.
    pub fn len_of(path: impl AsRef<Path>) -> Result<usize, DataError> {
        let path = path.as_ref();
        let open = || files::regular(path).and_then(|()| files::open(path));
        let bytes = open().and_then(|file| file.metadata()).map_err(|source| cannot_open(path, source))?.len();
        let (channels, frames) = match Head::of(open, bytes) {
            Ok(Head { channels, frames, .. }) => (channels, frames),
            // The error of the whole file says what is wrong.
            Err(_) => Self::open(path).map(|audio| (audio.channels, audio.frames()))?,
        };
        Ok(frames.saturating_mul(channels.into()))
    }

    fn of(bytes: Bytes, name: &str) -> Result<Self, DataError> {
        let head = Head::of(|| Ok(Cursor::new(bytes.clone())), bytes.len() as u64);
        let Head { wav, channels, rate, frames } = head.map_err(|fault| explain(&bytes, name, fault))?;
        let content = AudioContent::File { bytes, name: name.into(), wav };
        Ok(Self { content, channels, rate, part: 0..frames, limit: Self::LIMIT })
    }
}

fn cannot_open(path: &Path, source: io::Error) -> DataError {
    DataError::Open { path: path.into(), source }
}

/// What the header of a file says.
struct Head {
    /// Of a `.wav` file: what its samples are, and where.
    wav: Option<(SampleFormat, Range<u64>)>,
    channels: u16,
    rate: u32,
    frames: usize,
}

impl Head {
    /// `open` opens the file, which has this number of bytes.
    fn of<F: MediaSource + 'static>(open: impl Fn() -> io::Result<F>, bytes: u64) -> Result<Self, AudioFault> {
        let as_usize = |frames| usize::try_from(frames).unwrap_or(usize::MAX);
        match header(&mut BufReader::new(open()?), bytes) {
            Ok((format, place)) => {
                let frames = (place.end - place.start) / (format.width() as u64 * u64::from(format.channels));
                let SampleFormat { channels, rate, .. } = format;
                return Ok(Self { wav: Some((format, place)), channels, rate, frames: as_usize(frames) });
            }
            Err(AudioFault::Other) => {}
            Err(fault) => return Err(fault),
        }
        // What is no sound, such as a page of a web server, may have the marks of a sound somewhere.
        let mut start = Vec::new();
        open()?.take(magic::START_BYTES).read_to_end(&mut start)?;
        if magic::other_format("", &start).is_some() && !magic::is_sound(&start) {
            return Err(AudioFault::Other);
        }
        by_codec(|| {
            let codec = CodecFile::open(&open)?;
            Ok(Self { wav: None, channels: codec.channels, rate: codec.rate, frames: as_usize(codec.frames()?) })
        })
    }
}

/// Calls symphonia. A panic there is damage of the file.
fn by_codec<T>(read: impl FnOnce() -> symphonia::core::errors::Result<T>) -> Result<T, AudioFault> {
    let read = caught::catch(read).map_err(|panic| AudioFault::Damaged(format!("its decoder panicked: {panic}")))?;
    Ok(read?)
}

impl Decode for Audio {
    type Error = DataError;

    fn decode(bytes: Vec<u8>) -> Result<Self, DataError> {
        Self::from_bytes(bytes)
    }
}

impl<'de> Deserialize<'de> for Audio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Decoded::deserialize(deserializer).map(|Decoded(audio)| audio)
    }
}
