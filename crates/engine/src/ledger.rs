//! [`Ledger`]: gives each change its seq, and holds each answer back until the changes that the answer depends on are durable.

mod barrier;
mod batch;
mod commit;
mod ids;
mod room;

use std::sync::Arc;

use self::barrier::CommitBarrier;
use self::batch::WriteBatch;
pub(crate) use self::batch::{schedule_bytes, task_bytes};
use self::commit::InFlight;
pub(crate) use self::ids::OwnIds;
pub use self::room::RoomPace;
pub(crate) use self::room::{ROOM_MIN, Room};
use crate::acquired::{Acquired, Ownership};
use crate::bounds::Bounds;
use crate::calls::{Answer, Stats, Unavailable};
use crate::input::{CallId, Effect};
use crate::residence::{BatchSlot, Slot};
use crate::seam::{Before, Request, RequestId, TaskEffect};
use crate::settings::RuleEffect;
use crate::time::Seq;

/// Numbers the changes, collects them into batches for the store, and holds each answer back until all changes that the answer depends on
/// are durable.
///
/// # Invariants
/// - An answer leaves only when all changes that it depends on are durable.
/// - At most one commit is in flight. Changes become durable in the order of their seq.
#[derive(Debug)]
pub(crate) struct Ledger {
    ownership: Ownership,
    ids: OwnIds,
    /// The seq of the last change that is applied in memory.
    applied: Seq,
    /// The seq of the last change that the store has reported as durable.
    durable: Seq,
    batch: WriteBatch,
    /// While true, a full batch is not sealed.
    together: bool,
    in_flight: Option<InFlight>,
    /// The number of commits that the store has reported as durable since the start, empty ones included.
    commits: u64,
    room: Room,
    barrier: CommitBarrier,
    last_request: RequestId,
    /// Why the store takes no commit any more. `None`: the store has not failed.
    failed: Option<Arc<str>>,
    /// Why the ledger will fail after the commit in flight has its outcome. `None`: no failure is held back.
    failing: Option<Arc<str>>,
    is_stopping: bool,
    counters: Stats,
}

impl Ledger {
    pub(crate) fn new(acquired: &Acquired, bounds: &Bounds) -> Self {
        let ownership = acquired.ownership;
        Self {
            ownership,
            ids: OwnIds::new(ownership.shard, acquired.state, bounds.ids_block),
            applied: ownership.last_seq,
            durable: ownership.last_seq,
            batch: WriteBatch::new(bounds),
            together: false,
            in_flight: None,
            commits: 0,
            room: Room::new(acquired.room),
            barrier: CommitBarrier::default(),
            last_request: RequestId(0),
            failed: None,
            failing: None,
            is_stopping: false,
            counters: Stats::default(),
        }
    }

    /// Returns the right to commit that this engine holds.
    pub(crate) fn ownership(&self) -> Ownership {
        self.ownership
    }

    /// Returns the seq of the last change that is applied in memory.
    pub(crate) fn applied(&self) -> Seq {
        self.applied
    }

    /// Returns the seq of the last change that the store has reported as durable.
    pub(crate) fn durable(&self) -> Seq {
        self.durable
    }

    /// Takes the seq for the next change.
    pub(crate) fn next_seq(&mut self) -> Seq {
        self.applied = self.applied.next();
        self.applied
    }

    /// Sends a request to the store, and returns its number.
    pub(crate) fn request(&mut self, request: Request, out: &mut Vec<Effect>) -> RequestId {
        self.last_request = RequestId(self.last_request.0 + 1);
        out.push(Effect::Request { id: self.last_request, request });
        self.last_request
    }

    /// Returns the number of commits that the store has reported as durable since the start, empty ones included.
    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    /// Answers a call once all changes that are applied by now are durable.
    pub(crate) fn answer(&mut self, call: CallId, answer: Answer) {
        // Once the store has failed, no commit comes any more. An answer that waited for one would never leave.
        let seen = if self.failed.is_some() { self.durable } else { self.applied };
        self.barrier.hold(seen, call, answer);
    }

    /// Answers a call with an answer that depends on durable changes only. The answer passes the answers that wait for a commit.
    pub(crate) fn answer_durable(&mut self, call: CallId, answer: Answer) {
        self.barrier.pass(call, answer);
    }

    /// Lets out the answers that depend on durable changes only.
    pub(crate) fn release_answers(&mut self, out: &mut Vec<Effect>) {
        self.barrier.release(self.durable, out);
    }

    /// Puts the effect on the task in `slot` into the batch. `batch_slot`: the value that `note` returned for the last effect on this task,
    /// so that the batch finds that effect. `before`: the state of the task in the store, without this batch. Returns the place of the new effect. Seals a full batch, unless changes are kept together.
    pub(crate) fn note(
        &mut self,
        slot: Slot,
        batch_slot: Option<BatchSlot>,
        effect: TaskEffect,
        before: Before,
    ) -> BatchSlot {
        let batch_slot = self.batch.push(slot, batch_slot, effect, before);
        self.seal_if_full();
        batch_slot
    }

