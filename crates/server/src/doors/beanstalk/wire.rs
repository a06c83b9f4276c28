//! The bytes of one connection: commands in, answers out.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tickwheel_api::beanstalk::{Decoder, Event, Reply};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::{Budget, SMALL_BYTES};
use super::counters::Counters;
use crate::base::others::let_others;
use crate::listen::stream::Stream;

/// The largest input that is read at once, and that is read ahead of a waiting command (bytes).
const INPUT_BYTES_MAX: usize = 64 << 10;
/// Answers are sent when there are this many bytes of them, and when there is no further command to carry out.
const OUTPUT_BYTES: usize = 64 << 10;

/// The longest time for a large body once there is memory for it; then the connection is closed. 16 MiB need half a
/// megabit a second.
const LARGE_BODY_TIME_MAX: Duration = Duration::from_secs(300);
/// The longest time without progress while a large body comes, or while anything is sent.
const STALL_MAX: Duration = Duration::from_secs(30);

/// One connection with its buffers. An idle connection has none.
pub(super) struct Wire<'a> {
    socket: Stream,
    counters: &'a Counters,
    decoder: Decoder,
    /// Input that was read and not decoded.
    input: Vec<u8>,
    /// The number of bytes of `input` that are decoded.
    taken: usize,
    /// The next event, if it was decoded ahead.
    next: Option<Event>,
    output: Vec<u8>,
    /// The number of bytes of `output` that are sent.
    sent: usize,
    /// Whether the client has ended its side.
    ended: bool,
    /// The memory for a large body that is under way or was the last one, and the instant at which it must be
    /// complete.
    room: Option<(OwnedSemaphorePermit, Instant)>,
}

impl<'a> Wire<'a> {
    pub(super) fn new(socket: Stream, job_bytes_max: u32, counters: &'a Counters) -> Self {
        Self {
            socket,
            counters,
            decoder: Decoder::new(job_bytes_max),
            input: Vec::new(),
            taken: 0,
            next: None,
            output: Vec::new(),
            sent: 0,
            ended: false,
            room: None,
        }
    }

    /// The next event of the client; `None`: it has left, or has ended its side. All answers are sent before the
    /// wait. The rest of a large body is read when there is memory for it. The memory is given back when the next
    /// event is asked for, because the body has been handled by then.
    pub(super) async fn next(&mut self, budget: &Budget) -> io::Result<Option<Event>> {
        self.room = None;
        loop {
            if let Some(event) = self.take() {
                return Ok(Some(event));
            }
            self.flush().await?;
            if self.ended {
                return Ok(None);
            }
            (self.input, self.output, self.taken) = (Vec::new(), Vec::new(), 0);
            let bytes = self.decoder.body_bytes();
            match &self.room {
                _ if bytes <= SMALL_BYTES => poll_fn(|cx| self.poll_input(cx)).await?,
                Some((_, until)) => {
                    let until = (Instant::now() + STALL_MAX).min(*until);
                    timeout_at(until, poll_fn(|cx| self.poll_input(cx))).await??;
                    // Reading input that has arrived already does not yield. So other tasks get their turn here,
                    // between two pieces of it.
                    let_others().await;
                }
                None => {
                    let room = tokio::select! {
                        biased;
                        room = budget.take(bytes) => Some(room),
                        // The client has ended its side, and all its bytes are read already.
                        ended = self.end() => ended.map(|()| None)?,
                    };
                    if room.is_some() {
                        self.decoder.make_room();
                    }
                    self.room = room.map(|room| (room, Instant::now() + LARGE_BODY_TIME_MAX));
                }
            }
        }
    }

    /// The next event, if it has arrived and `is_one` accepts it.
    pub(super) fn next_if(&mut self, is_one: impl FnOnce(&Event) -> bool) -> Option<Event> {
        self.next = self.take();
        if self.next.as_ref().is_some_and(is_one) { self.next.take() } else { None }
    }

    fn take(&mut self) -> Option<Event> {
        if self.next.is_some() {
            return self.next.take();
        }
        let mut rest = &self.input[self.taken..];
        let event = self.decoder.next(&mut rest);
        self.taken = self.input.len() - rest.len();
        event
    }

