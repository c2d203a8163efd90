//! An engine behind a real server: a store that can be down, a spill that can be full, and a provider that never
//! answers, so that the test can call back for it.

use crate::flaky_store::FlakyStore;
use crate::still_clock::StillClock;
use async_trait::async_trait;
use quittance_engine::{CallbackAddress, Engine, PlacedOrder, Settings, World};
use quittance_gateway::{CALLBACK_PATH, CallbackApi, Limits};
use quittance_lifecycle::{
    CallbackResult, Draft, Fault, FaultClass, Payload, PollOutcome, ProviderAnswer, SubmitOutcome,
};
use quittance_ports::{
    Callback, CallbackMessage, Guard, IncomingEvent, MemorySpill, Params, Provider, Spill, SpillError,
    Submission,
};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A provider that takes every order and keeps the callback addresses.
#[derive(Default)]
struct Silent {
    addresses: Mutex<Vec<String>>,
    /// How many callbacks it had to read.
    read: AtomicUsize,
}

#[async_trait]
impl Provider for Silent {
    async fn report(&self, _task: &str, _is_good: bool) -> quittance_lifecycle::ReportOutcome {
        quittance_lifecycle::ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<quittance_ports::Account> {
        None
    }

    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        self.addresses.lock().unwrap().push(submission.callback.expect("there is an address").to_owned());
        SubmitOutcome::Accepted { task: "7".into() }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, _tasks: &[String]) -> Vec<(String, PollOutcome)> {
        Vec::new()
    }

    fn poll_batch_max(&self) -> usize {
        1
    }

    fn penalty(&self, _fault: &quittance_lifecycle::Fault) -> Option<quittance_ports::Penalty> {
        None
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    /// Reads `code=...` at the end of the query or the body. The dialects have their own tests.
    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        self.read.fetch_add(1, Ordering::Relaxed);
        let body = std::str::from_utf8(callback.body).ok()?;
        let code = callback.query.split_once("code=").or_else(|| body.split_once("code="))?.1;
        let word = match code.starts_with("ERROR") {
            true => CallbackResult::Faulted(Fault::new(FaultClass::Unsolvable, code)),
            false => CallbackResult::Answered(ProviderAnswer {
                payload: Payload::text(code),
                took_at_least: None,
                cost: None,
            }),
        };
        Some(CallbackMessage { task: Some("7".into()), word })
    }
}

#[derive(Default)]
pub(crate) struct Outages {
    pub(crate) store_is_away: Arc<AtomicBool>,
    pub(crate) spill_is_full: AtomicBool,
}

struct SmallSpill(MemorySpill, Arc<Outages>);

impl Spill for SmallSpill {
    fn keep(&self, arrival: &IncomingEvent) -> Result<(), SpillError> {
        if self.1.spill_is_full.load(Ordering::Relaxed) {
            return Err(SpillError::Full { bytes_max: 0 });
        }
        self.0.keep(arrival)
    }
    fn waiting(&self) -> Result<Vec<IncomingEvent>, SpillError> {
        self.0.waiting()
    }
    fn forget(&self, count: usize) -> Result<(), SpillError> {
        self.0.forget(count)
    }
}

pub(crate) struct Fixture {
    pub(crate) engine: Arc<Engine>,
    pub(crate) outages: Arc<Outages>,
    pub(crate) spill: MemorySpill,
    pub(crate) api: CallbackApi,
    pub(crate) placed: PlacedOrder,
    /// The path of the callback address that the provider got.
    pub(crate) path: String,
    address: SocketAddr,
    silent: Arc<Silent>,
}

impl Fixture {
    /// One order that the provider has taken, and an address for its callback.
    pub(crate) async fn with_one_order(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let outages = Arc::new(Outages::default());
        let (spill, silent) = (MemorySpill::default(), Arc::new(Silent::default()));
        let world = World {
            store: Arc::new(FlakyStore::new(&outages.store_is_away)),
            providers: vec![Arc::clone(&silent) as Arc<dyn Provider>],
            clock: Arc::new(StillClock),
            spill: Arc::new(SmallSpill(spill.clone(), Arc::clone(&outages))),
            webhook_sender: Arc::new(quittance_ports::MemoryWebhooks::default()),
            membership: Arc::new(quittance_ports::MemoryMembership::default()),
        };
        let mut settings = Settings::new(1, quittance_protocol::kinds::kind);
        settings.callback = Some(CallbackAddress::new(format!("http://{address}{CALLBACK_PATH}"), [7; 32]));
        let engine = Arc::new(Engine::new(world, settings));
        let worker = Arc::clone(&engine);
        tokio::spawn(async move { worker.work().await });
        let api = CallbackApi::new(Arc::clone(&engine), limits);
        tokio::spawn(api.clone().serve(listener));
        let draft = Draft::new("t").with("sitekey", "k").with("pageurl", "https://example.com/");
        let placed = engine.place("turnstile", draft).await.unwrap();
        let path = loop {
            if let Some(address) = silent.addresses.lock().unwrap().first() {
                break address[address.find(CALLBACK_PATH).unwrap()..].to_owned();
            }
            tokio::task::yield_now().await;
        };
        // Its reply is on record before the test speaks for the provider.
        while engine.read(&placed.key).await.unwrap().unwrap().phase.name() != "solving" {
            tokio::task::yield_now().await;
        }
        Self { engine, outages, spill, api, placed, path, address, silent }
    }

    /// How many callbacks the provider's adapter had to read.
    pub(crate) fn read_by_adapter(&self) -> usize {
        self.silent.read.load(Ordering::Relaxed)
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Whether a connection is accepted.
    pub(crate) async fn knock(&self) -> bool {
        TcpStream::connect(self.address).await.is_ok()
    }

    pub(crate) async fn send(&self, caller: &mut TcpStream, words: &str) {
        // A server that refuses a large request may do so before it has read all of it.
        _ = caller.write_all(words.as_bytes()).await;
    }

    /// The head of the response, while the caller still sends.
    pub(crate) async fn word(&self, caller: &mut TcpStream) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            heard.push(caller.read_u8().await.unwrap());
        }
        String::from_utf8_lossy(&heard).lines().next().unwrap_or_default().to_owned()
    }

    /// The status line of the response, or an empty text if the connection was closed without one.
    pub(crate) async fn answer(&self, mut caller: TcpStream) -> String {
        let mut answer = Vec::new();
        _ = caller.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }

    pub(crate) async fn say(&self, request: &str) -> String {
        let mut caller = self.connect().await;
        self.send(&mut caller, request).await;
        self.answer(caller).await
    }

    pub(crate) async fn get(&self, path: &str) -> String {
        self.say(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await
    }

    pub(crate) async fn post(&self, path: &str, content_type: &str, body: &str) -> String {
        let length = body.len();
        self.say(&format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
        .await
    }

    pub(crate) async fn phase(&self) -> &'static str {
        self.engine.read(&self.placed.key).await.unwrap().unwrap().phase.name()
    }
}