    /// Puts a change of a rule into the batch. Seals a full batch, unless changes are kept together.
    pub(crate) fn note_rule(&mut self, effect: RuleEffect) {
        self.batch.push_rule(effect);
        self.seal_if_full();
    }

    /// Puts the id of a row of the inbox into the batch. The caller keeps this call together with the effect of the row, so that both are
    /// in one batch. A row is a change of its own, because the answer has to wait for the commit also if the row has no effect.
    pub(crate) fn note_taken(&mut self, row: u64) {
        self.next_seq();
        self.batch.push_taken(row);
        self.seal_if_full();
    }

    /// Has the next commit write the time to the store, even if nothing has changed.
    pub(crate) fn note_time(&mut self) {
        self.batch.note_time();
    }

    /// Whether the batch of this effect is sealed. The batch may be durable by now.
    pub(crate) fn is_sealed(&self, batch_slot: BatchSlot) -> bool {
        self.batch.is_sealed(batch_slot)
    }

    /// Whether more than one sealed batch waits for its commit.
    pub(crate) fn has_backlog(&self) -> bool {
        self.batch.has_backlog()
    }

    /// Keeps all effects that are noted until [`end_together`](Self::end_together) in one batch. Returns whether an outer `begin_together`
    /// already does so; `end_together` needs this value.
    pub(crate) fn begin_together(&mut self) -> bool {
        core::mem::replace(&mut self.together, true)
    }

    /// Ends what [`begin_together`](Self::begin_together) began. `outer`: the value that `begin_together` returned. If `outer` is `false`,
    /// a full batch is sealed.
    pub(crate) fn end_together(&mut self, outer: bool) {
        self.together = outer;
        self.seal_if_full();
    }

    fn seal_if_full(&mut self) {
        if self.batch.is_full() && !self.together {
            self.seal();
        }
    }

    /// Returns why the engine takes no changes any more: the store has failed, or the ledger will fail after the commit in flight. `None`:
    /// changes are taken.
    pub(crate) fn refuses_changes(&self) -> Option<Arc<str>> {
        self.failed.clone().or_else(|| self.failing.clone())
    }

    /// Whether the engine still takes changes.
    pub(crate) fn takes_changes(&self) -> bool {
        self.failed.is_none() && self.failing.is_none()
    }

    /// Checks that the engine still takes changes.
    ///
    /// # Errors
    /// [`Unavailable::ReadOnly`]: the store has failed, or the ledger will fail after the commit in flight.
    pub(crate) fn check_changes(&self) -> Result<(), Unavailable> {
        self.refuses_changes().map_or(Ok(()), |why| Err(Unavailable::ReadOnly { why }))
    }

    /// Returns why the store takes no commit any more. `None`: the store has not failed.
    pub(crate) fn failure(&self) -> Option<&Arc<str>> {
        self.failed.as_ref()
    }

    /// Whether the store has failed and takes no commit any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Checks that the outcome of the change `changed` is not in doubt: the change is durable, or the store has not failed.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and it is unknown whether the change is durable.
    pub(crate) fn doubt_since(&self, changed: Seq) -> Result<(), Unavailable> {
        self.doubt_if(|| changed > self.durable)
    }

    /// Checks that an outcome is not in doubt: the store has not failed, or `is_unsure` returns `false`.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and `is_unsure` returns `true`.
    pub(crate) fn doubt_if(&self, is_unsure: impl FnOnce() -> bool) -> Result<(), Unavailable> {
        match &self.failed {
            Some(why) if is_unsure() => Err(Unavailable::Indeterminate { why: Arc::clone(why) }),
            _ => Ok(()),
        }
    }

    /// Begins the stop: the engine takes no more calls.
    pub(crate) fn begin_stop(&mut self) {
        self.is_stopping = true;
    }

    /// Whether the stop has begun, so that no calls are taken.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Returns the ids of the shard's own tasks.
    pub(crate) fn ids(&self) -> &OwnIds {
        &self.ids
    }

    /// Returns the counters.
    pub(crate) fn counters(&self) -> &Stats {
        &self.counters
    }

    /// Returns the counters, so that the caller can change them.
    pub(crate) fn counters_mut(&mut self) -> &mut Stats {
        &mut self.counters
    }

