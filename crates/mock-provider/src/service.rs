//! Serves one request: reads it, decides on a reply, and applies the faults to the reply. An answer counts as
//! delivered when the connection takes its bytes, not before.

use crate::control::{self, ControlRequest};
use crate::mock_server::{ConnectionEnd, LastWords, MockShared, leave};
use crate::outage::OutageKind;
use crate::pingback;
use crate::response_text::MockReply;
use crate::script::FaultAction;
use crate::world::{DeliveryMark, Entrance, MockWorld, ReadRequest, RequestStep};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use quittance_protocol::classic::Form;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a client may take to send the body of a request.
const BODY_WAIT: Duration = Duration::from_secs(30);

/// A connection that ends here on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut on purpose")]
pub(crate) struct Cut;

/// The bytes of a reply. The answer counts as delivered when the connection has taken them.
#[derive(Debug)]
pub(crate) struct ReplyBytes {
    bytes: Option<Bytes>,
    delivered: Option<(Arc<MockShared>, DeliveryMark)>,
}

impl ReplyBytes {
    pub(crate) fn just(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: Some(bytes.into()), delivered: None }
    }
}

impl Body for ReplyBytes {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some((shared, mark)) = self.delivered.take() {
            let now = shared.clock.now_ms();
            shared.world().written(now, &mark);
            shared.changed();
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}

pub(crate) type ServiceResult = Result<Response<ReplyBytes>, Cut>;

pub(crate) async fn answer(
    shared: Arc<MockShared>,
    peer: SocketAddr,
    last: LastWords,
    request: Request<Incoming>,
) -> ServiceResult {
    let path = request.uri().path().to_owned();
    if path.starts_with("/mock/") {
        shared.world().count_request("mock");
        let (head, body) = request.into_parts();
        return Ok(match read_body(&shared, body).await {
            Ok(body) => control::answer(&shared, &ControlRequest::read(peer, &head, &body)),
            Err(refusal) => refusal,
        });
    }
    if let Some(outage) = shared.outage() {
        shared.world().count_fault("outage");
        if outage.kind == OutageKind::Hang {
            shared.wait_for_end_of_outage().await;
        }
        leave(&last, ConnectionEnd { resets: true, ..ConnectionEnd::default() });
        return Err(Cut);
    }
    let Some(entrance) = MockWorld::entrance(&path, &shared.settings) else {
        shared.world().count_request("other");
        return Ok(page(StatusCode::NOT_FOUND));
    };
    let answered = provide(&shared, peer, &last, entrance, request).await;
    shared.changed();
    answered
}

async fn provide(
    shared: &Arc<MockShared>,
    peer: SocketAddr,
    last: &LastWords,
    entrance: Entrance,
    request: Request<Incoming>,
) -> ServiceResult {
    let (head, body) = request.into_parts();
    let is_classic = matches!(entrance, Entrance::Classic(_));
    if head.method != Method::POST && !(is_classic && head.method == Method::GET) {
        let mut answer = page(StatusCode::METHOD_NOT_ALLOWED);
        let allowed = if is_classic { "GET, POST" } else { "POST" };
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return Ok(answer);
    }
    let body = match read_body(shared, body).await {
        Ok(body) => body,
        Err(refusal) => return Ok(refusal),
    };
    let Some(arrival) = read(entrance, peer, &head, &body) else {
        return Ok(response(&shared.world().refuse_unreadable(entrance), None));
    };
    let mut step = shared.world().take(shared.clock.now_ms(), &arrival);
    drop(arrival);
    if let Some((id, solved_at)) = step.awaited {
        shared.clock.sleep_until(solved_at).await;
        shared.world().answer_awaited(shared.clock.now_ms(), id, &mut step);
    }
    if let Some(calls) = step.calls.take() {
        if calls.is_early() {
            pingback::call(shared, &calls).await;
        }
        shared.spawn(pingback::run(shared.clone(), calls));
    }
    perform(shared, last, step).await
}

/// Reads the request, or returns `None` if it cannot be parsed.
fn read(entrance: Entrance, peer: SocketAddr, head: &Parts, body: &[u8]) -> Option<ReadRequest> {
    let (endpoint, form, ask) = match entrance {
        Entrance::Classic(endpoint) => {
            let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let form = Form::read(head.uri.query().unwrap_or_default(), content_type, body).ok()?;
            (endpoint, form, None)
        }
        Entrance::Json(json) => {
            let (form, ask) = json.read(body)?;
            (json.endpoint(), form, Some(ask))
        }
    };
    let is_get = head.method == Method::GET;
    Some(ReadRequest { endpoint, is_get, peer: peer.ip().to_canonical(), form, ask })
}

/// Applies the fault to the reply.
async fn perform(shared: &Arc<MockShared>, last: &LastWords, mut step: RequestStep) -> ServiceResult {
    if step.delay_ms > 0 {
        sleep(Duration::from_millis(step.delay_ms)).await;
    }
    let resets = step.rng.strikes(0.5);
    let cut = |words: Vec<u8>, resets: bool| {
        leave(last, ConnectionEnd { words, resets });
        Err(Cut)
    };
    match step.action {
        Some(FaultAction::RequestLost | FaultAction::ReplyLost) => cut(Vec::new(), resets),
        Some(FaultAction::Status { status, .. }) => {
            Ok(page(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY)))
        }
        Some(FaultAction::Html { .. }) => Ok(page(StatusCode::OK)),
        Some(FaultAction::Garbage { .. }) => {
            let bytes: Vec<u8> = (0..64).map(|_| step.rng.draw().to_be_bytes()[0]).collect();
            // Half of the time not even HTTP.
            if resets { cut(bytes, false) } else { Ok(Response::new(ReplyBytes::just(bytes))) }
        }
        Some(FaultAction::Truncated { .. }) => cut(half_of(&step.reply), false),
        Some(FaultAction::Hang { ms, .. }) => {
            sleep(Duration::from_millis(ms)).await;
            cut(Vec::new(), resets)
        }
        Some(FaultAction::Delay { ms }) => {
            sleep(Duration::from_millis(ms)).await;
            Ok(response(&step.reply, Some((shared.clone(), step.mark))))
        }
        _ => Ok(response(&step.reply, Some((shared.clone(), step.mark)))),
    }
}

