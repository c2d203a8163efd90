//! The judge: compares the engine's records and the answers of its callers with what the provider really took. It
//! trusts the ledger, and shares no rule with the engine.

use crate::DemoPlan;
use crate::captcha::mark;
use crate::demo_report::{DemoReport, RequestOutcomes};
use crate::workers::DemoEvidence;
use quittance::lifecycle::{Attempt, Order, Phase, Progress, TimelineEvent, Value as Param};
use quittance_mock_provider::{LedgerTask, LedgerValue};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One captcha, seen from both sides.
#[derive(Default)]
struct CaptchaCase<'a> {
    orders: Vec<&'a Order>,
    taken: Vec<&'a LedgerTask>,
}

pub(crate) fn judge(plan: DemoPlan, evidence: &DemoEvidence) -> DemoReport {
    let mut breaches = Vec::new();
    let cases = cases(plan, evidence, &mut breaches);
    let mut taken_in_doubt = 0;
    for (mark, case) in &cases {
        taken_in_doubt += paid_once(mark, case, &mut breaches);
    }
    usage_equals_ledger(evidence, taken_in_doubt, &mut breaches);
    let ends = ends(plan, evidence, &cases, &mut breaches);
    let open = evidence.orders.iter().filter(|order| order.phase.is_open()).count() as u64;
    if open > 0 {
        breaches.push(format!("never lost: {open} orders never came to an end"));
    }
    if evidence.unreadable > 0 {
        breaches.push(format!("never lost: {} records cannot be read", evidence.unreadable));
    }
    let price = |captcha: u32| price_of(plan, captcha, &cases);
    let without = evidence.outcomes.iter().map(|(captcha, _)| price(*captcha)).sum();
    let totals = &evidence.ledger.totals;
    DemoReport {
        plan,
        took: evidence.took,
        kills: evidence.kills,
        usage: evidence.usage,
        taken: totals.accepted,
        taken_in_doubt,
        dead_letters: evidence.orders.iter().filter(|order| matches!(order.phase, Phase::Dead { .. })).count()
            as u64,
        lost: ends.nothing + open,
        ends,
        spent_micros: totals.paid_micros.saturating_sub(totals.refunded_micros),
        without_micros: without,
        faults: totals.faults.clone(),
        forged: evidence.done["forged_callbacks"].as_u64().unwrap_or(0),
        breaches,
    }
}

fn text<'a>(order: &'a Order, name: &str) -> Option<&'a str> {
    match order.terms.params.get(name) {
        Some(Param::Text(text)) => Some(text),
        _ => None,
    }
}

/// The mark in a page address, or in the instructions of a picture.
fn mark_in(page: Option<&str>, instructions: Option<&str>) -> String {
    let host = page.and_then(|page| page.strip_prefix("https://")?.strip_suffix(".example.com/login"));
    host.or(instructions).unwrap_or_default().to_owned()
}

