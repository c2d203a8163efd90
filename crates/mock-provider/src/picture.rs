//! Reads pictures, which come as uploads or as base64, with or without a `data:` prefix, and checks them as the
//! provider does.

use crate::settings::{MockClassicDialect, Settings};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use quittance_protocol::classic::Part;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The bytes of a parameter, or `None` if its text is not base64.
pub(crate) fn bytes_of(part: &Part) -> Option<Vec<u8>> {
    let text = match part {
        Part::File(bytes) => return Some(bytes.clone()),
        Part::Text(text) => text,
    };
    let encoded = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(',')?.1,
        None => text,
    };
    let encoded: Vec<u8> = encoded.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    LENIENT.decode(encoded).ok()
}

/// Checks whether the provider takes the bytes as a picture for its workers.
pub(crate) fn check(bytes: &[u8], settings: &Settings) -> Result<(), &'static str> {
    if bytes.len() < settings.image_bytes_min {
        return Err("ERROR_ZERO_CAPTCHA_FILESIZE");
    }
    if bytes.len() > settings.image_bytes_max {
        return Err("ERROR_TOO_BIG_CAPTCHA_FILESIZE");
    }
    let Some(size) = size_of(bytes, settings.dialect) else {
        return Err("ERROR_IMAGE_TYPE_NOT_SUPPORTED");
    };
    match settings.dialect {
        MockClassicDialect::CaptchaAi
            if size.is_some_and(|(width, height)| width.max(height) > settings.image_pixels_max) =>
        {
            Err("ERROR_IMAGE_DIMENSIONS_TOO_LARGE")
        }
        _ => Ok(()),
    }
}

/// The outer `None` means: no picture of a type that the provider takes. The inner size is known only for formats
/// with a fixed header.
fn size_of(bytes: &[u8], dialect: MockClassicDialect) -> Option<Option<(u32, u32)>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some(number(16).zip(number(20)));
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        return Some(short(6).zip(short(8)));
    }
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let is_taken_by_one = dialect == MockClassicDialect::CaptchaAi && (is_webp || bytes.starts_with(b"BM"));
    (bytes.starts_with(b"\xff\xd8\xff") || is_taken_by_one).then_some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_however_it_is_wrapped() {
        for text in ["aGVsbG8=", "aGVsbG8", "data:image/png;base64,aGVsbG8=", "aGVs\r\nbG8=\n"] {
            assert_eq!(bytes_of(&Part::Text(text.to_owned())).as_deref(), Some(&b"hello"[..]), "{text}");
        }
        for text in ["data:image/png", "a*b", "a"] {
            assert_eq!(bytes_of(&Part::Text(text.to_owned())), None, "{text}");
        }
    }

    #[test]
    fn a_picture_is_known_by_its_first_bytes() {
        let settings = Settings::quick(MockClassicDialect::CaptchaAi);
        let with = |head: &[u8]| [head, &[0; 200]].concat();
        assert_eq!(check(&with(b"\xff\xd8\xff\xe0"), &settings), Ok(()));
        assert_eq!(check(b"\xff\xd8\xff\xe0", &settings), Err("ERROR_ZERO_CAPTCHA_FILESIZE"));
        assert_eq!(check(&with(b"<html>"), &settings), Err("ERROR_IMAGE_TYPE_NOT_SUPPORTED"));
        let wide = with(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\0\x10");
        assert_eq!(check(&wide, &settings), Err("ERROR_IMAGE_DIMENSIONS_TOO_LARGE"));
        let huge = vec![0; settings.image_bytes_max + 1];
        assert_eq!(check(&huge, &settings), Err("ERROR_TOO_BIG_CAPTCHA_FILESIZE"));
    }
}
