//! One request: reads it whole and within the limits, passes it to its API, and always sends a response.

use super::timed_io::Answering;
use super::{
    Body, HttpServer, OverTls, Peer, PendingRequest, RequestBegun, RequestHandler, SMALL_BODY_BYTES, Shared,
    State, count, reached,
};
use crate::wrong_keys::{SenderSlot, Shown};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::{BodyExt, Either, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderValue};
use hyper::{Request, Response};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};

pub(super) const KIB: usize = 1024;
/// How many bytes of a body are searched for a key before the rest arrives.
const BEGINNING_BYTES: usize = 4 * KIB;
/// Oversized bodies are drained up to this limit, so that the client finishes sending and reads our 413.
const WASTE_BYTES_MAX: usize = 32 * KIB * KIB;

/// Why a request failed before its API answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    TooLarge,
    /// The body did not come in time.
    TooSlow,
    /// The body broke off.
    Broken,
    /// Too many requests or bodies are open.
    Overloaded,
    /// The API panicked.
    Panicked,
}

/// A body, and the permit for its memory.
type Whole = (Bytes, Option<OwnedSemaphorePermit>);

/// What the head of a request says about its body.
#[derive(Clone, Copy)]
struct AnnouncedSize {
    bytes: Option<usize>,
    /// The client sends the body only after "100 Continue".
    waits_for_permission: bool,
}

impl AnnouncedSize {
    fn of(headers: &HeaderMap) -> Self {
        let bytes = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { bytes, waits_for_permission: headers.contains_key(EXPECT) }
    }
}

