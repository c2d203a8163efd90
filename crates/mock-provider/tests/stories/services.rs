//! Tests of several services in one process: each has its own port, dialect, accounts, faults and ledger.

use crate::wire::{HttpReply, LIMIT, TURNSTILE, request, talk};
use quittance_mock_provider::{
    BanLimits, DEMO_KEY, Ledger, MillisRange, MockAccount, MockClassicDialect, MockJsonLimits, MockKey,
    MockProvider, MockServiceDialect, MockServices, ServiceSettings, ServiceSummary, ServicesError,
    ServicesLedger, Settings,
};
use serde_json::{Value, json};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn quick() -> Settings {
    Settings::quick(MockClassicDialect::TwoCaptcha)
}

fn service(name: &str, dialect: MockServiceDialect, settings: Settings) -> ServiceSettings {
    ServiceSettings::new(name, dialect, settings).expect("a good name")
}

struct Services(MockServices);

impl Services {
    async fn start(services: Vec<ServiceSettings>) -> Self {
        Self(MockServices::start(ANY, services).await.expect("free ports"))
    }

    /// Two quick services of 2captcha, `a` and `b`.
    async fn pair() -> Self {
        let both = ["a", "b"].map(|name| service(name, MockServiceDialect::TwoCaptcha, quick()));
        Self::start(both.into()).await
    }

    fn provider(&self, name: &str) -> &MockProvider {
        self.0.service(name).expect("a service of this name")
    }

    async fn send(&self, address: SocketAddr, raw: &[u8]) -> io::Result<HttpReply> {
        tokio::time::timeout(LIMIT, talk(address, raw)).await.expect("a reply in time")
    }

    /// Sends a request to the control address.
    async fn control(&self, verb: &str, path: &str, body: &Value) -> HttpReply {
        let raw = request(verb, path, Some("application/json"), body.to_string().as_bytes());
        self.send(self.0.address(), &raw).await.expect("a reply")
    }

