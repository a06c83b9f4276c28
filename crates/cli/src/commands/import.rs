//! `tickwheel import`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use tickwheel_api::{Existing, ExportLine, ImportCounts, ImportLine, ImportQuery, Problem};
use tickwheel_client::blocking::Client;
use tickwheel_postgres::without_password;
use tickwheel_queue::Queue;
use tickwheel_server::transfer::{Importer, Stop};

use crate::hints;
use crate::output::{STDOUT, json_line, say, stdout};
use crate::portable::database;
use crate::portable::directory::{self, Clock};
use crate::portable::progress::Progress;
use crate::portable::reading::Reading;
use crate::portable::way_on::Words;
use crate::remote::Remote;
use crate::values;

/// The number of lines in one request, without the header: the server's limit.
const LINES_MAX: usize = 10_000;
/// The first line behind the header.
const FIRST_LINE: u64 = 2;
/// The limit of one request (bytes): 16 MiB. A single longer line is sent alone.
const REQUEST_BYTES: usize = 16 << 20;

/// Import the lines of `tickwheel export`, or a data directory
///
/// The source is a file of an export, or a data directory that no server uses. The tasks go to a server, or without a server into a data
/// directory (--data) or a PostgreSQL (--postgres). Lines are imported in their order. A line that cannot be read or is refused stops the import: all lines before it are imported, and none
/// after it. The message says how to continue. Ids are kept in a directory, or on a server, that never had a task; elsewhere tasks get new
/// ids and keep their keys. In PostgreSQL most tasks get new ids.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel import all.ndjson                           into a server
  tickwheel import all.ndjson --data ./tickwheel-data   into a directory, without a server; a new one is made
  tickwheel import ./tickwheel-data --data ./four --shards 4    a directory into a new one with four shards
  tickwheel import ./tickwheel-data --postgres postgres://tickwheel@db/tickwheel    a directory into PostgreSQL
  tickwheel import all.ndjson --existing skip           again after an interruption: what is there already stays
  tickwheel import all.ndjson --from-line 40001         go on from where it stopped
  gunzip < close.ndjson.gz | tickwheel import -")]
