//! How the document about a provider's gate is written.

use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, mirror, moment, names, need, need_moment, need_text, text, unless_default,
};
use quittance_lifecycle::Timestamp;
use quittance_ports::{AccountPause, GateDocument, GateProbe, ProviderMode};

names! { for ProviderMode { Active = "active", Paused = "paused", Drained = "drained" } }

mirror! { PauseRecord<'a> { code: Text<'a>, at: u64, is_no_funds: bool, funds: u64 } }

mirror! { ProbeRecord { node: u64, until: u64 } }

mirror! { GateRecord<'a> {
    provider: Text<'a>,
    is: Text<'a>,
    pause: PauseRecord<'a>,
    resumed_at: u64,
    no_submits_until: u64,
    no_polls_until: u64,
    probe: ProbeRecord,
    answered_at: u64,
} }

/// A moment that is left out if it never came.
fn unless_never(at: Timestamp) -> Option<u64> {
    (at > Timestamp::ZERO).then_some(at.as_millis())
}

fn or_never(at: Option<u64>) -> Timestamp {
    at.map_or(Timestamp::ZERO, Timestamp::from_millis)
}

impl<'a> GateRecord<'a> {
    pub(crate) fn of(document: &'a GateDocument) -> Self {
        let GateDocument {
            provider,
            mode,
            pause,
            resumed_at,
            no_submits_until,
            no_polls_until,
            probe,
            answered_at,
        } = document;
        Self {
            provider: text(provider),
            is: mode.text(),
            pause: pause.as_ref().map(|AccountPause { code, at, is_no_funds, funds }| PauseRecord {
                code: text(code),
                at: moment(*at),
                is_no_funds: unless_default(*is_no_funds),
                funds: *funds,
            }),
            resumed_at: unless_never(*resumed_at),
            no_submits_until: unless_never(*no_submits_until),
            no_polls_until: unless_never(*no_polls_until),
            probe: probe
                .map(|GateProbe { node, until }| ProbeRecord { node: Some(node), until: moment(until) }),
            answered_at: unless_never(*answered_at),
        }
    }

    pub(crate) fn read(self) -> Result<GateDocument, RecordError> {
        let pause = |pause: PauseRecord<'_>| {
            Ok(AccountPause {
                code: need_text(pause.code, "code")?,
                at: need_moment(pause.at, "at")?,
                is_no_funds: pause.is_no_funds.unwrap_or_default(),
                funds: pause.funds,
            })
        };
        let probe = |probe: ProbeRecord| {
            Ok(GateProbe { node: need(probe.node, "node")?, until: need_moment(probe.until, "until")? })
        };
        Ok(GateDocument {
            provider: need(self.provider, "provider")?.into_owned(),
            mode: ProviderMode::read(self.is, "is")?,
            pause: self.pause.map(pause).transpose().within("pause")?,
            resumed_at: or_never(self.resumed_at),
            no_submits_until: or_never(self.no_submits_until),
            no_polls_until: or_never(self.no_polls_until),
            probe: self.probe.map(probe).transpose().within("probe")?,
            answered_at: or_never(self.answered_at),
        })
    }
}
