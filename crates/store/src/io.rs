//! [`Io`]: hands jobs to the disk, and returns their completions.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use crate::disk::{Disk, DiskError, DiskOp};

/// A call to a [`Disk`], with all its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// [`Disk::create`].
    Create(Arc<str>),
    /// [`Disk::write_at`].
    Write {
        /// The file to write to.
        file: Arc<str>,
        /// The offset of the first byte.
        offset: u64,
        /// The bytes to write.
        bytes: Vec<u8>,
    },
    /// [`Disk::write_at`] of zeroes, at most [`ZEROES_MAX`] bytes.
    Zero {
        /// The file to write to.
        file: Arc<str>,
        /// The offset of the first byte.
        offset: u64,
        /// How many zeroes (bytes).
        bytes: usize,
    },
    /// [`Disk::read`]. The bytes that were read are in the completion: fewer than asked for if the file ends before.
    Read {
        /// The file to read from.
        file: Arc<str>,
        /// The offset of the first byte.
        offset: u64,
        /// How many bytes to read.
        bytes: usize,
    },
    /// [`Disk::sync_data`].
    Sync(Arc<str>),
    /// [`Disk::set_len`].
    SetLen {
        /// The file.
        file: Arc<str>,
        /// The new length of the file (bytes).
        bytes: u64,
    },
    /// [`Disk::rename`].
    Rename {
        /// The name that the file has now.
        from: Arc<str>,
        /// The name that the file gets.
        to: Arc<str>,
    },
    /// [`Disk::remove`].
    Remove(Arc<str>),
    /// [`Disk::sync_dir`].
    SyncDir(Arc<str>),
    /// [`Disk::close`].
    Close(Arc<str>),
    /// [`Disk::check_lock`].
    CheckLock,
}

/// The most zeroes that one [`Call::Zero`] writes (bytes).
pub const ZEROES_MAX: usize = 1 << 20;

static ZEROES: [u8; ZEROES_MAX] = [0; ZEROES_MAX];

/// The name of a job until its completion.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JobId(pub u64);

/// Calls that are made in this order, until one fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The name of the job, chosen by the caller of [`Io::submit`].
    pub id: JobId,
    /// The calls.
    pub calls: Vec<Call>,
}

/// The result of a job.
#[derive(Debug)]
pub struct Completion {
    /// The name of the job.
    pub id: JobId,
    /// `Ok` if all calls succeeded. `Err` is the error of the first call that failed, and then no later call was made; or the I/O thread
    /// failed, and it is unknown which calls were made.
    pub result: Result<(), DiskError>,
    /// The bytes that the [`Call::Read`]s of the job read, in the order of the calls.
    pub reads: Vec<Vec<u8>>,
    /// [`Disk::free_bytes`] after the job; 0 if the I/O thread failed.
    pub free_bytes: u64,
}

/// The purpose of a job. Jobs of one lane are done in the order in which they were submitted. Jobs of different lanes may be done at the
/// same time. Such jobs never touch bytes that another of them writes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// A write to the log. A caller may wait for it.
    Commit,
    /// A read. A caller waits for its bytes.
    Read,
    /// Background work, for which a caller seldom waits. Each job is short, because commits and reads are slower while a job of this lane
    /// runs.
    Background,
}

impl Lane {
    const ALL: [Self; 3] = [Self::Commit, Self::Read, Self::Background];
}

/// Hands jobs to a [`Disk`], and returns their completions. An implementation makes the calls of the jobs, and decides nothing else.
pub trait Io<D: Disk> {
    /// Takes the disk over. The store calls `start` once, before any job.
    fn start(&mut self, disk: D);
    /// Submits a job. Jobs of one lane are done in the order in which they were submitted.
    fn submit(&mut self, lane: Lane, job: Job);
    /// Appends the completions that are ready. The completions of one lane are in the order of its jobs.
    fn poll(&mut self, completions: &mut Vec<Completion>);
}

