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
/// Cheap to clone; all clones are one queue. A call comes back as a [`Pending`], which is waited for or awaited. An answer that
/// reports a change follows the sync that covers it.
///
/// # Order
/// Calls on one key take effect in the order they are made. Calls on different keys that are under way together may pass each
/// other: one that has to look its key up goes after one that need not. To have a put seen by a lease, wait for the put.
///
/// The last clone to be dropped stops the thread gracefully; [`close`](Self::close) does it earlier.
///
/// # What it is not
/// Not for two processes at once: the directory is locked. Not exactly once: a delivered task comes again until it is
/// acked, also after a crash.
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

/// Shared by all clones; dropped with the last.
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
    /// Opens the queue in `directory`, which is made if it is not there, with default options. Returns when it is
    /// recovered and all that is near is in memory.
    ///
    /// # Errors
    /// [`OpenError`]: locked by another process, of a newer format, damaged, or not accessible.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::options().open(directory)
    }

    /// What can be chosen about a queue before it is opened.
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

    /// Looks at a task.
    pub fn get(&self, get: Get) -> Pending<TaskView, GetError> {
        self.call(get)
    }

    /// Reschedules a task or gives it another body.
    pub fn patch(&self, patch: Patch) -> Pending<TaskView, PatchError> {
        let now = self.time_now();
        let patch = Patch { due: patch.due.map(|due| counted_from(now, due)), ..patch };
        self.call(patch)
    }

    /// Ends a task. After `Ok(Cancelled)` no delivery of it starts, for ever.
    pub fn cancel(&self, cancel: Cancel) -> Pending<Cancelled, CancelError> {
        self.call(cancel)
    }

    /// Takes ready tasks to work on. If there are none it waits, at most so long, in real time; zero answers at once, and
    /// [`Duration::MAX`] waits until there is one.
    pub fn lease(&self, lease: Lease, wait: Duration) -> Pending<Vec<Leased>, Unavailable> {
        let lease = Lease { wait: !wait.is_zero(), ..lease };
        let call = self.next_call();
        let receiver = self.send(call, lease.command(), wait);
        Pending::new(receiver, opened::<Lease>, Some((self.handle.messages.clone(), call)))
    }

    /// Ends tasks: their work is done. One answer for each token, in their order. It may be sent again if its answer was lost: a second ack is
    /// told `acked` as the first was.
    pub fn ack(&self, ack: Ack) -> Pending<Vec<TokenAnswer>, Unavailable> {
        self.call(ack)
    }

    /// Gives leases back. One answer for each token, in their order.
    pub fn nack(&self, nack: Nack) -> Pending<Vec<TokenAnswer>, NackError> {
        self.call(nack)
    }

    /// Gives a dead task another life: it is ready at once, with all its attempts before it.
    pub fn redrive(&self, redrive: Redrive) -> Pending<TaskView, RedriveError> {
        self.call(redrive)
    }

    /// Looks at a task, or does something to it, that is known by its id alone.
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

    /// Gives deliveries back as if they had not been made: the tasks are ready again in their old places, and the attempts do not count. Tokens that hold
    /// nothing are left alone.
    pub fn give_back(&self, tokens: Vec<Token>) {
        // The thread may have ended; then a stop has written the leases down.
        let _ = self.handle.messages.send(Message::Undelivered(tokens));
    }

    /// Keeps a queue there, empty or not, until what comes back is dropped.
    #[must_use]
    pub fn use_queue(&self, name: &QueueName) -> InUse {
        // The thread may have ended; then there are no queues any more.
        let _ = self.handle.messages.send(Message::Use(name.clone()));
        InUse { name: name.clone(), messages: self.handle.messages.clone() }
    }

    /// Keeps leases for longer. One answer for each token, in their order.
    pub fn extend(&self, extend: Extend) -> Pending<Vec<TokenAnswer>, Unavailable> {
        self.call(extend)
    }

    /// One page of the leases that run, in the order in which they began.
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

    /// One page of the live tasks of a queue.
    pub fn list(&self, list: List) -> Pending<TaskPage, Unavailable> {
        self.call(list)
    }

    /// One page of the tasks of all queues, live and dead, in the order in which time has to do with them. It is how a store is exported.
    pub fn all_tasks(&self, list: ListAllTasks) -> Pending<TaskPage, Unavailable> {
        self.call(list)
    }

    /// Brings tasks from another store, each as it stood there, in their order and up to the first that is refused.
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

    /// How many tasks fall due when, of a queue or of all. Cost: of all queues, about what it takes to look at each 16 KiB of far tasks and to
    /// read those that stand over an edge of a bucket; of one queue, to read all far tasks in the span. Others are served meanwhile.
    pub fn forecast(&self, forecast: Forecast) -> Pending<ForecastView, Unavailable> {
        self.call(forecast)
    }

    /// One page of the queues with exact counts of their tasks, in the order of their names. Cost: it looks at
    /// [`QUEUES_PAGE_MAX`](crate::QUEUES_PAGE_MAX) queues at most, whatever is in them.
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

    /// One queue: its tasks, counted, and what was laid down about it. One that was never used has no tasks and no settings.
    pub fn queue(&self, name: &QueueName) -> Pending<Box<QueueView>, Unavailable> {
        self.call(GetQueue(name.clone()))
    }

    /// Lays down how a queue hands its tasks out: limits, a rate, a pause. It stays when the queue's tasks are gone, until
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

    /// Lays down what is to be done again and again: at each of its instants a task is made with the key `name@instant`.
    ///
    /// A schedule that is put again as it stands is left alone, so a program may put its schedules whenever it starts.
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

    /// Gives a schedule up. The tasks that it has made stay.
    pub fn delete_schedule(&self, delete: DeleteSchedule) -> Pending<(), ScheduleError> {
        self.call(delete)
    }

    /// Looks at a schedule.
    pub fn schedule(&self, get: GetSchedule) -> Pending<ScheduleView, ScheduleError> {
        self.call(get)
    }

    /// One page of the schedules of a queue, in the order of their names.
    pub fn schedules(&self, list: ListSchedules) -> Pending<Vec<ScheduleView>, Unavailable> {
        self.call(list)
    }

    /// One page of the schedules of all queues, in the order of their queues and then of their names.
    pub fn all_schedules(&self, list: ListAllSchedules) -> Pending<Vec<ScheduleView>, Unavailable> {
        self.call(list)
    }

    /// Keeps a new job, and answers its number. A job is a number and a value that only its owner understands. It is kept like a task, and it
    /// is in no queue. A full disk refuses no job, for jobs are what makes room.
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
        self.change_job(ChangeJob::Begin { value: value.into() })
    }

    /// Gives a job another value. A job of another store comes with its number this way.
    pub fn keep_job(&self, id: u64, value: impl Into<JobValue>) -> Pending<u64, JobError> {
        self.change_job(ChangeJob::Keep { id, value: value.into() })
    }

    /// Forgets a job, unless its number is the highest one: the next number is counted from it.
    pub fn forget_job(&self, id: u64) -> Pending<u64, JobError> {
        self.change_job(ChangeJob::Forget { id })
    }

    fn change_job(&self, change: ChangeJob) -> Pending<u64, JobError> {
        self.call(change)
    }

    /// All jobs that are kept, in the order of their numbers.
    pub fn jobs(&self) -> Pending<Vec<(u64, JobValue)>, Unavailable> {
        self.call(ListJobs)
    }

    /// The queue's own figures, and a page of queues with counts that are as right as may be, also while the queue is read-only.
    pub fn stats(&self, list: ListQueues) -> Pending<Box<Stats>, Unavailable> {
        self.call(GetStats(list))
    }

    /// The wheel of the tasks in memory, to draw it. Cost: it looks at the sets of occupied slots, whatever is in the wheel.
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

    /// The record that a new schedule would have if it was put now, for [`upcoming`](crate::upcoming). Nothing is stored. It reads the zone of a
    /// cron expression, and looks for its first instant, on the thread of the caller.
    ///
    /// # Errors
    /// Those of a put: what the schedule says cannot be, or it never fires. There may be a place for it or not.
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

    /// When a delay is over that begins now, rounded up to the millisecond; `None` where time ends. Tasks that are put, or moved, to this
    /// one instant are due together, however long that takes.
    #[must_use]
    pub fn due_after(&self, delay_ms: u64) -> Option<Timestamp> {
        self.time_now().due_after(delay_ms)
    }

    /// How its opening went.
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

    /// Moves a virtual clock `by` so far, wake by wake: all that falls due on the way becomes ready at its own instant.
    /// Answers with the new time when that is committed.
    ///
    /// # Errors
    /// [`AdvanceError`]: the clock is real, it is being moved already, or it cannot go so far.
    pub fn advance(&self, by: Duration) -> Advancing {
        self.start_advance(Goal::By(by))
    }

    /// Moves a virtual clock to `target`; an earlier instant than now leaves it where it is.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn advance_to(&self, target: Timestamp) -> Advancing {
        self.start_advance(Goal::To(target))
    }

    /// Moves a virtual clock to the first instant at which a task falls due, at most to `limit`. If nothing is left to
    /// fall due and `limit` is [`Timestamp::MAX`], it stays.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn advance_to_next(&self, limit: Timestamp) -> Advancing {
        self.start_advance(Goal::NextFire(limit))
    }

    /// Copies the directory to `to`, which must be absent or empty, while calls go on. The copy is made and synced on this thread and
    /// has all that was acknowledged before the call; until it is whole it is called `<to>.unfinished`. It takes the space of one more
    /// directory, and the log is not let go of meanwhile. Where calls are answered before they are written, what is not written yet is
    /// not in it.
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

    /// Copies the directory to `to` as [`backup`](Self::backup) does, so that those who wait for the queue hardly notice: on a thread of its own
    /// with the lowest priority, in small pieces that are synced one by one, with rests that grow where the disk is busy. Then it reads every
    /// record of the copy and checks it, writes down what the copy is ([`Manifest`](crate::backup::Manifest)), and gives it its name. `watch`
    /// shows how far it is and stops it. It blocks until then. The check takes as much memory as an opening of the directory.
    ///
    /// # Errors
    /// [`BackupError`]: those of [`backup`](Self::backup); it was stopped, the disk has no space for it, or the copy does not check out.
    ///
    /// # Panics
    /// If the work does.
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

    /// Stops gracefully: no new calls, waiting leases answer empty, running leases are written down and go on after the
    /// next opening. Returns when everything is durable and closed. A second call returns when the first one has.
    pub fn close(&self) {
        let _ = self.handle.messages.send(Message::Stop);
        // A second call waits for the lock, and so for the first one.
        let mut thread = self.handle.thread.lock().expect("no thread panics while it holds this");
        if let Some(thread) = thread.take() {
            // A panic on the thread has been reported by its hook; there is nothing left to close.
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
        let number = self.next_call();
        Pending::new(self.send(number, call.command(), Duration::ZERO), opened::<C>, None)
    }

    fn next_call(&self) -> CallId {
        CallId(self.handle.calls.fetch_add(1, Ordering::Relaxed))
    }

    fn send(&self, call: CallId, command: Command, wait: Duration) -> oneshot::Receiver<Delivered> {
        let (reply, receiver) = oneshot::channel();
        let message = Message::Call { call, command: Box::new(command), wait, reply };
        if let Err(refused) = self.handle.messages.send(message)
            && let Message::Call { command, reply, .. } = refused.0
        {
            let closed = command.unavailable(Unavailable::Closed);
            let _ = reply.send(Delivered::new(closed, self.handle.messages.clone()));
        }
        receiver
    }
}

/// The result in the answer to a call of this kind.
fn opened<C: Call>(answer: Answer) -> Result<C::Answer, C::Error> {
    C::open(answer).unwrap_or_else(|| unreachable!("an answer has the kind of its call"))
}

/// A delay begins when the call is made, and not when its turn comes on the shard's thread.
fn counted_from(now: Now, due: Due) -> Due {
    match due {
        // Where time ends the machine says so.
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
