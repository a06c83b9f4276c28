//! The form of the tables `[push.*]` of a configuration file: which members a table has, and which values they take.

use std::collections::BTreeMap;

use tickwheel_api::{nearest, shown};
use tickwheel_push::broker::{Form, Member};
use tickwheel_push::{KIND_NAMES, KINDS};
use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::faults::Fault;

/// The kinds of tables.
pub(crate) const SECRETS: &str = "secrets";
pub(crate) const CERTIFICATES: &str = "tls";
pub(crate) const CONNECTIONS: &str = "connections";

/// A table with a name of the operator's: `[push.connections.NAME]`.
struct Table {
    /// The name of the table of such tables.
    name: &'static str,
    /// One such table in words, for a message.
    noun: &'static str,
    /// How one such table is written, for a message.
    written: &'static str,
    /// The members. A connection has those of the kinds of brokers as well.
    members: &'static [Member],
    /// The members that cannot be absent, each with an example.
    needed: &'static [(&'static str, &'static str)],
}

/// A member whose meaning stands in the page of the configuration itself.
const fn member(name: &'static str, form: Form, others: &'static [&'static str]) -> Member {
    Member { name, others, form, what: "" }
}

const TABLES: [Table; 3] = [
    Table {
        name: SECRETS,
        noun: "a secret",
        written: "NAME = { file = \"...\" } below [push.secrets]",
        members: &[member("file", Form::Text, &["path"]), member("env", Form::Text, &["variable"])],
        needed: &[],
    },
    Table {
        name: CERTIFICATES,
        noun: "a table of certificates",
        written: "[push.tls.NAME]",
        members: &[
            member("ca", Form::Text, &["roots"]),
            member("cert", Form::Text, &["client_cert"]),
            member("key", Form::Text, &["client_key"]),
        ],
        needed: &[],
    },
    Table {
        name: CONNECTIONS,
        noun: "a connection",
        written: "[push.connections.NAME]",
        members: &[
            member("kind", Form::Word(KIND_NAMES), &[]),
            member("addresses", Form::Texts, &["url", "host", "hosts", "port", "servers", "brokers"]),
            member("user", Form::Text, &["username"]),
            member("password_file", Form::Text, &[]),
            member("password_env", Form::Text, &[]),
            member("tls", Form::Flag, &[]),
            member("certificates", Form::Text, &["ca", "cert"]),
        ],
        needed: &[("kind", "\"redis\""), ("addresses", "[\"127.0.0.1:6379\"]")],
    },
];

/// Whether there are tables `[push.NAME.*]`.
pub(crate) fn has(name: &str) -> bool {
    TABLES.iter().any(|table| table.name == name)
}

/// The members of a table that was read, with their lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Members {
    line: usize,
    values: BTreeMap<&'static str, (usize, Read)>,
}

/// A value of the form that its member takes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Read {
    /// A text, a word, or a number in decimal digits.
    Text(String),
    Texts(Vec<String>),
    Flag(bool),
}

/// The tables of each kind, by their names.
pub(crate) type Tables = BTreeMap<&'static str, BTreeMap<String, Members>>;

impl Members {
    /// Returns a text, a word, or a number in decimal digits; `None`: the member is absent.
    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.values
            .get(member)
            .and_then(|(_, value)| if let Read::Text(text) = value { Some(&**text) } else { None })
    }

    /// Returns a list of texts, which is empty if the member is absent.
    pub(crate) fn texts(&self, member: &str) -> &[String] {
        self.values
            .get(member)
            .map_or(&[], |(_, value)| if let Read::Texts(texts) = value { texts } else { &[] })
    }

    /// Whether the member is `true`.
    pub(crate) fn is_true(&self, member: &str) -> bool {
        matches!(self.values.get(member), Some((_, Read::Flag(true))))
    }

    /// Returns the line of a member, or that of the table if the member is absent.
    pub(crate) fn line_of(&self, member: &str) -> usize {
        self.values.get(member).map_or(self.line, |(line, _)| *line)
    }
}

