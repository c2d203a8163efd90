//! An order means the same whatever it calls things, and what is nearly a known name is refused.

use super::*;

fn kinds(name: &str) -> Option<Kind> {
    Some(quittance_catalog::kind(name).unwrap_or_else(|| quittance_catalog::open_kind(name)))
}

fn params(pairs: &[(&str, &str)]) -> Params {
    pairs.iter().map(|(name, said)| ((*name).to_owned(), Param::from(*said))).collect()
}

fn meant(kind: &str, pairs: &[(&str, &str)]) -> Result<(String, Params), BadRequest> {
    let said = params(pairs);
    let meant = meaning(kind, &said, &kinds)?.unwrap_or(Wanted { kind: kind.to_owned(), params: said });
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
    let said =
        |other: &str| meant("turnstile", &[("pageurl", PAGE), ("sitekey", "k"), ("websiteURL", other)]);
    assert!(said(PAGE).is_ok());
    assert!(matches!(said("https://evil.net/"), Err(BadRequest::SaidTwice { .. })));
    let key = meant("turnstile", &[("pageurl", PAGE), ("sitekey", "k"), ("websiteKey", "other")]);
    assert!(matches!(key, Err(BadRequest::SaidTwice { .. })));
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
    ] {
        match meant(typed, &[]) {
            Err(BadRequest::MisspeltKind { meant, .. }) => assert_eq!(meant, right, "{typed}"),
            other => panic!("{typed}: {other:?}"),
        }
    }
    for known in quittance_catalog::UNDESCRIBED {
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
}

use super::near::squeezed;
