//! The check that an order of all calls exists which explains all answers.

use std::collections::{BTreeMap, BTreeSet};

use crate::faults::history::{ANY, Answer, Call, Key, Op, any_of, queue_of};
use crate::faults::world::{Held, World};

/// The possible states of each key. A key that is not in it never existed or has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    worlds: BTreeMap<Key, BTreeSet<World>>,
}

impl Ledger {
    /// Takes calls. Returns one line for each key whose answers no order explains.
    pub(crate) fn take_in(&mut self, ops: Vec<Op>) -> Vec<String> {
        let mut by_key: BTreeMap<Key, Vec<Op>> = BTreeMap::new();
        for op in ops {
            by_key.entry(op.key.clone()).or_default().push(op);
        }
        // Leases whose answer was lost. The one of each queue that was sent first stands for all of them.
        let lost: BTreeMap<Key, Op> = by_key
            .extract_if(.., |key, _| key.ends_with(ANY))
            .filter_map(|(key, ops)| Some((key, ops.into_iter().min_by_key(|op| op.sent)?)))
            .collect();
        let mut broken = Vec::new();
        for (key, mut ops) in by_key {
            let met_lease = ops.iter().any(|op| matches!(op.answer, Some((_, Answer::Leased))));
            if let Some(lease) = lost.get(any_of(queue_of(&key)).as_str()).filter(|_| met_lease) {
                ops.push(Op { key: key.clone(), ..lease.clone() });
            }
            let before = self.worlds.remove(&key).unwrap_or_else(ended);
            ops.retain(|op| !matches!(op.answer, Some((_, Answer::Refused))));
            let after = explain(&before, &ops);
            if after.is_empty() {
                broken.push(story(&key, &before, &ops));
            }
            self.put(key, after);
        }
        broken
    }

    /// Applies the death of the server.
    pub(crate) fn crash(&mut self) {
        for worlds in self.worlds.values_mut() {
            *worlds = worlds.iter().map(|world| world.after_crash()).collect();
        }
    }

    /// Keys that are live in at least one world.
    pub(crate) fn maybe_live(&self) -> impl Iterator<Item = &Key> {
        let live = |worlds: &BTreeSet<World>| worlds.iter().any(|world| matches!(world, World::Live(_)));
        self.worlds.iter().filter(move |(_, worlds)| live(worlds)).map(|(key, _)| key)
    }

    /// Keys that were certainly due by `wall_ms` but that no worker got, although workers took all ready tasks.
    pub(crate) fn stuck(&self, wall_ms: i64) -> Vec<String> {
        let is_stuck = |world: &World| match world {
            World::Live(live) => live.held == Held::No && live.due_ms <= wall_ms,
            World::Absent | World::Done => false,
        };
        let stuck =
            self.worlds.iter().filter(|(_, worlds)| !worlds.is_empty() && worlds.iter().all(is_stuck));
        stuck
            .map(|(key, worlds)| format!("STUCK: {key} was due at {wall_ms} and did not come: {worlds:?}"))
            .collect()
    }

    /// Ended keys are not kept: if one comes back, that is as wrong as a key that never existed.
    fn put(&mut self, key: Key, worlds: BTreeSet<World>) {
        if worlds.iter().any(|world| matches!(world, World::Live(_))) {
            self.worlds.insert(key, worlds);
        }
    }
}

fn ended() -> BTreeSet<World> {
    BTreeSet::from([World::Absent, World::Done])
}

/// All possible states of the key after these calls. Each call takes effect at some moment between its sending and its
/// answer. A call without an answer takes effect at any later moment or never. The result is empty if no order
/// explains the answers.
fn explain(before: &BTreeSet<World>, ops: &[Op]) -> BTreeSet<World> {
    assert!(ops.len() <= 64, "{} calls about {}: too many to order", ops.len(), ops[0].key);
    let answered = (0..ops.len()).filter(|&i| ops[i].answer.is_some()).fold(0_u64, |all, i| all | 1 << i);
    let mut ends = BTreeSet::new();
    let mut seen: BTreeSet<(u64, World)> = before.iter().map(|&world| (0, world)).collect();
    let mut open: Vec<(u64, World)> = seen.iter().copied().collect();
    while let Some((done, world)) = open.pop() {
        if done & answered == answered {
            ends.insert(world);
        }
        // The first of the remaining answers. A call that was sent after it comes later in the order.
        let left = |i: &usize| done & (1 << i) == 0;
        let first = (0..ops.len()).filter(left).filter_map(|i| ops[i].answer.map(|(at, _)| at)).min();
        for i in (0..ops.len()).filter(left) {
            if first.is_some_and(|first| ops[i].sent > first) {
                continue;
            }
            let next = match ops[i].answer {
                Some((_, answer)) => world.after(ops[i].call, answer),
                None => world.after_unanswered(ops[i].call),
            };
            let next = next.map(|world| (done | 1 << i, world));
            if let Some(next) = next.filter(|next| seen.insert(*next)) {
                open.push(next);
            }
        }
    }
    ends
}

