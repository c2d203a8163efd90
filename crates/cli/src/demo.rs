//! The demo: one large storm in the simulation, and what is to be said about it, as plain numbers.

use quittance_lifecycle::{FaultClass, Order, Phase, Tally};
use quittance_sim::truth::{Fate, Told, Trouble, Truth};
use quittance_sim::{Breach, Life, Script, live};

/// What one storm came to. The same seed gives the same report.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    /// What Quittance itself wrote down.
    pub(crate) books: Tally,
    /// Orders that are dead letters at the end.
    pub(crate) dead_letters: u64,
    pub(crate) ledger: Ledger,
    pub(crate) money: Money,
    pub(crate) storm: Storm,
    /// From the first moment to the last word that a caller was told.
    pub(crate) virtual_ms: u64,
    pub(crate) breaches: Vec<Breach>,
}

/// Who took part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) nodes: usize,
    pub(crate) callers: usize,
    pub(crate) requests: usize,
    pub(crate) things: usize,
    pub(crate) storm_ms: u64,
}

/// What the simulated provider wrote down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    /// Tasks that it took: each a payment.
    pub(crate) payments: u64,
    /// Those of them that it solved, and bills.
    pub(crate) answers: u64,
}

/// In millionths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Money {
    pub(crate) price: u64,
    /// What the provider bills.
    pub(crate) spent: u64,
    /// Answers that callers were given.
    pub(crate) answers_given: u64,
    /// What those would have cost if each had been bought by itself, and none twice.
    pub(crate) without: u64,
}

/// What went wrong, as the world wrote it down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    pub(crate) kills: u64,
    pub(crate) freezes: u64,
    /// Requests that got no word because their node was killed or frozen; the caller asked again.
    pub(crate) callers_left_alone: u64,
    /// Submits that the provider took, and of which no reply reached us.
    pub(crate) replies_lost: u64,
    /// Tasks whose callback reached no node.
    pub(crate) callbacks_lost: u64,
    pub(crate) busy: u64,
    pub(crate) refused_for_good: u64,
    pub(crate) unsolvable: u64,
    pub(crate) forged: u64,
    pub(crate) forged_believed: u64,
}

/// Lives through one storm. `progress` is told how many of the requests are over, and of how many.
pub(crate) fn run(seed: u64, progress: &mut dyn FnMut(usize, usize)) -> Report {
    let script = Script::demo();
    let requests = script.callers * script.visits;
    // A few late visitors come in the calm, beyond the number.
    let life = live(seed, &script, None, false, &mut |done| progress(done.min(requests), requests));
    report(&life, &script)
}

pub(crate) fn report(life: &Life, script: &Script) -> Report {
    let truth = &life.truth;
    let answers = count(&truth.tasks, |task| task.fate == Fate::Answer);
    let answers_given = count(&truth.visits, |visit| matches!(visit.told, Some((_, Told::Answer { .. }))));
    let price = price(&life.orders);
    Report {
        seed: life.seed,
        setup: Setup {
            nodes: script.nodes,
            callers: script.callers,
            requests: script.callers * script.visits,
            things: script.wishes,
            storm_ms: script.storm_ms,
        },
        books: life.books,
        dead_letters: count(&life.orders, |order| matches!(order.phase, Phase::Dead { .. })),
        ledger: Ledger { payments: truth.tasks.len() as u64, answers },
        money: Money { price, spent: answers * price, answers_given, without: answers_given * price },
        storm: storm(truth),
        virtual_ms: virtual_ms(truth, script.storm_ms),
        breaches: life.breaches.clone(),
    }
}

/// What one answer costs: the same for all of them, so any that is on record tells.
fn price(orders: &[std::sync::Arc<Order>]) -> u64 {
    let cost = |order: &Order| match &order.phase {
        Phase::Solved { answer, .. } | Phase::Taken { answer, .. } => Some(answer.cost.0),
        _ => None,
    };
    orders.iter().find_map(|order| cost(order)).unwrap_or(0)
}

