//! `quittance doctor`: what a configuration cannot tell by itself: whether the store can be written, the provider can be
//! reached and accepts the key, and a callback would come in. Each finding says what to do about it.

use crate::config::Config;
use crate::exit::{Exit, Trouble};
use crate::output::harmless;
use crate::{node, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance::{Account, Quittance, Which};
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::TcpListener;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a caller from outside may take to reach us.
const REACH_WAIT: Duration = Duration::from_secs(5);

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance doctor
  quittance doctor --json | jq '.[] | select(.state != \"good\")'

Exit codes:
  0  nothing is wrong
  1  something is wrong; each finding says what to do
  4  the configuration itself is wrong

It places no order and pays nothing. The store must not be in use by another process.";

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print a JSON array of findings
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    Note,
    Bad,
}

struct Finding {
    about: &'static str,
    state: State,
    what: String,
}

impl Finding {
    fn new(about: &'static str, state: State, what: impl Into<String>) -> Self {
        Self { about, state, what: what.into() }
    }
}

pub(crate) async fn run(args: DoctorArgs, config: &Config) -> Result<Exit, Trouble> {
    let mut findings = vec![Finding::new("config", State::Good, "it makes sense")];
    findings.extend(targets(config));
    findings.extend(store(config).await);
    findings.extend(provider(config).await);
    findings.extend(callbacks(config).await);
    let is_bad = findings.iter().any(|finding| finding.state == State::Bad);
    output::print(&if args.json { as_json(&findings) } else { as_text(&findings) })?;
    Ok(if is_bad { Exit::Bad } else { Exit::Done })
}

fn as_json(findings: &[Finding]) -> String {
    let state = |state| match state {
        State::Good => "good",
        State::Note => "note",
        State::Bad => "bad",
    };
    let all = findings
        .iter()
        .map(|found| json!({ "about": found.about, "state": state(found.state), "what": found.what }));
    format!("{}\n", Value::Array(all.collect()))
}

fn as_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { about, state, what } in findings {
        let (style, word): (Style, _) = match state {
            State::Good => (AnsiColor::Green.on_default(), "good"),
            State::Note => (AnsiColor::Yellow.on_default(), "note"),
            State::Bad => (AnsiColor::Red.on_default().bold(), "BAD"),
        };
        _ = writeln!(text, "{style}{word:<5}{style:#} {about:<10} {}", harmless(what));
    }
    text
}

fn targets(config: &Config) -> Option<Finding> {
    config.targets.allow.is_empty().then(|| {
        let what =
            "no page host is allowed yet, apart from example.com and .test: list yours in targets.allow";
        Finding::new("targets", State::Note, what)
    })
}

async fn store(config: &Config) -> Vec<Finding> {
    let bad = |what: String| vec![Finding::new("store", State::Bad, what)];
    let opened = match node::open(config) {
        Ok(opened) => opened,
        Err(trouble) => return bad(trouble.what),
    };
    match count(&opened).await {
        Err(error) => bad(error.to_string()),
        Ok((open, dead, unreadable)) => {
            let mut findings = vec![Finding::new(
                "store",
                State::Good,
                format!("it opens and can be written; open orders: {open}"),
            )];
            if dead > 0 {
                let what = format!("dead letters that wait for a person: {dead}; see `quittance dead list`");
                findings.push(Finding::new("store", State::Note, what));
            }
            if unreadable > 0 {
                let what = format!(
                    "records that cannot be read, and are set aside: {unreadable}; see docs/operating.md"
                );
                findings.push(Finding::new("store", State::Bad, what));
            }
            findings
        }
    }
}

/// Open, dead and unreadable records. Dead letters are looked at one by one, open ones only counted by the page.
async fn count(node: &Quittance) -> Result<(usize, usize, usize), quittance::StoreError> {
    let (mut open, mut dead, mut unreadable) = (0, 0, 0);
    for which in [Which::Open, Which::Dead] {
        let mut after = None;
        loop {
            let page = node.list(which, after.as_ref(), 1000).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.as_ref().map_or_else(|found| found.key, |found| found.order.key));
            for found in page {
                match (found, which) {
                    (Err(_), _) => unreadable += 1,
                    (Ok(_), Which::Open) => open += 1,
                    (Ok(_), _) => dead += 1,
                }
            }
        }
    }
    Ok((open, dead, unreadable))
}

