//! Addresses of vendors: which fields may contain them, and that no page passes as one.

use super::*;

/// A kind, what it needs beside the page, and the field with an address of its vendor, as the services document it.
const SCRIPTS: &[(&str, &str, &str)] = &[
    (
        "turnstile",
        "apiJsUrl",
        "https://challenges.cloudflare.com/turnstile/v0/g/0f752d3d6ed2/api.js?render=explicit",
    ),
    (
        "friendly_captcha",
        "module_script",
        "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/widget.module.min.js",
    ),
    (
        "friendly_captcha",
        "nomodule_script",
        "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/widget.min.js",
    ),
    (
        "friendly_captcha",
        "module_script",
        "https://cdn.jsdelivr.net/npm/@friendlycaptcha/sdk@0.1.36/site.min.js",
    ),
    ("friendly_captcha", "module_script", "https://unpkg.com/friendly-challenge@0.9.12/widget.module.min.js"),
    ("friendly_captcha", "module_script", "https://shop.example.org/js/widget.module.min.js"),
    ("captchafox", "api_server", "https://s.uicdn.com/mampkg/@mamdev/core.frontend.libs.captchafox/"),
    ("captchafox", "api_server", "https://s.uicdn.com/mampkg/@mamdev/core.frontend.libs.captchafox/api.js"),
    ("amazon_waf", "jsapi_script", "https://41b.edge.captcha-sdk.awswaf.com/41b/jsapi.js"),
    (
        "amazon_waf",
        "problem_url",
        "https://41b.us-east-1.captcha.awswaf.com/41b/problem?kind=visual&locale=en-us",
    ),
    ("amazon_waf", "cookieSolution", "true"),
    ("geetest_v4", "geetestGetLib", "{\"customlibs\":{\"url\":\"https://static.geetest.com/v4/gt4.js\"}}"),
    ("imperva", "incapsulaScriptUrl", "_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"),
    ("imperva", "incapsulaScriptUrl", "https://shop.example.org/_Incapsula_Resource?SWJIYLWA=719d34"),
    ("imperva", "incapsulaCookies", "incap_ses_1166_2930313=br7iX33ZNC; visid_incap_2930313=1R3D.a/b"),
    ("imperva", "reese84UrlEndpoint", "Built-with-the-For-hayre-for-His-in-any-?d=shop.example.org"),
    (
        "imperva",
        "reeseScriptUrl",
        "https://shop.example.org/s-weakes-Sir-Day-could-to-thy/1860025529?s=xlD1csYd",
    ),
    ("tspd", "tspd_cookie", "TS386a400d029=0826706b54ab2800e0; TS386a400d078=0826706b54ab28.0/a"),
    ("imperva", "script", "(function(){a.id=b.to;d.createElementNS('http://www.w3.org/2000/svg','svg')})()"),
    ("datadome", "datadomeVersion", "new"),
    (
        "datadome",
        "datadome_cookie",
        "datadome=VYUWrgJ9ap4zmXq8~x.Ab_1; Max-Age=31536000; Domain=.example.com.au; Path=/; Secure; SameSite=Lax",
    ),
    (
        "recaptcha_v2",
        "anchor",
        "aHR0cHM6Ly93d3cuZ29vZ2xlLmNvbS9yZWNhcHRjaGEvYXBpMi9hbmNob3I/YXI9MSZrPTZMYy14",
    ),
];

#[test]
fn the_scripts_of_vendors_are_taken_beside_a_listed_page_and_only_there() {
    for (kind, field, value) in SCRIPTS {
        for step in [Step::Place, Step::Replay, Step::Send] {
            let kind = described(kind);
            assert_eq!(inspected(step, &kind, &[PAGE, (field, value)]), Ok(()), "{} {field}", kind.name);
            let elsewhere = ("pageurl", "https://evil.net/login");
            let refused = inspected(step, &kind, &[elsewhere, (field, value)]);
            assert!(matches!(refused, Err(NotAllowed::Host { .. })), "{} {field}: {refused:?}", kind.name);
        }
    }
}

