//! `quittance solve --lines`: many orders, as lines of JSON. An order is reported as accepted when it is durable. A
//! line that is not an order is refused, and the other orders continue.

use super::solver::{COLLECTED_LATER, Placed, STOCKED, Solver};
use super::{MOCK_GONE, OrderOptions};
use crate::exit::{CliError, Exit, OrExit};
use crate::{exit, output, typed};
use base64::Engine as _;
use quittance::lifecycle::{Counters, MAX_RETRIES_MAX, Reuse};
use quittance::{Day, Order, Quittance, Which};
use quittance_config::Config;
use quittance_protocol::classic::json_document::{self, BadDocument};
use quittance_telemetry::money::in_currency;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

/// How many orders are in flight at once. The rest wait in the pipe.
const IN_FLIGHT_MAX: u32 = 10_000;
/// How many orders are in flight at a daemon, which limits the requests of each caller.
const IN_FLIGHT_AT_DAEMON_MAX: u32 = 64;
/// The longest line: an image of the largest size, in base64, with some reserve.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const EVENTS_QUEUED_MAX: usize = 1024;
/// How often the store is checked for open orders.
const SETTLED_LOOK: Duration = Duration::from_millis(50);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Value,
    kind: String,
    #[serde(default)]
    params: BTreeMap<String, Value>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    idempotency_key: Option<String>,
    reuse: Option<String>,
    priority: Option<String>,
    #[serde(default)]
    no_stock: bool,
    min_life: Option<String>,
    deadline: Option<String>,
    max_retries: Option<u8>,
    tenant: Option<String>,
}

/// Writes events; clones share one writer.
#[derive(Clone)]
struct Events {
    queue: mpsc::Sender<String>,
    unanswered: Arc<AtomicU64>,
}

impl Events {
    async fn tell(&self, event: &str, id: &Value, mut fields: Value) {
        fields["event"] = event.into();
        if !id.is_null() {
            fields["id"] = id.clone();
        }
        // A closed pipe also ends the reading of orders.
        _ = self.queue.send(fields.to_string()).await;
    }

    async fn no_answer(&self, event: &str, id: &Value, fields: Value) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        self.tell(event, id, fields).await;
    }
}

/// The placed orders that have not ended, by the number of their line.
type OpenOrders = Arc<Mutex<BTreeMap<u64, Arc<Placed>>>>;

pub(super) async fn run(
    solver: Solver,
    config: &Config,
    settle: bool,
    is_mock: bool,
    interrupted: impl Future<Output = Exit>,
) -> Result<Exit, CliError> {
    let node = match &solver {
        Solver::Local(local) => Some(local.node.clone()),
        Solver::Daemon(_) => None,
    };
    if settle && node.is_none() {
        let what = "a daemon uses the store and continues all open orders: leave out --settle";
        return Err(CliError::new(Exit::Usage, what));
    }
    let (queue, written) = writer();
    let events = Events { queue, unanswered: Arc::default() };
    let solver = Arc::new(solver);
    let open = OpenOrders::default();
    let work = async {
        let read = read_orders(&solver, config, &events, &open).await;
        if settle && let Some(node) = &node {
            until_settled(node).await;
        }
        read
    };
    let read = tokio::select! {
        read = work => read,
        exit = interrupted => {
            let words = if is_mock { MOCK_GONE.to_owned() } else { leave(&solver, &open).await };
            output::tell(&format!("\n{words}\n"));
            solver.stop().await?;
            return Ok(exit);
        }
    };
    let summary = match &node {
        Some(node) => {
            // Stopped first, so that the usage is complete.
            exit::stop(node).await;
            summary(node).await?
        }
        None => json!({}),
    };
    events.tell("done", &Value::Null, summary).await;
    close(events, written).await.and_then(|exit| read.map(|()| exit))
}

/// Waits until everything is written.
async fn close(events: Events, written: tokio::task::JoinHandle<io::Result<()>>) -> Result<Exit, CliError> {
    let unanswered = events.unanswered.load(Ordering::Relaxed);
    drop(events);
    let written = written.await.unwrap_or_else(|_| Err(io::Error::other("the writer is gone")));
    match written {
        // A closed pipe is no error; the orders that were placed are in the store.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.map_err(|error| output::not_written(&error))?,
    }
    Ok(if unanswered == 0 { Exit::Done } else { Exit::Bad })
}

/// Starts the thread that writes, because standard output may block. It flushes whenever no further event waits.
fn writer() -> (mpsc::Sender<String>, tokio::task::JoinHandle<io::Result<()>>) {
    let (queue, mut lines) = mpsc::channel::<String>(EVENTS_QUEUED_MAX);
    let written = tokio::task::spawn_blocking(move || {
        let mut out = io::stdout().lock();
        while let Some(line) = lines.blocking_recv() {
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
            if lines.is_empty() {
                out.flush()?;
            }
        }
        out.flush()
    });
    (queue, written)
}

