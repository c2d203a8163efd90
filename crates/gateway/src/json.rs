//! The JSON door: `createTask`, `getTaskResult` and what belongs to them, in the manners of four providers. It translates;
//! what a caller may do and see is decided at the desk.
//!
//! Every answer of the protocol, an error as well, goes out with status 200. One provider sends its errors with 400 and
//! 401; its clients read the same JSON at any status, while many a client of the others reads none beside a 200.

mod manners;
mod said;
#[cfg(test)]
mod tests;
mod wrong;

pub(crate) use wrong::spelled;

use crate::desk::{Accepted, Desk, NotSeen, Reported, Seen, Wish};
use crate::door::{self, Asked, Body};
use crate::id::OrderId;
use crate::tenant::Caller;
use hyper::{Method, Response, StatusCode};
use quittance_engine::Outcome;
use quittance_json::{Finished, Flavour, TaskId};
use quittance_lifecycle::{Answer, Order, Origin};
use said::Said;
use std::time::Duration;
use wrong::Wrong;

/// How long a client is kept waiting for a store that is slow.
#[derive(Clone, Copy, Debug)]
struct Patience {
    place: Duration,
    look: Duration,
}

impl Patience {
    /// Some clients hang up after five seconds, and take their task for lost.
    const DEFAULT: Self = Self { place: Duration::from_secs(4), look: Duration::from_secs(3) };
}

/// Whoever placed it is not on record; a field that clients want is there all the same.
const NO_ADDRESS: &str = "0.0.0.0";

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Create,
    Result,
    Balance,
    Report {
        is_good: bool,
    },
    /// The body says whether it was good.
    Feedback,
    /// Says what was said.
    Test,
}

impl Verb {
    fn of(path: &str) -> Option<Self> {
        let name = path.strip_prefix('/')?;
        match name.strip_suffix('/').unwrap_or(name) {
            "createTask" => Some(Self::Create),
            "getTaskResult" => Some(Self::Result),
            "getBalance" => Some(Self::Balance),
            "feedbackTask" => Some(Self::Feedback),
            "test" => Some(Self::Test),
            name => quittance_json::reply::report_named(name).map(|is_good| Self::Report { is_good }),
        }
    }
}

/// Clones share the desk.
#[derive(Clone, Debug)]
pub(crate) struct JsonDoor {
    desk: Desk,
    /// The manners of whoever has chosen none, if the operator has.
    flavour: Option<Flavour>,
    patience: Patience,
}

impl JsonDoor {
    pub(crate) fn new(desk: Desk, flavour: Option<String>) -> Self {
        let flavour = flavour.and_then(|name| Flavour::parse(&name));
        Self { desk, flavour, patience: Patience::DEFAULT }
    }

    /// Whether a path, without the flavour before it, leads here.
    pub(crate) fn is_for(path: &str) -> bool {
        Verb::of(path).is_some()
    }

    pub(crate) async fn answer(&self, asked: Asked) -> Response<Body> {
        let (said, broken) = match Said::read(&asked.body) {
            Ok(said) => (said, None),
            Err(wrong) => (Said::default(), Some(wrong)),
        };
        let caller = said.key().and_then(|key| self.caller(key));
        let flavour = self.manners(&asked, &said, caller.as_ref());
        let body = match (Verb::of(&asked.path), broken, caller) {
            (None, ..) => Err(Wrong::NoSuchMethod),
            (Some(_), ..) if asked.head.method != Method::POST => Err(Wrong::NotPost),
            (Some(_), Some(broken), _) => Err(broken),
            (Some(Verb::Test), None, _) => Ok(said.echo()),
            (Some(_), None, None) => Err(Wrong::Key),
            (Some(verb), None, Some(caller)) => self.serve(verb, flavour, caller, said, asked.trace()).await,
        };
        let body = body.unwrap_or_else(|wrong| wrong.told(flavour));
        door::answer(StatusCode::OK, "application/json", body)
    }

    async fn serve(
        &self,
        verb: Verb,
        flavour: Flavour,
        caller: Caller,
        said: Said,
        trace: String,
    ) -> Result<String, Wrong> {
        match verb {
            Verb::Create => self.create(flavour, caller, Wish { trace, ..said.wish(flavour)? }).await,
            Verb::Result => self.result(flavour, &caller, &said).await,
            Verb::Balance => Ok(self.balance(flavour).await),
            Verb::Report { is_good } => self.report(flavour, caller, said.task_id()?, is_good).await,
            Verb::Feedback => self.report(flavour, caller, said.task_id()?, said.is_good()?).await,
            Verb::Test => Ok(said.echo()),
        }
    }

