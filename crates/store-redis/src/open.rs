//! Opens a store: connects, checks the server, and settles the layout.

use crate::checkup::{Release, read_info, release};
use crate::failure::{RedisFailure, RedisOpenError};
use crate::layout::{FORMAT, Layout};
use crate::link::Link;
use crate::notices::{NoticeListener, OwnWrites, recheck};
use crate::row::text;
use crate::scripts::Scripts;
use crate::settings::Settings;
use crate::timers::TimerSweeps;
use crate::{RedisInner, RedisStore, Tasks};
use quittance_ports::Watchers;
use redis::Value;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::rustls::crypto::ring;

pub(crate) async fn open(settings: &Settings) -> Result<RedisStore, RedisOpenError> {
    let address = settings.address();
    let failed = |failure: RedisFailure| RedisOpenError::of(&address, &failure);
    if settings.url.is_tls {
        // The first node has chosen; the error says no more than that.
        let _chosen = ring::default_provider().install_default();
    }
    let (link, keeper) = Link::new(settings).map_err(|error| failed(error.into()))?;
    let mut tasks = Tasks(vec![tokio::spawn(keeper.run()).abort_handle()]);
    let layout = Layout::new(settings.prefix(), settings.partitions());
    let mut inner = RedisInner {
        address: address.clone(),
        link,
        channel: layout.channel(),
        layout,
        scripts: Scripts::new(),
        watchers: Watchers::default(),
        // New for each handle; it need not be a secret.
        own: Arc::new(OwnWrites::new(RandomState::new().hash_one(0))),
        writes: AtomicU64::new(0),
        round_trips: AtomicU64::new(0),
        known: Mutex::default(),
        timer_sweeps: TimerSweeps::default(),
        timers_restored: AtomicU64::new(0),
    };
    inner.settle(settings.is_look).await?;

    let (ready_out, ready) = oneshot::channel();
    let whom = (inner.watchers.clone(), Arc::clone(&inner.own));
    let listener = NoticeListener::new(settings, inner.channel.clone(), whom, ready_out);
    tasks.0.push(tokio::spawn(listener.map_err(|error| failed(error.into()))?.run()).abort_handle());
    // Where notices arrive late all callers are woken then, so this need not wait for long.
    if timeout(settings.call_wait, ready).await.is_err() {
        tracing::warn!(
            address,
            "no notices arrive from Redis yet; awaited orders are read every few seconds"
        );
    }
    let inner = Arc::new(inner);
    tasks.0.push(tokio::spawn(recheck(Arc::downgrade(&inner), settings.recheck)).abort_handle());
    Ok(RedisStore { inner, _tasks: Arc::new(tasks) })
}

impl RedisInner {
    fn check_release(&self, server_info: Value) -> Result<(), RedisOpenError> {
        let server_info =
            read_info(server_info).map_err(|failure| RedisOpenError::of(&self.address, &failure))?;
        // A user without the right to ask gets nothing; what matters will show.
        match release(&server_info) {
            Release { label, is_enough: false } if !server_info.is_empty() => {
                Err(RedisOpenError::TooOld { address: self.address.clone(), found: label })
            }
            _ => Ok(()),
        }
    }

    /// Settles the layout. Nodes that partition the orders differently would pay twice, so a later node uses the
    /// layout of the first.
    async fn settle(&mut self, is_look: bool) -> Result<(), RedisOpenError> {
        let failed = |failure: &RedisFailure| RedisOpenError::of(&self.address, failure);
        let (format, partitions) = (FORMAT.to_string(), self.layout.partitions.to_string());
        let args = [format.as_bytes(), partitions.as_bytes()];
        let args: &[&[u8]] = if is_look { &[] } else { &args };
        let answer = self.run_plain(&self.scripts.settle, &[self.layout.meta()], args).await;
        let Value::Array(mut values) = answer.map_err(|failure| failed(&failure))? else {
            return Err(failed(&RedisFailure::Garbled));
        };
        self.check_release(values.pop().unwrap_or(Value::Nil))?;
        if is_look && values.iter().all(|value| *value == Value::Nil) {
            return Err(RedisOpenError::Missing { address: self.address.clone() });
        }
        let mut numbers = values.into_iter().map(|value| {
            let digits = text(value).ok()??;
            std::str::from_utf8(&digits).ok()?.parse::<u64>().ok()
        });
        let not_ours = || RedisOpenError::NotOurs { address: self.address.clone() };
        let record = numbers.next().flatten().ok_or_else(not_ours)?;
        if record > FORMAT {
            return Err(RedisOpenError::Newer {
                address: self.address.clone(),
                found: record,
                known: FORMAT,
            });
        }
        if record < FORMAT {
            return Err(RedisOpenError::Older {
                address: self.address.clone(),
                found: record,
                known: FORMAT,
            });
        }
        let partitions = numbers.next().flatten().and_then(|count| u16::try_from(count).ok());
        let partitions = partitions.filter(|count| *count > 0).ok_or_else(not_ours)?;
        if partitions != self.layout.partitions {
            tracing::info!(
                address = self.address,
                sent = self.layout.partitions,
                record = partitions,
                "the store has another number of partitions than the settings, and keeps it"
            );
            self.layout = self.layout.divided_into(partitions);
        }
        Ok(())
    }
}
