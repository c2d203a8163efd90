//! Tests that an order means the same under all its names, and that misspelt names are refused.

use super::*;

mod documented;
mod slips;

fn kinds(name: &str) -> Option<Kind> {
    Some(crate::kinds::kind(name).unwrap_or_else(|| crate::kinds::open_kind(name)))
}

fn params(pairs: &[(&str, &str)]) -> MeantParams {
    pairs.iter().map(|(name, input)| ((*name).to_owned(), Param::from(*input))).collect()
}

fn meant(kind: &str, pairs: &[(&str, &str)]) -> Result<(String, MeantParams), BadRequest> {
    let input = params(pairs);
    let meant =
        meaning(kind, &input, &kinds)?.unwrap_or(OrderParams { kind: kind.to_owned(), params: input });
    let again = meaning(&meant.kind, &meant.params, &kinds)?;
    assert_eq!(again, None, "what is meant means itself");
    Ok((meant.kind, meant.params))
}

const PAGE: &str = "https://shop.example.org/";

#[test]
fn methods_and_task_types_are_the_kinds_that_they_are_with_the_names_that_they_have() {
    let turnstile = Ok(("turnstile".to_owned(), params(&[("pageurl", PAGE), ("sitekey", "k")])));
    for (kind, page, key) in [
        ("turnstile", "pageurl", "sitekey"),
        ("turnstile", "websiteURL", "websiteKey"),
        ("turnstile", "WEBSITEurl", "SiteKey"),
        ("turnstile", "pageURL", "sitekey"),
        ("TurnstileTaskProxyless", "websiteURL", "websiteKey"),
        ("AntiTurnstileTaskProxyLess", "pageurl", "websitekey"),
    ] {
        assert_eq!(meant(kind, &[(page, PAGE), (key, "k")]), turnstile, "{kind} {page}");
    }
    let v2 = Ok(("recaptcha_v2".to_owned(), params(&[("pageurl", PAGE), ("googlekey", "k")])));
    for kind in ["recaptcha_v2", "userrecaptcha", "NoCaptchaTaskProxyless", "recaptchav2task"] {
        assert_eq!(meant(kind, &[("websiteURL", PAGE), ("googlekey", "k")]), v2, "{kind}");
    }
    let open = meant("BrandNewTask", &[("websiteURL", PAGE), ("x", "1")]);
    assert_eq!(open, Ok(("BrandNewTask".into(), params(&[("pageurl", PAGE), ("x", "1")]))));
}

#[test]
fn two_names_of_one_parameter_must_say_the_same() {
    let input =
        |other: &str| meant("turnstile", &[("pageurl", PAGE), ("sitekey", "k"), ("websiteURL", other)]);
    assert!(input(PAGE).is_ok());
    assert!(matches!(input("https://evil.net/"), Err(BadRequest::ContradictoryNames { .. })));
    let key = meant("turnstile", &[("pageurl", PAGE), ("sitekey", "k"), ("websiteKey", "other")]);
    assert!(matches!(key, Err(BadRequest::ContradictoryNames { .. })));
}