    /// Where nobody needs a key of ours, any will do: clients cannot do without one.
    fn caller(&self, key: &str) -> Option<Caller> {
        let tenants = self.desk.tenants();
        match tenants.local() {
            Some(local) => said::local_caller(local, key),
            None => tenants.caller(key).ok(),
        }
    }

    fn manners(&self, asked: &Asked, said: &Said, caller: Option<&Caller>) -> Flavour {
        let of_path = asked.flavour.and_then(Flavour::parse);
        let of_tenant =
            || caller.and_then(|caller| Flavour::parse(caller.tenant.settings.flavour.as_deref()?));
        of_path
            .or_else(of_tenant)
            .or(self.flavour)
            .unwrap_or_else(|| manners::guess(&asked.head.headers, said))
    }

    // ---- placing -------------------------------------------------------------------------------------------

    async fn create(&self, flavour: Flavour, caller: Caller, wish: Wish) -> Result<String, Wrong> {
        let accepted = self.place(caller, wish).await?;
        let id = accepted.id;
        // What is there already is not worth another question, where the protocol has a word for it.
        if flavour.facts().status_in_create && accepted.placed.origin != Origin::Api {
            let there = self.desk.wait_for_accepted(&accepted, Duration::ZERO);
            if let Ok(Ok(Seen { order, outcome: Outcome::Answered(answer) })) =
                tokio::time::timeout(self.patience.look, there).await
            {
                return Ok(finished(flavour, id, &order, &answer));
            }
        }
        Ok(quittance_json::created(flavour, TaskId(id.number())))
    }

    /// A caller who hangs up, or whose time is up, does not stop what he began half-way.
    async fn place(&self, caller: Caller, wish: Wish) -> Result<Accepted, Wrong> {
        let desk = self.desk.clone();
        match door::carry_out(async move { desk.place(&caller, wish).await }, self.patience.place).await {
            Some(placed) => Ok(placed?),
            None => Err(Wrong::Away),
        }
    }

    // ---- reading -------------------------------------------------------------------------------------------

    async fn result(&self, flavour: Flavour, caller: &Caller, said: &Said) -> Result<String, Wrong> {
        let id = said.task_id()?;
        let processing = || Ok(quittance_json::processing(flavour, TaskId(id.number())));
        let seen = match tokio::time::timeout(self.patience.look, self.desk.look(caller, id)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(NotSeen::Unknown)) => return Err(Wrong::TaskUnknown),
            // His task may be paid for: to tell him of our troubles would make him give it up.
            Ok(Err(NotSeen::StoreAway(_))) | Err(_) => return processing(),
        };
        match seen.outcome {
            Outcome::NotYet => processing(),
            Outcome::Answered(answer) => Ok(finished(flavour, id, &seen.order, &answer)),
            Outcome::Forgotten => Err(Wrong::TaskUnknown),
            outcome => Err(Wrong::Outcome(outcome)),
        }
    }

    // ---- the rest ------------------------------------------------------------------------------------------

    async fn balance(&self, flavour: Flavour) -> String {
        let told = self.desk.account().await.and_then(|account| account.balance);
        quittance_json::balance(flavour, told.unwrap_or_default().0)
    }

    async fn report(
        &self,
        flavour: Flavour,
        caller: Caller,
        id: OrderId,
        is_good: bool,
    ) -> Result<String, Wrong> {
        let desk = self.desk.clone();
        let reporting = tokio::spawn(async move { desk.report(&caller, id, is_good).await });
        match tokio::time::timeout(self.patience.place, reporting).await {
            Ok(Ok(Ok(Reported::Recorded))) => Ok(quittance_json::reported(flavour)),
            Ok(Ok(Ok(Reported::Contradicted))) => Err(Wrong::Contradicted),
            Ok(Ok(Ok(Reported::NothingToReport))) => Err(Wrong::NothingToReport),
            Ok(Ok(Err(NotSeen::Unknown))) => Err(Wrong::TaskUnknown),
            Ok(Ok(Err(NotSeen::StoreAway(_))) | Err(_)) | Err(_) => Err(Wrong::NotReported),
        }
    }
}

fn finished(flavour: Flavour, id: OrderId, order: &Order, answer: &Answer) -> String {
    let solution = quittance_json::solution(flavour, &order.terms.kind, &answer.goods);
    let finished = Finished {
        id: TaskId(id.number()),
        solution: &solution,
        cost_micros: answer.cost.0,
        created_ms: order.placed.as_millis(),
        // The moment at which the provider had it is not known better than this, and it never moves.
        ended_ms: answer.earliest.max(order.placed).as_millis(),
        ip: NO_ADDRESS,
    };
    quittance_json::ready(flavour, &finished)
}
