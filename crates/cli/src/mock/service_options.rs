//! Several services in one `quittance mock`: which ones, from options or a file, and what is printed about them.

use super::MockArgs;
use crate::exit::{CliError, Exit};
use crate::interruption::Interruption;
use crate::output;
use quittance_mock_provider::{
    MockAccount, MockServiceDialect, MockServices, ServiceSettings, ServicesError, Settings,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The value of one `--service`.
#[derive(Clone, Debug)]
pub(super) struct NamedService {
    name: String,
    dialect: MockServiceDialect,
    listen: SocketAddr,
}

/// Reads `NAME=DIALECT`, `NAME=DIALECT:PORT` or `NAME=DIALECT:ADDRESS:PORT`.
pub(super) fn service(text: &str) -> Result<NamedService, String> {
    let form = || "write NAME=DIALECT:PORT, such as a=captchaai:8801".to_owned();
    let (name, rest) = text.split_once('=').ok_or_else(form)?;
    let (dialect, address) = rest.split_once(':').unwrap_or((rest, "0"));
    let listen = match address.parse::<u16>() {
        Ok(port) => (Ipv4Addr::LOCALHOST, port).into(),
        Err(_) => address.parse().map_err(|_| format!("`{address}` is no port or address: {}", form()))?,
    };
    Ok(NamedService { name: name.to_owned(), dialect: dialect.parse()?, listen })
}

/// The services that the command names. `None` if it plays a single service.
pub(super) fn chosen(args: &MockArgs, base: &Settings) -> Result<Option<Vec<ServiceSettings>>, CliError> {
    let base = Settings { listen: (Ipv4Addr::LOCALHOST, 0).into(), ..base.clone() };
    if let Some(path) = &args.services {
        return read(path, &base).map(Some);
    }
    let services = args.service.iter().map(|service| {
        let settings = Settings { listen: service.listen, ..base.clone() };
        ServiceSettings::new(&service.name, service.dialect, settings)
            .map_err(|why| CliError::new(Exit::Usage, format!("--service: {why}")))
    });
    let services = services.collect::<Result<Vec<_>, _>>()?;
    Ok(Some(services).filter(|services| !services.is_empty()))
}

/// Reads a file with `[[service]]` tables.
fn read(path: &Path, base: &Settings) -> Result<Vec<ServiceSettings>, CliError> {
    let shown = path.display();
    let wrong = |what: &str, why: String| {
        CliError::new(Exit::Usage, format!("the services in {shown} cannot be {what}: {why}"))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong("read", error.to_string()))?;
    let services = parse(&text, base);
    services.map_err(|why| wrong("understood", format!("{why}; docs/mock-provider.md has an example")))
}

fn parse(text: &str, base: &Settings) -> Result<Vec<ServiceSettings>, String> {
    let document = DeTable::parse(text).map_err(|error| {
        let before = &text.as_bytes()[..error.span().map_or(0, |span| span.start).min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: this is not TOML: {}", error.message().replace('\n', ", "))
    })?;
    let mut services = Vec::new();
    for (key, value) in document.get_ref() {
        match (&**key.get_ref(), json_of(value.get_ref())?) {
            ("service", Value::Array(tables)) => {
                for table in tables {
                    services.push(ServiceSettings::read(&table, base)?);
                }
            }
            ("service", _) => return Err("services are a list of tables: begin each with [[service]]".into()),
            (other, _) => {
                return Err(format!(
                    "there is no setting `{other}` outside of a service: write it below [[service]]"
                ));
            }
        }
    }
    match services.is_empty() {
        true => Err("there is no service in it: add a table that begins with [[service]]".into()),
        false => Ok(services),
    }
}

/// The JSON value of a TOML value.
fn json_of(value: &DeValue<'_>) -> Result<Value, String> {
    Ok(match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.into(),
            Err(_) => return Err(format!("the number {} is too large", number.as_str())),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => number.into(),
            _ => return Err(format!("{} is no number that can be used here", number.as_str())),
        },
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(_) => return Err("no setting is a date".into()),
        DeValue::Array(items) => {
            items.iter().map(|item| json_of(item.get_ref())).collect::<Result<_, _>>()?
        }
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(key, value)| {
                Ok::<_, String>((key.get_ref().clone().into_owned(), json_of(value.get_ref())?))
            });
            Value::Object(pairs.collect::<Result<Map<_, _>, _>>()?)
        }
    })
}

/// The paths for submits and polls that are printed for a dialect.
pub(super) fn paths(dialect: MockServiceDialect) -> (&'static str, &'static str) {
    match dialect {
        MockServiceDialect::CaptchaAi | MockServiceDialect::TwoCaptcha => ("in.php", "res.php"),
        _ => ("createTask", "getTaskResult"),
    }
}

