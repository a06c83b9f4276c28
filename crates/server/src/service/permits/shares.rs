//! A limited number of permits. Each caller has at most its share of them.
//!
//! A call that finds no permit may wait for one. Callers take turns, and so do the calls of one caller:
//!
//! ```text
//! taken: A1 A2 A3 A4   waiting: A: A5 A6   B: B1
//! A1 is dropped   -> A5 has the permit, and B is the next caller     waiting: B: B1   A: A6
//! A2 is dropped   -> B1 has the permit                               waiting: A: A6
//! ```
//!
//! The holder of a permit may say that it makes way. Then it is told to leave as soon as a call waits that its permit
//! would help.
//!
//! Ground rule: `State` is read and written under its lock only.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::Problem;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::access::producer::Producer;
use crate::access::refusal::Refusal;

/// One caller has at most one of this many parts of the waiting calls, so that it cannot fill the line.
const LINE_SHARE: usize = 4;

/// The limits of some permits.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rules {
    /// The number of permits.
    pub(crate) max: usize,
    /// The largest number of permits of one caller.
    pub(crate) share_max: usize,
    /// The largest number of waiting calls. With 0, a call waits only for a permit that makes way.
    pub(crate) waiting_max: usize,
    /// The longest wait of a call.
    pub(crate) wait_max: Duration,
    /// The answer to a call that gets no permit.
    pub(crate) refusal: fn(Full) -> Problem,
}

/// The limit that a refused call met.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// The share of the caller, and its number of permits.
    Share(usize),
    /// The number of all permits.
    All(usize),
}

impl Full {
    /// Says what there is at most of these things, and names the option of `tickwheel serve`.
    pub(crate) fn limit_of(self, things: &str, option: &str) -> String {
        match self {
            Self::Share(max) => {
                format!("the caller has {max} {things}, which is its limit (--max-{option}-per-caller)")
            }
            Self::All(max) => format!("the server has {max} {things}, which is its limit (--max-{option})"),
        }
    }
}

/// Permits with a share for each caller. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    rules: Rules,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The permits in use.
    taken: usize,
    /// The number of waiting calls.
    waiting: usize,
    /// The callers that have permits or wait for them.
    callers: BTreeMap<Producer, OfCaller>,
    /// The callers with waiting calls by their turns; the first is next.
    line: BTreeMap<u64, Producer>,
    /// The permits whose holders make way, if they were not told to leave yet.
    make_way: BTreeMap<u64, (Producer, Arc<Notify>)>,
    /// The permits whose holders were told to leave.
    leaving: BTreeMap<u64, Producer>,
    next: u64,
}

/// The permits and the waiting calls of one caller.
#[derive(Debug, Default)]
struct OfCaller {
    taken: usize,
    /// The caller's key in the line. Without waiting calls, it has none.
    turn: u64,
    /// The waiting calls, in the order of their arrival.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
}

/// One permit, or the wait for it. Dropping it frees the permit, or ends the wait.
#[derive(Debug)]
pub(crate) struct Permit {
    id: u64,
    producer: Producer,
    leave: Arc<Notify>,
    shares: Shares,
}

impl Shares {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit. Waits a moment for it, if the rules allow one more waiting call.
    ///
    /// # Errors
    /// The refusal of the rules.
    pub(crate) async fn enter(&self, producer: Producer) -> Result<Permit, Problem> {
        let (permit, granted) = {
            let mut state = self.state();
            if !self.may_wait(&state, producer) {
                return Err(self.refusal(&state, producer));
            }
            self.ask(&mut state, producer)
        };
        match timeout(self.rules.wait_max, granted).await {
            Ok(granted) => granted.expect("a call waits until it has its permit"),
            Err(_) => return Err(self.refusal(&self.state(), producer)),
        }
        Ok(permit)
    }

    /// Takes a permit, or refuses the call without a wait.
    ///
    /// # Errors
    /// The problem of the rules: all permits are taken, or the caller has its share.
    pub(crate) fn enter_now(&self, producer: Producer) -> Result<Permit, Refusal> {
        let mut state = self.state();
        if state.taken >= self.rules.max || state.is_at_share(producer, &self.rules) {
            return Err(self.refusal(&state, producer).into());
        }
        state.count(producer);
        Ok(self.permit(&mut state, producer))
    }

    /// Waits for a permit as long as it takes.
    pub(crate) async fn take(&self, producer: Producer) -> Permit {
        let (permit, granted) = self.ask(&mut self.state(), producer);
        granted.await.expect("a call waits until it has its permit");
        permit
    }

    /// Takes a permit even if there is none.
    pub(crate) fn take_anyway(&self, producer: Producer) -> Permit {
        let mut state = self.state();
        state.count(producer);
        self.permit(&mut state, producer)
    }

    fn permit(&self, state: &mut State, producer: Producer) -> Permit {
        Permit { id: state.next(), producer, leave: Arc::default(), shares: self.clone() }
    }

    /// Takes a permit, or waits for one. The channel says when it is taken.
    fn ask(&self, state: &mut State, producer: Producer) -> (Permit, oneshot::Receiver<()>) {
        let permit = self.permit(state, producer);
        let (granted, grant) = oneshot::channel();
        state.waits(permit.id, producer, granted);
        state.settle(&self.rules);
        (permit, grant)
    }

