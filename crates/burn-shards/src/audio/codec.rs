//! Sounds that are compressed, and AIFF, by the crate symphonia; packets of Vorbis by `vorbis`. Positions are in frames: a frame has a sample of each channel.

use super::vorbis::Vorbis;
use std::{io, ops::Range};
use symphonia::core::{
    codecs::{
        CodecParameters,
        audio::{
            AudioCodecId, AudioDecoder,
            well_known::{
                CODEC_ID_AAC, CODEC_ID_FLAC, CODEC_ID_PCM_F32LE, CODEC_ID_PCM_F64LE, CODEC_ID_PCM_S24LE,
                CODEC_ID_PCM_S32LE, CODEC_ID_VORBIS,
            },
        },
    },
    errors::{Error, Result},
    formats::{
        FormatReader, SeekMode, SeekTo, TrackType,
        probe::Hint,
        well_known::{FORMAT_ID_ADTS, FORMAT_ID_ISOMP4, FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3, FORMAT_ID_OGG},
    },
    io::{MediaSource, MediaSourceStream, ReadOnlySource},
    packet::Packet,
    units::{Duration, Timestamp},
};

/// How far before a part decoding starts: more than the frames whose bits or windows the first frame of the part may need. Packets of FLAC
/// need no others.
const MARGIN: u64 = 1 << 14;

/// In QuickTime symphonia takes their bytes in the wrong order.
const MISREAD: [AudioCodecId; 4] = [CODEC_ID_PCM_S24LE, CODEC_ID_PCM_S32LE, CODEC_ID_PCM_F32LE, CODEC_ID_PCM_F64LE];

/// A file that is open for decoding.
pub(super) struct CodecFile {
    format: Box<dyn FormatReader>,
    decoder: PacketDecoder,
    track: u32,
    pub(super) channels: u16,
    pub(super) rate: u32,
    /// By the header, if it says so. Some say 0 because the length was not known yet.
    frames: Option<u64>,
    /// The time of the first frame: above 0 in a stream that was recorded from its middle.
    start: u64,
    /// How many frames are in a unit of the times of packets: the numerator and the denominator.
    unit: (u64, u64),
    /// Whether the times of packets are numbers of frames, and decoding may start at any packet. Else the frames are counted.
    is_timed: bool,
    margin: u64,
}

enum PacketDecoder {
    Vorbis(Box<Vorbis>),
    Other(Box<dyn AudioDecoder>),
}

