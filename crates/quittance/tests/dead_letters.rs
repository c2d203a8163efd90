//! Many dead letters on the embedded store: listed, filtered, rehearsed and exported through `/v1`, in bounded
//! memory. A million of them take minutes and several gigabytes of disk, so there are fewer by default:
//! `LETTERS=1000000 cargo test --release -p quittance --test dead_letters -- --nocapture`.
#![expect(clippy::unwrap_used, reason = "whatever goes wrong in a test is to be seen at once")]
#![expect(clippy::disallowed_methods, reason = "what is measured takes real time")]

use futures_util::future::join_all;
use quittance::lifecycle::timeline::Timeline;
use quittance::lifecycle::{
    Attempt, Counters, DeadCause, Draft, Fault, FaultClass, KeySettings, Order, Phase, Policy, Priority,
    Progress, TimelineEvent, Timestamp,
};
use quittance::{GatewaySetup, Place, Quittance};
use quittance_ports::{Commit, Store, Version};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The most memory that any number of dead letters may need.
const GROWTH_MAX_MIB: u64 = 192;
const DIED: u64 = 1_800_000_000_000;
const AT_ONCE: u64 = 2000;
/// The filter matches one dead letter in this many.
const RARE: u64 = 1000;

fn dead_letter(n: u64) -> Order {
    let at = |ms: u64| Timestamp::from_millis(DIED + n + ms);
    let tenant = if n.is_multiple_of(RARE) { "rare" } else { "usual" };
    let draft = Draft::new(tenant)
        .with("sitekey", format!("0x4AAA-{n}").as_str())
        .with("pageurl", format!("https://shop-{}.example.com/login?step={n}", n % 100).as_str());
    let kind = quittance_protocol::kinds::kind("turnstile").unwrap();
    let (key, terms) = draft.check(&kind, KeySettings::default(), &Policy::DEFAULT, at(0), 0).unwrap();
    let fault = Fault::new(FaultClass::Unsolvable, "ERROR_CAPTCHA_UNSOLVABLE")
        .with_text("{\"status\":0,\"request\":\"ERROR_CAPTCHA_UNSOLVABLE\"}");
    let mut timeline = Timeline::default();
    timeline.tell(at(0), TimelineEvent::Placed { life: 1 });
    let mut attempts = Vec::new();
    for (number, second) in [(1, 10), (2, 20), (3, 30)] {
        timeline.tell(at(second), TimelineEvent::Submitted { attempt: number });
        timeline.tell(at(second + 5), TimelineEvent::Faulted { attempt: number, fault: fault.clone() });
        attempts.push(Attempt {
            number,
            sent: at(second),
            unsolved_at: at(second),
            accepted: false,
            progress: Progress::Faulted,
            task: None,
            report: None,
            made_for: None,
            cost: None,
            former: None,
            callback_address: None,
            account: None,
            drawn: None,
            unpriced_since: None,
        });
    }
    let cause = DeadCause::Spent(fault);
    timeline.tell(at(40), TimelineEvent::MovedToDeadLetters { cause: cause.clone() });
    Order {
        key,
        terms: Arc::new(terms),
        born: at(0),
        life: 1,
        placed: at(0),
        deadline: at(300_000),
        wanted: true,
        uncollected: false,
        phase: Phase::Dead { cause, at: at(40) },
        attempts,
        last_attempt: 3,
        retries: Default::default(),
        possible_doubles: 0,
        webhooks: Vec::new(),
        last_webhook: 0,
        put_back: None,
        steps_lost: false,
        followed_by: None,
        used_up: Vec::new(),
        life_attempts: 0,
        held_off: None,
        priority: Priority::Normal,
        booked_on: None,
        timeline,
    }
}

async fn fill(dir: &Path, size: u64) {
    let opened = Place::Embedded(dir.to_owned()).open().await.unwrap();
    let store: &dyn Store = &*opened.store;
    let mut next = 0;
    while next < size {
        let some: Vec<Arc<Order>> =
            (next..size.min(next + AT_ONCE)).map(|n| Arc::new(dead_letter(n))).collect();
        next += some.len() as u64;
        let counters = Counters { dead: 1, ..Counters::default() };
        let commits = some.iter().map(|order| store.commit(Version::ABSENT, order, &counters, order.placed));
        for done in join_all(commits).await {
            assert!(matches!(done.unwrap(), Commit::Done(_)));
        }
    }
}

/// The memory of this process in mebibytes; 0 if it is not known.
fn resident_mib(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|status| status.strip_prefix(line));
    found.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

