//! The books are neither ahead of the orders nor behind them: what a step adds is added with the step, once.

use super::samples::{self, START, Sample, after};
use super::{AVAILABLE, create};
use crate::store::{Commit, Day, Line, Store, Version};
use futures_util::future::join_all;
use quittance_lifecycle::{Tally, Timestamp};
use std::sync::Arc;

const DAY_SECONDS: u64 = 24 * 3600;

async fn books(store: &dyn Store, from: Day, to: Day) -> Vec<(Line, Tally)> {
    store.books(from, to).await.expect(AVAILABLE)
}

fn line(day: u64, tenant: &str, kind: &str) -> Line {
    line_of(day, tenant, kind, "")
}

fn line_of(day: u64, tenant: &str, kind: &str, site: &str) -> Line {
    Line { day: Day(day), tenant: tenant.into(), kind: kind.into(), site: site.into() }
}

/// A different number on every line of the books, so that none can stand for another.
fn full(base: u64) -> Tally {
    let mut tally = Tally::default();
    for (name, n) in Tally::NAMES.iter().zip(0..) {
        *tally.line_mut(name).expect("it is one of its names") = base + n;
    }
    tally
}

fn sum(tallies: impl IntoIterator<Item = Tally>) -> Tally {
    tallies.into_iter().fold(Tally::default(), |mut sum, tally| {
        sum += tally;
        sum
    })
}

/// By the day of the commit, which need not be the day of the order.
pub async fn books_add_up_with_the_commits(store: Arc<dyn Store>) {
    let commits = [(START, 1), (after(DAY_SECONDS - 1), 100), (after(DAY_SECONDS), 10_000)];
    let order = samples::queued("booked", START).order;
    let mut version = Version::ABSENT;
    for (at, base) in commits {
        match store.commit(version, &order, &full(base), at).await.expect(AVAILABLE) {
            Commit::Done(next) => version = next,
            Commit::Conflict(found) => panic!("nobody else writes here: {found:?}"),
        }
    }
    let first = Day::of(START);
    let second = Day(first.0 + 1);
    assert_eq!(Day::of(commits[1].0), first, "the last second of the day belongs to it");
    let expected = [
        (Line::of(&order, START), sum([full(1), full(100)])),
        (Line::of(&order, commits[2].0), full(10_000)),
    ];
    assert_eq!(books(&*store, first, second).await, expected);
    assert_eq!(books(&*store, second, second).await, expected[1..]);
}

pub async fn a_lost_race_is_not_booked(store: Arc<dyn Store>) {
    let order = samples::queued("booked", START).order;
    let day = Day::of(START);
    create(&*store, &order).await;
    for wrong in [Version::ABSENT, Version(u64::from(u32::MAX))] {
        let outcome = store.commit(wrong, &order, &full(1), START).await.expect(AVAILABLE);
        assert!(matches!(outcome, Commit::Conflict(_)));
    }
    assert_eq!(books(&*store, day, day).await, []);
}

pub async fn count_adds_what_changed_no_order(store: Arc<dyn Store>) {
    let Sample { order, tally, .. } = samples::queued("booked", START);
    assert_ne!(tally, Tally::default(), "a placement is something to count");
    let _ = store.commit(Version::ABSENT, &order, &tally, START).await.expect(AVAILABLE);
    let line = Line::of(&order, START);
    for base in [5, 50] {
        store.count(&line, &full(base)).await.expect(AVAILABLE);
    }
    let expected = sum([tally, full(5), full(50)]);
    assert_eq!(books(&*store, line.day, line.day).await, [(line, expected)]);
}

/// Placements that join an order write nothing else, and a herd of them comes at once.
pub async fn no_count_is_lost_among_many(store: Arc<dyn Store>) {
    let line = line(Day::of(START).0, "herd", "riddle");
    let tallies: Vec<Tally> = (0..20).map(full).collect();
    for outcome in join_all(tallies.iter().map(|tally| store.count(&line, tally))).await {
        outcome.expect(AVAILABLE);
    }
    let expected = sum(tallies);
    assert_eq!(books(&*store, line.day, line.day).await, [(line, expected)]);
}

/// Ordered byte by byte, whatever the language of the machine says about letters.
pub async fn books_come_by_day_in_the_order_of_their_lines(store: Arc<dyn Store>) {
    let day = Day::of(START).0;
    let mut lines: Vec<Line> = Vec::new();
    for tenant in ["b", "B", "a", "\u{e9}", "z", "a b", "a-b", "aa", "O'Hara"] {
        for kind in ["riddle", "Scribble", "r"] {
            for n in [4, 0, 1, 2, 3] {
                let sites: &[&str] = if n == 2 { &["", "shop.example.org", "a.test"] } else { &[""] };
                lines.extend(sites.iter().map(|site| line_of(day + n, tenant, kind, site)));
            }
        }
    }
    for (line, base) in lines.iter().zip(1..) {
        store.count(line, &full(base)).await.expect(AVAILABLE);
    }
    let mut expected: Vec<_> = lines.into_iter().zip((1..).map(full)).collect();
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (from, to) in [(0, 4), (1, 3), (2, 2), (3, 9)] {
        let within = |line: &Line| (day + from..=day + to).contains(&line.day.0);
        let asked: Vec<_> = expected.iter().filter(|(line, _)| within(line)).cloned().collect();
        assert_eq!(books(&*store, Day(day + from), Day(day + to)).await, asked, "days {from} to {to}");
    }
    assert_eq!(books(&*store, Day(day + 3), Day(day + 1)).await, [], "no day is in between");
    assert_eq!(books(&*store, Day::of(Timestamp::ZERO), Day(day - 1)).await, []);
}

pub async fn a_tally_of_nothing_opens_no_line(store: Arc<dyn Store>) {
    let order = samples::queued("unbooked", START).order;
    let line = Line::of(&order, START);
    create(&*store, &order).await;
    store.count(&line, &Tally::default()).await.expect(AVAILABLE);
    assert_eq!(books(&*store, line.day, line.day).await, []);
}
