//! A connection that counts the bytes that it sends. Whether one byte of a request has left is the difference between
//! *never arrived* and *in doubt*. No error kind shows that, so the bytes are counted.

use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Counts the bytes that were sent. TLS has two counts, before and after encryption: a TLS close message is no byte
/// of a request, and bytes in the TLS buffer have not left.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    counts: Vec<Arc<AtomicU64>>,
}

impl Meter {
    pub(crate) fn new(count: Arc<AtomicU64>) -> Self {
        Self { counts: vec![count] }
    }

    pub(crate) fn and(mut self, count: Arc<AtomicU64>) -> Self {
        self.counts.push(count);
        self
    }

    pub(crate) fn read(&self) -> MeterReading {
        MeterReading(self.counts.iter().map(|count| count.load(Ordering::Acquire)).collect())
    }

    /// Whether bytes that were written after `then` have left this machine's memory.
    pub(crate) fn has_sent_since(&self, then: &MeterReading) -> bool {
        self.read().0.iter().zip(&then.0).all(|(now, then)| now > then)
    }
}

pub(crate) struct MeterReading(Vec<u64>);

/// A socket that several owners can look at. Written bytes are counted when the kernel has taken them.
pub(crate) struct MeteredSocket {
    socket: Arc<TcpStream>,
    written: Arc<AtomicU64>,
}

impl MeteredSocket {
    pub(crate) fn new(socket: TcpStream) -> (Self, Probe, Arc<AtomicU64>) {
        let socket = Arc::new(socket);
        let written = Arc::new(AtomicU64::new(0));
        (Self { socket: socket.clone(), written: written.clone() }, Probe(socket), written)
    }
}

/// Checks an idle connection.
pub(crate) struct Probe(Arc<TcpStream>);

impl Probe {
    /// Whether the other side has neither closed the connection nor sent unrequested bytes. It asks the kernel,
    /// because the runtime notices a close only later.
    pub(crate) fn is_quiet(&self) -> bool {
        let peeked = socket2::SockRef::from(&*self.0).peek(&mut [MaybeUninit::uninit()]);
        peeked.is_err_and(|why| why.kind() == ErrorKind::WouldBlock)
    }
}

impl AsyncRead for MeteredSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            match self.socket.try_read(into.initialize_unfilled()) {
                Ok(count) => {
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(why) => return Poll::Ready(Err(why)),
            }
        }
    }
}

impl MeteredSocket {
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_write_ready(cx))?;
            match send(&self.socket) {
                Ok(count) => {
                    self.written.fetch_add(count as u64, Ordering::AcqRel);
                    return Poll::Ready(Ok(count));
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(why) => return Poll::Ready(Err(why)),
            }
        }
    }
}

impl AsyncWrite for MeteredSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| socket.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| socket.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = socket2::SockRef::from(&*self.socket).shutdown(std::net::Shutdown::Write);
        Poll::Ready(match done {
            Err(why) if why.kind() == ErrorKind::NotConnected => Ok(()),
            done => done,
        })
    }
}

/// Counts written bytes when the layer below has taken them.
pub(crate) struct MeteredLayer<S> {
    inner: S,
    written: Arc<AtomicU64>,
}

impl<S> MeteredLayer<S> {
    pub(crate) fn new(inner: S) -> (Self, Arc<AtomicU64>) {
        let written = Arc::new(AtomicU64::new(0));
        (Self { inner, written: written.clone() }, written)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredLayer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredLayer<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))?;
        self.written.fetch_add(count as u64, Ordering::AcqRel);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// There is no await between the close and the check, so the runtime cannot know of the close.
    #[tokio::test]
    async fn a_probe_sees_at_once_what_the_other_side_did() {
        type Peer = std::net::TcpStream;
        type PeerAction = fn(Peer) -> Option<Peer>;
        let actions: [(PeerAction, bool); 3] = [
            (Some, true),
            (|peer| (&peer).write_all(b"x").ok().map(|()| peer), false),
            (|peer| peer.shutdown(std::net::Shutdown::Both).ok().and(None), false),
        ];
        for (action, is_quiet) in actions {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (peer, _) = listener.accept().unwrap();
            let (_wire, probe, _) = MeteredSocket::new(ours);
            assert!(probe.is_quiet());
            let _peer = action(peer);
            assert_eq!(probe.is_quiet(), is_quiet);
        }
    }
}
