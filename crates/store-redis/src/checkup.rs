//! What the settings of Redis promise, and what they cost: each finding says which promise is weaker, and what to set.

use crate::Inner;
use crate::row::text;
use crate::trouble::RedisFailure;
use quittance_ports::{Finding, Verdict};
use redis::Value;
use std::collections::BTreeMap;

/// Above this share of `maxmemory`, somebody should look.
const MEMORY_PERCENT_MAX: u64 = 80;

type Pairs = BTreeMap<String, String>;

const SETTINGS: [&str; 5] =
    ["maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write"];

/// What `INFO` says, line by line.
pub(crate) fn read_info(value: Value) -> Result<Pairs, RedisFailure> {
    let told = match value {
        Value::VerbatimString { text, .. } => text.into_bytes(),
        other => text(other)?.unwrap_or_default(),
    };
    let told = String::from_utf8_lossy(&told);
    let lines = told.lines().filter_map(|line| line.split_once(':'));
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

/// The server's own version, and whether it is new enough.
pub(crate) struct Release {
    pub(crate) shown: String,
    pub(crate) is_enough: bool,
}

pub(crate) fn release(info: &Pairs) -> Release {
    if let Some(version) = info.get("valkey_version") {
        return Release { shown: format!("Valkey {version}"), is_enough: true };
    }
    let version = info.get("redis_version").map_or("", String::as_str);
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    Release { shown: version.to_owned(), is_enough: found >= (6, 2) }
}

impl Inner {
    pub(crate) async fn info(&self) -> Result<Vec<Pairs>, RedisFailure> {
        let command = redis::cmd("INFO");
        self.link.ask_all(&command).await?.into_iter().map(read_info).collect()
    }

    /// Nothing, where it may not be asked for, as with most providers of a managed Redis.
    async fn settings(&self) -> Result<Vec<Pairs>, RedisFailure> {
        let mut found: Vec<Pairs> = Vec::new();
        for name in SETTINGS {
            let mut command = redis::cmd("CONFIG");
            command.arg("GET").arg(name);
            let told = match self.link.ask_all(&command).await {
                Ok(told) => told,
                Err(RedisFailure::Redis(error)) if !error.is_io_error() => return Ok(Vec::new()),
                Err(trouble) => return Err(trouble),
            };
            found.resize(told.len().max(found.len()), Pairs::new());
            for (pairs, value) in found.iter_mut().zip(told) {
                pairs.extend(read_settings(value)?);
            }
        }
        Ok(found)
    }

    pub(crate) async fn checkup(&self) -> Result<Vec<Finding>, RedisFailure> {
        let infos = self.info().await?;
        let settings = self.settings().await?;
        let mut findings: Vec<Finding> = Vec::new();
        // Servers of a cluster are set up alike, or should be: what is true of several is said once.
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
            add(found(
                Verdict::Note,
                "Redis does not let its settings be read (CONFIG GET): see for yourself, or ask whoever runs it, that \
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

fn found(verdict: Verdict, what: impl Into<String>) -> Finding {
    Finding { verdict, what: what.into() }
}

fn check_release(info: &Pairs) -> Option<Finding> {
    let Release { shown, is_enough } = release(info);
    let shown = if shown.starts_with("Valkey") { shown } else { format!("Redis {shown}") };
    Some(if is_enough {
        found(Verdict::Good, format!("{shown}: new enough"))
    } else {
        found(
            Verdict::Bad,
            format!("{shown} is too old: Quittance is tested with Redis 6.2 and later, and with Valkey"),
        )
    })
}

fn check_eviction(settings: &Pairs) -> Option<Finding> {
    let policy = settings.get("maxmemory-policy")?;
    Some(if policy == "noeviction" {
        found(
            Verdict::Good,
            "maxmemory-policy is noeviction: a full memory refuses new orders and loses none",
        )
    } else {
        found(
            Verdict::Bad,
            format!(
                "maxmemory-policy is {policy}: when the memory is full Redis throws orders away, so what was paid for is \
                 lost, and the same order is paid for again; set maxmemory-policy noeviction"
            ),
        )
    })
}

fn check_log(settings: &Pairs) -> Option<Finding> {
    if settings.get("appendonly")? != "yes" {
        return Some(found(
            Verdict::Bad,
            "appendonly is no: when Redis restarts, everything since its last snapshot is lost, so orders that were \
             accepted and answers that were paid for are gone, and are paid for again; set appendonly yes",
        ));
    }
    Some(match settings.get("appendfsync").map(String::as_str) {
        Some("always") => found(
            Verdict::Good,
            "appendonly is yes and appendfsync always: what is accepted survives a loss of power",
        ),
        Some("everysec") => found(
            Verdict::Note,
            "appendfsync is everysec: a crash of Redis loses nothing, but a loss of power loses the last second or two of \
             orders accepted and answers paid for, which may then be paid for twice; set appendfsync always if that is \
             too much",
        ),
        _ => found(
            Verdict::Bad,
            "appendfsync is no: a loss of power loses whatever the system has not written yet, often half a minute of \
             orders accepted and answers paid for; set appendfsync always, or everysec",
        ),
    })
}

/// Redis says here, and only here, that its last attempt to write failed.
fn check_persistence(info: &Pairs) -> Option<Finding> {
    let failed = |name: &str| info.get(name).is_some_and(|status| status == "err");
    (failed("aof_last_write_status") || failed("aof_last_bgrewrite_status")).then(|| {
        found(
            Verdict::Bad,
            "Redis could not write its append-only file the last time it tried: it refuses writes, or will lose them; look \
             at its disk and its log",
        )
    })
}

fn check_role(info: &Pairs) -> Option<Finding> {
    let is_replica = info.get("role").is_some_and(|role| role == "slave" || role == "replica");
    is_replica.then(|| {
        found(
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
        return Some(found(
            Verdict::Bad,
            "all of maxmemory is in use: new orders are turned away and open ones cannot move on until there is room; raise \
             maxmemory, or keep answers for a shorter time",
        ));
    }
    (percent >= MEMORY_PERCENT_MAX).then(|| {
        found(
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
        found(
            Verdict::Note,
            format!(
                "{replicas} replicas are attached, and writes do not wait for them: when one takes over, the last writes \
                 may be gone, so an order accepted in that moment may be lost or paid for twice; min-replicas-to-write 1 \
                 with min-replicas-max-lag keeps a master that was cut off from going on alone, and PostgreSQL promises \
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
        for (told, shown, is_enough) in [
            ("redis_version:6.0.16\r\n", "6.0.16", false),
            ("redis_version:5.9.9\r\n", "5.9.9", false),
            ("# Server\r\nredis_version:6.2.0\r\nos:Linux\r\n", "6.2.0", true),
            ("redis_version:7.0.15\r\n", "7.0.15", true),
            ("redis_version:10.0\r\n", "10.0", true),
            ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n", "Valkey 8.1.0", true),
        ] {
            let info = read_info(Value::BulkString(told.into())).expect("it is text");
            let found = release(&info);
            assert_eq!((found.shown.as_str(), found.is_enough), (shown, is_enough));
        }
    }
}
