//! The form of the tables `[push.*]` of a configuration file: which members a table has, and which values they take.

use tickwheel_api::{nearest, shown};
use toml::Value;
use toml::de::{DeTable, DeValue};

/// The values that a member takes.
#[derive(Copy, Clone)]
enum Form {
    Text,
    /// A list of texts.
    Texts,
    /// `true` or `false`.
    Flag,
    /// A number from 0 on.
    Number,
    /// One of these words. `others` are words of other programs for them.
    Word {
        known: &'static [&'static str],
        others: Others,
    },
}

/// Words that an operator may write, and the word that is meant.
type Others = &'static [(&'static str, &'static str)];

/// A table with a name of the operator's: `[push.connections.NAME]`.
struct Table {
    /// The name of the table of such tables.
    name: &'static str,
    /// One such table in words, for a message.
    noun: &'static str,
    /// How one such table is written, for a message.
    written: &'static str,
    members: &'static [(&'static str, Form)],
    /// The members that cannot be absent, each with an example.
    needed: &'static [(&'static str, &'static str)],
    others: Others,
}

const TABLES: [Table; 3] = [
    Table {
        name: "secrets",
        noun: "a secret",
        written: "NAME = { file = \"...\" } below [push.secrets]",
        members: &[("file", Form::Text), ("env", Form::Text)],
        needed: &[],
        others: &[("path", "file"), ("variable", "env")],
    },
    Table {
        name: "tls",
        noun: "a table of certificates",
        written: "[push.tls.NAME]",
        members: &[("ca", Form::Text), ("cert", Form::Text), ("key", Form::Text)],
        needed: &[],
        others: &[("client_cert", "cert"), ("client_key", "key"), ("roots", "ca")],
    },
    Table {
        name: "connections",
        noun: "a connection",
        written: "[push.connections.NAME]",
        members: &[
            ("kind", Form::Word { known: &["kafka", "amqp", "nats", "redis", "beanstalk"], others: KINDS }),
            ("addresses", Form::Texts),
            ("user", Form::Text),
            ("password_file", Form::Text),
            ("password_env", Form::Text),
            ("tls", Form::Flag),
            ("certificates", Form::Text),
            ("vhost", Form::Text),
            ("database", Form::Number),
            ("sasl", Form::Word { known: &["plain", "scram-sha-256", "scram-sha-512"], others: &[] }),
        ],
        needed: &[("kind", "\"redis\""), ("addresses", "[\"127.0.0.1:6379\"]")],
        others: &[
            ("url", "addresses"),
            ("host", "addresses"),
            ("hosts", "addresses"),
            ("port", "addresses"),
            ("servers", "addresses"),
            ("brokers", "addresses"),
            ("username", "user"),
            ("ca", "certificates"),
            ("cert", "certificates"),
            ("db", "database"),
            ("virtual_host", "vhost"),
            ("mechanism", "sasl"),
        ],
    },
];

const KINDS: Others = &[
    ("rabbitmq", "amqp"),
    ("rabbit", "amqp"),
    ("jetstream", "nats"),
    ("redpanda", "kafka"),
    ("valkey", "redis"),
    ("tube", "beanstalk"),
];

/// Whether there are tables `[push.NAME.*]`.
pub(crate) fn has(name: &str) -> bool {
    TABLES.iter().any(|table| table.name == name)
}

/// A fault: where it begins in the file (bytes), and what is wrong.
pub(crate) type Fault = (usize, String);

/// Returns the faults in the form of `push`, the value of the key of that name, which begins at `at`. A value that may be a password is not
/// shown.
pub(crate) fn faults(at: usize, push: &DeValue<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let Some(push) = push.as_table() else {
        let tables = TABLES.map(|table| format!("[push.{}]", table.name));
        return vec![(at, format!("`push` is not a table; write {}", tables.join(", ")))];
    };
    for (key, named) in push {
        let Some(table) = TABLES.iter().find(|table| table.name == key.get_ref()) else {
            let known: Vec<_> = TABLES.iter().map(|table| table.name).collect();
            let hint = meant(key.get_ref(), &known, &[], "the tables are");
            faults.push((
                key.span().start,
                format!("[push]: there is no table `{}`; {hint}", shown(key.get_ref())),
            ));
            continue;
        };
        match named.get_ref().as_table() {
            Some(named) => table.check(named, &mut faults),
            None => faults.push((
                key.span().start,
                format!("[push.{0}] is not a table; write [push.{0}.NAME]", table.name),
            )),
        }
    }
    faults
}

