//! The final check of every storm: the sums of `quittance usage` equal what the provider's ledger shows as taken and
//! charged. If replies were lost for good, the difference is exactly what `quittance audit` lists as in doubt, or as
//! an answer that never came. Otherwise there is no difference.

use crate::provider::{Sim, SimLedger};
use crate::sandbox::Sandbox;
use crate::wait::{LONG, now, pass};
use serde_json::Value;
use std::fs;
use std::time::Duration;

const DAYS: &str = "2d";
/// The pause between two checks: what is on its way at the end of a storm comes within seconds.
const PAUSE: Duration = Duration::from_millis(250);

/// Both sides, and the difference between them.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) paid: u64,
    pub(crate) cost_micros: u64,
    /// Tasks that were taken without our knowledge.
    pub(crate) in_doubt: u64,
    pub(crate) in_doubt_micros: u64,
    /// The cost of tasks that were taken and charged, and never answered.
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

    /// Whether counts and money agree, and every attempt has its reason.
    fn holds(&self) -> bool {
        self.paid + self.in_doubt == self.taken
            && self.cost_micros + self.in_doubt_micros + self.unanswered_micros
                == self.charged_micros + self.given_back_micros
            && self.audit["is_explained"] == true
            && self.audit["usage"]["paid"] == self.paid
    }
}

/// Repeats the check until everything on its way has come.
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

/// Waits until the usage equals the ledger exactly, for storms without replies that were lost for good.
#[track_caller]
pub(crate) fn usage_equals_ledger_to_the_cent(sandbox: &Sandbox, sim: &Sim) {
    let agreement = usage_equals_ledger(sandbox, sim);
    let Agreement { in_doubt, in_doubt_micros, unanswered_micros, .. } = agreement;
    assert_eq!((in_doubt, in_doubt_micros, unanswered_micros), (0, 0, 0), "{agreement:#?}");
}
