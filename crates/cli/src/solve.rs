//! `quittance solve`: one order from the command line, or many as lines of JSON, in this process and on this store; or, where a
//! daemon has the store, through that.

mod beside;
pub(crate) mod lines;

use crate::config_command::ConfigArgs;
use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use crate::mock_setup::MockSetup;
use crate::{node, outcome, output, place};
use beside::{Answered, Beside, NoAnswer};
use clap::Args;
use quittance::lifecycle::{Reuse, Shape};
use quittance::{Order, Quittance, SolveError, Solved, StoreOpenError, Ticket};
use quittance_config::{Config, Environment};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How often a person who waits is told how it stands, and whether the account is still accepted.
const LOOK: Duration = Duration::from_millis(500);
/// How long another command's store is waited for, unless the caller says; how often it is looked at; and when he is told.
const HELD_WAIT: Duration = Duration::from_secs(300);
const HELD_LOOK: Duration = Duration::from_millis(100);
const HELD_TOLD: Duration = Duration::from_secs(1);

/// What `--mock` solves if nothing else was asked for.
const SAMPLE_KIND: &str = "turnstile";
const SAMPLE_SITE_KEY: &str = "0x4AAAAAAA-sample";
const SAMPLE_PAGE: &str = "https://shop.example.com/";

const NOT_PLACED: &str = "no order was placed";
const ON_RECORD: &str =
    "the order stays on record: run the same command again (with the same --idempotency-key) to go on";
const LEFT_TO_DAEMON: &str = "the order stays on record, and the daemon goes on with it: run the same command again (with the \
                              same --idempotency-key) for its answer";
const CANCELLED: &str = "the order had no --idempotency-key, so the same command could not go on with it: it is cancelled, and \
                         what was paid for goes to the stock";

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance solve --mock              a sample order; needs no config and no key
  quittance solve recaptcha_v2 -p googlekey=6Le... \\
      -p pageurl=https://shop.example.org/login
  quittance solve image -f body=captcha.png
  quittance solve turnstile -p sitekey=0x4A... -p pageurl=https://example.com/ \\
      --idempotency-key login-42 --json
  quittance solve --lines < orders.jsonl > answers.jsonl
  quittance solve --lines --settle < /dev/null    resume orders after a crash

