//! [`Session`]: a connection that stays open between two statements, so that transactions overlap.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The line that ends an answer.
const END: &str = "tickwheel: end of the answer";

/// A psql that is fed piece by piece.
pub(crate) struct Session {
    psql: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    pub(super) fn open(mut psql: Command, url: &str) -> Self {
        psql.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", url]);
        // A statement that waits for ever fails the test instead of stopping it.
        psql.env("PGOPTIONS", "-c statement_timeout=120s");
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut psql = psql.spawn().expect("psql is installed");
        let input = psql.stdin.take().expect("a pipe");
        let output = BufReader::new(psql.stdout.take().expect("a pipe"));
        Self { psql, input, output }
    }

    /// Runs SQL and waits for its end. Returns the rows: one a line, columns with `|` between them. An error is printed on the standard
    /// error, and the session goes on.
    pub(crate) fn run(&mut self, sql: &str) -> String {
        self.send(sql);
        self.answer()
    }

    /// Sends SQL and does not wait, because it waits for another session. [`answer`](Self::answer) has its rows.
    pub(crate) fn send(&mut self, sql: &str) {
        writeln!(self.input, "{sql}\n;\n\\echo '{END}'").expect("psql runs");
        self.input.flush().expect("psql runs");
    }

    /// Waits for the end of what was sent, and returns its rows.
    pub(crate) fn answer(&mut self) -> String {
        let mut rows = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("text") > 0, "psql ended: {rows:?}");
            match line.trim_end_matches('\n') {
                END => return rows.join("\n"),
                row => rows.push(row.to_owned()),
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ended = self.psql.kill();
        let _ended = self.psql.wait();
    }
}
