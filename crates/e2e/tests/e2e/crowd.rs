//! Ten thousand callers at once, each with its own connection: half wait in one call, half poll. All get answers, the
//! daemon's memory stays bounded, and after they have gone, nothing is left of them.

use crate::provider::Sim;
use crate::sandbox::Sandbox;
use crate::serve::Serve;
use crate::usage::usage_equals_ledger_to_the_cent;
use crate::wait::until;
use serde_json::Value;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CALLERS: usize = 10_000;
/// The number of different orders, which the callers share.
const ORDERS: usize = 100;
/// The most bytes of memory that each waiting caller may cost the daemon, everything included.
const BYTES_EACH_MAX: u64 = 40 * 1024;
/// How many may connect at once. The system drops a connection if its queue is full, and makes the caller wait for
/// seconds.
const KNOCKING: usize = 500;
const KEY: &str = "0123456789abcdef0123456789abcdef";

#[derive(Debug)]
struct CrowdCaller {
    stream: TcpStream,
    host: String,
}

impl CrowdCaller {
    async fn connect(address: &str) -> Self {
        loop {
            match TcpStream::connect(address).await {
                Ok(stream) => return Self { stream, host: address.to_owned() },
                // So many at once fill the queue of the listening socket.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn ask(&mut self, verb: &str, target: &str, more: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{verb} {target} HTTP/1.1\r\nHost: {}\r\n{more}Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.expect("the daemon reads");
        let mut bytes = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            let count = self.stream.read(&mut chunk).await.expect("the daemon answers");
            assert!(count > 0, "the daemon hung up: {}", String::from_utf8_lossy(&bytes));
            bytes.extend(&chunk[..count]);
            let output = String::from_utf8_lossy(&bytes);
            let Some((head, body)) = output.split_once("\r\n\r\n") else { continue };
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.expect("every answer says how long it is") {
                let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
                return (status.expect("an answer begins with its status"), body.to_owned());
            }
        }
    }

    /// Waits for the answer in one call, and calls again if that was too short.
    async fn waits(&mut self, n: usize) -> String {
        let order = format!(
            r#"{{"kind":"turnstile","params":{{"sitekey":"site-{}","pageurl":"https://example.com/"}}}}"#,
            n % ORDERS
        );
        loop {
            let more = "Prefer: wait=60\r\nContent-Type: application/json\r\n";
            let (status, body) = self.ask("POST", "/v1/orders", more, &order).await;
            assert!(matches!(status, 200 | 202), "{status}: {body}");
            if status == 200 {
                let output: Value = serde_json::from_str(&body).expect("it speaks JSON");
                return output["answer"]["text"].as_str().expect("there is an answer").to_owned();
            }
        }
    }

    async fn polls(&mut self, n: usize) -> String {
        let target = format!(
            "/in.php?key={KEY}&method=turnstile&sitekey=site-{}&pageurl=https://example.com/",
            n % ORDERS
        );
        let (_, output) = self.ask("GET", &target, "", "").await;
        let id = output.strip_prefix("OK|").unwrap_or_else(|| panic!("{output}")).to_owned();
        loop {
            let (status, output) =
                self.ask("GET", &format!("/res.php?key={KEY}&action=get&id={id}"), "", "").await;
            assert_eq!(status, 200, "{output}");
            match output.strip_prefix("OK|") {
                Some(token) => return token.to_owned(),
                None => assert_eq!(output, "CAPCHA_NOT_READY"),
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// A number about a process, from the system.
fn memory(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("the system counts memory") * 1024
}

fn handles(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count()
}

async fn crowd(address: String) -> Vec<(usize, String)> {
    let address = Arc::new(address);
    let knocking = Arc::new(Semaphore::new(KNOCKING));
    let mut callers = JoinSet::new();
    for n in 0..CALLERS {
        let (address, knocking) = (Arc::clone(&address), Arc::clone(&knocking));
        callers.spawn(async move {
            let knock = knocking.acquire().await.expect("it is never closed");
            let mut caller = CrowdCaller::connect(&address).await;
            drop(knock);
            let token = if n % 2 == 0 { caller.waits(n).await } else { caller.polls(n).await };
            (n, token)
        });
    }
    callers.join_all().await
}

/// How many more files may be open at the end: the store opens its files at first use, and the provider's connections
/// stay idle for a while.
const HANDLES_MORE: usize = 16;

#[test]
fn ten_thousand_callers_at_once_are_all_answered_and_leave_nothing_behind() {
    // Slow enough that all callers are there before the first answer is.
    let sim = Sim::start_with("2captcha", &["--speed", "2"]);
    let serve =
        Serve::start(Sandbox::of(&sim).set("provider.main.reply_wait=10s").set("timing.submit_wait=15s"));
    let address = serve.http.strip_prefix("http://").expect("it is plain http").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (handles_before, memory_before) = (handles(serve.pid()), memory(serve.pid(), "VmRSS"));
    let answers = runtime.block_on(crowd(address));
    assert_eq!(answers.len(), CALLERS);
    let ledger = sim.ledger();
    assert_eq!(ledger.accepted(), ORDERS as u64, "each was paid for once");
    for task in ledger.tasks() {
        let site = task["params"]["sitekey"].as_str().expect("it has a site");
        let n: usize = site.trim_start_matches("site-").parse().expect("it is one of ours");
        let token = task["answer"].as_str().expect("it was answered");
        let tokens = answers.iter().filter(|(caller, _)| caller % ORDERS == n);
        assert!(tokens.map(|(_, tokens)| tokens).all(|tokens| tokens == token), "the token of {site}");
    }
    let most = memory(serve.pid(), "VmHWM") - memory_before;
    assert!(most < CALLERS as u64 * BYTES_EACH_MAX, "{most} bytes more than before");
    until("every connection is gone", || {
        (handles(serve.pid()) <= handles_before + HANDLES_MORE).then_some(())
    });
    usage_equals_ledger_to_the_cent(&serve.sandbox, &sim);
    serve.end_in_peace();
}
