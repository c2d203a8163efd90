//! Tests of hosts that are hidden in content of another form: packed, in pages of HTML, in drawings, in base64.

use super::*;

#[test]
fn what_is_packed_is_looked_into_and_random_tokens_are_not_taken_for_it() {
    let fixed = b"\xcb\x28\x29\x29\x28\xb6\xd2\xd7\x4f\x2d\xcb\xcc\xd1\xcb\x4b\x2d\xd1\x07\x00";
    let gzip = [&b"\x1f\x8b\x08\x18\0\0\0\0\0\x03name\0comment\0"[..], fixed].concat();
    let zlib = [&b"\x78\x9c"[..], fixed].concat();
    for packed in [&gzip, &zlib, &gzip[..gzip.len() - 1].to_vec(), &zlib[..zlib.len() - 1].to_vec()] {
        let text = STANDARD.encode(packed);
        assert!(sees(anything(&text), "evil.net"), "{text}: {:?}", anything(&text));
        // A token is handed on as it is.
        assert_eq!(opaque(&text), Ok(crate::Hosts::new()), "{text}");
    }
    let json = "{\"a\":\"\\u001f\\u008b\\b\\u0000\"}";
    assert_eq!(anything(json), Err(Unclear::Packed));
    let mut seed = 7_u64;
    let mut refused = 0;
    for _ in 0..4000 {
        let mut bytes = vec![0x78, 0x9c];
        bytes.extend((0..60).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed.to_le_bytes()[7]
        }));
        refused += usize::from(anything(&STANDARD.encode(bytes)) != Ok(crate::Hosts::new()));
    }
    assert!(refused <= 4, "{refused} of 4000 tokens that begin like zlib");
}

/// What a refuter found in November 2026: each of these led to a page that was not listed.
#[test]
fn a_page_of_html_leads_nowhere_by_parts_maps_comments_hosts_and_octal_escapes() {
    for page in [
        "<script>var u='https://evil.net/x'</script><script>location=u</script>",
        "<script type=importmap>{\"imports\":{\"a\":\"https://evil.net/x.js\"}}</script><script type=module>let a</script>",
        "<script><!--<script></script>-->\nlocation='https://evil.net/x'</script>",
        "<script>location.hostname='evil.net'</script>",
        "<script>location['host'] = `evil.net`</script>",
        r"<script>location='\57\57evil.net'</script>",
    ] {
        assert!(sees(html(page), "evil.net"), "{page}: {:?}", html(page));
    }
    for page in [
        "<script>var u='https://cdn.example.net/x'</script><p>text</p>",
        "<script>if (location.host == 'evil.net') stop()</script>",
        "<a href='https://example.net/'>x</a><script>document.title = 'x'</script>",
    ] {
        assert_eq!(html(page).map(|hosts| hosts.len()), Ok(0), "{page}: {:?}", html(page));
    }
}

