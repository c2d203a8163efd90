//! What a request to in.php means, and whether the provider takes it: the parameters that each method needs, and the
//! code for each that is missing or wrong. An unknown method is taken, because new ones appear every few months.

use crate::ledger::LedgerValue;
use crate::picture;
use crate::rng::{digest, hex};
use crate::settings::{MockClassicDialect, Settings};
use quittance_protocol::classic::{Form, Part};
use std::collections::BTreeMap;

/// Control parameters, which are no part of the task.
pub(crate) const CONTROL: &[&str] =
    &["key", "method", "json", "soft_id", "pingback", "header_acao", "debug_dump"];
/// The longest text that the ledger shows. For longer text it shows the digest.
const SHOWN_BYTES_MAX: usize = 4_096;
const TEXTCAPTCHA_CHARS_MAX: usize = 140;
const PICTURES_MAX: usize = 9;

/// The shape of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerShape {
    /// Depends on the picture alone: the same picture has the same answer.
    Text,
    Grid,
    Coordinates,
    Canvas,
    Boxes,
    Rotate,
    Bls,
    /// A token that begins with this text.
    Token(&'static str),
    /// A token with the browser that it belongs to. CaptchaAI sends both in `result`.
    Bound(&'static str),
    /// A token in `request`, with the browser beside it.
    TokenAndAgent(&'static str),
    Geetest,
    Fields(&'static [&'static str]),
    Piped,
    Cookie,
}

impl AnswerShape {
    /// Whether the answer has several parts. The classic protocol writes them as one text.
    pub(crate) fn is_structured(self) -> bool {
        matches!(self, Self::Grid | Self::Coordinates | Self::Canvas | Self::Rotate)
    }
}

/// A request that the provider takes.
#[derive(Clone, Debug)]
pub(crate) struct ProviderRequest {
    pub method: String,
    pub shape: AnswerShape,
    /// The digest of the picture, if the answer depends on it.
    pub picture_digest: Option<[u8; 32]>,
    /// How many pictures there are.
    pub pictures: usize,
}

impl ProviderRequest {
    pub(crate) fn read(form: &Form, settings: &Settings) -> Result<Self, &'static str> {
        let is_file = matches!(form.0.get("file"), Some(Part::File(_)));
        let method = match form.text("method") {
            Some(method) => method,
            None if form.0.contains_key("textcaptcha") => "textcaptcha",
            None if is_file => "post",
            None => return Err("ERROR_BAD_PARAMETERS"),
        };
        check_proxy(form, needs_proxy(method))?;
        let mut wanted = Self {
            method: method.to_owned(),
            shape: AnswerShape::Token(""),
            picture_digest: None,
            pictures: 0,
        };
        match method {
            "textcaptcha" => wanted.read_text(form)?,
            "post" | "base64" | "rotatecaptcha" | "bounding_box" | "audio" | "bls" => {
                wanted.read_pictures(form, settings)?;
            }
            _ => wanted.shape = token_shape(method, form, settings.dialect)?,
        }
        Ok(wanted)
    }

    fn read_text(&mut self, form: &Form) -> Result<(), &'static str> {
        let text = form.text("textcaptcha").filter(|text| text.chars().count() <= TEXTCAPTCHA_CHARS_MAX);
        self.picture_digest = Some(digest([text.ok_or("ERROR_BAD_PARAMETERS")?.as_bytes()]));
        self.shape = AnswerShape::Text;
        Ok(())
    }

    fn read_pictures(&mut self, form: &Form, settings: &Settings) -> Result<(), &'static str> {
        let pictures = pictures(form)?;
        if pictures.is_empty() {
            return Err("ERROR_UPLOAD");
        }
        if self.method == "audio" {
            if pictures[0].len() > settings.image_bytes_max.max(1 << 20) {
                return Err("ERROR_TOO_BIG_CAPTCHA_FILESIZE");
            }
        } else {
            pictures.iter().try_for_each(|picture| picture::check(picture, settings))?;
        }
        let is_set = |name: &str| form.text(name).is_some_and(|value| value != "0");
        let has_instructions = ["instructions", "textinstructions", "imginstructions"]
            .iter()
            .any(|name| form.0.contains_key(*name));
        let is_grid =
            is_set("recaptcha") || is_set("grid_size") || form.text("img_type") == Some("recaptcha");
        self.shape = match self.method.as_str() {
            "rotatecaptcha" => AnswerShape::Rotate,
            "bounding_box" => AnswerShape::Boxes,
            "bls" if pictures.len() == PICTURES_MAX && has_instructions => AnswerShape::Bls,
            "bls" => return Err("ERROR_BAD_PARAMETERS"),
            _ if is_grid && settings.dialect == MockClassicDialect::CaptchaAi && !has_instructions => {
                return Err("ERROR_BAD_PARAMETERS");
            }
            _ if is_grid => AnswerShape::Grid,
            _ if is_set("coordinatescaptcha") => AnswerShape::Coordinates,
            _ if is_set("canvas") && !has_instructions => return Err("ERROR_BAD_PARAMETERS"),
            _ if is_set("canvas") => AnswerShape::Canvas,
            _ => AnswerShape::Text,
        };
        self.picture_digest = Some(digest(pictures.iter().map(Vec::as_slice)));
        self.pictures = pictures.len();
        Ok(())
    }
}

