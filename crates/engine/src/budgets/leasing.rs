//! How a node leases a part of each budget from the document that all nodes share, and gives back what it does not
//! need. A lease is written before it is used. So a submit never asks the store, and the sum over all nodes never
//! exceeds the limit.

use super::BudgetRule;
use super::local_budget::LeasePlan;
use crate::pools::WRITES_MAX;
use crate::{Engine, lock};
use quittance_lifecycle::{Order, Phase, Timestamp};
use quittance_ports::{
    BudgetDocument, DocumentWritten, Members, SharedDocument, StoreError, StoredDocument, Version,
};
use std::time::Duration;

/// How often an order that is about to draw looks whether another one of this node has leased enough for both.
const LEASE_LOOK: Duration = Duration::from_millis(10);
/// The most such looks.
const LEASE_LOOKS_MAX: usize = 100;
/// How long a node that found too little left does not look again.
const SHORT_LOOK: Duration = Duration::from_millis(500);
/// The document of a budget that is not set any more is removed after this time: no period is longer.
const KEPT_FOR: Duration = Duration::from_secs(32 * 24 * 3600);

/// What an order needs that is about to draw. Dropped when it has drawn.
pub(crate) struct Funding<'a> {
    engine: &'a Engine,
    needs: Vec<(String, i64)>,
}

impl Drop for Funding<'_> {
    fn drop(&mut self) {
        let mut budgets = lock(&self.engine.budgets);
        for (name, price) in &self.needs {
            if let Some(local) = budgets.locals.get_mut(name) {
                local.wanted = local.wanted.saturating_sub(*price);
            }
        }
    }
}

/// The one task of this node that leases from a budget.
struct Leasing<'a>(&'a Engine, String);

impl Drop for Leasing<'_> {
    fn drop(&mut self) {
        if let Some(local) = lock(&self.0.budgets).locals.get_mut(&self.1) {
            local.is_leasing = false;
        }
    }
}

fn stored_budget<'a>(documents: &'a [StoredDocument], name: &str) -> Option<(Version, &'a BudgetDocument)> {
    documents.iter().find_map(|stored| match &stored.document {
        SharedDocument::Budget(document) if document.budget == name => Some((stored.version, document)),
        _ => None,
    })
}