impl HttpServer {
    /// Reads a request, and always answers it.
    pub(super) async fn handle(
        &self,
        handler: &dyn RequestHandler,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Response<Body> {
        count(&self.shared.counters.requests);
        let began = Instant::now();
        let (mut head, body) = request.into_parts();
        head.extensions.insert(RequestBegun(peer.stage.request_begun()));
        let (entry, is_alone) = (Arc::clone(&peer.entry), handler.has_one_tenant());
        let slot = SenderSlot::new(peer.address, move |shown| entry.is_known_as(shown, is_alone));
        head.extensions.insert(Arc::clone(&slot));
        if peer.is_over_tls {
            head.extensions.insert(OverTls);
        }
        let (method, size) = (head.method.clone(), AnnouncedSize::of(&head.headers));
        let mut request = handler.begin(head);
        if !request.is_reserved() {
            peer.stage.set_may_be_cut();
        }
        // A body may take long. Until its sender is known, its connection may be closed to make place for others.
        let look = |beginning: &[u8]| {
            if !peer.stage.is_known() {
                peer.entry.is_known_as(&request.shown_early(beginning), is_alone);
            }
            peer.stage.is_known()
        };
        let response = match peer.stage.paused(self.read(size, body, look)).await {
            Ok((body, _memory)) => {
                request.set_body(body);
                self.answer(&mut *request).await
            }
            Err(why) => {
                let mut response = self.refuse(&*request, why);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
        };
        if let Shown::WrongKey(pause) = slot.found() {
            peer.stage.paused(tokio::time::sleep(pause)).await;
        }
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (route, status) = (request.route_name(), response.status().as_u16());
        tracing::debug!(%method, route, status, ms, "answered");
        response
    }

    async fn answer(&self, request: &mut dyn PendingRequest) -> Response<Body> {
        let Shared { requests, own_requests, .. } = &*self.shared;
        let permits = if request.is_reserved() { own_requests } else { requests };
        let Ok(_permit) = permits.try_acquire() else {
            return self.refuse(request, RequestError::Overloaded);
        };
        match AssertUnwindSafe(request.answer()).catch_unwind().await {
            Ok(response) => response,
            Err(_) => {
                count(&self.shared.counters.panics);
                tracing::error!(
                    route = request.route_name(),
                    "an API panicked; its caller was asked to try again"
                );
                request.refuse(RequestError::Panicked)
            }
        }
    }

    fn refuse(&self, request: &dyn PendingRequest, why: RequestError) -> Response<Body> {
        count(&self.shared.counters.turned_away);
        request.refuse(why)
    }

    /// Reads the body. `look` gets the beginning while the body arrives, and returns whether it has seen enough.
    async fn read(
        &self,
        size: AnnouncedSize,
        body: Incoming,
        look: impl Fn(&[u8]) -> bool,
    ) -> Result<Whole, RequestError> {
        if body.is_end_stream() {
            return Ok((Bytes::new(), None));
        }
        let look_from = if look(b"") { usize::MAX } else { 0 };
        let mut body = body;
        let read = match size.bytes {
            Some(bytes) if bytes > self.limits.body_bytes_max => Err(RequestError::TooLarge),
            _ => {
                let collecting = self.collect(&mut body, size.bytes.unwrap_or(0), look, look_from);
                match timeout(self.limits.read_wait, collecting).await {
                    Ok(collected) => collected,
                    Err(_) => Err(RequestError::TooSlow),
                }
            }
        };
        // A client that waits for "100 Continue" gets the refusal instead, and sends no body.
        if matches!(read, Err(RequestError::TooLarge | RequestError::Overloaded))
            && !size.waits_for_permission
        {
            tokio::spawn(waste(body, self.shared.state.subscribe(), self.limits.read_wait));
        }
        read
    }

    /// Collects the body. `look` is called when `look_from` bytes have arrived, and again when twice as many have.
    async fn collect(
        &self,
        body: &mut Incoming,
        announced: usize,
        look: impl Fn(&[u8]) -> bool,
        mut look_from: usize,
    ) -> Result<Whole, RequestError> {
        let mut whole = BytesMut::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let Ok(bytes) = frame.map_err(|_| RequestError::Broken)?.into_data() else { continue };
            let length = whole.len() + bytes.len();
            if length > self.limits.body_bytes_max {
                return Err(RequestError::TooLarge);
            }
            let taken = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let wanted = length.saturating_sub(SMALL_BODY_BYTES).div_ceil(KIB);
            if wanted > taken {
                let more = u32::try_from(wanted - taken).map_err(|_| RequestError::TooLarge)?;
                let more = Arc::clone(&self.shared.bodies).try_acquire_many_owned(more);
                let more = more.map_err(|_| RequestError::Overloaded)?;
                match &mut room {
                    Some(room) => room.merge(more),
                    None => room = Some(more),
                }
            }
            if whole.is_empty() {
                if announced > 0 && bytes.len() == announced {
                    return Ok((bytes, room));
                }
                whole.reserve(announced);
            }
            whole.extend_from_slice(&bytes);
            if whole.len() >= look_from {
                let is_enough = look(&whole[..whole.len().min(BEGINNING_BYTES)]);
                let is_over = is_enough || whole.len() >= BEGINNING_BYTES;
                look_from = if is_over { usize::MAX } else { 2 * whole.len() };
            }
        }
        Ok((whole.freeze(), room))
    }

    /// Ends a stream of live events when the server closes, because the stream has no end of its own. While it runs,
    /// its request counts as being answered.
    pub(super) fn until_closing(&self, body: Body, answering: Answering) -> Body {
        let Either::Right(stream) = body else { return body };
        let state = self.shared.state.subscribe();
        let begun = (stream, state, answering);
        let frames = futures_util::stream::unfold(begun, |(mut stream, mut state, answering)| async move {
            let frame: Frame<Bytes> = tokio::select! {
                frame = stream.frame() => frame?.ok()?,
                () = reached(&mut state, State::Closing) => return None,
            };
            Some((Ok(frame), (stream, state, answering)))
        });
        Either::Right(StreamBody::new(frames).boxed_unsync())
    }
}

/// Reads the rest of the body and drops it.
async fn waste(body: Incoming, mut state: watch::Receiver<State>, time_limit: std::time::Duration) {
    let reading = async {
        let mut body = body;
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > WASTE_BYTES_MAX {
                return;
            }
        }
    };
    let mut reading = pin!(timeout(time_limit, reading));
    tokio::select! {
        _ = &mut reading => {}
        () = reached(&mut state, State::Closed) => {}
    }
}
