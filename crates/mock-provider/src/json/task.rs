//! Translates a task object into classic parameters, which the classic code then checks. This module checks what only
//! JSON can get wrong: types, wrapped pictures, and a proxy in five fields.

use super::kinds::{JsonKind, Proxies};
use super::{MockDialect, error_names};
use quittance_protocol::classic::{Form, Part};
use serde_json::{Map, Value};

type TaskFields = Map<String, Value>;

pub(super) fn read(
    dialect: MockDialect,
    kind: &JsonKind,
    proxies: Proxies,
    task: &TaskFields,
    form: &mut Form,
) -> Result<(), &'static str> {
    set(form, "method", kind.method.to_owned());
    for (name, value) in kind.fixed {
        set(form, name, (*value).to_owned());
    }
    for (path, name) in kind.fields {
        let Some(value) = find(task, path).filter(|_| !form.0.contains_key(*name)) else { continue };
        let is_identity = matches!(*path, "websiteURL" | "websiteKey" | "body");
        match text_of(value) {
            Some(_) if is_identity && !value.is_string() => return Err(error_names::BAD),
            Some(text) => set(form, name, text),
            None => {}
        }
    }
    check_score(dialect, kind, task)?;
    check_body(dialect, kind, task)?;
    match proxies {
        Proxies::Ignored => Ok(()),
        Proxies::Optional if !has_proxy(task) => Ok(()),
        Proxies::Needed | Proxies::Optional => read_proxy(dialect, task, form),
    }
}

fn set(form: &mut Form, name: &str, text: String) {
    form.0.insert(name.to_owned(), Part::Text(text));
}

/// Finds a field by its path. `outer.inner` is a field of a nested object.
fn find<'a>(task: &'a TaskFields, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((outer, inner)) => task.get(outer)?.get(inner),
        None => task.get(path),
    }
}

/// The value as a form field, or `None` for null and empty text.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(is_set) => Some(u8::from(*is_set).to_string()),
        other => Some(other.to_string()),
    }
}

/// Checks `minScore` of a reCAPTCHA v3 task. 2captcha and Anti-Captcha need this number.
fn check_score(dialect: MockDialect, kind: &JsonKind, task: &TaskFields) -> Result<(), &'static str> {
    let is_v3 = kind.fixed.contains(&("version", "v3"));
    let is_wanted = is_v3 && matches!(dialect, MockDialect::TwoCaptcha | MockDialect::AntiCaptcha);
    match task.get("minScore") {
        Some(score) if is_v3 => match score.as_f64() {
            Some(score) if (0.1..=0.9).contains(&score) => Ok(()),
            _ => Err(error_names::BAD),
        },
        None if is_wanted => Err(error_names::BAD),
        _ => Ok(()),
    }
}

/// Checks a picture. All but 2captcha want bare base64 in one line. Anti-Captcha and CapMonster have lower size
/// limits.
fn check_body(dialect: MockDialect, kind: &JsonKind, task: &TaskFields) -> Result<(), &'static str> {
    const ANTICAPTCHA_BYTES_MAX: usize = 500_000;
    const CAPMONSTER_BYTES_MAX: usize = 50_000;
    let is_body = kind.fields.iter().any(|(path, _)| *path == "body");
    let Some(body) = task.get("body").and_then(Value::as_str).filter(|_| is_body) else { return Ok(()) };
    let is_wrapped = body.starts_with("data:") || body.contains(char::is_whitespace);
    if is_wrapped && dialect != MockDialect::TwoCaptcha {
        return Err("ERROR_IMAGE_TYPE_NOT_SUPPORTED");
    }
    let bytes = body.len() / 4 * 3;
    let is_too_big = match dialect {
        MockDialect::AntiCaptcha => bytes > ANTICAPTCHA_BYTES_MAX,
        MockDialect::CapMonster => bytes > CAPMONSTER_BYTES_MAX,
        _ => false,
    };
    if is_too_big { Err("ERROR_TOO_BIG_CAPTCHA_FILESIZE") } else { Ok(()) }
}

fn has_proxy(task: &TaskFields) -> bool {
    task.contains_key("proxyAddress") || task.contains_key("proxy")
}

fn read_proxy(dialect: MockDialect, task: &TaskFields, form: &mut Form) -> Result<(), &'static str> {
    let text = |name: &str| task.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(line) = text("proxy").filter(|_| dialect == MockDialect::CapSolver) {
        return read_proxy_line(line, form).ok_or(error_names::BAD);
    }
    let (Some(kind), Some(host)) = (text("proxyType"), text("proxyAddress")) else {
        return Err(error_names::BAD);
    };
    if !matches!(kind.to_ascii_lowercase().as_str(), "http" | "https" | "socks4" | "socks5") {
        return Err(error_names::BAD);
    }
    let port = match task.get("proxyPort") {
        Some(Value::Number(port)) => port.as_u64().and_then(|port| u16::try_from(port).ok()),
        // Only this one is known to be particular about it.
        Some(Value::String(port)) if dialect != MockDialect::AntiCaptcha => port.parse().ok(),
        _ => None,
    };
    let port = port.filter(|port| *port > 0).ok_or(error_names::BAD)?;
    let login = match (text("proxyLogin"), text("proxyPassword")) {
        (Some(login), Some(password)) => format!("{login}:{password}@"),
        (None, None) => String::new(),
        _ => return Err(error_names::BAD),
    };
    set(form, "proxytype", kind.to_ascii_uppercase());
    set(form, "proxy", format!("{login}{host}:{port}"));
    Ok(())
}