fn lock(open: &OpenOrders) -> MutexGuard<'_, BTreeMap<u64, Arc<Placed>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what happens to the orders of a command that is interrupted. Those that no repeat of the command would find are
/// cancelled.
async fn leave(solver: &Solver, open: &OpenOrders) -> String {
    let left: Vec<Arc<Placed>> = lock(open).values().cloned().collect();
    let cancels = left.iter().cloned().map(|placed| async move { placed.cancel_if_alone().await });
    let cancels: JoinSet<_> = cancels.collect();
    let cancelled = cancels.join_all().await;
    let count = |outcome: Option<bool>| cancelled.iter().filter(|ended| **ended == outcome).count();
    let (found, gone, kept) = (count(None), count(Some(true)), count(Some(false)));
    let mut words = format!("{} accepted orders have no answer yet.", left.len());
    if found > 0 {
        words += &format!(" {found} stay on record: run the command again to get their answers.");
    }
    if gone > 0 {
        let paid = if matches!(solver, Solver::Local(_)) { COLLECTED_LATER } else { STOCKED };
        words += &format!(
            " {gone} are cancelled, because they have no idempotency key and the same lines would be new orders. {paid}."
        );
    }
    if kept > 0 {
        words += &format!(" {kept} could not be cancelled, and the same lines would be new orders.");
    }
    words
}

async fn read_orders(
    solver: &Arc<Solver>,
    config: &Config,
    events: &Events,
    open: &OpenOrders,
) -> Result<(), CliError> {
    let mut input = BufReader::new(tokio::io::stdin());
    let in_flight_max = match **solver {
        Solver::Local(_) => IN_FLIGHT_MAX,
        Solver::Daemon(_) => IN_FLIGHT_AT_DAEMON_MAX,
    };
    let permits = Arc::new(Semaphore::new(in_flight_max as usize));
    let mut number = 0_u64;
    loop {
        number += 1;
        let mut line = Vec::new();
        let read = (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        let bytes = read
            .map_err(|error| CliError::new(Exit::Usage, format!("standard input cannot be read: {error}")))?;
        if bytes == 0 || events.queue.is_closed() {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if bytes as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            let what = format!(
                "a line is longer than {LINE_BYTES_MAX} bytes: it was not placed, and reading ends here"
            );
            return Err(CliError::new(Exit::Usage, what));
        }
        match order(&line, number, config) {
            Ok((id, order)) => {
                let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
                let (solver, open) = (Arc::clone(solver), Arc::clone(open));
                tokio::spawn(solve(solver, events.clone(), open, (number, id), order, permit));
            }
            Err((id, message)) => {
                let error = json!({ "code": "bad_line", "message": message });
                events.no_answer("refused", &id, json!({ "error": error })).await;
            }
        }
    }
    // All permits are free when every order has ended.
    _ = permits.acquire_many(in_flight_max).await;
    Ok(())
}

async fn solve(
    solver: Arc<Solver>,
    events: Events,
    open: OpenOrders,
    (number, id): (u64, Value),
    order: Order,
    _permit: OwnedSemaphorePermit,
) {
    let placed = match solver.place(order).await {
        Ok(placed) => Arc::new(placed),
        Err(none) => return events.no_answer("refused", &id, json!({ "error": none.json() })).await,
    };
    events.tell("accepted", &id, json!({ "order": placed.key, "origin": placed.origin })).await;
    lock(&open).insert(number, Arc::clone(&placed));
    let ended = placed.follow(None).await;
    lock(&open).remove(&number);
    match ended {
        Ok(answered) => events.tell("answered", &id, answered.object).await,
        Err(none) => {
            events.no_answer("failed", &id, json!({ "order": placed.key, "error": none.json() })).await;
        }
    }
}

/// The order of a line, or what is wrong with it, with its id, if it has one.
fn order(line: &[u8], number: u64, config: &Config) -> Result<(Value, Order), (Value, String)> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err((Value::Null, format!("line {number} is not an order: it must be a JSON object")));
    }
    let id_of = || {
        let found = serde_json::from_slice::<Value>(line).ok();
        found.and_then(|found| found.get("id").cloned()).unwrap_or_default()
    };
    // JSON does not say which of two values counts, and a rounded number is another one: the line is refused, as on
    // `/v1`.
    if let Err(bad @ (BadDocument::SentTwice { .. } | BadDocument::InexactNumber { .. })) =
        json_document::read(line)
    {
        return Err((id_of(), format!("line {number} is not an order: {bad}")));
    }
    let line: Line = serde_json::from_slice(line)
        .map_err(|error| (id_of(), format!("line {number} is not an order: {error}")))?;
    let id = line.id.clone();
    match into_order(line, config) {
        Ok(order) => Ok((id, order)),
        Err(message) => Err((id, format!("line {number}: {message}"))),
    }
}

