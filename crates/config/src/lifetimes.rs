//! How long answers live where that is not what their kind says: for a host, a kind, a provider, or several of them. Rows
//! are read in the order of the file, and what a later one says counts.

use super::Config;
use super::check::{PROMISED, known_kind};
use super::effective::Effective;
use super::error::{ConfigError, Wrong};
use super::file::LIFETIMES;
use super::name::Name;
use super::origin::Origin;
use super::span::render;
use super::types::{KindTable, ProviderConfig};
use quittance::LifeRule;
use quittance_engine::targets::HostPattern;
use quittance_engine::with_life_rules;

/// The entries of `[[lifetimes]]` that hold: those of a provider that is not asked hold for nobody.
pub(crate) fn lifetimes(
    effective: &Effective,
    kinds: &KindTable,
    providers: &[ProviderConfig],
    wrong: &mut Wrong,
) -> Vec<LifeRule> {
    let mut rules: Vec<LifeRule> = Vec::new();
    for label in effective.of_list(LIFETIMES) {
        let table = Name::of([LIFETIMES, &label]);
        let Some(rule) = wrong.keep(rule(effective, kinds, &table)) else { continue };
        if holds(effective, &label, providers) {
            rules.push(rule);
            wrong.keep(fits_together(effective, kinds, &rules, &table));
        }
    }
    rules
}

fn holds(effective: &Effective, label: &str, providers: &[ProviderConfig]) -> bool {
    let named = effective.text_at(&Name::of([LIFETIMES, label, "provider"]));
    named.is_none_or(|named| providers.first().is_some_and(|asked| asked.name == named))
}

fn origin(effective: &Effective, table: &Name) -> Origin {
    effective.below(table).next().map_or(Origin::Default, |(_, held)| held.origin.clone())
}

fn rule(effective: &Effective, kinds: &KindTable, table: &Name) -> Result<LifeRule, ConfigError> {
    if table.last().parse::<u32>().is_err() {
        return Err(ConfigError::BadValue {
            name: table.to_string(),
            at: origin(effective, table),
            found: "a wrong name".into(),
            expected: "the number of a `[[lifetimes]]`, counted from 1 in the order of the file".into(),
        });
    }
    let text = |key| effective.text_at(&table.below(key));
    let span = |key| effective.span_at(&table.below(key));
    let (kind, life, margin) = (text("kind"), span("life"), span("margin"));
    if let Some(kind) = &kind {
        let named = table.below("kind");
        let at = effective.get(&named).map_or(Origin::Default, |held| held.origin.clone());
        known_kind(kinds, kind, &named, &at)?;
    }
    if life.is_none() && margin.is_none() {
        return Err(ConfigError::Incomplete {
            table: table.to_string(),
            key: "life",
            remedy: "say how long such answers live, `life = \"90s\"`, or how much of it a reused answer has left, `margin = \"30s\"`"
                .into(),
        });
    }
    let pattern = |host: String| HostPattern::parse(&host).expect("patterns are checked when they are read");
    Ok(LifeRule { kind, site: text("host").map(pattern), life, margin })
}

/// Hosts that stand for all others that the rules may tell apart from one another.
fn sites(rules: &[LifeRule]) -> impl Iterator<Item = String> {
    let of = |pattern: &HostPattern| match pattern.to_string() {
        everywhere if everywhere == "*" => String::new(),
        // It is one of those that the pattern is for.
        host => host.trim_start_matches("*.").to_owned(),
    };
    rules.iter().map(move |rule| rule.site.as_ref().map_or_else(String::new, of))
}

/// That the last of these rules leaves no kind with a promise that cannot be kept.
fn fits_together(
    effective: &Effective,
    kinds: &KindTable,
    rules: &[LifeRule],
    table: &Name,
) -> Result<(), ConfigError> {
    let Some(last) = rules.last() else { return Ok(()) };
    let is_meant = |site: &String| last.site.as_ref().is_none_or(|pattern| pattern.covers(site));
    let sites: Vec<String> = sites(rules).filter(is_meant).collect();
    let mut meant = kinds.all();
    meant.retain(|kind| last.kind.as_deref().is_none_or(|named| named == kind.name));
    for (kind, site) in meant.iter().flat_map(|kind| sites.iter().map(move |site| (kind, site))) {
        let kind = with_life_rules(rules, kind, site);
        let Some(life) = kind.life else { continue };
        if kind.margin > life * 3 / 4 {
            let (margin, life) = (render(kind.margin), render(life));
            return Err(ConfigError::Unsound {
                name: table.to_string(),
                at: origin(effective, table),
                problem: format!(
                    "leaves answers of kind `{}` with a margin of {margin} in a life of {life}",
                    kind.name
                ),
                remedy: format!("{PROMISED}; or name the `kind` that is meant"),
            });
        }
    }
    Ok(())
}

/// Rows that hold for nobody now, in words: a slip of the fingers, or a provider for another day.
pub fn idle(config: &Config) -> Vec<String> {
    let labels = config.effective.of_list(LIFETIMES).into_iter();
    let idle = labels.filter(|label| !holds(&config.effective, label, &config.providers));
    let words = |label: String| {
        let table = Name::of([LIFETIMES, &label]);
        let named = config.effective.text_at(&table.below("provider")).unwrap_or_default();
        format!(
            "`{table}` holds for nobody: it is about the provider `{named}`, which is not the one that is asked"
        )
    };
    idle.map(words).collect()
}
