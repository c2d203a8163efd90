//! The `quittance` command. Only this crate uses the environment, the operator's files, the real streams and exit
//! codes. It does all its work through the library.

#[cfg(test)]
mod alert_texts;
mod audit;
mod budget;
mod completions;
mod config_command;
mod config_reload;
mod csv;
mod days;
mod dead;
mod demo;
mod doctor;
mod errors;
mod exit;
mod exit_reason;
mod init;
mod interruption;
mod kinds;
mod mock;
mod mock_setup;
mod nodes;
mod output;
mod pool;
mod provider;
mod serve;
mod solve;
mod stock;
mod store;
mod tenant;
mod terminal;
#[cfg(test)]
mod test_config;
mod text_table;
#[cfg(feature = "top")]
mod top;
#[cfg(feature = "top")]
mod top_feed;
mod typed;
mod usage;

use clap::{CommandFactory, Parser, Subcommand};
use config_command::{ConfigArgs, ConfigCommand};
use exit::{CliError, Exit, OrExit};
use quittance_config::{Config, Environment};
use quittance_daemon::{Inherited, Systemd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser, Debug)]
#[command(
    name = "quittance",
    version,
    about = "Buy answers from a captcha API: paid once, never lost",
    long_about = "A gateway between your clients and an API that sells captcha answers. It promises: paid once, never lost, \
                  never wasted, never stale, in plain sight.",
    after_help = AFTER_HELP,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = HELP_WIDTH,
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    config: ConfigArgs,
}

/// The widest line of any help text.
const HELP_WIDTH: usize = 80;

const AFTER_HELP: &str = "\
Start with:
  quittance solve --mock   solve a sample captcha, with a mock provider
  quittance demo           see it survive a storm of faults, free of charge
  quittance init           write a first config file
  quittance config show    every setting, and where its value came from
  quittance doctor         check the store, the provider and the callbacks
  quittance serve          run the daemon, for clients in any language

Exit codes: 0 done, 1 bad result, 2 command not understood, 3 cannot write
output, 4 configuration, 5 store, 6 provider. Each command's help has details.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a storm of faults on this machine, and check the usage
    ///
    /// Starts a mock provider on real HTTP and the engine in its own process on a real store. 50 workers ask for answers,
    /// and the engine is killed in the middle. Then the usage is compared with the provider's ledger. The demo takes a few
    /// seconds and needs no network, no key and no money.
    #[command(after_help = demo::AFTER_HELP)]
    Demo(demo::DemoArgs),
    /// Write a first config file, from questions or from flags
    #[command(after_help = init::AFTER_HELP)]
    Init(init::InitArgs),
    /// Run the daemon; existing clients change one address
    #[command(after_help = serve::AFTER_HELP)]
    Serve(serve::ServeArgs),
    /// Create tenant keys, and list them
    #[command(after_help = tenant::AFTER_HELP)]
    Tenant(tenant::TenantArgs),
    /// Solve one captcha, or many as lines of JSON
    #[command(after_help = solve::AFTER_HELP)]
    Solve(Box<solve::SolveArgs>),
    /// Run the mock provider
    #[command(after_help = mock::AFTER_HELP)]
    Mock(mock::MockArgs),
    /// List, inspect, replay or drop dead letters
    #[command(after_help = dead::AFTER_HELP)]
    Dead(Box<dead::DeadArgs>),
    /// Inspect a store, seal it, migrate it, or copy it to another
    #[command(after_help = store::AFTER_HELP)]
    Store(store::StoreArgs),
    /// Manage pools, which buy answers before they are needed
    #[command(after_help = pool::AFTER_HELP)]
    Pool(Box<pool::PoolArgs>),
    /// List providers, and pause, resume or drain one
    #[command(after_help = provider::AFTER_HELP)]
    Provider(provider::ProviderArgs),
    /// List budgets, and show what is spent and left of one
    #[command(after_help = budget::AFTER_HELP)]
    Budget(budget::BudgetArgs),
    /// Show the stock: hits, waste and savings by target
    #[command(after_help = stock::AFTER_HELP)]
    Stock(stock::StockArgs),
    /// Show the usage: what was asked, paid and saved
    #[command(after_help = usage::AFTER_HELP)]
    Usage(usage::UsageArgs),
    /// List each paid attempt: why it was made, and who got its answer
    #[command(after_help = audit::AFTER_HELP)]
    Audit(audit::AuditArgs),
    /// List the nodes that share a store, and their state
    #[command(after_help = nodes::AFTER_HELP)]
    Nodes(nodes::NodesArgs),
    /// Show a live view of a node
    #[cfg(feature = "top")]
    #[command(after_help = top::AFTER_HELP)]
    Top(top::TopArgs),
    /// Explain error codes, and what happens after each
    Errors(errors::ErrorsArgs),
    /// List the kinds of captcha, their parameters and lifetimes
    Kinds(kinds::KindsArgs),
    /// Show, check or reload the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Check the store, the provider, callbacks and the certificate
    #[command(after_help = doctor::AFTER_HELP)]
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

