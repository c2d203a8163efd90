//! The set-up of `--mock`: a mock provider in this process, a store in a temporary folder, and settings of its own.
//! It needs no config file, variable, key or account, and leaves nothing on disk.

use crate::config_command::ConfigArgs;
use crate::exit::{CliError, Exit, OrExit};
use quittance::embedded;
use quittance_config::{Config, Environment};
use quittance_mock_provider::{
    BanLimits, DEMO_KEY, MillisRange, MockAccount, MockClassicDialect, MockKey, MockProvider, Settings,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The variable in which the settings find the key of the mock account.
const KEY_VARIABLE: &str = "QUITTANCE_MOCK_KEY";
/// Solve times that are long enough to see an order wait, and short enough for a user who watches.
const SOLVE_MS: MillisRange = MillisRange { from: 400, to: 1_000 };
/// The folder of the store, in the temporary folder.
const STORE: &str = "store";
/// How often the removal of the folder is tried while the store still closes.
const CLEAR_TRIES: u32 = 250;
/// The pause between two tries to remove the folder.
const CLEAR_PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct MockSetup {
    provider: MockProvider,
    folder: TempDir,
    /// Settings that point at the mock provider and at the temporary store.
    pub(crate) config: Config,
}

impl MockSetup {
    /// Starts the mock provider. `--set` applies; a config file is not read.
    pub(crate) async fn start(args: &ConfigArgs) -> Result<Self, CliError> {
        if args.config.is_some() {
            let what = "--mock has settings of its own and reads no config file: leave out --config, or use --set NAME=VALUE";
            return Err(CliError::new(Exit::Usage, what));
        }
        let folder = tempfile::tempdir().map_err(|error| not_started("no temporary folder", &error))?;
        let provider = MockProvider::start(settings())
            .await
            .map_err(|error| not_started("the mock provider cannot listen on 127.0.0.1", &error))?;
        let file = folder.path().join("quittance.toml");
        std::fs::write(&file, config_text(folder.path(), provider.address()))
            .map_err(|error| not_started("the temporary folder cannot be written", &error))?;
        let environment: Environment = [(KEY_VARIABLE, DEMO_KEY)].into_iter().collect();
        let args = ConfigArgs { config: Some(file), overrides: args.overrides.clone() };
        let config = Config::load(&args.sources(), &environment, Path::new("")).or_exit(Exit::Config)?;
        Ok(Self { provider, folder, config })
    }

    /// Lets the mock provider call a command that has no gateway: answers then come at once, without waiting for a poll.
    pub(crate) fn listen_for_callbacks(&mut self) -> Result<(), CliError> {
        let port = free_port().map_err(|error| not_started("no port is free on 127.0.0.1", &error))?;
        self.config.listen = (Ipv4Addr::LOCALHOST, port).into();
        self.config.public_url = Some(format!("http://{}", self.config.listen));
        Ok(())
    }

    /// The text that says where the mock provider is. It goes to standard error.
    pub(crate) fn explain(&self) -> String {
        format!(
            "mock: a mock provider answers on {}; nothing is bought. Orders are in {} until this command ends.\n",
            self.provider.url(),
            self.folder.path().display()
        )
    }

    /// Stops the mock provider and removes the store.
    pub(crate) async fn end(self) {
        self.provider.stop().await;
        let folder = self.folder.keep();
        // Tasks that are ending may still have the store open, and an open store saves a copy of files that are
        // removed under it. A folder that cannot be removed at all is left to the system, which clears temporary folders.
        for tries in 1..=CLEAR_TRIES {
            let may_remove = is_closed(&folder.join(STORE)) || tries == CLEAR_TRIES;
            if may_remove && (std::fs::remove_dir_all(&folder).is_ok() || !folder.exists()) {
                return;
            }
            tokio::time::sleep(CLEAR_PAUSE).await;
        }
    }
}

/// Whether no part of this process has the store open: its lock is free.
fn is_closed(store: &Path) -> bool {
    File::open(store.join(embedded::LOCK)).map_or(true, |lock| lock.try_lock().is_ok())
}

fn not_started(what: &str, error: &io::Error) -> CliError {
    CliError::new(Exit::Bad, format!("--mock cannot start: {what}: {error}"))
}

fn settings() -> Settings {
    let account = MockAccount {
        name: "mock".into(),
        key: MockKey::new(DEMO_KEY),
        balance_micros: 1_000_000_000,
        threads: 100,
        plan_ended: false,
    };
    Settings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        dialect: MockClassicDialect::TwoCaptcha,
        accounts: vec![account],
        solve_ms: SOLVE_MS,
        solve_ms_by_method: BTreeMap::new(),
        pace: BanLimits::off(),
        ..Settings::default()
    }
}

/// The text of the config file. Every host is allowed, because the mock provider opens no page.
fn config_text(folder: &Path, provider: SocketAddr) -> String {
    let store = Value::from(format!("embedded:{}", folder.join(STORE).display()));
    format!(
        r#"[store]
url = {store}

[targets]
allow = ["*"]
images = true
undescribed = true

[[provider]]
name = "mock"
protocol = "classic"
dialect = "2captcha"
url = "http://{provider}"
key_env = "{KEY_VARIABLE}"
"#
    )
}

/// A port that stays free for a while: below the range of outgoing connections.
pub(crate) fn free_port() -> io::Result<u16> {
    let first = u16::try_from(std::process::id() % 8000).unwrap_or_default() + 20_000;
    let candidates =
        (first..first + 200).find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    candidates.ok_or_else(|| io::ErrorKind::AddrInUse.into())
}
