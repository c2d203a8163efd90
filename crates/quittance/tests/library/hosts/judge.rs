//! What a provider might make of a request. Only the judge uses this, and it shares no code with what it judges. It
//! removes all layers of encoding, in any order, and searches for the mark below each.

use crate::hosts::hide::{MARK, NUMBERS, SHORT_MARK, unbase64};
use std::collections::BTreeSet;

const READINGS_MAX: usize = 400;

fn plain(text: &str) -> String {
    let narrow = |c: char| match u32::from(c) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let visible = text.chars().map(narrow).filter(|c| c.is_ascii_graphic() || *c == ' ');
    visible.collect::<String>().to_ascii_lowercase()
}

fn unpercent(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn unescape(text: &str) -> String {
    let mut out = text
        .replace("\\/", "/")
        .replace("&#47;", "/")
        .replace("&Tab;", "")
        .replace("\\t", "")
        .replace("\\n", "")
        .replace("\\r", "");
    while let Some(at) = out.find("\\u") {
        let character = out
            .get(at + 2..at + 6)
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .and_then(char::from_u32);
        let Some(character) = character else { break };
        out.replace_range(at..at + 6, &character.to_string());
    }
    out
}

/// Unpacks one block of gzip or zlib with the standard codes, as the fuzz test packs.
fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let body = bytes.strip_prefix(b"\x1f\x8b\x08").map(|rest| rest.get(7..).unwrap_or_default());
    let body = body.or_else(|| bytes.strip_prefix(b"\x78\x9c"))?;
    let mut bits = body.iter().flat_map(|byte| (0..8).map(move |at| u32::from(byte >> at & 1))).skip(3);
    let mut out = Vec::new();
    loop {
        let mut code = bits.by_ref().take(7).fold(0, |sum, bit| sum << 1 | bit);
        if code == 0 {
            return Some(out);
        }
        code = code << 1 | bits.next()?;
        if code >= 0xc8 {
            code = code << 1 | bits.next()?;
            out.push(u8::try_from(code.checked_sub(0x190)? + 144).ok()?);
        } else {
            out.push(u8::try_from(code.checked_sub(0x30)?).ok()?);
        }
    }
}

fn is_marked(text: &str) -> bool {
    let plain = plain(text);
    plain.contains(MARK)
        || plain.replace('.', "").contains(SHORT_MARK)
        || NUMBERS.iter().any(|number| plain.contains(number))
}

/// Whether the bytes name an unlisted host in UTF-16, in one of two byte orders.
fn is_marked_in_wide_text(bytes: &[u8]) -> bool {
    [u16::from_le_bytes, u16::from_be_bytes].into_iter().any(|number| {
        let numbers: Vec<u16> = bytes.chunks_exact(2).map(|two| number([two[0], two[1]])).collect();
        is_marked(&String::from_utf16_lossy(&numbers))
    })
}

/// Whether the text names a host that is not listed.
pub(crate) fn names_the_mark(text: &str) -> bool {
    let mut view = BTreeSet::new();
    let mut waiting = vec![text.to_owned()];
    while let Some(text) = waiting.pop() {
        if view.len() > READINGS_MAX || !view.insert(text.clone()) {
            continue;
        }
        if is_marked(&text) {
            return true;
        }
        waiting.push(unpercent(&text));
        waiting.push(unpercent(&text.replace('+', " ")));
        waiting.push(unescape(&text));
        let runs = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '*')));
        let runs = runs.map(|run| run.replace('*', "")).filter(|run| run.len() >= 12);
        for bytes in runs.filter_map(|run| unbase64(&run)) {
            if is_marked_in_wide_text(&bytes) {
                return true;
            }
            let inside = unpack(&bytes).unwrap_or_default();
            waiting.extend([inside, bytes].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    false
}

/// Control fields, the page, and fields that name a kind. No other name may be read as one of these.
const TAKEN: &[&str] = &[
    "key",
    "method",
    "json",
    "pingback",
    "soft_id",
    "clientkey",
    "callbackurl",
    "type",
    "pageurl",
    "websiteurl",
    "proxy",
    "version",
];

/// The names of the fields of a request.
fn names_in(request: &str) -> Vec<String> {
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
    if let Ok(output) = serde_json::from_str::<serde_json::Value>(body) {
        let fields = output["task"].as_object().into_iter().flatten();
        return fields.map(|(name, _)| name.clone()).collect();
    }
    if head.to_ascii_lowercase().contains("multipart/") {
        let named = body.split("form-data; name=\"").skip(1);
        return named.filter_map(|part| part.split('"').next()).map(unpercent).collect();
    }
    let pairs = body.split('&').filter_map(|pair| pair.split('=').next());
    pairs.map(|name| unpercent(&name.replace('+', " "))).collect()
}

/// The name up to a bracket or a dot, without blanks, in lower case.
fn root(name: &str) -> String {
    let root = name.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    let root = root.split(['[', '.']).next().unwrap_or_default();
    root.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '_').to_ascii_lowercase()
}

/// Whether a field has a name that some reader takes for that of another field.
pub(crate) fn takes_the_name_of_another(request: &str) -> bool {
    let names = names_in(request);
    let is_plain =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let is_odd =
        |name: &String| !is_plain(name) || TAKEN.contains(&name.as_str()) && name.as_str() != root(name);
    let is_taken = |name: &String| is_odd(name) && TAKEN.contains(&root(name).as_str());
    let replaces = |name: &String| {
        let others = names.iter().filter(|other| *other != name);
        others.filter(|other| is_plain(other)).any(|other| root(other) == root(name))
    };
    names.iter().any(|name| is_taken(name) || replaces(name))
}

#[test]
fn the_judge_sees_a_name_that_is_anothers_to_some_reader() {
    let form = |body: &str| format!("POST /in.php HTTP/1.1\r\nContent-Type: x\r\n\r\n{body}");
    for body in [
        "key=a&key%5B0%5D=b",
        "key=a&Key=b",
        "key=a&method=b&+method=c",
        "version%5B0%5D=v3",
        "{\"task\":{\"type\":\"a\",\" type\":\"b\"}}",
        "sitekey=a&sitekey%5Babc%5D=b",
    ] {
        assert!(takes_the_name_of_another(&form(body)), "{body}");
    }
    for body in ["key=a&method=b&data%5Bblob%5D=c", "{\"task\":{\"type\":\"a\",\"websiteURL\":\"b\"}}"] {
        assert!(!takes_the_name_of_another(&form(body)), "{body}");
    }
}

#[test]
fn the_judge_sees_every_hiding_place_that_the_fuzz_knows() {
    let mut dice = crate::hosts::cases::HostsDice::new(7);
    for _ in 0..20_000 {
        let text = crate::hosts::hide::hidden(&mut dice, crate::hosts::hide::HiddenForm::Any);
        assert!(names_the_mark(&text), "{text:?}");
        for hide in [
            crate::hosts::hide::beside_a_sign,
            crate::hosts::hide::in_a_pack,
            crate::hosts::hide::in_html,
            crate::hosts::hide::in_a_drawing,
        ] {
            let text = hide(&mut dice);
            assert!(names_the_mark(&text), "{text:?}");
        }
    }
}
