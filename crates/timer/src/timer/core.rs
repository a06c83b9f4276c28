//! [`Core`]: a timer without its owner, shared by the driver, the executors and the handles.
//!
//! Ground rules:
//! - The lock of `turn` is held for one turn, and never while user code runs: no body, waker, executor or drop of a task. So all of these
//!   may call the timer. Only the clock is read under it, so that the time of a turn is never before that of the previous turn.
//! - The lock of a shard may be taken while `turn` is held, never the other way round.
//! - `turning` lists the threads that run a turn by hand. Such a thread does not begin another turn inside the first. So if a body on this
//!   thread schedules a task that is due, the task waits for a later turn.

use std::sync::Arc;

use super::body::OneShot;
use super::common::Common;
use super::firing::guarded;
use super::job::{Job, RETRY};
use super::metrics::{Counts, Metrics};
use super::nap::Sleeper;
use super::shard::{self, Door, Shard};
use super::turn::{Handout, Pace, Turn};
use super::unfired::{Fate, OnClose, Unfired, UnfiredTask};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Mutex, lock};
use crate::{Executor, Follower, Monotonic, Motion};

/// The timer without its owner; see the module.
pub(crate) struct Core {
    pub(crate) common: Arc<Common>,
    shards: Box<[Arc<Shard>]>,
    turn: Mutex<Turn>,
    executor: Box<dyn Executor>,
    turning: Mutex<Vec<ThreadId>>,
    shut: AtomicBool,
}

