//! One request: read whole, within its limits; handed to the house; and whatever happens there, answered.

use super::patient::Answering;
use super::{RequestHandler, Server, Shared, State, Visitor, count, reached};
use crate::api::{ApiRequest, Body, DIALECTS, OverTls};
use crate::wrong_keys::{Shown, Visit};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::{BodyExt, Either, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};

pub(super) const KIB: usize = 1024;
/// Of every body so much is let in without asking whether there is room.
const FREE_BYTES: usize = 16 * KIB;
/// So much of a body is searched for a key while the rest is on its way.
const BEGINNING_BYTES: usize = 4 * KIB;
/// Whoever sends too much is read on up to this, and thrown away: else he would not hear the answer for his own voice.
const WASTE_BYTES_MAX: usize = 32 * KIB * KIB;

/// Why a request got no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestError {
    TooLarge,
    /// The body did not come in time.
    TooSlow,
    /// The body broke off.
    Broken,
    /// There is no room for it now.
    Overloaded,
    /// Whoever should have answered it panicked.
    Panicked,
}

/// A body, and the room that it takes.
type Whole = (Bytes, Option<OwnedSemaphorePermit>);

impl Server {
    pub(super) async fn attend<H: RequestHandler>(
        &self,
        house: &H,
        request: Request<Incoming>,
        visitor: &Visitor,
    ) -> Response<Body> {
        let counters = &self.shared.counters;
        count(&counters.requests);
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let mut asked = arrived(head);
        let (guest, is_alone) = (Arc::clone(&visitor.guest), house.has_one_tenant());
        let visit = Visit::new(visitor.address, move |shown| guest.is_known_as(shown, is_alone));
        asked.head.extensions.insert(Arc::clone(&visit));
        if visitor.is_over_tls {
            asked.head.extensions.insert(OverTls);
        }
        let (method, route) = (asked.head.method.clone(), house.route(&asked));
        // A body may take long. Until its sender is known, it may be sent away to make room.
        let look = |beginning: &[u8]| {
            if !visitor.stage.is_known() {
                visitor.guest.is_known_as(&house.shown_early(&asked, beginning), is_alone);
            }
            visitor.stage.is_known()
        };
        let answer = match visitor.stage.paused(self.read(&asked.head, body, look)).await {
            Ok((body, room)) => {
                asked.body = body;
                let answer = self.ask(house, asked).await;
                drop(room);
                answer
            }
            Err(why) => {
                let mut answer = self.turn_away(house, &asked, why);
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                answer
            }
        };
        if let Shown::WrongKey(pause) = visit.found() {
            visitor.stage.paused(tokio::time::sleep(pause)).await;
        }
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(%method, route, status = answer.status().as_u16(), ms, "answered");
        answer
    }

    async fn ask<H: RequestHandler>(&self, house: &H, asked: ApiRequest) -> Response<Body> {
        let Shared { requests, own_requests, .. } = &*self.shared;
        let seats = if house.has_own_seat(&asked) { own_requests } else { requests };
        let Ok(_place) = seats.try_acquire() else {
            return self.turn_away(house, &asked, RequestError::Overloaded);
        };
        let kept = kept(&asked);
        match AssertUnwindSafe(house.answer(asked)).catch_unwind().await {
            Ok(answer) => answer,
            Err(_) => {
                count(&self.shared.counters.panics);
                tracing::error!(
                    route = house.route(&kept),
                    "a door panicked; its caller was told to ask again"
                );
                house.turn_away(&kept, RequestError::Panicked)
            }
        }
    }

    fn turn_away<H: RequestHandler>(
        &self,
        house: &H,
        asked: &ApiRequest,
        why: RequestError,
    ) -> Response<Body> {
        count(&self.shared.counters.turned_away);
        house.turn_away(asked, why)
    }

    /// `look` is given the beginning of the body while it comes, and says when it has seen enough.
    async fn read(
        &self,
        head: &Parts,
        body: Incoming,
        look: impl Fn(&[u8]) -> bool,
    ) -> Result<Whole, RequestError> {
        if body.is_end_stream() {
            return Ok((Bytes::new(), None));
        }
        let look_from = if look(b"") { usize::MAX } else { 0 };
        let announced = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = body;
        let read = match announced {
            Some(bytes) if bytes > self.limits.body_bytes_max => Err(RequestError::TooLarge),
            _ => {
                let collecting = self.collect(&mut body, announced.unwrap_or(0), look, look_from);
                match timeout(self.limits.read_wait, collecting).await {
                    Ok(collected) => collected,
                    Err(_) => Err(RequestError::TooSlow),
                }
            }
        };
        // Whoever waits to be told to go on is told otherwise, and sends nothing.
        if matches!(read, Err(RequestError::TooLarge | RequestError::Overloaded))
            && !head.headers.contains_key(EXPECT)
        {
            tokio::spawn(waste(body, self.shared.state.subscribe(), self.limits.read_wait));
        }
        read
    }

    /// `look` is called when the body has `look_from` bytes, and again when it has twice as many.
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
            let wanted = length.saturating_sub(FREE_BYTES).div_ceil(KIB);
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

    /// A stream of live events has no end of its own, and must not keep a server from closing. While it runs, its caller
    /// is being answered, however little there is to tell.
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

/// What has arrived so far. Clients that put an address together from parts write a slash too many, or a blank at the end:
/// `//createTask`, `/createTask%20`. Both are understood.
fn arrived(head: Parts) -> ApiRequest {
    let path = trimmed(head.uri.path()).trim_start_matches('/');
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let dialect = DIALECTS.into_iter().find(|dialect| dialect.eq_ignore_ascii_case(first));
    let path = if dialect.is_some() { rest.trim_start_matches('/') } else { path };
    let content_type = head.headers.get(CONTENT_TYPE).cloned();
    ApiRequest { path: format!("/{path}"), head, dialect, content_type, body: Bytes::new() }
}

/// Without the white space at its end, which a path can only hold percent-encoded.
fn trimmed(mut path: &str) -> &str {
    const BLANKS: [&str; 4] = ["%20", "%09", "%0a", "%0d"];
    let ends_blank = |path: &str| {
        BLANKS.iter().any(|blank| path.len() >= 3 && path[path.len() - 3..].eq_ignore_ascii_case(blank))
    };
    while path.is_char_boundary(path.len().saturating_sub(3)) && ends_blank(path) {
        path = &path[..path.len() - 3];
    }
    path
}

/// What is kept of a request for the worst case: as little as it takes to tell its caller. In particular it must not keep
/// a large body in memory.
fn kept(asked: &ApiRequest) -> ApiRequest {
    let (mut head, ()) = Request::new(()).into_parts();
    head.uri = asked.head.uri.clone();
    let body = if asked.body.len() > FREE_BYTES { Bytes::new() } else { asked.body.clone() };
    let (path, content_type) = (asked.path.clone(), asked.content_type.clone());
    ApiRequest { head, path, dialect: asked.dialect, content_type, body }
}

/// Reads on, and keeps nothing.
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
