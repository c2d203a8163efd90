//! Random numbers from a seed. Each part of the simulation has a generator of its own, so that a change in one part
//! does not change the others.

use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    #[must_use]
    pub fn new(seed: u64, part: &str) -> Self {
        let mut rng = Self(seed ^ 0x5851_f42d_4c95_7f2d);
        for byte in part.bytes() {
            rng.0 = rng.0.wrapping_add(byte.into());
            rng.roll();
        }
        rng
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn in_range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.roll() % (range.end - range.start).max(1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.in_range(0..len as u64)).expect("smaller than a length")
    }

    /// True with this probability, in thousandths.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.in_range(0..1000) < per_mille
    }
}
