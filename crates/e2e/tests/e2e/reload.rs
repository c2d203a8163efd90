//! Settings that change while the gateway works under load: no order is lost, no request is refused, and a wrong file
//! changes nothing.

use crate::binary::{Ran, run};
use crate::http::call_as;
use crate::provider::SimServices;
use crate::sandbox::{Sandbox, page};
use crate::serve::Serve;
use crate::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

const ANNA: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const BERT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const OPERATOR: &str = "00000000000000000000000000000000";
/// How many callers place orders at the same time.
const CALLERS: usize = 6;
/// How often the settings change under load.
const ROUNDS: usize = 24;

struct Scene {
    gateway: Serve,
    services: SimServices,
    /// The configuration before the providers.
    top: String,
    /// The tables of the sandbox, without its provider.
    tables: String,
}

impl Scene {
    fn start() -> Self {
        let services = SimServices::start(&["a=2captcha", "b=captchaai", "c=2captcha"]);
        let sandbox = Sandbox::at(services.url("a"), "2captcha");
        for (name, key) in [("anna.key", ANNA), ("bert.key", BERT), ("operator.key", OPERATOR)] {
            fs::write(sandbox.path(name), key).expect("the sandbox can be written");
        }
        let text = fs::read_to_string(sandbox.path("quittance.toml")).expect("it has a configuration");
        let (top, rest) = text.split_once("[store]").expect("it has a store");
        let (store, rest) = rest.split_once("[[provider]]").expect("it has a provider");
        let (_, tables) = rest.split_once("# Most tests here").expect("other tables follow");
        let (top, tables) = (top.to_owned(), format!("[store]{store}\n# {tables}"));
        write(&sandbox, &configuration(&top, &tables, &services, &["a", "b"], &["anna"], ""));
        Self { gateway: Serve::start(sandbox), services, top, tables }
    }

    fn configure(&self, providers: &[&str], tenants: &[&str], more: &str) {
        let text = configuration(&self.top, &self.tables, &self.services, providers, tenants, more);
        write(&self.gateway.sandbox, &text);
    }

    fn command(&self, args: &[&str]) -> Ran {
        let mut command = self.gateway.sandbox.command(args);
        command.env("QUITTANCE_ADMIN_KEY", OPERATOR);
        run(command)
    }

    fn hang_up(&self) {
        let pid = i32::try_from(self.gateway.pid()).ok().and_then(Pid::from_raw).expect("it is a process");
        kill_process(pid, Signal::HUP).expect("our own child can be signalled");
    }

    /// The value of a setting, as the daemon shows it.
    fn setting(&self, name: &str) -> Option<String> {
        let url = format!("{}/v1/admin/settings", self.gateway.http);
        let (status, reply) = call_as(OPERATOR, "GET", &url, "");
        assert_eq!(status, 200, "{reply}");
        let reply: Value = serde_json::from_str(&reply).expect("it speaks JSON");
        let settings = reply["settings"].as_array().expect("it lists settings");
        let found = settings.iter().find(|setting| setting["name"] == name)?;
        found["value"].as_str().map(str::to_owned)
    }

    fn place(&self, key: &str, mark: &str) -> (u16, Value) {
        let order = json!({
            "kind": "turnstile",
            "params": { "sitekey": format!("0x4A-{mark}"), "pageurl": page(mark) },
        });
        let url = format!("{}/v1/orders", self.gateway.http);
        let (status, reply) = call_as(key, "POST", &url, &order.to_string());
        (status, serde_json::from_str(&reply).expect("it speaks JSON"))
    }

    fn expect_answer(&self, key: &str, order: &Value) {
        let id = order["id"].as_str().unwrap_or_else(|| panic!("an order has an id: {order}"));
        until("an answer", || {
            let (status, reply) = call_as(key, "GET", &format!("{}/v1/orders/{id}", self.gateway.http), "");
            assert_eq!(status, 200, "{reply}");
            let reply: Value = serde_json::from_str(&reply).expect("it speaks JSON");
            let status = reply["status"].as_str().expect("an order has a status");
            assert!(matches!(status, "pending" | "solved"), "{reply}");
            (status == "solved").then_some(())
        });
    }

