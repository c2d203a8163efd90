//! One row of the table of settings. A row is found by its name in the file and in flags, and by its variable.

use crate::Config;
use crate::nearest::nearest;
use crate::setting_name::Name;
use crate::setting_shape::SettingShape;
use crate::setting_table::settings;
use crate::value::SettingValue;
use quittance::{ApiKey, DEFAULT_TENANT, LifeRule, PoolSpec, ProviderSettings};
use quittance_engine::{AtLimit, BudgetPeriod, BudgetRule, BudgetScope, Settings, Throttle};
use quittance_gateway::{KeyDigest, TenantSettings};
use quittance_lifecycle::{Kind, Money, Preset};
use quittance_ports::Goal;
use quittance_protocol::kinds::open_kind;
use std::collections::BTreeMap;

pub(crate) const PREFIX: &str = "QUITTANCE_";

#[derive(Debug)]
pub(crate) struct Setting {
    /// The name of the setting. `*` stands for a part that the operator chooses: the name of a provider, a kind, a
    /// host, a code.
    pub(crate) path: &'static str,
    pub(crate) shape: SettingShape,
    pub(crate) help: &'static str,
    /// Reads the default from the struct that the setting sets, so that there is no second copy of the default.
    pub(crate) default: fn(&Defaults) -> Option<SettingValue>,
    pub(crate) set: Set,
}

/// A struct with fields that settings set.
pub(crate) trait Section: Sized {
    fn of(defaults: &Defaults) -> &Self;
    fn setter(set: &Set) -> Option<fn(&mut Self, &SettingValue)>;
}

macro_rules! sections {
    ($($section:ident in $field:ident;)*) => {
        /// The field that a setting sets.
        #[derive(Debug)]
        pub(crate) enum Set {
            /// No field: code reads the setting by its name.
            ByName,
            $($section(fn(&mut $section, &SettingValue)),)*
        }

        /// Every section with its defaults.
        pub(crate) struct Defaults { $($field: $section,)* }

        $(impl Section for $section {
            fn of(defaults: &Defaults) -> &Self {
                &defaults.$field
            }

            fn setter(set: &Set) -> Option<fn(&mut Self, &SettingValue)> {
                match set {
                    Set::$section(setter) => Some(*setter),
                    _ => None,
                }
            }
        })*
    };
}
sections! {
    Config in config;
    Settings in engine;
    Throttle in throttle;
    ProviderSettings in provider;
    TenantSettings in tenant;
    PoolSpec in pool;
    BudgetRule in budget;
    LifeRule in lifetime;
    Kind in kind;
}

impl Defaults {
    pub(crate) fn of(preset: Preset) -> Self {
        Self {
            config: Config::new(preset),
            engine: Settings::new(0, |_| None),
            throttle: Throttle::DEFAULT,
            provider: ProviderSettings::new("", "", ApiKey::new("")),
            tenant: TenantSettings::new("", KeyDigest([0; 32])),
            pool: PoolSpec {
                name: String::new(),
                tenant: DEFAULT_TENANT.into(),
                kind: String::new(),
                params: BTreeMap::new(),
                goal: Goal::Fixed { size: 0 },
                budget: None,
                hours: Vec::new(),
                min_life: None,
                is_on: true,
            },
            budget: BudgetRule {
                name: String::new(),
                scope: BudgetScope::default(),
                period: BudgetPeriod::Day,
                limit: Money(0),
                currency: String::new(),
                at_limit: AtLimit::default(),
            },
            lifetime: LifeRule { kind: None, site: None, life: None, margin: None },
            kind: open_kind(""),
        }
    }

    /// The defaults of one section.
    pub(crate) fn section<S: Section + Clone>(&self) -> S {
        S::of(self).clone()
    }
}

impl Setting {
    /// The default value; `None` if there is none.
    pub(crate) fn default(&self, defaults: &Defaults) -> Option<SettingValue> {
        match ((self.default)(defaults), self.shape) {
            (Some(SettingValue::Count(thousandths)), SettingShape::Ratio) => {
                u32::try_from(thousandths).ok().map(SettingValue::Ratio)
            }
            (None, shape) if !self.is_open() => shape.word().map(SettingValue::from),
            (value, _) => value,
        }
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('.')
    }

    /// Whether the row has a `*`, and so stands for any number of settings.
    pub(crate) fn is_open(&self) -> bool {
        self.path.contains('*')
    }