fn is_picture(name: &str) -> bool {
    matches!(name, "file" | "body" | "image")
        || name.starts_with("file_")
        || name.starts_with("image_base64_")
}

fn pictures(form: &Form) -> Result<Vec<Vec<u8>>, &'static str> {
    let parts = form.0.iter().filter(|(name, _)| is_picture(name)).take(PICTURES_MAX);
    parts.map(|(_, part)| picture::bytes_of(part).ok_or("ERROR_UPLOAD")).collect()
}

fn token_shape(method: &str, form: &Form, dialect: MockClassicDialect) -> Result<AnswerShape, &'static str> {
    let needs = |names: &[&str]| {
        let has_all = names.iter().all(|name| form.text(name).is_some());
        if has_all { Ok(()) } else { Err("ERROR_BAD_PARAMETERS") }
    };
    let is_captchaai = dialect == MockClassicDialect::CaptchaAi;
    let is_set = |name: &str| form.text(name).is_some_and(|value| value != "0");
    let shape = match method {
        "userrecaptcha" => {
            check_googlekey(form)?;
            match is_captchaai && is_set("enterprise") {
                true => AnswerShape::Bound("03A"),
                false => AnswerShape::Token("03A"),
            }
        }
        "hcaptcha" => needs(&["sitekey"]).map(|()| AnswerShape::Token("P1_"))?,
        "turnstile" => {
            needs(&["sitekey"])?;
            let is_challenge_page = form.0.contains_key("pagedata") && form.0.contains_key("data");
            if is_challenge_page { AnswerShape::TokenAndAgent("0.") } else { AnswerShape::Token("0.") }
        }
        "cloudflare_challenge" => AnswerShape::Bound("cf."),
        "captchafox" if is_captchaai => AnswerShape::TokenAndAgent("fox."),
        "geetest" if form.text("version") == Some("4") => needs(&["gt"]).map(|()| GEETEST_V4)?,
        "geetest" => needs(&["gt", "challenge"]).map(|()| AnswerShape::Geetest)?,
        "geetest_v4" => needs(&["captcha_id"]).map(|()| GEETEST_V4)?,
        "funcaptcha" => needs(&["publickey"]).map(|()| AnswerShape::Piped)?,
        "keycaptcha" => {
            needs(&["s_s_c_user_id", "s_s_c_session_id", "s_s_c_web_server_sign", "s_s_c_web_server_sign2"])?;
            AnswerShape::Piped
        }
        "capy" => {
            needs(&["captchakey"]).map(|()| AnswerShape::Fields(&["captchakey", "challengekey", "answer"]))?
        }
        "lemin" => {
            needs(&["captcha_id", "div_id"]).map(|()| AnswerShape::Fields(&["answer", "challenge_id"]))?
        }
        "amazon_waf" => {
            needs(&["sitekey", "iv", "context"])?;
            AnswerShape::Fields(&["captcha_voucher", "existing_token"])
        }
        "tencent" => {
            needs(&["app_id"]).map(|()| AnswerShape::Fields(&["appid", "ret", "ticket", "randstr"]))?
        }
        "datadome" => needs(&["captcha_url", "userAgent"]).map(|()| AnswerShape::Cookie)?,
        // It is not known what a new method needs.
        _ if !KNOWN.contains(&method) => return Ok(AnswerShape::Token("")),
        _ => AnswerShape::Token(""),
    };
    check_pageurl(form)?;
    Ok(shape)
}

