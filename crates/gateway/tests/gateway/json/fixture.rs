//! A whole gateway on its own port, with a provider that solves every task at once.

use crate::still_clock::StillClock;
use quittance_engine::{Engine, Settings, World};
use quittance_gateway::{
    CommitFeed, Gateway, GatewaySettings, OrderService, Tenants, WebhookSettings, Webhooks, webhook_text,
};
use quittance_lifecycle::{Money, Payload, ProviderAnswer, SubmitOutcome};
use quittance_ports::{Account, FixedProvider, MemoryMembership, MemorySpill, MemoryStore, MemoryWebhooks};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Solves every task at once.
fn prompt() -> FixedProvider {
    let payload = Payload::text("solved");
    let answer = ProviderAnswer { payload, took_at_least: None, cost: Some(Money(1000)) };
    let account = Account { balance: Some(Money(3_500_000)), threads: None };
    FixedProvider { reply: SubmitOutcome::Answered(answer), account: Some(account) }
}

pub(crate) struct JsonServer {
    address: SocketAddr,
}

impl JsonServer {
    pub(crate) async fn open() -> Self {
        let world = World {
            store: Arc::new(MemoryStore::default()),
            providers: vec![Arc::new(prompt())],
            clock: Arc::new(StillClock),
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::new(MemoryMembership::default()),
        };
        let engine = Arc::new(Engine::new(world, Settings::new(1, quittance_protocol::kinds::kind)));
        let worker = Arc::clone(&engine);
        tokio::spawn(async move { worker.work().await });
        let tenants = Tenants::new(Vec::new(), None);
        let webhooks = Webhooks::new(WebhookSettings::default(), Arc::new(StillClock), webhook_text);
        let orders = OrderService::new(engine, tenants, CommitFeed::new([]), webhooks);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(Gateway::new(orders, GatewaySettings::default()).serve(listener, None));
        Self { address }
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.connect_as("127.0.0.1").await
    }

    /// A client that names another host than the address to which it connects.
    pub(crate) async fn connect_as(&self, host: &str) -> Connection {
        Connection(TcpStream::connect(self.address).await.unwrap(), host.to_owned())
    }
}

/// One connection that is used for several requests.
pub(crate) struct Connection(TcpStream, String);

impl Connection {
    /// The head of a response in lower case, and its body.
    pub(crate) async fn exchange(&mut self, method: &str, path: &str, body: &str) -> (String, String) {
        let length = body.len();
        let host = &self.1;
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}");
        self.0.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    /// The reply of the JSON API, which is always JSON with status 200.
    pub(crate) async fn ask(&mut self, path: &str, body: &Value) -> Value {
        let (head, body) = self.exchange("POST", path, &body.to_string()).await;
        assert!(head.starts_with("http/1.1 200 ok\r\n"), "{path}: {head}");
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{path}: {head}");
        serde_json::from_str(&body).unwrap()
    }

    /// Polls without a pause until the task has ended.
    pub(crate) async fn result(&mut self, prefix: &str, id: &Value) -> Value {
        let poll = serde_json::json!({"clientKey": "any", "taskId": id});
        loop {
            let response = self.ask(&format!("{prefix}/getTaskResult"), &poll).await;
            if response["status"] != "processing" {
                return response;
            }
        }
    }
}
