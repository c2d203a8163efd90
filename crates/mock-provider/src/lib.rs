//! The mock provider: a real HTTP server that speaks both protocols as strictly as real providers do. It has every
//! fault that real providers showed, and a ledger of what was taken, paid and delivered. Tests judge our code by it,
//! so it shares no rule with that code: it uses only the reader of forms.
//!
//! `/in.php`, `/res.php` and (CaptchaAI) `/solve.php` speak the classic protocol. `/createTask`, `/getTaskResult`,
//! `/getBalance` and the reports speak the JSON protocol. A prefix `/2captcha/`, `/anticaptcha/`, `/capmonster/` or
//! `/capsolver/` selects the [`MockDialect`]. All share one ledger. These requests control the mock provider, and are
//! for this machine only:
//!
//! | request | body | answer |
//! | --- | --- | --- |
//! | `GET /mock/ledger` | | [`Ledger`]; `?since=MS` only tasks accepted then or later, `?summary=1` no tasks, `?account=NAME` one account |
//! | `GET /mock/state` | | [`MockState`]: balances, open tasks, bans, outage |
//! | `GET /mock/faults` | | [`Faults`] in force |
//! | `PUT /mock/faults` | `"calm"`, `"storm"`, or any part of [`Faults`]: `{"submit":{"reply_lost":0.1}}`; what is left out is zero | `{"ok":true}` |
//! | `PATCH /mock/faults` | a part of [`Faults`]; what is left out stays | `{"ok":true}` |
//! | `DELETE /mock/faults` | | `{"ok":true}`; no faults |
//! | `.../mock/faults?account=NAME` | as above | the faults of one account in place of the service's; DELETE removes them |
//! | `GET /mock/script` | | the [`ScriptRule`]s in force |
//! | `PUT /mock/script` | `[ScriptRule, ...]`, replaces the old; counting starts again; DELETE removes all | `{"ok":true}` |
//! | `PUT /mock/account` | [`AccountChange`]: `{"name":"demo","balance_micros":0}` | `{"ok":true}`, 404 if unknown |
//! | `POST /mock/outage` | `{"ms":500,"how":"close"}`, see [`OutageKind`]; `ms` 0 ends the outage | `{"ok":true}` |
//! | `POST /mock/reset` | | `{"ok":true}`; forgets tasks, bans and sums; ids go on |
//!
//! [`MockServices`] plays several services in one process, each on a port of its own, and adds a control address.
//!
//! POST does the same as PUT. A refused request gets 400 or 404 and `{"error":"why"}`.
//!
//! A [`ScriptRule`] has three parts. `on` says where: `in.php` or `createTask` (the same place), `res.php` or
//! `getTaskResult` (the same place), or `pingback`. `nth`, `every`, `from_ms`, `to_ms`, `match` and `times` say when.
//! `do` says what:
//!
//! | `do` | on | what happens |
//! | --- | --- | --- |
//! | `{"request_lost":{}}` | in, res | the connection ends, nothing was done |
//! | `{"reply_lost":{}}` | in, res | it was done, and the connection ends |
//! | `{"code":"ERROR_X"}` | all | this code, nothing was done; on a pingback it stands in the place of the answer |
//! | `{"status":502,"taken":false}` | in, res | an HTML page with this status (400 to 599); done if `taken` (default false) |
//! | `{"html":{}}`, `{"garbage":{}}`, `{"truncated":{}}` | in, res | 200 with a page, with noise, or half an answer; done unless `"taken":false` |
//! | `{"hang_ms":N}` | in, res | done unless `"taken":false`; no reply for N ms, then the connection ends |
//! | `{"delay_ms":N}` | all | done, and the answer (or the pingback) comes N ms later |
//! | `{"fewer_parts":{}}` | res | half of the `ids` are answered |
//! | `{"unsolvable":{}}`, `{"solve_ms":N}`, `{"answer":"text"}` | in | what becomes of the task |
//! | `{"vanish":{}}` | in, res | the result is gone when (or from now on, if) it is there |
//! | `{"lost":{}}`, `{"doubled":{}}`, `{"early":{}}`, `{"forged":{}}` | pingback | not sent, sent twice, sent before in.php answers, preceded by two from strangers |
#![forbid(unsafe_code)]

mod answer;
mod control;
mod faults;
mod in_php;
mod json;
mod ledger;
mod mock_server;
mod outage;
mod picture;
mod pingback;
mod response_text;
mod rng;
mod script;
mod service;
mod service_settings;
mod services;
mod settings;
mod world;

