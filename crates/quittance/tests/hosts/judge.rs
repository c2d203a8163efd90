//! What a provider might make of a request, for the judge alone: it shares no code with what it judges. Every layer that can be
//! taken off is taken off, in any order, and the mark is looked for below each.

use crate::hide::{MARK, NUMBERS, unbase64};
use std::collections::BTreeSet;

const READINGS_MAX: usize = 400;

fn plain(text: &str) -> String {
    let narrow = |c: char| match u32::from(c) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let kept = text.chars().map(narrow).filter(|c| c.is_ascii_graphic() || *c == ' ');
    kept.collect::<String>().to_ascii_lowercase()
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
        let letter = out
            .get(at + 2..at + 6)
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .and_then(char::from_u32);
        let Some(letter) = letter else { break };
        out.replace_range(at..at + 6, &letter.to_string());
    }
    out
}

/// Whether anything in it names a host that is not listed.
pub(crate) fn names_the_mark(text: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![text.to_owned()];
    while let Some(text) = waiting.pop() {
        if seen.len() > READINGS_MAX || !seen.insert(text.clone()) {
            continue;
        }
        let plain = plain(&text);
        if plain.contains(MARK) || NUMBERS.iter().any(|number| plain.contains(number)) {
            return true;
        }
        waiting.push(unpercent(&text));
        waiting.push(unpercent(&text.replace('+', " ")));
        waiting.push(unescape(&text));
        let runs = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '*')));
        let runs = runs.map(|run| run.replace('*', "")).filter(|run| run.len() >= 12);
        let decoded = runs.filter_map(|run| unbase64(&run));
        waiting.extend(decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    }
    false
}

#[test]
fn the_judge_sees_every_hiding_place_that_the_fuzz_knows() {
    let mut dice = crate::cases::Dice::new(7);
    for _ in 0..20_000 {
        let text = crate::hide::hidden(&mut dice, crate::hide::Form::Any);
        assert!(names_the_mark(&text), "{text:?}");
    }
}
