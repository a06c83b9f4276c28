//! [`Shard`]: one engine over one store, without a thread and without a clock.

pub(crate) mod health;
pub(crate) mod inbox;

use std::sync::Arc;
use std::time::Duration;

use tickwheel_engine::{
    AcquiredCursor, Answer, CallId, Effect, Engine, EngineConfig, Input, NextWake, Now, Reply, Request,
    RequestId, RoomPace, ShardId, ShardStore, Stats, Validity,
};

use tickwheel_store::QueueStore;

use crate::cron::calendar::{Calendar, ZoneNews};

/// An engine and its store together: inputs go in, and answers come out. Requests and replies between the engine and the store stay inside.
///
/// A driver calls [`turn`](Self::turn) with all inputs that it has: when inputs come, at the time of [`next_wake`](Self::next_wake), and
/// when the store has news. After each turn the driver takes the answers, see [`take_answers`](Self::take_answers). The thread of
/// [`Queue`](crate::Queue) is one driver, the simulator is another: both run the same code of the shard.
///
/// # Ownership
/// The store may lose the shard to another owner while the engine runs. Then the engine is dropped, together with the answers that have not
/// left, and [`is_unowned`](Self::is_unowned) is true. For calls without an answer, it is unknown whether they took effect. The driver asks
/// for the shard again with [`acquire`](Self::acquire).
#[derive(Debug)]
pub struct Shard<S> {
    id: ShardId,
    store: S,
    phase: Phase,
    /// Whether the first scan for near tasks has ended since the shard was acquired.
    serving: bool,
    config: EngineConfig,
    effects: Vec<Effect>,
    /// Answers that the driver has not taken yet.
    answers: Vec<(CallId, Answer)>,
    /// The request under way that the shard itself made, not the engine.
    own: Option<RequestId>,
    /// All requests up to this one were made by the shard itself or by an earlier engine. The present engine does not get their replies.
    earlier: RequestId,
    /// The number of the last request to the store.
    last: RequestId,
    /// How often the store has handed the shard over.
    acquired: u64,
    /// The number of replies of the store.
    replied: u64,
    /// The number of requests without a reply.
    open: u64,
    /// Whether it was unknown at the last `take_answers` if this process still owns the shard.
    in_doubt: bool,
    replies: Vec<(RequestId, Reply)>,
    /// The commit that is under way, and the time of its request (monotonic ns).
    committing: Option<(RequestId, u64)>,
    commits: CommitSeconds,
    /// The duration of the longest commit since the last call of `take_slowest`.
    slowest: Duration,
    calendar: Calendar,
    /// The counts of the engines before the present one.
    before: Stats,
}

#[derive(Debug)]
enum Phase {
    /// The shard has asked the store for ownership.
    Acquiring,
    /// The store refused to hand the shard over, for this reason.
    Refused(String),
    /// Another owner has the shard: from the start, or because the store lost the shard.
    Unowned,
    /// The engine gets the state that the last owner left in the store, page by page.
    Restoring(Box<Engine>),
    Running(Box<Engine>),
    /// The engine has stopped. The driver takes its last answers before the shard is released.
    Stopped(Box<Engine>),
    /// The shard has asked the store to release the ownership.
    Releasing(Box<Engine>),
    Released(Box<Engine>),
}

impl<S: ShardStore> Shard<S> {
    /// Makes a shard and asks the store for the ownership of shard `id`. The shard takes inputs once [`is_serving`](Self::is_serving) is
    /// true.
    #[must_use]
    pub fn new(id: ShardId, store: S, config: EngineConfig, now: Now) -> Self {
        let mut shard = Self {
            id,
            store,
            phase: Phase::Unowned,
            serving: false,
            config,
            effects: Vec::new(),
            answers: Vec::new(),
            own: None,
            earlier: RequestId(0),
            last: RequestId(0),
            acquired: 0,
            replied: 0,
            open: 0,
            in_doubt: false,
            replies: Vec::new(),
            committing: None,
            commits: CommitSeconds::default(),
            slowest: Duration::ZERO,
            calendar: Calendar::default(),
            before: Stats::default(),
        };
        shard.acquire(now);
        shard
    }

