//! [`Shard`]: one engine over one store, without thread and clock.

use std::time::Duration;

use tickwheel_engine::{
    AcquiredCursor, Answer, CallId, Effect, Engine, EngineConfig, Input, NextWake, Now, Reply, Request,
    RequestId, RoomPace, ShardId, ShardStore, Validity,
};

use crate::calendar::Calendar;
use crate::commits::CommitSeconds;

/// An engine and its store, joined: inputs go in, and answers come out. The messages between the two stay inside.
///
/// A driver calls [`turn`](Self::turn) with all inputs that are there: when inputs come, when [`next_wake`](Self::next_wake) says so, or
/// when the store has something to say. After each turn it takes the answers, see [`take_answers`](Self::take_answers). The thread of
/// [`Queue`](crate::Queue) is one driver, the simulator another: both run this very code.
///
/// # Ownership
/// The store may lose the shard to another owner while the engine runs. Then the engine is dropped, together with the answers that have not
/// left, and [`is_unowned`](Self::is_unowned) is true: it is unknown whether the open calls took effect. The driver asks for the shard
/// again with [`acquire`](Self::acquire).
#[derive(Debug)]
pub struct Shard<S> {
    id: ShardId,
    store: S,
    phase: Phase,
    /// Whether all that is near has been in memory at least once since the shard was acquired.
    serving: bool,
    config: EngineConfig,
    effects: Vec<Effect>,
    /// Answers that have not left.
    answers: Vec<(CallId, Answer)>,
    /// The request of the shard itself that is under way.
    own: Option<RequestId>,
    /// Requests up to this one were made before the engine ran, or by an earlier engine. The present engine ignores their replies.
    earlier: RequestId,
    /// The last request.
    last: RequestId,
    /// Whether it is unknown now if the shard is still owned.
    in_doubt: bool,
    replies: Vec<(RequestId, Reply)>,
    /// The commit in flight, and when it was handed over (monotonic ns).
    committing: Option<(RequestId, u64)>,
    commits: CommitSeconds,
    /// The longest commit since the last call of `take_slowest`.
    slowest: Duration,
    calendar: Calendar,
}

#[derive(Debug)]
enum Phase {
    /// The store is asked for the shard.
    Acquiring,
    /// The store did not hand the shard over, for this reason.
    Refused(String),
    /// Another owner has the shard, from the start or since the store lost it.
    Unowned,
    /// The engine gets the tasks that the shard was left with, page by page.
    Restoring(Box<Engine>),
    Running(Box<Engine>),
    /// The engine has stopped. Its last answers leave before the shard is released.
    Stopped(Box<Engine>),
    /// The store is asked to close.
    Releasing(Box<Engine>),
    Released(Box<Engine>),
}

