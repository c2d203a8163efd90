//! What all nodes know about the gate before each provider account: whether the account is paused, what an operator
//! wants, and until when the provider wants no calls. It stands in one shared document for each provider. Every node
//! reads these documents twice a second and writes what it has learned itself. So a blocked key that one node meets
//! stops all nodes within a second, and no node asks before a submit.

use crate::gate::AccountFault;
use crate::pools::WRITES_MAX;
use crate::providers::ProviderAccount;
use crate::{Engine, lock};
use futures_util::future::{Either, select};
use quittance_lifecycle::{Fault, FaultClass, Timestamp};
use quittance_ports::{
    Account, AccountPause, DocumentWritten, GateDocument, GateProbe, Members, ProviderMode, SharedDocument,
    StoreError, StoredDocument, Version,
};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a node reads the documents of a store that other nodes write to.
const SHARED_SPAN: Duration = Duration::from_millis(500);
/// How often a node reads the documents of a store that only commands write to.
const OWN_SPAN: Duration = Duration::from_secs(5);
/// How often the account of a provider without money is read. Some providers allow two requests a minute.
const FUNDS_SPAN: Duration = Duration::from_secs(30);
/// The most characters of a provider's code in the document.
const CODE_CHARS_MAX: usize = 64;
/// The name of the work of reading accounts without money, for the choice of the node that does it.
const FUNDS_WORK: &str = "funds";

/// What a node knows of the document about one gate.
#[derive(Default)]
pub(crate) struct KnownGate {
    /// The last resume that this node has carried out; `None` before it has read the document.
    resumed_at: Option<Timestamp>,
    /// When this node last read the balance of the account without money.
    funds_read_at: Timestamp,
}

/// A provider, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderView {
    pub name: String,
    /// The currency of the account.
    pub currency: String,
    pub state: crate::ProviderState,
    pub mode: ProviderMode,
    /// Why nothing is submitted until the account is fixed.
    pub pause: Option<AccountPause>,
}

impl Engine {
    /// When the documents must be read again.
    pub(crate) fn shared_gates_span(&self) -> Duration {
        if self.is_store_shared() { SHARED_SPAN } else { OWN_SPAN }
    }

    fn is_store_shared(&self) -> bool {
        self.settings().in_hand_max > 0
    }

    /// Notes whether this node is the one that looks whether there is money again.
    pub(crate) fn note_funds_keeper(&self, members: &Members) {
        self.reads_funds.store(self.is_keeper(FUNDS_WORK, members), Ordering::Relaxed);
    }

    /// Reads the documents, writes what this node has learned, and does what other nodes have learned.
    pub(crate) async fn share_gates(&self) {
        if let Err(error) = self.try_to_share_gates().await {
            self.note_error(&error);
        }
    }

    async fn try_to_share_gates(&self) -> Result<(), StoreError> {
        let documents = self.world.membership.documents().await?;
        self.share_budgets(&documents, false).await;
        for provider in &*self.providers() {
            let stored = stored_gate(&documents, provider);
            let mut document = self.share_gate(provider, stored).await?;
            if let Some(funds) = self.funds_to_compare(provider, &document).await {
                document = self.note_funds(provider, funds).await?;
            }
            self.follow(provider, &document).await?;
        }
        Ok(())
    }

    /// Adds to the document what this node has learned.
    async fn share_gate(
        &self,
        provider: &ProviderAccount,
        stored: Option<(Version, GateDocument)>,
    ) -> Result<GateDocument, StoreError> {
        let (version, document) = stored.unwrap_or_else(|| (Version::ABSENT, new_document(provider)));
        let next = self.with_news(provider, &document);
        if next == document {
            return Ok(document);
        }
        let name = SharedDocument::gate_name(&provider.rules.name);
        let whole = SharedDocument::Gate(next.clone());
        Ok(match self.world.membership.write_document(&name, version, Some(&whole)).await? {
            DocumentWritten::Done(_) => next,
            // The next round, half a second from now, adds it to what the other node has written.
            DocumentWritten::Conflict | DocumentWritten::NoRoom => document,
        })
    }

