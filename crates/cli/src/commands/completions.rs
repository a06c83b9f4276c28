//! `tickwheel completions`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output::{STDOUT, stdout};

/// Print what a shell needs to complete these commands
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel completions bash > ~/.local/share/bash-completion/completions/tickwheel
  tickwheel completions zsh > \"${fpath[1]}/_tickwheel\"
  tickwheel completions fish > ~/.config/fish/completions/tickwheel.fish")]
pub(crate) struct Completions {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tickwheel", &mut script);
        let mut out = stdout();
        out.write_all(&script).and_then(|()| out.flush()).context(STDOUT)?;
        Ok(ExitCode::SUCCESS)
    }
}
