//! Finds the hosts that a text names for its most tolerant reader. Providers trim, decode and repair their input,
//! each in its own way. If one reader sees an address that another does not, an order for one site can become a task
//! for another. So every host that any reader could see is collected, and each of them must be allowed.
//!
//! How a text is searched depends on what it is:
//!
//! - [`page`] and [`address`]: an address and nothing else. It is parsed whole, and anything odd is an error.
//! - [`vendor_address`]: the address of a captcha's vendor. It is parsed as an address, and the hosts in its query
//!   count too.
//! - [`addresses`]: prose (a hint, a browser's name). It may mention hosts, but not contain an address, not even in
//!   base64. A signed token (JWT) is left as it is: it is a credential, and no provider reads it as part of an order.
//! - [`opaque`]: an identifier of a captcha. Addresses count, also in base64, and hosts between the separators of a
//!   URL.
//! - [`token`]: a long token that has dots and slashes anyway. Addresses count, also in base64, and hosts that stand
//!   alone.
//! - [`word`]: the site's own word. It is searched like [`opaque`], but one word with dots may end like a host.
//! - [`anything`]: an unknown text. Bare names of hosts count everywhere.
//! - [`document`]: a drawing. Addresses count, but not the names of its XML namespaces.
//! - [`file()`]: a picture or a sound. It is searched only if it is a drawing, or an address in its place.
//! - [`picture`]: a picture in a field that nothing is known about. Addresses count, but not the names of its XML
//!   namespaces.
//! - [`html`]: a page. Only what says which page it is, or leads to another, counts.
//!
//! A text that is written as a JSON object or list is read as [`anything`] in every case, because providers may read
//! it as JSON.
#![forbid(unsafe_code)]

mod decode;
mod encoding;
mod entities;
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
pub use file_data::{file, is_picture, picture, without_pictures};
pub use html::html;
pub use param_name::roots;
use std::collections::BTreeSet;
use url::Host;
pub use whole::{address, is_media_type, is_proxy, page, vendor_address};

/// Why a text cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// The text has more layers of encoding than the limit.
    TooDeep,
    /// The text is compressed in an unknown way, or holds too much.
    Packed,
    /// The text should be an address and is none, or two readers would see two hosts in it.
    NotAnAddress,
}

/// The hosts that were found, each as [`canonical`] writes it.
pub type Hosts = BTreeSet<String>;

/// The one spelling of a host: in ASCII (`xn--`), lower case, without a dot at its end, and a numeric address as four
/// numbers. A text that is no host stays as it is in lower case, so that no pattern matches it by accident.
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

/// Every host that the text writes as an address: with a scheme, or with `//` before a name.
pub fn addresses(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Prose)
}

/// Every host of an address in a page, a drawing or a file. Pictures are embedded in them in base64, and name the
/// programs that made them. So only base64 that is an address and nothing else counts.
fn page_addresses(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Page)
}

/// Every host of an address in the text, also in base64, and every host between the separators of a URL.
pub fn opaque(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Opaque)
}

/// Every host of an address in the text, also in base64, and every host that is a whole word.
pub fn token(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Token)
}

/// The hosts of [`opaque`], or none if the text is one word with dots whose last part is a plain word (`user.new`)
/// and not a country or an old domain. Four numbers are a version.
pub fn word(text: &str) -> Result<Hosts, Unclear> {
    if host_search::is_dotted_word(text) { Ok(Hosts::new()) } else { opaque(text) }
}

/// Every host of an address in the text, also in base64, and every host that begins an address without a scheme.
fn value(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Value)
}

/// Every host that the text names in any form: as an address, as a bare name, in JSON, or in base64.
pub fn anything(text: &str) -> Result<Hosts, Unclear> {
    collect(text, Reader::Anything)
}

/// How often one document can hold another in a `data:` URL.
const DOCUMENTS_MAX: usize = 3;

