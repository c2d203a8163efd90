//! Tests of every known way to hide a host, and of what must not be taken for one.

mod hidden;

use super::{
    Unclear, address, addresses, anything, canonical, document, file, html, is_proxy, is_text, opaque, page,
    roots, token, word,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

fn sees(values: Result<super::Hosts, Unclear>, host: &str) -> bool {
    values.is_err() || values.is_ok_and(|hosts| hosts.contains(host))
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
        "https://shop.example.org&.evil.net/",
        "https://shop.example.org;evil.net/",
        "https://shop.example.org`.evil.net/",
        "https://shop.example.org|evil.net",
        "https://shop.example.org(.evil.net/",
        "https://shop.example.org,evil.net",
        "//evil.n\u{e0100}et/",
        "//evil.n\u{1bca0}et/",
        "https://evil.n&Tab;et/",
        "//evil&#46net",
        "//evil.n\\tet/",
    ] {
        assert!(sees(opaque(text), "evil.net"), "{text:?}: {:?}", opaque(text));
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
        STANDARD.encode("https://evil.net/\0"),
        STANDARD.encode(b"https://evil.net/\xff"),
        STANDARD.encode("https://evil.net/".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()),
        "a*HR0cHM6Ly9ldmlsLm5ldC8=".into(),
        "{\"x\":[\"a*HR0cHM6Ly9ldmlsLm5ldC8=\"]}".into(),
        "evil.n\u{e0100}et".into(),
        "evil&#46net".into(),
        "evil.n&Tab;et".into(),
        "evil.n\\tet".into(),
        "evil.net|shop.example.org".into(),
    ] {
        assert!(sees(anything(&text), "evil.net"), "{text:?}: {:?}", anything(&text));
    }
    for text in [
        "//0x5db8d822/",
        "//93.12113954/",
        "http:1572395042",
        "//0135.0270.0330.042/",
        "//0x5d.0xb8.0xd8.0x22/",
        "0x5d.0xb8.0xd8.0x22",
        "x/93.184.216.34/",
        "https://93.184.216.34",
    ] {
        assert!(sees(anything(text), "93.184.216.34"), "{text:?}: {:?}", anything(text));
    }
    assert!(sees(anything("[2606:2800:220:1::1]/x"), "2606:2800:220:1::1"));
    assert!(sees(anything("2606:2800:220:1::1"), "2606:2800:220:1::1"));
    assert!(sees(anything("http://127.0.0.1/"), "127.0.0.1"));
    assert!(sees(anything("10.1.2.3"), "10.1.2.3"));
    assert!(sees(anything("http://[::1]:80/"), "::1"));
    assert!(sees(anything("http://intranet/"), "intranet"));
    assert!(sees(anything("//localhost/x"), "localhost"));
}

#[test]
fn of_what_is_not_known_this_machine_and_names_without_a_dot_are_seen_as_well() {
    for (text, host) in [
        ("//intranet/x", "intranet"),
        ("\\\\intranet\\x", "intranet"),
        ("%2F%2Fintranet%2Fx", "intranet"),
        ("{\"u\":\"//intranet:8080\"}", "intranet"),
        ("//Intranet-2/x", "intranet-2"),
        ("a=b&u=//intranet/x", "intranet"),
        ("localhost", "localhost"),
        ("localhost/admin", "localhost"),
        ("LOCALHOST:8080/admin", "localhost"),
        ("{\"u\":\"localhost/admin\"}", "localhost"),
        ("bG9jYWxob3N0L2FkbWlu", "localhost"),
    ] {
        assert!(sees(anything(text), host), "{text}: {:?}", anything(text));
    }
    for text in [
        "//uQxAAAAAAAAAAAAAAAAAAAAAAAWGluZwAAAA8AAAACAAAFbgC7/x",
        "//div[@id='captcha']/img",
        "// a/b",
        "//",
        "https://shop.example.org//login/x",
        "/a//b/c",
        "1.2.3",
        "126.0.6478",
        "10.0.22631",
        "1572395042",
        "93.5",
        "my_localhost_2",
    ] {
        let found = anything(text).unwrap();
        assert!(found.iter().all(|host| host == "shop.example.org"), "{text}: {found:?}");
    }
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
        "index.php",
        "challenge.json",
        "captcha.png",
        "12:30:00",
        "1572395042",
    ] {
        assert_eq!(anything(text).map(|hosts| hosts.len()), Ok(0), "{text}: {:?}", anything(text));
    }
    assert_eq!(anything(&STANDARD.encode(picture)).map(|hosts| hosts.len()), Ok(0));
    assert_eq!(addresses("Which site is shop.example.net?").map(|hosts| hosts.len()), Ok(0));
    assert_eq!(addresses("https://shop.example.org/a.html?x=b.c&y=1").map(|hosts| hosts.len()), Ok(1));
    assert_eq!(addresses("https://shop.example.org//login").map(|hosts| hosts.len()), Ok(1));
}