#[test]
fn prose_and_scripts_give_no_address_of_an_unlisted_host() {
    for (kind, field, value) in [
        ("imperva", "script", "location='https://evil.net/'"),
        ("imperva", "incapsulaCookies", "a=https://evil.net/"),
        ("tspd", "tspd_cookie", "a=b; u=//evil.net/x"),
        ("datadome", "datadome_cookie", "datadome=a; u=https://evil.net/x"),
        ("datadome", "datadome_cookie", "{\"domain\":\"evil.net\"}"),
        ("turnstile", "userAgent", "http://purl.org/x"),
        ("imperva", "reese84UrlEndpoint", "Built-with-?d=evil.net"),
        ("imperva", "incapsulaScriptUrl", "//evil.net/_Incapsula_Resource"),
    ] {
        let refused = inspected(Step::Send, &described(kind), &[PAGE, (field, value)]);
        assert!(matches!(refused, Err(NotAllowed::Host { .. })), "{kind} {field}: {refused:?}");
    }
}

#[test]
fn a_script_at_a_shared_host_is_the_vendors_own_package() {
    let captchafox = described("captchafox");
    for address in [
        "https://s.uicdn.com/mampkg/@mamdev/other/api.js",
        "https://s.uicdn.com/mampkg/@mamdev/core.frontend.libs.captchafox/../../evil/api.js",
        "https://s.uicdn.com/mampkg/@mamdev/core.frontend.libs.captchafox/api.js?u=https://evil.net/",
        "s.uicdn.com",
    ] {
        let refused = inspected(Step::Send, &captchafox, &[PAGE, ("api_server", address)]);
        assert!(refused.is_err(), "{address}");
    }
    let kind = described("friendly_captcha");
    for address in [
        "https://cdn.jsdelivr.net/gh/evil/login@1/index.html",
        "https://cdn.jsdelivr.net/npm/friendly-challenge-evil@0.9.19/x.js",
        "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/../../../gh/evil/x.js",
        "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/%2e%2e/%2e%2e/gh/evil/x.js",
        "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/x.js,npm/evil@1/y.js",
        "https://cdn.jsdelivr.net/",
        "https://cdn.jsdelivr.net@evil.net/npm/friendly-challenge@0.9.19/x.js",
        "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/x.js?u=https://evil.net/",
        "cdn.jsdelivr.net",
    ] {
        let refused = inspected(Step::Send, &kind, &[PAGE, ("module_script", address)]);
        assert!(refused.is_err(), "{address}");
    }
}

#[test]
fn a_full_address_inside_the_address_of_a_vendor_must_be_allowed_itself() {
    let kind = described("datadome");
    let vendor = "https://geo.captcha-delivery.com";
    for (inside, taken) in [
        ("/captcha/?initialCid=AHr&referer=https%3A%2F%2Fshop.example.org%2Flogin", true),
        ("/captcha/?referer=https%3A%2F%2Fct.captcha-delivery.com%2Fx", true),
        ("/captcha/?url=https://evil.net/", false),
        ("/captcha/?url=https%3A%2F%2Fevil.net%2F", false),
        ("/captcha/?url=https%253A%252F%252Fevil.net%252F", false),
        ("/captcha/?url=//evil.net/", false),
        ("/captcha/https://evil.net/login", false),
        ("/captcha/#https://evil.net/", false),
        ("/captcha/?url=http:evil.net", false),
        ("/captcha/?a=b@c&url=HTTPS:\\/\\/evil.net", false),
    ] {
        let result = inspected(Step::Send, &kind, &[PAGE, ("captcha_url", &format!("{vendor}{inside}"))]);
        assert_eq!(result.is_ok(), taken, "{inside}: {result:?}");
    }
    for (page, taken) in [
        ("https://shop.example.org/?next=evil.net", true),
        ("https://shop.example.org/evil.net/x", true),
        ("https://shop.example.org/?next=https://evil.net/", false),
        ("https://shop.example.org/?next=https%3A%2F%2Fevil.net%2F", false),
    ] {
        let result = inspected(Step::Send, &kind, &[("pageurl", page)]);
        assert_eq!(result.is_ok(), taken, "{page}: {result:?}");
    }
}