    /// Whether a further call of this producer gets a permit or may wait for one.
    fn may_wait(&self, state: &State, producer: Producer) -> bool {
        let Rules { max, waiting_max, .. } = self.rules;
        let at_share = state.is_at_share(producer, &self.rules);
        // A waiting call would have taken a free permit already.
        let has_room = state.taken < max && !at_share;
        let of_one = || state.callers.get(&producer).map_or(0, |caller| caller.waiting.len());
        let is_line_full =
            state.waiting >= waiting_max || producer.has_share() && of_one() >= waiting_max / LINE_SHARE;
        let is_helped = || state.make_way.values().any(|(other, _)| !at_share || *other == producer);
        has_room || !is_line_full || is_helped()
    }

    fn refusal(&self, state: &State, producer: Producer) -> Problem {
        let Rules { max, share_max, refusal, .. } = self.rules;
        let at_share = state.is_at_share(producer, &self.rules);
        refusal(if at_share { Full::Share(share_max) } else { Full::All(max) })
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn is_at_share(&self, producer: Producer, rules: &Rules) -> bool {
        let taken = self.callers.get(&producer).map_or(0, |caller| caller.taken);
        producer.has_share() && taken >= rules.share_max
    }

    fn count(&mut self, producer: Producer) {
        self.taken += 1;
        self.callers.entry(producer).or_default().taken += 1;
    }

    fn waits(&mut self, id: u64, producer: Producer, granted: oneshot::Sender<()>) {
        let caller = self.callers.entry(producer).or_default();
        if caller.waiting.is_empty() {
            caller.turn = id;
            self.line.insert(id, producer);
        }
        caller.waiting.insert(id, granted);
        self.waiting += 1;
    }

    /// Gives free permits to waiting calls, and tells permits that make way to leave.
    fn settle(&mut self, rules: &Rules) {
        while self.taken < rules.max {
            let mut line = self.line.values();
            let Some(&producer) = line.find(|producer| !self.is_at_share(**producer, rules)) else { break };
            self.count(producer);
            self.waiting -= 1;
            let turn = self.next();
            let caller = self.callers.get_mut(&producer).expect("it has a permit");
            let (_, granted) = caller.waiting.pop_first().expect("a caller in the line waits");
            self.line.remove(&caller.turn);
            if !caller.waiting.is_empty() {
                caller.turn = turn;
                self.line.insert(turn, producer);
            }
            // A call that has left by now drops its permit next.
            let _left = granted.send(());
        }
        if !self.make_way.is_empty() {
            self.tell_to_leave(rules);
        }
    }

    /// Tells holders that make way to leave: one for each waiting call that a permit of theirs helps. If a caller has
    /// its share, only its own permits help.
    fn tell_to_leave(&mut self, rules: &Rules) {
        let (mut at_share, mut others) = (BTreeMap::new(), 0);
        for producer in self.line.values() {
            let waiting = self.callers[producer].waiting.len();
            if self.is_at_share(*producer, rules) {
                at_share.insert(*producer, waiting);
            } else {
                others += waiting;
            }
        }
        let mut helps = |producer: &Producer| {
            let waiting = at_share.get_mut(producer).filter(|waiting| **waiting > 0).unwrap_or(&mut others);
            let helps = *waiting > 0;
            *waiting -= usize::from(helps);
            helps
        };
        for producer in self.leaving.values() {
            helps(producer);
        }
        self.make_way.retain(|id, (producer, leave)| {
            let leaves = helps(producer);
            if leaves {
                leave.notify_one();
                self.leaving.insert(*id, *producer);
            }
            !leaves
        });
    }
}

impl Permit {
    pub(crate) fn producer(&self) -> Producer {
        self.producer
    }

    /// Notes whether the holder makes way for a waiting call. If it does not any more, it need not leave, even if it was
    /// told to.
    pub(crate) fn makes_way(&self, makes_way: bool) {
        let mut state = self.shares.state();
        if !makes_way {
            state.make_way.remove(&self.id);
            if state.leaving.remove(&self.id).is_some() {
                // Takes the notice back. Another holder may get it.
                pin!(self.leave.notified()).enable();
                state.settle(&self.shares.rules);
            }
        } else if !state.leaving.contains_key(&self.id) {
            state.make_way.insert(self.id, (self.producer, Arc::clone(&self.leave)));
            state.settle(&self.shares.rules);
        }
    }

    /// Waits until the holder is told to leave.
    pub(crate) async fn leaves(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Self { id, producer, shares, .. } = self;
        let mut state = shares.state();
        let state = &mut *state;
        state.make_way.remove(id);
        state.leaving.remove(id);
        let caller = state.callers.get_mut(producer).expect("it has this permit or waits for it");
        if caller.waiting.remove(id).is_some() {
            state.waiting -= 1;
            if caller.waiting.is_empty() {
                state.line.remove(&caller.turn);
            }
        } else {
            caller.taken -= 1;
            state.taken -= 1;
        }
        if caller.taken == 0 && caller.waiting.is_empty() {
            state.callers.remove(producer);
        }
        state.settle(&shares.rules);
    }
}

#[cfg(test)]
pub(crate) mod tests;
