//! Orders with values that look like hosts and are not, and with addresses of vendors, as real clients send them.
//! Every API accepts them, for every dialect that sells them, and they arrive.

use crate::hosts::cases::HostsDice;
use crate::hosts::hide::base64;
use crate::hosts::holes::Hole;
use crate::hosts::world::{HostsCaller, HostsProvider, HostsWorld, KEY, form};
use quittance_mock_provider::MockDialect;
use serde_json::{Map, Value, json};

const PAGE: &str = "https://shop.example.org/login";
const AGENT: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";
const PROXY: &str = "user-session.1:p@ss/w0rd@gw.example.net:823";

/// The API on which the order is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum In {
    Classic,
    V1,
    Task,
}

struct Ordinary {
    /// What is special about the order.
    what: &'static str,
    api: In,
    kind: &'static str,
    fields: Value,
    /// The provider for the order.
    to: HostsProvider,
}

const CLASSIC: HostsProvider = HostsProvider::Classic(quittance::ClassicDialect::TwoCaptcha);
const CAP_SOLVER: HostsProvider = HostsProvider::Json(MockDialect::CapSolver);
const CAP_MONSTER: HostsProvider = HostsProvider::Json(MockDialect::CapMonster);
const TWO_CAPTCHA: HostsProvider = HostsProvider::Json(MockDialect::TwoCaptcha);

fn picture(number: u8) -> String {
    base64(&[&b"\x89PNG\r\n\x1a\n"[..], &[number; 8], &[0xd8; 150]].concat())
}

fn token(dice: &mut HostsDice, bytes: usize) -> String {
    base64(&(0..bytes).map(|_| dice.next().to_le_bytes()[0]).collect::<Vec<_>>())
}

/// One order on the classic API and on `/v1`, for a classic provider and one of the JSON protocol.
fn on_both(what: &'static str, kind: &'static str, fields: &Value) -> Vec<Ordinary> {
    let mut all = Vec::new();
    for (api, to) in
        [(In::Classic, CLASSIC), (In::V1, CLASSIC), (In::Classic, TWO_CAPTCHA), (In::V1, TWO_CAPTCHA)]
    {
        all.push(Ordinary { what, api, kind, fields: fields.clone(), to });
    }
    all
}

fn task(what: &'static str, kind: &'static str, fields: Value, to: HostsProvider) -> Ordinary {
    Ordinary { what, api: In::Task, kind, fields, to }
}

