//! [`Push`]: the targets of a queue's process, each with its runner.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use tickwheel_api::TargetState;
use tickwheel_queue::{Queue, QueueName};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::attempts::Attempts;
use crate::dispatch::Plan;
use crate::figures::Figures;
use crate::hands::Hands;
use crate::outcome::Outcome;
use crate::runner::{FromOutside, Runner, Wish};
use crate::sink::Sink;

/// The targets of the queues of one process. Cheap to clone; all clones are one.
///
/// A queue with a target needs no worker: its tasks are leased, sent, and settled by what the other side answers. Workers may lease from the
/// same queue at the same time.
///
/// All methods must be called within a runtime of tokio. When the last clone is dropped, all targets stop, each within its time-out.
///
/// ```
/// use std::sync::Arc;
/// use tickwheel_push::{Attempt, Message, Outcome, Push, Sink, Target};
/// use tickwheel_queue::{Put, Queue, QueueName};
///
/// /// Writes each message to the standard output.
/// struct Print;
///
/// impl Sink for Print {
///     fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
///         Box::pin(async {
///             println!("{} is due", message.leased.key.as_str());
///             Outcome::Delivered.into()
///         })
///     }
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let queue = Queue::options().open_memory()?;
/// let (push, _notices) = Push::new(&queue);
/// let close = QueueName::new("close")?;
/// push.set(&close, Target::new(Arc::new(Print)));
/// queue.put(Put::without_key(&close)).await?;
/// push.stop(std::time::Duration::from_secs(10)).await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Push {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Queue,
    targets: Mutex<BTreeMap<QueueName, Running>>,
    /// The counts of all targets of a kind, also of those that were taken away.
    kinds: Mutex<BTreeMap<&'static str, Arc<Figures>>>,
    /// No target begins any more.
    is_stopped: AtomicBool,
    notices: mpsc::UnboundedSender<Notice>,
    /// The lock is held while a call moves the virtual clock.
    clock: tokio::sync::Mutex<()>,
}

/// A target that runs.
struct Running {
    wish: watch::Sender<Wish>,
    /// Takes the senders over which the runner answers as soon as nothing is under way.
    asks: mpsc::UnboundedSender<oneshot::Sender<u64>>,
    shown: Arc<Shown>,
    runner: JoinHandle<()>,
}

/// The other side of a queue, and how messages are sent to it.
#[derive(Clone)]
pub struct Target {
    /// How messages are sent.
    pub plan: Plan,
    /// The other side.
    pub sink: Arc<dyn Sink>,
    /// The word for the kind of the other side, for figures: `webhook`.
    pub kind: &'static str,
    /// Why nothing is sent at first; `None`: messages are sent.
    pub paused: Option<Pause>,
}

impl Target {
    /// Returns a target with the default plan and the kind `other`.
    #[must_use]
    pub fn new(sink: Arc<dyn Sink>) -> Self {
        Self { plan: Plan::default(), sink, kind: "other", paused: None }
    }
}

/// Why nothing is sent to a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pause {
    /// An operator paused the target.
    Paused,
    /// The target is disabled for this reason, until an operator resumes it.
    Disabled(Arc<str>),
}

/// A target as others see it.
#[derive(Clone, Debug)]
pub struct TargetView {
    /// The word for the kind of the other side.
    pub kind: &'static str,
    /// The state.
    pub state: TargetState,
    /// When the target came into this state. For `open` and `half_open`: when it first opened, since it was last closed.
    pub since: Instant,
    /// When the next message is tried, if the state is open.
    pub next_try: Option<Instant>,
    /// Whether the target itself asked for the wait until `next_try`.
    pub is_silence_asked: bool,
    /// The number of messages that are being sent.
    pub in_flight: usize,
    /// The largest number of messages that may be sent at one time now. It is less than the target's settings say after the target has failed.
    pub limit: usize,
    /// The reason of the last failure since the last success, or why the target is disabled.
    pub reason: Option<Arc<str>>,
    /// The counts.
    pub figures: Arc<Figures>,
    /// The last attempts.
    pub attempts: Arc<Attempts>,
    /// The tasks in hand.
    pub hands: Arc<Hands>,
}

/// A change of the state of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The queue.
    pub queue: QueueName,
    /// The state from now on.
    pub state: TargetState,
    /// The reason, if the change has one.
    pub reason: Option<Arc<str>>,
}

