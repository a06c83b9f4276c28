//! Output for people and programs: data on stdout as a table or as JSON, messages on stderr.
//!
//! Text from a server, a file or another person is made [`printable`](crate::printable) here. Files that print without this module are on
//! the list in the test below.

use std::error::Error;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::value::RawValue;
use tickwheel_api::PayloadBody;
use tickwheel_client::ClientError;

use crate::hints;
use crate::printable::{self, one_line};

/// How data is printed.
#[derive(Args, Debug)]
pub(crate) struct Format {
    /// The output format: a table, or JSON, one object per line [default: table on a terminal, json into a pipe or a file]
    #[arg(short, long, value_enum, global = true, env = "TICKWHEEL_OUTPUT", hide_env = true)]
    output: Option<Shape>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Json,
    Table,
}

/// One line of data: as JSON, and as the cells of a table.
pub(crate) trait Row {
    /// The names of the cells.
    const HEADER: &'static [&'static str];
    /// One JSON object, without a line end.
    fn json(&self) -> Vec<u8>;
    /// One cell for each name of [`HEADER`](Self::HEADER).
    fn cells(&self) -> Vec<String>;
}

impl Format {
    /// Prints the rows. Without rows, JSON output is empty.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(crate) fn print<R: Row>(&self, rows: impl IntoIterator<Item = R>) -> Result<()> {
        let mut out = stdout();
        if self.is_json() {
            for row in rows {
                out.write_all(&json_line(row.json())).context(STDOUT)?;
            }
        } else {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
            table.set_header(R::HEADER.iter().copied());
            for row in rows {
                let cells = row.cells();
                assert_eq!(cells.len(), R::HEADER.len(), "a row has a cell for each name");
                table.add_row(cells.iter().map(|cell| one_line(cell)));
            }
            // The first column has no padding: lines begin at the left edge.
            for column in table.column_iter_mut() {
                column.set_padding((0, 2));
            }
            writeln!(out, "{}", table.trim_fmt()).context(STDOUT)?;
        }
        out.flush().context(STDOUT)
    }

    /// Whether data is printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self.output {
            Some(shape) => shape == Shape::Json,
            None => !io::stdout().is_terminal(),
        }
    }
}

/// Completes "failed to ...".
pub(crate) const STDOUT: &str = "write to stdout";

/// Locks and buffers stdout. The caller must flush it: a dropped buffer hides its error.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// Prints one line of text.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn print_line(text: &str) -> Result<()> {
    let mut out = stdout();
    writeln!(out, "{}", one_line(text)).context(STDOUT)?;
    out.flush().context(STDOUT)
}

/// Prints one JSON object in a line.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn print_json(json: Vec<u8>) -> Result<()> {
    let mut out = stdout();
    out.write_all(&json_line(json)).context(STDOUT)?;
    out.flush().context(STDOUT)
}

/// Writes a message of one or several lines to stderr. A failed write is ignored.
pub(crate) fn say(text: &str) {
    let _unread = writeln!(io::stderr().lock(), "{}", printable::lines(text));
}

/// Makes a line of output from a JSON object. The line has the same meaning to a program, and cannot control a terminal.
pub(crate) fn json_line(json: Vec<u8>) -> Vec<u8> {
    let mut line = match std::str::from_utf8(&json) {
        Ok(text) => printable::json(text).into_owned().into_bytes(),
        // JSON is UTF-8, so this case does not occur with a valid answer.
        Err(_) => json,
    };
    line.push(b'\n');
    line
}

/// Prints an error and its hint.
pub(crate) fn complain(error: &anyhow::Error) {
    let (told, hint) = match error.chain().find_map(|cause| cause.downcast_ref::<ClientError>()) {
        Some(ClientError::Problem(problem)) => {
            (problem.detail.clone(), problem.hint.as_deref().map(hints::in_commands))
        }
        Some(ClientError::Unreachable { .. } | ClientError::NoSocket { .. }) => {
            (chain(error), Some("--server or TICKWHEEL_SERVER names another server".to_owned()))
        }
        _ => (chain(error), None),
    };
    say(&format!("error: {told}"));
    if let Some(hint) = hint {
        say(&format!("hint: {hint}"));
    }
}

