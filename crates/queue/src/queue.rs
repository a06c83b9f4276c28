//! [`Queue`]: the embedded durable queue.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwheel_engine::{
    Ack, Acted, Answer, ById, ByIdError, ByKey, ByKeyError, Call, CallId, Cancel, CancelError, Cancelled,
    ChangeJob, ChangeQueue, Command, DeleteSchedule, Due, Extend, Forecast, ForecastView, Get, GetError,
    GetQueue, GetSchedule, GetStats, GetWheel, ImportOutcome, ImportSchedule, ImportTasks, Imported,
    JobError, JobValue, Lease, LeasePage, Leased, List, ListAllSchedules, ListAllTasks, ListJobs, ListLeases,
    ListQueues, ListSchedules, Nack, NackError, Now, Patch, PatchError, Put, PutError, PutSchedule,
    QueueError, QueueName, QueuePage, QueueView, Redrive, RedriveError, Schedule, ScheduleError,
    ScheduleRecord, ScheduleView, ShardId, Stats, Stored, StoredSchedule, TaskPage, TaskView, Timestamp,
    Token, TokenAnswer, Unavailable, WheelView,
};

use crate::advance::{Advance, AdvanceError, Goal, VIRTUAL_END_MS};
use crate::backup::{BackupError, BackupReport, BackupWatch, Source};
use crate::commits::CommitSeconds;
use crate::health::{Health, Shared};
use crate::message::{Delivered, Message};
use crate::opened::Opened;
use crate::options::{OpenError, Options};
use crate::pending::Pending;
use crate::router::Router;
use crate::time::Time;
use crate::upcoming::as_if_put;

/// A durable delay queue inside your process: many named queues, one directory, one thread.
///
/// A `Queue` is cheap to clone; all clones are one queue. A call returns a [`Pending`], which is waited for or awaited. An answer that
/// reports a change follows the sync that covers the change.
///
/// # Order
/// Calls on one key take effect in the order in which they are made. Calls on different keys that are under way together may pass each
/// other: a call that has to look its key up goes after a call that need not. If a lease has to see a put, wait for the put first.
///
/// The last clone to be dropped stops the thread gracefully; [`close`](Self::close) does it earlier.
///
/// # What it is not
/// The queue is not for two processes at once: the directory is locked. Delivery is not exactly once: a delivered task comes again until it
/// is acked, also after a crash.
///
/// ```
/// use std::time::Duration;
/// use tickwheel_queue::{Ack, Key, Lease, Put, Queue, QueueName, TokenAnswer};
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("queue");
/// let queue = Queue::open(&directory)?;
/// let close = QueueName::new("close")?;
///
/// // In half an hour; the key is the handle to find, move or cancel it by.
/// let put = Put::new(&close, Key::new("order:1")?).after(Duration::from_secs(1_800)).payload(b"1".to_vec());
/// let stored = queue.put(put).wait()?;
/// assert!(stored.created);
///
/// // Another one now, for a worker.
/// queue.put(Put::new(&close, Key::new("order:2")?)).wait()?;
/// let delivered = queue.lease(Lease::new(&close), Duration::from_secs(20)).wait()?;
/// assert_eq!(delivered[0].key.as_str(), "order:2");
/// let answers = queue.ack(Ack::new(&close, [delivered[0].token])).wait()?;
/// assert_eq!(answers, [TokenAnswer::Acked]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Queue {
    handle: Arc<Handle>,
}

/// The part that all clones share. It is dropped with the last clone.
#[derive(Debug)]
struct Handle {
    messages: Sender<Message>,
    calls: AtomicU64,
    time: Arc<Mutex<Time>>,
    shared: Arc<Shared>,
    source: Source,
    thread: Mutex<Option<JoinHandle<()>>>,
    opened: Opened,
}

