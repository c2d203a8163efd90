//! Tests of every encoding in which real clients send the same request.

use crate::wire::{MockClient, png, quick, request};
use base64::Engine;
use quittance_mock_provider::{DEMO_KEY, LedgerValue, MockClassicDialect};

const KEYED: &str = "key=0123456789abcdef0123456789abcdef";

async fn taken(client: &MockClient, raw: &[u8]) -> String {
    let reply = client.raw(raw).await.expect("an answer");
    let id = reply.text().strip_prefix("OK|").unwrap_or_else(|| panic!("not taken: {}", reply.text()));
    id.to_owned()
}

fn multipart(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
        body.extend(format!("--b0\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n").bytes());
        body.extend_from_slice(bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--b0--\r\n");
    body
}

#[tokio::test]
async fn the_same_token_task_is_taken_in_every_encoding() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let params = "method=turnstile&sitekey=0x4AAA&pageurl=https%3A%2F%2Fa.example.com%2F";
    let (form, all) = ("application/x-www-form-urlencoded", format!("{KEYED}&{params}"));
    let json = format!(
        r#"{{"key":"{DEMO_KEY}","method":"turnstile","sitekey":"0x4AAA","pageurl":"https://a.example.com/","soft_id":4501}}"#
    );
    let parts = multipart(&[
        ("key", None, DEMO_KEY.as_bytes()),
        ("method", None, b"turnstile"),
        ("sitekey", None, b"0x4AAA"),
        ("pageurl", None, b"https://a.example.com/"),
    ]);
    let chunked = format!(
        "POST /in.php HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{all}\r\n0\r\n\r\n",
        all.len()
    );
    let raws = [
        request("GET", &format!("/in.php?{all}"), None, b""),
        request("POST", "/in.php", Some(form), all.as_bytes()),
        request("POST", "/in.php", Some(&format!("{form};charset=UTF-8")), all.as_bytes()),
        request("POST", "/in.php", Some("multipart/form-data; boundary=b0"), &parts),
        request("POST", "/in.php", Some("application/json"), json.as_bytes()),
        request(
            "POST",
            &format!("/in.php?{KEYED}&method=turnstile"),
            Some("text/plain;charset=UTF-8"),
            br#"{"sitekey":"0x4AAA","pageurl":"https://a.example.com/"}"#,
        ),
        request("POST", &format!("/in.php?{all}"), Some(form), b""),
        chunked.into_bytes(),
    ];
    for raw in &raws {
        taken(&client, raw).await;
    }
    let ledger = client.mock.ledger();
    assert_eq!(ledger.tasks.len(), raws.len());
    for task in &ledger.tasks {
        assert_eq!(task.params, ledger.tasks[0].params);
        assert_eq!(task.params.keys().collect::<Vec<_>>(), ["pageurl", "sitekey"]);
    }
    assert_eq!(ledger.tasks.iter().filter(|task| task.verb == "GET").count(), 1);
}

#[tokio::test]
async fn the_same_picture_is_the_same_however_it_is_sent() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let bytes = png(7);
    let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let escaped: String = form_urlencoded::byte_serialize(encoded.as_bytes()).collect();
    let file: [(&str, Option<&str>, &[u8]); 3] =
        [("key", None, DEMO_KEY.as_bytes()), ("method", None, b"post"), ("file", Some("a.png"), &bytes)];
    let raws = [
        request("POST", "/in.php", Some("multipart/form-data; boundary=b0"), &multipart(&file)),
        request("POST", "/in.php", None, format!("{KEYED}&method=base64&body={escaped}").as_bytes()),
        request(
            "POST",
            &format!("/in.php?{KEYED}&method=base64"),
            Some("text/plain;charset=UTF-8"),
            format!(r#"{{"body": "data:image/png;base64,{encoded}"}}"#).as_bytes(),
        ),
    ];
    for raw in &raws {
        let id = taken(&client, raw).await;
        client.until(|task| task.id == id && task.answer.is_some()).await;
    }
    let ledger = client.mock.ledger();
    let param = |task: &quittance_mock_provider::LedgerTask| task.params.values().next().cloned();
    for task in &ledger.tasks {
        assert_eq!(task.answer, ledger.tasks[0].answer, "same bytes, same text");
        assert_eq!(param(task), param(&ledger.tasks[0]));
        assert!(matches!(param(task), Some(LedgerValue::Bytes { bytes: 200, .. })));
    }
}

#[tokio::test]
async fn a_poll_may_come_as_multipart_or_as_json_with_a_number() {
    let client = quick(MockClassicDialect::CaptchaAi).await;
    let id = client.finished(crate::wire::TURNSTILE).await;
    let parts = multipart(&[
        ("key", None, DEMO_KEY.as_bytes()),
        ("action", None, b"get"),
        ("id", None, id.as_bytes()),
    ]);
    let json = format!(r#"{{"key":"{DEMO_KEY}","action":"get","id":{id}}}"#);
    for (content_type, body) in
        [("multipart/form-data; boundary=b0", parts), ("application/json", json.into_bytes())]
    {
        let reply =
            client.raw(&request("POST", "/res.php", Some(content_type), &body)).await.expect("an answer");
        assert!(reply.text().starts_with("OK|0.sim-"), "{}", reply.text());
    }
    assert_eq!(client.entry(&id).reads, 2);
}

#[tokio::test]
async fn a_request_line_of_sixteen_kilobytes_and_more_is_read() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let data = "x".repeat(40_000);
    let id = taken(
        &client,
        &request("GET", &format!("/in.php?{KEYED}&{}&data={data}", crate::wire::TURNSTILE), None, b""),
    )
    .await;
    assert!(matches!(&client.entry(&id).params["data"], LedgerValue::Bytes { bytes: 40_000, .. }));
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_nothing_is_taken() {
    let client = quick(MockClassicDialect::TwoCaptcha).await;
    let reply = client.raw(&request("POST", "/in.php", None, b"{\"key\":")).await.expect("an answer");
    assert_eq!(reply.text(), "ERROR_BAD_PARAMETERS");
    let big = vec![b'a'; 5 << 20];
    // The server stops reading, so the client may see a reset instead of the answer.
    if let Ok(reply) = client.raw(&request("POST", "/in.php", None, &big)).await {
        assert_eq!(reply.status, 413);
    }
    assert_eq!(client.raw(&request("PUT", "/in.php", None, b"")).await.expect("an answer").status, 405);
    assert_eq!(client.get("/elsewhere").await.expect("an answer").status, 404);
    assert_eq!(client.mock.totals().accepted, 0);
}
