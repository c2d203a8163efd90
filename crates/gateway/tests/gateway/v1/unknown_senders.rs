//! Tests of requests without a valid key: idle connections, guessed keys, browser pages, lists and balances of
//! others. They take nothing from callers with a key.

use super::fixture::{ADMIN, ANNA, BERT, Fixture, order};
use super::talk::Ask;
use crate::eventually::eventually;
use quittance_gateway::{GatewaySettings, KeyDigest, Limits, TenantSettings};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// Much longer than a response takes, and much shorter than a connection without a key can stay.
const SOON: Duration = Duration::from_secs(5);
const STRANGERS: usize = 260;

fn both() -> Vec<TenantSettings> {
    [("anna", ANNA), ("bert", BERT)].map(|(name, key)| TenantSettings::new(name, KeyDigest::of(key))).into()
}

async fn small() -> Fixture {
    let limits = Limits { connections_max: 200, ..Limits::default() };
    Fixture::limited(both(), GatewaySettings { limits, ..GatewaySettings::default() }).await
}

/// A connection on which these bytes were sent.
async fn connected(fixture: &Fixture, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    // A server that has closed the connection again is not what is tested here.
    _ = stream.write_all(bytes).await;
    stream
}

pub(super) async fn all_others_get_in(fixture: &Fixture) {
    let asks = [
        Ask::get("/healthz"),
        Ask::get("/callback/x"),
        Ask::get("/v1/me").key(ANNA),
        Ask::get("/v1/me").key(BERT),
        Ask::get("/metrics").key(ADMIN),
        Ask::get("/v1/admin/state").key(ADMIN),
    ];
    for ask in asks {
        let answered = timeout(SOON, fixture.ask(ask.clone())).await;
        assert_eq!(answered.map(|answered| answered.status), Ok(200), "{ask:?}");
    }
}

/// Trap: 260 idle connections on a server with 200 seats, and health checks and callbacks timed out for more than 30
/// s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_without_a_key_keep_no_caller_out() {
    let fixture = small().await;
    let request = format!("GET /v1/me HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {ANNA}\r\n\r\n");
    let mut of_tenant = connected(&fixture, request.as_bytes()).await;
    assert!(of_tenant.read(&mut [0; 4096]).await.unwrap() > 0);
    let mut strangers = Vec::new();
    for _ in 0..STRANGERS {
        let mut stranger = connected(&fixture, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        timeout(SOON, stranger.read(&mut [0; 4096])).await.unwrap().unwrap();
        strangers.push(stranger);
    }
    all_others_get_in(&fixture).await;
    of_tenant.write_all(request.as_bytes()).await.unwrap();
    let read = timeout(SOON, of_tenant.read(&mut [0; 4096])).await.unwrap().unwrap();
    assert!(read > 0, "the connection of a tenant was not closed to make a place free");
    drop(strangers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_or_never_end_their_head_keep_no_caller_out() {
    for begun in [&b""[..], b"GET /healthz HTTP/1.1\r\nHost: "] {
        let fixture = small().await;
        let mut strangers = Vec::new();
        for _ in 0..STRANGERS {
            strangers.push(connected(&fixture, begun).await);
        }
        all_others_get_in(&fixture).await;
        drop(strangers);
    }
}

/// How many connections without a key come back when they are closed: far more than there are seats.
const RETURNING: usize = 3000;

/// Begins a head, sends a byte of it now and then, and reconnects when it is closed.
async fn keeps_coming(address: SocketAddr, returned: Arc<AtomicUsize>) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ").await;
            while timeout(Duration::from_millis(500), stream.read_u8()).await.is_err() {
                _ = stream.write_all(b"x").await;
            }
        }
        sleep(Duration::from_millis(200)).await;
        returned.fetch_add(1, Ordering::Relaxed);
    }
}

