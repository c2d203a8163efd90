//! Names that are nearly known ones, however short, and kinds whose words are known.

use super::*;

#[test]
fn a_short_name_that_is_nearly_a_known_one_is_refused_with_it() {
    for (kind, typed, right) in [
        ("turnstile", "prox", "proxy"),
        ("turnstile", "porxy", "proxy"),
        ("turnstile", "dta", "data"),
        ("turnstile", "daat", "data"),
        ("turnstile", "actin", "action"),
        ("hcaptcha", "dat", "data"),
        ("amazon_waf", "ivv", "iv"),
        ("amazon_waf", "vi", "iv"),
        ("amazon_waf", "contxt", "context"),
        ("geetest", "gtt", "gt"),
        ("geetest", "tg", "gt"),
        ("funcaptcha", "srul", "surl"),
        ("funcaptcha", "sur", "surl"),
        ("image", "lan", "lang"),
        ("image", "cal", "calc"),
        ("image", "bdy", "body"),
        ("recaptcha_v2", "kye", "key"),
        ("recaptcha_v2", "jsn", "json"),
        ("yandex", "prox", "proxy"),
        ("yandex", "proxi", "proxy"),
        ("yandex", "useragnt", "userAgent"),
        ("yandex", "pagurl", "pageurl"),
        ("yandex", "websitURL", "websiteURL"),
        ("BrandNewTask", "proxyAdress", "proxyAddress"),
    ] {
        match meant(kind, &[("pageurl", PAGE), (typed, "x")]) {
            Err(BadRequest::MisspeltParam { meant, .. }) => assert_eq!(meant, right, "{kind} {typed}"),
            other => panic!("{kind} {typed}: {other:?}"),
        }
    }
    for (kind, name) in [
        ("turnstile", "s"),
        ("turnstile", "foo"),
        ("turnstile", "hint"),
        ("turnstile", "page"),
        ("geetest", "url2"),
        ("yandex", "key1"),
        ("yandex", "page_url"),
        ("yandex", "types"),
        ("brandnew", "dta"),
    ] {
        assert!(meant(kind, &[("pageurl", PAGE), (name, "x")]).is_ok(), "{kind} {name}");
    }
}

#[test]
fn a_kind_by_its_words_is_refused_with_the_name_that_it_has() {
    for (typed, right) in [
        ("aws_waf", "amazon_waf"),
        ("awswaf", "amazon_waf"),
        ("AwsWaf", "amazon_waf"),
        ("waf_aws", "amazon_waf"),
        ("waf_amazon", "amazon_waf"),
        ("aws_waf_captcha", "amazon_waf"),
        ("AwsWafTask", "amazon_waf"),
        ("lemin_captcha", "lemin"),
        ("lemincaptcha", "lemin"),
        ("LeminCaptcha", "lemin"),
        ("captcha_lemin", "lemin"),
        ("anti_lemin_task", "lemin"),
        ("turnstile_captcha", "turnstile"),
        ("captcha_turnstile", "turnstile"),
        ("v2_recaptcha", "recaptcha_v2"),
        ("challenge_cloudflare", "cloudflare_challenge"),
        ("box_bounding", "bounding_box"),
        ("fox_captcha", "captchafox"),
        ("datadome_captcha", "datadome"),
        ("captcha_friendly", "friendly_captcha"),
        ("yandex_captcha", "YandexCaptchaTask"),
        ("anti_yidun", "yidun"),
    ] {
        match meant(typed, &[]) {
            Err(BadRequest::MisspeltKind { meant, .. }) => assert_eq!(meant, right, "{typed}"),
            other => panic!("{typed}: {other:?}"),
        }
    }
    // New ones appear every few months, and have words of their own.
    for new in ["brandnew", "BrandNewTask", "task", "made_up_last_week", "turnstile_managed", "castle", "waf"]
    {
        assert!(meant(new, &[]).is_ok(), "{new}: {:?}", meant(new, &[]));
    }
}
