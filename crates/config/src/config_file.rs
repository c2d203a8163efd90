//! The config file: reads TOML into one entry for each setting, each with its line.

use crate::error::{ConfigError, Errors};
use crate::layers::Entry;
use crate::origin::SettingOrigin;
use crate::setting::{is_table, meant, setting};
use crate::setting_name::Name;
use crate::value::Raw;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The lists of tables. Each table has a name; those of [`LIFETIMES`] have a number.
pub(crate) const LISTS: [&str; 4] = ["provider", "tenant", BUDGET, LIFETIMES];
pub(crate) const BUDGET: &str = "budget";
pub(crate) const LIFETIMES: &str = "lifetimes";
/// The table that has a table for each pool.
pub(crate) const POOLS: &str = "pools";

pub(crate) struct FileReader<'a> {
    text: &'a str,
    path: Arc<Path>,
    folder: &'a Path,
    entries: Vec<Entry>,
    errors: &'a mut Errors,
}

impl<'a> FileReader<'a> {
    /// Reads the entries of a file. Wrong entries are reported in `errors`. Fails if the file is not TOML.
    pub(crate) fn read(
        text: &'a str,
        path: &'a Path,
        errors: &'a mut Errors,
    ) -> Result<Vec<Entry>, ConfigError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut reader = Self { text, path: path.into(), folder, entries: Vec::new(), errors };
        let document = DeTable::parse(text).map_err(|error| {
            let at = reader.at(error.span().map_or(0, |span| span.start));
            ConfigError::general(format!("{at}: this is not TOML: {}", error.message().replace('\n', ", ")))
        })?;
        reader.table(document.get_ref(), &Name::top());
        Ok(reader.entries)
    }

    fn at(&self, byte: usize) -> SettingOrigin {
        let before = &self.text.as_bytes()[..byte.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        SettingOrigin::File { path: Arc::clone(&self.path), line }
    }

    fn table(&mut self, table: &DeTable<'_>, above: &Name) {
        let mut in_order: Vec<_> = table.iter().collect();
        in_order.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in in_order {
            let (name, at) = (above.below(key.get_ref()), self.at(key.span().start));
            let read = self.item(name, value, at);
            self.errors.keep(read);
        }
    }

    fn item(
        &mut self,
        name: Name,
        value: &Spanned<DeValue<'_>>,
        at: SettingOrigin,
    ) -> Result<(), ConfigError> {
        let is_list = name.segments().len() == 1 && LISTS.contains(&name.last());
        match value.get_ref() {
            DeValue::Array(items) if is_list => {
                for (item, number) in items.iter().zip(1..) {
                    let read = self.list_item(&name, item, number, &at);
                    self.errors.keep(read);
                }
                Ok(())
            }
            _ if is_list => Err(is_a_list(&at, &name)),
            DeValue::Table(table) if is_table(&name) => {
                self.table(table, &name);
                Ok(())
            }
            DeValue::Table(_) if setting(&name).is_some() => Err(ConfigError::at(
                &at,
                &name,
                format!("takes a value and is no table: write `{name} = ...`"),
            )),
            DeValue::Table(table) => match table.iter().next() {
                // The name of a setting finds a better neighbour than that of its table.
                Some((key, _)) => Err(unknown(&name.below(key.get_ref()), &self.at(key.span().start))),
                None => Err(unknown(&name, &at)),
            },
            _ if is_table(&name) => {
                Err(ConfigError::at(&at, &name, format!("is a table: write its settings below `[{name}]`")))
            }
            value => {
                let entry = Entry::new(name, &raw(value), at, self.folder)?;
                self.entries.push(entry);
                Ok(())
            }
        }
    }

    fn list_item(
        &mut self,
        list: &Name,
        item: &Spanned<DeValue<'_>>,
        number: usize,
        at: &SettingOrigin,
    ) -> Result<(), ConfigError> {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(is_a_list(at, list));
        };
        if list.last() == LIFETIMES {
            self.table(table, &list.below(&number.to_string()));
            return Ok(());
        }
        let at = self.at(item.span().start);
        let Some((key, label)) = table.iter().find(|(key, _)| key.get_ref() == "name") else {
            return Err(ConfigError::about(
                list,
                format!("{at}: this `[[{list}]]` has no name: add `name = \"...\"`"),
            ));
        };
        let named_at = self.at(key.span().start);
        // The error about a bad name is that about any wrong value.
        let checked =
            Entry::new(list.below("?").below("name"), &raw(label.get_ref()), named_at, self.folder)?;
        let label = label.get_ref().as_str().unwrap_or_default();
        let (table_name, name) = (list.below(label), list.below(label).below("name"));
        if let Some(first) = self.entries.iter().find(|entry| entry.name == name) {
            let (first, at) = (&first.origin, checked.origin);
            let remedy = "give each a name of its own";
            let what =
                format!("there is a second `[[{list}]]` called `{label}` (the first: {first}): {remedy}");
            return Err(ConfigError::about(list, format!("{at}: {what}")));
        }
        self.table(table, &table_name);
        Ok(())
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.clone().into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Raw::Number(number.to_string()),
            Err(_) => Raw::Other("a number that is too large"),
        },
        DeValue::Float(number) => Raw::Number(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Raw::Flag(*flag),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<_>>().map_or(Raw::Other("a list of something else"), Raw::List)
        }
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

/// The error about a name that no setting has.
pub(crate) fn unknown(name: &Name, at: &SettingOrigin) -> ConfigError {
    let is_secret = matches!(
        name.segments().collect::<Vec<_>>().as_slice(),
        ["provider" | "tenant", _, "key" | "api_key" | "secret" | "password" | "token" | "webhook_secret"]
            | ["admin", "key" | "secret" | "password" | "token"]
            | ["store", "password" | "secret"]
            | ["callback_secret"]
    );
    if is_secret {
        let what = "would put a secret into the configuration, where backups and colleagues read it";
        return ConfigError::in_place(at, name, what, &name.to_string(), "secret");
    }
    let hint = match meant(name) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`quittance config show` lists all there are".into(),
    };
    ConfigError::about(name, format!("{at}: there is no setting `{name}`; {hint}"))
}

fn is_a_list(at: &SettingOrigin, name: &Name) -> ConfigError {
    let label = if name.last() == LIFETIMES { "" } else { " and give it a `name = \"...\"`" };
    ConfigError::at(at, name, format!("is a list of tables: begin each with `[[{name}]]`{label}"))
}
