//! The tables `[push.*]` of a configuration file: named secrets, certificates, and connections to brokers.

use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tickwheel_push::KINDS;
use tickwheel_push::broker::BrokerKind;
use tickwheel_server::{ConnectionPlan, Endpoint, PushError, PushPlan, PushTls, SecretText};

use crate::faults::{self, Fault};
use crate::push_members::{CERTIFICATES, CONNECTIONS, Members, SECRETS, Tables, without_login};

/// The beginning of the names of variables that hold a secret.
pub(crate) const SECRET_PREFIX: &str = "TICKWHEEL_SECRET_";

/// The tables of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PushTables {
    tables: Tables,
}

impl PushTables {
    /// The tables that were read from a file.
    pub(crate) fn new(tables: Tables) -> Self {
        Self { tables }
    }

    /// The tables of a kind, by their names.
    fn named(&self, table: &str) -> impl Iterator<Item = (&String, &Members)> {
        self.tables.get(table).into_iter().flatten()
    }

    fn get(&self, table: &str, name: &str) -> Option<&Members> {
        self.tables.get(table)?.get(name)
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
            .retain(|name, _| self.get(CONNECTIONS, name).is_none_or(|one| self.faults_of(one).is_empty()));
        faults.extend(plan.faults().iter().map(|fault| self.fault_of_plan(fault)));
        faults
    }

    /// Adds the tables to a plan. A secret that cannot be read is a fault, and is absent from the plan; a password that cannot be read is empty
    /// there.
    fn read_into(&self, plan: PushPlan, faults: &mut Vec<Fault>) -> PushPlan {
        let mut secret = |table, name: &str, members: &Members, places| {
            read(members, places).unwrap_or_else(|(member, why)| {
                faults.push(fault(table, name, members, member, &format!("{why:#}")));
                None
            })
        };
        let mut secrets = BTreeMap::new();
        for (name, at) in self.named(SECRETS).filter(|(_, at)| !is_contradiction(at)) {
            let text = secret(SECRETS, name, at, ("file", "env"));
            secrets.extend(text.map(|text| (name.clone(), text)));
        }
        // As everywhere, the environment goes before the file.
        secrets.extend(of_environment(env::vars()));
        let mut connections = BTreeMap::new();
        for (name, members) in self.named(CONNECTIONS) {
            let password = password_member(members).map(|_| match has_two_passwords(members) {
                true => SecretText(String::new()),
                false => secret(CONNECTIONS, name, members, ("password_file", "password_env"))
                    .unwrap_or_else(|| SecretText(String::new())),
            });
            connections.insert(name.clone(), connection(members, password));
        }
        let file = |tls: &Members, member| tls.text(member).map(PathBuf::from);
        let tls = self.named(CERTIFICATES).map(|(name, tls)| {
            let client = file(tls, "cert").zip(file(tls, "key"));
            (name.clone(), PushTls { ca: file(tls, "ca"), client })
        });
        PushPlan { secrets, connections, tls: tls.collect(), ..plan }
    }

    /// Returns the contradictions in the tables, without reading the files that they name.
    pub(crate) fn contradictions(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (name, members) in self.tables.values().flatten().filter(|(name, _)| !is_name(name)) {
            let what = format!("[push]: `{name}` is no name; a name has 1 to 100 of a-z, 0-9, `_` and `-`");
            faults.push(Fault::new(Some(members.line_of("")), what));
        }
        for (name, at) in self.named(SECRETS).filter(|(_, at)| is_contradiction(at)) {
            let why = "write either { file = \"...\" } or { env = \"...\" }";
            faults.push(fault(SECRETS, name, at, "", why));
        }
        for (name, tls) in self.named(CERTIFICATES) {
            let (cert, key) = (tls.text("cert").is_some(), tls.text("key").is_some());
            if cert != key {
                let member = if cert { "cert" } else { "key" };
                faults.push(fault(CERTIFICATES, name, tls, member, "`cert` and `key` need each other"));
            }
        }
        for (name, connection) in self.named(CONNECTIONS) {
            let found = self.faults_of(connection);
            faults
                .extend(found.iter().map(|(member, why)| fault(CONNECTIONS, name, connection, member, why)));
        }
        faults
    }

    /// Returns the contradictions in a connection, each with its member.
    fn faults_of(&self, members: &Members) -> Vec<(&'static str, String)> {
        let addresses = members.texts("addresses");
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
        if has_two_passwords(members) {
            faults.push(("password_env", "write either `password_file` or `password_env`".to_owned()));
        }
        match members.text("certificates") {
            Some(_) if !members.is_true("tls") => {
                faults.push(("certificates", "`certificates` has no effect without `tls = true`".to_owned()));
            }
            Some(known) if self.get(CERTIFICATES, known).is_none() => {
                faults.push(("certificates", format!("there is no [push.tls.{known}] for `certificates`")));
            }
            _ => {}
        }
        let password = password_member(members);
        let plan = connection(members, password.map(|_| SecretText(String::new())));
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
            PushError::CertificateFile { name, place, .. } => self.get(CERTIFICATES, name).map(|tls| {
                let is_it = |member: &&str| tls.text(member).is_some_and(|file| Path::new(file) == place);
                tls.line_of(["ca", "cert", "key"].into_iter().find(is_it).unwrap_or_default())
            }),
            PushError::Certificates { name, .. } => self.get(CERTIFICATES, name).map(|tls| tls.line_of("")),
            PushError::Connection { name, .. } => self.get(CONNECTIONS, name).map(|one| one.line_of("")),
        };
        Fault::new(line, fault.to_string())
    }

    /// The number of secrets, certificates and connections in words; none of them is left out. Connections are named.
    pub(crate) fn contents(&self) -> Vec<String> {
        let mut contents = Vec::new();
        let named = self.named(CONNECTIONS).map(|(name, members)| {
            let kind = kind_of(members);
            let experimental = if kind.is_experimental { ", experimental" } else { "" };
            let absent = if kind.open.is_none() { ", not in this program" } else { "" };
            format!("{name}: {}{experimental}{absent}", kind.kind.name())
        });
        let named: Vec<_> = named.collect();
        if !named.is_empty() {
            contents.push(format!("{} ({})", counted(named.len(), "connection"), named.join(", ")));
        }
        for (table, noun) in [(SECRETS, "secret"), (CERTIFICATES, "table of certificates")] {
            let count = self.named(table).count();
            if count > 0 {
                contents.push(counted(count, noun));
            }
        }
        contents
    }
}

