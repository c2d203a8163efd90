//! Searches the HTML of the order's page, which some providers show to a browser. No provider opens its links. But
//! the HTML must not claim to be another page, nor lead the browser to one.

use crate::decode::{from_base64, whole_base64};
use crate::encoding::text_of;
use crate::escapes::{backslashes, entities, percent};
use crate::file_data::is_document;
use crate::host_search::words;
use crate::packed::unpacked;
use crate::{Hosts, Unclear, anything, page_addresses};

/// How many bytes of tags are read for each byte of the page: a tag without an end is read to the end of the page.
const TAG_BYTES_MAX: usize = 16;
const TAG_BYTES_MIN: usize = 64 * 1024;

/// Elements that name the page's address, send a form, or show and run content from elsewhere.
const LEADING: [&str; 10] =
    ["applet", "base", "embed", "fencedframe", "form", "frame", "iframe", "object", "portal", "script"];
/// Values in a `link` or `meta` that name the page itself or the next one.
const NAMING: [&str; 6] = ["al:web:url", "canonical", "og:url", "prerender", "refresh", "twitter:url"];
/// Words by which scripts open another page, load a script, or write a part of the page. Blanks are left out.
const GOING: [&str; 22] = [
    "adjacenthtml",
    "export*",
    "from\"",
    "from'",
    "http-equiv",
    "httpequiv",
    "import\"",
    "import'",
    "import*",
    "import{",
    "innerhtml",
    "location",
    "navigat",
    "outerhtml",
    "prerender",
    "src\"",
    "src'",
    "src:",
    "src`",
    "srcdoc",
    ".src",
    "href:",
];
/// Functions by which scripts open another page, send a form or load a script.
const GOING_CALLS: [&str; 7] = ["import", "importscripts", "open", "submit", "worker", "write", "writeln"];
/// Properties and attributes that say where a form goes.
const FORM_TARGETS: [&str; 2] = ["action", "formaction"];
/// Elements that a script makes to lead to another page.
const MADE: [&str; 6] = ["base", "embed", "form", "frame", "iframe", "object"];
/// Words by which scripts follow a link. With one of these, links count too, and every quoted address in a script.
const CLICKS: [&str; 2] = ["click", "dispatchevent"];
/// Types of a `script` that says from where others are loaded.
const MAPS: [&str; 2] = ["importmap", "speculationrules"];
/// The host of a script that counts visitors, which many sites load on each page.
const COUNTER: &str = "www.googletagmanager.com";
/// How many bytes show whether bytes are a document.
const HEAD_BYTES: usize = 256;
/// How often one address can hold another in base64.
const LAYERS_MAX: usize = 3;

/// Every host that a page of HTML, plain or in base64, could lead to in place of the order's page. A text that is no
/// HTML is searched like any text.
pub fn html(text: &str) -> Result<Hosts, Unclear> {
    let decoded = whole_base64(text);
    let inside = decoded.as_deref().map(unpacked).transpose()?.flatten();
    let page = inside.or(decoded).map_or_else(|| text.to_owned(), |bytes| text_of(&bytes)).replace('\0', "");
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}';
    if page.trim_start_matches(is_blank).starts_with('<') { leads(&page) } else { anything(text) }
}

