//! Which hosts a text names, for the most forgiving of its readers. Providers trim, decode and repair what they are
//! given, each in its own way; an address that one reader does not see and another one does is how an order for one
//! site becomes a task for another. So everything is collected that any of them might see, and what is collected must
//! be allowed.
//!
//! What is checked in a text follows from what it is:
//! - [`page`] and [`address`]: it is an address and nothing else, so it is parsed whole, and all that is odd is an error.
//! - [`vendor_address`]: it is the address of a captcha's vendor: as an address, and the hosts that its query names.
//! - [`addresses`]: it is prose (a hint, a browser's name) and may speak of hosts, but not give an address, also not in base64.
//! - [`opaque`]: it identifies a captcha: addresses, also below base64, and a host between the signs that an address has.
//! - [`token`]: it is a long token with dots and slashes by its nature: addresses, also below base64, and a host that stands alone.
//! - [`word`]: it is the site's own word for something: as [`opaque`], but one word with dots may end like a host.
//! - [`anything`]: nothing is known about it: bare names of hosts anywhere count as well.
//! - [`document`]: it is a drawing: addresses, but not the names of its XML namespaces.
//! - [`file()`]: it is a picture or a sound: nothing, unless it is a drawing or an address in its place.
//! - [`html`]: it is a page: what says which page it is, or leads to another.
//!
//! What is written as a JSON object or list is read as [`anything`], whatever it should be: providers may be given it
//! as one.
#![forbid(unsafe_code)]

mod decode;
mod encoding;
mod escapes;
mod file_data;
mod host_search;
mod html;
mod inflate;
mod packed;
mod param_name;
#[cfg(test)]
mod tests;
mod whole;

pub use decode::is_text;
use decode::{Texts, base64_in};
pub use file_data::file;
pub use html::html;
pub use param_name::roots;
use std::collections::BTreeSet;
use url::Host;
pub use whole::{address, is_media_type, is_proxy, page, vendor_address};

/// Why a text cannot be vouched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// It is wrapped in more layers of encoding than are looked through.
    TooDeep,
    /// It is compressed in a way that is not looked through, or there is too much inside.
    Packed,
    /// It should be an address and is none, or two readers would see two hosts in it.
    NotAnAddress,
}

/// The hosts, each as [`canonical`] writes it.
pub type Hosts = BTreeSet<String>;

/// A host as all of its spellings are compared: in ASCII (`xn--` where it was not), small letters, without a dot at
/// its end, an address in numbers as four of them. What is no host is kept as it is, in small letters, so that no
/// pattern covers it by accident.
#[must_use]
pub fn canonical(host: &str) -> String {
    let host = host.trim_end_matches(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let last = host.rsplit('.').next().unwrap_or_default();
    let has_letters_last = last.starts_with(|c: char| c.is_ascii_alphabetic());
    if host.bytes().all(is_plain) && has_letters_last && !host.to_ascii_lowercase().contains("xn--") {
        return host.to_ascii_lowercase();
    }
    match Host::parse(host) {
        Ok(Host::Domain(domain)) => domain.trim_end_matches('.').to_owned(),
        Ok(Host::Ipv4(address)) => address.to_string(),
        Ok(Host::Ipv6(address)) => address.to_string(),
        Err(_) => host.to_lowercase(),
    }
}

/// Every host of what is written as an address, anywhere in the text: with a scheme, or with `//` in front of a name.
pub fn addresses(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Prose)
}

/// Every host of an address in the text, also in base64, and every host that stands between the signs of an address.
pub fn opaque(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Opaque)
}

/// Every host of an address in the text, also in base64, and every host that is one of its words by itself.
pub fn token(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Token)
}

/// As [`opaque`], unless the text is one word with dots whose last part is a word, and not a country's or an old
/// domain: `user.new`. Four numbers are a version.
pub fn word(text: &str) -> Result<Hosts, Unclear> {
    if host_search::is_dotted_word(text) { Ok(Hosts::new()) } else { opaque(text) }
}