    /// Takes the offset of each time zone from UTC (s) from `offset_of`, and no rules from a database; `None`: there is no such zone. So a driver that
    /// supplies the time supplies the zones, too.
    #[must_use]
    pub fn with_offsets(mut self, offset_of: impl Fn(&str) -> Option<i32> + Send + 'static) -> Self {
        self.calendar = Calendar::with_offsets(offset_of);
        self
    }

    /// Returns the shard's number, and the number of all shards.
    #[must_use]
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// Asks the store for the shard again, if [`is_to_be_acquired`](Self::is_to_be_acquired). Otherwise does nothing.
    pub fn acquire(&mut self, now: Now) {
        if self.is_to_be_acquired() {
            self.lose();
            self.phase = Phase::Acquiring;
            self.submit_own(Request::Acquire { shard: self.id, wall: now.falls_due() });
        }
    }

    /// Whether the driver has to ask for the shard again: another owner has the shard, the store refused it, or the near tasks cannot be
    /// read.
    #[must_use]
    pub fn is_to_be_acquired(&self) -> bool {
        match &self.phase {
            Phase::Unowned | Phase::Refused(_) => true,
            Phase::Running(engine) => !self.serving && engine.failure().is_some(),
            Phase::Acquiring
            | Phase::Restoring(_)
            | Phase::Stopped(_)
            | Phase::Releasing(_)
            | Phase::Released(_) => false,
        }
    }

    /// Sends a request of the shard itself to the store. No engine runs until the reply.
    fn submit_own(&mut self, request: Request) {
        self.last.0 += 1;
        self.earlier = self.last;
        self.own = Some(self.last);
        self.open += 1;
        self.store.submit(self.last, request);
    }

    /// Applies the inputs, and carries requests and replies between engine and store until neither has more at present. The store may reply
    /// later. The answers are kept for [`take_answers`](Self::take_answers). Inputs are dropped while another owner has the shard, or the
    /// store refuses it.
    ///
    /// # Panics
    /// If `inputs` is not empty while the shard is being acquired or restored, or after its engine has stopped.
    pub fn turn(&mut self, now: Now, inputs: &mut Vec<Input>) {
        loop {
            self.store.poll(&mut self.replies);
            let quiet = self.replies.is_empty() && inputs.is_empty();
            for (request, reply) in core::mem::take(&mut self.replies) {
                self.take_reply(now, request, reply);
            }
            if matches!(self.phase, Phase::Unowned | Phase::Refused(_)) {
                inputs.clear();
            }
            for input in inputs.drain(..) {
                let Phase::Running(engine) = &mut self.phase else {
                    unreachable!("an input came while the shard was {}", self.phase.name())
                };
                engine.step(now, input, &mut self.effects);
            }
            if let Phase::Running(engine) = &mut self.phase {
                if let Some(why) = self.store.failure()
                    && engine.failure().is_none()
                {
                    engine.step(now, Input::StoreFailed { why: why.to_owned() }, &mut self.effects);
                }
                if quiet {
                    engine.step(now, Input::Wake, &mut self.effects);
                }
                self.calendar.answer(engine, now, &mut self.effects);
                engine.flush(now, &mut self.effects);
            }
            let asked = self.carry_out(now);
            if quiet && !asked {
                self.serving |= self.is_loaded();
                return;
            }
        }
    }

    /// Looks the zones of cron expressions up again. If rules have changed, the next turn has to give the engine
    /// [`Input::ZonesChanged`].
    pub(crate) fn look_at_zones(&mut self) -> ZoneNews {
        self.calendar.look_again()
    }

