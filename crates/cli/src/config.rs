//! The configuration file of `serve`: the same options in a file.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::cli::Cli;
use crate::commands::serve::Serve;
use crate::faults::{self, Fault};
use crate::push_members;
use crate::push_tables::{PushTables, counted};

/// The command line parser. It ignores empty environment variables, which count as not set.
pub(crate) fn without_empty_variables(command: Command) -> Command {
    let is_empty = |option: &Arg| {
        option.get_env().is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()))
    };
    let command =
        command.mut_args(|option| if is_empty(&option) { option.env(Resettable::Reset) } else { option });
    command.mut_subcommands(without_empty_variables)
}

/// A key that a file may have.
pub(crate) struct Setting {
    /// The name in the file.
    pub(crate) key: String,
    /// The help text.
    pub(crate) what: String,
    /// The default in the syntax of the file, or else an example.
    pub(crate) example: String,
    /// The environment variable of the same option.
    pub(crate) variable: Option<String>,
    /// The heading of the option in the help.
    pub(crate) group: String,
    is_flag: bool,
}

/// A configuration file after reading.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// The text of each option.
    options: Vec<(String, String)>,
    /// The tables `[push.*]`.
    push: PushTables,
}

/// The key of the tables.
const TABLES: &str = "push";

/// The limit of a file (bytes), far above the size of all keys. A larger file is no configuration.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Options that concern one run of the program and not the server.
const NOT_IN_A_FILE: [&str; 3] = ["config", "help", "version"];

/// All keys of a file, in the order of the options.
pub(crate) fn settings() -> Vec<Setting> {
    let serve = serve();
    let options = serve.get_arguments().filter(|option| !NOT_IN_A_FILE.contains(&option.get_id().as_str()));
    options.map(setting).collect()
}