    /// The document with what this node has learned.
    fn with_news(&self, provider: &ProviderAccount, document: &GateDocument) -> GateDocument {
        let (fault, (no_submits_until, no_polls_until), outage) = {
            let gate = lock(&provider.gate);
            (gate.account_fault(), gate.penalties(), gate.outage())
        };
        let mut next = document.clone();
        if let Some(AccountFault { fault, at }) = fault
            && at > document.resumed_at
        {
            let code = fault.code.chars().take(CODE_CHARS_MAX).collect();
            let is_no_funds = fault.class == FaultClass::NoFunds;
            next.pause.get_or_insert(AccountPause { code, at, is_no_funds, funds: None });
        }
        let node = self.node;
        match (outage, next.probe) {
            // The node that writes this first tries the provider. If no order of that node does, the time runs out, and
            // another node takes over.
            (Some(outage), probe)
                if probe.is_none_or(|probe| probe.node == node || probe.until <= self.now()) =>
            {
                next.probe = Some(GateProbe { node, until: outage.tried_by });
            }
            (None, Some(probe)) if probe.node == node => {
                next.probe = None;
                next.answered_at = self.now();
            }
            _ => {}
        }
        // Only what lies ahead is news, so that a quiet gate is not written again and again.
        let now = self.now();
        if no_submits_until > now {
            next.no_submits_until = next.no_submits_until.max(no_submits_until);
        }
        if no_polls_until > now {
            next.no_polls_until = next.no_polls_until.max(no_polls_until);
        }
        next
    }

    /// Does what the document says. Returns how many orders continue because of it.
    async fn follow(&self, provider: &ProviderAccount, document: &GateDocument) -> Result<usize, StoreError> {
        let known = lock(&provider.shared).resumed_at.replace(document.resumed_at);
        let is_resumed = known.is_some_and(|known| document.resumed_at > known);
        if is_resumed {
            provider.release();
        }
        {
            let mut gate = lock(&provider.gate);
            gate.set_mode(document.mode);
            gate.obey_until(document.no_submits_until, document.no_polls_until);
            if let Some(outage) = gate.outage() {
                let by_another = document.probe.filter(|probe| probe.node != self.node);
                if document.answered_at > outage.since {
                    gate.answers_again();
                    self.wakeup.ring();
                } else if let Some(probe) = by_another.filter(|probe| probe.until > self.now()) {
                    gate.leave_probe_to_another(probe.until);
                }
            }
            if let Some(AccountPause { code, at, is_no_funds, .. }) = &document.pause {
                let class = if *is_no_funds { FaultClass::NoFunds } else { FaultClass::AccountBlocked };
                gate.pause(AccountFault { fault: Fault::new(class, code.clone()), at: *at });
            }
        }
        if is_resumed {
            // Submits that are under way were sent before, and know nothing of it: they are let go when they come
            // back.
            self.let_go_at.store(self.now().as_millis(), Ordering::Relaxed);
            return self.release_orders().await;
        }
        Ok(0)
    }

    /// The money of an account that had none, if it is time to look, and this is the node that looks.
    async fn funds_to_compare(&self, provider: &ProviderAccount, document: &GateDocument) -> Option<u64> {
        let pause = document.pause.as_ref().filter(|pause| pause.is_no_funds)?;
        let now = self.now();
        {
            let mut shared = lock(&provider.shared);
            let is_reader = !self.is_store_shared() || self.reads_funds.load(Ordering::Relaxed);
            let is_due = pause.funds.is_none() || shared.funds_read_at > now;
            if !is_reader || !(is_due || now >= shared.funds_read_at + FUNDS_SPAN) {
                return None;
            }
            shared.funds_read_at = now;
        }
        let until = now + self.settings().poll_wait;
        match select(provider.adapter.account(), pin!(self.world.clock.sleep_until(until))).await {
            Either::Left((account, _)) => account.and_then(|account| funds(&account)),
            Either::Right(_) => None,
        }
    }

    /// Notes the money of an account without funds. If there is more than at first, the account is resumed.
    async fn note_funds(&self, provider: &ProviderAccount, funds: u64) -> Result<GateDocument, StoreError> {
        let now = self.now();
        self.change_gate(provider, |document| {
            let Some(pause) = &mut document.pause else { return };
            match pause.funds {
                None => pause.funds = Some(funds),
                Some(first) if funds > first => resume(document, now),
                // Money that was booked late by the provider is no top-up: the lowest balance counts.
                Some(first) => pause.funds = Some(first.min(funds)),
            }
        })
        .await
    }

