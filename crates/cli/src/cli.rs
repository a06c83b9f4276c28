//! The command line as a whole.

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    ack, backup, bench, cancel, completions, config, demo, doctor, drain, export, extend, forecast, get,
    import, jobs, lease, ls, moving, nack, next, patch, purge, put, queues, redrive, replay, restore, run,
    salvage, schedules, serve, token, top,
};
use crate::config::{ConfigFile, without_empty_variables};
use crate::environment;
use crate::output::say;

/// Does things later, exactly when they are due, and never loses one.
#[derive(Parser, Debug)]
#[command(
    name = "tickwheel",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 110,
    after_help = "\
First steps:
  tickwheel demo                                    watch it survive a kill -9, in under 20 seconds
  tickwheel serve                                   start a server; tasks live in ./tickwheel-data
  tickwheel put close order:1 --in 30m --payload '{\"order\":1}'
  tickwheel move close order:1 --in 1h              the customer asked for more time
  tickwheel cancel close order:1                    the order was paid in time
  tickwheel lease close --wait 20s                  what a worker does
  tickwheel ack close TOKEN                         and what it does after the work

`tickwheel COMMAND --help` has examples for each command. The exit code is 0 if it worked, 1 if it did not, and 2 if the command line
makes no sense."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Serve(Box<serve::Serve>),
    Put(Box<put::Put>),
    Get(get::Get),
    Ls(ls::Ls),
    Patch(Box<patch::Patch>),
    Move(Box<moving::Move>),
    Run(run::Run),
    Cancel(cancel::Cancel),
    Purge(purge::Purge),
    Jobs(jobs::Jobs),
    Lease(lease::Lease),
    Ack(ack::Ack),
    Nack(nack::Nack),
    Extend(extend::Extend),
    Redrive(redrive::Redrive),
    Queues(queues::Queues),
    Drain(drain::Drain),
    Resume(drain::Resume),
    Forecast(forecast::Forecast),
    Top(top::Top),
    Schedules(schedules::Schedules),
    Next(next::Next),
    Token(token::Token),
    Config(config::Config),
    Doctor(doctor::Doctor),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Salvage(salvage::Salvage),
    Export(export::Export),
    Import(import::Import),
    Replay(replay::Replay),
    Bench(bench::Bench),
    Demo(demo::Demo),
    Completions(completions::Completions),
}

impl Cli {
    /// Reads the command line, and the configuration file of `serve` if it names one. Ends the program if the arguments
    /// are not valid.
    ///
    /// # Errors
    /// The file is not in order.
    pub(crate) fn read() -> Result<Self> {
        let of = |matches: &ArgMatches| Self::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
        let command = without_empty_variables(Self::command());
        let matches = command.clone().get_matches();
        let cli = of(&matches);
        let Command::Serve(serve) = &cli.command else { return Ok(cli) };
        let Some(path) = serve.config() else { return Ok(cli) };
        let mut file = ConfigFile::read(path).map_err(|error| serve.told(error))?;
        if let Some((_, said)) = matches.subcommand() {
            file.yield_to(said);
        }
        Ok(of(&file.apply(command).get_matches()))
    }

    /// Ends the program as after an invalid command line of this subcommand. A nested one is named with its parent:
    /// `bench beanstalk`.
    pub(crate) fn misused(subcommand: &str, what: impl Display) -> ! {
        let mut command = Self::command();
        command.build();
        let known = |command, name| {
            clap::Command::find_subcommand_mut(command, name).expect("there is such a command")
        };
        subcommand.split(' ').fold(&mut command, known).error(ErrorKind::MissingRequiredArgument, what).exit()
    }

    /// Runs the command.
    ///
    /// # Errors
    /// The command failed. The caller prints the error.
    pub(crate) fn run(self) -> Result<ExitCode> {
        // The server logs these warnings itself. A shell may read completions at each start.
        if !matches!(self.command, Command::Serve(_) | Command::Completions(_)) {
            environment::unknown().iter().for_each(|unknown| say(&format!("warning: {}", unknown.warning())));
        }
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Put(put) => put.run(),
            Command::Get(get) => get.run(),
            Command::Ls(ls) => ls.run(),
            Command::Patch(patch) => patch.run(),
            Command::Move(moving) => moving.run(),
            Command::Run(run) => run.run(),
            Command::Cancel(cancel) => cancel.run(),
            Command::Purge(purge) => purge.run(),
            Command::Jobs(jobs) => jobs.run(),
            Command::Lease(lease) => lease.run(),
            Command::Ack(ack) => ack.run(),
            Command::Nack(nack) => nack.run(),
            Command::Extend(extend) => extend.run(),
            Command::Redrive(redrive) => redrive.run(),
            Command::Queues(queues) => queues.run(),
            Command::Drain(drain) => drain.run(),
            Command::Resume(resume) => resume.run(),
            Command::Forecast(forecast) => forecast.run(),
            Command::Top(top) => top.run(),
            Command::Schedules(schedules) => schedules.run(),
            Command::Next(next) => next.run(),
            Command::Token(token) => token.run(),
            Command::Config(config) => config.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Backup(backup) => backup.run(),
            Command::Restore(restore) => restore.run(),
            Command::Salvage(salvage) => salvage.run(),
            Command::Export(export) => export.run(),
            Command::Import(import) => import.run(),
            Command::Replay(replay) => replay.run(),
            Command::Bench(bench) => bench.run(),
            Command::Demo(demo) => demo.run(),
            Command::Completions(completions) => completions.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
