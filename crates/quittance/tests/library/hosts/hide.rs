//! Ways to write a host so that one reader sees it and another does not.

use crate::hosts::cases::HostsDice;

/// A text that is part of every unlisted host, however it is spelled, and of nothing else.
pub(crate) const MARK: &str = "evilmark";

/// The letters and digits of a host that is short enough to be easily missed in base64.
pub(crate) const SHORT_MARK: &str = "evlmk7co";

pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let sum =
            three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let character = LETTERS[(sum >> (18 - 6 * place) & 63) as usize];
            out.push(if place > three.len() { '=' } else { char::from(character) });
        }
    }
    out
}

pub(crate) fn unbase64(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut sum, mut out) = (0, 0_usize, Vec::new());
    for c in text.trim_end_matches('=').chars() {
        let value = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".find(c)?;
        sum = (sum << 6 | value) & 0xff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((sum >> bits).to_le_bytes()[0]);
        }
    }
    Some(out)
}

/// The bytes as one block of zlib or gzip, each letter by its standard code, which is valid although it packs
/// nothing.
pub(crate) fn packed(bytes: &[u8], by_gzip: bool) -> Vec<u8> {
    let mut bits = vec![1, 1, 0];
    let mut code =
        |value: u32, length: u32| bits.extend((0..length).rev().map(|at| u8::from(value >> at & 1 == 1)));
    for byte in bytes.iter().map(|byte| u32::from(*byte)) {
        if byte < 144 { code(0x30 + byte, 8) } else { code(0x190 + byte - 144, 9) }
    }
    code(0, 7);
    let body = bits.chunks(8).map(|eight| eight.iter().rev().fold(0, |sum, bit| sum << 1 | bit));
    let body = body.collect::<Vec<u8>>();
    let head: &[u8] = if by_gzip { b"\x1f\x8b\x08\0\0\0\0\0\0\xff" } else { b"\x78\x9c" };
    [head, &body, &[0; 8]].concat()
}

/// The text in UTF-16 with its byte order mark, in one of two byte orders.
fn wide(text: &str, is_big: bool) -> Vec<u8> {
    let numbers = [0xfeff].into_iter().chain(text.encode_utf16());
    numbers.flat_map(|number| if is_big { number.to_be_bytes() } else { number.to_le_bytes() }).collect()
}

/// A short host in base64, with a foreign dot, between curly quotes, beside a stray byte, or in UTF-16.
fn short_in_base64(dice: &mut HostsDice) -> String {
    let dot = *dice.one_of(&[".", "\u{3002}", "\u{ff0e}", "\u{ff61}"]);
    let host = format!("evlmk7{dot}co");
    let full_width = || host.replace("evlmk", "\u{ff45}\u{ff56}\u{ff4c}\u{ff4d}\u{ff4b}");
    base64(&match dice.below(9) {
        0 => host.into_bytes(),
        1 => format!("\u{201c}{host}\u{201d}").into_bytes(),
        2 => format!("\u{ab}{host}\u{bb}").into_bytes(),
        3 => [host.as_bytes(), b"\xff"].concat(),
        4 => [b"\x93", host.as_bytes(), b"\x94"].concat(),
        5 => wide(&host, dice.below(2) == 0),
        6 => wide(&host, dice.below(2) == 0)[2..].to_vec(),
        7 => wide(&full_width(), dice.below(2) == 0),
        _ => full_width().into_bytes(),
    })
}

