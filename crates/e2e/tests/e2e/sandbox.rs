//! A sandbox for one test: a temporary folder with a store and a configuration with short durations. A test overrides
//! settings with `set`, as an operator does.

use crate::binary::{Ran, quittance, run, run_with};
use crate::engine::EngineProcess;
use crate::http::free_port;
use crate::provider::{KEY, Sim};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// The variable with the provider's key.
pub(crate) const KEY_VARIABLE: &str = "E2E_PROVIDER_KEY";

pub(crate) struct Sandbox {
    dir: Arc<TempDir>,
    key: String,
    /// The address for callbacks; `None` if there are none.
    pub(crate) callbacks: Option<String>,
    overrides: Vec<String>,
}

impl Sandbox {
    /// A sandbox with this provider and with callbacks.
    pub(crate) fn of(sim: &Sim) -> Self {
        Self::at(&sim.url, sim.dialect)
    }

    pub(crate) fn at(provider: &str, dialect: &str) -> Self {
        let port = free_port();
        let gateway = format!("listen = \"127.0.0.1:{port}\"\npublic_url = \"http://127.0.0.1:{port}\"\n");
        let callbacks = Some(format!("http://127.0.0.1:{port}/callback"));
        Self { callbacks, ..Self::with_config(&format!("{gateway}{}", config(provider, dialect))) }
    }

    /// Adds another provider after the ones that are there.
    pub(crate) fn and_provider(self, name: &str, url: &str, dialect: &str) -> Self {
        let path = self.path("quittance.toml");
        let text = fs::read_to_string(&path).expect("the sandbox has a configuration");
        let more = format!(
            "\n[[provider]]\nname = \"{name}\"\ndialect = \"{dialect}\"\nurl = \"{url}\"\nkey_env = \"{KEY_VARIABLE}\"\n\
             connect_wait = \"500ms\"\nreply_wait = \"1s\"\npoll_reply_wait = \"700ms\"\nsubmit_interval = \"1ms\"\n"
        );
        fs::write(&path, text + &more).expect("the sandbox can be written");
        self
    }

    /// A sandbox with this provider, callbacks, and defaults for all other settings, with durations as in production.
    pub(crate) fn with_defaults(sim: &Sim, more: &str) -> Self {
        let port = free_port();
        Self::with_config(&format!(
            "listen = \"127.0.0.1:{port}\"\npublic_url = \"http://127.0.0.1:{port}\"\n[[provider]]\nname = \"sim\"\n\
             dialect = \"{}\"\nurl = \"{}\"\nkey_env = \"{KEY_VARIABLE}\"\n[store]\nurl = \"embedded:store\"\n{more}",
            sim.dialect, sim.url
        ))
    }

    /// A sandbox with this provider, without callbacks.
    pub(crate) fn polling(sim: &Sim) -> Self {
        Self::with_config(&config(&sim.url, sim.dialect))
    }

    pub(crate) fn with_config(text: &str) -> Self {
        let dir =
            tempfile::Builder::new().prefix("quittance-e2e-").tempdir().expect("there is room for a folder");
        fs::write(dir.path().join("quittance.toml"), text).expect("a new folder can be written");
        let dir = Arc::new(dir);
        Self { dir, key: KEY.to_owned(), callbacks: None, overrides: Vec::new() }
    }

