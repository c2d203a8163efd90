//! The usage always agrees with the orders: what a step adds is added with the step, once.

use super::samples::{self, START, SampleOrder, after};
use super::{AVAILABLE, create};
use crate::store::{Commit, Day, OrderCounts, Store, UsageRow, Version, Which};
use futures_util::future::join_all;
use quittance_lifecycle::{AttemptAccount, Counters, Timestamp};
use std::sync::Arc;

const DAY_SECONDS: u64 = 24 * 3600;

async fn usage(store: &dyn Store, from: Day, to: Day) -> Vec<(UsageRow, Counters)> {
    store.usage(from, to).await.expect(AVAILABLE)
}

fn line(day: u64, tenant: &str, kind: &str) -> UsageRow {
    line_of(day, tenant, kind, "")
}

fn line_of(day: u64, tenant: &str, kind: &str, site: &str) -> UsageRow {
    by_account(day, tenant, kind, site, "")
}

fn by_account(day: u64, tenant: &str, kind: &str, site: &str, account: &str) -> UsageRow {
    let account = account.into();
    UsageRow { day: Day(day), tenant: tenant.into(), kind: kind.into(), site: site.into(), account }
}

/// A different number for every counter, so that no counter can stand for another.
fn full(base: u64) -> Counters {
    let mut counters = Counters::default();
    for (name, n) in Counters::NAMES.iter().zip(0..) {
        *counters.line_mut(name).expect("it is one of its names") = base + n;
    }
    counters
}

fn sum(counters: impl IntoIterator<Item = Counters>) -> Counters {
    counters.into_iter().fold(Counters::default(), |mut sum, counters| {
        sum += counters;
        sum
    })
}

/// Usage goes to the day of the commit, which may differ from the day of the order.
pub async fn usage_add_up_with_the_commits(store: Arc<dyn Store>) {
    let commits = [(START, 1), (after(DAY_SECONDS - 1), 100), (after(DAY_SECONDS), 10_000)];
    let order = samples::queued("booked", START).order;
    let mut version = Version::ABSENT;
    for (at, base) in commits {
        match store.commit(version, &order, &full(base), at).await.expect(AVAILABLE) {
            Commit::Done(next) => version = next,
            Commit::Conflict(record) => panic!("only this test writes here: {record:?}"),
        }
    }
    let first = Day::of(START);
    let second = Day(first.0 + 1);
    assert_eq!(Day::of(commits[1].0), first, "the last second of the day belongs to it");
    let expected = [
        (UsageRow::of(&order, START), sum([full(1), full(100)])),
        (UsageRow::of(&order, commits[2].0), full(10_000)),
    ];
    assert_eq!(usage(&*store, first, second).await, expected);
    assert_eq!(usage(&*store, second, second).await, expected[1..]);
}

/// An order may have attempts at several accounts.
pub async fn a_step_is_counted_on_the_account_of_its_attempt(store: Arc<dyn Store>) {
    let mut order = (*samples::in_doubt("booked", START).order).clone();
    order.attempts[0].account = Some(AttemptAccount { account: "second RUB".into(), price: None });
    order.booked_on = Some(order.attempts[0].number);
    let day = Day::of(START);
    let outcome = store.commit(Version::ABSENT, &Arc::new(order.clone()), &full(1), START).await;
    assert!(matches!(outcome.expect(AVAILABLE), Commit::Done(_)));
    let row = UsageRow { account: "second RUB".into(), ..UsageRow::for_terms(&order.terms, START) };
    assert_eq!(usage(&*store, day, day).await, [(row, full(1))]);
}

pub async fn a_lost_race_is_not_booked(store: Arc<dyn Store>) {
    let order = samples::queued("booked", START).order;
    let day = Day::of(START);
    create(&*store, &order).await;
    for wrong in [Version::ABSENT, Version(u64::from(u32::MAX))] {
        let outcome = store.commit(wrong, &order, &full(1), START).await.expect(AVAILABLE);
        assert!(matches!(outcome, Commit::Conflict(_)));
    }
    assert_eq!(usage(&*store, day, day).await, []);
}

pub async fn count_adds_what_changed_no_order(store: Arc<dyn Store>) {
    let SampleOrder { order, counters, .. } = samples::queued("booked", START);
    assert_ne!(counters, Counters::default(), "a placement is something to count");
    let _ = store.commit(Version::ABSENT, &order, &counters, START).await.expect(AVAILABLE);
    let line = UsageRow::of(&order, START);
    for base in [5, 50] {
        store.count(&line, &full(base)).await.expect(AVAILABLE);
    }
    let expected = sum([counters, full(5), full(50)]);
    assert_eq!(usage(&*store, line.day, line.day).await, [(line, expected)]);
}

/// Placements that join an order write nothing else, and many of them come at once.
pub async fn no_count_is_lost_among_many(store: Arc<dyn Store>) {
    let line = line(Day::of(START).0, "herd", "riddle");
    let counters: Vec<Counters> = (0..20).map(full).collect();
    for outcome in join_all(counters.iter().map(|counters| store.count(&line, counters))).await {
        outcome.expect(AVAILABLE);
    }
    let expected = sum(counters);
    assert_eq!(usage(&*store, line.day, line.day).await, [(line, expected)]);
}