impl Engine {
    /// Leases what an order needs that may be submitted now. The order draws before it drops what this returns.
    pub(crate) async fn fund(&self, order: &Order) -> Funding<'_> {
        let mut funding = Funding { engine: self, needs: Vec::new() };
        let is_ready = matches!(order.phase, Phase::Queued { held: false, .. });
        if !is_ready || self.budgets().is_empty() || self.recovering().is_some() {
            return funding;
        }
        let needs = self.needs_of(order);
        let now = self.now();
        {
            let mut budgets = lock(&self.budgets);
            for (rule, most, _) in &needs {
                let local = self.local(&mut budgets, rule, now).0;
                local.wanted = local.wanted.saturating_add(*most);
                funding.needs.push((rule.document_name(), *most));
            }
        }
        for (rule, _, least) in needs {
            if let Err(error) = self.lease(&rule, least).await {
                self.note_error(&error);
            }
        }
        funding
    }

    /// Leases from one budget what the orders need that are about to draw. Only one task of this node does so at a
    /// time, for all of them.
    async fn lease(&self, rule: &BudgetRule, price: i64) -> Result<(), StoreError> {
        for _ in 0..LEASE_LOOKS_MAX {
            let now = self.now();
            let leasing = {
                let mut budgets = lock(&self.budgets);
                let local = self.local(&mut budgets, rule, now).0;
                let was_short = local.short_since.is_some() && now.since(local.read_at) < SHORT_LOOK;
                if local.free >= local.wanted || was_short {
                    return Ok(());
                }
                (!local.is_leasing).then(|| {
                    local.is_leasing = true;
                    Leasing(self, rule.document_name())
                })
            };
            if let Some(_leasing) = leasing {
                return self.lease_now(rule, price).await;
            }
            self.world.clock.sleep_until(now + LEASE_LOOK).await;
        }
        Ok(())
    }

    async fn lease_now(&self, rule: &BudgetRule, price: i64) -> Result<(), StoreError> {
        let name = rule.document_name();
        for _ in 0..WRITES_MAX {
            let documents = self.world.membership.documents().await?;
            let stored = stored_budget(&documents, &name);
            let plan = {
                let mut budgets = lock(&self.budgets);
                let (local, budget) = self.local(&mut budgets, rule, self.now());
                local.plan_lease(stored.map(|(_, document)| document), price, &budget)
            };
            let LeasePlan::Write(next, leased) = plan else { return Ok(()) };
            let version = stored.map_or(Version::ABSENT, |(version, _)| version);
            if self.write_budget(rule, version, next, leased).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the document of a budget. Returns whether this was done: another node may have been faster.
    async fn write_budget(
        &self,
        rule: &BudgetRule,
        version: Version,
        next: BudgetDocument,
        leased: i64,
    ) -> Result<bool, StoreError> {
        let name = SharedDocument::budget_name(&next.budget);
        let whole = SharedDocument::Budget(next.clone());
        match self.world.membership.write_document(&name, version, Some(&whole)).await? {
            DocumentWritten::Done(_) => {
                let mut budgets = lock(&self.budgets);
                let now = self.now();
                self.local(&mut budgets, rule, now).0.note_written(next, leased, now);
                Ok(true)
            }
            DocumentWritten::Conflict => Ok(false),
            DocumentWritten::NoRoom => Err(StoreError::Unavailable {
                doing: "counting what was spent of a budget",
                source: "there are too many shared documents".into(),
            }),
        }
    }

    /// Writes what this node has settled, and gives back what it does not need.
    pub(crate) async fn share_budgets(&self, documents: &[StoredDocument], gives_all_back: bool) {
        for rule in &*self.budgets() {
            let stored = stored_budget(documents, &rule.document_name());
            let next = {
                let mut budgets = lock(&self.budgets);
                let (local, budget) = self.local(&mut budgets, rule, self.now());
                local.plan_share(stored.map(|(_, document)| document), &budget, gives_all_back)
            };
            let Some(next) = next else { continue };
            let version = stored.map_or(Version::ABSENT, |(version, _)| version);
            // If another node was faster, the next round writes it.
            if let Err(error) = self.write_budget(rule, version, next, 0).await {
                self.note_error(&error);
            }
        }
        let is_set = |name: &String| self.budgets().iter().any(|rule| rule.document_name() == *name);
        lock(&self.budgets).locals.retain(|name, local| is_set(name) || local.wanted > 0 || local.is_leasing);
        self.remove_old_budgets(documents).await;
    }

    /// Gives back all that this node has leased and not used, because it stops.
    pub(crate) async fn give_back_budgets(&self) {
        for _ in 0..WRITES_MAX {
            if !lock(&self.budgets).locals.values().any(|local| local.free > 0) {
                return;
            }
            match self.world.membership.documents().await {
                Ok(documents) => self.share_budgets(&documents, true).await,
                Err(error) => return self.note_error(&error),
            }
        }
    }

    /// Removes the documents of budgets that are not set any more.
    async fn remove_old_budgets(&self, documents: &[StoredDocument]) {
        let now = self.now();
        for stored in documents {
            let SharedDocument::Budget(document) = &stored.document else { continue };
            let is_set = self.budgets().iter().any(|rule| rule.document_name() == document.budget);
            if is_set || now.since(document.begins) < KEPT_FOR {
                continue;
            }
            // If another node was faster, it is gone.
            if let Err(error) = self.world.membership.write_document(&stored.name, stored.version, None).await
            {
                self.note_error(&error);
            }
        }
    }

    /// Notes which nodes are there.
    pub(crate) fn note_alive(&self, members: &Members, is_there: impl Fn(Timestamp) -> bool) {
        let nodes = members.nodes.iter().filter(|member| is_there(member.seen));
        lock(&self.budgets).alive = nodes.map(|member| member.node_status.node).collect();
    }
}
