//! The lines of a streamed body.

use axum::body::Body;
use tickwheel_api::Problem;
use tokio::time::sleep_until;

use crate::batches::Pace;
use crate::body::{BODY_BYTES_MAX, next_piece};

/// 64 MiB: a batch of 10,000 tasks of 6 KiB each.
pub(crate) const STREAM_BYTES_MAX: usize = 64 << 20;

/// Cuts a body into lines as it arrives. Memory: one line and one piece of the body.
pub(crate) struct Lines {
    body: Body,
    /// Read; from `start` on not yet given out. Cut at the front only before more is read, so that each byte moves once.
    rest: Vec<u8>,
    start: usize,
    /// Up to here there is no line end behind `start`.
    scanned: usize,
    /// The line that `rest` continues was too long; what is left of it is dropped.
    dropping: bool,
    /// Bytes of the body so far.
    read: usize,
    ended: bool,
}

/// One line of the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// Its bytes, without the line end.
    Text(Vec<u8>),
    /// More bytes than a line may have; they are gone.
    TooLong,
}

impl Line {
    /// How many bytes there are to read.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::TooLong => 0,
        }
    }
}

impl Lines {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, rest: Vec::new(), start: 0, scanned: 0, dropping: false, read: 0, ended: false }
    }

    /// The next line that is not blank, `None` at the end. A last line needs no line end. Safe to drop and call again.
    ///
    /// # Errors
    /// The body is too long in all, or breaks off: then what was read of the last line is not given out, for it may be the
    /// start of a longer one.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, Problem> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            match next_piece(&mut self.body).await? {
                Some(piece) => {
                    self.read += piece.len();
                    if self.read > STREAM_BYTES_MAX {
                        return Err(Problem::body_too_large(STREAM_BYTES_MAX as u64));
                    }
                    self.rest.extend_from_slice(&piece);
                }
                None => {
                    self.ended = true;
                    self.rest.push(b'\n');
                }
            }
        }
    }

    /// Reads the rest of the body and drops it, so that its connection can serve another call. Returns at the end of the body, or where that is
    /// not worth it: beyond the length that a body may have, and when less comes than a batch has to send.
    pub(crate) async fn read_away(&mut self) {
        (self.rest, self.start, self.scanned) = (Vec::new(), 0, 0);
        let mut pace = Pace::from(self.read);
        while self.read <= STREAM_BYTES_MAX {
            tokio::select! {
                biased;
                piece = next_piece(&mut self.body) => match piece {
                    Ok(Some(piece)) => self.read += piece.len(),
                    Ok(None) | Err(_) => return,
                },
                () = sleep_until(pace.ends()) => if pace.is_slow(self.read) {
                    return;
                },
            }
        }
    }

    /// Bytes of the body so far.
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    fn take_line(&mut self) -> Option<Line> {
        while let Some(found) = self.rest[self.scanned..].iter().position(|&b| b == b'\n') {
            let end = self.scanned + found;
            let line = &self.rest[self.start..end];
            (self.start, self.scanned) = (end + 1, end + 1);
            if std::mem::take(&mut self.dropping) || line.len() > BODY_BYTES_MAX {
                return Some(Line::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Some(Line::Text(line.to_vec()));
            }
        }
        self.rest.drain(..self.start);
        if self.rest.len() > BODY_BYTES_MAX {
            self.rest.clear();
            self.dropping = true;
        }
        (self.start, self.scanned) = (0, self.rest.len());
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::body::{Bytes, HttpBody};
    use hyper::body::Frame;

    use super::*;

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
        let mut lines = Lines::new(Body::new(Pieces(pieces)));
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
    async fn lines_are_the_same_however_the_body_is_cut() {
        let bytes = b"one\n\n  \r\ntwo\r\nthree";
        for piece_bytes in 1..=bytes.len() {
            let found = lines(bytes, piece_bytes).await;
            assert_eq!(found, [text(b"one"), text(b"two\r"), text(b"three")], "pieces of {piece_bytes}");
        }
        assert_eq!(lines(b"", 1).await, []);
        assert_eq!(lines(b"\n\n", 1).await, []);
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
