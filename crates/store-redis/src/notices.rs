//! How whoever waits hears of commits in other processes: by notices, on a connection of their own, and behind them by a
//! slow re-check, because Redis tells a notice once and to whoever listens at that moment.

use crate::Inner;
use crate::link::Timeout;
use crate::row::text;
use crate::settings::Settings;
use crate::trouble::RedisFailure;
use crate::wire::Maker;
use futures_util::StreamExt;
use futures_util::future::join_all;
use quittance_lifecycle::Key;
use quittance_ports::Watchers;
use redis::Value;
use redis::aio::{PubSubSink, PubSubStream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How many orders are looked at in one go.
const RECHECK_AT_ONCE: usize = 512;

/// How many of our own writes may wait for their second word; of more than that some are told twice.
const OWN_WRITES_MAX: usize = 4096;

/// Of a write of our own there are two words, its answer and its notice, and whoever waits here is woken by the one that
/// comes first. By that alone: whoever begins to wait in between has seen what was written.
pub(crate) struct OwnWrites {
    tag: u64,
    told: Mutex<BTreeSet<u64>>,
}

impl OwnWrites {
    pub(crate) const fn new(tag: u64) -> Self {
        Self { tag, told: Mutex::new(BTreeSet::new()) }
    }

    fn told(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mark of one write among those of all handles.
    pub(crate) fn mark(&self, number: u64) -> String {
        format!("{:x}-{number:x}", self.tag)
    }

    fn read_mark(&self, mark: &str) -> Option<u64> {
        let (tag, number) = mark.split_once('-')?;
        let is_ours = u64::from_str_radix(tag, 16).ok()? == self.tag;
        u64::from_str_radix(number, 16).ok().filter(|_| is_ours)
    }

    pub(crate) fn is_first_word(&self, number: u64) -> bool {
        let mut told = self.told();
        if told.remove(&number) {
            return false;
        }
        told.insert(number);
        if told.len() > OWN_WRITES_MAX {
            told.pop_first();
        }
        true
    }
}

/// Listens for as long as the store is open.
pub(crate) struct Listener {
    maker: Maker,
    channel: String,
    watchers: Watchers,
    own: Arc<OwnWrites>,
    recheck: Duration,
    call_wait: Duration,
    /// Told once, when it hears for the first time.
    ready: Option<oneshot::Sender<()>>,
}

impl Listener {
    pub(crate) fn new(
        settings: &Settings,
        channel: String,
        (watchers, own): (Watchers, Arc<OwnWrites>),
        ready: oneshot::Sender<()>,
    ) -> redis::RedisResult<Self> {
        Ok(Self {
            maker: Maker::new(settings)?,
            channel,
            watchers,
            own,
            recheck: settings.recheck,
            call_wait: settings.call_wait,
            ready: Some(ready),
        })
    }

    pub(crate) async fn run(mut self) {
        let mut timeout = Timeout::new();
        loop {
            match self.subscribe().await {
                Ok((sink, stream)) => {
                    timeout = Timeout::new();
                    self.own.told().clear();
                    // Whatever was told while nobody listened is lost: let everybody look.
                    self.watchers.wake_all();
                    if let Some(ready) = self.ready.take() {
                        let _whoever_opened_has_gone = ready.send(());
                    }
                    let trouble = self.listen(sink, stream).await;
                    tracing::debug!(%trouble, "notices from Redis are not heard");
                }
                Err(trouble) => tracing::debug!(%trouble, "notices from Redis cannot be heard"),
            }
            timeout.pause().await;
        }
    }

    async fn subscribe(&mut self) -> Result<(PubSubSink, PubSubStream), RedisFailure> {
        let subscribed = timeout(self.call_wait, async {
            let (mut sink, stream) = self.maker.pubsub().await?.split();
            sink.subscribe(&self.channel).await?;
            Ok((sink, stream))
        });
        subscribed.await.unwrap_or(Err(RedisFailure::NoAnswer))
    }

    /// Returns when nothing can be heard any more, and why.
    async fn listen(&self, mut sink: PubSubSink, mut stream: PubSubStream) -> RedisFailure {
        // A connection that is dead without a word is found out by asking.
        let mut pings = interval(self.recheck.max(self.call_wait));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                notice = stream.next() => match notice {
                    Some(notice) => self.hear(notice.get_payload_bytes()),
                    None => return RedisFailure::Away("the server has closed it".into()),
                },
                _ = pings.tick() => match timeout(self.call_wait, sink.ping::<Value>()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => return error.into(),
                    Err(_) => return RedisFailure::NoAnswer,
                },
            }
        }
    }

    fn hear(&self, notice: &[u8]) {
        let notice = std::str::from_utf8(notice).unwrap_or_default();
        let (key, mark) = notice.split_once(' ').unwrap_or((notice, ""));
        match Key::parse(key) {
            Ok(key) if self.own.read_mark(mark).is_none_or(|number| self.own.is_first_word(number)) => {
                self.watchers.wake(&key);
            }
            Ok(_) => {}
            Err(_) => tracing::debug!("a notice from Redis names no order"),
        }
    }
}

/// Looks at every order that somebody waits for, again and again, and wakes those who have missed something.
pub(crate) async fn recheck(store: Weak<Inner>, span: Duration) {
    let mut ticks = interval(span);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Or whoever waits for an order that has long been settled would be woken each time.
    let mut told = BTreeMap::new();
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(inner) = store.upgrade() else { return };
        told = inner.recheck(&told).await;
    }
}

type Announcements = BTreeMap<Key, Vec<u8>>;

impl Inner {
    /// The orders with news, each with its version; whoever had been told of the same version is left asleep.
    async fn recheck(&self, told: &Announcements) -> Announcements {
        let mut now_told = Announcements::new();
        let mut after = None;
        loop {
            let keys = self.watchers.keys(after.as_ref(), RECHECK_AT_ONCE);
            let Some(last) = keys.last() else { return now_told };
            after = Some(*last);
            let looks = join_all(keys.iter().map(|key| self.news_of(key))).await;
            for (key, look) in keys.iter().zip(looks) {
                match look {
                    Ok(Some(version)) => {
                        if told.get(key) != Some(&version) {
                            self.watchers.wake(key);
                        }
                        now_told.insert(*key, version);
                    }
                    Ok(None) => {}
                    // Where one server of a cluster is away, those of the others can be looked at all the same.
                    Err(trouble) => {
                        tracing::debug!(%trouble, "an order that is waited for cannot be looked at");
                        now_told.extend(told.get(key).map(|version| (*key, version.clone())));
                    }
                }
            }
        }
    }

    /// The version of an order that is no longer awaited.
    async fn news_of(&self, key: &Key) -> Result<Option<Vec<u8>>, RedisFailure> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.layout.record(key)).arg(&["version", "awaited"]);
        let fields = match self.link.ask(&command).await {
            Ok(Value::Array(fields)) => fields,
            Ok(_) => return Err(RedisFailure::Garbled),
            // Whoever waits for it should hear that it cannot be read.
            Err(trouble) if trouble.is_wrong_type() => return Ok(Some(Vec::new())),
            Err(trouble) => return Err(trouble),
        };
        let mut fields = fields.into_iter().map(text);
        let version = fields.next().transpose()?.flatten();
        let awaited = fields.next().transpose()?.flatten();
        Ok(version.filter(|_| awaited.as_deref() == Some(b"0")))
    }
}