    /// Sets a setting: `timing.deadline=5s`.
    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.overrides.push(setting.to_owned());
        self
    }

    /// Replaces a setting that `set` or the config file has set before.
    pub(crate) fn override_setting(&mut self, name: &str, value: &str) {
        self.leave_out(name);
        self.overrides.push(format!("{name}={value}"));
    }

    /// Removes an override that was set before.
    pub(crate) fn leave_out(&mut self, name: &str) {
        let setting = format!("{name}=");
        self.overrides.retain(|old| !old.starts_with(&setting));
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = quittance(args.iter().copied());
        command.arg("--config").arg(self.path("quittance.toml")).env(KEY_VARIABLE, &self.key);
        for setting in &self.overrides {
            command.args(["--set", setting]);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run(self.command(args))
    }

    /// Runs `solve --lines` with these lines to its end.
    pub(crate) fn run_lines(&self, lines: &[String]) -> Ran {
        run_with(self.command(&["solve", "--lines"]), format!("{}\n", lines.join("\n")).as_bytes())
    }

    /// Runs `solve` for a page of its own.
    pub(crate) fn solve(&self, mark: &str, more: &[&str]) -> Ran {
        let (page, key) = (format!("pageurl={}", page(mark)), format!("googlekey={}", site_key(mark)));
        let mut args = vec!["solve", "recaptcha_v2", "-p", &page, "-p", &key];
        args.extend(more);
        self.run(&args)
    }

    /// Starts `solve --lines --settle`, and leaves it running.
    pub(crate) fn engine(&self) -> EngineProcess {
        EngineProcess::start(self.command(&["solve", "--lines", "--settle"]), Arc::clone(&self.dir))
    }

    pub(crate) fn dead_letters(&self) -> Vec<Value> {
        let ran = self.run(&["dead", "list", "--json"]);
        ran.must_succeed();
        ran.json().as_array().expect("an array").clone()
    }
}

/// The page of a captcha. Its mark distinguishes captchas in the ledger.
pub(crate) fn page(mark: &str) -> String {
    format!("https://{mark}.example.com/login")
}

fn site_key(mark: &str) -> String {
    format!("6Le-{mark}-0123456789abcdefghijklmnop")
}

/// A line for `solve --lines`.
pub(crate) fn line(id: u64, mark: &str) -> Value {
    let params = json!({ "googlekey": site_key(mark), "pageurl": page(mark) });
    json!({ "id": id, "kind": "recaptcha_v2", "params": params })
}

/// The kinds for which the mock provider charges its price of an image.
const PICTURES: [&str; 8] =
    ["image", "rotate", "text", "grid", "coordinates", "canvas", "bounding_box", "bls"];
/// The other kinds that are used here.
const OTHERS: [&str; 24] = [
    "audio",
    "recaptcha_v2",
    "recaptcha_v3",
    "hcaptcha",
    "turnstile",
    "geetest",
    "geetest_v4",
    "funcaptcha",
    "keycaptcha",
    "capy",
    "lemin",
    "amazon_waf",
    "captchafox",
    "friendly_captcha",
    "mt_captcha",
    "prosopo",
    "cybersiara",
    "cutcaptcha",
    "tencent",
    "atb_captcha",
    "cloudflare_challenge",
    "datadome",
    "imperva",
    "tspd",
];

fn config(provider: &str, dialect: &str) -> String {
    let priced = |kinds: &[&str], price: &str| -> String {
        kinds.iter().map(|kind| format!("{kind} = {price}\n")).collect()
    };
    let prices = priced(&PICTURES, "0.0005") + &priced(&OTHERS, "0.00299");
    format!(
        r#"
[store]
url = "embedded:store"

[[provider]]
name = "main"
dialect = "{dialect}"
url = "{provider}"
key_env = "{KEY_VARIABLE}"
connect_wait = "500ms"
reply_wait = "1s"
poll_reply_wait = "700ms"
submit_interval = "1ms"
trip_at = 50
probe = "100ms"
retry_share = 1.0
retry_burst = 10000
retry_trickle = "10ms"

# Most tests here are about callers that ask again without a key: equal orders are one job. What is so by default is
# tested with `reuse.default=by_kind`.
[reuse]
default = "shared"

[timing]
submit_wait = "2s"
callback_wait = "1500ms"
in_doubt_wait = "3s"
in_doubt_min = "300ms"
first_poll = "100ms"
poll_interval = "100ms"
deadline = "60s"
task_life = "60s"

[retry]
base = "20ms"
cap = "200ms"
jitter = "20ms"

[engine]
poll_wait = "1s"
claim_duration = "1500ms"
sweep_interval = "250ms"
others_first = "300ms"

[kinds.recaptcha_v2]
p50 = "100ms"
p95 = "300ms"
p99 = "800ms"

# The mock provider's: callbacks tell none.
[prices]
{prices}"#
    )
}