impl<S: ShardStore> Shard<S> {
    /// Asks the store for shard `id`. The engine runs once the store has answered, see [`is_serving`](Self::is_serving).
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
            in_doubt: false,
            replies: Vec::new(),
            committing: None,
            commits: CommitSeconds::default(),
            slowest: Duration::ZERO,
            calendar: Calendar::default(),
        };
        shard.acquire(now);
        shard
    }

    /// Asks the store for the shard again, if the shard was lost, was refused, or could not be loaded. Otherwise does nothing.
    pub fn acquire(&mut self, now: Now) {
        if self.is_to_be_acquired() {
            self.lose();
            self.phase = Phase::Acquiring;
            self.submit_own(Request::Acquire { shard: self.id, wall: now.wall });
        }
    }

    /// Whether the driver has to ask for the shard again: another owner has it, the store refused it, or the near tasks cannot be read.
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

    /// Makes a request of the shard itself. No engine runs meanwhile.
    fn submit_own(&mut self, request: Request) {
        self.last.0 += 1;
        self.earlier = self.last;
        self.own = Some(self.last);
        self.store.submit(self.last, request);
    }

    /// Takes the inputs, and carries requests and replies between engine and store as long as there are any. The answers are kept for
    /// [`take_answers`](Self::take_answers). Inputs that come while another owner has the shard, or the store refuses it, are dropped.
    ///
    /// # Panics
    /// If inputs come before the shard is acquired, or after it was released.
    pub fn turn(&mut self, now: Now, inputs: &mut Vec<Input>) {
        loop {
            self.store.poll(&mut self.replies);
            let quiet = self.replies.is_empty() && inputs.is_empty();
            for (request, reply) in core::mem::take(&mut self.replies) {
                self.replied(now, request, reply);
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

    /// Appends the answers that may leave. Returns whether another turn has something to do at once.
    ///
    /// An answer stays here while it is unknown whether the shard is still owned, and it is dropped if the shard was lost. The last answers
    /// of an engine that has stopped leave before the shard is released.
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

    /// Drops the engine, whose memory may be wrong by now, with everything that it was about to say.
    fn lose(&mut self) {
        match &self.phase {
            Phase::Restoring(_) | Phase::Running(_) | Phase::Stopped(_) => self.phase = Phase::Unowned,
            Phase::Acquiring | Phase::Refused(_) | Phase::Unowned => {}
            // All answers of the engine have left. The next owner has an epoch of its own.
            Phase::Releasing(_) | Phase::Released(_) => return,
        }
        self.serving = false;
        self.in_doubt = false;
        self.effects.clear();
        self.answers.clear();
        self.committing = None;
        self.earlier = self.last;
    }

    /// Carries out the engine's effects. Returns whether the store was asked for something.
    fn carry_out(&mut self, now: Now) -> bool {
        let mut asked = false;
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Request { id, request } => {
                    asked = true;
                    // Each engine counts its requests from 1.
                    self.last = RequestId(self.earlier.0 + id.0);
                    if matches!(request, Request::Commit { .. }) {
                        self.committing = Some((self.last, now.mono_ns));
                    }
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

    fn replied(&mut self, now: Now, request: RequestId, reply: Reply) {
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
                let next = acquired.page.next.take();
                let engine = Engine::new(self.config.clone(), acquired, now);
                self.restored(Box::new(engine), next)
            }
            (Phase::Restoring(mut engine), Reply::AcquiredPage(mut page)) => {
                let next = page.next.take();
                engine.restore(now, page);
                self.restored(engine, next)
            }
            (Phase::Acquiring | Phase::Restoring(_), Reply::Held | Reply::Fenced) => Phase::Unowned,
            (Phase::Acquiring | Phase::Restoring(_), Reply::Failed { why }) => Phase::Refused(why),
            // The shard was lost meanwhile.
            (Phase::Unowned, _) => Phase::Unowned,
            // If the store failed before, or another owner has the shard, the next owner reads what is durable.
            (Phase::Releasing(engine), Reply::Released | Reply::Failed { .. } | Reply::Fenced) => {
                Phase::Released(engine)
            }
            (phase, reply) => {
                unreachable!("the store answered {reply:?} while the shard was {}", phase.name())
            }
        };
    }

    /// The engine has taken a page in: now it runs, or the next page is asked for.
    fn restored(&mut self, engine: Box<Engine>, next: Option<AcquiredCursor>) -> Phase {
        let Some(after) = next else { return Phase::Running(engine) };
        self.submit_own(Request::AcquiredPage { after });
        Phase::Restoring(engine)
    }

    /// When the passing of time will next change something.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        self.running().map_or_else(NextWake::default, Engine::next_wake)
    }

    /// Whether the shard takes inputs: it is owned, and all that is near has been in memory since it was acquired.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.serving && self.is_running()
    }

    /// Whether it is unknown now if the shard is still owned. Answers wait meanwhile.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Whether another owner has the shard.
    #[must_use]
    pub fn is_unowned(&self) -> bool {
        matches!(self.phase, Phase::Unowned)
    }

    /// Whether the shard is acquired and all that is near is in memory.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.running().is_some_and(Engine::is_loaded)
    }

    /// Whether the engine runs, so that it takes inputs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running().is_some()
    }

    /// Whether nothing but waiting calls is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.answers.is_empty() && self.running().is_some_and(Engine::is_idle)
    }

    /// Why the store did not hand the shard over; `None` if it did not refuse.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        if let Phase::Refused(why) = &self.phase { Some(why) } else { None }
    }

    /// Whether the shard has been given up, so that a stop is over.
    #[must_use]
    pub fn is_released(&self) -> bool {
        matches!(self.phase, Phase::Released(_))
    }

    /// The engine, once it runs.
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

    /// The store, for drivers that inspect it.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store, to pin its files or to check its lock.
    pub(crate) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Whether the engine wants [`Input::LookForRoom`] several times a second.
    #[must_use]
    pub fn asks_for_room(&self) -> bool {
        self.running().and_then(Engine::room_pace) == Some(RoomPace::Fast)
    }

    /// The engine while it takes inputs: neither before it runs nor after it has stopped.
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

    /// Since when the commit in flight is under way (monotonic ns).
    pub(crate) fn committing_since(&self) -> Option<u64> {
        self.committing.map(|(_, since_ns)| since_ns)
    }

    /// Returns the time of the longest commit since the last call.
    pub(crate) fn take_slowest(&mut self) -> Duration {
        core::mem::take(&mut self.slowest)
    }

    /// How long commits took.
    #[must_use]
    pub fn commits(&self) -> &CommitSeconds {
        &self.commits
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
