//! `quittance solve`: one order from the command line, or many as lines of JSON.

mod lines;
mod solver;

use crate::config_command::ConfigArgs;
use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use crate::mock_setup::MockSetup;
use crate::{exit, output, typed};
use clap::Args;
use quittance::lifecycle::terms::TIMEOUT_MAX;
use quittance::lifecycle::{MAX_RETRIES_MAX, Priority, Reuse, Shape};
use quittance::{Order, Quittance, SolveError, Solved, Ticket};
use quittance_config::Config;
use serde_json::json;
use solver::{Answered, NOT_PLACED, Placed, SolveFailure, Solver};
use std::path::PathBuf;
use std::time::Duration;

/// How often the phase of an order is shown, and the account is checked.
const LOOK: Duration = Duration::from_millis(500);
/// How long to wait for a store that another command uses, by default.
const STORE_WAIT: Duration = Duration::from_secs(300);

/// What is left of the orders of a mock provider after an interruption.
const MOCK_GONE: &str = "the orders and their store are gone; nothing was bought";

/// The sample order of `--mock`.
const SAMPLE_KIND: &str = "turnstile";
const SAMPLE_SITE_KEY: &str = "0x4AAAAAAA-sample";
const SAMPLE_PAGE: &str = "https://shop.example.com/";

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
(shared, exclusive), priority (interactive, normal, bulk), no_stock, min_life,
deadline, max_retries, tenant.
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
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = crate::typed::pair)]
    params: Vec<(String, String)>,
    /// Parameter from a file, such as body=captcha.png
    #[arg(short, long = "file", value_name = "NAME=PATH", value_parser = crate::typed::pair)]
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
    /// How urgent the order is among the tenant's orders: interactive, normal or bulk
    #[arg(long, value_name = "PRIORITY", value_parser = priority)]
    priority: Option<Priority>,
    /// Buy an answer for this order; take none from the stock
    #[arg(long)]
    no_stock: bool,
    /// Life that the answer must have left, such as 60s
    #[arg(long, value_name = "DURATION", value_parser = crate::typed::span)]
    min_life: Option<Duration>,
    /// How long the order may take, such as 120s
    #[arg(long, value_name = "DURATION", value_parser = deadline)]
    deadline: Option<Duration>,
    /// Most attempts after the first one; 0 is one attempt only. The operator's limits hold as well
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=i64::from(MAX_RETRIES_MAX)))]
    max_retries: Option<u8>,
    /// Tenant that places the order
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// How long to wait for a store that another command uses, such as 10m [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = crate::typed::span)]
    store_wait: Option<Duration>,
    /// Use a mock provider, which answers within a second or two; buys nothing
    ///
    /// Needs no config file, key or account, and reads none. Without a KIND it solves a sample order.
    #[arg(long)]
    pub(crate) mock: bool,
    /// Print the answer as a JSON object
    #[arg(long)]
    json: bool,
    /// Read orders from standard input and write answers, one JSON object per line
    #[arg(long, conflicts_with_all = ["kind", "params", "files", "idempotency_key", "exclusive", "shared", "priority", "no_stock", "min_life", "deadline", "max_retries", "tenant"])]
    lines: bool,
    /// With --lines: continue until no order in the store is open
    #[arg(long)]
    settle: bool,
}

impl SolveArgs {
    /// Whether an error is also printed as JSON. With `--lines`, the events are JSON already.
    const fn error_as_json(&self) -> bool {
        self.json && !self.lines
    }
}

fn priority(typed: &str) -> Result<Priority, String> {
    Priority::parse(typed).ok_or_else(|| "it is interactive, normal or bulk".into())
}

/// A deadline, with the limits that the API has.
fn deadline(typed: &str) -> Result<Duration, String> {
    let span = typed::span(typed)?;
    let range = Duration::from_secs(1)..=TIMEOUT_MAX;
    match range.contains(&span) {
        true => Ok(span),
        false => Err(format!("a deadline is from 1s to {}s", TIMEOUT_MAX.as_secs())),
    }
}

/// Solves as the configuration says, if it could be read.
pub(crate) async fn run(args: SolveArgs, config: Result<Config, CliError>) -> Result<Exit, CliError> {
    let error_as_json = args.error_as_json();
    let ended = match config {
        Ok(config) => Box::pin(run_with(args, &config)).await,
        Err(error) => Err(error.into()),
    };
    show_error(ended, error_as_json)
}

async fn run_with(mut args: SolveArgs, config: &Config) -> Result<Exit, SolveFailure> {
    let (wait, error_as_json) = (args.store_wait.take().unwrap_or(STORE_WAIT), args.error_as_json());
    let (is_lines, settle, as_json, is_mock) = (args.lines, args.settle, args.json, args.mock);
    if settle && !is_lines {
        return Err(CliError::new(Exit::Usage, "--settle is about many orders: use it with --lines").into());
    }
    let order = if is_lines { None } else { Some(order(args, config)?) };
    let mut interruption = Interruption::listen()?;
    let solver = tokio::select! {
        solver = Solver::find(config, wait) => solver?,
        exit = interruption.next() => return Ok(end_interrupted(exit, NOT_PLACED, error_as_json)?),
    };
    let interrupted = interruption.came();
    let Some(order) = order else {
        return Ok(lines::run(solver, config, settle, is_mock, interrupted).await?);
    };
    let mut placed = None;
    let ended = tokio::select! {
        ended = solve(&solver, order, &mut placed) => ended,
        exit = interrupted => {
            let words = match &placed {
                _ if is_mock => MOCK_GONE.to_owned(),
                Some(placed) => placed.leave().await,
                None => NOT_PLACED.to_owned(),
            };
            let exit = end_interrupted(exit, &words, error_as_json)?;
            solver.stop().await?;
            return Ok(exit);
        }
    };
    let shown = ended.and_then(|answered| Ok(show(&answered, as_json)?));
    if let Solver::Local(local) = &solver {
        exit::stop(&local.node).await;
    }
    shown
}