/// Every host of an address in an XML document, without its namespaces. A namespace looks like an address, but
/// nothing is fetched from it. Documents in `data:` URLs count too.
pub fn document(text: &str) -> Result<Hosts, Unclear> {
    document_in(text, DOCUMENTS_MAX)
}

fn document_in(text: &str, layers: usize) -> Result<Hosts, Unclear> {
    let text = entities::expanded(text)?;
    let text = whole::without_namespaces(&text);
    let styles = escapes::style_escapes(&text);
    let mut hosts = Hosts::new();
    for text in [text].into_iter().chain(styles) {
        hosts.extend(page_addresses(&text)?);
        for inside in html::contents(&text)? {
            hosts.extend(document_in(&inside, layers.checked_sub(1).ok_or(Unclear::TooDeep)?)?);
        }
    }
    Ok(hosts)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Prose,
    Page,
    /// A text that was hidden in prose.
    Hidden,
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
            if let Some(inside) = packed::unpacked(&bytes)? {
                texts.push_bytes(&inside);
            }
        }
    }
    while let Some(text) = texts.next()? {
        host_search::addresses(&text, &mut hosts);
        match reader {
            Reader::Hidden => {}
            _ if is_structured(&text, reader) => host_search::names(&text, &mut hosts),
            Reader::Prose | Reader::Page => {}
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
        match reader {
            Reader::Prose => {
                hidden_in_prose(&text, &mut hosts)?;
                continue;
            }
            Reader::Page => {
                for decoded in base64_in(&text).iter().flat_map(|bytes| hidden_texts(bytes)) {
                    if whole::is_one_address(decoded.trim()) {
                        host_search::addresses(&decoded, &mut hosts);
                    }
                }
                continue;
            }
            Reader::Hidden => {
                base64_in(&text).iter().flat_map(|bytes| hidden_texts(bytes)).for_each(|hidden| {
                    texts.push_normalized(&hidden);
                });
                continue;
            }
            _ => {}
        }
        for decoded in base64_in(&text) {
            if may_be_packed && let Some(inside) = packed::unpacked(&decoded)? {
                texts.push_bytes(&inside);
            }
            let readings = decode::texts_of(&decoded);
            if readings.is_empty() {
                // Bytes of which a reader may make out an address, and nothing else.
                decode::normalized(&encoding::text_of(&decoded))
                    .iter()
                    .for_each(|text| host_search::addresses(text, &mut hosts));
            }
            readings.iter().for_each(|reading| texts.push_normalized(reading));
        }
    }
    if may_be_packed && texts.holds_gzip() {
        return Err(Unclear::Packed);
    }
    Ok(hosts)
}

/// Finds hosts that are hidden in prose: addresses in base64, and a bare name in base64 in JSON.
fn hidden_in_prose(text: &str, hosts: &mut Hosts) -> Result<(), Unclear> {
    let is_json = is_structured(text, Reader::Prose);
    for decoded in base64_in(&decode::without_jwts(text)) {
        for hidden in hidden_texts(&decoded) {
            hosts.extend(collect(&hidden, Reader::Hidden)?);
            if is_json && !hidden.trim().contains(char::is_whitespace) {
                decode::normalized(hidden.trim()).iter().for_each(|text| host_search::words(text, hosts));
            }
        }
    }
    Ok(())
}

/// The texts that these bytes can be, plain or compressed; none if they are no text.
fn hidden_texts(bytes: &[u8]) -> Vec<String> {
    // Random bytes can begin as compressed data begins.
    let inside = packed::unpacked(bytes).ok().flatten();
    decode::texts_of(inside.as_deref().unwrap_or(bytes))
}

/// Whether a text is written as a JSON object or list, or as what a tolerant reader takes for one. Prose may begin
/// with a bracket.
fn is_structured(text: &str, reader: Reader) -> bool {
    let text = text.trim();
    let is_whole = text.ends_with(['}', ']']) || !matches!(reader, Reader::Prose | Reader::Page);
    text.starts_with(['{', '[']) && is_whole
}
