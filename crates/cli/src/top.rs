//! `quittance top`: a node at work, in the terminal. It shows what `/v1/admin/live` tells, of the daemon that has the store or of
//! this process, and changes nothing.

mod draw;
mod picture;
mod terminal;
#[cfg(test)]
mod tests;
mod words;

use crate::config::{Config, Environment};
use crate::exit::{Exit, Trouble};
use crate::office::{Office, Stream};
use crate::output;
use clap::Args;
use http_body_util::BodyExt;
use hyper::Method;
use picture::Picture;
use serde_json::Value;
use std::io::{self, IsTerminal};

const LIVE: &str = "/v1/admin/live";
const NOW: &str = "/v1/admin/now";
/// More than any picture of thousands of pools.
const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance top
  quittance top --once                                 one look, as text
  quittance top --json | jq .orders                    one look, as the API tells it

Keys: q or Esc leave, p hold the picture, ? help.

It asks the daemon that has the store; where the store is shared, it looks for itself. The
admin key is taken from QUITTANCE_ADMIN_KEY. Where there is no terminal it looks once.

Exit codes:
  0        shown
  4        the configuration or the key is wrong
  5        the store or the daemon does not answer
  130,143  ended by a signal";

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Look once, print it as text, and end
    #[arg(long)]
    once: bool,
    /// Look once, and print what the API tells
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TopArgs, config: &Config, environment: &Environment) -> Result<Exit, Trouble> {
    let office = Office::find(config, environment).await?;
    let is_screen = io::stdout().is_terminal() && io::stdin().is_terminal();
    if args.json {
        let mut told: Value = office.read(NOW).await?;
        if matches!(office, Office::Here(_)) {
            told["providers"] = Value::Array(Vec::new());
        }
        return output::print(&format!("{told:#}\n")).map(|()| Exit::Done);
    }
    if args.once || !is_screen {
        let told = seen_from(&office, office.read(NOW).await?);
        return output::print(&words::page(&told)).map(|()| Exit::Done);
    }
    let pictures = Pictures::of(&office).await?;
    terminal::watch(&office, pictures).await
}

/// A picture without what its painter cannot know.
fn seen_from(office: &Office, picture: Picture) -> Picture {
    match office {
        Office::Here(_) => picture.without_provider_states(),
        Office::There(_) => picture,
    }
}

/// The pictures of a stream, one after the other.
struct Pictures {
    stream: Stream,
    /// What has come of the next event.
    rest: Vec<u8>,
}

impl Pictures {
    async fn of(office: &Office) -> Result<Self, Trouble> {
        let stream = office.open(Method::GET, LIVE, None).await?;
        Ok(Self { stream, rest: Vec::new() })
    }

    /// Nothing, when the stream has ended. It may be dropped in the middle, and loses nothing.
    async fn next(&mut self) -> Option<Picture> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                match read(&event) {
                    Some(picture) => return Some(picture),
                    None => continue,
                }
            }
            let frame = self.stream.frame().await?.ok()?;
            if let Some(bytes) = frame.data_ref() {
                self.rest.extend_from_slice(bytes);
            }
            if self.rest.len() > EVENT_BYTES_MAX {
                return None;
            }
        }
    }
}

/// The picture in an event, if there is one in it.
fn read(event: &[u8]) -> Option<Picture> {
    let text = std::str::from_utf8(event).ok()?;
    let told = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    serde_json::from_str(told).ok()
}