/// The command `serve` of the command line.
pub(crate) fn serve() -> Command {
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
            "shards" => "4",
            "postgres" => "postgres://tickwheel@db.example/tickwheel",
            "node" => "a",
            "allow_host" => "tasks.example",
            "beanstalk" => "127.0.0.1:11300",
            "beanstalk_namespace" => "shop",
            "beanstalk_client_ca" => "/etc/tickwheel/clients.pem",
            "backup_dir" => "/var/backups/tickwheel",
            "backup_every" => "1h",
            "backup_keep" => "24",
            "token_file" => "/etc/tickwheel/tokens",
            "tls_cert" => "/etc/tickwheel/cert.pem",
            "tls_key" => "/etc/tickwheel/key.pem",
            "virtual_clock_at" => "2027-03-27T20:00:00Z",
            "clock_max_ahead" => "30d",
            "push_allow" => "10.1.0.0/16",
            "secret_key_file" => "/etc/tickwheel/secret-keys",
            "otlp_endpoint" => "http://127.0.0.1:4318",
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
        group: option.get_help_heading().expect("each option has a heading").to_owned(),
        is_flag,
    }
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or has unknown keys or values that their options refuse. The error names
    /// all of them.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let place = || format!("failed to take the configuration from {}", path.display());
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        if bytes > FILE_BYTES_MAX {
            return Err(anyhow::anyhow!(
                "it has {bytes} bytes, and a configuration has at most {FILE_BYTES_MAX}"
            ))
            .with_context(place);
        }
        let text = std::fs::read_to_string(path).with_context(place)?;
        Self::parse(&text).with_context(place)
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let line_of = |at: usize| 1 + text[..at].matches('\n').count();
        let table = DeTable::parse(text).map_err(|error| {
            // The line itself may have a password, and is not shown.
            let at = error.span().map_or(0, |span| span.start);
            let column = 1 + text[..at].chars().rev().take_while(|one| *one != '\n').count();
            anyhow::anyhow!("TOML parse error at line {}, column {column}: {}", line_of(at), error.message())
        })?;
        let known = settings();
        let (mut said, mut faults) = (Vec::new(), Vec::new());
        let mut push = PushTables::default();
        for (key, value) in table.get_ref() {
            if key.get_ref() == TABLES {
                let line = line_of(key.span().start);
                push = PushTables::new(push_members::read(line, value.get_ref(), line_of, &mut faults));
                continue;
            }
            let written = &text[value.span()];
            match text_of(key.get_ref(), value.get_ref(), written, &known) {
                Ok(text) => said.push((key.get_ref().to_string(), text)),
                Err(fault) => faults.push(Fault::new(Some(line_of(key.span().start)), fault.to_string())),
            }
        }
        faults::none(faults)?;
        Ok(Self { options: said, push })
    }

    /// Removes `memory` if the command line or the environment names a directory, because the caller wants tasks to be kept there.
    pub(crate) fn yield_to(&mut self, said: &ArgMatches) {
        if said.value_source("data").is_some_and(|source| source != ValueSource::DefaultValue) {
            self.options.retain(|(key, _)| key != "memory");
        }
    }

    /// Checks the file together with the environment, as `serve` would read them. Reads the files and variables that the tables `[push.*]` name.
    ///
    /// # Errors
    /// The keys contradict each other, a required key is missing, or a table cannot be used. The error names all faults of the tables, and
    /// never shows a secret.
    pub(crate) fn check(&self) -> Result<()> {
        let mut faults = self.contradictions();
        faults.extend(self.push.unusable());
        faults::none(faults)
    }

    /// Returns the faults that show without reading the files and variables that the tables `[push.*]` name.
    pub(crate) fn contradictions(&self) -> Vec<Fault> {
        let mut faults = self.push.contradictions();
        faults.extend(self.check_options().err().map(|error| Fault::new(None, format!("{error:#}"))));
        faults
    }

    fn check_options(&self) -> Result<()> {
        let command = self.apply(without_empty_variables(Cli::command()));
        let matches =
            command.try_get_matches_from(["tickwheel", "serve"]).map_err(|error| in_one_line(&error))?;
        let said = matches.subcommand_matches("serve").expect("it was named");
        Serve::from_arg_matches(said)?.settled().map(|_| ())
    }

    /// The contents in words, for an operator: `3 keys, 2 connections (main: amqp, other: redis)`.
    pub(crate) fn contents(&self) -> String {
        let mut contents = self.push.contents();
        if self.len() > 0 || contents.is_empty() {
            contents.insert(0, counted(self.len(), "key"));
        }
        contents.join(", ")
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.options.len()
    }

    /// The tables `[push.*]`.
    pub(crate) fn into_push(self) -> PushTables {
        self.push
    }

    /// The command line with the file's values as the defaults of `serve`.
    pub(crate) fn apply(&self, command: Command) -> Command {
        command.mut_subcommand("serve", |mut serve| {
            for (key, text) in &self.options {
                serve = serve.mut_arg(key, |option| option.default_value(text.clone()));
            }
            serve
        })
    }
}

/// The text of a file's value as on the command line.
///
/// # Errors
/// The error is one sentence: no option has this name, or the option refuses this value.
fn text_of(key: &str, value: &DeValue<'_>, written: &str, known: &[Setting]) -> Result<String> {
    let Some(setting) = known.iter().find(|setting| setting.key == key) else {
        let dashed = key.replace('-', "_");
        match known.iter().find(|setting| setting.key == dashed) {
            Some(setting) => bail!("there is no key `{key}`; write `{}`", setting.key),
            None if push_members::has(key) => bail!("there is no key `{key}`; write [{TABLES}.{key}.NAME]"),
            None => bail!("there is no key `{key}`; `tickwheel config` prints all there are"),
        }
    };
    let text = match value {
        DeValue::Boolean(value) if setting.is_flag => return Ok(value.to_string()),
        DeValue::String(value) if !setting.is_flag => value.to_string(),
        _ if setting.is_flag => bail!("`{key}` is not true or false; write them without quotes"),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => {
            bail!("`{key}` is not a text; write it in quotes: {key} = \"{written}\"")
        }
        _ => bail!("`{key}` is not a text; write for example {key} = {}", setting.example),
    };
    // Environment variables for other options must not affect the check of this value.
    let serve = serve().mut_args(|option| option.env(Resettable::Reset));
    let option = serve.get_arguments().find(|option| option.get_id() == key).expect("it is one of them");
    let name = option.get_long().expect("each has a long name").to_owned();
    let words = ["serve".to_owned(), format!("--{name}={text}")];
    match serve.try_get_matches_from(words) {
        Ok(_) => Ok(text),
        Err(error) => bail!("`{key}`: {}", in_one_line(&error)),
    }
}

