//! The tables `[push.*]` of a configuration file: named secrets, certificates, and connections to brokers.

use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use tickwheel_api::TargetKind;
use tickwheel_server::Endpoint;
use tickwheel_server::{ConnectionPlan, PushError, PushPlan, PushTls, Sasl, SecretText, has_kind};

use crate::faults::{self, Fault};
use crate::push_lines::PushLines;
use crate::push_members::without_login;

/// The beginning of the names of variables that hold a secret.
pub(crate) const SECRET_PREFIX: &str = "TICKWHEEL_SECRET_";

/// The tables of a file.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PushTables {
    secrets: BTreeMap<String, At>,
    tls: BTreeMap<String, Tls>,
    connections: BTreeMap<String, Connection>,
    #[serde(skip)]
    lines: PushLines,
}

/// The place of a secret: one of the two.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct At {
    file: Option<PathBuf>,
    env: Option<String>,
}

#[derive(Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct Tls {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
struct Connection {
    kind: Broker,
    addresses: Vec<String>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    #[serde(default)]
    tls: bool,
    certificates: Option<String>,
    vhost: Option<String>,
    database: Option<u32>,
    sasl: Option<SaslName>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
enum SaslName {
    #[serde(rename = "plain")]
    Plain,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
}

impl From<SaslName> for Sasl {
    fn from(name: SaslName) -> Self {
        match name {
            SaslName::Plain => Self::Plain,
            SaslName::ScramSha256 => Self::ScramSha256,
            SaslName::ScramSha512 => Self::ScramSha512,
        }
    }
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum Broker {
    Kafka,
    Amqp,
    Nats,
    Redis,
    Beanstalk,
}

impl From<Broker> for TargetKind {
    fn from(broker: Broker) -> Self {
        match broker {
            Broker::Kafka => Self::Kafka,
            Broker::Amqp => Self::Amqp,
            Broker::Nats => Self::Nats,
            Broker::Redis => Self::Redis,
            Broker::Beanstalk => Self::Beanstalk,
        }
    }
}

/// The kinds of tables.
const SECRETS: &str = "secrets";
const CERTIFICATES: &str = "tls";
const CONNECTIONS: &str = "connections";

impl At {
    /// Whether it does not name exactly one place.
    fn is_contradiction(&self) -> bool {
        self.file.is_some() == self.env.is_some()
    }
}

impl Tls {
    /// The member with this file; empty: none has it.
    fn member_of(&self, place: &Path) -> &'static str {
        let members = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        members.into_iter().find(|(_, file)| file.as_deref() == Some(place)).map_or("", |(member, _)| member)
    }
}

impl Connection {
    /// The plan of this connection, with this password.
    fn plan(&self, password: Option<SecretText>) -> ConnectionPlan {
        ConnectionPlan {
            kind: self.kind.into(),
            addresses: self.addresses.clone(),
            user: self.user.clone(),
            password,
            tls: self.tls,
            certificates: self.certificates.clone(),
            vhost: self.vhost.clone(),
            database: self.database,
            sasl: self.sasl.map(Sasl::from),
        }
    }

    /// The member with the place of the password; `None`: there is no password.
    fn password_member(&self) -> Option<&'static str> {
        match (&self.password_file, &self.password_env) {
            (Some(_), _) => Some("password_file"),
            (None, Some(_)) => Some("password_env"),
            (None, None) => None,
        }
    }

    /// Whether the password has two places.
    fn has_two_passwords(&self) -> bool {
        self.password_file.is_some() && self.password_env.is_some()
    }
}

impl PushTables {
    /// The same tables, which have these lines in their file.
    pub(crate) fn at(self, lines: PushLines) -> Self {
        Self { lines, ..self }
    }

    /// Adds the tables to a plan. Secrets are read from their files and variables.
    ///
    /// # Errors
    /// Secrets or passwords cannot be read, or the tables contradict each other. The error names all of them.
    pub(crate) fn put_into(&self, plan: PushPlan) -> Result<PushPlan> {
        let mut faults = self.contradictions();
        let plan = self.read_into(plan, &mut faults);
        faults::none(faults)?;
        Ok(plan)
    }

