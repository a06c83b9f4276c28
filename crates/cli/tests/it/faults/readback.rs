//! A readback of everything: lists, single keys, and all due tasks.

use std::collections::BTreeSet;

use crate::faults::caller::{Caller, Leased};
use crate::faults::history::{Answer, Call, Key, Op};
use crate::faults::judge::Ledger;

/// The queues that tests use.
pub(crate) const QUEUES: [&str; 3] = ["0", "1", "2"];

/// The result of a readback.
#[derive(Debug, Default)]
pub(crate) struct Readback {
    /// One line for each broken promise.
    pub(crate) broken: Vec<String>,
    /// All keys that are live.
    pub(crate) live: Vec<Key>,
}

/// Reads everything from a restarted server without other callers, and judges it together with all earlier calls.
/// `earlier` has the calls since the ledger was last complete. Due tasks are leased and acked, except every eighth
/// one, which is returned in `kept`.
pub(crate) fn read_back(
    caller: &Caller<'_>,
    ledger: &mut Ledger,
    earlier: Vec<Op>,
    kept: &mut Vec<Leased>,
) -> Readback {
    let touched: BTreeSet<Key> =
        earlier.iter().map(|op| op.key.clone()).filter(|key| !key.ends_with('*')).collect();
    let mut broken = ledger.take_in(earlier);
    ledger.crash();

    look(caller, ledger, &touched);
    let due_ms = caller.history().wall_ms();
    drain(caller, kept);
    broken.extend(ledger.take_in(caller.history().take()));
    broken.extend(ledger.stuck(due_ms));
    broken.extend(caller.history().take_broken());
    Readback { broken, live: ledger.maybe_live().cloned().collect() }
}

/// The number of keys that are asked for one by one after each start. If there are more keys, only every second,
/// third and so on is asked for. The lists have all keys.
const ASKED_MAX: usize = 2_000;

/// Lists everything, and asks for each of these keys.
pub(crate) fn look(caller: &Caller<'_>, ledger: &Ledger, keys: &BTreeSet<Key>) {
    let sent = caller.history().now();
    let mut listed = BTreeSet::new();
    for queue in QUEUES {
        for (key, answer) in caller.list(queue).expect("a healthy server lists") {
            caller.history().saw(&key, Call::Get, sent, answer);
            if !listed.insert(key.clone()) {
                caller.history().break_promise(format!("TWICE: {key} is listed twice"));
            }
        }
    }
    for key in ledger.maybe_live().filter(|key| !listed.contains(*key)) {
        caller.history().saw(key, Call::Get, sent, Answer::NotFound);
    }
    for key in keys.iter().step_by(keys.len() / ASKED_MAX + 1) {
        caller.get(key).expect("a healthy server answers");
    }
}

/// Leases all due tasks and acks seven of eight.
fn drain(caller: &Caller<'_>, kept: &mut Vec<Leased>) {
    for queue in QUEUES {
        loop {
            let mut leased = caller.lease(queue, 1_000, 0).expect("a healthy server leases");
            if leased.is_empty() {
                break;
            }
            kept.extend(leased.extract_if(.., |one| one.delivery.serial % 8 == 0));
            if !leased.is_empty() {
                caller.ack(queue, &leased).expect("a healthy server acks");
            }
        }
    }
}
