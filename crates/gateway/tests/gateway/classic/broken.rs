//! Tests of random requests: each gets a reply of the protocol, never a 5xx, and the API does not panic.

use super::fixture::{Fixture, KEY};

/// Random requests that are equal in every run.
struct Dice(u64);

impl Dice {
    fn draw(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % below
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.draw(of.len())]
    }
}

const METHODS: [&str; 8] = ["GET", "POST", "POST", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"];
const PATHS: [&str; 7] = [
    "/in.php",
    "/res.php",
    "/solve.php",
    "/captchaai/in.php",
    "/2captcha/res.php",
    "//in.php",
    "/anticaptcha/res.php",
];
const TYPES: [&str; 8] = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b0",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "application/json",
    "text/plain;charset=UTF-8",
    "\u{e9}",
    "",
];
const WORDS: [&str; 30] = [
    "key",
    "0123456789abcdef0123456789abcdef",
    "=",
    "&",
    "method",
    "base64",
    "post",
    "body",
    "file",
    "action",
    "get",
    "get2",
    "ids",
    "id",
    "1,2,3",
    "%",
    "%00",
    "%ff",
    "{",
    "}",
    "\"json\":1",
    "--b0\r\n",
    "\r\n\r\n",
    "--b0--",
    "Content-Disposition: form-data; name=\"key\"",
    "debug_dump=1",
    "userrecaptcha",
    "textcaptcha",
    "null",
    "[[[[",
];

fn request(dice: &mut Dice) -> (String, String, String, Vec<u8>) {
    let mut body: Vec<u8> = Vec::new();
    match dice.draw(3) {
        0 => body.extend_from_slice(format!("key={KEY}&").as_bytes()),
        1 => body.extend_from_slice(format!(r#"{{"key":"{KEY}","#).as_bytes()),
        _ => {}
    }
    for _ in 0..dice.draw(12) {
        body.extend_from_slice(dice.one_of(&WORDS).as_bytes());
    }
    for _ in 0..dice.draw(4) {
        let at = dice.draw(body.len() + 1);
        body.insert(at, u8::try_from(dice.draw(256)).unwrap());
    }
    let mut query = String::new();
    for _ in 0..dice.draw(6) {
        // What no address may hold is refused before any API is asked.
        query.extend(
            dice.one_of(&WORDS).chars().filter(|c| c.is_ascii_alphanumeric() || "=&%,-_:;.".contains(*c)),
        );
    }
    let path = format!("{}?key={KEY}&{query}", dice.one_of(&PATHS));
    (dice.one_of(&METHODS).to_owned(), path, dice.one_of(&TYPES).to_owned(), body)
}

#[tokio::test]
async fn three_thousand_broken_requests_get_three_thousand_answers() {
    let fixture = Fixture::open().await;
    let mut dice = Dice(0x5eed);
    for number in 0..3000 {
        let (method, path, content_type, body) = request(&mut dice);
        // A HEAD has no body in its answer, and our small client cannot see the difference.
        let mut connection = fixture.connect().await;
        let headers = [("Content-Type", content_type.as_str())];
        let reply = tokio::time::timeout(
            std::time::Duration::from_secs(70),
            answered(&mut connection, &method, &path, &headers, &body),
        );
        let status = reply.await.unwrap_or_else(|_| panic!("request {number}: {method} {path}"));
        let is_asked = method == "GET" || method == "POST";
        assert_eq!(status, if is_asked { 200 } else { 405 }, "request {number}: {method} {path} {body:?}");
    }
    assert_eq!(fixture.gateway.counts().panics, 0);
    assert_eq!(fixture.res("action=get_pingback").await, "OK|", "and the API still answers");
}

async fn answered(
    connection: &mut super::fixture::Connection,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> u16 {
    if method != "HEAD" {
        return connection.ask(method, path, headers, body).await.status;
    }
    connection
        .send(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
        .await;
    connection.status().await
}

#[tokio::test]
async fn giant_fields_and_thousands_of_them_are_refused_in_the_protocol() {
    let fixture = Fixture::open().await;
    let many = (0..2000).map(|n| format!("p{n}=1&")).collect::<String>();
    assert_eq!(fixture.place(&many).await, "ERROR_UPLOAD");
    let long = format!("method=turnstile&pageurl=https://example.com/&sitekey={}", "k".repeat(1_000_000));
    assert_eq!(fixture.place(&long).await, "ERROR_BAD_PARAMETERS");
    let ids = "1,".repeat(5000);
    assert_eq!(fixture.res(&format!("action=get&ids={ids}")).await, "ERROR_BAD_PARAMETERS");
    let picture = format!("method=base64&body={}", "A".repeat(2_900_000));
    assert_eq!(fixture.place(&picture).await, "ERROR_TOO_BIG_CAPTCHA_FILESIZE");
    let fits = format!("method=base64&body={}", "A".repeat(700_000));
    assert!(fixture.place(&fits).await.starts_with("OK|"));
}
