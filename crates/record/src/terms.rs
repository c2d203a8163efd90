//! How the terms of an order are written. They can be large and contain images, so a store writes them once for each
//! life of the order.

use crate::VERSION;
use crate::error::{RecordError, Within};
use crate::fields::{
    NamedVariant, Text, digest, mirror, need, need_digest, need_span, need_text, parse, read_priority, span,
    text, write, write_priority,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quittance_lifecycle::{Money, RetryLimits, Reuse, Slot, Target, Terms, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

mirror! { TermsRecord<'a> {
    v: u64,
    tenant: Text<'a>,
    kind: Text<'a>,
    params: ParamsRecord<'a>,
    target: Text<'a>,
    fingerprint: Text<'a>,
    keyed: bool,
    reuse: Text<'a>,
    single_use: bool,
    life_ms: u64,
    min_life_ms: u64,
    margin_ms: u64,
    timeout_ms: u64,
    max_retries: u8,
    retry_base_ms: u64,
    retry_cap_ms: u64,
    keep_ms: u64,
    site: Text<'a>,
    takes_stock: bool,
    collected_in_ms: u64,
    slot: SlotRecord<'a>,
    priority: Text<'a>,
    // The account: the provider's name, and the currency.
    provider: Text<'a>,
    price_micros: u64,
    trace: Text<'a>,
} }

mirror! { SlotRecord<'a> { pool: Text<'a>, number: u32, generation: u64 } }

#[must_use]
pub fn encode_terms(terms: &Terms) -> Vec<u8> {
    let Terms {
        tenant,
        kind,
        params,
        target,
        fingerprint,
        keyed,
        reuse,
        single_use,
        life,
        min_life,
        margin,
        timeout,
        retry: RetryLimits { max_retries, base: retry_base, cap: retry_cap },
        keep,
        site,
        takes_stock,
        collected_in,
        slot,
        priority,
        account,
        price,
        trace,
    } = terms;
    write(&TermsRecord {
        v: Some(VERSION),
        tenant: text(tenant),
        kind: text(kind),
        params: Some(write_params(params)),
        target: digest(target.0),
        fingerprint: digest(*fingerprint),
        keyed: Some(*keyed),
        reuse: reuse.text(),
        single_use: Some(*single_use),
        life_ms: life.and_then(span),
        min_life_ms: span(*min_life),
        margin_ms: span(*margin).filter(|_| margin != min_life),
        timeout_ms: span(*timeout),
        max_retries: *max_retries,
        retry_base_ms: retry_base.and_then(span),
        retry_cap_ms: retry_cap.and_then(span),
        keep_ms: span(*keep),
        site: written(site),
        takes_stock: (*takes_stock != *single_use).then_some(*takes_stock),
        collected_in_ms: span(*collected_in).filter(|span| *span > 0),
        slot: slot.as_ref().map(SlotRecord::of),
        priority: write_priority(*priority),
        provider: written(account),
        price_micros: price.map(|Money(micros)| micros),
        trace: written(trace),
    })
}

/// A text to be written; `None` if it is empty.
fn written(content: &str) -> Option<Text<'_>> {
    if content.is_empty() { None } else { text(content) }
}

pub fn decode_terms(bytes: &[u8]) -> Result<Terms, RecordError> {
    let record: TermsRecord<'_> = parse(bytes)?;
    let single_use = need(record.single_use, "single_use")?;
    let min_life = need_span(record.min_life_ms, "min_life_ms")?;
    Ok(Terms {
        tenant: need_text(record.tenant, "tenant")?,
        kind: need_text(record.kind, "kind")?,
        params: read_params(need(record.params, "params")?)?,
        target: Target(need_digest(record.target, "target")?),
        fingerprint: need_digest(record.fingerprint, "fingerprint")?,
        keyed: need(record.keyed, "keyed")?,
        reuse: Reuse::read(record.reuse, "reuse")?,
        single_use,
        life: record.life_ms.map(Duration::from_millis),
        min_life,
        // Before there was a difference, every caller was promised the margin.
        margin: record.margin_ms.map_or(min_life, Duration::from_millis),
        timeout: need_span(record.timeout_ms, "timeout_ms")?,
        retry: RetryLimits {
            max_retries: record.max_retries,
            base: record.retry_base_ms.map(Duration::from_millis),
            cap: record.retry_cap_ms.map(Duration::from_millis),
        },
        keep: need_span(record.keep_ms, "keep_ms")?,
        // Before there was a choice, whatever could be taken from the stock was.
        takes_stock: record.takes_stock.unwrap_or(single_use),
        collected_in: Duration::from_millis(record.collected_in_ms.unwrap_or_default()),
        site: record.site.map(Cow::into_owned).unwrap_or_default(),
        slot: record.slot.map(SlotRecord::read).transpose()?,
        priority: read_priority(record.priority)?,
        account: record.provider.map(Cow::into_owned).unwrap_or_default(),
        price: record.price_micros.map(Money),
        trace: record.trace.map(Cow::into_owned).unwrap_or_default(),
    })
}

impl<'a> SlotRecord<'a> {
    fn of(slot: &'a Slot) -> Self {
        let Slot { pool, number, generation } = slot;
        Self { pool: text(pool), number: Some(*number), generation: Some(*generation) }
    }

    fn read(self) -> Result<Slot, RecordError> {
        Ok(Slot {
            pool: need_text(self.pool, "pool")?,
            number: need(self.number, "number")?,
            generation: need(self.generation, "generation")?,
        })
    }
}

pub(crate) type ParamsRecord<'a> = BTreeMap<Text<'a>, ValueRecord<'a>>;

pub(crate) fn write_params(params: &BTreeMap<String, Value>) -> ParamsRecord<'_> {
    params.iter().map(|(name, value)| (Cow::Borrowed(&**name), ValueRecord::of(value))).collect()
}

/// Reads parameters. An error names a parameter by its position, because its name came from outside.
pub(crate) fn read_params(record: ParamsRecord<'_>) -> Result<BTreeMap<String, Value>, RecordError> {
    let read = |(index, (name, value)): (usize, (Text<'_>, ValueRecord<'_>))| {
        Ok((name.into_owned(), value.read().within_item("params", index)?))
    };
    record.into_iter().enumerate().map(read).collect()
}

mirror! {
    /// A value, whose type is the name of its only field.
    ValueRecord<'a> { text: Text<'a>, base64: Text<'a> }
}

impl<'a> ValueRecord<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Text(plain) => Self { text: text(plain), ..Self::default() },
            Value::Bytes(bytes) => {
                Self { base64: Some(Cow::Owned(STANDARD.encode(bytes))), ..Self::default() }
            }
        }
    }

    fn read(self) -> Result<Value, RecordError> {
        match (self.text, self.base64) {
            (Some(plain), None) => Ok(Value::Text(plain.into_owned())),
            (None, Some(digits)) => STANDARD
                .decode(digits.as_bytes())
                .map(Value::Bytes)
                .map_err(|_| RecordError::malformed("base64", "base64")),
            (Some(_), Some(_)) => {
                Err(RecordError::malformed("text", "the only value: `base64` is there, too"))
            }
            // Also what a sort of value looks like that only later versions know.
            (None, None) => Err(RecordError::Missing { field: "text or base64".into() }),
        }
    }
}
