//! [`Runner`]: the I/O around one [`Dispatcher`]. It makes the calls of the queue, sends messages over a sink, and tells the dispatcher what
//! came of it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_queue::{
    Ack, Extend, Lease, Leased, Nack, Pending, Queue, QueueName, Token, TokenAnswer, Unavailable,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::attempts::AttemptRecord;
use crate::dispatch::{BreakerState, Dispatcher, Effect, Plan, SendNo, Sending};
use crate::hands::SharedDispatcher;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::push::{Progress, Shown, TargetState};
use crate::sink::{Report, Sink};
use crate::worker;

/// The longest wait of a lease call.
const LEASE_WAIT: Duration = Duration::from_secs(20);
/// The largest number of attempts whose ends are taken before other events are looked at.
const ENDS_MAX: usize = 64;
/// The pause after a lease call that the queue refused, for example because another process has the shard.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// An order to a runner from outside.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Lease and send.
    Run,
    /// Lease nothing more.
    Pause,
    /// Lease nothing more, settle what is under way within the target's time-out and before this instant, and end.
    Stop(Option<Instant>),
}

/// The channels over which a runner is spoken to from outside.
pub(crate) struct FromOutside {
    pub(crate) wishes: watch::Receiver<Wish>,
    /// Each gets the number of messages that were begun, as soon as nothing is under way.
    pub(crate) asks: mpsc::UnboundedReceiver<oneshot::Sender<u64>>,
}

/// The I/O around one dispatcher.
pub(crate) struct Runner {
    queue: Queue,
    name: QueueName,
    sink: Arc<dyn Sink>,
    dispatcher: SharedDispatcher,
    timeout: Duration,
    shown: Arc<Shown>,
    wishes: watch::Receiver<Wish>,
    asks: mpsc::UnboundedReceiver<oneshot::Sender<u64>>,
    /// Questions that wait until nothing is under way.
    askers: Vec<oneshot::Sender<u64>>,
    /// The number of messages that were begun.
    begun_total: u64,
    lease: Option<LeaseCall>,
    sends: JoinSet<(Report, Sent)>,
    numbers: HashMap<Id, SendNo>,
    /// Calls of the queue whose answers are awaited.
    calls: JoinSet<Called>,
}

/// The end of a call of the queue.
enum Called {
    /// The end of these leases was answered or refused.
    Settled(Vec<Token>),
    Extended(SendNo, TokenAnswer),
    /// An extension was refused, which says nothing about the lease.
    ExtensionRefused(SendNo),
}

/// A lease call under way. Dropping it gives back what it has leased.
type LeaseCall = Pin<Box<dyn Future<Output = Result<Vec<Leased>, Unavailable>> + Send>>;

/// The facts of an attempt that ended.
struct Sent {
    message: Message,
    took: Duration,
}

/// An attempt that ended.
type Ended = Result<(Id, (Report, Sent)), JoinError>;

/// The next event of a runner.
enum Event {
    Leased(Result<Vec<Leased>, Unavailable>),
    Sent(Ended),
    Extended(SendNo, TokenAnswer),
    ExtensionRefused(SendNo),
    Settled(Vec<Token>),
    Wish(Wish),
    Asked(oneshot::Sender<u64>),
    Time,
}

impl Runner {
    pub(crate) fn new(
        queue: Queue,
        name: QueueName,
        plan: Plan,
        sink: Arc<dyn Sink>,
        shown: Arc<Shown>,
        from_outside: FromOutside,
    ) -> Self {
        let FromOutside { wishes, asks } = from_outside;
        let dispatcher = SharedDispatcher::new(Dispatcher::new(plan));
        shown.hands.add(&dispatcher);
        let runner = Self {
            queue,
            name,
            sink,
            dispatcher,
            timeout: Duration::from_millis(plan.timeout_ms),
            shown,
            wishes,
            asks,
            askers: Vec::new(),
            begun_total: 0,
            lease: None,
            sends: JoinSet::new(),
            numbers: HashMap::new(),
            calls: JoinSet::new(),
        };
        runner.show();
        runner
    }

