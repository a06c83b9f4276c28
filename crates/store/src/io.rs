//! [`Io`]: hands jobs to the disk, and returns their completions.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::disk::{Disk, DiskError, DiskOp};

/// A call to a [`Disk`], with all its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// [`Disk::create`].
    Create(Arc<str>),
    /// [`Disk::open`]. Without a descriptor, nothing is done: the call that needs the file opens it later.
    Open(Arc<str>),
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

/// A call that lacks a descriptor is made again after this time, or when the next job comes.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(100);

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
///
/// A call whose error says that the process [lacks a descriptor](DiskError::lacks_descriptor) has done nothing. So its job has not failed: the
/// lane of the job waits at this call, and makes the call again from time to time.
pub trait Io<D: Disk> {
    /// Takes the disk over. The store calls `start` once, before any job.
    fn start(&mut self, disk: D);
    /// Submits a job. Jobs of one lane are done in the order in which they were submitted.
    fn submit(&mut self, lane: Lane, job: Job);
    /// Appends the completions that are ready. The completions of one lane are in the order of its jobs.
    fn poll(&mut self, completions: &mut Vec<Completion>);
    /// Whether a lane waits for a descriptor.
    fn lacks_descriptor(&self) -> bool;
}

impl Call {
    /// Makes the call on `disk`. The bytes of a read are appended to `reads`.
    ///
    /// # Errors
    /// The error of the disk.
    pub fn make<D: Disk>(&self, disk: &mut D, reads: &mut Vec<Vec<u8>>) -> Result<(), DiskError> {
        match self {
            Self::Create(file) => disk.create(file),
            Self::Open(file) => match disk.open(file) {
                Err(error) if error.lacks_descriptor() => Ok(()),
                opened => opened,
            },
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

/// A job, and how far it has come.
#[derive(Debug)]
struct Work {
    job: Job,
    /// How many of the calls are made.
    made: usize,
    reads: Vec<Vec<u8>>,
}

impl Work {
    fn new(job: Job) -> Self {
        Self { job, made: 0, reads: Vec::new() }
    }

    /// Makes the calls that are left, until one fails. `None`: the next call lacks a descriptor, and is to be made again.
    fn go_on<D: Disk>(&mut self, disk: &mut D) -> Option<Completion> {
        let mut result = Ok(());
        for call in &self.job.calls[self.made..] {
            result = call.make(disk, &mut self.reads);
            match &result {
                Ok(()) => self.made += 1,
                Err(error) if error.lacks_descriptor() => return None,
                Err(_) => break,
            }
        }
        let reads = core::mem::take(&mut self.reads);
        Some(Completion { id: self.job.id, result, reads, free_bytes: disk.free_bytes() })
    }
}

/// Makes the calls on the caller's thread when it is polled. For tests and the simulator, where a crash comes between two known calls.
///
/// One poll does all commits, then all reads, and then at most one background job.
#[derive(Debug)]
pub struct InlineIo<D> {
    disk: Option<D>,
    commits: VecDeque<Work>,
    reads: VecDeque<Work>,
    background: VecDeque<Work>,
    lacks_descriptor: bool,
}

impl<D: Disk> InlineIo<D> {
    /// Returns an `InlineIo` without a disk; [`Io::start`] hands the disk over.
    #[must_use]
    pub fn new() -> Self {
        Self {
            disk: None,
            commits: VecDeque::new(),
            reads: VecDeque::new(),
            background: VecDeque::new(),
            lacks_descriptor: false,
        }
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
        let work = Work::new(job);
        match lane {
            Lane::Commit => self.commits.push_back(work),
            Lane::Read => self.reads.push_back(work),
            Lane::Background => self.background.push_back(work),
        }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        let Some(disk) = &mut self.disk else { return };
        self.lacks_descriptor = false;
        for (lane, most) in
            [(&mut self.commits, usize::MAX), (&mut self.reads, usize::MAX), (&mut self.background, 1)]
        {
            for _ in 0..most {
                let Some(work) = lane.front_mut() else { break };
                let Some(completion) = work.go_on(disk) else {
                    self.lacks_descriptor = true;
                    break;
                };
                completions.push(completion);
                lane.pop_front();
            }
        }
    }

    fn lacks_descriptor(&self) -> bool {
        self.lacks_descriptor
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
    /// Whether the thread waits for a descriptor. The thread writes it.
    lacks_descriptor: Arc<AtomicBool>,
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

    fn lacks_descriptor(&self) -> bool {
        self.lanes.iter().any(|thread| thread.lacks_descriptor.load(Ordering::Relaxed))
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
        let lacks_descriptor = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            disk,
            jobs: job_receiver,
            later: VecDeque::new(),
            completions: completion_sender,
            notify,
            lacks_descriptor: Arc::clone(&lacks_descriptor),
        };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(|| worker.work());
        let handle = Some(spawned.expect("the operating system gives no thread"));
        Self { lane, jobs: Some(jobs), completions, handle, open: VecDeque::new(), lacks_descriptor }
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
    /// Jobs that came while another one waited for a descriptor.
    later: VecDeque<Job>,
    completions: Sender<Completion>,
    notify: Notify,
    lacks_descriptor: Arc<AtomicBool>,
}

impl<D: Disk> Worker<D> {
    fn work(mut self) {
        let mut broken: Option<String> = None;
        while let Some(job) = self.next() {
            let completion = match &broken {
                Some(why) => failed(job.id, why),
                None => {
                    let id = job.id;
                    let done = catch_unwind(AssertUnwindSafe(|| self.complete(job)));
                    done.unwrap_or_else(|panic| {
                        let why = format!("the I/O thread panicked: {}", panic_text(panic.as_ref()));
                        failed(id, broken.insert(why))
                    })
                }
            };
            if self.completions.send(completion).is_err() {
                return;
            }
            (self.notify.0)();
        }
    }

    fn next(&mut self) -> Option<Job> {
        self.later.pop_front().or_else(|| self.jobs.recv().ok())
    }

    /// Makes the calls of a job. While a call lacks a descriptor, waits and makes it again. After the drop of the `ThreadIo`, the job is given
    /// up when it lacks a descriptor: what it would have written was not acknowledged, as at a crash.
    fn complete(&mut self, job: Job) -> Completion {
        let mut work = Work::new(job);
        loop {
            if let Some(completion) = work.go_on(&mut self.disk) {
                self.lacks_descriptor.store(false, Ordering::Relaxed);
                return completion;
            }
            if !self.lacks_descriptor.swap(true, Ordering::Relaxed) {
                (self.notify.0)();
            }
            match self.jobs.recv_timeout(DESCRIPTOR_PAUSE) {
                Ok(job) => self.later.push_back(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // The jobs behind it must not be made without it.
                    self.later.clear();
                    return failed(work.job.id, "there is no descriptor");
                }
            }
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