/// Addresses of vendors as their scripts write them, with ids and tokens that have dots.
const REAL_ADDRESSES: &[(&str, &str, &str)] = &[
    (
        "datadome",
        "captcha_url",
        "https://geo.captcha-delivery.com/captcha/?initialCid=AHrlqAAAAAMA1QGvUmJwyYoAwpyjNg%3D%3D&hash=789361B674144528D0B7EE76B35826\
         &cid=6QAEcL8coBYTi9tYLmjC~x.Ab_1&t=fe&referer=https%3A%2F%2Fshop.example.org%2Fcart.do%3Fa%3Db.co&s=17434&e=2f1c&dm=cd",
    ),
    (
        "datadome",
        "captcha_url",
        "https://geo.captcha-delivery.com/interstitial/?referer=shop.example.org/cart.do&seed=1.2.3",
    ),
    (
        "datadome",
        "captcha_url",
        "https://geo.captcha-delivery.com/captcha/?referer=aHR0cHM6Ly9zaG9wLmV4YW1wbGUub3JnLw==",
    ),
    (
        "datadome",
        "captcha_url",
        "https://geo.captcha-delivery.com/captcha/?ir=ct.captcha-delivery.com&r=https://shop.example.org/?a=b.do",
    ),
    (
        "amazon_waf",
        "problem_url",
        "https://41b.610c.eu-west-1.captcha.awswaf.com/ait/ait/ait/problem?kind=visual&domain=shop.example.org&locale=en-gb\
         &problem=gridcaptcha-3-3-0.26&num_solutions_required=1&id=6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    ),
    (
        "amazon_waf",
        "challenge_script",
        "https://41b.us-east-1.token.awswaf.com/41b/challenge.compact.js?v=1.0.4",
    ),
    (
        "funcaptcha",
        "surl",
        "https://client-api.arkoselabs.com/fc/gc/?token=32617d3e4a8b5d5a5.8407842105|r=us-east-1|meta=3|lang=en|pk=11111111-1111\
         |at=40|cdn_url=https%3A%2F%2Fclient-api.arkoselabs.com%2Fcdn%2Ffc|surl=https%3A%2F%2Fclient-api.arkoselabs.com",
    ),
    (
        "geetest_v4",
        "api_server",
        "gcaptcha4.geetest.com/load?captcha_id=e392e1d7&challenge=4a1b.2c3e&lib=gt4.1.2.js&ver=1.9.4-a8c1c8",
    ),
    (
        "geetest",
        "api_server",
        "https://api.geetest.com/get.php?gt=81388ea1&challenge=4a1b2c39&w=eyJhbGciOi.eyJzdWIi.SflKxwRJ5c",
    ),
    (
        "turnstile",
        "apiJsUrl",
        "https://challenges.cloudflare.com/turnstile/v0/api.js?onload=window.onTurnstile&render=explicit#v1.2",
    ),
];

#[test]
fn real_addresses_of_vendors_are_taken_with_ids_and_tokens_that_have_dots() {
    for (kind, field, value) in REAL_ADDRESSES {
        for step in [Step::Place, Step::Replay, Step::Send] {
            assert_eq!(inspected(step, &described(kind), &[PAGE, (field, value)]), Ok(()), "{kind} {value}");
        }
    }
}

#[test]
fn a_host_that_a_vendors_address_names_without_a_scheme_must_be_allowed() {
    let aws = "https://x.eu-west-1.captcha.awswaf.com/ait/problem";
    let datadome = "https://geo.captcha-delivery.com/captcha/";
    for (kind, field, start, inside) in [
        ("amazon_waf", "problem_url", aws, "?kind=visual&domain=evilhost.net&locale=en"),
        ("amazon_waf", "problem_url", aws, "?domain=EvilHost.NET."),
        ("amazon_waf", "problem_url", aws, "?domain=evilhost%2Enet"),
        ("amazon_waf", "problem_url", aws, "?domain=93.184.216.34"),
        ("amazon_waf", "problem_url", aws, "?domain%3Devilhost.net"),
        ("amazon_waf", "problem_url", aws, "?a=b#domain=evilhost.net"),
        ("amazon_waf", "problem_url", aws, "#evilhost.net"),
        ("amazon_waf", "problem_url", aws, "?evilhost.net"),
        ("amazon_waf", "problem_url", aws, "?evilhost.net=1"),
        ("datadome", "captcha_url", datadome, "?cid=1&referer=evilhost.net"),
        ("datadome", "captcha_url", datadome, "?cid=1&referer=evilhost.net:443/login"),
        ("datadome", "captcha_url", datadome, "?cid=1&referer=a@evilhost.net/login"),
        ("datadome", "captcha_url", datadome, "?cid=1&referer=shop.example.org,evilhost.net"),
        ("datadome", "captcha_url", datadome, "?cid=1&referer=+evilhost.net"),
        ("datadome", "captcha_url", datadome, "?referer=aHR0cHM6Ly9ldmlsaG9zdC5uZXQv"),
        ("datadome", "captcha_url", datadome, "?referer=aHR0cHM6Ly9ldmlsaG9zdC5uZXQvbG9naW4%3D"),
        ("datadome", "captcha_url", datadome, "?referer=ZXZpbGhvc3QubmV0"),
        ("datadome", "captcha_url", datadome, "?o=%7B%22domain%22%3A%22evilhost.net%22%7D"),
        (
            "funcaptcha",
            "surl",
            "https://client-api.arkoselabs.com/fc/gc/",
            "?token=1.2|site=evilhost.net|r=1",
        ),
        ("geetest_v4", "api_server", "gcaptcha4.geetest.com/load", "?captcha_id=1&host=evilhost.net"),
    ] {
        for step in [Step::Place, Step::Replay, Step::Send] {
            let result = inspected(step, &described(kind), &[PAGE, (field, &format!("{start}{inside}"))]);
            assert!(matches!(result, Err(NotAllowed::Vendor { .. })), "{kind} {inside}: {result:?}");
        }
    }
}

#[test]
fn of_a_kind_without_a_description_the_operator_says_whose_the_vendors_hosts_are() {
    let kind = described("HuntTask");
    let vendors =
        BTreeMap::from([("HuntTask".to_owned(), vec![HostPattern::parse("api.hunt.example").unwrap()])]);
    let allow = vec![HostPattern::parse("*.example.org").unwrap()];
    let operator = Targets { allow, vendors, ..Targets::default() };
    let inspected = |pairs: &[(&str, &str)]| {
        let fields: Vec<TaskField<'_>> = pairs
            .iter()
            .map(|(name, value)| TaskField { name, param: Some(name), value: value.as_bytes() })
            .collect();
        inspect(&Inspection {
            step: Step::Send,
            kind: &kind,
            fields: &fields,
            operator: &operator,
            tenant: None,
        })
    };
    assert_eq!(inspected(&[PAGE, ("apiGetLib", "https://api.hunt.example/loader.js")]), Ok(()));
    assert_eq!(inspected(&[PAGE, ("metadata", "{\"apiGetLib\":\"https://api.hunt.example/x.js\"}")]), Ok(()));
    for pairs in [
        [PAGE, ("apiGetLib", "https://evil.net/loader.js")],
        [PAGE, ("apiGetLib", "https://api.hunt.example/loader.js?site=evil.net")],
        // What the vendor's host is does not make it a page.
        [("pageurl", "https://api.hunt.example/"), ("apiGetLib", "https://api.hunt.example/loader.js")],
    ] {
        assert!(matches!(inspected(&pairs), Err(NotAllowed::Host { .. })), "{pairs:?}");
    }
    // A vendor's host alone is no page that could be checked.
    let without_images = Targets { images: false, ..operator.clone() };
    let fields =
        [TaskField { name: "apiGetLib", param: Some("apiGetLib"), value: b"https://api.hunt.example/" }];
    let result = inspect(&Inspection {
        step: Step::Send,
        kind: &kind,
        fields: &fields,
        operator: &without_images,
        tenant: None,
    });
    assert!(matches!(result, Err(NotAllowed::Images { .. })), "{result:?}");
}
