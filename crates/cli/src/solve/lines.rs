//! Many orders, as lines of JSON: the way in for scripts, and for whoever wants to see the engine killed under load.
//! An order is told to be accepted when it is durable, and not before; what is not an order is refused by itself.

use super::beside::Beside;
use crate::exit::{CliError, Exit};
use crate::{node, outcome, output};
use base64::Engine as _;
use quittance::lifecycle::Counters;
use quittance::{Day, Order, Quittance, SolveError, Which};
use quittance_config::Config;
use quittance_protocol::classic::json_document::{self, BadDocument};
use quittance_telemetry::money::in_currency;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::sync::{Semaphore, mpsc};

/// How many orders may be waited for at once; the rest stay in the pipe.
const IN_FLIGHT_MAX: u32 = 10_000;
/// How many lines are in flight where each is a request to a daemon, which limits them for each caller.
const IN_FLIGHT_BESIDE_MAX: u32 = 64;
/// A picture of the largest size, in base64, and some more.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const EVENTS_QUEUED_MAX: usize = 1024;
/// How often it is looked whether everything has settled.
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
    #[serde(default)]
    no_stock: bool,
    min_life: Option<String>,
    deadline: Option<String>,
    tenant: Option<String>,
}

/// Writes events; clones share one writer.
#[derive(Clone)]
struct Events {
    queue: mpsc::Sender<String>,
    unanswered: Arc<AtomicU64>,
}

impl Events {
    async fn tell(&self, event: &str, id: &Value, mut fields: Map<String, Value>) {
        let mut object = Map::new();
        object.insert("event".into(), json!(event));
        if !id.is_null() {
            object.insert("id".into(), id.clone());
        }
        object.append(&mut fields);
        // A reader who has gone away ends the reading of orders too; until then there is nobody to tell.
        _ = self.queue.send(Value::Object(object).to_string()).await;
    }

    async fn no_answer(&self, event: &str, id: &Value, order: Option<String>, error: Value) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let mut fields = Map::new();
        if let Some(order) = order {
            fields.insert("order".into(), json!(order));
        }
        fields.insert("error".into(), error);
        self.tell(event, id, fields).await;
    }
}

const LEFT: &str =
    "the orders that were accepted stay on record: run it again with the same idempotency keys to go on";

/// Who carries the orders out.
#[derive(Clone)]
enum Solver {
    Here(Quittance),
    There(Arc<Beside>),
}

pub(super) async fn run(
    node: Quittance,
    config: &Config,
    settle: bool,
    interrupted: impl Future<Output = Exit>,
) -> Result<Exit, CliError> {
    let (queue, written) = writer();
    let events = Events { queue, unanswered: Arc::default() };
    let work = async {
        let read = read_orders(&Solver::Here(node.clone()), config, &events).await;
        if settle {
            until_settled(&node).await;
        }
        read
    };
    let read = tokio::select! {
        read = work => read,
        exit = interrupted => {
            output::tell(&format!("\n{LEFT}\n"));
            super::stop_or_interrupt(&node).await?;
            return Ok(exit);
        }
    };
    // Stopped before the last word, so that the usage is whole.
    node::stop(&node).await;
    events.tell("done", &Value::Null, summary(&node).await?).await;
    close(events, written).await.and_then(|exit| read.map(|()| exit))
}

/// Solves lines through a daemon. It goes on with what is open; `quittance usage` shows its usage.
pub(super) async fn run_beside(
    beside: Beside,
    config: &Config,
    settle: bool,
    interrupted: impl Future<Output = Exit>,
) -> Result<Exit, CliError> {
    if settle {
        let what = "a daemon has the store and goes on with whatever is open: leave --settle out";
        return Err(CliError::new(Exit::Usage, what));
    }
    let (queue, written) = writer();
    let events = Events { queue, unanswered: Arc::default() };
    let solver = Solver::There(Arc::new(beside));
    let read = tokio::select! {
        read = read_orders(&solver, config, &events) => read,
        exit = interrupted => {
            output::tell(&format!("\n{LEFT}\n"));
            return Ok(exit);
        }
    };
    events.tell("done", &Value::Null, Map::new()).await;
    close(events, written).await.and_then(|exit| read.map(|()| exit))
}

/// Waits until all is written.
async fn close(events: Events, written: tokio::task::JoinHandle<io::Result<()>>) -> Result<Exit, CliError> {
    let unanswered = events.unanswered.load(Ordering::Relaxed);
    drop(events);
    let written = written.await.unwrap_or_else(|_| Err(io::Error::other("the writer is gone")));
    match written {
        // A reader who has seen enough is no error; the orders that were placed are in the store.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.map_err(|error| output::not_written(&error))?,
    }
    Ok(if unanswered == 0 { Exit::Done } else { Exit::Bad })
}

/// One thread writes, because standard output may block; it flushes whenever nothing more waits.
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