async fn solve(solver: &Solver, order: Order, placed: &mut Option<Placed>) -> Result<Answered, SolveFailure> {
    let placed = placed.insert(solver.place(order).await?);
    let mut progress = output::ProgressLine::start(&format!("order {}", placed.key));
    placed.follow(Some(&mut progress)).await
}

fn show(answered: &Answered, as_json: bool) -> Result<Exit, CliError> {
    match as_json {
        true => output::print(&format!("{}\n", answered.object))?,
        false => output::print_answer(&answered.text)?,
    }
    Ok(Exit::Done)
}

/// Says why there is no answer, with `--json` on standard output too.
fn show_error(ended: Result<Exit, SolveFailure>, as_json: bool) -> Result<Exit, CliError> {
    ended.or_else(|failure| {
        print_error(&failure, as_json)?;
        Err(failure.into())
    })
}

fn print_error(failure: &SolveFailure, as_json: bool) -> Result<(), CliError> {
    if as_json { output::print(&format!("{}\n", json!({ "error": failure.json() }))) } else { Ok(()) }
}

/// Says what happens to the order of a command that is interrupted.
fn end_interrupted(exit: Exit, words: &str, as_json: bool) -> Result<Exit, CliError> {
    output::tell(&format!("\n{words}\n"));
    print_error(&SolveFailure::interrupted(exit, words), as_json)?;
    Ok(exit)
}

/// Solves with a mock provider and a temporary store.
pub(crate) async fn run_with_mock(mut args: SolveArgs, config_args: &ConfigArgs) -> Result<Exit, CliError> {
    let error_as_json = args.error_as_json();
    let started = MockSetup::start(config_args).await;
    let started = started.and_then(|mut setup| setup.listen_for_callbacks().map(|()| setup));
    let setup = match started {
        Ok(setup) => setup,
        Err(error) => return show_error(Err(error.into()), error_as_json),
    };
    output::tell(&setup.explain());
    if args.kind.is_none() && !args.lines {
        output::tell(&format!(
            "mock: no kind was given, so this is a sample order: {SAMPLE_KIND} on {SAMPLE_PAGE}\n"
        ));
        args.kind = Some(SAMPLE_KIND.to_owned());
        let sample = [("sitekey", SAMPLE_SITE_KEY), ("pageurl", SAMPLE_PAGE)];
        args.params = sample.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    }
    let exit = Box::pin(run(args, Ok(setup.config.clone()))).await;
    setup.end().await;
    exit
}

/// Finishes the work in progress, unless there is a second Ctrl-C.
async fn stop_or_interrupt(node: &Quittance) -> Result<(), CliError> {
    let again = Interruption::listen()?.came();
    tokio::select! {
        () = exit::stop(node) => {}
        _ = again => {}
    }
    Ok(())
}

/// Whether a parameter of a described kind is a file.
fn is_file(kind: &str, name: &str) -> bool {
    let is_it =
        |field: &quittance::lifecycle::Field| field.name == name && matches!(field.shape, Shape::File { .. });
    quittance_protocol::kinds::kind(kind).is_some_and(|kind| kind.fields.iter().any(is_it))
}

/// The order from the command line.
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
    let options = OrderOptions {
        idempotency_key: args.idempotency_key,
        reuse: match (args.exclusive, args.shared) {
            (true, _) => Some(Reuse::Exclusive),
            (_, true) => Some(Reuse::Shared),
            (false, false) => None,
        },
        priority: args.priority,
        no_stock: args.no_stock,
        min_life: args.min_life,
        deadline: args.deadline,
        max_retries: args.max_retries,
        tenant: args.tenant,
    };
    options.apply(order, config).map_err(|what| CliError::new(Exit::Usage, what))
}

/// The options of an order beside its parameters.
struct OrderOptions {
    idempotency_key: Option<String>,
    reuse: Option<Reuse>,
    priority: Option<Priority>,
    no_stock: bool,
    min_life: Option<Duration>,
    deadline: Option<Duration>,
    max_retries: Option<u8>,
    tenant: Option<String>,
}

impl OrderOptions {
    fn apply(self, mut order: Order, config: &Config) -> Result<Order, String> {
        if let Some(tenant) = self.tenant {
            config.check_tenant(&tenant)?;
            order = order.tenant(tenant);
        }
        order = match self.reuse {
            Some(Reuse::Exclusive) => order.exclusive(),
            Some(Reuse::Shared) => order.shared(),
            None => order,
        };
        order = if self.no_stock { order.no_stock() } else { order };
        if let Some(priority) = self.priority {
            order = order.priority(priority);
        }
        if let Some(key) = self.idempotency_key {
            order = order.idempotency_key(key);
        }
        if let Some(count) = self.max_retries {
            order = order.max_retries(count);
        }
        if let Some(span) = self.min_life {
            order = order.min_life(span);
        }
        Ok(match self.deadline {
            Some(span) => order.timeout(span),
            None => order,
        })
    }
}

/// Waits for the outcome and shows the phase. The wait ends if the provider does not accept the account: only an
/// operator can fix that.
pub(crate) async fn follow(
    node: &Quittance,
    ticket: &Ticket,
    progress: &mut output::ProgressLine,
) -> Result<Result<Solved, SolveError>, CliError> {
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
