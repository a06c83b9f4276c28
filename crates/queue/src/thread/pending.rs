//! [`Pending`]: an answer that is on its way.

use core::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use tickwheel_engine::{Answer, Call, CallId, Lease, Leased, Unavailable};

use super::mailbox::{Caller, Delivered, Mailbox, Signal};
use super::rounds::Rounds;

/// The answer to a call that is on its way: `.wait()` blocks until it comes, and `.await` works on any executor.
///
/// The call has been sent already, and dropping a `Pending` does not undo it. A call that leases tasks is the exception, so that a caller
/// that has gone keeps no task: dropping its `Pending` ends the wait, and the tasks that were leased are given back at once. Such a lease
/// does not count as an attempt.
///
/// A call that spans several shards sends its later parts while the `Pending` is waited for or awaited.
#[must_use = "the call is made, but whether it succeeded is known only from the answer"]
#[derive(Debug)]
pub struct Pending<T, E> {
    parts: Parts<T, E>,
    end_wait: EndWait,
}

/// Where the answer comes from.
enum Parts<T, E> {
    /// One shard answers.
    One {
        receiver: Receiver,
        open: fn(Answer) -> Result<T, E>,
    },
    /// Several shards answer, and this future makes one answer of theirs.
    Many(Pin<Box<dyn Future<Output = Result<T, E>> + Send>>),
    Done,
}

#[derive(Debug)]
enum Receiver {
    Sync(oneshot::Receiver<Delivered>),
    Async(oneshot::AsyncReceiver<Delivered>),
}

/// How the wait of a lease call ends early.
#[derive(Debug)]
enum EndWait {
    /// The call does not wait, or it is answered.
    No,
    /// The mailbox takes the message that the caller does not wait any more. The number is that of the call.
    Of(Mailbox, CallId),
    OfRounds(Arc<Rounds>),
}

/// The calls of a caller, each with its answer.
impl Caller {
    pub(crate) fn call<C: Call>(&self, call: C) -> Pending<C::Answer, C::Error> {
        let (_, receiver) = self.send(call.command(), Duration::ZERO);
        Pending::one::<C>(receiver, EndWait::No)
    }

    /// Leases tasks of queues that this shard has. The call waits for at most `wait` if no task is ready.
    pub(crate) fn lease(&self, lease: Lease, wait: Duration) -> Pending<Vec<Leased>, Unavailable> {
        self.numbered_lease(lease, wait).1
    }

    /// Leases tasks as [`lease`](Self::lease) does, and returns the number of the call as well.
    pub(crate) fn numbered_lease(
        &self,
        lease: Lease,
        wait: Duration,
    ) -> (CallId, Pending<Vec<Leased>, Unavailable>) {
        let lease = Lease { wait: !wait.is_zero(), ..lease };
        let (call, receiver) = self.send(lease.command(), wait);
        (call, Pending::one::<Lease>(receiver, EndWait::Of(self.mailbox().clone(), call)))
    }
}

impl<T, E> Pending<T, E> {
    /// Ends the wait of a lease call. The call is answered at once, with the tasks that are ready now.
    ///
    /// The method has no effect on other calls, and on calls that are answered already.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tickwheel_queue::{Lease, Queue, QueueName};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// let name = QueueName::new("q")?;
    /// let waiting = queue.lease(Lease::new(&name), Duration::MAX);
    /// waiting.end_wait();
    /// assert!(waiting.wait()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn end_wait(&self) {
        match &self.end_wait {
            EndWait::No => {}
            EndWait::Of(mailbox, call) => {
                // The shard thread may have ended. Then the wait has ended too.
                let _ = mailbox.signal(Signal::EndWait(*call));
            }
            EndWait::OfRounds(rounds) => rounds.end(),
        }
    }
}

impl<T, E: From<Unavailable>> Pending<T, E> {
    /// Makes the answer of one shard to a call of the kind `C`.
    fn one<C: Call<Answer = T, Error = E>>(
        receiver: oneshot::Receiver<Delivered>,
        end_wait: EndWait,
    ) -> Self {
        let open =
            |answer| C::open(answer).unwrap_or_else(|| unreachable!("an answer has the kind of its call"));
        Self { parts: Parts::One { receiver: Receiver::Sync(receiver), open }, end_wait }
    }

    /// Makes one answer of the answers of several shards.
    pub(crate) fn many(answer: impl Future<Output = Result<T, E>> + Send + 'static) -> Self {
        Self { parts: Parts::Many(Box::pin(answer)), end_wait: EndWait::No }
    }

    /// Makes the answer of a call that no shard sees.
    pub(crate) fn refused(why: E) -> Self
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        Self::many(core::future::ready(Err(why)))
    }

    /// Makes the answer of a lease call that spans several shards, and that waits in `rounds`.
    pub(crate) fn in_rounds(
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
        rounds: Arc<Rounds>,
    ) -> Self {
        Self { parts: Parts::Many(Box::pin(answer)), end_wait: EndWait::OfRounds(rounds) }
    }

    /// Blocks the thread until the answer comes.
    ///
    /// # Errors
    /// The error of the call itself; [`Unavailable::Closed`] or [`Unavailable::Indeterminate`] if the queue ended; [`Unavailable::Unowned`]
    /// if another process owns the shard.
    ///
    /// # Panics
    /// If the `Pending` was polled as a future before this call.
    pub fn wait(mut self) -> Result<T, E> {
        match core::mem::replace(&mut self.parts, Parts::Done) {
            Parts::One { receiver: Receiver::Sync(receiver), open } => {
                let received = receiver.recv();
                self.end_wait = EndWait::No;
                opened(open, received.ok())
            }
            Parts::Many(answer) => {
                let answer = block_on(answer);
                self.end_wait = EndWait::No;
                answer
            }
            Parts::One { receiver: Receiver::Async(_), .. } | Parts::Done => {
                panic!("an answer is either waited for or awaited")
            }
        }
    }
}

fn opened<T, E: From<Unavailable>>(
    open: fn(Answer) -> Result<T, E>,
    answer: Option<Delivered>,
) -> Result<T, E> {
    let why = match answer.map(Delivered::take) {
        Some(Ok(answer)) => return open(answer),
        Some(Err(why)) => why,
        None => "the queue ended before it answered the call".into(),
    };
    Err(E::from(Unavailable::Indeterminate { why }))
}

impl<T, E: From<Unavailable>> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (parts, answer) = match core::mem::replace(&mut self.parts, Parts::Done) {
            Parts::One { receiver, open } => {
                let mut receiver = match receiver {
                    Receiver::Sync(receiver) => receiver.into_future(),
                    Receiver::Async(receiver) => receiver,
                };
                let received = Pin::new(&mut receiver).poll(context);
                let parts = Parts::One { receiver: Receiver::Async(receiver), open };
                (parts, received.map(|received| opened(open, received.ok())))
            }
            Parts::Many(mut answer) => {
                let polled = answer.as_mut().poll(context);
                (Parts::Many(answer), polled)
            }
            Parts::Done => panic!("an answer is awaited once"),
        };
        if answer.is_pending() {
            self.parts = parts;
        } else {
            self.end_wait = EndWait::No;
        }
        answer
    }
}

impl<T, E> Drop for Pending<T, E> {
    fn drop(&mut self) {
        self.end_wait();
    }
}

impl<T, E> fmt::Debug for Parts<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One { .. } => "One",
            Self::Many(_) => "Many",
            Self::Done => "Done",
        })
    }
}

/// Blocks the thread until the future is ready.
fn block_on<T>(mut future: Pin<Box<dyn Future<Output = T> + Send>>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::park();
    }
}
