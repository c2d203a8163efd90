//! One pool in virtual time, without an engine: orders come, and answers are bought, arrive, are handed out and
//! expire. The code is as small as possible, because it simulates ten million orders.

use super::rate_script::{RateScript, RateSpan};
use crate::rng::Rng;
use quittance_engine::sizing::{Sizer, shortfall};
use quittance_lifecycle::Timestamp;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// Microseconds of virtual time.
pub(super) type Micros = u64;

const SECOND: Micros = 1_000_000;
/// How often the node that refills a pool checks it.
const LOOK: Micros = SECOND;
const NEVER: Micros = Micros::MAX;

/// What decides how many answers are held.
pub(super) enum LevelPolicy {
    Fixed(u32),
    Sized(Box<Sizer>),
}

/// The result, in the time spans of the script that count.
#[derive(Clone, Debug, Default)]
pub(super) struct StudyOutcome {
    /// All orders, including those that do not count.
    pub(super) orders_in_all: u64,
    pub(super) orders: u64,
    pub(super) served: u64,
    pub(super) bought: u64,
    pub(super) expired: u64,
    /// The mean level over the last time span.
    pub(super) level_at_last: f64,
    /// The share of time at each level, by its number.
    pub(super) levels: Vec<f64>,
    /// How long it took the pool to follow each step.
    pub(super) steps: Vec<Micros>,
}

impl StudyOutcome {
    pub(super) fn served_share(&self) -> f64 {
        share(self.served, self.orders)
    }

    /// The share of answers bought for the stock that expired.
    pub(super) fn waste(&self) -> f64 {
        share(self.expired, self.expired + self.served)
    }

    /// How many answers were bought per order. If the stock has none, the caller's own order buys one.
    pub(super) fn bought_per_order(&self) -> f64 {
        share(self.orders - self.served + self.bought, self.orders)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

pub(super) struct SimPlace<'a> {
    script: &'a RateScript,
    keeper: LevelPolicy,
    /// When each answer in stock was solved, the oldest first.
    fresh: VecDeque<Micros>,
    on_their_way: BinaryHeap<Reverse<(Micros, Micros)>>,
    level: u32,
    asked: u64,
    leads: Rng,
    outcome: StudyOutcome,
    is_counted: bool,
    level_since: Micros,
    level_in_span: f64,
}

impl<'a> SimPlace<'a> {
    /// Runs the script once.
    pub(super) fn live(script: &'a RateScript, keeper: LevelPolicy, seed: u64) -> StudyOutcome {
        let level = if let LevelPolicy::Fixed(size) = keeper { size } else { 0 };
        let mut stock = Self {
            script,
            keeper,
            fresh: VecDeque::new(),
            on_their_way: BinaryHeap::new(),
            level,
            asked: 0,
            leads: Rng::new(seed, "leads"),
            outcome: StudyOutcome::default(),
            is_counted: false,
            level_since: 0,
            level_in_span: 0.0,
        };
        let mut orders = Rng::new(seed, "orders");
        let mut now = 0;
        let mut next_look = if matches!(stock.keeper, LevelPolicy::Sized(_)) { 0 } else { NEVER };
        stock.refill(now);
        for span in &script.spans {
            stock.is_counted = span.is_counted;
            stock.level_in_span = 0.0;
            let end = now + span.micros;
            stock.through(span, now, end, &mut next_look, &mut orders);
            stock.note_level(end);
            let whole = span.micros as f64;
            stock.outcome.level_at_last = stock.level_in_span / whole;
            now = end;
        }
        stock.finish()
    }