    /// Returns the files and variables that cannot be read or used, as a start does.
    pub(crate) fn unusable(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut plan = self.read_into(PushPlan::default(), &mut faults);
        // The contradictions of a connection are not told again.
        plan.connections
            .retain(|name, _| self.connections.get(name).is_none_or(|one| self.faults_of(one).is_empty()));
        faults.extend(plan.faults().iter().map(|fault| self.fault_of_plan(fault)));
        faults
    }

    /// Adds the tables to a plan. A secret that cannot be read is a fault, and is absent from the plan; a password that cannot be read is empty
    /// there.
    fn read_into(&self, plan: PushPlan, faults: &mut Vec<Fault>) -> PushPlan {
        let mut secrets = BTreeMap::new();
        for (name, at) in self.secrets.iter().filter(|(_, at)| !at.is_contradiction()) {
            let (file, env) = (("file", at.file.as_deref()), ("env", at.env.as_deref()));
            match read(&file, &env) {
                Ok(text) => secrets.extend(text.map(|text| (name.clone(), text))),
                Err(why) => {
                    let member = if at.file.is_some() { "file" } else { "env" };
                    faults.push(self.fault(SECRETS, name, member, &format!("{why:#}")));
                }
            }
        }
        // As everywhere, the environment goes before the file.
        secrets.extend(of_environment(env::vars()));
        let mut connections = BTreeMap::new();
        for (name, connection) in &self.connections {
            let file = ("password_file", connection.password_file.as_deref());
            let variable = ("password_env", connection.password_env.as_deref());
            let password = match (connection.password_member(), connection.has_two_passwords()) {
                (Some(_), true) => Some(SecretText(String::new())),
                (Some(member), false) => read(&file, &variable).unwrap_or_else(|why| {
                    faults.push(self.fault(CONNECTIONS, name, member, &format!("{why:#}")));
                    Some(SecretText(String::new()))
                }),
                (None, _) => None,
            };
            connections.insert(name.clone(), connection.plan(password));
        }
        let pair = |tls: &Tls| tls.cert.clone().zip(tls.key.clone());
        let tls =
            |(name, tls): (&String, &Tls)| (name.clone(), PushTls { ca: tls.ca.clone(), client: pair(tls) });
        PushPlan { secrets, connections, tls: self.tls.iter().map(tls).collect(), ..plan }
    }

    /// Returns the contradictions in the tables, without reading the files that they name.
    pub(crate) fn contradictions(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let secrets = self.secrets.keys().map(|name| (SECRETS, name));
        let tls = self.tls.keys().map(|name| (CERTIFICATES, name));
        let connections = self.connections.keys().map(|name| (CONNECTIONS, name));
        for (table, name) in secrets.chain(tls).chain(connections).filter(|(_, name)| !is_name(name)) {
            let what = format!("[push]: `{name}` is no name; a name has 1 to 100 of a-z, 0-9, `_` and `-`");
            faults.push(Fault::new(self.lines.of_member(table, name, ""), what));
        }
        for (name, _) in self.secrets.iter().filter(|(_, at)| at.is_contradiction()) {
            faults.push(self.fault(
                SECRETS,
                name,
                "",
                "write either { file = \"...\" } or { env = \"...\" }",
            ));
        }
        for (name, tls) in &self.tls {
            if tls.cert.is_some() != tls.key.is_some() {
                let member = if tls.cert.is_some() { "cert" } else { "key" };
                faults.push(self.fault(CERTIFICATES, name, member, "`cert` and `key` need each other"));
            }
        }
        for (name, connection) in &self.connections {
            let found = self.faults_of(connection);
            faults.extend(found.iter().map(|(member, why)| self.fault(CONNECTIONS, name, member, why)));
        }
        faults
    }

    /// Returns the contradictions in a connection, each with its member.
    fn faults_of(&self, connection: &Connection) -> Vec<(&'static str, String)> {
        let Connection { addresses, certificates, tls, .. } = connection;
        let mut faults = Vec::new();
        if addresses.is_empty() {
            faults.push((
                "addresses",
                "`addresses` is empty; write for example [\"127.0.0.1:5672\"]".to_owned(),
            ));
        }
        for other in addresses.iter().filter(|address| address.parse::<Endpoint>().is_err()) {
            let other = without_login(other);
            let what =
                format!("`{other}` is no address; write HOST:PORT without a scheme, a path and a login");
            faults.push(("addresses", what));
        }
        if connection.has_two_passwords() {
            faults.push(("password_env", "write either `password_file` or `password_env`".to_owned()));
        }
        match certificates {
            Some(_) if !tls => {
                faults.push(("certificates", "`certificates` has no effect without `tls = true`".to_owned()));
            }
            Some(known) if !self.tls.contains_key(known) => {
                faults.push(("certificates", format!("there is no [push.tls.{known}] for `certificates`")));
            }
            _ => {}
        }
        let password = connection.password_member();
        let plan = connection.plan(password.map(|_| SecretText(String::new())));
        faults.extend(plan.faults().into_iter().map(|fault| match (fault.member, password) {
            ("password", Some(member)) => (member, fault.why),
            (member, _) => (member, fault.why),
        }));
        faults
    }

