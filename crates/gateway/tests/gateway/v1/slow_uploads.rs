//! Tests of a caller with a key that uploads a large picture slowly. Connections without a key, which have few seats,
//! must not cut it off.

use super::fixture::{ANNA, BERT, Fixture, order};
use quittance_gateway::{GatewaySettings, KeyDigest, Limits, TenantSettings};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// The pieces of the upload, with their size and the pause between two. All together take longer than the second that
/// every connection has.
const PIECES: usize = 40;
const PIECE_BYTES: usize = 512;
const PAUSE: Duration = Duration::from_millis(60);
/// How many connections without a key come with each piece: in all far more than the server has seats for.
const STRANGERS: usize = 6;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

async fn fixture() -> Fixture {
    let tenants =
        [("anna", ANNA), ("bert", BERT)].map(|(name, key)| TenantSettings::new(name, KeyDigest::of(key)));
    let limits = Limits { connections_max: 200, ..Limits::default() };
    Fixture::limited(tenants.into(), GatewaySettings { limits, ..GatewaySettings::default() }).await
}

struct Upload {
    name: &'static str,
    path: String,
    headers: String,
    /// The body, padded to the length of a picture.
    body: String,
}

fn upload(name: &'static str, path: &str, headers: &str, content_type: &str, body: &str) -> Upload {
    let headers = format!("Content-Type: {content_type}\r\n{headers}");
    Upload { name, path: path.into(), headers, body: body.into() }
}

/// A picture that makes the form long.
fn picture() -> String {
    "A".repeat(PIECES * PIECE_BYTES)
}

fn key_in_the_head() -> Vec<Upload> {
    let (picture, padding) = (picture(), " ".repeat(PIECES * PIECE_BYTES));
    let form = format!("method=base64&body={picture}");
    let v1 = format!("{}{padding}", order("hold-1"));
    let bearer = format!("Authorization: Bearer {ANNA}\r\n");
    vec![
        upload("/v1, bearer", "/v1/orders", &bearer, JSON, &v1),
        upload("/v1, header", "/v1/orders", &format!("X-Api-Key: {ANNA}\r\n"), JSON, &v1),
        upload("in.php, query", &format!("/in.php?key={ANNA}"), "", FORM, &form),
        upload("in.php, bearer", "/in.php", &bearer, FORM, &form),
    ]
}

fn key_at_the_beginning_of_the_body() -> Vec<Upload> {
    let (picture, padding) = (picture(), " ".repeat(PIECES * PIECE_BYTES));
    let task = json!({ "clientKey": ANNA, "task": { "type": "TurnstileTaskProxyless",
        "websiteKey": "hold-2", "websiteURL": "https://shop.example.com/" } });
    let part = |name: &str, value: &str| {
        format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let parts = part("key", ANNA) + &part("method", "base64") + &part("body", &picture) + "--xyz--\r\n";
    vec![
        upload("in.php, form", "/in.php", "", FORM, &format!("key={ANNA}&method=base64&body={picture}")),
        upload(
            "in.php, form, second",
            "/in.php",
            "",
            FORM,
            &format!("method=base64&key={ANNA}&body={picture}"),
        ),
        upload("in.php, multipart", "/in.php", "", "multipart/form-data; boundary=xyz", &parts),
        upload("createTask", "/createTask", "", JSON, &format!("{task}{padding}")),
    ]
}

/// What a connection without a key sends. It stays open and sends nothing more.
const SILENT: &[u8] = b"";
const HALF_A_HEAD: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: ";
const IDLE: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const BODY: &[u8] =
    b"POST /in.php HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n\
    Content-Length: 90000\r\n\r\nkey=wrong67890wrong67890wrong67890wr&body=";

/// The response to an upload while connections without a key arrive.
async fn uploaded(fixture: &Fixture, upload: &Upload, stranger: &[u8]) -> String {
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    let Upload { path, headers, body, .. } = upload;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut strangers = Vec::new();
    for piece in body.as_bytes().chunks(body.len().div_ceil(PIECES)) {
        // A connection that was cut off is seen when the answer is read.
        _ = stream.write_all(piece).await;
        for _ in 0..STRANGERS {
            let mut came = TcpStream::connect(fixture.address).await.unwrap();
            _ = came.write_all(stranger).await;
            strangers.push(came);
        }
        sleep(PAUSE).await;
    }
    let mut answer = String::new();
    _ = timeout(Duration::from_secs(5), stream.read_to_string(&mut answer)).await.expect("it is answered");
    answer
}

fn was_taken(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 202")
        || (answer.starts_with("HTTP/1.1 200") && (answer.contains("OK|") || answer.contains("taskId")))
}

async fn is_never_cut_off(uploads: Vec<Upload>, strangers: &[&[u8]]) {
    let all = uploads.iter().flat_map(|upload| strangers.iter().map(move |stranger| (upload, stranger)));
    let checks = all.map(async |(upload, stranger)| {
        let answer = uploaded(&fixture().await, upload, stranger).await;
        let strangers = String::from_utf8_lossy(stranger);
        assert!(was_taken(&answer), "{}, beside {strangers:?}: {answer:?}", upload.name);
    });
    futures_util::future::join_all(checks).await;
}

/// Trap: a few connections without a key cut off an upload whose key was in the form: it had shown no key before its
/// body was complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_strangers_do_not_cut_off_a_slow_upload() {
    let last = format!("method=base64&body={}&key={ANNA}", picture());
    let mut uploads = vec![upload("in.php, key last", "/in.php", "", FORM, &last)];
    uploads.extend(key_in_the_head());
    uploads.extend(key_at_the_beginning_of_the_body());
    is_never_cut_off(uploads, &[SILENT, HALF_A_HEAD, IDLE]).await;
}

/// Trap: slow uploads without a key pushed out other uploads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_that_upload_slowly_do_not_cut_off_an_upload_that_has_shown_its_key() {
    let mut uploads = key_in_the_head();
    uploads.extend(key_at_the_beginning_of_the_body());
    is_never_cut_off(uploads, &[BODY]).await;
}
