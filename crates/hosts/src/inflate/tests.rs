//! Tests that data from other programs decompresses correctly, and that invalid data does no harm.

use super::*;

/// Made by zlib with dynamic codes: twelve lines like `3 https://evil.net/page/21?x=9`.
const LINES: &[u8] = b"\x78\xda\x75\xd0\x41\x0a\x42\x31\x0c\x84\xe1\xfd\x9c\xc2\x13\xd8\xa4\x4d\xf3\x5a\x41\x3c\x8b\x8b\xa2\x82\xc8\x03\x8b\x78\x7c\x53\xf7\xb3\xfe\x60\x18\x7e\x39\xdc\xe7\xdc\xdf\xa7\x94\xc6\xe7\xf1\x3c\xbe\xc6\x4c\xfb\xf5\x36\x92\x5c\xbe\x67\x81\x12\xdd\x42\x15\x99\xa8\x5a\xb0\xa1\x10\xce\x1a\xdc\x61\x8c\xdb\x1a\x77\x54\xe2\xa5\x86\xe7\x0a\x27\x6e\x39\xbc\x38\x36\xe6\x7d\xbd\xeb\x68\xc4\xab\x87\xbb\xa1\x13\xf7\x12\xde\x14\x2a\x2c\xce\x6a\xa7\x12\xf5\x68\xbe\x7f\xbf\xac\xf8\x01\xf4\xb6\x78\x24";

fn lines() -> String {
    (0..12).map(|n| format!("{n} https://evil.net/page/{}?x={}\n", n * 7, n * n)).collect()
}

#[test]
fn what_was_packed_comes_out_as_it_was() {
    assert_eq!(inflate(&LINES[2..], 4096), (lines().into_bytes(), End::Whole));
    let stored = b"\x01\x11\x00\xee\xffhttps://evil.net/";
    assert_eq!(inflate(stored, 4096), (b"https://evil.net/".to_vec(), End::Whole));
    let fixed = b"\xcb\x28\x29\x29\x28\xb6\xd2\xd7\x4f\x2d\xcb\xcc\xd1\xcb\x4b\x2d\xd1\x07\x00";
    assert_eq!(inflate(fixed, 4096), (b"https://evil.net/".to_vec(), End::Whole));
}

#[test]
fn no_more_comes_out_than_the_limit() {
    for most in [0, 1, 100] {
        let (inside, end) = inflate(&LINES[2..], most);
        assert_eq!((inside.as_slice(), end), (&lines().as_bytes()[..most], End::TooLarge));
    }
    // A thousand times its own size.
    let bomb: Vec<u8> = std::iter::repeat_n(BOMB, 64).flatten().copied().collect();
    assert_eq!(inflate(&bomb, 65536).0.len(), 65536);
}

/// A block of 16 KiB of one letter, without an end.
const BOMB: &[u8] = b"\xec\xc1\x31\x01\x00\x00\x00\xc2\xa0\xac\xeb\x5f\xc2\x18\x3e\x40\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x6f\x03\x00\x00\xff\xff";

#[test]
fn whatever_is_cut_or_flipped_ends_and_does_not_fail() {
    for cut in 0..LINES.len() {
        let (inside, _) = inflate(LINES[2..].get(..cut).unwrap_or_default(), 4096);
        assert!(lines().as_bytes().starts_with(&inside), "{cut}");
    }
    for bit in 0..LINES.len() * 8 {
        let mut flipped = LINES.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(inflate(&flipped, 4096).0.len() <= 4096);
    }
    let mut seed = 1_u64;
    for _ in 0..20_000 {
        let noise: Vec<u8> = (0..40)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed.to_le_bytes()[7]
            })
            .collect();
        assert!(inflate(&noise, 4096).0.len() <= 4096);
    }
}
