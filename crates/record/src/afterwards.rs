//! How reports and listeners are written: what is still owed when an order has come to something.

use crate::error::RecordError;
use crate::fields::{Named, Text, mirror, moment, names, need, need_moment, need_text, text, unless_default};
use quittance_lifecycle::{Listener, Passing, Report, Telling};

names! { enum PassingName { Owed = "owed", Passed = "passed", Refused = "refused", Lost = "lost" } }
names! { enum TellingName { Owed = "owed", Dead = "dead" } }

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
        let Report { is_good, at, passing } = report;
        let named = |name: PassingName| Self {
            is_good: Some(*is_good),
            at: moment(*at),
            is: name.text(),
            ..Self::default()
        };
        match passing {
            Passing::Owed { at, tries } => {
                Self { again_at: moment(*at), tries: unless_default(*tries), ..named(PassingName::Owed) }
            }
            Passing::Passed => named(PassingName::Passed),
            Passing::Refused { code } => Self { code: text(code), ..named(PassingName::Refused) },
            Passing::Lost => named(PassingName::Lost),
        }
    }

    pub(crate) fn read(self) -> Result<Report, RecordError> {
        let passing = match PassingName::read(self.is, "is")? {
            PassingName::Owed => Passing::Owed {
                at: need_moment(self.again_at, "again_at")?,
                tries: self.tries.unwrap_or_default(),
            },
            PassingName::Passed => Passing::Passed,
            PassingName::Refused => Passing::Refused { code: need_text(self.code, "code")? },
            PassingName::Lost => Passing::Lost,
        };
        Ok(Report { is_good: need(self.is_good, "is_good")?, at: need_moment(self.at, "at")?, passing })
    }
}

mirror! { ListenerRecord<'a> {
    number: u32,
    url: Text<'a>,
    dialect: Text<'a>,
    is: Text<'a>,
    at: u64,
    tries: u8,
    why: Text<'a>,
} }

impl<'a> ListenerRecord<'a> {
    pub(crate) fn of(listener: &'a Listener) -> Self {
        let Listener { number, url, dialect, telling } = listener;
        let named = |name: TellingName, at| Self {
            number: Some(*number),
            url: text(url),
            dialect: text(dialect),
            is: name.text(),
            at: moment(at),
            ..Self::default()
        };
        match telling {
            Telling::Owed { at, tries } => {
                Self { tries: unless_default(*tries), ..named(TellingName::Owed, *at) }
            }
            Telling::Dead { at, why } => Self { why: text(why), ..named(TellingName::Dead, *at) },
        }
    }

    pub(crate) fn read(self) -> Result<Listener, RecordError> {
        let at = need_moment(self.at, "at")?;
        let telling = match TellingName::read(self.is, "is")? {
            TellingName::Owed => Telling::Owed { at, tries: self.tries.unwrap_or_default() },
            TellingName::Dead => Telling::Dead { at, why: need_text(self.why, "why")? },
        };
        Ok(Listener {
            number: need(self.number, "number")?,
            url: need_text(self.url, "url")?,
            dialect: need_text(self.dialect, "dialect")?,
            telling,
        })
    }
}
