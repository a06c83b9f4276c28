//! `tickwheel man`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};

use crate::cli::Cli;

/// Write the manual pages of all commands into a directory
///
/// A package has the pages of its own program, so this command is for those who build the program themselves.
#[derive(Args, Debug)]
#[command(
    hide = true,
    after_help = "\
Examples:
  tickwheel man ~/.local/share/man/man1               then `man tickwheel` and `man tickwheel-serve`"
)]
pub(crate) struct Man {
    /// The directory; it is made if it does not exist
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Man {
    /// Writes one page for each command.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let make = || format!("failed to make {}", self.dir.display());
        fs::create_dir_all(&self.dir).with_context(make)?;
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        write(&command, &self.dir)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the page of a command, and those of the commands below it.
fn write(command: &clap::Command, dir: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below, dir)?;
    }
    let page = Page::new(command.clone())
        .source(format!("tickwheel {}", env!("CARGO_PKG_VERSION")))
        .manual("Tickwheel");
    let path = dir.join(page.get_filename());
    let text = render(command, &page).expect("memory takes every byte");
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

fn render(command: &clap::Command, page: &Page) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        page.render_subcommands_section(&mut text)?;
    }
    if let Some(after) = command.get_after_help() {
        examples(&after.to_string()).to_writer(&mut text)?;
    }
    Ok(text)
}

/// The end of the help as a section: its heading, its examples line by line, and the text after them.
fn examples(after: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_verbatim = false;
    for line in after.lines() {
        let is_example = line.starts_with(' ');
        if is_example != is_verbatim {
            roff.control(if is_example { "nf" } else { "fi" }, []);
            is_verbatim = is_example;
        }
        match line.strip_suffix(':') {
            _ if line.is_empty() => roff.control("PP", []),
            Some(heading) if !is_example => roff.control("SH", [heading.to_uppercase().as_str()]),
            _ => roff.text([roman(line)]),
        };
    }
    if is_verbatim {
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let text = examples("Examples:\n  a -b  'c'\n  .d\n\nThe end\nof it.").render();
        let page = ".SH EXAMPLES\n.nf\n  a \\-b  \\*(Aqc\\*(Aq\n  .d\n.fi\n.PP\nThe end\nof it.\n";
        assert!(text.ends_with(page), "{text}");
    }
}