    async fn change(&self, verb: &str, path: &str, body: &Value) {
        let reply = self.control(verb, path, body).await;
        assert_eq!((reply.status, reply.text()), (200, r#"{"ok":true}"#), "{path}");
    }

    async fn read<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        let reply = self.control("GET", path, &Value::Null).await;
        serde_json::from_slice(&reply.body).unwrap_or_else(|why| panic!("{why}: {}", reply.text()))
    }

    /// Posts to a service, and returns what it answers, or an error if the connection broke.
    async fn post(&self, name: &str, target: &str, body: &str) -> io::Result<HttpReply> {
        let raw = request("POST", target, Some("application/x-www-form-urlencoded"), body.as_bytes());
        self.send(self.provider(name).address(), &raw).await
    }

    async fn submit(&self, name: &str, params: &str) -> String {
        self.submit_as(name, DEMO_KEY, params).await
    }

    async fn submit_as(&self, name: &str, key: &str, params: &str) -> String {
        let reply = self.post(name, "/in.php", &format!("key={key}&{params}")).await;
        reply.expect("a reply").text().to_owned()
    }

    async fn create(&self, name: &str, task: &Value) -> Value {
        self.call(name, "createTask", &json!({ "clientKey": DEMO_KEY, "task": task })).await
    }

    async fn call(&self, name: &str, method: &str, body: &Value) -> Value {
        let reply = self.post(name, &format!("/{method}"), &body.to_string()).await.expect("a reply");
        serde_json::from_slice(&reply.body).unwrap_or_else(|why| panic!("{why}: {}", reply.text()))
    }
}

fn is_taken(reply: &str) -> bool {
    reply.starts_with("OK|")
}

#[tokio::test]
async fn faults_of_one_service_leave_the_others_alone() {
    let services = Services::pair().await;
    services.change("PUT", "/mock/services/a/faults", &json!({"submit": {"status_before": 1.0}})).await;
    assert!(
        services.post("a", "/in.php", &format!("key={DEMO_KEY}&{TURNSTILE}")).await.unwrap().status >= 500
    );
    assert!(is_taken(&services.submit("b", TURNSTILE).await));
    services.change("DELETE", "/mock/services/a/faults", &Value::Null).await;
    assert!(is_taken(&services.submit("a", TURNSTILE).await));
    services
        .change("PUT", "/mock/services/a/script", &json!([{"on": "in.php", "do": {"code": "ERROR_X"}}]))
        .await;
    assert_eq!(services.submit("a", TURNSTILE).await, "ERROR_X");
    assert!(is_taken(&services.submit("b", TURNSTILE).await));
    services.change("POST", "/mock/services/a/reset", &Value::Null).await;
    let accepted = ["a", "b"].map(|name| services.provider(name).totals().accepted);
    assert_eq!(accepted, [0, 2]);
    // A service also answers for itself, on its own port.
    let own =
        services.send(services.provider("b").address(), &request("GET", "/mock/ledger", None, b"")).await;
    let ledger: Ledger = serde_json::from_slice(&own.unwrap().body).unwrap();
    assert_eq!((ledger.totals.accepted, ledger.tasks[0].service.as_deref()), (2, Some("b")));
}

#[tokio::test]
async fn the_ledger_is_read_by_service_and_account_and_as_a_whole() {
    let mut settings = quick();
    let key = "e".repeat(32);
    settings.accounts.push(MockAccount {
        name: "other".to_owned(),
        key: MockKey::new(key.clone()),
        balance_micros: 3_000,
        threads: 1,
        plan_ended: false,
    });
    let b = service("b", MockServiceDialect::TwoCaptcha, settings);
    let a = service("a", MockServiceDialect::CaptchaAi, quick());
    let services = Services::start(vec![a, b]).await;
    for _ in 0..2 {
        assert!(is_taken(&services.submit("a", TURNSTILE).await));
        assert!(is_taken(&services.submit("b", TURNSTILE).await));
    }
    assert!(is_taken(&services.submit_as("b", &key, TURNSTILE).await));
    assert_eq!(services.submit_as("b", &key, TURNSTILE).await, "ERROR_ZERO_BALANCE");
    let poll = format!("/res.php?key={key}&action=getbalance");
    let raw = request("GET", &poll, None, b"");
    services.send(services.provider("b").address(), &raw).await.expect("a reply");

    let other: Ledger = services.read("/mock/services/b/ledger?account=other").await;
    let account = &other.accounts[0];
    assert_eq!((other.accounts.len(), account.account.as_str(), other.tasks.len()), (1, "other", 1));
    assert_eq!((account.submits, account.accepted, account.polls), (2, 1, 1));
    assert_eq!((account.paid_micros, account.balance_micros, account.open_max), (2_990, 10, 1));
    assert_eq!(account.codes["ERROR_ZERO_BALANCE"], 1);
    let whole: Ledger = services.read("/mock/services/b/ledger").await;
    assert_eq!((whole.totals.accepted, whole.tasks.len(), whole.accounts.len()), (3, 3, 2));

    let all: ServicesLedger = services.read("/mock/ledger").await;
    let sums: Vec<_> = all.services.iter().map(|one| (one.service.as_str(), one.totals.accepted)).collect();
    assert_eq!(sums, [("a", 2), ("b", 3)]);
    let ids: std::collections::BTreeSet<_> = all.tasks.iter().map(|task| &task.id).collect();
    assert_eq!((all.tasks.len(), ids.len()), (5, 5), "no two services give out the same id");
    let text = services.control("GET", "/mock/ledger", &Value::Null).await;
    assert!(!text.text().contains(DEMO_KEY) && !text.text().contains(&key));
    let list: Vec<ServiceSummary> = services.read("/mock/services").await;
    assert_eq!(list, services.0.list());
    assert_eq!(
        (list[1].accounts.join(" "), list[1].url.clone()),
        ("demo other".into(), services.provider("b").url())
    );
}

#[tokio::test]
async fn an_account_can_have_faults_prices_slots_and_times_of_its_own() {
    let mut settings = quick();
    let key = "e".repeat(32);
    let other =
        MockAccount { name: "other".to_owned(), key: MockKey::new(&key), ..settings.accounts[0].clone() };
    settings.accounts.push(other);
    let services = Services::start(vec![service("a", MockServiceDialect::TwoCaptcha, settings)]).await;
    let path = "/mock/services/a/faults?account=other";
    services.change("PUT", path, &json!({"submit": {"status_before": 1.0}})).await;
    let body = format!("key={key}&{TURNSTILE}");
    assert!(services.post("a", "/in.php", &body).await.expect("a reply").status >= 500);
    assert!(is_taken(&services.submit("a", TURNSTILE).await));
    services.change("PUT", "/mock/services/a/faults", &json!({"submit": {"html": 1.0}})).await;
    services.change("PATCH", path, &json!({"submit": {"status_before": 0.0}, "unsolvable": 1.0})).await;
    assert!(is_taken(&services.submit_as("a", &key, TURNSTILE).await));
    assert_eq!(services.read::<Value>(path).await["unsolvable"], 1.0);
    services.change("PUT", path, &json!("storm")).await;
    services.change("DELETE", path, &Value::Null).await;
    assert!(services.submit_as("a", &key, TURNSTILE).await.contains("<html>"), "the service's faults again");
    services.change("DELETE", "/mock/services/a/faults", &Value::Null).await;

    let forever = json!({"from": 3_600_000, "to": 3_600_001});
    let change = json!({"name": "other", "slots": 1, "price_micros": 70, "solve_ms": forever});
    services.change("POST", "/mock/services/a/reset", &Value::Null).await;
    services.change("PUT", "/mock/services/a/account", &change).await;
    assert!(is_taken(&services.submit_as("a", &key, TURNSTILE).await));
    assert_eq!(services.submit_as("a", &key, TURNSTILE).await, "ERROR_NO_SLOT_AVAILABLE");
    assert!(is_taken(&services.submit("a", TURNSTILE).await));
    assert!(is_taken(&services.submit("a", TURNSTILE).await));
    let accounts = services.provider("a").ledger().accounts;
    assert_eq!((accounts[1].paid_micros, accounts[1].open), (70, 1));
    assert_eq!(accounts[0].paid_micros, 2 * 2_990);
    let refused = services.control("PUT", path, &json!({"refused": 0.5})).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("the socket of the whole service"), "{}", refused.text());
}

