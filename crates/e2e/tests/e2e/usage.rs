//! The one check that every storm ends with: what `quittance usage` adds up is what the provider's ledger says was
//! taken and charged. Where a reply was lost for good, the difference is exactly what `quittance audit` lists as
//! in doubt, or as an answer that never came; where nothing was lost there is none.

use crate::provider::{Sim, SimLedger};
use crate::sandbox::Sandbox;
use crate::wait::{LONG, now, pass};
use serde_json::Value;
use std::fs;
use std::time::Duration;

const DAYS: &str = "2d";
/// What is on its way when the storm is over comes within seconds.
const PAUSE: Duration = Duration::from_millis(250);

/// Both sides, and the difference between them.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) paid: u64,
    pub(crate) cost_micros: u64,
    /// Taken, and we never heard of it.
    pub(crate) in_doubt: u64,
    pub(crate) in_doubt_micros: u64,
    /// Taken and charged, and no answer ever came.
    pub(crate) unanswered_micros: u64,
    given_back_micros: u64,
    taken: u64,
    charged_micros: u64,
    audit: Value,
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("there is no `{name}`: {of}"))
}

impl Agreement {
    fn of(sandbox: &Sandbox, ledger: &SimLedger) -> Self {
        let report = sandbox.run(&["usage", DAYS, "--json"]);
        report.must_succeed();
        let all = &report.json()["all"];
        let path = sandbox.path("ledger.json");
        fs::write(&path, ledger.0.to_string()).expect("the sandbox can be written");
        let audit = sandbox.run(&["audit", DAYS, "--json", "--ledger", &path.display().to_string()]);
        let last = audit.out.lines().last().unwrap_or_else(|| panic!("{audit:?}"));
        let summary = serde_json::from_str::<Value>(last).unwrap_or_else(|why| panic!("{why}: {last}"));
        let audit = summary["summary"].clone();
        let entry = &audit["ledger"];
        Self {
            paid: number(all, "paid"),
            cost_micros: number(all, "cost_micros"),
            in_doubt: number(entry, "explained_by_doubt"),
            in_doubt_micros: number(entry, "explained_by_doubt_micros"),
            unanswered_micros: number(entry, "unanswered_micros"),
            given_back_micros: number(entry, "given_back_micros"),
            taken: ledger.accepted(),
            charged_micros: ledger.total("paid_micros") - ledger.total("refunded_micros"),
            audit,
        }
    }

    /// Of count and of money, and no attempt without its reason.
    fn holds(&self) -> bool {
        self.paid + self.in_doubt == self.taken
            && self.cost_micros + self.in_doubt_micros + self.unanswered_micros
                == self.charged_micros + self.given_back_micros
            && self.audit["is_explained"] == true
            && self.audit["usage"]["paid"] == self.paid
    }
}

/// Asks until what is still on its way has come.
#[track_caller]
pub(crate) fn usage_equals_ledger(sandbox: &Sandbox, sim: &Sim) -> Agreement {
    let end = now() + LONG;
    loop {
        let agreement = Agreement::of(sandbox, &sim.ledger());
        if agreement.holds() {
            return agreement;
        }
        assert!(now() < end, "the usage and the ledger differ: {agreement:#?}");
        pass(PAUSE);
    }
}

/// Waits until the usage equals the ledger, where no reply was lost for good: not a cent is missing.
#[track_caller]
pub(crate) fn usage_equals_ledger_to_the_cent(sandbox: &Sandbox, sim: &Sim) {
    let agreement = usage_equals_ledger(sandbox, sim);
    let Agreement { in_doubt, in_doubt_micros, unanswered_micros, .. } = agreement;
    assert_eq!((in_doubt, in_doubt_micros, unanswered_micros), (0, 0, 0), "{agreement:#?}");
}
