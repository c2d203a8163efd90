//! How the account of an attempt, and the choice of it, are written.

use crate::budget_records::{DrawRecord, ShortageRecord};
use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, mirror, moment, names, need, need_moment, need_text, text, unless_default,
};
use quittance_lifecycle::{AttemptAccount, HeldOff, Money, Offer, PassedOver, SubmitRoute, WhyPassedOver};

names! { for WhyPassedOver {
    Busy = "busy",
    Tripped = "tripped",
    AccountBlocked = "account_blocked",
    NoFunds = "no_funds",
    Paused = "paused",
    Drained = "drained",
    BudgetSpent = "budget_spent",
    NotSold = "not_sold",
    UsedUp = "used_up",
    HeldOff = "held_off",
    TooSlow = "too_slow",
} }

mirror! { AccountRecord<'a> { name: Text<'a>, price_micros: u64 } }

impl<'a> AccountRecord<'a> {
    pub(crate) fn of(at: &'a AttemptAccount) -> Self {
        let AttemptAccount { account, price } = at;
        Self { name: text(account), price_micros: price.map(|Money(micros)| micros) }
    }

    pub(crate) fn read(self) -> Result<AttemptAccount, RecordError> {
        let account = need_text(self.name, "name")?;
        Ok(AttemptAccount { account, price: self.price_micros.map(Money) })
    }
}

mirror! { PassedOverRecord<'a> { account: Text<'a>, is: Text<'a> } }

pub(crate) fn write_passed_over(passed_over: &[PassedOver]) -> Option<Vec<PassedOverRecord<'_>>> {
    let write =
        passed_over.iter().map(|at| PassedOverRecord { account: text(&at.account), is: at.why.text() });
    (!passed_over.is_empty()).then(|| write.collect())
}

pub(crate) fn read_passed_over(
    record: Option<Vec<PassedOverRecord<'_>>>,
) -> Result<Vec<PassedOver>, RecordError> {
    let read = |(index, passed): (usize, PassedOverRecord<'_>)| {
        let account = need_text(passed.account, "account");
        let why = WhyPassedOver::read(passed.is, "is");
        account.and_then(|account| Ok(PassedOver { account, why: why? })).within_item("passed_over", index)
    };
    record.unwrap_or_default().into_iter().enumerate().map(read).collect()
}

mirror! { HeldOffRecord<'a> { account: Text<'a>, until: u64, is_busy: bool } }

impl<'a> HeldOffRecord<'a> {
    pub(crate) fn of(held: &'a HeldOff) -> Self {
        let HeldOff { account, until, is_busy } = held;
        Self { account: text(account), until: moment(*until), is_busy: unless_default(*is_busy) }
    }

    pub(crate) fn read(self) -> Result<HeldOff, RecordError> {
        Ok(HeldOff {
            account: need_text(self.account, "account")?,
            until: need_moment(self.until, "until")?,
            is_busy: self.is_busy.unwrap_or_default(),
        })
    }
}

names! { enum RouteName { To = "to", Shut = "shut", NoBudget = "no_budget" } }

mirror! { RouteRecord<'a> {
    is: Text<'a>,
    until: u64,
    account: AccountRecord<'a>,
    passed_over: Vec<PassedOverRecord<'a>>,
    drawn: DrawRecord<'a>,
    shortage: ShortageRecord<'a>,
} }

impl<'a> RouteRecord<'a> {
    pub(crate) fn of(route: &'a SubmitRoute) -> Self {
        match route {
            SubmitRoute::To(Offer { account, passed_over, drawn }) => Self {
                is: RouteName::To.text(),
                account: account.as_ref().map(AccountRecord::of),
                passed_over: write_passed_over(passed_over),
                drawn: drawn.as_ref().map(DrawRecord::of),
                ..Self::default()
            },
            SubmitRoute::NoBudget(shortage) => Self {
                is: RouteName::NoBudget.text(),
                shortage: Some(ShortageRecord::of(shortage)),
                ..Self::default()
            },
            SubmitRoute::ShutUntil(until) => {
                Self { is: RouteName::Shut.text(), until: moment(*until), ..Self::default() }
            }
        }
    }

    pub(crate) fn read(self) -> Result<SubmitRoute, RecordError> {
        Ok(match RouteName::read(self.is, "is")? {
            RouteName::To => SubmitRoute::To(Offer {
                account: self.account.map(AccountRecord::read).transpose().within("account")?,
                passed_over: read_passed_over(self.passed_over)?,
                drawn: self.drawn.map(DrawRecord::read).transpose().within("drawn")?,
            }),
            RouteName::NoBudget => {
                SubmitRoute::NoBudget(need(self.shortage, "shortage")?.read().within("shortage")?)
            }
            RouteName::Shut => SubmitRoute::ShutUntil(need_moment(self.until, "until")?),
        })
    }
}