#[tokio::test]
async fn a_service_dies_in_three_ways_and_comes_back() {
    let services = Services::pair().await;
    for how in ["refuse", "reset", "close"] {
        services.change("POST", "/mock/services/a/outage", &json!({"how": how})).await;
        let dead = &services.provider("a").state();
        assert_eq!(json!(dead.outage), how);
        // The listener may still take a connection that came while it was being closed.
        while services.post("a", "/in.php", &format!("key={DEMO_KEY}&{TURNSTILE}")).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(is_taken(&services.submit("b", TURNSTILE).await), "{how}");
        services.change("POST", "/mock/services/a/outage", &json!({"ms": 0})).await;
        while services.post("a", "/in.php", &format!("key={DEMO_KEY}&{TURNSTILE}")).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(services.provider("a").state().outage, None);
    }
}

#[tokio::test]
async fn a_hanging_service_answers_nothing_until_it_is_over() {
    let services = Services::pair().await;
    services.change("POST", "/mock/services/a/outage", &json!({"how": "hang"})).await;
    let accepted = services.provider("a").totals().accepted;
    let hung = services.post("a", "/in.php", "key=k");
    let end = async {
        let hangs = |ledger: &Ledger| ledger.totals.faults.contains_key("outage");
        assert!(services.provider("a").until(LIMIT, hangs).await);
        assert!(is_taken(&services.submit("b", TURNSTILE).await));
        services.change("POST", "/mock/services/a/outage", &json!({"ms": 0})).await;
    };
    let (hung, ()) = tokio::join!(hung, end);
    assert!(hung.is_err(), "no reply, only the end of the connection");
    assert_eq!(services.provider("a").totals().accepted, accepted);
    assert!(is_taken(&services.submit("a", TURNSTILE).await));
}

#[tokio::test]
async fn a_slow_in_php_takes_the_task_at_once_and_answers_late_while_polls_are_quick() {
    let services = Services::pair().await;
    services.change("PATCH", "/mock/services/a/faults", &json!({"submit": {"delay_ms": 3_600_000}})).await;
    let body = format!("key={DEMO_KEY}&{TURNSTILE}");
    let submit = services.post("a", "/in.php", &body);
    let watch = async {
        assert!(services.provider("a").until(LIMIT, |ledger| ledger.totals.accepted == 1).await);
        let poll = services.post("a", "/res.php", &format!("key={DEMO_KEY}&action=getbalance")).await;
        assert_eq!(poll.expect("a reply").text(), "9.99701");
        assert!(is_taken(&services.submit("b", TURNSTILE).await));
    };
    tokio::select! {
        reply = submit => panic!("a reply before its time: {reply:?}"),
        () = watch => {}
    }
    assert!(!services.provider("a").ledger().tasks[0].reply_delivered);
}