    fn through(
        &mut self,
        span: &RateSpan,
        start: Micros,
        end: Micros,
        next_look: &mut Micros,
        orders: &mut Rng,
    ) {
        let mut next_order = start + gap(orders, span.rate);
        let mut step = span.step_to.map(|best| RateStep { best, follows_since: None });
        loop {
            let arrives = self.on_their_way.peek().map_or(NEVER, |Reverse((at, _))| *at);
            let expires = self.fresh.front().map_or(NEVER, |solved| solved + self.script.usable);
            let now = next_order.min(arrives).min(expires).min(*next_look);
            if now >= end {
                break;
            }
            if now == arrives {
                self.arrive();
            } else if now == expires {
                self.fresh.pop_front();
                self.outcome.expired += u64::from(self.is_counted);
                self.refill(now);
            } else if now == next_order {
                self.order(now);
                next_order = now + gap(orders, span.rate);
            } else {
                *next_look += LOOK;
                self.look(now);
                if let Some(since) =
                    step.as_mut().and_then(|step| step.followed(self.level, now, self.script.life / 10))
                {
                    self.outcome.steps.push(since - start);
                    step = None;
                }
            }
        }
        if step.is_some() {
            self.outcome.steps.push(end - start);
        }
    }

    fn arrive(&mut self) {
        let Some(Reverse((at, lead))) = self.on_their_way.pop() else { return };
        self.fresh.push_back(at);
        if let LevelPolicy::Sized(sizer) = &mut self.keeper {
            sizer.bought(Duration::from_micros(lead));
        }
    }

    fn order(&mut self, now: Micros) {
        self.asked += 1;
        self.outcome.orders_in_all += 1;
        self.outcome.orders += u64::from(self.is_counted);
        if self.fresh.pop_front().is_some() {
            self.outcome.served += u64::from(self.is_counted);
            self.refill(now);
        }
    }

    fn look(&mut self, now: Micros) {
        let LevelPolicy::Sized(sizer) = &mut self.keeper else { return };
        let at = Timestamp::from_millis(now / 1000);
        sizer.asked(at, std::mem::take(&mut self.asked));
        let level = sizer.level(at).size;
        if level != self.level {
            self.note_level(now);
            self.level = level;
            self.refill(now);
        }
    }

    fn refill(&mut self, now: Micros) {
        let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let buy = shortfall(self.level, count(self.fresh.len()), count(self.on_their_way.len()));
        for _ in 0..buy {
            let lead = self.script.solve_times.draw(&mut self.leads);
            self.on_their_way.push(Reverse((now + lead, lead)));
        }
        self.outcome.bought += u64::from(buy) * u64::from(self.is_counted);
    }

    fn note_level(&mut self, now: Micros) {
        let time = (now - self.level_since) as f64;
        if self.is_counted {
            let level = self.level as usize;
            if self.outcome.levels.len() <= level {
                self.outcome.levels.resize(level + 1, 0.0);
            }
            self.outcome.levels[level] += time;
        }
        self.level_in_span += time * f64::from(self.level);
        self.level_since = now;
    }

    fn finish(self) -> StudyOutcome {
        let mut outcome = self.outcome;
        let whole: f64 = outcome.levels.iter().sum();
        outcome.levels.iter_mut().for_each(|time| *time /= whole);
        outcome
    }
}

/// A step of the rate that the pool may not have followed yet.
struct RateStep {
    best: u32,
    follows_since: Option<Micros>,
}

impl RateStep {
    /// Since when the level has been near the best one, if it has stayed there long enough. A level that only passes
    /// does not count.
    fn followed(&mut self, level: u32, now: Micros, stays: Micros) -> Option<Micros> {
        let is_near = level.abs_diff(self.best) <= (self.best / 5).max(1);
        if !is_near {
            self.follows_since = None;
            return None;
        }
        let since = *self.follows_since.get_or_insert(now);
        (now - since >= stays).then_some(since)
    }
}

/// How long until the next order, if orders are independent of each other.
#[expect(clippy::cast_possible_truncation, reason = "a float becomes whole microseconds")]
fn gap(rng: &mut Rng, rate: f64) -> Micros {
    (-unit(rng).ln() / rate * 1e6) as Micros
}

/// A uniform random number between 0 and 1, never 0.
pub(super) fn unit(rng: &mut Rng) -> f64 {
    ((rng.roll() >> 11) + 1) as f64 / (1u64 << 53) as f64
}
