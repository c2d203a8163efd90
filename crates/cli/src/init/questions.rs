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
const NO_CHOICE: &str = "it is not one of the choices";

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
        let service = self.unless_given(
            args.dialect.as_deref().and_then(service),
            "Which service do you buy from? captchaai, 2captcha, anticaptcha, capsolver or capmonster",
            "captchaai",
            |typed| service(typed).ok_or_else(|| NO_CHOICE.to_owned()),
        )?;
        let (usual_url, usual_key_env) = usual(service);
        let url =
            self.unless_given(args.url, "Its address", usual_url, |typed| checked("provider.*.url", typed))?;
        let question = "Which environment variable holds its key?";
        let key_env = self.unless_given(args.key_env, question, usual_key_env, |typed| {
            checked("provider.*.key_env", typed)
        })?;
        let listed = (!args.allow.is_empty()).then_some(args.allow);
        let question = "Which page hosts may you automate? For example shop.example.org, *.example.org";
        let allow = self.unless_given(listed, question, "", hosts)?;
        if args.reuse.is_none() {
            self.say(
                "Two equal orders without an idempotency key: are they one job that was repeated (shared), or two jobs \
                 that need an answer each (exclusive)? by_kind: two where a site takes an answer once, one where it can \
                 be used again.\n",
            )?;
        }
        let reuse = self.unless_given(args.reuse, "shared, exclusive or by_kind", "by_kind", |typed| {
            ReuseChoice::from_str(typed, true).map_err(|_| NO_CHOICE.to_owned())
        })?;
        if args.public_url.is_none() {
            self.say(&format!("{WITHOUT_PUBLIC_URL}\n"))?;
        }
        let question = "Where can the provider call this node? Empty: nowhere";
        let public_url = self.unless_given(args.public_url.map(Some), question, "", |typed| {
            or_none(typed, |url| checked("public_url", url))
        })?;
        if args.client.is_none() {
            let names: Vec<&str> = ClientLines::all().map(|client| client.name).collect();
            self.say(&format!("Clients whose lines to change are known: {}.\n", names.join(", ")))?;
        }
        let question = "Which client do you use? Empty: another one, or none";
        let client = self
            .unless_given(args.client.map(Some), question, "", |typed| or_none(typed, ClientLines::parse))?;
        Ok(Answers { service, url, key_env, allow, reuse, public_url, client })
    }

    fn say(&mut self, text: &str) -> Result<(), CliError> {
        let text = crate::terminal::wrapped(text, 0, self.width);
        let written = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        written.map_err(|error| {
            CliError::new(Exit::NotWritten, format!("the terminal cannot be written: {error}"))
        })
    }

    /// The value of a flag, or else the answer to a question.
    fn unless_given<T>(
        &mut self,
        given: Option<T>,
        question: &str,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, CliError> {
        given.map_or_else(|| self.until(question, default, read), Ok)
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

/// What is typed, read; `None` if nothing is typed.
fn or_none<T>(typed: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if typed.is_empty() { Ok(None) } else { read(typed).map(Some) }
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
