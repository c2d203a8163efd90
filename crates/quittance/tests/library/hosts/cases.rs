//! Random tasks, most of them with a hidden host that is not listed.

use crate::hosts::hide::{
    BLOCK_PAGE, HiddenForm, bare, base64, beside_a_sign, glued, hidden, in_a_drawing, in_a_pack, in_bytes,
    in_html, in_json, mangled,
};
use serde_json::{Map, Value, json};

/// Random numbers from a seed.
pub(crate) struct HostsDice(u64);

impl HostsDice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a usize")
    }

    pub(crate) fn one_of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }
}

/// A kind by its names in the catalogue (a method and a task type), what it needs beside a page (our name, theirs, a
/// value), and an address of its vendor.
struct KindSort {
    names: [&'static str; 3],
    fields: &'static [(&'static str, &'static str, &'static str)],
    vendor: Option<(&'static str, &'static str, &'static str)>,
}

const SORTS: &[KindSort] = &[
    KindSort {
        names: ["turnstile", "turnstile", "TurnstileTaskProxyless"],
        fields: &[("sitekey", "websiteKey", "0x4AAA")],
        vendor: None,
    },
    KindSort {
        names: ["recaptcha_v2", "userrecaptcha", "RecaptchaV2TaskProxyless"],
        fields: &[("googlekey", "websiteKey", "6Lc-x")],
        vendor: Some(("domain", "apiDomain", "www.google.com")),
    },
    KindSort {
        names: ["hcaptcha", "hcaptcha", "HCaptchaTaskProxyless"],
        fields: &[("sitekey", "websiteKey", "a5f74b19")],
        vendor: None,
    },
    KindSort {
        names: ["funcaptcha", "funcaptcha", "FunCaptchaTaskProxyless"],
        fields: &[("publickey", "websitePublicKey", "69A21A01")],
        vendor: Some(("surl", "funcaptchaApiJSSubdomain", "https://client-api.arkoselabs.com")),
    },
    KindSort {
        names: ["geetest", "geetest", "GeeTestTaskProxyless"],
        fields: &[("gt", "gt", "81388ea1fc187e0c"), ("challenge", "challenge", "4a1b2c3d")],
        vendor: Some(("api_server", "geetestApiServerSubdomain", "api-na.geetest.com")),
    },
    KindSort {
        names: ["amazon_waf", "amazon_waf", "AmazonTaskProxyless"],
        fields: &[
            ("sitekey", "websiteKey", "AQIDAHjc"),
            ("iv", "iv", "CgAHbC"),
            ("context", "context", "9BUgmlm"),
        ],
        vendor: Some((
            "challenge_script",
            "challengeScript",
            "https://a.b.token.awswaf.com/a/b/challenge.js",
        )),
    },
    KindSort {
        names: ["friendly_captcha", "friendly_captcha", "FriendlyCaptchaTaskProxyless"],
        fields: &[("sitekey", "websiteKey", "FCMGEMUD")],
        vendor: Some((
            "module_script",
            "moduleScript",
            "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/widget.module.min.js",
        )),
    },
    KindSort {
        names: ["tspd", "tspd", "TspdTask"],
        fields: &[("html_page_base64", "htmlPageBase64", BLOCK_PAGE)],
        vendor: None,
    },
    KindSort {
        names: ["image", "base64", "ImageToTextTask"],
        fields: &[("body", "body", PICTURE)],
        vendor: None,
    },
    KindSort {
        names: ["BrandNewTask", "brandnew", "BrandNewTask"],
        fields: &[("token", "token", "abc123")],
        vendor: None,
    },
    KindSort {
        names: ["yandex", "yandex", "YandexSmartCaptchaTask"],
        fields: &[("key1", "key1", "v1")],
        vendor: None,
    },
];

/// Stands for a file of some bytes.
const PICTURE: &str = "";

/// Fields that orders of any kind may have, by what they contain: text, a key, an option.
const ASIDES: &[&str] =
    &["userAgent", "cookies", "instructions", "textinstructions", "json_cookies", "lang", "languagePool"];

/// Names that some reader may confuse with another field: with our own fields, the page, or the field that names the
/// kind.
const TAKEN_NAMES: &[&str] = &[
    "key",
    "method",
    "json",
    "pingback",
    "soft_id",
    "clientKey",
    "callbackUrl",
    "type",
    "pageurl",
    "websiteURL",
    "proxy",
];