fn main() -> ExitCode {
    let Cli { command, config } = Cli::parse();
    // The daemon logs as its configuration says.
    if !matches!(command, Command::Serve(_)) {
        output::log_to_stderr();
    }
    match run(command, &config) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let lines = error.what.lines().map(|line| format!("quittance: {}\n", output::harmless(line)));
            output::tell(&lines.collect::<String>());
            error.exit.into()
        }
    }
}

fn run(command: Command, config_args: &ConfigArgs) -> Result<Exit, CliError> {
    let load = || -> Result<Config, CliError> {
        let config = Config::load(&config_args.sources(), &Environment::of_process(), Path::new(""))
            .or_exit(Exit::Config)?;
        let lines = config.warnings.iter().map(|warning| format!("warning: {warning}\n"));
        output::tell(&lines.collect::<String>());
        Ok(config)
    };
    let environment = Environment::of_process();
    match command {
        Command::Demo(args) => block_on(demo::run(args)),
        Command::Mock(args) => block_on(mock::run(args)),
        Command::Init(args) => block_on(init::run(args, config_args)),
        Command::Serve(args) => {
            let (inherited, systemd) =
                (Inherited::take(&environment).or_exit(Exit::Config)?, Systemd::of(&environment));
            if args.mock {
                return block_on(serve::run_with_mock(args, config_args, inherited, systemd));
            }
            block_on(serve::run(args, &load()?, Some(config_args.sources()), inherited, systemd))
        }
        Command::Tenant(args) => tenant::run(args, &load()?),
        Command::Solve(args) if args.mock => block_on(solve::run_with_mock(*args, config_args)),
        Command::Solve(args) => block_on(solve::run(*args, load())),
        Command::Dead(args) => block_on(dead::run(*args, &load()?)),
        Command::Store(args) => block_on(store::run(args, &load()?)),
        Command::Pool(args) => block_on(pool::run(*args, &load()?)),
        Command::Provider(args) => block_on(provider::run(args, &load()?)),
        Command::Budget(args) => block_on(budget::run(args, &load()?)),
        Command::Stock(args) => block_on(stock::run(args, &load()?)),
        Command::Usage(args) => block_on(usage::run(args, &load()?)),
        Command::Audit(args) => block_on(audit::run(args, &load()?)),
        Command::Nodes(args) => block_on(nodes::run(args, &load()?)),
        #[cfg(feature = "top")]
        Command::Top(args) => block_on(top::run(args, &load()?)),
        Command::Doctor(args) => block_on(doctor::run(args, &load()?)),
        Command::Errors(args) => errors::run(&args, &load()?),
        Command::Kinds(args) => kinds::run(&args, &load()?),
        Command::Config { command: ConfigCommand::Check { json } } => {
            let read = Config::read(&config_args.sources(), &environment, Path::new(""));
            block_on(config_command::check(json, read))
        }
        Command::Config { command: ConfigCommand::Show { json } } => config_command::show(json, &load()?),
        Command::Config { command: ConfigCommand::Reload(args) } => {
            block_on(config_reload::run(args, &load().map_err(|error| config_reload::refused(&error))?))
        }
        Command::Completions(args) => completions::run(&args, Cli::command()),
    }
}

fn block_on(command: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new(Exit::Bad, format!("the runtime could not be started: {error}")))?;
    let ended = runtime.block_on(command);
    // Whatever still runs is dropped, and takes its processes with it; a thread that still reads standard input must not
    // keep ours.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    fn check_width(command: &mut clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines() {
                let width = line.chars().count();
                assert!(width <= HELP_WIDTH, "{width} columns in the help of{path}: {line}");
            }
        }
        command.get_subcommands_mut().for_each(|subcommand| check_width(subcommand, &path));
    }

    #[test]
    fn every_help_text_fits_80_columns() {
        let mut command = Cli::command();
        command.build();
        check_width(&mut command, "");
    }

    /// Collects the commands with `--json`, which docs/cli.md must list.
    fn with_json(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        if command.get_arguments().any(|arg| arg.get_id() == "json") {
            found.push(path.to_owned());
        }
        for subcommand in command.get_subcommands() {
            with_json(subcommand, format!("{path} {}", subcommand.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn the_json_of_every_command_is_documented() {
        let mut found = Vec::new();
        with_json(&Cli::command(), "", &mut found);
        let page = include_str!("../../../docs/cli.md");
        let (_, section) = page.split_once("\n## JSON output\n").expect("the section is there");
        let section = section.split("\n## ").next().unwrap_or_default();
        for command in found {
            assert!(
                section.contains(&format!("`{command}`")),
                "docs/cli.md does not describe `{command} --json`"
            );
        }
    }
}
