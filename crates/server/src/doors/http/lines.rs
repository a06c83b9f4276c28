//! The lines of a streamed body.

use std::io::BufRead as _;
use std::sync::Arc;

use axum::body::Body;
use tickwheel_api::Problem;
use tokio::time::sleep_until;

use crate::access::quota::Quota;
use crate::base::aside::{LONG_BYTES, Steps};
use crate::base::others::let_others;
use crate::doors::http::body::{BODY_BYTES_MAX, next_piece};
use crate::doors::http::pace::Pace;

/// The longest streamed body (bytes): a batch of 10,000 tasks of 6 KiB each.
pub(crate) const STREAM_BYTES_MAX: usize = 64 << 20;

/// Other tasks have their turn after this many blank lines.
const BLANK_LINES: usize = 4_096;

/// Splits a body into lines as it arrives. Memory: one line and one piece of the body.
pub(crate) struct Lines {
    body: Body,
    /// The quota is charged for each piece when it arrives, because the reading may be dropped at any piece.
    quota: Option<Arc<Quota>>,
    /// Bytes that were read; those from `start` on are not yet returned. The front is removed only before more is
    /// read, so that each byte moves once.
    rest: Vec<u8>,
    start: usize,
    /// There is no line end between `start` and this position.
    scanned: usize,
    /// The longest line (bytes).
    line_bytes_max: usize,
    /// The number of blank lines so far.
    blank: u64,
    /// Whether the line that `rest` continues was too long; the remainder of it is dropped.
    dropping: bool,
    /// The bytes of the body so far.
    read: usize,
    steps: Steps,
    ended: bool,
}

/// One line of a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// The bytes of the line, without its end.
    Text(Vec<u8>),
    /// A line that was too long; its bytes were dropped.
    TooLong,
}

impl Line {
    /// The number of bytes to parse; 0 for a line that was too long.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::TooLong => 0,
        }
    }
}

impl Lines {
    /// Lines of at most `line_bytes_max` bytes.
    pub(crate) fn new(body: Body, quota: Option<Arc<Quota>>, line_bytes_max: usize) -> Self {
        Self {
            line_bytes_max,
            blank: 0,
            body,
            quota,
            rest: Vec::new(),
            start: 0,
            scanned: 0,
            dropping: false,
            read: 0,
            steps: Steps::default(),
            ended: false,
        }
    }

    /// The next line that is not blank; `None` at the end. The last line needs no line end. The future can be dropped
    /// and called again.
    ///
    /// # Errors
    /// The body is too long, or breaks off. Then the beginning of the last line is not returned, because it may be
    /// the start of a longer one.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, Problem> {
        let mut blank: usize = 0;
        loop {
            match self.take_line() {
                Some(Some(line)) => return Ok(Some(line)),
                Some(None) => {
                    blank += 1;
                    self.blank += 1;
                    if blank.is_multiple_of(BLANK_LINES) {
                        let_others().await;
                    }
                    continue;
                }
                None => {}
            }
            if self.ended {
                return Ok(None);
            }
            match next_piece(&mut self.body).await? {
                Some(piece) => {
                    self.came(piece.len());
                    if self.read > STREAM_BYTES_MAX {
                        return Err(Problem::body_too_large(STREAM_BYTES_MAX as u64));
                    }
                    if self.rest.len() >= LONG_BYTES && self.rest.capacity() <= BODY_BYTES_MAX {
                        // The reserve keeps a long line from being copied each time it grows.
                        self.rest.reserve(BODY_BYTES_MAX);
                    }
                    self.rest.extend_from_slice(&piece);
                    // Reading a piece that has arrived already does not yield, so the steps yield.
                    self.steps.did(piece.len()).await;
                }
                None => {
                    self.ended = true;
                    self.rest.push(b'\n');
                }
            }
        }
    }

    /// Reads the rest of the body and drops it, so that the connection can serve another call. Returns at the end of
    /// the body, or when the rest is too costly: it is longer than the longest body, or slower than the pace of a
    /// batch.
    pub(crate) async fn read_away(&mut self) {
        (self.rest, self.start, self.scanned) = (Vec::new(), 0, 0);
        let mut pace = Pace::from(self.read);
        while self.read <= STREAM_BYTES_MAX {
            tokio::select! {
                biased;
                piece = next_piece(&mut self.body) => match piece {
                    Ok(Some(piece)) => {
                        self.came(piece.len());
                        self.steps.did(piece.len()).await;
                    }
                    Ok(None) | Err(_) => return,
                },
                () = sleep_until(pace.ends()) => if pace.is_slow(self.read) {
                    return;
                },
            }
        }
    }

    fn came(&mut self, bytes: usize) {
        self.read += bytes;
        if let Some(quota) = &self.quota {
            quota.came(bytes, 0);
        }
    }

    /// The bytes of the body so far.
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    /// The number of blank lines so far; they are skipped.
    pub(crate) fn blank(&self) -> u64 {
        self.blank
    }

    /// The first line, which ends at `end`. Its memory is split off, and the bytes behind it are copied.
    fn cut_off(&mut self, end: usize) -> Vec<u8> {
        let behind = self.rest[end + 1..].to_vec();
        let mut line = std::mem::replace(&mut self.rest, behind);
        line.truncate(end);
        (self.start, self.scanned) = (0, 0);
        line
    }

    /// The next complete line. For a blank line, only the fact that there was one.
    fn take_line(&mut self) -> Option<Option<Line>> {
        if let Some(found) = line_end(&self.rest[self.scanned..]) {
            let end = self.scanned + found;
            let line = &self.rest[self.start..end];
            (self.start, self.scanned) = (end + 1, end + 1);
            if std::mem::take(&mut self.dropping) || line.len() > self.line_bytes_max {
                return Some(Some(Line::TooLong));
            }
            if line.trim_ascii().is_empty() {
                return Some(None);
            }
            // The bytes behind a long line are usually fewer, so only they are copied.
            let is_most = line.len() == end && end > LONG_BYTES && end > self.rest.len() - end;
            return Some(Some(Line::Text(if is_most { self.cut_off(end) } else { line.to_vec() })));
        }
        self.rest.drain(..self.start);
        if self.rest.len() > self.line_bytes_max {
            self.rest.clear();
            self.dropping = true;
        }
        (self.start, self.scanned) = (0, self.rest.len());
        None
    }
}

