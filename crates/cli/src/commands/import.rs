//! `tickwheel import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use tickwheel_api::{Existing, ExportLine, ImportCounts, ImportLine, ImportQuery, Problem};
use tickwheel_client::blocking::Client;
use tickwheel_server::transfer::{Importer, Stop};

use crate::output::{STDOUT, json_line, say, stdout};
use crate::portable::directory::{self, Clock};
use crate::portable::progress::Progress;
use crate::portable::reading::Reading;
use crate::portable::way_on::Words;
use crate::remote::Remote;
use crate::values;

/// The number of lines in one request, without the header: the server's limit.
const LINES_MAX: usize = 10_000;
/// The limit of one request (bytes): 16 MiB. A single longer line is sent alone.
const REQUEST_BYTES: usize = 16 << 20;

/// Import the lines of `tickwheel export`
///
/// Lines are imported in their order. A line that cannot be read or is refused stops the import: all lines before it are imported, and none
/// after it. The message says how to continue. Ids are kept in a directory, or on a server, that never had a task; elsewhere tasks get new
/// ids and keep their keys.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel import all.ndjson                           into a server
  tickwheel import all.ndjson --data ./tickwheel-data   into a directory, without a server; a new one is made
  tickwheel import all.ndjson --data ./four --shards 4  into a new directory with four shards
  tickwheel import all.ndjson --existing skip           again after an interruption: what is there already stays
  tickwheel import all.ndjson --from-line 40001         go on from where it stopped
  gunzip < close.ndjson.gz | tickwheel import -")]
pub(crate) struct Import {
    /// The file, or - for stdin
    #[arg(value_name = "FILE")]
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
    /// Begin with this line of the file; the lines before it were imported already
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..))]
    from_line: u64,
    /// Print each line that was skipped or that replaced something, as JSON
    #[arg(short, long)]
    verbose: bool,
    /// Import into this data directory; no server may use it meanwhile
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Make the data directory with this number of shards, 1 to 1,024, which never changes [default: 1]
    #[arg(long, value_name = "N", requires = "data", value_parser = values::shards)]
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
        let mut reading = Reading::open(&self.file)?;
        let mut progress = Progress::new("records imported");
        let mut done = Done { next_line: self.from_line, ..Done::default() };
        let imported = match &self.data {
            Some(directory) => self.bring_into_directory(directory, &mut reading, &mut done, &mut progress),
            None => self.bring_to_server(&self.remote.client()?, &mut reading, &mut done, &mut progress),
        };
        let ImportCounts { added, replaced, skipped, new_ids } = done.counts;
        say(&format!(
            "{}: {added} added ({new_ids} with new ids), {replaced} replaced, {skipped} skipped",
            progress.told(done.counts.total())
        ));
        imported?;
        reading.check_whole()?;
        Ok(ExitCode::SUCCESS)
    }

    /// The error of an import that stopped before `line`.
    fn stopped(&self, line: u64, problem: &Problem) -> anyhow::Error {
        let hint = problem.hint.as_deref().map_or_else(String::new, |hint| format!("; {hint}"));
        anyhow::anyhow!(
            "{}{hint}\nall lines before line {line} are imported, and none after; {}",
            problem.detail,
            self.way_on(line, self.existing)
        )
    }

    /// The command that resumes the import at `line`. The command repeats all options, so that the lines go to the same target.
    fn way_on(&self, line: u64, existing: OnExisting) -> String {
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
        match &self.data {
            Some(directory) => {
                words.path("--data", directory);
                if let Some(shards) = self.shards {
                    words.option("--shards", &shards.to_string());
                }
            }
            None => self.remote.add_to(&mut words),
        }
        words.option("--from-line", &line.to_string());
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

    fn bring_into_directory(
        &self,
        directory: &Path,
        reading: &mut Reading,
        done: &mut Done,
        progress: &mut Progress,
    ) -> Result<()> {
        let clock = if reading.header.virtual_clock { Clock::Virtual } else { Clock::Real };
        let queue = directory::open_or_make(directory, clock, self.shards)?;
        if !self.other_clock {
            Importer::check_clock(&queue, &reading.header)
                .map_err(|problem| self.stopped(self.from_line, &problem.at_line(1)))?;
        }
        let ids_below = reading.header.ids_below;
        let mut importer =
            Importer::new(queue.clone(), self.existing.into(), self.revoke, ids_below, self.from_line);
        let taken = directory::wait_for(self.take_all(&mut importer, reading, progress))?;
        *done = Done { counts: importer.counts(), next_line: importer.next_line() };
        queue.close();
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
        let (rows, end) = client.import(query, body).map_err(|error| {
            let again = if self.existing == OnExisting::Refuse { OnExisting::Skip } else { self.existing };
            let told = format!("the lines from {first} on may be in or not; {}", self.way_on(first, again));
            anyhow::Error::from(error).context(told)
        })?;
        done.counts.add(end.counts);
        done.next_line = end.next_line;
        self.print(&rows)?;
        match &end.problem {
            None => Ok(()),
            Some(problem) => bail!(self.stopped(end.next_line, problem)),
        }
    }
}
