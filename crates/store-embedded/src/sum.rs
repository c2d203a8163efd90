//! The checksum that distinguishes bit rot from a record. It is not a signature: a program that can write the file
//! can write the sum, and what it must catch is a disk that forgets.

const START: u64 = 0x9e37_79b9_7f4a_7c15;
const ODD: u64 = 0xff51_afd7_ed55_8ccd;
const ODDER: u64 = 0xc4ce_b9fe_1a85_ec53;

/// Every step is a bijection, so that a change within one word always changes the sum, and a wider one does all but
/// once in 2^64. It is several times as fast as a digest, so a million records are checked whenever they are opened.
#[derive(Clone, Copy)]
pub(crate) struct Sum(u64);

impl Sum {
    pub(crate) const fn new() -> Self {
        Self(START)
    }

    #[must_use]
    pub(crate) const fn word(self, word: u64) -> Self {
        // Once would leave the topmost bit alone, and the next word could undo it.
        let once = (self.0 ^ word).wrapping_mul(ODD);
        Self((once ^ once >> 32).wrapping_mul(ODDER).rotate_left(29))
    }

    #[must_use]
    pub(crate) fn maybe(self, word: Option<u64>) -> Self {
        word.map_or(self.word(0), |word| self.word(1).word(word))
    }

    /// With the length in front, so that no two lists of parts are summed alike.
    #[must_use]
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let start = self.word(bytes.len() as u64);
        let sum = words.iter().fold(start, |sum, word| sum.word(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        sum.word(u64::from_le_bytes(last))
    }

    pub(crate) const fn finish(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(ODD);
        mixed ^ mixed >> 29
    }
}

pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    Sum::new().bytes(bytes).finish()
}

#[cfg(test)]
mod tests {
    use super::{Sum, of_bytes};
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
        let split = |at: usize| Sum::new().bytes(&text[..at]).bytes(&text[at..]).finish();
        assert!((0..=text.len()).all(|at| sums.insert(split(at))), "parts are not run together");
        assert_ne!(Sum::new().maybe(None).finish(), Sum::new().maybe(Some(0)).finish());
    }
}
