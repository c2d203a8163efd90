//! What each sort of field may hold, and which names a field must not have.

use super::*;

mod documents;
mod vendors;

const PAGE: (&str, &str) = ("pageurl", "https://shop.example.org/");

fn inspected(step: Step, kind: &Kind, pairs: &[(&str, &str)]) -> Result<(), NotAllowed> {
    let allow = vec![HostPattern::parse("*.example.org").unwrap()];
    let operator = Targets { allow, ..Targets::default() };
    let fields: Vec<TaskField<'_>> = pairs
        .iter()
        .map(|(name, value)| TaskField { name, param: Some(name), value: value.as_bytes() })
        .collect();
    inspect(&Inspection { step, kind, fields: &fields, operator: &operator, tenant: None })
}

fn described(name: &str) -> Kind {
    quittance_protocol::kinds::kind(name).unwrap_or_else(|| quittance_protocol::kinds::open_kind(name))
}

#[test]
fn json_is_read_to_its_leaves_whatever_the_field_is() {
    for (kind, field) in [
        ("recaptcha_v2", "anchor"),
        ("recaptcha_v2", "invisible"),
        ("geetest", "geetestGetLib"),
        ("turnstile", "action"),
        ("turnstile", "data"),
        ("turnstile", "instructions"),
        ("turnstile", "cookies"),
        ("turnstile", "userAgent"),
        ("funcaptcha", "data[blob]"),
        ("yandex", "instructions"),
    ] {
        for value in
            ["{\"websiteURL\":\"evil.net\"}", "[{\"domain\":\"evil.net/login\"}]", "{\"evil.net\":{\"a\":1}}"]
        {
            let refused = inspected(Step::Send, &described(kind), &[PAGE, (field, value)]);
            let is_refused = matches!(refused, Err(NotAllowed::Host { .. } | NotAllowed::Vendor { .. }));
            assert!(is_refused, "{kind} {field} {value}: {refused:?}");
        }
    }
    let libraries = "{\"static_servers\":[\"static.geetest.com/\",\"dn-staticdown.qbox.me/\"]}";
    assert_eq!(inspected(Step::Send, &described("geetest"), &[PAGE, ("geetestGetLib", libraries)]), Ok(()));
    let cookies = "[{\"name\":\"SID\",\"value\":\"AIKr.x\",\"domain\":\".google.com\"}]";
    assert_eq!(inspected(Step::Send, &described("recaptcha_v2"), &[PAGE, ("cookies", cookies)]), Ok(()));
}

#[test]
fn no_field_has_a_name_that_some_reader_takes_for_another() {
    for kind in ["turnstile", "yandex"] {
        for name in [
            "key[0]",
            "Key",
            " key",
            "method[abc]",
            "json[x]",
            "pingback[]",
            "pageurl[abcd]",
            " type",
            "type",
            "proxy[]",
        ] {
            for step in [Step::Place, Step::Replay, Step::Send] {
                let refused = inspected(step, &described(kind), &[PAGE, (name, "x")]);
                assert!(
                    matches!(refused, Err(NotAllowed::Name { .. })),
                    "{kind} {name} {step:?}: {refused:?}"
                );
            }
        }
        let why = inspected(Step::Send, &described(kind), &[PAGE, ("type", "x")]).unwrap_err().to_string();
        assert!(why.starts_with("`type` is a field of the request to the provider"), "{why}");
        for pair in [["a", "a[0]"], ["a", "A"], ["a", " a"], ["a_b", "a.b"], ["a", "a.b"]] {
            let refused = inspected(Step::Send, &described(kind), &[PAGE, (pair[0], "1"), (pair[1], "2")]);
            assert!(matches!(refused, Err(NotAllowed::Name { .. })), "{kind} {pair:?}: {refused:?}");
        }
        for pair in [["a[0]", "a[1]"], ["a.b", "a.c"], ["a", "b"]] {
            let taken = inspected(Step::Send, &described(kind), &[PAGE, (pair[0], "1"), (pair[1], "2")]);
            assert_eq!(taken, Ok(()), "{kind} {pair:?}");
        }
    }
    let blob = described("funcaptcha");
    assert_eq!(inspected(Step::Send, &blob, &[PAGE, ("data[blob]", "a.b/c")]), Ok(()));
    assert!(inspected(Step::Send, &blob, &[PAGE, ("data[blob]", "a"), ("data", "b")]).is_err());
    // What is about the talk is left out before it leaves.
    let control = [PAGE, ("json", "1"), ("soft_id", "7")];
    assert_eq!(inspected(Step::Place, &described("turnstile"), &control), Ok(()));
}

#[test]
fn a_file_has_a_media_type_and_a_page_names_its_vendor_only() {
    let bls = described("bls");
    let picture = format!("data:image/png;base64,{}", "A".repeat(200));
    let checked = |head: &str| {
        let file = format!("data:{head};base64,{}", "A".repeat(200));
        inspected(Step::Send, &bls, &[("instructions", "7"), ("image_base64_1", &file)])
    };
    assert_eq!(inspected(Step::Send, &bls, &[("instructions", "7"), ("image_base64_1", &picture)]), Ok(()));
    assert_eq!(checked("image/svg+xml;charset=utf-8"), Ok(()));
    for head in ["https://evil.net/x?", "evil.net/x", "image/png;x=evil.net", "image/evil.net"] {
        assert!(matches!(checked(head), Err(NotAllowed::Host { .. })), "{head}: {:?}", checked(head));
    }
    let challenge = described("cloudflare_challenge");
    let page = |address: &str| {
        let html = format!("<html><script src=\"{address}\"></script></html>");
        inspected(Step::Send, &challenge, &[PAGE, ("htmlPageBase64", &html)])
    };
    assert_eq!(page("https://challenges.cloudflare.com/turnstile/v0/api.js"), Ok(()));
    assert_eq!(page("https://shop.example.org/a.js"), Ok(()));
    assert_eq!(page("/cdn-cgi/challenge-platform/x.js"), Ok(()));
    assert!(matches!(page("https://evil.net/a.js"), Err(NotAllowed::Vendor { .. })));
    assert!(matches!(page("//evil.net/a.js"), Err(NotAllowed::Vendor { .. })));
    let in_base64 = "PGh0bWw+PHNjcmlwdCBzcmM9Ii8vZXZpbC5uZXQvYS5qcyI+PC9zY3JpcHQ+PC9odG1sPg==";
    let refused = inspected(Step::Send, &challenge, &[PAGE, ("htmlPageBase64", in_base64)]);
    assert!(matches!(refused, Err(NotAllowed::Vendor { .. })), "{refused:?}");
}
