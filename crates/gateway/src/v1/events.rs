//! Live events: each commit of this node, as server-sent events. A stream makes its next event when the last one has
//! been sent. So a slow reader delays no other, and a disconnect leaves nothing behind.

use super::AppState;
use super::caller::{Id, Tenanted, Watcher};
use super::order_problems::{not_seen, store_problem};
use super::order_view::{Source, StreamedChange};
use super::problem::Refused;
use crate::orders::is_placed_by;
use crate::problems;
use crate::streams::{KEEP_ALIVE, StreamPermit};
use crate::{Caller, NotSeen, OrderId, OrderView};
use axum::extract::State;
use axum::response::Response;
use futures_util::stream::{Stream, StreamExt, once, unfold};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::Outcome;
use quittance_lifecycle::{Key, Order, Timestamp};
use quittance_ports::{StoreError, Watch};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt::Write;
use std::future::ready;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{sleep, timeout};
use utoipa::ToSchema;

/// The beginning of every stream: how soon a client may reconnect.
pub const GREETING: &str = "retry: 2000\n\n";
/// A comment that a silent stream sends.
const STILL_HERE: &str = ": still here\n\n";

/// Content type of a stream.
pub const EVENT_STREAM: &str = "text/event-stream";

problems!(OrderEventProblems: Unauthorized, Forbidden, UnknownOrder, NeedsAPerson, TooManyStreams, StoreUnavailable);
problems!(EventProblems: Unauthorized, TooManyStreams);

/// One event of the stream of an order.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the response")]
pub(super) struct OrderEvent {
    #[schema(pattern = "^order$")]
    event: String,
    /// An OrderInFull as JSON.
    data: String,
}

/// One event of the stream of all orders.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the response")]
pub(super) struct ChangeEvent {
    #[schema(pattern = "^(change|lagged)$")]
    event: String,
    /// A change as JSON; after missed changes, `missed`: their number for the operator, null for a tenant.
    data: String,
}