#[tokio::test]
async fn a_blocked_key_and_an_empty_account_are_of_one_account_and_can_be_undone() {
    let services = Services::pair().await;
    let account = "/mock/services/a/account";
    for (change, code, undo) in [
        (json!({"key_blocked": true}), "ERROR_KEY_DOES_NOT_EXIST", json!({"key_blocked": false})),
        (json!({"balance_micros": 0}), "ERROR_ZERO_BALANCE", json!({"balance_micros": 5_000_000})),
        (json!({"slots": 0}), "ERROR_NO_SLOT_AVAILABLE", json!({"slots": 5})),
    ] {
        let of_demo = |mut change: Value| {
            change["name"] = json!("demo");
            change
        };
        services.change("PUT", account, &of_demo(change)).await;
        // More often than wrong keys are allowed: the address is not banned.
        for _ in 0..6 {
            assert_eq!(services.submit("a", TURNSTILE).await, code);
        }
        assert!(is_taken(&services.submit("b", TURNSTILE).await));
        services.change("PUT", account, &of_demo(undo)).await;
        assert!(is_taken(&services.submit("a", TURNSTILE).await), "{code}");
    }
}

#[tokio::test]
async fn each_dialect_has_its_own_words_for_a_kind_that_it_does_not_take() {
    use MockServiceDialect::{AntiCaptcha, CapMonster, CapSolver, CaptchaAi, TwoCaptcha};
    let dialects = [CaptchaAi, TwoCaptcha, AntiCaptcha, CapSolver, CapMonster];
    let all = dialects.map(|dialect| service(dialect.name(), dialect, quick()));
    let services = Services::start(all.into()).await;
    for dialect in dialects {
        let name = dialect.name();
        let task_type =
            if dialect == CapSolver { "AntiTurnstileTaskProxyLess" } else { "TurnstileTaskProxyless" };
        let task = json!({"type": task_type, "websiteURL": "https://a.test/", "websiteKey": "0x4AAA"});
        if dialect.is_json() {
            assert_eq!(services.create(name, &task).await["errorId"], 0, "{name}");
        }
        let rejects = json!({"rejects": ["turnstile"]});
        services.change("PATCH", &format!("/mock/services/{name}/faults"), &rejects).await;
        if dialect.is_json() {
            let code = services.create(name, &task).await["errorCode"].clone();
            assert_eq!(code, "ERROR_TASK_NOT_SUPPORTED", "{name}");
        }
        if dialect.is_classic() {
            assert_eq!(services.submit(name, TURNSTILE).await, "ERROR_METHOD_CALL", "{name}");
        }
        assert!(services.provider(name).totals().faults["rejects"] > 0);
    }
    // What a service does not speak is not there.
    let no_method = services.call("capsolver", "in.php", &json!({"clientKey": DEMO_KEY})).await;
    assert_eq!(no_method["errorCode"], "ERROR_NO_SUCH_METHOD");
    assert_eq!(services.post("captchaai", "/createTask", "{}").await.expect("a reply").status, 404);
    let elsewhere =
        services.call("anticaptcha", "capsolver/createTask", &json!({"clientKey": DEMO_KEY})).await;
    assert_ne!(elsewhere["errorId"], 0);
    let v2 =
        "method=userrecaptcha&googlekey=6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI&pageurl=https://a.test/";
    assert_eq!(
        services.submit("anticaptcha", v2).await,
        "ERROR_METHOD_CALL",
        "its in.php takes pictures only"
    );
}

#[tokio::test]
async fn versions_and_task_types_can_be_rejected_apart() {
    let services = Services::pair().await;
    let key = "googlekey=6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI&pageurl=https://a.test/";
    services.change("PUT", "/mock/services/a/faults", &json!({"rejects": ["recaptcha_v3"]})).await;
    let v3 = format!("method=userrecaptcha&version=v3&{key}");
    assert_eq!(services.submit("a", &v3).await, "ERROR_METHOD_CALL");
    assert!(is_taken(&services.submit("b", &v3).await));
    assert!(is_taken(&services.submit("a", &format!("method=userrecaptcha&{key}")).await));
    services.change("PUT", "/mock/services/a/faults", &json!({"rejects": ["TurnstileTaskProxyless"]})).await;
    let task = json!({"type": "TurnstileTaskProxyless", "websiteURL": "https://a.test/", "websiteKey": "k"});
    assert_eq!(services.create("a", &task).await["errorId"], 23);
    assert!(is_taken(&services.submit("a", TURNSTILE).await), "the classic protocol has no task types");
}

