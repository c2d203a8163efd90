//! How the documents are written about what has failed for a while: endpoints of webhooks, and providers.

use crate::error::{RecordError, Within};
use crate::fields::{Text, mirror, moment, need, need_moment, need_text, text, unless_default};
use quittance_lifecycle::{Money, Timestamp};
use quittance_ports::{EndpointNote, OutageNote, OutagesDocument};

mirror! { EndpointRecord<'a> {
    tenant: Text<'a>,
    host: Text<'a>,
    failing_since: u64,
    failures: u32,
    ok_at: u64,
    off_at: u64,
    probed_at: u64,
    why: Text<'a>,
} }

impl<'a> EndpointRecord<'a> {
    pub(crate) fn of(note: &'a EndpointNote) -> Self {
        let EndpointNote { tenant, host, failing_since, failures, ok_at, off_at, probed_at, why } = note;
        Self {
            tenant: text(tenant),
            host: text(host),
            failing_since: failing_since.and_then(moment),
            failures: unless_default(*failures),
            ok_at: unless_default(ok_at.as_millis()),
            off_at: off_at.and_then(moment),
            probed_at: unless_default(probed_at.as_millis()),
            why: if why.is_empty() { None } else { text(why) },
        }
    }

    pub(crate) fn read(self) -> Result<EndpointNote, RecordError> {
        Ok(EndpointNote {
            tenant: need_text(self.tenant, "tenant")?,
            host: need_text(self.host, "host")?,
            failing_since: self.failing_since.map(Timestamp::from_millis),
            failures: self.failures.unwrap_or_default(),
            ok_at: Timestamp::from_millis(self.ok_at.unwrap_or_default()),
            off_at: self.off_at.map(Timestamp::from_millis),
            probed_at: Timestamp::from_millis(self.probed_at.unwrap_or_default()),
            why: self.why.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        })
    }
}

mirror! { OutageRecord<'a> { provider: Text<'a>, began: u64, last_seen: u64, well_at: u64 } }

mirror! { OutagesRecord<'a> {
    list: Vec<OutageRecord<'a>>,
    hour: u64,
    replays: u64,
    spent_micros: u64,
} }

impl<'a> OutagesRecord<'a> {
    pub(crate) fn of(document: &'a OutagesDocument) -> Self {
        let OutagesDocument { outages, hour, replays, money } = document;
        let outage = |note: &'a OutageNote| OutageRecord {
            provider: text(&note.provider),
            began: moment(note.began),
            last_seen: moment(note.last_seen),
            well_at: unless_default(note.well_at.as_millis()),
        };
        Self {
            list: Some(outages.iter().map(outage).collect()),
            hour: unless_default(*hour),
            replays: unless_default(*replays),
            spent_micros: unless_default(money.0),
        }
    }

    pub(crate) fn read(self) -> Result<OutagesDocument, RecordError> {
        let read = |(index, record): (usize, OutageRecord<'_>)| {
            let note = || {
                Ok(OutageNote {
                    provider: need_text(record.provider, "provider")?,
                    began: need_moment(record.began, "began")?,
                    last_seen: need_moment(record.last_seen, "last_seen")?,
                    well_at: Timestamp::from_millis(record.well_at.unwrap_or_default()),
                })
            };
            note().within_item("list", index)
        };
        let outages = need(self.list, "list")?.into_iter().enumerate().map(read);
        Ok(OutagesDocument {
            outages: outages.collect::<Result<_, _>>()?,
            hour: self.hour.unwrap_or_default(),
            replays: self.replays.unwrap_or_default(),
            money: Money(self.spent_micros.unwrap_or_default()),
        })
    }
}
