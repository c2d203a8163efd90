//! `quittance errors`: the fault table. What each class of fault leads to, how often it is tried again, what it means for
//! everybody else, and which code of the provider belongs to which class; all with the configuration applied.

use crate::config::{Config, Dialect, span};
use anstyle::Style;
use clap::Args;
use clap::builder::PossibleValuesParser;
use quittance_classic::code::{PENDING, Place, Row, is_pending};
use quittance_classic::{FaultCodes, Profile};
use quittance_lifecycle::{FaultClass, FaultRule, Reaction, Remedy};
use serde_json::{Value as Json, json};
use std::fmt::Write;

const HEADING: Style = Style::new().bold();
const NOTE: Style = Style::new().dimmed();

#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct ErrorsArgs {
    /// One code: what it means, and what to do
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// Whose codes; the first configured provider's if not said
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(Profile::ALL.map(Profile::name)))]
    profile: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  quittance errors                                  the whole table
  quittance errors ERROR_ZERO_BALANCE               one code
  quittance errors --profile 2captcha ERROR_ZERO_BALANCE
  quittance errors --json | jq '.codes[].code'

Limits come from [retry.limits]; the class of a code can be corrected in the
config file under [provider.faults]. What is shown has both applied.

Exit codes: 0 shown, 3 not written, 4 configuration.";

/// The codes of the profile that was asked for, else of the first provider, with its corrections.
fn codes(args: &ErrorsArgs, config: &Config) -> FaultCodes {
    let asked = args.profile.as_deref().and_then(Profile::named);
    let configured = config.providers.iter().find(|provider| match asked {
        Some(asked) => provider.dialect == Dialect::Classic(asked),
        None => true,
    });
    match configured {
        Some(provider) => provider.codes(),
        None => FaultCodes::of(asked.unwrap_or(Profile::CaptchaAi)),
    }
}

pub(crate) fn run(args: &ErrorsArgs, config: &Config) -> String {
    let codes = codes(args, config);
    match (&args.code, args.json) {
        (None, false) => table(&codes, config),
        (None, true) => format!("{:#}\n", object(&codes, config)),
        (Some(code), false) => page(code.trim(), &codes, config),
        (Some(code), true) => format!("{:#}\n", code_object(&found(code.trim(), &codes), config)),
    }
}

const fn remedy(rule: FaultRule) -> &'static str {
    match rule.remedy {
        Remedy::BackOff => "tried again after a pause that grows",
        Remedy::AtOnce => "submitted again at once",
        Remedy::Hold => "held until a person has mended the account",
        Remedy::Tell => "the caller is told; never tried again",
    }
}

const fn reaction(rule: FaultRule) -> &'static str {
    match rule.provider {
        Reaction::Nothing => "nothing",
        Reaction::Slow => "every submit slows down",
        Reaction::Trip => "if it persists, one tries and the rest wait",
        Reaction::Pause => "no submit until a person says so",
    }
}

/// What brings it about, where no code does.
const fn signal(class: FaultClass) -> &'static str {
    match class {
        FaultClass::Busy => "no room, or too many requests; HTTP 429",
        FaultClass::Unreachable => "nothing was sent: connection refused, no such host, no TLS",
        FaultClass::Unknown => "sent, and then a timeout, a reset or a 5xx: a doubt",
        FaultClass::Unsolvable => "taken, tried and given up",
        FaultClass::Broke => "no money, or the plan has ended",
        FaultClass::Account => "the key or our address is not accepted",
        FaultClass::Caller => "the order makes no sense to the provider",
        FaultClass::UnknownCode => "a code that nobody has seen; logged once with the raw answer",
    }
}

