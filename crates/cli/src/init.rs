//! `quittance init`: writes a first config file, from flags or from questions on a terminal, and runs `doctor` on it. It overwrites
//! nothing and writes no secret: the file names the variable that holds the provider's key.

mod clients;
mod questions;

use crate::config_command::ConfigArgs;
use crate::doctor::{self, DoctorArgs};
use crate::exit::{CliError, Exit, OrExit};
use crate::interruption::Interruption;
use crate::{output, terminal};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use clients::ClientLines;
use questions::Questions;
use quittance_config::{Config, ConfigErrors, Environment, Sources, check_value, toml_text};
use quittance_protocol::Dialect;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};

/// What it means to have no callback address. The file and the end of the command both say it.
const WITHOUT_PUBLIC_URL: &str = "Without `public_url`, an order whose submit got no reply is submitted again by default, and \
                                  may be paid for twice.";

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance init                                asks questions on a terminal
  quittance init --dialect captchaai --allow '*.example.org'
  quittance init --dialect capsolver --key-env SOLVER_KEY \\
      --allow shop.example.org --reuse shared \\
      --public-url https://quittance.example.org --client 2captcha-python

Writes quittance.toml in this folder, or the file that --config names. Values
without a flag get their default; on a terminal, the command asks for them. It
overwrites nothing. Then it runs `quittance doctor` on the new file. The doctor
pays nothing, and the file stays, whatever the doctor finds. At the end it
prints the lines to change in the client that you name.

Exit codes:
  0  the file is written, and doctor found no errors
  1  the file is written, and doctor found errors; each says what to do
  2  a value is missing or invalid; nothing was written
  3  the file exists already, or cannot be written";

/// The usual address of a service, and the usual variable for its key.
const fn usual(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::CaptchaAi => ("https://ocr.captchaai.com", "CAPTCHAAI_API_KEY"),
        Dialect::TwoCaptcha => ("https://2captcha.com", "TWOCAPTCHA_API_KEY"),
        Dialect::AntiCaptcha => ("https://api.anti-captcha.com", "ANTICAPTCHA_API_KEY"),
        Dialect::CapSolver => ("https://api.capsolver.com", "CAPSOLVER_API_KEY"),
        Dialect::CapMonster => ("https://api.capmonster.cloud", "CAPMONSTER_API_KEY"),
    }
}

/// A service by its name in any case.
fn service(typed: &str) -> Option<Dialect> {
    typed.to_ascii_lowercase().parse().ok()
}

/// What to do with equal orders without an idempotency key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReuseChoice {
    Shared,
    Exclusive,
    #[default]
    #[value(name = "by_kind")]
    ByKind,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InitArgs {
    /// Service to buy answers from
    #[arg(long, visible_alias = "provider", value_name = "NAME", value_parser = PossibleValuesParser::new(Dialect::ALL.map(Dialect::name)))]
    dialect: Option<String>,
    /// Address of the service [default: its public address]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Environment variable with the key; the key itself is not written
    #[arg(long, value_name = "VARIABLE")]
    key_env: Option<String>,
    /// Page host that you may automate, such as shop.example.org or *.example.org; may be repeated
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// How to treat equal orders without an idempotency key: as one job, or each as its own job
    #[arg(long, value_enum, value_name = "RULE")]
    reuse: Option<ReuseChoice>,
    /// Address at which the provider can call this node
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Client library whose lines to change are printed, such as 2captcha-python
    #[arg(long, value_name = "NAME", value_parser = ClientLines::parse)]
    client: Option<ClientLines>,
}

/// Everything that the file contains, and the client that the user named.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    service: Dialect,
    url: String,
    key_env: String,
    allow: Vec<String>,
    reuse: ReuseChoice,
    public_url: Option<String>,
    client: Option<ClientLines>,
}

/// Writes the file, and prints the findings of `doctor`. A failed check does not undo the file.
pub(crate) async fn run(args: InitArgs, config: &ConfigArgs) -> Result<Exit, CliError> {
    let mut interruption = Interruption::listen()?;
    let path = config.config.clone().unwrap_or_else(|| PathBuf::from("quittance.toml"));
    check_before_questions(&args, &path, config)?;
    let asking = tokio::task::spawn_blocking(|| ask(args));
    let answers = tokio::select! {
        answers = asking => answers.or_exit(Exit::Bad)??,
        exit = interruption.next() => {
            output::tell("\nnothing was written\n");
            return Ok(exit);
        }
    };
    write_new(&path, &answers.render(), &config.overrides)?;
    output::print(&format!("wrote {}\n\n", output::harmless(&path.display().to_string())))?;
    let environment = Environment::of_process();
    let sources = Sources { file: Some(path.clone()), overrides: config.overrides.clone() };
    // The file and `--set` are valid: this is about a variable of this shell.
    let written = Config::load(&sources, &environment, Path::new("")).or_exit(Exit::Bad)?;
    let exit = tokio::select! {
        exit = doctor::run(DoctorArgs::default(), &written) => exit?,
        exit = interruption.next() => {
            output::tell("\nthe file is written; `quittance doctor` checks it\n");
            return Ok(exit);
        }
    };
    let next_steps = answers.next_steps(&path, exit == Exit::Done, &environment);
    output::tell(&terminal::wrapped(&next_steps, 0, terminal::width()));
    Ok(exit)
}

