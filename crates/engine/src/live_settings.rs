//! The settings and the providers of a running node. A reload replaces both as one, so each step sees one version.
//!
//! What a node has learned about a provider (its pauses, its pace, its solve times) belongs to the provider's name, and
//! outlives a reload. A provider that is not in the new settings gets no more orders. It stays reachable for the polls,
//! callbacks and reports of the tasks that it has.

use crate::gate::ProviderGate;
use crate::providers::ProviderAccount;
use crate::{BudgetRule, Engine, ProviderRules, Settings, lock};
use arc_swap::Guard;
use quittance_ports::Provider;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// How many removed providers stay reachable. Beyond that, the one that was removed first is forgotten.
const REMOVED_MAX: usize = 64;

/// The settings and the providers that belong together.
pub(crate) struct LiveSettings {
    settings: Settings,
    /// The budgets of the settings.
    budgets: Arc<[Arc<BudgetRule>]>,
    providers: Arc<[Arc<ProviderAccount>]>,
    /// The providers of earlier settings, the first removed first.
    removed: Arc<[Arc<ProviderAccount>]>,
}

/// The settings at one moment. A step that must see one version keeps it.
pub(crate) struct CurrentSettings(Guard<Arc<LiveSettings>>);

impl Deref for CurrentSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0.settings
    }
}

/// What a reload keeps: always [`REAL`](Self::REAL), except in the simulation, which plants wrong rules.
#[derive(Clone, Copy, Debug)]
pub struct ReloadRules {
    /// Whether a gate keeps what it has learned.
    pub keeps_gate: fn() -> bool,
    /// Whether a provider that is not in the new settings stays reachable for its tasks.
    pub keeps_removed: fn() -> bool,
    /// Whether a task of a provider that only other nodes have is left to them.
    pub leaves_to_others: fn() -> bool,
}

impl ReloadRules {
    pub const REAL: Self = Self { keeps_gate: || true, keeps_removed: || true, leaves_to_others: || true };
}

/// A provider of new settings.
#[derive(Clone)]
pub struct ReloadedProvider {
    pub rules: ProviderRules,
    /// How it is called from now on; `None` keeps the adapter of the provider of this name.
    pub adapter: Option<Arc<dyn Provider>>,
}

/// Why new settings cannot replace the present ones. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    #[error("there would be no provider")]
    NoProvider,
    #[error("two providers would have the name {0}")]
    TwoOfOneName(String),
    #[error("the provider {0} is new, and has no adapter")]
    NoAdapter(String),
    #[error("the node's currency would change from {from} to {to}: that needs a restart")]
    Currency { from: String, to: String },
}

impl fmt::Debug for ReloadedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadedProvider").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// The budgets of the settings, and that of hedged attempts.
fn budgets_of(settings: &Settings) -> Arc<[Arc<BudgetRule>]> {
    settings.budgets.iter().cloned().chain(settings.hedging_budget()).map(Arc::new).collect()
}

impl LiveSettings {
    pub(crate) fn new(settings: Settings, adapters: &[Arc<dyn Provider>]) -> Self {
        let rules = settings.providers.iter().cloned().chain(std::iter::repeat(ProviderRules::default()));
        let providers = adapters
            .iter()
            .zip(rules)
            .map(|(adapter, rules)| Arc::new(ProviderAccount::new(Arc::clone(adapter), rules, &settings)))
            .collect();
        Self { budgets: budgets_of(&settings), settings, providers, removed: Arc::default() }
    }

    fn known(&self) -> impl Iterator<Item = &Arc<ProviderAccount>> {
        self.providers.iter().chain(&*self.removed)
    }

    fn find(&self, name: &str) -> Option<&Arc<ProviderAccount>> {
        self.known().find(|provider| provider.rules.name == name)
    }

