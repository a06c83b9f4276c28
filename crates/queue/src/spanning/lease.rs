//! A lease call over queues of several shards.

use core::future::poll_fn;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tickwheel_engine::{LEASE_BYTES_MAX, Lease, Leased, Unavailable};

use crate::thread::mailbox::{Caller, Mailbox, Signal};
use crate::thread::pending::Pending;
use crate::thread::rounds::Rounds;

/// While a shard is unavailable, the shards of a lease call are asked again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Leases tasks of queues of several shards: `calls` has a call for each shard. The order of the tasks is the common order of all queues,
/// as far as the tasks were ready when the call was made. Tasks of several shards with one priority and one due time have no fixed order.
///
/// In the first round each shard is asked for the tasks that are ready. The first ones in the order are taken, and the other ones are given
/// back, as if they had not been delivered. If no task is ready, all shards are asked to wait, and the first one that has a task ends the
/// waits of the others.
///
/// A shard that is unavailable does not hold the other ones up. As long as there is one, the others wait at most [`ASK_AGAIN`], and then all
/// are asked again. The error is the answer if no task was ready until the wait was over, or if all shards are unavailable.
pub(crate) fn lease(
    calls: Vec<(Caller, Lease)>,
    wait: Duration,
    max: usize,
) -> Pending<Vec<Leased>, Unavailable> {
    // A wait whose end is beyond the range of the clock has no end.
    let until = Instant::now().checked_add(wait);
    let ask = |(caller, call): &(Caller, Lease)| {
        (caller.mailbox().clone(), caller.lease(call.clone(), Duration::ZERO))
    };
    let first: Vec<Asked> = calls.iter().map(ask).collect();
    let rounds = Arc::new(Rounds::default());
    let of_call = Arc::clone(&rounds);
    let answer = async move {
        let mut gathered = Gathered::default();
        for (mailbox, pending) in first {
            gathered.take(&mailbox, pending.await);
        }
        while gathered.is_empty() && gathered.errors < calls.len() && !of_call.is_over() {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            let is_known = gathered.errors > 0;
            let wait = if is_known { left.min(ASK_AGAIN) } else { left };
            gathered.errors = 0;
            let asked = calls.iter().map(|(caller, call)| {
                let (number, pending) = caller.numbered_lease(call.clone(), wait);
                of_call.began(caller.mailbox(), number);
                (caller.mailbox().clone(), pending)
            });
            first_of(asked.collect(), !is_known, &mut gathered).await;
        }
        gathered.best(max)
    };
    Pending::in_rounds(answer, rounds)
}

