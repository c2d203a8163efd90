//! One row of the registry, and how it is found: by its name in the file and in flags, and by its environment variable.

use super::name::Name;
use super::nearest::nearest;
use super::registry::settings;
use super::value::{Shape, Value};
use quittance_lifecycle::Preset;

pub const PREFIX: &str = "QUITTANCE_";

#[derive(Debug)]
pub struct Setting {
    /// `*` stands for a part that the operator chooses: the name of a provider, a kind, a host, a code.
    pub path: &'static str,
    pub shape: Shape,
    /// What holds if nobody says anything, read from where it is used so that there is no second copy of it.
    pub default: fn(Preset) -> Option<Value>,
    pub help: &'static str,
}

impl Setting {
    pub fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('.')
    }

    /// Whether it stands for as many settings as the operator likes.
    pub fn is_open(&self) -> bool {
        self.path.contains('*')
    }

    pub fn leaf(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    pub fn name(&self) -> Name {
        Name::of(self.segments())
    }

    /// Hosts and codes have characters that no variable can have in its name, so those rows have none.
    pub fn variable(&self) -> Option<String> {
        (self.leaf() != "*" || ["reuse.kinds.*", "prices.*"].contains(&self.path))
            .then(|| PREFIX.to_owned() + &self.path.to_ascii_uppercase().replace('.', "_"))
    }

    fn fits(&self, name: &Name) -> bool {
        let mut wanted = self.segments();
        name.segments().all(|found| wanted.next().is_some_and(|want| want == "*" || want == found))
            && wanted.next().is_none()
    }

    /// What the open part is called in a variable of this name, if the variable is for this row.
    fn open_part<'a>(&self, variable: &'a str) -> Option<&'a str> {
        let own = self.variable()?;
        let (before, after) = own.split_once('*')?;
        variable.strip_prefix(before)?.strip_suffix(after).filter(|part| !part.is_empty())
    }

    /// This row's name with its open parts filled in as they stand in `name`.
    fn filled_in(&self, name: &Name) -> Name {
        let mut given = name.segments();
        Name::of(self.segments().map(|want| match (want, given.next()) {
            ("*", Some(given)) => given,
            _ => want,
        }))
    }
}

pub fn setting(name: &Name) -> Option<&'static Setting> {
    settings().find(|setting| setting.fits(name))
}

/// The row of exactly this path.
pub fn row(path: &str) -> &'static Setting {
    settings().find(|setting| setting.path == path).expect("only paths of the registry are asked for")
}

/// Whether settings stand below this name.
pub fn is_table(name: &Name) -> bool {
    let depth = name.segments().len();
    settings().any(|setting| {
        let mut wanted = setting.segments();
        name.segments().all(|found| wanted.next().is_some_and(|want| want == "*" || want == found))
            && setting.segments().count() > depth
    })
}

/// The setting that a variable is for. `known` are the names of providers and tenants that are written with a dash,
/// which no variable can have.
pub fn by_variable(variable: &str, known: &[String]) -> Option<(&'static Setting, Name)> {
    let closed = settings().find(|row| !row.is_open() && row.variable().as_deref() == Some(variable));
    if let Some(setting) = closed {
        return Some((setting, setting.name()));
    }
    let open = settings().filter_map(|setting| Some((setting, setting.open_part(variable)?)));
    // `key_env` rather than `env` of something called `key`: the longer the row's own part, the surer it is.
    let (setting, part) = open.min_by_key(|(_, part)| part.len())?;
    let as_variable = |label: &str| label.to_ascii_uppercase().replace('-', "_");
    let label = known.iter().find(|label| as_variable(label) == part);
    let label = label.cloned().unwrap_or_else(|| part.to_ascii_lowercase());
    let name = Name::of(setting.segments().map(|want| if want == "*" { label.as_str() } else { want }));
    Some((setting, name))
}

/// The setting that somebody meant: the nearest in spelling, or the one of the same key in another table.
pub fn meant(name: &Name) -> Option<String> {
    let depth = name.segments().len();
    let as_deep = settings().filter(|setting| setting.segments().count() == depth);
    let found = nearest(&name.to_string(), as_deep.map(|setting| setting.filled_in(name).to_string()));
    let elsewhere = || {
        let closed = settings().filter(|setting| !setting.is_open());
        closed
            .map(|row| (row, row.leaf()))
            .find(|(_, leaf)| *leaf == name.last())
            .map(|(row, _)| row.path.into())
    };
    found.or_else(elsewhere)
}

/// The variable that somebody meant.
pub fn meant_variable(variable: &str, labels: &[(&'static str, String)]) -> Option<String> {
    let closed = settings().filter(|row| !row.is_open()).filter_map(Setting::variable);
    let open = settings().filter(|row| row.is_open()).flat_map(|row| {
        let head = row.segments().next().unwrap_or_default();
        let labels = labels.iter().filter(move |(of, _)| *of == head);
        let label = |label: &str| label.to_ascii_uppercase().replace('-', "_");
        labels.filter_map(move |(_, own)| Some(row.variable()?.replace('*', &label(own))))
    });
    nearest(variable, closed.chain(open))
}
