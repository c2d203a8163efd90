//! `config check`: whether `serve` would start with this configuration. It makes the checks that `serve` makes first.

use crate::exit::{CliError, Exit};
use crate::{output, serve};
use quittance_config::{Config, ConfigError};
use serde_json::{Value, json};

/// Reports everything that is wrong, and changes nothing. `read` is the configuration, with the errors in its names
/// and values.
pub(crate) async fn check(
    as_json: bool,
    read: Result<(Config, Vec<ConfigError>), ConfigError>,
) -> Result<Exit, CliError> {
    let report = match read {
        Ok((config, errors)) => CheckReport::of(&config, &errors).await,
        Err(error) => {
            CheckReport { wrong: vec![CliError::of(Exit::Config, &error).what], ..CheckReport::default() }
        }
    };
    if !as_json {
        let lines = report.wrong.iter().map(|what| format!("wrong: {}\n", output::harmless(what)));
        output::tell(&lines.collect::<String>());
    }
    output::show(as_json, &report.json(), || report.text())?;
    Ok(if report.wrong.is_empty() { Exit::Done } else { Exit::Config })
}

/// What `config check` found.
#[derive(Default)]
struct CheckReport {
    file: Option<String>,
    wrong: Vec<String>,
    notes: Vec<String>,
}

impl CheckReport {
    /// Makes the report. Must be called within a runtime, because it tries to listen on the addresses.
    async fn of(config: &Config, errors: &[ConfigError]) -> Self {
        let mut refused = serve::refusals(config, None, false);
        if refused.is_empty() && errors.is_empty() {
            refused = serve::refused_pools(config).await;
        }
        let refused = refused.into_iter().map(|refusal| refusal.what);
        let (in_use, unusable): (Vec<_>, Vec<_>) =
            serve::unusable_addresses(config).into_iter().partition(|address| address.is_in_use);
        let refused = refused.chain(unusable.into_iter().map(|address| address.what));
        // An error that only follows from another is left out.
        let refused = refused.filter(|what| !errors.iter().any(|error| error.explains(what, None)));
        let wrong: Vec<String> =
            errors.iter().map(|error| CliError::of(Exit::Config, error).what).chain(refused).collect();
        let is_wide = config.targets.allow.iter().any(|pattern| pattern.to_string() == "*");
        let wide = is_wide.then(|| {
            "`targets.allow` has `*`: every site may be automated, by every caller; list the hosts that you may automate".into()
        });
        let risk = config.lost_reply_risk().map(str::to_owned);
        let alerts =
            config.alerts.problems().into_iter().filter(|problem| !wrong.contains(problem)).collect();
        let notes = [
            config.warnings.clone(),
            wide.into_iter().chain(risk).collect(),
            config.unused_lifetimes(),
            config.budgets_that_buy_nothing(),
            alerts,
            in_use
                .into_iter()
                .map(|address| format!("{} (unless it is the daemon itself)", address.what))
                .collect(),
        ];
        let file = config.file().map(|path| path.display().to_string());
        Self { file, wrong, notes: notes.concat() }
    }

    fn json(&self) -> Value {
        let Self { file, wrong, notes } = self;
        json!({ "file": file, "valid": wrong.is_empty(), "errors": wrong, "notes": notes })
    }

    fn text(&self) -> String {
        // A file that is no TOML is named in its error.
        let unnamed =
            if self.wrong.is_empty() { "the configuration (no file was found)" } else { "the configuration" };
        let file = self.file.as_deref().unwrap_or(unnamed);
        let result = match self.wrong.is_empty() {
            true => "is valid",
            false => "is not valid: `quittance serve` would not start with it",
        };
        let notes: String = self.notes.iter().map(|note| format!("note: {note}\n")).collect();
        format!("{file} {result}\n{notes}")
    }
}
