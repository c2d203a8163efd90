//! Live events: each commit of this node, as server-sent events. The body of a stream makes its next event when the last one has been
//! sent, so a slow reader delays no one else, and a disconnect leaves nothing behind.

use super::AppState;
use super::caller::{Id, Tenanted, Watcher};
use super::errors::{not_seen, store_problem};
use super::order_view::{Change, Source};
use super::problem::Refused;
use crate::orders::is_placed_by;
use crate::problems;
use crate::streams::{KEEP_ALIVE, StreamPermit};
use crate::{Caller, OrderId, OrderView};
use axum::extract::State;
use axum::response::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::Outcome;
use quittance_lifecycle::{Key, Order, Timestamp};
use quittance_ports::{StoreError, Watch};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::ToSchema;

/// The beginning of every stream: how soon a client may reconnect.
pub const GREETING: &str = "retry: 2000\n\n";

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
    /// A Change as JSON; after missed changes, `missed`: their number for the operator, null for a tenant.
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
    let heard = state.orders.commit_feed().watch();
    let key = state.orders.find(&caller, id).await.map_err(not_seen)?.key;
    let _seat = state.orders.streams().take(Some(&caller.tenant))?;
    // Commits of other nodes are not in the commit feed, but the watch sees the end of the order on any node.
    let watch = state.orders.engine().watch(&key).await.map_err(|error| store_problem(&error))?;
    let watched = Watched::One { caller, id, key, sent: None, watch };
    Ok(stream(Live { state, heard, watched, _seat, is_greeted: false, is_over: false }))
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
            description = "Events `change`, each with a Change as its data, and `lagged`. The stream has no end."),
        EventProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn watch_all(
    State(state): State<AppState>,
    Watcher(caller): Watcher,
) -> Result<Response, Refused> {
    let heard = state.orders.commit_feed().watch();
    let _seat = state.orders.streams().take(caller.as_ref().map(|caller| &*caller.tenant))?;
    let tenant = caller.map(|caller| caller.tenant.name().to_owned());
    Ok(stream(Live {
        state,
        heard,
        watched: Watched::All { tenant },
        _seat,
        is_greeted: false,
        is_over: false,
    }))
}

enum Watched {
    One {
        caller: Caller,
        id: OrderId,
        key: Key,
        /// How much of its timeline was sent.
        sent: Option<Mark>,
        watch: Watch,
    },
    /// Of one tenant, or of all.
    All { tenant: Option<String> },
}

impl Watched {
    /// The order was written by some node, and is no longer awaited.
    async fn changed(&mut self) {
        match self {
            Self::One { watch, .. } => watch.changed().await,
            Self::All { .. } => std::future::pending().await,
        }
    }
}

/// How far an order has come: it grows with everything that is worth telling.
type Mark = (Timestamp, u32, usize);

fn mark(order: &Order) -> Mark {
    (order.born, order.life, order.timeline.entries.len() + order.timeline.left_out as usize)
}

struct Live {
    state: AppState,
    heard: Receiver<Arc<Order>>,
    watched: Watched,
    /// Given back when the stream ends, however it does.
    _seat: StreamPermit,
    is_greeted: bool,
    is_over: bool,
}

#[derive(Serialize)]
struct Lagged {
    /// For the operator only: it counts the changes of all tenants.
    missed: Option<u64>,
}

impl Live {
    /// What is sent next; nothing when it is over.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        if !self.is_greeted {
            self.is_greeted = true;
            let first = match self.watched {
                Watched::One { .. } => self.look().await.unwrap_or_default(),
                Watched::All { .. } => String::new(),
            };
            return Some(format!("{GREETING}{first}"));
        }
        loop {
            let Self { heard, watched, .. } = self;
            let event = tokio::select! {
                heard = heard.recv() => match heard {
                    Ok(order) => self.tell(&order).await,
                    Err(RecvError::Lagged(missed)) => self.catch_up(missed).await,
                    Err(RecvError::Closed) => return None,
                },
                () = watched.changed() => self.look().await,
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    Some(self.look().await.unwrap_or_else(|| ": still here\n\n".to_owned()))
                }
            };
            if event.is_some() {
                return event;
            }
        }
    }

    async fn tell(&mut self, order: &Arc<Order>) -> Option<String> {
        match &self.watched {
            Watched::All { tenant } => {
                let is_shown = tenant.as_ref().is_none_or(|tenant| is_placed_by(order, tenant));
                is_shown.then(|| event("change", &Change::of(order, self.state.orders.clock().now())))
            }
            Watched::One { key, .. } if *key != order.key => None,
            Watched::One { id, sent, .. } if order.is_awaited() => {
                // Older than what was sent at the beginning.
                if sent.is_some_and(|sent| sent >= mark(order)) {
                    return None;
                }
                let seen = OrderView { order: Arc::clone(order), outcome: Outcome::NotYet };
                self.show(*id, &seen)
            }
            Watched::One { .. } => self.look().await,
        }
    }

    /// Reads the order again, and sends it if it has changed.
    async fn look(&mut self) -> Option<String> {
        let Watched::One { caller, id, sent, .. } = &self.watched else { return None };
        let seen = match self.state.orders.look(caller, *id).await {
            Ok(seen) if seen.outcome != Outcome::Forgotten => seen,
            // A store that is away comes back; a record that is gone does not.
            Err(crate::NotSeen::StoreAway(StoreError::Unavailable { .. })) => return None,
            _ => {
                self.is_over = true;
                return None;
            }
        };
        self.is_over = seen.outcome != Outcome::NotYet;
        if !self.is_over && sent.is_some_and(|sent| sent >= mark(&seen.order)) {
            return None;
        }
        self.show(*id, &seen)
    }

    fn show(&mut self, id: OrderId, seen: &OrderView) -> Option<String> {
        let Watched::One { sent, .. } = &mut self.watched else { return None };
        *sent = Some(mark(&seen.order));
        let shown = self.state.view(id, Source::by(id, &seen.order), seen).ok()?;
        Some(event("order", &shown))
    }

    async fn catch_up(&mut self, missed: u64) -> Option<String> {
        match self.watched {
            Watched::All { ref tenant } => {
                Some(event("lagged", &Lagged { missed: tenant.is_none().then_some(missed) }))
            }
            Watched::One { .. } => self.look().await,
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    // JSON has no line break of its own outside of a string, and none unescaped within.
    let mut text = String::new();
    _ = write!(text, "event: {name}\ndata: {}\n\n", super::json_text(data));
    text
}

/// The body makes an event only when there is room for it.
fn stream(live: Live) -> Response {
    let events = futures_util::stream::unfold(live, |mut live| async move {
        let text = live.next().await?;
        Some((Ok::<_, Infallible>(text), live))
    });
    let mut response = Response::new(axum::body::Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    response
}
