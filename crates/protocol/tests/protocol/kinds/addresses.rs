//! Tests of which texts are page addresses. The host decides whether an order is allowed.

use crate::kinds::{check, key, recaptcha};
use quittance_lifecycle::BadRequest;
use quittance_lifecycle::terms::{PAGE_ADDRESS_BYTES_MAX, page_host};

#[test]
fn an_absolute_web_address_is_taken_and_its_host_is_known() {
    for (address, host) in [
        ("https://example.com", "example.com"),
        ("http://example.com/", "example.com"),
        ("HTTPS://example.com/Login?next=%2F#top", "example.com"),
        ("https://example.com?x=1", "example.com"),
        ("https://example.com#x", "example.com"),
        ("https://shop.example.com:8443/a/b", "shop.example.com"),
        ("https://user:pass@example.com/", "example.com"),
        ("https://allowed.test:443@example.com/", "example.com"),
        ("https://a@b@example.com/", "example.com"),
        ("http://127.0.0.1:3000/x", "127.0.0.1"),
        ("http://[::1]:3000/x", "::1"),
        ("http://localhost", "localhost"),
        ("https://münchen.test/straße", "münchen.test"),
        ("https://例え.テスト/", "例え.テスト"),
        ("https://my_host-1.test/", "my_host-1.test"),
        ("https://example.com/a?u=https://other.test/@x", "example.com"),
    ] {
        assert_eq!(page_host(address), Ok(host), "{address}");
        key("recaptcha_v2", &recaptcha().with("pageurl", address));
    }
}

#[test]
fn anything_else_is_refused_with_what_is_wrong_and_what_to_give_instead() {
    let long = format!("https://example.com/{}", "a".repeat(PAGE_ADDRESS_BYTES_MAX));
    for (address, wrong) in [
        ("example.com", "http:// or https://"),
        ("/login", "http:// or https://"),
        ("//example.com/login", "http:// or https://"),
        ("ftp://example.com/", "http:// or https://"),
        ("javascript:alert(1)", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("https:/example.com", "http:// or https://"),
        ("https", "http:// or https://"),
        ("éééé", "http:// or https://"),
        ("https://", "no host"),
        ("https:///login", "no host"),
        ("https://?x", "no host"),
        ("https://user@/", "no host"),
        ("https://:443/", "no host"),
        ("https://../", "no host"),
        ("https://example.com:99999/", "port"),
        ("https://example.com:http/", "port"),
        ("https://a:b:80/", "port"),
        ("https://[::1/", "bracket"),
        ("https://[::1]x/", "bracket"),
        ("https://evil.test\\@allowed.test/", "backslash"),
        ("https://example.com:+80/", "port"),
        ("https://a..b/", "empty part"),
        ("https://exa mple.com/", "space, a backslash or a control"),
        (" https://example.com/", "space, a backslash or a control"),
        ("https://example.com/\r\nHost: other.test", "space, a backslash or a control"),
        ("https://example.com/\u{1b}[2J", "space, a backslash or a control"),
        ("https://exa%6dple.com/", "character that no host has"),
        ("https://<b>.test/", "character that no host has"),
        (&long, "too long"),
    ] {
        let why = check("recaptcha_v2", &recaptcha().with("pageurl", address)).expect_err(address);
        assert!(matches!(&why, BadRequest::NotAPageAddress { field, .. } if field == "pageurl"), "{address}");
        let message = why.to_string();
        assert!(message.contains("`pageurl`") && message.contains(wrong), "{address}: {message}");
        assert!(message.contains("https://example.com/login"), "it shows a good one: {message}");
        assert!(message.len() < 200 && !message.contains(char::is_control), "and nothing of the bad one");
    }
}

#[test]
fn an_empty_page_address_is_a_missing_one() {
    for empty in ["", " ", "\t\n"] {
        let why = check("turnstile", &crate::kinds::site().with("pageurl", empty)).expect_err("it is empty");
        assert_eq!(why, BadRequest::MissingField { kind: "turnstile".into(), field: "pageurl" });
    }
}

#[test]
fn an_open_kind_needs_no_page_but_a_page_that_it_has_must_be_one() {
    let draft = quittance_lifecycle::Draft::new("alice").with("x", "y");
    assert!(check("new", &draft).is_ok());
    assert!(check("new", &draft.clone().with("pageurl", "https://example.com/")).is_ok());
    let why = check("new", &draft.with("pageurl", "example.com")).expect_err("no scheme");
    assert!(matches!(why, BadRequest::NotAPageAddress { .. }));
}