    /// Changes the document of this provider, also if other nodes write it at the same time.
    async fn change_gate(
        &self,
        provider: &ProviderAccount,
        change: impl Fn(&mut GateDocument),
    ) -> Result<GateDocument, StoreError> {
        let name = SharedDocument::gate_name(&provider.rules.name);
        for _ in 0..WRITES_MAX {
            let documents = self.world.membership.documents().await?;
            let stored = stored_gate(&documents, provider);
            let (version, mut next) = stored.unwrap_or_else(|| (Version::ABSENT, new_document(provider)));
            let before = next.clone();
            change(&mut next);
            if next == before {
                return Ok(next);
            }
            let whole = SharedDocument::Gate(next.clone());
            if let DocumentWritten::Done(_) =
                self.world.membership.write_document(&name, version, Some(&whole)).await?
            {
                return Ok(next);
            }
        }
        Err(StoreError::Unavailable {
            doing: "writing what all nodes know about a provider",
            source: "other nodes write it at the same time, or there are too many shared documents".into(),
        })
    }

    /// Pauses or drains the provider of this name for all nodes, or resumes it. Returns how many orders
    /// continue because of it; `None` if this node has no such provider.
    pub async fn set_provider_mode(
        &self,
        name: &str,
        mode: ProviderMode,
    ) -> Result<Option<(ProviderView, usize)>, StoreError> {
        let Some(provider) = self.provider_at(name) else { return Ok(None) };
        // What this node has learned and not written yet is over, too.
        let now = self.now();
        let document = self
            .change_gate(&provider, |document| match mode {
                ProviderMode::Active => {
                    resume(document, now.max(document.resumed_at + Duration::from_millis(1)));
                }
                mode => document.mode = mode,
            })
            .await?;
        lock(&provider.shared).resumed_at.get_or_insert(Timestamp::ZERO);
        let continued = self.follow(&provider, &document).await?;
        Ok(Some((self.view(&provider, &document), continued)))
    }

    /// Ends the pauses of accounts from before the start of the only node: if an account is still blocked, the next
    /// submit says so again. What an operator has paused stays paused. Must be called before the engine works.
    pub async fn begin_alone(&self) -> Result<(), StoreError> {
        for provider in &*self.providers() {
            let now = self.now();
            let end = |document: &mut GateDocument| {
                if document.pause.take().is_some() {
                    document.resumed_at = now;
                }
            };
            self.change_gate(provider, end).await?;
        }
        Ok(())
    }

    /// Resumes all providers, for all nodes, because an operator has fixed their accounts. Returns how many orders
    /// continue.
    pub async fn resume_all(&self) -> Result<usize, StoreError> {
        let mut continued = 0;
        for name in self.provider_names() {
            let resumed = self.set_provider_mode(&name, ProviderMode::Active).await?;
            continued += resumed.map_or(0, |(_, orders)| orders);
        }
        Ok(continued)
    }

    /// All providers, as the documents and this node's gates show them.
    pub async fn provider_views(&self) -> Result<Vec<ProviderView>, StoreError> {
        Ok(self.provider_views_among(&self.world.membership.documents().await?))
    }

    /// All providers, as these documents and this node's gates show them.
    #[must_use]
    pub fn provider_views_among(&self, documents: &[StoredDocument]) -> Vec<ProviderView> {
        let view = |provider: &Arc<ProviderAccount>| {
            let stored = stored_gate(documents, provider);
            self.view(provider, &stored.map_or_else(|| new_document(provider), |(_, document)| document))
        };
        self.providers().iter().map(view).collect()
    }

    fn view(&self, provider: &ProviderAccount, document: &GateDocument) -> ProviderView {
        ProviderView {
            name: provider.rules.name.clone(),
            currency: provider.rules.currency.clone(),
            state: lock(&provider.gate).state(self.now()),
            mode: document.mode,
            pause: document.pause.clone(),
        }
    }
}

fn new_document(provider: &ProviderAccount) -> GateDocument {
    GateDocument { provider: provider.rules.name.clone(), ..GateDocument::default() }
}

fn stored_gate(documents: &[StoredDocument], provider: &ProviderAccount) -> Option<(Version, GateDocument)> {
    documents.iter().find_map(|stored| match &stored.document {
        SharedDocument::Gate(document) if document.provider == provider.rules.name => {
            Some((stored.version, document.clone()))
        }
        _ => None,
    })
}

/// Ends every pause.
fn resume(document: &mut GateDocument, now: Timestamp) {
    let provider = std::mem::take(&mut document.provider);
    *document = GateDocument { provider, resumed_at: now, ..GateDocument::default() };
}

/// The money or the threads of an account, as one number that only a top-up raises.
fn funds(account: &Account) -> Option<u64> {
    account.balance.map(|balance| balance.0).or(account.threads.map(|threads| threads.total))
}