    /// These settings, with what this node has learned about the providers that it knows.
    fn next(&self, mut settings: Settings, providers: Vec<ReloadedProvider>) -> Result<Self, ReloadError> {
        let (Some(first), Some(was_first)) = (providers.first(), self.providers.first()) else {
            return Err(ReloadError::NoProvider);
        };
        let (from, to) = (&was_first.rules.currency, &first.rules.currency);
        if from != to {
            return Err(ReloadError::Currency { from: from.clone(), to: to.clone() });
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = providers.iter().find(|it| !names.insert(it.rules.name.clone())) {
            return Err(ReloadError::TwoOfOneName(twice.rules.name.clone()));
        }
        settings.keep_fixed(&self.settings);
        settings.providers = providers.iter().map(|it| it.rules.clone()).collect();
        let mut next = Vec::new();
        for ReloadedProvider { rules, adapter } in providers {
            let known = self.find(&rules.name);
            let adapter = adapter.or_else(|| known.map(|known| Arc::clone(&known.adapter)));
            let adapter = adapter.ok_or_else(|| ReloadError::NoAdapter(rules.name.clone()))?;
            next.push(Arc::new(match known {
                Some(known) => known.with_rules(adapter, rules),
                None => ProviderAccount::new(adapter, rules, &settings),
            }));
        }
        let keeps_removed = (settings.rules.reload.keeps_removed)();
        let removed: Vec<_> = self
            .removed
            .iter()
            .chain(&*self.providers)
            .filter(|it| !names.contains(&it.rules.name))
            .collect();
        let too_many = removed.len().saturating_sub(REMOVED_MAX);
        let removed = removed.into_iter().skip(too_many).filter(|_| keeps_removed).cloned().collect();
        Ok(Self { budgets: budgets_of(&settings), settings, providers: next.into(), removed })
    }
}

impl Settings {
    /// Takes over what a running node cannot change.
    fn keep_fixed(&mut self, present: &Self) {
        self.node = present.node;
        self.callback.clone_from(&present.callback);
        self.policy.callbacks = present.policy.callbacks;
        self.policy.callback_address = present.policy.callback_address;
        self.on_commit.clone_from(&present.on_commit);
        self.rules = present.rules;
        self.submits_max = present.submits_max;
        self.follow_ups_max = present.follow_ups_max;
        self.in_hand_max = present.in_hand_max;
        self.targets.undescribed.get_or_insert(self.tenants.is_empty());
    }
}

impl Engine {
    /// The settings of this moment.
    pub(crate) fn settings(&self) -> CurrentSettings {
        CurrentSettings(self.live.load())
    }

    /// The budgets, in the order of the settings.
    pub(crate) fn budgets(&self) -> Arc<[Arc<BudgetRule>]> {
        Arc::clone(&self.live.load().budgets)
    }

    /// The providers that may get orders, in the order of the settings.
    pub(crate) fn providers(&self) -> Arc<[Arc<ProviderAccount>]> {
        Arc::clone(&self.live.load().providers)
    }

    /// The providers that have or may have tasks of ours: also those that a reload has removed.
    pub(crate) fn providers_with_tasks(&self) -> Vec<Arc<ProviderAccount>> {
        self.live.load().known().cloned().collect()
    }

    /// The provider of this name, also if a reload has removed it.
    pub(crate) fn provider_named(&self, name: &str) -> Option<Arc<ProviderAccount>> {
        self.live.load().find(name).map(Arc::clone)
    }

    /// The settings, for a caller that changes some of them and then calls [`reload`](Self::reload).
    #[must_use]
    pub fn current_settings(&self) -> Settings {
        self.settings().clone()
    }

    /// Replaces the settings and the providers while the node works. No order is lost, and what the node knows about a
    /// provider that stays is kept. These stay as they are: the number of the node, the callback address, the secrets,
    /// and how much may be under way at once. If this fails, nothing has changed.
    pub fn reload(
        &self,
        settings: Settings,
        providers: impl IntoIterator<Item = ReloadedProvider>,
    ) -> Result<(), ReloadError> {
        {
            // Two reloads must not begin with the same settings: one of them would be undone.
            let mut run_queue = lock(&self.run_queue);
            let next = self.live.load().next(settings, providers.into_iter().collect())?;
            run_queue.follow(&next.settings, |name| next.find(name).is_some());
            for provider in &*next.providers {
                provider.follow(&next.settings);
            }
            self.live.store(Arc::new(next));
        }
        self.wakeup.ring();
        Ok(())
    }
}

impl ProviderAccount {
    /// The rules of the settings reach the gate.
    fn follow(&self, settings: &Settings) {
        let (rules, policy) = (settings.rules.gate, &settings.policy);
        let throttle = self.rules.throttle;
        let mut gate = lock(&self.gate);
        if (settings.rules.reload.keeps_gate)() {
            gate.follow(policy.backoff, policy.faults, throttle, settings.is_shared);
        } else {
            *gate = ProviderGate::new(rules, policy.backoff, policy.faults, throttle, settings.is_shared);
        }
    }
}
