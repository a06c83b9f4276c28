//! The variables of the environment: the known ones, and warnings about the others.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};
use clap::{Command, CommandFactory};

use crate::cli::Cli;
use crate::push_tables;
use crate::remote::{RABBITMQ_PASSWORD_VARIABLE, TOKEN_VARIABLE};

/// The prefix of all variables of this program.
const PREFIX: &str = "TICKWHEEL_";

/// Variables of the project's own tests and scripts. The program does not read them, and they may be set where it runs.
const OF_TESTS: [&str; 8] = [
    "TICKWHEEL_BACKUPS",
    "TICKWHEEL_BRIDGE_MESSAGES",
    "TICKWHEEL_FAULT_SEED",
    "TICKWHEEL_KILLS",
    "TICKWHEEL_LONG",
    "TICKWHEEL_ORDERS_CSV",
    "TICKWHEEL_POWER_CUTS",
    "TICKWHEEL_REQUIRE_ALL",
];

/// Names that other programs use, each with the variable of this program that has the same meaning.
const OTHER_WORDS: [(&str, &str); 12] = [
    ("ADDR", "TICKWHEEL_LISTEN"),
    ("ADDRESS", "TICKWHEEL_LISTEN"),
    ("BIND", "TICKWHEEL_LISTEN"),
    ("HOST", "TICKWHEEL_LISTEN"),
    ("PORT", "TICKWHEEL_LISTEN"),
    ("URL", "TICKWHEEL_SERVER"),
    ("LOG", "RUST_LOG"),
    ("LOG_LEVEL", "RUST_LOG"),
    ("CERT", "TICKWHEEL_TLS_CERT"),
    ("KEY", "TICKWHEEL_TLS_KEY"),
    ("PASSWORD", TOKEN_VARIABLE),
    ("SECRET", TOKEN_VARIABLE),
];

/// Words in names of variables about access to the server. If such a variable was ignored, the server would be open although its owner
/// believes that it is not.
const OF_ACCESS: [&str; 11] =
    ["TOKEN", "TOKENS", "TLS", "SSL", "CERT", "CERTIFICATE", "KEY", "CA", "AUTH", "SECRET", "PASSWORD"];

/// A variable with the prefix of this program but without a meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unknown {
    name: String,
    /// The known variable with the most similar name.
    nearest: String,
    is_of_access: bool,
}

impl Unknown {
    /// A sentence for the log or the terminal.
    pub(crate) fn warning(&self) -> String {
        let Self { name, nearest, .. } = self;
        format!(
            "the variable {name} means nothing to tickwheel and is not used; the nearest name is {nearest}"
        )
    }
}

/// The variables of this process that have the prefix but no meaning.
pub(crate) fn unknown() -> Vec<Unknown> {
    unknown_among(env::vars_os())
}

/// Checks that a server may start in this environment.
///
/// # Errors
/// A variable without a meaning looks like one for tokens or TLS.
pub(crate) fn check_for_server() -> Result<()> {
    check(&unknown())
}

fn check(unknown: &[Unknown]) -> Result<()> {
    let Some(Unknown { name, nearest, .. }) = unknown.iter().find(|unknown| unknown.is_of_access) else {
        return Ok(());
    };
    bail!(
        "the variable {name} means nothing to tickwheel, and a server without the token or the TLS that it seems to be for would be open; \
         rename it ({nearest} is the nearest name) or unset it"
    )
}

fn unknown_among(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Unknown> {
    let known = known();
    let mut unknown: Vec<Unknown> = variables
        // An empty variable counts as one that is not set, as in a shell.
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.to_ascii_uppercase().starts_with(PREFIX))
        .filter(|(name, value)| {
            !known.contains(name)
                && push_tables::secret_of(name).is_none()
                && !OF_TESTS.contains(&name.as_str())
                && !is_of_kubernetes(name, value)
        })
        .map(|(name, _)| judge(name, &known))
        .collect();
    unknown.sort_by(|a, b| a.name.cmp(&b.name));
    unknown
}

/// All variables that any command takes.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::from([TOKEN_VARIABLE, RABBITMQ_PASSWORD_VARIABLE].map(str::to_owned));
    collect(&Cli::command(), &mut known);
    known
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|option| option.get_env());
    known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|subcommand| collect(subcommand, known));
}