fn leads(page: &str) -> Result<Hosts, Unclear> {
    let lower = page.to_ascii_lowercase();
    let mut bytes_left = (page.len() * TAG_BYTES_MAX).max(TAG_BYTES_MIN);
    let mut hosts = Hosts::new();
    // One script may open what stands in another, so they are judged together.
    let (mut scripts, mut is_page_going) = (Vec::new(), false);
    let (mut links, mut is_clicking) = (Vec::new(), false);
    for (at, _) in lower.match_indices('<') {
        let rest = &lower[at + 1..];
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        if name.is_empty() {
            continue;
        }
        let end = at + 1 + tag_end(rest);
        bytes_left = bytes_left.checked_sub(end - at).ok_or(Unclear::TooDeep)?;
        let tag = &page[at..end];
        if matches!(name, "a" | "animate" | "area" | "set") {
            links.push(tag);
        }
        let (is_leading, is_running) = (is_leading(name, &lower[at..end]), is_running(&lower[at..end]));
        if is_leading || is_running {
            let texts = with_content(tag, LAYERS_MAX)?;
            is_clicking |= texts.iter().any(|text| clicks(text));
            let is_going = texts.iter().any(|text| goes(text));
            is_page_going |= is_going && !is_leading;
            if is_leading || is_going {
                hosts.extend(all_addresses(&texts)?);
            }
        }
        if name == "script" {
            let script = &page[end..end + script_end(&lower[end..])];
            bytes_left = bytes_left.checked_sub(script.len()).ok_or(Unclear::TooDeep)?;
            let texts = with_content(script, LAYERS_MAX)?;
            is_clicking |= texts.iter().any(|text| clicks(text));
            match MAPS.iter().any(|map| lower[at..end].contains(map)) {
                true => hosts.extend(all_addresses(&texts)?),
                false => scripts.push(texts),
            }
        }
    }
    let is_going = |script: &Vec<String>| script.iter().any(|text| goes(text));
    is_page_going |= is_clicking || scripts.iter().any(is_going);
    for script in scripts.iter().filter(|_| is_page_going) {
        let named = match is_going(script) {
            true => all_addresses(script)?,
            false => all_addresses(&script.iter().flat_map(|text| quoted(text)).collect::<Vec<_>>())?,
        };
        hosts.extend(named.into_iter().filter(|host| host != COUNTER));
    }
    for script in scripts.iter().flatten().filter(|script| sets_host(script)) {
        unescaped(script).split(['"', '\'', '`']).for_each(|text| words(text, &mut hosts));
    }
    for link in links.into_iter().filter(|_| is_clicking) {
        hosts.extend(page_addresses(link)?);
    }
    Ok(hosts)
}

/// Where a script ends: at its end tag, or at the last end tag of the page if a comment in it may hide one.
fn script_end(rest: &str) -> usize {
    let end = rest.find("</script").unwrap_or(rest.len());
    if rest[..end].contains("<!--") { rest.rfind("</script").unwrap_or(rest.len()) } else { end }
}

/// The quoted texts of a script that are addresses.
fn quoted(script: &str) -> Vec<String> {
    let plain = unescaped(script);
    let is_address = |text: &&str| {
        let start = text.trim_start().to_ascii_lowercase();
        let refresh =
            start.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ';' | ',' | ' '));
        start.starts_with("http") || start.starts_with(['/', '\\']) || refresh.starts_with("url=")
    };
    plain.split(['"', '\'', '`']).filter(is_address).map(str::to_owned).collect()
}

/// Whether a script changes the host of an address: `location.hostname = "..."`.
fn sets_host(script: &str) -> bool {
    let script = squeezed(script);
    ["host", "hostname"].iter().any(|word| sets(&script, word))
}

/// Whether a squeezed script sets the property: `.host =`, `["host"] =`.
fn sets(script: &str, property: &str) -> bool {
    let is_set = |(at, word): (usize, &str)| {
        let rest = script[at + word.len()..].trim_start_matches(['"', '\'', '`', ']']);
        let is_property = script[..at].ends_with(['.', '"', '\'', '`']);
        is_property && rest.starts_with('=') && !rest.starts_with("==")
    };
    script.match_indices(property).any(is_set)
}

/// Whether a squeezed script says where a form goes: `f.action =`, `f.setAttribute("action", ...)`.
fn sets_form_target(script: &str) -> bool {
    let is_attribute = |word: &str| {
        ["\"", "'", "`"].iter().any(|quote| script.contains(&format!("attribute({quote}{word}{quote}")))
    };
    FORM_TARGETS.iter().any(|word| sets(script, word) || is_attribute(word))
}

/// Whether a squeezed script makes an element that leads to another page, or changes where the page's base is.
fn makes_leading(script: &str) -> bool {
    let names =
        |word: &str| ["\"", "'", "`"].iter().any(|quote| script.contains(&format!("{quote}{word}{quote}")));
    (script.contains("createelement") && MADE.iter().any(|word| names(word)))
        || (names("base") && script.contains("href"))
}

fn all_addresses(texts: &[String]) -> Result<Hosts, Unclear> {
    texts.iter().try_fold(Hosts::new(), |hosts, text| Ok(&hosts | &page_addresses(text)?))
}

/// A tag or a script, and the decoded content of its `data:` URLs, unless that is a picture or a font.
fn with_content(text: &str, layers: usize) -> Result<Vec<String>, Unclear> {
    let mut texts = vec![text.to_owned()];
    for inside in contents(text)? {
        let layers = layers.checked_sub(1).ok_or(Unclear::TooDeep)?;
        texts.extend(with_content(&inside, layers)?);
    }
    Ok(texts)
}