/// Reads `push`, the value of the key of that name, which stands in `line`. `line_of`: the line of a byte of the file. Adds what is wrong to
/// `faults`; a value that may be a password is not shown.
pub(crate) fn read(
    line: usize,
    push: &DeValue<'_>,
    line_of: impl Fn(usize) -> usize,
    faults: &mut Vec<Fault>,
) -> Tables {
    let mut tables = Tables::new();
    let mut fault = |line: usize, what: String| faults.push(Fault::new(Some(line), what));
    let Some(push) = push.as_table() else {
        let known = TABLES.map(|table| format!("[push.{}]", table.name));
        fault(line, format!("`push` is not a table; write {}", known.join(", ")));
        return tables;
    };
    for (key, named) in push {
        let line = line_of(key.span().start);
        let Some(table) = TABLES.iter().find(|table| table.name == key.get_ref()) else {
            let hint = meant(key.get_ref(), &TABLES.map(|table| table.name), None, "the tables are");
            fault(line, format!("[push]: there is no table `{}`; {hint}", shown(key.get_ref())));
            continue;
        };
        let Some(named) = named.get_ref().as_table() else {
            fault(line, format!("[push.{0}] is not a table; write [push.{0}.NAME]", table.name));
            continue;
        };
        for (name, members) in named {
            let (place, line) =
                (format!("[push.{}.{}]", table.name, shown(name.get_ref())), line_of(name.span().start));
            // The usual cause is a member without a name of the table: `[push.connections]` and `kind = ...`.
            let Some(members) = members.get_ref().as_table() else {
                fault(line, format!("{place} is not a table; write {} as {}", table.noun, table.written));
                continue;
            };
            let read =
                table.read(line, members, &line_of, |line, why| fault(line, format!("{place}: {why}")));
            tables.entry(table.name).or_default().insert(name.get_ref().to_string(), read);
        }
    }
    tables
}

impl Table {
    fn members(&self) -> impl Iterator<Item = &'static Member> {
        let of_kinds = KINDS.iter().flat_map(|kind| kind.members).filter(|_| self.name == CONNECTIONS);
        self.members.iter().chain(of_kinds)
    }

    fn read(
        &self,
        line: usize,
        members: &DeTable<'_>,
        line_of: impl Fn(usize) -> usize,
        mut fault: impl FnMut(usize, String),
    ) -> Members {
        let mut values = BTreeMap::new();
        for (key, value) in members {
            let line = line_of(key.span().start);
            let member = self.member(key.get_ref());
            match member.and_then(|member| Ok((member.name, value_of(member, value.get_ref())?))) {
                Ok((name, value)) => drop(values.insert(name, (line, value))),
                Err(why) => fault(line, why),
            }
        }
        for (needed, example) in self.needed.iter().filter(|(needed, _)| !members.contains_key(*needed)) {
            fault(line, format!("`{needed}` is missing; write for example {needed} = {example}"));
        }
        Members { line, values }
    }

    fn member(&self, key: &str) -> Result<&'static Member, String> {
        if let Some(member) = self.members().find(|member| member.name == key) {
            return Ok(member);
        }
        if key == "password" && self.name == CONNECTIONS {
            return Err(
                "the file does not hold passwords: write `password_file` with the path of a file, or `password_env` with the name of a variable".to_owned(),
            );
        }
        let known: Vec<_> = self.members().map(|member| member.name).collect();
        let lower = key.to_ascii_lowercase();
        let other = self.members().find(|member| member.others.contains(&&*lower)).map(|member| member.name);
        Err(format!("{} has no member `{}`; {}", self.noun, shown(key), meant(key, &known, other, "it has")))
    }
}