/// Reads a proxy in one line. CapSolver takes `http://login:password@host:port` and `host:port:login:password`, with
/// or without `http:` before it.
fn read_proxy_line(line: &str, form: &mut Form) -> Option<()> {
    let kinds = ["http", "https", "socks4", "socks5"];
    let named = line.split_once("://").or_else(|| line.split_once(':'));
    let (kind, rest) = named.filter(|(kind, _)| kinds.contains(kind)).unwrap_or(("http", line));
    let proxy = match rest.split(':').collect::<Vec<_>>()[..] {
        [host, port, login, password] if !rest.contains('@') => format!("{login}:{password}@{host}:{port}"),
        _ => rest.to_owned(),
    };
    let (_, port) = proxy.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    set(form, "proxytype", kind.to_ascii_uppercase());
    set(form, "proxy", proxy);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn form_of(dialect: MockDialect, task: &Value) -> Result<Form, &'static str> {
        let task = task.as_object().expect("an object");
        let name = task["type"].as_str().expect("a type");
        let (kind, proxies) = JsonKind::named(dialect, name, task).expect("a type that is taken");
        let mut form = Form::default();
        read(dialect, kind, proxies, task, &mut form).map(|()| form)
    }

    #[test]
    fn fields_get_the_names_that_the_ledger_uses() {
        let task = json!({"type": "RecaptchaV2EnterpriseTaskProxyless", "websiteURL": "https://a.test/",
            "websiteKey": "6Lkey", "isInvisible": true, "enterprisePayload": {"s": "once"}, "unheard": 1,
            "proxyAddress": "1.2.3.4"});
        let form = form_of(MockDialect::TwoCaptcha, &task).expect("a good task");
        let pairs: Vec<_> =
            form.0.keys().map(|name| (name.as_str(), form.text(name).expect("text"))).collect();
        assert_eq!(
            pairs,
            [
                ("data-s", "once"),
                ("enterprise", "1"),
                ("googlekey", "6Lkey"),
                ("invisible", "1"),
                ("method", "userrecaptcha"),
                ("pageurl", "https://a.test/"),
            ]
        );
    }

    #[test]
    fn a_proxy_is_put_together_or_refused() {
        let with = |proxy: &Value| {
            let mut task =
                json!({"type": "TurnstileTask", "websiteURL": "https://a.test/", "websiteKey": "k"});
            let fields = proxy.as_object().expect("an object").clone();
            task.as_object_mut().expect("an object").extend(fields);
            form_of(MockDialect::TwoCaptcha, &task).map(|form| form.text("proxy").map(str::to_owned))
        };
        let good = json!({"proxyType": "http", "proxyAddress": "1.2.3.4", "proxyPort": 80});
        assert_eq!(with(&good), Ok(Some("1.2.3.4:80".to_owned())));
        let login = json!({"proxyType": "SOCKS5", "proxyAddress": "h", "proxyPort": 1, "proxyLogin": "u",
            "proxyPassword": "p"});
        assert_eq!(with(&login), Ok(Some("u:p@h:1".to_owned())));
        for bad in [
            json!({}),
            json!({"proxyType": "ftp", "proxyAddress": "h", "proxyPort": 1}),
            json!({"proxyType": "http", "proxyAddress": "h", "proxyPort": 70_000}),
            json!({"proxyType": "http", "proxyAddress": "h", "proxyPort": 1, "proxyLogin": "u"}),
            json!({"proxy": "u:p@h:1"}),
        ] {
            assert_eq!(with(&bad), Err(error_names::BAD), "{bad}");
        }
        for line in ["http://u:p@h:1", "h:1:u:p", "http://h:1:u:p", "http:h:1:u:p"] {
            let task = json!({"type": "AntiCloudflareTask", "websiteURL": "https://a.test/", "proxy": line});
            let form = form_of(MockDialect::CapSolver, &task).expect("a good task");
            assert_eq!((form.text("proxy"), form.text("proxytype")), (Some("u:p@h:1"), Some("HTTP")));
        }
    }

    #[test]
    fn the_version_of_a_geetest_decides_its_method() {
        for (dialect, task) in [
            (MockDialect::TwoCaptcha, json!({"version": 4, "initParameters": {"captcha_id": "i"}})),
            (MockDialect::AntiCaptcha, json!({"version": 4, "gt": "i"})),
            (MockDialect::CapSolver, json!({"captchaId": "i"})),
        ] {
            let mut task = task;
            task["type"] = json!("GeeTestTaskProxyless");
            let form = form_of(dialect, &task).expect("a good task");
            assert_eq!((form.text("method"), form.text("captcha_id")), (Some("geetest_v4"), Some("i")));
        }
    }
}
