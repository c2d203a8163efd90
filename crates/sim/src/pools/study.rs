//! The rows of the study: each kind at each rate. A row compares the pool that sizes itself with the best fixed
//! level, found by a search, and with a fixed pool of five, all with the same demand.

use super::rate_script::{RateScript, stepped};
use super::stock::{LevelPolicy, SimPlace, StudyOutcome};
use quittance_engine::sizing::{EXPIRED_MAX, Sizer, expected};
use quittance_lifecycle::{Kind, Money};
use quittance_ports::{Goal, SIZE_MAX};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The rates of the study, in orders per second.
pub const RATES: [f64; 7] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
/// The kinds of the study: one for each lifetime and pace in the catalogue that a pool can hold.
pub const KINDS: [&str; 5] = ["recaptcha_v2", "recaptcha_v3", "hcaptcha", "turnstile", "geetest"];
pub const GOAL_PERMILLE: u32 = 950;
/// The fixed level with which every sizer is compared.
const FIXED: u32 = 5;
/// The price of one answer. Only ratios count, so any price will do.
const PRICE: Money = Money(1_000);

/// The result for one kind at one rate.
#[derive(Clone, Debug)]
pub struct StudyRow {
    pub kind: String,
    pub rate: f64,
    /// The rate to which it steps and from which it returns.
    pub other_rate: f64,
    pub life: Duration,
    pub usable: Duration,
    pub lead: Duration,
    pub orders: u64,
    /// The share of orders served from stock.
    pub served: f64,
    /// The share of answers bought for the stock that expired.
    pub waste: f64,
    /// The mean level of the pool over the time of the run.
    pub level: f64,
    /// The share of time in which the level was within one of the best level.
    pub near: f64,
    pub best: BestLevel,
    /// The cost per thousand orders.
    pub money: Money,
    pub five_money: Money,
    pub five_served: f64,
    /// For how many lifetimes the pool did not follow a step up.
    pub up: StepResponse,
    /// For how many lifetimes the pool did not follow a step down.
    pub down: StepResponse,
}

/// The fixed level that an operator would choose with knowledge of the future.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestLevel {
    pub size: u32,
    /// The share of orders that this level serves.
    pub served: f64,
    /// The cost of this level per thousand orders.
    pub money: Money,
    /// Whether a higher level would serve the demand but expire too much.
    pub is_limited: bool,
}

/// The median of many steps, and the value that nine of ten do not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepResponse {
    pub steps: usize,
    pub median: f64,
    pub p90: f64,
}

struct StudyCase {
    kind: Kind,
    rate: f64,
    other: f64,
    orders: f64,
    seed: u64,
}

/// What to study: each of the kinds at each of the rates.
#[derive(Clone, Debug)]
pub struct Study {
    pub kinds: Vec<&'static str>,
    /// The rates, ascending. For each of them, ten times as much or a tenth is also in the list, as the target of
    /// steps.
    pub rates: Vec<f64>,
    /// The number of orders in all.
    pub orders: u64,
    pub seed: u64,
}

impl Study {
    #[must_use]
    pub fn whole(orders: u64, seed: u64) -> Self {
        Self { kinds: KINDS.to_vec(), rates: RATES.to_vec(), orders, seed }
    }

    /// Runs the study on all cores. `tell` gets messages about the progress.
    #[must_use]
    pub fn run(&self, tell: &(dyn Fn(&str) + Sync)) -> Vec<StudyRow> {
        let cases = self.cases();
        let best: Vec<BestLevel> = on_all_cores(&cases, &|_, case| {
            let best = case.best();
            tell(&format!("{} at {}: the best fixed level is {}", case.kind.name, case.rate, best.size));
            best
        });
        on_all_cores(&cases, &|at, case| {
            let is_other = |other: &StudyCase| {
                other.kind.name == case.kind.name && (other.rate / case.other - 1.0).abs() < 0.01
            };
            let other = cases.iter().position(is_other).expect("the rates have where to step to");
            let row = case.row(best[at], best[other].size);
            tell(&format!("{} at {}: {:.1} % served", row.kind, row.rate, row.served * 100.0));
            row
        })
    }

    fn cases(&self) -> Vec<StudyCase> {
        // Slow orders take long to come, and need fewer to be known well: the level is lower.
        let share = |rate: &f64| rate.powf(0.4);
        let shares: f64 = self.rates.iter().map(share).sum();
        let per_kind = self.orders as f64 / self.kinds.len() as f64;
        let rate_max = self.rates.iter().copied().fold(0.0, f64::max);
        let mut cases = Vec::new();
        for kind in &self.kinds {
            let kind = quittance_protocol::kinds::kind(kind).expect("the catalogue has it");
            for rate in &self.rates {
                let seed = self.seed.wrapping_mul(1000).wrapping_add(cases.len() as u64);
                let (orders, other) = (per_kind * share(rate) / shares, stepped(*rate, rate_max));
                cases.push(StudyCase { kind: kind.clone(), rate: *rate, other, orders, seed });
            }
        }
        cases
    }
}