With --lines, each input line is one order:
  {\"id\": 1, \"kind\": \"turnstile\", \"params\": {\"sitekey\": \"...\", \"pageurl\": \"...\"}}
Optional fields: files (name -> base64), idempotency_key, reuse
(shared, exclusive), no_stock, min_life, deadline, tenant.
Each output line has the same id and an event: accepted (the order is durable),
then answered, failed or refused. A line that is not an order is refused, and
the others continue.

Exit codes:
  0  answered (with --lines: all of them)
  1  no answer: rejected by the provider, a dead letter, or deadline passed
  2  the command or the order is invalid; nothing was placed
  3  the result could not be written
  4  the configuration is wrong
  5  the store cannot be opened or used
  6  the provider does not accept the account; nothing was paid
  130, 143  interrupted (Ctrl-C, SIGTERM). An order with a key, or a shared one,
     stays on record: run the same command again (with the same
     --idempotency-key) to resume it. Other orders are cancelled

If `quittance serve` runs on the same embedded store, the daemon processes the
order, and exit code 6 does not occur: the order waits until the account is
fixed. If the daemon has tenants, set QUITTANCE_TENANT_KEY to a tenant's key. If
another command uses the store, this one waits for it (--store-wait).

The answer goes to standard output, everything else to standard error. The order
is durable before anything is paid. If this process dies, run the same command
again: with the same --idempotency-key, or with --shared, it resumes the order.
Otherwise an order for a single-use token is a new job and is paid again.";

#[derive(Args, Debug)]
pub(crate) struct SolveArgs {
    /// Kind of captcha: see `quittance kinds`
    #[arg(required_unless_present_any = ["lines", "mock"])]
    kind: Option<String>,
    /// Parameter of the order, such as sitekey=0x4A
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,
    /// Parameter from a file, such as body=captcha.png
    #[arg(short, long = "file", value_name = "NAME=PATH", value_parser = pair)]
    files: Vec<(String, String)>,
    /// Key of the order: a repeat with the same key gets the same answer and pays nothing
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Make this order its own job, with its own answer: the default where a site accepts an answer only once
    #[arg(long)]
    exclusive: bool,
    /// Share the job with equal orders: join one in flight, or take its answer while it is good
    #[arg(long, conflicts_with = "exclusive")]
    shared: bool,
    /// Buy an answer for this order; take none from the stock
    #[arg(long)]
    no_stock: bool,
    /// Life that the answer must have left, such as 60s
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    min_life: Option<Duration>,
    /// How long the order may take, such as 120s
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    deadline: Option<Duration>,
    /// Tenant that places the order
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// How long to wait for a store that another command uses, such as 10m [default: 5m]
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    store_wait: Option<Duration>,
    /// Try it out: a mock provider answers within a second or two
    ///
    /// Needs no config file, key or account, and reads none. Without a KIND it solves a sample order.
    #[arg(long)]
    pub(crate) mock: bool,
    /// Print the answer as a JSON object
    #[arg(long)]
    json: bool,
    /// Read orders from standard input and write answers, one JSON object per line
    #[arg(long, conflicts_with_all = ["kind", "params", "files", "idempotency_key", "exclusive", "shared", "no_stock", "min_life", "deadline", "tenant"])]
    lines: bool,
    /// With --lines: continue until no order in the store is open
    #[arg(long, requires = "lines")]
    settle: bool,
}

pub(crate) fn pair(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

/// Who carries orders out: this process, or the daemon that has the store.
enum Solver {
    Here(Box<Quittance>),
    There(Beside),
}

impl Solver {
    /// One process has an embedded store to itself. A daemon is asked; any other is waited for.
    async fn find(config: &Config, environment: &Environment, wait: Duration) -> Result<Self, CliError> {
        let (began, mut is_told) = (Instant::now(), false);
        loop {
            if let Some(beside) = Beside::find(config, environment)? {
                return Ok(Self::There(beside));
            }
            let held = match node::start_unless_held(config).await? {
                Ok(node) => return Ok(Self::Here(Box::new(node))),
                Err(held) => held,
            };
            if began.elapsed() >= wait {
                let mut trouble = place::trouble(&StoreOpenError::Embedded(held));
                trouble.what = format!("{}. Nothing was placed", trouble.what);
                return Err(trouble);
            }
            if !is_told && began.elapsed() >= HELD_TOLD {
                is_told = true;
                output::tell(&format!(
                    "another command has the store to itself: waiting for it, {} at most. Many orders at once are for \
                     `solve --lines`, or for `quittance serve`, which every `solve` then uses\n",
                    output::roughly(wait)
                ));
            }
            tokio::time::sleep(HELD_LOOK).await;
        }
    }
}

pub(crate) async fn run(
    mut args: SolveArgs,
    config: &Config,
    environment: &Environment,
) -> Result<Exit, CliError> {
    let wait = args.store_wait.take().unwrap_or(HELD_WAIT);
    if args.lines {
        let (solver, settle) = (Solver::find(config, environment, wait).await?, args.settle);
        let interrupted = Interruption::listen()?.came();
        return match solver {
            Solver::Here(node) => lines::run(*node, config, settle, interrupted).await,
            Solver::There(beside) => lines::run_beside(beside, config, settle, interrupted).await,
        };
    }
    let as_json = args.json;
    let order = order(args, config)?;
    match Solver::find(config, environment, wait).await? {
        Solver::Here(node) => here(&node, node::with_reuse(config, order), config, as_json).await,
        Solver::There(beside) => there(&beside, &order, as_json).await,
    }
}

/// Solves with a mock provider and a temporary store.
pub(crate) async fn run_with_mock(mut args: SolveArgs, config_args: &ConfigArgs) -> Result<Exit, CliError> {
    let mut setup = MockSetup::start(config_args).await?;
    setup.listen_for_callbacks()?;
    output::tell(&setup.explain());
    if args.kind.is_none() && !args.lines {
        output::tell(&format!(
            "mock: no kind was given, so this is a sample order: {SAMPLE_KIND} on {SAMPLE_PAGE}\n"
        ));
        args.kind = Some(SAMPLE_KIND.to_owned());
        let sample = [("sitekey", SAMPLE_SITE_KEY), ("pageurl", SAMPLE_PAGE)];
        args.params = sample.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    }
    let exit = run(args, &setup.config, &setup.environment).await;
    setup.end().await;
    exit
}

/// Carries the order out in this process.
async fn here(node: &Quittance, order: Order, config: &Config, as_json: bool) -> Result<Exit, CliError> {
    let interrupted = Interruption::listen()?.came();
    let mut placed = None;
    let ended = tokio::select! {
        ended = solve(node, order, &mut placed) => ended,
        exit = interrupted => {
            output::tell(&format!("\n{}\n", left(node, placed.as_ref()).await));
            stop_or_interrupt(node).await?;
            return Ok(exit);
        }
    };
    let exit = match ended {
        Ok(Ok(solved)) => show(solved.text(), outcome::solved_json(&solved, config.currency()), as_json),
        Ok(Err(error)) => {
            show_error(&outcome::error_json(&error), as_json)?;
            Err(CliError::of(outcome::code(&error).1, &error))
        }
        Err(trouble) => Err(trouble),
    };
    node::stop(node).await;
    exit
}

/// Lets the daemon carry the order out.
async fn there(beside: &Beside, order: &Order, as_json: bool) -> Result<Exit, CliError> {
    let interrupted = Interruption::listen()?.came();
    let mut placed = None;
    let ended = tokio::select! {
        ended = solve_beside(beside, order, &mut placed) => ended,
        exit = interrupted => {
            output::tell(&format!("\n{}\n", left_to_daemon(beside, order, placed.as_deref()).await));
            return Ok(exit);
        }
    };
    match ended {
        Ok(answered) => show(&answered.text, answered.object, as_json),
        Err(none) => {
            show_error(&none.json(), as_json)?;
            Err(none.into())
        }
    }
}

async fn solve_beside(
    beside: &Beside,
    order: &Order,
    placed: &mut Option<String>,
) -> Result<Answered, NoAnswer> {
    let told = beside.place(order).await?;
    *placed = Some(told.id.clone());
    let mut progress = output::Progress::start(&format!("order {}", told.key));
    beside.follow(told, |phase| progress.show(phase)).await
}

fn show(text: &str, object: Map<String, Value>, as_json: bool) -> Result<Exit, CliError> {
    match as_json {
        true => output::print(&format!("{}\n", Value::Object(object)))?,
        false => output::print_answer(text)?,
    }
    Ok(Exit::Done)
}

fn show_error(error: &Value, as_json: bool) -> Result<(), CliError> {
    if as_json { output::print(&format!("{}\n", json!({ "error": error }))) } else { Ok(()) }
}

/// What becomes of an order whose caller leaves, in a sentence for him.
async fn left(node: &Quittance, placed: Option<&Ticket>) -> &'static str {
    match placed {
        None => NOT_PLACED,
        Some(ticket) if cancel_if_alone(node, ticket).await => CANCELLED,
        Some(_) => ON_RECORD,
    }
}

/// What an interrupt leaves behind where a daemon goes on with the order.
async fn left_to_daemon(beside: &Beside, order: &Order, placed: Option<&str>) -> &'static str {
    let Some(id) = placed else { return NOT_PLACED };
    // Whether an order without a key is shared is for the daemon's settings to say, so it is left as it is.
    let is_alone = order.draft().idempotency_key.is_none() && order.draft().reuse == Some(Reuse::Exclusive);
    if is_alone && beside.cancel(id).await.is_ok() { CANCELLED } else { LEFT_TO_DAEMON }
}

