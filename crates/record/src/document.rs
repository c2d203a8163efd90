//! How shared documents are written: pools, with the generation of each place, and the reports about a site.

use crate::VERSION;
use crate::budget_records::BudgetRecord;
use crate::error::{RecordError, Within};
use crate::failure_documents::{EndpointRecord, OutagesRecord};
use crate::fields::{
    NamedVariant, Text, mirror, moment, names, need, need_moment, need_span, need_stamp, need_text, parse,
    span, stamp, text, unless_default, write,
};
use crate::gate_document::GateRecord;
use crate::operator_documents::{AlertRecord, BulkRecord, MarkRecord};
use crate::terms::{ParamsRecord, read_params, write_params};
use quittance_lifecycle::{Money, Timestamp};
use quittance_ports::{
    AlertDocument, EndpointsDocument, LevelView, PoolDocument, PoolSpec, PriceBasis, Reservation,
    SharedDocument, Spent, TrustDocument,
};
use quittance_ports::{AnswerReport, Goal, Hours, Trust};
use std::time::Duration;

names! { enum DocumentName { Pool = "pool", Trust = "trust", Bulk = "bulk", Alerts = "alerts", Gate = "gate",
Endpoints = "endpoints", Outages = "outages",
Budget = "budget" } }

mirror! { DocumentRecord<'a> {
    v: u64,
    is: Text<'a>,
    pool: PoolRecord<'a>,
    trust: TrustRecord<'a>,
    bulk: BulkRecord<'a>,
    alerts: Vec<AlertRecord<'a>>,
    marks: Vec<MarkRecord>,
    gate: GateRecord<'a>,
    endpoints: Vec<EndpointRecord<'a>>,
    outages: OutagesRecord<'a>,
    budget: BudgetRecord<'a>,
} }

#[must_use]
pub fn encode_document(document: &SharedDocument) -> Vec<u8> {
    let named = |name: DocumentName| DocumentRecord {
        v: Some(VERSION),
        is: name.text(),
        ..DocumentRecord::default()
    };
    write(&match document {
        SharedDocument::Pool(pool) => {
            DocumentRecord { pool: Some(PoolRecord::of(pool)), ..named(DocumentName::Pool) }
        }
        SharedDocument::Trust(trust) => {
            DocumentRecord { trust: Some(TrustRecord::of(trust)), ..named(DocumentName::Trust) }
        }
        SharedDocument::Bulk(bulk) => {
            DocumentRecord { bulk: Some(BulkRecord::of(bulk)), ..named(DocumentName::Bulk) }
        }
        SharedDocument::Gate(gate) => {
            DocumentRecord { gate: Some(GateRecord::of(gate)), ..named(DocumentName::Gate) }
        }
        SharedDocument::Endpoints(EndpointsDocument { endpoints }) => DocumentRecord {
            endpoints: Some(endpoints.iter().map(EndpointRecord::of).collect()),
            ..named(DocumentName::Endpoints)
        },
        SharedDocument::Outages(outages) => {
            DocumentRecord { outages: Some(OutagesRecord::of(outages)), ..named(DocumentName::Outages) }
        }
        SharedDocument::Budget(budget) => {
            DocumentRecord { budget: Some(BudgetRecord::of(budget)), ..named(DocumentName::Budget) }
        }
        SharedDocument::Alerts(AlertDocument { alerts, marks }) => DocumentRecord {
            alerts: Some(alerts.iter().map(AlertRecord::of).collect()),
            marks: (!marks.is_empty()).then(|| marks.iter().map(MarkRecord::of).collect()),
            ..named(DocumentName::Alerts)
        },
    })
}