pub use faults::{Faults, PingbackFaults, WireFaults};
pub use json::MockDialect;
pub use ledger::{
    AccountSummary, AccountTotals, Ledger, LedgerTask, LedgerValue, MockReport, MockState, TaskState, Totals,
};
pub use outage::OutageKind;
pub use script::{BadScript, FaultAction, RulePlace, ScriptRule};
pub use service_settings::{MockServiceDialect, ServiceSettings};
pub use services::{MockServices, ServiceSummary, ServiceTotals, ServicesError, ServicesLedger};
pub use settings::{
    AccountRules, BanLimits, DEMO_KEY, KEY_CHARS, MillisRange, MockAccount, MockClassicDialect,
    MockJsonLimits, MockJsonService, MockKey, Settings,
};
pub use world::AccountChange;

use mock_server::{LedgerClock, MockShared};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use world::{LedgerQuery, MockWorld, ServicePlace};

/// A running mock provider. Dropping it stops it; [`MockProvider::stop`] also waits until it has stopped.
pub struct MockProvider {
    shared: Arc<MockShared>,
    address: SocketAddr,
}

impl MockProvider {
    /// Starts to listen, and is ready when this returns. An impossible script or unusable accounts give
    /// `InvalidInput`.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        Self::start_at(settings, ServicePlace::default()).await
    }

    /// Starts one of several services.
    async fn start_at(settings: Settings, place: ServicePlace) -> io::Result<Self> {
        let clock = LedgerClock::start();
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        settings.check().map_err(invalid)?;
        let settings = Arc::new(settings);
        let world = MockWorld::new(settings.clone(), place, clock.now_ms())
            .map_err(|why| invalid(why.to_string()))?;
        let listener = TcpListener::bind(settings.listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(MockShared::new(settings, clock, world));
        shared.spawn(mock_server::listen(shared.clone(), listener, address));
        Ok(Self { shared, address })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn shared(&self) -> &MockShared {
        &self.shared
    }

    /// Ends every connection and every pingback that is under way.
    pub async fn stop(self) {
        self.shared.stop().await;
    }

    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let now = self.shared.clock.now_ms();
        self.shared.world().ledger(now, &LedgerQuery::default())
    }

    /// The totals without the list of tasks, which is cheap.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let now = self.shared.clock.now_ms();
        let summary = LedgerQuery { is_summary: true, ..LedgerQuery::default() };
        self.shared.world().ledger(now, &summary).totals
    }

    #[must_use]
    pub fn state(&self) -> MockState {
        control::state(&self.shared)
    }

    pub fn set_faults(&self, faults: Faults) {
        self.shared.world().set_faults(faults);
    }

    /// Replaces the script and starts its counters again.
    pub fn script(&self, rules: Vec<ScriptRule>) -> Result<(), BadScript> {
        self.shared.world().set_script(rules)
    }

    /// Changes an account. Returns false if there is no account of that name.
    pub fn change_account(&self, change: &AccountChange) -> bool {
        self.shared.world().change_account(change)
    }

    /// Starts an outage of this length. If it `refuses`, the socket is closed; else connections are accepted and
    /// closed.
    pub fn outage(&self, length: Duration, refuses: bool) {
        let ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let kind = if refuses { OutageKind::Refuse } else { OutageKind::Close };
        outage::begin(&self.shared, Some(ms), kind);
    }

    /// Starts an outage that lasts until [`MockProvider::end_outage`].
    pub fn begin_outage(&self, kind: OutageKind) {
        outage::begin(&self.shared, None, kind);
    }

    /// Ends the outage in force, if there is one.
    pub fn end_outage(&self) {
        outage::begin(&self.shared, Some(0), OutageKind::Close);
    }

    /// Gives an account faults of its own, or with `None` those of the service again. Returns false if there is no
    /// account of that name.
    pub fn set_account_faults(&self, account: &str, faults: Option<Faults>) -> bool {
        self.shared.world().set_account_faults(account, faults)
    }

    pub fn reset(&self) {
        let now = self.shared.clock.now_ms();
        self.shared.world().reset(now);
    }

    /// Waits until `holds` accepts the ledger, or until `limit` has passed. Returns whether it did in time.
    pub async fn until(&self, limit: Duration, mut holds: impl FnMut(&Ledger) -> bool) -> bool {
        /// The pause between two looks: the clock can solve a task without a notification.
        const LOOK_AGAIN: Duration = Duration::from_millis(10);
        let end = Instant::now() + limit;
        let mut changes = self.shared.changes();
        loop {
            if holds(&self.ledger()) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            _ = timeout(LOOK_AGAIN, changes.changed()).await;
        }
    }
}

impl fmt::Debug for MockProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockProvider").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for MockProvider {
    fn drop(&mut self) {
        self.shared.abort();
    }
}