impl Call {
    /// Makes the call on `disk`. The bytes of a read are appended to `reads`.
    ///
    /// # Errors
    /// The error of the disk.
    pub fn make<D: Disk>(&self, disk: &mut D, reads: &mut Vec<Vec<u8>>) -> Result<(), DiskError> {
        match self {
            Self::Create(file) => disk.create(file),
            Self::Write { file, offset, bytes } => disk.write_at(file, *offset, bytes),
            Self::Zero { file, offset, bytes } => disk.write_at(file, *offset, &ZEROES[..*bytes]),
            Self::Read { file, offset, bytes } => {
                let mut into = vec![0; *bytes];
                let count = disk.read(file, *offset, &mut into)?;
                into.truncate(count);
                reads.push(into);
                Ok(())
            }
            Self::Sync(file) => disk.sync_data(file),
            Self::SetLen { file, bytes } => disk.set_len(file, *bytes),
            Self::Rename { from, to } => disk.rename(from, to),
            Self::Remove(file) => disk.remove(file),
            Self::SyncDir(dir) => disk.sync_dir(dir),
            Self::Close(file) => {
                disk.close(file);
                Ok(())
            }
            Self::CheckLock => disk.check_lock(),
        }
    }
}

/// Makes the calls in order, until one fails.
pub(crate) fn run_calls<D: Disk>(
    disk: &mut D,
    calls: &[Call],
    reads: &mut Vec<Vec<u8>>,
) -> Result<(), DiskError> {
    calls.iter().try_for_each(|call| call.make(disk, reads))
}

fn complete<D: Disk>(disk: &mut D, job: &Job) -> Completion {
    let mut reads = Vec::new();
    let result = run_calls(disk, &job.calls, &mut reads);
    Completion { id: job.id, result, reads, free_bytes: disk.free_bytes() }
}

/// Makes the calls on the caller's thread when it is polled. For tests and the simulator, where a crash comes between two known calls.
///
/// One poll does all commits, then all reads, and then at most one background job.
#[derive(Debug)]
pub struct InlineIo<D> {
    disk: Option<D>,
    commits: VecDeque<Job>,
    reads: VecDeque<Job>,
    background: VecDeque<Job>,
}

impl<D: Disk> InlineIo<D> {
    /// Returns an `InlineIo` without a disk; [`Io::start`] hands the disk over.
    #[must_use]
    pub fn new() -> Self {
        Self { disk: None, commits: VecDeque::new(), reads: VecDeque::new(), background: VecDeque::new() }
    }
}

impl<D: Disk> Default for InlineIo<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Disk> Io<D> for InlineIo<D> {
    fn start(&mut self, disk: D) {
        assert!(self.disk.is_none(), "a second disk was handed to one InlineIo");
        self.disk = Some(disk);
    }

    fn submit(&mut self, lane: Lane, job: Job) {
        match lane {
            Lane::Commit => self.commits.push_back(job),
            Lane::Read => self.reads.push_back(job),
            Lane::Background => self.background.push_back(job),
        }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        let Some(disk) = &mut self.disk else { return };
        let jobs = self.commits.drain(..).chain(self.reads.drain(..)).chain(self.background.pop_front());
        for job in jobs {
            completions.push(complete(disk, &job));
        }
    }
}

/// Makes the calls on its own threads, one thread for each lane. Each thread has its own handle to the disk.
///
/// Ground rules: The owner talks to each thread by two channels only, jobs in and completions out, and shares only `notify` with it. The
/// threads call `notify` after they sent a completion, and `notify` must not block. If a call panics, its job and all later jobs of its
/// lane fail. Dropping a `ThreadIo` finishes the jobs that were submitted, ends the threads, and waits for them. When the drop returns, the
/// disk and its lock are gone.
#[derive(Debug)]
pub struct ThreadIo {
    notify: Option<Notify>,
    lanes: Vec<Thread>,
}

/// The thread of one lane, and the channels to it.
#[derive(Debug)]
struct Thread {
    lane: Lane,
    /// The sender of jobs. `None` tells the thread to end.
    jobs: Option<Sender<Job>>,
    completions: Receiver<Completion>,
    handle: Option<JoinHandle<()>>,
    /// Jobs that were submitted and are not completed yet, oldest first. These jobs fail if the thread ends.
    open: VecDeque<JobId>,
}

