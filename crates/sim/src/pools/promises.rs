//! The promises of a pool that sizes itself, and whether a row of the study keeps them.

use super::study::{GOAL_PERMILLE, StudyRow};
use quittance_engine::sizing::EXPIRED_MAX;
use quittance_lifecycle::Money;

const SERVED_GOAL: f64 = GOAL_PERMILLE as f64 / 1000.0;
/// How far below the goal the served share may be: one percentage point.
const SERVED_SLACK: f64 = 0.01;
/// With fewer orders per lifetime than this, more answers may expire, and one lifetime is too short to notice a
/// change of the rate.
const PER_LIFE_PROMISED: f64 = 7.5;
/// Amounts that differ by less, in thousandths, count as equal.
const SAME_PERMILLE: u64 = 5;

/// How the cost of a pool compares with that of a fixed pool of five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spends {
    Less,
    /// Neither wastes, so both buy one answer for each order.
    Same,
    /// The pool costs more than the fixed one, because five is too few for the demand, but no more than the best
    /// fixed level.
    MoreForMore,
    More,
}

impl StudyRow {
    /// Orders in one whole life of an answer.
    #[must_use]
    pub fn per_life(&self) -> f64 {
        self.rate * self.life.as_secs_f64()
    }

    #[must_use]
    pub fn spends(&self) -> Spends {
        let slack = self.five_money.0 * SAME_PERMILLE / 1000;
        if self.money.0 + slack < self.five_money.0 {
            return Spends::Less;
        }
        if self.money.0 <= self.five_money.0 + slack {
            return Spends::Same;
        }
        let is_five_too_few = self.five_served < SERVED_GOAL - SERVED_SLACK;
        let Money(best) = self.best.money;
        if is_five_too_few && self.money.0 <= best + slack { Spends::MoreForMore } else { Spends::More }
    }

    /// Whether enough orders come after a step up to notice it within one lifetime.
    fn can_tell_steps(&self) -> bool {
        self.per_life().max(self.other_rate * self.life.as_secs_f64()) >= PER_LIFE_PROMISED
    }

    /// The promises that this row breaks, in words.
    #[must_use]
    pub fn broken(&self) -> Vec<&'static str> {
        // Where the goal would expire too much it is given up, and so it is where nothing is held at all.
        let is_goal_given_up = self.best.is_limited;
        let promises = [
            ("served", is_goal_given_up || self.served >= SERVED_GOAL - SERVED_SLACK),
            ("level", (self.level - f64::from(self.best.size)).abs().round() <= 1.0),
            ("waste", self.per_life() < PER_LIFE_PROMISED || self.waste <= EXPIRED_MAX),
            ("money", self.spends() != Spends::More),
            ("steps up", !self.can_tell_steps() || self.up.median <= 1.0),
            ("steps down", !self.can_tell_steps() || self.down.median <= 1.0),
        ];
        promises.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::{BestLevel, StepResponse};
    use std::time::Duration;

    fn good() -> StudyRow {
        let followed = StepResponse { steps: 10, median: 0.5, p90: 2.0 };
        StudyRow {
            kind: "turnstile".to_owned(),
            rate: 0.1,
            other_rate: 1.0,
            life: Duration::from_secs(300),
            usable: Duration::from_secs(250),
            lead: Duration::from_secs(15),
            orders: 1000,
            served: 0.95,
            waste: 0.04,
            level: 5.2,
            near: 1.0,
            best: BestLevel { size: 5, served: 0.95, money: Money(1_000_000), is_limited: false },
            money: Money(1_000_000),
            five_money: Money(1_100_000),
            five_served: 0.95,
            up: followed,
            down: followed,
        }
    }

    fn broken(change: impl FnOnce(&mut StudyRow)) -> Vec<&'static str> {
        let mut row = good();
        change(&mut row);
        row.broken()
    }

    #[test]
    fn each_promise_can_be_broken() {
        assert!(good().broken().is_empty());
        assert_eq!(broken(|row| row.served = 0.939), ["served"]);
        assert_eq!(broken(|row| row.level = 6.6), ["level"]);
        assert_eq!(broken(|row| row.level = 3.4), ["level"]);
        assert_eq!(broken(|row| row.waste = 0.051), ["waste"]);
        assert_eq!(broken(|row| row.money = Money(1_110_000)), ["money"]);
        assert_eq!(broken(|row| row.up.median = 1.1), ["steps up"]);
        assert_eq!(broken(|row| row.down.median = 1.1), ["steps down"]);
    }

    #[test]
    fn what_is_not_promised_is_not_judged() {
        let few = |row: &mut StudyRow| {
            (row.rate, row.other_rate, row.waste, row.up.median) = (0.002, 0.02, 0.5, 3.0);
        };
        assert!(broken(few).is_empty());
        assert!(broken(|row| (row.best.is_limited, row.served) = (true, 0.6)).is_empty());
    }

    #[test]
    fn more_money_than_five_is_only_for_more_served_and_at_the_best_price() {
        let mut row = good();
        assert_eq!(row.spends(), Spends::Less);
        row.five_money = Money(1_000_100);
        assert_eq!(row.spends(), Spends::Same);
        (row.money, row.five_served) = (Money(1_020_000), 0.9);
        assert_eq!(row.spends(), Spends::More, "dearer than the best");
        row.best.money = Money(1_018_000);
        assert_eq!(row.spends(), Spends::MoreForMore);
        row.five_served = 0.945;
        assert_eq!(row.spends(), Spends::More, "five would do");
    }
}
