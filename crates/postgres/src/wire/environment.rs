//! [`Environment`]: the settings of a connection that its URL leaves out.

#![expect(clippy::disallowed_methods, reason = "the variables of libpq are read here, once, into a value")]

use std::env;
use std::fmt;
use std::path::PathBuf;

/// The variables of libpq that count, as a value. The program reads them once; a test makes its own.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) passfile: Option<PathBuf>,
    pub(crate) database: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) port: Option<String>,
    pub(crate) sslmode: Option<String>,
    pub(crate) sslrootcert: Option<String>,
    /// The home directory, for `.pgpass`.
    pub(crate) home: Option<PathBuf>,
}

impl Environment {
    /// Reads `PGUSER`, `PGPASSWORD`, `PGPASSFILE`, `PGDATABASE`, `PGHOST`, `PGPORT`, `PGSSLMODE`, `PGSSLROOTCERT`
    /// and `HOME`. An empty variable counts as absent.
    pub(crate) fn of_the_process() -> Self {
        let text = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let path = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            user: text("PGUSER"),
            password: text("PGPASSWORD"),
            passfile: path("PGPASSFILE"),
            database: text("PGDATABASE"),
            host: text("PGHOST"),
            port: text("PGPORT"),
            sslmode: text("PGSSLMODE"),
            sslrootcert: text("PGSSLROOTCERT"),
            home: path("HOME"),
        }
    }
}

impl fmt::Debug for Environment {
    /// Shows no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("passfile", &self.passfile)
            .field("database", &self.database)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("sslmode", &self.sslmode)
            .field("sslrootcert", &self.sslrootcert)
            .field("home", &self.home)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let environment = Environment { password: Some("secret".into()), ..Environment::default() };
        assert!(!format!("{environment:?}").contains("secret"));
        // The variables of this process are not known, but they can be read.
        let _ = Environment::of_the_process();
    }
}