#[test]
fn a_parameter_that_makes_it_another_kind_makes_it_that_kind() {
    let page = ("pageurl", PAGE);
    for (kind, tell, other) in [
        ("recaptcha_v2", ("version", "v3"), "recaptcha_v3"),
        ("recaptcha_v2", ("version", " V3"), "recaptcha_v3"),
        ("image", ("coordinatescaptcha", "1"), "coordinates"),
        ("image", ("coordinatescaptcha", "yes"), "coordinates"),
        ("image", ("recaptcha", "1"), "grid"),
        ("image", ("canvas", "1"), "canvas"),
        ("image", ("grid_size", "3x3"), "grid"),
        ("geetest", ("version", "4"), "geetest_v4"),
        ("geetest", ("version", "4.00"), "geetest_v4"),
        ("geetest", ("version", "04"), "geetest_v4"),
        ("geetest", ("version", "+4"), "geetest_v4"),
        ("geetest", ("version", "4abc"), "geetest_v4"),
        ("geetest", ("version", "[4]"), "geetest_v4"),
        ("recaptcha_v2", ("version", "03"), "recaptcha_v3"),
        ("recaptcha_v2", ("version", "+3"), "recaptcha_v3"),
        ("recaptcha_v2", ("version", "3.00"), "recaptcha_v3"),
        ("recaptcha_v2", ("version", "v3\u{200b}"), "recaptcha_v3"),
        ("recaptcha_v2", ("version", "v3;"), "recaptcha_v3"),
        ("recaptcha_v2", ("version", "[\"v3\"]"), "recaptcha_v3"),
        ("recaptcha_v2", ("version", "v2"), "recaptcha_v2"),
        ("geetest", ("version", "3"), "geetest"),
        ("turnstile", ("cloudflareTaskType", "wait_room"), "cloudflare_challenge"),
        ("turnstile", ("cloudflareTaskType", " CF_Clearance"), "cloudflare_challenge"),
        ("turnstile", ("cloudflareTaskType", "token"), "turnstile"),
        ("turnstile", ("cloudflareTaskType", "cf_clearance"), "cloudflare_challenge"),
    ] {
        assert_eq!(meant(kind, &[page, tell]).map(|(kind, _)| kind), Ok(other.to_owned()), "{kind} {tell:?}");
    }
    for (kind, version) in [("recaptcha_v2", "v4"), ("recaptcha_v2", "beta"), ("geetest", "5")] {
        let refused = meant(kind, &[page, ("version", version)]);
        assert!(matches!(refused, Err(BadRequest::NoSuchVersion { .. })), "{kind} {version}: {refused:?}");
    }
    for (kind, tell) in [
        ("recaptcha_v3", ("version", "v2")),
        ("coordinates", ("recaptcha", "1")),
        ("cloudflare_challenge", ("cloudflareTaskType", "token")),
        ("recaptcha_v2", ("version[]", "v3")),
        ("image", ("Coordinates_Captcha", "1")),
    ] {
        assert!(matches!(meant(kind, &[page, tell]), Err(BadRequest::OtherKind { .. })), "{kind} {tell:?}");
    }
    for (kind, tell) in
        [("image", ("coordinatescaptcha", "0")), ("canvas", ("recaptcha", "1")), ("grid", ("recaptcha", "1"))]
    {
        assert_eq!(meant(kind, &[tell]).map(|(kind, _)| kind), Ok(kind.to_owned()), "{kind} {tell:?}");
    }
}

#[test]
fn no_parameter_is_another_one_to_some_reader() {
    let page = ("pageurl", PAGE);
    for kind in ["turnstile", "recaptcha_v2", "yandex", "CustomTask", "brandnew"] {
        for name in [
            "key[]",
            "key[0]",
            "key[abcdef]",
            "Key",
            " key",
            "key.",
            "method[]",
            "method[abcdef]",
            "Method",
            "method ",
            "json[abcdef]",
            "json ",
            "pingback[]",
            " pingback",
            "Pingback",
            "callbackurl",
            "clientkey",
            "clientKey ",
            "soft_id[]",
            "soft.id",
            "pageurl[0]",
            "pageurl[abcdef]",
            " pageurl",
            "pageurl\u{0}",
            "websiteURL ",
            "websiteURL[x]",
            "proxy[]",
            "userAgent[]",
            " type",
            "type ",
            "type[x]",
            "Type",
        ] {
            let refused = meant(kind, &[page, (name, "x")]);
            assert!(matches!(refused, Err(BadRequest::MisspeltParam { .. })), "{kind} {name:?}: {refused:?}");
        }
    }
    for (kind, name) in [
        ("recaptcha_v2", "version[0]"),
        ("recaptcha_v2", "version."),
        ("recaptcha_v2", "version[abcdef]"),
        ("image", "coordinatescaptcha[x]"),
        ("image", "recaptcha[x]"),
        ("recaptcha_v2", "googlekey[abcdef]"),
        ("geetest_v4", "gt[]"),
    ] {
        assert!(meant(kind, &[page, (name, "v3")]).is_err(), "{kind} {name}");
    }
    let known = meant("funcaptcha", &[page, ("publickey", "k"), ("data[blob]", "a.b/c")]);
    assert_eq!(known.map(|(_, params)| params.len()), Ok(3));
}

#[test]
fn the_class_of_a_custom_task_is_the_kind_that_it_names() {
    let page = ("websiteURL", PAGE);
    let added = |name: &str| {
        let kind = kinds(name)?;
        let hosts = quittance_lifecycle::HostRules { is_described: true, ..kind.hosts };
        Some(Kind { hosts, ..kind })
    };
    for (class, kind) in [
        ("DataDome", "datadome"),
        ("datadome", "datadome"),
        (" DataDome", "datadome"),
        ("TenDI", "tencent"),
        ("tendi ", "tencent"),
        ("Imperva", "imperva"),
        ("Binance", "CustomTask"),
    ] {
        let input = [page, ("class", class)];
        assert_eq!(meant("CustomTask", &input).map(|(kind, _)| kind), Ok(kind.to_owned()), "{class}");
        let outcome = meaning("CustomTask", &params(&input), &added).map(|meant| meant.unwrap().kind);
        assert_eq!(outcome, Ok(kind.to_owned()), "{class}");
    }
    let refused = meant("CustomTask", &[page, ("class", "turnstile")]);
    assert!(matches!(refused, Err(BadRequest::OtherKind { .. })), "{refused:?}");
}