fn values_with_dots(dice: &mut HostsDice) -> Vec<Ordinary> {
    let jwt = |payload: Value| {
        let part =
            |text: String| base64(text.as_bytes()).trim_end_matches('=').replace('+', "-").replace('/', "_");
        format!("eyJhbGciOiJIUzI1NiJ9.{}.{}", part(payload.to_string()), "c2lnbmF0dXJl")
    };
    let named = jwt(json!({ "l": "https://newassets.hcaptcha.com/c/abc", "n": "hsw", "e": 1_731_875_000 }));
    let blob = format!("dyXvXANMbHj1iDyz.{}", token(dice, 600));
    let rows = [
        ("an action with a dot", "recaptcha_v3", json!({ "googlekey": "6Lc-x1", "action": "homepage.load" })),
        (
            "an action with a slash",
            "recaptcha_v3",
            json!({ "googlekey": "6Lc-x2", "action": "checkout/submit.order" }),
        ),
        (
            "an action of enterprise",
            "recaptcha_v2",
            json!({ "googlekey": "6Lc-x3", "enterprise": "1", "action": "user.login" }),
        ),
        ("an action of turnstile", "turnstile", json!({ "sitekey": "0x4A1", "action": "login.form" })),
        (
            "an action that ends like a host",
            "turnstile",
            json!({ "sitekey": "0x4A10", "action": "checkout.pay" }),
        ),
        ("another one", "recaptcha_v3", json!({ "googlekey": "6Lc-x10", "action": "sign-in.live" })),
        ("a version", "turnstile", json!({ "sitekey": "0x4A11", "data": "1.2.3.4" })),
        (
            "a page that leads into an app",
            "turnstile",
            json!({ "sitekey": "0x4A12", "pageurl": format!("{PAGE}?redirect_uri=com.example.app://oauth2redirect") }),
        ),
        (
            "what the page loads of GeeTest",
            "geetest",
            json!({ "gt": "81388ea9", "challenge": "4a1b2c39", "geetestGetLib": "{\"type\":\"fullpage\",\"static_servers\":[\"static.geetest.com/\",\"dn-staticdown.qbox.me/\"],\"beeline\":\"/static/js/beeline.1.0.1.js\"}" }),
        ),
        (
            "a theme of enterprise",
            "recaptcha_v2",
            json!({ "googlekey": "6Lc-x11", "enterprise": "1", "enterprisePayload": "{\"s\":\"2JvUXH\",\"theme\":\"dark\"}" }),
        ),
        ("a site key with a dot", "turnstile", json!({ "sitekey": "1x00000000000000000000.AA" })),
        (
            "page data with dots",
            "turnstile",
            json!({ "sitekey": "0x4A2", "action": "managed", "data": "80001aa1", "pagedata": "3gAFo2.x9.Qra" }),
        ),
        ("a blob with a dot", "funcaptcha", json!({ "publickey": "69A21A01", "data[blob]": blob })),
        ("a token that names its vendor", "hcaptcha", json!({ "sitekey": "a5f74b19", "data": named })),
        ("a long token", "hcaptcha", json!({ "sitekey": "a5f74b20", "data": token(dice, 1500) })),
        (
            "a password with an at sign",
            "turnstile",
            json!({ "sitekey": "0x4A3", "proxy": PROXY, "proxytype": "http" }),
        ),
        (
            "a proxy with a scheme",
            "turnstile",
            json!({ "sitekey": "0x4A4", "proxy": "http://user:pw@gw.example.net:823" }),
        ),
        (
            "a password with a hash",
            "turnstile",
            json!({ "sitekey": "0x4A5", "proxy": "user:p@x#y@gw.example.net:823" }),
        ),
        (
            "a version that is the default",
            "geetest",
            json!({ "gt": "81388ea1", "challenge": "4a1b2c3d", "version": "3" }),
        ),
        (
            "a hint that speaks of a host",
            "turnstile",
            json!({ "sitekey": "0x4A6", "textinstructions": "as on shop.example.net" }),
        ),
        (
            "a line break behind the page",
            "turnstile",
            json!({ "sitekey": "0x4A7", "pageurl": format!("{PAGE}\n") }),
        ),
        (
            "what is not set",
            "recaptcha_v2",
            json!({ "googlekey": "6Lc-x4", "domain": "", "cookies": "", "proxy": "" }),
        ),
    ];
    rows.iter().flat_map(|(what, kind, fields)| on_both(what, kind, fields)).collect()
}

fn pictures() -> Vec<Ordinary> {
    let on = |page: &str, number: u8| json!({ "pageurl": page, "body": { "base64": picture(number) } });
    let mut all = on_both(
        "the page of a picture",
        "image",
        &on("https://shop.example.org/captcha.php?v=1.2.3&file=a.png", 1),
    );
    let mut proxied = on(PAGE, 2);
    proxied["proxy"] = "user:pw@203.0.113.9:823".into();
    all.extend(on_both("the proxy of a picture", "image", &proxied));
    let drawing = r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" width="100" height="40"><text>ab</text></svg>"#;
    all.extend(on_both("a drawing", "image", &json!({ "body": { "base64": base64(drawing.as_bytes()) } })));
    let licensed = drawing.replace(
        "<text>",
        "<!-- http://www.inkscape.org/ --><a href=\"http://creativecommons.org/ns#\"/><text>",
    );
    all.extend(on_both(
        "its licence",
        "image",
        &json!({ "body": { "base64": base64(licensed.as_bytes()) } }),
    ));
    let found = json!({ "websiteURL": "https://shop.example.org/login/index.php", "module": "common", "body": picture(3) });
    all.push(task("the page of a picture", "ImageToTextTask", found, CAP_SOLVER));
    all
}

