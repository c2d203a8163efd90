//! The questions that `init` asks on a terminal: one for each value without a flag. An empty line takes the default.

use super::clients::ClientLines;
use super::{Answers, InitArgs, ReuseChoice, WITHOUT_PUBLIC_URL, service, usual};
use crate::exit::{CliError, Exit};
use clap::ValueEnum;
use quittance_config::check_value;
use quittance_engine::targets::HostPattern;
use std::io::{BufRead, Write};

/// How often the user is asked again after an invalid answer.
const TRIES_MAX: usize = 5;

pub(super) struct Questions<I, O> {
    input: I,
    output: O,
    /// The width of the terminal; `None` if the lines are not to be wrapped.
    width: Option<usize>,
}

impl<I: BufRead, O: Write> Questions<I, O> {
    pub(super) const fn new(input: I, output: O, width: Option<usize>) -> Self {
        Self { input, output, width }
    }

    pub(super) fn ask(mut self, args: InitArgs) -> Result<Answers, CliError> {
        let service = match args.dialect.as_deref().and_then(service) {
            Some(service) => service,
            None => self.until(
                "Which service do you buy from? captchaai, 2captcha, anticaptcha, capsolver or capmonster",
                "captchaai",
                |typed| service(typed).ok_or_else(|| "it is not one of the choices".to_owned()),
            )?,
        };
        let (usual_url, usual_key_env) = usual(service);
        let url = match args.url {
            Some(url) => url,
            None => self.until("Its address", usual_url, |typed| checked("provider.*.url", typed))?,
        };
        let key_env = match args.key_env {
            Some(key_env) => key_env,
            None => self.until("Which environment variable holds its key?", usual_key_env, |typed| {
                checked("provider.*.key_env", typed)
            })?,
        };
        let allow = match args.allow {
            listed if !listed.is_empty() => listed,
            _ => self.until(
                "Which page hosts may you automate? For example shop.example.org, *.example.org",
                "",
                hosts,
            )?,
        };
        let reuse = match args.reuse {
            Some(reuse) => reuse,
            None => {
                self.say(
                    "Two equal orders without an idempotency key: are they one job that was repeated (shared), or two jobs \
                     that need an answer each (exclusive)? by_kind: two where a site takes an answer once, one where it can \
                     be used again.\n",
                )?;
                self.until("shared, exclusive or by_kind", "by_kind", |typed| {
                    ReuseChoice::from_str(typed, true).map_err(|_| "it is not one of the choices".to_owned())
                })?
            }
        };
        let public_url =
            match args.public_url {
                Some(url) => Some(url),
                None => {
                    self.say(&format!("{WITHOUT_PUBLIC_URL}\n"))?;
                    self.until("Where can the provider call this node? Empty: nowhere", "", |typed| {
                        match typed {
                            "" => Ok(None),
                            url => checked("public_url", url).map(Some),
                        }
                    })?
                }
            };
        let client = match args.client {
            Some(client) => Some(client),
            None => {
                let names: Vec<&str> = ClientLines::all().map(|client| client.name).collect();
                self.say(&format!("Clients whose lines to change are known: {}.\n", names.join(", ")))?;
                self.until("Which client do you use? Empty: another one, or none", "", |name| match name {
                    "" => Ok(None),
                    name => ClientLines::parse(name).map(Some),
                })?
            }
        };
        Ok(Answers { service, url, key_env, allow, reuse, public_url, client })
    }

    fn say(&mut self, text: &str) -> Result<(), CliError> {
        let text = crate::terminal::wrapped(text, 0, self.width);
        let written = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        written.map_err(|error| {
            CliError::new(Exit::NotWritten, format!("the terminal cannot be written: {error}"))
        })
    }

    /// Asks until the answer is valid.
    fn until<T>(
        &mut self,
        question: &str,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, CliError> {
        for _ in 0..TRIES_MAX {
            let default_shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
            self.say(&format!("{question}{default_shown}: "))?;
            let mut line = String::new();
            let bytes = self.input.read_line(&mut line).map_err(|error| {
                CliError::new(Exit::Usage, format!("the answer cannot be read: {error}; nothing was written"))
            })?;
            if bytes == 0 {
                let what =
                    "no answer came; nothing was written. Answer the questions, or use flags: see --help";
                return Err(CliError::new(Exit::Usage, what));
            }
            let typed = line.trim();
            match read(if typed.is_empty() { default } else { typed }) {
                Ok(answer) => return Ok(answer),
                Err(why) => self.say(&format!("  {}: {why}\n", crate::output::harmless(typed)))?,
            }
        }
        let what = format!("the question `{question}` was not answered; nothing was written");
        Err(CliError::new(Exit::Usage, what))
    }
}

/// A value that its setting accepts.
fn checked(setting: &str, typed: &str) -> Result<String, String> {
    check_value(setting, typed).map(|()| typed.to_owned())
}

fn hosts(typed: &str) -> Result<Vec<String>, String> {
    let hosts = typed.split([',', ' ']).map(str::trim).filter(|host| !host.is_empty());
    hosts.map(|typed| host(typed).map(|()| typed.to_owned())).collect()
}

/// Checks a page host that may be automated.
pub(super) fn host(typed: &str) -> Result<(), String> {
    HostPattern::parse(typed).map(|_| ()).map_err(|_| {
        format!("`{typed}` is no host: write shop.example.org, without https:// and without a path")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_protocol::Dialect;

    fn ask(typed: &str, args: InitArgs) -> (Result<Answers, CliError>, String) {
        let mut shown = Vec::new();
        let answers = Questions::new(typed.as_bytes(), &mut shown, None).ask(args);
        (answers, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn an_empty_line_takes_the_default_and_nonsense_is_asked_for_again() {
        let typed = "unknown\nCapSolver\nocr.example.org\nhttp://127.0.0.1:9\nMOCK KEY\n\nhttps://shop.example.org/x\n\
                     shop.example.org, *.example.net\n\nhttps://q.example.org\ncurl\ncapsolver\n";
        let (answers, shown) = ask(typed, InitArgs::default());
        assert_eq!(
            answers.unwrap(),
            Answers {
                service: Dialect::CapSolver,
                url: "http://127.0.0.1:9".to_owned(),
                key_env: "CAPSOLVER_API_KEY".to_owned(),
                allow: vec!["shop.example.org".to_owned(), "*.example.net".to_owned()],
                reuse: ReuseChoice::ByKind,
                public_url: Some("https://q.example.org".to_owned()),
                client: ClientLines::parse("capsolver").ok(),
            }
        );
        for words in [
            "unknown: it is not one of",
            "begins with http://",
            "MOCK KEY: it must be the name of an environment variable",
            "without https://",
            "lines are not known",
            WITHOUT_PUBLIC_URL,
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }

    #[test]
    fn what_a_flag_says_is_not_asked_and_a_terminal_that_closes_writes_nothing() {
        let args = InitArgs {
            dialect: Some("captchaai".into()),
            url: Some("https://a.test".to_owned()),
            key_env: Some("KEY".to_owned()),
            allow: vec!["a.test".to_owned()],
            reuse: Some(ReuseChoice::Shared),
            public_url: Some("https://q.test".to_owned()),
            client: ClientLines::parse("captchaai").ok(),
        };
        let (answers, shown) = ask("", args.clone());
        assert!(answers.is_ok() && shown.is_empty(), "{shown}");
        let (answers, _) = ask("", InitArgs { url: None, ..args });
        assert_eq!(answers.unwrap_err().exit, Exit::Usage);
    }
}
