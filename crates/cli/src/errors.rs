//! `quittance errors`: explains fault classes and codes, with the configuration applied. It shows what each class of
//! fault leads to, how often it is retried, and what it means for other orders. It also shows the class of each code
//! of the provider, and the codes of this gateway.

use crate::exit::{CliError, Exit};
use crate::{output, provider};
use anstyle::Style;
use clap::Args;
use clap::builder::PossibleValuesParser;
use quittance_config::{Config, ProviderConfig, duration};
use quittance_gateway::v1::native_code;
use quittance_gateway::{OWN_CODES, OwnCode, own_code};
use quittance_lifecycle::{FaultClass, FaultRule, Reaction, Remedy, Signal};
use quittance_protocol::classic::code::{CodePlace, PENDING, is_pending};
use quittance_protocol::{Dialect, ServiceCode, ServiceCodes};
use serde_json::{Value as Json, json};
use std::fmt::Write;

const HEADING: Style = Style::new().bold();
const NOTE: Style = Style::new().dimmed();

#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct ErrorsArgs {
    /// Explain only this code, and what to do
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// Show the codes of this dialect [default: the first provider's]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Dialect::ALL.map(Dialect::name)))]
    dialect: Option<String>,
    /// Show the codes of this provider of the configuration [default: the first one]
    #[arg(long, value_name = "NAME", conflicts_with = "dialect")]
    provider: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  quittance errors                         the whole table
  quittance errors ERROR_ZERO_BALANCE      one code
  quittance errors --dialect capsolver ERROR_INVALID_TASK_DATA
  quittance errors --json | jq '.codes[].code'

A client can get a code from the gateway itself, or from the provider through
the gateway. Both meanings are shown, the gateway's first. [retry.limits] sets
the limits, and [provider.faults] corrects the class of a code. The table has
both applied.

Exit codes: 0 shown, 1 no such provider, 3 not written, 4 configuration.";

pub(crate) fn run(args: &ErrorsArgs, config: &Config) -> Result<Exit, CliError> {
    if let Some(name) = args.provider.as_deref()
        && !config.providers.iter().any(|known| known.name == name)
    {
        let known: Vec<String> = config.providers.iter().map(|provider| provider.name.clone()).collect();
        return Err(CliError::new(Exit::Bad, provider::unknown(name, &known)));
    }
    let dialect = args.dialect.as_deref().and_then(|name| name.parse().ok());
    let codes = codes_of(args.provider.as_deref(), dialect, config);
    let Some(code) = args.code.as_deref().map(|code| spelling(code.trim(), &codes)) else {
        return output::show(args.json, &object(&codes, config), || whole_table(&codes, config));
    };
    output::show(args.json, &code_object(&found(&code, &codes), config), || page(&code, &codes, config))
}

/// The codes of this dialect, or else of the configured provider, with the operator's corrections.
fn codes_of(provider: Option<&str>, dialect: Option<Dialect>, config: &Config) -> ServiceCodes {
    let is_it = |known: &&ProviderConfig| provider.is_none_or(|name| known.name == name);
    let configured = config.providers.iter().find(is_it);
    match configured.filter(|provider| dialect.is_none_or(|dialect| provider.dialect() == dialect)) {
        Some(provider) => provider.codes(),
        None => ServiceCodes::of(dialect.unwrap_or(Dialect::CaptchaAi).protocol()),
    }
}

/// A code in the spelling of the tables, whatever its case; unchanged if no table has it.
fn spelling(typed: &str, codes: &ServiceCodes) -> String {
    let is_known = |code: &str| {
        codes.row(code).is_some()
            || own_code(code).is_some()
            || native_code(code).is_some()
            || is_pending(code)
    };
    let upper = typed.to_uppercase();
    if !is_known(typed) && is_known(&upper) { upper } else { typed.to_owned() }
}

/// The known code nearest to an unknown one. The common beginning of all codes does not count.
fn meant(typed: &str, codes: &ServiceCodes) -> Option<String> {
    let rest = |code: &str| code.strip_prefix("ERROR_").unwrap_or(code).to_owned();
    let rows = codes.rows().into_iter().map(|row| row.code);
    let known: Vec<String> = rows.chain(OWN_CODES.iter().map(|own| own.code.to_owned())).collect();
    let nearest =
        quittance_config::nearest(&rest(&typed.to_uppercase()), known.iter().map(|code| rest(code)))?;
    known.into_iter().find(|code| rest(code) == nearest)
}

/// What happens to the order: a name for programs, and words.
const fn remedy(rule: FaultRule) -> (&'static str, &'static str) {
    match rule.remedy {
        Remedy::BackOff => ("back_off", "tried again with backoff"),
        Remedy::AtOnce => ("at_once", "submitted again at once"),
        Remedy::Hold => ("hold", "held until an operator fixes the account"),
        Remedy::Tell => ("tell", "reported to the caller; never tried again"),
        Remedy::Elsewhere => ("elsewhere", "goes to another provider, if there is one"),
    }
}