fn addresses_of_vendors() -> Vec<Ordinary> {
    let document = base64(
        b"<html><script src=\"https://challenges.cloudflare.com/turnstile/v0/api.js\"></script></html>",
    );
    let anchor = base64(b"https://www.google.com/recaptcha/api2/anchor?ar=1&k=6Lc-x");
    let proxy = json!({ "proxyType": "http", "proxyAddress": "203.0.113.7", "proxyPort": 8080, "proxyLogin": "user", "proxyPassword": "p@/ss" });
    let mut all = vec![
        task(
            "the server of GeeTest v4",
            "GeeTestTaskProxyLess",
            json!({ "captchaId": "e392e1d7", "geetestApiServerSubdomain": "api.geetest.com" }),
            CAP_SOLVER,
        ),
        task(
            "the libraries of GeeTest",
            "GeeTestTaskProxyless",
            json!({ "gt": "81388ea2", "challenge": "4a1b2c3e", "geetestGetLib": "{\"customlibs\":{\"url\":\"https://static.geetest.com/static/x.js\"}}" }),
            TWO_CAPTCHA,
        ),
        task(
            "the anchor of reCAPTCHA",
            "ReCaptchaV2TaskProxyLess",
            json!({ "websiteKey": "6Lc-x5", "anchor": anchor }),
            CAP_SOLVER,
        ),
        task(
            "a proxy without its type",
            "AntiCloudflareTask",
            json!({ "proxy": "203.0.113.7:8080:user:pw", "userAgent": AGENT }),
            CAP_SOLVER,
        ),
        task(
            "a proxy of IPv6",
            "TurnstileTask",
            json!({ "websiteKey": "0x4A13", "proxyType": "http", "proxyAddress": "2001:db8::1", "proxyPort": 8000 }),
            TWO_CAPTCHA,
        ),
        task(
            "a theme of enterprise",
            "RecaptchaV2EnterpriseTaskProxyless",
            json!({ "websiteKey": "6Lc-x12", "enterprisePayload": { "s": "2JvUXH", "theme": "dark" } }),
            TWO_CAPTCHA,
        ),
        task(
            "a theme alone",
            "RecaptchaV2EnterpriseTaskProxyless",
            json!({ "websiteKey": "6Lc-x13", "enterprisePayload": { "theme": "dark" } }),
            TWO_CAPTCHA,
        ),
        task(
            "where a challenge page loads the widget from",
            "TurnstileTask",
            with(
                &proxy,
                json!({ "websiteKey": "0x4A14", "cloudflareTaskType": "token", "pageAction": "managed", "data": "80001aa1", "pageData": "3gAFo2", "userAgent": AGENT, "apiJsUrl": "https://challenges.cloudflare.com/turnstile/v0/g/0f752d3d6ed2/api.js" }),
            ),
            CAP_MONSTER,
        ),
        task(
            "a block page with links",
            "AntiCloudflareTask",
            json!({ "proxy": "203.0.113.7:8080:user:pw", "userAgent": AGENT, "html": crate::hosts::hide::BLOCK_PAGE }),
            CAP_SOLVER,
        ),
        task(
            "Friendly Captcha at CapMonster",
            "CustomTask",
            json!({ "class": "friendly", "websiteKey": "FCMGEMUD", "metadata": { "apiGetLib": "https://cdn.jsdelivr.net/npm/@friendlycaptcha/sdk@0.1.36/site.min.js" } }),
            CAP_MONSTER,
        ),
        task(
            "TSPD at CapMonster",
            "CustomTask",
            with(
                &proxy,
                json!({ "class": "tspd", "userAgent": AGENT, "metadata": { "tspdCookie": "TS386a400d029=0826; TS386a400d078=08.26", "htmlPageBase64": base64(crate::hosts::hide::BLOCK_PAGE.as_bytes()) } }),
            ),
            CAP_MONSTER,
        ),
        task(
            "Imperva at CapMonster",
            "CustomTask",
            with(
                &proxy,
                json!({ "class": "Imperva", "userAgent": AGENT, "metadata": { "incapsulaScriptUrl": "_Incapsula_Resource?SWJIYLWA=719d", "incapsulaCookies": "incap_ses_1166_29=br7; visid_incap_29=1R3D", "reese84UrlEndpoint": "Built-with-the-For-?d=shop.example.org" } }),
            ),
            CAP_MONSTER,
        ),
        task(
            "Imperva at CapSolver",
            "AntiImpervaTaskProxyLess",
            json!({ "reeseScriptUrl": "https://shop.example.org/s-weakes-Sir-Day/1860025529?s=xlD1csYd", "script": "(function(){a.id=b.to;c.io()})()", "userAgent": AGENT }),
            CAP_SOLVER,
        ),
        task(
            "the puzzle of AWS WAF",
            "AntiAwsWafTaskProxyLess",
            json!({ "awsProblemUrl": "https://41b.us-east-1.captcha.awswaf.com/41b/problem?kind=visual&locale=en-us", "awsExistingToken": "a1b2.c3/d4==" }),
            CAP_SOLVER,
        ),
        task("AWS WAF with its page only", "AntiAwsWafTaskProxyLess", json!({}), CAP_SOLVER),
        task(
            "a key of AWS WAF",
            "AntiAwsWafTaskProxyLess",
            json!({ "awsApiKey": "AbC.dEf", "awsApiJs": "https://41b.edge.captcha-sdk.awswaf.com/4/jsapi.js" }),
            CAP_SOLVER,
        ),
        task(
            "a list of cookies",
            "ReCaptchaV2TaskProxyLess",
            json!({ "websiteKey": "6Lc-x6", "cookies": [{ "name": "__Secure-3PSID", "value": "AIKr.x", "domain": ".google.com" }] }),
            CAP_SOLVER,
        ),
        task(
            "a challenge on the page's host",
            "AltchaTaskProxyless",
            json!({ "challengeURL": "https://shop.example.org/api/challenge.json" }),
            TWO_CAPTCHA,
        ),
        task(
            "DataDome at CapMonster, with its block page",
            "CustomTask",
            with(
                &proxy,
                json!({ "class": "DataDome", "userAgent": AGENT, "metadata": { "htmlPageBase64": base64(crate::hosts::hide::BLOCK_PAGE.as_bytes()), "datadomeCookie": "datadome=VYUWrgJ9ap4zmXq8" } }),
            ),
            CAP_MONSTER,
        ),
        task(
            "DataDome at CapMonster",
            "CustomTask",
            with(
                &proxy,
                json!({ "class": "DataDome", "userAgent": AGENT, "metadata": { "captchaUrl": "https://geo.captcha-delivery.com/captcha/?initialCid=AHr", "datadomeCookie": "datadome=VYUWrgJ9ap4zmXq8" } }),
            ),
            CAP_MONSTER,
        ),
        task(
            "the page as a document",
            "TurnstileTask",
            with(
                &proxy,
                json!({ "websiteKey": "xxxxxxxxxx", "cloudflareTaskType": "cf_clearance", "htmlPageBase64": document, "userAgent": AGENT }),
            ),
            CAP_MONSTER,
        ),
        task(
            "a waiting room",
            "TurnstileTask",
            with(
                &proxy,
                json!({ "websiteKey": "xxxxxxxxxx", "cloudflareTaskType": "wait_room", "htmlPageBase64": document, "userAgent": AGENT }),
            ),
            CAP_MONSTER,
        ),
        task(
            "a password with signs",
            "TurnstileTask",
            with(&proxy, json!({ "websiteKey": "0x4A8" })),
            TWO_CAPTCHA,
        ),
    ];
    for to in [TWO_CAPTCHA, CAP_SOLVER] {
        let payload = json!({ "rqdata": "abc", "sentry": true, "apiEndpoint": "https://custom.hcaptcha.com", "endpoint": "https://hcaptcha.com", "reportapi": "https://accounts.hcaptcha.com", "assethost": "https://newassets.hcaptcha.com", "imghost": "https://imgs.hcaptcha.com" });
        all.push(task(
            "hosts of hCaptcha",
            "HCaptchaTaskProxyless",
            json!({ "websiteKey": "a5f74b21", "enterprisePayload": payload }),
            to,
        ));
    }
    all
}