#[test]
fn an_object_that_came_as_text_says_what_it_says_in_a_task() {
    let page = ("pageurl", PAGE);
    let v4 = meant("geetest", &[page, ("initParameters", "{\"captcha_id\":\"xx\"}")]);
    let expected = params(&[page, ("captcha_id", "xx")]);
    assert_eq!(v4, Ok(("geetest_v4".to_owned(), expected)));
    let with_theme = [page, ("googlekey", "k"), ("enterprisePayload", "{\"s\":\"x\",\"theme\":\"dark\"}")];
    let expected =
        params(&[page, ("googlekey", "k"), ("data-s", "x"), ("enterprisePayload", "{\"theme\":\"dark\"}")]);
    assert_eq!(meant("recaptcha_v2", &with_theme), Ok(("recaptcha_v2".to_owned(), expected)));
    let theme = [page, ("googlekey", "k"), ("enterprisePayload", "{\"theme\":\"dark\"}")];
    assert_eq!(meant("recaptcha_v2", &theme), Ok(("recaptcha_v2".to_owned(), params(&theme))));
}

#[test]
fn a_proxy_without_a_type_is_one_of_http_and_an_address_of_ipv6_has_brackets() {
    let (_, input) =
        meant("AntiCloudflareTask", &[("websiteURL", PAGE), ("proxy", "1.2.3.4:80:u:p")]).unwrap();
    assert_eq!(input["proxy"], Param::from("u:p@1.2.3.4:80"));
    assert_eq!(input["proxytype"], Param::from("HTTP"));
    let pieces =
        [("pageurl", PAGE), ("sitekey", "k"), ("proxyAddress", "2001:db8::1"), ("proxyPort", "8000")];
    let (_, input) = meant("turnstile", &pieces).unwrap();
    assert_eq!(input["proxy"], Param::from("[2001:db8::1]:8000"));
}

#[test]
fn what_is_nearly_a_known_name_is_refused_with_the_name_that_was_meant() {
    for (typed, right) in [
        ("turnstil", "turnstile"),
        ("Turnstile", "turnstile"),
        ("recaptcha-v2", "recaptcha_v2"),
        ("hcapcha", "hcaptcha"),
        ("TurnstileTaskProxles", "TurnstileTaskProxyless"),
        ("userrecapcha", "userrecaptcha"),
        ("imge", "image"),
        ("lemn", "lemin"),
        ("tpsd", "tspd"),
        ("cappy", "capy"),
        ("gird", "grid"),
        ("NoCaptchaTaskProxyles", "nocaptchatask"),
        ("RecaptchaV2Proxyless", "RecaptchaV2TaskProxyless"),
        ("ImageToText", "ImageToTextTask"),
        ("AntiTurnstile", "antiturnstiletask"),
        ("DataDomeTask", "datadome"),
        ("yandx", "yandex"),
        ("vkimag", "vkimage"),
        ("VisionEngin", "VisionEngine"),
    ] {
        match meant(typed, &[]) {
            Err(BadRequest::MisspeltKind { meant, .. }) => assert_eq!(meant, right, "{typed}"),
            other => panic!("{typed}: {other:?}"),
        }
    }
    for known in crate::kinds::UNDESCRIBED {
        assert!(meant(known, &[]).is_ok(), "{known}");
    }
    for (typed, right) in [
        ("min_scor", "min_score"),
        (" pageurl", "pageurl"),
        ("pageurl[]", "pageurl"),
        ("page.url", "pageurl"),
        ("gooleKey", "googlekey"),
    ] {
        match meant("recaptcha_v3", &[(typed, "x")]) {
            Err(BadRequest::MisspeltParam { meant, .. }) => {
                assert_eq!(squeezed(&meant), squeezed(right), "{typed}");
            }
            other => panic!("{typed}: {other:?}"),
        }
    }
    assert!(meant("recaptcha_v3", &[("s", "1"), ("foo", "2")]).is_ok());
    for (kind, typed) in [
        ("recaptcha_v2", "verison"),
        ("geetest", "versoin"),
        ("image", "coordinatecaptcha"),
        ("image", "coordinatescapcha"),
        ("image", "recapcha"),
        ("image", "canvs"),
        ("image", "img_typ"),
        ("image", "grid_siz"),
    ] {
        let refused = meant(kind, &[(typed, "1")]);
        assert!(matches!(refused, Err(BadRequest::MisspeltParam { .. })), "{kind} {typed}: {refused:?}");
    }
}

use super::near::squeezed;