/// Ends what is under way, unless there is a second Ctrl-C.
async fn stop_or_interrupt(node: &Quittance) -> Result<(), CliError> {
    let again = Interruption::listen()?.came();
    tokio::select! {
        () = node::stop(node) => {}
        _ = again => {}
    }
    Ok(())
}

/// Whether a kind that is described wants a file under this name.
fn is_file(kind: &str, name: &str) -> bool {
    let is_it =
        |field: &quittance::lifecycle::Field| field.name == name && matches!(field.shape, Shape::File { .. });
    quittance_protocol::kinds::kind(kind).is_some_and(|kind| kind.fields.iter().any(is_it))
}

/// What was typed, as an order.
fn order(args: SolveArgs, config: &Config) -> Result<Order, CliError> {
    let kind = args.kind.unwrap_or_default();
    if let Some((name, _)) = args.params.iter().find(|(name, _)| is_file(&kind, name)) {
        let name = name.escape_debug();
        let what = format!("`{name}` must be the bytes of a file, not text: use -f {name}=FILE");
        return Err(CliError::new(Exit::Usage, what));
    }
    let mut order = Order::of(kind);
    for (name, value) in &args.params {
        order = order.with(name, value.as_str());
    }
    for (name, path) in &args.files {
        let bytes = std::fs::read(PathBuf::from(path)).map_err(|error| {
            CliError::new(Exit::Usage, format!("the file {path} cannot be read: {error}"))
        })?;
        order = order.with(name, bytes);
    }
    if let Some(key) = args.idempotency_key {
        order = order.idempotency_key(key);
    }
    if let Some(tenant) = args.tenant {
        config.check_tenant(&tenant).map_err(|what| CliError::new(Exit::Usage, what))?;
        order = order.tenant(tenant);
    }
    order = match (args.exclusive, args.shared) {
        (true, _) => order.exclusive(),
        (_, true) => order.shared(),
        (false, false) => order,
    };
    if args.no_stock {
        order = order.no_stock();
    }
    if let Some(span) = args.min_life {
        order = order.min_life(span);
    }
    if let Some(span) = args.deadline {
        order = order.timeout(span);
    }
    Ok(order)
}

