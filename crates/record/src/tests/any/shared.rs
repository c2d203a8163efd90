//! Random values of what nodes share: their statuses and the shared documents.

use super::Any;
use quittance_lifecycle::{AtLimit, BudgetDraw, Money, Shortage, WhyShort};
use quittance_lifecycle::{DeadLetterCause, DeadLetterFilter};
use quittance_ports::{
    AccountPause, AlertDocument, AlertNote, BudgetDocument, BudgetShare, BulkAction, BulkDocument,
    EndpointNote, EndpointsDocument, GateDocument, GateProbe, Mark, OutageNote, OutagesDocument,
    ProviderMode,
};
use quittance_ports::{AnswerReport, Goal, Hours, Trust};
use quittance_ports::{
    Demand, LevelView, NodeStats, NodeStatus, PoolDocument, PoolSpec, PriceBasis, Reach, Reservation,
    SharedDocument, Spent, TrustDocument,
};

impl Any {
    pub(super) fn node_status(&mut self) -> NodeStatus {
        let demand = |any: &mut Self| (any.text(), Demand { served: any.wide(), missed: any.wide() });
        NodeStatus {
            node: self.wide(),
            name: self.text(),
            version: self.text(),
            format: self.wide(),
            started: self.moment(),
            at: self.moment(),
            skew_ms: self.maybe(|any| i64::from(any.count()) - i64::from(any.count())),
            node_stats: self.node_stats(),
            reach: self.maybe(Self::reach),
            demand: self.list(4, demand).into_iter().collect(),
        }
    }

    fn reach(&mut self) -> Reach {
        Reach {
            address: self.text(),
            until: self.moment(),
            outages: self.list(3, Self::outage),
            unanswered: self.list(3, |any| (any.key(), any.outage())).into_iter().collect(),
        }
    }

    fn node_stats(&mut self) -> NodeStats {
        NodeStats {
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
            is_paused: self.flag(),
            pause_code: self.maybe(Self::text),
            store_was_away: self.flag(),
            has_spilled: self.flag(),
        }
    }

    fn gate(&mut self) -> GateDocument {
        let pause = |any: &mut Self| AccountPause {
            code: any.text(),
            at: any.moment(),
            is_no_funds: any.flag(),
            funds: any.maybe(Self::wide),
        };
        GateDocument {
            provider: self.text(),
            mode: self.one_of(&ProviderMode::ALL),
            pause: self.maybe(pause),
            resumed_at: self.moment(),
            no_submits_until: self.moment(),
            no_polls_until: self.moment(),
            probe: self.maybe(|any| GateProbe { node: any.wide(), until: any.moment() }),
            answered_at: self.moment(),
        }
    }

    fn endpoint(&mut self) -> EndpointNote {
        EndpointNote {
            tenant: self.text(),
            host: self.text(),
            failing_since: self.maybe(Self::moment),
            failures: self.count(),
            ok_at: self.moment(),
            off_at: self.maybe(Self::moment),
            probed_at: self.moment(),
            why: self.text(),
        }
    }

    pub(super) fn draw(&mut self) -> BudgetDraw {
        BudgetDraw { price: Money(self.wide()), budgets: self.list(3, Self::text), until: self.moment() }
    }

    pub(super) fn shortage(&mut self) -> Shortage {
        Shortage {
            budget: self.text(),
            why: self.one_of(&[
                WhyShort::Spent,
                WhyShort::Held,
                WhyShort::PriceNotKnown,
                WhyShort::OtherCurrency,
            ]),
            at_limit: self.one_of(&[AtLimit::Refuse, AtLimit::Wait, AtLimit::CheaperProvider]),
            is_of_provider: self.flag(),
            ends: self.moment(),
            until: self.moment(),
        }
    }

    fn budget_share(&mut self) -> BudgetShare {
        BudgetShare {
            step: self.wide(),
            leased: self.wide().cast_signed(),
            charged: self.wide().cast_signed(),
            unpriced: self.wide().cast_signed(),
        }
    }

    fn budget(&mut self) -> BudgetDocument {
        BudgetDocument {
            budget: self.text(),
            currency: self.text(),
            begins: self.moment(),
            no_leases_until: self.moment(),
            nodes: self.list(3, |any| (any.wide(), any.budget_share())).into_iter().collect(),
            gone: self.budget_share(),
        }
    }

