//! Bytes in pieces of 64 KiB.
//!
//! One long vector makes other tasks wait long. A vector that grows copies all its bytes (4 ms for 8 MiB), and
//! freeing 16 MiB takes 1 ms. Pieces are never copied again, and each is freed when it has been sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::base::others::{LetOthers, let_others};

/// The size of a piece (bytes).
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Bytes that were written one after another.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    full: VecDeque<Bytes>,
    /// The piece that is written now; it is never full.
    last: Vec<u8>,
}

impl Pieces {
    /// The number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.full.len() * PIECE_BYTES + self.last.len()
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while self.last.len() + bytes.len() >= PIECE_BYTES {
            let (now, later) = bytes.split_at(PIECE_BYTES - self.last.len());
            self.last.extend_from_slice(now);
            // A writer that fills one piece mostly fills the next one, too, so its memory is reserved now.
            let full = std::mem::replace(&mut self.last, Vec::with_capacity(PIECE_BYTES));
            self.full.push_back(full.into());
            bytes = later;
        }
        self.last.extend_from_slice(bytes);
    }

    /// A body of these bytes, with a known length. Other tasks have their turn between two pieces.
    pub(crate) fn into_body(self) -> Body {
        if self.full.is_empty() { Body::from(self.last) } else { Body::new(self.into_sent()) }
    }

    /// The same body as a named type.
    pub(crate) fn into_sent(mut self) -> Sent {
        let bytes = self.len();
        if !self.last.is_empty() {
            self.full.push_back(self.last.into());
        }
        Sent { pieces: self.full, bytes, others: None }
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Write for Pieces {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// A body that sends pieces.
pub(crate) struct Sent {
    pieces: VecDeque<Bytes>,
    /// The bytes that are left.
    bytes: usize,
    /// A turn for other tasks, before the next piece.
    others: Option<LetOthers>,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(others) = &mut self.others {
            ready!(Pin::new(others).poll(cx));
            self.others = None;
        }
        let piece = self.pieces.pop_front();
        self.others = (!self.pieces.is_empty()).then(let_others);
        self.bytes -= piece.as_ref().map_or(0, Bytes::len);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::base::others::tests::turns;
    use crate::doors::http::body::next_piece;

    /// The pieces of the body.
    async fn sent(pieces: Pieces) -> Vec<Bytes> {
        let bytes = pieces.len() as u64;
        let mut body = pieces.into_body();
        assert_eq!(body.size_hint().exact(), Some(bytes));
        let mut sent = Vec::new();
        while let Some(piece) = next_piece(&mut body).await.expect("it does not fail") {
            sent.push(piece);
        }
        assert_eq!(body.size_hint().exact(), Some(0));
        sent
    }

    #[tokio::test]
    async fn bytes_come_out_as_they_were_written() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * PIECE_BYTES + 1).collect();
        for total in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, bytes.len()] {
            for write in [1, 777, PIECE_BYTES, bytes.len()] {
                let mut pieces = Pieces::default();
                bytes[..total].chunks(write).for_each(|part| pieces.push(part));
                assert_eq!(pieces.len(), total);
                let sent = sent(pieces).await;
                assert!(sent.concat() == bytes[..total], "{total} bytes by {write}");
                assert_eq!(sent.len(), total.div_ceil(PIECE_BYTES), "{total} bytes by {write}");
            }
        }
    }

    #[tokio::test]
    async fn others_have_their_turn_between_two_pieces() {
        let mut pieces = Pieces::default();
        pieces.push(&vec![b'x'; 10 * PIECE_BYTES + 1]);
        let turns = turns();
        assert_eq!(sent(pieces).await.len(), 11);
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= 10, "{turns} turns");
    }
}
