//! [`Recurrence`]: the schedules, and the instants for which tasks are to be made.

mod instants;
mod live_search;
mod put;
mod schedules;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::live_search::LiveSearch;
use self::schedules::{Asked, Phase, Scheduled};
use crate::acquired::Acquired;
use crate::bounds::Bounds;
use crate::input::Effect;
use crate::name::QueueName;
use crate::schedule::{AskId, ScheduleId};
use crate::time::{Seq, Timestamp};

/// All schedules of the shard. Time, the calls of owners and the ends of tasks move the schedules on. The engine takes the instants from
/// [`pop_to_make`](Self::pop_to_make) and makes their tasks.
///
/// # Invariants
/// - At most one task is made for one instant of a schedule.
/// - If an instant gets a task, the progress of the schedule is written down in the batch that has the task.
/// - A schedule that waits and has a next instant is in `due` with it, unless it is in `changed`, `stalled`, `not_durable` or
///   `uncounted`.
/// - A schedule that takes turns has in `running` each live task that has its name in the key, unless `may_have_more` is set.
#[derive(Debug, Default)]
pub(crate) struct Recurrence {
    secret: [u8; 16],
    /// The largest number of instants that are handled in one step.
    instants_max: usize,
    /// Instants for which the engine has to make tasks, in the order in which the schedules asked for them.
    to_make: VecDeque<(ScheduleId, Timestamp)>,
    /// The number of the last change of any schedule.
    last_change: Seq,
    by_name: BTreeMap<ScheduleId, Scheduled>,
    due: BTreeSet<(Timestamp, ScheduleId)>,
    /// Schedules to look at before the step ends: they have changed, or they waited for a commit or for room. The engine looks at none
    /// while it is stopping or takes no changes.
    changed: BTreeSet<ScheduleId>,
    /// Schedules whose zone has new rules, until the driver is asked about them.
    moved: BTreeSet<ScheduleId>,
    /// Schedules that wait for room: an instant has come, and the store had no room for its task.
    stalled: BTreeSet<ScheduleId>,
    /// Schedules that wait for a commit: an instant has come, and the last change of the schedule is not durable yet. So a commit lies
    /// between two instants of one schedule, and calls are served in that time, even if the schedule makes up for many instants.
    not_durable: BTreeSet<ScheduleId>,
    /// The number of instants that wait for live tasks to end, of all schedules.
    waiting: usize,
    /// Schedules that make no task before a search in the store has found the live tasks of their names.
    uncounted: BTreeSet<ScheduleId>,
    /// The queues of schedules that came into `uncounted` since the queues were looked at last.
    uncounted_queues: BTreeSet<QueueName>,
    /// The queue of the last search.
    searched: Option<QueueName>,
    /// The search for live tasks that is under way.
    live_search: Option<LiveSearch>,
    asked: BTreeMap<AskId, Asked>,
    /// Questions to the driver that go out at the end of the step.
    asks: Vec<Effect>,
    last_ask: u64,
    /// When the schedules last asked the store for its room (monotonic ms).
    room_asked_ms: Option<u64>,
    bytes: u64,
}

impl Recurrence {
    pub(crate) fn new(acquired: &Acquired, bounds: &Bounds) -> Self {
        Self { secret: acquired.secret, instants_max: bounds.instants, ..Self::default() }
    }

    /// Takes out the next instant for which a task is to be made.
    pub(crate) fn pop_to_make(&mut self) -> Option<(ScheduleId, Timestamp)> {
        self.to_make.pop_front()
    }

    /// Whether the task of this instant is still to be made: the schedule was neither put again nor deleted since.
    pub(crate) fn is_making(&self, id: &ScheduleId, at: Timestamp) -> bool {
        self.phase(id) == Some(Phase::Making(at))
    }

