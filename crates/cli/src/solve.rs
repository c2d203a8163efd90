//! `quittance solve`: one order from the command line, or many as lines of JSON, in this process and on this store.

pub(crate) mod lines;

use crate::config::Config;
use crate::exit::{Exit, Trouble};
use crate::{node, outcome, output, tenant};
use clap::Args;
use quittance::lifecycle::Reuse;
use quittance::{Order, Quittance, SolveError, Solved, Ticket};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// How often a person who waits is told how it stands, and whether the account is still accepted.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance solve recaptcha_v2 -p googlekey=6Le... -p pageurl=https://shop.example.org/login
  quittance solve image -f body=captcha.png
  quittance solve turnstile -p sitekey=0x4A... -p pageurl=https://example.com/ --json
  quittance solve turnstile -p sitekey=0x4A... -p pageurl=https://example.com/ --idempotency-key login-42
  quittance solve --lines < orders.jsonl > answers.jsonl
  quittance solve --lines --settle < /dev/null      go on with whatever a crash left behind

One line of --lines is one order:
  {\"id\": 1, \"kind\": \"recaptcha_v2\", \"params\": {\"googlekey\": \"...\", \"pageurl\": \"...\"}}
and may have: files (name -> base64), idempotency_key, reuse (shared, exclusive), no_stock, min_life, deadline, tenant.
Each is answered by a line with the same id and an event: accepted (it is durable now), and then answered,
failed or refused. What is not an order is refused, and the rest goes on.

Exit codes:
  0  answered (with --lines: all of them)
  1  no answer: refused by the provider, a dead letter, or time is up
  2  the command or the order makes no sense; nothing was placed
  3  the result could not be written
  4  the configuration is wrong
  5  the store cannot be opened or used
  6  the provider does not accept the account; nothing was paid

The answer goes to standard output, everything else to standard error. The order is durable before anything
is paid for. If this process dies, run the same command again: with the same --idempotency-key (or with --shared)
it resumes the same order. Without, an order for a single-use token is a new job and is paid for again.";

#[derive(Args, Debug)]
pub(crate) struct SolveArgs {
    /// What sort of captcha it is: see `quittance kinds`
    #[arg(required_unless_present = "lines")]
    kind: Option<String>,
    /// A parameter of the order, such as sitekey=0x4A
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,
    /// A parameter that is a file, such as body=captcha.png
    #[arg(short, long = "file", value_name = "NAME=PATH", value_parser = pair)]
    files: Vec<(String, String)>,
    /// The same key is the same order: a repeat gets the same answer and pays nothing
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// This is a job of its own, and no other gets its answer: the default where a site takes an answer once
    #[arg(long)]
    exclusive: bool,
    /// Equal orders are one job: join what is in flight, and take the same answer while it is good
    #[arg(long, conflicts_with = "exclusive")]
    shared: bool,
    /// Get an answer that is bought for this order, and none from the shelf
    #[arg(long)]
    no_stock: bool,
    /// How much life the answer must have left, such as 60s
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    min_life: Option<Duration>,
    /// How long the order may take, such as 120s
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    deadline: Option<Duration>,
    /// In whose name it is placed
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Print the answer as a JSON object
    #[arg(long)]
    json: bool,
    /// Read orders from standard input, one JSON object a line, and write answers likewise
    #[arg(long, conflicts_with_all = ["kind", "params", "files", "idempotency_key", "exclusive", "shared", "no_stock", "min_life", "deadline", "tenant"])]
    lines: bool,
    /// With --lines: at the end, go on until no order in the store is open
    #[arg(long, requires = "lines")]
    settle: bool,
}

pub(crate) fn pair(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

pub(crate) async fn run(args: SolveArgs, config: &Config) -> Result<Exit, Trouble> {
    if args.lines {
        let node = node::start(config).await?;
        return lines::run(node, config, args.settle).await;
    }
    let as_json = args.json;
    let order = order(args, config)?;
    let node = node::start(config).await?;
    let ended = solve(&node, order).await;
    let exit = match ended {
        Ok(Ok(solved)) => {
            match as_json {
                true => output::print(&format!(
                    "{}\n",
                    Value::Object(outcome::solved_json(&solved, config.currency()))
                ))?,
                false => output::print_answer(solved.text())?,
            }
            Ok(Exit::Done)
        }
        Ok(Err(error)) => {
            if as_json {
                let object = serde_json::json!({ "error": outcome::error_json(&error) });
                output::print(&format!("{object}\n"))?;
            }
            Err(Trouble::of(outcome::code(&error).1, &error))
        }
        Err(trouble) => Err(trouble),
    };
    node::stop(&node).await;
    exit
}

/// What was typed, as an order.
fn order(args: SolveArgs, config: &Config) -> Result<Order, Trouble> {
    let mut order = Order::of(args.kind.unwrap_or_default());
    for (name, value) in &args.params {
        order = order.with(name, value.as_str());
    }
    for (name, path) in &args.files {
        let bytes = std::fs::read(PathBuf::from(path))
            .map_err(|error| Trouble::new(Exit::Usage, format!("the file {path} cannot be read: {error}")))?;
        order = order.with(name, bytes);
    }
    if let Some(key) = args.idempotency_key {
        order = order.idempotency_key(key);
    }
    // Before the rules of reuse are asked: they may be his.
    if let Some(tenant) = args.tenant {
        tenant::check_name(config, &tenant).map_err(|what| Trouble::new(Exit::Usage, what))?;
        order = order.tenant(tenant);
    }
    order = match (args.exclusive, args.shared) {
        (true, _) => order.exclusive(),
        (_, true) => order.shared(),
        (false, false) => node::with_reuse(config, order),
    };
    if args.no_stock {
        order = order.no_stock();
    }
    if let Some(span) = args.min_life {
        order = order.min_life(span);
    }
    if let Some(span) = args.deadline {
        order = order.patience(span);
    }
    Ok(order)
}

/// Places the order and waits, telling a person at a terminal how it stands. An account that is not accepted ends the
/// wait at once: only a person can mend it, and he is here.
async fn solve(node: &Quittance, order: Order) -> Result<Result<Solved, SolveError>, Trouble> {
    let ticket = match node.place(order).await {
        Ok(ticket) => ticket,
        Err(error) => return Ok(Err(error.into())),
    };
    let followed = follow(node, &ticket).await;
    if followed.is_err() {
        cancel_if_alone(node, &ticket).await;
    }
    followed
}

/// Nobody can come back for an exclusive order without a key: to run the same command again is another job, and this one
/// would be bought beside it.
async fn cancel_if_alone(node: &Quittance, ticket: &Ticket) {
    let key = ticket.order();
    if let Ok(Some(order)) = node.read(&key).await
        && !order.terms.keyed
        && order.terms.reuse == Reuse::Exclusive
    {
        // A store that is away keeps the order as it is; it then goes on when the store is opened again.
        _ = node.cancel(&key).await;
    }
}

pub(crate) async fn follow(node: &Quittance, ticket: &Ticket) -> Result<Result<Solved, SolveError>, Trouble> {
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
                    return Err(Trouble::new(Exit::Provider, what));
                }
            }
        }
    }
}