/// Whether Kubernetes (or a Docker link) sets this variable for a service with the name `tickwheel` or `tickwheel-...`.
///
/// `TICKWHEEL_PORT` counts only if its value is a URL such as `tcp://127.0.0.1:8463`. A value that is only a number probably comes from a
/// person.
fn is_of_kubernetes(name: &str, value: &OsStr) -> bool {
    let has_url = || {
        let value = value.to_string_lossy();
        ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme))
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT") && has_url()
        || is_of_one_port(name)
}

/// Matches names such as `TICKWHEEL_PORT_8463_TCP`, also with `_PROTO`, `_PORT` or `_ADDR` at the end.
fn is_of_one_port(name: &str) -> bool {
    let ports = name.match_indices("_PORT_").map(|(at, found)| &name[at + found.len()..]);
    ports.into_iter().any(|rest| {
        let mut words = rest.split('_');
        let is_port = words.next().is_some_and(|port| port.parse::<u16>().is_ok());
        let is_protocol = words.next().is_some_and(|word| ["TCP", "UDP", "SCTP"].contains(&word));
        let is_part = words.next().is_none_or(|word| ["PROTO", "PORT", "ADDR"].contains(&word));
        is_port && is_protocol && is_part && words.next().is_none()
    })
}

fn judge(name: String, known: &BTreeSet<String>) -> Unknown {
    let upper = name.to_ascii_uppercase();
    let (nearest, is_near) = nearest(&upper, known);
    // A name that is not similar to a known one may have any meaning, for example TICKWHEEL_HOME.
    let is_of_access = of_access(&upper) || is_near && of_access(&nearest);
    Unknown { name, nearest, is_of_access }
}

fn of_access(name: &str) -> bool {
    name.split('_').any(|word| OF_ACCESS.contains(&word))
}

/// The known name with the smallest edit distance to `name`, and whether it is similar. It is similar if the distance is at most 2, or if
/// one name has all words of the other.
fn nearest(name: &str, known: &BTreeSet<String>) -> (String, bool) {
    let own = name.strip_prefix(PREFIX).unwrap_or(name);
    if let Some((_, meant)) = OTHER_WORDS.iter().find(|(word, _)| *word == own) {
        return ((*meant).to_owned(), true);
    }
    let distance = |known: &&String| {
        let other = known.strip_prefix(PREFIX).unwrap_or(known);
        let has_all = |a: &str, b: &str| b.split('_').all(|word| a.split('_').any(|own| own == word));
        let changes = changes(own.as_bytes(), other.as_bytes());
        (!(has_all(own, other) || has_all(other, own)) && changes > 2, changes)
    };
    let nearest = known.iter().min_by_key(distance).expect("the program has variables");
    let (is_far, _) = distance(&nearest);
    (nearest.clone(), !is_far)
}

