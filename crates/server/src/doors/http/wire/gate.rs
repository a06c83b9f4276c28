//! The connection framer, between a socket and the HTTP parser.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::chunks::Chunks;
use super::fault::{Fault, Rule};
use super::head::{Framing, Scan};
use crate::listen::permits::Seat;

/// The size of one read from the socket. A small request needs one read; a body of 1 MiB needs 128.
const READ_BYTES: usize = 8 << 10;

/// The time limits of a connection.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Timeouts {
    /// From the first byte of a head to its last.
    pub(crate) head: Duration,
    /// From the end of one answer to the first byte of the next head.
    pub(crate) idle: Duration,
    /// The longest time without progress while an answer is written.
    pub(crate) write: Duration,
    /// The time for a refused client to read its answer. After it the socket is closed, even if the client still sends.
    pub(crate) linger: Duration,
}

impl Timeouts {
    /// The limits for a connection with a reserved permit: such permits are few, and must not be held by slow
    /// clients.
    fn hurried(self) -> Self {
        let second = Duration::from_secs(1);
        Self {
            head: self.head.min(2 * second),
            idle: self.idle.min(2 * second),
            write: self.write.min(2 * second),
            linger: self.linger.min(second / 2),
        }
    }
}

/// The connection framer: a socket that passes on only requests with a well-formed head and body framing, one at a
/// time.
///
/// A reader gets the bytes of the socket unchanged. But a head comes whole or not at all, and the next head comes only
/// after the last answer is written. A refused head reads as the end of the stream, and [`part`](Self::part) then tells
/// the client why. A body with malformed chunks reads as an error; the route that reads the body answers it.
///
/// The parser does not read between the end of a request's body and the end of its call. So the end of a client's
/// stream is noticed after the answer, or at once by [`poll_end`](Self::poll_end).
///
/// Memory: the bytes that were read and not passed on. This is at most the limit of a head plus one read.
///
/// Ground rules: the parser owns one clone, and the connection's task the other. Both are used by that task only; the
/// lock is needed because the task moves between threads.
pub(crate) struct Gate<S>(Arc<Mutex<Framer<S>>>);

impl<S> Clone for Gate<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Framer<S> {
    socket: S,
    seat: Arc<Seat>,
    timeouts: Timeouts,
    /// Bytes that were read and not yet passed on.
    inbox: Vec<u8>,
    /// The number of bytes at the start of `inbox` that may be passed on.
    cleared: usize,
    stage: Stage,
    wait: Wait,
    /// When the time of `wait` is over.
    deadline: Instant,
    /// Fires at the deadline or earlier. Setting it anew costs more than reading the clock, so it is set anew only when
    /// it fired too early, and not with each request.
    read_timer: Pin<Box<Sleep>>,
    write_timer: Option<Pin<Box<Sleep>>>,
    /// Whether bytes of an answer are written and not yet flushed. The next head waits for the flush, so answers to a
    /// client that does not read cannot pile up.
    unflushed: bool,
    /// Whether the parser wanted to read and has to wait for the flush.
    waits: bool,
    /// Whether the client ended its stream. It may still read.
    ended: bool,
    /// Why nothing more is passed on.
    over: Option<Over>,
}

/// Why this side ends the stream.
enum Over {
    /// The client broke a rule.
    Fault(Fault),
    /// The client sent no request for too long.
    Idle,
}

enum Stage {
    Head(Scan),
    Length { left: u64 },
    Chunked(Chunks),
}

impl Stage {
    fn start() -> Self {
        Self::Head(Scan::default())
    }
}

