//! [`Pending`]: an answer that is on its way.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use tickwheel_engine::{Answer, CallId, Unavailable};

use crate::message::{Delivered, Message};

/// The answer to a call that is on its way: `.wait()` blocks until it comes, and `.await` works on any executor.
///
/// The call has been sent already, and dropping a `Pending` does not undo it. A call that leases tasks is the exception, so that a caller
/// that has gone keeps no task: dropping its `Pending` ends the wait, and the tasks that were leased are given back at once. Such a lease
/// does not count as an attempt.
#[must_use = "the call is made, but whether it succeeded is known only from the answer"]
#[derive(Debug)]
pub struct Pending<T, E> {
    receiver: Receiver,
    open: fn(Answer) -> Result<T, E>,
    /// For a lease call: the channel that takes the message that the caller does not wait any more, and the number of the call.
    end_wait: Option<(Sender<Message>, CallId)>,
}

#[derive(Debug)]
enum Receiver {
    Sync(oneshot::Receiver<Delivered>),
    Async(oneshot::AsyncReceiver<Delivered>),
    Done,
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
        if let Some((messages, call)) = &self.end_wait {
            // The shard thread may have ended. Then the wait has ended too.
            let _ = messages.send(Message::EndWait(*call));
        }
    }
}

impl<T, E: From<Unavailable>> Pending<T, E> {
    pub(crate) fn new(
        receiver: oneshot::Receiver<Delivered>,
        open: fn(Answer) -> Result<T, E>,
        end_wait: Option<(Sender<Message>, CallId)>,
    ) -> Self {
        Self { receiver: Receiver::Sync(receiver), open, end_wait }
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
        let received = match core::mem::replace(&mut self.receiver, Receiver::Done) {
            Receiver::Sync(receiver) => receiver.recv(),
            Receiver::Async(_) | Receiver::Done => panic!("an answer is either waited for or awaited"),
        };
        self.end_wait = None;
        self.opened(received.ok())
    }

    fn opened(&self, answer: Option<Delivered>) -> Result<T, E> {
        match answer {
            Some(answer) => (self.open)(answer.take()),
            None => Err(E::from(Unavailable::Indeterminate {
                why: "the queue ended, or another process took it over, before the answer was there".into(),
            })),
        }
    }
}

impl<T, E: From<Unavailable>> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if matches!(self.receiver, Receiver::Sync(_))
            && let Receiver::Sync(receiver) = core::mem::replace(&mut self.receiver, Receiver::Done)
        {
            self.receiver = Receiver::Async(receiver.into_future());
        }
        let Receiver::Async(receiver) = &mut self.receiver else { panic!("an answer is awaited once") };
        let received = match Pin::new(receiver).poll(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(received) => received,
        };
        self.receiver = Receiver::Done;
        self.end_wait = None;
        Poll::Ready(self.opened(received.ok()))
    }
}

impl<T, E> Drop for Pending<T, E> {
    fn drop(&mut self) {
        self.end_wait();
    }
}