/// Trap: a host in base64 in a field for prose, also inside JSON.
#[test]
fn an_address_in_base64_is_found_in_prose_and_a_bare_name_if_it_is_in_json() {
    let (address, name) = (STANDARD.encode("https://evil.net/"), STANDARD.encode("evil.net"));
    for text in [
        address.clone(),
        format!("a={address}"),
        format!("theme=dark; back={address}; lang=en"),
        format!("{{\"u\":\"{address}\"}}"),
        format!("{{\"u\":\"{name}\"}}"),
        format!("[\"{name}\"]"),
    ] {
        assert!(sees(addresses(&text), "evil.net"), "{text}: {:?}", addresses(&text));
    }
    for hidden in [
        "go to https://evil.net/login now",
        "\"https://evil.net/\",",
        "https%3A%2F%2Fevil.net%2F",
        "//evil.net/login",
        "https:/evil.net/login",
        r#"{"websiteURL":"https://evil.net/"}"#,
        address.as_str(),
    ] {
        let text = format!("a={}; b=1", STANDARD.encode(hidden));
        assert!(sees(addresses(&text), "evil.net"), "{hidden}: {:?}", addresses(&text));
    }
    let wide: Vec<u8> = "https://evil.net/".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let text = STANDARD.encode(wide);
    assert!(sees(addresses(&text), "evil.net"), "UTF-16: {:?}", addresses(&text));
    let part = |json: &str| URL_SAFE_NO_PAD.encode(json);
    let claims = part(r#"{"iss":"https://accounts.example.net","sub":"7"}"#);
    for text in [
        name,
        format!("session={}.{claims}.c2lnbmF0dXJl; lang=en", part(r#"{"alg":"RS256"}"#)),
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0".into(),
    ] {
        assert_eq!(addresses(&text).map(|hosts| hosts.len()), Ok(0), "{text}");
    }
}

#[test]
fn an_address_may_come_without_its_scheme_where_one_is_meant() {
    for text in ["https://geo.example.net/x?y", "geo.example.net/x", "geo.example.net", " GEO.example.net. "]
    {
        assert!(sees(address(text), "geo.example.net"), "{text}: {:?}", address(text));
        assert_eq!(address(text).map(|hosts| hosts.len()), Ok(1), "{text}");
    }
    for text in [
        "https://geo.example.net&.evil.net/x",
        "geo.example.net,evil.net",
        "geo.example.net|evil.net",
        "geo.example.net&.evil.net",
        "https://geo.example.net;.evil.net/",
        "https://geo.example.net=.evil.net/",
        "https://geo.example.net(.evil.net/",
        "https://geo.example.net`.evil.net/",
        "https://geo.example.net/ evil.net",
        "https:evil.net",
        "//geo.example.net/",
        "ftp://geo.example.net/",
        "https://geo.example.net\\.evil.net/",
        "https://%65vil.net/",
        "https://a@b@geo.example.net/",
        "",
        "javascript:alert(1)",
    ] {
        assert_eq!(address(text), Err(Unclear::NotAnAddress), "{text}");
    }
    assert_eq!(page("geo.example.net/x"), Err(Unclear::NotAnAddress));
    assert!(sees(page("https://shop.example.org/#!/a|b?c=(d);e=f"), "shop.example.org"));
    assert!(sees(page("https://B\u{fc}cher.example.org:8443/"), "xn--bcher-kva.example.org"));
    assert!(sees(page("https://evil.net:80@shop.example.org/"), "evil.net"));
    assert!(sees(page("http://[::1]:8080/x"), "::1"));
    assert!(sees(page("http://1572395042/x"), "93.184.216.34"));
    assert!(sees(address("geo.example.net/?referer=https%3A%2F%2Fevil.net%2F"), "evil.net"));
}

#[test]
fn what_identifies_a_captcha_may_have_dots_but_is_no_host() {
    let bytes: Vec<u8> =
        (0..1500_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect();
    let token =
        format!("eyJhbGciOiJIUzI1NiJ9.{}.c2ln", URL_SAFE_NO_PAD.encode("{\"e\":1731875000,\"n\":\"hsw\"}"));
    for text in [
        "homepage.load",
        "checkout/submit.order",
        "user.login",
        "login.form",
        "1x00000000000000000000.AA",
        "3gAFo2.x9.Qra",
        "dyXvXANMbHj1iDyz.QjJtSqRn+uoY1V/bdgbrG7p/mKi=",
        "AbC.dEf",
        "HUHDWUHuhuwfiweh32..uh2uhuhueuh=",
        &STANDARD.encode(&bytes),
        &token,
    ] {
        assert_eq!(opaque(text).map(|hosts| hosts.len()), Ok(0), "{text}: {:?}", opaque(text));
    }
    for text in [
        "evil.net",
        " evil.net ",
        "a,evil.net",
        "EVIL.net:8080",
        "[\"evil.net\"]",
        "evil%2Enet",
        "https://evil.net",
    ] {
        assert!(sees(opaque(text), "evil.net"), "{text}: {:?}", opaque(text));
    }
    assert!(sees(opaque(&STANDARD.encode("see https://evil.net/")), "evil.net"));
    assert!(sees(opaque("93.184.216.34"), "93.184.216.34"));
}

#[test]
fn a_proxy_has_a_host_and_a_port_and_any_password() {
    for text in [
        "203.0.113.7:8080",
        "proxy.example.net:3128",
        "user:pw@203.0.113.7:823",
        "user-session.1:p@ss/w0rd@gw.example.net:823",
        "user:p@x#y@gw.example.net:823",
        "http://user:pw@gw.example.net:823",
        "SOCKS5://gw.example.net:823/",
        "user@[2001:db8::1]:80",
    ] {
        assert!(is_proxy(text), "{text}");
    }
    for text in [
        "",
        "evil.net",
        "https://evil.net/",
        "https:evil.net/login?x=@203.0.113.7:80",
        "evil.net/x:80",
        "user:pw@",
        "user:pw@host:0",
        "user:pw@host:99999",
        "user:pw@a&b:80",
        "user:pw@a b:80",
        "a\nb:pw@host:80",
        "1.2.3.4:80:user:pw",
    ] {
        assert!(!is_proxy(text), "{text}");
    }
}

#[test]
fn the_names_of_namespaces_are_no_addresses() {
    let drawing = r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape = 'http://www.inkscape.org/namespaces/inkscape'><text>ab</text></svg>"#;
    assert_eq!(document(drawing), Ok(super::Hosts::new()));
    for text in [
        r#"<svg xmlns="http://a.example/"><image href="https://evil.net/"/></svg>"#,
        r#"<svg t="xmlns='x" href="https://evil.net/" u="'"/>"#,
        r#"<svg t="xmlns=" href="https://evil.net/"/>"#,
    ] {
        assert!(sees(document(text), "evil.net"), "{text}: {:?}", document(text));
    }
}

#[test]
fn bytes_with_an_address_in_them_are_text_and_pictures_are_not() {
    assert!(is_text(b"https://evil.net/\xff"));
    assert!(is_text(
        "https://evil.net/".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>().as_slice()
    ));
    let picture: Vec<u8> = (0..3000_u32).map(|n| ((n * 7919) >> 3).to_le_bytes()[0] ^ 0x5a).collect();
    assert!(!is_text(&picture));
}

/// If a browser ignores a character in a host or reads it as a dot, the search does the same.
#[test]
fn no_character_hides_a_host_that_browsers_read() {
    for c in ('\u{80}'..=char::MAX).chain('\0'..'\u{80}') {
        let spelled =
            [format!("ev{c}il.net"), format!("evil{c}net"), format!("evil.n{c}et"), format!("evil.n{c}t")];
        for text in spelled {
            let Ok(host) = idna::domain_to_ascii(&text) else { continue };
            let is_evil = host == "evil.net" && !c.is_ascii_graphic();
            assert!(
                !is_evil || sees(anything(&text), "evil.net"),
                "{:x}: {:?}",
                u32::from(c),
                anything(&text)
            );
        }
    }
}

#[test]
fn in_a_key_a_host_counts_beside_every_sign_that_an_address_has() {
    for text in [
        "evil.net/login",
        "u=evil.net",
        "login@evil.net",
        "evil.net?x",
        "evil.net#x",
        "a/evil.net/b",
        "user:evil.net",
        "evil.net:8080/x",
        "{\"websiteURL\":\"evil.net\"}",
        "{\"evil.net\":1}",
        "[{\"domain\":\".evil.net\"}]",
        "{websiteURL: evil.net}",
        "{\"a\":{\"b\":[\"x+evil.net\"]}}",
        &STANDARD.encode("evil.net/login"),
        &STANDARD.encode("{\"websiteURL\":\"evil.net\"}"),
    ] {
        assert!(sees(opaque(text), "evil.net"), "{text}: {:?}", opaque(text));
    }
    for text in ["{\"websiteURL\":\"evil.net\"}", " [\"evil.net/x\"] ", "{\"evil.net\":1}"] {
        assert!(sees(addresses(text), "evil.net"), "{text}: {:?}", addresses(text));
        assert!(sees(token(text), "evil.net"), "{text}: {:?}", token(text));
    }
    assert_eq!(addresses("[1] as on evil.net").map(|hosts| hosts.len()), Ok(0));
    assert_eq!(token("a+b/xyz.de/c=").map(|hosts| hosts.len()), Ok(0));
}

#[test]
fn an_action_may_be_one_word_with_dots() {
    for text in ["checkout.pay", "user.new", "sign-in.live", "1.2.3.4", "verify", "a.b.shop"] {
        assert_eq!(word(text).map(|hosts| hosts.len()), Ok(0), "{text}: {:?}", word(text));
    }
    for (text, host) in [
        ("evil.net", "evil.net"),
        ("evil.co.uk", "evil.co.uk"),
        ("evil.live/x", "evil.live"),
        ("evil%2elive", "evil.live"),
        ("//evil.live", "evil.live"),
        ("x@evil.live", "evil.live"),
        ("evil.live:80", "evil.live"),
        ("http://1.2.3.4", "1.2.3.4"),
    ] {
        assert!(sees(word(text), host), "{text}: {:?}", word(text));
    }
}

#[test]
fn an_at_sign_before_the_first_slash_makes_two_hosts_of_one_address() {
    for text in [
        "https://shop.example.org#@evil.net/",
        "https://shop.example.org?@evil.net/",
        "https://shop.example.org?email=a@evil.net",
        "https://shop.example.org:443#a:b@evil.net",
    ] {
        assert_eq!(page(text), Err(Unclear::NotAnAddress), "{text}");
        assert!(sees(addresses(text), "evil.net"), "{text}: {:?}", addresses(text));
        assert!(sees(opaque(text), "evil.net"), "{text}: {:?}", opaque(text));
        assert!(sees(anything(text), "evil.net"), "{text}: {:?}", anything(text));
    }
    assert_eq!(address("recaptcha.net#@evil.net"), Err(Unclear::NotAnAddress));
    for text in ["https://shop.example.org/?email=a@b.com", "https://shop.example.org/#@b.com"] {
        assert_eq!(page(text).map(|hosts| hosts.len()), Ok(1), "{text}");
    }
}

#[test]
fn a_scheme_of_no_protocol_that_fetches_needs_the_full_name_of_a_host() {
    for text in [
        "https://shop.example.org/authorize?redirect_uri=com.example.app://oauth2redirect&state=a",
        "https://shop.example.org/authorize?redirect_uri=myapp%3A%2F%2Fcallback",
        "https://shop.example.org/x?doc=file:///C:/x",
    ] {
        assert_eq!(page(text).map(|hosts| hosts.len()), Ok(1), "{text}: {:?}", page(text));
    }
    for text in ["https://shop.example.org/?u=myapp://evil.net/x", "ws://evil.net", "sftp://evil.net"] {
        assert!(sees(addresses(text), "evil.net"), "{text}");
    }
    for text in ["ftp://intranet/", "ws://intranet/x", "http://intranet"] {
        assert!(sees(addresses(text), "intranet"), "{text}");
    }
}

#[test]
fn a_name_has_the_roots_that_readers_make_of_it() {
    for name in [
        "key",
        "Key",
        " key",
        "key ",
        "key[]",
        "key[0]",
        "KEY[a][b]",
        "key.",
        "key.x",
        "key[",
        "key\u{0}",
        "key\u{0}x",
        "k\u{200b}ey",
        "\u{ff4b}ey",
        "key%5B0%5D",
        "key\u{a0}",
        "key_",
        "+key",
    ] {
        assert!(roots(name).contains("key"), "{name:?}: {:?}", roots(name));
    }
    for (name, root) in [("soft.id", "soft_id"), ("soft id", "soft_id"), ("soft[id", "soft_id")] {
        assert!(roots(name).contains(root), "{name:?}: {:?}", roots(name));
    }
    for name in ["key1", "monkey", "apiKey", "x.key", "x[key]"] {
        assert!(!roots(name).contains("key"), "{name:?}: {:?}", roots(name));
    }
}

#[test]
fn a_host_has_one_spelling() {
    for (host, same) in [
        ("SHOP.Example.org.", "shop.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("ｅｖｉｌ．net", "evil.net"),
        ("0x5db8d822", "93.184.216.34"),
        ("93.12113954", "93.184.216.34"),
        ("[2606:2800:220:1::1]", "2606:2800:220:1::1"),
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
