//! The configuration file of `serve`: its options by other means.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command, CommandFactory};
use toml::{Table, Value};

use crate::cli::Cli;

/// The command line without variables that are empty, which is how a shell says that they are not set.
pub(crate) fn without_empty_variables(command: Command) -> Command {
    let is_empty = |option: &Arg| {
        option.get_env().is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()))
    };
    let command =
        command.mut_args(|option| if is_empty(&option) { option.env(Resettable::Reset) } else { option });
    command.mut_subcommands(without_empty_variables)
}

/// What a file may say.
pub(crate) struct Setting {
    /// Its name in the file.
    pub(crate) key: String,
    /// What it does.
    pub(crate) what: String,
    /// Its default as it is written in the file, or else an example.
    pub(crate) example: String,
    /// The environment variable that says the same.
    pub(crate) variable: Option<String>,
    is_flag: bool,
}

/// A file that was read: option by option, what it says.
#[derive(Debug)]
pub(crate) struct ConfigFile(Vec<(String, String)>);

/// Options that say how to run and not how to serve.
const NOT_IN_A_FILE: [&str; 3] = ["config", "help", "version"];

/// Everything that a file may say, in the order of the options.
pub(crate) fn settings() -> Vec<Setting> {
    let serve = serve();
    let options = serve.get_arguments().filter(|option| !NOT_IN_A_FILE.contains(&option.get_id().as_str()));
    options.map(setting).collect()
}

/// `serve`, as the command line knows it.
fn serve() -> Command {
    Cli::command().find_subcommand("serve").expect("there is such a command").clone()
}

fn setting(option: &Arg) -> Setting {
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    let default = option.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    let example = match default {
        _ if is_flag => "false".to_owned(),
        Some(default) => quoted(&default),
        None => quoted(match option.get_id().as_str() {
            "data" => "./tickwheel-data",
            "token_file" => "/etc/tickwheel/tokens",
            "tls_cert" => "/etc/tickwheel/cert.pem",
            "tls_key" => "/etc/tickwheel/key.pem",
            id => id,
        }),
    };
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let rest = option.get_long_help().map(ToString::to_string).unwrap_or_default();
    Setting {
        key: option.get_id().to_string(),
        what: if rest.is_empty() { help } else { rest },
        example,
        variable: option.get_env().map(|name| name.to_string_lossy().into_owned()),
        is_flag,
    }
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, has a key that is not known, or a value that its option does not take.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let place = || format!("failed to take the configuration from {}", path.display());
        let text = std::fs::read_to_string(path).with_context(place)?;
        Self::parse(&text).with_context(place)
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| anyhow::anyhow!("{}", error.to_string().trim()))?;
        let known = settings();
        let mut said = Vec::new();
        for (key, value) in &table {
            let Some(setting) = known.iter().find(|setting| setting.key == *key) else {
                let dashed = key.replace('-', "_");
                let hint = match known.iter().find(|setting| setting.key == dashed) {
                    Some(setting) => format!("write `{}`", setting.key),
                    None => "`tickwheel config` prints all there are".to_owned(),
                };
                bail!("there is no key `{key}`; {hint}");
            };
            let text = match value {
                Value::Boolean(value) if setting.is_flag => value.to_string(),
                Value::String(value) if !setting.is_flag => value.clone(),
                _ if setting.is_flag => bail!("`{key}` is not true or false; write them without quotes"),
                Value::Integer(_) | Value::Float(_) | Value::Datetime(_) => {
                    bail!("`{key}` is not a text; write it in quotes: {key} = \"{value}\"")
                }
                _ => bail!("`{key}` is not a text; write for example {key} = {}", setting.example),
            };
            check(key, &text, setting.is_flag)?;
            said.push((key.clone(), text));
        }
        Ok(Self(said))
    }

    /// How many keys it has.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The command line with what the file says in the place of the defaults of `serve`.
    pub(crate) fn apply(&self, command: Command) -> Command {
        command.mut_subcommand("serve", |mut serve| {
            for (key, text) in &self.0 {
                serve = serve.mut_arg(key, |option| option.default_value(text.clone()));
            }
            serve
        })
    }
}

/// Whether the option takes this value.
fn check(key: &str, text: &str, is_flag: bool) -> Result<()> {
    if is_flag {
        return Ok(());
    }
    // What the environment says of others is not this file's.
    let serve = serve().mut_args(|option| option.env(Resettable::Reset));
    let option = serve.get_arguments().find(|option| option.get_id() == key).expect("it is one of them");
    let name = option.get_long().expect("each has a long name").to_owned();
    let words = ["serve".to_owned(), format!("--{name}={text}")];
    match serve.try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) => {
            let shown = error.to_string();
            let first = shown.lines().next().unwrap_or_default();
            let why = first.strip_prefix("error: ").unwrap_or(first);
            bail!("`{key}`: {why}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        ConfigFile::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key() {
        for (text, what) in [
            ("listn = \"127.0.0.1:1\"", "there is no key `listn`; `tickwheel config` prints all"),
            ("tls-cert = \"a\"", "there is no key `tls-cert`; write `tls_cert`"),
            ("listen = 8463", "`listen` is not a text; write it in quotes"),
            ("listen = [\"a\"]", "`listen` is not a text; write for example listen = \"127.0.0.1:8463\""),
            ("memory = \"yes\"", "`memory` is not true or false"),
            ("listen = \"localhost\"", "`listen`: invalid value 'localhost' for '--listen"),
            ("ack = \"sometimes\"", "`ack`: invalid value 'sometimes'"),
            ("config = \"other.toml\"", "there is no key `config`"),
            ("listen", "TOML parse error at line 1"),
        ] {
            let error = refused(text);
            assert!(error.starts_with(what), "{text}: {error}");
        }
    }

    #[test]
    fn the_command_line_goes_before_the_file_and_the_file_before_the_default() {
        let file = ConfigFile::parse("memory = true\nack = \"os\"\nlevels = \"1s 2s\"").expect("in order");
        let command = file.apply(Cli::command());
        let of = |words: &[&str], id: &str| {
            let matches = command.clone().try_get_matches_from(words).expect("words");
            let serve = matches.subcommand_matches("serve").expect("serve");
            let mut raw = serve.get_raw(id).expect("a value");
            raw.next().expect("one").to_string_lossy().into_owned()
        };
        assert_eq!(of(&["tickwheel", "serve"], "ack"), "os");
        assert_eq!(of(&["tickwheel", "serve", "--ack", "memory"], "ack"), "memory");
        assert_eq!(of(&["tickwheel", "serve"], "levels"), "1s 2s");
        assert_eq!(of(&["tickwheel", "serve"], "memory"), "true");
    }
}