async fn read_orders(solver: &Solver, config: &Config, events: &Events) -> Result<(), CliError> {
    let mut input = BufReader::new(tokio::io::stdin());
    let in_flight_max = match solver {
        Solver::Here(_) => IN_FLIGHT_MAX,
        Solver::There(_) => IN_FLIGHT_BESIDE_MAX,
    };
    let room = Arc::new(Semaphore::new(in_flight_max as usize));
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
                let Ok(seat) = Arc::clone(&room).acquire_owned().await else { break };
                let (solver, events) = (solver.clone(), events.clone());
                let order = match solver {
                    Solver::Here(_) => node::with_reuse(config, order),
                    // The daemon has settings of its own.
                    Solver::There(_) => order,
                };
                tokio::spawn(async move {
                    match &solver {
                        Solver::Here(node) => carry_out(node, &events, &id, order).await,
                        Solver::There(beside) => carry_out_beside(beside, &events, &id, &order).await,
                    }
                    drop(seat);
                });
            }
            Err((id, message)) => {
                let error = json!({ "code": "bad_line", "message": message });
                events.no_answer("refused", &id, None, error).await;
            }
        }
    }
    // Every seat is free again when every order has ended.
    _ = room.acquire_many(in_flight_max).await;
    Ok(())
}

async fn carry_out(node: &Quittance, events: &Events, id: &Value, order: Order) {
    let ticket = match node.place(order).await {
        Ok(ticket) => ticket,
        Err(error) => {
            return events.no_answer("refused", id, None, outcome::error_json(&error.into())).await;
        }
    };
    let mut accepted = Map::new();
    accepted.insert("order".into(), json!(ticket.order().to_string()));
    accepted.insert("origin".into(), json!(ticket.placed.origin.name()));
    events.tell("accepted", id, accepted).await;
    match ticket.wait().await {
        Ok(solved) => events.tell("answered", id, outcome::solved_json(&solved, node.currency())).await,
        Err(error) => {
            let error = outcome::error_json(&SolveError::from(error));
            events.no_answer("failed", id, Some(ticket.order().to_string()), error).await;
        }
    }
}

async fn carry_out_beside(beside: &Beside, events: &Events, id: &Value, order: &Order) {
    let told = match beside.place(order).await {
        Ok(told) => told,
        Err(none) => return events.no_answer("refused", id, None, none.json()).await,
    };
    let (key, mut accepted) = (told.key.clone(), Map::new());
    accepted.insert("order".into(), json!(key));
    accepted.insert("origin".into(), json!(told.origin));
    events.tell("accepted", id, accepted).await;
    match beside.follow(told, |_| {}).await {
        Ok(answered) => events.tell("answered", id, answered.object).await,
        Err(none) => events.no_answer("failed", id, Some(key), none.json()).await,
    }
}

/// The order that a line asks for, or what is wrong with it, with its id as far as it has one.
fn order(line: &[u8], number: u64, config: &Config) -> Result<(Value, Order), (Value, String)> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err((Value::Null, format!("line {number} is not an order: it must be a JSON object")));
    }
    let id_of = || {
        let found = serde_json::from_slice::<Value>(line).ok();
        found.and_then(|found| found.get("id").cloned()).unwrap_or_default()
    };
    // JSON does not say which of two values counts, so none of them does, as on `/v1`.
    if let Err(doubled @ BadDocument::SentTwice { .. }) = json_document::read(line) {
        return Err((id_of(), format!("line {number} is not an order: {doubled}")));
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
    if let Some(tenant) = line.tenant {
        config.check_tenant(&tenant)?;
        order = order.tenant(tenant);
    }
    order = match line.reuse.as_deref() {
        Some("exclusive") => order.exclusive(),
        Some("shared") => order.shared(),
        Some(_) => return Err("`reuse` is shared or exclusive".into()),
        None => order,
    };
    if line.no_stock {
        order = order.no_stock();
    }
    if let Some(key) = line.idempotency_key {
        order = order.idempotency_key(key);
    }
    if let Some(span) = line.min_life {
        order = order.min_life(node::span(&span).map_err(|error| format!("`min_life`: {error}"))?);
    }
    if let Some(span) = line.deadline {
        order = order.timeout(node::span(&span).map_err(|error| format!("`deadline`: {error}"))?);
    }
    Ok(order)
}

/// Every order ends by its own deadline, so this does.
async fn until_settled(node: &Quittance) {
    while node.list(Which::OPEN, None, 1).await.map_or(true, |open| !open.is_empty()) {
        tokio::time::sleep(SETTLED_LOOK).await;
    }
}

/// What a script wants to know at the end: the usage of this store, and what was strange.
async fn summary(node: &Quittance) -> Result<Map<String, Value>, CliError> {
    let mut usage = Counters::default();
    let lines = node.usage(Day(0), Day(u64::MAX)).await.map_err(|error| CliError::of(Exit::Store, &error))?;
    for (_, counters) in in_currency(lines, node.currency()) {
        usage += counters;
    }
    let mut fields = Map::new();
    let mut lines: Map<String, Value> =
        usage.lines().map(|(name, count)| (name.into(), json!(count))).collect();
    // A sum of which nothing is known is `null`, and not 0.
    for (name, sum) in [("cost_micros", usage.spent_known()), ("wasted_micros", usage.wasted_cost().known())]
    {
        lines.insert(name.into(), json!(sum.map(|sum| sum.0)));
    }
    fields.insert("usage".into(), Value::Object(lines));
    fields.insert("currency".into(), json!(node.currency()));
    let (forged, senseless) = node.strange_callbacks();
    fields.insert("forged_callbacks".into(), json!(forged));
    fields.insert("senseless_callbacks".into(), json!(senseless));
    fields.insert("unreadable_records".into(), json!(node.unreadable()));
    Ok(fields)
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
