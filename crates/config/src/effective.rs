//! The settings in force: all layers merged, with defaults for what is not set, each value with its origin.

use crate::address::Scheme;
use crate::config_file::LIFETIMES;
use crate::error::ConfigError;
use crate::layers::{Entry, labels};
use crate::origin::SettingOrigin;
use crate::setting::{Defaults, Section, Setting, row, setting};
use crate::setting_name::Name;
use crate::setting_shape::SettingShape;
use crate::setting_table::settings;
use crate::value::{Raw, SettingField, SettingValue};
use quittance_lifecycle::Preset;
use quittance_protocol::Dialect;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

const HOME_DEFAULT: &str = "./quittance-data";

/// A value with its origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) value: SettingValue,
    pub(crate) origin: SettingOrigin,
}

/// Every setting that has a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Effective {
    /// The config file, if there is one.
    pub(crate) file: Option<PathBuf>,
    held: BTreeMap<Name, Held>,
    /// The names of providers, tenants and pools, each with its list, in the order in which they first appeared.
    labels: Vec<(&'static str, String)>,
}

impl Effective {
    /// Merges entries. A later entry overrides an earlier one of its name.
    pub(crate) fn of(file: Option<PathBuf>, entries: Vec<Entry>) -> Self {
        let labels = labels(&entries);
        let held =
            entries.into_iter().map(|entry| (entry.name, Held { value: entry.value, origin: entry.origin }));
        let mut effective = Self { file, held: held.collect(), labels };
        effective.fill_in();
        effective
    }

    fn fill_in(&mut self) {
        let (usual, chosen) = (Defaults::of(Preset::Patient), Defaults::of(self.preset()));
        for setting in settings().filter(|setting| !setting.is_open()) {
            let Some(value) = setting.default(&chosen) else { continue };
            let origin = match setting.default(&usual).as_ref() == Some(&value) {
                true => SettingOrigin::Default,
                false => SettingOrigin::Follows("retry.preset".into()),
            };
            let value = self.beside_the_file(setting, value);
            self.fill(setting.name(), value, origin);
        }
        // Only a node on a shared store needs a folder: an embedded store has its own.
        if Scheme::of(&self.text("store.url")).is_some_and(Scheme::is_shared) {
            let home = row("store.home");
            let value = self.beside_the_file(home, HOME_DEFAULT.into());
            self.fill(home.name(), value, SettingOrigin::Default);
        }
        for (list, label) in self.labels.clone() {
            for setting in settings().filter(|setting| setting.is_in(list)) {
                if let Some(value) = setting.default(&chosen) {
                    self.fill(Name::of([list, &label, setting.leaf()]), value, SettingOrigin::Default);
                }
            }
            let name = Name::of([list, &label, "name"]);
            if setting(&name).is_some() {
                let origin = self.first_origin(&Name::of([list, &label]));
                self.fill(name, SettingValue::Text(label.clone()), origin);
            }
        }
        self.labels("provider").iter().for_each(|label| self.inherit(label));
    }

    /// The preset of retries that was chosen.
    pub(crate) fn preset(&self) -> Preset {
        match self.text_at(&row("retry.preset").name()).as_deref() {
            Some("standard") => Preset::Standard,
            Some("conservative") => Preset::Conservative,
            Some("aggressive") => Preset::Aggressive,
            _ => Preset::Patient,
        }
    }

    /// Copies the rules that a provider does not set itself from `provider_rules`. If a rule has its default there,
    /// the dialect may know a better value.
    fn inherit(&mut self, label: &str) {
        let dialect = self.read_at::<String>(&Name::of(["provider", label, "dialect"]));
        let dialect = dialect.and_then(|name| name.parse::<Dialect>().ok()).and_then(Dialect::classic);
        let interval = dialect.map(|dialect| (dialect.name(), dialect.facts().tempo.submit_interval));
        for rule in settings().filter(|setting| setting.is_in("provider_rules")) {
            let held = self.held(rule.path).clone();
            let (value, origin) = match (rule.leaf(), interval) {
                ("submit_interval", Some((name, interval)))
                    if held.origin == SettingOrigin::Default && !interval.is_zero() =>
                {
                    (SettingValue::Duration(interval), SettingOrigin::Follows(format!("dialect {name}")))
                }
                _ => (held.value, SettingOrigin::Follows(rule.path.into())),
            };
            self.fill(Name::of(["provider", label, rule.leaf()]), value, origin);
        }
    }

