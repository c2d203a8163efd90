//! Every way to hide a host that we know of, and what must not be taken for one.

use super::{address, addresses, anything, canonical};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

fn sees(found: Result<super::Hosts, super::TooDeep>, host: &str) -> bool {
    found.is_err() || found.is_ok_and(|hosts| hosts.contains(host))
}

#[test]
fn an_address_is_found_however_it_is_written() {
    for text in [
        "https://evil.net/",
        " https://evil.net/ ",
        "HTTPS://EVIL.NET",
        "https://evil.net\\",
        "https:\\\\evil.net\\x",
        "https:/evil.net",
        "https:evil.net/x",
        "https:///evil.net/",
        "http: //evil.net",
        "ht\ntps://ev\til.net/",
        "\u{0}https://evil.net",
        "//evil.net/",
        "\\\\evil.net\\x",
        "https://a@evil.net/",
        "https://evil.net@shop.example.org/",
        "https://shop.example.org\\@evil.net/",
        "https://shop.example.org@evil.net:443/",
        "https://evil.net.:8443/x",
        "https%3A%2F%2Fevil.net%2F",
        "https%253A%252F%252Fevil%252enet",
        "https:\\/\\/evil.net\\/",
        "\\u0068ttps://evil.net",
        "https://evil\\u002enet/",
        "https&#58;&#x2f;/evil.net",
        "https://ｅｖｉｌ．ｎｅｔ/",
        "ｈｔｔｐｓ：／／evil。net/",
        "https://ev\u{ad}il\u{200b}.net/",
        "{\"u\":\"https://evil.net/\"}",
        "a=1&u=https://evil.net/&b=2",
        "view-source:https://evil.net/",
        "ftp://evil.net/x",
        "https://shop.example.org/?next=//evil.net/x",
        "https://shop.example.org/go?to=https%3A%2F%2Fevil.net",
    ] {
        assert!(sees(addresses(text), "evil.net"), "{text:?}: {:?}", addresses(text));
        assert!(sees(anything(text), "evil.net"), "{text:?}: {:?}", anything(text));
    }
}

#[test]
fn of_what_is_not_known_bare_names_and_base64_are_read_as_well() {
    let nested = STANDARD.encode(STANDARD.encode("https://evil.net/"));
    for text in [
        "evil.net".to_owned(),
        "EVIL.net/login".into(),
        "a@evil.net".into(),
        "evil%2Enet".into(),
        "[\"evil.net\"]".into(),
        "x evil.net y".into(),
        STANDARD.encode("evil.net"),
        STANDARD.encode("{\"websiteURL\":\"https://evil.net/\"}"),
        URL_SAFE_NO_PAD.encode("https://evil.net/?a=~~~"),
        format!("data:text/plain;base64,{}", STANDARD.encode("see evil.net")),
        nested,
    ] {
        assert!(sees(anything(&text), "evil.net"), "{text:?}: {:?}", anything(&text));
    }
    assert!(sees(anything("http://127.0.0.1/"), "127.0.0.1"));
    assert!(sees(anything("10.1.2.3"), "10.1.2.3"));
    assert!(sees(anything("http://[::1]:80/"), "::1"));
    assert!(sees(anything("http://intranet/"), "intranet"));
    assert!(sees(anything("//localhost/x"), "localhost"));
}

#[test]
fn what_orders_are_made_of_names_no_host() {
    let picture: Vec<u8> = (0..3000_u32).map(|n| ((n * 7919) >> 3).to_le_bytes()[0] ^ 0x5a).collect();
    for text in [
        "6Le-wvkSAAAAAPBMRTvw0Q4Muexq9bi0DJwx_mJ-",
        "0x4AAAAAAADnPIDROrmt1Wwj",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
        "0.9",
        "verify",
        "10.0.1",
        "v3",
        "true",
        "{\"a\":[1,2.5,null]}",
        "CKIAHNMnGEkOpWrWS8TWRQ==",
        "If tomorrow is Saturday, what day is today? e.g. Monday, i.e. a day.",
        "session:abc123;theme:dark",
    ] {
        assert_eq!(anything(text).map(|hosts| hosts.len()), Ok(0), "{text}: {:?}", anything(text));
    }
    assert_eq!(anything(&STANDARD.encode(picture)).map(|hosts| hosts.len()), Ok(0));
    assert_eq!(addresses("Which site is shop.example.net?").map(|hosts| hosts.len()), Ok(0));
    assert_eq!(addresses("https://shop.example.org/a.html?x=b.c&y=1").map(|hosts| hosts.len()), Ok(1));
    assert_eq!(addresses("https://shop.example.org//login").map(|hosts| hosts.len()), Ok(1));
}

#[test]
fn an_address_may_come_without_its_scheme_where_one_is_meant() {
    for text in ["https://geo.example.net/x?y", "geo.example.net/x", "geo.example.net", " GEO.example.net. "]
    {
        assert!(sees(address(text), "geo.example.net"), "{text}: {:?}", address(text));
        assert_eq!(address(text).map(|hosts| hosts.len()), Ok(1), "{text}");
    }
    assert!(sees(address("geo.example.net/?referer=https%3A%2F%2Fevil.net%2F"), "evil.net"));
}

#[test]
fn a_host_has_one_spelling() {
    for (host, same) in [
        ("SHOP.Example.org.", "shop.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("ｅｖｉｌ．net", "evil.net"),
    ] {
        assert_eq!(canonical(host), same);
    }
}

#[test]
fn no_text_takes_long_or_breaks_the_reader() {
    for text in [
        "%25".repeat(20_000),
        "\\".repeat(60_000),
        "&#".repeat(30_000),
        "a.".repeat(30_000),
        "🦀%".repeat(9000),
    ] {
        _ = anything(&text);
    }
}
