//! Sizes a pool from how often orders come, and how long an answer takes to reach the stock. The level is the
//! smallest that serves the wanted share of orders, unless too much of it would expire.

use super::erlang::{Ladder, PoolForecast, expected};
use super::leads::Leads;
use super::level::{Level, Why};
use super::regimes::{Regimes, Settings};
use quittance_lifecycle::Timestamp;
use quittance_ports::Goal;
use quittance_ports::SIZE_MAX;
use std::collections::VecDeque;
use std::time::Duration;

/// The least orders in an answer's usable life: with fewer, even a pool of one wastes more than [`EXPIRED_MAX`].
pub const PER_LIFE_MIN: f64 = 3.0;
/// The largest share of answers bought for a stock that may expire.
pub const EXPIRED_MAX: f64 = 0.05;

/// Demand is followed as if an answer's life were at most this long.
const FOLLOW_MAX: Duration = Duration::from_secs(300);
const FOLLOW_MIN: Duration = Duration::from_secs(1);
/// How many times per life the demand is read.
const LOOKS: u32 = 64;
/// How many new memories of demand begin per life.
const BEGINNINGS: u32 = 16;
/// The model assumes that the demand changes once in this many lives of an answer.
const LIVES_BETWEEN_CHANGES: f64 = 100.0;
/// A silence of more than this many lives comes from a clock that jumped or a node that slept. It counts as this much
/// only.
const SILENCE_LIVES_MAX: u32 = 4;

#[derive(Clone, Debug)]
pub struct Sizer {
    goal: Goal,
    usable: Duration,
    demand: Regimes,
    leads: Leads,
    looked: Option<Timestamp>,
    /// How many orders have come since then.
    asked: u64,
    recent: Recent,
    level: Option<Level>,
    /// Whether the inputs of the level have changed.
    is_stale: bool,
}

impl Sizer {
    /// `usable` is how long after its solve an answer can be handed out (life less margin). `lead` is how long an
    /// answer takes from the decision to buy it to the stock, until there are measurements.
    #[must_use]
    pub fn new(goal: Goal, usable: Duration, lead: Duration) -> Self {
        Self {
            goal,
            usable,
            demand: demand(usable),
            leads: Leads::new(lead),
            looked: None,
            asked: 0,
            recent: Recent::default(),
            level: None,
            is_stale: true,
        }
    }

    /// Counts the orders for this target since the last call. A count of 0 is information, too.
    pub fn asked(&mut self, now: Timestamp, count: u64) {
        self.asked = self.asked.saturating_add(count);
        self.recent.saw(now, count, self.usable);
        let looked = *self.looked.get_or_insert(now);
        if now < looked {
            self.looked = Some(now);
            return;
        }
        let since = now.since(looked);
        let follow = follow(self.usable);
        if since < follow / LOOKS {
            return;
        }
        let span = since.min(follow * SILENCE_LIVES_MAX);
        self.demand.saw(self.asked as f64, span.as_secs_f64(), 1.0);
        self.asked = 0;
        self.looked = Some(now);
        self.leads.look(now);
        self.is_stale = true;
    }

    /// Notes how long one answer took to reach the stock.
    pub fn bought(&mut self, lead: Duration) {
        self.leads.came(self.looked.unwrap_or_default(), lead);
    }

    /// Sets for how long answers are usable, after this has changed.
    pub fn set_usable(&mut self, usable: Duration) {
        self.demand.settings = settings(usable);
        self.usable = usable;
        self.is_stale = true;
    }

    /// Sets another goal; the next size follows from it.
    pub fn set_goal(&mut self, goal: Goal) {
        self.goal = goal;
        self.is_stale = true;
    }

    pub fn level(&mut self, now: Timestamp) -> Level {
        self.asked(now, 0);
        match self.level {
            Some(level) if !self.is_stale => level,
            _ => self.size(),
        }
    }
}

fn follow(usable: Duration) -> Duration {
    usable.clamp(FOLLOW_MIN, FOLLOW_MAX)
}

fn settings(usable: Duration) -> Settings {
    let follow = follow(usable).as_secs_f64();
    Settings {
        apart: follow / f64::from(BEGINNINGS),
        change: 1.0 / (LIVES_BETWEEN_CHANGES * f64::from(BEGINNINGS)),
        prior: 0.25,
        rate_min: 1.0 / follow,
    }
}