const GEETEST_V4: AnswerShape =
    AnswerShape::Fields(&["captcha_id", "lot_number", "pass_token", "gen_time", "captcha_output"]);

/// Methods that are not listed above and need only a page.
const KNOWN: &[&str] =
    &["mt_captcha", "friendly_captcha", "prosopo", "cybersiara", "captchafox", "cutcaptcha"];

fn needs_proxy(method: &str) -> bool {
    matches!(method, "cloudflare_challenge" | "captchafox" | "datadome")
}

fn check_pageurl(form: &Form) -> Result<(), &'static str> {
    let url = form.text("pageurl").ok_or("ERROR_PAGEURL")?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).ok_or("ERROR_PAGEURL")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.contains(char::is_whitespace) { Err("ERROR_PAGEURL") } else { Ok(()) }
}

fn check_googlekey(form: &Form) -> Result<(), &'static str> {
    let Some(Part::Text(key)) = form.0.get("googlekey") else { return Err("ERROR_WRONG_GOOGLEKEY") };
    let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if is_plain && (6..=100).contains(&key.len()) { Ok(()) } else { Err("ERROR_GOOGLEKEY") }
}

fn check_proxy(form: &Form, is_needed: bool) -> Result<(), &'static str> {
    let Some(proxy) = form.text("proxy") else {
        return if is_needed { Err("ERROR_BAD_PARAMETERS") } else { Ok(()) };
    };
    let address = proxy
        .rsplit_once('@')
        .map_or(proxy, |(login, address)| if login.contains(':') { address } else { "" });
    let is_address = address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok());
    let is_type = match form.text("proxytype") {
        Some(kind) => {
            ["HTTP", "HTTPS", "SOCKS4", "SOCKS5"].iter().any(|known| kind.eq_ignore_ascii_case(known))
        }
        None => !is_needed,
    };
    if is_address && is_type { Ok(()) } else { Err("ERROR_PROXY_FORMAT") }
}

/// A digest that identifies the request, independent of the order and encoding of its parameters.
pub(crate) fn identity(form: &Form) -> [u8; 32] {
    let wanted = form.0.iter().filter(|(name, _)| *name == "method" || !CONTROL.contains(&name.as_str()));
    digest(wanted.flat_map(|(name, part)| {
        let value = match part {
            Part::Text(text) => text.as_bytes(),
            Part::File(bytes) => bytes,
        };
        [name.as_bytes(), value]
    }))
}

/// The parameters as the ledger shows them.
pub(crate) fn ledger_params(form: &Form) -> BTreeMap<String, LedgerValue> {
    let wanted = form.0.iter().filter(|(name, _)| !CONTROL.contains(&name.as_str()));
    wanted.map(|(name, part)| (name.clone(), ledger_value(name, part))).collect()
}

fn ledger_value(name: &str, part: &Part) -> LedgerValue {
    use sha2::{Digest, Sha256};
    let digested =
        |bytes: &[u8]| LedgerValue::Bytes { sha256: hex(&Sha256::digest(bytes)), bytes: bytes.len() };
    match part {
        Part::File(bytes) => digested(bytes),
        Part::Text(text) => match picture::bytes_of(part).filter(|_| is_picture(name)) {
            Some(bytes) => digested(&bytes),
            None if text.len() > SHOWN_BYTES_MAX => digested(text.as_bytes()),
            None if name == "proxy" => LedgerValue::Text(without_login(text)),
            None => LedgerValue::Text(text.clone()),
        },
    }
}

/// Replaces the login by its digest: the password stays secret, and two different logins still differ.
fn without_login(proxy: &str) -> String {
    match proxy.rsplit_once('@') {
        Some((login, address)) => format!("{}@{address}", &hex(&digest([login.as_bytes()]))[..12]),
        None => proxy.to_owned(),
    }
}
