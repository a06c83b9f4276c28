//! `tickwheel config`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::config::{ConfigFile, Setting, settings};
use crate::output::{STDOUT, say, stdout};

/// Print a configuration file for `serve` with every key, its default and its meaning; or check a file
///
/// A key is the long option of `serve` without the leading dashes, and with `_` in place of each other dash. If several places set a key,
/// the order is: the command line, the environment, the file, the default.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel config > tickwheel.toml                      then take the # away from what is to be another
  tickwheel config --check tickwheel.toml
  tickwheel serve --config tickwheel.toml")]
pub(crate) struct Config {
    /// Check this file: its keys, their values, and whether a server would start with the file and the present environment. Files and
    /// variables with secrets, passwords and certificates that its tables [push.*] name are read, as at a start; files that its keys name are
    /// not
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

impl Config {
    /// Prints a configuration file with every key and its default, or checks the file of `--check`.
    ///
    /// # Errors
    /// The file cannot be read, or no server would start with it.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if let Some(path) = self.check {
            let file = ConfigFile::read(&path)?;
            file.check().with_context(|| format!("no server starts with {}", path.display()))?;
            say(&format!("{} is in order: {}", path.display(), file.contents()));
            return Ok(ExitCode::SUCCESS);
        }
        let mut out = stdout();
        let page = page(&settings());
        out.write_all(page.as_bytes()).and_then(|()| out.flush()).context(STDOUT)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn page(settings: &[Setting]) -> String {
    let mut page = String::from(
        "# The configuration of `tickwheel serve --config FILE`. What has a # in front has its default.\n",
    );
    let mut last = "";
    for Setting { key, what, example, variable, group, .. } in settings {
        if group != last {
            page.push_str(&format!("\n# ==== {group} ====\n"));
            last = group;
        }
        page.push('\n');
        for line in what.lines() {
            page.push_str(format!("# {line}").trim_end());
            page.push('\n');
        }
        if let Some(variable) = variable {
            page.push_str(&format!("# In the environment: {variable}\n"));
        }
        page.push_str(&format!("#{key} = {example}\n"));
    }
    page.push_str(TABLES);
    page
}

/// The tables at the end of the file.
const TABLES: &str = "
# ==== Names for targets ====

# Secrets that targets name. TICKWHEEL_SECRET_ORDERS in the environment is the secret `orders`, with or without this table.
# [push.secrets]
# orders = { file = \"/etc/tickwheel/orders.secret\" }

# Certificates that targets and connections name.
# [push.tls.own]
# ca = \"/etc/tickwheel/own-ca.pem\"

# Connections to brokers that targets name.
# [push.connections.main]
# kind = \"amqp\"
# addresses = [\"broker.example:5672\"]
# user = \"tickwheel\"
# password_file = \"/etc/tickwheel/broker.password\"
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_a_file_that_can_be_used() {
        let settings = settings();
        let used: String = page(&settings)
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') && rest.contains(" = ") => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let file = ConfigFile::parse(&used).expect("every default is a value");
        assert_eq!(file.len(), settings.len());
    }
}
