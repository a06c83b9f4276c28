//! The shard thread: takes calls and the time in, sends answers out, and decides nothing about tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwheel_engine::{Answer, CallId, Command, Input, QueueName, Unavailable};
use tickwheel_store::QueueStore;

use crate::advance::{Advance, AdvanceError, Next};
use crate::backup::Pin;
use crate::health::Shared;
use crate::message::{Delivered, Message};
use crate::shard::Shard;
use crate::time::Time;
use crate::watch::Watch;

/// Before a turn, the thread takes messages until it has this many inputs: enough for a full write batch. Tasks become ready and leases end
/// in each turn, so a flood of calls delays them by one turn at most.
const CALLS_PER_TURN: usize = 4_096;

/// The name of the thread that owns the engine. A panic on this thread ends the queue: calls under way are answered with
/// [`Indeterminate`](Unavailable::Indeterminate), later calls with [`Closed`](Unavailable::Closed). A server should then end its whole
/// process.
pub const SHARD_THREAD: &str = "tickwheel-shard";

/// The time between two requests for a shard that this process does not own.
const ACQUIRE_AGAIN: Duration = Duration::from_millis(500);

pub(crate) struct Driver<S> {
    shard: Shard<S>,
    time: Arc<Mutex<Time>>,
    messages: Receiver<Message>,
    /// Every answer gets a clone of this sender. If the answer reaches no caller, the clone sends the delivered tasks back to this thread.
    back: Sender<Message>,
    shared: Arc<Shared>,
    /// Calls under way: where their answers go, and for a waiting lease call the instant at which it stops waiting.
    replies: BTreeMap<CallId, (oneshot::Sender<Delivered>, Option<Instant>)>,
    /// The lease calls that wait until an instant, in the order of these instants.
    waits: BTreeSet<(Instant, CallId)>,
    inputs: Vec<Input>,
    answers: Vec<(CallId, Answer)>,
    /// The number of users of each queue. A new engine gets these numbers, because the store does not keep them.
    uses: BTreeMap<QueueName, u64>,
    /// When the driver last asked for a shard that was lost; `None` again once the shard serves.
    unowned_since: Option<Instant>,
    advance: Option<Advance>,
    watch: Watch,
    stopping: bool,
}

impl<S: QueueStore> Driver<S> {
    pub(crate) fn new(
        shard: Shard<S>,
        time: Arc<Mutex<Time>>,
        messages: Receiver<Message>,
        back: Sender<Message>,
        shared: Arc<Shared>,
        watch: Watch,
    ) -> Self {
        Self {
            shard,
            time,
            messages,
            back,
            shared,
            replies: BTreeMap::new(),
            waits: BTreeSet::new(),
            inputs: Vec::new(),
            answers: Vec::new(),
            uses: BTreeMap::new(),
            unowned_since: None,
            advance: None,
            watch,
            stopping: false,
        }
    }

    /// Runs the shard until a stop is complete. Called once, on the shard thread.
    pub(crate) fn run(mut self) {
        wake_on_time();
        while !self.is_over() {
            self.look_after_ownership();
            if self.shard.is_serving() {
                self.wait_for_messages();
            } else {
                // The shard is not owned, or is being acquired, loaded or released. Calls are refused meanwhile.
                self.wait_for_store();
            }
            self.end_waits();
            self.look_after_store();
            self.turn();
            self.go_on_advancing();
        }
        while let Ok(message) = self.messages.try_recv() {
            self.postpone(message);
        }
    }

    /// Whether the driver has nothing left to do: the shard was released, or it would have to be acquired again although the driver wants
    /// to stop.
    fn is_over(&self) -> bool {
        self.shard.is_released() || self.stopping && self.shard.is_to_be_acquired()
    }