fn story(key: &Key, before: &BTreeSet<World>, ops: &[Op]) -> String {
    let mut lines: Vec<String> = ops.iter().map(|op| format!("    {op}")).collect();
    lines.sort();
    format!("UNEXPLAINED: {key}, before: {before:?}\n{}", lines.join("\n"))
}

/// The history up to the number `cut`. Later calls count as not sent, and later answers as not received.
pub(crate) fn until(ops: &[Op], cut: u64) -> Vec<Op> {
    let mut kept: Vec<Op> = ops.iter().filter(|op| op.sent < cut).cloned().collect();
    for op in &mut kept {
        op.answer = op.answer.filter(|(at, _)| *at < cut);
    }
    // A get without an answer proves nothing.
    kept.retain(|op| op.answer.is_some() || op.call != Call::Get);
    kept
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::faults::history::Delivery;

    const PUT: Call = Call::Put { due_ms: 100, number: 1 };
    const IT: Answer = Answer::Live { due_ms: 100, number: 1, version: 7 };

    fn op(sent: u64, call: Call, answer: Option<(u64, Answer)>) -> Op {
        Op { key: Arc::from("0:k"), call, sent, answer }
    }

    fn explained(ops: &[Op]) -> bool {
        Ledger::default().take_in(ops.to_vec()).is_empty()
    }

    #[test]
    fn an_acknowledged_put_has_to_be_there() {
        let put = op(0, PUT, Some((1, Answer::Created { version: 7 })));
        assert!(explained(&[put.clone(), op(2, Call::Get, Some((3, IT)))]));
        assert!(!explained(&[put.clone(), op(2, Call::Get, Some((3, Answer::NotFound)))]));
        let other = Answer::Live { due_ms: 100, number: 1, version: 6 };
        assert!(!explained(&[put, op(2, Call::Get, Some((3, other)))]), "another version");
    }

    #[test]
    fn an_unanswered_put_happened_or_did_not_and_stays_so() {
        let put = op(0, PUT, None);
        let (there, gone) = (Some((3, IT)), Some((5, Answer::NotFound)));
        assert!(explained(&[put.clone(), op(2, Call::Get, there)]));
        assert!(explained(&[put.clone(), op(4, Call::Get, gone)]));
        assert!(!explained(&[put, op(2, Call::Get, there), op(4, Call::Get, gone)]));
    }

    #[test]
    fn after_cancelled_or_acked_nothing_comes() {
        let delivery = Delivery { serial: 1, due_ms: 100, number: 1 };
        let put = op(0, PUT, Some((1, Answer::Created { version: 7 })));
        let cancel = op(2, Call::Cancel, Some((5, Answer::Cancelled)));
        let lease = |sent| op(sent, Call::Lease, Some((sent + 1, Answer::Delivered(delivery))));
        assert!(!explained(&[put.clone(), cancel.clone(), lease(6)]), "after the cancel");
        assert!(!explained(&[put.clone(), cancel, lease(3)]), "beside it: it would have said `leased`");
        let late = op(2, Call::Cancel, Some((5, Answer::Leased)));
        assert!(explained(&[put.clone(), late.clone(), lease(3)]));
        assert!(!explained(&[put.clone(), late, lease(6)]), "nobody had it then");
        let ack = op(5, Call::Ack(delivery), Some((6, Answer::Acked)));
        assert!(explained(&[put.clone(), lease(3), ack.clone()]));
        assert!(!explained(&[put, lease(3), ack, lease(8)]), "after its ack");
    }

    #[test]
    fn a_crash_ends_leases_and_keeps_the_rest() {
        let delivery = Delivery { serial: 1, due_ms: 100, number: 1 };
        let put = op(0, PUT, Some((1, Answer::Created { version: 7 })));
        let lease = op(2, Call::Lease, Some((3, Answer::Delivered(delivery))));
        let mut ledger = Ledger::default();
        assert_eq!(ledger.take_in(vec![put, lease.clone()]), Vec::<String>::new());
        assert_eq!(ledger.stuck(100).len(), 0, "a worker has it");
        let mut crashed = ledger.clone();
        crashed.crash();
        assert_eq!((crashed.stuck(99).len(), crashed.stuck(100).len()), (0, 1));
        let again = Op { sent: 4, answer: lease.answer.map(|(_, answer)| (5, answer)), ..lease };
        assert_eq!(ledger.take_in(vec![again.clone()]).len(), 1, "two workers have it");
        assert_eq!(crashed.take_in(vec![again]).len(), 0);
    }
}
