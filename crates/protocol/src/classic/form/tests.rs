//! Tests of every shape that real clients send, and of broken forms that must do no harm.

use super::*;

const URLENCODED: &str = "application/x-www-form-urlencoded";

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn form(parts: &[(&str, &str)]) -> Form {
    Form(parts.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect())
}

#[track_caller]
fn check(query: &str, content_type: Option<&str>, body: impl AsRef<[u8]>, expected: &[(&str, &str)]) {
    let read = Form::read(query, content_type, body.as_ref()).expect("a good form");
    assert_eq!(read.0.len(), expected.len(), "{:?}", read.0.keys());
    for (name, value) in expected {
        assert!(read.0.get(*name) == Some(&text(value)), "{name} is not {value:?}");
    }
}

fn multipart(boundary: &str, parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        body.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"").bytes());
        if let Some(file) = file {
            body.extend(format!("; filename=\"{file}\"\r\nContent-Type: application/octet-stream").bytes());
        }
        body.extend(b"\r\n\r\n");
        body.extend_from_slice(bytes);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").bytes());
    body
}

#[test]
fn one_everything_in_the_query() {
    check("key=k&method=turnstile", None, "", &[("key", "k"), ("method", "turnstile")]);
}

#[test]
fn two_and_three_urlencoded_with_and_without_a_charset() {
    for content_type in [URLENCODED, "application/x-www-form-urlencoded; charset=UTF-8"] {
        check(
            "",
            Some(content_type),
            "key=k&pageurl=https%3A%2F%2Fa.test%2F",
            &[("key", "k"), ("pageurl", "https://a.test/")],
        );
    }
}

#[test]
fn four_multipart_with_files_beside_text() {
    let image = b"\x89PNG\r\n--not a boundary\r\n\0\xff";
    let body =
        multipart("xYz", &[("key", None, b"k"), ("file", Some("a.png"), image), ("file_1", Some(""), b"")]);
    let read = Form::read("", Some("multipart/form-data; boundary=xYz"), &body).expect("a good form");
    assert_eq!(read.text("key"), Some("k"));
    assert!(read.0["file"] == Part::File(image.to_vec()));
    assert!(read.0["file_1"] == Part::File(Vec::new()));
    assert_eq!(read.text("file"), None, "a file is no text");
}

#[test]
fn five_multipart_with_text_only() {
    let parts: [(&str, Option<&str>, &[u8]); 3] =
        [("key", None, b"k"), ("action", None, b"get"), ("data[blob]", None, "\u{e9}+%41".as_bytes())];
    for content_type in
        ["multipart/form-data; boundary=b0", "Multipart/Form-Data; boundary=\"b0\"; charset=utf-8"]
    {
        let body = multipart("b0", &parts);
        check("", Some(content_type), body, &[("key", "k"), ("action", "get"), ("data[blob]", "\u{e9}+%41")]);
    }
}

#[test]
fn six_json_with_numbers_truths_and_nested_values() {
    check(
        "",
        Some("application/json"),
        r#" {"json":1,"soft_id":4501,"invisible":true,"phrase":false,"min_score":0.3,"gone":null,
             "textcaptcha":"zwei \u00fc","nested":{"a":[1,"b"]},"id":74327409378}"#,
        &[
            ("json", "1"),
            ("soft_id", "4501"),
            ("invisible", "1"),
            ("phrase", "0"),
            ("min_score", "0.3"),
            ("textcaptcha", "zwei \u{fc}"),
            ("nested", r#"{"a":[1,"b"]}"#),
            ("id", "74327409378"),
        ],
    );
}

#[test]
fn seven_json_that_calls_itself_plain_text_beside_a_query() {
    check(
        "key=k&method=base64",
        Some("text/plain;charset=UTF-8"),
        r#"{"body": "aGVsbG8+/w=="}"#,
        &[("key", "k"), ("method", "base64"), ("body", "aGVsbG8+/w==")],
    );
}

#[test]
fn eight_an_empty_body_beside_a_query() {
    for content_type in [Some(URLENCODED), Some("application/json"), Some("multipart/form-data"), None] {
        check("key=k&json=1", content_type, "", &[("key", "k"), ("json", "1")]);
        check("key=k&json=1", content_type, " \r\n", &[("key", "k"), ("json", "1")]);
    }
}

#[test]
fn nine_urlencoded_without_any_content_type() {
    check("", None, "key=k&method=userrecaptcha", &[("key", "k"), ("method", "userrecaptcha")]);
}