struct AdminClient(Quittance);

impl AdminClient {
    /// Sends a request, and calls `each` with every part of the response.
    async fn ask(&self, method: &str, path: &str, body: &str, mut each: impl FnMut(&[u8])) {
        let mut request = http_request(method, path, body);
        request.headers_mut().insert("content-type", "application/json".parse().unwrap());
        let response = self.0.gateway().unwrap().ask(request).await;
        assert!(response.status().is_success(), "{path}: {}", response.status());
        let mut body = response.into_body();
        while let Some(frame) = http_body_util::BodyExt::frame(&mut body).await {
            each(&frame.unwrap().into_data().unwrap());
        }
    }

    async fn json(&self, method: &str, path: &str, body: &str) -> serde_json::Value {
        let mut whole = Vec::new();
        self.ask(method, path, body, |part| whole.extend(part)).await;
        serde_json::from_slice(&whole).unwrap()
    }

    /// Reads all pages of a list. Returns how many dead letters and how many requests there were.
    async fn list(&self, query: &str) -> (u64, u64) {
        let (mut dead_letters, mut requests, mut after) = (0, 0, String::new());
        loop {
            let page = self.json("GET", &format!("/v1/admin/dead?limit=200{query}{after}"), "").await;
            dead_letters += page["orders"].as_array().unwrap().len() as u64;
            requests += 1;
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return (dead_letters, requests),
            }
        }
    }
}

fn http_request(method: &str, path: &str, body: &str) -> hyper::Request<bytes::Bytes> {
    hyper::Request::builder().method(method).uri(path).body(bytes::Bytes::from(body.to_owned())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_great_many_dead_letters_are_listed_filtered_and_exported_in_bounded_memory() {
    let size: u64 = std::env::var("LETTERS").ok().and_then(|typed| typed.parse().ok()).unwrap_or(5000);
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    fill(dir.path(), size).await;
    println!("{size} dead letters written in {:.1?}", began.elapsed());
    let began = Instant::now();
    let node =
        Quittance::builder().embedded(dir.path()).gateway(GatewaySetup::default()).open().await.unwrap();
    println!("opened in {:.1?}", began.elapsed());
    let admin = AdminClient(node);
    // From here on the peak is counted again.
    _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = resident_mib("VmRSS:");
    let report_time = |what: &str, began: Instant| {
        println!(
            "{what} in {:.2?}; {} MiB held, {} MiB at most",
            began.elapsed(),
            resident_mib("VmRSS:"),
            resident_mib("VmHWM:")
        );
    };
    let began = Instant::now();
    let first = admin.json("GET", "/v1/admin/dead?limit=200", "").await;
    assert_eq!(first["orders"].as_array().unwrap().len() as u64, size.min(200));
    report_time("the first 200 listed", began);
    let began = Instant::now();
    let (dead_letters, requests) = admin.list("").await;
    assert_eq!(dead_letters, size);
    report_time(&format!("all {dead_letters} listed by {requests} requests"), began);
    let began = Instant::now();
    let (dead_letters, requests) = admin.list("&tenant=rare").await;
    assert_eq!(dead_letters, size.div_ceil(RARE));
    report_time(&format!("{dead_letters} of one tenant listed by {requests} requests"), began);
    let began = Instant::now();
    let (mut rehearsed, mut after) = (0, String::new());
    loop {
        let body = format!("{{\"action\":\"replay\",\"dry_run\":true{after}}}");
        let report_time = admin.json("POST", "/v1/admin/dead/bulk", &body).await;
        rehearsed += report_time["would_pay"].as_u64().unwrap();
        match report_time["next"].as_str() {
            Some(next) => after = format!(",\"after\":\"{next}\""),
            None => break,
        }
    }
    assert_eq!(rehearsed, size);
    report_time(&format!("a replay of {rehearsed} rehearsed"), began);
    let began = Instant::now();
    let (mut lines, mut bytes) = (0_u64, 0);
    admin
        .ask("GET", "/v1/admin/dead/export", "", |part| {
            lines += part.iter().filter(|byte| **byte == b'\n').count() as u64;
            bytes += part.len();
        })
        .await;
    assert_eq!(lines, size);
    report_time(&format!("{lines} exported, {} MiB", bytes / 1024 / 1024), began);
    let growth = resident_mib("VmHWM:").saturating_sub(before);
    println!("{before} MiB before, {growth} MiB more at most");
    assert!(growth <= GROWTH_MAX_MIB, "{growth} MiB more were needed");
}