impl StudyCase {
    fn script(&self, best: [u32; 2]) -> RateScript {
        RateScript::new(&self.kind, self.rate, self.other, self.orders, best)
    }

    fn fixed(&self, size: u32) -> StudyOutcome {
        SimPlace::live(&self.script([0, 0]), LevelPolicy::Fixed(size), self.seed)
    }

    /// The smallest level that reaches the goal with this demand. If that wastes too much, the greatest level that
    /// does not; 0 if every level does. It is found by trials, beginning at the formula's result.
    fn best(&self) -> BestLevel {
        let script = self.script([0, 0]);
        let goal = f64::from(GOAL_PERMILLE) / 1000.0;
        let load = self.rate * script.solve_times.mean().as_secs_f64();
        let per_life = self.rate * Duration::from_micros(script.usable).as_secs_f64();
        let mut size =
            (1..SIZE_MAX).find(|size| expected(*size, load, per_life).served >= goal).unwrap_or(SIZE_MAX);
        let mut tried = self.fixed(size);
        while tried.served_share() < goal && size < SIZE_MAX {
            size += 1;
            tried = self.fixed(size);
        }
        while size > 1 {
            let fewer = self.fixed(size - 1);
            if fewer.served_share() < goal {
                break;
            }
            (size, tried) = (size - 1, fewer);
        }
        let is_limited = tried.waste() > EXPIRED_MAX;
        while size > 0 && tried.waste() > EXPIRED_MAX {
            size -= 1;
            tried = self.fixed(size);
        }
        BestLevel { size, served: tried.served_share(), money: per_thousand(&tried), is_limited }
    }

    fn row(&self, best: BestLevel, best_other: u32) -> StudyRow {
        let script = self.script([best.size, best_other]);
        let usable = Duration::from_micros(script.usable);
        // The lead that it gets is wrong at first: it must measure it.
        let goal = Goal::Served { permille: GOAL_PERMILLE };
        let sizer = Sizer::new(goal, usable, self.kind.pace.p50);
        let best_level = SimPlace::live(&script, LevelPolicy::Sized(Box::new(sizer)), self.seed);
        let five = self.fixed(FIXED);
        let life = self.kind.life.unwrap_or_default();
        let (to_other, back): (Vec<_>, Vec<_>) =
            best_level.steps.iter().enumerate().partition(|(n, _)| n % 2 == 0);
        let lives = |steps: &[(usize, &u64)]| StepResponse::of(steps.iter().map(|(_, step)| **step), life);
        let (to_other, back) = (lives(&to_other), lives(&back));
        let (up, down) = if self.other > self.rate { (to_other, back) } else { (back, to_other) };
        let is_near = |level: usize| level.abs_diff(best.size as usize) <= 1;
        StudyRow {
            kind: self.kind.name.to_string(),
            rate: self.rate,
            other_rate: self.other,
            life,
            usable,
            lead: script.solve_times.mean(),
            orders: best_level.orders_in_all,
            served: best_level.served_share(),
            waste: best_level.waste(),
            level: best_level.level_at_last,
            near: best_level
                .levels
                .iter()
                .enumerate()
                .filter(|(level, _)| is_near(*level))
                .map(|(_, time)| time)
                .sum(),
            best,
            money: per_thousand(&best_level),
            five_money: per_thousand(&five),
            five_served: five.served_share(),
            up,
            down,
        }
    }
}

impl StepResponse {
    fn of(steps: impl Iterator<Item = u64>, life: Duration) -> Self {
        let mut lives: Vec<f64> = steps.map(|micros| micros as f64 / 1e6 / life.as_secs_f64()).collect();
        lives.sort_by(f64::total_cmp);
        let at = |tenths: usize| lives.get((lives.len() * tenths / 10).min(lives.len().saturating_sub(1)));
        let at = |tenths| at(tenths).copied().unwrap_or_default();
        Self { steps: lives.len(), median: at(5), p90: at(9) }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "micros of a few dollars")]
fn per_thousand(outcome: &StudyOutcome) -> Money {
    Money((outcome.bought_per_order() * 1000.0 * PRICE.0 as f64).round() as u64)
}

fn on_all_cores<T: Sync, R: Send>(cases: &[T], each: &(dyn Fn(usize, &T) -> R + Sync)) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((n, case)) = {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(n).map(|case| (n, case))
                } {
                    let result = each(n, case);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((n, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}
