//! A lease call over queues of several shards.

use core::future::poll_fn;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tickwheel_engine::{Lease, Leased, Unavailable};

use crate::caller::Caller;
use crate::message::{Mailbox, Message};
use crate::pending::Pending;
use crate::rounds::Rounds;

/// Leases tasks of queues of several shards: `calls` has a call for each shard. The order of the tasks is the common order of all queues,
/// as far as the tasks were ready when the call was made.
///
/// In the first round each shard is asked for the tasks that are ready. The first ones in the order are taken, and the other ones are given
/// back, as if they had not been delivered. If no task is ready, all shards are asked to wait, and the first one that has a task ends the
/// waits of the others.
///
/// A shard that is unavailable holds the other ones up only if no task is ready: then its error is the answer, but not before the wait is
/// over.
pub(crate) fn lease(
    calls: Vec<(Caller, Lease)>,
    wait: Duration,
    max: usize,
) -> Pending<Vec<Leased>, Unavailable> {
    let first: Vec<Asked> =
        calls.iter().map(|(caller, call)| Asked::new(caller, call, Duration::ZERO)).collect();
    let rounds = Arc::new(Rounds::default());
    let of_call = Arc::clone(&rounds);
    let answer = async move {
        let mut hands = Hands::default();
        for asked in first {
            hands.take(asked.await);
        }
        if hands.is_empty() && !wait.is_zero() {
            hands.error = None;
            let again = calls.iter().map(|(caller, call)| {
                let (number, pending) = caller.numbered_lease(call.clone(), wait);
                of_call.began(caller.mailbox(), number);
                Asked { mailbox: caller.mailbox().clone(), pending: Some(pending) }
            });
            first_of(again.collect(), &mut hands).await;
        }
        hands.best(max)
    };
    Pending::in_rounds(answer, rounds)
}

/// Waits until one of the shards has tasks, or none waits any more. The shards that still wait are asked to end their waits.
async fn first_of(mut waiting: Vec<Asked>, hands: &mut Hands) {
    poll_fn(|context| {
        waiting.retain_mut(|asked| match Pin::new(asked).poll(context) {
            Poll::Ready(answer) => {
                hands.take(answer);
                false
            }
            Poll::Pending => true,
        });
        if waiting.is_empty() || !hands.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    // A part that is dropped ends its wait, and gives back what it has leased meanwhile.
    drop(waiting);
}

/// The answer of one shard that is on its way.
struct Asked {
    mailbox: Mailbox,
    /// `None` once the shard has answered.
    pending: Option<Pending<Vec<Leased>, Unavailable>>,
}

impl Asked {
    fn new(caller: &Caller, call: &Lease, wait: Duration) -> Self {
        Self { mailbox: caller.mailbox().clone(), pending: Some(caller.lease(call.clone(), wait)) }
    }
}

impl Future for Asked {
    type Output = (Mailbox, Result<Vec<Leased>, Unavailable>);

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let pending = self.pending.as_mut().expect("an answer is awaited once");
        let answer = Pin::new(pending).poll(context);
        answer.map(|answer| {
            self.pending = None;
            (self.mailbox.clone(), answer)
        })
    }
}

/// The tasks that shards have handed out for one call. A task that is still here when this value is dropped is given back.
#[derive(Default)]
struct Hands {
    leased: Vec<(Mailbox, Leased)>,
    /// The error of a shard that was unavailable.
    error: Option<Unavailable>,
}

impl Hands {
    fn take(&mut self, (mailbox, answer): (Mailbox, Result<Vec<Leased>, Unavailable>)) {
        match answer {
            Ok(leased) => self.leased.extend(leased.into_iter().map(|leased| (mailbox.clone(), leased))),
            Err(error) => self.error = Some(error),
        }
    }

    fn is_empty(&self) -> bool {
        self.leased.is_empty()
    }

    /// Returns the first `max` tasks in the common order. The other ones are given back.
    fn best(mut self, max: usize) -> Result<Vec<Leased>, Unavailable> {
        if self.leased.is_empty()
            && let Some(error) = self.error.take()
        {
            return Err(error);
        }
        self.leased.sort_by_key(|(_, leased)| (leased.priority, leased.due_at, leased.put_seq, leased.id));
        let rest = self.leased.split_off(max.min(self.leased.len()));
        let best = core::mem::replace(&mut self.leased, rest);
        Ok(best.into_iter().map(|(_, leased)| leased).collect())
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        for (mailbox, leased) in self.leased.drain(..) {
            // The shard thread may have ended. Then a stop has written the lease down, and the task comes again when the lease ends.
            let _ = mailbox.send(Message::Undelivered(vec![leased.token]));
        }
    }
}