    fn outages(&mut self) -> OutagesDocument {
        let outage = |any: &mut Self| OutageNote {
            provider: any.text(),
            began: any.moment(),
            last_seen: any.moment(),
            well_at: any.moment(),
        };
        OutagesDocument {
            outages: self.list(3, outage),
            hour: self.wide(),
            replays: self.wide(),
            money: Money(self.wide()),
        }
    }

    pub(super) fn document(&mut self) -> SharedDocument {
        match self.below(8) {
            6 => SharedDocument::Budget(self.budget()),
            5 => SharedDocument::Endpoints(EndpointsDocument { endpoints: self.list(3, Self::endpoint) }),
            4 => SharedDocument::Outages(self.outages()),
            3 => SharedDocument::Gate(self.gate()),
            0 => SharedDocument::Pool(self.pool()),
            1 => SharedDocument::Trust(self.trust()),
            2 => SharedDocument::Bulk(self.bulk()),
            _ => SharedDocument::Alerts(AlertDocument {
                alerts: self.list(3, Self::alert),
                marks: self.list(3, Self::mark),
            }),
        }
    }

    fn bulk(&mut self) -> BulkDocument {
        BulkDocument {
            number: self.wide(),
            action: self.one_of(&[BulkAction::Replay, BulkAction::Drop]),
            filter: DeadLetterFilter {
                cause: self.maybe(|any| any.one_of(&DeadLetterCause::ALL)),
                kind: self.maybe(Self::text),
                site: self.maybe(Self::text),
                tenant: self.maybe(Self::text),
                before: self.maybe(Self::moment),
                since: self.maybe(Self::moment),
            },
            begun: self.moment(),
            per_second: self.count(),
            after: self.maybe(Self::key),
            done: self.wide(),
            passed_over: self.wide(),
            ended: self.maybe(Self::moment),
            was_stopped: self.flag(),
        }
    }

    fn alert(&mut self) -> AlertNote {
        AlertNote {
            rule: self.text(),
            subject: self.text(),
            is_grave: self.flag(),
            words: self.text(),
            raised: self.moment(),
            cleared: self.maybe(Self::moment),
            seen: self.maybe(Self::moment),
        }
    }

    fn mark(&mut self) -> Mark {
        Mark {
            at: self.moment(),
            dead: self.wide(),
            attempts: self.wide(),
            in_doubt: self.wide(),
            webhooks_failed: self.wide(),
            solved: self.wide(),
            recovered_by_poll: self.wide(),
            spent: Money(self.wide()),
            unpriced: self.wide(),
        }
    }

    fn pool(&mut self) -> PoolDocument {
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
        PoolDocument {
            spec,
            generations: self.list(5, Self::wide),
            spent: Spent {
                hour: self.wide(),
                money: Money(self.wide()),
                refills: self.wide(),
                unpriced: self.wide(),
                expected: Money(self.wide()),
                without_price: self.wide(),
                is_incomplete: self.flag(),
            },
            first_generation: self.wide(),
            reserved: {
                let reserved = |any: &mut Self| {
                    let price = any.maybe(Self::wide).map(Money);
                    (any.count(), Reservation { hour: any.wide(), price })
                };
                self.list(3, reserved).into_iter().collect()
            },
            price: self.maybe(Self::wide).map(Money),
            basis: PriceBasis { digest: self.wide(), since: self.moment() },
            currency: self.text(),
            asked_at: self.moment(),
            level: self.maybe(Self::level),
            is_removed: self.small() % 2 == 1,
        }
    }

    fn minute(&mut self) -> u16 {
        u16::from_le_bytes([self.small(), self.small()])
    }

    fn level(&mut self) -> LevelView {
        LevelView {
            at: self.moment(),
            size: self.count(),
            why: self.text(),
            rate_milli: self.wide(),
            lead: self.span(),
            fresh: self.count(),
            on_their_way: self.count(),
        }
    }

    fn trust(&mut self) -> TrustDocument {
        let heard = |any: &mut Self| AnswerReport { at: any.moment(), age: any.span() };
        TrustDocument {
            tenant: self.text(),
            kind: self.text(),
            site: self.text(),
            trust: Trust { refusals: self.list(3, heard), approvals: self.list(3, heard) },
        }
    }
}
