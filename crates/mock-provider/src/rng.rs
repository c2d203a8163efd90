//! Random numbers from a hash of the seed and the request, independent of thread timing. So a seed repeats its
//! faults, and two requests that change places keep theirs.

use sha2::{Digest, Sha256};

pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct MockRng(u64);

impl MockRng {
    /// One stream for each purpose, so that one more draw for one purpose does not shift another.
    pub(crate) fn of(seed: u64, purpose: &str, nth: u64) -> Self {
        let hash = digest([&seed.to_be_bytes()[..], purpose.as_bytes(), &nth.to_be_bytes()[..]]);
        Self(u64::from_be_bytes(hash[..8].try_into().expect("a digest has more than eight bytes")))
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number from 0 up to, but not including, 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn strikes(&mut self, rate: f64) -> bool {
        self.fraction() < rate
    }

    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.draw() % to.saturating_sub(from).max(1)
    }

    pub(crate) fn one_of<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        let nth = self.between(0, things.len() as u64);
        things.get(usize::try_from(nth).unwrap_or(0))
    }

    pub(crate) fn letters(&mut self, alphabet: &[u8], count: usize) -> String {
        (0..count).map(|_| char::from(*self.one_of(alphabet).unwrap_or(&b'-'))).collect()
    }
}