fn storm(truth: &Truth) -> Storm {
    let troubles = |wanted| count(&truth.troubles, |(_, trouble, _)| *trouble == wanted);
    let refused = |wanted| count(&truth.refused, |refused| refused.class == wanted);
    Storm {
        kills: troubles(Trouble::Killed),
        freezes: troubles(Trouble::Frozen),
        callers_left_alone: count(&truth.visits, |visit| visit.told.is_none()),
        replies_lost: count(&truth.tasks, |task| task.reply_reached.is_none()),
        callbacks_lost: count(&truth.tasks, |task| task.callback_heard.is_none()),
        busy: refused(FaultClass::Busy),
        refused_for_good: refused(FaultClass::Caller),
        unsolvable: count(&truth.tasks, |task| task.fate == Fate::Unsolvable),
        forged: truth.forged,
        forged_believed: count(
            &truth.visits,
            |visit| matches!(&visit.told, Some((_, Told::Answer { token })) if token == "forged"),
        ),
    }
}

fn virtual_ms(truth: &Truth, storm_ms: u64) -> u64 {
    let began = truth.calm_at.saturating_sub(storm_ms);
    let last_word = truth.visits.iter().filter_map(|visit| visit.told.as_ref()).map(|(at, _)| *at).max();
    last_word.unwrap_or(truth.calm_at).max(truth.calm_at) - began
}

fn count<T>(all: &[T], is_meant: impl Fn(&T) -> bool) -> u64 {
    all.iter().filter(|one| is_meant(one)).count() as u64
}

impl Report {
    /// How often the judge found that something was lost.
    pub(crate) fn lost(&self) -> u64 {
        count(&self.breaches, |breach| breach.promise == "never lost")
    }

    /// Payments that the provider knows of and the books do not: no word of them ever came.
    pub(crate) fn unknown_to_the_books(&self) -> u64 {
        self.ledger.payments.saturating_sub(self.books.paid)
    }

    /// Doubts that nothing settled.
    pub(crate) fn doubts_open(&self) -> u64 {
        self.books.doubts.saturating_sub(self.books.recovered_from_doubt)
    }

    /// Placements that started a new life: neither joined nor served from what was there, nor refused.
    pub(crate) fn new_lives(&self) -> u64 {
        let books = &self.books;
        books.asked.saturating_sub(books.joined + books.cached + books.from_stock + books.refused)
    }

    pub(crate) fn saved_micros(&self) -> i64 {
        self.money.without.cast_signed() - self.money.spent.cast_signed()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The report of a small life, with these breaches.
    pub(crate) fn small_report(breaches: Vec<Breach>) -> Report {
        let script = Script { callers: 4, visits: 5, wishes: 6, storm_ms: 120_000, ..Script::demo() };
        let mut life = live(7, &script, None, false, &mut |_| {});
        life.breaches = breaches;
        report(&life, &script)
    }

    pub(crate) fn a_loss() -> Breach {
        Breach { promise: "never lost", detail: "task 1001: known, solved, and is Sent".into() }
    }

    #[test]
    fn a_planted_bug_is_reported_as_a_broken_promise() {
        let plant = quittance_sim::PLANTS.iter().find(|plant| plant.name == "placing again pays again");
        let plant = *plant.expect("the simulation has this plant");
        let script = Script { callers: 8, visits: 10, wishes: 6, storm_ms: 120_000, ..Script::demo() };
        let broken = (0..20).map(|seed| live(seed, &script, Some(plant), false, &mut |_| {}));
        let broken = broken.map(|life| report(&life, &script)).find(|report| !report.breaches.is_empty());
        assert!(broken.is_some(), "twenty storms did not catch it");
    }

    #[test]
    fn only_breaches_of_that_promise_count_as_lost() {
        let paid_twice = Breach { promise: "paid once", detail: "task 1002 while 1001 was alive".into() };
        assert_eq!(small_report(vec![paid_twice.clone()]).lost(), 0);
        assert_eq!(small_report(vec![a_loss(), paid_twice, a_loss()]).lost(), 2);
    }

    #[test]
    fn time_runs_from_the_first_moment_to_the_last_word() {
        let report = small_report(Vec::new());
        assert!(report.virtual_ms >= report.setup.storm_ms, "{report:?}");
        assert!(report.virtual_ms < 2 * 3_600_000, "{report:?}");
    }

    #[test]
    fn progress_never_passes_the_whole() {
        let (mut last, mut whole) = (0, 0);
        run(1, &mut |done, of| {
            assert!(last <= done && done <= of);
            (last, whole) = (done, of);
        });
        assert_eq!((last, whole), (2_000, 2_000));
    }
}
