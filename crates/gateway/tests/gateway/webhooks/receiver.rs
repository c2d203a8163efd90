//! A caller's own server, which records what it received and answers as the test says.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

#[derive(Debug)]
pub(crate) struct CallbackOutcome {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl CallbackOutcome {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

pub(crate) struct Receiver {
    address: SocketAddr,
    heard: Mutex<mpsc::Receiver<CallbackOutcome>>,
    count: Arc<AtomicUsize>,
}

impl Receiver {
    /// A server that answers with these statuses, and then with 200.
    pub(crate) async fn start(statuses: &[u16]) -> Self {
        let webhook = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = webhook.local_addr().unwrap();
        let (response, heard) = mpsc::channel(100);
        let count = Arc::new(AtomicUsize::new(0));
        let (statuses, counted) = (statuses.to_vec(), Arc::clone(&count));
        tokio::spawn(async move {
            while let Ok((stream, _)) = webhook.accept().await {
                let index = counted.fetch_add(1, Ordering::SeqCst);
                let heard = attend(stream, statuses.get(index).copied().unwrap_or(200)).await;
                if response.send(heard).await.is_err() {
                    return;
                }
            }
        });
        Self { address, heard: Mutex::new(heard), count }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn next(&self) -> CallbackOutcome {
        self.heard.lock().await.recv().await.unwrap()
    }

    pub(crate) fn heard(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

async fn attend(mut stream: TcpStream, status: u16) -> CallbackOutcome {
    let mut bytes = Vec::new();
    let (head_end, length) = loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "the call broke off");
        bytes.extend(&chunk[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            break (end, length);
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap().split(' ').map(str::to_owned);
    let (method, target) = (first.next().unwrap(), first.next().unwrap());
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let body = String::from_utf8(bytes[head_end + 4..head_end + 4 + length].to_vec()).unwrap();
    let reply = format!(
        "HTTP/1.1 {status} X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(reply.as_bytes()).await.unwrap();
    CallbackOutcome { method, target, headers, body }
}

/// The signature that a library of the standard expects. It is computed independently of the code that it checks.
pub(crate) fn signature(secret: &[u8; 32], signed: &str) -> String {
    use base64::Engine as _;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(signed.as_bytes());
    format!("v1,{}", base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes()))
}