/// Trap: every connection without a key had a second before it was closed. Those that reconnected took each free
/// seat, and all other callers waited for seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_that_are_slow_and_come_back_keep_no_caller_waiting() {
    let fixture = small().await;
    let returned = Arc::new(AtomicUsize::new(0));
    let comes = |_| tokio::spawn(keeps_coming(fixture.address, Arc::clone(&returned)));
    let strangers: Vec<_> = (0..RETURNING).map(comes).collect();
    let have_returned = async || (returned.load(Ordering::Relaxed) > STRANGERS).then_some(());
    eventually("strangers have been sent away and come back", have_returned).await;
    // Strangers that keep others waiting do so every time. A machine that is busy for a moment does not.
    let mut waited = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        all_others_get_in(&fixture).await;
        waited.push(begun.elapsed());
    }
    strangers.iter().for_each(tokio::task::JoinHandle::abort);
    let shortest = waited.iter().min().copied().unwrap_or_default();
    assert!(shortest < Duration::from_secs(2), "{waited:?} for six requests each, one after the other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connections_of_one_tenant_keep_no_other_tenant_out() {
    let fixture = small().await;
    let request = format!("GET /v1/me HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {ANNA}\r\n\r\n");
    let mut of_anna = Vec::new();
    for _ in 0..STRANGERS {
        let mut stream = connected(&fixture, request.as_bytes()).await;
        timeout(SOON, stream.read(&mut [0; 4096])).await.unwrap().unwrap();
        of_anna.push(stream);
    }
    all_others_get_in(&fixture).await;
    drop(of_anna);
}

/// That the key is in no log is tested with `serve`: `no_secret_is_in_the_log_at_any_level`.
#[tokio::test]
async fn wrong_keys_are_counted_and_slowed_down_and_right_ones_are_not() {
    let fixture = Fixture::new().await;
    let form = "application/x-www-form-urlencoded";
    let wrong = "wrong67890wrong67890wrong67890wr";
    let guesses = [
        Ask::get("/v1/me").key(wrong),
        Ask::get(format!("/res.php?key={wrong}&action=getbalance")),
        Ask::post("/getBalance", &json!({ "clientKey": wrong })),
        Ask::get("/v1/admin/state").key(wrong),
        Ask::new("POST", "/in.php")
            .header("Content-Type", form)
            .body(&format!("key={wrong}&method=turnstile")),
    ];
    let mut waits = Vec::new();
    for guess in guesses {
        let begun = Instant::now();
        fixture.ask(guess).await;
        waits.push(begun.elapsed());
    }
    let second = Duration::from_secs(1);
    assert!(
        waits[..3].iter().all(|wait| *wait < second) && waits[3..].iter().all(|wait| *wait >= second),
        "{waits:?}"
    );
    let begun = Instant::now();
    assert_eq!(fixture.ask(Ask::get("/v1/me").key(ANNA)).await.status, 200);
    assert_eq!(fixture.ask(Ask::get("/v1/me")).await.status, 401, "no key at all is not a guess");
    assert!(begun.elapsed() < second, "from the same address, with the right key or none");
    let metrics = fixture.ask(Ask::get("/metrics").key(ADMIN)).await.text;
    assert!(metrics.contains("\nquittance_wrong_keys_total 5\n"), "{metrics}");
}