fn into_order(line: Line, config: &Config) -> Result<Order, String> {
    let mut order = Order::of(line.kind);
    if let Some(name) = line.files.keys().find(|name| line.params.contains_key(*name)) {
        return Err(format!("`{}` stands in `params` and in `files`: send it once", name.escape_debug()));
    }
    for (name, value) in line.params {
        order = match value {
            Value::String(text) => order.with(&name, text.as_str()),
            Value::Number(_) => order.with(&name, value.to_string().as_str()),
            // Providers write yes and no as 1 and 0.
            Value::Bool(flag) => order.with(&name, if flag { "1" } else { "0" }),
            _ => return Err(format!("the parameter `{}` must be text", name.escape_debug())),
        };
    }
    for (name, encoded) in line.files {
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .map_err(|error| format!("the file `{}` is not base64: {error}", name.escape_debug()))?;
        order = order.with(&name, bytes);
    }
    let span = |name: &str, typed: Option<String>, read: fn(&str) -> Result<Duration, String>| {
        typed.map(|typed| read(&typed).map_err(|error| format!("`{name}`: {error}"))).transpose()
    };
    let options = OrderOptions {
        idempotency_key: line.idempotency_key,
        reuse: match line.reuse.as_deref() {
            Some("exclusive") => Some(Reuse::Exclusive),
            Some("shared") => Some(Reuse::Shared),
            Some(_) => return Err("`reuse` is shared or exclusive".into()),
            None => None,
        },
        priority: line
            .priority
            .map(|typed| super::priority(&typed).map_err(|error| format!("`priority`: {error}")))
            .transpose()?,
        no_stock: line.no_stock,
        min_life: span("min_life", line.min_life, typed::span)?,
        deadline: span("deadline", line.deadline, super::deadline)?,
        max_retries: match line.max_retries {
            Some(count) if count > MAX_RETRIES_MAX => {
                return Err(format!("`max_retries` is a whole number from 0 to {MAX_RETRIES_MAX}"));
            }
            count => count,
        },
        tenant: line.tenant,
    };
    options.apply(order, config)
}

/// Waits until no order is open. Every order ends by its own deadline, so this ends, too.
async fn until_settled(node: &Quittance) {
    while node.list(Which::OPEN, None, 1).await.map_or(true, |open| !open.is_empty()) {
        tokio::time::sleep(SETTLED_LOOK).await;
    }
}

/// The fields of the last event: the usage of this store, and anything unusual.
async fn summary(node: &Quittance) -> Result<Value, CliError> {
    let mut usage = Counters::default();
    let lines = node.usage(Day(0), Day(u64::MAX)).await.or_exit(Exit::Store)?;
    for (_, counters) in in_currency(lines, node.currency()) {
        usage += counters;
    }
    let mut lines: Map<String, Value> =
        usage.lines().map(|(name, count)| (name.into(), json!(count))).collect();
    // A sum of which nothing is known is `null`, and not 0.
    for (name, sum) in [("cost_micros", usage.spent_known()), ("wasted_micros", usage.wasted_cost().known())]
    {
        lines.insert(name.into(), json!(sum.map(|sum| sum.0)));
    }
    let (forged, senseless) = node.strange_callbacks();
    Ok(json!({
        "usage": lines, "currency": node.currency(), "forged_callbacks": forged, "senseless_callbacks": senseless,
        "unreadable_records": node.unreadable(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Value, String) {
        match order(line.as_bytes(), 7, &crate::test_config::config_with(&[])) {
            Ok(_) => panic!("it is accepted: {line}"),
            Err(refused) => refused,
        }
    }

    #[test]
    fn a_name_with_two_values_is_refused_with_the_number_of_its_line() {
        let (id, message) =
            refused(r#"{"id": 3, "kind": "turnstile", "params": {"sitekey": "a", "sitekey": "b"}}"#);
        assert_eq!(id, json!(3));
        assert!(message.contains("line 7") && message.contains("`sitekey` was sent twice"), "{message}");
        for line in [
            r#"{"kind": "turnstile", "kind": "hcaptcha"}"#,
            r#"{"kind": "image", "files": {"body": "AAAA", "body": "BBBB"}}"#,
            r#"{"kind": "image", "params": {"body": "x"}, "files": {"body": "AAAA"}}"#,
        ] {
            assert!(refused(line).1.contains("line 7"), "{line}");
        }
        let equal = r#"{"kind": "turnstile", "params": {"sitekey": "a", "sitekey": "a"}}"#;
        assert!(
            order(equal.as_bytes(), 1, &crate::test_config::config_with(&[])).is_ok(),
            "equal values are one value"
        );
    }
}