async fn provider(config: &Config) -> Vec<Finding> {
    let Some(first) = config.providers.first() else {
        return vec![Finding::new(
            "provider",
            State::Bad,
            "there is none: add a [[provider]] to the configuration",
        )];
    };
    let asked = match node::provider(first) {
        Ok(provider) => provider.account().await,
        Err(trouble) => return vec![Finding::new("provider", State::Bad, trouble.what)],
    };
    let mut findings = vec![match asked {
        Ok(account) => Finding::new(
            "provider",
            State::Good,
            format!("{} answers and accepts the key{}", first.name, what_is_there(&account)),
        ),
        Err(error) => Finding::new(
            "provider",
            State::Bad,
            format!("{}: {}", first.name, Trouble::of(Exit::Provider, &error)),
        ),
    }];
    if config.providers.len() > 1 {
        findings.push(Finding::new(
            "provider",
            State::Note,
            "only the first provider is used in this version",
        ));
    }
    findings
}

fn what_is_there(account: &Account) -> String {
    let balance = account
        .balance
        .map(|money| format!("balance {}.{:03}", money.0 / 1_000_000, money.0 % 1_000_000 / 1000));
    let threads =
        account.threads.map(|threads| format!("{} of {} threads in use", threads.working, threads.total));
    let told: Vec<String> = balance.into_iter().chain(threads).collect();
    if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) }
}

async fn callbacks(config: &Config) -> Vec<Finding> {
    let Some(public_url) = &config.public_url else {
        let what =
            "there is no public_url: answers are polled for, and a doubt cannot be settled by a callback";
        return vec![Finding::new("callbacks", State::Note, what)];
    };
    let listener = match TcpListener::bind(config.listen) {
        Ok(listener) => listener,
        Err(error) => {
            let what = format!(
                "{} cannot be listened on: {error}; choose another `listen`, or stop what uses it",
                config.listen
            );
            return vec![Finding::new("callbacks", State::Bad, what)];
        }
    };
    let Some(address) = public_url.strip_prefix("http://") else {
        let what = format!(
            "whether {public_url} leads here was not checked: it is https, and something in front of us ends it"
        );
        return vec![Finding::new("callbacks", State::Note, what)];
    };
    vec![match reaches_us(listener, address).await {
        Ok(()) => Finding::new("callbacks", State::Good, format!("{public_url} leads to {}", config.listen)),
        Err(why) => {
            let what = format!(
                "{public_url} does not lead to {}: {why}; check public_url and what stands in front of us",
                config.listen
            );
            Finding::new("callbacks", State::Bad, what)
        }
    }]
}

/// Calls our own public address, and sees whether the call arrives where we listen.
async fn reaches_us(listener: TcpListener, address: &str) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    listener.set_nonblocking(true).map_err(words)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(words)?;
    let (authority, path) = address.split_once('/').unwrap_or((address, ""));
    let host = if authority.rsplit(']').next().is_some_and(|rest| rest.contains(':')) {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let token = format!("quittance-doctor-{}", std::process::id());
    let call = async {
        let mut stream = TcpStream::connect(&host).await.map_err(words)?;
        let base = path.trim_end_matches('/');
        let slash = if base.is_empty() { "" } else { "/" };
        let request = format!(
            "GET /{base}{slash}callback/{token} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.map_err(words)?;
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer).await;
        Ok::<(), String>(())
    };
    let arrive = async {
        loop {
            let (mut stream, _) = listener.accept().await.map_err(words)?;
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.map_err(words)?;
            _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
            if String::from_utf8_lossy(&head[..read]).contains(&token) {
                return Ok::<(), String>(());
            }
        }
    };
    tokio::select! {
        arrived = arrive => arrived,
        failed = async { match call.await { Err(why) => why, Ok(()) => { std::future::pending().await } } } => Err(failed),
        () = tokio::time::sleep(REACH_WAIT) => Err(format!("nothing arrived within {} s", REACH_WAIT.as_secs())),
    }
}
