//! Tests of routing, of refused requests, and of what a caller sees of a bug of ours.

use crate::classic::fixture::{Fixture, KEY, tenant};
use quittance_gateway::GatewaySettings;

#[tokio::test]
async fn every_api_is_found_and_an_unknown_path_gets_what_there_is() {
    let fixture = Fixture::open().await;
    assert_eq!(fixture.get("/in.php").await.body, "ERROR_WRONG_USER_KEY");
    assert_eq!(fixture.get("/healthz").await.status, 200);
    assert_eq!(fixture.get("/readyz").await.status, 503);
    fixture.gateway.set_ready(true);
    assert_eq!(fixture.get("/readyz").await.status, 200);
    assert_eq!(fixture.get("/callback/unknown").await.status, 200);
    assert!(fixture.get("/openapi.json").await.body.starts_with('{'));
    let created = fixture.post("/capsolver/createTask", "application/json", "{}").await;
    assert!(created.body.contains("errorCode"), "{}", created.body);
    for path in ["/", "/nonsense", "/in.php/x", "/captchaai", "/callback"] {
        let lost = fixture.get(path).await;
        assert_eq!(lost.status, 404, "{path}");
        assert!(lost.body.contains("/in.php") && lost.body.contains("/v1"), "{}", lost.body);
    }
}

#[tokio::test]
async fn without_tenants_no_page_in_a_browser_is_let_in() {
    let fixture = Fixture::open().await;
    let paths =
        [format!("/res.php?key={KEY}&action=getbalance"), "/v1/orders".to_owned(), "/healthz".to_owned()];
    for path in &paths {
        for headers in [
            vec![("Host", "rebound.example.com")],
            vec![("Host", "localhost"), ("Origin", "https://example.com")],
            vec![("Host", "localhost"), ("Sec-Fetch-Site", "cross-site")],
            vec![("Host", "127.0.0.1:1"), ("Origin", "http://localhost:3000")],
            vec![("Host", "127.0.0.1:1"), ("Referer", "http://127.0.0.1:3000/evil")],
            vec![("Host", "127.0.0.1:1"), ("Origin", "chrome-extension://abc")],
        ] {
            let response = fixture.connect().await.ask("GET", path, &headers, b"").await;
            // A client that reads codes gets a code.
            let is_refused = response.status == 403 || response.body == "ERROR_IP_NOT_ALLOWED";
            assert!(is_refused, "{path} {headers:?}: {} {}", response.status, response.body);
        }
        let headers = [("Host", "127.0.0.1:1"), ("Origin", "http://127.0.0.1:1")];
        let own = fixture.connect().await.ask("GET", path, &headers, b"").await;
        assert!(own.status == 200 && own.body != "ERROR_IP_NOT_ALLOWED", "{path}: {}", own.body);
    }
    let typed = [("Host", "127.0.0.1:1"), ("Sec-Fetch-Site", "none"), ("User-Agent", "Mozilla/5.0")];
    let place = format!("/in.php?key={KEY}&method=turnstile&sitekey=k&pageurl=https://shop.example.com/");
    assert_eq!(fixture.connect().await.ask("GET", &place, &typed, b"").await.body, "ERROR_IP_NOT_ALLOWED");
    assert_eq!(fixture.connect().await.ask("GET", "/healthz", &typed, b"").await.status, 200);
    let provider = [("Host", "public.example.com")];
    assert_eq!(fixture.connect().await.ask("GET", "/callback/x", &provider, b"").await.status, 200);
}

#[tokio::test]
async fn where_a_key_is_needed_any_name_will_do() {
    let fixture = Fixture::with(vec![tenant("anna", KEY)], GatewaySettings::default()).await;
    let path = format!("/res.php?key={KEY}&action=getbalance");
    let headers = [("Host", "public.example.com"), ("Origin", "https://example.com")];
    assert_eq!(fixture.connect().await.ask("GET", &path, &headers, b"").await.body, "10.00");
}

#[tokio::test]
async fn a_panic_hurts_one_request_only_and_is_counted() {
    let fixture = Fixture::open().await;
    let path = fixture.callback_path(&fixture.token("site").await).await;
    let mut connection = fixture.connect().await;
    assert_eq!(connection.ask("GET", &format!("{path}?panic"), &[], b"").await.status, 503);
    assert_eq!(connection.ask("GET", "/healthz", &[], b"").await.status, 200, "on the same connection");
    assert_eq!(fixture.gateway.counts().panics, 1);
}
