//! [`Driver`]: takes calls and the time in for one shard, sends answers out, and decides nothing about tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwheel_engine::{Answer, CallId, Command, Engine, Input, NextWake, QueueName, Unavailable};
use tickwheel_store::QueueStore;

use super::mailbox::{Delivered, Mailbox, Signal};
use super::patience::Patience;
use super::reply::Reply;
use super::retry::Retry;
use super::watch::Watch;
use crate::clock::time::Time;
use crate::shard::Shard;
use crate::shard::health::Shared;
use crate::shard::inbox::InboxCalls;

/// The time between two requests for a shard that this process does not own.
const ACQUIRE_AGAIN: Duration = Duration::from_millis(500);
/// The time between two turns of a shard that takes no inputs: it is not owned, or is being acquired, loaded or released.
const TURN_WITHOUT_INPUTS: Duration = Duration::from_millis(100);
/// A stop waits this long for a store that does not get on, such as a database that does not answer, or does not hand the shard over. Calls that
/// were not answered by then have an unknown outcome.
const STOP_WITHOUT_STORE: Duration = Duration::from_secs(5);

/// Drives one shard. The thread of the shard hands calls and signals over with [`call`](Self::call) and
/// [`receive`](Self::receive), and calls [`turn`](Self::turn) after them,
/// and at the latest at the end of [`time_left`](Self::time_left).
pub(crate) struct Driver<S> {
    shard: Shard<S>,
    time: Arc<Mutex<Time>>,
    /// Every answer gets a clone of the shard's mailbox. If the answer reaches no caller, the clone sends the delivered tasks back.
    back: Mailbox,
    shared: Arc<Shared>,
    /// Calls under way.
    replies: BTreeMap<CallId, Waiting>,
    /// Calls whose callers were told that the outcome is unknown. Their answers may still come.
    abandoned: BTreeSet<CallId>,
    /// The lease calls that wait until an instant, in the order of these instants.
    waits: BTreeSet<(Instant, CallId)>,
    inputs: Vec<Input>,
    answers: Vec<(CallId, Answer)>,
    /// The number of users of each queue. A new engine gets these numbers, because the store does not keep them.
    uses: BTreeMap<QueueName, u64>,
    /// Whether the next engine that serves has to be told of a stop and of the users of the queues.
    is_lost: bool,
    /// When the driver last asked for a shard that was lost.
    asked: Option<Instant>,
    retry: Retry,
    inbox: InboxCalls,
    watch: Watch,
    patience: Patience,
    stopping: bool,
    /// Since when a stop waits for a store that does not get on.
    stuck_since: Option<Instant>,
    /// Whether a stop has waited for the store long enough.
    given_up: bool,
    /// When the next turn has to be, if no message comes before; `None`: at once.
    turn_at: Option<Instant>,
}

/// A call under way.
struct Waiting {
    /// Where the answer goes.
    reply: Reply<Delivered>,
    /// When the call came; `None`: the store cannot stall.
    since: Option<Instant>,
    wait: Wait,
}

/// How long a call wants to wait for tasks.
#[derive(Copy, Clone)]
enum Wait {
    No,
    Until(Instant),
    WithoutEnd,
}

impl<S: QueueStore> Driver<S> {
    pub(crate) fn new(
        shard: Shard<S>,
        time: Arc<Mutex<Time>>,
        back: Mailbox,
        shared: Arc<Shared>,
        inbox: InboxCalls,
        watch: Watch,
    ) -> Self {
        let patience = Patience::new(&shard);
        let is_serving = shard.is_serving();
        Self {
            shard,
            time,
            back,
            shared,
            replies: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            waits: BTreeSet::new(),
            inputs: Vec::new(),
            answers: Vec::new(),
            uses: BTreeMap::new(),
            is_lost: !is_serving,
            asked: None,
            retry: Retry::default(),
            inbox,
            watch,
            patience,
            stopping: false,
            stuck_since: None,
            given_up: false,
            turn_at: None,
        }
    }

