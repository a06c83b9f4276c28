//! The lines of a file that is to be imported.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use tickwheel_api::{ExportEnd, ExportHeader, ExportLine};

use super::pages::Pages;
use crate::commands::backup::counted;

/// The limit of a line (bytes): far above any line of an export.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Reads a file line by line, and counts its records. Memory: one line.
pub(crate) struct Reading {
    from: Box<dyn BufRead>,
    /// The header, as it stands in the file.
    pub(crate) head: Vec<u8>,
    /// The parsed header.
    pub(crate) header: ExportHeader,
    /// The number of the next line.
    next: u64,
    /// The counts so far, including the lines that the import skipped.
    counted: ExportEnd,
    end: Option<ExportEnd>,
}

impl Reading {
    /// Opens the file, the data directory, or stdin for `-`, and reads its header.
    ///
    /// # Errors
    /// The file cannot be read, or is no export; or the directory cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let from: Box<dyn BufRead> = if path.as_os_str() == "-" {
            Box::new(BufReader::with_capacity(1 << 20, io::stdin()))
        } else if path.is_dir() {
            Box::new(BufReader::new(Pages::open(path)?))
        } else {
            let file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
            Box::new(BufReader::with_capacity(1 << 20, file))
        };
        Self::of(from)
    }

    fn of(mut from: Box<dyn BufRead>) -> Result<Self> {
        let head = line(&mut from, 1)?;
        let header = match ExportLine::parse(&head) {
            Ok(ExportLine::Header(header)) => header,
            Ok(_) => bail!("line 1 is not an export header; is the beginning of the file missing?"),
            Err(refused) => bail!("line 1: {refused}; {}", refused.hint),
        };
        Ok(Self { from, head, header, next: 2, counted: ExportEnd::default(), end: None })
    }

    /// The next line that is not blank, with its number; `None` at the end.
    ///
    /// # Errors
    /// The line cannot be read, or comes after the end line.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        loop {
            let number = self.next;
            let line = line(&mut self.from, number)?;
            if line.is_empty() {
                return Ok(None);
            }
            self.next += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            if self.end.is_some() {
                bail!("line {number} stands behind the end: are these two files in one?");
            }
            self.count(&line);
            return Ok(Some((number, line)));
        }
    }

    /// Counts a line by its first characters. A line with an unusual spelling is parsed.
    fn count(&mut self, line: &[u8]) {
        let begins = |word: &str| line.starts_with(word.as_bytes());
        match () {
            () if begins("{\"task\":") => self.counted.tasks += 1,
            () if begins("{\"dead\":") => self.counted.dead += 1,
            () if begins("{\"queue\":") => self.counted.queues += 1,
            () if begins("{\"schedule\":") => self.counted.schedules += 1,
            () => match ExportLine::parse(line) {
                Ok(ExportLine::End(end)) => self.end = Some(end),
                Ok(other) => self.counted.count(&other),
                // The import reports the error of this line, so it is ignored here.
                Err(_) => {}
            },
        }
    }

    /// The number of the next line.
    pub(crate) fn next_line(&self) -> u64 {
        self.next
    }

    /// Checks that the file is complete. The caller has read all of it.
    ///
    /// # Errors
    /// The file has no end line, or the counts in the end line differ from those of the file.
    pub(crate) fn check_whole(&self) -> Result<()> {
        match self.end {
            None => {
                let last = self.next - 1;
                bail!(
                    "the file is incomplete: it has no `end` line after line {last}. Its lines up to {last} were imported"
                )
            }
            Some(end) if end != self.counted => {
                bail!(
                    "the file does not have what its end says: {} and not {}",
                    told(self.counted),
                    told(end)
                )
            }
            Some(_) => Ok(()),
        }
    }
}

/// The line with this number, with its line end; empty at the end of the file.
fn line(from: &mut impl BufRead, number: u64) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let read = io::Read::take(from, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line);
    read.with_context(|| format!("failed to read line {number}"))?;
    if line.len() == LINE_BYTES_MAX && !line.ends_with(b"\n") {
        bail!("line {number} has more than {} MiB: is this an export?", LINE_BYTES_MAX >> 20);
    }
    Ok(line)
}

/// The counts as text.
pub(crate) fn told(counts: ExportEnd) -> String {
    let ExportEnd { queues, tasks, dead, schedules } = counts;
    let [tasks, queues] = [counted(tasks, "task"), counted(queues, "queue")];
    let [dead, schedules] = [counted(dead, "dead one"), counted(schedules, "schedule")];
    format!("{tasks}, {dead}, settings of {queues}, {schedules}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"export\":{\"format\":1,\"at\":\"2030-01-01T00:00:00Z\",\"release\":\"0\"}}\n";

    fn of(text: String) -> Result<Reading> {
        Reading::of(Box::new(io::Cursor::new(text.into_bytes())))
    }

    #[test]
    fn lines_are_counted_and_numbered_and_a_cut_file_is_known() {
        let lines = "{\"task\":1}\n\n { \"cursor\" : \"a\" }\n{\"dead\":2}\n";
        let end = "{\"end\":{\"queues\":0,\"tasks\":1,\"dead\":1,\"schedules\":0}}\n";
        for (text, numbers, whole) in [
            (format!("{HEAD}{lines}{end}"), vec![2, 4, 5, 6], None),
            (
                format!("{HEAD}{lines}"),
                vec![2, 4, 5],
                Some(
                    "the file is incomplete: it has no `end` line after line 5. Its lines up to 5 were imported",
                ),
            ),
            (format!("{HEAD}{end}"), vec![2], Some("the file does not have what its end says")),
        ] {
            let mut reading = of(text).expect("a header");
            let mut found = Vec::new();
            while let Some((number, _)) = reading.next().expect("a line") {
                found.push(number);
            }
            assert_eq!(found, numbers);
            let told = reading.check_whole().err().map(|error| error.to_string());
            assert!(
                told.as_deref().unwrap_or("").starts_with(whole.unwrap_or(""))
                    && told.is_some() == whole.is_some(),
                "{told:?}"
            );
        }
        let mut twice = of(format!("{HEAD}{end}{end}")).expect("a header");
        twice.next().expect("the end");
        assert!(twice.next().expect_err("one more").to_string().contains("line 3 stands behind the end"));
    }

    #[test]
    fn a_line_that_no_export_writes_is_named_and_not_held() {
        let endless = || io::Read::chain(HEAD.as_bytes(), io::repeat(b'x'));
        let mut reading = Reading::of(Box::new(BufReader::new(endless()))).expect("a header");
        let told = reading.next().expect_err("it has no end").to_string();
        assert!(told.starts_with("line 2 has more than 64 MiB"), "{told}");
        let no_header = Reading::of(Box::new(BufReader::new(io::repeat(b'x'))));
        assert!(no_header.err().expect("no header").to_string().starts_with("line 1 has more"));
    }

    #[test]
    fn a_file_without_a_header_is_refused() {
        for text in ["", "{\"task\":{}}\n", "no JSON\n", "{\"cursor\":\"a\"}\n"] {
            assert!(of(text.to_owned()).err().expect(text).to_string().starts_with("line 1"), "{text}");
        }
    }
}
