//! Tests of misspelt names, short ones too, and of kinds whose words are known.

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
fn a_name_that_begins_like_a_field_of_the_order_is_refused_on_every_kind() {
    for kind in ["turnstile", "image", "yandex", "BrandNewTask"] {
        for (typed, right) in [
            ("idempotency", "idempotency_key"),
            ("Idempotency", "idempotency_key"),
            ("idempotency_id", "idempotency_key"),
            ("idempkey", "idempotency_key"),
            ("deadlineSeconds", "deadline_s"),
            ("deadline_ms", "deadline_s"),
            ("min_life", "min_life_s"),
            ("max_retry", "max_retries"),
            ("maxRetriesCount", "max_retries"),
            ("retry_base", "retry_base_s"),
            ("reuse_mode", "reuse"),
        ] {
            match meant(kind, &[("pageurl", PAGE), (typed, "x")]) {
                Err(BadRequest::MisspeltParam { meant, .. }) => assert_eq!(meant, right, "{kind} {typed}"),
                other => panic!("{kind} {typed}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_parameter_that_asks_for_another_kind_is_refused_on_every_kind() {
    for kind in crate::kinds::kinds().map(|kind| kind.name.into_owned()).chain(["yandex".to_owned()]) {
        for (name, value) in
            [("coordinatescaptcha", "1"), ("recaptcha", "1"), ("canvas", "1"), ("textcaptcha", "2+2")]
        {
            let own = match name {
                "coordinatescaptcha" => &["coordinates", "image", "text"][..],
                "recaptcha" => &["grid", "canvas", "image", "text"],
                "canvas" => &["canvas", "image", "text"],
                _ => &["text", "image"],
            };
            let outcome = meaning(&kind, &params(&[("pageurl", PAGE), (name, value)]), &kinds);
            let is_refused =
                matches!(&outcome, Err(BadRequest::OtherKind { name: field, .. }) if field == name);
            assert_eq!(is_refused, !own.contains(&kind.as_str()), "{kind} {name}: {outcome:?}");
        }
    }
    for (name, value) in [("coordinatescaptcha", "0"), ("recaptcha", "false"), ("textcaptcha", "")] {
        assert!(meant("turnstile", &[("pageurl", PAGE), (name, value)]).is_ok(), "{name}={value}");
    }
}

/// Trap: such an order was accepted, and failed later with a reason that contradicted the request.
#[test]
fn a_question_in_words_with_a_picture_is_refused_and_names_the_picture() {
    let picture = ("body", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk");
    for (kind, question) in [
        ("base64", ("textcaptcha", "what is 2+2")),
        ("post", ("textcaptcha", "what is 2+2")),
        ("text", ("textcaptcha", "what is 2+2")),
        ("TextCaptchaTask", ("comment", "what is 2+2")),
    ] {
        match meant(kind, &[picture, question]) {
            Err(why @ BadRequest::OtherKind { .. }) => {
                assert!(why.to_string().contains("`body` asks for another kind than text"), "{kind}: {why}");
            }
            other => panic!("{kind}: {other:?}"),
        }
        assert!(meant(kind, &[("body", ""), question]).is_ok(), "{kind}: an empty field says nothing");
    }
}

#[test]
fn a_kind_that_contains_a_known_one_as_a_word_is_refused_with_it() {
    for (typed, right) in [
        ("cloudflare_turnstile", "turnstile"),
        ("CloudflareTurnstileTask", "turnstile"),
        ("turnstile_invisible", "turnstile"),
        ("recaptcha_v2_checkbox", "recaptcha_v2"),
        ("geetest_v4_slide", "geetest_v4"),
    ] {
        match meant(typed, &[("pageurl", PAGE)]) {
            Err(BadRequest::MisspeltKind { meant, .. }) => assert_eq!(meant, right, "{typed}"),
            other => panic!("{typed}: {other:?}"),
        }
    }
    for name in ["brand_new", "image_sorting", "text_reading", "fun_game", "grid_of_lights"] {
        assert!(meant(name, &[("pageurl", PAGE)]).is_ok(), "{name}");
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
    for new in ["brandnew", "BrandNewTask", "task", "made_up_last_week", "castle", "waf"] {
        assert!(meant(new, &[]).is_ok(), "{new}: {:?}", meant(new, &[]));
    }
}

/// Regression: a kind of 300 kB took 12 s to be compared with all known names, and stopped a node for all tenants.
#[test]
fn a_name_that_is_too_long_is_refused_before_it_is_compared() {
    let long = format!("turnstil{}", "e".repeat(300_000));
    let page = ("pageurl", "https://shop.example.org/");
    let kind = meant(&long, &[("sitekey", "x"), page]);
    assert!(matches!(kind, Err(BadRequest::BadKindName { .. })), "a kind");
    let param = meant("turnstile", &[("sitekey", "x"), page, (&long, "x")]);
    assert!(matches!(param, Err(BadRequest::BadParamName { .. })), "a parameter");
    assert_eq!(crate::kinds::order_field_meant(&format!("indempotency_key{long}")), None);
}

/// Trap: the classes of pictures have the names of kinds, and were refused as misspelt classes of another type.
#[test]
fn each_type_has_its_own_classes_and_a_misspelt_one_is_refused_with_the_nearest() {
    for class in ["recaptcha", "hcaptcha", "funcaptcha", "recognition", "Recaptcha"] {
        assert!(meant("ComplexImageTask", &[("class", class)]).is_ok(), "{class}");
    }
    for (kind, typed, right) in [
        ("ComplexImageTask", "recaptha", "recaptcha"),
        ("ComplexImageTask", "hcapcha", "hcaptcha"),
        ("ComplexImageTask", "funcapcha", "funcaptcha"),
        ("CustomTask", "datadom", "DataDome"),
    ] {
        match meant(kind, &[("class", typed)]) {
            Err(BadRequest::MisspeltValue { meant, .. }) => assert_eq!(meant, right, "{kind} {typed}"),
            other => panic!("{kind} {typed}: {other:?}"),
        }
    }
    assert!(meant("CustomTask", &[("class", "hcaptcha")]).is_err());
}
