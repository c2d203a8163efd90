//! The node that both tenants use, and the mock provider behind it.

use crate::Scale;
use crate::scene::WORKS;
use crate::server::{self, ADMIN, OwnThread};
use quittance::gateway::{Allowed, GatewaySettings, KeyDigest, Rate, TenantSettings, WebhookSettings};
use quittance::{
    ApiKey, Callbacks, ClassicDialect, ClassicProvider, GatewaySetup, Limits, ProviderSettings, Quittance,
};
use quittance_mock_provider::{
    BanLimits, DEMO_KEY, MillisRange, MockAccount, MockKey, MockProvider, ScriptRule, Settings,
};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(super) const QUIET: &str = "quiet567890quiet567890quiet56789";
pub(super) const HOSTILE: &str = "hostile7890hostile7890hostile789";
/// How long the provider takes for a task.
const SOLVE_MS: u64 = 500;
const SUBMIT_INTERVAL: Duration = Duration::from_millis(100);
/// The limit of requests. It is low, so that the hostile tenant can try to use them all.
pub(super) const REQUESTS_MAX: usize = 120;
/// The provider rejects orders whose site key begins with this, with an unlisted code.
pub(super) const ODD: &str = "odd";

pub(super) struct BenchNode {
    pub(super) address: SocketAddr,
    pub(super) provider: MockProvider,
    _provider_thread: OwnThread,
    _node: Quittance,
    _runtime: Runtime,
    _dir: TempDir,
}

/// A tenant with the default limits of `serve`.
fn tenant(name: &str, key: &str) -> TenantSettings {
    let mut settings = TenantSettings::new(name, KeyDigest::of(key));
    settings.rate = Some(Rate { every: Duration::from_millis(10), burst: 2500 });
    settings.open_max = Some(5000);
    settings
}

fn mock_provider() -> (OwnThread, MockProvider) {
    let odd = |parameter: &str| -> ScriptRule {
        let rule = json!({ "on": "in.php", "match": { parameter: format!("{ODD}*") }, "do": { "code": "ERROR_WHAT_IS_THIS" } });
        serde_json::from_value(rule).expect("the mock provider understands it")
    };
    let settings = Settings {
        accounts: vec![MockAccount {
            name: "demo".to_owned(),
            key: MockKey::new(DEMO_KEY),
            balance_micros: 1_000_000_000,
            threads: 100,
            plan_ended: false,
        }],
        solve_ms: MillisRange { from: SOLVE_MS, to: SOLVE_MS + 1 },
        queue_max: 10_000,
        pace: BanLimits::off(),
        script: vec![odd("sitekey"), odd("googlekey")],
        ..Settings::default()
    };
    OwnThread::start("provider", move || async move { MockProvider::start(settings).await.expect(WORKS) })
}

impl BenchNode {
    pub(super) fn start(scale: &Scale) -> Self {
        let (provider_thread, provider) = mock_provider();
        let dir = scale.fresh_dir();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect(WORKS);
        let (address, node) = runtime.block_on(async {
            let (listener, address) = server::listen().await;
            let node = start(&dir, &provider.url(), address).await;
            let gateway = node.gateway().expect("it was given one").clone();
            tokio::spawn(node.admin().expect("it has a gateway").clone().run());
            tokio::spawn(gateway.serve(listener, None));
            (address, node)
        });
        Self {
            address,
            provider,
            _provider_thread: provider_thread,
            _node: node,
            _runtime: runtime,
            _dir: dir,
        }
    }
}

async fn start(dir: &TempDir, provider: &str, address: SocketAddr) -> Quittance {
    let mut settings = ProviderSettings::new("mock", provider, ApiKey::new(DEMO_KEY));
    settings.submit_interval = Some(SUBMIT_INTERVAL);
    let webhooks = WebhookSettings {
        allow: vec![Allowed::parse("127.0.0.0/8").expect("a network")],
        ..WebhookSettings::default()
    };
    let limits = Limits { requests_max: REQUESTS_MAX, connections_max: 4000, ..Limits::default() };
    let setup = GatewaySetup {
        tenants: vec![tenant("quiet", QUIET), tenant("hostile", HOSTILE)],
        admin: Some(KeyDigest::of(ADMIN)),
        settings: GatewaySettings { limits, ..GatewaySettings::default() },
        ..GatewaySetup::default()
    };
    let builder = Quittance::builder()
        .embedded(dir.path().join("store"))
        .provider(ClassicProvider::new(ClassicDialect::TwoCaptcha, settings).expect(WORKS))
        .callbacks(Callbacks::through_gateway(format!("http://{address}")))
        .webhooks(webhooks)
        .gateway(setup)
        .allow("*.example.com")
        .settings(|settings| settings.is_shared = true);
    builder.start().await.expect(WORKS)
}