/// Watch one order
///
/// Server-sent events. First the current order (event `order`), then each change that this node writes, then the end,
/// on any node: the stream closes with the last state of the order, including its answer.
#[utoipa::path(
    get, path = "/v1/orders/{id}/events", operation_id = "watchOrder", tag = "events",
    params(("id" = String, Path, pattern = "^[1-9][0-9]{0,15}$", description = "The order's id.")),
    responses(
        (status = 200, body = OrderEvent, content_type = "text/event-stream",
            description = "Events `order`, each with an OrderInFull as its data."),
        OrderEventProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn watch_one(
    State(state): State<AppState>,
    Tenanted(caller): Tenanted,
    Id(id): Id,
) -> Result<Response, Refused> {
    // Subscribe first: every later commit is received, and what is read next is at least as new.
    let commits = state.orders.commit_feed().watch();
    let key = state.orders.find(&caller, id).await.map_err(not_seen)?.key;
    let seat = state.orders.streams().take(Some(&caller.tenant))?;
    // Commits of other nodes are not in the commit feed, but the watch sees the end of the order on any node.
    let watch = state.orders.engine().watch(&key).await.map_err(|error| store_problem(&error))?;
    let events = OrderEvents { state, caller, id, key, commits, watch, sent: None, is_over: false };
    Ok(stream(
        seat,
        unfold((events, true), |(mut events, is_first)| async move {
            let text = if is_first { events.first().await } else { events.next().await? };
            Some((text, (events, false)))
        }),
    ))
}

/// Watch all orders of the caller
///
/// Server-sent events: `change` for each change that this node writes, and `lagged` with the number of changes that a
/// slow reader missed. The operator's key sees the orders of all tenants. No event contains an answer or
/// a parameter.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "watchOrders", tag = "events",
    responses(
        (status = 200, body = ChangeEvent, content_type = "text/event-stream",
            description = "Events `change`, each with a `StreamedChange` as its data, and `lagged`. The stream has no end."),
        EventProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn watch_all(
    State(state): State<AppState>,
    Watcher(caller): Watcher,
) -> Result<Response, Refused> {
    let seat = state.orders.streams().take(caller.as_ref().map(|caller| &*caller.tenant))?;
    let tenant = caller.map(|caller| caller.tenant.name().to_owned());
    let commits = state.orders.commit_feed().watch();
    let events = ChangeEvents { state, tenant, commits };
    let changes = unfold(events, |mut events| async { Some((events.next().await?, events)) });
    Ok(stream(seat, once(ready(GREETING.to_owned())).chain(changes)))
}

/// How far an order has come. It grows with every change that is worth an event.
type Mark = (Timestamp, u32, usize);

fn mark(order: &Order) -> Mark {
    (order.born, order.life, order.timeline.entries.len() + order.timeline.left_out as usize)
}

/// The changes of all orders of one tenant, or (`None`) of all tenants.
struct ChangeEvents {
    state: AppState,
    tenant: Option<String>,
    commits: Receiver<Arc<Order>>,
}

#[derive(Serialize)]
struct Lagged {
    /// The number of missed changes. It is for the operator only, because it counts all tenants.
    missed: Option<u64>,
}

impl ChangeEvents {
    async fn next(&mut self) -> Option<String> {
        loop {
            match timeout(KEEP_ALIVE, self.commits.recv()).await {
                Ok(Ok(order)) if self.tenant.as_ref().is_none_or(|tenant| is_placed_by(&order, tenant)) => {
                    return Some(event(
                        "change",
                        &StreamedChange::of(&order, self.state.orders.clock().now()),
                    ));
                }
                Ok(Ok(_)) => {}
                Ok(Err(RecvError::Lagged(missed))) => {
                    let missed = self.tenant.is_none().then_some(missed);
                    return Some(event("lagged", &Lagged { missed }));
                }
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) => return Some(STILL_HERE.to_owned()),
            }
        }
    }
}

/// The events of one order until its end.
struct OrderEvents {
    state: AppState,
    caller: Caller,
    id: OrderId,
    key: Key,
    commits: Receiver<Arc<Order>>,
    watch: Watch,
    /// The latest state that was sent.
    sent: Option<Mark>,
    is_over: bool,
}

impl OrderEvents {
    /// The beginning of the stream, with the current order.
    async fn first(&mut self) -> String {
        format!("{GREETING}{}", self.look().await.unwrap_or_default())
    }

    async fn next(&mut self) -> Option<String> {
        while !self.is_over {
            let Self { commits, watch, .. } = self;
            let event = tokio::select! {
                commit = commits.recv() => match commit {
                    Ok(order) if order.key != self.key => None,
                    Ok(order) if order.is_awaited() => {
                        self.show_news(&OrderView { order, outcome: Outcome::NotYet })
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => self.look().await,
                    Err(RecvError::Closed) => return None,
                },
                () = watch.changed() => self.look().await,
                () = sleep(KEEP_ALIVE) => Some(self.look().await.unwrap_or_else(|| STILL_HERE.to_owned())),
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Reads the order, and returns an event if it has changed.
    async fn look(&mut self) -> Option<String> {
        match self.state.orders.look(&self.caller, self.id).await {
            Ok(view) if view.outcome == Outcome::NotYet => self.show_news(&view),
            // A store that is away comes back; a record that is gone does not.
            Err(NotSeen::StoreAway(StoreError::Unavailable { .. })) => None,
            ended => {
                self.is_over = true;
                self.show(&ended.ok().filter(|view| view.outcome != Outcome::Forgotten)?)
            }
        }
    }

    /// An event for a pending order, unless it is no newer than what was sent.
    fn show_news(&mut self, view: &OrderView) -> Option<String> {
        let is_known = self.sent.is_some_and(|sent| sent >= mark(&view.order));
        if is_known { None } else { self.show(view) }
    }

    fn show(&mut self, view: &OrderView) -> Option<String> {
        self.sent = Some(mark(&view.order));
        let shown = self.state.view(self.id, Source::by(self.id, &view.order), view).ok()?;
        Some(event("order", &shown))
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    // JSON has no line break of its own outside of a string, and none unescaped within.
    let mut text = String::new();
    _ = write!(text, "event: {name}\ndata: {}\n\n", super::json_text(data));
    text
}

/// A response that streams events. The next event is made only when there is room for it. The slot is given back when
/// the stream ends in any way.
fn stream(seat: StreamPermit, events: impl Stream<Item = String> + Send + 'static) -> Response {
    let texts = events.map(move |text| {
        let _seat = &seat;
        Ok::<_, Infallible>(text)
    });
    let mut response = Response::new(axum::body::Body::from_stream(texts));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    response
}
