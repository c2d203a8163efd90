//! How answers and faults are written: the parts that orders, timelines and incoming events share.

use crate::error::{RecordError, Within};
use crate::fields::{
    IN_DOUBT, NamedVariant, Text, mirror, moment, need, need_moment, need_text, text, unless_default,
};
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Answer, Evidence, Fault, FaultClass, Money, Payload, ProviderAnswer, Timestamp};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

mirror! { PayloadRecord<'a> {
    text: Text<'a>,
    is_json: bool,
    extras: Cow<'a, BTreeMap<String, String>>,
} }

impl<'a> PayloadRecord<'a> {
    fn of(payload: &'a Payload) -> Self {
        let Payload { text: token, is_json, extras } = payload;
        Self {
            text: text(token),
            is_json: unless_default(*is_json),
            extras: (!extras.is_empty()).then_some(Cow::Borrowed(extras)),
        }
    }

    fn read(self) -> Result<Payload, RecordError> {
        Ok(Payload {
            text: need_text(self.text, "text")?,
            is_json: self.is_json.unwrap_or_default(),
            extras: self.extras.map(Cow::into_owned).unwrap_or_default(),
        })
    }
}

mirror! { AnswerRecord<'a> {
    payload: PayloadRecord<'a>,
    attempt: u32,
    earliest: u64,
    expires: u64,
    cost_micros: u64,
} }

impl<'a> AnswerRecord<'a> {
    pub(crate) fn of(answer: &'a Answer) -> Self {
        let Answer { payload, attempt, earliest, expires, cost } = answer;
        Self {
            payload: Some(PayloadRecord::of(payload)),
            attempt: Some(*attempt),
            earliest: moment(*earliest),
            expires: expires.and_then(moment),
            cost_micros: cost.map(|Money(micros)| micros),
        }
    }

    pub(crate) fn read(raw: Option<Self>) -> Result<Answer, RecordError> {
        let raw = need(raw, "answer")?;
        raw.parts().within("answer")
    }

    fn parts(self) -> Result<Answer, RecordError> {
        Ok(Answer {
            payload: need(self.payload, "payload")?.read().within("payload")?,
            attempt: need(self.attempt, "attempt")?,
            earliest: need_moment(self.earliest, "earliest")?,
            expires: self.expires.map(Timestamp::from_millis),
            cost: self.cost_micros.map(Money),
        })
    }
}

mirror! { DeliveryRecord<'a> {
    payload: PayloadRecord<'a>,
    // Earlier versions wrote when the provider had solved it, by the provider's clock. That is no evidence: it is read,
    // and never used.
    solved_at: u64,
    cost_micros: u64,
    took_at_least_ms: u64,
} }

impl<'a> DeliveryRecord<'a> {
    pub(crate) fn of(delivery: &'a ProviderAnswer) -> Self {
        let ProviderAnswer { payload, took_at_least, cost } = delivery;
        Self {
            payload: Some(PayloadRecord::of(payload)),
            solved_at: None,
            cost_micros: cost.map(|Money(micros)| micros),
            took_at_least_ms: took_at_least.map(millis),
        }
    }

    pub(crate) fn read(raw: Option<Self>) -> Result<ProviderAnswer, RecordError> {
        let raw = need(raw, "delivery")?;
        raw.parts().within("delivery")
    }

    fn parts(self) -> Result<ProviderAnswer, RecordError> {
        Ok(ProviderAnswer {
            payload: need(self.payload, "payload")?.read().within("payload")?,
            took_at_least: self.took_at_least_ms.map(Duration::from_millis),
            cost: self.cost_micros.map(Money),
        })
    }
}

/// A fault or an attempt in doubt: both are written like a fault.
pub(crate) enum SignalRecord {
    Fault(Fault),
    Doubt(Evidence),
}

mirror! { FaultRecord<'a> { class: Text<'a>, code: Text<'a>, text: Text<'a> } }

impl<'a> FaultRecord<'a> {
    pub(crate) fn of(fault: &'a Fault) -> Self {
        let Fault { class, code, text: reply } = fault;
        let reply = if reply.is_empty() { None } else { text(reply) };
        Self { class: class.text(), code: text(code), text: reply }
    }

    pub(crate) fn read(raw: Option<Self>) -> Result<Fault, RecordError> {
        let raw = need(raw, "fault")?;
        raw.parts().within("fault")
    }

    /// Writes an attempt in doubt as a fault with a class of its own.
    pub(crate) fn of_doubt(evidence: &'a Evidence) -> Self {
        let Evidence { summary, text: reply } = evidence;
        let reply = if reply.is_empty() { None } else { text(reply) };
        Self { class: text(IN_DOUBT), code: text(summary), text: reply }
    }

    /// Reads a fault, or what was observed of an attempt in doubt.
    pub(crate) fn read_either(raw: Option<Self>) -> Result<SignalRecord, RecordError> {
        match raw {
            Some(Self { class: Some(class), code, text }) if class == IN_DOUBT => {
                Ok(SignalRecord::Doubt(Evidence {
                    summary: need_text(code, "code").within("fault")?,
                    text: text.map(Cow::into_owned).unwrap_or_default(),
                }))
            }
            raw => Self::read(raw).map(SignalRecord::Fault),
        }
    }

    /// The fault as it was written. [`Fault::new`] is not used, because reading must not shorten anything.
    fn parts(self) -> Result<Fault, RecordError> {
        Ok(Fault {
            class: FaultClass::read(self.class, "class")?,
            code: need_text(self.code, "code")?,
            text: self.text.map(Cow::into_owned).unwrap_or_default(),
        })
    }
}
