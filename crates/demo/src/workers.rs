//! The storm: workers send requests while the provider has faults and the engine is killed. Then calm, until all
//! orders have ended, and the evidence is collected.

use crate::DemoError;
use crate::engine_process::{AskedOrder, EngineCommand, EngineKeeper, EngineSummary, KEY_VARIABLE};
use crate::{DemoPlan, captcha};
use quittance::lifecycle::{Counters, Order};
use quittance::{Day, Quittance, Which};
use quittance_mock_provider::{
    BanLimits, Faults, Ledger, MillisRange, MockAccount, MockClassicDialect, MockKey, MockProvider, Settings,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// The key of the mock account. It is valid only in this demo.
const KEY: &str = "d3m0d3m0d3m0d3m0d3m0d3m0d3m0d3m0";
/// How often a worker repeats a request, if the error says that it should.
const TRIES_MAX: u32 = 5;
/// How long the calm may take: longer than any order may.
const CALM_MAX: Duration = Duration::from_secs(120);

/// The evidence for the judge.
pub(crate) struct DemoEvidence {
    /// The outcome of each request: its captcha, and the last event.
    pub(crate) outcomes: Vec<(u32, Option<Value>)>,
    pub(crate) ledger: Ledger,
    pub(crate) orders: Vec<Arc<Order>>,
    pub(crate) unreadable: usize,
    pub(crate) usage: Counters,
    /// The last event of the engine.
    pub(crate) done: Value,
    pub(crate) kills: u32,
    pub(crate) took: Duration,
}

pub(crate) async fn run(
    plan: DemoPlan,
    program: &Path,
    callback_port: u16,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<DemoEvidence, DemoError> {
    let began = Instant::now();
    let folder = tempfile::Builder::new()
        .prefix("quittance-demo-")
        .tempdir()
        .map_err(|error| DemoError::Store(format!("no temporary folder could be made: {error}")))?;
    let mock = MockProvider::start(provider(plan)).await.map_err(|error| {
        DemoError::engine(format!("the mock provider could not listen on loopback: {error}"))
    })?;
    let config = folder.path().join("quittance.toml");
    std::fs::write(&config, engine_config(folder.path(), callback_port, mock.address()))
        .map_err(|error| DemoError::Store(format!("the temporary folder cannot be written: {error}")))?;
    let keeper = EngineKeeper::start(program, &config, KEY)?;
    let (commands, received) = mpsc::channel(1024);
    // A set, so that the tasks end when it is dropped.
    let mut keeping = tokio::task::JoinSet::new();
    keeping.spawn(keeper.keep(received));
    let outcomes = work(plan, &commands, &mock, progress).await;
    mock.set_faults(Faults::default());
    _ = commands.send(EngineCommand::Finish).await;
    let finished = tokio::time::timeout(CALM_MAX, keeping.join_next()).await;
    let EngineSummary { done, kills } = match finished {
        Ok(Some(Ok(finished))) => finished?,
        Ok(None) => return Err(DemoError::engine("the task that restarts the engine has ended too early")),
        Ok(Some(Err(error))) => {
            return Err(DemoError::engine(format!("the demo itself failed: {error}")));
        }
        Err(_) => {
            return Err(DemoError::engine("the engine did not finish in time: some orders have no outcome"));
        }
    };
    let ledger = mock.ledger();
    mock.stop().await;
    let (orders, unreadable, usage) = read_store(&folder.path().join("store")).await?;
    Ok(DemoEvidence { outcomes, ledger, orders, unreadable, usage, done, kills, took: began.elapsed() })
}

/// The settings of the mock provider: few slots, and all sorts of faults, but very short solve times, so that the
/// demo is short.
fn provider(plan: DemoPlan) -> Settings {
    let mut faults = Faults::storm();
    faults.hang_ms = 1_500;
    // It asks for a pause of 10 s, which is obeyed: longer than the whole storm.
    faults.submit_codes.retain(|code| code != "MAX_USER_TURN");
    faults.slow_ms = MillisRange { from: 50, to: 600 };
    let account = MockAccount {
        name: "demo".into(),
        key: MockKey::new(KEY),
        balance_micros: u64::MAX / 2,
        threads: 50,
        plan_ended: false,
    };
    Settings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        dialect: MockClassicDialect::TwoCaptcha,
        accounts: vec![account],
        seed: plan.seed,
        solve_ms: MillisRange { from: 50, to: 500 },
        solve_ms_by_method: BTreeMap::new(),
        queue_max: 25,
        pace: BanLimits::off(),
        faults,
        ..Settings::default()
    }
}

/// The settings of the engine. Every duration is a fraction of the usual one, like the solve times; nothing else is
/// special.
fn engine_config(folder: &Path, callbacks: u16, provider: SocketAddr) -> String {
    let store = Value::from(format!("embedded:{}", folder.join("store").display()));
    format!(
        r#"listen = "127.0.0.1:{callbacks}"
public_url = "http://127.0.0.1:{callbacks}"

[store]
url = {store}

[[provider]]
name = "mock"
protocol = "classic"
dialect = "2captcha"
url = "http://{provider}"
key_env = "{KEY_VARIABLE}"
connect_wait = "500ms"
reply_wait = "1s"
submit_interval = "1ms"
trip_at = 50
probe = "100ms"
retry_share = 1.0
retry_burst = 10000
retry_trickle = "10ms"

# The storm makes this code up; it needs no warning.
[provider.faults]
ERROR_BLUE_MOON = "busy"

# The workers repeat themselves without keys: equal orders are one job. Tokens are exclusive by default.
[reuse]
default = "shared"

[timing]
submit_wait = "2s"
callback_wait = "1500ms"
in_doubt_wait = "3s"
in_doubt_min = "300ms"
first_poll = "200ms"
poll_interval = "200ms"
deadline = "60s"
task_life = "60s"

[retry]
base = "50ms"
cap = "500ms"
jitter = "50ms"

[retry.limits]
busy = 60
unreachable = 20
in_doubt = 6
unsolvable = 6
unlisted_code = 10

[engine]
poll_wait = "1s"
claim_duration = "1500ms"
sweep_interval = "250ms"
others_first = "300ms"
count_interval = "20ms"

[kinds.recaptcha_v2]
p50 = "300ms"
p95 = "600ms"
p99 = "1s"

[kinds.turnstile]
p50 = "300ms"
p95 = "600ms"
p99 = "1s"

[kinds.image]
p50 = "300ms"
p95 = "600ms"
p99 = "1s"

# What the mock provider takes; callbacks have no price.
[prices]
recaptcha_v2 = 0.00299
turnstile = 0.00299
image = 0.0005
"#
    )
}

/// Runs the workers, which send one request after the other, and kills the engine from time to time.
async fn work(
    plan: DemoPlan,
    commands: &mpsc::Sender<EngineCommand>,
    mock: &MockProvider,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Vec<(u32, Option<Value>)> {
    let asked = Arc::new(captcha::requests(plan));
    let next = Arc::new(AtomicU32::new(0));
    let (ended, mut endings) = mpsc::channel(1024);
    for _ in 0..plan.workers {
        let (asked, next, commands, ended) =
            (Arc::clone(&asked), Arc::clone(&next), commands.clone(), ended.clone());
        tokio::spawn(async move {
            loop {
                let request = next.fetch_add(1, Ordering::Relaxed);
                let Some(captcha) = asked.get(request as usize).copied() else { return };
                let outcome = ask(plan, &commands, captcha, request).await;
                if ended.send((captcha, outcome)).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(ended);
    let mut outcomes = Vec::with_capacity(plan.requests as usize);
    let mut kills = 0;
    while let Some(ending) = endings.recv().await {
        outcomes.push(ending);
        // Spread over the storm: after a third, two thirds, and so on.
        let share = outcomes.len() * (plan.kills as usize + 1) / plan.requests as usize;
        if share > kills && kills < plan.kills as usize {
            kills += 1;
            _ = commands.send(EngineCommand::Kill).await;
        }
        let paid = mock.totals().accepted;
        progress(&format!(
            "{} of {} requests ended, {paid} paid for, engine killed {kills} times",
            outcomes.len(),
            plan.requests
        ));
    }
    outcomes
}

async fn ask(
    plan: DemoPlan,
    commands: &mpsc::Sender<EngineCommand>,
    captcha: u32,
    request: u32,
) -> Option<Value> {
    let mut last = None;
    for _ in 0..TRIES_MAX {
        let (event_to, answer) = oneshot::channel();
        let line = captcha::order(plan, captcha, request).to_string();
        commands.send(EngineCommand::Ask(AskedOrder { id: request.into(), line, event_to })).await.ok()?;
        let event = answer.await.ok()?;
        // What every client does then: an answer that has expired, or a time that is up, is asked for again.
        let again = matches!(event["error"]["code"].as_str(), Some("expired" | "not_yet" | "store"));
        last = Some(event);
        if !again {
            break;
        }
    }
    last
}

/// The engine's store on disk, read as the next process would read it.
async fn read_store(store: &Path) -> Result<(Vec<Arc<Order>>, usize, Counters), DemoError> {
    let store_error = |error: &dyn std::error::Error| DemoError::Store(error.to_string());
    let node = Quittance::builder().embedded(store).open().await.map_err(|error| store_error(&error))?;
    let (mut orders, mut unreadable, mut after) = (Vec::new(), 0, None);
    loop {
        let page = node.list(Which::ALL, after.as_ref(), 1000).await.map_err(|error| store_error(&error))?;
        if page.is_empty() {
            break;
        }
        for found in page {
            match found {
                Ok(found) => {
                    after = Some(found.order.key);
                    orders.push(found.order);
                }
                Err(found) => {
                    after = Some(found.key);
                    unreadable += 1;
                }
            }
        }
    }
    let mut usage = Counters::default();
    let lines = node.usage(Day(0), Day(u64::MAX)).await.map_err(|error| store_error(&error))?;
    lines.into_iter().for_each(|(_, counters)| usage += counters);
    Ok((orders, unreadable, usage))
}