/// Rows are sorted byte by byte, independent of the machine's language.
pub async fn usage_come_by_day_in_the_order_of_their_lines(store: Arc<dyn Store>) {
    let day = Day::of(START).0;
    let mut lines: Vec<UsageRow> = Vec::new();
    for tenant in ["b", "B", "a", "\u{e9}", "z", "a b", "a-b", "aa", "O'Hara"] {
        for kind in ["riddle", "Scribble", "r"] {
            for n in [4, 0, 1, 2, 3] {
                let sites: &[&str] = if n == 2 { &["", "shop.example.org", "a.test"] } else { &[""] };
                lines.extend(sites.iter().map(|site| line_of(day + n, tenant, kind, site)));
                let accounts: &[&str] = if n == 3 { &["one", "One two"] } else { &[] };
                lines.extend(accounts.iter().map(|name| by_account(day + n, tenant, kind, "", name)));
            }
        }
    }
    for (line, base) in lines.iter().zip(1..) {
        store.count(line, &full(base)).await.expect(AVAILABLE);
    }
    let mut expected: Vec<_> = lines.into_iter().zip((1..).map(full)).collect();
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (from, to) in [(0, 4), (1, 3), (2, 2), (3, 9)] {
        let within = |line: &UsageRow| (day + from..=day + to).contains(&line.day.0);
        let requested: Vec<_> = expected.iter().filter(|(line, _)| within(line)).cloned().collect();
        assert_eq!(usage(&*store, Day(day + from), Day(day + to)).await, requested, "days {from} to {to}");
    }
    assert_eq!(usage(&*store, Day(day + 3), Day(day + 1)).await, [], "no day is in between");
    assert_eq!(usage(&*store, Day::of(Timestamp::ZERO), Day(day - 1)).await, []);
}

pub async fn a_count_of_nothing_opens_no_line(store: Arc<dyn Store>) {
    let order = samples::queued("unbooked", START).order;
    let line = UsageRow::of(&order, START);
    create(&*store, &order).await;
    store.count(&line, &Counters::default()).await.expect(AVAILABLE);
    assert_eq!(usage(&*store, line.day, line.day).await, []);
}

/// Days that are no longer kept in detail keep their sums. Other days do not change, and the call may be repeated.
pub async fn closed_usage_keep_their_sums(store: Arc<dyn Store>) {
    let day = Day::of(START).0;
    let sites = ["", "a.test", "shop.example.org"];
    for n in 0..4 {
        for (site, base) in sites.iter().zip([1, 10, 100]) {
            store.count(&line_of(day + n, "ann", "riddle", site), &full(base + n)).await.expect(AVAILABLE);
        }
        let other = by_account(day + n, "ann", "riddle", "a.test", "one RUB");
        store.count(&other, &full(7)).await.expect(AVAILABLE);
    }
    let (first, last) = (Day(day), Day(day + 3));
    let before = usage(&*store, first, last).await;
    // The first day is forgotten, the second one summed up, the others are kept.
    let summed = [
        (line_of(day + 1, "ann", "riddle", UsageRow::ALL_SITES), sum([full(2), full(11), full(101)])),
        (by_account(day + 1, "ann", "riddle", UsageRow::ALL_SITES, "one RUB"), full(7)),
    ];
    let remaining = before.iter().filter(|(line, _)| line.day.0 >= day + 2).cloned();
    let expected: Vec<_> = summed.into_iter().chain(remaining).collect();
    for _ in 0..2 {
        store.compact_usage(Day(day + 2), Day(day + 1)).await.expect(AVAILABLE);
        assert_eq!(usage(&*store, first, last).await, expected);
    }
    // A count that comes late is added when the usage is next closed.
    store.count(&line_of(day + 1, "ann", "riddle", "b.test"), &full(1000)).await.expect(AVAILABLE);
    store.compact_usage(Day(day + 2), Day(day + 1)).await.expect(AVAILABLE);
    let mut expected = expected;
    expected[0].1 += full(1000);
    assert_eq!(usage(&*store, first, last).await, expected);
}

/// While the usage is compacted, other nodes count. Nothing is lost, and nothing counts twice.
pub async fn nothing_is_lost_when_usage_are_closed_in_a_crowd(store: Arc<dyn Store>) {
    let day = Day::of(START).0;
    let lines: Vec<UsageRow> = (0..5).map(|n| line_of(day, "ann", "riddle", &format!("{n}.test"))).collect();
    let counters: Vec<Counters> = (0..20).map(full).collect();
    let counting = join_all(
        counters.iter().zip(lines.iter().cycle()).map(|(counters, line)| store.count(line, counters)),
    );
    let closing = join_all((0..6).map(|_| store.compact_usage(Day(day + 1), Day(day))));
    // A node that closes the usage reads first, and is overtaken.
    let (closed, counted) = futures_util::future::join(closing, counting).await;
    counted.into_iter().chain(closed).for_each(|outcome| outcome.expect(AVAILABLE));
    store.compact_usage(Day(day + 1), Day(day)).await.expect(AVAILABLE);
    let expected = [(line_of(day, "ann", "riddle", UsageRow::ALL_SITES), sum(counters))];
    assert_eq!(usage(&*store, Day(day), Day(day)).await, expected);
}

pub async fn a_count_counts_open_orders_and_those_that_wait_for_an_operator(store: Arc<dyn Store>) {
    assert_eq!(store.order_counts().await.expect(AVAILABLE), OrderCounts::default());
    let (mut open, mut dead) = (0, 0);
    for sample in samples::every_phase() {
        create(&*store, &sample.order).await;
        open += u64::from(Which::OPEN.includes(&sample.order));
        dead += u64::from(Which::DEAD.includes(&sample.order));
    }
    assert!(open > 0 && dead > 0, "{open} open, {dead} dead");
    assert_eq!(store.order_counts().await.expect(AVAILABLE), OrderCounts { open, dead });
}
