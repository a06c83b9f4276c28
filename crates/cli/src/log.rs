//! The log of the server, on stderr.

mod backlog;
mod floods;
mod limiter;
mod outlet;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Stderr, Write};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use tickwheel_server::events;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use self::backlog::Importance;
use self::limiter::Limiter;
pub(crate) use self::limiter::tell_repeated;
use self::outlet::{Lines, Outlet, WAITING_BYTES_MAX};
use crate::output::{Told, causes};
use crate::printable;

/// The default filter. A server without problems writes only a handful of lines per hour with it.
pub(crate) const FILTER_DEFAULT: &str = "info";

/// The longest time that the end of the process waits for a reader of stderr that stalls.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Crates whose lines are left out, unless the filter names them: clients of brokers. One of them logs the bodies of messages, and the
/// lines of all of them lack the name of an event.
const SILENT: &str = "async_nats=off,krafka=off,lapin=off,redis=off";

/// The log of this process, once it is set up.
static OUTLET: OnceLock<Outlet> = OnceLock::new();

/// The forms of a log.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The format of the written lines.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Written {
    /// Text for people, with colours. Only a terminal gets them.
    Coloured,
    /// Text for people or files.
    Text,
    /// A JSON object a line.
    Json,
}

impl Written {
    /// A writer to stderr.
    pub(crate) fn to_stderr(self) -> Log<Stderr> {
        Log { written: self, to: io::stderr() }
    }
}

/// Writes lines with hidden and control characters escaped: names and errors come from clients.
#[derive(Debug)]
pub(crate) struct Log<W> {
    written: Written,
    to: W,
}

