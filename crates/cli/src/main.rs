//! The `quittance` command. This is the only place with an environment, files of the operator's, the real streams and
//! exit codes; whatever it does, it does through the library.

#[cfg(test)]
mod alert_words;
mod audit;
mod completions;
mod config;
mod csv;
mod daemon;
mod day;
mod days;
mod dead;
mod demo;
mod doctor;
mod errors;
mod exit;
mod init;
mod interruption;
mod kinds;
mod node;
mod nodes;
mod office;
mod outcome;
mod output;
mod place;
mod pool;
mod report;
mod serve;
mod sim;
mod solve;
mod stock;
mod stockroom;
mod store;
mod table;
mod tenant;
mod terminal;
mod top;

use clap::{CommandFactory, Parser, Subcommand};
use config::{Config, ConfigArgs, ConfigCommand, Environment};
use exit::{Exit, Trouble};
use serve::{Inherited, Systemd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser, Debug)]
#[command(
    name = "quittance",
    version,
    about = "Paid once, never lost: stands between you and an API that sells answers",
    long_about = "Stands between you and an API that sells answers, and promises: paid once, never lost, never wasted, \
                  never stale, in plain sight.",
    after_help = AFTER_HELP,
    subcommand_required = true,
    arg_required_else_help = true,
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    config: ConfigArgs,
}

const AFTER_HELP: &str = "\
Begin with:
  quittance demo                 see it work, on this machine, for nothing
  quittance init                 write a first config file
  quittance config show          every setting, and where its value came from
  quittance doctor               is everything as it should be?
  quittance serve                the daemon, for clients in any language

Exit codes: 0 done, 1 the result is bad, 2 not understood, 3 could not be written,
4 configuration, 5 store, 6 provider. Each command's help says more.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a storm on this machine, and compare the books with the provider's ledger
    ///
    /// A simulator plays the provider over real HTTP; the engine runs as a process of its own on a real store, and is
    /// killed in the middle; 50 workers ask for answers. Then a judge holds the books against the ledger. It takes a few
    /// seconds, and needs no network, no key and no money.
    #[command(after_help = demo::AFTER_HELP)]
    Demo(demo::DemoArgs),
    /// Write a first config file: asks on a terminal, or takes flags
    #[command(after_help = init::AFTER_HELP)]
    Init(init::InitArgs),
    /// Run the daemon: existing clients change one address
    #[command(after_help = serve::AFTER_HELP)]
    Serve(serve::ServeArgs),
    /// Make keys for those who may ask, and list them
    #[command(after_help = tenant::AFTER_HELP)]
    Tenant(tenant::TenantArgs),
    /// Solve one captcha, or many as lines of JSON
    #[command(after_help = solve::AFTER_HELP)]
    Solve(Box<solve::SolveArgs>),
    /// Run the stand-in provider, to try clients against
    #[command(after_help = sim::AFTER_HELP)]
    Sim(sim::SimArgs),
    /// Look at what needs a person, and mend it
    #[command(after_help = dead::AFTER_HELP)]
    Dead(Box<dead::DeadArgs>),
    /// Look at a store, close it, or move its orders to another
    #[command(after_help = store::AFTER_HELP)]
    Store(store::StoreArgs),
    /// Keep a target warm: answers that are bought before they are asked for
    #[command(after_help = pool::AFTER_HELP)]
    Pool(Box<pool::PoolArgs>),
    /// What the shelf has served, wasted and saved, for each target, and how the pools stand
    #[command(after_help = stock::AFTER_HELP)]
    Stock(stock::StockArgs),
    /// The books: what was asked, paid and saved, by day, tenant, site, kind or provider
    #[command(after_help = report::AFTER_HELP)]
    Report(report::ReportArgs),
    /// Every cent: each paid attempt, why it was made, and who got its answer
    #[command(after_help = audit::AFTER_HELP)]
    Audit(audit::AuditArgs),
    /// Who works on a shared store, and how they are
    #[command(after_help = nodes::AFTER_HELP)]
    Nodes(nodes::NodesArgs),
    /// Watch a node at work
    #[command(after_help = top::AFTER_HELP)]
    Top(top::TopArgs),
    /// What each error of the provider means, and what happens then
    Errors(errors::ErrorsArgs),
    /// The kinds of captcha, their parameters and lifetimes
    Kinds(kinds::KindsArgs),
    /// The settings in force
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Check what the configuration cannot: store, provider, callbacks, certificate
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
        Err(trouble) => {
            let lines = trouble.what.lines().map(|line| format!("quittance: {}\n", output::harmless(line)));
            output::tell(&lines.collect::<String>());
            trouble.exit.into()
        }
    }
}

