//! The lines of an export on their way to a file, in whole blocks. Each block ends with a cursor line or with the end line.

use std::io::Write;

use anyhow::{Context, Result};
use tickwheel_api::{ExportEnd, ExportLine};

/// Passes lines on in blocks. Lines after the last cursor line are held back, so that a broken connection leaves no
/// partial block.
///
/// Memory: one block, which is a page of tasks.
#[derive(Debug)]
pub(crate) struct Blocks<W> {
    out: W,
    /// The bytes after the last cursor line: whole lines, and the beginning of an incomplete line.
    block: Vec<u8>,
    /// The offset in `block` from which line ends have not been searched yet.
    scanned: usize,
    /// The offset in `block` at which the incomplete line begins.
    line: usize,
    cursor: Option<String>,
    end: Option<ExportEnd>,
    /// Task lines that were passed on.
    tasks: u64,
    /// Task lines in the current block.
    in_block: u64,
}

/// Completes "failed to ...".
const WRITE: &str = "write the export";

impl<W: Write> Blocks<W> {
    /// Writes blocks to `out`. With `cursor`, `out` already has the blocks up to this cursor.
    pub(crate) fn new(out: W, cursor: Option<String>) -> Self {
        Self { out, block: Vec::new(), scanned: 0, line: 0, cursor, end: None, tasks: 0, in_block: 0 }
    }

    /// Takes bytes of the export.
    ///
    /// # Errors
    /// A cursor or end line is expected, but a line of another kind came; or `out` fails.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.block.extend_from_slice(bytes);
        while let Some(found) = self.block[self.scanned..].iter().position(|byte| *byte == b'\n') {
            let end = self.scanned + found + 1;
            let line = self.line..end;
            (self.scanned, self.line) = (end, end);
            if self.take(line)? {
                let rest = self.block.split_off(end);
                self.out.write_all(&self.block).context(WRITE)?;
                self.tasks += std::mem::take(&mut self.in_block);
                (self.block, self.scanned, self.line) = (rest, 0, 0);
            }
        }
        self.scanned = self.block.len();
        Ok(())
    }

    /// Whether the block ends with this line.
    fn take(&mut self, line: std::ops::Range<usize>) -> Result<bool> {
        let line = &self.block[line];
        self.in_block += u64::from(line.starts_with(b"{\"task\":") || line.starts_with(b"{\"dead\":"));
        if !line.starts_with(b"{\"cursor\":") && !line.starts_with(b"{\"end\":") {
            return Ok(false);
        }
        match ExportLine::parse(line).context("read what the server exports")? {
            ExportLine::Cursor(cursor) => self.cursor = Some(cursor),
            ExportLine::End(end) => self.end = Some(end),
            _ => {}
        }
        Ok(true)
    }

    /// Drops the incomplete block after a broken connection. The export goes on after the last cursor line.
    pub(crate) fn drop_rest(&mut self) {
        self.block.clear();
        (self.scanned, self.line, self.in_block) = (0, 0, 0);
    }

    /// The cursor with which the export goes on.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The counts of the `end` line, after it came.
    pub(crate) fn end(&self) -> Option<ExportEnd> {
        self.end
    }

    /// The number of tasks passed on, live and dead.
    pub(crate) fn tasks(&self) -> u64 {
        self.tasks
    }

    /// Flushes all blocks and returns the writer.
    ///
    /// # Errors
    /// The writer fails.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.out.flush().context(WRITE)?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"{\"export\":{}}\n{\"cursor\":\"a\"}\n{\"task\":1}\n{\"task\":2}\n{\"cursor\":\"b\"}\n{\"task\":3}\n{\"end\":{\"queues\":0,\"tasks\":3,\"dead\":0,\"schedules\":0}}\n";

    #[test]
    fn blocks_are_whole_however_the_bytes_come() {
        for piece in 1..TEXT.len() {
            let mut blocks = Blocks::new(Vec::new(), None);
            TEXT.chunks(piece).for_each(|piece| blocks.push(piece).expect("lines"));
            assert_eq!((blocks.tasks(), blocks.cursor()), (3, Some("b")));
            assert_eq!(blocks.end().expect("an end").tasks, 3);
            assert_eq!(blocks.finish().expect("memory"), TEXT);
        }
    }

    #[test]
    fn lines_after_the_last_cursor_are_dropped_with_a_broken_connection() {
        let mut blocks = Blocks::new(Vec::new(), None);
        let cut = TEXT.len() - 60;
        blocks.push(&TEXT[..cut]).expect("lines");
        blocks.drop_rest();
        assert_eq!((blocks.cursor(), blocks.end()), (Some("b"), None));
        let written = blocks.finish().expect("memory");
        assert!(written.ends_with(b"{\"cursor\":\"b\"}\n") && TEXT.starts_with(&written));
    }
}
