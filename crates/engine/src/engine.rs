//! [`Engine`]: decides what happens to the tasks of one shard.

mod ask;
mod call;
mod counts;
mod keyed;
mod replies;

use crate::acquired::{Acquired, AcquiredPage};
use crate::config::EngineConfig;
use crate::dispatch::Dispatch;
use crate::input::{Effect, Input};
use crate::jobs::Jobs;
use crate::ledger::Ledger;
use crate::reads::Reads;
use crate::recurrence::Recurrence;
use crate::residence::Residence;
use crate::settings::{Rule, RuleName};
use crate::tasks::Tasks;
use crate::time::Now;

/// The engine of one shard decides what happens to its tasks. The engine runs on one thread and has no clock, no I/O and no randomness. So
/// the same inputs at the same moments always give the same effects.
///
/// # Families
/// - *Tell*: [`step`](Self::step) takes one [`Input`] and appends [`Effect`]s.
/// - *End of a turn*: [`flush`](Self::flush), after all inputs of the turn. All look-ups of the turn go to the store in one request. Its
///   changes go to the store in the next commits, many in one commit: a group commit.
/// - *Ask*: [`next_wake`](Self::next_wake), [`is_loaded`](Self::is_loaded), [`is_idle`](Self::is_idle) and others.
///
/// # Invariants
/// - Unless the store has failed, an answer leaves only when all changes that had been applied before the answer was made are durable. The
///   answer to a lease call may leave earlier, if the changes of its tasks are durable.
/// - At most one commit is in flight. Changes apply in memory at once, and become durable in the order of their seq.
/// - A key has at most one live task. A command on a key that is not in memory waits for a look-up, unless the key is a new id that no
///   owner can have used as a key. Later commands on the same key wait behind a command that waits.
/// - A task becomes ready only if the believed wall clock has reached its `due_at`. The task then stays ready until a lease, its owner, its
///   expiry or a restart changes that.
/// - An entry is in exactly the index that its `At` names: the wheel, the rewound set, its queue's line or parked tasks, the wheel of lease
///   ends, or none. A task in memory is an entry or a stub, never both.
/// - A stub has the same values as the record in the store. A change first brings the whole task into memory. A durable entry becomes a
///   stub only when no read under way can bring an older record.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    secret: [u8; 16],
    ledger: Ledger,
    residence: Residence,
    dispatch: Dispatch,
    reads: Reads,
    recurrence: Recurrence,
    jobs: Jobs,
    /// Whether the engine has stopped: all calls are answered, all changes are durable or never will be, and the driver has
    /// [`Effect::Stopped`].
    is_stopped: bool,
}

impl Engine {
    /// Makes the engine of a shard that has just been acquired. The engine starts to load the near tasks at its first
    /// [`flush`](Self::flush).
    #[must_use]
    pub fn new(config: EngineConfig, acquired: Acquired, now: Now) -> Self {
        assert!(config.horizon_ms >= 2, "a horizon of {} ms leaves no time to load", config.horizon_ms);
        assert!(config.near_bytes_max >= 512, "{} bytes have no room for tasks", config.near_bytes_max);
        let mut engine = Self {
            secret: acquired.secret,
            ledger: Ledger::new(&acquired, &config.bounds),
            residence: Residence::new(&acquired, config.clone(), now),
            dispatch: Dispatch::new(&acquired, config.bounds.clone(), now),
            reads: Reads::new(&config.bounds),
            recurrence: Recurrence::new(&acquired, &config.bounds),
            jobs: Jobs::default(),
            is_stopped: false,
            config,
        };
        engine.restore(now, acquired.page);
        engine
    }

    /// Takes in one page of the records that the new owner of the shard needs. [`new`](Self::new) takes in the first page. The engine can
    /// work once it has all pages.
    pub fn restore(&mut self, now: Now, page: AcquiredPage) {
        for (name, population) in page.queues {
            self.dispatch.restore_population(&name, population);
        }
        for (name, rule) in page.rules {
            match (name, &*rule) {
                (RuleName::Queue(name), Rule::Queue(record)) => {
                    self.dispatch.restore_record(&name, record, now)
                }
                (RuleName::Schedule(queue, name), Rule::Schedule(record)) => {
                    self.recurrence.restore((queue, name), record);
                }
                (RuleName::Job(id), Rule::Job(value)) => self.jobs.restore(id, value),
                (name, rule) => unreachable!("{name:?} is the name of another rule than {rule:?}"),
            }
        }
        // A lease goes on whatever the due time of its task is. The wall clock may have stepped back to a time at which the task is not
        // even due.
        let mut tasks = self.tasks(now);
        for task in page.leased {
            if tasks.goes_on(&task) {
                tasks.load(task);
            }
        }
    }

    /// Applies one input at one moment. Tasks in memory that are due by this moment fire first.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        self.tasks(now).pass_time();
        self.make_waiting(now);
        match input {
            Input::Call { call, command } => self.call(now, call, command),
            Input::EndWait { call } => self.tasks(now).delivery().end_wait(call),
            Input::Undelivered { tokens } => self.tasks(now).take_back(&tokens),
            Input::Use { queue } => self.dispatch.begin_use(&queue),
            Input::Leave { queue } => self.dispatch.end_use(&queue),
            Input::Store { request, reply } => self.store_replied(now, request, reply, out),
            Input::ZonesChanged { zones } => self.recurrence.zones_changed(&zones),
            Input::Instant { ask, found } => self.recurrence.instant_found(&mut self.ledger, now, ask, found),
            Input::StoreFailed { why } => self.ledger.store_failed(&why),
            Input::Wake => {}
            Input::LookForRoom => {
                if self.ledger.room_pace().is_some() {
                    self.ledger.ask_for_room();
                }
            }
            Input::NoteTime => self.ledger.note_time(),
            Input::Stop => self.tasks(now).stop(),
        }
        self.count_empty_queues();
        self.make_occurrences(now);
        self.recurrence.hand_over_asks(out);
        self.tasks(now).delivery().serve();
        debug_assert!(
            !self.ledger.has_failed() || self.dispatch.queues().waiting() == 0,
            "no call waits once the store has failed"
        );
        self.count(now);
        self.ledger.release_answers(out);
    }

    /// Ends a turn. Asks the store for the records that the inputs since the last turn need, and sends the next commit, if there is
    /// something to commit and no commit is in flight.
    pub fn flush(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.tasks(now).shed();
        if !self.is_stopped {
            self.residence.load_ahead(&mut self.ledger, now, out);
        }
        self.reads.look_up(&mut self.ledger, &mut self.residence, &mut self.dispatch, out);
        self.reads.scan_lists(&mut self.ledger, &mut self.residence, &self.dispatch, now, out);
        self.reads.ask_forecasts(&mut self.ledger, now, out);
        self.search_live(now, out);
        self.ledger.commit(now, out);
        self.ledger.release_answers(out);
        if self.ledger.is_stopping() && !self.is_stopped && self.is_idle() {
            self.is_stopped = true;
            out.push(Effect::Stopped);
        }
    }

    /// Borrows the parts of the engine that a change of a task may touch.
    fn tasks(&mut self, now: Now) -> Tasks<'_> {
        Tasks {
            config: &self.config,
            secret: &self.secret,
            ledger: &mut self.ledger,
            residence: &mut self.residence,
            dispatch: &mut self.dispatch,
            recurrence: &mut self.recurrence,
            now,
        }
    }
}
