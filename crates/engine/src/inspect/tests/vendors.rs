//! Addresses of vendors: in which fields they may stand, and that no page passes as one of them.

use super::*;

/// A kind, what it needs beside the page, and the field with an address of its vendor, as the services' documentation has it.
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
        // What is no address is not asked for: it is the vendor's own word for something.
        ("/captcha/?next=evil.net", true),
        ("/captcha/?url=https://evil.net/", false),
        ("/captcha/?url=https%3A%2F%2Fevil.net%2F", false),
        ("/captcha/?url=https%253A%252F%252Fevil.net%252F", false),
        ("/captcha/?url=//evil.net/", false),
        ("/captcha/https://evil.net/login", false),
        ("/captcha/#https://evil.net/", false),
        ("/captcha/?url=http:evil.net", false),
        ("/captcha/?a=b@c&url=HTTPS:\\/\\/evil.net", false),
    ] {
        let found = inspected(Step::Send, &kind, &[PAGE, ("captcha_url", &format!("{vendor}{inside}"))]);
        assert_eq!(found.is_ok(), taken, "{inside}: {found:?}");
    }
    for (page, taken) in [
        ("https://shop.example.org/?next=evil.net", true),
        ("https://shop.example.org/evil.net/x", true),
        ("https://shop.example.org/?next=https://evil.net/", false),
        ("https://shop.example.org/?next=https%3A%2F%2Fevil.net%2F", false),
    ] {
        let found = inspected(Step::Send, &kind, &[("pageurl", page)]);
        assert_eq!(found.is_ok(), taken, "{page}: {found:?}");
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
        // What the vendor's host is does not make it a page.
        [("pageurl", "https://api.hunt.example/"), ("apiGetLib", "https://api.hunt.example/loader.js")],
    ] {
        assert!(matches!(inspected(&pairs), Err(NotAllowed::Host { .. })), "{pairs:?}");
    }
    // A vendor's host alone is no page that could be checked.
    let without_images = Targets { images: false, ..operator.clone() };
    let fields =
        [TaskField { name: "apiGetLib", param: Some("apiGetLib"), value: b"https://api.hunt.example/" }];
    let found = inspect(&Inspection {
        step: Step::Send,
        kind: &kind,
        fields: &fields,
        operator: &without_images,
        tenant: None,
    });
    assert!(matches!(found, Err(NotAllowed::Images { .. })), "{found:?}");
}