impl Core {
    /// `shards` is a power of two.
    pub(super) fn new(common: Arc<Common>, shards: usize, executor: Box<dyn Executor>) -> Self {
        let turn = Turn::new(common.now(), common.tick_nanos, shards);
        Self {
            shards: (0..shards).map(|_| Arc::new(Shard::new(Arc::clone(&common)))).collect(),
            common,
            turn: Mutex::new(turn),
            executor,
            turning: Mutex::default(),
            shut: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Monotonic {
        self.common.now()
    }

    pub(crate) fn tick_nanos(&self) -> std::num::NonZeroU64 {
        self.common.tick_nanos
    }

    /// The shard in which the calling thread puts its requests.
    pub(crate) fn shard(&self) -> &Arc<Shard> {
        shard::of_this_thread(&self.shards)
    }

    /// The main loop of the driver's thread.
    pub(super) fn drive(&self) {
        let nap = &self.common.nap;
        while !self.shut.load(Ordering::SeqCst) {
            let mut turn = lock(&self.turn);
            let handout = turn.run(&self.shards, self.now(), Pace::Bounded);
            let rest = turn.rest();
            let more = handout.more;
            if !more {
                // The limit is stored before the lock of the turn is released. Otherwise a `close` in between could file entries that
                // `rest` does not include.
                nap.prepare(rest.until);
            }
            drop(turn);
            self.deliver(handout);
            if more {
                continue;
            }
            let called = self.shards.iter().any(|shard| shard.needs_the_driver(rest.until));
            if called || self.shut.load(Ordering::SeqCst) {
                nap.awake();
                continue;
            }
            match rest.wake {
                None => nap.sleep(None),
                Some(wake) => match wake.checked_since(self.now()) {
                    Some(left) if !left.is_zero() => nap.sleep(Some(left)),
                    _ => nap.awake(),
                },
            }
        }
    }

    fn deliver(&self, handout: Handout) {
        let Handout { jobs, wakers, .. } = handout;
        if !jobs.is_empty() {
            // If an executor drops a job or panics while it takes jobs, the timer keeps these tasks.
            guarded(|| self.executor.execute_all(&mut jobs.into_iter()));
        }
        for waker in wakers {
            guarded(|| waker.wake());
        }
    }

    /// Gives a job to the executor, on the calling thread.
    pub(crate) fn execute(&self, job: Job) {
        guarded(|| self.executor.execute(job));
    }

    /// Runs work that the executor dropped, some time later. It is never refused because the timer is full; if the timer is shut down,
    /// the work is dropped.
    pub(crate) fn hand_over_later(&self, work: impl FnOnce() + Send + 'static) {
        let later = self.now().saturating_add(RETRY);
        drop(self.shard().accept_anyway(later, OneShot::new(work)));
    }

    /// Counts a panic of user code on the executor that is no body.
    pub(crate) fn count_panicked(&self) {
        self.shard().count_panicked();
    }

    /// The sums over the whole timer.
    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // Ends are read before acceptances: see the rules of `Shard`.
        for shard in &self.shards {
            shard.add_ends(&mut counts);
        }
        for shard in &self.shards {
            shard.add_accepted(&mut counts);
        }
        counts
    }

    pub(super) fn pending(&self) -> usize {
        usize::try_from(self.counts().pending()).unwrap_or(usize::MAX)
    }

    pub(super) fn metrics(&self) -> Metrics {
        let refused = self.common.refused.load(Ordering::Relaxed);
        Metrics::new(self.counts(), refused, self.common.lateness.as_ref().map(|lateness| lateness.read()))
    }

    /// See [`Timer::shutdown`](crate::Timer::shutdown).
    pub(super) fn shut_down(&self) -> Unfired {
        let nothing = OnClose { one_shots: Fate::Return, periodic: Fate::Return };
        let unfired = self.end(Door::Shut, nothing);
        self.shut.store(true, Ordering::SeqCst);
        // With a manual clock there is no thread to wake, and the next move of the clock finds no entries.
        self.common.nap.wake();
        unfired
    }

    /// See [`Timer::close`](crate::Timer::close).
    pub(super) fn close(&self, on_close: OnClose) -> Unfired {
        let door = match on_close.periodic {
            Fate::Run => Door::Closing,
            Fate::Return => Door::ClosingOnce,
        };
        self.end(door, on_close)
    }

    /// Closes the shards and returns the tasks that are not to run.
    fn end(&self, door: Door, on_close: OnClose) -> Unfired {
        for shard in &self.shards {
            shard.close(door);
        }
        let mut returned = Vec::new();
        let mut wakers = Vec::new();
        let mut turn = lock(&self.turn);
        let mut all = turn.drain();
        let mut unseen = Vec::new();
        for shard in &self.shards {
            shard.empty(&mut unseen);
        }
        all.extend(unseen.into_iter().flatten());
        for entry in all {
            let fate = if entry.body.is_periodic() { on_close.periodic } else { on_close.one_shots };
            if fate == Fate::Run {
                turn.restore(entry);
            } else if let Some(deadline) = entry.word.give_back() {
                entry.home.count_returned();
                match entry.body.waiter() {
                    Some(waiter) => wakers.extend(waiter.take_waker()),
                    None => returned.extend(entry.body.take().map(|task| UnfiredTask::new(deadline, task))),
                }
            }
        }
        drop(turn);
        for waker in wakers {
            guarded(|| waker.wake());
        }
        // An entry that stays may be due before the driver's wake-up.
        self.common.nap.wake();
        returned.sort_by_key(UnfiredTask::deadline);
        Unfired::new(returned)
    }

    /// Registers this timer with its clock, and returns how the clock moves.
    pub(super) fn follow(self: &Arc<Self>) -> Motion {
        let follower: Arc<dyn Follower> = Arc::clone(self) as Arc<dyn Follower>;
        let motion = match &self.common.clock {
            super::common::Source::System(_) => Motion::Real,
            super::common::Source::Other(clock) => clock.follow(Arc::downgrade(&follower)),
        };
        if motion == Motion::ByHand {
            self.common.nap.belongs_to(Sleeper::ByHand(Arc::downgrade(&follower)));
            self.rest_by_hand();
        }
        motion
    }

    /// After this call, a thread that schedules a task that is due already runs the turn itself.
    fn rest_by_hand(&self) {
        let tick_nanos = self.common.tick_nanos;
        let begun = Monotonic::from_tick(self.now().floor_ticks(tick_nanos), tick_nanos);
        self.common.nap.raise(begun.just_after());
    }
}

impl Follower for Core {
    /// Runs a turn by hand: hands over everything that is due.
    fn moved(&self) {
        let me = thread::current().id();
        {
            let mut turning = lock(&self.turning);
            if turning.contains(&me) {
                return;
            }
            turning.push(me);
        }
        loop {
            let now = self.now();
            // The limit is raised before the turn, as a driver does before it sleeps. So an entry that comes in after the turn has read
            // the shards finds the new limit.
            self.rest_by_hand();
            let handout = lock(&self.turn).run(&self.shards, now, Pace::All);
            self.deliver(handout);
            if self.now() <= now {
                break;
            }
            // A body on this thread moved the clock. That call ran no turn, so this loop runs another one.
        }
        lock(&self.turning).retain(|thread| *thread != me);
    }

    fn next(&self) -> Option<Monotonic> {
        // A thread that is running a turn cannot run another one inside it. So a stop for due entries would never end.
        if lock(&self.turning).contains(&thread::current().id()) {
            return None;
        }
        lock(&self.turn).next(&self.shards, self.now())
    }
}