#[test]
fn the_body_is_believed_and_not_its_content_type() {
    check("", Some("application/json"), "key=k&a=1", &[("key", "k"), ("a", "1")]);
    check("", Some(URLENCODED), r#"{"key":"k"}"#, &[("key", "k")]);
    let body = multipart("----=_Part_7:1", &[("key", None, b"k")]);
    for content_type in [
        None,
        Some(URLENCODED),
        Some("multipart/form-data"),
        Some("multipart/form-data; boundary=----=_Part_7:1"),
    ] {
        check("", content_type, &body, &[("key", "k")]);
    }
}

#[test]
fn where_both_name_a_parameter_the_body_decides_and_within_it_the_last() {
    check("key=query&a=1&a=2", None, "key=body&b=1&b=2", &[("key", "body"), ("a", "2"), ("b", "2")]);
    check("key=query", None, r#"{"key":"body"}"#, &[("key", "body")]);
}

#[test]
fn odd_spellings_are_read_as_leniently_as_php_reads_them() {
    type Case = (&'static str, &'static [u8], &'static [(&'static str, &'static str)]);
    let cases: &[Case] = &[
        ("data%5Bblob%5D=x&list[]=1", b"", &[("data[blob]", "x"), ("list[]", "1")]),
        ("a=b+c&d=%2B", b"", &[("a", "b c"), ("d", "+")]),
        ("a=100%&b=%zz&c=%4", b"", &[("a", "100%"), ("b", "%zz"), ("c", "%4")]),
        ("a=%ff%fe", b"b=\xff", &[("a", "\u{fffd}\u{fffd}"), ("b", "\u{fffd}")]),
        ("", b"\xef\xbb\xbfkey=k", &[("key", "k")]),
        ("", b"\xef\xbb\xbf{\"key\":\"k\xff\"}", &[("key", "k\u{fffd}")]),
        ("", b"key=k&b=\r\n", &[("key", "k"), ("b", "")]),
        ("&&=1&lonely&a=b=c", b"", &[("lonely", ""), ("a", "b=c")]),
    ];
    for (query, body, expected) in cases {
        check(query, None, body, expected);
    }
}

#[test]
fn a_body_is_read_as_what_it_is_under_a_content_type_that_is_wrong() {
    for content_type in ["multipart/form-data", "multipart/form-data; boundary=b", "application/json"] {
        check("", Some(content_type), b"key=k&json=1", &[("json", "1"), ("key", "k")]);
        check("", Some(content_type), b" {\"key\": \"k\", \"json\": 1}\r\n", &[("json", "1"), ("key", "k")]);
    }
}

#[test]
fn a_body_that_is_not_what_it_begins_like_is_refused() {
    let many: String = (0..=PARAMETERS_MAX).map(|n| format!("p{n}=&")).collect();
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    let cut = multipart("b", &[("key", None, b"k"), ("file", Some("f"), b"bytes")]);
    let form_data = "multipart/form-data; boundary=b";
    let cases: &[(Option<&str>, &[u8])] = &[
        (None, b"{\"key\":"),
        (None, b"{key=1}"),
        (None, deep.as_bytes()),
        (None, many.as_bytes()),
        (None, &[b'n'; NAME_BYTES_MAX + 1]),
        (Some(form_data), &cut[..cut.len() - 12]),
        (Some(form_data), b"--other\r\nnothing"),
        (Some("multipart/form-data"), b"preamble\r\nkey=k"),
        (Some("multipart/form-data; boundary="), b"--\r\n"),
        (None, b"--b\r\nContent-Disposition: form-data; name=\"a\""),
    ];
    for (content_type, body) in cases {
        let read = Form::read("key=k", *content_type, body);
        assert!(matches!(read, Err(BadForm::Malformed { .. })), "{:?}", String::from_utf8_lossy(body));
    }
}

#[test]
fn whatever_comes_from_the_network_is_read_or_refused() {
    let whole = multipart("b", &[("key", None, b"k"), ("file", Some("f"), b"\0\xff")]);
    let seeds: [&[u8]; 4] =
        [&whole, b"{\"a\":[1,{\"b\":\"\\u00e9\"}],\"c\":1e999}", b"a=%41%ff&b[]=+", b"\xef\xbb\xbf--"];
    for seed in seeds {
        for cut in 0..=seed.len() {
            for flip in [0, 0x20, 0x80, 0xff] {
                let mut body = seed[..cut].to_vec();
                if let Some(last) = body.last_mut() {
                    *last ^= flip;
                }
                for content_type in [None, Some("multipart/form-data; boundary=b"), Some("\u{e9}")] {
                    _ = Form::read("a=%&%=%%", content_type, &body);
                }
            }
        }
    }
}

#[test]
fn what_a_form_holds_is_not_printed() {
    assert_eq!(format!("{:?}", form(&[("key", "secret")])), "Form({\"key\": 6 bytes})");
}

#[test]
fn a_form_is_decoded_as_the_standard_says() {
    let written: [&[u8]; 6] = [
        b"a=1&b=%41%2b+%2B&&=x&c&d=&e==%3D&a=2",
        b"%=%&%4=%4&%zz=%zz%&x=%25%3",
        b"k=%ff%C3%A4\xff&\xe4=\xc3\xa4",
        b"p=https%3A%2F%2Fshop.example.com%2Fl%3Fa%3D1",
        b"",
        b"+%00+=%0d%0A",
    ];
    for bytes in written {
        let expected: BTreeMap<_, _> = form_urlencoded::parse(bytes)
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, value)| (name.into_owned(), Part::Text(value.into_owned())))
            .collect();
        let mut reading = FormReader::default();
        reading.read_urlencoded(bytes).unwrap();
        assert_eq!(reading.form.0, expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn parameters_that_were_sent_with_different_values_are_named() {
    let doubled = |query: &str, body: &[u8]| Form::read_with_doubles(query, None, body).unwrap().1;
    assert!(doubled("a=1&a=1&b=&b=2", b"a=1").is_empty(), "equal ones, and those that are not set");
    assert_eq!(doubled("a=1&b=2&a=3", b"b=4"), ["a", "b"].map(str::to_owned).into());
    assert_eq!(doubled("a=1", br#"{"a":2}"#), ["a".to_owned()].into());
    let twice = Form::read("", None, br#"{"a":1,"a":2}"#);
    assert!(matches!(twice, Err(BadForm::Document(BadDocument::SentTwice { name })) if name == "a"));
}