impl Push {
    /// Returns the targets of this queue, none at first, and the changes of their states as they happen. The changes need not be read.
    #[must_use]
    pub fn new(queue: &Queue) -> (Self, mpsc::UnboundedReceiver<Notice>) {
        let (notices, receiver) = mpsc::unbounded_channel();
        let (targets, kinds, clock) = Default::default();
        let is_stopped = AtomicBool::new(false);
        let shared = Shared { queue: queue.clone(), targets, kinds, is_stopped, notices, clock };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Gives a queue a target, in place of the one that it has. Messages that are under way to the old one are settled first, within its
    /// time-out. After [`stop`](Self::stop) a call does nothing.
    pub fn set(&self, queue: &QueueName, target: Target) {
        let Target { plan, sink, kind, paused } = target;
        let mut targets = self.shared.targets();
        // The flag changes under the same lock.
        if self.shared.is_stopped.load(Ordering::Relaxed) {
            return;
        }
        let before = targets.remove(queue).map(|running| running.stop(None));
        let old = before.as_ref().map(|(shown, _)| Arc::clone(shown));
        let of_kind = Arc::clone(self.shared.kinds().entry(kind).or_default());
        let shown = Shown::new(queue.clone(), kind, of_kind, self.shared.notices.clone(), old.as_deref());
        let shown = Arc::new(shown);
        let first = if paused.is_some() { Wish::Pause } else { Wish::Run };
        shown.pause(paused);
        let (wish, wishes) = watch::channel(first);
        let (asks, asked) = mpsc::unbounded_channel();
        let from_outside = FromOutside { wishes, asks: asked };
        let our_queue = self.shared.queue.clone();
        let runner = Runner::new(our_queue, queue.clone(), plan, sink, Arc::clone(&shown), from_outside);
        let runner = tokio::spawn(async move {
            if let Some((_, runner)) = before {
                // A runner that panicked has ended, too.
                let _ = runner.await;
            }
            runner.run().await;
        });
        targets.insert(queue.clone(), Running { wish, asks, shown, runner });
    }

    /// Pauses a target: nothing more is leased. Messages under way are settled. Returns whether the queue has a target.
    pub fn pause(&self, queue: &QueueName, why: Pause) -> bool {
        self.change(queue, Some(why))
    }

    /// Ends a pause, or enables a target that was disabled. Returns whether the queue has a target.
    pub fn resume(&self, queue: &QueueName) -> bool {
        self.change(queue, None)
    }

    fn change(&self, queue: &QueueName, pause: Option<Pause>) -> bool {
        let targets = self.shared.targets();
        let Some(running) = targets.get(queue) else { return false };
        let wish = if pause.is_some() { Wish::Pause } else { Wish::Run };
        running.shown.pause(pause);
        // A runner that has ended takes no wish: its queue is closed.
        let _ = running.wish.send(wish);
        true
    }

    /// Takes the target of a queue away. The future is ready when its messages under way are settled, at the latest after its time-out; they
    /// are settled also if the future is dropped.
    pub fn remove(&self, queue: &QueueName) -> impl Future<Output = ()> + Send + 'static {
        let removed = self.shared.targets().remove(queue).map(|running| running.stop(None));
        async move {
            if let Some((_, runner)) = removed {
                let _ = runner.await;
            }
        }
    }

    /// Asks each target for the number of messages that it has begun. An answer comes when nothing is under way.
    pub(crate) fn ask_all(&self) -> Vec<oneshot::Receiver<u64>> {
        let ask = |running: &Running| {
            let (asker, answer) = oneshot::channel();
            // A runner that has ended drops the asker with the channel.
            let _ = running.asks.send(asker);
            answer
        };
        self.shared.targets().values().map(ask).collect()
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.shared.queue
    }

    pub(crate) fn clock(&self) -> &tokio::sync::Mutex<()> {
        &self.shared.clock
    }

    /// Returns a target as others see it; `None`: the queue has none.
    #[must_use]
    pub fn view(&self, queue: &QueueName) -> Option<TargetView> {
        self.shared.targets().get(queue).map(|running| running.shown.view())
    }

    /// Returns all targets, in the order of the names of their queues.
    #[must_use]
    pub fn views(&self) -> Vec<(QueueName, TargetView)> {
        self.shared.targets().iter().map(|(queue, running)| (queue.clone(), running.shown.view())).collect()
    }

    /// Returns the counts of all targets of each kind, also of those that were taken away, since the start.
    #[must_use]
    pub fn kinds(&self) -> Vec<(&'static str, Arc<Figures>)> {
        self.shared.kinds().iter().map(|(kind, figures)| (*kind, Arc::clone(figures))).collect()
    }

    /// Stops all targets for good, and returns when the messages under way are settled, at the latest after `grace` or the longest time-out of a
    /// target. A message that is not settled by then is given back; the other side may have got it.
    pub async fn stop(&self, grace: Duration) {
        let before = Some(Instant::now() + grace);
        let all: Vec<_> = {
            let mut targets = self.shared.targets();
            self.shared.is_stopped.store(true, Ordering::Relaxed);
            let all = std::mem::take(&mut *targets).into_values();
            all.map(|running| running.stop(before)).collect()
        };
        for (_, runner) in all {
            let _ = runner.await;
        }
    }
}

impl Running {
    fn stop(self, before: Option<Instant>) -> (Arc<Shown>, JoinHandle<()>) {
        // A runner that has ended takes no wish.
        let _ = self.wish.send(Wish::Stop(before));
        (self.shown, self.runner)
    }
}

