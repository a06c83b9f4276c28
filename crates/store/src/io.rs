//! Who calls the disk: jobs go in, completions come out.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use crate::disk::{Disk, DiskError, DiskOp};

/// One call to a [`Disk`], with all it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// [`Disk::create`].
    Create(Arc<str>),
    /// [`Disk::write_at`].
    Write {
        /// Where to.
        file: Arc<str>,
        /// From which byte on.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// [`Disk::write_at`] of zeroes, at most [`ZEROES_MAX`] bytes.
    Zero {
        /// Where to.
        file: Arc<str>,
        /// From which byte on.
        offset: u64,
        /// How many.
        bytes: usize,
    },
    /// [`Disk::sync_data`].
    Sync(Arc<str>),
    /// [`Disk::rename`].
    Rename {
        /// The name it has.
        from: Arc<str>,
        /// The name it gets.
        to: Arc<str>,
    },
    /// [`Disk::remove`].
    Remove(Arc<str>),
    /// [`Disk::sync_dir`].
    SyncDir(Arc<str>),
    /// [`Disk::close`].
    Close(Arc<str>),
}

/// The most zeroes that one [`Call::Zero`] writes.
pub const ZEROES_MAX: usize = 1 << 20;

static ZEROES: [u8; ZEROES_MAX] = [0; ZEROES_MAX];

/// Names one job until its completion.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JobId(pub u64);

/// Calls to be made in this order, up to the first that fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its name, chosen by the owner.
    pub id: JobId,
    /// The calls.
    pub calls: Vec<Call>,
}

/// What became of a job.
#[derive(Debug)]
pub struct Completion {
    /// Which one.
    pub id: JobId,
    /// `Err` is of the first call that failed; none was made after it.
    pub result: Result<(), DiskError>,
    /// [`Disk::free_bytes`] after the job.
    pub free_bytes: u64,
}

/// Which of two waiting jobs goes first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Somebody waits for it: a commit.
    Urgent,
    /// Nobody does. It is short, for an urgent job that comes now waits for it.
    Background,
}

/// Carries jobs to a [`Disk`] and completions back. It decides nothing.
pub trait Io<D: Disk> {
    /// Takes the disk over. Called once, before any job.
    fn start(&mut self, disk: D);
    /// Hands a job over. Jobs of one lane are done in order.
    fn submit(&mut self, lane: Lane, job: Job);
    /// Appends the completions that are there, in the order in which the jobs were done.
    fn poll(&mut self, completions: &mut Vec<Completion>);
}

/// Makes calls up to the first that fails.
pub(crate) fn run_calls<D: Disk>(disk: &mut D, calls: &[Call]) -> Result<(), DiskError> {
    calls.iter().try_for_each(|call| match call {
        Call::Create(file) => disk.create(file),
        Call::Write { file, offset, bytes } => disk.write_at(file, *offset, bytes),
        Call::Zero { file, offset, bytes } => disk.write_at(file, *offset, &ZEROES[..*bytes]),
        Call::Sync(file) => disk.sync_data(file),
        Call::Rename { from, to } => disk.rename(from, to),
        Call::Remove(file) => disk.remove(file),
        Call::SyncDir(dir) => disk.sync_dir(dir),
        Call::Close(file) => {
            disk.close(file);
            Ok(())
        }
    })
}

fn complete<D: Disk>(disk: &mut D, job: &Job) -> Completion {
    let result = run_calls(disk, &job.calls);
    Completion { id: job.id, result, free_bytes: disk.free_bytes() }
}

/// Makes the calls when it is polled, on the caller's thread: for tests and the simulator, where each crash has its place.
///
/// One poll does all urgent jobs and then at most one of the background.
#[derive(Debug)]
pub struct InlineIo<D> {
    disk: Option<D>,
    urgent: VecDeque<Job>,
    background: VecDeque<Job>,
}

impl<D: Disk> InlineIo<D> {
    /// Without a disk yet.
    #[must_use]
    pub fn new() -> Self {
        Self { disk: None, urgent: VecDeque::new(), background: VecDeque::new() }
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
            Lane::Urgent => self.urgent.push_back(job),
            Lane::Background => self.background.push_back(job),
        }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        let Some(disk) = &mut self.disk else { return };
        for job in self.urgent.drain(..).chain(self.background.pop_front()) {
            completions.push(complete(disk, &job));
        }
    }
}