    /// Runs until it is told to stop, or until the queue is closed.
    pub(crate) async fn run(mut self) {
        let mut stop_at = None;
        let begun = match *self.wishes.borrow_and_update() {
            Wish::Run => self.dispatcher.lock().pass_time(0),
            Wish::Pause | Wish::Stop(_) => self.dispatcher.lock().pause(0),
        };
        self.carry_out(begun);
        if matches!(*self.wishes.borrow(), Wish::Stop(_)) {
            stop_at = Some(Instant::now());
        }
        while stop_at.is_none() || !self.dispatcher.lock().is_idle() || !self.calls.is_empty() {
            let event = self.next(stop_at).await;
            let now_ms = self.now_ms();
            let effects = match event {
                Event::Leased(Ok(tasks)) => self.dispatcher.lock().leased(now_ms, tasks),
                Event::Leased(Err(Unavailable::Closed)) => break,
                Event::Leased(Err(_)) => self.dispatcher.lock().lease_refused(now_ms),
                Event::Sent(ended) => self.sent(now_ms, ended),
                Event::Extended(no, answer) => self.dispatcher.lock().extended(now_ms, no, answer),
                Event::ExtensionRefused(no) => self.dispatcher.lock().extension_refused(now_ms, no),
                Event::Settled(tokens) => self.dispatcher.lock().settled(now_ms, &tokens),
                Event::Wish(Wish::Run) => self.dispatcher.lock().resume(now_ms),
                Event::Wish(Wish::Pause) => self.dispatcher.lock().pause(now_ms),
                Event::Wish(Wish::Stop(before)) => {
                    let whole = Instant::now() + self.timeout;
                    stop_at = Some(before.map_or(whole, |before| before.min(whole)));
                    self.dispatcher.lock().pause(now_ms)
                }
                Event::Asked(asker) => {
                    self.askers.push(asker);
                    Vec::new()
                }
                Event::Time if stop_at.is_some_and(|at| at <= Instant::now()) => {
                    self.sends.abort_all();
                    self.dispatcher.lock().give_up(now_ms)
                }
                Event::Time => self.dispatcher.lock().pass_time(now_ms),
            };
            self.carry_out(effects);
            // Under load, several attempts end at a time. To take them here is cheaper than to wait for each with all other events.
            for _ in 0..ENDS_MAX {
                let Some(ended) = self.sends.try_join_next_with_id() else { break };
                let effects = self.sent(self.now_ms(), ended);
                self.carry_out(effects);
            }
            self.show();
            if self.dispatcher.lock().is_settled() && self.calls.is_empty() {
                for asker in self.askers.drain(..) {
                    // A caller that has gone needs no answer.
                    let _ = asker.send(self.begun_total);
                }
            }
        }
    }

    /// Waits for the next event.
    async fn next(&mut self, stop_at: Option<Instant>) -> Event {
        let now_ms = self.now_ms();
        let wake = self
            .dispatcher
            .lock()
            .next_wake(now_ms)
            .map(|ms| self.dispatcher.began + Duration::from_millis(ms));
        let wake = [wake, stop_at.filter(|_| !self.dispatcher.lock().is_idle())].into_iter().flatten().min();
        let lease = async {
            match &mut self.lease {
                Some(call) => call.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = self.wishes.changed(), if stop_at.is_none() => {
                // Without a sender no wish can come any more, so the runner ends.
                let wish = if changed.is_ok() { *self.wishes.borrow_and_update() } else { Wish::Stop(None) };
                Event::Wish(wish)
            }
            Some(ended) = self.sends.join_next_with_id() => Event::Sent(ended),
            Some(called) = self.calls.join_next() => match called {
                Ok(Called::Settled(tokens)) => Event::Settled(tokens),
                Ok(Called::Extended(no, answer)) => Event::Extended(no, answer),
                Ok(Called::ExtensionRefused(no)) => Event::ExtensionRefused(no),
                Err(_) => Event::Time,
            },
            tasks = lease => {
                self.lease = None;
                Event::Leased(tasks)
            }
            () = until(wake) => Event::Time,
            // The last branch: tasks that were leased before the question count as under way.
            Some(asker) = self.asks.recv() => Event::Asked(asker),
        }
    }

    /// Makes the calls and begins the attempts, in the order of the effects.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        let lease_ms = self.dispatcher.lock().lease_ms();
        for effect in effects {
            match effect {
                Effect::Lease { max } => {
                    let lease = Lease::new(&self.name).max(max).lasting(Duration::from_millis(lease_ms));
                    let lease = Lease { worker: Some(worker::own()), for_target: true, ..lease };
                    self.lease = Some(Box::pin(leased(self.queue.lease(lease, LEASE_WAIT))));
                }
                Effect::DropLease => self.lease = None,
                Effect::Send(sending) => self.send(sending),
                Effect::Ack(tokens) => {
                    let answers = self.queue.ack(Ack { queue: self.name.clone(), tokens: tokens.clone() });
                    self.calls.spawn(settled(tokens, answers));
                }
                Effect::Nack { token, how, at_least_ms, reason } => {
                    let nack = Nack::new(&self.name, [token]);
                    let nack = Nack { how, at_least_ms, reason: Some(reason), ..nack };
                    self.calls.spawn(settled(vec![token], self.queue.nack(nack)));
                }
                Effect::GiveBack(tokens) => self.queue.give_back(tokens),
                Effect::Extend { no, token } => {
                    let lease = Duration::from_millis(lease_ms);
                    let answers = self.queue.extend(Extend::new(&self.name, [token], lease));
                    self.calls.spawn(async move {
                        let answer = answers.await.ok().and_then(|answers| answers.first().copied());
                        answer.map_or(Called::ExtensionRefused(no), |answer| Called::Extended(no, answer))
                    });
                }
                Effect::Disable { reason } => self.shown.disable(&reason),
            }
        }
    }