/// Finds what is wrong before the user answers questions for nothing.
fn check_before_questions(args: &InitArgs, path: &Path, config: &ConfigArgs) -> Result<(), CliError> {
    if path.symlink_metadata().is_ok() {
        return Err(already_there(path));
    }
    let check = |flag: &str, checked: Result<(), String>| {
        checked.map_err(|why| CliError::new(Exit::Usage, format!("{flag}: {why}; nothing was written")))
    };
    for (flag, setting, value) in [
        ("--url", "provider.*.url", &args.url),
        ("--key-env", "provider.*.key_env", &args.key_env),
        ("--public-url", "public_url", &args.public_url),
    ] {
        value.iter().try_for_each(|value| check(flag, check_value(setting, value)))?;
    }
    args.allow.iter().try_for_each(|typed| check("--allow", questions::host(typed)))?;
    let sample = from_flags(InitArgs { dialect: Some("captchaai".into()), ..InitArgs::default() })?;
    let folder = tempfile::tempdir().map_err(|error| not_written(path, &error))?;
    let file = folder.path().join("quittance.toml");
    std::fs::write(&file, sample.render()).map_err(|error| not_written(path, &error))?;
    self::check(&file, path, &config.overrides)
}

/// Asks on a terminal for the values without a flag; elsewhere they get their defaults.
fn ask(args: InitArgs) -> Result<Answers, CliError> {
    match io::stdin().is_terminal() && io::stderr().is_terminal() {
        true => Questions::new(io::stdin().lock(), io::stderr(), terminal::width()).ask(args),
        false => from_flags(args),
    }
}

fn not_written(path: &Path, error: &io::Error) -> CliError {
    CliError::new(Exit::NotWritten, format!("{} cannot be written: {error}", path.display()))
}

fn already_there(path: &Path) -> CliError {
    let what = format!(
        "{} is there already, and is not overwritten: move it away, or name another file with --config",
        path.display()
    );
    CliError::new(Exit::NotWritten, what)
}

fn from_flags(args: InitArgs) -> Result<Answers, CliError> {
    let Some(service) = args.dialect.as_deref().and_then(service) else {
        let what = "--dialect is missing, and this is no terminal to ask on: name the service, one of captchaai, 2captcha, \
                    anticaptcha, capsolver or capmonster";
        return Err(CliError::new(Exit::Usage, what));
    };
    let (url, key_env) = usual(service);
    Ok(Answers {
        service,
        url: args.url.unwrap_or_else(|| url.to_owned()),
        key_env: args.key_env.unwrap_or_else(|| key_env.to_owned()),
        allow: args.allow,
        reuse: args.reuse.unwrap_or_default(),
        public_url: args.public_url,
        client: args.client,
    })
}

/// Writes the file, if every command can read it and if the path is free.
fn write_new(path: &Path, text: &str, overrides: &[String]) -> Result<(), CliError> {
    let not_written = |error: &io::Error| not_written(path, error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".quittance-init-").suffix(".toml");
    // There is no secret in it, and the daemon may run as another user: readable as any file that this user makes.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(|error| not_written(&error))?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(|e| not_written(&e))?;
    check(file.path(), path, overrides)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(already_there(path)),
        Err(error) => Err(not_written(&error.error)),
    }
}

/// Reads the new file and `--set` as any command does, without the variables of this shell.
fn check(written: &Path, path: &Path, overrides: &[String]) -> Result<(), CliError> {
    let sources = Sources { file: Some(written.to_owned()), overrides: overrides.to_vec() };
    let wrong = match Config::read(&sources, &Environment::default(), Path::new("")) {
        Ok((_, wrong)) if wrong.is_empty() => return Ok(()),
        Ok((_, wrong)) => ConfigErrors(wrong),
        Err(error) => ConfigErrors(vec![error]),
    };
    let what = wrong.to_string().replace(&written.display().to_string(), &path.display().to_string());
    Err(CliError::new(Exit::Usage, format!("nothing was written: {what}")))
}