/// Makes the calls on a thread of its own, which owns the disk.
///
/// Ground rules: the owner talks to the thread by two channels only, jobs in and completions out, and shares nothing with
/// it. `notify` is called on that thread after each completion was sent; it must not block. If a call panics, its job
/// and all later ones fail. The drop finishes the urgent jobs that were handed over, ends the thread, waits for it, and with
/// it the disk and its lock are gone.
#[derive(Debug)]
pub struct ThreadIo {
    notify: Option<Notify>,
    jobs: Option<Sender<(Lane, Job)>>,
    completions: Option<Receiver<Completion>>,
    thread: Option<JoinHandle<()>>,
    /// Handed over and not yet completed, oldest first: what fails if the thread ends.
    open: VecDeque<JobId>,
}

struct Notify(Box<dyn Fn() + Send>);

impl core::fmt::Debug for Notify {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Notify")
    }
}

impl ThreadIo {
    /// `notify` wakes the loop that polls the store.
    #[must_use]
    pub fn new(notify: Box<dyn Fn() + Send>) -> Self {
        Self {
            notify: Some(Notify(notify)),
            jobs: None,
            completions: None,
            thread: None,
            open: VecDeque::new(),
        }
    }
}

impl<D: Disk> Io<D> for ThreadIo {
    /// # Panics
    /// If the operating system gives no thread.
    fn start(&mut self, disk: D) {
        let notify = self.notify.take().expect("a second disk was handed to one ThreadIo");
        let (jobs, job_receiver) = channel();
        let (completion_sender, completions) = channel();
        let worker = Worker {
            disk,
            jobs: job_receiver,
            completions: completion_sender,
            notify,
            waiting: VecDeque::new(),
        };
        let spawned = std::thread::Builder::new().name("tickwheel-io".to_owned()).spawn(|| worker.work());
        self.thread = Some(spawned.expect("the operating system gives no thread"));
        self.jobs = Some(jobs);
        self.completions = Some(completions);
    }

    fn submit(&mut self, lane: Lane, job: Job) {
        self.open.push_back(job.id);
        if let Some(jobs) = &self.jobs {
            // An error means that the thread ended; `poll` says so for each job that is open.
            jobs.send((lane, job)).ok();
        }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) {
        let Some(receiver) = &self.completions else { return };
        loop {
            match receiver.try_recv() {
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
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The worker catches what a disk throws; should it have died in spite of that, there is nobody to tell.
            thread.join().ok();
        }
    }
}

struct Worker<D> {
    disk: D,
    jobs: Receiver<(Lane, Job)>,
    completions: Sender<Completion>,
    notify: Notify,
    waiting: VecDeque<Job>,
}

impl<D: Disk> Worker<D> {
    fn work(mut self) {
        let mut broken: Option<String> = None;
        while let Some(job) = self.next() {
            let completion = match &broken {
                Some(why) => failed(job.id, why),
                None => match catch_unwind(AssertUnwindSafe(|| complete(&mut self.disk, &job))) {
                    Ok(completion) => completion,
                    Err(panic) => {
                        let why = format!("the I/O thread panicked: {}", panic_text(panic.as_ref()));
                        let completion = failed(job.id, &why);
                        broken = Some(why);
                        completion
                    }
                },
            };
            if self.completions.send(completion).is_err() {
                return;
            }
            (self.notify.0)();
        }
    }

    /// The next job, an urgent one first; `None` once the owner is gone and no urgent job is left.
    fn next(&mut self) -> Option<Job> {
        loop {
            match self.jobs.try_recv() {
                Ok((Lane::Urgent, job)) => return Some(job),
                Ok((Lane::Background, job)) => self.waiting.push_back(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => break,
            }
        }
        if let Some(job) = self.waiting.pop_front() {
            return Some(job);
        }
        self.jobs.recv().ok().map(|(_, job)| job)
    }
}

fn failed(id: JobId, why: &str) -> Completion {
    let error = DiskError::new(DiskOp::Run, "the data directory", std::io::Error::other(why.to_owned()));
    Completion { id, result: Err(error), free_bytes: 0 }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}
