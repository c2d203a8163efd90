//! The estimated result of a bulk action, as text and as JSON. An unknown price is not counted as 0.

use crate::output::harmless;
use crate::pool::price_sum;
use quittance::document::BulkAction;
use quittance::lifecycle::PriceSum;
use quittance_admin::bulk::DryRun;
use serde_json::{Value, json};

#[derive(Default)]
pub(super) struct Cost {
    pub(super) letters: u64,
    would_pay: u64,
    cost: PriceSum,
    may_pay_twice: u64,
    not_allowed: u64,
    unreadable: u64,
    currency: String,
}

impl Cost {
    /// Adds one page of a dry run.
    pub(super) fn add(&mut self, page: &DryRun) {
        self.currency = harmless(&page.currency);
        self.letters += page.dead_letters;
        self.would_pay += page.would_pay;
        self.cost += price_sum(page.cost_micros, page.unpriced);
        self.may_pay_twice += page.may_pay_twice;
        self.not_allowed += page.not_allowed;
        self.unreadable += page.unreadable;
    }

    pub(super) fn json(&self) -> Value {
        let Self { letters, would_pay, cost, may_pay_twice, not_allowed, unreadable, currency } = self;
        let known = cost.known();
        json!({ "currency": currency, "dry_run": true, "dead_letters": letters, "would_pay": would_pay,
            "cost": known.map(|cost| cost.to_string()), "cost_micros": known.map(|cost| cost.0), "unpriced": cost.unpriced,
            "may_pay_twice": may_pay_twice, "not_allowed": not_allowed, "unreadable": unreadable })
    }

    pub(super) fn words(&self, action: BulkAction) -> String {
        let Self { letters, would_pay, cost, may_pay_twice, not_allowed, unreadable, .. } = *self;
        let PriceSum { sum, unpriced } = cost;
        let (done, mut price) = match action {
            BulkAction::Drop => ("dropped", "nothing is paid for".to_owned()),
            BulkAction::Replay => ("replayed", format!("{would_pay} of them may be paid for")),
        };
        if action == BulkAction::Replay && would_pay > 0 {
            let known = format!("{sum} {}", self.currency);
            price += &match would_pay.saturating_sub(unpriced) {
                0 => ", at a price that is not known".to_owned(),
                _ if unpriced == 0 => format!(", about {known}"),
                priced => {
                    format!(
                        ": about {known} for {priced} of them; the price of the other {unpriced} is not known"
                    )
                }
            };
        }
        if may_pay_twice > 0 {
            price += &format!("; {may_pay_twice} may be paid for a second time");
        }
        if not_allowed > 0 {
            price += &format!(
                "; {not_allowed} are skipped, because their site may not be automated any more (`targets.allow`)"
            );
        }
        if unreadable > 0 {
            price += &match action {
                BulkAction::Drop => {
                    format!("; {unreadable} of them cannot be read, and their records are removed for good")
                }
                BulkAction::Replay => format!("; {unreadable} more cannot be read, and are skipped"),
            };
        }
        format!("{} dead letters would be {done}; {price}", letters.saturating_sub(not_allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(fields: &Value) -> Cost {
        let mut page = json!({
            "dry_run": true, "dead_letters": 2, "would_pay": 0, "currency": "USD", "cost_micros": null, "unpriced": 0,
            "may_pay_twice": 0, "not_allowed": 0, "spent_micros": 0, "spent_unpriced": 0, "by_cause": {}, "unreadable": 0,
        });
        fields.as_object().unwrap().iter().for_each(|(name, value)| page[name] = value.clone());
        let mut cost = Cost::default();
        cost.add(&serde_json::from_value(page).unwrap());
        cost
    }

    fn words(fields: &Value) -> String {
        cost(fields).words(BulkAction::Replay)
    }

    #[test]
    fn a_price_that_is_not_known_is_not_zero() {
        let mixed = json!({ "dead_letters": 1511, "would_pay": 1511, "cost_micros": 26_910, "unpriced": 1502, "may_pay_twice": 69 });
        assert_eq!(
            words(&mixed),
            "1511 dead letters would be replayed; 1511 of them may be paid for: about 0.02691 USD for 9 of them; the price \
             of the other 1502 is not known; 69 may be paid for a second time"
        );
        let unknown = json!({ "would_pay": 2, "unpriced": 2 });
        assert!(words(&unknown).ends_with("2 of them may be paid for, at a price that is not known"));
        let object = cost(&unknown).json();
        assert!(object["cost"].is_null() && object["cost_micros"].is_null(), "{object}");
        let known = words(&json!({ "would_pay": 2, "cost_micros": 5980 }));
        assert!(known.ends_with("2 of them may be paid for, about 0.00598 USD"), "{known}");
        let unread = json!({ "dead_letters": 3, "unreadable": 1 });
        assert!(words(&unread).ends_with("; 1 more cannot be read, and are skipped"));
        let dropped = cost(&unread).words(BulkAction::Drop);
        assert!(dropped.starts_with("3 dead letters would be dropped"), "{dropped}");
        assert!(
            dropped.ends_with("; 1 of them cannot be read, and their records are removed for good"),
            "{dropped}"
        );
        let nothing = words(&json!({}));
        assert!(nothing.ends_with("0 of them may be paid for"), "{nothing}");
    }
}
