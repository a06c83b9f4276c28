//! [`Caller`]: sends calls to one shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickwheel_engine::{Answer, Call, CallId, Command, Lease, Leased, Unavailable};

use crate::message::{Delivered, Mailbox, Message};
use crate::panics::Panics;
use crate::pending::Pending;
use crate::reply::Reply;

/// Sends calls to one shard. The callers of all shards of a queue number their calls together, and count the panics of wakers together.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    mailbox: Mailbox,
    calls: Arc<AtomicU64>,
    panics: Panics,
}

impl Caller {
    pub(crate) fn new(mailbox: Mailbox, calls: Arc<AtomicU64>, panics: Panics) -> Self {
        Self { mailbox, calls, panics }
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    pub(crate) fn call<C: Call>(&self, call: C) -> Pending<C::Answer, C::Error> {
        let (_, receiver) = self.send(call.command(), Duration::ZERO);
        Pending::one(receiver, opened::<C>, None)
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
        (call, Pending::one(receiver, opened::<Lease>, Some((self.mailbox.clone(), call))))
    }

    /// Sends a call with the next number. Returns the number, and the receiver of the answer.
    fn send(&self, command: Command, wait: Duration) -> (CallId, oneshot::Receiver<Delivered>) {
        let call = CallId(self.calls.fetch_add(1, Ordering::Relaxed));
        let (reply, receiver) = Reply::new(self.panics.clone());
        let message = Message::Call { call, command: Box::new(command), wait, reply };
        if let Err(Message::Call { command, reply, .. }) = self.mailbox.send(message) {
            let closed = command.unavailable(Unavailable::Closed);
            reply.send(Delivered::new(closed, self.mailbox.clone()));
        }
        (call, receiver)
    }
}

/// Returns the result that is in the answer to a call of the kind `C`.
fn opened<C: Call>(answer: Answer) -> Result<C::Answer, C::Error> {
    C::open(answer).unwrap_or_else(|| unreachable!("an answer has the kind of its call"))
}