fn percent(text: &str, all: bool) -> String {
    let keep = |byte: u8| !all && (byte.is_ascii_alphanumeric() || byte == b'.');
    let one = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

fn host(dice: &mut HostsDice) -> String {
    let host = *dice.one_of(&[
        "evilmark.net",
        "www.evilmark.net",
        "EVILMARK.NET",
        "evilmark.net.",
        "shop.example.org.evilmark.net",
        "xn--evilmark-9za.net",
        "evilmark-ü.net",
        "evilmark.co.uk",
    ]);
    let wide = |c: char| {
        if c.is_ascii_lowercase() { char::from_u32(u32::from(c) + 0xfee0).unwrap() } else { c }
    };
    match dice.below(16) {
        0 => host.chars().map(wide).collect(),
        1 => host.replace('.', "\u{3002}"),
        2 => host.replace("evil", "ev\u{ad}il"),
        3 => host.replace("evil", "ev\til"),
        // Readers leave these out; most of them are no letters, so a scan for names stops at them.
        4 => host.replace(".n", ".\u{e0100}n"),
        5 => host.replace(".n", ".n\u{1bca0}"),
        6 => host.replace(".n", ".n\u{61c}"),
        7 => host.replace('.', "&#46"),
        8 => host.replace(".n", ".n&Tab;"),
        9 => host.replace(".n", ".n\\t"),
        _ => host.to_owned(),
    }
}

/// An unlisted address, written in numbers.
pub(crate) const NUMBERS: [&str; 7] = [
    "0x5db8d822",
    "1572395042",
    "93.12113954",
    "0135.0270.0330.042",
    "0x5d.0xb8.0xd8.0x22",
    "93.184.216.34",
    "[2606:2800:220:1::1]",
];

/// The form of a hidden text, from an address for every reader to an address for only some.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenForm {
    Address,
    /// An address, plain or in base64.
    Wrapped,
    /// An address, plain or in base64, or a bare host.
    Any,
}

type HideWrite = fn(&str) -> String;

const ADDRESSES: &[HideWrite] = &[
    |host| format!("https://{host}/"),
    |host| format!("HTTP://{host}:8443/login?x=1#y"),
    |host| format!("https://{host}\\"),
    |host| format!("https:\\\\{host}\\x"),
    |host| format!("https:/{host}/"),
    |host| format!("https:///{host}/"),
    |host| format!("https://shop.example.org@{host}/"),
    |host| format!("https://shop.example.org\\@{host}/"),
    |host| format!("https://{host}@shop.example.org/"),
    |host| format!("ht\ntps://{host}/"),
    |host| format!("ftp://{host}/x"),
    |host| format!("//{host}/"),
    |host| format!("https:{host}/"),
    |host| format!("{{\"websiteURL\":\"https:\\/\\/{host}\\/\"}}"),
    |host| format!("https://shop.example.org/?u=https://{host}/"),
    |host| format!("https://shop.example.org#@{host}/"),
    |host| format!("https://shop.example.org?@{host}/"),
];

const WRAPPED: &[HideWrite] = &[
    |host| base64(format!("https://{host}/").as_bytes()),
    |host| base64(base64(format!("https://{host}/").as_bytes()).as_bytes()),
    |host| base64(format!("https://{host}/\0").as_bytes()),
    |host| base64(&[format!("https://{host}/").as_bytes(), b"\xff"].concat()),
    |host| base64(&format!("https://{host}/").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()),
    |host| base64(&wide(&format!("https://{host}/"), false)),
    |host| base64(&wide(&format!("https://{host}/"), true)),
    // Some readers of base64 leave out what is none.
    |host| base64(format!("https://{host}/").as_bytes()).replacen('H', "*H", 1),
    |host| {
        format!("eyJhbGciOiJIUzI1NiJ9.{}.c2ln", base64(format!("{{\"u\":\"https://{host}/\"}}").as_bytes()))
    },
];

const BARE: &[HideWrite] = &[
    |host| host.to_owned(),
    |host| format!("{host}/login"),
    |host| format!("user@{host}"),
    |host| format!("[\"{host}\"]"),
    |host| format!("{{\"a\":{{\"b\":[\"{host}\"]}}}}"),
    |host| base64(base64(host.as_bytes()).as_bytes()),
];

/// A packed address, for fields of which nothing is known.
const PACKED: &[HideWrite] = &[
    |host| base64(&packed(format!("https://{host}/").as_bytes(), true)),
    |host| base64(&packed(format!("https://{host}/").as_bytes(), false)),
    |host| base64(&packed(host.as_bytes(), true)),
    |host| base64(base64(&packed(format!("https://{host}/").as_bytes(), false)).as_bytes()),
    |host| format!("{{\"a\":[\"{}\"]}}", base64(&packed(format!("//{host}/").as_bytes(), true))),
    |host| base64(&packed(base64(format!("https://{host}/").as_bytes()).as_bytes(), true)),
    |host| base64(&packed(&wide(&format!("https://{host}/"), true), false)),
];