#[test]
fn a_drawing_hides_no_host_in_entities_of_its_own_or_in_escapes_of_a_style() {
    let drawing = |head: &str, body: &str| format!("<?xml version=\"1.0\"?>{head}<svg>{body}</svg>");
    for text in [
        drawing(r#"<!DOCTYPE svg [<!ENTITY s "//">]>"#, r#"<image href="&s;evil.net/x.png"/>"#),
        drawing(
            r#"<!DOCTYPE svg [<!ENTITY a "https:/"><!ENTITY b "/evil.net"><!ENTITY c "&a;&b;">]>"#,
            r#"<image href="&c;/x.png"/>"#,
        ),
        drawing("", r"<style>rect{fill:url(https\3a \2f \2f evil.net/a)}</style>"),
    ] {
        assert!(sees(file(text.as_bytes()), "evil.net"), "{text}: {:?}", file(text.as_bytes()));
    }
    let hidden = drawing(r#"<!DOCTYPE svg [<!ENTITY % p "x">]>"#, "");
    assert_eq!(file(hidden.as_bytes()), Err(Unclear::TooDeep));
    let endless = drawing(r#"<!DOCTYPE svg [<!ENTITY a "&a;&a;">]>"#, "&a;");
    assert_eq!(file(endless.as_bytes()), Err(Unclear::TooDeep));
    let of_a_program = drawing(
        r#"<!DOCTYPE svg [<!ENTITY ns_svg "http://www.w3.org/2000/svg">]>"#,
        r#"<g xmlns="&ns_svg;"/>"#,
    );
    assert_eq!(file(of_a_program.as_bytes()).map(|hosts| hosts.len()), Ok(0));
}

#[test]
fn an_address_in_the_sixth_version_is_seen_whole_and_shortened() {
    for text in ["2606:2800:220:1:248:1893:25c8:1946", "0:0:0:0:0:ffff:5db8:d822", "64:ff9b::5db8:d822"] {
        assert_eq!(anything(text).map(|hosts| hosts.len()), Ok(1), "{text}: {:?}", anything(text));
    }
    for text in ["a::b", "12:30:45", "00:1a:2b:3c:4d:5e"] {
        assert_eq!(anything(text).map(|hosts| hosts.len()), Ok(0), "{text}: {:?}", anything(text));
    }
}

#[test]
fn a_password_of_a_proxy_is_no_address() {
    assert!(!is_proxy("x:https://evil.net/login@1.2.3.4:80"));
    assert!(is_proxy("user:pa:ss/w@1.2.3.4:80"));
}

/// Trap: of fewer than twelve characters, one foreign character made the bytes "not text", and UTF-16 was judged by
/// its raw bytes.
#[test]
fn a_short_host_in_base64_is_found_beside_foreign_characters_and_in_wide_text() {
    let unmarked = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let four = |text: &str| text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect::<Vec<u8>>();
    for bytes in [
        "evil\u{3002}net".as_bytes().to_vec(),
        "evil\u{ff0e}net".into(),
        "\u{201c}evil.net\u{201d}".into(),
        "\u{ab}\u{ab}\u{ab}evil.net\u{bb}\u{bb}\u{bb}".into(),
        "\u{20ac}evil.net".into(),
        "evil.net\u{1}\u{2}\u{3}\u{4}".into(),
        b"evil.net\xff".to_vec(),
        b"\x93evil.net\x94".to_vec(),
        [b"\x93", "evil\u{3002}net".as_bytes(), b"\x94"].concat(),
        b"\xff\xff\xff\xff\xffevil.net\xff\xff\xff\xff\xff".to_vec(),
        unmarked("\u{feff}evil.net"),
        unmarked("\u{feff}\u{ff45}\u{ff56}\u{ff49}\u{ff4c}\u{ff0e}net"),
        unmarked("\u{ff45}\u{ff56}\u{ff49}\u{ff4c}.net"),
        unmarked("evil.net"),
        unmarked("evil\u{3002}net"),
        big("\u{feff}evil\u{3002}net"),
        big("evil\u{ff0e}net"),
        four("\u{feff}evil\u{ff61}net"),
        four("evil\u{3002}net"),
    ] {
        let text = STANDARD.encode(&bytes);
        for (reader, found) in
            [("anything", anything(&text)), ("opaque", opaque(&text)), ("token", token(&text))]
        {
            assert!(sees(found.clone(), "evil.net"), "{reader} {text} {bytes:x?}: {found:?}");
        }
        let json = format!("{{\"u\":\"{text}\"}}");
        assert!(sees(addresses(&json), "evil.net"), "{json}: {:?}", addresses(&json));
        let vendors = format!("https://geo.example.net/?u={text}");
        assert!(
            sees(crate::vendor_address(&vendors), "evil.net"),
            "{vendors}: {:?}",
            crate::vendor_address(&vendors)
        );
    }
    let login = "//5F/1b/Sf9M/1j/LgBuAGUAdAAvAGwAbwBnAGkAbgA=";
    assert!(sees(anything(login), "evilx.net") && sees(opaque(login), "evilx.net"), "{:?}", opaque(login));
    assert!(sees(anything("[::]/x"), "::"), "{:?}", anything("[::]/x"));
    assert_eq!(anything("Vec::new and a :: b").map(|hosts| hosts.len()), Ok(0));
    for text in ["YS5jb/8=", "4oCcYS5jb+KAnQ==", "//5hAC4AYwBvAA=="] {
        assert!(sees(anything(text), "a.co") && sees(opaque(text), "a.co"), "{text}: {:?}", anything(text));
    }
    for text in ["\u{201c}evil.net\u{201d}", "\u{ab}evil.net\u{bb}", "\u{fffd}evil.net\u{fffd}"] {
        assert!(sees(opaque(text), "evil.net"), "{text}: {:?}", opaque(text));
        assert!(sees(token(text), "evil.net"), "{text}: {:?}", token(text));
    }
}

/// The caller cannot change a token that the site made. So random bytes must not be taken for hosts, except for the
/// one in ten thousand that spells one.
#[test]
fn random_tokens_and_long_texts_name_no_host_however_short_they_are() {
    let mut seed = 11_u64;
    let mut byte = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed.to_le_bytes()[7]
    };
    let mut refused = Vec::new();
    for length in (4..40).chain([64, 96, 128, 300, 1000]) {
        for _ in 0..if length < 40 { 800 } else { 20 } {
            let text = STANDARD.encode((0..length).map(|_| byte()).collect::<Vec<u8>>());
            let found = [opaque(&text), token(&text), anything(&text), addresses(&text)];
            if found.iter().any(|found| *found != Ok(crate::Hosts::new())) {
                refused.push(format!("{text}: {found:?}"));
            }
        }
    }
    assert!(refused.len() <= 3, "{refused:?}");
    let words: Vec<String> =
        (0..4000).map(|_| STANDARD.encode([byte(), byte(), byte(), byte(), byte()])).collect();
    let words: Vec<&str> = words.iter().map(|word| word.trim_end_matches('=')).collect();
    for text in [words.join(" "), format!("[\"{}\"]", words.join("\",\""))] {
        assert!(anything(&text).is_ok(), "{:?}", anything(&text));
        assert!(addresses(&text).is_ok(), "{:?}", addresses(&text));
    }
}
