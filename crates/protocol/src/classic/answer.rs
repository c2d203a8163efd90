//! Reads a provider's replies in every shape of the protocol: plain text or JSON, requested or not, with the answer
//! under several names. A reply that is neither an answer nor a code is "puzzling"; its meaning is never guessed. A
//! code is a fault, even where an answer should be.

mod price;
mod reply_text;
#[cfg(test)]
mod tests;

use crate::classic::code::{ClassicCodes, is_pending, looks_like_a_code};
use crate::classic::form::{Form, Part};
use quittance_lifecycle::order::TASK_BYTES_MAX;
use quittance_lifecycle::{Fault, FaultClass, Money, Payload};
use reply_text::{ClassicBody, ReplyValue};
use std::fmt;

/// The longest reply that is read. Tokens have a few kB, lists of boxes some more.
pub const REPLY_BYTES_MAX: usize = 512 * 1024;

/// What a reply looks like that is not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassicSight {
    Nothing,
    Html,
    TooLong,
    BrokenJson,
    Junk,
}

impl fmt::Display for ClassicSight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "answered nothing",
            Self::Html => "answered HTML, not the protocol",
            Self::TooLong => "answered more than any answer has",
            Self::BrokenJson => "answered JSON that ends early or is not of the protocol",
            Self::Junk => "answered something that is not the protocol",
        })
    }
}

/// A reply of `in.php`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitReply {
    Taken { task: String },
    Fault(Fault),
    Puzzling(ClassicSight),
}

/// A reply of `res.php` about one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollReply {
    Pending,
    Answered { payload: Payload, cost: Option<Money> },
    Fault(Fault),
    Puzzling(ClassicSight),
}

/// A reply of `res.php` about several tasks. Which part belongs to which task is not certain: answers can contain the
/// separator, and parts can be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchReply {
    Parts(Vec<String>),
    /// One code for all tasks.
    Fault(Fault),
    /// A reply that is not divided by task.
    Unclear,
    Puzzling(ClassicSight),
}

/// A reply of `res.php` about the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassicAccountReply<T> {
    Is(T),
    Fault(Fault),
    Puzzling(ClassicSight),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsReply {
    pub total: u64,
    pub working: u64,
}

#[must_use]
pub fn read_submit(body: &[u8], codes: &ClassicCodes) -> SubmitReply {
    match ClassicBody::read(body, codes) {
        ClassicBody::Yes { answer: ReplyValue::Text(task) | ReplyValue::Number(task), .. } => {
            match text_fault(&task, codes) {
                Some(fault) => SubmitReply::Fault(fault),
                None if is_task(&task) => SubmitReply::Taken { task },
                None => SubmitReply::Puzzling(ClassicSight::Junk),
            }
        }
        ClassicBody::Yes { .. } | ClassicBody::Hollow => SubmitReply::Puzzling(ClassicSight::Junk),
        // Nothing can be pending that was not taken, so this is no refusal.
        ClassicBody::No(code) if is_pending(&code) => SubmitReply::Puzzling(ClassicSight::Junk),
        ClassicBody::No(code) => SubmitReply::Fault(codes.classify(&code)),
        ClassicBody::Puzzling(sight) => SubmitReply::Puzzling(sight),
    }
}

/// Reads a reply of `res.php` to a poll. `priced` is true for the action `get2`, where the price follows a plain
/// answer.
#[must_use]
pub fn read_poll(body: &[u8], priced: bool, codes: &ClassicCodes) -> PollReply {
    match ClassicBody::read(body, codes) {
        ClassicBody::Yes { answer: ReplyValue::Text(text), is_plain: true, .. } if priced => {
            let (text, cost) = price::split_off(&text);
            read_untyped(text, cost, codes)
        }
        ClassicBody::Yes { answer: ReplyValue::Text(text), is_plain: true, cost, .. } => {
            read_untyped(&text, cost, codes)
        }
        ClassicBody::Yes {
            answer: ReplyValue::Text(text) | ReplyValue::Number(text), extras, cost, ..
        } => match read_word(&text, cost, codes) {
            PollReply::Answered { payload, cost } => {
                PollReply::Answered { payload: Payload { extras, ..payload }, cost }
            }
            other => other,
        },
        ClassicBody::Yes { answer: ReplyValue::Document(text), extras, cost, .. } => {
            PollReply::Answered { payload: Payload { text, is_json: true, extras }, cost }
        }
        // The reply is clear and useless: an operator should see it, or it would be polled for ever.
        ClassicBody::Hollow => {
            PollReply::Fault(Fault::new(FaultClass::UnlistedCode, "solved, but without an answer"))
        }
        ClassicBody::No(code) if is_pending(&code) => PollReply::Pending,
        ClassicBody::No(code) => PollReply::Fault(codes.classify(&code)),
        ClassicBody::Puzzling(sight) => PollReply::Puzzling(sight),
    }
}

/// Reads text that stands in the place of an answer.
fn read_word(text: &str, cost: Option<Money>, codes: &ClassicCodes) -> PollReply {
    if is_pending(text) {
        return PollReply::Pending;
    }
    match text_fault(text, codes) {
        Some(fault) => PollReply::Fault(fault),
        None => PollReply::Answered { payload: Payload::text(text), cost },
    }
}