/// Parts of a page of HTML that make it another page, or lead to one.
const LEADING: &[HideWrite] = &[
    |host| format!("<base href=\"https://{host}/\">"),
    |host| format!("<BASE/HREF=//{host}/x >"),
    |host| format!("<base title='>' href='https://{host}/'>"),
    |host| format!("<link rel=\"canonical\" href=\"https://{host}/login\">"),
    |host| format!("<meta http-equiv=refresh content=\"0;url=https://{host}/\">"),
    |host| format!("<meta property=\"og:url\" content=\"https://{host}/\">"),
    |host| format!("<form method=post action=\"https://{host}/login\">"),
    |host| format!("<iframe src=\"https://{host}/\"></iframe>"),
    |host| format!("<iframe srcdoc='<base href=https://{host}/>'></iframe>"),
    |host| format!("<script src=\"//{host}/a.js\"></script>"),
    |host| format!("<script>var a='https:\\/\\/{host}\\/';location.replace(a)</script>"),
    |host| format!("<body onload=\"window.open('https://{host}/')\">"),
    |host| format!("<button formaction=https://{host}/>"),
    |host| format!("<script>var a=document.createElement('a');a.href='https://{host}/';a.click()</script>"),
    |host| format!("<script>document.forms[0].action='https://{host}/';document.forms[0].submit()</script>"),
    |host| format!("<script>var b=document.createElement('base');b.href='https://{host}/'</script>"),
];

/// A page of HTML in which nothing leads elsewhere.
pub(crate) const BLOCK_PAGE: &str = "<!DOCTYPE html><html><head><title>a</title><base href=\"/\"></head><body><form action=\"/x\"><a href=\"https://help.vendor.example/why\">why</a></form><script src=\"/TSPD/a.js\"></script></body></html>";

/// A page of HTML that makes itself another page, plain or in base64.
pub(crate) fn in_html(dice: &mut HostsDice) -> String {
    let host = *dice.one_of(&["evilmark.net", "www.evilmark.net", "EVILMARK.NET", "evilmark.co.uk"]);
    let page = BLOCK_PAGE.replace("<base href=\"/\">", &dice.one_of(LEADING)(host));
    match dice.below(5) {
        0 => page,
        1 => base64(&wide(&page, false)),
        2 => base64(&packed(page.as_bytes(), true)),
        _ => base64(page.as_bytes()),
    }
}

/// A drawing that loads a picture from elsewhere, in one of the formats of drawings, in base64.
pub(crate) fn in_a_drawing(dice: &mut HostsDice) -> String {
    let host = *dice.one_of(&["evilmark.net", "www.evilmark.net", "EVILMARK.NET", "evilmark.co.uk"]);
    let drawing = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"40\"><text>\u{e9}</text><image href=\"https://{host}/a.png\"/></svg>"
    );
    let latin = || drawing.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect::<Vec<u8>>();
    base64(&match dice.below(7) {
        0 => drawing.into_bytes(),
        6 => {
            let inside = base64(drawing.as_bytes());
            format!(
                "<svg><image href=\"data:image/svg+xml;base64,{inside}\"/><text>abcdefghijklmnop</text></svg>"
            )
            .into_bytes()
        }
        1 => wide(&drawing, false),
        2 => wide(&drawing, true),
        3 => wide(&drawing, true)[2..].to_vec(),
        4 => latin(),
        _ => packed(drawing.as_bytes(), true),
    })
}

/// A packed address, in a form that only hides it.
pub(crate) fn in_a_pack(dice: &mut HostsDice) -> String {
    let host = *dice.one_of(&["evilmark.net", "www.evilmark.net", "EVILMARK.NET", "evilmark.co.uk"]);
    dice.one_of(PACKED)(host)
}

/// A host without a scheme, beside a character that addresses have.
const BESIDE_A_SIGN: &[HideWrite] = &[
    |host| format!("{host}/login"),
    |host| format!("u={host}"),
    |host| format!("login@{host}"),
    |host| format!("{host}?x"),
    |host| format!("{host}:8443"),
    |host| base64(format!("{host}/login").as_bytes()),
];

/// A host without a scheme, in JSON.
const IN_JSON: &[HideWrite] = &[
    |host| format!("{{\"websiteURL\":\"{host}\"}}"),
    |host| format!("{{\"a\":{{\"url\":[\"{host}/login\"]}}}}"),
    |host| format!("[{{\"name\":\"a\",\"value\":\"b\",\"domain\":\"{host}\"}}]"),
    |host| format!("[\"user@{host}\"]"),
    |host| format!("{{\"{host}\":1}}"),
];

