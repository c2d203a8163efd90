//! `quittance kinds`: the kinds of order, as they hold here: what each takes, what tells two orders of it apart, how long
//! its answer lives and how long it takes.

use anstyle::Style;
use clap::Args;
use quittance_config::nearest;
use quittance_config::{Config, duration};
use quittance_lifecycle::{Field, Identity, Kind, Reuse, Shape};
use serde_json::{Value as Json, json};
use std::fmt::Write;

const HEADING: Style = Style::new().bold();
const NOTE: Style = Style::new().dimmed();

#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct KindsArgs {
    /// Show only this kind, with its parameters
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print JSON instead
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Examples:
  quittance kinds                        all kinds, one per line
  quittance kinds recaptcha_v2           parameters, lifetime and solve times
  quittance kinds --json | jq '.[].name'

[kinds.NAME] in the config file corrects a lifetime, a margin or solve times;
the output has that applied. To add a kind that is not listed, set `new = true`
there. Its parameters are passed on unchanged, and each of them distinguishes
two orders.

Exit codes: 0 shown, 2 unknown kind, 3 not written, 4 configuration.";

#[derive(Debug, thiserror::Error)]
#[error("there is no kind `{}`{}", name.escape_debug(), match meant {
    Some(meant) => format!("; did you mean `{meant}`?"),
    None => ": `quittance kinds` lists those that have been described; add another in the config with `[kinds.NAME] new = true`".into(),
})]
pub(crate) struct NoSuchKind {
    name: String,
    meant: Option<String>,
}

pub(crate) fn run(args: &KindsArgs, config: &Config) -> Result<String, NoSuchKind> {
    let kinds = config.kinds.all();
    let Some(name) = &args.name else {
        let all = || Json::from(kinds.iter().map(|kind| object(kind, config)).collect::<Vec<_>>());
        return Ok(if args.json { format!("{:#}\n", all()) } else { table(&kinds, config) });
    };
    match config.kinds.kind(name) {
        Some(kind) if args.json => Ok(format!("{:#}\n", object(&kind, config))),
        Some(kind) => Ok(page(&kind, config)),
        None => {
            let meant = nearest(name, kinds.into_iter().map(|kind| kind.name.into_owned()));
            Err(NoSuchKind { name: name.clone(), meant })
        }
    }
}

fn life(kind: &Kind) -> String {
    kind.life.map_or_else(|| "for ever".into(), duration::render)
}

const fn uses(kind: &Kind) -> &'static str {
    if kind.single_use { "once" } else { "again" }
}

/// What the operator has corrected carries a mark.
fn mark(kind: &Kind, config: &Config) -> &'static str {
    if config.kinds.is_corrected(&kind.name) { "*" } else { "" }
}

fn table(kinds: &[Kind], config: &Config) -> String {
    let mut text = format!(
        "{HEADING}{:<22}{:>9}{:>8}  {:<6} {:>5} {:>5} {:>5}  needs{HEADING:#}\n",
        "kind", "life", "margin", "used", "p50", "p95", "p99"
    );
    for kind in kinds {
        let name = format!("{}{}", kind.name, mark(kind, config));
        let pace = [kind.pace.p50, kind.pace.p95, kind.pace.p99].map(duration::render);
        let needs: Vec<&str> =
            kind.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
        _ = writeln!(
            text,
            "{name:<22}{:>9}{:>8}  {:<6} {:>5} {:>5} {:>5}  {NOTE}{}{NOTE:#}",
            life(kind),
            duration::render(kind.margin),
            uses(kind),
            pace[0],
            pace[1],
            pace[2],
            needs.join(", "),
        );
    }
    if kinds.iter().any(|kind| config.kinds.is_corrected(&kind.name)) {
        text.push_str("* corrected by your configuration\n");
    }
    text
}

fn page(kind: &Kind, config: &Config) -> String {
    let mut text = format!("{HEADING}{}{HEADING:#}\n", kind.name);
    let once = if kind.single_use { "the site takes it once" } else { "it can be used again" };
    let Kind { pace, margin, .. } = kind;
    let (p50, p95, p99) =
        (duration::render(pace.p50), duration::render(pace.p95), duration::render(pace.p99));
    _ = writeln!(text, "  answer      lives {} from its solve, and {once}", life(kind));
    _ = writeln!(
        text,
        "  margin      {} of that are left when an answer is reused",
        duration::render(*margin)
    );
    _ = writeln!(text, "  pace        half within {p50}, 95 % within {p95}, 99 % within {p99}");
    _ = writeln!(text, "  reuse       {}", reuse(kind));
    _ = writeln!(text, "  equal       {}", same(kind));
    if config.kinds.is_corrected(&kind.name) {
        _ = writeln!(text, "  {NOTE}Your configuration corrects it under [kinds.{}].{NOTE:#}", kind.name);
    }
    _ = writeln!(
        text,
        "\n{HEADING}  {:<24}{:<10}{:<11}meaning{HEADING:#}",
        "parameter", "needed", "identifies"
    );
    for field in kind.fields {
        let needed = if field.required { "yes" } else { "no" };
        let identifies = if identifies(kind, field) { "yes" } else { "no" };
        _ = writeln!(text, "  {:<24}{needed:<10}{identifies:<11}{}", field.name, meaning(field));
    }
    text
}