pub(crate) struct Import {
    /// The file, or - for stdin; or a data directory, which no server may use meanwhile
    #[arg(value_name = "FILE|DIR")]
    file: PathBuf,
    /// How to treat tasks, settings and schedules that exist already
    #[arg(long, value_enum, default_value = "refuse")]
    existing: OnExisting,
    /// With `--existing replace`: also replace a leased task, and take it from its worker
    #[arg(long)]
    revoke: bool,
    /// Import a file from a virtual clock to a real clock, or from a real clock to a virtual one, with all times unchanged
    #[arg(long)]
    other_clock: bool,
    /// Begin with this line of the file; the lines before it were imported already. A data directory has no such lines
    #[arg(long, value_name = "N", default_value_t = FIRST_LINE, value_parser = clap::value_parser!(u64).range(FIRST_LINE..))]
    from_line: u64,
    /// Print each line that was skipped or that replaced something, as JSON
    #[arg(short, long)]
    verbose: bool,
    /// Import into this data directory; no server may use it meanwhile
    #[arg(long, value_name = "DIR", group = "local")]
    data: Option<PathBuf>,
    /// Import into this PostgreSQL; no server may use it meanwhile. Missing tables are made
    ///
    /// Parts that the URL leaves out come from the variables of psql, such as PGPASSWORD, and from ~/.pgpass
    #[arg(long, value_name = "URL", group = "local")]
    postgres: Option<String>,
    /// Make the data directory or the tables with this number of shards, 1 to 1,024, which never changes [default: 1 for a directory, 64
    /// for PostgreSQL]
    #[arg(long, value_name = "N", requires = "local", value_parser = values::shards)]
    shards: Option<u32>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum OnExisting {
    /// Keep what exists. Importing the same file again changes nothing
    Skip,
    /// Replace what exists by what the file says
    Replace,
    /// Stop the import before the line of something that exists
    Refuse,
}

impl From<OnExisting> for Existing {
    fn from(existing: OnExisting) -> Self {
        match existing {
            OnExisting::Skip => Self::Skip,
            OnExisting::Replace => Self::Replace,
            OnExisting::Refuse => Self::Refuse,
        }
    }
}

/// The progress of an import.
#[derive(Debug, Default)]
struct Done {
    counts: ImportCounts,
    /// The number of the line at which the import goes on.
    next_line: u64,
}

impl Import {
    /// Imports the lines.
    ///
    /// # Errors
    /// The import stopped. The error says how to resume it.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.revoke && self.existing != OnExisting::Replace {
            bail!("--revoke needs --existing replace, because no other import takes a task from its worker");
        }
        if self.file.is_dir() {
            self.check_directory()?;
        }
        let mut reading = Reading::open(&self.file)?;
        let mut progress = Progress::new("records imported");
        let mut done = Done { next_line: self.from_line, ..Done::default() };
        let clock = if reading.header.virtual_clock { Clock::Virtual } else { Clock::Real };
        let imported = match (&self.data, &self.postgres) {
            (Some(directory), _) => directory::open_or_make(directory, clock, self.shards)
                .and_then(|queue| self.bring_into(&queue, &mut reading, &mut done, &mut progress)),
            (None, Some(url)) => database::open_or_make(url, clock, self.shards)
                .and_then(|queue| self.bring_into(&queue, &mut reading, &mut done, &mut progress)),
            (None, None) => {
                self.bring_to_server(&self.remote.client()?, &mut reading, &mut done, &mut progress)
            }
        };
        let ImportCounts { added, replaced, skipped, new_ids } = done.counts;
        let total = done.counts.total();
        let imported = imported.and_then(|()| reading.check_whole());
        // An import that failed before its first record has nothing to tell but the error.
        if imported.is_ok() || total > 0 {
            say(&format!(
                "{}: {added} added ({new_ids} with new ids), {replaced} replaced, {skipped} skipped",
                progress.told(total)
            ));
        }
        imported?;
        Ok(ExitCode::SUCCESS)
    }

    /// Checks the options of an import of a data directory.
    fn check_directory(&self) -> Result<()> {
        let shown = self.file.display();
        if self.from_line != FIRST_LINE {
            bail!(
                "--from-line counts the lines of a file, and {shown} is a directory, whose lines may have changed; run the import again \
                 with --existing skip"
            );
        }
        let is_target = |data: &PathBuf| data.canonicalize().ok() == self.file.canonicalize().ok();
        if self.data.as_ref().is_some_and(is_target) {
            bail!("{shown} is the source and the target; name another directory with --data");
        }
        Ok(())
    }

    /// The error of an import that stopped before `line`.
    fn stopped(&self, line: u64, problem: &Problem) -> anyhow::Error {
        let hint = problem.hint.as_deref();
        let hint = hint.map_or_else(String::new, |hint| format!("; {}", hints::in_commands(hint)));
        if problem.status == 503 && self.is_local() {
            return anyhow::anyhow!("{}{hint}\n{}", problem.detail, self.unsure_way_on(line));
        }
        anyhow::anyhow!(
            "{}{hint}\nall lines before line {line} are imported, and none after; {}",
            problem.detail,
            self.way_on(line, self.existing)
        )
    }

    /// Whether the target is a directory or a database.
    fn is_local(&self) -> bool {
        self.data.is_some() || self.postgres.is_some()
    }

    /// The way on after a failure that leaves it unknown whether `line` and some lines behind it are imported.
    fn unsure_way_on(&self, line: u64) -> String {
        let again = if self.existing == OnExisting::Refuse { OnExisting::Skip } else { self.existing };
        format!("the lines from {line} on may be in or not; {}", self.way_on(line, again))
    }

    /// The command that resumes the import at `line`. The command repeats all options, so that the lines go to the same target.
    fn way_on(&self, line: u64, existing: OnExisting) -> String {
        // The lines of a directory may be others in the next run, so all of them are read again.
        let is_directory = self.file.is_dir();
        let existing = match existing {
            OnExisting::Refuse if is_directory => OnExisting::Skip,
            existing => existing,
        };
        let mut words = Words::new(&["tickwheel", "import"]);
        match self.file.as_os_str() == "-" {
            true => words = Words::new(&[]),
            // Without a folder before it, a file name that begins with a dash could be taken for an option.
            false if self.file.as_os_str().as_encoded_bytes().starts_with(b"-") => {
                words.word(&format!("./{}", self.file.display()));
            }
            false => words.word(&self.file.display().to_string()),
        }
        if existing != OnExisting::Refuse {
            words.option("--existing", Existing::from(existing).name());
        }
        if self.revoke {
            words.word("--revoke");
        }
        if self.other_clock {
            words.word("--other-clock");
        }
        if self.verbose {
            words.word("--verbose");
        }
        match (&self.data, &self.postgres) {
            (Some(directory), _) => words.path("--data", directory),
            (None, Some(url)) => words.option("--postgres", &without_password(url)),
            (None, None) => self.remote.add_to(&mut words),
        }
        if let Some(shards) = self.shards {
            words.option("--shards", &shards.to_string());
        }
        if !is_directory {
            words.option("--from-line", &line.to_string());
        }
        match self.file.as_os_str() == "-" {
            true => format!("to go on, give the same input again, with {}", words.line()),
            false => format!("go on with `{}`", words.line()),
        }
    }

    /// Skips the lines before the first one to import.
    fn skip_ahead(&self, reading: &mut Reading) -> Result<Option<(u64, Vec<u8>)>> {
        loop {
            match reading.next()? {
                Some((number, _)) if number < self.from_line => {}
                None if reading.next_line() < self.from_line => {
                    bail!("the file has {} lines, and no line {}", reading.next_line() - 1, self.from_line)
                }
                line => return Ok(line),
            }
        }
    }

    fn print(&self, rows: &[ImportLine]) -> Result<()> {
        if !self.verbose || rows.is_empty() {
            return Ok(());
        }
        let mut out = stdout();
        for row in rows {
            let json = serde_json::to_vec(row).context("failed to write a line")?;
            std::io::Write::write_all(&mut out, &json_line(json)).context(STDOUT)?;
        }
        std::io::Write::flush(&mut out).context(STDOUT)
    }

    /// Imports into a queue without a server, and closes the queue.
    fn bring_into(
        &self,
        queue: &Queue,
        reading: &mut Reading,
        done: &mut Done,
        progress: &mut Progress,
    ) -> Result<()> {
        let taken = self.take_into(queue, reading, done, progress);
        queue.close();
        taken
    }

    fn take_into(
        &self,
        queue: &Queue,
        reading: &mut Reading,
        done: &mut Done,
        progress: &mut Progress,
    ) -> Result<()> {
        if !self.other_clock {
            Importer::check_clock(queue, &reading.header)
                .map_err(|problem| self.stopped(self.from_line, &problem.at_line(1)))?;
        }
        let ids_below = reading.header.ids_below;
        let mut importer =
            Importer::new(queue.clone(), self.existing.into(), self.revoke, ids_below, self.from_line);
        let taken = directory::wait_for(self.take_all(&mut importer, reading, progress))?;
        *done = Done { counts: importer.counts(), next_line: importer.next_line() };
        taken
    }

    async fn take_all(
        &self,
        importer: &mut Importer,
        reading: &mut Reading,
        progress: &mut Progress,
    ) -> Result<()> {
        let told = |stop: Stop| self.stopped(stop.line, &stop.problem);
        let mut next = self.skip_ahead(reading)?;
        while let Some((number, line)) = next {
            match ExportLine::parse(line.trim_ascii_end()) {
                Ok(line) => importer.take(number, line).await.map_err(told)?,
                Err(refused) => {
                    importer.refuse(number, Problem::bad_request(&refused).into()).await.map_err(told)?;
                }
            }
            self.print(&importer.rows())?;
            progress.at(importer.counts().total());
            next = match reading.next() {
                Ok(next) => next,
                // The lines read so far are imported before the error is reported.
                Err(error) => {
                    importer.finish().await.map_err(told)?;
                    return Err(error);
                }
            };
        }
        importer.finish().await.map_err(told)?;
        self.print(&importer.rows())
    }

    fn bring_to_server(
        &self,
        client: &Client,
        reading: &mut Reading,
        done: &mut Done,
        progress: &mut Progress,
    ) -> Result<()> {
        let mut next = self.skip_ahead(reading)?;
        let mut broken = None;
        while let Some((first, _)) = &next {
            let first = *first;
            let mut body = reading.head.clone();
            let (mut last, mut lines) = (first, 0);
            // A request holds consecutive lines only.
            while let Some((number, line)) = next.take_if(|(number, line)| {
                let follows = *number == last + u64::from(lines > 0);
                let fits = lines < LINES_MAX && (lines == 0 || body.len() + line.len() <= REQUEST_BYTES);
                follows && fits
            }) {
                body.extend_from_slice(&line);
                (last, lines) = (number, lines + 1);
                match reading.next() {
                    Ok(line) => next = line,
                    Err(error) => broken = Some(error),
                }
            }
            if !body.ends_with(b"\n") {
                body.push(b'\n');
            }
            self.send(client, first, body, done)?;
            progress.at(done.counts.total());
        }
        broken.map_or(Ok(()), Err)
    }

    fn send(&self, client: &Client, first: u64, body: Vec<u8>, done: &mut Done) -> Result<()> {
        let query = ImportQuery {
            existing: self.existing.into(),
            revoke: self.revoke,
            other_clock: self.other_clock,
            quiet: !self.verbose,
            first_line: first,
        };
        let (rows, end) = client
            .import(query, body)
            .map_err(|error| anyhow::Error::from(error).context(self.unsure_way_on(first)))?;
        done.counts.add(end.counts);
        done.next_line = end.next_line;
        self.print(&rows)?;
        match &end.problem {
            None => Ok(()),
            Some(problem) => bail!(self.stopped(end.next_line, problem)),
        }
    }
}
