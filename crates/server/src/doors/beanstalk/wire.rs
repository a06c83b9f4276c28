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

/// So much is read at once, and so much at most is read ahead of a command that waits.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// Answers are sent once there are this many bytes of them, and whenever there is nothing left to carry out.
const OUTPUT_BYTES: usize = 64 << 10;

/// A large body has to come within so long once there is room for it, or its connection is closed: 16 MiB by half a megabit a second.
const LARGE_BODY_TIME_MAX: Duration = Duration::from_secs(300);
/// And while it comes, or while anything is sent, the client is not away for longer.
const STALL_MAX: Duration = Duration::from_secs(30);

/// One connection. A connection that is idle has no buffers.
pub(super) struct Wire<'a> {
    socket: Stream,
    counters: &'a Counters,
    decoder: Decoder,
    /// What was read and is not taken apart.
    input: Vec<u8>,
    /// So much of that is taken apart.
    taken: usize,
    /// What comes next, if it was looked at.
    next: Option<Event>,
    output: Vec<u8>,
    /// So much of that is sent.
    sent: usize,
    /// The client sends nothing more.
    ended: bool,
    /// For the body that is under way or was the last one, if it is large; and until when it has to be whole.
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

    /// What the client says next; `None`: it has left, or said all it had to say. Whatever is to be said to it is sent before it is waited for.
    /// The rest of a large body is read when there is room for it; that is given back when the next is asked for, for then it is carried out.
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
                    // What has come already is not waited for, and others have their turn between two pieces of it.
                    let_others().await;
                }
                None => {
                    let room = tokio::select! {
                        biased;
                        room = budget.take(bytes) => Some(room),
                        // It says no more, and what it has said is read already.
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

    /// What the client says next, if it has come and is one of these.
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

    /// Reads what there is, as far as there is room for it.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
        }
        let room = INPUT_BYTES_MAX.saturating_sub(self.input.len());
        // On the stack while something is read, so that a connection that waits has no memory for it.
        let mut chunk = [MaybeUninit::uninit(); INPUT_BYTES_MAX];
        let mut chunk = ReadBuf::uninit(&mut chunk[..room]);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut chunk))?;
        self.ended |= chunk.filled().is_empty();
        self.input.extend_from_slice(chunk.filled());
        Poll::Ready(Ok(()))
    }

    /// Returns when the client has said that it sends nothing more. What it sends meanwhile is kept, as far as there is room for it; behind
    /// that nothing is read, and its end is not seen.
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

    /// Says this behind all that was said before.
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

    /// A long one goes out piece by piece: others have their turn between two, and there is no second copy of all of it.
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

    /// Sends what is to be said.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        // Where this is dropped half way, the rest is what is sent next.
        while self.sent < self.output.len() {
            if self.sent > 0 {
                // Others have their turn between two pieces of a long answer.
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

    /// Ends it, as far as the client still listens.
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

    /// A client that has announced this body and sent half of it.
    async fn half_sent(counters: &Counters, bytes: usize) -> (Wire<'_>, DuplexStream) {
        let (mut client, socket) = duplex(1 << 20);
        client.write_all(format!("put 0 0 1 {bytes}\r\n").as_bytes()).await.expect("said");
        client.write_all(&vec![b'x'; bytes / 2]).await.expect("said");
        (Wire::new(Stream::pipe(socket), 16 << 20, counters), client)
    }

    async fn other_half(mut client: DuplexStream, bytes: usize) {
        client.write_all(&vec![b'x'; bytes - bytes / 2]).await.expect("said");
        client.write_all(b"\r\n").await.expect("said");
        // It stays there.
        sleep(Duration::from_secs(3_600)).await;
        drop(client);
    }

    fn is_put(event: io::Result<Option<Event>>) -> bool {
        matches!(event, Ok(Some(Event::Command(Command::Put { .. }))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_is_read_when_there_is_room_and_gives_it_back() {
        let (counters, budget) = (Counters::default(), Budget::of(110 << 10));
        let (mut first, client) = half_sent(&counters, 100_000).await;
        let (mut second, other) = half_sent(&counters, 100_000).await;
        assert!(timeout(Duration::from_secs(1), first.next(&budget)).await.is_err(), "half of it is not all");
        tokio::spawn(other_half(other, 100_000));
        let ours = async {
            // It has its room as long as it is asked for.
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
    async fn a_large_body_that_does_not_come_ends_its_connection() {
        let (counters, budget) = (Counters::default(), Budget::of(110 << 10));
        let (mut wire, mut client) = half_sent(&counters, 100_000).await;
        let begun = Instant::now();
        let ended = wire.next(&budget).await;
        assert_eq!(ended.expect_err("it ends").kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), STALL_MAX);
        // Nor does a byte now and then keep it there.
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
        // Who says nothing has nothing to end.
        let (mut small, _client) = half_sent(&counters, 1_000).await;
        assert!(timeout(LARGE_BODY_TIME_MAX * 2, small.next(&budget)).await.is_err());
        client.shutdown().await.expect("it leaves");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_room_and_leaves_is_seen() {
        let (counters, budget) = (Counters::default(), Budget::of(0));
        let (mut wire, mut client) = half_sent(&counters, 70_000).await;
        assert!(timeout(Duration::from_secs(60), wire.next(&budget)).await.is_err());
        client.shutdown().await.expect("it leaves");
        assert_eq!(wire.next(&budget).await.expect("it has only left"), None);
        // What it had said as a whole by then is heard.
        for budget in [Budget::of(0), Budget::of(1 << 20)] {
            let (mut wire, mut client) = half_sent(&counters, 70_000).await;
            client.write_all(&[b'x'; 35_000]).await.expect("said");
            client.write_all(b"\r\nquit\r\n").await.expect("said");
            client.shutdown().await.expect("it leaves");
            assert!(is_put(wire.next(&budget).await));
            assert_eq!(wire.next(&budget).await.expect("heard"), Some(Event::Command(Command::Quit)));
        }
    }

    /// A body that grew copied all that it held, 8 MiB in one go.
    #[tokio::test(start_paused = true)]
    async fn a_large_body_is_not_copied_as_it_grows() {
        let (counters, budget) = (Counters::default(), Budget::of(1 << 20));
        let (mut wire, client) = half_sent(&counters, 100_000).await;
        tokio::spawn(other_half(client, 100_000));
        let event = wire.next(&budget).await.expect("it comes");
        let Some(Event::Command(Command::Put { body, .. })) = event else { panic!("{event:?}") };
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

    /// TLS takes more than it sends.
    #[tokio::test(start_paused = true)]
    async fn nor_is_it_when_the_socket_keeps_something_back() {
        let counters = Counters::default();
        let (_client, socket) = duplex(10);
        let mut wire = Wire::new(Stream::pipe(tokio::io::BufWriter::new(socket)), 65_535, &counters);
        wire.say(&tickwheel_api::beanstalk::Reply::Ok(&[b'x'; 1_000])).await.expect("it is kept");
        let begun = Instant::now();
        assert_eq!(wire.flush().await.expect_err("it ends").kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), STALL_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_not_waited_for() {
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