fn cases<'a>(
    plan: DemoPlan,
    evidence: &'a DemoEvidence,
    breaches: &mut Vec<String>,
) -> BTreeMap<String, CaptchaCase<'a>> {
    let mut cases: BTreeMap<String, CaptchaCase<'_>> =
        (0..plan.captchas).map(|captcha| (mark(plan.seed, captcha), CaptchaCase::default())).collect();
    for order in &evidence.orders {
        let mark = mark_in(text(order, "pageurl"), text(order, "textinstructions"));
        match cases.get_mut(&mark) {
            Some(case) => case.orders.push(order),
            None => breaches.push(format!("an order that no worker placed: {}", order.key)),
        }
    }
    for entry in &evidence.ledger.tasks {
        let shown = |name: &str| match entry.params.get(name) {
            Some(LedgerValue::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let mark = mark_in(shown("pageurl"), shown("textinstructions"));
        match cases.get_mut(&mark) {
            Some(case) => case.taken.push(entry),
            None => breaches.push(format!("paid once: task {} was bought for no order", entry.id)),
        }
    }
    cases
}

/// Checks that every payment for one captcha is accounted for. Returns how many were made in doubt, beyond what the
/// engine knows.
fn paid_once(mark: &str, case: &CaptchaCase<'_>, breaches: &mut Vec<String>) -> u64 {
    let attempts = || case.orders.iter().flat_map(|order| &order.attempts);
    let in_doubt = |attempt: &&Attempt| {
        !attempt.accepted && matches!(attempt.progress, Progress::Sent | Progress::GivenUp { .. })
    };
    let taken = case.taken.len();
    let known = attempts().filter(|attempt| attempt.accepted).count();
    let doubts = attempts().filter(in_doubt).count();
    if case.orders.len() > 1 {
        breaches.push(format!("paid once: {mark} is one captcha and became {} orders", case.orders.len()));
    }
    if taken < known || taken > known + doubts {
        breaches.push(format!(
            "in plain sight: for {mark} the provider took {taken} tasks; the record knows of {known}, and {doubts} are in doubt"
        ));
    }
    // The first is what was asked for. Each further one needs a reason that is on record.
    let failed =
        attempts().filter(|attempt| attempt.accepted && attempt.progress == Progress::Faulted).count();
    let doubles: usize = case.orders.iter().map(|order| order.possible_doubles as usize).sum();
    let lives: usize = case.orders.iter().map(|order| order.life as usize - 1).sum();
    if taken > 1 + failed + doubles + lives {
        breaches.push(format!(
            "paid once: {mark} was bought {taken} times, with {failed} unsolved and {doubles} listed as possible doubles"
        ));
    }
    taken.saturating_sub(known) as u64
}

fn usage_equals_ledger(evidence: &DemoEvidence, taken_in_doubt: u64, breaches: &mut Vec<String>) {
    let usage = &evidence.usage;
    let taken = evidence.ledger.totals.accepted;
    if usage.paid + taken_in_doubt != taken {
        breaches.push(format!(
            "in plain sight: the usage says {} paid and {taken_in_doubt} taken in doubt, the ledger {taken}",
            usage.paid
        ));
    }
    let answered: BTreeSet<&str> = evidence.orders.iter().flat_map(|order| answered(order)).collect();
    let charged = evidence.ledger.tasks.iter().filter(|task| answered.contains(task.id.as_str()));
    let charged: u64 = charged.map(|task| task.price_micros).sum();
    if usage.cost_micros != charged {
        breaches.push(format!(
            "in plain sight: the usage says {} millionths, the ledger {charged} for the same answers",
            usage.cost_micros
        ));
    }
    let on_record = |count: fn(&Order) -> u64| evidence.orders.iter().map(|order| count(order)).sum::<u64>();
    let pairs = [
        ("attempts", usage.attempts, on_record(|order| order.last_attempt.into())),
        ("possible doubles", usage.possible_doubles, on_record(|order| order.possible_doubles.into())),
        (
            "dead",
            usage.dead - usage.revived.min(usage.dead),
            on_record(|order| matches!(order.phase, Phase::Dead { .. }).into()),
        ),
    ];
    for (what, booked, found) in pairs {
        if booked != found {
            breaches.push(format!("in plain sight: the usage says {booked} {what}, the records {found}"));
        }
    }
}

/// The tasks that brought an answer, by the provider's ids.
fn answered(order: &Order) -> impl Iterator<Item = &str> {
    let own = order.attempts.iter().filter(|attempt| {
        attempt.made_for.is_none()
            && matches!(attempt.progress, Progress::Answered | Progress::Surplus { .. })
    });
    own.filter_map(|attempt| {
        let task_of = order.timeline.entries.iter().find_map(|entry| match &entry.event {
            TimelineEvent::Accepted { attempt: number, task } if *number == attempt.number => {
                Some(task.as_str())
            }
            _ => None,
        });
        attempt.task.as_deref().or(task_of)
    })
}

/// How the requests ended. Every answer must be one that the provider gave for this captcha.
fn ends(
    plan: DemoPlan,
    evidence: &DemoEvidence,
    cases: &BTreeMap<String, CaptchaCase<'_>>,
    breaches: &mut Vec<String>,
) -> RequestOutcomes {
    let mut ends = RequestOutcomes::default();
    for (captcha, event) in &evidence.outcomes {
        let mark = mark(plan.seed, *captcha);
        let Some(event) = event else {
            ends.nothing += 1;
            continue;
        };
        if event["event"] == "answered" {
            ends.answered += 1;
            let sold = cases
                .get(&mark)
                .is_some_and(|case| case.taken.iter().any(|task| is_of(task, &event["answer"])));
            if !sold {
                breaches.push(format!(
                    "never stale: {mark} was answered with something that the provider did not sell"
                ));
            }
        } else {
            let code = event["error"]["code"].as_str().unwrap_or("unknown").to_owned();
            *ends.otherwise.entry(code).or_insert(0) += 1;
        }
    }
    ends.nothing += u64::from(plan.requests) - evidence.outcomes.len() as u64;
    if ends.nothing > 0 {
        breaches.push(format!("never lost: {} requests got no outcome at all", ends.nothing));
    }
    ends
}

fn is_of(task: &LedgerTask, answer: &Value) -> bool {
    task.answer.as_ref() == Some(answer)
}

/// The price of one answer, from what was paid for this captcha or one of its kind.
fn price_of(plan: DemoPlan, captcha: u32, cases: &BTreeMap<String, CaptchaCase<'_>>) -> u64 {
    let paid =
        |captcha: u32| cases.get(&mark(plan.seed, captcha))?.taken.first().map(|task| task.price_micros);
    paid(captcha)
        .or_else(|| (0..plan.captchas).filter(|other| other % 4 == captcha % 4).find_map(paid))
        .unwrap_or(0)
}