/// What a fault means for other orders of the provider: a name for programs, and words. For an unlisted code, this
/// applies only after orders of different methods got it.
const fn reaction(of: Signal, rule: FaultRule) -> (&'static str, &'static str) {
    match rule.provider {
        Reaction::Slow if matches!(of, Signal::Fault(FaultClass::UnlistedCode)) => {
            ("slow", "nothing, until orders of other kinds get it: then every submit slows down")
        }
        Reaction::Nothing => ("nothing", "nothing"),
        Reaction::Slow => ("slow", "submits slow down: those of the tenant; all, if another tenant gets it"),
        Reaction::Trip => ("trip", "if it lasts, the circuit breaker lets one try at a time"),
        Reaction::Pause => ("pause", "no submit until an operator resumes"),
    }
}

/// What causes this signal, if no code does.
const fn signal(signal: Signal) -> &'static str {
    let class = match signal {
        Signal::Fault(class) => class,
        Signal::InDoubt => return "sent, and then a timeout, a reset or a 5xx: in doubt",
    };
    match class {
        FaultClass::Busy => "no capacity, or too many requests; HTTP 429",
        FaultClass::Unreachable => "nothing was sent: connection refused, no such host, no TLS",
        FaultClass::Unsolvable => "taken, tried and given up",
        FaultClass::NoFunds => "no money, or the plan has ended",
        FaultClass::AccountBlocked => "the key or our address is not accepted",
        FaultClass::Caller => "the provider rejects the order as wrong",
        FaultClass::NotSold => "the provider does not sell this kind",
        FaultClass::UnlistedCode => "a code that is in no table; logged once with the raw reply",
    }
}

fn whole_table(codes: &ServiceCodes, config: &Config) -> String {
    let mut text = String::new();
    // A class of which a setting has changed a code has a star after it.
    let width = Signal::ALL.iter().map(|class| class.name().len()).max().unwrap_or_default() + 2;
    _ = writeln!(
        text,
        "{HEADING}{:<width$}{:>8}  {:<44}other orders{HEADING:#}",
        "class", "limit", "the order"
    );
    for class in Signal::ALL {
        let rule = config.policy.faults.rule(class);
        let limit = rule.limit.map_or("-".to_owned(), |limit| limit.to_string());
        _ = writeln!(
            text,
            "{:<width$}{limit:>8}  {:<44}{}",
            class.name(),
            remedy(rule).1,
            reaction(class, rule).1
        );
        _ = writeln!(text, "{:indent$}{NOTE}{}{NOTE:#}", "", signal(class), indent = width + 10);
    }
    let dialect = codes.dialect();
    _ = writeln!(text, "\n{HEADING}{:<38}{:<width$}meaning at {dialect}{HEADING:#}", "code", "class");
    _ = writeln!(
        text,
        "{:<38}{:<width$}the task is there and not solved yet: keep polling",
        PENDING.join(", "),
        "pending"
    );
    let rows = codes.rows();
    for row in &rows {
        let mark = if row.is_overridden { "*" } else { "" };
        let class = format!("{}{mark}", row.class.name());
        _ = writeln!(text, "{:<38}{class:<width$}{}", spelled(row), row.meaning);
    }
    if rows.iter().any(|row| row.is_overridden) {
        text.push_str("* corrected by your configuration\n");
    }
    _ = writeln!(text, "\n{HEADING}{:<38}meaning when Quittance itself answers it{HEADING:#}", "code");
    for OwnCode { code, meaning, .. } in OWN_CODES {
        _ = writeln!(text, "{code:<38}{meaning}");
    }
    text
}

fn spelled(row: &ServiceCode) -> String {
    format!("{}{}", row.code, if row.is_prefix { "..." } else { "" })
}

/// A code of the table, or an unlisted one.
enum Found<'a> {
    Pending(&'a str),
    Row(ServiceCode),
    Unseen(&'a str),
}

fn found<'a>(code: &'a str, codes: &ServiceCodes) -> Found<'a> {
    match codes.row(code) {
        _ if is_pending(code) => Found::Pending(code),
        Some(row) => Found::Row(row),
        None => Found::Unseen(code),
    }
}

