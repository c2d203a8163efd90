//! Tests that every encoding of real clients gives the same order.

use super::fixture::{FORM, Fixture, KEY, Reply};

const PAGE: &str = "https%3A%2F%2Fexample.com%2F";

fn multipart(fields: &[(&str, &str)], file: Option<(&str, &[u8])>) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let part = format!("--b0\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    if let Some((name, bytes)) = file {
        let head =
            format!("--b0\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a.png\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--b0--\r\n");
    body
}

fn id(reply: &Reply) -> String {
    assert_eq!(reply.status, 200);
    reply.body.strip_prefix("OK|").unwrap_or_else(|| panic!("{}", reply.body)).to_owned()
}

#[tokio::test]
async fn a_token_is_ordered_in_every_encoding_and_it_is_one_order() {
    let fixture = Fixture::open().await;
    let query = format!("key={KEY}&method=turnstile&sitekey=k&pageurl={PAGE}&reuse=shared");
    let first = id(&fixture.get(&format!("/in.php?{query}")).await);
    let fields = [
        ("key", KEY),
        ("method", "turnstile"),
        ("sitekey", "k"),
        ("pageurl", "https://example.com/"),
        ("reuse", "shared"),
    ];
    let json = format!(
        r#"{{"key":"{KEY}","method":"turnstile","sitekey":"k","pageurl":"https://example.com/","reuse":"shared","soft_id":4580}}"#
    );
    let chunked = format!(
        "POST /in.php HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{query}\r\n0\r\n\r\n",
        query.len()
    );
    let mut connection = fixture.connect().await;
    connection.send(chunked.as_bytes()).await;
    let chunked = connection.reply().await.unwrap();
    for reply in [
        fixture.post("/in.php", FORM, &query).await,
        fixture.post("/in.php", "application/x-www-form-urlencoded; charset=UTF-8", &query).await,
        fixture.post("/in.php", "multipart/form-data; boundary=b0", multipart(&fields, None)).await,
        fixture.post("/in.php", "application/json", &json).await,
        fixture.post(&format!("/in.php?{query}"), FORM, "").await,
        chunked,
        fixture.post("//in.php", FORM, &query).await,
        fixture.post("/2captcha/in.php", FORM, &query).await,
    ] {
        assert_eq!(id(&reply), first);
    }
    assert!(first.parse::<u64>().is_ok_and(|id| (1..=1 << 53).contains(&id)));
}

#[tokio::test]
async fn a_picture_is_ordered_as_a_file_as_base64_and_beside_a_query_and_it_is_one_order() {
    let fixture = Fixture::open().await;
    let picture: Vec<u8> = (0..600_u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
    let base64 = base64(&picture);
    let fields = [("key", KEY), ("method", "post")];
    let first = id(&fixture
        .post("/in.php", "multipart/form-data; boundary=b0", multipart(&fields, Some(("file", &picture))))
        .await);
    let in_query = format!("/in.php?key={KEY}&method=base64");
    for reply in [
        fixture
            .post("/in.php", FORM, format!("key={KEY}&method=base64&body={}", base64.replace('+', "%2B")))
            .await,
        fixture
            .post(
                "/in.php",
                "application/json",
                format!(r#"{{"key":"{KEY}","method":"base64","body":"{base64}"}}"#),
            )
            .await,
        fixture.post(&in_query, "text/plain;charset=UTF-8", format!(r#"{{"body":"{base64}"}}"#)).await,
    ] {
        assert_eq!(id(&reply), first);
    }
}

#[tokio::test]
async fn a_question_without_a_method_is_one_too() {
    let fixture = Fixture::open().await;
    let response = fixture
        .post("/in.php", "application/json", format!(r#"{{"key":"{KEY}","json":1,"textcaptcha":"2+2?"}}"#))
        .await;
    assert!(response.body.starts_with(r#"{"status":1,"request":""#), "{}", response.body);
    assert_eq!(response.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_poll_may_come_in_any_encoding_too_and_the_id_as_a_number() {
    let fixture = Fixture::open().await;
    let id = fixture.token("k").await;
    let fields = [("key", KEY), ("action", "get"), ("id", id.as_str())];
    for reply in [
        fixture.get(&format!("/res.php?key={KEY}&action=get&id={id}")).await,
        fixture.post("/res.php", FORM, format!("key={KEY}&action=get&id={id}")).await,
        fixture.post("/res.php", "multipart/form-data; boundary=b0", multipart(&fields, None)).await,
        fixture
            .post("/res.php", "application/json", format!(r#"{{"key":"{KEY}","action":"get","id":{id}}}"#))
            .await,
    ] {
        assert_eq!((reply.status, reply.body.as_str()), (200, "CAPCHA_NOT_READY"));
    }
}

/// Encodes base64 as in RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for n in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * n) & 63) as usize]));
        }
    }
    text.extend(std::iter::repeat_n('=', (3 - bytes.len() % 3) % 3));
    text
}

#[tokio::test]
async fn a_json_body_is_read_as_json_whatever_its_content_type_says() {
    let fixture = Fixture::open().await;
    for (n, content_type) in
        ["multipart/form-data", FORM, "text/plain", "application/json"].into_iter().enumerate()
    {
        let task = format!(
            r#"{{"clientKey":"{KEY}","task":{{"type":"TurnstileTaskProxyless","websiteURL":"https://example.com/","websiteKey":"t{n}"}}}}"#
        );
        let created = fixture.post("/2captcha/createTask", content_type, task).await;
        assert!(created.body.starts_with(r#"{"errorId":0,"taskId":"#), "{content_type}: {}", created.body);
        let form = format!(
            r#"{{"key":"{KEY}","method":"turnstile","sitekey":"f{n}","pageurl":"https://example.com/","json":1}}"#
        );
        let placed = fixture.post("/in.php", content_type, form).await;
        assert!(placed.body.starts_with(r#"{"status":1,"#), "{content_type}: {}", placed.body);
    }
}