    fn turn(&mut self) {
        let now = self.lock_time().now();
        loop {
            self.shard.turn(now, &mut self.inputs);
            let again = self.shard.take_answers(&mut self.answers);
            self.send_answers();
            if !again {
                break;
            }
        }
        let (clock, changes) = {
            let mut time = self.lock_time();
            (time.clock_status(), time.take_changes())
        };
        self.shared.update(&self.shard, clock);
        self.watch.tell(&mut self.shard, changes, now.mono_ns, Instant::now());
    }

    fn send_answers(&mut self) {
        for (call, answer) in self.answers.drain(..) {
            if let Some((reply, until)) = self.replies.remove(&call) {
                if let Some(until) = until {
                    self.waits.remove(&(until, call));
                }
                // If the caller has gone, its `Delivered` is dropped and gives the delivered tasks back.
                let _ = reply.send(Delivered::new(answer, self.back.clone()));
            }
        }
    }

    /// If the shard was lost: ends all calls, and asks for the shard again. Once the shard serves again: tells the new engine of a stop,
    /// and of the users of the queues.
    fn look_after_ownership(&mut self) {
        if self.shard.is_to_be_acquired() {
            let now = Instant::now();
            if self.unowned_since.is_none_or(|since| now >= since + ACQUIRE_AGAIN) {
                // A caller whose reply channel is dropped learns that the outcome of its call is unknown.
                self.replies.clear();
                self.waits.clear();
                self.unowned_since = Some(now);
                let time = self.lock_time().now();
                self.shard.acquire(time);
            }
        } else if self.unowned_since.is_some() && self.shard.is_serving() {
            self.unowned_since = None;
            self.inputs.extend(self.stopping.then_some(Input::Stop));
            for (queue, count) in &self.uses {
                let begins = (0..*count).map(|_| Input::Use { queue: queue.clone() });
                self.inputs.extend(begins);
            }
        }
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
    }

    fn wait_for_store(&mut self) {
        if let Ok(message) = self.messages.recv_timeout(Duration::from_millis(100)) {
            self.postpone(message);
        }
    }

    /// Handles a message that comes while the engine takes no inputs. Refuses calls and moves of the clock. Notes the users of queues
    /// and a stop. Carries out pins. Ignores other messages.
    fn postpone(&mut self, message: Message) {
        match message {
            Message::Call { command, reply, .. } => {
                let is_over = self.stopping || self.shard.is_released();
                let why = if is_over { Unavailable::Closed } else { Unavailable::Unowned };
                self.refuse(&command, reply, why);
            }
            Message::Use(queue) => self.begin_use(queue),
            Message::Leave(queue) => self.end_use(&queue),
            Message::Pin(pin) => self.carry_out(pin),
            Message::EndWait(_) | Message::Undelivered(_) | Message::Store => {}
            Message::Advance(advance) if self.stopping || self.shard.is_released() => advance.closed(),
            Message::Advance(advance) => advance.refuse(AdvanceError::Unavailable(Unavailable::Unowned)),
            Message::Stop => self.stopping = true,
        }
    }