/// The decoded content of the `data:` URLs in base64 in a text, unless that is a picture or a font.
pub(crate) fn contents(text: &str) -> Result<Vec<String>, Unclear> {
    let is_left_out = |c: char| matches!(c, '\t' | '\n' | '\r');
    let plain = unescaped(text).replace(is_left_out, "");
    let lower = plain.to_ascii_lowercase();
    let marks: Vec<usize> = lower.match_indices("base64").map(|(at, _)| at).collect();
    let mut texts = Vec::new();
    for (number, at) in marks.iter().copied().enumerate() {
        let before = number.checked_sub(1).map_or(0, |before| marks[before]);
        let next = marks.get(number + 1).copied().unwrap_or(plain.len());
        let rest = lower[at + "base64".len()..next].trim_start();
        let Some(rest) = rest.strip_prefix(',') else { continue };
        let body = &plain[next - rest.len()..next];
        let body = &body[..rest.find("data:").unwrap_or(body.len())];
        let body = &body[..body.find(['"', '\'', '`', '<', '>', ')']).unwrap_or(body.len())];
        let media = lower[before..at].rsplit("data:").next().unwrap_or_default();
        let Some(bytes) = from_base64(percent(body).as_deref().unwrap_or(body)) else { continue };
        let bytes = unpacked(&bytes)?.unwrap_or(bytes);
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        if !is_picture_or_font(media) || is_document(&text_of(head)) {
            texts.push(text_of(&bytes));
        }
    }
    Ok(texts)
}

/// Whether a media type is that of a picture, but not of a drawing, or of a font.
fn is_picture_or_font(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim();
    let is_picture = media.starts_with("image/") && !media.starts_with("image/svg");
    is_picture || media.starts_with("font/") || media.starts_with("application/") && media.contains("font")
}

/// A tag or a script as a browser reads it, without escapes.
fn unescaped(text: &str) -> String {
    let text = entities(text).unwrap_or_else(|| text.to_owned());
    backslashes(&text).unwrap_or(text)
}

fn is_leading(name: &str, tag: &str) -> bool {
    let tag = unescaped(tag).to_ascii_lowercase();
    let names = matches!(name, "link" | "meta") && NAMING.iter().any(|word| tag.contains(word));
    LEADING.contains(&name) || names || tag.contains("formaction")
}

fn is_running(tag: &str) -> bool {
    let tag = unescaped(tag).to_ascii_lowercase();
    tag.contains("javascript:") || has_handler(&tag)
}

/// Whether a tag has an event handler such as `onload`.
fn has_handler(tag: &str) -> bool {
    tag.match_indices("on").any(|(at, _)| {
        let is_start = tag[..at].ends_with(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''));
        let rest = tag[at + 2..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        is_start && rest.trim_start().starts_with('=')
    })
}

/// Whether a script opens another page, loads a script, or writes a part of the page.
fn goes(script: &str) -> bool {
    let script = squeezed(script);
    GOING.iter().any(|word| script.contains(word))
        || GOING_CALLS.iter().any(|word| calls(&script, word))
        || sets_form_target(&script)
        || makes_leading(&script)
}

fn clicks(script: &str) -> bool {
    let script = squeezed(script);
    CLICKS.iter().any(|word| calls(&script, word))
}

/// A script in lower case, without blanks and escapes.
fn squeezed(script: &str) -> String {
    let plain = unescaped(script);
    let plain = percent(&plain).unwrap_or(plain);
    plain.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a function whose name ends in `word` is called: `click(`, `["click"](`, `click?.(`, `click.call(`.
fn calls(script: &str, word: &str) -> bool {
    script.match_indices(word).any(|(at, _)| {
        let rest = script[at + word.len()..].trim_start_matches(['"', '\'', '`', ']', '?', '.']);
        ["(", "apply(", "bind(", "call("].iter().any(|start| rest.starts_with(start))
    })
}

/// The end of a tag for the reader that ends it last: quotes count everywhere, or only after an equals sign.
fn tag_end(tag: &str) -> usize {
    let end = |is_strict: bool| {
        let (mut quote, mut before) = (None, ' ');
        for (at, c) in tag.char_indices() {
            match quote {
                Some(open) if open == c => quote = None,
                Some(_) => {}
                None if c == '>' => return at,
                None if matches!(c, '"' | '\'') && (!is_strict || before == '=') => quote = Some(c),
                None => {}
            }
            if !c.is_whitespace() {
                before = c;
            }
        }
        tag.len()
    };
    end(false).max(end(true))
}