    pub(crate) fn leaf(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> Name {
        Name::of(self.segments())
    }

    /// Whether the setting belongs to the entries of this list: `provider`, `tenant`, `budget`, `lifetimes` or `pools`.
    pub(crate) fn is_in(&self, list: &str) -> bool {
        self.segments().next() == Some(list)
    }

    /// The environment variable. Hosts and codes have characters that no variable can have in its name, so rows that end
    /// with one of them have no variable.
    pub(crate) fn variable(&self) -> Option<String> {
        (self.leaf() != "*" || ["reuse.kinds.*", "prices.*"].contains(&self.path))
            .then(|| PREFIX.to_owned() + &self.path.to_ascii_uppercase().replace('.', "_"))
    }

    /// Whether the row is for this name, or for names below it if `name` is shorter.
    fn begins_with(&self, name: &Name) -> bool {
        let mut own = self.segments();
        name.segments().all(|found| own.next().is_some_and(|part| part == "*" || part == found))
    }

    /// The part of the variable's name that stands for the `*` of this row; `None` if the variable is not for this
    /// row.
    fn open_part<'a>(&self, variable: &'a str) -> Option<&'a str> {
        let own = self.variable()?;
        let (before, after) = own.split_once('*')?;
        variable.strip_prefix(before)?.strip_suffix(after).filter(|part| !part.is_empty())
    }

    /// This row's name, with each `*` replaced by the part of `name` at the same place.
    pub(crate) fn filled_in(&self, name: &Name) -> Name {
        let mut given = name.segments();
        Name::of(self.segments().map(|own| match (own, given.next()) {
            ("*", Some(given)) => given,
            _ => own,
        }))
    }

    fn depth(&self) -> usize {
        self.segments().count()
    }
}

/// The row of a setting.
pub(crate) fn setting(name: &Name) -> Option<&'static Setting> {
    settings().find(|setting| setting.depth() == name.segments().len() && setting.begins_with(name))
}

/// The row of exactly this path.
pub(crate) fn row(path: &str) -> &'static Setting {
    settings().find(|setting| setting.path == path).expect("the table has a row for every path in the code")
}

/// Whether there are settings below this name.
pub(crate) fn is_table(name: &Name) -> bool {
    settings().any(|setting| setting.depth() > name.segments().len() && setting.begins_with(name))
}

fn as_variable(label: &str) -> String {
    label.to_ascii_uppercase().replace('-', "_")
}

/// The setting of a variable. `labels` are the names of providers, tenants and pools: a dash in a name is an
/// underscore in a variable.
pub(crate) fn by_variable(
    variable: &str,
    labels: &[(&'static str, String)],
) -> Option<(&'static Setting, Name)> {
    let closed = settings().find(|row| !row.is_open() && row.variable().as_deref() == Some(variable));
    if let Some(setting) = closed {
        return Some((setting, setting.name()));
    }
    let open = settings().filter_map(|setting| Some((setting, setting.open_part(variable)?)));
    // `key_env` rather than `env` of an entry called `key`: the row with the longest part of its own fits best.
    let (setting, part) = open.min_by_key(|(_, part)| part.len())?;
    let label = labels.iter().map(|(_, label)| label.clone()).find(|label| as_variable(label) == part);
    let label = label.unwrap_or_else(|| part.to_ascii_lowercase());
    let name = Name::of(setting.segments().map(|own| if own == "*" { label.as_str() } else { own }));
    Some((setting, name))
}

/// The setting that was probably meant: the one with the nearest spelling, or with this key in another table.
pub(crate) fn meant(name: &Name) -> Option<String> {
    let as_deep = settings().filter(|setting| setting.depth() == name.segments().len());
    let found = nearest(&name.to_string(), as_deep.map(|setting| setting.filled_in(name).to_string()));
    let elsewhere =
        || settings().find(|row| !row.is_open() && row.leaf() == name.last()).map(|row| row.path.into());
    found.or_else(elsewhere)
}

/// The variable that was probably meant.
pub(crate) fn meant_variable(variable: &str, labels: &[(&'static str, String)]) -> Option<String> {
    let closed = settings().filter(|row| !row.is_open()).filter_map(Setting::variable);
    let open = labels.iter().flat_map(|(list, label)| {
        let rows = settings().filter(move |row| row.is_in(list)).filter_map(Setting::variable);
        rows.map(move |variable| variable.replace('*', &as_variable(label)))
    });
    nearest(variable, closed.chain(open))
}
