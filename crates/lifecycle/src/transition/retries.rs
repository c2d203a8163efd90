//! Whether an order may be tried again, where, and after which pause.

use super::{Decision, NextOrder};
use crate::fault::Signal;
use crate::order::{Attempt, DeadCause, HeldOff, Phase};
use crate::policy::Policy;
use crate::time::Timestamp;
use alloc::string::String;
use core::time::Duration;

impl NextOrder {
    /// Whether this life may make an attempt at another account.
    pub(super) fn can_fail_over(&self, policy: &Policy) -> bool {
        policy.can_fail_over && !self.is_life_spent(policy)
    }

    /// Whether this life has made as many attempts as the operator allows and the caller wants.
    pub(super) fn is_life_spent(&self, policy: &Policy) -> bool {
        let retries = self.next.terms.retry.retries_within(policy.max_retries);
        retries.is_some_and(|retries| self.next.life_attempts > retries.into())
    }

    /// Whether this life may make no more attempts at the account of this attempt.
    pub(super) fn are_attempts_spent(&self, number: u32, policy: &Policy) -> bool {
        let Some(retries) = policy.account_max_retries else { return self.is_life_spent(policy) };
        let account = self.account_of(number);
        let is_of_life = |attempt: &&Attempt| {
            let is_made_here = attempt.made_for.is_none() && attempt.former.is_none();
            is_made_here && attempt.sent >= self.next.placed && self.next.account_of(attempt) == account
        };
        let made = self.next.attempts.iter().filter(is_of_life).count();
        self.is_life_spent(policy) || made > retries.into()
    }

    /// Whether this life may not try again after this at the account of this attempt.
    pub(super) fn are_retries_spent(&self, number: u32, signal: Signal, policy: &Policy) -> bool {
        let is_class_spent = policy.faults.rule(signal).is_spent(self.next.retries[signal.index()]);
        is_class_spent || self.are_attempts_spent(number, policy)
    }

    /// Goes to another account if that is possible. Otherwise the order is a dead letter.
    pub(super) fn leave_account(mut self, number: u32, cause: DeadCause, policy: &Policy) -> Decision {
        if !self.can_fail_over(policy) {
            return self.move_to_dead_letters(cause, policy);
        }
        self.use_up(number);
        self.done()
    }

    pub(super) fn account_of(&self, number: u32) -> String {
        let attempt = self.next.attempt(number);
        attempt.map_or(&*self.next.terms.account, |attempt| self.next.account_of(attempt)).into()
    }

    /// Does not go back to the account of this attempt in this life. Retries begin again at the next account.
    pub(super) fn use_up(&mut self, number: u32) {
        let account = self.account_of(number);
        if !self.next.used_up.contains(&account) {
            self.next.used_up.push(account);
        }
        self.next.retries = [0; Signal::ALL.len()];
        self.next.phase = Phase::Queued { until: self.now, held: false };
    }

    /// Does not go back to the account of this attempt before `until`. Returns when another account may get the order.
    pub(super) fn hold_off(
        &mut self,
        number: u32,
        until: Timestamp,
        is_busy: bool,
        policy: &Policy,
    ) -> Timestamp {
        self.next.held_off = Some(HeldOff { account: self.account_of(number), until, is_busy });
        if is_busy { until.min(self.next.placed + policy.routing.busy_wait).max(self.now) } else { self.now }
    }

    /// The pause before the next try. Its jitter is a hash of the order and its attempt, so every node computes the
    /// same moment.
    pub(super) fn pause(&self, signal: Signal, policy: &Policy) -> Duration {
        let retry = self.next.retries[signal.index()];
        let backoff = self.next.terms.retry.prolong(policy.backoff);
        backoff.pause(retry.into(), self.next.key.grain() ^ u64::from(self.next.last_attempt))
    }
}
