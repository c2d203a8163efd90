//! A schema-based fuzzer, schemathesis, compares the OpenAPI document with the running gateway: no response may be a
//! 5xx, or one that the document does not describe. `scripts/clients` installs the fuzzer.

use crate::binary::{ChildProcess, drain, run_within};
use crate::provider::Sim;
use crate::sandbox::Sandbox;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

const TENANT: &str = "f00dface0f00dface0f00dface0f00da";
const OPERATOR: &str = "0be7a70e0be7a70e0be7a70e0be7a70e";
/// The variable with the tenant's key.
const TENANT_VARIABLE: &str = "E2E_TENANT_KEY";
const OPERATOR_VARIABLE: &str = "E2E_OPERATOR_KEY";

/// A fixed seed, so that every run sends equal requests and finds equal faults.
const SEED: &str = "20261116";
const EXAMPLES_MAX: &str = "30";
/// The timeout of the fuzzer, which sends thousands of requests.
const FUZZ_WAIT: Duration = Duration::from_secs(300);

/// Rules for requests that fit the document but are not valid: an unknown kind, an expired answer.
const RULES: &str = r#"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "410", "422", "429"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "413", "415", "422", "429"]
"#;

/// The gateway as a process, with one tenant and an operator.
struct FuzzedGateway {
    child: ChildProcess,
    url: String,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
}

impl FuzzedGateway {
    fn start(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(["--set", &format!("tenant.fuzz.key_env={TENANT_VARIABLE}")]);
        command.args(["--set", &format!("admin.key_env={OPERATOR_VARIABLE}")]);
        command.env(TENANT_VARIABLE, TENANT).env(OPERATOR_VARIABLE, OPERATOR);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
        let err = drain(child.0.stderr.take().expect("it is piped"));
        let mut out = BufReader::new(child.0.stdout.take().expect("it is piped"));
        let mut output = String::new();
        while !output.ends_with("ready\n") {
            if out.read_line(&mut output).expect("it speaks UTF-8") == 0 {
                panic!("the gateway never got ready: {output}{}", err.join().unwrap_or_default());
            }
        }
        let url = output.lines().find_map(|line| line.strip_prefix("listening on "));
        let url = url.unwrap_or_else(|| panic!("it does not say where it listens: {output}")).to_owned();
        Self { child, url, out: Some(drain(out)), err: Some(err) }
    }

    /// Checks that the gateway still runs without a fault, and ends it.
    fn end_in_peace(mut self) {
        assert!(self.child.0.try_wait().expect("a child of ours can be queried").is_none(), "it has ended");
        self.child.kill();
        for stream in [self.out.take(), self.err.take()].into_iter().flatten() {
            let output = stream.join().expect("reading does not panic");
            assert!(!output.contains("panicked"), "{output}");
            for secret in [TENANT, OPERATOR] {
                assert!(!output.contains(secret), "a key is in the log");
            }
        }
    }
}

fn schemathesis() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = env::var_os("QUITTANCE_CLIENTS").filter(|place| !place.is_empty());
    let entry =
        root.join(named.unwrap_or_else(|| "target/clients".into())).join("fuzz-venv/bin/schemathesis");
    assert!(entry.exists(), "schemathesis is not installed: run scripts/clients");
    entry
}

/// Runs the fuzzer with this key on a part of the document, which `more` selects.
fn fuzz(key: &str, more: &[&str]) {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let serving = FuzzedGateway::start(&sandbox);
    let rules = sandbox.path("schemathesis.toml");
    fs::write(&rules, RULES).expect("a new folder can be written");
    let mut command = Command::new(schemathesis());
    command.env_clear().envs(env::vars_os().filter(|(name, _)| name == "PATH"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", sandbox.path("")).current_dir(sandbox.path(""));
    command.arg("--config-file").arg(&rules).arg("run").arg(format!("{}/openapi.json", serving.url));
    command.args(["--header", &format!("Authorization: Bearer {key}")]);
    command.args(["--checks", "all", "--seed", SEED, "--max-examples", EXAMPLES_MAX]);
    // A cancelled order is still there to be read: to cancel is not to delete.
    command.args(["--exclude-checks", "use_after_free"]);
    command.args(["--request-timeout", "20", "--generation-database", "none", "--no-color"]);
    command.args(more);
    let ran = run_within(FUZZ_WAIT, command, b"");
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    serving.end_in_peace();
}

/// Live streams last as long as their subject, or for ever, so the test does not wait for their ends.
#[test]
fn the_document_is_true_for_a_tenant() {
    fuzz(TENANT, &["--exclude-tag", "admin", "--exclude-tag", "events"]);
}

/// The fuzzer cannot write lines of JSON, so the import has a test of its own.
#[test]
fn the_document_is_true_for_the_operator() {
    fuzz(OPERATOR, &["--include-tag", "admin", "--exclude-operation-id", "importDead"]);
}