/// Trap: `<img src="http://127.0.0.1:8780/in.php?...">` on a page, in a browser that sends neither `Origin` nor
/// `Sec-Fetch-Site`.
#[tokio::test]
async fn a_page_in_a_browser_places_no_order_where_no_key_is_needed() {
    let fixture = Fixture::with(Vec::new()).await;
    let query = format!("key={ANNA}&method=turnstile&sitekey=hold-1&pageurl=https://shop.example.com/");
    let safari =
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_13_6) AppleWebKit/605.1.15 Version/12.1 Safari/605.1.15";
    let image = "image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5";
    let task = json!({ "clientKey": ANNA, "task": { "type": "TurnstileTaskProxyless",
        "websiteKey": "hold-1", "websiteURL": "https://shop.example.com/" } });
    let plain =
        |path: &str, body: &str| Ask::new("POST", path).header("Content-Type", "text/plain").body(body);
    for ask in [
        Ask::get(format!("/in.php?{query}")),
        plain("/in.php", &query),
        plain("/createTask", &task.to_string()),
        plain("/v1/orders", &order("hold-1").to_string()),
    ] {
        let by_agent = ask.clone().header("User-Agent", safari);
        let by_both = by_agent.clone().header("Accept", image);
        for seen in [by_agent, by_both, ask.clone().header("Accept", image)] {
            let response = fixture.ask(seen.clone()).await;
            let is_refused = response.status == 403 || response.text.contains("ERROR_IP_NOT_ALLOWED");
            assert!(is_refused, "{seen:?}: {response:?}");
        }
    }
    assert_eq!(fixture.provider.submits("hold-1"), 0);
    let listed = fixture.ask(Ask::get("/v1/orders?status=all")).await.order(200);
    assert_eq!(listed, json!({ "orders": [] }));
    let response =
        fixture.ask(Ask::get(format!("/in.php?{query}")).header("User-Agent", "python-requests/2.32")).await;
    assert!(response.text.starts_with("OK|"), "a program is let in: {response:?}");
}

#[tokio::test]
async fn a_tenant_does_not_get_the_balance_of_the_provider_unless_it_may_see_it() {
    let mut tenants = both();
    tenants[1].sees_balance = true;
    let fixture = Fixture::with(tenants).await;
    let response = async |key: &str| {
        let classic = fixture.ask(Ask::get(format!("/res.php?key={key}&action=getbalance"))).await.text;
        let json =
            fixture.ask(Ask::post("/getBalance", &json!({ "clientKey": key }))).await.json()["balance"]
                .clone();
        let threads =
            fixture.ask(Ask::get(format!("/res.php?key={key}&action=threadsinfo&json=1"))).await.text;
        (
            classic,
            json.as_f64().unwrap(),
            threads.contains("\"working_threads\":2") || threads.contains("\"working_threads\":\"2\""),
        )
    };
    assert_eq!(response(ANNA).await, ("10.00".to_owned(), 10.0, false));
    let (classic, json, sees_threads) = response(BERT).await;
    assert!(
        classic.starts_with("12.5") && (json - 12.5).abs() < 1e-9 && sees_threads,
        "{classic} {json} {sees_threads}"
    );
    fixture.ask(Ask::get("/v1/account").key(ANNA)).await.must_be(403, "forbidden");
}

#[tokio::test]
async fn a_cursor_of_another_tenant_of_another_list_or_altered_is_a_clear_error() {
    let fixture = Fixture::new().await;
    for n in 0..3 {
        for key in [ANNA, BERT] {
            fixture.ask(Ask::post("/v1/orders", &order(&format!("hold-{n}"))).key(key)).await.order(202);
        }
    }
    let page =
        |query: String, key: &'static str| fixture.ask(Ask::get(format!("/v1/orders?{query}")).key(key));
    let first = page("status=all&limit=1".into(), ANNA).await.order(200);
    let cursor = first["next"].as_str().unwrap().to_owned();
    assert_eq!(
        page(format!("status=all&after={cursor}"), ANNA).await.order(200)["orders"].as_array().unwrap().len(),
        2
    );
    let mut altered = cursor.clone().into_bytes();
    altered[7] = if altered[7] == b'0' { b'1' } else { b'0' };
    let altered = String::from_utf8(altered).unwrap();
    for (query, key) in [
        (format!("status=all&after={cursor}"), BERT),
        (format!("status=open&after={cursor}"), ANNA),
        (format!("status=all&after={altered}"), ANNA),
        (format!("status=all&after={}", &cursor[..64]), ANNA),
        ("status=all&after=nonsense".to_owned(), ANNA),
    ] {
        let refused = page(query.clone(), key).await;
        let problem = refused.must_be(422, "bad_params");
        assert_eq!(problem["field"], "after", "{query}");
        assert!(
            problem["detail"].as_str().unwrap().contains("`next` of the page before"),
            "{query}: {problem}"
        );
    }
}
