//! The kinds of the catalogue with the operator's corrections, and the kinds that the operator has added.

use crate::check::MARGIN_MAX;
use crate::duration::render;
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::nearest::nearest;
use crate::setting_name::Name;
use quittance_lifecycle::Kind;
use quittance_protocol::kinds as catalogue;
use std::collections::BTreeMap;

/// All known kinds, with the operator's corrections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindTable(BTreeMap<String, Kind>);

impl KindTable {
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.0.get(name).cloned().or_else(|| catalogue::kind(name))
    }

    /// All kinds; those that the operator has added come last.
    pub fn all(&self) -> Vec<Kind> {
        let known = catalogue::kinds().map(|kind| self.0.get(&*kind.name).cloned().unwrap_or(kind));
        let added = self.0.values().filter(|kind| catalogue::kind(&kind.name).is_none()).cloned();
        known.chain(added).collect()
    }

    pub fn is_corrected(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Fails if there is no such kind.
    pub(crate) fn check(&self, effective: &Effective, kind: &str, name: &Name) -> Result<(), ConfigError> {
        if self.kind(kind).is_some() {
            return Ok(());
        }
        let hint = match self.meant(kind) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`quittance kinds` lists them all.".into(),
        };
        let problem = format!("is about a kind `{kind}`, which is not described");
        let remedy = format!("{hint} For a kind that is new to us, set `kinds.{kind}.new = true`");
        Err(effective.unsound(name, problem, remedy))
    }

    /// Fails if the kind is unknown, and a known kind has nearly the same name. Any other unknown name may belong to
    /// a kind that is new to us.
    fn check_spelling(&self, effective: &Effective, kind: &str, name: &Name) -> Result<(), ConfigError> {
        match self.meant(kind) {
            Some(_) => self.check(effective, kind, name),
            None => Ok(()),
        }
    }

    /// The kind that was probably meant by an unknown name.
    fn meant(&self, name: &str) -> Option<String> {
        let by_spelling = || nearest(name, self.all().into_iter().map(|kind| kind.name.into_owned()));
        self.named_by_service(name).or_else(by_spelling)
    }

    /// The kind that a service calls by this method or task type: `turnstile` for `TurnstileTaskProxyless`.
    fn named_by_service(&self, name: &str) -> Option<String> {
        let meant =
            quittance_protocol::json::meaning(name, &BTreeMap::new(), &|name| self.kind(name)).ok()??;
        self.kind(&meant.kind).map(|kind| kind.name.into_owned())
    }
}

/// The kinds of the tables of `[kinds]`: the catalogue's, or new ones, with what the operator sets.
pub(crate) fn kinds(effective: &Effective) -> KindTable {
    let table = Name::of(["kinds"]);
    let named = effective.below(&table).filter_map(|(name, _)| name.segments().nth(1));
    let corrected = |name: &str| {
        let table = table.below(name);
        let new = || {
            let mut kind = catalogue::open_kind(name);
            kind.hosts.is_described = true;
            effective.read_at(&table.below("new")).unwrap_or(false).then_some(kind)
        };
        let mut kind = catalogue::kind(name).or_else(new)?;
        effective.apply(&table, &mut kind);
        Some((name.to_owned(), kind))
    };
    KindTable(named.filter_map(corrected).collect())
}

/// Checks that every kind that settings name is known, and that the corrected kinds make sense.
pub(crate) fn check(effective: &Effective, table: &KindTable, errors: &mut Errors) {
    for (name, _, _) in effective.all() {
        let segments: Vec<&str> = name.segments().collect();
        let kind = match segments[..] {
            ["kinds", kind, _] | ["reuse" | "routing", "kinds", kind] => kind,
            ["prices", kind] | ["provider", _, "prices", kind] => without_variant(table, kind),
            ["targets", "vendors", kind] => {
                errors.keep(table.check_spelling(effective, kind, name));
                continue;
            }
            _ => continue,
        };
        errors.keep(table.check(effective, kind, name));
    }
    for list in ["provider", "tenant"] {
        for label in effective.labels(list) {
            let name = Name::of([list, &label, "kinds"]);
            for kind in effective.read_at::<Vec<String>>(&name).unwrap_or_default() {
                errors.keep(table.check(effective, &kind, &name));
            }
        }
    }
    for kind in table.0.keys() {
        errors.keep(check_corrected(effective, table, kind));
    }
}

/// The kind of a price such as `recaptcha_v2+enterprise`, if the kind has that parameter.
fn without_variant<'a>(table: &KindTable, named: &'a str) -> &'a str {
    let has = |kind: &str, param: &str| {
        table.kind(kind).is_some_and(|kind| kind.fields.iter().any(|field| field.name == param))
    };
    named.split_once('+').filter(|(kind, param)| has(kind, param)).map_or(named, |(kind, _)| kind)
}

fn check_corrected(effective: &Effective, table: &KindTable, name: &str) -> Result<(), ConfigError> {
    let Some(Kind { life, margin, pace, .. }) = table.kind(name) else { return Ok(()) };
    let unsound = |keys: [&str; 2], problem: String, remedy: &str| {
        let own = keys.map(|key| Name::of(["kinds", name, key]));
        let blamed = own.iter().find(|name| effective.get(name).is_some()).unwrap_or(&own[0]);
        Err(effective.unsound(blamed, problem, remedy))
    };
    if let Some(life) = life
        && margin > life * 3 / 4
    {
        let problem = format!("makes a margin of {} in a life of {}", render(margin), render(life));
        return unsound(["margin", "life"], problem, MARGIN_MAX);
    }
    for (keys, [less, more]) in
        [(["p50", "p95"], [pace.p50, pace.p95]), (["p95", "p99"], [pace.p95, pace.p99])]
    {
        if less > more {
            let [short, long] = keys;
            let problem = format!("makes {short} = {} longer than {long} = {}", render(less), render(more));
            return unsound(keys, problem, "set them so that they grow");
        }
    }
    Ok(())
}