impl CodecFile {
    /// Reads the header. `file` opens the file; it is opened twice if its length must not be guessed.
    pub(super) fn open<F: MediaSource + 'static>(file: impl Fn() -> io::Result<F>) -> Result<Self> {
        let mut format = probe(TaglessFile::of(file()?)?)?;
        // Of a file that cannot be searched the length is not guessed from the first packet. The sound would end at the guess.
        let kind = format.format_info().format;
        let is_plain = [FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3, FORMAT_ID_ADTS].contains(&kind);
        if is_plain {
            format = probe(ReadOnlySource::new(file()?))?;
        }
        let track = format.default_track(TrackType::Audio).ok_or(Error::Unsupported("a file without sound"))?;
        let Some(CodecParameters::Audio(codec)) = &track.codec_params else {
            return Err(Error::Unsupported("an unknown codec"));
        };
        if kind == FORMAT_ID_ISOMP4 && MISREAD.contains(&codec.codec) {
            return Err(Error::Unsupported("PCM of QuickTime"));
        }
        let decoder = if codec.codec == CODEC_ID_VORBIS {
            PacketDecoder::Vorbis(Vorbis::new(codec.extra_data.as_deref().unwrap_or_default())?.into())
        } else {
            PacketDecoder::Other(symphonia::default::get_codecs().make_audio_decoder(codec, &Default::default())?)
        };
        let params = if let PacketDecoder::Other(decoder) = &decoder { decoder.codec_params() } else { codec };
        let rate = params.sample_rate.or(codec.sample_rate).filter(|rate| *rate > 0);
        let channels = params.channels.as_ref().or(codec.channels.as_ref()).map_or(0, |channels| channels.count());
        let (Some(rate), Ok(channels @ 1..)) = (rate, u16::try_from(channels)) else {
            return Err(Error::DecodeError("its header has no rate or no channels"));
        };
        let unit = track
            .time_base
            .map_or((1, 1), |base| (u64::from(rate) * u64::from(base.numer.get()), base.denom.get().into()));
        // In another unit, as of AAC with SBR that is not decoded, the number is not that of the decoder's frames.
        let frames = track.num_frames.filter(|_| unit.0 == unit.1);
        // Some of the noise of AAC is drawn by the decoder, from where it starts. Without a length, tags may be among the packets. The times of a
        // film may have gaps, or be rounded.
        let is_timed = kind != FORMAT_ID_ISOMP4
            && codec.codec != CODEC_ID_AAC
            && (!is_plain || frames.is_some_and(|frames| frames > 0));
        // In Ogg with several sounds symphonia's search does not end.
        let is_timed = is_timed && (kind != FORMAT_ID_OGG || format.tracks().len() == 1);
        let start = if kind == FORMAT_ID_OGG {
            track.start_ts.get().saturating_add(track.delay.unwrap_or(0).into())
        } else {
            0
        };
        let margin = if codec.codec == CODEC_ID_FLAC { 0 } else { MARGIN };
        let (start, track) = (start.max(0) as u64, track.id);
        let frames = frames.map(|end| end.saturating_sub(start));
        Ok(Self { format, decoder, track, channels, rate, frames, start, unit, is_timed, margin })
    }

    /// The number of frames: by the header, or of all packets.
    pub(super) fn frames(mut self) -> Result<u64> {
        let kind = self.format.format_info().format;
        if kind == FORMAT_ID_ISOMP4 {
            return self.counted();
        }
        match self.frames {
            // Of a chain the header tells the length of the first sound.
            Some(frames @ 1..) if kind == FORMAT_ID_OGG => {
                let end = self.seek(frames).and_then(|mut end| {
                    while end.next()?.is_some() {}
                    Ok(frames)
                });
                return if let Err(Error::Unsupported(_)) = end { end } else { Ok(frames) };
            }
            Some(frames @ 1..) => return Ok(frames),
            _ => {}
        }
        let mut units = 0;
        while let Some(packet) = self.next()? {
            units = units.max(packet.pts.get().saturating_add_unsigned(packet.dur.get()));
        }
        Ok((units as u64).saturating_sub(self.start).saturating_mul(self.unit.0) / self.unit.1)
    }

    /// The number of frames of all packets of a film. A packet is decoded if its time is not that of the first one.
    fn counted(mut self) -> Result<u64> {
        let (mut frames, mut usual, mut cut, mut samples) = (0, None, None, Vec::new());
        let mut is_exact = true;
        while let Some(packet) = self.next()? {
            is_exact &= cut.is_none(); // no packet but the last one has another time
            let time = packet.dur.get();
            if usual == Some(time) {
                frames += time;
                continue;
            }
            self.decode_packet(&packet, &mut samples)?;
            let decoded = samples.drain(..).len() as u64 / u64::from(self.channels);
            frames += decoded;
            match usual {
                None if decoded == time => usual = Some(time),
                _ => cut = Some(decoded.saturating_sub(time)),
            }
        }
        // The encoder of AAC fills its last packet.
        let is_filled =
            matches!(&self.decoder, PacketDecoder::Other(decoder) if decoder.codec_params().codec == CODEC_ID_AAC);
        Ok(frames - cut.filter(|_| is_exact && is_filled).unwrap_or(0))
    }

    /// Where a search finds a frame.
    fn place(&self, frame: u64) -> SeekTo {
        SeekTo::Timestamp { ts: Timestamp::new(frame.saturating_add(self.start) as i64), track_id: self.track }
    }

    /// The next packet of the sound.
    fn next(&mut self) -> Result<Option<Packet>> {
        let mut read = || match self.format.next_packet() {
            Err(Error::ResetRequired) => Err(Error::Unsupported("a chain of several sounds")),
            // Nothing tells that a packet was to follow.
            Err(Error::IoError(error))
                if error.kind() == io::ErrorKind::UnexpectedEof
                    && self.format.format_info().format == FORMAT_ID_ADTS =>
            {
                Ok(None)
            }
            read => read,
        };
        while let Some(mut packet) = read()? {
            if packet.track_id == self.track {
                if self.frames == Some(0) {
                    packet.trim_end = Duration::ZERO; // all of it is behind the claimed end
                }
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    /// Goes to a place from which this frame can be decoded.
    pub(super) fn seek(mut self, frame: u64) -> Result<Self> {
        if self.is_timed && frame > MARGIN {
            self.format.seek(SeekMode::Accurate, self.place(frame - self.margin))?;
            match &mut self.decoder {
                PacketDecoder::Vorbis(decoder) => decoder.reset(),
                PacketDecoder::Other(decoder) => decoder.reset(),
            }
        }
        Ok(self)
    }

    /// Decodes the frames of a part, with the channels interleaved. `part` is within the sound, and the place is before it.
    pub(super) fn decode(mut self, part: Range<u64>) -> Result<Vec<f32>> {
        let channels = usize::from(self.channels);
        let (mut samples, mut next, mut counted) = (Vec::new(), part.start, 0_i64);
        while next < part.end {
            let packet = self.next()?.ok_or(Error::DecodeError("it is cut off"))?;
            let before = samples.len();
            match self.decode_packet(&packet, &mut samples) {
                Ok(()) => {}
                // What it builds upon is before the margin.
                Err(Error::DecodeError(_)) if self.is_timed && packet.pts.get() < (part.start + self.start) as i64 => {
                    continue;
                }
                Err(error) => return Err(error),
            }
            let timed =
                packet.pts.get().saturating_add_unsigned(packet.trim_start.get()).saturating_sub_unsigned(self.start);
            let at = if self.is_timed { timed } else { counted };
            let end = at.saturating_add_unsigned(((samples.len() - before) / channels) as u64);
            counted = end;
            if end > next as i64 && at > next as i64 {
                return Err(Error::DecodeError("a part of it is missing"));
            }
            // Only what is behind the frames that are there.
            let known = (next as i64).min(end) - at;
            samples.drain(before..before + known as usize * channels);
            next = next.max(end.max(0) as u64);
        }
        samples.truncate((part.end - part.start) as usize * channels);
        Ok(samples)
    }

    /// Appends the frames of a packet, with the channels interleaved.
    fn decode_packet(&mut self, packet: &Packet, samples: &mut Vec<f32>) -> Result<()> {
        match &mut self.decoder {
            PacketDecoder::Vorbis(decoder) => decoder.decode(packet, samples)?,
            PacketDecoder::Other(decoder) => {
                let sound = decoder.decode(packet)?;
                if (sound.spec().channels().count(), sound.spec().rate()) != (self.channels.into(), self.rate) {
                    return Err(Error::Unsupported("a change of the channels or the rate"));
                }
                let start = samples.len();
                samples.resize(start + sound.samples_interleaved(), 0.0);
                sound.copy_to_slice_interleaved(&mut samples[start..]);
            }
        }
        Ok(())
    }
}

fn probe(file: impl MediaSource + 'static) -> Result<Box<dyn FormatReader>> {
    let stream = MediaSourceStream::new(Box::new(file), Default::default());
    symphonia::default::get_probe().probe(&Hint::new(), stream, Default::default(), Default::default())
}

/// A file without the tags after its sound, which are no packets. It allows a number of searches, because a wrong table could make them
/// endless.
struct TaglessFile<F> {
    file: F,
    at: u64,
    end: u64,
    seeks: u64,
}

impl<F: MediaSource> TaglessFile<F> {
    fn of(mut file: F) -> io::Result<Self> {
        const ID3: u64 = 128;
        const APE: u64 = 32;
        let mut end = file.seek(io::SeekFrom::End(0))?;
        // Video lies between the parts of a film's sound, so each part may be a search.
        let seeks = 100 + end / 1024;
        let mut before = |end: u64, back: u64| -> io::Result<[u8; APE as usize]> {
            let mut found = [0; APE as usize];
            if let Some(place) = end.checked_sub(back) {
                file.seek(io::SeekFrom::Start(place))?;
                file.read_exact(&mut found)?;
            }
            Ok(found)
        };
        if before(end, ID3)?.starts_with(b"TAG") {
            end -= ID3;
        }
        let ape = before(end, APE)?;
        if let Some(rest) = ape.strip_prefix(b"APETAGEX") {
            // The length without the header, which bit 31 of the flags tells of.
            let word = |at: usize| rest[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
            end = end.saturating_sub(u64::from(word(4)) + if word(12) >> 31 == 1 { APE } else { 0 });
        }
        file.seek(io::SeekFrom::Start(0))?;
        Ok(Self { file, at: 0, end, seeks })
    }
}

impl<F: MediaSource> io::Read for TaglessFile<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = bytes.len().min(left);
        let read = self.file.read(&mut bytes[..most])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<F: MediaSource> io::Seek for TaglessFile<F> {
    fn seek(&mut self, place: io::SeekFrom) -> io::Result<u64> {
        self.seeks = self.seeks.checked_sub(1).ok_or_else(|| io::Error::other("its table of places is wrong"))?;
        let place = match place {
            io::SeekFrom::End(by) => io::SeekFrom::Start(self.end.saturating_add_signed(by)),
            place => place,
        };
        self.at = self.file.seek(place)?;
        Ok(self.at)
    }
}

impl<F: MediaSource> MediaSource for TaglessFile<F> {
    fn is_seekable(&self) -> bool {
        self.file.is_seekable()
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.end)
    }
}