    fn send(&mut self, sending: Sending) {
        let Sending { no, leased, attempt, is_last } = sending;
        let (sent_at, instance) = (self.queue.now(), self.queue.instance());
        let message = Message { leased, attempt, is_last, sent_at, instance };
        let sink = Arc::clone(&self.sink);
        self.begun_total += 1;
        let begun = Instant::now();
        let handle = self.sends.spawn(async move {
            let report = sink.send(&message).await;
            (report, Sent { message, took: begun.elapsed() })
        });
        self.numbers.insert(handle.id(), no);
    }

    /// Takes in how an attempt ended.
    fn sent(&mut self, now_ms: u64, ended: Ended) -> Vec<Effect> {
        let (id, outcome) = match ended {
            Ok((id, (report, sent))) => {
                self.note(&report, sent);
                (id, report.outcome)
            }
            Err(error) => (error.id(), Outcome::task_failed("the sink panicked")),
        };
        let no = self.numbers.remove(&id).expect("each attempt has a number");
        self.dispatcher.lock().sent(now_ms, no, &outcome)
    }

    /// Counts and remembers an attempt.
    fn note(&self, report: &Report, sent: Sent) {
        let Sent { message, took } = sent;
        let leased = &message.leased;
        let is_confirmed = report.outcome == Outcome::Delivered;
        let late_ms = is_confirmed.then(|| self.queue.now().ms_since(leased.due_at));
        self.shown.count(&report.outcome, took, late_ms);
        self.shown.attempts.add(AttemptRecord {
            key: leased.key.clone(),
            id: leased.id,
            attempt: message.attempt,
            at: message.sent_at,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            outcome: report.outcome.name(),
            status: report.status,
            reason: report.outcome.reason().cloned(),
            answer: report.answer.clone(),
        });
    }

    /// Shows the state to others.
    fn show(&self) {
        let now_ms = self.now_ms();
        let dispatcher = self.dispatcher.lock();
        let breaker = dispatcher.breaker();
        self.shown.update(Progress {
            breaker: match breaker.state(now_ms) {
                BreakerState::Closed => TargetState::Closed,
                BreakerState::Open => TargetState::Open,
                BreakerState::HalfOpen => TargetState::HalfOpen,
            },
            next_try: breaker.opens_until(now_ms).map(|ms| self.dispatcher.began + Duration::from_millis(ms)),
            is_silence_asked: dispatcher.is_silence_asked(now_ms),
            in_flight: dispatcher.sending(),
            limit: breaker.limit(now_ms),
            failure: dispatcher.last_failure().cloned(),
        });
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.dispatcher.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Waits for the answer of a lease call. The answer of a call that was refused comes after a pause, because the next call follows it at once.
async fn leased(answer: Pending<Vec<Leased>, Unavailable>) -> Result<Vec<Leased>, Unavailable> {
    let answer = answer.await;
    if answer.as_ref().is_err_and(|refused| *refused != Unavailable::Closed) {
        sleep(REFUSED_PAUSE).await;
    }
    answer
}

/// Waits for the answer of a call that ends leases. If the queue refuses the call, the leases end by themselves.
async fn settled<E: From<Unavailable>>(tokens: Vec<Token>, answers: Pending<Vec<TokenAnswer>, E>) -> Called {
    let _ = answers.await;
    Called::Settled(tokens)
}

/// Waits until an instant; `None`: for ever.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
