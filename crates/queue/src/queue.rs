//! [`Queue`]: the embedded durable queue.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwheel_engine::{
    Ack, Acted, ById, ByIdError, ByKey, ByKeyError, Cancel, CancelError, Cancelled, ChangeJob, ChangeQueue,
    DeleteSchedule, Due, Extend, Forecast, ForecastView, Get, GetError, GetQueue, GetSchedule, GetStats,
    GetWheel, ImportOutcome, ImportSchedule, ImportTasks, Imported, JobError, JobValue, Lease, LeasePage,
    Leased, List, ListAllSchedules, ListAllTasks, ListJobs, ListLeases, ListQueues, ListSchedules,
    ListTargets, Nack, NackError, Now, Patch, PatchError, Put, PutError, PutSchedule, QUEUES_PAGE_MAX,
    QueueChange, QueueError, QueueName, QueuePage, QueueView, Redrive, RedriveError, SCHEDULES_PAGE_MAX,
    Schedule, ScheduleError, ScheduleRecord, ScheduleView, ShardId, Stats, Stored, StoredSchedule,
    TargetRecord, TaskPage, TaskView, Timestamp, Token, TokenAnswer, Unavailable, WheelView,
};

use tickwheel_store::{PinnedFile, Root};

use crate::backup::{BackupError, BackupReport, BackupWatch};
use crate::clock::time::Time;
use crate::cron::upcoming::{self, as_if_put};
use crate::handle::{Handle, LockedRoot};
use crate::opening::options::{OpenError, Opened, Options};
use crate::panics::Panics;
use crate::shard::CommitSeconds;
use crate::shard::health::Health;
use crate::spanning;
use crate::spanning::shards::{ShardHandle, Shards};
use crate::thread::advance::{Advance, AdvanceError, Advancing, Goal, VIRTUAL_END_MS};
use crate::thread::in_use::InUse;
use crate::thread::pending::Pending;

/// A durable delay queue inside your process: many named queues in one directory.
///
/// A `Queue` is cheap to clone; all clones are one queue. A call returns a [`Pending`], to wait for or to await. By default a change is
/// synced before its answer is sent, see [`Options::ack_level`].
///
/// # Order
/// Calls on one key take effect in the order in which they are made. Calls on different keys that are under way together may take effect
/// in another order: a call whose key has to be read from the store waits for that read. If a lease has to see a put, wait for the answer
/// of the put first.
///
/// When the last clone is dropped, the thread stops gracefully; [`close`](Self::close) stops it earlier. Both wait for the thread, except on
/// the thread itself.
///
/// # What it is not
/// Two processes cannot use one directory at once: the directory is locked. Delivery is not exactly once: a delivered task may come again
/// until it is acked, also after a crash.
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
/// // This task is due in half an hour. Its key serves to find, move or cancel the task.
/// let put = Put::new(&close, Key::new("order:1")?).after(Duration::from_secs(1_800)).payload(b"1".to_vec());
/// let stored = queue.put(put).wait()?;
/// assert!(stored.created);
///
/// // Another task, which is due at once, for a worker.
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