/// The limit that the read timer enforces.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Wait {
    Nothing,
    FirstByte,
    RestOfHead,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gate<S> {
    pub(crate) fn new(socket: S, timeouts: Timeouts, seat: Arc<Seat>) -> Self {
        Self(Arc::new(Mutex::new(Framer {
            socket,
            seat,
            timeouts,
            inbox: Vec::new(),
            cleared: 0,
            stage: Stage::start(),
            wait: Wait::Nothing,
            deadline: Instant::now(),
            read_timer: Box::pin(sleep(timeouts.idle)),
            write_timer: None,
            unflushed: false,
            waits: false,
            ended: false,
            over: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Framer<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when the client has ended its stream or is gone, and sent nothing more before that.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut framer = self.lock();
        while framer.inbox.is_empty() {
            if framer.ended || ready!(framer.poll_fill(cx)).is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Ends the connection: tells a refused client why, and closes the socket so that the client can read the answer.
    /// The other clone must be dropped before.
    pub(crate) async fn part(self, explain: impl FnOnce(&Fault) -> Vec<u8>) {
        let Some(framer) = Arc::into_inner(self.0) else { return };
        framer.into_inner().unwrap_or_else(PoisonError::into_inner).part(explain).await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Framer<S> {
    fn timeouts(&self) -> Timeouts {
        if self.seat.is_reserved() { self.timeouts.hurried() } else { self.timeouts }
    }

    async fn part(mut self, explain: impl FnOnce(&Fault) -> Vec<u8>) {
        // The connection only waits until the client closes it.
        self.seat.idle();
        let (in_body, timeouts) = (!matches!(self.stage, Stage::Head(_)), self.timeouts());
        if let Some(Over::Fault(fault)) = &self.over {
            refuse(&mut self.socket, &explain(fault), timeouts).await;
        } else if in_body || !self.inbox.is_empty() {
            refuse(&mut self.socket, b"", timeouts).await;
        } else {
            // No byte was left unread. An error means that the client closed first. TLS sends a last message, which
            // needs space in the socket. A client that does not read leaves no space.
            let _closed = timeout(timeouts.linger, self.socket.shutdown()).await;
        }
    }

    /// Decides how many bytes of the inbox may be passed on.
    ///
    /// # Errors
    /// `InvalidData` if the body is malformed from the first byte of the inbox on.
    fn judge(&mut self) -> io::Result<()> {
        if let Stage::Head(scan) = &mut self.stage {
            match scan.look(&self.inbox) {
                // Another connection has taken the permit of this idle one.
                Ok(Some(_)) if !self.seat.work() => self.over = Some(Over::Idle),
                Ok(Some(head)) => {
                    self.inbox.drain(..head.skip);
                    self.cleared = head.bytes;
                    self.stage = match head.framing {
                        Framing::Length(left) => Stage::Length { left },
                        Framing::Chunked => Stage::Chunked(Chunks::Size),
                    };
                }
                Ok(None) => {}
                Err(fault) => self.over = Some(Over::Fault(fault)),
            }
        }
        let rest = &self.inbox[self.cleared..];
        let (step, is_over) = match &mut self.stage {
            Stage::Head(_) => return Ok(()),
            Stage::Length { left } => {
                let step = (*left).min(rest.len() as u64);
                *left -= step;
                (usize::try_from(step).expect("not above a vector's length"), *left == 0)
            }
            Stage::Chunked(chunks) => match chunks.follow(rest) {
                // The error comes again, after the head.
                Err(_) if self.cleared > 0 => (0, false),
                step => (step?, chunks.is_over()),
            },
        };
        self.cleared += step;
        if is_over {
            self.stage = Stage::start();
        }
        Ok(())
    }

    /// The limit for a client that has to send more.
    fn needed(&self) -> Wait {
        match self.stage {
            Stage::Head(_) if self.inbox.is_empty() => Wait::FirstByte,
            Stage::Head(_) => Wait::RestOfHead,
            // The routes that read bodies limit their time.
            Stage::Length { .. } | Stage::Chunked(_) => Wait::Nothing,
        }
    }

    /// Reads once from the socket into the inbox.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
        self.ended = read.filled().is_empty();
        self.inbox.extend_from_slice(read.filled());
        Poll::Ready(Ok(()))
    }

    /// Handles the end of the client's stream when more is needed. An incomplete head is a fault; otherwise it is a
    /// usual end.
    fn cut_short(&mut self) {
        let in_head = matches!(self.stage, Stage::Head(_));
        if in_head && self.inbox.iter().any(|b| !b"\r\n".contains(b)) {
            self.over = Some(Over::Fault(Fault::malformed(
                "the stream ended in the middle of a request's head",
                "end the head with an empty line",
            )));
        }
    }

    /// Limits the time of a client that must send something.
    fn poll_patience(&mut self, cx: &mut Context<'_>) {
        let wait = self.needed();
        let begins = wait != self.wait || self.seat.is_at_work();
        self.wait = wait;
        let Timeouts { idle, head, .. } = self.timeouts();
        let time = match wait {
            Wait::Nothing => return,
            Wait::FirstByte => idle,
            Wait::RestOfHead => head,
        };
        if begins {
            self.seat.idle();
            self.deadline = Instant::now() + time;
            if self.deadline < self.read_timer.deadline() {
                self.read_timer.as_mut().reset(self.deadline);
            }
        }
        while self.read_timer.as_mut().poll(cx).is_ready() {
            if self.deadline <= self.read_timer.deadline() {
                self.over = Some(match wait {
                    Wait::RestOfHead => Over::Fault(Fault {
                        rule: Rule::Timeout,
                        what: format!("the request's head did not arrive within {head:?}"),
                        hint: "send the whole head at once",
                    }),
                    Wait::FirstByte | Wait::Nothing => Over::Idle,
                });
                return;
            }
            self.read_timer.as_mut().reset(self.deadline);
        }
    }

    /// Gives up a client that reads nothing of its answer.
    fn check_stall<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_timer = None;
            return written;
        }
        let write = self.timeouts().write;
        let stalled = self.write_timer.get_or_insert_with(|| Box::pin(sleep(write)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

/// Writes a last answer and closes a socket with unread bytes.
///
/// If a socket is closed over unread bytes, the kernel resets the connection, and the reset may overtake the answer.
/// So further bytes are read and dropped for a moment. Errors are ignored, because the connection ends in any case.
pub(crate) async fn refuse<S>(socket: &mut S, answer: &[u8], timeouts: Timeouts)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let _written = timeout(timeouts.linger, async {
        socket.write_all(answer).await?;
        socket.shutdown().await?;
        let mut dropped = [0; READ_BYTES];
        while socket.read(&mut dropped).await? > 0 {}
        io::Result::Ok(())
    })
    .await;
}

impl<S: AsyncRead + AsyncWrite + Unpin> hyper::rt::Read for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let framer = &mut *self.lock();
        loop {
            if framer.cleared > 0 {
                let step = framer.cleared.min(out.remaining());
                out.put_slice(&framer.inbox[..step]);
                framer.inbox.drain(..step);
                framer.cleared -= step;
                return Poll::Ready(Ok(()));
            }
            if framer.over.is_some() {
                return Poll::Ready(Ok(()));
            }
            if framer.unflushed && matches!(framer.stage, Stage::Head(_)) {
                framer.waits = true;
                return Poll::Pending;
            }
            framer.judge()?;
            if framer.cleared > 0 || framer.over.is_some() {
                continue;
            }
            if framer.ended {
                framer.cut_short();
                return Poll::Ready(Ok(()));
            }
            match framer.poll_fill(cx) {
                Poll::Ready(read) => read?,
                Poll::Pending => {
                    framer.poll_patience(cx);
                    if framer.over.is_none() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> hyper::rt::Write for Gate<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut framer = self.lock();
        framer.unflushed = true;
        let written = Pin::new(&mut framer.socket).poll_write(cx, bytes);
        framer.check_stall(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut framer = self.lock();
        // TLS takes bytes before the socket does, so a client that reads nothing may be noticed only here.
        let flushed = Pin::new(&mut framer.socket).poll_flush(cx);
        let flushed = framer.check_stall(cx, flushed);
        if flushed.is_ready() {
            framer.unflushed = false;
            if std::mem::take(&mut framer.waits) {
                cx.waker().wake_by_ref();
            }
        }
        flushed
    }

    /// Leaves this to [`part`](Self::part), which may first have to send something.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().socket.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut framer = self.lock();
        framer.unflushed = true;
        let written = Pin::new(&mut framer.socket).poll_write_vectored(cx, slices);
        framer.check_stall(cx, written)
    }
}
