//! The entries of `[[budget]]`: limits of what may be spent, checked against the providers, tenants, kinds and pools
//! that they name.

use crate::Config;
use crate::config_file::BUDGET;
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::nearest::nearest;
use crate::providers::ProviderConfig;
use crate::setting::Defaults;
use crate::setting_name::Name;
use quittance::DEFAULT_TENANT;
use quittance_engine::{BudgetRule, BudgetScope, Hedging};
use quittance_lifecycle::Money;
use std::collections::BTreeSet;

/// The budgets, without those that are incomplete. A budget without a currency gets that of its provider, else that of
/// the first provider.
pub(crate) fn budgets(
    effective: &Effective,
    providers: &[ProviderConfig],
    errors: &mut Errors,
) -> Vec<BudgetRule> {
    effective.list(BUDGET, |label| errors.keep(budget(effective, &label, providers)))
}

fn budget(
    effective: &Effective,
    label: &str,
    providers: &[ProviderConfig],
) -> Result<BudgetRule, ConfigError> {
    let table = Name::of([BUDGET, label]);
    let missing = |key, remedy| ConfigError::incomplete(&table, key, remedy);
    let mut rule: BudgetRule = Defaults::of(effective.preset()).section();
    effective.apply(&table, &mut rule);
    label.clone_into(&mut rule.name);
    let limit: Option<Money> = effective.read_at(&table.below("limit"));
    let limit =
        limit.ok_or_else(|| missing("limit", "set what may be spent in one period, `limit = \"25.00\"`"))?;
    if limit == Money(0) {
        let remedy = "a budget of 0 buys nothing: write an amount above 0, or leave the budget out and pause the provider \
                      (`quittance provider pause`)";
        return Err(effective.unsound(&table.below("limit"), "is 0", remedy));
    }
    if effective.get(&table.below("period")).is_none() {
        return Err(missing("period", "add `period = \"hour\"`, \"day\" or \"month\""));
    }
    if rule.currency.is_empty() {
        let own = providers.iter().find(|provider| rule.scope.provider.as_ref() == Some(&provider.name));
        let currency = own.or(providers.first()).map(|provider| provider.currency.as_str());
        currency.unwrap_or(crate::prices::DEFAULT_CURRENCY).clone_into(&mut rule.currency);
    }
    Ok(rule)
}

/// Checks that hedging has a budget, and that no other budget has its name.
fn check_hedging(config: &Config) -> Result<(), ConfigError> {
    let [after, budget] = ["after", "money_per_day"].map(|key| Name::of(["hedging", key]));
    let is_set = |name: &Name| config.effective.get(name).is_some();
    if is_set(&after) && !is_set(&budget) {
        let remedy = "set `hedging.money_per_day`, the most that second purchases may cost in a day";
        return Err(config.effective.unsound(&after, "hedging needs a budget", remedy));
    }
    if is_set(&after) && config.budgets.iter().any(|rule| rule.name == Hedging::BUDGET) {
        let name = Name::of([BUDGET, Hedging::BUDGET]);
        let remedy = "give this one another name";
        return Err(config.effective.unsound(
            &name,
            "is the name of the budget of `hedging.money_per_day`",
            remedy,
        ));
    }
    Ok(())
}

/// Checks what depends on the rest of the configuration: providers, tenants and kinds. A pool may be missing, because
/// pools can be set at run time.
pub(crate) fn check(config: &Config, errors: &mut Errors) {
    errors.keep(check_hedging(config));
    for rule in &config.budgets {
        if errors.keep(check_names(config, rule)).is_some() {
            errors.keep(check_currency(config, rule));
        }
    }
}

fn check_names(config: &Config, rule: &BudgetRule) -> Result<(), ConfigError> {
    let table = Name::of([BUDGET, &rule.name]);
    let BudgetScope { tenant, kind, provider, .. } = &rule.scope;
    if let Some(kind) = kind {
        config.kinds.check(&config.effective, kind, &table.below("kind"))?;
    }
    if let Some(tenant) = tenant {
        let name = table.below("tenant");
        let unknown = |why: &str| config.effective.unsound(&name, "names a tenant that there is not", why);
        if config.tenants.is_empty() && tenant != DEFAULT_TENANT {
            let why = format!("add `{tenant}` as a `[[tenant]]`, or leave this out");
            return Err(unknown(&why));
        }
        config.check_tenant(tenant).map_err(|why| unknown(&why))?;
    }
    let Some(provider) = provider else { return Ok(()) };
    let known = || config.providers.iter().map(|known| known.name.clone());
    if known().any(|known| known == *provider) {
        return Ok(());
    }
    let hint = match nearest(provider, known()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "write the `name` of a `[[provider]]`".to_owned(),
    };
    let problem = format!("names the provider `{}`, and there is none", provider.escape_debug());
    Err(config.effective.unsound(&table.below("provider"), problem, hint))
}