impl Answers {
    fn render(&self) -> String {
        let protocol = if self.service.classic().is_some() { "classic" } else { "json" };
        let risk = WITHOUT_PUBLIC_URL.replace("default, and may", "default, and\n# may");
        let public_url = match &self.public_url {
            Some(url) => format!("public_url = {}", toml_text(url)),
            None => "# public_url = \"https://quittance.example.org\"".to_owned(),
        };
        let reuse = self.reuse.to_possible_value().expect("no rule is hidden");
        let hosts: Vec<String> = self.allow.iter().map(|host| toml_text(host)).collect();
        format!(
            r#"# Quittance. Every setting: `quittance config show`, docs/config.md.

# Where the provider can call this node, to bring answers and to settle attempts in doubt.
# {risk}
{public_url}

[targets]
# Page hosts that you may automate; orders for all others are refused before anything is paid for.
allow = [{hosts}]

[reuse]
# What equal orders without an idempotency key are (docs/reuse.md). A site takes most tokens once.
#   "exclusive"  each is a job with an answer of its own: right for many workers on one page
#   "shared"     they are one job and get one answer: right where repeats are retries
#   "by_kind"    exclusive where a site takes an answer once, shared where it can be used again
default = {reuse}

[[provider]]
name = "main"
dialect = {dialect}
protocol = {protocol}
url = {url}
key_env = {key_env}  # the variable that holds the provider's key
"#,
            hosts = hosts.join(", "),
            reuse = toml_text(reuse.get_name()),
            dialect = toml_text(self.service.name()),
            protocol = toml_text(protocol),
            url = toml_text(&self.url),
            key_env = toml_text(&self.key_env),
        )
    }

    fn next_steps(&self, path: &Path, is_well: bool, environment: &Environment) -> String {
        let flag = match path == Path::new("quittance.toml") {
            true => String::new(),
            false => format!(" --config {}", path.display()),
        };
        let mut text = String::new();
        if self.public_url.is_none() {
            _ = writeln!(text, "\n{WITHOUT_PUBLIC_URL}");
        }
        if self.allow.is_empty() {
            text += "\nNo page host is allowed yet: list yours under [targets] before you order.\n";
        }
        if self.allow.iter().any(|host| host == "*") {
            text += "\nWarning: `*` allows every site to be automated. List the hosts that you may automate instead.\n";
        }
        text += match is_well {
            true => "\nThe file is written, and nothing is wrong with it. Next:\n",
            false => {
                "\nThe file is written. Fix what is marked BAD above and run `quittance doctor` again. Next:\n"
            }
        };
        let needs_https = self.client.is_some_and(ClientLines::needs_https);
        let serve = match needs_https {
            true => (
                format!("quittance serve{flag} --tls-self-signed ./tls"),
                "the daemon, with https for your client",
            ),
            false => (format!("quittance serve{flag}"), "the daemon, for clients in any language"),
        };
        let mut steps = vec![serve];
        if !is_well {
            let doctor =
                (format!("quittance doctor{flag}"), "store, provider and callbacks; it pays nothing");
            let key = (format!("export {}=...", self.key_env), "the provider's key; it is not in the file");
            let is_set = environment.get(&self.key_env).is_some_and(|key| !key.trim().is_empty());
            steps.splice(0..0, (!is_set).then_some(key).into_iter().chain([doctor]));
        }
        let width = steps.iter().map(|(step, _)| step.len()).max().unwrap_or_default();
        for (step, words) in &steps {
            _ = writeln!(text, "  {step:<width$}  {words}");
        }
        _ = match self.client {
            Some(client) => write!(
                text,
                "\nThe lines to change in your client. KEY is any text of 32 characters until there are tenants. \
                 `serve --tls-self-signed ./tls` makes ./tls/ca.pem:\n{}",
                client.render()
            ),
            None => writeln!(
                text,
                "\nThe lines to change in your client: docs/clients.md, or `init --client NAME`."
            ),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_by_flags_is_what_the_file_says() {
        for service in Dialect::ALL {
            let answers =
                from_flags(InitArgs { dialect: Some(service.name().into()), ..InitArgs::default() }).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("quittance.toml");
            write_new(&path, &answers.render(), &[]).unwrap();
            let sources = Sources { file: Some(path), overrides: Vec::new() };
            let config = Config::load(&sources, &Environment::default(), Path::new("")).unwrap();
            assert_eq!(config.providers.len(), 1);
            assert_eq!(config.providers[0].dialect().name(), service.name());
            assert_eq!(config.public_url, None);
        }
    }

    #[test]
    fn a_file_that_is_there_is_never_overwritten_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quittance.toml");
        std::fs::write(&path, "mine").unwrap();
        let args = InitArgs { dialect: Some("captchaai".into()), ..InitArgs::default() };
        let config = ConfigArgs { config: Some(path.clone()), overrides: Vec::new() };
        assert_eq!(check_before_questions(&args, &path, &config).unwrap_err().exit, Exit::NotWritten);
        assert_eq!(write_new(&path, "", &[]).unwrap_err().exit, Exit::NotWritten);
        let other = folder.path().join("other.toml");
        write_new(&other, "", &[]).unwrap();
        let rights = |path: &Path| path.metadata().unwrap().permissions();
        assert_eq!(rights(&other), rights(&path), "as any file that this user makes");
        std::fs::remove_file(other).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
