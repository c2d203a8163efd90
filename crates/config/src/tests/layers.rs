//! The environment and flags: every setting can come through them, and variables of other programs change nothing.

use super::place::Place;
use crate::origin::SettingOrigin;
use crate::setting::{Defaults, setting};
use crate::setting_name::Name;
use crate::setting_shape::{HOSTS, SettingShape};
use crate::setting_table::settings;
use crate::value::SettingValue;
use quittance_lifecycle::Preset;

/// A value of the right shape, as text.
fn example(shape: SettingShape, default: Option<SettingValue>, file: &str) -> String {
    match (default, shape) {
        (_, SettingShape::List(SettingShape::Pause)) => "5s,1m".into(),
        (None, SettingShape::Money) => "0.5".into(),
        (Some(SettingValue::List(_)), _) | (_, HOSTS) => "a.org,*.b.org".into(),
        (None, SettingShape::OneOf(words)) => words[0].into(),
        (None, SettingShape::Dialect) => "capsolver".into(),
        (None, SettingShape::ListenAddress) => "127.0.0.1:0".into(),
        (None, SettingShape::KeyHash) => "0f".repeat(32),
        (Some(SettingValue::Text(text)), _) => text,
        (Some(value), _) => value.to_string().replace('"', ""),
        (None, SettingShape::WebAddress) => "https://q.example.com".into(),
        (None, SettingShape::Currency) => "EUR".into(),
        (None, SettingShape::Variable) => "SOME_SECRET".into(),
        (None, SettingShape::File) => file.into(),
        (None, SettingShape::PostgresUrl) => "postgres://h/db".into(),
        (None, SettingShape::Flag) => "false".into(),
        (None, _) => "7s".into(),
    }
}

#[test]
fn every_setting_can_come_through_the_environment_and_through_a_flag() {
    let [empty, authority] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    let certificate = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap().cert;
    std::fs::write(authority.path(), certificate.pem()).unwrap();
    for row in settings().filter(|row| !row.is_open()) {
        let (default, variable) = (row.default(&Defaults::of(Preset::Patient)), row.variable().unwrap());
        let file = if row.leaf() == "ca_file" { &authority } else { &empty };
        let words = example(row.shape, default, file.path().to_str().unwrap());
        // What is about a server needs one to be about, and who is called must know who calls.
        let start = || match row.path.split_once('.') {
            Some(("store", key)) if key != "url" => Place::with_file("[store]\nurl = \"postgres://h/db\"\n"),
            Some(("hedging", "after")) => Place::with_file("[hedging]\nmoney_per_day = 1\n"),
            Some(("alerts", "webhook")) => Place::with_file("[alerts]\nwebhook_secret_env = \"HOOK\"\n"),
            _ => Place::empty(),
        };
        let by_env = start().env(&[(&variable, &words)]).load();
        let by_env = by_env.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            by_env.effective.get(&row.name()).unwrap().origin,
            SettingOrigin::Variable(variable),
            "{}",
            row.path
        );
        let flag = format!("{}={words}", row.path);
        let by_flag = start().set(&[&flag]).load().unwrap_or_else(|error| panic!("{error}"));
        let (by_env, by_flag) = (by_env.effective.get(&row.name()), by_flag.effective.get(&row.name()));
        assert_eq!(by_flag.unwrap().origin, SettingOrigin::Flag);
        assert_eq!(by_flag.unwrap().value, by_env.unwrap().value);
    }
}

#[test]
fn every_row_is_found_by_its_own_name_and_no_two_share_a_variable() {
    let mut variables = std::collections::BTreeSet::new();
    for row in settings() {
        let name = Name::parse(&row.path.replace('*', "x")).unwrap();
        assert_eq!(setting(&name).unwrap().path, row.path);
        assert!(row.variable().is_none_or(|variable| variables.insert(variable)), "{}", row.path);
        assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{}", row.path);
    }
}