impl Table {
    fn check(&self, named: &DeTable<'_>, faults: &mut Vec<Fault>) {
        for (name, value) in named {
            let (place, begin) =
                (format!("[push.{}.{}]", self.name, shown(name.get_ref())), name.span().start);
            let Some(members) = value.get_ref().as_table() else {
                // The usual cause is a member without a name of the table: `[push.connections]` and `kind = ...`.
                faults.push((
                    begin,
                    format!("{place} is not a table; write {} as {}", self.noun, self.written),
                ));
                continue;
            };
            for (key, value) in members {
                if let Err(fault) = self.member(key.get_ref(), value.get_ref()) {
                    faults.push((key.span().start, format!("{place}: {fault}")));
                }
            }
            for (needed, example) in self.needed {
                if !members.iter().any(|(key, _)| key.get_ref() == needed) {
                    faults.push((
                        begin,
                        format!("{place}: `{needed}` is missing; write for example {needed} = {example}"),
                    ));
                }
            }
        }
    }

    fn member(&self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
        match self.members.iter().find(|(known, _)| *known == key) {
            Some((_, form)) => form.check(key, value),
            None if key == "password" && self.name == "connections" => Err(
                "the file does not hold passwords: write `password_file` with the path of a file, or `password_env` with the name of a variable".to_owned(),
            ),
            None => {
                let known: Vec<_> = self.members.iter().map(|(known, _)| *known).collect();
                let hint = meant(key, &known, self.others, "it has");
                Err(format!("{} has no member `{}`; {hint}", self.noun, shown(key)))
            }
        }
    }
}

impl Form {
    fn check(self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
        let text = value.as_str();
        match self {
            Self::Text if text.is_some() => Ok(()),
            Self::Text => Err(format!("`{key}` is not a text; write it in quotes: {key} = \"...\"")),
            Self::Texts => match (text, value.as_array()) {
                (_, Some(list)) if list.iter().all(|one| one.get_ref().is_str()) => Ok(()),
                (_, Some(_)) => Err(format!(
                    "`{key}` is not a list of texts; write each in quotes: {key} = [\"HOST:PORT\"]"
                )),
                (Some(text), None) => {
                    let list: Vec<Value> = without_login(text)
                        .split(',')
                        .map(|one| Value::from(without_login(one.trim())))
                        .collect();
                    Err(format!("`{key}` is one text and not a list; write {key} = {}", Value::from(list)))
                }
                (None, None) => Err(format!("`{key}` is not a list; write {key} = [\"HOST:PORT\"]")),
            },
            Self::Flag if value.is_bool() => Ok(()),
            Self::Flag => {
                Err(format!("`{key}` is not true or false; write them without quotes: {key} = true"))
            }
            Self::Number => {
                let number =
                    value.as_integer().map(|number| u32::from_str_radix(number.as_str(), number.radix()));
                match (number, text.and_then(|text| text.trim().parse::<u32>().ok())) {
                    (Some(Ok(_)), _) => Ok(()),
                    (_, Some(number)) => Err(format!(
                        "`{key}` is a text and not a number; write it without quotes: {key} = {number}"
                    )),
                    _ => Err(format!(
                        "`{key}` is not a number from 0 to {}; write for example {key} = 0",
                        u32::MAX
                    )),
                }
            }
            Self::Word { known, others } => match text {
                Some(word) if known.contains(&word) => Ok(()),
                Some(word) => Err(format!(
                    "`{key}` cannot be `{}`; {}",
                    shown(word),
                    meant(word, known, others, "known are")
                )),
                None => Err(format!("`{key}` is not a text; write one of \"{}\"", known.join("\", \""))),
            },
        }
    }
}

/// Returns a hint for a word that is not known: the word that may be meant, or else all words after `list`.
fn meant(word: &str, known: &[&str], others: Others, list: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let other = others.iter().find(|(other, _)| *other == lower).map(|(_, meant)| *meant);
    match other.or_else(|| nearest(&lower, known)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{list} `{}`", known.join("`, `")),
    }
}