pub fn decode_document(bytes: &[u8]) -> Result<SharedDocument, RecordError> {
    let record: DocumentRecord<'_> = parse(bytes)?;
    Ok(match DocumentName::read(record.is, "is")? {
        DocumentName::Pool => SharedDocument::Pool(need(record.pool, "pool")?.read().within("pool")?),
        DocumentName::Trust => SharedDocument::Trust(need(record.trust, "trust")?.read().within("trust")?),
        DocumentName::Bulk => SharedDocument::Bulk(need(record.bulk, "bulk")?.read().within("bulk")?),
        DocumentName::Gate => SharedDocument::Gate(need(record.gate, "gate")?.read().within("gate")?),
        DocumentName::Endpoints => {
            let endpoints = need(record.endpoints, "endpoints")?.into_iter().enumerate();
            let read =
                |(index, note): (usize, EndpointRecord<'_>)| note.read().within_item("endpoints", index);
            SharedDocument::Endpoints(EndpointsDocument {
                endpoints: endpoints.map(read).collect::<Result<_, _>>()?,
            })
        }
        DocumentName::Outages => {
            SharedDocument::Outages(need(record.outages, "outages")?.read().within("outages")?)
        }
        DocumentName::Budget => {
            SharedDocument::Budget(need(record.budget, "budget")?.read().within("budget")?)
        }
        DocumentName::Alerts => {
            let alerts = need(record.alerts, "alerts")?.into_iter().enumerate();
            let read = |(index, alert): (usize, AlertRecord<'_>)| alert.read().within_item("alerts", index);
            let marks = record.marks.unwrap_or_default().into_iter().enumerate();
            let read_mark = |(index, mark): (usize, MarkRecord)| mark.read().within_item("marks", index);
            SharedDocument::Alerts(AlertDocument {
                alerts: alerts.map(read).collect::<Result<_, _>>()?,
                marks: marks.map(read_mark).collect::<Result<_, _>>()?,
            })
        }
    })
}

mirror! { PoolRecord<'a> {
    name: Text<'a>,
    tenant: Text<'a>,
    kind: Text<'a>,
    params: ParamsRecord<'a>,
    served_permille: u32,
    size: u32,
    budget_micros: u64,
    hours: Vec<(u16, u16)>,
    min_life_ms: u64,
    is_off: bool,
    generations: Vec<Text<'a>>,
    first_generation: u64,
    hour: u64,
    spent_micros: u64,
    refills: u64,
    unpriced: u64,
    expected_micros: u64,
    without_price: u64,
    is_incomplete: bool,
    reserved: Vec<(u32, u64, Option<u64>)>,
    price_micros: u64,
    price_basis: Text<'a>,
    price_since: u64,
    currency: Text<'a>,
    asked_at: u64,
    level: LevelRecord<'a>,
    is_removed: bool,
} }

impl<'a> PoolRecord<'a> {
    fn of(document: &'a PoolDocument) -> Self {
        let PoolDocument {
            spec,
            generations,
            first_generation,
            spent,
            reserved,
            price,
            basis,
            currency,
            asked_at,
            level,
            is_removed,
        } = document;
        let PoolSpec { name, tenant, kind, params, goal, budget, hours, min_life, is_on } = spec;
        let (served_permille, size) = match *goal {
            Goal::Served { permille } => (Some(permille), None),
            Goal::Fixed { size } => (None, Some(size)),
        };
        Self {
            name: text(name),
            tenant: text(tenant),
            kind: text(kind),
            params: Some(write_params(params)),
            served_permille,
            size,
            budget_micros: budget.map(|Money(micros)| micros),
            hours: (!hours.is_empty()).then(|| hours.iter().map(|hours| (hours.from, hours.to)).collect()),
            min_life_ms: min_life.and_then(span),
            is_off: (!is_on).then_some(true),
            // As text, because an operator's value may use all of their bits.
            generations: Some(generations.iter().filter_map(|generation| stamp(*generation)).collect()),
            first_generation: unless_default(*first_generation),
            reserved: (!reserved.is_empty()).then(|| {
                let row =
                    |(place, of): (&u32, &Reservation)| (*place, of.hour, of.price.map(|price| price.0));
                reserved.iter().map(row).collect()
            }),
            price_basis: if basis.digest == 0 { None } else { stamp(basis.digest) },
            price_since: unless_default(basis.since.as_millis()),
            currency: if currency.is_empty() { None } else { text(currency) },
            hour: unless_default(spent.hour),
            spent_micros: unless_default(spent.money.0),
            refills: unless_default(spent.refills),
            unpriced: unless_default(spent.unpriced),
            expected_micros: unless_default(spent.expected.0),
            without_price: unless_default(spent.without_price),
            is_incomplete: spent.is_incomplete.then_some(true),
            price_micros: price.map(|Money(micros)| micros),
            asked_at: moment(*asked_at),
            level: level.as_ref().map(LevelRecord::of),
            is_removed: is_removed.then_some(true),
        }
    }

    fn read(self) -> Result<PoolDocument, RecordError> {
        let goal = match (self.served_permille, self.size) {
            (Some(permille), _) => Goal::Served { permille },
            (None, size) => Goal::Fixed { size: need(size, "served_permille or size")? },
        };
        let hours = self.hours.unwrap_or_default().into_iter().map(|(from, to)| Hours { from, to });
        let spec = PoolSpec {
            name: need_text(self.name, "name")?,
            tenant: need_text(self.tenant, "tenant")?,
            kind: need_text(self.kind, "kind")?,
            params: read_params(need(self.params, "params")?)?,
            goal,
            budget: self.budget_micros.map(Money),
            hours: hours.collect(),
            min_life: self.min_life_ms.map(Duration::from_millis),
            is_on: !self.is_off.unwrap_or_default(),
        };
        let generations = need(self.generations, "generations")?.into_iter();
        Ok(PoolDocument {
            spec,
            generations: generations
                .map(|number| need_stamp(Some(number), "generations"))
                .collect::<Result<_, _>>()?,
            spent: Spent {
                hour: self.hour.unwrap_or_default(),
                money: Money(self.spent_micros.unwrap_or_default()),
                refills: self.refills.unwrap_or_default(),
                unpriced: self.unpriced.unwrap_or_default(),
                expected: Money(self.expected_micros.unwrap_or_default()),
                without_price: self.without_price.unwrap_or_default(),
                is_incomplete: self.is_incomplete.unwrap_or_default(),
            },
            first_generation: self.first_generation.unwrap_or_default(),
            reserved: {
                let read = |(place, hour, price): (u32, u64, Option<u64>)| {
                    (place, Reservation { hour, price: price.map(Money) })
                };
                self.reserved.unwrap_or_default().into_iter().map(read).collect()
            },
            price: self.price_micros.map(Money),
            basis: PriceBasis {
                digest: match self.price_basis {
                    None => 0,
                    digest => need_stamp(digest, "price_basis")?,
                },
                since: Timestamp::from_millis(self.price_since.unwrap_or_default()),
            },
            currency: self.currency.map(std::borrow::Cow::into_owned).unwrap_or_default(),
            asked_at: need_moment(self.asked_at, "asked_at")?,
            level: self.level.map(|level| level.read().within("level")).transpose()?,
            is_removed: self.is_removed.unwrap_or_default(),
        })
    }
}

mirror! { LevelRecord<'a> {
    at: u64,
    size: u32,
    why: Text<'a>,
    rate_milli: u64,
    lead_ms: u64,
    fresh: u32,
    on_their_way: u32,
} }

