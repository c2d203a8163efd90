//! A mock provider, a folder for the store, and a node with timeouts short enough for a test.

use quittance::{
    ApiKey, Builder, Callbacks, ClassicDialect, ClassicProvider, ProviderSettings, Quittance, Settings,
};
use quittance_mock_provider::{DEMO_KEY, Ledger, MockProvider, Settings as SimSettings};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

/// A timeout for everything here, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Checks repeatedly until `look` returns a value.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(view) = look().await {
                return view;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(LONG, looking).await.unwrap_or_else(|_| panic!("{what}: not within {LONG:?}"))
}

pub(crate) struct Fixture {
    pub(crate) mock: MockProvider,
    folder: tempfile::TempDir,
    dialect: ClassicDialect,
    port: u16,
}

impl Fixture {
    pub(crate) async fn new(dialect: ClassicDialect) -> Self {
        let played = match dialect {
            ClassicDialect::CaptchaAi => quittance_mock_provider::MockClassicDialect::CaptchaAi,
            ClassicDialect::TwoCaptcha => quittance_mock_provider::MockClassicDialect::TwoCaptcha,
        };
        let mock = MockProvider::start(SimSettings::quick(played)).await.unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        Self { mock, folder: tempfile::tempdir().unwrap(), dialect, port }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn builder(&self) -> Builder {
        let settings = ProviderSettings::new("sim", self.mock.url(), ApiKey::new(DEMO_KEY));
        Quittance::builder()
            .embedded(self.store())
            .provider(ClassicProvider::new(self.dialect, settings).unwrap())
            .settings(quick)
    }

    /// A node that polls for its answers.
    pub(crate) async fn polling(&self) -> Quittance {
        self.builder().start().await.unwrap()
    }

    /// A node that gets callbacks, at an address that stays the same through restarts.
    pub(crate) async fn called_back(&self) -> Quittance {
        let listen = (Ipv4Addr::LOCALHOST, self.port).into();
        let callbacks = Callbacks::new(listen, format!("http://127.0.0.1:{}", self.port));
        self.builder().callbacks(callbacks).start().await.unwrap()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.mock.ledger()
    }
}

fn quick(settings: &mut Settings) {
    let policy = &mut settings.policy;
    policy.first_poll = Some(Duration::from_millis(20));
    policy.poll_interval = Some(Duration::from_millis(50));
    policy.callback_wait = Duration::from_millis(300);
    policy.backoff.base = Duration::from_millis(20);
    policy.backoff.cap = Duration::from_millis(100);
    settings.sweep_interval = Duration::from_millis(100);
}

/// A provider that cannot be reached.
pub(crate) fn absent_provider() -> ClassicProvider {
    let settings = ProviderSettings::new("absent", "http://127.0.0.1:9", ApiKey::new(DEMO_KEY));
    ClassicProvider::new(ClassicDialect::TwoCaptcha, settings).unwrap()
}