    /// Reads available input, as far as the buffer has room.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
        }
        let room = INPUT_BYTES_MAX.saturating_sub(self.input.len());
        // The chunk is on the stack, so that a waiting connection has no memory for it.
        let mut chunk = [MaybeUninit::uninit(); INPUT_BYTES_MAX];
        let mut chunk = ReadBuf::uninit(&mut chunk[..room]);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut chunk))?;
        self.ended |= chunk.filled().is_empty();
        self.input.extend_from_slice(chunk.filled());
        Poll::Ready(Ok(()))
    }

    /// Waits until the client ends its side. Input that arrives meanwhile is kept, up to the size of the buffer.
    /// When the buffer is full nothing more is read, so the end is not seen.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        poll_fn(|cx| {
            while !self.ended {
                if self.input.len() >= INPUT_BYTES_MAX && self.taken < self.input.len() {
                    return Poll::Pending;
                }
                ready!(self.poll_input(cx))?;
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Adds an answer behind the earlier ones.
    pub(super) async fn say(&mut self, reply: &Reply<'_>) -> io::Result<()> {
        self.counters.count_reply(reply);
        if let Some(body) = reply.write_head(&mut self.output) {
            self.say_body(body).await?;
        }
        if self.output.len() >= OUTPUT_BYTES {
            self.flush().await?;
            let_others().await;
        }
        Ok(())
    }

    /// Writes a long body piece by piece. Other tasks have their turn between two pieces, and the body is never
    /// copied whole.
    async fn say_body(&mut self, body: &[u8]) -> io::Result<()> {
        let mut pieces = body.chunks(OUTPUT_BYTES);
        let last = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            self.output.extend_from_slice(piece);
            self.flush().await?;
            let_others().await;
        }
        self.output.extend_from_slice(last);
        self.output.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Sends all answers.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        // If the future is dropped half way, the next call sends the rest.
        while self.sent < self.output.len() {
            if self.sent > 0 {
                // Other tasks have their turn between two pieces of a long answer.
                let_others().await;
            }
            let end = self.output.len().min(self.sent + OUTPUT_BYTES);
            let sent = timeout(STALL_MAX, self.socket.write(&self.output[self.sent..end])).await??;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent += sent;
        }
        if self.sent > 0 {
            timeout(STALL_MAX, self.socket.flush()).await??;
            self.output.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Sends the last answers and closes the connection, if the client still reads.
    pub(super) async fn close(mut self) {
        if self.flush().await.is_ok() {
            let _as_it_was = timeout(STALL_MAX, self.socket.shutdown()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tickwheel_api::beanstalk::Command;
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::base::others::tests::turns;

    /// A client that has announced a body of this size and sent half of it.
    async fn half_sent(counters: &Counters, bytes: usize) -> (Wire<'_>, DuplexStream) {
        let (mut client, socket) = duplex(1 << 20);
        client.write_all(format!("put 0 0 1 {bytes}\r\n").as_bytes()).await.expect("said");
        client.write_all(&vec![b'x'; bytes / 2]).await.expect("said");
        (Wire::new(Stream::pipe(socket), 16 << 20, counters), client)
    }

    async fn other_half(mut client: DuplexStream, bytes: usize) {
        client.write_all(&vec![b'x'; bytes - bytes / 2]).await.expect("said");
        client.write_all(b"\r\n").await.expect("said");
        // The client stays connected.
        sleep(Duration::from_secs(3_600)).await;
        drop(client);
    }

    fn is_put(event: io::Result<Option<Event>>) -> bool {
        matches!(event, Ok(Some(Ok(Command::Put { .. }))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_waits_for_memory_and_gives_it_back() {
        let (counters, budget) = (Counters::default(), Budget::of(110 << 10));
        let (mut first, client) = half_sent(&counters, 100_000).await;
        let (mut second, other) = half_sent(&counters, 100_000).await;
        assert!(timeout(Duration::from_secs(1), first.next(&budget)).await.is_err(), "half of it is not all");
        tokio::spawn(other_half(other, 100_000));
        let ours = async {
            // The memory is held until the next event is asked for.
            let event = tokio::join!(first.next(&budget), async {
                sleep(Duration::from_secs(20)).await;
                assert!(budget.left_bytes() < 100_000);
                tokio::spawn(other_half(client, 100_000));
            });
            assert!(is_put(event.0));
            sleep(Duration::from_secs(60)).await;
            assert!(budget.left_bytes() < 100_000, "it is carried out, and still there");
            assert!(timeout(Duration::from_secs(1), first.next(&budget)).await.is_err());
        };
        let theirs = async {
            sleep(Duration::from_secs(1)).await;
            assert!(
                timeout(Duration::from_secs(60), second.next(&budget)).await.is_err(),
                "there is no room"
            );
            assert!(is_put(second.next(&budget).await), "and then it is its turn");
        };
        tokio::join!(ours, theirs);
        let (mut small, third) = half_sent(&counters, 65_535).await;
        tokio::spawn(other_half(third, 65_535));
        assert!(is_put(small.next(&Budget::of(0)).await), "a small one needs none");
        drop(second);
        assert!(budget.left_bytes() >= 100_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_that_stops_ends_its_connection() {
        let (counters, budget) = (Counters::default(), Budget::of(110 << 10));
        let (mut wire, mut client) = half_sent(&counters, 100_000).await;
        let begun = Instant::now();
        let ended = wire.next(&budget).await;
        assert_eq!(ended.expect_err("it ends").kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), STALL_MAX);
        // Single bytes at long intervals do not keep the connection open either.
        drop(wire);
        assert!(budget.left_bytes() >= 100_000);
        let (mut wire, mut slow) = half_sent(&counters, 100_000).await;
        let begun = Instant::now();
        let ended = tokio::select! {
            ended = wire.next(&budget) => ended,
            () = async { loop {
                sleep(STALL_MAX / 2).await;
                slow.write_all(b"x").await.expect("said");
            } } => unreachable!("it goes on for ever"),
        };
        assert_eq!(ended.expect_err("it ends").kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), LARGE_BODY_TIME_MAX);
        // A small body has no time limit.
        let (mut small, _client) = half_sent(&counters, 1_000).await;
        assert!(timeout(LARGE_BODY_TIME_MAX * 2, small.next(&budget)).await.is_err());
        client.shutdown().await.expect("it leaves");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_while_it_waits_for_memory_is_noticed() {
        let (counters, budget) = (Counters::default(), Budget::of(0));
        let (mut wire, mut client) = half_sent(&counters, 70_000).await;
        assert!(timeout(Duration::from_secs(60), wire.next(&budget)).await.is_err());
        client.shutdown().await.expect("it leaves");
        assert_eq!(wire.next(&budget).await.expect("it has only left"), None);
        // Commands that had arrived completely by then are still carried out.
        for budget in [Budget::of(0), Budget::of(1 << 20)] {
            let (mut wire, mut client) = half_sent(&counters, 70_000).await;
            client.write_all(&[b'x'; 35_000]).await.expect("said");
            client.write_all(b"\r\nquit\r\n").await.expect("said");
            client.shutdown().await.expect("it leaves");
            assert!(is_put(wire.next(&budget).await));
            assert_eq!(wire.next(&budget).await.expect("heard"), Some(Ok(Command::Quit)));
        }
    }

    /// A bug that was found: a growing body copied all its bytes, 8 MiB at once.
    #[tokio::test(start_paused = true)]
    async fn a_large_body_is_not_copied_as_it_grows() {
        let (counters, budget) = (Counters::default(), Budget::of(1 << 20));
        let (mut wire, client) = half_sent(&counters, 100_000).await;
        tokio::spawn(other_half(client, 100_000));
        let event = wire.next(&budget).await.expect("it comes");
        let Some(Ok(Command::Put { body, .. })) = event else { panic!("{event:?}") };
        assert_eq!((body.len(), body.capacity()), (100_000, 100_002));
    }

    #[tokio::test]
    async fn a_long_answer_goes_out_in_pieces_and_others_have_their_turn() {
        let counters = Counters::default();
        let (mut client, socket) = duplex(32 << 20);
        let mut wire = Wire::new(Stream::pipe(socket), 65_535, &counters);
        let text: Vec<u8> = (0..=255).cycle().take((4 << 20) + 1).collect();
        let turns = turns();
        wire.say(&tickwheel_api::beanstalk::Reply::Ok(&text)).await.expect("it is said");
        assert!(wire.output.capacity() <= 4 * OUTPUT_BYTES, "{} bytes are kept", wire.output.capacity());
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= (4 << 20) / OUTPUT_BYTES, "{turns} turns");
        wire.flush().await.expect("it is sent");
        drop(wire);
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.expect("it comes");
        assert!(said == [b"OK 4194305\r\n", &text[..], b"\r\n"].concat(), "{} bytes came", said.len());
    }

    /// A TLS stream takes more bytes than it sends.
    #[tokio::test(start_paused = true)]
    async fn a_long_answer_is_sent_whole_when_the_socket_buffers() {
        let counters = Counters::default();
        let (_client, socket) = duplex(10);
        let mut wire = Wire::new(Stream::pipe(tokio::io::BufWriter::new(socket)), 65_535, &counters);
        wire.say(&tickwheel_api::beanstalk::Reply::Ok(&[b'x'; 1_000])).await.expect("it is kept");
        let begun = Instant::now();
        assert_eq!(wire.flush().await.expect_err("it ends").kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), STALL_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_disconnected() {
        let counters = Counters::default();
        let (_client, socket) = duplex(1_000);
        let mut wire = Wire::new(Stream::pipe(socket), 65_535, &counters);
        let said = async {
            loop {
                wire.say(&tickwheel_api::beanstalk::Reply::Ok(&[b'x'; 10_000])).await?;
            }
        };
        let begun = Instant::now();
        let ended: io::Result<()> = said.await;
        assert_eq!(ended.expect_err("it ends").kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), STALL_MAX);
    }
}
