//! Listens in place of the provider, and forwards every request after the judge has checked it.

use crate::hosts::judge::{names_the_mark, takes_the_name_of_another};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

#[derive(Clone, Default)]
pub(crate) struct WireTap {
    log: Arc<TapLog>,
}

#[derive(Default)]
struct TapLog {
    arrived: watch::Sender<u64>,
    leaks: Mutex<Vec<String>>,
}

impl WireTap {
    pub(crate) async fn listen(self, provider: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tap = self.clone();
                let Ok(there) = TcpStream::connect(provider).await else { continue };
                let ((read, mut write), (mut from, to)) = (stream.into_split(), there.into_split());
                tokio::spawn(async move { _ = copy(&mut from, &mut write).await });
                tokio::spawn(async move { tap.pass(read, to).await });
            }
        });
        address
    }

    async fn pass(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (mut buffer, mut chunk) = (Vec::new(), vec![0; 64 * 1024]);
        while let Ok(count) = from.read(&mut chunk).await
            && count > 0
        {
            if to.write_all(&chunk[..count]).await.is_err() {
                return;
            }
            buffer.extend_from_slice(&chunk[..count]);
            while let Some(length) = whole_request(&buffer) {
                self.judge(&buffer.drain(..length).collect::<Vec<u8>>());
            }
        }
    }

    fn judge(&self, request: &[u8]) {
        let request = String::from_utf8_lossy(request).into_owned();
        if !request.contains("in.php") && !request.contains("createTask") {
            return;
        }
        self.log.arrived.send_modify(|arrived| *arrived += 1);
        if names_the_mark(&request) || takes_the_name_of_another(&request) {
            self.log.leaks.lock().unwrap().push(request);
        }
    }

    pub(crate) fn arrived(&self) -> u64 {
        *self.log.arrived.borrow()
    }

    /// Whether more requests than `before` arrive within some seconds.
    pub(crate) async fn arrives(&self, before: u64) -> bool {
        let mut arrived = self.log.arrived.subscribe();
        timeout(Duration::from_secs(10), arrived.wait_for(|arrived| *arrived > before)).await.is_ok()
    }

    pub(crate) fn leaks(&self) -> Vec<String> {
        self.log.leaks.lock().unwrap().clone()
    }
}

/// The length of the first request, if all of it has arrived.
fn whole_request(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let lines = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
    let length =
        lines.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let whole = head + length.unwrap_or(0);
    (buffer.len() >= whole).then_some(whole)
}
