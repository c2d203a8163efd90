//! Which dead letters somebody means, as it is typed at the prompt and as `/v1` is asked for it.

use crate::day;
use crate::exit::{Exit, Trouble};
use clap::Args;
use quittance::SystemClock;
use quittance::lifecycle::{LetterCause, Timestamp};
use quittance_ports::Clock;
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Args, Debug, Default)]
pub(super) struct FilterArgs {
    /// Only with this cause: retries_spent, deadline, doubt, delivery or unreadable
    #[arg(long, value_name = "CAUSE", value_parser = cause)]
    cause: Option<&'static str>,
    /// Only of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only for pages of this host
    #[arg(long, visible_alias = "target", value_name = "HOST")]
    site: Option<String>,
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only what has been dead for longer than this, such as 2h
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    older_than: Option<Duration>,
    /// Only what has been dead for less than this
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    newer_than: Option<Duration>,
}

fn cause(typed: &str) -> Result<&'static str, String> {
    let names = LetterCause::ALL.map(LetterCause::name);
    let found = LetterCause::named(typed).map(LetterCause::name);
    found.ok_or_else(|| format!("there are {}", names.join(", ")))
}

impl FilterArgs {
    /// The fields of `/v1`, and nothing for what was not said.
    pub(super) fn said(&self) -> Result<Map<String, Value>, Trouble> {
        let now = SystemClock.now();
        let ago = |span: Duration| {
            let ms = u64::try_from(span.as_millis()).ok().and_then(|ms| now.as_millis().checked_sub(ms));
            ms.map(|ms| day::moment(Timestamp::from_millis(ms)))
                .ok_or_else(|| Trouble::new(Exit::Usage, "nothing is that old"))
        };
        let fields = [
            ("cause", self.cause.map(str::to_owned)),
            ("kind", self.kind.clone()),
            ("site", self.site.clone()),
            ("tenant", self.tenant.clone()),
            ("before", self.older_than.map(ago).transpose()?),
            ("since", self.newer_than.map(ago).transpose()?),
        ];
        Ok(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect())
    }

    pub(super) fn query(&self) -> Result<String, Trouble> {
        let said = self.said()?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &said {
            query.append_pair(name, value.as_str().unwrap_or_default());
        }
        Ok(query.finish())
    }
}

/// What of an answer is text; nothing is no text.
pub(super) fn text<'a>(told: &'a Value, field: &str) -> &'a str {
    told[field].as_str().unwrap_or_default()
}

pub(super) fn number(told: &Value, field: &str) -> u64 {
    told[field].as_u64().unwrap_or_default()
}

/// The first digits of a key, enough for people.
pub(super) fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}