/// The error of a program that has already printed the reason.
#[derive(Debug)]
pub(crate) struct Told;

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("told already")
    }
}

impl Error for Told {}

/// The causes of an error in one line, without the error itself.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let whole = chain(error);
    let rest = whole.strip_prefix(&error.to_string()).unwrap_or(&whole);
    rest.strip_prefix(": ").unwrap_or(rest).to_owned()
}

/// An error and its causes in one line. A cause that the text quotes already is not repeated.
fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether the command failed because the reader of stdout closed it, as in `| head`.
pub(crate) fn reader_left(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
            && error.chain().any(|cause| cause.to_string() == STDOUT)
    })
}

/// The largest number of characters of a payload in a table. It is enough to recognize the payload, and the other columns still fit.
const PAYLOAD_CHARS_MAX: usize = 60;

/// A payload as a cell of a table.
pub(crate) fn payload_cell(payload: &PayloadBody) -> String {
    match payload.as_json().map(RawValue::get) {
        Some(json) if json.chars().count() <= PAYLOAD_CHARS_MAX => json.to_owned(),
        Some(json) => json.chars().take(PAYLOAD_CHARS_MAX - 1).chain(['…']).collect(),
        None => format!("{} bytes of {}", payload.bytes.len(), payload.content_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that write to a terminal without this module, and the text that each writes.
    const PRINT: [(&str, &str); 16] = [
        ("output.rs", "everything else, by the functions of this file"),
        ("commands/cluster.rs", "statements of our own"),
        ("commands/completions.rs", "a script of our own"),
        ("commands/config.rs", "a page of our own"),
        (
            "commands/serve.rs",
            "addresses that the server listens at, and the log, which `log.rs` makes printable",
        ),
        ("commands/export.rs", "lines of an export, as data"),
        ("commands/import.rs", "JSON that passed `json_line`"),
        ("commands/token.rs", "a token that was just made"),
        ("commands/top.rs", "JSON that passed `json_line`"),
        ("top/watch.rs", "lines that passed `one_line`"),
        ("commands/purge.rs", "a question with numbers and the name that the caller gave"),
        ("commands/replay.rs", "deliveries of the caller's own file, as data"),
        ("demo/report.rs", "figures"),
        ("doctor/report.rs", "lines that passed `one_line`, and JSON that passed `json_line`"),
        ("log.rs", "the log"),
        ("salvage/report.rs", "lines that passed `one_line`, and JSON that passed `json_line`"),
    ];

    /// Each file that prints by itself must be listed here, with the reason why its output is harmless.
    #[test]
    fn nothing_is_printed_past_this_file_unless_it_is_listed() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut folders, mut found) = (vec![source.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("a text");
                if ["stdout()", "stderr()", "io::stderr", "io::stdout", "println!", "print!("]
                    .iter()
                    .any(|word| text.contains(word))
                {
                    let name = path.strip_prefix(&source).expect("below it").to_string_lossy().into_owned();
                    found.push(name);
                }
            }
        }
        found.sort();
        let mut listed = PRINT.map(|(name, _)| name.to_owned()).to_vec();
        listed.sort();
        assert_eq!(found, listed);
    }

    #[test]
    fn a_line_of_json_is_one_line_and_harmless() {
        let json = json_line("{\"a\":\"\u{202e}\u{7f}\"}".as_bytes().to_vec());
        assert_eq!(String::from_utf8(json).expect("UTF-8"), "{\"a\":\"\\u202e\\u007f\"}\n");
    }

    #[test]
    fn a_cause_that_was_quoted_is_not_said_twice() {
        let error = anyhow::anyhow!("no room").context("the disk said: no room").context("failed to start");
        assert_eq!(chain(&error), "failed to start: the disk said: no room");
    }

    #[test]
    fn long_payloads_are_cut_and_bytes_are_named() {
        let long = PayloadBody::json(format!("\"{}\"", "ü".repeat(100)).into_bytes());
        assert_eq!(payload_cell(&long).chars().count(), PAYLOAD_CHARS_MAX);
        let bytes = PayloadBody { bytes: vec![1, 2, 3], content_type: "image/png".to_owned() };
        assert_eq!(payload_cell(&bytes), "3 bytes of image/png");
    }
}
