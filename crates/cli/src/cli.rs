//! The command line as a whole.

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;
use crate::config::{ConfigFile, without_empty_variables};
use crate::environment;
use crate::output::{self, say};

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

impl Cli {
    /// Reads the command line. For `serve` with `--config`, reads that configuration file, too. Ends the program if the arguments are not
    /// valid.
    ///
    /// # Errors
    /// The configuration file cannot be read, or is not valid.
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
        let mut cli = of(&file.apply(command).get_matches());
        if let Command::Serve(serve) = &mut cli.command {
            serve.take_push_tables(file.into_push());
        }
        Ok(cli)
    }

    /// Ends the program as clap does for a command line without a required argument of `subcommand`. The name of a nested subcommand begins
    /// with its parent: `bench beanstalk`.
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
        // `serve` writes these warnings to its log. `completions` stays silent, because a shell may run it at each start.
        if !matches!(self.command, Command::Serve(_) | Command::Completions(_) | Command::Man(_)) {
            environment::unknown().iter().for_each(|unknown| say(&format!("warning: {}", unknown.warning())));
        }
        self.command.run()
    }
}

/// Runs the program: reads the command line of this process, does what it says, and returns the exit code.
pub fn run() -> ExitCode {
    match Cli::read().and_then(Cli::run) {
        Ok(code) => code,
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::Told>() => ExitCode::FAILURE,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
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
