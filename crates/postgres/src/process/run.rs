//! The threads of a [`Node`].

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::database::{Database, LIST_LIMIT, NodeEntry};
use crate::process::commit_worker::{CommitWorker, Rest};
use crate::process::heartbeats::Heartbeats;
use crate::process::node::{Event, Node};
use crate::process::polls::Polls;
use crate::process::reader::Reader;

/// The time before a reader tries again to make a session.
const READ_AGAIN: Duration = Duration::from_millis(100);
/// A stop waits this long for the commit workers and the readers, and as long for the last heartbeat. A thread that waits for a database that does not
/// answer is left alone; it ends once the database answers, or the connection breaks.
const STOP_LIMIT: Duration = Duration::from_secs(6);
/// The names of the threads of a store on PostgreSQL begin with this text. A panic on such a thread ends its work: shards of the thread answer
/// nothing any more, or rows of the inbox are not read. A server should then end its whole process.
// The name of a thread has at most 15 bytes on Linux.
pub const POSTGRES_THREADS: &str = "tw-pg-";

/// The running threads of a node. Dropping the value ends them, and waits for them for a limited time.
#[derive(Debug)]
pub struct Threads {
    node: Arc<Node>,
    beats: Arc<crate::process::mailbox::Mailbox<()>>,
    beat: Group,
    others: Group,
}

/// Some threads. Each holds a sender, which it drops at its end.
#[derive(Debug)]
struct Group {
    alive: Option<Sender<()>>,
    /// Only the drop reads it. The lock makes the value one that threads can share.
    ends: Mutex<Receiver<()>>,
}

impl Threads {
    /// Starts the threads: one for the heartbeats, one for the inbox, one for each commit worker and one for each reader. `random_name` makes a random name for an
    /// incarnation. The first heartbeat is sent before this call returns, so that the process can take shards at once.
    ///
    /// # Errors
    /// A thread cannot be started, or the database refuses this process.
    pub fn start<D: Database + 'static>(
        database: &Arc<D>,
        node: &Arc<Node>,
        entry: NodeEntry,
        random_name: impl Fn() -> String + Send + 'static,
    ) -> Result<Self, String>
    where
        D::Session: 'static,
    {
        let mut beats = Heartbeats::new(Arc::clone(database), Arc::clone(node), entry);
        let wait = beats.turn(&random_name)?;
        if let Some(why) = node.trouble() {
            return Err(why);
        }
        let threads = Self {
            node: Arc::clone(node),
            beats: Arc::default(),
            beat: Group::default(),
            others: Group::default(),
        };
        let end = Arc::clone(&threads.beats);
        threads.beat.spawn("beat".to_owned(), move || {
            let mut wait = wait;
            while !end.is_closed() {
                end.wait(Some(wait));
                if end.is_closed() {
                    break;
                }
                // A refusal may end, for example when an operator gives the role its rights back.
                wait = beats.turn(&random_name).unwrap_or(Duration::from_secs(1));
            }
            beats.leave();
        })?;
        let (mut polls, of) = (Polls::new(Arc::clone(database), Arc::clone(node)), Arc::clone(node));
        threads.others.spawn("inbox".to_owned(), move || while of.inbox().wait(polls.turn()) {})?;
        for index in 0..node.commit_workers() {
            let (database, of) = (Arc::clone(database), Arc::clone(node));
            threads
                .others
                .spawn(format!("commit-{index}"), move || run_commit_worker(index, database, &of))?;
        }
        for index in 0..node.readers() {
            let (database, of) = (Arc::clone(database), Arc::clone(node));
            threads.others.spawn(format!("read-{index}"), move || run_reader(database, &of, index))?;
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The heartbeats go on until the commit workers have given up the shards: otherwise another process would wait for a lease.
        self.node.close();
        self.others.join(STOP_LIMIT);
        self.beats.close();
        self.beat.join(STOP_LIMIT);
    }
}

impl Default for Group {
    fn default() -> Self {
        let (alive, ends) = channel();
        Self { alive: Some(alive), ends: Mutex::new(ends) }
    }
}

impl Group {
    fn spawn(&self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let alive = self.alive.clone();
        let thread = std::thread::Builder::new().name(format!("{POSTGRES_THREADS}{name}"));
        let spawned = thread.spawn(move || {
            run();
            drop(alive);
        });
        spawned.map(drop).map_err(|error| format!("start the thread {name}: {error}"))
    }

    /// Waits until all threads have ended, for at most this time.
    fn join(&mut self, limit: Duration) {
        self.alive = None;
        // No thread sends, so the end of the wait is the end of the last thread or of the time.
        let ends = self.ends.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ended: Result<(), RecvTimeoutError> = ends.recv_timeout(limit);
    }
}

fn run_commit_worker<D: Database>(index: usize, database: Arc<D>, node: &Node) {
    let mut commit_worker = CommitWorker::new(database);
    let mut rest = Rest::Idle;
    let mut outcomes = Vec::new();
    let name = format!("commit worker {index}");
    loop {
        let jobs = match rest {
            Rest::Idle => node.commit_worker(index).wait(None),
            Rest::Work => node.commit_worker(index).take_all(),
            Rest::Again(after) => node.commit_worker(index).wait(Some(after)),
        };
        let has_ended = node.commit_worker(index).is_closed() && jobs.is_empty();
        jobs.into_iter().for_each(|(shard, job)| commit_worker.push(shard, job));
        let Some(incarnation) = node.incarnation() else {
            if has_ended {
                return;
            }
            rest = Rest::Again(READ_AGAIN);
            continue;
        };
        rest = commit_worker.turn(&incarnation, &mut outcomes);
        node.set_trouble(&name, commit_worker.trouble());
        for (shard, outcome) in outcomes.drain(..) {
            node.tell(shard, Event::Job(outcome));
        }
        // A stop does not wait for a database that does not answer. The commits that are left were not acknowledged.
        if has_ended && rest != Rest::Work {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a reader waits for a database in real time")]
fn run_reader<D: Database>(database: Arc<D>, node: &Arc<Node>, index: usize) {
    let mut reader = Reader::new(database, Arc::clone(node), index);
    while let Some(job) = node.reads(index).wait_one() {
        let begun = Instant::now();
        let mut unanswered = reader.answer(job);
        while let Some((job, why)) = unanswered {
            let has_waited = job.read.can_fail() && begun.elapsed() >= LIST_LIMIT;
            if node.reads(index).is_closed() || has_waited {
                reader.refuse(&job, why);
                break;
            }
            // The engine waits for the answer. A failure would stop its changes, and a database that restarts is no reason for that.
            node.reads(index).wait_for_close(READ_AGAIN);
            unanswered = reader.answer(job);
        }
    }
}
