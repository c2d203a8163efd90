//! The one connection that all calls share. A separate task replaces it when it breaks, after a pause that grows.
//! Calls wait a short time for the new connection.

use crate::failure::RedisFailure;
use crate::settings::Settings;
use crate::wire::{Maker, RedisWire};
use redis::{Cmd, Value};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The most reports of a broken connection that are queued. More reports add nothing.
const BROKEN_WAITING_MAX: usize = 16;

/// A pause between attempts that grows after each failure.
pub(crate) struct RedisBackoff(Duration);

impl RedisBackoff {
    pub(crate) const fn new() -> Self {
        Self(PAUSE_MIN)
    }

    pub(crate) async fn pause(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
    }
}

#[derive(Clone)]
enum LinkState {
    /// There is no connection, with the error of the last attempt.
    Away(Option<RedisFailure>),
    Up(u64, RedisWire),
}

#[derive(Clone)]
pub(crate) struct Link {
    state: watch::Receiver<LinkState>,
    broken: mpsc::Sender<u64>,
    call_wait: Duration,
}

/// Keeps a connection up while there is a link to it.
pub(crate) struct LinkKeeper {
    maker: Maker,
    state: watch::Sender<LinkState>,
    broken: mpsc::Receiver<u64>,
    call_wait: Duration,
}

impl Link {
    pub(crate) fn new(settings: &Settings) -> redis::RedisResult<(Self, LinkKeeper)> {
        let (state_out, state) = watch::channel(LinkState::Away(None));
        let (broken, broken_in) = mpsc::channel(BROKEN_WAITING_MAX);
        let maker = Maker::new(settings)?;
        let call_wait = settings.call_wait;
        Ok((
            Self { state, broken, call_wait },
            LinkKeeper { maker, state: state_out, broken: broken_in, call_wait },
        ))
    }

    /// The current connection, or the next one if it comes soon.
    async fn wire(&self) -> Result<(u64, RedisWire), RedisFailure> {
        if let LinkState::Up(number, wire) = &*self.state.borrow() {
            return Ok((*number, wire.clone()));
        }
        let mut state = self.state.clone();
        let up = timeout(self.call_wait, state.wait_for(|state| matches!(state, LinkState::Up(..)))).await;
        if let Ok(Ok(state)) = up
            && let LinkState::Up(number, wire) = &*state
        {
            return Ok((*number, wire.clone()));
        }
        Err(self.why_away())
    }

    fn why_away(&self) -> RedisFailure {
        match &*self.state.borrow() {
            LinkState::Away(Some(failure)) => failure.clone(),
            LinkState::Away(None) => RedisFailure::Away("no connection could be made in time".into()),
            LinkState::Up(..) => RedisFailure::NoAnswer,
        }
    }

    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, RedisFailure> {
        let (number, mut wire) = self.wire().await?;
        let sent = timeout(self.call_wait, wire.send(command)).await;
        self.judge(
            number,
            &wire,
            sent.map_or(Err(RedisFailure::NoAnswer), |answer| answer.map_err(RedisFailure::from)),
        )
    }

    pub(crate) async fn ask_all(&self, command: &Cmd) -> Result<Vec<Value>, RedisFailure> {
        let (number, mut wire) = self.wire().await?;
        let sent = timeout(self.call_wait, wire.send_to_all(command)).await;
        self.judge(
            number,
            &wire,
            sent.map_or(Err(RedisFailure::NoAnswer), |answer| answer.map_err(RedisFailure::from)),
        )
    }

    fn judge<T>(
        &self,
        number: u64,
        wire: &RedisWire,
        answer: Result<T, RedisFailure>,
    ) -> Result<T, RedisFailure> {
        let is_broken = |failure: &RedisFailure| match wire {
            RedisWire::One(_) => failure.is_of_the_connection(),
            RedisWire::Cluster(_) => failure.is_of_the_whole_cluster(),
        };
        if answer.as_ref().is_err_and(is_broken) {
            // Where the channel is full, enough others have reported the same.
            let _due = self.broken.try_send(number);
        }
        answer
    }
}

impl LinkKeeper {
    pub(crate) async fn run(mut self) {
        let mut timeout = RedisBackoff::new();
        for number in 0_u64.. {
            match self.connect().await {
                Ok(wire) => {
                    timeout = RedisBackoff::new();
                    self.state.send_replace(LinkState::Up(number, wire));
                    loop {
                        match self.broken.recv().await {
                            None => return,
                            Some(broken) if broken == number => break,
                            Some(_) => {}
                        }
                    }
                    self.state.send_replace(LinkState::Away(None));
                }
                Err(failure) => {
                    tracing::debug!(%failure, "no connection to Redis");
                    self.state.send_replace(LinkState::Away(Some(failure)));
                }
            }
            if self.state.is_closed() {
                return;
            }
            timeout.pause().await;
        }
    }

    async fn connect(&mut self) -> Result<RedisWire, RedisFailure> {
        let made = timeout(self.call_wait, self.maker.wire()).await;
        made.map_or(Err(RedisFailure::NoAnswer), |wire| wire.map_err(RedisFailure::from))
    }
}
