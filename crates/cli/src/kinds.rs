//! `quittance kinds`: the kinds of order, with the configuration applied: parameters, identity, life of the answer,
//! and solve times.

use crate::exit::{CliError, Exit};
use crate::output;
use anstyle::Style;
use clap::Args;
use quittance_config::{Config, duration, nearest};
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

pub(crate) fn run(args: &KindsArgs, config: &Config) -> Result<Exit, CliError> {
    let Some(name) = &args.name else {
        let kinds = config.kinds.all();
        let objects: Vec<Json> = kinds.iter().map(|kind| object(kind, config)).collect();
        return output::show(args.json, &objects, || table(&kinds, config));
    };
    let otherwise = ": `quittance kinds` lists those that have been described; add another in the config with `[kinds.NAME] new = true`";
    let kind = config.kinds.kind(name).ok_or_else(|| no_such_kind(name, config, otherwise))?;
    output::show(args.json, &object(&kind, config), || page(&kind, config))
}

/// An error that names a similar kind, or else ends with `otherwise`.
pub(crate) fn no_such_kind(name: &str, config: &Config, otherwise: &str) -> CliError {
    let meant = nearest(name, config.kinds.all().into_iter().map(|kind| kind.name.into_owned()));
    let hint = meant.map_or_else(|| otherwise.into(), |meant| format!("; did you mean `{meant}`?"));
    CliError::new(Exit::Usage, format!("there is no kind `{}`{hint}", name.escape_debug()))
}

fn life(kind: &Kind) -> String {
    kind.life.map_or_else(|| "for ever".into(), duration::render)
}

const fn uses(kind: &Kind) -> &'static str {
    if kind.single_use { "once" } else { "again" }
}

/// The mark of a kind that the operator has corrected.
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

/// What equal orders without an idempotency key mean, unless a setting changes it.
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