/// A host without a scheme in a field that expects something else: beside a character of addresses, or in JSON.
pub(crate) fn beside_a_sign(dice: &mut HostsDice) -> String {
    let text = match dice.below(BESIDE_A_SIGN.len() + 1) {
        0 => short_in_base64(dice),
        _ => dice.one_of(BESIDE_A_SIGN)(&host(dice)),
    };
    wrapped(dice, text)
}

pub(crate) fn in_json(dice: &mut HostsDice) -> String {
    let host = *dice.one_of(&["evilmark.net", "www.evilmark.net", "EVILMARK.NET", "evilmark.co.uk"]);
    dice.one_of(IN_JSON)(host)
}

/// A name that some reader takes for this name.
pub(crate) fn mangled(dice: &mut HostsDice, name: &str) -> String {
    match dice.below(10) {
        0 => format!("{name}[]"),
        1 => format!("{name}[0]"),
        2 => format!("{name}[abcdef]"),
        3 => format!(" {name}"),
        4 => format!("{name} "),
        5 => format!("{name}."),
        6 => format!("{name}.x"),
        7 => name.to_ascii_uppercase(),
        8 => format!("{name}[x"),
        _ => format!("{name}\t"),
    }
}

/// An address in numbers, for a reader that expects an address.
const IN_NUMBERS: &[HideWrite] =
    &[|host| format!("https://{host}/"), |host| format!("//{host}/"), |host| format!("http:{host}")];

/// A host after a listed one. A character between them ends a host for one reader and not for another.
pub(crate) fn glued(dice: &mut HostsDice, listed: &str) -> String {
    let host = host(dice);
    let between = *dice.one_of(&["&", ";", "=", "(", "`", ",", "|", "#@", "?@"]);
    let (scheme, point) = (*dice.one_of(&["https://", ""]), *dice.one_of(&[".", ""]));
    match scheme {
        "" => format!("{listed}{between}{point}{host}"),
        scheme => format!("{scheme}{listed}{between}.{host}/x"),
    }
}

/// An address or a bare host, written in an odd way.
pub(crate) fn hidden(dice: &mut HostsDice, form: HiddenForm) -> String {
    let text = match dice.below(8) {
        0 => {
            let number = *dice.one_of(&NUMBERS);
            match dice.below(5) {
                0 if form == HiddenForm::Any && number.contains('[') => format!("{number}/x"),
                0 if form == HiddenForm::Any => "x/93.184.216.34/".to_owned(),
                _ => dice.one_of(IN_NUMBERS)(number),
            }
        }
        2 if form == HiddenForm::Any => short_in_base64(dice),
        1 => format!("https{}", glued(dice, "://shop.example.org").trim_start_matches("https://")),
        _ => {
            let more = match form {
                HiddenForm::Address => [&[][..], &[]],
                HiddenForm::Wrapped => [WRAPPED, &[]],
                HiddenForm::Any => [WRAPPED, BARE],
            };
            let forms: Vec<HideWrite> = ADDRESSES.iter().chain(more.into_iter().flatten()).copied().collect();
            dice.one_of(&forms)(&host(dice))
        }
    };
    wrapped(dice, text)
}

/// The host alone.
pub(crate) fn bare(dice: &mut HostsDice) -> String {
    let host = host(dice);
    wrapped(dice, host)
}

/// The address in bytes that are no text.
pub(crate) fn in_bytes(dice: &mut HostsDice) -> String {
    base64(&[format!("https://{}/", host(dice)).as_bytes(), b"\xff"].concat())
}

fn wrapped(dice: &mut HostsDice, mut text: String) -> String {
    for _ in 0..dice.below(3) {
        text = match dice.below(8) {
            0 => format!(" {text}"),
            1 => format!("{text} "),
            2 => percent(&text, false),
            3 => percent(&text, true),
            4 => format!("\u{0}{text}\r\n"),
            5 => text.replace('/', "\\/"),
            6 => text.replace('/', "&#47;"),
            _ => text.replace('e', "\\u0065"),
        };
    }
    text
}