/// Returns an address without a user and a password before it, for a message.
pub(crate) fn without_login(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((_, rest)) => format!("...@{rest}"),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push_tables::PushTables;

    fn faults_of(text: &str) -> Vec<String> {
        let table = DeTable::parse(text).expect(text);
        let (key, value) = table.get_ref().iter().next().expect("a table");
        faults(key.span().start, value.get_ref()).into_iter().map(|(_, fault)| fault).collect()
    }

    /// The faults of a connection with this line.
    fn of_connection(line: &str) -> Vec<String> {
        let usual = [("kind", "\"redis\""), ("addresses", "[\"a:1\"]")];
        let usual = usual.into_iter().filter(|(key, _)| !line.starts_with(&format!("{key} =")));
        let usual: String = usual.map(|(key, value)| format!("{key} = {value}\n")).collect();
        faults_of(&format!("[push.connections.main]\n{usual}{line}\n"))
    }

    /// Returns the words that the reader of the tables names for an unknown one in `text`, in order.
    fn known_to_the_reader(text: &str) -> Vec<String> {
        let error = toml::from_str::<PushTables>(text).expect_err(text);
        let (_, known) = error.message().split_once("expected").expect(text);
        sorted(known.split('`').skip(1).step_by(2))
    }

    fn sorted<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
        let mut words: Vec<_> = words.map(str::to_owned).collect();
        words.sort();
        words
    }

    #[test]
    fn the_check_and_the_reader_know_the_same_tables_members_and_words() {
        assert_eq!(known_to_the_reader("unknown = 1"), sorted(TABLES.iter().map(|table| table.name)));
        for Table { name, members, .. } in &TABLES {
            let known = known_to_the_reader(&format!("[{name}.a]\nunknown = 1"));
            assert_eq!(known, sorted(members.iter().map(|(member, _)| *member)), "{name}");
            for (member, form) in *members {
                if let Form::Word { known, .. } = form {
                    let words = known_to_the_reader(&format!("[{name}.a]\n{member} = \"unknown\""));
                    assert_eq!(words, sorted(known.iter().copied()), "{name}: {member}");
                }
            }
        }
    }

    #[test]
    fn the_reader_takes_each_value_that_the_check_takes() {
        for table in &TABLES {
            let read = |lines: &str| {
                let table = format!("[push.{}.a]\n{lines}", table.name);
                assert_eq!(faults_of(&table), Vec::<String>::new(), "{table}");
                toml::from_str::<PushTables>(&table.replace("[push.", "[")).expect(&table);
            };
            let needed = |but: &str| -> String {
                let needed = table.needed.iter().filter(|(member, _)| *member != but);
                needed.map(|(member, value)| format!("{member} = {value}\n")).collect()
            };
            read(&needed(""));
            for (member, form) in table.members {
                let values: Vec<String> = match form {
                    Form::Text => vec!["\"a\"".to_owned()],
                    Form::Texts => vec!["[]".to_owned(), "[\"a:1\", \"b:2\"]".to_owned()],
                    Form::Flag => vec!["true".to_owned(), "false".to_owned()],
                    Form::Number => vec!["0".to_owned(), u32::MAX.to_string()],
                    Form::Word { known, .. } => known.iter().map(|word| format!("\"{word}\"")).collect(),
                };
                for value in values {
                    read(&format!("{}{member} = {value}\n", needed(member)));
                }
            }
        }
    }

    #[test]
    fn a_needed_member_cannot_be_absent_for_the_reader_either() {
        for Table { name, needed, .. } in &TABLES {
            for (absent, _) in *needed {
                let others = needed.iter().filter(|(member, _)| member != absent);
                let others: String = others.map(|(member, value)| format!("{member} = {value}\n")).collect();
                let error = toml::from_str::<PushTables>(&format!("[{name}.a]\n{others}")).expect_err(absent);
                assert!(error.message().contains(&format!("missing field `{absent}`")), "{name}: {error}");
            }
        }
    }

    #[test]
    fn each_member_has_a_line_in_the_reference() {
        let page = include_str!("reference/configuration_head.txt");
        for Table { name, members, .. } in TABLES.iter().filter(|table| table.name != "secrets") {
            let (_, rows) = page.split_once(&format!("| `[push.{name}.NAME]` |")).expect(name);
            let rows = rows.split("| `[push.").next().unwrap_or_default();
            for (member, _) in *members {
                assert!(rows.contains(&format!("`{member}`")), "{name}: {member}");
            }
        }
    }

    #[test]
    fn a_connection_in_order_has_no_fault() {
        for line in [
            "database = 0",
            "database = 0x10",
            "tls = true",
            "kind = \"amqp\"",
            "addresses = []",
            "sasl = \"plain\"",
        ] {
            assert_eq!(of_connection(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn a_wrong_value_is_shown_as_it_has_to_be_written() {
        for (line, fault) in [
            (
                "addresses = \"a:1, b:2\"",
                "`addresses` is one text and not a list; write addresses = [\"a:1\", \"b:2\"]",
            ),
            ("addresses = 6379", "`addresses` is not a list; write addresses = [\"HOST:PORT\"]"),
            (
                "addresses = [6379]",
                "`addresses` is not a list of texts; write each in quotes: addresses = [\"HOST:PORT\"]",
            ),
            (
                "database = \"0\"",
                "`database` is a text and not a number; write it without quotes: database = 0",
            ),
            (
                "database = -1",
                "`database` is not a number from 0 to 4294967295; write for example database = 0",
            ),
            ("tls = \"yes\"", "`tls` is not true or false; write them without quotes: tls = true"),
            ("user = 1", "`user` is not a text; write it in quotes: user = \"...\""),
            (
                "kind = 1",
                "`kind` is not a text; write one of \"kafka\", \"amqp\", \"nats\", \"redis\", \"beanstalk\"",
            ),
            ("kind = \"rabbitmq\"", "`kind` cannot be `rabbitmq`; did you mean `amqp`?"),
            ("kind = \"beanstalkd\"", "`kind` cannot be `beanstalkd`; did you mean `beanstalk`?"),
            ("kind = \"Redis\"", "`kind` cannot be `Redis`; did you mean `redis`?"),
            (
                "kind = \"activemq\"",
                "`kind` cannot be `activemq`; known are `kafka`, `amqp`, `nats`, `redis`, `beanstalk`",
            ),
            ("sasl = \"SCRAM-SHA-256\"", "`sasl` cannot be `SCRAM-SHA-256`; did you mean `scram-sha-256`?"),
        ] {
            assert_eq!(of_connection(line), [format!("[push.connections.main]: {fault}")], "{line}");
        }
    }

    #[test]
    fn an_unknown_member_is_told_with_the_one_that_may_be_meant() {
        for (line, fault) in [
            ("adresses = []", "a connection has no member `adresses`; did you mean `addresses`?"),
            ("username = \"a\"", "a connection has no member `username`; did you mean `user`?"),
            ("heartbeat = 1", "a connection has no member `heartbeat`; it has `kind`, `addresses`, `user`,"),
            ("password = \"hunter2\"", "the file does not hold passwords: write `password_file`"),
        ] {
            let faults = of_connection(line);
            assert!(
                faults[0].starts_with(&format!("[push.connections.main]: {fault}")),
                "{line}: {faults:?}"
            );
            assert!(faults.len() == 1 && !faults[0].contains("hunter2"), "{faults:?}");
        }
    }

    #[test]
    fn all_faults_are_found_and_no_password_is_shown() {
        let text = "[push.connections.a]\nkind = \"amqp\"\n[push.connections.b]\nkind = \"amqp\"\naddresses = \"amqp://u:hunter2@b:1\"\n";
        let faults = faults_of(text);
        assert!(
            faults[0].contains("[push.connections.a]: `addresses` is missing; write for example"),
            "{faults:?}"
        );
        assert!(faults[1].ends_with("write addresses = [\"...@b:1\"]"), "{faults:?}");
        for (text, fault) in [
            ("push = 1", "`push` is not a table; write [push.secrets], [push.tls], [push.connections]"),
            ("[push.connection.a]", "[push]: there is no table `connection`; did you mean `connections`?"),
            (
                "[push.brokers.a]",
                "[push]: there is no table `brokers`; the tables are `secrets`, `tls`, `connections`",
            ),
            ("[push]\ntls = true", "[push.tls] is not a table; write [push.tls.NAME]"),
            (
                "[push.connections]\nkind = \"amqp\"",
                "[push.connections.kind] is not a table; write a connection as [push.connections.NAME]",
            ),
            (
                "[push.secrets]\na = \"hunter2\"",
                "[push.secrets.a] is not a table; write a secret as NAME = { file = \"...\" } below [push.secrets]",
            ),
            (
                "[push.secrets]\na = { fil = \"x\" }",
                "[push.secrets.a]: a secret has no member `fil`; did you mean `file`?",
            ),
        ] {
            assert_eq!(faults_of(text), [fault], "{text}");
        }
    }
}