    /// Moves the questions of this step to the driver into `out`.
    pub(crate) fn hand_over_asks(&mut self, out: &mut Vec<Effect>) {
        out.append(&mut self.asks);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::calls::{Answer, PutSchedule};
    use crate::input::CallId;
    use crate::ledger::Ledger;
    use crate::name::{QueueName, ScheduleName};
    use crate::schedule::{Cadence, CatchUp, Overlap, Schedule, ScheduleRecord, occurrence_key};
    use crate::task::{Task, Terms};
    use crate::time::Now;

    fn id() -> ScheduleId {
        (QueueName::new("orders").expect("a name"), ScheduleName::new("nightly").expect("a name"))
    }

    /// Returns the schedules and the ledger after the put, at 0, of a schedule that fires each second.
    fn put(catch_up: CatchUp, overlap: Overlap) -> (Recurrence, Ledger) {
        let (acquired, bounds) = (Acquired::of_new_shard(), Bounds::default());
        let (mut recurrence, mut ledger) =
            (Recurrence::new(&acquired, &bounds), Ledger::new(&acquired, &bounds));
        let schedule = Schedule {
            cadence: Cadence::Every { ms: 1_000 },
            start: None,
            end: None,
            count: None,
            jitter_ms: 0,
            catch_up,
            overlap,
            body: Arc::default(),
            terms: Terms::default(),
        };
        let (queue, name) = id();
        let put = PutSchedule { queue, name, schedule: Arc::new(schedule), if_version: None, scope: None };
        recurrence.put_schedule(&mut ledger, Now::at_ms(0), CallId(1), put);
        recurrence.queue_is_empty(&mut ledger, &id().0);
        make_durable(&mut recurrence, &mut ledger);
        let mut out = Vec::new();
        ledger.release_answers(&mut out);
        assert!(matches!(&out[..], [Effect::Answer { answer: Answer::PutSchedule(Ok(_)), .. }]), "{out:?}");
        (recurrence, ledger)
    }

    /// Makes all noted changes durable with one commit, and looks at the schedules that have changed.
    fn make_durable(recurrence: &mut Recurrence, ledger: &mut Ledger) {
        let mut out = Vec::new();
        ledger.commit(Now::at_ms(0), &mut out);
        for effect in out {
            if let Effect::Request { id, .. } = effect {
                ledger.committed(Now::at_ms(0), id, Some(1 << 30));
            }
        }
        recurrence.made_durable();
        recurrence.go_on(ledger);
    }

    fn to_make(recurrence: &mut Recurrence, ledger: &mut Ledger, ms: u64) -> Vec<i64> {
        recurrence.fall_due(ledger, Now::at_ms(ms));
        recurrence.go_on(ledger);
        std::iter::from_fn(|| recurrence.pop_to_make()).map(|(_, at)| at.as_ms()).collect()
    }

    /// Moves the schedule on as the engine does when it has made the task of the instant `ms`.
    fn made(recurrence: &mut Recurrence, ledger: &mut Ledger, ms: u64, task: Option<u64>) {
        let at = Timestamp::EPOCH.saturating_plus_ms(ms);
        assert!(recurrence.is_making(&id(), at));
        let mut record = ScheduleRecord::clone(recurrence.get(&id()).expect("it was put"));
        (record.decided, record.last, record.running) = (at, Some(at), task.into_iter().collect());
        record.made += 1;
        recurrence.step(ledger, &id(), record);
        make_durable(recurrence, ledger);
    }

    #[test]
    fn each_instant_comes_once_and_the_next_one_waits_until_it_is_made_and_durable() {
        let (mut recurrence, mut ledger) = put(CatchUp::All, Overlap::Allow);
        assert_eq!(recurrence.next_wake(&ledger), Some(Timestamp::EPOCH.saturating_plus_ms(1_000)));
        assert!(to_make(&mut recurrence, &mut ledger, 999).is_empty());
        assert_eq!(to_make(&mut recurrence, &mut ledger, 2_500), [1_000]);
        assert!(to_make(&mut recurrence, &mut ledger, 2_500).is_empty(), "its task is being made");
        made(&mut recurrence, &mut ledger, 1_000, None);
        assert_eq!(to_make(&mut recurrence, &mut ledger, 2_500), [2_000]);
    }

    #[test]
    fn instants_that_were_missed_are_made_up_for_once_or_left_out_and_counted() {
        let ms = 3_600_000;
        let (mut recurrence, mut ledger) = put(CatchUp::Once, Overlap::Allow);
        let instants = to_make(&mut recurrence, &mut ledger, ms);
        assert!(matches!(instants[..], [at] if at < 3_600_000), "{instants:?}");
        let (mut recurrence, mut ledger) = put(CatchUp::Skip, Overlap::Allow);
        assert!(to_make(&mut recurrence, &mut ledger, ms).is_empty());
        assert!(recurrence.get(&id()).is_some_and(|record| record.skipped > 3_000 && record.made == 0));
    }

    #[test]
    fn an_instant_waits_for_the_task_before_it_and_comes_when_that_ends() {
        let (mut recurrence, mut ledger) = put(CatchUp::All, Overlap::Queue);
        assert_eq!(to_make(&mut recurrence, &mut ledger, 1_000), [1_000]);
        made(&mut recurrence, &mut ledger, 1_000, Some(7));
        assert!(to_make(&mut recurrence, &mut ledger, 2_000).is_empty());
        assert_eq!(recurrence.waiting(), 1);
        let task = |id| {
            let at = Timestamp::EPOCH.saturating_plus_ms(1_000);
            Task { id, ..Task::new(self::id().0, occurrence_key(&self::id().1, at), Arc::default()) }
        };
        recurrence.task_ended(&mut ledger, Now::at_ms(2_500), &task(8));
        assert!(to_make(&mut recurrence, &mut ledger, 2_500).is_empty(), "another task has ended");
        recurrence.task_ended(&mut ledger, Now::at_ms(2_500), &task(7));
        assert_eq!(to_make(&mut recurrence, &mut ledger, 2_500), [2_000]);
    }
}