/// What orders without an idempotency key are to each other, unless a setting says otherwise.
const fn reuse(kind: &Kind) -> &'static str {
    match Reuse::by_kind(kind) {
        Reuse::Exclusive => "exclusive by default: each order without a key gets an answer of its own",
        Reuse::Shared => "shared by default: equal orders get the same answer",
    }
}

fn same(kind: &Kind) -> String {
    let mut same = match kind.identity {
        Identity::Fields => String::from("if the parameters that identify it are the same"),
        Identity::Everything => String::from("if every parameter that matters is the same"),
    };
    if kind.bound_to_address {
        same.push_str("; the proxy always counts");
    }
    same
}

fn identifies(kind: &Kind, field: &Field) -> bool {
    match kind.identity {
        Identity::Fields => field.identifies,
        Identity::Everything => !kind.immaterial.contains(&field.name),
    }
}

fn meaning(field: &Field) -> String {
    let shape = match field.shape {
        Shape::Text => "text".into(),
        Shape::Document => "text in base64".into(),
        Shape::PageAddress => "http(s) address of the page".into(),
        Shape::VendorAddress => "address or host of the captcha's vendor".into(),
        Shape::File { bytes_min, bytes_max } => format!("file of {bytes_min} to {bytes_max} bytes"),
    };
    match field.default {
        Some(default) if !default.is_empty() => format!("{shape}; left out: {default}"),
        _ if !field.substitutes.is_empty() => {
            format!("{shape}; not needed with {}", field.substitutes.join(" or "))
        }
        _ => shape,
    }
}

fn object(kind: &Kind, config: &Config) -> Json {
    let millis = quittance_lifecycle::time::millis;
    let fields: Vec<Json> = kind
        .fields
        .iter()
        .map(|field| {
            json!({
                "name": field.name,
                "shape": match field.shape {
                    Shape::Text | Shape::Document => "text",
                    Shape::PageAddress => "page address",
                    Shape::VendorAddress => "vendor address",
                    Shape::File { .. } => "file",
                },
                "required": field.required,
                "identifies": identifies(kind, field),
                "default": field.default,
            })
        })
        .collect();
    json!({
        "name": kind.name,
        "life_ms": kind.life.map(millis),
        "margin_ms": millis(kind.margin),
        "single_use": kind.single_use,
        "pace_ms": { "p50": millis(kind.pace.p50), "p95": millis(kind.pace.p95), "p99": millis(kind.pace.p99) },
        "bound_to_address": kind.bound_to_address,
        "corrected": config.kinds.is_corrected(&kind.name),
        "fields": fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config_with;

    fn ask(name: Option<&str>, json: bool, overrides: &[&str]) -> Result<String, NoSuchKind> {
        let args = KindsArgs { name: name.map(Into::into), json };
        run(&args, &config_with(overrides)).map(|text| anstream::adapter::strip_str(&text).to_string())
    }

    #[test]
    fn every_kind_has_its_line_and_every_parameter_its_own() {
        let all = ask(None, false, &[]).unwrap();
        for kind in quittance_protocol::kinds::kinds() {
            assert!(all.lines().any(|line| line.split(' ').next() == Some(&kind.name)), "{}", kind.name);
            let page = ask(Some(&kind.name), false, &[]).unwrap();
            for field in kind.fields {
                assert!(page.contains(&format!("\n  {} ", field.name)), "{page}");
            }
        }
    }

    #[test]
    fn what_the_operator_has_corrected_is_shown_and_marked() {
        let corrected = ["kinds.turnstile.life=200s", "kinds.brand_new.new=true"];
        let all = ask(None, false, &corrected).unwrap();
        assert!(all.contains("turnstile*") && all.contains("brand_new*") && all.contains("200s"), "{all}");
        assert!(!ask(None, false, &[]).unwrap().contains('*'));
        let page = ask(Some("turnstile"), false, &corrected).unwrap();
        assert!(page.contains("lives 200s") && page.contains("[kinds.turnstile]"), "{page}");
        let object: Json = serde_json::from_str(&ask(Some("turnstile"), true, &corrected).unwrap()).unwrap();
        assert_eq!((&object["life_ms"], &object["corrected"]), (&json!(200_000), &json!(true)));
        assert_eq!(
            object["fields"][0],
            json!({
                "name": "sitekey", "shape": "text", "required": true, "identifies": true, "default": null,
            })
        );
    }

    #[test]
    fn a_kind_that_is_not_there_is_an_error_that_names_the_nearest() {
        let error = ask(Some("recaptcha_v22"), false, &[]).unwrap_err().to_string();
        assert!(error.contains("recaptcha_v22") && error.contains("did you mean `recaptcha_v2`?"), "{error}");
        let error = ask(Some("moon_phase"), true, &[]).unwrap_err().to_string();
        assert!(error.contains("`quittance kinds` lists"), "{error}");
    }
}
