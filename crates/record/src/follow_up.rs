//! How reports and webhooks are written: the follow-ups that remain when an order has ended.

use crate::error::RecordError;
use crate::fields::{
    NamedVariant, Text, mirror, moment, names, need, need_moment, need_text, text, unless_default,
};
use quittance_lifecycle::{DeliveryState, Report, ReportState, Webhook};

names! { enum ReportStateName { Owed = "owed", Passed = "passed", Refused = "refused", Lost = "lost" } }
names! { enum DeliveryStateName { Owed = "owed", Dead = "dead" } }

mirror! { ReportRecord<'a> {
    is_good: bool,
    at: u64,
    is: Text<'a>,
    again_at: u64,
    tries: u8,
    code: Text<'a>,
} }

impl<'a> ReportRecord<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let Report { is_good, at, state } = report;
        let named = |name: ReportStateName| Self {
            is_good: Some(*is_good),
            at: moment(*at),
            is: name.text(),
            ..Self::default()
        };
        match state {
            ReportState::Owed { at, tries } => {
                Self { again_at: moment(*at), tries: unless_default(*tries), ..named(ReportStateName::Owed) }
            }
            ReportState::Passed => named(ReportStateName::Passed),
            ReportState::Refused { code } => Self { code: text(code), ..named(ReportStateName::Refused) },
            ReportState::Lost => named(ReportStateName::Lost),
        }
    }

    pub(crate) fn read(self) -> Result<Report, RecordError> {
        let state = match ReportStateName::read(self.is, "is")? {
            ReportStateName::Owed => ReportState::Owed {
                at: need_moment(self.again_at, "again_at")?,
                tries: self.tries.unwrap_or_default(),
            },
            ReportStateName::Passed => ReportState::Passed,
            ReportStateName::Refused => ReportState::Refused { code: need_text(self.code, "code")? },
            ReportStateName::Lost => ReportState::Lost,
        };
        Ok(Report { is_good: need(self.is_good, "is_good")?, at: need_moment(self.at, "at")?, state })
    }
}

mirror! { WebhookRecord<'a> {
    number: u32,
    url: Text<'a>,
    dialect: Text<'a>,
    is: Text<'a>,
    at: u64,
    tries: u8,
    why: Text<'a>,
} }

impl<'a> WebhookRecord<'a> {
    pub(crate) fn of(webhook: &'a Webhook) -> Self {
        let Webhook { number, url, dialect, state } = webhook;
        let named = |name: DeliveryStateName, at| Self {
            number: Some(*number),
            url: text(url),
            dialect: text(dialect),
            is: name.text(),
            at: moment(at),
            ..Self::default()
        };
        match state {
            DeliveryState::Owed { at, tries } => {
                Self { tries: unless_default(*tries), ..named(DeliveryStateName::Owed, *at) }
            }
            DeliveryState::Dead { at, why } => Self { why: text(why), ..named(DeliveryStateName::Dead, *at) },
        }
    }

    pub(crate) fn read(self) -> Result<Webhook, RecordError> {
        let at = need_moment(self.at, "at")?;
        let state = match DeliveryStateName::read(self.is, "is")? {
            DeliveryStateName::Owed => DeliveryState::Owed { at, tries: self.tries.unwrap_or_default() },
            DeliveryStateName::Dead => DeliveryState::Dead { at, why: need_text(self.why, "why")? },
        };
        Ok(Webhook {
            number: need(self.number, "number")?,
            url: need_text(self.url, "url")?,
            dialect: need_text(self.dialect, "dialect")?,
            state,
        })
    }
}