fn page(code: &str, codes: &ServiceCodes, config: &Config) -> String {
    let mut text = format!("{HEADING}{}{HEADING:#}\n", code.escape_debug());
    if let Some((status, title, hint)) = native_code(code) {
        _ = writeln!(text, "from Quittance itself, on /v1 with HTTP status {status}");
        line(&mut text, "meaning", title);
        line(&mut text, "advice", hint);
        return text;
    }
    if let Some(OwnCode { meaning, advice, .. }) = own_code(code) {
        text.push_str("from Quittance itself\n");
        line(&mut text, "meaning", meaning);
        line(&mut text, "advice", advice);
    }
    _ = writeln!(text, "from the provider, at {}", codes.dialect());
    let class = match found(code, codes) {
        Found::Pending(_) => {
            line(&mut text, "meaning", "the task is there and not solved yet");
            line(&mut text, "then", "it is polled again, until the order's deadline");
            None
        }
        Found::Row(row) => {
            explain(&mut text, &row);
            Some(row.class)
        }
        Found::Unseen(_) => {
            line(&mut text, "class", FaultClass::UnlistedCode.name());
            line(&mut text, "meaning", "this code is in no table of this dialect");
            let advice = "say what it means in the config file: [provider.faults]";
            let others = Dialect::ALL.into_iter().filter(|dialect| *dialect != codes.dialect());
            let others = others.filter(|dialect| codes_of(None, Some(*dialect), config).has(code));
            let others: Vec<&str> = others.map(Dialect::name).collect();
            let meant = meant(code, codes).filter(|meant| meant != code);
            let advice = match (others.as_slice(), meant) {
                ([other, ..], _) => format!(
                    "it is a code of {}: see `quittance errors --dialect {other} {code}`. If your provider sends it, {advice}",
                    others.join(", ")
                ),
                ([], Some(meant)) => format!("did you mean {meant}? Otherwise {advice}"),
                ([], None) => advice.to_owned(),
            };
            line(&mut text, "advice", &advice);
            Some(FaultClass::UnlistedCode)
        }
    };
    if let Some(class) = class {
        let rule = config.policy.faults.rule(class);
        let order = match rule.limit {
            Some(0) => remedy(rule).1.to_owned(),
            Some(limit) => format!("{}, at most {limit} times", remedy(rule).1),
            None => format!("{}, until its deadline", remedy(rule).1),
        };
        line(&mut text, "order", &order);
        line(&mut text, "others", reaction(Signal::Fault(class), rule).1);
    }
    text
}

fn line(text: &mut String, name: &str, value: &str) {
    _ = writeln!(text, "  {name:<10}{value}");
}

fn explain(text: &mut String, row: &ServiceCode) {
    line(text, "class", row.class.name());
    line(text, "meaning", &row.meaning);
    if let Some(place) = row.place {
        let answers = match place {
            CodePlace::Submit => "a submit",
            CodePlace::Poll => "a poll",
            CodePlace::Both => "a submit or a poll",
        };
        line(text, "answers", answers);
    }
    if let Some(pause) = row.pause {
        line(text, "pause", &format!("nothing is submitted for {}", duration::render(pause)));
    }
    if !row.advice.is_empty() {
        line(text, "advice", &row.advice);
    }
    if row.is_overridden {
        line(text, "note", "your configuration says so, under [provider.faults]");
    }
}

fn class_object(class: Signal, config: &Config) -> Json {
    let rule = config.policy.faults.rule(class);
    let (remedy, others) = (remedy(rule).0, reaction(class, rule).0);
    json!({ "class": class.name(), "remedy": remedy, "limit": rule.limit, "others": others, "signal": signal(class) })
}

/// What the gateway itself means with a code; null if the code is not ours. Only codes of `/v1` have a `status`.
fn own_object(code: &str) -> Json {
    let native = native_code(code).map(|(status, meaning, advice)| (meaning, advice, Some(status)));
    let own = || own_code(code).map(|own| (own.meaning, own.advice, None));
    native.or_else(own).map_or(
        Json::Null,
        |(meaning, advice, status)| json!({ "meaning": meaning, "advice": advice, "status": status }),
    )
}

/// One shape for every code: what does not apply to it is null.
fn code_object(found: &Found<'_>, config: &Config) -> Json {
    let (code, row, class) = match found {
        Found::Pending(code) => (*code, None, None),
        Found::Unseen(code) if native_code(code).is_some() => (*code, None, None),
        Found::Unseen(code) => (*code, None, Some(FaultClass::UnlistedCode)),
        Found::Row(row) => (&*row.code, Some(row), Some(row.class)),
    };
    let is_pending = matches!(found, Found::Pending(_));
    let place = row.and_then(|row| row.place).map(|place| match place {
        CodePlace::Submit => "submit",
        CodePlace::Poll => "poll",
        CodePlace::Both => "both",
    });
    json!({
        "code": code,
        "is_listed": row.is_some() || is_pending,
        "is_prefix": row.is_some_and(|row| row.is_prefix),
        "place": place,
        "class": if is_pending { Some("pending") } else { class.map(FaultClass::name) },
        "meaning": row.map(|row| &row.meaning),
        "advice": row.map(|row| &row.advice),
        "pause_ms": row.and_then(|row| row.pause).map(quittance_lifecycle::time::millis),
        "corrected": row.is_some_and(|row| row.is_overridden),
        "quittance": own_object(code),
        "rule": class.map(|class| class_object(class.into(), config)),
    })
}

fn object(codes: &ServiceCodes, config: &Config) -> Json {
    let classes: Vec<Json> = Signal::ALL.map(|class| class_object(class, config)).into();
    let rows: Vec<Json> = codes.rows().into_iter().map(|row| code_object(&Found::Row(row), config)).collect();
    let own: Vec<Json> = OWN_CODES
        .iter()
        .map(|own| json!({ "code": own.code, "meaning": own.meaning, "advice": own.advice }))
        .collect();
    json!({ "dialect": codes.dialect().name(), "pending": PENDING, "classes": classes, "codes": rows, "quittance": own })
}