    /// Returns the fault of a plan that these tables have become.
    fn fault_of_plan(&self, fault: &PushError) -> Fault {
        let line = match fault {
            PushError::SecretKeys { .. } => None,
            PushError::CertificateFile { name, place, .. } => {
                let member = self.tls.get(name).map_or("", |tls| tls.member_of(place));
                self.lines.of_member(CERTIFICATES, name, member)
            }
            PushError::Certificates { name, .. } => self.lines.of_member(CERTIFICATES, name, ""),
            PushError::Connection { name, .. } => self.lines.of_member(CONNECTIONS, name, ""),
        };
        Fault::new(line, fault.to_string())
    }

    /// Returns a fault of a member of a table. A member that the table does not have stands for the table.
    fn fault(&self, table: &str, name: &str, member: &str, why: &str) -> Fault {
        let place = match table {
            SECRETS => format!("[push.{table}] `{name}`"),
            _ => format!("[push.{table}.{name}]"),
        };
        Fault::new(self.lines.of_member(table, name, member), format!("{place}: {why}"))
    }

    /// The number of secrets, certificates and connections in words; none of them is left out. Connections are named.
    pub(crate) fn contents(&self) -> Vec<String> {
        let mut contents = Vec::new();
        if !self.connections.is_empty() {
            let named = self.connections.iter().map(|(name, connection)| {
                let kind = TargetKind::from(connection.kind);
                format!(
                    "{name}: {}{}",
                    kind.name(),
                    if has_kind(kind) { "" } else { ", not in this program" }
                )
            });
            let named: Vec<_> = named.collect();
            contents.push(format!("{} ({})", counted(named.len(), "connection"), named.join(", ")));
        }
        for (count, noun) in [(self.secrets.len(), "secret"), (self.tls.len(), "table of certificates")] {
            if count > 0 {
                contents.push(counted(count, noun));
            }
        }
        contents
    }
}

/// A number of things in words: `1 key`, `2 keys`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match (count, noun.split_once(' ')) {
        (1, _) => format!("1 {noun}"),
        (_, None) => format!("{count} {noun}s"),
        (_, Some((first, rest))) => format!("{count} {first}s {rest}"),
    }
}

/// A member with the place of a secret, and its value.
type Place<'p, P> = (&'static str, Option<&'p P>);

/// Reads a secret; `None`: it has no place. An error shows no secret that was read, and no name of a
/// variable or file that may be the secret itself.
fn read(file: &Place<'_, Path>, variable: &Place<'_, str>) -> Result<Option<SecretText>> {
    let (text, place) = match (file, variable) {
        ((member, Some(file)), _) => {
            let place = match is_path(file) {
                true => format!("`{member}` {}", file.display()),
                false => format!(
                    "`{member}`, whose value is not shown here, because it may be the secret itself (write a path with a `/`, such as `./key`)"
                ),
            };
            let text = fs::read_to_string(file).with_context(|| format!("failed to read {place}"))?;
            (text.trim_end_matches(['\r', '\n']).to_owned(), place)
        }
        (_, (member, Some(variable))) => {
            let place = format!("the variable {variable} of `{member}`");
            // No variable has a name with `=` or NUL, so those are not set either.
            let text = env::var(variable).map_err(|error| match error {
                VarError::NotPresent if is_usual(variable) => anyhow!("{place} is not set"),
                // The secret may have been written where its variable is asked for.
                VarError::NotPresent => anyhow!(
                    "the value of `{member}` is not the name of a variable that is set; it is not shown here, because it may be the secret itself: \
                     write the name of a variable (A-Z, 0-9, _), and put the secret into that variable"
                ),
                // The error of the library shows the value.
                VarError::NotUnicode(_) => anyhow!("{place} is not UTF-8"),
            });
            (text?, place)
        }
        ((_, None), (_, None)) => return Ok(None),
    };
    if text.is_empty() {
        bail!("{place} is empty");
    }
    Ok(Some(SecretText(text)))
}

