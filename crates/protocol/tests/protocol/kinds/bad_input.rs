//! Tests that every mistake in an order is reported before payment: as a type for the APIs, and as a sentence that
//! names the parameter but does not repeat its value.

use crate::kinds::{check, image, known, least, recaptcha, site};
use quittance_lifecycle::terms::{
    FILE_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, PARAM_NAME_BYTES_MAX, PARAMS_MAX, TENANT_BYTES_MAX,
    TEXT_BYTES_MAX,
};
use quittance_lifecycle::{BadRequest, Draft, Shape, Value};
use quittance_protocol::kinds::{kinds, open_kind};
use std::time::Duration;

/// Checks that the order is refused with this reason, and that the message holds all `words` and no control
/// characters.
fn refused(kind: &str, draft: &Draft, expected: &BadRequest, words: &[&str]) {
    let why = check(kind, draft).expect_err("it is bad");
    assert_eq!(why, *expected);
    let message = why.to_string();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    assert!(message.len() < 400, "{message}");
    assert!(message.chars().all(|c| !c.is_control()), "{message:?}");
}

#[test]
fn every_required_field_of_every_kind_is_missed_by_name() {
    for kind in kinds() {
        for field in kind.fields.iter().filter(|field| field.required) {
            let expected = BadRequest::MissingField { kind: kind.name.to_string(), field: field.name };
            let mut draft = least(&kind);
            draft.params.remove(field.name);
            let words = [&*format!("`{}`", field.name), "needs it", &*kind.name];
            refused(&kind.name, &draft, &expected, &words);
            refused(&kind.name, &draft.with(field.name, " \t"), &expected, &words);
        }
    }
}

#[test]
fn a_missing_site_key_is_missed_in_each_of_the_common_kinds() {
    for (kind, field) in [
        ("recaptcha_v2", "googlekey"),
        ("recaptcha_v3", "googlekey"),
        ("hcaptcha", "sitekey"),
        ("turnstile", "sitekey"),
        ("funcaptcha", "publickey"),
        ("geetest", "gt"),
        ("geetest_v4", "captcha_id"),
    ] {
        let mut draft = least(&known(kind));
        draft.params.remove(field);
        let expected = BadRequest::MissingField { kind: kind.into(), field };
        refused(kind, &draft, &expected, &[field, "missing"]);
    }
}

#[test]
fn a_picture_has_at_least_a_hundred_bytes_and_at_most_a_mebibyte() {
    let sized = |bytes: usize| Draft::new("alice").with("body", vec![7; bytes]);
    let too_small = |bytes| BadRequest::FileTooSmall { field: "body".into(), bytes, bytes_min: 100 };
    let too_large = |bytes| BadRequest::FileTooLarge { field: "body".into(), bytes, bytes_max: 1 << 20 };
    refused("image", &sized(0), &too_small(0), &["`body`", "zero bytes", "nothing to solve"]);
    refused("image", &sized(1), &too_small(1), &["`body`", "1 bytes", "100"]);
    refused("image", &sized(99), &too_small(99), &["`body`", "99 bytes", "100"]);
    assert!(check("image", &sized(100)).is_ok());
    assert!(check("image", &sized(1 << 20)).is_ok());
    refused("image", &sized((1 << 20) + 1), &too_large((1 << 20) + 1), &["`body`", "1048577", "1048576"]);
}

#[test]
fn a_file_of_an_open_kind_has_a_limit_too() {
    let draft = Draft::new("alice").with("file", vec![0; FILE_BYTES_MAX + 1]);
    let expected = BadRequest::FileTooLarge {
        field: "file".into(),
        bytes: FILE_BYTES_MAX + 1,
        bytes_max: FILE_BYTES_MAX,
    };
    refused("new", &draft, &expected, &["`file`", "the most", "2097152"]);
}