/// The providers whose spending a budget counts.
fn covered<'a>(config: &'a Config, scope: &BudgetScope) -> Vec<&'a ProviderConfig> {
    let takes = |list: &Option<Vec<String>>, name: &Option<String>| match (list, name) {
        (Some(list), Some(name)) => list.contains(name),
        _ => true,
    };
    let counts = |provider: &&ProviderConfig| {
        scope.provider.as_ref().is_none_or(|name| *name == provider.name)
            && takes(&provider.kinds, &scope.kind)
            && takes(&provider.tenants, &scope.tenant)
    };
    config.providers.iter().filter(counts).collect()
}

/// Fails if a provider whose spending is counted has an account in another currency: its prices would be unknown to the
/// budget, which would stop.
fn check_currency(config: &Config, rule: &BudgetRule) -> Result<(), ConfigError> {
    let other = covered(config, &rule.scope).into_iter().find(|provider| provider.currency != rule.currency);
    let Some(ProviderConfig { name, currency, .. }) = other else { return Ok(()) };
    let table = Name::of([BUDGET, &rule.name]);
    let own = table.below("currency");
    let at = if config.effective.get(&own).is_some() { own } else { table };
    let problem =
        format!("counts {}, and covers the provider `{name}`, whose account is in {currency}", rule.currency);
    let remedy = match rule.scope.provider {
        Some(_) => format!("write `currency = \"{currency}\"` and the limit in it, or leave `currency` out"),
        None => "make one budget for each currency, each with a `provider`".to_owned(),
    };
    Err(config.effective.unsound(&at, problem, remedy))
}

impl Config {
    /// Budgets that allow no purchase, or count none, as far as the configuration shows it; each with what to do.
    pub fn budget_notes(&self) -> Vec<String> {
        let note = |rule: &BudgetRule| Some(format!("budget `{}`: {}", rule.name, self.budget_note(rule)?));
        self.budgets.iter().filter_map(note).collect()
    }

    fn budget_note(&self, rule: &BudgetRule) -> Option<String> {
        let BudgetRule { scope, limit, currency, .. } = rule;
        if let Some(pool) =
            scope.pool.as_ref().filter(|pool| self.pools.iter().all(|known| known.name != **pool))
        {
            let hint = match nearest(pool, self.pools.iter().map(|known| known.name.clone())) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "add it, or set it at run time with `quittance pool set`".to_owned(),
            };
            return Some(format!("the configuration has no pool `{}`: {hint}", pool.escape_debug()));
        }
        if self.providers.is_empty() {
            return None;
        }
        let covered = covered(self, scope);
        if covered.is_empty() {
            return Some(
                "no provider gets such orders, so it counts nothing: look at `kinds` and `tenants` of the providers".into(),
            );
        }
        let prices = self.prices_of(scope, &covered);
        let Some(least) = prices.iter().min() else {
            let what = match &scope.kind {
                Some(kind) => format!("the price of `{kind}` is not known"),
                None => "no price is known".to_owned(),
            };
            return Some(format!(
                "{what}, and a budget allows no purchase at a price that is not known: set `prices` or `provider.NAME.prices`"
            ));
        };
        (least > limit).then(|| {
            format!(
                "the limit of {limit} {currency} is smaller than the price of one answer, {least} {currency}: nothing is bought \
                 until `limit` is raised"
            )
        })
    }

    /// The known prices of the answers that these providers sell within this scope.
    fn prices_of(&self, scope: &BudgetScope, covered: &[&ProviderConfig]) -> BTreeSet<Money> {
        let kind_of = |name: &str| name.split('+').next().unwrap_or(name).to_owned();
        let pool_kind =
            self.pools.iter().find(|pool| scope.pool.as_ref() == Some(&pool.name)).map(|pool| &pool.kind);
        let kind = scope.kind.as_ref().or(pool_kind);
        let tables = covered.iter().map(|provider| provider.price_table(&self.prices));
        let listed = tables.flatten().filter(|(name, _)| kind.is_none_or(|kind| kind_of(name) == *kind));
        listed.map(|(_, price)| price).collect()
    }
}