fn table(codes: &FaultCodes, config: &Config) -> String {
    let mut text = String::new();
    _ = writeln!(
        text,
        "{HEADING}{:<14}{:>6}  {:<44}everybody else{HEADING:#}",
        "class", "limit", "the order"
    );
    for class in FaultClass::ALL {
        let rule = config.policy.faults.rule(class);
        _ = writeln!(text, "{:<14}{:>6}  {:<44}{}", class.name(), rule.limit, remedy(rule), reaction(rule));
        _ = writeln!(text, "{:<22}{NOTE}{}{NOTE:#}", "", signal(class));
    }
    let profile = codes.profile().name();
    _ = writeln!(text, "\n{HEADING}{:<38}{:<14}meaning at {profile}{HEADING:#}", "code", "class");
    _ = writeln!(
        text,
        "{:<38}{:<14}the task is there and not solved yet: keep polling",
        PENDING.join(", "),
        "pending"
    );
    for row in codes.rows() {
        let mark = if row.is_overridden { "*" } else { "" };
        let class = format!("{}{mark}", row.class.name());
        _ = writeln!(text, "{:<38}{class:<14}{}", spelled(&row), row.meaning);
    }
    if codes.rows().any(|row| row.is_overridden) {
        text.push_str("* corrected by your configuration\n");
    }
    text
}

fn spelled(row: &Row<'_>) -> String {
    format!("{}{}", row.code, if row.is_prefix { "..." } else { "" })
}