    fn wait_for_messages(&mut self) {
        let wake = self.shard.next_wake();
        let wait = self.lock_time().wait(wake);
        let mut wait = wait.min(self.watch.wait(&self.shard, Instant::now()));
        if let Some(&(until, _)) = self.waits.first() {
            wait = wait.min(until.saturating_duration_since(Instant::now()));
        }
        if !self.inputs.is_empty() || self.advance_can_go_on() {
            wait = Duration::ZERO;
        }
        let Ok(message) = self.messages.recv_timeout(wait) else { return };
        self.take(message);
        while self.inputs.len() < CALLS_PER_TURN
            && let Ok(message) = self.messages.try_recv()
        {
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            // No answer is sent while the ownership is in doubt, and the doubt can last without limit. So the call is refused now.
            Message::Call { command, reply, .. } if self.shard.is_in_doubt() => {
                self.refuse(&command, reply, Unavailable::Unowned);
            }
            Message::Call { call, command, wait, reply } => {
                let waits = !wait.is_zero() && matches!(*command, Command::Lease(_));
                // A wait whose end is beyond the range of the clock has no end.
                let until = if waits { Instant::now().checked_add(wait) } else { None };
                self.waits.extend(until.map(|until| (until, call)));
                self.replies.insert(call, (reply, until));
                self.inputs.push(Input::Call { call, command: *command });
            }
            Message::EndWait(call) => self.inputs.push(Input::EndWait { call }),
            Message::Undelivered(tokens) => self.inputs.push(Input::Undelivered { tokens }),
            Message::Use(queue) => {
                self.begin_use(queue.clone());
                self.inputs.push(Input::Use { queue });
            }
            Message::Leave(queue) => {
                self.end_use(&queue);
                self.inputs.push(Input::Leave { queue });
            }
            Message::Advance(advance) if self.stopping => advance.closed(),
            Message::Advance(advance) => self.take_advance(advance),
            Message::Pin(pin) => self.carry_out(pin),
            Message::Store => {}
            Message::Stop => {
                self.stopping = true;
                if let Some(advance) = self.advance.take() {
                    advance.closed();
                }
                self.inputs.push(Input::Stop);
            }
        }
    }

    fn refuse(&self, command: &Command, reply: oneshot::Sender<Delivered>, why: Unavailable) {
        let _gone = reply.send(Delivered::new(command.unavailable(why), self.back.clone()));
    }

    fn carry_out(&mut self, pin: Pin) {
        let now = self.lock_time().stamp();
        pin.carry_out(self.shard.store_mut().backup(), now);
    }

    fn begin_use(&mut self, queue: QueueName) {
        *self.uses.entry(queue).or_default() += 1;
    }

    fn end_use(&mut self, queue: &QueueName) {
        if let Some(count) = self.uses.get_mut(queue) {
            *count -= 1;
            if *count == 0 {
                self.uses.remove(queue);
            }
        }
    }

    fn take_advance(&mut self, advance: Advance) {
        if !self.lock_time().is_virtual() {
            advance.refuse(AdvanceError::NotVirtual);
        } else if self.advance.is_some() {
            advance.refuse(AdvanceError::Busy);
        } else {
            self.advance = Some(advance);
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

    fn advance_can_go_on(&self) -> bool {
        self.advance.is_some() && self.shard.is_idle()
    }

    /// Does the next step of a move of a virtual clock, if the shard is idle: moves the clock to its next wake, lets the engine write the
    /// time down, or tells the caller that the clock has arrived.
    fn go_on_advancing(&mut self) {
        if !self.advance_can_go_on() {
            return;
        }
        let Some(mut advance) = self.advance.take() else { return };
        let mut time = self.time.lock().expect("no thread panics while it holds the time");
        let now = time.now();
        let fired_total = self.shard.engine().map_or(0, |engine| engine.fired_total());
        match advance.next(now, self.shard.next_wake(), fired_total) {
            Next::Move(by) => {
                time.advance(by);
                self.inputs.push(Input::Wake);
            }
            Next::WriteDown => self.inputs.push(Input::NoteTime),
            Next::Arrived => return advance.answer(Ok(now.wall)),
        }
        self.advance = Some(advance);
    }

    fn lock_time(&self) -> std::sync::MutexGuard<'_, Time> {
        self.time.lock().expect("no thread panics while it holds the time")
    }
}

/// Lets this thread wake on time. By default the kernel may let a thread sleep 50 µs longer than it asked for, to wake several threads at
/// once. Callers wait for this thread, so it must not sleep longer.
fn wake_on_time() {
    // If the system refuses, the thread only wakes up to 50 µs later.
    #[cfg(target_os = "linux")]
    let _as_it_was = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
}

impl<S> Drop for Driver<S> {
    fn drop(&mut self) {
        // This code runs also when the thread panics. From then on, the queue's health shows that the queue is not ready.
        self.shared.closed();
    }
}