/// The first estimate of unknown demand: about one order in a life, which few measurements replace.
fn demand(usable: Duration) -> Regimes {
    let settings = settings(usable);
    Regimes::new(settings.prior, settings.prior / settings.rate_min, settings)
}

/// The orders of the last usable life, as a few sums.
#[derive(Clone, Debug, Default)]
struct Recent {
    sums: VecDeque<(Timestamp, u64)>,
    last: Option<Timestamp>,
}

impl Recent {
    fn saw(&mut self, now: Timestamp, count: u64, usable: Duration) {
        self.sums.retain(|(at, _)| *at <= now && now.since(*at) < usable);
        if count == 0 {
            return;
        }
        self.last = Some(now);
        match self.sums.back_mut() {
            Some((at, sum)) if now.since(*at) < usable / LOOKS => *sum += count,
            _ => self.sums.push_back((now, count)),
        }
    }

    fn orders(&self) -> u64 {
        self.sums.iter().map(|(_, count)| count).sum()
    }
}

/// The demand that determines a pool's size.
#[derive(Clone, Copy, Debug)]
struct DemandLoad {
    /// Orders in one lead.
    load: f64,
    /// Orders in one usable life.
    per_life: f64,
}

impl Sizer {
    fn size(&mut self) -> Level {
        let rate = if self.recent.last.is_some() { self.demand.rate() } else { 0.0 };
        let lead = self.leads.mean_s();
        let seen = DemandLoad { load: rate * lead, per_life: rate * self.usable.as_secs_f64() };
        let held = self.level.map_or(0, |level| level.size);
        let (size, why) = match self.goal {
            Goal::Fixed { size } => (size.min(SIZE_MAX), Why::Fixed),
            Goal::Served { .. } if self.recent.last.is_none() => (0, Why::NothingSeenYet),
            Goal::Served { permille } => self.steadied(permille, seen, held),
        };
        let PoolForecast { served, expired } = expected(size, seen.load, seen.per_life);
        let level = Level { size, why, rate, lead: Duration::from_secs_f64(lead), served, expired };
        self.level = Some(level);
        self.is_stale = false;
        level
    }

    /// The size for the measured demand. The held size stays while it is right for a demand very close to the
    /// measured one, so that the level does not switch back and forth.
    fn steadied(&self, permille: u32, seen: DemandLoad, held: u32) -> (u32, Why) {
        let (size, why) = self.sized(permille, seen);
        if size == held {
            return (size, why);
        }
        // The first answers are bought when three orders were really there, not because of one after a long silence.
        if held == 0 && (self.recent.orders() as f64) < PER_LIFE_MIN {
            let per_life = seen.per_life.min(self.recent.orders() as f64);
            return (0, Why::TooLittleDemand { per_life, usable: self.usable });
        }
        let hair = (0.25 / seen.load.max(1e-9)).min(0.1);
        let nudge = if held == 0 {
            1.0
        } else if size > held {
            1.0 - hair
        } else {
            1.0 + hair
        };
        let near = DemandLoad { load: seen.load * nudge, per_life: seen.per_life * nudge };
        let (size_near, why_near) = self.sized(permille, near);
        if size_near == held { (held, why_near) } else { (size, why) }
    }

    fn sized(&self, permille: u32, seen: DemandLoad) -> (u32, Why) {
        let DemandLoad { load, per_life } = seen;
        if per_life < PER_LIFE_MIN {
            return (0, Why::TooLittleDemand { per_life, usable: self.usable });
        }
        let goal = f64::from(permille.clamp(1, 999)) / 1000.0;
        let mut ladder = Ladder::new(load, per_life);
        let mut keeps = None;
        for size in 1..=SIZE_MAX {
            let PoolForecast { served, expired } = ladder.climb();
            if expired > EXPIRED_MAX && keeps.is_none() {
                keeps = Some((size - 1).max(1));
            }
            if served >= goal {
                return match keeps {
                    Some(held) if held < size => {
                        (held, Why::ExpiresTooSoon { asked: size, held, expired_if_asked: expired })
                    }
                    _ => (size, Why::Served { permille, load }),
                };
            }
        }
        (SIZE_MAX, Why::TooMuchDemand { load })
    }
}