/// Places the order and waits, telling a person at a terminal how it stands. An account that is not accepted ends the
/// wait at once: only a person can mend it, and he is here.
async fn solve(
    node: &Quittance,
    order: Order,
    placed: &mut Option<Ticket>,
) -> Result<Result<Solved, SolveError>, CliError> {
    let ticket = match node.place(order).await {
        Ok(ticket) => placed.insert(ticket),
        Err(error) => return Ok(Err(error.into())),
    };
    let followed = follow(node, ticket).await;
    if followed.is_err() {
        cancel_if_alone(node, ticket).await;
    }
    followed
}

/// Nobody can come back for an exclusive order without a key: to run the same command again is another job, and this one
/// would be bought beside it. Whether it was one, and is cancelled.
async fn cancel_if_alone(node: &Quittance, ticket: &Ticket) -> bool {
    let key = ticket.order();
    match node.read(&key).await {
        Ok(Some(order)) if !order.terms.keyed && order.terms.reuse == Reuse::Exclusive => {
            // A store that is away keeps the order as it is; it then goes on when the store is opened again.
            node.cancel(&key).await.is_ok()
        }
        _ => false,
    }
}

pub(crate) async fn follow(
    node: &Quittance,
    ticket: &Ticket,
) -> Result<Result<Solved, SolveError>, CliError> {
    let mut progress = output::Progress::start(&format!("order {}", ticket.order()));
    let mut waiting = std::pin::pin!(ticket.wait());
    loop {
        tokio::select! {
            ended = &mut waiting => return Ok(ended.map_err(SolveError::from)),
            () = tokio::time::sleep(LOOK) => {
                let read = node.read(&ticket.order()).await.ok().flatten();
                if let Some(order) = &read {
                    progress.show(order.phase.name());
                }
                if let Some(fault) = node.paused()
                    && read.is_some_and(|order| order.phase.is_held())
                {
                    let what = format!(
                        "the provider does not accept the account: {fault}; see `quittance errors {}`. Nothing was paid: \
                         fix the account, then run the same command again",
                        fault.code.escape_debug()
                    );
                    return Err(CliError::new(Exit::Provider, what));
                }
            }
        }
    }
}
