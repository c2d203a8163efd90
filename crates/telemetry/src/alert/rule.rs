//! The rules by name, and their thresholds. A threshold of zero, or false, switches its rule off.

use quittance_lifecycle::Money;
use std::time::Duration;

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $name:literal),* $(,)?) => {
        /// A condition for which an alert is raised.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $($(#[$doc])* $rule),* }

        impl Rule {
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Stable name, because operators use it in other systems.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$rule => $name),* }
            }
        }
    };
}

rules! {
    DeadLettersGrow "dead_letters_grow",
    DeadLettersOld "dead_letters_old",
    ProviderPaused "provider_paused",
    ProviderBroken "provider_broken",
    BalanceLow "balance_low",
    BalanceEnds "balance_ends",
    BudgetEnds "budget_ends",
    BudgetLow "budget_low",
    BudgetSpent "budget_spent",
    InDoubtRate "in_doubt_rate",
    CallersNotReached "callers_not_reached",
    EndpointOff "endpoint_off",
    CallbacksMissing "callbacks_missing",
    PoolStarves "pool_starves",
    StoreAway "store_away",
    StoreForgot "store_forgot",
    RecordsUnreadable "records_unreadable",
    SpillNotEmpty "spill_not_empty",
    NodeSilent "node_silent",
}

impl Rule {
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }

    /// Whether orders are lost, late or refused while the alert is active.
    #[must_use]
    pub const fn is_grave(self) -> bool {
        matches!(
            self,
            Self::ProviderPaused
                | Self::ProviderBroken
                | Self::BalanceLow
                | Self::BudgetSpent
                | Self::StoreAway
                | Self::StoreForgot
                | Self::RecordsUnreadable
        )
    }
}

/// The threshold of each rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// New dead letters in an hour.
    pub dead_new: u64,
    /// How long a dead letter can wait for an operator.
    pub dead_age: Duration,
    pub provider_paused: bool,
    pub provider_broken_for: Duration,
    pub balance_low: Money,
    /// How long the balance must last at the pace of the last hour.
    pub balance_lasts: Duration,
    /// The used part of a pool's hourly budget, in thousandths.
    pub budget_used_permille: u32,
    /// The part of a budget that must be left, in thousandths.
    pub budget_low_permille: u32,
    /// Whether a budget that allows no purchase raises an alert.
    pub budget_spent: bool,
    /// The part of the attempts of ten minutes that can end in doubt, in thousandths, if there are at least
    /// `in_doubt_attempts`.
    pub in_doubt_permille: u32,
    pub in_doubt_attempts: u64,
    /// Webhooks that callers did not accept, in an hour.
    pub webhooks_failed: u64,
    /// Whether an endpoint of webhooks that is switched off raises an alert.
    pub endpoint_off: bool,
    /// The part of the answers of ten minutes that had to be polled although a callback was due, in thousandths, if
    /// there are at least `polled_answers`.
    pub polled_permille: u32,
    pub polled_answers: u64,
    pub pool_starves_for: Duration,
    pub store_away_for: Duration,
    pub records_unreadable: bool,
    pub spill_for: Duration,
    pub node_silent_for: Duration,
    /// How long the value must be below the lower threshold before an alert is cleared.
    pub clear_after: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            dead_new: 10,
            dead_age: Duration::from_secs(24 * 3600),
            provider_paused: true,
            provider_broken_for: Duration::from_secs(60),
            balance_low: Money(1_000_000),
            balance_lasts: Duration::from_secs(24 * 3600),
            budget_used_permille: 900,
            budget_low_permille: 100,
            budget_spent: true,
            in_doubt_permille: 50,
            in_doubt_attempts: 20,
            webhooks_failed: 10,
            endpoint_off: true,
            polled_permille: 500,
            polled_answers: 20,
            pool_starves_for: Duration::from_secs(60),
            store_away_for: Duration::from_secs(10),
            records_unreadable: true,
            spill_for: Duration::from_secs(60),
            node_silent_for: Duration::from_secs(15),
            clear_after: Duration::from_secs(60),
        }
    }
}

/// How long a rate must be above its threshold before its alert is raised: a single sample may be unlucky.
const SETTLE: Duration = Duration::from_secs(10);

impl Thresholds {
    /// How long a rule must hold before its alert is raised.
    #[must_use]
    pub const fn raised_after(&self, rule: Rule) -> Duration {
        match rule {
            // Each of these is already settled elsewhere and does not flap.
            Rule::ProviderPaused
            | Rule::DeadLettersOld
            | Rule::StoreForgot
            | Rule::RecordsUnreadable
            | Rule::EndpointOff => Duration::ZERO,
            Rule::ProviderBroken => self.provider_broken_for,
            Rule::PoolStarves => self.pool_starves_for,
            Rule::StoreAway => self.store_away_for,
            Rule::SpillNotEmpty => self.spill_for,
            Rule::NodeSilent => self.node_silent_for,
            Rule::DeadLettersGrow
            | Rule::BalanceLow
            | Rule::BalanceEnds
            | Rule::BudgetEnds
            | Rule::BudgetLow
            | Rule::BudgetSpent
            | Rule::InDoubtRate
            | Rule::CallersNotReached
            | Rule::CallbacksMissing => SETTLE,
        }
    }

    /// How long the value must be below the lower threshold before the alert is cleared.
    #[must_use]
    pub const fn cleared_after(&self, rule: Rule) -> Duration {
        match rule {
            // A person has acknowledged it.
            Rule::StoreForgot => Duration::ZERO,
            _ => self.clear_after,
        }
    }

    #[must_use]
    pub const fn is_on(&self, rule: Rule) -> bool {
        match rule {
            Rule::DeadLettersGrow => self.dead_new > 0,
            Rule::DeadLettersOld => !self.dead_age.is_zero(),
            Rule::ProviderPaused => self.provider_paused,
            Rule::ProviderBroken => !self.provider_broken_for.is_zero(),
            Rule::BalanceLow => self.balance_low.0 > 0,
            Rule::BalanceEnds => !self.balance_lasts.is_zero(),
            Rule::BudgetEnds => self.budget_used_permille > 0,
            Rule::BudgetLow => self.budget_low_permille > 0,
            Rule::BudgetSpent => self.budget_spent,
            Rule::InDoubtRate => self.in_doubt_permille > 0,
            Rule::CallersNotReached => self.webhooks_failed > 0,
            Rule::EndpointOff => self.endpoint_off,
            Rule::CallbacksMissing => self.polled_permille > 0,
            Rule::PoolStarves => !self.pool_starves_for.is_zero(),
            Rule::StoreAway => !self.store_away_for.is_zero(),
            // This rule cannot be switched off.
            Rule::StoreForgot => true,
            Rule::RecordsUnreadable => self.records_unreadable,
            Rule::SpillNotEmpty => !self.spill_for.is_zero(),
            Rule::NodeSilent => !self.node_silent_for.is_zero(),
        }
    }
}