impl Queue {
    /// Opens the queue in `directory`, with default options. The directory is made if it does not exist. Returns when the queue is
    /// recovered and all that is near is in memory.
    ///
    /// # Errors
    /// [`OpenError`]: locked by another process, of a newer format, damaged, or not accessible.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::options().open(directory)
    }

    /// Returns the choices that can be made before a queue is opened.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn new(
        messages: Sender<Message>,
        time: Arc<Mutex<Time>>,
        shared: Arc<Shared>,
        source: Source,
        thread: JoinHandle<()>,
        opened: Opened,
    ) -> Self {
        let thread = Mutex::new(Some(thread));
        let handle = Handle { messages, calls: AtomicU64::new(1), time, shared, source, thread, opened };
        Self { handle: Arc::new(handle) }
    }

    /// The shard that has this queue. A directory has one shard.
    #[must_use]
    pub fn shard_of(&self, queue: &QueueName) -> ShardId {
        Router::ONE.of_queue(queue)
    }

    /// Schedules a task.
    pub fn put(&self, put: Put) -> Pending<Stored, PutError> {
        let now = self.time_now();
        let put = Put { due: counted_from(now, put.due), asked_at: Some(now.wall), ..put };
        self.call(put)
    }

    /// Returns a task as it stands.
    pub fn get(&self, get: Get) -> Pending<TaskView, GetError> {
        self.call(get)
    }

    /// Reschedules a task or gives it another body.
    pub fn patch(&self, patch: Patch) -> Pending<TaskView, PatchError> {
        let now = self.time_now();
        let patch = Patch { due: patch.due.map(|due| counted_from(now, due)), ..patch };
        self.call(patch)
    }

    /// Ends a task. After `Ok(Cancelled)` no delivery of it ever starts.
    pub fn cancel(&self, cancel: Cancel) -> Pending<Cancelled, CancelError> {
        self.call(cancel)
    }

    /// Takes ready tasks to work on. If none is ready, the call waits for at most `wait`, in real time. Zero answers at once, and
    /// [`Duration::MAX`] waits until a task is ready.
    pub fn lease(&self, lease: Lease, wait: Duration) -> Pending<Vec<Leased>, Unavailable> {
        let lease = Lease { wait: !wait.is_zero(), ..lease };
        let (call, receiver) = self.send(lease.command(), wait);
        Pending::new(receiver, opened::<Lease>, Some((self.handle.messages.clone(), call)))
    }

    /// Ends tasks: their work is done. There is one answer for each token, in the order of the tokens. An ack may be sent again if its
    /// answer was lost: the second ack gets `acked` as the first did.
    pub fn ack(&self, ack: Ack) -> Pending<Vec<TokenAnswer>, Unavailable> {
        self.call(ack)
    }

    /// Gives leases back. There is one answer for each token, in the order of the tokens.
    pub fn nack(&self, nack: Nack) -> Pending<Vec<TokenAnswer>, NackError> {
        self.call(nack)
    }

    /// Gives a dead task another life: it is ready at once, and its attempts are counted from 0 again.
    pub fn redrive(&self, redrive: Redrive) -> Pending<TaskView, RedriveError> {
        self.call(redrive)
    }

    /// Returns a task, or acts on it, by its id alone.
    ///
    /// ```
    /// use tickwheel_queue::{Act, Acted, ById, Key, Put, Queue, QueueName};
    /// # let queue = Queue::options().open_memory()?;
    /// let close = QueueName::new("close")?;
    /// let put = Put::new(&close, Key::new("order:1")?).after(std::time::Duration::from_secs(1_800));
    /// let id = queue.put(put).wait()?.task.id;
    /// let Acted::Task(task) = queue.by_id(ById { id, act: Act::Run, within: None, if_version: None, worker: None }).wait()? else { panic!("a task") };
    /// assert_eq!(task.key.as_str(), "order:1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_id(&self, by_id: ById) -> Pending<Acted, ByIdError> {
        self.call(by_id)
    }

    /// Lets a task run now, or takes it from its worker.
    ///
    /// ```
    /// use tickwheel_queue::{ByKey, Key, KeyAct, Put, Queue, QueueName, State};
    /// # let queue = Queue::options().open_memory()?;
    /// let (close, key) = (QueueName::new("close")?, Key::new("order:1")?);
    /// queue.put(Put::new(&close, key.clone()).after(std::time::Duration::from_secs(1_800))).wait()?;
    /// let run = ByKey { queue: close, key, act: KeyAct::Run, if_version: None };
    /// assert_eq!(queue.by_key(run).wait()?.state, State::Ready);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_key(&self, by_key: ByKey) -> Pending<TaskView, ByKeyError> {
        self.call(by_key)
    }

    /// Gives deliveries back as if they had not been made: the tasks are ready again in their old places, and the attempts do not count.
    /// Tokens that hold nothing have no effect.
    pub fn give_back(&self, tokens: Vec<Token>) {
        // The thread may have ended; then a stop has written the leases down.
        let _ = self.handle.messages.send(Message::Undelivered(tokens));
    }

    /// Keeps a queue in existence, empty or not, until the returned value is dropped.
    #[must_use]
    pub fn use_queue(&self, name: &QueueName) -> InUse {
        // The thread may have ended. Then there are no queues any more.
        let _ = self.handle.messages.send(Message::Use(name.clone()));
        InUse { name: name.clone(), messages: self.handle.messages.clone() }
    }

    /// Makes leases longer. There is one answer for each token, in the order of the tokens.
    pub fn extend(&self, extend: Extend) -> Pending<Vec<TokenAnswer>, Unavailable> {
        self.call(extend)
    }

    /// Returns one page of the running leases, in the order in which they began.
    ///
    /// ```
    /// use tickwheel_queue::{Key, Lease, ListLeases, Put, Queue, QueueName};
    /// # let queue = Queue::options().open_memory()?;
    /// let mail = QueueName::new("mail")?;
    /// queue.put(Put::new(&mail, Key::new("hello")?)).wait()?;
    /// let lease = Lease { worker: Some("mailer-1".into()), ..Lease::new(&mail) };
    /// queue.lease(lease, std::time::Duration::ZERO).wait()?;
    /// let page = queue.leases(ListLeases { queue: None, worker: None, after: None, max: 100 }).wait()?;
    /// assert_eq!((page.leases[0].key.as_str(), page.leases[0].worker.as_deref()), ("hello", Some("mailer-1")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn leases(&self, list: ListLeases) -> Pending<LeasePage, Unavailable> {
        self.call(list)
    }

    /// Returns one page of the live tasks of a queue.
    pub fn list(&self, list: List) -> Pending<TaskPage, Unavailable> {
        self.call(list)
    }

    /// Returns one page of the tasks of all queues in one order of time: a live task stands at its due time, a dead task at the time when
    /// it is forgotten. An export of a store uses it.
    pub fn all_tasks(&self, list: ListAllTasks) -> Pending<TaskPage, Unavailable> {
        self.call(list)
    }

    /// Brings tasks from another store, each as it stood there, in their order. Stops at the first task that is refused.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tickwheel_queue::{Body, Existing, Extra, ImportTask, ImportTasks, Key, OnLease, Queue, QueueName, Timestamp};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// let task = ImportTask {
    ///     id: 7,
    ///     queue: QueueName::new("close")?,
    ///     key: Key::new("order:1")?,
    ///     due_at: queue.now(),
    ///     put_at: Timestamp::EPOCH,
    ///     priority: 1024,
    ///     attempts: 2,
    ///     body: Arc::new(Body::bytes(*b"1")),
    ///     extra: Extra::default(),
    /// };
    /// let import = ImportTasks { tasks: vec![task], existing: Existing::Refuse, on_lease: OnLease::Refuse, ids_below: Some(8) };
    /// let imported = queue.import(import).wait()?;
    /// assert_eq!((imported.outcomes.len(), imported.refused), (1, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn import(&self, import: ImportTasks) -> Pending<Imported, Unavailable> {
        self.call(import)
    }

    /// Brings a schedule from another store, with how far it has come there.
    pub fn import_schedule(&self, import: ImportSchedule) -> Pending<ImportOutcome, ScheduleError> {
        self.call(import)
    }

    /// How many tasks fall due in each bucket of time, in one queue or in all. Cost for all queues: about one look at each 16 KiB of far
    /// tasks, and a read of those that lie over an edge of a bucket. Cost for one queue: a read of all far tasks in the span. Other calls
    /// are served meanwhile.
    pub fn forecast(&self, forecast: Forecast) -> Pending<ForecastView, Unavailable> {
        self.call(forecast)
    }

    /// Returns one page of the queues with exact counts of their tasks, in the order of their names. Cost: a look at
    /// [`QUEUES_PAGE_MAX`](crate::QUEUES_PAGE_MAX) queues at most, however many tasks they have.
    ///
    /// ```
    /// use tickwheel_queue::{ListQueues, Put, Queue, QueueName};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// for name in ["a", "b"] {
    ///     queue.put(Put::without_key(&QueueName::new(name)?)).wait()?;
    /// }
    /// let first = queue.queues(ListQueues { max: 1, ..ListQueues::default() }).wait()?;
    /// assert_eq!(first.queues[0].queue.as_str(), "a");
    /// let second = queue.queues(ListQueues { after: first.next, ..ListQueues::default() }).wait()?;
    /// assert_eq!(second.queues[0].queue.as_str(), "b");
    /// assert!(second.next.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queues(&self, list: ListQueues) -> Pending<QueuePage, Unavailable> {
        self.call(list)
    }

    /// Returns one queue: the counts of its tasks, and its settings. A queue that was never used has no tasks and no settings.
    pub fn queue(&self, name: &QueueName) -> Pending<Box<QueueView>, Unavailable> {
        self.call(GetQueue(name.clone()))
    }

    /// Configures how a queue hands its tasks out: limits, a rate, a pause. The settings stay when the queue's tasks are gone, until
    /// [`QueueChange::Delete`](tickwheel_engine::QueueChange::Delete) forgets the queue.
    ///
    /// ```
    /// use tickwheel_queue::{ChangeQueue, Lease, Put, Queue, QueueChange, QueueName, QueueSettings};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// let exports = QueueName::new("exports")?;
    /// let settings = QueueSettings { max_in_flight: Some(1), ..QueueSettings::default() };
    /// let change = QueueChange::Settings(settings);
    /// queue.change_queue(ChangeQueue { queue: exports.clone(), change }).wait()?;
    /// for _ in 0..3 {
    ///     queue.put(Put::without_key(&exports)).wait()?;
    /// }
    /// let lease = Lease::new(&exports).max(3);
    /// assert_eq!(queue.lease(lease, std::time::Duration::ZERO).wait()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn change_queue(&self, change: ChangeQueue) -> Pending<(), QueueError> {
        self.call(change)
    }

    /// Configures a schedule: at each of its instants a task is made with the key `name@instant`.
    ///
    /// A schedule that is put again unchanged is left alone, so a program may put its schedules at every start.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tickwheel_queue::{Cadence, Lease, PutSchedule, Queue, QueueName, Schedule, ScheduleName};
    ///
    /// let queue = Queue::options().virtual_clock().open_memory()?;
    /// let reports = QueueName::new("reports")?;
    /// let schedule = Arc::new(Schedule::new(Cadence::Every { ms: 3_600_000 }));
    /// let name = ScheduleName::new("hourly")?;
    /// queue.put_schedule(PutSchedule::new(&reports, name, schedule)).wait()?;
    /// queue.advance(Duration::from_secs(2 * 3_600)).wait()?;
    /// let made = queue.lease(Lease::new(&reports).max(10), Duration::ZERO).wait()?;
    /// assert_eq!(made.len(), 2);
    /// assert!(made[0].key.as_str().starts_with("hourly@"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put_schedule(&self, put: PutSchedule) -> Pending<StoredSchedule, ScheduleError> {
        self.call(put)
    }

    /// Deletes a schedule. The tasks that it has made stay.
    pub fn delete_schedule(&self, delete: DeleteSchedule) -> Pending<(), ScheduleError> {
        self.call(delete)
    }

    /// Returns a schedule as it stands.
    pub fn schedule(&self, get: GetSchedule) -> Pending<ScheduleView, ScheduleError> {
        self.call(get)
    }

    /// Returns one page of the schedules of a queue, in the order of their names.
    pub fn schedules(&self, list: ListSchedules) -> Pending<Vec<ScheduleView>, Unavailable> {
        self.call(list)
    }

    /// Returns one page of the schedules of all queues, in the order of their queues and then of their names.
    pub fn all_schedules(&self, list: ListAllSchedules) -> Pending<Vec<ScheduleView>, Unavailable> {
        self.call(list)
    }

    /// Keeps a new job, and answers with its number. A job is a number and a value that only its owner understands. A job is kept like a
    /// task, but in no queue. A full disk refuses no job, because jobs free space.
    ///
    /// ```
    /// use tickwheel_queue::Queue;
    ///
    /// let queue = Queue::options().open_memory()?;
    /// let id = queue.begin_job(b"page 1".as_slice()).wait()?;
    /// queue.keep_job(id, b"page 2".as_slice()).wait()?;
    /// assert_eq!(queue.jobs().wait()?, [(id, b"page 2".as_slice().into())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_job(&self, value: impl Into<JobValue>) -> Pending<u64, JobError> {
        self.call(ChangeJob::Begin { value: value.into() })
    }

    /// Gives a job another value. This is also how a job of another store comes in with its number.
    pub fn keep_job(&self, id: u64, value: impl Into<JobValue>) -> Pending<u64, JobError> {
        self.call(ChangeJob::Keep { id, value: value.into() })
    }

    /// Forgets a job, unless its number is the highest one: the next number is counted from that.
    pub fn forget_job(&self, id: u64) -> Pending<u64, JobError> {
        self.call(ChangeJob::Forget { id })
    }

    /// Returns all jobs that are kept, in the order of their numbers.
    pub fn jobs(&self) -> Pending<Vec<(u64, JobValue)>, Unavailable> {
        self.call(ListJobs)
    }

    /// Returns the queue's own figures, and a page of queues. The counts are as exact as possible, also while the queue is read-only.
    pub fn stats(&self, list: ListQueues) -> Pending<Box<Stats>, Unavailable> {
        self.call(GetStats(list))
    }

    /// Returns the wheel of the tasks in memory, to draw it. Cost: a look at the sets of occupied slots, whatever is in the wheel.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use tickwheel_queue::{Put, Queue, QueueName};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// queue.put(Put::without_key(&QueueName::new("mail")?).after(Duration::from_secs(60))).wait()?;
    /// let wheel = queue.wheel().wait()?;
    /// assert_eq!(wheel.tasks, 1);
    /// assert_eq!(wheel.rings.map(|ring| ring.slot_ticks), [1, 256, 65_536, 16_777_216]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wheel(&self) -> Pending<Box<WheelView>, Unavailable> {
        self.call(GetWheel)
    }

    /// Returns the record that a new schedule would have if it was put now, for [`upcoming`](crate::upcoming). Nothing is stored. The
    /// thread of the caller reads the zone of a cron expression and looks for its first instant.
    ///
    /// # Errors
    /// The errors of a put: the schedule is invalid, or it never fires. The call does not check whether there is a place for the schedule.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tickwheel_queue::{Cadence, Queue, Schedule, upcoming};
    ///
    /// let queue = Queue::options().virtual_clock().open_memory()?;
    /// let hourly = Schedule::new(Cadence::Every { ms: 3_600_000 });
    /// let first = upcoming(&queue.as_if_put(Arc::new(hourly))?, 1)?;
    /// assert_eq!(first[0].at, queue.now().plus_ms(3_600_000).expect("time goes on"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn as_if_put(&self, schedule: Arc<Schedule>) -> Result<ScheduleRecord, ScheduleError> {
        as_if_put(schedule, self.time_now())
    }

    /// The believed wall time, rounded down to the millisecond.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.time_now().wall
    }

    /// When a delay that begins now is over, rounded up to the millisecond; `None` beyond the end of time. Tasks that are put, or moved, to
    /// this one instant are due together, however long the calls take.
    #[must_use]
    pub fn due_after(&self, delay_ms: u64) -> Option<Timestamp> {
        self.time_now().due_after(delay_ms)
    }

    /// How the queue's opening went.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.handle.opened
    }

    /// How the queue is.
    #[must_use]
    pub fn health(&self) -> Health {
        self.handle.shared.health()
    }

    /// How long commits took since the start.
    #[must_use]
    pub fn commit_seconds(&self) -> CommitSeconds {
        self.handle.shared.commits()
    }

    /// Moves a virtual clock by `by`, wake by wake: everything that falls due on the way becomes ready at its own instant. Answers with the
    /// new time when that is committed.
    ///
    /// # Errors
    /// [`AdvanceError`]: the clock is real, it is being moved already, or it cannot go that far.
    pub fn advance(&self, by: Duration) -> Advancing {
        self.start_advance(Goal::By(by))
    }

    /// Moves a virtual clock to `target`. An instant before now leaves the clock where it is.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn advance_to(&self, target: Timestamp) -> Advancing {
        self.start_advance(Goal::To(target))
    }

    /// Moves a virtual clock to the first instant at which a task falls due, at most to `limit`. If nothing is left to fall due and `limit`
    /// is [`Timestamp::MAX`], the clock stays.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn advance_to_next(&self, limit: Timestamp) -> Advancing {
        self.start_advance(Goal::NextFire(limit))
    }

    /// Copies the directory to `to`, which must be absent or empty, while calls go on. The calling thread makes and syncs the copy. The
    /// copy has everything that was acknowledged before the call. Until it is whole its name is `<to>.unfinished`. The copy takes the space
    /// of one more directory, and the log is kept meanwhile. If calls are answered before they are written, the copy lacks the changes that
    /// are not written yet.
    ///
    /// A copy opens like any directory, and [`restore`](crate::backup::restore) checks every record of it and copies it back.
    ///
    /// # Errors
    /// [`BackupError`]: the tasks are in memory, another backup is under way, `to` has something in it, a file cannot be read or
    /// written, or the queue closed meanwhile.
    ///
    /// ```
    /// use tickwheel_queue::{Key, Put, Queue, QueueName};
    ///
    /// # let place = tempfile::tempdir()?;
    /// # let place = place.path();
    /// let queue = Queue::open(place.join("tasks"))?;
    /// let close = QueueName::new("close")?;
    /// queue.put(Put::new(&close, Key::new("order:1")?)).wait()?;
    /// queue.backup(place.join("copy"))?;
    /// let copy = Queue::open(place.join("copy"))?;
    /// assert_eq!(copy.queues(tickwheel_queue::ListQueues::default()).wait()?.queues.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<BackupReport, BackupError> {
        self.handle.source.copy_to(to.as_ref(), &self.handle.messages)
    }

    /// Copies the directory to `to` as [`backup`](Self::backup) does, but so that the queue's callers hardly notice. The work runs on a
    /// thread of its own with the lowest priority, in small pieces that are synced one by one. Its rests grow if the disk is busy. Then it
    /// reads and checks every record of the copy, writes the [`Manifest`](crate::backup::Manifest), and gives the copy its name. The call
    /// blocks until then. `watch` shows how far the backup is and can stop it. The check takes as much memory as an opening of the
    /// directory.
    ///
    /// # Errors
    /// [`BackupError`]: the errors of [`backup`](Self::backup); the backup was stopped, the disk has no space for it, the copy does not
    /// check out, or the thread of the backup panicked.
    ///
    /// ```
    /// use tickwheel_queue::{Key, Put, Queue, QueueName, backup::BackupWatch};
    ///
    /// # let place = tempfile::tempdir()?;
    /// # let place = place.path();
    /// let queue = Queue::open(place.join("tasks"))?;
    /// queue.put(Put::new(&QueueName::new("close")?, Key::new("order:1")?)).wait()?;
    /// let report = queue.backup_gently(place.join("copy"), &BackupWatch::new())?;
    /// assert_eq!(report.tasks, Some(1));
    /// assert!(report.as_of.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backup_gently(
        &self,
        to: impl AsRef<Path>,
        watch: &BackupWatch,
    ) -> Result<BackupReport, BackupError> {
        self.handle.source.copy_gently(to.as_ref(), &self.handle.messages, watch)
    }

    /// Stops gracefully: no new calls are taken, waiting leases get an empty answer, and running leases are written down and go on after
    /// the next opening. Returns when everything is durable and closed. A second call returns when the first one has.
    pub fn close(&self) {
        let _ = self.handle.messages.send(Message::Stop);
        // A second call waits for the lock, and so for the first call.
        let mut thread = self.handle.thread.lock().expect("no thread panics while it holds this");
        if let Some(thread) = thread.take() {
            // The panic hook has reported a panic on the thread. There is nothing left to close.
            let _ = thread.join();
        }
    }

    fn start_advance(&self, goal: Goal) -> Advancing {
        let now_ms = self.now().as_ms();
        let too_far = match goal {
            Goal::By(by) => i64::try_from(by.as_millis()).ok().and_then(|by| now_ms.checked_add(by)),
            Goal::To(target) => Some(target.as_ms()),
            Goal::NextFire(_) => None,
        }
        .map_or(matches!(goal, Goal::By(_)), |target_ms| target_ms > VIRTUAL_END_MS);
        let (advance, receiver) = Advance::new(goal);
        if too_far {
            advance.refuse(AdvanceError::TooFar { limit_ms: VIRTUAL_END_MS });
        } else if let Err(refused) = self.handle.messages.send(Message::Advance(advance))
            && let Message::Advance(advance) = refused.0
        {
            advance.closed();
        }
        Advancing { receiver }
    }

    fn time_now(&self) -> Now {
        self.handle.time.lock().expect("no thread panics while it holds the time").now()
    }

    fn call<C: Call>(&self, call: C) -> Pending<C::Answer, C::Error> {
        let (_, receiver) = self.send(call.command(), Duration::ZERO);
        Pending::new(receiver, opened::<C>, None)
    }

    /// Sends a call with the next number, and returns where its answer comes.
    fn send(&self, command: Command, wait: Duration) -> (CallId, oneshot::Receiver<Delivered>) {
        let call = CallId(self.handle.calls.fetch_add(1, Ordering::Relaxed));
        let (reply, receiver) = oneshot::channel();
        let message = Message::Call { call, command: Box::new(command), wait, reply };
        if let Err(refused) = self.handle.messages.send(message)
            && let Message::Call { command, reply, .. } = refused.0
        {
            let closed = command.unavailable(Unavailable::Closed);
            let _ = reply.send(Delivered::new(closed, self.handle.messages.clone()));
        }
        (call, receiver)
    }
}

