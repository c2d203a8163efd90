//! The one connection that all calls share, kept by a task of its own: when it breaks, a new one is made, after a pause
//! that grows, and whoever calls in the meantime waits for it, but not for long.

use crate::settings::Settings;
use crate::trouble::RedisFailure;
use crate::wire::{Maker, Wire};
use redis::{Cmd, Value};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Word that a connection broke; more of it than this says nothing new.
const BROKEN_WAITING_MAX: usize = 16;

/// A pause between attempts that grows while they fail.
pub(crate) struct Timeout(Duration);

impl Timeout {
    pub(crate) const fn new() -> Self {
        Self(PAUSE_MIN)
    }

    pub(crate) async fn pause(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
    }
}

#[derive(Clone)]
enum State {
    /// Why, as the last attempt said.
    Away(Option<RedisFailure>),
    Up(u64, Wire),
}

#[derive(Clone)]
pub(crate) struct Link {
    state: watch::Receiver<State>,
    broken: mpsc::Sender<u64>,
    call_wait: Duration,
}

/// Keeps a connection for as long as anybody has a link to it.
pub(crate) struct Keeper {
    maker: Maker,
    state: watch::Sender<State>,
    broken: mpsc::Receiver<u64>,
    call_wait: Duration,
}

impl Link {
    pub(crate) fn new(settings: &Settings) -> redis::RedisResult<(Self, Keeper)> {
        let (state_out, state) = watch::channel(State::Away(None));
        let (broken, broken_in) = mpsc::channel(BROKEN_WAITING_MAX);
        let maker = Maker::new(settings)?;
        let call_wait = settings.call_wait;
        Ok((
            Self { state, broken, call_wait },
            Keeper { maker, state: state_out, broken: broken_in, call_wait },
        ))
    }

    /// The connection as it is now, or as it will be in a moment.
    async fn wire(&self) -> Result<(u64, Wire), RedisFailure> {
        if let State::Up(number, wire) = &*self.state.borrow() {
            return Ok((*number, wire.clone()));
        }
        let mut state = self.state.clone();
        let up = timeout(self.call_wait, state.wait_for(|state| matches!(state, State::Up(..)))).await;
        if let Ok(Ok(state)) = up
            && let State::Up(number, wire) = &*state
        {
            return Ok((*number, wire.clone()));
        }
        Err(self.why_away())
    }

    fn why_away(&self) -> RedisFailure {
        match &*self.state.borrow() {
            State::Away(Some(trouble)) => trouble.clone(),
            State::Away(None) => RedisFailure::Away("none could be made in time".into()),
            State::Up(..) => RedisFailure::NoAnswer,
        }
    }

    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, RedisFailure> {
        let (number, mut wire) = self.wire().await?;
        let asked = timeout(self.call_wait, wire.send(command)).await;
        self.judge(
            number,
            &wire,
            asked.map_or(Err(RedisFailure::NoAnswer), |answer| answer.map_err(RedisFailure::from)),
        )
    }

    pub(crate) async fn ask_all(&self, command: &Cmd) -> Result<Vec<Value>, RedisFailure> {
        let (number, mut wire) = self.wire().await?;
        let asked = timeout(self.call_wait, wire.send_to_all(command)).await;
        self.judge(
            number,
            &wire,
            asked.map_or(Err(RedisFailure::NoAnswer), |answer| answer.map_err(RedisFailure::from)),
        )
    }

    fn judge<T>(&self, number: u64, wire: &Wire, answer: Result<T, RedisFailure>) -> Result<T, RedisFailure> {
        let is_broken = |trouble: &RedisFailure| match wire {
            Wire::One(_) => trouble.is_of_the_connection(),
            Wire::Cluster(_) => trouble.is_of_the_whole_cluster(),
        };
        if answer.as_ref().is_err_and(is_broken) {
            // Where there is no room for it, enough others have said the same.
            let _told = self.broken.try_send(number);
        }
        answer
    }
}

impl Keeper {
    pub(crate) async fn run(mut self) {
        let mut timeout = Timeout::new();
        for number in 0_u64.. {
            match self.connect().await {
                Ok(wire) => {
                    timeout = Timeout::new();
                    self.state.send_replace(State::Up(number, wire));
                    loop {
                        match self.broken.recv().await {
                            None => return,
                            Some(broken) if broken == number => break,
                            Some(_) => {}
                        }
                    }
                    self.state.send_replace(State::Away(None));
                }
                Err(trouble) => {
                    tracing::debug!(%trouble, "no connection to Redis");
                    self.state.send_replace(State::Away(Some(trouble)));
                }
            }
            if self.state.is_closed() {
                return;
            }
            timeout.pause().await;
        }
    }

    async fn connect(&mut self) -> Result<Wire, RedisFailure> {
        let made = timeout(self.call_wait, self.maker.wire()).await;
        made.map_or(Err(RedisFailure::NoAnswer), |wire| wire.map_err(RedisFailure::from))
    }
}
