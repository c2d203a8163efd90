//! Tests that orders keep all their data when they are written and read.

use super::*;

fn form(pairs: &[(&str, &str)]) -> Form {
    let parts = pairs.iter().map(|(name, reply)| ((*name).to_owned(), Part::Text((*reply).to_owned())));
    Form(parts.collect())
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, Value> {
    pairs.iter().map(|(name, reply)| ((*name).to_owned(), Value::from(*reply))).collect()
}

fn understood(pairs: &[(&str, &str)]) -> (String, BTreeMap<String, Value>) {
    let wanted = understand(&form(pairs)).unwrap();
    (wanted.kind, wanted.params)
}

#[test]
fn every_kind_of_the_catalog_comes_back_as_it_went() {
    for kind in crate::kinds::kinds() {
        for dialect in ClassicDialect::ALL {
            let params: BTreeMap<String, Value> = kind
                .fields
                .iter()
                // What only repeats the default says nothing, and need not come back.
                .filter(|field| field.default.is_none_or(str::is_empty))
                .map(|field| {
                    let value = match field.shape {
                        quittance_lifecycle::Shape::File { .. } => Value::Bytes(vec![0xfe, 0xff, 0, 62, 63]),
                        _ => Value::Text(format!("{}+/ &=", field.name).to_uppercase()),
                    };
                    (field.name.to_owned(), value)
                })
                .collect();
            let sent = spell(dialect, &kind.name, &params).unwrap();
            let mut back = understand(&sent).unwrap();
            // CaptchaAI recognises a grid by this field, which the caller need not send.
            back.params.entry("img_type".to_owned()).or_insert(Value::from("IMG_TYPE+/ &="));
            let mut expected = params;
            expected.entry("img_type".to_owned()).or_insert(Value::from("IMG_TYPE+/ &="));
            assert_eq!((back.kind.as_str(), back.params), (&*kind.name, expected), "{}", dialect.name());
        }
    }
}

#[test]
fn clients_requests_are_understood() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("method", "userrecaptcha"), ("googlekey", "k")], "recaptcha_v2"),
        (&[("method", "userrecaptcha"), ("version", "v3"), ("googlekey", "k")], "recaptcha_v3"),
        (&[("method", "userrecaptcha"), ("version", "v2"), ("googlekey", "k")], "recaptcha_v2"),
        (&[("method", "base64"), ("body", "AAAA")], "image"),
        (&[("method", "post"), ("file", "AAAA")], "image"),
        (&[("body", "AAAA")], "image"),
        (&[("textcaptcha", "what is 2 and 2?")], "text"),
        (&[("method", "post"), ("textcaptcha", "what is 2 and 2?")], "text"),
        (&[("method", "base64"), ("recaptcha", "1"), ("body", "AAAA")], "grid"),
        (&[("method", "base64"), ("img_type", "recaptcha"), ("grid_size", "3x3"), ("body", "AAAA")], "grid"),
        (&[("method", "base64"), ("recaptcha", "1"), ("canvas", "1"), ("body", "AAAA")], "canvas"),
        (&[("method", "base64"), ("coordinatescaptcha", "1"), ("body", "AAAA")], "coordinates"),
        (&[("method", "rotatecaptcha"), ("body", "AAAA")], "rotate"),
        (&[("method", "geetest"), ("gt", "g")], "geetest"),
        (&[("method", "geetest"), ("version", "4"), ("gt", "g")], "geetest_v4"),
        (&[("method", "geetest_v4"), ("captcha_id", "g")], "geetest_v4"),
        (&[("method", "hcaptcha"), ("sitekey", "s")], "hcaptcha"),
        (&[("method", "cloudflare_challenge")], "cloudflare_challenge"),
        (&[("method", "made_up_last_week")], "made_up_last_week"),
    ];
    for (pairs, kind) in cases {
        assert_eq!(understood(pairs).0, *kind, "{pairs:?}");
    }
    assert_eq!(understand(&form(&[("key", "k")])), Err(BadMethod::NoMethod));
}

#[test]
fn an_unknown_method_passes_through_untouched() {
    let theirs =
        [("method", "made_up"), ("x", "1"), ("body", "not base64!"), ("data[blob]", "b"), ("version", "v3")];
    let (kind, meant_params) = understood(&theirs);
    assert_eq!((kind.as_str(), &meant_params), ("made_up", &params(&theirs[1..])));
    for dialect in ClassicDialect::ALL {
        assert_eq!(spell(dialect, &kind, &meant_params), Ok(form(&theirs)));
    }
}

