//! The checksum that detects damage to a record: XXH3, 64 bits. It is not a signature: a program that can write the
//! file can write the checksum. It is several times as fast as a digest, so a million records can be checked at every
//! start.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

pub(crate) struct Checksum(Xxh3Default);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(Xxh3Default::new())
    }

    #[must_use]
    pub(crate) fn word(mut self, word: u64) -> Self {
        self.0.update(&word.to_le_bytes());
        self
    }

    #[must_use]
    pub(crate) fn maybe(self, word: Option<u64>) -> Self {
        match word {
            None => self.word(0),
            Some(word) => self.word(1).word(word),
        }
    }

    /// Adds bytes with their length, so that different lists of parts give different checksums.
    #[must_use]
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let mut sum = self.word(bytes.len() as u64);
        sum.0.update(bytes);
        sum
    }

    pub(crate) fn finish(self) -> u64 {
        self.0.digest()
    }
}

pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Checksum, of_bytes};
    use std::collections::BTreeSet;

    #[test]
    fn every_flipped_bit_every_lost_byte_and_every_swap_is_noticed() {
        let text: Vec<u8> = (0..100_u8).collect();
        let mut sums = BTreeSet::from([of_bytes(&text)]);
        for bit in 0..text.len() * 8 {
            let mut rotten = text.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert!(sums.insert(of_bytes(&rotten)), "bit {bit}");
        }
        for length in 0..text.len() {
            assert!(sums.insert(of_bytes(&text[..length])), "cut to {length}");
        }
        let split = |at: usize| Checksum::new().bytes(&text[..at]).bytes(&text[at..]).finish();
        assert!((0..=text.len()).all(|at| sums.insert(split(at))), "parts are not run together");
        assert_ne!(Checksum::new().maybe(None).finish(), Checksum::new().maybe(Some(0)).finish());
    }
}
