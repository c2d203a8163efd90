//! The leases of limits that nodes hold. The leases of one limit are one hash in the first partition, and use the
//! clock of the server. Their versions come from the same counter as those of orders.

use crate::RedisStore;
use crate::commit::ScriptAnswer;
use crate::failure::RedisFailure;
use crate::layout::{FIRST, VERSIONS};
use crate::row::{read_version, text};
use crate::scripts::Lua;
use async_trait::async_trait;
use quittance_ports::leases::LEASES_FORGOTTEN_AFTER;
use quittance_ports::{LeaseOutcome, LeaseTotal, Leases, StoreError, Version};
use redis::Value;
use std::time::Duration;

impl RedisStore {
    async fn run_lease(
        &self,
        script: &Lua,
        limit: &str,
        args: &[&[u8]],
    ) -> Result<ScriptAnswer, RedisFailure> {
        let inner = self.inner();
        let leases = inner.layout.name(FIRST, format_args!("leases:{limit}"));
        inner.run(script, &[inner.layout.name(FIRST, VERSIONS), leases], args).await
    }
}

fn read_leased(values: Vec<Value>) -> Result<LeaseTotal, RedisFailure> {
    let [version, by_others] = <[Value; 2]>::try_from(values).map_err(|_| RedisFailure::Garbled)?;
    let number = |value| {
        let text = text(value)?.and_then(|text| String::from_utf8(text).ok());
        text.and_then(|text| text.parse::<u64>().ok()).ok_or(RedisFailure::Garbled)
    };
    Ok(LeaseTotal { version: Version(number(version)?), by_others: number(by_others)? })
}

fn read_outcome(answer: ScriptAnswer) -> Result<LeaseOutcome, RedisFailure> {
    match &answer.word[..] {
        b"conflict" => Ok(LeaseOutcome::Conflict(read_leased(answer.rest)?)),
        b"done" => {
            let version = answer.rest.into_iter().next().map(text).transpose()?.flatten();
            let version = version.as_deref().and_then(read_version).ok_or(RedisFailure::Garbled)?;
            Ok(LeaseOutcome::Done(version))
        }
        _ => Err(RedisFailure::Garbled),
    }
}

#[async_trait]
impl Leases for RedisStore {
    async fn leased(&self, limit: &str, node: u64) -> Result<LeaseTotal, StoreError> {
        let node = node.to_string();
        let answer = self.run_lease(&self.inner().scripts.leased, limit, &[node.as_bytes()]).await;
        answer
            .and_then(|answer| read_leased(answer.rest))
            .map_err(|failure| failure.unavailable("reading what is leased"))
    }

    async fn lease(
        &self,
        limit: &str,
        expected: Version,
        node: u64,
        amount: u64,
        life: Duration,
    ) -> Result<LeaseOutcome, StoreError> {
        let args = [node, expected.0, amount].map(|number| number.to_string());
        let spans = [life, LEASES_FORGOTTEN_AFTER].map(|span| span.as_millis().to_string());
        let args: Vec<&[u8]> = args.iter().chain(&spans).map(String::as_bytes).collect();
        let answer = self.run_lease(&self.inner().scripts.lease, limit, &args).await;
        answer.and_then(read_outcome).map_err(|failure| failure.unavailable("leasing a part of a limit"))
    }

    async fn give_back(
        &self,
        limit: &str,
        node: u64,
        version: Version,
        amount: u64,
    ) -> Result<(), StoreError> {
        let args = [node, version.0, amount].map(|number| number.to_string());
        let args = args.each_ref().map(|arg| arg.as_bytes());
        let answer = self.run_lease(&self.inner().scripts.give_back, limit, &args).await;
        answer.map(drop).map_err(|failure| failure.unavailable("giving back a part of a lease"))
    }
}