/// Whether a secret does not name exactly one place.
fn is_contradiction(at: &Members) -> bool {
    at.text("file").is_some() == at.text("env").is_some()
}

/// The member with the place of the password of a connection; `None`: there is no password.
fn password_member(members: &Members) -> Option<&'static str> {
    ["password_file", "password_env"].into_iter().find(|member| members.text(member).is_some())
}

/// Whether the password of a connection has two places.
fn has_two_passwords(members: &Members) -> bool {
    members.text("password_file").is_some() && members.text("password_env").is_some()
}

/// The kind of a connection.
fn kind_of(members: &Members) -> &'static BrokerKind {
    let kind = KINDS.iter().find(|kind| members.text("kind") == Some(kind.kind.name()));
    kind.expect("the reader takes the words of the table alone")
}

/// The plan of a connection, with this password.
fn connection(members: &Members, password: Option<SecretText>) -> ConnectionPlan {
    let own = KINDS.iter().flat_map(|kind| kind.members).map(|member| member.name);
    let text = |member| members.text(member).map(str::to_owned);
    ConnectionPlan {
        user: text("user"),
        password,
        tls: members.is_true("tls"),
        certificates: text("certificates"),
        members: own.filter_map(|member| Some((member.to_owned(), text(member)?))).collect(),
        ..ConnectionPlan::new(kind_of(members).kind, members.texts("addresses").to_vec())
    }
}

/// Returns a fault of a member of a table. A member that the table does not have stands for the table.
fn fault(table: &str, name: &str, members: &Members, member: &str, why: &str) -> Fault {
    let place = match table {
        SECRETS => format!("[push.{table}] `{name}`"),
        _ => format!("[push.{table}.{name}]"),
    };
    Fault::new(Some(members.line_of(member)), format!("{place}: {why}"))
}

/// A number of things in words: `1 key`, `2 keys`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match (count, noun.split_once(' ')) {
        (1, _) => format!("1 {noun}"),
        (_, None) => format!("{count} {noun}s"),
        (_, Some((first, rest))) => format!("{count} {first}s {rest}"),
    }
}

/// Reads a secret; `None`: it has no place. `places`: the member with a file, and the one with a variable. An error has its member. It shows no
/// secret that was read, and no name of a variable or file that may be the secret itself.
fn read(
    members: &Members,
    (file, variable): (&'static str, &'static str),
) -> Result<Option<SecretText>, (&'static str, anyhow::Error)> {
    let (member, text) = match (members.text(file), members.text(variable)) {
        (Some(path), _) => (file, read_file(file, Path::new(path))),
        (None, Some(name)) => (variable, read_variable(variable, name)),
        (None, None) => return Ok(None),
    };
    text.map(|text| Some(SecretText(text))).map_err(|why| (member, why))
}

fn read_file(member: &str, file: &Path) -> Result<String> {
    let place = match is_path(file) {
        true => format!("`{member}` {}", file.display()),
        false => format!(
            "`{member}`, whose value is not shown here, because it may be the secret itself (write a path with a `/`, such as `./key`)"
        ),
    };
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {place}"))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => bail!("{place} is empty"),
        text => Ok(text.to_owned()),
    }
}

fn read_variable(member: &str, variable: &str) -> Result<String> {
    let place = format!("the variable {variable} of `{member}`");
    // No variable has a name with `=` or NUL, so those are not set either.
    match env::var(variable) {
        Ok(text) if text.is_empty() => bail!("{place} is empty"),
        Ok(text) => Ok(text),
        Err(VarError::NotPresent) if is_usual(variable) => bail!("{place} is not set"),
        // The secret may have been written where its variable is asked for.
        Err(VarError::NotPresent) => bail!(
            "the value of `{member}` is not the name of a variable that is set; it is not shown here, because it may be the secret itself: \
             write the name of a variable (A-Z, 0-9, _), and put the secret into that variable"
        ),
        // The error of the library shows the value.
        Err(VarError::NotUnicode(_)) => bail!("{place} is not UTF-8"),
    }
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
    use tickwheel_api::TargetKind;

    use super::*;

    /// The tables of a file, all of which are in line 1.
    fn tables(text: &str) -> PushTables {
        let table = toml::de::DeTable::parse(text).expect(text);
        let push = table.get_ref().get("push").expect("a table");
        let mut faults = Vec::new();
        let tables = crate::push_members::read(1, push.get_ref(), |_| 1, &mut faults);
        assert_eq!(faults, [], "{text}");
        PushTables::new(tables)
    }

    /// The lines of an error, without the lines of the file.
    fn told(error: &str) -> Vec<&str> {
        let lines = error.lines().map(str::trim);
        lines.map(|line| line.strip_prefix("line 1: ").unwrap_or(line)).collect()
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
        let lines = told(&error);
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