    /// Whether nothing waits: all answers have left, and all applied changes are durable, or the store has failed.
    pub(crate) fn is_idle(&self) -> bool {
        let is_durable = self.in_flight.is_none() && !self.batch.has_work();
        (is_durable || self.failed.is_some()) && self.barrier.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::JobValue;
    use crate::settings::{Rule, RuleName};
    use crate::time::{Now, Timestamp};

    const NOW: Now = Now { mono_ns: 0, wall: Timestamp::EPOCH, wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 };

    fn ledger(bounds: &Bounds) -> Ledger {
        Ledger::new(&Acquired::of_new_shard(), bounds)
    }

    /// Changes a job, because a change of a rule needs no task. Returns the seq of the change.
    fn change(ledger: &mut Ledger, id: u64) -> Seq {
        let seq = ledger.next_seq();
        let value: JobValue = Arc::from(&b"value"[..]);
        ledger.note_rule((RuleName::Job(id), Some(Arc::new(Rule::Job(value)))));
        seq
    }

    fn answered(out: &mut Vec<Effect>) -> Vec<u64> {
        let answers = out.drain(..).filter_map(|effect| match effect {
            Effect::Answer { call, .. } => Some(call.0),
            _ => None,
        });
        answers.collect()
    }

    fn commit_of(out: &[Effect]) -> Option<(RequestId, Seq, usize)> {
        out.iter().find_map(|effect| match effect {
            Effect::Request { id, request: Request::Commit { seq, batch, .. } } => {
                Some((*id, *seq, batch.rules.len()))
            }
            _ => None,
        })
    }

    #[test]
    fn an_answer_waits_for_the_commit_of_what_it_rests_on_and_a_durable_one_passes_it() {
        let (mut ledger, mut out) = (ledger(&Bounds::default()), Vec::new());
        ledger.answer(CallId(1), Answer::Jobs(Ok(Vec::new())));
        change(&mut ledger, 1);
        ledger.answer(CallId(2), Answer::Jobs(Ok(Vec::new())));
        ledger.answer_durable(CallId(3), Answer::Lease(Ok(Vec::new())));
        ledger.release_answers(&mut out);
        assert_eq!(answered(&mut out), [3, 1]);
        ledger.commit(NOW, &mut out);
        let (request, seq, rules) = commit_of(&out).expect("there is something to write down");
        assert_eq!((seq, rules), (Seq(1), 1));
        assert!(!ledger.is_idle());
        assert!(ledger.committed(NOW, request, Some(1 << 30)).is_empty(), "the batch has no tasks");
        ledger.release_answers(&mut out);
        assert_eq!(answered(&mut out), [2]);
        assert!(ledger.is_idle());
    }

    #[test]
    fn one_commit_is_in_flight_and_the_next_batch_fills_meanwhile() {
        let (mut ledger, mut out) = (ledger(&Bounds::default()), Vec::new());
        change(&mut ledger, 1);
        ledger.commit(NOW, &mut out);
        let (first, ..) = commit_of(&out).expect("the first batch");
        out.clear();
        change(&mut ledger, 2);
        change(&mut ledger, 2);
        ledger.commit(NOW, &mut out);
        assert!(commit_of(&out).is_none(), "the first is in flight");
        ledger.committed(NOW, first, Some(1 << 30));
        ledger.commit(NOW, &mut out);
        let (_, seq, rules) = commit_of(&out).expect("the second batch");
        assert_eq!((seq, rules), (Seq(3), 1), "one effect for each rule, and the number of the last");
    }

    #[test]
    fn a_full_batch_is_closed_but_not_in_the_middle_of_what_belongs_together() {
        let bounds = Bounds { batch_effects: 2, ..Bounds::default() };
        let (mut ledger, mut out) = (ledger(&bounds), Vec::new());
        let outer = ledger.begin_together();
        for id in 1..=3 {
            change(&mut ledger, id);
        }
        ledger.end_together(outer);
        change(&mut ledger, 4);
        ledger.commit(NOW, &mut out);
        assert_eq!(commit_of(&out).map(|(_, seq, rules)| (seq, rules)), Some((Seq(3), 3)));
    }

    #[test]
    fn what_waited_for_a_commit_that_failed_is_of_unknown_outcome() {
        let (mut ledger, mut out) = (ledger(&Bounds::default()), Vec::new());
        change(&mut ledger, 1);
        ledger.answer(CallId(1), Answer::ChangeJob(Ok(1)));
        ledger.commit(NOW, &mut out);
        ledger.fail_after_commit("the disk is gone");
        assert!(!ledger.takes_changes() && !ledger.has_failed(), "its outcome comes first");
        ledger.fail("the disk is gone");
        out.clear();
        ledger.release_answers(&mut out);
        let is_unknown = |answer: &Answer| {
            matches!(
                answer,
                Answer::ChangeJob(Err(crate::calls::JobError::Unavailable(
                    Unavailable::Indeterminate { .. }
                )))
            )
        };
        assert!(
            matches!(&out[..], [Effect::Answer { call: CallId(1), answer }] if is_unknown(answer)),
            "{out:?}"
        );
        assert!(ledger.doubt_since(Seq(1)).is_err() && ledger.doubt_since(Seq::ZERO).is_ok());
    }
}