/// The position of the first line end.
fn line_end(mut bytes: &[u8]) -> Option<usize> {
    let all = bytes;
    // This search is fast: byte by byte, 1 MiB would take a millisecond.
    let read = bytes.skip_until(b'\n').expect("memory does not fail");
    all[..read].ends_with(b"\n").then(|| read - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::sync::atomic::Ordering;
    use std::task::{Context, Poll};

    use axum::body::{Bytes, HttpBody};
    use hyper::body::Frame;

    use super::*;
    use crate::base::others::tests::turns;

    struct Pieces(VecDeque<Bytes>);

    impl HttpBody for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    async fn lines(bytes: &[u8], piece_bytes: usize) -> Vec<Result<Line, u16>> {
        let pieces = bytes.chunks(piece_bytes).map(Bytes::copy_from_slice).collect();
        let mut lines = Lines::new(Body::new(Pieces(pieces)), None, BODY_BYTES_MAX);
        let mut found = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => found.push(Ok(line)),
                Ok(None) => return found,
                Err(problem) => {
                    found.push(Err(problem.status));
                    return found;
                }
            }
        }
    }

    fn text(line: &[u8]) -> Result<Line, u16> {
        Ok(Line::Text(line.to_vec()))
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_the_pieces_of_the_body() {
        let bytes = b"one\n\n  \r\ntwo\r\nthree";
        for piece_bytes in 1..=bytes.len() {
            let found = lines(bytes, piece_bytes).await;
            assert_eq!(found, [text(b"one"), text(b"two\r"), text(b"three")], "pieces of {piece_bytes}");
        }
        assert_eq!(lines(b"", 1).await, []);
        assert_eq!(lines(b"\n\n", 1).await, []);
    }

    /// A long line is split off with its memory. The lines after it are read as usual.
    #[tokio::test]
    async fn long_lines_stand_among_short_ones() {
        let long = |byte: u8, bytes: usize| [&vec![byte; bytes][..], b"\n"].concat();
        let short = b"one\n\ntwo\n".to_vec();
        let bytes = [
            long(b'a', LONG_BYTES + 1),
            short.clone(),
            long(b'b', 900_000),
            long(b'c', LONG_BYTES),
            short,
            long(b'd', 300_000),
            long(b'e', 300_000),
            b"end".to_vec(),
        ]
        .concat();
        let texts = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let expected: Vec<_> = texts.map(text).collect();
        for piece_bytes in [1_000, 8 << 10, 100_000, 417_792, bytes.len()] {
            assert!(lines(&bytes, piece_bytes).await == expected, "pieces of {piece_bytes}");
        }
    }

    #[tokio::test]
    async fn others_have_their_turn_between_pieces_and_among_blank_lines() {
        for (bytes, piece_bytes, least) in
            [(vec![b'x'; 64 * LONG_BYTES], LONG_BYTES, 64), (vec![b'\n'; 64 * BLANK_LINES], 1 << 30, 64)]
        {
            let turns = turns();
            lines(&bytes, piece_bytes).await;
            let turns = turns.load(Ordering::Relaxed);
            assert!(turns >= least, "{turns} turns, not {least}");
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_only_itself() {
        let fits = vec![b'x'; BODY_BYTES_MAX];
        let long = vec![b'y'; BODY_BYTES_MAX + 1];
        let bytes = [&fits[..], b"\n", &long, b"\n", &fits, b"\n", &long, &long].concat();
        for piece_bytes in [8 << 10, 1 << 20, bytes.len()] {
            let found = lines(&bytes, piece_bytes).await;
            let expected = [text(&fits), Ok(Line::TooLong), text(&fits), Ok(Line::TooLong)];
            assert!(found == expected, "pieces of {piece_bytes}");
        }
    }

    #[tokio::test]
    async fn a_body_ends_at_its_limit() {
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        let full = line.repeat(STREAM_BYTES_MAX / line.len());
        assert_eq!(lines(&full, 1 << 20).await.len(), STREAM_BYTES_MAX / line.len());
        let over = [&full[..], b"\n"].concat();
        assert_eq!(lines(&over, 1 << 20).await.last(), Some(&Err(413)));
    }
}