impl<'a> LevelRecord<'a> {
    fn of(level: &'a LevelView) -> Self {
        let LevelView { at, size, why, rate_milli, lead, fresh, on_their_way } = level;
        Self {
            at: moment(*at),
            size: Some(*size),
            why: text(why),
            rate_milli: unless_default(*rate_milli),
            lead_ms: span(*lead),
            fresh: unless_default(*fresh),
            on_their_way: unless_default(*on_their_way),
        }
    }

    fn read(self) -> Result<LevelView, RecordError> {
        Ok(LevelView {
            at: need_moment(self.at, "at")?,
            size: need(self.size, "size")?,
            why: need_text(self.why, "why")?,
            rate_milli: self.rate_milli.unwrap_or_default(),
            lead: need_span(self.lead_ms, "lead_ms")?,
            fresh: self.fresh.unwrap_or_default(),
            on_their_way: self.on_their_way.unwrap_or_default(),
        })
    }
}

mirror! { TrustRecord<'a> {
    tenant: Text<'a>,
    kind: Text<'a>,
    site: Text<'a>,
    refusals: Vec<HeardRecord>,
    approvals: Vec<HeardRecord>,
} }

mirror! { HeardRecord { at: u64, age_ms: u64 } }

impl HeardRecord {
    fn of(entries: &AnswerReport) -> Self {
        Self { at: moment(entries.at), age_ms: span(entries.age) }
    }

    fn read(self) -> Result<AnswerReport, RecordError> {
        Ok(AnswerReport { at: need_moment(self.at, "at")?, age: need_span(self.age_ms, "age_ms")? })
    }
}

impl<'a> TrustRecord<'a> {
    fn of(document: &'a TrustDocument) -> Self {
        let TrustDocument { tenant, kind, site, trust: Trust { refusals, approvals } } = document;
        let all = |entries: &[AnswerReport]| {
            (!entries.is_empty()).then(|| entries.iter().map(HeardRecord::of).collect())
        };
        Self {
            tenant: text(tenant),
            kind: text(kind),
            site: text(site),
            refusals: all(refusals),
            approvals: all(approvals),
        }
    }

    fn read(self) -> Result<TrustDocument, RecordError> {
        let all = |entries: Option<Vec<HeardRecord>>, field| {
            let read = |(index, entries): (usize, HeardRecord)| entries.read().within_item(field, index);
            entries.unwrap_or_default().into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()
        };
        Ok(TrustDocument {
            tenant: need_text(self.tenant, "tenant")?,
            kind: need_text(self.kind, "kind")?,
            site: need_text(self.site, "site")?,
            trust: Trust {
                refusals: all(self.refusals, "refusals")?,
                approvals: all(self.approvals, "approvals")?,
            },
        })
    }
}