impl Shared {
    fn kinds(&self) -> MutexGuard<'_, BTreeMap<&'static str, Arc<Figures>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn targets(&self) -> MutexGuard<'_, BTreeMap<QueueName, Running>> {
        // Each change is one step, so that a panic leaves nothing half done.
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The facts of a target that others see. Its runner writes them.
pub(crate) struct Shown {
    queue: QueueName,
    kind: &'static str,
    of_kind: Arc<Figures>,
    notices: mpsc::UnboundedSender<Notice>,
    state: Mutex<State>,
    figures: Arc<Figures>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) hands: Arc<Hands>,
}

#[derive(Clone)]
struct State {
    pause: Option<Pause>,
    /// When others saw this state first.
    since: Instant,
    progress: Progress,
}

/// How far a runner is.
#[derive(Clone)]
pub(crate) struct Progress {
    /// The state of the breaker: closed, open or half open.
    pub(crate) breaker: TargetState,
    /// When an open breaker lets a message through.
    pub(crate) next_try: Option<Instant>,
    /// Whether the target asked for the wait until then.
    pub(crate) is_silence_asked: bool,
    pub(crate) in_flight: usize,
    pub(crate) limit: usize,
    /// The reason of the last failure since the last success.
    pub(crate) failure: Option<Arc<str>>,
}

impl State {
    fn shown(&self) -> (TargetState, Option<Arc<str>>) {
        let Progress { breaker, failure, .. } = &self.progress;
        match &self.pause {
            None => (*breaker, failure.clone()),
            Some(Pause::Paused) => (TargetState::Paused, failure.clone()),
            Some(Pause::Disabled(reason)) => (TargetState::Disabled, Some(Arc::clone(reason))),
        }
    }
}

impl Shown {
    /// A target that is changed keeps the attempts and the tasks in hand of `before`, and its counts if the kind is the same.
    fn new(
        queue: QueueName,
        kind: &'static str,
        of_kind: Arc<Figures>,
        notices: mpsc::UnboundedSender<Notice>,
        before: Option<&Self>,
    ) -> Self {
        let progress = Progress {
            breaker: TargetState::Closed,
            next_try: None,
            is_silence_asked: false,
            in_flight: 0,
            limit: 0,
            failure: None,
        };
        let state = State { pause: None, since: Instant::now(), progress };
        let figures = before.filter(|before| before.kind == kind);
        let figures = figures.map(|before| Arc::clone(&before.figures)).unwrap_or_default();
        let attempts = before.map(|before| Arc::clone(&before.attempts)).unwrap_or_default();
        let hands = before.map(|before| Arc::clone(&before.hands)).unwrap_or_default();
        Self { queue, kind, of_kind, notices, state: Mutex::new(state), figures, attempts, hands }
    }

    /// Counts an attempt. `late_ms`: the time from the due time to the confirmation, if there was one.
    pub(crate) fn count(&self, outcome: &Outcome, took: Duration, late_ms: Option<u64>) {
        self.figures.count(outcome, took, late_ms);
        self.of_kind.count(outcome, took, late_ms);
    }

    fn pause(&self, pause: Option<Pause>) {
        self.change(|state| state.pause = pause);
    }

    /// Takes in that the other side wants no messages any more.
    pub(crate) fn disable(&self, reason: &Arc<str>) {
        self.change(|state| state.pause = Some(Pause::Disabled(Arc::clone(reason))));
    }

    pub(crate) fn update(&self, progress: Progress) {
        self.change(|state| state.progress = progress);
    }

    /// Changes the state, and gives notice if others see another one.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, _) = state.shown();
        change(&mut state);
        let (after, reason) = state.shown();
        if before != after {
            // While a target fails, the probes change its state. The outage began when it first opened.
            let fails = |state| matches!(state, TargetState::Open | TargetState::HalfOpen);
            if !(fails(before) && fails(after)) {
                state.since = Instant::now();
            }
            // A program that does not read the notices has dropped the receiver.
            let _ = self.notices.send(Notice { queue: self.queue.clone(), state: after, reason });
        }
    }

    fn view(&self) -> TargetView {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (shown, reason) = state.shown();
        let Progress { next_try, is_silence_asked, in_flight, limit, .. } = state.progress;
        let is_open = shown == TargetState::Open;
        TargetView {
            kind: self.kind,
            state: shown,
            since: state.since,
            next_try: next_try.filter(|_| is_open),
            is_silence_asked: is_silence_asked && is_open,
            in_flight,
            limit,
            reason,
            figures: Arc::clone(&self.figures),
            attempts: Arc::clone(&self.attempts),
            hands: Arc::clone(&self.hands),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_begins_when_the_target_first_opens() {
        let (notices, _receiver) = mpsc::unbounded_channel();
        let shown = Shown::new(QueueName::new("q").expect("a name"), "other", Arc::default(), notices, None);
        let age = |state| {
            shown.change(|shown| shown.progress.breaker = state);
            shown.view().since.elapsed().as_secs()
        };
        assert_eq!(age(TargetState::Open), 0);
        for expected in [10, 20, 30] {
            tokio::time::advance(Duration::from_secs(10)).await;
            let state = if expected == 20 { TargetState::HalfOpen } else { TargetState::Open };
            assert_eq!(age(state), expected);
        }
        assert_eq!(age(TargetState::Closed), 0);
    }
}