/// The error of the command line parser with its hint in one line, without the usage lines.
fn in_one_line(error: &clap::Error) -> anyhow::Error {
    let shown = error.to_string();
    let lines = shown.lines().take_while(|line| !line.starts_with("For more") && !line.starts_with("Usage"));
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let why = lines.join(" ");
    anyhow::anyhow!("{}", why.strip_prefix("error: ").unwrap_or(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        ConfigFile::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn errors_name_their_key() {
        for (text, what) in [
            ("listn = \"127.0.0.1:1\"", "there is no key `listn`; `tickwheel config` prints all"),
            ("tls-cert = \"a\"", "there is no key `tls-cert`; write `tls_cert`"),
            ("listen = 8463", "`listen` is not a text; write it in quotes"),
            ("listen = [\"a\"]", "`listen` is not a text; write for example listen = \"127.0.0.1:8463\""),
            ("memory = \"yes\"", "`memory` is not true or false"),
            ("listen = \"localhost\"", "`listen`: invalid value 'localhost' for '--listen"),
            ("ack = \"sometimes\"", "`ack`: invalid value 'sometimes'"),
            ("config = \"other.toml\"", "there is no key `config`"),
            (
                "[push.secrets]\na = { fil = \"x\" }",
                "line 2: [push.secrets.a]: a secret has no member `fil`; did you mean",
            ),
            (
                "[push.tls.a]\n\ncart = \"x\"",
                "line 3: [push.tls.a]: a table of certificates has no member `cart`",
            ),
            ("[connections.main]", "there is no key `connections`; write [push.connections.NAME]"),
            ("[pusch.secrets]", "there is no key `pusch`"),
            ("listen", "TOML parse error at line 1"),
        ] {
            let error = refused(text);
            let error = error.strip_prefix("line 1: ").unwrap_or(&error);
            assert!(error.starts_with(what), "{text}: {error}");
        }
    }

    #[test]
    fn a_line_that_is_no_toml_is_named_and_not_shown() {
        for text in [
            "[push.connections.main]\npassword = \"hunter2",
            "[push.connections.main]\npassword = hunter2",
            "[push.connections.main]\naddresses = [\"a:1\"\npassword = \"hunter2\"",
        ] {
            let error = refused(text);
            assert!(error.starts_with("TOML parse error at line ") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn all_faults_are_named_with_their_lines_and_what_would_be_right() {
        let error = refused("# a comment\nack = \"sometimes\"\n\nlisten = 8463\n");
        let lines: Vec<&str> = error.lines().map(str::trim).collect();
        assert_eq!(lines[0], "2 faults");
        assert!(lines[1].starts_with("line 2: `ack`: invalid value 'sometimes'"), "{error}");
        assert!(lines[1].ends_with("[possible values: fsync, os, memory]"), "{error}");
        assert!(lines[2].starts_with("line 4: `listen` is not a text"), "{error}");

        let error = refused(
            "listen = 8463\n[push.connections.a]\nkind = \"rabbitmq\"\naddresses = \"a:1\"\ndatabase = \"0\"\n",
        );
        let lines: Vec<&str> = error.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 5, "{error}");
        assert!(lines[1].starts_with("line 1: `listen`"), "{error}");
        assert_eq!(
            lines[2],
            "line 3: [push.connections.a]: `kind` cannot be `rabbitmq`; did you mean `amqp`?"
        );
        assert!(lines[3].starts_with("line 4: [push.connections.a]: `addresses` is one text"), "{error}");
        assert!(lines[4].starts_with("line 5: [push.connections.a]: `database` is a text"), "{error}");
    }

    /// The lines of the error of a check of this file; none: it is in order.
    fn faults_of_check(text: &str) -> Vec<String> {
        let checked = ConfigFile::parse(text).expect(text).check();
        let told = checked.err().map(|error| error.to_string()).unwrap_or_default();
        told.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn all_faults_of_all_kinds_are_found_in_one_check_with_their_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let no_certificate = folder.path().join("ca.pem");
        std::fs::write(&no_certificate, "no certificate").expect("a file");
        let broker = "kind = \"redis\"\naddresses = [\"a:1\"]";
        let text = format!(
            "tls_cert = \"a\"\n\n[push.secrets]\na = {{ file = \"/no/such/secret\" }}\nb = {{}}\n\
             [push.tls.first]\nca = {no_certificate:?}\n[push.tls.second]\nca = \"/no/such/ca\"\ncert = \"/no/such/cert\"\nkey = \"/no/such/key\"\n\
             [push.connections.\"A b\"]\n{broker}\n\
             [push.connections.c]\n{broker}\npassword_file = \"/no/such/password\"\nvhost = \"shop\"\n\
             [push.connections.d]\n{broker}\n\npassword_env = \"TICKWHEEL_TEST_ABSENT\"\n\
             [push.connections.e]\n{broker}\ntls = true\ncertificates = \"first\"\n"
        );
        let faults = faults_of_check(&text);
        let expected = [
            "11 faults",
            "line 4: [push.secrets] `a`: failed to read `file` /no/such/secret: No such file",
            "line 5: [push.secrets] `b`: write either { file",
            "line 6: [push.tls.first]: there is no certificate in the file",
            "line 9: [push.tls.second]: cannot read /no/such/ca: No such file",
            "line 10: [push.tls.second]: cannot read /no/such/cert: No such file",
            "line 11: [push.tls.second]: cannot read /no/such/key: No such file",
            "line 12: [push]: `A b` is no name",
            "line 18: [push.connections.c]: failed to read `password_file` /no/such/password: No such file",
            "line 19: [push.connections.c]: `vhost` is for the kind `amqp`",
            "line 24: [push.connections.d]: the variable TICKWHEEL_TEST_ABSENT of `password_env` is not set",
            "there is a certificate and no key; add --tls-key",
        ];
        assert_eq!(faults.len(), expected.len(), "{faults:#?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.starts_with(expected), "{fault} is not {expected}");
        }
    }

    #[test]
    fn a_member_that_the_broker_does_not_use_is_refused_with_its_line_and_a_way_out() {
        let secret = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&secret, "hunter2").expect("written");
        let check = |kind: &str, lines: &str| {
            let lines = lines.replace("SECRET", &format!("{:?}", secret.path()));
            faults_of_check(&format!(
                "[push.connections.a]\nkind = \"{kind}\"\naddresses = [\"a:1\"]\n{lines}\n"
            ))
        };
        for (kind, lines, faults) in [
            (
                "redis",
                "vhost = \"shop\"",
                &[
                    "line 4",
                    "`vhost` is for the kind `amqp`, and this connection has the kind `redis`; leave it out",
                ][..],
            ),
            ("kafka", "\ndatabase = 1", &["line 5", "`database` is for the kind `redis`"]),
            ("nats", "sasl = \"plain\"", &["line 4", "`sasl` is for the kind `kafka`"]),
            (
                "kafka",
                "sasl = \"plain\"",
                &[
                    "line 4",
                    "`sasl` has no effect without a login; write `user`, and `password_file` or `password_env`",
                ],
            ),
            (
                "kafka",
                "user = \"u\"",
                &["line 4", "no `user` without a password; write `password_file` or `password_env`, too"],
            ),
            ("kafka", "password_file = SECRET", &["line 4", "no password without a user; write `user`, too"]),
            ("amqp", "user = \"u\"", &["line 4", "no `user` without a password", "leave `user` out"]),
            ("redis", "user = \"u\"", &["line 4", "`user` has no effect without a password"]),
            (
                "beanstalk",
                "password_file = SECRET",
                &["line 4", "no users and no passwords; leave the password out"],
            ),
            ("beanstalk", "user = \"u\"", &["line 4", "no users and no passwords; leave the user out"]),
        ] {
            let told = check(kind, lines);
            assert_eq!(told.len(), 1, "{kind}, {lines}: {told:?}");
            assert!(faults.iter().all(|fault| told[0].contains(fault)), "{kind}, {lines}: {told:?}");
        }
        for (kind, lines) in [
            ("amqp", "password_file = SECRET\nvhost = \"shop\""),
            ("nats", "password_file = SECRET"),
            ("nats", "user = \"u\""),
            ("redis", "password_file = SECRET\ndatabase = 1"),
            ("redis", "user = \"u\"\npassword_file = SECRET"),
            ("kafka", "user = \"u\"\npassword_file = SECRET\nsasl = \"scram-sha-256\""),
        ] {
            assert_eq!(check(kind, lines), Vec::<String>::new(), "{kind}, {lines}");
        }
        let several = |kind: &str| {
            faults_of_check(&format!(
                "[push.connections.a]\nkind = \"{kind}\"\n\naddresses = [\"a:1\", \"b:1\"]\n"
            ))
        };
        // The addresses of Redis are those of a server and its replicas.
        for kind in ["redis", "nats", "kafka", "amqp"] {
            assert_eq!(several(kind), Vec::<String>::new(), "{kind}");
        }
        let told = several("beanstalk");
        assert!(
            told[0].starts_with(
                "line 4: [push.connections.a]: each beanstalkd has jobs of its own; write one address"
            ),
            "{told:?}"
        );
    }

    #[test]
    fn keys_that_contradict_each_other_are_found_before_the_start() {
        let check = |text: &str| {
            ConfigFile::parse(text).expect("each by itself").check().map_err(|error| error.to_string())
        };
        assert_eq!(check("tls_cert = \"a\"\ntls_key = \"b\""), Ok(()));
        assert!(check("tls_cert = \"a\"").expect_err("half").contains("add --tls-key"));
        assert!(
            check("listen = \"0.0.0.0:1\"").expect_err("open").contains("other machines can reach 0.0.0.0:1")
        );
        assert_eq!(check("listen = \"0.0.0.0:1\"\ninsecure = true"), Ok(()));
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

    #[test]
    fn a_directory_on_the_command_line_goes_before_memory_in_the_file() {
        let memory_with = |words: &[&str]| {
            let mut file = ConfigFile::parse("memory = true").expect("in order");
            let command = Cli::command()
                .mut_subcommand("serve", |serve| serve.mut_args(|option| option.env(Resettable::Reset)));
            let matches = command.clone().try_get_matches_from(words).expect("words");
            file.yield_to(matches.subcommand_matches("serve").expect("serve"));
            let matches = file.apply(command).try_get_matches_from(words).expect("words");
            matches.subcommand_matches("serve").expect("serve").get_flag("memory")
        };
        assert!(memory_with(&["tickwheel", "serve"]));
        assert!(!memory_with(&["tickwheel", "serve", "--data", "d"]));
        assert!(memory_with(&["tickwheel", "serve", "--data", "d", "--memory"]));
    }
}