#[derive(Clone)]
struct Notify(Arc<dyn Fn() + Send + Sync>);

impl core::fmt::Debug for Notify {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Notify")
    }
}

impl ThreadIo {
    /// Returns a `ThreadIo` without threads. Each thread calls `notify` after each completion, to wake the loop that polls the store.
    #[must_use]
    pub fn new(notify: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { notify: Some(Notify(notify.into())), lanes: Vec::new() }
    }
}

impl<D: Disk> Io<D> for ThreadIo {
    /// # Panics
    /// If the operating system cannot start a thread, or if `start` was called before.
    fn start(&mut self, disk: D) {
        let notify = self.notify.take().expect("a second disk was handed to one ThreadIo");
        let hands = [Some(disk.another()), Some(disk.another()), None];
        // The background thread gets the disk itself, with its lock. A drop waits for that thread last.
        let mut disk = Some(disk);
        for (lane, hand) in Lane::ALL.into_iter().zip(hands) {
            let hand = hand.or_else(|| disk.take()).expect("three hands for three lanes");
            self.lanes.push(Thread::start(lane, hand, notify.clone()));
        }
    }

    fn submit(&mut self, lane: Lane, job: Job) {
        let Some(thread) = self.lanes.iter_mut().find(|thread| thread.lane == lane) else { return };
        thread.open.push_back(job.id);
        if let Some(jobs) = &thread.jobs {
            // An error means that the thread ended. Then `poll` returns a failed completion for each open job.
            jobs.send(job).ok();
        }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        for thread in &mut self.lanes {
            thread.poll(completions);
        }
    }
}

impl Thread {
    fn start<D: Disk>(lane: Lane, disk: D, notify: Notify) -> Self {
        let (jobs, job_receiver) = channel();
        let (completion_sender, completions) = channel();
        let name = match lane {
            Lane::Commit => "tickwheel-log",
            Lane::Read => "tickwheel-read",
            Lane::Background => "tickwheel-maintenance",
        };
        let worker = Worker { disk, jobs: job_receiver, completions: completion_sender, notify };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(|| worker.work());
        let handle = Some(spawned.expect("the operating system gives no thread"));
        Self { lane, jobs: Some(jobs), completions, handle, open: VecDeque::new() }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        loop {
            match self.completions.try_recv() {
                Ok(completion) => {
                    self.open.retain(|id| *id != completion.id);
                    completions.push(completion);
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    completions.extend(self.open.drain(..).map(|id| failed(id, "the I/O thread ended")));
                    return;
                }
            }
        }
    }
}

impl Drop for ThreadIo {
    fn drop(&mut self) {
        // One thread after the other: the last one has the lock of the directory. Another process may open the directory when the lock is
        // released, so no other thread may write then.
        for thread in &mut self.lanes {
            thread.jobs = None;
            if let Some(handle) = thread.handle.take() {
                // An error means that the thread panicked outside a call of the disk. The store is gone, so no caller can get the error.
                handle.join().ok();
            }
        }
    }
}

struct Worker<D> {
    disk: D,
    jobs: Receiver<Job>,
    completions: Sender<Completion>,
    notify: Notify,
}

impl<D: Disk> Worker<D> {
    fn work(mut self) {
        let mut broken: Option<String> = None;
        while let Ok(job) = self.jobs.recv() {
            let completion = match &broken {
                Some(why) => failed(job.id, why),
                None => {
                    let done = catch_unwind(AssertUnwindSafe(|| complete(&mut self.disk, &job)));
                    done.unwrap_or_else(|panic| {
                        let why = format!("the I/O thread panicked: {}", panic_text(panic.as_ref()));
                        failed(job.id, broken.insert(why))
                    })
                }
            };
            if self.completions.send(completion).is_err() {
                return;
            }
            (self.notify.0)();
        }
    }
}

fn failed(id: JobId, why: &str) -> Completion {
    let error = DiskError::new(DiskOp::Run, "the data directory", std::io::Error::other(why.to_owned()));
    Completion { id, result: Err(error), reads: Vec::new(), free_bytes: 0 }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}
