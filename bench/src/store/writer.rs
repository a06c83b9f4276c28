//! The thread that commits what many clients put and cancel: all that waits goes into the next commit of a [`Keeper`].

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use anyhow::Context;
use tickwheel_queue::Key;

use super::record::{Record, wall};
use super::subject::{End, Keeper};

/// As much as a queue takes in one turn, or more.
const CALLS_MAX: usize = 4_096;

/// The way of one client to the thread that commits.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    calls: Sender<(Call, SyncSender<bool>)>,
}

#[derive(Debug)]
enum Call {
    Put(Record),
    Cancel(Key),
}

impl Client {
    /// Puts a task. It is durable when this returns.
    pub(crate) fn put(&self, record: Record) -> anyhow::Result<bool> {
        self.call(Call::Put(record))
    }

    /// Cancels a task, and says whether there was one. It is durable when this returns.
    pub(crate) fn cancel(&self, key: Key) -> anyhow::Result<bool> {
        self.call(Call::Cancel(key))
    }

    fn call(&self, call: Call) -> anyhow::Result<bool> {
        let (sender, receiver) = sync_channel(1);
        self.calls.send((call, sender)).ok().context("the writer ended")?;
        receiver.recv().context("the writer ended")
    }
}

/// Calls `work` with a client for a keeper that a thread of its own serves meanwhile.
pub(crate) fn served<K: Keeper, T>(
    keeper: &mut K,
    work: impl FnOnce(&Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    std::thread::scope(|scope| {
        let (calls, inbox) = channel();
        let writer = scope.spawn(move || serve(keeper, &inbox));
        let client = Client { calls };
        let done = work(&client);
        drop(client);
        let served = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Clients that were left alone have a reason to fail; this one is the cause.
        served.and(done)
    })
}

fn serve<K: Keeper>(keeper: &mut K, inbox: &Receiver<(Call, SyncSender<bool>)>) -> anyhow::Result<()> {
    while let Ok(first) = inbox.recv() {
        let calls = std::iter::once(first).chain(inbox.try_iter().take(CALLS_MAX - 1));
        let (mut changes, mut replies) = (Vec::new(), Vec::new());
        let (mut cancelled, mut waiting) = (Vec::new(), Vec::new());
        for (call, reply) in calls {
            match call {
                Call::Put(record) => {
                    changes.push(K::put(record));
                    replies.push((reply, true));
                }
                Call::Cancel(key) => {
                    cancelled.push(key);
                    waiting.push(reply);
                }
            }
        }
        if !cancelled.is_empty() {
            for (found, reply) in keeper.get(&cancelled)?.into_iter().zip(waiting) {
                replies.push((reply, found.is_some()));
                changes.extend(found.map(|pending| keeper.end(pending, End::Cancelled, wall())));
            }
        }
        keeper.commit(wall(), changes)?;
        for (reply, is_done) in replies {
            // A client that was stopped does not listen.
            let _ = reply.send(is_done);
        }
    }
    Ok(())
}
