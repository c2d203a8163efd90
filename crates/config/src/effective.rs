//! What holds in the end: every layer merged, and the defaults of whatever nobody set, each value with its origin.

use super::address::Scheme;
use super::file::LIFETIMES;
use super::layers::{Entry, labels};
use super::name::Name;
use super::origin::Origin;
use super::registry::{preset, settings};
use super::setting::{Setting, row, setting};
use super::value::{Raw, Shape, Value};
use quittance_lifecycle::Preset;
use quittance_protocol::classic::Profile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HOME_DEFAULT: &str = "./quittance-data";

#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub value: Value,
    pub origin: Origin,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effective {
    pub file: Option<PathBuf>,
    held: BTreeMap<Name, Held>,
    /// What providers, tenants and pools are called, in the order in which they were first named.
    labels: Vec<(&'static str, String)>,
}

impl Effective {
    /// Later entries overrule earlier ones.
    pub fn of(file: Option<PathBuf>, entries: Vec<Entry>) -> Self {
        let labels = labels(&entries);
        let held =
            entries.into_iter().map(|entry| (entry.name, Held { value: entry.value, origin: entry.origin }));
        let mut effective = Self { file, held: held.collect(), labels };
        effective.fill_in();
        effective
    }

    fn fill_in(&mut self) {
        let chosen = self.get(&row("retry.preset").name()).map(|held| held.value.clone());
        let chosen = match chosen {
            Some(Value::Text(name)) => preset(&name),
            _ => Preset::Patient,
        };
        for setting in settings().filter(|setting| !setting.is_open()) {
            let Some(value) = (setting.default)(chosen) else { continue };
            let is_usual = (setting.default)(Preset::Patient).as_ref() == Some(&value);
            let value = self.placed(setting, value);
            let origin = if is_usual { Origin::Default } else { Origin::Follows("retry.preset".into()) };
            self.fill(setting.name(), value, origin);
        }
        self.fill_in_home();
        for (list, label) in self.labels.clone() {
            for setting in settings().filter(|setting| setting.segments().next() == Some(list)) {
                let name = Name::of([list, &label, setting.leaf()]);
                if let Some(value) = (setting.default)(chosen) {
                    self.fill(name, value, Origin::Default);
                }
            }
            let named = Name::of([list, &label, "name"]);
            if setting(&named).is_none() {
                continue;
            }
            let named_by = self.below(&Name::of([list, &label])).next().map(|(_, held)| held.origin.clone());
            let origin = named_by.unwrap_or(Origin::Default);
            self.fill(named, Value::Text(label.clone()), origin);
        }
        for label in self.of_list("provider") {
            self.inherit(&label);
        }
    }

    /// What a provider does not say itself, the rules for all say; what they leave at its default, the profile may know
    /// better.
    fn inherit(&mut self, label: &str) {
        let profile =
            self.text_at(&Name::of(["provider", label, "profile"])).and_then(|name| Profile::named(&name));
        for rule in settings().filter(|setting| setting.segments().next() == Some("provider_rules")) {
            let held = self.closed(rule).clone();
            let spacing = profile.map(|profile| (profile.name(), profile.facts().tempo.submit_interval));
            let (value, origin) = match (rule.leaf(), spacing) {
                ("submit_interval", Some((name, spacing)))
                    if held.origin == Origin::Default && !spacing.is_zero() =>
                {
                    (Value::Span(spacing), Origin::Follows(format!("profile {name}")))
                }
                _ => (held.value, Origin::Follows(rule.path.into())),
            };
            self.fill(Name::of(["provider", label, rule.leaf()]), value, origin);
        }
    }

    /// Only a node that shares its store has one: elsewhere the store's own folder serves.
    fn fill_in_home(&mut self) {
        if Scheme::of(&self.text("store.url")).is_some_and(Scheme::is_shared) {
            let home = row("store.home");
            let value = self.placed(home, Value::Text(HOME_DEFAULT.into()));
            self.fill(home.name(), value, Origin::Default);
        }
    }

    /// A default folder stands beside the file, like any that is named in it: whoever starts us from elsewhere must not
    /// find an empty store and pay for everything again.
    fn placed(&self, setting: &Setting, value: Value) -> Value {
        let folder = self.file.as_deref().and_then(Path::parent);
        match (&value, setting.shape, folder) {
            (Value::Text(text), Shape::Store | Shape::Folder, Some(folder)) => {
                setting.shape.read(&Raw::Text(text.clone()), folder).unwrap_or(value)
            }
            _ => value,
        }
    }

    fn fill(&mut self, name: Name, value: Value, origin: Origin) {
        self.held.entry(name).or_insert(Held { value, origin });
    }

    /// The providers, the tenants, the pools, or the numbers of what has no names.
    pub fn of_list(&self, list: &str) -> Vec<String> {
        let mut labels: Vec<String> =
            self.labels.iter().filter(|(of, _)| *of == list).map(|(_, label)| label.clone()).collect();
        if list == LIFETIMES {
            labels.sort_by_key(|label| label.parse().unwrap_or(u32::MAX));
        }
        labels
    }

    pub fn get(&self, name: &Name) -> Option<&Held> {
        self.held.get(name)
    }

    /// All that is set below a table.
    pub fn below<'a>(&'a self, table: &'a Name) -> impl Iterator<Item = (&'a Name, &'a Held)> {
        let is_below = |name: &Name| {
            name.segments().len() > table.segments().len()
                && name.segments().zip(table.segments()).all(|(found, want)| found == want)
        };
        self.held.iter().filter(move |(name, _)| is_below(name))
    }

    /// What is set, each with its row: in the order of the registry, and the open ones by name.
    pub fn all(&self) -> impl Iterator<Item = (&Name, &'static Setting, &Held)> {
        self.held.iter().filter_map(|(name, held)| Some((name, setting(name)?, held)))
    }

    fn closed(&self, row: &Setting) -> &Held {
        self.get(&row.name()).expect("the registry has a default for it")
    }

    /// Of a setting that always has a value.
    pub fn held(&self, path: &str) -> &Held {
        self.closed(row(path))
    }

    pub fn span(&self, path: &str) -> Duration {
        match self.held(path).value {
            Value::Span(span) => span,
            _ => unreachable!("{path} has the shape of a span"),
        }
    }

    pub fn count<T: TryFrom<u64>>(&self, path: &str) -> T {
        match self.held(path).value {
            Value::Count(count) => T::try_from(count).ok().expect("its shape keeps it small enough"),
            _ => unreachable!("{path} has the shape of a number"),
        }
    }

    /// A limit of retries; none, where only the deadline is one.
    pub fn limit(&self, path: &str) -> Option<u8> {
        match self.held(path).value {
            Value::Count(_) => Some(self.count(path)),
            _ => None,
        }
    }

    pub fn flag(&self, path: &str) -> bool {
        self.held(path).value == Value::Flag(true)
    }

    pub fn text(&self, path: &str) -> String {
        self.text_at(&row(path).name()).expect("it has a default, and the shape of a text")
    }

    pub fn text_at(&self, name: &Name) -> Option<String> {
        match &self.get(name)?.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    pub fn span_at(&self, name: &Name) -> Option<Duration> {
        match self.get(name)?.value {
            Value::Span(span) => Some(span),
            _ => None,
        }
    }
}