fn run(command: Command, args: &ConfigArgs) -> Result<Exit, Trouble> {
    let load = || -> Result<Config, Trouble> {
        let config = Config::load(args, &Environment::of_process(), Path::new(""))
            .map_err(|error| Trouble::of(Exit::Config, &error))?;
        let lines = config.warnings.iter().map(|warning| format!("warning: {warning}\n"));
        output::tell(&lines.collect::<String>());
        Ok(config)
    };
    match command {
        Command::Demo(demo) => block_on(demo::run(demo)),
        Command::Sim(sim) => block_on(sim::run(sim)),
        Command::Init(init) => block_on(init::run(init, args)),
        Command::Serve(args) => {
            let environment = Environment::of_process();
            let (inherited, systemd) = (Inherited::take(&environment)?, Systemd::of(&environment));
            block_on(serve::run(args, &load()?, inherited, systemd))
        }
        Command::Tenant(tenant) => show(&tenant::run(tenant, &load()?)?),
        Command::Solve(solve) => {
            let environment = Environment::of_process();
            block_on(solve::run(*solve, &load()?, &environment))
        }
        Command::Dead(dead) => {
            let environment = Environment::of_process();
            block_on(dead::run(*dead, &load()?, &environment))
        }
        Command::Store(store) => {
            let environment = Environment::of_process();
            block_on(store::run(store, &load()?, &environment))
        }
        Command::Pool(pool) => {
            let environment = Environment::of_process();
            block_on(pool::run(*pool, &load()?, &environment))
        }
        Command::Stock(stock) => {
            let environment = Environment::of_process();
            block_on(stock::run(stock, &load()?, &environment))
        }
        Command::Report(report) => {
            let environment = Environment::of_process();
            block_on(report::run(report, &load()?, &environment))
        }
        Command::Audit(audit) => {
            let environment = Environment::of_process();
            block_on(audit::run(audit, &load()?, &environment))
        }
        Command::Nodes(nodes) => block_on(nodes::run(nodes, &load()?)),
        Command::Top(top) => {
            let environment = Environment::of_process();
            block_on(top::run(top, &load()?, &environment))
        }
        Command::Doctor(doctor) => {
            let environment = Environment::of_process();
            block_on(doctor::run(doctor, &load()?, &environment))
        }
        Command::Errors(errors) => show(&errors::run(&errors, &load()?)),
        Command::Kinds(kinds) => {
            let rendered = kinds::run(&kinds, &load()?).map_err(|error| Trouble::of(Exit::Usage, &error))?;
            show(&rendered)
        }
        Command::Config { command: ConfigCommand::Check { json } } => {
            let read = Config::read(args, &Environment::of_process(), Path::new(""));
            block_on(config::check(json, read))
        }
        Command::Config { command: ConfigCommand::Show { json } } => {
            let config = load()?;
            config::refuse_to_overwrite(&config)?;
            show(&config::run(json, &config))
        }
        Command::Completions(args) => show(&completions::run(&args, Cli::command())),
    }
}

fn show(rendered: &str) -> Result<Exit, Trouble> {
    output::print(rendered).map(|()| Exit::Done)
}

fn block_on(command: impl Future<Output = Result<Exit, Trouble>>) -> Result<Exit, Trouble> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Trouble::new(Exit::Bad, format!("the runtime could not be started: {error}")))?;
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
}