#[tokio::test]
async fn bans_are_of_one_service_and_are_counted_by_account() {
    let hasty = || Settings {
        pace: BanLimits { submits_max: 2, submits_window_ms: 3_600_000, ..BanLimits::default() },
        ..quick()
    };
    let both = ["a", "b"].map(|name| service(name, MockServiceDialect::TwoCaptcha, hasty()));
    let services = Services::start(both.into()).await;
    for _ in 0..2 {
        assert!(is_taken(&services.submit("a", TURNSTILE).await));
    }
    assert_eq!(services.submit("a", TURNSTILE).await, "MAX_USER_TURN");
    assert!(is_taken(&services.submit("b", TURNSTILE).await));
    let ledger: Ledger = services.read("/mock/services/a/ledger?summary=1").await;
    assert_eq!(ledger.accounts[0].bans["MAX_USER_TURN"], 1);
    assert!(services.provider("b").ledger().accounts[0].bans.is_empty());
}

#[tokio::test]
async fn capmonster_bans_a_client_that_polls_one_task_too_often() {
    let settings = Settings {
        json: MockJsonLimits { polls_max: 2, ..MockJsonLimits::default() },
        solve_ms: MillisRange { from: 3_600_000, to: 3_600_001 },
        pace: BanLimits::default(),
        ..quick()
    };
    let services = Services::start(vec![service("c", MockServiceDialect::CapMonster, settings)]).await;
    let task = json!({"type": "TurnstileTask", "websiteURL": "https://a.test/", "websiteKey": "k"});
    let id = services.create("c", &task).await["taskId"].clone();
    let poll = json!({"clientKey": DEMO_KEY, "taskId": id});
    for _ in 0..2 {
        assert_eq!(services.call("c", "getTaskResult", &poll).await["status"], "processing");
    }
    for _ in 0..2 {
        let code = services.call("c", "getTaskResult", &poll).await["errorCode"].clone();
        assert_eq!(code, "ERROR_TOO_MUCH_REQUESTS");
    }
    assert_eq!(
        services.create("c", &task).await["errorCode"],
        "ERROR_TOO_MUCH_REQUESTS",
        "at every endpoint"
    );
    assert_eq!(services.provider("c").totals().bans["ERROR_TOO_MUCH_REQUESTS"], 1);
}

#[tokio::test]
async fn a_request_for_something_unknown_is_refused_with_what_there_is() {
    let services = Services::pair().await;
    for (path, words) in [
        ("/mock/services/c/ledger", "the services are: a, b"),
        ("/mock/faults", "/mock/services/NAME/faults"),
        ("/mock/services/a/ledger?account=x", "the accounts are: demo"),
        ("/mock/services/a/faults?account=x", "the accounts are: demo"),
        ("/in.php", "/mock/services/NAME/"),
    ] {
        let reply = services.control("GET", path, &Value::Null).await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.text().contains(words), "{path}: {}", reply.text());
    }
    let single = crate::wire::open(quick()).await;
    let raw = request("POST", "/mock/outage", None, br#"{"how":"refuse"}"#);
    let endless = single.raw(&raw).await.expect("a reply");
    assert_eq!(endless.status, 400);
    assert!(endless.text().contains("add \\\"ms\\\""), "{}", endless.text());
}

#[tokio::test]
async fn services_with_the_same_name_or_address_are_refused() {
    let two = |name| service(name, MockServiceDialect::TwoCaptcha, quick());
    let at = |name, listen| service(name, MockServiceDialect::TwoCaptcha, Settings { listen, ..quick() });
    let port = SocketAddr::from(([127, 0, 0, 1], 9));
    let start = |services| async move { MockServices::start(ANY, services).await.expect_err("refused") };
    assert!(matches!(start(vec![]).await, ServicesError::NoService));
    assert!(matches!(start(vec![two("a"), two("a")]).await, ServicesError::SameName(name) if name == "a"));
    let same = start(vec![at("a", port), at("b", port)]).await;
    assert_eq!(same.to_string(), "`b` and `a` both listen on 127.0.0.1:9: give each a port of its own");
    let running = Services::pair().await;
    let taken = start(vec![at("c", running.provider("a").address())]).await;
    assert!(matches!(taken, ServicesError::Listen { service: Some(name), .. } if name == "c"));
    let mut short = quick();
    short.accounts[0].key = MockKey::new("short");
    let bad = start(vec![service("d", MockServiceDialect::TwoCaptcha, short)]).await;
    assert!(bad.to_string().starts_with("service d: the key of account"), "{bad}");
    let address = running.0.address();
    running.0.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