/// Returns the result in the answer to a call of this kind.
fn opened<C: Call>(answer: Answer) -> Result<C::Answer, C::Error> {
    C::open(answer).unwrap_or_else(|| unreachable!("an answer has the kind of its call"))
}

/// Counts a delay from the call, and not from its turn on the shard's thread.
fn counted_from(now: Now, due: Due) -> Due {
    match due {
        // Beyond the end of time, the engine refuses the call.
        Due::After { ms } => now.due_after(ms).map_or(due, Due::At),
        Due::Now | Due::At(_) => due,
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
        if let Ok(thread) = self.thread.get_mut()
            && let Some(thread) = thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// A queue that is in use: it is listed and counts what happens in it, whether or not it has tasks.
#[derive(Debug)]
pub struct InUse {
    name: QueueName,
    messages: Sender<Message>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Leave(self.name.clone()));
    }
}

/// A move of a virtual clock under way: `.wait()` for it, or `.await` it.
#[must_use = "the clock has moved only when this says so"]
#[derive(Debug)]
pub struct Advancing {
    receiver: oneshot::Receiver<Result<Timestamp, AdvanceError>>,
}

impl Advancing {
    /// Blocks the thread until the clock has moved.
    ///
    /// # Errors
    /// [`AdvanceError`].
    pub fn wait(self) -> Result<Timestamp, AdvanceError> {
        self.receiver.recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl IntoFuture for Advancing {
    type Output = Result<Timestamp, AdvanceError>;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.receiver.await.unwrap_or_else(|_| Err(gone())) })
    }
}

fn gone() -> AdvanceError {
    AdvanceError::Unavailable(Unavailable::Closed)
}
