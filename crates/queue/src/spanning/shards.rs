//! [`Shards`]: finds the shard of a call, and makes calls that span several shards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use tickwheel_engine::{Call, ImportTasks, Imported, Lease, Leased, QueueName, ShardId, Token, Unavailable};

use tickwheel_store::{PinnedFile, stamps_of_copy};

use super::pages::{InTurn, in_turn};
use super::sums::sum;
use super::{import, lease};
use crate::backup::{self, BackupError, BackupReport, Source};
use crate::router::Router;
use crate::shard::health::{Health, Shared};
use crate::thread::mailbox::{Caller, Signal};
use crate::thread::pending::Pending;

/// All shards of a queue.
#[derive(Debug)]
pub(crate) struct Shards {
    router: Router,
    /// In the order of their numbers; there is one at least.
    shards: Vec<ShardHandle>,
    /// The right to make a copy of all shards. The mutex is locked while a copy is made.
    copies: Mutex<()>,
}

/// One shard, as other threads see it.
#[derive(Debug)]
pub(crate) struct ShardHandle {
    pub(crate) caller: Caller,
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Source,
}

impl Shards {
    pub(crate) fn new(router: Router, shards: Vec<ShardHandle>) -> Self {
        Self { router, shards, copies: Mutex::new(()) }
    }

    pub(crate) fn router(&self) -> Router {
        self.router
    }

    pub(crate) fn all(&self) -> &[ShardHandle] {
        &self.shards
    }

    pub(crate) fn first(&self) -> &ShardHandle {
        self.shards.first().expect("a queue has a shard")
    }

    /// Returns the caller of the only shard; `None` if there are several shards.
    fn only(&self) -> Option<&Caller> {
        if let [only] = &self.shards[..] { Some(&only.caller) } else { None }
    }

    pub(crate) fn of_queue(&self, queue: &QueueName) -> &Caller {
        self.of_shard(self.router.of_queue(queue))
    }

    pub(crate) fn of_id(&self, id: u64) -> &Caller {
        self.of_shard(self.router.of_id(id))
    }

    /// Returns the caller of the shard that has the jobs.
    pub(crate) fn of_jobs(&self) -> &Caller {
        self.of_shard(self.router.of_jobs())
    }

    pub(crate) fn of_shard(&self, shard: ShardId) -> &Caller {
        &self.shards[shard.number() as usize].caller
    }

    pub(crate) fn health_of(&self, shard: ShardId) -> Health {
        self.shards[shard.number() as usize].shared.health()
    }

    fn callers(&self) -> Vec<Caller> {
        self.shards.iter().map(|shard| shard.caller.clone()).collect()
    }

    /// Makes a call on all shards, and adds their answers up. The first error is the answer, if there is one.
    pub(crate) fn of_all<C>(
        &self,
        call: C,
        add: impl FnMut(C::Answer, C::Answer) -> C::Answer + Send + 'static,
    ) -> Pending<C::Answer, C::Error>
    where
        C: Call<Answer: Send + 'static, Error: Send + 'static> + Clone,
    {
        match self.only() {
            Some(only) => only.call(call),
            None => {
                let asked = self.shards.iter().map(|shard| shard.caller.call(call.clone()));
                Pending::many(sum(asked.collect(), add))
            }
        }
    }

    /// Makes a call on one shard after the other.
    pub(crate) fn in_turn<L: InTurn>(&self, list: L) -> Pending<L::Answer, L::Error> {
        match self.only() {
            Some(only) => only.call(list),
            None => in_turn(self.callers(), list),
        }
    }

    pub(crate) fn lease(&self, lease: Lease, wait: Duration) -> Pending<Vec<Leased>, Unavailable> {
        if let Some(only) = self.only() {
            return only.lease(lease, wait);
        }
        let mut by_shard: BTreeMap<u32, Vec<QueueName>> = BTreeMap::new();
        for queue in &*lease.queues {
            by_shard.entry(self.router.of_queue(queue).number()).or_default().push(queue.clone());
        }
        let max = lease.max;
        let mut calls: Vec<_> = by_shard
            .into_iter()
            .map(|(number, queues)| {
                let caller = self.shards[number as usize].caller.clone();
                (caller, Lease { queues: queues.into(), ..lease.clone() })
            })
            .collect();
        match calls.len() {
            // No shard has a task for a call without a queue. The first one keeps the wait.
            0 => self.first().caller.lease(lease, wait),
            1 => {
                let (caller, lease) = calls.remove(0);
                caller.lease(lease, wait)
            }
            _ => lease::lease(calls, wait, max),
        }
    }

    pub(crate) fn give_back(&self, tokens: Vec<Token>) {
        let mut by_shard: BTreeMap<u32, Vec<Token>> = BTreeMap::new();
        for token in tokens {
            by_shard.entry(self.router.of_token(token).number()).or_default().push(token);
        }
        for (shard, tokens) in by_shard {
            // The shard thread may have ended. Then a stop has written the leases down.
            let _ = self.shards[shard as usize].caller.mailbox().signal(Signal::Undelivered(tokens));
        }
    }

    pub(crate) fn import(&self, import: ImportTasks) -> Pending<Imported, Unavailable> {
        match self.only() {
            Some(only) => only.call(import),
            None => import::import(&self.callers(), self.router, import),
        }
    }

    /// Makes a copy of all shards with `copy_one`, which gets the shard, the target of its copy, and files that the copy has beside those of
    /// the shard. `is_backup`: the copies have manifests.
    pub(crate) fn copy_to(
        &self,
        to: &Path,
        is_backup: bool,
        copy_one: impl Fn(&ShardHandle, &Path, &[PinnedFile]) -> Result<BackupReport, BackupError>,
    ) -> Result<BackupReport, BackupError> {
        // The copy has stamps of its own, because the folder of a shard in it is older than that of the running queue.
        let number = getrandom::u64().map_err(|error| BackupError::Io {
            op: "draw a random number for",
            path: to.to_owned(),
            source: std::io::Error::other(error.to_string()),
        })?;
        let stamps = stamps_of_copy(number);
        if let [only] = &self.shards[..] {
            return copy_one(only, to, &stamps);
        }
        let _turn = match self.copies.try_lock() {
            Ok(turn) => turn,
            // An earlier copy panicked. The panic released the lock, so another copy may begin.
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(BackupError::Busy),
        };
        let root = self.first().source.directory().and_then(Path::parent).ok_or(BackupError::InMemory)?;
        let [of_root, of_folder] = stamps;
        backup::copy_all((root, self.router), to, Some(of_root), is_backup, |shard, _, target| {
            copy_one(&self.shards[shard.number() as usize], target, std::slice::from_ref(&of_folder))
        })
    }

    /// Asks all shards to stop.
    pub(crate) fn stop(&self) {
        for shard in &self.shards {
            // The shard thread may have ended. Then the shard has stopped.
            let _gone = shard.caller.mailbox().signal(Signal::Stop);
        }
    }
}