/// Whether a value looks like a path that a person writes, and not like a secret.
fn is_path(file: &Path) -> bool {
    let text = file.to_string_lossy();
    let is_plain = |text: &str| {
        text.contains(['/', '.']) && !text.contains(['\n', ' ', '=', '+']) && !text.starts_with("whs")
    };
    ["/", "./", "../"].iter().any(|start| text.starts_with(start)) || is_plain(&text)
}

/// Whether a text looks like a name that a person gives a variable, and not like a secret. Keys in base 32 have capital letters and digits, but
/// no `_`.
fn is_usual(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.contains('_')
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The secrets in the environment: `TICKWHEEL_SECRET_ORDERS` is the secret `orders`.
fn of_environment(
    variables: impl Iterator<Item = (String, String)>,
) -> impl Iterator<Item = (String, SecretText)> {
    variables.filter_map(|(variable, text)| {
        let name = secret_of(&variable)?.to_ascii_lowercase();
        (is_name(&name) && !text.is_empty()).then_some((name, SecretText(text)))
    })
}

/// The name of the secret that a variable holds, in capital letters; `None`: the variable holds none.
pub(crate) fn secret_of(variable: &str) -> Option<&str> {
    let is_option = variable == "TICKWHEEL_SECRET_KEY_FILE";
    variable.strip_prefix(SECRET_PREFIX).filter(|name| !name.is_empty() && !is_option)
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    (1..=100).contains(&name.len()) && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Whole {
        push: PushTables,
    }

    fn tables(text: &str) -> PushTables {
        toml::from_str::<Whole>(text).expect(text).push
    }

    #[test]
    fn tables_become_a_plan() {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret");
        fs::write(&secret, "whsec_x\n").expect("a file");
        let text = format!(
            "[push.secrets]\norders = {{ file = {secret:?} }}\n\
             [push.tls.shop]\nca = \"/ca.pem\"\ncert = \"/c.pem\"\nkey = \"/k.pem\"\n\
             [push.connections.main]\nkind = \"amqp\"\naddresses = [\"a.example:5671\"]\nuser = \"u\"\npassword_file = {secret:?}\ntls = true\ncertificates = \"shop\"\n"
        );
        let plan = tables(&text).put_into(PushPlan::default()).expect("a plan");
        assert_eq!(plan.secrets.get("orders"), Some(&SecretText("whsec_x".to_owned())));
        let main = &plan.connections["main"];
        assert_eq!((main.kind, main.tls, main.password.is_some()), (TargetKind::Amqp, true, true));
        assert!(plan.tls["shop"].client.is_some());
    }

    #[test]
    fn tables_that_make_no_sense_are_named() {
        for (text, why) in [
            ("[push.secrets]\na = {}", "`a`: write either"),
            ("[push.secrets]\n\"A B\" = { env = \"X\" }", "`A B` is no name"),
            ("[push.tls.a]\ncert = \"x\"", "need each other"),
            ("[push.connections.a]\nkind = \"amqp\"\naddresses = []", "`addresses` is empty"),
            ("[push.connections.a]\nkind = \"amqp\"\naddresses = [\"amqp://x:1\"]", "HOST:PORT"),
            (
                "[push.connections.a]\nkind = \"amqp\"\naddresses = [\"u:hunter2@x:1\"]",
                "a]: `...@x:1` is no address; write HOST:PORT",
            ),
            (
                "[push.connections.a]\nkind = \"amqp\"\naddresses = [\"x:1\"]\ncertificates = \"b\"",
                "no effect",
            ),
            (
                "[push.connections.a]\nkind = \"amqp\"\naddresses = [\"x:1\"]\ntls = true\ncertificates = \"b\"",
                "no [push.tls.b]",
            ),
        ] {
            let error = faults::none(tables(text).contradictions()).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn each_place_without_a_secret_is_named_and_no_secret_is_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let empty = folder.path().join("empty");
        fs::write(&empty, "\n").expect("a file");
        let broker = "kind = \"amqp\"\naddresses = [\"a:1\"]\n";
        let text = format!(
            "[push.secrets]\na = {{ file = \"/no/such/secret\" }}\n\
             [push.connections.b]\n{broker}password_file = \"/no/such/password\"\n\
             [push.connections.c]\n{broker}password_env = \"TICKWHEEL_TEST_ABSENT\"\n\
             [push.connections.d]\n{broker}password_env = \"hunter-2!\"\n\
             [push.connections.e]\n{broker}password_file = {empty:?}\n"
        );
        let error = tables(&text).put_into(PushPlan::default()).expect_err("no secret").to_string();
        let lines: Vec<&str> = error.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 6, "{error}");
        assert!(
            lines[1].starts_with("[push.secrets] `a`: failed to read `file` /no/such/secret: No such file"),
            "{error}"
        );
        assert!(
            lines[2]
                .starts_with("[push.connections.b]: failed to read `password_file` /no/such/password: No"),
            "{error}"
        );
        assert_eq!(
            lines[3],
            "[push.connections.c]: the variable TICKWHEEL_TEST_ABSENT of `password_env` is not set"
        );
        assert!(
            lines[4].starts_with(
                "[push.connections.d]: the value of `password_env` is not the name of a variable that is set"
            ),
            "{error}"
        );
        assert_eq!(lines[5], format!("[push.connections.e]: `password_file` {} is empty", empty.display()));
        assert!(!error.contains("hunter"), "{error}");
    }

    #[test]
    fn a_value_that_may_be_the_secret_itself_is_not_shown() {
        for (value, is_shown) in [
            ("RABBIT_PASSWORD_2", true),
            ("hunter2", false),
            ("JBSWY3DPEHPK3PXP", false),
            ("Hunter2", false),
            ("HUNTER-2", false),
            ("hunter=2", false),
            ("_HUNTER2", false),
            ("2HUNTER", false),
            ("", false),
        ] {
            let connection = "[push.connections.a]\nkind = \"amqp\"\naddresses = [\"a:1\"]\npassword_env";
            for text in
                [format!("{connection} = {value:?}"), format!("[push.secrets]\na = {{ env = {value:?} }}")]
            {
                let error = tables(&text).put_into(PushPlan::default()).expect_err(value).to_string();
                let hint = "it may be the secret itself: write the name of a variable (A-Z, 0-9, _)";
                assert_eq!(!error.contains(hint), is_shown, "{error}");
                assert!(is_shown || value.is_empty() || !error.contains(value), "{error}");
            }
        }
    }

    #[test]
    fn a_secret_in_the_place_of_a_file_is_not_shown() {
        for (value, is_shown) in [
            ("/no/such/key", true),
            ("./no such key", true),
            ("no-such.key", true),
            ("hunter2", false),
            ("whsec_a/b.c", false),
            ("-----BEGIN PRIVATE KEY-----", false),
        ] {
            let connection =
                "[push.connections.a]\nkind = \"amqp\"\naddresses = [\"a:1\"]\nuser = \"u\"\npassword_file";
            for text in
                [format!("{connection} = {value:?}"), format!("[push.secrets]\na = {{ file = {value:?} }}")]
            {
                let error = tables(&text).put_into(PushPlan::default()).expect_err(value).to_string();
                assert_eq!(error.contains(value), is_shown, "{error}");
                assert_eq!(!error.contains("it may be the secret itself"), is_shown, "{error}");
            }
        }
    }

    #[test]
    fn tables_are_counted_and_connections_are_named() {
        let broker = "kind = \"amqp\"\naddresses = [\"a:1\"]\n";
        let text = format!(
            "[push.secrets]\na = {{ env = \"A\" }}\n[push.tls.a]\n[push.tls.b]\n[push.connections.main]\n{broker}[push.connections.x]\n{broker}"
        );
        let contents = ["2 connections (main: amqp, x: amqp)", "1 secret", "2 tables of certificates"];
        assert_eq!(tables(&text).contents(), contents);
        assert_eq!(PushTables::default().contents(), [""; 0]);
    }

    #[test]
    fn a_variable_is_a_secret_by_its_name() {
        let variables = [
            ("TICKWHEEL_SECRET_ORDERS", "a"),
            ("TICKWHEEL_SECRET_KEY_FILE", "b"),
            ("TICKWHEEL_SECRET_", "c"),
            ("OTHER", "d"),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let found: Vec<_> = of_environment(variables).collect();
        assert_eq!(found, [("orders".to_owned(), SecretText("a".to_owned()))]);
    }
}
