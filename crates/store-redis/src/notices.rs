//! How waiting callers learn of commits in other processes: by notices on a separate connection. A slow re-check
//! backs them up, because Redis sends a notice once, and only to connections that listen at that moment.

use crate::RedisInner;
use crate::failure::RedisFailure;
use crate::link::RedisBackoff;
use crate::row::text;
use crate::settings::Settings;
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

/// How many orders are read at once.
const RECHECK_AT_ONCE: usize = 512;

/// How many of our own writes can wait for their second signal. Above that, some callers wake twice.
const OWN_WRITES_MAX: usize = 4096;

/// A write of this process has two signals: its reply and its notice. The first one wakes waiting callers, and the
/// second does nothing: a caller that begins to wait in between has read the new state.
pub(crate) struct OwnWrites {
    tag: u64,
    announced: Mutex<BTreeSet<u64>>,
}

impl OwnWrites {
    pub(crate) const fn new(tag: u64) -> Self {
        Self { tag, announced: Mutex::new(BTreeSet::new()) }
    }

    fn announced(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mark of one write, unique among all handles.
    pub(crate) fn mark(&self, number: u64) -> String {
        format!("{:x}-{number:x}", self.tag)
    }

    fn read_mark(&self, mark: &str) -> Option<u64> {
        let (tag, number) = mark.split_once('-')?;
        let is_ours = u64::from_str_radix(tag, 16).ok()? == self.tag;
        u64::from_str_radix(number, 16).ok().filter(|_| is_ours)
    }

    pub(crate) fn is_first_word(&self, number: u64) -> bool {
        let mut announced = self.announced();
        if announced.remove(&number) {
            return false;
        }
        announced.insert(number);
        if announced.len() > OWN_WRITES_MAX {
            announced.pop_first();
        }
        true
    }
}

/// Listens while the store is open.
pub(crate) struct NoticeListener {
    maker: Maker,
    channel: String,
    watchers: Watchers,
    own: Arc<OwnWrites>,
    recheck: Duration,
    call_wait: Duration,
    /// Signalled once, when the first notice arrives.
    ready: Option<oneshot::Sender<()>>,
}

impl NoticeListener {
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
        let mut timeout = RedisBackoff::new();
        loop {
            match self.subscribe().await {
                Ok((sink, stream)) => {
                    timeout = RedisBackoff::new();
                    self.own.announced().clear();
                    // Notices are lost while the connection is down: wake all waiting callers.
                    self.watchers.wake_all();
                    if let Some(ready) = self.ready.take() {
                        let _opener_is_gone = ready.send(());
                    }
                    let failure = self.listen(sink, stream).await;
                    tracing::debug!(%failure, "no notices arrive from Redis");
                }
                Err(failure) => tracing::debug!(%failure, "this node cannot subscribe to notices from Redis"),
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

    /// Listens until the connection fails, and returns the reason.
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

/// Re-checks every order with a waiting caller, again and again, and wakes callers that missed a notice.
pub(crate) async fn recheck(store: Weak<RedisInner>, span: Duration) {
    let mut ticks = interval(span);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Otherwise a caller that waits for an order that has long been settled would be woken each time.
    let mut announced = BTreeMap::new();
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(inner) = store.upgrade() else { return };
        announced = inner.recheck(&announced).await;
    }
}

type Announcements = BTreeMap<Key, Vec<u8>>;

impl RedisInner {
    /// The changed orders with their versions. A caller is woken once for one version.
    async fn recheck(&self, announced: &Announcements) -> Announcements {
        let mut now_announced = Announcements::new();
        let mut after = None;
        loop {
            let keys = self.watchers.keys(after.as_ref(), RECHECK_AT_ONCE);
            let Some(last) = keys.last() else { return now_announced };
            after = Some(*last);
            let looks = join_all(keys.iter().map(|key| self.news_of(key))).await;
            for (key, look) in keys.iter().zip(looks) {
                match look {
                    Ok(Some(version)) => {
                        if announced.get(key) != Some(&version) {
                            self.watchers.wake(key);
                        }
                        now_announced.insert(*key, version);
                    }
                    Ok(None) => {}
                    // Where one server of a cluster is away, those of the others can be looked at all the same.
                    Err(failure) => {
                        tracing::debug!(%failure, "an order that a caller waits for cannot be read");
                        now_announced.extend(announced.get(key).map(|version| (*key, version.clone())));
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
            // A caller that waits for it should learn that it cannot be read.
            Err(failure) if failure.is_wrong_type() => return Ok(Some(Vec::new())),
            Err(failure) => return Err(failure),
        };
        let mut fields = fields.into_iter().map(text);
        let version = fields.next().transpose()?.flatten();
        let awaited = fields.next().transpose()?.flatten();
        Ok(version.filter(|_| awaited.as_deref() == Some(b"0")))
    }
}