/// Every host of an address in the text, also in base64, and every host that begins what may be an address without a
/// scheme.
fn value(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Value)
}

/// Every host that the text names in any form: as an address, as a bare name, in JSON, in base64.
pub fn anything(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Anything)
}

/// Every host of an address in a document in XML. The name of a namespace looks like an address, and nothing is
/// fetched from there.
pub fn document(text: &str) -> Result<Hosts, Unclear> {
    addresses(&whole::without_namespaces(text))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Prose,
    Token,
    Opaque,
    /// A value in the query of an address.
    Value,
    Anything,
}

fn collect(text: &str, reader: Reader) -> Result<Hosts, Unclear> {
    let mut hosts = Hosts::new();
    if !decode::may_name_a_host(text) {
        return Ok(hosts);
    }
    let mut texts = Texts::new(text);
    let may_be_packed = reader == Reader::Anything;
    if may_be_packed {
        for bytes in decode::as_bytes(text) {
            packed::unpacked(&bytes)?
                .iter()
                .for_each(|inside| texts.push_normalized(&encoding::text_of(inside)));
        }
    }
    while let Some(text) = texts.next()? {
        host_search::addresses(&text, &mut hosts);
        match reader {
            _ if is_structured(&text, reader) => host_search::names(&text, &mut hosts),
            Reader::Prose => {}
            Reader::Token => host_search::words(&text, &mut hosts),
            Reader::Opaque => host_search::pieces(&text, &mut hosts),
            Reader::Value if whole::is_one_address(&text) => {}
            Reader::Value => host_search::beginnings(&text, &mut hosts),
            // The path of an address has dots that make no hosts.
            Reader::Anything if whole::is_one_address(&text) => {
                whole::words_behind_path(&text).for_each(|word| {
                    if !whole::is_one_address(word) {
                        host_search::beginnings(word, &mut hosts);
                        host_search::names_without_dot(word, &mut hosts);
                    }
                });
            }
            Reader::Anything => host_search::names(&text, &mut hosts),
        }
        texts.decode(&text);
        if reader == Reader::Prose {
            hidden_in_prose(&text, &mut hosts);
            continue;
        }
        for decoded in base64_in(&text) {
            if may_be_packed && let Some(inside) = packed::unpacked(&decoded)? {
                texts.push_normalized(&encoding::text_of(&inside));
            }
            let (is_text, decoded) = (is_text(&decoded), encoding::text_of(&decoded));
            if is_text {
                texts.push_normalized(&decoded);
            } else {
                // Bytes of which a reader may make out an address, and nothing else.
                decode::normalized(&decoded).iter().for_each(|text| host_search::addresses(text, &mut hosts));
            }
        }
    }
    if may_be_packed && texts.holds_gzip() {
        return Err(Unclear::Packed);
    }
    Ok(hosts)
}

/// A cookie or a hint may be base64 by its nature, and what is in it may speak of hosts. But what is nothing except an
/// address in base64, or a bare name in JSON, was hidden there.
fn hidden_in_prose(text: &str, hosts: &mut Hosts) {
    for decoded in base64_in(text).into_iter().filter(|decoded| is_text(decoded)) {
        let decoded = encoding::text_of(&decoded);
        if whole::is_one_address(decoded.trim()) {
            host_search::addresses(&decoded, hosts);
        } else if is_structured(text, Reader::Prose) && !decoded.trim().contains(char::is_whitespace) {
            host_search::words(decoded.trim(), hosts);
        }
    }
}

/// Whether it is written as a JSON object or list, or as what a forgiving reader takes for one. Prose may begin with
/// a bracket.
fn is_structured(text: &str, reader: Reader) -> bool {
    let text = text.trim();
    let is_whole = text.ends_with(['}', ']']) || reader != Reader::Prose;
    text.starts_with(['{', '[']) && is_whole
}
