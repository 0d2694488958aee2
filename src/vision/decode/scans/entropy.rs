//! The bits of a scan, and its Huffman codes (T.81, annex F).

/// The bits between two markers. Behind the last one they are 0, as libjpeg has it.
pub(super) struct Bits<'a> {
    data: &'a [u8],
    held: u64,
    count: u32,
    /// How many of the held bits lie behind the end.
    beyond: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, held: 0, count: 0, beyond: 0 }
    }

    fn fill(&mut self) {
        while self.count <= 48 {
            let (byte, step) = match *self.data {
                [0xFF, 0, ..] => (0xFF, 2),
                [] | [0xFF, ..] => (0, 0),
                [byte, ..] => (byte, 1),
            };
            self.data = &self.data[step..];
            self.held = self.held << 8 | u64::from(byte);
            self.count += 8;
            self.beyond += if step == 0 { 8 } else { 0 };
        }
    }

    /// Whether bits behind the end were taken. As in libjpeg, later blocks then get no bits.
    pub(super) fn are_used_up(&self) -> bool {
        self.count < self.beyond
    }

    /// Takes up to 16 bits.
    pub(super) fn take(&mut self, count: u8) -> i32 {
        if self.count < u32::from(count) {
            self.fill();
        }
        self.count -= u32::from(count);
        (self.held >> self.count & ((1 << count) - 1)) as i32
    }

    /// Takes the bits of a value that has this length; half of the values are negative.
    pub(super) fn value(&mut self, length: u8) -> i32 {
        let bits = self.take(length);
        if length == 0 || bits >> (length - 1) == 1 { bits } else { bits - (1 << length) + 1 }
    }

    pub(super) fn symbol(&mut self, codes: &Codes) -> u8 {
        if self.count < 16 {
            self.fill();
        }
        let next = (self.held >> (self.count - 16) & 0xFFFF) as u32;
        let (length, symbol) = codes.find(next);
        self.count -= length;
        symbol
    }

    /// Goes behind the next marker of a restart. If the next marker is another one, the place before it stays.
    pub(super) fn restart(&mut self) {
        let is_used_up = self.are_used_up();
        (self.held, self.count, self.beyond) = (0, 0, 0);
        self.seek_marker();
        match self.data {
            [0xFF, 0xD0..=0xD7, rest @ ..] => self.data = rest,
            _ => self.beyond = u32::from(is_used_up), // as in libjpeg, later blocks still get no bits
        }
    }

    fn seek_marker(&mut self) {
        let marker = self.data.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF));
        self.data = marker.and_then(|at| self.data.get(at..)).unwrap_or_default();
    }

    /// The bytes behind the scan, from the next marker on that is none of a restart.
    pub(super) fn rest(mut self) -> &'a [u8] {
        loop {
            self.seek_marker();
            match self.data {
                [0xFF, 0xD0..=0xD7, rest @ ..] => self.data = rest,
                rest => return rest,
            }
        }
    }
}

/// The codes of a table.
#[derive(Clone)]
pub(super) struct Codes {
    /// For each length the first code that is longer, in 16 bits, and the place of the code 0 among the symbols.
    lengths: [(u32, i64); 16],
    symbols: Vec<u8>,
}

impl Codes {
    /// Reads a table, and returns the rest of the segment.
    pub(super) fn read(data: &[u8]) -> Option<(Self, &[u8])> {
        let (counts, rest) = data.split_first_chunk::<16>()?;
        let all = counts.iter().map(|count| usize::from(*count)).sum();
        let (symbols, rest) = rest.split_at_checked(all)?;
        let (mut code, mut place) = (0u32, 0i64);
        let lengths = std::array::from_fn(|nth| {
            let count = u32::from(counts[nth]);
            let zero = place - i64::from(code);
            (code, place) = (code + count, place + i64::from(count));
            let end = code << (15 - nth);
            code <<= 1;
            (end, zero)
        });
        Some((Self { lengths, symbols: symbols.to_vec() }, rest))
    }

    /// The length and the symbol of the code that 16 bits begin with. Bits that are no code stand for the symbol 0, as
    /// in libjpeg.
    fn find(&self, next: u32) -> (u32, u8) {
        let found = (1u32..).zip(&self.lengths).find(|(_, (end, _))| next < *end);
        let Some((length, (_, zero))) = found else { return (16, 0) };
        let place = zero + i64::from(next >> (16 - length));
        (length, usize::try_from(place).ok().and_then(|place| self.symbols.get(place)).copied().unwrap_or(0))
    }
}
