//! The state of a queue as other threads see it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tickwheel_engine::ShardId;
use tickwheel_store::{Durability, QueueStore};

use super::{CommitSeconds, Shard};
use crate::clock::time::ClockStatus;
use crate::panics::Panics;

/// The state of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// Whether the queue answers calls: the first scan for near tasks has ended, the shard is owned without doubt, and the queue has not
    /// closed.
    pub ready: bool,
    /// How often this process has acquired a shard since the queue was opened. If the number has grown, another process may have changed the
    /// data in between, or the store may have lost changes. In the health of several shards, this is the sum.
    pub acquired: u64,
    /// Why the queue does not answer, although nothing has failed: another process has the shard, or the database does not answer. `None`:
    /// nothing is in the way. Only a store that shares its data can wait.
    pub waits_for: Option<Arc<str>>,
    /// Why the queue takes no changes any more: the failure of the store. `None`: the store has not failed.
    pub read_only: Option<Arc<str>>,
    /// The free bytes by which tasks may still grow, while puts are refused or may soon be refused. `None`: there are enough free bytes.
    /// Acks and cancels are never refused for this reason.
    pub short_of_room: Option<u64>,
    /// Whether puts are refused because the process gets no file descriptor for the next file of the store. `short_of_room` is then 0.
    pub lacks_descriptor: bool,
    /// Which failures an acknowledged call survives.
    pub durability: Durability,
    /// Whether the queue has a virtual clock, which stands still until a call moves it.
    pub virtual_clock: bool,
    /// The number of steps of the wall clock that were noticed since the queue was opened.
    pub clock_steps: u64,
    /// How far the wall clock is ahead of the believed wall clock (ms). The number is 0 unless a step is doubted.
    pub clock_offset_ms: i64,
    /// By how much the wall clock may be ahead of the time at which tasks become due. It is 0 for a wall clock that is known exactly. If the
    /// store has the clock of its database, it is the round trip of the quickest answers: a task may be late by as much.
    pub clock_width: Duration,
    /// A text about what the recovery at the opening left out: a torn tail of the log, or a damaged checkpoint. `None`: everything was in
    /// order.
    pub recovery: Option<Arc<str>>,
    /// The number of rows in the inbox of the store that were refused since the queue was opened. See
    /// [`Notice::RowRefused`](crate::Notice::RowRefused).
    pub rows_refused: u64,
    /// How often this process lost its shards because an operator ran `tickwheel cluster adopt`, since the queue was opened. All shards of a
    /// queue have one number.
    pub adopted: u64,
    /// How often code of the program panicked on a thread of the queue since the queue was opened: the listener to notices, or the waker of
    /// one who awaits an answer. Each panic was caught, and the panic hook has reported it. All shards of a queue have one number.
    pub panicked: u64,
}

impl Health {
    /// Returns the health of a queue with shards of these states. The queue is ready if all shards are.
    pub(crate) fn of_all(mut shards: impl Iterator<Item = Self>) -> Self {
        let first = shards.next().expect("a queue has a shard");
        shards.fold(first, |sum, shard| Self {
            ready: sum.ready && shard.ready,
            acquired: sum.acquired + shard.acquired,
            // Shards that wait mostly wait for the same.
            waits_for: if sum.waits_for == shard.waits_for {
                sum.waits_for
            } else {
                joined(sum.waits_for, shard.waits_for)
            },
            read_only: joined(sum.read_only, shard.read_only),
            short_of_room: [sum.short_of_room, shard.short_of_room].into_iter().flatten().min(),
            lacks_descriptor: sum.lacks_descriptor || shard.lacks_descriptor,
            clock_steps: sum.clock_steps.max(shard.clock_steps),
            clock_offset_ms: if sum.clock_offset_ms == 0 {
                shard.clock_offset_ms
            } else {
                sum.clock_offset_ms
            },
            clock_width: sum.clock_width.max(shard.clock_width),
            recovery: joined(sum.recovery, shard.recovery),
            rows_refused: sum.rows_refused + shard.rows_refused,
            adopted: sum.adopted.max(shard.adopted),
            ..sum
        })
    }
}

fn joined(one: Option<Arc<str>>, other: Option<Arc<str>>) -> Option<Arc<str>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one}; {other}").into()),
        (one, other) => one.or(other),
    }
}

/// The state of a shard. The shard thread writes it after each turn, and any thread may read it.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    panics: Panics,
}

#[derive(Debug)]
struct State {
    id: ShardId,
    health: Health,
    commits: CommitSeconds,
}

impl Shared {
    pub(crate) fn new(
        id: ShardId,
        durability: Durability,
        virtual_clock: bool,
        recovery: Option<Arc<str>>,
        panics: Panics,
    ) -> Self {
        let health = Health {
            ready: false,
            acquired: 0,
            waits_for: None,
            read_only: None,
            short_of_room: None,
            lacks_descriptor: false,
            durability,
            virtual_clock,
            clock_steps: 0,
            clock_offset_ms: 0,
            clock_width: Duration::ZERO,
            recovery,
            rows_refused: 0,
            adopted: 0,
            panicked: 0,
        };
        Self { state: Mutex::new(State { id, health, commits: CommitSeconds::default() }), panics }
    }

    pub(crate) fn update<S: QueueStore>(&self, shard: &Shard<S>, clock: ClockStatus, rows_refused: u64) {
        let mut state = self.lock();
        state.health.ready = shard.is_loaded() && !shard.is_in_doubt();
        state.health.acquired = shard.acquired();
        state.health.waits_for = shard.waits_for();
        state.health.adopted = shard.adoptions();
        state.health.short_of_room = shard.engine().and_then(|engine| engine.shortage());
        state.health.lacks_descriptor = shard.engine().is_some_and(|engine| engine.lacks_descriptor());
        state.health.clock_steps = clock.steps;
        state.health.clock_offset_ms = clock.offset_ms;
        state.health.clock_width = clock.width;
        state.health.read_only = shard.engine().and_then(|engine| engine.failure());
        state.health.rows_refused = rows_refused;
        state.commits = *shard.commits();
    }

    pub(crate) fn closed(&self) {
        // A panic may have poisoned the lock. The flag can be set all the same, because it depends on no other value.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.health.ready = false;
    }

    pub(crate) fn health(&self) -> Health {
        let state = self.lock();
        let mut health = Health { panicked: self.panics.count(), ..state.health.clone() };
        if state.id.count() > 1 {
            for text in [&mut health.read_only, &mut health.recovery].into_iter().flatten() {
                *text = format!("{}: {text}", state.id).into();
            }
        }
        health
    }

    pub(crate) fn commits(&self) -> CommitSeconds {
        self.lock().commits
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the health")
    }
}