fn response(reply: &MockReply, delivered: Option<(Arc<MockShared>, DeliveryMark)>) -> Response<ReplyBytes> {
    let mut answer = Response::new(ReplyBytes { bytes: Some(reply.body.clone().into()), delivered });
    *answer.status_mut() = status_of(reply);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type()));
    if reply.is_open {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    answer
}

fn status_of(reply: &MockReply) -> StatusCode {
    StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK)
}

/// A reply that announces its whole length and holds half of its body.
fn half_of(reply: &MockReply) -> Vec<u8> {
    let (body, kind) = (reply.body.as_bytes(), reply.content_type());
    let (status, bytes) = (status_of(reply), body.len());
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {bytes}\r\n\r\n");
    [head.as_bytes(), &body[..body.len() / 2]].concat()
}

/// An HTML page, as proxies in front of the real provider send it.
pub(crate) fn page(status: StatusCode) -> Response<ReplyBytes> {
    let title = if status == StatusCode::OK { "One moment, please".to_owned() } else { status.to_string() };
    let html = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body><h1>{title}</h1></body>\r\n</html>\r\n"
    );
    let mut answer = Response::new(ReplyBytes::just(html));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    answer
}

async fn read_body(shared: &MockShared, body: Incoming) -> Result<Bytes, Response<ReplyBytes>> {
    read_limited(shared.settings.body_bytes_max, body).await
}

/// Reads a body, or returns the reply to one that is too large or too slow.
pub(crate) async fn read_limited(bytes_max: usize, body: Incoming) -> Result<Bytes, Response<ReplyBytes>> {
    let body = Limited::new(body, bytes_max).collect();
    match timeout(BODY_WAIT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(page(StatusCode::PAYLOAD_TOO_LARGE)),
        Err(_) => Err(page(StatusCode::REQUEST_TIMEOUT)),
    }
}
