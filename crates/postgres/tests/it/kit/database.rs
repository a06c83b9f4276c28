//! [`Database`]: a database of its own for one test.

use std::io::Write as _;
use std::process::Stdio;

use super::{Server, Session};

/// A database of a server. It stays until the server is removed.
pub(crate) struct Database<'a> {
    server: &'a Server,
    name: String,
}

impl<'a> Database<'a> {
    pub(super) fn new(server: &'a Server, name: String) -> Self {
        Self { server, name }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL, as the superuser.
    pub(crate) fn url(&self) -> String {
        self.server.url_of(&self.name)
    }

    /// Returns the URL, as this role.
    pub(crate) fn url_as(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{}", self.server.port(), self.name)
    }

    /// Runs SQL as the superuser, each statement in a transaction of its own unless the text has `BEGIN`. Returns the rows: one a line,
    /// columns with `|` between them. Panics with the error of the server.
    pub(crate) fn psql(&self, sql: &str) -> String {
        self.psql_as("postgres", sql)
    }

    /// As [`psql`](Self::psql), as this role.
    pub(crate) fn psql_as(&self, role: &str, sql: &str) -> String {
        self.try_psql_as(role, sql).unwrap_or_else(|error| panic!("{:.300}: {error}", sql.trim()))
    }

    /// As [`psql`](Self::psql). The error has the SQLSTATE, the message, the detail and the hint.
    pub(crate) fn try_psql(&self, sql: &str) -> Result<String, String> {
        self.try_psql_as("postgres", sql)
    }

    /// As [`try_psql`](Self::try_psql), as this role.
    pub(crate) fn try_psql_as(&self, role: &str, sql: &str) -> Result<String, String> {
        let mut psql = self.server.psql_command();
        psql.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"]);
        psql.args(["--set", "ON_ERROR_STOP=1", "--set", "VERBOSITY=verbose"]).arg(self.url_as(role));
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = psql.spawn().expect("psql is installed");
        let mut input = child.stdin.take().expect("a pipe");
        // A psql that could not connect has closed its input; its error tells more.
        let _closed = input.write_all(sql.as_bytes());
        drop(input);
        let output = child.wait_with_output().expect("a child");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Opens a connection as this role that stays open.
    pub(crate) fn session(&self, role: &str) -> Session {
        Session::open(self.server.psql_command(), &self.url_as(role))
    }
}