    /// Places orders and waits for their answers until `is_over`. Returns how many there were.
    fn load(&self, caller: usize, is_over: &AtomicBool) -> usize {
        let mut placed = 0;
        while !is_over.load(Ordering::Relaxed) {
            let (status, order) = self.place(ANNA, &format!("load-{caller}-{placed}"));
            assert!(matches!(status, 200 | 202), "{status}: {order}");
            placed += 1;
            self.expect_answer(ANNA, &order);
        }
        placed
    }
}

fn configuration(
    top: &str,
    tables: &str,
    services: &SimServices,
    providers: &[&str],
    tenants: &[&str],
    more: &str,
) -> String {
    let provider = |name: &&str| {
        let dialect = if *name == "b" { "captchaai" } else { "2captcha" };
        format!(
            "[[provider]]\nname = \"{name}\"\ndialect = \"{dialect}\"\nurl = \"{}\"\nkey_env = \"E2E_PROVIDER_KEY\"\n\
             connect_wait = \"500ms\"\nreply_wait = \"1s\"\npoll_reply_wait = \"700ms\"\nsubmit_interval = \"1ms\"\n",
            services.url(name)
        )
    };
    let tenant = |name: &&str| format!("[[tenant]]\nname = \"{name}\"\nkey_file = \"{name}.key\"\n");
    let providers: String = providers.iter().map(provider).collect();
    let tenants: String = tenants.iter().map(tenant).collect();
    format!("{top}{tables}\n[admin]\nkey_file = \"operator.key\"\n{providers}{tenants}{more}")
}

/// Writes the file whole, as an operator should: a reader never sees half of it.
fn write(sandbox: &Sandbox, text: &str) {
    let next = sandbox.path("next.toml");
    fs::write(&next, text).expect("the sandbox can be written");
    fs::rename(next, sandbox.path("quittance.toml")).expect("the sandbox can be written");
}

/// Promise: settings change under load, and no order is lost and no request refused.
#[test]
fn a_reload_under_load_loses_no_order_and_refuses_no_request() {
    let scene = Scene::start();
    let (is_over, placed) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (scene, is_over, placed) = (&scene, &is_over, &placed);
            scope.spawn(move || placed.fetch_add(scene.load(caller, is_over), Ordering::Relaxed));
        }
        for round in 0..ROUNDS {
            let providers: &[&str] = [&["a", "b"][..], &["b", "c"], &["c"], &["c", "a"]][round % 4];
            let tenants: &[&str] = if round % 2 == 0 { &["anna", "bert"] } else { &["anna"] };
            let trip_at = (40 + round).to_string();
            scene.configure(providers, tenants, &format!("[provider_rules]\ntrip_at = {trip_at}\n"));
            if round % 3 == 0 {
                scene.hang_up();
            } else {
                scene.command(&["config", "reload"]).must_succeed();
            }
            until("the new settings", || (scene.setting("provider_rules.trip_at")? == trip_at).then_some(()));
            if round % 8 == 7 {
                scene.configure(&["a"], &[], "[dead_letters]\nreplay_age_max = \"soon\"\n");
                scene.hang_up();
                scene.command(&["config", "reload"]).must_fail(4, &["replay_age_max", "nothing has changed"]);
            }
            let (status, order) = scene.place(ANNA, &format!("round-{round}"));
            assert!(matches!(status, 200 | 202), "{status}: {order}");
            scene.expect_answer(ANNA, &order);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let placed = placed.into_inner() + ROUNDS;
    assert!(placed > 2 * ROUNDS, "only {placed} orders were placed");
    let mut bought: BTreeMap<String, usize> = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for name in ["a", "b", "c"] {
        let ledger = scene.services.ledger(name);
        taken.insert(name, ledger.accepted());
        for (page, tasks) in ledger.by_page() {
            *bought.entry(page.to_owned()).or_default() += tasks.len();
        }
    }
    assert_eq!(bought.len(), placed, "every order was bought: {taken:?}");
    assert!(bought.values().all(|tasks| *tasks == 1), "none was bought twice: {bought:?}");
    assert!(taken.values().all(|tasks| *tasks > 0), "each provider had some: {taken:?}");
    scene.gateway.end_in_peace();
}

