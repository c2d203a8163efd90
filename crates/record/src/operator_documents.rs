//! How the documents about operators' work are written: bulk actions on dead letters, and alerts.

use crate::error::RecordError;
use crate::fields::{
    NamedVariant, Text, digest, mirror, moment, names, need, need_moment, need_stamp, need_text, read_key,
    stamp, text, unless_default,
};
use quittance_lifecycle::{DeadLetterCause, DeadLetterFilter, Money, Timestamp};
use quittance_ports::{AlertNote, BulkAction, BulkDocument, Mark};
use std::borrow::Cow;

names! { enum BulkActionName { Replay = "replay", Drop = "drop" } }

mirror! { BulkRecord<'a> {
    number: Text<'a>,
    action: Text<'a>,
    cause: Text<'a>,
    kind: Text<'a>,
    site: Text<'a>,
    tenant: Text<'a>,
    before: u64,
    since: u64,
    begun: u64,
    per_second: u32,
    after: Text<'a>,
    done: u64,
    passed_over: u64,
    ended: u64,
    was_stopped: bool,
} }

impl<'a> BulkRecord<'a> {
    pub(crate) fn of(document: &'a BulkDocument) -> Self {
        let BulkDocument {
            number,
            action,
            filter,
            begun,
            per_second,
            after,
            done,
            passed_over,
            ended,
            was_stopped,
        } = document;
        let DeadLetterFilter { cause, kind, site, tenant, before, since } = filter;
        let action = match action {
            BulkAction::Replay => BulkActionName::Replay,
            BulkAction::Drop => BulkActionName::Drop,
        };
        Self {
            number: stamp(*number),
            action: action.text(),
            cause: cause.and_then(|cause| text(cause.name())),
            kind: kind.as_deref().and_then(text),
            site: site.as_deref().and_then(text),
            tenant: tenant.as_deref().and_then(text),
            before: before.and_then(moment),
            since: since.and_then(moment),
            begun: moment(*begun),
            per_second: Some(*per_second),
            after: after.and_then(|key| digest(key.0)),
            done: unless_default(*done),
            passed_over: unless_default(*passed_over),
            ended: ended.and_then(moment),
            was_stopped: unless_default(*was_stopped),
        }
    }

    pub(crate) fn read(self) -> Result<BulkDocument, RecordError> {
        let cause = self.cause.as_deref().map(|name| {
            DeadLetterCause::named(name)
                .ok_or_else(|| RecordError::malformed("cause", "a cause that is known"))
        });
        Ok(BulkDocument {
            number: need_stamp(self.number, "number")?,
            action: match BulkActionName::read(self.action, "action")? {
                BulkActionName::Replay => BulkAction::Replay,
                BulkActionName::Drop => BulkAction::Drop,
            },
            filter: DeadLetterFilter {
                cause: cause.transpose()?,
                kind: self.kind.map(Cow::into_owned),
                site: self.site.map(Cow::into_owned),
                tenant: self.tenant.map(Cow::into_owned),
                before: self.before.map(Timestamp::from_millis),
                since: self.since.map(Timestamp::from_millis),
            },
            begun: need_moment(self.begun, "begun")?,
            per_second: need(self.per_second, "per_second")?,
            after: read_key(self.after, "after")?,
            done: self.done.unwrap_or_default(),
            passed_over: self.passed_over.unwrap_or_default(),
            ended: self.ended.map(Timestamp::from_millis),
            was_stopped: self.was_stopped.unwrap_or_default(),
        })
    }
}

mirror! { AlertRecord<'a> {
    rule: Text<'a>,
    subject: Text<'a>,
    is_grave: bool,
    words: Text<'a>,
    raised: u64,
    cleared: u64,
    seen: u64,
} }

impl<'a> AlertRecord<'a> {
    pub(crate) fn of(note: &'a AlertNote) -> Self {
        let AlertNote { rule, subject, is_grave, words, raised, cleared, seen } = note;
        Self {
            rule: text(rule),
            subject: text(subject),
            is_grave: unless_default(*is_grave),
            words: text(words),
            raised: moment(*raised),
            cleared: cleared.and_then(moment),
            seen: seen.and_then(moment),
        }
    }

    pub(crate) fn read(self) -> Result<AlertNote, RecordError> {
        Ok(AlertNote {
            rule: need_text(self.rule, "rule")?,
            subject: need_text(self.subject, "subject")?,
            is_grave: self.is_grave.unwrap_or_default(),
            words: need_text(self.words, "words")?,
            raised: need_moment(self.raised, "raised")?,
            cleared: self.cleared.map(Timestamp::from_millis),
            seen: self.seen.map(Timestamp::from_millis),
        })
    }
}

mirror! { MarkRecord {
    at: u64,
    dead: u64,
    attempts: u64,
    in_doubt: u64,
    webhooks_failed: u64,
    solved: u64,
    recovered_by_poll: u64,
    spent_micros: u64,
    unpriced: u64,
} }

impl MarkRecord {
    pub(crate) fn of(mark: &Mark) -> Self {
        let Mark {
            at,
            dead,
            attempts,
            in_doubt,
            webhooks_failed,
            solved,
            recovered_by_poll,
            spent,
            unpriced,
        } = *mark;
        Self {
            at: moment(at),
            dead: unless_default(dead),
            attempts: unless_default(attempts),
            in_doubt: unless_default(in_doubt),
            webhooks_failed: unless_default(webhooks_failed),
            solved: unless_default(solved),
            recovered_by_poll: unless_default(recovered_by_poll),
            spent_micros: unless_default(spent.0),
            unpriced: unless_default(unpriced),
        }
    }

    pub(crate) fn read(self) -> Result<Mark, RecordError> {
        Ok(Mark {
            at: need_moment(self.at, "at")?,
            dead: self.dead.unwrap_or_default(),
            attempts: self.attempts.unwrap_or_default(),
            in_doubt: self.in_doubt.unwrap_or_default(),
            webhooks_failed: self.webhooks_failed.unwrap_or_default(),
            solved: self.solved.unwrap_or_default(),
            recovered_by_poll: self.recovered_by_poll.unwrap_or_default(),
            spent: Money(self.spent_micros.unwrap_or_default()),
            unpriced: self.unpriced.unwrap_or_default(),
        })
    }
}