const PAGE_NAMES: &[&str] = &[
    "pageurl",
    "websiteURL",
    "pageURL",
    "websiteUrl",
    "PAGEURL",
    " pageurl",
    "pageurl ",
    "pageurl[]",
    "page.url",
    "page_url",
    "url",
    "URL",
    "domain",
    "site",
    "href",
    "target",
    "redirect_uri",
    "pageurl\u{0}",
    "x",
    "metadata",
    "payload",
    "s",
    "initParameters",
    "enterprisePayload",
    "title",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostsPlace {
    Nowhere,
    /// Under some name, beside the page that is checked.
    Beside,
    /// In place of the page.
    Instead,
    Nested,
    InAKnownField,
    AsVendor,
    InTheQuery,
    InAName,
    InTheKind,
    /// As bytes that are not text.
    InBytes,
    AsProxy,
    /// In a field that expects a word or a number.
    InASmallField,
    /// In JSON, in a field that expects a text of some role.
    UnderAKnownField,
    /// A name that some reader takes for another name, and no host.
    InANameOfAnother,
    /// After an at sign that follows a character which ends a host for most readers.
    BehindAnAtSign,
    /// In a page of HTML that claims to be another page.
    InHtml,
    /// In a picture that is a drawing.
    InADrawing,
    /// Packed, in a field of which nothing is known.
    InAPack,
}

const PLACES: [HostsPlace; 23] = [
    HostsPlace::Nowhere,
    HostsPlace::Nowhere,
    HostsPlace::Beside,
    HostsPlace::Beside,
    HostsPlace::Beside,
    HostsPlace::Instead,
    HostsPlace::Nested,
    HostsPlace::Nested,
    HostsPlace::InAKnownField,
    HostsPlace::AsVendor,
    HostsPlace::AsVendor,
    HostsPlace::InTheQuery,
    HostsPlace::InAName,
    HostsPlace::InBytes,
    HostsPlace::AsProxy,
    HostsPlace::InASmallField,
    HostsPlace::UnderAKnownField,
    HostsPlace::UnderAKnownField,
    HostsPlace::InANameOfAnother,
    HostsPlace::BehindAnAtSign,
    HostsPlace::InHtml,
    HostsPlace::InADrawing,
    HostsPlace::InAPack,
];

#[derive(Debug)]
pub(crate) struct HostsCase {
    place: HostsPlace,
    pub(crate) kind: &'static str,
    pub(crate) method: String,
    pub(crate) task: &'static str,
    /// The fields under our names.
    pub(crate) ours: Map<String, Value>,
    pub(crate) theirs: Map<String, Value>,
}

impl HostsCase {
    pub(crate) fn make(dice: &mut HostsDice, number: u64) -> Self {
        let sort = dice.one_of(SORTS);
        let place = if dice.below(40) == 0 { HostsPlace::InTheKind } else { *dice.one_of(&PLACES) };
        let mut case = Self {
            place,
            kind: sort.names[0],
            method: sort.names[1].to_owned(),
            task: sort.names[2],
            ours: Map::new(),
            theirs: Map::new(),
        };
        let page = format!("https://shop.example.org/login?n={number:x}");
        case.put("pageurl", "websiteURL", page.clone());
        for (ours, theirs, value) in sort.fields {
            match *value {
                PICTURE => case.put(ours, theirs, picture(number)),
                value => case.put(ours, theirs, format!("{value}{number:x}")),
            }
        }
        if let Some((ours, theirs, value)) = sort.vendor.filter(|_| dice.below(2) == 0) {
            case.put(ours, theirs, value.to_owned());
        }
        if dice.below(6) == 0 {
            case.put("proxy", "proxy", "user:p@ss/w0rd#1@203.0.113.7:823");
        }
        case.hide(dice, sort, &page);
        case
    }

    fn put(&mut self, ours: &str, theirs: &str, value: impl Into<Value>) {
        let value = value.into();
        self.ours.insert(ours.to_owned(), value.clone());
        self.theirs.insert(theirs.to_owned(), value);
    }

    fn hide(&mut self, dice: &mut HostsDice, sort: &KindSort, page: &str) {
        let name = *dice.one_of(PAGE_NAMES);
        match self.place {
            HostsPlace::Nowhere => {}
            HostsPlace::Beside => self.put(name, name, hidden(dice, HiddenForm::Any)),
            HostsPlace::Instead => {
                self.ours.remove("pageurl");
                self.theirs.remove("websiteURL");
                self.put(name, name, hidden(dice, HiddenForm::Any));
            }
            HostsPlace::Nested => {
                let address = hidden(dice, HiddenForm::Any);
                let inner = *dice.one_of(PAGE_NAMES);
                let value = match dice.below(4) {
                    0 => json!({ inner: address }),
                    1 => json!([address]),
                    2 => json!({ "a": [{ inner: { "b": address } }] }),
                    _ => Value::from(json!({ inner: address }).to_string()),
                };
                self.put(name, name, value);
            }
            HostsPlace::InAKnownField => {
                let (ours, theirs, _) = dice.one_of(sort.fields);
                let value = match dice.below(4) {
                    0 => bare(dice),
                    1 if sort.names[0] != "image" => beside_a_sign(dice),
                    _ => hidden(dice, HiddenForm::Wrapped),
                };
                self.put(ours, theirs, value);
            }
            HostsPlace::AsVendor => match sort.vendor {
                Some((ours, theirs, listed)) if dice.below(2) == 0 => {
                    let listed = listed.trim_start_matches("https://").split('/').next().unwrap_or(listed);
                    self.put(ours, theirs, glued(dice, listed));
                }
                Some((ours, theirs, _)) => self.put(ours, theirs, hidden(dice, HiddenForm::Address)),
                None => self.put("userAgent", "userAgent", hidden(dice, HiddenForm::Address)),
            },
            HostsPlace::InTheQuery => {
                let page = format!("{page}&next={}", hidden(dice, HiddenForm::Address).trim());
                self.put("pageurl", "websiteURL", page);
            }
            HostsPlace::InAName => {
                let name = hidden(dice, HiddenForm::Address);
                self.put(&name, &name, "1");
            }
            HostsPlace::InTheKind => self.method = hidden(dice, HiddenForm::Address),
            HostsPlace::InBytes => {
                let name = *dice.one_of(PAGE_NAMES);
                self.put(name, name, json!({ "base64": in_bytes(dice) }));
            }
            HostsPlace::AsProxy => {
                let host = bare(dice);
                let (name, value) = match dice.below(5) {
                    0 => ("proxytype", hidden(dice, HiddenForm::Any)),
                    1 => ("proxy", format!("https://{host}/")),
                    2 => ("proxy", format!("https:{host}/login?x=@203.0.113.7:80")),
                    3 => ("proxy", format!("{host}/login")),
                    _ => ("proxyAddress", format!("https://{host}/")),
                };
                self.put(name, name, value);
            }
            HostsPlace::InASmallField => {
                let name = *dice.one_of(&["lang", "language", "languagePool", "image_base64_1"]);
                let value = if dice.below(2) == 0 { bare(dice) } else { hidden(dice, HiddenForm::Address) };
                self.put(name, name, value);
            }
            HostsPlace::UnderAKnownField => {
                let (ours, theirs) = match dice.below(2) {
                    0 => {
                        let name = *dice.one_of(ASIDES);
                        (name, name)
                    }
                    _ => {
                        let (ours, theirs, _) = dice.one_of(sort.fields);
                        (*ours, *theirs)
                    }
                };
                let text = in_json(dice);
                let value = match (dice.below(2), serde_json::from_str::<Value>(&text)) {
                    (0, Ok(value)) => value,
                    _ => Value::from(text),
                };
                self.put(ours, theirs, value);
            }
            HostsPlace::InANameOfAnother => {
                let (ours, theirs, _) = dice.one_of(sort.fields);
                let names: Vec<&str> = TAKEN_NAMES.iter().copied().chain([*ours, *theirs]).collect();
                let name = *dice.one_of(&names);
                let name = mangled(dice, name);
                self.put(&name, &name, "other");
            }
            HostsPlace::InHtml => {
                let html = in_html(dice);
                match sort.names[0] {
                    "tspd" => self.put("html_page_base64", "htmlPageBase64", html),
                    _ => {
                        let name = *dice.one_of(&["html", "htmlPageBase64", name]);
                        self.put(name, name, html);
                    }
                }
            }
            HostsPlace::InADrawing => {
                let drawing = json!({ "base64": in_a_drawing(dice) });
                match sort.names[0] {
                    "image" => self.put("body", "body", drawing),
                    _ => self.put(name, name, drawing),
                }
            }
            HostsPlace::InAPack => self.put(name, name, in_a_pack(dice)),
            HostsPlace::BehindAnAtSign => {
                let (sign, host) = (*dice.one_of(&["#@", "?@", "?email=a@"]), bare(dice));
                self.put("pageurl", "websiteURL", format!("https://shop.example.org{sign}{}/", host.trim()));
            }
        }
    }

    /// Whether the task hides nothing.
    pub(crate) fn is_honest(&self) -> bool {
        self.place == HostsPlace::Nowhere
    }
}

/// A picture, judged by its first bytes, made of bytes that are not text. Each number gives another picture.
fn picture(number: u64) -> Value {
    let bytes: Vec<u8> =
        (0..120_u64).map(|at| (number.rotate_left(7) ^ (at * 151)).to_le_bytes()[0] | 0x80).collect();
    // A PNG of 100 by 40 pixels, as far as its header says.
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x64\0\0\0\x28\x08\x02\0\0\0";
    json!({ "base64": base64(&[head, &bytes[..], format!("{number:x}").as_bytes()].concat()) })
}

/// The base64 of a value that is bytes.
pub(crate) fn bytes_in(value: &Value) -> Option<&str> {
    value.as_object().filter(|object| object.len() == 1)?.get("base64")?.as_str()
}
