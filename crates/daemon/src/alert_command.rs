//! Runs the operator's program for each alert that this node raises or clears. Runs are one at a time, without a
//! shell, and limited in time. The alert is on the program's standard input and in its environment.

use quittance_config::Config;
use quittance_gateway::harmless;
use quittance_telemetry::Announcement;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

/// How long one run may take.
const RUN_WAIT: Duration = Duration::from_secs(30);

/// Runs the program for each alert, for as long as the daemon runs.
pub(crate) fn run_program(
    mut heard: Receiver<Announcement>,
    config: &Config,
    secrets: watch::Receiver<Vec<String>>,
) -> impl Future<Output = ()> + Send + use<> {
    let program = config.alerts.command.clone();
    async move {
        loop {
            match heard.recv().await {
                Ok(_) if program.is_empty() => {}
                Ok(announcement) => {
                    let secrets = secrets.borrow().clone();
                    run(&program, &secrets, &announcement).await;
                }
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(
                        missed,
                        "alerts came faster than `alerts.command` takes them; the log and the page have them all"
                    );
                }
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }
}

async fn run(program: &[String], secrets: &[String], announcement: &Announcement) {
    let (rule, event) = (announcement.rule.as_str(), announcement.event);
    match tokio::time::timeout(RUN_WAIT, attempt(program, secrets, announcement)).await {
        Ok(Ok(status)) if status.success() => tracing::debug!(rule, event, "`alerts.command` has run"),
        Ok(Ok(status)) => tracing::warn!(rule, event, %status, "`alerts.command` ended badly"),
        Ok(Err(error)) => tracing::warn!(rule, event, %error, "`alerts.command` cannot be run"),
        Err(_) => {
            tracing::warn!(rule, event, "`alerts.command` was ended after {} s", RUN_WAIT.as_secs());
        }
    }
}

async fn attempt(
    program: &[String],
    secrets: &[String],
    announcement: &Announcement,
) -> std::io::Result<std::process::ExitStatus> {
    let Announcement { event, rule, subject, is_grave, words, at, .. } = announcement;
    let (name, given) = program.split_first().expect("without a program this is not called");
    let mut command = Command::new(name);
    command.args(given).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    // It gets alerts, and needs no keys.
    for secret in secrets {
        command.env_remove(secret);
    }
    for (variable, value) in [
        ("EVENT", *event),
        ("RULE", rule),
        ("SUBJECT", subject),
        ("GRAVE", if *is_grave { "true" } else { "false" }),
        ("WORDS", words),
        ("AT", at),
    ] {
        command.env(format!("QUITTANCE_ALERT_{variable}"), harmless(value));
    }
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // The same is in the environment of the program.
        _ = input.write_all(format!("{}\n", announcement.json()).as_bytes()).await;
    }
    child.wait().await
}