/// Reads an answer from a plain text reply, in which text and JSON documents look alike. The answer gets the type
/// that it would have in a JSON reply, so that clients see no difference.
fn read_untyped(text: &str, cost: Option<Money>, codes: &ClassicCodes) -> PollReply {
    let is_json = codes.dialect().facts().answers_in_objects && reply_text::is_document(text);
    match read_word(text, cost, codes) {
        // A proxy's error page in place of the answer is a mistake on the way, and not what was bought.
        PollReply::Answered { payload, .. } if payload.is_a_page() => PollReply::Puzzling(ClassicSight::Html),
        PollReply::Answered { payload, cost } => {
            PollReply::Answered { payload: Payload { is_json, ..payload }, cost }
        }
        other => other,
    }
}

#[must_use]
pub fn read_batch(body: &[u8], codes: &ClassicCodes) -> BatchReply {
    let parts = |text: &str| BatchReply::Parts(text.split('|').map(str::to_owned).collect());
    match ClassicBody::read(body, codes) {
        ClassicBody::Yes { answer: ReplyValue::Text(text), .. } => parts(&text),
        ClassicBody::No(text) if text.contains('|') => parts(&text),
        ClassicBody::No(code) => {
            let fault = codes.classify(&code);
            let is_about_us =
                matches!(fault.class, FaultClass::Busy | FaultClass::AccountBlocked | FaultClass::NoFunds);
            if is_about_us { BatchReply::Fault(fault) } else { BatchReply::Unclear }
        }
        ClassicBody::Yes { .. } | ClassicBody::Hollow => BatchReply::Unclear,
        ClassicBody::Puzzling(ClassicSight::Junk) if body.contains(&b'|') => BatchReply::Unclear,
        ClassicBody::Puzzling(sight) => BatchReply::Puzzling(sight),
    }
}

/// Reads a pingback: the task that it names, and the answer or fault. `None` if it holds nothing final.
#[must_use]
pub fn read_pingback(form: &Form, codes: &ClassicCodes) -> Option<(Option<String>, Result<Payload, Fault>)> {
    let code_text = match form.0.get("code")? {
        Part::Text(text) => text.trim(),
        Part::File(_) => return None,
    };
    let code_text = code_text.strip_prefix("OK|").unwrap_or(code_text);
    if code_text.is_empty() || code_text.len() > REPLY_BYTES_MAX {
        return None;
    }
    let task = form.text("id").map(str::trim).filter(|task| is_task(task)).map(str::to_owned);
    match read_untyped(code_text, None, codes) {
        PollReply::Answered { payload, .. } => Some((task, Ok(payload))),
        PollReply::Fault(fault) => Some((task, Err(fault))),
        PollReply::Pending | PollReply::Puzzling(_) => None,
    }
}

/// The account's money. A debt counts as zero.
#[must_use]
pub fn read_balance(body: &[u8], codes: &ClassicCodes) -> ClassicAccountReply<Money> {
    let balance = |text: &str| price::money(text.strip_prefix('-').map_or(text, |_| "0"));
    match ClassicBody::read(body, codes) {
        ClassicBody::Yes { answer: ReplyValue::Text(text) | ReplyValue::Number(text), .. } => {
            match (balance(&text), text_fault(&text, codes)) {
                (Some(money), _) => ClassicAccountReply::Is(money),
                (None, Some(fault)) => ClassicAccountReply::Fault(fault),
                (None, None) => ClassicAccountReply::Puzzling(ClassicSight::Junk),
            }
        }
        ClassicBody::Yes { .. } | ClassicBody::Hollow => ClassicAccountReply::Puzzling(ClassicSight::Junk),
        ClassicBody::No(code) => ClassicAccountReply::Fault(codes.classify(&code)),
        // The plain reply is the bare number.
        ClassicBody::Puzzling(sight) => {
            match std::str::from_utf8(body).ok().and_then(|text| balance(text.trim())) {
                Some(money) => ClassicAccountReply::Is(money),
                None => ClassicAccountReply::Puzzling(sight),
            }
        }
    }
}

#[must_use]
pub fn read_threads(body: &[u8], codes: &ClassicCodes) -> ClassicAccountReply<ThreadsReply> {
    if let Some(threads) = reply_text::threads(body) {
        return ClassicAccountReply::Is(threads);
    }
    match ClassicBody::read(body, codes) {
        ClassicBody::No(code) => ClassicAccountReply::Fault(codes.classify(&code)),
        ClassicBody::Yes { answer: ReplyValue::Text(text), .. } => match text_fault(&text, codes) {
            Some(fault) => ClassicAccountReply::Fault(fault),
            None => ClassicAccountReply::Puzzling(ClassicSight::Junk),
        },
        ClassicBody::Yes { .. } | ClassicBody::Hollow => ClassicAccountReply::Puzzling(ClassicSight::Junk),
        ClassicBody::Puzzling(sight) => ClassicAccountReply::Puzzling(sight),
    }
}

/// The fault, if the text in the place of an answer is a code. A URL does not count as a code here, only where no
/// answer was promised.
fn text_fault(text: &str, codes: &ClassicCodes) -> Option<Fault> {
    let is_code = text.starts_with("ERROR") || (looks_like_a_code(text) && codes.is_known(text));
    is_code.then(|| codes.classify(text))
}

/// Whether a text can be the id of a task that can be polled.
#[must_use]
pub fn is_task(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= TASK_BYTES_MAX
        && text.bytes().all(|b| b.is_ascii_graphic() && b != b'|')
}
