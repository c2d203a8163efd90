//! `quittance mock`: the mock provider as a server, for trials of Quittance or any other client, until it is
//! interrupted. It plays one service, or several at once. All its behaviour can be set here, or over HTTP while it
//! runs.

mod service_options;

use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use crate::output;
use clap::Args;
use quittance_mock_provider::{
    BanLimits, DEMO_KEY, Faults, KEY_CHARS, MockAccount, MockJsonService, MockKey, MockProvider,
    MockServiceDialect, ScriptRule, Settings,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance mock                                  no faults, on 127.0.0.1:8790
  quittance mock --speed 20 --faults storm        fast, with random faults
  quittance mock --dialect captchaai --threads 5  at most 5 open tasks
  quittance mock --script faults.json             faults at chosen moments
  quittance mock --service a=captchaai:8801 --service b=2captcha:8802
                                                  two services in one process
  quittance mock --services services.toml         each with settings of its own

A script is a list of rules; each says where, when and what:
  [{\"on\": \"in.php\", \"nth\": 3, \"do\": {\"reply_lost\": {}}},
   {\"on\": \"pingback\", \"every\": 5, \"do\": {\"doubled\": {}}}]

While it runs (from this machine only):
  curl http://127.0.0.1:8790/mock/ledger      what was accepted, charged, served
  curl -X PUT -d '\"calm\"' http://127.0.0.1:8790/mock/faults
With several services, 127.0.0.1:8790 (--listen) controls them all, and each
can be changed without the others:
  curl http://127.0.0.1:8790/mock/services
  curl http://127.0.0.1:8790/mock/services/a/ledger
  curl -d '{\"how\": \"refuse\"}' http://127.0.0.1:8790/mock/services/a/outage
  curl -d '{\"ms\": 0}' http://127.0.0.1:8790/mock/services/a/outage
See docs/mock-provider.md for the rest.

Exit codes:
  0  interrupted; the totals were printed
  2  the command, the rates, the script or the services are invalid, or an
     address is in use
  3  the result could not be written";

#[derive(Args, Debug)]
pub(crate) struct MockArgs {
    /// Address to listen on; with several services, the address that controls them
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8790", value_parser = crate::typed::listen_address)]
    listen: SocketAddr,
    /// Service to imitate: captchaai, 2captcha, anticaptcha, capsolver or capmonster
    #[arg(long, value_name = "NAME", default_value = "2captcha", value_parser = dialect)]
    dialect: MockServiceDialect,
    /// One of several services: a name, its dialect and its port (repeatable).
    /// Without a port, it gets a free one. The other options hold for each
    #[arg(long, value_name = "NAME=DIALECT[:PORT]", value_parser = service_options::service, conflicts_with = "dialect")]
    service: Vec<service_options::NamedService>,
    /// TOML file with several services, each with settings and accounts of its own
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dialect", "service"])]
    services: Option<PathBuf>,
    /// Key of the account, 32 characters
    #[arg(long, value_name = "KEY", default_value = DEMO_KEY, value_parser = key, hide_default_value = true)]
    key: String,
    /// Balance of the account, in millionths
    #[arg(long, value_name = "MICROS", default_value_t = 10_000_000)]
    balance: u64,
    /// Open tasks that the account may have (captchaai)
    #[arg(long, value_name = "N", default_value_t = 100)]
    threads: u32,
    /// Most waiting tasks; after that, submits get "no slot" (2captcha)
    #[arg(long, value_name = "N", default_value_t = 100)]
    queue: usize,
    /// Seed of the faults: the same requests get the same faults
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Speed-up of the solve times
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Fault rates: calm, storm, or a JSON file
    #[arg(long, value_name = "RATES", default_value = "calm")]
    faults: String,
    /// JSON file with rules for faults at chosen moments
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Do not ban clients that poll too fast
    #[arg(long)]
    no_bans: bool,
    /// Print the address and, at the end, the ledger's totals as JSON
    #[arg(long)]
    json: bool,
}

fn dialect(name: &str) -> Result<MockServiceDialect, String> {
    name.parse()
}

fn key(key: &str) -> Result<String, String> {
    if key.chars().count() == KEY_CHARS {
        Ok(key.into())
    } else {
        Err(format!("a key has {KEY_CHARS} characters"))
    }
}

fn speed(factor: &str) -> Result<f64, String> {
    factor
        .parse()
        .ok()
        .filter(|factor: &f64| (0.001..=100_000.0).contains(factor))
        .ok_or_else(|| "it is a number from 0.001 to 100000".into())
}

pub(crate) async fn run(args: MockArgs) -> Result<Exit, CliError> {
    let as_json = args.json;
    let settings = settings(&args)?;
    if let Some(chosen) = service_options::chosen(&args, &settings)? {
        return service_options::run(args.listen, chosen, as_json).await;
    }
    let mock = MockProvider::start(settings).await.map_err(|error| {
        if error.kind() == std::io::ErrorKind::InvalidInput {
            return CliError::new(
                Exit::Usage,
                format!("the script or the account is not valid: {error}; see docs/mock-provider.md"),
            );
        }
        CliError::new(Exit::Usage, quittance_daemon::cannot_listen(args.listen, &error, "--listen"))
    })?;
    let interruption = Interruption::listen()?;
    let url = mock.url();
    let (submit, poll) = service_options::paths(args.dialect);
    if as_json {
        output::print(&format!("{}\n", json!({ "url": url, "key": args.key })))?;
    } else {
        output::print(&format!(
            "The mock provider listens on {url}\n  key     {}\n  submit  {url}/{submit}\n  poll    {url}/{poll}\n  ledger  {url}/mock/ledger\nIt ends with Ctrl-C.\n",
            args.key
        ))?;
    }
    _ = interruption.came().await;
    let totals = mock.totals();
    mock.stop().await;
    if as_json {
        output::print(&format!("{}\n", json!({ "totals": totals })))?;
    } else {
        output::print(&format!(
            "\n{} tasks taken, {} solved, {} delivered, {} millionths of the account's currency charged and {} given back.\n",
            totals.accepted, totals.solved, totals.delivered, totals.paid_micros, totals.refunded_micros
        ))?;
    }
    Ok(Exit::Done)
}

fn settings(args: &MockArgs) -> Result<Settings, CliError> {
    let faults = match args.faults.as_str() {
        "calm" => Faults::default(),
        "storm" => Faults::storm(),
        path => read(Path::new(path), "rates")?,
    };
    let script: Vec<ScriptRule> =
        args.script.as_deref().map(|path| read(path, "script")).transpose()?.unwrap_or_default();
    let account = MockAccount {
        name: "main".into(),
        key: MockKey::new(&args.key),
        balance_micros: args.balance,
        threads: args.threads,
        plan_ended: false,
    };
    let mut settings = Settings {
        listen: args.listen,
        accounts: vec![account],
        seed: args.seed,
        speed: args.speed,
        queue_max: args.queue,
        pace: if args.no_bans { BanLimits::off() } else { BanLimits::default() },
        faults,
        script,
        ..Settings::default()
    };
    args.dialect.play(&mut settings);
    // These two also answer in the JSON dialects of the others, below their paths.
    if matches!(args.dialect, MockServiceDialect::TwoCaptcha | MockServiceDialect::CaptchaAi) {
        settings.json_service = MockJsonService::All;
    }
    Ok(settings)
}

fn read<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, CliError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        CliError::new(Exit::Usage, format!("the {what} in {} cannot be read: {error}", path.display()))
    })?;
    serde_json::from_str(&text).map_err(|error| {
        let what = format!(
            "the {what} in {} cannot be understood: {error}; `quittance mock --help` has an example, and docs/mock-provider.md \
             the rest",
            path.display()
        );
        CliError::new(Exit::Usage, what)
    })
}