    /// Looks the zones of cron expressions up again, and returns those with other rules than before. The next turn has to give the engine
    /// [`Input::ZonesChanged`] with them.
    pub fn changed_zones(&mut self) -> Vec<Arc<str>> {
        self.look_at_zones().changed
    }

    /// Appends the answers that may leave to `answers`. Returns whether the driver should call [`turn`](Self::turn) again at once.
    ///
    /// While it is unknown if the shard is still owned, the answers are kept. If the shard was lost, the answers are dropped. If the engine
    /// has stopped, its last answers are taken first, and then the release of the shard is requested.
    pub fn take_answers(&mut self, answers: &mut Vec<(CallId, Answer)>) -> bool {
        let validity = self.store.validity();
        self.in_doubt = validity == Validity::InDoubt;
        match validity {
            Validity::Valid => answers.append(&mut self.answers),
            Validity::InDoubt => return false,
            Validity::Lost => self.lose(),
        }
        match core::mem::replace(&mut self.phase, Phase::Acquiring) {
            Phase::Stopped(engine) => {
                self.submit_own(Request::Release { ownership: engine.ownership() });
                self.phase = Phase::Releasing(engine);
                true
            }
            phase => {
                self.phase = phase;
                false
            }
        }
    }

    /// Drops the engine, because its memory may be wrong by now, and all answers that have not left.
    fn lose(&mut self) {
        match &self.phase {
            Phase::Running(engine) | Phase::Stopped(engine) => {
                self.before = engine.totals();
                self.phase = Phase::Unowned;
            }
            // The engine has counted nothing yet.
            Phase::Restoring(_) => self.phase = Phase::Unowned,
            Phase::Acquiring | Phase::Refused(_) | Phase::Unowned => {}
            // All answers of the engine have left, and a release is under way or done. The next owner has an epoch of its own, so nothing
            // is lost.
            Phase::Releasing(_) | Phase::Released(_) => return,
        }
        self.serving = false;
        self.in_doubt = false;
        self.effects.clear();
        self.answers.clear();
        self.committing = None;
        self.open = 0;
        self.earlier = self.last;
    }

