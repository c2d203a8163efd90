//! Checks the settings of Redis for `doctor`: each finding says which promise is weaker, and what to set.

use crate::RedisInner;
use crate::failure::RedisFailure;
use crate::row::text;
use quittance_ports::{Finding, Verdict};
use redis::Value;
use std::collections::BTreeMap;

/// The share of `maxmemory` above which an operator should look, in percent.
const MEMORY_PERCENT_MAX: u64 = 80;

type Pairs = BTreeMap<String, String>;

const SETTINGS: [&str; 5] =
    ["maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write"];

/// Parses the reply to `INFO`, line by line.
pub(crate) fn read_info(value: Value) -> Result<Pairs, RedisFailure> {
    let replies = match value {
        Value::VerbatimString { text, .. } => text.into_bytes(),
        other => text(other)?.unwrap_or_default(),
    };
    let replies = String::from_utf8_lossy(&replies);
    let lines = replies.lines().filter_map(|line| line.split_once(':'));
    Ok(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn read_settings(value: Value) -> Result<Pairs, RedisFailure> {
    let pairs: Vec<Value> = match value {
        Value::Array(pairs) => pairs,
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        _ => return Err(RedisFailure::Garbled),
    };
    let texts = pairs
        .into_iter()
        .map(|value| Ok(String::from_utf8_lossy(&text(value)?.unwrap_or_default()).into_owned()));
    let texts = texts.collect::<Result<Vec<String>, RedisFailure>>()?;
    Ok(texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// The server's version, and whether it is new enough.
pub(crate) struct Release {
    pub(crate) label: String,
    pub(crate) is_enough: bool,
}

pub(crate) fn release(info: &Pairs) -> Release {
    if let Some(version) = info.get("valkey_version") {
        return Release { label: format!("Valkey {version}"), is_enough: true };
    }
    let version = info.get("redis_version").map_or("", String::as_str);
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let note = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    Release { label: version.to_owned(), is_enough: note >= (6, 2) }
}

impl RedisInner {
    pub(crate) async fn info(&self) -> Result<Vec<Pairs>, RedisFailure> {
        let command = redis::cmd("INFO");
        self.link.ask_all(&command).await?.into_iter().map(read_info).collect()
    }

    /// The settings in groups of `CONFIG GET`. Empty if reading them is not allowed, as on most managed Redis
    /// services.
    async fn settings(&self) -> Result<Vec<Pairs>, RedisFailure> {
        let mut note: Vec<Pairs> = Vec::new();
        for name in SETTINGS {
            let mut command = redis::cmd("CONFIG");
            command.arg("GET").arg(name);
            let replies = match self.link.ask_all(&command).await {
                Ok(replies) => replies,
                Err(RedisFailure::Redis(error)) if !error.is_io_error() => return Ok(Vec::new()),
                Err(failure) => return Err(failure),
            };
            note.resize(replies.len().max(note.len()), Pairs::new());
            for (pairs, value) in note.iter_mut().zip(replies) {
                pairs.extend(read_settings(value)?);
            }
        }
        Ok(note)
    }

    pub(crate) async fn checkup(&self) -> Result<Vec<Finding>, RedisFailure> {
        let infos = self.info().await?;
        let settings = self.settings().await?;
        let mut findings: Vec<Finding> = Vec::new();
        // Servers of a cluster are set up alike, or should be: what is true of several is reported once.
        let mut add = |finding: Finding| {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        };
        for info in &infos {
            check_release(info).into_iter().for_each(&mut add);
            check_persistence(info).into_iter().for_each(&mut add);
            check_role(info).into_iter().for_each(&mut add);
        }
        if settings.is_empty() {
            add(note(
                Verdict::Note,
                "Redis does not let its settings be read (CONFIG GET): check with its operator that \
                 maxmemory-policy is noeviction and appendonly is yes; otherwise orders are lost, and paid for twice",
            ));
        }
        for settings in &settings {
            check_eviction(settings).into_iter().for_each(&mut add);
            check_log(settings).into_iter().for_each(&mut add);
        }
        for (info, settings) in infos.iter().zip(settings.iter().map(Some).chain(std::iter::repeat(None))) {
            check_memory(info).into_iter().for_each(&mut add);
            check_replicas(info, settings).into_iter().for_each(&mut add);
        }
        Ok(findings)
    }
}

fn note(verdict: Verdict, what: impl Into<String>) -> Finding {
    Finding { verdict, what: what.into() }
}

fn check_release(info: &Pairs) -> Option<Finding> {
    let Release { label, is_enough } = release(info);
    let label = if label.starts_with("Valkey") { label } else { format!("Redis {label}") };
    Some(if is_enough {
        note(Verdict::Good, format!("{label}: new enough"))
    } else {
        note(
            Verdict::Bad,
            format!("{label} is too old: Quittance is tested with Redis 6.2 and later, and with Valkey"),
        )
    })
}

fn check_eviction(settings: &Pairs) -> Option<Finding> {
    let policy = settings.get("maxmemory-policy")?;
    Some(if policy == "noeviction" {
        note(Verdict::Good, "maxmemory-policy is noeviction: a full memory refuses new orders and loses none")
    } else {
        note(
            Verdict::Bad,
            format!(
                "maxmemory-policy is {policy}: when the memory is full, Redis deletes orders, so what was paid for is lost, \
                 and the same order is paid for again; set maxmemory-policy noeviction"
            ),
        )
    })
}

fn check_log(settings: &Pairs) -> Option<Finding> {
    if settings.get("appendonly")? != "yes" {
        return Some(note(
            Verdict::Bad,
            "appendonly is no: when Redis restarts, everything since its last snapshot is lost, so orders that were \
             accepted and answers that were paid for are gone, and are paid for again; set appendonly yes",
        ));
    }
    Some(match settings.get("appendfsync").map(String::as_str) {
        Some("always") => note(
            Verdict::Good,
            "appendonly is yes and appendfsync always: what is accepted survives a loss of power",
        ),
        Some("everysec") => note(
            Verdict::Note,
            "appendfsync is everysec: a crash of Redis loses nothing, but a loss of power loses the last second or two of \
             orders accepted and answers paid for, which may then be paid for twice; set appendfsync always if that is \
             too much",
        ),
        _ => note(
            Verdict::Bad,
            "appendfsync is no: a loss of power loses whatever the system has not written yet, often half a minute of \
             orders accepted and answers paid for; set appendfsync always, or everysec",
        ),
    })
}

/// A finding if the last write to disk failed. Redis reports that only here.
fn check_persistence(info: &Pairs) -> Option<Finding> {
    let failed = |name: &str| info.get(name).is_some_and(|status| status == "err");
    (failed("aof_last_write_status") || failed("aof_last_bgrewrite_status")).then(|| {
        note(
            Verdict::Bad,
            "Redis could not write its append-only file the last time it tried: it refuses writes, or will lose them; look \
             at its disk and its log",
        )
    })
}

fn check_role(info: &Pairs) -> Option<Finding> {
    let is_replica = info.get("role").is_some_and(|role| role == "slave" || role == "replica");
    is_replica.then(|| {
        note(
            Verdict::Bad,
            "this server is a replica and takes no writes: no order is accepted; set store.url to its master, or to the \
             sentinels, which know it",
        )
    })
}

fn check_memory(info: &Pairs) -> Option<Finding> {
    let number = |name: &str| info.get(name).and_then(|text| text.parse::<u64>().ok());
    let (used, max) = (number("used_memory")?, number("maxmemory").filter(|max| *max > 0)?);
    let percent = used.saturating_mul(100) / max;
    if percent >= 100 {
        return Some(note(
            Verdict::Bad,
            "all of maxmemory is in use: new orders are refused and open ones cannot move on until there is room; raise \
             maxmemory, or keep answers for a shorter time",
        ));
    }
    (percent >= MEMORY_PERCENT_MAX).then(|| {
        note(
            Verdict::Note,
            format!(
                "{percent} % of maxmemory is in use: when it is full, new orders are refused and open ones cannot move on; \
                 raise maxmemory, or keep answers for a shorter time"
            ),
        )
    })
}

fn check_replicas(info: &Pairs, settings: Option<&Pairs>) -> Option<Finding> {
    let replicas: u64 = info.get("connected_slaves")?.parse().ok().filter(|count| *count > 0)?;
    let needed = settings.and_then(|settings| settings.get("min-replicas-to-write"));
    let needs_none = needed.is_none_or(|count| count == "0");
    needs_none.then(|| {
        note(
            Verdict::Note,
            format!(
                "{replicas} replicas are attached, and writes do not wait for them: when one takes over, the last writes \
                 may be gone, so an order accepted in that moment may be lost or paid for twice; min-replicas-to-write 1 \
                 with min-replicas-max-lag stops a master that was cut off from accepting writes alone; PostgreSQL promises \
                 more"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{read_info, release};
    use redis::Value;

    #[test]
    fn redis_before_6_2_is_too_old_and_valkey_never_is() {
        for (replies, label, is_enough) in [
            ("redis_version:6.0.16\r\n", "6.0.16", false),
            ("redis_version:5.9.9\r\n", "5.9.9", false),
            ("# Server\r\nredis_version:6.2.0\r\nos:Linux\r\n", "6.2.0", true),
            ("redis_version:7.0.15\r\n", "7.0.15", true),
            ("redis_version:10.0\r\n", "10.0", true),
            ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n", "Valkey 8.1.0", true),
        ] {
            let info = read_info(Value::BulkString(replies.into())).expect("it is text");
            let note = release(&info);
            assert_eq!((note.label.as_str(), note.is_enough), (label, is_enough));
        }
    }
}