    /// Whether the driver has nothing left to do: the shard was released, or the driver wants to stop and the shard would have to be
    /// acquired again, or its store has not got on for long.
    pub(crate) fn is_over(&self) -> bool {
        self.shard.is_released() || self.given_up || self.stopping && self.shard.is_to_be_acquired()
    }

    /// Whether the shard is stopping or has stopped, so that later calls are refused.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping || self.shard.is_released()
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.shard.is_serving()
    }

    /// Whether nothing is under way except waiting calls.
    pub(crate) fn is_idle(&self) -> bool {
        self.inputs.is_empty() && self.shard.is_idle()
    }

    /// Returns when time alone will next change something in the shard.
    pub(crate) fn next_wake(&self) -> NextWake {
        self.shard.next_wake()
    }

    /// Returns how many tasks became ready because their due time came, since this process first had the shard.
    pub(crate) fn fired_total(&self) -> u64 {
        self.shard.engine().map_or(0, Engine::fired_total)
    }

    /// Returns the time from `now` until the next turn.
    pub(crate) fn time_left(&self, now: Instant) -> Duration {
        self.turn_at.map_or(Duration::ZERO, |turn_at| turn_at.saturating_duration_since(now))
    }

    /// Gives the shard an input in the next turn, which has to be at once.
    pub(crate) fn push(&mut self, input: Input) {
        self.inputs.push(input);
        self.turn_at = None;
    }

    /// Takes a call. The next turn has to be at once.
    pub(crate) fn call(
        &mut self,
        call: CallId,
        command: Box<Command>,
        wait: Duration,
        reply: Reply<Delivered>,
    ) {
        self.turn_at = None;
        let since = self.patience.now();
        if let Some(why) = self.refusal(&command, since) {
            reply.send(Delivered::new(command.unavailable(why), self.back.clone()));
            return;
        }
        let wait = match !wait.is_zero() && matches!(*command, Command::Lease(_)) {
            false => Wait::No,
            // A wait whose end is beyond the range of the clock has no end.
            true => Instant::now().checked_add(wait).map_or(Wait::WithoutEnd, Wait::Until),
        };
        if let Wait::Until(until) = wait {
            self.waits.insert((until, call));
        }
        self.replies.insert(call, Waiting { reply, since, wait });
        self.inputs.push(Input::Call { call, command: *command });
    }

    /// Returns why the shard takes no such call now; `None`: it takes the call.
    fn refusal(&self, command: &Command, since: Option<Instant>) -> Option<Unavailable> {
        let is_serving = self.shard.is_serving();
        if !is_serving && self.is_stopping() {
            return Some(Unavailable::Closed);
        }
        // No answer is sent while the ownership is in doubt, and the doubt can last without limit. So the call is refused now.
        if !is_serving || self.shard.is_in_doubt() {
            let waits_for = self.shard.waits_for();
            return Some(waits_for.map_or(Unavailable::Unowned, |why| Unavailable::Late { why }));
        }
        let waited = self.patience.late(command.needs_store(), since?)?.as_secs();
        let why = format!("the store has not confirmed a commit for {waited} s{}", self.cause());
        Some(Unavailable::Late { why: why.into() })
    }

    /// Takes a signal. The next turn has to be at once. A shard that takes no inputs learns of the users of queues and of a stop later, see
    /// [`look_after_ownership`](Self::look_after_ownership).
    pub(crate) fn receive(&mut self, signal: Signal) {
        self.turn_at = None;
        let input = match signal {
            Signal::EndWait(call) => Input::EndWait { call },
            Signal::Undelivered(tokens) => Input::Undelivered { tokens },
            Signal::Use(queue) => {
                *self.uses.entry(queue.clone()).or_default() += 1;
                Input::Use { queue }
            }
            Signal::Leave(queue) => {
                self.end_use(&queue);
                Input::Leave { queue }
            }
            Signal::Pin(pin) => {
                let now = self.lock_time().stamp();
                return pin.carry_out(self.shard.store_mut().backup(), now);
            }
            Signal::Store => return,
            Signal::Stop => {
                self.stopping = true;
                Input::Stop
            }
        };
        if self.shard.is_serving() {
            self.inputs.push(input);
        }
    }

    /// Gives the shard a turn with the inputs that have come, and sends its answers.
    pub(crate) fn turn(&mut self) {
        self.end_waits();
        self.look_after_store();
        let now = self.lock_time().now();
        loop {
            self.shard.turn(now, &mut self.inputs);
            let again = self.shard.take_answers(&mut self.answers);
            self.send_answers();
            if !again && !self.take_rows() {
                break;
            }
        }
        let (clock, changes, note) = {
            let mut time = self.lock_time();
            (time.clock_status(), time.take_changes(), time.note())
        };
        let (has_changed, after) = (!changes.is_empty(), Instant::now());
        self.watch.note_clock(&mut self.shard, note, (has_changed, self.stopping), after);
        self.shared.update(&self.shard, clock, self.inbox.refused_total());
        self.watch.tell(&mut self.shard, changes, now.mono_ns, after);
        self.look_after_calls();
        self.look_after_stop();
        self.look_after_ownership();
        self.turn_at = Instant::now().checked_add(self.wait());
    }

    /// Returns how long the shard can wait for a message.
    fn wait(&self) -> Duration {
        if !self.inputs.is_empty() {
            return Duration::ZERO;
        }
        if self.stopping || !self.shard.is_serving() {
            return TURN_WITHOUT_INPUTS;
        }
        let wait = self.lock_time().wait(self.shard.next_wake());
        let now = Instant::now();
        let wait = wait.min(self.watch.wait(&self.shard, now));
        let first = self.waits.first();
        first.map_or(wait, |(until, _)| wait.min(until.saturating_duration_since(now)))
    }

    fn send_answers(&mut self) {
        for (call, answer) in self.answers.drain(..) {
            if let Some(Waiting { reply, wait, .. }) = self.replies.remove(&call) {
                if let Wait::Until(until) = wait {
                    self.waits.remove(&(until, call));
                }
                // If the caller has gone, its `Delivered` is dropped and gives the delivered tasks back.
                reply.send(Delivered::new(answer, self.back.clone()));
            } else if self.abandoned.remove(&call) {
                drop(Delivered::new(answer, self.back.clone()));
            } else {
                self.inbox.answered(&mut self.shard, call, answer);
            }
        }
    }

    /// Abandons the calls that have waited long for a store that makes no progress. Their callers learn that the outcome is unknown, and for
    /// which cause. A call that waits for tasks without end goes on waiting.
    fn look_after_calls(&mut self) {
        let Some(now) = self.patience.now() else { return };
        self.patience.look(&self.shard, now);
        let Some(limit) = self.patience.of_calls(self.shard.is_in_doubt(), now) else { return };
        let is_over = |waiting: &Waiting| {
            let from = match waiting.wait {
                Wait::No => waiting.since,
                Wait::Until(until) => Some(until),
                Wait::WithoutEnd => None,
            };
            from.is_some_and(|from| now.saturating_duration_since(from) >= limit)
        };
        let over: Vec<_> = self.replies.extract_if(.., |_, waiting| is_over(waiting)).collect();
        if over.is_empty() {
            return;
        }
        let waited = limit.as_secs();
        let why: Arc<str> =
            format!("the store did not confirm the call within {waited} s{}", self.cause()).into();
        for (call, Waiting { reply, .. }) in over {
            reply.send(Delivered::unknown(Arc::clone(&why), self.back.clone()));
            self.abandoned.insert(call);
        }
    }

    /// Returns for what the shard waits, in brackets behind a space; empty: nothing is known to be in the way.
    fn cause(&self) -> String {
        self.shard.waits_for().map_or_else(String::new, |why| format!(" ({why})"))
    }

    /// Gives a stop up if the store does not get on: another owner may take the shard, and no answer can leave.
    fn look_after_stop(&mut self) {
        let is_on_the_way = !self.shard.is_serving() && self.shard.store().can_stall();
        let lacks_descriptor = self.shard.store().lacks_descriptor();
        let waits =
            self.shard.is_in_doubt() || self.shard.waits_for().is_some() || is_on_the_way || lacks_descriptor;
        let is_stuck = self.stopping && waits;
        if !is_stuck {
            self.stuck_since = None;
            return;
        }
        let now = Instant::now();
        let since = *self.stuck_since.get_or_insert(now);
        self.given_up |= now.duration_since(since) >= STOP_WITHOUT_STORE;
    }

    /// Makes calls of the rows in the inbox of the store. Returns whether there are any, and the next turn has to be at once.
    fn take_rows(&mut self) -> bool {
        self.shard.is_serving() && !self.stopping && self.inbox.begin(&mut self.shard, &mut self.inputs)
    }

    /// If the shard was lost: ends all calls, and asks for the shard again. Once the shard serves again: tells the new engine of a stop,
    /// and of the users of the queues.
    fn look_after_ownership(&mut self) {
        if !self.stopping && self.shard.can_be_taken_again() && self.retry.is_over(Instant::now()) {
            self.shard.drop_failed();
        }
        if self.is_over() {
            self.forget_calls();
        } else if self.shard.is_to_be_acquired() {
            let now = Instant::now();
            if self.asked.is_none_or(|asked| now >= asked + ACQUIRE_AGAIN) {
                self.forget_calls();
                (self.is_lost, self.asked) = (true, Some(now));
                let time = self.lock_time().now();
                self.shard.acquire(time);
            }
        } else if self.is_lost && self.shard.is_serving() {
            self.is_lost = false;
            self.inputs.extend(self.stopping.then_some(Input::Stop));
            for (queue, count) in &self.uses {
                let begins = (0..*count).map(|_| Input::Use { queue: queue.clone() });
                self.inputs.extend(begins);
            }
        }
    }

    /// Forgets all calls under way. Their callers learn that the outcome is unknown, and for which cause.
    fn forget_calls(&mut self) {
        let what = match self.is_stopping() {
            true => "the queue ended before it answered the call",
            false => "this process lost the shard of the queue before it answered the call",
        };
        let why: Arc<str> = format!("{what}{}", self.cause()).into();
        for (_, Waiting { reply, .. }) in core::mem::take(&mut self.replies) {
            reply.send(Delivered::unknown(Arc::clone(&why), self.back.clone()));
        }
        self.abandoned.clear();
        self.waits.clear();
        self.inbox.forget();
    }

    /// Lets the store check its lock, and lets the engine ask for the free bytes, each at its own pace. The store has no clock of its own.
    fn look_after_store(&mut self) {
        if !self.shard.is_serving() {
            return;
        }
        let now = Instant::now();
        self.watch.look_at_lock(&mut self.shard, now);
        if self.watch.looks_for_room(&self.shard, now) {
            self.inputs.push(Input::LookForRoom);
        }
        let zones = self.watch.look_at_zones(&mut self.shard, now);
        if !zones.is_empty() {
            self.inputs.push(Input::ZonesChanged { zones: zones.into() });
        }
    }

    fn end_use(&mut self, queue: &QueueName) {
        if let Some(count) = self.uses.get_mut(queue) {
            *count -= 1;
            if *count == 0 {
                self.uses.remove(queue);
            }
        }
    }

    /// Ends the waits whose time is over. The time of a wait is real time, even if the queue has a virtual clock.
    fn end_waits(&mut self) {
        if !self.shard.is_serving() {
            return;
        }
        let now = Instant::now();
        while let Some(&(until, call)) = self.waits.first()
            && until <= now
        {
            self.waits.pop_first();
            self.inputs.push(Input::EndWait { call });
        }
    }

    fn lock_time(&self) -> std::sync::MutexGuard<'_, Time> {
        self.time.lock().expect("no thread panics while it holds the time")
    }
}

impl<S> Drop for Driver<S> {
    fn drop(&mut self) {
        // This code runs also when the thread panics. From then on, the queue's health shows that the queue is not ready.
        self.shared.closed();
    }
}