#[test]
fn text_instead_of_a_file_and_a_file_instead_of_text_are_distinguished() {
    for kind in kinds() {
        for field in kind.fields {
            let draft = least(&kind);
            let name = field.name.to_string();
            let quoted = format!("`{name}`");
            if let Shape::File { .. } = field.shape {
                let draft = draft.with(field.name, "/9j/4AAQ-secret");
                refused(
                    &kind.name,
                    &draft,
                    &BadRequest::NotAFile { field: name },
                    &[&quoted, "bytes of a file"],
                );
            } else {
                let draft = draft.with(field.name, b"secret".to_vec());
                refused(&kind.name, &draft, &BadRequest::NotText { field: name }, &[&quoted, "must be text"]);
            }
        }
    }
}

#[test]
fn an_idempotency_key_has_from_1_to_255_bytes() {
    for bytes in [0, IDEMPOTENCY_KEY_BYTES_MAX + 1, 100_000] {
        let draft = Draft { idempotency_key: Some("k".repeat(bytes)), ..recaptcha() };
        let expected = BadRequest::IdempotencyKeyLength { bytes };
        refused("recaptcha_v2", &draft, &expected, &["idempotency key", "1 to 255", &bytes.to_string()]);
    }
    for bytes in [1, IDEMPOTENCY_KEY_BYTES_MAX] {
        let draft = Draft { idempotency_key: Some("k".repeat(bytes)), ..recaptcha() };
        assert!(check("recaptcha_v2", &draft).is_ok());
    }
    let draft = Draft { idempotency_key: Some("é".repeat(128)), ..recaptcha() };
    refused("recaptcha_v2", &draft, &BadRequest::IdempotencyKeyLength { bytes: 256 }, &["bytes"]);
}

#[test]
fn a_tenant_has_a_name_of_at_most_64_bytes() {
    for bytes in [0, TENANT_BYTES_MAX + 1] {
        let draft = Draft { tenant: "t".repeat(bytes), ..recaptcha() };
        refused(
            "recaptcha_v2",
            &draft,
            &BadRequest::BadTenant { bytes },
            &["tenant", "1 to 64", &bytes.to_string()],
        );
    }
    let draft = Draft { tenant: "t".repeat(TENANT_BYTES_MAX), ..recaptcha() };
    assert!(check("recaptcha_v2", &draft).is_ok());
}

#[test]
fn an_order_has_at_most_64_parameters() {
    let many = |n| (2..n).fold(recaptcha(), |draft, i| draft.with(&format!("p{i}"), "x"));
    assert!(check("recaptcha_v2", &many(PARAMS_MAX)).is_ok());
    let expected = BadRequest::TooManyParams { found: 65 };
    refused("recaptcha_v2", &many(65), &expected, &["65 parameters", "at most 64"]);
}

#[test]
fn a_text_has_at_most_64_kibibytes() {
    let long = |bytes: usize| site().with("data", &*"x".repeat(bytes));
    assert!(check("hcaptcha", &long(TEXT_BYTES_MAX)).is_ok());
    let bytes = TEXT_BYTES_MAX + 1;
    let expected = BadRequest::TextTooLong { field: "data".into(), bytes, bytes_max: TEXT_BYTES_MAX };
    refused("hcaptcha", &long(bytes), &expected, &["`data`", "65537", "at most 65536"]);
}

#[test]
fn a_page_of_html_is_a_file_that_travels_as_text() {
    let page = |field: &str, bytes: usize| {
        let html = format!("<html>{}</html>", " ".repeat(bytes - "<html></html>".len()));
        recaptcha().with("html_page_base64", "").with(field, &*html)
    };
    assert!(check("tspd", &page("html_page_base64", FILE_BYTES_MAX)).is_ok());
    assert!(check("tspd", &page("html_page_base64", FILE_BYTES_MAX + 1)).is_err());
    assert!(check("tspd", &page("tspd_cookie", TEXT_BYTES_MAX + 1)).is_err());
}