    /// A default folder is placed beside the file, like any folder that the file names. Otherwise a start from
    /// another folder would find an empty store and pay for everything again.
    fn beside_the_file(&self, setting: &Setting, value: SettingValue) -> SettingValue {
        let folder = self.file.as_deref().and_then(Path::parent);
        match (&value, setting.shape, folder) {
            (SettingValue::Text(text), SettingShape::StoreUrl | SettingShape::Folder, Some(folder)) => {
                setting.shape.read(&Raw::Text(text.clone()), folder).unwrap_or(value)
            }
            _ => value,
        }
    }

    fn fill(&mut self, name: Name, value: SettingValue, origin: SettingOrigin) {
        self.held.entry(name).or_insert(Held { value, origin });
    }

    /// The names of the providers, tenants or pools; for `lifetimes`, the numbers of the entries.
    pub(crate) fn labels(&self, list: &str) -> Vec<String> {
        let own = self.labels.iter().filter(|(of, _)| *of == list);
        let mut labels: Vec<String> = own.map(|(_, label)| label.clone()).collect();
        if list == LIFETIMES {
            labels.sort_by_key(|label| label.parse().unwrap_or(u32::MAX));
        }
        labels
    }

    /// Reads the entries of a list, without those that cannot be read.
    pub(crate) fn list<T>(&self, list: &str, read: impl FnMut(String) -> Option<T>) -> Vec<T> {
        self.labels(list).into_iter().filter_map(read).collect()
    }

    /// These settings, where the rows for which `is_kept` is true have the values of `present`.
    pub(crate) fn with_values_of(&self, present: &Self, is_kept: fn(&Setting) -> bool) -> Self {
        let mut mixed = self.clone();
        let kept = |name: &Name| setting(name).is_some_and(is_kept);
        mixed.held.retain(|name, _| !kept(name));
        let values = present.held.iter().filter(|(name, _)| kept(name));
        mixed.held.extend(values.map(|(name, held)| (name.clone(), held.clone())));
        mixed
    }

    pub(crate) fn get(&self, name: &Name) -> Option<&Held> {
        self.held.get(name)
    }

    /// All that is set below a table.
    pub(crate) fn below<'a>(&'a self, table: &'a Name) -> impl Iterator<Item = (&'a Name, &'a Held)> {
        self.held.iter().filter(|(name, _)| name.is_below(table))
    }

    /// The last part of each name below a table, with its value as a field.
    pub(crate) fn entries<T: SettingField>(&self, table: &Name) -> Vec<(String, T)> {
        let entry = |(name, held): (&Name, &Held)| Some((name.last().to_owned(), T::of(&held.value)?));
        self.below(table).filter_map(entry).collect()
    }

    /// Every value with its row, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Name, &'static Setting, &Held)> {
        self.held.iter().filter_map(|(name, held)| Some((name, setting(name)?, held)))
    }

    /// Sets each field of `section` that has a setting below `table`.
    pub(crate) fn apply<S: Section>(&self, table: &Name, section: &mut S) {
        for row in settings() {
            let Some(set) = S::setter(&row.set) else { continue };
            let name = row.filled_in(table);
            if let Some(held) = self.get(&name).filter(|_| name.is_below(table)) {
                set(section, &held.value);
            }
        }
    }

    /// A setting that always has a value.
    pub(crate) fn held(&self, path: &str) -> &Held {
        self.get(&row(path).name()).expect("the table has a default for it")
    }

    /// The value of a setting that always has one.
    pub(crate) fn read<T: SettingField>(&self, path: &str) -> T {
        T::of(&self.held(path).value).expect("its shape is that of the field")
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.read(path)
    }

    /// The value of a setting, if it is set.
    pub(crate) fn read_at<T: SettingField>(&self, name: &Name) -> Option<T> {
        T::of(&self.get(name)?.value)
    }

    pub(crate) fn text_at(&self, name: &Name) -> Option<String> {
        self.read_at(name)
    }

    /// Where the value of a setting came from.
    pub(crate) fn origin(&self, name: &Name) -> SettingOrigin {
        self.get(name).map_or(SettingOrigin::Default, |held| held.origin.clone())
    }

    /// The origin of a table: where it first appears.
    pub(crate) fn first_origin(&self, table: &Name) -> SettingOrigin {
        let set =
            self.below(table).map(|(_, held)| &held.origin).find(|origin| **origin != SettingOrigin::Default);
        set.cloned().unwrap_or(SettingOrigin::Default)
    }

    /// The error about a value or a table that is valid by itself and wrong here.
    pub(crate) fn unsound(&self, name: &Name, problem: impl Display, remedy: impl Display) -> ConfigError {
        let at = self.get(name).map_or_else(|| self.first_origin(name), |held| held.origin.clone());
        ConfigError::at(&at, name, format!("{problem}: {remedy}"))
    }
}
