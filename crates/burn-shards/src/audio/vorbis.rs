//! Vorbis, by the crate lewton: symphonia decodes channels to other samples if they are not coupled, or if more than two are.

use lewton::{
    audio::{PreviousWindowRight, read_audio_packet_generic},
    header::{IdentHeader, SetupHeader, read_header_ident, read_header_setup},
};
use symphonia::core::{
    errors::{Error, Result},
    packet::Packet,
};

/// The bytes of the first header.
const IDENT: usize = 30;

pub(super) struct Vorbis {
    ident: IdentHeader,
    setup: SetupHeader,
    previous: PreviousWindowRight,
    /// Of each channel, the frames that were decoded, but are those of the next packet by their times.
    next: Vec<Vec<f32>>,
}

impl Vorbis {
    /// Reads the first and the third header, which follow each other.
    pub(super) fn new(headers: &[u8]) -> Result<Self> {
        let damaged = |_| Error::DecodeError("its Vorbis headers are wrong");
        let (ident, setup) =
            headers.split_at_checked(IDENT).ok_or(Error::DecodeError("its Vorbis headers are cut off"))?;
        let ident = read_header_ident(ident).map_err(damaged)?;
        let setup = read_header_setup(setup, ident.audio_channels, (ident.blocksize_0, ident.blocksize_1));
        Ok(Self { setup: setup.map_err(damaged)?, ident, previous: PreviousWindowRight::new(), next: Vec::new() })
    }

    /// Forgets the packet before: the next one has no frames.
    pub(super) fn reset(&mut self) {
        self.previous = PreviousWindowRight::new();
        self.next.clear();
    }

    /// Appends the frames of a packet, with the channels interleaved in the order of `.wav` files.
    pub(super) fn decode(&mut self, packet: &Packet, samples: &mut Vec<f32>) -> Result<()> {
        let read = read_audio_packet_generic(&self.ident, &self.setup, &packet.data, &mut self.previous);
        let planes: Vec<Vec<f32>> = read.map_err(|_| Error::DecodeError("a packet of Vorbis is wrong"))?;
        self.next.resize(planes.len(), Vec::new());
        self.next.iter_mut().zip(planes).for_each(|(next, plane)| next.extend(plane));
        let order: &[usize] = match self.next.len() {
            3 => &[0, 2, 1],
            5 => &[0, 2, 1, 3, 4],
            6 => &[0, 2, 1, 5, 3, 4],
            7 => &[0, 2, 1, 6, 5, 3, 4],
            8 => &[0, 2, 1, 7, 5, 6, 3, 4],
            _ => &[],
        };
        // lewton decodes as many frames as it can. The times of packets are for as many as are between the middles of two windows.
        let all = packet.block_dur().get() as usize;
        let decoded = self.next.first().map_or(0, Vec::len).min(all);
        let [start, end] = [packet.trim_start, packet.trim_end].map(|trimmed| trimmed.get() as usize);
        let kept = start.saturating_sub(all - decoded)..decoded.saturating_sub(end);
        let plane = |channel: usize| &self.next[order.get(channel).copied().unwrap_or(channel)];
        samples.extend(kept.flat_map(|frame| (0..self.next.len()).map(move |channel| plane(channel)[frame])));
        self.next.iter_mut().for_each(|next| drop(next.drain(..decoded)));
        Ok(())
    }
}