/// The edit distance: the smallest number of bytes to insert, remove, replace, or swap with the next byte.
pub(crate) fn changes(from: &[u8], to: &[u8]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i - 1] == *b && *a == to[j - 1] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(variables: &[(&str, &str)]) -> Vec<Unknown> {
        unknown_among(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn a_variable_that_means_nothing_is_named_with_the_nearest_real_one() {
        for (name, nearest, is_of_access) in [
            ("TICKWHEEL_LISTN", "TICKWHEEL_LISTEN", false),
            ("TICKWHEEL_SERVR", "TICKWHEEL_SERVER", false),
            ("TICKWHEEL_DATA_DIR", "TICKWHEEL_DATA", false),
            ("TICKWHEEL_PORT", "TICKWHEEL_LISTEN", false),
            ("TICKWHEEL_LOG_LEVEL", "RUST_LOG", false),
            ("TICKWHEEL_INSCEURE", "TICKWHEEL_INSECURE", false),
            ("TICKWHEEL_TOKENS", "TICKWHEEL_TOKEN", true),
            ("tickwheel_token", "TICKWHEEL_TOKEN", true),
            ("TICKWHEEL_TOKNE", "TICKWHEEL_TOKEN", true),
            ("TICKWHEEL_TOKENFILE", "TICKWHEEL_TOKEN_FILE", true),
            ("TICKWHEEL_TOKEN_FILES", "TICKWHEEL_TOKEN_FILE", true),
            ("TICKWHEEL_TLS_CERTT", "TICKWHEEL_TLS_CERT", true),
            ("TICKWHEEL_TLSKEY", "TICKWHEEL_TLS_KEY", true),
            ("TICKWHEEL_CERT", "TICKWHEEL_TLS_CERT", true),
            ("TICKWHEEL_PASSWORD", "TICKWHEEL_TOKEN", true),
        ] {
            let expected = Unknown { name: name.to_owned(), nearest: nearest.to_owned(), is_of_access };
            assert_eq!(among(&[(name, "8463")]), [expected]);
        }
    }

    #[test]
    fn only_a_variable_of_tokens_or_tls_keeps_a_server_from_starting() {
        assert!(check(&among(&[("TICKWHEEL_LISTN", "a")])).is_ok());
        let error = check(&among(&[("TICKWHEEL_LISTN", "a"), ("TICKWHEEL_TOKENS", "canary")]));
        let error = error.expect_err("it would be open").to_string();
        assert!(
            error.contains("TICKWHEEL_TOKENS") && error.contains("TICKWHEEL_TOKEN is the nearest"),
            "{error}"
        );
        assert!(!error.contains("canary"), "a value may be a secret: {error}");
    }

    #[test]
    fn known_empty_and_foreign_variables_are_ignored() {
        let of_options = known();
        assert!(of_options.contains("TICKWHEEL_LISTEN") && of_options.contains("TICKWHEEL_SERVER"));
        let of_options: Vec<(&str, &str)> = of_options.iter().map(|name| (name.as_str(), "a")).collect();
        assert_eq!(among(&of_options), []);
        let of_tests: Vec<(&str, &str)> = OF_TESTS.iter().map(|name| (*name, "1")).collect();
        assert_eq!(among(&of_tests), []);
        assert_eq!(
            among(&[("TICKWHEEL_TOKENS", ""), ("TICKWHEELS", "a"), ("TOKEN", "a"), ("RUST_LGO", "a")]),
            []
        );
    }

    /// Regression: TICKWHEEL_TOKEN is the nearest of all names to TICKWHEEL_HOME, so a server with that variable did
    /// not start.
    #[test]
    fn a_variable_that_is_far_from_all_names_does_not_keep_a_server_from_starting() {
        for name in [
            "HOME", "VERSION", "USER", "ENV", "IMAGE", "UID", "NAME", "MODE", "DOCKER", "OWNER", "TOPIC",
            "TAG",
        ] {
            let found = among(&[(&format!("TICKWHEEL_{name}"), "a")]);
            assert_eq!(found.len(), 1, "{name} is named all the same");
            assert!(check(&found).is_ok(), "{found:?}");
        }
    }

    /// The variables that a pod sees for a service `tickwheel` and for one `tickwheel-tls` in its namespace.
    const OF_KUBERNETES: [(&str, &str); 12] = [
        ("TICKWHEEL_SERVICE_HOST", "127.0.0.1"),
        ("TICKWHEEL_SERVICE_PORT", "8463"),
        ("TICKWHEEL_SERVICE_PORT_HTTP", "8463"),
        ("TICKWHEEL_PORT", "tcp://127.0.0.1:8463"),
        ("TICKWHEEL_PORT_8463_TCP", "tcp://127.0.0.1:8463"),
        ("TICKWHEEL_PORT_8463_TCP_PROTO", "tcp"),
        ("TICKWHEEL_PORT_8463_TCP_PORT", "8463"),
        ("TICKWHEEL_PORT_8463_TCP_ADDR", "127.0.0.1"),
        ("TICKWHEEL_TLS_SERVICE_HOST", "127.0.0.1"),
        ("TICKWHEEL_TLS_SERVICE_PORT_TOKEN", "443"),
        ("TICKWHEEL_TLS_PORT", "tcp://127.0.0.1:443"),
        ("TICKWHEEL_TLS_PORT_443_TCP_ADDR", "127.0.0.1"),
    ];

    #[test]
    fn variables_of_kubernetes_are_ignored_and_no_option_reads_them() {
        assert_eq!(among(&OF_KUBERNETES), []);
        for name in known() {
            assert!(!is_of_kubernetes(&name, OsStr::new("tcp://127.0.0.1:1")), "Kubernetes may set {name}");
        }
        let own = among(&[("TICKWHEEL_TLS_PORT_NUMBER", "443"), ("TICKWHEEL_PORT_0_TCP_TOKEN", "a")]);
        assert_eq!(own.len(), 2, "these are not of its form: {own:?}");
    }
}