/// Promise: keys, limits and the log level change at once, a wrong file changes nothing and says why, and what needs a
/// restart is named and keeps its value.
#[test]
fn changes_hold_at_once_and_a_wrong_file_changes_nothing() {
    let scene = Scene::start();
    assert_eq!(scene.place(BERT, "bert-1").0, 401, "its key is not known yet");

    scene.configure(&["a", "b"], &["anna", "bert"], "[log]\nlevel = \"debug\"\n");
    let shown = scene.command(&["config", "reload", "--dry-run", "--json"]);
    shown.must_succeed();
    let shown = shown.json();
    assert_eq!(shown["is_applied"], false);
    let changes = shown["changes"].as_array().expect("it lists changes");
    let names: Vec<&str> = changes.iter().filter_map(|change| change["name"].as_str()).collect();
    assert_eq!(names, ["log.level", "tenant.bert.key_file", "tenant.bert.name"]);
    assert_eq!(scene.place(BERT, "bert-2").0, 401, "a dry run changes nothing");

    let reloaded = scene.command(&["config", "reload"]);
    reloaded.must_succeed();
    assert!(reloaded.out.contains("log.level: \"info\" -> \"debug\""), "{reloaded:?}");
    let (status, order) = scene.place(BERT, "bert-3");
    assert!(matches!(status, 200 | 202), "{status}: {order}");

    // The removed tenant is refused, and its open order ends.
    scene.configure(&["a", "b"], &["anna"], "[log]\nlevel = \"debug\"\n");
    scene.command(&["config", "reload"]).must_succeed();
    assert_eq!(scene.place(BERT, "bert-4").0, 401);
    until("the order of the removed tenant is bought", || {
        let taken = scene.services.ledger("a");
        taken.by_page().contains_key(page("bert-3").as_str()).then_some(())
    });

    // A wrong file: an unknown name, then a provider that is another service under the same name.
    scene.configure(&["a"], &["anna", "bert"], "[dead_letters]\nreplay_age_mx = \"5s\"\n");
    let refused = scene.command(&["config", "reload"]);
    refused.must_fail(4, &["dead_letters.replay_age_mx", "quittance.toml:", "nothing has changed"]);
    scene.hang_up();
    scene.configure(&[], &["anna", "bert"], "");
    scene.command(&["config", "reload"]).must_fail(4, &["there is no provider", "nothing has changed"]);
    assert_eq!(scene.place(BERT, "bert-5").0, 401);
    let (status, order) = scene.place(ANNA, "anna-1");
    assert!(matches!(status, 200 | 202), "{status}: {order}");
    scene.expect_answer(ANNA, &order);

    scene.configure(&["a", "b"], &["anna"], "[log]\nlevel = \"debug\"\n[listener]\nrequests_max = 77\n");
    let reloaded = scene.command(&["config", "reload"]);
    reloaded.must_succeed();
    assert!(
        reloaded.out.contains("listener.requests_max") && reloaded.out.contains("needs a restart"),
        "{reloaded:?}"
    );
    assert_ne!(scene.setting("listener.requests_max").as_deref(), Some("77"));
    let log = scene.gateway.log();
    assert!(log.contains("the configuration was read again"), "{log}");
    assert!(log.contains("DEBUG"), "the level of the log has changed: {log}");
}
