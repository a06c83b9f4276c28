//! The tables `[push.*]` of a configuration file: named secrets, certificates, and connections to brokers.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tickwheel_api::TargetKind;
use tickwheel_server::{ConnectionPlan, PushPlan, PushTls, Sasl, SecretText};

/// The beginning of the names of variables that hold a secret.
pub(crate) const SECRET_PREFIX: &str = "TICKWHEEL_SECRET_";

/// The tables of a file.
#[derive(Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PushTables {
    secrets: BTreeMap<String, At>,
    tls: BTreeMap<String, Tls>,
    connections: BTreeMap<String, Connection>,
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

impl PushTables {
    /// Adds the tables to a plan. Secrets are read from their files and variables.
    ///
    /// # Errors
    /// A secret or a password cannot be read, or the tables contradict each other.
    pub(crate) fn put_into(&self, plan: PushPlan) -> Result<PushPlan> {
        self.check()?;
        let mut secrets = BTreeMap::new();
        for (name, at) in &self.secrets {
            let text = read(at.file.as_deref(), at.env.as_deref());
            let text = text.with_context(|| format!("[push.secrets] `{name}`"))?;
            secrets.insert(name.clone(), text.expect("a checked secret has a place"));
        }
        // As everywhere, the environment goes before the file.
        secrets.extend(of_environment(env::vars()));
        let mut connections = BTreeMap::new();
        for (name, connection) in &self.connections {
            let Connection { kind, addresses, user, password_file, password_env, .. } = connection;
            let password = read(password_file.as_deref(), password_env.as_deref());
            connections.insert(
                name.clone(),
                ConnectionPlan {
                    kind: (*kind).into(),
                    addresses: addresses.clone(),
                    user: user.clone(),
                    password: password.with_context(|| format!("[push.connections.{name}]"))?,
                    tls: connection.tls,
                    certificates: connection.certificates.clone(),
                    vhost: connection.vhost.clone(),
                    database: connection.database,
                    sasl: connection.sasl.map(Sasl::from),
                },
            );
        }
        let pair = |tls: &Tls| tls.cert.clone().zip(tls.key.clone());
        let tls =
            |(name, tls): (&String, &Tls)| (name.clone(), PushTls { ca: tls.ca.clone(), client: pair(tls) });
        Ok(PushPlan { secrets, connections, tls: self.tls.iter().map(tls).collect(), ..plan })
    }

    /// Checks the tables without reading the files that they name.
    ///
    /// # Errors
    /// The tables contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        let names = self.secrets.keys().chain(self.tls.keys()).chain(self.connections.keys());
        if let Some(name) = names.into_iter().find(|name| !is_name(name)) {
            bail!("[push]: `{name}` is no name; a name has 1 to 100 of a-z, 0-9, `_` and `-`");
        }
        for (name, at) in &self.secrets {
            if at.file.is_some() == at.env.is_some() {
                bail!("[push.secrets] `{name}`: write either {{ file = \"...\" }} or {{ env = \"...\" }}");
            }
        }
        for (name, tls) in &self.tls {
            if tls.cert.is_some() != tls.key.is_some() {
                bail!("[push.tls.{name}]: `cert` and `key` need each other");
            }
        }
        for (name, connection) in &self.connections {
            let Connection { addresses, password_file, password_env, certificates, tls, .. } = connection;
            let at = format!("[push.connections.{name}]");
            if addresses.is_empty() {
                bail!("{at}: `addresses` is empty; write for example [\"127.0.0.1:5672\"]");
            }
            if let Some(other) = addresses.iter().find(|address| !is_address(address)) {
                bail!("{at}: `{other}` is no address; write HOST:PORT without a scheme");
            }
            if password_file.is_some() && password_env.is_some() {
                bail!("{at}: write either `password_file` or `password_env`");
            }
            match certificates {
                Some(_) if !tls => bail!("{at}: `certificates` has no effect without `tls = true`"),
                Some(known) if !self.tls.contains_key(known) => {
                    bail!("{at}: there is no [push.tls.{known}] for `certificates`")
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads a secret; `None`: it has no place.
fn read(file: Option<&Path>, variable: Option<&str>) -> Result<Option<SecretText>> {
    let text = match (file, variable) {
        (Some(file), _) => {
            let text =
                fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        (None, Some(variable)) => {
            env::var(variable).with_context(|| format!("the variable {variable} cannot be read"))?
        }
        (None, None) => return Ok(None),
    };
    if text.is_empty() {
        bail!("the secret is empty");
    }
    Ok(Some(SecretText(text)))
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

fn is_address(text: &str) -> bool {
    let port = text.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then_some(port));
    !text.contains("://") && port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0))
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
                "[push.connections.a]\nkind = \"amqp\"\naddresses = [\"x:1\"]\ncertificates = \"b\"",
                "no effect",
            ),
            (
                "[push.connections.a]\nkind = \"amqp\"\naddresses = [\"x:1\"]\ntls = true\ncertificates = \"b\"",
                "no [push.tls.b]",
            ),
        ] {
            let error = tables(text).check().expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let missing =
            tables("[push.secrets]\na = { file = \"/no/such/file\" }").put_into(PushPlan::default());
        assert!(format!("{:#}", missing.expect_err("no file")).contains("/no/such/file"));
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
