//! How budgets are written: what an attempt has drawn, which budget allows no purchase, and what nodes hold.

use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, mirror, moment, names, need, need_moment, need_stamp, need_text, stamp, text,
    unless_default,
};
use quittance_lifecycle::{AtLimit, BudgetDraw, Money, Shortage, Timestamp, WhyShort};
use quittance_ports::{BudgetDocument, BudgetShare};

names! { for AtLimit { Refuse = "refuse", Wait = "wait", CheaperProvider = "cheaper_provider" } }

names! { for WhyShort {
    Spent = "spent", Held = "held", PriceNotKnown = "price_not_known", OtherCurrency = "other_currency",
} }

mirror! { DrawRecord<'a> { price_micros: u64, budgets: Vec<Text<'a>>, until: u64 } }

impl<'a> DrawRecord<'a> {
    pub(crate) fn of(draw: &'a BudgetDraw) -> Self {
        let BudgetDraw { price, budgets, until } = draw;
        Self {
            price_micros: Some(price.0),
            budgets: Some(budgets.iter().filter_map(|name| text(name)).collect()),
            until: moment(*until),
        }
    }

    pub(crate) fn read(self) -> Result<BudgetDraw, RecordError> {
        let budgets = need(self.budgets, "budgets")?.into_iter();
        Ok(BudgetDraw {
            price: Money(need(self.price_micros, "price_micros")?),
            budgets: budgets.map(std::borrow::Cow::into_owned).collect(),
            until: need_moment(self.until, "until")?,
        })
    }
}

mirror! { ShortageRecord<'a> {
    budget: Text<'a>,
    is: Text<'a>,
    at_limit: Text<'a>,
    is_of_provider: bool,
    ends: u64,
    until: u64,
} }

impl<'a> ShortageRecord<'a> {
    pub(crate) fn of(shortage: &'a Shortage) -> Self {
        let Shortage { budget, why, at_limit, is_of_provider, ends, until } = shortage;
        Self {
            budget: text(budget),
            is: why.text(),
            at_limit: at_limit.text(),
            is_of_provider: unless_default(*is_of_provider),
            ends: moment(*ends),
            until: moment(*until),
        }
    }

    pub(crate) fn read(self) -> Result<Shortage, RecordError> {
        Ok(Shortage {
            budget: need_text(self.budget, "budget")?,
            why: WhyShort::read(self.is, "is")?,
            at_limit: AtLimit::read(self.at_limit, "at_limit")?,
            is_of_provider: self.is_of_provider.unwrap_or_default(),
            ends: need_moment(self.ends, "ends")?,
            until: need_moment(self.until, "until")?,
        })
    }
}

mirror! { ShareRecord<'a> {
    node: Text<'a>,
    step: u64,
    leased_micros: u64,
    minus_leased_micros: u64,
    charged_micros: u64,
    minus_charged_micros: u64,
    unpriced: u64,
    minus_unpriced: u64,
} }

/// A number as two without a sign, of which one is left out.
fn split(number: i64) -> (Option<u64>, Option<u64>) {
    (u64::try_from(number).ok().and_then(unless_default), (number < 0).then(|| number.unsigned_abs()))
}

fn join(plus: Option<u64>, minus: Option<u64>) -> i64 {
    minus.or(plus).map_or(0, |size| {
        if minus.is_some() { 0_i64.wrapping_sub_unsigned(size) } else { size.cast_signed() }
    })
}

impl ShareRecord<'_> {
    fn of(node: Option<u64>, share: BudgetShare) -> Self {
        let BudgetShare { step, leased, charged, unpriced } = share;
        let (leased_micros, minus_leased_micros) = split(leased);
        let (charged_micros, minus_charged_micros) = split(charged);
        let (unpriced, minus_unpriced) = split(unpriced);
        Self {
            node: node.and_then(stamp),
            step: unless_default(step),
            leased_micros,
            minus_leased_micros,
            charged_micros,
            minus_charged_micros,
            unpriced,
            minus_unpriced,
        }
    }

    fn share(&self) -> BudgetShare {
        BudgetShare {
            step: self.step.unwrap_or_default(),
            leased: join(self.leased_micros, self.minus_leased_micros),
            charged: join(self.charged_micros, self.minus_charged_micros),
            unpriced: join(self.unpriced, self.minus_unpriced),
        }
    }
}

mirror! { BudgetRecord<'a> {
    budget: Text<'a>,
    currency: Text<'a>,
    begins: u64,
    no_leases_until: u64,
    nodes: Vec<ShareRecord<'a>>,
    gone: ShareRecord<'a>,
} }

impl<'a> BudgetRecord<'a> {
    pub(crate) fn of(document: &'a BudgetDocument) -> Self {
        let BudgetDocument { budget, currency, begins, no_leases_until, nodes, gone } = document;
        Self {
            budget: text(budget),
            currency: text(currency),
            begins: moment(*begins),
            no_leases_until: unless_default(no_leases_until.as_millis()),
            nodes: Some(nodes.iter().map(|(node, share)| ShareRecord::of(Some(*node), *share)).collect()),
            gone: (*gone != BudgetShare::default()).then(|| ShareRecord::of(None, *gone)),
        }
    }

    pub(crate) fn read(self) -> Result<BudgetDocument, RecordError> {
        let read = |(index, mut record): (usize, ShareRecord<'_>)| -> Result<_, RecordError> {
            let node = need_stamp(record.node.take(), "node").within_item("nodes", index)?;
            Ok((node, record.share()))
        };
        let nodes = need(self.nodes, "nodes")?.into_iter().enumerate().map(read);
        Ok(BudgetDocument {
            budget: need_text(self.budget, "budget")?,
            currency: need_text(self.currency, "currency")?,
            begins: need_moment(self.begins, "begins")?,
            no_leases_until: Timestamp::from_millis(self.no_leases_until.unwrap_or_default()),
            nodes: nodes.collect::<Result<_, _>>()?,
            gone: self.gone.map(|gone| gone.share()).unwrap_or_default(),
        })
    }
}