    /// Carries out the effects of the engine. Returns whether a request was sent to the store.
    fn carry_out(&mut self, now: Now) -> bool {
        let mut asked = false;
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Request { id, request } => {
                    asked = true;
                    // Each engine numbers its requests from 1. The shard numbers them on from those before.
                    self.last = RequestId(self.earlier.0 + id.0);
                    if matches!(request, Request::Commit { .. }) {
                        self.committing = Some((self.last, now.mono_ns));
                    }
                    self.open += 1;
                    self.store.submit(self.last, request);
                }
                Effect::Answer { call, answer } => self.answers.push((call, answer)),
                Effect::Ask { .. } => unreachable!("the calendar has answered all that was asked"),
                Effect::Stopped => {
                    let phase = core::mem::replace(&mut self.phase, Phase::Acquiring);
                    let Phase::Running(engine) = phase else {
                        unreachable!("only a running engine stops, not one that is {}", phase.name())
                    };
                    self.phase = Phase::Stopped(engine);
                }
            }
        }
        asked
    }

    fn take_reply(&mut self, now: Now, request: RequestId, reply: Reply) {
        self.replied += 1;
        if self.own == Some(request) || request > self.earlier {
            self.open = self.open.saturating_sub(1);
        }
        if self.own == Some(request) {
            self.own = None;
            return self.own_replied(now, reply);
        }
        if request <= self.earlier {
            return;
        }
        if matches!(reply, Reply::Fenced) {
            return self.lose();
        }
        if let Some((id, since_ns)) = self.committing
            && id == request
        {
            self.committing = None;
            let took = Duration::from_nanos(now.mono_ns.saturating_sub(since_ns));
            self.commits.count(took);
            self.slowest = self.slowest.max(took);
        }
        if let Phase::Running(engine) = &mut self.phase {
            let request = RequestId(request.0 - self.earlier.0);
            engine.step(now, Input::Store { request, reply }, &mut self.effects);
        }
    }

    fn own_replied(&mut self, now: Now, reply: Reply) {
        let phase = core::mem::replace(&mut self.phase, Phase::Acquiring);
        self.phase = match (phase, reply) {
            (Phase::Acquiring, Reply::Acquired(mut acquired)) => {
                self.acquired += 1;
                let next = acquired.page.next.take();
                let mut engine = Engine::new(self.config.clone(), acquired, now);
                engine.count_on(&self.before);
                self.restored(Box::new(engine), next)
            }
            (Phase::Restoring(mut engine), Reply::AcquiredPage(mut page)) => {
                let next = page.next.take();
                engine.restore(now, page);
                self.restored(engine, next)
            }
            (Phase::Acquiring | Phase::Restoring(_), Reply::Held | Reply::Fenced) => Phase::Unowned,
            (Phase::Acquiring | Phase::Restoring(_), Reply::Failed { why }) => Phase::Refused(why),
            // The shard was lost while the request was under way.
            (Phase::Unowned, _) => Phase::Unowned,
            // If the store has failed or another owner has the shard, the release has no effect. The next owner reads what is durable.
            (Phase::Releasing(engine), Reply::Released | Reply::Failed { .. } | Reply::Fenced) => {
                Phase::Released(engine)
            }
            (phase, reply) => {
                unreachable!("the store answered {reply:?} while the shard was {}", phase.name())
            }
        };
    }

    /// Returns the next phase after the engine has taken a page: the engine runs, or the shard asks the store for the next page.
    fn restored(&mut self, engine: Box<Engine>, next: Option<AcquiredCursor>) -> Phase {
        let Some(after) = next else { return Phase::Running(engine) };
        self.submit_own(Request::AcquiredPage { after });
        Phase::Restoring(engine)
    }

    /// Returns when time alone will next change something.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        self.running().map_or_else(NextWake::default, Engine::next_wake)
    }

    /// Whether the driver should give inputs to the shard: the engine runs, and the first scan for near tasks has ended.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.serving && self.is_running()
    }

    /// Whether it was unknown at the last [`take_answers`](Self::take_answers) if the shard is still owned. Answers wait meanwhile.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Whether another owner has the shard, or had it when the store was last asked.
    #[must_use]
    pub fn is_unowned(&self) -> bool {
        matches!(self.phase, Phase::Unowned)
    }

    /// Returns how often the store has handed the shard over.
    pub(crate) fn acquired(&self) -> u64 {
        self.acquired
    }

    /// Whether the engine runs and its first scan for near tasks has ended.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.running().is_some_and(Engine::is_loaded)
    }

    /// Whether the engine runs, so that it can take inputs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running().is_some()
    }

    /// Whether the engine runs and nothing is under way except waiting calls.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.answers.is_empty() && self.running().is_some_and(Engine::is_idle)
    }

    /// Returns why the store refused to hand the shard over; `None` if the store did not refuse.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        if let Phase::Refused(why) = &self.phase { Some(why) } else { None }
    }

    /// Whether the store has released the shard, so that a stop is complete.
    #[must_use]
    pub fn is_released(&self) -> bool {
        matches!(self.phase, Phase::Released(_))
    }

    /// Returns the engine once it runs, also after it has stopped; `None` before, and after the shard was lost.
    #[must_use]
    pub fn engine(&self) -> Option<&Engine> {
        match &self.phase {
            Phase::Running(engine)
            | Phase::Stopped(engine)
            | Phase::Releasing(engine)
            | Phase::Released(engine) => Some(engine),
            Phase::Acquiring | Phase::Refused(_) | Phase::Unowned | Phase::Restoring(_) => None,
        }
    }

    /// Returns the store, for drivers that inspect it.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns the store, to pin its files or to check its lock.
    pub(crate) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Whether the engine wants [`Input::LookForRoom`] several times a second.
    #[must_use]
    pub fn asks_for_room(&self) -> bool {
        self.running().and_then(Engine::room_pace) == Some(RoomPace::Fast)
    }

    /// Returns the engine while it takes inputs; `None` before it runs and after it has stopped.
    pub(crate) fn running(&self) -> Option<&Engine> {
        match &self.phase {
            Phase::Running(engine) => Some(engine),
            Phase::Acquiring
            | Phase::Refused(_)
            | Phase::Unowned
            | Phase::Restoring(_)
            | Phase::Stopped(_)
            | Phase::Releasing(_)
            | Phase::Released(_) => None,
        }
    }

    /// Returns how many replies the store has given.
    pub(crate) fn replied(&self) -> u64 {
        self.replied
    }

    /// Whether the store has to answer a request.
    pub(crate) fn has_open_requests(&self) -> bool {
        self.open > 0
    }

    /// Returns the request of the commit under way; `None` if no commit is under way.
    pub(crate) fn committing(&self) -> Option<RequestId> {
        self.committing.map(|(request, _)| request)
    }

    /// Returns when the commit under way was requested (monotonic ns); `None` if no commit is under way.
    pub(crate) fn committing_since(&self) -> Option<u64> {
        self.committing.map(|(_, since_ns)| since_ns)
    }

    /// Returns the duration of the longest commit since the last call, and sets it back to 0.
    pub(crate) fn take_slowest(&mut self) -> Duration {
        core::mem::take(&mut self.slowest)
    }

    /// Returns how long the commits took.
    #[must_use]
    pub fn commits(&self) -> &CommitSeconds {
        &self.commits
    }
}