#[test]
fn other_names_for_the_same_thing_become_one() {
    let lemin = understood(&[("method", "lemin"), ("apiServer", "a")]).1;
    assert_eq!(lemin, params(&[("api_server", "a")]));
    assert_eq!(
        spell(ClassicDialect::CaptchaAi, "lemin", &lemin),
        Ok(form(&[("method", "lemin"), ("apiServer", "a")]))
    );
    assert_eq!(
        spell(ClassicDialect::TwoCaptcha, "lemin", &lemin).unwrap(),
        form(&[("method", "lemin"), ("api_server", "a")])
    );
    assert_eq!(
        understood(&[("method", "geetest"), ("version", "4"), ("gt", "g")]).1,
        params(&[("captcha_id", "g")])
    );
    let v4 = spell(ClassicDialect::CaptchaAi, "geetest_v4", &params(&[("captcha_id", "g")])).unwrap();
    assert_eq!(v4, form(&[("method", "geetest"), ("version", "4"), ("gt", "g")]));
    let both = understand(&form(&[("method", "lemin"), ("apiServer", "a"), ("api_server", "b")]));
    assert_eq!(
        both,
        Err(BadMethod::ContradictoryNames { one: "apiServer".into(), other: "api_server".into() })
    );
    let proxied = understood(&[("method", "turnstile"), ("proxytype", "socks5")]).1;
    assert_eq!(proxied, params(&[("proxytype", "SOCKS5")]));
}

#[test]
fn what_concerns_only_the_talk_goes_no_further() {
    let control = [
        ("key", "k"),
        ("json", "1"),
        ("pingback", "p"),
        ("soft_id", "1"),
        ("header_acao", "1"),
        ("clientKey", "k"),
    ];
    let theirs: Vec<_> =
        control.into_iter().chain([("method", "hcaptcha"), ("sitekey", "s"), ("data", "")]).collect();
    assert_eq!(understood(&theirs).1, params(&[("sitekey", "s")]));
    let smuggled =
        params(&[("key", "other"), ("pingback", "http://elsewhere.test"), ("method", "x"), ("sitekey", "s")]);
    assert_eq!(
        spell(ClassicDialect::TwoCaptcha, "hcaptcha", &smuggled).unwrap(),
        form(&[("method", "hcaptcha"), ("sitekey", "s")])
    );
}

#[test]
fn pictures_are_read_as_clients_write_them() {
    let bytes = Value::Bytes(vec![0xfb, 0xff, 0xfe, 1]);
    for body in ["+//+AQ==", "+//+AQ", "+// AQ==", "data:image/png;base64,+//+AQ==", "+//+\r\nAQ==\n"] {
        assert_eq!(understood(&[("method", "base64"), ("body", body)]).1.get("body"), Some(&bytes), "{body}");
    }
    let refused = understand(&form(&[("method", "base64"), ("body", "%%%")]));
    assert_eq!(refused, Err(BadMethod::NotBase64 { field: "body".to_owned() }));
    let uploaded = Form(BTreeMap::from([
        ("method".to_owned(), Part::Text("post".to_owned())),
        ("file".to_owned(), Part::File(vec![1, 2, 3])),
    ]));
    assert_eq!(understand(&uploaded).unwrap().params["body"], Value::Bytes(vec![1, 2, 3]));
}

#[test]
fn several_pictures_are_uploaded_and_one_is_written_out() {
    let several = BTreeMap::from([
        ("file_1".to_owned(), Value::Bytes(vec![1])),
        ("file_2".to_owned(), Value::Bytes(vec![2])),
    ]);
    let sent = spell(ClassicDialect::TwoCaptcha, "rotate", &several).unwrap();
    assert_eq!(sent.0["file_2"], Part::File(vec![2]));
    assert_eq!(sent.text("method"), Some("rotatecaptcha"));
    let one = BTreeMap::from([("body".to_owned(), Value::Bytes(vec![1, 2, 3]))]);
    assert_eq!(
        spell(ClassicDialect::TwoCaptcha, "image", &one),
        Ok(form(&[("method", "base64"), ("body", "AQID")]))
    );
}