/// A code of the table, or one that is not in it.
enum Found<'a> {
    Pending(&'a str),
    Row(Row<'a>),
    Unseen(&'a str),
}

fn found<'a>(code: &'a str, codes: &'a FaultCodes) -> Found<'a> {
    match codes.row(code) {
        _ if is_pending(code) => Found::Pending(code),
        Some(row) => Found::Row(row),
        None => Found::Unseen(code),
    }
}

fn page(code: &str, codes: &FaultCodes, config: &Config) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| _ = writeln!(text, "  {name:<10}{value}");
    let class = match found(code, codes) {
        Found::Pending(_) => {
            line("meaning", "the task is there and not solved yet");
            line("then", "it is polled again, until the order's deadline");
            None
        }
        Found::Row(row) => {
            line("class", row.class.name());
            line("meaning", row.meaning);
            line(
                "answers",
                match row.place {
                    Place::Submit => "a submit",
                    Place::Poll => "a poll",
                    Place::Both => "a submit or a poll",
                },
            );
            if let Some(pause) = row.pause {
                line("pause", &format!("it wants to be left alone for {}", span::render(pause)));
            }
            if !row.advice.is_empty() {
                line("advice", row.advice);
            }
            if row.is_overridden {
                line("note", "your configuration says so, under [provider.faults]");
            }
            Some(row.class)
        }
        Found::Unseen(_) => {
            line("class", FaultClass::UnknownCode.name());
            line("meaning", "nobody has seen this code");
            line("advice", "say what it means in the config file: [provider.faults]");
            Some(FaultClass::UnknownCode)
        }
    };
    if let Some(class) = class {
        let rule = config.policy.faults.rule(class);
        line(
            "order",
            &format!("{}, at most {} times", remedy(rule), rule.limit).replace(", at most 0 times", ""),
        );
        line("others", reaction(rule));
    }
    format!("{HEADING}{} at {}{HEADING:#}\n{text}", code.escape_debug(), codes.profile().name())
}

fn class_object(class: FaultClass, config: &Config) -> Json {
    let rule = config.policy.faults.rule(class);
    let remedy = match rule.remedy {
        Remedy::BackOff => "back_off",
        Remedy::AtOnce => "at_once",
        Remedy::Hold => "hold",
        Remedy::Tell => "tell",
    };
    let others = match rule.provider {
        Reaction::Nothing => "nothing",
        Reaction::Slow => "slow",
        Reaction::Trip => "trip",
        Reaction::Pause => "pause",
    };
    json!({ "class": class.name(), "remedy": remedy, "limit": rule.limit, "others": others, "signal": signal(class) })
}

fn code_object(found: &Found<'_>, config: &Config) -> Json {
    match found {
        Found::Pending(code) => json!({ "code": code, "class": "pending" }),
        Found::Unseen(code) => {
            json!({ "code": code, "class": FaultClass::UnknownCode.name(), "seen": false,
                "rule": class_object(FaultClass::UnknownCode, config) })
        }
        Found::Row(row) => json!({
            "code": row.code,
            "is_prefix": row.is_prefix,
            "place": match row.place {
                Place::Submit => "submit",
                Place::Poll => "poll",
                Place::Both => "both",
            },
            "class": row.class.name(),
            "meaning": row.meaning,
            "advice": row.advice,
            "pause_ms": row.pause.map(quittance_lifecycle::time::millis),
            "corrected": row.is_overridden,
            "rule": class_object(row.class, config),
        }),
    }
}

fn object(codes: &FaultCodes, config: &Config) -> Json {
    let classes: Vec<Json> = FaultClass::ALL.map(|class| class_object(class, config)).into();
    let rows: Vec<Json> = codes.rows().map(|row| code_object(&Found::Row(row), config)).collect();
    json!({ "profile": codes.profile().name(), "pending": PENDING, "classes": classes, "codes": rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::config_with;

    fn ask(code: Option<&str>, profile: Option<&str>, json: bool, overrides: &[&str]) -> String {
        let args = ErrorsArgs { code: code.map(Into::into), profile: profile.map(Into::into), json };
        anstream::adapter::strip_str(&run(&args, &config_with(overrides))).to_string()
    }

    const PROVIDER: [&str; 3] = [
        "provider.main.profile=2captcha",
        "provider.main.url=https://example.com",
        "provider.main.key_env=K",
    ];

    #[test]
    fn the_whole_table_has_every_class_and_every_code() {
        let text = ask(None, None, false, &[]);
        for class in FaultClass::ALL {
            assert!(text.lines().any(|line| line.starts_with(class.name())), "{}", class.name());
        }
        for profile in Profile::ALL {
            let text = ask(None, Some(profile.name()), false, &[]);
            for row in FaultCodes::of(profile).rows() {
                assert!(text.contains(row.code) && text.contains(row.meaning), "{}", row.code);
            }
        }
    }

    #[test]
    fn limits_and_corrections_of_the_configuration_are_in_it() {
        let own =
            [&PROVIDER[..], &["retry.limits.busy=9", "provider.main.faults.ERROR_BAD_PROXY=busy"]].concat();
        let text = ask(None, None, false, &own);
        assert!(text.contains("meaning at 2captcha") && text.contains("busy*"), "{text}");
        let page = ask(Some("ERROR_BAD_PROXY"), None, false, &own);
        assert!(page.contains("at most 9 times") && page.contains("your configuration"), "{page}");
        let object: Json = serde_json::from_str(&ask(None, None, true, &own)).unwrap();
        assert_eq!(object["classes"][0]["limit"], 9);
        assert!(object["codes"].as_array().unwrap().iter().any(|row| row["corrected"] == true));
    }

    #[test]
    fn the_same_code_means_what_its_provider_means_by_it() {
        let at = |profile| ask(Some("ERROR_ZERO_BALANCE"), Some(profile), false, &[]);
        assert!(at("2captcha").contains("broke") && at("captchaai").contains("busy"));
        assert!(
            !at("2captcha").contains("at most"),
            "what is never retried has no number: {}",
            at("2captcha")
        );
    }

    #[test]
    fn a_pending_task_and_a_code_that_nobody_has_seen_are_explained_too() {
        assert!(ask(Some("CAPCHA_NOT_READY"), None, false, &[]).contains("polled again"));
        let unseen = ask(Some("ERROR_MOON_PHASE"), None, false, &[]);
        assert!(unseen.contains("unknown code") && unseen.contains("[provider.faults]"), "{unseen}");
        let object: Json = serde_json::from_str(&ask(Some("ERROR_MOON_PHASE"), None, true, &[])).unwrap();
        assert_eq!((&object["class"], &object["seen"]), (&json!("unknown code"), &json!(false)));
    }
}
