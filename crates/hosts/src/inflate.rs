//! Decompresses gzip and zlib data (RFC 1951) up to a limit, to see what is inside. It ignores checksums, because
//! some readers do too.

#[cfg(test)]
mod tests;

/// The longest code of a symbol, in bits.
const CODE_BITS_MAX: usize = 15;

/// For each symbol of a length or a distance: its base value, and the number of extra bits.
const LENGTHS: [(usize, u32); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];
const DISTANCES: [(usize, u32); 30] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 1),
    (7, 1),
    (9, 2),
    (13, 2),
    (17, 3),
    (25, 3),
    (33, 4),
    (49, 4),
    (65, 5),
    (97, 5),
    (129, 6),
    (193, 6),
    (257, 7),
    (385, 7),
    (513, 8),
    (769, 8),
    (1025, 9),
    (1537, 9),
    (2049, 10),
    (3073, 10),
    (4097, 11),
    (6145, 11),
    (8193, 12),
    (12289, 12),
    (16385, 13),
    (24577, 13),
];
/// The order in which the code lengths of the code length alphabet are stored.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// How the compressed bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// The bytes are cut off or invalid. What came before is all that a reader can get.
    Broken,
    /// There is more inside than the limit.
    TooLarge,
}

/// Decompresses up to `bytes_max` bytes.
pub(crate) fn inflate(packed: &[u8], bytes_max: usize) -> (Vec<u8>, End) {
    let mut state =
        InflateState { bits: Bits { bytes: packed, at: 0, held: 0, count: 0 }, out: Vec::new(), bytes_max };
    let end = loop {
        match state.block() {
            Some(true) => break End::Whole,
            Some(false) => {}
            None if state.out.len() >= bytes_max => break End::TooLarge,
            None => break End::Broken,
        }
    };
    (state.out, end)
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    held: usize,
    count: u32,
}

impl Bits<'_> {
    /// The next bits; the first bit is the lowest.
    fn take(&mut self, count: u32) -> Option<usize> {
        while self.count < count {
            self.held |= usize::from(*self.bytes.get(self.at)?) << self.count;
            self.at += 1;
            self.count += 8;
        }
        let taken = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        Some(taken)
    }

    /// The next two bytes, the lower one first.
    fn two_bytes(&mut self) -> Option<usize> {
        let two = self.bytes.get(self.at..self.at + 2)?;
        self.at += 2;
        Some(usize::from(two[0]) | usize::from(two[1]) << 8)
    }
}

/// The codes of symbols, sorted by length.
struct HuffmanCode {
    counts: [usize; CODE_BITS_MAX + 1],
    letters: Vec<usize>,
}

impl HuffmanCode {
    fn new(lengths: &[usize]) -> Self {
        let mut counts = [0; CODE_BITS_MAX + 1];
        lengths.iter().for_each(|length| counts[*length] += 1);
        counts[0] = 0;
        let mut letters = Vec::with_capacity(lengths.len());
        for length in 1..=CODE_BITS_MAX {
            letters.extend((0..lengths.len()).filter(|letter| lengths[*letter] == length));
        }
        Self { counts, letters }
    }

    fn letter(&self, bits: &mut Bits<'_>) -> Option<usize> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in &self.counts[1..] {
            code |= bits.take(1)?;
            if code < first + count {
                return self.letters.get(index + code.checked_sub(first)?).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

struct InflateState<'a> {
    bits: Bits<'a>,
    out: Vec<u8>,
    bytes_max: usize,
}

impl InflateState<'_> {
    /// Reads one block. Returns whether it was the last, or `None` if it is broken or too large.
    fn block(&mut self) -> Option<bool> {
        let is_last = self.bits.take(1)? == 1;
        match self.bits.take(2)? {
            0 => self.stored()?,
            1 => {
                let lengths = [[8; 144].as_slice(), &[9; 112], &[7; 24], &[8; 8]].concat();
                self.coded(&HuffmanCode::new(&lengths), &HuffmanCode::new(&[5; 30]))?;
            }
            2 => {
                let (letters, distances) = self.codes()?;
                self.coded(&letters, &distances)?;
            }
            _ => return None,
        }
        Some(is_last)
    }

    fn put(&mut self, byte: u8) -> Option<()> {
        (self.out.len() < self.bytes_max).then(|| self.out.push(byte))
    }

    fn stored(&mut self) -> Option<()> {
        (self.bits.held, self.bits.count) = (0, 0);
        let length = self.bits.two_bytes()?;
        if self.bits.two_bytes()? != length ^ 0xffff {
            return None;
        }
        for _ in 0..length {
            let byte = *self.bits.bytes.get(self.bits.at)?;
            self.bits.at += 1;
            self.put(byte)?;
        }
        Some(())
    }

    /// Reads the codes that the block itself defines.
    fn codes(&mut self) -> Option<(HuffmanCode, HuffmanCode)> {
        let letters = self.bits.take(5)? + 257;
        let distances = self.bits.take(5)? + 1;
        let mut lengths = [0; 19];
        for place in &ORDER[..self.bits.take(4)? + 4] {
            lengths[*place] = self.bits.take(3)?;
        }
        let code = HuffmanCode::new(&lengths);
        let mut lengths = Vec::with_capacity(letters + distances);
        while lengths.len() < letters + distances {
            let (length, repeats) = match code.letter(&mut self.bits)? {
                16 => (*lengths.last()?, 3 + self.bits.take(2)?),
                17 => (0, 3 + self.bits.take(3)?),
                18 => (0, 11 + self.bits.take(7)?),
                length => (length, 1),
            };
            lengths.extend(std::iter::repeat_n(length, repeats));
        }
        let distances = lengths.get(letters..letters + distances)?;
        Some((HuffmanCode::new(&lengths[..letters]), HuffmanCode::new(distances)))
    }

    fn coded(&mut self, letters: &HuffmanCode, distances: &HuffmanCode) -> Option<()> {
        loop {
            let letter = letters.letter(&mut self.bits)?;
            if let Ok(byte) = u8::try_from(letter) {
                self.put(byte)?;
                continue;
            }
            if letter == 256 {
                return Some(());
            }
            let (length, bits) = *LENGTHS.get(letter - 257)?;
            let length = length + self.bits.take(bits)?;
            let (distance, bits) = *DISTANCES.get(distances.letter(&mut self.bits)?)?;
            let distance = distance + self.bits.take(bits)?;
            for _ in 0..length {
                let byte = *self.out.get(self.out.len().checked_sub(distance)?)?;
                self.put(byte)?;
            }
        }
    }
}