/// Waits until one of the shards has tasks, or none waits any more. `ends_by_error`: the first error of a shard ends the round, too. The
/// shards that still wait are asked to end their waits.
async fn first_of(mut waiting: Vec<Asked>, ends_by_error: bool, gathered: &mut Gathered) {
    poll_fn(|context| {
        waiting.retain_mut(|(mailbox, pending)| match Pin::new(pending).poll(context) {
            Poll::Ready(answer) => {
                gathered.take(mailbox, answer);
                false
            }
            Poll::Pending => true,
        });
        let ends = waiting.is_empty() || !gathered.is_empty() || ends_by_error && gathered.errors > 0;
        if ends { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    // A part that is dropped ends its wait, and gives back what it has leased meanwhile.
    drop(waiting);
}

/// The answer of one shard that is on its way, and the mailbox for what is given back.
type Asked = (Mailbox, Pending<Vec<Leased>, Unavailable>);

/// The tasks that shards have handed out for one call. A task that is still here when this value is dropped is given back.
#[derive(Default)]
struct Gathered {
    leased: Vec<(Mailbox, Leased)>,
    /// The number of shards that were unavailable in this round, and the last error.
    errors: usize,
    error: Option<Unavailable>,
}

impl Gathered {
    fn take(&mut self, mailbox: &Mailbox, answer: Result<Vec<Leased>, Unavailable>) {
        match answer {
            Ok(leased) => self.leased.extend(leased.into_iter().map(|leased| (mailbox.clone(), leased))),
            Err(error) => {
                self.errors += 1;
                self.error = Some(error);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.leased.is_empty()
    }

    /// Returns the first `max` tasks in the common order, or fewer if their bodies are large. The other ones are given back.
    fn best(mut self, max: usize) -> Result<Vec<Leased>, Unavailable> {
        if self.leased.is_empty()
            && self.errors > 0
            && let Some(error) = self.error.take()
        {
            return Err(error);
        }
        self.leased.sort_by_key(|(_, leased)| (leased.priority, leased.due_at, leased.put_seq, leased.id));
        let mut bytes = 0;
        let fits = |(_, leased): &&(Mailbox, Leased)| {
            let is_first = bytes == 0;
            bytes += leased.body.payload_bytes() as u64;
            is_first || bytes <= LEASE_BYTES_MAX
        };
        let count = self.leased.iter().take(max).take_while(fits).count();
        let rest = self.leased.split_off(count);
        let best = core::mem::replace(&mut self.leased, rest);
        Ok(best.into_iter().map(|(_, leased)| leased).collect())
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        for (mailbox, leased) in self.leased.drain(..) {
            // The shard thread may have ended. Then a stop has written the lease down, and the task comes again when the lease ends.
            let _gone = mailbox.signal(Signal::Undelivered(vec![leased.token]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::channel;

    use tickwheel_engine::{Answer, Command, Key, Put, QueueName};

    use super::*;
    use crate::Queue;
    use crate::panics::Panics;
    use crate::thread::mailbox::{Delivered, Message};

    /// A shard that gives these answers to lease calls, one after the other, and the last one for ever. Returns the waits of the calls, too.
    fn shard(
        answers: Vec<Result<Vec<Leased>, Unavailable>>,
    ) -> ((Caller, Lease), std::thread::JoinHandle<Vec<Duration>>) {
        let (thread, inbox) = channel();
        let mailbox = Mailbox::new(0, thread);
        let caller = Caller::new(mailbox.clone(), Arc::new(AtomicU64::new(1)), Panics::default());
        let working = std::thread::spawn(move || {
            let mut waits = Vec::new();
            while let Ok(message) = inbox.recv() {
                match message {
                    Message::Call { command, wait, reply, .. } => {
                        assert!(matches!(*command, Command::Lease(_)));
                        let answer = answers.get(waits.len()).or(answers.last()).expect("an answer").clone();
                        waits.push(wait);
                        reply.send(Delivered::new(Answer::Lease(answer), mailbox.clone()));
                    }
                    Message::Signal { signal: Signal::Stop, .. } => break,
                    _ => {}
                }
            }
            waits
        });
        let queue = QueueName::new("q").expect("a name");
        ((caller, Lease::new(&queue)), working)
    }

    fn leased(key: &str) -> Vec<Leased> {
        let queue = Queue::options().open_memory().expect("open");
        let name = QueueName::new("q").expect("a name");
        queue.put(Put::new(&name, Key::new(key).expect("a key"))).wait().expect("put");
        queue.lease(Lease::new(&name), Duration::ZERO).wait().expect("leased")
    }

    /// Returns the answer of a call over two shards, and the waits that each was asked for.
    fn answer(
        shards: [Vec<Result<Vec<Leased>, Unavailable>>; 2],
        wait: Duration,
    ) -> (Result<Vec<String>, Unavailable>, [Vec<Duration>; 2]) {
        let shards = shards.map(shard);
        let calls: Vec<_> = shards.iter().map(|(call, _)| call.clone()).collect();
        let answer = lease(calls, wait, 8).wait();
        let keys = answer.map(|leased| leased.iter().map(|leased| leased.key.as_str().to_owned()).collect());
        let waits = shards.map(|((caller, _), working)| {
            caller.mailbox().signal(Signal::Stop).expect("it works still");
            working.join().expect("no panic")
        });
        (keys, waits)
    }

    #[test]
    fn a_shard_that_is_unavailable_is_asked_again_and_holds_no_other_up() {
        let (empty, unowned) = (|| Ok(Vec::new()), || Err(Unavailable::Unowned));
        let long = Duration::from_secs(3_600);
        let (told, _) = answer([vec![unowned()], vec![Ok(leased("b"))]], Duration::ZERO);
        assert_eq!(told, Ok(vec!["b".to_owned()]), "the other shard has a task");
        let (told, _) = answer([vec![unowned()], vec![empty()]], Duration::ZERO);
        assert_eq!(told, Err(Unavailable::Unowned), "nothing is known of one shard");
        let (told, [waits, _]) = answer([vec![unowned()], vec![unowned()]], long);
        assert_eq!((told, waits.len()), (Err(Unavailable::Unowned), 1), "no shard is there");

        let (told, [waits, _]) =
            answer([vec![unowned(), unowned(), unowned(), Ok(leased("a"))], vec![empty()]], long);
        assert_eq!(told, Ok(vec!["a".to_owned()]), "it is there again");
        assert!(waits[0].is_zero() && waits[1..].iter().all(|wait| *wait <= ASK_AGAIN), "{waits:?}");

        // The shard is lost while it waits.
        let (told, [_, waits]) = answer([vec![empty(), unowned(), Ok(leased("a"))], vec![empty()]], long);
        assert_eq!(told, Ok(vec!["a".to_owned()]));
        assert!(waits[1] > ASK_AGAIN && waits.last().is_some_and(|wait| *wait <= ASK_AGAIN), "{waits:?}");
    }
}
