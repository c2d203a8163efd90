//! What reading the configuration again finds, and what a running daemon keeps.

use crate::{Config, Environment, SettingChange, Sources};
use std::path::Path;

const PROVIDER: &str = "[[provider]]\nname = \"main\"\ndialect = \"2captcha\"\nurl = \"http://127.0.0.1:1\"\nkey_env = \"KEY\"\n";

struct Home(tempfile::TempDir);

impl Home {
    fn with(text: &str) -> (Self, Config) {
        let home = Self(tempfile::tempdir().unwrap());
        home.write(text);
        let environment = [("KEY", "0123456789abcdef0123456789abcdef")].into_iter().collect::<Environment>();
        let config = Config::load(&Sources::default(), &environment, home.0.path()).unwrap();
        (home, config)
    }

    fn write(&self, text: &str) {
        std::fs::write(self.0.path().join("quittance.toml"), format!("{text}\n{PROVIDER}")).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn line(change: &SettingChange) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or("-".into());
    let effect = if change.needs_restart { "restart" } else { "live" };
    format!("{} {} -> {} {effect}", change.name, shown(&change.from), shown(&change.to))
}

#[test]
fn changes_are_listed_and_what_needs_a_restart_keeps_its_value() {
    let (home, config) = Home::with("listen = \"127.0.0.1:1\"\n[timing]\ndeadline = \"60s\"");
    home.write(
        "listen = \"127.0.0.1:2\"\n[timing]\ndeadline = \"90s\"\n[[tenant]]\nname = \"anna\"\n\
         key_sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"",
    );
    let again = config.read_again(&Sources::default(), home.path()).unwrap();
    let lines: Vec<String> = again.changes.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "listen \"127.0.0.1:1\" -> \"127.0.0.1:2\" restart",
            "tenant.anna.key_sha256 - -> set live",
            "tenant.anna.name - -> \"anna\" live",
            "timing.deadline \"60s\" -> \"90s\" live",
        ]
    );
    assert_eq!(again.live.listen.port(), 1);
    assert_eq!(again.whole.listen.port(), 2);
    assert_eq!(again.live.tenants.len(), 1);
    // What still needs a restart is named again the next time.
    let third = again.live.read_again(&Sources::default(), home.path()).unwrap();
    let lines: Vec<String> = third.changes.iter().map(line).collect();
    assert_eq!(lines, ["listen \"127.0.0.1:1\" -> \"127.0.0.1:2\" restart"]);
}

#[test]
fn a_wrong_file_is_refused_with_the_setting_and_its_line() {
    let (home, config) = Home::with("[timing]\ndeadline = \"60s\"");
    home.write("[timing]\ndeadline = \"soon\"");
    let error = config.read_again(&Sources::default(), home.path()).unwrap_err().to_string();
    assert!(error.contains("quittance.toml:2") && error.contains("`timing.deadline`"), "{error}");
}

#[test]
fn every_path_that_needs_a_restart_is_a_setting() {
    for path in crate::setting_table::RESTART {
        assert!(crate::setting_names().any(|name| name.starts_with(path)), "{path}");
    }
}
