//! The shop's side: clients that place orders, and cancel the close of paid ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_api::{Due, PayloadBody, PutBody, PutQuery, RevokeQuery};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use super::ledger::{CancelSeen, Ledger};
use super::plan::{CLOSE_AFTER, OPEN_FOR, Order, Payment};

/// The queue of closes.
pub(super) const QUEUE: &str = "close";

/// The wait between a failed call and its repetition.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(20);
/// The latest time for placing an order, counted from the opening. On a slow machine the shop takes orders after the planned time, but not
/// after this one.
const DOORS_CLOSE: Duration = Duration::from_millis(7_500);

/// A client's action at its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Place(Order),
    Pay(Order),
}

/// Places and pays `orders`, each at its time after `opening`. Returns when the last order is settled.
pub(super) fn run(client: &Client, orders: &[Order], opening: Instant, ledger: &Arc<Ledger>) {
    let mut steps = Agenda::default();
    for order in orders {
        steps.add(opening + order.placed, Step::Place(*order));
    }
    while let Some((at, step)) = steps.next() {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if ledger.is_over() {
            return;
        }
        match step {
            Step::Place(_) if opening.elapsed() > DOORS_CLOSE.max(OPEN_FOR) => {}
            Step::Place(order) => {
                place(client, order, ledger);
                if let Payment::After(after) = order.payment {
                    steps.add(at + after, Step::Pay(order));
                }
            }
            Step::Pay(order) => pay(client, order, ledger),
        }
    }
}

/// Repeats the put until the server acknowledges it. The shop decides the due time, so a repeated put changes nothing.
fn place(client: &Client, order: Order, ledger: &Ledger) {
    let close_after_ms = i64::try_from(CLOSE_AFTER.as_millis()).expect("seconds");
    let due_at_ms = ledger.wall_ms() + close_after_ms;
    let payload = format!("{{\"order\":{}}}", order.number);
    let payload = PayloadBody::json(payload.into_bytes());
    let body = PutBody { due: Due::At(due_at_ms), payload, ..PutBody::default() };
    let stored = insist(ledger, |_| client.put(QUEUE, &order.key(), &body, PutQuery::default(), None));
    if stored.is_some() {
        ledger.note(order.number, |page| page.due_at_ms = Some(due_at_ms));
    }
}

/// Cancels the close until the server has a definite answer.
fn pay(client: &Client, order: Order, ledger: &Ledger) {
    let mut retried = false;
    let outcome = insist(ledger, |attempt| {
        retried |= attempt > 0;
        client.cancel(QUEUE, &order.key(), RevokeQuery::default(), None)
    });
    if let Some(outcome) = outcome {
        let seen = CancelSeen { outcome, retried, answered: Instant::now(), answered_ms: ledger.wall_ms() };
        ledger.note(order.number, |page| page.cancel = Some(seen));
    }
}

/// Repeats a call until it is answered. Each of these calls may be repeated without a further effect. `None`: the demo is over.
pub(super) fn insist<T>(ledger: &Ledger, mut call: impl FnMut(usize) -> Result<T, ClientError>) -> Option<T> {
    for attempt in 0.. {
        match ledger.call(|| call(attempt)) {
            Ok(answer) => return Some(answer),
            Err(_) if ledger.is_over() => return None,
            Err(_) => thread::sleep(RETRY_AFTER),
        }
    }
    None
}

/// The remaining actions, soonest first.
#[derive(Default)]
struct Agenda {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    steps: Vec<Step>,
}

impl Agenda {
    fn add(&mut self, at: Instant, step: Step) {
        self.heap.push(Reverse((at, self.steps.len())));
        self.steps.push(step);
    }

    fn next(&mut self) -> Option<(Instant, Step)> {
        self.heap.pop().map(|Reverse((at, index))| (at, self.steps[index]))
    }
}
