//! The same for what nodes share: cards and sheets.

use super::Any;
use quittance_lifecycle::Money;
use quittance_pool::{Goal, Heard, Hours, Trust};
use quittance_ports::{Card, Demand, LevelShown, PoolSheet, PoolSpec, Sheet, Spent, TrustSheet, Vitals};

impl Any {
    pub(super) fn card(&mut self) -> Card {
        let demand = |any: &mut Self| (any.text(), Demand { served: any.wide(), missed: any.wide() });
        Card {
            node: self.wide(),
            name: self.text(),
            version: self.text(),
            format: self.wide(),
            started: self.moment(),
            at: self.moment(),
            skew_ms: self.maybe(|any| i64::from(any.count()) - i64::from(any.count())),
            vitals: self.vitals(),
            demand: self.list(4, demand).into_iter().collect(),
        }
    }

    fn vitals(&mut self) -> Vitals {
        Vitals {
            placed: self.wide(),
            joined: self.wide(),
            attended: self.wide(),
            submitted: self.wide(),
            polled: self.wide(),
            answered: self.wide(),
            in_hand: self.wide(),
            store_errors: self.wide(),
            unreadable: self.wide(),
            panics: self.wide(),
            released: self.maybe(Self::moment),
            is_paused: self.flag(),
            store_was_away: self.flag(),
            has_spilled: self.flag(),
        }
    }

    pub(super) fn sheet(&mut self) -> Sheet {
        if self.flag() { Sheet::Pool(self.pool()) } else { Sheet::Trust(self.trust()) }
    }

    fn pool(&mut self) -> PoolSheet {
        let spec = PoolSpec {
            name: self.text(),
            tenant: self.text(),
            kind: self.text(),
            params: self.params(),
            goal: match self.flag() {
                true => Goal::Served { permille: self.count() },
                false => Goal::Fixed { size: self.count() },
            },
            budget: self.maybe(Self::wide).map(Money),
            hours: self.list(3, |any| Hours { from: any.minute(), to: any.minute() }),
            min_life: self.maybe(Self::span),
            is_on: self.flag(),
        };
        PoolSheet {
            spec,
            generations: self.list(5, Self::wide),
            spent: Spent { hour: self.wide(), money: Money(self.wide()), refills: self.wide() },
            price: self.maybe(Self::wide).map(Money),
            asked_at: self.moment(),
            level: self.maybe(Self::level),
        }
    }

    fn minute(&mut self) -> u16 {
        u16::from_le_bytes([self.small(), self.small()])
    }

    fn level(&mut self) -> LevelShown {
        LevelShown {
            at: self.moment(),
            size: self.count(),
            why: self.text(),
            rate_milli: self.wide(),
            lead: self.span(),
            fresh: self.count(),
            on_their_way: self.count(),
        }
    }

    fn trust(&mut self) -> TrustSheet {
        let heard = |any: &mut Self| Heard { at: any.moment(), age: any.span() };
        TrustSheet {
            tenant: self.text(),
            kind: self.text(),
            site: self.text(),
            trust: Trust { refusals: self.list(3, heard), approvals: self.list(3, heard) },
        }
    }
}