#[test]
fn no_answer_promises_more_than_three_quarters_of_its_life() {
    for (kind, draft, most_s) in
        [("recaptcha_v2", recaptcha(), 90), ("turnstile", site(), 225), ("new", recaptcha(), 90)]
    {
        let most = Duration::from_secs(most_s);
        let asks = |wanted| Draft { min_life: Some(wanted), ..draft.clone() };
        assert_eq!(check(kind, &asks(most)).expect("it can be had").1.min_life, most);
        let wanted = most + Duration::from_secs(1);
        let words = [format!("{} s of life", most_s + 1), format!("at most {most_s} s")];
        refused(
            kind,
            &asks(wanted),
            &BadRequest::LifeNotToBeHad { wanted, most },
            &words.each_ref().map(|word| &**word),
        );
        assert!(check(kind, &asks(Duration::MAX)).is_err());
    }
    let patient = Draft { min_life: Some(Duration::from_secs(1 << 40)), ..image(1) };
    assert!(check("image", &patient).is_ok(), "what lives for ever has any life that is wanted");
}

#[test]
fn an_order_may_take_from_a_second_to_a_day() {
    let day = Duration::from_secs(24 * 3600);
    for wanted in [Duration::ZERO, Duration::from_millis(999), day + Duration::from_millis(1), Duration::MAX]
    {
        let draft = Draft { timeout: Some(wanted), ..recaptcha() };
        let words = ["deadline", "1 s to 86400 s"];
        refused("recaptcha_v2", &draft, &BadRequest::BadTimeout { wanted }, &words);
    }
    for good in [Duration::from_secs(1), day] {
        let draft = Draft { timeout: Some(good), ..recaptcha() };
        assert_eq!(check("recaptcha_v2", &draft).expect("it is within bounds").1.timeout, good);
    }
}

#[test]
fn a_hostile_parameter_name_comes_out_harmless_and_short() {
    let long = "n".repeat(PARAM_NAME_BYTES_MAX + 1);
    for name in ["", "\u{1b}[2J\u{1b}]0;owned\u{7}", "a\r\nSet-Cookie: x", "nul\0", "\u{85}", &long] {
        let expected = BadRequest::BadParamName { name: name.into() };
        refused("recaptcha_v2", &recaptcha().with(name, "x"), &expected, &["parameter name", "1 to 128"]);
    }
    // Not control characters, so they may be in a name; what they do to a terminal, they must not do from there.
    let name = "\u{202e}txt\u{200b}`\"\u{feff}";
    let draft = recaptcha().with(name, &*"x".repeat(TEXT_BYTES_MAX + 1));
    let message = check("recaptcha_v2", &draft).expect_err("it is too long").to_string();
    assert!(message.contains("\\u{202e}txt\\u{200b}"), "{message}");
    assert!(!message.contains(['\u{202e}', '\u{200b}', '\u{feff}']), "{message:?}");
}

/// Proxies hold passwords, and pictures may be private.
#[test]
fn no_refusal_repeats_what_was_in_a_parameter() {
    let secret = "s3cret".repeat(2000);
    let kinds = ["recaptcha_v2", "cloudflare_challenge", "image", "new"];
    let drafts = [
        recaptcha().with("pageurl", &*format!("https://u:{secret}@/")),
        recaptcha().with("proxy", &*format!("u:{}", secret.repeat(10))),
        recaptcha().with("googlekey", secret.as_bytes().to_vec()).with("pageurl", "s3cret"),
        Draft::new("alice").with("body", &*secret),
        Draft { idempotency_key: Some(secret.clone()), ..recaptcha() },
        Draft { tenant: secret.clone(), ..recaptcha() },
    ];
    let mut refusals = 0;
    for (kind, draft) in kinds.iter().flat_map(|kind| drafts.iter().map(move |draft| (kind, draft))) {
        assert!(!format!("{:?}", draft.params).contains("s3cret"));
        if let Err(why) = check(kind, draft) {
            refusals += 1;
            assert!(!format!("{why} {why:?}").contains("s3cret"), "{why:?}");
        }
    }
    assert!(refusals > 12, "{refusals}");
    assert_eq!(format!("{:?}", Value::from("s3cret")), "6 bytes");
}

#[test]
fn the_frame_is_checked_for_open_kinds_too() {
    assert!(open_kind("new").fields.iter().all(|field| !field.required));
    refused("new", &Draft::new(""), &BadRequest::BadTenant { bytes: 0 }, &["tenant"]);
}
