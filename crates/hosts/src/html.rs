//! A page of HTML that stood at the page of an order, for a provider that shows it to a browser. No provider opens
//! what it links to; but it must not say that it is another page, nor lead the browser to one.

use crate::decode::whole_base64;
use crate::encoding::text_of;
use crate::escapes::{backslashes, entities};
use crate::packed::unpacked;
use crate::{Hosts, Unclear, addresses, anything};

/// How many bytes of tags are looked at, for each byte of the page: tags that do not end are read to the end of the
/// page.
const TAG_BYTES_MAX: usize = 16;
const TAG_BYTES_MIN: usize = 64 * 1024;

/// Elements that say where the page is, where it sends what is filled in, or that show and run what is elsewhere.
const LEADING: [&str; 10] =
    ["applet", "base", "embed", "fencedframe", "form", "frame", "iframe", "object", "portal", "script"];
/// What a `link` or `meta` says that names the page itself, or the next one.
const NAMING: [&str; 6] = ["al:web:url", "canonical", "og:url", "prerender", "refresh", "twitter:url"];
/// How scripts go to another page.
const GOING: [&str; 4] = ["location", "navigat", "open(", "prerender"];
/// How scripts follow a link for the visitor; then links lead, too.
const CLICK: &str = "click(";

/// Every host that a page of HTML, plain or in base64, might make the page of the order. What is no page of HTML is
/// any text.
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
    let follows_links = backslashes(&lower).as_deref().unwrap_or(&lower).contains(CLICK);
    for (at, _) in lower.match_indices('<') {
        let rest = &lower[at + 1..];
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        if name.is_empty() {
            continue;
        }
        let end = at + 1 + tag_end(rest);
        bytes_left = bytes_left.checked_sub(end - at).ok_or(Unclear::TooDeep)?;
        let is_followed = follows_links && matches!(name, "a" | "area");
        if is_followed || is_leading(name, &lower[at..end]) {
            hosts.extend(addresses(&page[at..end])?);
        }
        if name == "script" {
            let script = &page[end..lower[end..].find("</script").map_or(page.len(), |length| end + length)];
            bytes_left = bytes_left.checked_sub(script.len()).ok_or(Unclear::TooDeep)?;
            if goes(script) {
                hosts.extend(addresses(script)?);
            }
        }
    }
    Ok(hosts)
}

fn is_leading(name: &str, tag: &str) -> bool {
    let decoded = entities(tag);
    let tag = decoded.as_deref().unwrap_or(tag).to_ascii_lowercase();
    let names = matches!(name, "link" | "meta") && NAMING.iter().any(|word| tag.contains(word));
    let runs = tag.contains("javascript:") || has_handler(&tag);
    LEADING.contains(&name) || names || tag.contains("formaction") || (runs && goes(&tag))
}

/// Whether a tag has an attribute like `onload`.
fn has_handler(tag: &str) -> bool {
    tag.match_indices("on").any(|(at, _)| {
        let is_start = tag[..at].ends_with(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''));
        let rest = tag[at + 2..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        is_start && rest.trim_start().starts_with('=')
    })
}

/// Whether a script speaks of going to another page.
fn goes(script: &str) -> bool {
    let decoded = backslashes(script);
    let script = decoded.as_deref().unwrap_or(script).to_ascii_lowercase();
    GOING.iter().any(|word| script.contains(word))
}

/// Where a tag ends, for the reader that ends it last: quotes count anywhere, or behind an equals sign only.
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