/// Reads the value of a member.
///
/// # Errors
/// The value has another form. The error says how it has to be written.
fn value_of(member: &Member, value: &DeValue<'_>) -> Result<Read, String> {
    let (key, text) = (member.name, value.as_str());
    let of_list = |list: &[toml::Spanned<DeValue<'_>>]| -> Option<Vec<String>> {
        list.iter().map(|one| one.get_ref().as_str().map(str::to_owned)).collect()
    };
    Err(match (member.form, text) {
        (Form::Text, Some(text)) => return Ok(Read::Text(text.to_owned())),
        (Form::Text, None) => format!("`{key}` is not a text; write it in quotes: {key} = \"...\""),
        (Form::Texts, Some(text)) => {
            let list = without_login(text);
            let list: Vec<Value> =
                list.split(',').map(|one| Value::from(without_login(one.trim()))).collect();
            format!("`{key}` is one text and not a list; write {key} = {}", Value::from(list))
        }
        (Form::Texts, None) => match value.as_array().map(|list| of_list(list)) {
            Some(Some(texts)) => return Ok(Read::Texts(texts)),
            Some(None) => {
                format!("`{key}` is not a list of texts; write each in quotes: {key} = [\"HOST:PORT\"]")
            }
            None => format!("`{key}` is not a list; write {key} = [\"HOST:PORT\"]"),
        },
        (Form::Flag, _) => match value.as_bool() {
            Some(flag) => return Ok(Read::Flag(flag)),
            None => format!("`{key}` is not true or false; write them without quotes: {key} = true"),
        },
        (Form::Number, _) => {
            let number =
                value.as_integer().map(|number| u32::from_str_radix(number.as_str(), number.radix()));
            match (number, text.and_then(|text| text.trim().parse::<u32>().ok())) {
                (Some(Ok(number)), _) => return Ok(Read::Text(number.to_string())),
                (_, Some(number)) => {
                    format!("`{key}` is a text and not a number; write it without quotes: {key} = {number}")
                }
                _ => format!("`{key}` is not a number from 0 to {}; write for example {key} = 0", u32::MAX),
            }
        }
        (Form::Word(known), Some(word)) if known.contains(&word) => return Ok(Read::Text(word.to_owned())),
        (Form::Word(known), Some(word)) => {
            let lower = word.to_ascii_lowercase();
            let other = KINDS.iter().find(|kind| key == "kind" && kind.others.contains(&&*lower));
            let hint = meant(word, known, other.map(|kind| kind.kind.name()), "known are");
            format!("`{key}` cannot be `{}`; {hint}", shown(word))
        }
        (Form::Word(known), None) => {
            format!("`{key}` is not a text; write one of \"{}\"", known.join("\", \""))
        }
    })
}

/// Returns a hint for a word that is not known: the word that may be meant, or else all words after `list`. `other`: the word that is meant if
/// the unknown one is that of another program.
fn meant(word: &str, known: &[&str], other: Option<&'static str>, list: &str) -> String {
    match other.or_else(|| nearest(&word.to_ascii_lowercase(), known)) {
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

    fn faults_of(text: &str) -> Vec<String> {
        let table = DeTable::parse(text).expect(text);
        let (_, value) = table.get_ref().iter().next().expect("a table");
        let mut faults = Vec::new();
        read(1, value.get_ref(), |_| 1, &mut faults);
        faults.iter().map(|fault| fault.to_string().replacen("line 1: ", "", 1)).collect()
    }

    /// The faults of a connection with this line.
    fn of_connection(line: &str) -> Vec<String> {
        let usual = [("kind", "\"redis\""), ("addresses", "[\"a:1\"]")];
        let usual = usual.into_iter().filter(|(key, _)| !line.starts_with(&format!("{key} =")));
        let usual: String = usual.map(|(key, value)| format!("{key} = {value}\n")).collect();
        faults_of(&format!("[push.connections.main]\n{usual}{line}\n"))
    }

    #[test]
    fn a_table_is_read_with_the_lines_of_its_members() {
        let text = "[push.connections.a]\nkind = \"redis\"\n# a comment\naddresses = [\"a:1\", \"b:2\"]\ntls = true\ndatabase = 0x10\n";
        let table = DeTable::parse(text).expect(text);
        let push = table.get_ref().get("push").expect("a table");
        let mut faults = Vec::new();
        let line_of = |at: usize| 1 + text[..at].matches('\n').count();
        let tables = read(1, push.get_ref(), line_of, &mut faults);
        assert_eq!(faults, []);
        let members = &tables[CONNECTIONS]["a"];
        assert_eq!((members.text("kind"), members.text("database")), (Some("redis"), Some("16")));
        assert_eq!(
            (members.texts("addresses"), members.is_true("tls")),
            (&["a:1".to_owned(), "b:2".to_owned()][..], true)
        );
        assert_eq!(
            (members.text("user"), members.texts("user"), members.is_true("user")),
            (None, &[][..], false)
        );
        for (member, line) in [("kind", 2), ("addresses", 4), ("database", 6), ("user", 1)] {
            assert_eq!(members.line_of(member), line, "{member}");
        }
    }

    #[test]
    fn each_member_has_a_line_in_the_reference() {
        let page = crate::reference::head();
        for table in TABLES.iter().filter(|table| table.name != SECRETS) {
            let name = table.name;
            let (_, rows) = page.split_once(&format!("| `[push.{name}.NAME]` |")).expect(name);
            let rows = rows.split("| `[push.").next().unwrap_or_default();
            for Member { name: member, .. } in table.members() {
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