impl<W: Write> Write for Log<W> {
    /// Takes a whole line in one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        // Only the last line end ends the line. An earlier line end is part of a field, and without an escape the text after it would look
        // like a separate line.
        let (text, end) = text.strip_suffix('\n').map_or((&*text, ""), |text| (text, "\n"));
        let shown = match self.written {
            Written::Json => printable::json(text).into_owned(),
            Written::Text => printable::one_line(text),
            Written::Coloured => coloured(text),
        };
        self.to.write_all(format!("{shown}{end}").as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The text with its colours: every escape sequence except `ESC [ numbers m` is escaped.
fn coloured(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut parts = text.split('\u{1b}');
    shown.push_str(&printable::one_line(parts.next().unwrap_or_default()));
    for part in parts {
        let numbers = part
            .strip_prefix('[')
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        let is_colour = numbers.is_some_and(|rest| rest.starts_with('m'));
        shown.push_str(if is_colour { "\u{1b}" } else { "\\u{1b}" });
        shown.push_str(&printable::one_line(part));
    }
    shown
}

/// Reads a filter of the log: a level, or a filter in the syntax of `RUST_LOG`.
pub(crate) fn filter(text: &str) -> Result<String, String> {
    // An empty variable counts as one that is not set, as in a shell.
    let text = if text.is_empty() { FILTER_DEFAULT } else { text };
    // The filter treats a bare word that is not a level as the name of a module. All other modules then log nothing.
    let bare = text.split(',').map(str::trim).find(|part| {
        let is_level = part.parse::<LevelFilter>().is_ok();
        !is_level && !part.contains(['=', ':', '[']) && !part.starts_with("tickwheel")
    });
    if let Some(word) = bare {
        return Err(format!("`{word}` is no level; write error, warn, info, debug or trace"));
    }
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| {
        format!(
            "{error}; write error, warn, info, debug or trace, or a filter such as `tickwheel_server=debug`"
        )
    })
}

/// Writes the error that ends the program as a line of the log, whatever the filter is. The returned error is marked as printed.
pub(crate) fn told_as_json(error: &anyhow::Error) -> anyhow::Error {
    let log = tracing_subscriber::fmt()
        .with_writer(|| Written::Json.to_stderr())
        .json()
        .flatten_event(true)
        .finish();
    tracing::subscriber::with_default(log, || match causes(error) {
        why if why.is_empty() => tracing::error!(event = events::START_FAILED, "{error}"),
        why => tracing::error!(event = events::START_FAILED, error = why, "{error}"),
    });
    Told.into()
}

/// Sets up the log of the process. `access`: each call has a line; these lines pass the filter unless the filter names their target.
///
/// # Errors
/// The filter is not valid, or the log is set up already.
pub(crate) fn log_to_stderr(filter: &str, format: LogFormat, access: bool) -> Result<()> {
    let target = events::ACCESS;
    let says_it = filter.split(',').any(|part| part.trim().starts_with(target));
    let filter = if access && !says_it { format!("{filter},{target}=info") } else { filter.to_owned() };
    let filter = EnvFilter::try_new(format!("{SILENT},{filter}")).context("read the log filter")?;
    let colours = io::stderr().is_terminal();
    let written = match format {
        LogFormat::Text if colours => Written::Coloured,
        LogFormat::Text => Written::Text,
        LogFormat::Json => Written::Json,
    };
    let outlet = Outlet::start(io::stderr(), WAITING_BYTES_MAX).context("start the thread of the log")?;
    let outlet = OUTLET.get_or_init(|| outlet).clone();
    let lines = tracing_subscriber::fmt::layer().with_writer(Lines { outlet, written });
    let lines = match format {
        LogFormat::Text => lines.with_ansi(colours).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let set_up = tracing_subscriber::registry().with(filter).with(Limiter).with(lines).try_init();
    set_up.map_err(|error| anyhow::anyhow!("set up the log: {error}"))
}

/// Reports all lines left out, and waits until the log is written, at most a second. The caller calls it at the end of
/// the process.
pub(crate) fn flush() {
    limiter::flush();
    flush_lines();
}

fn flush_lines() {
    if let Some(outlet) = OUTLET.get() {
        let _some_are_lost = outlet.flush(FLUSH_MAX);
    }
}

/// Writes a panic to the log, in the form of the standard library, so that the panicking thread does not wait for the reader of stderr.
/// `is_last`: the process ends with this panic, so the function waits as [`flush`] does.
pub(crate) fn report_panic(panic: &PanicHookInfo<'_>, is_last: bool) {
    let thread = thread::current();
    let mut text = format!("\nthread '{}' {panic}\n", thread.name().unwrap_or("<unnamed>"));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("stack backtrace:\n{trace}\n"));
    }
    match OUTLET.get() {
        Some(outlet) => outlet.push(Importance::High, text.into_bytes()),
        None => drop(io::stderr().write_all(text.as_bytes())),
    }
    if is_last {
        flush_lines();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(written: Written, line: &str) -> String {
        let mut log = Log { written, to: Vec::new() };
        log.write_all(line.as_bytes()).expect("a vector takes all");
        String::from_utf8(log.to).expect("UTF-8")
    }

    #[test]
    fn hidden_characters_in_a_name_are_escaped() {
        let line = "\u{1b}[33mWARN\u{1b}[0m a\u{202e}b\u{9b}\u{1b}[2J\n";
        assert_eq!(logged(Written::Coloured, line), "\u{1b}[33mWARN\u{1b}[0m a\\u{202e}b\\u{9b}\\u{1b}[2J\n");
        assert_eq!(logged(Written::Text, line), "\\u{1b}[33mWARN\\u{1b}[0m a\\u{202e}b\\u{9b}\\u{1b}[2J\n");
        assert_eq!(logged(Written::Json, "{\"a\":\"\u{202e}\"}\n"), "{\"a\":\"\\u202e\"}\n");
        assert_eq!(logged(Written::Json, "{\"a\":1}\n"), "{\"a\":1}\n");
    }

    #[test]
    fn a_line_end_in_a_field_does_not_make_a_second_line() {
        let line = "WARN refused key=a\r\nWARN forged\n";
        assert_eq!(logged(Written::Text, line), "WARN refused key=a\\r\\nWARN forged\n");
        assert_eq!(logged(Written::Coloured, line), "WARN refused key=a\\r\\nWARN forged\n");
        assert_eq!(logged(Written::Text, "no end"), "no end");
        assert_eq!(logged(Written::Text, "a\n\n"), "a\\n\n");
    }

    /// The subscriber escapes control characters in messages, but not in all fields.
    #[test]
    fn no_escape_of_a_field_or_message_comes_through() {
        use std::sync::{Arc, Mutex};
        #[derive(Clone, Default)]
        struct Shared(Arc<Mutex<Vec<u8>>>);
        impl Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("one thread").extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let shared = Shared::default();
        let to = shared.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || Log { written: Written::Text, to: to.clone() })
            .finish();
        let evil = "a\u{1b}[2Jb\u{202e}\nforged";
        tracing::subscriber::with_default(
            log,
            || tracing::warn!(shown = %evil, debug = ?evil, evil, "{evil}"),
        );
        let text = String::from_utf8(shared.0.lock().expect("one thread").clone()).expect("UTF-8");
        assert!(text.matches("[2Jb").count() == 4 && !text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert_eq!(text.lines().count(), 1, "one event is one line: {text}");
    }
}
