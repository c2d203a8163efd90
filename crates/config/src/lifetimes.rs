//! How long answers live, where this differs from their kind: for a host, a kind, a provider, or several of them.
//! Rules apply in the order of the file, and a later rule overrides an earlier one.

use crate::Config;
use crate::check::{MARGIN_MAX, bad_name};
use crate::config_file::LIFETIMES;
use crate::duration::render;
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::kinds::KindTable;
use crate::providers::ProviderConfig;
use crate::setting::Defaults;
use crate::setting_name::Name;
use quittance::LifeRule;
use quittance_engine::targets::HostPattern;
use quittance_engine::with_life_rules;

/// The entries of `[[lifetimes]]` that apply. A rule for a provider that is not in use does not apply.
pub(crate) fn lifetimes(
    effective: &Effective,
    kinds: &KindTable,
    providers: &[ProviderConfig],
    errors: &mut Errors,
) -> Vec<LifeRule> {
    let mut rules: Vec<LifeRule> = Vec::new();
    for label in effective.labels(LIFETIMES) {
        let table = Name::of([LIFETIMES, &label]);
        let Some(rule) = errors.keep(rule(effective, kinds, &table)) else { continue };
        if applies(effective, &table, providers) {
            rules.push(rule);
            errors.keep(check_last(effective, kinds, &rules, &table));
        }
    }
    rules
}

fn applies(effective: &Effective, table: &Name, providers: &[ProviderConfig]) -> bool {
    let named = effective.text_at(&table.below("provider"));
    named.is_none_or(|named| providers.first().is_some_and(|provider| provider.name == named))
}

fn rule(effective: &Effective, kinds: &KindTable, table: &Name) -> Result<LifeRule, ConfigError> {
    if table.last().parse::<u32>().is_err() {
        let expected = "the number of a `[[lifetimes]]`, counted from 1 in the order of the file";
        return Err(bad_name(table, &effective.first_origin(table), expected));
    }
    let mut rule: LifeRule = Defaults::of(effective.preset()).section();
    effective.apply(table, &mut rule);
    if let Some(kind) = &rule.kind {
        kinds.check(effective, kind, &table.below("kind"))?;
    }
    if rule.life.is_none() && rule.margin.is_none() {
        let remedy = "set how long such answers live, `life = \"90s\"`, or how much of it a reused answer has left, \
                      `margin = \"30s\"`";
        return Err(ConfigError::incomplete(table, "life", remedy));
    }
    Ok(rule)
}

/// One host for each rule. Together they represent all hosts that the rules distinguish.
fn sites(rules: &[LifeRule]) -> impl Iterator<Item = String> {
    let of = |pattern: &HostPattern| match pattern.to_string() {
        everywhere if everywhere == "*" => String::new(),
        host => host.trim_start_matches("*.").to_owned(),
    };
    rules.iter().map(move |rule| rule.site.as_ref().map_or_else(String::new, of))
}

/// Checks that the last of these rules leaves every kind a margin that can be kept.
fn check_last(
    effective: &Effective,
    kinds: &KindTable,
    rules: &[LifeRule],
    table: &Name,
) -> Result<(), ConfigError> {
    let Some(last) = rules.last() else { return Ok(()) };
    let is_covered = |site: &String| last.site.as_ref().is_none_or(|pattern| pattern.covers(site));
    let sites: Vec<String> = sites(rules).filter(is_covered).collect();
    let mut covered = kinds.all();
    covered.retain(|kind| last.kind.as_deref().is_none_or(|named| named == kind.name));
    for (kind, site) in covered.iter().flat_map(|kind| sites.iter().map(move |site| (kind, site))) {
        let kind = with_life_rules(rules, kind, site);
        let Some(life) = kind.life else { continue };
        if kind.margin > life * 3 / 4 {
            let (margin, life) = (render(kind.margin), render(life));
            let problem = format!(
                "leaves answers of kind `{}` with a margin of {margin} in a life of {life}",
                kind.name
            );
            let remedy = format!("{MARGIN_MAX}; or set the `kind` of the rule");
            return Err(effective.unsound(table, problem, remedy));
        }
    }
    Ok(())
}

impl Config {
    /// Rules for the life of answers that do not apply, in words: because of a spelling mistake, or for a provider
    /// that is not in use yet.
    pub fn unused_lifetimes(&self) -> Vec<String> {
        let tables = self.effective.labels(LIFETIMES).into_iter().map(|label| Name::of([LIFETIMES, &label]));
        let unused = tables.filter(|table| !applies(&self.effective, table, &self.providers));
        let words = |table: Name| {
            let named = self.effective.text_at(&table.below("provider")).unwrap_or_default();
            format!("`{table}` does not apply: it is for the provider `{named}`, which is not the one in use")
        };
        unused.map(words).collect()
    }
}