impl Queue {
    /// Opens the queue in `directory`, with default options. The directory is made if it does not exist. Returns when the queue is
    /// recovered and the first scan for near tasks has ended.
    ///
    /// # Errors
    /// [`OpenError`]: the directory is locked by another process, of a newer format, damaged, or not accessible.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::options().open(directory)
    }

    /// Returns the default options, to change them before a queue is opened.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn new(
        shards: Shards,
        (time, panics): (Arc<Mutex<Time>>, Panics),
        (threads, root): (Vec<JoinHandle<()>>, LockedRoot),
        opened: Opened,
    ) -> Self {
        let own = threads.iter().map(|thread| thread.thread().id()).collect();
        let threads = Mutex::new(threads);
        Self { handle: Arc::new(Handle { shards, time, panics, threads, own, root, opened }) }
    }

    /// Keeps the root of the directories of the shards locked until the queue has closed.
    pub(crate) fn below(self, root: Root) -> Self {
        *self.handle.root.lock().expect("no thread panics while it holds the root") = Some(root);
        self
    }

    /// Returns the number of shards, which never changes for a data set.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.handle.shards.router().shards()
    }

    /// Returns the shard that has this queue.
    #[must_use]
    pub fn shard_of(&self, queue: &QueueName) -> ShardId {
        self.handle.shards.router().of_queue(queue)
    }

    /// Puts a task, which becomes ready at its due time.
    pub fn put(&self, put: Put) -> Pending<Stored, PutError> {
        let now = self.time_now();
        let put = Put { due: counted_from(now, put.due), asked_at: Some(now.latest()), ..put };
        self.handle.shards.of_queue(&put.queue).call(put)
    }

    /// Returns the present state of a task.
    pub fn get(&self, get: Get) -> Pending<TaskView, GetError> {
        self.handle.shards.of_queue(&get.queue).call(get)
    }

    /// Moves a task to another due time, or gives it another body, priority or other properties.
    pub fn patch(&self, patch: Patch) -> Pending<TaskView, PatchError> {
        let now = self.time_now();
        let patch = Patch { due: patch.due.map(|due| counted_from(now, due)), ..patch };
        self.handle.shards.of_queue(&patch.queue).call(patch)
    }

    /// Ends a task. After `Ok(Cancelled)` no delivery of it ever starts.
    pub fn cancel(&self, cancel: Cancel) -> Pending<Cancelled, CancelError> {
        self.handle.shards.of_queue(&cancel.queue).call(cancel)
    }

    /// Leases ready tasks. If no task is ready, the call waits for at most `wait`, in real time. With a `wait` of zero the call is answered
    /// at once; with [`Duration::MAX`] it waits until a task is ready.
    pub fn lease(&self, lease: Lease, wait: Duration) -> Pending<Vec<Leased>, Unavailable> {
        self.handle.shards.lease(lease, wait)
    }

    /// Ends tasks whose work is done. There is one answer for each token, in the order of the tokens. If the answer was lost, the ack may
    /// be sent again: the second ack gets `acked`, as the first did.
    pub fn ack(&self, ack: Ack) -> Pending<Vec<TokenAnswer>, Unavailable> {
        self.handle.shards.of_queue(&ack.queue).call(ack)
    }

    /// Ends leases without an ack: a task is tried again or becomes dead. There is one answer for each token, in the order of the tokens.
    pub fn nack(&self, nack: Nack) -> Pending<Vec<TokenAnswer>, NackError> {
        self.handle.shards.of_queue(&nack.queue).call(nack)
    }

    /// Makes a dead task live again: the task is ready at once, and its attempts are counted from 0 again.
    pub fn redrive(&self, redrive: Redrive) -> Pending<TaskView, RedriveError> {
        self.handle.shards.of_queue(&redrive.queue).call(redrive)
    }

    /// Returns a task, or acts on it. The call names the task by its id, without queue and key.
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
        self.handle.shards.of_id(by_id.id).call(by_id)
    }

    /// Makes a task due now, or takes it from its worker. The call names the task by queue and key.
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
        self.handle.shards.of_queue(&by_key.queue).call(by_key)
    }

    /// Gives leased tasks back as if they had not been delivered: the tasks are ready again in their old places in the line, and the
    /// attempts do not count. A token whose lease has ended has no effect.
    pub fn give_back(&self, tokens: Vec<Token>) {
        self.handle.shards.give_back(tokens);
    }

    /// Keeps a queue in existence, with or without tasks, until the returned value is dropped.
    #[must_use]
    pub fn use_queue(&self, name: &QueueName) -> InUse {
        InUse::new(name.clone(), self.handle.shards.of_queue(name).mailbox().clone())
    }

    /// Gives running leases a new end, counted from now. There is one answer for each token, in the order of the tokens.
    pub fn extend(&self, extend: Extend) -> Pending<Vec<TokenAnswer>, Unavailable> {
        self.handle.shards.of_queue(&extend.queue).call(extend)
    }

    /// Returns one page of the leases that run now, in the order in which they began. With several shards, one shard follows the other.
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
        match &list.queue {
            Some(queue) => self.handle.shards.of_queue(queue).call(list),
            None => self.handle.shards.in_turn(list),
        }
    }

    /// Returns one page of the live tasks of a queue, in the order of their due times.
    pub fn list(&self, list: List) -> Pending<TaskPage, Unavailable> {
        self.handle.shards.of_queue(&list.queue).call(list)
    }

    /// Returns one page of the tasks of all queues in one order of time. The instant of a live task is its due time. The instant of a dead
    /// task is the time at which the task is forgotten. With several shards, one shard follows the other. An export of a store uses this call.
    pub fn all_tasks(&self, list: ListAllTasks) -> Pending<TaskPage, Unavailable> {
        self.handle.shards.in_turn(list)
    }

    /// Adds tasks from another store, each with the due time, attempts and other properties that it had in that store. The ids are kept if
    /// [`ImportTasks::ids_below`] allows it. The order of the tasks is kept. Stops at the first task that is refused. With several shards and
    /// without [`Existing::Refuse`](crate::Existing::Refuse), tasks of other shards may be imported although they are behind the refused one;
    /// another import of them changes nothing.
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
        self.handle.shards.import(import)
    }

    /// Adds a schedule from another store, with the progress that it had in that store.
    pub fn import_schedule(&self, import: ImportSchedule) -> Pending<ImportOutcome, ScheduleError> {
        self.handle.shards.of_queue(&import.queue).call(import)
    }

    /// Returns how many tasks fall due in each bucket of time, in one queue or in all queues. Cost for all queues: about one look at each
    /// 16 KiB of far tasks, and a read of the blocks that cross an edge of a bucket. Cost for one queue: a read of all far tasks in the
    /// time of the forecast. Other calls are served meanwhile.
    pub fn forecast(&self, forecast: Forecast) -> Pending<ForecastView, Unavailable> {
        match &forecast.queue {
            Some(queue) => self.handle.shards.of_queue(queue).call(forecast),
            None => {
                // All shards begin with the same bucket.
                let from = forecast.from.or_else(|| Some(self.now()));
                self.handle.shards.of_all(Forecast { from, ..forecast }, spanning::forecast)
            }
        }
    }

    /// Returns one page of the queues with exact counts of their tasks, in the order of the queues' names. Cost: a look at
    /// [`QUEUES_PAGE_MAX`](crate::QUEUES_PAGE_MAX) queues at most, whatever the number of tasks.
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
        let max = list.max.clamp(1, QUEUES_PAGE_MAX);
        self.handle.shards.of_all(list, move |one, other| spanning::queue_page(max, one, other))
    }

    /// Returns one queue: the counts of its tasks, and its settings. A queue that was never used has no tasks and no settings.
    pub fn queue(&self, name: &QueueName) -> Pending<Box<QueueView>, Unavailable> {
        self.handle.shards.of_queue(name).call(GetQueue(name.clone()))
    }

    /// Configures how a queue hands its tasks out: limits, a rate, a pause. The settings stay when all tasks of the queue are gone.
    /// [`QueueChange::Delete`](tickwheel_engine::QueueChange::Delete) removes them.
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
        self.handle.shards.of_queue(&change.queue).call(change)
    }

    /// Gives a queue a target, replaces its target, or removes it (`None`). A target is a value that only its owner understands, and a
    /// retry policy for the tasks of the queue that have no other. It is durable, and stays while the queue is paused, drained or
    /// configured anew; [`QueueChange::Delete`] removes it. At most [`TARGETS_MAX`](crate::TARGETS_MAX) queues have one.
    ///
    /// ```
    /// use tickwheel_queue::{Queue, QueueName, Retry, TargetRecord};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// let close = QueueName::new("close")?;
    /// let retry = Some(Retry { max_attempts: Some(16), backoff: None });
    /// let target = TargetRecord { value: b"https://shop.example/close".as_slice().into(), retry };
    /// queue.change_target(&close, Some(target.clone())).wait()?;
    /// assert_eq!(queue.queue(&close).wait()?.target.as_deref(), Some(&target));
    /// queue.change_target(&close, None).wait()?;
    /// assert!(queue.targets().wait()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn change_target(&self, name: &QueueName, target: Option<TargetRecord>) -> Pending<(), QueueError> {
        self.change_queue(ChangeQueue { queue: name.clone(), change: QueueChange::Target(target) })
    }

    /// Returns the targets of all queues that have one, in the order of the names of the queues. Cost: a look at each target, without a
    /// copy of its value.
    ///
    /// ```
    /// use tickwheel_queue::{Queue, QueueName, TargetRecord};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// for name in ["mail", "close"] {
    ///     let target = TargetRecord { value: name.as_bytes().into(), retry: None };
    ///     queue.change_target(&QueueName::new(name)?, Some(target)).wait()?;
    /// }
    /// let targets = queue.targets().wait()?;
    /// assert_eq!(targets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["close", "mail"]);
    /// assert_eq!(*targets[0].1.value, *b"close");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn targets(&self) -> Pending<Vec<(QueueName, Arc<TargetRecord>)>, Unavailable> {
        self.handle.shards.of_all(ListTargets, spanning::targets)
    }

    /// Configures a schedule: at each of its instants a task is made with the key `name@instant`.
    ///
    /// If the schedule exists already and is the same, nothing changes. So a program may put its schedules at every start. The calling thread
    /// reads a cron expression and loads its zone; an error in them is [`ScheduleError::Cadence`].
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use tickwheel_queue::{Cadence, Lease, PutSchedule, Queue, QueueName, Schedule, ScheduleName};
    ///
    /// let queue = Queue::options().virtual_clock().open_memory()?;
    /// let reports = QueueName::new("reports")?;
    /// let hourly = Arc::new(Schedule::new(Cadence::Every { ms: 3_600_000 }));
    /// queue.put_schedule(PutSchedule::new(&reports, ScheduleName::new("hourly")?, hourly)).wait()?;
    /// queue.advance(Duration::from_secs(2 * 3_600)).wait()?;
    /// let made = queue.lease(Lease::new(&reports).max(10), Duration::ZERO).wait()?;
    /// assert_eq!(made.len(), 2);
    /// assert!(made[0].key.as_str().starts_with("hourly@"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put_schedule(&self, put: PutSchedule) -> Pending<StoredSchedule, ScheduleError> {
        let checked = upcoming::checked(&put.schedule);
        checked.map_or_else(Pending::refused, |_| self.handle.shards.of_queue(&put.queue).call(put))
    }

    /// Deletes a schedule. The tasks that it has made stay.
    pub fn delete_schedule(&self, delete: DeleteSchedule) -> Pending<(), ScheduleError> {
        self.handle.shards.of_queue(&delete.queue).call(delete)
    }

    /// Returns the present state of a schedule.
    pub fn schedule(&self, get: GetSchedule) -> Pending<ScheduleView, ScheduleError> {
        self.handle.shards.of_queue(&get.queue).call(get)
    }

    /// Returns one page of the schedules of a queue, in the order of their names.
    pub fn schedules(&self, list: ListSchedules) -> Pending<Vec<ScheduleView>, Unavailable> {
        self.handle.shards.of_queue(&list.queue).call(list)
    }

    /// Returns one page of the schedules of all queues, in the order of their queues and then of their names.
    pub fn all_schedules(&self, list: ListAllSchedules) -> Pending<Vec<ScheduleView>, Unavailable> {
        let max = list.max.clamp(1, SCHEDULES_PAGE_MAX);
        self.handle.shards.of_all(list, move |one, other| spanning::schedule_page(max, one, other))
    }

    /// Keeps a new job, and answers with the job's number. A job is a number and a value that only the owner of the job understands. A job
    /// is durable like a task, but is in no queue. A full disk refuses no job, because jobs free space.
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
        self.handle.shards.of_jobs().call(ChangeJob::Begin { value: value.into() })
    }

    /// Gives a job another value. A job of another store, which is not kept yet, is added with its number.
    pub fn keep_job(&self, id: u64, value: impl Into<JobValue>) -> Pending<u64, JobError> {
        self.handle.shards.of_jobs().call(ChangeJob::Keep { id, value: value.into() })
    }

    /// Forgets a job. The job with the highest number is refused, because the number of the next job is counted from it.
    pub fn forget_job(&self, id: u64) -> Pending<u64, JobError> {
        self.handle.shards.of_jobs().call(ChangeJob::Forget { id })
    }

    /// Returns all jobs that are kept, in the order of their numbers.
    pub fn jobs(&self) -> Pending<Vec<(u64, JobValue)>, Unavailable> {
        self.handle.shards.of_jobs().call(ListJobs)
    }

    /// Returns the figures of all shards together, and one page of the queues. The counts are as exact as possible, also
    /// after the store has failed.
    pub fn stats(&self, list: ListQueues) -> Pending<Box<Stats>, Unavailable> {
        let max = list.max.clamp(1, QUEUES_PAGE_MAX);
        self.handle.shards.of_all(GetStats(list), move |one, other| spanning::stats(max, one, other))
    }

    /// Returns the figures of one shard, and a page of its queues: see [`health_of_shards`](Self::health_of_shards) for the shards. So a caller can
    /// read the figures of the shards that answer, and add them up with [`sum_stats`](Self::sum_stats).
    ///
    /// ```
    /// use tickwheel_queue::{ListQueues, Queue};
    ///
    /// let queue = Queue::options().shards(2).open_memory()?;
    /// let (list, shards) = (ListQueues::default(), queue.health_of_shards());
    /// let asked = shards.into_iter().map(|(shard, _)| queue.stats_of(shard, list.clone()).wait());
    /// assert_eq!(Queue::sum_stats(&list, asked.flatten()), queue.stats(list).wait()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats_of(&self, shard: ShardId, list: ListQueues) -> Pending<Box<Stats>, Unavailable> {
        self.handle.shards.of_shard(shard).call(GetStats(list))
    }

    /// Adds the figures of several shards up, and makes one page of the queues of theirs. Without shards, all figures are 0.
    #[must_use]
    pub fn sum_stats(list: &ListQueues, of_shards: impl IntoIterator<Item = Box<Stats>>) -> Box<Stats> {
        let max = list.max.clamp(1, QUEUES_PAGE_MAX);
        of_shards.into_iter().reduce(|one, other| spanning::stats(max, one, other)).unwrap_or_default()
    }

    /// Returns a picture of the wheel of the tasks in memory. Cost: a look at the sets of occupied slots, whatever the number of tasks.
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
        self.handle.shards.of_all(GetWheel, spanning::wheel)
    }

    /// Returns the record that a new schedule would have if it was put now, for [`upcoming`](crate::upcoming). Nothing is stored. For a
    /// cron expression, the calling thread loads the zone and searches for the first instant.
    ///
    /// # Errors
    /// The errors of a put: the schedule is invalid, or it never fires. The call does not check the limit of the number of schedules.
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

    /// Returns the believed wall clock, rounded down to the millisecond.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.time_now().wall
    }

    /// Returns the instant at which a delay of `delay_ms` that begins now is over, rounded up to the millisecond; `None` beyond the end of
    /// time. The instant may be later than [`now`](Self::now) and the delay together, because a clock of a database is not known exactly. Tasks that are put to, or moved to, this one instant are due together, whatever time the calls take.
    #[must_use]
    pub fn due_after(&self, delay_ms: u64) -> Option<Timestamp> {
        self.time_now().due_after(delay_ms)
    }

    /// Returns the report of the queue's opening.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.handle.opened
    }

    /// Returns the instance number of the queue: 32 bits that follow from the secret of its directory. The number is the same after each
    /// opening of the directory, and it tells nothing about the secret. Other systems may know a task by the instance and the id of the
    /// task. Two directories have different numbers, except by chance, once in 2^32. A copy of a directory, such as a restored backup,
    /// has the number of the original. A queue in memory has another number at each opening.
    ///
    /// ```
    /// use tickwheel_queue::{Put, Queue, QueueName};
    ///
    /// let queue = Queue::options().open_memory()?;
    /// let task = queue.put(Put::without_key(&QueueName::new("mail")?)).wait()?.task;
    /// let id = format!("tw_{:08x}_{}", queue.instance(), task.id);
    /// assert!(id.starts_with("tw_"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn instance(&self) -> u32 {
        self.handle.opened.instance
    }

    /// Returns the state of the queue.
    #[must_use]
    pub fn health(&self) -> Health {
        Health::of_all(self.handle.shards.all().iter().map(|shard| shard.shared.health()))
    }

    /// Returns the state of each shard, in the order of their numbers.
    ///
    /// ```
    /// use tickwheel_queue::Queue;
    ///
    /// let queue = Queue::options().shards(2).open_memory()?;
    /// let shards = queue.health_of_shards();
    /// assert!(shards.iter().all(|(_, health)| health.ready));
    /// assert_eq!(shards[1].0.to_string(), "shard 1 of 2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn health_of_shards(&self) -> Vec<(ShardId, Health)> {
        let router = self.handle.shards.router();
        router.all().zip(self.handle.shards.all().iter().map(|shard| shard.shared.health())).collect()
    }

    /// Returns the state of the shard that has this queue.
    #[must_use]
    pub fn health_of(&self, queue: &QueueName) -> Health {
        self.handle.shards.health_of(self.shard_of(queue))
    }

    /// Returns the state of the shard that keeps the jobs, see [`begin_job`](Self::begin_job).
    #[must_use]
    pub fn health_of_jobs(&self) -> Health {
        self.handle.shards.health_of(self.handle.shards.router().of_jobs())
    }

    /// Asks each shard for a page of its queues, in the order of the numbers of the shards. So the caller learns which shards answer.
    #[must_use]
    pub fn ask_shards(&self, list: &ListQueues) -> Vec<(ShardId, Pending<QueuePage, Unavailable>)> {
        let router = self.handle.shards.router();
        router.all().map(|id| (id, self.handle.shards.of_shard(id).call(list.clone()))).collect()
    }

    /// Returns how long the commits since the opening took.
    #[must_use]
    pub fn commit_seconds(&self) -> CommitSeconds {
        let mut sum = CommitSeconds::default();
        for shard in self.handle.shards.all() {
            sum.add(&shard.shared.commits());
        }
        sum
    }

    /// Moves a virtual clock by `by`, from wake to wake: every task that falls due on the way becomes ready at its own instant. Answers
    /// with the new time when that time is committed.
    ///
    /// # Errors
    /// [`AdvanceError`]: the clock is real, another call moves the clock now, the target is beyond the last instant of the clock, or the
    /// queue is closed or not owned.
    pub fn advance(&self, by: Duration) -> Advancing {
        self.start_advance(Goal::By(by))
    }

    /// Moves a virtual clock to `target`. If `target` has passed, the clock stays where it is.
    ///
    /// # Errors
    /// The errors of [`advance`](Self::advance).
    pub fn advance_to(&self, target: Timestamp) -> Advancing {
        self.start_advance(Goal::To(target))
    }

    /// Moves a virtual clock to the first instant at which a task falls due, at most to `limit`. If no task will fall due and `limit` is
    /// [`Timestamp::MAX`], the clock stays where it is.
    ///
    /// # Errors
    /// The errors of [`advance`](Self::advance).
    pub fn advance_to_next(&self, limit: Timestamp) -> Advancing {
        self.start_advance(Goal::NextFire(limit))
    }

    /// Moves a virtual clock to the first instant at which the queue has anything to do, at most to `limit`: a task falls due or expires, a
    /// lease ends, a rate lets the next task through. A program that moves the clock with this call can react at each of these instants.
    ///
    /// # Errors
    /// The errors of [`advance`](Self::advance).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel_queue::{Due, Put, Queue, QueueName};
    ///
    /// let queue = Queue::options().virtual_clock().open_memory()?;
    /// let close = QueueName::new("close")?;
    /// queue.put(Put { due: Due::After { ms: 1_800_000 }, ..Put::without_key(&close) }).wait()?;
    /// let start = queue.now();
    /// let limit = start.saturating_plus_ms(86_400_000);
    /// assert_eq!(queue.advance_to_wake(limit).wait()?, start.saturating_plus_ms(1_800_000));
    /// assert_eq!(queue.advance_to_wake(limit).wait()?, limit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_to_wake(&self, limit: Timestamp) -> Advancing {
        self.start_advance(Goal::NextWake(limit))
    }

    /// Copies the directory to `to`, which must be absent or empty, while calls go on. The calling thread makes and syncs the copy. The
    /// copy has everything that was acknowledged before the call. Until the copy is whole, its name is `<to>.unfinished`. The copy takes as
    /// much space as the directory, and the log is not shortened meanwhile. If the queue answers calls before it writes them (see
    /// [`Options::ack_level`]), the copy lacks the changes that are not written yet.
    ///
    /// A copy can be opened like any directory. [`restore`](crate::backup::restore) checks every record of a copy, and copies it to another
    /// directory.
    ///
    /// # Errors
    /// [`BackupError`]: the queue has no directory, another backup is under way, `to` is not empty, a file cannot be read or written, or
    /// the queue closed meanwhile.
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
        let copy_one = |shard: &ShardHandle, to: &Path, stamps: &[PinnedFile]| {
            shard.source.copy_to(to, stamps, shard.caller.mailbox())
        };
        self.handle.shards.copy_to(to.as_ref(), false, copy_one)
    }

    /// Copies the directory to `to` as [`backup`](Self::backup) does, but slowly, so that calls are hardly delayed. The work runs on a
    /// thread of its own with the lowest priority, in small pieces that are synced one by one, with rests in between. On a busy disk the
    /// rests are longer. Afterwards the thread reads and checks every record of the copy, writes the [`Manifest`](crate::backup::Manifest),
    /// and gives the copy its name. The call blocks until then. `watch` shows the progress of the backup and can stop it. The check takes
    /// as much memory as an opening of the directory.
    ///
    /// # Errors
    /// [`BackupError`]: the errors of [`backup`](Self::backup); or the backup was stopped, the disk has too little space, the check found
    /// damage in the copy, or the thread of the backup panicked.
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
        let copy_one = |shard: &ShardHandle, to: &Path, stamps: &[PinnedFile]| {
            shard.source.copy_gently((to, stamps), shard.caller.mailbox(), watch)
        };
        self.handle.shards.copy_to(to.as_ref(), true, copy_one)
    }

    /// Stops gracefully: new calls are refused, waiting leases get an empty answer, and running leases are written down and go on after the
    /// next opening. Returns when everything is durable and the store is closed. A second call waits for the first one.
    ///
    /// A call on a thread of the queue does not wait, because it would wait for itself: a call of the listener to notices, or of a waker. The
    /// queue then stops after the listener or the waker has returned.
    pub fn close(&self) {
        self.handle.close();
    }

    fn start_advance(&self, goal: Goal) -> Advancing {
        let now_ms = self.now().as_ms();
        let too_far = match goal {
            Goal::By(by) => i64::try_from(by.as_millis()).ok().and_then(|by| now_ms.checked_add(by)),
            Goal::To(target) | Goal::NextWake(target) => Some(target.as_ms()),
            Goal::NextFire(limit) => {
                Some(limit).filter(|limit| *limit < Timestamp::MAX).map(Timestamp::as_ms)
            }
        }
        .map_or(matches!(goal, Goal::By(_)), |target_ms| target_ms > VIRTUAL_END_MS);
        let (advance, receiver) = Advance::new(goal, self.handle.panics.clone());
        if too_far {
            advance.refuse(AdvanceError::TooFar { limit_ms: VIRTUAL_END_MS });
        } else {
            // With a virtual clock, all shards have the same thread.
            self.handle.shards.first().caller.mailbox().advance(advance);
        }
        Advancing::new(receiver)
    }

    fn time_now(&self) -> Now {
        self.handle.time.lock().expect("no thread panics while it holds the time").now()
    }
}

/// Turns a delay into an instant. The delay begins now, when the call is made, and not when the shard thread takes the call.
fn counted_from(now: Now, due: Due) -> Due {
    match due {
        // If the instant is beyond the end of time, the delay stays, and the engine refuses the call.
        Due::After { ms } => now.due_after(ms).map_or(due, Due::At),
        Due::Now | Due::At(_) => due,
    }
}