/// Plays the services until the process is interrupted.
pub(super) async fn run(
    control: SocketAddr,
    services: Vec<ServiceSettings>,
    as_json: bool,
) -> Result<Exit, CliError> {
    let accounts: Vec<Vec<MockAccount>> =
        services.iter().map(|service| service.settings.accounts.clone()).collect();
    let running = MockServices::start(control, services).await.map_err(|error| not_started(&error))?;
    let interruption = Interruption::listen()?;
    output::print(&beginning(&running, &accounts, as_json))?;
    _ = interruption.came().await;
    let totals = running.totals();
    running.stop().await;
    if as_json {
        output::print(&format!("{}\n", json!({ "services": totals })))?;
        return Ok(Exit::Done);
    }
    let mut text = String::from("\n");
    for service in totals {
        let (name, totals) = (service.service, service.totals);
        let (paid, refunded) = (totals.paid_micros, totals.refunded_micros);
        _ = writeln!(
            text,
            "{name}: {} tasks taken, {} solved, {} delivered, {paid} millionths charged and {refunded} given back.",
            totals.accepted, totals.solved, totals.delivered
        );
    }
    output::print(&text)?;
    Ok(Exit::Done)
}

fn not_started(error: &ServicesError) -> CliError {
    let what = match error {
        ServicesError::Listen { service: Some(service), address, source } => {
            quittance_daemon::cannot_listen(*address, source, &format!("port of service {service}"))
        }
        ServicesError::Listen { service: None, address, source } => {
            quittance_daemon::cannot_listen(*address, source, "--listen")
        }
        ServicesError::Settings { .. } => format!("{error}; see docs/mock-provider.md"),
        _ => error.to_string(),
    };
    CliError::new(Exit::Usage, what)
}

fn beginning(running: &MockServices, accounts: &[Vec<MockAccount>], as_json: bool) -> String {
    let control = running.url();
    let listed: Vec<_> = running.list().into_iter().zip(accounts).collect();
    if as_json {
        let services: Vec<Value> = listed
            .iter()
            .map(|(service, accounts)| {
                let accounts = accounts.iter();
                let keys =
                    accounts.map(|account| json!({ "name": account.name, "key": account.key.reveal() }));
                json!({
                    "service": service.service,
                    "dialect": service.dialect,
                    "url": service.url,
                    "control": format!("{control}{}", service.control),
                    "accounts": keys.collect::<Vec<_>>(),
                })
            })
            .collect();
        return format!("{}\n", json!({ "url": control, "services": services }));
    }
    let mut text =
        format!("The mock provider plays {} services; {control}/mock/services lists them.\n", listed.len());
    for (service, accounts) in listed {
        let (name, url, dialect) = (&service.service, &service.url, service.dialect);
        let (submit, poll) = paths(dialect);
        _ = writeln!(text, "{name}  {dialect} on {url}\n  submit  {url}/{submit}\n  poll    {url}/{poll}");
        for account in accounts {
            _ = writeln!(text, "  key     {} ({})", account.key.reveal(), account.name);
        }
        _ = writeln!(text, "  ledger  {control}{}/ledger", service.control);
    }
    text.push_str("It ends with Ctrl-C.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_name_a_dialect_and_a_port() {
        for (text, listen) in [
            ("a=captchaai", "127.0.0.1:0"),
            ("a=captchaai:8801", "127.0.0.1:8801"),
            ("a=captchaai:127.0.0.2:8801", "127.0.0.2:8801"),
            ("a=captchaai:[::1]:8801", "[::1]:8801"),
        ] {
            let service = service(text).expect("a good service");
            assert_eq!((service.name.as_str(), service.listen.to_string().as_str()), ("a", listen));
        }
        for (text, words) in
            [("a", "a=captchaai:8801"), ("a=unheard", "`unheard`"), ("a=2captcha:x", "`x` is no port")]
        {
            let why = service(text).expect_err("a wrong service");
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn services_are_read_from_toml() {
        let text = r#"
            [[service]]
            name = "a"
            dialect = "captchaai"
            listen = "127.0.0.1:8801"
            speed = 20

            [[service.account]]
            name = "main"
            slots = 6

            [[service]]
            name = "b"
            dialect = "capsolver"
            solve_ms = { from = 3_000, to = 9_000 }
            faults = { pingback = { lost = 0.1 } }
            script = [{ on = "in.php", nth = 3, do = { reply_lost = {} } }]
        "#;
        let services = parse(text, &Settings::default()).expect("a good file");
        let (a, b) = (&services[0].settings, &services[1].settings);
        assert_eq!((a.listen.port(), a.speed, a.account_rules["main"].slots), (8801, 20.0, Some(6)));
        assert_eq!((b.solve_ms.to, b.faults.pingback.lost, b.script.len()), (9_000, 0.1, 1));
        for (text, words) in [
            ("", "[[service]]"),
            ("[service]\nname = \"a\"", "[[service]]"),
            ("speed = 3", "`speed`"),
            ("\n\n[[service", "line 3"),
            (
                "[[service]]\nname = \"a\"\ndialect = \"2captcha\"\nsped = 1",
                "service a: unknown field `sped`",
            ),
        ] {
            let why = parse(text, &Settings::default()).expect_err("a wrong file");
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