fn with(proxy: &Value, mut fields: Value) -> Value {
    let pieces = proxy.as_object().unwrap().clone();
    fields.as_object_mut().unwrap().extend(pieces);
    fields
}

impl Ordinary {
    fn page(&self) -> &'static str {
        if self.api == In::Task { "websiteURL" } else { "pageurl" }
    }

    async fn place(&self, caller: &mut HostsCaller) -> (bool, String) {
        let mut fields: Map<String, Value> = self.fields.as_object().unwrap().clone();
        if !matches!(self.kind, "image") {
            fields.entry(self.page()).or_insert_with(|| PAGE.into());
        }
        match self.api {
            In::Classic => {
                fields.insert("key".into(), KEY.into());
                let method = match self.kind {
                    "recaptcha_v2" | "recaptcha_v3" => "userrecaptcha",
                    "image" => "base64",
                    kind => kind,
                };
                fields.insert("method".into(), method.into());
                if self.kind == "recaptcha_v3" {
                    fields.insert("version".into(), "v3".into());
                }
                let body = form(&fields).into_bytes();
                let (_, output) =
                    caller.call("POST", "/in.php", "application/x-www-form-urlencoded", &body).await;
                (output.starts_with("OK|"), output)
            }
            In::V1 => {
                let body = json!({ "kind": self.kind, "params": fields, "reuse": "exclusive" }).to_string();
                let (status, output) =
                    caller.call("POST", "/v1/orders", "application/json", body.as_bytes()).await;
                (status < 300, output)
            }
            In::Task => {
                fields.insert("type".into(), self.kind.into());
                let body = json!({ "clientKey": KEY, "task": fields, "reuse": "exclusive" }).to_string();
                let (_, output) =
                    caller.call("POST", "/createTask", "application/json", body.as_bytes()).await;
                (output.contains("\"errorId\":0"), output)
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordinary_orders_are_taken_on_every_api_and_arrive() {
    let mut orders = values_with_dots(&mut HostsDice::new(3));
    orders.extend(pictures());
    orders.extend(addresses_of_vendors());
    let mut wrong = Vec::new();
    for provider in [CLASSIC, TWO_CAPTCHA, CAP_SOLVER, CAP_MONSTER] {
        let world = HostsWorld::start(provider, Hole::None).await;
        let mut caller = HostsCaller::new(world.gateway);
        for order in orders.iter().filter(|order| format!("{:?}", order.to) == format!("{provider:?}")) {
            let before = world.tap.arrived();
            let (accepted, output) = order.place(&mut caller).await;
            let has_arrived = accepted && world.tap.arrives(before).await;
            if !has_arrived {
                wrong.push(format!(
                    "{provider:?} {:?} {}: accepted {accepted}: {output}",
                    order.api, order.what
                ));
            }
        }
        world.stop().await;
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Random values in the formats of vendors: none may be taken for a host by chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_tokens_are_not_taken_for_hosts() {
    const CLOUDFLARE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";
    let world = HostsWorld::start(CLASSIC, Hole::None).await;
    let mut caller = HostsCaller::new(world.gateway);
    let mut dice = HostsDice::new(11);
    for n in 0..150 {
        let dotted = |dice: &mut HostsDice, length: usize| {
            (0..length).map(|_| char::from(*dice.one_of(CLOUDFLARE))).collect::<String>()
        };
        let blob = format!("{}.{}", token(&mut dice, 12), token(&mut dice, 600));
        for (kind, fields) in [
            ("turnstile", json!({ "sitekey": format!("0x4{n}"), "pagedata": dotted(&mut dice, 300) })),
            ("funcaptcha", json!({ "publickey": format!("69A{n}"), "data[blob]": blob })),
            ("hcaptcha", json!({ "sitekey": format!("a5f{n}"), "data": token(&mut dice, 1500) })),
        ] {
            let order = Ordinary { what: "random", api: In::V1, kind, fields, to: CLASSIC };
            let (accepted, output) = order.place(&mut caller).await;
            assert!(accepted, "{output} {}", order.fields);
        }
    }
    world.stop().await;
}

/// An order that cannot be sent is refused with a reason when it is placed, not after it was accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_sent_is_refused_when_it_is_placed() {
    let world = HostsWorld::start(TWO_CAPTCHA, Hole::None).await;
    let mut caller = HostsCaller::new(world.gateway);
    for (fields, reason) in [
        (json!({ "sitekey": "0x4", "type": "x" }), "`type`"),
        (json!({ "sitekey": "0x4", "proxy": "gw.example.net" }), "`proxy`"),
        (json!({ "sitekey": "0x4", "proxy": "1.2.3.4:80", "proxytype": "ftp" }), "`proxytype`"),
        (json!({ "sitekey": "0x4", "cookies": "[{\"name\":\"a\",\"value\":\"b\"}]" }), "`cookies`"),
        (
            json!({ "sitekey": "0x4", "websiteURL2": { "base64": "aHR0cHM6Ly9ldmlsLm5ldC//" } }),
            "`websiteURL2`",
        ),
    ] {
        let order = Ordinary { what: "", api: In::V1, kind: "turnstile", fields, to: TWO_CAPTCHA };
        let (accepted, output) = order.place(&mut caller).await;
        assert!(!accepted && output.contains(reason), "{output}");
    }
    assert_eq!(world.tap.arrived(), 0);
    world.stop().await;
}
