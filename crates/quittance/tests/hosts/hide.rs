//! Ways to write a host so that one reader sees it and another one does not.

use crate::cases::Dice;

/// In every host that is not listed, however it is spelled, and in nothing else.
pub(crate) const MARK: &str = "evilmark";

fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let sum =
            three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(sum >> (18 - 6 * place) & 63) as usize];
            out.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

fn percent(text: &str, all: bool) -> String {
    let keep = |byte: u8| !all && (byte.is_ascii_alphanumeric() || byte == b'.');
    let one = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

fn host(dice: &mut Dice) -> String {
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
    match dice.below(8) {
        0 => host
            .chars()
            .map(|c| if c.is_ascii_lowercase() { char::from_u32(u32::from(c) + 0xfee0).unwrap() } else { c })
            .collect(),
        1 => host.replace('.', "\u{3002}"),
        2 => host.replace("evil", "ev\u{ad}il"),
        3 => host.replace("evil", "ev\til"),
        _ => host.to_owned(),
    }
}

/// An address or a bare host, written in an odd way; addresses only, if `is_address`.
pub(crate) fn hidden(dice: &mut Dice, is_address: bool) -> String {
    let host = host(dice);
    let forms: &[fn(&str) -> String] = &[
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
        // Without a scheme it is an address only where anything may be one.
        |host| host.to_owned(),
        |host| format!("{host}/login"),
        |host| format!("user@{host}"),
        |host| format!("[\"{host}\"]"),
        |host| format!("{{\"a\":{{\"b\":[\"{host}\"]}}}}"),
        |host| base64(&format!("https://{host}/")),
        |host| base64(&base64(host)),
    ];
    let count = if is_address { 15 } else { forms.len() };
    let mut text = forms[dice.below(count)](&host);
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