impl<S: QueueStore> Shard<S> {
    /// Whether the store has failed and is a database, so that an administrator may mend the cause, and the process needs no restart.
    pub(crate) fn can_be_taken_again(&self) -> bool {
        self.store.can_stall() && self.running().is_some_and(|engine| engine.failure().is_some())
    }

    /// Drops the engine of a store that has failed, so that the driver asks for the shard again.
    pub(crate) fn drop_failed(&mut self) {
        self.lose();
    }

    /// Returns how often this process lost its shards because an operator adopted the data.
    pub(crate) fn adoptions(&self) -> u64 {
        self.store.adoptions()
    }

    /// Returns why the shard is not served, although the store has not failed: the store refused the shard or cannot hand it over at
    /// present. `None`: nothing is in the way.
    pub(crate) fn waits_for(&self) -> Option<Arc<str>> {
        let refusal = self.refusal().map(Into::into);
        refusal.or_else(|| self.store.waits_for().map(Into::into))
    }
}

impl Phase {
    fn name(&self) -> &'static str {
        match self {
            Self::Acquiring => "being acquired",
            Self::Refused(_) => "refused by its store",
            Self::Unowned => "in the hands of another owner",
            Self::Restoring(_) => "being restored",
            Self::Running(_) => "running",
            Self::Stopped(_) => "stopped",
            Self::Releasing(_) => "being released",
            Self::Released(_) => "released",
        }
    }
}

/// The upper bounds of the buckets (µs). One more bucket counts the commits that are longer than the last bound.
pub const COMMIT_BOUNDS_US: [u64; 14] =
    [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 2_000_000, 10_000_000];

/// A histogram of the durations of commits, each from the request to the store until the store reported the commit as done.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CommitSeconds {
    /// The number of commits in each bucket of [`COMMIT_BOUNDS_US`], and in one more bucket for longer commits.
    pub buckets: [u64; COMMIT_BOUNDS_US.len() + 1],
    /// The sum of the durations of all commits.
    pub sum: Duration,
}

impl CommitSeconds {
    /// Returns the number of all commits.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn count(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.buckets[COMMIT_BOUNDS_US.partition_point(|&bound| bound < us)] += 1;
        self.sum += took;
    }

    /// Adds the commits of another shard.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum += other.sum;
    }
}
